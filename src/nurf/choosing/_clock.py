"""The end of a time budget."""

from __future__ import annotations

import time


class TimeUpError(Exception):
    """The time budget of a fit is used up."""


class Clock:
    """A deadline that fits check between their steps, active once there is a first model.

    Parameters
    ----------
    deadline : float, default infinity
        The end of the budget by ``time.perf_counter``.
    outer : Clock, optional
        A clock of a longer race: once it is active, this clock is active as well.
    """

    def __init__(self, deadline: float = float("inf"), outer: Clock | None = None) -> None:
        self.deadline = deadline
        self._outer = outer
        self._counts = False

    def start(self) -> None:
        """Activate the deadline, because there is a model."""
        self._counts = True

    def within(self, seconds: float) -> Clock:
        """Return a clock that ends after some seconds, or with this one if that is earlier."""
        return Clock(min(self.deadline, time.perf_counter() + seconds), self)

    @property
    def left(self) -> float:
        """The seconds until the deadline."""
        return self.deadline - time.perf_counter()

    @property
    def is_active(self) -> bool:
        """Whether there is a first model."""
        return self._counts or (self._outer is not None and self._outer.is_active)

    @property
    def is_over(self) -> bool:
        """Whether the deadline is active and has passed."""
        return self.is_active and time.perf_counter() > self.deadline

    def check(self) -> None:
        """Raise ``TimeUpError`` if the deadline is active and has passed."""
        if self.is_over:
            raise TimeUpError


NO_LIMIT = Clock()
