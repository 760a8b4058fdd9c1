"""Fits as pure functions: data in, a ``Fit`` out."""

from nurf.training._adaptive import fit_adaptive, fit_searched, stage_counts
from nurf.training._estimated import fit_estimated
from nurf.training._outer import ALPHAS, Fit, Stage, fit_factored, fit_outer
from nurf.training._random import fit_random
from nurf.training._search import Candidates, Setting, Trial
from nurf.training._sparse import SparseFit, SparseStep, fit_sparse, polish

__all__ = [
    "ALPHAS",
    "Candidates",
    "Fit",
    "Setting",
    "SparseFit",
    "SparseStep",
    "Stage",
    "Trial",
    "fit_adaptive",
    "fit_estimated",
    "fit_factored",
    "fit_outer",
    "fit_random",
    "fit_searched",
    "fit_sparse",
    "polish",
    "stage_counts",
]
