"""Whether gradients belong to the values, what is wrong if they do not, and how noisy both are."""

from nurf.data._derivative_checks._check import DerivativeCheck, check_derivatives

__all__ = ["DerivativeCheck", "check_derivatives"]
