"""Linear functionals as data: closed forms, finite differences, dense textbook kriging, exact solutions."""

from functools import partial as partial_function

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import nquad
from scipy.spatial.distance import cdist

from cases import RADIAL_KERNELS
from dense import functionals as dense_functionals
from dense import make_features
from nurf import (
    DeepFeatureRegressor,
    Jet,
    KernelFeatureRegressor,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
    load,
)
from nurf._scaling import Scaling
from nurf.data import canonical
from nurf.functionals import RowSet, along, laplacian, partial, value
from nurf.networks import ShallowNetwork
from nurf.solvers import VALUES_ONLY
from nurf.solvers._rows import functional_design, sample_rows
from nurf.solvers.process import CRITERIA, Process, ProcessRows
from nurf.solvers.ridge import LeastSquares

D = 3
POINTS = np.random.default_rng(0).uniform(-1, 1, (5, D))
SLOPES = np.random.default_rng(1).normal(size=(5, D))
FACTORS = np.arange(1.0, 6.0)


def speed(X):
    return 1 + X[:, 0] ** 2


# Operators, the points at which they are evaluated, and what they are at each of these, by the value, the gradient and
# the Hessian of a function at any point.
OPERATORS = {
    "value": (value() * 2, POINTS, lambda f, x, i: 2 * f(x)[0]),
    "partial": (partial("x1") - 3 * partial(2), POINTS, lambda f, x, i: f(x)[1][1] - 3 * f(x)[1][2]),
    "mixed": (partial(0, 2) / 2, POINTS, lambda f, x, i: f(x)[2][0, 2] / 2),
    "laplacian": (laplacian() + value(), POINTS, lambda f, x, i: np.trace(f(x)[2]) + f(x)[0]),
    "some inputs": (laplacian(["x0", 2]), POINTS, lambda f, x, i: f(x)[2][0, 0] + f(x)[2][2, 2]),
    "along": (along(SLOPES), POINTS, lambda f, x, i: SLOPES[i] @ f(x)[1]),
    "along twice": (along(SLOPES, [1, 0, 0]), POINTS, lambda f, x, i: SLOPES[i] @ f(x)[2][:, 0]),
    "along function": (along(lambda X: X), POINTS, lambda f, x, i: x @ f(x)[1]),
    "coefficients": (
        FACTORS * partial(0) + speed * laplacian(),
        POINTS,
        lambda f, x, i: FACTORS[i] * f(x)[1][0] + (1 + x[0] ** 2) * np.trace(f(x)[2]),
    ),
    "difference": (value() - value().at(lambda X: X + 0.5), POINTS, lambda f, x, i: f(x)[0] - f(x + 0.5)[0]),
    "fixed points": (
        value().at(POINTS) - partial(0).at([0, 0, 0]),
        None,
        lambda f, x, i: f(POINTS[i])[0] - f(0 * x)[1][0],
    ),
}
operators = pytest.mark.parametrize("name", OPERATORS)


def rows_of(operator, at, targets=0.0, d=D, outputs=()):
    return RowSet.of([operator.equals(targets, at=at)]).jet(d, outputs)


def column_of(features, j, x):
    """Value, gradient and Hessian of one feature at a point."""
    return [part[..., j] for part in dense_functionals(features, x)]


@operators
def test_rows_of_neurons_are_closed_forms(name):
    operator, at, expected = OPERATORS[name]
    for degree in (-1, 0, 1, 2):
        features = make_features(7, D, degree)
        design = functional_design(features, rows_of(operator, at).functionals)
        parts = [partial_function(column_of, features, j) for j in range(design.shape[1])]
        wanted = [[expected(f, x, i) for f in parts] for i, x in enumerate(POINTS)]
        assert_allclose(design, wanted, rtol=1e-10, atol=1e-12)


@operators
def test_operators_of_a_network_are_differences_of_its_values(name):
    operator, at, expected = OPERATORS[name]
    features = make_features(5, D, 1)
    network = ShallowNetwork(features, np.random.default_rng(2).normal(size=(features.n_columns, 2)))
    step = 1e-3

    def f(x):
        axes = step * np.eye(D)
        at_point = lambda z: network.value(z[None])[0, 1]  # noqa: E731
        gradient = np.array([(at_point(x + a) - at_point(x - a)) / (2 * step) for a in axes])
        hessian = [
            [at_point(x + a + b) - at_point(x + a - b) - at_point(x - a + b) + at_point(x - a - b) for b in axes]
            for a in axes
        ]
        return at_point(x), gradient, np.array(hessian) / (4 * step**2)

    wanted = [expected(f, x, i) for i, x in enumerate(POINTS)]
    assert_allclose(operator.of(network, at)[:, 1], wanted, rtol=1e-4, atol=1e-4)


def test_means_and_integrals_are_those_of_adaptive_quadrature():
    features = make_features(4, 2, 1)
    network = ShallowNetwork(features, np.arange(1.0, features.n_columns + 1))
    lower, upper = np.array([[-0.5, 0.0], [0.2, 0.1]]), np.array([0.5, 0.9])
    means, fluxes = value().mean(lower, upper).of(network), partial(0).integral([0.3, 0.0], [0.3, 1.0]).of(network)
    for i in range(2):
        total = nquad(lambda x, y: network.value(np.array([[x, y]]))[0], list(zip(lower[i], upper, strict=True)))[0]
        assert means[i] == pytest.approx(total / np.prod(upper - lower[i]), rel=1e-9)
    flux = nquad(lambda y: network.gradient(np.array([[0.3, y]]))[0, 0], [(0, 1)])[0]
    assert fluxes == pytest.approx([flux], rel=1e-9)
    weighted = (speed * value()).integral([0, 0], [1, 2])
    total = nquad(lambda x, y: (1 + x**2) * network.value(np.array([[x, y]]))[0], [(0, 1), (0, 2)])[0]
    assert weighted.of(network) == pytest.approx([total], rel=1e-6)


def test_means_over_many_sides_have_the_error_of_a_sobol_sequence():
    features = make_features(30, 6, 0)
    network = ShallowNetwork(features, np.ones(31))
    fine = network.value(np.random.default_rng(0).uniform(0, 1, (200_000, 6)))
    # 512 independent points have a standard error of std / 22, the sequence about std / 100
    assert abs(value().mean(np.zeros(6), np.ones(6)).of(network)[0] - fine.mean()) < fine.std() / 22


def test_operators_compare_by_what_they_are():
    assert laplacian() + 0.5 * partial("x1") == laplacian() + partial("x1") / 2
    assert FACTORS * value() == value() * FACTORS.tolist()
    assert len({partial(0), partial(0), partial("x0"), along([1, 0])}) == 3
    assert value() != value().at([0.0]) != value().mean([0.0], [1.0])
    assert -1 * -value() == value()


KERNELS = pytest.mark.parametrize("kernel", RADIAL_KERNELS, ids=repr)
METRIC = np.array([[0.9, 0.1], [-0.2, 0.7]])
SITES = np.random.default_rng(3).uniform(-1, 1, (6, 2))
MIXED = laplacian() + 0.7 * partial(0) + (lambda X: X[:, 1]) * value()


def mixed_jet(outputs=()):
    """Five values, one gradient, six rows of an equation, and a mean."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (5, 2))
    gradients = np.full((5, *outputs, 2), np.nan)
    gradients[0] = 1.0
    jet = Jet(X, rng.normal(size=(5, *outputs)), gradients)
    items = [
        MIXED.equals(rng.normal(size=(6, *outputs)), at=SITES, weight=2.0),
        value().mean([-1, -1], [1, 0.5], n_nodes=3).equals(0.3),
    ]
    return jet + RowSet.of(items).jet(2, outputs)


STEP = 0.02
FIRST, SECOND = np.array([1, -8, 0, 8, -1]) / (12 * STEP), np.array([-1, 16, -30, 16, -1]) / (12 * STEP**2)
OFFSETS = STEP * np.stack(np.meshgrid(np.arange(-2, 3), np.arange(-2, 3), indexing="ij"), axis=-1).reshape(25, 2)
MIDDLE = np.array([0, 0, 1, 0, 0])
VALUE, GRADIENT = np.outer(MIDDLE, MIDDLE), np.array([np.outer(FIRST, MIDDLE), np.outer(MIDDLE, FIRST)])
CROSSED = np.outer(FIRST, FIRST)
HESSIAN = np.array([[np.outer(SECOND, MIDDLE), CROSSED], [CROSSED, np.outer(MIDDLE, SECOND)]])


def difference_rows(jet):
    """Points, and all rows of ``mixed_jet`` as weights of the values there, by differences of fourth order."""
    v, g, h = VALUE, GRADIENT, HESSIAN
    rows = [[(x, v)] for x in jet.X[:5]] + [[(jet.X[0], g[i])] for i in range(2)]
    rows += [[(x, h[0, 0] + h[1, 1] + 0.7 * g[0] + x[1] * v)] for x in SITES]
    nodes, weights = np.polynomial.legendre.leggauss(3)
    grid = [(a, b, p * q / 4) for a, p in zip(nodes, weights, strict=True) for b, q in zip(nodes, weights, strict=True)]
    rows.append([(np.array([a, -0.25 + 0.75 * b]), w * v) for a, b, w in grid])
    points = np.concatenate([x + OFFSETS for row in rows for x, _ in row])
    matrix, place = np.zeros((len(rows), len(points))), 0
    for i, row in enumerate(rows):
        for _, of_values in row:
            matrix[i, place : place + 25] = of_values.ravel()
            place += 25
    return points, matrix


def kernel_matrix(kernel, a, b):
    return kernel.profile(cdist(a @ METRIC.T, b @ METRIC.T, "sqeuclidean") / 2)


@KERNELS
def test_covariances_are_differences_of_the_kernel(kernel):
    jet = mixed_jet()
    matrix = Process(ProcessRows.of(jet), kernel, METRIC, np.zeros(3))._covariances()
    points, rows = difference_rows(jet)
    found = rows @ kernel_matrix(kernel, points, points) @ rows.T
    smooth = 0.06 if "Matern" in repr(kernel) else 1e-5  # its fifth derivative jumps, where points are equal
    assert_allclose(matrix, found, atol=smooth * np.abs(matrix).max())


@KERNELS
def test_mean_and_variance_are_those_of_dense_kriging(kernel):
    jet, noise = mixed_jet((2,)), np.array([0.01, 0.02, 0.05])
    rows = ProcessRows.of(jet)
    process = Process(rows, kernel, METRIC, noise)
    K = Process(rows, kernel, METRIC, np.zeros(3))._covariances()
    K += np.diag([*[0.01] * 5, *[0.02] * 2, *[0.01 / 2] * 6, 0.01])  # sums have the noise of values
    ones = np.array([*[1.0] * 5, 0, 0, *SITES[:, 1], 1.0])  # the functionals of the constant 1
    x, (points, weights) = np.array([0.3, -0.2]), difference_rows(jet)
    c = weights @ kernel_matrix(kernel, points, x[None])[:, 0]
    system = np.block([[K, ones[:, None]], [ones, 0.0]])
    solved = np.linalg.solve(system, np.append(c, 1.0))
    accuracy = 1e-3 if "Matern" in repr(kernel) else 2e-5  # of the differences
    assert_allclose(process.network((2,)).value(x[None])[0], solved[:-1] @ rows.targets, rtol=accuracy, atol=accuracy)
    variance = kernel.profile(np.zeros(())) - solved @ np.append(c, 1.0)
    assert_allclose(process.posterior_variances(x[None], 0)[0], variance, rtol=10 * accuracy, atol=accuracy)


@pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)
def test_slopes_of_criteria_are_their_differences(criterion):
    rows, kernel, noise = ProcessRows.of(mixed_jet()), RADIAL_KERNELS[0], np.full(3, 0.1)
    process = Process(rows, kernel, METRIC, noise)
    by_metric, by_noise = process.pullback(criterion.slopes(process))
    step = 1e-5
    for i in range(2):
        for j in range(2):
            change = np.zeros((2, 2))
            change[i, j] = step
            ends = [criterion.value(Process(rows, kernel, METRIC + sign * change, noise)) for sign in (1, -1)]
            assert by_metric[i, j] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5)
    for i in range(3):
        change = np.exp(step * np.eye(3)[i])
        ends = [criterion.value(Process(rows, kernel, METRIC, noise * change**sign)) for sign in (1, -1)]
        assert by_noise[i] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-7)


def test_rows_that_leave_a_process_are_refits_without_them():
    jet = mixed_jet()
    rows = ProcessRows.of(jet)
    errors, _ = Process(rows, RADIAL_KERNELS[0], METRIC, np.full(3, 0.1)).left_out
    for sample in (6, 9, len(jet) - 1):  # rows of the equation, and the mean
        rest = Process(ProcessRows.of(jet[np.arange(len(jet)) != sample]), RADIAL_KERNELS[0], METRIC, np.full(3, 0.1))
        network, left = rest.network(()), jet[[sample]].functionals
        predicted = left.applied(network.value, network.gradient, network.hessian)[0]
        assert errors[rows.samples == sample][0] == pytest.approx(left.targets[0] - predicted, rel=1e-6)


@pytest.mark.parametrize("n_neurons", [6, 40], ids=["primal", "dual"])
def test_ridge_forms_solve_the_dense_problem(n_neurons):
    jet = mixed_jet((2,))
    features = make_features(n_neurons, 2, 1)
    design, targets = sample_rows(features, jet, VALUES_ONLY)
    Z, y = design[:, 0], targets[:, 0]
    assert np.count_nonzero(Z.any(axis=1)) == len(jet) == 12
    roots = np.sqrt(jet.weights(0))
    assert_allclose(Z[5:], roots[5:, None] * functional_design(features, jet.functionals[np.arange(5, 12)]))
    problem, alpha = LeastSquares(features, jet), 1e-3
    penalty = np.sqrt(alpha * n_neurons * jet.weights(0).sum()) * np.eye(n_neurons, features.n_columns)
    wanted = np.linalg.lstsq(np.vstack([Z, penalty]), np.vstack([y, np.zeros((n_neurons, 2))]), rcond=None)[0]
    for ridge in (problem.ridge(), problem.ridge(precise=True)):
        assert_allclose(ridge.solve(np.array([alpha]))[0], wanted, rtol=1e-6, atol=1e-8)
        left = ridge.left_out(np.array([alpha]), np.arange(12), np.ones(12))[:, 0, 0]
        for sample in (0, 7, 11):
            rest = np.arange(12) != sample
            without = np.linalg.lstsq(
                np.vstack([Z[rest], penalty]), np.vstack([y[rest], np.zeros((n_neurons, 2))]), rcond=None
            )[0]
            assert_allclose(left[sample], y[sample] - Z[sample] @ without, rtol=1e-5, atol=1e-8)


def test_units_change_nothing_but_units():
    X, operator = np.random.default_rng(5).uniform(0, 1, (8, 2)), MIXED - value().at([0.5, 0.5])
    scale, shift = np.array([1e3, 1e-4]), np.array([5.0, -1.0])

    def scaled_jet(stretch, moved, factor, added):
        network = ShallowNetwork(make_features(4, 2, 1), np.arange(1.0, 8))
        at = lambda Z: (Z - moved) / stretch  # noqa: E731
        own = laplacian() * 0 + partial(0, 0) * stretch[0] ** 2 + partial(1, 1) * stretch[1] ** 2
        own = (
            own + 0.7 * stretch[0] * partial(0) + (lambda Z: at(Z)[:, 1]) * value() - value().at(0.5 * stretch + moved)
        )
        targets = factor * operator.of(network, SITES) + added * (SITES[:, 1] - 1)
        jet = Jet(X * stretch + moved, factor * network.value(X) + added)
        jet = jet + RowSet.of([own.equals(targets, at=SITES * stretch + moved)]).jet(2, ())
        return Scaling.fit(jet)(jet)

    plain, other = scaled_jet(np.ones(2), np.zeros(2), 1.0, 0.0), scaled_jet(scale, shift, 1e-6, 3.0)
    features = make_features(9, 2, 1)
    assert_allclose(other.targets, plain.targets, rtol=1e-6, atol=1e-6)
    assert_allclose(*(sample_rows(features, jet, VALUES_ONLY)[0] for jet in (plain, other)), rtol=1e-6, atol=1e-9)


def test_rows_keep_their_functionals_in_any_order():
    jet = mixed_jet((2,))
    order = np.random.default_rng(0).permutation(len(jet))
    features = make_features(3, 2)
    plain, shuffled = (functional_design(features, each.functionals) for each in (jet, jet[order]))
    assert_allclose(shuffled, plain[order])
    doubled = jet[:6] + jet[6:]
    assert_allclose(functional_design(features, doubled.functionals), plain)
    first, second = canonical(jet), canonical(jet[order])
    assert_allclose(first.targets, second.targets)
    assert_allclose(*(functional_design(features, each.functionals) for each in (first, second)))


def boundary(n):
    """Points along the sides of the unit square."""
    t, zero, one = np.arange(n) / n, np.zeros(n), np.ones(n)
    return np.concatenate([np.c_[t, zero], np.c_[one, t], np.c_[1 - t, one], np.c_[zero, 1 - t]])


def solution(X):
    return np.sin(3 * X[:, 0]) * np.exp(X[:, 1])


def source(X):
    """``-Laplace u`` of the solution."""
    return 8 * solution(X)


FITTED = {
    "sampled": lambda: RandomFeatureRegressor(120, density="uniform", width=1.6, random_state=0),
    "wide": lambda: KernelFeatureRegressor("gaussian", metric="scales"),
}
fitted = pytest.mark.parametrize("make", FITTED.values(), ids=FITTED)
INSIDE = np.random.default_rng(6).uniform(0, 1, (40, 2))
NEW = np.random.default_rng(7).uniform(0, 1, (200, 2))


def error(model, truth=solution):
    return np.sqrt(np.mean((model.predict(NEW) - truth(NEW)) ** 2)) / np.std(truth(NEW))


@fitted
def test_an_equation_is_solved(make):
    X = boundary(6)
    rows = [(-laplacian()).equals(source, at=INSIDE)]
    model = make().fit(X, solution(X), functionals=rows)
    # values at the boundary alone leave an error of 0.1 to 0.5
    assert error(model) < 1e-3
    assert_allclose((-laplacian()).of(model, NEW), source(NEW), atol=0.02 * np.abs(source(NEW)).max())


@fitted
def test_two_outputs_are_solved_as_one_by_one(make):
    X, functions = boundary(6), [solution, lambda Z: Z[:, 0] - 2 * Z[:, 1] ** 2]
    sources = [source, lambda Z: np.full(len(Z), 4.0)]
    values, right = (np.stack([f(Z) for f in each], axis=1) for each, Z in ((functions, X), (sources, INSIDE)))
    model = make().fit(X, values, functionals=[(-laplacian()).equals(right, at=INSIDE)])
    for i, f in enumerate(functions):
        assert np.sqrt(np.mean((model.predict(NEW)[:, i] - f(NEW)) ** 2)) < 1e-3 * f(NEW).std()


@fitted
def test_values_may_be_unknown_and_inputs_have_names(make):
    X = pd.DataFrame(boundary(6), columns=["length", "time"])
    y, points = solution(X.to_numpy()), pd.DataFrame(INSIDE[:, ::-1], columns=["time", "length"])
    right = np.append(source(INSIDE), np.nan)
    points = pd.concat([points, points[:1]], ignore_index=True)
    own = partial("length", "length") + partial("time", "time")
    with_nan = np.where(np.arange(len(y)) % 2, np.nan, y)
    items = [(-own).equals(right, at=points), value().equals(y[1::2], at=X[1::2])]
    model = make().fit(X, with_nan, functionals=items)
    plain = make().fit(X.to_numpy(), y, functionals=[(-laplacian()).equals(source, at=INSIDE)])
    assert_allclose(model.predict(pd.DataFrame(NEW, columns=X.columns)), plain.predict(NEW), rtol=1e-3, atol=1e-4)


@fitted
def test_a_mean_over_a_region_is_kept(make):
    X, truth = np.random.default_rng(8).uniform(0, 1, (12, 1)) * 0.4, lambda Z: np.cos(4 * Z[:, 0])
    items = [value().mean([0.4], [1.0]).equals((np.sin(4) - np.sin(1.6)) / 4 / 0.6)]
    model = make().fit(X, truth(X), functionals=items)
    assert value().mean([0.4], [1.0]).of(model) == pytest.approx([items[0].values], abs=1e-3)


@fitted
def test_an_initial_value_problem_needs_one_value(make):
    points = np.linspace(0, 1, 25)[:, None]
    rows = [(partial(0) + (lambda t: 2 * t[:, 0]) * value()).equals(0.0, at=points)]
    model = make().fit([[0.0]], [3.0], functionals=rows)
    t = np.linspace(0, 1, 50)[:, None]
    assert_allclose(model.predict(t), 3 * np.exp(-(t[:, 0] ** 2)), atol=3e-3)


@fitted
def test_one_value_and_one_row_are_fitted_without_an_estimate(make):
    model = make().fit([[0.0]], [1.0], functionals=[partial(0).equals(2.0, at=[[0.5]])])
    assert np.isnan(model.estimated_error_)
    assert np.all(np.isfinite(model.predict([[0.0], [0.5]])))


def test_a_solution_with_zero_boundary_values_has_the_size_of_its_source():
    X = boundary(6)
    rows = [(-laplacian()).equals(lambda Z: 1e8 * 2 * np.pi**2 * np.prod(np.sin(np.pi * Z), axis=1), at=INSIDE)]
    model = FITTED["wide"]().fit(X, np.zeros(len(X)), functionals=rows)
    assert error(model, lambda Z: 1e8 * np.prod(np.sin(np.pi * Z), axis=1)) < 0.01


@fitted
def test_saved_models_predict_the_same(make, tmp_path):
    X = boundary(6)
    rows = [(-laplacian()).equals(source, at=INSIDE), value().mean([0, 0], [1, 1], 4).equals(0.9, weight=0.1)]
    model = make().fit(X, solution(X), functionals=rows)
    model.save(tmp_path / "model.nurf")
    again = load(tmp_path / "model.nurf")
    for method in ("predict", "predict_gradient", "predict_interval"):
        assert_allclose(getattr(again, method)(NEW), getattr(model, method)(NEW), rtol=0)
    values, deviations = again.predict(NEW, return_std=True)
    assert np.all((deviations > 0) & np.isfinite(deviations))
    draws = again.draws(50, random_state=0)
    assert_allclose(draws.value(NEW).mean(axis=0), values, atol=6 * deviations.max() / np.sqrt(50))


@fitted
def test_an_update_takes_more_rows(make):
    X = boundary(6)
    rows = [(-laplacian()).equals(source, at=part) for part in (INSIDE[:12], INSIDE)]
    model = make().fit(X, solution(X), functionals=rows[:1])
    before = error(model)
    assert error(model.update(X, solution(X), functionals=rows[1:])) < before
    with pytest.raises(ValueError, match="the last fit had, functionals, got no derivatives"):
        model.update(X, solution(X))


def test_surrogate_races_the_engines_that_can():
    X = boundary(6)
    rows = [(-laplacian()).equals(source, at=INSIDE)]
    model = Surrogate(random_state=0, time_budget=10).fit(X, solution(X), functionals=rows)
    assert error(model) < 1e-3
    assert {row.engine for row in model.leaderboard_} == {"wide", "sampled"}


X4, Y4, AT = np.arange(8.0).reshape(4, 2), np.arange(4.0), np.ones((3, 2))
REFUSALS = {
    "no list": (lambda: 3, "list of rows"),
    "no rows": (lambda: [laplacian()], "got list with Operator"),
    "no points": (lambda: [laplacian().equals(0)], "`at` must be the points"),
    "wrong dimension": (lambda: [laplacian().equals(0, at=np.ones((3, 3)))], "d = 2"),
    "unknown name": (lambda: [partial("x7").equals(0, at=AT)], "got 'x7'"),
    "unknown number": (lambda: [partial(2).equals(0, at=AT)], "from 0 to 1, got 2"),
    "values": (lambda: [value().equals(np.ones(4), at=AT)], r"shape \(3,\), got \(4,\)"),
    "coefficients": (lambda: [(np.ones(4) * partial(0)).equals(0, at=AT)], "same number of rows, got 3 and 4"),
    "function": (lambda: [((lambda X: np.ones(7)) * partial(0)).equals(0, at=AT)], "`coefficient`"),
    "infinite": (lambda: [value().equals(np.inf, at=AT)], "finite or NaN"),
    "negative weight": (lambda: [value().equals(1, at=AT, weight=-1)], "`weight`"),
    "reversed bounds": (lambda: [value().mean([1, 0], [0, 1]).equals(1)], "must not be above"),
    "bounds of other inputs": (lambda: [value().mean([0], [1]).equals(1)], "2 numbers, one for each input"),
    "three": (lambda: [partial(0, 0, 0).equals(0, at=AT)], "one or two inputs, got 3"),
    "two places": (lambda: [value().at([0, 0]).mean([0, 0], [1, 1]).equals(0)], "once"),
    "array in a box": (lambda: [(np.ones(2) * value()).mean([0, 0], [1, 1]).equals(0)], "got an array"),
    "overflow": (lambda: [(1e308 * laplacian()).equals(0, at=AT * 1e-300)], "overflow|finite"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_wrong_rows_are_refused(name):
    make, message = REFUSALS[name]
    with pytest.raises(ValueError, match=message):
        KernelFeatureRegressor().fit(X4 * (1e-300 if name == "overflow" else 1), Y4, functionals=make())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DeepFeatureRegressor(), "RandomFeatureRegressor, KernelFeatureRegressor or Surrogate"),
        (SparseFeatureRegressor(), "whose weights are trained"),
        (RandomFeatureRegressor(20, activation="relu"), "smoother activation"),
        (RandomFeatureRegressor(20, activation="heaviside"), "smoother activation"),
        (RandomFeatureRegressor(20, loss="huber"), "`loss` must be 'squared'"),
        (RandomFeatureRegressor(20, dtype="float32"), "`dtype` must be 'float64'"),
        (RandomFeatureRegressor(20, target="asinh"), "`target` and `inputs` must be None"),
        (Surrogate(engines="trained"), "whose weights are trained"),
    ],
    ids=str,
)
def test_models_that_cannot_say_so(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X4, Y4, functionals=[laplacian().equals(0, at=AT)])
