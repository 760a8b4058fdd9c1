"""Fits: defaults, planted networks, and data that leave nothing to fit."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression

from dense import factor
from nurf.activations import Erf, Heaviside, ReLU, ReLUPower, Sigmoid, Softplus
from nurf.densities import Local, Nonlocal, Uniform
from nurf.engines import fit_outer, fit_random
from nurf.jets import Jet
from nurf.networks import Box, Features, Hyperplanes, ShallowNetwork
from nurf.solvers import GeneralizedCrossValidation, Validation

D = 3


def make_jet(n=200, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, D)) / np.sqrt(D)
    w = np.array([2.0, -1.0, 0.5])
    weights = rng.uniform(0.5, 2, n) if weighted else None
    return Jet(X, np.sin(X @ w), np.cos(X @ w)[:, None] * w, -np.sin(X @ w)[:, None, None] * np.outer(w, w), weights)


def make_planes(n_neurons, reach=0.5, seed=1):
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(n_neurons, D))
    offsets = rng.uniform(-reach, reach, n_neurons)
    return Hyperplanes(normals / np.linalg.norm(normals, axis=1, keepdims=True), offsets)


def root_mean_square(values):
    return float(np.sqrt(np.mean(np.square(values))))


class TestFitRandom:
    @pytest.mark.parametrize("density", [Uniform(), Local(), Nonlocal(2)], ids=repr)
    def test_the_seed_decides(self, density):
        jet = make_jet()
        fits = [fit_random(jet, density, Sigmoid(), 40, np.random.default_rng(seed)) for seed in (3, 3, 4)]
        first, again, other = (fit.network for fit in fits)
        assert_array_equal(first.hyperplanes.normals, again.hyperplanes.normals)
        assert_array_equal(first.coefficients, again.coefficients)
        assert not np.array_equal(first.hyperplanes.offsets, other.hyperplanes.offsets)

    @pytest.mark.parametrize(
        ("activation", "degree"),
        [(Sigmoid(), 0), (Erf(), 0), (Heaviside(), 0), (ReLU(), 1), (Softplus(), 1), (ReLUPower(2), 2)],
        ids=repr,
    )
    def test_the_tail_follows_the_order(self, activation, degree):
        fit = fit_random(make_jet(), Uniform(), activation, 30, np.random.default_rng(0))
        assert fit.network.features.degree == degree
        assert fit.network.features.n_neurons == 30

    @pytest.mark.parametrize("degree", [-1, 0, 1, 2])
    def test_another_tail_is_a_choice(self, degree):
        fit = fit_random(make_jet(), Uniform(), Sigmoid(), 30, np.random.default_rng(0), degree=degree)
        assert fit.network.features.degree == degree

    def test_the_bandwidth_follows_the_width(self):
        """Twice the width, so nonlocal sampling with that bandwidth gives the same hyperplanes."""
        jet = make_jet()
        follows = fit_random(jet, Nonlocal(), Sigmoid(0.05), 30, np.random.default_rng(0))
        given = fit_random(jet, Nonlocal(bandwidth=0.1), Sigmoid(0.05), 30, np.random.default_rng(0))
        other = fit_random(jet, Nonlocal(bandwidth=0.2), Sigmoid(0.05), 30, np.random.default_rng(0))
        assert_array_equal(follows.network.hyperplanes.offsets, given.network.hyperplanes.offsets)
        assert np.all(follows.network.hyperplanes.offsets != other.network.hyperplanes.offsets)

    def test_a_sharp_activation_has_a_bandwidth_too(self):
        fit = fit_random(make_jet(), Nonlocal(), Heaviside(), 30, np.random.default_rng(0))
        assert np.all(np.isfinite(fit.network.coefficients))

    def test_the_domain_is_a_choice(self):
        fit = fit_random(
            make_jet(),
            Uniform(),
            Sigmoid(),
            500,
            np.random.default_rng(0),
            domain=Box(np.full(D, 5.0), np.full(D, 6.0)),
        )
        corners = np.array(list(product((5.0, 6.0), repeat=D)))
        distances = fit.network.hyperplanes.signed_distance(corners)
        assert np.all((distances.min(axis=0) <= 1e-12) & (distances.max(axis=0) >= -1e-12))

    def test_missing_derivatives_are_named(self):
        jet = make_jet()
        with pytest.raises(ValueError, match="needs hessians, got gradients"):
            fit_random(Jet(jet.X, jet.y, jet.gradients), Local(2), ReLU(), 30, np.random.default_rng(0))


class TestFitOuter:
    def test_the_default_path(self):
        fit = fit_outer(Features(make_planes(30), Sigmoid(0.3)), make_jet())
        assert fit.alphas.shape == fit.errors.shape
        assert (fit.alphas.max(), fit.alphas.min()) == (1e6, 1e-24)
        assert np.all(np.isfinite(fit.errors))
        assert fit.alpha == fit.alphas[fit.errors <= 1.05 * fit.errors.min()].max()

    @pytest.mark.parametrize("n", [200, 20], ids=["primal", "dual"])
    def test_alpha_is_in_units_of_the_energy_of_a_feature(self, n):
        """The same penalty on features of any amplitude: ``alpha N energy / 2 |c|^2``, by the stated objective."""
        jet, features = make_jet(n), Features(make_planes(30), Softplus(0.3), 1)
        alpha = 1e-3
        weights = fit_outer(features, jet, alphas=np.array([alpha])).network.coefficients
        Z = features.design(jet.X)
        neurons, tail = Z[:, :30], Z[:, 30:]
        left = neurons - tail @ np.linalg.lstsq(tail, neurons, rcond=None)[0]
        energy = np.mean(left**2)
        slope = Z.T @ (Z @ weights - jet.y) / n
        slope[:30] += alpha * 30 * energy * weights[:30]
        assert np.abs(slope).max() < 1e-12

    def test_a_rule_is_a_choice(self):
        jet, features = make_jet(), Features(make_planes(30), Sigmoid(0.3))
        held = make_jet(50, seed=9)
        found = [
            fit_outer(features, jet, rule=rule).errors
            for rule in (None, GeneralizedCrossValidation(), Validation(held))
        ]
        assert not np.array_equal(found[0], found[1])
        fit = fit_outer(features, jet, rule=Validation(held), alphas=np.array([1e-4]))
        residuals = [fit.network.value(rows.X) - rows.y for rows in (jet, held)]
        assert_allclose(fit.errors, root_mean_square(np.concatenate(residuals)), rtol=1e-9)

    @pytest.mark.parametrize("outputs", [(), (1,), (2,)], ids=str)
    def test_outputs_keep_their_shape(self, outputs):
        X = make_jet().X
        y = np.sin(X @ np.ones((D, *outputs)))
        network = fit_outer(Features(make_planes(30), Sigmoid(0.3)), Jet(X, y)).network
        assert network.value(X).shape == (len(X), *outputs)
        assert network.gradient(X).shape == (len(X), *outputs, D)


@pytest.mark.parametrize("activation", [Sigmoid(0.3), Erf(0.3), Heaviside(), Softplus(0.3), ReLU()], ids=repr)
@pytest.mark.parametrize("outputs", [(), (2,)], ids=str)
@pytest.mark.parametrize(("alphas", "accuracy"), [(None, 1e-6), (np.array([1e-14]), 1e-9)], ids=["path", "tiny_alpha"])
def test_a_planted_network_is_found(activation, outputs, alphas, accuracy):
    features = Features(make_planes(8), activation, activation.order - 1)
    planted = ShallowNetwork(features, np.random.default_rng(2).normal(size=(features.n_columns, *outputs)))
    X, fresh = make_jet().X, make_jet(seed=5).X
    fit = fit_outer(features, Jet(X, planted.value(X)), alphas=alphas)
    assert_allclose(fit.network.value(fresh), planted.value(fresh), atol=accuracy)
    assert_allclose(fit.network.coef, planted.coef, atol=1000 * accuracy)


@pytest.mark.parametrize("n", [200, 20, 1], ids=["primal", "dual", "one_row"])
@pytest.mark.parametrize("activation", [Sigmoid(), ReLU()], ids=repr)
@pytest.mark.parametrize("value", [0.0, 3.7])
def test_constant_values(n, activation, value):
    X = make_jet(n).X
    fit = fit_random(Jet(X, np.full(n, value)), Uniform(), activation, 50, np.random.default_rng(0))
    assert np.all(np.isfinite(fit.errors))
    assert_allclose(fit.network.value(X), value, atol=1e-8)
    if n > D:  # a line through one point may have any slope
        assert_allclose(fit.network.value(make_jet(seed=5).X), value, atol=1e-8)


@pytest.mark.parametrize("n", [97, 20], ids=["primal", "dual"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("activation", [Heaviside(), Sigmoid(0.01)], ids=repr)
def test_hyperplanes_that_miss_the_data_leave_the_tail(activation, degree, weighted, n):
    """Features that are constant on the data have no energy beside the tail: no division by it, no use of them."""
    jet, planes = make_jet(n, weighted), make_planes(30)
    features = Features(Hyperplanes(planes.normals, np.where(planes.offsets > 0, 5.0, -5.0)), activation, degree)
    assert factor(features, jet).feature_energy < 1e-12
    fit = fit_outer(features, jet)
    assert np.all(np.isfinite(fit.errors))
    oracle = LinearRegression().fit(jet.X if degree else np.zeros((n, 1)), jet.y, sample_weight=jet.sample_weight)
    assert_allclose(fit.network.value(jet.X), oracle.predict(jet.X if degree else np.zeros((n, 1))), atol=1e-6)
    assert np.abs(fit.network.coef).max() < 1.0


def test_hyperplanes_that_miss_the_data_without_a_tail():
    """Features that are zero on the data: a prediction of zero."""
    features = Features(Hyperplanes(make_planes(30).normals, np.full(30, -5.0)), Heaviside(), -1)
    fit = fit_outer(features, make_jet())
    assert_array_equal(fit.network.value(make_jet().X), 0.0)
