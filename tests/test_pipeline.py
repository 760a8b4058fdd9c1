"""Gradients through pipelines: against finite differences, and against fits to data that were transformed by hand."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from nurf import GradientPipeline, Jet, KernelFeatureRegressor, RandomFeatureRegressor, export
from pairwise import pairwise


def points(n=12, d=4, seed=0):
    """Positive points in different units."""
    return np.random.default_rng(seed).uniform(0.5, 1.5, (n, d)) * [1, 20, 0.3, 5][:d]


class Known(BaseEstimator):
    """A stand-in for a regressor: a known function of its inputs, which notes what it is fitted to."""

    def __init__(self, n_outputs=0):
        self.n_outputs = n_outputs

    def fit(self, X, y, **data):
        self.X_, self.y_, self.data_ = (
            np.asarray(X),
            y,
            {key: value for key, value in data.items() if value is not None},
        )
        self.n_features_in_ = self.X_.shape[1]
        self.estimated_error_ = 0.1 * np.arange(1, self.n_outputs + 1) if self.n_outputs else 0.1
        p, k = self.n_features_in_, max(self.n_outputs, 1)
        self.w_ = np.random.default_rng(7).uniform(-0.3, 0.3, (p, k)) / np.abs(self.X_).max(axis=0)[:, None]
        return self

    def _arranged(self, array):
        return array if self.n_outputs else array[:, 0]

    def predict(self, X, return_std=False):
        values = self._arranged(np.sin(np.asarray(X) @ self.w_) + 2)
        return (values, 0.1 * values) if return_std else values

    def predict_gradient(self, X):
        return self._arranged(np.cos(np.asarray(X) @ self.w_)[:, :, None] * self.w_.T)

    def predict_hessian(self, X):
        waves = -np.sin(np.asarray(X) @ self.w_)
        return self._arranged(waves[:, :, None, None] * self.w_.T[:, :, None] * self.w_.T[:, None, :])

    def predict_interval(self, X, coverage):
        values = self.predict(X)
        return np.stack([values - coverage, values + coverage], axis=-1)


class Mixed(TransformerMixin, BaseEstimator):
    """An invertible map of all inputs that is not affine, and knows its Jacobian if it is asked to."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return np.log(X) + 0.2 * np.roll(X, 1, axis=1) / np.roll([1, 20, 0.3, 5], 1)


class MixedWithJacobian(Mixed):
    def jacobian(self, X):
        d = X.shape[1]
        factors = np.zeros((d, d))
        factors[np.arange(d), np.arange(d) - 1] = 0.2 / np.roll([1, 20, 0.3, 5], 1)
        return factors + np.eye(d) / X[:, None, :]


class MixedWithWrongJacobian(Mixed):
    def jacobian(self, X):
        return np.zeros((len(X), 3))


LOG_OF_TWO = ColumnTransformer(
    [("log", FunctionTransformer(np.log), [3, 1]), ("scale", StandardScaler(), [0])], remainder="passthrough"
)
SQUARE = {  # as many inputs as before, none of them lost
    "nothing": [],
    "passthrough": ["passthrough"],
    "standard": [StandardScaler()],
    "no mean, no scale": [StandardScaler(with_std=False)],
    "min max": [MinMaxScaler((-1, 3))],
    "max abs": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "pca": [StandardScaler(), PCA()],
    "white": [StandardScaler(), PCA(whiten=True)],
    "log": [FunctionTransformer(np.log)],
    "log1p": [FunctionTransformer(np.log1p)],
    "log2": [FunctionTransformer(np.log2)],
    "log10": [FunctionTransformer(np.log10)],
    "exp": [MaxAbsScaler(), FunctionTransformer(np.exp)],
    "expm1": [MaxAbsScaler(), FunctionTransformer(np.expm1)],
    "sqrt": [FunctionTransformer(np.sqrt)],
    "square": [FunctionTransformer(np.square)],
    "arcsinh": [FunctionTransformer(np.arcsinh)],
    "identity": [FunctionTransformer()],
    "unknown function": [FunctionTransformer(np.cbrt)],
    "power": [PowerTransformer()],
    "some columns": [LOG_OF_TWO, StandardScaler()],
    "nested": [make_pipeline(FunctionTransformer(np.log), StandardScaler(), "passthrough"), PCA()],
    "numeric": [Mixed()],
    "own jacobian": [MixedWithJacobian()],
}
REDUCED = {
    "pca 2": [StandardScaler(), PCA(2)],
    "white 3": [StandardScaler(), PCA(3, whiten=True)],
    "svd": [StandardScaler(), TruncatedSVD(2, random_state=0)],
    "log, then pca": [FunctionTransformer(np.log), PCA(2)],
    "dropped": [ColumnTransformer([("log", FunctionTransformer(np.log), [2]), ("no", "drop", [0])], remainder=PCA(1))],
}
ENLARGED = {
    "polynomial": [StandardScaler(), PolynomialFeatures(2, include_bias=False)],
    "union": [FeatureUnion([("same", "passthrough"), ("log", FunctionTransformer(np.log))])],
}
ALL = SQUARE | REDUCED | ENLARGED


def made(steps, model, **options):
    names = [f"step {place}" for place in range(len(steps))]
    return GradientPipeline([*zip(names, map(clone_step, steps), strict=True), ("model", model)], **options)


def clone_step(step):
    return step if isinstance(step, str) else clone(step)


def differences(function, X, step=1e-4):
    """Central differences of fourth order, inputs last. Steps are relative to the size of each input.

    Values are of size one and relative steps 1e-4: rounding errors of 1e-16 / 1e-4, truncation 1e-16 times derivatives.
    """
    columns = []
    for j in range(X.shape[1]):
        h = step * np.abs(X[:, j]).max()
        move = h * np.eye(X.shape[1])[j]
        near, far = function(X + move) - function(X - move), function(X + 2 * move) - function(X - 2 * move)
        columns.append((8 * near - far) / (12 * h))
    return np.stack(columns, axis=-1)


def relative(derivatives, X, order=1):
    """Derivatives in units of the inputs, so that one tolerance serves all."""
    size = np.abs(X).max(axis=0)
    return derivatives * size if order == 1 else derivatives * size[:, None] * size


@pairwise(
    target=[None, "log", PowerTransformer(), StandardScaler()],
    n_outputs=[0, 2],
    name=["log", "pca 2", "polynomial", "numeric"],
)
def test_predicted_derivatives_are_those_of_predictions(name, n_outputs, target):
    check_predictions(ALL[name], n_outputs, target)


@pytest.mark.parametrize("name", ALL)
def test_predicted_derivatives_go_through(name):
    check_predictions(ALL[name], 0, None)


def check_predictions(steps, n_outputs, target):
    X = points()
    y = np.random.default_rng(1).uniform(1, 3, (len(X), n_outputs) if n_outputs else len(X))
    model = made(steps, Known(n_outputs), target=target).fit(X, y)
    gradients, hessians = model.predict_gradient(X), model.predict_hessian(X)
    assert gradients.shape == (*y.shape, 4)
    assert hessians.shape == (*y.shape, 4, 4)
    # The size of values and derivatives is one; numeric Jacobians are extrapolated, with errors of 1e-10 or less, their
    # second derivatives 1e-6.
    assert_allclose(relative(gradients, X), relative(differences(model.predict, X), X), atol=1e-8)
    assert_allclose(relative(hessians, X, 2), relative(differences(model.predict_gradient, X, 1e-3), X, 2), atol=2e-5)


def data_of(model, X):
    """Derivatives by ``X`` of the function that the stand-in knows, behind the transformers of a fitted pipeline."""

    def value(X):
        return model.predict(X)

    return differences(value, X), differences(model.predict_gradient, X, 1e-3)


@pairwise(target=[None, "log"], n_outputs=[0, 2], name=SQUARE)
def test_the_regressor_is_given_derivatives_by_what_it_sees(name, n_outputs, target):
    X = points()
    model = made(SQUARE[name], Known(n_outputs), target=target)
    model.fit(
        X, np.ones((len(X), n_outputs) if n_outputs else len(X)) + X.sum(axis=1).reshape(-1, *[1] * bool(n_outputs))
    )
    y = model.predict(X)
    gradients, hessians = data_of(model, X)
    inner = model.fit(X, y, gradients=gradients, hessians=hessians)[-1]
    assert "directions" not in inner.data_
    Z = inner.X_
    assert_allclose(inner.y_, inner.predict(Z), atol=1e-12)
    assert_allclose(relative(inner.data_["gradients"], Z), relative(inner.predict_gradient(Z), Z), atol=1e-6)
    assert_allclose(relative(inner.data_["hessians"], Z, 2), relative(inner.predict_hessian(Z), Z, 2), atol=1e-3)


@pytest.mark.parametrize("name", REDUCED)
def test_reduced_inputs_keep_the_derivatives_along_them(name):
    """A function of what is kept has derivatives along it, whatever directions are lost."""
    X = points()
    model = made(REDUCED[name], Known()).fit(X, np.ones(len(X)))
    gradients, _ = data_of(model, X)
    inner = model.fit(X, model.predict(X), gradients=gradients)[-1]
    assert_allclose(
        relative(inner.data_["gradients"], inner.X_), relative(inner.predict_gradient(inner.X_), inner.X_), atol=1e-6
    )


def test_reduction_is_the_chain_rule_with_the_inverse_map():
    """Of a function that also varies across what is kept: the derivative of f(inverse_transform(z)), by differences."""
    X = points()
    scale, pca = StandardScaler(), PCA(2)
    pca.fit(scale.fit_transform(X))
    on_plane = scale.inverse_transform(pca.inverse_transform(pca.transform(scale.transform(X))))
    size = np.abs(X).max(axis=0)
    gradients = np.cos(on_plane / size) / size
    model = made([StandardScaler(), PCA(2)], Known()).fit(on_plane, np.ones(len(X)), gradients=gradients)
    first, second = model[0], model[1]

    def along(Z):
        return np.sin(first.inverse_transform(second.inverse_transform(Z)) / size).sum(axis=1)

    assert_allclose(model[-1].data_["gradients"], differences(along, model[-1].X_), atol=1e-8)


@pytest.mark.parametrize("name", ENLARGED)
def test_enlarged_inputs_have_derivatives_along_directions(name):
    X = points()
    model = made(ENLARGED[name], Known()).fit(X, np.ones(len(X)))
    gradients, _ = data_of(model, X)
    gradients[0, 1] = np.nan
    inner = model.fit(X, model.predict(X), gradients=gradients)[-1]
    directions, slopes = inner.data_["directions"], inner.data_["gradients"]
    assert directions.shape == (len(X), 4, inner.n_features_in_)
    expected = np.einsum("nqp,np->nq", directions, inner.predict_gradient(inner.X_))
    expected[0, 1] = np.nan
    assert_allclose(relative(slopes, X), relative(expected, X), atol=1e-6)


def test_unknown_partial_derivatives():
    X = points()
    gradients = np.random.default_rng(2).standard_normal(X.shape)
    gradients[0, 1], gradients[3] = np.nan, np.nan
    hessians = np.zeros((len(X), 4, 4))
    hessians[0, 0, 1] = hessians[0, 1, 0] = np.nan

    inner = made([LOG_OF_TWO], Known()).fit(X, np.ones(len(X)), gradients=gradients, hessians=hessians)[-1]
    order = [3, 1, 0, 2]  # log of inputs 3 and 1, then 0, then the rest
    assert_allclose(np.isnan(inner.data_["gradients"]), np.isnan(gradients[:, order]))
    # what is lost with a gradient: the curvature of the logarithm of that input
    lost = np.isnan(hessians[:, order][:, :, order])
    lost[0, 1, 1] = lost[3, 0, 0] = lost[3, 1, 1] = True
    assert_allclose(np.isnan(inner.data_["hessians"]), lost)

    inner = made([StandardScaler(), PCA()], Known()).fit(X, np.ones(len(X)), gradients=gradients)[-1]
    scaled = StandardScaler().fit(X)
    rotation = PCA().fit(scaled.transform(X)).components_
    assert_allclose(np.abs(inner.data_["directions"]), np.abs(np.broadcast_to(rotation.T, (len(X), 4, 4))), atol=1e-12)
    assert_allclose(inner.data_["gradients"], gradients * scaled.scale_)

    inner = made([PCA(2)], Known()).fit(X, np.ones(len(X)), gradients=gradients)[-1]
    assert np.flatnonzero(np.isnan(inner.data_["gradients"]).any(axis=1)).tolist() == [0, 3]


def test_an_input_that_is_not_seen_has_an_unknown_derivative():
    X = points()
    X[0, 2] = 0.0
    inner = made([FunctionTransformer(np.square)], Known()).fit(X, np.ones(len(X)), gradients=np.ones_like(X))[-1]
    assert np.argwhere(np.isnan(inner.data_["gradients"])).tolist() == [[0, 2]]


def test_directions_and_other_points():
    X, at = points(), points(7, seed=5)
    rng = np.random.default_rng(3)
    V, W = rng.standard_normal(X.shape), rng.standard_normal((7, 3, 4))
    steps = [FunctionTransformer(np.log)]
    inner = made(steps, Known()).fit(X, np.ones(len(X)), gradients=np.arange(12.0), directions=V)[-1]
    assert_allclose(inner.data_["directions"], (V / X)[:, None])
    assert_allclose(inner.data_["gradients"], np.arange(12.0)[:, None])
    model = made(steps, Known(2), target=StandardScaler())
    y = np.column_stack([X.sum(axis=1), X[:, 0]])
    slopes = rng.standard_normal((7, 2, 3))
    inner = model.fit(X, y, gradients=slopes, directions=W, gradients_at=at)[-1]
    assert_allclose(inner.data_["directions"], W / at[:, None])
    assert_allclose(inner.data_["gradients"], slopes / y.std(axis=0)[:, None])
    assert_allclose(inner.data_["gradients_at"], np.log(at))


def test_validation_is_transformed():
    X = points()
    y = X[:, 0] + 1
    for validation in ((X[:5], y[:5]), Jet(X[:5], y[:5])):
        inner = made([FunctionTransformer(np.log)], Known(), target="log").fit(X, y, validation=validation)[-1]
        found = inner.data_["validation"]
        Z, u = found if isinstance(found, tuple) else (found.X, found.y)
        assert_allclose(Z, np.log(X[:5]))
        assert_allclose(u, np.log(y[:5]))
    assert made([], Known()).fit(X, y, validation=0.2)[-1].data_ == {"validation": 0.2}


def test_intervals_and_deviations_go_back():
    X = points()
    y = np.exp(X[:, 0])
    model = made([], Known(), target="log").fit(X, y)
    inner = model[-1]
    values, deviations = model.predict(X, return_std=True)
    assert_allclose(values, np.exp(inner.predict(X)))
    assert_allclose(deviations, values * 0.1 * inner.predict(X))
    assert_allclose(model.predict_interval(X, 0.5), np.exp(inner.predict_interval(X, 0.5)))
    falling = made([], Known(), target=FunctionTransformer(np.negative, np.negative)).fit(X, y)
    assert_allclose(falling.predict_interval(X, 0.5), -inner.predict_interval(X, 0.5)[:, ::-1])


# With a real regressor

WIDE = KernelFeatureRegressor("gaussian", metric="scales")


def data(n=60, seed=4):
    X = np.random.default_rng(seed).uniform(1, 10, (n, 3))
    y = X[:, 0] ** 2 / X[:, 1] + 0.1 * X[:, 2]
    G = np.stack([2 * X[:, 0] / X[:, 1], -((X[:, 0] / X[:, 1]) ** 2), np.full(n, 0.1)], axis=1)
    return X, y, G


FIXED = RandomFeatureRegressor(
    30, density="uniform", width=0.5, growth=None, alpha=1e-6, gradient_weight=0.1, random_state=0
)


@pytest.mark.parametrize("model", [FIXED, WIDE], ids=["sampled", "wide"])
def test_a_pipeline_is_a_fit_to_data_transformed_by_hand(model):
    X, y, G = data(25)
    pipeline = made([FunctionTransformer(np.log), StandardScaler()], clone(model), target="log")
    pipeline.fit(X, y, gradients=G)
    scaler = StandardScaler().fit(np.log(X))
    Z = scaler.transform(np.log(X))
    by_hand = clone(model).fit(Z, np.log(y), gradients=G / y[:, None] * X * scaler.scale_)
    values = np.exp(by_hand.predict(Z))
    # the same numbers but for rounding, which learned scales may amplify to the size of the errors of the fit
    assert_allclose(pipeline.predict(X), values, rtol=1e-3)
    by_hand_gradients = values[:, None] * by_hand.predict_gradient(Z) / scaler.scale_ / X
    assert_allclose(pipeline.predict_gradient(X), by_hand_gradients, rtol=0.01, atol=0.01 * np.abs(G).max())


def test_gradients_help_behind_a_reduction():
    """Of twelve inputs only the sums of four each matter: three directions hold all derivatives."""
    rng = np.random.default_rng(6)
    latent = rng.uniform(-1, 1, (20, 3))
    basis = np.linalg.qr(rng.standard_normal((12, 3)))[0]
    X = latent @ basis.T
    y = np.sin(2 * latent[:, 0]) * latent[:, 1] + latent[:, 2] ** 2
    by_latent = np.column_stack(
        [2 * np.cos(2 * latent[:, 0]) * latent[:, 1], np.sin(2 * latent[:, 0]), 2 * latent[:, 2]]
    )
    G = by_latent @ basis.T
    model = made([PCA(3)], clone(WIDE)).fit(X, y, gradients=G)
    fresh = rng.uniform(-0.8, 0.8, (200, 3))
    truth = np.sin(2 * fresh[:, 0]) * fresh[:, 1] + fresh[:, 2] ** 2
    assert model.score(fresh @ basis.T, truth) > 0.99
    assert_allclose(model.predict_gradient(X), G, atol=0.05 * np.abs(G).max())


def test_scikit_learn_drives_it():
    X, y, G = data(60)
    model = made([StandardScaler(), PCA(2)], RandomFeatureRegressor(10, width=0.5, random_state=0))
    again = clone(model)
    assert again.get_params()["step 1__n_components"] == 2
    assert again.set_params(target="log", **{"step 1__n_components": 3}).target == "log"
    assert again[1].n_components == 3
    search = GridSearchCV(model, {"step 1__n_components": [1, 3]}, cv=2)
    search.fit(X, y, gradients=G)
    assert search.best_params_["step 1__n_components"] == 3
    assert search.best_estimator_.predict_gradient(X).shape == G.shape
    loaded = pickle.loads(pickle.dumps(search.best_estimator_))
    assert_allclose(loaded.predict_gradient(X), search.best_estimator_.predict_gradient(X), rtol=1e-12)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = clone(model).set_fit_request(gradients=True)
        assert np.all(np.isfinite(cross_val_score(asked, X, y, cv=2, params={"gradients": G})))


def test_fitted_transformers_are_remembered(tmp_path):
    X = points()
    plain, cached = (made([StandardScaler(), PCA(2)], Known(), memory=memory) for memory in (None, str(tmp_path)))
    for model in (plain, cached):
        model.fit(X, np.ones(len(X)), gradients=np.ones_like(X))
    assert_allclose(cached.predict_gradient(X), plain.predict_gradient(X))
    assert_allclose(cached[-1].data_["gradients"], plain[-1].data_["gradients"])


def test_data_frames_by_name():
    X, y, G = data(40)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    slopes = pd.DataFrame(G[:, ::-1], columns=["dy_c", "dy_b", "dy_a"])
    columns = ColumnTransformer(
        [("log", FunctionTransformer(np.log), ["b"]), ("cbrt", FunctionTransformer(np.cbrt), ["a"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    model = made([columns.set_output(transform="pandas")], Known()).fit(frame, y, gradients=slopes)
    expected = np.stack([G[:, 1] * X[:, 1], G[:, 0] * 3 * np.cbrt(X[:, 0]) ** 2, G[:, 2]], axis=1)
    assert_allclose(model[-1].data_["gradients"], expected, rtol=1e-9)
    assert model.predict_gradient(frame).shape == (40, 3)
    assert list(model.feature_names_in_) == ["a", "b", "c"]


def test_a_plain_pipeline_is_found_out():
    """scikit-learn hands gradients on as they are. The check before a fit sees that, and says what to use."""
    rng = np.random.default_rng(0)
    X = rng.uniform([0, 10, -2], [0.01, 500, 2], size=(300, 3))
    wave = np.exp(100 * X[:, 0])
    y = wave * (2 + np.sin(X[:, 2])) + 1e-5 * X[:, 1] ** 2
    G = np.column_stack([100 * wave * (2 + np.sin(X[:, 2])), 2e-5 * X[:, 1], wave * np.cos(X[:, 2])])
    steps = [("scale", StandardScaler()), ("model", RandomFeatureRegressor(20, random_state=0))]
    with pytest.warns(UserWarning, match="`X` seems to be standardised.* nurf.GradientPipeline"):
        Pipeline(steps).fit(X, y, model__gradients=G)
    GradientPipeline(steps).fit(X, y, gradients=G)  # without a warning, which would be an error


X, Y, G = data(12)
H = np.zeros((12, 3, 3))


def test_a_fit_that_fails_leaves_the_pipeline_as_it_was():
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (30, 2))
    steps = [("scale", StandardScaler()), ("model", RandomFeatureRegressor(20, random_state=0))]
    model = GradientPipeline(steps, target="log").fit(X, X[:, 0])
    before = model.predict(X)
    with pytest.raises(ValueError, match="y"):
        model.fit(10 * X, -X[:, 0])  # the transformers fit, and the logarithm does not
    assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    ("steps", "options", "arguments", "message"),
    [
        ([PCA(2)], {}, {"gradients": np.ones(12), "directions": X}, "makes 2 inputs of 3: it loses directions"),
        ([PolynomialFeatures(2)], {}, {"gradients": G, "hessians": H}, "`hessians` do not go through 'step 0'"),
        ([FunctionTransformer(np.log)], {}, {"hessians": H}, "`hessians` need `gradients` to go through 'step 0'"),
        ([], {"target": "log"}, {"hessians": H}, "`hessians` need `gradients` to go through a `target`"),
        ([], {}, {"hessians": H, "gradients": np.ones(12), "directions": X}, "`directions` or `hessians`, got both"),
        ([], {"target": "log"}, {"gradients": G, "gradients_at": X}, "needs a `target` that is affine"),
        ([], {"target": "exp"}, {}, "`target` must be a transformer, 'log' or None, got 'exp'"),
        ([], {"target": Normalizer()}, {}, "`target` must have `inverse_transform`"),
        ([], {}, {"gradients": G.T}, r"`gradients` must have shape \(n, d\) = \(12, 3\).*transpose"),
        ([], {}, {"gradients": G, "directions": X}, "a number for each value and direction"),
        ([], {}, {"gradients": G, "directions": X.T}, r"`directions` must have shape"),
    ],
)
def test_what_does_not_go_through_is_said(steps, options, arguments, message):
    with pytest.raises(ValueError, match=message):
        made(steps, Known(), **options).fit(X, Y, **arguments)


def test_other_errors():
    with pytest.raises(ValueError, match="`y` after `target` must be finite, got nan at index"):
        made([], Known(), target="log").fit(X, Y - 2 * Y.max())
    with pytest.raises(TypeError, match="the last step must be a regressor of nurf"):
        made([], StandardScaler()).fit(X, Y)
    with pytest.raises(ValueError, match=r"`jacobian\(X\)` of MixedWithWrongJacobian must have shape \(n, p, d\)"):
        made([MixedWithWrongJacobian()], Known()).fit(points(), np.ones(12), gradients=np.ones((12, 4)))
    model = made([StandardScaler()], RandomFeatureRegressor(5, width=0.5)).fit(X, Y)
    with pytest.raises(TypeError, match="or pickle the pipeline"):
        model.save("model.nurf")
    with pytest.raises(ValueError, match="a regressor of nurf can be exported"):
        export.to_python(model)
    mixing = made([], Known(2), target=PCA()).fit(X, np.column_stack([Y, X[:, 0]]))
    with pytest.raises(ValueError, match="it mixes outputs"):
        mixing.predict(X, return_std=True)


TARGETS = {
    "none": (None, np.ones_like),
    "scaled": (StandardScaler(), lambda y: np.full_like(y, np.std(y, axis=0))),
    "log": ("log", lambda y: y),
    "root": (FunctionTransformer(np.sqrt, np.square), lambda y: 2 * np.sqrt(y)),
}


@pytest.mark.parametrize("n_outputs", [0, 2])
@pytest.mark.parametrize("name", TARGETS)
def test_the_estimated_error_is_in_the_units_of_the_data(name, n_outputs):
    """The root mean square of ``|dy / du|`` at the samples, times the error of the regressor."""
    target, slope = TARGETS[name]
    X = points()
    y = np.exp(X[:, :2] / [1, 20]) if n_outputs else np.exp(X[:, 0])
    model = GradientPipeline([("log", FunctionTransformer(np.log)), ("model", Known(n_outputs))], target=target)
    model.fit(X, y)
    error = model[-1].estimated_error_
    assert_allclose(model.estimated_error_, error * np.sqrt(np.mean(slope(y) ** 2, axis=0)), rtol=1e-6)
    assert np.shape(model.estimated_error_) == np.shape(y)[1:]


@pytest.mark.parametrize("names", [None, list("abcd")], ids=["arrays", "frames"])
def test_functions_and_reports(names):
    X = points(40)
    y = X[:, 0] ** 2 / X[:, 1]
    model = GradientPipeline(
        [("log", FunctionTransformer(np.log)), ("model", RandomFeatureRegressor(20, random_state=0))], target="log"
    )
    given = X if names is None else pd.DataFrame(X, columns=names)
    function = model.fit(given, y).function()
    assert_allclose(function(X[:5]), model.predict(given)[:5], rtol=1e-12)
    assert_allclose(function.gradient(X[:5]), model.predict_gradient(given)[:5], rtol=1e-10)
    value, gradient = function.value_and_gradient(X[0])
    assert_allclose(value, model.predict(given)[0], rtol=1e-12)
    assert_allclose(gradient, model.predict_gradient(given)[0], rtol=1e-10)
    assert np.shape(value) == ()
    assert str(model.report()) == str(model[-1].report())
