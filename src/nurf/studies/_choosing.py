"""The choice of the next runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from nurf._types import Array, Mask
from nurf._validation import is_number
from nurf.studies._ensemble import Ensemble
from nurf.studies._space import Space
from nurf.studies.goals._base import Goal, Question, View

VALUE, GRADIENT = "value", "gradient"  # what runs compute
APART = 1e-3  # distance of different runs in the unit cube, along the input in which they differ most
REFINED = 8  # of the best candidates, around which further ones are tried
NOISY = 1e-4  # share of the variance of the values from which on runs may be repeated


@dataclass(frozen=True)
class Costs:
    """Costs of runs by kind: "value", or "gradient" for both; empty if costs do not matter."""

    by_kind: dict[str, float]

    @classmethod
    def of(cls, given: Any) -> Costs:
        """Return the costs in an argument of a user."""
        if given is None:
            return cls({})
        if not (isinstance(given, Mapping) and given and set(given) <= {VALUE, GRADIENT}):
            raise ValueError(f"`costs` must be a dict of the costs of 'value' and 'gradient', got {given!r}")
        if not all(is_number(cost) and cost > 0 for cost in given.values()):
            raise ValueError(f"`costs` must be numbers > 0, got {given!r}")
        return cls({kind: float(cost) for kind, cost in given.items()})

    def typical(self, d: int) -> str:
        """Return the kind of run with the most numbers per cost, which is used until there is a model."""
        numbers = {VALUE: 1, GRADIENT: 1 + d}
        return max(self.by_kind, key=lambda kind: numbers[kind] / self.by_kind[kind], default=VALUE)


@dataclass(frozen=True, eq=False)
class Chooser:
    """The choice of the runs that help most to reach a goal.

    Parameters
    ----------
    view : View
    goal : Goal
    unknown : array of shape (p, d)
        Inputs of runs that the model does not know: those that are not told yet.
    taken : array of shape (q, d)
        Inputs of all runs.
    costs : Costs
    """

    view: View
    goal: Goal
    unknown: Array
    taken: Array
    costs: Costs

    def choose(self, n: int) -> tuple[Array, list[str]]:
        """Return at most ``n`` points (n, d), each chosen given the previous points, and the kind of run at each."""
        question = self.goal.question(self.view)
        ensemble, X = self._prepared(question)
        free, works = self._fresh(X), self.view.works(X)
        chosen: list[int] = []
        computed: list[str] = []
        for _ in range(n):
            worth = np.where(free, question.worth(ensemble) * works, 0.0)
            if not np.any(worth > 0):
                break
            best = int(np.argmax(worth))
            chosen.append(best)
            free &= apart(self.view.space, X, X[[best]])
            kind, ensemble = self._best_kind(ensemble, X[best])
            computed.append(kind)
        return X[chosen], computed

    def _best_kind(self, ensemble: Ensemble, x: Array) -> tuple[str, Ensemble]:
        """Return the best kind of run for its cost at a point (d,), and the ensemble after this run."""
        if not self.costs.by_kind:
            return VALUE, self.given(ensemble, x, self.view.data.gradients is not None)
        found = {kind: self.given(ensemble, x, kind == GRADIENT) for kind in self.costs.by_kind}
        before = ensemble.unknown
        gains = {kind: (before - after.unknown) / self.costs.by_kind[kind] for kind, after in found.items()}
        cheapest = min(found, key=lambda each: self.costs.by_kind[each])
        kind = max(gains, key=lambda each: gains[each])
        kind = kind if gains[cheapest] > 0 else cheapest  # the gain is lost among few draws
        return kind, found[kind]

    def given(self, ensemble: Ensemble, x: Array, with_gradient: bool) -> Ensemble:
        """Return the ensemble after a run at a point (d,)."""
        draws, noise = self.view.draws, self.view.noise
        values = draws.value(x[None]).reshape(len(draws), -1)
        if with_gradient:
            slopes = draws.gradient(x[None]).reshape(len(draws), -1)
            values, noise = np.concatenate([values, slopes], axis=1), np.concatenate([noise, np.zeros(slopes.shape[1])])
        return ensemble.given(values - values.mean(axis=0), noise)

    def _prepared(self, question: Question) -> tuple[Ensemble, Array]:
        """Return the ensemble given the runs without results yet, and the candidates."""
        X, draws, noise = question.candidates, self.view.draws, self.view.noise
        ensemble = Ensemble.of(draws, X, question.targets, noise)
        if question.answers is not None:
            ensemble = ensemble.asked(question.answers)
        if question.refined is not None and len(X):
            best = np.argsort(-question.worth(ensemble) * self.view.works(X), kind="stable")[:REFINED]
            further = question.refined(X[best])
            if len(further):
                ensemble = ensemble.joined(Ensemble.of(draws, further, question.targets[:0], noise))
                X = np.concatenate([X, further])
        for x in self.unknown:
            ensemble = self.given(ensemble, x, self.view.data.gradients is not None)
        return ensemble, X

    def _fresh(self, X: Array) -> Mask:
        """Return a mask (m,) of the candidates (m, d) that do not repeat a run; noisy runs may be repeated."""
        if self._is_noisy or not len(self.taken):
            return np.ones(len(X), bool)
        return apart(self.view.space, X, self.taken)

    @property
    def _is_noisy(self) -> bool:
        y, variances = self.view.data.y, self.view.noise
        return bool(np.any(variances > NOISY * y.var(axis=0)))


def apart(space: Space, X: Array, others: Array) -> Mask:
    """Return a mask (m,) of the inputs (m, d) that differ from all of the others (p, d)."""
    distances = KDTree(space.to_unit(others)).query(space.to_unit(X), p=np.inf)[0]
    return np.asarray(distances > APART)


def filling(space: Space, candidates: Array, taken: Array, n: int) -> Array:
    """Return at most ``n`` of the candidates (m, d): the farthest from all runs (q, d) and from each other."""
    U, found = space.to_unit(candidates), []
    distances = np.full(len(U), np.inf)
    if len(taken):
        distances = np.asarray(KDTree(space.to_unit(taken)).query(U)[0])
    for _ in range(n):
        if not len(U) or distances.max() <= APART:
            break
        best = int(np.argmax(distances))
        found.append(best)
        distances = np.minimum(distances, np.linalg.norm(U - U[best], axis=1))
    return candidates[found]
