"""Local sampling: the normal of each neuron is the derivative at one data point."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nurf._types import Array, Index
from nurf.densities._angular import principal_axes
from nurf.densities._base import DerivativeDensity, PreparedDensity
from nurf.densities._mixture import PreparedMixture
from nurf.densities._point_density import PointDensity, check_rho, relative_volumes
from nurf.densities._profiles import Gaussian
from nurf.densities._rows import scaled_rows
from nurf.jets import Jet
from nurf.networks import Domain, Hyperplanes


@dataclass(frozen=True)
class Local(DerivativeDensity):
    """Normals ``a = +-g_k / |g_k|`` and offsets ``b = -a.x_k`` with probability proportional to ``|g_k|`` (eq. 4.5).

    For ``order=2`` the probability is proportional to ``|H_k|_F``, and ``a`` is ``H_k xi``, normalised, with
    ``xi ~ N(0, I)``. For several outputs ``H_k`` is replaced by the matrix whose columns are the gradients of all
    outputs, or all columns of their Hessians. Probabilities are multiplied by the sample weights, and divided by the
    density ``rho`` of the points. An unknown partial derivative is replaced by a random number of typical size.

    Parameters
    ----------
    order : {1, 2}, default=1
        1 to use gradients, 2 to use Hessians.
    jitter : float or None, default=0
        Standard deviation of Gaussian noise that is added to ``b``. Zero gives the paper's discrete distribution. None
        means twice the width of the neurons, as in the authors' experiments.
    rho : {"uniform", "knn"} or callable, default="uniform"
        The density of the points; see ``Representation``. "uniform" gives more neurons where samples are dense.
    """

    jitter: float | None = 0.0
    rho: PointDensity = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.jitter is not None and not (np.isfinite(self.jitter) and self.jitter >= 0):
            raise ValueError(f"`jitter` must be None or a number >= 0, got {self.jitter!r}")
        check_rho(self.rho)

    def at_width(self, width: float) -> Local:
        """Return a copy with ``jitter = 2 * width`` if ``jitter`` is None."""
        return replace(self, jitter=2 * width) if self.jitter is None else self

    @property
    def _spread(self) -> float:
        if self.jitter is None:
            raise ValueError("`jitter` must be a number >= 0, got None: the width of the neurons is unknown")
        return self.jitter

    def _prepare(self, jet: Jet, domain: Domain) -> PreparedDensity:
        rows = scaled_rows(jet, self.order)
        _, axes = principal_axes(rows.reshape(-1, jet.n_features))
        masses = jet.weights(1) * relative_volumes(self.rho, jet) * np.sqrt(np.sum(rows**2, axis=(1, 2)))
        return PreparedLocal(jet.X, masses, axes, self._spread, Gaussian(), rows @ axes.T)


@dataclass(frozen=True, eq=False)
class PreparedLocal(PreparedMixture):
    """The density of ``Local`` with normals ``F_k^T xi``, normalised; ``rows`` are the ``F_k``, of shape (K, m, r)."""

    rows: Array

    def draw_directions(self, index: Index, rng: np.random.Generator) -> Array:
        """Return ``F_k^T xi``, ``xi ~ N(0, I)``: for a single gradient, a multiple of that gradient."""
        rows = self.rows[index]
        return np.asarray(np.einsum("nm,nmr->nr", rng.standard_normal(rows.shape[:2]), rows))

    def covariances(self, index: Index) -> Array:
        """Return the covariances ``F_k^T F_k`` of the directions at the points ``index``, of shape (n, r, r)."""
        rows = self.rows[index]
        return np.asarray(np.swapaxes(rows, 1, 2) @ rows)

    def log_density(self, hyperplanes: Hyperplanes) -> Array:
        """Return the log-density; raise a ``ValueError`` if there is none (no jitter, or rank-deficient ``F_k``)."""
        if self.spread == 0:
            raise ValueError("local sampling without jitter has no density: the offset is a function of the normal")
        ranks = np.linalg.matrix_rank(self.rows[self.masses > 0])
        if np.any(ranks < len(self.axes)):
            raise ValueError(
                f"these local samples have no density: all normals span {len(self.axes)} dimensions, but the normals "
                f"at one point only {ranks.min()}"
            )
        return super().log_density(hyperplanes)
