"""The polynomial tail ``p(x)`` of a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
from scipy.special import comb

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
        return len(self.exponents)

    def values(self, X: Array) -> Array:
        """Return the monomials at the points, of shape (n, t)."""
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

    def gradient(self, X: Array, coef: Array) -> Array:
        """Return the gradients of the polynomials with coefficients ``coef`` (t, k), of shape (n, k, d)."""
        result = np.zeros((len(X), coef.shape[1], self.dimension))
        if self.degree > 0:
            for i in range(self.dimension):
                result[..., i] = self.partials(X, (i,)) @ coef
        return result

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
        old, new = self.exponents[None, :, :], self.exponents[:, None, :]
        terms = comb(old, new) * (-center) ** np.maximum(old - new, 0) / scale**old
        return np.asarray(terms.prod(axis=2))

    def _monomials(self, X: Array, exponents: npt.NDArray[np.int64]) -> Array:
        result = np.ones((len(X), len(exponents)))
        for i in np.flatnonzero(exponents.any(axis=0)):
            used = exponents[:, i] > 0
            result[:, used] *= X[:, i, None] ** exponents[used, i]
        return result
