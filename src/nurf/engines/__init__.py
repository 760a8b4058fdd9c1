"""Engines, which fit networks: sampled, infinitely wide, trained and sparse networks."""

from nurf.engines._candidates import GROWTH
from nurf.engines._crossfit import CrossFit
from nurf.engines._deep import (
    DeepOptions,
    DeepSetting,
    DeepSpec,
    as_network,
    as_parameters,
    balanced_weight,
    first_network,
    in_training_units,
    squared_errors,
)
from nurf.engines._deep_fit import ALL_BLOCKS, ALL_ROWS, DeepCycle, DeepFit, Folds
from nurf.engines._fidelities import Factors, factors_of
from nurf.engines._fit import Fit, Origin, ShallowFit, Shape, Stage
from nurf.engines._learning import Learning
from nurf.engines._metrics import Diagonal, Full, Isotropic, Learned, Metric
from nurf.engines._outer import ALPHAS, fit_outer, fit_ridge
from nurf.engines._parts import MAX_ROWS
from nurf.engines._polish import polish
from nurf.engines._progress import say_surveyed, warn_if_long, watch_attempts, watch_blocks, watch_cycles, watch_path
from nurf.engines._robust import cleaned_engines, fit_huber, with_huber_loss
from nurf.engines._sampled import FIRST_SIZE, SampledEngine, fit_for_more_rows, fit_sampled, race_sizes
from nurf.engines._scales import n_directions
from nurf.engines._settings import FromData, FromNetwork, FromResidual, Setting, Source
from nurf.engines._shape import Conditions
from nurf.engines._space import Space
from nurf.engines._sparse import SparseEngine, SparseFit, SparseStep, fit_sparse
from nurf.engines._stages import Task, fit_adaptive, fit_random, sample_features, stage_counts
from nurf.engines._thinning import thinned
from nurf.engines._trained import TrainedEngine, fit_trained, last_loss, network_in_training_units
from nurf.engines._wide import WideEngine, WideFit

__all__ = [
    "ALPHAS",
    "Conditions",
    "CrossFit",
    "DeepCycle",
    "DeepFit",
    "DeepOptions",
    "DeepSetting",
    "DeepSpec",
    "Diagonal",
    "Factors",
    "Fit",
    "FromData",
    "FromNetwork",
    "FromResidual",
    "Full",
    "Isotropic",
    "Learning",
    "Metric",
    "Origin",
    "SampledEngine",
    "Setting",
    "ShallowFit",
    "Shape",
    "Source",
    "Space",
    "SparseEngine",
    "SparseFit",
    "SparseStep",
    "Stage",
    "Task",
    "TrainedEngine",
    "WideEngine",
    "WideFit",
    "cleaned_engines",
    "factors_of",
    "fit_adaptive",
    "fit_for_more_rows",
    "fit_huber",
    "fit_outer",
    "fit_random",
    "fit_sampled",
    "fit_sparse",
    "fit_trained",
    "n_directions",
    "polish",
    "race_sizes",
    "stage_counts",
    "thinned",
    "with_huber_loss",
]
