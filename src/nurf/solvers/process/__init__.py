"""Gaussian processes with derivative rows: the infinitely wide network."""

from nurf.solvers.process._criteria import CRITERIA, leave_one_out, restricted_likelihood
from nurf.solvers.process._posterior import ProcessPosterior
from nurf.solvers.process._process import Process, rounding_floor
from nurf.solvers.process._rows import ProcessRows, row_total

__all__ = [
    "CRITERIA",
    "Process",
    "ProcessPosterior",
    "ProcessRows",
    "leave_one_out",
    "restricted_likelihood",
    "rounding_floor",
    "row_total",
]
