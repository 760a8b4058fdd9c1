"""Derivatives as rows, from which normals are sampled, and random rows for unknown derivatives."""

from __future__ import annotations

import numpy as np

from nurf._types import Array, Mask
from nurf.jets import DERIVATIVE_KINDS, Jet


def scaled_rows(jet: Jet, order: int) -> Array:
    """Return ``jet.derivative_rows`` divided by the largest entry: densities do not depend on the scale of ``f``.

    If a gradient is partly known, an unknown partial derivative is a random variable with mean zero. Its variance is
    the mean square of the known derivatives along the same axis, or along all axes if there are none. The unknown part
    has rows of its own, which add its covariance to the covariance ``F_k^T F_k`` of the direction at ``x_k``. Entries
    of Hessians are treated in the same way. Points without any known derivative, and points whose derivatives have
    weight zero, have rows of zeros.

    Returns
    -------
    array of shape (n, m, d), m = the number of rows of the derivative and of its unknown part
    """
    rows = jet.derivative_rows(order)
    used = np.ones(len(jet), bool) if jet.derivative_weight is None else jet.derivative_weight > 0
    rows = np.where(used[:, None, None], rows, 0.0)
    largest = np.abs(rows).max(initial=0.0)
    rows = rows / (largest or 1.0)
    framed = order == 1 and jet.frames is not None
    unknown = _across_frames(jet, rows, used) if framed else _along_axes(jet, order, rows, used)
    rows = np.concatenate([rows, unknown], axis=1) if unknown.any() else rows
    if not rows.any():
        kind = DERIVATIVE_KINDS[order]
        raise ValueError(f"all known {kind} are zero: the function does not vary in any direction; use Uniform()")
    return np.asarray(rows)


def complete(jet: Jet, order: int) -> Mask:
    """Return a mask of the points at which all derivatives of an order are known, of shape (n,)."""
    derivatives = jet.derivatives(order)
    if derivatives is None:
        return np.zeros(len(jet), bool)
    if order == 1 and jet.frames is not None:
        return np.asarray(np.sum(jet.frames**2, axis=(1, 2)) > jet.n_features - 0.5)
    return np.asarray(~np.isnan(derivatives.reshape(len(jet), -1)).any(axis=1))


def _along_axes(jet: Jet, order: int, rows: Array, used: Mask) -> Array:
    """Return rows for the unknown entries of partly known rows, one for each axis with unknown entries."""
    derivatives = jet.derivatives(order)
    assert derivatives is not None
    known = ~np.isnan(derivatives.reshape(rows.shape)) & used[:, None, None]
    if known.all():
        return np.empty((len(rows), 0, jet.n_features))
    numbers = (~known & known.any(axis=2, keepdims=True)).sum(axis=1)
    axes = np.flatnonzero(numbers.any(axis=0))
    weights = jet.weights(1)[:, None] * known.sum(axis=1)
    squares, totals = jet.weights(1) @ np.sum(rows**2, axis=1), weights.sum(axis=0)
    overall = squares.sum() / max(totals.sum(), np.finfo(float).tiny)
    variances = np.divide(squares, totals, where=totals > 0, out=np.full(len(totals), overall or 1.0))
    return np.asarray(np.sqrt(numbers * variances)[:, axes, None] * np.eye(jet.n_features)[axes])


def _across_frames(jet: Jet, rows: Array, used: Mask) -> Array:
    """Return rows for the unknown part of gradients that are known along frames: the orthogonal complement."""
    assert jet.frames is not None
    known = np.swapaxes(jet.frames, 1, 2) @ jet.frames
    ranks = np.trace(known, axis1=1, axis2=2).round() * used
    weights = jet.weights(1)
    variance = weights @ np.sum(rows**2, axis=(1, 2)) / max(weights @ ranks, np.finfo(float).tiny)
    partial = (ranks > 0) & ~complete(jet, 1)
    return np.asarray(np.sqrt(variance) * partial[:, None, None] * (np.eye(jet.n_features) - known))
