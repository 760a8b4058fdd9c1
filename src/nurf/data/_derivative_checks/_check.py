"""The check of gradients, for all outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nurf._types import Array, Index
from nurf.data._derivative_checks._mistakes import Mistake, possible_mistakes
from nurf.data._derivative_checks._noise import noise
from nurf.data._derivative_checks._pairs import TINY, Pairs, Samples, neighbours
from nurf.data._derivative_checks._row_order import are_shuffled
from nurf.jets import Jet

MIN_PAIRS = 4  # that are needed beside those for fitted parameters
EXPLAINED = 0.5  # relative misfit below which the gradients explain the differences of the values
UNEXPLAINED = 0.9  # relative misfit above which the differences are not explained at all
EXACT = 0.1  # relative misfit below which no mistake is searched for
NEGLIGIBLE = 0.02  # relative misfits below which no correction is better than another one
BETTER = 2.0  # factor by which a correction must lower the misfit
NESTED = 3.0  # factor by which it must lower that of a simpler one, of which that is a special case
MILD = 1.5  # factor by which the trapezoidal rule may err
MILD_ALIKE = 3.0  # the same if all neighbours have similar distances
EVIDENCE = 12.0  # minus the logarithm of the probability that a correction fits by chance
TRANSPOSED = "the gradients are transposed"
UNCLEAR = "the gradients are wrong, but more than one mistake would explain how"
AMBIGUOUS = Mistake(UNCLEAR, "ambiguous", np.empty((0, 0)), np.iinfo(np.int64).max)  # any other mistake is preferred
MAX_OUTPUTS = 8  # among which gradients are compared with the values of the others


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


def check_derivatives(X: Any, y: Any, gradients: Any) -> DerivativeCheck:
    """Return whether gradients are consistent with the differences of the values between neighbouring points.

    By the trapezoidal rule ``f(x_j) - f(x_i) = (g_i + g_j).(x_j - x_i) / 2`` up to third order in the distance. If this
    does not hold, corrected gradients are compared: with another sign, multiplied by a factor or a factor for each
    input, divided or multiplied by inputs, values or scales of the data, with columns, outputs or rows in another
    order, transposed, and by linear combinations of the inputs. A mistake is named if its correction explains the
    differences, if that is no chance, and if no other correction does nearly as well. If the rule holds, the residuals
    give the noise levels: the part due to noise in the values does not depend on the distance, the part due to noise in
    the gradients is proportional to it, and the error of the trapezoidal rule is of third order.

    Rows in which a value or a partial derivative is unknown are ignored, if they are fewer than half of the rows. The
    influence of an input without known derivatives is fitted.

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
    values, slopes = jet.y.reshape(n, -1), jet.gradients.reshape(n, -1, d)
    checks = _checks(jet.X, values, slopes)
    with np.errstate(all="ignore"):  # a correction that overflows explains nothing
        findings = [check.finding() for check in checks]
    severity = {True: 0, None: 1, False: 2}
    keys = [(severity[found.consistent], TRANSPOSED in found.message, found.misfit) for found in findings]
    worst = max(range(len(keys)), key=keys.__getitem__)
    found = findings[worst]
    if len(findings) > 1 and TRANSPOSED not in found.message:
        found = replace(found, message=f"output {worst}: {found.message}")
    return found


@dataclass(frozen=True, eq=False)
class _Check:
    """The check of one output: its samples, pairs of rows for each rank, and gradients that may be meant instead."""

    samples: Samples
    tiers: list[Index]
    others: tuple[Mistake, ...]
    remark: str

    def finding(self) -> DerivativeCheck:
        """Return the result, with a remark on what is unknown."""
        tiers = [self.samples.pairs(rows) for rows in self.tiers]
        if not tiers or len(tiers[0].rise) - tiers[0].extra.shape[1] < MIN_PAIRS:
            count = len(tiers[0].rise) if tiers else 0
            found = DerivativeCheck(None, np.nan, f"{count} pairs of neighbours are too few to tell")
        elif not np.any(tiers[0].rises):
            flat = not np.any(self.samples.slopes)
            found = DerivativeCheck(flat or None, 0.0, "the values are constant along the data")
        else:
            found = self.compared([tier for tier in tiers if len(tier.rise) > tier.extra.shape[1]])
        return replace(found, message=found.message + self.remark)

    def compared(self, tiers: list[Pairs]) -> DerivativeCheck:
        """Return the result for the nearest neighbours or, if they are dominated by noise, for more distant ones."""
        misfits = [tier.misfit for tier in tiers]
        rises = [float(np.linalg.norm(tier.rise)) / np.sqrt(len(tier.rise)) for tier in tiers]
        shuffled = "the rows of the gradients seem to be in another order than the points"
        for k, misfit in enumerate(misfits):
            # distant pairs tell more than near ones if their values differ more, for example if the values are noisy
            several = tiers[k : k + 3] if k == 0 or rises[k] > 1.5 * rises[0] else []
            if several and misfit > EXACT:
                found = [*self.mistakes([pairs.equalized() for pairs in several]), *self.mistakes(several)]
                if found:
                    return DerivativeCheck(False, misfits[0], min(found, key=lambda mistake: mistake.n_fitted).words)
            # if the values are noisy, nearer pairs may have a large misfit, but must not contradict the gradients
            if misfit <= EXPLAINED and not any(pairs.wrong_factors()[1].any() for pairs in tiers[:k]):
                if misfits[0] > EXACT and are_shuffled(self.samples):
                    return DerivativeCheck(False, misfits[0], shuffled)
                confirmed = f"the gradients explain the values: relative misfit {misfits[0]:.2g}"
                if self.samples.unknown.any():  # what the unknown derivatives leave unexplained is no noise
                    return DerivativeCheck(True, misfits[0], confirmed)
                levels, words = noise(tiers, self.samples.value_std)
                return DerivativeCheck(True, misfits[0], confirmed + words, *levels)
        if are_shuffled(self.samples):
            return DerivativeCheck(False, misfits[0], shuffled)
        unclear = (
            f"the gradients do not explain the values: relative misfit {misfits[0]:.2g}, and no factor corrects it"
        )
        reasons = "noise, too few points for a rough function, or wrong columns"
        return DerivativeCheck(None, misfits[0], f"{unclear} ({reasons})")

    def mistakes(self, tiers: list[Pairs]) -> list[Mistake]:
        """Return the mistake in the gradients that explains the first of the ``tiers``, if there is one."""
        near, far = tiers[0], _farther(tiers)
        growth = float(np.median((far.lengths / far.weights) ** 2) / np.median((near.lengths / near.weights) ** 2))
        fitting: list[tuple[float, Mistake]] = []
        for mistake in possible_mistakes(self.samples, near, self.others):
            room = near.count - mistake.n_fitted
            if room < MIN_PAIRS:
                continue
            corrected = self.samples.corrected(near, mistake.slopes).misfit * np.sqrt(near.count / room)
            ratio = BETTER * np.sqrt(mistake.n_averaged)  # without noise, misfits are smaller by the root at most
            if corrected > EXPLAINED or not _is_better(corrected, min(1.0, near.misfit), room, ratio, mistake.choices):
                continue
            if self.is_mild(mistake, growth) and corrected > min(near.misfit / 10, EXACT / 2):
                continue
            # a mistake is the same at all distances; the error of the trapezoidal rule grows with their square
            if self.samples.corrected(far, mistake.slopes).misfit < min(UNEXPLAINED, 3 * corrected * growth + EXACT):
                fitting.append((corrected, mistake))
        return self.best(fitting, near.count)

    def best(self, fitting: list[tuple[float, Mistake]], count: float) -> list[Mistake]:
        """Return the mistake that explains the values clearly better than its rivals, if there is one."""
        if not fitting:
            return []
        misfit, best = fitting[0]
        for corrected, mistake in fitting[1:]:
            ratio = NESTED if mistake.extends(best) else BETTER
            if _is_better(corrected, misfit, count - mistake.n_fitted, ratio):
                misfit, best = corrected, mistake
        for corrected, mistake in fitting:
            is_rival = not (mistake.extends(best) or _is_better(misfit, corrected, count - best.n_fitted))
            if is_rival and self.distance(mistake.slopes, best.slopes) > EXACT:
                return [AMBIGUOUS]
        return [best]

    def is_mild(self, mistake: Mistake, growth: float) -> bool:
        """Return whether a mistake changes the gradients so little that the trapezoidal rule may err as much.

        In many dimensions all neighbours have similar distances. There the rule may err by a factor, which
        distances that grow by little do not tell from a mistake.
        """
        if mistake.kind != "units":
            return self.distance(mistake.slopes, self.samples.slopes) < 0.5
        slopes = np.nan_to_num(self.samples.slopes * self.samples.ranges / self.samples.value_std)
        other = np.nan_to_num(mistake.slopes * self.samples.ranges / self.samples.value_std)
        used = np.any(slopes, axis=0)
        factors = np.sum(slopes * other, axis=0)[used] / np.sum(slopes**2, axis=0)[used]
        limit = np.log(MILD if growth > 2 else MILD_ALIKE)
        return bool(np.all(np.abs(np.log(np.maximum(factors, TINY))) < limit))

    def distance(self, a: Array, b: Array) -> float:
        """Return how much gradients (n, d) differ, relative to the smaller ones, in scaled units."""
        finite = np.isfinite(a) & np.isfinite(b)
        a, b = (np.where(finite, slopes, 0.0) * self.samples.ranges / self.samples.value_std for slopes in (a, b))
        return float(np.linalg.norm(a - b)) / max(min(float(np.linalg.norm(a)), float(np.linalg.norm(b))), TINY)


def _checks(X: Array, values: Array, slopes: Array) -> list[_Check]:
    """Return the checks of all outputs, for points (n, d), values (n, k) and gradients (n, k, d)."""
    checks, tiers = [], dict[bytes, list[Index]]()
    for output in range(values.shape[1]):
        known = ~np.isnan(slopes[:, output])
        some = ~np.isnan(values[:, output]) & known.any(axis=1)
        unknown = 2 * known[some].sum(axis=0) < some.sum()  # inputs for which most derivatives are not known
        whole = some & known[:, ~unknown].all(axis=1)
        usable = whole if 2 * whole.sum() >= some.sum() else some
        remark = "" if whole.all() else f" ({whole.sum()} of {len(X)} rows are fully known)"
        if unknown.any() and whole.any():
            names = ", ".join(map(str, np.flatnonzero(unknown)))
            remark = f" (the derivatives by input {names} are not known)"
        if usable.tobytes() not in tiers:
            tiers[usable.tobytes()] = neighbours(X[usable]) if usable.sum() > 1 else []
        samples = Samples(X[usable], values[usable, output], np.where(unknown, 0.0, slopes[usable, output]), unknown)
        others = _other_gradients(slopes, output) if usable.all() else ()
        checks.append(_Check(samples, tiers[usable.tobytes()], others, remark))
    return checks


def _other_gradients(slopes: Array, output: int) -> tuple[Mistake, ...]:
    """Return gradients that may be meant for an output, by another order of the axes of ``slopes`` (n, k, d)."""
    n, k, d = slopes.shape
    if k == 1:
        return (Mistake(TRANSPOSED, "transposed", slopes[:, 0].T),) if n == d else ()
    found = [
        Mistake(f"they are the gradients of output {q}", f"output {q}", slopes[:, q])
        for q in range(min(k, MAX_OUTPUTS))
        if q != output
    ]
    if k == d:
        words = f"{TRANSPOSED}: `gradients[n, i, j]` must be the derivative of output i by input j"
        found.insert(0, Mistake(words, "transposed", slopes[:, :, output]))
    return tuple(found)


def _farther(tiers: list[Pairs]) -> Pairs:
    """Return the first of the tiers whose pairs are clearly farther apart than those of the first, or the last."""
    lengths = [float(np.median(tier.lengths / tier.weights)) for tier in tiers]
    return next((tier for tier, length in zip(tiers, lengths, strict=True) if length > 1.4 * lengths[0]), tiers[-1])


def _is_better(misfit: float, other: float, room: float, ratio: float = BETTER, choices: float = 0.0) -> bool:
    """Return whether a misfit is clearly below another one.

    A vector of ``room`` independent numbers is nearer to a given one by a factor r with a probability of about
    r^room, and the nearest of several vectors with as many times that; ``choices`` is the logarithm of their number.
    """
    gain = max(other, NEGLIGIBLE) / max(misfit, NEGLIGIBLE)
    return gain > ratio and room * float(np.log(gain)) - choices > EVIDENCE
