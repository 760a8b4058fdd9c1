"""A race between all engines, and the continuation of its winners with data in blocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from nurf.blockwise import Blocks, with_errors_at
from nurf.choosing import POLICY, Choice, Clock, Engine, Judged, TimeUpError
from nurf.data import DerivativeCheck
from nurf.engines import Fit
from nurf.estimators._base import NetworkRegressor
from nurf.estimators._prepared import Prepared
from nurf.jets import Jet


@dataclass(frozen=True, eq=False)
class Contender:
    """An engine, and its estimator."""

    name: str
    model: NetworkRegressor
    prepared: Prepared
    engine: Engine


@dataclass(frozen=True, eq=False)
class Raced:
    """A race between all engines.

    Parameters
    ----------
    models : list of (str, NetworkRegressor)
        The names of the engines, and the estimators with their parameters.
    contenders : list of Contender
    choice : Choice
    failures : dict
        For each place in ``models`` that failed with the transformation of the winner, its error.
    check : DerivativeCheck or None
    warnings : tuple of Warning
    """

    models: list[tuple[str, NetworkRegressor]]
    contenders: list[Contender]
    choice: Choice
    failures: dict[int, Exception]
    check: DerivativeCheck | None
    warnings: tuple[Warning, ...]

    @property
    def winner(self) -> Contender:
        """The chosen contender."""
        return self.contender(self.choice.winner)

    def contender(self, judged: Judged) -> Contender:
        """Return the contender of a candidate."""
        return next(each for each in self.contenders if each.engine is judged.engine)

    @cached_property
    def fit(self) -> Any:
        """The fit of the chosen candidate."""
        return self.winner.prepared.fit(self.choice)

    def fit_of(self, judged: Judged) -> Any:
        """Return the fit of a candidate."""
        if judged is self.choice.winner:
            return self.fit
        return self.contender(judged).prepared.fit(replace(self.choice, winner=judged))


@dataclass(frozen=True, eq=False)
class OnAllRows:
    """A candidate of a race that was fitted to all rows.

    Parameters
    ----------
    judged : Judged
        The candidate in the race.
    model : NetworkRegressor
        The estimator, fitted to all rows, with its error at the held-out rows.
    warnings : list of Warning
    is_whole : bool
        Whether there was time for all neurons or steps.
    """

    judged: Judged
    model: NetworkRegressor
    warnings: list[Warning]
    is_whole: bool


@dataclass(frozen=True, eq=False)
class RacedOnBlocks:
    """The result of a race on data in blocks.

    Parameters
    ----------
    raced : Raced
        The race on the sample, which counts as unfinished if there was too little time for candidates on all rows.
    fit : Fit
        The fit of the winner of the race, with its errors at the held-out rows.
    better : OnAllRows or None
        A candidate that was fitted to all rows, if it has a smaller error at the held-out rows.
    """

    raced: Raced
    fit: Fit
    better: OnAllRows | None


@dataclass(frozen=True, eq=False)
class RacedBlocks:
    """The method to fit the best of all engines to data in blocks.

    All engines race on the sample, for half of the time. In the other half, the best candidates continue with all rows
    if their engines can and they are not far behind: sampled networks with the neurons, and trained networks with the
    steps, that fit into the time. The results are compared with the winner of the race at the held-out rows.

    Parameters
    ----------
    race : callable
        Maps a sample, a generator and a deadline to the race.
    budget : float
        Seconds for the whole fit.
    verbose : int
    """

    parts: ClassVar[tuple[type, ...]] = ()

    race: Callable[[Jet, np.random.Generator, float], Raced]
    budget: float
    verbose: int

    def fit(self, blocks: Blocks, rng: np.random.Generator) -> tuple[Raced, float]:
        """Return the race on the sample, and the deadline."""
        now = time.perf_counter()
        end = now - blocks.seconds + self.budget
        return self.race(blocks.sample, rng, (now + end) / 2), end

    def absorb(
        self, blocks: Blocks, fit: tuple[Raced, float], state: None, after: Callable[[None], None] | None
    ) -> tuple[OnAllRows | None, ...]:
        """Return candidates of the race after all blocks, each with its share of the remaining time.

        Candidates without enough time are None.
        """
        (raced, end), found = fit, list[OnAllRows | None]()
        limit = POLICY.factor * raced.choice.winner.error
        going = [each for each in raced.choice.finalists if raced.contender(each).model._goes_on]
        going = sorted((each for each in going if each.error <= limit), key=lambda each: each.error)
        for n_done, judged in enumerate(going):
            left = (end - time.perf_counter()) / (len(going) - n_done)
            found.append(self._on_all_rows(raced, judged, blocks, left) if left > blocks.seconds else None)
        return tuple(found)

    def finish(self, blocks: Blocks, fit: tuple[Raced, float], absorbed: tuple[OnAllRows | None, ...]) -> RacedOnBlocks:
        """Return the winner of the race, or a candidate fitted to all rows if its error is smaller."""
        raced, _ = fit
        of_sample = with_errors_at(raced.fit, raced.winner.prepared.scaling(blocks.held))
        done = [each for each in absorbed if each is not None]
        best = min(done, key=lambda each: each.model.fit_.error, default=None)
        better = best is not None and best.model.fit_.error < of_sample.error
        whole = len(done) == len(absorbed) and all(each.is_whole for each in done)
        choice = replace(raced.choice, finished=raced.choice.finished and whole)
        return RacedOnBlocks(replace(raced, choice=choice), of_sample, best if better else None)

    def _on_all_rows(self, raced: Raced, judged: Judged, blocks: Blocks, seconds: float) -> OnAllRows | None:
        """Return a candidate after all blocks, or None if there is not enough time."""
        contender, clock = raced.contender(judged), Clock(time.perf_counter() + seconds)
        clock.start()
        model, units = copy(contender.model), blocks.blocks(contender.prepared.scaling)
        try:
            found, is_whole = model._go_on(judged, raced.fit_of(judged), units, clock, self.verbose)
        except TimeUpError:
            return None
        return OnAllRows(judged, model, found, is_whole)
