"""Ridge regression by the eigenvectors of the Gram matrix of the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nurf._blocks import BLOCK_ELEMENTS, row_blocks
from nurf._types import Array, Index
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers._rows import VALUES_ONLY, Loss, rows_per_sample, sample_rows
from nurf.solvers.ridge._base import EPS, Ridge, inverse_factor, stacked, unstacked, with_tail
from nurf.solvers.ridge._hat import HatBlocks
from nurf.solvers.ridge._normal_equations import NormalEquations


class SpectralRidge(Ridge):
    """Ridge regression in the eigenvectors ``V`` of ``Phi^T W Phi / W``, tail eliminated.

    A subclass computes the eigenvectors ``vectors`` (N, m), the ``eigenvalues`` (m,), and the moments of the data along
    the eigenvectors, ``rotated`` (m, k); and for the tail the inverse of its Gram matrix (t, t), its moments (t, k),
    its products with the neurons (t, N), and the ``elimination`` (t, N).
    """

    vectors: Array
    rotated: Array
    tail_inverse: Array
    tail_moments: Array
    tail_products: Array
    elimination: Array

    def solve(self, alphas: Array) -> Array:
        """Return the outer weights and tail coefficients for every alpha, of shape (A, N + t, k)."""
        coef = unstacked(self.vectors @ self._path(alphas), len(alphas))
        tail = self.tail_inverse @ (self.tail_moments - self.tail_products @ coef)
        return np.concatenate([coef, tail], axis=1)

    def left_out(self, alphas: Array, index: Index, shares: Array) -> Array:
        """Return the leave-one-out residuals of some samples, in one pass over their rows, of shape (m, R, A, k)."""
        R, N, path = rows_per_sample(self.jet, self.loss), self.n_neurons, self._path(alphas)
        tail_coef = self.tail_inverse @ self.tail_moments
        W, tail_inverse = self.total_weight, self.tail_inverse / self.total_weight
        eigenvalues, shifts = W * self.eigenvalues, W * self._shifts(alphas)[:, 0]
        result = np.empty((len(index), R, len(alphas), tail_coef.shape[1]))
        for block in row_blocks(len(index), R * self.features.n_columns, 4 * BLOCK_ELEMENTS):
            design, targets = sample_rows(self.features, self.jet[index[block]], self.loss)
            tail = design[..., N:]
            rotated = (design[..., :N] - tail @ self.elimination).reshape(-1, N) @ self.vectors
            predictions = (rotated @ path).reshape(*result[block].shape) + (tail @ tail_coef)[:, :, None, :]
            hats = HatBlocks(rotated.reshape(*design.shape[:2], -1), eigenvalues, shifts, tail, tail_inverse)
            result[block] = hats.residuals_without(targets[:, :, None, :] - predictions, shares[block])
        return result

    def covariance_factor(self, alpha: float) -> Array:
        """Return a factor of the covariance of the coefficients, from the eigenvectors."""
        factor = inverse_factor(self.vectors, self.eigenvalues, alpha * self.n_neurons)
        return np.asarray(with_tail(factor, self.elimination, self.tail_inverse) / np.sqrt(self.total_weight))

    def _path(self, alphas: Array) -> Array:
        """Return the outer weights along the eigenvectors, for all alphas and outputs, of shape (m, A k)."""
        return stacked(self.rotated / self._shifted(alphas)[..., None])


@dataclass(frozen=True, eq=False)
class Elimination:
    """Elimination of the tail from normal equations, which are divided by their total weight.

    Attributes
    ----------
    moments : array of shape (t, k)
        The moments of the tail.
    products : array of shape (t, N)
        Products of the tail with the neurons.
    inverse : array of shape (t, t)
        The pseudo-inverse of the Gram matrix of the tail.
    rank : int
        The rank of the Gram matrix of the tail.
    right : array of shape (N, k)
        The moments of the neurons, tail eliminated.
    """

    moments: Array
    products: Array
    inverse: Array
    rank: int
    right: Array

    @classmethod
    def of(cls, equations: NormalEquations) -> Elimination:
        """Return the elimination of the tail from normal equations."""
        N, W = equations.n_neurons, equations.total_weight
        moments, products = equations.moments / W, equations.gram[N:, :N] / W
        inverse, rank = pseudo_inverse(equations.gram[N:, N:] / W)
        return cls(moments[N:], products, inverse, rank, moments[:N] - (inverse @ products).T @ moments[N:])

    @property
    def elimination(self) -> Array:
        """The coefficients of the tail that fit the neurons, of shape (t, N)."""
        return np.asarray(self.inverse @ self.products)

    @property
    def energy(self) -> Array:
        """The mean square of the values that the tail explains, of shape (k,)."""
        return np.asarray(np.sum(self.moments * (self.inverse @ self.moments), axis=0))

    def matrix(self, equations: NormalEquations) -> Array:
        """Return the Gram matrix of the neurons, tail eliminated, of shape (N, N)."""
        N = equations.n_neurons
        return np.asarray(equations.gram[:N, :N] / equations.total_weight - self.products.T @ self.elimination)

    def coefficients(self, coef: Array) -> Array:
        """Return the coefficients of the tail (..., t, k) for outer weights (..., N, k)."""
        return np.asarray(self.inverse @ (self.moments - self.products @ coef))


class PrimalRidge(SpectralRidge):
    """Ridge regression by an eigendecomposition of the Gram matrix of the features (N x N).

    Parameters
    ----------
    features, jet, loss
        See ``Ridge``.
    equations : NormalEquations, optional
        The normal equations, if they are already known, possibly of more rows than ``jet``.
    """

    def __init__(
        self, features: Features, jet: Jet, loss: Loss = VALUES_ONLY, equations: NormalEquations | None = None
    ) -> None:
        super().__init__(features, jet, loss)
        equations = NormalEquations.from_data(features, jet, loss) if equations is None else equations
        self.total_weight = equations.total_weight
        N, W, tail = self.n_neurons, self.total_weight, Elimination.of(equations)
        self.tail_inverse, self.tail_rank, self.elimination = tail.inverse, tail.rank, tail.elimination
        self.tail_moments, self.tail_products = tail.moments, tail.products
        eigenvalues, self.vectors = np.linalg.eigh(tail.matrix(equations))
        self.eigenvalues = np.maximum(eigenvalues, 0.0)
        before, left = (float(part.sum()) / N for part in (equations.gram.diagonal()[:N] / W, self.eigenvalues))
        self._set_energy(left, before, equations.noise / W)
        self.rotated = self.vectors.T @ tail.right
        self._energy, self._tail_energy = equations.energy / W, tail.energy

    def mean_square_residual(self, alphas: Array) -> Array:
        """Return the mean square of the data that is not explained, at least the rounding errors of the data."""
        explained = (2 - self.eigenvalues / self._shifted(alphas)) / self._shifted(alphas) @ self.rotated**2
        return np.asarray(np.maximum(self._energy - self._tail_energy - explained, 16 * EPS * self._energy))


def pseudo_inverse(matrix: Array) -> tuple[Array, int]:
    """Return the pseudo-inverse and the rank of a small positive semidefinite matrix."""
    if not len(matrix):
        return matrix, 0
    eigenvalues, vectors = np.linalg.eigh(matrix)
    kept = eigenvalues > eigenvalues[-1] * len(matrix) * EPS
    return (vectors[:, kept] / eigenvalues[kept]) @ vectors[:, kept].T, int(kept.sum())
