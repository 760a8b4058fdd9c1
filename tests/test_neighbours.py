"""What of scikit-learn takes regressors: metadata routing, searches, ensembles, inspection, transformed targets."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureMap,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
)

WIDE = KernelFeatureRegressor("matern", metric="scales")
REGRESSORS = {
    "sampled": RandomFeatureRegressor(8, width=0.5, density="local", random_state=0),
    "sparse": SparseFeatureRegressor(alpha=1e-2, random_state=0),
    "wide": WIDE,
    "trained": DeepFeatureRegressor((6,), steps=20, random_state=0),
    "chosen": Surrogate(engines=[RandomFeatureRegressor(8, width=0.5, density="local")], random_state=0),
}
CHEAP = [name for name in REGRESSORS if name != "wide"]


def data(n=14):
    """Values and gradients that do not depend on the second input."""
    X = np.random.default_rng(0).uniform(-1, 1, (n, 2))
    return X, np.sin(2 * X[:, 0]), np.stack([2 * np.cos(2 * X[:, 0]), np.zeros(n)], axis=1)


@pytest.fixture(scope="module", params=REGRESSORS)
def model(request):
    return REGRESSORS[request.param]


@pytest.fixture(scope="module")
def fitted(model):
    X, y, G = data()
    return clone(model).fit(X, y, gradients=G)


def test_cross_validation_takes_the_gradients_of_its_rows(model):
    X, y, G = data()
    folds = KFold(2)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = clone(model).set_fit_request(gradients=True)
        found = cross_val_predict(asked, X, y, cv=folds, params={"gradients": G})
        with pytest.raises(UnsetMetadataPassedError, match="set_fit_request"):
            cross_val_score(clone(model), X, y, cv=folds, params={"gradients": G})
    expected = np.empty(len(X))
    for train, test in folds.split(X):
        expected[test] = clone(model).fit(X[train], y[train], gradients=G[train]).predict(X[test])
    assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", CHEAP)
def test_a_search_keeps_the_derivatives(name):
    X, y, G = data()
    search = GridSearchCV(clone(REGRESSORS[name]), {"check_gradients": [False]}, cv=2).fit(X, y, gradients=G)
    assert search.best_estimator_.predict_gradient(X).shape == G.shape


@pytest.mark.parametrize("name", CHEAP)
def test_bagging_takes_the_gradients_of_its_rows(name):
    X, y, G = data()
    with sklearn.config_context(enable_metadata_routing=True):
        asked = clone(REGRESSORS[name]).set_fit_request(gradients=True)
        bag = BaggingRegressor(asked, n_estimators=1, random_state=0).fit(X, y, gradients=G)
    rows, first = bag.estimators_samples_[0], bag.estimators_[0]
    by_hand = clone(first).fit(X[rows], y[rows], gradients=G[rows])
    assert_allclose(first.predict(X), by_hand.predict(X), rtol=1e-6, atol=1e-9)
    with pytest.raises((TypeError, ValueError), match="gradients"):  # without routing
        BaggingRegressor(clone(REGRESSORS[name])).fit(X, y, gradients=G)
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match=r"`gradients` must have shape \(n, d\) = \(14, 1\), got \(14, 2\)"),
    ):
        BaggingRegressor(asked, n_estimators=1, max_features=1).fit(X, y, gradients=G)


def test_partial_dependence_is_a_mean_of_predictions(fitted):
    X, _, _ = data()
    found = partial_dependence(fitted, X, [0], grid_resolution=3)
    for value, mean in zip(found["grid_values"][0], found["average"][0], strict=True):
        moved = X.copy()
        moved[:, 0] = value
        assert_allclose(mean, fitted.predict(moved).mean(), rtol=1e-9)


def test_permuted_inputs(fitted):
    X, y, _ = data()
    first, second = permutation_importance(fitted, X, y, n_repeats=5, random_state=0).importances_mean
    assert np.isfinite([first, second]).all()
    if fitted.score(X, y) > 0.5:  # which may take more training than that of deep networks here
        assert first > 0.05
        assert abs(second) < first / 2  # gradients along it are zero


def test_transformed_targets_take_values(model):
    X, y, _ = data()
    y = np.exp(y)
    found = TransformedTargetRegressor(clone(model), func=np.log, inverse_func=np.exp).fit(X, y)
    assert_allclose(found.predict(X), np.exp(clone(model).fit(X, np.log(y)).predict(X)), rtol=1e-6)


def test_transformed_targets_with_gradients_are_found_out():
    X, y, G = data(100)
    both = TransformedTargetRegressor(REGRESSORS["sampled"], func=np.exp, inverse_func=np.log)
    with pytest.warns(UserWarning, match="`gradients` contradict the values"):
        both.fit(X, y, gradients=G)


@pytest.mark.parametrize("name", CHEAP)
def test_ensembles_of_several_kinds(name):
    X, y, _ = data()
    parts = [("nurf", REGRESSORS[name]), ("line", LinearRegression())]
    line = LinearRegression().fit(X, y).predict(X)
    own = clone(REGRESSORS[name]).fit(X, y).predict(X)
    assert_allclose(VotingRegressor(parts).fit(X, y).predict(X), (line + own) / 2, rtol=1e-6, atol=1e-9)
    assert StackingRegressor(parts, cv=2).fit(X, y).predict(X).shape == y.shape


def test_plain_pipelines_take_values(model):
    X, y, _ = data()
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    by_hand = clone(model).fit(StandardScaler().fit_transform(X), y).predict(StandardScaler().fit_transform(X))
    assert_allclose(pipeline.predict(X), by_hand, rtol=1e-9)


def test_features_as_a_data_frame():
    X, _, G = data()
    features = RandomFeatureMap(3, random_state=0).set_output(transform="pandas").fit(X, gradients=G).transform(X)
    assert isinstance(features, pd.DataFrame)
    assert list(features.columns) == ["randomfeaturemap0", "randomfeaturemap1", "randomfeaturemap2"]
