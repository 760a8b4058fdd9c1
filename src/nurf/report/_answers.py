"""The sections of answers in a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf.report._figures import Picture, drawn

PICTURE = (4.6, 3.2)  # inches
METHODS = ("report", "table", "plot")


@dataclass(frozen=True)
class Section:
    """The part of the page for one answer.

    Parameters
    ----------
    anchor : str
        The name to which links point.
    heading : str
    title : str
        The first line of the answer's report.
    lines : tuple of (label, text)
        The other lines of it.
    columns : dict of str to list
        The columns of its table: numbers or texts.
    picture : Picture
    """

    anchor: str
    heading: str
    title: str
    lines: tuple[tuple[str, str], ...]
    columns: dict[str, list[Any]]
    picture: Picture

    @classmethod
    def of(cls, answer: Any, heading: str | None = None, anchor: str = "answer-1") -> Section:
        """Return the section of an answer, with the name of its class as the heading if none is given.

        Parameters
        ----------
        answer : result of nurf.decisions
            Any object with ``report()``, ``table()`` and ``plot(ax=)``.
        heading : str, optional
        anchor : str, optional
        """
        missing = [name for name in METHODS if not hasattr(answer, name)]
        if missing:
            raise TypeError(
                f"an answer must have the methods {', '.join(METHODS)}, as the results of nurf.decisions have, got "
                f"{type(answer).__name__}"
            )
        heading, report, table = heading or type(answer).__name__, answer.report(), answer.table()
        columns = {str(name).replace("_", " "): np.asarray(table[name]).tolist() for name in table}
        return cls(anchor, heading, report.title, report.lines, columns, drawn(answer.plot, heading, PICTURE))

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the table."""
        return list(zip(*self.columns.values(), strict=True))


def sections(answers: Mapping[str, Any] | Sequence[Any]) -> list[Section]:
    """Return the sections of answers: of a sequence, or of a mapping from headings."""
    named = answers.items() if isinstance(answers, Mapping) else [(None, answer) for answer in answers]
    return [Section.of(answer, heading, f"answer-{i}") for i, (heading, answer) in enumerate(named, 1)]
