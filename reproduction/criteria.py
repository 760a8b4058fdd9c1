"""The criteria of claims: each computes a number from the evidence and compares it with a threshold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reproduction import thresholds
from reproduction.arrays import Array
from reproduction.cases import CASES
from reproduction.evidence import Evidence, MissingError
from reproduction.findings import Finding

Check = tuple[bool, str]  # whether it passes, and the numbers in words
Test = Callable[[Evidence], Check]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and the tests that must all pass for it to hold."""

    text: str
    where: str
    tests: tuple[Test, ...]

    def finding(self, evidence: Evidence) -> Finding:
        """Return whether the claim holds, with the numbers; it is undecided if numbers are missing."""
        try:
            checks = [test(evidence) for test in self.tests]
        except MissingError as missing:
            return Finding(self.text, self.where, None, f"not decided: {missing}")
        numbers = "; ".join(text for _, text in checks)
        return Finding(self.text, self.where, all(passed for passed, _ in checks), numbers)

    def beside(self, evidence: Evidence, theirs: Evidence) -> Finding:
        """Return the finding; if the claim does not hold, add what the errors of the authors' code say."""
        own, other = self.finding(evidence), self.finding(theirs)
        if own.holds is not False or other.holds is None:
            return own
        verdict = "it holds" if other.holds else "it does not hold either"
        return replace(own, numbers=f"{own.numbers}. With the errors of the authors' code {verdict}: {other.numbers}")


def below(name: str, value: float, limit: float) -> Check:
    """Return whether a number is below a limit."""
    return bool(value < limit), f"{name} {value:.3g} (needs < {limit:.3g})"


def above(name: str, value: float, limit: float) -> Check:
    """Return whether a number is above a limit."""
    return bool(value > limit), f"{name} {value:.3g} (needs > {limit:.3g})"


def better(key: str, method: str, other: str, factor: float, low: float = 0.0, high: float = np.inf) -> Test:
    """Test that the errors of a method are smaller than those of another by a factor, on average over stages."""
    return lambda e: below(_name(key, method, other, low, high), e.ratio(key, method, other, low, high), 1 / factor)


def worse(key: str, method: str, other: str, factor: float, low: float = 0.0, high: float = np.inf) -> Test:
    """Test that they are larger by a factor; a factor below one allows slightly smaller errors."""
    return lambda e: above(_name(key, method, other, low, high), e.ratio(key, method, other, low, high), factor)


def alike(key: str, method: str, other: str, low: float, factor: float = thresholds.ALIKE) -> Test:
    """Test that they differ by less than a factor."""

    def test(e: Evidence) -> Check:
        value = e.ratio(key, method, other, low)
        name = _name(key, method, other, low, np.inf)
        return 1 / factor <= value <= factor, f"{name} {value:.3g} (needs {1 / factor:.2f} to {factor:.3g})"

    return test


def better_now(key: str, method: str, other: str, factor: float) -> Test:
    """Test that the last error of a method is smaller than that of another by a factor, whatever their sizes."""

    def test(e: Evidence) -> Check:
        (n, error), (m, other_error) = (tuple(values[-1] for values in e.curve(key, name)) for name in (method, other))
        return below(f"{method} (N = {n:.0f}) / {other} (N = {m:.0f}):", error / other_error, 1 / factor)

    return test


def along(key: str, method: str, directions: Array, *, least: float = 0.0, most: float = 1.0) -> Test:
    """Test the share of the weight whose normals are along some directions."""

    def test(e: Evidence) -> Check:
        share = e.share_along(key, method, directions, thresholds.DEGREES)
        needs = f"{least:.0%} to {most:.0%}"
        return (
            least <= share <= most,
            f"weight of {method} within {thresholds.DEGREES:g} degrees: {share:.0%} (needs {needs})",
        )

    return test


def training_over_best(key: str, limit: float) -> Test:
    """Test the error of training over that of the best sampling method, at the size of the largest trained network."""

    def test(e: Evidence) -> Check:
        n = e.curve(key, "sparse")[0][-1]
        sampled = [method for method in e.table.methods(key) if method != "sparse"]
        best = min(sampled, key=lambda method: e.error(key, method, n))
        value = e.error(key, "sparse", n) / e.error(key, best, n)
        return below(f"{key}, N = {n:.0f}: sparse / the best sampling method ({best})", value, limit)

    return test


def training_costs(key: str) -> Test:
    """Test the seconds of training over those of sampling and solving, up to the same number of neurons."""

    def test(e: Evidence) -> Check:
        n = e.curve(key, "sparse")[0][-1]
        stages = int(np.searchsorted(e.curve(key, "local")[0], n)) + 1
        sampled = np.median([sum(row.seconds for row in rows[:stages]) for rows in e.table.trials(key, "local")])
        trained = np.median([sum(row.seconds for row in rows) for rows in e.table.trials(key, "sparse")])
        if np.isnan(sampled):
            raise MissingError(f"the seconds of the stages of local on {key} are unknown")
        return above(f"{key}, N = {n:.0f}: seconds of sparse / local", float(trained / sampled), thresholds.EXPENSIVE)

    return test


def way_to_sparse(key: str, method: str) -> Test:
    """Test how far from uniform to sparse a method is, in logarithms, at the size of the largest trained network."""

    def test(e: Evidence) -> Check:
        n = e.curve(key, "sparse")[0][-1]
        top, own, bottom = (np.log(e.error(key, name, n)) for name in ("uniform", method, "sparse"))
        way = (top - own) / (top - bottom) if bottom < top else -np.inf  # training is worse: there is no way
        return above(f"way of {method} from uniform to sparse on {key}, N = {n:.0f}:", way, thresholds.HALF_WAY)

    return test


def noise_level(key: str) -> float:
    """Return the relative error of the true function itself, on noisy training and exact validation values."""
    case = CASES[key]
    fine = case.function.value(case.function.grid(2001 if case.dimension == 1 else 201))
    return float(case.noise / np.sqrt(2 * np.mean(fine**2) + case.noise**2))


def inflection_points(key: str, method: str, *, many: bool) -> Test:
    """Test the share of inflection points where the bump varies."""

    def test(e: Evidence) -> Check:
        network = e.network(key, method)
        share = float(np.mean(np.abs(network.offsets / network.normals[:, 0]) < thresholds.STEEP))
        return (above if many else below)(
            f"share of the points of {method} in |x| < {thresholds.STEEP:g}:", share, thresholds.CONCENTRATED
        )

    return test


def aligned(key: str, method: str) -> Test:
    """Test the mean of ``|a.g| / |g|`` over neurons and, weighted by ``|g|``, over points within two widths of them."""

    def mean_of(e: Evidence, name: str) -> float:
        case, network = CASES[key], e.network(key, name)
        X = case.function.grid(101)
        g = case.function.gradient(X)
        near = np.exp(-0.5 * (network.hyperplanes.signed_distance(X) / (2 * case.width)) ** 2)
        steepness = near * np.linalg.norm(g, axis=1)[:, None]
        cosines = (near * np.abs(g @ network.normals.T)).sum(axis=0) / steepness.sum(axis=0)
        return float(np.average(cosines, weights=np.abs(network.coef) if name == "sparse" else None))

    def test(e: Evidence) -> Check:
        base = mean_of(e, "uniform")
        name = f"mean |cos| between normals of {method} and gradients ({base:.2f} for uniform):"
        return above(name, mean_of(e, method), base + thresholds.ALIGNED)

    return test


def noise_reached(key: str, method: str, low: float, high: float) -> Test:
    """Test the number of neurons from which on a method is at the noise level."""

    def test(e: Evidence) -> Check:
        n = e.reach(key, method, thresholds.REACHED * noise_level(key))
        margin = f"{thresholds.REACHED - 1:.0%}"
        text = f"{method} is within {margin} of the noise level {noise_level(key):.4f} from N = {n:.3g} on"
        return low <= n <= high, f"{text} (needs {low:g} to {high:g})"

    return test


def noise_not_reached(key: str, method: str, neurons: int) -> Test:
    """Test that a method is above the noise level."""
    name = f"{method}, N = {neurons}, in noise levels:"
    return lambda e: above(name, e.error(key, method, neurons) / noise_level(key), thresholds.REACHED)


def at_sparse(key: str, method: str, other: str, factor: float) -> Test:
    """Test that a method is better than another at the size of the largest trained network."""

    def test(e: Evidence) -> Check:
        n = float(np.clip(e.curve(key, "sparse")[0][-1], *thresholds.SIZES_1D))
        return below(f"{method} / {other}, N = {n:.0f}:", e.error(key, method, n) / e.error(key, other, n), 1 / factor)

    return test


def deteriorates(key: str) -> Test:
    """Test that local sampling falls behind its residual version as the number of neurons grows."""

    def test(e: Evidence) -> Check:
        last = e.curve(key, "local")[0][-1]
        early, late = (e.ratio(key, "local", "local_residual", *span) for span in (thresholds.EARLY, (last, np.inf)))
        span = f"{early:.2f} for N from {thresholds.EARLY[0]} to {thresholds.EARLY[1]}"
        name = f"local / local_residual on {key}, N = {last:.0f} ({span}):"
        return above(name, late, max(thresholds.DETERIORATED, early))

    return test


def dominant(key: str, method: str, wanted: float) -> Test:
    """Test that the densest direction is at ``wanted`` degrees, up to reflections at the axes."""

    def test(e: Evidence) -> Check:
        angle = e.dominant_angle(key, method)
        off = min(abs(angle - w) for w in (wanted, 180 - wanted, 180 + wanted, -wanted))
        return below(f"{method} is densest at {angle:.1f} degrees, off that direction by", off, thresholds.DEGREES)

    return test


def densest_at_an_axis(key: str, method: str) -> Test:
    """Test that the densest direction is one of the axes."""

    def test(e: Evidence) -> Check:
        angle = e.dominant_angle(key, method)
        off = min(angle % 90, 90 - angle % 90)
        return below(f"{method} is densest at {angle:.1f} degrees, off an axis by", off, thresholds.DEGREES)

    return test


def always_better(key: str, method: str) -> Test:
    """Test that a method is better than the two global densities at every stage."""

    def test(e: Evidence) -> Check:
        ratios = [
            error / min(e.error(key, other, n) for other in ("uniform", "active_subspace"))
            for n, error in zip(*e.curve(key, method), strict=True)
        ]
        return below(f"largest {method} / best global density over all N:", max(ratios), 1.0)

    return test


def stagnates(key: str, method: str, low: float) -> Test:
    """Test that the slope of log error over log N is nearly zero."""
    return lambda e: above(
        f"slope of {method} on {key} from N = {low:g} on:", e.slope(key, method, low), thresholds.STAGNANT
    )


def _name(key: str, method: str, other: str, low: float, high: float) -> str:
    limits = ([f"from {low:g}"] if low > 0 else []) + ([f"to {high:g}"] if high < np.inf else [])
    span = f", N {' '.join(limits)}" if limits else ""
    return f"{method} / {other} on {key}{span}:"
