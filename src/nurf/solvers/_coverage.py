"""From errors at samples that were left out to intervals and standard deviations that hold what they promise."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.stats import norm, t

from nurf._types import Array
from nurf.solvers._draws import Part

MIN_ERRORS = 3  # with fewer, nothing can be said
LEVEL = 0.9  # the share of errors that standard deviations are calibrated to


class Uncertainty(Protocol):
    """How sure a fit is, whichever way it was fitted."""

    @property
    def knows_gradients(self) -> bool:
        """Whether standard deviations of gradients come from errors of gradients."""
        ...

    def value_std(self, X: Array) -> Array:
        """Return the standard deviation of a value that is measured at the points, noise included, of shape (n, k)."""
        ...

    def gradient_std(self, X: Array) -> Array:
        """Return the standard deviation of a gradient that is measured at the points, of shape (n, k, d)."""
        ...

    def interval(self, X: Array, coverage: float) -> Array:
        """Return intervals that contain a fresh value with probability ``coverage``, of shape (n, k, 2)."""
        ...

    def draws(self, n: int, rng: np.random.Generator) -> tuple[Part, ...]:
        """Return how much ``n`` plausible functions differ from the fit."""
        ...


def require_errors(n: int) -> None:
    """Raise an error if there are too few samples to say anything about errors."""
    if n < MIN_ERRORS:
        raise ValueError(
            f"standard deviations and intervals need at least {MIN_ERRORS} samples with a value, got {n}: with fewer, "
            "nothing is known about the error"
        )


def effective_number(weights: Array) -> float:
    """Return ``(sum w)^2 / sum w^2``, the number of equal weights with which a mean is as certain (Kish 1965)."""
    return float(np.sum(weights) ** 2 / np.sum(weights**2))


def standard_error(n: float) -> float:
    """Return the relative standard error of a root mean square of ``n`` normal errors.

    If the squares are weighted, ``n`` is the effective number of the weights.
    """
    return float(1 / np.sqrt(2 * n))


def plus_interval(
    predictions: Array, errors: Array, coverage: float, effective: float = np.inf, added: Array | float = 0.0
) -> Array:
    """Return quantiles of ``predictions - errors`` and ``predictions + errors`` together, of shape (n, k, 2).

    If no ``predictions - errors`` is above the upper end, and no ``predictions + errors`` below the lower one, these
    are the intervals of the jackknife+ and of CV+ (Barber, Candes, Ramdas, Tibshirani, Annals of Statistics 49, 2021),
    which are quantiles of both apart. Otherwise they contain these intervals, whose ends change places if the
    predictions differ by more than the errors and the coverage is small. If there are too few samples for the coverage,
    errors are stretched as those of a t distribution, and by one standard error, because a fit that was chosen by so
    few errors was lucky with them.

    Parameters
    ----------
    predictions : array of shape (n, m, k)
        Those of the fits without each of ``m`` samples, at ``n`` points.
    errors : array of shape (m, k)
        Absolute errors of these fits at the samples that they did not see.
    coverage : float
    effective : float, optional
        The effective number of the weights of the samples; by default they are equal.
    added : array of shape (n, k), optional
        Variances of normal errors by whose quantiles the intervals are widened on both sides.
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
    """Return the factors by which standard deviations must grow to hold the errors.

    Parameters
    ----------
    ratios : array of shape (m, ...)
        Absolute errors in units of the standard deviations; NaN if unknown.
    effective : float, optional
        The effective number of the weights of the samples; by default they are equal.

    Returns
    -------
    array of shape (...)
        The 0.9 quantile of the ratios over that of a normal distribution; NaN if fewer than three are known.
    """
    return np.asarray(upper_quantile(ratios, LEVEL, effective) / norm.ppf((1 + LEVEL) / 2))


def upper_quantile(errors: Array, coverage: float, effective: float = np.inf) -> Array:
    """Return what a further absolute error is below with probability ``coverage``, of shape (...).

    Parameters
    ----------
    errors : array of shape (m, ...)
        Absolute errors; NaN if unknown. The result is NaN if fewer than three are known.
    coverage : float
    effective : float
        The effective number of samples, if their weights are uneven.
    """
    errors = np.sort(errors, axis=0)  # unknown ones come last
    known = np.count_nonzero(~np.isnan(errors), axis=0)
    result = np.full(errors.shape[1:], np.nan)
    for m in np.unique(known[known >= MIN_ERRORS]):
        rank, stretch = _rank(int(m), coverage, effective)
        result = np.where(known == m, stretch * errors[rank - 1], result)
    return result


def _rank(m: int, coverage: float, effective: float) -> tuple[int, float]:
    """Return the rank of the quantile of ``m`` errors that a further one is below with probability ``coverage``.

    The largest of ``n`` errors is exceeded with probability ``1 / (n + 1)``. If that is too often, it must be stretched
    by the second number that is returned. With uneven weights ``n`` is the effective number: the fit was chosen by, and
    its errors are mostly those of, the samples of large weight.
    """
    n = min(m, effective)
    rank = max(1, int(np.ceil(coverage * (n + 1) / n * m - 1e-9)))  # 0.9 * 10 is a little more than 9
    if rank <= m:
        return rank, 1.0
    wanted, reached = ((1 + share) / 2 for share in (coverage, n / (n + 1)))
    return m, float(t.ppf(wanted, n) / t.ppf(reached, n)) * (1 + standard_error(n))
