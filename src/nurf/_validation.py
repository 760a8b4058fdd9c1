"""Validation of arguments: arrays become float arrays, and invalid arguments raise a ``ValueError``."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from nurf._types import Array


def is_number(value: Any) -> bool:
    """Return whether ``value`` is a finite real number; Booleans and arrays are not."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # an integer that is larger than any float
        return False


def is_whole(value: Any, lowest: int = 1) -> bool:
    """Return whether ``value`` is an integer of at least ``lowest``; Booleans and arrays are not."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= lowest


def as_floats(name: str, value: Any) -> Array:
    """Return ``value`` as a float array, with NaN for masked and missing elements."""
    try:
        kind = np.asarray(value).dtype.kind
        if kind in "Mm":
            raise TypeError("dates and times have no unit")
        if kind != "c":
            return _floats(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be an array of numbers, got {type(value).__name__}: {error}") from error
    raise ValueError(f"`{name}` must be an array of real numbers, got complex ones: Complex data not supported")


def _floats(value: Any) -> Array:
    if isinstance(value, np.ma.MaskedArray):
        return np.where(value.mask, np.nan, np.asarray(value.data, dtype=np.float64))
    if hasattr(value, "iloc"):  # pandas has missing values other than NaN
        return np.asarray(value.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(value, dtype=np.float64)


def as_finite(name: str, value: Any) -> Array:
    """Return ``value`` as a float array; raise a ``ValueError`` if an element is not finite."""
    array = as_floats(name, value)
    if not np.all(np.isfinite(array)):
        bad = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
        raise ValueError(f"`{name}` must be finite, got {array[bad]} at index {bad}")
    return array


def as_finite_or_nan(name: str, value: Any) -> Array:
    """Return ``value`` as a float array, which may contain NaN; raise a ``ValueError`` if an element is infinite."""
    array = as_floats(name, value)
    if np.any(np.isinf(array)):
        bad = tuple(map(int, np.argwhere(np.isinf(array))[0]))
        raise ValueError(f"`{name}` must be finite or NaN (unknown), got {array[bad]} at index {bad}")
    return array


def as_weights(name: str, value: Any, n: int) -> Array | None:
    """Return the weights of ``n`` rows, of shape (n,), or None if there are none."""
    if value is None:
        return None
    weights = as_finite(name, value)
    if weights.shape != (n,):
        raise ValueError(f"`{name}` must be {n} numbers >= 0, got shape {weights.shape}")
    if np.any(weights < 0):
        raise ValueError(f"`{name}` must be {n} numbers >= 0, got {weights.min()}")
    return weights


def as_derivative(name: str, value: Any, shape: tuple[int, ...], letters: tuple[str, ...]) -> Array | None:
    """Return an array of derivatives, or None if there are none; raise a ``ValueError`` if its shape is not ``shape``.

    ``letters`` are the names of the axes in the error message.
    """
    if value is None:
        return None
    array = in_shape(as_finite_or_nan(name, value), shape)
    if array.shape != shape:
        names = letters if len(shape) == len(letters) else tuple(c for c in letters if c != "k")
        hint = ": transpose it?" if array.ndim == len(shape) and sorted(array.shape) == sorted(shape) else ""
        raise ValueError(f"`{name}` must have shape ({', '.join(names)}) = {shape}, got {array.shape}{hint}")
    return array


def in_shape(array: Array, shape: tuple[int, ...]) -> Array:
    """Return the array in the ``shape`` if both differ only by axes of length one, and unchanged otherwise.

    The first axis, of the rows, is never changed. The axis of a single output is thus optional.

    >>> in_shape(np.zeros((5, 2)), (5, 1, 2)).shape
    (5, 1, 2)
    """

    def long_axes(shape: tuple[int, ...]) -> list[int]:
        return [*shape[:1], *(length for length in shape[1:] if length != 1)]

    return array.reshape(shape) if array.ndim and long_axes(array.shape) == long_axes(shape) else array
