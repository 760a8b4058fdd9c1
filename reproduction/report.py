"""The report of a reproduction: one HTML file that opens from disk and asks the network for nothing.

It needs Jinja: ``pip install "nurf[cli]"``. Pictures, style and script are written into the page, so that the file can
be moved or sent by itself.
"""

from __future__ import annotations

import math
import os
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from reproduction.findings import Comparison, Finding, Section

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup
except ModuleNotFoundError as error:
    raise ImportError('reproduction.report needs jinja2: pip install "nurf[cli]"') from error

TEMPLATES = Path(__file__).parent / "templates"
MEDIA_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
LONG_TABLE = 16  # rows; longer tables start folded
DASH = "–"


def write(path: Path, sections: Sequence[Section], *, setting: str, seconds: float) -> None:
    """Write the report to ``path``, all of it or nothing.

    Parameters
    ----------
    path : Path
        The HTML file; its directory is made where it is missing, and a file that is there is replaced.
    sections : sequence of Section
        In the order of the page. Their names are the anchors of the page (``report.html#fig5``) and must differ.
    setting : str
        How the experiments were run, in a few words.
    seconds : float
        How long the whole run took.

    Raises
    ------
    FileNotFoundError
        Where the picture of a section is missing.
    """
    html = _render(sections, setting, seconds)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")  # the same directory: os.replace is atomic only there
    try:
        part.write_text(html, encoding="utf-8")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@dataclass(frozen=True)
class Verdict:
    """How a claim came out, or the claims of a figure: a word for readers, a key for style and icon."""

    key: str
    word: str


HOLDS, FAILS, OPEN = Verdict("holds", "holds"), Verdict("fails", "does not hold"), Verdict("open", "not decided")
NONE = Verdict("none", "no claims")
VERDICTS = {True: HOLDS, False: FAILS, None: OPEN}


@dataclass(frozen=True)
class Tally:
    """How many claims came out which way."""

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
    picture: str

    @property
    def label(self) -> str:
        """``"fig5"`` as a reader says it: "Figure 5"."""
        return re.sub(r"^fig(?:ure)?[\s_-]*(?=\d)", "Figure ", self.section.name)

    @property
    def tally(self) -> Tally:
        """How its claims came out."""
        return Tally.of(self.section.findings)

    @property
    def cases(self) -> list[str]:
        """The cases of its comparisons, in their order."""
        return list(dict.fromkeys(comparison.case for comparison in self.section.comparisons))

    @property
    def laws(self) -> list[str]:
        """The laws of its comparisons, in their order."""
        return list(dict.fromkeys(comparison.law for comparison in self.section.comparisons))

    @property
    def median_ratio(self) -> float:
        """Median of ours over theirs; NaN where there is none."""
        ratios = [r for r in map(ratio, self.section.comparisons) if math.isfinite(r)]
        return median(ratios) if ratios else math.nan

    @property
    def differing(self) -> int:
        """How many comparisons differ by more than their spread."""
        return sum(bool(comparison.reason) for comparison in self.section.comparisons)


def _render(sections: Sequence[Section], setting: str, seconds: float) -> str:
    repeated = [name for name, count in Counter(section.name for section in sections).items() if count > 1]
    if repeated:
        raise ValueError(f"sections must have different names, got more than one {', '.join(repeated)}")
    figures = [Figure(section, _embedded(section)) for section in sections]
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (verdict, number, coordinate, ratio, ratio_text, factor, bar, duration, plural)
    environment.filters |= {function.__name__: function for function in filters}
    return environment.get_template("report.html.j2").render(
        figures=figures,
        total=Tally.of([finding for section in sections for finding in section.findings]),
        verdicts=(HOLDS, FAILS, OPEN),
        compared=sum(len(section.comparisons) for section in sections),
        differing=sum(figure.differing for figure in figures),
        long_table=LONG_TABLE,
        setting=setting,
        seconds=seconds,
        computing=sum(section.seconds for section in sections),
        # ours, not data: escaping would break them
        css=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        js=Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
    )


def _embedded(section: Section) -> str:
    """The picture as a data URI: inside an ``img`` the ids of several SVG files cannot meet."""
    media_type = MEDIA_TYPES.get(section.picture.suffix.lower())
    if media_type is None:
        raise ValueError(
            f"the picture of {section.name} must be one of {', '.join(MEDIA_TYPES)}, got {section.picture}"
        )
    try:
        content = section.picture.read_bytes()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"the picture of {section.name} is missing: {section.picture}") from error
    return f"data:{media_type};base64,{b64encode(content).decode('ascii')}"


# what the template calls


def verdict(finding: Finding) -> Verdict:
    """How a claim came out."""
    return VERDICTS[finding.holds]


def ratio(comparison: Comparison) -> float:
    """Ours over theirs; NaN where theirs is zero."""
    return comparison.ratio if comparison.theirs else math.nan


def number(x: float) -> str:
    """An error in three digits, all of one width so that columns align."""
    return f"{x:.2e}" if math.isfinite(x) else DASH if math.isnan(x) else "∞"


def coordinate(x: float) -> str:
    """A number as the script reads it, for sorting."""
    return repr(float(x)) if math.isfinite(x) else "NaN" if math.isnan(x) else "Infinity"


def ratio_text(x: float) -> str:
    """A ratio with two decimals, or as a power of ten where that would hide it."""
    return f"{x:.2f}" if 0.01 <= x < 1000 else number(x)


def factor(spread: float) -> str:
    """The factor that one standard deviation of the log error amounts to; a dash where there is none."""
    return DASH if math.isnan(spread) else f"×÷ {ratio_text(math.exp(spread))}"


def bar(x: float) -> str:
    """Where a bar for the ratio ``x`` lies, as CSS: its logarithm, from a quarter to 4, with 1 in the middle."""
    if not 0 < x < math.inf:
        return "width: 0"
    end = 50 + 50 * max(-1.0, min(1.0, math.log(x, 4)))
    return f"left: {min(50.0, end):.1f}%; width: {abs(end - 50):.1f}%"


def duration(seconds: float) -> str:
    """A time in the units of a clock, such as "1 h 05 min"."""
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
    """A count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
