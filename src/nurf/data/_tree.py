"""Merging in a fixed order, which does not depend on where and when the blocks are computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Tree(Generic[Result]):
    """The results of the first blocks of a stream, merged in a binary tree.

    The blocks so far are divided into runs of ``2^h`` blocks with decreasing heights ``h``, the binary digits of their
    number. Only one result is stored for each run, and the order of the merges depends only on the number of blocks.

    Parameters
    ----------
    runs : tuple of (int, Result)
        The height and the result of each run, in the order of the blocks.
    """

    runs: tuple[tuple[int, Result], ...] = ()

    @property
    def n_blocks(self) -> int:
        """Number of blocks so far."""
        return sum(2**height for height, _ in self.runs)

    def push(self, result: Result, merge: Callable[[Result, Result], Result], height: int = 0) -> Tree[Result]:
        """Return the tree with the result of the next ``2^height`` blocks."""
        runs = list(self.runs)
        while runs and runs[-1][0] == height:
            result, height = merge(runs.pop()[1], result), height + 1
        return Tree((*runs, (height, result)))

    def total(self, merge: Callable[[Result, Result], Result]) -> Result:
        """Return the merged result of all blocks; the short runs at the end are merged first.

        >>> tree = Tree()
        >>> for letter in "abcde":
        ...     tree = tree.push(letter, lambda a, b: f"({a}{b})")
        >>> tree.n_blocks, tree.total(lambda a, b: f"({a}{b})")
        (5, '(((ab)(cd))e)')
        """
        (_, result), *earlier = self.runs[::-1]
        for _, before in earlier:
            result = merge(before, result)
        return result


def heights(done: int, n_blocks: int, largest: int) -> list[int]:
    """Return the heights of the runs that follow the first ``done`` blocks, each at most ``largest``.

    Runs start at multiples of their length, so that they are nodes of the tree of all blocks.

    >>> heights(2, 11, largest=2)
    [1, 2, 1, 0]
    """
    found = []
    while done < n_blocks:
        aligned = (done & -done).bit_length() - 1 if done else largest
        height = min(aligned, largest, (n_blocks - done).bit_length() - 1)
        found.append(height)
        done += 2**height
    return found
