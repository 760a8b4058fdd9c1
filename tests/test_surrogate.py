"""The estimator that chooses between engines."""

import pickle

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
    problems,
)
from nurf.estimators import Leaderboard, Standing, _engines
from nurf.estimators._engines import Effort, Sampled, Trained, Wide, _largest
from nurf.jets import Jet

QUICK = {"density": "uniform", "width": 0.4, "growth": None, "gradient_weight": 0.0}
SMALL = [KernelFeatureRegressor("gaussian", metric="scales"), RandomFeatureRegressor(40, **QUICK, random_state=0)]
DEEP = DeepFeatureRegressor((8, 8), steps=30, random_state=0)


def wave(n, seed=0):
    problem = problems.get("planar_wave")
    return problem.jet(problem.sample(n, np.random.default_rng(seed))).only(("gradients",))


def fitted(engines=None, n=60, **options):
    data = wave(n)
    return Surrogate(engines=engines or SMALL, **options).fit(data.X, data.y, gradients=data.gradients), data


class TestChoice:
    def test_predictions_are_those_of_the_engine_of_the_smallest_estimate(self):
        # the bad one has three neurons of one width: on this wave its error is hundreds of times larger
        bad = RandomFeatureRegressor(3, **QUICK, random_state=0)
        good = RandomFeatureRegressor(60, random_state=0)
        for engines in ([bad, good], [good, bad]):
            model, data = fitted(engines, n=200)
            assert model.model_.n_neurons == 60
            assert [row.engine for row in model.leaderboard_] == ["RandomFeatureRegressor"] * 2
            assert model.leaderboard_[0].error < model.leaderboard_[1].error
            alone = clone(good).fit(data.X, data.y, gradients=data.gradients)
            assert_array_equal(model.predict(data.X), alone.predict(data.X))
            assert_array_equal(model.predict_gradient(data.X), alone.predict_gradient(data.X))
            assert_array_equal(model.predict_hessian(data.X), alone.predict_hessian(data.X))
            assert_array_equal(model.predict_interval(data.X), alone.predict_interval(data.X))
            assert_array_equal(model.predict(data.X, return_std=True)[1], alone.predict(data.X, return_std=True)[1])
            assert model.estimated_error_ == alone.estimated_error_
            assert_allclose(model.function()(data.X[0]), alone.predict(data.X[:1])[0], rtol=1e-9)

    @pytest.mark.parametrize(("error", "winner"), [(1.0, 0), (0.9, 0), (0.75, 0), (0.65, 1)])
    def test_the_first_engine_wins_in_doubt(self, error, winner):
        # with 100 samples an error must be smaller by 1 + 4/10, and by 2%
        class Fake(RandomFeatureRegressor):
            @property
            def fit_(self):
                return self._found

            @fit_.setter
            def fit_(self, fit):
                self._found = type(fit)(**(vars(fit) | {"output_errors": np.array([self.width])}))

        engines = [Fake(20, width=width, random_state=0) for width in (1.0, error)]
        model, _ = fitted(engines, n=100)
        assert model.model_.width == engines[winner].width
        assert [row.error for row in model.leaderboard_] == [engines[i].width for i in (winner, 1 - winner)]

    def test_a_seed_gives_each_engine_its_own_numbers(self):
        engines = [RandomFeatureRegressor(20, **QUICK), RandomFeatureRegressor(20, **QUICK)]
        one, two, other = (fitted(engines, random_state=seed)[0] for seed in (1, 1, 2))
        X = wave(50, seed=3).X
        assert_array_equal(one.predict(X), two.predict(X))
        assert one.leaderboard_ != two.leaderboard_  # seconds
        assert [row.error for row in one.leaderboard_] == [row.error for row in two.leaderboard_]
        assert np.any(one.predict(X) != other.predict(X))
        assert one.leaderboard_[0].error != one.leaderboard_[1].error

    def test_the_engines_of_names_are_those_of_the_documentation(self):
        X = np.linspace(-1, 1, 12)[:, None]
        model = Surrogate(engines="wide").fit(X, np.sin(X[:, 0]))
        assert (model.engine_, type(model.model_)) == ("wide", KernelFeatureRegressor)
        model = Surrogate(0.5, engines=["sparse", "sampled"], random_state=0).fit(X, np.sin(X[:, 0]))
        assert {row.engine for row in model.leaderboard_} == {"sparse", "sampled"}

    def test_parameters_and_estimators_that_are_given_stay_as_they_are(self):
        model, _ = fitted([*SMALL, DEEP])
        assert model.engines[2] is DEEP
        assert not hasattr(DEEP, "fit_")
        assert_array_equal(pickle.loads(pickle.dumps(model)).predict(wave(5).X), model.predict(wave(5).X))

    def test_validation_samples_are_the_same_for_all_engines(self):
        data, seen = wave(80), []

        class Watching(RandomFeatureRegressor):
            def _fit(self, jet, validation):
                seen.append((jet, validation))
                return super()._fit(jet, validation)

        model = Surrogate(engines=[Watching(10, random_state=0), Watching(20, random_state=0)], random_state=0)
        model.fit(data.X, data.y, validation=0.25)
        assert all(isinstance(validation, Jet) and len(validation) == 20 for _, validation in seen)
        assert_array_equal(seen[0][1].X, seen[1][1].X)
        assert_array_equal(seen[0][0].X, seen[1][0].X)

    def test_few_samples_are_fitted_by_an_infinitely_wide_network(self):
        data = wave(21)
        for n, engines in ((20, {"wide"}), (21, {"wide", "sampled", "trained"})):
            model = Surrogate(0.1, random_state=0).fit(data.X[:n], data.y[:n])
            assert {row.engine for row in model.leaderboard_} == engines


class TestData:
    @pytest.mark.parametrize("n", [1, 2, 3, 5])
    def test_few_samples(self, n):
        X = np.linspace(0, 1, n)[:, None]
        model = Surrogate(engines=[*SMALL, DEEP]).fit(X, 3 * X[:, 0] + 1)
        assert np.all(np.isfinite(model.predict(X)))
        assert np.isnan(model.estimated_error_) == (n < 3)

    def test_all_kinds_of_data(self):
        data, rng = wave(40), np.random.default_rng(0)
        gradients = np.stack([data.gradients, -data.gradients], axis=1)
        gradients[rng.random(gradients.shape) < 0.3] = np.nan
        y = np.stack([data.y, 1 - data.y], axis=1)
        options = {"sample_weight": rng.uniform(0.5, 1, 40), "hessians": np.full((40, 2, 2, 2), np.nan)}
        model = Surrogate(engines=[*SMALL, DEEP]).fit(data.X, y, gradients=gradients, **options)
        assert model.predict(data.X).shape == (40, 2)
        assert model.estimated_error_.shape == (2,)
        assert model.predict_interval(data.X).shape == (40, 2, 2)
        along = np.einsum("nd,nd->n", data.gradients, data.X)
        assert Surrogate(engines=SMALL).fit(data.X, data.y, gradients=along, directions=data.X).score(data.X, data.y)
        part = Surrogate(engines=SMALL).fit(data.X[:30], data.y[:30], gradients=data.gradients, gradients_at=data.X)
        assert part.score(data.X, data.y) > 0.9

    def test_names_of_columns_reach_the_report(self):
        data = wave(30)
        frame = pd.DataFrame(data.X, columns=["width", "height"])
        model = Surrogate(engines=SMALL[:1]).fit(frame, data.y)
        assert "width" in str(model.report())
        assert list(model.model_.feature_names_in_) == ["width", "height"]

    def test_wrong_gradients_are_named_once(self):
        data = wave(60)
        with pytest.warns(UserWarning, match="gradients") as caught:
            model = Surrogate(engines=SMALL).fit(data.X, data.y, gradients=-data.gradients)
        assert len(caught) == 1
        assert model.gradient_check_.consistent is False
        assert "contradict" in str(model.report())
        with pytest.raises(ValueError, match="contradict"):
            Surrogate(engines=SMALL, check_gradients="raise").fit(data.X, data.y, gradients=-data.gradients)


class Broken(RandomFeatureRegressor):
    """An engine that cannot be fitted."""

    def _fit(self, jet, validation):
        raise np.linalg.LinAlgError("the matrix is singular")


class TestFailures:
    def test_an_engine_that_fails_does_not_stop_the_others(self):
        with pytest.warns(UserWarning, match="engine Broken failed: the matrix is singular"):
            model, _ = fitted([Broken(), *SMALL])
        assert model.leaderboard_[-1] == Standing(
            "Broken", np.inf, model.leaderboard_[-1].seconds, "failed: the matrix is singular"
        )
        assert "failed: the matrix is singular" in str(model.report())

    def test_if_all_fail_the_reasons_are_named_and_the_model_stays(self):
        model, data = fitted()
        before = model.predict(data.X)
        model.set_params(engines=[Broken()])
        with pytest.raises(ValueError, match="no engine could be fitted to these data: Broken failed: the matrix"):
            model.fit(data.X, data.y)
        assert_array_equal(model.predict(data.X), before)


class TestBudget:
    def test_a_budget_decides_how_much_engines_do(self):
        data, effort = wave(500), Effort()
        assert Wide().model(data, effort, 1e9).max_rows == 1500
        assert Wide().model(wave(300), effort.for_budget(0.5), 1e9).max_rows == round(1500 / 40 ** (1 / 3))
        assert Sampled().model(data, effort, 1e9).n_neurons == 1000
        assert Sampled().model(wave(1001), effort, 1e9).n_neurons == 2400
        assert Sampled().model(data, effort.for_budget(80.0), 1e9).n_neurons == 2000
        assert Trained().model(data, effort, 1e9).steps == 2700
        assert Trained().model(data, effort.for_budget(40.0), 1e9).steps == 5400

    def test_engines_do_less_if_there_is_less_time(self):
        data, effort = wave(300), Effort()
        assert Wide().model(data, effort, 3.0).max_rows <= 900
        assert Sampled().model(data, effort, 1e-9).n_neurons == 100
        with pytest.raises(_engines.OutOfBudgetError, match="300 values are more than the"):
            Wide().model(data, effort, 1e-9)
        with pytest.raises(_engines.OutOfBudgetError, match="there is time for 1 of 2700 steps"):
            Trained().model(data, effort, 1e-9)
        assert _largest(1000, 1.0, lambda size: size / 500) == 409  # 1000, 800, 640, 512, 409

    def test_each_engine_has_its_share_of_what_is_left(self, monkeypatch):
        now, given = [0.0], []
        monkeypatch.setattr(_engines.time, "perf_counter", lambda: now[0])
        monkeypatch.setattr("nurf.estimators._surrogate.time.perf_counter", lambda: now[0])

        class Slow(RandomFeatureRegressor):
            def _fit(self, jet, validation):
                now[0] += 9.0
                return super()._fit(jet, validation)

        def model(self, jet, effort, seconds):
            given.append(seconds)
            return Slow(5, random_state=0)

        for engine in (Wide, Sampled, Trained):
            monkeypatch.setattr(engine, "model", model)
        data = wave(40)  # twenty samples for each input
        Surrogate(20.0).fit(data.X, data.y)
        assert_allclose(given, [20 * 0.75 / 2.75, 11 / 2, 2])
        late = Surrogate(10.0, random_state=0).fit(data.X, data.y)
        assert late.leaderboard_[-1].setting == "not run: there is no time left"
        assert_allclose(given[3:], [10 * 0.75 / 2.75, 1 / 2])

    def test_without_a_limit_the_sizes_are_the_usual_ones(self):
        X = np.linspace(-1, 1, 15)[:, None]
        model = Surrogate(None, random_state=0).fit(X, np.sin(2 * X[:, 0]))
        assert len(model.leaderboard_) == 3
        assert np.isfinite([row.error for row in model.leaderboard_]).all()


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
        model = Surrogate(engines=[engine]).fit(X, np.tanh(5 * X[:, 0]))
        text = str(model.report())
        assert text.startswith("The best of 1 engine, ")
        assert type(engine).__name__ in text
        assert "estimated error" in text


def test_progress(capsys):
    fitted(verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert any("KernelFeatureRegressor" in line for line in lines)
    fitted(verbose=0)
    assert not capsys.readouterr().err
