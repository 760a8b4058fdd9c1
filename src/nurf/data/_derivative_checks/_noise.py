"""The noise of values and gradients."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from nurf.data._derivative_checks._pairs import Pairs

NOISE_BINS = 8
SMALL = 0.01  # relative noise that is not reported
MEDIAN_OF_SQUARE = 0.4549  # median of the square of a standard normal variable


def noise(tiers: list[Pairs], value_std: float) -> tuple[list[float], str]:
    """Return the noise of values and gradients, in the units of the values, and a text for the message.

    The mean square misfit at distance ``h`` is ``2 s^2 + t^2 h^2 / 2`` plus terms of higher order, where ``s`` and
    ``t`` are the standard deviations of the noise in values and scaled partial derivatives. The coefficients are fitted
    to the medians in bins of the distance, by nonnegative least squares.
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
    words, found = "", [np.nan, np.nan]
    if flat or misfits[0] < 2 * SMALL**2:
        found[0] = float(np.sqrt(value)) * value_std
        if np.sqrt(value) > SMALL / 2:
            words = f"; the values are noisy: about {100 * np.sqrt(value):.2g}% of their standard deviation"
    if linear or misfits[0] < SMALL**2 * size * h2[0] / 2:
        found[1] = float(np.sqrt(slope)) * value_std
        if slope > SMALL**2 / 4 * size:
            words += f"; the gradients are noisy: about {100 * np.sqrt(slope / size):.2g}% of their size"
    return found, words
