"""Sparse training of all weights of a network: insertion, joint Gauss-Newton steps, deletion."""

from nurf.solvers.sparse._options import PeakSearch, SparseOptions
from nurf.solvers.sparse._penalties import L1, LogPenalty, Penalty
from nurf.solvers.sparse._solver import solve_sparse

__all__ = ["L1", "LogPenalty", "PeakSearch", "Penalty", "SparseOptions", "solve_sparse"]
