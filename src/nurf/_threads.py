"""Threads of linear algebra."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _pools() -> Any:
    return ThreadpoolController()


def threads_for(n_rows: int, enough: int) -> AbstractContextManager[Any]:
    """Return a context with one thread of BLAS for matrices with fewer rows than are enough for more.

    NumPy and SciPy have a pool of threads each. For small matrices, waking the threads takes longer than the work, and
    many times longer if the machine is busy.
    """
    if n_rows >= enough:
        return nullcontext()
    limit: AbstractContextManager[Any] = _pools().limit(limits=1, user_api="blas")
    return limit
