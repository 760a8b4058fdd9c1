"""A nonsmooth corner in two dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nurf._types import Array
from nurf.problems._base import PAPER, Problem

SLOPES = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


@dataclass(frozen=True)
class Corner(Problem):
    """A piecewise linear function with three gradients.

    ``f(x) = max{0, x_1, x_2}`` on the square of side ``sqrt(2)``. If the maximum is attained by several of ``0``,
    ``x_1`` and ``x_2``, the result is the gradient of the first one, which is a subgradient. The Hessian is zero: it
    exists almost everywhere, but does not represent the kinks.

    Source: the paper, section 5.1.5.
    """

    name: ClassVar[str] = "corner"
    source: ClassVar[str] = f"{PAPER}, section 5.1.5"
    dimensions: ClassVar[tuple[int, int | None]] = (2, 2)

    dimension: int = 2

    def _value(self, x: Array) -> Array:
        return np.asarray(np.maximum(x.max(axis=1), 0.0))

    def _gradient(self, x: Array) -> Array:
        return np.asarray(SLOPES[np.argmax(np.insert(x, 0, 0.0, axis=1), axis=1)])

    def _hessian(self, x: Array) -> Array:
        return np.zeros((len(x), 2, 2))
