"""What an experiment leaves behind: rows of a table, and networks for the pictures."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from nurf._types import Array
from nurf.networks import Hyperplanes
from reproduction.files import write_text


@dataclass(frozen=True)
class Row:
    """One fit.

    Attributes
    ----------
    case : str
    order : int
    law : str
    trial : int
    neurons : int
    error : float
        Relative to the values, on training and validation rows together.
    alpha : float
        The chosen regularisation; of sparse training the step of the path.
    seconds : float
        Time that this fit took.
    seed : int
        Of the neurons (the data have their own, which all laws of a trial share).
    """

    case: str
    order: int
    law: str
    trial: int
    neurons: int
    error: float
    alpha: float
    seconds: float
    seed: int

    @property
    def key(self) -> str:
        """The name of the case, with the order where that is not one."""
        return self.case if self.order == 1 else f"{self.case}_s{self.order}"


@dataclass(frozen=True, eq=False)
class Neurons:
    """The weights of a network: ``normals`` (N, d), ``offsets`` (N,) and ``weights`` (N + t,); none for bare draws."""

    normals: Array
    offsets: Array
    weights: Array

    @property
    def hyperplanes(self) -> Hyperplanes:
        """The inner weights."""
        return Hyperplanes(self.normals, self.offsets)

    @property
    def coef(self) -> Array:
        """The outer weights without the tail, of shape (N,); ones for bare draws."""
        return self.weights[: len(self.offsets)] if len(self.weights) else np.ones(len(self.offsets))

    def __len__(self) -> int:
        return len(self.offsets)


@dataclass(frozen=True, eq=False)
class Result:
    """The rows of one law and one trial, the networks that are kept, and the seconds that all of it took."""

    rows: tuple[Row, ...]
    networks: tuple[Neurons, ...]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return numbers, strings and lists only."""
        networks = [{f.name: getattr(network, f.name).tolist() for f in fields(network)} for network in self.networks]
        return {"rows": [asdict(row) for row in self.rows], "networks": networks, "seconds": self.seconds}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Result:
        """Make the result from what ``to_json`` returned."""
        networks = (Neurons(**{k: np.array(v, float) for k, v in network.items()}) for network in data["networks"])
        return cls(tuple(Row(**row) for row in data["rows"]), tuple(networks), data["seconds"])


@dataclass(frozen=True)
class Table:
    """Rows of several cases, laws and trials."""

    rows: tuple[Row, ...]

    def trials(self, key: str, law: str) -> list[list[Row]]:
        """Return the rows of a case and law, a list for each trial, in the order of the stages."""
        found: dict[int, list[Row]] = {}
        for row in self.rows:
            if (row.key, row.law) == (key, law):
                found.setdefault(row.trial, []).append(row)
        return [found[trial] for trial in sorted(found)]

    def laws(self, key: str) -> list[str]:
        """Return the laws of a case, as they come."""
        return list(dict.fromkeys(row.law for row in self.rows if row.key == key))

    def curve(self, key: str, law: str) -> tuple[Array, Array]:
        """Return the numbers of neurons (m,) and the errors (trials, m), stage by stage.

        Numbers of neurons that differ between trials, as they do after training, are averaged in the logarithm; stages
        without a neuron in any of the trials are left out, as are those that some trial does not have.
        """
        trials = self.trials(key, law)
        if not trials:
            raise KeyError(f"no errors of {law!r} for {key!r}")
        length = min(map(len, trials))
        neurons = np.array([[row.neurons for row in rows[:length]] for rows in trials], float)
        errors = np.array([[row.error for row in rows[:length]] for rows in trials])
        kept = np.all(neurons > 0, axis=0)
        return np.exp(np.log(neurons[:, kept]).mean(axis=0)), errors[:, kept]

    def to_csv(self, digits: int = 6) -> str:
        """Return the table as text, with errors and seconds rounded to ``digits`` significant digits."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([f.name for f in fields(Row)])
        for row in self.rows:
            writer.writerow([f"{value:.{digits}g}" if isinstance(value, float) else value for value in astuple(row)])
        return out.getvalue()

    def write(self, path: Path) -> None:
        """Write the table."""
        write_text(path, self.to_csv())


def table_of(results: Iterable[Result]) -> Table:
    """Return the rows of all results, one after the other."""
    return Table(tuple(row for result in results for row in result.rows))


def read_table(text: str) -> Table:
    """Return the table that ``to_csv`` wrote."""
    kinds = {f.name: {"str": str, "int": int, "float": float}[str(f.type)] for f in fields(Row)}
    rows: Sequence[dict[str, str]] = list(csv.DictReader(io.StringIO(text)))
    return Table(tuple(Row(**{name: kind(row[name]) for name, kind in kinds.items()}) for row in rows))
