"""Numbers compared with limits, and the verdict on a claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reproduction.confidence import interval
from reproduction.evidence import Evidence, MissingError
from reproduction.findings import Finding

Measurement = tuple[str, float]  # what was measured, and its value


@dataclass(frozen=True)
class Limits:
    """The interval in which a number must be."""

    low: float = -np.inf
    high: float = np.inf

    def contain(self, value: float) -> bool:
        """Return whether a number is inside."""
        return bool(self.low <= value <= self.high)

    def clear_of(self, ends: tuple[float, float]) -> bool:
        """Return whether an interval lies on one side of each limit."""
        return all(ends[1] < limit or limit < ends[0] for limit in (self.low, self.high))

    def __str__(self) -> str:
        if self.low == -np.inf:
            return f"< {self.high:.3g}"
        return f"> {self.low:.3g}" if self.high == np.inf else f"{self.low:.3g} to {self.high:.3g}"


@dataclass(frozen=True)
class Check:
    """A number, the limits that it needs, and its confidence interval, if trials determine it."""

    name: str
    value: float
    limits: Limits
    ends: tuple[float, float] | None = None

    @property
    def passed(self) -> bool:
        """Whether the number is within its limits."""
        return self.limits.contain(self.value)

    @property
    def clear(self) -> bool | None:
        """Whether all numbers of the confidence interval give the same answer; None without an interval."""
        return None if self.ends is None else self.limits.clear_of(self.ends)

    def __str__(self) -> str:
        ends = "" if self.ends is None else f" [{self.ends[0]:.3g}, {self.ends[1]:.3g}]"
        return f"{self.name}: {self.value:.3g}{ends}"


Test = Callable[[Evidence], Check]


def check(
    keys: tuple[str, ...],
    measure: Callable[[Evidence], Measurement],
    limits: Limits,
    *,
    trials: bool = True,
    log: bool = True,
) -> Test:
    """Return the test of a number.

    Parameters
    ----------
    keys : tuple of str
        The cases that it depends on.
    measure : callable
        Computes the number from the evidence on these cases, and says what it is.
    limits : Limits
    trials : bool
        Whether the trials determine it, so that it has a confidence interval; False for properties of one network.
    log : bool
        Whether the interval is computed for the logarithm.
    """

    def test(evidence: Evidence) -> Check:
        own = evidence.of(*keys)
        name, value = measure(own)
        ends = interval(lambda e: measure(e)[1], own, log=log) if trials else None
        return Check(name, value, limits, ends)

    return test


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, and the tests that must all pass for it to hold.

    Parameters
    ----------
    text, where : str
    tests : tuple of Test
    obstacle : str
        Why no numbers of ours can decide it; empty if they can.
    """

    text: str
    where: str
    tests: tuple[Test, ...]
    obstacle: str = ""

    def finding(self, evidence: Evidence) -> Finding:
        """Return whether the claim holds, with the numbers; it is undecided if numbers are missing."""
        try:
            checks = [test(evidence) for test in self.tests]
        except MissingError as missing:
            return Finding(self.text, self.where, None, f"not decided: {missing}")
        if self.obstacle:
            numbers = f"{self.obstacle}. With ours: {_numbers(checks)}"
            return Finding(self.text, self.where, None, numbers, testable=False)
        return Finding(self.text, self.where, all(c.passed for c in checks), _numbers(checks), _clear(checks))

    def beside(self, evidence: Evidence, theirs: Evidence) -> Finding:
        """Return the finding, together with what the errors of the authors' code say, as far as they are known."""
        checks = [found for test in self.tests if (found := _known(test, theirs)) is not None]
        if self.obstacle or not checks:
            return self.finding(evidence)
        holds = "yes" if all(c.passed for c in checks) else "no"
        partly = ", as far as it is known" if len(checks) < len(self.tests) else ""
        return replace(self.finding(evidence), theirs=f"{holds}{partly}: {'; '.join(map(str, checks))}")


def _known(test: Test, evidence: Evidence) -> Check | None:
    try:
        return test(evidence)
    except MissingError:
        return None


def _numbers(checks: Sequence[Check]) -> str:
    """Return the numbers in words; limits that all have in common are written once."""
    if len(checks) > 1 and len({c.limits for c in checks}) == 1:
        return f"{'; '.join(map(str, checks))} (all need {checks[0].limits})"
    return "; ".join(f"{c} (needs {c.limits})" for c in checks)


def _clear(checks: Sequence[Check]) -> bool | None:
    """Return whether the verdict is the same within all confidence intervals: one clear failure is enough."""
    failed = [c for c in checks if not c.passed]
    known = [c.clear for c in failed or checks if c.clear is not None]
    if not known:
        return None
    return any(known) if failed else all(known)
