"""Two fidelities: a fit that corrects a cheaper model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import nurf
from nurf import (
    DeepFeatureRegressor,
    GradientPipeline,
    KernelFeatureRegressor,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
)
from nurf.decisions import propagate
from nurf.engines import factors_of
from nurf.export import to_python
from nurf.jets import Jet

FRESH = np.linspace(0, 1, 301)[:, None]


def dear(X):
    return (6 * X[:, 0] - 2) ** 2 * np.sin(12 * X[:, 0] - 4)


def slopes(X):
    return 12 * (6 * X - 2) * np.sin(12 * X - 4) + 12 * (6 * X - 2) ** 2 * np.cos(12 * X - 4)


def cheap(X):
    return 0.5 * dear(X) + 10 * (X[:, 0] - 0.5) - 5


def cheap_slopes(X):
    return 0.5 * slopes(X) + 10


def plane_data(n, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 0]
    gradients = np.stack([3 * np.cos(3 * X[:, 0]) * X[:, 1] + 1, np.sin(3 * X[:, 0])], axis=1)
    return X, y, gradients


@pytest.fixture(scope="module")
def base():
    X = np.linspace(0, 1, 15)[:, None]
    return KernelFeatureRegressor().fit(X, cheap(X), gradients=cheap_slopes(X))


def error(model):
    return np.sqrt(np.mean((model.predict(FRESH) - dear(FRESH)) ** 2))


MODELS = {
    "wide": lambda: KernelFeatureRegressor(),
    "sampled": lambda: RandomFeatureRegressor(200, random_state=0),
    "surrogate": lambda: Surrogate(engines=["wide", "sampled"], time_budget=None, random_state=0),
}


class TestAccuracy:
    @pytest.mark.parametrize("name", MODELS)
    @pytest.mark.parametrize("with_gradients", [False, True])
    def test_forrester_has_at_most_half_the_error(self, base, name, with_gradients):
        X = np.linspace(0, 1, 5)[:, None]
        data = {"gradients": slopes(X)} if with_gradients else {}
        alone = MODELS[name]().fit(X, dear(X), **data)
        model = MODELS[name]().fit(X, dear(X), **data, base=base)
        assert model.base_ is base
        assert error(model) <= 0.5 * error(alone)

    def test_the_factor_of_exact_data_is_exact(self):
        X = np.linspace(0, 1, 6)[:, None]
        jets = Jet(X, dear(X), slopes(X)), Jet(X, cheap(X), cheap_slopes(X))
        assert factors_of(*jets).factors == pytest.approx([2.0], abs=1e-4)  # the residual is affine

    def test_factors_of_outputs_are_independent_of_units(self):
        X, y, _ = plane_data(12)
        rest = np.stack([np.exp(X[:, 0]), X[:, 0]], axis=1)
        cheap_values = np.stack([y, np.cos(X[:, 1])], axis=1)
        values = np.array([3.0, -2.0]) * cheap_values + 0.1 * rest
        one, other = (factors_of(Jet(X, scale * values), Jet(X, 1e6 * cheap_values)).factors for scale in (1.0, 1e-3))
        np.testing.assert_allclose(one * 1e6, [3, -2], rtol=0.05)
        np.testing.assert_allclose(other, 1e-3 * one, rtol=1e-3)

    def test_a_base_that_says_nothing_does_no_harm(self):
        X, y, _ = plane_data(20)
        fresh, truth, _ = plane_data(1000, seed=1)
        misleading = lambda X: np.sin(9 * X[:, 0] + 5 * X[:, 1])  # noqa: E731
        errors = [
            np.sqrt(np.mean((KernelFeatureRegressor().fit(X, y, base=given).predict(fresh) - truth) ** 2))
            for given in (None, misleading)
        ]
        assert errors[1] <= 1.1 * errors[0]

    def test_the_estimated_error_is_that_of_the_sum(self, base):
        X = np.linspace(0, 1, 9)[:, None]
        model = KernelFeatureRegressor().fit(X, dear(X), base=base)
        assert 1 / 4 < model.estimated_error_ / error(model) < 8


class TestDerivatives:
    @pytest.mark.parametrize("name", MODELS)
    def test_gradients_and_hessians_are_those_of_the_predictions(self, base, name):
        X = np.linspace(0, 1, 6)[:, None]
        model = MODELS[name]().fit(X, dear(X), gradients=slopes(X), base=base)
        at, h = np.array([[0.13], [0.52], [0.97]]), 1e-3  # values of kernels are rounded by up to 1e-6 here
        up, down = (model.predict(at + sign * h) for sign in (1, -1))
        np.testing.assert_allclose(model.predict_gradient(at)[:, 0], (up - down) / (2 * h), atol=1e-2)
        up, down = (model.predict_gradient(at + sign * h) for sign in (1, -1))
        np.testing.assert_allclose(model.predict_hessian(at)[:, 0], (up - down) / (2 * h), atol=0.5)
        np.testing.assert_allclose(model.network_.value(at), model.predict(at), rtol=1e-4)
        function = model.function()
        np.testing.assert_allclose(function(at), model.predict(at), rtol=1e-4)
        np.testing.assert_allclose(function.gradient(at[0]), model.predict_gradient(at)[0], rtol=1e-3)

    def test_callables_give_values_gradients_and_hessians(self):
        X, y, gradients = plane_data(8)
        value = lambda X: np.sin(3 * X[:, 0]) * X[:, 1]  # noqa: E731
        gradient = lambda X: np.stack([3 * np.cos(3 * X[:, 0]) * X[:, 1], np.sin(3 * X[:, 0])], axis=1)  # noqa: E731
        model = KernelFeatureRegressor().fit(X, y, gradients=gradients, base=(value, gradient))
        fresh, truth, slopes = plane_data(100, seed=1)
        np.testing.assert_allclose(model.predict(fresh), truth, atol=1e-4)
        np.testing.assert_allclose(model.predict_gradient(fresh), slopes, atol=1e-3)
        assert model.base_ == (value, gradient)
        with pytest.raises(ValueError, match="up to the Hessians that are asked for, got 2 functions"):
            model.predict_hessian(fresh)

    def test_unknown_partial_derivatives_and_directions_stay_so(self):
        X, y, gradients = plane_data(12)
        pipeline = KernelFeatureRegressor().fit(*plane_data(40)[:2])
        partial = gradients.copy()
        partial[::2, 1] = np.nan
        for data in (
            {"gradients": partial},
            {"gradients": gradients[:, :1], "directions": np.tile([[1.0, 0.0]], (12, 1))},
            {"gradients": gradients[:4], "gradients_at": X[:4]},
            {"validation": plane_data(5, seed=2)[:2]},
            {"validation": 0.3},
        ):
            data["gradients"] = data.get("gradients")
            if data["gradients"] is not None and data["gradients"].shape[1] == 1:
                data["gradients"] = data["gradients"][:, 0]
            model = KernelFeatureRegressor().fit(X, y, **data, base=pipeline)
            assert model.base_factor_ == pytest.approx(1.0, abs=0.1)


class TestUncertainty:
    def test_intervals_hold_the_truth(self, base):
        inside = []
        for seed in range(8):
            X = np.random.default_rng(seed).uniform(0, 1, (10, 1))
            model = KernelFeatureRegressor().fit(X, dear(X), base=base)
            low, high = model.predict_interval(FRESH).T
            inside.append(np.mean((low <= dear(FRESH)) & (dear(FRESH) <= high)))
        assert np.mean(inside) > 0.8

    def test_deviations_grow_where_the_base_is_less_certain(self):
        X = np.linspace(0, 0.5, 12)[:, None]  # beyond it the base knows nothing
        base = KernelFeatureRegressor().fit(X, cheap(X))
        dear_runs = np.linspace(0.05, 0.45, 7)[:, None]
        model = KernelFeatureRegressor().fit(dear_runs, dear(dear_runs), base=base)
        assert model.base_ is base
        added = model._view.base.further_std(np.array([[0.2], [0.9]]))
        deviations = base.predict(np.array([[0.9]]), return_std=True)[1]
        assert added[0] < 0.05 * added[1]
        assert added[1] == pytest.approx(abs(model.base_factor_) * deviations[0], rel=1e-2)
        assert model.predict(np.array([[0.9]]), return_std=True)[1][0] >= added[1]
        low, high = model.predict_interval(np.array([[0.9]]))[0]
        assert high - low >= 2 * 1.6 * added[1]

    def test_draws_have_the_mean_and_the_deviations_of_predictions(self):
        X = np.linspace(0, 0.5, 12)[:, None]
        base = KernelFeatureRegressor().fit(X, cheap(X))
        dear_runs = np.array([[0.05], [0.15], [0.25], [0.35], [0.45]])
        model = KernelFeatureRegressor().fit(dear_runs, dear(dear_runs), base=base)
        draws, at = model.draws(400, random_state=0), np.array([[0.2], [0.7], [0.9]])
        mean, deviations = model.predict(at, return_std=True)
        # the standard error of a mean of 400 draws is a twentieth of a deviation; five of them, and noise excluded
        assert np.all(np.abs(draws.value(at).mean(axis=0) - mean) < 0.25 * deviations)
        np.testing.assert_allclose(draws.value(at).std(axis=0)[1:], deviations[1:], rtol=0.25)
        np.testing.assert_allclose(draws.fit.value(at), mean)

    def test_draws_are_functions_with_gradients(self):
        X = np.linspace(0, 0.5, 12)[:, None]
        base = KernelFeatureRegressor().fit(X, cheap(X))
        dear_runs = np.array([[0.05], [0.15], [0.25], [0.35], [0.45]])
        draws = KernelFeatureRegressor().fit(dear_runs, dear(dear_runs), base=base).draws(6, random_state=0)
        at, h = np.array([[0.22], [0.8]]), 1e-5
        differences = (draws.value(at + h) - draws.value(at - h)) / (2 * h)
        scale = np.abs(differences).max()
        np.testing.assert_allclose(draws.gradient(at)[..., 0], differences, rtol=1e-3, atol=1e-4 * scale)
        own = np.tile(at, (6, 1, 1))
        np.testing.assert_allclose(draws.value(own), draws.value(at), rtol=1e-9, atol=1e-9 * scale)
        np.testing.assert_allclose(draws[2].value(at), draws.value(at)[2])
        np.testing.assert_allclose([each.value(at) for each in draws], draws.value(at))

    def test_decisions_are_asked_of_the_sum(self, base):
        X = np.linspace(0, 1, 8)[:, None]
        model = KernelFeatureRegressor().fit(X, dear(X), gradients=slopes(X), base=base)
        mean = np.mean(dear((np.arange(10_000)[:, None] + 0.5) / 10_000))
        assert propagate(model, n_points=2**12, random_state=0).mean.value == pytest.approx(mean, abs=0.02)


class TestUse:
    def test_names_decide_the_order_of_inputs(self):
        X, y, gradients = plane_data(40)
        swapped = KernelFeatureRegressor().fit(
            pd.DataFrame(X[:, ::-1], columns=["b", "a"]), y, gradients=gradients[:, ::-1]
        )
        few = plane_data(6, seed=3)
        frame = pd.DataFrame(few[0], columns=["a", "b"])
        model = KernelFeatureRegressor().fit(frame, few[1], gradients=few[2], base=swapped)
        fresh, truth, slopes = plane_data(50, seed=4)
        fresh = pd.DataFrame(fresh, columns=["a", "b"])
        assert model.base_factor_ == pytest.approx(1.0, abs=1e-3)
        np.testing.assert_allclose(model.predict(fresh), truth, atol=1e-2)
        np.testing.assert_allclose(model.predict_gradient(fresh), slopes, atol=5e-2)
        points = fresh.to_numpy()
        function = model.function()
        np.testing.assert_allclose(function.gradient(points), model.predict_gradient(fresh), rtol=1e-3, atol=1e-5)
        hessian = model.predict_hessian(fresh)
        np.testing.assert_allclose(hessian, np.swapaxes(hessian, 1, 2), rtol=1e-4, atol=1e-6)
        h = 1e-3 * np.array([1.0, 0.0])
        rows = (function.gradient(points + h) - function.gradient(points - h)) / 2e-3
        np.testing.assert_allclose(hessian[:, 0], rows, atol=1e-2)

    def test_a_pipeline_may_be_the_base(self):
        X, y, gradients = plane_data(40)
        steps = [("scale", StandardScaler()), ("model", KernelFeatureRegressor())]
        pipeline = GradientPipeline(steps).fit(X, y, gradients=gradients)
        few = plane_data(8, seed=3)
        model = RandomFeatureRegressor(50, random_state=0).fit(few[0], 2 * few[1], gradients=2 * few[2], base=pipeline)
        fresh, truth, _ = plane_data(50, seed=4)
        np.testing.assert_allclose(model.predict(fresh), 2 * truth, atol=0.02)

    def test_three_fidelities(self, base):
        X = np.linspace(0, 1, 8)[:, None]
        middle = KernelFeatureRegressor().fit(X, 0.9 * dear(X) + X[:, 0], gradients=0.9 * slopes(X) + 1, base=base)
        few = np.array([[0.1], [0.5], [0.8], [0.95]])
        model = KernelFeatureRegressor().fit(few, dear(few), gradients=slopes(few), base=middle)
        assert error(model) < 0.05

    def test_several_outputs(self):
        X, y, _ = plane_data(40)
        two = np.stack([y, X[:, 0] ** 2], axis=1)
        base = KernelFeatureRegressor().fit(X, two)
        few = plane_data(8, seed=3)
        values = np.stack([2 * few[1] + 1, -(few[0][:, 0] ** 2)], axis=1)
        model = KernelFeatureRegressor().fit(few[0], values, base=base)
        np.testing.assert_allclose(model.base_factor_, [2, -1], atol=0.05)
        fresh, truth, _ = plane_data(50, seed=4)
        expected = np.stack([2 * truth + 1, -(fresh[:, 0] ** 2)], axis=1)
        np.testing.assert_allclose(model.predict(fresh), expected, atol=0.05)
        assert model.predict_interval(fresh).shape == (50, 2, 2)
        assert model.draws(3, 0).gradient(fresh).shape == (3, 50, 2, 2)

    @pytest.mark.parametrize("name", MODELS)
    def test_saved_and_loaded(self, base, name, tmp_path):
        X = np.linspace(0, 1, 6)[:, None]
        model = MODELS[name]().fit(X, dear(X), gradients=slopes(X), base=base)
        model.save(tmp_path / "model.nurf")
        loaded = nurf.load(tmp_path / "model.nurf")
        np.testing.assert_array_equal(loaded.predict(FRESH), model.predict(FRESH))
        np.testing.assert_array_equal(loaded.predict_interval(FRESH), model.predict_interval(FRESH))
        assert loaded.base_factor_ == model.base_factor_
        assert str(loaded.report()) == str(model.report())

    def test_callables_are_not_saved(self, tmp_path):
        X = np.linspace(0, 1, 6)[:, None]
        model = KernelFeatureRegressor().fit(X, dear(X), base=cheap)
        with pytest.raises(TypeError, match="contains only numbers"):
            model.save(tmp_path / "model.nurf")

    def test_update_keeps_base_and_factor(self, base):
        X = np.linspace(0, 1, 8)[:, None]
        model = KernelFeatureRegressor().fit(X[::2], dear(X[::2]), base=base)
        factor, before = model.base_factor_, error(model)
        model.update(X, dear(X))
        assert model.base_factor_ == factor
        assert error(model) < before

    def test_a_fit_without_a_base_forgets_it(self, base):
        X = np.linspace(0, 1, 6)[:, None]
        model = RandomFeatureRegressor(50, random_state=0).fit(X, dear(X), base=base)
        model.fit(X, dear(X))
        np.testing.assert_array_equal(
            model.predict(FRESH), RandomFeatureRegressor(50, random_state=0).fit(X, dear(X)).predict(FRESH)
        )
        assert model.base_ is None
        assert model.base_factor_ == 0

    def test_grid_search_hands_the_base_on(self, base):
        X = np.linspace(0, 1, 9)[:, None]
        search = GridSearchCV(KernelFeatureRegressor(), {"kernel": ["gaussian", "matern"]}, cv=3)
        search.fit(X, dear(X), base=base)
        assert search.best_estimator_.base_ is base
        assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()

    @pytest.mark.parametrize(
        "model",
        [DeepFeatureRegressor((16, 16), steps=300, random_state=0), SparseFeatureRegressor(width=0.5, random_state=0)],
    )
    def test_trained_and_sparse_networks_take_a_base(self, base, model):
        X = np.linspace(0, 1, 6)[:, None]
        model.fit(X, dear(X), gradients=slopes(X), base=base)
        assert (
            error(model) < 3
        )  # of values with a standard deviation of 5, and 20 samples fewer than these networks want
        assert "times the base" in str(model.report())

    def test_the_report_says_what_became_of_the_base(self, base):
        X = np.linspace(0, 1, 6)[:, None]
        model = KernelFeatureRegressor().fit(X, dear(X), gradients=slopes(X), base=base)
        assert "values minus 2 times the base; estimated error" in str(model.report())
        assert model.y_scale_ == pytest.approx(dear(X).std())

    def test_exports_refuse(self, base):
        X = np.linspace(0, 1, 6)[:, None]
        with pytest.raises(ValueError, match="corrects a `base` is not exported"):
            to_python(KernelFeatureRegressor().fit(X, dear(X), base=base))


class TestErrors:
    @pytest.mark.parametrize(
        ("given", "kind", "message"),
        [
            (3, TypeError, "with `predict` and `predict_gradient`, or functions .*, got int"),
            (KernelFeatureRegressor(), ValueError, "not fitted"),
            ([], ValueError, "functions"),
            (lambda X: np.zeros((len(X), 3)), ValueError, r"values of `base` must have shape \(6,\).* got \(6, 3\)"),
            (lambda X: np.full(len(X), np.nan), ValueError, "must be finite"),
        ],
    )
    def test_what_is_no_base(self, given, kind, message):
        X = np.linspace(0, 1, 6)[:, None]
        with pytest.raises(kind, match=message):
            KernelFeatureRegressor().fit(X, dear(X), base=given)

    def test_inputs_must_be_the_same(self, base):
        X, y, _ = plane_data(8)
        with pytest.raises(ValueError, match="`base` must have 2 inputs, as `X` has, got one of 1"):
            KernelFeatureRegressor().fit(X, y, base=base)
        named = KernelFeatureRegressor().fit(pd.DataFrame(X, columns=["a", "b"]), y)
        with pytest.raises(ValueError, match=r"the inputs \['a', 'c'\], as `X` has, got \['a', 'b'\]"):
            KernelFeatureRegressor().fit(pd.DataFrame(X, columns=["a", "c"]), y, base=named)

    def test_gradients_need_those_of_the_base(self):
        X = np.linspace(0, 1, 6)[:, None]
        with pytest.raises(ValueError, match="up to the gradients that are asked for, got 1 function"):
            KernelFeatureRegressor().fit(X, dear(X), gradients=slopes(X), base=cheap)

    def test_a_transformation_by_request_is_refused(self, base):
        X = np.linspace(0, 1, 6)[:, None]
        with pytest.raises(ValueError, match="`target` must be None or 'auto' with a `base`, got 'log'"):
            KernelFeatureRegressor(target="log").fit(X, 20 + dear(X), base=base)

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_few_samples(self, base, n):
        X = np.linspace(0.2, 0.9, n)[:, None]
        model = KernelFeatureRegressor().fit(X, dear(X), base=base)
        assert np.all(np.isfinite(model.predict(FRESH)))
        if n < 3:
            assert model.base_factor_ == 1

    @pytest.mark.parametrize("scale", [1e-150, 1e150])
    def test_units_far_from_one(self, scale):
        X, y, _ = plane_data(15)
        base = KernelFeatureRegressor().fit(X, scale * y)
        few = plane_data(8, seed=3)
        model = KernelFeatureRegressor().fit(few[0], scale * (few[1] + 1), base=base)
        assert model.base_factor_ == pytest.approx(1.0, abs=0.2)

    def test_constants(self, base):
        X = np.linspace(0, 1, 6)[:, None]
        model = KernelFeatureRegressor().fit(X, np.ones(6), base=base)
        np.testing.assert_allclose(model.predict(FRESH), 1.0, atol=1e-6)
        model = KernelFeatureRegressor().fit(X, dear(X), base=lambda X: np.ones(len(X)))
        assert np.all(np.isfinite(model.predict(FRESH)))
