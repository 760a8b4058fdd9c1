"""scikit-learn's own checks of its contract."""

from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from nurf import (
    DeepFeatureRegressor,
    GradientPipeline,
    KernelFeatureRegressor,
    RandomFeatureMap,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
)

ESTIMATORS = [
    RandomFeatureRegressor(10),
    SparseFeatureRegressor(0.3),
    KernelFeatureRegressor("gaussian", metric="scales"),
    DeepFeatureRegressor((8, 8), steps=40),
    Surrogate(engines=[RandomFeatureRegressor(10, width=0.5), DeepFeatureRegressor((8,), steps=20)]),
    RandomFeatureMap(),
    GradientPipeline([("scale", MinMaxScaler()), ("model", RandomFeatureRegressor(10, width=0.5, random_state=0))]),
]


STEPS = dict.fromkeys(
    ("check_estimators_overwrite_params", "check_dont_overwrite_parameters"),
    "as those of scikit-learn's Pipeline, steps are fitted in place",
)


def expected_failures(estimator):
    return STEPS if isinstance(estimator, GradientPipeline) else {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_sklearn_contract(estimator, check):
    check(estimator)
