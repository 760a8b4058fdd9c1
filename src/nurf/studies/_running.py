"""The loop that runs a simulator for a study until it is done, and writes results and failures."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nurf.studies._pool import Outcome, Pool
from nurf.studies._results import results
from nurf.studies._space import Space
from nurf.studies._store import ASKED, Run, Store, finish, runs_in

LEASE = 300.0  # seconds without a sign of life, after which the runs of a process are taken over
BEATS = 10  # signs of life in this time


@dataclass(frozen=True, eq=False)
class Runner:
    """The loop of a simulator over the points that a study asks for.

    Parameters
    ----------
    store : Store
    space : Space
    pool : Pool
        It holds the simulator.
    ask : callable
        A function of a number and an owner that writes and returns the next runs, at most this number.
    done : callable
        Returns whether no further run is needed.
    says_what : bool
        Whether the simulator takes a keyword ``compute``.
    """

    store: Store
    space: Space
    pool: Pool
    ask: Callable[[int, str], list[Run]]
    done: Callable[[], bool]
    says_what: bool

    def run(self, lease: float) -> None:
        """Run the simulator until the study is done, starting with the unfinished runs of killed processes."""
        pool, owner = self.pool, new_owner()
        try:
            with beating(self.store, owner, lease):
                for run in self.store.adopt(owner, partial(abandoned, lease=lease)):
                    self._start(run)
                while pool.busy or not self.done():
                    for run in self.ask(pool.free, owner) if pool.free and not self.done() else []:
                        self._start(run)
                    if not pool.busy:
                        break
                    for run, outcome in pool.ended():
                        self._end(run, outcome)
        finally:
            pool.close()

    def _start(self, run: Run) -> None:
        self.pool.start(run, self.space.point(run.x), {"compute": run.compute} if self.says_what else {})

    def _end(self, run: Run, outcome: Outcome) -> None:
        """Write the outcome of a run."""
        ended = replace(self._result(run, outcome), run=run.run)
        with self.store.transaction() as base:
            if any(other.run == run.run and other.state == ASKED for other in runs_in(base)):
                finish(base, ended)

    def _result(self, run: Run, outcome: Outcome) -> Run:
        """Return a finished run, which failed if there is a message or the result is invalid."""
        X, message = np.array([run.x]), outcome.message
        try:
            y, gradients, cost = values_of(outcome.value) if message is None else (np.nan, None, None)
            slopes = None if gradients is None else finite(gradients)[None]
            found = results(self.space, X, np.atleast_1d(finite(y))[None], slopes, [cost or outcome.seconds], message)
        except (TypeError, ValueError) as error:
            found = results(self.space, X, [np.nan], None, [outcome.seconds], f"{type(error).__name__}: {error}")
        return found.runs[0]


def values_of(value: Any) -> tuple[Any, Any, Any]:
    """Return the values, gradients and cost that a simulator returned.

    It returns the values, ``(values, gradients)``, or a dict with "y", "gradients" and "cost".
    """
    if isinstance(value, Mapping):
        if "y" not in value:
            raise ValueError(f"a simulator must return values, (values, gradients) or a dict with 'y', got {value!r}")
        return value["y"], value.get("gradients"), value.get("cost")
    if isinstance(value, tuple):
        if len(value) != 2:
            raise ValueError(f"a simulator must return values or (values, gradients), got {len(value)} parts")
        return value[0], value[1], None
    return value, None, None


def new_owner() -> str:
    """Return a unique name of this process."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


RELEASED = "released"  # the owner of runs whose process gave them up


def abandoned(run: Run, lease: float) -> bool:
    """Return whether the process of a run has ended, or has given no sign of life for ``lease`` seconds."""
    if run.owner is None:
        return False
    if run.owner == RELEASED:
        return True
    host, pid, _ = run.owner.rsplit(":", 2)
    silent = run.alive is None or time.time() - run.alive > lease
    return silent or (host == socket.gethostname() and not _is_alive(int(pid)))


def _is_alive(pid: int) -> bool:
    """Return whether a process runs on this machine; True if unknown."""
    if os.name != "posix":  # os.kill would end it
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextlib.contextmanager
def beating(store: Store, owner: str, lease: float) -> Iterator[None]:
    """Give signs of life while the block runs, and release its unfinished runs at the end."""
    end = threading.Event()

    def beat() -> None:
        while not end.wait(lease / BEATS):
            store.beat(owner)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
        store.release(owner, RELEASED)


def finite(value: Any) -> Any:
    """Return values as an array, NaN where they are None or infinite."""
    array = np.asarray(value, float)
    return np.where(np.isfinite(array), array, np.nan)
