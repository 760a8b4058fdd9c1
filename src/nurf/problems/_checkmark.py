"""The checkmark: a Gaussian along a curved manifold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nurf._types import Array
from nurf.problems._base import PAPER, Problem
from nurf.problems._huber import huber


@dataclass(frozen=True)
class Checkmark(Problem):
    """A Gaussian concentrated along the graph of a smoothed cone, which looks like a checkmark for d = 2.

    ``f(x) = exp(-|D T(x)|^2 / 2)`` with ``D = diag(8, 4, 2, 1, 1/2, ...)``,
    ``T(x) = (x_1 - H(z), x_2, ..., x_d)``, ``z = (x_2, ..., x_d)``, ``H(z) = -1/3 + 2/3 h(3 |z|)`` and the
    Huber function ``h``. ``H`` is quadratic for ``|z| < 1/6``, so ``f`` is smooth at ``z = 0``; its Hessian
    jumps at ``|z| = 1/6``.

    Source: the paper, section 5.1.4, where ``H`` is printed with ``|x|`` instead of ``|z|``.

    Parameters
    ----------
    dimension : int, default=2
        The number of inputs, at least 2.
    native : bool, default=False
        Has no effect, as native and scaled units are the same.
    """

    name: ClassVar[str] = "checkmark"
    source: ClassVar[str] = f"{PAPER}, section 5.1.4"
    dimensions: ClassVar[tuple[int, int | None]] = (2, None)

    dimension: int = 2

    def _value(self, x: Array) -> Array:
        exponent = self._precision[0] * _height(x) ** 2 + x**2 @ self._tail_precision
        return np.asarray(np.exp(-exponent / 2))

    def _gradient(self, x: Array) -> Array:
        return np.asarray(self._value(x)[:, None] * self._exponent_gradient(x))

    def _hessian(self, x: Array) -> Array:
        slope, normal = self._exponent_gradient(x), _height_gradient(x)
        curvature = normal[:, :, None] * normal[:, None, :]
        curvature[:, 1:, 1:] -= _height(x)[:, None, None] * _graph_hessian(x[:, 1:])
        curvature = self._precision[0] * curvature + np.diag(self._tail_precision)
        return np.asarray(self._value(x)[:, None, None] * (slope[:, :, None] * slope[:, None, :] - curvature))

    @property
    def _precision(self) -> Array:
        """The squares of the diagonal of ``D``: 64, 16, 4, 1, 1/4 and so on."""
        return np.asarray(64.0 * 0.25 ** np.arange(self.dimension))

    @property
    def _tail_precision(self) -> Array:
        """The precision with zero for ``x_1``: 0, 16, 4, 1, 1/4 and so on."""
        return np.asarray(self._precision * (np.arange(self.dimension) > 0))

    def _exponent_gradient(self, x: Array) -> Array:
        """Return the gradient of ``-|D T(x)|^2 / 2``."""
        steep = self._precision[0] * _height(x)[:, None] * _height_gradient(x)
        return np.asarray(-steep - self._tail_precision * x)


def _height(x: Array) -> Array:
    """Return ``T_1 = x_1 - H(z)``."""
    return np.asarray(x[:, 0] + 1 / 3 - 2 / 3 * huber(3 * np.linalg.norm(x[:, 1:], axis=1))[0])


def _height_gradient(x: Array) -> Array:
    """Return the gradient of ``T_1``, ``(1, -6 q z)``."""
    z = x[:, 1:]
    return np.concatenate([np.ones((len(x), 1)), -6 * _huber_ratio(z)[:, None] * z], axis=1)


def _huber_ratio(z: Array) -> Array:
    """Return ``q = h'(t) / t`` at ``t = 3 |z|``, without division by zero: ``q`` is 2 near the origin."""
    return np.asarray(1 / np.maximum(3 * np.linalg.norm(z, axis=1), 0.5))


def _graph_hessian(z: Array) -> Array:
    """Return the Hessian of ``H``, ``6 (q I + (h'' - q) z z^T / |z|^2)`` with ``q = h'(t) / t``, ``t = 3 |z|``."""
    ratio = _huber_ratio(z)
    # if t < 1/2, then h'' = q and the second term vanishes; otherwise q = 1/t, so (3 q)^2 = 1 / |z|^2
    radial = (huber(3 * np.linalg.norm(z, axis=1))[2] - ratio) * (3 * ratio) ** 2
    outer = z[:, :, None] * z[:, None, :]
    return np.asarray(6 * (ratio[:, None, None] * np.eye(z.shape[1]) + radial[:, None, None] * outer))
