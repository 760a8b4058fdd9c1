"""First weights of torch modules: what densities promise, units, and what is refused."""

import itertools
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import nurf
from nurf import DeepFeatureRegressor, densities

torch = pytest.importorskip("torch")

UNITS = np.array([0.01, 1.0, 300.0])
RIDGE = np.array([1.0, -2.0, 0.5])


def data(n=60, seed=0, units=UNITS):
    """A wave along one direction of three inputs."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 3))
    t = X @ RIDGE
    return X * units, 5 + 3 * np.sin(t), 3 * np.cos(t)[:, None] * RIDGE / units


def perceptron(*sizes, bias=True):
    layers = []
    for fan_in, size in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(fan_in, size, bias=bias), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def inner(module, X):
    """What comes into the neurons of the first layer."""
    with torch.no_grad():
        return module[0](torch.tensor(X, dtype=torch.float32)).numpy()


@pytest.mark.parametrize("density", ["auto", "nonlocal", "local", "active_subspace"])
def test_neurons_follow_the_gradients(density):
    """All gradients of a wave are parallel, and so are the normals of all hyperplanes that are sampled from them."""
    X, y, G = data()
    module = nurf.torch.initialize_(perceptron(3, 20, 1), X, y, G, density=density, random_state=0)
    weights = module[0].weight.detach().numpy() * UNITS
    cosines = weights @ RIDGE / np.linalg.norm(weights, axis=1) / np.linalg.norm(RIDGE)
    assert_allclose(np.abs(cosines), 1, atol=1e-5)  # single precision


@pytest.mark.parametrize("gradients", [True, False])
def test_hyperplanes_are_where_the_samples_are_in_all_units(gradients):
    found = []
    for units in (UNITS, np.ones(3)):
        X, y, G = data(units=units)
        X = X + 2 * units
        module = perceptron(3, 40, 1)
        nurf.torch.initialize_(module, X, y, G if gradients else None, scale=0.5, random_state=1)
        found.append(inner(module, X))
    assert_allclose(found[0], found[1], atol=1e-3)
    # Inputs of variance one and normals of length 0.5: the deviation over samples is about 0.5, for all directions.
    assert np.all((found[0].std(axis=0) > 0.2) & (found[0].std(axis=0) < 1))
    # Hyperplanes are at most 1.5 from the mean of the samples, in units of a deviation, or go near one of them.
    assert np.abs(found[0].mean(axis=0)).max() < 0.5 * 4


def test_only_the_first_layer_is_set_unless_all_are():
    X, y, G = data()
    module = perceptron(3, 8, 8, 1)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    state = torch.random.get_rng_state()
    assert nurf.torch.initialize_(module, X, y, G, random_state=0) is module
    changed = {name for name, value in module.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"0.weight", "0.bias"}
    nurf.torch.initialize_(module, X, y, G, layers="all", random_state=0)
    changed = {name for name, value in module.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == set(before)
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("outputs", [(), (2,)])
def test_all_layers_are_those_from_which_deep_networks_are_trained(outputs):
    X, y, G = data()
    if outputs:
        y, G = np.stack([y, -10 * y], axis=1), np.stack([G, -10 * G], axis=1)
    module = perceptron(3, 16, 8, 2 if outputs else 1).double()
    nurf.torch.initialize_(module, X, y, G, layers="all", random_state=3)
    network = DeepFeatureRegressor((16, 8), random_state=3)._first_network(X, y, G, 1.0)
    values = module(torch.tensor(X)).detach().numpy().reshape(len(X), *outputs)
    assert_allclose(values, network.value(X), rtol=1e-9)
    assert_allclose(module[-1].bias.detach().numpy(), y.reshape(len(X), -1).mean(axis=0))
    # 8 x 16 normal weights of variance 1 / 16: their mean square has a relative deviation of (2 / 128)^(1/2) = 0.13.
    assert 0.4 < 16 * module[2].weight.detach().numpy().var() < 1.6


def test_densities_and_seeds():
    X, y, G = data()

    def weights(**options):
        return nurf.torch.initialize_(perceptron(3, 8, 1), X, y, G, **options)[0].weight.detach().numpy()

    assert_allclose(weights(random_state=0), weights(random_state=0, density=densities.Nonlocal(1)), rtol=1e-6)
    assert not np.allclose(weights(random_state=0), weights(random_state=1))
    uniform = weights(random_state=0, density="uniform") * UNITS
    cosines = uniform @ RIDGE / np.linalg.norm(uniform, axis=1) / np.linalg.norm(RIDGE)
    assert np.abs(cosines).min() < 0.9  # eight uniform normals of three inputs: all above with probability 0.1^8


@pytest.mark.parametrize(
    ("module", "options", "message"),
    [
        (perceptron(2, 4, 1), {}, "a first torch.nn.Linear of 3 inputs, as X has, got one of 2"),
        (torch.nn.Tanh(), {}, "a first torch.nn.Linear of 3 inputs, as X has, got none"),
        (perceptron(3, 4, 1, bias=False), {}, "must have biases"),
        (perceptron(3, 4, 2), {"layers": "all"}, r"with 1 outputs, got \[\(3, 4\), \(4, 2\)\]"),
        (perceptron(3, 1), {"layers": "all"}, "two or more torch.nn.Linear"),
        (perceptron(3, 4, 1), {"layers": "last"}, "`layers` must be one of 'first', 'all', got 'last'"),
        (perceptron(3, 4, 1), {"scale": 0}, "`scale` must be a number > 0, got 0"),
        (perceptron(3, 4, 1), {"density": "normal"}, "`density` must be"),
    ],
)
def test_what_cannot_be_initialised(module, options, message):
    X, y, G = data()
    with pytest.raises(ValueError, match=message):
        nurf.torch.initialize_(module, X, y, G, **options)


def test_the_extra_is_named_if_torch_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'pip install "nurf\[torch\]"'):
        nurf.torch.initialize_(None, [[0.0]], [0.0])
