"""Derivatives of Python functions, by JAX, torch or finite differences."""

from nurf.differentiation._derivatives import Backend, derivatives

__all__ = ["Backend", "derivatives"]
