"""The check of gradients, for all outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from nurf._types import Array, Index
from nurf.data._derivative_checks._mistakes import (
    CheckedSamples,
    Mistake,
    common_mistakes,
    listed,
    possible_mistakes,
    shuffled_rows,
)
from nurf.data._derivative_checks._noise import noise
from nurf.data._derivative_checks._predicted import CLEAR, EVIDENCE, MAX_ROWS, Agreement, PredictedSlopes, evenly
from nurf.jets import Jet

MIN_POINTS = 4  # fewer points do not determine gradients, even of two inputs
ALIKE = 0.3  # relative distance below which two corrections of the gradients count as the same
GROSS = 1e3  # factor over the values' bound: right gradients reached 231 in 100 sets of steps, jumps and ripples
ABOVE = 10.0  # factor over all other gradients: uniform noise far exceeds small gradients, but not other noisy ones
FLAT = 0.01  # share of the size of the gradients that directions may leave out, as small as noise that is not reported
FEW = 0.1  # share of the rows; more rows are no mistake in single rows
STEP = 0.01  # distance of the next point in units of the ranges: errors of the trapezoidal rule and rounding are small
MAX_OUTPUTS = 8  # number of outputs that are compared, also with gradients of each other: 40 ms each
TRANSPOSED = "the gradients are transposed"


@dataclass(frozen=True)
class DerivativeCheck:
    """The result of ``check_derivatives``. With several outputs, the result for the worst one, named in the message.

    Attributes
    ----------
    consistent : bool or None
        Whether the gradients belong to the values; None if the data are not sufficient to decide.
    misfit : float
        The median over the samples of ``|g - m| / |m|``, where ``m`` is the gradient that the values predict, in
        coordinates in which the samples are spread evenly. A wrong sign gives 2.
    message : str
        The result in words.
    value_noise : float
        Standard deviation of the noise in the values; NaN if it cannot be estimated.
    gradient_noise : float
        Standard deviation of the noise in the partial derivatives, each multiplied by the range of its input, so that
        it has the units of the values; NaN if it cannot be estimated, or unless ``consistent`` is True.
    rows : tuple of int
        The rows whose gradients are wrong, if there are few.
    columns : tuple of int
        The inputs whose partial derivatives must be multiplied by a factor.
    factors : tuple of float
        The factors of the partial derivatives with respect to ``columns``.
    next_point : tuple of float
        If the data are not sufficient, a point at which one more value would decide. The message gives the expected
        value if the gradients are right.
    """

    consistent: bool | None
    misfit: float
    message: str
    value_noise: float = np.nan
    gradient_noise: float = np.nan
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    factors: tuple[float, ...] = ()
    next_point: tuple[float, ...] = ()


def check_derivatives(X: Any, y: Any, gradients: Any) -> DerivativeCheck:
    """Check whether gradients are consistent with the values, and find the likely mistake if they are not.

    A Gaussian process that is fitted to the values alone predicts the gradients and their uncertainty. The given
    gradients are compared with this prediction, and so are corrected ones: with the opposite sign, multiplied by a
    factor or by a factor for each input, divided or multiplied by inputs, values or scales of the data, with columns,
    outputs or rows in another order, transposed, and with respect to linear combinations of the inputs. A mistake is
    named if its correction agrees with the prediction, clearly better than the given gradients do, and if no other
    correction does nearly as well. If a few gradients are far larger than all others, their rows are reported.

    Values and inputs that span many decades are compared in logarithms, whatever the units of the gradients. At most
    300 samples and 8 outputs are compared. Rows without a value and unknown derivatives are ignored.

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
    >>> gradients[17] *= 1e6
    >>> check_derivatives(X, y, gradients).rows
    (17,)
    """
    jet = Jet(X, y, gradients)
    if jet.gradients is None:
        raise ValueError("`gradients` must be an array of shape (n, d) or (n, k, d), got None")
    if not len(jet):
        raise ValueError("`X` must have at least one row, got none")
    n, d = jet.X.shape
    values, slopes = jet.y.reshape(n, -1), jet.gradients.reshape(n, -1, d)
    with np.errstate(all="ignore"):  # a correction that overflows is not accepted
        outputs = evenly(np.arange(values.shape[1]), MAX_OUTPUTS)
        findings = [_checked(jet.X, values[:, output], slopes, output) for output in outputs]
    severity = {True: 0, None: 1, False: 2}
    keys = [(severity[found.consistent], TRANSPOSED in found.message, found.misfit) for found in findings]
    worst = max(range(len(keys)), key=keys.__getitem__)
    found = findings[worst]
    message = found.message
    if len(findings) > 1 and TRANSPOSED not in message:
        message = f"output {outputs[worst]}: {message}"
    if len(findings) < values.shape[1]:
        message += f" ({len(findings)} of {values.shape[1]} outputs were compared)"
    return replace(found, message=message)


def _checked(X: Array, y: Array, slopes: Array, output: int) -> DerivativeCheck:
    """Return the result for one output with values (n,), given the gradients (n, k, d) of all outputs."""
    known = ~np.isnan(slopes[:, output])
    valued = np.flatnonzero(~np.isnan(y))
    points, values, given = X[valued], y[valued], slopes[valued, output]
    whole = known[valued].all(axis=1)
    remark = "" if whole.sum() == len(X) else f" ({whole.sum()} of {len(X)} rows are fully known)"
    if len(unknown := np.flatnonzero(~known.any(axis=0))) and known.any():
        remark = f" (the derivatives with respect to input {', '.join(map(str, unknown))} are unknown)"
    compared = np.flatnonzero(known[valued].any(axis=1))
    if (count := len(np.unique(points[compared], axis=0))) < MIN_POINTS:
        found = DerivativeCheck(None, np.nan, f"gradients at {count} different points are too few to tell")
    elif np.ptp(values) == 0:
        flat = not np.nan_to_num(given).any()
        found = DerivativeCheck(flat or None, 0.0, "the values are constant along the data")
    else:
        samples = CheckedSamples(points, values, given, valued, PredictedSlopes.of(points, values, compared))
        found = _finding(samples, _other_gradients(slopes[valued], output))
        if found.consistent is None and (mistake := _along_directions(samples)):
            found = DerivativeCheck(False, found.misfit, mistake.words)
        if found.consistent is not False and len(gross := _gross_rows(samples)):
            rest = _finding(replace(samples, slopes=np.where(np.isin(valued, gross)[:, None], np.nan, given)), ())
            words = f"the gradients of row {listed(map(str, gross))} are far larger than the values allow"
            if rest.consistent is not None:
                words += f"; for the other rows {rest.message}"
            found = replace(rest, consistent=False, message=words, rows=tuple(gross.tolist()), next_point=())
    return replace(found, message=found.message + remark)


def _along_directions(samples: CheckedSamples) -> Mistake | None:
    """Return the mistake found along the directions of the gradients, or None if there is none or too many directions.

    With many inputs the values determine gradients poorly, but well if the function depends on few combinations.
    """
    whole = np.flatnonzero(~np.isnan(samples.slopes).any(axis=1))
    slopes = samples.slopes * samples.ranges
    if len(whole) < MIN_POINTS or not np.all(np.isfinite(slopes[whole] / np.abs(slopes[whole]).max())):
        return None
    _, sizes, directions = np.linalg.svd(slopes[evenly(whole, MAX_ROWS)] / np.abs(slopes[whole]).max())
    rank = int(np.sum(np.sqrt(np.cumsum(sizes[::-1] ** 2)) > FLAT * np.linalg.norm(sizes)))
    if 2 * rank > len(directions):
        return None
    points, slopes = samples.X / samples.ranges @ directions[:rank].T, slopes @ directions[:rank].T
    along = CheckedSamples(points, samples.y, slopes, samples.numbers, PredictedSlopes.of(points, samples.y, whole))
    fitting = _fitting(along, common_mistakes(along))
    return _named(along.predicted, fitting) if fitting else None


def _gross_rows(samples: CheckedSamples) -> Index:
    """Return the rows whose gradients are far larger than the values allow and than all others, if they are few.

    The bound is the larger of the largest predicted gradient and the range of the values over the range of an input.
    """
    predicted = samples.predicted
    allowed = (np.abs(predicted.means) + predicted.deviations).max(axis=0).clip(1)
    sizes = np.abs(samples.slopes)
    gross = np.any(sizes * predicted.chain > GROSS * allowed, axis=1)
    gross &= np.any(sizes > ABOVE * np.nanmax(sizes[~gross], axis=0, initial=0.0), axis=1)
    found: Index = samples.numbers[gross]
    return found if len(found) <= max(1, FEW * len(gross)) else found[:0]


def _other_gradients(slopes: Array, output: int) -> Iterator[Mistake]:
    """Yield mistakes in the order of the axes of ``slopes`` (n, k, d), with the gradients meant for an output."""
    n, k, d = slopes.shape
    if k == d > 1:
        words = f"{TRANSPOSED}: `gradients[n, i, j]` must be the derivative of output i with respect to input j"
        yield Mistake(words, "transposed", slopes[:, :, output])
    if k == 1 and n == d:
        yield Mistake(TRANSPOSED, "transposed", slopes[:, 0].T)
    for q in range(min(k, MAX_OUTPUTS)):
        if q != output:
            yield Mistake(f"they are the gradients of output {q}", f"output {q}", slopes[:, q])


def _finding(samples: CheckedSamples, others: Iterable[Mistake]) -> DerivativeCheck:
    """Return the result for one output, tested for all mistakes and ``others``, which have gradients at all samples."""
    predicted, given = samples.predicted, samples.given
    scores, misfit = predicted.scores(given), predicted.misfit(given)
    others = (replace(mistake, gradients=mistake.gradients[predicted.rows]) for mistake in others)
    fitting = _fitting(samples, chain(possible_mistakes(samples), others))
    if not fitting and not predicted.is_explained(scores):
        fitting = _fitting(samples, shuffled_rows(samples))
    if fitting:
        named = _named(predicted, fitting)
        return DerivativeCheck(False, misfit, named.words, columns=named.columns, factors=named.factors)
    if predicted.odds(scores) > CLEAR and misfit < 1:
        value_noise, gradient_noise, words = noise(samples)
        words = f"the gradients explain the values: relative misfit {misfit:.2g}" + words
        return DerivativeCheck(True, misfit, words, value_noise, gradient_noise)
    return _undecided(samples, misfit)


def _fitting(samples: CheckedSamples, mistakes: Iterable[Mistake]) -> list[tuple[Agreement, Mistake]]:
    """Return the mistakes that explain the given gradients, each with the agreement of its correction.

    Derivatives that are unknown before or after a correction do not change its score.
    """
    predicted, given, found = samples.predicted, samples.given, []
    before = predicted.agreement(given)
    for mistake in mistakes:
        after, both = predicted.agreement(mistake.gradients), ~np.isnan(given + mistake.gradients)
        if predicted.evidence(before, after, both) - mistake.choices > EVIDENCE:
            found.append((after, mistake))
    return found


def _named(predicted: PredictedSlopes, fitting: list[tuple[Agreement, Mistake]]) -> Mistake:
    """Return the simplest mistake that no other clearly beats; if another one is as good, the message names both."""
    scores, best = fitting[0]
    for other, mistake in fitting[1:]:
        if predicted.clarity(other - scores) > CLEAR + mistake.choices - best.choices:
            scores, best = other, mistake
    rest = [
        mistake
        for other, mistake in fitting
        if mistake.kind != best.kind
        and mistake.choices <= best.choices
        and predicted.clarity(scores - other) < CLEAR
        and predicted.distance(mistake.gradients, best.gradients) > ALIKE
    ]
    if not rest:
        return best
    words = f"the gradients are wrong, and more than one mistake would explain it: {best.words}; or {rest[0].words}"
    return replace(best, words=words, columns=(), factors=())


def _undecided(samples: CheckedSamples, misfit: float) -> DerivativeCheck:
    """Return an undecided result, with a next point where the gradients predict the largest change."""
    slopes = np.nan_to_num(samples.given) * samples.ranges * STEP
    row = samples.predicted.rows[int(np.argmax(np.abs(slopes).sum(axis=1)))]
    steps = np.nan_to_num(np.sign(samples.slopes[row])) * samples.ranges * STEP
    point, value = samples.X[row] + steps, samples.y[row] + float(np.nansum(samples.slopes[row] * steps))
    message = (
        f"the values do not tell whether the gradients are right: relative misfit {misfit:.2g} (noise, too few samples "
        f"for a rough function, or an unknown mistake). One more run near row {samples.numbers[row]} would: if they "
        f"are right, the value at ({listed(f'{x:.6g}' for x in point)}) is {value:.6g} instead of {samples.y[row]:.6g}"
    )
    return DerivativeCheck(None, misfit, message, next_point=tuple(point.tolist()))
