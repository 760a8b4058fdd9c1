"""Solvers: ridge regression for outer weights, and sparse training of all weights."""

from nurf.solvers.normal_equations import NormalEquations
from nurf.solvers.penalties import L1, LogPenalty, Penalty
from nurf.solvers.ridge import DualRidge, PrimalRidge, Ridge, factor
from nurf.solvers.selection import GeneralizedCrossValidation, LeaveOneOut, Rule, Validation, largest_near_best

__all__ = [
    "L1",
    "DualRidge",
    "GeneralizedCrossValidation",
    "LeaveOneOut",
    "LogPenalty",
    "NormalEquations",
    "Penalty",
    "PrimalRidge",
    "Ridge",
    "Rule",
    "Validation",
    "factor",
    "largest_near_best",
]
