"""Blocks from an iterable or a function of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from nurf.data._streams import Block, Stream

Result = TypeVar("Result")

NAMES = ("X", "y", "gradients")


class IterableStream(Stream):
    """Blocks of an iterable that can be iterated repeatedly, or of a function that returns an iterator.

    Parameters
    ----------
    source : iterable or callable
        The blocks are mappings with the arguments of ``fit``, or tuples ``(X, y)`` or ``(X, y, gradients)``.
    """

    def __init__(self, source: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        if isinstance(source, Iterator):
            raise ValueError(
                f"blocks are read more than once, and a {type(source).__name__} can be read only once: pass a list, an "
                "object whose __iter__ starts again, or a function that returns a new iterator; or use `partial_fit`, "
                "which reads each block once"
            )
        if not (callable(source) or isinstance(source, Iterable)):
            raise ValueError(f"blocks must be an iterable or a function, got a {type(source).__name__}")
        self.source = source

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
        """Yield the nonempty blocks after the first ``done``."""
        first, number = 0, 0
        for item in self.source() if callable(self.source) else self.source:
            data = _fields(item, number)
            rows = len(data["X"])
            if rows and number >= done:
                yield Block(first, data)
            first, number = first + rows, number + (rows > 0)


def _fields(item: Any, number: int) -> dict[str, Any]:
    """Return the arguments of ``fit`` that a block has."""
    if isinstance(item, tuple) and 2 <= len(item) <= len(NAMES):
        item = dict(zip(NAMES, item, strict=False))
    if not (isinstance(item, Mapping) and {"X", "y"} <= set(item)):
        got = f"a tuple of {len(item)}" if isinstance(item, tuple) else f"a {type(item).__name__}"
        raise ValueError(f"a block must be (X, y), (X, y, gradients) or a mapping with these, got {got} as {number}")
    return {name: value for name, value in item.items() if value is not None}
