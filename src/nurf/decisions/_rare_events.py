"""Weighted points for the probability of a rare event: importance sampling, subset simulation, or the better one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._types import Array, Mask
from nurf.decisions._design_points import Functions, design_points
from nurf.decisions._inputs import REPLICATES, Inputs, normal_points
from nurf.decisions._limits import Limits
from nurf.decisions._rare_points import Mixture, subset_points

METHODS = ("auto", "importance", "subset")
STARTS = 64  # starts of the search for design points; 16 find all four of the four-branch function
STEPS = 40  # steps of a search
FEW_DRAWS, FEW_STEPS = 20, 10  # draws, and steps of their searches, which start at the design points of the model
SHORT = 512  # points of each level and set of the simulation that judges importance sampling


@dataclass(frozen=True, eq=False)
class RareSample:
    """Weighted points of standard normal variables.

    Parameters
    ----------
    points : array of shape (R, m, d)
        ``R`` independent sets.
    weights : array of shape (R, m)
        Their means are one.
    fails : array of shape (R, m)
        Whether the model exceeds the limits.
    design_points : array of shape (p, d)
        The nearest points to the centre at which the model exceeds the limits.
    method : {"importance", "subset"}
    """

    points: Array
    weights: Array
    fails: Mask
    design_points: Array
    method: str


@dataclass(frozen=True, eq=False)
class RareEvent:
    """The event that a model and its draws exceed limits.

    Parameters
    ----------
    distribution : Inputs
    draws : Draws
    limits : Limits
    """

    distribution: Inputs
    draws: Any
    limits: Limits

    def sample(self, method: str, n: int, rng: np.random.Generator) -> RareSample:
        """Return a sample of ``n`` points in each set (and for "subset" of each level).

        With "auto", importance sampling is replaced by subset simulation if its coefficient of variation is larger than
        the coefficient of a short subset simulation. With weights ``w`` and the probability ``P``, the square of the
        coefficient of ``N`` points of importance sampling is ``(E(w | exceeded) / P - 1) / N``. The mean over the
        points of the simulation includes failures near which importance sampling has no points.
        """
        if method == "subset":
            return self._subset(n, rng)
        mixture, found = self._mixture(rng)
        points = mixture.points(normal_points(n, self.distribution.dimension + 1, rng))
        fails = self.limits.exceeded(self._values(points)).reshape(points.shape[:2])
        own = RareSample(points, mixture.weights(points), fails, found, "importance")
        if method == "importance":
            return own
        there, weights, fails = self._simulated(SHORT, rng)
        shares, own_shares = weights * fails, own.weights * own.fails
        if not shares.any():
            return own
        ratio = np.sum(shares * mixture.weights(there)) / np.sum(shares) / shares.mean()
        expected = np.sqrt(max(ratio - 1, 0.0) / own_shares.size)
        reached = variation(shares) * np.sqrt(SHORT / min(n, SHORT))
        return own if max(variation(own_shares), expected) <= reached else self._subset(n, rng)

    def _values(self, Z: Array) -> Array:
        """Return the values of the model at points (..., d), of shape (m,) or (m, k)."""
        return np.asarray(self.draws.fit.value(self.distribution.from_normal(Z.reshape(-1, Z.shape[-1]))))

    def _mixture(self, rng: np.random.Generator) -> tuple[Mixture, Array]:
        """Return normal distributions around the design points of model and draws, and the model's design points."""
        d = self.distribution.dimension
        starts = np.concatenate([np.zeros((1, d)), normal_points(STARTS // REPLICATES, d, rng).reshape(-1, d)])
        found = self._searched(starts)
        some = self.draws[: min(FEW_DRAWS, len(self.draws))]
        turns = found[np.arange(len(some)) % len(found)] if len(found) else np.zeros((len(some), d))
        moved = design_points(Functions(self.distribution, some), self.limits, turns[:, None], FEW_STEPS)
        centres = np.concatenate([found, moved])
        return Mixture(centres if len(centres) else np.zeros((1, d))), found

    def _subset(self, n: int, rng: np.random.Generator) -> RareSample:
        """Return points of subset simulation, and design points next to these."""
        points, weights, fails = self._simulated(n, rng)
        failed = points[fails & (weights > 0)]
        nearest = failed[np.argsort(np.linalg.norm(failed, axis=1))[:STARTS]]
        return RareSample(points, weights, fails, self._searched(nearest) if len(nearest) else nearest, "subset")

    def _simulated(self, n: int, rng: np.random.Generator) -> tuple[Array, Array, Mask]:
        """Return points (R, m, d) of subset simulation of the model, their weights, and whether they fail."""
        normals = normal_points(n, self.distribution.dimension, rng)
        scales = self.limits.deviations(self._values(normals[0]))
        points, weights, margins = subset_points(lambda Z: self.limits.margin(self._values(Z), scales), normals, rng)
        return points, weights, margins < 0

    def _searched(self, starts: Array) -> Array:
        """Return the design points of the model from starts (s, d)."""
        return design_points(Functions(self.distribution, self.draws.fit[[0]]), self.limits, starts[None], STEPS)


def variation(shares: Array) -> float:
    """Return the coefficient of variation of the mean of shares (R, m), from the means of their sets."""
    means = shares.mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(len(means)) / means.mean()) if means.any() else np.inf
