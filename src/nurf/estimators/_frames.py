"""Data frames: columns are matched by the names of the inputs, and rows by their index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

# What may stand before the name of an input in that of a partial derivative: d_, dy_, dy/d, dy_d, d_y_, grad_, ...
PREFIX = re.compile(r"(d|d[_/]|d_?\w*?[_/ ]d?_?|grad_|gradient_)?", re.IGNORECASE)


def column_names(frame: Any) -> list[str] | None:
    """Return the names of the columns, or None if ``frame`` has none or they are not strings."""
    columns = getattr(frame, "columns", None)
    names = [] if columns is None else list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def inputs_by_name(name: str, frame: Any, inputs: Sequence[str] | None) -> Any:
    """Return the frame with its columns in the order of the inputs; anything without names as it is."""
    columns = column_names(frame)
    if columns is None or inputs is None or columns == list(inputs):
        return frame
    if sorted(columns) != sorted(inputs):
        raise ValueError(f"`{name}` must have the columns {list(inputs)}, as X has, got {columns}")
    return frame[list(inputs)]


def partials_by_name(frame: Any, inputs: Sequence[str] | None) -> Any:
    """Return the gradients with their columns in the order of the inputs; anything without names as it is.

    A column belongs to the input whose name it has or ends with, as in ``x1``, ``d_x1``, ``dy_x1`` or ``dy/dx1``.
    """
    columns = column_names(frame)
    if columns is None or inputs is None:
        return frame
    found: dict[str, str] = {}
    for column in columns:
        owners = [x for x in inputs if column.endswith(x) and PREFIX.fullmatch(column[: len(column) - len(x)])]
        if not owners or max(owners, key=len) in found:
            found.clear()
            break
        found[max(owners, key=len)] = column
    if len(found) != len(inputs):
        raise ValueError(
            f"`gradients` must have one column for each input: {list(inputs)}, or names that end with these, such as "
            f"'dy_{inputs[0]}' or 'dy/d{inputs[0]}', got {columns}"
        )
    return frame[[found[x] for x in inputs]]


def rows_by_index(name: str, frame: Any, points: Any) -> Any:
    """Return the frame with its rows in the order of those of ``points``, if both have an index."""
    index: Any = getattr(frame, "index", None)
    expected: Any = getattr(points, "index", None)
    if not (hasattr(index, "equals") and hasattr(expected, "equals")) or expected.equals(index):
        return frame
    if len(index) != len(expected) or not (index.is_unique and expected.is_unique and expected.isin(index).all()):
        raise ValueError(f"`{name}` must have the index of the points that its rows belong to, got another one")
    return frame.loc[expected]


def require_unmasked(**arrays: Any) -> None:
    """Raise an error if elements of arrays that must be complete are masked."""
    for name, array in arrays.items():
        n = int(np.sum(array.mask)) if isinstance(array, np.ma.MaskedArray) else 0
        if n:
            raise ValueError(f"`{name}` must be complete, got an array with {n} masked elements")
