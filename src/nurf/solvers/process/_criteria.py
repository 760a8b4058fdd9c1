"""What scales and noise are chosen by, with derivatives by the kernel matrix."""

from __future__ import annotations

import numpy as np

from nurf._types import Array
from nurf.solvers.process._process import TINY, Process, inverse_blocks, sample_blocks


def restricted_likelihood(process: Process) -> tuple[float, Array]:
    """Return the negative logarithm of the restricted likelihood, up to a constant, and its derivative by ``K``.

    With the variances ``s_o^2`` of the outputs at their best, it is ``(n sum_o log s_o^2 + k log det S) / 2`` for
    ``n`` contrasts, and its derivative ``(k P - sum_o P y_o y_o^T P / s_o^2) / 2``.
    """
    k, n = process.rows.targets.shape[1], process.n_contrasts
    value = (n * np.sum(np.log(process.variances)) + k * process.log_determinant) / 2
    scaled = process.coefficients / np.sqrt(process.variances)
    return float(value), (k * process.precision - scaled @ scaled.T) / 2


def leave_one_out(process: Process) -> tuple[float, Array]:
    """Return ``n / 2 sum_o log(mean squared error)`` of values whose samples are left out, and its derivative by ``K``.

    With the blocks ``P_bb`` of samples, ``e_b = P_bb^-1 (P y)_b`` and ``g_b = P_bb^-1 w_b``, where ``w_b`` is the error
    of the value and zero otherwise, half the sum of squares has the derivative ``P D P - (P g)(P y)^T``, made
    symmetric, with the block diagonal matrix ``D`` of the ``e_b g_b^T``.
    """
    samples, P, values = process.rows.samples, process.precision, process.rows.orders == 0
    errors = process.left_out[0]
    squares = np.maximum(np.mean(errors[values] ** 2, axis=0), TINY)
    wanted = np.where(values[:, None], errors / squares, 0.0)  # the derivative of the logarithm
    g, products = np.empty_like(errors), np.empty_like(P)
    for rows in sample_blocks(samples):
        g[rows] = inverse_blocks(P, rows) @ wanted[rows]
        blocks = errors[rows] @ np.swapaxes(g[rows], 1, 2)
        products[rows] = (blocks + np.swapaxes(blocks, 1, 2)) / 2 @ P[rows]
    outer = (P @ g) @ process.coefficients.T
    n = int(np.count_nonzero(values))
    return float(n * np.sum(np.log(squares)) / 2), P @ products - (outer + outer.T) / 2


CRITERIA = {"likelihood": restricted_likelihood, "loo": leave_one_out}
