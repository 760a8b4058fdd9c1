"""The report of a reproduction: one HTML file with its pictures, style and script, which needs no network."""

from __future__ import annotations

import math
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reproduction.findings import Finding, Section, share_within

TEMPLATES = Path(__file__).parent / "templates"
LONG_TABLE = 16  # rows; longer tables are folded at first
DASH = "–"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a claim or of all claims of a figure: a word for readers, a key for style and icon."""

    key: str
    word: str


HOLDS, FAILS, OPEN = Verdict("holds", "holds"), Verdict("fails", "does not hold"), Verdict("open", "not decided")
UNTESTABLE = Verdict("open", "not testable")
NONE = Verdict("none", "no claims")
VERDICTS = {True: HOLDS, False: FAILS, None: OPEN}


@dataclass(frozen=True)
class Tally:
    """Numbers of claims by outcome."""

    holds: int
    fails: int
    open: int

    @classmethod
    def of(cls, findings: Sequence[Finding]) -> Tally:
        """Count the verdicts of ``findings``."""
        count = Counter(verdict(finding).key for finding in findings)
        return cls(count[HOLDS.key], count[FAILS.key], count[OPEN.key])

    @property
    def total(self) -> int:
        """All claims."""
        return self.holds + self.fails + self.open

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return FAILS if self.fails else OPEN if self.open else HOLDS if self.holds else NONE

    @property
    def words(self) -> str:
        """Such as "2 of 3 claims hold"."""
        if self.total == 0:
            return "no claims"
        return f"{self.holds} of {plural(self.total, 'claim')} {'holds' if self.total == 1 else 'hold'}"


@dataclass(frozen=True)
class Figure:
    """A section with what the page derives from it."""

    section: Section

    @property
    def label(self) -> str:
        """Such as "Figure 5"."""
        return self.section.name.replace("fig", "Figure ").replace("sec", "Section ")

    @property
    def picture(self) -> str:
        """The SVG file as a data URI; in an ``img``, equal ids of several SVG files do not clash."""
        return f"data:image/svg+xml;base64,{b64encode(self.section.picture.read_bytes()).decode('ascii')}"

    @property
    def tally(self) -> Tally:
        """The outcomes of its claims."""
        return Tally.of(self.section.findings)

    @property
    def cases(self) -> list[str]:
        """The cases of its comparisons, in their order."""
        return list(dict.fromkeys(comparison.case for comparison in self.section.comparisons))

    @property
    def methods(self) -> list[str]:
        """The methods of its comparisons, in their order."""
        return list(dict.fromkeys(comparison.method for comparison in self.section.comparisons))

    @property
    def median_ratio(self) -> float:
        """Median of ours over theirs."""
        return median(comparison.ratio for comparison in self.section.comparisons)

    @property
    def differing(self) -> int:
        """Number of comparisons that differ by more than their spread."""
        return sum(bool(comparison.reason) for comparison in self.section.comparisons)


def render(sections: Sequence[Section], *, setting: str, seconds: float) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    sections : sequence of Section
        In the order of the page. Their names are its anchors (``report.html#fig5``).
    setting : str
        How the experiments were run, in a few words.
    seconds : float
        Time of the whole run.
    """
    figures = [Figure(section) for section in sections]
    compared = [comparison for section in sections for comparison in section.comparisons]
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (verdict, number, coordinate, ratio_text, factor, bar, duration, plural)
    environment.filters |= {function.__name__: function for function in filters}
    return environment.get_template("report.html.j2").render(
        figures=figures,
        total=Tally.of([finding for section in sections for finding in section.findings]),
        verdicts=(HOLDS, FAILS, OPEN),
        compared=len(compared),
        within=[f"{share_within(compared, limit):.0%}" for limit in (1.1, 1.25)] if compared else [],
        differing=sum(figure.differing for figure in figures),
        long_table=LONG_TABLE,
        setting=setting,
        seconds=seconds,
        computing=sum(section.seconds for section in sections),
        # not escaped: style and script are ours, not data
        css=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        js=Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
    )


# filters of the template


def verdict(finding: Finding) -> Verdict:
    """Return the outcome of a claim."""
    return VERDICTS[finding.holds] if finding.testable else UNTESTABLE


def number(x: float) -> str:
    """Return an error with three digits, always of the same width so that columns align."""
    return f"{x:.2e}"


def coordinate(x: float) -> str:
    """Return a number in a form that the script can sort by."""
    return repr(float(x))


def ratio_text(x: float) -> str:
    """Return a ratio with two decimals, or with an exponent if it is very small or large."""
    return f"{x:.2f}" if 0.01 <= x < 1000 else number(x)


def factor(spread: float) -> str:
    """Return one standard deviation of the log error as a factor; a dash if it is unknown."""
    return DASH if math.isnan(spread) else f"×÷ {ratio_text(math.exp(spread))}"


def bar(x: float) -> str:
    """Return the place of the bar of a ratio, as CSS: on a logarithmic scale from 1/4 to 4, with 1 in the middle."""
    end = 50 + 50 * max(-1.0, min(1.0, math.log(x, 4)))
    return f"left: {min(50.0, end):.1f}%; width: {abs(end - 50):.1f}%"


def duration(seconds: float) -> str:
    """Return a time in words, such as "1 h 05 min"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
