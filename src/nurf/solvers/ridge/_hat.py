"""Blocks of the hat matrix, and the residuals of samples that are left out of a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nurf._types import Array
from nurf.solvers.ridge._base import EPS, square_root

FEW_ROWS = 32  # of a sample, up to which all alphas are faster at once


@dataclass(frozen=True, eq=False)
class HatBlocks:
    """The blocks ``H_k = Z_k diag(f) Z_k^T + T_k S T_k^T`` of the hat matrix, for samples ``k`` and many ``f``.

    Parameters
    ----------
    rows : array of shape (n, R, m)
        The rows ``Z_k`` of the samples, along eigenvectors.
    factors : array of shape (A, m)
        The factors ``f``, one row for each alpha.
    tail : array of shape (n, R, t)
        The rows ``T_k`` of the tail.
    tail_inverse : array of shape (t, t)
        ``S``.
    """

    rows: Array
    factors: Array
    tail: Array
    tail_inverse: Array

    def residuals_without(self, residuals: Array, shares: Array) -> Array:
        """Return ``(1 - share H_k)^-1 r_k`` for all samples and alphas, of shape (n, R, A, k) as the residuals."""
        _, R, m = self.rows.shape
        if R <= FEW_ROWS:
            moved = np.moveaxis(residuals, 1, 2)
            return np.moveaxis(residuals_without(self._all_blocks(), moved, shares[:, None]), 2, 1)
        return self._by_columns(residuals, shares) if m < R else self._by_rows(residuals, shares)

    def _tail_blocks(self) -> Array:
        return np.asarray(self.tail @ self.tail_inverse @ np.swapaxes(self.tail, 1, 2))

    def _all_blocks(self) -> Array:
        """Return the blocks for all factors, of shape (n, A, R, R)."""
        n, R, _ = self.rows.shape
        hats = np.empty((n, len(self.factors), R, R))
        for i in range(R):
            for j in range(i + 1):
                hats[:, :, i, j] = hats[:, :, j, i] = (self.rows[:, i] * self.rows[:, j]) @ self.factors.T
        hats += self._tail_blocks()[:, None]
        return hats

    def _by_rows(self, residuals: Array, shares: Array) -> Array:
        """Return the residuals, from systems of the size of the rows of a sample, one alpha after the other."""
        result, tail_blocks = np.empty(residuals.shape), self._tail_blocks()
        for number, factors in enumerate(self.factors):
            scaled = self.rows * np.sqrt(factors)
            hats = scaled @ np.swapaxes(scaled, 1, 2) + tail_blocks
            result[:, :, number] = residuals_without(hats, residuals[:, :, number], shares)
        return result

    def _by_columns(self, residuals: Array, shares: Array) -> Array:
        """Return the same from systems of the size of the columns, which are fewer than the rows of a sample.

        With ``L = 1 - s T S T^T`` and ``Z f Z^T = C C^T``, the residuals are
        ``L^-1 r + s L^-1 C (1 - s C^T L^-1 C)^-1 C^T L^-1 r``. All but the inner system is the same for all alphas.
        """
        n, R, m = self.rows.shape
        both = self._without_tail(np.concatenate([self.rows, residuals.reshape(n, R, -1)], axis=2), shares)
        columns, rest = both[..., :m], both[..., m:].reshape(residuals.shape)
        turned = np.swapaxes(self.rows, 1, 2)
        grams, result = turned @ columns, np.empty(residuals.shape)
        for number, factors in enumerate(self.factors):
            scale, here = np.sqrt(factors)[:, None], rest[:, :, number]
            inner = residuals_without(grams * (scale * scale.T), scale * (turned @ here), shares)
            result[:, :, number] = here + shares[:, None, None] * (columns @ (scale * inner))
        return result

    def _without_tail(self, right: Array, shares: Array) -> Array:
        """Return ``(1 - share T_k S T_k^T)^-1`` times a matrix (n, R, c), from the smaller of two systems."""
        if self.tail.shape[2] >= self.tail.shape[1]:
            return residuals_without(self._tail_blocks(), right, shares)
        columns = self.tail @ square_root(self.tail_inverse)
        turned = np.swapaxes(columns, 1, 2)
        inner = residuals_without(turned @ columns, turned @ right, shares)
        return np.asarray(right + shares[:, None, None] * (columns @ inner))


def residuals_without(hats: Array, residuals: Array, shares: Array) -> Array:
    """Return ``(1 - share H)^-1 r`` for blocks ``H`` (..., R, R), residuals ``r`` (..., R, k) and shares (...).

    A row that the fit must interpolate has a leverage of one, up to rounding.
    """
    R = hats.shape[-1]
    left = np.eye(R) - shares[..., None, None] * hats
    if R == 1:
        return np.asarray(residuals / np.maximum(left, EPS))
    left[..., range(R), range(R)] += EPS
    try:
        return np.asarray(np.linalg.solve(left, residuals), float)
    except np.linalg.LinAlgError:  # one of them is exactly singular
        sizes, vectors = np.linalg.eigh(left)
        rotated = np.swapaxes(vectors, -1, -2) @ residuals
        return np.asarray(vectors @ (rotated / np.maximum(sizes, EPS)[..., None]))
