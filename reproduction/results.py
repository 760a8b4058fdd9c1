"""The results of experiments: rows of a table, and networks to draw."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from nurf.networks import Hyperplanes
from reproduction.arrays import Array

DIGITS = 5  # significant digits of floats in tables


@dataclass(frozen=True)
class Row:
    """One fit.

    Attributes
    ----------
    case : str
    order : int
    method : str
        The density that neurons are sampled from, one of its residual versions, or ``"sparse"`` training.
    trial : int
    neurons : int
    error : float
        Error relative to the values, on training and validation rows together.
    alpha : float
        The chosen regularisation; for sparse training, that of the step.
    seconds : float
        Time of the processor for this fit.
    seed : int
        Seed of the neurons. The data of a trial have a seed of their own, which all methods share.
    """

    case: str
    order: int
    method: str
    trial: int
    neurons: int
    error: float
    alpha: float
    seconds: float
    seed: int

    @property
    def key(self) -> str:
        """The name of the case, followed by the order if that is not one."""
        return self.case if self.order == 1 else f"{self.case}_s{self.order}"


@dataclass(frozen=True, eq=False)
class Neurons:
    """A network: ``normals`` (N, d), ``offsets`` (N,), ``coefficients`` (N + t,), which are empty for mere samples."""

    normals: Array
    offsets: Array
    coefficients: Array

    @property
    def hyperplanes(self) -> Hyperplanes:
        """The hyperplanes."""
        return Hyperplanes(self.normals, self.offsets)

    @property
    def coef(self) -> Array:
        """The outer weights without the tail, of shape (N,); ones for mere samples."""
        return self.coefficients[: len(self)] if len(self.coefficients) else np.ones(len(self))

    def __len__(self) -> int:
        return len(self.offsets)


@dataclass(frozen=True, eq=False)
class Result:
    """The rows of one method and one trial, the networks that are kept, and the seconds of the whole computation."""

    rows: tuple[Row, ...]
    networks: tuple[Neurons, ...]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return numbers, strings and lists only."""
        networks = [{f.name: getattr(network, f.name).tolist() for f in fields(network)} for network in self.networks]
        return {"rows": [asdict(row) for row in self.rows], "networks": networks, "seconds": self.seconds}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Result:
        """Return the result that ``to_json`` was called on."""
        networks = (Neurons(**{k: np.array(v, float) for k, v in network.items()}) for network in data["networks"])
        return cls(tuple(Row(**row) for row in data["rows"]), tuple(networks), data["seconds"])


@dataclass(frozen=True)
class Table:
    """Rows of several cases, methods and trials."""

    rows: tuple[Row, ...]

    @classmethod
    def of(cls, results: Iterable[Result]) -> Table:
        """Return the rows of all results."""
        return cls(tuple(row for result in results for row in result.rows))

    def trials(self, key: str, method: str) -> list[list[Row]]:
        """Return the rows of a case and method: one list per trial, in the order of the stages."""
        found = self._groups.get((key, method), {})
        return [found[trial] for trial in sorted(found)]

    @cached_property
    def _groups(self) -> dict[tuple[str, str], dict[int, list[Row]]]:
        """The rows of each case and method, by trial."""
        groups: dict[tuple[str, str], dict[int, list[Row]]] = {}
        for row in self.rows:
            groups.setdefault((row.key, row.method), {}).setdefault(row.trial, []).append(row)
        return groups

    def methods(self, key: str) -> list[str]:
        """Return the methods of a case, in the order of the rows."""
        return [method for case, method in self._groups if case == key]

    def curve(self, key: str, method: str) -> tuple[Array, Array]:
        """Return the numbers of neurons (m,) and the errors (trials, m), stage by stage.

        Trained networks of different trials differ in size: their geometric mean is returned. Stages that some trial
        lacks, and stages in which some network has no neuron, are left out.
        """
        trials = self.trials(key, method)
        if not trials:
            raise KeyError(f"no errors of {method!r} for {key!r}")
        length = min(map(len, trials))
        neurons = np.array([[row.neurons for row in rows[:length]] for rows in trials], float)
        errors = np.array([[row.error for row in rows[:length]] for rows in trials])
        kept = np.all(neurons > 0, axis=0)
        return np.exp(np.log(neurons[:, kept]).mean(axis=0)), errors[:, kept]

    def to_csv(self) -> str:
        """Return the table as text, with floats rounded to ``DIGITS`` significant digits."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([f.name for f in fields(Row)])
        for row in self.rows:
            writer.writerow([f"{value:.{DIGITS}g}" if isinstance(value, float) else value for value in astuple(row)])
        return out.getvalue()
