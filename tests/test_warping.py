"""Values and inputs over decades: logarithms and asinh in front of a fit, everything else in the units of the data."""

import ctypes
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import nurf
from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
    export,
)
from nurf._warping import CURVES, Warp, Warping, has_heavy_tails, offered, spreads_over_decades
from nurf.choosing import Evidence, assign_folds
from nurf.estimators._warped import tail_warnings
from nurf.jets import Jet
from test_export import compile_c

pytestmark = pytest.mark.filterwarnings("ignore:.* samples carry 90%")  # they do, and errors are what is tested

POWERS = np.array([1.5, -0.7, 0.4])  # of a law that is linear in logarithms
FIXED = {"density": "uniform", "width": 0.5, "alpha": 1e-6, "growth": None, "tail": "affine", "random_state": 0}


def power_law(n, seed=0):
    """Return ``x_1^a x_2^b exp(c x_3)`` over two decades of the first inputs, with gradients and Hessians."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([10.0 ** rng.uniform(-1, 1, (n, 2)), rng.uniform(-1, 1, n)])
    y = np.exp(np.log(X[:, :2]) @ POWERS[:2] + POWERS[2] * X[:, 2])
    rates = np.column_stack([POWERS[:2] / X[:, :2], np.full(n, POWERS[2])])  # of log y
    bends = np.column_stack([-POWERS[:2] / X[:, :2] ** 2, np.zeros(n)])
    hessians = rates[:, :, None] * rates[:, None, :] + bends[:, :, None] * np.eye(3)
    return X, y, y[:, None] * rates, y[:, None, None] * hessians


def law_warping(y, outputs=("log",)):
    scale = np.std(y, axis=0)
    return Warping(Warp(("log", "log", None), np.ones(3)), Warp(outputs, np.ones(len(outputs))), np.asarray(scale))


class TestCurves:
    @pytest.mark.parametrize("name", CURVES)
    def test_inverse_and_derivatives(self, name):
        curve, t, h = CURVES[name], np.array([0.03, 0.5, 2.0, 40.0]), 1e-6
        u = curve.value(t)
        assert_allclose(curve.back(u), t, rtol=1e-12)
        for function, derivative, at in (
            (curve.value, curve.slope, t),
            (curve.slope, curve.curvature, t),
            (curve.back, curve.back_slope, u),
            (curve.back_slope, curve.back_curvature, u),
        ):
            steps = h * np.maximum(np.abs(at), 0.01)
            differences = (function(at + steps) - function(at - steps)) / (2 * steps)
            assert_allclose(derivative(at), differences, rtol=1e-5, atol=1e-6)

    def test_the_scale_of_asinh_is_the_median_size(self):
        warp = Warp.of(("asinh", None), np.array([[-1.0, 5.0], [3.0, 6.0], [100.0, 7.0]]))
        assert warp.scales.tolist() == [3.0, 1.0]
        assert Warp.of(("asinh",), np.array([[0.0], [0.0], [4.0]])).scales.tolist() == [4.0]
        assert Warp.of((None, None), np.ones((3, 2))) is None


class TestChainRule:
    def test_a_power_law_is_linear_in_logarithms(self):
        X, y, gradients, hessians = power_law(7)
        jet = law_warping(y)(Jet(X, y, gradients, hessians))
        assert_allclose(jet.X, np.column_stack([np.log(X[:, :2]), X[:, 2]]))
        assert_allclose(jet.y, jet.X @ POWERS, rtol=1e-12)
        assert_allclose(jet.gradients, np.tile(POWERS, (7, 1)), rtol=1e-10)
        assert_allclose(jet.hessians, 0.0, atol=1e-10)

    def test_directional_derivatives(self):
        X, y, gradients, _ = power_law(5)
        directions = np.random.default_rng(1).normal(size=(5, 3))
        jet = law_warping(y)(Jet.along(X, y, directions, np.sum(directions * gradients, axis=1)))
        moved = directions / np.column_stack([X[:, :2], np.ones(5)])  # of the logarithms
        assert_allclose(np.sum(jet.gradients * moved, axis=1), moved @ POWERS, rtol=1e-10)
        assert_allclose(np.abs(np.sum(jet.frames[:, 0] * moved, axis=1)), np.linalg.norm(moved, axis=1), rtol=1e-10)

    def test_back_and_forth(self):
        X, y, gradients, hessians = power_law(6)
        Y = np.stack([y, y - 1.0], axis=1)
        slopes, bends = np.stack([gradients] * 2, axis=1), np.stack([hessians] * 2, axis=1)
        warping = law_warping(Y, ("log", "asinh"))
        jet = warping(Jet(X, Y, slopes, bends))
        found = warping.derivatives_back(X, jet.y, jet.gradients, jet.hessians)
        assert_allclose(warping.values_back(jet.y), Y, rtol=1e-12)
        assert_allclose(found[0], slopes, rtol=1e-10)
        assert_allclose(found[1], bends, rtol=1e-8, atol=1e-10)

    def test_unknown_derivatives_stay_unknown_and_spoil_no_others(self):
        X, y, gradients, hessians = power_law(4)
        gradients[0, 0] = np.nan
        jet = Warping(Warp(("log", "log", None), np.ones(3)), None, np.std(y))(Jet(X, y, gradients, hessians))
        assert np.isnan(jet.gradients).sum() == 1
        assert np.argwhere(np.isnan(jet.hessians)).tolist() == [[0, 0, 0]]

    def test_what_does_not_go_through_is_said(self):
        X, y, gradients, hessians = power_law(4)
        warping = law_warping(y)
        with pytest.raises(ValueError, match="`hessians` need `gradients`"):
            warping(Jet(X, y, hessians=hessians))
        with pytest.raises(ValueError, match="only where the value is known"):
            warping(Jet(X, np.where(np.arange(4) == 2, np.nan, y), gradients))


class TestOffers:
    def test_logarithms_are_for_positive_numbers_over_decades(self):
        rng = np.random.default_rng(0)
        assert spreads_over_decades(10 ** rng.uniform(-1, 1, 100))
        assert spreads_over_decades(np.exp(rng.normal(size=100)))
        assert not spreads_over_decades(rng.uniform(0, 1, 100))  # the smallest is small, and that is all
        assert not spreads_over_decades(10 ** rng.uniform(0, 0.5, 100))
        assert not spreads_over_decades(np.append(10 ** rng.uniform(-1, 1, 100), 0.0))
        assert not spreads_over_decades(np.ones(10))
        assert not spreads_over_decades(np.empty(0))

    def test_asinh_is_for_heavy_tails_of_both_signs(self):
        rng = np.random.default_rng(0)
        tails = rng.standard_t(1, 200)
        assert has_heavy_tails(tails)
        assert not has_heavy_tails(rng.normal(size=200))
        columns = np.column_stack([tails, rng.normal(size=200), np.exp(rng.normal(size=200))])
        assert offered(columns, asinh=True) == ("asinh", None, "log")
        assert offered(columns, asinh=False) == (None, None, "log")


REGRESSORS = {
    "wide": KernelFeatureRegressor("gaussian"),
    "sampled": RandomFeatureRegressor(40, **FIXED),
    "trained": DeepFeatureRegressor((16, 16), steps=200, random_state=0),
    "sparse": SparseFeatureRegressor(1e-3, width=0.5, random_state=0),
    "surrogate": Surrogate(None, engines=[RandomFeatureRegressor(40, **FIXED), "wide"], random_state=0),
}


def with_transforms(name, **others):
    return clone(REGRESSORS[name]).set_params(**{"target": "log", "inputs": ["log", "log", None]} | others)


def fitted(name, n=60, **others):
    X, y, gradients, _ = power_law(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return with_transforms(name, **others).fit(X, y, gradients=gradients)


def fitted_to_noise(name):
    """Return a fit to noisy values, whose coefficients are moderate, so that roundings of predictions are small."""
    X, y, _, _ = power_law(60)
    return with_transforms(name).fit(X, y * np.exp(0.1 * np.random.default_rng(2).normal(size=60)))


class TestRegressors:
    @pytest.mark.parametrize("name", ["wide", "sampled", "surrogate"])
    def test_a_power_law_is_found(self, name):
        X, y, gradients, hessians = power_law(200, seed=1)
        model = fitted(name)
        assert_allclose(model.predict(X), y, rtol=1e-2)
        assert_allclose(model.predict_gradient(X), gradients, rtol=0.1, atol=0.05 * np.abs(gradients).mean())
        size = np.abs(hessians).mean()
        assert np.median(np.abs(model.predict_hessian(X) - hessians)) < 0.05 * size

    @pytest.mark.parametrize("name", REGRESSORS)
    def test_derivatives_are_those_of_the_prediction(self, name):
        model, X = fitted_to_noise(name), power_law(5, seed=1)[0]
        gradients, hessians, h = model.predict_gradient(X), model.predict_hessian(X), 1e-3
        for j in range(3):
            steps = np.zeros((5, 3))
            steps[:, j] = h * (X[:, j] if j < 2 else 1.0)
            width = 2 * steps[:, j]
            values = (model.predict(X + steps) - model.predict(X - steps)) / width
            slopes = (model.predict_gradient(X + steps) - model.predict_gradient(X - steps)) / width[:, None]
            assert_allclose(gradients[:, j], values, rtol=1e-3, atol=1e-3 * np.abs(gradients).max())
            assert_allclose(hessians[:, j], slopes, rtol=1e-3, atol=1e-3 * np.abs(hessians).max())

    @pytest.mark.parametrize("name", REGRESSORS)
    def test_all_ways_to_compute_agree(self, name, tmp_path):
        model, X = fitted_to_noise(name), power_law(5, seed=1)[0]
        values, gradients = model.predict(X), model.predict_gradient(X)
        function = model.function()
        for found, slopes in (
            (function(X), function.gradient(X)),
            (np.array([function(x) for x in X]), np.array([function.value_and_gradient(x)[1] for x in X])),
            (model.network_.value(X), model.network_.gradient(X)),
        ):
            assert_allclose(found, values, rtol=1e-6)
            assert_allclose(slopes, gradients, rtol=1e-5, atol=1e-6 * np.abs(gradients).max())
        assert_allclose(model.network_.hessian(X), model.predict_hessian(X), rtol=1e-3, atol=1e-3)
        model.save(tmp_path / "model.nurf")
        for other in (nurf.load(tmp_path / "model.nurf"), pickle.loads(pickle.dumps(model))):
            assert np.array_equal(other.predict(X), values)
            assert np.array_equal(other.predict_interval(X), model.predict_interval(X))
        assert "log of the values, log of 2 inputs" in str(model.report())

    def test_the_fit_is_that_of_the_logarithms(self):
        """With nothing to choose, the network is the one of logarithms; the oracle transforms by hand."""
        X, y, gradients, _ = power_law(60)
        Z, factors = np.column_stack([np.log(X[:, :2]), X[:, 2]]), np.column_stack([X[:, :2], np.ones(60)])
        waves = np.exp(np.sin(5 * X[:, 2]))  # a power law alone would be exact
        gradients = waves[:, None] * (gradients + y[:, None] * (5 * np.cos(5 * X[:, [2]])) * [0, 0, 1])
        y = waves * y
        model = with_transforms("sampled").fit(X, y, gradients=gradients)
        other = RandomFeatureRegressor(40, **FIXED).fit(Z, np.log(y), gradients=gradients * factors / y[:, None])
        means, deviations = other.predict(Z, return_std=True)
        values, found = model.predict(X, return_std=True)
        assert_allclose(values, np.exp(means), rtol=1e-6)
        assert_allclose(found, values * np.sinh(deviations), rtol=1e-5)
        assert_allclose(model.predict_interval(X), np.exp(other.predict_interval(Z)), rtol=1e-5)
        _, slopes = other.predict_gradient(Z, return_std=True)
        by_hand = np.hypot(slopes, other.predict_gradient(Z) * deviations[:, None]) * values[:, None] / factors
        assert_allclose(model.predict_gradient(X, return_std=True)[1], by_hand, rtol=1e-5)

    @pytest.mark.parametrize("name", ["wide", "sampled", "trained"])
    @pytest.mark.parametrize("outputs", [1, 2])
    def test_errors_are_in_the_units_of_the_data(self, name, outputs):
        """Validation samples are not fitted, so that their errors are those of the predictions."""
        X, y, _, _ = power_law(80)
        y = y * np.exp(0.3 * np.sin(3 * X[:, 2]))
        y, target = (y, "log") if outputs == 1 else (np.stack([y, y - 2], axis=1), ("log", "asinh"))
        model = with_transforms(name, target=target).fit(X[:60], y[:60], validation=(X[60:], y[60:]))
        errors = np.sqrt(np.mean((y[60:] - model.predict(X[60:])) ** 2, axis=0))
        assert_allclose(model.estimated_error_, model.fit_.origin.optimism * errors, rtol=1e-5)

    def test_left_out_errors_are_those_of_refits(self):
        """Up to 150 samples a sampled network is fitted again without each fold."""
        X, y, _, _ = power_law(50)
        y = y * np.exp(np.sin(5 * X[:, 2]))
        model = with_transforms("sampled").fit(X, y)
        crossfit = model.uncertainty_  # errors and predictions after the logarithm, in scaled units
        scaling = model.scaling_
        points = scaling.inputs(np.column_stack([np.log(X[:, :2]), X[:, 2]]))
        log_errors = np.empty(50)
        folds = assign_folds(scaling(model.warping_(Jet(X, y))), 5)
        for fold, network in enumerate(crossfit.folds):
            held = folds == fold
            log_errors[held] = np.log(y[held]) - scaling.values_back(network.value(points[held]))
        errors = y - np.exp(np.log(y) - log_errors)
        expected = np.sqrt(np.mean(errors**2)) * model.fit_.origin.optimism
        assert_allclose(model.estimated_error_, expected, rtol=1e-6)

    def test_update_keeps_the_transformation(self):
        X, y, gradients, _ = power_law(60)
        model = fitted("sampled", n=30).update(X, y, gradients=gradients)
        assert str(model.warping_) == "log of the values, log of 2 inputs"
        assert_allclose(model.predict(X), y, rtol=1e-2)

    def test_names_of_inputs(self):
        pd = pytest.importorskip("pandas")
        X, y, _, _ = power_law(40)
        model = KernelFeatureRegressor("gaussian", target="log", inputs={"a": "log", "b": "log"})
        model.fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
        assert model.warping_.inputs.kinds == ("log", "log", None)
        with pytest.raises(ValueError, match="'d', which is not one of them"):
            model.set_params(inputs={"d": "log"}).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"target": "log"}, "`y` must be positive where its logarithm is taken, got -"),
            ({"inputs": "log"}, "`X` must be positive where its logarithm is taken, got -.* in column 2"),
            ({"target": "sqrt"}, "`target` must be one of 'auto', None, 'log', 'asinh'"),
            ({"target": ["asinh"] * 2}, "`target` must be one of .* for each of 1"),
            ({"inputs": "asinh"}, "`inputs` must be one of 'auto', None, 'log'"),
            ({"inputs": ["log"]}, "`inputs` must be one of .* for each of 3"),
        ],
    )
    def test_what_cannot_be_is_said(self, parameters, message):
        X, y, _, _ = power_law(20)
        with pytest.raises(ValueError, match=message):
            RandomFeatureRegressor(10, **FIXED, **parameters).fit(X, y - 1.0)

    def test_where_transformations_end(self):
        X, y, gradients, _ = power_law(20)
        model = RandomFeatureRegressor(10, **FIXED, target="log")
        with pytest.raises(ValueError, match="only where the value is known"):
            model.fit(X, y, gradients=gradients, gradients_at=X + 0.01)
        with pytest.raises(ValueError, match="`target` and `inputs` must be None for data in blocks"):
            model.fit_blocks([(X, y)])
        with pytest.raises(ValueError, match="`target` and `inputs` must be None for `partial_fit`"):
            clone(model).set_params(target="auto").partial_fit(X, y)  # the first rows may ask for a transformation
        with pytest.raises(ValueError, match="`loss` must be 'squared' with a `target`"):
            clone(model).set_params(loss="huber").fit(X, y)
        with pytest.raises(ValueError, match="`target` and `inputs` of an engine must be None"):
            Surrogate(engines=[model]).fit(X, y)
        with pytest.raises(ValueError, match="`X` must be positive where its logarithm is taken, got 0 in column 1"):
            fitted("sampled").predict(X * [1, 0, 1])

    def test_training_goes_on_in_the_same_units(self):
        X, y, gradients, _ = power_law(60)
        model = fitted("trained")
        before = model.score(X, y)
        model.partial_fit(X, y, gradients=gradients)
        assert str(model.warping_) == "log of the values, log of 2 inputs"
        assert model.score(X, y) > before - 0.01


class TestAuto:
    def test_a_power_law_asks_for_logarithms(self):
        X, y, _, _ = power_law(60)
        fresh, truth, _, _ = power_law(500, seed=1)
        model = RandomFeatureRegressor(40, **FIXED, target="auto", inputs="auto").fit(X, y)
        plain = RandomFeatureRegressor(40, **FIXED).fit(X, y)
        assert str(model.warping_) == "log of the values, log of 2 inputs"
        assert np.std(model.predict(fresh) - truth) < 0.1 * np.std(plain.predict(fresh) - truth)

    def test_values_that_need_none_stay_as_they_are(self):
        X = np.random.default_rng(0).uniform(0, 1, (60, 2))
        model = RandomFeatureRegressor(40, **FIXED, target="auto", inputs="auto").fit(X, X.sum(axis=1))
        plain = RandomFeatureRegressor(40, **FIXED).fit(X, X.sum(axis=1))
        assert model.warping_.is_trivial
        assert np.array_equal(model.predict(X), plain.predict(X))

    def test_a_power_of_both_signs_is_better_as_it_is(self):
        """Values over decades make logarithms a candidate; the errors in the units of the data decide against them."""
        X = np.random.default_rng(0).uniform(-1, 1, (80, 1))
        y = (X[:, 0] - 0.1) ** 4 + 1e-6
        assert spreads_over_decades(y)
        model = KernelFeatureRegressor("gaussian", target="auto").fit(X, y)
        assert model.warping_.is_trivial

    def test_data_that_cannot_be_transformed_are_fitted_as_they_are(self):
        """Directional derivatives and Hessians do not go through logarithms of inputs together."""
        X, y, gradients, hessians = power_law(30)
        along = np.einsum("ni,i->n", gradients, np.ones(3))
        data = {"gradients": along, "directions": np.ones((30, 3)), "hessians": hessians}
        model = Surrogate(None, engines=["sampled"], random_state=0).fit(X, y, **data)
        assert model.warping_.is_trivial
        with pytest.raises(ValueError, match="support either `directions` or `hessians`"):
            model.set_params(target="log").fit(X, y, **data)

    def test_a_surrogate_says_what_it_chose(self):
        X, y, gradients, _ = power_law(60)
        fresh, truth, _, _ = power_law(500, seed=1)
        model = Surrogate(None, engines=["wide", "sampled"], random_state=0).fit(X, y, gradients=gradients)
        assert str(model.warping_) == str(model.model_.warping_) == "log of the values, log of 2 inputs"
        assert "log of the values, log of 2 inputs" in str(model.report())
        assert_allclose(model.predict(fresh), truth, rtol=1e-3)
        again = clone(model.model_)
        assert (again.target, again.inputs) == (("log",), ("log", "log", None))
        plain = Surrogate(None, engines=["sampled"], target=None, inputs=None, random_state=0).fit(X, y)
        assert plain.warping_.is_trivial


class TestWarning:
    def test_few_samples_that_decide_are_named(self):
        """One value of a hundred is far from all others, and no fit foresees it."""
        X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
        y = 1 + X[:, 0] ** 2
        y[7] += 1000.0
        model = RandomFeatureRegressor(40, **FIXED)
        with pytest.warns(UserWarning, match=r"\d of 100 samples carry 90%.*: try target='log'$"):
            model.fit(X, y)
        with pytest.warns(UserWarning, match=r"\d of 100 samples carry 90%.*: try target='asinh'$"):
            model.fit(X, y - 1.5)

    def test_values_without_tails_are_not(self):
        """The fit is wrong near a jump alone, and logarithms or asinh would change nothing."""
        X = np.linspace(-1, 1, 101)[:, None]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            RandomFeatureRegressor(40, **FIXED | {"width": 0.1}).fit(X, np.sign(X[:, 0] - 0.005))

    @pytest.mark.parametrize(("n_large", "n_warnings"), [(5, 1), (50, 0)])
    def test_many_samples_that_carry_it_are_not(self, n_large, n_warnings):
        """The share of 50 among 2000 is small, but a mean over 50 samples is known well."""
        errors = np.where(np.arange(2000) < n_large, 1.0, 1e-6)[:, None]
        found = tail_warnings(Evidence(errors, np.ones(2000)), np.logspace(-2, 2, 2000), None)
        assert len(found) == n_warnings

    def test_errors_that_are_spread_are_not(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (100, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            RandomFeatureRegressor(40, **FIXED).fit(X, X[:, 0] + 0.1 * rng.normal(size=100))


class TestExports:
    @pytest.mark.parametrize("name", ["wide", "sampled", "trained"])
    def test_plain_python(self, name):
        model, X = both_curves(name), power_law(5, seed=1)[0]
        namespace = {}
        exec(export.to_python(model), namespace)
        found = [namespace["value_and_gradient"](x) for x in X]
        assert_allclose([value for value, _ in found], model.predict(X), rtol=1e-6)
        assert_allclose([slope for _, slope in found], model.predict_gradient(X), rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("name", ["wide", "sampled"])
    def test_c(self, name, tmp_path):
        model, x = both_curves(name), np.ascontiguousarray(power_law(1, seed=1)[0][0])
        function = compile_c(export.to_c(model, "surrogate"), tmp_path).surrogate
        y, g = np.empty(3), np.empty((3, 3))
        function(*(array.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for array in (x, y, g)))
        assert_allclose(y, model.predict(x[None])[0], rtol=1e-6)
        assert_allclose(g, model.predict_gradient(x[None])[0], rtol=1e-5, atol=1e-6)

    def test_torch(self):
        torch = pytest.importorskip("torch")
        model, X = both_curves("sampled"), power_law(5, seed=1)[0]
        assert_allclose(export.to_torch(model)(torch.tensor(X)).numpy(), model.predict(X), rtol=1e-6)

    def test_jax(self):
        jax = pytest.importorskip("jax")
        model, X = both_curves("sampled"), power_law(5, seed=1)[0]
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", True)
        try:
            function, parameters = export.to_jax(model)
            assert_allclose(np.asarray(function(parameters, X)), model.predict(X), rtol=1e-6)
        finally:
            jax.config.update("jax_enable_x64", before)

    def test_onnx(self):
        pytest.importorskip("onnx")
        runtime = pytest.importorskip("onnxruntime")
        model, X = both_curves("sampled"), power_law(5, seed=1)[0]
        session = runtime.InferenceSession(export.to_onnx(model).SerializeToString())
        values, gradients = session.run(None, {"x": X})
        assert_allclose(values, model.predict(X), rtol=1e-6)
        assert_allclose(gradients, model.predict_gradient(X), rtol=1e-5, atol=1e-6)


def both_curves(name):
    """Return a model with a logarithm, asinh and neither, and logarithms of two of three inputs."""
    X, y, _, _ = power_law(40)
    y = y * np.exp(0.1 * np.random.default_rng(2).normal(size=40))  # noise keeps coefficients, and roundings, small
    Y = np.stack([y, y - 1.0, X[:, 2] + y], axis=1)
    return with_transforms(name, target=("log", "asinh", None)).fit(X, Y)
