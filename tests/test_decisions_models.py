"""What can be asked: pipelines, searches and inputs that are numbers, against the same question by hand."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm, uniform
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from exact import Exact
from nurf import GradientPipeline, KernelFeatureRegressor, RandomFeatureRegressor
from nurf.decisions import failure, minimize, propagate, sensitivity

NAMES = ["speed", "angle", "mass"]
QUESTIONS = [sensitivity, propagate, failure, minimize]


def data(n=40, d=3):
    X = np.random.default_rng(0).uniform(1, 3, (n, d))
    return X, X[:, 0] ** 2 + np.sin(X[:, 1]) * X[:, -1]


def logs():
    return FunctionTransformer(np.log, np.exp, check_inverse=False)


def asked(question, model, inputs, **options):
    few = {"n_draws": 5, "random_state": 0} | ({} if question is minimize else {"n_points": 64})
    limit = {"above": 6.0} if question is failure else {}
    return question(model, inputs, **few, **limit, **options)


def numbers(answer):
    """Return what a question found, as numbers."""
    return np.concatenate([np.ravel(np.asarray(column, float)) for column in list(dict(answer.table()).values())[1:]])


class TestPipelines:
    @pytest.mark.parametrize("target", [None, "log"])
    @pytest.mark.parametrize("k", [1, 2])
    def test_draws_are_functions_of_the_inputs_of_the_pipeline(self, target, k):
        X, y = data()
        y = np.stack([y, y**2], axis=1) if k == 2 else y
        steps = [("log", logs()), ("turn", PCA(2)), ("model", RandomFeatureRegressor(20, random_state=0))]
        model = GradientPipeline(steps, target=target).fit(X, y)
        draws = model.draws(3, random_state=0)
        points = X[:4]
        values, gradients = draws.value(points), draws.gradient(points)
        assert values.shape == (3, 4, *y.shape[1:])
        assert_allclose(draws.fit.value(points), model.predict(points))
        assert_allclose(draws.fit.gradient(points), model.predict_gradient(points))
        step = 1e-6
        for j, move in enumerate(step * np.eye(3)):
            wanted = (draws.value(points + move) - draws.value(points - move)) / (2 * step)
            assert_allclose(gradients[..., j], wanted, rtol=1e-4, atol=1e-6)
        own = np.stack([points, points[::-1], points + 0.1])
        assert_allclose(draws.value(own)[1], values[1, ::-1])
        assert_allclose(draws.gradient(own)[1], gradients[1, ::-1])
        assert_allclose(draws[1].value(points), values[1])
        assert_allclose([each.value(points) for each in draws[1:]], values[1:])
        assert (draws.dimension, draws.output_shape) == (3, y.shape[1:])
        with pytest.raises(ValueError, match=r"points of shape \(m, 3\)"):
            draws.value(points[:, :2])

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_pipelines_of_scikit_learn_answer_as_those_with_gradients(self, question):
        X, y = data()
        frame = pd.DataFrame(X, columns=NAMES)
        regressor = RandomFeatureRegressor(20, random_state=0)
        plain = Pipeline([("scale", StandardScaler()), ("model", regressor)]).fit(frame, y)
        other = GradientPipeline([("scale", StandardScaler()), ("model", regressor)]).fit(frame, y)
        found, wanted = (asked(question, model, None) for model in (plain, other))
        assert found.names == wanted.names == tuple(NAMES) if question is not propagate else True
        assert_allclose(numbers(found), numbers(wanted), rtol=1e-6, atol=1e-8)

    def test_pipelines_equal_functions_of_transformed_inputs(self):
        """Logarithms of lognormal inputs are normal inputs."""
        X, y = data()
        regressor = KernelFeatureRegressor()
        model = GradientPipeline([("log", logs()), ("model", regressor)]).fit(X, y)
        inputs = [norm(0.5, 0.1)] * 3
        direct = propagate(model[-1], inputs, n_points=256, random_state=0)
        from scipy.stats import lognorm

        behind = propagate(model, [lognorm(0.1, scale=np.exp(0.5))] * 3, n_points=256, random_state=0)
        assert_allclose(behind.fit, direct.fit, rtol=1e-6)
        assert_allclose(behind.draws, direct.draws, rtol=1e-6)

    @pytest.mark.parametrize(
        "step",
        [PolynomialFeatures(2, include_bias=False), FunctionTransformer(np.log)],
        ids=["without inverse", "with a wrong one"],
    )
    def test_a_box_that_is_not_known(self, step):
        X, y = data()
        model = make_pipeline(step, RandomFeatureRegressor(20, random_state=0)).fit(X, y)
        with pytest.raises(ValueError, match="the box of the data is not known"):
            propagate(model)
        assert propagate(model, [uniform(1, 2)] * 3, n_points=64, n_draws=3).mean.answers.shape == (3,)

    def test_searches(self):
        X, y = data()
        search = GridSearchCV(RandomFeatureRegressor(20, random_state=0), {"width": [0.5, 1.0]}, cv=2).fit(X, y)
        assert_allclose(
            propagate(search, n_points=64, n_draws=2, random_state=0).fit,
            propagate(search.best_estimator_, n_points=64, n_draws=2, random_state=0).fit,
        )

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_other_regressors(self, question):
        X, y = data()
        forest = RandomForestRegressor(2).fit(X, y)
        for model in (forest, make_pipeline(StandardScaler(), RandomForestRegressor(2)).fit(X, y)):
            with pytest.raises(TypeError, match="Got RandomForestRegressor, which has `predict` only: fit a"):
                asked(question, model, None)
        with pytest.raises(TypeError, match=r"must be a regressor of nurf.*Got int"):
            asked(question, 3, None)

    def test_models_that_are_not_fitted(self):
        for model in (KernelFeatureRegressor(), make_pipeline(StandardScaler(), KernelFeatureRegressor())):
            with pytest.raises(ValueError, match="not fitted"):
                propagate(model)


class TestNumbers:
    @pytest.mark.parametrize("question", QUESTIONS)
    @pytest.mark.parametrize("named", [False, True])
    def test_they_are_inputs_of_the_function_that_is_left(self, question, named):
        """A question about f(x, 2, z) is the question about that function of two inputs."""
        whole = Exact(
            lambda X: X[:, 0] ** 2 + X[:, 1] * X[:, 2],
            lambda X: np.stack([2 * X[:, 0], X[:, 2], X[:, 1]], axis=1),
            [1.0] * 3,
            [3.0] * 3,
            0.1,
        )
        part = Exact(
            lambda X: X[:, 0] ** 2 + 2 * X[:, 1],
            lambda X: np.stack([2 * X[:, 0], np.full(len(X), 2.0)], axis=1),
            [1.0] * 2,
            [3.0] * 2,
            0.1,
        )
        each = (1.0, 3.0) if question is minimize else uniform(1, 2)
        given = [each, 2, each]
        if named:
            given = dict(zip(["x0", "x1", "x2"], given, strict=True))
        found, wanted = asked(question, whole, given), asked(question, part, [each, each])
        if question is not propagate:
            assert found.names == ("x0", "x2")
        assert_allclose(numbers(found), numbers(wanted), rtol=1e-9, atol=1e-12)

    def test_draws_with_points_of_their_own(self):
        X, y = data()
        model = KernelFeatureRegressor().fit(pd.DataFrame(X, columns=NAMES), y)
        found = failure(model, {"speed": norm(2, 0.2), "angle": 2.0, "mass": norm(2, 0.2)}, above=7.0, random_state=0)
        assert found.design_points.shape[1] == 2
        at = pd.DataFrame(np.insert(found.design_points, 1, 2.0, axis=1), columns=NAMES)
        assert_allclose(model.predict(at), 7.0, atol=0.02)

    def test_beyond_the_data_they_warn_where_the_question_is(self):
        X, y = data()
        model = KernelFeatureRegressor().fit(X, y)
        with pytest.warns(UserWarning, match=r"x1 = 9 is beyond the data, 1\.\d+ to 2\.9\d+") as caught:
            propagate(model, [uniform(1.5, 1), 9.0, uniform(1.5, 1)], n_points=64, n_draws=2)
        assert caught[0].filename == __file__

    def test_other_warnings_are_where_the_question_is(self):
        X, y = data()
        model = KernelFeatureRegressor().fit(X, y)
        with pytest.warns(UserWarning, match="beyond the data") as caught:
            propagate(model, [uniform(9, 1)] * 3, n_points=64, n_draws=2)
        assert caught[0].filename == __file__

    def test_unknown_names_and_too_few_inputs(self):
        X, y = data()
        model = KernelFeatureRegressor().fit(X, y)
        with pytest.raises(ValueError, match=r"unknown \['x7'\]"):
            propagate(model, {"x0": 1.0, "x1": uniform(), "x2": uniform(), "x7": 3.0})
        with pytest.raises(ValueError, match=r"missing \['x2'\]"):
            propagate(model, {"x0": 1.0, "x1": uniform()})
        with pytest.raises(ValueError, match="must be 3 distributions"):
            propagate(model, [1.0, uniform()])

    def test_questions_by_keyword(self):
        X, y = data()
        model = KernelFeatureRegressor().fit(X, y)
        assert minimize(model=model, bounds=[(1, 3), 2.0, 2.0], n_draws=2, random_state=0).x.shape == (1,)
        with pytest.raises(TypeError, match="missing"):
            minimize()
