"""ONNX graphs, recorded while the program of a network runs."""

from __future__ import annotations

import math
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy.special import erfcx

from nurf.export._forms import form_of

OPSET, IR_VERSION = 13, 8
N_CHEBYSHEV = 28  # terms of the series of erfc: its error is a few 1e-16


class _Graph:
    """Nodes and constants of a graph."""

    def __init__(self, onnx: Any) -> None:
        self.onnx, self.nodes, self.constants = onnx, [], []  # type: ignore[var-annotated]
        self._names: dict[Any, str] = {}

    def constant(self, value: Any) -> str:
        """Return the name of an array; equal arrays are stored once."""
        array = np.ascontiguousarray(value)
        key = (array.dtype.str, np.shape(value), array.tobytes())
        if key not in self._names:
            self._names[key] = f"constant_{len(self._names)}"
            self.constants.append(self.onnx.numpy_helper.from_array(array.reshape(np.shape(value)), self._names[key]))
        return self._names[key]

    def node(self, kind: str, *operands: Any, **attributes: Any) -> _Value:
        """Return the result of an operation on values and arrays."""
        names = [each.name if isinstance(each, _Value) else self.constant(each) for each in operands]
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, names, [name], **attributes))
        return _Value(self, name)


class _Value:
    """An array that the graph computes."""

    __array_ufunc__ = None  # NumPy arrays then defer operations to this class

    def __init__(self, graph: _Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def _pair(self, kind: str, other: Any, swapped: bool = False) -> _Value:
        other = other if isinstance(other, _Value) else np.asarray(other, float)
        return self.graph.node(kind, *((other, self) if swapped else (self, other)))

    def __add__(self, other: Any) -> _Value:
        return self._pair("Add", other)

    def __sub__(self, other: Any) -> _Value:
        return self._pair("Sub", other)

    def __mul__(self, other: Any) -> _Value:
        return self._pair("Mul", other)

    def __matmul__(self, other: Any) -> _Value:
        return self._pair("MatMul", other)

    def __radd__(self, other: Any) -> _Value:
        return self._pair("Add", other, swapped=True)

    def __rsub__(self, other: Any) -> _Value:
        return self._pair("Sub", other, swapped=True)

    def __rmul__(self, other: Any) -> _Value:
        return self._pair("Mul", other, swapped=True)

    def __rmatmul__(self, other: Any) -> _Value:
        return self._pair("MatMul", other, swapped=True)

    def __truediv__(self, other: Any) -> _Value:
        return self._pair("Div", other)

    def __rtruediv__(self, other: Any) -> _Value:
        return self._pair("Div", other, swapped=True)

    def __neg__(self) -> _Value:
        return self.graph.node("Neg", self)

    def __getitem__(self, index: tuple[Any, ...]) -> _Value:
        """Return the array with a new axis: ``[..., None]`` or ``[..., None, :]``."""
        return self.graph.node("Unsqueeze", self, np.array([-len(index[1:])]))

    def sum(self, axis: int) -> _Value:
        """Return the sums along an axis."""
        return self.graph.node("ReduceSum", self, np.array([axis]), keepdims=0)


@cache
def _erfc_series() -> list[float]:
    """Return the Chebyshev coefficients of ``log(erfc(z) exp(z^2) / t)`` as a function of ``2 t - 1``."""

    def function(s: Any) -> Any:
        t = (1 + s) / 2
        return np.log(erfcx(2 / t - 2) / t)

    return [float(c) for c in np.polynomial.chebyshev.chebinterpolate(function, N_CHEBYSHEV - 1)]


class _Elementary:
    """Functions in double precision, composed of operations that runtimes support in double precision."""

    def exp(self, u: _Value) -> _Value:
        return u.graph.node("Exp", u)

    def log(self, u: _Value) -> _Value:
        return u.graph.node("Log", u)

    def sqrt(self, u: _Value) -> _Value:
        return u.graph.node("Sqrt", u)

    def tanh(self, u: _Value) -> _Value:
        return u.graph.node("Tanh", u)

    def sigmoid(self, u: _Value) -> _Value:
        return 1.0 / (self.exp(-u) + 1.0)

    def softplus(self, u: _Value) -> _Value:
        small = self.exp(-u.graph.node("Abs", u))
        return self.at_least(u, 0.0) + u.graph.node("Log", small + 1.0)

    def ndtr(self, u: _Value) -> _Value:
        """Return ``erfc(-u / sqrt(2)) / 2``, which runtimes support only in single precision.

        For ``z > 0``, ``erfc(z) = t exp(-z^2 + P(2 t - 1))`` with ``t = 2 / (2 + z)`` and a Chebyshev series ``P``,
        added up by Clenshaw's recurrence.
        """
        z = u.graph.node("Abs", u) * math.sqrt(0.5)
        t = 2.0 / (z + 2.0)
        s = t * 2.0 - 1.0
        first, *rest, highest = _erfc_series()
        before: Any = 0.0
        now: Any = highest
        for coefficient in reversed(rest):
            before, now = now, s * (2.0 * now) - before + coefficient
        half_erfc = t * self.exp(s * now - before + first - z * z) * 0.5
        positive = self.step(u)
        return positive * (1.0 - half_erfc) + (1.0 - positive) * half_erfc

    def at_least(self, u: _Value, lowest: float) -> _Value:
        return u.graph.node("Max", u, np.array(lowest))

    def step(self, u: _Value) -> _Value:
        return self.at_least(u.graph.node("Sign", u), 0.0)


def to_onnx(model: Any) -> Any:
    """Return a fitted regressor as an ``onnx.ModelProto`` in double precision, with its gradient.

    The input is ``x`` of shape (n, d), the outputs are ``value`` of shape (n,) or (n, k) and ``gradient`` of shape
    (n, d) or (n, k, d).

    Parameters
    ----------
    model : regressor
        A fitted regressor.
    """
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise ImportError('to_onnx needs onnx: pip install "nurf[onnx]"') from error

    form, graph, functions = form_of(model), _Graph(onnx), _Elementary()
    x, arrays = _Value(graph, "x"), form.arrays
    results = {"value": form.value(arrays, x, functions), "gradient": form.gradient(arrays, x, functions)}
    shapes: dict[str, list[Any]] = {"value": ["n", *form.output_shape]}
    shapes["gradient"] = ["n", *form.output_shape, form.dimension]
    for name, result in results.items():
        kind, operands = ("Identity", []) if form.output_shape else ("Squeeze", [graph.constant(np.array([1]))])
        graph.nodes.append(onnx.helper.make_node(kind, [result.name, *operands], [name]))
    double = onnx.TensorProto.DOUBLE
    outputs = [onnx.helper.make_tensor_value_info(name, double, shape) for name, shape in shapes.items()]
    inputs = [onnx.helper.make_tensor_value_info("x", double, ["n", form.dimension])]
    proto = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "nurf", inputs, outputs, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="nurf",
        producer_version=version("nurf"),
    )
    onnx.checker.check_model(proto)
    return proto
