"""The choice between candidates of all engines, by one rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nurf.choosing._clock import NO_LIMIT, Clock, TimeUpError
from nurf.choosing._evidence import advantage, excess, selection_optimism
from nurf.choosing._policy import Policy
from nurf.choosing._race import Attempt, Engine, Judged, race


class NothingFittedError(Exception):
    """No engine could be fitted; the first argument has the errors of all engines."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The winner of a race, and all candidates that took part.

    Parameters
    ----------
    winner : Judged
    optimism : float
        The factor by which the error of the winner is too small because it was chosen.
    finalists : tuple of Judged
        The best candidate of each engine that was judged, in the order of the engines.
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
    """

    winner: Judged
    optimism: float = 1.0
    finalists: tuple[Judged, ...] = ()
    last: tuple[Judged, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    seconds: tuple[float, ...] = ()
    failures: dict[int, Exception] = field(default_factory=dict)
    finished: bool = True


def decide(
    engines: Sequence[Engine],
    policy: Policy,
    watch: Callable[[Attempt], None] | None = None,
    clock: Clock = NO_LIMIT,
    tolerated: tuple[type[Exception], ...] = (),
) -> Choice:
    """Return the best candidate of all engines.

    Parameters
    ----------
    engines : sequence of Engine
        The simplest first: it is kept in doubt.
    policy : Policy
    watch : callable, optional
        Called with each attempt.
    clock : Clock
        The end of the time budget, which the engines share.
    tolerated : tuple of exception types
        Errors of an engine that end this engine, and not the race.
    """
    outcome = race(engines, policy, watch, clock, tolerated)
    if not outcome.best:
        raise NothingFittedError(outcome.failures)
    ordered = [outcome.best[place] for place in sorted(outcome.best)]
    finished = outcome.finished
    try:
        ordered = [[_confirmed(each, tolerated) for each in best] for best in ordered]
    except TimeUpError:  # then the evidence of the race decides
        finished = False
    finalists, last = tuple(best_effort(best, policy) for best in ordered), tuple(best[-1] for best in ordered)
    winner = simplest(finalists, policy)
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
    )


def _confirmed(judged: Judged, tolerated: tuple[type[Exception], ...]) -> Judged:
    """Return a candidate with honest evidence, or with that of the race if the confirmation fails."""
    try:
        return judged.engine.confirmed(judged)
    except tolerated:
        return judged


def best_effort(best: Sequence[Judged], policy: Policy) -> Judged:
    """Return the candidate of the largest effort, or one of a smaller effort that is clearly better."""
    return simplest(best[::-1], policy)


def simplest(judged: Sequence[Judged], policy: Policy) -> Judged:
    """Return the first candidate that none of the later ones beats clearly.

    A challenger wins if it is better than the incumbent by more than ``policy.standard_errors`` standard errors of the
    paired difference of logarithms, unless its mean square is larger by more than ``policy.tail_errors`` standard
    errors.
    """
    incumbent = judged[0]
    for challenger in judged[1:]:
        gain, spread = advantage(challenger.evidence, incumbent.evidence, policy.floor)
        loss, doubt = excess(challenger.evidence, incumbent.evidence)
        if gain > policy.standard_errors * spread and loss <= policy.tail_errors * doubt:
            incumbent = challenger
    return incumbent
