"""Components of derivatives: lengths survive, and what is known on one side of a diagonal counts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nurf._tensors import components, factors, power_bends, power_slopes, powers, variables


def symmetric(d, seed=0):
    H = np.random.default_rng(seed).normal(size=(4, 2, d, d))
    return H + np.swapaxes(H, -1, -2)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_components_of_hessians_are_orthonormal_coordinates(d):
    G, H = symmetric(d), symmetric(d, 1)
    a, b = components(G, 2), components(H, 2)
    assert a.shape == (4, 2, d * (d + 1) // 2)
    assert_allclose(np.sum(a * b, axis=-1), np.einsum("...ij,...ij->...", G, H))
    assert_allclose(components(G + 2 * H, 2), a + 2 * b)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_inner_products_of_powers_are_powers_of_inner_products(d, order):
    V, W = np.random.default_rng(0).normal(size=(2, 5, d))
    assert_allclose(powers(V, order) @ powers(W, order).T, (V @ W.T) ** order)


def test_values_and_gradients_are_their_components():
    g = np.arange(6.0).reshape(2, 3)
    assert_array_equal(components(g, 0), g[..., None])
    assert_array_equal(components(g, 1), g)
    assert_array_equal(powers(g, 1), g)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_derivatives_of_powers(d, order):
    """The powers are polynomials of degree two at most, for which central differences are exact."""
    V, axes = np.random.default_rng(0).normal(size=(5, d)), np.eye(d)

    def change(W, i):
        return (powers(W + axes[i], order) - powers(W - axes[i], order)) / 2

    for i in range(d):
        assert_allclose(power_slopes(V, order)[..., i], change(V, i), atol=1e-14)
        for j in range(d):
            second = (change(V + axes[j], i) - change(V - axes[j], i)) / 2
            assert_allclose(np.broadcast_to(power_bends(d, order)[:, i, j], second.shape), second, atol=1e-14)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_components_are_partial_derivatives_times_factors(order):
    """Of ``exp(v.x)`` at zero, whose partial derivatives are products of ``v``."""
    v = np.array([2.0, 3.0, 5.0])
    partials = np.array([np.prod(v[list(by)]) for by in variables(3, order)])
    assert_allclose(powers(v, order), partials * factors(3, order))
    assert len(set(variables(3, order))) == len(partials) == (1, 3, 6)[order]


def test_entries_of_a_hessian_that_are_not_known():
    nan = np.nan
    H = np.array([[1.0, 2.0, nan], [4.0, nan, nan], [7.0, nan, 9.0]])
    found = dict(zip(variables(3, 2), components(H, 2), strict=True))
    assert_allclose([found[0, 0], found[2, 2]], [1, 9])
    assert_allclose(found[0, 1], np.sqrt(2) * 3)  # the mean of both sides
    assert_allclose(found[0, 2], np.sqrt(2) * 7)  # known below the diagonal only
    assert np.isnan(found[1, 1])
    assert np.isnan(found[1, 2])
