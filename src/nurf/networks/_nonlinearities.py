"""The activations of deep networks: functions that are zero at zero, with the derivatives that training needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from nurf._types import Floats


class Nonlinearity(ABC):
    """A smooth function of one variable and its derivatives.

    Unlike the ridge splines of ``nurf.activations`` it is zero at zero, so that the states of a deep network have no
    common offset, and has no width, which the weights of a layer contain.
    """

    @abstractmethod
    def __call__(self, z: Floats, order: int) -> list[Floats]:
        """Return the function and its derivatives up to ``order`` (at most 2) at ``z``, in the precision of ``z``."""


@dataclass(frozen=True)
class Tanh(Nonlinearity):
    """The hyperbolic tangent."""

    def __call__(self, z: Floats, order: int) -> list[Floats]:
        """Return ``h = tanh z``, ``1 - h^2`` and ``-2 h (1 - h^2)``."""
        h = np.tanh(z)
        if order == 0:
            return [h]
        slope = 1 - h * h
        return [h, slope] if order == 1 else [h, slope, -2 * h * slope]


@dataclass(frozen=True)
class SiLU(Nonlinearity):
    """The function ``z / (1 + exp(-z))``, also called swish."""

    def __call__(self, z: Floats, order: int) -> list[Floats]:
        """Return ``z s``, ``s + z s (1 - s)`` and ``s (1 - s) (2 + z (1 - 2 s))`` with ``s = 1 / (1 + exp(-z))``."""
        s = expit(z)
        value = z * s
        if order == 0:
            return [value]
        rest = 1 - s
        slope = s + value * rest
        return [value, slope] if order == 1 else [value, slope, s * rest * (2 + z * (rest - s))]


# Nonlinearities by the names that estimators accept.
NONLINEARITIES: dict[str, type[Nonlinearity]] = {"tanh": Tanh, "silu": SiLU}
