"""Independent components of derivatives: partial derivatives, or Hessians in a basis of the symmetric matrices."""

from __future__ import annotations

import numpy as np

from nurf._types import Array


def components(derivatives: Array, order: int) -> Array:
    """Return the independent components of gradients (..., d) or Hessians (..., d, d), of shape (..., C).

    A gradient has ``C = d`` components. A Hessian has ``C = d (d + 1) / 2``: the diagonal, and the upper triangle times
    ``sqrt(2)``, so that their sum of squares equals that of all entries. If ``h_ij`` and ``h_ji`` are both known, their
    mean is used; if one of them is NaN, the other one; if both are NaN, the component is NaN (unknown).
    """
    if order == 1:
        return derivatives
    rows, columns = np.triu_indices(derivatives.shape[-1])
    above, below = derivatives[..., rows, columns], derivatives[..., columns, rows]
    means = np.where(np.isnan(above), below, np.where(np.isnan(below), above, above / 2 + below / 2))
    return np.asarray(means * np.where(rows == columns, 1.0, np.sqrt(2)))


def powers(vectors: Array, order: int) -> Array:
    """Return the components of ``v`` or ``v v^T`` for the vectors ``v`` of shape (..., d), of shape (..., C)."""
    return vectors if order == 1 else components(vectors[..., :, None] * vectors[..., None, :], order)


def variables(dimension: int, order: int) -> list[tuple[int, ...]]:
    """Return the variables with respect to which each component is a derivative, one tuple for each component."""
    if order == 1:
        return [(i,) for i in range(dimension)]
    return list(zip(*(axis.tolist() for axis in np.triu_indices(dimension)), strict=True))


def factors(dimension: int, order: int) -> Array:
    """Return the factor between a partial derivative and its component: 1, or ``sqrt(2)`` off the diagonal; (C,)."""
    return np.array([1.0 if len(set(by)) == 1 else np.sqrt(2) for by in variables(dimension, order)])
