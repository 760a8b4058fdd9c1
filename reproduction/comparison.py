"""Our errors compared with those of the authors' code, and the reasons for differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from reproduction.arrays import Array
from reproduction.authors import reference
from reproduction.findings import Comparison
from reproduction.reasons import REASONS
from reproduction.results import Table

LIMIT = 2.0  # standard errors
FEW = 4  # trials; the spread of fewer is not trusted
TOLERANCE = np.log(1.05)  # the rule that chooses alpha accepts errors within 5% of the best
FAR = 1.5  # times; rows beyond it are listed, even if chance alone can explain them
UNEXPLAINED = "not explained"


def compare(table: Table, keys: tuple[str, ...]) -> tuple[Comparison, ...]:
    """Return one comparison per case, method and stage that both have.

    Stages are compared one by one, although for some methods the authors' numbers of neurons include a constant.
    Trained networks differ in size: our errors are interpolated in logarithms at their numbers of neurons.
    """
    return tuple(
        comparison for key in keys for method in table.methods(key) for comparison in _of_method(table, key, method)
    )


def standard_error(comparison: Comparison) -> float:
    """Return the standard error of ``log(ours / theirs)``.

    A side with fewer than four trials takes the spread of the other if that is larger. If both have one trial, the
    result is NaN (unknown).
    """
    spreads = np.array([comparison.our_spread, comparison.their_spread])
    trials = np.array([comparison.our_trials, comparison.their_trials])
    used = np.where(trials < FEW, np.fmax(spreads, spreads[::-1]), spreads)
    return float(np.sqrt(np.sum(used**2 / trials)))


def deviates(comparison: Comparison) -> bool:
    """Return whether ``|log(ours / theirs)|`` exceeds 5% plus two standard errors."""
    error = standard_error(comparison)
    return bool(abs(np.log(comparison.ratio)) > TOLERANCE + LIMIT * (0.0 if np.isnan(error) else error))


def listed(comparison: Comparison) -> bool:
    """Return whether a row is worth showing: it deviates, or is far from theirs."""
    return bool(comparison.reason) or comparison.factor > FAR


def _of_method(table: Table, key: str, method: str) -> Iterator[Comparison]:
    theirs = reference()
    if not theirs.trials(key, method):
        return
    counts, known = theirs.curve(key, method)
    own_counts, own = _at(table, key, method, counts) if method == "sparse" else table.curve(key, method)
    for i in range(min(len(counts), len(own_counts))):
        errors = own[np.isfinite(own[:, i]), i]
        if len(errors):
            neurons = round(float(own_counts[i]))
            found = Comparison(key, method, neurons, *_summary(errors), *_summary(known[:, i]))
            gap = float(np.log(found.ratio))
            yield replace(found, reason=explanation(key, method, neurons, gap) if deviates(found) else "")


def explanation(case: str, method: str, neurons: float, gap: float) -> str:
    """Return the reason for a difference, or that there is no explanation."""
    found = (reason.text for reason in REASONS if reason.accounts_for(case, method, neurons, gap))
    return next(found, UNEXPLAINED)


def _at(table: Table, key: str, method: str, counts: Array) -> tuple[Array, Array]:
    """Return ``counts`` and the errors of each trial at these sizes, NaN outside its path."""
    errors = []
    for rows in table.trials(key, method):
        steps = sorted({row.neurons: row.error for row in rows if row.neurons > 0}.items())  # the last of equal size
        n, e = np.array(steps).T if steps else np.full((2, 1), np.nan)
        inside = (counts > n[0] - 0.5) & (counts < n[-1] + 0.5)  # sizes are whole numbers up to rounding
        errors.append(np.where(inside, np.exp(np.interp(np.log(counts), np.log(n), np.log(e))), np.nan))
    return counts, np.array(errors)


def _summary(errors: Array) -> tuple[float, float, int]:
    """Return ``exp(mean log error)``, the standard deviation of ``log error`` and the number of trials."""
    logs = np.log(errors)
    return float(np.exp(logs.mean())), float(logs.std(ddof=1)) if len(logs) > 1 else float("nan"), len(logs)
