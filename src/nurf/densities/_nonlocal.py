"""Nonlocal sampling: the normal of each neuron combines the derivatives in a neighbourhood of a data point."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from nurf._blocks import row_blocks
from nurf._types import Array, Index
from nurf.densities._angular import principal_axes
from nurf.densities._base import DerivativeDensity, PreparedDensity
from nurf.densities._mixture import PreparedMixture
from nurf.jets import Jet
from nurf.networks import Domain

MAX_FACTORED = 50  # dimensions up to which covariances are factored


@dataclass(frozen=True)
class Nonlocal(DerivativeDensity):
    """The paper's mixture with exponential neighbourhood weights (eq. 4.6; for Hessians, section 4.4).

    With ``w_{kk'} = exp(-|x_k - x_k'| / (2 delta_W))`` and ``C_k = sum_k' w_{kk'}^2 g_k' g_k'^T``, the point ``x_k`` is
    sampled with probability proportional to ``sqrt(tr C_k)``, the normal ``a`` from the angular central Gaussian with
    ``C_k``, and ``b = -a.x_k + delta_W N(0, 1)``. Probabilities and the terms of ``C_k`` are multiplied by the sample
    weights. For a small bandwidth the density approaches ``Local``; for a large one, its normals approach those of
    ``ActiveSubspace``.

    Parameters
    ----------
    order : {1, 2}, default=1
        1 to use gradients, 2 to use Hessians.
    bandwidth : float, optional
        The paper's ``delta_W``. Default is twice the width of the neurons.
    """

    bandwidth: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bandwidth is not None and not (np.isfinite(self.bandwidth) and self.bandwidth > 0):
            raise ValueError(f"`bandwidth` must be a number > 0, got {self.bandwidth!r}")

    def at_width(self, width: float) -> Nonlocal:
        """Return a copy with ``bandwidth = 2 * width`` if ``bandwidth`` is None."""
        return replace(self, bandwidth=2 * width) if self.bandwidth is None and width > 0 else self

    def _prepare(self, jet: Jet, domain: Domain) -> PreparedDensity:
        if self.bandwidth is None:
            raise ValueError("`bandwidth` must be a number > 0, got None: the width of the neurons is unknown")
        rows = self._scaled_rows(jet)
        _, axes = principal_axes(rows.reshape(-1, jet.n_features))
        energies = jet.weights(1) * np.sum(rows**2, axis=(1, 2))
        traces = neighbourhood_totals(jet.X, energies, self.bandwidth)
        weighted = rows @ axes.T * np.sqrt(jet.weights(1))[:, None, None]
        return PreparedNonlocal(jet.X, jet.weights(1) * np.sqrt(traces), axes, self.bandwidth, weighted)


@dataclass(frozen=True, eq=False)
class PreparedNonlocal(PreparedMixture):
    """The density of ``Nonlocal``; ``rows`` are the weighted ``F_k``, in coordinates along ``axes``: (K, m, r)."""

    rows: Array

    def draw_directions(self, index: Index, rng: np.random.Generator) -> Array:
        """Return samples from ``N(0, C_k)``; ``C_k`` is factored once for each point in ``index``.

        In many dimensions that takes too long; there a sample is ``sum_k' w_{kk'} F_k'^T xi_k'``, ``xi ~ N(0, I)``.
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
        rows = self.rows.reshape(-1, len(self.axes))
        result = np.empty((len(index), len(self.axes)))
        for block in row_blocks(len(index), len(rows)):
            points = self.points[index[block]]
            weights = np.sqrt(neighbourhood_weights(points, self.points, self.offset_std))
            noise = rng.standard_normal((len(points), *self.rows.shape[:2]))
            result[block] = (noise * weights[:, :, None]).reshape(len(points), -1) @ rows
        return result

    def covariances(self, index: Index) -> Array:
        """Return ``C_k = sum_k' w_{kk'}^2 F_k'^T F_k'``."""
        r = len(self.axes)
        upper = np.triu_indices(r)
        sums = np.zeros((len(index), len(upper[0])))
        for rows in row_blocks(len(self.points), max(len(index), len(upper[0]))):
            products = np.einsum("kmi,kmj->kij", self.rows[rows], self.rows[rows])[:, upper[0], upper[1]]
            sums += neighbourhood_weights(self.points[index], self.points[rows], self.offset_std) @ products
        result = np.empty((len(index), r, r))
        result[:, upper[0], upper[1]] = result[:, upper[1], upper[0]] = sums
        return result


def neighbourhood_weights(X: Array, Y: Array, bandwidth: float) -> Array:
    """Return ``w^2 = exp(-|x - y| / bandwidth)``, of shape (n, m)."""
    return np.asarray(np.exp(cdist(X, Y) / -bandwidth))


def neighbourhood_totals(X: Array, masses: Array, bandwidth: float) -> Array:
    """Return ``sum_k' exp(-|x_k - x_k'| / bandwidth) m_k'`` for all points, of shape (n,).

    For speed the exponential is computed in single precision (relative error below 1e-5), and pairs of blocks are
    processed by several threads. The result does not depend on the number of threads.
    """
    unit = masses.max()
    scaled = (masses / unit).astype(np.float32)
    blocks = list(row_blocks(len(X), 512, elements=512 * 512))

    def totals_with_later_blocks(number: int) -> Array:
        rows, totals = blocks[number], np.zeros(len(X))
        for columns in blocks[number:]:
            weights = (cdist(X[rows], X[columns]) / -bandwidth).astype(np.float32)
            np.exp(weights, out=weights)
            totals[rows] += weights @ scaled[columns]
            if columns is not rows:
                totals[columns] += scaled[rows] @ weights
        return totals

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return np.asarray(sum(pool.map(totals_with_later_blocks, range(len(blocks)))) * unit)
