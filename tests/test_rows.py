"""Rows for values, gradients and Hessians against dense algebra: equations, solutions, and refits without a sample."""

from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dense import WIDTH, factor, functionals, make_features, normal_matrix, ridge, sample, stacked, total_weight
from nurf.activations import ReLU, Softplus
from nurf.jets import Jet
from nurf.networks import Features, Hyperplanes
from nurf.solvers import GeneralizedCrossValidation, LeaveOneOut, Loss
from nurf.solvers._rows import row_count, rows_per_sample, sample_rows, slope_rows
from nurf.solvers.ridge import DualRidge, LeastSquares, NormalEquations, PreciseRidge, PrimalRidge
from nurf.solvers.ridge._precise import triangle_of
from nurf.solvers.ridge._selection import representative_samples
from pairwise import pairwise

D, N_SAMPLES = 3, 11
ALPHAS = np.array([1e-1, 1e-4])
GRADIENTS, HESSIANS, BOTH = Loss(0.3), Loss(0.0, 0.02), Loss(0.3, 0.02)


def plain(outputs=(), n=N_SAMPLES, seed=0):
    """Values and derivatives that no network meets."""
    rng = np.random.default_rng(seed)
    X, H = rng.uniform(-1, 1, size=(n, D)), rng.normal(size=(n, *outputs, D, D))
    y = np.sin(X.sum(axis=1)).reshape(n, *[1] * len(outputs)) + rng.normal(size=(n, *outputs))
    return Jet(X, y, rng.normal(size=(n, *outputs, D)), H + np.swapaxes(H, -1, -2))


def masked(outputs=()):
    """Many patterns of partial derivatives; one Hessian is known above its diagonal only, some outputs in part."""
    jet, rng = plain(outputs), np.random.default_rng(3)
    gradients = np.where(rng.random(jet.gradients.shape) < 0.3, np.nan, jet.gradients)
    hessians = np.where(rng.random(jet.hessians.shape) < 0.3, np.nan, jet.hessians)
    gradients[2], hessians[4] = np.nan, np.nan
    hessians[5][..., np.tri(D, k=-1, dtype=bool)] = np.nan
    return replace(jet, gradients=gradients, hessians=hessians)


def few_masks(outputs=()):
    """Two patterns of partial derivatives."""
    jet = plain(outputs)
    gradients = jet.gradients.copy()
    gradients[::2, ..., 1] = np.nan
    return replace(jet, gradients=gradients)


def never_the_first(outputs=()):
    """Many patterns, and one partial derivative that is known nowhere."""
    jet = masked(outputs)
    gradients = jet.gradients.copy()
    gradients[..., 0] = np.nan
    gradients[:4, ..., 1:] = 1.0
    gradients[0, ..., 1] = gradients[1, ..., 2] = gradients[2] = np.nan
    return replace(jet, gradients=gradients)


def weighted(outputs=()):
    rng = np.random.default_rng(4)
    weights = rng.uniform(0.3, 3, N_SAMPLES)
    return replace(masked(outputs), sample_weight=weights, derivative_weight=rng.uniform(0, 2, N_SAMPLES))


def framed(outputs=()):
    """Derivatives along two directions, one, or none."""
    jet, rng = plain(outputs), np.random.default_rng(5)
    V = rng.normal(size=(N_SAMPLES, 2, D))
    V[3], V[4, 1], V[5, 1] = 0.0, 0.0, 2 * V[5, 0]
    along = Jet.along(jet.X, jet.y, V, np.einsum("nmd,n...d->n...m", V, jet.gradients))
    return replace(along, hessians=jet.hessians, sample_weight=rng.uniform(0.3, 3, N_SAMPLES))


def apart(outputs=()):
    """Values at some points, derivatives at others."""
    jet = plain(outputs)
    y, gradients, hessians = jet.y.copy(), jet.gradients.copy(), jet.hessians.copy()
    gradients[:6] = hessians[:6] = y[6:] = np.nan
    return Jet(jet.X, y, gradients, hessians)


def idle(outputs=()):
    """A row of weight zero whose derivatives count, and one the other way round."""
    weights, slopes = np.ones(N_SAMPLES), np.ones(N_SAMPLES)
    weights[2] = slopes[5] = 0.0
    return replace(plain(outputs), sample_weight=weights, derivative_weight=slopes)


JETS = [plain, masked, few_masks, never_the_first, weighted, framed, apart, idle]
LOSSES = {"gradients": GRADIENTS, "hessians": HESSIANS, "both": BOTH}
FORMS = {
    "primal": PrimalRidge,
    "dual": DualRidge,
    "precise": PreciseRidge,
}
jets = pytest.mark.parametrize("make", JETS, ids=lambda make: make.__name__)
losses = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
outputs = pytest.mark.parametrize("outputs", [(), (2,)], ids=str)
sizes = pytest.mark.parametrize("n_neurons", [5, 130], ids=["more_rows", "more_neurons"])


def all_samples(features, jet, loss):
    return [sample(features, jet, k, loss) for k in range(len(jet))]


@pytest.mark.parametrize("degree", [0, 2])
def test_the_closed_forms_of_these_tests(degree):
    features, x, h = make_features(4, D, degree), np.array([0.3, -0.2, 0.7]), 1e-5
    steps = h * np.eye(D)
    value, gradient, hessian = functionals(features, x)
    assert_allclose(value, features.design(x[None])[0])
    for i, step in enumerate(steps):
        up, down = functionals(features, x + step), functionals(features, x - step)
        assert_allclose(gradient[i], (up[0] - down[0]) / (2 * h), atol=1e-8)
        assert_allclose(hessian[i], (up[1] - down[1]) / (2 * h), atol=1e-8)


class TestEquations:
    @pairwise(jets, losses, outputs, degree=[-1, 1, 2])
    def test_equal_the_sums_over_all_rows(self, make, loss, outputs, degree):
        features, jet = make_features(7, D, degree), make(outputs)
        equations = NormalEquations.from_data(features, jet, loss)
        Z, y = stacked(all_samples(features, jet, loss))
        assert_allclose(equations.gram, Z.T @ Z, atol=1e-10)
        assert_allclose(equations.moments, Z.T @ y, atol=1e-10)
        assert_allclose(equations.total_weight, total_weight(jet))

    @jets
    @pytest.mark.parametrize("order", [1, 2])
    def test_of_one_order_have_weight_one(self, make, order):
        features, jet = make_features(7, D, 2), make((2,))
        equations = NormalEquations.from_rows(features, jet, order)
        nowhere = replace(jet, y=np.full_like(jet.y, np.nan))
        Z, y = stacked(all_samples(features, nowhere, {1: Loss(1.0), 2: Loss(0.0, 1.0)}[order]))
        assert_allclose(equations.gram, Z.T @ Z, atol=1e-10)
        assert_allclose(equations.moments, Z.T @ y, atol=1e-10)
        assert equations.total_weight == 0

    @jets
    def test_energy_is_that_of_all_rows(self, make):
        features, jet = make_features(7, D), make((2,))
        _, y = stacked(all_samples(features, jet, BOTH))
        assert_allclose(NormalEquations.from_data(features, jet, BOTH).energy, np.sum(y**2, axis=0))

    def test_of_a_hessian_that_is_not_symmetric(self):
        """No function can meet more of it than its symmetric part."""
        features, jet = make_features(7, D, 2), plain((2,))
        uneven = replace(jet, hessians=np.random.default_rng(1).normal(size=jet.hessians.shape))
        Z, y = stacked(all_samples(features, uneven, HESSIANS))
        equations = NormalEquations.from_data(features, uneven, HESSIANS)
        assert_allclose(equations.gram, Z.T @ Z, atol=1e-10)
        assert_allclose(equations.moments, Z.T @ y, atol=1e-10)

    def test_times_a_number_they_are_those_of_other_weights(self):
        features, jet = make_features(7, D), plain()
        tripled = 3.0 * NormalEquations.from_data(features, jet, BOTH)
        heavy = NormalEquations.from_data(features, replace(jet, sample_weight=np.full(N_SAMPLES, 3.0)), BOTH)
        for name in ("gram", "moments", "energy", "total_weight", "n_neurons"):
            assert_allclose(getattr(tripled, name), getattr(heavy, name), rtol=1e-12, err_msg=name)

    @pairwise(jets, order=[0, 1, 2], degree=[-1, 2])
    def test_grow(self, make, order, degree):
        jet, whole = make((2,)), make_features(12, D, degree)
        grown = NormalEquations.from_rows(whole[:4], jet, order)
        for n in (5, 12):
            grown = grown.grown(whole[:n], jet, order)
        expected = NormalEquations.from_rows(whole, jet, order)
        for name in ("gram", "moments", "energy", "total_weight", "n_neurons"):
            assert_allclose(getattr(grown, name), getattr(expected, name), atol=1e-11, err_msg=name)

    @pytest.mark.parametrize("make", [weighted, framed])
    def test_come_in_blocks(self, make, monkeypatch):
        features, jet = make_features(7, D, 1), make((2,))
        whole = NormalEquations.from_data(features, jet, BOTH)
        monkeypatch.setattr("nurf.networks._network.BLOCK_ELEMENTS", 14)
        monkeypatch.setattr("nurf.networks._network.LEAST_ROWS", 1)
        monkeypatch.setattr("nurf.networks._network.MOST_ROWS", 2)
        parts = NormalEquations.from_data(features, jet, BOTH)
        assert_allclose(parts.gram, whole.gram, atol=1e-11)
        assert_allclose(parts.moments, whole.moments, atol=1e-11)

    @jets
    @losses
    def test_rows_of_each_sample(self, make, loss):
        features, jet = make_features(7, D, 1), make((2,))
        design, targets = sample_rows(features, jet, loss)
        assert design.shape[1] == rows_per_sample(jet, loss)
        for k, (Z, y) in enumerate(all_samples(features, jet, loss)):
            assert_allclose(design[k].T @ design[k], Z.T @ Z, atol=1e-11)
            assert_allclose(design[k].T @ targets[k], Z.T @ y, atol=1e-11)

    @pytest.mark.parametrize(("make", "most"), [(plain, 1), (few_masks, 2), (masked, D), (framed, 2)])
    def test_derivatives_are_in_few_groups(self, make, most):
        groups = list(slope_rows(make(), 1))
        assert 1 <= len(groups) <= most
        assert all(len(group.index) for group in groups)


class TestRidge:
    @pairwise(jets, losses, forms, sizes)
    def test_equals_least_squares_on_all_rows(self, make, loss, form, n_neurons):
        features, jet = make_features(n_neurons, D, 1), make((2,))
        samples = all_samples(features, jet, loss)
        expected = [ridge(samples, n_neurons, alpha, total_weight(jet)) for alpha in ALPHAS]
        assert_allclose(form(features, jet, loss).solve(ALPHAS), expected, atol=1e-6)

    @pairwise(jets, losses, forms, sizes, degree=[-1, 1])
    def test_residuals_are_those_of_refits_without_the_sample(self, make, loss, form, n_neurons, degree):
        features, jet = make_features(n_neurons, D, degree), make((2,))
        samples, total = all_samples(features, jet, loss), total_weight(jet)
        index, shares = np.array([0, 3, 8, 5]), np.array([1.0, 1.0, 1.0, 0.25])
        left = form(features, jet, loss).left_out(ALPHAS, index, shares)
        design, targets = sample_rows(features, jet, loss)
        for i, (k, share) in enumerate(zip(index, shares, strict=True)):
            rest = [(np.sqrt(1 - share) * Z, np.sqrt(1 - share) * y) if j == k else (Z, y)
                    for j, (Z, y) in enumerate(samples)]  # fmt: skip
            for a, alpha in enumerate(ALPHAS):
                expected = targets[k] - design[k] @ ridge(rest, n_neurons, alpha, total)
                assert_allclose(left[i, :, a], expected, atol=1e-5)

    @pairwise(jets, losses, forms, sizes)
    def test_diagnostics(self, make, loss, form, n_neurons):
        features, jet = make_features(n_neurons, D, 0), make((2,))
        samples, total = all_samples(features, jet, loss), total_weight(jet)
        Z, y = stacked(samples)
        fitted = form(features, jet, loss)
        for alpha in ALPHAS:
            inverse = np.linalg.inv(normal_matrix(samples, n_neurons, alpha, total))
            hat = Z @ inverse @ Z.T
            assert_allclose(fitted.degrees_of_freedom(np.array([alpha])), np.trace(hat), rtol=1e-6)
            root = fitted.covariance_factor(alpha)
            assert_allclose(root @ root.T, inverse, rtol=1e-6, atol=1e-6 * np.abs(inverse).max())
        squares = [np.sum((y - Z @ c) ** 2, axis=0) / total for c in fitted.solve(ALPHAS)]
        assert_allclose(fitted.mean_square_residual(ALPHAS), squares, rtol=1e-6)

    @forms
    @sizes
    def test_a_sample_that_the_fit_must_meet(self, form, n_neurons):
        """One sample with all its derivatives, and a tail that meets them: no error, no matrix that is singular."""
        features = Features(make_features(n_neurons, 1).hyperplanes, Softplus(0.3), 1)
        for seed in range(30):
            rng = np.random.default_rng(seed)
            jet = Jet(rng.choice([-1.0, 0.0, 0.5], (1, 1)), rng.normal(size=1), rng.normal(size=(1, 1)))
            fitted = form(features, jet, Loss(1.0))
            left = fitted.left_out(ALPHAS, np.array([0]), np.ones(1))
            assert np.all(np.isfinite(left))
            assert_allclose(features.design(jet.X) @ fitted.solve(ALPHAS)[0], jet.y[:, None], atol=1e-10)

    @jets
    def test_factor_takes_the_smaller_form(self, make):
        jet = make()
        R = 1 + (D if jet.frames is None else 2)
        assert type(factor(make_features(R * N_SAMPLES, D), jet, GRADIENTS)) is PrimalRidge
        assert type(factor(make_features(R * N_SAMPLES + 1, D), jet, GRADIENTS)) is DualRidge


class TestEquivalentData:
    """The same information told in two ways gives one fit."""

    def solutions(self, *jets, loss=GRADIENTS):
        for n_neurons in (5, 130):
            features = make_features(n_neurons, D, 1)
            for form in FORMS.values():
                yield [form(features, jet, loss).solve(ALPHAS) for jet in jets]

    @outputs
    def test_a_full_frame_is_the_gradient(self, outputs):
        jet = plain(outputs)
        turns = np.linalg.qr(np.random.default_rng(0).normal(size=(N_SAMPLES, D, D)))[0]
        along = Jet.along(jet.X, jet.y, turns, np.einsum("nmd,n...d->n...m", turns, jet.gradients))
        assert_allclose(along.gradients, jet.gradients, atol=1e-13)
        for full, framed in self.solutions(jet, along):
            assert_allclose(framed, full, atol=1e-7)
        for n_neurons in (5, 130):
            features = make_features(n_neurons, D, 1)
            fits = [factor(features, data, GRADIENTS) for data in (jet, along)]
            errors = [LeaveOneOut().mean_squares(f, ALPHAS, f.solve(ALPHAS)) for f in fits]
            assert_allclose(errors[1], errors[0], rtol=1e-8)

    def test_long_directions_say_no_more_than_short_ones(self):
        jet, rng = plain(), np.random.default_rng(1)
        V = rng.normal(size=(N_SAMPLES, 1, D))
        slopes = np.einsum("nmd,nd->nm", V, jet.gradients)
        short, long = Jet.along(jet.X, jet.y, V, slopes), Jet.along(jet.X, jet.y, 70 * V, 70 * slopes)
        for a, b in self.solutions(short, long):
            assert_allclose(a, b, atol=1e-9)

    @outputs
    def test_masks_are_frames_of_axes(self, outputs):
        jet = plain(outputs)
        known = np.random.default_rng(2).random((N_SAMPLES, D)) < 0.6
        mask = known.reshape(N_SAMPLES, *[1] * len(outputs), D)
        gradients = np.where(mask, jet.gradients, np.nan)
        axes = np.broadcast_to(np.eye(D), (N_SAMPLES, D, D))
        along = Jet.along(jet.X, jet.y, axes, gradients)
        for a, b in self.solutions(replace(jet, gradients=gradients), along):
            assert_allclose(a, b, atol=1e-8)

    def test_gradients_at_other_points_are_further_rows(self):
        jet, other = plain(), plain(seed=9)
        nowhere = np.full(N_SAMPLES, np.nan)
        joined = Jet(jet.X, jet.y) + Jet(other.X, nowhere, other.gradients)
        for n_neurons in (5, 130):
            features = make_features(n_neurons, D)
            rows = [sample(features, Jet(jet.X, jet.y), k, Loss()) for k in range(N_SAMPLES)]
            rows += [sample(features, Jet(other.X, nowhere, other.gradients), k, GRADIENTS) for k in range(N_SAMPLES)]
            expected = ridge(rows, n_neurons, ALPHAS[1], N_SAMPLES)
            assert_allclose(factor(features, joined, GRADIENTS).solve(ALPHAS)[1], expected, atol=1e-7)

    def test_derivative_weights_count_derivatives(self):
        """Derivatives that count three times are two further rows that have no value."""
        jet = plain()
        heavy = replace(jet, derivative_weight=np.full(N_SAMPLES, 3.0))
        extra = replace(jet, y=np.full(N_SAMPLES, np.nan))
        for a, b in self.solutions(heavy, jet + extra + extra, loss=BOTH):
            assert_allclose(a, b, atol=1e-8)

    def test_an_entry_above_the_diagonal_is_the_one_below(self):
        jet = plain()
        upper = replace(jet, hessians=np.where(np.tri(D, k=-1, dtype=bool), np.nan, jet.hessians))
        for a, b in self.solutions(jet, upper, loss=HESSIANS):
            assert_allclose(a, b, atol=1e-9)

    @pytest.mark.parametrize("n_neurons", [5, 300])
    @pytest.mark.parametrize("make", [masked, framed, apart])
    def test_a_weight_of_two_is_a_row_twice(self, n_neurons, make):
        features, jet = make_features(n_neurons, D, 0), replace(make(), sample_weight=None)
        counts = np.random.default_rng(5).integers(1, 4, N_SAMPLES)
        repeated = jet[np.repeat(np.arange(N_SAMPLES), counts)]
        one, two = (factor(features, data, GRADIENTS) for data in (replace(jet, sample_weight=counts), repeated))
        assert_allclose(one.solve(ALPHAS), two.solve(ALPHAS), rtol=1e-6, atol=1e-7)

    @pairwise(n_neurons=[5, 300], make=[masked, framed, apart], rule=[LeaveOneOut(), GeneralizedCrossValidation()])
    def test_the_unit_of_weights_means_nothing(self, rule, n_neurons, make):
        features, jet = make_features(n_neurons, D, 0), replace(make(), sample_weight=None)
        found = []
        for weight in (1.0, 1e-3, 2.0):
            fitted = factor(features, replace(jet, sample_weight=np.full(N_SAMPLES, weight)), GRADIENTS)
            found.append(rule.mean_squares(fitted, ALPHAS, fitted.solve(ALPHAS)))
        assert_allclose(found[1:], [found[0]] * 2, rtol=1e-6)


class TestRules:
    @pairwise(jets, forms, sizes)
    def test_leave_one_out_is_the_mean_over_values(self, make, form, n_neurons):
        features, jet = make_features(n_neurons, D), make((2,))
        jet = replace(jet, sample_weight=None)
        samples, total, squares = all_samples(features, jet, GRADIENTS), total_weight(jet), []
        for k in np.flatnonzero(~np.isnan(jet.y[:, 0])):
            solution = ridge(samples[:k] + samples[k + 1 :], n_neurons, ALPHAS[1], total)
            squares.append((jet.y[k] - functionals(features, jet.X[k])[0] @ solution) ** 2)
        fitted = form(features, jet, GRADIENTS)
        found = LeaveOneOut().mean_squares(fitted, ALPHAS, fitted.solve(ALPHAS))
        assert_allclose(found[1], np.mean(squares, axis=0), rtol=2e-5)

    @jets
    @forms
    def test_generalised_cross_validation(self, make, form):
        features, jet = make_features(5, D), make((2,))
        jet = replace(jet, sample_weight=None, derivative_weight=None)
        samples, total = all_samples(features, jet, GRADIENTS), total_weight(jet)
        Z, y = stacked(samples)
        inverse = np.linalg.inv(normal_matrix(samples, 5, ALPHAS[1], total))
        left = y - Z @ inverse @ Z.T @ y
        n = len(y) if jet.frames is None else np.sum(~np.isnan(jet.y[:, 0])) + np.linalg.matrix_rank(jet.frames).sum()
        assert row_count(jet, GRADIENTS) == n
        expected = np.sum(left**2, axis=0) / total / (1 - np.trace(Z @ inverse @ Z.T) / n) ** 2
        fitted = form(features, jet, GRADIENTS)
        found = GeneralizedCrossValidation().mean_squares(fitted, ALPHAS, fitted.solve(ALPHAS))
        assert_allclose(found[1], expected, rtol=2e-7)

    def test_a_part_of_many_samples_stands_for_all(self):
        """A few samples hold most of the error; leaving out 300 of 3000 in turn still sees it."""
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(3000, 2))
        near = np.exp(-np.sum((X - 0.4) ** 2, axis=1) / 0.02**2)
        jet = Jet(X, np.sin(X[:, 0]) + 3 * near, np.stack([np.cos(X[:, 0]), 0 * near], 1) + near[:, None] * 100)
        assert np.count_nonzero(near > 0.1) < 10
        features = make_features(40, 2)
        fitted = factor(features, jet)
        alphas = fitted.feature_energy * ALPHAS
        found = [LeaveOneOut(n).mean_squares(fitted, alphas, fitted.solve(alphas)) for n in (10_000, 300)]
        assert_allclose(np.sqrt(found[1]), np.sqrt(found[0]), rtol=0.2)


class TestSpreadOut:
    def jet(self, seed, n=2000):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(n) < 0.003, 50.0, 1.0) * rng.normal(size=n)
        return Jet(
            rng.uniform(-1, 1, size=(n, 2)), y, rng.normal(size=(n, 2)), sample_weight=rng.uniform(0.5, 2, n)
        ), rng

    def test_sums_are_right_on_average(self):
        ratios = []
        for seed in range(60):
            jet, rng = self.jet(seed)
            index, multiples = representative_samples(jet, jet.sample_weight, 100)
            quantity = jet.sample_weight * jet.y**2 * rng.uniform(0, 2, len(jet))
            assert len(index) == len(np.unique(index)) <= 100
            ratios.append([multiples @ quantity[index] / quantity.sum(), multiples.sum() / len(jet)])
        means, errors = np.mean(ratios, axis=0), np.std(ratios, axis=0) / np.sqrt(len(ratios))
        assert np.all(np.abs(means - 1) < 4 * errors)
        assert np.all(np.std(ratios, axis=0) < [0.25, 0.2])

    def test_energetic_samples_are_not_missed(self):
        for seed in range(10):
            jet, _ = self.jet(seed)
            index, _ = representative_samples(jet, jet.sample_weight, 100)
            energy = jet.sample_weight * (jet.y**2 + np.sum(jet.gradients**2, axis=1))
            assert set(np.flatnonzero(energy / energy.sum() > 0.02)) <= set(index)

    def test_steep_samples_are_not_missed(self):
        jet, _ = self.jet(0)
        gradients = jet.gradients.copy()
        gradients[77] = 1e3
        jet = Jet(jet.X, np.zeros(len(jet)), gradients)
        assert 77 in representative_samples(jet, np.ones(len(jet)), 10)[0]

    def test_samples_that_do_not_count_are_never_picked(self):
        jet, _ = self.jet(0)
        counts = np.where(np.arange(len(jet)) % 3 == 0, 0.0, 1.0)
        for n in (50, 5000):
            index, multiples = representative_samples(jet, counts, n)
            assert np.all(index % 3 > 0)
            assert_allclose(multiples.sum(), counts.sum(), rtol=0.3)
        assert_array_equal(multiples, 1.0)

    def test_values_of_zero(self):
        index, multiples = representative_samples(Jet(np.zeros((90, 1)), np.zeros(90)), np.ones(90), 30)
        assert len(index) == 30
        assert_allclose(multiples, 3.0)


class TestPrecise:
    """A smooth function in one dimension, and alphas that the rounding of a Gram matrix hides."""

    N = 24
    X, FRESH = np.linspace(-1, 1, 40)[:, None], np.linspace(-0.95, 0.95, 23)[:, None]

    def features(self):
        return make_features(self.N, 1, 0, seed=2)

    def exact(self, alpha):
        """Predictions by the normal equations, by elimination with 60 digits."""
        decimals = np.vectorize(lambda number: Decimal(float(number)), otypes=[object])
        sigmoid = np.vectorize(lambda u: 1 / (1 + (-u).exp()), otypes=[object])
        planes = self.features().hyperplanes

        def design(X):
            inner = decimals(X) @ decimals(planes.normals).T + decimals(planes.offsets)
            return np.hstack([sigmoid(inner / Decimal(WIDTH)), decimals(np.ones((len(X), 1)))])

        with localcontext(prec=60):
            Z, n = design(self.X), self.N + 1
            penalty = Decimal(float(alpha)) * self.N * len(self.X)
            M = np.column_stack([Z.T @ Z, Z.T @ decimals(np.exp(self.X[:, 0]))])
            M[range(self.N), range(self.N)] += penalty
            for i in range(n):  # positive definite: no pivoting
                M[i] = M[i] / M[i, i]
                others = np.arange(n) != i
                M[others] -= np.outer(M[others, i], M[i])
            return (design(self.FRESH) @ M[:, n]).astype(float)

    def errors(self, form, alpha):
        features, jet = self.features(), Jet(self.X, np.exp(self.X[:, 0]))
        found = features.design(self.FRESH) @ form(features, jet, Loss()).solve(np.array([alpha]))[0, :, 0]
        return np.abs(found - self.exact(alpha)).max()

    @pytest.mark.parametrize("alpha", [1e-18, 1e-20])
    def test_resolves_what_the_gram_matrix_cannot(self, alpha):
        precise, primal = (self.errors(form, alpha) for form in (PreciseRidge, FORMS["primal"]))
        assert precise < 1e-9
        assert primal > 1e3 * precise

    def test_the_residual_is_not_hidden_by_the_rounding_of_the_energy(self):
        features = self.features()
        planted = features.design(self.X) @ np.random.default_rng(0).normal(size=(features.n_columns, 8))
        fitted, alphas = PreciseRidge(features, Jet(self.X, planted)), np.array([1e-16, 1e-18])
        squares = [np.mean((features.design(self.X) @ c - planted) ** 2, axis=0) for c in fitted.solve(alphas)]
        assert np.all(squares[1] < 1e-16 * np.mean(planted**2, axis=0))
        assert_allclose(fitted.mean_square_residual(alphas), squares, rtol=0.05)

    @pytest.mark.parametrize("n_neurons", [5, 60])
    def test_many_rows_come_in_blocks(self, n_neurons, monkeypatch):
        features, jet = make_features(n_neurons, D, 1), weighted((2,))
        whole = PreciseRidge(features, jet, BOTH).solve(ALPHAS)
        monkeypatch.setattr(
            "nurf.solvers.ridge._precise.row_blocks", lambda n, *_: [slice(i, i + 2) for i in range(0, n, 2)]
        )
        assert_allclose(PreciseRidge(features, jet, BOTH).solve(ALPHAS), whole, atol=1e-8)

    @pytest.mark.parametrize("n_neurons", [5, 60])
    def test_one_problem_serves_all_losses(self, n_neurons, monkeypatch):
        """Rows are reduced once for each order, whatever the weights."""
        features, jet = make_features(n_neurons, D, 1), weighted((2,))
        losses = (Loss(), GRADIENTS, Loss(gradients=3.0), BOTH)
        alone = [PreciseRidge(features, jet, loss).solve(ALPHAS) for loss in losses]
        problem, orders = LeastSquares(features, jet), []
        reduce = triangle_of
        monkeypatch.setattr(
            "nurf.solvers.ridge._least_squares.triangle_of", lambda *args: orders.append(args[-1]) or reduce(*args)
        )
        for loss, expected in zip(losses, alone, strict=True):
            assert_allclose(problem.ridge(loss, precise=True).solve(ALPHAS), expected, atol=1e-8)
        assert orders == [0, 1, 2]

    def test_a_tail_of_low_rank_takes_nothing_from_the_neurons(self):
        jet = plain()
        X = jet.X.copy()
        X[:, 1] = 0.1
        features, data = make_features(8, D, 2), Jet(X, jet.y)
        precise, primal = PreciseRidge(features, data), FORMS["primal"](features, data, Loss())
        assert precise.tail_rank == 6
        a, b = (features.design(X) @ fitted.solve(ALPHAS) for fitted in (precise, primal))
        assert_allclose(a, b, atol=1e-7)


class TestLossWeights:
    @pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
    @pytest.mark.parametrize("kind", ["gradients", "hessians"])
    def test_are_numbers(self, kind, value):
        with pytest.raises(ValueError, match=f"weight of {kind} must be a number >= 0, got {value}"):
            Loss(**{kind: value})

    @pytest.mark.parametrize("kind", ["gradients", "hessians"])
    def test_need_derivatives(self, kind):
        jet = plain()
        loss, unknown = Loss(**{kind: 0.5}), np.full_like(getattr(jet, kind), np.nan)
        for lacking in (replace(jet, **{kind: None}), replace(jet, **{kind: unknown})):
            for make in (NormalEquations.from_data, factor):
                with pytest.raises(ValueError, match=f"`{kind[:-1]}_weight` = 0.5 needs known {kind}, got none"):
                    make(make_features(5, D), lacking, loss)

    def test_directions_that_are_nowhere_known_are_none(self):
        jet = plain()
        unknown = Jet.along(jet.X, jet.y, jet.X, np.full(N_SAMPLES, np.nan))
        without_direction = Jet.along(jet.X, jet.y, 0 * jet.X, np.ones(N_SAMPLES))
        for along in (unknown, without_direction):
            assert along.known == set()
            with pytest.raises(ValueError, match="needs known gradients, got none"):
                factor(make_features(5, D), along, GRADIENTS)

    def test_need_a_smooth_activation(self):
        planes = Hyperplanes(np.eye(D), np.zeros(D))
        with pytest.raises(ValueError, match="derivatives up to"):
            NormalEquations.from_data(Features(planes, ReLU(), 1), plain(), HESSIANS)
