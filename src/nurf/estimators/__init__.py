"""scikit-learn estimators: thin shells around ``nurf.engines``."""

from nurf.estimators._base import NetworkRegressor
from nurf.estimators._deep import DeepFeatureRegressor
from nurf.estimators._feature_map import RandomFeatureMap
from nurf.estimators._files import load
from nurf.estimators._kernel import KernelFeatureRegressor
from nurf.estimators._leaderboard import Leaderboard, Standing
from nurf.estimators._parameters import as_generator, choose
from nurf.estimators._pipeline import GradientPipeline
from nurf.estimators._regressor import RandomFeatureRegressor
from nurf.estimators._report import Report
from nurf.estimators._sparse import SparseFeatureRegressor, polish
from nurf.estimators._surrogate import Surrogate

__all__ = [
    "DeepFeatureRegressor",
    "GradientPipeline",
    "KernelFeatureRegressor",
    "Leaderboard",
    "RandomFeatureMap",
    "RandomFeatureRegressor",
    "SparseFeatureRegressor",
    "Standing",
    "Surrogate",
    "load",
    "polish",
]
