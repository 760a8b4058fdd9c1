"""Networks as plain functions, against dense sums, finite differences and the estimators."""

import pickle
from math import factorial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import erf

from cases import ACTIVATIONS
from nurf import KernelFeatureRegressor, RandomFeatureRegressor
from nurf._scaling import Scaling
from nurf.activations import Erf, Heaviside, ReLUPower, Sigmoid, Softplus
from nurf.networks import Features, Hyperplanes, ShallowNetwork
from pairwise import pairwise

N_NEURONS, D = 7, 3
WIDTHS = np.linspace(0.2, 1.0, N_NEURONS)
SHAPES = {
    Sigmoid: lambda t, w: 1 / (1 + np.exp(-t / w)),
    Softplus: lambda t, w: w * np.log(1 + np.exp(t / w)),
    Erf: lambda t, w: (1 + erf(t / w / np.sqrt(2))) / 2,
}

outputs = pytest.mark.parametrize("outputs", [(), (2,)], ids=str)
degrees = pytest.mark.parametrize("degree", [-1, 0, 1, 2])
activations = pytest.mark.parametrize(
    "activation", [*ACTIVATIONS, Sigmoid(WIDTHS), Softplus(WIDTHS), Erf(WIDTHS)], ids=lambda a: repr(a).split("\n")[0]
)


def network(activation, degree=1, outputs=()):
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(N_NEURONS, D))
    planes = Hyperplanes(normals / np.linalg.norm(normals, axis=1, keepdims=True), rng.uniform(-1, 1, N_NEURONS))
    features = Features(planes, activation, degree)
    return ShallowNetwork(features, rng.normal(size=(features.n_columns, *outputs)))


def scaling(outputs=()):
    rng = np.random.default_rng(1)
    center, scale = np.array([100.0, -2.0, 0.0]), np.array([0.1, 1.0, 30.0])
    return Scaling(center, scale, rng.normal(size=outputs) * 5, rng.uniform(1, 20, size=outputs))


def points(n=6):
    change = scaling()
    return change.x_center + change.x_scale * np.random.default_rng(2).uniform(-1, 1, (n, D))


def textbook(network, change, X):
    """The values in the units of the user, one neuron and one monomial after the other."""
    activation, planes, Z = network.activation, network.hyperplanes, (X - change.x_center) / change.x_scale
    columns = []
    for number, (normal, offset) in enumerate(zip(planes.normals, planes.offsets, strict=True)):
        t = Z @ normal + offset
        if isinstance(activation, ReLUPower):
            columns.append(np.where(t > 0, np.abs(t) ** activation.power / factorial(activation.power), 0.0))
        else:
            columns.append(SHAPES[type(activation)](t, np.broadcast_to(activation.width, N_NEURONS)[number]))
    columns += [np.prod(Z**exponents, axis=1) for exponents in network.features.tail.exponents]
    return (np.column_stack(columns) @ network.coefficients) * change.y_scale + change.y_center


def differences(f, X, h):
    """Central differences of order four along each input, in steps ``h`` (d,), along a new last axis."""
    steps = np.diag(h)
    return np.stack(
        [(8 * (f(X + e) - f(X - e)) - (f(X + 2 * e) - f(X - 2 * e))) / (12 * e.sum()) for e in steps], axis=-1
    )


@pairwise(activations, degrees, outputs)
def test_values_are_sums_in_the_units_of_the_user(activation, degree, outputs):
    net, change, X = network(activation, degree, outputs), scaling(outputs), points()
    f = net.function(change)
    assert f(X).shape == (len(X), *outputs)
    assert_allclose(f(X), textbook(net, change, X), rtol=1e-11, atol=1e-11)
    assert_allclose([f(x) for x in X], f(X), rtol=1e-12, atol=1e-12)
    assert np.shape(f(X[0])) == outputs


@pairwise(activations, degrees, outputs)
def test_gradients_are_those_of_the_values(activation, degree, outputs):
    net, change, X = network(activation, degree, outputs), scaling(outputs), points(50)
    distances = net.hyperplanes.signed_distance((X - change.x_center) / change.x_scale)
    X = X[np.abs(distances).min(axis=1) > 0.01][:6]  # steps that cross no kink
    f = net.function(change)
    if isinstance(activation, Heaviside):
        with pytest.raises(ValueError, match="derivative 1"):
            f.gradient(X)
        with pytest.raises(ValueError, match="derivative 1"):
            f.value_and_gradient(X[0])
        return
    gradients = f.gradient(X)
    assert gradients.shape == (len(X), *outputs, D)
    numerical = differences(lambda X: textbook(net, change, X), X, 1e-3 * change.x_scale)
    assert_allclose(gradients * change.x_scale, numerical * change.x_scale, rtol=1e-6, atol=1e-6)
    for found, expected in zip(f.value_and_gradient(X), (f(X), gradients), strict=True):
        assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    for k, x in enumerate(X):
        value, gradient = f.value_and_gradient(x)
        assert np.shape(value) == outputs
        assert gradient.shape == f.gradient(x).shape == (*outputs, D)
        assert_allclose(f.gradient(x), gradients[k], rtol=1e-11, atol=1e-11)
        assert_allclose(gradient, gradients[k], rtol=1e-11, atol=1e-11)


@outputs
def test_many_points_are_taken_in_blocks(outputs, monkeypatch):
    f = network(Sigmoid(WIDTHS), 1, outputs).function(scaling(outputs))
    X = points(50)
    whole = (f(X), f.gradient(X), *f.value_and_gradient(X))
    monkeypatch.setattr("nurf.networks._function.row_blocks", lambda n, m: [slice(0, 7), slice(7, n)])
    parts = (f(X), f.gradient(X), *f.value_and_gradient(X))
    for found, expected in zip(parts, whole, strict=True):
        assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_the_points_are_left_alone_and_lists_are_points_too():
    f = network(Sigmoid(0.3)).function(scaling())
    X = points()
    before = X.copy()
    f(X), f.gradient(X), f.value_and_gradient(X[0])
    assert_array_equal(X, before)
    assert f(X[0].tolist()) == f(X[0])


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("tail", ["none", "affine"])
def test_the_function_of_a_fitted_model(k, tail):
    rng = np.random.default_rng(0)
    X = rng.uniform([0, 1000], [1e-3, 1010], (200, 2))
    Z = (X - [0, 1000]) / [1e-3, 10]
    y = np.stack([np.sin(3 * Z[:, 0]) * Z[:, 1] + j for j in range(k)], axis=1)
    model = RandomFeatureRegressor(60, width=0.3, alpha=1e-4, tail=tail, random_state=0)
    model.fit(X, y if k > 1 else y[:, 0])
    f = pickle.loads(pickle.dumps(model.function()))
    assert_allclose(f(X), model.predict(X), rtol=1e-9, atol=1e-9)
    scale = np.abs(model.predict_gradient(X)).max(axis=0)
    assert_allclose(f.gradient(X) / scale, model.predict_gradient(X) / scale, atol=1e-8)
    assert_allclose(f(X[0]), model.predict(X[:1])[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kernel", ["gaussian", "matern", "erf"])
def test_the_function_of_a_fitted_kernel_model(k, kernel):
    """With noise, which bounds the coefficients: their terms cancel by less than 1e4, and rounding stays below 1e-9."""
    rng = np.random.default_rng(0)
    X = rng.uniform([0, 1000], [1e-3, 1010], (30, 2))
    Z = (X - [0, 1000]) / [1e-3, 10]
    y = np.stack([np.sin(3 * Z[:, 0]) * Z[:, 1] + j for j in range(k)], axis=1) + 0.05 * rng.normal(size=(30, k))
    model = KernelFeatureRegressor(kernel).fit(X, y if k > 1 else y[:, 0])
    f = pickle.loads(pickle.dumps(model.function()))
    assert_allclose(f(X), model.predict(X), rtol=1e-7, atol=1e-7)
    scale = np.abs(model.predict_gradient(X)).max(axis=0)
    assert_allclose(f.gradient(X) / scale, model.predict_gradient(X) / scale, atol=1e-6)
    value, gradient = f.value_and_gradient(X[0])
    assert_allclose(value, model.predict(X[:1])[0], rtol=1e-7, atol=1e-7)
    assert_allclose(gradient, f.gradient(X)[0], rtol=1e-7)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("mean", ["constant", "affine"])
@pytest.mark.parametrize("derivatives", ["none", "gradients", "directions", "hessians"])
def test_a_kernel_model_at_one_point_and_at_many(k, mean, derivatives):
    """With noise, which bounds the coefficients: their terms cancel by less than 1e4, and rounding stays below 1e-9."""
    rng = np.random.default_rng(1)
    X, weights = rng.uniform(-1, 1, (15, 2)), rng.normal(size=(k, 2))
    y = np.sin(X @ weights.T) + 0.05 * rng.normal(size=(15, k))
    gradients = np.cos(X @ weights.T)[..., None] * weights + 0.05 * rng.normal(size=(15, k, 2))
    hessians = -np.sin(X @ weights.T)[..., None, None] * weights[:, :, None] * weights[:, None]
    noise = 0.05 * rng.normal(size=hessians.shape)
    hessians = hessians + noise + np.swapaxes(noise, -1, -2)
    along = rng.normal(size=(15, 2))
    known = {
        "none": {},
        "gradients": {"gradients": gradients},
        "directions": {"gradients": np.einsum("nkd,nd->nk", gradients, along), "directions": along},
        "hessians": {"hessians": hessians},
    }[derivatives]
    if k == 1:
        known = {name: each if name == "directions" else each[:, 0] for name, each in known.items()}
    model = KernelFeatureRegressor(mean=mean, check_gradients=False).fit(X, y if k > 1 else y[:, 0], **known)
    f, fresh = pickle.loads(pickle.dumps(model.function())), rng.uniform(-1, 1, (5, 2))
    for x, value, gradient in zip(fresh, model.predict(fresh), model.predict_gradient(fresh), strict=True):
        assert np.shape(f(x)) == np.shape(value)
        assert f.gradient(x).shape == gradient.shape
        assert_allclose(f(x), value, rtol=1e-7, atol=1e-7)
        assert_allclose(f.gradient(x), gradient, rtol=1e-6, atol=1e-6)
        for found, expected in zip(f.value_and_gradient(x), (f(x), f.gradient(x)), strict=True):
            assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert_allclose(f(fresh), model.predict(fresh), rtol=1e-7, atol=1e-7)
