"""Errors where there are no samples, and the choice between derivatives and values alone that they decide."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nurf import RandomFeatureRegressor
from nurf.engines._elsewhere import error_elsewhere, places


def uniform(n, d, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, d))


def diagonal(slope):
    """A network with two outputs, which vary along the diagonal only."""
    return SimpleNamespace(value=lambda X: slope * X.sum(axis=1)[:, None] * [1.0, 2.0], n_outputs=2)


class TestPlaces:
    def test_have_coordinates_of_samples(self):
        X = uniform(20, 3)
        found = places(X)
        assert 100 < len(found) <= 200
        assert all(np.isin(found[:, j], X[:, j]).all() for j in range(3))
        assert len(np.unique(found, axis=0)) > 50

    def test_are_samples_of_one_input(self):
        X = uniform(20, 1)
        assert np.isin(places(X), X).all()

    def test_are_near_samples_if_inputs_depend_on_each_other(self):
        """Two clusters in opposite corners: no place is in the other corners."""
        X = 0.2 * uniform(40, 2) + np.where(np.arange(40) % 2, 0.8, -0.8)[:, None]
        found = places(X)
        assert len(found) > 20
        assert np.all(found[:, 0] * found[:, 1] > 0)

    def test_of_equal_points_and_constant_inputs(self):
        X = np.repeat([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]], 3, axis=0)
        assert_allclose(np.unique(places(X), axis=0), [[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]])


class TestErrorElsewhere:
    def test_is_none_if_fits_agree(self):
        assert error_elsewhere([diagonal(1.0)] * 4, uniform(20, 3)) == 0

    def test_is_none_if_fits_differ_by_as_much_at_samples(self):
        """One input: there are samples wherever new points may be."""
        assert error_elsewhere([diagonal(slope) for slope in range(5)], uniform(20, 1)) == 0

    def test_is_the_variance_of_the_jackknife_beyond_the_samples(self):
        X, slopes = uniform(20, 3), np.array([1.0, 1.2, 0.7, 1.1, 1.4])
        squares = np.sum((slopes - slopes.mean()) ** 2) * 4 / 5
        largest = max(sum(x) ** 2 for x in X)
        beyond = [max(0.0, sum(x) ** 2 - largest) for x in places(X)]
        assert max(beyond) > 0
        expected = (1 + 4) * squares * np.mean(beyond)
        assert_allclose(error_elsewhere([diagonal(slope) for slope in slopes], X), expected)


def ridge(X):
    """A function of one direction of eight inputs, and its gradient."""
    w = np.array([0.5, -0.3, 0.4, 0.2, -0.4, 0.3, 0.2, -0.4])
    t = np.tanh(3 * X @ w)
    return t, 3 * (1 - t**2)[:, None] * w


def error(X, y, gradients, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = RandomFeatureRegressor(300, random_state=seed).fit(X, y, gradients=gradients)
    fresh = uniform(1000, 8, 99)
    return np.sqrt(np.mean((model.predict(fresh) - ridge(fresh)[0]) ** 2))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mistake", ["one row", "shuffled", "negated"])
def test_wrong_gradients_of_few_samples(mistake, seed):
    """Any gradients show the direction in which a ridge varies, but not what is beyond the samples along it."""
    X = uniform(20, 8, seed)
    y, gradients = ridge(X)
    wrong = {
        "one row": gradients * np.where(np.arange(20) == 0, 1e6, 1.0)[:, None],
        "shuffled": np.random.default_rng(seed).permutation(gradients),
        "negated": -gradients,
    }
    assert error(X, y, wrong[mistake], seed) < 2 * error(X, y, None, seed)
