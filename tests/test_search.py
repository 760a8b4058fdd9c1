"""The search over sampled networks: what may be chosen, on which data, and that the estimate is one of the truth."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nurf.activations import Erf, ReLU, Sigmoid
from nurf.densities import Local, Nonlocal, Uniform
from nurf.jets import Jet
from nurf.networks import Hyperplanes
from nurf.solvers import GeneralizedCrossValidation, LeaveOneOut, Loss, Validation
from nurf.solvers.ridge import LeastSquares
from nurf.engines import (
    ALPHAS,
    Diagonal,
    FromData,
    FromNetwork,
    FromResidual,
    Full,
    Isotropic,
    Lane,
    Rung,
    Search,
    Setting,
    Space,
    Task,
    _arms,
    fit_for_more_rows,
    fit_outer,
    fit_random,
    fit_searched,
)
from nurf.engines._metrics import LinearMap
from nurf.engines._outer import fit_least_squares
from nurf.engines._stages import grow, sample_features

WIDTHS = tuple(Sigmoid(width) for width in (0.8, 0.4, 0.2, 0.1, 0.05))
LOSSES = tuple(Loss(weight) for weight in (0.0, 0.001, 0.01, 0.1))
DENSITIES = (Local(jitter=None), Uniform())


def rng_of(seed):
    return np.random.default_rng(seed)


def wave(n=60, slope=6.0, noise=0.0, seed=0):
    rng = rng_of(seed)
    X = rng.uniform(-0.7, 0.7, size=(n, 2))
    phase = X @ [slope, 1.0]
    return Jet(X, np.sin(phase) + noise * rng.normal(size=n), np.cos(phase)[:, None] * [slope, 1.0])


def lane(jet, space, sizes, seed=0, search=Search(), name="one", **task):  # noqa: B008
    return Lane(name, Task(jet, **task), space, search, sizes, (seed, 7))


@pytest.mark.parametrize(
    ("n_samples", "source", "degrees"),
    [(400, FromNetwork(), {None, 1}), (400, FromResidual(), {None}), (100, FromNetwork(), {None})],
)
def test_neurons_that_are_sampled_anew_may_go_on_with_another_tail(n_samples, source, degrees):
    """Not if samples are few."""
    space = Space(DENSITIES, WIDTHS, sources=(FromData(), source), degrees=(None, 1))
    arm = _arms.SampledArm(lane(wave(n_samples), space, [20, 60]), Setting(Uniform(), WIDTHS[1], source=source))
    assert {branch.setting.degree for branch in arm.branches(many=True)} == degrees
    assert {branch.setting.degree for branch in arm.branches(many=False)} == {None}


class TestSpace:
    ALL = Space(
        DENSITIES,
        WIDTHS,
        LOSSES,
        (FromData(), FromResidual()),
        (1.0, 4.0),
        (Isotropic(), Diagonal()),
        ((Nonlocal(), Full()),),
    )

    def test_a_race_starts_with_all_densities_and_every_second_width(self):
        settings = list(self.ALL.first_settings())
        assert [(s.density, s.activation) for s in settings] == [(d, w) for d in DENSITIES for w in WIDTHS[1::2]]
        assert {(s.loss, s.source, s.metric, s.width_ratio) for s in settings} == {
            (LOSSES[2], FromData(), Isotropic(), 1.0)
        }

    def test_variants_differ_in_one_thing(self):
        setting = Setting(DENSITIES[0], WIDTHS[2], LOSSES[2])
        names = ("density", "activation", "loss", "source", "metric", "width_ratio")
        found = {name: set() for name in names}
        for variant in self.ALL.variants(setting):
            changed = [name for name in names if getattr(variant, name) != getattr(setting, name)]
            assert len(changed) <= 1
            for name in changed:
                found[name].add(getattr(variant, name))
        assert found == {
            "density": {Uniform()},
            "activation": {WIDTHS[1], WIDTHS[3]},
            "loss": {LOSSES[0], LOSSES[1], LOSSES[3]},
            "source": {FromResidual()},
            "metric": {Diagonal()},
            "width_ratio": {4.0},
        }

    def test_estimates_sample_anew_from_a_network(self):
        (setting,) = self.ALL.estimates(Setting(Uniform(), WIDTHS[0]))
        assert (setting.density, setting.metric, setting.source) == (Nonlocal(), Full(), FromNetwork())

    @pytest.mark.parametrize("name", ["densities", "activations", "losses", "sources", "width_ratios", "metrics"])
    def test_nothing_to_choose_from(self, name):
        with pytest.raises(ValueError, match=f"`{name}` must have at least one member, got none"):
            replace(self.ALL, **{name: ()})


class TestSizes:
    @pytest.mark.parametrize(
        ("n", "sizes"), [(2000, [223, 669, 2000]), (1000, [112, 336, 1000]), (150, [150]), (300, [102, 300]), (7, [7])]
    )
    def test_by_threes_and_not_below_a_hundred(self, n, sizes):
        assert Search().sizes(n) == sizes
        assert len(Search().rungs(len(sizes), 2000)) == len(sizes)
        assert {rung.rival for rung in Search().rungs(len(sizes), 1000)} == {np.inf}


class TestData:
    def splits(self, n, size, sizes=(100, 1000), **task):
        jet = wave(n)
        return jet, lane(jet, Space(DENSITIES, WIDTHS), sizes, **task).splits(size)

    def test_few_samples_are_held_out_once_each(self):
        jet, splits = self.splits(60, 100)
        held = np.concatenate([split.task.rule.held_out.X for split in splits])
        assert len(splits) == 5
        assert_array_equal(held[np.lexsort(held.T)], jet.X[np.lexsort(jet.X.T)])
        for split in splits:
            both = np.concatenate([split.task.jet.X, split.task.rule.held_out.X])
            assert_array_equal(both[np.lexsort(both.T)], jet.X[np.lexsort(jet.X.T)])
        assert_allclose(sum(split.share for split in splits), 1.0)

    def test_many_samples_are_fitted_in_part_and_then_all(self):
        _, first = self.splits(1000, 100)
        assert [len(split.task.jet) for split in first] == [400]
        _, last = self.splits(1000, 1000)
        assert [split.task.jet.n_samples for split in last] == [1000]
        assert last[0].task.rule is None

    def test_the_tolerance_of_few_samples_is_one_standard_error(self):
        weights = 625 ** rng_of(0).random(60)
        effective = weights.sum() ** 2 / np.sum(weights**2)
        for weight, n in ((None, 60), (np.full(60, 3.0), 60), (weights, effective)):
            contest = lane(replace(wave(60), sample_weight=weight), Space(DENSITIES, WIDTHS), [100])
            assert_allclose(contest.tolerance, 1 / np.sqrt(2 * n))
        assert lane(wave(200), Space(DENSITIES, WIDTHS), [100]).tolerance == 0.05

    def test_validation_rows_are_the_estimate(self):
        _, splits = self.splits(60, 100, rule=Validation(wave(30, seed=1)))
        assert len(splits) == 1


class TestEstimate:
    """The error of an arm, by refits without any code of the search."""

    SPACE = Space((Local(jitter=None),), (Sigmoid(0.2),), (Loss(0.01),))

    def test_is_that_of_refits_without_the_fold(self):
        jet = wave(60, noise=0.1)
        contest = lane(jet, self.SPACE, [40], alphas=ALPHAS)
        fit = fit_searched([contest])
        squares = np.zeros(len(ALPHAS))
        for number, split in enumerate(contest.splits(40)):
            held = split.task.rule.held_out
            train = jet[~np.isin(jet.X[:, 0], held.X[:, 0])]
            for i, alpha in enumerate(ALPHAS):
                again = fit_random(
                    train, Local(jitter=0.4), Sigmoid(0.2), 40, contest.rng(0, number), alphas=[alpha], loss=Loss(0.01)
                )
                squares[i] += np.sum((again.network.value(held.X) - held.y) ** 2)
        errors = np.sqrt(squares / 60)
        near = np.flatnonzero(errors <= (1 + 1 / np.sqrt(2 * 60)) * errors.min())  # one standard error of 60 errors
        assert fit.alpha == ALPHAS[near[0]]
        (trial,) = fit.attempts
        assert_allclose(trial.error, errors[near[0]], rtol=1e-5)

    def test_of_the_winner_is_that_of_refits_on_other_folds(self):
        """The larger of both errors is taken: that on the folds of the race may be too small."""
        jet = wave(60, noise=0.1)
        contest = lane(jet, self.SPACE, [40], alphas=ALPHAS[2:3])
        fit = fit_searched([contest])
        squares = 0.0
        for number, held in enumerate(contest.final_folds[1]):
            train, rng = jet[~np.isin(jet.X[:, 0], held.X[:, 0])], contest.rng(0, number)
            options = {"alphas": ALPHAS[2:3], "loss": Loss(0.01)}
            again = fit_random(train, Local(jitter=0.4), Sigmoid(0.2), 40, rng, **options)
            squares += np.sum((again.network.value(held.X) - held.y) ** 2)
        assert len(contest.final_folds[1]) == 7
        assert_allclose(fit.crossfit.output_errors, [np.sqrt(squares / 60) * (1 + 1 / np.sqrt(120))], rtol=1e-5)
        assert fit.error == max(fit.attempts[0].error, fit.crossfit.output_errors[0])

    def test_of_many_samples_is_leave_one_out(self):
        jet = wave(200, noise=0.1)
        fit = fit_searched([lane(jet, self.SPACE, [40])])
        again = fit_outer(fit.network.features, jet, loss=Loss(0.01))
        assert_allclose([fit.stage.error, fit.alpha], [again.error, again.alpha], rtol=1e-6)

    def test_of_many_samples_is_multiplied_by_the_optimism_of_refits(self):
        """A seventh of 200 samples five times: at least 120 of them."""
        jet = wave(200, noise=0.1)
        contest = lane(jet, self.SPACE, [40], alphas=ALPHAS[2:3])
        fit = fit_searched([contest])
        errors = []
        for number, held in enumerate(contest.final_folds[1]):
            train, rng = jet[~np.isin(jet.X[:, 0], held.X[:, 0])], contest.rng(0, number)
            options = {"alphas": ALPHAS[2:3], "loss": Loss(0.01)}
            again = fit_random(train, Local(jitter=0.4), Sigmoid(0.2), 40, rng, **options)
            errors.append([np.sqrt(np.mean((again.network.value(held.X) - held.y) ** 2)), again.error])
        (true, estimated), ratios = np.sqrt(np.mean(np.square(errors), axis=0)), np.divide(*np.transpose(errors))
        assert len(errors) == 5
        assert_allclose(fit.error, fit.stage.error * max(1, true / estimated), rtol=1e-5)
        assert_allclose(fit.optimism, max(1, np.sqrt(np.median(ratios**2))), rtol=1e-5)

    def test_of_very_many_samples_is_leave_one_out(self):
        jet, search = wave(200, noise=0.1), Search(max_refit_samples=199)
        fit = fit_searched([lane(jet, self.SPACE, [40], search=search)])
        assert fit.optimism is None
        assert fit.error == fit.stage.error

    @pytest.mark.parametrize("n", [40, 100, 400])
    def test_is_near_the_truth(self, n):
        """Noise of 0.3 on values without gradients: the error against noisy fresh data is at least 0.3.

        The mean square of n errors has a relative standard deviation of about sqrt(2 / n), 0.22 for n = 40; the mean
        over 12 seeds 0.065, its root 0.032. Folds of a fifth see 4/5 of the data, which costs a few percent more.
        Choosing among 5 widths takes a few percent off. 25% are more than four standard deviations beyond both.
        """
        space = Space((Uniform(),), WIDTHS)
        ratios = []
        for seed in range(12):
            jet, fresh = wave(n, 2.0, 0.3, seed), wave(2000, 2.0, 0.3, seed + 100)
            fit = fit_searched([lane(jet.only(()), space, [30], seed)])
            ratios.append(fit.error**2 / np.mean((fit.network.value(fresh.X) - fresh.y) ** 2))
        assert 0.75 < np.sqrt(np.mean(ratios)) < 1.25


class TestRace:
    def test_one_setting_is_the_plain_fit(self):
        jet = wave(200)
        for source in (FromData(), FromResidual()):
            space = Space((Nonlocal(),), WIDTHS[1:2], LOSSES[2:3], (source,))
            contest = lane(jet, space, [60])
            fit = fit_searched([contest])
            plain = fit_random(jet, Nonlocal(), WIDTHS[1], 60, contest.rng(0, 0), loss=LOSSES[2])
            assert_allclose(fit.network.value(jet.X), plain.network.value(jet.X), atol=1e-7)
            assert [trial.size for trial in fit.attempts] == [60]

    def test_the_best_of_all_trials_at_the_last_size_is_taken(self):
        """Without noise 60 neurons are better than 20 by orders of magnitude."""
        fit = fit_searched([lane(wave(200), Space(DENSITIES, WIDTHS, LOSSES), [20, 60])])
        last = [trial.error for trial in fit.attempts if trial.size == 60]
        assert fit.stage.n_neurons == 60
        assert fit.stage.error <= min(last) * (1 + Search().margin) * (1 + 1e-9)
        assert fit.stage == fit.history[-1]
        assert fit.stage.n_neurons == fit.network.features.n_neurons

    def test_stages_before_the_last_have_their_errors_in_the_race(self):
        """Whether the next stage samples from the data or from the residual, in which case there is a fit to it."""
        for source in (FromData(), FromResidual()):
            fit = fit_searched([lane(wave(200), Space(DENSITIES[:1], WIDTHS, sources=(source,)), [10, 30, 90])])
            assert [stage.n_neurons for stage in fit.history] == [10, 30, 90][: len(fit.history)]
            raced = {(trial.size, trial.label, trial.error) for trial in fit.attempts}
            for stage in fit.history[:-1]:
                assert (stage.n_neurons, str(stage.setting), stage.error) in raced

    @pytest.mark.parametrize(("slope", "widths"), [(1.0, (0.8, 0.4, 0.2)), (40.0, (0.1, 0.05))])
    def test_the_width_follows_the_function(self, slope, widths):
        space = Space((Local(jitter=None),), WIDTHS)
        chosen = [
            fit_searched([lane(wave(400, slope, seed=seed), space, [100], seed)]).stage.setting.activation.width
            for seed in range(3)
        ]
        assert set(chosen) <= set(widths)

    def test_values_alone_win_if_derivatives_are_wrong(self):
        """Gradients that are pure noise, six times as large as the true ones: no fit with them can be as good."""
        search, wins = Search(), 0
        for seed in range(5):
            jet = wave(60, 3.0, seed=seed)
            wrong = replace(jet, gradients=20 * rng_of(seed).normal(size=jet.gradients.shape))
            lanes = [
                lane(wrong, Space(DENSITIES, WIDTHS, LOSSES[1:]), [40], seed, search, "all data"),
                lane(jet.only(()), Space((Uniform(),), WIDTHS), [40], seed, search, "values alone"),
            ]
            lanes[0] = replace(lanes[0], handicap=1.5)
            fit = fit_searched(lanes)
            wins += fit.loss == Loss()
        assert wins == 5

    @pytest.mark.parametrize(("n", "winner"), [(60, "values alone"), (200, "all data")])
    def test_derivatives_of_few_samples_must_win_twice(self, n, winner, monkeypatch):
        """In the race, which exact gradients win here, and in refits, in which they are made to lose."""
        fitted = []

        def final_fit(arm, held_out):
            fit = plain(arm, held_out)
            fitted.append(arm.lane)
            return replace(fit, output_errors=1e12 * fit.output_errors) if arm.lane == "all data" else fit

        jet, names = wave(n, 6.0), ("all data", "values alone")
        widths = (Sigmoid(0.2),)
        lanes = [
            lane(jet, Space((Local(jitter=None),), widths, (Loss(0.01),)), [40], name=names[0]),
            lane(jet.only(()), Space((Uniform(),), widths), [40], name=names[1]),
        ]
        lanes = [replace(each, search=Search(first=Rung(rival=1e12))) for each in lanes]
        lanes[0] = replace(lanes[0], handicap=1.1)
        plain = _arms._final_fit
        monkeypatch.setattr(_arms, "_final_fit", final_fit)
        fit = fit_searched(lanes)
        assert {trial.data for trial in fit.attempts} == set(names)
        assert min(fit.attempts, key=lambda trial: trial.error).lane == "all data"
        assert (fit.loss == Loss()) == (winner == "values alone")
        assert fitted == (list(names) if winner == "values alone" else ["all data"])

    def test_more_rows_may_carry_more_neurons(self):
        """250 narrow neurons with a tiny alpha fit the noise of 300 samples; they are kept beside those that win.

        Over 40 seeds their error is at least 1.98 times as large, 3.4 times in the median; 1.23 times is enough.
        """
        jet = wave(300, noise=3.0).only(())
        space = Space((Uniform(),), WIDTHS[-1:])
        noisy = fit_for_more_rows([lane(jet, space, [25, 250], alphas=np.array([1e-9]))])
        assert [fit.network.features.n_neurons for fit in noisy] == [25, 250]
        assert noisy[0].error < noisy[1].error
        exact = fit_for_more_rows([lane(wave(300).only(()), space, [25, 250])])
        assert [fit.network.features.n_neurons for fit in exact] == [250]

    def test_derivatives_that_count_must_be_known(self):
        jet = wave()
        with pytest.raises(ValueError, match=r"`gradient_weight` = 0.01 needs known gradients, got none"):
            fit_searched([lane(jet.only(()), Space((Uniform(),), WIDTHS, LOSSES), [10])])
        with pytest.raises(ValueError, match=r"Local.* needs gradients, got no derivatives"):
            fit_searched([lane(jet.only(()), Space(DENSITIES, WIDTHS), [10])])

    def test_a_residual_needs_a_differentiable_network(self):
        space = Space((Local(),), (ReLU(),), sources=(FromResidual(),))
        hessians = replace(wave(), hessians=np.ones((60, 2, 2)))
        with pytest.raises(ValueError, match="has derivatives up to 1"):
            fit_searched([lane(hessians, replace(space, densities=(Local(2),)), [10, 20])])

    def test_many_rows_are_raced_in_part_and_fitted_whole(self):
        jet = wave(600, slope=9.0, noise=0.02)
        search = Search(max_rows=200, few_samples=30)
        fit = fit_searched([lane(jet, Space(DENSITIES, WIDTHS, LOSSES), [20, 60], search=search)])
        again = fit_outer(fit.network.features, jet, loss=fit.loss)
        assert_allclose(fit.stage.error, again.error, rtol=1e-3)  # of all rows, not of the part

    def test_rungs_are_parameters(self):
        few = Search(first=Rung(), middle=Rung(), last=Rung())
        fit = fit_searched([lane(wave(200), Space(DENSITIES, WIDTHS), [20, 60], search=few)])
        assert [trial.size for trial in fit.attempts] == [20] * 4 + [60]


class TestSources:
    def state(self, jet):
        return grow(Task(jet), None, Setting(Uniform(), Sigmoid(0.3)), 60, rng_of(0))

    def test_a_residual_is_the_difference(self):
        jet = wave(200)
        network = self.state(jet).fit.network
        residual, fallback = FromResidual().jet(jet, [network], frozenset({"gradients"}))
        h = 1e-5
        slopes = [(network.value(jet.X + s) - network.value(jet.X - s)) / (2 * h) for s in h * np.eye(2)]
        assert_allclose(residual.gradients, jet.gradients - np.stack(slopes, 1), atol=1e-5)
        assert fallback is None

    def test_estimates_fill_in_what_is_not_known(self):
        jet = wave(200)
        gaps = replace(jet, gradients=np.where(np.arange(200)[:, None] % 2, jet.gradients, np.nan))
        network = self.state(jet).fit.network
        filled, _ = FromNetwork().jet(gaps, [network], frozenset({"gradients"}))
        assert_array_equal(filled.gradients[1::2], jet.gradients[1::2])
        assert_allclose(filled.gradients[::2], network.gradient(jet.X[::2]))

    def test_neurons_stay_or_are_sampled_anew(self):
        jet = wave(200)
        first = self.state(jet)
        for source, stays in ((FromData(), True), (FromResidual(), True), (FromNetwork(), False)):
            setting = Setting(Local(jitter=0.1), Sigmoid(0.3), source=source)
            more = grow(Task(jet), first, setting, 90, rng_of(1)).problem.features
            assert more.n_neurons == 90
            same = np.array_equal(more.hyperplanes.offsets[:60], first.problem.features.hyperplanes.offsets)
            assert same == stays

    def test_a_network_without_derivatives_shows_no_direction(self):
        flat = Jet(wave().X, np.zeros(60))
        state = self.state(flat)
        grown = grow(Task(flat), state, Setting(Local(), Sigmoid(0.3), source=FromNetwork()), 20, rng_of(0))
        assert grown.fallback == "the gradients of the network are zero"
        assert grown.problem.features.n_neurons == 20


class TestMetrics:
    @pytest.mark.parametrize("outputs", [(), (2,)])
    def test_a_linear_map_follows_the_chain_rule(self, outputs):
        """f(x) = g(M x) with a polynomial g of known derivatives."""
        rng, M = rng_of(0), np.array([[2.0, 0.3], [-0.5, 1.0]])
        Z = rng.uniform(-1, 1, (7, 2))
        u, v = Z.T
        y, g = u**3 * v, np.stack([3 * u**2 * v, u**3], 1)
        H = np.stack([np.stack([6 * u * v, 3 * u**2], 1), np.stack([3 * u**2, 0 * u], 1)], 1)
        gx, Hx = g @ M, M.T @ H @ M
        if outputs:
            y, g, gx, H, Hx = (np.stack([part, -2 * part], 1) for part in (y, g, gx, H, Hx))
        mapped = LinearMap(M)(Jet(Z @ np.linalg.inv(M).T, y, gx, Hx))
        for name, expected in {"X": Z, "y": y, "gradients": g, "hessians": H}.items():
            assert_allclose(getattr(mapped, name), expected, atol=1e-12)

    def test_neurons_are_the_same_functions(self):
        rng, M = rng_of(0), np.array([[2.0, 0.3], [-0.5, 1.0]])
        X = rng.uniform(-1, 1, (9, 2))
        a = rng.normal(size=(5, 2))
        planes = Hyperplanes(a / np.linalg.norm(a, axis=1, keepdims=True), rng.uniform(-1, 1, 5))
        back, factors = LinearMap(M).back(planes)
        before = Sigmoid(0.2)((X @ M.T) @ planes.normals.T + planes.offsets)
        after = Sigmoid(0.2 * factors)(X @ back.normals.T + back.offsets)
        assert_allclose(after, before, atol=1e-12)

    @pytest.mark.parametrize(("metric", "angle"), [(Diagonal(), 0.0), (Full(), 0.0), (Full(), 0.7)])
    def test_finds_the_input_that_matters(self, metric, angle):
        """f varies ten times as much along one direction: in the metric it varies alike along both."""
        rng = rng_of(1)
        Q = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        X = rng.uniform(-0.7, 0.7, (4000, 2))
        gradients = rng.normal(size=(4000, 2)) * [10.0, 1.0] @ Q
        mapped = metric.prepare(Jet(X, X[:, 0], gradients))(Jet(X, X[:, 0], gradients)).gradients
        covariance = mapped.T @ mapped
        # 4000 normal numbers: their mean square is right to sqrt(2 / 4000) = 2%, five of which are 11%
        assert_allclose(covariance / covariance[0, 0], np.eye(2), atol=0.11)

    def test_an_inert_input_gets_wide_neurons(self):
        rng = rng_of(2)
        X = rng.uniform(-0.5, 0.5, (200, 3))
        jet = Jet(X, X[:, 0], np.column_stack([np.ones(200), rng.normal(size=200), np.zeros(200)]))
        features, _ = sample_features(jet, Setting(Uniform(), Sigmoid(0.1), metric=Diagonal()), 100, rng_of(0))
        assert np.abs(features.hyperplanes.normals[:, 2]).max() < 0.3
        assert features.activation.width.shape == (100,)

    def test_without_gradients_there_is_none(self):
        zero = Jet(np.ones((3, 2)), np.zeros(3), np.zeros((3, 2)))
        assert Diagonal().prepare(zero) is None
        assert Full().prepare(zero) is None


class TestMultiscale:
    @pytest.mark.parametrize("kind", [Sigmoid, Erf])
    def test_widths_are_even_in_their_logarithms(self, kind):
        widths = kind(0.2).multiscale(9, 3.0, rng_of(0)).width
        assert_allclose(np.sort(np.log(widths)), np.log(0.2) + np.log(3) * np.linspace(-1, 1, 9))
        assert np.any(np.diff(widths) < 0)  # in random order

    def test_of_one_neuron_and_of_none(self):
        assert_allclose(Sigmoid(0.2).multiscale(1, 3.0, rng_of(0)).width, [0.2])
        assert Sigmoid(0.2).multiscale(9, 1.0, rng_of(0)) == Sigmoid(0.2)
        assert ReLU().multiscale(9, 3.0, rng_of(0)) == ReLU()


class TestSmallAlphas:
    def smooth(self, noise):
        rng = rng_of(0)
        X = rng.uniform(-0.7, 0.7, size=(200, 2))
        return Jet(X, np.exp(X.sum(axis=1)) + noise * rng.normal(size=200))

    def fits(self, noise, **options):
        return [
            fit_random(self.smooth(noise), Uniform(), Sigmoid(0.8), 80, rng_of(0), alphas=alphas, **options)
            for alphas in (None, ALPHAS)
        ]

    def test_are_taken_by_smooth_data_without_noise(self):
        fine, coarse = self.fits(0.0)
        X = rng_of(1).uniform(-0.7, 0.7, size=(2000, 2))
        errors = [np.sqrt(np.mean((fit.network.value(X) - np.exp(X.sum(axis=1))) ** 2)) for fit in (fine, coarse)]
        assert (fine.alpha < 1e-14, coarse.alpha) == (True, ALPHAS[-1])
        assert fine.precise
        assert not coarse.precise
        assert errors[0] < 0.3 * errors[1]

    def test_are_not_tried_with_noise(self):
        fine, coarse = self.fits(0.1)
        assert fine.alpha == coarse.alpha > 1e-9
        assert_array_equal(fine.alphas, coarse.alphas)

    @pytest.mark.parametrize("rule", [LeaveOneOut(), GeneralizedCrossValidation()], ids=repr)
    def test_never_raise_the_error(self, rule):
        fine, coarse = self.fits(0.0, rule=rule)
        assert fine.error <= 1.05 * coarse.error  # the largest alpha within 5% of the best

    def test_are_not_tried_if_they_cost_too_much(self):
        features = self.fits(0.0)[0].network.features
        problem = LeastSquares(features, self.smooth(0.0))
        fit = fit_least_squares(problem, max_precise_operations=1e6)
        assert fit.alpha == ALPHAS[-1]

    def test_that_are_given_are_met(self):
        """A given alpha below the rounding of a Gram matrix takes the precise form by itself."""
        fit = fit_random(self.smooth(0.0), Uniform(), Sigmoid(0.8), 80, rng_of(0), alphas=np.array([1e-8, 1e-20]))
        assert_array_equal(fit.alphas, [1e-8, 1e-20])
        assert fit.precise == (fit.alpha == 1e-20)
