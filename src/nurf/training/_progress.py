"""What a fit says while it runs: how long it may take, and how far it is."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from nurf.networks import Features
from nurf.solvers._rows import Loss, rows_per_sample
from nurf.training._deep_fit import DeepCycle
from nurf.training._fit import ShallowFit, Trial
from nurf.training._lanes import Lane
from nurf.training._sparse import SparseStep

LOGGER = logging.getLogger("nurf")
LONG = 60.0  # seconds of a fit that says beforehand how long it may take
OVERHEAD = 0.005  # seconds of an arm, however small
BLOCKS_INTERVAL = 5.0  # seconds between two lines while blocks are added up
LEFT_OUT = 4096  # rows that leave in turn
N_ALPHAS = 16
EIGENVECTORS = 8.0  # operations of a decomposition, in units of the third power of the number of neurons
PROCESS_OPERATIONS = 40.0  # of a fit of a process, in units of the third power of the number of rows
PROCESS_OVERHEAD = 2.0  # seconds of such a fit, whose scales are learned on few rows first
TRIED = 4.0, 8.0, 2.0  # arms at the first size for each that starts, and arms at those between and at the last


def watch_race(lanes: Sequence[Lane], verbose: int) -> RaceProgress | None:
    """Return what is called with each trial of a race, or None for silence; log how long the race may take, if long."""
    seconds = race_seconds(lanes)
    jet = lanes[0].task.jet
    words = f"{len(jet)} samples in {jet.n_features} dimensions, up to {lanes[0].sizes[-1]} neurons"
    if seconds > LONG:
        LOGGER.warning("this fit may take about %s: %s", _duration(seconds), words)
    if not verbose:
        return None
    _say(f"{words}, about {_duration(seconds)}")
    return RaceProgress()


def watch_trials(verbose: int, unit: str) -> RaceProgress | None:
    """Return what is called with each trial of a race whose sizes are numbers of ``unit``, or None for silence."""
    return RaceProgress(unit) if verbose else None


def watch_blocks(n_rows: int, problems: Sequence[tuple[Features, Loss]], verbose: int) -> Callable[[int], None] | None:
    """Return what is called with the number of rows whose normal equations are done, or None for silence.

    Log how long all of them may take on this machine alone, if long.
    """
    operations = sum(n_rows * features.n_neurons**2 * (1 + len(loss.orders)) for features, loss in problems)
    seconds = operations / _operations_per_second()
    if seconds > LONG:
        words = "adding up %d samples for %d neurons may take about %s on one machine"
        LOGGER.warning(words, n_rows, max(features.n_neurons for features, _ in problems), _duration(seconds))
    start, said = time.perf_counter(), [time.perf_counter()]

    def progress(done: int) -> None:
        now = time.perf_counter()
        if done == n_rows or now - said[0] > BLOCKS_INTERVAL:
            said[0] = now
            _say(f"{done} of {n_rows} samples added up, {_duration(now - start)}")

    return progress if verbose else None


def watch_path(verbose: int) -> Callable[[SparseStep], None] | None:
    """Return what is called with each step of the path of sparse training, or None for silence."""
    if not verbose:
        return None
    return lambda step: _say(
        f"alpha {step.alpha:.2g}: {step.n_neurons} neurons, error {step.error:.2g}, {_duration(step.seconds)}"
    )


def watch_cycles(verbose: int) -> Callable[[DeepCycle], None] | None:
    """Return what is called with each cycle of the training of a deep network, or None for silence."""
    if not verbose:
        return None
    return lambda cycle: _say(
        f"{cycle.n_steps} steps, {cycle.label}: loss {cycle.loss:.2g}, "
        + ("" if np.isnan(cycle.error) else f"error {cycle.error:.2g}, ")
        + _duration(cycle.seconds)
    )


def race_seconds(lanes: Sequence[Lane]) -> float:
    """Return about how long a race may take, from its sizes and the measured speed of a product of matrices.

    Fits with 1000 to 2400 neurons to 5000 samples with gradients took 0.7 to 2.4 times as long.
    """
    lane, n_arms = lanes[0], sum(1 for lane in lanes for _ in lane.space.first_settings())
    sizes = lane.sizes
    first, between, last = TRIED
    counts = [first * n_arms, *[between] * (len(sizes) - 2), last] if lane.space.has_choice else [1.0] * len(sizes)
    speed = _operations_per_second()
    return sum(
        count * (OVERHEAD * len(lane.splits(size)) + _operations(lane, size) / speed)
        for count, size in zip(counts[: len(sizes)], sizes, strict=True)
    )


def process_seconds(n_rows: int) -> float:
    """Return about how long it takes to learn the scales of a process with so many rows."""
    return PROCESS_OVERHEAD + PROCESS_OPERATIONS * n_rows**3 / _operations_per_second()


def _operations(lane: Lane, size: int) -> float:
    """Return about how many operations an arm takes: products of features, a decomposition, samples that leave."""
    total = 0.0
    for split in lane.splits(size):
        n, R = len(split.task.jet), rows_per_sample(split.task.jet, lane.space.losses[-1])
        leaving = 0 if lane.refits else min(n * R, LEFT_OUT)
        total += (
            size**2 * (3.0 * n + 2.0 * leaving + EIGENVECTORS * size) + 2.0 * N_ALPHAS * leaving * min(R, size) * size
        )
    return total


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
    """Writes a line for each arm that is the best so far at its size, and counts the others in a terminal."""

    def __init__(self, unit: str = "neurons") -> None:
        self._start, self._unit = time.perf_counter(), unit
        self._size, self._tried, self._best = 0, 0, np.inf

    def __call__(self, trial: Trial) -> None:
        """Take note of a trial."""
        if trial.size != self._size:
            self._size, self._tried, self._best = trial.size, 0, np.inf
        self._tried += 1
        counted = f"{trial.size} {self._unit}, arm {self._tried}, {_duration(time.perf_counter() - self._start)}"
        if trial.error < self._best:
            self._best = trial.error
            _say(f"{counted}: error {trial.error:.2g}, {trial.label} ({trial.lane})")
        elif sys.stderr.isatty():
            print(f"\r\033[Knurf: {counted}", end="", file=sys.stderr, flush=True)

    def done(self, fit: ShallowFit) -> None:
        """Write the result."""
        size, seconds = fit.network.features.n_neurons, _duration(time.perf_counter() - self._start)
        _say(f"{size} neurons after {seconds}: estimated error {fit.error:.2g} of the standard deviation of the values")


def _say(text: str) -> None:
    """Write a line to the standard error, over what is counted there."""
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
