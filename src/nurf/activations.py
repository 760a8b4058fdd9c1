"""Activation functions: the ridge splines ``sigma_s`` and their smooth versions ``sigma_{s,delta}``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from nurf._types import Array

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "Erf",
    "Heaviside",
    "ReLU",
    "ReLUPower",
    "Sigmoid",
    "SmoothActivation",
    "Softplus",
]

DEFAULT_WIDTH = 0.1  # for inputs that are scaled into the unit ball


class Activation(ABC):
    """A function ``sigma_{s,delta}(t)`` of one variable, with its derivatives (paper, sections 2 and 3.1).

    ``sigma_{s,delta} = sigma_s * eta_delta`` is the ridge spline ``sigma_s(t) = max(0, t)^(s-1) / (s-1)!``
    of ``order`` s, convolved with a mollifier of ``width`` delta. As
    ``sigma_{s,delta}(t) = delta^(s-1) sigma_{s,1}(t / delta)``, a subclass implements ``unit`` only.

    Attributes
    ----------
    order : int
        The order s of the ridge spline.
    width : float or array of shape (N,)
        The width delta, or one width for each neuron. Zero for the ridge splines themselves.
    n_derivatives : int
        The highest order of derivatives that are functions.
    """

    order: int
    width: float | Array
    n_derivatives: int

    @abstractmethod
    def unit(self, u: Array, k: int) -> Array:
        """Return the ``k``-th derivative of ``sigma_{s,1}`` at ``u``. ``u`` may be overwritten."""

    def unit_and_slope(self, u: Array) -> tuple[Array, Array]:
        """Return ``unit(u, 0)`` and ``unit(u, 1)``. ``u`` may be overwritten."""
        return self.unit(u.copy(), 0), self.unit(u, 1)

    @property
    def scale(self) -> float | Array:
        """The number by which arguments are divided before ``unit`` is called: the width if it is positive."""
        return self.width

    @property
    def typical_width(self) -> float:
        """The mean width of the neurons, or the default width if the width is zero."""
        return float(np.mean(self.width)) or DEFAULT_WIDTH

    def amplitude(self, k: int) -> float | Array:
        """Return the factor ``delta^(s-1-k)`` by which the ``k``-th derivative of ``unit`` is multiplied."""
        return self.scale ** float(self.order - 1 - k)

    def derivative(self, t: Any, k: int = 1) -> Array:
        """Return the ``k``-th derivative at ``t``, of shape (...,), or (..., N) if each neuron has its own width."""
        self.require(k)
        return self.unit(np.array(np.asarray(t, float) / self.scale), k) * self.amplitude(k)

    def __call__(self, t: Any) -> Array:
        """Return the value at ``t``."""
        return self.derivative(t, 0)

    def require(self, k: int) -> None:
        """Raise a ``ValueError`` if the ``k``-th derivative is not available."""
        if not 0 <= k <= self.n_derivatives:
            raise ValueError(
                f"{self!r} has derivatives up to {self.n_derivatives}, derivative {k} was requested: "
                "use a smoother activation"
            )

    def rescale(self, factor: Array) -> Activation:
        """Return the activation with all widths multiplied by ``factor``."""
        return self

    def select(self, index: Any) -> Activation:
        """Return the activation of the neurons ``index``."""
        return self

    def multiscale(self, n: int, factor: float, rng: np.random.Generator) -> Activation:
        """Return the activation of ``n`` neurons with different widths, from ``width / factor`` to ``width * factor``.

        The widths are equally spaced on a logarithmic scale, in random order.
        """
        return self

    def concatenate(self, n: int, other: Activation, m: int) -> Activation:
        """Return the activation of ``n`` neurons with this activation, followed by ``m`` neurons with ``other``."""
        if self != other:
            raise ValueError(f"neurons with {self!r} and neurons with {other!r} cannot be in the same network")
        return self


@dataclass(frozen=True)
class ReLUPower(Activation):
    """The ridge spline ``sigma_s(t) = max(0, t)^(s-1) / (s-1)!`` with ``power = s - 1``; ``sigma_s(0) = 0``.

    The spline has ``power`` derivatives, the last of which exists almost everywhere.
    """

    power: int = 2

    def __post_init__(self) -> None:
        if not (np.isfinite(self.power) and self.power >= 0 and self.power == int(self.power)):
            raise ValueError(f"`power` must be a whole number >= 0, got {self.power!r}")
        object.__setattr__(self, "power", int(self.power))

    @property
    def order(self) -> int:  # type: ignore[override]
        """The order s of the ridge spline."""
        return self.power + 1

    @property
    def n_derivatives(self) -> int:  # type: ignore[override]
        """The highest derivative that is a function."""
        return self.power

    @property
    def width(self) -> float:  # type: ignore[override]
        """Zero: the spline is not smoothed."""
        return 0.0

    @property
    def scale(self) -> float:
        """One: the function is homogeneous."""
        return 1.0

    def unit(self, u: Array, k: int) -> Array:
        """Return ``max(0, u)^(power-k) / (power-k)!``."""
        degree = self.power - k
        if degree == 0:
            return (u > 0).astype(float)
        np.maximum(u, 0.0, out=u)
        return u**degree / math.factorial(degree) if degree > 1 else u


@dataclass(frozen=True)
class Heaviside(ReLUPower):
    """The step function ``sigma_1(t)``: 1 for ``t > 0``, 0 otherwise."""

    power: int = field(default=0, init=False, repr=False)


@dataclass(frozen=True)
class ReLU(ReLUPower):
    """The ramp ``sigma_2(t) = max(0, t)``."""

    power: int = field(default=1, init=False, repr=False)


@dataclass(frozen=True, eq=False)
class SmoothActivation(Activation):
    """A smooth activation of ``width`` delta > 0: one number, or one for each neuron."""

    width: float | Array = DEFAULT_WIDTH
    n_derivatives: ClassVar[int] = 4  # type: ignore[misc]

    def __post_init__(self) -> None:
        try:
            width = np.asarray(self.width, float)
        except (TypeError, ValueError):
            width = np.array(np.nan)
        if width.ndim > 1 or not np.all((width > 0) & np.isfinite(width)):
            raise ValueError(f"`width` must be a number > 0, or one for each neuron, got {self.width!r}")
        object.__setattr__(self, "width", width if width.ndim else float(width))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and np.array_equal(self.width, other.width)

    def __hash__(self) -> int:
        return hash((type(self), np.asarray(self.width).tobytes()))

    def rescale(self, factor: Array) -> Activation:
        """Return the activation with all widths multiplied by ``factor``."""
        return type(self)(self.width * factor)

    def multiscale(self, n: int, factor: float, rng: np.random.Generator) -> Activation:
        """Return the activation of ``n`` neurons with different widths."""
        if factor == 1:
            return self
        exponents = np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(n)
        return type(self)(self.width * factor ** rng.permutation(exponents))

    def select(self, index: Any) -> Activation:
        """Return the activation of the neurons ``index``, with their widths."""
        return type(self)(self.width[index]) if isinstance(self.width, np.ndarray) else self

    def concatenate(self, n: int, other: Activation, m: int) -> Activation:
        """Return the activation of ``n`` neurons with this activation, followed by ``m`` neurons with ``other``."""
        if type(self) is not type(other) or (self == other and np.ndim(self.width) == 0):
            return super().concatenate(n, other, m)
        return type(self)(np.concatenate([np.broadcast_to(self.width, n), np.broadcast_to(other.width, m)]))


def logistic(u: Array) -> Array:
    """Return ``1 / (1 + exp(-u))``, computed in place, with a relative error of a few rounding errors.

    NumPy's exponential is vectorised: this takes a third of the time of SciPy's ``expit``.
    """
    with np.errstate(over="ignore"):  # the result is zero there
        np.exp(np.negative(u, out=u), out=u)
    u += 1.0
    return np.asarray(np.reciprocal(u, out=u))


class Sigmoid(SmoothActivation):
    """The logistic function ``1 / (1 + exp(-t / delta))``: ``sigma_1`` with the mollifier ``sech(t / 2)^2 / 4``."""

    order: ClassVar[int] = 1  # type: ignore[misc]

    def unit(self, u: Array, k: int) -> Array:
        """Return the ``k``-th derivative, computed from ``sigma(-|u|)``, which is accurate for large ``|u|``."""
        if k == 0:
            return logistic(u)
        sign = np.sign(u) if k in (2, 4) else np.ones(())
        tail = logistic(np.negative(np.abs(u, out=u), out=u))
        slope = (1 - tail) * tail
        if k == 1:
            return np.asarray(slope)
        if k == 3:
            return np.asarray(slope * (1 - 6 * slope))
        bend = sign * slope * (2 * tail - 1)
        return np.asarray(bend if k == 2 else bend * (1 - 12 * slope))

    def unit_and_slope(self, u: Array) -> tuple[Array, Array]:
        """Return ``(1 + t) / 2`` and ``(1 - t^2) / 4`` for ``t = tanh(u / 2)``, with an error of 1e-16.

        The error is absolute: small values are less accurate. NumPy's tanh is much faster than SciPy's expit.
        """
        u *= 0.5
        t = np.tanh(u, out=u)
        slope = t * t
        np.subtract(0.25, np.multiply(slope, 0.25, out=slope), out=slope)
        t *= 0.5
        t += 0.5
        return t, slope


class Softplus(SmoothActivation):
    """The softplus function ``delta log(1 + exp(t / delta))``, a smoothed ``sigma_2`` with derivative ``Sigmoid``."""

    order: ClassVar[int] = 2  # type: ignore[misc]

    def unit(self, u: Array, k: int) -> Array:
        """Return ``log(1 + exp(u))`` or a derivative of the sigmoid."""
        return np.logaddexp(0.0, u, out=u) if k == 0 else Sigmoid(1.0).unit(u, k - 1)


class Erf(SmoothActivation):
    """The Gaussian step ``(1 + erf(t / (sqrt(2) delta))) / 2``: ``sigma_1`` with the normal density as mollifier."""

    order: ClassVar[int] = 1  # type: ignore[misc]

    def unit(self, u: Array, k: int) -> Array:
        """Return the normal distribution function, or the normal density times a Hermite polynomial."""
        if k == 0:
            return np.asarray(ndtr(u, out=u))
        with np.errstate(over="ignore", under="ignore"):
            density = np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)
        u = np.clip(u, -40.0, 40.0)  # the density is zero beyond; avoids zero times infinity
        return np.asarray(density * (1.0, -u, u * u - 1, u * (3 - u * u))[k - 1])


# Activations by the names that estimators accept.
ACTIVATIONS: dict[str, type[Activation]] = {
    "heaviside": Heaviside,
    "relu": ReLU,
    "sigmoid": Sigmoid,
    "softplus": Softplus,
    "erf": Erf,
}
