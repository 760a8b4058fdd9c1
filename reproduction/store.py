"""Results on disk: a unit of work that is done is never done again, and never taken for another."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reproduction.files import write_text
from reproduction.fits import Experiment
from reproduction.results import Result


@dataclass(frozen=True)
class Unit:
    """The unit of work: one experiment, one law, one trial."""

    experiment: Experiment
    law: str
    trial: int

    @property
    def effort(self) -> float:
        """About how many seconds it takes."""
        return self.experiment.effort(self.law)

    def run(self) -> Result:
        """Compute it."""
        return self.experiment.run(self.law, self.trial)


class CorruptError(ValueError):
    """A file of results that is not what was written."""


@dataclass(frozen=True)
class Store:
    """A folder of results, one file for each unit, under the digest of its configuration."""

    folder: Path

    def path(self, unit: Unit) -> Path:
        """Return where the result of a unit is kept."""
        experiment = unit.experiment
        name = f"{experiment.case.key}-{type(experiment).__name__.lower()}-{experiment.digest[:16]}"
        return self.folder / name / f"{unit.law}-{unit.trial}.json"

    def save(self, unit: Unit, result: Result) -> None:
        """Write a result, and beside it the configuration for whoever looks."""
        content = result.to_json()
        record = {**_identity(unit), "sha256": _checksum(content), "result": content}
        write_text(self.path(unit), json.dumps(record))
        configuration = self.path(unit).parent / "configuration.json"
        if not configuration.exists():
            write_text(configuration, json.dumps(asdict(unit.experiment), indent=1))

    def load(self, unit: Unit) -> Result | None:
        """Return the result of a unit, None where there is none; a damaged file raises ``CorruptError``."""
        try:
            text = self.path(unit).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            record = json.loads(text)
            intact = record["sha256"] == _checksum(record["result"])
            known = {name: record[name] for name in _identity(unit)}
            result = Result.from_json(record["result"])
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptError(f"{self.path(unit)} is damaged") from error
        if not intact or known != _identity(unit):
            raise CorruptError(f"{self.path(unit)} is damaged")
        return result


def _identity(unit: Unit) -> dict[str, Any]:
    return {"configuration": unit.experiment.digest, "law": unit.law, "trial": unit.trial}


def _checksum(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
