"""The race, over arms whose errors are known functions of their size."""

from dataclasses import dataclass, replace

import pytest

from nurf.solvers import VALUES_ONLY
from nurf.engines import Rung, race


@dataclass(frozen=True)
class Known:
    """An arm with the error ``level * size^-rate``; its variants have other levels, its branches other rates."""

    name: str
    level: float
    rate: float = 0.0
    lane: str = "one"
    kind: str = "any"
    handicap: float = 1.0
    width: float = 1.0
    levels: tuple[float, ...] = ()
    cheap: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()
    size: int = 0
    log: list | None = None
    loss = VALUES_ONLY
    seconds = 0.5

    @property
    def key(self):
        return (self.name, self.level, self.rate)

    @property
    def family(self):
        return self.name

    @property
    def regularity(self):
        return (self.width,)

    @property
    def error(self):
        return self.level * self.size**-self.rate

    def __str__(self):
        return f"{self.name} {self.level:g}"

    def grown(self, size):
        if self.log is not None:
            self.log.append((self.name, size))
        return replace(self, size=size)

    def variants(self):
        return [replace(self, level=level, size=0) for level in self.levels]

    def refits(self):
        return [replace(self, level=level, size=0) for level in self.cheap]

    def branches(self, many):
        yield replace(self, size=0)
        if many:
            yield from (replace(self, rate=rate, size=0) for rate in self.rates)


def run(arms, sizes=(10, 100, 1000), rungs=None, improvement=-1e9, margin=0.0, exact=0.0):
    rungs = [Rung(keep=2, factor=10.0, rival=10.0)] * len(sizes) if rungs is None else rungs
    return race(arms, sizes, rungs, improvement=improvement, margin=margin, exact=exact)


def test_the_smallest_error_wins():
    arms = [Known(name, level) for name, level in (("a", 3.0), ("b", 1.0), ("c", 2.0))]
    assert run(arms).best.name == "b"


def test_a_late_starter_wins_if_it_survives():
    """The error of the one falls with the size: it is ahead at the last size, not at the first."""
    arms = [Known("early", 1.0), Known("late", 4.0, rate=0.5)]
    assert run(arms).best.name == "late"
    assert run(arms, rungs=[Rung(keep=1, factor=10.0)] * 3).best.name == "early"


def test_the_best_of_each_kind_goes_on_while_it_is_near():
    """Two of one kind lead at first; that of another kind wins at the last size, unless it is too far behind."""
    late = Known("late", 6.0, rate=0.5, kind="other")
    arms = [Known("a", 1.0), Known("b", 1.1), late]
    rungs = [Rung(keep=2, factor=2.0), Rung(), Rung()]
    assert run(arms, rungs=rungs).best.name == "late"
    assert run([*arms[:2], replace(late, kind="any")], rungs=rungs).best.name == "a"
    assert run([*arms[:2], replace(late, level=7.0)], rungs=rungs).best.name == "a"


def test_variants_of_the_best_of_each_kind_are_tried():
    other = Known("other", 1.5, kind="other", levels=(0.1,))
    arms = [Known("a", 1.0), Known("b", 1.2), other]
    rungs = [Rung(breadths=(1,), factor=2.0)]
    assert run(arms, sizes=(10,), rungs=rungs).best.level == 0.1
    assert run([*arms[:2], replace(other, kind="any")], sizes=(10,), rungs=rungs).best.level == 1.0


def test_the_winner_of_each_lane_is_known_at_each_size():
    arms = [Known("a", 1.0), Known("b", 2.0), Known("c", 3.0, lane="two"), Known("d", 4.0, lane="two")]
    outcome = run(arms, sizes=(10, 100), rungs=[Rung(keep=2, factor=5.0, rival=10.0)] * 2)
    assert [[arm.name for arm in of_size] for of_size in outcome.lane_winners] == [["a", "c"], ["a", "c"]]


def test_arms_that_go_on_are_of_different_families():
    """Two of one family lead at first; the third arm goes on, and wins at the last size."""
    arms = [Known("a", 1.0), Known("a", 1.1), Known("late", 6.0, rate=0.5)]
    rungs = [Rung(keep=2, factor=2.0), Rung(), Rung()]
    assert run(arms, rungs=rungs).best.name == "late"


def test_few_go_on():
    log = []
    arms = [Known(name, level, log=log) for name, level in (("a", 1.0), ("b", 1.5), ("c", 1.9), ("d", 9.0))]
    run(arms, rungs=[Rung(keep=3, factor=1.8), Rung(keep=1), Rung()])
    assert log == [("a", 10), ("b", 10), ("c", 10), ("d", 10), ("a", 100), ("b", 100), ("a", 1000)]


def test_variants_of_the_best_are_tried_once():
    log = []
    arms = [Known("a", 1.0, levels=(1.0, 0.5, 4.0), log=log), Known("b", 2.0, levels=(0.1,), log=log)]
    outcome = run(arms, sizes=(10,), rungs=[Rung(breadths=(1, 1))])
    assert (outcome.best.name, outcome.best.level) == ("a", 0.5)
    assert log == [("a", 10), ("b", 10), ("a", 10), ("a", 10)]  # not the level 1 again, and nothing of b
    assert run(arms, sizes=(10,), rungs=[Rung(breadths=(2,))]).best.level == 0.1


def test_cheap_variants_are_tried_for_the_best_and_for_a_new_best():
    arms = [Known("a", 1.0, cheap=(0.9,)), Known("b", 0.95, cheap=(0.8, 2.0))]
    outcome = run(arms, sizes=(10,), rungs=[Rung(refits=1)])
    assert (outcome.best.name, outcome.best.level) == ("b", 0.8)
    assert len(outcome.attempts) == 4


def test_branches_where_a_rung_asks_for_them():
    arm = Known("a", 1.0, rates=(0.5,))
    assert run([arm], rungs=[Rung(), Rung(), Rung()]).best.rate == 0.0
    assert run([arm], rungs=[Rung(), Rung(branch=True), Rung()]).best.rate == 0.5


class TestLanes:
    def test_a_rival_gets_a_second_chance(self):
        arms = [Known("a", 1.0), Known("b", 1.1), Known("c", 3.0, rate=0.3, lane="two")]
        for rival, winner in ((2.0, "c"), (1.2, "a")):
            assert run(arms, rungs=[Rung(keep=2, factor=5.0, rival=rival)] * 3).best.name == winner

    def test_variants_of_a_lane_that_is_far_behind_are_not_tried(self):
        arms = [Known("a", 1.0), Known("b", 5.0, lane="two", levels=(0.1,))]
        for rival, winner in ((6.0, "b"), (4.0, "a")):
            assert run(arms, sizes=(10,), rungs=[Rung(breadths=(1,), rival=rival)]).best.name == winner

    def test_a_handicap_must_be_overcome(self):
        for level, winner in ((0.8, "safe"), (0.6, "bold")):
            arms = [Known("bold", level, lane="two", handicap=1.5), Known("safe", 1.0)]
            outcome = run(arms)
            assert outcome.best.name == winner
            assert outcome.best.error == {"safe": 1.0, "bold": level}[winner]  # the handicap is no part of the error


def test_the_most_regular_of_near_equals_wins():
    arms = [Known("a", 1.0, width=1.0), Known("b", 1.015, width=2.0), Known("c", 1.03, width=3.0)]
    assert run(arms, sizes=(10,), rungs=[Rung()], margin=0.02).best.name == "b"
    assert run(arms, sizes=(10,), rungs=[Rung()], margin=0.0).best.name == "a"


def test_ends_if_a_size_does_not_help():
    log = []
    run([Known("a", 1.0, rate=0.001, log=log)], sizes=(10, 100, 1000, 10_000), rungs=[Rung()] * 4, improvement=0.05)
    assert log == [("a", 10), ("a", 100)]


def test_ends_if_an_arm_is_exact():
    log = []
    run([Known("a", 1.0, rate=3.0, log=log)], sizes=(10, 100, 1000), rungs=[Rung()] * 3, exact=2e-6)
    assert log == [("a", 10), ("a", 100)]


def test_a_smaller_network_may_be_the_best():
    assert run([Known("a", 1.0, rate=-0.1)]).best.size == 10


def test_trials_tell_everything():
    arms = [Known("a", 1.0, rate=0.5), Known("b", 2.0, lane="two")]
    trials = run(arms, sizes=(4, 16), rungs=[Rung(keep=1), Rung()]).attempts
    assert [(t.label, t.size, t.error, t.seconds, t.lane) for t in trials] == [
        ("a 1", 4, 0.5, 0.5, "one"),
        ("b 2", 4, 2.0, 0.5, "two"),
        ("a 1", 16, 0.25, 0.5, "one"),
    ]


def test_a_watcher_sees_each_trial_when_it_is_there():
    seen = []
    arms = [Known("a", 1.0, rate=0.5, levels=(0.5,)), Known("b", 2.0, cheap=(1.5,))]
    outcome = race(arms, (4, 16), [Rung(breadths=(2,), refits=2)] * 2, improvement=0.0, margin=0.0, watch=seen.append)
    assert tuple(seen) == outcome.attempts
    assert len(seen) == 4


def test_sizes_and_rungs_must_match():
    with pytest.raises(ValueError, match="shorter"):
        run([Known("a", 1.0)], sizes=(10, 20), rungs=[Rung()])
