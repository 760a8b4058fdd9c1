"""Checks of gradients against values: consistency, likely mistakes, and the noise of both."""

from nurf.data._derivative_checks._check import DerivativeCheck, check_derivatives

__all__ = ["DerivativeCheck", "check_derivatives"]
