"""The test problems against textbook formulas, written here once more in a form that takes complex numbers.

Gradients are checked by the complex step, Hessians by Cauchy's integral over a torus: both are exact up to
rounding for analytic functions, and neither shares code with the package.
"""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from nurf import problems
from nurf.jets import Jet
from nurf.problems._huber import huber

EPS = np.finfo(float).eps


def textbook_huber(t: Any) -> Any:
    root = np.sqrt(t * t)  # |t| for complex t near the real line
    return np.where(root.real < 0.5, t * t, root - 0.25)


def gaussian_bump(x: Any) -> Any:
    return np.exp(-((10 * x[:, 0]) ** 2) / 2)


def planar_wave(x: Any) -> Any:
    return np.sin(5 * (x[:, 0] - math.sqrt(2) * x[:, 1]))


def checkmark(x: Any) -> Any:
    square = 9 * sum(x[:, i] ** 2 for i in range(1, x.shape[1]))
    h = np.where(square.real < 0.25, square, np.sqrt(np.where(square.real < 0.25, 1, square)) - 0.25)
    exponent = (8 * (x[:, 0] - (-1 / 3 + 2 / 3 * h))) ** 2
    for i in range(1, x.shape[1]):
        exponent = exponent + (8 * 0.5**i * x[:, i]) ** 2
    return np.exp(-exponent / 2)


def corner(x: Any) -> Any:
    u, v = x[:, 0], x[:, 1]
    return np.where((u.real > 0) & (u.real > v.real), u, np.where(v.real > 0, v, 0))


def separable(x: Any) -> Any:
    return np.cos(10 * x[:, 0]) + textbook_huber(7 * x[:, 1])


def corner_peak(a: float) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        return 10 / (1 + a * sum(x.T)) ** (x.shape[1] + 1)

    return f


def robot_arm(x: Any) -> Any:
    if x.shape[1] % 2:
        x = np.concatenate([x[:, :1], np.zeros_like(x[:, :1]), x[:, 1:]], axis=1)
    u, v, angle = 0, 0, 0
    for i in range(x.shape[1] // 2):
        angle = angle + x[:, 2 * i + 1]
        u, v = u + x[:, 2 * i] * np.cos(angle), v + x[:, 2 * i] * np.sin(angle)
    return np.sqrt(u**2 + v**2)


def borehole(x: Any) -> Any:
    rw, r, Tu, Hu, Tl, Hl, L, Kw = x.T
    ln = np.log(r / rw)
    return 2 * np.pi * Tu * (Hu - Hl) / (ln * (1 + 2 * L * Tu / (ln * rw**2 * Kw) + Tu / Tl))


@dataclass(frozen=True)
class Case:
    """A problem, its formula in native units, and where that is analytic."""

    problem: problems.Problem
    formula: Callable[[Any], Any]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    radius: Callable[[Any], Any] = lambda x: np.full_like(x, 0.01)
    smooth: Callable[[Any], Any] = lambda x: np.full(len(x), True)
    special: tuple[tuple[float, ...], ...] = ()  # symmetric points, in native units

    def native(self, X: Any) -> Any:
        """Scale cube -> box, by way of the unit cube."""
        unit = (np.sqrt(X.shape[1]) * X + 1) / 2
        return np.array(self.lower) * (1 - unit) + np.array(self.upper) * unit

    def scale(self) -> Any:
        return (np.array(self.upper) - np.array(self.lower)) / 2 * np.sqrt(len(self.lower))

    def points(self, n: int = 12) -> Any:
        """Random points of the scaled domain where ``f`` is smooth, then the special ones."""
        d = len(self.lower)
        X = np.random.default_rng(d).uniform(-1, 1, (50 * n, d)) / np.sqrt(d)
        X = X[self.smooth(self.native(X))][:n]
        assert len(X) == n
        native = np.array(self.special).reshape(-1, d)
        assert np.all(self.smooth(native))
        return np.concatenate([X, (native - self.native(np.zeros((1, d)))) / self.scale()])


def cube(d: int) -> dict[str, Any]:
    reach = (1 / math.sqrt(d),) * d
    return {"lower": tuple(-r for r in reach), "upper": reach}


def arm_box(d: int) -> dict[str, Any]:
    upper = (1.0, 2 * math.pi) * ((d + 1) // 2)
    return {"lower": (0.0,) * d, "upper": upper if d % 2 == 0 else upper[:1] + upper[2:]}


def away(size: Callable[[Any], Any], kink: float) -> Callable[[Any], Any]:
    return lambda x: np.abs(size(x) - kink) > 0.03


def tail(x: Any) -> Any:
    return np.linalg.norm(x[:, 1:], axis=1)


def corner_smooth(x: Any) -> Any:
    return np.partition(np.column_stack([np.zeros(len(x)), x]), 1, axis=1) @ [0, -1, 1] > 0.05


CHECKMARK_POINTS = {
    2: ((0.0, 0.0), (-0.3, 0.0), (0.2, 0.3), (0.2, -0.3)),
    3: ((0.0, 0.0, 0.0), (-0.3, 0.0, 0.0), (0.1, 0.0, 0.4), (0.1, -0.3, 0.3)),
    5: ((0.0,) * 5, (-0.3, 0.0, 0.0, 0.0, 0.0), (-0.2, 0.0, 0.2, 0.0, 0.2), (-0.2, 0.05, 0.05, 0.05, 0.05)),
}
ARM_POINTS = {
    2: ((0.5, math.pi), (1.0, 0.0)),
    6: ((0.5, 0.0, 0.5, 0.0, 0.5, 0.0), (0.5, 1.0, 0.5, 2 * math.pi / 4, 0.5, 2 * math.pi / 4)),
    7: ((0.5, 0.5, 0.0, 0.5, 0.0, 0.5, 0.0), (1.0, 0.5, math.pi, 0.0, math.pi, 0.0, 0.0)),
    8: ((0.5, math.pi / 4) * 4, (0.5, 0.0) * 4, (1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0)),
}
CASES = [
    Case(problems.GaussianBump(), gaussian_bump, **cube(1), special=((0.0,), (0.1,), (1.0,))),
    Case(problems.PlanarWave(), planar_wave, **cube(2), special=((0.0, 0.0), (0.5, -0.5), (0.5, 0.5))),
    *(
        Case(problems.Checkmark(d), checkmark, **cube(d), smooth=away(tail, 1 / 6), special=CHECKMARK_POINTS[d])
        for d in (2, 3, 5)
    ),
    Case(problems.Corner(), corner, **cube(2), smooth=corner_smooth, special=((0.5, 0.0), (0.0, 0.5))),
    Case(
        problems.Separable(),
        separable,
        **cube(2),
        smooth=away(lambda x: np.abs(x[:, 1]), 1 / 14),
        special=((0.0, 0.0), (0.0, 0.3), (0.3, 0.0)),
    ),
    *(
        Case(
            problems.CornerPeak(d, a=a),
            corner_peak(a),
            (0.0,) * d,
            (1.0,) * d,
            special=((0.0,) * d, (0.5,) * d, (1.0,) * d),
        )
        for d, a in [(1, 2.0), (3, 2.0), (4, 2.0), (3, 0.7)]
    ),
    *(
        Case(
            problems.RobotArm(d),
            robot_arm,
            **arm_box(d),
            smooth=lambda x: robot_arm(x) > 0.3,
            special=ARM_POINTS[d],
        )
        for d in (2, 6, 7, 8)
    ),
    Case(
        problems.Borehole(),
        borehole,
        (0.05, 100, 63070, 990, 63.1, 700, 1120, 9855),
        (0.15, 50000, 115600, 1110, 116, 820, 1680, 12045),
        radius=lambda x: 0.1 * x,
        special=((0.1, 25050, 89335, 1050, 89.55, 760, 1400, 10950), (0.05, 100, 63070, 990, 63.1, 700, 1120, 9855)),
    ),
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.problem))


def complex_step(f: Callable[[Any], Any], x: Any, step: Any) -> Any:
    """The gradient of ``f`` as ``Im f(x + i h e_j) / h``: nothing cancels."""
    columns = []
    for j in range(x.shape[1]):
        h = 1e-20 * step[:, j]
        shifted = x.astype(complex)
        shifted[:, j] += 1j * h
        columns.append(f(shifted).imag / h)
    return np.stack(columns, axis=1)


def cauchy_hessian(f: Callable[[Any], Any], x: Any, radius: Any) -> tuple[Any, Any]:
    """The mean of ``f(x + z e_j + w e_k) / (z w)`` over two circles, and the size of its rounding errors."""
    n, d = x.shape
    # 24 nodes leave out 2 (r s)^24 / 24! of a function that grows like exp(s x): below 1e-16 for s = 200, r = 0.01
    circle = np.exp(2j * np.pi * np.arange(24) / 24)
    z, w = (part.ravel() for part in np.meshgrid(circle, circle))
    hessian, rounding = np.empty((n, d, d)), np.empty((n, d, d))
    for j, k in itertools.product(range(d), range(d)):
        shifted = np.repeat(x.astype(complex)[:, None, :], len(z), axis=1)
        shifted[:, :, j] += radius[:, j, None] * z
        shifted[:, :, k] += radius[:, k, None] * w
        values = f(shifted.reshape(-1, d)).reshape(n, -1)
        area = radius[:, j] * radius[:, k]
        hessian[:, j, k] = (values / (z * w)).mean(axis=1).real / area
        rounding[:, j, k] = EPS * np.abs(values).max(axis=1) / area
    return hessian, rounding


@every_case
def test_values_are_those_of_the_textbook(case):
    X = case.points(200)
    expected = case.formula(case.native(X))
    np.testing.assert_allclose(case.problem.value(X), expected, rtol=1e-12, atol=1e-14)
    assert np.ptp(expected) > 0.1 * np.abs(expected).max()  # a test on a constant would say little


@every_case
def test_gradient_against_complex_step(case):
    X = case.points(100)
    x = case.native(X)
    expected = complex_step(case.formula, x, case.radius(x)) * case.scale()
    tolerance = 1e-13 * (1 + np.abs(expected).max())
    np.testing.assert_allclose(case.problem.gradient(X), expected, rtol=1e-11, atol=tolerance)


@every_case
def test_hessian_against_cauchy_integral(case):
    X = case.points()
    x, scale = case.native(X), case.scale()
    expected, rounding = cauchy_hessian(case.formula, x, case.radius(x))
    error = np.abs(case.problem.hessian(X) - expected * np.outer(scale, scale))
    assert np.all(error <= 10 * rounding * np.outer(scale, scale) + 1e-10 * np.abs(expected * np.outer(scale, scale)))


@every_case
def test_hessian_is_symmetric(case):
    hessian = case.problem.hessian(case.points(50))
    largest = np.abs(hessian).max(axis=(1, 2), keepdims=True)
    assert np.all(np.abs(hessian - hessian.swapaxes(1, 2)) <= 4 * EPS * largest)


@every_case
def test_domains(case):
    problem, d = case.problem, len(case.lower)
    assert problem.dimension == d
    np.testing.assert_array_equal(problem.native_domain.lower, case.lower)
    np.testing.assert_array_equal(problem.native_domain.upper, case.upper)
    np.testing.assert_array_equal(problem.domain.upper, np.full(d, 1 / np.sqrt(d)))
    np.testing.assert_array_equal(problem.domain.lower, -problem.domain.upper)
    assert np.linalg.norm(problem.domain.upper) == pytest.approx(1, abs=4 * EPS)


@every_case
def test_native_units_round_trip_and_chain_rule(case):
    X = case.points(50)
    native = type(case.problem)(**{**vars(case.problem), "native": True})
    x, scale = case.problem.to_native(X), case.scale()
    size = np.maximum(np.abs(case.lower), np.abs(case.upper))
    assert np.all(np.abs(x - case.native(X)) <= 8 * EPS * size)
    np.testing.assert_allclose(case.problem.from_native(x), X, rtol=0, atol=64 * EPS)
    np.testing.assert_array_equal(native.to_native(x), x)
    np.testing.assert_array_equal(native.from_native(x), x)
    np.testing.assert_array_equal(native.domain.lower, case.lower)
    np.testing.assert_array_equal(native.domain.upper, case.upper)
    np.testing.assert_array_equal(native.value(x), case.problem.value(X))
    np.testing.assert_allclose(native.gradient(x) * scale, case.problem.gradient(X), rtol=1e-14)
    np.testing.assert_allclose(native.hessian(x) * np.outer(scale, scale), case.problem.hessian(X), rtol=1e-14)


@every_case
def test_native_is_scaled_in_the_papers_own_coordinates(case):
    X = case.points()
    same = case.problem.name not in ("corner_peak", "robot_arm", "borehole")
    assert np.array_equal(case.problem.to_native(X), X) == same


@every_case
@pytest.mark.parametrize("native", [False, True])
def test_sample_is_uniform(case, native):
    problem = type(case.problem)(**{**vars(case.problem), "native": native})
    n, box = 20_000, problem.domain
    X = problem.sample(n, np.random.default_rng(5))
    assert X.shape == (n, problem.dimension)
    assert np.all((box.lower <= X) & (box.upper >= X))
    U = (X - box.lower) / (box.upper - box.lower)
    for column in U.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 4.5 / np.sqrt(n)
    correlation = np.atleast_2d(np.corrcoef(U.T)) - np.eye(problem.dimension)
    assert np.abs(correlation).max() < 4.5 / np.sqrt(n)
    np.testing.assert_array_equal(X, problem.sample(n, np.random.default_rng(5)))


def test_robot_arm_mean_square_over_a_sample():
    """The angles are independent and uniform, so ``E f^2 = sum E L_i^2 = segments / 3``."""
    for d in (6, 7, 8):
        problem = problems.RobotArm(d)
        squares = problem.value(problem.sample(100_000, np.random.default_rng(d))) ** 2
        assert squares.mean() == pytest.approx(problem.segments / 3, abs=4 * squares.std() / np.sqrt(100_000))


@pytest.mark.parametrize(("d", "n", "shape"), [(1, 1000, (1000, 1)), (2, 31, (961, 2)), (3, 4, (64, 3))])
@pytest.mark.parametrize("native", [False, True])
def test_grid(d, n, shape, native):
    problem = problems.CornerPeak(d, native=native)
    X = problem.grid(n)
    assert X.shape == shape
    box = problem.domain
    np.testing.assert_array_equal(X[0], box.lower)
    np.testing.assert_array_equal(X[-1], box.upper)
    axis = [box.lower[0] + (box.upper[0] - box.lower[0]) * i / (n - 1) for i in range(n)]
    np.testing.assert_allclose(X, list(itertools.product(axis, repeat=d)), rtol=0, atol=4 * EPS)


def test_grid_runs_over_each_axis_of_the_box():
    X = problems.RobotArm(2, native=True).grid(3)
    expected = list(itertools.product([0, 0.5, 1], [0, math.pi, 2 * math.pi]))
    np.testing.assert_allclose(X, expected, rtol=1e-15)


@every_case
def test_jet_without_noise(case):
    X = case.points()
    jet = case.problem.jet(X)
    assert isinstance(jet, Jet)
    np.testing.assert_array_equal(jet.X, X)
    np.testing.assert_array_equal(jet.y, case.problem.value(X))
    np.testing.assert_array_equal(jet.gradients, case.problem.gradient(X))
    np.testing.assert_array_equal(jet.hessians, case.problem.hessian(X))


def test_jet_noise_is_on_the_values_only():
    problem = problems.PlanarWave()
    X = problem.sample(20_000, np.random.default_rng(0))
    clean, noisy = problem.jet(X), problem.jet(X, noise=0.02, rng=np.random.default_rng(1))
    noise = noisy.y - clean.y
    assert noise.std() == pytest.approx(0.02, rel=0.02)
    assert stats.kstest(noise / 0.02, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(noise, clean.y)[0, 1]) < 4 / np.sqrt(len(X))
    np.testing.assert_array_equal(noisy.X, clean.X)
    np.testing.assert_array_equal(noisy.gradients, clean.gradients)
    np.testing.assert_array_equal(noisy.hessians, clean.hessians)
    again = problem.jet(X, noise=0.02, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(noisy.y, again.y)


def test_borehole_numbers():
    """Plain Python arithmetic in physical units, at the middle and at the two extreme corners."""
    problem = problems.get("borehole", native=True)
    rw, r, Tu, Hu, Tl, Hl, L, Kw = point = (0.1, 25050.0, 89335.0, 1050.0, 89.55, 760.0, 1400.0, 10950.0)
    ln = math.log(r / rw)
    by_hand = 2 * math.pi * Tu * (Hu - Hl) / (ln * (1 + 2 * L * Tu / (ln * rw * rw * Kw) + Tu / Tl))
    assert by_hand == pytest.approx(70.87291263681897, rel=1e-14)
    assert problem.value([point])[0] == pytest.approx(by_hand, rel=1e-14)
    assert problems.get("borehole").value(np.zeros((1, 8)))[0] == pytest.approx(by_hand, rel=1e-14)
    extremes = problem.value(problem.grid(2))
    assert extremes.min() == pytest.approx(7.819676328755232, rel=1e-13)
    assert extremes.max() == pytest.approx(309.5755876604079, rel=1e-13)
    corners = np.argmin(extremes), np.argmax(extremes)  # digits: which end of rw, r, Tu, Hu, Tl, Hl, L, Kw
    assert corners == (0b01000110, 0b10111001)


@pytest.mark.parametrize(
    ("name", "parameters", "point", "value"),
    [
        ("gaussian_bump", {}, [0.1], math.exp(-0.5)),
        ("planar_wave", {}, [0.1, 0.0], math.sin(0.5)),
        ("planar_wave", {}, [0.1 * math.sqrt(2), 0.1], 0.0),  # constant along (sqrt(2), 1): the minus sign
        ("checkmark", {}, [-1 / 3, 0.0], 1.0),
        ("checkmark", {}, [0.25, 0.25], math.exp(-((8 * 0.25) ** 2 + 1) / 2)),  # H = 0
        ("checkmark", {}, [-0.25, 1 / 9], math.exp(-((8 * (-0.25 + 1 / 3 - 2 / 27)) ** 2 + (4 / 9) ** 2) / 2)),
        ("checkmark", {"dimension": 5}, [-1 / 3, 0, 0, 0, 0], 1.0),
        ("checkmark", {"dimension": 5}, [1 / 6, 0, 0, 0, 1 / 3], math.exp(-((0.5 / 3) ** 2) / 2)),
        ("corner", {}, [-0.2, -0.1], 0.0),
        ("corner", {}, [0.2, 0.3], 0.3),
        ("separable", {}, [0.0, 0.0], 1.0),
        ("separable", {}, [math.pi / 10, 0.5], -1 + 3.25),
        ("separable", {}, [math.pi / 10, -1 / 21], -1 + 1 / 9),
        ("corner_peak", {"dimension": 3}, [0, 0, 0], 10.0),
        ("corner_peak", {"dimension": 3}, [1, 1, 1], 10 / 7**4),
        ("corner_peak", {"dimension": 4, "a": 1.0}, [1, 0, 0, 0], 10 / 2**5),
        ("robot_arm", {"dimension": 4}, [1.0, 0.3, 1.0, math.pi / 2], math.sqrt(2)),
        ("robot_arm", {"dimension": 6}, [0.5, 1.0, 0.25, 0.0, 0.125, 0.0], 0.875),
        # angles accumulate: two right turns bring the third segment back along the first
        ("robot_arm", {"dimension": 6}, [1.0, 0.0, 0.5, math.pi / 2, 1.0, math.pi / 2], 0.5),
        ("robot_arm", {"dimension": 5}, [1.0, 0.5, math.pi / 2, 1.0, math.pi / 2], 0.5),
    ],
)
def test_known_values(name, parameters, point, value):
    problem = problems.get(name, native=True, **parameters)
    assert problem.value([point])[0] == pytest.approx(value, rel=1e-14, abs=1e-14)  # sin(5 z) of a rounded z


def test_checkmark_is_a_graph_over_all_but_the_first_coordinate():
    """On ``x_1 = H(z)`` only the Gaussian in ``z`` is left; ``H`` depends on ``|z|`` and not on ``x_1``."""
    z = np.random.default_rng(0).normal(size=(50, 3)) * 0.2
    h = [t * t if t < 0.5 else t - 0.25 for t in 3 * np.sqrt((z**2).sum(axis=1))]
    X = np.column_stack([-1 / 3 + 2 / 3 * np.array(h), z])
    expected = np.exp(-((z * [4, 2, 1]) ** 2).sum(axis=1) / 2)
    np.testing.assert_allclose(problems.Checkmark(4).value(X), expected, rtol=1e-13)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_checkmark_near_the_axis_has_no_division_by_zero(d):
    """The Hessian is continuous at ``z = 0``, from a distance where ``|z|^2`` underflows."""
    problem = problems.Checkmark(d)
    X = np.zeros((3, d))
    X[1, 1:], X[2, -1] = 1e-200, 1e-9
    hessian = problem.hessian(X)
    np.testing.assert_allclose(hessian[1], hessian[0], rtol=1e-13, atol=1e-190)
    np.testing.assert_allclose(hessian[2], hessian[0], rtol=0, atol=1e-5)
    height = 1 / 3  # x_1 - H(0); at z = 0: f'' = f ((64 u)^2 - 64), f_zz = f (64 u 12 - sigma^2)
    f = math.exp(-((8 * height) ** 2) / 2)
    expected = [(64 * height) ** 2 - 64] + [64 * height * 12 - (8 / 2**i) ** 2 for i in range(1, d)]
    np.testing.assert_allclose(hessian[0], f * np.diag(expected), rtol=1e-13, atol=1e-15)


def test_huber():
    t = np.array([-2.0, -0.5, -0.49, 0.0, 0.25, 0.5, 3.0])
    value, slope, curvature = huber(t)
    np.testing.assert_allclose(value, [1.75, 0.25, 0.2401, 0, 0.0625, 0.25, 2.75], rtol=1e-15)
    np.testing.assert_allclose(slope, [-1, -1, -0.98, 0, 0.5, 1, 1], rtol=1e-15)
    np.testing.assert_array_equal(curvature, [0, 0, 2, 2, 2, 0, 0])


def test_corner_takes_the_first_of_the_pieces_that_tie():
    problem = problems.Corner()
    X = np.array([[0, 0], [0, -1], [-1, 0], [0.5, 0.5], [0.5, 0.2], [0.2, 0.5], [-0.1, -0.2], [-0.1, 0.2]])
    expected = [[0, 0], [0, 0], [0, 0], [1, 0], [1, 0], [0, 1], [0, 0], [0, 1]]
    np.testing.assert_array_equal(problem.gradient(X), expected)
    np.testing.assert_array_equal(problem.hessian(X), np.zeros((8, 2, 2)))


@pytest.mark.parametrize(
    "point",
    [
        [0.0, 1.0, 0.0, 2.0, 0.0, 3.0],  # no length
        [0.5, 0.0, 0.5, math.pi, 0.0, 0.0],  # there and back
        [1.0, 0.3, 1.0, 2 * math.pi / 3, 1.0, 2 * math.pi / 3],  # a triangle
    ],
)
def test_robot_arm_that_closes(point):
    """At the kink the derivatives are zero by convention, and finite next to it."""
    for native in (False, True):
        problem = problems.RobotArm(native=native)
        X = [point] if native else problem.from_native([point])
        jet = problem.jet(X)
        assert jet.y[0] == pytest.approx(0, abs=1e-14)
        np.testing.assert_array_equal(jet.gradients, np.zeros((1, 6)))
        np.testing.assert_array_equal(jet.hessians, np.zeros((1, 6, 6)))
    near = problems.RobotArm(native=True).gradient(np.array([point]) + 1e-6)
    assert np.linalg.norm(near[:, ::2], axis=1) > 0.5  # the convention holds at the kink only


def test_robot_arm_ignores_its_first_angle_and_odd_dimensions_drop_it():
    even, odd = problems.RobotArm(8, native=True), problems.RobotArm(7, native=True)
    assert even.segments == odd.segments == 4
    X = even.sample(200, np.random.default_rng(3))
    kept = [0, 2, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(odd.value(X[:, kept]), even.value(X), rtol=1e-12)
    gradient, hessian = even.gradient(X), even.hessian(X)
    largest = np.abs(hessian).max(axis=(1, 2))
    np.testing.assert_allclose(gradient[:, 1], 0, atol=1e-14)
    assert np.all(np.abs(hessian[:, 1]).max(axis=1) < 1e-13 * largest)
    np.testing.assert_allclose(odd.gradient(X[:, kept]), gradient[:, kept], rtol=0, atol=1e-13)
    assert np.all(np.abs(odd.hessian(X[:, kept]) - hessian[:, kept][:, :, kept]).max(axis=(1, 2)) < 1e-12 * largest)


def test_names_and_get():
    assert problems.names() == [
        "gaussian_bump",
        "planar_wave",
        "checkmark",
        "corner",
        "separable",
        "corner_peak",
        "robot_arm",
        "borehole",
    ]
    sources = {"corner_peak": "Genz", "robot_arm": "Owen", "borehole": "Morris"}
    for name in problems.names():
        problem = problems.get(name)
        assert problem.name == name
        assert problem == problems.get(name, dimension=problem.dimension)
        assert sources.get(name, "Pieper") in problem.source
        assert type(problem).__name__ in problems.__all__
    assert {case.problem.name for case in CASES} == set(problems.names())
    assert problems.get("corner_peak", dimension=4, a=3.0) == problems.CornerPeak(4, a=3.0)
    assert problems.get("robot_arm", dimension=np.int64(8)).segments == 4


def test_problems_are_specs():
    problem = problems.Checkmark(3)
    assert problem == problems.Checkmark(dimension=3)
    assert hash(problem) == hash(problems.Checkmark(3))
    assert len({problem, problems.Checkmark(4), problems.Checkmark(3, native=True), problems.CornerPeak(3)}) == 4
    assert problems.CornerPeak(3, a=1.0) != problems.CornerPeak(3)
    assert repr(problems.CornerPeak(3)) == "CornerPeak(dimension=3, native=False, a=2.0)"
    assert pickle.loads(pickle.dumps(problem)) == problem
    with pytest.raises(FrozenInstanceError):
        problem.dimension = 5  # type: ignore[misc]


def test_a_box_that_is_changed_leaves_the_problem_alone():
    problem = problems.Borehole()
    problem.native_domain.lower[:] = -1
    problem.domain.upper[:] = 7
    np.testing.assert_array_equal(problem.native_domain.lower[:2], [0.05, 100])
    np.testing.assert_array_equal(problem.domain.upper, np.full(8, 1 / np.sqrt(8)))


@every_case
def test_no_rows_and_lists(case):
    problem, d = case.problem, case.problem.dimension
    jet = problem.jet(np.empty((0, d)))
    assert (jet.y.shape, jet.gradients.shape, jet.hessians.shape) == ((0,), (0, d), (0, d, d))
    X = case.points()
    copy = X.copy()
    np.testing.assert_array_equal(problem.jet(X.tolist()).hessians, problem.jet(X).hessians)
    np.testing.assert_array_equal(X, copy)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: problems.get("checkmrk"), "unknown problem 'checkmrk': expected one of gaussian_bump, .*, borehole"),
        (lambda: problems.get("checkmark", dimension=1), "'checkmark' must be an integer >= 2, got 1"),
        (lambda: problems.get("borehole", dimension=3), "'borehole' must be 8, got 3"),
        (lambda: problems.get("gaussian_bump", dimension=2), "'gaussian_bump' must be 1, got 2"),
        (lambda: problems.get("corner_peak", dimension=0), "'corner_peak' must be an integer >= 1, got 0"),
        (lambda: problems.get("robot_arm", dimension=6.0), "'robot_arm' must be an integer >= 2, got 6.0"),
        (lambda: problems.get("corner_peak", a=0.0), "`a` of 'corner_peak' must be a number > 0, got 0.0"),
        (lambda: problems.get("corner_peak", a=math.nan), "must be a number > 0, got nan"),
        (lambda: problems.Borehole().value(np.zeros((5, 3))), r"expected \(n, 8\), got \(5, 3\)$"),
        (lambda: problems.Borehole().hessian(np.zeros((8, 3))), r"expected \(n, 8\), got \(8, 3\): transpose it\?"),
        (lambda: problems.GaussianBump().gradient([0.0, 1.0]), r"expected \(n, 1\), got \(2,\)"),
        (lambda: problems.Corner().to_native([[0.0, math.nan]]), r"`X` must be finite, got nan at index \(0, 1\)"),
        (lambda: problems.Corner().from_native([[math.inf, 0.0]]), "`X` must be finite, got inf"),
        (lambda: problems.Corner().jet([[0.0, 0.0]], noise=0.1), "`noise` = 0.1 needs an `rng`"),
        (lambda: problems.Corner().jet([[0.0, 0.0]], noise=-0.1), "must be a standard deviation >= 0, got -0.1"),
        (lambda: problems.Corner().jet([[0.0, 0.0]], noise=math.nan), "must be a standard deviation >= 0, got nan"),
        (lambda: problems.Corner().grid(1), "`n_per_axis` must be at least 2, .* got 1"),
    ],
)
def test_errors_say_what_was_expected(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_wrong_types_are_named():
    with pytest.raises(TypeError, match=r"must be a numpy.random.Generator, got 0: use np.random.default_rng"):
        problems.Corner().sample(3, 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'a'"):
        problems.get("corner", a=1.0)
