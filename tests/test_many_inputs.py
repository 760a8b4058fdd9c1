"""What is computed in another way if there are many inputs, against dense algebra and statistics."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense
from nurf import Jet, RandomFeatureRegressor
from nurf._tensors import factors, variables
from nurf.densities import Nonlocal, _nonlocal
from nurf.networks import Tail
from nurf.solvers import Loss
from nurf.solvers.ridge import LeastSquares, PreciseRidge
from nurf.solvers.ridge import _hat as hat
from pairwise import pairwise

ALPHAS = np.array([1e-1, 1e-3, 1e-6])


def make_jet(n, d, k=1, weighted=False, seed=0):
    """A quadratic function with exact gradients; weights are those of samples and of their derivatives."""
    rng = np.random.default_rng(seed)
    X, a = rng.uniform(-1, 1, (n, d)) / np.sqrt(d), rng.standard_normal((k, d))
    y, gradients = np.sin(X @ a.T) + (X**2) @ a.T, np.cos(X @ a.T)[..., None] * a + 2 * X[:, None, :] * a
    weights = (rng.uniform(0.5, 2, n), rng.uniform(0.5, 2, n)) if weighted else (None, None)
    return Jet(X, y if k > 1 else y[:, 0], gradients if k > 1 else gradients[:, 0], None, *weights)


@pairwise(pytest.mark.parametrize(("R", "m"), [(1, 5), (9, 20), (40, 12), (40, 60)]), share=[0.3, 1.0], t=[0, 1, 40])
def test_hat_blocks_are_those_of_the_dense_formula(R, m, t, share):
    n, k, rng = 5, 2, np.random.default_rng(0)
    rows, tail = rng.standard_normal((n, R, m)), rng.standard_normal((n, R, t))
    rows, tail = (
        part / (2 * np.linalg.norm(part, ord=2, axis=(1, 2), keepdims=True) if part.size else 1)
        for part in (rows, tail)
    )
    root = rng.standard_normal((t, t)) / (2 * np.sqrt(max(t, 1)))
    inverse, shifts = root @ root.T, np.array([0.1, 0.5, 8.0])
    sizes = rng.uniform(1, 2, m)  # not below the squares of the rows, which are among those of the normal equations
    residuals, shares = rng.standard_normal((n, R, 3, k)), np.full(n, share)
    found = hat.HatBlocks(rows, sizes, shifts, tail, inverse).residuals_without(residuals, shares)
    for sample in range(n):
        for number in range(3):
            factors = np.diag(1 / (sizes + shifts[number]))
            H = rows[sample] @ factors @ rows[sample].T + tail[sample] @ inverse @ tail[sample].T
            expected = np.linalg.inv(np.eye(R) - share * H) @ residuals[sample, :, number]
            assert_allclose(found[sample, :, number], expected, rtol=1e-9, atol=1e-9)


@pairwise(weighted=[False, True], k=[1, 2], degree=[-1, 0, 1], n_neurons=[15, 70])
def test_samples_with_many_rows_leave_as_in_a_refit(n_neurons, degree, k, weighted):
    jet, loss = make_jet(6, 40, k, weighted), Loss(gradients=0.1)
    features = dense.make_features(n_neurons, 40, degree)
    samples = [dense.sample(features, jet, j, loss) for j in range(len(jet))]
    total = dense.total_weight(jet)
    for ridge in (LeastSquares(features, jet).ridge(loss), PreciseRidge(features, jet, loss)):
        left = ridge.left_out(ALPHAS, np.arange(len(jet)), np.ones(len(jet)))
        for j in (0, 3):
            others = samples[:j] + samples[j + 1 :]
            for number, alpha in enumerate(ALPHAS):
                coefficients = dense.ridge(others, n_neurons, alpha, total)
                rows, targets = samples[j]
                assert_allclose(left[j, :, number], targets - rows @ coefficients, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("order", [1, 2])
def test_equations_with_derivatives_of_the_tail(order, degree, weighted):
    jet = make_jet(9, 4, 2, weighted)
    hessians = np.random.default_rng(1).standard_normal((9, 2, 4, 4))
    jet = Jet(
        jet.X, jet.y, jet.gradients, hessians + np.swapaxes(hessians, 2, 3), jet.sample_weight, jet.derivative_weight
    )
    loss = Loss(gradients=0.5) if order == 1 else Loss(hessians=0.5)
    features = dense.make_features(12, 4, degree)
    Z, y = dense.stacked([dense.sample(features, jet, j, loss) for j in range(len(jet))])
    equations = LeastSquares(features, jet).equations(loss)
    assert_allclose(equations.gram, Z.T @ Z, rtol=1e-9, atol=1e-9)
    assert_allclose(equations.moments, Z.T @ y, rtol=1e-9, atol=1e-9)
    smaller = LeastSquares(features[:5], jet)
    smaller.equations(loss)
    grown = LeastSquares(features, jet, smaller).equations(loss)
    assert_allclose(grown.gram, Z.T @ Z, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("degree", [-1, 0, 1, 2, 3])
def test_components_of_the_tail_are_its_partial_derivatives(degree, order):
    tail, X = Tail(degree, 3), np.random.default_rng(0).standard_normal((5, 3))
    found = tail.components(X, order)
    expected = [
        tail.partials(X, by) * factor for by, factor in zip(variables(3, order), factors(3, order), strict=True)
    ]
    assert_allclose(found, np.stack(expected, axis=1), rtol=1e-13)


@pytest.mark.parametrize("outputs", [1, 2])
def test_combined_derivatives_have_the_covariance_of_the_density(outputs, monkeypatch):
    jet, n = make_jet(6, 3, outputs, weighted=True), 40_000
    prepared = Nonlocal(bandwidth=0.3).prepare(jet)
    index = np.full(n, 2)
    expected = prepared.axes.T @ prepared.covariances(index[:1])[0] @ prepared.axes
    rows = jet.gradients.reshape(6, -1, 3)
    weights = np.exp(-np.linalg.norm(jet.X - jet.X[2], axis=1) / 0.3) * jet.derivative_weight
    C = np.einsum("k,kmi,kmj->ij", weights, rows, rows)
    # weights are in single precision
    assert_allclose(expected, C * np.trace(expected) / np.trace(C), rtol=0, atol=1e-6 * np.trace(expected))
    monkeypatch.setattr(_nonlocal, "MAX_FACTORED", 0)
    drawn = prepared.draw_directions(index, np.random.default_rng(0)) @ prepared.axes
    found = drawn.T @ drawn / n
    # An entry of a covariance from n draws has the variance (C_ii C_jj + C_ij^2) / n; 9 entries at 5.5 deviations:
    # a false alarm for fewer than one seed in a million.
    deviations = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / n)
    assert np.all(np.abs(found - expected) < 5.5 * deviations)
    assert np.all(np.abs(drawn.mean(axis=0)) < 5.5 * np.sqrt(np.diag(expected) / n))


def test_neurons_beyond_the_last_block_are_drawn_too(monkeypatch):
    jet = make_jet(30, 60)
    prepared = Nonlocal(bandwidth=0.3).prepare(jet)
    monkeypatch.setattr(_nonlocal, "MAX_FACTORED", 10)
    monkeypatch.setattr(_nonlocal, "row_blocks", lambda n, m: [slice(0, 7), slice(7, n)])
    planes = prepared.sample(20, np.random.default_rng(0))
    across = planes.normals - planes.normals @ np.linalg.pinv(jet.gradients) @ jet.gradients
    assert np.abs(across).max() < 1e-9  # all normals are in the span of the gradients


def test_a_fit_in_many_dimensions_takes_little_memory(own_memory):
    jet = make_jet(160, 500)
    model = RandomFeatureRegressor(
        40, random_state=0, width=0.4, density="nonlocal", gradient_weight=0.1, tail="affine"
    )
    tracemalloc.start()
    model.fit(jet.X, jet.y, gradients=jet.gradients)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # the monomials' derivatives at all points (n, d, d + 1) would take 320 MB, those of one point 2 MB
    assert peak < 200e6
    assert len(model.hyperplanes_) == 40
