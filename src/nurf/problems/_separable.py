"""A sum of two functions of one variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nurf._types import Array
from nurf.problems._base import PAPER, Problem
from nurf.problems._huber import huber


@dataclass(frozen=True)
class Separable(Problem):
    """A sum of two functions of one variable each.

    ``f(x) = cos(10 x_1) + h(7 x_2)`` with the Huber function ``h``, on the square of side ``sqrt(2)``. The
    Hessian jumps at ``|x_2| = 1/14``, where the second derivative of ``h`` is set to 0.

    Source: the paper, section 5.1.6.
    """

    name: ClassVar[str] = "separable"
    source: ClassVar[str] = f"{PAPER}, section 5.1.6"
    dimensions: ClassVar[tuple[int, int | None]] = (2, 2)

    dimension: int = 2

    def _value(self, x: Array) -> Array:
        return np.asarray(np.cos(10 * x[:, 0]) + huber(7 * x[:, 1])[0])

    def _gradient(self, x: Array) -> Array:
        return np.stack([-10 * np.sin(10 * x[:, 0]), 7 * huber(7 * x[:, 1])[1]], axis=1)

    def _hessian(self, x: Array) -> Array:
        diagonal = np.stack([-100 * np.cos(10 * x[:, 0]), 49 * huber(7 * x[:, 1])[2]], axis=1)
        return np.asarray(diagonal[:, :, None] * np.eye(2))
