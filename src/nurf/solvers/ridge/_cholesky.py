"""Ridge regression by Cholesky factorisations, for few alphas."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dtrtri

from nurf._blocks import BLOCK_ELEMENTS, row_blocks
from nurf._types import Array, Index
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers._rows import VALUES_ONLY, Loss, rows_per_sample, sample_rows
from nurf.solvers.ridge._base import EPS, Ridge, with_tail
from nurf.solvers.ridge._hat import HatBlocks
from nurf.solvers.ridge._normal_equations import NormalEquations
from nurf.solvers.ridge._primal import Elimination

RESOLVED = 1e-10  # in units of the Gram matrix: rounding errors are about N EPS of it, and may make it indefinite


class CholeskyRidge(Ridge):
    """Ridge regression by a Cholesky factorisation ``A + alpha N = L L^T`` for each alpha, ``A`` as in ``PrimalRidge``.

    A factorisation takes a tenth of the time of an eigendecomposition. It fails for an alpha below the rounding errors
    of the Gram matrix.

    Parameters
    ----------
    features, jet, loss, equations
        See ``PrimalRidge``.
    """

    def __init__(
        self, features: Features, jet: Jet, loss: Loss = VALUES_ONLY, equations: NormalEquations | None = None
    ) -> None:
        super().__init__(features, jet, loss)
        equations = NormalEquations.from_data(features, jet, loss) if equations is None else equations
        self.total_weight = equations.total_weight
        self._tail = Elimination.of(equations)
        self.tail_rank, self._matrix = self._tail.rank, self._tail.matrix(equations)
        left = float(np.trace(self._matrix) / self.n_neurons)
        self._gram_energy = float(equations.gram.diagonal()[: self.n_neurons].mean() / self.total_weight)
        self._set_energy(left, self._gram_energy, equations.noise / self.total_weight)
        self._factors: dict[float, Array] = {}
        self._energy = equations.energy / self.total_weight

    def resolves(self, alpha: float) -> bool:
        """Return whether an alpha, in units of ``feature_energy``, is above the rounding errors of the Gram matrix.

        If the tail explains nearly all of the neurons, the rest of the Gram matrix is close to its rounding errors.
        """
        return alpha >= self.smallest_alpha and alpha * self.feature_energy >= RESOLVED * self._gram_energy

    def solve(self, alphas: Array) -> Array:
        """Return the outer weights and tail coefficients for every alpha, of shape (A, N + t, k)."""
        coef = np.stack([self._solved(alpha) for alpha in alphas])
        return np.concatenate([coef, self._tail.coefficients(coef)], axis=1)

    def left_out(self, alphas: Array, index: Index, shares: Array) -> Array:
        """Return the leave-one-out residuals of some samples, one alpha after the other, of shape (m, R, A, k)."""
        R, N, path = rows_per_sample(self.jet, self.loss), self.n_neurons, self.solve(alphas)
        inverses = [self._inverse_factor(alpha) / np.sqrt(self.total_weight) for alpha in alphas]
        tail_inverse, zero, one = self._tail.inverse / self.total_weight, np.zeros(N), np.ones(1)
        result = np.empty((len(index), R, len(alphas), path.shape[2]))
        for block in row_blocks(len(index), R * self.features.n_columns, 4 * BLOCK_ELEMENTS):
            design, targets = sample_rows(self.features, self.jet[index[block]], self.loss)
            tail = design[..., N:]
            rows = (design[..., :N] - tail @ self._tail.elimination).reshape(-1, N)
            for number, inverse in enumerate(inverses):
                residuals = targets - (design.reshape(len(rows), -1) @ path[number]).reshape(targets.shape)
                hats = HatBlocks((rows @ inverse.T).reshape(*design.shape[:2], N), zero, one, tail, tail_inverse)
                result[block, :, number] = hats.residuals_without(residuals[:, :, None], shares[block])[:, :, 0]
        return result

    def mean_square_residual(self, alphas: Array) -> Array:
        """Return the mean square of the data that is not explained, at least the rounding errors of the data."""
        coef = self.solve(alphas)[:, : self.n_neurons]
        explained = np.sum(coef * (self._tail.right + self._shifts(alphas)[..., None] * coef), axis=1)
        return np.asarray(np.maximum(self._energy - self._tail.energy - explained, 16 * EPS * self._energy))

    def degrees_of_freedom(self, alphas: Array) -> Array:
        """Return the trace of the hat matrix, tail included, ``rank + N - alpha N tr (A + alpha N)^-1``."""
        traces = [np.sum(self._inverse_factor(alpha) ** 2) for alpha in alphas]
        return np.asarray(self.tail_rank + self.n_neurons - self._shifts(alphas)[:, 0] * traces)

    def covariance_factor(self, alpha: float) -> Array:
        """Return a factor of the covariance of the coefficients, from the inverse of the Cholesky factor."""
        factor = self._inverse_factor(alpha).T
        return np.asarray(with_tail(factor, self._tail.elimination, self._tail.inverse) / np.sqrt(self.total_weight))

    def _factor(self, alpha: float) -> Array:
        """Return the Cholesky factor ``L`` of shape (N, N)."""
        if alpha not in self._factors:
            shifted = self._matrix.copy()
            shifted[np.diag_indices(self.n_neurons)] += alpha * self.n_neurons
            self._factors[alpha] = np.asarray(np.linalg.cholesky(shifted), float)
        return self._factors[alpha]

    def _inverse_factor(self, alpha: float) -> Array:
        """Return ``L^-1``, by LAPACK: NumPy ignores that ``L`` is triangular and takes half an eigendecomposition."""
        inverse, _ = dtrtri(self._factor(alpha).T, lower=0)
        return np.asarray(inverse.T)

    def _solved(self, alpha: float) -> Array:
        """Return the outer weights, of shape (N, k)."""
        factor = self._factor(alpha)
        half = solve_triangular(factor, self._tail.right, lower=True, check_finite=False)
        return np.asarray(solve_triangular(factor, half, lower=True, trans="T", check_finite=False))
