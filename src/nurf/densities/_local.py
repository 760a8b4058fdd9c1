"""Local sampling: every neuron copies the derivative at one data point."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nurf._types import Array, Index
from nurf.densities._angular import principal_axes
from nurf.densities._base import DerivativeDensity, PreparedDensity
from nurf.densities._mixture import PreparedMixture
from nurf.jets import Jet
from nurf.networks import Domain, Hyperplanes


@dataclass(frozen=True)
class Local(DerivativeDensity):
    """Points in proportion to ``|g_k|``, normals ``a = +-g_k / |g_k|``, offsets ``b = -a.x_k`` (paper, eq. 4.5).

    For ``order=2`` points in proportion to ``|H_k|_F``, and ``a`` in proportion to ``H_k xi``, ``xi ~ N(0, I)``; the
    same with the rows of all gradients where there are several outputs. Points with zero derivative are never drawn.

    Parameters
    ----------
    order : {1, 2}
        Gradients or Hessians.
    jitter : float or None, default 0
        Standard deviation of a Gaussian shift of ``b``. Zero is the paper's discrete law; None is twice the width of
        the neurons, as in the authors' figures.
    """

    jitter: float | None = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.jitter is not None and not (np.isfinite(self.jitter) and self.jitter >= 0):
            raise ValueError(f"`jitter` must be None or a number >= 0, got {self.jitter!r}")

    def at_width(self, width: float) -> Local:
        """Take twice the width for the jitter, unless there is one."""
        return replace(self, jitter=2 * width) if self.jitter is None else self

    def _prepare(self, jet: Jet, domain: Domain) -> PreparedDensity:
        if self.jitter is None:
            raise ValueError("`jitter` must be a number >= 0: there is no width to take it from")
        directions = self._directions(jet)
        _, axes = principal_axes(directions.reshape(-1, jet.n_features))
        masses = jet.weights(1) * np.sqrt(np.sum(directions**2, axis=(1, 2)))
        return PreparedLocal(jet.X, masses, axes, self.jitter, directions @ axes.T)


@dataclass(frozen=True, eq=False)
class PreparedLocal(PreparedMixture):
    """The law of ``Local``: the rows ``F_k`` at each point, of shape (K, m, r); ``a`` is ``F_k^T xi`` normalised."""

    rows: Array

    def draw_directions(self, index: Index, rng: np.random.Generator) -> Array:
        """Draw ``F_k^T xi``: for a single gradient, plus or minus that gradient."""
        rows = self.rows[index]
        return np.asarray(np.einsum("nm,nmr->nr", rng.standard_normal(rows.shape[:2]), rows))

    def covariances(self, index: Index) -> Array:
        """Return ``F_k^T F_k``."""
        rows = self.rows[index]
        return np.asarray(np.swapaxes(rows, 1, 2) @ rows)

    def log_density(self, hyperplanes: Hyperplanes) -> Array:
        """Return the log-density where there is one: directions that fill the subspace at each point, and a jitter."""
        if self.offset_std == 0:
            raise ValueError("local sampling without jitter has no density: every offset is tied to its normal")
        ranks = np.linalg.matrix_rank(self.rows[self.masses > 0])
        if np.any(ranks < len(self.axes)):
            raise ValueError(
                f"this local law has no density: its normals fill {len(self.axes)} dimensions, but those at one point "
                f"only {ranks.min()}"
            )
        return super().log_density(hyperplanes)
