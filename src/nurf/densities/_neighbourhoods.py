"""Neighbourhoods of points: distances, weights that decrease with distance, and weighted sums over all points."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from nurf._blocks import row_blocks
from nurf._threads import one_thread
from nurf._types import Array

MANY_POINTS = 10_000  # with more points, sums over all points are estimated from some of them
NEIGHBOURS = 1500  # points in an estimated sum
CLOSE = 1e-10  # largest error of a squared distance in bandwidths, so that the error of a distance is below 1e-5
AT_ONCE = 512  # size of blocks of points, so that the distances between two blocks fit in the cache
PAIRS = AT_ONCE**2

Kernel = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]  # from distances to squared weights, in any precision
Part = TypeVar("Part")
Result = TypeVar("Result")


def _exponential(t: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ``exp(-t)``, computed in place."""
    np.negative(t, out=t)
    return np.asarray(np.exp(t, out=t))


def _gaussian(t: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ``exp(-t^2 / 2)``, computed in place."""
    with np.errstate(over="ignore"):
        np.square(t, out=t)
    t /= -2
    return np.asarray(np.exp(t, out=t))


def _cauchy(t: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ``1 / (1 + t^2)``, computed in place."""
    with np.errstate(over="ignore"):
        np.square(t, out=t)
    t += 1
    return np.asarray(np.reciprocal(t, out=t))


KERNELS: dict[str, Kernel] = {"exponential": _exponential, "gaussian": _gaussian, "cauchy": _cauchy}


@dataclass(frozen=True, eq=False)
class Distances:
    """The distances ``t = |x - y| / unit`` between points (n, d) and points (m, d), in single precision.

    ``t^2 = |x|^2 + |y|^2 - 2 x.y`` is one product of matrices, which takes a quarter of the time of differences. Its
    error is the rounding error of the terms. If this is not much smaller than one, differences are used instead. The
    error of ``t`` is therefore below 1e-5 + 1e-6 t.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d)
        The points.
    unit : float
    left, right : arrays of shape (n, d + 2) and (d + 2, m), or None
        Factors of ``t^2``, or None if differences are used.
    """

    X: Array
    Y: Array
    unit: float
    left: Array | None
    right: Array | None

    @classmethod
    def between(cls, X: Array, Y: Array, unit: float) -> Distances:
        """Return the distances between two sets of points."""
        center = Y.mean(axis=0)
        with np.errstate(over="ignore"):
            left, right = (X - center) / unit, (Y - center) / unit
            x, y = np.sum(left**2, axis=1), np.sum(right**2, axis=1)
        rounding = 4 * (X.shape[1] + 4) * np.finfo(float).eps * max(x.max(initial=0.0), y.max(initial=0.0))
        if not rounding <= CLOSE:
            return cls(X, Y, unit, None, None)
        left = np.column_stack([-2 * left, x, np.ones(len(X))])
        return cls(X, Y, unit, left, np.vstack([right.T, np.ones(len(Y)), y]))

    def __call__(self, rows: slice = slice(None), columns: slice = slice(None)) -> npt.NDArray[np.float32]:
        """Return the distances of some pairs of points, of shape (rows, columns)."""
        if self.left is None or self.right is None:
            with np.errstate(over="ignore"):
                return np.asarray((cdist(self.X[rows], self.Y[columns]) / self.unit).astype(np.float32))
        t = (self.left[rows] @ self.right[:, columns]).astype(np.float32)
        np.abs(t, out=t)  # rounding errors can make zero negative
        return np.asarray(np.sqrt(t, out=t))


def neighbourhood_weights(X: Array, Y: Array, bandwidth: float, kernel: Kernel) -> npt.NDArray[np.float32]:
    """Return the squares ``w^2`` for all pairs of points, of shape (n, m), in single precision.

    The relative error of each is about 1e-5. The computed ``C_k`` is therefore between ``(1 - 1e-5) C_k`` and
    ``(1 + 1e-5) C_k``, and the relative error of densities is within ``1e-5 d``.
    """
    return np.asarray(kernel(Distances.between(X, Y, bandwidth)()))


def neighbourhood_totals(X: Array, masses: Array, bandwidth: float, kernel: Kernel) -> Array:
    """Return ``sum_k' w_{kk'}^2 m_k'`` for all points, of shape (n,).

    A point is drawn with probability proportional to the root of its total, so that the totals of all points are
    needed. Each pair of points is computed once, in single precision (relative error below 1e-5), and pairs of blocks
    are processed by several threads. The result does not depend on the number of threads. If there are many points,
    sums are estimated from some of them (``_estimated_totals``).
    """
    if len(X) > MANY_POINTS:
        return _estimated_totals(X, masses, bandwidth, kernel)
    unit = masses.max()
    scaled = (masses / unit).astype(np.float32)
    blocks, distances = list(row_blocks(len(X), AT_ONCE, PAIRS)), Distances.between(X, X, bandwidth)

    def totals_with_later_blocks(number: int) -> Array:
        rows, totals = blocks[number], np.zeros(len(X))
        for columns in blocks[number:]:
            weights = kernel(distances(rows, columns))
            totals[rows] += weights @ scaled[columns]
            if columns is not rows:
                totals[columns] += scaled[rows] @ weights
        return totals

    return np.asarray(sum(in_threads(totals_with_later_blocks, range(len(blocks)))) * unit)


def _estimated_totals(X: Array, masses: Array, bandwidth: float, kernel: Kernel) -> Array:
    """Return ``w_{kk}^2 m_k`` plus an estimate of the sum over the other points, of shape (n,).

    Points are chosen in proportion to their masses, by equal steps along the cumulative sum; with ``s`` points, the
    estimate is ``(M - m_k) / s`` times the sum of their weights. The estimate is exact for bandwidths that reach no
    other point, and accurate for bandwidths that reach many. The neighbourhoods of drawn points are always exact.
    """
    cumulative = np.cumsum(masses)
    total, steps = cumulative[-1], (np.arange(NEIGHBOURS) + 0.5) / NEIGHBOURS
    picked = np.searchsorted(cumulative, steps * total)
    times = np.bincount(picked, minlength=len(X))
    own, distances = float(kernel(np.zeros(1))[0]), Distances.between(X, X[picked], bandwidth)

    def sums(rows: slice) -> Array:
        weights = kernel(distances(rows))
        return np.asarray(weights.sum(axis=1, dtype=float) - own * times[rows])  # without the point itself

    others = np.concatenate(in_threads(sums, row_blocks(len(X), NEIGHBOURS, PAIRS)))
    return np.asarray(own * masses + (total - masses) * np.maximum(others, 0.0) / np.maximum(NEIGHBOURS - times, 1))


def in_threads(function: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
    """Return the results of a function for each part, computed by several threads with one BLAS thread each."""
    parts = list(parts)
    with one_thread():
        if len(parts) == 1:  # starting threads takes longer than a small part
            return [function(parts[0])]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(function, parts))
