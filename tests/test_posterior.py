"""How sure a fit is: against Gaussian processes, refits without a sample, and simulated data."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dense import functionals, make_features, normal_matrix, ridge, sample, total_weight
from nurf.jets import Jet
from nurf.networks import ShallowNetwork
from nurf.solvers import Loss
from nurf.solvers.ridge import DualRidge, Posterior, PreciseRidge, PrimalRidge
from nurf.solvers.ridge._posterior import MOST_SAMPLES
from nurf.training import fit_outer

D, N_SAMPLES, ALPHA = 2, 14, 1e-3
FORMS = {
    "primal": PrimalRidge,
    "dual": DualRidge,
    "precise": PreciseRidge,
}
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
sizes = pytest.mark.parametrize("n_neurons", [6, 50])
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


def fitted(form, features, jet, loss=Loss(), alpha=ALPHA):  # noqa: B008
    problem = form(features, jet, loss)
    network = ShallowNetwork(features, problem.solve(np.array([alpha]))[0].reshape(-1, *jet.y.shape[1:]))
    return Posterior.of(problem, alpha, network, jet)


class TestCovariance:
    @forms
    @sizes
    @losses
    def test_is_that_of_bayesian_linear_regression(self, form, n_neurons, loss):
        features, jet = make_features(n_neurons, D, 1), make_jet()
        samples = [sample(features, jet, k, loss) for k in range(len(jet))]
        covariance = np.linalg.inv(normal_matrix(samples, n_neurons, ALPHA, total_weight(jet)))
        posterior = fitted(form, features, jet, loss)
        values, slopes = posterior.value_std(FRESH), posterior.gradient_std(FRESH)
        assert values.shape == (7, 2)
        assert slopes.shape == (7, 2, D)
        for x, value, slope in zip(FRESH, values, slopes, strict=True):
            z, g, _ = functionals(features, x)
            assert_allclose(value, posterior.noise * np.sqrt(1 + z @ covariance @ z), rtol=1e-6)
            spread = np.sqrt(np.einsum("im,mn,in->i", g, covariance, g))
            assert_allclose(slope, posterior.noise[:, None] * spread, rtol=1e-5)

    @forms
    @sizes
    def test_is_that_of_a_gaussian_process(self, form, n_neurons):
        """With the kernel ``phi(x).phi(x') / (alpha N W)`` and noise of variance one."""
        features, jet = make_features(n_neurons, D, -1), make_jet(outputs=(), weighted=False)
        design, at = (np.array([functionals(features, x)[0] for x in X]) for X in (jet.X, FRESH))
        scale = 1 / (ALPHA * n_neurons * len(jet))
        K, cross = scale * design @ design.T + np.eye(len(jet)), scale * at @ design.T
        variance = scale * np.sum(at**2, axis=1) - np.sum(cross * np.linalg.solve(K, cross.T).T, axis=1)
        posterior = fitted(form, features, jet)
        assert_allclose(posterior.value_std(FRESH)[:, 0], posterior.noise * np.sqrt(1 + variance), rtol=1e-7)

    @forms
    def test_many_points_come_in_blocks(self, form, monkeypatch):
        posterior = fitted(form, make_features(6, D, 1), make_jet())
        whole = posterior.value_std(FRESH), posterior.gradient_std(FRESH), posterior.interval(FRESH, 0.8)
        again = fitted(form, make_features(6, D, 1), make_jet())
        monkeypatch.setattr(
            "nurf.solvers.ridge._posterior.row_blocks", lambda n, *_: [slice(i, min(i + 3, n)) for i in range(0, n, 3)]
        )
        parts = again.value_std(FRESH), again.gradient_std(FRESH), again.interval(FRESH, 0.8)
        for a, b in zip(whole, parts, strict=True):
            assert_allclose(a, b, rtol=1e-9)


class TestNoise:
    @forms
    @sizes
    def test_equals_the_dense_formula(self, form, n_neurons):
        """``sum w r^2 / (1 - h) / sum w`` with the leverages of the dense map from data to predictions."""
        features, jet = make_features(n_neurons, D, 0), make_jet()
        samples = [sample(features, jet, k, Loss()) for k in range(len(jet))]
        Z, y = (np.concatenate(parts) for parts in zip(*samples, strict=True))
        hat = Z @ np.linalg.inv(normal_matrix(samples, n_neurons, ALPHA, total_weight(jet))) @ Z.T
        expected = np.sum((y - hat @ y) ** 2 / (1 - np.diag(hat))[:, None], axis=0) / jet.sample_weight.sum()
        assert_allclose(fitted(form, features, jet).noise, np.sqrt(expected), rtol=1e-7)

    @pytest.mark.parametrize("level", [0.01, 0.5])
    def test_is_found(self, level):
        """Of planted networks; the mean of 30 estimates is within 4% of the truth, each within 35%."""
        features, found = make_features(15, D, 0), []
        for seed in range(30):
            rng = np.random.default_rng(seed)
            X = rng.uniform(-1, 1, size=(60, D))
            y = features.design(X) @ rng.normal(size=16) + level * rng.normal(size=60)
            found.append(fit_outer(features, Jet(X, y)).posterior.noise[0] / level)
        assert abs(np.mean(found) - 1) < 0.04
        assert np.all(np.abs(np.array(found) - 1) < 0.35)

    def test_of_each_output(self):
        rng, features = np.random.default_rng(0), make_features(10, D, 0)
        X = rng.uniform(-1, 1, size=(400, D))
        y = (features.design(X) @ rng.normal(size=11))[:, None] + rng.normal(size=(400, 2)) * [0.1, 1.0]
        posterior = fit_outer(features, Jet(X, y), alphas=np.array([1e-10])).posterior
        assert_allclose(posterior.noise, [0.1, 1.0], rtol=0.1)


class TestWeights:
    def std(self, jet):
        posterior = fitted(FORMS["primal"], make_features(6, D), jet)
        return np.concatenate([posterior.value_std(FRESH)[..., None], posterior.gradient_std(FRESH)], axis=2)

    def test_that_add_up_to_one_are_no_row_counts(self):
        jet = make_jet(weighted=False)
        assert_allclose(
            self.std(replace(jet, sample_weight=np.full(N_SAMPLES, 1 / N_SAMPLES))), self.std(jet), rtol=1e-9
        )

    def test_of_two_are_rows_twice(self):
        """The covariance is that of the longer data; the noise is taken out of both."""
        jet = make_jet(weighted=False)
        twice = fitted(FORMS["primal"], make_features(6, D), jet[np.repeat(np.arange(N_SAMPLES), 2)])
        heavy = fitted(FORMS["primal"], make_features(6, D), replace(jet, sample_weight=np.full(N_SAMPLES, 2.0)))
        a, b = (posterior.value_std(FRESH) / posterior.noise for posterior in (twice, heavy))
        assert_allclose(a, b, rtol=1e-9)

    def test_samples_without_value_or_weight_are_not_left_out(self):
        jet = make_jet()
        y, weights = jet.y.copy(), jet.sample_weight.copy()
        y[3], weights[5] = np.nan, 0.0
        posterior = fitted(FORMS["primal"], make_features(6, D), replace(jet, y=y, sample_weight=weights), Loss(0.2))
        assert len(posterior.samples) == N_SAMPLES - 2
        assert np.all(np.isfinite(posterior.value_std(FRESH)))
        assert np.all(np.isfinite(posterior.interval(FRESH, 0.8)))


def by_refits(features, jet, loss, coverage):
    """The jackknife+ by its definition: one dense fit without each sample, and order statistics."""
    samples, total = [sample(features, jet, k, loss) for k in range(len(jet))], total_weight(jet)
    low, high = [], []
    for k in range(len(jet)):
        solution = ridge(samples[:k] + samples[k + 1 :], features.n_neurons, ALPHA, total)
        error = np.abs(jet.y[k] - functionals(features, jet.X[k])[0] @ solution)
        values = np.array([functionals(features, x)[0] @ solution for x in FRESH])
        low.append(values - error)
        high.append(values + error)
    rank = round((1 - coverage) * (len(jet) + 1))
    return np.stack([np.sort(low, axis=0)[rank - 1], np.sort(high, axis=0)[-rank]], axis=-1)


class TestIntervals:
    @forms
    @sizes
    @losses
    def test_equal_refits_without_each_sample(self, form, n_neurons, loss):
        features, jet = make_features(n_neurons, D, 0), make_jet()
        found = fitted(form, features, jet, loss).interval(FRESH, 0.8)
        assert found.shape == (7, 2, 2)
        assert_allclose(found, by_refits(features, jet, loss, 0.8), rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("heavy", [False, True], ids=["normal", "heavy_tails"])
    def test_cover_fresh_values(self, heavy):
        """About as often as promised, for noise of any law: 40 data sets of 60 values, 100 fresh ones each."""
        features, rng, covered = make_features(20, D), np.random.default_rng(0), []

        def draw(n):
            X = rng.uniform(-1, 1, size=(n, D))
            return X, np.sin(3 * X[:, 0]) + 0.3 * (rng.standard_t(2, n) if heavy else rng.normal(size=n))

        for _ in range(40):
            posterior = fit_outer(features, Jet(*draw(60))).posterior
            X, y = draw(100)
            low, high = posterior.interval(X, 0.9)[:, 0].T
            assert np.all(low < high)
            covered.append(np.mean((low <= y) & (y <= high)))
        assert 0.87 < np.mean(covered) < 0.95

    def test_standard_deviations_are_those_of_fresh_values(self):
        """Weights from the prior of the penalty and noise of variance one: errors over deviations have variance one."""
        features, rng, ratios = make_features(25, D, -1), np.random.default_rng(1), []
        for _ in range(60):
            X = rng.uniform(-1, 1, size=(40, D))
            coef = rng.normal(size=25) / np.sqrt(ALPHA * 25 * 40)
            posterior = fitted(FORMS["primal"], features, Jet(X, features.design(X) @ coef + rng.normal(size=40)))
            fresh = rng.uniform(-1, 1, size=(20, D))
            errors = features.design(fresh) @ coef + rng.normal(size=20) - posterior.network.value(fresh)
            ratios.append(errors / posterior.value_std(fresh)[:, 0])
        assert abs(np.std(ratios) - 1) < 0.06

    def test_wider_for_more_coverage(self):
        posterior = fitted(FORMS["primal"], make_features(6, D), make_jet(60))
        narrow, wide = (posterior.interval(FRESH, coverage) for coverage in (0.5, 0.95))
        assert np.all(wide[..., 0] < narrow[..., 0])
        assert np.all(wide[..., 1] > narrow[..., 1])

    def test_the_largest_coverage_takes_the_extremes(self):
        """Nine samples can promise 0.9, though ``1 - 0.9`` is a little less than a tenth."""
        features, jet = make_features(3, D), make_jet(9)
        assert_allclose(fitted(FORMS["primal"], features, jet).interval(FRESH, 0.9), by_refits(
            features, jet, Loss(), 0.9), rtol=1e-6)  # fmt: skip
        with pytest.raises(ValueError, match=r"at most 0.9 with 9 samples that can be left out, got 0.91"):
            fitted(FORMS["primal"], features, jet).interval(FRESH, 0.91)

    @pytest.mark.parametrize("coverage", [0.0, 1.0, -0.5, 2.0, np.nan])
    def test_errors(self, coverage):
        with pytest.raises(ValueError, match=f"`coverage` must be a number between 0 and 1, got {coverage}"):
            fitted(FORMS["primal"], make_features(3, D), make_jet()).interval(FRESH, coverage)

    def test_many_samples_are_a_part_of_them(self):
        posterior = fitted(FORMS["primal"], make_features(6, D), make_jet(1200, weighted=False))
        assert len(posterior.samples) == len(np.unique(posterior.samples.X, axis=0)) == MOST_SAMPLES
        whole = fitted(FORMS["primal"], make_features(6, D), make_jet(1200, weighted=False))
        object.__setattr__(whole, "samples", make_jet(1200, weighted=False))
        assert_allclose(posterior.noise, whole.noise, rtol=0.1)
