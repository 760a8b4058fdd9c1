"""Solvers: ridge regression for outer weights (``ridge``), and sparse training of all weights (``sparse``)."""

from nurf.solvers._rows import VALUES_ONLY, Loss
from nurf.solvers.ridge import GeneralizedCrossValidation, LeaveOneOut, Rule, Validation
from nurf.solvers.sparse import L1, LogPenalty, Penalty, SparseOptions

__all__ = [
    "L1",
    "VALUES_ONLY",
    "GeneralizedCrossValidation",
    "LeaveOneOut",
    "LogPenalty",
    "Loss",
    "Penalty",
    "Rule",
    "SparseOptions",
    "Validation",
]
