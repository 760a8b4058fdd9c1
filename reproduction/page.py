"""The page of the documentation: all findings of the full run, as Markdown with pictures beside it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reproduction.comparison import FAR, explanation, listed
from reproduction.findings import Comparison, Finding, Section, share_within
from reproduction.plan import CONVEX, SPARSE
from reproduction.report import TEMPLATES
from reproduction.results import Result
from reproduction.store import Unit

VERY_FAR = 3.0  # times
WORDS = {True: "yes", False: "**no**", None: "not decided"}
WIDTH = 120  # of lines that are not rows of tables


@dataclass(frozen=True)
class Times:
    """Seconds of the processor: of all results, of training from three dimensions on and below, and of sampling."""

    n_results: int
    total: float
    high: float
    low: float
    sampled: float

    @classmethod
    def of(cls, results: Mapping[Unit, Result]) -> Times:
        """Sum the seconds of results."""
        high = low = sampled = 0.0
        for unit, result in results.items():
            if unit.method not in (*SPARSE, *CONVEX):
                sampled += result.seconds
            elif unit.experiment.case.dimension > 2:
                high += result.seconds
            else:
                low += result.seconds
        return cls(len(results), high + low + sampled, high, low, sampled)


def render(sections: Sequence[Section], results: Mapping[Unit, Result]) -> str:
    """Return the page.

    Parameters
    ----------
    sections : sequence of Section
        Of all figures.
    results : mapping from Unit to Result
        What the sections are made of.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {f.__name__: f for f in (cell, holds, spread, their_verdict, wrapped)}
    findings = [(section, finding) for section in sections for finding in section.findings]
    compared = [comparison for section in sections for comparison in section.comparisons]
    return environment.get_template("page.md.j2").render(
        sections=sections,
        findings=findings,
        compared=compared,
        rows=[comparison for comparison in compared if listed(comparison)],
        quartiles=np.quantile([comparison.ratio for comparison in compared], [0.25, 0.5, 0.75]),
        shares={limit: share_within(compared, limit) for limit in (1.1, 1.25, FAR, VERY_FAR)},
        very_far=_by_method([comparison for comparison in compared if comparison.factor > VERY_FAR]),
        far=FAR,
        times=Times.of(results),
        versions=sorted({(type(unit.experiment).__name__, unit.experiment.version[:12]) for unit in results}),
    )


def _by_method(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the sizes and ratios of each case and method, and the reason for the first, in words."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in comparisons:
        groups.setdefault((comparison.case, comparison.method), []).append(comparison)
    texts = []
    for (case, method), rows in groups.items():
        ends = sorted({f"{pick(c.ratio for c in rows):.2f}" for pick in (min, max)})
        sizes = ", ".join(str(c.neurons) for c in rows)
        reason = explanation(case, method, rows[0].neurons, np.log(rows[0].ratio))
        texts.append(f"{case}, {method}, N = {sizes}: {' to '.join(ends)} times ({reason})")
    return texts


# filters of the template


def cell(text: str) -> str:
    """Return a text for a cell of a table, in which a vertical line would end it."""
    return text.replace("|", "&#124;")


def holds(finding: Finding) -> str:
    """Return the verdict on a claim in words."""
    if not finding.testable:
        return "not testable"
    return WORDS[finding.holds] + (", not clearly" if finding.clear is False else "")


def their_verdict(finding: Finding) -> str:
    """Return the verdict with the authors' errors without the numbers, as a sentence; empty if there is none."""
    verdict = finding.theirs.partition(":")[0]
    return f" With the authors' errors: {verdict.replace('it is known', 'they are known')}." if verdict else ""


def spread(error: float, deviation: float, trials: int) -> str:
    """Return an error with the standard deviation of its logarithm and the number of trials."""
    return f"{error:.3g}{'' if isnan(deviation) else f' ±{deviation:.0%}'} ({trials})"


def wrapped(text: str) -> str:
    """Return a paragraph or an item of a list in lines of limited length."""
    words = text.lstrip()
    outer = " " * (len(text) - len(words))
    inner = outer + "  " * words.startswith("- ")
    filled = " ".join(words.split())
    return textwrap.fill(filled, WIDTH, initial_indent=outer, subsequent_indent=inner, break_on_hyphens=False)
