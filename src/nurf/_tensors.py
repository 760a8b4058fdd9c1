"""Independent components of derivatives: values, partial derivatives, or Hessians in a basis of symmetric matrices."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from nurf._types import Array


def components(derivatives: Array, order: int) -> Array:
    """Return the independent components of values (...), gradients (..., d) or Hessians (..., d, d): (..., C).

    A gradient has ``C = d`` components. A Hessian has ``C = d (d + 1) / 2``: the diagonal, and the upper triangle times
    ``sqrt(2)``, so that the sum of squares of the components equals the squared Frobenius norm. If ``h_ij`` and
    ``h_ji`` are both known, their mean is used; if one is NaN, the other; if both are NaN, the component is NaN.
    """
    if order < 2:
        return derivatives if order else derivatives[..., None]
    rows, columns = np.triu_indices(derivatives.shape[-1])
    above, below = derivatives[..., rows, columns], derivatives[..., columns, rows]
    means = np.where(np.isnan(above), below, np.where(np.isnan(below), above, above / 2 + below / 2))
    return np.asarray(means * factors(derivatives.shape[-1], order))


def powers(vectors: Array, order: int) -> Array:
    """Return the components of 1, ``v`` or ``v v^T`` for vectors ``v`` of shape (..., d), of shape (..., C)."""
    if order < 2:
        return vectors if order else np.ones((*vectors.shape[:-1], 1))
    return _products(vectors, vectors)


def power_slopes(vectors: Array, order: int) -> Array:
    """Return the derivatives of ``powers`` with respect to ``v``, of shape (..., C, d)."""
    d = vectors.shape[-1]
    if order < 2:
        return np.broadcast_to(np.eye(d) if order else np.zeros((1, d)), (*vectors.shape[:-1], d if order else 1, d))
    return np.swapaxes(2 * _products(vectors[..., None, :], np.eye(d)), -1, -2)


def power_bends(dimension: int, order: int) -> Array:
    """Return the second derivatives of ``powers`` with respect to ``v``, which are constant, of shape (C, d, d)."""
    if order < 2:
        return np.zeros((dimension if order else 1, dimension, dimension))
    axes = np.eye(dimension)
    return np.moveaxis(2 * _products(axes[:, None, :], axes), -1, 0)


def _products(v: Array, w: Array) -> Array:
    """Return the components of ``(v w^T + w v^T) / 2``."""
    return components(v[..., :, None] * w[..., None, :], 2)


def variables(dimension: int, order: int) -> list[tuple[int, ...]]:
    """Return the variables with respect to which each component is a derivative, one tuple for each component."""
    return list(combinations_with_replacement(range(dimension), order))


def factors(dimension: int, order: int) -> Array:
    """Return the factor between a partial derivative and its component: 1, or ``sqrt(2)`` off the diagonal; (C,)."""
    if order < 2:
        return np.ones(dimension if order else 1)
    rows, columns = np.triu_indices(dimension)
    return np.where(rows == columns, 1.0, np.sqrt(2))
