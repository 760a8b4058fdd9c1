"""The borehole function: water flow through a borehole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nurf._types import Array
from nurf.networks import Box
from nurf.problems._base import LIBRARY, Problem

RANGES = (
    (0.05, 0.15),  # rw
    (100.0, 50000.0),  # r
    (63070.0, 115600.0),  # Tu
    (990.0, 1110.0),  # Hu
    (63.1, 116.0),  # Tl
    (700.0, 820.0),  # Hl
    (1120.0, 1680.0),  # L
    (9855.0, 12045.0),  # Kw
)
RW, R, TU, HU, TL, HL, LENGTH, KW = range(8)


@dataclass(frozen=True)
class Borehole(Problem):
    """The flow of water (m^3 per year) through a borehole between two aquifers.

    ``f = 2 pi Tu (Hu - Hl) / (ln(r/rw) (1 + 2 L Tu / (ln(r/rw) rw^2 Kw) + Tu / Tl))``, for
    ``x = (rw, r, Tu, Hu, Tl, Hl, L, Kw)``:

    ====  ===================================  ================  ========
    rw    radius of the borehole               0.05 .. 0.15      m
    r     radius of influence                  100 .. 50000      m
    Tu    transmissivity, upper aquifer        63070 .. 115600   m^2/year
    Hu    potentiometric head, upper aquifer   990 .. 1110       m
    Tl    transmissivity, lower aquifer        63.1 .. 116       m^2/year
    Hl    potentiometric head, lower aquifer   700 .. 820        m
    L     length of the borehole               1120 .. 1680      m
    Kw    hydraulic conductivity               9855 .. 12045     m/year
    ====  ===================================  ================  ========

    The implementation uses ``f = 2 pi (Hu - Hl) / Z`` with the resistance
    ``Z = ln(r/rw) (1/Tu + 1/Tl) + 2 L / (rw^2 Kw)``.

    Source: Morris, Mitchell and Ylvisaker (1993); the paper, section 5.2.2. The code for the figure in the paper
    evaluates a different function.

    Parameters
    ----------
    dimension : int, default=8
        The number of inputs, which must be 8.
    native : bool, default=False
        Whether points and derivatives are in physical units.
    """

    name: ClassVar[str] = "borehole"
    source: ClassVar[str] = (
        "M. D. Morris, T. J. Mitchell, D. Ylvisaker, Bayesian design and analysis of computer experiments: "
        f"use of derivatives in surface prediction, Technometrics 35 (1993), 243-255; {LIBRARY}"
    )
    dimensions: ClassVar[tuple[int, int | None]] = (8, 8)

    dimension: int = 8

    @property
    def native_domain(self) -> Box:
        """The physical ranges."""
        lower, upper = np.array(RANGES).T
        return Box(lower, upper)

    def _value(self, x: Array) -> Array:
        return np.asarray(2 * np.pi * (x[:, HU] - x[:, HL]) / _resistance(x))

    def _gradient(self, x: Array) -> Array:
        slope = _resistance_gradient(x) / _resistance(x)[:, None]
        return np.asarray(_head_gradient(x) - self._value(x)[:, None] * slope)

    def _hessian(self, x: Array) -> Array:
        Z = _resistance(x)[:, None, None]
        slope = _resistance_gradient(x) / Z[:, 0]
        mixed = _head_gradient(x)[:, :, None] * slope[:, None, :]
        curvature = 2 * slope[:, :, None] * slope[:, None, :] - _resistance_hessian(x) / Z
        return np.asarray(self._value(x)[:, None, None] * curvature - mixed - mixed.swapaxes(1, 2))


def _head_gradient(x: Array) -> Array:
    """Return the gradient of ``2 pi (Hu - Hl)``, divided by the resistance."""
    gradient = np.zeros_like(x)
    gradient[:, HU] = 2 * np.pi / _resistance(x)
    gradient[:, HL] = -gradient[:, HU]
    return gradient


def _parts(x: Array) -> tuple[Array, Array, Array]:
    """Return ``ln(r/rw)``, ``1/Tu + 1/Tl`` and ``2 L / (rw^2 Kw)``."""
    logarithm = np.log(x[:, R] / x[:, RW])
    return logarithm, 1 / x[:, TU] + 1 / x[:, TL], 2 * x[:, LENGTH] / (x[:, RW] ** 2 * x[:, KW])


def _resistance(x: Array) -> Array:
    logarithm, leak, pipe = _parts(x)
    return np.asarray(logarithm * leak + pipe)


def _resistance_gradient(x: Array) -> Array:
    logarithm, leak, pipe = _parts(x)
    gradient = np.zeros_like(x)
    gradient[:, RW] = -(leak + 2 * pipe) / x[:, RW]
    gradient[:, R] = leak / x[:, R]
    gradient[:, TU] = -logarithm / x[:, TU] ** 2
    gradient[:, TL] = -logarithm / x[:, TL] ** 2
    gradient[:, LENGTH] = pipe / x[:, LENGTH]
    gradient[:, KW] = -pipe / x[:, KW]
    return gradient


def _resistance_hessian(x: Array) -> Array:
    logarithm, leak, pipe = _parts(x)
    rw, r, L, Kw = x[:, RW], x[:, R], x[:, LENGTH], x[:, KW]
    hessian = np.zeros((len(x), 8, 8))
    for T in (TU, TL):
        hessian[:, RW, T] = 1 / (rw * x[:, T] ** 2)
        hessian[:, R, T] = -1 / (r * x[:, T] ** 2)
    hessian[:, RW, LENGTH] = -2 * pipe / (rw * L)
    hessian[:, RW, KW] = 2 * pipe / (rw * Kw)
    hessian[:, LENGTH, KW] = -pipe / (L * Kw)
    hessian += hessian.swapaxes(1, 2)
    hessian[:, RW, RW] = (leak + 6 * pipe) / rw**2
    hessian[:, R, R] = -leak / r**2
    for T in (TU, TL):
        hessian[:, T, T] = 2 * logarithm / x[:, T] ** 3
    hessian[:, KW, KW] = 2 * pipe / Kw**2
    return hessian
