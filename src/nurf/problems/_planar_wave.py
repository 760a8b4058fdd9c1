"""A plane wave in two dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nurf._types import Array
from nurf.problems._base import PAPER, Problem

WAVE = 5 * np.array([1.0, -np.sqrt(2.0)])


@dataclass(frozen=True)
class PlanarWave(Problem):
    """A sine wave that varies in one direction only.

    ``f(x) = sin(5 (x_1 - sqrt(2) x_2))`` on the square of side ``sqrt(2)``.

    Source: the paper, introduction and section 5.1.3. Section 5.1.3 has ``x_1 + sqrt(2) x_2``; the introduction and
    the figures have the minus sign, which is used here.
    """

    name: ClassVar[str] = "planar_wave"
    source: ClassVar[str] = f"{PAPER}, section 5.1.3"
    dimensions: ClassVar[tuple[int, int | None]] = (2, 2)

    dimension: int = 2

    def _value(self, x: Array) -> Array:
        return np.asarray(np.sin(x @ WAVE))

    def _gradient(self, x: Array) -> Array:
        return np.asarray(np.cos(x @ WAVE)[:, None] * WAVE)

    def _hessian(self, x: Array) -> Array:
        return np.asarray(-np.sin(x @ WAVE)[:, None, None] * np.outer(WAVE, WAVE))
