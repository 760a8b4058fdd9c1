"""The exact representation: its integral gives the smoothed function back, its coefficients are the paper's."""

import itertools
import math
import re
import tracemalloc
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.special import j0

from nurf import RandomFeatureRegressor, problems
from nurf.activations import ReLUPower
from nurf.densities import Representation, Uniform
from nurf.densities._profiles import MOLLIFIERS, Profile
from nurf.densities._samplers import Metropolis, Rejection
from nurf.jets import Jet
from nurf.networks import Ball, Box, Hyperplanes
from pairwise import pairwise
from quadrature import LEVEL, TRANSFORMS, along, exact_density, product, rng_of, scattered, sphere

KINDS = ("values", "gradients", "hessians")
FORMULAS = [(s, data) for s in (1, 2, 3) for data in KINDS[: s + 1]]
every_formula = pytest.mark.parametrize(("s", "data"), FORMULAS)
every_mollifier = pytest.mark.parametrize("mollifier", list(TRANSFORMS))
FAR = Ball(50.0)

# --- A function that vanishes, numerically, outside a box: two bumps, neither at the origin
SIGMA, WIDTH = 0.2, 0.25
SIZES, CENTERS = (1.0, -0.5), np.array([[0.15, -0.1, 0.05, 0.0], [-0.1, 0.1, 0.1, -0.05]])
HALF = 1.25
COARSE, FINE = {1: 45, 2: 27, 3: 16}, {1: 81, 2: 41, 3: 27, 4: 19}  # points of the grid along each axis


def bumps(X):
    """Values, gradients and Hessians."""
    d, y, gradients, hessians = X.shape[1], 0.0, 0.0, 0.0
    for size, center in zip(SIZES, CENTERS[:, :d], strict=True):
        slope = -(X - center) / SIGMA**2
        value = size * np.exp(-np.sum((X - center) ** 2, axis=1) / (2 * SIGMA**2))
        y = y + value
        gradients = gradients + slope * value[:, None]
        bend = slope[:, :, None] * slope[:, None, :] - np.eye(d) / SIGMA**2
        hessians = hessians + bend * value[:, None, None]
    return Jet(X, y, gradients, hessians)


def mesh(axis, d):
    return np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)


@lru_cache(maxsize=4)
def on_a_grid(d, n):
    """The function on an equispaced grid, and the density of the grid's points: one over (number times cell)."""
    axis, step = np.linspace(-HALF, HALF, n, retstep=True)
    jet = bumps(mesh(axis, d))
    return jet, lambda X: np.full(len(X), 1 / (len(jet) * step**d))


def density_of(d, s, data, mollifier="logistic", nodes=FINE):
    jet, rho = on_a_grid(d, nodes[d])
    return Representation(s, WIDTH, mollifier, data, rho).prepare(jet, FAR)


def spread(d, s, mollifier):
    """The width of the bump ``eta_delta``."""
    return WIDTH * (np.sqrt(d + s - 1) if mollifier == "cauchy" else 1)


def smoothed(d, mollifier, width, X):
    """``eta_delta * f``, by a radial Fourier integral for each bump: its transform is that of the bump times ``h``."""
    waves = {
        1: lambda xi, r: np.cos(xi * r) / np.pi,
        2: lambda xi, r: j0(xi * r) * xi / (2 * np.pi),
        3: lambda xi, r: np.sinc(xi * r / np.pi) * xi**2 / (2 * np.pi**2),
    }

    def integrand(xi, r):
        bump = (2 * np.pi * SIGMA**2) ** (d / 2) * np.exp(-((SIGMA * xi) ** 2) / 2)
        return bump * TRANSFORMS[mollifier](width * xi) * waves[d](xi, r)

    def bump(r):
        return quad(integrand, 0, 9 / SIGMA, args=(r,), limit=200)[0]

    distances = np.linalg.norm(X[:, None] - CENTERS[:, :d], axis=2)
    return np.vectorize(bump)(distances) @ SIZES


def integrated(coefficients, s, normals, areas, offsets, X):
    """``int sigma_s(a.x + b) c(a, b) da db`` at the points, up to a polynomial of degree s - 1.

    Offsets below ``-|x|`` contribute nothing, and those above ``|x|`` a polynomial: no tail of ``c`` is cut off. On
    the offsets between, ``c`` is a spline and its integrals against powers of ramps are exact, by parts.
    """
    total, end = np.zeros(len(X)), offsets[-1]
    for a, area, c in zip(normals, areas, coefficients, strict=True):
        u, primitive, inner = X @ a, CubicSpline(offsets, c), 0.0
        for k in range(s):  # (-1)^k sigma_{s-k}(u + b) times the primitive of order k + 1
            primitive, power = primitive.antiderivative(), s - 1 - k
            inner += (-1) ** k * (u + end) ** power / math.factorial(power) * primitive(end)
        total += area * (inner - (-1) ** (s - 1) * primitive(-u))
    return total


@lru_cache
def smoothed_at_points(d, mollifier, width):
    """Points in a ball, and the smoothed function there."""
    rng, radius = rng_of(3), 0.7
    X = rng.standard_normal((25, d))
    X *= radius * rng.random((25, 1)) ** (1 / d) / np.linalg.norm(X, axis=1, keepdims=True)
    return X, smoothed(d, mollifier, width, X)


@lru_cache
def nodes_of(d):
    """Normals, their areas, and offsets."""
    return *sphere(d, {1: 2, 2: 23, 3: 13}[d], 12), np.linspace(-0.8, 0.8, {1: 121}.get(d, 45))


def coefficients_of(prepared, d):
    normals, _, offsets = nodes_of(d)
    return prepared.coefficients(product(normals, offsets)).reshape(len(normals), -1)


def error_of_representation(coefficients, d, s, mollifier):
    """The largest error of the integral against the smoothed function, less a polynomial, over its range."""
    X, expected = smoothed_at_points(d, mollifier, spread(d, s, mollifier))
    values = integrated(coefficients, s, *nodes_of(d), X)
    squares = X[:, :, None] * X[:, None, :]
    polynomials = np.column_stack([np.ones(len(X)), X, squares.reshape(len(X), -1)][:s])
    error = values - expected
    error -= polynomials @ np.linalg.lstsq(polynomials, error, rcond=None)[0]
    return np.abs(error).max() / np.ptp(expected)


@pytest.mark.parametrize(
    ("d", "s", "data", "mollifier"),
    [(d, *formula, mollifier) for d in (1, 2) for formula in FORMULAS for mollifier in TRANSFORMS]
    + [(3, *formula, "logistic") for formula in FORMULAS]
    + [(3, 1, "gradients", mollifier) for mollifier in TRANSFORMS if mollifier != "logistic"],
)
def test_the_integral_over_all_hyperplanes_is_the_smoothed_function(d, s, data, mollifier):
    coefficients = coefficients_of(density_of(d, s, data, mollifier, COARSE), d)
    error = error_of_representation(coefficients, d, s, mollifier)
    assert error < {1: 1e-6, 2: 3e-6, 3: 5e-5}[d]


@pytest.mark.parametrize(
    ("d", "s", "data"), [(d, *formula) for d in (1, 2) for formula in FORMULAS] + [(3, 1, "gradients")]
)
def test_that_integral_shows_every_mistake(d, s, data):
    prepared = density_of(d, s, data, nodes=COARSE)
    right = coefficients_of(prepared, d)
    errors = [error_of_representation(x * right, d, s, "logistic") for x in (1.001, -1, 2, 1 / (2 * np.pi))]
    wrong = [{"k": prepared.profile.k + 1}, {"dimension": d + 1}, {"width": 1.05 * WIDTH}]
    wrong = [replace(prepared, profile=replace(prepared.profile, **change)) for change in wrong]
    wrong += [replace(prepared, power=prepared.power + 2)] if d > 1 else []
    errors += [error_of_representation(coefficients_of(change, d), d, s, "logistic") for change in wrong if d < 3]
    assert min(errors) > 1e-4  # a factor of 1.001, less a polynomial of degree s - 1


# --- Coefficients
@lru_cache
def fourier_integral(d, s, mollifier):
    """Hyperplanes and ``c_d / pi int xi^(d-1+s) f^(xi) h(delta xi) cos(xi t - s pi / 2) dxi``, ``t = a.x_0 + b``."""
    rng, width = rng_of(d), spread(d, s, mollifier)
    planes = Hyperplanes.through(rng.uniform(-0.7, 0.7, (12, d)), rng.standard_normal((12, d)))
    constant = (2 * np.pi * SIGMA**2) ** (d / 2) / (2 * (2 * np.pi) ** (d - 1) * np.pi)

    def integrand(xi, t):
        amplitude = xi ** (d - 1 + s) * np.exp(-((SIGMA * xi) ** 2) / 2) * TRANSFORMS[mollifier](width * xi)
        return constant * amplitude * np.cos(xi * t - s * np.pi / 2)

    distances = planes.signed_distance(CENTERS[:, :d])
    parts = np.vectorize(lambda t: quad(integrand, 0, 9 / SIGMA, args=(t,), limit=200)[0])(distances)
    return planes, np.array(SIZES) @ parts


@pairwise(every_formula, every_mollifier, d=[1, 2, 3, 4])
def test_coefficients_are_the_fourier_integral_of_the_bumps(d, s, data, mollifier):
    planes, expected = fourier_integral(d, s, mollifier)
    coefficients = density_of(d, s, data, mollifier).coefficients(planes)
    assert coefficients.shape == (12, 1)
    assert_allclose(coefficients[:, 0], expected, atol=1e-4 * np.abs(expected).max(), rtol=0)


@pairwise(every_mollifier, d=[1, 2, 3], s=[1, 2, 3, 4])
def test_values_gradients_and_hessians_give_the_same_coefficients(d, s, mollifier):
    planes = Uniform().prepare(scattered(d)).sample(60, rng_of(1))
    values, *others = (density_of(d, s, data, mollifier).coefficients(planes) for data in KINDS[: s + 1])
    for other in others:
        assert_allclose(other, values, atol=1e-4 * np.abs(values).max(), rtol=0)


@pairwise(every_formula, every_mollifier, d=[1, 2, 3, 8])
def test_coefficients_are_odd_for_steps_and_even_for_ramps(d, s, data, mollifier):
    prepared = Representation(s, 0.3, mollifier, data).prepare(scattered(d))
    planes = Uniform().prepare(scattered(d)).sample(40, rng_of(1))
    turned = Hyperplanes(-planes.normals, -planes.offsets)
    assert_allclose(prepared.coefficients(turned), (-1) ** s * prepared.coefficients(planes), rtol=1e-9, atol=1e-12)


@pairwise(every_formula, d=[1, 2, 3, 8], outputs=[(), (1,), (3,)])
def test_coefficients_and_bounds_are_the_papers_sums(d, s, data, outputs):
    jet, power = scattered(d, outputs, K=11), KINDS.index(data)
    rho = rng_of(4).uniform(0.5, 2, 11)
    prepared = Representation(s, 0.3, "cauchy", data, lambda X: rho).prepare(jet, Ball(0.7))
    planes = Uniform().prepare(jet).sample(300, rng_of(2))
    expected = exact_density(jet, planes, s, power, 0.3, "cauchy", rho)
    bounds = exact_density(jet, planes, s, power, 0.3, "cauchy", rho, size=np.abs).sum(axis=1)
    top = bounds.max()
    assert_allclose(prepared.coefficients(planes), expected, rtol=0, atol=1e-8 * top)

    lengths, inside = np.sqrt(np.sum(expected**2, axis=1)), np.abs(planes.offsets) <= 0.7
    sizes, limits = prepared.ratios(planes)
    unit = top / limits.max()  # both are up to one constant
    assert_allclose(sizes * unit, np.where(inside, lengths, 0.0), rtol=0, atol=1e-8 * top)
    assert_allclose(limits * unit, bounds, rtol=0, atol=1e-8 * top)
    assert np.all(sizes <= limits * (1 + 1e-12))
    assert_allclose(np.exp(prepared.log_density(planes)), np.where(inside, lengths, 0.0), rtol=0, atol=1e-8 * top)
    assert_array_equal(np.isneginf(prepared.log_density(planes)), ~inside)


@every_formula
def test_many_points_and_hyperplanes_go_in_blocks(s, data):
    jet = scattered(2, (2,), K=7000)
    planes = Uniform().prepare(jet).sample(101, rng_of(2))
    prepared = Representation(s, 0.3, data=data, rho=lambda X: np.ones(len(X))).prepare(jet)
    expected = exact_density(jet, planes, s, KINDS.index(data), 0.3)
    assert_allclose(prepared.coefficients(planes), expected, rtol=0, atol=1e-7 * np.abs(expected).max())
    assert prepared.coefficients(planes[:0]).shape == (0, 2)


def test_only_hyperplanes_that_meet_the_domain_count():
    jet, box = scattered(2), Box([0.2, -0.1], [0.5, 0.9])
    corners = np.array(list(itertools.product((0.2, 0.5), (-0.1, 0.9))))
    planes = Uniform().prepare(jet).sample(500, rng_of(1))
    prepared = Representation(1, 0.3).prepare(jet, box)
    distances = planes.signed_distance(corners)
    meets = np.any(distances >= 0, axis=0) & np.any(distances <= 0, axis=0)
    assert 50 < meets.sum() < 450
    assert_array_equal(np.isfinite(prepared.log_density(planes)), meets)


@pytest.mark.parametrize("d", [1, 2, 3])
@every_formula
def test_log_constant_is_the_integral_over_the_domain(d, s, data):
    jet, power = scattered(d, K=5), KINDS.index(data)
    prepared = Representation(s, 0.4, "gaussian", data, lambda X: np.ones(len(X))).prepare(jet, Ball(1.1))
    (a, areas), (x, w) = sphere(d, 61, 30), np.polynomial.legendre.leggauss(60)
    planes = product(a, 1.1 * x)
    sizes = np.abs(exact_density(jet, planes, s, power, 0.4, "gaussian")[:, 0])
    expected = areas @ sizes.reshape(len(a), -1) @ w * 1.1
    assert np.exp(prepared.log_constant(nodes={3: 50}.get(d, 200))) == pytest.approx(expected, rel=5e-3)


# --- Where the data come from
def weighted(t):
    """Map equispaced ``t`` in (0, 1) to points in (-HALF, HALF) of density ``(1 + 0.8 x / HALF) / (2 HALF)``."""
    slope = 0.8
    return HALF * (np.sqrt((1 - slope) ** 2 + 4 * slope * t) - 1) / slope


@pytest.mark.parametrize(("d", "n"), [(1, 300), (2, 50)])
@every_formula
def test_points_of_any_density_give_the_same_coefficients_where_it_is_known(d, n, s, data):
    X = mesh(weighted((np.arange(n) + 0.5) / n), d)
    planes = Uniform().prepare(scattered(d)).sample(100, rng_of(1))
    expected = density_of(d, s, data).coefficients(planes)

    def error(rho):
        prepared = Representation(s, WIDTH, data=data, rho=rho).prepare(bumps(X), FAR)
        return np.abs(prepared.coefficients(planes) - expected).max() / np.abs(expected).max()

    assert error(lambda X: np.prod((1 + 0.8 * X / HALF) / (2 * HALF), axis=1)) < 2e-3
    assert error("knn") < 0.4 * error("uniform")


def test_uniform_points_fill_the_box_around_them():
    jet, planes = scattered(3), Uniform().prepare(scattered(3)).sample(20, rng_of(1))
    sides = jet.X.max(axis=0) - jet.X.min(axis=0)
    uniform = Representation(1, 0.3).prepare(jet).coefficients(planes)
    assert_allclose(uniform, exact_density(jet, planes, 1, 1, 0.3, rho=1 / np.prod(sides)), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("rho", ["uniform", "knn"])
@pytest.mark.parametrize("rows", [[0], [0, 0, 0], [0, 1], [0, 0, 1, 1, 1, 1, 1, 1]])
def test_few_and_repeated_points_make_a_density(rho, rows):
    prepared = Representation(1, 0.3, rho=rho).prepare(scattered(2)[rows])
    planes = prepared.sample(20, rng_of(1))
    assert np.all(np.isfinite(prepared.log_density(planes)))


def test_points_on_a_line_make_a_density():
    jet = scattered(2)
    flat = replace(jet, X=jet.X * [1, 0])
    assert len(Representation(1, 0.3).prepare(flat).sample(20, rng_of(1))) == 20


# --- What the data may look like
@pytest.mark.parametrize("unit", [1.0, 1e-50, 1e50])
@every_formula
def test_a_weight_is_a_number_of_repetitions_in_any_unit(s, data, unit):
    jet = replace(scattered(2, (2,)), sample_weight=None)
    repetitions = np.array([2, 0, 1, 3, 0, 1, 1, 1, 4])
    repeated = jet[np.repeat(np.arange(9), repetitions)]
    for array in (jet.y, jet.gradients, jet.hessians):
        array[1], array[4] = 1e300, np.nan if array is not jet.y else 1e300  # rows of weight zero do not count
    jet.X[4] = 1e9
    planes = Uniform().prepare(repeated).sample(50, rng_of(1))
    expected, prepared = (
        Representation(s, 0.3, data=data).prepare(part)
        for part in (repeated, replace(jet, sample_weight=repetitions * unit))
    )
    assert_allclose(prepared.coefficients(planes), expected.coefficients(planes), rtol=1e-9, atol=1e-12)


def test_derivatives_of_weight_zero_do_not_count():
    jet = replace(scattered(2, ()), sample_weight=None)
    weights = np.array([1.0, 0, 1, 1, 0, 1, 1, 1, 1])
    planes = Uniform().prepare(jet).sample(50, rng_of(1))
    one, two = (
        Representation(1, 0.3, rho=lambda X: np.ones(len(X))).prepare(part).coefficients(planes)
        for part in (replace(jet, derivative_weight=weights), jet[weights > 0])
    )
    assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def test_weights_count_in_the_estimated_density_of_the_points():
    """Repeating points makes them denser, so that the integral over the domain stays what it is."""
    x = np.linspace(-HALF, HALF, 401)[:, None]
    repetitions = np.where(x[:, 0] > 0.1, 5, 1)
    jet, planes = bumps(x), product(np.array([[1.0], [-1.0]]), np.linspace(-1, 1, 41))
    plain, repeated, heavy = (
        Representation(1, 0.1, rho="knn").prepare(data, FAR).coefficients(planes)
        for data in (jet, jet[np.repeat(np.arange(401), repetitions)], replace(jet, sample_weight=repetitions))
    )
    top = np.abs(plain).max()
    assert np.abs(repeated - plain).max() < 0.2 * top
    assert np.abs(heavy - plain).max() < 0.2 * top


@every_formula
def test_derivatives_that_are_not_known_count_as_zero(s, data):
    jet = scattered(2, (2,))
    unknown, zero = (replace(jet, gradients=jet.gradients.copy(), hessians=jet.hessians.copy()) for _ in range(2))
    for part, value in ((unknown, np.nan), (zero, 0.0)):
        part.gradients[3, 0] = part.hessians[3, 1] = value
        part.gradients[5] = part.hessians[5] = value
    unknown.gradients[3, 0, 1] = unknown.hessians[3, 1, 0] = 1.0  # half a gradient is none, nor is a row a Hessian
    planes = Uniform().prepare(jet).sample(50, rng_of(1))
    expected, coefficients = (
        Representation(s, 0.3, data=data).prepare(part).coefficients(planes) for part in (zero, unknown)
    )
    assert_array_equal(coefficients, expected)


def test_gradients_along_some_directions_count_as_zero():
    jet, directions = scattered(2), np.broadcast_to(np.eye(2), (9, 2, 2)).copy()
    directions[3, 1] = directions[5, 1] = 0.0
    along = Jet.along(jet.X, jet.y, directions, np.einsum("kd,kqd->kq", jet.gradients, directions), jet.sample_weight)
    zero = replace(jet, gradients=np.where(np.isin(np.arange(9), [3, 5])[:, None], 0.0, jet.gradients))
    planes = Uniform().prepare(jet).sample(50, rng_of(1))
    expected, coefficients = (Representation(1, 0.3).prepare(part).coefficients(planes) for part in (zero, along))
    assert_allclose(coefficients, expected, rtol=1e-9, atol=1e-12)


@every_formula
def test_several_outputs_are_sampled_by_the_length_of_their_coefficients(s, data):
    jet = scattered(2, (3,))
    planes = Uniform().prepare(jet).sample(50, rng_of(1))
    prepared = Representation(s, 0.3, data=data).prepare(jet)
    single = [
        Representation(s, 0.3, data=data).prepare(
            Jet(jet.X, jet.y[:, i], jet.gradients[:, i], jet.hessians[:, i], jet.sample_weight)
        )
        for i in range(3)
    ]
    parts = np.column_stack([part.coefficients(planes)[:, 0] for part in single])
    assert_allclose(prepared.coefficients(planes), parts, rtol=1e-9, atol=1e-12)
    assert_allclose(prepared.log_density(planes), np.log(np.linalg.norm(parts, axis=1)), rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
@every_formula
def test_the_scale_of_the_function_is_a_constant(s, data, factor):
    jet = scattered(2)
    scaled = replace(jet, y=factor * jet.y, gradients=factor * jet.gradients, hessians=factor * jet.hessians)
    plain, other = (Representation(s, 0.3, data=data).prepare(part) for part in (jet, scaled))
    planes, again = (prepared.sample(50, rng_of(1)) for prepared in (plain, other))
    assert_allclose(other.log_density(planes) - plain.log_density(planes), np.log(factor), rtol=1e-9)
    assert_allclose(again.offsets, planes.offsets, rtol=1e-9)


# --- Choices
def test_each_order_has_its_formula_and_its_needs():
    needs = {(s, data): Representation(s, data=data).needs for s, data in FORMULAS}
    assert needs == {(s, data): {data} - {"values"} for s, data in FORMULAS}
    assert Representation().needs == {"gradients"}
    assert Representation(2).needs == Representation(3).needs == {"hessians"}


def test_the_width_of_the_neurons_is_taken_unless_there_is_one():
    assert Representation(2).at_width(0.1) == Representation(2, width=0.1)
    assert Representation(width=0.3).at_width(0.1) == Representation(width=0.3)
    with pytest.raises(ValueError, match="`width` must be a number > 0, got None: the width of the neurons is unknown"):
        Representation().prepare(scattered(2))


def test_objects_are_as_good_as_names():
    jet = scattered(2)
    names = Representation(1, 0.3, "gaussian", sampler="metropolis").prepare(jet)
    objects = Representation(1, 0.3, MOLLIFIERS["gaussian"], sampler=Metropolis()).prepare(jet)
    assert names.profile == objects.profile == Profile(MOLLIFIERS["gaussian"], 2, 0, 0.3)
    assert names.sampler == objects.sampler
    assert Representation(1, 0.3).prepare(jet).sampler == Rejection()
    first, second = (prepared.sample(7, rng_of(1)) for prepared in (names, objects))
    assert_array_equal(first.offsets, second.offsets)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"order": 0}, "`order` must be a whole number >= 1, got 0"),
        ({"order": 1.5}, "`order` must be a whole number >= 1, got 1.5"),
        ({"width": 0}, "`width` must be a number > 0, got 0"),
        ({"width": -1.0}, "`width` must be a number > 0, got -1.0"),
        ({"width": np.nan}, "`width` must be a number > 0, got nan"),
        ({"width": np.inf}, "`width` must be a number > 0, got inf"),
        ({"mollifier": "box"}, "`mollifier` must be one of logistic, gaussian, cauchy, or an object, got 'box'"),
        ({"sampler": "gibbs"}, "`sampler` must be one of rejection, metropolis, or an object, got 'gibbs'"),
        ({"rho": "kde"}, "`rho` must be 'uniform', 'knn' or a function, got 'kde'"),
        ({"rho": 3.0}, "`rho` must be 'uniform', 'knn' or a function, got 3.0"),
        ({"data": "hessians"}, "`data` must be one of values, gradients for order 1, got 'hessians'"),
        ({"order": 2, "data": "x"}, "`data` must be one of values, gradients, hessians for order 2, got 'x'"),
    ],
    ids=str,
)
def test_wrong_parameters_are_named_with_what_came(parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Representation(**parameters)


@pytest.mark.parametrize(
    ("rho", "came"),
    [
        (lambda X: np.ones((len(X), 1)), "shape (9, 1)"),
        (lambda X: 1.0, "shape ()"),
        (lambda X: np.zeros(len(X)), "smallest 0.0"),
        (lambda X: -np.ones(len(X)), "smallest -1.0"),
        (lambda X: np.full(len(X), np.nan), "smallest nan"),
        (lambda X: np.full(len(X), np.inf), "smallest inf"),
        (lambda X: [], "shape (0,)"),
    ],
    ids=["column", "number", "zero", "negative", "nan", "inf", "empty"],
)
def test_a_density_of_points_that_is_none(rho, came):
    with pytest.raises(ValueError, match=f"`rho` must return 9 numbers > 0, got .*{re.escape(came)}"):
        Representation(1, 0.3, rho=rho).prepare(scattered(2))


@every_formula
def test_data_that_cannot_make_a_density(s, data):
    jet, density = scattered(2), Representation(s, 0.3, data=data)
    name = "y" if data == "values" else data
    with pytest.raises(ValueError, match=f"all known {data} are zero: the density is zero everywhere; use Uniform"):
        density.prepare(replace(jet, **{name: np.zeros_like(getattr(jet, name))}))
    if data != "values":
        for nothing in (None, np.full_like(getattr(jet, name), np.nan)):
            other = (set(KINDS[1:]) - {data}).pop()
            with pytest.raises(ValueError, match=f"needs {data}, got {other}"):
                density.prepare(replace(jet, **{name: nothing}))
        with pytest.raises(ValueError, match=f"needs {data}, got no derivatives"):
            density.prepare(Jet(jet.X, jet.y))
        partial = getattr(jet, name).copy()
        partial[..., 1] = np.nan
        with pytest.raises(ValueError, match=f"needs complete {data}, got gradients, hessians"):
            density.prepare(replace(jet, **{name: partial}))
    else:
        assert len(density.prepare(Jet(jet.X, jet.y)).sample(3, rng_of(0))) == 3


# --- Widths far below the distance of the points
@pytest.mark.usefixtures("own_memory")
@pytest.mark.parametrize("width", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("s", [1, 2])
def test_a_tiny_width_needs_no_more_memory_than_another(s, width):
    """In one dimension the profile of order zero is half the mollifier: distances have its distribution."""
    data = KINDS[s]
    density = Representation(s, width / np.sqrt(s), "cauchy", data)  # the width of the mollifier is sqrt(s) times that
    jet = Jet([[0.0]], [1.0], [[1.0]], [[[1.0]]])
    tracemalloc.start()
    try:
        planes = density.prepare(jet).sample(5000, rng_of(1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6
    assert stats.kstest(planes.offsets / width, stats.cauchy.cdf).pvalue > LEVEL


@pytest.mark.parametrize("mollifier", list(MOLLIFIERS))
@pytest.mark.parametrize("d", [2, 3, 8])
def test_a_tiny_width_gives_hyperplanes_through_the_points(d, mollifier):
    """The profile falls at least as fast as ``t^-2``: of its mass, less than 1% is farther than 1000 widths."""
    jet = scattered(d)
    planes = Representation(1, 1e-9, mollifier).prepare(jet).sample(200, rng_of(1))
    near = np.abs(planes.signed_distance(jet.X)).min(axis=0) < 1e-6 * np.sqrt(d)
    assert near.sum() >= 180  # of 200 with probability 0.99 each: fewer for one seed in 10^14


def test_a_width_that_is_too_small_is_named():
    with pytest.raises(ValueError, match="`width` must be at least 1e-12 in 2 dimensions, got 1e-20"):
        Representation(1, 1e-20).prepare(scattered(2))


# --- In the regressor
def fit(data, density, activation, seed, n_neurons=50, **parameters):
    model = RandomFeatureRegressor(n_neurons, density=density, activation=activation, random_state=seed, **parameters)
    return model.fit(data.X, data.y, gradients=data.gradients, hessians=data.hessians)


@pytest.mark.parametrize("activation", ["sigmoid", "softplus"])
def test_beats_uniform_sampling_on_a_narrow_bump(activation):
    bump = problems.get("gaussian_bump")
    data, fresh = (bump.jet(np.linspace(-1, 1, n)[:, None]) for n in (1000, 777))

    def error(density):
        models = [fit(data, density, activation, seed, width=1 / 80, scaling=None) for seed in range(6)]
        errors = [np.linalg.norm(model.predict(fresh.X) - fresh.y) / np.linalg.norm(fresh.y) for model in models]
        return np.exp(np.mean(np.log(errors)))

    assert error("representation") < min(0.02, 0.4 * error("uniform"))


def assert_fits_a_wave(density, activation, expected):
    wave = problems.get("planar_wave")
    data, fresh = (wave.jet(wave.sample(400, rng_of(seed))) for seed in (0, 1))
    model = fit(data, density, activation, 0, 100, width=0.2)
    assert model.density_ == expected
    assert len(model.hyperplanes_) == 100
    assert model.score(fresh.X, fresh.y) > 0.99


activations = pytest.mark.parametrize(("activation", "order"), [("sigmoid", 1), ("softplus", 2)])


class TestInTheRegressor:
    @activations
    def test_has_a_name(self, activation, order):
        assert_fits_a_wave("representation", activation, Representation(order))

    def test_powers_of_ramps_have_their_own_order(self):
        wave = problems.get("planar_wave")
        data = wave.jet(wave.sample(60, rng_of(0)))
        assert fit(data, "representation", ReLUPower(2), 0, 20, width=None).density_ == Representation(3)
        assert fit(data, "local", ReLUPower(2), 0, 20, width=None).density_.order == 2

    @pairwise(activations, mollifier=["logistic", "cauchy"], sampler=["rejection", "metropolis"])
    def test_is_a_density(self, activation, order, mollifier, sampler):
        density = Representation(order, mollifier=mollifier, sampler=sampler)
        assert_fits_a_wave(density, activation, density)


def test_the_regressor_names_the_missing_derivatives():
    wave = problems.get("planar_wave")
    data = wave.jet(wave.sample(50, rng_of(0)))
    with pytest.raises(ValueError, match="needs hessians, got gradients"):
        fit(replace(data, hessians=None), "representation", "softplus", 0, derivatives="given")
    with pytest.raises(ValueError, match="needs gradients, got no derivatives"):
        fit(Jet(data.X, data.y), "representation", "sigmoid", 0, derivatives="given")
    assert len(fit(Jet(data.X, data.y), Representation(1, data="values"), "sigmoid", 0).hyperplanes_) == 50


def test_the_written_out_formula_is_that_of_plain_loops():
    """The oracle of this file, once more without array tricks."""
    jet, normal = scattered(2, (2,), K=3), np.array([0.6, -0.8])
    for k, o in itertools.product(range(3), range(2)):
        g, H = jet.gradients[k, o], jet.hessians[k, o]
        assert along(jet, normal[None], 0)[k, 0, o] == jet.y[k, o]
        assert along(jet, normal[None], 1)[k, 0, o] == pytest.approx(normal @ g)
        assert along(jet, normal[None], 2)[k, 0, o] == pytest.approx(normal @ H @ normal)
