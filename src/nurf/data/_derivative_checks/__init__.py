"""Consistency of values and gradients, and estimates of their noise, from differences between neighbouring points."""

from nurf.data._derivative_checks._check import DerivativeCheck, check_derivatives

__all__ = ["DerivativeCheck", "check_derivatives"]
