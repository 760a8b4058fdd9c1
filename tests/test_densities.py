"""Densities of hyperplanes against the paper's formulas written out densely, quadrature, and direct simulation."""

import itertools
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.spatial.distance import cdist
from scipy.special import gamma

from cases import DENSITIES, Rising
from nurf.densities import ActiveSubspace, AxisAligned, Local, Nonlocal, Uniform, _neighbourhoods
from nurf.densities._neighbourhoods import KERNELS, Distances, neighbourhood_totals, neighbourhood_weights
from nurf.densities._profiles import MOLLIFIERS
from nurf.jets import Jet
from nurf.networks import Ball, Box, Hyperplanes
from pairwise import pairwise

LEVEL = 1e-5  # a right density fails one statistical test in 100 000
DERIVATIVE = [density for density in DENSITIES if density.needs]
MIXTURES = [density for density in DENSITIES if isinstance(density, Local | Nonlocal)]
rng_of = np.random.default_rng


def make_jet(d=3, rank=None, outputs=(), K=7, seed=0):
    """Random points in the ball of radius 0.3 and derivatives of uneven size in the span of ``basis[:rank]``.

    Gradients point along one axis after the other, tilted at random, and points share those of their neighbours. So no
    covariance is nearly singular, and the error of the quadrature by ``grid`` stays below 1e-5 for all seeds.
    """
    rng, r = rng_of(seed), rank or d
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0].T
    X = rng.standard_normal((K, d))
    X *= 0.3 * (rng.random((K, 1)) ** (1 / d)) / np.linalg.norm(X, axis=1, keepdims=True)
    size = rng.uniform(0.7, 1.4, K).reshape(K, *[1] * len(outputs))
    axes = np.eye(r)[np.arange(K * math.prod(outputs)).reshape(K, *outputs) % r]
    tilts = rng.standard_normal(axes.shape)
    tilts *= 0.3 / np.linalg.norm(tilts, axis=-1, keepdims=True)
    gradients = (axes + tilts) @ basis[:r] * size[..., None]
    vectors = np.linalg.qr(rng.standard_normal((K, *outputs, r, r)))[0]
    values = rng.uniform(1, 3, (K, *outputs, r)) * rng.choice([-1, 1], (K, *outputs, r))
    hessians = basis[:r].T @ (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2) @ basis[:r]
    return Jet(X, np.zeros((K, *outputs)), gradients, hessians * size[..., None, None]), basis[:r]


# --- The paper, written out
def columns(jet, order):
    """``g_k`` or ``H_k`` of all outputs side by side, of shape (K, d, m): ``g~_k = sum_k' w_kk' F_k' xi_k'``."""
    derivatives = jet.gradients if order == 1 else jet.hessians
    return np.swapaxes(derivatives.reshape(jet.n_samples, -1, jet.n_features), 1, 2)


WEIGHTS = {  # the squares of the weights in section 4.3.3, and other kernels
    "exponential": lambda t: np.exp(-t),
    "gaussian": lambda t: np.exp(-(t**2) / 2),
    "cauchy": lambda t: 1 / (1 + t**2),
}
OFFSETS = {"gaussian": stats.norm, "logistic": stats.logistic, "cauchy": stats.cauchy}


def neighbours(density, jet):
    """The matrix ``W^2`` of section 4.3 as weights of an integral, and the distribution of ``a.x_k + b``."""
    if isinstance(density, Local):
        return np.eye(len(jet)), stats.norm(scale=density.jitter)
    if isinstance(density, ActiveSubspace):
        return np.tile(volumes(density, jet), (len(jet), 1)), None
    squares = WEIGHTS[density.kernel](cdist(jet.X, jet.X) / density.bandwidth)
    return squares * volumes(density, jet), OFFSETS[density.mollifier](scale=density.bandwidth)


def volumes(density, jet):
    """``1 / rho(x_k)``, by which a sum over the points becomes an integral (eq. 4.3)."""
    return np.ones(len(jet)) if density.rho == "uniform" else 1 / density.rho(jet.X)


def covariances(density, jet):
    G = columns(jet, density.order)
    return np.einsum("kl,lim,ljm->kij", neighbours(density, jet)[0], G, G)


def angular(a, C):
    """Eq. 4.7 with the pseudo-inverse, the pseudo-determinant and the rank."""
    values = np.linalg.eigvalsh(C)
    values = values[values > 1e-10 * values[-1]]
    r, inverse = len(values), np.linalg.pinv(C, rcond=1e-10, hermitian=True)
    area = 2 * np.pi ** (r / 2) / gamma(r / 2)
    return np.sqrt(1 / np.prod(values) / np.sum(a @ inverse * a, axis=1) ** r) / area


def paper_density(density, jet, planes, domain):
    a, b = planes.normals, planes.offsets
    C = covariances(density, jet) if density.needs else [np.eye(jet.n_features)]
    if isinstance(density, Uniform | ActiveSubspace):
        if isinstance(domain, Ball):
            low, high = -domain.radius, domain.radius
        else:
            corners = np.array(list(itertools.product(*zip(domain.lower, domain.upper, strict=True))))
            low, high = (-a @ corners.T).min(axis=1), (-a @ corners.T).max(axis=1)
        return angular(a, C[0]) * ((low <= b) & (b <= high)) / (high - low)
    masses = np.sqrt(np.trace(C, axis1=1, axis2=2)) * volumes(density, jet)
    offsets = [neighbours(density, jet)[1].pdf(a @ x + b) for x in jet.X]
    return sum(m * o * angular(a, Ck) for m, o, Ck in zip(masses, offsets, C, strict=True)) / masses.sum()


def paper_samples(density, jet, n, rng):
    """Draw by the definition ``g~_k = sum_k' w_kk' F_k' xi_k'``, a K-fold sum for each hyperplane."""
    (squares, prepared), G = neighbours(density, jet), columns(jet, density.order)
    W, masses = np.sqrt(squares), np.sqrt(squares @ np.sum(G**2, axis=(1, 2))) * volumes(density, jet)
    k = rng.choice(len(jet), n, p=masses / masses.sum())
    g = np.einsum("nk,kim,nkm->ni", W[k], G, rng.standard_normal((n, len(jet), G.shape[2])), optimize=True)
    a = g / np.linalg.norm(g, axis=1, keepdims=True)
    b = rng.uniform(-1, 1, n) if prepared is None else -np.sum(a * jet.X[k], axis=1) + prepared.rvs(n, random_state=rng)
    return Hyperplanes(a, b)


def has_density(density, jet):
    if not isinstance(density, Local):
        return True
    F = columns(jet, density.order)
    ranks = np.linalg.matrix_rank(F)
    return density.jitter > 0 and np.all(ranks[ranks > 0] == np.linalg.matrix_rank(np.hstack([*F])))


# --- Statistics
def sphere(d):
    """Quadrature nodes and weights on the unit sphere, none of them on a border of the cells of ``histogram``."""
    if d == 1:
        return np.array([[-1.0], [1.0]]), np.ones(2)
    n = {2: 240, 3: 48}[d]
    angle = (np.arange(n) + 0.5) * 2 * np.pi / n
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    if d == 2:
        return circle, np.full(n, 2 * np.pi / n)
    x, w = np.polynomial.legendre.leggauss(12)
    z = np.repeat(np.concatenate([x - 1, x + 1]) / 2, n)
    nodes = np.column_stack([np.tile(circle, (24, 1)) * np.sqrt(1 - z**2)[:, None], z])
    return nodes, np.repeat(np.tile(w / 2, 2), n) * 2 * np.pi / n


def grid(basis):
    """All hyperplanes with normals in the span of ``basis`` and offsets in (-3, 3), and the volume of each."""
    step = {1: 0.0005, 2: 0.01, 3: 0.04}[len(basis)]
    (a, area), b = sphere(len(basis)), np.arange(-3 + step / 2, 3, step)
    return Hyperplanes(np.repeat(a @ basis, len(b), axis=0), np.tile(b, len(a))), np.repeat(area * step, len(b))


def histogram(planes, basis, weights=None):
    """Sum over cells: twelfths of the circle or signs of the coordinates, times ranges of the offset."""
    a = planes.normals @ basis.T
    sector = (a > 0) @ 2 ** np.arange(len(basis))
    if len(basis) == 2:
        sector = np.floor(np.arctan2(a[:, 1], a[:, 0]) * 6 / np.pi).astype(int) + 6
    cells = sector * 20 + np.digitize(planes.offsets, np.linspace(-1.8, 1.8, 19))
    return np.bincount(cells, weights, minlength=240)


def assert_frequencies(counts, probabilities):
    """The midpoint rule of ``grid`` can miss a sliver of the support: rare cells may hold 1e-4 of the samples more."""
    expected = counts.sum() * np.asarray(probabilities)
    rare = expected < 8
    assert stats.poisson.sf(counts[rare].sum() - 1, expected[rare].sum() + 1e-4 * counts.sum()) > LEVEL
    statistic = np.sum((counts - expected)[~rare] ** 2 / expected[~rare])
    assert stats.chi2.sf(statistic, max(1, np.sum(~rare) - 1)) > LEVEL


def assert_same_samples(left, right, basis):
    table = np.array([histogram(left, basis), histogram(right, basis)])
    assert stats.chi2_contingency(table[:, table.sum(axis=0) >= 20]).pvalue > LEVEL


def assert_same_density(density, left, right):
    """Compare what ``density`` makes of two jets, in whatever way it can be looked at."""
    both = density.prepare(left), density.prepare(right)
    if has_density(density, left):
        planes = Uniform().prepare(left).sample(200, rng_of(5))
        np.testing.assert_allclose(*(prepared.log_density(planes) for prepared in both), rtol=1e-5, atol=1e-5)
    if density in MIXTURES:
        np.testing.assert_allclose(*map(point_moments, both), rtol=1e-5, atol=1e-5)


def point_moments(prepared):
    """Moments of the selected point and of its direction; they do not change when a point is split in two."""
    C = prepared.axes.T @ prepared.covariances(np.arange(len(prepared.points))) @ prepared.axes
    trace = np.trace(C, axis1=1, axis2=2)
    C = C / np.where(trace > 0, trace, 1)[:, None, None]
    features = np.concatenate([prepared.points, prepared.points**2, C.reshape(len(C), -1)], axis=1)
    return prepared.masses @ features / prepared.masses.sum()


# --- Densities and samples
SHAPES = [(1, 1, ()), (2, 2, ()), (3, 3, ()), (3, 2, ()), (3, 1, ()), (2, 2, (2,))]
DOMAINS = [Ball(1.4), Box([-0.9, -0.3, -0.5], [0.4, 1.1, 0.2])]
SMOOTH = [
    pytest.param(density, *shape, domain, id=f"{density}-{shape}-{type(domain).__name__}")
    for density, shape, domain in itertools.product(DENSITIES, SHAPES, DOMAINS)
    if has_density(density, make_jet(*shape)[0])
    and (density.needs or shape[0] == shape[1])  # the uniform density fills the whole sphere
    and (density not in MIXTURES or domain is DOMAINS[0])  # mixtures follow the points, not the domain
]


@pytest.mark.parametrize(("density", "d", "rank", "outputs", "domain"), SMOOTH)
def test_density_is_the_papers_integrates_to_one_and_is_that_of_the_samples(density, d, rank, outputs, domain):
    jet, basis = make_jet(d, rank, outputs)
    domain = domain if isinstance(domain, Ball) else Box(domain.lower[:d], domain.upper[:d])
    prepared = density.prepare(jet, domain)
    planes, volume = grid(basis)
    log_density, expected = prepared.log_density(planes), paper_density(density, jet, planes, domain)
    np.testing.assert_allclose(np.exp(log_density), expected, rtol=2e-5, atol=1e-12)
    assert np.sum(np.exp(log_density) * volume) == pytest.approx(1, abs=1e-3)

    n, mass = 40_000, expected * volume
    samples = prepared.sample(n, rng_of(1))
    assert_frequencies(histogram(samples, basis), histogram(planes, basis, mass))
    drawn, nodes = (np.column_stack([p.normals, p.offsets]) for p in (samples, planes))
    deviation = np.sqrt((drawn**2).T @ drawn**2) / n
    # at most ten different moments, each five standard deviations away for one seed in two million
    assert np.all(np.abs(drawn.T @ drawn / n - (nodes.T * mass) @ nodes) < 5 * deviation + 1e-3)


@pytest.mark.parametrize("outputs", [(), (2,)], ids=["one output", "two outputs"])
@pytest.mark.parametrize("density", DERIVATIVE, ids=repr)
def test_samples_follow_the_papers_definition(density, outputs):
    jet, basis = make_jet(3, 3, outputs, seed=1)
    samples = density.prepare(jet).sample(40_000, rng_of(2))
    assert_same_samples(samples, paper_samples(density, jet, 40_000, rng_of(3)), basis)


@pytest.mark.parametrize("density", DENSITIES, ids=repr)
@pytest.mark.parametrize(
    "jet",
    [make_jet(3)[0], make_jet(1)[0], make_jet(4, K=1)[0], make_jet(2, outputs=(3,))[0], make_jet(2)[0][[0, 0, 1, 1]]],
    ids=["3d", "1d", "single point", "three outputs", "twice the same points"],
)
def test_samples_are_reproducible_and_have_unit_normals(density, jet):
    for n in (0, 1, 57):
        first, again = (density.prepare(jet).sample(n, rng_of(7)) for _ in range(2))
        assert first.normals.shape == (n, jet.n_features)
        np.testing.assert_allclose(np.linalg.norm(first.normals, axis=1), 1, rtol=1e-12)
        np.testing.assert_array_equal(first.normals, again.normals)
        np.testing.assert_array_equal(first.offsets, again.offsets)


@pytest.mark.parametrize("density", [Uniform, ActiveSubspace])
def test_a_density_may_have_a_domain_of_its_own(density):
    jet, _ = make_jet(3)
    box = Box(jet.X.min(axis=0), jet.X.max(axis=0))
    expected = density().prepare(jet, box)
    planes = expected.sample(100, rng_of(1)) + Uniform().prepare(jet).sample(100, rng_of(2))
    for domain in ("box", box):
        prepared = density(domain=domain).prepare(jet, Ball(7.0))
        np.testing.assert_allclose(prepared.log_density(planes), expected.log_density(planes), rtol=1e-12)
        np.testing.assert_array_equal(prepared.sample(100, rng_of(1)).offsets, planes.offsets[:100])


def test_nearly_constant_directions_keep_their_density():
    jet = Jet([[0.0, 0.0], [0.1, 0.0]], [0.0, 0.0], gradients=[[1.0, 0.0], [0.0, 1e-10]])
    angle = 1e-10 * np.array([0.0, 1.0, 5.0])
    planes = Hyperplanes(np.column_stack([np.cos(angle), np.sin(angle)]), np.zeros(3))
    expected = 1e10 / (2 * np.pi * (1 + (angle * 1e10) ** 2)) / 2
    np.testing.assert_allclose(ActiveSubspace().prepare(jet).log_density(planes), np.log(expected), rtol=1e-9)


# --- The support condition of section 4.2
@pytest.mark.parametrize("density", DERIVATIVE, ids=repr)
def test_no_neuron_along_a_direction_in_which_the_function_is_constant(density):
    jet, basis = make_jet(5, 3, K=50)
    jet = replace(jet, X=jet.X + 5)
    prepared = density.prepare(jet, Ball(10.0))
    planes = prepared.sample(2000, rng_of(1))
    np.testing.assert_allclose(planes.normals @ basis.T @ basis, planes.normals, atol=1e-7)
    if density in MIXTURES:
        distance = np.abs(planes.signed_distance(jet.X)).min(axis=0)
        # of 2000 normal variables one is larger for one seed in six million, of 2000 logistic ones for one in 250 000
        farthest = 20.7 if getattr(density, "mollifier", None) == "logistic" else 6.5
        assert distance.max() <= farthest * prepared.spread + 1e-12
    if has_density(density, jet):
        outside = np.linalg.svd(basis)[2][3]
        tilted = Hyperplanes.through(np.full_like(planes.normals, 5.0), planes.normals + 0.01 * outside)
        assert np.all(prepared.log_density(tilted) == -np.inf)
        assert np.all(np.isfinite(prepared.log_density(planes)))


# --- Local
@pytest.mark.parametrize("order", [1, 2])
def test_local_picks_points_by_the_size_of_their_derivative_and_passes_through_them(order):
    jet, _ = make_jet(3, K=9)
    for derivatives in (jet.gradients, jet.hessians):
        derivatives[[0, 4, 8]] = 0
    planes = Local(order).prepare(jet).sample(20_000, rng_of(1))
    through = np.abs(planes.signed_distance(jet.X)) < 1e-12
    np.testing.assert_array_equal(through.sum(axis=0), 1)
    point = through.argmax(axis=0)
    size = np.sqrt(np.sum(columns(jet, order) ** 2, axis=(1, 2)))
    sign = planes.normals[:, 0] > 0 if order == 2 else np.sum(planes.normals * jet.gradients[point], axis=1) > 0
    assert_frequencies(np.bincount(point * 2 + sign, minlength=18), np.repeat(size / size.sum() / 2, 2))
    if order == 1:
        units = jet.gradients[point] / size[point, None]
        # each of half a dozen products and quotients of unit vectors may err by 1e-15 times sqrt(3)
        np.testing.assert_allclose(planes.normals, np.where(sign, 1, -1)[:, None] * units, atol=2e-14)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("density", [Local(jitter=0.2), Nonlocal(bandwidth=0.3)], ids=repr)
def test_offsets_spread_around_the_point_with_the_stated_deviation(density, order):
    jet, _ = make_jet(2, K=1)
    prepared = replace(density, order=order).prepare(jet)
    distance = prepared.sample(20_000, rng_of(1)).signed_distance(jet.X)[0]
    assert stats.kstest(distance, stats.norm(scale=0.2 if isinstance(density, Local) else 0.3).cdf).pvalue > LEVEL


def test_local_says_when_it_has_no_density():
    jet, _ = make_jet(2)
    flat = replace(jet, hessians=np.where(np.arange(7)[:, None, None] == 3, [[1.0, 0.0], [0.0, 0.0]], jet.hessians))
    planes = Hyperplanes([[1.0, 0.0]], [0.0])
    for density, data in [(Local(), jet), (Local(2), jet), (Local(jitter=0.1), jet), (Local(2, jitter=0.1), flat)]:
        with pytest.raises(ValueError, match="no density"):
            density.prepare(data).log_density(planes)


# --- Axis-aligned
@pytest.mark.parametrize("order", [1, 2])
def test_axis_aligned_picks_points_and_axes_by_the_size_of_the_partial_derivatives(order):
    jet, _ = make_jet(3, K=5, outputs=(2,))
    weights = np.array([1.0, 2.0, 0.0, 0.5, 3.0])
    planes = AxisAligned(order).prepare(replace(jet, sample_weight=weights)).sample(20_000, rng_of(1))
    axis = np.abs(planes.normals).argmax(axis=1)
    assert_allclose(np.abs(planes.normals), np.eye(3)[axis], atol=1e-14)
    through = np.abs(planes.signed_distance(jet.X)) < 1e-12
    np.testing.assert_array_equal(through.sum(axis=0), 1)
    sizes = weights[:, None] * np.linalg.norm(columns(jet, order), axis=2)
    cell = (through.argmax(axis=0) * 3 + axis) * 2 + (planes.normals.sum(axis=1) > 0)
    assert_frequencies(np.bincount(cell, minlength=30), np.repeat(sizes.ravel() / sizes.sum() / 2, 2))


@pytest.mark.parametrize("rho", ["uniform", Rising()])
def test_axis_aligned_samples_have_the_density_that_is_said(rho):
    jet, _ = make_jet(2, K=6)
    prepared = AxisAligned(jitter=0.2, rho=rho).prepare(jet)
    offsets, step = np.linspace(-2, 2, 4001, retstep=True)  # the points are within 0.3
    planes = prepared.sample(20_000, rng_of(1))
    total = 0.0
    for normal in np.vstack([np.eye(2), -np.eye(2)]):
        density = np.exp(prepared.log_density(Hyperplanes(np.tile(normal, (4001, 1)), offsets)))
        masses = np.abs(jet.gradients @ normal) * (1.0 if rho == "uniform" else 1 / rho(jet.X))
        expected = stats.norm(-jet.X @ normal, 0.2).pdf(offsets[:, None]) @ masses
        assert_allclose(density / (density.sum() * step), expected / masses.sum(), atol=1e-9)
        drawn = planes.offsets[np.abs(planes.normals - normal).max(axis=1) < 0.5]
        cumulative = np.cumsum(density) / density.sum()
        # a distribution function in 4001 steps, none of them larger than 0.002
        assert stats.kstest(drawn, lambda b, F=cumulative: np.interp(b, offsets, F)).pvalue > LEVEL
        total += density.sum() * step
    assert total == pytest.approx(1, abs=1e-9)
    tilted = Hyperplanes.through(np.zeros((1, 2)), [[1.0, 1e-3]])
    assert prepared.log_density(tilted) == -np.inf
    with pytest.raises(ValueError, match="no density"):
        AxisAligned().prepare(jet).log_density(tilted)


def test_axis_aligned_partials_that_are_unknown_are_of_the_usual_size():
    """An axis along which no derivative is known has the mean square of all others."""
    gradients = np.array([[3.0, np.nan], [-4.0, np.nan]])
    planes = AxisAligned().prepare(Jet(np.eye(2), np.zeros(2), gradients)).sample(20_000, rng_of(1))
    sizes = np.array([[3.0, np.sqrt(12.5)], [4.0, np.sqrt(12.5)]])
    axis, point = np.abs(planes.normals).argmax(axis=1), np.abs(planes.signed_distance(np.eye(2))).argmin(axis=0)
    assert_frequencies(np.bincount(point * 2 + axis, minlength=4), sizes.ravel() / sizes.sum())


# --- Nonlocal
def test_nonlocal_points_without_derivative_borrow_from_their_neighbours():
    X, g, bandwidth = np.arange(-4.0, 5.0)[:, None], np.array([1, 0, 0, 3, 0, 0, 0, 0, 2.0]), 1 / 8
    planes = Nonlocal(bandwidth=bandwidth).prepare(Jet(X, g, gradients=g[:, None])).sample(100_000, rng_of(1))
    point = np.clip(np.rint(-planes.offsets * planes.normals[:, 0]).astype(int) + 4, 0, 8)
    masses = [np.sqrt(sum(np.exp(-abs(i - j) / bandwidth) * g[j] ** 2 for j in range(9))) for i in range(9)]
    assert_frequencies(np.bincount(point, minlength=9), masses / np.sum(masses))


@pytest.mark.parametrize(("order", "outputs"), [(1, (2,)), (2, ())])
def test_nonlocal_masses_and_covariances_of_many_points(order, outputs):
    density, (jet, _) = Nonlocal(order, bandwidth=0.1), make_jet(3, 2, outputs, K=1300)
    prepared, C = density.prepare(jet), covariances(density, jet)
    actual = prepared.axes.T @ prepared.covariances(np.arange(1300)) @ prepared.axes
    unit = np.trace(actual[0]) / np.trace(C[0])
    np.testing.assert_allclose(actual, C * unit, rtol=1e-5, atol=1e-6 * np.trace(actual[0]))
    masses = np.sqrt(np.trace(C, axis1=1, axis2=2))
    np.testing.assert_allclose(prepared.masses / prepared.masses.sum(), masses / masses.sum(), rtol=1e-5)


@pairwise(bandwidth=[1e-9, 1e-4, 0.02, 0.3, 1e6], d=[1, 8], kernel=list(WEIGHTS))
def test_neighbourhood_totals_against_double_precision(kernel, d, bandwidth):
    jet, _ = make_jet(d, K=1300)
    masses = rng_of(1).random(1300)
    expected = WEIGHTS[kernel](cdist(jet.X, jet.X) / bandwidth)
    totals = neighbourhood_totals(jet.X, masses, bandwidth, KERNELS[kernel])
    np.testing.assert_allclose(totals, expected @ masses, rtol=1e-5)
    few = neighbourhood_weights(jet.X[:20], jet.X[:30], bandwidth, KERNELS[kernel])
    np.testing.assert_allclose(few, expected[:20, :30], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("shift", [0.0, 1e3], ids=["around zero", "far from zero"])
@pytest.mark.parametrize("bandwidth", [1e-300, 1e-9, 1e-4, 0.02, 0.3, 1e6])
def test_distances_against_differences(bandwidth, shift):
    """The stated error, of points of which some are the same and some nearly so."""
    X = np.concatenate([rng_of(1).uniform(-1, 1, (60, 3)), np.full((3, 3), 0.5)]) + shift
    X[:20] = X[20:40] + bandwidth * rng_of(2).uniform(-1, 1, (20, 3)) * np.geomspace(1e-6, 1, 20)[:, None]
    with np.errstate(over="ignore"):
        expected = np.sqrt(np.sum((X[:, None] - X) ** 2, axis=2)) / bandwidth
        actual = Distances.between(X, X, bandwidth)(slice(5, 40), slice(10, 63))
    limit = expected[5:40, 10:63]
    finite = limit < 1e38
    np.testing.assert_allclose(actual[finite], limit[finite], rtol=1e-6, atol=1e-5)
    assert np.all(np.isinf(actual[~finite]))


@pytest.mark.parametrize("bandwidth", [1e-10, 1e-3])
@pytest.mark.parametrize("d", [1, 2, 30])
def test_small_bandwidth_gives_local_sampling(d, bandwidth):
    jet, _ = make_jet(d, K=1300 if d == 30 else 7, seed=4)
    if d < 30:  # many bandwidths apart; in 30 dimensions all points are
        jet = replace(jet, X=np.linspace(-1, 1, 7)[:, None] * np.ones(d))
    prepared, size = Nonlocal(bandwidth=bandwidth).prepare(jet), np.linalg.norm(jet.gradients, axis=1)
    np.testing.assert_allclose(prepared.masses / prepared.masses.sum(), size / size.sum(), rtol=2e-5)
    planes = prepared.sample(3000, rng_of(1))
    near = np.abs(planes.signed_distance(jet.X)) < 7 * bandwidth  # 3000 normal variables: not for one seed in 10^8
    parallel = np.abs(jet.gradients @ planes.normals.T) > size[:, None] * (1 - 1e-6)
    assert np.all(np.any(near & parallel, axis=0))


@pytest.mark.parametrize("order", [1, 2])
def test_large_bandwidth_gives_the_directions_of_the_active_subspace(order):
    jet, basis = make_jet(3)
    planes = Nonlocal(order, bandwidth=1e6).prepare(jet).sample(40_000, rng_of(1))
    around = replace(planes, offsets=rng_of(2).uniform(-1, 1, 40_000))
    assert_same_samples(around, ActiveSubspace(order).prepare(jet).sample(40_000, rng_of(3)), basis)


def test_nonlocal_takes_twice_the_width_unless_it_has_a_bandwidth():
    assert Nonlocal(2).at_width(0.1) == Nonlocal(2, bandwidth=0.2)
    assert Nonlocal(bandwidth=0.3).at_width(0.1) == Nonlocal(bandwidth=0.3)
    with pytest.raises(ValueError, match="`bandwidth` must be a number > 0"):
        Nonlocal().at_width(0.0).prepare(make_jet()[0])


@pytest.mark.parametrize("kernel", list(WEIGHTS))
def test_a_kernel_may_be_a_function(kernel):
    jet, _ = make_jet(3, K=30)
    named, own = (Nonlocal(bandwidth=0.3, kernel=value).prepare(jet) for value in (kernel, WEIGHTS[kernel]))
    np.testing.assert_allclose(own.masses, named.masses, rtol=1e-5)
    actual, expected = own.covariances(np.arange(5)), named.covariances(np.arange(5))
    # weights in single precision differ by a few of its roundings, and entries of C by that share of its trace
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6 * np.trace(expected, axis1=1, axis2=2).max())


@pytest.mark.parametrize(
    "kernel", [lambda t: 1 - t, lambda t: t[:1], lambda t: t * np.nan + 1], ids=["zero", "one", "nan"]
)
def test_a_kernel_that_is_none(kernel):
    with pytest.raises(ValueError, match=r"`kernel` must map the numbers 0 and 1 to two numbers > 0, got \["):
        Nonlocal(bandwidth=0.3, kernel=kernel).prepare(make_jet()[0])


@pytest.mark.parametrize("mollifier", list(OFFSETS))
def test_offsets_have_the_density_of_the_mollifier(mollifier):
    jet, _ = make_jet(2, K=1)
    for value in (mollifier, MOLLIFIERS[mollifier]):
        prepared = Nonlocal(2, bandwidth=0.3, mollifier=value).prepare(jet)
        distance = prepared.sample(20_000, rng_of(1)).signed_distance(jet.X)[0]
        assert stats.kstest(distance, OFFSETS[mollifier](scale=0.3).cdf).pvalue > LEVEL


# --- The density of the points
def crowded(n=2000):
    """Points of density ``(1 - 0.8 x) / 2`` on (-1, 1), at equal steps of the distribution; constant derivatives."""
    share = (np.arange(n) + 0.5) / n
    X = (1 - np.sqrt(1 - 1.6 * (2 * share - 1.4)))[:, None] / 0.8
    return Jet(X, X[:, 0], np.ones((n, 1)), np.ones((n, 1, 1)))


def places(density):
    """Where hyperplanes are, in one dimension."""
    planes = density.prepare(crowded()).sample(20_000, rng_of(1))
    return -planes.offsets * planes.normals[:, 0]


@pytest.mark.parametrize("order", [1, 2])
def test_crowded_points_draw_no_neurons_if_their_density_is_known(order):
    """Masses are at most 0.0025: distribution functions differ by half of it, and 0.0175 has a p-value of 1e-5."""
    density = Local(order, rho=lambda X: (1 - 0.8 * X[:, 0]) / 2)
    assert stats.kstest(places(density), stats.uniform(-1, 2).cdf).pvalue > LEVEL
    assert stats.kstest(places(Local(order)), lambda x: (1 + x) * (1.4 - 0.4 * x) / 2).pvalue > LEVEL


@pytest.mark.parametrize("density", [Local(), Nonlocal(bandwidth=0.05)], ids=["local", "nonlocal"])
def test_the_density_of_the_points_can_be_estimated(density):
    """Half of all hyperplanes are on either side; the share of 20 000 is off by 0.018 for one seed in three million."""
    left = {rho: np.mean(places(replace(density, rho=rho)) < 0) for rho in ("uniform", "knn")}
    assert left["uniform"] > 0.7 - 0.018
    assert abs(left["knn"] - 0.5) < 0.018 + 0.03  # near the ends the estimate is too low


@pytest.mark.usefixtures("own_memory")
def test_nonlocal_never_holds_all_pairs_of_points():
    jet, _ = make_jet(8, K=10_000)
    tracemalloc.start()
    try:
        prepared = Nonlocal(bandwidth=0.1).prepare(jet)
        prepared.sample(1000, rng_of(1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6  # all pairs are 0.4 GB in single precision
    few = np.exp(-cdist(jet.X[::2499], jet.X) / 0.1) @ np.sum(jet.gradients**2, axis=1)
    np.testing.assert_allclose(prepared.masses[::2499] / prepared.masses[0], np.sqrt(few / few[0]), rtol=1e-5)


# --- What the data may look like
@pytest.mark.parametrize("unit", [1.0, 1e-50, 1e50])
@pytest.mark.parametrize("density", DERIVATIVE, ids=repr)
def test_a_weight_is_a_number_of_repetitions_in_any_unit(density, unit):
    jet, _ = make_jet(2, outputs=(2,))
    repetitions = np.array([2, 0, 1, 3, 0, 1, 1])
    repeated = jet[np.repeat(np.arange(7), repetitions)]
    for derivatives in (jet.gradients, jet.hessians):
        derivatives[1], derivatives[4] = 1e300, np.nan  # rows of weight zero do not count
    assert_same_density(density, repeated, replace(jet, sample_weight=repetitions * unit))


@pytest.mark.parametrize("factor", [1e-200, 1e150])
@pytest.mark.parametrize("density", DERIVATIVE, ids=repr)
def test_densities_do_not_depend_on_the_scale_of_the_function(density, factor):
    jet, _ = make_jet(2)
    scaled = replace(jet, gradients=jet.gradients * factor, hessians=jet.hessians * factor)
    assert_same_density(density, jet, scaled)


@pytest.mark.parametrize("density", DERIVATIVE, ids=repr)
def test_derivatives_that_are_not_known_say_nothing(density):
    """Neither do those of one output, if the others are known."""
    jet, _ = make_jet(2, outputs=(2,))
    unknown, nothing = (replace(jet, gradients=jet.gradients.copy(), hessians=jet.hessians.copy()) for _ in range(2))
    for part, value in ((unknown, np.nan), (nothing, 0.0)):
        part.gradients[3, 0] = part.hessians[3, 1] = value
        part.gradients[5] = part.hessians[5] = value
    assert_same_density(density, nothing, unknown)


def with_rows(jet, gradients, hessians):
    """One output more for each row: what they add to ``F_k^T F_k`` is what random numbers add on average."""
    return Jet(
        jet.X,
        np.zeros((len(jet), 1 + gradients.shape[1])),
        np.concatenate([jet.gradients[:, None], gradients], axis=1),
        np.concatenate([jet.hessians[:, None], hessians], axis=1),
        jet.sample_weight,
    )


@pytest.mark.parametrize("never", [True, False], ids=["at no point", "at some points"])
@pytest.mark.parametrize("density", DERIVATIVE, ids=repr)
def test_an_unknown_entry_is_a_random_number_of_the_usual_size(density, never):
    """Its variance is the mean square of the known entries along its axis, or of all if there are none."""
    jet, _ = make_jet(3)
    jet = replace(jet, sample_weight=np.arange(1.0, 8.0))
    gradients, hessians = jet.gradients.copy(), jet.hessians.copy()
    rows = slice(None) if never else [0, 2, 5]
    gradients[rows, 1] = hessians[rows, 0, 1] = hessians[rows, 1, 1] = hessians[rows, 2, 1] = np.nan
    unknown = replace(jet, gradients=gradients, hessians=hessians)

    sums, totals, numbers = np.zeros(3), np.zeros(3), np.zeros((7, 3))
    derivatives = gradients[:, None] if density.order == 1 else hessians
    for k, i, j in np.ndindex(derivatives.shape):
        if np.isnan(derivatives[k, i, j]):
            numbers[k, j] += 1
        else:
            sums[j] += (k + 1) * derivatives[k, i, j] ** 2
            totals[j] += k + 1
    variances = np.where(totals > 0, sums / np.maximum(totals, 1), sums.sum() / totals.sum())
    size = np.sqrt(numbers * variances)[:, :, None] * np.eye(3)
    zeros = replace(jet, gradients=np.nan_to_num(gradients), hessians=np.nan_to_num(hessians))
    assert_same_density(density, with_rows(zeros, size, size[..., None] * np.eye(3)), unknown)


@pytest.mark.parametrize("density", [density for density in DERIVATIVE if density.order == 1], ids=repr)
def test_directions_across_those_of_known_derivatives_are_sampled(density):
    """Their variance is the mean square of the known slopes along unit directions."""
    jet, _ = make_jet(3)
    directions = rng_of(1).standard_normal((7, 2, 3))
    slopes = np.einsum("kd,kqd->kq", jet.gradients, directions)
    slopes[2, 1] = slopes[4, 0] = slopes[4, 1] = np.nan  # one direction, and none
    along = Jet.along(jet.X, jet.y, directions, slopes)
    across, squares, ranks = np.zeros((7, 3, 3)), 0.0, 0
    for k in range(7):
        V = directions[k][~np.isnan(slopes[k])]
        if len(V):
            across[k] = np.eye(3) - np.linalg.pinv(V) @ V
            squares += np.sum((np.linalg.pinv(V) @ V @ jet.gradients[k]) ** 2)
            ranks += len(V)
    known = replace(jet, gradients=along.gradients)
    expected = with_rows(known, np.sqrt(squares / ranks) * across, np.zeros((7, 3, 3, 3)))
    assert_same_density(density, expected, along)
    everything = Jet.along(jet.X, jet.y, np.broadcast_to(np.eye(3), (7, 3, 3)), jet.gradients)
    assert_same_density(density, jet, everything)


@pytest.mark.parametrize("density", DERIVATIVE, ids=repr)
def test_if_all_that_is_known_is_zero_what_is_unknown_is_sampled(density):
    jet, _ = make_jet(3)
    gradients, hessians = np.zeros((7, 3)), np.zeros((7, 3, 3))
    gradients[:, 1] = hessians[:, :, 1] = np.nan
    planes = density.prepare(replace(jet, gradients=gradients, hessians=hessians)).sample(20, rng_of(1))
    np.testing.assert_allclose(np.abs(planes.normals), np.tile([0.0, 1.0, 0.0], (20, 1)), atol=1e-12)


@pytest.mark.parametrize("density", DERIVATIVE, ids=repr)
def test_data_that_cannot_make_a_density(density):
    jet, _ = make_jet(2)
    kind = "gradients" if density.order == 1 else "hessians"
    nan, zero = (replace(jet, **{kind: np.full_like(getattr(jet, kind), value)}) for value in (np.nan, 0.0))
    for data in (nan, replace(jet, **{kind: None})):
        with pytest.raises(ValueError, match=f"needs {kind}, got"):
            density.prepare(data)
    with pytest.raises(ValueError, match=f"all known {kind} are zero"):
        density.prepare(zero)
    assert len(Uniform().prepare(Jet(jet.X, jet.y)).sample(3, rng_of(0))) == 3


@pytest.mark.parametrize("density", DERIVATIVE, ids=repr)
def test_rows_of_weight_zero_make_no_density(density):
    jet, _ = make_jet(2)
    for derivatives in (jet.gradients, jet.hessians):
        derivatives[1:] = np.nan
    assert len(density.prepare(jet).sample(5, rng_of(0))) == 5
    with pytest.raises(ValueError, match=r"needs (gradients|hessians), got no derivatives"):
        density.prepare(replace(jet, sample_weight=np.minimum(np.arange(7.0), 1)))
    with pytest.raises(ValueError, match="weight"):
        density.prepare(replace(jet, sample_weight=np.zeros(7)))


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
def test_wrong_parameters_are_named_with_what_came(value):
    with pytest.raises(ValueError, match=f"`jitter` must be None or a number >= 0, got {value}"):
        Local(jitter=value)
    for bandwidth in (value, 0):
        with pytest.raises(ValueError, match=f"`bandwidth` must be a number > 0, got {bandwidth}"):
            Nonlocal(bandwidth=bandwidth)
    for family in (ActiveSubspace, AxisAligned, Local, Nonlocal):
        with pytest.raises(ValueError, match=f"`rho` must be 'uniform', 'knn' or a function, got {value}"):
            family(rho=value)
    for family in (ActiveSubspace, Uniform):
        with pytest.raises(ValueError, match=f"`domain` must be 'box', a Domain or None, got {value}"):
            family(domain=value)
    with pytest.raises(ValueError, match=f"`kernel` must be one of exponential, .*, or a function, got {value}"):
        Nonlocal(kernel=value)
    with pytest.raises(ValueError, match=f"`mollifier` must be one of logistic, .*, or an object, got {value}"):
        Nonlocal(mollifier=value)
    for family, order in itertools.product((ActiveSubspace, AxisAligned, Local, Nonlocal), (0, 3, "1", value)):
        with pytest.raises(ValueError, match=f"`order` must be 1 .gradients. or 2 .Hessians., got {order!r}"):
            family(order=order)


def test_a_jitter_that_follows_the_width():
    """Twice the width, unless there is one; without a width there is no prepared."""
    jet, _ = make_jet(2)
    assert Local(jitter=None).at_width(0.3) == Local(jitter=0.6)
    assert Local(jitter=0.1).at_width(0.3) == Local(jitter=0.1)
    assert Local().at_width(0.3) == Local(jitter=0.0)
    assert AxisAligned(jitter=None).at_width(0.3) == AxisAligned(jitter=0.6)
    with pytest.raises(
        ValueError, match="`jitter` must be a number >= 0, got None: the width of the neurons is unknown"
    ):
        Local(jitter=None).prepare(jet)


@pytest.mark.parametrize("kernel", ["exponential", "gaussian"])
@pytest.mark.parametrize("bandwidth", [1e-8, 0.05, 0.5, 5.0])
def test_probabilities_of_many_points_are_near_the_exact_ones(bandwidth, kernel, monkeypatch):
    """The sum over the other points, estimated by the mean weight of 600 of 2000 picks by mass, against the exact one.

    Independent picks would have the standard deviation ``(M - m_k) std(w) / sqrt(600)``, with the weights ``w`` of the
    other points as they are picked; equal steps through points in random order do not scatter more. Errors of all
    points may go together; then their root mean square is that of one normal number, above 5 once in two million times.
    """
    rng = np.random.default_rng(0)
    X, masses = rng.uniform(-1, 1, (2000, 2)), rng.exponential(size=2000)
    exact = neighbourhood_totals(X, masses, bandwidth, KERNELS[kernel])
    monkeypatch.setattr(_neighbourhoods, "MANY_POINTS", 100)
    monkeypatch.setattr(_neighbourhoods, "NEIGHBOURS", 600)
    found = neighbourhood_totals(X, masses, bandwidth, KERNELS[kernel])
    weights = neighbourhood_weights(X, X, bandwidth, KERNELS[kernel])
    np.fill_diagonal(weights, 0.0)
    shares = masses / (masses.sum() - masses[:, None])
    mean = np.sum(shares * weights, axis=1)
    deviations = (masses.sum() - masses) * np.sqrt(np.sum(shares * weights**2, axis=1) - mean**2) / np.sqrt(600)
    errors = np.abs(found - exact) - 1e-5 * exact  # single precision
    assert np.sqrt(np.mean(np.maximum(errors, 0.0) ** 2)) <= 5 * np.sqrt(np.mean(deviations**2))
    if bandwidth < 1e-3:
        assert_allclose(found, exact, rtol=1e-4)  # no other point is within its reach


def test_nonlocal_sampling_of_many_points_has_exact_neighbourhoods(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (400, 2))
    jet = Jet(X, X.sum(axis=1), rng.standard_normal((400, 2)))
    exact = Nonlocal(bandwidth=0.3).prepare(jet)
    monkeypatch.setattr(_neighbourhoods, "MANY_POINTS", 100)
    prepared = Nonlocal(bandwidth=0.3).prepare(jet)
    assert_allclose(prepared.covariances(np.arange(5)), exact.covariances(np.arange(5)))
    assert not np.array_equal(prepared.masses, exact.masses)
