"""Row blocks, to process long arrays piece by piece."""

from collections.abc import Iterator

BLOCK_ELEMENTS = 2**19  # 4 MB of doubles: large enough for BLAS, small enough for the cache


def row_blocks(n_rows: int, n_columns: int, elements: int = BLOCK_ELEMENTS) -> Iterator[slice]:
    """Yield slices of ``range(n_rows)`` such that a block with ``n_columns`` columns has about ``elements`` elements.

    >>> list(row_blocks(5, 2, elements=4))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, elements // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
