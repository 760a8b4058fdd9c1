"""Axis-aligned sampling: each neuron is a function of a single input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from nurf._blocks import row_blocks
from nurf._types import Array
from nurf.densities._base import PreparedDensity
from nurf.densities._local import Local
from nurf.densities._point_density import relative_volumes
from nurf.densities._profiles import Gaussian
from nurf.densities._rows import scaled_rows
from nurf.jets import Jet
from nurf.networks import Domain, Hyperplanes


@dataclass(frozen=True)
class AxisAligned(Local):
    """Normals ``a = +-e_i`` and offsets ``b = -a.x_k`` with probability proportional to ``|d_i f(x_k)|``.

    This is local sampling from one partial derivative at a time. A network of such neurons is a sum of functions of
    single inputs, and suits functions of this form. For ``order=2`` the probability is proportional to the norm of the
    i-th column of ``H_k``; for several outputs, to the norm of the derivatives of all outputs. The axes ``e_i`` are the
    axes of the inputs passed to ``prepare``. Parameters are as for ``Local``.
    """

    @property
    def additive(self) -> bool:
        """Whether networks of these neurons are sums of functions of single inputs: True."""
        return True

    def _prepare(self, jet: Jet, domain: Domain) -> PreparedDensity:
        sizes = np.sqrt(np.sum(scaled_rows(jet, self.order) ** 2, axis=1))
        masses = (jet.weights(1) * relative_volumes(self.rho, jet))[:, None] * sizes
        return PreparedAxisAligned(jet.X, masses, self._spread)


@dataclass(frozen=True, eq=False)
class PreparedAxisAligned(PreparedDensity):
    """The density of ``AxisAligned``: ``masses`` (K, d) are the probabilities of points and axes, up to a factor."""

    points: Array
    masses: Array
    spread: float

    def sample(self, n: int, rng: np.random.Generator) -> Hyperplanes:
        """Return ``n`` independent hyperplanes."""
        cumulative = np.cumsum(self.masses)
        drawn = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
        index, axis = np.unravel_index(drawn, self.masses.shape)
        directions = np.zeros((n, self.points.shape[1]))
        directions[np.arange(n), axis] = rng.choice([-1.0, 1.0], n)
        return Hyperplanes.through(self.points[index], directions, self.spread * rng.standard_normal(n))

    def log_density(self, hyperplanes: Hyperplanes) -> Array:
        """Return the log-density with respect to ``db`` for each of the ``2 d`` normals; it is zero for others.

        ``p(+-e_i, b) = sum_k p_ki phi((b +- x_ki) / s) / (2 s)`` with the normal density ``phi`` and ``s = jitter``.
        """
        if self.spread == 0:
            raise ValueError("axis-aligned sampling without jitter has no density: offsets are discrete")
        axes = np.abs(hyperplanes.normals).argmax(axis=1)
        aligned = np.abs(np.abs(hyperplanes.normals).max(axis=1) - 1) < 1e-12
        result = np.full(len(hyperplanes), -np.inf)
        with np.errstate(divide="ignore"):
            log_masses = np.log(self.masses / self.masses.sum())
        for block in row_blocks(len(self.points), 2 * len(hyperplanes)):
            distances = hyperplanes.signed_distance(self.points[block]) / self.spread
            terms = Gaussian().log_density(distances) + log_masses[block][:, axes]
            result = np.logaddexp(result, logsumexp(terms, axis=0))
        return np.where(aligned, result - np.log(2 * self.spread), -np.inf)
