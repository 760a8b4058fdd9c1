"""Do the gradients belong to the values? Finite differences along the data tell, and how noisy both are."""

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

MAX_PAIRS = 4000  # of nearest neighbours; farther ones are as many in all
RANKS = (1, 2, 4, 8, 16, 32, 64)  # the neighbours that are compared with a point, by their distance
SEARCHED = 2 * 10**8  # distances times dimension that a search for neighbours may cost where a tree does not help
FEWEST_PAIRS = 4
FEWEST_THINNED = 128  # points among which farther neighbours are looked for
FEW_PAIRS = 12  # with which chance may find a mistake
MANY_PAIRS = 50  # with which it does not
EXPLAINED = 0.5  # relative misfit below which gradients are taken to explain the differences of the values
UNEXPLAINED = 0.9  # relative misfit above which differences are not explained at all
EXACT = 0.1  # relative misfit below which nothing can be mended
NOISE_BINS = 8
SMALL = 0.01  # noise that need not be told from none, in units of the spread
TINY = float(np.finfo(float).tiny)
MEDIAN_OF_SQUARE = 0.4549  # of a standard normal variable


@dataclass(frozen=True)
class DerivativeCheck:
    """What ``check_derivatives`` found; of several outputs, at the one that the message names.

    Attributes
    ----------
    consistent : bool or None
        Whether the gradients explain the differences of the values; None where the data cannot tell.
    misfit : float
        Root mean square of ``f(x_j) - f(x_i) - (g_i + g_j).(x_j - x_i) / 2`` over that of ``f(x_j) - f(x_i)``, for
        nearest neighbours ``x_i, x_j``.
    message : str
        The finding in words.
    value_noise : float
        Standard deviation of the noise of the values; NaN where the data cannot tell.
    gradient_noise : float
        Standard deviation of the noise of the partial derivatives, each times the range of its input, so that it has
        the units of the values; NaN where the data cannot tell. Neither is told beside a mistake.
    """

    consistent: bool | None
    misfit: float
    message: str
    value_noise: float = np.nan
    gradient_noise: float = np.nan


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Differences along pairs of points at one distance, in scaled units: what the gradients should explain.

    ``rise`` (p,) is ``f(x_j) - f(x_i)``, ``slopes`` (p, d) the means of both gradients, ``steps`` (p, d) is
    ``x_j - x_i``; ``rows`` (p, 2) are the points, ``weights`` (p,) is what ``rise`` and ``steps`` were multiplied by.
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

    def levelled(self) -> _Pairs:
        """Give all pairs a like weight, so that no single one decides."""
        weights = 1 / np.maximum(np.abs(self.rise), np.median(np.abs(self.rise)) + TINY)
        return _Pairs(self.rows, weights, self.rise * weights, self.slopes, self.steps * weights[:, None])

    def wrong_factors(self) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return the factors of the partial derivatives that explain the values best, and which are not one."""
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
    """Compare gradients with differences of the values between neighbouring points.

    By the trapezoidal rule ``f(x_j) - f(x_i) = (g_i + g_j).(x_j - x_i) / 2`` up to third order in the distance. Where
    that fails, the same comparison with a factor, a factor for each input, the columns in another order or the
    transposed gradients shows which mistake was made. What is left over tells the noise: that of values does not shrink
    with the distance, that of gradients is proportional to it, and curvature is of third order.

    Rows whose values or gradients are not fully known are left out.

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
    assert jet.gradients is not None
    n, d = jet.X.shape
    usable = ~np.isnan(jet.gradients.reshape(n, -1)).any(axis=1) & ~np.isnan(jet.y.reshape(n, -1)).any(axis=1)
    part = "" if usable.all() else f" ({usable.sum()} of {n} rows are fully known)"
    tiers = _neighbours(jet[usable]) if usable.sum() > 1 else []
    if not tiers or len(tiers[0]) < FEWEST_PAIRS:
        pairs = len(tiers[0]) if tiers else 0
        return DerivativeCheck(None, np.nan, f"{pairs} pairs of neighbours are too few to tell{part}")
    X, values, slopes = jet.X[usable], jet.y[usable].reshape(-1, jet.y[0].size), jet.gradients[usable]
    slopes = slopes.reshape(len(X), -1, d)
    findings = []
    for output in range(values.shape[1]):
        with np.errstate(all="ignore"):  # a suspect that overflows explains nothing
            found = _Output(X, values[:, output], slopes[:, output], tiers).finding()
        named = f"output {output}: {found.message}" if jet.y.ndim == 2 and values.shape[1] > 1 else found.message
        findings.append(replace(found, message=named + part))
    severity = {True: 0, None: 1, False: 2}
    return max(findings, key=lambda finding: (severity[finding.consistent], finding.misfit))


def _neighbours(jet: Jet) -> list[Index]:
    """Return pairs of rows, each once, of shape (p, 2), from nearest neighbours to ever farther ones.

    They are neighbours of each of the ``RANKS``; farther ones are found among every 16th point, and so on.
    """
    n, d = jet.X.shape
    most = n if d <= 6 else int(np.sqrt(SEARCHED / d))  # in many dimensions a tree compares all points
    kept = np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(int)
    points, first = np.unique(Scaling.fit(jet[kept], "box").inputs(jet.X[kept]), axis=0, return_index=True)
    rows, ranks = kept[first], list(RANKS)
    tiers: list[Index] = []
    while len(points) >= (FEWEST_THINNED if tiers else 2):
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
    """One output: points (n, d), values (n,), gradients (n, d), and pairs of rows for each rank of neighbours."""

    X: Array
    y: Array
    slopes: Array
    tiers: list[Index]

    def finding(self) -> DerivativeCheck:
        """Judge the nearest neighbours, and where noise hides what they tell, those farther off."""
        i, j = self.tiers[0].T
        if np.all(self.y[i] == self.y[j]):
            flat = bool(np.all(self.slopes == 0))
            return DerivativeCheck(flat or None, 0.0, "the values are constant along the data")
        tiers = [self.pairs(self.slopes, pairs) for pairs in self.tiers]
        misfits = [tier.misfit(tier.terms.sum(axis=1)) for tier in tiers]
        rises = [float(np.linalg.norm(tier.rise)) / np.sqrt(len(tier.rise)) for tier in tiers]
        for k, misfit in enumerate(misfits):
            # farther pairs tell more where their values differ more, as beside noise
            several = tiers[k : k + 3] if k == 0 or rises[k] > 1.5 * rises[0] else []
            if several and misfit > EXACT:
                mistake = self.mistake([pairs.levelled() for pairs in several]) or self.mistake(several)
                if mistake is not None:
                    return DerivativeCheck(False, misfits[0], mistake)
            # beside noise nearer pairs explain little, but what they tell must not contradict the gradients
            if misfit <= EXPLAINED and not any(pairs.wrong_factors()[1].any() for pairs in tiers[:k]):
                noise, words = self.noise(tiers)
                found = f"the gradients explain the values: relative misfit {misfits[0]:.2g}"
                return DerivativeCheck(True, misfits[0], found + words, *noise)
        found = f"the gradients do not explain the values: relative misfit {misfits[0]:.2g}, and no factor mends it"
        reasons = "noise, too few points for a rough function, or wrong columns"
        return DerivativeCheck(None, misfits[0], f"{found} ({reasons})")

    @cached_property
    def spread(self) -> float:
        unit = float(np.abs(self.y).max())
        return float(np.std(self.y / unit)) * unit

    @cached_property
    def ranges(self) -> Array:
        extent = self.X.max(axis=0) - self.X.min(axis=0)
        return np.where(extent > 0, extent, 1.0)

    def pairs(self, slopes: Array, rows: Index) -> _Pairs:
        i, j = rows.T
        rise, steps = (self.y[j] - self.y[i]) / self.spread, (self.X[j] - self.X[i]) / self.ranges
        return _Pairs(
            rows, np.ones(len(rows)), rise, (slopes[i] / 2 + slopes[j] / 2) * self.ranges / self.spread, steps
        )

    def mistake(self, tiers: list[_Pairs]) -> str | None:
        """Name the mistake that keeps the gradients from explaining the nearest of some pairs, if there is one."""
        near, far = tiers[0], tiers[-1]
        given = near.misfit(near.terms.sum(axis=1))
        n_pairs = float(np.sum(near.rise**2) ** 2 / np.sum(near.rise**4))  # by their share in the sum of squares
        growth = float(np.median((far.lengths / far.weights) ** 2) / np.median((near.lengths / near.weights) ** 2))
        best, words = min(EXPLAINED, given / (2 if n_pairs > MANY_PAIRS else 3)), None
        for suspect in self.suspects(near):
            if n_pairs <= max(3 * (suspect.n_numbers + 1), FEW_PAIRS):
                continue
            left = near.misfit(suspect.explains(near)) * np.sqrt(n_pairs / (n_pairs - suspect.n_numbers))
            limit = min(best, given / 10, EXACT / 2) if suspect.is_mild else best
            # a mistake is the same at all distances, the error of the trapezoidal rule grows with their square
            if left < limit and far.misfit(suspect.explains(far)) < min(UNEXPLAINED, 3 * left * growth + EXACT):
                best, words = left / 1.5 - 0.05, suspect.words
        return words

    def suspects(self, near: _Pairs) -> Iterator[_Suspect]:
        """Yield mistakes that can be made, the simple ones first."""
        n, d = self.slopes.shape
        if n == d:
            yield _Suspect("the gradients are transposed", 0, turned=replace(self, slopes=self.slopes.T))
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
        known["the standard deviation of the values"] = self.spread
        hints = [name for name, number in known.items() if abs(factor / number - 1) < 0.02]
        found = f"the gradients must be multiplied by {factor:.3g}" + (f": {' or '.join(hints)}?" if hints else "")
        found = "the gradients have the wrong sign" if abs(factor + 1) < 0.5 else found
        yield _Suspect(found, 1, factors=np.full(d, factor))
        for name, scale in scales.items():
            if scale.max() > 1.2 * scale.min():  # else it is one factor
                found = f"the gradients are with respect to scaled inputs: divide each by {name} of its input"
                yield _Suspect(found, 1, factors=1 / scale)
                yield _Suspect(f"the gradients must be multiplied by {name} of each input", 1, factors=scale)
        order = _order(near, self.ranges)
        moved = [f"column {order[k]} belongs to input {k}" for k in range(d) if order[k] != k]
        found = f"the columns of the gradients are in another order: {', '.join(moved)}"
        yield _Suspect(found, len(moved), order=order, factors=self.ranges / self.ranges[order])
        factors, wrong = near.wrong_factors()
        named = ", ".join(f"{k} by {factors[k]:.3g}" for k in np.flatnonzero(wrong))
        found = f"partial derivatives must be multiplied, that of input {named}: other units, or signs?"
        yield _Suspect(found, d, factors=np.where(wrong, factors, 1.0))

    def noise(self, tiers: list[_Pairs]) -> tuple[list[float], str]:
        """Estimate the noise of values and gradients, in the units of the values, and say so in words.

        The mean square misfit at the distance ``h`` is ``2 s^2 + t^2 h^2 / 2`` with the standard deviations ``s`` of
        values and ``t`` of scaled partial derivatives, and terms of higher order. Its medians in bins of the distance
        are fitted with such coefficients >= 0.
        """
        squares = np.concatenate([tier.rise - tier.terms.sum(axis=1) for tier in tiers]) ** 2
        steps = np.concatenate([(tier.steps**2).sum(axis=1) for tier in tiers])
        bins = [part for part in np.array_split(np.argsort(steps), NOISE_BINS) if len(part)]
        h2 = np.array([np.median(steps[part]) for part in bins])
        misfits = np.array([np.median(squares[part]) for part in bins]) / MEDIAN_OF_SQUARE + 1e-24
        if len(squares) < 10 * NOISE_BINS or not np.all(np.isfinite(misfits)):
            return [np.nan, np.nan], ""
        columns = np.column_stack([np.full_like(h2, 2.0), h2 / 2, h2**2, h2**3])
        (value, slope, *_), _ = nnls(columns / misfits[:, None], np.ones_like(misfits))
        size = float(np.mean(np.concatenate([tier.slopes for tier in tiers]) ** 2))
        logs = np.log(h2[:4]) - np.log(h2[:4]).mean()
        power = logs @ np.log(misfits[:4]) / (logs @ logs)  # of h^2, among the nearer half; NaN on a grid
        # told where it is the larger part of the misfit, grows as it should, and is little beside what it is noise of
        flat = 2 * value > misfits[0] / 2 and power < 0.4 and 4 * misfits[0] < np.mean(tiers[-1].rise ** 2)
        linear = slope * h2[1] > misfits[1] and 0.6 < power < 1.4 and slope < size / 4 and h2[-1] > 9 * h2[0]
        words, noise = "", [np.nan, np.nan]
        if flat or misfits[0] < 2 * SMALL**2:
            noise[0] = float(np.sqrt(value)) * self.spread
            if np.sqrt(value) > SMALL / 2:
                words = f"; the values are noisy: about {100 * np.sqrt(value):.2g}% of their spread"
        if linear or misfits[0] < SMALL**2 * size * h2[0] / 2:
            noise[1] = float(np.sqrt(slope)) * self.spread
            if slope > SMALL**2 / 4 * size:
                words += f"; the gradients are noisy: about {100 * np.sqrt(slope / size):.2g}% of their size"
        return noise, words


@dataclass(frozen=True, eq=False)
class _Suspect:
    """A mistake in words, how many numbers were fitted to find it, and what undoes it."""

    words: str
    n_numbers: int
    factors: Array | None = None
    order: Index | None = None
    turned: _Output | None = None

    @property
    def is_mild(self) -> bool:
        """Whether it changes no partial derivative by more than a factor of 3 / 2."""
        return (
            self.factors is not None
            and self.order is None
            and bool(np.all(np.abs(np.log(np.maximum(self.factors, TINY))) < np.log(1.5)))
        )

    def explains(self, pairs: _Pairs) -> Array:
        """Return the differences of the values if this is the mistake."""
        if self.turned is not None:
            return np.asarray(self.turned.pairs(self.turned.slopes, pairs.rows).terms.sum(axis=1) * pairs.weights)
        slopes = pairs.slopes if self.order is None else pairs.slopes[:, self.order]
        return np.asarray((slopes * pairs.steps) @ (np.ones(slopes.shape[1]) if self.factors is None else self.factors))


def _order(pairs: _Pairs, ranges: Array) -> Index:
    """Return which column of the gradients goes best with each input.

    Steps along different inputs are nearly uncorrelated, so that the squared misfit is a sum over inputs, and the best
    order is an assignment.
    """
    slopes, steps = pairs.slopes / ranges, pairs.steps * ranges  # a column in the place of another has its own units
    gain = 2 * (slopes * pairs.rise[:, None]).T @ steps - (slopes**2).T @ (steps**2)
    total = float(np.sum(pairs.rise**2))
    gain = np.nan_to_num(gain, nan=-np.inf).clip(-10 * total, None)  # what cannot be right must not drown the rest
    gain[np.diag_indices_from(gain)] += 0.01 * total / len(gain)  # inputs that do not matter stay
    columns, inputs = linear_sum_assignment(gain, maximize=True)
    return np.asarray(columns[np.argsort(inputs)])
