"""The memory of freed arrays is kept for later arrays."""

from __future__ import annotations

import numpy as np

KEPT = 31 * 2**20  # bytes; the GNU C library never keeps arrays of 32 MiB or more


def keep_freed_memory() -> None:
    """Make the C library keep the memory of freed arrays for later arrays.

    The GNU C library gives large arrays back to the system, and the next array has to be mapped page by page, which
    takes longer than filling it: 2.5 times as long for the likelihood of a process with 200 to 500 rows. After it has
    freed one larger array, the library keeps the memory of smaller arrays. The array that is freed here is never
    written to, so that it takes no memory.
    """
    np.empty(KEPT, np.uint8)
