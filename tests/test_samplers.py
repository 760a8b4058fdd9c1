"""Drawing from the exact density: directions, candidates, rejection and chains, each against its prepared."""

from dataclasses import dataclass, field, replace
from math import gamma

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad

from nurf.densities import Representation
from nurf.densities._angular import sample_around, sphere_quadrature
from nurf.densities._profiles import MOLLIFIERS, psi
from nurf.densities._samplers import SAMPLERS, Metropolis, Rejection
from nurf.networks import Ball, Box
from nurf.networks._hyperplanes import normalised
from pairwise import pairwise
from quadrature import LEVEL, exact_density, grid, histogram, p_value, product, rng_of, scattered, sphere

WIDTH = 0.3
FORMULAS = [(1, "values"), (1, "gradients"), (2, "gradients"), (2, "hessians")]
POWERS = {"values": 0, "gradients": 1, "hessians": 2}
every_formula = pytest.mark.parametrize(("s", "data"), FORMULAS)
every_sampler = pytest.mark.parametrize("sampler", list(SAMPLERS.values()), ids=list(SAMPLERS))

FAR = np.array([-50, -25, -12, -6, -3, *np.linspace(-1.8, 1.8, 19), 3, 6, 12, 25, 50])
every_domain = pytest.mark.parametrize(
    ("domain", "edges"),  # ranges of the offset, outside of which nothing is drawn
    [
        (Ball(50.0), FAR),
        (Ball(0.5), np.linspace(-0.5, 0.5, 13)),
        (Box([0.1, -0.2], [0.7, 0.4]), np.linspace(-0.85, 0.85, 18)),
    ],
    ids=["everywhere", "ball", "box"],
)


def density_of(d, s=1, data="gradients", domain=None, outputs=(), mollifier="logistic", sampler="rejection", K=9):
    """A density from scattered data of density one."""
    jet = scattered(d, outputs, K)
    density = Representation(s, WIDTH, mollifier, data, lambda X: np.ones(len(X)), sampler)
    return jet, density.prepare(jet, domain)


def within(domain, d):
    return Box(domain.lower[:d], domain.upper[:d]) if isinstance(domain, Box) else domain


def meets(planes, domain):
    """Which hyperplanes meet the domain; those that meet a box have one of its corners on either side."""
    if isinstance(domain, Ball):
        return np.abs(planes.offsets) <= domain.radius
    d = planes.dimension
    corners = np.stack(np.meshgrid(*zip(domain.lower, domain.upper, strict=True)), axis=-1).reshape(-1, d)
    distances = planes.signed_distance(corners)
    return np.any(distances >= 0, axis=0) & np.any(distances <= 0, axis=0)


def masses(jet, d, s, data, domain, edges, size=lambda x: x):
    """The integrals over cells of ``|c|``, or with ``size=np.abs`` of its bound."""
    planes, volumes = grid(d, edges)
    c = exact_density(jet, planes, s, POWERS[data], WIDTH, size=size)
    values = c.sum(axis=1) if size is np.abs else np.sqrt(np.sum(c**2, axis=1))
    return histogram(planes, edges, values * volumes * meets(planes, domain))


# --- Directions
@pytest.mark.parametrize("d", [1, 2, 3, 8])
@pytest.mark.parametrize("power", [0, 1, 2])
def test_directions_around_an_axis(d, power):
    rng, n = rng_of(1), 20_000
    axes = normalised(rng.standard_normal((n, d)))
    before = axes.copy()
    a = sample_around(axes, power, rng)
    assert_array_equal(axes, before)
    assert_allclose(np.linalg.norm(a, axis=1), 1, rtol=1e-9)
    height = np.sum(a * axes, axis=1)
    assert stats.binomtest(int(np.sum(height > 0)), n).pvalue > LEVEL
    if d == 1:
        assert_allclose(np.abs(height), 1)
        return
    assert stats.kstest(height**2, stats.beta((power + 1) / 2, (d - 1) / 2).cdf).pvalue > LEVEL

    # what is left of a, seen along a direction that is orthogonal to the axis
    other = rng.standard_normal((n, d))
    other = normalised(other - np.sum(other * axes, axis=1, keepdims=True) * axes)
    aside = np.sum(normalised(a - height[:, None] * axes) * other, axis=1)
    assert stats.binomtest(int(np.sum(aside > 0)), n).pvalue > LEVEL
    assert abs(np.mean(aside * height)) < 5 / np.sqrt(n)
    if d > 2:
        assert stats.kstest(aside**2, stats.beta(0.5, (d - 2) / 2).cdf).pvalue > LEVEL
        assert abs(np.corrcoef(aside**2, height**2)[0, 1]) < 5 / np.sqrt(n)


def test_no_directions():
    assert sample_around(np.empty((0, 3)), 1, rng_of(0)).shape == (0, 3)


@pytest.mark.parametrize(("d", "nodes"), [(1, 5), (2, 7), (2, 12), (3, 6), (3, 8)])
def test_quadrature_over_the_sphere_is_exact_for_polynomials(d, nodes):
    points, weights = sphere_quadrature(d, nodes)
    assert points.shape == (len(weights), d)
    assert_allclose(np.linalg.norm(points, axis=1), 1, rtol=1e-14)
    for powers in np.ndindex(*[nodes] * d):
        if sum(powers) < nodes:
            even = all(p % 2 == 0 for p in powers)
            exact = 2 * np.prod([gamma((p + 1) / 2) for p in powers]) / gamma((sum(powers) + d) / 2) * even
            assert weights @ np.prod(points**powers, axis=1) == pytest.approx(exact, abs=1e-12)


def test_there_is_no_quadrature_over_spheres_of_higher_dimension():
    with pytest.raises(ValueError, match="quadrature over the sphere is implemented for d <= 3, got d = 4"):
        sphere_quadrature(4, 10)
    with pytest.raises(ValueError, match="d <= 3, got d = 5"):
        density_of(5)[1].log_constant()


# --- Candidates
@pairwise(every_formula, d=[1, 2, 3, 8], mollifier=list(MOLLIFIERS), outputs=[(), (2,)])
def test_the_bound_holds_everywhere(d, s, data, mollifier, outputs):
    _, prepared = density_of(d, s, data, Ball(5.0), outputs, mollifier)
    rng = rng_of(1)
    planes = product(normalised(rng.standard_normal((40, d))), rng.uniform(-5, 5, 20)) + prepared.propose(400, rng)
    sizes, bounds = prepared.ratios(planes)
    assert np.all(sizes <= bounds * (1 + 1e-12))
    assert np.all(bounds > 0)


@pairwise(every_formula, d=[1, 2], outputs=[(), (2,)])
def test_candidates_have_the_density_of_the_bound(d, s, data, outputs):
    jet, prepared = density_of(d, s, data, Ball(50.0), outputs)
    planes = prepared.propose(40_000, rng_of(1))
    assert_allclose(np.linalg.norm(planes.normals, axis=1), 1, rtol=1e-12)
    inside = planes[np.abs(planes.offsets) < 50]
    assert len(inside) > 0.99 * len(planes)
    expected = masses(jet, d, s, data, Ball(50.0), FAR, np.abs)
    assert p_value(histogram(inside, FAR), expected) > LEVEL
    # Candidates from another density would show: a distance of 0.05 adds 40,000 * 0.05^2 = 100 to the statistic, whose
    # standard deviation is below 8. If all derivatives of a line have one sign, the bound is that density.
    other = masses(jet, d, s, data, Ball(50.0), FAR)
    distance = np.abs(expected / expected.sum() - other / other.sum()).sum()
    assert distance < 0.05 or p_value(histogram(inside, FAR), other) < LEVEL


@every_formula
def test_candidates_have_the_moments_of_the_bound_in_three_dimensions(s, data):
    n, (jet, prepared) = 40_000, density_of(3, s, data, Ball(50.0))
    planes = prepared.propose(n, rng_of(1))
    (a, areas), (b, step) = sphere(3, 41, 24), np.linspace(-6, 6, 161, retstep=True)
    nodes = product(a, b)
    mass = np.repeat(areas * step, len(b)) * exact_density(jet, nodes, s, POWERS[data], WIDTH, size=np.abs)[:, 0]
    mass /= mass.sum()
    drawn, exact = (np.column_stack([p.normals, p.offsets]) for p in (planes, nodes))
    deviation = np.sqrt((drawn**2).T @ drawn**2) / n
    assert np.all(np.abs(drawn.T @ drawn / n - (exact.T * mass) @ exact) < 5 * deviation + 1e-3)
    assert np.all(np.abs(drawn.mean(axis=0) - mass @ exact) < 5 * drawn.std(axis=0) / np.sqrt(n) + 1e-3)


# --- Samples
@pairwise(every_formula, every_domain, d=[1, 2], sampler=[Rejection(), Metropolis(thinning=30, chains=1500)])
def test_samples_have_the_exact_density(d, s, data, domain, edges, sampler):
    domain = within(domain, d)
    jet, prepared = density_of(d, s, data, domain, sampler=sampler)
    planes = prepared.sample(12_000, rng_of(1))
    assert len(planes) == 12_000
    assert np.all(meets(planes, domain))
    assert p_value(histogram(planes, edges), masses(jet, d, s, data, domain, edges)) > LEVEL


@every_sampler
@pytest.mark.parametrize(("s", "data"), [(1, "gradients"), (2, "hessians")])
def test_samples_of_several_outputs_have_the_length_of_the_coefficients_as_density(s, data, sampler):
    jet, prepared = density_of(2, s, data, Ball(50.0), (2,), sampler=sampler)
    expected = masses(jet, 2, s, data, Ball(50.0), FAR)
    assert p_value(histogram(prepared.sample(12_000, rng_of(1)), FAR), expected) > LEVEL


@dataclass
class Target:
    """A density that counts where it is evaluated, and may tell a bound that is not its candidates' density."""

    prepared: object
    forgetful: bool = False
    width: float = WIDTH
    seen: list = field(default_factory=list)

    def propose(self, n, rng):
        return self.prepared.propose(n, rng)

    def ratios(self, planes):
        sizes, bounds = self.prepared.ratios(planes)
        self.seen.append(planes)
        return sizes, np.ones_like(bounds) if self.forgetful else bounds


@pytest.mark.parametrize("d", [1, 2])
@every_formula
def test_a_chain_without_hastings_correction_would_show(d, s, data):
    jet, prepared = density_of(d, s, data, Ball(50.0))
    draw = Metropolis(thinning=30, chains=1500).draw(Target(prepared, forgetful=True), 12_000, rng_of(1))
    assert p_value(histogram(draw.hyperplanes, FAR), masses(jet, d, s, data, Ball(50.0), FAR)) < LEVEL


@pytest.mark.parametrize("steps", [1, 2], ids=["a small move", "then a candidate from anywhere"])
def test_each_kind_of_move_keeps_the_density(steps):
    """Start chains from exact samples: whatever a step does to them, their density stays."""

    class FromSamples(Target):
        def propose(self, n, rng):
            return self.prepared.sample(n, rng) if not self.seen else self.prepared.propose(n, rng)

    jet, prepared = density_of(2, 1, "gradients", Ball(0.5))
    draw = Metropolis(burn_in=steps - 1, thinning=1, chains=20_000).draw(FromSamples(prepared), 20_000, rng_of(1))
    edges = np.linspace(-0.5, 0.5, 13)
    assert draw.candidates == 20_000 * (steps + 1)
    assert p_value(histogram(draw.hyperplanes, edges), masses(jet, 2, 1, "gradients", Ball(0.5), edges)) > LEVEL


# --- The report, and the constant
@pairwise(every_formula, d=[1, 2, 3], radius=[0.6, 1.2])
def test_acceptance_is_the_share_of_the_bound_that_the_density_fills(d, s, data, radius):
    jet, prepared = density_of(d, s, data, Ball(radius), K=5)
    power, n = POWERS[data], 8000
    draw = prepared.draw(n, rng_of(1))
    farthest = np.linalg.norm(jet.X, axis=1).max() + radius

    def profile(t):
        return abs(WIDTH ** -(d + s - power) * psi(MOLLIFIERS["logistic"], d, s - power, t / WIDTH))

    around_axis = 2 * np.pi ** ((d - 1) / 2) * gamma((power + 1) / 2) / gamma((d + power) / 2)
    eigenvalues = np.abs(np.linalg.eigvalsh(jet.hessians)).sum(axis=1)
    sizes = (np.abs(jet.y), np.linalg.norm(jet.gradients, axis=1), eigenvalues)[power]
    total = (
        jet.sample_weight @ sizes / jet.sample_weight.sum() * around_axis * 2 * quad(profile, 0, farthest, limit=400)[0]
    )
    constant = np.exp(prepared.log_constant({3: 40}.get(d, 200)))
    assert total * draw.acceptance == pytest.approx(constant, rel=5 / np.sqrt(n) + 5e-3)


@pytest.mark.parametrize("n", [0, 1, 2, 57, 301])
@pytest.mark.parametrize(
    "sampler",
    [Rejection(), Metropolis(), Metropolis(burn_in=5, thinning=1, chains=30), Metropolis(20, 2, chains=1)],
    ids=repr,
)
def test_exactly_as_many_as_asked_for_with_a_report(n, sampler):
    _, prepared = density_of(2, domain=Ball(50.0))
    target = Target(prepared)
    draw = sampler.draw(target, n, rng_of(1))
    assert len(draw.hyperplanes) == n
    assert draw.hyperplanes.normals.shape == (n, 2)
    assert draw.candidates == sum(map(len, target.seen))
    assert 0 <= draw.acceptance <= 1
    if n > 300:
        assert 0.02 < draw.acceptance < 0.98
    assert np.all(np.isfinite(prepared.log_density(draw.hyperplanes)))


def test_rejection_wastes_few_candidates():
    _, prepared = density_of(2)
    draw = prepared.draw(2000, rng_of(1))
    assert draw.candidates < 1.5 * 2000 / draw.acceptance


@every_sampler
@pytest.mark.parametrize("n", [1, 40])
def test_samples_are_those_of_their_seed(sampler, n):
    _, prepared = density_of(2, sampler=sampler)
    first, again, other = (prepared.sample(n, rng_of(seed)) for seed in (7, 7, 8))
    assert_array_equal(first.normals, again.normals)
    assert_array_equal(first.offsets, again.offsets)
    assert np.all(first.offsets != other.offsets)


@every_sampler
@pytest.mark.parametrize(("s", "data"), [(1, "gradients"), (2, "hessians")])
def test_eight_dimensions(sampler, s, data):
    jet = scattered(8, K=60)
    prepared = Representation(s, 0.5, "cauchy", data, sampler=replace(sampler)).prepare(jet)
    planes = prepared.sample(300, rng_of(1))
    assert len(planes) == 300
    assert np.all(np.isfinite(prepared.log_density(planes)))


# --- Where sampling fails
def test_rejection_gives_up_with_what_it_saw():
    _, prepared = density_of(2, sampler=Rejection(max_candidates=1))
    with pytest.raises(ValueError, match=r"accepted (\d+) of 500 candidates, 500 hyperplanes were requested: use a"):
        prepared.sample(500, rng_of(1))


def test_chains_that_are_stuck_are_not_trusted():
    _, prepared = density_of(2, sampler=Metropolis(min_acceptance=0.99))
    with pytest.raises(ValueError, match=r"200 chains accepted \d+ of \d+ moves"):
        prepared.sample(500, rng_of(1))


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (Rejection(max_candidates=50), "accepted 0 of 250 candidates, 5 hyperplanes were requested"),
        (Metropolis(), "5 chains accepted 0 of .* and 5 of them found no hyperplane of positive density"),
    ],
    ids=repr,
)
def test_a_domain_that_no_candidate_meets(sampler, message):
    _, prepared = density_of(1, domain=Box([40.0], [41.0]), mollifier="gaussian", sampler=sampler)
    with pytest.raises(ValueError, match=message):
        prepared.sample(5, rng_of(1))
    assert len(Rejection().draw(prepared, 0, rng_of(1)).hyperplanes) == 0


@pytest.mark.parametrize("seed", range(3))
def test_chains_that_find_the_domain_late_return_nothing_from_before(seed):
    """All hyperplanes meet the domain, or there is an error that says why not."""
    domain = Ball(0.05)
    _, prepared = density_of(2, domain=domain, sampler=Metropolis(burn_in=20, thinning=10, chains=20))
    try:
        planes = prepared.sample(400, rng_of(seed))
    except ValueError as error:
        assert "accepted" in str(error)  # noqa: PT017
    else:
        assert np.all(meets(planes, domain))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rejection(max_candidates=0), "`max_candidates` must be .*, got 0"),
        (lambda: Metropolis(burn_in=-1), "`burn_in` must be .*, got -1"),
        (lambda: Metropolis(thinning=0), "`thinning` must be .*, got 0"),
        (lambda: Metropolis(chains=0), "`chains` must be .*, got 0"),
    ],
    ids=["max_candidates", "burn_in", "thinning", "chains"],
)
def test_wrong_parameters_are_named_with_what_came(make, message):
    with pytest.raises(ValueError, match=message):
        make()
