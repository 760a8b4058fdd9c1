"""The profiles ``psi_k`` against their Fourier integral, plain derivatives of the bump, and closed forms."""

from math import factorial

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from numpy.polynomial.hermite_e import hermeval
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import cumulative_trapezoid, quad
from scipy.special import expit, gamma, hyp1f1

from nurf.densities._profiles import MOLLIFIERS, Mollifier, Profile, psi
from pairwise import pairwise
from quadrature import LEVEL, TRANSFORMS

NAMES = list(MOLLIFIERS)
DIMENSIONS = (1, 2, 3, 4, 8)


def every(test):
    """Run a test for every mollifier, in dimensions of both parities, for three orders."""
    for name, values in (("name", NAMES), ("d", DIMENSIONS), ("k", (0, 1, 2))):
        test = pytest.mark.parametrize(name, values)(test)
    return test


# --- The paper, written out
FREQUENCIES = {"logistic": 22.0, "gaussian": 14.0, "cauchy": 75.0}  # xi^10 h(xi) is below 1e-16 of its maximum there


def constant(d):
    return 1 / (2 * (2 * np.pi) ** (d - 1))


def fourier(name, d, k, t, width=1.0):
    """``c_d / (2 pi) int (-i xi)^k |xi|^(d-1) h(width |xi|) exp(i xi t) dxi``, as a real integral over ``xi > 0``."""

    def amplitude(xi):
        return constant(d) / np.pi * xi ** (d - 1 + k) * TRANSFORMS[name](width * xi)

    top = FREQUENCIES[name] / width
    size = quad(amplitude, 0, top, limit=200)[0]
    weight, sign = {0: ("cos", 1), 1: ("sin", 1), 2: ("cos", -1)}[k]
    return sign * quad(amplitude, 0, top, weight=weight, wvar=t, limit=500, epsabs=1e-11 * size, epsrel=0)[0], size


def bump(name, m, t):
    """The ``m``-th derivative of ``eta``."""
    if name == "gaussian":
        return (-1) ** m * hermeval(t, np.eye(m + 1)[m]) * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    if name == "cauchy":
        return (-1) ** m * factorial(m) / np.pi * np.sin((m + 1) * np.arctan2(1, t)) / (1 + t**2) ** ((m + 1) / 2)
    slope = Polynomial([0, 1, -1])  # of the sigmoid, as a polynomial of the sigmoid
    derivative = slope
    for _ in range(m):
        derivative = derivative.deriv() * slope
    return np.where(t > 0, (-1) ** m, 1) * derivative(expit(-np.abs(t)))  # near zero the polynomial does not cancel


@pytest.mark.parametrize("name", NAMES)
def test_the_bumps_written_out_here_have_the_transforms_written_out_here(name):
    far = np.inf if name == "gaussian" else 60.0
    for xi in (0.3, 1.0, 2.5):
        if name == "cauchy":
            value = 2 * quad(lambda t: bump(name, 0, t), 0, np.inf, weight="cos", wvar=xi)[0]
        else:
            value = 2 * quad(lambda t, xi=xi: bump(name, 0, t) * np.cos(xi * t), 0, far, limit=200)[0]
        assert value == pytest.approx(TRANSFORMS[name](xi), rel=1e-6)
    t, h = np.linspace(-3, 3, 7), 1e-5
    for m in range(4):
        slope = (bump(name, m, t + h) - bump(name, m, t - h)) / (2 * h)
        assert_allclose(bump(name, m + 1, t), slope, atol=1e-6)


# --- The exact function
@every
def test_psi_is_its_fourier_integral(name, d, k):
    t = np.array([-4.1, -0.3, 0.0, 0.11, 0.7, 1.3, 2.9, 6.0, 15.0, 40.0])
    values, sizes = np.transpose([fourier(name, d, k, x) for x in t])
    assert_allclose(psi(MOLLIFIERS[name], d, k, t), values, atol=1e-9 * sizes[0], rtol=0)


@pairwise(name=NAMES, d=[1, 3, 5, 7], k=[0, 1, 2])
def test_psi_is_a_plain_derivative_of_the_bump_in_odd_dimensions(name, d, k):
    t = np.linspace(-12, 12, 97)
    expected = constant(d) * (-1) ** ((d - 1) // 2 + k) * bump(name, d - 1 + k, t)
    assert_allclose(psi(MOLLIFIERS[name], d, k, t), expected, atol=1e-12 * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_first_profiles_by_name(name):
    t, eta = np.linspace(-5, 5, 41), MOLLIFIERS[name]
    assert_allclose(psi(eta, 1, 0, t), bump(name, 0, t) / 2, atol=1e-15)
    assert_allclose(psi(eta, 1, 1, t), -bump(name, 1, t) / 2, atol=1e-15)
    assert_allclose(psi(eta, 3, 0, t), -bump(name, 2, t) / (8 * np.pi**2), atol=1e-15)
    assert_allclose(psi(eta, 3, 1, t), bump(name, 3, t) / (8 * np.pi**2), atol=1e-15)


@pytest.mark.parametrize("d", [*DIMENSIONS, 16, 17])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_cauchy_is_the_real_or_imaginary_part_of_a_power(d, k):
    t, m = np.linspace(-30, 30, 121), d - 1 + k
    power = {0: np.real, 1: np.imag, 2: lambda z: -np.real(z)}[k]((1 - 1j * t) ** -(m + 1.0))
    expected = constant(d) * factorial(m) / np.pi * power
    assert_allclose(psi(MOLLIFIERS["cauchy"], d, k, t), expected, atol=1e-12 * np.abs(expected).max(), rtol=0)


@pairwise(name=["logistic", "gaussian"], d=[1, 3, 5], s=[1, 2, 3])
def test_moments_vanish_up_to_the_order_of_the_paper(name, d, s):
    """``int psi_{s-1} b^k db`` is zero for ``k < d + s - 2``, and ``+-c_d (d + s - 2)!`` for ``k = d + s - 2``."""
    t, step = np.linspace(-80, 80, 16_001, retstep=True)
    values, last = psi(MOLLIFIERS[name], d, s - 1, t), d + s - 2
    moments = [np.sum(values * t**k) * step for k in range(last + 1)]
    sizes = [np.sum(np.abs(values * t**k)) * step for k in range(last + 1)]
    expected = np.zeros(last + 1)
    expected[-1] = (-1) ** ((d - 1) // 2) * constant(d) * factorial(last)
    assert np.all(np.abs(moments - expected) < 1e-10 * np.array(sizes))


# --- The table
@every
def test_the_table_is_the_exact_function_on_both_sides_and_beyond_its_reach(name, d, k):
    eta, width = MOLLIFIERS[name], 0.05
    t = np.concatenate([np.linspace(-8, 8, 20_011), [-5.0, 5.0, 4.9999999, 1e3, -1e3, 0.0, -0.0]])
    exact = width ** -(d + k) * psi(eta, d, k, t / width)
    values = Profile(eta, d, k, width)(t)
    assert_allclose(values, exact, atol=1e-8 * np.abs(exact).max(), rtol=0)
    far = np.abs(t) > 101 * width
    # There the values are computed. They are one part of a complex number, and round like the whole of it.
    sizes = width ** -(d + k) * constant(d) / np.pi * np.abs(eta.moment(d - 1 + k, t / width))
    assert np.all(np.abs(values - exact)[far] <= 1e-12 * sizes[far])


@every
def test_the_table_is_even_or_odd_keeps_shapes_and_its_argument(name, d, k):
    profile, t = Profile(MOLLIFIERS[name], d, k, 0.3), np.linspace(-60, 60, 3000).reshape(30, 100)
    before = t.copy()
    values = profile(t)
    assert values.shape == t.shape
    np.testing.assert_array_equal(t, before)
    np.testing.assert_array_equal(profile(-t), (-1) ** k * values)
    assert profile(np.empty((0, 3))).shape == (0, 3)


@pairwise(pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 0), (3, 2), (4, 1)]), width=[0.02, 0.7, 3.0], name=NAMES)
def test_a_width_stretches_the_bump_and_keeps_its_mass(name, d, k, width):
    t = width * np.array([-3.0, 0.2, 1.1, 4.0])
    values, sizes = np.transpose([fourier(name, d, k, x, width) for x in t])
    assert_allclose(Profile(MOLLIFIERS[name], d, k, width)(t), values, atol=1e-8 * sizes[0], rtol=0)


# --- Integrals of the absolute value
@every
def test_cumulated_is_the_integral_of_the_absolute_value(name, d, k):
    """The trapezoidal rule with steps of 0.002 widths errs by less than 2e-5 of the whole."""
    eta, width, reach = MOLLIFIERS[name], 0.1, 1.7
    nodes, integrals = Profile(eta, d, k, width).cumulative(reach)
    assert nodes[0] == -reach
    assert nodes[-1] == reach
    assert integrals[0] == 0
    assert np.all(np.diff(nodes) > 0)
    assert np.all(np.diff(integrals) >= 0)
    t = np.linspace(-reach, reach, 16_001)
    expected = cumulative_trapezoid(np.abs(width ** -(d + k) * psi(eta, d, k, t / width)), t, initial=0)
    assert_allclose(np.interp(t, nodes, integrals), expected, atol=2e-4 * expected[-1], rtol=0)


@pytest.mark.parametrize("reach", [1e-6, 0.3, 40.0, 1e9])
def test_cumulated_over_any_reach(reach):
    nodes, integrals = Profile(MOLLIFIERS["cauchy"], 1, 0, 0.1).cumulative(reach)
    assert nodes[[0, -1]].tolist() == [-reach, reach]
    assert integrals[-1] == pytest.approx(np.arctan(reach / 0.1) / np.pi, rel=1e-4)


# --- Mollifiers
@pytest.mark.parametrize(("d", "s"), [(1, 1), (1, 2), (3, 1), (8, 2)])
def test_only_the_cauchy_bump_is_wider_than_the_neurons(d, s):
    stretches = {name: eta.stretch(d, s) for name, eta in MOLLIFIERS.items()}
    assert stretches == {"logistic": 1.0, "gaussian": 1.0, "cauchy": pytest.approx(np.sqrt(d + s - 1))}


class Twice(Mollifier):
    """The normal density, with its integral doubled."""

    def moment(self, m, t):
        return 2 * MOLLIFIERS["gaussian"].moment(m, t)


class Own(Mollifier):
    """The logistic density, known by its moments only."""

    def moment(self, m, t):
        return MOLLIFIERS["logistic"].moment(m, t)


DISTRIBUTIONS = [
    (MOLLIFIERS["logistic"], stats.logistic),
    (MOLLIFIERS["gaussian"], stats.norm),
    (MOLLIFIERS["cauchy"], stats.cauchy),
    (Own(), stats.logistic),
]


@pytest.mark.parametrize(
    ("mollifier", "distribution"), DISTRIBUTIONS, ids=[type(mollifier).__name__ for mollifier, _ in DISTRIBUTIONS]
)
def test_mollifiers_are_probability_densities_that_can_be_sampled(mollifier, distribution):
    t = np.concatenate([np.linspace(-12, 12, 101), [-30.0, 30.0]]).reshape(1, -1)
    # from moments up to rounding errors of 1e-16, relative to a density of at least 1e-13
    np.testing.assert_allclose(
        mollifier.log_density(t), distribution.logpdf(t), atol=1e-3 if isinstance(mollifier, Own) else 1e-9
    )
    samples = mollifier.sample(20_000, np.random.default_rng(1))
    assert stats.kstest(samples, distribution.cdf).pvalue > LEVEL
    assert mollifier.sample(0, np.random.default_rng(1)).shape == (0,)


@pytest.mark.parametrize("m", range(10))
def test_moments_of_the_normal_density_far_from_zero(m):
    """Kummer functions up to arguments that SciPy computes fast, and one term of the series beyond."""
    t = np.array([-300.0, -51.0, 51.0, 80.0, 300.0])
    even = 2 ** ((m - 1) / 2) * gamma((m + 1) / 2) * hyp1f1((m + 1) / 2, 0.5, -(t**2) / 2)
    odd = 2 ** (m / 2) * gamma(m / 2 + 1) * t * hyp1f1(m / 2 + 1, 1.5, -(t**2) / 2)
    assert_allclose(MOLLIFIERS["gaussian"].moment(m, t), even + 1j * odd, rtol=1e-9)
    far = np.array([-1e12, 1e9])
    assert_allclose(MOLLIFIERS["gaussian"].moment(m, far), factorial(m) * (1j / far) ** (m + 1), rtol=1e-12)


@pytest.mark.parametrize(("width", "d", "smallest"), [(1e-13, 2, "1e-12"), (1e-10, 40, "1e-05"), (0.0, 2, "1e-12")])
def test_a_width_that_cannot_be_computed_with(width, d, smallest):
    with pytest.raises(ValueError, match=f"`width` must be at least {smallest} in {d} dimensions, got {width:.3g}"):
        Profile(MOLLIFIERS["logistic"], d, 0, width)


def test_a_mollifier_of_ones_own_needs_its_moments_only():
    own, t = Twice(), np.linspace(-3, 3, 31)
    assert own.stretch(3, 2) == 1
    expected = 2 * Profile(MOLLIFIERS["gaussian"], 2, 1, 0.5)(t)
    assert_allclose(Profile(own, 2, 1, 0.5)(t), expected, atol=1e-14)
