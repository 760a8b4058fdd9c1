"""scikit-learn estimators: thin shells around ``nurf.training``."""

from nurf.estimators.feature_map import RandomFeatureMap
from nurf.estimators.regressor import RandomFeatureRegressor
from nurf.estimators.sparse import SparseFeatureRegressor, polish

__all__ = ["RandomFeatureMap", "RandomFeatureRegressor", "SparseFeatureRegressor", "polish"]
