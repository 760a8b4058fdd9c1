"""Hyperplanes and the domains that they cut, against brute force."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nurf.networks import Ball, Box, Hyperplanes


def unit_normals(n, d, seed=0):
    normals = np.random.default_rng(seed).normal(size=(n, d))
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)


@pytest.fixture
def planes():
    return Hyperplanes(unit_normals(5, 3), np.linspace(-1, 1, 5))


def test_signed_distance_is_a_dot_x_plus_b(planes):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4, 3))
    expected = [[sum(a * x) + b for a, b in zip(planes.normals, planes.offsets, strict=True)] for x in X]
    assert_allclose(planes.signed_distance(X), expected, rtol=0, atol=1e-14)
    feet = X[:, None, :] - planes.signed_distance(X)[..., None] * planes.normals  # the nearest points of the planes
    assert_allclose(np.einsum("knd,nd->kn", feet, planes.normals) + planes.offsets, 0, atol=1e-14)


@pytest.mark.parametrize("shift", [0.0, 0.25, np.linspace(-1, 1, 6)], ids=["none", "one", "each"])
def test_through_points(shift):
    points, directions = np.random.default_rng(2).normal(size=(6, 3)), unit_normals(6, 3)
    planes = Hyperplanes.through(points, np.linspace(1e-3, 1e3, 6)[:, None] * directions, shift)
    assert_allclose(planes.normals, directions, atol=1e-14)
    assert_allclose(np.diag(planes.signed_distance(points)), np.broadcast_to(shift, 6), atol=1e-14)


@pytest.mark.parametrize("length", [1e-200, 1e200])
def test_through_takes_directions_of_any_length(length):
    planes = Hyperplanes.through(np.zeros((6, 3)), length * unit_normals(6, 3))
    assert_allclose(planes.normals, unit_normals(6, 3), atol=1e-14)


def test_through_refuses_a_direction_of_length_zero():
    with pytest.raises(ValueError, match="length"):
        Hyperplanes.through([[0.0, 0.0]], [[0.0, 0.0]])


@pytest.mark.parametrize("index", [slice(1, 3), [4, 0, 0], np.array([True, False, True, False, False])], ids=str)
def test_indexing(planes, index):
    assert_array_equal(planes[index].normals, planes.normals[index])
    assert_array_equal(planes[index].offsets, planes.offsets[index])


def test_addition_puts_the_others_behind(planes):
    both = planes + planes[:2]
    assert (len(both), both.dimension) == (7, 3)
    assert_array_equal(both.normals[5:], planes.normals[:2])
    assert_array_equal(both.offsets[5:], planes.offsets[:2])
    assert_array_equal((planes[:0] + planes).offsets, planes.offsets)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_offset_range_of_a_box_is_that_of_its_corners(d):
    rng = np.random.default_rng(3)
    box = Box(lower := rng.normal(size=d), upper := lower + rng.uniform(0.1, 3, size=d))
    normals = unit_normals(20, d)
    corners = np.array(list(product(*zip(lower, upper, strict=True))))
    low, high = box.offset_range(normals)
    assert_allclose(low, (-corners @ normals.T).min(axis=0), atol=1e-13)
    assert_allclose(high, (-corners @ normals.T).max(axis=0), atol=1e-13)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("domain", ["ball", "box"])
def test_offset_range_holds_all_points_and_no_more(d, domain):
    rng = np.random.default_rng(4)
    directions = np.concatenate([unit_normals(200_000, d, seed=5), np.eye(d), -np.eye(d)])
    if domain == "ball":
        domain, points = Ball(1.7), 1.7 * directions
    else:
        domain = Box(lower := np.full(d, -0.4), upper := np.full(d, 1.1))
        points = rng.choice([0.0, 1.0], size=(200_000, d)) * (upper - lower) + lower
    normals = np.concatenate([unit_normals(10, d), np.eye(d)])
    low, high = domain.offset_range(normals)
    seen = -points @ normals.T
    assert low.shape == high.shape == (len(normals),)
    assert np.all(low - 1e-13 <= seen.min(axis=0))
    assert np.all(seen.max(axis=0) <= high + 1e-13)
    assert_allclose([seen.min(axis=0), seen.max(axis=0)], [low, high], atol=1e-3)


@pytest.mark.parametrize(
    ("normals", "offsets", "words"),
    [
        (np.eye(3), np.zeros(2), ["(N, d)", "(3, 3)", "(2,)"]),
        (np.eye(3), np.zeros((3, 1)), ["(N,)", "(3, 1)"]),
        (np.ones(3), np.zeros(3), ["(N, d)", "(3,)"]),
        ([[1.0, 0.0], [3.0, 4.0]], np.zeros(2), ["length 1", "length 5"]),
        ([[np.nan, 0.0]], np.zeros(1), ["length 1", "nan"]),
        ([[0.0, 0.0]], np.zeros(1), ["length 1", "length 0"]),
    ],
)
def test_errors_say_what_was_expected_and_what_came(normals, offsets, words):
    with pytest.raises(ValueError, match="must have") as error:
        Hyperplanes(normals, offsets)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("lower", "upper"), [([0, 0], [1, 0]), ([1.0], [0.0]), ([0, 0], [1]), (np.zeros((1, 2)), np.ones((1, 2)))]
)
def test_an_empty_box_is_refused(lower, upper):
    with pytest.raises(ValueError, match="lower < upper"):
        Box(lower, upper)


@pytest.mark.parametrize(
    ("X", "lower", "upper"),
    [
        ([[0.0, 3.0], [2.0, -1.0], [1.0, 0.0]], [0.0, -1.0], [2.0, 3.0]),
        ([[0.0, 5.0], [4.0, 5.0]], [0.0, 3.0], [4.0, 7.0]),
        ([[7.0]], [6.5], [7.5]),
    ],
    ids=["points", "points on a line", "one point"],
)
def test_a_box_around_points(X, lower, upper):
    box = Box.around(X)
    assert_array_equal([box.lower, box.upper], [lower, upper])


def test_an_unbounded_box_is_refused():
    with pytest.raises(ValueError, match="box"):
        Box([-np.inf], [np.inf])


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf])
def test_a_bad_radius_is_refused(radius):
    with pytest.raises(ValueError, match=f"`radius` .*got {radius}"):
        Ball(radius)
