"""scikit-learn estimators: thin shells around ``nurf.training``."""

from nurf.estimators._deep import DeepFeatureRegressor
from nurf.estimators._feature_map import RandomFeatureMap
from nurf.estimators._files import load
from nurf.estimators._kernel import KernelFeatureRegressor
from nurf.estimators._regressor import RandomFeatureRegressor
from nurf.estimators._sparse import SparseFeatureRegressor, polish

__all__ = [
    "DeepFeatureRegressor",
    "KernelFeatureRegressor",
    "RandomFeatureMap",
    "RandomFeatureRegressor",
    "SparseFeatureRegressor",
    "load",
    "polish",
]
