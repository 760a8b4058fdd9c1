"""Functions of one variable, written once for arrays of any framework and for the text of programs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from nurf.activations import Activation, Erf, ReLU, ReLUPower, Sigmoid, Softplus
from nurf.kernels import ErfKernel, GaussianKernel, MaternKernel, RadialKernel
from nurf.networks import Nonlinearity, SiLU, Tanh

SMALLEST = 1e-20  # floor of squared distances, which avoids division by zero


class Elementary(Protocol):
    """The functions that a framework must provide; its arrays have ``+``, ``-``, ``*`` and ``/``."""

    def exp(self, u: Any) -> Any:
        """Return the exponential function."""
        ...

    def log(self, u: Any) -> Any:
        """Return the natural logarithm."""
        ...

    def sqrt(self, u: Any) -> Any:
        """Return the square root."""
        ...

    def tanh(self, u: Any) -> Any:
        """Return the hyperbolic tangent."""
        ...

    def sigmoid(self, u: Any) -> Any:
        """Return ``1 / (1 + exp(-u))``."""
        ...

    def softplus(self, u: Any) -> Any:
        """Return ``log(1 + exp(u))``."""
        ...

    def ndtr(self, u: Any) -> Any:
        """Return the normal distribution function."""
        ...

    def at_least(self, u: Any, lowest: float) -> Any:
        """Return the maximum of ``u`` and a number."""
        ...

    def step(self, u: Any) -> Any:
        """Return 1 for ``u > 0`` and 0 otherwise."""
        ...


@dataclass(frozen=True)
class Unit:
    """An activation of width one: a function of one variable and its derivative, both without a ``factor``.

    The factor is multiplied into the coefficients, because onnxruntime would merge it into an adjacent matrix product
    in single precision.
    """

    value: Callable[[Elementary, Any], Any]
    slope: Callable[[Elementary, Any], Any]
    factor: float = 1.0


def _spline(power: int) -> Unit:
    """Return ``max(0, u)^power`` and its derivative, with the factor ``1 / power!``."""

    def ramp(f: Elementary, u: Any, exponent: int) -> Any:
        ramp = f.at_least(u, 0.0)
        return math.prod([ramp] * (exponent - 1), start=ramp) if exponent else f.step(u)

    return Unit(
        lambda f, u: ramp(f, u, power), lambda f, u: ramp(f, u, power - 1) * float(power), 1 / math.factorial(power)
    )


def _silu_slope(f: Elementary, u: Any) -> Any:
    s = f.sigmoid(u)
    return s + u * s * (1.0 - s)


_UNITS: dict[type, Unit] = {
    Sigmoid: Unit(lambda f, u: f.sigmoid(u), lambda f, u: f.sigmoid(u) * f.sigmoid(-u)),
    Softplus: Unit(lambda f, u: f.softplus(u), lambda f, u: f.sigmoid(u)),
    Erf: Unit(lambda f, u: f.ndtr(u), lambda f, u: f.exp(u * u * -0.5) * (1 / math.sqrt(2 * math.pi))),
    Tanh: Unit(lambda f, u: f.tanh(u), lambda f, u: 1.0 - f.tanh(u) * f.tanh(u)),
    SiLU: Unit(lambda f, u: u * f.sigmoid(u), _silu_slope),
}


def unit_of(activation: Activation | Nonlinearity) -> Unit:
    """Return an activation as a function that exported programs can compute."""
    kind = type(activation)
    if kind in (ReLU, ReLUPower):
        power = activation.power  # type: ignore[union-attr]
        if power > 0:
            return _spline(power)
    if kind not in _UNITS:
        names = ", ".join(known.__name__ for known in (*_UNITS, ReLU, ReLUPower))
        raise ValueError(f"a model can be exported if its activation is one of {names}, got {activation!r}")
    return _UNITS[kind]


Profile = Callable[[Elementary, Any], Any]


def _matern_root(f: Elementary, t: Any) -> Any:
    return f.sqrt(f.at_least(t * 10.0, SMALLEST))


def _matern(order: int) -> Profile:
    def profile(f: Elementary, t: Any) -> Any:
        s = _matern_root(f, t)
        factor = [1.0 + s + s * s * (1 / 3), (1.0 + s) * (-5 / 3), 25 / 3, (-125 / 3) / s][order]
        return f.exp(-s) * factor

    return profile


def _multiquadric(order: int) -> Profile:
    def profile(f: Elementary, t: Any) -> Any:
        r = f.sqrt(t * 2.0 + 1.0)
        return [-r, -1.0 / r, 1.0 / (r * r * r), -3.0 / (r * r * r * r * r)][order]

    return profile


def _gaussian(order: int) -> Profile:
    return lambda f, t: f.exp(-t) * (-1.0) ** order


_PROFILES: dict[type, Callable[[int], Profile]] = {
    GaussianKernel: _gaussian,
    MaternKernel: _matern,
    ErfKernel: _multiquadric,
}


def profiles_of(kernel: RadialKernel) -> tuple[Profile, ...]:
    """Return the profile of a kernel and its first three derivatives."""
    if type(kernel) not in _PROFILES:
        names = ", ".join(known.__name__ for known in _PROFILES)
        raise ValueError(f"a model can be exported if its kernel is one of {names}, got {kernel!r}")
    return tuple(_PROFILES[type(kernel)](order) for order in range(4))
