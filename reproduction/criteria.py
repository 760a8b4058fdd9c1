"""The yardsticks of claims: each asks the evidence for a number and says what it needs to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nurf._types import Array
from reproduction.cases import CASES
from reproduction.evidence import Evidence, MissingError
from reproduction.findings import Finding

ALIKE = 1.25  # "similar", "on par": a mean ratio of errors between 1 / ALIKE and ALIKE
CLEAR = 1.5  # "significantly better": a mean ratio of errors below 1 / CLEAR
SLIGHT = 1.03  # "by a small margin": a mean ratio of errors below 1 / SLIGHT
REACHED = 1.15  # "up to the noise level": an error of at most so many noise levels
DEGREES = 10.0  # "along a direction": a normal within so many degrees

Check = tuple[bool, str]  # whether it passes, and the numbers in words
Test = Callable[[Evidence], Check]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and the tests that must all pass for it to hold."""

    text: str
    where: str
    tests: tuple[Test, ...]

    def finding(self, evidence: Evidence) -> Finding:
        """Return the claim with what the numbers say; without the numbers it is undecided."""
        try:
            checks = [test(evidence) for test in self.tests]
        except MissingError as missing:
            return Finding(self.text, self.where, None, f"not decided: {missing}")
        numbers = "; ".join(text for _, text in checks)
        return Finding(self.text, self.where, all(passed for passed, _ in checks), numbers)

    def beside(self, evidence: Evidence, theirs: Evidence) -> Finding:
        """Return the finding; where the claim does not hold, with what the authors' own errors say about it."""
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


def better(key: str, law: str, other: str, factor: float, low: float = 0.0, high: float = np.inf) -> Test:
    """Test that the errors of a law are smaller than those of another by a factor, in the mean over stages."""
    return lambda e: below(_name(key, law, other, low, high), e.ratio(key, law, other, low, high), 1 / factor)


def worse(key: str, law: str, other: str, factor: float, low: float = 0.0, high: float = np.inf) -> Test:
    """Test that they are larger by a factor (smaller by no more than one, for a factor below one)."""
    return lambda e: above(_name(key, law, other, low, high), e.ratio(key, law, other, low, high), factor)


def alike(key: str, law: str, other: str, factor: float = ALIKE, low: float = 0.0, high: float = np.inf) -> Test:
    """Test that they differ by less than a factor."""

    def test(e: Evidence) -> Check:
        value = e.ratio(key, law, other, low, high)
        name = _name(key, law, other, low, high)
        return 1 / factor <= value <= factor, f"{name} {value:.3g} (needs {1 / factor:.2f} to {factor:.3g})"

    return test


def better_now(key: str, law: str, other: str, factor: float) -> Test:
    """Test that the last error of a law is smaller than the last of another by a factor, whatever their sizes are."""

    def test(e: Evidence) -> Check:
        (n, error), (m, other_error) = (tuple(values[-1] for values in e.curve(key, name)) for name in (law, other))
        return below(f"{law} (N = {n:.0f}) / {other} (N = {m:.0f}):", error / other_error, 1 / factor)

    return test


def along(key: str, law: str, directions: Array, *, least: float = 0.0, most: float = 1.0) -> Test:
    """Test the share of the weight whose normals are along some directions."""

    def test(e: Evidence) -> Check:
        share = e.share_along(key, law, directions, DEGREES)
        needs = f"{least:.0%} to {most:.0%}"
        return least <= share <= most, f"weight of {law} within {DEGREES:g} degrees: {share:.0%} (needs {needs})"

    return test


def beside_training(key: str, laws: Sequence[str], limit: float) -> Test:
    """Test the error of training over the best of sampled laws, with the neurons of the largest trained network."""

    def test(e: Evidence) -> Check:
        n = e.curve(key, "sparse")[0][-1]
        best = min(laws or [law for law in e.table.laws(key) if law != "sparse"], key=lambda law: e.error(key, law, n))
        value = e.error(key, "sparse", n) / e.error(key, best, n)
        return below(f"{key}, N = {n:.0f}: sparse / the best sampled law ({best})", value, limit)

    return test


def training_costs(key: str, factor: float) -> Test:
    """Test the seconds of training over those of sampling and solving, up to as many neurons."""

    def test(e: Evidence) -> Check:
        n = e.curve(key, "sparse")[0][-1]
        stages = int(np.searchsorted(e.curve(key, "local")[0], n)) + 1
        sampled = np.median([sum(row.seconds for row in rows[:stages]) for rows in e.table.trials(key, "local")])
        trained = np.median([sum(row.seconds for row in rows) for rows in e.table.trials(key, "sparse")])
        if np.isnan(sampled):
            raise MissingError(f"the seconds of the stages of local on {key} are not known")
        return above(f"{key}, N = {n:.0f}: seconds of sparse / local", float(trained / sampled), factor)

    return test


def way_to_sparse(key: str, law: str) -> Test:
    """Test that a law is more than half way from uniform to sparse, in logarithms, at the largest trained network."""

    def test(e: Evidence) -> Check:
        n = e.curve(key, "sparse")[0][-1]
        top, own, bottom = (np.log(e.error(key, name, n)) for name in ("uniform", law, "sparse"))
        way = (top - own) / (top - bottom) if bottom < top else -np.inf  # no way there where training is worse
        return above(f"way of {law} from uniform to sparse on {key}, N = {n:.0f}:", way, 0.5)

    return test


def noise_level(key: str) -> float:
    """Return the relative error of the true function itself, on noisy training and clean validation values."""
    case = CASES[key]
    fine = case.function.value(case.function.grid(2001 if case.dimension == 1 else 201))
    return float(case.noise / np.sqrt(2 * np.mean(fine**2) + case.noise**2))


def inflection_points(key: str, law: str, *, many: bool) -> Test:
    """Test the share of inflection points with |x| < 0.3, where the bump varies; a uniform law has 30% there."""

    def test(e: Evidence) -> Check:
        network = e.network(key, law)
        share = float(np.mean(np.abs(network.offsets / network.normals[:, 0]) < 0.3))
        return (above if many else below)(f"share of the points of {law} in |x| < 0.3:", share, 0.6)

    return test


def aligned(key: str, law: str) -> Test:
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
        return above(
            f"mean |cos| between normals of {law} and gradients ({base:.2f} for uniform):", mean_of(e, law), base + 0.1
        )

    return test


def noise_reached(key: str, law: str, low: float, high: float) -> Test:
    """Test from how many neurons on a law is at the noise."""

    def test(e: Evidence) -> Check:
        n = e.reach(key, law, REACHED * noise_level(key))
        text = f"{law} is within 15% of the noise level {noise_level(key):.4f} from N = {n:.3g} on"
        return low <= n <= high, f"{text} (needs {low:g} to {high:g})"

    return test


def noise_not_reached(key: str, law: str, neurons: int) -> Test:
    """Test that a law is above the noise."""
    name = f"{law}, N = {neurons}, in noise levels:"
    return lambda e: above(name, e.error(key, law, neurons) / noise_level(key), REACHED)


def at_sparse(key: str, law: str, other: str, factor: float) -> Test:
    """Test that a law is better than another with the neurons of the largest trained network."""

    def test(e: Evidence) -> Check:
        n = float(np.clip(e.curve(key, "sparse")[0][-1], 4, 12))
        return below(f"{law} / {other}, N = {n:.0f}:", e.error(key, law, n) / e.error(key, other, n), 1 / factor)

    return test


def deteriorates(key: str) -> Test:
    """Test that local sampling falls behind its residual version as the error falls."""

    def test(e: Evidence) -> Check:
        last = e.curve(key, "local")[0][-1]
        early, late = (e.ratio(key, "local", "local_residual", *span) for span in ((50, 250), (last, np.inf)))
        return above(
            f"local / local_residual on {key}, N = {last:.0f} ({early:.2f} for N from 50 to 250):",
            late,
            max(1.2, early),
        )

    return test


def dominant(key: str, law: str, wanted: float, name: str) -> Test:
    """Test that the densest direction is within some degrees of ``+-wanted``, up to reflections."""

    def test(e: Evidence) -> Check:
        angle = e.dominant_angle(key, law)
        off = min(abs(angle - w) for w in (wanted, 180 - wanted, 180 + wanted, -wanted))
        return below(f"{law} is densest at {angle:.1f} degrees, off {name} by", off, DEGREES)

    return test


def densest_at_an_axis(key: str, law: str) -> Test:
    """Test that the densest direction is one of the axes."""

    def test(e: Evidence) -> Check:
        angle = e.dominant_angle(key, law)
        return below(
            f"{law} is densest at {angle:.1f} degrees, off an axis by", min(angle % 90, 90 - angle % 90), DEGREES
        )

    return test


def always_better(key: str, law: str) -> Test:
    """Test the worst stage of a law against the better of the two global laws."""

    def test(e: Evidence) -> Check:
        ratios = [
            error / min(e.error(key, other, n) for other in ("uniform", "active_subspace"))
            for n, error in zip(*e.curve(key, law), strict=True)
        ]
        return below(f"largest {law} / best global law over all N:", max(ratios), 1.0)

    return test


def stagnates(key: str, law: str, low: float) -> Test:
    """Test that the slope of the error in logarithms is nearly zero."""
    return lambda e: above(f"slope of {law} on {key} from N = {low:g} on:", e.slope(key, law, low), -0.25)


def _name(key: str, law: str, other: str, low: float, high: float) -> str:
    limits = ([f"from {low:g}"] if low > 0 else []) + ([f"to {high:g}"] if high < np.inf else [])
    span = f", N {' '.join(limits)}" if limits else ""
    return f"{law} / {other} on {key}{span}:"
