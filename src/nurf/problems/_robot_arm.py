"""The robot arm: the distance between its tip and its base."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nurf._types import Array
from nurf.networks import Box
from nurf.problems._base import LIBRARY, Problem

Complex = npt.NDArray[np.complex128]


@dataclass(frozen=True)
class RobotArm(Problem):
    """The distance between the tip and the base of a robot arm in the plane.

    ``f = |w|``, ``w = u + i v = sum_i L_i exp(i Theta_i)``, ``Theta_i = theta_1 + ... + theta_i``, with lengths
    ``L_i`` in ``[0, 1]`` and relative angles ``theta_i`` in ``[0, 2 pi]``, interleaved as in the paper:
    ``x = (L_1, theta_1, L_2, theta_2, ...)``. ``f`` does not depend on ``theta_1``, which rotates the whole arm. If the
    dimension is odd, ``theta_1`` is omitted: ``x = (L_1, L_2, theta_2, ...)``, and ``f`` is the function of dimension
    ``d + 1``. If ``w = 0`` up to rounding errors, gradient and Hessian are set to zero: ``f`` has a kink there, and the
    Hessian is unbounded nearby.

    Source: An and Owen (2001), with d = 8: four lengths and four angles; the paper, section 5.2.2, with d = 6.

    Parameters
    ----------
    dimension : int, default=6
        The number of inputs: twice the number of segments, or one less.
    native : bool, default=False
        Whether points and derivatives are in native units (lengths and radians).
    """

    name: ClassVar[str] = "robot_arm"
    source: ClassVar[str] = f"J. An, A. Owen, Quasi-regression, Journal of Complexity 17 (2001), 588-607; {LIBRARY}"
    dimensions: ClassVar[tuple[int, int | None]] = (2, None)

    dimension: int = 6

    @property
    def segments(self) -> int:
        """Number of segments."""
        return (self.dimension + 1) // 2

    @property
    def native_domain(self) -> Box:
        """Lengths in ``[0, 1]``, angles in ``[0, 2 pi]``."""
        upper = np.tile([1.0, 2 * np.pi], self.segments)[self._kept]
        return Box(np.zeros_like(upper), upper)

    def _value(self, x: Array) -> Array:
        _, links = self._arm(x)
        return np.asarray(np.abs(links.sum(axis=1)))

    def _gradient(self, x: Array) -> Array:
        units, links = self._arm(x)
        direction, _ = self._tip(links)
        return np.asarray((direction.conj()[:, None] * self._first(units, links)).real)

    def _hessian(self, x: Array) -> Array:
        # |w| is linear along w: its curvature is due to motion of the tip across w, and to the curvature of w itself
        units, links = self._arm(x)
        direction, inverse = self._tip(links)
        across = (direction.conj()[:, None] * self._first(units, links)).imag
        along = (direction.conj()[:, None, None] * self._second(units, links)).real
        return np.asarray(across[:, :, None] * across[:, None, :] * inverse[:, None, None] + along)

    @property
    def _kept(self) -> npt.NDArray[np.intp]:
        """The indices of the inputs in ``L_1, theta_1, L_2, ...``: all, or all except ``theta_1``."""
        every = np.arange(2 * self.segments)
        return every if self.dimension % 2 == 0 else np.delete(every, 1)

    def _arm(self, x: Array) -> tuple[Complex, Complex]:
        """Return ``exp(i Theta_i)`` and ``L_i exp(i Theta_i)``, each of shape (n, segments)."""
        full = np.zeros((len(x), 2 * self.segments))
        full[:, self._kept] = x
        units = np.exp(1j * np.cumsum(full[:, 1::2], axis=1))
        return units, full[:, ::2] * units

    def _tip(self, links: Complex) -> tuple[Complex, Array]:
        """Return ``w / |w|`` and ``1 / |w|``, both zero if ``w = 0``."""
        w = links.sum(axis=1)
        closed = np.abs(w) <= 1e-14 * self.segments  # rounding errors for angles up to 2 pi and lengths up to 1
        inverse = np.where(closed, 0.0, 1 / np.where(closed, 1.0, np.abs(w)))
        return w * inverse, inverse

    def _first(self, units: Complex, links: Complex) -> Complex:
        """Return ``dw/dL_i = exp(i Theta_i)`` and ``dw/dtheta_i = i sum_{j >= i} L_j exp(i Theta_j)``, interleaved."""
        first = np.empty((len(links), 2 * self.segments), dtype=complex)
        first[:, ::2] = units
        first[:, 1::2] = 1j * _tails(links)
        return first[:, self._kept]

    def _second(self, units: Complex, links: Complex) -> Complex:
        """Return the second derivatives of ``w``: an angle rotates its own segment and all later ones."""
        m = self.segments
        second = np.zeros((len(links), 2 * m, 2 * m), dtype=complex)
        second[:, ::2, 1::2] = 1j * units[:, :, None] * np.tri(m)
        second[:, 1::2, ::2] = second[:, ::2, 1::2].swapaxes(1, 2)
        second[:, 1::2, 1::2] = -_tails(links)[:, np.maximum.outer(np.arange(m), np.arange(m))]
        return second[:, self._kept[:, None], self._kept]


def _tails(links: Complex) -> Complex:
    """Return ``sum_{j >= i} L_j exp(i Theta_j)`` for each segment ``i``, of shape (n, segments)."""
    return np.cumsum(links[:, ::-1], axis=1)[:, ::-1]
