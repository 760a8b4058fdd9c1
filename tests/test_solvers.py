"""Solvers against dense textbook algebra, scikit-learn, and refits by hand."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.linear_model import Ridge as SklearnRidge

from dense import factor
from nurf._blocks import BLOCK_ELEMENTS
from nurf.activations import ReLU, Sigmoid
from nurf.engines import fit_outer
from nurf.jets import Jet
from nurf.networks import Features, Hyperplanes
from nurf.solvers import GeneralizedCrossValidation, LeaveOneOut, Validation
from nurf.solvers.ridge import (
    CholeskyRidge,
    DualRidge,
    LeastSquares,
    NormalEquations,
    PreciseRidge,
    PrimalRidge,
    _least_squares,
    largest_near_best,
)
from nurf.solvers.ridge._cholesky import RESOLVED
from pairwise import pairwise

D, WIDTH = 3, 0.3
ALPHAS = np.array([1e-1, 1e-3, 1e-5])

FORMS = {
    "primal": PrimalRidge,
    "dual": DualRidge,
    "precise": PreciseRidge,
    "cholesky": CholeskyRidge,
}
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
sizes = pytest.mark.parametrize("size", [(40, 15), (15, 40)], ids=["more_rows", "more_neurons"])
degrees = pytest.mark.parametrize("degree", [-1, 0, 1])
weighted = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
outputs = pytest.mark.parametrize("outputs", [(), (1,), (3,)], ids=str)


def make_features(n_neurons, degree=0, d=D):
    rng = np.random.default_rng(1)
    normals = rng.normal(size=(n_neurons, d))
    planes = Hyperplanes(normals / np.linalg.norm(normals, axis=1, keepdims=True), rng.uniform(-1, 1, n_neurons))
    return Features(planes, Sigmoid(WIDTH), degree)


def make_jet(n, outputs=(), weighted=False, d=D, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    y = np.sin(3 * X @ rng.normal(size=(d, *outputs))) + 0.1 * rng.normal(size=(n, *outputs)) + 2
    return Jet(X, y, sample_weight=rng.uniform(0.2, 3, n) if weighted else None)


def problem(size, degree=0, outputs=(), weighted=False):
    return make_features(size[1], degree), make_jet(size[0], outputs, weighted)


def textbook_design(features, X):
    """All features in one dense matrix, from the formulas."""
    neurons = expit((X @ features.hyperplanes.normals.T + features.hyperplanes.offsets) / WIDTH)
    return np.column_stack([neurons, np.ones(len(X)), X][: features.degree + 2])


def dual_rounding(features, jet):
    """Rounding errors of ``Z^T u`` with ``|u| <= |y| / (alpha N)``: sums of as many products as there are rows."""
    return 1e-15 * len(jet) * np.abs(jet.y).max() / (ALPHAS[-1] * features.n_neurons)


def columns(y):
    return y.reshape(len(y), -1)


def weights_of(jet):
    return np.ones(len(jet)) if jet.sample_weight is None else jet.sample_weight


def textbook_ridge(features, jet, alpha, y=None, total=None, cutoff=1e-13):
    """The outer weights by least squares with extra rows for the penalty; the shortest ones, if there are many.

    ``y`` are other values at the same points; ``total`` is the weight by which the squares are divided; singular
    values below ``cutoff`` of the largest count as zero.
    """
    Z, w, N = textbook_design(features, jet.X), weights_of(jet), features.n_neurons
    roots = np.sqrt(w / (w.sum() if total is None else total))[:, None]
    penalty = np.sqrt(alpha * N) * np.eye(N, Z.shape[1])
    values = columns(jet.y if y is None else y)
    rows = np.concatenate([roots * Z, penalty])
    return np.linalg.lstsq(rows, np.concatenate([roots * values, np.zeros((N, values.shape[1]))]), rcond=cutoff)[0]


def hat_matrix(features, jet, alpha):
    """The matrix that maps values to predictions, column by column."""
    return textbook_design(features, jet.X) @ textbook_ridge(features, jet, alpha, y=np.eye(len(jet)))


class TestNormalEquations:
    @pairwise(degrees, weighted, outputs)
    def test_equal_the_dense_products(self, degree, weighted, outputs):
        features, jet = problem((40, 15), degree, outputs, weighted)
        equations = NormalEquations.from_data(features, jet)
        Z, W, y = textbook_design(features, jet.X), np.diag(weights_of(jet)), columns(jet.y)
        assert_allclose(equations.gram, Z.T @ W @ Z, rtol=1e-12)
        assert_allclose(equations.moments, Z.T @ W @ y, rtol=1e-12, atol=1e-12)
        assert_allclose(equations.energy, np.diag(y.T @ W @ y), rtol=1e-12)
        assert_allclose(equations.total_weight, W.trace(), rtol=1e-12)
        assert equations.n_neurons == 15

    @weighted
    def test_several_blocks_are_one_sum(self, weighted):
        n_neurons, n = 200, 7000
        features, jet = problem((n, n_neurons), 1, (2,), weighted)
        assert n * features.n_columns > 2 * BLOCK_ELEMENTS
        X, y = jet.X.copy(), jet.y.copy()
        equations = NormalEquations.from_data(features, jet)
        Z, w = textbook_design(features, X), weights_of(jet)[:, None]
        assert_allclose(equations.gram, Z.T @ (w * Z), rtol=1e-10, atol=1e-8)
        assert_allclose(equations.moments, Z.T @ (w * y), rtol=1e-10, atol=1e-8)
        assert_array_equal(jet.X, X)
        assert_array_equal(jet.y, y)

    @weighted
    @outputs
    def test_the_sum_of_two_parts_is_the_whole(self, weighted, outputs):
        features, jet = problem((40, 15), 1, outputs, weighted)
        parts = NormalEquations.from_data(features, jet[:11]) + NormalEquations.from_data(features, jet[11:])
        whole = NormalEquations.from_data(features, jet)
        for name in ("gram", "moments", "energy", "total_weight", "n_neurons"):
            assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12, err_msg=name)

    def test_a_row_of_weight_zero_adds_nothing(self):
        features, jet = problem((40, 15), 0, (), True)
        weights = np.where(np.arange(40) < 7, 0.0, jet.sample_weight)
        light = NormalEquations.from_data(features, Jet(jet.X, jet.y, sample_weight=weights))
        without = NormalEquations.from_data(features, jet[7:])
        assert_allclose(light.gram, without.gram, rtol=1e-12)

    @pytest.mark.parametrize(
        ("other", "got"),
        [
            (problem((9, 14), 0), r"\(15, 1\) with 14"),
            (problem((9, 15), 1), r"\(19, 1\) with 15"),
            (problem((9, 15), 0, (2,)), r"\(16, 2\) with 15"),
            (problem((9, 12), 1), r"\(16, 1\) with 12"),
        ],
        ids=["neurons", "tail", "outputs", "neurons_for_tail"],
    )
    def test_those_of_other_features_do_not_add_up(self, other, got):
        mine, theirs = NormalEquations.from_data(*problem((9, 15), 0)), NormalEquations.from_data(*other)
        with pytest.raises(ValueError, match=r"expected, got \(16, 1\) with 15 neurons and " + got):
            mine + theirs


class TestRidge:
    @pairwise(forms, sizes, degrees, weighted, outputs)
    def test_equals_dense_least_squares(self, form, size, degree, weighted, outputs):
        features, jet = problem(size, degree, outputs, weighted)
        path = form(features, jet).solve(ALPHAS)
        expected = np.stack([textbook_ridge(features, jet, alpha) for alpha in ALPHAS])
        assert path.shape == expected.shape == (len(ALPHAS), features.n_columns, columns(jet.y).shape[1])
        assert_allclose(path, expected, rtol=1e-7, atol=1e-7)

    @pairwise(forms, sizes, degrees, weighted)
    def test_the_gradient_of_the_objective_vanishes(self, form, size, degree, weighted):
        features, jet = problem(size, degree, (2,), weighted)
        Z, w, N = textbook_design(features, jet.X), weights_of(jet)[:, None], features.n_neurons
        for alpha, solution in zip(ALPHAS, form(features, jet).solve(ALPHAS), strict=True):
            gradient = Z.T @ (w * (Z @ solution - jet.y)) / w.sum()
            gradient[:N] += alpha * N * solution[:N]
            assert np.abs(gradient).max() < (dual_rounding(features, jet) if form is DualRidge else 1e-11)

    @forms
    @sizes
    def test_solves_the_normal_equations_of_the_paper(self, form, size):
        """``(Phi^T Phi / K + alpha N) c = Phi^T y / K`` for unit weights and no tail."""
        features, jet = problem(size, -1)
        Phi, N = textbook_design(features, jet.X), features.n_neurons
        for alpha, solution in zip(ALPHAS, form(features, jet).solve(ALPHAS), strict=True):
            expected = np.linalg.solve(Phi.T @ Phi / len(jet) + alpha * N * np.eye(N), Phi.T @ jet.y / len(jet))
            assert_allclose(solution[:, 0], expected, rtol=1e-7, atol=1e-7)

    @pairwise(forms, sizes, weighted, outputs)
    def test_equals_scikit_learn(self, form, size, weighted, outputs):
        features, jet = problem(size, 0, outputs, weighted)
        N, w = features.n_neurons, weights_of(jet)
        Phi = textbook_design(features, jet.X)[:, :N]
        for alpha, solution in zip(ALPHAS, form(features, jet).solve(ALPHAS), strict=True):
            oracle = SklearnRidge(alpha * N * w.sum(), solver="svd").fit(Phi, columns(jet.y), sample_weight=w)
            assert_allclose(solution[:N].T, np.atleast_2d(oracle.coef_), rtol=1e-7, atol=1e-7)
            assert_allclose(solution[N], oracle.intercept_, rtol=1e-7)

    @forms
    @sizes
    def test_the_largest_alpha_leaves_the_tail(self, form, size):
        features, jet = problem(size, 1, (), True)
        solution = form(features, jet).solve(np.array([1e12]))[0, :, 0]
        line = LinearRegression().fit(jet.X, jet.y, sample_weight=jet.sample_weight)
        assert np.abs(solution[: features.n_neurons]).max() < 1e-10
        assert_allclose(solution[features.n_neurons :], [line.intercept_, *line.coef_], rtol=1e-9)

    @forms
    @sizes
    def test_the_path_is_one_alpha_at_a_time(self, form, size):
        features, jet = problem(size, 1, (2,), True)
        ridge = form(features, jet)
        rounding = dual_rounding(features, jet)
        for method in (ridge.solve, ridge.mean_square_residual, ridge.degrees_of_freedom):
            single = np.concatenate([method(ALPHAS[i : i + 1]) for i in range(len(ALPHAS))])
            assert_allclose(method(ALPHAS), single, rtol=1e-12, atol=rounding)
        everyone = (np.arange(len(jet)), np.ones(len(jet)))
        single = [ridge.left_out(ALPHAS[i : i + 1], *everyone) for i in range(len(ALPHAS))]
        assert_allclose(ridge.left_out(ALPHAS, *everyone), np.concatenate(single, axis=2), rtol=1e-9)

    @pairwise(forms, sizes, degrees, weighted)
    def test_diagnostics_equal_those_of_the_dense_hat_matrix(self, form, size, degree, weighted):
        features, jet = problem(size, degree, (2,), weighted)
        ridge, w = form(features, jet), weights_of(jet)
        hats = [hat_matrix(features, jet, alpha) for alpha in ALPHAS]
        assert_allclose(ridge.degrees_of_freedom(ALPHAS), [np.trace(hat) for hat in hats], rtol=1e-8)
        nothing, index = np.zeros(len(jet)), np.arange(len(jet))
        left = ridge.left_out(ALPHAS, index, nothing)[:, 0] / np.sqrt(w)[:, None, None]
        expected = np.stack([jet.y - hat @ jet.y for hat in hats], axis=1)
        assert_allclose(left, expected, rtol=1e-6, atol=1e-9)
        half = ridge.left_out(ALPHAS, index, nothing + 0.5)[:, 0] / np.sqrt(w)[:, None, None]
        leverages = np.stack([np.diag(hat) for hat in hats], axis=1)[..., None]
        assert_allclose(half, expected / (1 - leverages / 2), rtol=1e-6, atol=1e-9)
        residuals = [w @ (jet.y - hat @ jet.y) ** 2 / w.sum() for hat in hats]
        assert_allclose(ridge.mean_square_residual(ALPHAS), residuals, rtol=1e-7)

    @forms
    @pytest.mark.parametrize("n_neurons", [60, 120])
    def test_the_residual_of_features_that_are_nearly_dependent(self, form, n_neurons):
        """Most eigenvalues are rounding errors; what is said of the residual is still that of the solution.

        A Gram matrix has errors of some 1e-15 of its trace, which is N feature energies: at most 1e-3 of ``alpha N``.
        """
        features = make_features(n_neurons, d=1)
        X = np.linspace(-1, 1, 300)[:, None]
        jet = Jet(X, np.hstack([np.sin(12 * X), np.cos(20 * X)]))
        ridge = form(features, jet)
        alphas = ridge.feature_energy * np.logspace(-2, -11, 10)
        solutions = [textbook_ridge(features, jet, alpha, cutoff=1e-16) for alpha in alphas]
        expected = [np.mean((textbook_design(features, X) @ c - jet.y) ** 2, axis=0) for c in solutions]
        assert_allclose(ridge.mean_square_residual(alphas), expected, rtol=1e-3)

    @pairwise(forms, sizes, constant=[0.0, 0.1, -100.1])
    def test_a_tail_of_low_rank(self, form, size, constant):
        """A constant input makes two monomials of an affine tail the same."""
        features, jet = problem(size, 1, (2,), True)
        jet.X[:, 1] = constant
        ridge = form(features, jet)
        assert ridge.tail_rank == D
        assert_allclose(ridge.solve(ALPHAS), [textbook_ridge(features, jet, alpha) for alpha in ALPHAS], atol=1e-6)
        traces = [np.trace(hat_matrix(features, jet, alpha)) for alpha in ALPHAS]
        assert_allclose(ridge.degrees_of_freedom(ALPHAS), traces, rtol=1e-7)

    def test_a_tail_of_low_rank_over_many_rows(self):
        """Rounding errors of long sums do not count for a rank."""
        features, jet = problem((20_000, 5), 1, (), True)
        jet.X[:, 1] = 0.1
        assert FORMS["primal"](features, jet).tail_rank == D

    @forms
    def test_fewer_rows_than_monomials(self, form):
        features, jet = problem((2, 5), 1)
        solution = form(features, jet).solve(ALPHAS)
        assert_allclose(textbook_design(features, jet.X) @ solution[0, :, 0], jet.y, rtol=1e-9)
        assert np.abs(solution[:, :5]).max() < 1e-6

    @forms
    @pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e6])
    def test_features_of_any_size(self, form, unit):
        """Ramps of inputs in other units: the same fit, with alpha in the units of the squared features."""
        features, jet = make_features(20), make_jet(60)
        planes = Hyperplanes(features.hyperplanes.normals, unit * features.hyperplanes.offsets)
        large = form(Features(features.hyperplanes, ReLU(), 0), jet)
        small = form(Features(planes, ReLU(), 0), Jet(unit * jet.X, jet.y))
        assert_allclose(small.feature_energy, unit**2 * large.feature_energy, rtol=1e-9)
        assert_allclose(unit * small.solve(unit**2 * ALPHAS)[:, :20], large.solve(ALPHAS)[:, :20], rtol=1e-6, atol=1e-9)
        assert_allclose(small.degrees_of_freedom(unit**2 * ALPHAS), large.degrees_of_freedom(ALPHAS), rtol=1e-6)
        assert_allclose(small.mean_square_residual(unit**2 * ALPHAS), large.mean_square_residual(ALPHAS), rtol=1e-6)

    @pairwise(forms, sizes, degrees)
    def test_the_energy_of_features(self, form, size, degree):
        """The mean square of the residuals of the features on the tail, averaged over the neurons."""
        features, jet = problem(size, degree, (), True)
        N, roots = features.n_neurons, np.sqrt(jet.sample_weight / jet.sample_weight.sum())[:, None]
        Z = roots * textbook_design(features, jet.X)
        Phi, P = Z[:, :N], Z[:, N:]
        left = Phi - P @ np.linalg.lstsq(P, Phi, rcond=None)[0] if degree >= 0 else Phi
        assert_allclose(form(features, jet).feature_energy, np.sum(left**2) / N, rtol=1e-10)

    @pytest.mark.parametrize(
        ("size", "kind"), [((40, 15), PrimalRidge), ((15, 40), DualRidge), ((20, 20), PrimalRidge)]
    )
    def test_factor_takes_the_smaller_form(self, size, kind):
        assert type(factor(*problem(size))) is kind


def leave_one_out_by_refits(features, jet, alpha):
    """Leave out each row in turn, with the penalty on the sum of squares as for all rows."""
    w, residuals = weights_of(jet), []
    for k in range(len(jet)):
        left = np.arange(len(jet)) != k
        rest = Jet(jet.X[left], jet.y[left], sample_weight=w[left])
        solution = textbook_ridge(features, rest, alpha, total=weights_of(jet).sum())
        residuals.append(columns(jet.y)[k] - textbook_design(features, jet.X[k : k + 1])[0] @ solution)
    return np.array(residuals)


def errors(rule, form, features, jet, alphas=ALPHAS):
    ridge = form(features, jet)
    return np.sqrt(rule.mean_squares(ridge, alphas, ridge.solve(alphas)).sum(axis=1))


class TestLeaveOneOut:
    @pairwise(forms, sizes, degrees, weighted)
    def test_equals_refits_row_by_row(self, form, size, degree, weighted):
        features, jet = problem(size, degree, (2,), weighted)
        w = weights_of(jet)
        squares = [np.sum(leave_one_out_by_refits(features, jet, alpha) ** 2, axis=1) for alpha in ALPHAS]
        expected = np.sqrt([w @ square / w.sum() for square in squares])
        assert_allclose(errors(LeaveOneOut(), form, features, jet), expected, rtol=1e-6)

    @forms
    @sizes
    def test_equals_scikit_learn(self, form, size):
        features, jet = problem(size)
        N = features.n_neurons
        oracle = RidgeCV(ALPHAS * N * len(jet), store_cv_results=True)
        oracle.fit(textbook_design(features, jet.X)[:, :N], jet.y)
        expected = np.sqrt(oracle.cv_results_.mean(axis=0))
        assert_allclose(errors(LeaveOneOut(), form, features, jet), expected, rtol=1e-6)

    @forms
    def test_many_rows_come_in_blocks(self, form, monkeypatch):
        features, jet = problem((40, 15), 1, (2,), True)
        whole = errors(LeaveOneOut(), form, features, jet)
        monkeypatch.setattr("nurf.networks._network.BLOCK_ELEMENTS", 7 * features.n_columns)
        monkeypatch.setattr("nurf.networks._network.LEAST_ROWS", 1)
        monkeypatch.setattr("nurf.networks._network.MOST_ROWS", 7)
        assert_allclose(errors(LeaveOneOut(), form, features, jet), whole, rtol=1e-10)


@pairwise(forms, unit=[1 / 40, 2.0, 1e-300, 1e300], rule=[GeneralizedCrossValidation(), LeaveOneOut()])
def test_the_unit_of_weights_means_nothing(rule, unit, form):
    features, jet = problem((40, 15), 0, (2,), True)
    scaled = replace(jet, sample_weight=unit * jet.sample_weight)
    assert_allclose(errors(rule, form, features, scaled), errors(rule, form, features, jet), rtol=1e-9)


class TestGeneralizedCrossValidation:
    @pairwise(forms, sizes, degrees)
    def test_equals_the_dense_formula(self, form, size, degree):
        features, jet = problem(size, degree, (2,))
        n, expected = len(jet), []
        for alpha in ALPHAS:
            hat = hat_matrix(features, jet, alpha)
            expected.append(np.sqrt(np.sum((jet.y - hat @ jet.y) ** 2) / n) / (1 - np.trace(hat) / n))
        assert_allclose(errors(GeneralizedCrossValidation(), form, features, jet), expected, rtol=1e-6)

    @forms
    @pytest.mark.parametrize("alpha", [1e-12, 1e-15])
    def test_interpolation_is_no_proof_of_accuracy(self, form, alpha):
        if form is CholeskyRidge:
            alpha = RESOLVED  # it is not for smaller ones, which are lost in rounding
        features, jet = problem((15, 40), 0)
        found = errors(GeneralizedCrossValidation(), form, features, jet, np.array([alpha]))
        assert np.isfinite(found)
        assert found > 0.05


class TestValidation:
    @pairwise(forms, sizes, weighted, outputs)
    def test_is_the_error_on_both_sets_together(self, form, size, weighted, outputs):
        features, jet = problem(size, 0, outputs, weighted)
        held = make_jet(25, outputs, weighted, seed=7)
        expected = []
        for alpha in ALPHAS:
            solution, total, count = textbook_ridge(features, jet, alpha), 0.0, 0.0
            for rows in (jet, held):
                residuals = columns(rows.y) - textbook_design(features, rows.X) @ solution
                total += weights_of(rows) @ np.sum(residuals**2, axis=1)
                count += weights_of(rows).sum()
            expected.append(np.sqrt(total / count))
        assert_allclose(errors(Validation(held), form, features, jet), expected, rtol=1e-7)


class TestLargestNearBest:
    @pytest.mark.parametrize(
        ("alphas", "found", "best"),
        [
            ([1.0, 0.1, 0.01], [2.0, 1.04, 1.0], 1),
            ([1.0, 0.1, 0.01], [2.0, 1.06, 1.0], 2),
            ([0.01, 0.1, 1.0], [1.0, 1.04, 2.0], 1),
            ([0.1, 1.0, 0.01], [1.04, 1.0, 1.0], 1),
            ([1.0, 0.1, 0.01], [1.03, 7.0, 1.0], 0),
            ([1.0, 0.1], [0.0, 0.0], 0),
            ([0.3], [5.0], 0),
        ],
    )
    def test_takes_the_largest_alpha_within_five_percent(self, alphas, found, best):
        assert largest_near_best(np.array(alphas), np.array(found)) == best

    def test_the_tolerance_is_a_choice(self):
        alphas, found = np.array([1.0, 0.1, 0.01]), np.array([1.5, 1.04, 1.0])
        assert [largest_near_best(alphas, found, tolerance=t) for t in (0.0, 0.05, 0.6)] == [2, 1, 0]


def test_one_alpha_that_is_not_tiny_takes_a_cholesky_factorisation(monkeypatch):
    monkeypatch.setattr(_least_squares, "FEW", 10)
    features, jet = problem((40, 15), 0)
    least_squares = LeastSquares(features, jet)
    chosen = [type(least_squares.ridge(alphas=alphas)) for alphas in (None, ALPHAS, ALPHAS[:1], np.array([1e-12]))]
    assert chosen == [PrimalRidge, PrimalRidge, CholeskyRidge, PrimalRidge]
    assert type(LeastSquares(features[:10], jet).ridge(alphas=ALPHAS[:1])) is PrimalRidge
    for rule in (LeaveOneOut(), GeneralizedCrossValidation()):
        found, path = (fit_outer(features, jet, alphas=alphas, rule=rule) for alphas in (ALPHAS[1:2], ALPHAS))
        assert_allclose(found.mean_squares[0], path.mean_squares[1], rtol=1e-6)


def test_a_tail_that_explains_nearly_all_leaves_no_cholesky_factorisation(monkeypatch):
    """Neurons that are wide are nearly affine: what is left of their Gram matrix is within its rounding."""
    monkeypatch.setattr(_least_squares, "FEW", 10)
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (400, 2))
    planes = Hyperplanes.through(X[:200], rng.normal(size=(200, 2)))
    jet = Jet(X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2)
    chosen = {}
    for width, degree in ((0.1, 1), (4.0, 0), (4.0, 1)):
        problem = LeastSquares(Features(planes, Sigmoid(width), degree), jet)
        chosen[width, degree] = type(problem.ridge(alphas=np.array([1e-7])))
        fit = fit_outer(problem.features, jet, alphas=np.array([1e-7]))
        assert np.all(np.isfinite(fit.network.coefficients))
    assert chosen == {(0.1, 1): CholeskyRidge, (4.0, 0): CholeskyRidge, (4.0, 1): PrimalRidge}
