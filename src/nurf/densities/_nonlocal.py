"""Nonlocal sampling: the normal of each neuron combines the derivatives in a neighbourhood of a data point."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nurf._blocks import row_blocks
from nurf._types import Array, Index
from nurf.densities._angular import principal_axes
from nurf.densities._base import DerivativeDensity, PreparedDensity
from nurf.densities._mixture import PreparedMixture
from nurf.densities._neighbourhoods import (
    AT_ONCE,
    KERNELS,
    PAIRS,
    Distances,
    Kernel,
    in_threads,
    neighbourhood_totals,
    neighbourhood_weights,
)
from nurf.densities._point_density import PointDensity, check_rho, relative_volumes
from nurf.densities._profiles import Mollifier, as_mollifier
from nurf.densities._rows import scaled_rows
from nurf.jets import Jet
from nurf.networks import Domain

MAX_FACTORED = 50  # dimensions up to which covariances are factored


@dataclass(frozen=True)
class Nonlocal(DerivativeDensity):
    """A mixture over the points, with normals from a neighbourhood of each point (paper, eq. 4.6 and section 4.4).

    With weights ``w_{kk'}`` that decrease with the distance and ``C_k = sum_k' w_{kk'}^2 g_k' g_k'^T``, the point
    ``x_k`` is sampled with probability proportional to ``sqrt(tr C_k)``, the normal ``a`` from the angular central
    Gaussian with ``C_k``, and ``b = -a.x_k + delta_W t`` with a random number ``t``. Probabilities and the terms of
    ``C_k`` are multiplied by the sample weights, and divided by the density ``rho`` of the points. An unknown partial
    derivative is replaced by a random number of typical size. With uniform ``rho`` the density approaches ``Local`` for
    a small bandwidth, and its normals approach the normals of ``ActiveSubspace`` for a large one.

    Parameters
    ----------
    order : {1, 2}, default=1
        1 to use gradients, 2 to use Hessians.
    bandwidth : float, optional
        The paper's ``delta_W``. Default is twice the width of the neurons.
    kernel : {"exponential", "gaussian", "cauchy"} or callable, default="exponential"
        The squares ``w^2`` as a function of ``t = |x_k - x_k'| / delta_W``: ``exp(-t)`` as in the paper,
        ``exp(-t^2 / 2)``, ``1 / (1 + t^2)``, or a function that maps an array of numbers ``t >= 0`` to positive
        numbers.
    mollifier : {"gaussian", "logistic", "cauchy"} or Mollifier, default="gaussian"
        The density of ``(a.x_k + b) / delta_W``: the normal density as in the paper, or another one.
    rho : {"uniform", "knn"} or callable, default="uniform"
        The density of the points; see ``Representation``.
    """

    bandwidth: float | None = None
    kernel: str | Kernel = "exponential"
    mollifier: str | Mollifier = "gaussian"
    rho: PointDensity = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bandwidth is not None and not (np.isfinite(self.bandwidth) and self.bandwidth > 0):
            raise ValueError(f"`bandwidth` must be a number > 0, got {self.bandwidth!r}")
        if not (callable(self.kernel) or self.kernel in KERNELS):
            raise ValueError(f"`kernel` must be one of {', '.join(KERNELS)}, or a function, got {self.kernel!r}")
        as_mollifier(self.mollifier)
        check_rho(self.rho)

    def at_width(self, width: float) -> Nonlocal:
        """Return a copy with ``bandwidth = 2 * width`` if ``bandwidth`` is None."""
        return replace(self, bandwidth=2 * width) if self.bandwidth is None and width > 0 else self

    def _prepare(self, jet: Jet, domain: Domain) -> PreparedDensity:
        if self.bandwidth is None:
            raise ValueError("`bandwidth` must be a number > 0, got None: the width of the neurons is unknown")
        kernel = _checked(self.kernel)
        rows, volumes = scaled_rows(jet, self.order), jet.weights(1) * relative_volumes(self.rho, jet)
        _, axes = principal_axes(rows.reshape(-1, jet.n_features))
        traces = neighbourhood_totals(jet.X, volumes * np.sum(rows**2, axis=(1, 2)), self.bandwidth, kernel)
        weighted = rows @ axes.T * np.sqrt(volumes)[:, None, None]
        return PreparedNonlocal(
            jet.X, volumes * np.sqrt(traces), axes, self.bandwidth, as_mollifier(self.mollifier), weighted, kernel
        )


@dataclass(frozen=True, eq=False)
class PreparedNonlocal(PreparedMixture):
    """The density of ``Nonlocal``; ``rows`` are the weighted ``F_k``, in coordinates along ``axes``: (K, m, r)."""

    rows: Array
    kernel: Kernel

    def draw_directions(self, index: Index, rng: np.random.Generator) -> Array:
        """Return samples from ``N(0, C_k)``; ``C_k`` is factored once for each point in ``index``.

        In many dimensions factoring takes too long, and a sample is ``sum_k' w_{kk'} F_k'^T xi_k'``, ``xi ~ N(0, I)``.
        """
        if len(self.axes) > MAX_FACTORED:
            return self._draw_combinations(index, rng)
        selected, position = np.unique(index, return_inverse=True)
        noise = rng.standard_normal((len(index), self.axes.shape[1])) @ self.axes.T
        result = np.empty_like(noise)
        for block in row_blocks(len(selected), len(self.axes) ** 2):
            eigenvalues, vectors = np.linalg.eigh(self.covariances(selected[block]))
            scaled = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))[:, None, :]
            roots = scaled @ np.swapaxes(vectors, 1, 2)  # symmetric: does not depend on the signs of the eigenvectors
            here = (position >= block.start) & (position < block.stop)
            result[here] = np.einsum("nij,nj->ni", roots[position[here] - block.start], noise[here])
        return result

    def _draw_combinations(self, index: Index, rng: np.random.Generator) -> Array:
        """Return samples from ``N(0, C_k)`` without a matrix for each point."""
        rows = self.rows.reshape(-1, len(self.axes))
        result = np.empty((len(index), len(self.axes)))
        for block in row_blocks(len(index), len(rows)):
            points = self.points[index[block]]
            weights = np.sqrt(neighbourhood_weights(points, self.points, self.spread, self.kernel))
            noise = rng.standard_normal((len(points), *self.rows.shape[:2]))
            result[block] = (noise * weights[:, :, None]).reshape(len(points), -1) @ rows
        return result

    def covariances(self, index: Index) -> Array:
        """Return ``C_k = sum_k' w_{kk'}^2 F_k'^T F_k'`` at the points ``index``, of shape (n, r, r)."""
        r = len(self.axes)
        upper = np.triu_indices(r)
        sums = np.zeros((len(index), len(upper[0])))
        distances = Distances.between(self.points[index], self.points, self.spread)

        def add(block: slice) -> None:
            for rows in row_blocks(len(self.points), AT_ONCE, PAIRS):
                some = self.rows[rows]
                products = np.sum([some[:, m, upper[0]] * some[:, m, upper[1]] for m in range(some.shape[1])], axis=0)
                sums[block] += self.kernel(distances(block, rows)).astype(float) @ products

        in_threads(add, row_blocks(len(index), AT_ONCE, PAIRS))
        result = np.empty((len(index), r, r))
        result[:, upper[0], upper[1]] = result[:, upper[1], upper[0]] = sums
        return result


def _checked(kernel: str | Kernel) -> Kernel:
    """Return the kernel with the given name, or the given function after a test call."""
    if isinstance(kernel, str):
        return KERNELS[kernel]
    values = np.asarray(kernel(np.array([0.0, 1.0])))
    if values.shape != (2,) or not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(f"`kernel` must map the numbers 0 and 1 to two numbers > 0, got {values}")
    return kernel
