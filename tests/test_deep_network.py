"""Deep networks against layers written out in complex numbers, finite differences, and changes of units."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nurf._scaling import Scaling
from nurf.networks import DeepNetwork, SiLU, Tanh

D = 3

outputs = pytest.mark.parametrize("outputs", [(), (1,), (4,)], ids=str)
curves = pytest.mark.parametrize("activation", [Tanh(), SiLU()], ids=repr)
depths = pytest.mark.parametrize("hidden", [(5,), (7, 4), (4, 6, 5)], ids=str)


def random_network(activation=Tanh(), outputs=(), hidden=(7, 4), d=D, seed=0):  # noqa: B008
    rng = np.random.default_rng(seed)
    sizes = (d, *hidden, int(np.prod(outputs, dtype=int)))
    weights = [rng.standard_normal(shape) / np.sqrt(shape[0]) for shape in pairwise(sizes)]
    return DeepNetwork(weights, [0.3 * rng.standard_normal(size) for size in sizes[1:]], activation, outputs)


def points(n=8, d=D):
    return np.random.default_rng(1).uniform(-1, 1, size=(n, d))


def sigma(activation, z):
    """The activation of complex numbers."""
    return np.tanh(z) if isinstance(activation, Tanh) else z / (1 + np.exp(-z))


def textbook(network, X):
    """The values, layer by layer; ``X`` may be complex."""
    state = X
    for matrix, vector in zip(network.weights[:-1], network.biases[:-1], strict=True):
        state = sigma(network.activation, np.einsum("ni,ij->nj", state, matrix) + vector)
    values = np.einsum("ni,ij->nj", state, network.weights[-1]) + network.biases[-1]
    return values.reshape(len(X), *network.output_shape)


def complex_step(network, X, h=1e-30):
    """The gradients: exact up to rounding, as nothing is subtracted."""
    steps = 1j * h * np.eye(X.shape[1])
    return np.stack([textbook(network, X + step).imag / h for step in steps], axis=-1)


@outputs
@curves
@depths
def test_values_and_derivatives(hidden, activation, outputs):
    network, X = random_network(activation, outputs, hidden), points()
    assert network.hidden == hidden
    assert_allclose(network.value(X), textbook(network, X), rtol=1e-12, atol=1e-13)
    assert_allclose(network.gradient(X), complex_step(network, X), rtol=1e-11, atol=1e-13)
    h = 1e-5  # central differences: the error is of order h^2 = 1e-10, that of rounding 1e-16 / h = 1e-11
    steps = h * np.eye(D)
    second = np.stack([(network.gradient(X + e) - network.gradient(X - e)) / (2 * h) for e in steps], axis=-1)
    hessian = network.hessian(X)
    assert hessian.shape == (len(X), *outputs, D, D)
    assert_allclose(hessian, second, atol=1e-8)
    assert_allclose(hessian, np.swapaxes(hessian, -1, -2), atol=1e-12)


@curves
def test_derivatives_of_the_activation(activation):
    z = np.linspace(-4, 4, 41)
    value, slope, bend = activation(z, 2)
    assert_allclose(value, sigma(activation, z), rtol=1e-13, atol=1e-15)
    assert_allclose(slope, sigma(activation, z + 1e-30j).imag / 1e-30, rtol=1e-12, atol=1e-15)
    h = 1e-5
    assert_allclose(bend, (activation(z + h, 1)[1] - activation(z - h, 1)[1]) / (2 * h), atol=1e-9)
    assert [part.dtype for part in activation(z.astype(np.float32), 2)] == [np.float32] * 3


@outputs
def test_units(outputs):
    network, rng = random_network(outputs=outputs), np.random.default_rng(2)
    scaling = Scaling(
        rng.normal(size=D), 10.0 ** rng.uniform(-3, 3, D), rng.normal(size=outputs), rng.uniform(0.1, 9, outputs)
    )
    scaled, X = network.in_units_of(scaling), points() * scaling.x_scale + scaling.x_center
    inside = scaling.inputs(X)
    function = network.function(scaling)
    # Means of up to 3000 scales lose four of sixteen digits, and sums that cancel some more.
    for value in (scaled.value(X), function(X)):
        assert_allclose(value, scaling.values_back(network.value(inside)), rtol=1e-6, atol=1e-9)
    gradients = scaling.gradients_back(network.gradient(inside))
    for gradient in (scaled.gradient(X), function.gradient(X), function.value_and_gradient(X)[1]):
        assert_allclose(gradient * scaling.x_scale, gradients * scaling.x_scale, rtol=1e-6, atol=1e-9)
    units = scaling.x_scale * scaling.x_scale[:, None]
    hessians = scaling.hessians_back(network.hessian(inside))
    assert_allclose(scaled.hessian(X) * units, hessians * units, rtol=1e-6, atol=1e-9)
    assert np.shape(function(X[0])) == outputs
    assert function.gradient(X[0]).shape == (*outputs, D)
    for one, many in zip(function.value_and_gradient(X[0]), function.value_and_gradient(X), strict=True):
        assert_allclose(one, many[0], rtol=1e-12)


def test_a_function_keeps_the_digits_of_inputs_with_a_large_mean():
    network, X = random_network(), points()
    center = np.full(D, 2.0**40)  # a sum with it keeps 12 digits after the point
    scaling = Scaling(center, np.ones(D), np.array(0.0), np.array(1.0))
    shifted = X.round(2) * 4 // 1 / 4 + center
    assert_allclose(network.function(scaling)(shifted), network.value(shifted - center), rtol=1e-13)


def test_many_points_in_blocks():
    network, X = random_network(outputs=(2,), d=2, hidden=(64, 64)), points(20_000, 2)
    some = [0, 9_999, 19_999]
    for derivative in (network.value, network.gradient, network.hessian):
        assert_allclose(derivative(X)[some], derivative(X[some]), rtol=1e-10, atol=1e-12)


def test_a_jet_and_a_pickle():
    network, X = random_network(outputs=(2,)), points()
    jet = pickle.loads(pickle.dumps(network)).jet(X)
    assert_allclose(jet.gradients, network.gradient(X))
    assert_allclose(jet.hessians, network.hessian(X))


@pytest.mark.parametrize(
    ("weights", "biases", "shape", "message"),
    [
        ([(3, 1)], [1], (), "two or more matrices, each with a bias"),
        ([(3, 4), (4, 1)], [4], (), "two or more matrices, each with a bias"),
        ([(3, 4), (5, 1)], [4, 1], (), "the shapes of the layers must match"),
        ([(3, 4), (4, 1)], [5, 1], (), "the shapes of the layers must match"),
        ([(3, 4), (4, 2)], [4, 2], (), "`output_shape` must have 2 outputs"),
    ],
)
def test_layers_that_do_not_fit(weights, biases, shape, message):
    with pytest.raises(ValueError, match=message):
        DeepNetwork([np.zeros(w) for w in weights], [np.zeros(b) for b in biases], Tanh(), shape)
