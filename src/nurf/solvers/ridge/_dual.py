"""Ridge regression by the eigenvectors of the kernel matrix of the rows."""

from __future__ import annotations

import numpy as np

from nurf._types import Array, Index
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers._rows import VALUES_ONLY, Loss, sample_rows
from nurf.solvers.ridge._base import EPS, Ridge, inverse_factor, orthonormal, stacked, unstacked, with_tail
from nurf.solvers.ridge._hat import HatBlocks


class DualRidge(Ridge):
    """Ridge regression by an eigendecomposition of ``Z Z^T`` (n x n), for more neurons than rows.

    The tail is eliminated by working in the orthogonal complement of its columns. A projection of the rows would
    instead leave a spurious eigenvalue for each column, of the size of rounding errors, which matters if ``alpha N`` is
    as small.
    """

    def __init__(self, features: Features, jet: Jet, loss: Loss = VALUES_ONLY) -> None:
        super().__init__(features, jet, loss)
        N = self.n_neurons
        rows, values = sample_rows(features, jet, loss)
        self._shape = rows.shape[:2]
        design = rows.reshape(-1, rows.shape[2]) / np.sqrt(self.total_weight)
        targets = values.reshape(-1, values.shape[2]) / np.sqrt(self.total_weight)
        self._neurons, self._targets = design[:, :N], targets
        self._tail_basis, complement, self._tail_solve = orthonormal(design[:, N:], complete=True)
        self.tail_rank = self._tail_basis.shape[1]
        reduced = complement.T @ self._neurons
        eigenvalues, vectors = np.linalg.eigh(reduced @ reduced.T)
        self.eigenvalues, self._vectors = np.maximum(eigenvalues, 0.0), complement @ vectors
        self.feature_energy = self._energy_left(float(np.sum(self._neurons**2) / N))
        self._projections = self._vectors.T @ targets

    def solve(self, alphas: Array) -> Array:
        """Return the outer weights and tail coefficients for every alpha, of shape (A, N + t, k)."""
        path = stacked(self._projections / self._shifted(alphas)[..., None])
        coef = unstacked(self._neurons.T @ (self._vectors @ path), len(alphas))
        tail = self._tail_solve @ (self._targets - self._neurons @ coef)
        return np.concatenate([coef, tail], axis=1)

    def mean_square_residual(self, alphas: Array) -> Array:
        """Return the mean square of ``alpha N / (eigenvalue + alpha N)`` times the data along the eigenvectors."""
        return np.asarray((self._shifts(alphas) / self._shifted(alphas)) ** 2 @ self._projections**2)

    def left_out(self, alphas: Array, index: Index, shares: Array) -> Array:
        """Return the leave-one-out residuals of some samples, from the eigenvectors alone, of shape (m, R, A, k)."""
        left = stacked((self._shifts(alphas) / self._shifted(alphas))[..., None] * self._projections)
        vectors = self._vectors.reshape(*self._shape, -1)[index]
        tail = self._tail_basis.reshape(*self._shape, -1)[index]
        residuals = (vectors @ left).reshape(*vectors.shape[:2], len(alphas), -1) * np.sqrt(self.total_weight)
        rows, shifts = vectors * np.sqrt(self.eigenvalues), self._shifts(alphas)[:, 0]
        hats = HatBlocks(rows, self.eigenvalues, shifts, tail, np.eye(self.tail_rank))
        return hats.residuals_without(residuals, shares)

    def covariance_factor(self, alpha: float) -> Array:
        """Return a factor of the covariance: from eigenvectors in the span of the rows, from alpha alone beyond it."""
        kept = self.eigenvalues > EPS * self.eigenvalues.max(initial=0.0) * self.n_neurons
        along = self._neurons.T @ (self._vectors[:, kept] / np.sqrt(self.eigenvalues[kept]))
        factor = inverse_factor(along, self.eigenvalues[kept], alpha * self.n_neurons)
        inverse = self._tail_solve @ self._tail_solve.T
        return np.asarray(with_tail(factor, self._tail_solve @ self._neurons, inverse) / np.sqrt(self.total_weight))
