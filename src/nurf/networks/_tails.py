"""The polynomial tail ``p(x)`` of a network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
from scipy.special import comb

from nurf._tensors import factors, variables
from nurf._types import Array


@dataclass(frozen=True)
class Tail:
    """All monomials in ``dimension`` variables up to ``degree``; none if the degree is -1.

    Examples
    --------
    >>> Tail(1, dimension=2).values(np.array([[2.0, 3.0]]))
    array([[1., 2., 3.]])
    """

    degree: int
    dimension: int

    @cached_property
    def exponents(self) -> npt.NDArray[np.int64]:
        """The exponents of the monomials, of shape (t, d)."""
        rows = [
            np.bincount(np.array(variables, dtype=int), minlength=self.dimension)
            for total in range(self.degree + 1)
            for variables in combinations_with_replacement(range(self.dimension), total)
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, self.dimension)

    def __len__(self) -> int:
        return math.comb(self.dimension + self.degree, self.dimension)

    def values(self, X: Array) -> Array:
        """Return the monomials at the points, of shape (n, t)."""
        if self.degree <= 1:
            return np.concatenate([np.ones((len(X), 1)), X], axis=1)[:, : len(self)]
        return self._monomials(X, self.exponents)

    def partials(self, X: Array, variables: tuple[int, ...]) -> Array:
        """Return the partial derivatives of the monomials with respect to ``variables`` in turn, of shape (n, t)."""
        result = np.zeros((len(X), len(self)))
        if len(variables) > self.degree:
            return result
        exponents, factors = self.exponents.copy(), np.ones(len(self))
        for i in variables:
            factors *= exponents[:, i]
            exponents[:, i] -= 1
        nonzero = factors != 0
        result[:, nonzero] = factors[nonzero] * self._monomials(X, exponents[nonzero])
        return result

    def components(self, X: Array, order: int) -> Array:
        """Return the components of the derivatives of an order of the monomials, of shape (n, C, t).

        Their order and scale are defined in ``nurf._tensors``. If the order is not below the degree, they are the
        same at all points, and the array is a view that takes the memory of one.
        """
        if order == 0:
            return self.values(X)[:, None]
        if order >= self.degree:
            constant = self._leading_components() if order == self.degree else np.zeros(())
            return np.broadcast_to(constant, (len(X), math.comb(self.dimension + order - 1, order), len(self)))
        partials = [self.partials(X, by) for by in variables(self.dimension, order)]
        return np.stack(partials, axis=1) * factors(self.dimension, order)[:, None]

    def gradient(self, X: Array, coef: Array) -> Array:
        """Return the gradients of the polynomials with coefficients ``coef`` (t, k), of shape (n, k, d)."""
        if self.degree <= 0:
            return np.zeros((len(X), coef.shape[1], self.dimension))
        if self.degree == 1:
            return np.repeat(np.swapaxes(self.components(X[:1], 1) @ coef, 1, 2), len(X), axis=0)
        return np.swapaxes(self.components(X, 1) @ coef, 1, 2)

    def hessian(self, X: Array, coef: Array) -> Array:
        """Return the Hessians of the polynomials with coefficients ``coef`` (t, k), of shape (n, k, d, d)."""
        result = np.zeros((len(X), coef.shape[1], self.dimension, self.dimension))
        if self.degree > 1:
            for i, j in combinations_with_replacement(range(self.dimension), 2):
                result[..., i, j] = result[..., j, i] = self.partials(X, (i, j)) @ coef
        return result

    def substitution(self, center: Array, scale: Array) -> Array:
        """Return the matrix ``T`` (t, t) with ``values((x - center) / scale) = values(x) @ T``.

        ``((x - m) / q)^e`` is the sum over ``f <= e`` of ``x^f prod_i binomial(e_i, f_i) (-m_i)^(e_i-f_i) / q_i^e_i``.
        """
        if self.degree <= 1:
            affine = np.diag(np.concatenate([[1.0], 1 / scale]))
            affine[0, 1:] = -center / scale
            return affine[: len(self), : len(self)]
        old, new = self.exponents[None, :, :], self.exponents[:, None, :]
        terms = comb(old, new) * (-center) ** np.maximum(old - new, 0) / scale**old
        return np.asarray(terms.prod(axis=2))

    def _leading_components(self) -> Array:
        """Return the components of the derivatives whose order is the degree, the same at all points: (C, t).

        The derivative of a monomial of this degree with respect to its own variables is the product of the factorials
        of its exponents.
        """
        leading = variables(self.dimension, self.degree)
        sizes = [math.prod(math.factorial(by.count(i)) for i in set(by)) for by in leading]
        result = np.zeros((len(leading), len(self)))
        result[:, -len(leading) :] = np.diag(sizes * factors(self.dimension, self.degree))
        return result

    def _monomials(self, X: Array, exponents: npt.NDArray[np.int64]) -> Array:
        result = np.ones((len(X), len(exponents)))
        for i in np.flatnonzero(exponents.any(axis=0)):
            used = exponents[:, i] > 0
            result[:, used] *= X[:, i, None] ** exponents[used, i]
        return result
