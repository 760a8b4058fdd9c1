"""Blocks of rows of long arrays, evenly spaced rows, and rows at the same points."""

from collections.abc import Iterator

import numpy as np

from nurf._types import Array, Index

BLOCK_ELEMENTS = 2**19  # 4 MB of doubles: large enough for BLAS, small enough for the cache
STEPS = 1e9 / 3  # in the range of an input, inside of which points are equal; the limits are no round numbers


def row_blocks(n_rows: int, n_columns: int, elements: int = BLOCK_ELEMENTS) -> Iterator[slice]:
    """Yield slices of ``range(n_rows)`` such that a block with ``n_columns`` columns has about ``elements`` elements.

    >>> list(row_blocks(5, 2, elements=4))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, elements // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def spaced(index: Index, n: int) -> Index:
    """Return at most ``n`` evenly spaced elements of ``index``.

    >>> spaced(np.arange(10), 4)
    array([0, 3, 6, 9])
    """
    return np.asarray(index[np.linspace(0, len(index) - 1, min(n, len(index))).round().astype(int)])


def numbered(points: Array) -> Index:
    """Return a number for each of some points (n, d), shape (n,), which points share that differ by rounding."""
    low = points.min(axis=0, initial=np.inf)
    extent = points.max(axis=0, initial=-np.inf) - low
    places = np.round((points - low) / np.where(extent > 0, extent, 1.0) * STEPS)
    return np.asarray(np.unique(places, axis=0, return_inverse=True)[1]).ravel()
