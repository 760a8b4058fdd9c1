"""Threads of linear algebra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_limits: list[Any] = []  # the present limit, and None for each further user of it


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread. The earlier number returns when the last of several users of the limit ends.

    NumPy and SciPy have a pool of threads each, and fits multiply many small matrices. With two threads on two cores
    without other work, fits of 100 to 3000 samples took 0.9 to 1.5 times as long as with one thread; with one other
    process on these cores, up to 50 times as long.
    """
    with _lock:
        _limits.append(None if _limits else _limit())
    try:
        yield
    finally:
        with _lock:
            if len(_limits) == 1:
                _limits[0].restore_original_limits()
            _limits.pop()


@contextmanager
def all_threads() -> Iterator[None]:
    """Suspend the limit of ``one_thread``, for large matrices."""
    with _lock:
        if _limits:
            _limits[0].restore_original_limits()
    try:
        yield
    finally:
        with _lock:
            if _limits:
                _limits[0] = _limit()


def _limit() -> Any:
    return _pools().limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _pools() -> Any:
    return ThreadpoolController()
