"""The corner peak, a test function for numerical integration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nurf._types import Array
from nurf.networks import Box
from nurf.problems._base import LIBRARY, Problem


@dataclass(frozen=True)
class CornerPeak(Problem):
    """A function with a peak in one corner of the unit cube, which varies in one direction only.

    ``f(x) = 10 (1 + a (x_1 + ... + x_d))^(-d-1)`` on ``[0, 1]^d``, with ``a > 0``.

    Source: Genz (1984); the factor 10 and the common ``a`` are the paper's, section 5.2.1.

    Parameters
    ----------
    dimension : int, default=3
        The number of inputs.
    native : bool, default=False
        Whether points and derivatives are in native units, the unit cube.
    a : float, default=2
        Sharpness of the peak.
    """

    name: ClassVar[str] = "corner_peak"
    source: ClassVar[str] = (
        "A. Genz, Testing multidimensional integration routines, in Tools, Methods and Languages for "
        f"Scientific and Engineering Computation, North-Holland (1984), 81-94; {LIBRARY}"
    )
    dimensions: ClassVar[tuple[int, int | None]] = (1, None)

    dimension: int = 3
    a: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.a) and self.a > 0):
            raise ValueError(f"`a` of 'corner_peak' must be a number > 0, got {self.a!r}")

    @property
    def native_domain(self) -> Box:
        """The unit cube ``[0, 1]^d``."""
        return Box(np.zeros(self.dimension), np.ones(self.dimension))

    def _profile(self, x: Array, order: int) -> Array:
        """Return the derivative of ``10 s^(-d-1)``, ``s = 1 + a t``, of order 0, 1 or 2 at ``t = sum x_i``."""
        d = self.dimension
        factor = (1, -(d + 1) * self.a, (d + 1) * (d + 2) * self.a**2)[order]
        return np.asarray(10 * factor * (1 + self.a * x.sum(axis=1)) ** (-d - 1 - order))

    def _value(self, x: Array) -> Array:
        return self._profile(x, 0)

    def _gradient(self, x: Array) -> Array:
        return np.asarray(self._profile(x, 1)[:, None] * np.ones(self.dimension))

    def _hessian(self, x: Array) -> Array:
        return np.asarray(self._profile(x, 2)[:, None, None] * np.ones((self.dimension, self.dimension)))
