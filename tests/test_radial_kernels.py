"""Radial kernels and functions made of them: finite differences, Monte Carlo, and dense sums."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from scipy.stats import special_ortho_group
from sklearn.gaussian_process.kernels import RBF, Matern

from cases import RADIAL_KERNELS
from nurf._scaling import Scaling
from nurf.kernels import ErfKernel, GaussianKernel, KernelNetwork, MaternKernel
from nurf.kernels._functionals import Covariances, Functionals, covariance, variances
from nurf.kernels._network import Centers
from pairwise import pairwise

D = 3
ORDERS = list(product(range(3), repeat=2))

kernels = pytest.mark.parametrize("kernel", RADIAL_KERNELS, ids=repr)
orders = pytest.mark.parametrize(("p", "q"), ORDERS, ids=str)


def difference(f, h):
    """The derivative of ``f`` at zero by central differences of order four, with the step ``h``."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def functionals(order, n=4, seed=0, d=D):
    """Derivatives along random directions: two at the first point, none at the last but one."""
    rng = np.random.default_rng([seed, order])
    index = np.array([0, 0, *range(1, n - 2), n - 1])
    return Functionals(rng.uniform(-1, 1, (n, d)), index, tuple(rng.normal(size=(order, len(index), d))))


def by_differences(kernel, a, b, h=3e-2):
    """Covariances, by differences of the kernel along one direction after the other.

    Each of up to four differences has an error of about ``h^4 / 30`` times the fifth derivative of what it is taken of,
    which is at most some hundred: 1e-5. Rounding adds ``eps / h^4 = 3e-10``.
    """

    def entry(x, y, left, right):
        if left:
            return difference(lambda t: entry(x + t * left[0], y, left[1:], right), h)
        if right:
            return difference(lambda t: entry(x, y + t * right[0], left, right[1:]), h)
        return kernel.profile(np.asarray(np.sum((x - y) ** 2) / 2))

    return np.array(
        [
            [
                entry(a.points[k], b.points[m], [v[i] for v in a.directions], [w[j] for w in b.directions])
                for j, m in enumerate(b.index)
            ]
            for i, k in enumerate(a.index)
        ]
    )


def short(part):
    """The same functionals with directions of length 0.3: differences along them have small errors."""
    lengths = [0.3 / np.linalg.norm(v, axis=1, keepdims=True) for v in part.directions]
    return Functionals(part.points, part.index, tuple(v * s for v, s in zip(part.directions, lengths, strict=True)))


class TestProfiles:
    @kernels
    @pytest.mark.parametrize("order", range(1, 6))
    def test_are_derivatives_of_each_other(self, kernel, order):
        """The error of a difference is ``h^4 / 30`` times the fifth derivative; relative ones are below 1e-8 here."""
        t = np.array([0.2, 0.7, 2.0, 5.0])
        numerical = difference(lambda h: kernel.profile(t + h, order - 1), 1e-3)
        assert_allclose(kernel.profile(t, order), numerical, rtol=1e-6)

    @kernels
    @pytest.mark.parametrize("order", range(6))
    def test_are_finite_everywhere(self, kernel, order):
        assert np.all(np.isfinite(kernel.profile(np.array([0.0, 1e-300, 1e-30, 1e3, 1e10]), order)))

    @kernels
    def test_two_derivatives_at_zero(self, kernel):
        """One-sided differences. Matern's second derivative has a kink at zero: an error of ``sqrt(10 h) = 3e-3``."""
        for order in (1, 2):
            h = 1e-6
            slope = (kernel.profile(np.array(h), order - 1) - kernel.profile(np.array(0.0), order - 1)) / h
            assert_allclose(kernel.profile(np.array(0.0), order), slope, rtol=1e-2)

    def test_against_scikit_learn(self):
        X = np.random.default_rng(0).normal(size=(6, D))
        assert_allclose(GaussianKernel()(X, X), RBF()(X), rtol=1e-13)
        assert_allclose(MaternKernel()(X, X), Matern(nu=2.5)(X), rtol=1e-13)

    @kernels
    def test_depend_on_the_distance_alone(self, kernel):
        rng = np.random.default_rng(0)
        X, Y, shift = rng.normal(size=(5, D)), rng.normal(size=(4, D)), rng.normal(size=D)
        turn = special_ortho_group.rvs(D, random_state=0)
        assert_allclose(kernel(X @ turn + shift, Y @ turn + shift), kernel(X, Y), rtol=1e-13)
        assert kernel == type(kernel)()


class TestCovariances:
    @kernels
    @orders
    def test_are_derivatives_of_the_kernel(self, kernel, p, q):
        a, b = short(functionals(p)), short(functionals(q, 5, seed=1))
        found = covariance(kernel, a, b)
        assert found.shape == (len(a), len(b))
        assert_allclose(found, by_differences(kernel, a, b), rtol=1e-4, atol=1e-5)

    @kernels
    @orders
    def test_are_symmetric(self, kernel, p, q):
        a, b = functionals(p), functionals(q, seed=1)
        assert_allclose(covariance(kernel, a, b), covariance(kernel, b, a).T, rtol=1e-12, atol=1e-12)

    @kernels
    @orders
    def test_at_one_point(self, kernel, p, q):
        """Odd ones vanish, those of slopes are ``-phi' <v, w>``. The fourth derivative of Matern is that at zero."""
        x = np.zeros((1, D))
        rng = np.random.default_rng(0)
        v, w = rng.normal(size=(2, 2, 1, D))
        index = np.zeros(1, int)
        a, b = Functionals(x, index, tuple(v[:p])), Functionals(x, index, tuple(w[:q]))
        found = covariance(kernel, a, b)[0, 0]
        first, second = (kernel.profile(np.array(0.0), order) for order in (1, 2))
        v, w = v[:, 0], w[:, 0]
        expected = {
            (0, 0): kernel.profile(np.array(0.0)),
            (1, 1): -first * v[0] @ w[0],
            (0, 2): first * w[0] @ w[1],
            (2, 0): first * v[0] @ v[1],
            (2, 2): second
            * ((v[0] @ v[1]) * (w[0] @ w[1]) + (v[0] @ w[0]) * (v[1] @ w[1]) + (v[0] @ w[1]) * (v[1] @ w[0])),
        }
        assert_allclose(found, expected.get((p, q), 0.0), rtol=1e-12)

    @kernels
    @pytest.mark.parametrize("order", [0, 1])
    def test_variances_are_those_of_functionals_with_themselves(self, kernel, order):
        a = functionals(order)
        assert_allclose(variances(kernel, a), np.diag(covariance(kernel, a, a)), rtol=1e-12)

    @kernels
    def test_nearly_equal_points(self, kernel):
        """At a distance of 1e-9 all covariances are those of equal points, up to 1e-8 of them."""
        rng = np.random.default_rng(0)
        x, v = rng.normal(size=(1, D)), rng.normal(size=(2, 1, D))
        index, step = np.zeros(1, int), 1e-9 * np.array([[0.6, 0.8, 0.0]])
        for p, q in ORDERS:
            a = Functionals(x, index, tuple(v[:p]))
            near, same = (Functionals(points, index, tuple(v[:q])) for points in (x + step, x))
            assert_allclose(covariance(kernel, a, near), covariance(kernel, a, same), rtol=1e-6, atol=1e-6)

    @kernels
    def test_are_positive_definite(self, kernel):
        """Of values, gradients and Hessians at random points; the erf network's of combinations that annul constants.

        The smallest eigenvalue may be negative by rounding: ``1e-15`` times the number of rows times the largest one.
        """
        for d, seed in ((1, 0), (2, 1), (4, 2)):
            X = np.random.default_rng(seed).uniform(-2, 2, (7, d))
            parts = [Functionals.at(X, order) for order in range(3)]
            K = np.block([[covariance(kernel, a, b) for b in parts] for a in parts])
            if isinstance(kernel, ErfKernel):
                ones = np.concatenate([part.monomials(0) for part in parts])
                K = K - ones @ np.linalg.lstsq(ones, K, rcond=None)[0]
                K = K - (ones @ np.linalg.lstsq(ones, K.T, rcond=None)[0]).T
            values = np.linalg.eigvalsh((K + K.T) / 2)
            assert values[0] > -1e-15 * len(K) * values[-1]

    @pairwise(kernels, orders, rank=[1, D])
    def test_slopes_are_the_derivatives_by_a_linear_map(self, kernel, p, q, rank):
        """With the derivative ``S`` by ``A^T A``, that by ``A`` is ``2 A S``."""
        a, b = functionals(p), functionals(q, 5, seed=1)
        rng = np.random.default_rng(2)
        weights, metric, step = rng.normal(size=(len(a), len(b))), *rng.normal(size=(2, rank, D))

        def covariances(t):
            return Covariances(kernel, *(part.mapped(metric + t * step) for part in (a, b)))

        slopes = covariances(0).slopes(weights, a, b)
        assert_allclose(slopes, slopes.T, rtol=1e-12)
        # Terms have sizes of 100 and more: rounding is 1e-13 / h of them, the error of the formula h^4.
        size = np.sum(np.abs(weights * covariances(0).matrix()))
        expected = difference(lambda t: np.sum(weights * covariances(t).matrix()), 1e-3)
        assert_allclose(np.sum(2 * metric @ slopes * step), expected, rtol=1e-6, atol=1e-7 * size)

    @pytest.mark.parametrize("order", [0, 1, 2])
    def test_slices_and_maps_of_functionals(self, order):
        a, metric = functionals(order), np.random.default_rng(3).normal(size=(2, D))
        whole = covariance(GaussianKernel(), a, a)
        for rows in (slice(0, 1), slice(1, 3), slice(2, None), slice(0, 0)):
            assert_allclose(covariance(GaussianKernel(), a[rows], a), whole[rows], rtol=1e-12, atol=1e-12)
        mapped = a.mapped(metric)
        assert_allclose(mapped.points, a.points @ metric.T)
        assert mapped.order == order

    @pytest.mark.parametrize("order", [0, 1, 2])
    def test_monomials(self, order):
        a = functionals(order)
        coefficients = np.arange(1.0, 2 + D)
        f = {
            0: lambda x, i: coefficients[0] + x @ coefficients[1:],
            1: lambda x, i: a.directions[0][i] @ coefficients[1:],
            2: lambda x, i: 0.0,
        }[order]
        expected = [f(a.points[k], i) for i, k in enumerate(a.index)]
        assert_allclose(a.monomials(1) @ coefficients, expected, atol=1e-14)
        assert_allclose(a.monomials(0)[:, 0], float(order == 0))


class TestWideErf:
    @pytest.mark.parametrize("d", [1, 4])
    def test_is_the_limit_of_erf_neurons(self, d):
        """Mean squares of differences of values of ``sqrt(4 R) sigma(a.x + b)``, over neurons drawn at random.

        They are ``2 (k(x, x) - k(x, x'))`` times ``sqrt(2 / pi) sqrt(2) delta``: the constant drops out. The margin is
        five standard errors of the mean over the neurons. Offsets beyond ``R = 12`` have neurons without a difference:
        with ``|x| < 1`` and ``a`` normal, ``|a.x|`` exceeds 8 with a probability below 1e-14.
        """
        rng, n, R, delta = np.random.default_rng(d), 400_000, 12.0, 0.4
        X = rng.normal(size=(4, d))
        X /= 1.1 * np.linalg.norm(X, axis=1).max()
        a, b = rng.normal(size=(n, d)), rng.uniform(-R, R, n)
        neurons = ndtr((a @ X.T + b[:, None]) / delta)  # the mollifier is normal with the standard deviation delta
        unit = np.sqrt(2) * delta
        K = ErfKernel()(X / unit, X / unit)
        for i, j in ((0, 1), (0, 2), (1, 3)):
            squares = 4 * R * (neurons[:, i] - neurons[:, j]) ** 2
            expected = np.sqrt(2 / np.pi) * unit * 2 * (K[i, i] - K[i, j])
            assert abs(squares.mean() - expected) < 5 * squares.std() / np.sqrt(n)


def network(kernel, degree=1, outputs=(), rank=2):
    """Values, gradients and Hessians at points, with random coefficients."""
    rng = np.random.default_rng(4)
    k = int(np.prod(outputs, dtype=int))
    centers = tuple(Centers(part, rng.normal(size=(len(part), k))) for part in (functionals(q) for q in range(3)))
    return KernelNetwork(
        kernel, rng.normal(size=(rank, D)), centers, rng.normal(size=(1 + D * degree, k)), tuple(outputs)
    )


@pytest.mark.parametrize("outputs", [(), (1,), (2,)], ids=str)
@pytest.mark.parametrize("degree", [0, 1])
class TestKernelNetwork:
    X = np.random.default_rng(5).uniform(-1, 1, (5, D))

    @kernels
    def test_values_are_sums_over_the_centers(self, kernel, degree, outputs):
        """The derivatives of the kernel by its second argument, one center after the other."""
        net = network(kernel, degree, outputs)
        expected = net.tail_coef[0] + (self.X @ net.tail_coef[1:] if degree else 0.0)
        at = Functionals(self.X @ net.metric.T, np.arange(len(self.X)))
        for part in net.centers:
            mapped = short(part.functionals.mapped(net.metric))
            sizes = [np.linalg.norm(v @ net.metric.T, axis=1) / 0.3 for v in part.functionals.directions]
            expected = expected + by_differences(kernel, at, mapped) * np.prod(sizes, axis=0) @ part.coef
        assert_allclose(net.value(self.X), expected.reshape(-1, *outputs), rtol=1e-3, atol=1e-3)

    @kernels
    def test_derivatives_are_differences(self, kernel, degree, outputs):
        net = network(kernel, degree, outputs)
        steps = np.eye(D)
        slopes = np.stack([difference(lambda h, e=e: net.value(self.X + h * e), 1e-3) for e in steps], axis=-1)
        bends = np.stack([difference(lambda h, e=e: net.gradient(self.X + h * e), 1e-3) for e in steps], axis=-1)
        assert net.gradient(self.X).shape == (5, *outputs, D)
        assert net.hessian(self.X).shape == (5, *outputs, D, D)
        assert_allclose(net.gradient(self.X), slopes, rtol=1e-5, atol=1e-5 * np.abs(slopes).max())
        assert_allclose(net.hessian(self.X), bends, rtol=1e-5, atol=1e-5 * np.abs(bends).max())

    def test_in_other_units(self, degree, outputs):
        net, rng = network(GaussianKernel(), degree, outputs), np.random.default_rng(6)
        change = Scaling(
            rng.normal(size=D) * 10, 10.0 ** np.array([-3, 0, 4]), rng.normal(size=outputs), rng.uniform(1, 9, outputs)
        )
        U = self.X * change.x_scale + change.x_center
        f = net.function(change)
        expected = net.value(self.X) * change.y_scale + change.y_center
        slopes = net.gradient(self.X) * change.y_scale[..., None] / change.x_scale
        bends = net.hessian(self.X) * change.y_scale[..., None, None] / change.x_scale / change.x_scale[:, None]
        assert_allclose(net.in_units_of(change).value(U), expected, rtol=1e-9, atol=1e-9)
        assert_allclose(
            net.in_units_of(change).gradient(U) * change.x_scale, slopes * change.x_scale, rtol=1e-7, atol=1e-7
        )
        unit = change.x_scale * change.x_scale[:, None]
        assert_allclose(net.in_units_of(change).hessian(U) * unit, bends * unit, rtol=1e-7, atol=1e-7)
        for found, wanted in zip((f(U), *f.value_and_gradient(U)), (expected, expected, slopes), strict=True):
            assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)
        assert np.shape(f(U[0])) == outputs
        assert f.gradient(U[0]).shape == (*outputs, D)
        assert_allclose(f(U[0].tolist()), expected[0], rtol=1e-9, atol=1e-9)

    def test_merged_centers_are_the_same_function(self, degree, outputs):
        """One direction at each point does for all slopes there, if there is one output."""
        net = network(MaternKernel(), degree, outputs)
        merged = KernelNetwork(net.kernel, net.metric, tuple(c.merged() for c in net.centers), net.tail_coef, outputs)
        assert_allclose(merged.value(self.X), net.value(self.X), rtol=1e-11, atol=1e-11)
        assert_allclose(merged.hessian(self.X), net.hessian(self.X), rtol=1e-11, atol=1e-11)
        if net.n_outputs == 1:
            assert len(merged.centers[1].functionals) == len(np.unique(net.centers[1].functionals.index))

    def test_many_points_are_taken_in_blocks(self, degree, outputs, monkeypatch):
        net = network(GaussianKernel(), degree, outputs)
        whole = net.value(self.X), net.gradient(self.X), net.hessian(self.X)
        monkeypatch.setattr("nurf.kernels._network.row_blocks", lambda n, m: [slice(0, 2), slice(2, n)])
        for found, expected in zip((net.value, net.gradient, net.hessian), whole, strict=True):
            assert_allclose(found(self.X), expected, rtol=1e-12, atol=1e-12)
        assert net.value(self.X[:0]).shape == (0, *outputs)
        assert net.gradient(self.X[:0]).shape == (0, *outputs, D)
