"""Fits that choose laws, widths and weights of derivatives: against brute force, and on data with a clear answer."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nurf import problems
from nurf.activations import Erf, ReLU, Sigmoid
from nurf.densities import Local, Nonlocal, Uniform
from nurf.jets import Jet
from nurf.solvers import GeneralizedCrossValidation, Loss
from nurf.solvers.ridge import PreciseRidge
from nurf.training import ALPHAS, Candidates, Setting, fit_adaptive, fit_estimated, fit_random, fit_searched
from nurf.training._adaptive import MARGIN, with_estimates
from nurf.training._outer import fit_outer, refined

WIDTHS = tuple(Sigmoid(width) for width in (0.8, 0.4, 0.2, 0.1, 0.05))
LOSSES = tuple(Loss(weight) for weight in (0.0, 0.001, 0.01, 0.1))
LAWS = (Local(jitter=None), Uniform())


def rng_of(seed):
    return np.random.default_rng(seed)


def wave(n=60, slope=6.0, noise=0.0, seed=0):
    rng = rng_of(seed)
    X = rng.uniform(-0.7, 0.7, size=(n, 2))
    phase = X @ [slope, 1.0]
    return Jet(X, np.sin(phase) + noise * rng.normal(size=n), np.cos(phase)[:, None] * [slope, 1.0])


class TestCandidates:
    ALL = Candidates(LAWS, WIDTHS, LOSSES)

    def test_a_small_network_tries_everything(self):
        everything = [(law, width) for law in LAWS for width in WIDTHS]
        last = Setting(LAWS[1], WIDTHS[2])
        assert list(self.ALL.neurons(None, 5000, False)) == everything
        assert list(self.ALL.neurons(last, 100, False)) == everything
        assert list(self.ALL.neurons(last, 100, True)) == everything

    @pytest.mark.parametrize(
        ("position", "size", "final", "widths"),
        [
            (2, 101, False, WIDTHS[1:4]),
            (0, 101, False, WIDTHS[:2]),
            (4, 2000, False, WIDTHS[3:]),
            (2, 500, True, WIDTHS[1:4]),
            (2, 501, True, WIDTHS[2:3]),
        ],
    )
    def test_a_larger_one_looks_around_the_last_choice(self, position, size, final, widths):
        last = Setting(LAWS[1], WIDTHS[position])
        assert list(self.ALL.neurons(last, size, final)) == [(LAWS[1], width) for width in widths]

    def test_a_last_choice_that_is_no_candidate_says_nothing(self):
        single = self.ALL.only(Setting(LAWS[0], WIDTHS[3], LOSSES[1]))
        for last in (Setting(LAWS[1], WIDTHS[3]), Setting(LAWS[0], WIDTHS[0])):
            assert list(single.neurons(last, 2000, False)) == [(LAWS[0], WIDTHS[3])]
        assert single.others(LOSSES[3]) == (LOSSES[1],)

    def test_parts(self):
        setting = Setting(LAWS[1], WIDTHS[1], LOSSES[2])
        assert self.ALL.only(setting) == Candidates(LAWS[1:], WIDTHS[1:2], LOSSES[2:3])
        assert self.ALL.near(setting) == Candidates(LAWS[1:], WIDTHS[:3], LOSSES[2:3])
        assert self.ALL.others(LOSSES[3]) == (LOSSES[0], LOSSES[2], LOSSES[3])
        assert self.ALL.others(LOSSES[1]) == LOSSES[:3]
        assert replace(self.ALL, spread=2.0).only(setting).spread == 2.0

    def test_whether_there_is_a_choice(self):
        single = self.ALL.only(Setting(LAWS[0], WIDTHS[0], LOSSES[0]))
        assert not single.has_choice
        for more in ({"densities": LAWS}, {"activations": WIDTHS}, {"losses": LOSSES}):
            assert replace(single, **more).has_choice

    @pytest.mark.parametrize("name", ["densities", "activations", "losses"])
    def test_nothing_to_choose_from(self, name):
        with pytest.raises(ValueError, match=f"`{name}` must have one member at least, got none"):
            replace(self.ALL, **{name: ()})

    @pytest.mark.parametrize("spread", [0.5, 0.0, -1.0, np.nan, np.inf])
    def test_of_spread(self, spread):
        with pytest.raises(ValueError, match=f"`spread` must be a number >= 1, got {spread}"):
            replace(self.ALL, spread=spread)


class TestSpread:
    @pytest.mark.parametrize("kind", [Sigmoid, Erf])
    def test_widths_are_even_in_their_logarithms(self, kind):
        widths = kind(0.2).spread(9, 3.0, rng_of(0)).width
        assert_allclose(np.sort(np.log(widths)), np.log(0.2) + np.log(3) * np.linspace(-1, 1, 9))
        assert np.any(np.diff(widths) < 0)  # in random order

    def test_of_one_neuron_and_of_none(self):
        assert_allclose(Sigmoid(0.2).spread(1, 3.0, rng_of(0)).width, [0.2])
        assert Sigmoid(0.2).spread(9, 1.0, rng_of(0)) == Sigmoid(0.2)
        assert ReLU().spread(9, 3.0, rng_of(0)) == ReLU()

    def test_of_a_fit(self):
        fit = fit_searched(wave(), Candidates(LAWS[:1], WIDTHS[2:3], spread=2.0), [10, 30], rng_of(0))
        widths = fit.network.activation.width
        assert widths.shape == (fit.network.features.n_neurons,)
        for part in (widths[:10], widths[10:]):
            assert_allclose([part.min(), part.max()], [0.1, 0.4])


class TestSearched:
    def test_one_candidate_is_the_fit_by_stages(self):
        jet, counts = wave(200), [20, 60, 110]
        for law, loss in ((Nonlocal(), LOSSES[0]), (LAWS[0], LOSSES[2])):
            streams = [rng_of(3), rng_of(3)]
            one = fit_searched(jet, Candidates((law,), WIDTHS[1:2], (loss,)), counts, streams[0])
            other = fit_adaptive(jet, law, WIDTHS[1], counts, streams[1], loss=loss)
            assert_array_equal(one.network.coefficients, other.network.coefficients)
            assert streams[0].random() == streams[1].random()

    @pytest.mark.parametrize("noise", [0.0, 1.0])
    @pytest.mark.parametrize("seed", range(3))
    def test_takes_what_a_search_by_hand_takes(self, seed, noise):
        """All candidates draw the same random numbers: each trial is the fit of that candidate alone."""
        jet = wave(200, noise=noise, seed=seed)
        fit = fit_searched(jet, Candidates(LAWS, WIDTHS, LOSSES[:1]), [80], rng_of(seed), alphas=ALPHAS)
        (stage,) = fit.history
        by_hand = [
            fit_random(jet, law, width, 80, rng_of(seed), alphas=ALPHAS).error for law in LAWS for width in WIDTHS
        ]
        assert_allclose([trial.error for trial in stage.trials], by_hand, rtol=1e-6)
        first = int(np.argmax(np.array(by_hand) <= (1 + MARGIN) * min(by_hand)))
        assert stage.setting == stage.trials[first].setting
        assert_allclose(fit.error, by_hand[first], rtol=1e-6)

    @pytest.mark.parametrize(("slope", "widths"), [(1.0, (0.8, 0.4)), (40.0, (0.1, 0.05))])
    def test_the_width_follows_the_function(self, slope, widths):
        fit = fit_searched(wave(400, slope), Candidates(LAWS, WIDTHS), [50, 100], rng_of(0))
        assert fit.history[-1].setting.activation.width in widths

    @pytest.mark.parametrize("seed", range(4))
    def test_gradients_count_where_they_help(self, seed):
        jet = wave(seed=seed)
        garbage = replace(jet, gradients=6 * rng_of(seed).normal(size=jet.gradients.shape))
        candidates = Candidates((Uniform(),), WIDTHS[1:4], LOSSES)
        for data, helps in ((jet, True), (garbage, False)):
            fit = fit_searched(data, candidates, [50, 100], rng_of(seed))
            assert (fit.loss.gradients > 0) == helps
            assert fit.history[0].setting.loss in LOSSES
        fresh = wave(2000, seed=99)
        with_them = fit_searched(jet, candidates, [50, 100], rng_of(seed))
        without = fit_searched(jet, replace(candidates, losses=LOSSES[:1]), [50, 100], rng_of(seed))
        errors = [np.linalg.norm(fit.network.value(fresh.X) - fresh.y) for fit in (with_them, without)]
        assert errors[0] < 0.5 * errors[1]

    @pytest.mark.parametrize("seed", [2, 3, 5])
    def test_many_rows_are_fitted_with_choices_from_a_part(self, seed):
        """Choices that change from stage to stage are made again, by law, width and weight."""
        jet = wave(600, slope=9.0, noise=0.02, seed=seed)
        counts, candidates = [40, 120, 200], Candidates(LAWS, WIDTHS, LOSSES)
        fit = fit_searched(jet, candidates, counts, rng_of(seed), max_rows=200, patience=9)
        assert [stage.n_neurons for stage in fit.history] == counts
        for stage in fit.history:
            assert stage.setting.density in LAWS
            assert stage.setting.activation in WIDTHS
            assert stage.setting.loss in LOSSES
        assert len({stage.setting.activation for stage in fit.history}) > 1
        assert len({stage.setting.loss for stage in fit.history}) > 1
        again = fit_outer(fit.network.features, jet, loss=fit.loss)
        assert_allclose(fit.error, again.error, rtol=1e-3)  # of all rows, not of the part

    def test_one_stage_of_many_rows(self):
        fit = fit_searched(wave(600), Candidates(LAWS, WIDTHS), [60], rng_of(0), max_rows=200)
        assert len(fit.history) == 1
        assert fit.history[0].setting.activation in WIDTHS

    def test_derivatives_that_count_must_be_known(self):
        jet = wave()
        with pytest.raises(ValueError, match=r"the weight 0.1 of gradients needs gradients, got none"):
            fit_searched(Jet(jet.X, jet.y), Candidates((Uniform(),), WIDTHS, LOSSES), [10], rng_of(0))
        with pytest.raises(ValueError, match=r"Local.* needs gradients, got no derivatives"):
            fit_searched(Jet(jet.X, jet.y), Candidates(LAWS, WIDTHS), [10], rng_of(0))

    def test_gradients_at_other_points(self):
        """They lower the error as those at the same points do."""
        values, slopes, fresh = wave(40), wave(40, seed=5), wave(2000, seed=9)
        joined = Jet(values.X, values.y) + Jet(slopes.X, np.full(40, np.nan), slopes.gradients)
        candidates = Candidates((Uniform(),), WIDTHS[1:3], LOSSES)
        errors = []
        for data, choice in ((joined, candidates), (Jet(values.X, values.y), replace(candidates, losses=LOSSES[:1]))):
            fit = fit_searched(data, choice, [30, 60], rng_of(0))
            errors.append(np.linalg.norm(fit.network.value(fresh.X) - fresh.y))
        assert errors[0] < 0.5 * errors[1]


class TestEstimated:
    def relative(self, name, seed, n=400):
        problem = problems.get(name)
        rng = rng_of(seed)
        X, fresh = problem.sample(n, rng), problem.sample(2000, rng)
        jet, candidates = Jet(X, problem.value(X)), Candidates(LAWS[:1], WIDTHS)
        uniform = replace(candidates, densities=(Uniform(),))
        fits = (
            fit_estimated(jet, candidates, [25, 50, 100], rng_of(seed)),
            fit_searched(jet, uniform, [25, 50, 100], rng_of(seed)),
        )
        scale = np.linalg.norm(problem.value(fresh))
        return [np.linalg.norm(fit.network.value(fresh) - problem.value(fresh)) / scale for fit in fits]

    def test_finds_the_one_direction_of_a_wave(self):
        errors = np.array([self.relative("planar_wave", seed) for seed in range(5)])
        assert np.median(errors[:, 0] / errors[:, 1]) < 0.1
        assert np.all(errors[:, 0] < errors[:, 1])

    def test_is_not_worse_where_there_is_nothing_to_find(self):
        errors = np.array([self.relative("corner", seed) for seed in range(5)])
        assert np.median(errors[:, 0] / errors[:, 1]) < 1.2

    def test_the_history_tells_all_stages(self):
        jet = wave(200)
        fit = fit_estimated(Jet(jet.X, jet.y), Candidates(LAWS[:1], WIDTHS), [25, 50, 100], rng_of(0))
        assert fit.error <= min(stage.error for stage in fit.history) * (1 + 1e-12)
        assert {stage.n_neurons for stage in fit.history} <= {25, 50, 100}

    def test_estimates_fill_in_what_is_not_known(self):
        jet = wave(300)
        gradients = jet.gradients.copy()
        gradients[::2] = np.nan
        partly = replace(jet, gradients=gradients)
        fit = fit_random(jet, Uniform(), Sigmoid(0.4), 80, rng_of(0))
        filled = with_estimates(partly, fit, Local())
        assert_array_equal(filled.gradients[1::2], jet.gradients[1::2])
        assert_allclose(filled.gradients[::2], jet.gradients[::2], atol=0.1)
        assert not np.array_equal(filled.gradients[::2], jet.gradients[::2])

    @pytest.mark.parametrize("weighted", [False, True])
    def test_a_network_that_explains_nothing_is_no_guide(self, weighted):
        """Its error is compared to the spread of the values, each as often as it counts."""
        jet = wave(300)
        weights = np.where(np.arange(300) < 150, 1e-9, 1.0) if weighted else None
        y = np.where(np.arange(300) < 150, 100.0, 1.0) * jet.y if weighted else jet.y
        data = Jet(jet.X, y, sample_weight=weights)
        fit = fit_random(data, Uniform(), Sigmoid(0.4), 80, rng_of(0))
        poor = replace(fit, error=0.75 * np.std(jet.y[150:] if weighted else jet.y))
        assert with_estimates(data, poor, Local()) is data
        assert with_estimates(data, replace(poor, error=poor.error / 2), Local()).known == {"gradients"}


class TestRefined:
    def smooth(self, noise):
        rng = rng_of(0)
        X = rng.uniform(-0.7, 0.7, size=(200, 2))
        return Jet(X, np.exp(X.sum(axis=1)) + noise * rng.normal(size=200))

    def fits(self, noise, **options):
        return [
            fit_random(self.smooth(noise), Uniform(), Sigmoid(0.8), 80, rng_of(0), alphas=alphas, **options)
            for alphas in (None, ALPHAS)
        ]

    def test_smooth_data_without_noise_take_smaller_alphas(self):
        fine, coarse = self.fits(0.0)
        X = rng_of(1).uniform(-0.7, 0.7, size=(2000, 2))
        errors = [np.sqrt(np.mean((fit.network.value(X) - np.exp(X.sum(axis=1))) ** 2)) for fit in (fine, coarse)]
        assert (fine.alpha < 1e-15, coarse.alpha) == (True, ALPHAS[-1])
        assert errors[0] < 0.2 * errors[1]
        assert 0.4 < fine.error / errors[0] < 2.5  # the estimate is one of the truth
        assert isinstance(fine.posterior.ridge, PreciseRidge)

    def test_noise_leaves_it_idle(self):
        fine, coarse = self.fits(0.1)
        assert fine.alpha == coarse.alpha > 1e-9
        assert_array_equal(fine.network.coefficients, coarse.network.coefficients)

    def test_another_rule(self):
        fine, coarse = self.fits(0.0, rule=GeneralizedCrossValidation())
        assert fine.alpha < 1e-15
        assert fine.error < coarse.error

    def test_too_much_work_is_refused(self, monkeypatch):
        _, coarse = self.fits(0.0)
        monkeypatch.setattr("nurf.training._outer.MOST_OPERATIONS", 1e6)
        assert refined(coarse, self.smooth(0.0)) is coarse

    def test_never_takes_a_larger_error(self):
        for seed in range(5):
            jet = replace(self.smooth(0.0), sample_weight=rng_of(seed).uniform(0.5, 2, 200))
            coarse = fit_random(jet, Uniform(), Sigmoid(0.3), 60, rng_of(seed), alphas=ALPHAS)
            assert refined(coarse, jet).error <= coarse.error
