"""Solvers: ridge regression for outer weights, and sparse training of all weights."""

from nurf.solvers.normal_equations import NormalEquations
from nurf.solvers.penalties import L1, LogPenalty, Penalty
from nurf.solvers.posterior import Posterior
from nurf.solvers.ridge import DualRidge, PreciseRidge, PrimalRidge, Ridge, factor
from nurf.solvers.rows import VALUES_ONLY, LossWeights
from nurf.solvers.selection import GeneralizedCrossValidation, LeaveOneOut, Rule, Validation, largest_near_best

__all__ = [
    "L1",
    "VALUES_ONLY",
    "DualRidge",
    "GeneralizedCrossValidation",
    "LeaveOneOut",
    "LogPenalty",
    "LossWeights",
    "NormalEquations",
    "Penalty",
    "Posterior",
    "PreciseRidge",
    "PrimalRidge",
    "Ridge",
    "Rule",
    "Validation",
    "factor",
    "largest_near_best",
]
