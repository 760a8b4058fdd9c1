"""Gaussian processes with derivative rows: the infinitely wide network."""

from nurf.solvers.process._changes import ProcessChanges
from nurf.solvers.process._criteria import CRITERIA, Criterion, LeaveOneOutError, RestrictedLikelihood
from nurf.solvers.process._held_out import HeldOutErrors, mixture, typical_error
from nurf.solvers.process._posterior import ProcessPosterior
from nurf.solvers.process._process import Process, inverse_blocks, rounding_floor, sample_blocks
from nurf.solvers.process._rows import ProcessRows, row_total

__all__ = [
    "CRITERIA",
    "Criterion",
    "HeldOutErrors",
    "LeaveOneOutError",
    "Process",
    "ProcessPosterior",
    "ProcessRows",
    "RestrictedLikelihood",
    "mixture",
    "rounding_floor",
    "row_total",
    "typical_error",
]
