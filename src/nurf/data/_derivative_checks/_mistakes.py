"""Mistakes that gradients may have, and their corrections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import comb, gammaln

from nurf._types import Array, Index
from nurf.data._derivative_checks._pairs import TINY, Pairs, Samples

PAIRS_PER_FACTOR = 4  # pairs that are needed for each factor
MAX_SEARCHED = 10  # columns with wrong factors that are searched one after the other
MAX_NUMBERS = 6  # in a message
ROUND = 0.2  # relative distance of a power of ten, or of a scale of the data, that may be meant
SCALED = {"scale_": "standardised", "data_range_": "scaled to [0, 1]"}  # attributes of scikit-learn's scalers
PIPELINE = "; or use nurf.GradientPipeline, which scales them too"
LINEAR_MAP = "linear map"
LOG10 = float(np.log(10))


@dataclass(frozen=True, eq=False)
class Mistake:
    """A possible mistake: what to say of it, the corrected gradients (n, d), and the number of fitted parameters.

    Of mistakes of the same ``kind``, those with fewer parameters are special cases of those with more, and all are
    special cases of a linear map.
    """

    words: str
    kind: str
    slopes: Array
    n_fitted: int = 0
    choices: float = 0.0  # logarithm of the number of similar mistakes, of which this one fits best
    n_averaged: int = 1  # partial derivatives whose noise the correction may average out

    def extends(self, other: Mistake) -> bool:
        """Return whether another mistake is a special case of this one."""
        return self.kind in (other.kind, LINEAR_MAP) and self.n_fitted > other.n_fitted


def possible_mistakes(samples: Samples, near: Pairs, others: Iterable[Mistake]) -> Iterator[Mistake]:
    """Yield possible mistakes in the gradients, simple ones and ``others`` first.

    Parameters are fitted to the pairs ``near``.
    """
    yield Mistake("the gradients have the wrong sign", "units", -samples.slopes)
    yield from _logarithms(samples)
    yield from _scales(samples, near)
    yield _one_factor(samples, near)
    if near.steps.shape[1] > 1:
        if not samples.unknown.any():
            yield _other_order(samples, near)
        yield from _column_factors(samples, near)
    yield from others
    yield from _linear_map(samples, near)


def _logarithms(samples: Samples) -> Iterator[Mistake]:
    """Yield derivatives by or of logarithms, where values or inputs are none, and the other way round."""
    X, y, slopes = samples.X, samples.y[:, None], samples.slopes
    found = "the gradients seem to be multiplied by the inputs (x dy/dx, that is dy / dlog x): divide each by its input"
    yield Mistake(found, "inputs", slopes / X)
    found = "the gradients seem to be logarithmic derivatives (dlog y / dlog x): multiply each by y / x"
    yield Mistake(found, "elasticities", slopes * y / X)
    yield Mistake("the gradients seem to be those of log y: multiply them by y", "of log y", slopes * y)
    for name, base in {"exp(y)": 1.0, "10^y log(10)": LOG10}.items():
        found = f"`y` seems to be logarithms, but the gradients are not theirs: divide them by {name}"
        yield Mistake(found, f"y is log, {name}", slopes * np.exp(-base * y) / base)
    for name, base in {"exp(x)": 1.0, "10^x log(10)": LOG10}.items():
        found = f"`X` seems to be logarithms, but the gradients are not by them: multiply each by {name}"
        yield Mistake(found, f"x is log, {name}", slopes * np.exp(base * X) * base)


def _scales(samples: Samples, near: Pairs) -> Iterator[Mistake]:
    """Yield gradients in scaled units, or scaled the wrong way: those that leave the factor that is nearest to 1."""
    found = (
        "the gradients are those of standardised inputs and values: multiply them by the standard deviation of the "
        "values, and divide each by that of its input"
    )
    factors = {found: samples.value_std / samples.deviations}
    for name, scale in _input_scales(samples).items():
        factors[f"the gradients are with respect to scaled inputs: divide each by {name} of its input"] = 1 / scale
        factors[f"the gradients must be multiplied by {name} of each input"] = scale
    rests = {words: abs(_best_factor(near, near.terms @ factor) - 1) for words, factor in factors.items()}
    words = min(rests, key=rests.__getitem__)
    if rests[words] < ROUND and factors[words].max() > 1.2 * factors[words].min():  # else it is the same as one factor
        yield Mistake(words, "units", samples.slopes * factors[words])


def _input_scales(samples: Samples) -> dict[str, Array]:
    return {
        "the range": samples.ranges,
        "half the range": samples.ranges / 2,
        "the standard deviation": samples.deviations,
    }


def _one_factor(samples: Samples, near: Pairs) -> Mistake:
    line = near.terms.sum(axis=1)
    factor, is_round = _rounded(near, _best_factor(near, line), line)
    if not is_round and factor > 0 and (scaled := _scaled_words(samples, np.array([factor]))):
        return Mistake(scaled, "units", factor * samples.slopes, 1)
    scales = _input_scales(samples)
    known = {f"one over {name} of the inputs": float(1 / scale.mean()) for name, scale in scales.items()}
    known |= {f"{name} of the inputs": float(scale.mean()) for name, scale in scales.items()}
    known["the standard deviation of the values"] = samples.value_std
    hints = [name for name, number in known.items() if abs(factor / number - 1) < 0.02]
    found = f"the gradients must be multiplied by {factor:.3g}" + (f": {' or '.join(hints)}?" if hints else "")
    return Mistake(found, "units", factor * samples.slopes, 1)


def _column_factors(samples: Samples, near: Pairs) -> Iterator[Mistake]:
    """Yield wrong factors of some columns: first those that explain most, one after the other, then all that differ."""
    d, room = samples.slopes.shape[1], int(near.count / PAIRS_PER_FACTOR)
    lengths = np.linalg.norm(near.terms, axis=0)
    directions = np.where(lengths > 0, near.terms / lengths, 0.0)
    columns: list[int] = []
    residual = near.rise - near.terms.sum(axis=1)
    while len(columns) < min(d, room, MAX_SEARCHED) and np.all(np.isfinite(residual)):
        gains = np.abs(residual @ directions)
        gains[columns] = -1.0
        columns = sorted([*columns, int(np.argmax(gains))])
        factors = np.ones(d)
        factors[columns], _ = near.factors(np.array(columns))
        residual = near.rise - near.terms @ factors
        yield _columns_by(samples, near, np.array(columns), factors)
    if MAX_SEARCHED < d <= room:
        factors, wrong = near.wrong_factors()
        yield _columns_by(samples, near, np.flatnonzero(wrong), np.where(wrong, factors, 1.0))


def _columns_by(samples: Samples, near: Pairs, columns: Index, factors: Array) -> Mistake:
    """Return the mistake that is mended by ``factors`` (d,), which differ from 1 for ``columns``."""
    factors, all_round = factors.copy(), True
    for k in columns:
        rest = near.terms @ factors - near.terms[:, k] * factors[k]
        factors[k], is_round = _rounded(near, float(factors[k]), near.terms[:, k], rest)
        all_round &= is_round
    named = _listed([f"{k} by {factors[k]:.3g}" for k in columns])
    words = f"partial derivatives have wrong units or signs: multiply that of input {named}"
    if not all_round and np.all(factors > 0):
        words = _scaled_words(samples, factors) or words
    choices = float(np.log(comb(len(factors), len(columns))))
    return Mistake(words, "units", samples.slopes * factors, len(columns), choices)


def _linear_map(samples: Samples, near: Pairs) -> Iterator[Mistake]:
    """Yield gradients in other coordinates: with ``x = z M``, the derivatives by ``x`` times the matrix ``M.T``.

    The matrix is fitted to ``f(x_j) - f(x_i) = g.M.(x_j - x_i)``.
    """
    d = near.steps.shape[1]
    if d == 1 or samples.unknown.any() or near.count < PAIRS_PER_FACTOR * d**2:
        return
    products = (near.slopes[:, :, None] * near.steps[:, None, :]).reshape(-1, d**2)
    if np.all(np.isfinite(products)):
        matrix = np.linalg.lstsq(products, near.rise, rcond=None)[0].reshape(d, d)
        words = (
            "the gradients are by other coordinates, of which the columns of `X` seem to be linear combinations, as "
            "after PCA: give the gradients by the columns of `X`, or use nurf.GradientPipeline"
        )
        yield Mistake(
            words, LINEAR_MAP, (samples.slopes * samples.ranges) @ matrix / samples.ranges, d**2, n_averaged=d
        )


def _best_factor(near: Pairs, line: Array) -> float:
    """Return the factor of ``line`` (p,) that predicts the rises best."""
    size = max(float(np.abs(line).max()), TINY)
    unit = line / size
    return float(unit @ near.rise / max(float(unit @ unit), TINY)) / size


def _rounded(near: Pairs, factor: float, line: Array, rest: Array | float = 0.0) -> tuple[float, bool]:
    """Return the power of ten, or its negative, that is near a factor of ``line`` (p,), if it fits as well.

    The second number says whether there is one. ``rest`` (p,) is added to the prediction.
    """
    if not (np.isfinite(factor) and factor):
        return factor, False
    power = float(np.sign(factor) * 10.0 ** np.round(np.log10(abs(factor))))
    misfit, rounded = (near.misfit_of(rest + number * line) for number in (factor, power))
    is_round = abs(factor / power - 1) < ROUND and rounded <= 1.25 * misfit + 0.02
    return (power, True) if is_round else (factor, False)


def _scaled_words(samples: Samples, factors: Array) -> str | None:
    """Return what to do with the gradients if inputs or values seem to have been scaled without them; else None."""
    of_x, of_y = _scaler(samples.X), _scaler(samples.y[:, None])
    numbers = f"about {_listed([f'{factor:.3g}' for factor in factors])}{PIPELINE}"
    if of_x and of_y:
        return (
            f"`X` and `y` seem to be scaled, but the gradients are not: multiply them by `{of_x}` of the scaler of `X` "
            f"and divide by that of `y`, together {numbers}"
        )
    if of_x:
        return f"`X` seems to be {SCALED[of_x]}, but the gradients are not: multiply them by `scaler.{of_x}`, {numbers}"
    if of_y and len(factors) == 1:
        numbers = f"about {1 / factors[0]:.3g}{PIPELINE}"
        return f"`y` seems to be {SCALED[of_y]}, but the gradients are not: divide them by `scaler.{of_y}`, {numbers}"
    return None


def _scaler(columns: Array) -> str | None:
    """Return the attribute of the scaler of scikit-learn that seems to have scaled all columns, or None.

    A part of the data that were scaled together has nearly the same mean and variance.
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


def _other_order(samples: Samples, near: Pairs) -> Mistake:
    order = _order(near, samples.ranges)
    moved = [f"column {column} belongs to input {k}" for k, column in enumerate(order) if column != k]
    found = f"the columns of the gradients are in another order: {', '.join(moved)}"
    return Mistake(found, "order", samples.slopes[:, order], choices=float(gammaln(len(order) + 1)))


def _order(pairs: Pairs, ranges: Array) -> Index:
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


def _listed(items: list[str]) -> str:
    return ", ".join(items[:MAX_NUMBERS]) + (", ..." if len(items) > MAX_NUMBERS else "")
