"""Trained networks: errors, standard deviations and intervals from refits on folds."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nurf import Jet, RandomFeatureRegressor, SparseFeatureRegressor, polish, problems
from nurf.activations import Sigmoid
from nurf.choosing import assign_folds
from nurf.densities import Uniform
from nurf.engines import CrossFit, fit_outer, fit_random, fit_sparse
from nurf.engines import polish as polish_fit
from nurf.networks import ShallowNetwork
from nurf.solvers.sparse._misfit import Misfit
from nurf.solvers.sparse._penalties import LogPenalty, row_sizes

CORNER = problems.get("corner")
CHECKMARK = problems.get("checkmark", dimension=2)


def noisy(problem, n, seed=0, noise=0.1, n_fresh=1000):
    """Return samples and fresh ones, with noise in units of the standard deviation of the values."""
    rng = np.random.default_rng(seed)
    X = problem.sample(n + n_fresh, rng)
    y = problem.value(X)
    y += noise * np.std(y) * rng.standard_normal(len(y))
    return X[:n], y[:n], X[n:], y[n:]


def share_inside(estimator, X, y):
    low, high = estimator.predict_interval(X).T
    values, deviations = estimator.predict(X, return_std=True)
    return np.mean((low <= y) & (y <= high)), np.mean(np.abs(y - values) < 1.645 * deviations)


class TestCrossFit:
    def test_each_fold_has_its_part_of_values_and_of_derivatives(self):
        y = np.where(np.arange(33) < 23, 1.0, np.nan)
        jet = Jet(np.linspace(-1, 1, 33)[:, None], y, np.ones((33, 1)))
        folds = assign_folds(jet, 5)
        assert_array_equal(folds, assign_folds(jet, 5))
        for part, counts in ((jet.has_value, [5, 5, 5, 4, 4]), (~jet.has_value, [2] * 5)):
            assert sorted(np.bincount(folds[part]), reverse=True) == counts
        assert set(assign_folds(jet[:3], 5)) == {0, 1, 2}

    def test_equal_points_are_in_one_fold(self):
        """With values or without: no fit sees the point at which it is judged."""
        X = np.random.default_rng(0).integers(0, 5, (60, 2)).astype(float)
        jet = Jet(X, np.where(np.arange(60) < 40, 1.0, np.nan), np.ones((60, 2)))
        folds = assign_folds(jet, 5)
        for point in np.unique(X, axis=0):
            assert len(set(folds[np.all(point == X, axis=1)])) == 1
        assert set(folds[jet.has_value]) == set(range(5))

    def test_refits_are_those_to_the_rest_of_each_fold(self):
        X, y, *_ = noisy(CORNER, 40)
        jet = Jet(X, y)
        features = fit_random(jet, Uniform(), Sigmoid(0.5), 8, np.random.default_rng(0)).network.features
        fit = fit_outer(features, jet, alphas=np.array([1e-2]))

        def refit(part):
            Z = features.design(part.X)
            penalty = np.diag([fit.ridge_alpha * 8 * len(part)] * 8 + [0.0])
            return ShallowNetwork(features, np.linalg.solve(Z.T @ Z + penalty, Z.T @ part.y))

        crossfit = CrossFit.by_refits(fit.network, jet, refit, 4)
        folds = assign_folds(jet, 4)
        errors = [y[folds == j] - refit(jet[folds != j]).value(X[folds == j]) for j in range(4)]
        assert_allclose(crossfit.errors[:, 0], np.concatenate(errors))

    def test_uneven_weights_make_errors_less_certain(self):
        """The weighted root mean square, and its standard error for the effective number of samples."""
        X, y, *_ = noisy(CORNER, 40)
        weights = 625 ** np.random.default_rng(0).random(40)
        jet = Jet(X, y, sample_weight=weights)
        network = fit_random(jet, Uniform(), Sigmoid(0.5), 8, np.random.default_rng(0)).network
        crossfit = CrossFit.of(network, [network] * 4, [jet[j::4] for j in range(4)])
        squares = weights @ (y - network.value(X)) ** 2 / weights.sum()
        effective = weights.sum() ** 2 / np.sum(weights**2)
        assert effective < 25
        assert_allclose(crossfit.output_errors, (1 + 1 / np.sqrt(2 * effective)) * np.sqrt(squares))
        even = CrossFit.of(network, [network] * 4, [replace(jet[j::4], sample_weight=None) for j in range(4)])
        assert_allclose(even.output_errors, (1 + 1 / np.sqrt(80)) * np.sqrt(np.mean((y - network.value(X)) ** 2)))
        for fresh in (np.diff(crossfit.interval(X, 0.9)), crossfit.value_std(X)):
            assert np.all(np.isfinite(fresh) & (fresh > 0))


class TestSparse:
    def test_networks_are_trained_without_their_folds(self):
        """Training lowers the objective on the rest of the fold, from the network of all samples on."""
        X, y, *_ = noisy(CORNER, 60)
        jet = Jet(X, y / np.std(y))
        fit = fit_sparse(jet, Sigmoid(0.2), np.random.default_rng(0), alphas=[3e-3], n_folds=3)
        assert len(fit.crossfit.folds) == 3
        one_standard_error = 1 + 1 / np.sqrt(2 * len(fit.crossfit.errors))
        assert_allclose(fit.output_errors, one_standard_error * np.sqrt(np.mean(fit.crossfit.errors**2, axis=0)))

        def objective(network, part):
            columns = ShallowNetwork(network.features, network.coefficients[:, None])
            return Misfit(part).residual(columns).loss + 3e-3 * LogPenalty().value(row_sizes(columns.coef)).sum()

        for j, fold in enumerate(fit.crossfit.folds):
            values = fit.crossfit.errors[fit.crossfit.fold_of == j, 0]
            distances = np.abs(np.subtract.outer(jet.y - fold.value(X), values))
            inside = distances.min(axis=1) < 1e-10
            assert np.count_nonzero(inside) == 20
            assert objective(fold, jet[~inside]) < objective(fit.network, jet[~inside])

    @pytest.mark.parametrize("n", [60, 150])
    def test_errors_and_intervals_are_honest(self, n):
        """Over seeds the shares are 0.89 and 0.83 (60 samples), 0.91 and 0.89 (150), with deviations up to 0.06.

        The ratios of errors have means of 0.90 and 0.98, and deviations of 0.18 and 0.09.
        """
        X, y, fresh, values = noisy(CORNER, n)
        estimator = SparseFeatureRegressor(random_state=0).fit(X, y)
        assert min(share_inside(estimator, fresh, values)) > 0.55
        error = np.sqrt(np.mean((estimator.predict(fresh) - values) ** 2))
        assert 1 / 3 < estimator.estimated_error_ / error < 3

    def test_errors_are_in_the_units_of_each_output(self):
        X, y, fresh, values = noisy(CORNER, 100)
        estimator = SparseFeatureRegressor(alpha=3e-3, random_state=0).fit(X, np.stack([y, 1000 * y], axis=1))
        error = np.sqrt(np.mean((estimator.predict(fresh)[:, 0] - values) ** 2))
        assert_allclose(estimator.estimated_error_[1], 1000 * estimator.estimated_error_[0], rtol=1e-6)
        assert 1 / 3 < estimator.estimated_error_[0] / error < 3
        assert estimator.predict_interval(fresh).shape == (1000, 2, 2)

    @pytest.mark.parametrize("parameters", [{}, {"n_initial": 5}, {"tail": "none"}, {"width": "learned"}], ids=str)
    @pytest.mark.parametrize("n", [3, 30])
    def test_constant_values(self, n, parameters):
        X = np.random.default_rng(0).uniform(size=(n, 2))
        estimator = SparseFeatureRegressor(random_state=0, **parameters).fit(X, np.full(n, 0.1))
        assert_allclose(estimator.predict(X), 0.1)
        assert estimator.n_neurons_ == 0
        assert estimator.estimated_error_ == 0
        assert_allclose(estimator.predict_interval(X), 0.1)

    def test_the_unit_of_weights_means_nothing(self):
        X, y, fresh, _ = noisy(CORNER, 40)
        plain = SparseFeatureRegressor(random_state=0).fit(X, y)
        for weight in (0.25, 8.0):
            weighted = SparseFeatureRegressor(random_state=0).fit(X, y, sample_weight=np.full(40, weight))
            assert_allclose(weighted.predict(fresh), plain.predict(fresh))
            assert_allclose(weighted.estimated_error_, plain.estimated_error_)


class TestPolish:
    def test_errors_and_intervals_are_honest(self):
        """Over seeds the shares are 0.93 and 0.88, with deviations 0.04 and 0.06.

        The ratio of errors has mean 1.03 and deviation 0.15; that of the residuals of trained weights 0.63 and 0.13.
        """
        X, y, fresh, values = noisy(CORNER, 60)
        sampled = RandomFeatureRegressor(40, width=0.2, density="uniform", growth=None, random_state=0).fit(X, y)
        polished = polish(sampled, Jet(X, y))
        error = np.sqrt(np.mean((polished.predict(fresh) - values) ** 2))
        assert 1 / 3 < polished.estimated_error_ / error < 3
        assert min(share_inside(polished, fresh, values)) > 0.55

    def test_without_folds_the_error_is_not_known(self):
        X, y, *_ = noisy(CHECKMARK, 60)
        fit = fit_random(Jet(X, y), Uniform(), Sigmoid(0.3), 10, np.random.default_rng(0))
        polished = polish_fit(fit, Jet(X, y), 3, n_folds=0)
        assert np.isnan(polished.error)
        assert polished.crossfit is None

    def test_without_steps_the_refits_are_those_of_the_outer_weights(self):
        X, y, *_ = noisy(CHECKMARK, 50)
        fit = fit_random(Jet(X, y), Uniform(), Sigmoid(0.3), 10, np.random.default_rng(0), alphas=np.array([1e-3]))
        crossfit = polish_fit(fit, Jet(X, y), 0, n_folds=50).crossfit
        Z = fit.network.features.design(X)
        errors = []
        for k in range(50):
            rest = np.arange(50) != k
            alone = fit_outer(fit.network.features, Jet(X[rest], y[rest]), alphas=np.array([1e-3]))
            penalty = np.diag([alone.ridge_alpha * 10 * 49] * 10 + [0.0])
            errors.append(y[k] - Z[k] @ np.linalg.solve(Z[rest].T @ Z[rest] + penalty, Z[rest].T @ y[rest]))
        assert_allclose(np.sort(crossfit.errors[:, 0]), np.sort(errors), rtol=1e-6, atol=1e-9)

    def test_two_samples_say_nothing(self):
        X, y, *_ = noisy(CHECKMARK, 2)
        polished = polish(RandomFeatureRegressor(5, random_state=0).fit(X, y), Jet(X, y), 1)
        assert np.isnan(polished.estimated_error_)
        with pytest.raises(ValueError, match="need at least 3 samples"):
            polished.predict_interval(X)

    def test_a_robust_fit_is_refused(self):
        X, y, *_ = noisy(CHECKMARK, 20)
        model = RandomFeatureRegressor(5, loss="huber", width=0.5, density="uniform", random_state=0).fit(X, y)
        with pytest.raises(ValueError, match="needs a fit with loss='squared', got 'huber'"):
            polish(model, Jet(X, y))


@pytest.mark.parametrize("seed", range(6))
def test_reported_errors_are_no_smaller_than_residuals(seed):
    """Few neurons of single inputs may miss an input that the neurons of the fits without folds do not miss."""
    X = np.random.default_rng(seed).uniform(-1, 1, (150, 5))
    y = np.sum(X**2, axis=1) / 2 + X[:, 0]
    model = RandomFeatureRegressor(20, random_state=seed).fit(X, y)
    assert model.estimated_error_ >= (1 - 1e-9) * np.sqrt(np.mean((model.predict(X) - y) ** 2))
