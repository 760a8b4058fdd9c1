"""Results on disk: a finished unit of work is never repeated, and never confused with another."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reproduction.files import write_text
from reproduction.fits import Experiment
from reproduction.results import Result
from reproduction.seeds import digest


@dataclass(frozen=True)
class Unit:
    """The unit of work: one experiment, one method, one trial."""

    experiment: Experiment
    method: str
    trial: int

    @property
    def effort(self) -> float:
        """Estimated seconds."""
        return self.experiment.effort(self.method)

    def run(self) -> Result:
        """Return its result."""
        return self.experiment.run(self.method, self.trial)


class CorruptError(ValueError):
    """A file of results differs from what was written."""


@dataclass(frozen=True)
class Store:
    """A folder of results with one file per unit; keys are made of the configuration and the version of the source."""

    folder: Path

    def path(self, unit: Unit) -> Path:
        """Return the file of a unit."""
        experiment = unit.experiment
        key = digest(experiment.digest, experiment.version)[:16]
        name = f"{experiment.case.key}-{type(experiment).__name__.lower()}-{key}"
        return self.folder / name / f"{unit.method}-{unit.trial}.json"

    def save(self, unit: Unit, result: Result) -> None:
        """Write a result, and its configuration in readable form beside it."""
        content = result.to_json()
        record = {**_identity(unit), "sha256": _checksum(content), "result": content}
        write_text(self.path(unit), json.dumps(record))
        configuration = self.path(unit).parent / "configuration.json"
        if not configuration.exists():
            write_text(configuration, json.dumps(asdict(unit.experiment), indent=1))

    def load(self, unit: Unit) -> Result | None:
        """Return the result of a unit, or None if there is none.

        ``CorruptError`` is raised if its file is damaged, ``ValueError`` if it cannot be read at all.
        """
        try:
            content = self.path(unit).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:  # such as a folder in its place
            message = f"{self.path(unit)} must be a file of results: {error.strerror}. Remove it, or take another `out`"
            raise ValueError(message) from error
        try:
            record = json.loads(content.decode("utf-8"))
            intact = record["sha256"] == _checksum(record["result"])
            known = {name: record[name] for name in _identity(unit)}
            result = Result.from_json(record["result"])
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptError(f"{self.path(unit)} is damaged") from error
        if not intact or known != _identity(unit):
            raise CorruptError(f"{self.path(unit)} is damaged")
        return result


def _identity(unit: Unit) -> dict[str, Any]:
    experiment = unit.experiment
    identity = {"configuration": experiment.digest, "version": experiment.version}
    return {**identity, "method": unit.method, "trial": unit.trial}


def _checksum(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
