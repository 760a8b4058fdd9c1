"""Backends that differentiate a function at many points: JAX, torch, finite differences and complex steps."""

from __future__ import annotations

import functools
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from nurf._blocks import row_blocks
from nurf._types import Array
from nurf.differentiation._finite_differences import LEVELS, differences

Derivatives = tuple[Array, Array, Array | None]

LARGEST_STEP = 0.01  # relative to the range of an input
CONTRADICTION = 0.01  # relative difference of two derivatives that is not due to rounding and extrapolation errors
COMPLEX_STEP = 1e-100  # relative to the range; without subtraction there is no cancellation
BLOCK = 2**22  # numbers per block of points


class Function(ABC):
    """A function of arrays of one framework, and the points at which it is differentiated."""

    name: ClassVar[str]

    def __init__(self, f: Callable[[Any], Any], X: Array, vectorized: bool | None, steps: Array) -> None:
        self.f, self.X, self.steps = f, X, steps
        self.vectorized = self._is_vectorized() if vectorized is None else vectorized

    @abstractmethod
    def call(self, x: Array) -> Any:
        """Return ``f`` at one point (d,) or several points (m, d), as a NumPy array."""

    @abstractmethod
    def differentiate(self, X: Array, order: int) -> Derivatives:
        """Return values (m, k), gradients (m, k, d) and Hessians (m, k, d, d) or None, for a block of points."""

    def traced(self, x: Array) -> Any:
        """Return ``f`` at the points as ``call`` does, but raise an error if this framework cannot differentiate it."""
        return self.call(x)

    def values(self, X: Array) -> Any:
        """Return ``f`` at the points, of shape (m,) or (m, k)."""
        with np.errstate(all="ignore"):
            values = self.call(X) if self.vectorized else np.stack([self.call(x) for x in X])
        if values.ndim not in (1, 2) or len(values) != len(X):
            takes, wanted = (
                (X.shape, f"({len(X)},) or ({len(X)}, k)") if self.vectorized else (X.shape[1:], "() or (k,)")
            )
            got = values.shape if self.vectorized else values.shape[1:]
            raise ValueError(f"`f` must return shape {wanted} for points of shape {takes}, got {got}")
        return values

    def derivatives(self, order: int) -> Derivatives:
        """Return values, gradients and Hessians at all points."""
        n, d = self.X.shape
        outputs = self.values(self.X[:1]).shape[1:]
        width = d**order * math.prod(outputs) * LEVELS
        blocks = [self.differentiate(self.X[rows], order) for rows in row_blocks(n, width, BLOCK)]
        values, gradients, *hessians = (
            np.concatenate(arrays) for arrays in zip(*blocks, strict=True) if arrays[0] is not None
        )
        shape = (n, *outputs)
        return (
            values.reshape(shape),
            gradients.reshape(*shape, d),
            hessians[0].reshape(*shape, d, d) if hessians else None,
        )

    def contradiction(self) -> str | None:
        """Return a message if gradients contradict differences of the values at most of up to three points, else None.

        Gradients and differences are compared along one direction.
        """
        X = self.X[:: max(1, len(self.X) // 3)][:3]
        _, gradients, _ = self.differentiate(X, 1)
        direction = self.steps / LARGEST_STEP * np.where(np.arange(len(self.steps)) % 2, 1.0, -1.0)
        wrong, t = [], np.zeros((1, 1))
        for x, gradient in zip(X, gradients, strict=True):
            line = functools.partial(lambda x, t: self.values(x + t * direction).reshape(len(t), -1), x)
            slopes, errors = differences(line, line(t), t, np.array([LARGEST_STEP]), 1)[:2]
            along, slope, error = gradient @ direction, slopes[0, :, 0], errors[0, :, 0]
            larger = np.maximum(np.abs(along), np.abs(slope))
            wrong.append(bool(np.any(np.abs(along - slope) > CONTRADICTION * larger + 10 * error)))
        if 2 * sum(wrong) <= len(wrong):  # one of three points may lie at a kink
            return None
        return (
            f"gradients by {self.name} contradict differences of the values: part of `f` is not differentiated by "
            f"{self.name}"
        )

    def _is_vectorized(self) -> bool:
        """Return whether ``f`` accepts several points: it must return one row for each, in any order of the points."""
        points = self.X[np.resize(np.arange(min(3, len(self.X))), 3)]
        again = [2, 0]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                three, two = self.traced(points), self.traced(points[again])
                rows = three.ndim in (1, 2) and len(three) == 3 and two.shape == (2, *three.shape[1:])
                rounding = 1e-9 * float(np.max(np.abs(three), where=np.isfinite(three), initial=0.0))
                if rows and np.allclose(three[again], two, rtol=1e-6, atol=rounding, equal_nan=True):
                    return True
                together = f"shape {three.shape} for shape {points.shape}"
            except Exception as error:
                together = f"{type(error).__name__} ({error}) for shape {points.shape}"
            try:
                one = self.traced(points[0])
            except Exception as error:
                alone = f"{type(error).__name__} ({error}) for shape {points[0].shape}"
                raise ValueError(f"`f` must accept points (n, d) or one point (d,), got {together}, {alone}") from error
        if one.ndim > 1:
            wanted = "(n,) or (n, k) for points (n, d), or () or (k,) for one point (d,)"
            raise ValueError(f"`f` must return shape {wanted}, got {together}, shape {one.shape} for {points[0].shape}")
        return False


class Jax(Function):
    """Automatic differentiation by JAX, in double precision."""

    name = "jax"

    def __init__(self, *arguments: Any) -> None:
        self.jax = _framework("jax")
        super().__init__(*arguments)

    def call(self, x: Array) -> Any:
        """Return the values of ``f`` as a NumPy array."""
        with self.jax.enable_x64(True):
            return np.asarray(self.f(self.jax.numpy.asarray(x)))

    def traced(self, x: Array) -> Any:
        """Return the values of ``f`` as ``call`` does, but raise an error if the framework cannot trace ``f``."""
        with self.jax.enable_x64(True):
            return np.asarray(self.jax.vjp(self._traced_values, self.jax.numpy.asarray(x))[0])

    def _traced_values(self, x: Any) -> Any:
        result = self.f(x)
        if not isinstance(result, self.jax.core.Tracer):
            raise TypeError(f"`f` must return a JAX array that depends on its argument, got {type(result).__name__}")
        return result

    def differentiate(self, X: Array, order: int) -> Derivatives:
        """Return values, gradients and, if ``order`` is 2, Hessians for a block of points."""
        jax = self.jax

        def values(x: Any) -> Any:
            result = self._traced_values(x[None])[0] if self.vectorized else self._traced_values(x)
            return (result.reshape(-1),) * 2

        def gradients(x: Any) -> Any:
            gradient, value = jax.jacrev(values, has_aux=True)(x)
            return gradient, (value, gradient)

        def hessians(x: Any) -> Any:
            hessian, lower = jax.jacfwd(gradients, has_aux=True)(x)
            return None, (*lower, hessian)

        point = gradients if order == 1 else hessians
        with jax.enable_x64(True):
            x = jax.numpy.asarray(X)
            try:
                found = jax.jit(jax.vmap(point))(x)[1]
            except Exception:  # Python branches on values cannot be vectorised, but work point by point
                found = [np.stack(arrays) for arrays in zip(*(point(row)[1] for row in x), strict=True)]
        value, gradient, *hessian = (np.array(array, dtype=np.float64) for array in found)
        return value, gradient, hessian[0] if hessian else None


class Torch(Function):
    """Automatic differentiation by torch, in double precision."""

    name = "torch"

    def __init__(self, *arguments: Any) -> None:
        self.torch = _framework("torch")
        super().__init__(*arguments)

    def call(self, x: Array) -> Any:
        """Return the values of ``f`` as a NumPy array."""
        with self.torch.no_grad():
            return self.f(self.torch.tensor(x)).numpy()

    def traced(self, x: Array) -> Any:
        """Return the values of ``f`` as ``call`` does, but raise an error if the framework cannot trace ``f``."""
        with self.torch.enable_grad():
            return self._require_gradient(self.f(self.torch.tensor(x, requires_grad=True))).detach().numpy()

    def _require_gradient(self, result: Any) -> Any:
        if not (isinstance(result, self.torch.Tensor) and result.requires_grad):
            raise TypeError(
                f"`f` must return a tensor that depends on its argument, got {type(result).__name__} that does not"
            )
        return result

    def differentiate(self, X: Array, order: int) -> Derivatives:
        """Return values, gradients and, if ``order`` is 2, Hessians for a block of points."""
        x = self.torch.tensor(X, requires_grad=True)
        with self.torch.enable_grad():
            if self.vectorized:
                values = self.f(x)
            else:
                try:
                    values = self._require_gradient(self.torch.func.vmap(self.f)(x))
                except Exception:  # branches on values, or functions without vmap support
                    values = self.torch.stack([self.f(row) for row in x])
            outputs = self._require_gradient(values).reshape(len(X), -1).double()
            gradients = self._gradients(outputs, x, order == 2)
            n, k, d = gradients.shape
            hessians = self._gradients(gradients.reshape(n, -1), x, False).reshape(n, k, d, d) if order == 2 else None
        return tuple(None if a is None else a.detach().numpy().copy() for a in (outputs, gradients, hessians))  # type: ignore[return-value]

    def _gradients(self, columns: Any, x: Any, create_graph: bool) -> Any:
        """Return the gradients (m, k, d) of ``columns`` (m, k), from the sum of each column: rows are independent."""
        if not columns.requires_grad:  # for Hessians of a linear function, whose gradients are constant
            return self.torch.zeros(*columns.shape, x.shape[1], dtype=x.dtype)
        options = {"retain_graph": True, "create_graph": create_graph, "allow_unused": True, "materialize_grads": True}
        return self.torch.stack(
            [self.torch.autograd.grad(column.sum(), x, **options)[0] for column in columns.T], dim=1
        )


class Differences(Function):
    """Extrapolated finite differences."""

    name = "finite_differences"

    def call(self, x: Array) -> Any:
        """Return the values of ``f`` as a NumPy array."""
        return np.asarray(self.f(x))

    def contradiction(self) -> str | None:
        """Return None: finite differences are not compared with themselves."""
        return None

    def differentiate(self, X: Array, order: int) -> Derivatives:
        """Return values, gradients and, if ``order`` is 2, Hessians for a block of points."""
        at = self.values(X).reshape(len(X), -1)

        def values(points: Array) -> Any:
            if self.vectorized:
                return self.values(points).reshape(len(points), -1)
            return np.stack([self._value_or_nan(x, at.shape[1]) for x in points])

        gradients, _, hessians = differences(values, at, X, self.steps, order)
        return at.astype(np.float64), gradients, hessians

    def _value_or_nan(self, x: Array, n_outputs: int) -> Any:
        try:
            with np.errstate(all="ignore"):
                return self.call(x).reshape(n_outputs)
        except (ValueError, ArithmeticError):  # raised by `math` outside the domain of a function
            return np.full(n_outputs, np.nan)


class ComplexStep(Function):
    """Complex-step differentiation: imaginary parts of the values at complex points."""

    name = "complex_step"

    def call(self, x: Array) -> Any:
        """Return the values of ``f`` as a NumPy array."""
        result = np.asarray(self.f(x))
        return result if np.iscomplexobj(x) else result.real

    def gradients(self, X: Array) -> Array:
        """Return ``Im f(x + i h e_j) / h``, of shape (m, k d)."""
        steps = COMPLEX_STEP * self.steps
        columns = [self.values(X + 1j * shift).reshape(len(X), -1) for shift in np.diag(steps)]
        if not all(np.iscomplexobj(column) for column in columns):
            raise TypeError("`f` must return complex numbers for complex points, got real ones")
        return np.asarray((np.stack(columns, axis=2).imag / steps).reshape(len(X), -1))

    def differentiate(self, X: Array, order: int) -> Derivatives:
        """Return values, gradients and, if ``order`` is 2, Hessians for a block of points."""
        values = self.values(X).reshape(len(X), -1).astype(np.float64)
        shape = (*values.shape, X.shape[1])
        if order == 1:
            return values, self.gradients(X).reshape(shape), None
        gradients = self.gradients(X)
        hessians = differences(self.gradients, gradients, X, self.steps, 1)[0].reshape(*shape, shape[-1])
        return values, gradients.reshape(shape), (hessians + hessians.swapaxes(-1, -2)) / 2


BACKENDS: dict[str, type[Function]] = {kind.name: kind for kind in (Jax, Torch, Differences, ComplexStep)}


def _framework(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"backend {name!r} needs {name}, which is not installed: pip install 'nurf[{name}]'"
        ) from error
