"""Mistakes that gradients may have, and their corrections."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import linear_sum_assignment

from nurf._types import Array, Index
from nurf.data._derivative_checks._predicted import CLEAR, EVIDENCE, HUGE, PredictedSlopes

MAX_NUMBERS = 6  # in a message
HINTED = 0.02  # relative distance below which a scale of the data is suggested for a factor
SCALED = {"scale_": "standardised", "data_range_": "scaled to [0, 1]"}  # attributes of scikit-learn's scalers
PIPELINE = "; or use nurf.GradientPipeline, which scales them too"
LOG10 = float(np.log(10))


@dataclass(frozen=True, eq=False)
class Mistake:
    """A possible mistake.

    Parameters
    ----------
    words : str
        The message.
    kind : str
        Mistakes of one kind are variants of each other, of which only the best is considered.
    gradients : array of shape (m, d)
        The corrected gradients at the compared samples.
    choices : float
        The penalty for choosing the best of many: the logarithm of the number of similar mistakes, and half the
        logarithm of the number of samples for each fitted number (Schwarz, 1978).
    columns : tuple of int
        The inputs whose partial derivatives have wrong factors.
    factors : tuple of float
        The correct factors of the partial derivatives with respect to ``columns``.
    """

    words: str
    kind: str
    gradients: Array
    choices: float = 0.0
    columns: tuple[int, ...] = ()
    factors: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class CheckedSamples:
    """One output: points (n, d), values (n,), gradients (n, d), NaN if unknown, and gradients predicted from values.

    ``numbers`` (n,) are the row numbers in the data.
    """

    X: Array
    y: Array
    slopes: Array
    numbers: Index
    predicted: PredictedSlopes

    @property
    def given(self) -> Array:
        """The gradients at the compared samples, of shape (m, d)."""
        return self.slopes[self.predicted.rows]

    @cached_property
    def value_std(self) -> float:
        """The standard deviation of the values, or 1 if it is zero."""
        unit = float(np.abs(self.y).max()) or 1.0
        return float(np.std(self.y / unit)) * unit or 1.0

    @cached_property
    def ranges(self) -> Array:
        """The range of each input, or 1 if it is zero, of shape (d,)."""
        extent = np.ptp(self.X, axis=0)
        return np.where(extent > 0, extent, 1.0)

    @cached_property
    def deviations(self) -> Array:
        """The standard deviation of each input, or 1 if it is zero, of shape (d,)."""
        found = (self.X / self.ranges).std(axis=0) * self.ranges
        return np.where(found > 0, found, 1.0)


def possible_mistakes(samples: CheckedSamples) -> Iterator[Mistake]:
    """Yield possible mistakes in the gradients, simple ones first."""
    yield Mistake("the gradients have the wrong sign", "sign", -samples.given)
    yield from _logarithms(samples)
    yield from _moved_rows(samples)
    if samples.X.shape[1] > 1:  # with one input, a scale is a factor
        yield from _scales(samples)
    yield _one_factor(samples)
    if 1 < samples.X.shape[1] <= len(samples.given):
        yield _other_order(samples)
    if samples.X.shape[1] > 1:
        yield _column_factors(samples)
    if 1 < samples.X.shape[1] <= len(samples.given):
        yield from _rotation(samples)


def _logarithms(samples: CheckedSamples) -> Iterator[Mistake]:
    """Yield mistakes with logarithms: either data or gradients are logarithmic, but not both."""
    X, y, slopes = samples.X[samples.predicted.rows], samples.y[samples.predicted.rows, None], samples.given
    found = "the gradients seem to be multiplied by the inputs (x dy/dx, that is dy / dlog x): divide each by its input"
    yield Mistake(found, "inputs", slopes / X)
    found = "the gradients seem to be logarithmic derivatives (dlog y / dlog x): multiply each by y / x"
    yield Mistake(found, "elasticities", slopes * y / X)
    yield Mistake("the gradients seem to be gradients of log y: multiply them by y", "of log y", slopes * y)
    for name, base in {"exp(y)": 1.0, "10^y log(10)": LOG10}.items():
        found = f"`y` seems to be log-transformed, but the gradients are not: divide them by {name}"
        yield Mistake(found, f"y is log, {name}", slopes * np.exp(-base * y) / base)
    for name, base in {"exp(x)": 1.0, "10^x log(10)": LOG10}.items():
        found = f"`X` seems to be log-transformed, but the gradients are not: multiply each by {name}"
        yield Mistake(found, f"x is log, {name}", slopes * np.exp(base * X) * base)
    for name, base in {"exp(x - y)": 1.0, "10^(x - y)": LOG10}.items():
        found = f"`X` and `y` seem to be log-transformed, but the gradients are not: multiply each by {name}"
        yield Mistake(found, f"x and y are log, {name}", slopes * np.exp(base * (X - y)))


def _moved_rows(samples: CheckedSamples) -> Iterator[Mistake]:
    """Yield mistakes in the order of the rows: shifted by one, or reversed."""
    rows = samples.predicted.rows
    words = "the rows of the gradients are shifted: row i has the gradient of row i {} 1"
    yield Mistake(words.format("+"), "shift", np.roll(samples.slopes, 1, axis=0)[rows])
    yield Mistake(words.format("-"), "shift", np.roll(samples.slopes, -1, axis=0)[rows])
    yield Mistake("the rows of the gradients are in reversed order", "reversed", samples.slopes[::-1][rows])


def _scales(samples: CheckedSamples) -> Iterator[Mistake]:
    """Yield mistakes of scaling: gradients in scaled units, or scaled by the inverse factor."""
    found = (
        "the gradients are for standardised inputs and values: multiply them by the standard deviation of the "
        "values, and divide each by the standard deviation of its input"
    )
    yield Mistake(found, "scales", samples.given * samples.value_std / samples.deviations)
    for name, scale in _input_scales(samples).items():
        words = f"the gradients are with respect to scaled inputs: divide each by {name} of its input"
        yield Mistake(words, "scales", samples.given / scale)
        yield Mistake(f"the gradients must be multiplied by {name} of each input", "scales", samples.given * scale)


def _input_scales(samples: CheckedSamples) -> dict[str, Array]:
    return {
        "the range": samples.ranges,
        "half the range": samples.ranges / 2,
        "the standard deviation": samples.deviations,
    }


def common_mistakes(samples: CheckedSamples) -> Iterator[Mistake]:
    """Yield mistakes that are the same in all coordinates: the sign and a factor."""
    yield Mistake("the gradients have the wrong sign", "sign", -samples.given)
    factor, _ = _shared_factor(samples)
    choices = math.log(len(samples.given)) / 2
    yield Mistake(f"the gradients must be multiplied by {factor:.3g}", "factor", factor * samples.given, choices)


def _shared_factor(samples: CheckedSamples) -> tuple[float, bool]:
    """Return the best factor of all partial derivatives, rounded to a power of ten if that is as good, and whether."""
    predicted, given = samples.predicted, samples.given
    factor = float(_factors(predicted, given, shared=True)[0])
    power = float(_power(np.array(factor)))
    is_round = predicted.odds(predicted.scores(given * factor) - predicted.scores(given * power)) <= CLEAR
    return (power if is_round else factor), is_round


def _one_factor(samples: CheckedSamples) -> Mistake:
    factor, is_round = _shared_factor(samples)
    words = None if is_round else _scaled_words(samples, np.array([factor]))
    if words is None:
        scales = _input_scales(samples)
        known = {f"one over {name} of the inputs": float(1 / scale.mean()) for name, scale in scales.items()}
        known |= {f"{name} of the inputs": float(scale.mean()) for name, scale in scales.items()}
        known["the standard deviation of the values"] = samples.value_std
        hints = [name for name, number in known.items() if abs(factor / number - 1) < HINTED]
        words = f"the gradients must be multiplied by {factor:.3g}" + (f": {' or '.join(hints)}?" if hints else "")
    m, d = samples.given.shape
    return Mistake(words, "factor", factor * samples.given, math.log(m) / 2, tuple(range(d)), (factor,) * d)


def _column_factors(samples: CheckedSamples) -> Mistake:
    """Return the mistake of wrong factors, for the columns whose own odds show a mistake."""
    predicted, given = samples.predicted, samples.given
    fitted = _factors(predicted, given)
    scores, rounded = (predicted.scores(given * factors) for factors in (fitted, _power(fitted)))
    is_round = predicted.column_odds(scores - rounded) <= CLEAR
    factors = np.where(is_round, _power(fitted), fitted)
    scores = np.where(is_round, rounded, scores)
    columns = np.flatnonzero(predicted.column_odds(scores - predicted.scores(given)) > EVIDENCE)
    named = listed(f"{k} by {factors[k]:.3g}" for k in columns)
    words = f"partial derivatives have wrong units or signs: multiply column {named}"
    if not is_round[columns].all():
        words = _scaled_words(samples, fitted) or words
    change = np.ones(len(factors))
    change[columns] = factors[columns]
    choices = math.log(math.comb(len(factors), len(columns))) + len(columns) * math.log(len(given)) / 2
    found = tuple(columns.tolist()), tuple(factors[columns].tolist())
    return Mistake(words, "columns", given * change, choices, *found)


def _factors(predicted: PredictedSlopes, given: Array, shared: bool = False) -> Array:
    """Return the factors with which the columns of gradients (m, d) agree best with the prediction, or a shared one.

    The size is a median of ratios, weighted by their certainty. It lies between the regressions of gradients on
    predictions and of predictions on gradients.
    """
    found, shape = predicted.scaled(given), (-1, 1) if shared else given.shape
    ratios = (predicted.means / found).reshape(shape)
    weights = (predicted.means**2 / (predicted.means**2 + predicted.deviations**2)).reshape(shape)
    weights = np.where(np.isfinite(ratios) & (ratios != 0), weights, 0.0)
    logs = np.where(weights > 0, np.log(np.abs(ratios)), 0.0)
    signs = np.where(np.sum(weights * np.sign(np.nan_to_num(ratios)), axis=0) < 0, -1.0, 1.0)
    return np.asarray(signs * np.exp(_medians(logs, weights)))


def _medians(numbers: Array, weights: Array) -> Array:
    """Return the weighted median of each column of numbers (n, d), of shape (d,); zero if all weights are zero."""
    order = np.argsort(numbers, axis=0)
    sums = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    middle = np.argmax(sums >= sums[-1] / 2, axis=0)
    rows = np.take_along_axis(order, middle[None], axis=0)
    return np.where(sums[-1] > 0, np.take_along_axis(numbers, rows, axis=0)[0], 0.0)


def _power(factors: Array) -> Array:
    """Return the nearest powers of ten, with the signs of the factors."""
    return np.asarray(np.sign(factors) * 10.0 ** np.round(np.log10(np.abs(factors))))


def _scaled_words(samples: CheckedSamples, factors: Array) -> str | None:
    """Return the advice if inputs or values seem to have been scaled without the gradients, or None."""
    of_x, of_y = _scaler(samples.X), _scaler(samples.y[:, None])
    if np.any(factors < 0):
        return None
    numbers = f"about {listed(f'{factor:.3g}' for factor in factors)}{PIPELINE}"
    if of_x and of_y:
        return (
            f"`X` and `y` seem to be scaled, but the gradients are not: multiply them by `{of_x}` of the scaler of `X` "
            f"and divide by the scale of `y`, together {numbers}"
        )
    if of_x:
        return f"`X` seems to be {SCALED[of_x]}, but the gradients are not: multiply them by `scaler.{of_x}`, {numbers}"
    if of_y and len(factors) == 1:
        numbers = f"about {1 / factors[0]:.3g}{PIPELINE}"
        return f"`y` seems to be {SCALED[of_y]}, but the gradients are not: divide them by `scaler.{of_y}`, {numbers}"
    return None


def _scaler(columns: Array) -> str | None:
    """Return the attribute of the scikit-learn scaler that seems to have scaled all columns, or None.

    A subset of data that were scaled together has only nearly the mean and variance of scaled data.
    """
    low, high = columns.min(axis=0), columns.max(axis=0)
    columns = columns[:, high > low]
    if not columns.shape[1]:
        return None
    if np.all(np.abs([low, high - 1])[:, high > low] < 1e-9):
        return "data_range_"
    close = min(0.2, 3 / np.sqrt(len(columns)))
    is_standard = np.abs(columns.mean(axis=0)) < close, np.abs(columns.std(axis=0) - 1) < close
    return "scale_" if np.all(is_standard) else None


def _other_order(samples: CheckedSamples) -> Mistake:
    """Return the mistake of permuted columns, with the order that agrees best with the prediction."""
    predicted, d = samples.predicted, samples.X.shape[1]
    scores, inputs = np.empty((d, d)), np.arange(d)
    for shift in range(d):
        columns = (inputs + shift) % d
        scores[columns, inputs] = predicted.scores(samples.given[:, columns]).mean(axis=1).min(axis=0)
    columns, inputs = linear_sum_assignment(scores, maximize=True)
    order = columns[np.argsort(inputs)]
    moved = [f"column {column} belongs to input {k}" for k, column in enumerate(order) if column != k]
    words = f"the columns of the gradients are in another order: {', '.join(moved)}"
    return Mistake(words, "order", samples.given[:, order], math.lgamma(d + 1))


def _rotation(samples: CheckedSamples) -> Iterator[Mistake]:
    """Yield the mistake of rotated coordinates. The rotation for each half of the samples is fitted to the other."""
    predicted, given = samples.predicted, samples.given
    target = predicted.means / predicted.chain[predicted.rows]
    known = np.isfinite(given).all(axis=1) & np.isfinite(target).all(axis=1)
    gradients = np.full_like(given, np.nan)
    for half in (0, 1):
        fitted = known & (np.arange(len(given)) % 2 == half)
        if not fitted.any():
            return
        rotation, _ = orthogonal_procrustes(_in_own_unit(given[fitted]), _in_own_unit(target[fitted]))
        gradients[known & ~fitted] = given[known & ~fitted] @ rotation
    words = (
        "the gradients are with respect to other coordinates, of which the columns of `X` seem to be linear "
        "combinations, as after PCA: pass gradients with respect to the columns of `X`, or use nurf.GradientPipeline"
    )
    yield Mistake(words, "rotation", gradients, math.comb(given.shape[1], 2) * math.log(len(given)) / 2)


def _in_own_unit(array: Array) -> Array:
    """Return an array divided by its largest absolute value, so that products of two such arrays do not overflow."""
    return array / (float(np.abs(array).max()) or 1.0)


def shuffled_rows(samples: CheckedSamples) -> Iterator[Mistake]:
    """Yield the mistake of permuted rows, with the order that agrees best with the prediction, by linear assignment.

    Gradients in the right order, even with noise, agree better than nearly all shifted orders; then no search is
    needed.
    """
    predicted, m = samples.predicted, len(samples.given)
    scores = np.zeros((m, m))
    for k in range(samples.X.shape[1]):
        found = np.clip(np.outer(predicted.chain[predicted.rows, k], samples.given[:, k]), -HUGE, HUGE)
        mean, spread = predicted.means[:, k, None], predicted.deviations[:, k, None] ** 2
        gap = (found - mean) ** 2 + spread
        scores += np.nan_to_num(np.log((mean**2 + spread) / gap) + np.log((found**2 + spread) / gap))
    shifted = [np.trace(scores, shift) + np.trace(scores, shift - m) for shift in range(1, m)]
    if np.mean(np.array(shifted) > np.trace(scores)) < np.exp(-CLEAR):
        return
    found = samples.given[linear_sum_assignment(scores, maximize=True)[1]]
    gains = predicted.scores(found) - predicted.scores(samples.given)
    chance = math.lgamma(m + 1) / gains[0].size  # the logarithm of the number of orders, per entry
    if predicted.is_explained(predicted.scores(found)) and predicted.odds(gains - chance) > EVIDENCE:
        yield Mistake("the rows of the gradients seem to be in another order than the points", "shuffled", found)


def listed(items: Iterable[str]) -> str:
    """Return the first few items, separated by commas."""
    items = list(items)
    return ", ".join(items[:MAX_NUMBERS]) + (", ..." if len(items) > MAX_NUMBERS else "")
