"""Solvers: ``ridge`` for outer weights, ``sparse`` for all weights of small networks, ``trained`` for deep networks."""

from nurf.solvers._draws import Draws
from nurf.solvers._rows import VALUES_ONLY, Loss
from nurf.solvers.ridge import GeneralizedCrossValidation, LeaveOneOut, Rule, Validation
from nurf.solvers.sparse import L1, LogPenalty, Penalty, SparseOptions

__all__ = [
    "L1",
    "VALUES_ONLY",
    "Draws",
    "GeneralizedCrossValidation",
    "LeaveOneOut",
    "LogPenalty",
    "Loss",
    "Penalty",
    "Rule",
    "SparseOptions",
    "Validation",
]
