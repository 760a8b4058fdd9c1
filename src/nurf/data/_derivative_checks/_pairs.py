"""Pairs of neighbouring points, and the differences between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from nurf._scaling import Scaling
from nurf._types import Array, Index, Mask
from nurf.jets import unchecked

MAX_PAIRS = 4000  # number of pairs of nearest neighbours, and about the total number of pairs of other neighbours
RANKS = (1, 2, 4, 8, 16, 32, 64)  # a point is compared with its nearest, second nearest, ... neighbour
MAX_SEARCH_COST = 2 * 10**8  # number of distances times dimension, if a tree does not speed up the search
MIN_SUBSET = 128  # points among which farther neighbours are searched
ROWS_PER_NUISANCE = 6  # pairs for each number that is fitted to an input with unknown derivatives
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Samples:
    """One output: points (n, d), values (n,) and gradients (n, d), with a mask (d,) of inputs without derivatives.

    Gradients are zero for such inputs, and NaN where single partial derivatives are unknown.
    """

    X: Array
    y: Array
    slopes: Array
    unknown: Mask

    @cached_property
    def value_std(self) -> float:
        """The standard deviation of the values, or 1 if it is zero."""
        unit = float(np.abs(self.y).max()) or 1.0
        return float(np.std(self.y / unit)) * unit or 1.0

    @cached_property
    def ranges(self) -> Array:
        """The range of each input, or 1 if it is zero, of shape (d,)."""
        extent = self.X.max(axis=0) - self.X.min(axis=0)
        return np.where(extent > 0, extent, 1.0)

    @cached_property
    def deviations(self) -> Array:
        """The standard deviation of each input, or 1 if it is zero, of shape (d,)."""
        found = (self.X / self.ranges).std(axis=0) * self.ranges
        return np.where(found > 0, found, 1.0)

    def pairs(self, rows: Index) -> Pairs:
        """Return the differences between the pairs of ``rows`` (p, 2), without pairs of unknown slope."""
        i, j = rows.T
        i, j = rows[~np.isnan(_mean(self.slopes[i], self.slopes[j])).any(axis=1)].T
        rise, steps = (self.y[j] - self.y[i]) / self.value_std, (self.X[j] - self.X[i]) / self.ranges
        slopes = _mean(self.slopes[i], self.slopes[j]) * self.ranges / self.value_std
        middles = ((self.X[i] / 2 + self.X[j] / 2) - self.X.mean(axis=0)) / self.ranges
        extra = _nuisances(steps, middles, self.unknown)
        return Pairs(np.column_stack([i, j]), np.ones(len(i)), rise, slopes, steps, extra)

    def corrected(self, pairs: Pairs, slopes: Array) -> Pairs:
        """Return the same pairs with other gradients (n, d)."""
        i, j = pairs.rows.T
        known = np.where(np.isfinite(slopes), slopes, np.nan)
        return replace(pairs, slopes=_mean(known[i], known[j]) * self.ranges / self.value_std)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Differences between pairs of neighbours of the same rank, in scaled units.

    ``rows`` (p, 2) are the indices ``i, j`` of the points, ``rises`` (p,) is ``f(x_j) - f(x_i)``, ``slopes`` (p, d) is
    the mean of both gradients, ``steps`` (p, d) is ``x_j - x_i``. ``rises``, ``steps`` and ``extra`` are multiplied by
    ``weights`` (p,). The columns of ``extra`` (p, m) may be in the rises in any amount: they stand for the influence of
    inputs without derivatives.
    """

    rows: Index
    weights: Array
    rises: Array
    slopes: Array
    steps: Array
    extra: Array

    @cached_property
    def rise(self) -> Array:
        """The rises without what the extra columns explain, of shape (p,)."""
        return self._cleaned(self.rises)

    @cached_property
    def terms(self) -> Array:
        """The rises along each input that the gradients predict, without what the extra columns explain, (p, d)."""
        return self._cleaned(self.slopes * self.steps)

    @property
    def lengths(self) -> Array:
        """The distances of the points, of shape (p,)."""
        return np.asarray(np.linalg.norm(self.steps, axis=1))

    @property
    def misfit(self) -> float:
        """The root mean square of what the gradients do not predict, relative to that of the rises."""
        return self.misfit_of(self.terms.sum(axis=1))

    @cached_property
    def count(self) -> float:
        """The effective number of pairs: fewer if few of them have a large rise or misfit, or if much was fitted."""
        residual = self.rise - self.terms.sum(axis=1)
        return min(_effective_number(self.rise), _effective_number(residual)) - float(self.extra.shape[1])

    def misfit_of(self, prediction: Array) -> float:
        """Return the relative misfit of a prediction (p,) of the rises."""
        return float(np.linalg.norm(self.rise - prediction)) / max(float(np.linalg.norm(self.rise)), TINY)

    def equalized(self) -> Pairs:
        """Return a copy in which all pairs have similar influence: those with a large rise get small weights."""
        weights = 1 / np.maximum(np.abs(self.rise), np.median(np.abs(self.rise)) + TINY)
        scaled = {name: getattr(self, name) * weights[:, None] for name in ("steps", "extra")}
        return replace(self, weights=weights, rises=self.rises * weights, **scaled)

    def factors(self, columns: Index) -> tuple[Array, Array]:
        """Return the best factors of the partial derivatives of some inputs, and their standard errors, each (m,).

        The other partial derivatives are taken as they are.
        """
        terms = self.terms[:, columns]
        units = np.abs(terms).max(axis=0)
        units[~(units > 0)] = 1.0
        rest = self.rise - np.delete(self.terms, columns, axis=1).sum(axis=1)
        scaled = terms / units
        if not (np.all(np.isfinite(scaled)) and np.all(np.isfinite(rest))):
            return np.ones(len(columns)), np.zeros(len(columns))
        factors, *_ = np.linalg.lstsq(scaled, rest, rcond=None)
        variance = np.sum((rest - scaled @ factors) ** 2) / max(1, len(rest) - len(columns))
        errors = np.sqrt(variance * np.diag(np.linalg.pinv(scaled.T @ scaled)).clip(0))
        return factors / units, errors / units

    def wrong_factors(self) -> tuple[Array, Mask]:
        """Return the best factors of all partial derivatives, and a mask of those that differ from 1, each (d,)."""
        factors, errors = self.factors(np.arange(self.steps.shape[1]))
        return factors, np.abs(factors - 1) > np.maximum(0.5, 4 * errors)

    def _cleaned(self, columns: Array) -> Array:
        if not self.extra.shape[1]:
            return columns
        basis, _ = np.linalg.qr(self.extra)
        return np.asarray(columns - basis @ (basis.T @ columns))


def neighbours(X: Array) -> list[Index]:
    """Return arrays of pairs of rows (p, 2), without duplicates, from nearest to increasingly distant neighbours.

    There is one array for each of the ``RANKS``. More distant neighbours are searched among every 16th point, then
    among every 256th point, and so on.
    """
    n, d = X.shape
    limit = n if d <= 6 else int(np.sqrt(MAX_SEARCH_COST / d))  # in many dimensions a tree compares all points
    kept = np.arange(n) if n <= limit else np.linspace(0, n - 1, limit).astype(int)
    box = Scaling.fit(unchecked(X[kept], np.zeros(len(kept))), "box")
    points, first = np.unique(box.inputs(X[kept]), axis=0, return_index=True)
    rows, ranks = kept[first], list(RANKS)
    tiers: list[Index] = []
    while len(points) >= (MIN_SUBSET if tiers else 2):
        tree = cKDTree(points)
        for rank in ranks:
            if rank >= max(len(points) / 4, min(len(points), 9)):
                break
            count = MAX_PAIRS if rank == 1 else MAX_PAIRS // len(RANKS)
            queries = np.unique(np.linspace(0, len(points) - 1, count).astype(int))
            _, nearest = tree.query(points[queries], k=[rank + 1])
            pairs = np.sort(rows[np.column_stack([queries, nearest[:, 0]])], axis=1)
            tiers.append(np.unique(pairs, axis=0).astype(np.int64))
        points, rows, ranks = points[::16], rows[::16], list(RANKS[3:])
    return tiers


def _effective_number(numbers: Array) -> float:
    """Return how many numbers make up the sum of squares: all if they have the same size, 1 if one is far larger."""
    squares = (numbers / max(float(np.abs(numbers).max()), TINY)) ** 2
    return float(squares.sum() ** 2 / max(float(np.sum(squares**2)), TINY))


def _mean(a: Array, b: Array) -> Array:
    """Return the mean of two arrays of slopes, and one of them where the other is unknown."""
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, a / 2 + b / 2))


def _nuisances(steps: Array, middles: Array, unknown: Mask) -> Array:
    """Return what inputs without derivatives may add to the rises, of shape (p, m).

    The slope along such an input is a polynomial of the input, plus a linear function of the others. If the pairs are
    few, it has fewer terms.
    """
    columns = [steps[:, [k]] * middles[:, [k]] ** power for power in range(3) for k in np.flatnonzero(unknown)]
    columns += [steps[:, [k]] * np.delete(middles, k, axis=1) for k in np.flatnonzero(unknown)]
    found = np.concatenate([np.empty((len(steps), 0)), *columns], axis=1)
    return np.asarray(found[:, : max(int(unknown.sum()), len(steps) // ROWS_PER_NUISANCE)])
