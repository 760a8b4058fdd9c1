"""Design points: the points nearest to the centre of standard normal variables at which limits are exceeded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._types import Array, Mask
from nurf.decisions._inputs import Inputs
from nurf.decisions._limits import Limits

SHORTER = 0.5 ** np.arange(5)  # relative lengths of the steps to try
STILL = 1e-6  # a search ends if it moves by less
REACHED = 0.01  # distance from a limit, in standard deviations, at which it counts as reached
APART = 0.5  # smallest distance between different design points
FARTHER = 3.0  # additional distance beyond which design points carry less than 1% of the probability
MAX_POINTS = 10  # largest number of design points
FARTHEST = 12.0  # largest distance of the search from the centre: 1e-33 of the probability is beyond
SWEEPS = 50  # sweeps of Hildreth's algorithm over several limits


def design_points(functions: Functions, limits: Limits, starts: Array, n_steps: int) -> Array:
    """Return different design points of all limits, of shape (p, d), the nearest to the centre first."""
    parts = [search(functions, group, starts, n_steps) for group in limits.groups]
    return _different(np.concatenate([points[reached] for points, reached in parts]))


@dataclass(frozen=True, eq=False)
class Functions:
    """Draws as functions of standard normal variables, evaluated at different points.

    Parameters
    ----------
    distribution : Inputs
    draws : Draws
    """

    distribution: Inputs
    draws: Any

    def values(self, Z: Array) -> Array:
        """Return the values of all draws at their points (n, m, d), of shape (n, m[, k])."""
        return np.asarray(self.draws.value(self.distribution.from_normal(Z)))

    def gradients(self, Z: Array) -> Array:
        """Return the gradients with respect to the normal variables at points (n, m, d), of shape (n, m[, k], d)."""
        X = self.distribution.from_normal(Z)
        slopes = self.distribution.slopes(Z.reshape(-1, Z.shape[2]), X.reshape(-1, Z.shape[2]))
        found = self.draws.gradient(X)
        return np.asarray(np.einsum("nm...i,nmij->nm...j", found, slopes.reshape(*Z.shape, -1)))


def search(functions: Functions, limits: Limits, Z: Array, n_steps: int) -> tuple[Array, Mask]:
    """Return points near the centre at which all limits are exceeded, from starts (n, m, d), and whether each is found.

    Each step goes towards the nearest point at which the linearised limits are exceeded. Its length has the smallest
    ``|z|^2 / 2`` plus the margins times a sufficiently large factor.
    """
    for _ in range(n_steps):
        margins, slopes = limits.margins(functions.values(Z)), limits.slopes(functions.gradients(Z))
        target = _nearest(margins, slopes, Z)
        target *= FARTHEST / np.maximum(np.linalg.norm(target, axis=-1, keepdims=True), FARTHEST)
        sizes = np.linalg.norm(Z, axis=-1) + np.linalg.norm(target, axis=-1) + 1
        lengths = np.linalg.norm(slopes, axis=-1)
        factors = np.divide(2 * sizes[..., None], lengths, out=np.zeros_like(lengths), where=lengths > 0)
        merits, tried = [], [Z + share * (target - Z) for share in SHORTER]
        for each in tried:
            excess = factors * np.maximum(limits.margins(functions.values(each)), 0.0)
            merits.append(np.sum(each**2, axis=-1) / 2 + np.sum(excess, axis=-1))
        best = np.argmin(merits, axis=0)[None, ..., None]
        before, Z = Z, np.take_along_axis(np.array(tried), best, axis=0)[0]
        if np.abs(Z - before).max() < STILL:
            break
    margins, slopes = limits.margins(functions.values(Z)), limits.slopes(functions.gradients(Z))
    return Z, np.all(margins <= REACHED * np.linalg.norm(slopes, axis=-1), axis=-1)


def _nearest(margins: Array, slopes: Array, Z: Array) -> Array:
    """Return the nearest points to the centre with ``margins + slopes.(z - Z) <= 0``, of shape (n, m, d).

    Hildreth's algorithm: the multiplier of each limit in turn.
    """
    squares = np.sum(slopes**2, axis=-1)
    bounds = np.einsum("nmld,nmd->nml", slopes, Z) - margins
    multipliers, z = np.zeros_like(margins), np.zeros_like(Z)
    for _ in range(SWEEPS if margins.shape[-1] > 1 else 1):
        for i in range(margins.shape[-1]):
            beyond = np.sum(slopes[..., i, :] * z, axis=-1) - bounds[..., i]
            change = np.divide(beyond, squares[..., i], out=np.zeros_like(beyond), where=squares[..., i] > 0)
            change = np.maximum(change, -multipliers[..., i])
            multipliers[..., i] += change
            z -= change[..., None] * slopes[..., i, :]
    return z


def _different(points: Array) -> Array:
    """Return different points (p, d), the nearest to the centre first, without points that are much farther away."""
    kept: list[Array] = []
    for point in points[np.argsort(np.linalg.norm(points, axis=1))]:
        near = not kept or np.linalg.norm(point) <= np.linalg.norm(kept[0]) + FARTHER
        if near and all(np.linalg.norm(point - other) > APART for other in kept):
            kept.append(point)
    return np.array(kept[:MAX_POINTS]).reshape(-1, points.shape[1])
