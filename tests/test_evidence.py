"""Evidence: errors, paired comparisons, what choosing adds to an error, and the folds behind all of that."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nurf.choosing import Evidence, Judged, Policy, advantage, assign_folds
from nurf.choosing._choice import simplest, values_first
from nurf.choosing._evidence import selection_optimism
from nurf.jets import Jet

FLOOR = 0.01


def evidence(errors, weights=None):
    errors = np.asarray(errors, float)
    errors = errors[:, None] if errors.ndim == 1 else errors
    return Evidence(errors, np.ones(len(errors)) if weights is None else np.asarray(weights, float))


def some(n=200, k=2, gaps=0.2, seed=0):
    """Errors with gaps, and weights over two orders of magnitude."""
    rng = np.random.default_rng(seed)
    errors = rng.normal(size=(n, k)) * rng.lognormal(size=(n, 1))
    errors[rng.random(n) < gaps] = np.nan
    return evidence(errors, 100 ** rng.random(n))


class TestError:
    def test_is_the_weighted_root_mean_square_at_the_samples_that_judge(self):
        found = some()
        squares, total = np.zeros(2), 0.0
        for errors, weight in zip(found.errors, found.weights, strict=True):
            if not np.isnan(errors).any():
                squares += weight * errors**2
                total += weight
        assert_allclose(found.output_errors, np.sqrt(squares / total))
        assert_allclose(found.error, np.sqrt(squares.sum() / total))
        assert_array_equal(found.judges, [not np.isnan(errors).any() for errors in found.errors])

    def test_does_not_depend_on_the_unit_of_weights(self):
        found = some()
        assert_allclose(evidence(found.errors, 1e3 * found.weights).output_errors, found.output_errors)

    def test_samples_without_weight_do_not_count(self):
        found = evidence([1.0, 1e9, 3.0], [1.0, 0.0, 1.0])
        assert_allclose(found.error, np.sqrt(5.0))

    @pytest.mark.parametrize("errors", [[np.nan, np.nan], [1.0, np.inf]])
    def test_is_infinite_if_it_is_not_a_number(self, errors):
        assert evidence(errors).error == np.inf

    def test_without_weights_there_is_none(self):
        found = evidence([1.0, 2.0], [0.0, 0.0])
        assert np.isnan(found.output_errors).all()
        assert found.error == np.inf


class TestDecisive:
    @pytest.mark.parametrize(
        ("errors", "n"),
        [(np.ones(100), 90), (np.where(np.arange(100) == 3, 100.0, 1e-3), 1), ([3.0, 1.0, 0.5], 2), (np.zeros(5), 0)],
    )
    def test_is_the_smallest_number_that_carries_most_squares(self, errors, n):
        assert evidence(errors).n_decisive == n

    def test_weights_count(self):
        """Squares 1 and 4 with weights 99 and 1: the first carries 99 of 103."""
        assert evidence([1.0, 2.0], [99.0, 1.0]).n_decisive == 1

    def test_of_nothing_is_none(self):
        assert evidence(np.full(5, np.nan)).n_decisive == 0


class TestAdvantage:
    def test_is_a_weighted_mean_of_logarithms(self):
        """Without a floor, and with one that the definition says."""
        one, two = some(seed=1), some(seed=2)
        two = evidence(two.errors, one.weights)
        both = [i for i in range(200) if not np.isnan(one.errors[i, 0]) and not np.isnan(two.errors[i, 0])]
        a, b = (np.array([np.sum(each.errors[i] ** 2) for i in both]) for each in (one, two))
        w = one.weights[both] / one.weights[both].sum()
        for floor in (0.0, FLOOR, 1.0):
            c = floor * min(np.sum(w * a), np.sum(w * b))
            assert_allclose(advantage(one, two, floor)[0], np.sum(w * (np.log(b + c) - np.log(a + c))))

    def test_is_antisymmetric(self):
        one, two = some(seed=1), some(seed=2)
        two = evidence(two.errors, one.weights)
        (gain, spread), (loss, same) = advantage(one, two, FLOOR), advantage(two, one, FLOOR)
        assert_allclose([gain, spread], [-loss, same])

    def test_does_not_depend_on_units(self):
        one, two = some(seed=1), some(seed=2)
        two = evidence(two.errors, one.weights)
        expected = advantage(one, two, FLOOR)
        for scale in (1e-9, 1e9):
            scaled = [evidence(scale * each.errors, scale * each.weights) for each in (one, two)]
            assert_allclose(advantage(*scaled, FLOOR), expected)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_the_standard_error_is_that_of_a_bootstrap(self, weighted):
        """2000 draws of all samples know a standard deviation to 1.6%; the weighted mean is a ratio: to first order."""
        rng, n = np.random.default_rng(3), 400
        weights = 10 ** rng.random(n) if weighted else np.ones(n)
        shared = rng.normal(size=n)
        one, two = (evidence(shared + 0.5 * rng.normal(size=n), weights) for _ in range(2))
        _, spread = advantage(one, two, FLOOR)
        means = []
        for _ in range(2000):
            drawn = rng.integers(n, size=n)
            parts = (evidence(each.errors[drawn], weights[drawn]) for each in (one, two))
            means.append(advantage(*parts, FLOOR)[0])
        assert_allclose(spread, np.std(means), rtol=0.1)

    def test_a_sample_that_decides_squares_does_not_decide_alone(self):
        """One error of the challenger is a thousand times larger, all others ten times smaller."""
        incumbent = np.ones(100)
        challenger = np.where(np.arange(100) == 7, 1000.0, 0.1)
        gain, spread = advantage(evidence(challenger), evidence(incumbent), FLOOR)
        assert evidence(challenger).error > evidence(incumbent).error
        assert gain > 10 * spread

    def test_errors_far_below_the_mean_square_do_not_decide(self):
        """Both are the same at the samples that carry the error; at all others one is exact to rounding."""
        large = np.arange(100) % 10 == 0
        one, two = np.where(large, 1.0, 1e-15), np.where(large, 1.0, 1e-6)
        assert abs(advantage(evidence(one), evidence(two), FLOOR)[0]) < 1e-9
        assert advantage(evidence(one), evidence(two), 0.0)[0] > 10

    def test_without_common_samples_nothing_is_known(self):
        one, two = evidence([1.0, np.nan]), evidence([np.nan, 1.0])
        assert advantage(one, two, FLOOR) == (0.0, np.inf)

    def test_of_exact_fits(self):
        zero, one = evidence(np.zeros(5)), evidence(np.ones(5))
        assert advantage(zero, zero, FLOOR) == (0.0, 0.0)
        gain, spread = advantage(zero, one, FLOOR)
        assert gain > 100
        assert spread < 1e-9


def known(name, ignores_derivatives):
    return SimpleNamespace(name=name, ignores_derivatives=ignores_derivatives, back=None)


class TestSimplest:
    def judged(self, *errors, values=()):
        """Candidates of an engine with these errors; those of the numbers ``values`` are fits to the values alone."""
        engines = [known("an engine", ignores) for ignores in (False, True)]
        return [Judged(engines[number in values], number, 1, evidence(each)) for number, each in enumerate(errors)]

    def chosen(self, judged, **policy):
        return simplest(judged, Policy(**policy)).candidate

    def test_keeps_the_first_in_doubt(self):
        """A difference of a tenth of a standard error either way, and none at all."""
        rng = np.random.default_rng(0)
        noise = rng.normal(size=100)
        noise = (noise - noise.mean()) / noise.std()
        base = np.exp(rng.normal(size=100))
        for shift in (0.0, 0.01, -0.01):
            pair = self.judged(base, base * np.exp(0.5 * (noise + shift)))
            assert self.chosen(pair, standard_errors=0.5, floor=0.0) == 0
            assert self.chosen(pair[::-1], standard_errors=0.5, floor=0.0) == 1

    def test_takes_what_is_clearly_better(self):
        rng = np.random.default_rng(0)
        good, bad = rng.normal(size=100), 3 * rng.normal(size=100)
        assert self.chosen(self.judged(bad, good)) == 1
        assert self.chosen(self.judged(good, bad)) == 0

    @pytest.mark.parametrize(("standard_errors", "winner"), [(0.5, 1), (5.0, 0)])
    def test_by_a_number_of_standard_errors(self, standard_errors, winner):
        rng = np.random.default_rng(1)
        base = np.exp(rng.normal(size=50))
        noise = rng.normal(size=50)
        noise = (noise - noise.mean()) / noise.std()
        better = base * np.exp(-0.5 * (0.4 + noise))  # 0.4 of a standard deviation, 2.8 standard errors of 50 samples
        pair = self.judged(base, better)
        assert self.chosen(pair, standard_errors=standard_errors, floor=0.0) == winner

    def test_derivatives_need_more(self):
        """Two standard errors: enough for one setting against another, not for derivatives that need three."""
        rng = np.random.default_rng(4)
        base, noise = np.exp(rng.normal(size=100)), rng.normal(size=100)
        errors = base, base * np.exp(-0.5 * (0.2 + (noise - noise.mean()) / noise.std()))
        policy = {"standard_errors": 1.0, "derivative_errors": 3.0, "floor": 0.0}
        assert self.chosen(self.judged(*errors), **policy) == 1
        assert self.chosen(self.judged(*errors, values=[0]), **policy) == 0
        assert self.chosen(self.judged(*errors, values=[0, 1]), **policy) == 1
        assert self.chosen(self.judged(*errors, values=[1]), **policy) == 1

    def test_derivatives_with_larger_squares_do_not_win(self):
        """A fit ten times better at all samples but one, where it is a little worse than the root mean square."""
        base = np.random.default_rng(5).normal(size=100)
        errors = base, np.where(np.arange(100) == 7, 1.1 * np.linalg.norm(base), base / 10)
        assert self.chosen(self.judged(*errors)) == 1
        assert self.chosen(self.judged(*errors, values=[0])) == 0
        assert self.chosen(self.judged(*errors, values=[0, 1])) == 1

    @pytest.mark.parametrize("known", [(2.0, 0.5), (0.5, 2.0), (2.0, None), (None, 2.0)])
    def test_errors_where_there_are_no_samples_count_if_both_are_known(self, known):
        """A challenger with half the errors, a mean square of 0.25 instead of 1."""
        base = np.random.default_rng(6).normal(size=100)
        base /= np.sqrt(np.mean(base**2))
        pair = self.judged(base, base / 2)
        pair = [
            replace(each, own=replace(each.own, elsewhere=number)) for each, number in zip(pair, known, strict=True)
        ]
        assert self.chosen(pair) == (0 if known == (0.5, 2.0) else 1)

    def test_values_are_simpler_than_derivatives_of_the_same_engine(self):
        engines = [known(name, ignores) for name in "ab" for ignores in (False, True)]
        for n, order in ((5, [1, 0, 3, 2]), (4, [0, 1, 2, 3])):  # four samples decide nothing
            judged = [Judged(engine, number, 1, evidence(np.ones(n))) for number, engine in enumerate(engines)]
            assert [each.candidate for each in values_first(judged, Policy())] == order

    def test_a_challenger_with_clearly_larger_squares_does_not_win(self):
        """It is ten times better at nine of ten samples, and a hundred times worse at the tenth."""
        rng = np.random.default_rng(3)
        base = rng.normal(size=400)
        better = np.where(np.arange(400) % 10 == 0, 100 * base, base / 10)
        assert self.chosen(self.judged(base, better), tail_errors=np.inf) == 1
        assert self.chosen(self.judged(base, better)) == 0

    def test_one_large_square_does_not_stop_a_challenger(self):
        """The standard error of the mean square is about the mean square then."""
        base = np.random.default_rng(3).normal(size=400)
        assert self.chosen(self.judged(base, np.where(np.arange(400) == 7, 100 * base, base / 10))) == 1

    def test_the_incumbent_changes_on_the_way(self):
        rng = np.random.default_rng(2)
        errors = [scale * rng.normal(size=200) for scale in (9.0, 3.0, 6.0, 1.0, 1.0)]
        assert self.chosen(self.judged(*errors), standard_errors=4.0) == 3  # factors of 3 are ten standard errors

    def test_a_candidate_that_was_not_judged_does_not_win(self):
        assert self.chosen(self.judged(np.ones(5), np.full(5, np.nan))) == 0


class TestOptimism:
    @staticmethod
    def of_the_best(candidates, n_draws=200):
        return selection_optimism(min(candidates, key=lambda each: each.error), candidates, 2.0, n_draws)

    def test_of_one_candidate_is_none(self):
        assert self.of_the_best([some()]) == 1.0

    def test_one_large_error_is_no_choice(self):
        """Nobody but the first is ever chosen, whether the sample that decides its error is drawn or not."""
        errors = np.full(20, 1e-6)
        errors[0] = 1.0
        assert_allclose(self.of_the_best([evidence(errors), evidence(10 * errors)]), 1.0)

    def test_a_candidate_that_could_not_win_does_not_count(self):
        """Draws without its one huge error would choose it."""
        errors = np.random.default_rng(6).normal(size=20)
        assert self.of_the_best([evidence(errors), evidence(np.where(np.arange(20) == 3, 1e6, errors / 2))]) == 1.0

    def test_of_a_clear_choice_is_small(self):
        """Nobody but the first is ever chosen."""
        rng = np.random.default_rng(0)
        base = rng.normal(size=400)
        candidates = [evidence(scale * base) for scale in (1.0, 5.0, 25.0)]
        assert 1 - 1e-9 <= self.of_the_best(candidates) < 1.05

    def test_is_at_least_one_and_always_the_same(self):
        for seed in range(5):
            candidates = [some(gaps=0.1, seed=10 * seed + i) for i in range(4)]
            found = [self.of_the_best(candidates) for _ in range(2)]
            assert found[0] == found[1] >= 1 - 1e-9

    @pytest.mark.parametrize(("n", "many"), [(20, 30), (50, 30), (50, 5), (200, 100)])
    def test_is_that_of_a_simulation(self, n, many):
        """The smallest of ``many`` equal errors is too small by a factor that fresh samples show.

        All candidates have errors of variance 1: whichever is chosen, the fresh ones have the mean square 1. The
        geometric mean over 60 data sets of both sides.
        """
        rng = np.random.default_rng(4)
        estimated, true = [], []
        for _ in range(60):
            errors = rng.normal(size=(n, many))
            estimated.append(np.log(self.of_the_best([evidence(column) for column in errors.T])))
            true.append(-np.log(np.mean(errors**2, axis=0).min()) / 2)
        assert np.mean(true) > 0.02
        assert_allclose(np.exp(np.mean(estimated)), np.exp(np.mean(true)), rtol=0.2)

    def test_weights_count(self):
        """Samples without weight are as good as not there."""
        rng = np.random.default_rng(5)
        errors = rng.normal(size=(30, 10))
        more = np.concatenate([errors, rng.normal(size=(30, 10))])
        weights = np.repeat([1.0, 0.0], 30)
        few = self.of_the_best([evidence(column) for column in errors.T], 2000)
        weighted = self.of_the_best([evidence(column, weights) for column in more.T], 2000)
        assert_allclose(weighted, few, rtol=0.05)

    def test_candidates_without_common_samples(self):
        assert self.of_the_best([evidence([1.0, np.nan]), evidence([np.nan, 1.0])]) == 1.0

    def test_of_exact_fits(self):
        assert_allclose(self.of_the_best([evidence(np.zeros(9)), evidence(np.zeros(9))]), 1.0)


class TestFolds:
    def test_are_balanced_and_always_the_same(self):
        X = np.random.default_rng(0).normal(size=(53, 2))
        folds = assign_folds(Jet(X, X[:, 0]), 5)
        assert_array_equal(folds, assign_folds(Jet(X, -X[:, 1]), 5))
        assert sorted(np.bincount(folds)) == [10, 10, 11, 11, 11]

    def test_equal_points_are_together(self):
        rng = np.random.default_rng(1)
        points = rng.normal(size=(20, 3))
        X = points[rng.integers(20, size=100)]
        folds = assign_folds(Jet(X, rng.normal(size=100)), 5)
        for point in points:
            assert len(set(folds[np.all(point == X, axis=1)])) <= 1
        assert set(folds) == set(range(5))

    def test_points_that_differ_by_rounding_are_together(self):
        """Shifts of 1e-14 are 3e-6 of the width in which points are equal: one in 30,000 points is beyond its edge."""
        points = np.random.default_rng(3).uniform(-1, 1, (20, 2))
        folds = assign_folds(Jet(np.concatenate([points, points + 1e-14]), np.zeros(40)), 5)
        assert_array_equal(folds[:20], folds[20:])
        assert np.bincount(folds).max() == 8

    def test_a_fold_has_nothing_to_do_with_the_order_of_the_points(self):
        """Rows that are sorted by an input, or that belong to runs of five, are in all folds."""
        X = np.linspace(0, 1, 1000)[:, None]
        folds = assign_folds(Jet(X, X[:, 0]), 5)
        for part in (slice(0, 200), slice(800, 1000), slice(0, None, 5)):
            assert np.bincount(folds[part], minlength=5).min() > 20

    def test_all_folds_have_values_and_points_without_them_are_spread_too(self):
        rng = np.random.default_rng(2)
        X, y = rng.normal(size=(100, 2)), np.full(100, np.nan)
        valued = rng.choice(100, 12, replace=False)
        y[valued] = 1.0
        folds = assign_folds(Jet(X, y, np.ones((100, 2))), 5)
        assert sorted(np.bincount(folds[valued], minlength=5)) == [2, 2, 2, 3, 3]
        others = np.setdiff1d(np.arange(100), valued)
        assert sorted(np.bincount(folds[others], minlength=5)) == [17, 17, 18, 18, 18]

    @pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
    def test_there_are_no_more_folds_than_points_with_a_value(self, n):
        X = np.repeat(np.arange(n, dtype=float), 3)[:, None]
        folds = assign_folds(Jet(X, X[:, 0]), 5)
        assert set(folds) == set(range(min(n, 5)))
