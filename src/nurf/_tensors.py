"""Components of derivatives: gradients as they are, Hessians along an orthonormal basis of symmetric matrices."""

from __future__ import annotations

import numpy as np

from nurf._types import Array


def components(derivatives: Array, order: int) -> Array:
    """Return the independent components of gradients (..., d) or Hessians (..., d, d), of shape (..., C).

    A Hessian has ``C = d (d + 1) / 2``: its diagonal, and ``sqrt(2)`` times its upper triangle, so that the sum of
    their squares is that of all its entries. An entry that is known on one side of the diagonal only counts; NaN is one
    that is not known at all.
    """
    if order == 1:
        return derivatives
    rows, columns = np.triu_indices(derivatives.shape[-1])
    above, below = derivatives[..., rows, columns], derivatives[..., columns, rows]
    means = np.where(np.isnan(above), below, np.where(np.isnan(below), above, above / 2 + below / 2))
    return np.asarray(means * np.where(rows == columns, 1.0, np.sqrt(2)))


def powers(vectors: Array, order: int) -> Array:
    """Return the components of ``v`` or ``v v^T`` for the rows ``v`` of ``vectors`` (..., d), of shape (..., C)."""
    return vectors if order == 1 else components(vectors[..., :, None] * vectors[..., None, :], order)


def variables(dimension: int, order: int) -> list[tuple[int, ...]]:
    """Return by which variables each component differentiates."""
    if order == 1:
        return [(i,) for i in range(dimension)]
    return list(zip(*(axis.tolist() for axis in np.triu_indices(dimension)), strict=True))


def factors(dimension: int, order: int) -> Array:
    """Return by which number the plain partial derivative is multiplied in each component, of shape (C,)."""
    return np.array([1.0 if len(set(by)) == 1 else np.sqrt(2) for by in variables(dimension, order)])
