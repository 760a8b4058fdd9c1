"""The race and the choice after it, over candidates whose errors are known functions of their size."""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nurf.choosing import (
    NO_LIMIT,
    Attempt,
    Clock,
    Effort,
    Evidence,
    Judged,
    NothingFittedError,
    Policy,
    TimeUpError,
    decide,
    race,
)

PLAIN = Policy(exact=0.0, factor=10.0)


@dataclass(frozen=True)
class Option:
    """A candidate with the error ``level * size^-rate``."""

    name: str
    level: float
    rate: float = 0.0
    kind: str = "any"

    def __str__(self):
        return f"{self.name} {self.level:g}"


@dataclass(frozen=True, eq=False)
class Known:
    """An engine of such candidates; their variants have other levels, and those that go on other rates.

    Errors are ``truth`` times larger if they are confirmed. ``log`` has the names and sizes of all candidates that were
    judged, by all engines that share it. ``limit`` is their number after which the time is up, and ``broken`` are names
    of candidates that raise an error.
    """

    options: tuple[Option, ...]
    efforts: tuple[Effort, ...] = (Effort(10), Effort(100), Effort(1000))
    first_step: int = 0
    name: str = "known"
    data: str = "all data"
    ignores_derivatives: bool = False
    transform: str = ""
    back: Any = None
    others: dict = field(default_factory=dict)
    little: dict = field(default_factory=dict)
    rates: tuple[float, ...] = ()
    learns: Any = None
    learned: tuple[Option, ...] = ()
    broken: tuple[str, ...] = ()
    truth: float = 1.0
    log: list = field(default_factory=list)
    limit: float = np.inf
    clock: Clock = NO_LIMIT

    def candidates(self):
        return self.options

    def variants(self, judged):
        return [replace(judged.candidate, level=level) for level in self.others.get(judged.candidate.name, ())]

    def cheap(self, judged):
        return [replace(judged.candidate, level=level) for level in self.little.get(judged.candidate.name, ())]

    def onwards(self, judged, many):
        yield judged.candidate
        if many:
            yield from (replace(judged.candidate, rate=rate) for rate in self.rates)

    def informed(self, metric, size):
        return [replace(each, level=each.level * metric[0, 0]) for each in self.learned if size == self.efforts[0].size]

    def family(self, candidate):
        return candidate.name

    def kind(self, candidate):
        return candidate.kind

    def judge(self, candidate, size, before=None):
        self.clock.check()
        if len(self.log) >= self.limit:
            raise TimeUpError
        if candidate.name in self.broken:
            raise ValueError(f"{candidate.name} is broken")
        self.log.append((candidate.name, size))
        assert before is None or before.size < size
        error = candidate.level * float(size) ** -candidate.rate
        return Judged(self, candidate, size, Evidence(np.full((9, 1), error), np.ones(9)), 0.5, before, self.learns)

    def confirmed(self, judged):
        return replace(judged, own=Evidence(self.truth * judged.own.errors, judged.own.weights))

    def record(self, judged):
        return Attempt(self.name, self.data, str(judged.candidate), judged.size, judged.error, judged.seconds)

    def fit(self, judged, given):
        raise NotImplementedError


def options(**levels):
    return tuple(Option(name, level) for name, level in levels.items())


def best(outcome, place=0):
    """The best candidate of an engine, whatever its size."""
    return min(outcome.best[place], key=lambda judged: judged.error).candidate


class TestSchedule:
    def test_every_engine_makes_its_first_effort_before_any_makes_its_second(self):
        log = []
        engines = [Known((Option(name, 1.0),), log=log) for name in "abc"]
        race(engines, PLAIN)
        assert log == [(name, size) for size in (10, 100, 1000) for name in "abc"]

    def test_engines_learn_what_was_known_before_the_step(self):
        """The second engine learns from the first at the next step, whichever of both runs first."""
        learner = Known(options(a=1.0), (Effort(10), Effort(10)), learned=options(d=1.0))
        teacher = Known(options(b=1.0), (Effort(10),), learns=np.full((1, 1), 0.5))
        for engines in ([teacher, learner], [learner, teacher]):
            learner.log.clear()
            race(engines, PLAIN)
            assert [name for name, _ in learner.log] == ["a", "d"]

    def test_engines_begin_at_their_first_step(self):
        log = []
        late = Known((Option("late", 1.0),), (Effort(7), Effort(8)), first_step=2, log=log)
        race([late, Known((Option("early", 1.0),), log=log)], PLAIN)
        assert log == [("early", 10), ("early", 100), ("late", 7), ("early", 1000), ("late", 8)]

    def test_nothing_of_a_late_engine_is_asked_for_before_its_turn(self):
        """Its efforts may cost time: with the time up, the race has what came before."""

        class Costly:
            transform = ""
            first_step, data = 5, "all data"

            @property
            def efforts(self):
                raise AssertionError("asked too early")

        outcome = race([Known(options(a=1.0, b=2.0), limit=1), Costly()], PLAIN)
        assert (best(outcome).name, outcome.finished) == ("a", False)

    def test_attempts_and_watchers_see_all_candidates_in_order(self):
        seen = []
        engines = [
            Known((Option("a", 1.0, rate=0.5),), (Effort(4), Effort(16)), name="one"),
            Known(options(b=2.0), (Effort(3),), name="two", data="values alone"),
        ]
        outcome = race(engines, PLAIN, seen.append)
        assert seen == [
            Attempt("one", "all data", "a 1", 4, pytest.approx(0.5), 0.5),
            Attempt("two", "values alone", "b 2", 3, pytest.approx(2.0), 0.5),
            Attempt("one", "all data", "a 1", 16, pytest.approx(0.25), 0.5),
        ]
        assert outcome.attempts == tuple(seen)
        assert_allclose([judged.error for judged in outcome.judged], [0.5, 2.0, 0.25])
        assert (outcome.seconds, outcome.failures, outcome.finished) == ((1.0, 0.5), {}, True)
        assert {place: [each.size for each in found] for place, found in outcome.best.items()} == {0: [4, 16], 1: [3]}


class TestHalving:
    def test_the_smallest_error_wins(self):
        assert best(race([Known(options(a=3.0, b=1.0, c=2.0))], PLAIN)).name == "b"

    def test_a_late_starter_wins_if_it_is_kept(self):
        """The error of the one falls with the size: it is ahead at the last size, not at the first."""
        found = [Option("early", 1.0), Option("late", 4.0, rate=0.5)]
        for keep, winner in ((2, "late"), (1, "early")):
            efforts = (Effort(10, keep=keep), Effort(100, keep=keep), Effort(1000))
            assert best(race([Known(tuple(found), efforts)], PLAIN)).name == winner

    def test_few_go_on(self):
        engine = Known(options(a=1.0, b=1.5, c=1.9, d=9.0), (Effort(10, keep=3), Effort(100), Effort(1000)))
        race([engine], replace(PLAIN, factor=1.8))
        assert engine.log == [("a", 10), ("b", 10), ("c", 10), ("d", 10), ("a", 100), ("b", 100), ("a", 1000)]

    def test_those_that_go_on_are_of_different_families(self):
        """Two of one family lead at first; the third goes on, and wins at the last size."""
        found = (Option("a", 1.0), Option("a", 1.1), Option("late", 6.0, rate=0.5))
        engine = Known(found, (Effort(10, keep=2), Effort(100), Effort(1000)))
        assert best(race([engine], replace(PLAIN, factor=2.0))).name == "late"

    def test_the_best_of_each_kind_goes_on_while_it_is_near(self):
        """Two of one kind lead at first; that of another kind wins at the last size, unless it is too far behind."""
        late = Option("late", 6.0, rate=0.5, kind="other")
        for changes, winner in (({}, "late"), ({"kind": "any"}, "a"), ({"level": 7.0}, "a")):
            found = (*options(a=1.0, b=1.1), replace(late, **changes))
            engine = Known(found, (Effort(10, keep=2), Effort(100), Effort(1000)))
            assert best(race([engine], replace(PLAIN, factor=2.0))).name == winner

    def test_a_candidate_that_goes_on_knows_itself_at_the_size_before(self):
        outcome = race([Known(options(a=1.0, b=2.0))], PLAIN)
        last = outcome.best[0][-1]
        assert (last.found.size, last.found.candidate, last.found.found.size) == (100, last.candidate, 10)

    def test_many_ways_to_go_on_where_an_effort_asks_for_them(self):
        for many, rate in ((False, 0.0), (True, 0.5)):
            engine = Known(options(a=1.0), (Effort(10), Effort(100, many=many)), rates=(0.5,))
            assert best(race([engine], PLAIN)).rate == rate

    def test_two_efforts_of_one_size_judge_no_candidate_twice(self):
        efforts = (Effort(10, keep=1), Effort(10, rounds=(1,), keep=2), Effort(20))
        engine = Known(options(a=1.0, b=2.0), efforts, others={"a": (0.5,)})
        outcome = race([engine], PLAIN)
        assert engine.log == [("a", 10), ("b", 10), ("a", 10), ("a", 20), ("b", 20)]
        assert [(each.size, each.candidate.level) for each in outcome.best[0]] == [(10, 0.5), (20, 0.5)]


class TestVariants:
    def test_of_the_best_are_judged_once(self):
        others = {"a": (1.0, 0.5, 4.0), "b": (0.1,)}
        engine = Known(options(a=1.0, b=2.0), (Effort(10, rounds=(1, 1)),), others=others)
        found = best(race([engine], PLAIN))
        assert (found.name, found.level) == ("a", 0.5)
        assert engine.log == [("a", 10), ("b", 10), ("a", 10), ("a", 10)]  # not the level 1 again, and nothing of b
        wider = replace(engine, efforts=(Effort(10, rounds=(2,)),), log=[])
        assert best(race([wider], PLAIN)).level == 0.1

    def test_of_variants_in_later_rounds(self):
        """A round starts from the best so far: here from what the round before found."""

        class Halving(Known):
            def variants(self, judged):
                return [replace(judged.candidate, level=judged.candidate.level / 2)]

        for n in range(4):
            engine = Halving(options(a=1.0), (Effort(10, rounds=(1,) * n),))
            assert best(race([engine], PLAIN)).level == 0.5**n

    def test_of_the_best_of_each_kind(self):
        for kind, level in (("other", 0.1), ("any", 1.0)):
            found = (*options(a=1.0, b=1.2), Option("c", 1.5, kind=kind))
            engine = Known(found, (Effort(10, rounds=(1,)),), others={"c": (0.1,)})
            assert best(race([engine], replace(PLAIN, factor=2.0))).level == level

    def test_that_cost_little_are_judged_for_the_best_and_for_a_new_best(self):
        little = {"a": (0.9,), "b": (0.8, 2.0)}
        engine = Known(options(a=1.0, b=0.95), (Effort(10, cheap=1),), little=little)
        outcome = race([engine], PLAIN)
        assert (best(outcome).name, best(outcome).level) == ("b", 0.8)
        assert len(outcome.attempts) == 4


class TestEnds:
    @pytest.mark.parametrize(("improvement", "sizes"), [(0.05, [10, 100]), (0.01, [10, 100, 1000])])
    def test_a_size_that_does_not_help_is_the_last(self, improvement, sizes):
        """Ten times the size takes 2.3% off the error."""
        efforts = tuple(Effort(size, improvement=improvement) for size in (10, 100, 1000))
        engine = Known((Option("a", 1.0, rate=0.01),), efforts)
        race([engine], PLAIN)
        assert [size for _, size in engine.log] == sizes

    def test_an_engine_without_improvement_does_not_end_the_others(self):
        efforts = tuple(Effort(size, improvement=0.05) for size in (10, 100, 1000))
        one, two = Known(options(a=1.0), efforts), Known((Option("b", 2.0, rate=0.1),), efforts)
        race([one, two], PLAIN)
        assert (len(one.log), len(two.log)) == (2, 3)

    def test_all_engines_end_if_one_is_exact(self):
        one, two = Known((Option("a", 1.0, rate=3.0),)), Known(options(b=1.0))
        outcome = race([one, two], replace(PLAIN, exact=2e-6))
        assert (len(one.log), len(two.log), outcome.finished) == (2, 2, True)  # at the end of the step

    @pytest.mark.parametrize(("within", "n"), [(np.inf, 3), (2.5, 3), (1.5, 1)])
    def test_an_engine_that_is_far_behind_ends(self, within, n):
        efforts = tuple(Effort(size, within=within) for size in (10, 100, 1000))
        engine = Known(options(b=2.0), efforts)
        race([Known(options(a=1.0)), engine], PLAIN)
        assert len(engine.log) == n

    def test_an_engine_that_is_far_behind_leaves_out_its_other_candidates(self):
        """The first candidate is behind; the second would not be."""
        for within, log in ((5.0, [("b", 10), ("c", 10)]), (1.5, [("b", 10)])):
            engine = Known(options(b=2.0, c=0.5), (Effort(10, within=within),), first_step=1)
            race([Known(options(a=1.0)), engine], PLAIN)
            assert engine.log == log

    def test_errors_that_are_not_numbers_lose(self):
        outcome = race([Known(options(a=np.nan, b=1.0, c=np.inf), (Effort(10, keep=3), Effort(20)))], PLAIN)
        assert [each.candidate.name for each in outcome.best[0]] == ["b", "b"]
        only = race([Known(options(a=np.nan))], PLAIN)
        assert only.best[0][0].error == np.inf


class TestInformed:
    LEARNED = (Option("informed", 0.1),)

    def test_candidates_use_what_another_engine_learned(self):
        teacher = Known(options(t=1.0), learns=np.full((1, 2), 3.0))
        learner = Known(options(a=1.0), (Effort(10), Effort(10), Effort(100)), learned=self.LEARNED)
        found = best(race([learner, teacher], PLAIN))
        assert (found.name, found.level) == ("informed", pytest.approx(0.3))
        assert learner.log == [("a", 10), ("informed", 10), ("informed", 100)]

    def test_not_of_an_engine_on_other_data_nor_of_itself(self):
        learner = Known(options(a=1.0), (Effort(10), Effort(10)), learned=self.LEARNED, learns=np.ones((1, 2)))
        teacher = Known(options(t=1.0), learns=np.ones((1, 2)), data="values alone")
        race([learner, teacher], PLAIN)
        assert learner.log == [("a", 10)]

    def test_not_of_an_engine_with_another_transformation(self):
        learner = Known(options(a=1.0), (Effort(10), Effort(10)), learned=self.LEARNED)
        race([learner, Known(options(t=1.0), learns=np.ones((1, 2)), transform="log")], PLAIN)
        assert learner.log == [("a", 10)]

    def test_nothing_if_nothing_was_learned(self):
        learner = Known(options(a=1.0), (Effort(10), Effort(10)), learned=self.LEARNED)
        race([learner, Known(options(t=1.0))], PLAIN)
        assert learner.log == [("a", 10)]


class TestFailures:
    def test_are_raised_if_they_are_not_tolerated(self):
        engine = Known(options(a=1.0, b=2.0), broken=("b",))
        for tolerated in ((), (TypeError,)):
            with pytest.raises(ValueError, match="b is broken"):
                race([engine], PLAIN, tolerated=tolerated)

    def test_the_others_go_on_without_an_engine_that_failed(self):
        log = []
        engines = [Known(options(a=1.0), broken=("a",), log=log), Known(options(b=2.0), log=log)]
        outcome = race(engines, PLAIN, tolerated=(ValueError,))
        assert log == [("b", 10), ("b", 100), ("b", 1000)]
        assert list(outcome.best) == [1]
        assert {place: str(error) for place, error in outcome.failures.items()} == {0: "a is broken"}
        assert outcome.finished

    def test_what_an_engine_has_before_it_fails_stays(self):
        class Late(Known):
            def judge(self, candidate, size, before=None):
                if size > 10:
                    raise ValueError("too large")
                return super().judge(candidate, size, before)

        outcome = race([Late(options(a=1.0))], PLAIN, tolerated=(ValueError,))
        assert [each.size for each in outcome.best[0]] == [10]
        assert list(outcome.failures) == [0]

    def test_if_all_fail_their_errors_are_told(self):
        engines = [Known(options(a=1.0), broken=("a",)), Known(options(b=2.0), broken=("b",))]
        with pytest.raises(NothingFittedError) as caught:
            decide(engines, PLAIN, tolerated=(ValueError,))
        assert {place: str(error) for place, error in caught.value.args[0].items()} == {
            0: "a is broken",
            1: "b is broken",
        }


class TestTime:
    def engines(self, limit=np.inf):
        log = []
        efforts = (Effort(10, rounds=(2,), keep=2), Effort(100, cheap=1), Effort(1000))
        first = Known(
            (Option("a", 1.0, rate=0.1), Option("b", 1.5, rate=0.3)),
            efforts,
            others={"a": (0.9,), "b": (1.1,)},
            little={"b": (1.05,)},
            log=log,
            limit=limit,
        )
        second = Known((Option("c", 3.0, rate=0.4),), first_step=1, log=log, limit=limit)
        return [first, second]

    def test_decides_nothing_but_where_the_schedule_is_cut(self):
        """What was judged until then is a prefix of the whole, and the best of it is the result."""
        whole = race(self.engines(), PLAIN)
        assert whole.finished
        assert len(whole.attempts) == 11
        for n in range(1, len(whole.attempts)):
            cut = race(self.engines(limit=n), PLAIN)
            assert not cut.finished
            assert cut.attempts == whole.attempts[:n]
            smallest = {}
            for each in cut.judged:
                errors = smallest.setdefault(each.candidate.name == "c", {})
                errors[each.size] = min(each.error, errors.get(each.size, np.inf))
            for is_second, errors in smallest.items():
                assert [each.error for each in cut.best[int(is_second)]] == list(errors.values())

    def test_the_choice_of_a_prefix_is_always_the_same(self):
        for n in (1, 4, 8):
            one, two = (decide(self.engines(limit=n), PLAIN) for _ in range(2))
            assert (one.winner.candidate, one.winner.size) == (two.winner.candidate, two.winner.size)
            assert one.attempts == two.attempts
            assert one.optimism == two.optimism

    def test_there_is_a_first_candidate_however_short_the_time(self):
        clock = Clock(time.perf_counter() - 1.0)
        engine = Known(options(a=3.0, b=1.0), clock=clock)
        outcome = race([engine], PLAIN, clock=clock)
        assert (best(outcome).name, outcome.finished, engine.log) == ("a", False, [("a", 10)])

    def test_a_clock_counts_from_the_first_model_on(self):
        over = Clock(time.perf_counter() - 1.0)
        over.check()
        assert not over.is_over
        over.start()
        assert over.is_over
        with pytest.raises(TimeUpError):
            over.check()
        for clock in (Clock(), Clock(time.perf_counter() + 1000.0)):
            clock.start()
            clock.check()
            assert not clock.is_over

    def test_a_clock_within_another_ends_earlier_and_counts_with_it(self):
        outer = Clock(time.perf_counter() + 1000.0)
        inner = outer.within(-1.0)
        inner.check()
        outer.start()
        assert inner.is_over
        assert not outer.is_over
        assert inner.within(1000.0).is_over


class TestTransformations:
    """Engines that fit transformed data are judged in the units of the data."""

    @pytest.mark.parametrize(("level", "n"), [(9.0, 3), (11.0, 1)])
    def test_all_engines_end_if_theirs_is_far_behind(self, level, n):
        slow = Known(options(a=level), transform="log")
        other = Known((Option("b", level, rate=5.0),), first_step=1, transform="log")
        choice = decide([Known(options(c=1.0)), slow, other], PLAIN)
        assert len(slow.log) == n
        assert len(other.log) == (3 if n == 3 else 0)
        assert choice.errors[""] == pytest.approx(1.0)
        assert choice.errors["log"] == (pytest.approx(level * 1000.0**-5 if n == 3 else level))

    def test_winners_are_compared_by_mean_squares(self):
        """Logarithms of errors favour the transformation: it is better at eight of nine samples."""

        class Tailed(Known):
            def judge(self, candidate, size, before=None):
                judged = super().judge(candidate, size, before)
                errors = np.where(np.arange(9) == 0, 5.0, 1e-3)[:, None]
                return replace(judged, own=Evidence(errors, np.ones(9)))

        plain, tailed = Known(options(a=1.0)), Tailed(options(b=1.0), transform="log")
        assert decide([plain, tailed], PLAIN).winner.candidate.name == "a"
        assert decide([tailed, plain], PLAIN).winner.candidate.name == "a"


class TestChoice:
    def test_is_the_best_of_all_engines(self):
        engines = [Known(options(a=3.0)), Known((Option("b", 2.0, rate=0.1),)), Known(options(c=1.5))]
        choice = decide(engines, PLAIN)
        assert (choice.winner.candidate.name, choice.winner.size) == ("b", 1000)
        assert [each.candidate.name for each in choice.finalists] == ["a", "b", "c"]
        assert [each.size for each in choice.last] == [1000] * 3
        assert choice.seconds == (1.5, 1.5, 1.5)

    def test_a_smaller_size_that_is_clearly_better_is_taken(self):
        choice = decide([Known((Option("a", 1.0, rate=-0.1),))], PLAIN)
        assert (choice.winner.size, choice.last[0].size) == (10, 1000)

    def test_the_first_engine_and_the_largest_size_win_in_doubt(self):
        """All errors are equal: nobody is better."""
        engines = [Known(options(a=1.0)), Known(options(b=1.0))]
        choice = decide(engines, PLAIN)
        assert (choice.winner.candidate.name, choice.winner.size) == ("a", 1000)

    def test_an_engine_whose_errors_are_not_confirmed_loses(self):
        engines = [Known(options(a=1.0)), Known(options(b=0.1), truth=100.0)]
        choice = decide(engines, PLAIN)
        assert choice.winner.candidate.name == "a"
        assert_allclose([each.error for each in choice.finalists], [1.0, 10.0])
        assert_allclose([attempt.error for attempt in choice.attempts[:2]], [1.0, 0.1])

    def test_without_time_the_evidence_of_the_race_decides(self):
        class Late(Known):
            def confirmed(self, judged):
                raise TimeUpError

        choice = decide([Known(options(a=1.0), truth=0.001), Late(options(b=0.1), truth=100.0)], PLAIN)
        assert choice.winner.candidate.name == "b"

    def test_optimism_of_one_candidate_is_none(self):
        assert_allclose(decide([Known(options(a=1.0), (Effort(10),))], PLAIN).optimism, 1.0)

    def test_optimism_counts_all_candidates(self):
        """Five candidates of equal errors in the mean, each with its own luck: choosing makes the error too small."""
        rng = np.random.default_rng(0)

        class Noisy(Known):
            def judge(self, candidate, size, before=None):
                judged = super().judge(candidate, size, before)
                return replace(judged, own=Evidence(rng.normal(size=(20, 1)), np.ones(20)))

        engine = Noisy(options(a=1.0, b=1.0, c=1.0, d=1.0, e=1.0), (Effort(10),))
        assert decide([engine], PLAIN).optimism > 1.05

    def test_a_winner_has_the_evidence_of_its_judgement(self):
        choice = decide([Known(options(a=2.0, b=1.0), (Effort(10),))], PLAIN)
        assert_array_equal(choice.winner.evidence.errors, np.ones((9, 1)))
