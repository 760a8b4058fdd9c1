"""Concurrent runs of a simulator, with time limits, on workers that may die."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from nurf._validation import is_number
from nurf.studies._planning import require_count
from nurf.studies._store import Run

POLL = (0.002, 0.1)  # seconds between looks at runs, from the first to the last
MOST_TEXT = 500  # characters of a message


class Executor(Protocol):
    """The protocol of executors: of ``concurrent.futures`` or loky, or a client of Dask."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Start a call, and return its future."""
        ...


class Inline:
    """An executor that calls functions immediately, in this process."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Call the function, and return a future that is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run of the simulator.

    Parameters
    ----------
    value : object
        The returned object; None if the run failed.
    message : str or None
        Why it failed.
    seconds : float
    """

    value: Any
    message: str | None
    seconds: float


def called(simulator: Callable[..., Any], point: dict[str, float], options: dict[str, Any]) -> Outcome:
    """Return the outcome of a simulator at a point; an exception becomes a message."""
    start = time.perf_counter()
    try:
        value, message = simulator(point, **options), None
    except Exception as error:
        value, message = None, f"{type(error).__name__}: {error}"[:MOST_TEXT]
    return Outcome(value, message, time.perf_counter() - start)


@dataclass(eq=False)
class Pool:
    """The unfinished runs of a simulator.

    If a run takes longer than ``timeout``, it is given up; its worker is lost until it returns. When all workers are
    lost, or one of them broke, an executor of one's own is replaced, and the runs that were under way start again: one
    by one after a break, so that the run that breaks workers is found.
    """

    simulator: Callable[..., Any]
    make: Callable[[], Executor]
    own: bool
    n_jobs: int
    timeout: float | None = None
    lost: int = 0
    executor: Any = None
    waiting: list[tuple[Run, dict[str, float], dict[str, Any]]] = field(default_factory=list)
    under_way: dict[int, tuple[Any, float, tuple[Run, dict[str, float], dict[str, Any]]]] = field(default_factory=dict)
    suspects: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.executor = self.make()

    @classmethod
    def of(cls, simulator: Any, n_jobs: Any, executor: Any, timeout: Any) -> Pool:
        """Return the pool for the arguments of a user; concurrent runs without an executor use processes."""
        if not callable(simulator):
            raise TypeError(f"`simulator` must be callable, got {simulator!r}")
        require_count("n_jobs", n_jobs)
        if timeout is not None and not (is_number(timeout) and timeout > 0):
            raise ValueError(f"`timeout` must be a number of seconds > 0, got {timeout!r}")
        own = executor is None
        in_processes = n_jobs if n_jobs > 1 or timeout is None else 2
        return cls(simulator, workers(in_processes) if own else lambda: executor, own, int(n_jobs), timeout)

    @property
    def free(self) -> int:
        """The number of further runs that can start."""
        return max(0, self.n_jobs - self.lost - len(self.under_way) - len(self.waiting))

    @property
    def busy(self) -> bool:
        """Whether a run is unfinished."""
        return bool(self.under_way or self.waiting)

    def start(self, run: Run, point: dict[str, float], options: dict[str, Any]) -> None:
        """Start a run, as soon as a worker is free."""
        self.waiting.append((run, point, options))

    def ended(self) -> list[tuple[Run, Outcome]]:
        """Wait until a run ends, and return the runs that have ended."""
        pause = POLL[0]
        while True:
            self._submit()
            found = [self._finished(number) for number in list(self.under_way) if self._is_over(number)]
            results = [each for each in found if each is not None]
            if results or not self.busy:
                return results
            time.sleep(pause)
            pause = min(2 * pause, POLL[1])

    def close(self) -> None:
        """Stop the executor if the pool made it; unfinished runs are killed."""
        self.under_way.clear()
        if self.own:
            stopped(self.executor)

    def _submit(self) -> None:
        alone = any(run.run in self.suspects for run, _, _ in self.waiting)
        room = 1 if alone else self.n_jobs - self.lost
        while self.waiting and len(self.under_way) < room:
            given = self.waiting.pop(0)
            try:
                future = self.executor.submit(called, self.simulator, *given[1:])
            except BrokenExecutor:
                self._renew()
                future = self.executor.submit(called, self.simulator, *given[1:])
            self.under_way[given[0].run] = future, time.monotonic(), given

    def _is_over(self, number: int) -> bool:
        if number not in self.under_way:
            return False
        future, start, _ = self.under_way[number]
        return bool(future.done()) or (self.timeout is not None and time.monotonic() - start > self.timeout)

    def _finished(self, number: int) -> tuple[Run, Outcome] | None:
        """Return a finished run with its outcome, or None if it starts again."""
        if number not in self.under_way:
            return None
        future, start, given = self.under_way.pop(number)
        seconds = time.monotonic() - start
        if not future.done():
            if not future.cancel():
                self.lost += 1
            if self.own and self.lost >= self.n_jobs:
                self._renew()
            return given[0], Outcome(None, f"timeout after {self.timeout:g} s", seconds)
        try:
            outcome: Outcome = future.result()
        except BrokenExecutor as error:
            was_alone = number in self.suspects or (not self.under_way and not self.suspects and self.n_jobs == 1)
            self.suspects.discard(number)
            if not was_alone:
                self.suspects |= {number, *self.under_way}
                self.waiting.insert(0, given)
            self._renew()
            return (given[0], Outcome(None, f"worker died: {error}"[:MOST_TEXT], seconds)) if was_alone else None
        except Exception as error:  # results that cannot be pickled, cancelled futures
            return given[0], Outcome(None, f"{type(error).__name__}: {error}"[:MOST_TEXT], seconds)
        self.suspects.discard(number)
        return given[0], outcome

    def _renew(self) -> None:
        """Replace the executor, and restart unfinished runs."""
        if not self.own:
            raise RuntimeError("the executor is broken, or all its workers run longer than `timeout`")
        stopped(self.executor)
        self.waiting = [given for _, _, given in self.under_way.values()] + self.waiting
        self.under_way.clear()
        self.executor, self.lost = self.make(), 0


def stopped(executor: Any) -> None:
    """Stop an executor and its workers."""
    try:
        executor.shutdown(wait=False, kill_workers=True)
    except TypeError:  # not one of loky
        executor.shutdown(wait=False, cancel_futures=True)
    except AttributeError:
        pass


def workers(n_jobs: int) -> Callable[[], Executor]:
    """Return a function that makes an executor with processes of loky, which accept functions of a notebook."""
    if n_jobs == 1:
        return Inline

    def make() -> Executor:
        from joblib.externals.loky import ProcessPoolExecutor

        executor: Executor = ProcessPoolExecutor(max_workers=n_jobs)
        for future in [executor.submit(ready) for _ in range(n_jobs)]:  # the start of workers is no part of a run
            future.result()
        return executor

    return make


def ready() -> None:
    """Make a worker import this module."""
