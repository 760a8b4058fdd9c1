"""Activations against quadrature, differences, and decimal arithmetic that keeps hundreds of digits."""

import math
import pickle
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from sklearn import clone

from cases import ACTIVATIONS, SMOOTH_ACTIVATIONS
from nurf.activations import Erf, Heaviside, ReLU, ReLUPower, Sigmoid, Softplus

T = np.concatenate([-np.linspace(0.1, 2, 12), np.linspace(0.1, 2, 12)])  # away from the kink at zero

every = pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
every_smooth = pytest.mark.parametrize("activation", SMOOTH_ACTIVATIONS, ids=repr)
every_derivative = pytest.mark.parametrize(
    ("activation", "k"), [(a, k) for a in ACTIVATIONS for k in range(a.n_derivatives + 1)], ids=repr
)


def assert_rounding(actual, expected, activation, k):
    """Assert that two ways of computing a derivative agree up to rounding.

    The arguments are the same, and all terms of ``unit`` are below 10 (``sigma^(2)`` has ``u^2`` times a density, ramps
    have ``u``). A dozen operations of relative error 1e-15 each err by less than 1.2e-13.
    """
    size = np.max(activation.amplitude(k))
    assert_allclose(actual, expected, rtol=1.2e-13, atol=1.2e-13 * size)


def spline(t, s):
    """The ridge spline max(0, t)^(s-1) / (s-1)! and, for s <= 0, its derivatives away from zero."""
    return np.where(t > 0, t ** (s - 1.0) / math.factorial(s - 1), 0.0) if s > 0 else np.zeros_like(t)


def logistic(u):
    return 0.25 / math.cosh(u / 2) ** 2


def gaussian(u):
    return math.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)


MOLLIFIERS = {Sigmoid: logistic, Softplus: logistic, Erf: gaussian}


def sigmoid_digits(u, k):
    s = 1 / (1 + (-u).exp())
    polynomials = (1, 1 - 2 * s, 1 - 6 * s + 6 * s**2, (1 - 2 * s) * (1 - 12 * s + 12 * s**2))
    return s * (1 - s) * polynomials[k - 1] if k else s


def softplus_digits(u, k):
    return sigmoid_digits(u, k - 1) if k else (1 + u.exp()).ln()


def erf_digits(u, k):
    if k == 0:
        return math.erfc(-float(u) / math.sqrt(2)) / 2
    return (-u * u / 2).exp() / Decimal(2 * math.pi).sqrt() * (1, -u, u * u - 1, 3 * u - u**3)[k - 1]


DIGITS = {Sigmoid: sigmoid_digits, Softplus: softplus_digits, Erf: erf_digits}


@every
def test_derivatives_are_those_of_one_another(activation):
    h = 0.02  # four steps stay on one side of the kink
    for k in range(1, activation.n_derivatives + 1):
        weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}  # order 8
        below = lambda t, k=k: activation.derivative(t, k - 1)  # noqa: E731
        expected = sum(w * (below(T + j * h) - below(T - j * h)) for j, w in weights.items()) / h
        assert_allclose(activation.derivative(T, k), expected, rtol=1e-8, atol=1e-8)


@every
def test_the_defaults_are_value_and_slope(activation):
    assert_array_equal(activation(T), activation.derivative(T, 0))
    if activation.n_derivatives:
        assert_array_equal(activation.derivative(T), activation.derivative(T, 1))


@pytest.mark.parametrize("power", range(5))
def test_sharp_activations_are_splines(power):
    for k in range(power + 1):
        assert_allclose(ReLUPower(power).derivative(T, k), spline(T, power + 1 - k), rtol=1e-14)
        assert ReLUPower(power).derivative([0.0], k) == [0.0]
    assert_array_equal(Heaviside()(T), ReLUPower(0)(T))
    assert_array_equal(ReLU()(T), ReLUPower(1)(T))


@every_smooth
def test_smooth_activations_are_convolutions(activation):
    width, eta = activation.width, MOLLIFIERS[type(activation)]
    for t in (-1.0, -0.2, 0.0, 0.1, 0.7, 2.0):
        integrand = lambda u, t=t: spline(np.float64(t - width * u), activation.order) * eta(u)  # noqa: E731
        pieces = [-60.0, *(u for u in (-8.0, 0.0, 8.0) if u < t / width), t / width]
        expected = sum(quad(integrand, a, b, epsabs=1e-14)[0] for a, b in pairwise(pieces))
        assert_allclose(activation([t]), expected, rtol=1e-9, atol=1e-12)


@every_derivative
@pytest.mark.parametrize("factor", [1e-4, 0.5, 3.0, 1e4])
def test_scaling_of_argument_and_width(activation, k, factor):
    scaled = activation.rescale(factor).derivative(factor * T, k)
    assert_allclose(scaled, factor ** (activation.order - 1.0 - k) * activation.derivative(T, k), rtol=1e-11)


@pytest.mark.parametrize("activation", [a for a in ACTIVATIONS if a.order <= 2], ids=repr)
def test_two_neurons_make_a_polynomial(activation):
    s = activation.order
    total = activation(T) + (-1) ** (s - 1) * activation(-T)
    assert_allclose(total, T ** (s - 1) / math.factorial(s - 1), rtol=1e-14, atol=1e-15)


@every_smooth
def test_narrow_widths_tend_to_the_spline(activation):
    narrow = type(activation)(1e-3)
    for k in range(activation.n_derivatives + 1):
        assert_allclose(narrow.derivative(T, k), spline(T, activation.order - k), atol=1e-15)


@every_smooth
@pytest.mark.parametrize("u", [0.0, 0.1, 1.0, 5.0, 30.0, 40.0, 700.0])
def test_tails_keep_their_digits(activation, u):
    with localcontext(prec=700):
        for v in (-u, u):
            for k in range(activation.n_derivatives + 1):
                unit = float(DIGITS[type(activation)](Decimal(v), k))
                expected = unit * activation.width ** (activation.order - 1 - k)
                assert_allclose(activation.derivative([v * activation.width], k), expected, rtol=1e-12)


def test_the_sigmoid_far_out():
    sigmoid = Sigmoid(0.3)
    assert_allclose(sigmoid.derivative([12.0]), math.exp(-40) / (1 + math.exp(-40)) ** 2 / 0.3, rtol=1e-12)
    assert sigmoid([-700 * 0.3]) > 0
    assert Softplus(0.3)([-700 * 0.3]) > 0


@every_derivative
def test_far_out_and_at_zero_all_is_finite(activation, k):
    far = np.array([0.0, 5e-324, 1e-300, 1e-8, 1.0, 40.0, 750.0, 1e4, 1e6]) * (np.max(activation.width) or 1.0)
    for t in (far, -far):
        values = activation.derivative(t, k)
        assert np.all(np.isfinite(values))
    limit = np.maximum(far, 0.0)[-1] ** (activation.order - 1.0 - k) / math.factorial(max(activation.order - 1 - k, 0))
    assert_allclose(activation.derivative(far[-1:], k), limit if k < activation.order else 0.0, rtol=1e-12)
    assert_array_equal(activation.derivative(-far[-1:], k), 0.0)


@every_smooth
def test_squares_that_overflow_do_no_harm(activation):
    for k in range(activation.n_derivatives + 1):
        far = activation.derivative([-1e200, 1e200], k)
        assert_allclose(far, spline(np.array([-1e200, 1e200]), activation.order - k), rtol=1e-13)


@every_smooth
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3)])
def test_one_width_for_each_neuron(activation, shape):
    widths = np.array([0.1, 0.5, 2.0])
    t = np.random.default_rng(0).normal(size=shape)
    together = type(activation)(widths)
    for k in range(activation.n_derivatives + 1):
        result = together.derivative(t, k)
        assert result.shape == shape
        for n, width in enumerate(widths):
            alone = type(activation)(float(width))
            assert_rounding(result[..., [n]], alone.derivative(t[..., [n]], k), alone, k)
    assert_array_equal(together.rescale(np.array([1.0, 2.0, 3.0])).width, [0.1, 1.0, 6.0])


@every
def test_arguments_of_any_kind_are_left_alone(activation):
    for unit in {activation, activation.rescale(1 / 0.3)}:  # of width 1: no division that would make a copy
        for k in range(unit.n_derivatives + 1):
            t = T.copy()
            expected = unit.derivative(t, k)
            assert_array_equal(t, T)
            assert_array_equal(unit.derivative(list(T), k), expected)
            assert unit.derivative(np.arange(-2, 3), k).dtype == np.float64
            assert unit.derivative(np.empty((0, 1)), k).shape == (0, 1)


@every_derivative
def test_a_number_is_an_argument(activation, k):
    for t in (0.5, np.float64(0.5), np.array(0.5)):
        assert_rounding(activation.derivative(t, k), activation.derivative([0.5], k)[0], activation, k)


@pytest.mark.parametrize("activation", [*ACTIVATIONS, Sigmoid([0.1, 0.2]), Erf(np.array([0.1]))], ids=repr)
def test_specs_compare_copy_and_print(activation):
    twins = [
        pickle.loads(pickle.dumps(activation)),
        clone(activation, safe=False),
        eval(repr(activation), {**globals(), "array": np.array}),
    ]
    for twin in twins:
        assert twin == activation
        assert hash(twin) == hash(activation)
        assert repr(twin) == repr(activation)
        t = np.ones((3, np.size(activation.width)))
        assert_array_equal(twin(t), activation(t))


def test_different_specs_differ():
    specs = [*ACTIVATIONS, Sigmoid(0.1), Sigmoid([0.1]), Sigmoid([0.1, 0.2]), Sigmoid([0.1, 0.3]), Softplus(0.1)]
    assert len(set(specs)) == len(specs)
    assert Sigmoid(0.1) != 0.1
    assert Sigmoid([0.1, 0.2]) == Sigmoid(np.array([0.1, 0.2]))


def test_specs_are_frozen():
    for spec, name in ((Sigmoid(0.1), "width"), (ReLUPower(2), "power")):
        with pytest.raises(AttributeError):
            setattr(spec, name, 1)


@every_smooth
@pytest.mark.parametrize("width", [0, -0.1, math.nan, math.inf, [0.1, -1.0], [[0.1]], None])
def test_a_bad_width_is_refused(activation, width):
    with pytest.raises(ValueError, match="`width` must be a number > 0, or one for each neuron, got") as error:
        type(activation)(width)
    assert repr(width) in str(error.value)


@pytest.mark.parametrize("power", [-1, 1.5, math.nan, math.inf])
def test_a_bad_power_is_refused(power):
    with pytest.raises(ValueError, match=f"`power` must be a whole number >= 0, got {power}"):
        ReLUPower(power)


def test_a_whole_power_may_come_as_a_float():
    assert_array_equal(ReLUPower(3.0)(T), ReLUPower(3)(T))


@every
def test_a_derivative_that_does_not_exist_is_refused(activation):
    for k in (-1, activation.n_derivatives + 1):
        with pytest.raises(ValueError, match=f"up to {activation.n_derivatives}, derivative {k} .* smoother") as error:
            activation.derivative(T, k)
        assert repr(activation) in str(error.value)
