"""Plausible functions: against dense posteriors, standard deviations, differences, and functions they must hold."""

import pickle
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.linalg import block_diag

from cases import RADIAL_KERNELS
from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
    problems,
)
from nurf.decisions._inputs import data_box
from nurf.jets import Jet
from nurf.kernels import GaussianKernel
from nurf.kernels._functionals import Functionals, covariance
from nurf.kernels._waves import Waves
from nurf.solvers._draws import Draws
from nurf.solvers.process import Process, ProcessRows
from nurf.solvers.process._draws import process_draws

kernels = pytest.mark.parametrize("kernel", RADIAL_KERNELS, ids=repr)

MODELS = {
    "wide": lambda: KernelFeatureRegressor(),
    "sampled": lambda: RandomFeatureRegressor(40, random_state=0),
    "trained": lambda: DeepFeatureRegressor(random_state=0),
    "sparse": lambda: SparseFeatureRegressor(max_neurons=20, random_state=0),
    "surrogate": lambda: Surrogate(None, engines=["wide", "sampled"], random_state=0),
}
SIZES = {"wide": 25, "sampled": 200, "trained": 60, "sparse": 40, "surrogate": 30}  # the posterior takes more than 150
models = pytest.mark.parametrize("name", MODELS)


def values(X):
    return np.sin(5 * X[:, 0]) + X[:, 1] ** 2 + X[:, 0] * X[:, 1]


@cache
def fitted(name, noise=0.05):
    """A fit of a function that few samples leave open; several tests read it. Without noise rounding is larger."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (SIZES[name], 2))
    return MODELS[name]().fit(X, values(X) + noise * rng.normal(size=len(X)))


def inner(n=200):
    """Points that are nearer to samples than these are to each other, so that distances add nothing."""
    return np.random.default_rng(5).uniform(-0.8, 0.8, (n, 2))


def centred(matrix):
    """Covariances of differences from the mean of all points: a constant changes nothing."""
    return matrix - matrix.mean(axis=0) - matrix.mean(axis=1)[:, None] + matrix.mean()


class TestWaves:
    @kernels
    @pytest.mark.parametrize("distance", [0.3, 2.0])
    def test_spectral_densities_give_the_kernel(self, kernel, distance):
        """In one and three dimensions the mean of a wave over directions is a cosine, and a sine over its argument."""
        wanted = kernel.profile(np.zeros(())) - kernel.profile(np.asarray(distance**2 / 2))
        for d, wave in (1, np.cos), (3, lambda t: np.sinc(t / np.pi)):

            def integrand(length, d=d, wave=wave):
                density = kernel.spectral_density(np.array([length]), d)[0]
                return density * (1 - wave(length * distance))

            found = sum(quad(integrand, *ends, limit=500)[0] for ends in ((1e-9, 1.0), (1.0, 30.0), (30.0, 3000.0)))
            assert_allclose(found, wanted, rtol=1e-5)  # lengths beyond 3000 carry less than 3000^-5

    @kernels
    @pytest.mark.parametrize("d", [100, 150, 200, 1000])
    def test_spectral_densities_in_many_dimensions(self, kernel, d):
        """The mean square of a partial derivative is the mean of ``l^2 / d``: ``phi'`` at zero."""

        def integrand(logarithm):
            lengths = np.exp([logarithm])
            return lengths[0] ** 3 * kernel.spectral_density(lengths, d)[0] / d

        found = sum(quad(integrand, *ends, limit=500)[0] for ends in ((-18, 0), (0, 3), (3, 5), (5, 12)))
        assert_allclose(found, kernel.curvature**2, rtol=1e-6)  # the density has a relative error of 1e-8

    @kernels
    @pytest.mark.parametrize("d", [1, 2, 9, 200])
    def test_waves_have_the_kernel_of_the_process(self, kernel, d):
        rng = np.random.default_rng(d)
        X, metric = rng.uniform(-1, 1, (6, d)), np.diag(np.linspace(0.5, 1.5, d)) * min(1.0, 3 / np.sqrt(d))
        design = Waves.of(kernel, metric, 40_000, rng, origin=True).design(X)
        # standard errors of 40,000 waves are at most about 0.01 for covariances of order one
        assert_allclose(centred(design @ design.T), centred(kernel(X @ metric)), atol=0.05)

    def test_pairs_have_the_variance_of_the_kernel_everywhere(self):
        waves = Waves.of(GaussianKernel(), np.eye(3), 100, np.random.default_rng(0))
        squares = np.sum(waves.design(np.random.default_rng(1).normal(size=(50, 3))) ** 2, axis=1)
        assert_allclose(squares, squares[0], rtol=1e-12)
        assert_allclose(squares[0], 1.0, rtol=0.02)  # 100 lengths in equal shares of their density

    @pytest.mark.parametrize("origin", [False, True])
    def test_rows_are_derivatives(self, origin):
        rng = np.random.default_rng(0)
        waves = Waves.of(GaussianKernel(), np.eye(2), 5, rng, origin=origin)
        X, h = rng.normal(size=(4, 2)), 1e-5
        value = waves.rows(Functionals.at(X, 0))
        assert_array_equal(value, waves.design(X))
        slopes, bends = (waves.rows(Functionals.at(X, order)).reshape(4, *[2] * order, 10) for order in (1, 2))
        for j, step in enumerate(h * np.eye(2)):
            difference = (waves.design(X + step) - waves.design(X - step)) / (2 * h)
            assert_allclose(slopes[:, j], difference, atol=1e-7)
            moved = (waves.gradient_design(X + step) - waves.gradient_design(X - step)) / (2 * h)
            assert_allclose(bends[:, j], moved, atol=1e-6)
        assert_allclose(waves.gradient_design(X), slopes, rtol=1e-12)


class TestProcess:
    N = 3000

    def drawn(self, kernel, degree, n_outputs):
        """Return values and gradients of draws at some points, and what the textbook says of them."""
        rng = np.random.default_rng(3)
        X, at = rng.uniform(-1, 1, (7, 2)), rng.uniform(-1, 1, (5, 2))
        jet = Jet(X, rng.normal(size=(7, n_outputs)), rng.normal(size=(7, n_outputs, 2)))
        metric, noise = np.array([[1.2, 0.3], [0.0, 0.7]]), np.array([0.01, 0.05, 0.05])
        process = Process(ProcessRows.of(jet, degree), kernel, metric, noise)
        waves, coef, basis, given = process_draws(process, self.N, rng)
        designs = [np.vstack([b.design(at), b.gradient_design(at).reshape(10, -1)]) for b in (waves, basis)]
        found = sum(np.tensordot(design, part, 1) for design, part in zip(designs, (coef, given), strict=True))
        rows = process.rows.parts
        parts = [*rows, *(Functionals.at(at, order) for order in (0, 1))]
        mapped = [part.mapped(metric) for part in parts]
        K = np.block([[covariance(kernel, a, b) for b in mapped] for a in mapped])
        H = np.concatenate([part.monomials(degree) for part in parts])
        n = len(process.rows)
        K[:n, :n] += block_diag(0.01 * np.eye(7), 0.05 * np.eye(14))
        return found, process.rows.targets, K, H, n

    @kernels
    @pytest.mark.parametrize("degree", [0, 1])
    def test_mean_and_covariance_are_those_of_universal_kriging(self, kernel, degree):
        """Kriging with an unknown mean: weights from the system [[K, H], [H^T, 0]]."""
        found, y, K, H, n = self.drawn(kernel, degree, 2)
        t = H.shape[1]
        system = np.block([[K[:n, :n], H[:n]], [H[:n].T, np.zeros((t, t))]])
        weights = np.linalg.solve(system, np.vstack([K[:n, n:], H[n:].T]))[:n]
        mean = weights.T @ y
        unit = K[n:, n:] - weights.T @ K[:n, n:] - K[n:, :n] @ weights + weights.T @ K[:n, :n] @ weights
        contrasts = np.linalg.qr(H[:n], mode="complete")[0][:, t:]
        B = y.T @ contrasts @ np.linalg.solve(contrasts.T @ K[:n, :n] @ contrasts, contrasts.T @ y) / (n - t)
        deviations = np.sqrt(np.multiply.outer(np.diag(unit), np.diag(B)))
        assert_allclose((found.mean(axis=1) - mean) / deviations, 0, atol=5 / np.sqrt(self.N))
        flat = (found - mean[:, None, :]) / deviations[:, None, :]
        flat = np.moveaxis(flat, 1, 2).reshape(-1, self.N)  # functionals and outputs, draws
        wanted = np.kron(unit, B) / np.multiply.outer(deviations.ravel(), deviations.ravel())
        # 3000 draws have standard errors of up to 0.026, about a hundred waves that matter at a point of up to 0.14
        assert_allclose(flat @ flat.T / self.N, wanted, atol=0.45)
        assert np.sqrt(np.mean((flat @ flat.T / self.N - wanted) ** 2)) < 0.15


class TestDraws:
    @models
    def test_mean_and_deviations_are_those_of_predictions(self, name):
        """Without noise, which these data do not have, predictions and draws have the same distribution."""
        model, X, n = fitted(name, 0.0), inner(), 400
        found = model.draws(n, random_state=1).value(X)
        mean, deviations = model.predict(X, return_std=True)
        assert found.shape == (n, len(X))
        assert np.sqrt(np.mean(((found.mean(axis=0) - mean) / deviations) ** 2)) < 3 / np.sqrt(n)
        ratios = found.std(axis=0) / deviations
        assert 0.85 < np.median(ratios) < 1.15

    @pytest.mark.filterwarnings("ignore:.*carry 90% of the squared error")
    @pytest.mark.parametrize(("n", "known"), [(3, 0), (8, 0), (60, 0), (3, 200), (60, 20)])
    def test_many_inputs_and_few_samples(self, n, known):
        """200 inputs, with partial derivatives with respect to some of them; the noise, which draws lack, is small."""
        rng = np.random.default_rng(0)
        X, at = (rng.uniform(-1, 1, (m, 200)) for m in (n, 20))
        a, slopes = np.zeros(200), np.full((n, 200), np.nan)
        a[:20] = 0.4 * rng.normal(size=20)
        slopes[:, :known] = (np.cos(X @ a)[:, None] * a)[:, :known]
        slopes[:, : min(known, 2)] += np.column_stack([np.ones(n), 2 * X[:, 1]])[:, :known]
        y = X[:, 0] + X[:, 1] ** 2 + np.sin(X @ a)
        model = KernelFeatureRegressor().fit(X, y, gradients=slopes if known else None)
        assert ("gradients" in model.noise_) == (known > 0)
        draws = model.draws(300, random_state=0)
        found, (mean, deviations) = draws.value(at), model.predict(at, return_std=True)
        assert np.all(np.isfinite(draws[:2].gradient(at)))
        assert np.all(np.abs(found.mean(axis=0) - mean) < 5 * deviations / np.sqrt(300))
        ratios = found.std(axis=0) / deviations
        assert 0.85 < np.median(ratios) < 1.15
        assert np.all((ratios > 0.7) & (ratios < 1.4))  # 300 draws have standard errors of 0.04, a few waves 0.1

    @models
    def test_are_functions(self, name):
        draws, X = fitted(name).draws(5, random_state=0), inner(20)
        assert_array_equal(draws.value(X), draws.value(X))
        assert_array_equal(draws.value(X), fitted(name).draws(5, random_state=0).value(X))
        assert_allclose(draws.value(X[::-1]), draws.value(X)[:, ::-1], atol=1e-9)
        assert not np.allclose(draws.value(X), fitted(name).draws(5, random_state=1).value(X), atol=1e-9)
        assert_array_equal(pickle.loads(pickle.dumps(draws)).value(X), draws.value(X))

    @models
    @pytest.mark.parametrize("where", [0.8, 3.0], ids=["inside", "far"])
    def test_gradients_are_derivatives(self, name, where):
        X, h = where * np.random.default_rng(2).uniform(-1, 1, (20, 2)), 1e-4
        draws = fitted(name).draws(4, random_state=0)
        steps = h * np.eye(2)
        differences = np.stack([(draws.value(X + s) - draws.value(X - s)) / (2 * h) for s in steps], axis=-1)
        gradients = draws.gradient(X)
        assert gradients.shape == (4, 20, 2)
        errors = np.abs(differences - gradients) / np.abs(gradients).max()
        assert np.median(errors) < 1e-4  # where the nearest sample changes there is a kink

    @models
    def test_grow_far_from_the_samples(self, name):
        spread = [fitted(name).draws(50, random_state=0).value(size * inner(50)).std(axis=0) for size in (1.0, 4.0)]
        assert np.median(spread[1]) > 10 * np.median(spread[0])

    def test_some_of_them(self):
        draws, X = fitted("wide").draws(7, random_state=0), inner(9)
        found, slopes = draws.value(X), draws.gradient(X)
        assert len(draws) == 7
        assert len(draws[2:5]) == 3
        close = {"atol": 1e-9}  # rounding of sums in another order
        assert_allclose(draws[3].value(X), found[3], **close)
        assert_allclose(draws[-1].gradient(X), slopes[-1], **close)
        assert_allclose(draws[2:5].value(X), found[2:5], **close)
        assert_allclose(draws[[4, 1]].value(X), found[[4, 1]], **close)
        assert_allclose(np.stack([draw.value(X) for draw in draws]), found, **close)
        with pytest.raises(IndexError):
            draws[7]

    @models
    def test_points_of_their_own(self, name):
        draws = fitted(name).draws(6, random_state=0)
        X = 2 * np.random.default_rng(1).uniform(-1, 1, (6, 3, 2))
        for evaluate in (Draws.value, Draws.gradient):
            each = np.stack([evaluate(draw, points) for draw, points in zip(draws, X, strict=True)])
            assert_allclose(evaluate(draws, X), each, rtol=1e-7, atol=1e-8)
        with pytest.raises(ValueError, match="each of 6 draws, got 5"):
            draws.value(X[:5])

    @pytest.mark.parametrize("name", ["wide", "sampled"])
    def test_outputs_that_are_multiples_of_each_other_stay_so(self, name):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (40, 2))
        y = values(X) + 0.1 * rng.normal(size=40)
        model = MODELS[name]().fit(X, np.stack([y, -3 * y, rng.normal(size=40)], axis=1))
        draws = model.draws(6, random_state=0)
        found, slopes = draws.value(inner(8)), draws.gradient(inner(8))
        assert found.shape == (6, 8, 3)
        assert slopes.shape == (6, 8, 3, 2)
        size = np.abs(found).max()
        assert_allclose(found[..., 1], -3 * found[..., 0], atol=1e-6 * size)
        own = draws.value(np.tile(inner(8), (6, 1, 1))), draws.gradient(np.tile(inner(8), (6, 1, 1)))
        assert_allclose(own[0], found, atol=1e-7 * size)
        assert_allclose(own[1], slopes, atol=1e-7 * np.abs(slopes).max())
        assert not np.allclose(found[..., 2], found[..., 0], atol=0.1 * size)

    def test_noise_is_no_part_of_an_infinitely_wide_network(self):
        rng = np.random.default_rng(1)
        X = rng.uniform(-1, 1, (150, 1))
        model = KernelFeatureRegressor().fit(X, np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=150))
        at = np.linspace(-0.8, 0.8, 30)[:, None]
        spread = model.draws(200, random_state=0).value(at).std(axis=0)
        assert np.all(model.predict(at, return_std=True)[1] > 0.2)
        assert np.all(spread < 0.15)
        truth = np.abs(model.predict(at) - np.sin(3 * at[:, 0]))
        assert np.mean(truth < 2.5 * spread) > 0.8

    @pytest.mark.filterwarnings("ignore:.*carry 90% of the squared error")
    @pytest.mark.parametrize("name", ["wide", "sampled"])
    @pytest.mark.parametrize("n", [20, 60])
    def test_bands_hold_new_values_as_intervals_do(self, name, n):
        """The share of new values in bands of 90%, over functions, is that of intervals of predictions."""
        shares = []
        for problem in (problems.get("planar_wave"), problems.get("gaussian_bump"), problems.get("borehole")):
            rng = np.random.default_rng(0)
            X, at = problem.sample(n, rng), problem.sample(500, rng)
            model = MODELS[name]().fit(X, problem.value(X))
            low, high = np.quantile(model.draws(200, random_state=0).value(at), (0.05, 0.95), axis=0)
            left, right = model.predict_interval(at, 0.9).T
            truth = problem.value(at)
            shares.append([np.mean((a <= truth) & (truth <= b)) for a, b in ((low, high), (left, right))])
        drawn, predicted = np.mean(shares, axis=0)
        assert drawn > predicted - 0.15
        assert drawn > 0.7

    def test_logarithms_of_inputs_and_values(self):
        """Draws are positive, their median is the prediction, and gradients go through both logarithms."""
        rng = np.random.default_rng(0)
        X = 10 ** rng.uniform(-1, 1, (40, 2))
        y = X[:, 0] ** 2 / X[:, 1] * np.exp(0.3 * np.sin(2 * np.log(X[:, 0])) + 0.05 * rng.normal(size=40))
        model = KernelFeatureRegressor(target="log", inputs="log").fit(X, y)
        draws, at, h = model.draws(300, random_state=0), 10 ** rng.uniform(-0.8, 0.8, (15, 2)), 1e-3
        found = draws.value(at)
        assert np.all(found > 0)
        logarithms = np.log(found)
        errors = np.mean(logarithms, axis=0) - np.log(model.predict(at))
        assert np.all(np.abs(errors) < 5 * logarithms.std(axis=0) / np.sqrt(300))
        few = draws[:3]
        steps = h * np.eye(2)
        differences = np.stack([(few.value(at + s) - few.value(at - s)) / (2 * h) for s in steps], axis=-1)
        slopes = few.gradient(at)
        # steps of 1e-3 at points of at least 0.16 change slopes by 1e-4, rounding of values by 1e-7 by as much
        assert_allclose(slopes, differences, rtol=2e-3, atol=1e-4 * np.abs(slopes).max())
        assert_allclose(few.gradient(np.stack([at] * 3)), slopes, rtol=1e-4, atol=1e-5 * np.abs(slopes).max())
        low, high = data_box(model)
        assert_allclose([low, high], [X.min(axis=0), X.max(axis=0)], rtol=1e-9)
        with pytest.raises(ValueError, match="must be positive"):
            draws.value(-at)

    def test_reduced_inputs(self):
        """A function of one direction of ten inputs: draws are functions of that direction."""
        rng = np.random.default_rng(0)
        X, a = rng.uniform(-1, 1, (60, 10)), np.arange(10) / 10
        slopes = np.cos(X @ a)[:, None] * a
        model = Surrogate(None, engines=["wide"], random_state=0).fit(X, np.sin(X @ a), gradients=slopes)
        assert model.scaling_.x_basis is not None
        gradients = model.draws(3, random_state=0).gradient(X)
        across = gradients - (gradients @ a)[..., None] * a / (a @ a)
        assert_allclose(across, 0, atol=1e-3)


class TestErrors:
    @pytest.mark.parametrize("n", [0, -1, 2.5, True, "many"])
    def test_numbers_of_draws(self, n):
        with pytest.raises(ValueError, match="`n` must be a whole number >= 1"):
            fitted("wide").draws(n)

    def test_too_few_samples(self):
        model = KernelFeatureRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
        with pytest.raises(ValueError, match="at least 3 samples"):
            model.draws(2)

    @pytest.mark.parametrize("X", [np.zeros((3, 5)), np.zeros(2)])
    def test_points_of_another_dimension(self, X):
        with pytest.raises(ValueError, match=r"`X` must be points of shape \(m, 2\)"):
            fitted("wide").draws(2).value(X)

    def test_are_of_one_class(self):
        assert all(type(fitted(name).draws(1)) is Draws for name in MODELS)
