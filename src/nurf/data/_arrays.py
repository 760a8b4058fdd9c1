"""Blocks of rows of arrays in memory, memory-mapped arrays, and arrays of HDF5 or zarr."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from nurf._blocks import row_blocks
from nurf.data._streams import Block, Stream

Result = TypeVar("Result")

MAX_ROWS = 2**16  # of a block
MAX_NUMBERS = 2**23  # of a block: 64 MB


def is_on_disk(array: Any) -> bool:
    """Return whether an array is read piece by piece: a memory map, or a chunked array of HDF5 or zarr."""
    chunked = all(hasattr(array, name) for name in ("chunks", "shape", "dtype", "__getitem__"))
    return isinstance(array, np.memmap) or (chunked and not isinstance(array, np.ndarray))


class ArrayStream(Stream):
    """Rows of arrays with a length and slices.

    Parameters
    ----------
    data : mapping of str to array
        The arguments of ``fit``, all with the same number of rows.
    block_rows : int, optional
        Number of rows of a block. By default 65,536, or fewer if a block would be larger than 64 MB.
    """

    def __init__(self, data: Mapping[str, Any], block_rows: int | None = None) -> None:
        self.data, n = dict(data), data["X"].shape[0]
        for name, array in self.data.items():
            if not np.shape(array) or array.shape[0] != n:
                raise ValueError(f"`{name}` must have {n} rows, as `X` has, got shape {np.shape(array)}")
        if not n:
            raise ValueError(f"`X` must have at least one row, got shape {np.shape(self.data['X'])}")
        numbers = sum(int(np.prod(array.shape[1:], dtype=int)) for array in self.data.values())
        self.n_rows, self.block_rows = n, block_rows or min(MAX_ROWS, max(1, MAX_NUMBERS // numbers))

    def runs(
        self,
        function: Callable[[Block], Result],
        merge: Callable[[Result, Result], Result],
        done: int,
        pausing: bool,
    ) -> Iterator[tuple[int, Result]]:
        """Yield the results of the blocks, one after the other."""
        for block in self.blocks(done):
            yield 0, function(block)

    def blocks(self, done: int = 0) -> Iterator[Block]:
        """Yield the blocks after the first ``done``."""
        for rows in list(row_blocks(self.n_rows, 1, self.block_rows))[done:]:
            yield Block(rows.start, {name: np.asarray(array[rows]) for name, array in self.data.items()})
