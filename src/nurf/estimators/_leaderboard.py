"""The results of all engines of a race."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import overload

import numpy as np

from nurf.choosing import Choice
from nurf.estimators._base import NetworkRegressor
from nurf.estimators._raced import Contender

HEADER = ("engine", "estimated error", "seconds", "setting")


@dataclass(frozen=True)
class Standing:
    """The result of one engine.

    Attributes
    ----------
    engine : str
        The name of the engine.
    error : float
        The root mean square error of the best candidate at left-out samples, in units of the standard deviation of the
        values, outputs added up; infinite without a fit or with too few samples.
    seconds : float
        Time that the engine took.
    setting : str
        The chosen setting, or the reason why there is no fit.
    """

    engine: str
    error: float
    seconds: float
    setting: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The entries of a table."""
        error = f"{self.error:.2g}" if np.isfinite(self.error) else "-"
        return self.engine, error, f"{self.seconds:.2g}", self.setting


@dataclass(frozen=True)
class Leaderboard(Sequence[Standing]):
    """The results of all engines, the chosen one first: a table in a terminal and in a notebook, a sequence of rows."""

    rows: tuple[Standing, ...]

    @overload
    def __getitem__(self, place: int) -> Standing: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Standing, ...]: ...
    def __getitem__(self, place: int | slice) -> Standing | tuple[Standing, ...]:
        """Return one row, or some."""
        return self.rows[place]

    def __len__(self) -> int:
        """Return the number of engines."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Standing]:
        """Iterate over the rows."""
        return iter(self.rows)

    def __str__(self) -> str:
        table = [HEADER, *(row.cells for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return "\n".join("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table)

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col" style="text-align:left">{title}</th>' for title in HEADER)
        body = "".join(
            "<tr>" + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row.cells) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def leaderboard_of(
    models: list[tuple[str, NetworkRegressor]],
    contenders: list[Contender],
    choice: Choice,
    winner: Contender,
    failures: dict[int, Exception],
) -> Leaderboard:
    """Return the results of all engines, the chosen one first."""
    rows = []
    for place, (name, model) in enumerate(models):
        own = {id(each.engine) for each in contenders if each.model is model}
        judged = [each for each in choice.finalists if id(each.engine) in own]
        best = choice.winner if model is winner.model else min(judged, key=lambda each: each.error, default=None)
        seconds = sum(choice.seconds[i] for i, each in enumerate(contenders) if each.model is model)
        if best is None:
            note = f"failed: {failures[place]}" if place in failures else "not run: there was no time left"
            rows.append((np.inf, Standing(name, np.inf, seconds, note)))
        else:
            record = best.engine.record(best)
            rows.append((best.error, Standing(name, best.error, seconds, f"{record.label} ({record.data})")))
    chosen = next(place for place, (_, model) in enumerate(models) if model is winner.model)
    others = sorted((row for place, row in enumerate(rows) if place != chosen), key=lambda row: row[0])
    return Leaderboard((rows[chosen][1], *(row for _, row in others)))
