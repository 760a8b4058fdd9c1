"""A network as a plain function of one or many points, for optimisers and samplers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._blocks import row_blocks
from nurf._types import Array
from nurf.activations import Activation
from nurf.networks._tails import Tail


@dataclass(frozen=True, eq=False)
class ShallowFunction:
    """A network with all changes of units multiplied out, as a function of points that are not validated.

    ``f(x) = sum_n c_n sigma(a_n.(x - m) + b_n) + p(x - m)``. A call takes one point of shape (d,) and returns a number,
    or (k,) for ``k`` outputs; or many points of shape (n, d), and returns (n,) or (n, k). Gradients have one more axis,
    of length d.

    Parameters
    ----------
    activation : Activation
        The shape of ``sigma``; its widths are contained in the other parameters.
    center : array of shape (d,)
        ``m``.
    directions : array of shape (d, N)
        ``a_n``.
    offsets : array of shape (N,)
        ``b_n``.
    coef, slope_coef : array of shape (N,) or (N, k)
        ``c_n``, and the factors of ``sigma'`` in the gradient.
    normals : array of shape (N, d)
        The vectors that ``slope_coef`` multiplies in the gradient.
    tail : Tail
        The monomials of ``p``.
    tail_coef : array of shape (t,) or (t, k)
        The coefficients of the monomials.

    Examples
    --------
    >>> from scipy.optimize import minimize
    >>> from nurf import RandomFeatureRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> model = RandomFeatureRegressor(100, random_state=0).fit(X, (X**2).sum(axis=1), gradients=2 * X)
    >>> f = model.function()
    >>> bool(abs(f(np.array([0.5, 0.5])) - 0.5) < 1e-3)
    True
    >>> bool(np.abs(minimize(f.value_and_gradient, [0.5, 0.5], jac=True).x).max() < 1e-2)
    True
    """

    activation: Activation
    center: Array
    directions: Array
    offsets: Array
    coef: Array
    slope_coef: Array
    normals: Array
    tail: Tail
    tail_coef: Array

    def __call__(self, x: Any) -> Any:
        """Return the value at ``x``."""
        return self._in_blocks(self._value, np.asarray(x, float))[0]

    def gradient(self, x: Any) -> Array:
        """Return the gradient at ``x``."""
        self.activation.require(1)
        return np.asarray(self._in_blocks(self._gradient, np.asarray(x, float))[0])

    def value_and_gradient(self, x: Any) -> tuple[Any, Array]:
        """Return the value and the gradient at ``x``, which costs less than two calls."""
        self.activation.require(1)
        value, gradient = self._in_blocks(self._both, np.asarray(x, float))
        return value, gradient

    def _in_blocks(self, evaluate: Callable[[Array], tuple[Any, ...]], x: Array) -> tuple[Any, ...]:
        """Return the results of ``evaluate`` at ``x``, in blocks of rows that fit into the cache if there are many."""
        blocks = list(row_blocks(len(x), len(self.offsets))) if x.ndim == 2 else []
        if len(blocks) < 2:
            return evaluate(x)
        return tuple(np.concatenate(parts) for parts in zip(*(evaluate(x[rows]) for rows in blocks), strict=True))

    def _value(self, x: Array) -> tuple[Any]:
        z = x - self.center
        return (self.activation.unit(self._arguments(z), 0) @ self.coef + self._tail_value(z),)

    def _gradient(self, x: Array) -> tuple[Array]:
        z = x - self.center
        return (self._slope_sums(self.activation.unit(self._arguments(z), 1)) + self._tail_gradient(z),)

    def _both(self, x: Array) -> tuple[Any, Array]:
        z = x - self.center
        values, slopes = self.activation.unit_and_slope(self._arguments(z))
        return values @ self.coef + self._tail_value(z), self._slope_sums(slopes) + self._tail_gradient(z)

    def _arguments(self, z: Array) -> Array:
        u = z @ self.directions
        u += self.offsets
        return np.asarray(u)

    def _slope_sums(self, slopes: Array) -> Array:
        """Return ``sum_n c_n sigma'_n a_n`` for ``slopes`` ``sigma'_n`` (..., N), of shape (..., d) or (..., k, d)."""
        if self.slope_coef.ndim == 1:
            slopes *= self.slope_coef
            return np.asarray(slopes @ self.normals)
        return np.asarray((slopes[..., None, :] * self.slope_coef.T) @ self.normals)

    def _tail_value(self, z: Array) -> Any:
        if self.tail.degree <= 1:
            constant, slopes = self.tail_coef[0], self.tail_coef[1:]
            return z @ slopes + constant if len(slopes) else constant
        values = self.tail.values(np.atleast_2d(z)) @ self.tail_coef
        return values.reshape((*z.shape[:-1], *self.tail_coef.shape[1:]))

    def _tail_gradient(self, z: Array) -> Any:
        if self.tail.degree <= 1:
            return self.tail_coef[1:].T if self.tail.degree else 0.0
        gradients = self.tail.gradient(np.atleast_2d(z), self.tail_coef.reshape(len(self.tail), -1))
        return gradients.reshape((*z.shape[:-1], *self.tail_coef.shape[1:], z.shape[-1]))
