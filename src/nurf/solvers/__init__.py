"""Solvers: ``ridge`` for outer weights, ``sparse`` for all weights of small networks, ``trained`` for deep networks."""

from nurf.solvers._conditions import LARGEST_VIOLATION, Condition, ContradictionError, Shaped, shaped, violation
from nurf.solvers._coverage import (
    MIN_ERRORS,
    Uncertainty,
    calibration,
    effective_number,
    normal_interval,
    plus_interval,
    require_errors,
    standard_error,
)
from nurf.solvers._draws import Difference, Draws, between_samples, beyond_reach
from nurf.solvers._reach import Reach, standing_for
from nurf.solvers._rows import VALUES_ONLY, Loss, row_count, rows_per_sample, sample_rows
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
