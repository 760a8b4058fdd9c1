"""Sensitivities against closed forms and SALib, and what cannot be asked."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import gamma, lognorm, norm, uniform

from exact import Exact
from nurf import KernelFeatureRegressor
from nurf.decisions import sensitivity

A, B = 7.0, 0.1


def ishigami(X):
    return np.sin(X[:, 0]) + A * np.sin(X[:, 1]) ** 2 + B * X[:, 2] ** 4 * np.sin(X[:, 0])


def ishigami_gradient(X):
    first = np.cos(X[:, 0]) * (1 + B * X[:, 2] ** 4)
    return np.stack([first, A * np.sin(2 * X[:, 1]), 4 * B * X[:, 2] ** 3 * np.sin(X[:, 0])], axis=1)


V1, V2, V13 = (1 + B * np.pi**4 / 5) ** 2 / 2, A**2 / 8, B**2 * np.pi**8 * (1 / 18 - 1 / 50)
V = V1 + V2 + V13
CUBE = [uniform(-np.pi, 2 * np.pi)] * 3
MODEL = Exact(ishigami, ishigami_gradient, [-np.pi] * 3, [np.pi] * 3)
CLOSE = 0.02  # of 8192 Sobol points; the standard error that is reported is tested below


def linear(coefficients, box=6.0):
    a = np.asarray(coefficients, float)
    d = len(a)
    return Exact(lambda X: X @ a, lambda X: np.tile(a, (len(X), 1)), [-box] * d, [box] * d)


class TestClosedForms:
    def test_ishigami(self):
        found = sensitivity(MODEL, CUBE, second=True, shapley=True, random_state=0)
        assert_allclose(found.first, [V1 / V, V2 / V, 0], atol=CLOSE)
        assert_allclose(found.total, [(V1 + V13) / V, V2 / V, V13 / V], atol=CLOSE)
        assert found.pairs == (("x0", "x1"), ("x0", "x2"), ("x1", "x2"))
        assert_allclose(found.second, [(V1 + V2) / V, (V1 + V13) / V, V2 / V], atol=CLOSE)
        assert_allclose(found.shapley, [(V1 + V13 / 2) / V, V2 / V, V13 / 2 / V], atol=CLOSE)
        assert_allclose(found.generalized_first, found.first)

    def test_derivative_measures(self):
        """The bound holds, and mean squares are integrals in closed form."""
        found = sensitivity(MODEL, CUBE, random_state=0)
        mean4, mean8 = np.pi**4 / 5, np.pi**8 / 9
        squares = [(1 + 2 * B * mean4 + B**2 * mean8) / 2, A**2 / 2, 8 * B**2 * np.pi**6 / 7]
        assert_allclose(found.derivative_measure, squares, rtol=0.05)  # 2048 points
        assert_allclose(found.bound, 4 * np.asarray(found.derivative_measure) / V, rtol=0.02)
        assert np.all(np.asarray(found.bound) > np.asarray(found.total) - CLOSE)

    @pytest.mark.parametrize("d", [2, 8])
    def test_sobol_g(self, d):
        a = np.arange(d)

        def g(X):
            return np.prod((np.abs(4 * X - 2) + a) / (1 + a), axis=1)

        def gradient(X):
            return g(X)[:, None] * 4 * np.sign(4 * X - 2) / (np.abs(4 * X - 2) + a)

        parts = 1 / (3 * (1 + a) ** 2)
        variance = np.prod(1 + parts) - 1
        found = sensitivity(Exact(g, gradient, np.zeros(d), np.ones(d)), random_state=0)
        assert_allclose(found.first, parts / variance, atol=CLOSE)
        assert_allclose(found.total, parts * np.prod(1 + parts) / (1 + parts) / variance, atol=CLOSE)

    def test_shifted_g(self):
        """Sobol's g* with exponents and shifts (Saltelli and others 2010): the same variances for any shift."""
        a, alpha = np.array([0.0, 0.5, 3.0, 9.0]), np.array([0.5, 1.0, 2.0, 1.0])
        shift = np.array([0.1, 0.7, 0.3, 0.9])

        def factors(X):
            u = 2 * np.mod(X + shift, 1.0) - 1
            return ((1 + alpha) * np.abs(u) ** alpha + a) / (1 + a)

        def gradient(X):
            u = 2 * np.mod(X + shift, 1.0) - 1
            slopes = 2 * (1 + alpha) * alpha * np.sign(u) * np.abs(u) ** (alpha - 1) / (1 + a)
            return np.prod(factors(X), axis=1)[:, None] / factors(X) * slopes

        parts = alpha**2 / ((1 + 2 * alpha) * (1 + a) ** 2)
        variance = np.prod(1 + parts) - 1
        model = Exact(lambda X: np.prod(factors(X), axis=1), gradient, np.zeros(4), np.ones(4))
        found = sensitivity(model, second=True, random_state=0)
        assert_allclose(found.first, parts / variance, atol=CLOSE)
        assert_allclose(found.total, parts * np.prod(1 + parts) / (1 + parts) / variance, atol=CLOSE)
        assert_allclose(found.interaction[0], parts[0] * parts[1] / variance, atol=2 * CLOSE)

    def test_friedman(self):
        """10 sin(pi x0 x1) + 20 (x2 - 1/2)^2 + 10 x3 + 5 x4, with integrals of the first part by quadrature."""

        def value(X):
            return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]

        def gradient(X):
            wave = 10 * np.pi * np.cos(np.pi * X[:, 0] * X[:, 1])
            ones = np.ones(len(X))
            slopes = wave * X[:, 1], wave * X[:, 0], 40 * (X[:, 2] - 0.5), 10 * ones, 5 * ones, 0 * ones
            return np.stack(slopes, axis=1)

        nodes, weights = np.polynomial.legendre.leggauss(40)
        t, w = (nodes + 1) / 2, weights / 2
        part = 10 * np.sin(np.pi * np.outer(t, t))
        mean, mean_of_one = w @ part @ w, part @ w
        both, one = w @ part**2 @ w - mean**2, w @ mean_of_one**2 - mean**2
        rest = np.array([400 * (1 / 80 - 1 / 144), 100 / 12, 25 / 12, 0])
        variance = both + rest.sum()
        found = sensitivity(Exact(value, gradient, np.zeros(6), np.ones(6)), second=True, random_state=0)
        assert_allclose(found.first, np.array([one, one, *rest]) / variance, atol=CLOSE)
        assert_allclose(found.total, np.array([both - one, both - one, *rest]) / variance, atol=CLOSE)
        assert_allclose(found.second[0], both / variance, atol=CLOSE)
        assert_allclose(found.interaction[0], (both - 2 * one) / variance, atol=2 * CLOSE)
        assert np.all(np.asarray(found.bound) > np.asarray(found.total) - CLOSE)

    @pytest.mark.parametrize("d", [3, 10])
    def test_bratley(self, d):
        """The alternating sum of x0, x0 x1, x0 x1 x2, ... is multilinear: its variance parts are exact.

        A difference of a multilinear function does not depend on the step.
        """
        signs = (-1.0) ** np.arange(1, d + 1)

        def value(X):
            return np.cumprod(X, axis=1) @ signs

        def gradient(X):
            return np.stack(
                [
                    value(np.insert(np.delete(X, j, 1), j, 1, 1)) - value(np.insert(np.delete(X, j, 1), j, 0, 1))
                    for j in range(d)
                ],
                axis=1,
            )

        # E of products of two terms, given which inputs they share
        def mean_square(u):
            total = 0.0
            for i in range(d):
                for j in range(d):
                    factors = [(1 / 3 if k in u else 1 / 4) if k <= min(i, j) else 1 / 2 for k in range(max(i, j) + 1)]
                    total += signs[i] * signs[j] * np.prod(factors)
            return total

        everything, nothing = mean_square(range(d)), mean_square([])
        variance = everything - nothing
        first = [(mean_square([i]) - nothing) / variance for i in range(d)]
        total = [(everything - mean_square([j for j in range(d) if j != i])) / variance for i in range(d)]
        found = sensitivity(Exact(value, gradient, np.zeros(d), np.ones(d)), random_state=0)
        assert_allclose(found.first, first, atol=CLOSE)
        assert_allclose(found.total, total, atol=CLOSE)

    def test_morris(self):
        """The function of 20 inputs (Morris 1991) in its version with indices in closed form (Saltelli and others).

        The sum of ten inputs and of all products of two of them, a(sum x) + b(sum of products), is multilinear: with
        x - 1/2 = z it is a linear part with the factor a + 9 b / 2 and products with the factor b.
        """
        d, k, a = 30, 10, 0.3
        b = 0.4
        own = np.arange(d) < k

        def value(X):
            x = X[:, own]
            total = x.sum(axis=1)
            return a * total + b * (total**2 - np.sum(x**2, axis=1)) / 2

        def gradient(X):
            x = X[:, own]
            slopes = np.zeros_like(X)
            slopes[:, own] = a + b * (x.sum(axis=1, keepdims=True) - x)
            return slopes

        linear_part, products = (a + b * (k - 1) / 2) ** 2 / 12, b**2 / 144
        variance = k * linear_part + k * (k - 1) / 2 * products
        found = sensitivity(Exact(value, gradient, np.zeros(d), np.ones(d)), random_state=0)
        assert_allclose(found.first, own * linear_part / variance, atol=CLOSE)
        assert_allclose(found.total, own * (linear_part + (k - 1) * products) / variance, atol=CLOSE)
        assert_allclose(found.derivative_measure, own * ((a + b * (k - 1) / 2) ** 2 + (k - 1) * b**2 / 12), rtol=0.05)

    def test_linear_functions_of_normal_inputs(self):
        model = linear([1.0, 2.0, 0.0])
        found = sensitivity(model, [norm(0, 2), norm(1, 1), norm()], n_directions=2, random_state=0)
        assert_allclose(found.first, [0.5, 0.5, 0], atol=CLOSE)
        assert_allclose(found.total, [0.5, 0.5, 0], atol=CLOSE)
        assert_allclose(found.bound, [0.5, 0.5, 0], atol=CLOSE)  # it is sharp
        assert_allclose(found.activity, [4, 4, 0], atol=1e-9)

    def test_dependent_normal_inputs(self):
        """Of x1 + x2 with correlation r, each explains (1 + r) / 2 in closed indices; Shapley effects are equal."""
        r = 0.6
        found = sensitivity(linear([1, 1]), [norm()] * 2, correlation=[[1, r], [r, 1]], shapley=True, random_state=0)
        assert_allclose(found.first, [(1 + r) / 2] * 2, atol=CLOSE)
        assert_allclose(found.total, [(1 - r) / 2] * 2, atol=CLOSE)
        assert_allclose(found.shapley, [0.5, 0.5], atol=CLOSE)
        assert np.all(np.isnan(found.bound))

    def test_several_outputs(self):
        model = Exact(
            lambda X: np.stack([X[:, 0], 3 * X[:, 1]], axis=1),
            lambda X: np.tile([[1.0, 0.0], [0.0, 3.0]], (len(X), 1, 1)),
            [-6.0, -6.0],
            [6.0, 6.0],
        )
        found = sensitivity(model, [norm(), norm()], random_state=0)
        assert_allclose(found.first, np.eye(2), atol=CLOSE)
        assert_allclose(found.generalized_total, [0.1, 0.9], atol=CLOSE)
        assert_allclose(found.derivative_measure, [[1, 0], [0, 9]])

    @pytest.mark.parametrize("marginal", [gamma(3.0), lognorm(0.5)], ids=["gamma", "lognorm"])
    def test_bounds_of_other_distributions_hold(self, marginal):
        """A linear function has the total index one, and the constant is not much too large for these."""
        bound = float(sensitivity(linear([1.0], 20.0), [marginal], n_points=1024, random_state=0).bound[0])
        assert 0.99 < bound < 25

    def test_salib(self):
        """SALib's estimates from Saltelli's points agree within its own confidence intervals."""
        pytest.importorskip("SALib")
        from SALib.analyze import sobol as analyze
        from SALib.sample import sobol as sample

        problem = {"num_vars": 3, "names": ["a", "b", "c"], "bounds": [[-np.pi, np.pi]] * 3}
        other = analyze.analyze(problem, ishigami(sample.sample(problem, 1024, seed=0)), seed=0)
        found = sensitivity(MODEL, CUBE, random_state=0)
        assert_allclose(found.first, other["S1"], atol=other["S1_conf"].max() + CLOSE)
        assert_allclose(found.total, other["ST"], atol=other["ST_conf"].max() + CLOSE)

    def test_derivative_measures_of_salib(self):
        """SALib's DGSM from finite differences at its own points; its bound is for uniform inputs, as ours."""
        pytest.importorskip("SALib")
        from SALib.analyze import dgsm
        from SALib.sample import finite_diff

        problem = {"num_vars": 3, "names": ["a", "b", "c"], "bounds": [[-np.pi, np.pi]] * 3}
        X = finite_diff.sample(problem, 1024, delta=1e-3, seed=0)
        other = dgsm.analyze(problem, X, ishigami(X), seed=0)
        found = sensitivity(MODEL, CUBE, random_state=0)
        assert_allclose(found.derivative_measure, other["vi"], rtol=0.1)
        assert_allclose(found.bound, other["dgsm"], rtol=0.1)

    def test_indices_of_several_outputs_are_those_of_each(self):
        """Generalised indices are averages with the variances as weights (Lamboni, Monod, Makowski 2011)."""
        model = Exact(
            lambda X: np.stack([ishigami(X), 2 * X[:, 0]], axis=1),
            lambda X: np.stack([ishigami_gradient(X), np.tile([2.0, 0, 0], (len(X), 1))], axis=1),
            [-np.pi] * 3,
            [np.pi] * 3,
        )
        found = sensitivity(model, CUBE, second=True, shapley=True, random_state=0)
        assert_allclose(found.first[:, 0], [V1 / V, V2 / V, 0], atol=CLOSE)
        assert_allclose(found.shapley[:, 1], [1, 0, 0], atol=CLOSE)
        other = 4 * np.pi**2 / 3
        wanted = (V * np.array([V1 / V, V2 / V, 0]) + other * np.array([1, 0, 0])) / (V + other)
        assert_allclose(found.generalized_first, wanted, atol=CLOSE)
        table = found.pair_table()
        assert list(table["input"]) == ["x0", "x0", "x0", "x0", "x1", "x1"]
        assert list(table["output"]) == [0, 1] * 3
        assert_allclose(table["interaction"], np.ravel(found.interaction))
        assert "x0, x2" in str(found.report())


class TestErrors:
    def test_the_standard_error_of_the_points_is_honest(self):
        """Errors of 40 answers over their standard errors: those of eight sets have a t distribution."""
        found = [sensitivity(MODEL, CUBE, n_points=256, n_draws=1, random_state=seed) for seed in range(40)]
        ratios = [(float(each.first[0]) - V1 / V) / each.first.error[0] for each in found]
        assert 0.4 < np.sqrt(np.mean(np.square(ratios))) < 2.5

    def test_intervals_hold_the_truth_of_a_fit(self):
        X = np.random.default_rng(0).uniform(-np.pi, np.pi, (60, 3))
        model = KernelFeatureRegressor().fit(X, ishigami(X), gradients=ishigami_gradient(X))
        found = sensitivity(model, CUBE, n_points=1024, random_state=0)
        truth = np.array([[V1, V2, 0], [V1 + V13, V2, V13]]) / V
        for part, wanted in zip((found.first, found.total), truth, strict=True):
            low, high = part.interval.T
            room = 4 * part.error
            assert np.all((low - room < wanted) & (wanted < high + room))
            assert np.all((low <= part.value) & (part.value <= high))

    @pytest.mark.parametrize("scale", [1e200, 1e-200])
    def test_values_whose_squares_are_no_floats(self, scale):
        model = Exact(lambda X: scale * ishigami(X), lambda X: scale * ishigami_gradient(X), [-np.pi] * 3, [np.pi] * 3)
        with np.errstate(over="ignore"):
            found = sensitivity(model, CUBE, n_points=1024, random_state=0)
        wanted = sensitivity(MODEL, CUBE, n_points=1024, random_state=0)
        assert_allclose(found.first, wanted.first)
        assert_allclose(found.generalized_total, wanted.generalized_total)
        assert_allclose(found.bound, wanted.bound)

    def test_constant_functions_have_no_sensitivities(self):
        model = Exact(lambda X: np.ones(len(X)), np.zeros_like, [0.0, 0.0], [1.0, 1.0])
        found = sensitivity(model, n_points=256, random_state=0)
        assert_allclose(found.first, 0)
        assert np.all(np.isnan(found.bound))

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"inputs": [uniform()]}, "must be 3 distributions"),
            ({"inputs": {"x0": uniform(), "x1": uniform(), "speed": uniform()}}, r"unknown \['speed'\]"),
            ({"inputs": [uniform()] * 2 + ["high"]}, "continuous distributions"),
            ({"inputs": [uniform()] * 2 + [np.nan]}, "continuous distributions"),
            ({"inputs": [1, 2, 3]}, "at least one input free"),
            ({"inputs": np.zeros((100, 3))}, "must be distributions"),
            ({"correlation": np.eye(2)}, "symmetric matrix of shape"),
            ({"correlation": np.ones((3, 3))}, "positive definite"),
            ({"n_points": 1000}, "power of two"),
            ({"inputs": [uniform(), 1.0, 1.0], "second": True}, "at least two inputs"),
            ({"n_directions": 4}, "between 1 and 3"),
        ],
    )
    def test_what_cannot_be_asked(self, options, match):
        with pytest.raises(ValueError, match=match):
            sensitivity(MODEL, **options)

    def test_too_many_inputs_for_shapley(self):
        with pytest.raises(ValueError, match="at most 8 inputs, got 9"):
            sensitivity(linear(np.ones(9)), shapley=True)

    def test_pairs_that_were_not_asked_for(self):
        with pytest.raises(ValueError, match="second=True"):
            sensitivity(linear([1.0, 1.0]), n_points=64).pair_table()

    def test_many_inputs(self):
        found = sensitivity(linear(np.ones(100)), n_points=64, n_draws=3, random_state=0)
        assert_allclose(found.bound, 1 / 100, rtol=0.5)
        assert found.total.interval.shape == (100, 2)

    def test_other_models(self):
        with pytest.raises(TypeError, match="must be a regressor of nurf"):
            sensitivity(object())

    def test_warns_beyond_the_data(self):
        with pytest.warns(UserWarning, match=r"beyond the data, most of them in x1"):
            sensitivity(linear([1, 1]), [norm(0, 1), norm(0, 9)], n_points=64)


def test_tables_reports_and_pictures():
    from matplotlib.figure import Figure

    found = sensitivity(MODEL, CUBE, shapley=True, n_points=64, random_state=0)
    table = found.table()
    assert list(table["input"]) == ["x0", "x1", "x2"]
    assert_allclose(table["total"], found.total)
    assert_allclose(table["first_high"], found.first.interval[:, 1])
    assert str(found.report()).splitlines()[1].split()[0] == "x0"
    ax = found.plot(Figure().subplots())
    assert len(ax.patches) == 6
