"""What must hold for all data: units, order of rows, odd sizes and numbers; right answers or clear errors."""

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nurf import RandomFeatureRegressor

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
FEW, MANY = 30, 160  # samples: errors are estimated by folds, and by leave-one-out
seeds = st.integers(0, 2**16)
scales = st.floats(-4, 4).map(lambda power: 10.0**power)
shifts = st.floats(-100, 100)


def function(X):
    d = X.shape[1]
    a = np.linspace(1, 2, d) / d
    return np.sin(2 * X @ a) + 0.5 * X[:, 0], 2 * np.cos(2 * X @ a)[:, None] * a + 0.5 * np.eye(d)[0]


def data(seed, n=MANY, d=2, noise=0.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y, gradients = function(X)
    return X, y + noise * rng.normal(size=n), gradients


def model(n_neurons=20, **parameters):
    return RandomFeatureRegressor(n_neurons, **{"random_state": 0, **parameters})


def plain(**parameters):
    """A fit that chooses nothing."""
    fixed = {"alpha": 1e-6, "width": 0.4, "growth": None, "density": "local", "gradient_weight": 0.1}
    return model(**{**fixed, **parameters})


@cache
def fitted(informed=True):
    """The fit that chooses all, to ``data(0, noise=0.05)``; several tests read it."""
    X, y, gradients = data(0, noise=0.05)
    return model().fit(X, y, gradients=gradients if informed else None)


def tolerance(estimator, y):
    """Predictions may differ by the error that the fit itself expects, and by rounding."""
    return 3 * estimator.fit_.error * np.std(y) + 1e-6 * np.ptp(y)


class TestUnits:
    @given(seeds, st.lists(scales, min_size=2, max_size=2), st.lists(shifts, min_size=2, max_size=2), scales, shifts)
    @settings(suppress_health_check=SLOW)
    def test_of_a_fit_with_fixed_alpha_change_nothing(self, seed, units, origin, factor, level):
        """With the alpha fixed and wide neurons rounding is all that differs."""
        X, y, gradients = data(seed)
        units, origin = np.array(units), np.array(origin)
        one = plain().fit(X, y, gradients=gradients)
        Y = units * (X + origin)
        other = plain().fit(Y, factor * (y + level), gradients=factor * gradients / units)
        assert_allclose(other.predict(Y) / factor - level, one.predict(X), atol=1e-5)
        assert_allclose(other.predict_gradient(Y) * units / factor, one.predict_gradient(X), atol=1e-4)

    @given(seeds, scales, shifts, scales, shifts, st.booleans(), st.sampled_from([FEW, MANY]))
    @settings(suppress_health_check=SLOW, max_examples=5)
    def test_of_a_fit_that_chooses_all(self, seed, unit, origin, factor, level, informed, n):
        """Noise makes the best choice clear; rounding can only decide between choices that are as good."""
        X, y, gradients = data(seed, n, noise=0.05)
        one = model().fit(X, y, gradients=gradients if informed else None)
        Y = unit * (X + origin)
        other = model().fit(Y, factor * (y + level), gradients=factor * gradients / unit if informed else None)
        atol = tolerance(one, y)
        assert_allclose(other.predict(Y) / factor - level, one.predict(X), atol=atol)
        assert_allclose(other.predict_gradient(Y) * unit / factor, one.predict_gradient(X), atol=30 * atol)
        # Choices that are as good have errors that were estimated apart, each with a standard error of 1 / sqrt(2 n):
        # 0.13 with 30 samples, and five of these for the difference of two.
        assert_allclose(other.fit_.error, one.fit_.error, rtol=5 * np.sqrt(2) * 0.13)

    @pytest.mark.parametrize("size", [1e-150, 1e150])
    @pytest.mark.parametrize("informed", [False, True])
    def test_values_of_any_size(self, size, informed):
        X, y, gradients = data(0, noise=0.05)
        one, other = fitted(informed), model().fit(X, size * y, gradients=size * gradients if informed else None)
        values, deviations = other.predict(X, return_std=True)
        assert_allclose(values / size, one.predict(X), atol=tolerance(one, y))
        # rounding may choose another fit, as good as this one, which is less sure of single points
        assert_allclose(np.median(deviations / size), np.median(one.predict(X, return_std=True)[1]), rtol=0.3)
        assert_allclose(other.network_.value(X) / size, values / size, atol=1e-6)

    @pytest.mark.parametrize("offset", [1e6, 1e9, -1e9])
    def test_inputs_far_from_the_origin(self, offset):
        """The inputs themselves keep ``16 - log10(offset)`` digits, and the function is taken at what is left."""
        X, y, gradients = data(0, noise=0.05)
        near, far = fitted(), model().fit(X + offset, y, gradients=gradients)
        assert_allclose(far.predict(X + offset), near.predict(X), atol=tolerance(near, y))


class TestOrder:
    @given(seeds, st.booleans(), st.booleans(), st.sampled_from([FEW, MANY]))
    @settings(suppress_health_check=SLOW, max_examples=5)
    def test_of_the_rows_does_not_matter(self, seed, informed, weighted, n):
        rng = np.random.default_rng(seed)
        X, y, gradients = data(seed, n, noise=0.05)
        weights = rng.uniform(0.5, 2, n)
        fits = [
            model().fit(
                X[rows],
                y[rows],
                gradients=gradients[rows] if informed else None,
                sample_weight=weights[rows] if weighted else None,
            )
            for rows in (np.arange(n), rng.permutation(n))
        ]
        assert_array_equal(fits[0].predict(X), fits[1].predict(X))
        assert fits[0].alpha_ == fits[1].alpha_

    @given(seeds)
    @settings(suppress_health_check=SLOW, max_examples=3)
    def test_of_rows_that_differ_in_their_gradients_alone(self, seed):
        rng = np.random.default_rng(seed)
        X, y, gradients = (np.repeat(part, 2, axis=0) for part in data(seed, MANY // 2))
        gradients = gradients + 0.3 * rng.normal(size=gradients.shape)
        order = rng.permutation(MANY)
        first, second = (model().fit(X[rows], y[rows], gradients=gradients[rows]) for rows in (slice(None), order))
        assert_array_equal(first.predict(X), second.predict(X))

    @given(seeds)
    @settings(suppress_health_check=SLOW, max_examples=2)
    def test_of_one_derivative_a_row_at_the_same_points(self, seed):
        rng = np.random.default_rng(seed)
        X, y, gradients = data(seed, 12)
        P, G = (np.repeat(part, 2, axis=0) for part in (X, gradients))
        V = rng.normal(size=P.shape)
        slopes, order = np.sum(V * G, axis=1), rng.permutation(24)
        first, second = (
            model().fit(X, y, gradients=slopes[rows], directions=V[rows], gradients_at=P[rows])
            for rows in (slice(None), order)
        )
        # Directions become frames row by row, before the rows are put in order: that rounds.
        assert_allclose(first.predict(X), second.predict(X), atol=tolerance(first, y))


class TestSizes:
    @given(seeds, st.integers(1, 3), st.integers(1, 4), st.booleans())
    @settings(suppress_health_check=SLOW, max_examples=10)
    def test_few_rows(self, seed, n, d, informed):
        X, y, gradients = data(seed, n, d)
        estimator = model(random_state=seed).fit(X, y, gradients=gradients if informed else None)
        values = estimator.predict(X)
        assert np.all(np.isfinite(values))
        if n >= 3:  # with fewer, nothing is known about the error
            deviations = estimator.predict(X, return_std=True)[1]
            assert np.all(np.isfinite(deviations) & (deviations >= 0))
        assert values.min() >= y.min() - np.ptp(y) - 1e-9
        assert values.max() <= y.max() + np.ptp(y) + 1e-9
        if n == 1:
            assert_allclose(values, y, rtol=1e-9)
        assert str(estimator.report()).startswith(f"{estimator.fit_.network.features.n_neurons} neurons for {n} ")

    @given(seeds, st.integers(4, 20))
    @settings(suppress_health_check=SLOW, max_examples=3)
    def test_fewer_rows_than_neurons(self, seed, n):
        """No worse than the mean of the values, at the samples: with four of them, more may not be known."""
        X, y, gradients = data(seed, n)
        estimator = model(40).fit(X, y, gradients=gradients)
        assert np.std(estimator.predict(X) - y) < np.std(y)

    @pytest.mark.parametrize("d", [1, 20])
    @pytest.mark.parametrize("informed", [False, True])
    def test_of_dimensions(self, d, informed):
        X, y, gradients = data(0, d=d)
        estimator = model().fit(X, y, gradients=gradients if informed else None)
        fresh, truth, _ = data(1, 500, d)
        assert np.std(estimator.predict(fresh) - truth) < 0.2 * np.std(truth)
        assert estimator.predict_gradient(fresh).shape == (500, d)

    @given(seeds, st.floats(-1e6, 1e6), st.booleans())
    @settings(suppress_health_check=SLOW, max_examples=4)
    def test_constant_columns(self, seed, value, informed):
        X, y, gradients = data(seed)
        wide = np.column_stack([X[:, 0], np.full(MANY, value), X[:, 1]])
        estimator = model().fit(wide, y, gradients=np.insert(gradients, 1, 0.0, axis=1) if informed else None)
        assert np.std(estimator.predict(wide) - y) < 0.1
        assert np.all(np.isfinite(estimator.predict_gradient(wide)))


class TestRepeatedRows:
    @given(seeds, st.booleans(), st.sampled_from([FEW, MANY]))
    @settings(suppress_health_check=SLOW, max_examples=4)
    def test_the_same_row_twice(self, seed, informed, n):
        X, y, gradients = (np.repeat(part, 2, axis=0) for part in data(seed, n))
        estimator = model().fit(X, y, gradients=gradients if informed else None)
        fresh, truth, _ = data(seed + 1, 200)
        assert np.std(estimator.predict(fresh) - truth) < 0.2 * np.std(truth)

    @given(seeds, st.booleans())
    @settings(suppress_health_check=SLOW, max_examples=4)
    def test_other_values_at_the_same_points_are_noise(self, seed, informed):
        """Between them is the best that a function can do, and the deviation says how far they are apart.

        Noise of 0.3 at 320 samples: 20 neurons follow it by ``0.3 sqrt(21 / 320) = 0.08``, and its estimate from some
        hundred samples deviates by 0.02.
        """
        X, y, gradients = (np.repeat(part, 2, axis=0) for part in data(seed))
        y = y + np.tile([0.3, -0.3], MANY)
        estimator = model().fit(X, y, gradients=gradients if informed else None)
        values, deviations = estimator.predict(X, return_std=True)
        assert np.std(values - (y[::2] + y[1::2]).repeat(2) / 2) < 0.2
        assert 0.2 < np.median(deviations) < 0.5


class TestWeights:
    @pytest.mark.parametrize("size", [1e-150, 1e-12, 1e12, 1e150])
    def test_of_extreme_size_that_are_all_alike(self, size):
        X, y, gradients = data(0, noise=0.05)
        one, other = fitted(), model().fit(X, y, gradients=gradients, sample_weight=np.full(MANY, size))
        assert_allclose(other.predict(X), one.predict(X), atol=tolerance(one, y))

    @pytest.mark.parametrize("n", [FEW, MANY])
    def test_of_one_row_that_outweighs_all(self, n):
        X, y, _ = data(0, n)
        weights = np.ones(n)
        weights[7] = 1e9
        y[7] += 1
        estimator = model(derivatives="given").fit(X, y, sample_weight=weights)
        assert_allclose(estimator.predict(X[7:8]), y[7:8], atol=1e-3)
        assert np.all(np.isfinite(estimator.predict(X)))

    @pytest.mark.parametrize("weight", [1e-300, 1e6])
    def test_extreme_weights_of_gradients(self, weight):
        X, y, gradients = data(0)
        estimator = model(gradient_weight=weight).fit(X, y, gradients=gradients)
        assert np.std(estimator.predict(X) - y) < 0.05


FAILURES = {
    "weights": ({"gradient_weight": -1.0}, {}, "`gradient_weight` must be 'auto' or a number >= 0, got -1.0"),
    "alpha": ({"alpha": "small"}, {}, "`alpha` must be"),
    "growth": ({"growth": 0.5}, {}, "`growth` must be"),
    "directions": ({}, {"directions": np.zeros((3, 3))}, "`directions` must have shape"),
    "gradients_at": ({}, {"gradients_at": np.zeros((3, 2))}, "`gradients` must have shape"),
    "derivative_weight": ({}, {"derivative_weight": np.full(MANY, np.nan)}, "must be finite"),
    "hessians": ({"hessian_weight": 1.0}, {}, "needs known hessians"),
    "validation": ({}, {"validation": 2.0}, "`validation` must"),
}


@pytest.mark.parametrize(("parameters", "arguments", "message"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failed_fit_changes_nothing(parameters, arguments, message):
    X, y, gradients = data(0)
    estimator = plain().fit(X, y, gradients=gradients)
    before = {name: value for name, value in vars(estimator).items() if name not in parameters}
    expected = estimator.predict(X)
    with pytest.raises(ValueError, match=message):
        estimator.set_params(**parameters).fit(2 * X, y, **{"gradients": gradients, **arguments})
    after = {name: value for name, value in vars(estimator).items() if name not in parameters}
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)
    assert_array_equal(estimator.predict(X), expected)
