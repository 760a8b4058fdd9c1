"""Derivatives of Python functions."""

from nurf.differentiation.derivatives import Backend, derivatives

__all__ = ["Backend", "derivatives"]
