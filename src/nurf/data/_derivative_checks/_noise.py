"""The noise of values and of consistent gradients."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from nurf._types import Array
from nurf.data._derivative_checks._mistakes import CheckedSamples

SMALL = 0.01  # noise relative to the values or gradients, below half of which it is not reported
AGREEMENT = 1.5  # factor by which both estimates of the noise in the values may differ
MEDIAN = 0.6745  # of the absolute value of a standard normal variable


def noise(samples: CheckedSamples) -> tuple[float, float, str]:
    """Return the noise of values and gradients in the units of the values, NaN if unknown, and a message.

    The noise of the values is estimated by the Gaussian process. Instead of noise, the function may be too rough for
    the samples; then the gradients explain the differences between neighbours by the trapezoidal rule better than noise
    of this size allows. The noise of the gradients is their distance from the prediction, if this is less deviation.
    """
    predicted, words = samples.predicted, ""
    shown, value = _between_neighbours(samples), np.nan
    low, high = min(shown, predicted.noise), max(shown, predicted.noise)
    if high < AGREEMENT * low or low < SMALL / 2 * samples.value_std:
        value = low
        if value > SMALL / 2 * samples.value_std:
            share = 100 * value / samples.value_std
            words = f"; the values are noisy: about {share:.2g}% of their standard deviation"
    units = samples.ranges / predicted.chain[predicted.rows]
    gaps = np.nanmedian(np.abs((predicted.scaled(samples.given) - predicted.means) * units)) / MEDIAN
    deviation = np.median(predicted.deviations * units)
    size = np.sqrt(np.nanmean((samples.given * samples.ranges) ** 2))
    gradient = np.nan
    if SMALL / 2 * size < gaps < size / 2 and gaps > 2 * deviation:
        gradient = float(np.sqrt(gaps**2 - deviation**2))
        words += f"; the gradients are noisy: about {100 * gradient / size:.2g}% of their size"
    elif gaps < SMALL / 2 * size:
        gradient = gaps
    return float(value), float(gradient), words


def _between_neighbours(samples: CheckedSamples) -> float:
    """Return the noise of the values, estimated from nearest neighbours and their gradients; NaN without neighbours."""
    known = samples.predicted.rows[~np.isnan(samples.given).any(axis=1)]
    X, y, slopes = samples.X[known] / samples.ranges, samples.y[known], samples.slopes[known] * samples.ranges
    if len(known) < 2:
        return np.nan
    near = np.asarray(cKDTree(X).query(X, k=2)[1])[:, 1]
    gaps: Array = y[near] - y - np.sum((slopes + slopes[near]) / 2 * (X[near] - X), axis=1)
    return float(np.median(np.abs(gaps)) / MEDIAN / np.sqrt(2))
