"""The profiles ``psi_k``, functions of one variable in the exact representation (paper, section 4.1)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.integrate import cumulative_trapezoid
from scipy.special import bernoulli, gamma, hyp1f1

from nurf._types import Array

Complex = npt.NDArray[np.complex128]

EULER_MACLAURIN_TERMS = 12
EULER_MACLAURIN_START = 12
MIN_WIDTH = 1e-12  # distances of points of size 1 to a hyperplane are known up to 1e-16
MAX_SCALE = 1e200  # of a profile; the rest of the range of floating-point numbers is for the sums over the data


class Mollifier(ABC):
    """A mollifier ``eta``: a probability density on the real line, with the Fourier transform ``h``.

    A subclass implements ``moment(m, t) = int_0^infinity xi^m h(xi) exp(i xi t) dxi``. The density is
    ``eta(t) = Re moment(0, t) / pi``, and samples come from a table of its integral.
    """

    REACH: ClassVar[float] = 1e4  # samples have at most this absolute value

    @abstractmethod
    def moment(self, m: int, t: Array) -> Complex:
        """Return ``int_0^infinity xi^m h(xi) exp(i xi t) dxi``."""

    def stretch(self, dimension: int, order: int) -> float:
        """Return the width of the mollifier divided by the width of the neurons."""
        return 1.0

    def log_density(self, t: Array) -> Array:
        """Return ``log eta(t)``."""
        values = self.moment(0, t).real / np.pi
        return np.log(values, where=values > 0, out=np.full(values.shape, -np.inf))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return ``n`` independent numbers with the density ``eta``."""
        nodes, integrals = Profile(self, 1, 0, 1.0).cumulative(self.REACH)
        return np.asarray(np.interp(rng.random(n) * integrals[-1], integrals, nodes))


@dataclass(frozen=True)
class Logistic(Mollifier):
    """The logistic density ``sech(t / 2)^2 / 4``, the derivative of the sigmoid; ``h(xi) = pi xi / sinh(pi xi)``.

    As ``1 / sinh(z) = 2 sum_j exp(-(2 j + 1) z)``, the moment is
    ``(m+1)! (2 pi)^-(m+1) zeta(m+2, 1/2 - i t / (2 pi))`` with the Hurwitz zeta function.
    """

    def moment(self, m: int, t: Array) -> Complex:
        """Return the moment, by the Euler-Maclaurin formula for the zeta function."""
        scale = math.factorial(m + 1) * (2 * np.pi) ** -(m + 1)
        q: Complex = np.asarray(0.5 - 1j * np.asarray(t, float) / (2 * np.pi), dtype=np.complex128)
        return scale * _hurwitz_zeta(m + 2, q)

    def log_density(self, t: Array) -> Array:
        """Return ``-|t| - 2 log(1 + exp(-|t|))``."""
        size = np.abs(t)
        return np.asarray(-size - 2 * np.log1p(np.exp(-size)))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return ``n`` independent numbers with the logistic distribution."""
        return rng.logistic(size=n)


@dataclass(frozen=True)
class Gaussian(Mollifier):
    """The normal density, ``h(xi) = exp(-xi^2 / 2)``. The moments are Kummer functions of ``-t^2 / 2``.

    Far from zero the moments are ``sum_j (-1/2)^j / j! (m + 2 j)! (i / t)^(m + 2 j + 1)``, by Watson's lemma.
    """

    FAR: ClassVar[float] = 50.0
    TERMS: ClassVar[int] = 14

    def moment(self, m: int, t: Array) -> Complex:
        """Return the moment."""
        t = np.asarray(t, float)
        far = np.abs(t) > self.FAR
        near = np.where(far, 0.0, t)
        z = -(near**2) / 2
        even = 2 ** ((m - 1) / 2) * gamma((m + 1) / 2) * hyp1f1((m + 1) / 2, 0.5, z)
        odd = 2 ** (m / 2) * gamma(m / 2 + 1) * near * hyp1f1(m / 2 + 1, 1.5, z)
        return np.where(far, self._far_moment(m, np.where(far, t, self.FAR)), even + 1j * odd)

    def _far_moment(self, m: int, t: Array) -> Complex:
        """Return the asymptotic series, whose terms are all real or all imaginary."""
        total = np.zeros(t.shape, complex)
        for j in range(self.TERMS):
            power = m + 2 * j + 1
            unit = (1, 1j, -1, -1j)[power % 4]
            total += unit * (-0.5) ** j / math.factorial(j) * math.factorial(power - 1) * (1 / t) ** power
        return total

    def log_density(self, t: Array) -> Array:
        """Return ``-t^2 / 2 - log(2 pi) / 2``."""
        return np.asarray(-np.square(t) / 2 - np.log(2 * np.pi) / 2)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return ``n`` independent numbers with the standard normal distribution."""
        return rng.standard_normal(n)


@dataclass(frozen=True)
class Cauchy(Mollifier):
    """The Cauchy density, ``h(xi) = exp(-xi)``. The moments are ``m! (1 - i t)^-(m+1)``.

    As in the authors' experiments, its width is ``sqrt(d + s - 1)`` times the width of the neurons.
    """

    def moment(self, m: int, t: Array) -> Complex:
        """Return the moment."""
        return np.asarray(math.factorial(m) * (1 - 1j * np.asarray(t)) ** -(m + 1))

    def stretch(self, dimension: int, order: int) -> float:
        """Return the width of the density in widths of the neurons, ``sqrt(d + s - 1)``."""
        return math.sqrt(dimension + order - 1)

    def log_density(self, t: Array) -> Array:
        """Return ``-log(pi) - log(1 + t^2)``."""
        return np.asarray(-np.log(np.pi) - np.log1p(np.square(t)))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return ``n`` independent numbers with the Cauchy distribution."""
        return rng.standard_cauchy(n)


MOLLIFIERS: dict[str, Mollifier] = {"logistic": Logistic(), "gaussian": Gaussian(), "cauchy": Cauchy()}


def as_mollifier(mollifier: str | Mollifier) -> Mollifier:
    """Return the mollifier with the given name, or the given object."""
    if isinstance(mollifier, Mollifier):
        return mollifier
    if mollifier not in MOLLIFIERS:
        raise ValueError(f"`mollifier` must be one of {', '.join(MOLLIFIERS)}, or an object, got {mollifier!r}")
    return MOLLIFIERS[mollifier]


def psi(mollifier: Mollifier, dimension: int, k: int, t: Any) -> Array:
    """Return ``psi_k = c_d (-d/dt)^k Lambda^(d-1) eta`` at ``t``, with ``1 / c_d = 2 (2 pi)^(d-1)`` (section 4.1).

    ``Lambda`` multiplies the Fourier transform by ``|xi|``, so for even and odd dimensions
    ``psi_k(t) = c_d / pi int_0^infinity xi^(d-1+k) h(xi) cos(xi t - k pi / 2) dxi``.
    """
    moment = mollifier.moment(dimension - 1 + k, np.asarray(t, float))
    constant = 1 / (2 * np.pi * (2 * np.pi) ** (dimension - 1))
    return np.asarray(constant * ((-1j) ** k * moment).real)


@dataclass(frozen=True)
class Profile:
    """The function ``psi_{k,delta}(t) = delta^-(d+k) psi_k(t / delta)``, interpolated in a table of ``psi_k``."""

    FAR_NODES: ClassVar[int] = 1000  # beyond the table, for each factor of e

    mollifier: Mollifier
    dimension: int
    k: int
    width: float

    def __post_init__(self) -> None:
        smallest = max(MIN_WIDTH, MAX_SCALE ** (-1 / (self.dimension + self.k)))
        if not self.width >= smallest:
            raise ValueError(
                f"`width` must be at least {smallest:.3g} in {self.dimension} dimensions, got {self.width:.3g}: powers "
                "of it overflow, or distances to hyperplanes are rounding errors"
            )

    @property
    def scale(self) -> float:
        """The factor ``delta^-(d+k)``."""
        return float(self.width ** -(self.dimension + self.k))

    def __call__(self, t: Array) -> Array:
        """Return the values at ``t``."""
        t = np.asarray(t, float)
        values = _table(self.mollifier, self.dimension, self.k)(np.atleast_1d(t) / self.width)
        return np.asarray(values.reshape(t.shape) * self.scale)

    def cumulative(self, limit: float) -> tuple[Array, Array]:
        """Return nodes in ``[-limit, limit]`` and the integrals of ``|psi_{k,delta}|`` from ``-limit`` to each node."""
        table = _table(self.mollifier, self.dimension, self.k)
        near, reach = min(limit, table.END * self.width), limit / self.width
        nodes = np.linspace(0.0, near, int(np.ceil(near / (table.step * self.width))) + 1)
        if reach > table.END:  # the profile is smooth beyond the table: nodes at equal ratios suffice for any limit
            ratios = np.geomspace(table.END, reach, int(np.ceil(self.FAR_NODES * np.log(reach / table.END))) + 2)
            nodes = np.concatenate([nodes, ratios[1:-1] * self.width, [limit]])
        nodes = np.concatenate([-nodes[:0:-1], nodes])
        return nodes, cumulative_trapezoid(np.abs(self(nodes)), nodes, initial=0)


class _Table:
    """Cubic Hermite interpolation of ``psi_k``, with ``psi_k' = -psi_{k+1}``; exact values for ``|t| > END``."""

    END = 100.0
    RESOLUTION = 1000  # nodes per oscillation, at the frequency that maximises xi^(d-1+k) exp(-xi)

    def __init__(self, mollifier: Mollifier, dimension: int, k: int) -> None:
        frequency = max(1, dimension - 1 + k)
        self.n = int(self.END * frequency * self.RESOLUTION / (2 * np.pi))
        self.step = self.END / self.n
        self.odd = k % 2 == 1
        self.exact = partial(psi, mollifier, dimension, k)
        nodes = np.linspace(0.0, self.END, self.n + 1)
        values, slopes = self.exact(nodes), -self.step * psi(mollifier, dimension, k + 1, nodes)
        rise, left, right = np.diff(values), slopes[:-1], slopes[1:]
        # coefficients of 1, f, f^2 and f^3 in each cell, f in [0, 1]
        self.coef = np.column_stack([values[:-1], left, 3 * rise - 2 * left - right, left + right - 2 * rise])

    def __call__(self, t: Array) -> Array:
        position = np.abs(t)
        position *= 1 / self.step
        far = position >= self.n
        cell = np.minimum(position, self.n).astype(np.int64)
        position -= cell
        c = self.coef.take(cell, axis=0, mode="clip")
        values = ((c[..., 3] * position + c[..., 2]) * position + c[..., 1]) * position + c[..., 0]
        if far.any():
            values[far] = self.exact(np.abs(t[far]))
        return np.asarray(np.where(t < 0, -values, values) if self.odd else values)


@lru_cache(maxsize=32)
def _table(mollifier: Mollifier, dimension: int, k: int) -> _Table:
    return _Table(mollifier, dimension, k)


def _hurwitz_zeta(s: int, q: Complex) -> Complex:
    """Return ``sum_j (q + j)^-s`` for integers ``s >= 2`` and complex ``q`` with positive real part."""
    total = np.zeros_like(q)
    for j in range(EULER_MACLAURIN_START):
        total += (q + j) ** -s
    q = q + EULER_MACLAURIN_START
    total += q ** (1 - s) / (s - 1) + q**-s / 2
    numbers = bernoulli(2 * EULER_MACLAURIN_TERMS)[2::2]
    factor = s * q ** (-s - 1)
    for r, number in enumerate(numbers, start=1):
        total += number / math.factorial(2 * r) * factor
        factor = factor * (s + 2 * r - 1) * (s + 2 * r) / q**2
    return total
