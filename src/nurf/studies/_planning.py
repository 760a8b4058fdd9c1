"""The next runs of a study: its initial design, points for its goal, and space-filling points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._types import Array
from nurf._validation import is_number, is_whole
from nurf.estimators import choose
from nurf.studies._choosing import Chooser, Costs, apart, filling
from nurf.studies._design import KINDS, sequence, sobol
from nurf.studies._space import Space
from nurf.studies._store import FAILED, Run, as_array
from nurf.studies.goals._base import Goal, View

MOST_INITIAL = 60  # runs of the initial design, if the user does not say how many
FILLERS = 512  # points, of which the farthest from all runs fill the space


@dataclass(frozen=True)
class Plan:
    """Parameters of the plan of the runs of a study.

    Parameters
    ----------
    n_initial : int
        The runs of the initial design.
    design : {"sobol", "latin"}
    filling : float
        The share of later runs that fill the space.
    max_runs : int or None
    seed : int
    """

    n_initial: int
    design: str
    filling: float
    max_runs: int | None
    seed: int

    @classmethod
    def of(cls, d: int, n_initial: Any, design: Any, filling: Any, max_runs: Any, seed: int) -> Plan:
        """Return the plan for ``d`` varying inputs, from the arguments of a user."""
        n_initial = min(max(5, 2 * d + 2), MOST_INITIAL) if n_initial is None else n_initial
        require_count("n_initial", n_initial)
        if max_runs is not None:
            require_count("max_runs", max_runs)
        if not (is_number(filling) and 0 <= filling <= 1):
            raise ValueError(f"`filling` must be a number from 0 to 1, got {filling!r}")
        choose("design", design, KINDS)
        return cls(int(n_initial), design, float(filling), None if max_runs is None else int(max_runs), seed)

    def rng(self, n: int) -> np.random.Generator:
        """Return the random generator for a number of runs."""
        return np.random.default_rng([self.seed, n])


@dataclass(frozen=True, eq=False)
class Planner:
    """The choice of the next runs of a study.

    Parameters
    ----------
    space : Space
    goal : Goal
    plan : Plan
    """

    space: Space
    goal: Goal
    plan: Plan

    def chosen(self, runs: Sequence[Run], n: int, costs: Costs, look: Callable[[], View] | None) -> list[Run]:
        """Return at most ``n`` next runs, given all runs.

        Without ``look``, which returns what the goal sees, there are points of the design and points that fill the
        space.
        """
        typical = costs.typical(self.space.dimension)
        X = as_array(runs, "x").reshape(-1, self.space.dimension)
        designed = self._designed(X, min(n, self._left(runs)))
        chosen = [Run(0, tuple(x), "design", compute=typical) for x in designed]
        n, X = n - len(designed), np.concatenate([X, designed])
        if n and look is not None:
            best, computed = self._best(look, runs, X, n - self._due(runs, n), costs)
            chosen += [Run(0, tuple(x), "goal", compute=c) for x, c in zip(best, computed, strict=True)]
            n, X = n - len(best), np.concatenate([X, best])
        if n:
            fillers = filling(self.space, self._fillers(self.plan.rng(len(runs) + len(chosen))), X, n)
            chosen += [Run(0, tuple(x), "filling", compute=typical) for x in fillers]
        return chosen

    def check(self) -> None:
        """Raise an error if the question cannot be asked of the inputs, or no point meets the constraints."""
        self.goal.check(self.space)
        self._designed(np.empty((0, self.space.dimension)), 1)

    def exhausted(self, runs: Sequence[Run]) -> bool:
        """Return whether all combinations of levels have been used."""
        if not self.space.discrete.all() or not runs:
            return False
        X = as_array(runs, "x").reshape(-1, self.space.dimension)
        return not apart(self.space, self._fillers(self.plan.rng(0)), X).any()

    def _left(self, runs: Sequence[Run]) -> int:
        """Return the number of points of the initial design that are left; other runs count as well."""
        return max(0, self.plan.n_initial - sum(run.origin != "goal" for run in runs))

    def _designed(self, taken: Array, n: int) -> Array:
        """Return the next ``n`` points of the initial design."""
        if not n:
            return taken[:0]
        plan = self.plan
        X = sequence(self.space, plan.n_initial, KINDS[plan.design], plan.seed, self.goal.wider)
        fresh = apart(self.space, X, taken) if len(taken) else np.ones(len(X), bool)
        return X[fresh][:n]

    def _due(self, runs: Sequence[Run], n: int) -> int:
        """Return the number of space-filling points among the next ``n``."""
        later, share = sum(run.origin in ("goal", "filling") for run in runs), self.plan.filling
        return int(np.floor((later + n) * share)) - int(np.floor(later * share))

    def _fillers(self, rng: np.random.Generator) -> Array:
        return sequence(self.space, FILLERS, sobol, int(rng.integers(2**31)), self.goal.wider)

    def _best(
        self, look: Callable[[], View], runs: Sequence[Run], taken: Array, n: int, costs: Costs
    ) -> tuple[Array, list[str]]:
        """Return at most ``n`` points that help most to reach the goal, and the kind of run at each."""
        if not n:
            return taken[:0], []
        view = look()
        known = set(view.data.runs)
        missing = [run.run not in known and run.state != FAILED for run in runs] & self.space.contains(
            taken[: len(runs)]
        )
        unknown = np.concatenate([taken[: len(runs)][missing], taken[len(runs) :]])
        return Chooser(view, self.goal, unknown, taken, costs).choose(n)


def require_count(name: str, value: Any) -> None:
    """Raise an error unless a value is a whole number >= 1."""
    if not is_whole(value):
        raise ValueError(f"`{name}` must be a whole number >= 1, got {value!r}")
