"""Training of deep networks: the loss row by row, its gradient, the optimiser against dense algebra."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh

from nurf import DeepFeatureRegressor, Jet, problems
from nurf.densities import Nonlocal, Uniform
from nurf.engines import DeepSetting, DeepSpec
from nurf.engines._deep import balanced_weight, first_parameters, training_units
from nurf.networks import DeepNetwork, SiLU, Tanh
from nurf.solvers import VALUES_ONLY, Loss
from nurf.solvers.trained import Schedule, Soap, Trainer, TrainingRows, loss_and_gradient
from nurf.solvers.trained._training import _batches
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


ARM = problems.get("robot_arm", dimension=4)


def data_of(problem, n, seed=0, n_fresh=2000):
    """Return samples with gradients, and fresh points with values."""
    rng = np.random.default_rng(seed)
    X, fresh = problem.sample(n, rng), problem.sample(n_fresh, rng)
    return X, problem.value(X), problem.gradient(X), fresh, problem.value(fresh)


def small(**parameters):
    return DeepFeatureRegressor(**{"hidden": (24, 24, 24), "steps": 400, "random_state": 0, **parameters})


def relative_error(model, X, y):
    return np.sqrt(np.mean((model.predict(X) - y) ** 2)) / np.std(y)


class TestSchedule:
    def test_it_rises_and_falls_to_zero(self):
        rates = np.array([Schedule(0.1, 10)(step, 100) for step in range(1, 101)])
        assert np.argmax(rates) in (9, 10)
        assert 0.09 < rates.max() <= 0.1
        assert rates[-1] < 1e-3 * rates.max()

    def test_each_point_comes_once_before_any_comes_again(self):
        batches = _batches(10, 5, np.random.default_rng(0))
        for _ in range(3):
            assert sorted(np.concatenate([next(batches), next(batches)])) == list(range(10))
        assert next(_batches(5, 5, np.random.default_rng(0))) is None

    def test_a_loss_that_overflows_leaves_the_weights(self):
        layers = [layer.astype(np.float32) for layer in random_layers(outputs=1)]
        rows = TrainingRows.of(plain(outputs=1), Loss(0.3), np.float32)
        rows = replace(rows, values=rows.values + np.float32(1e30))
        trainer = Trainer(Tanh())
        run = trainer.advance(trainer.start(layers), rows, 3, 3, np.random.default_rng(0))
        for after, before in zip(run.parameters, layers, strict=True):
            assert_array_equal(after, before)


class TestFirstLayer:
    def test_hyperplanes_are_those_of_the_density(self):
        """Gradients along one axis: so are the normals of the nonlocal density, of the asked length."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((50, 3))
        jet = Jet(X, X[:, 0], np.tile([1.0, 0.0, 0.0], (50, 1)))
        setting = DeepSetting(Nonlocal(1), 0.5)
        first, *rest = first_parameters(jet, DeepSpec((7, 6), settings=(setting,)), setting, rng)
        assert_allclose(np.abs(first[:-1]), 0.5 * np.eye(3)[:1].T * np.ones(7), atol=1e-6)
        assert [layer.shape for layer in rest] == [(8, 6), (7, 1)]

    def test_units_of_training(self):
        rng = np.random.default_rng(1)
        jet = Jet(np.column_stack([3 + 5 * rng.standard_normal((200, 2)), np.ones(200)]), np.zeros(200))
        scaled = training_units(jet)(jet)
        assert_allclose(scaled.X.mean(axis=0), 0, atol=1e-12)
        assert_allclose(np.mean(scaled.X[:, :2] ** 2), 1)
        assert training_units(jet[:1]).x_scale.tolist() == [1, 1, 1]

    def test_the_balanced_weight(self):
        jet = weighted()
        weight, loss = balanced_weight(jet), np.sum(jet.gradients**2, axis=(1, 2)) / 2
        assert_allclose(weight * np.average(loss, weights=jet.derivative_weight), 1)


class TestDeepFeatureRegressor:
    def test_gradients_help(self):
        """Ten times as many numbers: the error is a fraction of that without them for any seed that was tried."""
        X, y, gradients, fresh, values = data_of(ARM, 300)
        with_ = relative_error(small().fit(X, y, gradients=gradients), fresh, values)
        assert with_ < 0.1
        assert with_ < 0.7 * relative_error(small().fit(X, y), fresh, values)

    @pytest.mark.parametrize("n", [60, 300])
    def test_wrong_gradients_do_not_hurt(self, n):
        X, y, gradients, fresh, values = data_of(ARM, n)
        model = small(check_gradients=False).fit(X, y, gradients=-gradients)
        assert model.gradient_weight_ == 0
        assert isinstance(model.density_, Uniform)
        assert relative_error(model, fresh, values) < 1.5 * relative_error(small().fit(X, y), fresh, values)
        assert "they do not help" in str(model.report())

    def test_more_steps_that_fit_noise_are_not_taken(self):
        """Noise as large as the function: the long cycle interpolates it, the short one does not.

        In one of four runs it is taken all the same, because the median of the errors of 32 rows became smaller. Nine
        of ten are less likely than 1e-4.
        """
        taken, errors = [], []
        for seed in range(10):
            X, y, _, fresh, values = data_of(ARM, 160, seed)
            y = y + np.std(y) * np.random.default_rng([seed, 1]).standard_normal(len(y))
            model = small(steps=1000).fit(X, y)
            taken.append(sum(cycle.label != "all rows" for cycle in model.fit_.history) > 1)
            errors.append(relative_error(model, fresh, values))
        assert sum(taken) < 9
        assert np.median(errors) < 1.2

    @pytest.mark.parametrize("n", [1, 2, 3, 4])
    @pytest.mark.parametrize("d", [1, 3])
    def test_few_samples(self, n, d):
        X = np.random.default_rng(0).uniform(-1, 1, (n, d))
        model = small(steps=30).fit(X, X[:, 0], gradients=np.eye(d)[:1].repeat(n, axis=0))
        assert np.isfinite(model.predict(X)).all()
        assert np.isfinite(model.estimated_error_) == (n >= 3)
        if n >= 3:
            assert np.isfinite(model.predict_interval(X)).all()
            assert (model.predict(X, return_std=True)[1] >= 0).all()
        else:
            with pytest.raises(ValueError, match="at least 3 samples"):
                model.predict_interval(X)

    @pytest.mark.parametrize("outputs", [(), (2,)], ids=str)
    def test_constant_values(self, outputs):
        X, y = np.random.default_rng(0).uniform(-1, 1, (20, 2)), np.full((20, *outputs), 7.0)
        model = small(steps=30).fit(X, y)
        assert_allclose(model.predict(X), y, rtol=1e-12)

    def test_many_inputs(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((300, 200))
        y, gradients = np.sin(X[:, 0]), np.zeros_like(X)
        gradients[:, 0] = np.cos(X[:, 0])
        model = small(steps=300).fit(X, y, gradients=gradients)
        fresh = rng.standard_normal((500, 200))
        assert model.score(fresh, np.sin(fresh[:, 0])) > 0.95
        assert model.predict_hessian(fresh[:2]).shape == (2, 200, 200)

    def test_many_outputs(self):
        """Random combinations of 50 outputs: all of them are fitted, better than by values alone."""
        rng = np.random.default_rng(0)
        X, fresh = rng.uniform(-1, 1, (2, 200, 2))
        shifts = np.linspace(0, 3, 50)
        y, values = (np.sin(3 * points[:, :1] + points[:, 1:] + shifts) for points in (X, fresh))
        slopes = np.cos(3 * X[:, :1] + X[:, 1:] + shifts)[..., None] * [3.0, 1.0]
        model = small().fit(X, y, gradients=slopes)
        assert model.predict_gradient(fresh).shape == (200, 50, 2)
        assert model.estimated_error_.shape == (50,)
        assert model.gradient_weight_ > 0
        assert np.sqrt(np.mean((model.predict(fresh) - values) ** 2, axis=0)).max() < 0.1

    def test_a_fit_depends_on_the_seed_alone(self):
        X, y, gradients, fresh, _ = data_of(ARM, 60)

        def short(**parameters):
            return small(steps=40, **parameters)

        first = short().fit(X, y, gradients=gradients).predict(fresh)
        assert_array_equal(short().fit(X, y, gradients=gradients).predict(fresh), first)
        order = np.random.default_rng(0).permutation(60)
        assert_array_equal(short().fit(X[order], y[order], gradients=gradients[order]).predict(fresh), first)
        twice = {"X": np.repeat(X, 2, axis=0), "y": np.repeat(y, 2), "gradients": np.repeat(gradients, 2, axis=0)}
        assert_array_equal(short().fit(**twice).predict(fresh), first)
        assert np.any(short(random_state=1).fit(X, y, gradients=gradients).predict(fresh) != first)

    @pytest.mark.parametrize("n", [2, 40, 160])
    @pytest.mark.parametrize("budget", [1e-6, 0.5])
    def test_a_time_budget(self, ticks, budget, n):
        """There is a model however short it is; a first cycle is trained in any case, and little more.

        Without a budget, 2700 steps of all settings would follow.
        """
        X, y, gradients, fresh, _ = data_of(ARM, n)
        model = small(steps="auto", time_budget=budget).fit(X, y, gradients=gradients)
        first = model.fit_.attempts[0].seconds
        assert ticks.seconds < budget + 2 * first + 0.1
        assert np.isfinite(model.predict(fresh)).all()
        assert np.isfinite(model.estimated_error_) == (n > 2)
        assert model.n_iter_ > 0
        if n > 2:
            assert np.isfinite(model.predict_interval(fresh)).all()

    def test_more_time_is_more_steps(self, ticks):
        """Cycles are twice as long as those before: what ends in time is the same up to there."""
        X, y, *_ = data_of(ARM, 160)
        short, long = (small(hidden=(8,), time_budget=budget).fit(X, y) for budget in (1e-6, 1.5))
        assert short.n_iter_ < long.n_iter_
        assert short.fit_.attempts[0].error == long.fit_.attempts[0].error
        steps = [0, *(cycle.n_steps for cycle in long.fit_.history if cycle.label != "all rows")]
        assert len(steps) > 2
        assert_array_equal(np.diff(steps), np.diff(steps)[0] * 2 ** np.arange(len(steps) - 1))

    def test_what_is_known_of_gradients(self):
        """Partial, directional, elsewhere: each of them is used, and better than values alone."""
        X, y, gradients, fresh, values = data_of(ARM, 200)
        some = np.where(np.random.default_rng(1).random(gradients.shape) < 0.3, np.nan, gradients)
        directions = np.random.default_rng(2).standard_normal((200, 2, 4))
        slopes = np.einsum("nd,nqd->nq", gradients, directions)
        alone = relative_error(small().fit(X[:100], y[:100]), fresh, values)
        for arguments in (
            {"gradients": some},
            {"gradients": slopes, "directions": directions},
            {"X": X[:100], "y": y[:100], "gradients": gradients[100:], "gradients_at": X[100:]},
        ):
            model = small().fit(**{"X": X, "y": y, **arguments})
            assert model.gradient_weight_ > 0
            assert relative_error(model, fresh, values) < 0.7 * alone

    @pytest.mark.parametrize("weight", ["auto", 0.1])
    def test_absurd_gradients(self, weight):
        """Beyond the range of single precision."""
        X, y, gradients, *_ = data_of(ARM, 30)
        model = small(steps=40, check_gradients=False, gradient_weight=weight).fit(X, y, gradients=1e60 * gradients)
        assert np.isfinite(model.predict(X)).all()

    def test_hessians_are_not_used_and_a_warning_says_so(self):
        X, y, *_ = data_of(ARM, 20)
        with pytest.warns(UserWarning, match="`hessians` are not used in the training"):
            model = small(steps=20).fit(X, y, hessians=np.zeros((20, 4, 4)))
        assert_array_equal(model.predict(X), small(steps=20).fit(X, y).predict(X))

    def test_the_report(self):
        X, y, gradients, *_ = data_of(ARM, 160)
        text = str(small().fit(X, y, gradients=gradients).report())
        for part in (
            "24 x 24 x 24",
            "first layer",
            "they help, error",
            "race",
            "with all rows: loss",
            "held-out rows",
        ):
            assert part in text

    def test_progress(self, capsys):
        X, y, *_ = data_of(ARM, 20)
        small(steps=20, verbose=1).fit(X, y)
        first, *_, last = capsys.readouterr().err.splitlines()
        assert re.fullmatch(r"nurf: \S+ m?s, candidate 1: trained, uniform, 5 steps \(values alone\), error \S+", first)
        assert re.fullmatch(r"nurf: \S+ m?s: estimated error \S+ of the standard deviation of the values", last)


class TestGoingOn:
    def test_training_goes_on_from_where_it_was(self):
        X, y, gradients, fresh, values = data_of(ARM, 300)
        model = small(warm_start=True).fit(X, y, gradients=gradients)
        first, held_out = relative_error(model, fresh, values), model.fit_.folds
        model.fit(X, y, gradients=gradients)
        assert model.n_iter_ > 1.5 * model.fit_.n_steps
        assert_array_equal(model.fit_.folds.fold_of, held_out.fold_of)
        assert_array_equal(model.fit_.folds.keys, held_out.keys)
        assert relative_error(model, fresh, values) < 1.5 * first
        new = small().fit(X, y, gradients=gradients)
        assert model.fit_.history[0].loss < 0.5 * new.fit_.history[0].loss  # after its first 100 steps

    def test_other_data(self):
        X, y, _, fresh, values = data_of(ARM, 400)
        model = small().partial_fit(X[:200], y[:200])
        model.partial_fit(X, y)
        old, new = model.fit_.folds, small().fit(X[:200], y[:200]).fit_.folds
        here = np.isin(old.keys, new.keys)
        assert np.count_nonzero(here) == 200
        assert_array_equal(old.fold_of[here], new.fold_of)
        assert model.score(fresh, values) > 0.8
        with pytest.raises(ValueError, match="3 features, but DeepFeatureRegressor is expecting 4"):
            model.partial_fit(X[:, :3], y)
        with pytest.raises(ValueError, match="training continues with 4 inputs and outputs of shape"):
            model.partial_fit(X, np.stack([y, y], axis=1))

    @pytest.mark.parametrize("n", [2, 5])
    def test_few_samples(self, n):
        X, y, *_ = data_of(ARM, 10)
        model = small(steps=20).fit(X[:n], y[:n])
        assert np.isfinite(model.partial_fit(X[n:], y[n:]).predict(X)).all()


class TestHonesty:
    @pytest.mark.parametrize(("noise", "n_seeds"), [(0.0, 3), (0.3, 1)])
    def test_intervals_and_errors(self, noise, n_seeds):
        """With 100 held-out rows, the coverage of their quantile has a deviation of (0.9 0.1 / 100)^(1/2) = 0.03.

        Without noise, errors have a kurtosis of about 20, and the root mean square of 100 a deviation of 22%. Over
        eight seeds, the logarithm of estimate over truth had the mean 0.17 and that deviation: 0.7 and 2 are four of
        those of a mean of three.
        """
        ratios = []
        for seed in range(n_seeds):
            X, y, _, fresh, values = data_of(ARM, 500, seed)
            rng = np.random.default_rng(1)
            y, values = (v + noise * np.std(y) * rng.standard_normal(len(v)) for v in (y, values))
            model = small(random_state=seed).fit(X, y)
            low, high = model.predict_interval(fresh).T
            assert np.mean((low <= values) & (values <= high)) > 0.9 - 4 * 0.03
            ratios.append(model.estimated_error_ / np.sqrt(np.mean((model.predict(fresh) - values) ** 2)))
            predicted, deviations = model.predict(fresh, return_std=True)
            assert np.mean(np.abs(predicted - values) < 1.645 * deviations) > 0.9 - 4 * 0.03
        assert 0.7 < np.exp(np.mean(np.log(ratios))) < 2

    def test_validation_rows_take_the_place_of_those_held_out(self):
        X, y, gradients, fresh, values = data_of(ARM, 200)
        model = small().fit(X, y, gradients=gradients, validation=(fresh[:300], values[:300]))
        error = np.sqrt(np.mean((model.predict(fresh[:300]) - values[:300]) ** 2))
        assert all(cycle.label != "all rows" for cycle in model.fit_.history)  # they take part from the beginning
        # What choosing one of six settings adds is less than a quarter.
        assert (1 - 1e-9) * error < model.estimated_error_ < 1.25 * error

    def test_validation_beside_gradients_at_other_points(self):
        X, y, gradients, fresh, values = data_of(ARM, 100)
        data = {"gradients": gradients[40:], "gradients_at": X[40:]}
        model = small().fit(X[:40], y[:40], validation=(fresh[:100], values[:100]), **data)
        error = np.sqrt(np.mean((model.predict(fresh[:100]) - values[:100]) ** 2))
        assert (1 - 1e-9) * error < model.estimated_error_ < 2 * error

    @pytest.mark.parametrize("n", [100, 400])
    def test_standard_deviations_are_larger_far_away(self, n):
        X, y, gradients, fresh, _ = data_of(ARM, n)
        model = small().fit(X, y, gradients=gradients)
        near, far = (model.predict(points, return_std=True)[1].mean() for points in (fresh, 5 * fresh))
        assert far > 2 * near

    @pytest.mark.parametrize("n", [100, 400])
    def test_standard_deviations_of_gradients(self, n):
        """Over 12 seeds, they hold 0.90 of the errors, with a deviation of 0.05: 0.03 in the mean over three."""
        shares = []
        for seed in range(3):
            X, y, gradients, fresh, _ = data_of(ARM, n, seed)
            found, deviations = small(random_state=seed).fit(X, y, gradients=gradients).predict_gradient(fresh, True)
            shares.append(np.mean(np.abs(found - ARM.gradient(fresh)) < 1.645 * deviations))
        assert abs(np.mean(shares) - 0.9) < 4 * 0.03

    def test_standard_deviations_of_gradients_that_were_not_given(self):
        X, y, _, fresh, _ = data_of(ARM, 400)
        model = small().fit(X, y)
        with pytest.warns(UserWarning, match="could not be compared with gradients that were given"):
            _, deviations = model.predict_gradient(fresh, return_std=True)
        errors = model.predict_gradient(fresh) - ARM.gradient(fresh)
        assert 0.1 < np.sqrt(np.mean(deviations**2) / np.mean(errors**2)) < 10
