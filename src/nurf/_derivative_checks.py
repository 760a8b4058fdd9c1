"""Consistency of values and gradients, and estimates of their noise, from differences between neighbouring points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment, nnls
from scipy.spatial import cKDTree

from nurf._scaling import Scaling
from nurf._types import Array, Index
from nurf.jets import Jet

MAX_PAIRS = 4000  # number of pairs of nearest neighbours, and about the total number of pairs of other neighbours
RANKS = (1, 2, 4, 8, 16, 32, 64)  # a point is compared with its nearest, second nearest, ... neighbour
MAX_SEARCH_COST = 2 * 10**8  # number of distances times dimension, if a tree does not speed up the search
MIN_PAIRS = 4
MIN_SUBSET = 128  # points among which farther neighbours are searched
FEW_PAIRS = 12  # with at most so many pairs, a mistake may be found by chance
MANY_PAIRS = 50  # with more pairs, it is not
EXPLAINED = 0.5  # relative misfit below which the gradients explain the differences of the values
UNEXPLAINED = 0.9  # relative misfit above which the differences are not explained at all
EXACT = 0.1  # relative misfit below which no mistake is searched for
NOISE_BINS = 8
SMALL = 0.01  # relative noise that is not reported
TINY = float(np.finfo(float).tiny)
MEDIAN_OF_SQUARE = 0.4549  # median of the square of a standard normal variable


@dataclass(frozen=True)
class DerivativeCheck:
    """The result of ``check_derivatives``. For several outputs, that of the worst one, which the message names.

    Attributes
    ----------
    consistent : bool or None
        Whether the gradients explain the differences of the values; None if the data are not sufficient to decide.
    misfit : float
        Root mean square of ``f(x_j) - f(x_i) - (g_i + g_j).(x_j - x_i) / 2`` divided by that of ``f(x_j) - f(x_i)``,
        for nearest neighbours ``x_i, x_j``.
    message : str
        The result in words.
    value_noise : float
        Standard deviation of the noise in the values; NaN if it cannot be estimated.
    gradient_noise : float
        Standard deviation of the noise in the partial derivatives, each multiplied by the range of its input, so that
        it has the units of the values; NaN if it cannot be estimated. The noise is not estimated unless ``consistent``
        is True.
    """

    consistent: bool | None
    misfit: float
    message: str
    value_noise: float = np.nan
    gradient_noise: float = np.nan


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Differences between pairs of neighbours of the same rank, in scaled units.

    ``rows`` (p, 2) are the indices ``i, j`` of the points, ``rise`` (p,) is ``f(x_j) - f(x_i)``, ``slopes`` (p, d) is
    the mean of both gradients, ``steps`` (p, d) is ``x_j - x_i``. ``rise`` and ``steps`` are multiplied by ``weights``
    (p,).
    """

    rows: Index
    weights: Array
    rise: Array
    slopes: Array
    steps: Array

    @property
    def terms(self) -> Array:
        return self.slopes * self.steps

    @property
    def lengths(self) -> Array:
        return np.asarray(np.linalg.norm(self.steps, axis=1))

    def misfit(self, prediction: Array) -> float:
        return float(np.linalg.norm(self.rise - prediction)) / max(float(np.linalg.norm(self.rise)), TINY)

    def equalized(self) -> _Pairs:
        """Return a copy in which all pairs have similar influence: those with a large rise get small weights."""
        weights = 1 / np.maximum(np.abs(self.rise), np.median(np.abs(self.rise)) + TINY)
        return _Pairs(self.rows, weights, self.rise * weights, self.slopes, self.steps * weights[:, None])

    def wrong_factors(self) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return the best factors of the partial derivatives, and a mask of those that differ from 1, each (d,)."""
        units = np.abs(self.terms).max(axis=0)
        units[~(units > 0)] = 1.0
        terms = self.terms / units
        if not np.all(np.isfinite(terms)):
            return np.ones_like(units), np.zeros(len(units), dtype=bool)
        factors, *_ = np.linalg.lstsq(terms, self.rise, rcond=None)
        variance = np.sum((self.rise - terms @ factors) ** 2) / max(1, len(self.rise) - len(factors))
        errors = np.sqrt(variance * np.diag(np.linalg.pinv(terms.T @ terms)).clip(0))
        return factors / units, np.abs(factors / units - 1) > np.maximum(0.5, 4 * errors / units)


def check_derivatives(X: Any, y: Any, gradients: Any) -> DerivativeCheck:
    """Return whether gradients are consistent with the differences of the values between neighbouring points.

    By the trapezoidal rule ``f(x_j) - f(x_i) = (g_i + g_j).(x_j - x_i) / 2`` up to third order in the distance. If this
    does not hold, the gradients are compared again after multiplication by a factor, by a factor for each input, with
    permuted columns, and transposed, to find the mistake. If it holds, the residuals give the noise levels: the part
    due to noise in the values does not depend on the distance, the part due to noise in the gradients is proportional
    to it, and the error of the trapezoidal rule is of third order.

    Rows in which a value or a partial derivative is unknown are ignored.

    Parameters
    ----------
    X : array of shape (n, d)
        The points.
    y : array of shape (n,) or (n, k)
        The values.
    gradients : array of shape (n, d) or (n, k, d)
        The gradients.

    Returns
    -------
    DerivativeCheck

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    >>> gradients = np.column_stack([3 * np.cos(3 * X[:, 0]), 2 * X[:, 1]])
    >>> check_derivatives(X, y, gradients).consistent
    True
    >>> check_derivatives(X, y, -gradients).message
    'the gradients have the wrong sign'
    """
    jet = Jet(X, y, gradients)
    if jet.gradients is None:
        raise ValueError("`gradients` must be an array of shape (n, d) or (n, k, d), got None")
    if not len(jet):
        raise ValueError("`X` must have at least one row, got none")
    n, d = jet.X.shape
    usable = ~np.isnan(jet.gradients.reshape(n, -1)).any(axis=1) & ~np.isnan(jet.y.reshape(n, -1)).any(axis=1)
    part = "" if usable.all() else f" ({usable.sum()} of {n} rows are fully known)"
    tiers = _neighbours(jet[usable]) if usable.sum() > 1 else []
    if not tiers or len(tiers[0]) < MIN_PAIRS:
        pairs = len(tiers[0]) if tiers else 0
        return DerivativeCheck(None, np.nan, f"{pairs} pairs of neighbours are too few to tell{part}")
    X, values, slopes = jet.X[usable], jet.y[usable].reshape(-1, jet.y[0].size), jet.gradients[usable]
    slopes = slopes.reshape(len(X), -1, d)
    findings = []
    for output in range(values.shape[1]):
        with np.errstate(all="ignore"):  # a correction that overflows explains nothing
            found = _Output(X, values[:, output], slopes[:, output], tiers).finding()
        named = f"output {output}: {found.message}" if jet.y.ndim == 2 and values.shape[1] > 1 else found.message
        findings.append(replace(found, message=named + part))
    severity = {True: 0, None: 1, False: 2}
    return max(findings, key=lambda finding: (severity[finding.consistent], finding.misfit))


def _neighbours(jet: Jet) -> list[Index]:
    """Return arrays of pairs of rows (p, 2), without duplicates, from nearest to increasingly distant neighbours.

    There is one array for each of the ``RANKS``. More distant neighbours are searched among every 16th point, then
    among every 256th point, and so on.
    """
    n, d = jet.X.shape
    limit = n if d <= 6 else int(np.sqrt(MAX_SEARCH_COST / d))  # in many dimensions a tree compares all points
    kept = np.arange(n) if n <= limit else np.linspace(0, n - 1, limit).astype(int)
    points, first = np.unique(Scaling.fit(jet[kept], "box").inputs(jet.X[kept]), axis=0, return_index=True)
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


@dataclass(frozen=True, eq=False)
class _Output:
    """The check of one output: points (n, d), values (n,), gradients (n, d), and pairs of rows for each rank."""

    X: Array
    y: Array
    slopes: Array
    tiers: list[Index]

    def finding(self) -> DerivativeCheck:
        """Return the result for the nearest neighbours or, if they are dominated by noise, for more distant ones."""
        i, j = self.tiers[0].T
        if np.all(self.y[i] == self.y[j]):
            flat = bool(np.all(self.slopes == 0))
            return DerivativeCheck(flat or None, 0.0, "the values are constant along the data")
        tiers = [self.pairs(self.slopes, pairs) for pairs in self.tiers]
        misfits = [tier.misfit(tier.terms.sum(axis=1)) for tier in tiers]
        rises = [float(np.linalg.norm(tier.rise)) / np.sqrt(len(tier.rise)) for tier in tiers]
        for k, misfit in enumerate(misfits):
            # distant pairs tell more than near ones if their values differ more, for example if the values are noisy
            several = tiers[k : k + 3] if k == 0 or rises[k] > 1.5 * rises[0] else []
            if several and misfit > EXACT:
                mistake = self.mistake([pairs.equalized() for pairs in several]) or self.mistake(several)
                if mistake is not None:
                    return DerivativeCheck(False, misfits[0], mistake)
            # if the values are noisy, nearer pairs may have a large misfit, but must not contradict the gradients
            if misfit <= EXPLAINED and not any(pairs.wrong_factors()[1].any() for pairs in tiers[:k]):
                noise, words = self.noise(tiers)
                found = f"the gradients explain the values: relative misfit {misfits[0]:.2g}"
                return DerivativeCheck(True, misfits[0], found + words, *noise)
        found = f"the gradients do not explain the values: relative misfit {misfits[0]:.2g}, and no factor corrects it"
        reasons = "noise, too few points for a rough function, or wrong columns"
        return DerivativeCheck(None, misfits[0], f"{found} ({reasons})")

    @cached_property
    def value_std(self) -> float:
        """The standard deviation of the values."""
        unit = float(np.abs(self.y).max())
        return float(np.std(self.y / unit)) * unit

    @cached_property
    def ranges(self) -> Array:
        """The range of each input, or 1 if it is zero, of shape (d,)."""
        extent = self.X.max(axis=0) - self.X.min(axis=0)
        return np.where(extent > 0, extent, 1.0)

    def pairs(self, slopes: Array, rows: Index) -> _Pairs:
        """Return the differences between the pairs of ``rows`` (p, 2), with the gradients ``slopes`` (n, d)."""
        i, j = rows.T
        rise, steps = (self.y[j] - self.y[i]) / self.value_std, (self.X[j] - self.X[i]) / self.ranges
        means = (slopes[i] / 2 + slopes[j] / 2) * self.ranges / self.value_std
        return _Pairs(rows, np.ones(len(rows)), rise, means, steps)

    def mistake(self, tiers: list[_Pairs]) -> str | None:
        """Return a message about the mistake in the gradients that explains the first of the ``tiers``, or None."""
        near, far = tiers[0], tiers[-1]
        given = near.misfit(near.terms.sum(axis=1))
        n_pairs = float(np.sum(near.rise**2) ** 2 / np.sum(near.rise**4))  # effective number of pairs
        growth = float(np.median((far.lengths / far.weights) ** 2) / np.median((near.lengths / near.weights) ** 2))
        best, words = min(EXPLAINED, given / (2 if n_pairs > MANY_PAIRS else 3)), None
        for mistake in self.possible_mistakes(near):
            if n_pairs <= max(3 * (mistake.n_fitted + 1), FEW_PAIRS):
                continue
            corrected = near.misfit(mistake.prediction(near)) * np.sqrt(n_pairs / (n_pairs - mistake.n_fitted))
            limit = min(best, given / 10, EXACT / 2) if mistake.is_mild else best
            # a mistake is the same at all distances; the error of the trapezoidal rule grows with their square
            far_limit = min(UNEXPLAINED, 3 * corrected * growth + EXACT)
            if corrected < limit and far.misfit(mistake.prediction(far)) < far_limit:
                best, words = corrected / 1.5 - 0.05, mistake.words
        return words

    def possible_mistakes(self, near: _Pairs) -> Iterator[_Mistake]:
        """Yield possible mistakes, simple ones first."""
        n, d = self.slopes.shape
        if n == d:
            yield _Mistake("the gradients are transposed", 0, transposed=replace(self, slopes=self.slopes.T))
        deviations = (self.X / self.ranges).std(axis=0) * self.ranges
        scales = {
            "the range": self.ranges,
            "half the range": self.ranges / 2,
            "the standard deviation": np.where(deviations > 0, deviations, 1.0),
        }
        line = near.terms.sum(axis=1)
        factor = float(line @ near.rise / max(float(line @ line), TINY))
        known = {f"one over {name} of the inputs": float(1 / scale.mean()) for name, scale in scales.items()}
        known |= {f"{name} of the inputs": float(scale.mean()) for name, scale in scales.items()}
        known["the standard deviation of the values"] = self.value_std
        hints = [name for name, number in known.items() if abs(factor / number - 1) < 0.02]
        found = f"the gradients must be multiplied by {factor:.3g}" + (f": {' or '.join(hints)}?" if hints else "")
        found = "the gradients have the wrong sign" if abs(factor + 1) < 0.5 else found
        yield _Mistake(found, 1, factors=np.full(d, factor))
        for name, scale in scales.items():
            if scale.max() > 1.2 * scale.min():  # otherwise it is the same as one factor
                found = f"the gradients are with respect to scaled inputs: divide each by {name} of its input"
                yield _Mistake(found, 1, factors=1 / scale)
                yield _Mistake(f"the gradients must be multiplied by {name} of each input", 1, factors=scale)
        order = _order(near, self.ranges)
        moved = [f"column {order[k]} belongs to input {k}" for k in range(d) if order[k] != k]
        found = f"the columns of the gradients are in another order: {', '.join(moved)}"
        yield _Mistake(found, len(moved), order=order, factors=self.ranges / self.ranges[order])
        factors, wrong = near.wrong_factors()
        named = ", ".join(f"{k} by {factors[k]:.3g}" for k in np.flatnonzero(wrong))
        found = f"partial derivatives have wrong units or signs: multiply that of input {named}"
        yield _Mistake(found, d, factors=np.where(wrong, factors, 1.0))

    def noise(self, tiers: list[_Pairs]) -> tuple[list[float], str]:
        """Return the noise of values and gradients, in the units of the values, and a text for the message.

        The mean square misfit at distance ``h`` is ``2 s^2 + t^2 h^2 / 2`` plus terms of higher order, where ``s`` and
        ``t`` are the standard deviations of the noise in values and scaled partial derivatives. The coefficients are
        fitted to the medians in bins of the distance, by nonnegative least squares.
        """
        squares = np.concatenate([tier.rise - tier.terms.sum(axis=1) for tier in tiers]) ** 2
        steps = np.concatenate([(tier.steps**2).sum(axis=1) for tier in tiers])
        bins = [part for part in np.array_split(np.argsort(steps), NOISE_BINS) if len(part)]
        h2 = np.array([np.median(steps[part]) for part in bins])
        misfits = np.array([np.median(squares[part]) for part in bins]) / MEDIAN_OF_SQUARE + 1e-24
        if len(squares) < 10 * NOISE_BINS or not np.all(np.isfinite(misfits)):
            return [np.nan, np.nan], ""
        columns = np.column_stack([np.full_like(h2, 2.0), h2 / 2, h2**2, h2**3]) / misfits[:, None]
        lengths = np.linalg.norm(columns, axis=0)
        value, slope, *_ = nnls(columns / lengths, np.ones_like(misfits))[0] / lengths
        size = float(np.mean(np.concatenate([tier.slopes for tier in tiers]) ** 2))
        logs = np.log(h2[:4]) - np.log(h2[:4]).mean()
        power = logs @ np.log(misfits[:4]) / (logs @ logs)  # of h^2, for the nearer half of the bins; NaN on a grid
        # noise is reported if it dominates the misfit, grows as expected, and is smaller than the values or gradients
        flat = 2 * value > misfits[0] / 2 and power < 0.4 and 4 * misfits[0] < np.mean(tiers[-1].rise ** 2)
        linear = slope * h2[1] > misfits[1] and 0.6 < power < 1.4 and slope < size / 4 and h2[-1] > 9 * h2[0]
        words, noise = "", [np.nan, np.nan]
        if flat or misfits[0] < 2 * SMALL**2:
            noise[0] = float(np.sqrt(value)) * self.value_std
            if np.sqrt(value) > SMALL / 2:
                words = f"; the values are noisy: about {100 * np.sqrt(value):.2g}% of their standard deviation"
        if linear or misfits[0] < SMALL**2 * size * h2[0] / 2:
            noise[1] = float(np.sqrt(slope)) * self.value_std
            if slope > SMALL**2 / 4 * size:
                words += f"; the gradients are noisy: about {100 * np.sqrt(slope / size):.2g}% of their size"
        return noise, words


@dataclass(frozen=True, eq=False)
class _Mistake:
    """A possible mistake in the gradients, the number of parameters fitted to find it, and its correction."""

    words: str
    n_fitted: int
    factors: Array | None = None
    order: Index | None = None
    transposed: _Output | None = None

    @property
    def is_mild(self) -> bool:
        """Whether it changes partial derivatives by a factor of at most 3 / 2."""
        return (
            self.factors is not None
            and self.order is None
            and bool(np.all(np.abs(np.log(np.maximum(self.factors, TINY))) < np.log(1.5)))
        )

    def prediction(self, pairs: _Pairs) -> Array:
        """Return the differences of the values as predicted by the corrected gradients, of shape (p,)."""
        if self.transposed is not None:
            terms = self.transposed.pairs(self.transposed.slopes, pairs.rows).terms
            return np.asarray(terms.sum(axis=1) * pairs.weights)
        slopes = pairs.slopes if self.order is None else pairs.slopes[:, self.order]
        return np.asarray((slopes * pairs.steps) @ (np.ones(slopes.shape[1]) if self.factors is None else self.factors))


def _order(pairs: _Pairs, ranges: Array) -> Index:
    """Return the column of the gradients that fits each input best, of shape (d,).

    Steps along different inputs are nearly uncorrelated, so the squared misfit is approximately a sum over inputs, and
    the best order solves a linear assignment problem.
    """
    slopes, steps = pairs.slopes / ranges, pairs.steps * ranges  # each column has its own units
    gain = 2 * (slopes * pairs.rise[:, None]).T @ steps - (slopes**2).T @ (steps**2)
    total = float(np.sum(pairs.rise**2))
    gain = np.nan_to_num(gain, nan=-np.inf).clip(-10 * total, None)  # large misfits must not hide the others
    gain[np.diag_indices_from(gain)] += 0.01 * total / len(gain)  # inputs without influence keep their column
    columns, inputs = linear_sum_assignment(gain, maximize=True)
    return np.asarray(columns[np.argsort(inputs)])
