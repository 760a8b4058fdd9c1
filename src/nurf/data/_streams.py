"""The base of all streams of blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from nurf.data._tree import Tree

Result = TypeVar("Result")
State = TypeVar("State")


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of the data, unchanged.

    Parameters
    ----------
    first : int
        The row number of the first row in the data.
    data : mapping of str to array
        The arguments of ``fit`` for these rows.
    """

    first: int
    data: Mapping[str, Any]


class Stream(ABC):
    """Data in blocks of rows that can be read repeatedly, one block after the other or on many machines.

    Subclasses define how a function is applied to the blocks; the results are merged in the order of ``Tree``.
    """

    @abstractmethod
    def runs(
        self,
        function: Callable[[Block], Result],
        merge: Callable[[Result, Result], Result],
        done: int,
        pausing: bool,
    ) -> Iterator[tuple[int, Result]]:
        """Yield the heights and results of runs of blocks, after the first ``done`` blocks.

        If ``pausing`` is true, runs are short, so that the state can be saved after each.
        """

    @abstractmethod
    def blocks(self, done: int = 0) -> Iterator[Block]:
        """Yield the blocks after the first ``done``, each in memory."""

    def call(self, function: Callable[[], Result]) -> Result:
        """Return the result of a function without arguments, called on a machine that has blocks."""
        return function()

    def map_reduce(
        self,
        function: Callable[[Block], Result],
        merge: Callable[[Result, Result], Result],
        start: Tree[Result] | None = None,
        after: Callable[[Tree[Result]], None] | None = None,
    ) -> Result:
        """Return the merged results of ``function`` for all blocks.

        Parameters
        ----------
        function, merge : callable
        start : Tree, optional
            Results of the first blocks, which are not recomputed.
        after : callable, optional
            Called with the tree after each run of blocks.
        """
        tree = Tree[Result]() if start is None else start
        for height, result in self.runs(function, merge, tree.n_blocks, after is not None):
            tree = tree.push(result, merge, height)
            if after is not None:
                after(tree)
        if not tree.runs:
            raise ValueError("data must have at least one block of rows, got none")
        return tree.total(merge)

    def fold(
        self,
        function: Callable[[State, Block], State],
        state: State,
        done: int = 0,
        after: Callable[[State], None] | None = None,
    ) -> State:
        """Return the last state of a loop ``state = function(state, block)`` over the blocks.

        Parameters
        ----------
        function : callable
            A function from a state and a block to the next state.
        state : object
            The first state.
        done : int, default 0
            Number of blocks that are skipped.
        after : callable, optional
            Called with the state after each block.
        """
        for block in self.blocks(done):
            state = function(state, block)
            if after is not None:
                after(state)
        return state
