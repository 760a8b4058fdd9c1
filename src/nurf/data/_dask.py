"""Blocks of Dask arrays, on threads, processes or a cluster, and lazy predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from nurf._types import Array
from nurf.data._streams import Block, Stream
from nurf.data._tree import Tree, heights

Result = TypeVar("Result")

PAUSING_HEIGHT = 5  # runs of 32 blocks, after which the state can be saved


def is_dask(array: Any) -> bool:
    """Return whether an array is a Dask array."""
    return hasattr(array, "dask") and hasattr(array, "to_delayed")


class DaskStream(Stream):
    """The chunks of rows of Dask arrays.

    A run of blocks is one graph: the function of each chunk, and the merges of the tree. Chunks are not moved.

    Parameters
    ----------
    data : mapping of str to array
        The arguments of ``fit``. All arrays are cut into the same chunks of rows as ``X``.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        import dask.array as da

        X = data["X"] if is_dask(data["X"]) else da.from_array(np.asarray(data["X"]))
        if any(np.isnan(length) for length in X.chunks[0]):
            raise ValueError("`X` must have chunks of known lengths, got unknown ones: call `compute_chunk_sizes()`")
        lengths = tuple(length for length in X.chunks[0] if length)
        if not lengths:
            raise ValueError(f"`X` must have at least one row, got shape {X.shape}")
        self.lengths, self.parts = lengths, {}
        for name, array in data.items():
            array = array if is_dask(array) else da.from_array(np.asarray(array))
            if array.ndim == 0 or array.shape[0] != X.shape[0]:
                raise ValueError(f"`{name}` must have {X.shape[0]} rows, as `X` has, got shape {array.shape}")
            array = array.rechunk((lengths, *[-1] * (array.ndim - 1)))
            self.parts[name] = list(array.to_delayed().reshape(len(lengths)))

    def runs(
        self,
        function: Callable[[Block], Result],
        merge: Callable[[Result, Result], Result],
        done: int,
        pausing: bool,
    ) -> Iterator[tuple[int, Result]]:
        """Yield the heights and results of runs of blocks, which are short if ``pausing`` is true."""
        from dask import delayed

        starts = np.concatenate([[0], np.cumsum(self.lengths)])
        apply, join, names = delayed(_apply, pure=False), delayed(merge, pure=False), list(self.parts)
        shared = delayed(function, pure=False, traverse=False)  # once in the graph, for any number of blocks
        for height in heights(done, len(self.lengths), PAUSING_HEIGHT if pausing else len(self.lengths)):
            tree: Tree[Any] = Tree()
            for number in range(done, done + 2**height):
                parts = [self.parts[name][number] for name in names]
                tree = tree.push(apply(shared, int(starts[number]), names, *parts), join)
            yield height, tree.total(join).compute()
            done += 2**height

    def blocks(self, done: int = 0) -> Iterator[Block]:
        """Yield the blocks after the first ``done``, computed one after the other and copied to this process."""
        import dask

        starts = np.concatenate([[0], np.cumsum(self.lengths)])
        for number in range(done, len(self.lengths)):
            parts = dask.compute(*(parts[number] for parts in self.parts.values()))
            yield Block(int(starts[number]), dict(zip(self.parts, map(np.asarray, parts), strict=True)))

    def call(self, function: Callable[[], Result]) -> Result:
        """Return the result of a function that is called by one of the workers."""
        from dask import delayed

        result: Result = delayed(function, pure=False, traverse=False)().compute()
        return result


def _apply(function: Callable[[Block], Result], first: int, names: Sequence[str], *parts: Any) -> Result:
    return function(Block(first, dict(zip(names, map(np.asarray, parts), strict=True))))


def lazily(function: Callable[[Array], Array], X: Any, shape: tuple[int, ...]) -> Any:
    """Return the results of ``function`` for the rows of a Dask array, as a Dask array that is not yet computed.

    ``shape`` is the shape of the result for one row.
    """
    X = X.rechunk({1: -1})
    return X.map_blocks(
        function,
        dtype=np.float64,
        drop_axis=list(range(1, X.ndim)),
        new_axis=list(range(1, 1 + len(shape))),
        chunks=(X.chunks[0], *((length,) for length in shape)),
        meta=np.empty((0,) * (1 + len(shape))),
    )
