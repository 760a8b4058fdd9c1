"""Fitted networks as short programs: affine maps, activations and products, in the units of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nurf._scaling import Scaling
from nurf._types import Array, Index
from nurf.export._functions import Elementary, Profile, Unit, profiles_of, unit_of
from nurf.kernels import KernelNetwork
from nurf.networks import DeepNetwork, ShallowNetwork, Tail

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
        """Return the values."""
        for number in range(len(self.biases)):
            z = self.unit.value(f, z @ p[f"weight_{number}"] + p[f"bias_{number}"])
        return z @ p[f"weight_{len(self.biases)}"]

    def gradient(self, p: Arrays, z: Any, f: Elementary) -> Any:
        """Return the gradients, from the last layer to the first."""
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
        ``phi`` and its derivatives.
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
        """Return the derivatives of these by ``u``, mapped back to the inputs."""
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
class Form:
    """The function ``core(z) + z S + c`` of ``z = x - center``, and products of inputs if its tail is not affine.

    Parameters
    ----------
    center : array of shape (d,)
    core : Core
    constant : array of shape (k,)
    slopes : array of shape (d, k)
    factors : array of shape (t, m)
        The inputs that are multiplied in each further monomial; the number d stands for the factor 1.
    products : array of shape (t, k)
        The coefficients of these monomials.
    output_shape : () or (k,)
    """

    center: Array
    core: Core
    constant: Array
    slopes: Array
    factors: Index
    products: Array
    output_shape: tuple[int, ...]

    @property
    def dimension(self) -> int:
        """The number of inputs."""
        return len(self.center)

    @property
    def n_outputs(self) -> int:
        """The number of outputs."""
        return len(self.constant)

    @property
    def arrays(self) -> dict[str, Array]:
        """All parameters by name."""
        tail = {"center": self.center, "constant": self.constant, "slopes": self.slopes}
        if len(self.factors):
            tail["products"] = self.products
            chosen = self._chosen
            tail |= {f"chosen_{i}": chosen[i, :-1] for i in range(len(chosen))}
            tail |= {f"ones_{i}": chosen[i, -1] for i in range(len(chosen))}
        return tail | self.core.arrays

    @property
    def _chosen(self) -> Array:
        """The factors as matrices of zeros and ones, of shape (m, d + 1, t)."""
        return np.asarray(np.moveaxis(np.eye(self.dimension + 1)[self.factors], 0, 2))

    def value(self, p: Arrays, x: Any, f: Elementary) -> Any:
        """Return the values at points (..., d), of shape (..., k)."""
        z = x - p["center"]
        total = self.core.value(p, z, f) + z @ p["slopes"] + p["constant"]
        if not len(self.factors):
            return total
        factors = self._factors(p, z)
        product = factors[0]
        for factor in factors[1:]:
            product = product * factor
        return total + product @ p["products"]

    def gradient(self, p: Arrays, x: Any, f: Elementary) -> Any:
        """Return the gradients at points (..., d), of shape (..., k, d)."""
        z = x - p["center"]
        total = self.core.gradient(p, z, f) + p["slopes"].T
        factors = self._factors(p, z)
        for i in range(len(factors)):
            others: Any = p["products"].T
            for factor in factors[:i] + factors[i + 1 :]:
                others = factor[..., None, :] * others
            total = total + others @ p[f"chosen_{i}"].T
        return total

    def _factors(self, p: Arrays, z: Any) -> list[Any]:
        n = self.factors.shape[1] if len(self.factors) else 0
        return [z @ p[f"chosen_{i}"] + p[f"ones_{i}"] for i in range(n)]


def form_of(model: Any) -> Form:
    """Return the form of a fitted regressor, or of the one that it chose (``model_``)."""
    check_is_fitted(model)
    model = getattr(model, "model_", model)
    network: Any = model.fit_.network if hasattr(model, "fit_") else None
    if type(network) not in _FORMS:
        raise ValueError(f"a regressor of nurf can be exported, got {model!r}")
    if network.n_derivatives < 1:
        raise ValueError(f"a model is exported with its gradient, which {network.activation!r} does not have")
    return _FORMS[type(network)](network, model.scaling_)


def _shallow(network: ShallowNetwork, scaling: Scaling) -> Form:
    function = network.function(scaling)
    unit = unit_of(function.activation)
    directions, offsets = function.directions, function.offsets
    columns = unit.factor * function.coef.reshape(len(offsets), network.n_outputs)
    if not len(offsets):  # one neuron that gives nothing: programs have no empty arrays
        directions, offsets, columns = np.zeros((network.dimension, 1)), np.zeros(1), np.zeros((1, columns.shape[1]))
    core = Layers((directions, columns), (offsets,), unit)
    return _form(scaling, core, function.tail, function.tail_coef, network.output_shape)


def _deep(network: DeepNetwork, scaling: Scaling) -> Form:
    function = network.function(scaling)
    weights, biases = tuple(function.network.weights), tuple(function.network.biases)
    core = Layers(weights, biases[:-1], unit_of(network.activation))
    return _form(scaling, core, Tail(0, network.dimension), biases[-1], network.output_shape)


def _kernel(network: KernelNetwork, scaling: Scaling) -> Form:
    terms = []
    for part in network.centers:
        at = part.functionals.mapped(network.metric)
        if len(at):
            terms.append(Term(at.points[at.index], at.directions, part.coef * scaling.y_scale))
    if not terms:  # one point that gives nothing: programs have no empty arrays
        terms.append(Term(np.zeros((1, len(network.metric))), (), np.zeros((1, network.n_outputs))))
    core = KernelSums((network.metric / scaling.x_scale).T, tuple(terms), profiles_of(network.kernel))
    tail = Tail(int(len(network.tail_coef) > 1), network.dimension)
    coef = tail.substitution(np.zeros(tail.dimension), scaling.x_scale) @ (network.tail_coef * scaling.y_scale)
    coef[0] += scaling.y_center
    return _form(scaling, core, tail, coef, network.output_shape)


def _form(scaling: Scaling, core: Core, tail: Tail, coef: Array, output_shape: tuple[int, ...]) -> Form:
    """Return a form; ``coef`` are the coefficients of the monomials of ``x - x_center``."""
    d, coef = tail.dimension, coef.reshape(len(tail), int(np.prod(output_shape, dtype=int)))
    slopes = coef[1 : 1 + d] if tail.degree > 0 else np.zeros((d, coef.shape[1]))
    factors, products = np.empty((0, 0), np.int64), coef[:0]
    if tail.degree > 1:
        products = coef[1 + d :]
        lists = [np.repeat(np.arange(d), row) for row in tail.exponents[1 + d :]]
        factors = np.array([[*row, *[d] * (tail.degree - len(row))] for row in lists], np.int64)
    return Form(scaling.x_center, core, coef[0], slopes, factors, products, output_shape)


_FORMS: dict[type, Callable[[Any, Scaling], Form]] = {
    ShallowNetwork: _shallow,
    DeepNetwork: _deep,
    KernelNetwork: _kernel,
}
