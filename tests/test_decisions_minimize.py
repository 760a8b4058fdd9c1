"""Optima against closed forms, and what cannot be asked."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import NonlinearConstraint, differential_evolution, minimize_scalar
from scipy.stats import chi2

from exact import Exact, ExactDraws
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


class MovedDraws(ExactDraws):
    """Functions ``f(x - s)`` with numbers ``s``."""

    def _each(self, function, X, shifts):
        points = X if np.ndim(X) == 3 else np.tile(X, (len(self.shifts), 1, 1))
        return np.array([function(x - shift) for x, shift in zip(points, self.shifts, strict=True)])


class Well(Exact):
    """A model whose draws are moved along the inputs."""

    def draws(self, n, random_state=None):
        shifts = self.spread * np.random.default_rng(random_state).normal(size=n)
        return MovedDraws(self.value, self.gradient, shifts)


PLANE = Exact(lambda X: X @ [1.0, 2, 3], lambda X: np.tile([1.0, 2, 3], (len(X), 1)), [-2] * 3, [2] * 3)


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

    def test_hessians(self):
        """At an optimum inside, the Hessian of a quadratic function is its matrix."""
        A = np.array([[3.0, 1.0], [1.0, 2.0]])
        X = np.random.default_rng(0).uniform(-1, 1, (30, 2))
        model = KernelFeatureRegressor().fit(X, np.einsum("ni,ij,nj->n", X, A, X) / 2)
        found = minimize(model, [(-1, 1)] * 2, n_draws=2, random_state=0)
        assert_allclose(found.x, 0, atol=1e-3)
        assert_allclose(found.hessians[0], A, atol=0.05)
        assert np.isnan(minimize(BRANIN, n_draws=2, random_state=0).hessians).all()

    def test_levels(self):
        """The best of all levels, each with the best other input as SciPy finds it; other levels are worse."""
        levels = [-4.0, -2.5, 0.0, 3.0, 9.5]
        best = [minimize_scalar(lambda y, x=x: branin(np.array([[x, y]]))[0], bounds=(0, 15)) for x in levels]
        for key in ("x0", 0):
            found = minimize(BRANIN, [(-5, 10), (0, 15)], levels={key: levels}, n_draws=2, random_state=0)
            assert found.x[0] in levels
            assert_allclose(found.value, min(each.fun for each in best), atol=1e-6)
            assert set(found.optima[:, 0]) <= set(levels)

    def test_levels_of_all_inputs(self):
        levels = {0: np.linspace(-5, 10, 7), 1: np.linspace(0, 15, 6)}
        grid = np.stack(np.meshgrid(levels[0], levels[1], indexing="ij"), axis=-1)
        values = branin(grid.reshape(-1, 2)).reshape(7, 6)
        found = minimize(BRANIN, levels=levels, n_draws=2, random_state=0)
        assert_allclose(found.value, values.min(), rtol=1e-12)
        for x, y in found.optima:
            row, column = np.flatnonzero(levels[0] == x)[0], np.flatnonzero(levels[1] == y)[0]
            assert values[row, column] <= min(values[row].min(), values[:, column].min()) + 1e-12

    def test_other_models_as_constraints(self):
        """Against SciPy's differential evolution, with a function of the same inputs as a constraint."""
        disc = Exact(lambda X: np.sum((X - [2, 8]) ** 2, axis=1), lambda X: 2 * (X - [2, 8]), [-5, 0], [10, 15])
        wanted = differential_evolution(
            lambda x: branin(x[None])[0],
            [(-5, 10), (0, 15)],
            constraints=NonlinearConstraint(lambda x: np.sum((x - [2, 8]) ** 2), 0, 9),
            seed=0,
            tol=1e-10,
            polish=False,
        )
        for constraints in ({disc: (None, 9.0)}, [(disc, (None, 9.0))]):
            found = minimize(BRANIN, constraints=constraints, random_state=0)
            assert_allclose(found.value, wanted.fun, rtol=2e-3)
            assert_allclose(found.x, wanted.x, atol=0.02)

    def test_the_best_points_out_of_range_lead_nowhere(self):
        """``sin 2 x + y >= 0.2`` is nowhere met near ``x = -1``, where it has its smallest error at a corner."""
        model = Exact(
            lambda X: np.stack([X[:, 0], np.sin(2 * X[:, 0]) + X[:, 1]], axis=1),
            lambda X: np.stack(
                [np.tile([1.0, 0.0], (len(X), 1)), np.stack([2 * np.cos(2 * X[:, 0]), X[:, 0] ** 0], 1)], 1
            ),
            [-0.94, -1],
            [1, 0.97],
        )
        found = minimize(model, constraints={1: (0.2, None)}, random_state=0)
        assert_allclose(found.x, [-np.arcsin(0.77) / 2, 0.97], atol=2e-3)

    def test_several_outputs_of_another_model(self):
        found = minimize(PLANE, constraints=[(CIRCLE, ([0.5, np.nan], [np.inf, 1.0]))], random_state=0)
        assert found.x.sum() > 0.5 - 1e-2
        assert np.sum(found.x**2) < 1 + 1e-2

    def test_intervals_are_the_spread_of_draws(self):
        """Draws are shifted by normal constants of size 0.1."""
        found = minimize(BRANIN, n_draws=300, random_state=0)
        assert_allclose(found.value.interval - found.value.value, [-0.1645, 0.1645], atol=0.04)

    def test_interval_is_from_minima_of_draws_to_their_values_at_the_optimum(self):
        """Draws ``(x - c)^2`` with normal ``c`` are 0 somewhere, and ``c^2`` at the optimum of the fit."""
        well = Well(lambda X: X[:, 0] ** 2, lambda X: 2 * X, [-4], [4], spread=0.5)
        low, high = minimize(well, n_draws=1000, random_state=0).value.interval
        assert_allclose(low, 0, atol=1e-6)
        assert_allclose(high, 0.25 * chi2(1).ppf(0.95), rtol=0.2)  # three standard errors of a quantile of 1000 draws


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

    def test_constraints_find_their_inputs_by_name(self):
        """A limit of another model, which has fewer inputs in another order, and a fixed input."""
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.uniform(-1, 1, (40, 3)), columns=["a", "b", "c"])
        cost = KernelFeatureRegressor().fit(X, X["a"] + 2 * X["b"] - X["c"])
        stress = KernelFeatureRegressor().fit(X[["c", "b"]], X["c"] - X["b"])
        options = {"constraints": {stress: (None, 0.5)}, "n_draws": 5, "random_state": 0}
        found = minimize(cost, {"a": (-1, 1), "b": (-1, 1), "c": (-1, 1)}, **options)
        assert_allclose(found.x, [-1, -1, -0.5], atol=0.02)  # 2 b - c with c <= b + 0.5
        found = minimize(cost, {"a": (-1, 1), "b": 0.25, "c": (-1, 1)}, **options)
        assert found.names == ("a", "c")
        assert_allclose(found.x, [-1, 0.75], atol=0.02)
        found = minimize(cost, {"a": (-1, 1), "c": (-1, 1)}, levels={"b": [0.0, 0.2]}, **options)
        assert_allclose(found.x, [-1, 0, 0.5], atol=0.02)
        assert_array_equal(found.x[1], 0.0)
        strange = KernelFeatureRegressor().fit(X[["a", "b"]].rename(columns={"b": "z"}), X["a"])
        with pytest.raises(ValueError, match=r"models of the inputs \['a', 'b', 'c'\], got one of \['z'\]"):
            minimize(cost, constraints={strange: (0, 1)}, n_draws=2)

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
            ({"constraints": {5: (0, 1)}}, "outputs 0 to 1, got output 5"),
            ({"constraints": [(1, 2, 3)]}, "pairs of an output"),
            ({"constraints": {1: 4}}, r"ranges \(low, high\), got 4"),
            ({"constraints": {BRANIN: (0, 1)}}, "got one of 2 inputs"),
            ({"constraints": {CIRCLE: ([0, 1, 2], None)}}, "for each of 2 outputs"),
            ({"levels": {"speed": [1, 2]}}, "got 'speed', which is none of them"),
            ({"levels": {3: [1, 2]}}, "got 3, which is none of them"),
            ({"levels": {0: []}}, "list of numbers"),
            ({"levels": {0: 3.0}}, "list of numbers"),
            ({"levels": {0: [0, np.nan]}}, "finite"),
            ({"levels": [1, 2]}, "dict of values"),
            ({"levels": {0: [0, 5]}, "bounds": [(-1, 1)] * 3}, "within the bounds"),
            ({"bounds": [(0, 1), None, (0, 1)]}, r"\(low, high\) for each"),
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
