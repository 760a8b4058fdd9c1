"""Data frames: columns are matched by the names of the inputs, rows by their index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from nurf._validation import as_floats

# The name of a partial derivative is one of these prefixes and the name of the input: d_, dy_, dy/d, dy_d, d_y_, grad_.
PREFIX = re.compile(r"([d∂]|[d∂][_/]|[d∂]_?\w*?[_/ ][d∂]?_?|grad_|gradient_)?", re.IGNORECASE)


def column_names(frame: Any) -> list[Any] | None:
    """Return the names of the columns, or None if ``frame`` has none."""
    columns = getattr(frame, "columns", None)
    return None if columns is None or getattr(frame, "ndim", 2) != 2 else list(columns)


def inputs_by_name(name: str, frame: Any, inputs: Sequence[Any] | None) -> Any:
    """Return the frame with its columns in the order of the inputs; arrays without column names are unchanged."""
    columns = column_names(frame)
    if columns is None or inputs is None or not _have_names(columns, inputs):
        return frame
    if len(columns) != len(inputs) or set(columns) != set(inputs):
        raise ValueError(f"`{name}` must have the columns {list(inputs)}, as X has, got {columns}")
    return frame if columns == list(inputs) else frame[list(inputs)]


def partials_by_name(frame: Any, inputs: Sequence[Any] | None) -> Any:
    """Return the gradients with their columns in the order of the inputs; arrays without column names are unchanged.

    A column belongs to the input that it is named after, as in ``x1``, ``d_x1``, ``dy_x1`` or ``dy/dx1``.
    """
    columns = column_names(frame)
    if columns is None or inputs is None or not _have_names(columns, inputs):
        return frame
    owners = partial_owners(columns, inputs)
    if len(owners) != len(inputs) or set(owners) != set(inputs):
        raise ValueError(
            f"`gradients` must have one column for each input: {list(inputs)}, or names that end with these, such as "
            f"'dy_{inputs[0]}' or 'dy/d{inputs[0]}', got {columns}"
        )
    return frame[[columns[owners.index(x)] for x in inputs]]


def partial_owners(columns: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Return the input to which each column of partial derivatives belongs, or None if there is none.

    >>> partial_owners(["dy_x1", "dy/dx2", "z"], ["x1", "x2"])
    ['x1', 'x2', None]
    """
    return list(columns) if set(columns) == set(inputs) else [_owner(column, inputs) for column in columns]


def _have_names(columns: Sequence[Any], inputs: Sequence[Any]) -> bool:
    """Return whether both have names that can be compared.

    The default column numbers of pandas are no names, and are compared only with other numbers.
    """
    numbers = list(range(len(inputs)))
    return list(columns) != numbers and (list(inputs) != numbers or not all(isinstance(name, str) for name in columns))


def _owner(column: Any, inputs: Sequence[Any]) -> Any:
    """Return the input with the longest name that matches the name of a partial derivative, or None."""
    if not isinstance(column, str):
        return column
    names = [x for x in inputs if isinstance(x, str) and column.endswith(x)]
    return max((x for x in names if PREFIX.fullmatch(column.removesuffix(x))), key=len, default=None)


def rows_by_index(name: str, frame: Any, points: Any) -> Any:
    """Return the frame with its rows in the order of the rows of ``points``, if both have an index."""
    index: Any = getattr(frame, "index", None)
    expected: Any = getattr(points, "index", None)
    if not (hasattr(index, "equals") and hasattr(expected, "equals")) or expected.equals(index):
        return frame
    if len(index) != len(expected) or not (index.is_unique and expected.is_unique and expected.isin(index).all()):
        raise ValueError(
            f"`{name}` must have the index of the points that its rows belong to, in any order, got another index: "
            "pass an array to match rows by position"
        )
    return frame.loc[expected]


def require_numbers(**arrays: Any) -> None:
    """Raise an error that names the array if it is not numeric or has masked elements. scikit-learn checks the rest."""
    for name, array in arrays.items():
        n = int(np.sum(array.mask)) if isinstance(array, np.ma.MaskedArray) else 0
        if n:
            raise ValueError(f"`{name}` must be complete, got an array with {n} masked elements")
        known = array is None or hasattr(array, "columns") or hasattr(array, "toarray")
        if not known and getattr(getattr(array, "dtype", None), "kind", "O") in "OSUc":
            try:
                as_floats(name, array)
            except ValueError as error:  # scikit-learn's contract: a TypeError for objects that are not numbers
                raise (TypeError if isinstance(error.__cause__, TypeError) else ValueError)(str(error)) from error
