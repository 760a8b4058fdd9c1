"""Blocks of the hat matrix, and leave-one-out residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nurf._types import Array
from nurf.solvers.ridge._base import EPS, square_root

FEW_ROWS = 32  # rows of a sample up to which it is faster to treat all alphas at once
EIGENVECTORS = 4.0  # operations of an eigendecomposition over the third power of the size of the matrix


@dataclass(frozen=True, eq=False)
class HatBlocks:
    """The blocks ``H_k = Z_k diag(f) Z_k^T + T_k S T_k^T`` of the hat matrix, for samples ``k`` and several ``f``.

    Parameters
    ----------
    rows : array of shape (n, R, m)
        The rows ``Z_k`` of the samples, along eigenvectors.
    eigenvalues : array of shape (m,)
        The eigenvalues, times the total weight: ``lambda``.
    shifts : array of shape (A,)
        One for each alpha: ``f = 1 / (lambda + shift)``.
    tail : array of shape (n, R, t)
        The rows ``T_k`` of the tail.
    tail_inverse : array of shape (t, t)
        ``S``.
    """

    rows: Array
    eigenvalues: Array
    shifts: Array
    tail: Array
    tail_inverse: Array

    def residuals_without(self, residuals: Array, shares: Array) -> Array:
        """Return ``(1 - share H_k)^-1 r_k`` for residuals ``r`` of all samples and alphas, of shape (n, R, A, k)."""
        (_, R, m), A = self.rows.shape, len(self.shifts)
        if R <= FEW_ROWS:
            return self._at_once(residuals, shares)
        by_rows, by_columns = A * R**2 * (m + R * 2 / 3), m**2 * (EIGENVECTORS * m + 2 * R)
        return self._by_columns(residuals, shares) if by_columns < by_rows else self._by_rows(residuals, shares)

    @property
    def _factors(self) -> Array:
        return np.asarray(1 / (self.eigenvalues + self.shifts[:, None]))

    def _tail_blocks(self) -> Array:
        return np.asarray(self.tail @ self.tail_inverse @ np.swapaxes(self.tail, 1, 2))

    def _at_once(self, residuals: Array, shares: Array) -> Array:
        """Return the leave-one-out residuals from the blocks for all factors, an array of shape (n, A, R, R)."""
        (n, R, _), factors = self.rows.shape, self._factors
        hats = np.empty((n, len(factors), R, R))
        for i in range(R):
            for j in range(i + 1):
                hats[:, :, i, j] = hats[:, :, j, i] = (self.rows[:, i] * self.rows[:, j]) @ factors.T
        hats += self._tail_blocks()[:, None]
        return residuals_without(hats, residuals.swapaxes(1, 2), shares[:, None]).swapaxes(1, 2)

    def _by_rows(self, residuals: Array, shares: Array) -> Array:
        """Return the leave-one-out residuals from systems of size ``R``, one sample after the other."""
        result, roots = np.empty(residuals.shape), np.sqrt(self._factors)
        _, R, m = self.rows.shape
        scaled, hats = np.empty((R, m)), np.empty((len(roots), R, R))
        for sample, tail_block in enumerate(self._tail_blocks()):
            for hat, root in zip(hats, roots, strict=True):
                np.multiply(self.rows[sample], root, out=scaled)  # stays in the cache
                np.add(scaled @ scaled.T, tail_block, out=hat)
            found = residuals_without(hats, np.moveaxis(residuals[sample], 0, 1), np.full(len(hats), shares[sample]))
            result[sample] = np.moveaxis(found, 1, 0)
        return result

    def _by_columns(self, residuals: Array, shares: Array) -> Array:
        """Return the leave-one-out residuals from the eigenvectors of a matrix of size ``m``, for all alphas at once.

        With ``L = 1 - s T S T^T``, the residuals are ``L^-1 r + s L^-1 Z (lambda + shift - s Z^T L^-1 Z)^-1 Z^T L^-1
        r``: the solution of the normal equations without the sample.
        """
        (n, R, m), A = self.rows.shape, len(self.shifts)
        both = self._without_tail(np.concatenate([self.rows, residuals.reshape(n, R, -1)], axis=2), shares)
        columns, rest = both[..., :m], both[..., m:]
        turned, share = np.swapaxes(self.rows, 1, 2), shares[:, None, None]
        sizes, vectors = np.linalg.eigh(np.diag(self.eigenvalues) - share * (turned @ columns))
        shifted = np.maximum(sizes, 0.0)[:, :, None] + self.shifts
        inner = (np.swapaxes(vectors, 1, 2) @ (turned @ rest)).reshape(n, m, A, -1) / shifted[..., None]
        return np.asarray(rest + share * (columns @ (vectors @ inner.reshape(n, m, -1)))).reshape(residuals.shape)

    def _without_tail(self, right: Array, shares: Array) -> Array:
        """Return ``(1 - share T_k S T_k^T)^-1`` times ``right`` (n, R, c), from the smaller of two linear systems."""
        if self.tail.shape[2] >= self.tail.shape[1]:
            return residuals_without(self._tail_blocks(), right, shares)
        columns = self.tail @ square_root(self.tail_inverse)
        turned = np.swapaxes(columns, 1, 2)
        inner = residuals_without(turned @ columns, turned @ right, shares)
        return np.asarray(right + shares[:, None, None] * (columns @ inner))


def residuals_without(hats: Array, residuals: Array, shares: Array) -> Array:
    """Return ``(1 - share H)^-1 r`` for blocks ``H`` (..., R, R), residuals ``r`` (..., R, k) and shares (...).

    A row that the fit interpolates has leverage one, up to rounding errors.
    """
    R = hats.shape[-1]
    left = np.eye(R) - shares[..., None, None] * hats
    if R == 1:
        return np.asarray(residuals / np.maximum(left, EPS))
    left[..., range(R), range(R)] += EPS
    try:
        return np.asarray(np.linalg.solve(left, residuals), float)
    except np.linalg.LinAlgError:  # a block is exactly singular
        sizes, vectors = np.linalg.eigh(left)
        rotated = np.swapaxes(vectors, -1, -2) @ residuals
        return np.asarray(vectors @ (rotated / np.maximum(sizes, EPS)[..., None]))
