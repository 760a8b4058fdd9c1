"""The criteria of claims about errors and times: each measures a number and tells which one is needed."""

from __future__ import annotations

import numpy as np

from reproduction import thresholds
from reproduction.cases import CASES
from reproduction.checks import Limits, Measurement, Test, check
from reproduction.evidence import Evidence, MissingError

GLOBAL = ("uniform", "active_subspace")
ADAPTIVE = ("local", "nonlocal", "local_residual")


def first_size(key: str) -> int:
    """Return the number of neurons from which on errors of a case are compared."""
    return CASES[key].stages[thresholds.FIRST_STAGE]


def better(key: str, method: str, other: str, factor: float, low: float = 0.0, high: float = np.inf) -> Test:
    """Test that the errors of a method are smaller than those of another by a factor, on average over stages."""
    return _compared(key, method, other, Limits(high=1 / factor), low, high)


def worse(key: str, method: str, other: str, factor: float, low: float = 0.0, high: float = np.inf) -> Test:
    """Test that they are larger by a factor; a factor below one allows slightly smaller errors."""
    return _compared(key, method, other, Limits(low=factor), low, high)


def alike(key: str, method: str, other: str) -> Test:
    """Test that they are similar."""
    return _compared(key, method, other, Limits(1 / thresholds.ALIKE, thresholds.ALIKE))


def _compared(key: str, method: str, other: str, limits: Limits, low: float = 0.0, high: float = np.inf) -> Test:
    def measure(e: Evidence) -> Measurement:
        start = max(low, first_size(key))
        span = f"N from {start:g}" + (f" to {high:g}" if high < np.inf else "")
        return f"{method} / {other} on {key}, {span}", e.ratio(key, method, other, start, high)

    return check((key,), measure, limits)


def better_at(key: str, method: str, neurons: int, other: str, other_neurons: int, factor: float) -> Test:
    """Test that a network of given size is better than another by a factor; a path may end before that size."""

    def measure(e: Evidence) -> Measurement:
        sizes = [min(n, float(e.curve(key, name)[0][-1])) for name, n in ((method, neurons), (other, other_neurons))]
        ratio = e.error(key, method, sizes[0]) / e.error(key, other, sizes[1])
        return f"{method} (N = {sizes[0]:.0f}) / {other} (N = {sizes[1]:.0f}) on {key}", ratio

    return check((key,), measure, Limits(high=1 / factor))


def largest_trained(e: Evidence, key: str) -> float:
    """Return the size of the largest trained network, the geometric mean over the trials."""
    return float(e.curve(key, "sparse")[0][-1])


def at_sparse(key: str, method: str, other: str, factor: float) -> Test:
    """Test that a method is better than another at the size of the largest trained network."""

    def measure(e: Evidence) -> Measurement:
        n = largest_trained(e, key)
        return f"{method} / {other} on {key}, N = {n:.0f}", e.error(key, method, n) / e.error(key, other, n)

    return check((key,), measure, Limits(high=1 / factor))


def training_over_best(key: str, limit: float) -> Test:
    """Test the error of training over that of the best sampling method, at the size of the largest trained network."""

    def measure(e: Evidence) -> Measurement:
        n = largest_trained(e, key)
        sampled = [method for method in e.table.methods(key) if method not in ("sparse", "convex")]
        best = min(sampled, key=lambda method: e.error(key, method, n))
        return f"sparse / {best} (the best) on {key}, N = {n:.0f}", e.error(key, "sparse", n) / e.error(key, best, n)

    return check((key,), measure, Limits(high=limit))


def training_costs(key: str) -> Test:
    """Test the seconds of training over those of sampling and solving, up to the same number of neurons."""

    def measure(e: Evidence) -> Measurement:
        n = largest_trained(e, key)
        return f"seconds of sparse / local on {key}, N = {n:.0f}", e.seconds(key, "sparse") / e.seconds(key, "local", n)

    return check((key,), measure, Limits(low=thresholds.EXPENSIVE))


def fewer_than_convex(key: str) -> Test:
    """Test that the concave penalty gives fewer neurons than the convex one, at the last alpha."""

    def measure(e: Evidence) -> Measurement:
        return f"neurons of sparse / convex on {key}", largest_trained(e, key) / e.curve(key, "convex")[0][-1]

    return check((key,), measure, Limits(high=1 / thresholds.SLIGHT))


def as_accurate_as_convex(key: str) -> Test:
    """Test that the concave penalty gives similar or smaller errors than the convex one, at the last alpha."""

    def measure(e: Evidence) -> Measurement:
        own, other = (e.curve(key, method)[1][-1] for method in ("sparse", "convex"))
        return f"sparse / convex on {key}", own / other

    return check((key,), measure, Limits(high=thresholds.ALIKE))


def sensitive(key: str, variant: str, method: str = "local_residual") -> Test:
    """Test that a variant of a case, with a small width or penalty, harms residual sampling."""

    def factor(e: Evidence, name: str) -> float:
        used = e.curve(key, name)[0] >= first_size(key) * 0.999
        logs = [np.log(e.curve(k, name)[1][used]).mean() for k in (variant, key)]
        return float(np.exp(logs[0] - logs[1]))

    def measure(e: Evidence) -> Measurement:
        plain = method.removesuffix("_residual")
        return f"{variant} / {key}, {method} ({factor(e, plain):.2f} for {plain})", factor(e, method)

    return check((key, variant), measure, Limits(low=thresholds.CLEAR))


def way_to_sparse(key: str, method: str) -> Test:
    """Test how far from uniform to sparse a method is, in logarithms, at the size of the largest trained network."""

    def measure(e: Evidence) -> Measurement:
        n = largest_trained(e, key)
        top, own, bottom = (np.log(e.error(key, name, n)) for name in ("uniform", method, "sparse"))
        way = (top - own) / (top - bottom) if bottom < top else -np.inf  # training is worse: there is no way
        return f"way of {method} from uniform to sparse on {key}, N = {n:.0f}", float(way)

    return check((key,), measure, Limits(low=thresholds.HALF_WAY), log=False)


def noise_level(key: str) -> float:
    """Return the relative error of the true function itself, on noisy training and exact validation values."""
    case = CASES[key]
    fine = case.function.value(case.function.grid(2001 if case.dimension == 1 else 201))
    return float(case.noise / np.sqrt(2 * np.mean(fine**2) + case.noise**2))


def noise_reached(key: str, method: str, neurons: float) -> Test:
    """Test the number of neurons from which on a method is at the noise level."""

    def measure(e: Evidence) -> Measurement:
        level = noise_level(key)
        name = f"N from which on {method} is within {thresholds.REACHED - 1:.0%} of the noise level {level:.4f}"
        return name, e.reach(key, method, thresholds.REACHED * level)

    return check((key,), measure, Limits(neurons / thresholds.ABOUT, neurons * thresholds.ABOUT))


def noise_not_reached(key: str, method: str, neurons: int) -> Test:
    """Test that a method is above the noise level."""

    def measure(e: Evidence) -> Measurement:
        return f"{method}, N = {neurons}, in noise levels", e.error(key, method, neurons) / noise_level(key)

    return check((key,), measure, Limits(low=thresholds.REACHED))


def deteriorates(key: str) -> Test:
    """Test that local sampling falls behind its residual version as the number of neurons grows."""

    def measure(e: Evidence) -> Measurement:
        counts = e.curve(key, "local")[0]
        counts = counts[counts >= first_size(key) * 0.999]
        early, late = (e.ratio(key, "local", "local_residual", n, n) for n in counts[[0, -1]])
        name = f"local / local_residual on {key}, N = {counts[-1]:.0f} ({early:.2f} for N = {counts[0]:.0f})"
        return name, late / max(early, 1.0)

    return check((key,), measure, Limits(low=thresholds.ALIKE))


def always_better(key: str) -> Test:
    """Test that the adaptive methods are better than the global densities at every stage."""

    def measure(e: Evidence) -> Measurement:
        known = [name for name in (*GLOBAL, *ADAPTIVE) if e.table.trials(key, name)]
        ratios = {
            (method, n): error / min(e.error(key, other, n) for other in GLOBAL if other in known)
            for method in ADAPTIVE
            if method in known
            for n, error in zip(*e.curve(key, method), strict=True)
            if n >= first_size(key) * 0.999
        }
        if not ratios:
            raise MissingError(f"no adaptive method was run on {key}")
        method, n = max(ratios, key=lambda place: ratios[place])
        return f"largest {method} / best global density on {key} (at N = {n:.0f})", ratios[method, n]

    return check((key,), measure, Limits(high=1.0))


def stagnates(key: str, method: str) -> Test:
    """Test that the slope of log error over log N is nearly zero."""

    def measure(e: Evidence) -> Measurement:
        start = first_size(key)
        return f"slope of {method} on {key} from N = {start} on", e.slope(key, method, start)

    return check((key,), measure, Limits(low=thresholds.STAGNANT), log=False)
