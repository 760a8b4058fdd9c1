"""The race: candidates of all engines with more and more effort, until the end or a deadline."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, takewhile

import numpy as np

from nurf._types import Array
from nurf.choosing._clock import NO_LIMIT, Clock, TimeUpError
from nurf.choosing._engine import Attempt, Effort, Engine, Judged
from nurf.choosing._policy import Policy


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a race.

    Parameters
    ----------
    best : dict
        For each engine, the best candidate of each effort, in the order of the efforts.
    judged : tuple of Judged
        All candidates that were judged.
    attempts : tuple of Attempt
        The records of these candidates.
    seconds : tuple of float
        The time that the candidates of each engine took.
    failures : dict
        For each engine that failed, its error.
    finished : bool
        Whether the schedule came to its end before the deadline.
    """

    best: dict[int, list[Judged]]
    judged: tuple[Judged, ...]
    attempts: tuple[Attempt, ...]
    seconds: tuple[float, ...]
    failures: dict[int, Exception]
    finished: bool


@dataclass(eq=False)
class _Standing:
    """An engine in the race: its candidates for the next size, of the present size, and the best of each size."""

    engine: Engine
    kept: list[Judged] = field(default_factory=list)
    is_done: bool = False
    pool: dict[Hashable, Judged] = field(default_factory=dict)
    size: int = 0
    best: list[Judged] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ordered(self) -> list[Judged]:
        return sorted(self.pool.values(), key=lambda judged: judged.error)


@dataclass(frozen=True, eq=False)
class _Before:
    """The results of the other engines before a step: the smallest error, and the linear maps that they learned."""

    error: float
    metrics: tuple[Array, ...]

    @classmethod
    def of(cls, standing: _Standing, standings: Sequence[_Standing]) -> _Before:
        """Return the results that one engine may use; maps come from engines with the same data and transformation."""
        error = min((each.error for other in standings for each in other.best), default=np.inf)
        others = [each for each in standings if each is not standing and _same_data(each, standing)]
        metrics = (each.best[-1].metric for each in others if each.best)
        return cls(error, tuple(metric for metric in metrics if metric is not None))


def _same_data(one: _Standing, other: _Standing) -> bool:
    """Return whether two engines are fitted to the same data with the same transformation."""
    return (one.engine.data, one.engine.transform) == (other.engine.data, other.engine.transform)


def race(
    engines: Sequence[Engine],
    policy: Policy,
    watch: Callable[[Attempt], None] | None = None,
    clock: Clock = NO_LIMIT,
    tolerated: tuple[type[Exception], ...] = (),
) -> Outcome:
    """Return the best candidates of all engines, by successive halving over the efforts of a schedule.

    The schedule depends on the data alone: every engine makes its first effort before any makes its second. Engines
    learn from the results of the previous step, so that the order of the engines in a step does not matter. Time only
    decides where the schedule is cut: engines check the ``clock``, which they share, and the race ends with the
    candidates judged so far. The clock is active once there is a first candidate. An engine with expensive efforts
    stops if it is far behind. A transformation whose errors are far larger (``far_transforms``) is dropped with all its
    engines. An engine that fails with one of the ``tolerated`` errors makes no further effort.
    """
    standings = [_Standing(engine) for engine in engines]
    everything: list[Judged] = []
    attempts: list[Attempt] = []
    failures: dict[int, Exception] = {}
    finished = True

    for step in takewhile(lambda step: any(_has_more(engine, step) for engine in engines), count()):
        if not finished or _is_exact(standings, policy.exact):
            break
        far = far_transforms(errors_by_transform(each for other in standings for each in other.best), policy.factor)
        places = [
            place
            for place, standing in enumerate(standings)
            if not (standing.is_done or place in failures or standing.engine.transform in far)
            and standing.engine.first_step <= step
            and _has_more(standing.engine, step)
        ]
        before = {place: _Before.of(standings[place], standings) for place in places}
        for place in places:
            standing, engine = standings[place], engines[place]
            effort = engine.efforts[step - engine.first_step]
            try:
                for candidate, smaller in _proposed(standing, effort, policy, before[place]):
                    judged = standing.pool[candidate] = engine.judge(candidate, effort.size, smaller)
                    standing.seconds += judged.seconds
                    everything.append(judged)
                    record = engine.record(judged)
                    transformed = f"{record.data}, {engine.transform}" if engine.transform else record.data
                    attempts.append(replace(record, data=transformed))
                    clock.start()
                    if watch is not None:
                        watch(attempts[-1])
            except TimeUpError:
                finished = False
                break
            except tolerated as failure:
                failures[place] = failure
    for standing in standings:
        if standing.pool:
            _conclude(standing)
    best = {place: standing.best for place, standing in enumerate(standings) if standing.best}
    seconds = tuple(standing.seconds for standing in standings)
    return Outcome(best, tuple(everything), tuple(attempts), seconds, failures, finished)


def errors_by_transform(judged: Iterable[Judged]) -> dict[str, float]:
    """Return the smallest error with each transformation, in the order of the candidates."""
    errors: dict[str, float] = {}
    for each in judged:
        errors[each.engine.transform] = min(each.error, errors.get(each.engine.transform, np.inf))
    return errors


def far_transforms(errors: dict[str, float], factor: float) -> set[str]:
    """Return the transformations whose smallest error is more than ``factor`` times the smallest error of all."""
    return {transform for transform, error in errors.items() if error > factor * min(errors.values())}


def _has_more(engine: Engine, step: int) -> bool:
    """Return whether an engine has an effort at a step or a later one."""
    return step < engine.first_step or step < engine.first_step + len(engine.efforts)


def _proposed(
    standing: _Standing, effort: Effort, policy: Policy, before: _Before
) -> Iterator[tuple[Hashable, Judged | None]]:
    """Yield the candidates of an effort, each with its result of a smaller effort, and keep a few for the next.

    Every candidate is judged before the next is yielded: variants follow of the best so far.
    """
    limit = effort.within * before.error
    if standing.best and not standing.best[-1].error <= limit:
        standing.is_done = True
        return
    engine, going = standing.engine, list[tuple[Hashable, Judged | None]]()
    if not standing.size:
        going += [(candidate, None) for candidate in engine.candidates()]
    elif effort.size != standing.size:
        going += [(candidate, each) for each in standing.kept for candidate in engine.onwards(each, effort.many)]
    if effort.size != standing.size:
        standing.pool, standing.size = {}, effort.size
    for metric in before.metrics:
        going += [(candidate, None) for candidate in engine.informed(metric, effort.size)]

    def unknown(candidates: Sequence[tuple[Hashable, Judged | None]]) -> Iterator[tuple[Hashable, Judged | None]]:
        for candidate, smaller in candidates:
            behind = standing.pool and not min(each.error for each in standing.pool.values()) <= limit
            if candidate not in standing.pool and not behind:
                yield candidate, smaller

    yield from unknown(going)
    for breadth in effort.rounds:
        leaders = _leaders(standing.ordered, breadth, policy.factor, engine)
        yield from unknown([(variant, None) for leader in leaders for variant in engine.variants(leader)])
    for _ in range(2 if effort.cheap else 0):
        leaders = standing.ordered[: effort.cheap]
        yield from unknown([(variant, None) for leader in leaders for variant in engine.cheap(leader)])
    smaller = min((each.error for each in standing.best if each.size < effort.size), default=np.inf)
    _conclude(standing)
    standing.is_done = not standing.best[-1].error <= (1 - effort.improvement) * smaller
    families = {engine.family(each.candidate): each for each in reversed(standing.ordered)}
    near = [each for each in families.values() if each.error <= policy.factor * standing.ordered[0].error]
    standing.kept = _leaders(sorted(near, key=lambda each: each.error), effort.keep, policy.factor, engine)


def _conclude(standing: _Standing) -> None:
    """Note the best candidate of the present effort."""
    best = standing.ordered[0]
    if standing.best and standing.best[-1].size == best.size:
        standing.best.pop()
    standing.best.append(best)


def _is_exact(standings: Sequence[_Standing], exact: float) -> bool:
    """Return whether an error is at the level of rounding, where more effort does not help."""
    return any(standing.best and standing.best[-1].error <= exact for standing in standings)


def _leaders(ordered: Sequence[Judged], n: int, factor: float, engine: Engine) -> list[Judged]:
    """Return the first ``n`` candidates, and the best candidate of each other kind within ``factor`` of the first."""
    leaders = list(ordered[:n])
    for each in ordered[n:]:
        kinds = {engine.kind(leader.candidate) for leader in leaders}
        if each.error <= factor * ordered[0].error and engine.kind(each.candidate) not in kinds:
            leaders.append(each)
    return leaders
