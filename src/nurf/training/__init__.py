"""Fits as pure functions: data in, a ``Fit`` out."""

from nurf.training.adaptive import fit_adaptive, stage_counts
from nurf.training.outer import ALPHAS, Fit, Stage, fit_factored, fit_outer
from nurf.training.random import fit_random
from nurf.training.sparse import SparseFit, SparseStep, fit_sparse, polish

__all__ = [
    "ALPHAS",
    "Fit",
    "SparseFit",
    "SparseStep",
    "Stage",
    "fit_adaptive",
    "fit_factored",
    "fit_outer",
    "fit_random",
    "fit_sparse",
    "polish",
    "stage_counts",
]
