"""Results of runs, from the arguments of ``tell``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nurf._types import Array, Index
from nurf._validation import as_finite_or_nan, as_floats
from nurf.data import partial_owners
from nurf.studies._space import Space
from nurf.studies._store import ASKED, DONE, FAILED, Run, as_array

NO_VALUE = "no value"


@dataclass(frozen=True, eq=False)
class Results:
    """Runs that ended.

    Parameters
    ----------
    runs : list of Run
    numbers : array of shape (n,) or None
        The numbers of the runs, if the inputs have the index of ``ask``.
    outputs : tuple of str or None
        The names of the outputs, if the values have names.
    """

    runs: list[Run]
    numbers: Index | None
    outputs: tuple[str, ...] | None


def results(space: Space, X: Any, y: Any, gradients: Any, cost: Any, message: Any) -> Results:
    """Return the arguments of ``tell`` as runs."""
    points = space.points(X)
    values, outputs = _values(y, len(points), X)
    slopes = None if gradients is None else _slopes(gradients, values.shape, space, X)
    costs = np.full(len(points), np.nan) if cost is None else np.broadcast_to(as_floats("cost", cost), len(points))
    texts = [message] * len(points) if message is None or isinstance(message, str) else list(message)
    if len(texts) != len(points):
        raise ValueError(f"`message` must be one text for each of {len(points)} runs, got {len(texts)}")
    runs = []
    for i, (x, value) in enumerate(zip(points, values, strict=True)):
        failed = not np.all(np.isfinite(value))
        run = Run(
            0, tuple(map(float, x)), state=FAILED if failed else DONE, y=None if failed else tuple(map(float, value))
        )
        if failed:
            run = replace(run, message=texts[i] or NO_VALUE)
        elif slopes is not None and not np.all(np.isnan(slopes[i])):
            run = replace(run, gradients=tuple(tuple(map(float, row)) for row in slopes[i]))
        runs.append(run if np.isnan(costs[i]) else replace(run, cost=float(costs[i])))
    index = getattr(X, "index", None)
    numbers = np.asarray(index) if getattr(index, "name", None) == "run" else None
    return Results(runs, numbers, outputs)


def matched(found: Results, before: Sequence[Run], space: Space) -> list[Run]:
    """Return results with the numbers of the runs that they end, 0 for runs that were not asked.

    A result that was told before is left out, so that telling twice does no harm.
    """
    known = as_array(before, "x").reshape(-1, space.dimension)
    open_ = [run.state == ASKED for run in before]
    ended = []
    for i, run in enumerate(found.runs):
        same = np.flatnonzero(space.same(np.array([run.x]), known)[0]).tolist()
        if found.numbers is not None:
            own = [j for j in same if before[j].run == found.numbers[i]]
            if own and not open_[own[0]] and _repeats(run, before[own[0]]):
                continue
            same = [*own, *(j for j in same if j not in own)]
        waiting = [j for j in same if open_[j]]
        if not waiting:
            if not any(_repeats(run, before[j]) for j in same):
                ended.append(run)
            continue
        open_[waiting[0]] = False
        ended.append(replace(run, run=before[waiting[0]].run))
    return ended


def _repeats(new: Run, old: Run) -> bool:
    """Return whether a result at the same inputs says nothing new."""
    if (old.state, old.y) != (new.state, new.y):
        return False
    if new.gradients is None or old.gradients is None:
        return new.gradients is None
    return np.array_equal(old.gradients, new.gradients, equal_nan=True)


def _values(y: Any, n: int, X: Any) -> tuple[Array, tuple[str, ...] | None]:
    """Return values (n, k), and the names of the outputs, if any."""
    y = _ordered("y", y, X)
    names = tuple(map(str, y.columns)) if hasattr(y, "columns") else None
    if names is None and isinstance(getattr(y, "name", None), str):
        names = (y.name,)
    values = as_floats("y", y)
    if values.ndim == 0:
        values = values[None]
    if values.ndim not in (1, 2) or len(values) != n:
        raise ValueError(f"`y` must have the shape ({n},) or ({n}, k) for {n} runs, got {values.shape}")
    return values.reshape(n, values[:1].size or 1), names


def _slopes(gradients: Any, shape: tuple[int, ...], space: Space, X: Any) -> Array:
    """Return gradients (n, k, d) with respect to the inputs that vary."""
    gradients, free = _ordered("gradients", gradients, X), list(space.free.names)
    if hasattr(gradients, "columns"):
        owners = partial_owners(list(gradients.columns), list(space.names))
        missing = [name for name in free if name not in owners]
        if missing:
            raise ValueError(f"`gradients` must have a column for each input that varies, got none for {missing}")
        gradients = gradients[[gradients.columns[owners.index(name)] for name in free]]
    array, (n, k) = as_finite_or_nan("gradients", gradients), shape
    for d, chosen in (len(free), slice(None)), (len(space.names), [name in free for name in space.names]):
        if array.shape in ((n, k, d), *(((n, d),) if k == 1 else ())):
            return np.asarray(array.reshape(n, k, d)[:, :, chosen])
    raise ValueError(f"`gradients` must have the shape {(n, k, len(free))}, got {array.shape}")


def _ordered(name: str, table: Any, X: Any) -> Any:
    """Return the rows of a frame or series, in the order of the index of ``X`` if both have an index."""
    index: Any = getattr(X, "index", None)
    own: Any = getattr(table, "index", None)
    if not (hasattr(index, "equals") and hasattr(own, "equals")) or index.equals(own):
        return table
    if len(own) != len(index) or not (own.is_unique and index.isin(own).all()):
        raise ValueError(f"`{name}` must have the index of `X`, in any order: pass an array to match rows by position")
    return table.loc[index]
