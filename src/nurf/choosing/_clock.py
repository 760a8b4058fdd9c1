"""The end of a time budget."""

from __future__ import annotations

import time


class TimeUpError(Exception):
    """The time budget of a fit is used up."""


class Clock:
    """A deadline that fits check between their steps. It counts once there is a first model.

    Parameters
    ----------
    deadline : float, default infinity
        The end of the budget by ``time.perf_counter``.
    """

    def __init__(self, deadline: float = float("inf")) -> None:
        self.deadline = deadline
        self._counts = False

    def start(self) -> None:
        """Let the deadline count: there is a model."""
        self._counts = True

    @property
    def left(self) -> float:
        """The seconds until the deadline."""
        return self.deadline - time.perf_counter()

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed and counts."""
        return self._counts and time.perf_counter() > self.deadline

    def check(self) -> None:
        """Raise ``TimeUpError`` if the deadline has passed and counts."""
        if self.is_over:
            raise TimeUpError


NO_LIMIT = Clock()
