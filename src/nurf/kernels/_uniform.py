"""The infinite-width limit of uniform features."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.interpolate import PPoly, make_interp_spline
from scipy.spatial.distance import cdist
from scipy.special import beta, erfc, exprel, poch

from nurf._types import Array
from nurf.activations import Activation, Erf, Sigmoid, Softplus
from nurf.kernels._base import Kernel
from nurf.networks import Ball

TOLERANCE = 1e-9  # relative distance by which points may lie outside the ball; scaled data lie on its boundary
CUTOFF = 40.0  # exp(-CUTOFF) is negligible
STEP = 1 / 64  # of the tables, for which quintic splines are accurate to about 1e-12
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True)
class UniformKernel(Kernel):
    """The infinite-width limit of uniform random features, for points in a ball.

    ``k_{R,s,delta}(x, x') = E sigma_{s,delta}(a.x + b) sigma_{s,delta}(a.x' + b)`` for ``a`` uniform on the unit sphere
    and ``b`` uniform on ``[-R, R]``, the density of ``Uniform()`` on ``Ball(R)`` (paper, eqs. 2.6 and 2.8). Adding up
    the neurons ``(a, b)`` and ``(-a, -b)`` gives a polynomial plus a function of the distance (paper, eq. 3.7)::

        k = [E ((a.x + b) (a.x' + b))^(s-1) + (-1)^s B(s, s) / (2 R) g(|x - x'|)] / (2 (s-1)!^2),
        g(r) = E |a_1 r + eps_1 - eps_2|^(2s-1),

    where ``B(s, s) = (s-1)!^2 / (2s-1)!`` is Euler's beta function, and ``eps_1, eps_2`` are independent random
    variables whose density is the mollifier of width ``delta`` (logistic or normal). For ``delta = 0`` and
    ``r = |x - x'|`` the kernel is::

        s = 1:  1/2 - E|a_1| r / (4 R),
        s = 2:  R^2 / 6 + x.x' / (2 d) + E|a_1|^3 r^3 / (24 R),
        s = 3:  R^4 / 40 + R^2 (|x|^2 + |x'|^2 + 4 x.x') / (24 d)
                + (|x|^2 |x'|^2 + 2 (x.x')^2) / (8 d (d+2)) - E|a_1|^5 r^5 / (480 R).

    The width changes ``g`` only: ``eps_1`` and ``eps_2`` are independent and have mean zero, so they do not change the
    polynomial.

    For ``delta = 0`` the formula is exact for ``|x|, |x'| <= R``. It does not hold for points outside the ball, which
    raise a ``ValueError``. For ``delta > 0`` the formula extends the range of the offsets beyond ``[-R, R]``, which
    causes an error of at most::

        C (e(|x|) + e(|x'|)),  e(t) = exp(-(R - t) / delta)  (normal: exp(-(R - t)^2 / (2 delta^2))),

    with ``C = delta / (2 R)`` for ``s = 1`` and ``C = delta^2 (1 + delta / R)`` for ``s = 2``. The error is negligible
    if all points are many widths away from the boundary. The actual error is smaller than the bound: for ``Sigmoid(R /
    10)`` and points on the sphere ``|x| = R`` it is 0.01 for ``d = 2`` and 0.001 for ``d = 6``. Kernel matrices are
    positive semidefinite up to this error.

    Parameters
    ----------
    activation : Activation
        ``Heaviside``, ``ReLU``, ``ReLUPower(2)``, or one of ``Sigmoid``, ``Erf``, ``Softplus`` with one width.
    radius : float, default=1
        The radius ``R`` of the ball that contains the points, and the bound of the offsets. For a smooth activation it
        should be a few widths larger than the points require.

    Examples
    --------
    >>> from nurf.activations import Heaviside, Sigmoid
    >>> kernel = UniformKernel(Heaviside())
    >>> kernel([[0.0, 0.0], [0.0, 0.5]]).round(3)
    array([[0.5 , 0.42],
           [0.42, 0.5 ]])
    >>> round(float(UniformKernel(Sigmoid(0.05))([0.0, 0.0], [0.0, 0.5])), 3)
    0.418
    """

    activation: Activation
    radius: float = 1.0

    def __post_init__(self) -> None:
        Ball(self.radius)  # checks the radius
        if not isinstance(self.activation, Activation):
            raise ValueError(f"`activation` must be an object of nurf.activations, got {self.activation!r}")
        kind, width = type(self.activation), self.activation.width
        if self.activation.order not in (1, 2, 3):
            raise ValueError(f"`activation` must have order 1, 2 or 3, got {self.activation!r}")
        if np.ndim(width) > 0:
            raise ValueError(f"`activation` must have the same width for all neurons, got {np.size(width)} widths")
        if width != 0 and kind not in DIFFERENCE_MOMENTS:
            names = ", ".join(known.__name__ for known in DIFFERENCE_MOMENTS)
            raise ValueError(f"a smooth `activation` must be one of {names}, got {self.activation!r}")
        if not width < self.radius:
            raise ValueError(f"`width` must be smaller than `radius` = {self.radius}, got {width}")

    def _check(self, name: str, X: Array) -> None:
        lengths = np.linalg.norm(X, axis=1)
        outside = lengths > self.radius * (1 + TOLERANCE)
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(
                f"`{name}` must lie in the ball of radius {self.radius}, outside of which the formula does not hold, "
                f"got length {lengths[row]:.6g} in row {row}: scale the points or use a larger `radius`"
            )

    def _matrix(self, X: Array, Y: Array) -> Array:
        s, R = self.activation.order, self.radius
        radial = (-1) ** s * beta(s, s) / (2 * R) * self._mean_power(cdist(X, Y), X.shape[1])
        return np.asarray((_mean_product(s - 1, X, Y, R) + radial) / (2 * math.factorial(s - 1) ** 2))

    def _mean_power(self, r: Array, d: int) -> Array:
        """Return ``g(r) = E |a_1 r + eps_1 - eps_2|^(2s-1)``."""
        width, power = float(self.activation.width), 2 * self.activation.order - 1
        result = _moment(power, d) * r**power
        if width > 0:
            moments = DIFFERENCE_MOMENTS[type(self.activation)]
            remainder = _table(moments.remainder, d, 2 * self.radius / width)
            result += width ** (power - 1) * moments.slope * _moment(1, d) * r
            result += width**power * remainder(np.arcsinh(r / width))
        return np.asarray(result)


@dataclass(frozen=True)
class _DifferenceMoments:
    """Moments of the difference ``zeta = eps_1 - eps_2`` of two samples from a mollifier of width one.

    ``E |t + zeta|^(2s-1) = |t|^(2s-1) + slope |t| + remainder(|t|)``. ``slope`` is zero for ``s = 1`` and three times
    the variance of ``zeta`` for ``s = 2``; ``remainder`` is negligible beyond ``CUTOFF``.
    """

    slope: float
    remainder: Callable[[Array], Array]


def _logistic_step(t: Array) -> Array:
    """Return ``t coth(t / 2) - t = 2 t / (exp(t) - 1)``."""
    return np.asarray(2 / exprel(t))


def _normal_step(t: Array) -> Array:
    """Return the mean of ``|t + zeta| - t`` for ``zeta ~ N(0, 2)``, from the folded normal distribution."""
    return np.asarray(2 / math.sqrt(math.pi) * np.exp(-(t**2) / 4) - t * erfc(t / 2))


def _logistic_ramp(t: Array) -> Array:
    """Return the decaying function whose second derivative is six times ``_logistic_step``.

    The second derivative of ``E |t + zeta|^3`` is ``6 E |t + zeta|``, hence
    ``remainder(t) = 12 int_0^inf v (t + v) / (exp(t + v) - 1) dv``.
    """
    total = np.zeros_like(t)
    for v, weight in zip(CUTOFF * (1 + NODES) / 2, CUTOFF * WEIGHTS / 2, strict=True):
        total += 12 * weight * v / exprel(t + v)
    return total


DIFFERENCE_MOMENTS: dict[type[Activation], _DifferenceMoments] = {
    Sigmoid: _DifferenceMoments(0.0, _logistic_step),
    Erf: _DifferenceMoments(0.0, _normal_step),
    Softplus: _DifferenceMoments(2 * math.pi**2, _logistic_ramp),
}


def _mean_product(power: int, X: Array, Y: Array, R: float) -> Array:
    """Return the mean of ``((a.x + b) (a.x' + b))^power`` over ``a`` and ``b``, for a power of 0, 1 or 2: (n, m)."""
    if power == 0:
        return np.ones((len(X), len(Y)))
    d, dot = X.shape[1], X @ Y.T
    if power == 1:
        return np.asarray(R**2 / 3 + dot / d)
    x, y = np.sum(X**2, axis=1)[:, None], np.sum(Y**2, axis=1)
    return np.asarray(R**4 / 5 + R**2 * (x + y + 4 * dot) / (3 * d) + (x * y + 2 * dot**2) / (d * (d + 2)))


def _moment(power: int, d: int) -> float:
    """Return ``E |a_1|^power = Gamma(d/2) Gamma((power+1)/2) / (sqrt(pi) Gamma((d+power)/2))``."""
    return float(math.gamma((power + 1) / 2) / (math.sqrt(math.pi) * poch(d / 2, power / 2)))


@lru_cache(maxsize=64)
def _table(f: Callable[[Array], Array], d: int, t_max: float) -> PPoly:
    """Return ``E f(|a_1| t)`` for ``0 <= t <= t_max`` as a function of ``arcsinh t``, which resolves all scales."""
    end = math.asinh(t_max)
    nodes = np.linspace(0.0, end, 16 + math.ceil(end / STEP))
    spline = make_interp_spline(nodes, _mean_over_sphere(f, d, np.sinh(nodes)), k=5)
    return PPoly.from_spline(spline.tck)


def _mean_over_sphere(f: Callable[[Array], Array], d: int, t: Array) -> Array:
    """Return ``E f(|a_1| t)``, by Gauss quadrature over the angle with ``a_1 = sin(angle)``.

    The density of the angle is proportional to ``cos(angle)^(d-2)``. The quadrature omits angles where this density or
    ``f`` is negligible.
    """
    if d == 1:
        return f(t)
    widest = math.acos(math.exp(-CUTOFF / (d - 2))) if d > 2 else math.pi / 2
    angles = np.minimum(widest, np.arcsin(CUTOFF / np.maximum(t, CUTOFF)))
    angle = angles[:, None] * (1 + NODES) / 2
    density = 2 / math.sqrt(math.pi) * poch((d - 1) / 2, 0.5) * np.cos(angle) ** (d - 2)
    return np.asarray(angles / 2 * ((density * f(t[:, None] * np.sin(angle))) @ WEIGHTS))
