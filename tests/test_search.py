"""Sampled networks: what may be chosen, on which data candidates are judged, and that the evidence is the truth."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dense
from nurf._blocks import spaced
from nurf.activations import Erf, ReLU, Sigmoid
from nurf.choosing import POLICY, assign_folds, decide
from nurf.densities import Local, Nonlocal, Uniform
from nurf.engines import (
    ALPHAS,
    Diagonal,
    FromData,
    FromNetwork,
    FromResidual,
    Full,
    Isotropic,
    SampledEngine,
    Setting,
    Space,
    Task,
    fit_for_more_rows,
    fit_outer,
    fit_random,
    fit_sampled,
    race_sizes,
)
from nurf.engines._candidates import Stages
from nurf.engines._metrics import InputMap, Learned
from nurf.engines._outer import OuterWeights
from nurf.engines._stages import grow, sample_features
from nurf.jets import Jet
from nurf.networks import Hyperplanes
from nurf.solvers import GeneralizedCrossValidation, LeaveOneOut, Loss, Validation
from nurf.solvers.ridge import LeastSquares

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


def engine_of(jet, space, sizes, seed=0, data="all data", **task):
    return SampledEngine(Task(jet, **task), space, sizes, (seed, 7), data)


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

    def test_a_race_starts_with_the_first_density_and_every_second_width(self):
        first, settings = self.ALL.first_setting, list(self.ALL.first_settings())
        assert (first.density, first.activation, first.loss) == (DENSITIES[0], WIDTHS[2], LOSSES[0])
        assert [(s.density, s.activation) for s in settings] == [(DENSITIES[0], width) for width in WIDTHS[2::2]]
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
        assert race_sizes(n) == sizes

    @pytest.mark.parametrize("n", [1, 99, 100, 101, 299, 301, 5000])
    def test_grow_up_to_the_last(self, n):
        sizes = race_sizes(n)
        assert sizes[-1] == n
        assert np.all(np.diff(sizes) > 0)
        assert len(sizes) <= 3


class TestCandidates:
    def test_all_first_settings_are_judged_before_any_variant(self):
        space = Space(DENSITIES, WIDTHS)
        engine = engine_of(wave(200), space, [20, 60])
        first = [Stages(setting) for setting in space.first_settings()]
        assert list(engine.candidates()) == first[:1]
        labels = [attempt.label for attempt in fit_sampled([engine]).attempts]
        assert labels[: len(first)] == [str(each) for each in first]
        assert len(labels) > len(first)

    def test_nothing_to_choose_is_one_attempt(self):
        fit = fit_sampled([engine_of(wave(200), Space(DENSITIES[1:], WIDTHS[1:2]), [60])])
        assert [(attempt.size, attempt.engine) for attempt in fit.attempts] == [(60, "sampled")]

    @pytest.mark.parametrize(
        ("n_samples", "source", "degrees"),
        [(400, FromNetwork(), {None, 1}), (400, FromResidual(), {None}), (100, FromNetwork(), {None})],
    )
    def test_neurons_that_are_sampled_anew_may_go_on_with_another_tail(self, n_samples, source, degrees):
        """Not if samples are few."""
        space = Space(DENSITIES, WIDTHS, sources=(FromData(), source), degrees=(None, 1))
        engine = engine_of(wave(n_samples), space, [20, 60])
        start = Stages(Setting(Uniform(), WIDTHS[1]), size=20)
        judged = engine.judge(Stages(Setting(Uniform(), WIDTHS[1], source=source), start), 20)
        assert {each.setting.degree for each in engine.onwards(judged, many=True)} == degrees
        assert {each.setting.degree for each in engine.onwards(judged, many=False)} == {None}

    def test_those_that_go_on_start_from_what_was_judged(self):
        engine = engine_of(wave(200), Space(DENSITIES, WIDTHS), [20, 60])
        judged = engine.judge(Stages(Setting(Uniform(), WIDTHS[1])), 20)
        for each in engine.onwards(judged, many=True):
            assert (each.before, each.before.size) == (judged.candidate.at(20), 20)

    def test_a_map_that_another_engine_learned_is_a_metric(self):
        A = np.array([[3.0, 0.0], [0.0, 0.1]])
        space = Space(DENSITIES, WIDTHS, metrics=(Isotropic(), Diagonal()))
        informed = list(engine_of(wave(200), space, [20, 60]).informed(A, 20))
        assert {each.setting.metric for each in informed} == {Learned(((3.0, 0.0), (0.0, 0.1)))}
        assert {each.setting.density for each in informed} == {Uniform()}
        assert [each.setting.activation for each in informed] == list(WIDTHS[2::2])

    def test_not_of_few_samples_nor_at_the_last_size_nor_of_other_inputs(self):
        A, space = np.eye(2), Space(DENSITIES, WIDTHS, metrics=(Isotropic(), Diagonal()))
        assert not list(engine_of(wave(200), space, [20, 60]).informed(A, 60))
        assert not list(engine_of(wave(100), space, [20, 60]).informed(A, 20))
        assert not list(engine_of(wave(200), space, [20, 60]).informed(np.eye(3), 20))
        assert not list(engine_of(wave(200), Space(DENSITIES, WIDTHS), [20, 60]).informed(A, 20))

    def test_the_map_of_the_function_makes_the_error_smaller(self):
        """One of four inputs matters. Over five seeds the error of other uniform neurons is 1e5 times as large."""
        rng = rng_of(0)
        X = rng.uniform(-0.5, 0.5, (400, 4))
        jet = Jet(X, np.sin(8 * X[:, 0]))
        space = Space((Uniform(),), WIDTHS, metrics=(Isotropic(), Diagonal()))
        engine = engine_of(jet, space, [60, 180])
        informed = [engine.judge(each, 60).error for each in engine.informed(np.array([[1.0, 0, 0, 0]]), 60)]
        others = [engine.judge(each, 60).error for each in engine.candidates()]
        assert min(informed) < 1e-3 * min(others)


class TestFewSamples:
    """Evidence of up to 150 samples: refits without each fold, here without any code of the engine."""

    SPACE = Space((Local(jitter=None),), (Sigmoid(0.2),), (Loss(0.01),))

    @pytest.mark.parametrize("weighted", [False, True])
    def test_is_that_of_refits_without_the_fold(self, weighted):
        jet = wave(60, noise=0.1)
        weights = 10 ** rng_of(1).random(60) if weighted else np.ones(60)
        jet = replace(jet, sample_weight=weights) if weighted else jet
        engine = engine_of(jet, self.SPACE, [40], alphas=ALPHAS)
        (candidate,) = engine.candidates()
        judged = engine.judge(candidate, 40)
        folds, errors = assign_folds(jet, 5), np.full((60, len(ALPHAS)), np.nan)
        for fold in range(5):
            held, options = jet[folds == fold], {"loss": Loss(0.01)}
            for i, alpha in enumerate(ALPHAS):
                train, rng = jet[folds != fold], engine.memory.rng(0, fold)
                again = fit_random(train, Local(jitter=0.4), Sigmoid(0.2), 40, rng, alphas=[alpha], **options)
                errors[folds == fold, i] = held.y - again.network.value(held.X)
        curve = np.sqrt(np.average(errors**2, axis=0, weights=weights))
        effective = weights.sum() ** 2 / np.sum(weights**2)
        near = np.flatnonzero(curve <= (1 + 1 / np.sqrt(2 * effective)) * curve.min())  # one standard error
        assert judged.found == ALPHAS[near[0]]
        assert_allclose(judged.evidence.errors[:, 0], errors[:, near[0]], rtol=1e-4, atol=1e-7)
        assert_allclose(judged.evidence.weights / weights, judged.evidence.weights[0] / weights[0])
        assert_allclose(judged.error, curve[near[0]], rtol=1e-5)

    def test_of_a_candidate_that_is_far_behind_is_that_of_the_first_fold(self):
        """Neurons of the width 0.01 see nothing of a wave: at the other samples they are taken to be as far behind."""
        jet = wave(60, slope=2.0)
        engine = engine_of(jet, replace(self.SPACE, activations=(Sigmoid(0.4),)), [40], alphas=ALPHAS[3:4])
        good = engine.judge(next(engine.candidates()), 40)
        setting = Setting(Uniform(), Sigmoid(0.01))
        poor, first = engine.judge(Stages(setting), 40), assign_folds(jet, 5) == 0
        again = fit_random(jet[~first], Uniform(), Sigmoid(0.01), 40, engine.memory.rng(0, 0), alphas=ALPHAS[3:4])
        errors = jet.y[first] - again.network.value(jet.X[first])
        ratio = np.linalg.norm(errors) / np.linalg.norm(good.evidence.errors[first])
        assert ratio > 2
        assert_allclose(poor.evidence.errors[first, 0], errors, rtol=1e-6)
        assert_allclose(poor.evidence.errors[~first], ratio * good.evidence.errors[~first], rtol=1e-6)
        assert_allclose(poor.error, ratio * good.error, rtol=1e-6)

    def test_stages_are_all_sampled_without_the_fold(self):
        """Twenty neurons, and forty more from the residual of the fit without the fold."""
        jet, space = wave(60, noise=0.1), replace(self.SPACE, sources=(FromData(), FromResidual()))
        engine = engine_of(jet, space, [20, 60], alphas=ALPHAS[3:4])
        settings = [Setting(Local(jitter=None), Sigmoid(0.2), Loss(0.01), source) for source in space.sources]
        judged = engine.judge(Stages(settings[1], Stages(settings[0], size=20)), 60)
        folds, errors = assign_folds(jet, 5), np.zeros(60)
        for fold in range(5):
            task, state = Task(jet[folds != fold], ALPHAS[3:4]), None
            for depth, (setting, size) in enumerate(zip(settings, (20, 60), strict=True)):
                state = grow(task, state, setting, size, engine.memory.rng(depth, fold))
            errors[folds == fold] = jet.y[folds == fold] - state.fit.network.value(jet.X[folds == fold])
        assert_allclose(judged.evidence.errors[:, 0], errors, rtol=1e-4, atol=1e-7)

    def test_the_fit_has_the_alpha_and_the_errors_of_the_folds(self):
        jet = wave(60, noise=0.1)
        engine = engine_of(jet, self.SPACE, [40])
        choice = decide([engine], POLICY)
        fit = engine.fit(choice.winner, jet)
        assert fit.alpha == choice.winner.found
        assert_allclose(fit.output_errors, choice.winner.evidence.output_errors)
        folds = assign_folds(jet, 5)
        for fold, network in enumerate(fit.crossfit.folds):
            held = folds == fold
            errors = jet.y[held] - network.value(jet.X[held])
            assert_allclose(errors, choice.winner.evidence.errors[held, 0], rtol=1e-4, atol=1e-7)

    @pytest.mark.parametrize(("n", "d", "refits"), [(150, 2, True), (151, 2, False), (200, 11, True), (200, 10, False)])
    def test_samples_are_few_in_themselves_or_for_each_input(self, n, d, refits):
        """Up to 150, or fewer than 20 for each input: then the fit has refits without each fold."""
        X = rng_of(0).uniform(-0.3, 0.3, (n, d))
        fit = fit_sampled([engine_of(Jet(X, X.sum(axis=1)), Space((Uniform(),), (Sigmoid(0.8),)), [10])])
        assert (fit.crossfit is not None) == refits

    def test_samples_without_a_value_do_not_judge(self):
        jet = wave(60)
        jet = replace(jet, y=np.where(np.arange(60) % 3 == 0, np.nan, jet.y))
        engine = engine_of(jet, self.SPACE, [20])
        evidence = engine.judge(next(engine.candidates()), 20).evidence
        assert evidence.errors.shape == (40, 1)
        assert evidence.judges.all()

    def test_equal_points_leave_together(self):
        """Each point twice with the same value: a fit that saw the twin would be exact there."""
        jet = wave(20)
        twice = Jet(np.repeat(jet.X, 2, axis=0), np.repeat(rng_of(3).normal(size=20), 2))
        engine = engine_of(twice, Space((Uniform(),), (Sigmoid(0.1),)), [200], alphas=ALPHAS[9:10])
        errors = engine.judge(next(engine.candidates()), 200).evidence.errors[:, 0]
        assert_allclose(errors[::2], errors[1::2], rtol=1e-6)
        assert np.sqrt(np.mean(errors**2)) > 0.5  # values are random numbers of variance one: none can be known

    def test_the_tolerance_is_one_standard_error(self):
        weights = 625 ** rng_of(0).random(60)
        effective = weights.sum() ** 2 / np.sum(weights**2)
        for weight, n in ((None, 60), (np.full(60, 3.0), 60), (weights, effective)):
            engine = engine_of(replace(wave(60), sample_weight=weight), Space(DENSITIES, WIDTHS), [100])
            assert_allclose(engine.tolerance, 1 / np.sqrt(2 * n))
        assert engine_of(wave(200), Space(DENSITIES, WIDTHS), [100]).tolerance == 0.05


class TestManySamples:
    """Evidence of more than 150 samples: each leaves the fit of the outer weights, and rows outside a part judge."""

    @pytest.mark.parametrize("loss", [Loss(), Loss(0.01)])
    def test_is_leave_one_out_at_all_samples(self, loss):
        """Here by a refit without each of 160 samples, with dense algebra."""
        jet, sigmoid = wave(160, noise=0.1), Sigmoid(dense.WIDTH)
        engine = engine_of(jet, Space((Uniform(),), (sigmoid,), (loss,)), [20], alphas=ALPHAS[2:3])
        judged = engine.judge(next(engine.candidates()), 20)
        fit = fit_random(jet, Uniform(), sigmoid, 20, engine.memory.rng(0, 0), alphas=ALPHAS[2:3], loss=loss)
        features = fit.network.features
        samples = [dense.sample(features, jet, i, loss) for i in range(160)]
        expected = []
        for i in range(160):
            others = samples[:i] + samples[i + 1 :]
            coefficients = dense.ridge(others, 20, fit.ridge_alpha, dense.total_weight(jet))
            expected.append(jet.y[i] - dense.functionals(features, jet.X[i])[0] @ coefficients)
        assert_allclose(judged.evidence.errors, expected, rtol=1e-5, atol=1e-8)

    def test_rows_outside_the_part_judge_directly(self):
        """With derivatives, four rows for each neuron are fitted below the last size."""
        jet = wave(1000, noise=0.1)
        engine = engine_of(jet, Space((Uniform(),), (Sigmoid(0.2),)), [100, 1000], alphas=ALPHAS[3:4])
        evidence = engine.judge(next(engine.candidates()), 100).evidence
        part = spaced(np.arange(1000), 400)
        fit = fit_random(jet[part], Uniform(), Sigmoid(0.2), 100, engine.memory.rng(0, 0), alphas=ALPHAS[3:4])
        outside = np.setdiff1d(np.arange(1000), part)
        assert_allclose(evidence.errors[outside, 0], jet.y[outside] - fit.network.value(jet.X[outside]), rtol=1e-6)
        assert evidence.judges.all()
        inside = np.abs(evidence.errors[part, 0])
        assert np.all(inside >= np.abs(jet.y[part] - fit.network.value(jet.X[part])) * (1 - 1e-9))  # they left

    def test_the_last_size_is_fitted_to_all_rows(self):
        jet = wave(1000, noise=0.1)
        space = Space((Uniform(),), (Sigmoid(0.2),))
        engine = engine_of(jet, space, [50, 100])
        again = fit_random(jet, Uniform(), Sigmoid(0.2), 100, engine.memory.rng(0, 0))
        judged = engine.judge(next(engine.candidates()), 100)
        assert_allclose([judged.error, judged.found], [again.error, again.alpha], rtol=1e-6)

    def test_validation_rows_judge_behind_the_others(self):
        jet, other = wave(60, noise=0.1), wave(30, noise=0.1, seed=1)
        engine = engine_of(jet, Space((Uniform(),), (Sigmoid(0.2),)), [40], rule=Validation(other), alphas=ALPHAS[3:4])
        evidence = engine.judge(next(engine.candidates()), 40).evidence
        fit = fit_random(jet, Uniform(), Sigmoid(0.2), 40, engine.memory.rng(0, 0), alphas=ALPHAS[3:4])
        assert evidence.errors.shape == (90, 1)
        assert_allclose(evidence.errors[60:, 0], other.y - fit.network.value(other.X), rtol=1e-6)

    def test_of_the_fit_is_that_of_refits(self):
        """Three of five folds of 200 samples, at least 120 of them; leave-one-out errors of the others are raised."""
        jet, space = wave(200, noise=0.1), replace(TestFewSamples.SPACE, activations=(Sigmoid(0.4), Sigmoid(0.2)))
        engine = engine_of(jet, space, [40], alphas=ALPHAS[2:3])
        judged = engine.judge(next(engine.candidates()), 40)
        fit = engine.fit(judged, jet)
        folds, errors, ratios = assign_folds(jet, 5), np.full(200, np.nan), []
        for fold in range(3):
            train, held, rng = jet[folds != fold], jet[folds == fold], engine.memory.rng(0, fold)
            options = {"alphas": ALPHAS[2:3], "loss": Loss(0.01)}
            again = fit_random(train, Local(jitter=0.4), Sigmoid(0.2), 40, rng, **options)
            errors[folds == fold] = again.network.value(held.X) - held.y
            ratios.append(np.mean(errors[folds == fold] ** 2) / again.error**2)
        left = judged.evidence.errors[:, 0]
        seen = ~np.isnan(errors)
        factor = max(1, np.sqrt(np.mean(errors[seen] ** 2) / np.mean(left[seen] ** 2)))
        errors[~seen] = factor * left[~seen]
        assert_allclose(fit.error, np.sqrt(np.mean(errors**2)), rtol=1e-5)
        assert_allclose(fit.optimism, max(1, np.sqrt(np.median(ratios))), rtol=1e-5)

    @pytest.mark.parametrize(
        ("n", "widths"), [(1001, (Sigmoid(0.2), Sigmoid(0.2001))), (200, (Sigmoid(0.2),))], ids=["many", "no choice"]
    )
    def test_of_very_many_samples_or_without_a_choice_is_leave_one_out(self, n, widths):
        jet = wave(n, noise=0.1)
        fit = fit_sampled([engine_of(jet, replace(TestFewSamples.SPACE, activations=widths), [40])])
        again = fit_outer(fit.network.features, jet, loss=Loss(0.01))
        assert fit.optimism is None
        assert_allclose([fit.error, fit.stage.error, fit.alpha], [again.error, again.error, again.alpha], rtol=1e-6)


@pytest.mark.parametrize("n", [40, 100, 400])
def test_the_estimate_is_near_the_truth(n):
    """Noise of 0.3 on values without gradients: the error against noisy fresh data is at least 0.3.

    The mean square of n errors has a relative standard deviation of about sqrt(2 / n), 0.22 for n = 40; the mean over
    12 seeds 0.065, its root 0.032. Folds of a fifth see 4/5 of the data, which costs a few percent more. Choosing among
    5 widths takes a few percent off, which its optimism puts back. 25% are more than four standard deviations beyond.
    """
    space = Space((Uniform(),), WIDTHS)
    ratios = []
    for seed in range(12):
        jet, fresh = wave(n, 2.0, 0.3, seed).only(()), wave(2000, 2.0, 0.3, seed + 100)
        engine = engine_of(jet, space, [30], seed)
        choice = decide([engine], POLICY)
        fit = engine.fit(choice.winner, jet)
        error = choice.optimism * fit.error
        ratios.append(error**2 / np.mean((fit.network.value(fresh.X) - fresh.y) ** 2))
    assert 0.75 < np.sqrt(np.mean(ratios)) < 1.25


class TestRace:
    def test_one_setting_is_the_plain_fit(self):
        jet = wave(200)
        for source in (FromData(), FromResidual()):
            space = Space((Nonlocal(),), WIDTHS[1:2], LOSSES[2:3], (source,))
            engine = engine_of(jet, space, [60])
            fit = fit_sampled([engine])
            plain = fit_random(jet, Nonlocal(), WIDTHS[1], 60, engine.memory.rng(0, 0), loss=LOSSES[2])
            assert_allclose(fit.network.value(jet.X), plain.network.value(jet.X), atol=1e-7)
            assert [attempt.size for attempt in fit.attempts] == [60]

    def test_the_best_of_all_attempts_at_the_last_size_is_taken(self):
        """Without noise 60 neurons are better than 20 by orders of magnitude."""
        fit = fit_sampled([engine_of(wave(200), Space(DENSITIES, WIDTHS, LOSSES), [20, 60])])
        last = [attempt.error for attempt in fit.attempts if attempt.size == 60]
        assert fit.stage.n_neurons == 60
        assert fit.stage.error <= min(last) * (1 + 1e-9)
        assert fit.stage == fit.history[-1]
        assert fit.stage.n_neurons == fit.network.features.n_neurons

    def test_stages_before_the_last_have_their_errors_in_the_race(self):
        """Whether the next stage samples from the data or from the residual, in which case there is a fit to it."""
        for source in (FromData(), FromResidual()):
            fit = fit_sampled([engine_of(wave(200), Space(DENSITIES[:1], WIDTHS, sources=(source,)), [10, 30, 90])])
            assert [stage.n_neurons for stage in fit.history] == [10, 30, 90][: len(fit.history)]
            raced = {(attempt.size, attempt.label, attempt.error) for attempt in fit.attempts}
            for stage in fit.history[:-1]:
                assert (stage.n_neurons, str(stage.setting), stage.error) in raced

    @pytest.mark.parametrize(("slope", "widths"), [(1.0, (0.8, 0.4, 0.2)), (40.0, (0.1, 0.05))])
    def test_the_width_follows_the_function(self, slope, widths):
        space = Space((Local(jitter=None),), WIDTHS)
        chosen = [
            fit_sampled([engine_of(wave(400, slope, seed=seed), space, [100], seed)]).stage.setting.activation.width
            for seed in range(3)
        ]
        assert set(chosen) <= set(widths)

    @pytest.mark.parametrize("wrong", [False, True])
    def test_derivatives_are_used_if_they_are_right(self, wrong):
        """Exact gradients, or pure noise, six times as large: no fit with that can be as good as one without."""
        wins = 0
        for seed in range(5):
            jet = wave(60, 3.0 if wrong else 6.0, seed=seed)
            given = replace(jet, gradients=20 * rng_of(seed).normal(size=jet.gradients.shape)) if wrong else jet
            engines = [
                engine_of(given, Space(DENSITIES, WIDTHS, LOSSES[1:]), [40], seed),
                engine_of(jet.only(()), Space((Uniform(),), WIDTHS), [40], seed, "values alone"),
            ]
            fit = fit_sampled(engines)
            assert {attempt.data for attempt in fit.attempts} == {"all data", "values alone"}
            wins += fit.loss != Loss()
        assert wins == (0 if wrong else 5)

    def test_more_rows_may_carry_more_neurons(self):
        """250 narrow neurons with a tiny alpha fit the noise of 300 samples; they are kept beside those that win.

        Over 40 seeds their error is at least 1.98 times as large, 3.4 times in the median; 1.23 times is enough.
        """
        jet = wave(300, noise=3.0).only(())
        space = Space((Uniform(),), WIDTHS[-1:])
        noisy = fit_for_more_rows([engine_of(jet, space, [25, 250], alphas=np.array([1e-9]))])
        assert [fit.network.features.n_neurons for fit in noisy] == [25, 250]
        assert noisy[0].error < noisy[1].error
        exact = fit_for_more_rows([engine_of(wave(300).only(()), space, [25, 250])])
        assert [fit.network.features.n_neurons for fit in exact] == [250]

    def test_derivatives_that_count_must_be_known(self):
        jet = wave()
        with pytest.raises(ValueError, match=r"`gradient_weight` = 0.01 needs known gradients, got none"):
            fit_sampled([engine_of(jet.only(()), Space((Uniform(),), WIDTHS, LOSSES), [10])])
        with pytest.raises(ValueError, match=r"Local.* needs gradients, got no derivatives"):
            fit_sampled([engine_of(jet.only(()), Space(DENSITIES, WIDTHS), [10])])

    def test_a_residual_needs_a_differentiable_network(self):
        space = Space((Local(2),), (ReLU(),), sources=(FromResidual(),))
        hessians = replace(wave(), hessians=np.ones((60, 2, 2)))
        with pytest.raises(ValueError, match="has derivatives up to 1"):
            engine_of(hessians, space, [10, 20])

    def test_many_rows_are_raced_in_part_and_fitted_whole(self):
        jet = wave(600, slope=9.0, noise=0.02)
        fit = fit_sampled([engine_of(jet, Space(DENSITIES, WIDTHS, LOSSES), [20, 60])])
        again = fit_outer(fit.network.features, jet, loss=fit.loss)
        assert_allclose(fit.stage.error, again.error, rtol=1e-3)  # of all rows, not of the part


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
        mapped = InputMap(M)(Jet(Z @ np.linalg.inv(M).T, y, gx, Hx))
        for name, expected in {"X": Z, "y": y, "gradients": g, "hessians": H}.items():
            assert_allclose(getattr(mapped, name), expected, atol=1e-12)

    def test_neurons_are_the_same_functions(self):
        rng, M = rng_of(0), np.array([[2.0, 0.3], [-0.5, 1.0]])
        X = rng.uniform(-1, 1, (9, 2))
        a = rng.normal(size=(5, 2))
        planes = Hyperplanes(a / np.linalg.norm(a, axis=1, keepdims=True), rng.uniform(-1, 1, 5))
        back, factors = InputMap(M).back(planes)
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

    def test_a_learned_map_keeps_its_directions(self):
        """Lengths are those under the map, up to one factor; what the map ignores stays within a ten-thousandth."""
        rng = rng_of(3)
        A = rng.normal(size=(2, 3))
        X = rng.uniform(-0.5, 0.5, (50, 3))
        metric = Learned(tuple(map(tuple, A.tolist())))
        M = metric.prepare(Jet(X, X[:, 0])).matrix
        steps = rng.normal(size=(100, 3))
        ratios = np.linalg.norm(steps @ M.T, axis=1) / np.linalg.norm(steps @ A.T, axis=1)
        assert_allclose(ratios, ratios[0], rtol=1e-2)
        ignored = np.linalg.svd(A)[2][2]
        assert 0 < np.linalg.norm(M @ ignored) < 2e-4 * np.linalg.norm(M)
        assert_allclose(np.linalg.norm(X @ M.T, axis=1).max(), np.linalg.norm(X, axis=1).max())
        assert not metric.needs
        assert Learned(((0.0, 0.0),)).prepare(Jet(X[:, :2], X[:, 0])) is None

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
    def smooth(self, noise, n=200):
        rng = rng_of(0)
        X = rng.uniform(-0.7, 0.7, size=(n, 2))
        return Jet(X, np.exp(X.sum(axis=1)) + noise * rng.normal(size=n))

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

    def test_are_not_taken_with_noise(self):
        fine, coarse = self.fits(0.1)
        assert fine.alpha == coarse.alpha > 1e-9
        assert not fine.precise

    def test_of_a_large_problem_are_tried_if_they_may_help(self):
        """2000 rows and 200 neurons: noise takes the alphas of a Gram matrix, a smooth function goes on."""
        fits = [fit_random(self.smooth(noise, 2000), Uniform(), Sigmoid(0.8), 200, rng_of(0)) for noise in (0.1, 0.0)]
        assert [fit.alphas.min() for fit in fits] == [ALPHAS[-1], 1e-24]

    @pytest.mark.parametrize("rule", [LeaveOneOut(), GeneralizedCrossValidation()], ids=repr)
    def test_never_raise_the_error(self, rule):
        fine, coarse = self.fits(0.0, rule=rule)
        assert fine.error <= 1.05 * coarse.error  # the largest alpha within 5% of the best

    def test_are_not_tried_if_they_cost_too_much(self):
        features = self.fits(0.0)[0].network.features
        problem = LeastSquares(features, self.smooth(0.0))
        fit = OuterWeights(problem, max_precise_operations=1e6).fit
        assert fit.alpha == ALPHAS[-1]

    def test_that_are_given_are_met(self):
        """A given alpha below the rounding of a Gram matrix takes the precise form by itself."""
        fit = fit_random(self.smooth(0.0), Uniform(), Sigmoid(0.8), 80, rng_of(0), alphas=np.array([1e-8, 1e-20]))
        assert_array_equal(fit.alphas, [1e-8, 1e-20])
        assert fit.precise == (fit.alpha == 1e-20)
