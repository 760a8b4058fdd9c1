"""scikit-learn estimators: thin shells around ``nurf.training``."""

from nurf.estimators.feature_map import RandomFeatureMap
from nurf.estimators.regressor import RandomFeatureRegressor

__all__ = ["RandomFeatureMap", "RandomFeatureRegressor"]
