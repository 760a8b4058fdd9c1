"""Penalties: values and derivatives, distance to optimality against minimisation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from nurf.solvers.sparse._penalties import L1, PENALTIES, LogPenalty, Squared

SPARSE = [L1(), LogPenalty(5.0), LogPenalty(10.0, theta=0.0), LogPenalty(1e-3), LogPenalty(50.0, theta=0.5)]
ALL = [*SPARSE, Squared()]
SIZES = np.geomspace(1e-3, 30, 40)


@pytest.mark.parametrize("penalty", ALL, ids=repr)
def test_derivatives_are_those_of_the_value(penalty):
    step = 1e-5 * SIZES
    slope = (penalty.value(SIZES + step) - penalty.value(SIZES - step)) / (2 * step)
    curvature = (penalty.slope(SIZES + step) - penalty.slope(SIZES - step)) / (2 * step)
    assert_allclose(penalty.slope(SIZES), slope, rtol=1e-6)
    assert_allclose(penalty.curvature(SIZES), curvature, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("penalty", SPARSE, ids=repr)
def test_a_sparse_penalty_is_concave_with_slope_one_at_zero(penalty):
    zero = np.zeros(1)
    assert penalty.value(zero) == 0
    assert penalty.slope(zero) == 1
    assert np.all(penalty.curvature(SIZES) <= 0)
    assert np.all(np.diff(penalty.slope(SIZES)) <= 0)
    assert np.all(penalty.value(2 * SIZES) <= 2 * penalty.value(SIZES) * (1 + 1e-15))


def test_the_logarithm_is_the_authors():
    t, g = SIZES, 5 / (1 - 1 / 4)
    assert_allclose(LogPenalty(5.0).value(t), t / 4 + 3 / 4 * np.log(1 + g * t) / g)
    assert LogPenalty(5.0).curvature(np.zeros(1)) == -5


def minimiser(penalty, v, alpha):
    """The minimiser of ``|c - v|^2 / 2 + alpha psi(|c|)``, which is along ``v``: by a grid of sizes, refined."""
    size = np.linalg.norm(v)

    def cost(s):
        return (s - size) ** 2 / 2 + alpha * penalty.value(np.asarray(s))

    grid = np.linspace(0, size, 1001)
    best = np.argmin(cost(grid))
    if best == 0:
        return 0 * v
    around = (grid[best - 1], grid[min(best + 1, 1000)])
    return v * (minimize_scalar(cost, bounds=around, method="bounded", options={"xatol": 1e-12}).x / size)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("penalty", ALL, ids=repr)
def test_distance_vanishes_at_minimisers_and_nowhere_near(penalty, outputs):
    alpha = 0.05
    v = np.random.default_rng(0).standard_normal((50, outputs)) * np.geomspace(0.01, 3, 50)[:, None]
    c = np.array([minimiser(penalty, row, alpha) for row in v])  # of a loss with minus the derivative v - c
    assert_allclose(penalty.distance(c, v - c, alpha), 0, atol=1e-5)  # a search by values has half their digits
    assert 0 < np.count_nonzero(~c.any(axis=1)) < 50 or not penalty.sparse
    moved = c + 0.1 * v
    assert np.all(penalty.distance(moved, v - moved, alpha)[c.any(axis=1)] > 0)


def test_distance_of_zero_is_the_excess_over_alpha():
    assert_allclose(L1().distance(np.zeros((2, 1)), np.array([[0.5], [-3.0]]), 2.0), [0, 0.5])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LogPenalty(0.0), "`gamma` must be a number > 0, got 0.0"),
        (lambda: LogPenalty(np.inf), "`gamma` must be a number > 0, got inf"),
        (lambda: LogPenalty(5.0, theta=1.0), "`theta` must be >= 0 and < 1, got 1.0"),
    ],
)
def test_errors_say_what_was_expected(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_penalties_are_specs():
    assert LogPenalty(5.0) == LogPenalty(5.0) != LogPenalty(6.0)
    assert repr(LogPenalty(5.0)) == "LogPenalty(gamma=5.0, theta=0.25)"
    assert list(PENALTIES.values()) == [L1, LogPenalty]
