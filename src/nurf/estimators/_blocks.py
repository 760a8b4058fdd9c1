"""From blocks of rows to checked jets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._scaling import Extent
from nurf._streams import ArrayStream, Block, DaskStream, Stream, is_dask, is_on_disk
from nurf._types import Array
from nurf._validation import as_floats, is_number
from nurf.engines._streamed import Summary
from nurf.jets import Jet, projections

ARRAYS = ("X", "y", "gradients", "directions", "hessians", "sample_weight", "derivative_weight")


def make_stream(data: dict[str, Any], block_rows: int | None) -> Stream:
    """Return the stream of arrays of any kind; a number stands for the weights of all rows."""
    n = data["X"].shape[0]
    given = {name: data[name] for name in ARRAYS if data.get(name) is not None}
    given = {name: np.broadcast_to(value, n) if is_number(value) else value for name, value in given.items()}
    for name, value in given.items():
        if hasattr(value, "iloc") or not hasattr(value, "shape"):
            given[name] = as_floats(name, value)
    if any(is_dask(array) for array in given.values()):
        return DaskStream(given)
    return ArrayStream(given, block_rows)


def is_piecewise(data: dict[str, Any]) -> bool:
    """Return whether any of the arrays is not in memory."""
    return any(is_dask(array) or is_on_disk(array) for array in data.values())


def in_memory(array: Any) -> Any:
    """Return an array that was read or computed, and anything else as it is."""
    if is_dask(array):
        return array.compute()
    return np.asarray(array[...]) if is_on_disk(array) else array


def read_block(block: Block) -> Jet:
    """Return the jet of a block, in the units and with the weights that are given; errors name the row.

    Values must be known. Partial derivatives and entries of Hessians that are NaN are unknown.
    """
    unknown = set(block.data) - set(ARRAYS)
    if unknown:
        raise ValueError(f"a block must have some of {', '.join(ARRAYS)}, got {', '.join(sorted(unknown))} too")
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


@dataclass(frozen=True)
class Summarise:
    """The map from a block to its summary.

    Parameters
    ----------
    seed : int
    n_raced : int
        Number of rows to race on, at most.
    """

    seed: int
    n_raced: int

    def __call__(self, block: Block) -> Summary:
        """Return the summary of a block."""
        return Summary.of(read_block(block), block.first, self.seed, self.n_raced)


@dataclass(frozen=True, eq=False)
class Radius:
    """The map from a block to the largest distance of its points from the centre of the data."""

    extent: Extent

    def __call__(self, block: Block) -> float:
        """Return the distance."""
        jet = read_block(block)
        return self.extent.radius(jet.X[jet.weights(0) > 0])
