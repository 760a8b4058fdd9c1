"""Sparse training: optimality, certificates, paths, the estimator and its pictures."""

import pickle
import warnings
from copy import copy
from dataclasses import replace
from functools import cache

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import Lasso

from nurf import Jet, RandomFeatureRegressor, problems
from nurf.activations import Heaviside, ReLU, Sigmoid
from nurf.densities import Nonlocal
from nurf.engines import fit_outer, fit_random
from nurf.engines._polish import polish
from nurf.engines._sparse import fit_sparse
from nurf.estimators._sparse import SparseFeatureRegressor
from nurf.estimators._sparse import polish as polish_model
from nurf.networks import Features, Hyperplanes, ShallowNetwork
from nurf.networks._hyperplanes import normalised
from nurf.plots._sparse import certificate, sparse_path, trained_hyperplanes
from nurf.solvers import VALUES_ONLY, Loss
from nurf.solvers.sparse import PeakSearch, SparseOptions, solve_sparse
from nurf.solvers.sparse._certificate import ascend, distances, find_peaks
from nurf.solvers.sparse._charts import Bounds, Chart
from nurf.solvers.sparse._misfit import Misfit
from nurf.solvers.sparse._moves import merge, prune, removal_costs, remove_redundant, train
from nurf.solvers.sparse._objective import Objective
from nurf.solvers.sparse._penalties import L1, LogPenalty, Squared, row_sizes
from row_by_row import many_patterns, random_network

BUMP, WAVE, CHECKMARK = (
    problems.get("gaussian_bump"),
    problems.get("planar_wave"),
    problems.get("checkmark", dimension=2),
)
BOUNDS = Bounds(1.0, 0.01, 2.0)
OPTIONS = SparseOptions()
DERIVATIVES = Loss(0.3, 0.02)
PENALTIES = [L1(), LogPenalty(5.0)]


def objective(jet, penalty=None, alpha=1e-3, loss=VALUES_ONLY, widths=False):
    return Objective(Misfit(jet, loss), penalty or LogPenalty(5.0), alpha, BOUNDS, widths)


def empty(jet, activation, degree=0):
    planes = Hyperplanes(np.empty((0, jet.n_features)), np.empty(0))
    features = Features(planes, activation, degree)
    return ShallowNetwork(features, np.zeros((features.n_columns, jet.y.reshape(len(jet), -1).shape[1])))


def solve(jet, penalty, alpha, width=0.1, seed=0, **keywords):
    keywords = {"options": SparseOptions(tolerance=1e-3, max_steps=20), **keywords}
    options = keywords.pop("options")
    problem = objective(jet, penalty, alpha, **keywords)
    activation = Sigmoid(width)
    return problem, solve_sparse(problem, empty(jet, activation), activation, np.random.default_rng(seed), options)


def along(point, step, eps):
    return [point.moved(sign * eps * step) for sign in (1, -1)]


class TestDerivatives:
    @pytest.mark.parametrize("widths", [False, True])
    @pytest.mark.parametrize("penalty", [*PENALTIES, Squared()], ids=repr)
    def test_gradient_of_the_objective(self, penalty, widths):
        point = objective(many_patterns(), penalty, 0.1, DERIVATIVES, widths).at(random_network(widths=widths))
        gradient, hessian, scale = point.derivatives()
        assert_allclose(hessian, hessian.T, atol=1e-14)
        assert np.all(scale > 0)
        for i in range(len(gradient)):
            plus, minus = along(point, np.eye(len(gradient))[i], 1e-6)
            assert_allclose((plus.value - minus.value) / 2e-6, gradient[i], rtol=1e-6, atol=1e-7)

    def test_without_residual_the_model_is_the_hessian(self):
        network, X = random_network(outputs=1), many_patterns().X
        problem = objective(network.jet(X), LogPenalty(5.0), 1e-12, DERIVATIVES)
        _, hessian, _ = problem.at(network).derivatives()
        rng = np.random.default_rng(0)
        for _ in range(5):
            step = rng.standard_normal(len(hessian))
            change = sum(p.value for p in along(problem.at(network), step, 1e-4)) - 2 * problem.at(network).value
            assert_allclose(change / 1e-8, step @ hessian @ step, rtol=1e-4)

    def test_outer_point_is_the_joint_one_with_the_inner_weights_fixed(self):
        network = random_network()
        problem = objective(many_patterns(), alpha=0.1, loss=DERIVATIVES)
        joint, outer = problem.at(network), problem.outer(network)
        size = network.coefficients.size
        assert_allclose(outer.value, joint.value)
        for small, large in zip(outer.derivatives(), joint.derivatives(), strict=True):
            assert_allclose(small, large[(slice(size),) * large.ndim], atol=1e-12)


def whole_derivatives(jet):
    return jet


def unknown_entries(jet):
    """Forget a tenth of all derivatives."""
    rng = np.random.default_rng(0)
    gradients, hessians = (np.where(rng.random(g.shape) < 0.1, np.nan, g) for g in (jet.gradients, jet.hessians))
    return replace(jet, gradients=gradients, hessians=hessians + np.swapaxes(hessians, 1, 2) - jet.hessians)


def one_direction(jet):
    """Keep the derivatives along one direction at each point."""
    directions = normalised(np.random.default_rng(0).standard_normal(jet.X.shape))
    along = Jet.along(jet.X, jet.y, directions, np.sum(jet.gradients * directions, axis=1))
    return replace(jet, gradients=along.gradients, frames=along.frames)


def dense_certificate(jet, network, width, loss=VALUES_ONLY, n_angles=400, n_offsets=400):
    """Return the largest |<r, sigma>| on a grid of hyperplanes, by the definition."""
    left, n = jet - ShallowNetwork(network.features, network.coefficients[:, 0]).jet(jet.X), len(jet)
    slopes, bends = (np.nan_to_num(r) / n if r is not None else 0 for r in (left.gradients, left.hessians))
    b = np.linspace(-1, 1, n_offsets)
    angles = np.linspace(0, np.pi, n_angles, endpoint=False)
    normals = np.ones((1, 1)) if jet.n_features == 1 else np.column_stack([np.cos(angles), np.sin(angles)])
    largest = 0.0
    for a in normals:
        s = expit((jet.X @ a[:, None] + b) / width)
        moments = left.y @ s / n
        if loss.gradients:
            moments += loss.gradients * (slopes @ a) @ (s * (1 - s)) / width
        if loss.hessians:
            moments += loss.hessians * (bends @ a @ a) @ (s * (1 - s) * (1 - 2 * s)) / width**2
        largest = max(largest, np.abs(moments).max())
    return largest


class TestOptimality:
    @pytest.mark.parametrize("problem", [BUMP, WAVE], ids=lambda p: p.name)
    @pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
    def test_solutions_are_stationary_and_certified(self, penalty, problem):
        rng = np.random.default_rng(0)
        jet = problem.jet(problem.grid(150 if problem.dimension == 1 else 15), noise=0.02, rng=rng)
        alpha = 3e-3
        _, solution = solve(jet, penalty, alpha)
        network = solution.network
        assert solution.status == "converged"
        assert solution.violation <= 1e-3
        design = network.features.design(jet.X)
        pull = design.T @ (jet.y - design @ network.coefficients[:, 0]) / len(jet)
        c = network.coef[:, 0]
        assert_allclose(pull[: len(c)], alpha * penalty.slope(np.abs(c)) * np.sign(c), atol=1e-3 * alpha)
        assert_allclose(pull[len(c) :], 0, atol=1e-3 * alpha)
        dense = dense_certificate(jet, network, 0.1)
        assert dense <= alpha * (1 + 2e-3)
        assert dense <= alpha * solution.certificate * (1 + 1e-6)  # the search finds what a grid finds

    @pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
    def test_several_outputs_share_their_neurons(self, penalty):
        rng = np.random.default_rng(0)
        jet = WAVE.jet(WAVE.grid(15), noise=0.02, rng=rng)
        both = Jet(jet.X, np.column_stack([jet.y, -2 * jet.y]))
        _, one = solve(Jet(jet.X, np.sqrt(5) * jet.y), penalty, 1e-2)
        _, two = solve(both, penalty, 1e-2)
        assert two.status == "converged"
        assert_allclose(two.objective, one.objective, rtol=2e-3)
        assert_allclose(two.network.coef[:, 1], -2 * two.network.coef[:, 0], rtol=1e-2, atol=1e-3)

    @pytest.mark.parametrize("problem", [BUMP, WAVE], ids=lambda p: p.name)
    def test_l1_agrees_with_the_lasso_on_a_fine_dictionary(self, problem):
        jet = problem.jet(problem.grid(120 if problem.dimension == 1 else 12), noise=0.02, rng=np.random.default_rng(0))
        alpha, width = 3e-3, 0.2
        _, ours = solve(jet, L1(), alpha, width)
        b = np.linspace(-1, 1, 60 if problem.dimension == 2 else 600)
        angles = np.linspace(0, np.pi, 40, endpoint=False) if problem.dimension == 2 else np.zeros(1)
        normals = np.column_stack([np.cos(angles), np.sin(angles)])[:, : problem.dimension]
        design = np.concatenate([1 / (1 + np.exp(-((jet.X @ a)[:, None] + b) / width)) for a in normals], axis=1)
        lasso = Lasso(alpha=alpha, tol=1e-6, max_iter=20_000, precompute=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            lasso.fit(design, jet.y)
        value = np.mean((jet.y - lasso.predict(design)) ** 2) / 2 + alpha * np.abs(lasso.coef_).sum()
        assert ours.objective <= value * (1 + 1e-6)  # it may choose any hyperplane
        assert value <= ours.objective * 1.005

    @pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
    def test_a_planted_network_is_recovered_from_its_samples(self, penalty):
        planes = Hyperplanes(normalised(np.array([[1.0, 0.3], [-0.5, 1.0], [0.2, -1.0]])), np.array([0.1, -0.3, 0.4]))
        planted = ShallowNetwork(Features(planes, Sigmoid(0.1)), np.array([1.0, -2.0, 1.5, 0.5]))
        X = WAVE.sample(500, np.random.default_rng(3))
        _, solution = solve(Jet(X, planted.value(X)), penalty, 1e-5)
        near, sizes = distances(planted.features, solution.network.features), np.abs(solution.network.coef[:, 0])
        assert near.min(axis=1).max() < 0.01  # of a width
        assert_allclose(np.sort(sizes[sizes > 1e-4]), [1, 1.5, 2], rtol=1e-2)  # a last one may just have come in

    def test_planted_widths_are_learned(self):
        widths = np.array([0.05, 0.3])
        planes = Hyperplanes(np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([0.2, -0.1]))
        planted = ShallowNetwork(Features(planes, Sigmoid(widths)), np.array([1.0, -1.5, 0.2]))
        X = WAVE.sample(500, np.random.default_rng(3))
        jet = Jet(X, planted.value(X))
        fit = fit_sparse(jet, Sigmoid(0.1), np.random.default_rng(0), alphas=[1e-2, 1e-3, 1e-4, 1e-5], widths=True)
        last = fit.history[-1].network
        large = np.abs(last.coef) > 0.01
        assert np.count_nonzero(large) == 2
        assert_allclose(np.sort(last.activation.width[large]), widths, rtol=0.02)

    @pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
    @pytest.mark.parametrize("make", [whole_derivatives, unknown_entries, one_direction])
    def test_solutions_with_derivatives_are_certified(self, make, penalty):
        jet, alpha, loss = make(WAVE.jet(WAVE.grid(9))), 1e-2, Loss(0.02, 1e-4)
        _, solution = solve(jet, penalty, alpha, loss=loss)
        assert solution.status == "converged"
        largest = dense_certificate(jet, solution.network, 0.1, loss)
        assert largest <= alpha * (1 + 2e-3)
        assert largest > 0.95 * alpha or penalty != L1()  # the convex penalty has slope one
        assert largest <= alpha * (solution.certificate + 1e-3)  # the search finds what a grid finds

    @pytest.mark.parametrize("loss", [Loss(0.05), Loss(0.0, 3e-4)], ids=str)
    def test_derivatives_lower_the_error_of_the_values(self, loss):
        """The logarithms of the ratios have means below -1.1 and deviations of 0.5, from seed to seed."""
        ratios = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            jet, fresh = WAVE.jet(WAVE.sample(30, rng)), WAVE.sample(500, rng)
            errors = []
            for counted in (VALUES_ONLY, loss):
                fit = fit_sparse(jet, Sigmoid(0.1), np.random.default_rng(0), alphas=[1e-2, 1e-3], loss=counted)
                assert fit.loss == counted
                errors.append(np.linalg.norm(fit.history[-1].network.value(fresh) - WAVE.value(fresh)))
            ratios.append(np.log(errors[1] / errors[0]))
        assert np.mean(ratios) < -0.3  # more than three standard errors of their mean

    def test_activations_without_second_derivatives_are_trained_too(self):
        jet = BUMP.jet(BUMP.grid(100))
        fit = fit_sparse(jet, ReLU(), np.random.default_rng(0), alphas=[1e-3], options=SparseOptions(tolerance=0.2))
        assert fit.error < 0.3 * np.std(jet.y)
        with pytest.raises(ValueError, match="derivative 1 was requested"):
            fit_sparse(jet, Heaviside(), np.random.default_rng(0))

    def test_a_row_of_weight_two_is_two_rows(self):
        jet = BUMP.jet(BUMP.grid(60), noise=0.02, rng=np.random.default_rng(0))
        weights = np.where(np.arange(60) < 20, 2.0, 1.0)
        _, one = solve(replace(jet, sample_weight=weights, gradients=None, hessians=None), L1(), 1e-2)
        _, two = solve(Jet(np.concatenate([jet.X, jet.X[:20]]), np.concatenate([jet.y, jet.y[:20]])), L1(), 1e-2)
        assert_allclose(one.objective, two.objective, rtol=1e-5)


class TestMoves:
    def jet(self):
        return WAVE.jet(WAVE.grid(15), noise=0.02, rng=np.random.default_rng(0))

    def test_ascent_climbs_to_local_maxima_together(self):
        jet = self.jet()
        residual = Misfit(jet).residual(empty(jet, Sigmoid(0.1)))
        planes = random_network(d=2, N=50).hyperplanes
        features = Features(planes, Sigmoid(0.1), -1)
        before = row_sizes(residual.moments(features).values)
        peaks = ascend(residual, features, BOUNDS, 30)
        assert np.all(row_sizes(peaks.moments) >= before)
        chart = Chart(peaks.features, BOUNDS)
        moments = residual.moments(peaks.features, 1)
        slopes = chart.gradients(moments.gradients(np.sign(moments.values))) * chart.units
        slopes[chart.blocked(slopes)] = 0
        assert np.abs(slopes).max() < 1e-6 * peaks.largest

    @pytest.mark.parametrize("gradients", [True, False])
    def test_search_finds_the_largest_of_a_grid(self, gradients):
        jet = self.jet()
        network = ShallowNetwork(empty(jet, Sigmoid(0.1)).features, [[jet.y.mean()]])
        seen = jet if gradients else replace(jet, gradients=None)
        peaks = find_peaks(
            Misfit(jet).residual(network), seen, Sigmoid(0.1), BOUNDS, np.random.default_rng(0), PeakSearch().finer()
        )
        assert peaks.largest >= dense_certificate(jet, network, 0.1) * (1 - 1e-6)
        assert_array_equal(np.argsort(-row_sizes(peaks.moments), kind="stable"), np.arange(len(peaks.moments)))

    def test_opposite_hyperplanes_are_one_place(self):
        normals, offsets, activation = np.array([[0.6, 0.8], [1.0, 0.0]]), np.array([0.3, -0.1]), Sigmoid(0.1)
        features, mirrored = (Features(Hyperplanes(s * normals, s * offsets), activation, 0) for s in (1, -1))
        assert_allclose(np.diag(distances(features, mirrored)), 0, atol=1e-6)
        assert_allclose(distances(features, mirrored)[0, 1], np.sqrt(0.4**2 + 0.8**2 + 0.4**2) / 0.1)

    def test_near_duplicates_are_merged(self):
        jet = self.jet()
        problem, solution = solve(jet, LogPenalty(5.0), 3e-3)
        network = solution.network
        N = network.features.n_neurons
        twins = network.features[np.array([0, 0])]
        shift = np.zeros((2, 2))
        shift[1] = 0.01
        twins = Chart(twins, BOUNDS).move(shift)
        mirrored = Features(
            Hyperplanes(-twins.hyperplanes.normals, -twins.hyperplanes.offsets), twins.activation, twins.degree
        )
        joined = network.features + mirrored
        coef = np.concatenate([network.coef, [[0.02], [-0.01]]])
        point = problem.at(ShallowNetwork(joined, np.concatenate([coef, network.tail_coef])))
        merged = merge(point, OPTIONS)
        assert merged.value < point.value
        assert merged.network.features.n_neurons == N

    def test_neurons_that_do_not_pay_are_thinned(self):
        jet = self.jet()
        problem, solution = solve(jet, LogPenalty(20.0), 3e-3)
        planes = solution.network.hyperplanes
        shifted = Hyperplanes(planes.normals, planes.offsets + 0.05)
        features = solution.network.features + Features(shifted, Sigmoid(0.1), 0)
        weights = np.concatenate([solution.network.coef / 2, solution.network.coef / 2, solution.network.tail_coef])
        point = train(problem.at(ShallowNetwork(features, weights)), SparseOptions(tolerance=1e-6, max_steps=50))
        costs = removal_costs(point)
        assert costs.shape == (point.network.features.n_neurons,)
        fewer = remove_redundant(point, SparseOptions(tolerance=1e-3, max_steps=20))
        assert fewer.value <= point.value
        assert (costs.min() < 0) >= (fewer is not point)

    def test_removal_costs_of_a_linear_problem_are_exact(self):
        jet, features = self.jet(), random_network(d=2, outputs=1, N=3).features
        design = features.design(jet.X)
        best = np.linalg.lstsq(design, jet.y, rcond=None)[0]
        point = prune(objective(jet, L1(), 1e-12).at(ShallowNetwork(features, best[:, None])))
        assert point.network.features.n_neurons == 3
        fitted = [d @ np.linalg.lstsq(d, jet.y, rcond=None)[0] for d in (design, design[:, 1:])]
        least = [np.mean((jet.y - values) ** 2) / 2 for values in fitted]
        # all weights move in the model, so that it cannot cost more than with the inner ones fixed
        assert 0 < removal_costs(point)[0] <= (least[1] - least[0]) * (1 + 1e-3)

    def test_training_in_blocks_descends_to_the_same_objective(self):
        jet = self.jet()
        problem, solution = solve(jet, L1(), 3e-3)
        rng = np.random.default_rng(1)
        chart = Chart(solution.network.features, BOUNDS)
        moved = chart.move(0.02 * rng.standard_normal((solution.network.features.n_neurons, 2)))
        point = problem.at(ShallowNetwork(moved, solution.network.coefficients))
        trained = train(point, SparseOptions(tolerance=1e-3, max_steps=200, max_joint_weights=9))
        assert trained.network.features.n_neurons > 3
        assert_allclose(trained.value, solution.objective, rtol=1e-3)


class TestPath:
    def fit(self, **keywords):
        rng = np.random.default_rng(0)
        jet = BUMP.jet(BUMP.grid(300), noise=0.02, rng=rng)
        keywords = {"penalty": LogPenalty(10.0), **keywords}
        return jet, fit_sparse(jet, Sigmoid(1 / 40), np.random.default_rng(0), **keywords)

    def test_steps_of_a_path(self):
        jet, fit = self.fit()
        steps = fit.history
        assert np.all(np.diff(fit.alphas) < 0)
        assert_allclose(steps[0].alpha / steps[1].alpha, 4)
        assert all(step.status == "converged" and step.certificate <= 1.01 and step.seconds > 0 for step in steps)
        assert steps[0].n_neurons < steps[-1].n_neurons
        assert fit.step.network is fit.network
        assert fit.error <= 1.05 * min(step.error for step in steps)
        squares = np.mean((fit.network.value(jet.X) - jet.y) ** 2)
        assert_allclose(fit.error, np.sqrt(squares) / (1 - (2 * fit.step.n_neurons + 1) / 300))

    def test_no_neuron_pays_above_the_first_alpha(self):
        jet, fit = self.fit()
        _, above = self.fit(alphas=[4.1 * fit.alphas[0]])
        _, below = self.fit(alphas=[3.8 * fit.alphas[0]])
        assert above.step.n_neurons == 0 < below.step.n_neurons
        assert_allclose(above.network.value(jet.X), jet.y.mean())

    def test_validation_rows_choose_with_the_training_rows(self):
        rng = np.random.default_rng(5)
        held = BUMP.jet(BUMP.sample(300, rng))
        jet, fit = self.fit(validation=held)
        squares = np.sum((fit.network.value(jet.X) - jet.y) ** 2) + np.sum((fit.network.value(held.X) - held.y) ** 2)
        assert_allclose(fit.error, np.sqrt(squares / 600))
        allowed = fit.alphas[fit.errors <= 1.05 * fit.errors.min()]
        assert fit.alpha == allowed.max()

    def test_a_budget_of_neurons_ends_the_path(self):
        _, fit = self.fit(max_neurons=4)
        assert max(step.n_neurons for step in fit.history) == 4
        assert fit.history[-1].status == "max_neurons"
        assert fit.history[-1].certificate > 1

    def test_warm_starts_from_the_hyperplanes_of_a_density(self):
        jet, fit = self.fit(alphas=[1e-3])
        planes = Nonlocal(bandwidth=0.05).prepare(jet).sample(30, np.random.default_rng(0))
        _, warm = self.fit(alphas=[1e-3], start=planes)
        assert warm.step.status == "converged"
        assert abs(warm.step.n_neurons - fit.step.n_neurons) <= 2

    def test_without_a_tail(self):
        _, fit = self.fit(degree=-1, alphas=[1e-2, 1e-3])
        assert fit.network.tail_coef.size == 0
        assert fit.error < 0.1

    def test_eleven_neurons_reach_the_noise_in_one_dimension(self):
        """The residuals, in units of the noise, have mean 1.05 and deviation 0.03, from seed to seed."""
        residuals, alphas = [], 0.1 * 4.0 ** -np.arange(5)
        for seed in range(3):
            rng = np.random.default_rng(seed)
            jet = BUMP.jet(BUMP.grid(1000), noise=0.02, rng=rng)
            fit = fit_sparse(jet, Sigmoid(1 / 80), rng, alphas=alphas, penalty=LogPenalty(10.0), max_neurons=11)
            assert fit.history[-1].n_neurons <= 11
            residuals.append(np.std(jet.y - fit.history[-1].network.value(jet.X)) / 0.02)
        assert np.mean(residuals) < 1.12


class TestPolish:
    def test_a_sparse_network_has_nothing_left_to_train(self):
        X, y, _ = wave_rows()
        with pytest.raises(ValueError, match="needs a fit by ridge regression"):
            polish(model(alpha=1e-2, max_neurons=5).fit(X, y).fit_, Jet(X, y))

    def test_the_error_falls(self):
        jet = WAVE.jet(WAVE.sample(200, np.random.default_rng(0)))
        fit = fit_random(jet, Nonlocal(), Sigmoid(0.1), 15, np.random.default_rng(0))
        polished = polish(fit, jet, 10, n_folds=0)
        assert np.std(jet.y - polished.network.value(jet.X)) < np.std(jet.y - fit.network.value(jet.X))
        assert polished.network.features.n_neurons == 15
        assert polished.alpha == fit.alpha

    @pytest.mark.parametrize("loss", [VALUES_ONLY, Loss(0.1), Loss(0.1, 1e-3)], ids=str)
    def test_the_objective_is_that_of_the_ridge_regression(self, loss):
        """Its outer weights are the best for their hyperplanes already: the inner ones alone make it fall."""
        jet = WAVE.jet(WAVE.sample(60, np.random.default_rng(0)))
        features = fit_random(jet, Nonlocal(), Sigmoid(0.1), 15, np.random.default_rng(0)).network.features
        fit = fit_outer(features, jet, alphas=[1e-4], loss=loss)

        def value(network):
            columns = ShallowNetwork(network.features, network.coefficients[:, None])
            return Misfit(jet, loss).residual(columns).loss + fit.ridge_alpha * 15 / 2 * np.sum(network.coef**2)

        rng = np.random.default_rng(0)
        for _ in range(5):
            noise = 1e-3 * rng.standard_normal(len(fit.network.coefficients))
            assert value(ShallowNetwork(features, fit.network.coefficients + noise)) > value(fit.network)
        values = [value(polish(fit, jet, n, n_folds=0).network) for n in (0, 1, 3)]
        assert_allclose(values[0], value(fit.network))
        assert np.all(np.diff(values) < 0)
        assert polish(fit, jet, 1).loss == loss

    def test_no_steps_change_nothing(self):
        jet = WAVE.jet(WAVE.sample(100, np.random.default_rng(0)))
        fit = fit_random(jet, Nonlocal(), Sigmoid(0.1), 15, np.random.default_rng(0))
        assert_array_equal(polish(fit, jet, 0).network.coefficients, fit.network.coefficients)

    def test_a_fitted_regressor_is_polished_in_its_own_units(self):
        rng = np.random.default_rng(0)
        X = np.array([100.0, -3.0]) + np.array([40.0, 0.01]) * rng.uniform(size=(200, 2))
        y = 1e4 * np.sin((X[:, 0] - 100) / 10 + 200 * (X[:, 1] + 3))
        settings = {"density": "uniform", "width": 0.4, "growth": None}  # with which it is not nearly exact
        model = RandomFeatureRegressor(20, random_state=0, **settings).fit(X, y)
        before = model.score(X, y)
        trained = polish_model(model, Jet(X, y), 10, gradient_weight=0.0, widths=True)
        assert trained.score(X, y) > before == model.score(X, y)
        assert np.ptp(trained.fit_.network.activation.width) > 0
        with pytest.raises(NotFittedError):
            polish_model(RandomFeatureRegressor(), Jet(X, y))

    def test_gradient_rows_count_by_choice(self):
        jet = WAVE.jet(WAVE.sample(60, np.random.default_rng(0)))
        fit = fit_random(jet, Nonlocal(), Sigmoid(0.1), 15, np.random.default_rng(0))

        def left(loss):
            return np.linalg.norm(polish(fit, jet, 10, loss=loss, n_folds=0).network.gradient(jet.X) - jet.gradients)

        assert left(Loss(0.1)) < left(VALUES_ONLY)


def model(**parameters):
    return SparseFeatureRegressor(**{"width": 0.1, "random_state": 0, **parameters})


@cache
def coarse():
    """A fit with few neurons; what changes it takes a copy."""
    X, y, _ = wave_rows()
    return model(alpha=0.1).fit(X, y)


def wave_rows(n=150, seed=0):
    jet = WAVE.jet(WAVE.sample(n, np.random.default_rng(seed)))
    return jet.X, jet.y, jet.gradients


class TestEstimator:
    def test_units_of_inputs_and_values_do_not_matter(self):
        X, y, g = wave_rows()
        m, q = np.array([5.0, -7.0]), np.array([100.0, 0.01])
        convex = model(alpha=1e-2, penalty="l1", tol=1e-3)
        plain, other = clone(convex).fit(X, y, gradients=g), convex.fit(m + q * X, 3 + 1e3 * y, gradients=1e3 * g / q)
        assert_allclose(other.predict(m + q * X), 3 + 1e3 * plain.predict(X), rtol=0, atol=2)
        assert_allclose(other.predict_gradient(m + q * X) * q, 1e3 * plain.predict_gradient(X), rtol=0, atol=20)
        assert_allclose(other.network_.value(m + q * X), other.predict(m + q * X), rtol=1e-8)
        assert other.predict_hessian(X).shape == (150, 2, 2)

    def test_path_and_its_networks(self):
        X, y, g = wave_rows()
        fitted = model().fit(X, y, gradients=g)
        path = fitted.path_
        assert set(path) == {"alpha", "neurons", "error", "certificate", "seconds", "status"}
        assert {len(column) for column in path.values()} == {len(fitted.fit_.history)}
        chosen = int(np.flatnonzero(path["alpha"] == fitted.alpha_)[0])
        assert_allclose(fitted.step_network(chosen).value(X), fitted.predict(X), atol=1e-9)
        assert path["neurons"][chosen] == fitted.n_neurons_ == len(fitted.hyperplanes_)
        assert path["certificate"][chosen] == fitted.certificate_
        assert fitted.step_network(0).features.n_neurons == path["neurons"][0]
        assert fitted.score(X, y) > 0.999

    def test_one_alpha(self):
        X, y, _ = wave_rows()
        fitted = model(alpha=0.01).fit(X, y)
        assert fitted.alpha_ == 0.01
        assert_array_equal(fitted.path_["alpha"], [0.01])

    def test_derivatives_count_in_the_units_of_the_data(self):
        jet = WAVE.jet(WAVE.sample(40, np.random.default_rng(0)))
        m, q = np.array([5.0, -7.0]), np.array([100.0, 0.01])
        sparse = model(alpha=1e-2, penalty="l1", gradient_weight=0.02, hessian_weight=1e-4, tol=1e-3)
        H, known = jet.hessians, np.random.default_rng(1).random(jet.gradients.shape) > 0.2
        g = np.where(known, jet.gradients, np.nan)
        plain = sparse.fit(jet.X, jet.y, gradients=g, hessians=H).predict(jet.X)
        assert sparse.fit_.loss == Loss(0.02, 1e-4)
        other = sparse.fit(m + q * jet.X, 3 + 1e3 * jet.y, gradients=1e3 * g / q, hessians=1e3 * H / np.outer(q, q))
        assert_allclose(other.predict(m + q * jet.X), 3 + 1e3 * plain, rtol=0, atol=2)  # the convex problem
        without = model(alpha=1e-2, penalty="l1", gradient_weight=0.02).fit(jet.X, jet.y, gradients=g, hessians=H)
        assert np.abs(without.predict(jet.X) - plain).max() > 1e-2

    def test_gradients_known_in_part_and_along_directions_count(self):
        jet = WAVE.jet(WAVE.sample(60, np.random.default_rng(0)))
        sparse = model(alpha=1e-2, gradient_weight=0.02)
        first_only = np.where([True, False], jet.gradients, np.nan)
        partly = sparse.fit(jet.X, jet.y, gradients=first_only).predict(jet.X)
        axis = np.tile([1.0, 0.0], (60, 1))
        along = sparse.fit(jet.X, jet.y, gradients=jet.gradients[:, 0], directions=axis).predict(jet.X)
        nothing = sparse.set_params(gradient_weight=0.0).fit(jet.X, jet.y, gradients=first_only).predict(jet.X)
        ignored = np.abs(nothing - partly).max()  # 0.05 to 0.5 for ten data sets
        assert ignored > 1e-3
        assert np.abs(along - partly).max() < 0.1 * ignored  # training stops within a tolerance of 1%: up to 0.01 there

    def test_learned_widths_and_gradient_weight(self):
        X, y, g = wave_rows()
        fitted = model(alpha=1e-2, width="learned", gradient_weight=0.01).fit(X, y, gradients=g)
        assert np.ptp(fitted.fit_.network.activation.width) > 0
        assert np.all(fitted.fit_.network.activation.width >= 0.01)

    @pytest.mark.parametrize("penalty", ["l1", "log", LogPenalty(20.0)], ids=str)
    def test_penalties(self, penalty):
        X, y, _ = wave_rows()
        assert model(alpha=3e-3, penalty=penalty, gamma=10).fit(X, y).score(X, y) > 0.95

    def test_a_density_for_the_first_neurons(self):
        X, y, g = wave_rows()
        fitted = model(alpha=1e-2, n_initial=20).fit(X, y, gradients=g)
        assert fitted.certificate_ <= 1.01

    def test_validation_and_max_neurons(self):
        X, y, _ = wave_rows()
        fitted = model(max_neurons=6).fit(X, y, validation=0.2)
        assert fitted.path_["neurons"].max() <= 6
        assert fitted.fit_.history[-1].status == "max_neurons"

    def test_several_outputs(self):
        X, y, _ = wave_rows()
        fitted = model(alpha=1e-2).fit(X, np.column_stack([y, y**2]))
        assert fitted.predict(X).shape == (150, 2)
        assert fitted.predict_gradient(X).shape == (150, 2, 2)
        assert np.all(np.any(fitted.fit_.network.coef != 0, axis=1))

    def test_the_same_seed_gives_the_same_fit(self):
        X, y, g = wave_rows()
        first, second = (model(alpha=1e-2).fit(X, y, gradients=g) for _ in range(2))
        assert_array_equal(first.predict(X), second.predict(X))
        assert_array_equal(pickle.loads(pickle.dumps(first)).predict(X), first.predict(X))
        assert clone(first).get_params() == first.get_params()

    def test_a_fit_that_did_not_converge_warns(self):
        X, y, _ = wave_rows()
        with pytest.warns(ConvergenceWarning, match=r"the tolerance 0.01 was not met in 1 rounds at alpha = 0.001"):
            fitted = model(alpha=1e-3, max_iter=1).fit(X, y)
        assert fitted.path_["status"][0] == "max_rounds"
        assert fitted.n_iter_ == 1

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"alpha": "auto"}, "`alpha` must be 'path' or a number > 0, got 'auto'"),
            ({"alpha": -1.0}, "`alpha` must be 'path' or a number > 0, got -1.0"),
            ({"width": "free"}, "`width` must be a number > 0, None or 'learned', got 'free'"),
            ({"width": "learned", "activation": "relu"}, "'learned' needs a smooth activation"),
            ({"penalty": "l2"}, "`penalty` must be one of 'l1', 'log', got 'l2'"),
            ({"max_neurons": 0}, "`max_neurons` must be a whole number >= 1, got 0"),
            ({"n_initial": -1}, "`n_initial` must be a whole number >= 0, got -1"),
            ({"max_iter": 0}, "`max_iter` must be a whole number >= 1, got 0"),
            ({"tol": 0.0}, "`tol` must be a number between 0 and 1, got 0.0"),
            ({"gradient_weight": 1.0}, "`gradient_weight` = 1.0 needs known gradients, got none"),
            ({"gradient_weight": -1.0}, "`gradient_weight` must be a number >= 0, got -1.0"),
            ({"hessian_weight": 1.0}, "`hessian_weight` = 1.0 needs known hessians, got none"),
            ({"hessian_weight": "auto"}, "`hessian_weight` must be a number >= 0, got 'auto'"),
            ({"activation": "heaviside", "width": None}, "derivative 1 was requested"),
        ],
    )
    def test_errors_leave_the_estimator_as_it_was(self, parameters, message):
        (X, y, _), fitted = wave_rows(), copy(coarse())
        before = fitted.predict(X)
        with pytest.raises(ValueError, match=message):
            fitted.set_params(**parameters).fit(X[:, :1], y)
        assert_array_equal(fitted.predict(X), before)

    def test_rows_of_higher_order_need_a_smoother_activation(self):
        jet = WAVE.jet(WAVE.sample(40, np.random.default_rng(0)))
        relu = model(activation="relu", width=None, hessian_weight=0.1)
        with pytest.raises(ValueError, match=r"ReLU.*derivative 3 was requested: use a smoother activation"):
            relu.fit(jet.X, jet.y, hessians=jet.hessians)


class TestPlots:
    @pytest.fixture
    def ax(self):
        figure, ax = plt.subplots()
        yield ax
        figure.canvas.draw()
        plt.close(figure)

    def trained(self, problem, **parameters):
        jet = problem.jet(problem.grid(100 if problem.dimension == 1 else 12), noise=0.02, rng=np.random.default_rng(0))
        fitted = model(alpha=2e-2, penalty="l1", **parameters).fit(jet.X, jet.y)
        return fitted, fitted.scaling_(Jet(jet.X, jet.y))

    def test_certificate_on_the_line(self, ax):
        fitted, jet = self.trained(BUMP)
        assert certificate(fitted.fit_.network, jet, fitted.alpha_, ax=ax) is ax
        curve, one, dots = ax.get_lines()
        assert_array_equal(one.get_ydata(), 1)
        assert 0.95 < curve.get_ydata().max() < 1.02
        assert_allclose(dots.get_ydata(), 1, atol=0.01)  # the convex penalty has slope one
        planes = fitted.fit_.network.hyperplanes
        assert_allclose(dots.get_xdata(), -planes.offsets / planes.normals[:, 0])

    @pytest.mark.parametrize("width", [0.1, "learned"])
    def test_certificate_over_angles_and_offsets(self, ax, width):
        fitted, jet = self.trained(WAVE, width=width)
        certificate(fitted.fit_.network, jet, fitted.alpha_, ax=ax)
        (image,) = ax.images
        values = image.get_array()
        assert values.shape == (160, 240)
        assert values.max() < 1.02
        if width == 0.1:
            assert values.max() > 0.95
            r = jet.y - fitted.fit_.network.value(jet.X)
            angle, offset = -np.pi + 2 * np.pi * 50.5 / 240, -1 + 2 * 30.5 / 160
            u = jet.X @ [np.cos(angle), np.sin(angle)] + offset
            assert_allclose(values[30, 50], abs(np.mean(r / (1 + np.exp(-u / 0.1)))) / fitted.alpha_, rtol=1e-9)

    def test_path(self, ax):
        path = {"alpha": [1.0, 0.25], "neurons": [0, 7], "error": [0.5, 0.1]}
        sparse_path(path, alpha=0.25, ax=ax)
        line, ring = ax.get_lines()
        assert_array_equal(line.get_xydata(), [[1.0, 0.5], [0.25, 0.1]])
        assert_array_equal(ring.get_xydata(), [[0.25, 0.1]])
        assert [text.get_text() for text in ax.texts] == ["0", "7"]
        assert ax.xaxis_inverted()
        sparse_path(path, ax=ax)
        assert ax.xaxis_inverted()

    def test_trained_hyperplanes(self, ax):
        fitted, _ = self.trained(WAVE)
        trained_hyperplanes(fitted.network_, domain=WAVE.domain, ax=ax)
        (lines,) = ax.collections
        coef = np.abs(fitted.network_.coef)
        assert_allclose(np.sort(lines.get_colors()[:, 3]), np.sort(np.sqrt(coef / coef.max())))

    def test_three_dimensions_cannot_be_drawn(self, ax):
        with pytest.raises(ValueError, match="d = 1 and d = 2, got d = 3"):
            certificate(random_network(), many_patterns(), 1.0, ax=ax)
