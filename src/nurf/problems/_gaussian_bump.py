"""A Gaussian bump in one dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nurf._types import Array
from nurf.problems._base import PAPER, Problem


@dataclass(frozen=True)
class GaussianBump(Problem):
    """A narrow Gaussian bump on the interval [-1, 1].

    ``f(x) = exp(-(10 x)^2 / 2)``.

    Source: the paper, section 5.1.1.
    """

    name: ClassVar[str] = "gaussian_bump"
    source: ClassVar[str] = f"{PAPER}, section 5.1.1"
    dimensions: ClassVar[tuple[int, int | None]] = (1, 1)

    dimension: int = 1

    def _value(self, x: Array) -> Array:
        return np.asarray(np.exp(-50 * x[:, 0] ** 2))

    def _gradient(self, x: Array) -> Array:
        return np.asarray(-100 * x * self._value(x)[:, None])

    def _hessian(self, x: Array) -> Array:
        return np.asarray(((100 * x) ** 2 - 100)[:, :, None] * self._value(x)[:, None, None])
