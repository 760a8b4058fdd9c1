"""Training of deep networks: the loss row by row, its gradient, the optimiser against dense algebra."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh

from nurf.networks import DeepNetwork, SiLU, Tanh
from nurf.solvers import VALUES_ONLY, Loss
from nurf.solvers.trained import Schedule, Soap, TrainingRows, loss_and_gradient
from row_by_row import D, directional, few_patterns, many_patterns, plain, residuals, unknown_values, weighted
from test_deep_network import complex_step, textbook

JETS = [plain, weighted, many_patterns, few_patterns, unknown_values, directional]
LOSSES = [VALUES_ONLY, Loss(0.3)]


def random_layers(d=D, hidden=(5, 4), outputs=2, seed=0):
    rng, sizes = np.random.default_rng(seed), (d, *hidden, outputs)
    return [rng.standard_normal((a + 1, b)) / np.sqrt(a) for a, b in pairwise(sizes)]


def network_of(layers, activation):
    outputs = (layers[-1].shape[1],)
    return DeepNetwork([layer[:-1] for layer in layers], [layer[-1] for layer in layers], activation, outputs)


def derivatives(network, x):
    """Value and gradient at one point, as for ``residuals``: layers written out, and a complex step."""
    return textbook(network, x[None])[0], complex_step(network, x[None])[0].T, None


def all_signs(n):
    """Signs of two outputs whose mean of products is the identity: all that there are, up to a common one."""
    return [np.tile(signs, (n, 1)) for signs in ([1.0, 1.0], [1.0, -1.0])]


@pytest.mark.parametrize("activation", [Tanh(), SiLU()], ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("make", JETS)
class TestLoss:
    def test_the_mean_over_signs_is_the_sum_of_squares(self, make, loss, activation):
        jet, layers = make(), random_layers()
        rows = TrainingRows.of(jet, loss)
        losses = [loss_and_gradient(layers, activation, rows, signs)[0] for signs in all_signs(len(jet))]
        expected = np.sum(residuals(network_of(layers, activation), jet, loss, derivatives) ** 2)
        assert_allclose(np.mean(losses), expected, rtol=1e-11)

    def test_the_gradient_is_that_of_differences(self, make, loss, activation):
        jet, layers = make(), random_layers()
        rows = TrainingRows.of(jet, loss)
        signs = np.sign(np.random.default_rng(5).standard_normal((len(jet), 2)))
        _, gradients = loss_and_gradient(layers, activation, rows, signs)
        h = 1e-5  # the error of central differences is of order h^2 = 1e-10, that of rounding 1e-16 / h = 1e-11
        for number, layer in enumerate(layers):
            for entry in np.ndindex(layer.shape):
                moved = [[part.copy() for part in layers] for _ in range(2)]
                moved[0][number][entry] += h
                moved[1][number][entry] -= h
                up, down = (loss_and_gradient(parts, activation, rows, signs)[0] for parts in moved)
                assert_allclose(gradients[number][entry], (up - down) / (2 * h), rtol=1e-6, atol=1e-7)


def test_batches_of_a_loss_have_its_mean():
    jet, layers = unknown_values(), random_layers()
    rows = TrainingRows.of(jet, Loss(0.3))
    signs = all_signs(1)[0]
    whole = loss_and_gradient(layers, Tanh(), rows, np.tile(signs, (len(jet), 1)))[0]
    single = [loss_and_gradient(layers, Tanh(), rows[i : i + 1], signs)[0] for i in range(len(jet))]
    assert_allclose(np.mean(single), whole, rtol=1e-12)


def test_one_output_needs_no_signs():
    jet, layers = plain(outputs=1), random_layers(outputs=1)
    rows = TrainingRows.of(jet, Loss(0.3))
    network = network_of(layers, Tanh())
    expected = np.sum(residuals(network, jet, Loss(0.3), derivatives) ** 2)
    assert_allclose(loss_and_gradient(layers, Tanh(), rows)[0], expected, rtol=1e-11)


class DenseSoap:
    """SOAP for one matrix with the Kronecker products written out, and moments as weighted sums over all steps."""

    def __init__(self, decay, every, tiny):
        self.decay, self.every, self.tiny = decay, every, tiny
        self.gradients, self.rotated = [], []
        self.basis = None

    def _average(self, terms):
        weights = (1 - self.decay) * self.decay ** np.arange(len(terms) - 1.0, -1.0, -1.0)
        return sum(weight * term for weight, term in zip(weights, terms, strict=True))

    def step(self, W, G, rate):
        m, n = W.shape
        if self.basis is None:
            self.basis = np.eye(m), np.eye(n)
        kron = np.kron(*self.basis)  # acts on matrices that are read row by row
        self.gradients.append(G)
        self.rotated.append(kron.T @ G.ravel())
        bias = 1 - self.decay ** len(self.gradients)
        mean = kron.T @ self._average(self.gradients).ravel() / bias
        squares = self._average([part**2 for part in self.rotated]) / bias
        moved = W - rate * (kron @ (mean / (np.sqrt(squares) + self.tiny))).reshape(m, n)
        if len(self.gradients) % self.every == 1 % self.every:
            left, right = (
                self._average([g @ g.T for g in self.gradients]),
                self._average([g.T @ g for g in self.gradients]),
            )
            self.basis = tuple(_orthogonalised(A @ Q) for A, Q in zip((left, right), self.basis, strict=True))
        return moved


def _orthogonalised(A):
    """The orthogonal factor of the columns, by Gram and Schmidt, twice for the digits."""
    columns = []
    for column in A.T:
        for _ in range(2):
            column = column - sum(q * (q @ column) for q in columns)
        columns.append(column / np.linalg.norm(column))
    return np.array(columns).T


class TestSoap:
    def test_the_dense_version(self):
        rng = np.random.default_rng(0)
        sides = 4, 3  # square matrices: their factors have full rank from the first step on, and one QR decomposition
        weights = [rng.standard_normal((side, side)) for side in sides]
        dense, soap = [DenseSoap(0.9, 3, 1e-8) for _ in sides], Soap(decay=0.9, every=3)
        state, expected = soap.init(weights), weights
        for _ in range(14):
            gradients = [np.eye(side) + rng.uniform(-0.3, 0.3, (side, side)) for side in sides]
            weights, state = soap.step(weights, gradients, state, 0.1)
            expected = [part.step(w, g, 0.1) for part, w, g in zip(dense, expected, gradients, strict=True)]
            for w, e in zip(weights, expected, strict=True):
                assert_allclose(w, e, rtol=1e-8, atol=1e-9)

    def test_bases_become_eigenvectors(self):
        rng = np.random.default_rng(1)
        left, right = rng.standard_normal((4, 4)), rng.standard_normal((3, 3))
        soap = Soap(every=1, decay=0.5)
        weights = [np.zeros((4, 3))]
        state = soap.init(weights)
        gradient = left @ np.diag([4.0, 2.0, 1.0, 0.5])[:, :3] @ right
        for _ in range(300):
            weights, state = soap.step(weights, [gradient], state, 0.0)
        basis = state.matrices[0].bases[1]
        _, vectors = eigh(gradient.T @ gradient)
        assert_allclose(np.abs(vectors[:, ::-1].T @ basis), np.eye(3), atol=1e-6)

    def test_a_long_side_is_not_rotated(self):
        weights, gradient = [np.zeros((6, 2))], np.random.default_rng(2).standard_normal((6, 2))
        soap = Soap(max_side=1)
        moved, state = soap.step(weights, [gradient], soap.init(weights), 0.1)
        assert_allclose(moved[0], -0.1 * np.sign(gradient), rtol=1e-5)  # the first step of Adam
        assert state.matrices[0].bases[0].shape == (0, 0)

    def test_an_ill_conditioned_quadratic(self):
        """|A W B - C|^2 / 2 with condition numbers of 30: its minimiser is a solve, and SOAP comes there."""
        rng = np.random.default_rng(3)
        A, B = (np.linalg.qr(rng.standard_normal((n, n)))[0] * np.geomspace(1, 1 / 30, n) for n in (5, 4))
        A, B = A @ np.linalg.qr(rng.standard_normal((5, 5)))[0], B @ np.linalg.qr(rng.standard_normal((4, 4)))[0]
        solution = rng.standard_normal((5, 4))
        C = A @ solution @ B
        soap, schedule, n_steps = Soap(), Schedule(0.1), 1500
        weights = [np.zeros((5, 4))]
        state = soap.init(weights)
        for step in range(1, n_steps + 1):
            gradient = A.T @ (A @ weights[0] @ B - C) @ B.T
            weights, state = soap.step(weights, [gradient], state, schedule(step, n_steps))
        assert_allclose(weights[0], solution, atol=0.02)

    def test_the_state_before_stays(self):
        weights, soap = [np.ones((3, 2))], Soap()
        state = soap.init(weights)
        first = soap.step(weights, [np.ones((3, 2))], state, 0.1)[0]
        again = soap.step(weights, [np.ones((3, 2))], state, 0.1)[0]
        assert_allclose(weights[0], 1.0)
        assert_allclose(first[0], again[0])
