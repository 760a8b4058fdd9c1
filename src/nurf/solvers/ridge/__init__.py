"""Ridge regression for the outer weights: factor once, solve for every alpha."""

from nurf.solvers.ridge._base import Convergence, Ridge
from nurf.solvers.ridge._changes import RidgeChanges
from nurf.solvers.ridge._cholesky import CholeskyRidge
from nurf.solvers.ridge._dual import DualRidge
from nurf.solvers.ridge._iterative import IterativeRidge
from nurf.solvers.ridge._least_squares import LeastSquares
from nurf.solvers.ridge._normal_equations import NormalEquations
from nurf.solvers.ridge._posterior import Posterior
from nurf.solvers.ridge._precise import PreciseRidge
from nurf.solvers.ridge._primal import PrimalRidge
from nurf.solvers.ridge._selection import (
    TOLERANCE,
    GeneralizedCrossValidation,
    HeldOut,
    LeaveOneOut,
    LeftOut,
    Rule,
    Validation,
    largest_near_best,
)
from nurf.solvers.ridge._sums import ROUNDING

__all__ = [
    "CholeskyRidge",
    "Convergence",
    "DualRidge",
    "GeneralizedCrossValidation",
    "HeldOut",
    "IterativeRidge",
    "LeastSquares",
    "LeaveOneOut",
    "LeftOut",
    "NormalEquations",
    "Posterior",
    "PreciseRidge",
    "PrimalRidge",
    "Ridge",
    "Rule",
    "Validation",
    "largest_near_best",
]
