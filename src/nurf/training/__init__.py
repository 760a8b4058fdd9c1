"""Fits as pure functions: data in, a ``Fit`` out."""

from nurf.training._arms import fit_for_more_rows, fit_searched
from nurf.training._crossfit import CrossFit
from nurf.training._deep import DeepOptions, DeepSetting, DeepSpec
from nurf.training._deep_fit import DeepCycle, DeepFit
from nurf.training._fit import Fit, ShallowFit, Stage, Trial
from nurf.training._lanes import Lane
from nurf.training._learning import Learning
from nurf.training._metrics import Diagonal, Full, Isotropic, Metric
from nurf.training._outer import ALPHAS, fit_outer
from nurf.training._polish import polish
from nurf.training._race import Arm, Rung, race
from nurf.training._robust import fit_huber, fit_robust
from nurf.training._scales import n_directions
from nurf.training._search import Search, Space
from nurf.training._settings import FromData, FromNetwork, FromResidual, Setting, Source
from nurf.training._sparse import SparseFit, SparseStep, fit_sparse
from nurf.training._stages import Task, fit_adaptive, fit_random, stage_counts
from nurf.training._thinning import thinned
from nurf.training._trained import fit_trained
from nurf.training._wide import WideFit, WideLane, fit_wide

__all__ = [
    "ALPHAS",
    "Arm",
    "CrossFit",
    "DeepCycle",
    "DeepFit",
    "DeepOptions",
    "DeepSetting",
    "DeepSpec",
    "Diagonal",
    "Fit",
    "FromData",
    "FromNetwork",
    "FromResidual",
    "Full",
    "Isotropic",
    "Lane",
    "Learning",
    "Metric",
    "Rung",
    "Search",
    "Setting",
    "ShallowFit",
    "Source",
    "Space",
    "SparseFit",
    "SparseStep",
    "Stage",
    "Task",
    "Trial",
    "WideFit",
    "WideLane",
    "fit_adaptive",
    "fit_for_more_rows",
    "fit_huber",
    "fit_outer",
    "fit_random",
    "fit_robust",
    "fit_searched",
    "fit_sparse",
    "fit_trained",
    "fit_wide",
    "n_directions",
    "polish",
    "race",
    "stage_counts",
    "thinned",
]
