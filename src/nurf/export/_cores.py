"""The parts of exported programs that differ between networks, for arrays of any framework.

Layers, sums of kernels, and totals of sums of kernels.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

from nurf._types import Array
from nurf.export._functions import Elementary, Profile, Unit

Arrays = Mapping[str, Any]


class Core(Protocol):
    """The part of a form that differs between networks, as a function of ``z = x - center``."""

    @property
    def arrays(self) -> dict[str, Array]:
        """The parameters by name."""
        ...

    def value(self, p: Arrays, z: Any, f: Elementary) -> Any:
        """Return the values at points (..., d), of shape (..., k)."""
        ...

    def gradient(self, p: Arrays, z: Any, f: Elementary) -> Any:
        """Return the gradients at points (..., d), of shape (..., k, d)."""
        ...


@dataclass(frozen=True, eq=False)
class Layers:
    """``h_L W_{L+1}`` with ``h_0 = z``, ``h_l = sigma(h_{l-1} W_l + b_l)``: shallow and deep networks.

    Parameters
    ----------
    weights : tuple of L + 1 arrays of shape (n_{l-1}, n_l)
    biases : tuple of L arrays of shape (n_l,)
    unit : Unit
        ``sigma``.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    unit: Unit

    @property
    def arrays(self) -> dict[str, Array]:
        """The parameters by name."""
        weights = {f"weight_{number}": array for number, array in enumerate(self.weights)}
        return weights | {f"bias_{number}": array for number, array in enumerate(self.biases)}

    def value(self, p: Arrays, z: Any, f: Elementary) -> Any:
        """Return the values at points (..., d), of shape (..., k)."""
        for number in range(len(self.biases)):
            z = self.unit.value(f, z @ p[f"weight_{number}"] + p[f"bias_{number}"])
        return z @ p[f"weight_{len(self.biases)}"]

    def gradient(self, p: Arrays, z: Any, f: Elementary) -> Any:
        """Return the gradients at points (..., d), from the last layer to the first, of shape (..., k, d)."""
        slopes = []
        for number in range(len(self.biases)):
            u = z @ p[f"weight_{number}"] + p[f"bias_{number}"]
            slopes.append(self.unit.slope(f, u))
            z = self.unit.value(f, u)
        result = p[f"weight_{len(self.biases)}"].T
        for number, slope in reversed(list(enumerate(slopes))):
            result = (slope[..., None, :] * result) @ p[f"weight_{number}"].T
        return result


@dataclass(frozen=True, eq=False)
class Term:
    """Derivatives of one order at points, and their coefficients, in the coordinates ``u = z A``.

    Parameters
    ----------
    points : array of shape (m, q)
    directions : tuple of 0, 1 or 2 arrays of shape (m, q)
    coef : array of shape (m, k)
    """

    points: Array
    directions: tuple[Array, ...]
    coef: Array


@dataclass(frozen=True, eq=False)
class KernelSums:
    """``sum_a c_a L_a phi(|u - .|^2 / 2)`` with ``u = z A`` and derivatives ``L_a`` of order 0, 1 or 2 at points.

    Parameters
    ----------
    matrix : array of shape (d, q)
        ``A``.
    terms : tuple of Term
    profiles : tuple of 4 functions
        ``phi`` and its first three derivatives.
    """

    matrix: Array
    terms: tuple[Term, ...]
    profiles: tuple[Profile, ...]

    @property
    def arrays(self) -> dict[str, Array]:
        """The parameters by name."""
        found = {"matrix": self.matrix}
        for number, term in enumerate(self.terms):
            found |= {f"points_{number}": term.points, f"coef_{number}": term.coef}
            found |= {f"direction_{number}_{i}": v for i, v in enumerate(term.directions)}
        return found

    def value(self, p: Arrays, z: Any, f: Elementary) -> Any:
        """Return the sum of ``phi``, ``-phi' <w, v>`` and ``phi'' <w, v_1> <w, v_2> + phi' <v_1, v_2>``."""
        total: Any = 0.0
        for number in range(len(self.terms)):
            _, t, v, along = self._differences(p, z, number)
            phi = [profile(f, t) for profile in self.profiles[: len(v) + 1]]
            if len(v) == 0:
                features = phi[0]
            elif len(v) == 1:
                features = -(phi[1] * along[0])
            else:
                features = phi[2] * along[0] * along[1] + phi[1] * (v[0] * v[1]).sum(-1)
            total = features @ p[f"coef_{number}"] + total
        return total

    def gradient(self, p: Arrays, z: Any, f: Elementary) -> Any:
        """Return the gradients at points (..., d): derivatives with respect to ``u``, mapped to the inputs."""
        total: Any = 0.0
        for number in range(len(self.terms)):
            w, t, v, along = self._differences(p, z, number)
            phi = [profile(f, t)[..., None] for profile in self.profiles[: len(v) + 2]]
            along = [each[..., None] for each in along]
            if len(v) == 0:
                slopes = phi[1] * w
            elif len(v) == 1:
                slopes = -(phi[1] * v[0] + phi[2] * along[0] * w)
            else:
                products = (v[0] * v[1]).sum(-1)[:, None]
                slopes = phi[3] * along[0] * along[1] * w
                slopes = slopes + phi[2] * (along[1] * v[0] + along[0] * v[1] + products * w)
            total = p[f"coef_{number}"].T @ slopes + total
        return total @ p["matrix"].T

    def _differences(self, p: Arrays, z: Any, number: int) -> tuple[Any, Any, list[Any], list[Any]]:
        """Return ``w = u - x_a`` (..., m, q), ``|w|^2 / 2`` (..., m), the directions, and ``<w, v>`` (..., m)."""
        w = (z @ p["matrix"])[..., None, :] - p[f"points_{number}"]
        v = [p[f"direction_{number}_{i}"] for i in range(len(self.terms[number].directions))]
        return w, (w * w).sum(-1) * 0.5, v, [(w * each).sum(-1) for each in v]


@dataclass(frozen=True, eq=False)
class Total:
    """The sum of several cores. The names of parameters are prefixed with the number of their part.

    Parameters
    ----------
    parts : tuple of KernelSums
    """

    parts: tuple[KernelSums, ...]

    @property
    def arrays(self) -> dict[str, Array]:
        """The parameters by name."""
        named = [(_prefix(number), part.arrays) for number, part in enumerate(self.parts)]
        return {prefix + name: array for prefix, arrays in named for name, array in arrays.items()}

    def value(self, p: Arrays, z: Any, f: Elementary) -> Any:
        """Return the values at points (..., d), of shape (..., k)."""
        return reduce(operator.add, [part.value(_own(p, i), z, f) for i, part in enumerate(self.parts)])

    def gradient(self, p: Arrays, z: Any, f: Elementary) -> Any:
        """Return the gradients at points (..., d), of shape (..., k, d)."""
        return reduce(operator.add, [part.gradient(_own(p, i), z, f) for i, part in enumerate(self.parts)])


def _prefix(number: int) -> str:
    return f"part_{number}_"


def _own(p: Arrays, number: int) -> Arrays:
    """Return the parameters of one part, by their names without prefix."""
    prefix = _prefix(number)
    return {name.removeprefix(prefix): array for name, array in p.items() if name.startswith(prefix)}
