"""Linear solvers for the outer weights: normal equations, ridge regression, and the choice of ``alpha``."""

from nurf.solvers.normal_equations import NormalEquations
from nurf.solvers.ridge import DualRidge, PrimalRidge, Ridge, factor
from nurf.solvers.selection import GeneralizedCrossValidation, LeaveOneOut, Rule, Validation, largest_near_best

__all__ = [
    "DualRidge",
    "GeneralizedCrossValidation",
    "LeaveOneOut",
    "NormalEquations",
    "PrimalRidge",
    "Ridge",
    "Rule",
    "Validation",
    "factor",
    "largest_near_best",
]
