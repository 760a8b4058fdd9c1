"""Fits as pure functions: data in, a ``Fit`` out."""

from nurf.training.adaptive import fit_adaptive, stage_counts
from nurf.training.outer import ALPHAS, Fit, Stage, fit_factored, fit_outer
from nurf.training.random import fit_random

__all__ = ["ALPHAS", "Fit", "Stage", "fit_adaptive", "fit_factored", "fit_outer", "fit_random", "stage_counts"]
