"""Conditions on the shape: monotone and convex inputs, and bounds of values."""

import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import GridSearchCV

import nurf
from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
)
from nurf.activations import Sigmoid
from nurf.densities import Uniform
from nurf.export import to_python
from nurf.jets import Jet
from nurf.kernels import GaussianKernel, KernelAverage
from nurf.kernels._functionals import Functionals
from nurf.networks import Features, ShallowNetwork
from nurf.solvers import VALUES_ONLY
from nurf.solvers._conditions import Condition, ContradictionError, least_change, shaped
from nurf.solvers._rows import sample_rows
from nurf.solvers.process import Process, ProcessRows
from nurf.solvers.process._changes import ProcessChanges
from nurf.solvers.ridge import LeastSquares
from nurf.solvers.ridge._changes import RidgeChanges, functional_design

MODELS = {
    "wide": lambda **shape: KernelFeatureRegressor(**shape),
    "sampled": lambda **shape: RandomFeatureRegressor(150, random_state=0, **shape),
    "surrogate": lambda **shape: Surrogate(None, engines=["wide", "sampled"], random_state=0, **shape),
}
GRID = np.linspace(0, 1, 1001)[:, None]


def rising(n, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = np.concatenate([[[0.0], [1.0]], rng.uniform(0, 1, (n - 2, 1))])
    return X, np.tanh(8 * (X[:, 0] - 0.5)) + noise * rng.standard_normal(n)


def plane(n, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 2))
    return X, np.exp(2 * X[:, 0]) / 4 - X[:, 1] ** 2 + noise * rng.standard_normal(n)


def quadratic_program(hessian, linear, rows, bounds, start):
    """The minimum of ``x.H x / 2 - l.x`` with ``R x >= b`` by a general solver."""
    found = minimize(
        lambda x: (x @ hessian @ x / 2 - linear @ x, hessian @ x - linear),
        start,
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: rows @ x - bounds, "jac": lambda x: rows},
        options={"maxiter": 2000, "ftol": 1e-16},
    )
    return found.x


class TestSolver:
    @pytest.mark.parametrize("seed", range(5))
    def test_least_change_is_that_of_a_general_solver(self, seed):
        rng = np.random.default_rng(seed)
        root, missing = rng.standard_normal((8, 10)), rng.standard_normal(8)
        multipliers = least_change(root, missing)
        expected = quadratic_program(np.eye(10), np.zeros(10), root, missing, np.linalg.pinv(root) @ missing)
        assert multipliers.min() >= 0
        np.testing.assert_allclose(root.T @ multipliers, expected, atol=1e-6)

    @pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
    def test_units_change_nothing(self, scale):
        rng = np.random.default_rng(0)
        root, missing = rng.standard_normal((8, 10)), rng.standard_normal(8)
        units = np.logspace(-6, 6, 8)
        found = least_change(units[:, None] * root, scale * units * missing) * units
        np.testing.assert_allclose(found, scale * least_change(root, missing), rtol=1e-6)

    def test_conditions_that_hold_cost_nothing(self):
        assert not least_change(np.eye(3), np.array([-1.0, 0.0, -2.0])).any()

    def test_contradictions_are_found(self):
        with pytest.raises(ContradictionError):
            least_change(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 1.0]))

    def test_repeated_conditions(self):
        root = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1e-9]])
        np.testing.assert_allclose(root.T @ least_change(root, np.ones(3)), [1, 0], atol=1e-6)


class TestRidge:
    def problem(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (15, 1))
        jet = Jet(X, np.tanh(3 * X[:, 0]) + 0.3 * rng.standard_normal(15))
        planes = Uniform().prepare(jet, None).sample(12, rng)
        features = Features(planes, Sigmoid(0.2), 1)
        ridge = LeastSquares(features, jet).ridge(VALUES_ONLY)
        (path,) = ridge.solve(np.array([1e-3]))
        return RidgeChanges(ShallowNetwork(features, path[:, 0]), jet, 1e-3, VALUES_ONLY)

    def test_the_shaped_network_is_the_quadratic_programme_of_ridge_regression(self):
        problem = self.problem()
        features, jet = problem.network.features, problem.jet
        points = np.linspace(-1, 1, 40)[:, None]
        conditions = [
            Condition(1, np.ones(1), np.ones(1), np.zeros(1)),
            Condition(0, np.ones(1), -np.ones(1), np.array([-0.8])),
        ]
        design, targets = (part.reshape(15, -1) for part in sample_rows(features, jet, VALUES_ONLY))
        hessian = design.T @ design
        hessian[range(12), range(12)] += 1e-3 * 12 * 15
        rows = np.concatenate([functional_design(features, conditions[0].at(points)), -features.design(points)])
        bounds = np.repeat([0.0, -0.8], 40)
        scale = 1 / np.sqrt(np.diag(hessian))
        expected = scale * quadratic_program(
            scale[:, None] * hessian * scale, scale * (design.T @ targets)[:, 0], rows * scale, bounds, np.zeros(14)
        )
        found = shaped(problem, conditions, points, margin=1e-10)
        assert found.n_points > 0
        assert found.violation <= 1e-7
        np.testing.assert_allclose(found.network.value(GRID), features.design(GRID) @ expected, atol=2e-5)

    def test_functionals_of_features_are_those_of_the_network(self):
        rng = np.random.default_rng(1)
        X = rng.uniform(-1, 1, (6, 3))
        features = Features(Uniform().prepare(Jet(X, X[:, 0]), None).sample(9, rng), Sigmoid(0.4), 2)
        network = ShallowNetwork(features, rng.standard_normal(features.n_columns))
        v = np.array([0.6, 0.0, 0.8])
        for order, expected in (
            (0, network.value(X)),
            (1, network.gradient(X) @ v),
            (2, network.hessian(X) @ v @ v),
        ):
            condition = Condition(order, v, np.ones(1), np.zeros(1))
            np.testing.assert_allclose(functional_design(features, condition.at(X)) @ network.coefficients, expected)


class TestProcess:
    def test_covariances_are_those_of_a_dense_posterior_with_an_unknown_mean(self):
        rng = np.random.default_rng(0)
        X, Z = rng.uniform(-1, 1, (8, 1)), rng.uniform(-1, 1, (5, 1))
        process = Process(
            ProcessRows.of(Jet(X, np.sin(3 * X[:, 0]))), GaussianKernel(), np.array([[2.0]]), np.full(3, 1e-2)
        )
        changes = ProcessChanges(KernelAverage((process.network(()),), np.ones(1)), (process,))
        root = changes.root([Functionals(Z, np.arange(5))], 0)

        def kernel(a, b):  # a huge prior variance of the mean stands for an unknown one
            return np.exp(-2 * cdist(a, b, "sqeuclidean")) + 1e6

        noisy = kernel(X, X) + 1e-2 * np.eye(8)
        expected = kernel(Z, Z) - kernel(Z, X) @ np.linalg.solve(noisy, kernel(X, Z))
        np.testing.assert_allclose(root @ root.T / process.variances[0], expected, rtol=1e-4, atol=1e-7)

    def test_the_shaped_mean_is_the_nearest_one_in_the_norm_of_the_posterior(self):
        X, y = rising(14, noise=0.3)
        process = Process(ProcessRows.of(Jet(X, y - y.mean())), GaussianKernel(), np.array([[5.0]]), np.full(3, 1e-2))
        changes = ProcessChanges(KernelAverage((process.network(()),), np.ones(1)), (process,))
        condition = Condition(1, np.ones(1), np.ones(1), np.zeros(1))
        points = np.linspace(0, 1, 25)[:, None]
        found = shaped(changes, [condition], points, margin=1e-10)
        parts = [condition.at(points)]
        root = changes.root(parts, 0)
        missing = -changes.network.gradient(points)[:, 0]
        shortest = quadratic_program(
            np.eye(25), np.zeros(25), root, missing, np.linalg.lstsq(root, missing, rcond=1e-10)[0]
        )
        slopes = changes.network.gradient(points)[:, 0] + root @ shortest
        assert found.n_points > 0
        assert found.violation <= 1e-7
        np.testing.assert_allclose(found.network.gradient(points)[:, 0], slopes, atol=2e-4 * np.abs(slopes).max())


@pytest.mark.parametrize("name", MODELS)
class TestConditions:
    def test_monotone(self, name):
        X, y = rising(15, noise=0.3)
        model = MODELS[name](monotone=[1]).fit(X, y)
        assert MODELS[name]().fit(X, y).predict_gradient(GRID).min() < 0  # the condition says something
        assert model.fit_.shape.n_points > 0
        assert model.fit_.shape.violation <= 1e-7
        slopes = model.predict_gradient(GRID)[:, 0]
        assert slopes.min() >= -1e-3 * np.sqrt(np.mean(slopes**2))
        assert np.diff(model.predict(GRID)).min() >= -1e-6

    def test_falling_convex_and_bounded(self, name):
        X, y = rising(15, noise=0.2)
        model = MODELS[name](monotone=[-1], convex=[1], lower=-0.9, upper=1.2).fit(X, np.exp(-3 * X[:, 0]) + 0.2 * y**2)
        values = model.predict(GRID)
        assert np.diff(values).max() <= 1e-6
        curvature = model.predict_hessian(GRID).ravel()
        assert curvature.min() >= -1e-2 * np.sqrt(np.mean(curvature**2))
        assert values.min() >= -0.9
        assert values.max() <= 1.2

    def test_conditions_that_hold_change_nothing(self, name):
        X, y = plane(25, noise=0)
        free, model = (MODELS[name](**shape).fit(X, y) for shape in ({}, {"monotone": [1, -1], "lower": -5}))
        np.testing.assert_array_equal(model.predict(X), free.predict(X))
        assert model.estimated_error_ == free.estimated_error_
        assert "the fit meets that as it is" in str(model.report())

    def test_data_that_contradict_the_conditions(self, name):
        X, y = rising(12, noise=0)
        with pytest.warns(UserWarning, match=r"the data contradict the conditions on the shape \(increasing in x0\)"):
            model = MODELS[name](monotone=[1]).fit(X, -y)
        values = model.predict(GRID)
        assert np.diff(values).min() >= -1e-6
        np.testing.assert_allclose(values, -y.mean(), atol=0.3)  # the best rising function is constant
        true = np.sqrt(np.mean((values + np.tanh(8 * (GRID[:, 0] - 0.5))) ** 2))
        assert 0.5 < model.estimated_error_ / true < 3

    def test_several_outputs_have_their_own(self, name):
        X, y = rising(15, noise=0.3)
        model = MODELS[name](monotone=[[1], [-1], [0]], lower=[None, -0.5, -np.inf]).fit(
            X, np.stack([y, -y, y], axis=1)
        )
        slopes, values = model.predict_gradient(GRID)[..., 0], model.predict(GRID)
        assert np.diff(values[:, 0]).min() >= -1e-6
        assert np.diff(values[:, 1]).max() <= 1e-6
        assert slopes[:, 2].min() < -1e-3
        assert values[:, 1].min() >= -0.5 - 1e-6
        assert model.predict_interval(GRID)[:, 1].min() >= -0.5
        assert model.predict_interval(GRID)[:, 0].min() < -0.5

    def test_names_of_inputs(self, name):
        X, y = plane(20, noise=0.4)
        frame = pd.DataFrame(X, columns=["a", "b"])
        model = MODELS[name](monotone={"b": -1}, convex=["a"]).fit(frame, y)
        fresh = pd.DataFrame(
            np.random.default_rng(1).uniform(X.min(axis=0), X.max(axis=0), (300, 2)), columns=["a", "b"]
        )
        slopes, curvatures = model.predict_gradient(fresh)[:, 1], model.predict_hessian(fresh)[:, 0, 0]
        assert slopes.max() <= 0.05 * np.sqrt(np.mean(slopes**2))
        assert curvatures.min() >= -0.05 * np.sqrt(np.mean(curvatures**2))
        assert "decreasing in b; convex in a" in str(model.report())

    def test_saved_loaded_cloned_and_updated(self, name, tmp_path):
        X, y = rising(15, noise=0.3)
        model = MODELS[name](monotone={0: 1}, lower=-1.0).fit(X, y)
        model.save(tmp_path / "model.nurf")
        loaded = nurf.load(tmp_path / "model.nurf")
        np.testing.assert_array_equal(loaded.predict(GRID), model.predict(GRID))
        np.testing.assert_array_equal(loaded.predict_interval(GRID), model.predict_interval(GRID))
        assert str(loaded.report()) == str(model.report())
        assert clone(model).monotone == {0: 1}
        more = rising(40, noise=0.3, seed=1)
        with pytest.warns(UserWarning, match="settings were chosen with 15"):
            model.update(*more)
        assert np.diff(model.predict(GRID)).min() >= -1e-6

    def test_intervals_and_draws_are_within_the_bounds(self, name):
        X, y = rising(15, noise=0.3)
        model = MODELS[name](lower=-0.9, upper=0.9).fit(X, y)
        intervals, draws = model.predict_interval(GRID), model.draws(30, random_state=0)
        values = draws.value(GRID)
        for each in (intervals, values):
            assert each.min() == -0.9
            assert each.max() == 0.9
        at, h = GRID[::50] + 0.0003, 1e-5
        differences = (draws.value(at + h) - draws.value(at - h)) / (2 * h)
        scale = np.abs(differences).max()
        close = np.abs(draws.gradient(at)[..., 0] - differences) < 1e-2 * scale
        assert close.mean() > 0.99  # but for kinks

    def test_logarithms_of_values_keep_signs_and_bounds(self, name):
        X, y = rising(15, noise=0.3)
        model = MODELS[name](monotone=[1], lower=0.4, upper=50.0, target="log").fit(X, np.exp(2 * y))
        values = model.predict(GRID)
        assert np.diff(values).min() >= -1e-6
        assert values.min() >= 0.4 - 1e-6
        assert values.max() <= 50 + 1e-6
        with pytest.raises(ValueError, match="`convex` needs values and inputs without a transformation"):
            MODELS[name](convex=[1], target="log").fit(X, np.exp(2 * y))
        with pytest.raises(ValueError, match="`upper` must be positive where logarithms are taken"):
            MODELS[name](upper=-1.0, target="log").fit(X, np.exp(2 * y))

    def test_gradients_in_the_data(self, name):
        X, y = rising(8, noise=0)
        slopes = 8 / np.cosh(8 * (X - 0.5)) ** 2
        model = MODELS[name](monotone=[1], lower=-1.0, upper=1.0).fit(X, y, gradients=slopes)
        values = model.predict(GRID)
        assert np.diff(values).min() >= -1e-6
        assert np.abs(values).max() <= 1 + 1e-6


class TestAccuracy:
    @pytest.mark.parametrize("name", ["wide", "sampled"])
    def test_conditions_help_where_they_say_something(self, name):
        ratios = []
        for seed in range(6):
            X, y = rising(10, noise=0.2, seed=seed)
            truth = np.tanh(8 * (GRID[:, 0] - 0.5))
            errors = [
                np.sqrt(np.mean((MODELS[name](**shape).fit(X, y).predict(GRID) - truth) ** 2))
                for shape in ({}, {"monotone": [1], "lower": -1.0, "upper": 1.0})
            ]
            ratios.append(errors[1] / errors[0])
        assert np.exp(np.mean(np.log(ratios))) < 0.95

    def test_beside_isotonic_regression(self):
        X, y = rising(30, noise=0.2)
        isotonic = IsotonicRegression().fit(X[:, 0], y).predict(X[:, 0])
        model = KernelFeatureRegressor(monotone=[1]).fit(X, y)
        squares = [np.mean((each - y) ** 2) for each in (model.predict(X), isotonic)]
        assert squares[0] >= squares[1] * (1 - 1e-9)  # of all rising functions, the nearest to the samples
        assert np.sqrt(np.mean((model.predict(X) - isotonic) ** 2)) < 0.2
        truth = np.tanh(8 * (X[:, 0] - 0.5))
        assert np.mean((model.predict(X) - truth) ** 2) < np.mean((isotonic - truth) ** 2)

    def test_reported_errors_are_those_of_fresh_measurements(self):
        ratios = []
        for seed in range(8):
            X, y = rising(20, noise=0.2, seed=seed)
            model = KernelFeatureRegressor(monotone=[1]).fit(X, y)
            fresh = rising(2000, noise=0.2, seed=100 + seed)
            ratios.append(model.estimated_error_ / np.sqrt(np.mean((model.predict(fresh[0]) - fresh[1]) ** 2)))
        assert 0.8 < np.exp(np.mean(np.log(ratios))) < 1.5


class TestUse:
    def test_fewer_directions_of_many_inputs(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (60, 8))
        a = np.array([1, 2, -1, 0, 0, 1, 0, 0]) / 3
        gradients = (3 / np.cosh(3 * X @ a) ** 2)[:, None] * a
        y = np.tanh(3 * X @ a) + 0.2 * rng.standard_normal(60)
        signs = {0: 1, 1: 1, 2: -1, 3: 1}
        model = RandomFeatureRegressor(80, rank=1, monotone=signs, random_state=0).fit(X, y, gradients=gradients)
        slopes = model.predict_gradient(rng.uniform(-1, 1, (300, 8)))
        assert model.scaling_.x_basis is not None
        assert slopes[:, 1].min() >= -1e-3 * np.abs(slopes[:, 1]).max()
        assert slopes[:, 2].max() <= 1e-3 * np.abs(slopes[:, 2]).max()

    def test_logarithms_of_inputs_keep_signs(self):
        X, y = rising(20, noise=0.3)
        model = KernelFeatureRegressor(monotone=[1], inputs="log").fit(10 ** (3 * X), y)
        assert np.diff(model.predict(10 ** (3 * GRID))).min() >= -1e-6

    def test_grid_search_over_conditions(self):
        X, y = rising(20, noise=0.3)
        search = GridSearchCV(KernelFeatureRegressor(), {"monotone": [None, [1]]}, cv=3).fit(X, y)
        assert len(search.cv_results_["mean_test_score"]) == 2

    def test_trained_networks_say_that_they_cannot(self):
        X, y = rising(12)
        model = Surrogate(monotone=[1], random_state=0).fit(X, y)
        assert {row.engine for row in model.leaderboard_} == {"wide", "sampled"}
        with pytest.raises(ValueError, match="need 'wide' or 'sampled' engines, got 'trained'"):
            Surrogate(monotone=[1], engines=["wide", "trained"]).fit(X, y)
        with pytest.raises(ValueError, match="conditions on the shape are parameters of `Surrogate`"):
            Surrogate(engines=[KernelFeatureRegressor(monotone=[1])]).fit(X, y)
        for kind in DeepFeatureRegressor, SparseFeatureRegressor:
            with pytest.raises(TypeError, match="are parameters of KernelFeatureRegressor, RandomFeatureRegressor and"):
                kind(monotone=[1])

    @pytest.mark.parametrize("name", ["wide", "sampled"])
    def test_default_names(self, name):
        X, y = rising(12, noise=0.3)
        models = [MODELS[name](monotone=signs).fit(X, y) for signs in ({"x0": 1}, {0: 1}, ["x0"])]
        for model in models[1:]:
            np.testing.assert_array_equal(model.predict(GRID), models[0].predict(GRID))

    @pytest.mark.parametrize("name", ["wide", "sampled"])
    @pytest.mark.parametrize(
        ("shape", "words"),
        [({"monotone": [-1]}, "decreasing in x0"), ({"lower": 2.0}, "values >= 2"), ({"convex": [1]}, None)],
    )
    def test_data_that_contradict_are_named(self, name, shape, words):
        """An increasing function with values below one; a parabola is convex."""
        X = np.linspace(0, 1, 20)[:, None]
        y = np.sin(1.5 * X[:, 0]) if words else (X[:, 0] - 0.3) ** 2
        y = y + 0.02 * np.random.default_rng(0).standard_normal(20)
        found = pytest.warns(UserWarning, match=f"data contradict the conditions .*{words}") if words else nullcontext()
        with found:
            MODELS[name](**shape).fit(X, y)

    def test_exported_networks_have_the_shape(self):
        X, y = rising(12, noise=0.3)
        model = KernelFeatureRegressor(monotone=[1]).fit(X, y)
        space = {}
        exec(to_python(model), space)
        np.testing.assert_allclose(
            [space["value"](list(x)) for x in GRID[::100]], model.predict(GRID[::100]), rtol=1e-5
        )

    @pytest.mark.parametrize(
        ("shape", "message"),
        [
            ({"monotone": [2, 0]}, "`monotone` must be 1, -1 or 0 for each of 2 inputs"),
            ({"monotone": [1]}, r"or a dict of these by name, got \[1\]"),
            ({"monotone": 1}, "`monotone` must be 1, -1 or 0"),
            ({"convex": {"z": 1}}, r"`convex` must have names of inputs out of \['a', 'b'\], got 'z'"),
            ({"convex": ["z"]}, r"`convex` must have names of inputs out of \['a', 'b'\], got 'z'"),
            ({"lower": 1.0, "upper": 0.0}, "`lower` must be less than `upper`, got 1.0 and 0.0"),
            ({"lower": "zero"}, "`lower` must be a number, or one for each of 1 outputs, got 'zero'"),
            ({"upper": [1.0, 2.0]}, "`upper` must be a number, or one for each of 1 outputs"),
            ({"lower": np.nan}, "`lower` must be a number"),
        ],
    )
    def test_what_is_no_condition(self, shape, message):
        X, y = plane(12)
        for make in (MODELS["wide"], MODELS["surrogate"]):
            with pytest.raises(ValueError, match=message):
                make(**shape).fit(pd.DataFrame(X, columns=["a", "b"]), y)

    def test_what_does_not_go_together(self):
        X, y = plane(30)
        with pytest.raises(ValueError, match="conditions on the shape and a `base` do not go together"):
            KernelFeatureRegressor(monotone=[1, 0]).fit(X, y, base=lambda X: X[:, 0])
        with pytest.raises(ValueError, match="`loss` must be 'squared' with conditions on the shape"):
            RandomFeatureRegressor(20, loss="huber", monotone=[1, 0], random_state=0).fit(X, y)
        with pytest.raises(ValueError, match="conditions on the shape must be None for data in blocks"):
            RandomFeatureRegressor(20, monotone=[1, 0], random_state=0).fit_blocks([(X, y)])

    @pytest.mark.parametrize("n", [1, 2, 3, 5])
    @pytest.mark.parametrize("name", ["wide", "sampled"])
    def test_few_samples(self, name, n):
        X = np.linspace(0, 1, n)[:, None]
        told = pytest.warns(UserWarning, match="contradict") if n > 3 else nullcontext()
        with told, warnings.catch_warnings():
            if n == 3:  # three errors may grow by chance
                warnings.simplefilter("ignore")
            model = MODELS[name](monotone=[1], lower=-2.0).fit(X, -X[:, 0])
        assert np.diff(model.predict(GRID)).min() >= -1e-6

    @pytest.mark.parametrize("scale", [1e-150, 1e150])
    def test_units_far_from_one(self, scale):
        X, y = rising(12, noise=0.3)
        model = KernelFeatureRegressor(monotone=[1], upper=0.9 * scale).fit(1e100 * X, scale * y)
        values = model.predict(1e100 * GRID) / scale
        assert np.diff(values).min() >= -1e-6
        assert values.max() <= 0.9 + 1e-6

    def test_constants(self):
        X = np.ones((6, 2)) * [[0.0, 1.0]] + np.linspace(0, 1, 6)[:, None] * [[1.0, 0.0]]
        model = KernelFeatureRegressor(monotone=[1, 1], lower=1.0).fit(X, np.zeros(6))
        np.testing.assert_allclose(model.predict(X), 1.0, atol=1e-3)
