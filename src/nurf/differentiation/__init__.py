"""Derivatives of Python functions."""

from nurf.differentiation._derivatives import Backend, derivatives

__all__ = ["Backend", "derivatives"]
