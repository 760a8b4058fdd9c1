"""Units of work, run in parallel and stored as soon as they are finished."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from joblib import Parallel, delayed, parallel_config
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from reproduction.results import Result
from reproduction.store import CorruptError, Store, Unit

Say = Callable[[str], None]


def run_units(units: Sequence[Unit], store: Store, *, jobs: int = 1, say: Say = print) -> dict[Unit, Result]:
    """Return the results of all units: stored ones, and the others computed, the longest first.

    Parameters
    ----------
    units : sequence of Unit
    store : Store
        Keeps each result as soon as it is finished, so that an interrupted run continues where it stopped.
    jobs : int, default 1
        Number of processes. Each computes with one thread, so that results depend neither on their number nor on the
        order.
    say : callable
        Takes the messages. If the error stream is a terminal, a progress bar is shown there.
    """
    results: dict[Unit, Result] = {}
    for unit in dict.fromkeys(units):
        try:
            found = store.load(unit)
        except CorruptError as error:
            say(f"{error}: computing it again")
            found = None
        if found is not None:
            results[unit] = found
    missing = sorted((unit for unit in dict.fromkeys(units) if unit not in results), key=lambda unit: -unit.effort)
    if results:
        say(f"{len(results)} of {len(results) + len(missing)} results are stored already")
    if missing:
        with _progress(missing, jobs, say) as advance:
            for unit, result in _computed(missing, store, jobs):
                results[unit] = result
                advance(unit)
    return {unit: results[unit] for unit in units}


def _computed(units: Sequence[Unit], store: Store, jobs: int) -> Iterator[tuple[Unit, Result]]:
    if jobs == 1:
        with threadpool_limits(1):
            for unit in units:
                yield _work(unit, store)
        return
    with parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
        yield from Parallel(return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1)(
            delayed(_work)(unit, store) for unit in units
        )


def _work(unit: Unit, store: Store) -> tuple[Unit, Result]:
    """Compute and store a unit; the worker stores it, so that nothing is lost if the main process ends."""
    result = unit.run()
    store.save(unit, result)
    return unit, result


@contextmanager
def _progress(units: Sequence[Unit], jobs: int, say: Say) -> Iterator[Callable[[Unit], None]]:
    """Yield a function to call after each unit: it moves a bar, or reports every quarter of the run."""
    total = sum(unit.effort for unit in units)
    if sys.stderr.isatty():
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("left:"))
        with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as display:
            task = display.add_task(f"{len(units)} fits", total=total)
            yield lambda unit: display.update(
                task, advance=unit.effort, description=f"{unit.experiment.case.key}, {unit.method}"
            )
        return
    say(f"{len(units)} to compute in {jobs} process{'es' if jobs > 1 else ''}")
    done, quarters = 0.0, 0

    def advance(unit: Unit) -> None:
        nonlocal done, quarters
        done += unit.effort
        now = int(4 * done / total + 1e-9)
        if quarters < now < 4:
            say(f"about {25 * now}% done")
        quarters = now

    yield advance
