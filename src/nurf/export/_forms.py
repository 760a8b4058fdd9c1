"""Fitted networks as short programs: affine maps, activations and products, in the units of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nurf._scaling import Scaling
from nurf._types import Array, Index
from nurf._warping import UNWARPED, Warping
from nurf.export._cores import Arrays, Core, KernelSums, Layers, Term, Total
from nurf.export._functions import Elementary, profiles_of, unit_of
from nurf.kernels import KernelAverage, KernelNetwork
from nurf.networks import DeepNetwork, ShallowNetwork, Tail


@dataclass(frozen=True, eq=False)
class Form:
    """The function ``core(z) + z S + c`` of ``z = x - center``, plus products of inputs if its tail is not affine.

    Optionally with transformations: logarithms of inputs before, and exp or sinh of values after.

    Parameters
    ----------
    center : array of shape (d,)
    core : Core
    constant : array of shape (k,)
    slopes : array of shape (d, k)
    factors : array of shape (t, m)
        The indices of the inputs in each further monomial; the index d means the factor 1.
    products : array of shape (t, k)
        The coefficients of the further monomials.
    output_shape : () or (k,)
    warping : Warping
        The curves.
    """

    center: Array
    core: Core
    constant: Array
    slopes: Array
    factors: Index
    products: Array
    output_shape: tuple[int, ...]
    warping: Warping = UNWARPED

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
        return tail | self._masks | self.core.arrays

    @property
    def input_curves(self) -> tuple[str | None, ...]:
        """The curve of each input, None if there is none."""
        return (None,) * self.dimension if self.warping.inputs is None else self.warping.inputs.kinds

    @property
    def output_curves(self) -> tuple[str | None, ...]:
        """The curve of each output, None if there is none."""
        return (None,) * self.n_outputs if self.warping.outputs is None else self.warping.outputs.kinds

    @property
    def output_scales(self) -> Array:
        """The scale of the curve of each output."""
        return np.ones(self.n_outputs) if self.warping.outputs is None else self.warping.outputs.scales

    @property
    def _masks(self) -> dict[str, Array]:
        """Ones for inputs and outputs with a curve, and for the others; scales of sinh."""
        found: dict[str, Array] = {}
        if self.warping.inputs is not None:
            logged = np.array([float(kind == "log") for kind in self.input_curves])
            found |= {"logged_inputs": logged, "other_inputs": 1.0 - logged}
        if self.warping.outputs is not None:
            logged, sinh = (np.array([float(kind == name) for kind in self.output_curves]) for name in ("log", "asinh"))
            found |= {"logged_outputs": logged, "sinh_outputs": sinh, "sinh_scales": 0.5 * sinh * self.output_scales}
            found["other_outputs"] = 1.0 - logged - sinh
        return found

    @property
    def _chosen(self) -> Array:
        """The factors as matrices of zeros and ones, of shape (m, d + 1, t)."""
        return np.asarray(np.moveaxis(np.eye(self.dimension + 1)[self.factors], 0, 2))

    def value(self, p: Arrays, x: Any, f: Elementary) -> Any:
        """Return the values at points (..., d), of shape (..., k)."""
        u = self._inner_value(p, self._z(p, x, f), f)
        if self.warping.outputs is None:
            return u
        v = u * p["sinh_outputs"]
        sinh = (f.exp(v) - f.exp(-v)) * p["sinh_scales"]
        return f.exp(u * p["logged_outputs"]) * p["logged_outputs"] + sinh + u * p["other_outputs"]

    def gradient(self, p: Arrays, x: Any, f: Elementary) -> Any:
        """Return the gradients at points (..., d), of shape (..., k, d)."""
        z = self._z(p, x, f)
        slopes = self._inner_gradient(p, z, f)
        if self.warping.inputs is not None:
            logged, others = p["logged_inputs"], p["other_inputs"]
            slopes = slopes * (logged / (x * logged + others) + others)[..., None, :]
        if self.warping.outputs is None:
            return slopes
        u = self._inner_value(p, z, f)
        v = u * p["sinh_outputs"]
        cosh = (f.exp(v) + f.exp(-v)) * p["sinh_scales"]
        outer = f.exp(u * p["logged_outputs"]) * p["logged_outputs"] + cosh + p["other_outputs"]
        return outer[..., None] * slopes

    def _z(self, p: Arrays, x: Any, f: Elementary) -> Any:
        if self.warping.inputs is not None:
            x = f.log(x * p["logged_inputs"] + p["other_inputs"]) + x * p["other_inputs"]
        return x - p["center"]

    def _inner_value(self, p: Arrays, z: Any, f: Elementary) -> Any:
        """Return the values of the network: after the curves of the inputs, before the curves of the outputs."""
        total = self.core.value(p, z, f) + z @ p["slopes"] + p["constant"]
        if not len(self.factors):
            return total
        factors = self._factors(p, z)
        product = factors[0]
        for factor in factors[1:]:
            product = product * factor
        return total + product @ p["products"]

    def _inner_gradient(self, p: Arrays, z: Any, f: Elementary) -> Any:
        """Return the gradients of the network: with respect to transformed inputs, before the curves of the outputs."""
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
    """Return the form of a fitted regressor, or of the regressor that it chose (``model_``)."""
    check_is_fitted(model)
    if getattr(model, "base_", None) is not None:
        raise ValueError(
            "a model that corrects a `base` is not exported: export the base, and the correction as a model that is "
            "fitted to `y - rho * base`"
        )
    model = getattr(model, "model_", model)
    network: Any = model.fit_.network if hasattr(model, "fit_") else None
    if type(network) not in _FORMS:
        raise ValueError(f"a regressor of nurf can be exported, got {model!r}")
    if network.n_derivatives < 1:
        raise ValueError(f"a model is exported with its gradient, which {network.activation!r} does not have")
    return replace(network_form(network, model.scaling_), warping=model.warping_)


def network_form(network: Any, scaling: Scaling) -> Form:
    """Return the form of a network of scaled inputs and values, without curves."""
    return _FORMS[type(network)](network, scaling)


def _shallow(network: ShallowNetwork, scaling: Scaling) -> Form:
    function = network.function(scaling)
    unit = unit_of(function.activation)
    directions, offsets = function.directions, function.offsets
    columns = unit.factor * function.coef.reshape(len(offsets), network.n_outputs)
    if not len(offsets):  # one neuron of weight zero, because programs cannot have empty arrays
        directions, offsets = np.zeros((len(scaling.x_center), 1)), np.zeros(1)
        columns = np.zeros((1, columns.shape[1]))
    core = Layers((directions, columns), (offsets,), unit)
    return _form(scaling, core, function.tail, function.tail_coef, network.output_shape)


def _deep(network: DeepNetwork, scaling: Scaling) -> Form:
    function = network.function(scaling)
    weights, biases = tuple(function.network.weights), tuple(function.network.biases)
    core = Layers(weights, biases[:-1], unit_of(network.activation))
    return _form(scaling, core, Tail(0, network.dimension), biases[-1], network.output_shape)


def _average(network: KernelAverage, scaling: Scaling) -> Form:
    """Return the form of a weighted mean: coefficients are multiplied by the weights, and tails are added up."""
    weighted = list(zip(network.weights, network.members, strict=True))
    parts = tuple(_sums(member, weight, scaling) for weight, member in weighted)
    d = len(scaling.x_scale)
    tail, mean = Tail(1, d), np.zeros((1 + network.dimension, network.n_outputs))
    for weight, member in weighted:
        mean[: len(member.tail_coef)] += weight * member.tail_coef
    slopes = mean[1:] if scaling.x_basis is None else scaling.x_basis @ mean[1:]
    mean = np.concatenate([mean[:1], slopes])
    coef = tail.substitution(np.zeros(d), scaling.x_scale) @ (mean * scaling.y_scale)
    coef[0] += scaling.y_center
    return _form(scaling, parts[0] if len(parts) == 1 else Total(parts), tail, coef, network.output_shape)


def _sums(network: KernelNetwork, weight: float, scaling: Scaling) -> KernelSums:
    """Return a kernel network times a weight, without the tail."""
    terms = []
    for part in network.centers:
        at = part.functionals.mapped(network.metric)
        if len(at):
            terms.append(Term(at.points[at.index], at.directions, part.coef * scaling.y_scale * weight))
    if not terms:  # one point of weight zero, because programs cannot have empty arrays
        terms.append(Term(np.zeros((1, len(network.metric))), (), np.zeros((1, network.n_outputs))))
    return KernelSums(scaling.normals_back(network.metric).T, tuple(terms), profiles_of(network.kernel))


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
    KernelAverage: _average,
}
