"""Infinitely wide networks: what is learned, from which data, and what is said about it."""

import logging
import pickle
from copy import copy
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

from nurf import Jet, KernelFeatureRegressor
from nurf._threads import all_threads, one_thread
from nurf.choosing import POLICY, assign_folds, decide
from nurf.engines import Learning, WideEngine, n_directions, thinned
from nurf.engines._likelihood import LearningProblem, learn
from nurf.engines._scales import (
    HIGHEST_SCALE,
    LOWEST_SCALE,
    Hyperparameters,
    InputScales,
    LinearMap,
    Prior,
    gradient_map,
    starts,
)
from nurf.jets import DERIVATIVE_KINDS
from nurf.kernels import RADIAL_KERNELS, GaussianKernel, MaternKernel
from nurf.solvers.process import CRITERIA, HeldOutErrors, Process, ProcessRows, RestrictedLikelihood, row_total

PAIRS = [(kernel, name) for kernel in RADIAL_KERNELS for name in CRITERIA]


def f(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] ** 2


def gradient(X):
    result = np.zeros_like(X)
    result[:, 0], result[:, 1] = 2 * np.cos(2 * X[:, 0]), 2 * X[:, 1]
    return result


def hessian(X):
    result = np.zeros((*X.shape, X.shape[1]))
    result[:, 0, 0], result[:, 1, 1] = -4 * np.sin(2 * X[:, 0]), 2
    return result


def points(n=20, d=2, seed=0):
    return np.random.default_rng([seed, n, d]).uniform(-1, 1, (n, d))


def model(kernel="gaussian", **parameters):
    return KernelFeatureRegressor(kernel, **parameters)


@cache
def fitted(n=20, d=2, seed=0, **parameters):
    """A fit to exact values and gradients; several tests read the same."""
    X = points(n, d, seed)
    return model(**parameters).fit(X, f(X), gradients=gradient(X))


def error(estimator, truth=f, d=2):
    """The root mean square error at fresh points, over the standard deviation of the values."""
    X = points(500, d, 99)
    return np.sqrt(np.mean((estimator.predict(X) - truth(X)) ** 2)) / truth(X).std()


def engine(jet, kernels=(GaussianKernel(),), learning=Learning(), max_rows=10**4, **options):  # noqa: B008
    """The engine of infinitely wide networks with a constant mean, by the likelihood."""
    return WideEngine(jet, kernels, 0, CRITERIA["likelihood"], learning, max_rows, **options)


def fit_wide(*engines):
    """The fit that is chosen, and all attempts."""
    choice = decide(engines, POLICY)
    return choice.winner.engine.fit(choice.winner, engines[0].jet), choice.attempts


def noisy(seed=0, n=40, of_values=0.05, of_gradients=0.2):
    rng, X = np.random.default_rng([seed, 7]), points(n, 2, seed)
    return X, f(X) + of_values * rng.normal(size=n), gradient(X) + of_gradients * rng.normal(size=(n, 2))


@cache
def fitted_to_noisy():
    """The fit to ``noisy()``; several tests read it."""
    X, y, gradients = noisy()
    return model().fit(X, y, gradients=gradients)


class TestScales:
    units = np.array([1.0, 0.5, 4.0])

    @pytest.mark.parametrize("scales", [InputScales(units), LinearMap(units, 2), LinearMap(units, 1)], ids=str)
    def test_coordinates_and_their_derivatives(self, scales):
        """Central differences with the step 1e-6: errors of 1e-12, and of rounding, 1e-10."""
        rng = np.random.default_rng(0)
        theta = scales.coordinates(rng.normal(size=(3, 3)))
        slopes, step, h = rng.normal(size=scales.metric(theta).shape), rng.normal(size=len(theta)), 1e-6
        low, high = (scales.metric(theta + sign * h * step) for sign in (-1, 1))
        assert_allclose(
            scales.pullback(theta, slopes) @ step, np.sum(slopes * (high - low)) / (2 * h), rtol=1e-7, atol=1e-7
        )
        prior = Prior()
        low, high = (scales.penalty(theta + sign * h * step, prior)[0] for sign in (-1, 1))
        assert_allclose(scales.penalty(theta, prior)[1] @ step, (high - low) / (2 * h), rtol=1e-7, atol=1e-7)
        assert len(scales.bounds(theta)) == len(theta)
        metric = scales.metric(theta)
        again = scales.metric(scales.coordinates(metric))
        assert_allclose(again.T @ again, metric.T @ metric, atol=1e-12)  # a map is known up to a rotation

    def test_input_scales_are_within_bounds(self):
        scales = InputScales(self.units)
        found = np.exp(scales.coordinates(np.diag([0.0, 1e9, 1.0])))
        assert_allclose(found, [LOWEST_SCALE, HIGHEST_SCALE, 0.25])

    def test_directions_of_gradients(self):
        """Eigenvectors of the mean of ``g g^T``."""
        G = np.random.default_rng(0).normal(size=(30, 3)) @ np.diag([3.0, 1.0, 1e-4])
        found, covariance = gradient_map(G, 2), G.T @ G / 30
        assert_allclose(found.T @ found, covariance, atol=1e-3)
        assert n_directions(G, 0.9999) == 2
        assert n_directions(G[:, :2] * 0, 0.9999) == 1
        assert n_directions(G, 0.5) == 1

    @pytest.mark.parametrize("rank", [1, 2, 3])
    def test_a_map_to_more_directions_than_gradients(self, rank):
        assert gradient_map(np.array([[1.0, 2.0, 3.0]]), rank).shape == (rank, 3)

    def test_gradients_show_the_scales(self):
        """For the Gaussian kernel, the mean square of a partial is that of the scale, in units of the variance."""
        X, gradients = points(10), np.array([[3.0, 0.0]] * 10)
        gradients[4:, 0] = np.nan
        first = next(starts(Jet(X, f(X), gradients), 1 / X.std(axis=0), GaussianKernel()))
        assert_allclose(first.metric[0, 0], 3.0)
        assert 0 < first.metric[1, 1] < 1e-3


class TestLearning:
    @pytest.mark.parametrize(("kernel", "criterion"), PAIRS)
    def test_lowers_the_criterion(self, kernel, criterion):
        jet = Jet(*noisy(n=15))
        X = jet.X
        rows, scales, kernel = ProcessRows.of(jet), InputScales(1 / X.std(axis=0)), RADIAL_KERNELS[kernel]()
        start = next(starts(jet, scales.units, kernel))
        prior = Prior()
        problem = LearningProblem(rows, kernel, scales, CRITERIA[criterion], prior)
        values = [learn(problem, start, steps) for steps in (0, 3, 30)]
        assert values[2][1] < values[1][1] < values[0][1]
        found, value, _ = values[2]
        theta = scales.coordinates(found.metric)
        penalty = scales.penalty(theta, prior)[0]
        penalty += np.sum((np.log(found.noise[:2] / prior.noise) / prior.noise_deviation) ** 2) / 2
        process = Process(rows, kernel, found.metric, found.noise)
        # A factorisation of N rows has a backward error of N eps. It moves the logarithms of N eigenvalues, and those
        # of quadratic forms times up to N / 2, by the condition number of the matrix times that.
        N, eigenvalues = len(rows), np.linalg.eigvalsh(np.linalg.pinv(process.precision))
        condition = eigenvalues[-1] / eigenvalues[eigenvalues > 1e-9 * eigenvalues[-1]][0]
        rounding = 2 * N**2 * np.finfo(float).eps * condition
        assert rounding < 1e-3
        assert_allclose(value, CRITERIA[criterion].value(process) + penalty, atol=rounding, rtol=1e-12)

    def test_a_start_that_cannot_be_factored_gets_more_noise(self, monkeypatch):
        """As if rounding errors were larger than the first noise."""
        X = points(15)
        rows, scales = ProcessRows.of(Jet(X, f(X))), InputScales(1 / X.std(axis=0))
        start = Hyperparameters(np.diag(scales.units), np.full(3, 1e-9))

        class Failing(RestrictedLikelihood):
            def value(self, process):
                if process.noise[0] < 1e-6:
                    raise np.linalg.LinAlgError("not positive definite")
                return super().value(process)

        found, value, _ = learn(LearningProblem(rows, GaussianKernel(), scales, Failing(), Prior()), start, 5)
        assert found.noise[0] >= 1e-6
        assert value < 1e50
        assert np.all(found.noise[1:] == 1e-9)  # of which nothing is known

    @pytest.mark.parametrize("kernel", RADIAL_KERNELS)
    def test_inert_inputs_have_scales_near_zero(self, kernel):
        X = points(25, 4)
        for data in ({"gradients": gradient(X)}, {}):
            relevance = model(kernel).fit(X, f(X), **data).relevance_
            assert relevance[2:].max() < 0.05 * relevance[:2].min()

    def test_a_ridge_function_is_found(self):
        """``sin(3 a.x)`` in 8 dimensions from 12 samples with gradients, which show ``a``.

        Over ten seeds, errors with a map are 0.007 to 0.38 times those with scales: 0.1 in the geometric mean, with a
        deviation of the logarithm of 1.1. The mean over four seeds stays below 0.1 exp(3 * 1.1 / 2) = 0.5.
        """
        ratios = []
        for seed in range(4):
            a = np.random.default_rng(seed).normal(size=8)
            a /= np.linalg.norm(a)
            X = points(12, 8, seed)
            data = X, np.sin(3 * X @ a), 3 * np.cos(3 * X @ a)[:, None] * a
            mapped, scaled = (model(metric=metric).fit(*data[:2], gradients=data[2]) for metric in ("map", "scales"))
            assert mapped.metric_.shape == (1, 8)
            direction = mapped.metric_[0] / np.linalg.norm(mapped.metric_)
            assert abs(direction @ a) > 0.99
            assert scaled.metric_.shape == (8, 8)
            errors = [error(found, lambda X, a=a: np.sin(3 * X @ a), 8) for found in (mapped, scaled)]
            ratios.append(errors[0] / errors[1])
        assert np.exp(np.mean(np.log(ratios))) < 0.5
        assert model(metric="auto").fit(*data[:2], gradients=data[2]).metric_.shape == (1, 8)

    def test_the_rank_of_a_map_may_be_given(self):
        X = points(15, 3)
        assert model(metric="map", rank=np.int64(1)).fit(X, f(X), gradients=gradient(X)).metric_.shape == (1, 3)
        assert model(metric="map").fit(X, f(X)).metric_.shape == (3, 3)
        assert model(metric="map").fit(X[:, :1], X[:, 0]).metric_.shape == (1, 1)

    @pytest.mark.parametrize("seed", range(3))
    def test_few_samples_in_many_dimensions_stay_tame(self, seed):
        """With three to six samples, errors are about as large as the values: no more than three times as large.

        A map learned from a few values has any leave-one-out error; fits that trusted it were 2 to 50 times as large.
        """
        for n in (3, 6):
            assert error(fitted(n, 5, seed, kernel="auto"), d=5) < 3

    def test_noise_is_recovered(self):
        """The relative standard error of a deviation is ``1 / sqrt(2 m)`` for ``m`` residuals: 60 values, 120 partials.

        About 15 of the 180 rows go into the function, which may move a deviation by another tenth. One of 20 seeds fits
        the values alone: then there is no noise of gradients. Three of three do so with a probability of about 1e-4.
        """
        used = 0
        for seed in range(3):
            X, y, gradients = noisy(seed, 60)
            estimator = model().fit(X, y, gradients=gradients)
            unit = estimator.scaling_.y_scale / estimator.scaling_.x_scale
            assert abs(np.log(estimator.noise_["values"] / 0.05)) < 5 / np.sqrt(120) + 0.1
            if "gradients" in estimator.noise_:
                used += 1
                for size in estimator.noise_["gradients"] * unit:
                    assert abs(np.log(size / 0.2)) < 5 / np.sqrt(240) + 0.1
        assert used

    @pytest.mark.parametrize("selection", CRITERIA)
    @pytest.mark.parametrize("mean", ["constant", "affine"])
    def test_all_ways_to_choose_fit_a_smooth_function(self, mean, selection):
        assert error(fitted(metric="scales", mean=mean, selection=selection)) < 0.01

    @pytest.mark.parametrize(("truth", "limit"), [(f, 0.5), (lambda X: np.abs(X[:, 0] - 0.1), 0.9)], ids=["", "kink"])
    def test_an_average_is_better_than_the_worst_kernel(self, truth, limit):
        """Of values, with scales: the Matern kernel is the worst for a smooth function, the Gaussian one for a kink.

        Over six seeds, errors are 0.01 to 0.08 times those of the worst kernel for the smooth function (logarithms:
        -3.5, deviation 0.8), and 0.29 to 0.61 times for the kink (-0.85, deviation 0.3). The means over three seeds
        stay below -3.5 + 4 * 0.8 / sqrt(3) = -1.6 and -0.85 + 4 * 0.3 / sqrt(3) = -0.15.
        """
        ratios = []
        for seed in range(3):
            X = points(40, 2, seed)
            fits = [model(kernel, metric="scales").fit(X, truth(X)) for kernel in ("auto", *RADIAL_KERNELS)]
            auto, *single = (error(fit, truth) for fit in fits)
            ratios.append(auto / max(single))
        assert np.exp(np.mean(np.log(ratios))) < limit

    def test_a_noisy_partial_does_not_spoil_the_others(self):
        """With noise of size one in one partial and none in the other, both are found, and the error stays small.

        The logarithm of a deviation from 40 numbers has a standard error of ``1 / sqrt(80) = 0.11``: 5 of them. Values
        have noise, too, and the fit is nearer to the function than a single value. Without it values alone are almost
        enough, and the noise of an exact partial is lost in rounding errors of the likelihood.
        """
        found = []
        for seed in range(11):
            X, rng = points(40, 2, seed), np.random.default_rng([seed, 3])
            slopes = gradient(X)
            slopes[:, 1] += rng.normal(size=40)
            values = f(X) + 1e-2 * rng.normal(size=40)
            (fit, _), fresh = fit_wide(engine(Jet(X, values, slopes))), points(500, 2, 99)
            noise = np.sqrt(fit.posterior.noise[0, 1:-1] * fit.posterior.variances[0])
            separate = "a noise for each partial" in fit.label
            found.append((*noise, separate, np.sqrt(np.mean((fit.network.value(fresh) - f(fresh)) ** 2))))
        first, second, separate, rms = np.median(found, axis=0)
        assert separate
        assert first < 1e-3
        assert abs(np.log(second)) < 5 * 0.11
        assert rms < 1e-2

    def test_one_kernel_and_scales_are_no_average(self):
        estimator = fitted(kernel=MaternKernel(), metric="scales")
        assert estimator.kernel_ == MaternKernel()
        assert_array_equal(estimator.network_.weights, [1.0])
        title, text = estimator.report().lines[0]
        assert title == "kernel"
        assert text.startswith("MaternKernel, a scale for each input")  # with one noise, or one for each partial

    def test_predictions_are_a_mean_of_members(self):
        X, y, gradients = noisy()
        estimator = model("auto").fit(X, y, gradients=gradients)
        network, fresh = estimator.network_, points(9, seed=1)
        assert len(network.members) == len(network.weights) > 1
        assert_allclose(network.weights.sum(), 1.0)
        assert np.all(np.diff(network.weights) <= 0)
        means = [member.value(fresh) for member in network.members]
        assert_allclose(estimator.predict(fresh), network.weights @ means, rtol=1e-8, atol=1e-8)
        slopes = np.tensordot(network.weights, [member.gradient(fresh) for member in network.members], 1)
        assert_allclose(estimator.predict_gradient(fresh), slopes, rtol=1e-7, atol=1e-7)
        assert estimator.kernel_ == network.members[0].kernel
        assert f"{network.weights[0]:.0%} " in dict(estimator.report().lines)["kernel"]

    def test_weights_of_candidates(self):
        learning = Learning(power=2.0, least_weight=0.1, most=3, most_rows=100)
        order, weights = learning.averaged(np.array([2.0, 1.0, 10.0, 1.25]), 10)
        assert_array_equal(order, [1, 3, 0])
        assert_allclose(weights, np.array([1.0, 0.64, 0.25]) / 1.89)
        assert_array_equal(learning.averaged(np.array([2.0, 1.0, 3.0, 1.25]), 50)[0], [1, 3])  # two of 50 rows
        assert_array_equal(learning.averaged(np.array([2.0, 1.0]), 1000)[0], [1])
        for errors in ([0.0, 1.0, 0.0], [1.0, np.inf, 1.0]):  # all is known, nothing is known
            order, weights = learning.averaged(np.array(errors), 10)
            assert_array_equal(order, [0, 2])
            assert_allclose(weights, 0.5)
        assert_allclose(learning.averaged(np.full(2, np.inf), 10)[1], 0.5)

    def test_parts_of_the_data_come_first(self):
        """Scales are learned on 30 and 60 of 100 samples first, each part with values."""
        X, A = points(40), points(60, seed=1)
        jet = Jet(X, f(X)) + Jet(A, np.full(60, np.nan), gradient(A))
        learning = Learning(rows=(48, 96), min_samples=2)
        assert learning.sizes(jet) == [30, 60, 100]
        full = engine(jet, learning=learning)
        fitted = [full.judge("average", size).found.jet for size in (30, 60, 100)]
        assert [len(part) for part in fitted] == [30, 60, 100]
        assert [np.count_nonzero(part.has_value) for part in fitted] == [12, 24, 40]
        fit, attempts = fit_wide(full, engine(jet.only(()), learning=learning, data="values alone"))
        of_data = {data: [each.size for each in attempts if each.data == data] for data in ("all data", "values alone")}
        assert of_data == {"all data": [30, 60, 100], "values alone": [40]}
        assert np.sqrt(np.mean((fit.network.value(points(200, seed=3)) - f(points(200, seed=3))) ** 2)) < 0.01


class TestThreads:
    @pytest.fixture
    def threads(self):
        """The numbers of threads of BLAS, which are three before."""

        def numbers():
            return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

        with threadpool_limits(3, user_api="blas"):
            yield numbers

    def test_a_limit_ends_with_its_last_user(self, threads):
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        assert threads() == {1}
        with all_threads():
            assert threads() == {3}
        assert threads() == {1}
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == {3}

    def test_fits_take_one_thread_and_large_matrices_all(self, threads, monkeypatch):
        seen = []

        def average(engine, *_):
            seen.append(threads())
            raise ZeroDivisionError

        monkeypatch.setattr(WideEngine, "_average", average)
        X = points(200)
        with pytest.raises(ZeroDivisionError):
            KernelFeatureRegressor().fit(X, f(X))
        with one_thread(), pytest.raises(ZeroDivisionError):
            engine(Jet(X, f(X)), learning=Learning(threaded_rows=200)).judge("average", 200)
        assert seen == [{1}, {3}]
        assert threads() == {3}


class TestRounding:
    """Predictions are functions: they do not depend on how a sum is rounded, and their differences are their slopes.

    Values may be wrong by 3e-7 standard deviations, up to ten times as much for the largest of many points, and ten
    times more on a machine that rounds as coarsely as ``--rounding`` does. Then central differences of step 1e-2 are
    wrong by up to 3e-3, and by a tenth of that in the median.
    """

    def check(self, estimator, deviations):
        fresh, step, g = 0.9 * points(100, seed=1), 1e-2, estimator.function()
        assert np.max(np.abs([g(x) for x in fresh] - estimator.predict(fresh)) / deviations) < 3e-5
        nearby = estimator.predict(fresh[0] + 1e-9 * points(100, seed=2))
        assert np.max(np.ptp(nearby, axis=0) / deviations) < 6e-5
        moves = step * np.eye(2)
        differences = np.stack([estimator.predict(fresh + h) - estimator.predict(fresh - h) for h in moves], -1)
        slopes = estimator.predict_gradient(fresh)
        typical = np.sqrt(np.mean(slopes**2, axis=(0, -1)))
        wrong = np.median(np.abs(differences / (2 * step) - slopes), axis=(0, -1))
        assert np.max(wrong / typical) < 1e-3

    def test_of_an_easy_output_and_a_kink(self):
        """All outputs share scales and noise, and the easy one wants none."""
        X = points(100)
        y = np.stack([X[:, 0], np.abs(X[:, 1] - 0.1)], axis=1)
        self.check(model("auto").fit(X, y), y.std(axis=0))

    def test_of_a_kernel_that_is_not_smooth_enough(self):
        X = points(15)
        self.check(model("matern", metric="scales").fit(X, f(X), hessians=hessian(X)), f(X).std())

    def test_of_few_samples_of_a_quadratic(self):
        """The likelihood wants no noise at all: then the terms of a sum are a million times as large as the sum."""
        X = points(14)
        y = X[:, 0] ** 2 + X[:, 0] * X[:, 1] + 0.5 * X[:, 1] ** 2
        self.check(model("auto").fit(X, y), y.std())


class TestInvariance:
    """Of fits to noisy data, which are benign: L-BFGS ends near the same optimum.

    It ends if the criterion falls by less than 1e-4 of itself, about 0.02 here. Parameters are then within
    ``sqrt(2 * 0.02)``, a fifth of their standard errors, and predictions within a fifth of their deviations: a tenth of
    the noise.
    """

    @pytest.mark.filterwarnings("ignore:standard deviations of gradients could not be compared")  # of values alone
    def test_of_units(self):
        X, y, gradients = noisy()
        fresh, plain = points(50, seed=1), fitted_to_noisy()
        for x_unit, y_unit in (([1e-3, 7e5], 3e-9), ([1e200, 1e-100], 1e100), ([1.0, 1.0], 1e-200)):
            x_unit = np.array(x_unit)
            other = model().fit(X * x_unit + x_unit, y * y_unit, gradients=gradients * y_unit / x_unit)
            at = fresh * x_unit + x_unit
            values, deviations = other.predict(at, return_std=True)
            assert_allclose(values / y_unit, plain.predict(fresh), atol=5e-3)
            assert_allclose(deviations / y_unit, plain.predict(fresh, return_std=True)[1], rtol=0.05)
            slopes, deviations = other.predict_gradient(at, return_std=True)
            assert_allclose(slopes / y_unit * x_unit, plain.predict_gradient(fresh), atol=2e-2)
            assert_allclose(deviations / y_unit * x_unit, plain.predict_gradient(fresh, return_std=True)[1], rtol=0.05)
            assert_allclose(other.relevance_, plain.relevance_, rtol=0.05)
            assert_allclose(other.noise_["values"] / y_unit, plain.noise_["values"], rtol=0.05)
            assert_allclose(other.function()(at) / y_unit, plain.predict(fresh), atol=5e-3)

    def test_of_the_order_of_the_samples(self):
        X, y, gradients = noisy()
        order = np.random.default_rng(1).permutation(len(y))
        one = fitted_to_noisy()
        other = model().fit(X[order], y[order], gradients=gradients[order])
        assert_allclose(other.predict(X), one.predict(X), atol=5e-3)
        assert_allclose(other.estimated_error_, one.estimated_error_, rtol=0.02)

    def test_of_the_order_of_inputs_and_outputs(self):
        X, y, gradients = noisy()
        rng = np.random.default_rng(1)
        both = np.stack([y, X[:, 1] + 0.05 * rng.normal(size=40)], axis=1)
        slopes = np.stack([gradients, [0.0, 1.0] + 0.2 * rng.normal(size=(40, 2))], axis=1)
        one = model().fit(X, both, gradients=slopes)
        other = model().fit(X[:, ::-1], both[:, ::-1], gradients=slopes[:, ::-1, ::-1])
        assert_allclose(other.predict(X[:, ::-1])[:, ::-1], one.predict(X), atol=5e-3)
        assert one.estimated_error_.shape == (2,)

    def test_rows_given_twice_have_weight_two(self):
        X, y, gradients = noisy()
        twice = model().fit(*(np.concatenate([part, part]) for part in (X, y)), gradients=np.tile(gradients, (2, 1)))
        once = fitted_to_noisy()
        assert_allclose(twice.predict(X), once.predict(X), atol=5e-3)
        assert twice.n_samples_ == 40

    def test_the_unit_of_weights(self):
        X, y, gradients = noisy()
        w = np.random.default_rng(0).uniform(0.5, 2, 40)
        one, other = (
            model(metric="scales").fit(X, y, gradients=gradients, sample_weight=unit * w) for unit in (1.0, 1e200)
        )
        assert_allclose(other.predict(X), one.predict(X), atol=5e-3)

    @pytest.mark.parametrize("least", [1e-9, 1e-300])
    def test_a_sample_of_small_weight_hardly_counts(self, least):
        X, y, gradients = noisy()
        spoilt, w = y.copy(), np.ones(40)
        spoilt[3], w[3] = 1e3, least
        weights = {"sample_weight": w, "derivative_weight": np.ones(40)}
        weighted = model(metric="scales").fit(X, spoilt, gradients=gradients, **weights)
        assert error(weighted) < 0.15

    @pytest.mark.parametrize("seed", [0, 51])
    @pytest.mark.parametrize("mean", ["constant", "affine"])
    def test_weights_of_all_sizes(self, mean, seed):
        X, y, gradients = noisy()
        w = 10.0 ** np.random.default_rng(seed).uniform(-90, 0, 40)
        for data in ({"sample_weight": w}, {"derivative_weight": w}, {"sample_weight": np.where(w < 1e-40, 1e-300, 1)}):
            estimator = model(metric="scales", mean=mean).fit(X, y, gradients=gradients, **data)
            assert np.all(np.isfinite(estimator.predict_interval(X)))


class TestFewRows:
    def test_thinned_keeps_all_values_and_spread_derivatives(self):
        X = points(30)
        X[1:20] = X[0] + 1e-3 * points(19, seed=1)
        jet = Jet(X, f(X), gradient(X), hessian(X))
        assert thinned(jet, row_total(jet))[0] is jet
        part, index = thinned(jet, 90)
        assert_array_equal(part.X, X[index])
        assert row_total(jet) == 30 * 6
        rows = ProcessRows.of(part)
        assert len(rows) <= 90
        assert np.count_nonzero(rows.orders == 0) == 30
        with_slopes = np.unique(rows.samples[rows.orders == 1])
        assert len(with_slopes) == 12
        assert np.count_nonzero(with_slopes < 20) <= 3  # one of those close to each other, or little more
        assert len(ProcessRows.of(thinned(jet, 30)[0])) == 30

    def test_thinned_drops_points_without_anything(self):
        A = points(15, seed=1)
        jet = Jet(points(5), f(points(5))) + Jet(A, np.full(15, np.nan), gradient(A))
        part, index = thinned(jet, 15)
        assert len(part) == 10
        assert_array_equal(part.X, jet.X[index])
        assert np.count_nonzero(part.has_value) == 5

    def test_a_part_of_the_gradients_is_used(self):
        estimator = fitted(max_rows=40)
        assert estimator.n_rows_ == 40
        assert "40 of 60 values and derivatives used, for `max_rows`" in str(estimator.report())
        assert error(estimator) < 0.05

    @pytest.mark.parametrize("kinds", [(), ("gradients",), ("gradients", "hessians")], ids=len)
    @pytest.mark.parametrize("max_rows", [1, 2, 7, 25])
    def test_thinned_to_less_than_the_values(self, max_rows, kinds):
        """Values alone, or half of the rows values: of the samples that are spread, few of those close together."""
        X = points(60)
        X[10:50] = X[10] + 1e-3 * points(40, seed=1)
        jet = Jet(X, f(X), gradient(X), hessian(X)).only(kinds)
        part, index = thinned(jet, max_rows)
        rows = ProcessRows.of(part)
        assert 1 <= len(rows) <= max_rows
        assert len(part) == len(set(index)) == (max(1, max_rows // 2) if kinds else max_rows)
        assert part.has_value.all()
        for found, expected in ((part.X, X), (part.y, f(X))):
            assert_array_equal(found, expected[index])
        if max_rows == 25:
            crowded = np.count_nonzero((index >= 10) & (index < 50))
            assert crowded <= max(1, len(part) - 20)  # 20 others are farther from each other

    def test_thinned_covers_the_samples(self):
        """Each chosen as far as possible from those before: no sample is farther from them than twice the least.

        The least is not known, but no less than half the smallest distance of ``n + 1`` samples (Gonzalez 1985).
        """
        X = points(100, 3)
        index = thinned(Jet(X, f(X)), 30)[1]
        to_chosen = np.linalg.norm(X[:, None] - X[index], axis=2).min(axis=1)
        farthest = np.append(index, np.argmax(to_chosen))
        distances = np.linalg.norm(X[farthest][:, None] - X[farthest], axis=2)
        assert to_chosen.max() <= distances[np.triu_indices(31, 1)].min() + 1e-12

    @pytest.mark.parametrize("with_gradients", [False, True])
    def test_more_values_than_rows(self, with_gradients):
        """Some samples are fitted, and the others judge: over 8 seeds, their errors were 0.8 to 1.2 of the true one."""
        X = points(300)
        data = {"gradients": gradient(X)} if with_gradients else {}
        estimator = model(max_rows=30).fit(X, f(X), **data)
        assert estimator.n_rows_ <= 30
        assert estimator.n_samples_ <= 30
        fresh = points(500, seed=99)
        true = np.sqrt(np.mean((estimator.predict(fresh) - f(fresh)) ** 2))
        assert true < 0.2 * f(fresh).std()
        assert 1 / 3 < estimator.estimated_error_ / true < 3
        low, high = estimator.predict_interval(fresh).T
        assert np.mean((low <= f(fresh)) & (f(fresh) <= high)) > 0.6


def learned_by_hand(engine, jet, separate):
    """Scales and noise by the public pieces, from the best start."""
    rows, scales = ProcessRows.of(jet), InputScales(engine.units)
    problem = LearningProblem(rows, GaussianKernel(), scales, engine.criterion, engine.learning.prior)
    first = [start.separate if separate else start for start in starts(jet, engine.units, GaussianKernel())]
    best, *_ = min((learn(problem, start, 0) for start in first), key=lambda found: found[1])
    return learn(problem, best, engine.learning.refit_steps)[0]


class DenseGaussian:
    """Kriging with ``exp(-|A (x - x')|^2 / 2)``, the covariances of values and gradients written out.

    Its rows are the values of all samples, then the gradients sample by sample, if there are any.
    """

    def __init__(self, jet, found):
        self.X, self.M, self.slopes = jet.X, found.metric.T @ found.metric, jet.gradients is not None
        n, d = jet.X.shape
        partials = np.broadcast_to(found.noise[1:-1], d)
        noise = [found.noise[0] / jet.weights(0), *([(partials / jet.weights(1)[:, None]).ravel()] * self.slopes)]
        K = self.block(jet.X, jet.X, self.slopes)
        self.K = K + np.diag(np.concatenate(noise) + np.finfo(float).eps * len(K) / 8 * np.diag(K))
        y = jet.y.reshape(n, -1)
        parts = [y] if not self.slopes else [y, np.moveaxis(jet.gradients.reshape(n, -1, d), 1, 2).reshape(n * d, -1)]
        self.y, self.mean = np.concatenate(parts), np.repeat([1.0, 0.0], [n, len(K) - n])
        self.samples = np.concatenate([np.arange(n), np.repeat(np.arange(n), d)])[: len(K)]

    def block(self, X, Z, slopes):
        """The covariances of values, and of gradients, at ``X`` with those at ``Z``."""
        n, m, d = len(X), len(Z), X.shape[1]
        steps = X[:, None] - Z
        k = np.exp(-np.einsum("nmi,ij,nmj->nm", steps, self.M, steps) / 2)
        if not slopes:
            return k
        first = steps @ self.M * k[..., None]  # by the coordinates of Z
        second = (self.M - np.einsum("nmi,nmj->nmij", steps @ self.M, steps @ self.M)) * k[..., None, None]
        right = np.concatenate([k, first.reshape(n, m * d)], axis=1)
        below = [-np.swapaxes(first, 1, 2).reshape(n * d, m), second.transpose(0, 2, 1, 3).reshape(n * d, m * d)]
        return np.concatenate([right, np.concatenate(below, axis=1)])

    def errors(self, leaves=True):
        """The errors at the values of all samples, each without its rows, or with all."""
        found = []
        for i in range(len(self.X)):
            rest = self.samples != i if leaves else np.ones(len(self.K), bool)
            K, h, y, c = self.K[np.ix_(rest, rest)], self.mean[rest], self.y[rest], self.covariances(i)[rest]
            beta = h @ np.linalg.solve(K, y) / (h @ np.linalg.solve(K, h))
            found.append(self.y[i] - beta - c @ np.linalg.solve(K, y - np.outer(h, beta)))
        return np.array(found)

    def covariances(self, i):
        """The covariances of all rows with the value at a sample, without noise."""
        return self.block(self.X, self.X, self.slopes)[:, i]


class TestEvidence:
    """With few rows for each scale, errors are those of samples that leave, with scales learned without their fold."""

    def check(self, jet, **options):
        wide = engine(jet, **options)
        judged = wide.judge("average", len(jet))
        (member,), fold_of = judged.found.members, assign_folds(jet, POLICY.n_folds)
        expected = np.empty((len(jet), jet.y[:1].size))
        for fold in range(POLICY.n_folds):
            found = learned_by_hand(wide, jet[fold_of != fold], member.separate)
            expected[fold_of == fold] = DenseGaussian(jet, found).errors()[fold_of == fold]
        residuals = DenseGaussian(jet, member.found).errors(leaves=False)
        expected = np.where(np.abs(expected) < np.abs(residuals), residuals, expected)  # a fit errs no less
        assert_allclose(judged.evidence.errors, expected, rtol=1e-5, atol=1e-6)
        assert_allclose(judged.evidence.weights, jet.weights(0))
        squares = jet.weights(0) @ expected**2 / jet.weights(0).sum()
        assert_allclose(judged.error, np.sqrt(squares.sum()), rtol=1e-5)
        return judged

    @pytest.mark.parametrize("outputs", [1, 2])
    def test_of_values(self, outputs):
        X, rng = points(35, 3), np.random.default_rng(3)
        y = np.stack([f(X), X[:, 2] * X[:, 0]], axis=1)[:, :outputs] + 0.05 * rng.normal(size=(35, outputs))
        jet = Jet(X, y[:, 0] if outputs == 1 else y, sample_weight=rng.uniform(0.5, 2, 35))
        judged = self.check(jet)
        closed = HeldOutErrors.one_by_one(judged.found.processes[0], 3)
        assert np.abs(judged.evidence.errors - closed.errors).max() > 0.01  # the scales knew the samples

    def test_of_values_and_gradients(self):
        X, rng = points(13, 3), np.random.default_rng(4)
        slopes = gradient(X) + 0.1 * rng.normal(size=(13, 3))
        self.check(Jet(X, f(X) + 0.05 * rng.normal(size=13), slopes))

    def test_many_rows_leave_in_closed_form(self):
        """There are 20 rows or more for each scale: no scales are learned without them."""
        X, y, _ = noisy(n=45)
        jet = Jet(X, y)
        judged = engine(jet).judge("average", 45)
        dense = DenseGaussian(jet, judged.found.members[0].found)
        left, residuals = dense.errors(), dense.errors(leaves=False)
        expected = np.where(np.abs(left) < np.abs(residuals), residuals, left)
        assert_allclose(judged.evidence.errors, expected, rtol=1e-5, atol=1e-6)

    def test_samples_outside_a_part_judge_it(self):
        X, y, _ = noisy(n=60)
        wide = engine(Jet(X, y), learning=Learning(rows=(30,), min_samples=2))
        judged = wide.judge("average", 30)
        outside = judged.evidence.judges
        assert np.count_nonzero(outside) == 30
        errors = y[outside] - judged.found.network.value(X[outside])
        assert_allclose(judged.evidence.errors[outside, 0], errors)


class TestHonesty:
    """Reported errors over true ones, where scales are as many as half of the samples or a third of them."""

    def test_additive_functions_of_many_inputs(self):
        """Over three seeds, the ratios are 1.1 to 1.2."""
        rng = np.random.default_rng(0)
        X, fresh, sizes = rng.uniform(-1, 1, (161, 50)), rng.uniform(-1, 1, (1000, 50)), rng.uniform(0.5, 2, 50)
        estimator = KernelFeatureRegressor().fit(X, np.sin(2 * X) @ sizes)
        true = np.sqrt(np.mean((estimator.predict(fresh) - np.sin(2 * fresh) @ sizes) ** 2))
        assert 1 / 3 < estimator.estimated_error_ / true < 3

    def test_noise_alone(self):
        """Over three seeds, the ratios are 0.9 to 1.03, and nine of ten values are in the intervals."""
        rng = np.random.default_rng(0)
        X, fresh, y, values = (rng.normal(size=shape) for shape in ((120, 60), (1000, 60), 120, 1000))
        estimator = KernelFeatureRegressor().fit(X, y)
        true = np.sqrt(np.mean((estimator.predict(fresh) - values) ** 2))
        assert 1 / 3 < estimator.estimated_error_ / true < 3
        low, high = estimator.predict_interval(fresh).T
        assert np.mean((low < values) & (values < high)) > 0.9 - 4 * np.sqrt(0.09 / 120)


class TestHostileData:
    @pytest.mark.parametrize("n", [1, 2, 3])
    @pytest.mark.parametrize("d", [1, 3])
    def test_few_samples(self, n, d):
        X = points(n, d)
        for data in ({}, {"gradients": 2 * X}):
            estimator = model("auto").fit(X, np.sum(X**2, axis=1), **data)
            fresh = points(20, d, 5)
            assert np.all(np.isfinite(estimator.predict(fresh)))
            assert np.all(np.isfinite(estimator.predict_gradient(fresh)))
            assert np.all(np.isfinite(estimator.predict_hessian(fresh)))
            assert np.isnan(estimator.estimated_error_) == (n < 3)
            assert ("unknown: it needs at least 3 samples" in str(estimator.report())) == (n < 3)
            if n == 3:
                assert np.all(np.isfinite(estimator.predict_interval(fresh)))
                continue
            for method in (lambda X, e=estimator: e.predict(X, return_std=True), estimator.predict_interval):
                with pytest.raises(ValueError, match=f"need at least 3 samples with a value, got {n}"):
                    method(fresh)

    @pytest.mark.parametrize(
        ("kernel", "known"),
        [("auto", False), ("auto", True), ("gaussian", True), ("matern", False), ("erf", False)],
    )
    def test_constant_values(self, kernel, known):
        X = points()
        data = {"gradients": np.zeros((20, 2))} if known else {}
        estimator = model(kernel).fit(X, np.full(20, 0.1), **data)
        assert_allclose(estimator.predict(points(9, seed=1)), 0.1)
        assert_allclose(estimator.predict_gradient(X), 0.0, atol=1e-12)
        assert_allclose(estimator.estimated_error_, 0.0, atol=1e-12)
        assert_allclose(estimator.predict_interval(X), 0.1)

    def test_constant_inputs(self):
        X = points(20, 3)
        X[:, 2] = 5.0
        estimator = model().fit(X, f(X), gradients=gradient(X))
        assert estimator.relevance_[2] == 0
        assert np.sqrt(np.mean((estimator.predict(X) - f(X)) ** 2)) < 1e-3
        for y in (np.arange(5.0), np.ones(5)):
            same = model("auto").fit(np.ones((5, 3)), y)
            assert_allclose(same.predict(np.ones((2, 3))), y.mean(), rtol=1e-3)

    @pytest.mark.parametrize("noise", [0.0, 0.01])
    def test_points_with_different_values(self, noise):
        """The same points twice: noise is learned, not a jump.

        Gradients that are equal to the last bit say that they have no noise at all, and the kernel matrix is singular.
        Then the fit is as good, but in one of 30 the noise of the values is too large. With noise of 0.01 its logarithm
        has deviation 0.114 over seeds.
        """
        X, rng = points(), np.random.default_rng(0)
        twice, y = np.tile(X, (2, 1)), np.tile(f(X), 2) + 0.1 * rng.normal(size=40)
        estimator = model().fit(twice, y, gradients=np.tile(gradient(X), (2, 1)) + noise * rng.normal(size=(40, 2)))
        assert error(estimator) < 0.15
        if noise:
            assert abs(np.log(estimator.noise_["values"] / 0.1)) < 5 * 0.114

    def test_many_dimensions(self):
        X = points(30, 100)
        assert np.all(np.isfinite(model().fit(X, f(X)).predict(X)))
        V = np.random.default_rng(0).normal(size=(30, 100))
        along = model().fit(X, f(X), gradients=np.sum(V * gradient(X), axis=1), directions=V)
        assert np.all(np.isfinite(along.predict_gradient(X)))
        few = model().fit(X[:2], f(X[:2]), gradients=gradient(X[:2]))
        assert few.predict_gradient(X).shape == (30, 100)

    def test_many_outputs(self):
        X, factors = points(), np.arange(1.0, 21)
        y, slopes = f(X)[:, None] * factors + factors, gradient(X)[:, None] * factors[:, None]
        estimator, single = model().fit(X, y, gradients=slopes), fitted()
        fresh = points(9, seed=1)
        values, deviations = estimator.predict(fresh, return_std=True)
        assert_allclose((values - factors) / factors, np.tile(single.predict(fresh)[:, None], 20), atol=1e-3)
        assert deviations.shape == (9, 20)
        assert estimator.predict_gradient(fresh).shape == (9, 20, 2)
        assert estimator.predict_hessian(fresh).shape == (9, 20, 2, 2)
        assert estimator.predict_interval(fresh).shape == (9, 20, 2)
        assert estimator.estimated_error_.shape == estimator.noise_["values"].shape == (20,)
        assert "less for the other 10 outputs" in str(estimator.report())

    @pytest.mark.parametrize("factor", [1e200, 1e-200])
    def test_outputs_of_extreme_sizes(self, factor):
        X = points()
        estimator = model(metric="scales").fit(X, factor * f(X), gradients=factor * gradient(X))
        values, deviations = estimator.predict(X, return_std=True)
        assert_allclose(values / factor, f(X), atol=1e-3)
        assert np.all(np.isfinite(deviations / factor))
        assert 0 < estimator.noise_["values"] / factor < 1e-2

    def test_wrong_gradients_are_no_worse_than_none(self):
        """Values alone are in the race, by the leave-one-out error of 25 values.

        The logarithms of two such errors differ by ``sqrt(2) / sqrt(2 n) = 0.2`` by chance. A fit that wins so is worse
        by about as much; in the mean over three seeds by less than ``0.2 (0.4 + 3 / sqrt(3)) = 0.43``.
        """
        wrong = {
            "the wrong sign": lambda g, rng: -g,
            "random": lambda g, rng: 3 * rng.normal(size=g.shape),
            "other units": lambda g, rng: 1e-8 * g,
        }
        ratios = []
        for seed in range(3):
            X, y, gradients = noisy(seed, 25, 0.02, 0.0)
            alone = error(model().fit(X, y))
            rng = np.random.default_rng([seed, 11])
            spoilt = (
                model(check_gradients=False).fit(X, y, gradients=spoil(gradients, rng)) for spoil in wrong.values()
            )
            ratios.append([error(found) / alone for found in spoilt])
        assert np.all(np.mean(np.log(ratios), axis=0) < 0.43)

    def test_right_gradients_help(self):
        """From 12 samples: over 30 seeds, the logarithms of the ratios were -6.6, with a standard deviation of 1.3.

        The mean over three seeds stays below -6.6 + 5 * 1.3 / sqrt(3) = -2.8.
        """
        ratios = []
        for seed in range(3):
            X = points(12, 2, seed)
            ratios.append(error(fitted(12, 2, seed, metric="scales")) / error(model(metric="scales").fit(X, f(X))))
        assert np.exp(np.mean(np.log(ratios))) < 0.1


class TestFormsOfDerivatives:
    @pytest.mark.parametrize("metric", ["scales", "map"])
    def test_partial_derivatives_of_one_input_unknown(self, metric):
        X, gradients = points(), gradient(points())
        gradients[:, 1] = np.nan
        estimator = model(metric=metric).fit(X, f(X), gradients=gradients)
        assert error(estimator) < 0.1  # about that of values alone, which take part
        if metric == "map":
            return
        assert "error " in dict(estimator.report().lines)["derivatives"]
        with pytest.warns(UserWarning, match="standard deviations of gradients could not be compared"):
            estimator.predict_gradient(X, return_std=True)

    def test_all_unknown_are_none(self):
        X = points()
        estimator = model().fit(X, f(X), gradients=np.full((20, 2), np.nan), hessians=np.full((20, 2, 2), np.nan))
        assert_allclose(estimator.predict(X), model().fit(X, f(X)).predict(X), atol=1e-6)
        assert dict(estimator.report().lines)["derivatives"] == "none were given"

    def test_at_other_points(self):
        X, A = points(), points(15, seed=1)
        estimator = model().fit(X, f(X), gradients=gradient(A), gradients_at=A)
        assert error(estimator) < 0.02
        assert estimator.n_rows_ == 20 + 30
        assert dict(estimator.report().lines)["derivatives"].startswith("used, error ")
        one = model().fit(X[:1], f(X[:1]), gradients=gradient(A), gradients_at=A)
        assert error(one) < 0.1

    @pytest.mark.parametrize("metric", ["scales", "map"])
    def test_along_directions(self, metric):
        X, V = points(), np.random.default_rng(1).normal(size=(20, 2))
        estimator = model(metric=metric).fit(X, f(X), gradients=np.sum(V * gradient(X), axis=1), directions=V)
        assert estimator.n_rows_ == 40 or metric == "map"  # values alone may be better
        assert error(estimator) < 0.05

    @pytest.mark.parametrize("kernel", RADIAL_KERNELS)
    def test_hessians_alone(self, kernel):
        X = points(15)
        estimator = model(kernel, metric="scales").fit(X, f(X), hessians=hessian(X))
        assert estimator.n_rows_ == 15 * 4
        assert set(estimator.noise_) == {"values", "hessians"}
        assert error(estimator) < 0.1

    def test_gradients_and_hessians(self):
        X = points(10)
        estimator = model(metric="scales").fit(X, f(X), gradients=gradient(X), hessians=hessian(X))
        assert set(estimator.noise_) == {"values", *DERIVATIVE_KINDS.values()}
        assert error(estimator) < 0.05

    def test_of_weight_zero(self):
        X, w = points(), (np.arange(20) < 5).astype(float)
        spoilt = np.where(w[:, None] > 0, gradient(X), 1e6)
        estimator = model().fit(X, f(X), gradients=spoilt, derivative_weight=w)
        assert estimator.n_rows_ == 20 + 10
        assert error(estimator) < 0.05


class TestEstimator:
    @pytest.mark.parametrize("validation", [(points(30, seed=4), f(points(30, seed=4))), 0.3], ids=["samples", "share"])
    def test_validation(self, validation):
        X, y, gradients = noisy()
        estimator = model().fit(X, y, gradients=gradients, validation=validation)
        assert estimator.n_samples_ == (40 if isinstance(validation, tuple) else 28)
        assert 0 < estimator.estimated_error_ < 0.2

    def test_a_share_for_validation_is_one_of_the_values(self):
        X, A = points(), points(30, seed=1)
        estimator = model().fit(X, f(X), gradients=gradient(A), gradients_at=A, validation=0.3)
        assert estimator.n_samples_ == 14 + 30
        assert np.isfinite(estimator.estimated_error_)

    def test_validation_samples_count(self):
        """The error is that of the validation samples, right or wrong."""
        X = points()
        A = points(20, seed=1)
        honest, spoilt = (model().fit(X, f(X), validation=(A, y)) for y in (f(A), f(A) + 1))
        true = np.sqrt(np.mean((f(A) + 1 - spoilt.predict(A)) ** 2))
        assert_allclose(spoilt.estimated_error_, true, rtol=1e-6)
        assert honest.estimated_error_ < 0.1 < spoilt.estimated_error_

    def test_a_failed_fit_leaves_the_estimator_as_it_was(self):
        X, estimator = points(), copy(fitted())
        before, expected = dict(vars(estimator)), estimator.predict(X)
        for change in ({"kernel": "cubic"}, {"metric": "full"}, {"rank": 3}, {"mean": "none"}, {"max_rows": 0}):
            good = {name: getattr(estimator, name) for name in change}
            with pytest.raises(ValueError, match=f"`{next(iter(change))}`"):
                estimator.set_params(**change).fit(X, f(X))
            estimator.set_params(**good)
            assert vars(estimator) == before
        with pytest.raises(ValueError, match="`verbose` must be a whole number >= 0, got -1"):
            estimator.set_params(verbose=-1).fit(X, f(X))
        assert_array_equal(estimator.predict(X), expected)

    def test_a_pickle_is_a_few_times_the_network(self):
        estimator = fitted()
        X = points(9, seed=1)
        expected = estimator.predict_gradient(X, return_std=True), estimator.predict_interval(X)
        estimator.report(), estimator.noise_
        stored = pickle.dumps(estimator)
        assert len(stored) < 10 * len(pickle.dumps(estimator.network_))
        again = pickle.loads(stored)
        for found, wanted in zip(again.predict_gradient(X, return_std=True), expected[0], strict=True):
            assert_allclose(found, wanted, rtol=1e-9)
        assert_allclose(again.predict_interval(X), expected[1], rtol=1e-9)

    def test_predictions_are_those_of_the_network(self):
        """The coefficients are of size 1e6 and cancel each other: sums in another order differ by 1e-15 times 1e7."""
        samples, y, _ = noisy()
        estimator, X = fitted_to_noisy(), points(9, seed=1)
        network, g = estimator.network_, estimator.function()
        assert_allclose(network.value(X), estimator.predict(X), atol=1e-7)
        assert_allclose(network.gradient(X), estimator.predict_gradient(X), atol=1e-6)
        assert_allclose(network.hessian(X), estimator.predict_hessian(X), atol=1e-5)
        assert_allclose(g(X[0]), estimator.predict(X[:1])[0], atol=1e-7)
        assert_allclose(estimator.scales_, np.linalg.norm(estimator.metric_, axis=0))
        sizes = np.sqrt(np.mean(estimator.predict_gradient(samples) ** 2, axis=0))
        assert_allclose(estimator.relevance_, sizes * samples.std(axis=0) / y.std(), rtol=1e-9)

    def test_deviations_and_intervals_cover_noisy_values(self):
        """The share of 1000 fresh values: that of 40 samples has a deviation of 0.05, taken four times."""
        X, y, gradients = noisy(1)
        estimator = model().fit(X, y, gradients=gradients)
        fresh = points(1000, seed=5)
        values = f(fresh) + 0.05 * np.random.default_rng(3).normal(size=1000)
        low, high = estimator.predict_interval(fresh).T
        assert 0.7 < np.mean((low < values) & (values < high)) < 0.999
        means, deviations = estimator.predict(fresh, return_std=True)
        assert 0.7 < np.mean(np.abs(values - means) < 1.645 * deviations) < 0.999

    def test_the_report(self):
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame(points(), columns=["speed", "mass"])
        report = model("auto").fit(X, f(points()), gradients=gradient(points())).report()
        lines = dict(report.lines)
        assert report.title.startswith("An infinitely wide network for 20 samples in 2 dimensions, 60 rows, ")
        assert "Kernel, a " in lines["kernel"]
        assert lines["relevance of inputs"].startswith("speed ")
        assert ", mass " in lines["relevance of inputs"]
        assert lines["noise"].startswith("values ")
        assert "in their units, gradients " in lines["noise"]
        assert "; rounding allows " in lines["noise"]
        assert lines["mean"] == "constant"
        assert lines["derivatives"].startswith("used, error ")
        assert "with all data and" in lines["derivatives"]
        assert "of the standard deviation of the values" in lines["estimated error"]
        assert "race, 20 samples" in lines
        assert report._repr_html_().startswith("<table>")

    def test_the_report_of_gradients_that_do_not_help(self):
        X, y, gradients = noisy(0, 40)
        with pytest.warns(UserWarning, match="`gradients` contradict the values"):
            estimator = model().fit(X, y, gradients=-gradients)
        line = dict(estimator.report().lines)["derivatives"]
        assert line.startswith("not used: they do not help here, they contradict the values (")
        assert set(estimator.noise_) == {"values"}

    def test_many_inputs_in_the_report(self):
        X = points(30, 12)
        assert "and 4 more" in dict(model().fit(X, f(X)).report().lines)["relevance of inputs"]

    def test_progress(self, capsys, caplog):
        X = points()
        with caplog.at_level(logging.WARNING, "nurf"):
            model(metric="scales").fit(X, f(X))
            assert capsys.readouterr().err == ""
            model(metric="scales", verbose=1).fit(X, f(X))
        lines = capsys.readouterr().err.splitlines()
        assert "candidate 1: wide, GaussianKernel, a scale for each input (all data), error " in lines[0]
        assert "estimated error " in lines[-1]

    def test_a_map_is_not_learned_with_scales_only(self):
        with pytest.raises(ValueError, match="`rank` needs a map: `metric` must be 'auto' or 'map', got 'scales'"):
            fitted(metric="scales", rank=1)


def test_a_wave_is_not_taken_for_noise():
    """Ten values of two periods: the likelihood of noise is a minimum of its own, in which long scales end."""
    fresh = np.linspace(0, 1, 500)[:, None]

    def wave(X):
        return np.exp(-X[:, 0]) * np.sin(14 * X[:, 0])

    def error(seed):
        X = np.random.default_rng(seed).uniform(0, 1, (10, 1))
        return np.std(KernelFeatureRegressor().fit(X, wave(X)).predict(fresh) - wave(fresh))

    assert np.median([error(seed) for seed in range(7)]) < 0.5 * np.std(wave(fresh))
