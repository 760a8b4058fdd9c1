"""Calibrated intervals and standard deviations from leave-one-out errors."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.stats import norm, t

from nurf._types import Array
from nurf.solvers._draws import Difference

MIN_ERRORS = 3  # fewer errors give no estimate of their spread
LEVEL = 0.9  # standard deviations are calibrated to contain this share of the errors


class Uncertainty(Protocol):
    """The uncertainty of a fit, for all engines."""

    @property
    def knows_gradients(self) -> bool:
        """Whether standard deviations of gradients are calibrated with errors of gradients."""
        ...

    def value_std(self, X: Array) -> Array:
        """Return the standard deviation of a new measurement at the points, noise included, of shape (n, k)."""
        ...

    def gradient_std(self, X: Array) -> Array:
        """Return the standard deviation of a new measurement of the gradient at the points, of shape (n, k, d)."""
        ...

    def interval(self, X: Array, coverage: float) -> Array:
        """Return intervals that contain a new measurement with probability ``coverage``, of shape (n, k, 2)."""
        ...

    def draws(self, n: int, rng: np.random.Generator) -> tuple[Difference, ...]:
        """Return the differences of ``n`` plausible functions from the fit."""
        ...


def require_errors(n: int) -> None:
    """Raise an error if there are too few samples to estimate errors."""
    if n < MIN_ERRORS:
        raise ValueError(
            f"standard deviations and intervals need at least {MIN_ERRORS} samples with a value, got {n}: with fewer, "
            "nothing is known about the error"
        )


def normal_interval(values: Array, deviations: Array, coverage: float) -> Array:
    """Return quantiles of normal distributions with standard deviations (n, k) as intervals, of shape (n, k, 2)."""
    half = norm.ppf((1 + coverage) / 2) * deviations
    values = values.reshape(half.shape)
    return np.stack([values - half, values + half], axis=-1)


def effective_number(weights: Array) -> float:
    """Return the effective sample size ``(sum w)^2 / sum w^2`` of a weighted mean (Kish 1965)."""
    return float(np.sum(weights) ** 2 / np.sum(weights**2))


def standard_error(n: float) -> float:
    """Return the relative standard error of a root mean square of ``n`` normal errors.

    If the squares are weighted, ``n`` is the effective number of the weights.
    """
    return float(1 / np.sqrt(2 * n))


def plus_interval(
    predictions: Array, errors: Array, coverage: float, effective: float = np.inf, added: Array | float = 0.0
) -> Array:
    """Return quantiles of the union of ``predictions - errors`` and ``predictions + errors``, of shape (n, k, 2).

    If no ``predictions - errors`` is above the upper end, and no ``predictions + errors`` below the lower end, the
    result equals the intervals of the jackknife+ and of CV+ (Barber, Candes, Ramdas, Tibshirani, Annals of Statistics
    49, 2021), which take the two quantiles separately. Otherwise the result contains these intervals, whose lower
    ends are above the upper ends if predictions differ by more than the errors and the coverage is small. If there are
    too few samples for the coverage, errors are extrapolated by a t distribution, and enlarged by one standard error
    because a fit that was chosen by few errors underestimates them.

    Parameters
    ----------
    predictions : array of shape (n, m, k)
        Predictions at ``n`` points of the fits without each of ``m`` samples.
    errors : array of shape (m, k)
        Absolute error of each fit at the sample that was left out.
    coverage : float
    effective : float, optional
        The effective number of samples, if their weights differ.
    added : array of shape (n, k), optional
        Variances of further normal errors. Their quantiles widen the intervals on both sides.
    """
    m = len(errors)
    require_errors(m)
    rank, stretch = _rank(m, coverage, effective)
    turned = np.ascontiguousarray(np.swapaxes(predictions, 1, 2))  # samples last: next to each other in memory
    errors = np.ascontiguousarray(stretch * errors.T)
    both = np.concatenate([turned - errors, turned + errors], axis=-1)
    places = [m - rank, m + rank - 1]
    both.partition(places, axis=-1)
    further = norm.ppf((1 + coverage) / 2) * np.sqrt(added)
    return np.stack([both[..., places[0]] - further, both[..., places[1]] + further], axis=-1)


def calibration(ratios: Array, effective: float = np.inf) -> Array:
    """Return the factors that calibrate standard deviations to the errors.

    Parameters
    ----------
    ratios : array of shape (m, ...)
        Absolute errors in units of the standard deviations; NaN if unknown.
    effective : float, optional
        The effective number of samples, if their weights differ.

    Returns
    -------
    array of shape (...)
        The 0.9 quantile of the ratios over the quantile of a normal distribution; NaN if fewer than three are known.
    """
    return np.asarray(upper_quantile(ratios, LEVEL, effective) / norm.ppf((1 + LEVEL) / 2))


def upper_quantile(errors: Array, coverage: float, effective: float = np.inf) -> Array:
    """Return a bound on a further absolute error that holds with probability ``coverage``, of shape (...).

    Parameters
    ----------
    errors : array of shape (m, ...)
        Absolute errors; NaN if unknown. The result is NaN if fewer than three are known.
    coverage : float
    effective : float
        The effective number of samples, if their weights differ.
    """
    errors = np.sort(errors, axis=0)  # NaN comes last
    known = np.count_nonzero(~np.isnan(errors), axis=0)
    result = np.full(errors.shape[1:], np.nan)
    for m in np.unique(known[known >= MIN_ERRORS]):
        rank, stretch = _rank(int(m), coverage, effective)
        result = np.where(known == m, stretch * errors[rank - 1], result)
    return result


def _rank(m: int, coverage: float, effective: float) -> tuple[int, float]:
    """Return the rank of the error that bounds a further error with probability ``coverage``, and a factor for it.

    The largest of ``n`` errors is exceeded with probability ``1 / (n + 1)``. If this is more than ``1 - coverage``, the
    factor extrapolates it. If weights differ, ``n`` is the effective number, because samples of large weight dominate
    both the choice of the fit and its errors.
    """
    n = min(m, effective)
    rank = max(1, int(np.ceil(coverage * (n + 1) / n * m - 1e-9)))  # 0.9 * 10 is a little more than 9
    if rank <= m:
        return rank, 1.0
    wanted, reached = ((1 + share) / 2 for share in (coverage, n / (n + 1)))
    return m, float(t.ppf(wanted, n) / t.ppf(reached, n)) * (1 + standard_error(n))
