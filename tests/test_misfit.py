"""The loss of trained networks against rows written out one by one: residuals, Jacobians, moments."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import ortho_group

from nurf.activations import Erf, ReLU, ReLUPower, Sigmoid, Softplus
from nurf.jets import Jet
from nurf.networks import ShallowNetwork
from nurf.solvers import VALUES_ONLY, Loss
from nurf.solvers.ridge import NormalEquations
from nurf.solvers.sparse._charts import Bounds, Chart
from nurf.solvers.sparse._gauss_newton import expand_gram, gauss_newton_gram
from nurf.solvers.sparse._misfit import Misfit
from nurf.solvers.sparse._objective import Objective
from nurf.solvers.sparse._penalties import LogPenalty, Squared
from pairwise import pairwise
from row_by_row import (
    N_SAMPLES,
    D,
    directional,
    few_patterns,
    many_patterns,
    plain,
    random_network,
    residuals,
    unknown_values,
    weighted,
)

BOUNDS = Bounds(1.0, 0.01, 2.0)
JETS = [plain, weighted, many_patterns, few_patterns, unknown_values, directional]
LOSSES = [VALUES_ONLY, Loss(0.3), Loss(0.0, 0.02), Loss(0.3, 0.02)]


def jacobian(point, jet, loss, size, eps=1e-4):
    """Minus the derivatives of the residuals by all weights, by differences of order four."""

    def at(step):
        return residuals(point.moved(step).network, jet, loss)

    steps = eps * np.eye(size)
    return np.transpose([(8 * (at(-e) - at(e)) - (at(-2 * e) - at(2 * e))) / (12 * eps) for e in steps])


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("make", JETS)
def test_the_loss_is_half_the_sum_of_squares(make, loss):
    jet, network = make(), random_network(activation=Softplus(0.4))
    assert_allclose(Misfit(jet, loss).residual(network).loss, np.sum(residuals(network, jet, loss) ** 2) / 2)


@pairwise(
    pytest.mark.parametrize(("activation", "widths"), [(Sigmoid(0.4), True), (Softplus(0.4), False)]),
    loss=LOSSES,
    make=JETS,
)
def test_derivatives_are_those_of_the_dense_jacobian(make, loss, activation, widths):
    jet, network = make(), random_network(activation=activation, N=2, widths=widths)
    point = Objective(Misfit(jet, loss), Squared(), 1e-12, BOUNDS, widths).at(network)
    n_outer = len(network.coefficients)
    J = jacobian(point, jet, loss, 2 * n_outer + 2 * (D + widths))
    gram = gauss_newton_gram(point.objective.misfit, point.chart)
    assert_allclose(expand_gram(gram, network.coef, n_outer), J.T @ J, rtol=1e-6, atol=1e-7)
    gradient, _, _ = point.derivatives()
    assert_allclose(gradient, -J.T @ residuals(network, jet, loss), rtol=1e-6, atol=1e-7)


@pairwise(loss=LOSSES, make=JETS, degree=[-1, 0, 1, 2])
def test_the_gram_matrix_of_the_features_is_that_of_ridge_regression(degree, make, loss):
    jet, features = make(), random_network(degree=degree).features
    equations = NormalEquations.from_data(features, jet, loss)
    gram = gauss_newton_gram(Misfit(jet, loss), Chart(features, BOUNDS))[: features.n_columns, : features.n_columns]
    assert_allclose(gram, equations.gram / equations.total_weight, rtol=1e-10, atol=1e-12)


@pairwise(activation=[Sigmoid(0.4), Erf(0.4), Softplus(0.4)], loss=LOSSES, widths=[False, True])
def test_moments_and_their_derivatives(activation, loss, widths):
    residual = Misfit(many_patterns(), loss).residual(random_network(activation=activation))
    features = random_network(activation=activation, widths=widths, seed=5).features
    chart = Chart(features, BOUNDS, widths)
    directions = np.random.default_rng(2).standard_normal((4, 2))
    moments = residual.moments(features, residual.moment_derivatives(activation))
    ambient = moments.gradients(directions, widths)
    slopes, bends = chart.gradients(ambient), chart.hessians(moments.hessians(directions, widths), ambient)

    def value(step):
        return np.sum(residual.moments(chart.move(step)).values * directions, axis=1)

    assert_allclose(moments.values, residual.moments(features).values)
    q, eps = chart.n_coordinates, 2e-3
    axes = eps * np.eye(q)
    for i, e in enumerate(np.repeat(axes[:, None], 4, axis=1)):
        first = (8 * (value(e) - value(-e)) - (value(2 * e) - value(-2 * e))) / (12 * eps)
        assert_allclose(slopes[:, i], first, rtol=1e-5, atol=1e-6)
        for j, f in enumerate(np.repeat(axes[:, None], 4, axis=1)):
            near, far = (
                value(p + r) - value(p - r) - value(r - p) + value(-p - r) for p, r in ((e, f), (2 * e, 2 * f))
            )
            second = (16 * near - far) / (48 * eps**2)
            assert_allclose(bends[:, i, j], second, rtol=1e-4, atol=1e-4)


def test_moments_are_inner_products_of_residuals_and_neurons():
    jet, loss, network = many_patterns(), Loss(0.3, 0.02), random_network()
    features = random_network(seed=7).features
    moments = Misfit(jet, loss).residual(network).moments(features).values
    r = residuals(network, jet, loss)
    for n in range(4):
        for output in range(2):
            coefficients = np.zeros((5, 2))
            coefficients[n, output] = 1.0
            neuron = residuals(ShallowNetwork(features, coefficients), jet, loss)
            nothing = residuals(ShallowNetwork(features, np.zeros((5, 2))), jet, loss)
            assert_allclose(moments[n, output], r @ (nothing - neuron), rtol=1e-9, atol=1e-12)


def models(jet, loss, network):
    point = Objective(Misfit(jet, loss), LogPenalty(5.0), 0.1, BOUNDS).at(network)
    return point.value, *point.derivatives()


def assert_same(first, second):
    for a, b in zip(first, second, strict=True):
        assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_a_complete_set_of_directions_is_a_gradient():
    jet, network, loss = weighted(), random_network(), Loss(0.3, 0.02)
    directions = ortho_group.rvs(D, size=N_SAMPLES, random_state=0)
    along = Jet.along(jet.X, jet.y, directions, np.einsum("nkd,nrd->nkr", jet.gradients, directions))
    rotated = replace(jet, gradients=along.gradients, frames=along.frames)
    assert_same(models(rotated, loss, network), models(jet, loss, network))


def test_partial_derivatives_are_derivatives_along_axes():
    """Also: an unknown partial derivative takes no other row of its sample with it."""
    jet, network, loss = many_patterns(), random_network(), Loss(0.3)
    known = ~np.isnan(jet.gradients).any(axis=1)
    frames = np.eye(D) * known[:, :, None]
    gradients = np.where(known[:, None, :], jet.gradients, 0.0)
    assert_same(models(replace(jet, gradients=gradients, frames=frames), loss, network), models(jet, loss, network))


def test_the_misfit_to_what_a_network_leaves():
    jet, loss, first, second = directional(), Loss(0.3, 0.02), random_network(), random_network(seed=5)
    both = ShallowNetwork(
        first.features + second.features,
        np.concatenate([first.coef, second.coef, first.tail_coef + second.tail_coef]),
    )
    left = Misfit(jet, loss).minus(first)
    assert_allclose(left.residual(second).loss, Misfit(jet, loss).residual(both).loss)


@pytest.mark.parametrize(("loss", "order"), [(VALUES_ONLY, 1), (Loss(0.1), 2), (Loss(0.1, 0.1), 3), (Loss(0, 0.1), 3)])
def test_rows_of_higher_order_need_smoother_activations(loss, order):
    misfit = Misfit(plain(), loss)
    misfit.require(ReLUPower(order))
    with pytest.raises(ValueError, match=f"derivative {order} was requested: use a smoother"):
        misfit.require(ReLUPower(order - 1))
    residual = misfit.residual(random_network())
    assert [residual.moment_derivatives(ReLUPower(order + k)) for k in range(3)] == [1, 2, 2]


def test_derivatives_that_count_must_be_known():
    with pytest.raises(ValueError, match=r"`gradient_weight` = 0.1 needs known gradients, got none"):
        Misfit(Jet([[0.0]], [1.0]), Loss(0.1))
    with pytest.raises(ValueError, match=r"`hessian_weight` = 0.1 needs known hessians, got none"):
        Misfit(Jet([[0.0]], [1.0], [[1.0]]), Loss(0.1, 0.1))
    assert Misfit(Jet([[0.0]], [1.0])).residual(random_network(d=1, outputs=1, activation=ReLU())).loss > 0
