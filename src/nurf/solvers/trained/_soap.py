"""The optimiser SOAP: Adam in the eigenbases of Shampoo's two factors for each matrix (Vyas et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nurf._types import Floats


@dataclass(frozen=True, eq=False)
class MatrixState:
    """Moving means of the gradients ``G`` (m, n) of one matrix of weights.

    Attributes
    ----------
    mean : array of shape (m, n)
        The moving mean of ``G``.
    squares : array of shape (m, n)
        The moving mean of the squares of ``Q_L^T G Q_R``.
    factors : pair of arrays of shape (m, m), (n, n)
        The moving means of ``G G^T`` and ``G^T G``; of shape (0, 0) if the side is not rotated.
    bases : pair of arrays of shape (m, m), (n, n)
        ``Q_L`` and ``Q_R``: orthogonal, near the eigenvectors of the factors.
    """

    mean: Floats
    squares: Floats
    factors: tuple[Floats, Floats]
    bases: tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class SoapState:
    """The number of steps so far, and the states of all matrices."""

    count: int
    matrices: tuple[MatrixState, ...]


@dataclass(frozen=True)
class Soap:
    """The optimiser: ``init`` makes a state, ``step`` returns new weights and a new state.

    Parameters
    ----------
    decay : float, default 0.95
        Decay rate of all moving means: of the gradients, of their squares, and of Shampoo's factors.
    every : int, default 10
        Number of steps between updates of the bases, each by one step of the QR iteration, ``qr(L Q_L)``.
    tiny : float, default 1e-8
        Number added to roots of mean squares.
    max_side : int, default 512
        Larger sides of a matrix are not rotated: the QR iteration would cost more than the loss.
    """

    decay: float = 0.95
    every: int = 10
    tiny: float = 1e-8
    max_side: int = 512

    def init(self, weights: Sequence[Floats]) -> SoapState:
        """Return the state before the first step, with bases along the axes."""
        return SoapState(0, tuple(self._first_state(matrix) for matrix in weights))

    def step(
        self, weights: Sequence[Floats], gradients: Sequence[Floats], state: SoapState, rate: float
    ) -> tuple[list[Floats], SoapState]:
        """Return the weights after a step of size ``rate``, and the new state.

        ``W - rate Q_L (M / (V^(1/2) + tiny)) Q_R^T`` with the rotated mean ``M`` and mean squares ``V``, both
        bias-corrected.
        """
        count = state.count + 1
        moved: list[Floats] = []
        states: list[MatrixState] = []
        for matrix, gradient, before in zip(weights, gradients, state.matrices, strict=True):
            after, direction = self._direction(gradient, before, count)
            moved.append(matrix - gradient.dtype.type(rate) * direction)
            states.append(after)
        return moved, SoapState(count, tuple(states))

    def _first_state(self, matrix: Floats) -> MatrixState:
        sides = [side if side <= self.max_side else 0 for side in matrix.shape]
        left, right = (np.eye(side, dtype=matrix.dtype) for side in sides)
        zeros = np.zeros_like(matrix)
        return MatrixState(zeros, zeros, (np.zeros_like(left), np.zeros_like(right)), (left, right))

    def _direction(self, gradient: Floats, state: MatrixState, count: int) -> tuple[MatrixState, Floats]:
        """Return the new state of a matrix, and the direction of the step."""
        real = gradient.dtype.type
        keep, add = real(self.decay), real(1 - self.decay)
        mean = keep * state.mean + add * gradient
        rotated = _rotate(gradient, state.bases)
        squares = keep * state.squares + add * rotated * rotated
        left, right = state.factors
        left = keep * left + add * (gradient @ gradient.T) if len(left) else left
        right = keep * right + add * (gradient.T @ gradient) if len(right) else right
        bias = real(1 - self.decay**count)
        scaled = (_rotate(mean, state.bases) / bias) / (np.sqrt(squares / bias) + real(self.tiny))
        after = MatrixState(mean, squares, (left, right), state.bases)
        if count % self.every == 1 or self.every == 1:
            after = replace(after, bases=(_renewed(left, state.bases[0]), _renewed(right, state.bases[1])))
        return after, _rotate_back(scaled, state.bases)


def _rotate(matrix: Floats, bases: tuple[Floats, Floats]) -> Floats:
    """Return ``Q_L^T G Q_R``; a side with an empty basis is not rotated."""
    left, right = bases
    matrix = left.T @ matrix if len(left) else matrix
    return matrix @ right if len(right) else matrix


def _rotate_back(matrix: Floats, bases: tuple[Floats, Floats]) -> Floats:
    """Return ``Q_L G Q_R^T``; a side with an empty basis is not rotated."""
    left, right = bases
    matrix = left @ matrix if len(left) else matrix
    return matrix @ right.T if len(right) else matrix


def _renewed(factor: Floats, basis: Floats) -> Floats:
    """Return the basis after one step of the QR iteration towards the eigenvectors of ``factor``."""
    return np.linalg.qr(factor @ basis)[0] if len(basis) else basis
