"""Networks against dense textbook sums, finite differences, and one row at a time."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cases import ACTIVATIONS, SMOOTH_ACTIVATIONS
from nurf._blocks import row_blocks
from nurf._scaling import Scaling
from nurf.activations import Heaviside, ReLU, ReLUPower, Sigmoid, Softplus
from nurf.networks import Features, Hyperplanes, ShallowNetwork
from pairwise import pairwise

N_NEURONS, D = 9, 3
WIDTHS = np.linspace(0.2, 1.0, N_NEURONS)

outputs = pytest.mark.parametrize("outputs", [(), (1,), (3,)], ids=str)
degrees = pytest.mark.parametrize("degree", [-1, 0, 1, 2])


def short(activation):
    return repr(activation).split("array")[0]


activations = pytest.mark.parametrize("activation", [*ACTIVATIONS, Sigmoid(WIDTHS), Softplus(WIDTHS)], ids=short)
smooth_activations = pytest.mark.parametrize("activation", [*SMOOTH_ACTIVATIONS, Softplus(WIDTHS)], ids=short)


def random_network(activation, degree=0, outputs=(), n_neurons=N_NEURONS, d=D):
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(n_neurons, d))
    planes = Hyperplanes(normals / np.linalg.norm(normals, axis=1, keepdims=True), rng.uniform(-1, 1, n_neurons))
    features = Features(planes, activation, degree)
    return ShallowNetwork(features, rng.normal(size=(features.n_columns, *outputs)))


def points(n=8, d=D):
    return np.random.default_rng(1).uniform(-1, 1, size=(n, d))


def textbook(network, X, k):
    """The k-th derivative at all points, as one dense sum over all neurons, without blocks."""
    a, b, tail = network.hyperplanes.normals, network.hyperplanes.offsets, network.features.tail
    t = np.einsum("xi,ni->xn", X, a) + b
    sigma = network.activation.derivative(t, k)
    n_outputs = int(np.prod(network.coefficients.shape[1:]))
    c, p = np.split(network.coefficients.reshape(len(network.coefficients), n_outputs), [len(a)])
    if k == 0:
        result = np.einsum("xn,no->xo", sigma, c) + np.einsum("xm,mo->xo", tail.values(X), p)
    elif k == 1:
        result = np.einsum("xn,no,ni->xoi", sigma, c, a) + tail.gradient(X, p)
    else:
        result = np.einsum("xn,no,ni,nj->xoij", sigma, c, a, a) + tail.hessian(X, p)
    return result.reshape(len(X), *network.coefficients.shape[1:], *(X.shape[1],) * k)


def differences(f, X, h=0.02):
    """Partial derivatives along a new last axis, by differences of order 8."""
    weights, steps = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}, h * np.eye(X.shape[1])
    return np.stack([sum(w * (f(X + j * e) - f(X - j * e)) for j, w in weights.items()) / h for e in steps], axis=-1)


def derivatives(network):
    """The functions of a network that its activation allows."""
    return (network.value, network.gradient, network.hessian)[: network.activation.n_derivatives + 1]


@pairwise(activations, degrees, outputs)
def test_the_dense_sum(activation, degree, outputs):
    network, X = random_network(activation, degree, outputs), points()
    for k, derivative in enumerate(derivatives(network)):
        result = derivative(X)
        assert result.shape == (len(X), *outputs, *(D,) * k)
        assert_allclose(result, textbook(network, X, k), rtol=1e-11, atol=1e-11)


@pairwise(smooth_activations, degrees, outputs)
def test_derivatives_are_those_of_one_another(activation, degree, outputs):
    network, X = random_network(activation, degree, outputs), points()
    assert_allclose(network.gradient(X), differences(network.value, X), rtol=1e-7, atol=1e-7)
    assert_allclose(network.hessian(X), differences(network.gradient, X), rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("outputs", [(), (2,)], ids=str)
@pytest.mark.parametrize("activation", [Sigmoid(0.3), ReLUPower(2)], ids=repr)
def test_several_blocks_are_the_rows_by_themselves(activation, outputs):
    network, X = random_network(activation, 1, outputs, n_neurons=600), points(3000)
    assert len(list(row_blocks(3000, 600))) > 2
    for derivative in derivatives(network):
        result = derivative(X)
        assert_allclose(result[::100], np.concatenate([derivative(x[None]) for x in X[::100]]), atol=1e-10)
        pieces = np.concatenate([derivative(X[i : i + 60]) for i in range(0, len(X), 60)])
        assert_allclose(result, pieces, atol=1e-10)


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (1, 5), (7, 5), (3000, 600), (2, 2**21), (5, 0)])
def test_row_blocks_cover_every_row_once(rows, columns):
    blocks = list(row_blocks(rows, columns, elements=2**15))
    assert [i for block in blocks for i in range(rows)[block]] == list(range(rows))
    assert all(0 < b.stop - b.start <= max(1, 2**15 // max(1, columns)) for b in blocks)


@pytest.mark.parametrize(("name", "megabytes"), [("value", 25), ("gradient", 25), ("hessian", 90)])
@pytest.mark.usefixtures("own_memory")
def test_memory_stays_far_below_one_number_per_row_neuron_and_input(name, megabytes):
    network, X = random_network(Sigmoid(0.3), n_neurons=1000, d=30), points(3000, 30)  # 720 MB if all at once
    tracemalloc.start()
    try:
        getattr(network, name)(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < megabytes * 1e6


@pairwise(activations, degrees, outputs)
def test_other_units_the_same_function(activation, degree, outputs):
    network, rng = random_network(activation, degree, outputs), np.random.default_rng(2)
    m, q = np.array([1.0, -20.0, 0.3]), np.array([0.5, 8.0, 0.01])
    y_center, y_scale = rng.normal(size=outputs), rng.uniform(0.5, 50.0, size=outputs)
    Z = points()
    X = m + q * Z
    physical = network.in_units_of(Scaling(m, q, y_center, y_scale))
    assert_allclose(np.linalg.norm(physical.hyperplanes.normals, axis=1), 1, rtol=1e-14)
    scaled = [textbook(network, Z, k) for k in range(min(activation.n_derivatives, 2) + 1)]
    chain_rule = [
        lambda v: v * y_scale + y_center,
        lambda g: g * y_scale[..., None] / q,
        lambda h: h * y_scale[..., None, None] / np.outer(q, q),
    ]
    for derivative, back, value in zip(derivatives(physical), chain_rule, scaled, strict=False):
        expected = back(value)
        assert_allclose(derivative(X), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("activation", [Sigmoid(0.3), Softplus(WIDTHS)], ids=short)
def test_other_units_far_from_the_origin(activation):
    network, Z = random_network(activation, 1), points()
    m, q = np.array([1e6, -1e6, 0.0]), np.array([1.0, 1e4, 1e-4])
    physical = network.in_units_of(Scaling(m, q, np.array(1e6), np.array(1e-3)))
    assert_allclose(physical.value(m + q * Z) - 1e6, 1e-3 * network.value(Z), rtol=0, atol=1e-8)


def test_the_jet_of_a_network():
    network, X = random_network(Sigmoid(0.3), 1, (2,)), points()
    jet = network.jet(X)
    assert_array_equal(jet.y, network.value(X))
    assert_array_equal(jet.gradients, network.gradient(X))
    assert_array_equal(jet.hessians, network.hessian(X))
    assert network.jet(X, kinds=()).known == set()
    assert network.jet(X, kinds={"hessians"}).known == {"hessians"}


@pytest.mark.parametrize("activation", [*ACTIVATIONS, Softplus(WIDTHS)], ids=short)
def test_features_are_written_where_asked(activation):
    features, X = random_network(activation, 2).features, points()
    design = features.design(X)
    assert design.shape == (len(X), features.n_columns) == (len(X), N_NEURONS + 10)
    assert_allclose(design[:, :N_NEURONS], activation(features.hyperplanes.signed_distance(X)), atol=1e-14)
    assert_array_equal(design[:, N_NEURONS:], features.tail.values(X))
    for k in range(activation.n_derivatives + 1):
        room = np.full((len(X), N_NEURONS + 2), np.nan)
        out = room[:, 1:-1]
        assert features.neurons(X, k, out=out) is out
        assert_array_equal(out, features.neurons(X, k))
        assert np.all(np.isnan(room[:, [0, -1]]))
    assert_array_equal(features.design(X, out=np.empty_like(design)), design)
    assert_array_equal(X, points())


def test_design_blocks_are_the_design():
    features, X = random_network(Sigmoid(0.3), 1, n_neurons=600).features, points(2000)
    whole = np.full((2000, features.n_columns), np.nan)
    for rows, block in features.design_blocks(X):
        whole[rows] = block
    assert_allclose(whole, features.design(X), rtol=1e-12)


@outputs
@degrees
def test_no_neurons_leave_the_tail(degree, outputs):
    network, X = random_network(Sigmoid(0.3), degree, outputs, n_neurons=0), points()
    for k, derivative in enumerate(derivatives(network)):
        assert_allclose(derivative(X), textbook(network, X, k), atol=1e-12)
    Z = X * 2.0 + 1.0
    physical = network.in_units_of(Scaling(np.ones(D), np.full(D, 2.0), np.zeros(outputs), np.ones(outputs)))
    assert_allclose(physical.value(Z), network.value(X), atol=1e-12)


@outputs
def test_no_points_give_no_rows(outputs):
    network = random_network(Sigmoid(0.3), 1, outputs)
    for k, derivative in enumerate(derivatives(network)):
        assert derivative(np.empty((0, D))).shape == (0, *outputs, *(D,) * k)


@pytest.mark.parametrize("degree", [-1, 0])
@pytest.mark.parametrize(("activation", "name"), [(Heaviside(), "gradient"), (ReLU(), "hessian")], ids=str)
def test_a_derivative_that_does_not_exist_is_refused(activation, name, degree):
    network = random_network(activation, degree)
    with pytest.raises(ValueError, match=f"{type(activation).__name__}.* smoother activation"):
        getattr(network, name)(points())


@pytest.mark.parametrize("shape", [(N_NEURONS,), (N_NEURONS + 2,), (1, N_NEURONS + 1), (N_NEURONS + 1, 1, 1), ()])
def test_weights_of_another_shape_are_refused(shape):
    features = random_network(Sigmoid(0.3)).features
    with pytest.raises(ValueError, match=f"`coefficients` must have {N_NEURONS + 1} rows") as error:
        ShallowNetwork(features, np.ones(shape))
    assert str(shape) in str(error.value)


@pytest.mark.parametrize("n_widths", [1, N_NEURONS - 1, N_NEURONS + 1])
def test_widths_of_another_number_are_refused(n_widths):
    planes = random_network(ReLU()).hyperplanes
    with pytest.raises(ValueError, match=rf"one for each of {N_NEURONS} neurons, got shape \({n_widths},\)"):
        Features(planes, Sigmoid(np.ones(n_widths)))


@pytest.mark.parametrize("shape", [(4, D + 1), (4, D - 1)])
@pytest.mark.parametrize("name", ["value", "gradient", "hessian"])
def test_points_of_another_dimension_are_refused(name, shape):
    with pytest.raises(ValueError, match=str(D)):
        getattr(random_network(Sigmoid(0.3)), name)(np.ones(shape))
