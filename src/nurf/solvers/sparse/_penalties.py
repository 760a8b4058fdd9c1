"""Penalties on outer weights: convex and concave functions ``psi(|c|)`` that set weights to zero."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nurf._types import Array
from nurf._validation import is_number


class Penalty(ABC):
    """A function ``psi(t)`` of the size ``t = |c| >= 0`` of an outer weight (paper, eq. 1.4).

    A sparse penalty has ``psi(0) = 0`` and ``psi'(0) = 1``, so that a weight may be zero if its certificate is at most
    ``alpha``, and it is concave, so that one neuron never costs more than two in the same place. With several outputs
    ``|c|`` is the Euclidean length of the weights of a neuron, which is kept or removed as a whole.

    A subclass defines three functions of arrays of sizes: ``value``, ``slope`` and ``curvature``.
    """

    sparse: ClassVar[bool] = True  # whether weights that cross zero are set to zero

    @abstractmethod
    def value(self, t: Array) -> Array:
        """Return ``psi(t)``."""

    @abstractmethod
    def slope(self, t: Array) -> Array:
        """Return ``psi'(t)``, the right derivative at zero."""

    @abstractmethod
    def curvature(self, t: Array) -> Array:
        """Return ``psi''(t)``."""

    def gradient(self, c: Array) -> Array:
        """Return ``psi'(|c|) c / |c|`` for each row of ``c`` (N, k), zero for ``c = 0``."""
        sizes = row_sizes(c)[:, None]
        return np.asarray(self.slope(sizes) * np.divide(c, sizes, out=np.zeros_like(c), where=sizes > 0))

    def distance(self, c: Array, moments: Array, alpha: float) -> Array:
        """Return the violation of the optimality conditions for each row, in units of ``alpha``, of shape (N,).

        With ``p = moments`` (N, k), the negative gradient of the loss with respect to ``c``, the violation is
        ``|p - alpha psi'(|c|) c / |c|| / alpha`` for ``c != 0``, and ``max(|p| / alpha - psi'(0), 0)`` for ``c = 0``.
        """
        zero = row_sizes(c) == 0
        excess = np.maximum(row_sizes(moments) / alpha - self.slope(np.zeros(len(c))), 0.0)
        return np.where(zero, excess, row_sizes(moments / alpha - self.gradient(c)))


@dataclass(frozen=True)
class L1(Penalty):
    """The convex penalty ``psi(t) = t``, the total variation norm of the network as a measure over neurons."""

    def value(self, t: Array) -> Array:
        """Return ``t``."""
        return np.array(t, float)

    def slope(self, t: Array) -> Array:
        """Return 1."""
        return np.ones_like(t)

    def curvature(self, t: Array) -> Array:
        """Return 0."""
        return np.zeros_like(t)


@dataclass(frozen=True)
class LogPenalty(Penalty):
    """The concave penalty ``psi(t) = theta t + (1 - theta) log(1 + g t) / g`` with ``g = gamma / (1 - theta)``.

    ``psi'(0) = 1`` and ``psi''(0) = -gamma``; the slope falls to ``theta`` for large weights. The authors take
    ``theta = 1/2`` for d = 1 and d = 2, otherwise 1/4, and ``gamma = 10`` for d = 1, otherwise 5.

    Examples
    --------
    >>> LogPenalty(gamma=5.0).slope(np.array([0.0, 1.0, 1e9])).round(3)
    array([1.   , 0.348, 0.25 ])
    """

    gamma: float = 5.0
    theta: float = 0.25

    def __post_init__(self) -> None:
        if not (is_number(self.gamma) and self.gamma > 0):
            raise ValueError(f"`gamma` must be a number > 0, got {self.gamma!r}: take L1() for zero")
        if not (is_number(self.theta) and 0 <= self.theta < 1):
            raise ValueError(f"`theta` must be >= 0 and < 1, got {self.theta!r}")

    @property
    def _rate(self) -> float:
        return self.gamma / (1 - self.theta)

    def value(self, t: Array) -> Array:
        """Return ``theta t + (1 - theta) log(1 + g t) / g``."""
        return np.asarray(self.theta * t + (1 - self.theta) * np.log1p(self._rate * t) / self._rate)

    def slope(self, t: Array) -> Array:
        """Return ``theta + (1 - theta) / (1 + g t)``."""
        return np.asarray(self.theta + (1 - self.theta) / (1 + self._rate * t))

    def curvature(self, t: Array) -> Array:
        """Return ``-gamma / (1 + g t)^2``."""
        return np.asarray(-self.gamma / (1 + self._rate * t) ** 2)


@dataclass(frozen=True)
class Squared(Penalty):
    """The penalty ``psi(t) = t^2 / 2`` of ridge regression, which sets no weight to zero: ``psi'(0) = 0``."""

    sparse: ClassVar[bool] = False

    def value(self, t: Array) -> Array:
        """Return ``t^2 / 2``."""
        return np.asarray(t**2 / 2)

    def slope(self, t: Array) -> Array:
        """Return ``t``."""
        return np.array(t, float)

    def curvature(self, t: Array) -> Array:
        """Return 1."""
        return np.ones_like(t)


def row_sizes(c: Array) -> Array:
    """Return the lengths of the rows of ``c`` (N, k), of shape (N,)."""
    return np.asarray(np.sqrt(np.einsum("nk,nk->n", c, c)))


PENALTIES: dict[str, type[Penalty]] = {"l1": L1, "log": LogPenalty}
