"""Surrogates that know where to look: shallow networks whose neurons are sampled from derivative data."""

from importlib.metadata import version

from nurf import activations, densities, kernels, problems
from nurf._derivative_checks import check_derivatives
from nurf.estimators import RandomFeatureMap, RandomFeatureRegressor, SparseFeatureRegressor, polish
from nurf.jets import Jet

__version__ = version("nurf")

__all__ = [
    "Jet",
    "RandomFeatureMap",
    "RandomFeatureRegressor",
    "SparseFeatureRegressor",
    "activations",
    "check_derivatives",
    "densities",
    "kernels",
    "polish",
    "problems",
]
