"""Gradients whose rows are in another order than the points."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree

from nurf._derivative_checks._pairs import TINY, Samples
from nurf._types import Array

MAX_QUERIES = 300  # points for which the gradient is searched
MAX_GRADIENTS = 2000  # gradients among which it is searched
MATCHED = 0.5  # relative misfit of the gradients that were found
BETTER = 0.6  # by which they are better than the given ones, and than the same gradient everywhere
RELATED = 0.5  # slope of the regression on the given gradients, below which they are not those of the points
DEVIATIONS = 3.0


def are_shuffled(samples: Samples) -> bool:
    """Return whether the gradients belong to the values in another order of the rows.

    Each point gets the gradient that explains the differences to some of its neighbours best, none twice. If these
    gradients also explain the differences to its other neighbours, and the given ones are not related to them at all,
    then the rows are shuffled. Noisy gradients are related to the differences, if weakly.
    """
    X, slopes = samples.X / samples.ranges, samples.slopes * samples.ranges / samples.value_std
    known = ~np.isnan(slopes).any(axis=1)
    points, first = np.unique(X[known], axis=0, return_index=True)
    slopes, values = slopes[known][first], samples.y[known][first] / samples.value_std
    n, d = points.shape
    if samples.unknown.any() or n < 4 * (d + 1) or n < 20:
        return False
    queries = np.unique(np.linspace(0, n - 1, MAX_QUERIES).astype(int))
    _, near = cKDTree(points).query(points[queries], k=2 * (d + 1) + 1)
    steps = points[near[:, 1:]] - points[queries][:, None]  # (q, m, d)
    rises = values[near[:, 1:]] - values[queries][:, None]  # (q, m)
    lengths = np.linalg.norm(steps, axis=2)
    steps, rises = steps / lengths[..., None], rises / lengths
    mean = slopes.mean(axis=0)
    if _is_related(rises - steps @ mean, np.einsum("qmd,qd->qm", steps, slopes[queries] - mean)):
        return False
    searched = np.arange(0, d + 1) * 2
    candidates = np.unique(np.concatenate([queries, np.linspace(0, n - 1, MAX_GRADIENTS).astype(int)]))
    found = slopes[candidates[_assigned(steps[:, searched], rises[:, searched], slopes[candidates])]]
    matched, given, same = (
        float(np.linalg.norm(rises[:, searched + 1] - np.einsum("qmd,qd->qm", steps[:, searched + 1], gradients)))
        for gradients in (found, slopes[queries], np.broadcast_to(mean, found.shape))
    )
    size = float(np.linalg.norm(rises[:, searched + 1]))
    return matched < min(MATCHED * size, BETTER * given, BETTER * same)


def _is_related(rises: Array, predicted: Array) -> bool:
    """Return whether the rises (q, m) have anything to do with the predicted ones."""
    products, squares = (rises * predicted).sum(axis=1), (predicted**2).sum(axis=1)
    total = max(float(squares.sum()), TINY)
    slope = float(products.sum()) / total
    error = float(np.linalg.norm(products - slope * squares)) / total
    return abs(slope) > DEVIATIONS * error or abs(slope) + DEVIATIONS * error > RELATED


def _assigned(steps: Array, rises: Array, gradients: Array) -> Array:
    """Return for each point the number of the gradient that explains its rises, of shape (q,).

    ``|rises - steps g|^2 = |rises|^2 - 2 g.b + g.A g`` with ``A = sum step step^T`` and ``b = sum rise step``.
    """
    b = np.einsum("qm,qmd->qd", rises, steps)
    A = np.einsum("qmd,qme->qde", steps, steps)
    squares = (gradients[:, :, None] * gradients[:, None, :]).reshape(len(gradients), -1)
    costs = A.reshape(len(A), -1) @ squares.T - 2 * b @ gradients.T
    _, columns = linear_sum_assignment(costs)
    return np.asarray(columns)
