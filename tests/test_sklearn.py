"""scikit-learn's own checks of its contract."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from nurf import KernelFeatureRegressor, RandomFeatureMap, RandomFeatureRegressor, SparseFeatureRegressor


@parametrize_with_checks(
    [RandomFeatureRegressor(), SparseFeatureRegressor(), KernelFeatureRegressor(), RandomFeatureMap()]
)
def test_sklearn_contract(estimator, check):
    check(estimator)
