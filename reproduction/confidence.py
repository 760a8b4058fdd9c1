"""How far the trials determine a number: intervals from leaving out one trial at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import t

from reproduction.evidence import Evidence, MissingError

LEVEL = 0.95


def interval(
    statistic: Callable[[Evidence], float], evidence: Evidence, *, log: bool = True
) -> tuple[float, float] | None:
    """Return the jackknife confidence interval of a number, or None if trials are not paired or fewer than two.

    A trial is left out for all methods at once, because they share its data. For the mean of differences between two
    methods, such as the logarithm of a ratio of errors, this is the t-interval of paired differences.

    Parameters
    ----------
    statistic : callable
        Computes the number from the evidence.
    evidence : Evidence
        Of cases that have the same trials.
    log : bool
        Whether the interval is computed for the logarithm of the number.
    """
    trials = evidence.trials if evidence.paired else []
    forward, back = (np.log, np.exp) if log else (np.asarray, np.asarray)
    try:
        values = forward([statistic(evidence.without(trial)) for trial in trials] if len(trials) > 1 else [])
        centre = forward(statistic(evidence))
    except MissingError:  # some method has one trial only
        return None
    n = len(values)
    if n < 2 or not np.all(np.isfinite(values)):
        return None
    margin = t.ppf((1 + LEVEL) / 2, n - 1) * np.sqrt((n - 1) * np.var(values))
    return float(back(centre - margin)), float(back(centre + margin))
