"""Gradients whose rows are in another order than the points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree
from scipy.special import comb
from sklearn.preprocessing import PolynomialFeatures

from nurf._types import Array, Index
from nurf.data._derivative_checks._pairs import TINY, Samples

MIN_POINTS = 20
MAX_POINTS = 300  # for which the gradient is searched
MAX_GRADIENTS = 1000  # among which it is searched
MAX_DEGREE = 3  # of the polynomial that predicts gradients
STEP = 1e-4  # of its finite differences, in units of the ranges
MATCHED = 0.5  # relative misfit of the gradients that were found
BETTER = 0.6  # by which they are better than the given ones, and than the same gradient everywhere
RELATED = 0.5  # slope of the regression on the given gradients, below which they are not those of the points
DEVIATIONS = 3.0


def are_shuffled(samples: Samples) -> bool:
    """Return whether the gradients belong to the values in another order of the rows.

    Each point gets the gradient that is most like a prediction from the values, none twice. If these gradients explain
    the differences to other neighbours, and the given ones are not related to the differences at all, then the rows are
    shuffled. Noisy gradients are related to the differences, if weakly.
    """
    known = ~np.isnan(samples.slopes).any(axis=1)
    points, first = np.unique(samples.X[known] / samples.ranges, axis=0, return_index=True)
    n, d = points.shape
    m = d + 1  # neighbours for the search, and as many for the test
    if samples.unknown.any() or min(n, MAX_POINTS) < max(4 * m, MIN_POINTS):
        return False
    gradients = samples.slopes[known][first] * samples.ranges / samples.value_std
    rows = _evenly(n, MAX_POINTS)
    points, values, given = points[rows], samples.y[known][first][rows] / samples.value_std, gradients[rows]
    near = cKDTree(points).query(points, k=2 * m + 1)[1][:, 1:]
    steps, rises = points[near] - points[:, None], values[near] - values[:, None]
    same = np.broadcast_to(gradients.mean(axis=0), given.shape)
    lengths = np.linalg.norm(steps, axis=2)
    if _is_related((rises - _predicted(same, near, steps)) / lengths, steps / lengths[..., None], given - same):
        return False
    candidates = gradients[_evenly(n, MAX_GRADIENTS)]
    tested = np.s_[:, 1::2]
    for matrices, vectors in _guesses(points, values, steps[:, ::2], rises[:, ::2]):
        found = candidates[_assigned(matrices, vectors, candidates)]
        misfits = [
            float(np.linalg.norm((rises - _predicted(slopes, near, steps))[tested])) for slopes in (found, given, same)
        ]
        if misfits[0] < min(MATCHED * float(np.linalg.norm(rises[tested])), BETTER * misfits[1], BETTER * misfits[2]):
            return True
    return False


def _evenly(n: int, count: int) -> Index:
    return np.unique(np.linspace(0, n - 1, count).astype(np.int64))


def _predicted(slopes: Array, near: Index, steps: Array) -> Array:
    """Return the rises to neighbours that gradients (n, d) predict, of shape (n, m)."""
    return np.asarray(np.einsum("nmd,nmd->nm", (slopes[:, None] + slopes[near]) / 2, steps))


def _is_related(rises: Array, steps: Array, gradients: Array) -> bool:
    """Return whether rises (n, m) have anything to do with the gradients (n, d) at the points where the steps begin."""
    predicted = np.einsum("nmd,nd->nm", steps, gradients)
    products, squares = (rises * predicted).sum(axis=1), (predicted**2).sum(axis=1)
    total = max(float(squares.sum()), TINY)
    slope = float(products.sum()) / total
    error = float(np.linalg.norm(products - slope * squares)) / total
    return abs(slope) > DEVIATIONS * error or abs(slope) + DEVIATIONS * error > RELATED


def _guesses(points: Array, values: Array, steps: Array, rises: Array) -> Iterator[tuple[Array, Array]]:
    """Yield what values say of the gradient ``g`` at each point: it should minimise ``g.A g - 2 g.b``.

    First from the differences to neighbours, then from a polynomial of the values.
    """
    lengths = np.linalg.norm(steps, axis=2, keepdims=True)
    steps, rises = steps / lengths, rises / lengths[..., 0]
    yield np.einsum("nmd,nme->nde", steps, steps), np.einsum("nm,nmd->nd", rises, steps)
    n, d = points.shape
    degrees = [degree for degree in range(2, MAX_DEGREE + 1) if 2 * comb(d + degree, degree) <= n]
    if degrees:
        features = PolynomialFeatures(degrees[-1])
        weights, *_ = np.linalg.lstsq(features.fit_transform(points), values, rcond=None)
        moves = STEP * np.eye(d)
        ends = [features.transform(points + move) @ weights for move in (*moves, *-moves)]
        slopes = np.column_stack([(ends[k] - ends[k + d]) / (2 * STEP) for k in range(d)])
        yield np.broadcast_to(np.eye(d), (n, d, d)), slopes


def _assigned(matrices: Array, vectors: Array, gradients: Array) -> Index:
    """Return for each point the number of the gradient that minimises ``g.A g - 2 g.b``, none twice, of shape (n,)."""
    squares = (gradients[:, :, None] * gradients[:, None, :]).reshape(len(gradients), -1)
    costs = matrices.reshape(len(matrices), -1) @ squares.T - 2 * vectors @ gradients.T
    return np.asarray(linear_sum_assignment(costs)[1])
