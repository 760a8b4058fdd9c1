"""Surrogate models learned from values and derivatives, by infinitely wide, sampled, trained and sparse networks."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from nurf import (
    activations,
    decisions,
    densities,
    differentiation,
    engines,
    export,
    files,
    functionals,
    jets,
    kernels,
    networks,
    problems,
    solvers,
    studies,
)
from nurf.data import DerivativeCheck, check_derivatives
from nurf.estimators import (
    DeepFeatureRegressor,
    GradientPipeline,
    KernelFeatureRegressor,
    RandomFeatureMap,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
    polish,
)
from nurf.files import FileFormatError
from nurf.jets import Jet
from nurf.studies import Study, goals, load

__version__ = version("nurf")

__all__ = [  # without `plots`, which requires matplotlib, and `torch`, which requires torch
    "DeepFeatureRegressor",
    "DerivativeCheck",
    "FileFormatError",
    "GradientPipeline",
    "Jet",
    "KernelFeatureRegressor",
    "RandomFeatureMap",
    "RandomFeatureRegressor",
    "SparseFeatureRegressor",
    "Study",
    "Surrogate",
    "activations",
    "check_derivatives",
    "decisions",
    "densities",
    "differentiation",
    "engines",
    "export",
    "files",
    "functionals",
    "goals",
    "jets",
    "kernels",
    "load",
    "networks",
    "polish",
    "problems",
    "solvers",
    "studies",
]

if TYPE_CHECKING:
    from nurf import plots as plots
    from nurf import torch as torch
else:

    def __getattr__(name: str) -> Any:
        """Import ``nurf.plots`` and ``nurf.torch`` when they are first used: they need optional packages."""
        if name in ("plots", "torch"):
            return import_module(f"nurf.{name}")
        raise AttributeError(f"module 'nurf' has no attribute {name!r}")
