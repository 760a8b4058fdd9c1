"""The polynomial tail against explicit products and finite differences."""

from math import comb, prod

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nurf.networks import Tail

TAILS = [Tail(degree, dimension) for degree in (-1, 0, 1, 2, 3) for dimension in (1, 2, 4)]
every_tail = pytest.mark.parametrize("tail", TAILS, ids=lambda t: f"degree {t.degree} in {t.dimension}d")


def points(tail, n=7):
    X = np.random.default_rng(0).normal(size=(n, tail.dimension))
    X[0] = 0.0  # where a careless power of zero gives NaN
    return X


def coefficients(tail, n_outputs=2):
    return np.random.default_rng(1).normal(size=(len(tail), n_outputs))


def differences(f, X, h=0.1):
    """Partial derivatives along a new last axis, exact for polynomials up to degree 4."""
    steps = h * np.eye(X.shape[1])
    return np.stack([(8 * (f(X + e) - f(X - e)) - (f(X + 2 * e) - f(X - 2 * e))) / (12 * h) for e in steps], axis=-1)


@every_tail
def test_every_monomial_once(tail):
    assert len(tail) == comb(tail.dimension + tail.degree, tail.dimension) if tail.degree >= 0 else len(tail) == 0
    assert tail.exponents.shape == (len(tail), tail.dimension)
    assert len({tuple(row) for row in tail.exponents}) == len(tail)
    assert all(sum(row) <= tail.degree for row in tail.exponents)
    assert_array_equal(tail.exponents.sum(axis=1), np.sort(tail.exponents.sum(axis=1)), "constant first")


@every_tail
def test_values_are_products(tail):
    X = points(tail)
    expected = [[prod(x ** int(e) for x, e in zip(row, es, strict=True)) for es in tail.exponents] for row in X]
    assert_allclose(tail.values(X), np.reshape(expected, (len(X), len(tail))), rtol=1e-14)


@every_tail
def test_partials(tail):
    X = points(tail)
    first = differences(tail.values, X)
    for i in range(tail.dimension):
        assert_allclose(tail.partials(X, (i,)), first[..., i], atol=1e-12)
        second = differences(lambda X, i=i: tail.partials(X, (i,)), X)
        for j in range(tail.dimension):
            assert_allclose(tail.partials(X, (i, j)), second[..., j], atol=1e-12)


@every_tail
def test_gradient_and_hessian(tail):
    X, coef = points(tail), coefficients(tail)
    gradient, hessian = tail.gradient(X, coef), tail.hessian(X, coef)
    assert gradient.shape == (len(X), 2, tail.dimension)
    assert_allclose(gradient, differences(lambda X: tail.values(X) @ coef, X), atol=1e-11)
    assert hessian.shape == (len(X), 2, tail.dimension, tail.dimension)
    assert_allclose(hessian, differences(lambda X: tail.gradient(X, coef), X), atol=1e-11)


@every_tail
def test_substitution(tail):
    X = points(tail)
    rng = np.random.default_rng(2)
    center, scale = rng.normal(size=tail.dimension), rng.uniform(0.2, 5, size=tail.dimension)
    matrix = tail.substitution(center, scale)
    assert matrix.shape == (len(tail), len(tail))
    assert_allclose(tail.values((X - center) / scale), tail.values(X) @ matrix, rtol=1e-9, atol=1e-9)
    back = tail.substitution(-center / scale, 1 / scale)
    assert_allclose(matrix @ back, np.eye(len(tail)), atol=1e-9)
    identity = tail.substitution(np.zeros(tail.dimension), np.ones(tail.dimension))
    assert_allclose(identity, np.eye(len(tail)), atol=1e-14)


def test_degree_minus_one_is_nothing():
    tail, X = Tail(-1, 3), np.ones((4, 3))
    assert len(tail) == 0
    assert tail.values(X).shape == tail.partials(X, (0,)).shape == (4, 0)
    assert_array_equal(tail.gradient(X, np.ones((0, 2))), np.zeros((4, 2, 3)))
    assert_array_equal(tail.hessian(X, np.ones((0, 2))), np.zeros((4, 2, 3, 3)))
    assert tail.substitution(np.zeros(3), np.ones(3)).shape == (0, 0)


def test_the_points_are_left_alone():
    tail = Tail(2, 2)
    X = points(tail)
    before, exponents = X.copy(), tail.exponents.copy()
    tail.values(X), tail.gradient(X, coefficients(tail)), tail.hessian(X, coefficients(tail))
    assert_array_equal(X, before)
    assert_array_equal(tail.exponents, exponents)
