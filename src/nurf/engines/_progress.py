"""Messages of a running fit: its expected duration, and its progress."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from nurf.choosing import Attempt
from nurf.engines._deep_fit import DeepCycle
from nurf.engines._fit import Fit
from nurf.engines._sparse import SparseStep
from nurf.networks import Features
from nurf.solvers import Loss

LOGGER = logging.getLogger("nurf")
LONG = 60.0  # a fit that takes more seconds announces how long it may take
BLOCKS_INTERVAL = 5.0  # seconds between two lines while blocks are added up


def watch_attempts(verbose: int, seconds: float = np.inf) -> RaceProgress | None:
    """Return a function to call with each attempt of a race with a budget of ``seconds``, or None if silent."""
    return RaceProgress(seconds) if verbose else None


def say_surveyed(n_rows: int, seconds: float, verbose: int) -> None:
    """Write the duration of the first pass over all blocks, unless silent."""
    if verbose:
        _say(f"first pass: {n_rows} samples surveyed, {_duration(seconds)}")


def warn_if_long(n_rows: int, problems: Sequence[tuple[Features, Loss]]) -> None:
    """Log the expected duration of the normal equations of all rows on this machine, if it is long."""
    operations = sum(n_rows * features.n_neurons**2 * (1 + len(loss.orders)) for features, loss in problems)
    seconds = operations / _operations_per_second()
    if seconds > LONG:
        words = "adding up %d samples for %d neurons may take about %s on one machine"
        LOGGER.warning(words, n_rows, max(features.n_neurons for features, _ in problems), _duration(seconds))


def watch_blocks(what: str, total: int, before: int, verbose: int) -> Callable[[int], None] | None:
    """Return a function to call with the number of rows or blocks done so far, or None if silent.

    Parameters
    ----------
    what : str
        What happens to the rows or blocks.
    total : int
        Their number.
    before : int
        The number that was done earlier, which is ignored in the estimate of the remaining time.
    verbose : int
    """
    start, said = time.perf_counter(), [time.perf_counter()]

    def progress(done: int) -> None:
        now = time.perf_counter()
        if done == total or now - said[0] > BLOCKS_INTERVAL:
            said[0] = now
            left = (now - start) * (total - done) / max(done - before, 1)
            more = f", about {_duration(left)} left" if done < total else ""
            _say(f"{done} of {total} {what}, {_duration(now - start)}{more}")

    return progress if verbose else None


def watch_path(verbose: int) -> Callable[[SparseStep], None] | None:
    """Return a function to call with each step of the path of sparse training, or None if silent."""
    if not verbose:
        return None
    return lambda step: _say(
        f"alpha {step.alpha:.2g}: {step.n_neurons} neurons, error {step.error:.2g}, {_duration(step.seconds)}"
    )


def watch_cycles(verbose: int) -> Callable[[DeepCycle], None] | None:
    """Return a function to call with each cycle of the training of a deep network, or None if silent."""
    if not verbose:
        return None
    return lambda cycle: _say(
        f"{cycle.n_steps} steps, {cycle.label}: loss {cycle.loss:.2g}, "
        + ("" if np.isnan(cycle.error) else f"error {cycle.error:.2g}, ")
        + _duration(cycle.seconds)
    )


def _operations_per_second(size: int = 256) -> float:
    """Return the measured speed of a product of matrices of a moderate size."""
    matrix = np.ones((size, size))
    times = []
    for _ in range(3):
        start = time.perf_counter()
        matrix @ matrix
        times.append(time.perf_counter() - start)
    return 2.0 * size**3 / max(min(times), 1e-9)


class RaceProgress:
    """Writes a line for each candidate that is the best so far, and counts the others in a terminal."""

    def __init__(self, seconds: float = np.inf) -> None:
        self._start, self._seconds = time.perf_counter(), seconds
        self._tried, self._best = 0, np.inf

    def __call__(self, attempt: Attempt) -> None:
        """Take note of an attempt."""
        self._tried += 1
        passed = time.perf_counter() - self._start
        left = f", {_duration(max(self._seconds - passed, 0.0))} left" if np.isfinite(self._seconds) else ""
        counted = f"{_duration(passed)}{left}, candidate {self._tried}: {attempt.engine}, {attempt.label}"
        best = min(self._best, attempt.error)
        if attempt.error < self._best:
            self._best = attempt.error
            _say(f"{counted} ({attempt.data}), error {attempt.error:.2g}")
        elif sys.stderr.isatty():
            print(f"\r\033[Knurf: {counted}, best error {best:.2g}", end="", file=sys.stderr, flush=True)

    def done(self, fit: Fit) -> None:
        """Write the result."""
        seconds = _duration(time.perf_counter() - self._start)
        _say(f"{seconds}: estimated error {fit.error:.2g} of the standard deviation of the values")


def _say(text: str) -> None:
    """Write a line to the standard error, in place of the counter."""
    start = "\r\033[K" if sys.stderr.isatty() else ""
    print(f"{start}nurf: {text}", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    """Return a duration in words.

    >>> _duration(0.25), _duration(75.0), _duration(7200.0)
    ('0.25 s', '1.2 min', '2 h')
    """
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} s"
