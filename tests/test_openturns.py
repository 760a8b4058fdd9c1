"""Functions of OpenTURNS: derivatives, descriptions, and its own reliability analysis on a model."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.preprocessing import FunctionTransformer

from nurf import GradientPipeline, KernelFeatureRegressor, RandomFeatureRegressor, export
from nurf.decisions import failure


def test_the_extra_is_named_if_openturns_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "openturns", None)
    with pytest.raises(ImportError, match=r'pip install "nurf\[openturns\]"'):
        export.to_openturns(None)


class TestFunctions:
    @pytest.fixture(autouse=True)
    def openturns(self):
        self.ot = pytest.importorskip("openturns")

    @pytest.mark.parametrize("k", [1, 3])
    def test_values_and_derivatives_are_those_of_the_model(self, k):
        X = np.random.default_rng(0).uniform(0.5, 2, (40, 2))
        y = np.stack([X[:, 0] * X[:, 1], X[:, 0] ** 2, X[:, 1] ** 3], axis=1)[:, :k]
        regressor = RandomFeatureRegressor(20, width=0.5, random_state=0)
        pipeline = GradientPipeline([("log", FunctionTransformer(np.log)), ("model", regressor)])
        for model in (regressor.fit(X, y), pipeline.fit(X, y)):
            function, x = export.to_openturns(model), [1.1, 0.9]
            assert_allclose(np.array(function(self.ot.Sample(X))), np.reshape(model.predict(X), (40, k)))
            assert_allclose(np.array(function(x)), np.ravel(model.predict([x])))
            gradient = np.array(function.gradient(x))
            assert gradient.shape == (2, k)
            assert_allclose(gradient.T, np.reshape(model.predict_gradient([x]), (k, 2)))
            hessian = np.array(function.hessian(x))
            assert_allclose(np.moveaxis(hessian, -1, 0), np.reshape(model.predict_hessian([x]), (k, 2, 2)), atol=1e-12)

    def test_names(self):
        X = pd.DataFrame(np.random.default_rng(0).uniform(0.5, 2, (20, 2)), columns=["load", "width"])
        model = KernelFeatureRegressor().fit(X, X["load"])
        function = export.to_openturns(model, outputs=["lift"])
        assert list(function.getInputDescription()) == ["load", "width"]
        assert list(function.getOutputDescription()) == ["lift"]
        with pytest.raises(ValueError, match="1 different names"):
            export.to_openturns(model, outputs=["a", "b"])

    def test_its_design_point_and_probability_are_ours(self):
        """FORM of OpenTURNS, and its subset simulation, on the function itself are known: a linear limit."""
        X = np.random.default_rng(0).uniform(-5, 5, (40, 2))
        model = KernelFeatureRegressor().fit(X, X @ [0.6, 0.8])
        ot, ours = self.ot, failure(model, [norm(), norm()], above=3.0, random_state=0)
        vector = ot.RandomVector(ot.Normal(2))
        event = ot.ThresholdEvent(ot.CompositeRandomVector(export.to_openturns(model), vector), ot.Greater(), 3.0)
        solver = ot.AbdoRackwitz()
        solver.setStartingPoint([0.0, 0.0])
        form = ot.FORM(solver, event)
        form.run()
        found = form.getResult()
        assert_allclose(np.array(found.getPhysicalSpaceDesignPoint()), ours.design_points[0], atol=0.01)
        assert_allclose(found.getHasoferReliabilityIndex(), 3.0, atol=0.01)
        assert_allclose(found.getEventProbability(), ours.probability, rtol=0.05)

    def test_other_objects(self):
        with pytest.raises(TypeError, match="not an estimator"):
            export.to_openturns(3)
