"""The choice between candidates of all engines, by one rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from nurf.choosing._clock import NO_LIMIT, Clock, TimeUpError
from nurf.choosing._engine import Attempt, Engine, Judged
from nurf.choosing._evidence import advantage, excess, selection_optimism
from nurf.choosing._policy import Policy
from nurf.choosing._race import errors_by_transform, far_transforms, race


class NothingFittedError(Exception):
    """No engine could be fitted; the first argument has the errors of all engines."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The winner of a race, and all candidates that took part.

    Parameters
    ----------
    winner : Judged
    optimism : float
        The factor by which the error of the winner is too small due to the selection.
    finalists : tuple of Judged
        The best judged candidate of each engine that was not far behind, in the order of the engines.
    last : tuple of Judged
        The best candidate of each engine at its largest effort.
    attempts : tuple of Attempt
        All candidates that were judged.
    seconds : tuple of float
        The time that the candidates of each engine took.
    failures : dict
        For each engine that failed, its error.
    finished : bool
        Whether the schedule came to its end before the deadline.
    errors : dict
        The error with each transformation that was tried.
    """

    winner: Judged
    optimism: float = 1.0
    finalists: tuple[Judged, ...] = ()
    last: tuple[Judged, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    seconds: tuple[float, ...] = ()
    failures: dict[int, Exception] = field(default_factory=dict)
    finished: bool = True
    errors: dict[str, float] = field(default_factory=dict)


def decide(
    engines: Sequence[Engine],
    policy: Policy,
    watch: Callable[[Attempt], None] | None = None,
    clock: Clock = NO_LIMIT,
    tolerated: tuple[type[Exception], ...] = (),
) -> Choice:
    """Return the best candidate of all engines.

    Engines with the same transformation are compared in pairs, sample by sample (``simplest``), and the winners of
    different transformations by their mean squares: fits to logarithms of values have small errors at small values, and
    would win by these. On Webster2D (20 samples with gradients) they did, with an error of 0.047 in place of 0.0027.

    Parameters
    ----------
    engines : sequence of Engine
        The simplest engine first: it is kept if the evidence is weak.
    policy : Policy
    watch : callable, optional
        Called with each attempt.
    clock : Clock
        The end of the time budget, which the engines share.
    tolerated : tuple of exception types
        Errors that end the engine in which they occur, but not the race.
    """
    outcome = race(engines, policy, watch, clock, tolerated)
    if not outcome.best:
        raise NothingFittedError(outcome.failures)
    every, finished = [outcome.best[place] for place in sorted(outcome.best)], outcome.finished
    errors = errors_by_transform(each for best in every for each in best)
    far = far_transforms(errors, policy.factor)
    ordered = [best for best in every if best[0].engine.transform not in far]
    try:
        ordered = _confirmed(ordered, tolerated)
    except TimeUpError:  # the evidence of the race decides
        finished = False
    finalists, last = tuple(best_effort(best, policy) for best in ordered), tuple(best[-1] for best in ordered)
    near = [transform for transform in errors if transform not in far]
    groups = [[each for each in finalists if each.engine.transform == transform] for transform in near]
    winners = [simplest(values_first(group, policy), policy) for group in groups]
    winner = min(winners, key=lambda each: each.error)
    candidates = [each.evidence for each in outcome.judged]
    optimism = selection_optimism(winner.evidence, candidates, policy.factor, policy.n_draws)
    return Choice(
        winner,
        optimism,
        finalists,
        last,
        outcome.attempts,
        outcome.seconds,
        outcome.failures,
        finished,
        errors | {each.engine.transform: each.error for each in winners},
    )


def _confirmed(ordered: Sequence[Sequence[Judged]], tolerated: tuple[type[Exception], ...]) -> list[list[Judged]]:
    """Return candidates with confirmed evidence, or with the evidence of the race if the confirmation fails."""
    found = [list(best) for best in ordered]
    for best in found:
        for place, each in enumerate(best):
            with suppress(*tolerated):
                best[place] = each.engine.confirmed(each)
    return found


def best_effort(best: Sequence[Judged], policy: Policy) -> Judged:
    """Return the best candidate of the largest effort, or of a smaller effort if it is clearly better."""
    return simplest(best[::-1], policy)


def values_first(judged: Sequence[Judged], policy: Policy) -> list[Judged]:
    """Return candidates of several engines in the same order, but fits to the values alone before fits to all data.

    With fewer samples than folds the evidence is weak, and most data are derivatives: the order is unchanged.
    """
    if min(np.count_nonzero(each.evidence.judges) for each in judged) < policy.n_folds:
        return list(judged)
    places = {name: place for place, name in enumerate(dict.fromkeys(each.engine.name for each in judged))}
    return sorted(judged, key=lambda each: (places[each.engine.name], not each.engine.ignores_derivatives))


def simplest(judged: Sequence[Judged], policy: Policy) -> Judged:
    """Return the first candidate that no later candidate beats clearly.

    A challenger wins if it is better than the incumbent by more than ``policy.standard_errors`` standard errors of the
    paired difference of logarithms, unless its mean square is larger by more than ``policy.tail_errors`` standard
    errors. To win over a fit to the values alone, a fit to derivatives needs ``policy.derivative_errors`` standard
    errors and no larger mean square: derivatives may be wrong.
    """
    incumbent = judged[0]
    for challenger in judged[1:]:
        gain, spread = advantage(challenger.evidence, incumbent.evidence, policy.floor)
        loss, error = excess(challenger.evidence, incumbent.evidence)
        trusts = incumbent.engine.ignores_derivatives and not challenger.engine.ignores_derivatives
        needed = policy.derivative_errors if trusts else policy.standard_errors
        tolerated = 0.0 if trusts else policy.tail_errors * error
        if gain > needed * spread and loss <= tolerated:
            incumbent = challenger
    return incumbent
