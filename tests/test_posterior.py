"""How sure a fit is: against Gaussian processes, refits without a sample, and simulated data."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dense import functionals, make_features, normal_matrix, ridge, sample, total_weight
from nurf.engines import fit_outer
from nurf.jets import Jet
from nurf.networks import ShallowNetwork
from nurf.solvers import Loss
from nurf.solvers.ridge import DualRidge, Posterior, PreciseRidge, PrimalRidge
from nurf.solvers.ridge._posterior import MAX_LEFT_OUT, MIN_SAMPLES
from pairwise import pairwise

D, N_SAMPLES, ALPHA = 2, 14, 1e-3
sizes = pytest.mark.parametrize("n_neurons", [6, 50])  # fewer neurons than samples, and more
precisions = pytest.mark.parametrize("precise", [False, True], ids=["plain", "precise"])
losses = pytest.mark.parametrize("loss", [Loss(), Loss(0.2), Loss(0.2, 0.03)], ids=repr)
FRESH = np.random.default_rng(9).uniform(-1, 1, size=(7, D))


def make_jet(n=N_SAMPLES, outputs=(2,), weighted=True, seed=0):
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, *outputs, D, D))
    return Jet(
        rng.uniform(-1, 1, size=(n, D)),
        rng.normal(size=(n, *outputs)),
        rng.normal(size=(n, *outputs, D)),
        H + np.swapaxes(H, -1, -2),
        rng.uniform(1.0, 3, n) if weighted else None,
    )


def near(jet):
    """Seven points that are nearer to a sample than samples are to each other, so that distances add nothing."""
    return jet.X[:7] + 0.01


def fitted(features, jet, loss=Loss(), alpha=ALPHA, precise=False):  # noqa: B008
    """The posterior of a network that was fitted by dense algebra."""
    samples = [sample(features, jet, k, loss) for k in range(len(jet))]
    solution = ridge(samples, features.n_neurons, alpha, total_weight(jet))
    network = ShallowNetwork(features, solution.reshape(-1, *jet.y.shape[1:]))
    return Posterior.of(network, jet, alpha, loss, precise=precise)


def chosen(features, jet, **options):
    """The posterior of a fit with an alpha that was chosen."""
    fit = fit_outer(features, jet, **options)
    return Posterior.of(fit.network, jet, fit.ridge_alpha, fit.loss, precise=fit.precise)


class TestCovariance:
    @pairwise(
        pytest.mark.parametrize(
            ("form", "n_neurons"),  # the dual form is for more neurons than rows, of which a sample has up to six
            [(PrimalRidge, 6), (PrimalRidge, 90), (DualRidge, 90), (PreciseRidge, 6), (PreciseRidge, 90)],
        ),
        losses,
        degree=[-1, 0, 1],
    )
    def test_all_forms_of_ridge_regression_factor_the_inverse_of_the_normal_matrix(self, form, n_neurons, loss, degree):
        features, jet = make_features(n_neurons, D, degree), make_jet()
        samples = [sample(features, jet, k, loss) for k in range(len(jet))]
        matrix = normal_matrix(samples, n_neurons, ALPHA, total_weight(jet))
        whitened = np.linalg.cholesky(matrix).T @ form(features, jet, loss).covariance_factor(ALPHA)
        assert_allclose(whitened @ whitened.T, np.eye(features.n_columns), atol=1e-6)

    @precisions
    @sizes
    @losses
    def test_is_that_of_bayesian_linear_regression(self, precise, n_neurons, loss):
        features, jet = make_features(n_neurons, D, 1), make_jet()
        samples = [sample(features, jet, k, loss) for k in range(len(jet))]
        covariance = np.linalg.inv(normal_matrix(samples, n_neurons, ALPHA, total_weight(jet)))
        covariance *= total_weight(jet) / len(jet)  # a new measurement has the mean weight
        posterior = fitted(features, jet, loss, precise=precise)
        values, slopes = posterior.value_std(near(jet)), posterior.gradient_std(near(jet))
        assert values.shape == (7, 2)
        assert slopes.shape == (7, 2, D)
        for x, value, slope in zip(near(jet), values, slopes, strict=True):
            z, g, _ = functionals(features, x)
            assert_allclose(value, posterior.noise * np.sqrt(1 + z @ covariance @ z), rtol=1e-6)
            spread = np.sqrt(np.einsum("im,mn,in->i", g, covariance, g))
            assert_allclose(slope, posterior.gradient_factors * posterior.noise[:, None] * spread, rtol=1e-5)

    @precisions
    @sizes
    def test_is_that_of_a_gaussian_process(self, precise, n_neurons):
        """With the kernel ``phi(x).phi(x') / (alpha N W)`` and noise of variance one."""
        features, jet = make_features(n_neurons, D, -1), make_jet(outputs=(), weighted=False)
        design, at = (np.array([functionals(features, x)[0] for x in X]) for X in (jet.X, near(jet)))
        scale = 1 / (ALPHA * n_neurons * len(jet))
        K, cross = scale * design @ design.T + np.eye(len(jet)), scale * at @ design.T
        variance = scale * np.sum(at**2, axis=1) - np.sum(cross * np.linalg.solve(K, cross.T).T, axis=1)
        posterior = fitted(features, jet, precise=precise)
        assert_allclose(posterior.value_std(near(jet))[:, 0], posterior.noise * np.sqrt(1 + variance), rtol=1e-7)

    def test_many_points_come_in_blocks(self, monkeypatch):
        posterior = fitted(make_features(6, D, 1), make_jet())
        whole = posterior.value_std(FRESH), posterior.gradient_std(FRESH), posterior.interval(FRESH, 0.8)
        again = fitted(make_features(6, D, 1), make_jet())
        monkeypatch.setattr(
            "nurf.solvers.ridge._posterior.row_blocks", lambda n, *_: [slice(i, min(i + 3, n)) for i in range(0, n, 3)]
        )
        parts = again.value_std(FRESH), again.gradient_std(FRESH), again.interval(FRESH, 0.8)
        for a, b in zip(whole, parts, strict=True):
            assert_allclose(a, b, rtol=1e-9)


class TestNoise:
    @precisions
    @sizes
    def test_equals_the_dense_formula(self, precise, n_neurons):
        """``sum w r^2 / (1 - h) / sum w`` with the leverages of the dense map from data to predictions."""
        features, jet = make_features(n_neurons, D, 0), make_jet()
        samples = [sample(features, jet, k, Loss()) for k in range(len(jet))]
        Z, y = (np.concatenate(parts) for parts in zip(*samples, strict=True))
        hat = Z @ np.linalg.inv(normal_matrix(samples, n_neurons, ALPHA, total_weight(jet))) @ Z.T
        expected = np.sum((y - hat @ y) ** 2 / (1 - np.diag(hat))[:, None], axis=0) / jet.sample_weight.sum()
        assert_allclose(fitted(features, jet, precise=precise).noise, np.sqrt(expected), rtol=1e-6)

    @pytest.mark.parametrize("level", [0.01, 0.5])
    def test_is_found(self, level):
        """Of planted networks with 16 coefficients, from 60 values.

        About 44 degrees of freedom are left, so that an estimate has a relative standard deviation of ``1 / sqrt(88)``,
        and the mean of 100 of them 0.0107. The tolerance is five of these, and 0.01 for the choice of alpha.
        """
        features, found = make_features(15, D, 0), []
        for seed in range(100):
            rng = np.random.default_rng(seed)
            X = rng.uniform(-1, 1, size=(60, D))
            y = features.design(X) @ rng.normal(size=16) + level * rng.normal(size=60)
            found.append(chosen(features, Jet(X, y)).noise[0] / level)
        assert abs(np.mean(found) - 1) < 0.0635

    def test_of_each_output(self):
        """From 100 stored samples, with a relative standard deviation of ``1 / sqrt(200)``; five are allowed."""
        rng, features = np.random.default_rng(0), make_features(10, D, 0)
        X = rng.uniform(-1, 1, size=(400, D))
        y = (features.design(X) @ rng.normal(size=11))[:, None] + rng.normal(size=(400, 2)) * [0.1, 1.0]
        posterior = chosen(features, Jet(X, y), alphas=np.array([1e-10]))
        assert_allclose(posterior.noise, [0.1, 1.0], rtol=5 / np.sqrt(200))


class TestWeights:
    def std(self, jet):
        posterior = fitted(make_features(6, D), jet)
        return np.concatenate([posterior.value_std(FRESH)[..., None], posterior.gradient_std(FRESH)], axis=2)

    @pytest.mark.parametrize("unit", [1 / N_SAMPLES, 2.0])
    def test_their_unit_means_nothing(self, unit):
        jet = make_jet(weighted=False)
        assert_allclose(self.std(replace(jet, sample_weight=np.full(N_SAMPLES, unit))), self.std(jet), rtol=1e-9)

    def test_samples_without_value_or_weight_are_not_left_out(self):
        jet = make_jet()
        y, weights = jet.y.copy(), jet.sample_weight.copy()
        y[3], weights[5] = np.nan, 0.0
        posterior = fitted(make_features(6, D), replace(jet, y=y, sample_weight=weights), Loss(0.2))
        assert np.all(np.isfinite(posterior.value_std(FRESH)))
        assert np.all(np.isfinite(posterior.interval(FRESH, 12 / 13)))
        assert len(posterior._left_out[0]) == 12


def by_refits(features, jet, loss, coverage):
    """The jackknife+ by its definition: one dense fit without each sample, and order statistics."""
    samples, total = [sample(features, jet, k, loss) for k in range(len(jet))], total_weight(jet)
    low, high = [], []
    for k in range(len(jet)):
        solution = ridge(samples[:k] + samples[k + 1 :], features.n_neurons, ALPHA, total)
        error = np.abs(jet.y[k] - functionals(features, jet.X[k])[0] @ solution)
        values = np.array([functionals(features, x)[0] @ solution for x in near(jet)])
        low.append(values - error)
        high.append(values + error)
    rank = round((1 - coverage) * (len(jet) + 1))
    return np.stack([np.sort(low, axis=0)[rank - 1], np.sort(high, axis=0)[-rank]], axis=-1)


class TestIntervals:
    @precisions
    @sizes
    @losses
    def test_equal_refits_without_each_sample(self, precise, n_neurons, loss):
        features, jet = make_features(n_neurons, D, 0), make_jet()
        found = fitted(features, jet, loss, precise=precise).interval(near(jet), 0.8)
        assert found.shape == (7, 2, 2)
        assert_allclose(found, by_refits(features, jet, loss, 0.8), rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("heavy", [False, True], ids=["normal", "heavy_tails"])
    def test_cover_fresh_values(self, heavy):
        """About as often as promised, for noise of any distribution: 60 data sets of 60 values, 100 fresh ones each.

        The share that the intervals of one data set hold varies like a Beta variable by ``sqrt(0.9 0.1 / 62)``, and by
        the binomial deviation of 100 values: the mean over the sets by 0.0063. The tolerance is five of these, and 0.01
        because alpha is chosen on the same values.
        """
        features, rng, covered = make_features(20, D), np.random.default_rng(0), []

        def draw(n):
            X = rng.uniform(-1, 1, size=(n, D))
            return X, np.sin(3 * X[:, 0]) + 0.3 * (rng.standard_t(2, n) if heavy else rng.normal(size=n))

        for _ in range(60):
            posterior = chosen(features, Jet(*draw(60)))
            X, y = draw(100)
            low, high = posterior.interval(X, 0.9)[:, 0].T
            assert np.all(low < high)
            covered.append(np.mean((low <= y) & (y <= high)))
        assert abs(np.mean(covered) - 0.9) < 5 * 0.0063 + 0.01

    def test_standard_deviations_are_those_of_fresh_values(self):
        """Weights from the prior of the penalty, noise of variance one: errors over deviations have variance one.

        Deviations are those for unit noise, so that the ratios are exactly normal. The means of their squares over 400
        independent data sets give their own standard error; the tolerance is five of these.
        """
        features, rng, squares = make_features(25, D, -1), np.random.default_rng(1), []
        for _ in range(400):
            X = rng.uniform(-1, 1, size=(40, D))
            coef = rng.normal(size=25) / np.sqrt(ALPHA * 25 * 40)
            jet = Jet(X, features.design(X) @ coef + rng.normal(size=40))
            posterior = chosen(features, jet, alphas=np.array([ALPHA / DualRidge(features, jet).feature_energy]))
            fresh = rng.uniform(-1, 1, size=(10, D))
            errors = features.design(fresh) @ coef + rng.normal(size=10) - posterior.network.value(fresh)
            squares.append(np.mean((errors / posterior.value_std(fresh)[:, 0] * posterior.noise) ** 2))
        assert abs(np.mean(squares) - 1) < 5 * np.std(squares) / 20

    def test_wider_for_more_coverage(self):
        posterior = fitted(make_features(6, D), make_jet(60))
        narrow, wide = (posterior.interval(FRESH, coverage) for coverage in (0.5, 0.95))
        assert np.all(wide[..., 0] < narrow[..., 0])
        assert np.all(wide[..., 1] > narrow[..., 1])

    def test_the_largest_coverage_takes_the_extremes(self):
        """Nine samples can promise 0.9, though ``1 - 0.9`` is a little less than a tenth."""
        features, jet = make_features(3, D), make_jet(9)
        expected = by_refits(features, jet, Loss(), 0.9)
        assert_allclose(fitted(features, jet).interval(near(jet), 0.9), expected, rtol=1e-6)

    def test_more_than_the_largest_coverage_is_stretched(self):
        """Errors are taken to have the tails of a t distribution."""
        features, jet = make_features(3, D), make_jet(9)
        narrow, wide = (fitted(features, jet).interval(FRESH, coverage) for coverage in (0.9, 0.99))
        assert np.all(wide[..., 0] < narrow[..., 0])
        assert np.all(wide[..., 1] > narrow[..., 1])
        stretch = 3.25 / 1.833 * (1 + 1 / np.sqrt(18))  # tables of t_9, and one standard error of 9 errors
        assert np.all(wide[..., 1] - wide[..., 0] <= stretch * (narrow[..., 1] - narrow[..., 0]))

    @pytest.mark.parametrize("coverage", [0.0, 1.0, -0.5, 2.0, np.nan])
    def test_errors(self, coverage):
        with pytest.raises(ValueError, match=f"`coverage` must be a number between 0 and 1, got {coverage}"):
            fitted(make_features(3, D), make_jet()).interval(FRESH, coverage)


class TestOptimism:
    """Errors at samples that were held out of the whole fit may be larger than those at samples that leave it."""

    def test_intervals_and_deviations_hold_the_larger_errors(self):
        features, jet = make_features(6, D), make_jet(30)
        plain = fitted(features, jet)
        wary = Posterior.of(plain.network, jet, plain.alpha, plain.loss, optimism=np.array([2.0, 1.0]))
        assert_allclose(wary.value_std(FRESH), plain.value_std(FRESH) * wary.optimism)
        assert_allclose(wary.gradient_std(FRESH), plain.gradient_std(FRESH) * wary.optimism[:, None])
        wide, narrow = (np.diff(posterior.interval(FRESH, 0.9))[..., 0] for posterior in (wary, plain))
        assert np.all(wide[:, 0] > narrow[:, 0])
        assert_allclose(wide[:, 1], narrow[:, 1])


class TestGradients:
    @precisions
    @sizes
    @losses
    def test_factors_are_those_of_refits_without_each_sample(self, precise, n_neurons, loss):
        """The 0.9 quantile of |error| / deviation of 14 dense refits, which is the 14th, over that of the normal."""
        features, jet = make_features(n_neurons, D, 1), make_jet()
        posterior = fitted(features, jet, loss, precise=precise)
        samples, total, ratios = [sample(features, jet, k, loss) for k in range(len(jet))], total_weight(jet), []
        for k in range(len(jet)):
            rest, rows = samples[:k] + samples[k + 1 :], functionals(features, jet.X[k])[1]
            error = jet.gradients[k] - (rows @ ridge(rest, n_neurons, ALPHA, total)).T
            covariance = np.linalg.inv(normal_matrix(rest, n_neurons, ALPHA, total)) * total / len(jet)
            deviations = np.sqrt(np.einsum("im,mn,in->i", rows, covariance, rows))
            ratios.append(np.abs(error) / deviations / posterior.noise[:, None])
        assert posterior.knows_gradients
        assert_allclose(posterior.gradient_factors, np.max(ratios, axis=0) / 1.6448536, rtol=1e-5)

    def test_without_gradients_there_are_none(self):
        jet = make_jet()
        posterior = fitted(make_features(6, D, 1), jet.only(()))
        assert not posterior.knows_gradients
        assert np.all(np.isnan(posterior.gradient_factors))
        assert np.all(np.isfinite(posterior.gradient_std(FRESH)))

    def test_unknown_partial_derivatives_do_not_count(self):
        jet = make_jet()
        gradients = jet.gradients.copy()
        gradients[3:, :, 0] = np.nan  # three are left
        gradients[:, :, 1] = np.nan
        posterior = fitted(make_features(6, D, 1), replace(jet, gradients=gradients))
        assert np.all(np.isfinite(posterior.gradient_factors) == [True, False])


class TestStorage:
    """Samples are stored, and no more of them than the network is worth."""

    N = 1200

    def test_few_samples_are_all_stored(self):
        jet = make_jet(60)
        posterior = fitted(make_features(6, D), jet, Loss(0.1))
        assert posterior.multiple == 1
        assert_array_equal(posterior.samples.X, jet.X)
        assert_array_equal(posterior.samples.gradients, jet.gradients)
        assert_array_equal(posterior.samples.weights(0), jet.sample_weight)
        assert posterior.samples.hessians is None

    @pytest.mark.parametrize("n_neurons", [6, 300])
    def test_many_samples_are_stored_in_part(self, n_neurons):
        """All their numbers together are a few times those of the network, and their weights are those of all."""
        jet, rng = make_jet(self.N, weighted=False), np.random.default_rng(0)
        features = make_features(n_neurons, D)
        network = ShallowNetwork(features, rng.normal(size=(n_neurons + 1, 2)))
        samples = Posterior.of(network, jet, ALPHA, Loss(0.1)).samples
        numbers = samples.X.size + samples.y.size + samples.gradients.size
        assert len(samples) == MIN_SAMPLES or numbers <= 6 * (n_neurons * (D + 2 + 2) + 2)
        assert MIN_SAMPLES <= len(samples) < self.N
        assert len(np.unique(samples.X, axis=0)) == len(samples)
        assert_allclose(samples.weights(0).sum(), self.N, rtol=1e-12)
        assert_allclose(samples.weights(1).sum(), self.N, rtol=1e-12)

    def test_the_part_tells_what_all_would(self):
        """For 7 coefficients, 100 samples are enough: their covariance deviates by about ``sqrt(7 / 100)`` from that of
        1200, standard deviations by half of it, and the noise by ``1 / sqrt(200)``; tolerances are five of these, or
        for deviations, of which noise is the larger part, less."""
        rng, features = np.random.default_rng(0), make_features(6, D)
        X = rng.uniform(-1, 1, size=(self.N, D))
        jet = Jet(X, features.design(X) @ rng.normal(size=7) + 0.3 * rng.normal(size=self.N))
        part = chosen(features, jet, alphas=np.array([1e-6]))
        whole = replace(part, samples=jet, multiple=1.0)
        assert len(part.samples) == MIN_SAMPLES
        assert_allclose(part.noise, whole.noise, rtol=5 / np.sqrt(200))
        assert_allclose(whole.noise, 0.3, rtol=5 / np.sqrt(2 * MAX_LEFT_OUT))
        unit = [p.gradient_std(FRESH) / p.noise[:, None] for p in (part, whole)]
        assert_allclose(unit[0], unit[1], rtol=2.5 * np.sqrt(7 / 100))

    def test_what_was_computed_is_not_pickled(self):
        posterior = fitted(make_features(6, D), make_jet(60))
        before = pickle.dumps(posterior)
        expected = posterior.interval(FRESH, 0.8), posterior.value_std(FRESH), posterior.gradient_std(FRESH)
        assert len(pickle.dumps(posterior)) == len(before)
        loaded = pickle.loads(pickle.dumps(posterior))
        found = loaded.interval(FRESH, 0.8), loaded.value_std(FRESH), loaded.gradient_std(FRESH)
        for a, b in zip(found, expected, strict=True):
            assert_array_equal(a, b)
