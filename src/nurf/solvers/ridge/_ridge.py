"""Ridge regression: factor once, solve for every ``alpha``.

The outer weights minimise (paper, eq. 1.6)

    1 / (2 W) sum_k w_k |y_k - sum_n c_n phi_n(x_k) - p(x_k)|^2 + alpha N / 2 sum_n c_n^2,    W = sum_k w_k,

so that ``(Phi^T Phi / K + alpha N) c = Phi^T y / K`` for unit weights. Derivatives that count add rows to the sum, with
the weights of ``Loss``; W stays the weight of the values. The tail ``p`` is not penalised: it is eliminated
first, and comes back at the end.

All heavy products and factorisations are NumPy's: SciPy brings a second BLAS, whose threads would fight with those of
the first for the cores (measured: up to three times the time on two cores).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from nurf._blocks import BLOCK_ELEMENTS, row_blocks
from nurf._types import Array, Index
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers._rows import VALUES_ONLY, Loss, rows_per_sample, sample_rows
from nurf.solvers.ridge._normal_equations import NormalEquations

EPS = float(np.finfo(float).eps)


class Ridge(ABC):
    """A factorised ridge problem.

    Attributes
    ----------
    eigenvalues : array of shape (m,)
        Those of ``Phi^T W Phi / W``, or of ``Phi Phi^T``, after elimination of the tail.
    feature_energy : float
        Mean over the neurons of the mean square of a feature, tail eliminated: the natural unit of ``alpha``. Zero
        where the tail explains all features.
    n_neurons, tail_rank : int
    total_weight : float
        Of the values.
    loss : Loss
        How much derivatives count.
    """

    eigenvalues: Array
    feature_energy: float
    n_neurons: int
    tail_rank: int
    total_weight: float
    loss: Loss

    @abstractmethod
    def solve(self, alphas: Array) -> Array:
        """Return the outer weights and tail coefficients for every alpha, of shape (A, N + t, k)."""

    @abstractmethod
    def left_out(self, features: Features, jet: Jet, alphas: Array, index: Index, shares: Array) -> Array:
        """Return the residuals of samples that leave the fit, each with all its rows, for every alpha.

        With the rows ``Z_k`` of sample ``k`` and the block ``H_k = Z_k M^-1 Z_k^T`` of the map from data to
        predictions, they are ``(1 - H_k)^-1 r_k``, exactly.

        Parameters
        ----------
        features, jet
            Those of the fit.
        alphas : array of shape (A,)
        index : array of shape (m,)
            The samples.
        shares : array of shape (m,)
            Which share of its weight leaves with each.

        Returns
        -------
        array of shape (m, R, A, k)
            First the residual of the value, then those of the derivatives that count, times the square roots of their
            weights.
        """

    @abstractmethod
    def mean_square_residual(self, alphas: Array) -> Array:
        """Return the weighted sum of all squared residuals over the weight of the values, of shape (A, k)."""

    @abstractmethod
    def root(self, alpha: float) -> Array:
        """Return a root ``B`` of the inverse of the normal equations: ``B B^T = (Z^T W Z + penalty)^-1``, (N + t, m).

        In the Bayesian reading, with noise of variance one, it is the covariance of the weights and coefficients.
        """

    def degrees_of_freedom(self, alphas: Array) -> Array:
        """Return the trace of the map from data to predictions, tail included, of shape (A,)."""
        return np.asarray(self.tail_rank + np.sum(self.eigenvalues / self._shifted(alphas), axis=1))

    def _penalties(self, alphas: Array) -> Array:
        """Return ``alpha N``, of shape (A, 1)."""
        return np.asarray(alphas, float)[:, None] * self.n_neurons

    def _shifted(self, alphas: Array) -> Array:
        """Return ``eigenvalues + alpha N``, of shape (A, m)."""
        return np.asarray(self.eigenvalues + self._penalties(alphas))

    def _energy_left(self, energy: float) -> float:
        """Return the energy of a feature with the tail eliminated; rounding is all that is left of nothing."""
        left = float(self.eigenvalues.sum() / self.n_neurons)
        return left if left > 1000 * EPS * energy else 0.0


class PrimalRidge(Ridge):
    """Ridge regression by the eigenvectors of the Gram matrix of the features (N x N)."""

    def __init__(self, equations: NormalEquations, loss: Loss = VALUES_ONLY) -> None:
        self.loss = loss
        N, W = equations.n_neurons, equations.total_weight
        gram, moments = equations.gram / W, equations.moments / W
        self.n_neurons, self.total_weight = N, W
        self._tail_inverse, self.tail_rank = _pseudo_inverse(gram[N:, N:])
        self._tail_moments, self._cross = moments[N:], gram[N:, :N]
        self._elimination = self._tail_inverse @ self._cross
        reduced = gram[:N, :N] - self._cross.T @ self._elimination
        eigenvalues, self._vectors = np.linalg.eigh(reduced)
        self.eigenvalues = np.maximum(eigenvalues, 0.0)
        self.feature_energy = self._energy_left(float(gram.diagonal()[:N].mean()))
        self._rotated = self._vectors.T @ (moments[:N] - self._elimination.T @ self._tail_moments)
        self._energy = equations.energy / W
        self._tail_energy = np.sum(self._tail_moments * (self._tail_inverse @ self._tail_moments), axis=0)

    def solve(self, alphas: Array) -> Array:
        """Return the outer weights and tail coefficients for every alpha, of shape (A, N + t, k)."""
        coef = _unstacked(self._vectors @ self._path(alphas), len(alphas))
        tail = self._tail_inverse @ (self._tail_moments - self._cross @ coef)
        return np.concatenate([coef, tail], axis=1)

    def mean_square_residual(self, alphas: Array) -> Array:
        """Return the mean square, from that of the data less what is explained: not below the rounding of the data."""
        explained = (2 - self.eigenvalues / self._shifted(alphas)) / self._shifted(alphas) @ self._rotated**2
        return np.asarray(np.maximum(self._energy - self._tail_energy - explained, 16 * EPS * self._energy))

    def left_out(self, features: Features, jet: Jet, alphas: Array, index: Index, shares: Array) -> Array:
        """Return the residuals of samples that leave the fit, in one pass over their rows."""
        R, N, path = rows_per_sample(jet, self.loss), self.n_neurons, self._path(alphas)
        tail_coef = self._tail_inverse @ self._tail_moments
        result = np.empty((len(index), R, len(alphas), tail_coef.shape[1]))
        for block in row_blocks(len(index), R * features.n_columns, 4 * BLOCK_ELEMENTS):
            design, targets = sample_rows(features, jet[index[block]], self.loss)
            tail = design[..., N:]
            rotated = (design[..., :N] - tail @ self._elimination).reshape(-1, N) @ self._vectors
            predictions = (rotated @ path).reshape(*result[block].shape) + (tail @ tail_coef)[:, :, None, :]
            hats = _blocks_of_hat(rotated.reshape(*design.shape[:2], -1), 1 / self._shifted(alphas))
            hats += (tail @ self._tail_inverse @ np.swapaxes(tail, 1, 2))[:, None]
            residuals = targets[:, :, None, :] - predictions
            result[block] = residuals_without(hats / self.total_weight, residuals, shares[block])
        return result

    def root(self, alpha: float) -> Array:
        """Return the root, from the eigenvectors."""
        vectors = _inverse_root(self._vectors, self.eigenvalues, alpha * self.n_neurons)
        return np.asarray(_with_tail(vectors, self._elimination, self._tail_inverse) / np.sqrt(self.total_weight))

    def _path(self, alphas: Array) -> Array:
        """Return the outer weights along the eigenvectors, for all alphas and outputs, of shape (N, A k)."""
        return _stacked(self._rotated / self._shifted(alphas)[..., None])


class PreciseRidge(PrimalRidge):
    """Ridge regression by the singular values of the features themselves.

    The Gram matrix squares the singular values: below 1e-8 of the largest they drown in its rounding, and alpha has a
    floor near 1e-15. Smooth functions without noise can be fitted with much smaller ones. Here the rows are reduced to
    a triangle ``Z = Q R`` block by block, and ``R`` is decomposed; that costs a multiple of the Gram matrix (``cost``).
    """

    def __init__(self, features: Features, jet: Jet, loss: Loss = VALUES_ONLY) -> None:
        self.loss = loss
        self.n_neurons, t = features.n_neurons, len(features.tail)
        self.total_weight = float(jet.with_values().weights(0).sum())
        triangle = _triangle(features, jet, loss) / np.sqrt(self.total_weight)
        tail, neurons, values = np.split(triangle, [t, t + self.n_neurons], axis=1)
        basis, inverse = _orthonormal(tail)
        self._tail_inverse, self.tail_rank = inverse @ inverse.T, basis.shape[1]
        self._tail_moments, self._cross = tail.T @ values, tail.T @ neurons
        self._elimination = inverse @ neurons
        left, sizes, right = np.linalg.svd(neurons - basis @ (basis.T @ neurons), full_matrices=False)
        self._vectors, self.eigenvalues = right.T, sizes**2
        self.feature_energy = self._energy_left(float(np.sum(neurons**2) / self.n_neurons))
        values = values - basis @ (basis.T @ values)
        self._targets = left.T @ values
        self._rotated = sizes[:, None] * self._targets
        self._rest = np.sum((values - left @ self._targets) ** 2, axis=0)

    def mean_square_residual(self, alphas: Array) -> Array:
        """Return that of ``alpha N / (eigenvalue + alpha N)`` times the data, and of what no feature can fit."""
        left = (self._penalties(alphas) / self._shifted(alphas)) ** 2 @ self._targets**2
        return np.asarray(left + np.maximum(self._rest, 0.0))

    @staticmethod
    def cost(features: Features, jet: Jet, loss: Loss) -> float:
        """Return about how many operations it takes."""
        rows, N = len(jet) * rows_per_sample(jet, loss), features.n_neurons
        return 2.5 * rows * N**2 + 25.0 * min(rows, N) ** 2 * N


class DualRidge(Ridge):
    """Ridge regression by the eigenvectors of the kernel matrix of the rows (n x n), for more neurons than rows."""

    def __init__(self, features: Features, jet: Jet, loss: Loss = VALUES_ONLY) -> None:
        self.loss = loss
        N = features.n_neurons
        rows, values = sample_rows(features, jet, loss)
        self._shape = rows.shape[:2]
        self.total_weight = float(jet.with_values().weights(0).sum())
        design = rows.reshape(-1, rows.shape[2]) / np.sqrt(self.total_weight)
        targets = values.reshape(-1, values.shape[2]) / np.sqrt(self.total_weight)
        self.n_neurons = N
        self._neurons, self._targets = design[:, :N], targets
        self._tail_basis, self._tail_solve = _orthonormal(design[:, N:])
        self.tail_rank = self._tail_basis.shape[1]
        self._reduced = self._without_tail(self._neurons)
        eigenvalues, self._vectors = np.linalg.eigh(self._reduced @ self._reduced.T)
        self.eigenvalues = np.maximum(eigenvalues, 0.0)
        self.feature_energy = self._energy_left(float(np.sum(self._neurons**2) / N))
        self._projections = self._vectors.T @ self._without_tail(targets)

    def solve(self, alphas: Array) -> Array:
        """Return the outer weights and tail coefficients for every alpha, of shape (A, N + t, k)."""
        path = _stacked(self._projections / self._shifted(alphas)[..., None])
        coef = _unstacked(self._reduced.T @ (self._vectors @ path), len(alphas))
        tail = self._tail_solve @ (self._targets - self._neurons @ coef)
        return np.concatenate([coef, tail], axis=1)

    def mean_square_residual(self, alphas: Array) -> Array:
        """Return the mean square of ``alpha N / (eigenvalue + alpha N)`` times the data along the eigenvectors."""
        return np.asarray((self._penalties(alphas) / self._shifted(alphas)) ** 2 @ self._projections**2)

    def left_out(self, features: Features, jet: Jet, alphas: Array, index: Index, shares: Array) -> Array:
        """Return the residuals of samples that leave the fit, from the eigenvectors alone."""
        left = _stacked((self._penalties(alphas) / self._shifted(alphas))[..., None] * self._projections)
        vectors = self._vectors.reshape(*self._shape, -1)[index]
        tail = self._tail_basis.reshape(*self._shape, -1)[index]
        residuals = (vectors @ left).reshape(*vectors.shape[:2], len(alphas), -1) * np.sqrt(self.total_weight)
        hats = _blocks_of_hat(vectors, self.eigenvalues / self._shifted(alphas))
        return residuals_without(hats + (tail @ np.swapaxes(tail, 1, 2))[:, None], residuals, shares)

    def root(self, alpha: float) -> Array:
        """Return the root: along the rows from the eigenvectors, across them from the penalty alone."""
        kept = self.eigenvalues > EPS * self.eigenvalues[-1] * self.n_neurons
        along = self._reduced.T @ (self._vectors[:, kept] / np.sqrt(self.eigenvalues[kept]))
        vectors = _inverse_root(along, self.eigenvalues[kept], alpha * self.n_neurons)
        inverse = self._tail_solve @ self._tail_solve.T
        return np.asarray(_with_tail(vectors, self._tail_solve @ self._neurons, inverse) / np.sqrt(self.total_weight))

    def _without_tail(self, columns: Array) -> Array:
        return np.asarray(columns - self._tail_basis @ (self._tail_basis.T @ columns))


def factor(features: Features, jet: Jet, loss: Loss = VALUES_ONLY) -> Ridge:
    """Factor the ridge problem of the features on the data, in the smaller of the two forms."""
    loss.require(jet)
    if features.n_neurons > len(jet) * rows_per_sample(jet, loss):
        return DualRidge(features, jet, loss)
    return PrimalRidge(NormalEquations.from_data(features, jet, loss), loss)


def _blocks_of_hat(rows: Array, factors: Array) -> Array:
    """Return ``sum_m rows_kim factors_am rows_kjm``, of shape (n, A, R, R), for rows (n, R, m) and factors (A, m)."""
    n, R, _ = rows.shape
    hats = np.empty((n, len(factors), R, R))
    for i in range(R):
        for j in range(i + 1):
            hats[:, :, i, j] = hats[:, :, j, i] = (rows[:, i] * rows[:, j]) @ factors.T
    return hats


def residuals_without(hats: Array, residuals: Array, shares: Array) -> Array:
    """Return ``(1 - share H)^-1 r`` for each sample and alpha, from ``H`` (n, A, R, R) and ``r`` (n, R, A, k).

    A row that the fit must meet, whatever else is asked of it, has a leverage of one but for rounding.
    """
    R = hats.shape[2]
    left = np.eye(R) - shares[:, None, None, None] * hats
    if R == 1:
        return np.asarray(residuals / np.maximum(left[..., 0, 0], EPS)[:, None, :, None])
    left[..., range(R), range(R)] += EPS
    moved = np.moveaxis(residuals, 1, 2)
    try:
        solution: Array = np.asarray(np.linalg.solve(left, moved), float)
    except np.linalg.LinAlgError:  # one of them is singular to the last digit
        sizes, vectors = np.linalg.eigh(left)
        solution = vectors @ ((np.swapaxes(vectors, 2, 3) @ moved) / np.maximum(sizes, EPS)[..., None])
    return np.moveaxis(solution, 2, 1)


def _triangle(features: Features, jet: Jet, loss: Loss) -> Array:
    """Return ``R`` with ``R^T R = [Z y]^T [Z y]`` for all rows, columns in the order tail, neurons, values."""
    N, R = features.n_neurons, rows_per_sample(jet, loss)
    triangle = np.empty((0, features.n_columns + int(np.prod(jet.y.shape[1:], dtype=int))))
    for block in row_blocks(len(jet), R * N, max(BLOCK_ELEMENTS, 4 * N**2)):
        design, targets = sample_rows(features, jet[block], loss)
        rows = np.concatenate([design[..., N:], design[..., :N], targets], axis=2)
        stacked = np.concatenate([triangle, rows.reshape(-1, rows.shape[2])])
        triangle = np.asarray(np.linalg.qr(stacked, mode="r"))
    return triangle


def _inverse_root(vectors: Array, eigenvalues: Array, penalty: float) -> Array:
    """Return a root of ``(V diag(eigenvalues) V^T + penalty)^-1`` for orthonormal ``V`` (N, m)."""
    if vectors.shape[1] == len(vectors):
        return np.asarray(vectors / np.sqrt(eigenvalues + penalty))
    across = 1 / np.sqrt(penalty)
    shrunk = 1 / np.sqrt(eigenvalues + penalty) - across
    return np.asarray((vectors * shrunk) @ vectors.T + across * np.eye(len(vectors)))


def _with_tail(vectors: Array, elimination: Array, inverse: Array) -> Array:
    """Return the root of the inverse of all equations, from that of the equations with the tail eliminated."""
    values, basis = np.linalg.eigh(inverse) if len(inverse) else (np.empty(0), inverse)
    tail = basis * np.sqrt(np.maximum(values, 0.0))
    N, t = len(vectors), len(inverse)
    root = np.zeros((N + t, vectors.shape[1] + t))
    root[:N, : vectors.shape[1]], root[N:, : vectors.shape[1]] = vectors, -elimination @ vectors
    root[N:, vectors.shape[1] :] = tail
    return root


def _stacked(path: Array) -> Array:
    """Put arrays (A, m, k) side by side, into one matrix (m, A k)."""
    return np.moveaxis(path, 0, 1).reshape(path.shape[1], path.shape[0] * path.shape[2])


def _unstacked(matrix: Array, n_alphas: int) -> Array:
    """Undo ``_stacked``."""
    return np.moveaxis(matrix.reshape(len(matrix), n_alphas, -1), 1, 0)


def _pseudo_inverse(matrix: Array) -> tuple[Array, int]:
    """Return the pseudo-inverse and the rank of a small positive semidefinite matrix (of a tail: maybe singular)."""
    if not len(matrix):
        return matrix, 0
    eigenvalues, vectors = np.linalg.eigh(matrix)
    kept = eigenvalues > eigenvalues[-1] * len(matrix) * np.finfo(float).eps
    return (vectors[:, kept] / eigenvalues[kept]) @ vectors[:, kept].T, int(kept.sum())


def _orthonormal(columns: Array) -> tuple[Array, Array]:
    """Return an orthonormal basis (n, r) of the span of ``columns`` (n, t), and their pseudo-inverse (t, n)."""
    if not columns.shape[1]:
        return columns, columns.T
    left, values, right = np.linalg.svd(columns, full_matrices=False)
    kept = values > values[0] * max(columns.shape) * np.finfo(float).eps
    basis = left[:, kept]
    return basis, right[kept].T @ (basis / values[kept]).T
