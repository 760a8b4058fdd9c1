"""Fits as pure functions: data in, a ``Fit`` out."""

from nurf.training.outer import ALPHAS, Fit, fit_outer
from nurf.training.random import fit_random

__all__ = ["ALPHAS", "Fit", "fit_outer", "fit_random"]
