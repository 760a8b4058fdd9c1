"""Checks of arrays: each returns the array as floats, or says what was expected and what came."""

from __future__ import annotations

from typing import Any

import numpy as np

from nurf._types import Array


def as_finite(name: str, value: Any) -> Array:
    """Return ``value`` as an array of finite numbers, or say which entry of ``name`` is not one."""
    array = np.asarray(value, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        bad = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
        raise ValueError(f"`{name}` must be finite, got {array[bad]} at index {bad}")
    return array


def as_finite_or_nan(name: str, value: Any) -> Array:
    """Return ``value`` as an array of finite numbers and NaN, or say which entry of ``name`` is neither."""
    array = np.asarray(value, dtype=np.float64)
    if np.any(np.isinf(array)):
        bad = tuple(map(int, np.argwhere(np.isinf(array))[0]))
        raise ValueError(f"`{name}` must be finite, or NaN where not known, got {array[bad]} at index {bad}")
    return array


def as_weights(name: str, value: Any, n: int) -> Array | None:
    """Check the weights of ``n`` rows."""
    if value is None:
        return None
    weights = as_finite(name, value)
    if weights.shape != (n,):
        raise ValueError(f"`{name}` must be {n} numbers >= 0, got shape {weights.shape}")
    if np.any(weights < 0):
        raise ValueError(f"`{name}` must be {n} numbers >= 0, got {weights.min()}")
    return weights


def as_derivative(name: str, value: Any, shape: tuple[int, ...], letters: tuple[str, ...]) -> Array | None:
    """Check an array of derivatives against the shape that the points and values ask for."""
    if value is None:
        return None
    array = as_finite_or_nan(name, value)
    if array.shape != shape:
        names = letters if len(shape) == len(letters) else tuple(c for c in letters if c != "k")
        hint = ": transpose it?" if array.ndim == len(shape) and sorted(array.shape) == sorted(shape) else ""
        raise ValueError(f"`{name}` must have shape ({', '.join(names)}) = {shape}, got {array.shape}{hint}")
    return array
