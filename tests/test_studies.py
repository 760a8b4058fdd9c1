"""Studies: points that are asked, results in any order, answers against closed forms, and files."""

import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import kstest, loguniform, norm, poisson, randint, uniform

import nurf
from nurf.files import FileFormatError
from nurf.studies import Study, design, goals
from nurf.studies._ensemble import Ensemble
from nurf.studies._failing import Failing
from nurf.studies._space import Space
from nurf.studies.goals._limits import sides
from nurf.studies.goals._minimum import log_improvement

MIXED = {"r": (0.05, 0.1), "L": loguniform(1, 100), "layers": [1, 2, 4], "k": randint(0, 5), "f": 3.0, "z": norm(1, 2)}


def wavy(X):
    x, y = np.asarray(X)[:, :2].T
    return np.sin(3 * x) + x * y**2


def slopes(X):
    x, y = np.asarray(X)[:, :2].T
    return np.stack([3 * np.cos(3 * x) + y**2, 2 * x * y], axis=1)


def branin(X):
    x, y = np.asarray(X).T
    return (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10


def branin_gradient(X):
    x, y = np.asarray(X).T
    inner = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    slope = 2 * inner * (-10.2 / (4 * np.pi**2) * x + 5 / np.pi) - 10 * (1 - 1 / (8 * np.pi)) * np.sin(x)
    return np.stack([slope, 2 * inner], axis=1)


BRANIN = {"x": (-5, 10), "y": (0, 15)}
SQUARE = {"x": (0, 1), "y": (-1, 1)}


def followed(study, f, gradients=None, n=4):
    while not study.done:
        X = study.ask(n)
        study.tell(X, f(X), gradients=None if gradients is None else gradients(X))
    return study


class TestDesigns:
    @pytest.mark.parametrize("kind", ["sobol", "latin"])
    def test_more_points_begin_with_the_same(self, kind):
        few, many = (design(MIXED, n, kind=kind, random_state=3) for n in (12, 24))
        pd.testing.assert_frame_equal(few, many[:12])
        assert list(many.columns) == list(MIXED)

    @pytest.mark.parametrize("kind", ["sobol", "latin"])
    def test_one_point_in_each_part(self, kind):
        X = design({"a": (0, 1), "b": loguniform(1, 1e4), "c": norm()}, 32, kind=kind, random_state=1)
        parts = np.column_stack([X["a"], np.log10(X["b"]) / 4, norm.cdf(X["c"])])
        for m in (4, 8, 16, 32):
            assert_array_equal(np.sort((m * parts[:m]).astype(int), axis=0), np.tile(np.arange(m)[:, None], 3))

    def test_distributions(self):
        X = design(MIXED, 512, random_state=0)
        assert kstest(X["r"], uniform(0.05, 0.05).cdf).statistic < 0.01
        assert kstest(X["z"], norm(1, 2).cdf).statistic < 0.01
        assert_allclose([np.mean(X["layers"] == n) for n in (1, 2, 4)], 1 / 3, atol=0.01)
        assert_allclose([np.mean(X["k"] == n) for n in range(5)], 0.2, atol=0.01)
        assert set(X["f"]) == {3.0}

    def test_correlations(self):
        inputs = {"a": norm(), "b": loguniform(1, 10), "c": 1.0}
        X = design(inputs, 1024, correlation=[[1, 0.8], [0.8, 1]], random_state=0)
        scores = norm.ppf(np.log10(X["b"]))
        assert_allclose(np.corrcoef(X["a"], scores)[0, 1], 0.8, atol=0.01)

    def test_constraints(self):
        X = design(MIXED, 64, constraints=["10 * r + k / 2 <= f - 1", "-1 <= z <= 3"], random_state=0)
        assert len(X) == 64
        assert np.all(10 * X["r"] + X["k"] / 2 <= 2)
        assert X["z"].between(-1, 3).all()

    def test_levels_are_not_repeated(self):
        X = design({"a": [1, 2], "b": {5, 6, 7}}, 100, random_state=0)
        assert len(X) == 6
        assert not X.duplicated().any()

    @pytest.mark.parametrize(
        ("inputs", "constraints", "message"),
        [
            ({}, (), "must be a dict of names and distributions, got {}"),
            ([(0, 1)], (), "must be a dict"),
            ({"a": 1.0}, (), "at least one input that varies"),
            ({"a": (1, 0)}, (), "low < high, got .1, 0. for a"),
            ({"a": "uniform"}, (), "got 'uniform' for a"),
            ({"a": loguniform}, (), "with their parameters, got none of loguniform for a"),
            ({"a": norm(0, -1)}, (), "NaN quantiles for a"),
            ({"a": [2, 2]}, (), "two levels"),
            ({"a": (0, 1)}, "a <= 1", "list of texts"),
            ({"a": (0, 1)}, ["b <= 1"], "inputs .'a'., got 'b'"),
            ({"a": (0, 1)}, ["a * a <= 1"], "must be linear"),
            ({"a": (0, 1)}, ["a"], "must compare two sides"),
            ({"a": (0, 1)}, ["a =="], "must be inequalities"),
            ({"a": (0, 1)}, ["a == 1"], "must use <= or >="),
            ({"a": (0, 1)}, ["a >= 2"], "none of .* points meets"),
            ({"a": (0, 1)}, ["__import__('os').getcwd() <= 1"], "must be linear"),
        ],
    )
    def test_errors(self, inputs, constraints, message):
        with pytest.raises(ValueError, match=message):
            design(inputs, 4, constraints=constraints)

    def test_unit_cube_and_back(self):
        space = Space.of(MIXED)
        X = space.from_unit(np.random.default_rng(0).random((200, 5)))
        assert_allclose(space.from_unit(space.to_unit(X)), X, rtol=1e-12)
        correlated = Space.of({"a": norm(), "b": (0, 1)}, correlation=[[1, -0.5], [-0.5, 1]])
        X = correlated.from_unit(np.random.default_rng(0).random((200, 2)))
        assert_allclose(correlated.from_unit(correlated.to_unit(X)), X, rtol=1e-9)


class TestEnsemble:
    def test_given_values_is_the_normal_distribution_given_them(self):
        """20,000 draws of a normal vector: relative errors of variances are below 5 sqrt(2 / 20000) = 0.05."""
        rng = np.random.default_rng(0)
        factor = rng.normal(size=(5, 5))
        values = rng.normal(size=(20_000, 5)) @ factor.T
        values -= values.mean(axis=0)
        covariance = factor @ factor.T
        for noise in (0.0, 0.5):
            ensemble = Ensemble(np.zeros((3, 1)), values[:, :3, None], values[:, 3:, None], np.array([noise]), 19_999.0)
            known = ensemble.given(values[:, :2], np.full(2, noise))
            own = covariance[:2, :2] + noise * np.eye(2)
            expected = covariance - covariance[:, :2] @ np.linalg.solve(own, covariance[:2])
            assert_allclose(known.target_variances[:, 0], np.diag(expected)[3:], rtol=0.05)
            assert_allclose(known.variances[2, 0], expected[2, 2], rtol=0.05)
            one = covariance[2, 3:] ** 2 / (covariance[2, 2] + noise)
            assert_allclose(ensemble.reductions(0)[2], one, rtol=0.1, atol=0.02 * covariance.max())

    def test_chance_takes_nothing_away(self):
        """Variances of independent values given 30 others are 1, not 1 - 30 / 64: within 4 sqrt(2 / (33 * 2000))."""
        values = np.random.default_rng(0).normal(size=(64, 2030))
        values -= values.mean(axis=0)
        ensemble = Ensemble(np.zeros((0, 1)), values[:, :0, None], values[:, 30:, None], np.zeros(1), 63.0)
        known = ensemble.given(values[:, :30], np.zeros(30))
        assert_allclose(known.target_variances.mean(), 1, atol=0.03)

    @pytest.mark.parametrize(("gain", "deviation"), [(1.0, 0.5), (0.0, 2.0), (-1.0, 0.5), (-3.0, 0.4)])
    def test_expected_improvement(self, gain, deviation):
        expected = quad(lambda z: max(0.0, gain + deviation * z) * norm.pdf(z), -12, 12, points=[-gain / deviation])[0]
        assert_allclose(log_improvement(np.array(gain), np.array(deviation)), np.log(expected), rtol=1e-6)

    def test_expected_improvement_far_below(self):
        """``E max(0, s z - g)`` is ``s phi(u) / u^2 (1 + O(u^-2))`` with ``u = g / s``."""
        u = np.array([50.0, 1e3, 1e5, 1e8])
        assert_allclose(log_improvement(-u, np.ones(4)), norm.logpdf(u) - 2 * np.log(u), rtol=1e-3)
        assert np.all(np.diff(log_improvement(-np.geomspace(1, 1e6, 500), np.ones(500))) < 0)


class TestGoals:
    @pytest.mark.parametrize("with_gradients", [False, True])
    def test_error(self, with_gradients):
        study = followed(Study(SQUARE, goals.Error(0.01), random_state=0), wavy, slopes if with_gradients else None)
        assert study.verdict.reason == "target"
        X = np.random.default_rng(1).uniform([0, -1], [1, 1], (2000, 2))
        wrong = study.model.predict(pd.DataFrame(X, columns=["x", "y"])) - wavy(X)
        assert np.sqrt(np.mean(wrong**2)) < 0.01 * wavy(X).std()
        assert study.answer.loss < 0.01

    def test_minimum(self):
        study = Study(BRANIN, goals.Minimum(), max_runs=40, random_state=0)
        followed(study, branin, branin_gradient)
        assert study.verdict.reason == "target"
        assert float(study.answer.estimate) < 0.397887 + 0.01 * 308
        assert len(study.runs) < 30

    def test_maximum_with_constraint(self):
        """The largest ``x + y`` with ``x^2 + y^2 <= 1`` is ``sqrt(2)``."""
        goal = goals.Minimum(0.01, "sum", {"square": (None, 1)}, maximize=True)
        study = Study({"x": (0, 2), "y": (0, 2)}, goal, max_runs=50, random_state=0)
        while not study.done:
            X = study.ask(4)
            study.tell(X, pd.DataFrame({"sum": X.x + X.y, "square": X.x**2 + X.y**2}))
        assert 1.35 < float(study.answer.estimate) <= np.sqrt(2) + 1e-9

    def test_several_outputs_and_partial_gradients(self):
        study = Study(SQUARE, goals.Error(0.02), max_runs=60, random_state=0)
        while not study.done:
            X = study.ask(4)
            y, G = np.stack([wavy(X), X.x - X.y], axis=1), np.full((len(X), 2, 2), np.nan)
            G[::2, 0] = slopes(X)[::2]
            study.tell(X, y, gradients=G)
        assert study.verdict.reason == "target"

    def test_budget(self):
        study = followed(Study(SQUARE, goals.Error(1e-9), max_runs=20, random_state=0), wavy)
        assert study.verdict.reason == "budget"
        assert len(study.runs) == 20

    def test_further_runs_do_not_pay(self):
        """Noise: the error of the model falls slowly, and that of a single value not at all."""
        rng = np.random.default_rng(0)
        study = Study({"x": (0, 1)}, goals.Error(1e-4), n_initial=4, random_state=0)
        for _ in range(40):
            X = study.ask(4)
            study.tell(X, rng.normal(size=4))
            if study.done:
                break
        assert study.verdict.reason == "no gain"
        assert "further runs do not pay" in study.verdict.text

    def test_all_combinations(self):
        study = followed(Study({"a": [1, 2, 3], "b": [1, 2]}, goals.Error(1e-12), random_state=0), wavy)
        assert study.verdict.reason == "exhausted"
        assert len(study.runs) == 6
        none = study.ask(3)
        assert len(none) == 0
        study.tell(none, wavy(none))

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
    def test_expected_misclassification(self, share):
        """200,000 values that a run may have: errors of the mean of numbers in [0, 1/4] are below 4 / 8 / sqrt(2e5)."""
        rng, n = np.random.default_rng(0), 4000
        known, rest = rng.normal(size=(2, n))
        known, rest = known - known.mean(), rest - rest.mean()
        rest -= known * (known @ rest) / (known @ known)
        known, rest = (part / part.std(ddof=1) for part in (known, rest))
        target = np.sqrt(share) * known + np.sqrt(1 - share) * rest
        ensemble = Ensemble(np.zeros((1, 1)), known[:, None, None], target[:, None, None], np.zeros(1), n - 1.0)
        for margin in (0.0, 0.7, 2.0):
            after = norm.cdf((margin + np.sqrt(share) * rng.normal(size=200_000)) / np.sqrt(1 - share))
            p = norm.cdf(margin)
            expected = p * (1 - p) - np.mean(after * (1 - after))
            assert_allclose(sides(ensemble, 0, np.array([margin]), np.ones(1)), expected, atol=0.003)

    def test_failure(self):
        """A linear limit: the probability is ``Phi(-3)``."""
        goal = goals.Failure(3.0)
        study = Study({"a": norm(), "b": norm(2, 0.5)}, goal, max_runs=60, random_state=0)
        followed(study, lambda X: (X.a + 2 * (X.b - 2)) / 2**0.5)
        assert study.verdict.reason == "target"
        assert_allclose(float(study.answer.estimate), norm.cdf(-3), rtol=0.05)

    @pytest.mark.parametrize("goal", [goals.Failure(2.0, target=None), goals.Sensitivities(None)])
    def test_an_answer_is_kept_for_the_same_runs(self, goal):
        """Points are chosen with it, and it is the same before and after."""
        answers = []
        for first_ask in (False, True):
            study = Study({"a": norm(), "b": norm()}, goal, random_state=0)
            X = study.ask(8)
            study.tell(X, np.sin(X.a) + X.b)
            answers += [] if first_ask else [study.answer.estimate.answers]
            study.ask(2)
            answers.append(study.answer.estimate.answers)
            assert list(study._store.answers()) == [8]
        assert_array_equal(answers[0], answers[1])
        assert_allclose(answers[0].mean(axis=0), answers[2].mean(axis=0), atol=0.05)

    def test_failure_with_levels_is_counted(self):
        study = Study({"a": norm(), "b": [0, 1]}, goals.Failure(below=-1.0, target=0.05), max_runs=40, random_state=0)
        followed(study, lambda X: X.a + X.b)
        assert_allclose(float(study.answer.estimate), (norm.cdf(-1) + norm.cdf(-2)) / 2, rtol=0.05)

    def test_level(self):
        """The part of the square beyond a circle of radius 0.8 is ``1 - 0.16 pi``."""
        study = Study({"a": (-1, 1), "b": (-1, 1)}, goals.Level(0.64), max_runs=40, random_state=0)
        followed(study, lambda X: X.a**2 + X.b**2)
        assert_allclose(float(study.answer.estimate), 1 - 0.16 * np.pi, atol=0.015)

    def test_questions_without_an_answer(self):
        """A limit that no value reaches, and constraints that no run meets: the target is not met."""
        unmet = goals.Minimum(0.01, 0, {1: (5, None)})
        for goal, f in (goals.Failure(50.0), lambda X: X.a), (unmet, lambda X: np.stack([X.a, X.a], axis=1)):
            study = Study({"a": norm()}, goal, random_state=0)
            X = study.ask(8)
            study.tell(X, f(X))
            assert study.answer.loss == np.inf
            assert study.answer.sure == 0
            assert len(study.ask(2)) == 2
        assert str(study.answer) == "not known: no run meets the constraints yet"
        assert "no run meets the constraints yet" in str(study.report())

    def test_sensitivities(self):
        """The function ``a + 2 b + a b`` on [-1, 1] has the variances 1/3, 4/3 and 1/9."""
        study = Study({"a": (-1, 1), "b": (-1, 1)}, goals.Sensitivities(), max_runs=40, random_state=0)
        followed(study, lambda X: X.a + 2 * X.b + X.a * X.b)
        assert study.verdict.reason == "target"
        assert_allclose(study.answer.estimate, [4 / 16, 13 / 16], atol=0.03)
        with pytest.raises(ValueError, match="continuous inputs without constraints"):
            Study({"a": [1, 2], "b": (0, 1)}, goals.Sensitivities())

    def test_calibration(self, tmp_path):
        """Measurements of a line: the posterior of normal inputs is known.

        The loss is at most 0.2 deviations, and 512 weighted points are worth at least 128: means have an error of
        0.09 deviations, and deviations one of 0.06.
        """
        times, y, noise = np.array([0.0, 0.5, 1.0]), np.array([0.4, 0.9, 1.1]), 0.1
        A = np.stack([np.ones(3), times], axis=1)
        covariance = np.linalg.inv(np.eye(2) + A.T @ A / noise**2)
        mean, std = covariance @ A.T @ y / noise**2, np.sqrt(np.diag(covariance))
        goal = goals.Calibration(y, noise, at={"t": times})
        path = tmp_path / "a.study"
        study = Study({"a": norm(), "t": (0, 1), "b": norm()}, goal, path=path, max_runs=40, random_state=0)
        assert nurf.load(path).goal == goal
        followed(study, lambda X: X.a + X.b * X.t)
        assert study.verdict.reason == "target"
        estimate = study.answer.estimate
        assert np.all(np.abs(estimate.value - mean) < (0.2 + 5 * 0.09) * std)
        assert_allclose(estimate.answers.std(axis=0), std, rtol=0.3)
        assert_allclose(estimate.interval[:, 1] - estimate.interval[:, 0], 2 * 1.645 * std, rtol=0.3)

    def test_calibration_with_two_explanations(self):
        """A square has two roots with equal probability; another output that is not measured says nothing.

        The standard deviation of all is one, so that errors of the model of 0.2 are accepted.
        """
        goal = goals.Calibration([1.0, np.nan], [0.05, 0.1])
        study = Study({"a": (-2, 2)}, goal, n_initial=4, max_runs=24, random_state=0)
        followed(study, lambda X: np.stack([X.a**2, np.cos(X.a)], axis=1))
        sample = study.answer.estimate.answers[:, 0]
        assert_allclose(np.mean(sample > 0), 0.5, atol=5 * 0.5 / np.sqrt(128))
        assert np.quantile(np.abs(np.abs(sample) - 1), 0.9) < 0.2

    def test_calibration_of_correlated_inputs_within_constraints(self):
        """A sum is measured: the difference keeps its distribution, and the constraint cuts it.

        The mean of a half normal variable has the error 0.6 / sqrt(128) of its deviation.
        """
        inputs, options = {"a": norm(), "b": norm()}, {"correlation": [[1, 0.6], [0.6, 1]], "constraints": ["a >= b"]}
        study = Study(inputs, goals.Calibration(0.0, 0.05), max_runs=30, random_state=0, **options)
        followed(study, lambda X: X.a + X.b)
        a, b = study.answer.estimate.answers.T
        assert np.all(a >= b)
        assert_allclose(np.mean(a - b), np.sqrt(0.8) * np.sqrt(2 / np.pi), atol=5 * 0.6 * np.sqrt(0.8 / 128))

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"noise": 0.0}, "`noise` must be standard deviations > 0"),
            ({"observations": [np.nan]}, "`observations` must be numbers"),
            ({"at": [1, 2]}, "`at` must be a dict"),
            ({"at": {"c": [1.0]}}, "must have some of the inputs"),
            ({"at": {"a": [1.0], "b": [1.0]}}, "must leave at least one input unknown"),
            ({"at": {"a": [7.0]}}, "`at` must have a from 0 to 1"),
            ({"target": -1}, "`target` must be"),
        ],
    )
    def test_errors_of_calibration(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            Study({"a": (0, 1), "b": norm()}, goals.Calibration(**{"observations": [1.0], "noise": 0.1} | arguments))

    @pytest.mark.parametrize(
        "goal",
        [
            lambda: goals.Error(0),
            lambda: goals.Minimum("x"),
            lambda: goals.Minimum(1, 0, [1]),
            lambda: goals.Minimum(1, 0, {0: (np.inf, 1)}),
            lambda: goals.Failure(),
            lambda: goals.Failure(above=np.nan),
            lambda: goals.Failure(above=[None, None]),
            lambda: goals.Failure(below=[1, -np.inf]),
            lambda: goals.Failure(below="low"),
        ],
    )
    def test_errors(self, goal):
        with pytest.raises(ValueError, match="must be"):
            goal()

    def test_reversed_constraints(self):
        with pytest.raises(ValueError, match="low <= high"):
            goals.Minimum(constraints={0: (3, 1)})


class TestAskAndTell:
    def test_points_that_are_asked_count(self):
        study = Study(SQUARE, random_state=0)
        first = study.ask(6)
        study.tell(first, wavy(first))
        batches = [study.ask(4) for _ in range(3)]
        X = pd.concat([first, *batches])
        distances = np.abs(X.to_numpy()[:, None] - X.to_numpy()).max(axis=-1) + np.eye(len(X))
        assert distances.min() > 1e-3
        assert X.index.is_unique

    def test_any_order_and_parts(self):
        study = Study(SQUARE, random_state=0)
        X = study.ask(6)
        study.tell(X.iloc[[4, 1]], wavy(X.iloc[[4, 1]]))
        study.tell(X.iloc[[0]].to_numpy(), wavy(X.iloc[[0]]))
        rest = X.iloc[[5, 3, 2]]
        study.tell(rest, pd.Series(wavy(rest), index=rest.index, name="y").iloc[::-1], cost=[1.0, 2.0, 3.0])
        runs = study.runs
        assert (runs.state == "done").all()
        assert_allclose(runs.y_, wavy(X))
        assert_allclose(runs.cost, [np.nan, np.nan, 3, 2, np.nan, 1])

    def test_runs_from_elsewhere(self):
        study = Study(SQUARE, n_initial=8, random_state=0)
        X = np.random.default_rng(0).uniform([0, -1], [1, 1], (10, 2))
        study.tell(X, wavy(X), gradients=slopes(X))
        assert (study.runs.origin == "told").all()
        study.ask(2)
        assert (study.runs.origin[-2:] == "goal").all()
        assert_allclose(study.model.predict(study.runs[["x", "y"]][:10]), wavy(X), atol=0.05)

    def test_telling_twice_does_no_harm(self):
        study = Study(SQUARE, random_state=0)
        X = study.ask(4)
        for _ in range(2):
            study.tell(X, wavy(X))
        assert len(study.runs) == 4
        study.tell(X[:1], wavy(X[:1]) + 0.1)
        assert len(study.runs) == 5

    def test_repeated_results_are_ignored(self):
        """A run that failed and ends with a value later is another run, once; new gradients are news."""
        study = Study(SQUARE, random_state=0)
        X = study.ask(3)
        study.tell(X, [np.nan, 1, 2])
        for given in (X, X, X.to_numpy()):
            study.tell(given, [5, 1, 2])
            assert list(study.runs.y_.dropna()) == [1, 2, 5]
        for _ in range(2):
            study.tell(X[1:2], [1], gradients=[[3.0, np.nan]])
            assert len(study.runs) == 5

    def test_runs_outside_the_inputs(self):
        """They are kept and named, and the model is as without them."""
        inputs, few = {"a": (0, 1), "b": [1, 2, 4]}, {"constraints": ["a + b <= 4.5"], "random_state": 0}
        study, other = (Study(inputs, goals.Error(1e-3), **few) for _ in range(2))
        X = study.ask(8)
        f = lambda X: np.sin(3 * X.a) + X.b  # noqa: E731
        study.tell(X, f(X))
        other.tell(X.to_numpy(), f(X))
        for point, words in ([1e6, 1], "a must be from 0 to 1, got 1e"), ([0.5, 3], "b must be a level, got 3"):
            with pytest.warns(UserWarning, match=rf"rows \[1\] of `X` are outside .* kept, but not fitted: {words}"):
                study.tell([[0.25, 2], point], [np.sin(0.75) + 2, 1e9])
        with pytest.warns(UserWarning, match="the constraints .* must be met"):
            study.tell([[0.75, 4]], [7.0])
        other.tell([[0.25, 2]], [np.sin(0.75) + 2])
        assert len(study.runs) == 8 + 4
        assert_array_equal(study.model.predict(X), other.model.predict(X))
        assert len(study.ask(2)) == 2

    def test_the_ends_are_inside(self):
        study = Study({"a": (0.1, 0.3), "b": [0.1, 0.2]}, random_state=0)
        study.tell([[0.1, 0.1], [0.1 + 0.2, 0.2], [0.3, 0.3 - 0.1]], [1.0, 2.0, 3.0])
        assert len(study.model.predict(study.runs[["a", "b"]])) == 3

    def test_fixed_inputs_and_gradients_by_name(self):
        study = Study({"a": (0, 1), "c": 2.0, "b": (-1, 1)}, random_state=0)
        X = study.ask(6)
        assert list(X.columns) == ["a", "c", "b"]
        G = pd.DataFrame({"dy_b": 2 * X.a * X.b, "dy_c": np.nan, "dy_a": 3 * np.cos(3 * X.a) + X.b**2})
        study.tell(X, np.sin(3 * X.a) + X.a * X.b**2, gradients=G)
        fresh = pd.DataFrame({"a": [0.3, 0.7], "b": [0.2, -0.5]})
        assert_allclose(study.model.predict_gradient(fresh), slopes(fresh), atol=0.3)

    def test_failures_are_avoided(self):
        """A quarter of the inputs fails; without a classifier, fewer than 6 of 40 later runs fail in 4% of cases."""
        study = Study(SQUARE, goals.Error(1e-6), n_initial=16, filling=0.0, max_runs=56, random_state=0)
        fails = lambda X: np.where((X.x > 0.5) & (X.y > 0), np.nan, wavy(X))  # noqa: E731
        followed(study, fails)
        runs = study.runs
        assert (runs.state[:16] == "failed").sum() == 4
        assert (runs.state[16:] == "failed").sum() < 6
        assert "failed" in str(study.report())
        works = Failing.of(study._store.runs(), study._space).works(np.array([[0.8, 0.6], [0.2, -0.5]]))
        assert works[0] < 0.3 < 0.7 < works[1]

    def test_all_runs_fail(self):
        study = Study(SQUARE, random_state=0)
        for _ in range(3):
            X = study.ask(4)
            study.tell(X, np.full(4, np.nan))
        assert study.verdict.reason == "failing"
        assert "no value" in study.verdict.text
        assert (study.runs.state == "failed").all()
        with pytest.raises(ValueError, match="at least 3 runs with values, got 0"):
            study.model  # noqa: B018
        assert "too few runs" in str(study.report())
        X = study.ask(4)
        study.tell(X, wavy(X))
        assert study.verdict.reason != "failing"

    def test_a_constant(self):
        study = Study(SQUARE, goals.Error(0.1), random_state=0)
        X = study.ask(8)
        study.tell(X, np.ones(8))
        assert len(study.ask(2)) == 2

    def test_noisy_runs_may_be_repeated_but_not_in_a_batch(self):
        rng, study = np.random.default_rng(0), Study({"x": (0, 1)}, goals.Minimum(), random_state=0)
        for _ in range(6):
            X = study.ask(4)
            study.tell(X, (X.x - 0.4) ** 2 + 0.1 * rng.normal(size=4))
            assert np.diff(np.sort(X.x)).min() > 1e-3

    def test_what_to_compute(self):
        """Gradients that cost little more than values are computed, dear ones not once the model knows the function."""
        study = Study(SQUARE, goals.Error(1e-4), random_state=0)
        for costs, expected in (({"value": 1, "gradient": 1.1}, "gradient"), ({"value": 1, "gradient": 100}, "value")):
            X = study.ask(6, costs=costs)
            assert (X["compute"] == expected).all()
            points = X[["x", "y"]]
            G = slopes(points)
            G[X["compute"] == "value"] = np.nan
            study.tell(X, wavy(points), gradients=G)
        for costs in ({"gradients": 1}, {"value": 0}, 3):
            with pytest.raises(ValueError, match="`costs` must be"):
                study.ask(1, costs=costs)

    def test_constraints_hold(self):
        study = Study(BRANIN, goals.Minimum(), constraints=["x + y <= 10", "y >= 1"], max_runs=24, random_state=0)
        followed(study, branin)
        runs = study.runs
        assert list(runs.columns[:3]) == ["x", "y", "y_"]
        assert (runs.x + runs.y <= 10 + 1e-9).all()
        assert (runs.y >= 1 - 1e-9).all()

    def test_the_same_seed_asks_the_same(self):
        first, second = (followed(Study(SQUARE, goals.Error(0.03), random_state=5), wavy) for _ in range(2))
        pd.testing.assert_frame_equal(first.runs, second.runs)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"X": np.zeros((2, 3)), "y": [0, 1]}, "points of the 2 inputs"),
            ({"X": pd.DataFrame({"x": [0.0]}), "y": [0]}, "got none for .'y'"),
            ({"X": np.zeros((2, 2)), "y": [1.0]}, r"must have the shape \(2,\)"),
            ({"X": np.zeros((2, 2)), "y": [0, 1], "gradients": np.zeros((2, 3))}, "must have the shape"),
            ({"X": [[np.nan, 0]], "y": [1.0]}, "`X` must be finite"),
            ({"X": np.zeros((1, 2)), "y": [1.0], "message": ["a", "b"]}, "one text for each of 1 runs"),
            ({"X": np.zeros((1, 2)), "y": [["a"]]}, "`y` must be an array of numbers"),
        ],
    )
    def test_errors_of_tell(self, arguments, message):
        study = Study(SQUARE)
        with pytest.raises(ValueError, match=message):
            study.tell(**arguments)
        assert len(study.runs) == 0

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"n_initial": 0}, "`n_initial` must be"),
            ({"max_runs": 2.5}, "`max_runs` must be"),
            ({"filling": 2}, "`filling` must be"),
            ({"design": "grid"}, "`design` must be one of"),
        ],
    )
    def test_errors_of_studies(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            Study(SQUARE, **arguments)
        with pytest.raises(ValueError, match="`n` must be"):
            Study(SQUARE).ask(0)
        with pytest.raises(ValueError, match="`constraints` must be met somewhere"):
            Study(SQUARE, constraints=["x >= 2"])
        with pytest.raises(TypeError, match=r"one of nurf\.goals: Error, Minimum"):
            Study(SQUARE, "error")

    def test_another_number_of_outputs_is_an_error(self):
        study = Study(SQUARE, random_state=0)
        X = study.ask(2)
        study.tell(X, wavy(X))
        with pytest.raises(ValueError, match="1 outputs, as in the runs before, got 2"):
            study.tell(X, np.zeros((2, 2)))


class TestFiles:
    def test_a_study_goes_on_in_another_process(self, tmp_path):
        path = tmp_path / "wing.study"
        study = Study(MIXED, goals.Minimum(0.02, constraints={1: (None, 3.0)}), path=path, max_runs=40, random_state=0)
        X = study.ask(14)
        study.tell(X, np.stack([X.r * X.L, X.z], axis=1))
        other = nurf.load(path)
        assert other.goal == study.goal
        pd.testing.assert_frame_equal(other.runs, study.runs)
        study.save(tmp_path / "copy.study")
        copy = nurf.load(tmp_path / "copy.study")
        pd.testing.assert_frame_equal(copy.ask(3), other.ask(3))
        assert len(study.runs) == 17

    def test_in_memory_and_in_a_file_are_the_same(self, tmp_path):
        paths = None, tmp_path / "a.study"
        first, second = (followed(Study(SQUARE, goals.Error(0.03), path=p, random_state=1), wavy) for p in paths)
        pd.testing.assert_frame_equal(first.runs, second.runs)
        first.save(tmp_path / "b.study")
        pd.testing.assert_frame_equal(nurf.load(tmp_path / "b.study").runs, second.runs)

    def test_a_model_of_ones_own(self, tmp_path):
        model = nurf.RandomFeatureRegressor(40, width=0.3, random_state=0)
        study = Study(SQUARE, goals.Error(0.05), path=tmp_path / "a", model=model, random_state=0)
        X = study.ask(30)
        study.tell(X, wavy(X))
        assert type(nurf.load(tmp_path / "a").model) is nurf.RandomFeatureRegressor
        assert len(study.ask(2)) == 2

    def test_an_old_file_is_not_overwritten(self, tmp_path):
        Study(SQUARE, path=tmp_path / "a")
        with pytest.raises(FileExistsError, match=r"exists: `nurf\.load` opens it"):
            Study(SQUARE, path=tmp_path / "a")
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_files_that_are_no_studies(self, tmp_path):
        with sqlite3.connect(tmp_path / "other.db") as base:
            base.execute("CREATE TABLE study (name, value)")
        base.close()
        with pytest.raises(FileFormatError, match="a database of application 0"):
            nurf.load(tmp_path / "other.db")
        (tmp_path / "cut").write_bytes(b"SQLite format 3\0" + b"x" * 500)
        with pytest.raises(FileFormatError, match="SQLite cannot read"):
            nurf.load(tmp_path / "cut")
        with pytest.raises(FileNotFoundError):
            nurf.load(tmp_path / "none")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ("DROP TABLE runs", "tables study, runs and answers, got none for .'runs'"),
            ("DELETE FROM study WHERE name = 'goal'", "KeyError: 'goal'"),
            ("UPDATE study SET value = '{' WHERE name = 'space'", "the entry space must be JSON, got '{'"),
            ("UPDATE study SET value = '{}' WHERE name = 'goal'", "KeyError: 'name'"),
            ("UPDATE study SET value = '\"x\"' WHERE name = 'max_runs'", "`max_runs` must be"),
            ("UPDATE runs SET x = '[1, 2' WHERE run = 2", r"x of run 2 must be JSON, got '\[1, 2'"),
            ("UPDATE runs SET x = '[1]' WHERE run = 2", "run 2 must have 2 inputs"),
            ("UPDATE runs SET x = '[[1], 2]' WHERE run = 2", "run 2 must have a state, inputs and 1 values"),
            ("UPDATE runs SET y = '[1, 2]' WHERE run = 3", "run 3 must have a state, inputs and 1 values"),
            ("UPDATE runs SET y = NULL WHERE run = 1", "run 1 must have a state"),
            ("UPDATE runs SET y = '3' WHERE run = 3", "run 3 must have a state"),
            ("UPDATE runs SET gradients = '[[1]]' WHERE run = 3", "run 3 must have 2 inputs and partial derivatives"),
            ("UPDATE runs SET state = 'lost' WHERE run = 3", "run 3 must have a state"),
            ("UPDATE answers SET value = '[]'", "the answer of 6 runs must have a loss"),
        ],
    )
    def test_damaged_entries(self, tmp_path, change, words):
        path = tmp_path / "a.study"
        study = Study(SQUARE, path=path, random_state=0)
        X = study.ask(6)
        study.tell(X, wavy(X))
        assert study.answer.loss > 0
        with sqlite3.connect(path) as base:
            base.execute(change)
        base.close()
        with pytest.raises(FileFormatError, match=rf"a\.study.*{words}"):
            nurf.load(path)

    def test_damaged_pages(self, tmp_path):
        """Whatever part of a file is overwritten, there is a study or an error that names the file."""
        path, study = tmp_path / "a.study", Study(SQUARE, random_state=0)
        X = study.ask(60)
        study.tell(X, wavy(X))
        study.save(path)
        content, refused = path.read_bytes(), 0
        for start in range(100, len(content), 2048):
            path.write_bytes(content[:start] + b"\xff" * 600 + content[start + 600 :])
            try:
                assert len(nurf.load(path).runs) <= 60
            except FileFormatError as error:
                assert "a.study" in str(error)  # noqa: PT017
                refused += 1
        assert refused > 2
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(FileFormatError, match=r"a\.study: SQLite cannot read the file"):
            nurf.load(path)

    def test_distributions_of_ones_own_have_no_file(self):
        class Own(type(norm)):
            pass

        with pytest.raises(TypeError, match=r"distributions of scipy\.stats, got .* for a"):
            Study({"a": Own(name="own")()})

    def test_discrete_distributions(self, tmp_path):
        Study({"a": poisson(3), "b": (0, 1)}, path=tmp_path / "a", random_state=0)
        X = nurf.load(tmp_path / "a").ask(6)
        assert (X.a == X.a.round()).all()


def test_nothing_is_left_open():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        followed(Study({"x": (0, 1)}, goals.Error(0.05), random_state=0), lambda X: np.sin(3 * X.x))
