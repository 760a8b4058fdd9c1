"""Criteria for scales and noise, with derivatives with respect to the kernel matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from nurf._types import Array
from nurf.solvers.process._process import TINY, Process, inverse_blocks, sample_blocks


class Criterion(ABC):
    """A function of a process, which the scales and the noise minimise."""

    @abstractmethod
    def value(self, process: Process) -> float:
        """Return the criterion."""

    @abstractmethod
    def slopes(self, process: Process) -> Array:
        """Return the derivatives of the criterion with respect to the kernel matrix, of shape (N, N)."""


@dataclass(frozen=True)
class RestrictedLikelihood(Criterion):
    """The negative logarithm of the restricted likelihood, up to a constant.

    With the best variances ``s_o^2`` of the outputs, it is ``(n sum_o log s_o^2 + k log det S) / 2`` for
    ``n`` contrasts, and its derivative ``(k P - sum_o P y_o y_o^T P / s_o^2) / 2``.
    """

    def value(self, process: Process) -> float:
        """Return the criterion."""
        k, n = process.rows.targets.shape[1], process.n_contrasts
        return float(n * np.sum(np.log(process.variances)) + k * process.log_determinant) / 2

    def slopes(self, process: Process) -> Array:
        """Return the derivatives of the criterion with respect to the kernel matrix, of shape (N, N)."""
        scaled = process.coefficients / np.sqrt(process.variances)
        return np.asarray((process.rows.targets.shape[1] * process.precision - scaled @ scaled.T) / 2)


@dataclass(frozen=True)
class LeaveOneOutError(Criterion):
    """``n / 2 sum_o log(mean squared leave-one-out error)`` of the values, and of sums if there are some.

    With the blocks ``P_bb`` of samples, ``e_b = P_bb^-1 (P y)_b`` and ``g_b = P_bb^-1 w_b``, where ``w_b`` is the error
    of the value and zero otherwise, half the sum of squares has the derivative ``P D P - (P g)(P y)^T``, made
    symmetric, with the block diagonal matrix ``D`` of the ``e_b g_b^T``.
    """

    def value(self, process: Process) -> float:
        """Return the criterion."""
        squares = self._squares(process)
        return float(np.count_nonzero(process.rows.judges) * np.sum(np.log(squares)) / 2)

    def slopes(self, process: Process) -> Array:
        """Return the derivatives of the criterion with respect to the kernel matrix, of shape (N, N)."""
        P, errors, weights = process.precision, process.left_out[0], process.rows.judging_weights
        wanted = weights[:, None] * errors / self._squares(process)  # the derivative of the logarithm
        g, products = np.empty_like(errors), np.empty_like(P)
        for rows in sample_blocks(process.rows.places):
            g[rows] = inverse_blocks(P, rows) @ wanted[rows]
            blocks = errors[rows] @ np.swapaxes(g[rows], 1, 2)
            products[rows] = (blocks + np.swapaxes(blocks, 1, 2)) / 2 @ P[rows]
        outer = (P @ g) @ process.coefficients.T
        return np.asarray(P @ products - (outer + outer.T) / 2)

    @staticmethod
    def _squares(process: Process) -> Array:
        """Return the mean squared error of each output, of shape (k,)."""
        rows, errors = process.rows, process.left_out[0]
        weighted = rows.judging_weights[:, None] * errors**2
        return np.asarray(np.maximum(np.mean(weighted[rows.judges], axis=0), TINY))


CRITERIA: dict[str, Criterion] = {"likelihood": RestrictedLikelihood(), "loo": LeaveOneOutError()}
