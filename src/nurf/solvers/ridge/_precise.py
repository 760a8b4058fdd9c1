"""Ridge regression by the singular values of the features, for very small alphas."""

from __future__ import annotations

import numpy as np

from nurf._blocks import BLOCK_ELEMENTS, row_blocks
from nurf._types import Array
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.networks import Features
from nurf.solvers._rows import VALUES_ONLY, Loss, rows_per_sample, sample_rows
from nurf.solvers.ridge._base import orthonormal
from nurf.solvers.ridge._primal import SpectralRidge


class PreciseRidge(SpectralRidge):
    """Ridge regression by a singular value decomposition of the features.

    The Gram matrix squares the singular values: those below 1e-8 of the largest are lost in its rounding errors, so
    that alpha has a floor near 1e-15. Smooth functions without noise can be fitted with much smaller alphas. Here the
    rows are reduced to a triangle ``Z = Q R`` block by block, and ``R`` is decomposed, which costs several times as
    much as the Gram matrix (``precise_cost``).

    Parameters
    ----------
    features, jet, loss
        See ``Ridge``.
    triangle : array, optional
        The ``weighted_triangle`` of the rows, if it is known.
    """

    def __init__(self, features: Features, jet: Jet, loss: Loss = VALUES_ONLY, triangle: Array | None = None) -> None:
        super().__init__(features, jet, loss)
        N, t = self.n_neurons, len(features.tail)
        if triangle is None:
            triangle = weighted_triangle({n: triangle_of(features, jet, n) for n in loss.all_orders}, loss)
        triangle = triangle / np.sqrt(self.total_weight)
        tail, neurons, values = triangle[:, :t], triangle[:, t : t + N], triangle[:, t + N :]
        basis, _, inverse = orthonormal(tail)
        self.tail_inverse, self.tail_rank = inverse @ inverse.T, basis.shape[1]
        self.tail_moments, self.tail_products = tail.T @ values, tail.T @ neurons
        self.elimination = inverse @ neurons
        left, sizes, right = np.linalg.svd(neurons - basis @ (basis.T @ neurons), full_matrices=False)
        self.vectors, self.eigenvalues = right.T, sizes**2
        self.feature_energy = self._energy_left(float(np.sum(neurons**2) / N))
        values = values - basis @ (basis.T @ values)
        self._targets = left.T @ values
        self.rotated = sizes[:, None] * self._targets
        self._rest = np.sum((values - left @ self._targets) ** 2, axis=0)

    def mean_square_residual(self, alphas: Array) -> Array:
        """Return the mean square of ``alpha N / (eigenvalue + alpha N)`` times the data, plus the part out of span."""
        left = (self._shifts(alphas) / self._shifted(alphas)) ** 2 @ self._targets**2
        return np.asarray(left + np.maximum(self._rest, 0.0))


def precise_cost(n_rows: int, n_neurons: int) -> float:
    """Return the approximate number of operations of ``PreciseRidge``."""
    return 2.5 * n_rows * n_neurons**2 + 25.0 * min(n_rows, n_neurons) ** 2 * n_neurons


def triangle_of(features: Features, jet: Jet, order: int) -> Array:
    """Return ``R`` with ``R^T R = [Z y]^T [Z y]`` for the rows of derivatives of one order, with weight one.

    The columns are tail, neurons, values. If there are fewer rows than columns, ``R`` consists of these rows.
    """
    loss = Loss(**{DERIVATIVE_KINDS[order]: 1.0}) if order else VALUES_ONLY
    first = 1 if order else 0  # the first row of a sample is its value
    N, R = features.n_neurons, rows_per_sample(jet, loss)
    triangle = np.empty((0, features.n_columns + int(np.prod(jet.y.shape[1:], dtype=int))))
    for block in row_blocks(len(jet), R * N, max(BLOCK_ELEMENTS, 4 * N**2)):
        design, targets = sample_rows(features, jet[block], loss)
        rows = np.concatenate([design[:, first:, N:], design[:, first:, :N], targets[:, first:]], axis=2)
        triangle = np.concatenate([triangle, rows.reshape(-1, rows.shape[2])])
        if len(triangle) > triangle.shape[1]:
            triangle = np.asarray(np.linalg.qr(triangle, mode="r"))
    return triangle


def weighted_triangle(triangles: dict[int, Array], loss: Loss) -> Array:
    """Return rows with the same Gram matrix as all rows of the loss, from the triangles of each order."""
    return np.concatenate([triangles[0], *(np.sqrt(weight) * triangles[order] for order, weight in loss.orders)])
