"""What the tests of the reproduction share: small experiments, made-up rows, and the tables in the docs."""

import csv
import dataclasses
from functools import cache
from pathlib import Path

from reproduction.cases import Case
from reproduction.fits import Draws, Sampling, Training
from reproduction.results import Row
from reproduction.store import Unit

TINY = Case("tiny", "gaussian_bump", 1, 60, 12, 1 / 20, 1, grid=True, noise=0.02, unit=2.0)
FLAT = Case("flat", "checkmark", 2, 49, 12, 1 / 10, 1, grid=True, noise=0.02)
SAMPLING = Sampling(TINY, (4, 8, 12))
TRAINING = Training(TINY, (0.05, 0.01), 10.0, 0.25, 6)
DRAWS = Draws(FLAT, 20)
SAMPLED = [Unit(SAMPLING, method, trial) for method in ("uniform", "local", "local_residual") for trial in (0, 1)]
TABLES = Path(__file__).parents[2] / "docs" / "reproduction"
KINDS = {field.name: {"str": str, "int": int, "float": float}[field.type] for field in dataclasses.fields(Row)}
UNITS = [*SAMPLED, Unit(TRAINING, "sparse", 0), Unit(DRAWS, "representation", 0)]


def silent(_):
    pass


def without_seconds(results):
    """Return all that must not depend on how a run went."""
    return {
        unit: (
            [dataclasses.replace(row, seconds=0.0) for row in result.rows],
            [[n.normals.tolist(), n.offsets.tolist(), n.coefficients.tolist()] for n in result.networks],
        )
        for unit, result in results.items()
    }


def rows(key, method, errors, counts, *, seconds=1.0, trial=0):
    """Return rows with given errors and numbers of neurons."""
    case, order = (key.removesuffix("_s2"), 2) if key.endswith("_s2") else (key, 1)
    return [
        Row(case, order, method, trial, int(n), float(e), 1.0, seconds, 0) for n, e in zip(counts, errors, strict=True)
    ]


def read(text):
    """Return the rows of a table that was written as text."""
    return [
        Row(**{name: kind(line[name]) for name, kind in KINDS.items()}) for line in csv.DictReader(text.splitlines())
    ]


@cache
def committed(figure):
    """Return the rows of a figure of the full run, with four digits."""
    return read((TABLES / f"{figure}.csv").read_text(encoding="utf-8"))
