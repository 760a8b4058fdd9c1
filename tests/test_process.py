"""Gaussian processes with derivative rows against dense textbook kriging, brute-force refits and scikit-learn."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.linalg import null_space
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal, norm
from scipy.stats import t as student
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from cases import RADIAL_KERNELS
from nurf.jets import Jet
from nurf.kernels import ErfKernel, GaussianKernel, KernelAverage, MaternKernel
from nurf.kernels._functionals import Functionals, covariance
from nurf.solvers.process import (
    HeldOutErrors,
    LeaveOneOutError,
    Process,
    ProcessPosterior,
    ProcessRows,
    RestrictedLikelihood,
    mixture,
    row_total,
    typical_error,
)
from nurf.solvers.process._contrasts import Contrasts
from nurf.solvers.process._process import rounding_floor
from pairwise import pairwise
from test_rows import N_SAMPLES, D, apart, few_masks, framed, masked, never_the_first, plain, weighted

JETS = [plain, masked, few_masks, never_the_first, weighted, framed, apart]
METRIC = np.random.default_rng(8).normal(size=(D, D)) / 2 + np.diag([0.5, 0.9, 0.3])
NOISE = np.array([0.01, 0.03, 0.2])
SEPARATE = np.array([0.01, 0.03, 0.1, 0.02, 0.2])  # with one for each partial derivative

kernels = pytest.mark.parametrize("kernel", RADIAL_KERNELS, ids=repr)
jets = pytest.mark.parametrize("make", JETS, ids=lambda make: make.__name__)
outputs = pytest.mark.parametrize("outputs", [(), (2,)], ids=str)
degrees = pytest.mark.parametrize("degree", [0, 1])
noises = pytest.mark.parametrize("noise", [NOISE, SEPARATE], ids=["common", "separate"])


def row_noise(process):
    """The variances of the noise of all rows of weight one, one by one."""
    result = []
    for part in process.rows.parts:
        for i in range(len(part)):
            of_order = process.noise[[0, 1, -1][part.order]]
            if part.order == 1 and len(process.noise) > 3:
                v = part.directions[0][i] / np.linalg.norm(part.directions[0][i])
                of_order = sum(v[j] ** 2 * process.noise[1 + j] for j in range(D))
            result.append(of_order)
    return np.array(result)


def make_process(jet, kernel=RADIAL_KERNELS[0], degree=0, metric=METRIC, noise=NOISE):
    return Process(ProcessRows.of(jet, degree), kernel, metric, noise)


class Kriging:
    """Universal kriging as in a textbook: dense matrices and their inverses, for known ``K``, ``H`` and ``y``."""

    def __init__(self, process):
        rows, kernel = process.rows, process.kernel
        self.parts = [part.mapped(process.metric) for part in rows.parts]
        self.kernel, self.rows, self.metric = kernel, rows, process.metric
        K = np.block([[covariance(kernel, a, b) for b in self.parts] for a in self.parts])
        noise = row_noise(process) / rows.weights + rounding_floor(len(rows)) * np.abs(np.diag(K))
        # A kernel of conditional definiteness may have any constant added, for the mean is unknown.
        constant = 100.0 * isinstance(kernel, ErfKernel) * np.outer(rows.orders == 0, rows.orders == 0)
        self.K, self.H, self.y = K + constant + np.diag(noise), rows.basis, rows.targets
        self.shift = 100.0 * isinstance(kernel, ErfKernel)
        inverse = np.linalg.inv(self.K)
        self.information = self.H.T @ inverse @ self.H
        self.beta = np.linalg.solve(self.information, self.H.T @ inverse @ self.y)
        self.P = inverse - inverse @ self.H @ np.linalg.solve(self.information, self.H.T @ inverse)
        self.inverse = inverse

    def at(self, X, order):
        """Predictions (n d^order, k) and their variances."""
        points = Functionals.at(X, order)
        mapped, h = points.mapped(self.metric), points.monomials(self.rows.degree)
        c = np.concatenate([covariance(self.kernel, part, mapped) for part in self.parts])
        k = np.diag(covariance(self.kernel, mapped, mapped)).copy()
        if order == 0:
            c, k = c + self.shift * (self.rows.orders == 0)[:, None], k + self.shift
        means = h @ self.beta + c.T @ self.inverse @ (self.y - self.H @ self.beta)
        rest = h.T - self.H.T @ self.inverse @ c
        return means, k - np.sum(c * (self.inverse @ c), 0) + np.sum(rest * np.linalg.solve(self.information, rest), 0)


class TestRows:
    @jets
    @outputs
    def test_are_those_of_the_row_model(self, make, outputs):
        """Functionals of a polynomial of degree two, against the projections, partials and entries that are known."""
        jet, rng = make(outputs), np.random.default_rng(0)
        rows = ProcessRows.of(jet)
        a, B = rng.normal(size=D), rng.normal(size=(D, D))
        B = B + B.T
        found = {0: [], 1: [], 2: []}
        for part in rows.parts:
            for i, k in enumerate(part.index):
                x, v = part.points[k], [direction[i] for direction in part.directions]
                found[part.order].append([a @ x + x @ B @ x / 2, *(u @ (a + B @ x) for u in v)][min(part.order, 1)])
                if part.order == 2:
                    found[2][-1] = v[0] @ B @ v[1]
        expected, targets, samples, weights = {0: [], 1: [], 2: []}, [], [], []
        y = jet.y.reshape(len(jet), -1)
        for k, x in enumerate(jet.X):
            if not np.isnan(y[k]).any():
                expected[0].append(a @ x + x @ B @ x / 2)
                targets.append((0, k, tuple(y[k])))
        for k, x in enumerate(jet.X):
            g, slope = jet.gradients.reshape(len(jet), -1, D)[k], a + B @ x
            if not jet.weights(1)[k]:
                continue
            directions = np.eye(D) if jet.frames is None else jet.frames[k]
            for v in directions[directions.any(axis=1)]:
                target = [np.sum(row[v != 0] * v[v != 0]) for row in g]
                if not np.isnan(target).any():
                    expected[1].append(v @ slope)
                    targets.append((1, k, tuple(target)))
        for k in range(len(jet)):
            h = jet.hessians.reshape(len(jet), -1, D, D)[k]
            if not jet.weights(1)[k]:
                continue
            means = np.where(np.isnan(h), np.swapaxes(h, 1, 2), h)
            means = (means + np.swapaxes(means, 1, 2)) / 2
            for i in range(D):
                for j in range(i, D):
                    if not np.isnan(means[:, i, j]).any():
                        factor = 1.0 if i == j else np.sqrt(2)
                        expected[2].append(factor * B[i, j])
                        targets.append((2, k, tuple(factor * means[:, i, j])))
        assert len(rows) == len(targets) <= row_total(jet)
        for order in range(3):
            assert_allclose(np.sort(found[order]), np.sort(expected[order]), rtol=1e-10, atol=1e-10)
        samples = np.array([k for _, k, _ in targets])
        assert_array_equal(np.sort(rows.samples), np.sort(samples))
        ours = sorted(zip(rows.orders, rows.samples, map(tuple, rows.targets), strict=True))
        for (o, k, t), (p, m, u) in zip(ours, sorted(targets), strict=True):
            assert (o, k) == (p, m)
            assert_allclose(t, u, rtol=1e-10, atol=1e-12)
        weights = [jet.weights(o)[k] for o, k in zip(rows.orders, rows.samples, strict=True)]
        assert_array_equal(rows.weights, weights)

    @jets
    @outputs
    def test_targets_belong_to_their_functionals(self, make, outputs):
        """A polynomial is known exactly: its functionals are the targets, row by row."""
        jet, rng = make(outputs), np.random.default_rng(0)
        k = int(np.prod(outputs, dtype=int))
        B = rng.normal(size=(k, D, D))
        B = B + np.swapaxes(B, 1, 2)
        slopes = np.einsum("kij,nj->nki", B, jet.X)
        y = np.where(jet.has_value[:, None], np.einsum("nki,ni->nk", slopes, jet.X) / 2, np.nan)
        gradients = slopes.reshape(jet.gradients.shape)
        if jet.frames is not None:
            onto = np.einsum("nri,nrj->nij", jet.frames, jet.frames)
            gradients = np.einsum("nij,n...j->n...i", onto, gradients)
        known = replace(
            jet,
            y=y.reshape(jet.y.shape),
            gradients=np.where(np.isnan(jet.gradients), np.nan, gradients),
            hessians=np.where(np.isnan(jet.hessians), np.nan, np.broadcast_to(B, (len(jet), k, D, D)).reshape(
                jet.hessians.shape)),
        )  # fmt: skip
        rows = ProcessRows.of(known)
        start = 0
        for part in rows.parts:
            x = part.points[part.index]
            v = part.directions
            expected = {
                0: lambda x, v: np.einsum("kij,mi,mj->mk", B, x, x) / 2,
                1: lambda x, v: np.einsum("kij,mi,mj->mk", B, x, v[0]),
                2: lambda x, v: np.einsum("kij,mi,mj->mk", B, v[0], v[1]),
            }[part.order](x, v)
            assert_allclose(rows.targets[start : start + len(part)], expected, rtol=1e-10, atol=1e-10)
            start += len(part)

    def test_an_affine_mean_must_be_determined(self):
        """Three values in three dimensions do not determine a plane; one value and a gradient do."""
        jet = plain()
        few = jet[:3]
        assert ProcessRows.of(few.only(()), 1).degree == 0
        assert ProcessRows.of(few[:1].only(("gradients",)), 1).degree == 1
        assert ProcessRows.of(jet.only(()), 1).degree == 1
        flat = replace(jet, X=jet.X * [1, 0, 1])
        assert ProcessRows.of(flat.only(()), 1).degree == 0

    def test_rows_without_weight_are_left_out(self):
        weights = np.ones(N_SAMPLES)
        weights[[2, 5]] = 0.0
        rows = ProcessRows.of(replace(plain(), derivative_weight=weights))
        assert not set(rows.samples[rows.orders > 0]) & {2, 5}
        assert len(rows) == N_SAMPLES + (N_SAMPLES - 2) * (D + D * (D + 1) // 2)


class TestContrasts:
    @pytest.mark.parametrize("t", [1, 4])
    @pytest.mark.parametrize("n", [4, 9])
    def test_are_an_orthogonal_change_of_coordinates(self, n, t):
        rng = np.random.default_rng(0)
        H, A, columns = rng.normal(size=(n, t)), rng.normal(size=(n, n)), rng.normal(size=(n, 2))
        A, contrasts = A + A.T, Contrasts.of(H)
        Q = contrasts.back(np.eye(n))
        assert len(contrasts) == t
        assert_allclose(Q @ Q.T, np.eye(n), atol=1e-14)
        assert_allclose(Q.T @ H, np.concatenate([contrasts.R, np.zeros((n - t, t))]), atol=1e-13)
        assert_allclose(contrasts.into(columns), Q.T @ columns, atol=1e-13)
        assert_allclose(contrasts.matrix_into(A.copy()), Q.T @ A @ Q, atol=1e-12)
        assert_allclose(contrasts.matrix_back(A.copy()), Q @ A @ Q.T, atol=1e-12)
        first = rng.normal(size=(t, 2))
        assert_allclose(contrasts.R @ contrasts.mean_coefficients(first), first, atol=1e-12)
        monomials = rng.normal(size=(3, t))
        assert_allclose(contrasts.R.T @ contrasts.first_coordinates(monomials), monomials.T, atol=1e-12)

    def test_of_a_basis_that_needs_no_reflection(self):
        """A column that is a multiple of a unit vector already."""
        H = np.zeros((3, 1))
        H[0] = -2.0
        Q = Contrasts.of(H).back(np.eye(3))
        assert_allclose(Q @ Q.T, np.eye(3), atol=1e-15)
        assert_allclose(Q[:, 1:].T @ H, 0.0, atol=1e-15)
        assert_allclose(abs(Contrasts.of(np.array([[3.0]])).back(np.eye(1))), [[1.0]])


class TestAgainstKriging:
    """``NOISE`` bounds the condition numbers by about 1e5: inverses agree to 1e-9."""

    @pairwise(kernels, degrees, jets, noises)
    def test_precision_and_coefficients(self, make, noise, kernel, degree):
        process = make_process(make((2,)), kernel, degree, noise=noise)
        textbook = Kriging(process)
        assert process.rows.degree == degree
        assert_allclose(process.precision, textbook.P, atol=1e-8 * np.abs(textbook.P).max())
        assert_allclose(process.precision @ process.rows.basis, 0.0, atol=1e-8 * np.abs(textbook.P).max())
        coefficients = textbook.P @ textbook.y
        assert_allclose(process.coefficients, coefficients, atol=1e-8 * np.abs(coefficients).max())
        assert_allclose(process.tail_coef, textbook.beta, rtol=1e-7, atol=1e-7)
        n = len(textbook.y) - textbook.H.shape[1]
        assert process.n_contrasts == n
        assert_allclose(process.variances, np.sum(textbook.y * coefficients, axis=0) / n, rtol=1e-8)

    @pairwise(kernels, degrees, jets, outputs)
    def test_predictions_and_their_variances(self, make, kernel, degree, outputs):
        process = make_process(make(outputs), kernel, degree)
        textbook, network = Kriging(process), process.network(outputs)
        X = np.random.default_rng(1).uniform(-1, 1, (4, D))
        for order, found in enumerate((network.value(X), network.gradient(X), network.hessian(X))):
            means, variances = textbook.at(X, order)
            means = np.moveaxis(means.reshape(4, D**order, -1), 1, 2).reshape(4, *outputs, *[D] * order)
            assert_allclose(found, means, rtol=1e-7, atol=1e-7 * np.abs(means).max())
            if order < 2:
                ours = process.posterior_variances(X, order)
                assert_allclose(ours, variances.reshape(4, -1), rtol=1e-6, atol=1e-7 * variances.max())

    @kernels
    @degrees
    def test_likelihood_is_that_of_the_contrasts(self, kernel, degree):
        """With the variances of the outputs: minus the logarithm of the normal density, up to the same constant."""
        jet = masked((2,))
        constants = []
        for metric in (METRIC, METRIC * [1.5, 0.3, 1.0], METRIC[:2]):
            process = make_process(jet, kernel, degree, metric)
            textbook = Kriging(process)
            Z = null_space(textbook.H.T)
            likelihood = sum(
                multivariate_normal(cov=s * Z.T @ textbook.K @ Z).logpdf(Z.T @ y)
                for s, y in zip(process.variances, textbook.y.T, strict=True)
            )
            constants.append(RestrictedLikelihood().value(process) + likelihood)
        assert_allclose(constants, constants[0], rtol=1e-9)

    @pairwise(
        kernels, degrees, noises, criterion=[RestrictedLikelihood(), LeaveOneOutError()], make=[masked, framed, apart]
    )
    def test_criteria_have_true_derivatives(self, kernel, degree, criterion, make, noise):
        """Differences of order four: an error of about ``h^4 = 1e-14``, and ``1e-16 cond / h = 1e-7`` by rounding."""
        jet, rng = make((2,)), np.random.default_rng(2)
        if make is apart and criterion == LeaveOneOutError():
            jet = jet + plain((2,))[:4]
        for metric in (METRIC, METRIC[:2]):
            process = make_process(jet, kernel, degree, metric, noise)
            by_metric, by_noise = process.pullback(criterion.slopes(process))
            step, change = rng.normal(size=metric.shape), rng.normal(size=len(noise))

            def value(t, metric=metric, step=step, change=change):
                return criterion.value(make_process(jet, kernel, degree, metric + t * step, noise * np.exp(t * change)))

            h = 3e-4
            numerical = (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h)
            found = np.sum(by_metric * step) + by_noise @ change
            assert_allclose(found, numerical, rtol=1e-5, atol=1e-5)

    @pairwise(kernels, degrees, jets)
    def test_left_out_are_errors_of_refits(self, make, kernel, degree):
        """A sample leaves with all its rows; scales and noise stay. Rounding adds noise that depends on the rows."""
        process = make_process(make((2,)), kernel, degree)
        errors, variances = process.left_out
        rows, textbook = process.rows, Kriging(process)
        for k in np.unique(rows.samples):
            out, rest = rows.samples == k, rows.samples != k
            K, H, y = textbook.K[np.ix_(rest, rest)], textbook.H[rest], textbook.y[rest]
            c, h = textbook.K[np.ix_(rest, out)], textbook.H[out]
            inverse = np.linalg.inv(K)
            information = H.T @ inverse @ H
            beta = np.linalg.solve(information, H.T @ inverse @ y)
            means = h @ beta + c.T @ inverse @ (y - H @ beta)
            left = h.T - H.T @ inverse @ c
            fresh = textbook.K[np.ix_(out, out)] - c.T @ inverse @ c + left.T @ np.linalg.solve(information, left)
            size = np.abs(textbook.y).max()
            assert_allclose(errors[out], textbook.y[out] - means, rtol=1e-5, atol=1e-6 * size)
            assert_allclose(variances[out], np.diag(fresh), rtol=1e-5)

    @kernels
    def test_a_point_leaves_with_all_its_measurements(self, kernel):
        """Three points are measured twice, with noise: the other measurement of a point does not predict this one."""
        jet = plain().only(("gradients",))
        again = jet[[0, 2, 5]]
        jet = jet[[*range(len(jet)), 0, 2, 5]]
        y = np.concatenate([jet.y[: -len(again)], again.y + 1e-3])
        process = make_process(replace(jet, y=y), kernel, 0)
        rows, textbook, points = process.rows, Kriging(process), jet.X[process.rows.samples]
        for point in jet.X:
            out = np.all(points == point, axis=1)
            K, H, y = textbook.K[np.ix_(~out, ~out)], textbook.H[~out], textbook.y[~out]
            inverse = np.linalg.inv(K)
            beta = np.linalg.solve(H.T @ inverse @ H, H.T @ inverse @ y)
            means = textbook.H[out] @ beta + textbook.K[np.ix_(out, ~out)] @ inverse @ (y - H @ beta)
            size = np.abs(textbook.y).max()
            assert_allclose(process.left_out[0][out], textbook.y[out] - means, rtol=1e-5, atol=1e-6 * size)
        assert len(rows) == len(jet) * (1 + D)

    @kernels
    @degrees
    def test_several_outputs_are_single_ones(self, kernel, degree):
        jet = plain((2,))
        both = make_process(jet, kernel, degree)
        X = np.random.default_rng(1).uniform(-1, 1, (4, D))
        for k in range(2):
            single = Jet(jet.X, jet.y[:, k], jet.gradients[:, k], jet.hessians[:, k])
            one = make_process(single, kernel, degree)
            assert_allclose(one.network(()).value(X), both.network((2,)).value(X)[:, k], rtol=1e-9, atol=1e-9)
            assert_allclose(one.network(()).gradient(X), both.network((2,)).gradient(X)[:, k], rtol=1e-8, atol=1e-8)
            assert_allclose(one.variances[0], both.variances[k])
            assert_allclose(one.left_out[0][:, 0], both.left_out[0][:, k], rtol=1e-8, atol=1e-8)

    @kernels
    @degrees
    def test_rows_given_twice_have_weight_two(self, kernel, degree):
        """The mean of both has half the variance of the noise: the same predictions and variances."""
        jet, X = plain(), np.random.default_rng(1).uniform(-1, 1, (4, D))
        twice = make_process(jet + jet, kernel, degree)
        heavy = make_process(replace(jet, sample_weight=np.full(N_SAMPLES, 2.0)), kernel, degree)
        assert_allclose(twice.network(()).value(X), heavy.network(()).value(X), rtol=1e-8, atol=1e-8)
        assert_allclose(twice.network(()).gradient(X), heavy.network(()).gradient(X), rtol=1e-7, atol=1e-7)
        for order in (0, 1):
            found, expected = (process.posterior_variances(X, order) for process in (twice, heavy))
            assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


class TestAgainstScikitLearn:
    """A mean that is known: values that are given together with their mirror images have the mean zero.

    For ``(x, y)`` and ``(x + far, -y)``, so far that nothing is shared, the estimated mean is zero by symmetry, and
    predictions near ``x`` are those of a process with mean zero. Their variance is larger by that of the mean.
    """

    @pytest.mark.parametrize(
        ("kernel", "theirs"),
        [(GaussianKernel(), RBF), (MaternKernel(), lambda scale: Matern(scale, nu=2.5))],
        ids=["rbf", "mat"],
    )
    def test_predictions_are_the_same(self, kernel, theirs):
        rng, noise = np.random.default_rng(0), 0.02
        X, scales = rng.uniform(-1, 1, (12, 2)), np.array([0.7, 1.4])
        y = np.sin(2 * X[:, 0]) + X[:, 1]
        mirrored = Jet(np.concatenate([X, X + 1000]), np.concatenate([y, -y]))
        process = make_process(mirrored, kernel, 0, np.diag(1 / scales), np.full(3, noise))
        other = GaussianProcessRegressor(theirs(scales) + WhiteKernel(noise), optimizer=None, alpha=1e-15).fit(X, y)
        fresh = rng.uniform(-1, 1, (30, 2))
        means, deviations = other.predict(fresh, return_std=True)
        assert_allclose(process.network(()).value(fresh), means, rtol=1e-9, atol=1e-9)
        # The variance of the mean m of n rows, and what is left of it at a point: (1 - c K^-1 1)^2 / (1 K^-1 1).
        K = other.kernel_(X)
        c = theirs(scales)(fresh, X)
        left = 1 - c @ np.linalg.solve(K, np.ones(12))
        of_the_mean = left**2 / (2 * np.linalg.solve(K, np.ones(12)).sum())
        assert_allclose(process.posterior_variances(fresh, 0)[:, 0] + noise, deviations**2 + of_the_mean, rtol=1e-8)


class TestEdges:
    @kernels
    @pytest.mark.parametrize("n", [1, 2])
    def test_no_more_rows_than_the_mean_has_coefficients(self, kernel, n):
        process = make_process(plain()[:n].only(()), kernel)
        assert process.n_contrasts == n - 1
        assert process.left_out[0].shape == (n, 1)
        X = np.zeros((2, D))
        assert np.all(np.isfinite(process.network(()).value(X)))
        assert np.all(process.posterior_variances(X, 0) >= 0)
        assert np.isfinite(RestrictedLikelihood().value(process))

    @kernels
    def test_left_out_values_beside_derivatives_of_a_small_unit(self, kernel):
        """Derivatives that are 1e12 times smaller than values, and more exact.

        Their noise is 1e-12 of their variances, which are 1e-12: well above the rounding of the kernel matrix.
        """
        metric, noise = 1e-6 * METRIC, np.array([0.1, 1e-24, 1.0])
        jet = plain().only(("gradients",))
        jet = replace(jet, gradients=1e-12 * jet.gradients)
        process = make_process(jet, kernel, 0, metric, noise)
        errors = process.left_out[0][process.rows.orders == 0, 0]
        for k in range(N_SAMPLES):
            rest = make_process(jet[np.arange(N_SAMPLES) != k], kernel, 0, metric, noise)
            assert_allclose(errors[k], jet.y[k] - rest.network(()).value(jet.X[[k]])[0], rtol=1e-3)

    def test_a_plane_through_as_many_rows(self):
        """An affine mean that one value and one gradient determine: nothing is left for the process."""
        jet = plain()[:1].only(("gradients",))
        process = make_process(jet, degree=1)
        assert process.n_contrasts == 0
        assert_allclose(process.network(()).gradient(np.ones((1, D))), jet.gradients, rtol=1e-12)
        assert_allclose(process.network(()).value(jet.X), jet.y, rtol=1e-12)

    def test_the_mean_makes_up_for_rounding_errors(self):
        """Coefficients of 1e12 and more cancel each other, and their rounding errors must not shift all values.

        Without a correction the mean residual is about 0.3 of the standard deviation of the residuals, over the seeds
        and scales; with it 0.03, with a deviation of 0.03 for each of them: 0.1 is ten standard errors away.
        """
        ratios = []
        for seed, scale in product(range(8), (0.1, 0.05, 0.03)):
            X = np.random.default_rng(seed).uniform(-1, 1, (20, 2))
            u = X[:, 1] - X[:, 0] ** 2  # Rosenbrock's function
            y = 100 * u**2 + (1 - X[:, 0]) ** 2
            gradients = np.stack([-400 * u * X[:, 0] - 2 * (1 - X[:, 0]), 200 * u], axis=1)
            jet = Jet(X, y / y.std(), gradients / y.std())
            process = Process(ProcessRows.of(jet), GaussianKernel(), scale * np.eye(2), np.full(3, 1e-15)).sound()
            residuals = process.network(()).value(X) - jet.y
            ratios.append(abs(residuals.mean()) / residuals.std())
        assert np.mean(ratios) < 0.1

    def test_what_is_not_positive_definite_raises(self):
        process = make_process(plain().only(()), noise=np.full(3, -2.0))
        with pytest.raises(np.linalg.LinAlgError, match=r"not positive definite \(pivot"):
            process.precision  # noqa: B018

    def test_blocks_of_covariances_add_up(self, monkeypatch):
        jet = masked((2,))
        whole = make_process(jet)
        expected = whole.precision, *whole.pullback(whole.precision)
        monkeypatch.setattr("nurf.solvers.process._process.BLOCK", 50)
        parts = make_process(jet)
        for found, wanted in zip((parts.precision, *parts.pullback(parts.precision)), expected, strict=True):
            assert_allclose(found, wanted, rtol=1e-10, atol=1e-9)


class TestSound:
    def test_noise_grows_until_the_matrix_can_be_factored(self):
        """Noise that is not positive stands for rounding errors that are larger than the noise."""
        jet = plain()
        good, bad = make_process(jet), make_process(jet, noise=np.array([-0.5, -0.5, 0.2]))
        assert good.sound() is good
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            _ = bad.coefficients
        found = bad.sound()
        assert np.all(found.noise > 0)
        assert np.all(np.isfinite(found.coefficients))

    def test_noise_grows_until_sums_are_not_lost_in_rounding(self):
        """A kink with the scale of a smooth function: a sum in another order is the same value, up to 10 times 3e-7."""
        X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
        process = Process(
            ProcessRows.of(Jet(X, np.abs(X[:, 0] - 0.1))), GaussianKernel(), 0.6 * np.eye(2), np.full(3, 1e-14)
        )
        at = Functionals.at(np.random.default_rng(1).uniform(-1, 1, (200, 2)), 0)

        def difference(each):
            products = covariance(each.kernel, at.mapped(each.metric), each.rows.parts[0].mapped(each.metric))
            products = products * each.coefficients[:, 0]
            forth, back = (np.cumsum(terms, axis=1)[:, -1] for terms in (products, products[:, ::-1]))
            return np.abs(forth - back).max()

        assert not process.is_sound
        assert difference(process.sound()) < 3e-6
        assert np.all(process.sound().noise >= process.noise)


def growing_amplitudes(errors, s):
    """Return ``(s / u)^p`` as a function, with the ``p`` of t errors with the scales ``c s^(1 + p)``.

    The scales and the power are the most probable ones, with SciPy's density and its search for one number.
    """
    unit = np.exp(np.log(s).mean(axis=0))

    def loss(power):
        scales = s * (s / unit) ** power
        own = [
            minimize_scalar(lambda c, e=e, v=v: -student.logpdf(e, 4, scale=np.exp(c) * v).sum(), tol=1e-10).fun
            for e, v in zip(errors.T, scales.T, strict=True)
        ]
        return sum(own) - norm.logpdf(power, 0, 0.5)

    power = min(np.arange(21) / 20, key=loss)
    return lambda at: (np.clip(at, s.min(axis=0), s.max(axis=0)) / unit) ** power


class TestPosterior:
    def posterior(self, jet, degree=0):
        process = make_process(jet, degree=degree)
        network, held_out = process.network(jet.y.shape[1:]), HeldOutErrors.one_by_one(process, jet.n_features)
        average = KernelAverage((network,), np.ones(1))
        return ProcessPosterior(average, jet, NOISE[None], process.variances[None], degree, held_out), process

    @pytest.mark.parametrize("growing", [0.0, 0.7])
    def test_deviations_hold_the_errors_of_samples_that_are_left_out(self, growing):
        """Standard deviations of the process to the likeliest power, times the 0.9 quantile of errors in these units.

        Errors that do not grow and errors that grow give powers that differ.
        """
        jet = plain((2,))
        posterior, process = self.posterior(jet)
        errors, variances = process.left_out
        values = process.rows.orders == 0
        errors, s = errors[values], np.sqrt(variances[:, None] * process.variances)[values]
        errors = errors * (s / np.median(s, axis=0)) ** growing
        posterior = replace(posterior, held_out=replace(posterior.held_out, errors=errors))
        amplitudes = growing_amplitudes(errors, s)
        ratios = np.sort(np.abs(errors) / (s * amplitudes(s)), axis=0)
        X = np.random.default_rng(1).uniform(-1, 1, (4, D))
        raw = np.sqrt((process.posterior_variances(X, 0) + NOISE[0]) * process.variances)
        raw *= amplitudes(raw)
        factor = ratios[int(np.ceil(0.9 * (N_SAMPLES + 1))) - 1] / 1.6448536
        assert_allclose(posterior.value_std(X), raw * factor, rtol=1e-6)
        half = np.diff(posterior.interval(X, 0.5), axis=-1)[..., 0] / 2
        assert_allclose(half, raw * ratios[int(np.ceil(0.5 * (N_SAMPLES + 1))) - 1], rtol=1e-6)
        assert_allclose(posterior.interval(X, 0.5).mean(axis=-1), posterior.network.value(X), rtol=1e-9, atol=1e-12)

    def test_deviations_of_partials_have_a_factor_for_each_input(self):
        jet = plain((2,))
        posterior, process = self.posterior(jet)
        X = np.random.default_rng(1).uniform(-1, 1, (4, D))
        raw = np.sqrt((process.posterior_variances(X, 1) + NOISE[1])[:, None, :] * process.variances[:, None])
        errors, variances = process.left_out
        first = process.rows.orders == 1
        ratios = (np.abs(errors) / np.sqrt(variances[:, None] * process.variances))[first]
        inputs = np.tile(np.arange(D), N_SAMPLES)
        for j in range(D):
            quantile = np.sort(ratios[inputs == j], axis=0)[int(np.ceil(0.9 * (N_SAMPLES + 1))) - 1]
            assert_allclose(posterior.gradient_std(X)[:, :, j], raw[:, :, j] * quantile / 1.6448536, rtol=1e-6)
        assert posterior.knows_gradients
        assert posterior.kinds == {1: "gradients", 2: "hessians"}

    @pytest.mark.parametrize("make", [never_the_first, framed, lambda: plain().only(())], ids=["part", "along", "none"])
    def test_gradients_that_are_not_known_have_the_factor_of_the_values(self, make):
        posterior, _ = self.posterior(make())
        assert not posterior.knows_gradients
        assert np.all(np.isfinite(posterior.gradient_std(np.zeros((2, D)))))

    def test_residuals_are_the_least_that_errors_are(self):
        jet = plain()
        held_out = HeldOutErrors.one_by_one(make_process(jet), D)
        residuals = np.zeros_like(held_out.errors)
        assert_array_equal(held_out.at_least(residuals).errors, held_out.errors)
        residuals[1] = -2 * np.abs(held_out.errors).max()
        found = held_out.at_least(residuals).errors
        assert_array_equal(found[1], residuals[1])
        assert_array_equal(np.delete(found, 1, axis=0), np.delete(held_out.errors, 1, axis=0))

    def without_each(self, jet):
        """Errors of values (n, k) and of gradients (n, k, d) of the processes without each sample, at that sample."""
        found = []
        for k in range(N_SAMPLES):
            rest, sample = make_process(jet[np.arange(N_SAMPLES) != k]).network(jet.y.shape[1:]), jet[[k]]
            found.append((sample.y - rest.value(sample.X), sample.gradients - rest.gradient(sample.X)))
        return tuple(np.concatenate(errors) for errors in zip(*found, strict=True))

    def test_errors_are_those_of_processes_without_the_sample(self):
        """With the same scales and noise, and with weights of which the noise depends."""
        w = np.linspace(0.2, 3.0, N_SAMPLES)
        jet = replace(plain((2,)).only(("gradients",)), sample_weight=w)
        left_out, (errors, slopes) = HeldOutErrors.one_by_one(make_process(jet), D), self.without_each(jet)
        assert_allclose(left_out.errors, errors, rtol=1e-6, atol=1e-8)
        assert_allclose(left_out.gradient_errors, slopes, rtol=1e-6, atol=1e-8)
        luck = 1 + 1 / np.sqrt(2 * w.sum() ** 2 / np.sum(w**2))
        assert_allclose(left_out.output_errors, luck * np.sqrt(np.average(errors**2, axis=0, weights=w)))

    @pytest.mark.parametrize("make", [plain, apart, lambda outputs: plain(outputs).only(())], ids=["", "apart", "none"])
    def test_errors_of_folds_are_those_of_their_processes(self, make):
        """Samples without a value are in folds, too; what is expected are the deviations of another process."""
        jet = make((2,))
        fold_of = np.arange(len(jet)) % 3
        processes = [make_process(jet, noise=factor * NOISE) for factor in (1.0, 2.0, 3.0)]
        parts = [HeldOutErrors.one_by_one(process, D) for process in processes]
        expected = HeldOutErrors.one_by_one(make_process(jet), D)
        found = HeldOutErrors.of_folds(parts, [fold_of == fold for fold in range(3)], jet.has_value, expected)
        values = np.flatnonzero(jet.has_value)
        assert_array_equal(found.errors, [parts[fold_of[k]].errors[i] for i, k in enumerate(values)])
        slopes = [parts[fold_of[k]].gradient_errors[k] for k in range(len(expected.gradient_errors))]
        assert_array_equal(found.gradient_errors, slopes)
        assert_array_equal(found.deviations, expected.deviations)
        assert_array_equal(found.gradient_deviations, expected.gradient_deviations)

    def test_typical_errors_are_those_of_processes_without_the_sample(self):
        """The root of the product of the mean absolute errors of values and of partials, two outputs added up."""
        w = np.linspace(0.2, 3.0, N_SAMPLES)
        jet = replace(plain((2,)).only(("gradients",)), sample_weight=w)
        errors, slopes = (np.abs(part) for part in self.without_each(jet))
        values = np.average(errors, axis=0, weights=w)
        partials = np.average(slopes.mean(axis=2), axis=0, weights=w)
        assert_allclose(typical_error(make_process(jet)), np.sqrt(np.hypot(*values) * np.hypot(*partials)), rtol=1e-6)
        bare = make_process(jet.only(()))
        alone = np.average(np.abs(HeldOutErrors.one_by_one(bare, D).errors), axis=0, weights=w)
        assert_allclose(typical_error(bare), np.hypot(*alone), rtol=1e-9)

    def test_a_mixture_has_the_moments_of_its_density(self):
        means, deviations, weights = np.array([0.3, -1.0, 2.0]), np.array([0.5, 1.5, 0.2]), np.array([0.5, 0.3, 0.2])
        mean, deviation = mixture(means, deviations, weights)

        def moment(power):
            """An integral over 12 deviations beyond all means, with the peaks as breakpoints: accurate to 1e-9."""
            density = lambda t: weights @ norm.pdf(t, means, deviations) * t**power  # noqa: E731
            return quad(density, -19, 20, points=sorted(means), limit=200)[0]

        assert_allclose([moment(1), moment(2)], [mean, deviation**2 + mean**2], rtol=1e-7)

    def mixed(self, jet, weights):
        """The posterior of the mixture of two processes, and these."""
        processes = [make_process(jet, kernel) for kernel in RADIAL_KERNELS[:2]]
        networks = tuple(process.network(jet.y.shape[1:]) for process in processes)
        held_out = HeldOutErrors.mixed([HeldOutErrors.one_by_one(process, D) for process in processes], weights)
        variances = np.stack([process.variances for process in processes])
        terms = np.stack([NOISE, NOISE]), variances, 0, held_out
        return ProcessPosterior(KernelAverage(networks, weights), jet, *terms), processes

    @outputs
    def test_errors_of_a_mixture_are_those_of_mean_predictions(self, outputs):
        """Without each sample: the means and the spread of two processes that are conditioned on the others."""
        jet, weights = plain(outputs).only(("gradients",)), np.array([0.7, 0.3])
        held_out = self.mixed(jet, weights)[0].held_out
        for k in range(N_SAMPLES):
            rests = [make_process(jet[np.arange(N_SAMPLES) != k], kernel) for kernel in RADIAL_KERNELS[:2]]
            at = jet.X[[k]]
            means = np.stack([rest.network(outputs).value(at).ravel() for rest in rests])
            assert_allclose(held_out.errors[k], jet.y[k] - weights @ means, rtol=1e-6, atol=1e-8)
            # their own variances are those of all samples
            scales = [p.variances / rest.variances for p, rest in zip(self.mixed(jet, weights)[1], rests, strict=True)]
            squares = np.stack([rest.measured_std(at, 0)[0, 0] ** 2 for rest in rests]) * scales
            spread = weights[0] * weights[1] * (means[0] - means[1]) ** 2
            assert_allclose(held_out.deviations[k] ** 2, weights @ squares + spread, rtol=1e-6)
            slopes = np.stack([rest.network(outputs).gradient(at).reshape(-1, D) for rest in rests])
            expected = jet.gradients[k].reshape(-1, D) - np.tensordot(weights, slopes, 1)
            assert_allclose(held_out.gradient_errors[k], expected, rtol=1e-6, atol=1e-8)

    def test_a_mixture_is_sure_where_its_processes_are_and_agree(self):
        jet, weights = plain(), np.array([0.6, 0.4])
        posterior, processes = self.mixed(jet, weights)
        X = np.random.default_rng(1).uniform(-1, 1, (5, D))
        for order, found in ((0, posterior.value_std(X)), (1, posterior.gradient_std(X))):
            evaluate = [(p.network(()).value, p.network(()).gradient)[order] for p in processes]
            means = np.stack([f(X).reshape(found.shape) for f in evaluate])
            squares = np.stack([p.measured_std(X, order).reshape(found.shape) ** 2 for p in processes])
            expected = np.tensordot(weights, squares, 1) + 0.24 * (means[0] - means[1]) ** 2
            if order == 0:
                errors, deviations = posterior.held_out.errors, posterior.held_out.deviations
                expected = expected * growing_amplitudes(errors, deviations)(np.sqrt(expected)) ** 2
            factors = found / np.sqrt(expected)
            assert_allclose(factors, np.broadcast_to(factors[:1], factors.shape), rtol=1e-6)  # the calibration
        assert_allclose(posterior.interval(X, 0.9).mean(axis=-1)[:, 0], posterior.network.value(X), atol=1e-9)
        squares = [NOISE * process.variances[0] for process in processes]
        assert_allclose(posterior.noise_deviations[:, 0] ** 2, weights @ np.array(squares), rtol=1e-9)

    def test_partials_have_the_noise_of_their_input(self):
        """Three variances, as files may hold them, are those of equal partials; others are added to each partial."""
        posterior, process = self.posterior(plain())
        X = np.random.default_rng(1).uniform(-1, 1, (5, D))
        equal = replace(posterior, noise=NOISE[[0, 1, 1, 1, 2]][None])
        for method in ("value_std", "gradient_std"):
            assert_allclose(getattr(equal, method)(X), getattr(posterior, method)(X), rtol=1e-9)
        assert_allclose(equal.noise_deviations, posterior.noise_deviations, rtol=1e-12)
        process = make_process(plain(), noise=SEPARATE)
        expected = (process.posterior_variances(X, 1) + SEPARATE[1:-1]) * process.variances
        assert_allclose(process.measured_std(X, 1)[..., 0] ** 2, expected, rtol=1e-9)

    def test_two_samples_say_nothing(self):
        posterior, _ = self.posterior(plain()[:2])
        for method in (posterior.value_std, posterior.gradient_std, lambda X: posterior.interval(X, 0.9)):
            with pytest.raises(ValueError, match="need at least 3 samples with a value, got 2"):
                method(np.zeros((1, D)))
