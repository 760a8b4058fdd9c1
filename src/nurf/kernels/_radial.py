"""Kernels that depend on the distance of two points, with the derivatives that derivative data need."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import kve
from scipy.stats import chi, f

from nurf._types import Array
from nurf.kernels._base import Kernel

CLOSEST = 1e-10  # smallest distance of different points; shorter distances would be divided by powers of themselves


class RadialKernel(Kernel):
    """A kernel ``k(x, x') = phi(t)`` of ``t = |x - x'|^2 / 2``.

    The covariances of derivatives of a process with this kernel are sums of derivatives of ``phi``, times inner
    products of the directions of the derivatives with ``x - x'`` and with each other.
    """

    @abstractmethod
    def profile(self, t: Array, order: int = 0) -> Array:
        """Return ``phi`` at ``t``, or its derivative of an order up to 5.

        A derivative that is infinite at 0 must be 0 there: it is multiplied by powers of ``x - x'``, and the rounding
        errors of large terms that cancel would stay.
        """

    @abstractmethod
    def spectral_density(self, lengths: Array, d: int) -> Array:
        """Return the density of the lengths ``|w|`` of the waves that add up to processes in ``d`` dimensions.

        ``k(x, x')`` is ``int p(l) E cos(l u.(x - x')) dl`` for ``u`` uniform on the sphere, up to a constant: where the
        constant is infinite, so is the integral of the density.
        """

    @property
    def curvature(self) -> float:
        """The root mean square ``sqrt(-phi'(0))`` of partial derivatives of a process with the kernel and scale one."""
        return float(np.sqrt(-self.profile(np.zeros(()), 1)))

    def _matrix(self, X: Array, Y: Array) -> Array:
        return self.profile(cdist(X, Y, "sqeuclidean") / 2)

    def _check(self, name: str, X: Array) -> None:
        pass


@dataclass(frozen=True)
class GaussianKernel(RadialKernel):
    """The Gaussian kernel ``exp(-|x - x'|^2 / 2)``, for functions that are very smooth.

    This kernel is the limit of infinitely many neurons ``cos(a.x + b)``, ``a`` normal and ``b`` uniform (Rahimi, Recht
    2007).

    Examples
    --------
    >>> round(float(GaussianKernel()([0.0, 0.0], [0.0, 1.0])), 4)
    0.6065
    """

    def profile(self, t: Array, order: int = 0) -> Array:
        """Return ``(-1)^m exp(-t)``."""
        return np.asarray((-1) ** order * np.exp(-t))

    def spectral_density(self, lengths: Array, d: int) -> Array:
        """Return the chi distribution: frequencies are normal."""
        return np.asarray(chi.pdf(lengths, d))


@dataclass(frozen=True)
class MaternKernel(RadialKernel):
    """The Matern kernel of smoothness 5/2, ``(1 + s + s^2 / 3) exp(-s)`` with ``s = sqrt(5) |x - x'|``.

    Its functions have two derivatives.

    Examples
    --------
    >>> round(float(MaternKernel()([0.0, 0.0], [0.0, 1.0])), 4)
    0.524
    """

    def profile(self, t: Array, order: int = 0) -> Array:
        """Return ``phi`` or a derivative: ``phi'' = 25/3 exp(-s)``, and ``d/dt = 5/s d/ds``."""
        s = np.sqrt(10 * t)
        decay = np.exp(-s)
        if order == 0:
            return np.asarray((1 + s + s**2 / 3) * decay)
        if order == 1:
            return np.asarray(-5 / 3 * (1 + s) * decay)
        close, s = s < CLOSEST, np.maximum(s, CLOSEST)
        polynomial = {2: 1.0, 3: -1 / s, 4: (1 + s) / s**3, 5: -(3 + 3 * s + s**2) / s**5}[order]
        return np.where(close & (order > 2), 0.0, 5.0**order / 3 * polynomial * decay)

    def spectral_density(self, lengths: Array, d: int) -> Array:
        """Return the density for frequencies of a t distribution with five degrees of freedom."""
        return np.asarray(f.pdf(lengths**2 / d, d, 5) * 2 * lengths / d)


@dataclass(frozen=True)
class ErfKernel(RadialKernel):
    """The infinitely wide network of ``Erf`` neurons with normal weights, ``-sqrt(1 + |x - x'|^2)``, up to a constant.

    For neurons ``sigma(a.x + b)`` of order 1, with ``a`` normal and ``b`` uniform on ``[-R, R]``, as in eq. 3.7 of the
    paper::

        E sigma(a.x + b) sigma(a.x' + b) = const - E|a.(x - x') + eps_1 - eps_2| / (4 R)
                                         = const - sqrt(2 / pi) sqrt(|x - x'|^2 + 2 delta^2) / (4 R),

    because ``a.(x - x') + eps_1 - eps_2`` is normal if the mollifier of the activation is. The formula is exact in the
    limit of large ``R``, where the constant is infinite. So the kernel is used together with an unknown constant: for
    differences of values it is positive definite (conditionally positive definite of order one). Another name is the
    multiquadric (Hardy 1971). The unit of length is ``sqrt(2) delta``.

    Examples
    --------
    >>> round(float(ErfKernel()([0.0, 0.0], [0.0, 1.0])), 4)
    -1.4142
    """

    def profile(self, t: Array, order: int = 0) -> Array:
        """Return ``phi`` or a derivative: ``-prod_{j<m} (1/2 - j) 2^m (1 + 2 t)^(1/2 - m)``."""
        factor = -math.prod(1.0 - 2 * k for k in range(order))
        return np.asarray(factor * (1 + 2 * t) ** (0.5 - order))

    def spectral_density(self, lengths: Array, d: int) -> Array:
        """Return ``2^((3-d)/2) / (sqrt(pi) Gamma(d/2)) l^((d-3)/2) K_((d+1)/2)(l)``, with the Bessel function ``K``.

        This is a mixture of chi distributions, from ``sqrt(u) = int_0^inf (1 - exp(-s u)) s^(-3/2) ds / (2 sqrt(pi))``.
        """
        factor = math.log(2) * (3 - d) / 2 - math.lgamma(d / 2) - math.log(math.pi) / 2
        return np.asarray(np.exp(factor + (d - 3) / 2 * np.log(lengths) + _log_bessel((d + 1) / 2, lengths)))


def _log_bessel(order: float, x: Array) -> Array:
    """Return the logarithm of the Bessel function ``K`` of an order and positive numbers.

    In many dimensions, long waves have values of ``K`` above the largest number. There the order is above 50, and the
    expansion for large orders (https://dlmf.nist.gov/10.41#E4) has a relative error of about 1e-8.
    """
    scaled = kve(order, x)  # exp(x) K(x)
    known = np.isfinite(scaled)
    root = np.hypot(order, x)
    p = order / root
    terms = 1 - (3 * p - 5 * p**3) / (24 * order) + (81 * p**2 - 462 * p**4 + 385 * p**6) / (1152 * order**2)
    expanded = order * np.arcsinh(order / x) - root + np.log(np.pi / (2 * root)) / 2 + np.log(terms)
    return np.where(known, np.log(np.where(known, scaled, 1.0)) - x, expanded)


RADIAL_KERNELS: dict[str, Callable[[], RadialKernel]] = {
    "gaussian": GaussianKernel,
    "matern": MaternKernel,
    "erf": ErfKernel,
}
