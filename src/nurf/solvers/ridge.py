"""Ridge regression: factor once, solve for every ``alpha``.

The outer weights minimise (paper, eq. 1.6)

    1 / (2 W) sum_k w_k |y_k - sum_n c_n phi_n(x_k) - p(x_k)|^2 + alpha N / 2 sum_n c_n^2,    W = sum_k w_k,

so that ``(Phi^T Phi / K + alpha N) c = Phi^T y / K`` for unit weights. The tail ``p`` is not penalised: it is
eliminated first, and comes back at the end.

All heavy products and factorisations are NumPy's: SciPy brings a second BLAS, whose threads would fight with those of
the first for the cores (measured: up to three times the time on two cores).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from nurf.jets import Array, Jet
from nurf.network import Features
from nurf.solvers.normal_equations import NormalEquations

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
    n_neurons, n_rows, tail_rank : int
    total_weight : float
    """

    eigenvalues: Array
    feature_energy: float
    n_neurons: int
    n_rows: int
    tail_rank: int
    total_weight: float

    @abstractmethod
    def solve(self, alphas: Array) -> Array:
        """Return the outer weights and tail coefficients for every alpha, of shape (A, N + t, k)."""

    @abstractmethod
    def residuals(self, features: Features, jet: Jet, alphas: Array) -> tuple[Array, Array]:
        """Return what is left of the rows that were fitted, for every alpha.

        Returns
        -------
        residuals : array of shape (n, A, k)
        leverages : array of shape (n, A)
            ``d prediction_k / d y_k``.
        """

    @abstractmethod
    def mean_square_residual(self, alphas: Array) -> Array:
        """Return the weighted mean of the squared training residuals for every alpha, of shape (A, k)."""

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

    def __init__(self, equations: NormalEquations) -> None:
        N, W = equations.n_neurons, equations.total_weight
        gram, moments = equations.gram / W, equations.moments / W
        self.n_neurons, self.n_rows, self.total_weight = N, equations.n_rows, W
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

    def residuals(self, features: Features, jet: Jet, alphas: Array) -> tuple[Array, Array]:
        """Return residuals and leverages, in one pass over the rows."""
        y, (shifted, N) = jet.y.reshape(len(jet), 1, -1), (self._shifted(alphas), self.n_neurons)
        residuals, leverages = np.empty((len(jet), len(alphas), y.shape[2])), np.empty((len(jet), len(alphas)))
        path = self._path(alphas)
        tail_coef = self._tail_inverse @ self._tail_moments
        for rows, design in features.design_blocks(jet.X):
            tail = design[:, N:]
            rotated = (design[:, :N] - tail @ self._elimination) @ self._vectors
            predictions = (rotated @ path).reshape(len(design), len(alphas), -1) + (tail @ tail_coef)[:, None, :]
            residuals[rows] = y[rows] - predictions
            leverages[rows] = rotated**2 @ (1 / shifted.T) + np.sum(tail @ self._tail_inverse * tail, axis=1)[:, None]
        return residuals, leverages * (jet.row_weights / self.total_weight)[:, None]

    def _path(self, alphas: Array) -> Array:
        """Return the outer weights along the eigenvectors, for all alphas and outputs, of shape (N, A k)."""
        return _stacked(self._rotated / self._shifted(alphas)[..., None])


class DualRidge(Ridge):
    """Ridge regression by the eigenvectors of the kernel matrix of the rows (n x n), for more neurons than rows."""

    def __init__(self, features: Features, jet: Jet) -> None:
        N = features.n_neurons
        weights = jet.row_weights
        roots = np.sqrt(weights / weights.sum())[:, None]
        design = features.design(jet.X) * roots
        self._roots = roots
        targets = jet.y.reshape(len(jet), -1) * roots
        self.n_neurons, self.n_rows = N, int(np.count_nonzero(weights))
        self.total_weight = float(weights.sum())
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

    def residuals(self, features: Features, jet: Jet, alphas: Array) -> tuple[Array, Array]:
        """Return residuals and leverages, from the eigenvectors alone."""
        left = self._penalties(alphas) / self._shifted(alphas)
        residuals = np.einsum("nm,am,mk->nak", self._vectors, left, self._projections, optimize=True)
        leverages = self._vectors**2 @ (self.eigenvalues / self._shifted(alphas)).T
        return residuals / self._roots[:, :, None], leverages + np.sum(self._tail_basis**2, axis=1)[:, None]

    def _without_tail(self, columns: Array) -> Array:
        return np.asarray(columns - self._tail_basis @ (self._tail_basis.T @ columns))


def factor(features: Features, jet: Jet) -> Ridge:
    """Factor the ridge problem of the features on the data, in the smaller of the two forms."""
    if features.n_neurons > len(jet):
        return DualRidge(features, jet)
    return PrimalRidge(NormalEquations.from_data(features, jet))


def _stacked(path: Array) -> Array:
    """Put arrays (A, m, k) side by side, into one matrix (m, A k)."""
    return np.moveaxis(path, 0, 1).reshape(path.shape[1], -1)


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
