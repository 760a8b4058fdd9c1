"""scikit-learn's own checks of its contract."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureMap,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
)

ESTIMATORS = [
    RandomFeatureRegressor(100),
    SparseFeatureRegressor(),
    KernelFeatureRegressor(),
    DeepFeatureRegressor((16, 16), steps=150),
    Surrogate(engines=[KernelFeatureRegressor("gaussian"), DeepFeatureRegressor((16,), steps=50)]),
    RandomFeatureMap(),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_contract(estimator, check):
    check(estimator)
