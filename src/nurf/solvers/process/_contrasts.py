"""Polynomial means, integrated out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from nurf._types import Array


@dataclass(frozen=True, eq=False)
class Contrasts:
    """An orthogonal change of coordinates of the data after which the mean acts on the first ``t`` of them only.

    With ``H = Q [R; 0]``, the other coordinates of ``Q^T y`` do not depend on the mean ``H b``. ``Q = 1 - V T V^T`` is
    a product of ``t`` reflections, so that a change of coordinates takes products with ``t`` columns.

    Parameters
    ----------
    V : array of shape (N, t)
    T : array of shape (t, t)
    R : array of shape (t, t)
    """

    V: Array
    T: Array
    R: Array

    @classmethod
    def of(cls, basis: Array) -> Contrasts:
        """Return the contrasts for a basis of the mean of shape (N, t), with full rank."""
        t = basis.shape[1]
        (reflections, scales), R = qr(basis, mode="raw")
        V = np.tril(reflections, -1).astype(np.float64)
        V[range(t), range(t)] = 1.0
        V *= scales > 0  # a reflection of scale zero is none
        inverse = np.triu(V.T @ V, 1) + np.diag(1 / np.where(scales > 0, scales, 1.0))
        return cls(V, np.asarray(np.linalg.inv(inverse)), R[:t].astype(np.float64))

    def __len__(self) -> int:
        return int(self.V.shape[1])

    def into(self, columns: Array) -> Array:
        """Return ``Q^T C`` for columns ``C`` of shape (N, m)."""
        return np.asarray(columns - self.V @ (self.T.T @ (self.V.T @ columns)))

    def back(self, columns: Array) -> Array:
        """Return ``Q C`` for columns ``C`` of shape (N, m)."""
        return np.asarray(columns - self.V @ (self.T @ (self.V.T @ columns)))

    def matrix_into(self, matrix: Array) -> Array:
        """Return ``Q^T A Q`` for a symmetric matrix ``A``, which is overwritten."""
        return _rotated(matrix, self.V, self.T)

    def matrix_back(self, matrix: Array) -> Array:
        """Return ``Q A Q^T`` for a symmetric matrix ``A``, which is overwritten."""
        return _rotated(matrix, self.V, self.T.T)

    def mean_coefficients(self, first: Array) -> Array:
        """Return the coefficients of the mean with given first coordinates (t, m)."""
        return np.asarray(solve_triangular(self.R, first))

    def first_coordinates(self, monomials: Array) -> Array:
        """Return the ``u`` with ``R^T u = h`` for monomials ``h`` of shape (m, t), of shape (t, m)."""
        return np.asarray(solve_triangular(self.R, monomials.T, trans="T"))


def _rotated(matrix: Array, V: Array, T: Array) -> Array:
    """Return ``(1 - V T^T V^T) A (1 - V T V^T) = A - V X^T - X V^T``."""
    products = matrix @ (V @ T)
    X = products - V @ (T.T @ (V.T @ products)) / 2
    matrix -= np.hstack([V, X]) @ np.hstack([X, V]).T
    return matrix
