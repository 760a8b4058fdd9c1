"""Arrays as bytes: little-endian, one after the other, in memory order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nurf._types import Floats
from nurf.files._container import padding

DTYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
MAX_AXES = 8


def describe(array: Floats, *, scalar: bool) -> tuple[dict[str, Any], memoryview]:
    """Return the header entry of an array, and its bytes.

    The order of the axes in memory (C, Fortran or transposed) is kept, because the rounding of matrix products may
    depend on it.
    """
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in DTYPES:
        raise TypeError(f"arrays must hold numbers of the types {', '.join(DTYPES)}, got {array.dtype}")
    if array.ndim > MAX_AXES:
        raise TypeError(f"arrays must have at most {MAX_AXES} axes, got {array.ndim}")
    entry: dict[str, Any] = {"array": dtype.str, "shape": list(array.shape)}
    if not array.flags.c_contiguous:
        axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        array, entry = array.transpose(axes), entry | {"axes": axes}
    if scalar:
        entry["scalar"] = True
    flat = np.ascontiguousarray(array, dtype).reshape(-1)
    return entry, flat.view(np.uint8).data


class ArrayReader:
    """The arrays of a file, which are read in order, so that none can overlap another."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._position = data, 0

    def read(self, entry: dict[str, Any]) -> Any:
        """Return the next array, as a copy, or a scalar."""
        name, shape = entry["array"], checked_shape(entry["shape"], len(self._data))
        axes = entry.get("axes", list(range(len(shape))))
        if name not in DTYPES:
            raise ValueError(f"arrays must be of one of the types {', '.join(DTYPES)}, got {name!r:.80}")
        if type(axes) is not list or sorted(axes) != list(range(len(shape))):
            raise ValueError(f"the axes of an array must be a permutation of {len(shape)} axes, got {axes!r:.80}")
        dtype = np.dtype(name)
        size = math.prod(shape) * dtype.itemsize
        stop = self._position + size
        if stop > len(self._data):
            left = len(self._data) - self._position
            raise ValueError(f"an array of shape {shape} must have {size} bytes, got {left} up to the end of the file")
        flat = np.frombuffer(self._data[self._position : stop], np.uint8 if dtype.kind == "b" else dtype)
        self._position = stop + padding(size)
        flat = flat != 0 if dtype.kind == "b" else flat.astype(dtype.newbyteorder("="))
        if entry.get("scalar", False):
            if shape:
                raise ValueError(f"a scalar must have shape (), got {shape}")
            return flat[0]
        return flat.reshape([shape[axis] for axis in axes]).transpose(np.argsort(axes))

    def finish(self) -> None:
        """Raise a ``ValueError`` if bytes are left."""
        if self._position != len(self._data):
            raise ValueError(f"the arrays must have {self._position} bytes in all, got {len(self._data)}")


def checked_shape(value: Any, limit: int) -> tuple[int, ...]:
    """Return a shape after checks; even if an axis has length zero, no other may be longer than the file."""
    if type(value) is not list or len(value) > MAX_AXES or not all(type(n) is int and n >= 0 for n in value):
        raise ValueError(f"a shape must be at most {MAX_AXES} whole numbers >= 0, got {str(value)[:80]}")
    if math.prod(n for n in value if n) > limit:
        raise ValueError(f"the lengths of the axes must fit into {limit} bytes, got {value}")
    return tuple(value)


def strings(entry: dict[str, Any]) -> Any:
    """Return an array of strings, such as the names of inputs."""
    texts: Sequence[Any] = entry["strings"]
    if type(texts) is not list or not all(type(text) is str for text in texts):
        raise ValueError("an array of strings must be a list of strings")
    result = np.empty(len(texts), object)
    result[:] = texts
    return result.reshape(checked_shape(entry["shape"], len(texts)))
