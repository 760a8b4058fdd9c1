"""Reading: arrays into memory, and blocks of rows as checked jets."""

from __future__ import annotations

from typing import Any

import numpy as np

from nurf._types import Array
from nurf._validation import as_floats
from nurf.data._arrays import is_on_disk
from nurf.data._dask import is_dask
from nurf.data._streams import Block
from nurf.jets import Jet, projections

ARRAYS = ("X", "y", "gradients", "directions", "hessians", "sample_weight", "derivative_weight")


def in_memory(array: Any) -> Any:
    """Return an array on disk or of Dask as an array in memory; other objects are returned unchanged."""
    if is_dask(array):
        return array.compute()
    return np.asarray(array[...]) if is_on_disk(array) else array


def read_block(block: Block) -> Jet:
    """Return a block as a jet, without change of units or weights; errors name the row.

    Values must be known. NaN in gradients and Hessians marks unknown entries.
    """
    unknown = set(block.data) - set(ARRAYS)
    if unknown:
        raise ValueError(f"a block may have only {', '.join(ARRAYS)}, got also {', '.join(sorted(unknown))}")
    X, y = (_finite(name, block.data[name], block.first) for name in ("X", "y"))
    data = {name: value for name, value in block.data.items() if name not in ("X", "y")}
    try:
        directions = data.pop("directions", None)
        if directions is not None:
            frames, gradients = projections("gradients", data.pop("gradients", None), directions, X, np.full_like(y, 0))
            data |= {"frames": frames, "gradients": gradients}
        if "derivative_weight" in data and not {"gradients", "hessians"} & set(data):
            raise ValueError("`derivative_weight` needs `gradients` or `hessians`, got none")
        return Jet(X, y, **data)
    except ValueError as error:
        raise ValueError(f"{error} (in the block that starts with row {block.first})") from error


def _finite(name: str, value: Any, first: int) -> Array:
    array = as_floats(name, value)
    bad = ~np.isfinite(array)
    if bad.any():
        index = tuple(np.argwhere(bad)[0])
        raise ValueError(f"`{name}` must be finite, got {array[index]} in row {first + index[0]}")
    return array
