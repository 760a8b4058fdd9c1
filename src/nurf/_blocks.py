"""Blocks of rows of long arrays, and evenly spaced rows."""

from collections.abc import Iterator

import numpy as np

from nurf._types import Index

BLOCK_ELEMENTS = 2**19  # 4 MB of doubles: large enough for BLAS, small enough for the cache


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
