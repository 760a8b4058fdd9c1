"""The race: successive halving over anything that can be grown to a size and estimates its error."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from nurf.solvers import Loss
from nurf.training._fit import Trial


class Arm(Protocol):
    """A candidate of a race. The race knows nothing else of it."""

    @property
    def key(self) -> Hashable:
        """What makes it different from other arms."""
        ...

    @property
    def lane(self) -> str:
        """The group that it belongs to. The best of each group gets a second chance."""
        ...

    @property
    def family(self) -> Hashable:
        """What arms that go on together must differ in. The rest can be changed later."""
        ...

    @property
    def kind(self) -> str:
        """The class of functions that it can represent. The best of each kind goes on while it is near the best."""
        ...

    @property
    def regularity(self) -> tuple[float, ...]:
        """A measure by which near-equals are decided: the larger, the better."""
        ...

    @property
    def error(self) -> float:
        """The estimated error, on the same terms for all arms."""
        ...

    @property
    def handicap(self) -> float:
        """A factor >= 1 of the error in comparisons: how much better the arm must look to be believed."""
        ...

    @property
    def loss(self) -> Loss:
        """How much derivatives count."""
        ...

    @property
    def seconds(self) -> float:
        """Time that the last growth took."""
        ...

    def grown(self, size: int) -> Self:
        """Return the arm at a size, with its error."""
        ...

    def variants(self) -> Iterable[Self]:
        """Return arms of the same size that differ in one thing, not grown yet."""
        ...

    def refits(self) -> Iterable[Self]:
        """Return those of the variants that cost little, not grown yet."""
        ...

    def branches(self, many: bool) -> Iterable[Self]:
        """Return ways to go on to a larger size, not grown yet: many, or the most promising only."""
        ...


A = TypeVar("A", bound=Arm)


@dataclass(frozen=True)
class Rung:
    """The arms that are raced at one size.

    Parameters
    ----------
    branch : bool
        Whether arms go on to this size in many ways, or in the most promising only.
    breadths : tuple of int
        In each round, the variants of so many of the best arms of each lane are tried, and those of the best arm of
        each other kind that is within ``factor`` of them.
    refits : int
        The cheap variants of so many of the best arms of each lane are tried at the end, and again for new best ones.
    keep : int
        At most so many arms of each lane, of different families, go on to the next size, ...
    factor : float
        ... those whose error is within this factor of the smallest of the lane. If all are of one kind, the best of
        each other kind within the factor goes on, too: it may be ahead with more neurons.
    rival : float
        A lane takes part in further rounds and sizes if its smallest error is within this factor of that of the leading
        lane, times the handicap of the latter.
    """

    branch: bool = False
    breadths: tuple[int, ...] = ()
    refits: int = 0
    keep: int = 1
    factor: float = 1.0
    rival: float = 1.0


@dataclass(frozen=True)
class Outcome(Generic[A]):
    """The winner of each size, that of each lane at each size, and all arms that were tried on the way."""

    winners: tuple[A, ...]
    lane_winners: tuple[tuple[A, ...], ...]
    trials: tuple[Trial, ...]

    @property
    def best(self) -> A:
        """The winner with the smallest error."""
        return min(self.winners, key=score)


def race(
    arms: Sequence[A],
    sizes: Sequence[int],
    rungs: Sequence[Rung],
    *,
    improvement: float,
    margin: float,
    exact: float = 0.0,
    watch: Callable[[Trial], None] | None = None,
) -> Outcome[A]:
    """Return the arms of the smallest estimated error, by successive halving.

    At each size all arms are grown to it, the variants of the best ones are tried too, and the best of all go on.

    Parameters
    ----------
    arms : sequence of Arm
    sizes : increasing sequence of int
    rungs : sequence of Rung
        One for each size.
    improvement : float
        The race ends if a size does not lower the smallest error by this share.
    margin : float
        Errors that differ by a smaller share are equal; the most regular arm of equal ones wins.
    exact : float, default 0
        The race ends if an error is not larger than this.
    watch : callable, optional
        Called with each trial, as soon as it is there.
    """
    trials: list[Trial] = []
    winners: list[A] = []
    lane_winners: list[tuple[A, ...]] = []
    going: Sequence[A] = arms
    for size, rung in zip(sizes, rungs, strict=True):
        pool: dict[Hashable, A] = {}
        if winners:
            going = [branch for arm in going for branch in arm.branches(rung.branch)]
        _grow(going, size, pool, trials, watch)
        for breadth in rung.breadths:
            lanes = _lanes(pool.values(), rung.rival)
            leaders = [arm for lane in lanes for arm in _leaders(lane, breadth, rung.factor)]
            _grow([variant for arm in leaders for variant in arm.variants()], size, pool, trials, watch)
        for _ in range(2):
            leaders = [arm for lane in _lanes(pool.values(), rung.rival) for arm in lane[: rung.refits]]
            _grow([variant for arm in leaders for variant in arm.refits()], size, pool, trials, watch)
        before = min(map(score, winners), default=np.inf)
        winners.append(most_regular(list(pool.values()), margin))
        lane_winners.append(tuple(most_regular(lane, margin) for lane in _lanes(pool.values(), np.inf)))
        if winners[-1].error <= exact or not score(winners[-1]) < (1 - improvement) * before:
            break
        going = _survivors(pool.values(), rung)
    return Outcome(tuple(winners), tuple(lane_winners), tuple(trials))


def most_regular(arms: Sequence[A], margin: float) -> A:
    """Return the most regular of the arms whose errors are within ``margin`` of the smallest."""
    smallest = min(map(score, arms))
    near = [arm for arm in arms if score(arm) <= (1 + margin) * smallest]
    return max(near, key=lambda arm: arm.regularity)


def score(arm: Arm) -> float:
    """Return the error of an arm with its handicap."""
    return arm.error * arm.handicap


def _grow(
    arms: Iterable[A],
    size: int,
    pool: dict[Hashable, A],
    trials: list[Trial],
    watch: Callable[[Trial], None] | None,
) -> None:
    """Grow the arms that are not in the pool yet, and put them there."""
    for arm in arms:
        grown = arm.grown(size) if arm.key not in pool else None
        if grown is not None:
            pool[arm.key] = grown
            trials.append(Trial(str(grown), size, grown.error, grown.seconds, grown.lane, grown.loss))
            if watch is not None:
                watch(trials[-1])


def _lanes(arms: Iterable[A], rival: float) -> list[list[A]]:
    """Return the arms of each lane that is not too far behind, best first."""
    lanes: dict[str, list[A]] = {}
    for arm in sorted(arms, key=score):
        lanes.setdefault(arm.lane, []).append(arm)
    leader = min((lane[0] for lane in lanes.values()), key=score)
    limit = rival * leader.handicap * score(leader) if np.isfinite(rival) else np.inf  # the error may be zero
    return [lane for lane in lanes.values() if score(lane[0]) <= limit]


def _survivors(arms: Iterable[A], rung: Rung) -> list[A]:
    """Return the arms that go on: the best of their families."""
    going: list[A] = []
    for lane in _lanes(arms, rung.rival):
        best_of_each = {arm.family: arm for arm in reversed(lane) if score(arm) <= rung.factor * score(lane[0])}
        going += _leaders(sorted(best_of_each.values(), key=score), rung.keep, rung.factor)
    return going


def _leaders(lane: Sequence[A], n: int, factor: float) -> list[A]:
    """Return the first ``n`` arms of a lane, and the best of each other kind within ``factor`` of the first arm."""
    leaders = list(lane[:n])
    for arm in lane[n:]:
        if score(arm) <= factor * score(lane[0]) and arm.kind not in {leader.kind for leader in leaders}:
            leaders.append(arm)
    return leaders


def finite(error: float) -> float:
    """Return the error, or infinity if it is not a number: such an arm loses."""
    return error if np.isfinite(error) else float("inf")
