"""The estimator that chooses between engines."""

import pickle
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
)
from nurf.choosing import Effort
from nurf.estimators import Leaderboard, Standing
from nurf.jets import Jet

QUICK = {"density": "uniform", "width": 0.4, "growth": None, "gradient_weight": 0.0}
SMALL = [KernelFeatureRegressor("gaussian", metric="scales"), RandomFeatureRegressor(40, **QUICK, random_state=0)]
DEEP = DeepFeatureRegressor((8, 8), steps=30, random_state=0)


def wave(n, seed=0):
    """A function of two inputs that varies along both."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    u, v = X.T
    return Jet(
        X, np.sin(3 * u) + u * np.cos(2 * v), np.stack([3 * np.cos(3 * u) + np.cos(2 * v), -2 * u * np.sin(2 * v)], 1)
    )


def ridges(n, d=30, seed=0):
    """A function of three directions of ``d`` inputs, and these directions."""
    A = np.linalg.qr(np.random.default_rng(7).normal(size=(d, 3)))[0]
    X = np.random.default_rng(seed).uniform(-1, 1, (n, d))
    u, v, w = (X @ A).T
    return Jet(X, np.sin(2 * u) + v * w, np.stack([2 * np.cos(2 * u), w, v], 1) @ A.T), A


def fitted(engines=None, n=60, budget=None, **options):
    data = wave(n)
    return Surrogate(budget, engines=engines or SMALL, **options).fit(data.X, data.y, gradients=data.gradients), data


def test_a_notebook_shows_the_error_and_the_table_of_engines():
    X = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    model = Surrogate(engines=["wide"], random_state=0)
    assert "Estimated error" not in model._repr_mimebundle_()["text/html"]
    model.fit(X, np.sin(2 * X[:, 0]) + X[:, 1])
    line = f"Estimated error at new points: {model.estimated_error_:.3g} ("
    for html in (model._repr_mimebundle_()["text/html"], model._repr_html_()):
        assert html.count(line) == 1
    report = model.report()
    assert '<th scope="row" style=' in report._repr_html_()
    assert report._repr_html_().count("<table") == 2
    assert model.leaderboard_._repr_html_() in report._repr_html_()
    assert str(model.leaderboard_).splitlines()[1] in str(report)
    model.fit(X[:2], X[:2, 0])
    assert "Estimated error at new points: not known" in model._repr_html_()


class TestChoice:
    def test_predictions_are_those_of_the_engine_that_is_chosen(self):
        # the bad one has three neurons of one width: its error is hundreds of times larger
        bad = RandomFeatureRegressor(3, **QUICK, random_state=0)
        good = RandomFeatureRegressor(60, random_state=0)
        for engines in ([bad, good], [good, bad]):
            model, data = fitted(engines, n=200)
            assert model.model_.n_neurons == 60
            assert [row.engine for row in model.leaderboard_] == ["RandomFeatureRegressor"] * 2
            assert model.leaderboard_[0].error < 0.1 * model.leaderboard_[1].error
            alone = clone(good).fit(data.X, data.y, gradients=data.gradients)
            assert_array_equal(model.predict(data.X), alone.predict(data.X))
            assert_array_equal(model.predict_gradient(data.X), alone.predict_gradient(data.X))
            assert_array_equal(model.predict_hessian(data.X), alone.predict_hessian(data.X))
            assert_array_equal(model.predict_interval(data.X), alone.predict_interval(data.X))
            assert_array_equal(model.predict(data.X, return_std=True)[1], alone.predict(data.X, return_std=True)[1])
            assert_allclose(model.estimated_error_, alone.estimated_error_, rtol=0.2)  # what choosing adds may differ
            assert_array_equal(model.function()(data.X[0]), alone.function()(data.X[0]))

    def test_the_best_of_its_engines_on_unseen_points(self):
        """Errors at fresh points: in doubt the first one stays, but not if it is much worse."""
        data, fresh = wave(100), wave(2000, seed=1)
        engines = [*SMALL, DEEP, RandomFeatureRegressor(100, random_state=0)]
        model = Surrogate(None, engines=engines, random_state=0).fit(data.X, data.y, gradients=data.gradients)
        errors = []
        for engine in engines:
            alone = clone(engine).fit(data.X, data.y, gradients=data.gradients)
            errors.append(np.sqrt(np.mean((alone.predict(fresh.X) - fresh.y) ** 2)))
        error = np.sqrt(np.mean((model.predict(fresh.X) - fresh.y) ** 2))
        assert error < 5 * min(errors)
        assert max(errors) > 100 * min(errors)

    def test_the_first_engine_wins_in_doubt(self):
        """Both are the same: with few samples the rule is not used."""
        engines = [RandomFeatureRegressor(20, **QUICK, selection=name, random_state=0) for name in ("loo", "gcv")]
        for order in (engines, engines[::-1]):
            model, _ = fitted(order)
            assert model.model_.selection == order[0].selection
            first, second = model.leaderboard_
            assert_allclose(first.error, second.error, rtol=1e-6)

    def test_a_seed_gives_each_engine_its_own_numbers(self):
        engines = [RandomFeatureRegressor(20, **QUICK), RandomFeatureRegressor(20, **QUICK)]
        one, two, other = (fitted(engines, random_state=seed)[0] for seed in (1, 1, 2))
        X = wave(50, seed=3).X
        assert_array_equal(one.predict(X), two.predict(X))
        assert one.leaderboard_ != two.leaderboard_  # seconds
        assert [row.error for row in one.leaderboard_] == [row.error for row in two.leaderboard_]
        assert np.any(one.predict(X) != other.predict(X))
        assert one.leaderboard_[0].error != one.leaderboard_[1].error

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("wide", KernelFeatureRegressor),
            ("sampled", RandomFeatureRegressor),
            ("trained", DeepFeatureRegressor),
            ("sparse", SparseFeatureRegressor),
        ],
    )
    def test_the_engines_of_names_are_those_of_the_documentation(self, name, kind):
        X = np.linspace(-1, 1, 12)[:, None]
        for engines in (name, [name]):
            model = Surrogate(0.1, engines=engines, random_state=0).fit(X, np.sin(X[:, 0]))
            assert (model.engine_, type(model.model_)) == (name, kind)
            assert [row.engine for row in model.leaderboard_] == [name]

    @pytest.mark.parametrize("n", [3, 20, 300])
    def test_all_engines_are_for_any_number_of_samples(self, n):
        data = wave(n)
        model = Surrogate(0.1, random_state=0).fit(data.X, data.y, gradients=data.gradients)
        assert {row.engine for row in model.leaderboard_} == {"wide", "sampled", "trained"}
        assert model.leaderboard_[0].engine == model.engine_

    @pytest.mark.parametrize(
        ("engines", "message"),
        [
            ("deep", "`engines` must be one of .*, got 'deep'"),
            (["wide", 3], "`engines` must be one of .*, got 3"),
            ([], "`engines` must be 'auto', or names or estimators, at least one, got"),
            (None, "`engines` must be 'auto', or names or estimators, at least one, got None"),
        ],
    )
    def test_unknown_engines(self, engines, message):
        X = np.linspace(-1, 1, 12)[:, None]
        with pytest.raises(ValueError, match=message):
            Surrogate(engines=engines).fit(X, X[:, 0])

    def test_parameters_and_estimators_that_are_given_stay_as_they_are(self):
        model, _ = fitted([*SMALL, DEEP])
        assert model.engines[2] is DEEP
        assert not any(hasattr(engine, "fit_") for engine in model.engines)
        assert_array_equal(pickle.loads(pickle.dumps(model)).predict(wave(5).X), model.predict(wave(5).X))

    @pytest.mark.parametrize("gradients", [False, True])
    def test_samples_of_negligible_weight_change_nothing(self, gradients):
        """They are left out at the door, so that all engines are compared at the samples that remain."""
        data, heavy = wave(60), np.arange(60) % 3 != 1
        weights = np.where(heavy, 1.0, 1e-300)
        known = {"gradients": data.gradients} if gradients else {}
        for target in (None, "asinh"):
            model, other = (Surrogate(None, engines=SMALL, target=target, random_state=0) for _ in range(2))
            model.fit(data.X, data.y, sample_weight=weights, **known)
            other.fit(data.X[heavy], data.y[heavy], **{name: part[heavy] for name, part in known.items()})
            assert len(model.leaderboard_) == len(SMALL)
            assert_allclose(model.predict(data.X), other.predict(data.X), rtol=1e-9)

    def test_validation_samples_are_the_same_for_all_engines(self):
        data, seen = wave(80), []

        class Watching(RandomFeatureRegressor):
            def _prepare(self, request):
                seen.append((request.jet, request.held_out))
                return super()._prepare(request)

        model = Surrogate(None, engines=[Watching(10, random_state=0), Watching(20, random_state=0)], random_state=0)
        model.fit(data.X, data.y, validation=0.25)
        assert all(len(validation) == 20 and len(jet) == 60 for jet, validation in seen)
        assert_array_equal(seen[0][1].X, seen[1][1].X)
        assert_array_equal(seen[0][0].X, seen[1][0].X)

    @pytest.mark.parametrize("engine", [*SMALL, DEEP, SparseFeatureRegressor(random_state=0)], ids=type)
    def test_validation_samples_judge_every_engine(self, engine):
        """Values of which the training samples know nothing: the error that is reported is theirs."""
        data, other = wave(60), wave(40, seed=1)
        far = Jet(other.X, other.y + 100)
        model = Surrogate(None, engines=engine).fit(data.X, data.y, validation=far)
        assert model.estimated_error_ > 50


class TestFewDirections:
    @pytest.mark.parametrize("engine", [*SMALL, DEEP], ids=lambda engine: type(engine).__name__)
    def test_of_many_inputs_are_found_for_all_engines(self, engine):
        data, A = ridges(150)
        fresh, _ = ridges(1000, seed=1)
        model = Surrogate(None, engines=engine).fit(data.X, data.y, gradients=data.gradients)
        assert model.scaling_.x_basis.shape == (30, 3)
        gradients = model.predict_gradient(fresh.X)
        assert gradients.shape == (1000, 30)
        assert_allclose(gradients @ A @ A.T, gradients, atol=1e-6)  # nothing across the directions
        step = 1e-2 * A[:, 0]  # third derivatives up to 8: 1e-4 of the slope; rounding errors of 1e-6 as much
        slopes = (model.predict(fresh.X + step) - model.predict(fresh.X - step)) / 2e-2
        assert_allclose(gradients @ A[:, 0], slopes, atol=1e-3)

    def test_make_the_error_small(self):
        """That of forty uniform neurons for 30 inputs is eight times larger."""
        data, _ = ridges(150)
        fresh, _ = ridges(1000, seed=1)
        model = Surrogate(None, engines=SMALL[1]).fit(data.X, data.y, gradients=data.gradients)
        plain = clone(SMALL[1]).fit(data.X, data.y, gradients=data.gradients)
        errors = [np.sqrt(np.mean((each.predict(fresh.X) - fresh.y) ** 2)) for each in (model, plain)]
        assert errors[0] < 0.2 * errors[1]
        assert errors[0] / 3 < model.estimated_error_ < 3 * errors[0]

    def test_are_named_in_the_report(self):
        data, _ = ridges(150)
        model = Surrogate(None, engines=SMALL[1]).fit(data.X, data.y, gradients=data.gradients)
        assert "3 directions of 30" in str(model.report())

    def test_all_inputs_win_if_the_directions_were_not_all(self):
        """Gradients along one of three directions, and nobody who checks them: the evidence does."""
        data, A = ridges(300, d=6)
        wrong = data.gradients @ A[:, 1:2] @ A[:, 1:2].T
        model = Surrogate(None, engines=RandomFeatureRegressor(100, **QUICK, random_state=0), check_gradients=False)
        assert model.fit(data.X, data.y, gradients=wrong).scaling_.x_basis is None
        assert model.score(data.X, data.y) > 0.9

    def test_are_not_taken_if_the_gradients_are_wrong(self):
        data, _ = ridges(150)
        with pytest.warns(UserWarning, match="gradients"):
            model = Surrogate(None, engines=SMALL[1]).fit(data.X, data.y, gradients=-data.gradients)
        assert model.scaling_.x_basis is None

    def test_every_engine_reports_all_inputs(self):
        data, _ = ridges(60, d=8)
        for engine in (*SMALL, DEEP):
            model = Surrogate(None, engines=engine).fit(data.X, data.y, gradients=data.gradients)
            assert model.scaling_.x_basis is not None
            assert type(engine).__name__ in str(model.report())
            assert model.n_features_in_ == model.model_.n_features_in_ == 8
        wide = Surrogate(None, engines=SMALL[0]).fit(data.X, data.y, gradients=data.gradients).model_
        assert wide.relevance_.shape == (8,)

    def test_are_not_there_without_gradients_or_with_as_many_directions(self):
        data, _ = ridges(60)
        assert Surrogate(None, engines=SMALL).fit(data.X, data.y).scaling_.x_basis is None
        assert fitted()[0].scaling_.x_basis is None


class TestManyRows:
    def test_an_infinitely_wide_network_takes_a_part_of_many_values(self):
        """The others judge. Noise of 0.1: its mean square over 400 samples is known to 7%, the error to 3.5%."""
        rng, data, fresh = np.random.default_rng(2), wave(400).only(()), wave(2000, seed=1)
        wide = KernelFeatureRegressor("gaussian", max_rows=100)
        model = Surrogate(None, engines=[wide]).fit(data.X, data.y + 0.1 * rng.normal(size=400))
        assert model.model_.n_rows_ <= 100
        error = np.sqrt(np.mean((model.predict(fresh.X) - fresh.y) ** 2) + 0.1**2)
        assert error < 0.12
        assert_allclose(model.estimated_error_, error, rtol=0.2)

    def test_it_is_compared_with_engines_that_take_all(self):
        """Few rows of a function that bends much, against a network for all rows."""
        X = np.random.default_rng(0).uniform(-1, 1, (1000, 1))
        y = np.sin(40 * X[:, 0])
        engines = [KernelFeatureRegressor("gaussian", max_rows=12), RandomFeatureRegressor(200, random_state=0)]
        model = Surrogate(None, engines=engines).fit(X, y)
        assert model.engine_ == "RandomFeatureRegressor"
        assert model.leaderboard_[1].error > 100 * model.leaderboard_[0].error


class TestData:
    @pytest.mark.parametrize("n", [1, 2, 3, 5])
    def test_few_samples(self, n):
        X = np.linspace(0, 1, n)[:, None]
        model = Surrogate(None, engines=[*SMALL, DEEP]).fit(X, 3 * X[:, 0] + 1)
        assert np.all(np.isfinite(model.predict(X)))
        assert np.isnan(model.estimated_error_) == (n < 3)

    def test_all_kinds_of_data(self):
        data, rng = wave(40), np.random.default_rng(0)
        gradients = np.stack([data.gradients, -data.gradients], axis=1)
        gradients[rng.random(gradients.shape) < 0.3] = np.nan
        y = np.stack([data.y, 1 - data.y], axis=1)
        options = {"sample_weight": rng.uniform(0.5, 1, 40), "hessians": np.full((40, 2, 2, 2), np.nan)}
        model = Surrogate(None, engines=[*SMALL, DEEP]).fit(data.X, y, gradients=gradients, **options)
        assert model.predict(data.X).shape == (40, 2)
        assert model.estimated_error_.shape == (2,)
        assert model.predict_interval(data.X).shape == (40, 2, 2)
        along = np.einsum("nd,nd->n", data.gradients, data.X)
        ray = Surrogate(None, engines=SMALL).fit(data.X, data.y, gradients=along, directions=data.X)
        assert ray.score(data.X, data.y) > 0.9
        part = Surrogate(None, engines=SMALL).fit(
            data.X[:30], data.y[:30], gradients=data.gradients, gradients_at=data.X
        )
        assert part.score(data.X, data.y) > 0.9

    @pytest.mark.parametrize("n", [60, 200])
    def test_many_outputs(self, n):
        """Sampled networks are compared by combinations of more than ten outputs, the others by all."""
        data = wave(n)
        y = data.y[:, None] * np.linspace(1, 2, 12) + np.linspace(0, 5, 12)
        engines = [SMALL[0], RandomFeatureRegressor(150, random_state=0)]
        model = Surrogate(None, engines=engines).fit(data.X, y)
        assert model.predict(data.X).shape == (n, 12)
        assert model.estimated_error_.shape == (12,)
        assert_allclose(model.estimated_error_ / np.linspace(1, 2, 12), model.estimated_error_[0], rtol=0.01)

    def test_names_of_columns_reach_the_report(self):
        data = wave(30)
        frame = pd.DataFrame(data.X, columns=["width", "height"])
        model = Surrogate(None, engines=SMALL[:1]).fit(frame, data.y)
        assert "width" in str(model.report())
        assert list(model.model_.feature_names_in_) == ["width", "height"]

    def test_wrong_gradients_are_named_once(self):
        data = wave(60)
        with pytest.warns(UserWarning, match="gradients") as caught:
            model = Surrogate(None, engines=SMALL).fit(data.X, data.y, gradients=-data.gradients)
        assert len(caught) == 1
        assert model.gradient_check_.consistent is False
        assert "contradict" in str(model.report())
        with pytest.raises(ValueError, match="contradict"):
            Surrogate(engines=SMALL, check_gradients="raise").fit(data.X, data.y, gradients=-data.gradients)

    def test_a_fit_to_values_has_no_check(self):
        data = wave(30)
        assert Surrogate(None, engines=SMALL).fit(data.X, data.y).gradient_check_ is None


class Broken(RandomFeatureRegressor):
    """An estimator whose parameters mean nothing for the data."""

    def _prepare(self, *arguments, **options):
        raise np.linalg.LinAlgError("the matrix is singular")


@dataclass(frozen=True)
class Failing:
    """An engine that fails when it is judged."""

    error: Exception
    name, data, transform, first_step, efforts = "failing", "all data", "", 0, (Effort(1),)

    def candidates(self):
        return ["only"]

    def judge(self, candidate, size, before):
        raise self.error


class Fragile(RandomFeatureRegressor):
    """An estimator whose engine fails."""

    error = ValueError("the values are too large")

    def _prepare(self, request):
        return replace(super()._prepare(request), engines=(Failing(self.error),))


class TestFailures:
    @pytest.mark.parametrize(
        ("engine", "reason"), [(Broken(), "the matrix is singular"), (Fragile(), "the values are too large")]
    )
    def test_an_engine_that_fails_does_not_stop_the_others(self, engine, reason):
        name = type(engine).__name__
        with pytest.warns(UserWarning, match=f"engine {name} failed: {reason}"):
            model, data = fitted([engine, *SMALL])
        assert model.leaderboard_[-1] == Standing(name, np.inf, model.leaderboard_[-1].seconds, f"failed: {reason}")
        assert f"failed: {reason}" in str(model.report())
        assert_array_equal(model.predict(data.X), fitted()[0].predict(data.X))

    def test_if_all_fail_the_reasons_are_named_and_the_model_stays(self):
        model, data = fitted()
        before = model.predict(data.X)
        model.set_params(engines=[Fragile(), Broken()])
        with pytest.raises(ValueError, match="no engine could be fitted to these data") as caught:
            model.fit(data.X, data.y)
        for reason in ("Broken failed: the matrix is singular", "Fragile failed: the values are too large"):
            assert reason in str(caught.value)
        assert_array_equal(model.predict(data.X), before)

    def test_an_error_of_the_program_is_raised(self):
        class Wrong(Fragile):
            error = TypeError("a bug")

        with pytest.raises(TypeError, match="a bug"):
            fitted([Wrong(), *SMALL])


class TestBudget:
    @pytest.mark.parametrize("n", [30, 1000])
    @pytest.mark.parametrize("budget", [0.05, 0.5])
    def test_is_a_deadline(self, ticks, n, budget):
        """Few looks at the clock follow the deadline; the whole schedule looks at it a thousand times."""
        data = wave(n)
        model = Surrogate(budget, random_state=0).fit(data.X, data.y, gradients=data.gradients)
        assert ticks.seconds < budget + 0.02
        assert not model.finished_
        assert model.score(data.X, data.y) > 0.9

    def test_there_is_a_model_however_short_it_is(self):
        data = wave(60)
        model = Surrogate(1e-9, random_state=0).fit(data.X, data.y, gradients=data.gradients)
        assert len(model.fit_.attempts) == 1
        assert model.score(data.X, data.y) > 0.9
        assert not model.finished_
        assert "cut off by the time budget" in str(model.report())
        assert [row.setting for row in model.leaderboard_[1:]] == ["not run: there was no time left"] * 2
        assert [row.error for row in model.leaderboard_[1:]] == [np.inf] * 2

    def test_without_one_the_schedule_comes_to_its_end(self):
        model, _ = fitted()
        assert model.finished_
        assert "cut off" not in str(model.report())
        assert np.isfinite([row.error for row in model.leaderboard_]).all()

    def test_one_that_suffices_changes_nothing(self):
        """Estimators that are given are fitted as they are."""
        engines = [*SMALL, DEEP]
        models = [fitted(engines, budget=budget, random_state=0)[0] for budget in (None, 1e6)]
        X = wave(50, seed=3).X
        assert models[1].finished_
        assert_array_equal(models[0].predict(X), models[1].predict(X))

    def test_more_time_never_takes_candidates_away(self, ticks):
        """What was tried in a short time is tried in a longer one, in the same order, with the same errors."""
        data = wave(40)
        models = [Surrogate(b, engines="sampled", random_state=0).fit(data.X, data.y) for b in (0.01, 0.03, None)]
        tried = [[(each.label, each.size, each.error) for each in model.fit_.attempts] for model in models]
        for short, long in pairwise(tried):
            assert len(short) < len(long)
            assert long[: len(short)] == short

    @pytest.mark.parametrize("budget", [0, -1.0, "20", np.nan])
    def test_must_be_a_number(self, budget):
        X = np.linspace(-1, 1, 20)[:, None]
        with pytest.raises(ValueError, match="`time_budget` must be None or a number > 0, got"):
            Surrogate(budget, engines=SMALL).fit(X, X[:, 0])


class TestLeaderboard:
    ROWS = (Standing("sampled", 0.012, 1.25, "20 neurons"), Standing("wide", np.inf, 0.0, "not run: 9 > <8>"))

    def test_text(self):
        assert str(Leaderboard(self.ROWS)).splitlines() == [
            "engine   estimated error  seconds  setting",
            "sampled  0.012            1.2      20 neurons",
            "wide     -                0        not run: 9 > <8>",
        ]

    def test_html_and_frame(self):
        board = Leaderboard(self.ROWS)
        assert "<td" in board._repr_html_()
        assert "not run: 9 &gt; &lt;8&gt;" in board._repr_html_()
        assert list(pd.DataFrame(board).columns) == ["engine", "error", "seconds", "setting"]
        assert board[0].engine == "sampled"
        assert [row.engine for row in board[1:]] == ["wide"]


def test_every_engine_reports_itself():
    X = np.linspace(-1, 1, 25)[:, None]
    for engine in (*SMALL, DEEP, SparseFeatureRegressor(random_state=0)):
        model = Surrogate(None, engines=[engine]).fit(X, np.tanh(5 * X[:, 0]))
        text = str(model.report())
        assert text.startswith("The best of 1 engine, ")
        assert type(engine).__name__ in text
        assert "estimated error" in text


def test_progress(capsys):
    fitted(verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("nurf: ") and ": wide, GaussianKernel" in line for line in lines)
    assert any(": sampled, uniform, width 0.4" in line for line in lines)
    fitted(verbose=0)
    assert not capsys.readouterr().err
