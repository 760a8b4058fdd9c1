"""Optima against closed forms, and what cannot be asked."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from exact import Exact
from nurf import KernelFeatureRegressor
from nurf.decisions import minimize


def branin(X):
    x, y = X.T
    return (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10


def branin_gradient(X):
    x, y = X.T
    inner = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    slope = 2 * inner * (-10.2 / (4 * np.pi**2) * x + 5 / np.pi) - 10 * (1 - 1 / (8 * np.pi)) * np.sin(x)
    return np.stack([slope, 2 * inner], axis=1)


BRANIN = Exact(branin, branin_gradient, [-5, 0], [10, 15], spread=0.1)
WELLS = np.array([[-np.pi, 12.275], [np.pi, 2.275], [9.42478, 2.475]])


def circle(X):
    """The sum of the inputs, and the square of their length."""
    return np.stack([X.sum(axis=1), np.sum(X**2, axis=1)], axis=1)


def circle_gradient(X):
    return np.stack([np.ones_like(X), 2 * X], axis=1)


CIRCLE = Exact(circle, circle_gradient, [-2] * 3, [2] * 3)


class TestClosedForms:
    def test_three_optima(self):
        found = minimize(BRANIN, random_state=0)
        order = np.argsort(found.optima[:, 0])
        assert_allclose(found.optima[order], WELLS, atol=2e-3)
        assert_allclose(found.values, 0.397887, atol=1e-5)
        assert_allclose(found.x, found.optima[0])
        assert_allclose(found.probabilities.sum(), 1)

    def test_at_the_bounds(self):
        model = Exact(lambda X: X @ [1.0, -2.0], lambda X: np.tile([1.0, -2.0], (len(X), 1)), [-1, -1], [1, 1])
        found = minimize(model, [(-0.5, 1), (-1, 0.25)], random_state=0)
        assert_allclose(found.x, [-0.5, 0.25], atol=1e-9)
        assert_allclose(found.value, -1)

    def test_constraints(self):
        """The smallest sum on a ball, and outside of a smaller ball inside a box."""
        found = minimize(CIRCLE, constraints={1: (None, 1.0)}, random_state=0)
        assert_allclose(found.x, -np.ones(3) / np.sqrt(3), atol=1e-3)
        assert_allclose(found.value, -np.sqrt(3), atol=2e-3)
        found = minimize(CIRCLE, [(0, 2)] * 3, constraints={1: (1.0, None)}, random_state=0)
        assert_allclose(np.sort(found.x), [0, 0, 1], atol=1e-3)
        assert len(found.optima) == 3

    def test_other_outputs(self):
        found = minimize(CIRCLE, output=1, constraints={0: (1.5, None)}, random_state=0)
        assert_allclose(found.x, [0.5] * 3, atol=2e-3)

    def test_intervals_are_the_spread_of_draws(self):
        """Draws are shifted by normal constants of size 0.1."""
        found = minimize(BRANIN, n_draws=300, random_state=0)
        assert_allclose(found.value.interval - found.value.value, [-0.1645, 0.1645], atol=0.04)


class TestFits:
    @pytest.mark.filterwarnings("ignore:.*carry 90% of the squared error")
    def test_of_a_fit_hold_the_truth(self):
        X = np.random.default_rng(0).uniform([-5, 0], [10, 15], (40, 2))
        found = minimize(KernelFeatureRegressor().fit(X, branin(X)), [(-5, 10), (0, 15)], random_state=0)
        low, high = found.value.interval
        assert low - 0.1 < 0.397887 < high + 0.1
        assert np.linalg.norm(WELLS - found.x, axis=1).min() < 1

    def test_names(self):
        X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (20, 2)), columns=["speed", "angle"])
        model = KernelFeatureRegressor().fit(X, (X["speed"] - 0.2) ** 2 + X["angle"])
        found = minimize(model, {"angle": (0.1, 0.5), "speed": (-0.5, 0.5)}, random_state=0)
        assert_allclose(found.x, [0.2, 0.1], atol=0.02)
        with pytest.raises(ValueError, match=r"unknown \['size'\] and missing \['angle'\]"):
            minimize(model, {"size": (0.1, 0.5), "speed": (-0.5, 0.5)})

    def test_warns_beyond_the_data(self):
        with pytest.warns(UserWarning, match="within the bounds are beyond the data"):
            minimize(BRANIN, [(-5, 10), (0, 45)], n_draws=2)


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"bounds": [(0, 1)]}, "for each of 3 inputs"),
            ({"bounds": [(0, 1), (1, 0), (0, 1)]}, "low < high"),
            ({"bounds": [(0, 1), (0, np.inf), (0, 1)]}, "finite"),
            ({"output": 2}, "between 0 and 1"),
            ({"constraints": {5: (0, 1)}}, "of 2 outputs"),
            ({"constraints": {1: (1, 0)}}, "low <= high"),
            ({"constraints": {1: (99, None)}}, "meets them nowhere"),
            ({"n_starts": 0}, "`n_starts`"),
        ],
    )
    def test_what_cannot_be_asked(self, options, match):
        with pytest.raises(ValueError, match=match):
            minimize(CIRCLE, n_draws=2, **options)


def test_tables_reports_and_pictures():
    from matplotlib.figure import Figure

    found = minimize(BRANIN, n_draws=5, random_state=0)
    table = found.table()
    assert_allclose(table["x0"], found.optima[:, 0])
    assert_allclose(table["value"], found.values)
    assert "optimum 3" in str(found.report())
    assert found.plot(Figure().subplots()).get_xlabel() == "optimum"
