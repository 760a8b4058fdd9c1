"""Files that say how the inputs of a model are distributed, in TOML."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from nurf._types import Array
from nurf._validation import is_number

TEMPLATE = """\
# The inputs of {model}, for nurf sensitivity, propagate, failure, minimize and calibrate. Each is one of
#   x = {{ bounds = [0, 1] }}                                        uniform, and the bounds of minimize
#   x = {{ distribution = "norm", mean = 0.5, std = 0.1 }}           any continuous distribution of scipy.stats
#   x = {{ distribution = "gamma", a = 2.0, scale = 0.1, bounds = [0, 1] }}
#   x = 0.5                                                        fixed
# Dependent inputs have correlations of their normal scores (a Gaussian copula):
#   [[correlation]]
#   inputs = ["x", "z"]
#   value = 0.3
"""
KEYS = ("distribution", "bounds")
SIMPLE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class InputFile:
    """What a file says about the inputs of a model.

    Parameters
    ----------
    inputs : dict
        The distributions of inputs, or numbers, by their names.
    bounds : dict
        Pairs (low, high), or numbers, by their names; empty for an input without bounds.
    correlation : array of shape (r, r) or None
        The correlations of the inputs that are not numbers.
    """

    inputs: dict[str, Any]
    bounds: dict[str, Any]
    correlation: Array | None

    @classmethod
    def read(cls, path: Path, names: Sequence[str], known: Sequence[str] = ()) -> InputFile:
        """Return the distributions and bounds in a file for inputs with given names, or raise a ``ValueError``.

        Entries of ``known`` inputs, which have other values, may be missing and are not used.
        """
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path.name}: not a TOML file: {error}") from error
        try:
            return cls.of(content, names, known)
        except ValueError as error:
            raise ValueError(f"{path.name}: {error}") from error

    @classmethod
    def of(cls, content: dict[str, Any], names: Sequence[str], known: Sequence[str] = ()) -> InputFile:
        """Return the distributions and bounds that a TOML file of inputs describes."""
        _require_keys("the file", content, ("inputs", "correlation"))
        tables = content.get("inputs")
        if not isinstance(tables, dict):
            raise ValueError("expected a table [inputs] with an entry for each input")
        tables = {name: entry for name, entry in tables.items() if name not in known}
        names = [name for name in names if name not in known]
        unknown, missing = [n for n in tables if n not in names], [n for n in names if n not in tables]
        if unknown or missing:
            parts = [
                f"{label} {', '.join(found)}" for label, found in (("unknown", unknown), ("missing", missing)) if found
            ]
            raise ValueError(f"[inputs] must have the names {', '.join(names)}: {'; '.join(parts)}")
        entries = {name: _entry(name, tables[name]) for name in names}
        inputs = {name: distribution for name, (distribution, _) in entries.items()}
        bounds = {name: ends for name, (_, ends) in entries.items()}
        free = [name for name in names if not is_number(inputs[name])]
        return cls(inputs, bounds, _correlation(content.get("correlation", []), free))

    def box(self) -> dict[str, Any]:
        """Return the bounds of all inputs; raise a ``ValueError`` if an input has none."""
        missing = [name for name, ends in self.bounds.items() if np.size(ends) == 0]
        if missing:
            raise ValueError(f"expected `bounds = [low, high]`, or a number, for all inputs, got none for {missing}")
        return self.bounds


def template(model: str, names: Sequence[str], low: Array, high: Array) -> str:
    """Return a file with the box of the data, to be edited."""
    lines = [f"{_key(n)} = {{ bounds = [{a:.6g}, {b:.6g}] }}" for n, a, b in zip(names, low, high, strict=True)]
    return "\n".join([TEMPLATE.format(model=model), "[inputs]", *lines, ""])


def _key(name: str) -> str:
    return name if SIMPLE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _entry(name: str, entry: Any) -> tuple[Any, Any]:
    """Return the distribution, or number, and the bounds of one input."""
    if is_number(entry):
        return float(entry), float(entry)
    if not isinstance(entry, dict) or not set(entry) & set(KEYS):
        raise ValueError(
            f"expected a number, {{ bounds = [low, high] }} or {{ distribution = ... }} for {name}, got {entry!r}"
        )
    bounds = entry.get("bounds", ())
    if "bounds" in entry and not (isinstance(bounds, list) and len(bounds) == 2 and all(map(is_number, bounds))):
        raise ValueError(f"expected bounds = [low, high] for {name}, got {bounds!r}")
    if "bounds" in entry and bounds[0] >= bounds[1]:
        raise ValueError(f"expected bounds with low < high for {name}, got {bounds}")
    bounds = tuple(map(float, bounds))
    if "distribution" in entry:
        parameters = {key: value for key, value in entry.items() if key not in KEYS}
        return _distribution(name, entry["distribution"], parameters), bounds
    _require_keys(name, entry, ("bounds",))
    return stats.uniform(bounds[0], bounds[1] - bounds[0]), bounds


def _distribution(name: str, kind: Any, parameters: dict[str, Any]) -> Any:
    """Return a frozen distribution of SciPy."""
    family = getattr(stats, kind, None) if isinstance(kind, str) else None
    if not isinstance(family, stats.rv_continuous):
        known = [each for each in dir(stats) if isinstance(getattr(stats, each), stats.rv_continuous)]
        near = get_close_matches(str(kind), known, 3, 0.5)
        hint = f": {', '.join(near)}?" if near else ", such as norm, lognorm, uniform, gumbel_r"
        raise ValueError(f"{name}: expected the name of a continuous distribution of scipy.stats, got {kind!r}{hint}")
    shapes = tuple(family.shapes.split(", ")) if family.shapes else ()
    wrong = [key for key, value in parameters.items() if not is_number(value)]
    if wrong:
        raise ValueError(f"expected numbers as parameters of {name}, got {wrong[0]} = {parameters[wrong[0]]!r}")
    if {"mean", "std"} & set(parameters):
        return _by_moments(name, family, parameters, shapes)
    _require_keys(name, parameters, (*shapes, "loc", "scale"))
    missing = [key for key in shapes if key not in parameters]
    if missing:
        raise ValueError(f"{name}: {kind} needs {', '.join(missing)}")
    with np.errstate(all="ignore"):
        median = family.median(**parameters)
    if not np.isfinite(median) or parameters.get("scale", 1.0) <= 0:
        raise ValueError(f"{name}: {kind} has no values with {parameters}")
    return family(**parameters)


def _by_moments(name: str, family: Any, parameters: dict[str, Any], shapes: tuple[str, ...]) -> Any:
    """Return a distribution with a given mean and standard deviation: any without shapes, or a lognormal one."""
    lognormal = family.name == "lognorm"
    if set(parameters) != {"mean", "std"} or (shapes and not lognormal):
        expected = "mean and std" if lognormal or not shapes else f"{', '.join(shapes)}, loc and scale"
        raise ValueError(f"{name}: {family.name} has the parameters {expected}, got {', '.join(parameters)}")
    mean, std = float(parameters["mean"]), float(parameters["std"])
    if std <= 0 or (lognormal and mean <= 0):
        raise ValueError(f"{name}: expected {'mean > 0 and ' * lognormal}std > 0, got mean {mean:g} and std {std:g}")
    if lognormal:
        s = np.sqrt(np.log1p((std / mean) ** 2))
        return family(s, scale=mean * np.exp(-(s**2) / 2))
    center, variance = map(float, family.stats())
    if not np.isfinite([center, variance]).all():
        raise ValueError(f"{name}: {family.name} has no mean and standard deviation: give loc and scale")
    scale = std / np.sqrt(variance)
    return family(mean - scale * center, scale)


def _correlation(tables: Any, free: list[str]) -> Array | None:
    """Return the correlation matrix of the inputs that are not fixed, or None if all are independent."""
    if not tables:
        return None
    matrix = np.eye(len(free))
    for table in tables if isinstance(tables, list) else [tables]:
        pair, value = (table.get("inputs"), table.get("value")) if isinstance(table, dict) else (None, None)
        if not (isinstance(pair, list) and len(pair) == 2 and pair[0] != pair[1] and set(pair) <= set(free)):
            raise ValueError(f"expected `inputs` of [[correlation]] to be two of {free}, got {pair!r}")
        if not (is_number(value) and abs(float(value)) < 1):  # type: ignore[arg-type]
            raise ValueError(f"expected `value` of [[correlation]] to be a number between -1 and 1, got {value!r}")
        i, j = (free.index(each) for each in pair)
        matrix[i, j] = matrix[j, i] = value
    return matrix


def _require_keys(what: str, table: dict[str, Any], known: Sequence[str]) -> None:
    wrong = [key for key in table if key not in known]
    if wrong:
        raise ValueError(f"{what}: unknown {wrong[0]!r}, expected {', '.join(known)}")
