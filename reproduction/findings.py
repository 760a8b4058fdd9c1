"""The findings of a reproduction: decided claims of the paper, and errors compared with the authors' code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, decided by numbers.

    Attributes
    ----------
    claim : str
        What the paper says, in one sentence.
    where : str
        Where it says so.
    holds : bool or None
        None if the run lacks the numbers to decide, or if no run can.
    numbers : str
        The numbers that decided, with 95% confidence intervals in brackets.
    clear : bool or None
        Whether all numbers within the intervals give the same verdict; None if there are no intervals.
    theirs : str
        The verdict and the numbers with the errors of the authors' code; empty if these do not decide.
    testable : bool
        Whether a run can decide the claim.
    """

    claim: str
    where: str
    holds: bool | None
    numbers: str
    clear: bool | None = None
    theirs: str = ""
    testable: bool = True


@dataclass(frozen=True)
class Comparison:
    """Our error and that of the authors' code, for one method and one number of neurons.

    Attributes
    ----------
    case, method : str
    neurons : int
    ours, theirs : float
        ``exp(mean log error)`` over the trials.
    our_spread, their_spread : float
        Standard deviation of ``log error``; NaN for a single trial.
    our_trials, their_trials : int
    reason : str
        Why the two differ by more than their spread; empty if they do not.
    """

    case: str
    method: str
    neurons: int
    ours: float
    our_spread: float
    our_trials: int
    theirs: float
    their_spread: float
    their_trials: int
    reason: str = ""

    @property
    def ratio(self) -> float:
        """Ours over theirs."""
        return self.ours / self.theirs

    @property
    def factor(self) -> float:
        """The larger of both over the smaller."""
        return max(self.ratio, 1 / self.ratio)


def share_within(comparisons: Sequence[Comparison], limit: float) -> float:
    """Return the share of comparisons whose errors differ by at most a factor."""
    return sum(comparison.factor <= limit for comparison in comparisons) / len(comparisons)


@dataclass(frozen=True)
class Section:
    """One figure of the paper in the report.

    Attributes
    ----------
    name : str
        Such as ``"fig5"``.
    title : str
    caption : str
        What the picture shows.
    says : str
        What the paper says about it.
    picture : Path
        The SVG file; PNG and PDF files of the same stem are in the same folder.
    findings : tuple of Finding
    comparisons : tuple of Comparison
    seconds : float
        Time of its computations, summed over processes.
    note : str
        What differs from the paper's setting; may be empty.
    """

    name: str
    title: str
    caption: str
    says: str
    picture: Path
    findings: tuple[Finding, ...]
    comparisons: tuple[Comparison, ...]
    seconds: float
    note: str = ""
