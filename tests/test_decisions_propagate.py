"""Distributions of outputs against closed forms, and what cannot be asked."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import cauchy, expon, norm, uniform

from exact import Exact
from nurf import KernelFeatureRegressor, RandomFeatureRegressor
from nurf.decisions import Estimate, propagate, sensitivity

SUM = Exact(lambda X: X @ [1.0, 2.0], lambda X: np.tile([1.0, 2.0], (len(X), 1)), [-6, -6], [6, 6], spread=0.1)
NORMAL = [norm(1, 2), norm(0, 1)]
SIGMA = np.sqrt(8.0)


class TestClosedForms:
    def test_normal(self):
        found = propagate(SUM, NORMAL, random_state=0)
        assert_allclose(found.mean, 1, atol=0.01)
        assert_allclose(found.std, SIGMA, rtol=0.01)
        assert_allclose(found.covariance, SIGMA**2, rtol=0.02)
        p = np.array([0.05, 0.5, 0.99])
        exact = norm(1, SIGMA)
        assert_allclose(found.quantile(p), exact.ppf(p), atol=0.1)
        y = np.array([-3.0, 1.0, 4.0])
        assert_allclose(found.exceedance(y), exact.sf(y), atol=0.01)
        assert_allclose(found.density(y), exact.pdf(y), atol=0.01)

    @pytest.mark.parametrize("question", [propagate, sensitivity])
    def test_inputs_without_moments(self, question):
        with pytest.warns(UserWarning, match="finite variance") as found:
            question(SUM, [cauchy(), norm()], n_points=64, random_state=0)
        assert any("without a finite variance (x0): the " in str(each.message) for each in found)
        assert not any("x1" in str(each.message) for each in found)

    def test_dependent(self):
        found = propagate(SUM, NORMAL, correlation=[[1, 0.5], [0.5, 1]], random_state=0)
        assert_allclose(found.std, np.sqrt(4 + 4 + 4), rtol=0.01)

    def test_copulas_keep_marginals(self):
        model = Exact(lambda X: X, lambda X: np.tile(np.eye(2), (len(X), 1, 1)), [0, 0], [9, 9])
        found = propagate(model, [expon(), uniform(0, 3)], correlation=[[1, 0.8], [0.8, 1]], random_state=0)
        p = np.array([0.1, 0.5, 0.9])
        wanted = np.stack([expon().ppf(p), uniform(0, 3).ppf(p)], axis=1)
        assert_allclose(found.quantile(p), wanted, rtol=0.03)
        assert found.covariance.value.shape == (2, 2)
        assert found.covariance.value[0, 1] > 0.5  # standard deviations 1 and 0.87, correlation of scores 0.8

    @pytest.mark.parametrize("scale", [1e200, 1e-200])
    def test_values_whose_squares_are_no_floats(self, scale):
        model = Exact(lambda X: scale * X[:, 0], lambda X: scale * np.ones_like(X), [-6.0], [6.0])
        assert_allclose(float(propagate(model, [norm()], random_state=0).std) / scale, 1, rtol=0.01)

    def test_samples_of_ones_own(self):
        X = np.random.default_rng(0).normal(size=(803, 2))
        found = propagate(SUM, X, random_state=0)
        assert found.mean.error == 0
        assert_allclose(found.mean, np.mean(X @ [1, 2]))
        assert_allclose(found.quantile(0.3), np.quantile(X @ [1, 2], 0.3))

    def test_intervals_are_the_spread_of_draws(self):
        """Draws are shifted by normal constants of size 0.1: so is the mean, and not the standard deviation."""
        found = propagate(SUM, NORMAL, n_draws=2000, n_points=64, random_state=0)
        low, high = found.mean.interval
        assert_allclose([low, high] - found.mean.value, [-0.1645, 0.1645], atol=0.02)
        assert_allclose(found.std.interval, np.asarray(found.std), rtol=1e-9)
        wide, narrow = (found.mean.interval_of(coverage) for coverage in (0.99, 0.5))
        assert wide[0] < low < narrow[0] < narrow[1] < high < wide[1]


class TestFits:
    def test_intervals_of_a_fit_hold_the_truth(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-3, 3, (30, 2))
        truth = np.sin(X[:, 0]) * X[:, 1]
        model = KernelFeatureRegressor().fit(X, truth)
        fresh = rng.uniform(-3, 3, (100_000, 2))
        found = propagate(model, [uniform(-3, 6)] * 2, n_points=1024, random_state=0)
        exact = np.std(np.sin(fresh[:, 0]) * fresh[:, 1])
        low, high = found.std.interval
        assert low - 4 * found.std.error - 0.01 < exact < high + 4 * found.std.error + 0.01

    def test_beyond_the_data_intervals_grow(self):
        X = np.random.default_rng(0).uniform(-1, 1, (30, 2))
        model = RandomFeatureRegressor(30, random_state=0).fit(X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2)
        inside = propagate(model, n_points=256, random_state=0).mean.interval
        with pytest.warns(UserWarning, match="beyond the data"):
            outside = propagate(model, [uniform(1, 3)] * 2, n_points=256, random_state=0).mean.interval
        assert np.diff(outside) > 10 * np.diff(inside)

    def test_names(self):
        X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (20, 2)), columns=["speed", "angle"])
        model = KernelFeatureRegressor().fit(X, X["speed"] + 3 * X["angle"])
        inputs = {"angle": uniform(0, 0.1), "speed": uniform(-1, 2)}
        found = propagate(model, inputs, n_points=256, random_state=0)
        assert_allclose(found.mean, 0.15, atol=0.01)
        sample = pd.DataFrame({"angle": np.zeros(20), "speed": np.linspace(0, 1, 20)})
        assert_allclose(propagate(model, sample).mean, 0.5, atol=0.04)
        with pytest.raises(ValueError, match="must have the columns"):
            propagate(model, sample.rename(columns={"speed": "v"}))


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"inputs": np.zeros((1, 2))}, "at least two points"),
            ({"inputs": np.zeros((30, 3))}, "points of 2 inputs"),
            ({"inputs": [norm(0, np.inf), norm()]}, "finite quantiles|continuous distributions"),
            ({"inputs": np.full((30, 2), np.nan)}, "must be finite"),
        ],
    )
    def test_what_cannot_be_asked(self, options, match):
        with pytest.raises(ValueError, match=match):
            propagate(SUM, **options)

    def test_densities_of_constants(self):
        model = Exact(lambda X: np.ones(len(X)), np.zeros_like, [0.0], [1.0])
        with pytest.raises(ValueError, match="values that vary"):
            propagate(model, n_points=64).density(1.0)

    def test_probabilities(self):
        with pytest.raises(ValueError, match="between 0 and 1"):
            propagate(SUM, NORMAL, n_points=64).quantile(1.2)


@pytest.mark.parametrize("n", [19, 30, 100])
def test_intervals_hold_a_further_draw(n):
    """Of 4000 sets of draws, nine tenths have an interval that holds one more draw, also if the sets are small."""
    draws = np.random.default_rng(n).normal(size=(n + 1, 4000))
    low, high = Estimate(np.zeros(4000), draws[1:], np.zeros(4000)).interval.T
    assert_allclose(np.mean((low <= draws[0]) & (draws[0] <= high)), 0.9, atol=0.02)  # four standard errors


def test_tables_reports_and_pictures():
    from matplotlib.figure import Figure

    found = propagate(SUM, NORMAL, n_points=64, random_state=0)
    table = found.table()
    assert list(table["quantity"])[:2] == ["mean", "std"]
    assert_allclose(table["value"][0], found.mean)
    assert "standard deviation" in str(found.report())
    assert found.plot(Figure().subplots()).get_ylim() == (0, 1)
    several = propagate(Exact(lambda X: X, lambda X: X, [0, 0], [1, 1]), n_points=64)
    assert len(several.table()["output"]) == 18
    several.plot(Figure().subplots())
    assert str(several.mean).startswith("[0.")
