"""Sparse training of all weights of a network: insertion, joint Gauss-Newton steps, deletion."""

from nurf.solvers.sparse._charts import Bounds
from nurf.solvers.sparse._misfit import Misfit
from nurf.solvers.sparse._moves import train
from nurf.solvers.sparse._objective import JointPoint, Objective
from nurf.solvers.sparse._options import PeakSearch, SparseOptions
from nurf.solvers.sparse._penalties import L1, PENALTIES, LogPenalty, Penalty, Squared
from nurf.solvers.sparse._solver import SparseSolution, search_peaks, solve_sparse

__all__ = ["L1", "LogPenalty", "PeakSearch", "Penalty", "SparseOptions", "solve_sparse"]
