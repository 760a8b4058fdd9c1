"""Numbers, arrays and functions as parameters of operators, which can be compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._types import Array
from nurf._validation import as_finite

Function = Callable[[Array], Any]


@dataclass(frozen=True)
class Numbers:
    """An array that can be compared and is not changed."""

    shape: tuple[int, ...]
    flat: tuple[float, ...]

    @classmethod
    def of(cls, name: str, value: Any) -> Numbers:
        """Return the numbers of an array, which must be finite."""
        array = as_finite(name, value)
        return cls(array.shape, tuple(array.ravel().tolist()))

    @property
    def array(self) -> Array:
        """The array."""
        return np.array(self.flat).reshape(self.shape)


def numbers_or_function(name: str, value: Any) -> Numbers | Function:
    """Return a function unchanged, and anything else as numbers."""
    return value if callable(value) else Numbers.of(name, value)


def at_points(name: str, given: Numbers | Function, X: Array, shape: tuple[int, ...]) -> Array:
    """Return numbers, or the values of a function at the points, broadcast to a shape whose first axis is the rows."""
    array = given.array if isinstance(given, Numbers) else as_finite(name, given(X))
    if array.ndim == len(shape) and array.shape[0] not in (1, shape[0]):
        raise ValueError(f"`{name}` must have one row for each of {shape[0]} points, got shape {array.shape}")
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"`{name}` must have shape {shape} or fewer axes, got {array.shape}") from None


def row_count(given: Numbers | Function, ndim: int) -> int | None:
    """Return the number of rows of an array with ``ndim`` axes; None for functions, and for arrays of equal rows."""
    if isinstance(given, Numbers) and len(given.shape) == ndim:
        return given.shape[0]
    return None
