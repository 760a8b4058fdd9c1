"""Ridge regression for the outer weights: factor once, solve for every alpha."""

from nurf.solvers.ridge._normal_equations import NormalEquations
from nurf.solvers.ridge._posterior import Posterior
from nurf.solvers.ridge._ridge import DualRidge, PreciseRidge, PrimalRidge, Ridge, factor
from nurf.solvers.ridge._selection import (
    GeneralizedCrossValidation,
    LeaveOneOut,
    Rule,
    Validation,
    largest_near_best,
)

__all__ = [
    "DualRidge",
    "GeneralizedCrossValidation",
    "LeaveOneOut",
    "NormalEquations",
    "Posterior",
    "PreciseRidge",
    "PrimalRidge",
    "Ridge",
    "Rule",
    "Validation",
    "factor",
    "largest_near_best",
]
