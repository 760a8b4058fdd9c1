"""The base of all forms of ridge regression.

The outer weights minimise (paper, eq. 1.6)::

    1 / (2 W) sum_k w_k |y_k - sum_n c_n phi_n(x_k) - p(x_k)|^2 + alpha N / 2 sum_n c_n^2,    W = sum_k w_k,

so that ``(Phi^T Phi / K + alpha N) c = Phi^T y / K`` for unit weights. Derivatives add rows to the sum, with the
weights of ``Loss``; W is the total weight of the values and functionals. The tail ``p`` is not penalised: it is
eliminated first and recovered at the end.

All large products and factorisations use NumPy: SciPy brings a second BLAS, whose threads compete with NumPy's threads
for the cores (measured: up to three times slower on two cores).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from nurf._types import Array, Index
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers._rows import Loss

EPS = float(np.finfo(float).eps)
FAR = 1e-4  # relative residual of an iterative solution above which a warning is raised


@dataclass(frozen=True)
class Convergence:
    """Convergence of an iterative solver for one alpha.

    Attributes
    ----------
    iterations : int
    residual : float
        The largest residual over the outputs, relative to the right-hand side.
    tolerance : float
        The residual at which iterations stop.
    rank : int
        Rank of the preconditioner.
    """

    iterations: int
    residual: float
    tolerance: float
    rank: int

    @property
    def reached(self) -> bool:
        """Whether the residual is within the tolerance."""
        return self.residual <= self.tolerance

    @property
    def is_far(self) -> bool:
        """Whether more iterations would change the fit. Estimated errors hold for this number of iterations."""
        return self.residual > FAR

    def __str__(self) -> str:
        asked = "" if self.reached else f", {self.tolerance:.0e} asked for"
        return (
            f"conjugate gradients, preconditioner of rank {self.rank}: {self.iterations} iterations to a residual of "
            f"{self.residual:.1e}{asked}"
        )


class Ridge(ABC):
    """A factorised ridge regression problem, with its features and data.

    Attributes
    ----------
    features : Features
    jet : Jet
    loss : Loss
        The weights of the derivatives.
    eigenvalues : array of shape (m,)
        Eigenvalues of ``Phi^T W Phi / W`` after elimination of the tail, or of the kernel matrix of the rows.
    feature_energy : float
        Mean square of a feature, averaged over the neurons, tail eliminated: the natural unit of ``alpha``. Zero if the
        tail explains all features.
    tail_rank : int
        Rank of the columns of the tail.
    total_weight : float
        Total weight of the values.
    smallest_alpha : float
        The smallest alpha that can be resolved, in units of ``feature_energy``.
    convergence : tuple of Convergence
        Convergence of the last solution for each alpha, if the solver is iterative.
    """

    smallest_alpha: float = 0.0
    convergence: tuple[Convergence, ...] = ()
    eigenvalues: Array
    feature_energy: float
    tail_rank: int

    def __init__(self, features: Features, jet: Jet, loss: Loss) -> None:
        self.features, self.jet, self.loss = features, jet, loss
        self.total_weight = float(np.sum(jet.weights(0), where=jet.has_target))

    @property
    def n_neurons(self) -> int:
        """Number of neurons."""
        return self.features.n_neurons

    @abstractmethod
    def solve(self, alphas: Array) -> Array:
        """Return the outer weights and tail coefficients for every alpha, of shape (A, N + t, k)."""

    @abstractmethod
    def left_out(self, alphas: Array, index: Index, shares: Array) -> Array:
        """Return the leave-one-out residuals of all rows of some samples, for every alpha.

        With the rows ``Z_k`` of sample ``k`` and the block ``H_k = Z_k M^-1 Z_k^T`` of the hat matrix, the residuals
        are exactly ``(1 - H_k)^-1 r_k``.

        Parameters
        ----------
        alphas : array of shape (A,)
        index : array of shape (m,)
            The indices of the samples.
        shares : array of shape (m,)
            The share of the weight of each sample that is left out.

        Returns
        -------
        array of shape (m, R, A, k)
            First the residual of the value, then the residuals of the derivatives, times the square roots of their
            weights.
        """

    @abstractmethod
    def mean_square_residual(self, alphas: Array) -> Array:
        """Return the weighted sum of all squared residuals, divided by the weight of the values, of shape (A, k)."""

    @abstractmethod
    def covariance_factor(self, alpha: float) -> Array:
        """Return ``B`` of shape (N + t, m) with ``B B^T = (Z^T W Z + alpha N W)^-1``.

        In the Bayesian view with unit noise, ``B B^T`` is the covariance of the coefficients.
        """

    def degrees_of_freedom(self, alphas: Array) -> Array:
        """Return the trace of the hat matrix, tail included, of shape (A,)."""
        return np.asarray(self.tail_rank + np.sum(self.eigenvalues / self._shifted(alphas), axis=1))

    def _shifts(self, alphas: Array) -> Array:
        """Return ``alpha N``, of shape (A, 1)."""
        return np.asarray(alphas, float)[:, None] * self.n_neurons

    def _shifted(self, alphas: Array) -> Array:
        """Return ``eigenvalues + alpha N``, of shape (A, m)."""
        return np.asarray(self.eigenvalues + self._shifts(alphas))

    def _energy_left(self, energy: float) -> float:
        """Return the mean energy of a feature with the tail eliminated, or zero if only rounding errors remain."""
        left = float(self.eigenvalues.sum() / self.n_neurons)
        return left if left > 1000 * EPS * energy else 0.0

    def _set_energy(self, left: float, energy: float, noise: float) -> None:
        """Set the mean energy of a feature and the smallest alpha.

        ``left`` and ``energy`` are the mean energies of a feature after and before elimination of the tail. The Gram
        matrix of the neurons, divided by the total weight, has an error of ``N`` times the ``noise``.
        """
        self.feature_energy = left if left > max(1000 * EPS * energy, 10 * noise) else 0.0
        self.smallest_alpha = noise / left if self.feature_energy else 0.0


def inverse_factor(vectors: Array, eigenvalues: Array, shift: float) -> Array:
    """Return a factor of ``(V diag(eigenvalues) V^T + shift)^-1`` for orthonormal ``V`` (N, m)."""
    if vectors.shape[1] == len(vectors):
        return np.asarray(vectors / np.sqrt(eigenvalues + shift))
    across = 1 / np.sqrt(shift)
    shrunk = 1 / np.sqrt(eigenvalues + shift) - across
    return np.asarray((vectors * shrunk) @ vectors.T + across * np.eye(len(vectors)))


def with_tail(factor: Array, elimination: Array, inverse: Array) -> Array:
    """Return a factor of the inverse of all equations, given a factor for the equations with the tail eliminated."""
    N, t = len(factor), len(inverse)
    result = np.zeros((N + t, factor.shape[1] + t))
    result[:N, : factor.shape[1]], result[N:, : factor.shape[1]] = factor, -elimination @ factor
    result[N:, factor.shape[1] :] = square_root(inverse)
    return result


def square_root(matrix: Array) -> Array:
    """Return a square root ``B`` of a positive semidefinite matrix ``B B^T``."""
    if not len(matrix):
        return matrix
    values, basis = np.linalg.eigh(matrix)
    return np.asarray(basis * np.sqrt(np.maximum(values, 0.0)))


def stacked(path: Array) -> Array:
    """Return arrays (A, m, k) side by side, as one matrix (m, A k)."""
    return path.swapaxes(0, 1).reshape(path.shape[1], path.shape[0] * path.shape[2])


def unstacked(matrix: Array, n_alphas: int) -> Array:
    """Return the arrays (A, m, k) that ``stacked`` put side by side."""
    return matrix.reshape(len(matrix), n_alphas, -1).swapaxes(0, 1)


def orthonormal(columns: Array, complete: bool = False) -> tuple[Array, Array, Array]:
    """Return orthonormal bases of the span of ``columns`` (n, t) and of its complement, and their pseudo-inverse.

    The bases have the shapes (n, r) and (n, n - r), the pseudo-inverse (t, n). The complement is empty unless
    ``complete`` is true.
    """
    n, t = columns.shape
    if t == 0:
        return columns, np.eye(n)[:, : n * complete], columns.T
    left, values, right = np.linalg.svd(columns, full_matrices=complete)
    kept = np.flatnonzero(values > values[0] * max(n, t) * EPS)
    basis = left[:, kept]
    return basis, left[:, len(kept) : n * complete], right[kept].T @ (basis / values[kept]).T
