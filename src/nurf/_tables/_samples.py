"""Samples from tables: numbers, checked cell by cell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nurf._tables._columns import ColumnChoice, Roles
from nurf._tables._files import Table
from nurf._types import Array


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples for a fit.

    Parameters
    ----------
    X : DataFrame of shape (n, d)
        The inputs, with the lines or rows of the file as the index.
    y : array of shape (n,) or (n, k)
        The targets; of shape (n,) if there is one target.
    gradients : array of shape (n, d) or (n, k, d), or None
        The gradients; NaN if unknown.
    roles : Roles
    notes : tuple of str
        Remarks on the data for the user.
    """

    X: Any
    y: Array
    gradients: Array | None
    roles: Roles
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Table, choice: ColumnChoice, vary: bool = True) -> Samples:
        """Return the samples of a table; raise a ``ValueError`` that names the column and line of an invalid cell.

        Rows with a missing target are left out. If ``vary`` is true, constant inputs and targets are errors.
        """
        roles = choice.roles([str(name) for name in table.frame.columns])
        X = columns_of(table, roles.inputs)
        y = np.stack([_numbers(table, name, unknown=True) for name in roles.targets], axis=1)
        known = ~np.isnan(y).any(axis=1)
        if not known.any():
            raise ValueError(f"{table.name}: no row has values of {', '.join(map(repr, roles.targets))}")
        if vary:
            for name in roles.inputs:
                _require_variation(table, name, X[name].to_numpy()[known], f"leave it out by --ignore {name}")
            for name, column in zip(roles.targets, y[known].T, strict=True):
                _require_variation(table, name, column, "there is nothing to learn")
        gradients = _gradients(table, roles)
        if len(roles.targets) == 1:
            y = y[:, 0]
            gradients = None if gradients is None else gradients[:, 0]
        notes = _notes(table, known, gradients)
        return cls(X[known], y[known], None if gradients is None else gradients[known], roles, notes)


def columns_of(table: Table, names: Sequence[str], unknown: bool = False) -> Any:
    """Return columns of a table as a frame of finite numbers, with NaN for empty cells if ``unknown`` is true."""
    missing = [name for name in names if name not in table.frame.columns]
    if missing:
        raise ValueError(f"{table.name}: column {missing[0]!r} is missing: there are {list(table.frame.columns)}")
    return pd.DataFrame({name: _numbers(table, name, unknown) for name in names}, index=table.frame.index)


def _numbers(table: Table, name: str, unknown: bool = False) -> Array:
    """Return a column as numbers, with NaN for empty cells, which are allowed only if ``unknown`` is true."""
    column = table.frame[name]
    if column.dtype.kind in "iuf":
        numbers = column.to_numpy(dtype=np.float64)
    else:
        coerced = pd.to_numeric(column.astype(object), errors="coerce")
        truths = column.map(lambda cell: isinstance(cell, bool | np.bool_)).to_numpy(dtype=bool)
        wrong = (coerced.isna() & ~column.isna()).to_numpy(dtype=bool) | truths
        if wrong.any():
            found = column[wrong].iloc[0]
            comma = isinstance(found, str) and re.fullmatch(r"[-+]?\d*,\d+", found.strip())
            hint = ": use decimal points instead of commas" if comma else ""
            raise ValueError(f"{_place(table, name, wrong)}: expected a number, got {found!r}{hint}")
        numbers = coerced.to_numpy(dtype=np.float64, na_value=np.nan)
    for kind, wrong in {"infinite": np.isinf(numbers), "empty": np.isnan(numbers) & (not unknown)}.items():
        if wrong.any():
            raise ValueError(f"{_place(table, name, wrong)}: expected a number, and the cell is {kind}")
    return np.asarray(numbers)


def _gradients(table: Table, roles: Roles) -> Array | None:
    """Return the gradients of all targets, of shape (n, k, d), NaN if unknown."""
    if not roles.partials:
        return None
    result = np.full((len(table.frame), len(roles.targets), len(roles.inputs)), np.nan)
    for output, partials in enumerate(roles.partials):
        for owner, column in partials.items():
            result[:, output, roles.inputs.index(owner)] = _numbers(table, column, unknown=True)
    return result


def _require_variation(table: Table, name: str, column: Array, advice: str) -> None:
    if len(column) > 1 and np.all(column == column[0]):
        raise ValueError(f"{table.name}: column {name!r} is {column[0]:g} in all {len(column)} {table.row}s: {advice}")


def _notes(table: Table, known: Any, gradients: Array | None) -> tuple[str, ...]:
    notes = []
    if not known.all():
        first = table.frame.index[np.argmin(known)]
        notes.append(f"{np.sum(~known)} rows without a value are not used, the first in {table.row} {first}")
    if gradients is not None and np.isnan(gradients[known]).any():
        notes.append(f"{np.isnan(gradients[known]).mean():.1%} of the partial derivatives are unknown")
    return tuple(notes)


def _place(table: Table, name: str, wrong: Any) -> str:
    return f"{table.name}, column {name!r}, {table.row} {table.frame.index[np.argmax(wrong)]}"
