"""The base class of kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from nurf._types import Array
from nurf._validation import as_finite


class Kernel(ABC):
    """A positive semidefinite function ``k(x, x')`` of two points.

    ``kernel(X, Y)`` is the kernel matrix of shape (n, m), and ``kernel(X)`` is ``kernel(X, X)``. If an argument is a
    single point of shape (d,), its axis is missing in the result: for two points the result is a number.
    scikit-learn's ``KernelRidge`` accepts a kernel object as ``kernel``, but is much faster with the kernel matrix and
    ``kernel="precomputed"``.
    """

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Return ``k(x, x')`` for all ``x`` in ``X`` and ``x'`` in ``Y``."""
        left, row = self._points("X", X)
        right, column = (left, row) if Y is None else self._points("Y", Y)
        if left.shape[1] != right.shape[1]:
            raise ValueError(f"`Y` must have d = {left.shape[1]} columns like `X`, got {right.shape[1]}")
        result: Array = self._matrix(left, right)[row, column]
        return result

    @abstractmethod
    def _matrix(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix (n, m). ``Y is X`` if both are the same."""

    @abstractmethod
    def _check(self, name: str, X: Array) -> None:
        """Raise a ``ValueError`` if the kernel is not defined at the rows of ``X``."""

    def _points(self, name: str, value: Any) -> tuple[Array, Any]:
        """Return points as rows (n, d), and the index for their axis of the kernel matrix."""
        points = as_finite(name, value)
        if points.ndim not in (1, 2) or points.shape[-1] == 0:
            raise ValueError(f"`{name}` must be points of shape (n, d) or one point of shape (d,), got {points.shape}")
        rows = np.atleast_2d(points)
        self._check(name, rows)
        return rows, slice(None) if points.ndim == 2 else 0
