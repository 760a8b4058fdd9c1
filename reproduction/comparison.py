"""Our errors beside those of the authors' code, and why they differ where they do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nurf._types import Array
from reproduction.authors import reference
from reproduction.findings import Comparison
from reproduction.reasons import REASONS
from reproduction.results import Table

LIMIT = 2.0  # standard errors
FEW = 4  # trials
TOLERANCE = np.log(1.05)  # the rule that chooses alpha gives away so much
UNEXPLAINED = "not explained"


def compare(table: Table, keys: tuple[str, ...]) -> tuple[Comparison, ...]:
    """Return one comparison for each case, law and stage that both have.

    Stages are compared with stages: where the authors add a constant neuron, their first one counts it. Trained
    networks differ in size, so there our errors are taken at their numbers of neurons, on straight lines in logarithms.
    """
    return tuple(comparison for key in keys for law in table.laws(key) for comparison in _of_law(table, key, law))


def standard_error(comparison: Comparison) -> float:
    """Return the standard error of ``log(ours / theirs)``.

    A side with fewer than four trials hardly knows its spread, and takes that of the other where that is larger. Where
    both have one trial, it is not known: NaN.
    """
    spreads = np.array([comparison.our_spread, comparison.their_spread])
    trials = np.array([comparison.our_trials, comparison.their_trials])
    used = np.where(trials < FEW, np.fmax(spreads, spreads[::-1]), spreads)
    return float(np.sqrt(np.sum(used**2 / trials)))


def deviates(comparison: Comparison) -> bool:
    """Return whether ``log(ours / theirs)`` is farther from 0 than 5% and two standard errors together."""
    error = standard_error(comparison)
    return bool(abs(np.log(comparison.ratio)) > TOLERANCE + LIMIT * (0.0 if np.isnan(error) else error))


def _of_law(table: Table, key: str, law: str) -> Iterator[Comparison]:
    theirs = reference()
    if not theirs.trials(key, law):
        return
    counts, known = theirs.curve(key, law)
    own_counts, own = _at(table, key, law, counts) if law == "sparse" else table.curve(key, law)
    for i in range(min(len(counts), len(own_counts))):
        errors = own[np.isfinite(own[:, i]), i]
        if len(errors):
            neurons = round(float(own_counts[i]))
            found = Comparison(key, law, neurons, *_summary(errors), *_summary(known[:, i]))
            gap = float(np.log(found.ratio))
            yield replace(found, reason=explanation(key, law, neurons, gap) if deviates(found) else "")


def explanation(case: str, law: str, neurons: float, gap: float) -> str:
    """Return why our errors differ, or that it is not known."""
    found = (reason.text for reason in REASONS if reason.accounts_for(case, law, neurons, gap))
    return next(found, UNEXPLAINED)


def _at(table: Table, key: str, law: str, counts: Array) -> tuple[Array, Array]:
    """Return ``counts`` and the errors of each trial there, NaN outside its path."""
    errors = []
    for rows in table.trials(key, law):
        steps = sorted({row.neurons: row.error for row in rows if row.neurons > 0}.items())  # of equal sizes the last
        n, e = np.array(steps).T if steps else np.full((2, 1), np.nan)
        errors.append(np.exp(np.interp(np.log(counts), np.log(n), np.log(e), left=np.nan, right=np.nan)))
    return counts, np.array(errors)


def _summary(errors: Array) -> tuple[float, float, int]:
    """Return ``exp(mean log error)``, the standard deviation of ``log error`` and the number of trials."""
    logs = np.log(errors)
    return float(np.exp(logs.mean())), float(logs.std(ddof=1)) if len(logs) > 1 else float("nan"), len(logs)
