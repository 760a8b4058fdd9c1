"""Probabilities that limits are exceeded against closed forms and published values, and what cannot be asked."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import chi2, expon, lognorm, multivariate_normal, norm, uniform

from exact import Exact
from nurf import KernelFeatureRegressor, RandomFeatureRegressor
from nurf.decisions import failure


def differences(function, step=1e-6):
    def gradient(X):
        steps = step * np.eye(X.shape[1])
        return np.stack([(function(X + s) - function(X - s)) / (2 * step) for s in steps], axis=-1)

    return gradient


def exact(function, d=2, spread=0.0):
    return Exact(function, differences(function), [-9] * d, [30] * d, spread)


def linear(a, spread=0.0):
    return Exact(lambda X: X @ a, lambda X: np.tile(a, (len(X), 1)), [-9] * len(a), [9] * len(a), spread)


def four_branch(X, k=7.0):
    x, y = X.T
    bent, sides = 3 + 0.1 * (x - y) ** 2, (x + y) / np.sqrt(2)
    return np.min([bent - sides, bent + sides, x - y + k / np.sqrt(2), y - x + k / np.sqrt(2)], axis=0)


def hat(X):
    return 0.5 * (X[:, 0] - 2) ** 2 - 1.5 * (X[:, 1] - 5) ** 3 - 3


def close(found, wanted, rtol=0.0):
    """Within five standard errors of the points, and what a closed form or published value is uncertain by."""
    assert abs(float(found) - wanted) < 5 * found.error + rtol * wanted


class TestClosedForms:
    @pytest.mark.parametrize("d", [2, 20, 100])
    @pytest.mark.parametrize("beta", [3.0, 5.0])
    def test_linear(self, d, beta):
        a = np.arange(1, d + 1) / np.linalg.norm(np.arange(1, d + 1))
        found = failure(linear(a), [norm()] * d, above=beta, n_points=4096, n_draws=2, random_state=0)
        close(found.probability, norm.sf(beta))
        assert found.variation < 0.1
        close(found.reliability, beta, 0.002)
        assert_allclose(found.design_points, [beta * a], atol=0.01)
        assert_allclose(found.distances, [beta], atol=0.01)

    def test_derivatives_by_means_and_deviations(self):
        """The probability of a sum of normal variables, differentiated."""
        means, deviations, limit = np.array([1.0, 2.0]), np.array([1.5, 0.5]), 8.0
        found = failure(linear([1.0, 1.0]), [norm(1, 1.5), norm(2, 0.5)], above=limit, random_state=0)
        total = np.sqrt(np.sum(deviations**2))
        beta = (limit - means.sum()) / total
        close(found.probability, norm.sf(beta))
        assert_allclose(found.by_mean, norm.pdf(beta) / total, rtol=0.05)
        assert_allclose(found.by_std, norm.pdf(beta) * beta * deviations / total**2, rtol=0.05)

    def test_dependent_inputs(self):
        r, limit = 0.5, 6.0
        found = failure(linear([1.0, 1.0]), [norm()] * 2, above=limit, correlation=[[1, r], [r, 1]], random_state=0)
        total = np.sqrt(2 + 2 * r)
        close(found.probability, norm.sf(limit / total))
        assert_allclose(found.by_mean, norm.pdf(limit / total) / total, rtol=0.05)

    def test_other_distributions(self):
        """A product of lognormal variables is lognormal; the larger of two exponential ones has a closed form."""
        found = failure(exact(lambda X: X[:, 0] * X[:, 1]), [lognorm(0.5), lognorm(0.25)], above=8.0, random_state=0)
        close(found.probability, norm.sf(np.log(8) / np.sqrt(0.25 + 0.0625)))
        found = failure(exact(lambda X: X), [expon(), expon(scale=2)], above=[9.0, 16.0], random_state=0)
        close(found.probability, 1 - (1 - np.exp(-9)) * (1 - np.exp(-8)))
        assert np.all(np.isnan(found.by_mean))

    @pytest.mark.parametrize("combine", ["any", "all"])
    def test_several_limits(self, combine):
        r, limits = 0.7, np.array([2.5, 3.0])
        both = multivariate_normal(np.zeros(2), [[1, r], [r, 1]])
        together = both.cdf(-limits)
        wanted = together if combine == "all" else norm.sf(limits).sum() - together
        model = exact(lambda X: X)
        inputs = {"inputs": [norm()] * 2, "correlation": [[1, r], [r, 1]]}
        found = failure(model, above=limits, combine=combine, random_state=0, **inputs)
        close(found.probability, wanted, 1e-4)
        assert len(found.distances) == (1 if combine == "all" else 2)

    def test_outside_a_range(self):
        found = failure(linear([1.0]), [norm()], above=3.0, below=-4.0, random_state=0)
        close(found.probability, norm.sf(3) + norm.sf(4))
        assert_allclose(np.sort(found.design_points[:, 0]), [-4, 3], atol=0.01)

    def test_probable_failures(self):
        close(failure(linear([1.0, 0.0]), [norm()] * 2, above=-1.0, random_state=0).probability, norm.cdf(1), 1e-3)

    @pytest.mark.parametrize("inputs", [norm(), uniform()])
    def test_certain_failures(self, inputs):
        """Of the index, only a bound is known: ``-Phi^-1`` of the largest float below one."""
        with pytest.warns(UserWarning, match=r"the model is above -50 everywhere: its values at .* points are"):
            found = failure(linear([1.0]), [inputs], above=-50.0, n_points=64, n_draws=20, random_state=0)
        assert_allclose(found.probability, 1, atol=1e-6)
        assert_allclose([found.reliability.value, *found.reliability.interval], norm.isf(1 - 2.0**-53), atol=1e-6)
        assert not np.isnan(found.reliability.error)

    def test_uniform_inputs(self):
        """The corner of a square that a line cuts off."""
        found = failure(exact(lambda X: X.sum(axis=1)), [uniform()] * 2, above=1.95, random_state=0)
        close(found.probability, 0.05**2 / 2)


class TestPublished:
    @pytest.mark.parametrize(("k", "wanted"), [(6.0, 4.460e-3), (7.0, 2.222e-3)])
    def test_four_branches(self, k, wanted):
        found = failure(exact(lambda X: four_branch(X, k)), [norm()] * 2, below=0.0, random_state=0)
        close(found.probability, wanted, 0.01)
        assert len(found.distances) == 4

    def test_gayton_hat(self):
        close(failure(exact(hat), [norm()] * 2, below=0.0, random_state=0).probability, 2.85e-5, 0.01)


class TestSubsets:
    @pytest.mark.parametrize("d", [2, 20, 100])
    @pytest.mark.parametrize("beta", [1.0, 3.0, 5.0])
    def test_linear(self, d, beta):
        a = np.ones(d) / np.sqrt(d)
        options = {"n_points": 8192, "n_draws": 2, "random_state": 0, "method": "subset"}
        found = failure(linear(a), [norm()] * d, above=beta, **options)
        close(found.probability, norm.sf(beta))
        assert found.variation < 0.3  # 0.15 for beta = 5 over 60 seeds
        assert_allclose(found.design_points, [beta * a], atol=0.01)

    def test_many_design_points(self):
        """All points of a sphere are equally probable: importance sampling around ten of them misses most."""
        model, d, limit = exact(lambda X: np.sum(X**2, axis=1), 5), 5, 35.0
        found = failure(model, [norm()] * d, above=limit, method="subset", n_draws=2, random_state=0)
        close(found.probability, chi2.sf(limit, d))
        assert found.variation < 0.2

    @pytest.mark.parametrize("combine", ["any", "all"])
    def test_several_limits(self, combine):
        limits, r = np.array([4.5, 4.0]), 0.7
        both, _ = quad(
            lambda x: norm.pdf(x) * norm.sf((limits[1] - r * x) / np.sqrt(1 - r**2)), limits[0], 12, epsabs=0
        )
        wanted = both if combine == "all" else norm.sf(limits).sum() - both
        model = exact(lambda X: X * [1.0, 100.0])
        options = {"inputs": [norm()] * 2, "correlation": [[1, r], [r, 1]], "combine": combine, "method": "subset"}
        found = failure(model, above=limits * [1, 100], n_draws=2, random_state=0, **options)
        close(found.probability, wanted, 1e-3)

    def test_derivatives_and_intervals(self):
        """Those of a linear limit; draws are shifted by normal constants of size 0.2."""
        found = failure(linear([1.0], 0.2), [norm()], above=3.0, method="subset", n_draws=500, random_state=0)
        assert_allclose(found.by_mean, norm.pdf(3), rtol=0.15)
        assert_allclose(found.by_std, 3 * norm.pdf(3), rtol=0.15)
        assert_allclose(found.reliability.interval, [3 - 0.329, 3 + 0.329], atol=0.1)

    def test_the_coefficient_of_variation_is_honest(self):
        """Errors of 30 answers over their standard errors: those of eight sets have a t distribution."""
        found = [
            failure(
                linear([1.0, 0.0]), [norm()] * 2, above=4.0, method="subset", n_points=2048, n_draws=1, random_state=i
            )
            for i in range(30)
        ]
        ratios = [(float(each.probability) - norm.sf(4)) / each.probability.error for each in found]
        assert 0.4 < np.sqrt(np.mean(np.square(ratios))) < 2.5

    def test_values_on_steps(self):
        """Levels of a function with plateaus: many points have the same value."""
        model = Exact(lambda X: np.floor(X[:, 0]), np.zeros_like, [-9.0], [9.0])
        found = failure(model, [norm()], above=2.5, method="subset", random_state=0)
        close(found.probability, norm.sf(3))


class TestAuto:
    @pytest.mark.parametrize("d", [2, 5, 10])
    @pytest.mark.parametrize("side", ["outside", "inside"])
    def test_spheres(self, d, side):
        """Importance sampling around ten points of a sphere is wrong by half, with a variation of 0.07.

        The points may suffice for a circle, or not.
        """
        model = exact(lambda X: np.sum(X**2, axis=1), d)
        limit = {"above": chi2.isf(1.5e-6, d)} if side == "outside" else {"below": chi2.ppf(1.5e-6, d)}
        found = failure(model, [norm()] * d, **limit, n_draws=2, random_state=0)
        assert found.method == "subset" or (d, side) == (2, "outside")
        close(found.probability, 1.5e-6)
        assert found.variation < 0.25

    def test_a_fitted_sphere(self):
        X = np.random.default_rng(1).uniform(-6, 6, (60, 3))
        model = KernelFeatureRegressor(check_gradients=False).fit(X, np.sum(X**2, axis=1), gradients=2 * X)
        found = failure(model, [norm()] * 3, above=chi2.isf(1e-6, 3), n_points=2048, n_draws=10, random_state=0)
        close(found.probability, 1e-6, 0.05)

    @pytest.mark.parametrize("d", [2, 20])
    def test_a_plane_needs_no_simulation(self, d):
        found = failure(linear(np.ones(d)), [norm()] * d, above=4 * np.sqrt(d), n_draws=2, random_state=0)
        assert found.method == "importance"
        close(found.probability, norm.sf(4))


class TestSmallProbabilities:
    @pytest.mark.parametrize("method", ["importance", "subset"])
    def test_down_to_1e_8(self, method):
        beta = norm.isf(1e-8)
        found = failure(linear([0.6, 0.8]), [norm()] * 2, above=beta, method=method, n_draws=2, random_state=0)
        close(found.probability, 1e-8)
        assert found.variation < (0.02 if method == "importance" else 0.25)


class TestIntervals:
    def test_are_the_spread_of_draws(self):
        """Draws are shifted by normal constants of size 0.2: so are reliability indices."""
        found = failure(linear([0.6, 0.8], 0.2), [norm()] * 2, above=3.5, n_draws=1000, random_state=0)
        assert_allclose(found.reliability.interval, [3.5 - 0.329, 3.5 + 0.329], atol=0.05)
        assert_allclose(found.probability.interval, norm.sf([3.5 + 0.329, 3.5 - 0.329]), rtol=0.2)

    def test_of_a_fit_hold_the_truth(self):
        X = np.random.default_rng(0).uniform(-5, 5, (60, 2))
        model = KernelFeatureRegressor().fit(X, hat(X))
        low, high = failure(model, [norm()] * 2, below=0.0, random_state=0).probability.interval
        assert low * 0.9 < 2.85e-5 < high * 1.1

    def test_grow_beyond_the_data(self):
        X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
        model = RandomFeatureRegressor(30, random_state=0).fit(X, np.sin(X[:, 0]) + X[:, 1])
        with pytest.warns(UserWarning, match="design point is beyond the data"):
            found = failure(model, [norm()] * 2, above=4.0, n_points=4096, random_state=0)
        low, high = found.probability.interval
        assert high > 2 * low


class TestErrors:
    @pytest.mark.parametrize("method", ["auto", "importance", "subset"])
    def test_a_limit_that_is_never_reached(self, method):
        with pytest.raises(ValueError, match=r"nowhere above 2 of output 0: its values at .* points are -(1|0.9)"):
            failure(exact(np.sin, 1), [norm()], above=2.0, n_points=256, method=method, random_state=0)

    def test_a_limit_that_only_draws_reach(self):
        """Draws are shifted by normal constants of size 0.5: a few per cent of them have values above 2."""
        model = Exact(lambda X: np.sin(X[:, 0]), lambda X: np.cos(X), [-9], [9], 0.5)
        with pytest.warns(UserWarning, match=r"does not reach the limits: .* But \d+% of its draws reach them"):
            found = failure(model, [norm()], above=2.0, n_points=256, n_draws=200, random_state=0)
        assert float(found.probability) == 0
        assert found.probability.answers.max() > 0
        assert found.variation == np.inf
        assert found.design_points.shape == (0, 1)
        assert "at least" in str(found.report())
        assert "only draws" in str(found.report())

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({}, "got no limit"),
            ({"above": [1.0, 2.0, 3.0]}, "each of 1 outputs"),
            ({"above": np.nan}, "got no limit"),
            ({"above": "high"}, "`above` must be an array of numbers"),
            ({"above": np.inf}, "`above` must be finite or NaN"),
            ({"above": 1.0, "combine": "some"}, "'any' or 'all'"),
            ({"above": 1.0, "inputs": np.zeros((50, 2))}, "must be distributions"),
            ({"above": 1.0, "below": 2.0}, "`below` must not be larger than `above`"),
            ({"above": 1.0, "method": "guess"}, "one of 'auto', 'importance', 'subset'"),
            ({"above": 1.0, "inputs": [uniform(0, -1), norm()]}, "a scale that is not positive"),
        ],
    )
    def test_what_cannot_be_asked(self, options, match):
        with pytest.raises(ValueError, match=match):
            failure(linear([1.0, 1.0]), **options)


def test_tables_reports_and_pictures():
    from matplotlib.figure import Figure

    found = failure(linear([0.6, 0.8], 0.1), [norm()] * 2, above=3.0, n_points=256, random_state=0)
    table = found.table()
    assert list(table["input"]) == ["x0", "x1"]
    assert_allclose(table["design_point"], [1.8, 2.4], atol=0.01)
    assert "3.00 from the centre" in str(found.report())
    assert found.plot(Figure().subplots()).get_xlabel() == "reliability index"
