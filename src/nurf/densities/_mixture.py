"""Mixtures over the data points: sample a point, then a normal, then an offset near the point."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from nurf._blocks import row_blocks
from nurf._types import Array, Index
from nurf.densities._angular import in_range, log_angular_density
from nurf.densities._base import PreparedDensity
from nurf.densities._profiles import Mollifier
from nurf.networks import Hyperplanes


@dataclass(frozen=True, eq=False)
class PreparedMixture(PreparedDensity):
    """A mixture over the points ``x_k``, with random normals ``a`` that depend on the point (paper, eqs. 4.5 and 4.6).

    The offsets are ``b = -a.x_k + spread t``, ``t`` from the mollifier.

    Parameters
    ----------
    points : array of shape (K, d)
        The points ``x_k``.
    masses : array of shape (K,)
        The probabilities ``p_k`` of the points, up to a constant factor.
    axes : array of shape (r, d)
        Orthonormal basis of the subspace that contains all normals.
    spread : float
        Length scale of the signed distance between a hyperplane and its point.
    mollifier : Mollifier
        The density of that distance, in units of ``spread``.
    """

    points: Array
    masses: Array
    axes: Array
    spread: float
    mollifier: Mollifier

    @abstractmethod
    def draw_directions(self, index: Index, rng: np.random.Generator) -> Array:
        """Return a random direction (of any length) at each of the points ``index``, along ``axes``: (n, r)."""

    @abstractmethod
    def covariances(self, index: Index) -> Array:
        """Return the covariances of the directions at the points ``index``, of shape (n, r, r)."""

    def sample(self, n: int, rng: np.random.Generator) -> Hyperplanes:
        """Return ``n`` independent hyperplanes."""
        cumulative = np.cumsum(self.masses)
        index = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
        directions = self.draw_directions(index, rng) @ self.axes
        shift = self.spread * self.mollifier.sample(n, rng)
        return Hyperplanes.through(self.points[index], directions, shift)

    def log_density(self, hyperplanes: Hyperplanes) -> Array:
        """Return the log-density of the mixture, a sum over all points for each hyperplane."""
        coordinates, inside = in_range(hyperplanes.normals, self.axes)
        log_masses = np.log(
            self.masses / self.masses.sum(), where=self.masses > 0, out=np.full(len(self.masses), -np.inf)
        )
        result = np.full(len(hyperplanes), -np.inf)
        possible = np.flatnonzero(self.masses > 0).astype(np.int64)
        for block in row_blocks(len(possible), len(hyperplanes) + len(self.axes) ** 2):
            index = possible[block]
            distances = hyperplanes.signed_distance(self.points[index]) / self.spread
            terms = self.mollifier.log_density(distances) - np.log(self.spread) + log_masses[index, None]
            terms += log_angular_density(self.covariances(index), coordinates)
            result = np.logaddexp(result, logsumexp(terms, axis=0))
        return np.where(inside, result, -np.inf)
