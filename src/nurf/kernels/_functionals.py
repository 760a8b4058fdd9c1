"""Derivatives along directions as linear functionals, and their covariances for a radial kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

import numpy as np
from scipy.spatial.distance import cdist

from nurf._types import Array, Index
from nurf.kernels._radial import RadialKernel

Matching = tuple[tuple[tuple[int, int], ...], tuple[int, ...]]  # pairs, and single things


@dataclass(frozen=True, eq=False)
class Functionals:
    """The functionals ``f -> D^q f(x_a)[v_a1, ..., v_aq]``: derivatives of one order ``q`` at points.

    Parameters
    ----------
    points : array of shape (n, d)
    index : array of shape (m,), not decreasing
        The point of each functional.
    directions : tuple of ``q`` arrays of shape (m, d)
    """

    points: Array
    index: Index
    directions: tuple[Array, ...] = ()

    @classmethod
    def at(cls, X: Array, order: int) -> Functionals:
        """Return all partial derivatives of an order at the points: 1, ``d`` or ``d^2`` for each of them."""
        n, d = X.shape
        axes = np.indices([d] * order).reshape(order, d**order)
        directions = tuple(np.tile(np.eye(d)[axis], (n, 1)) for axis in axes)
        return cls(X, np.repeat(np.arange(n), d**order), directions)

    def __len__(self) -> int:
        return len(self.index)

    @property
    def order(self) -> int:
        """The order ``q`` of the derivatives."""
        return len(self.directions)

    def __getitem__(self, rows: slice) -> Functionals:
        """Return some consecutive functionals, with their points only."""
        if rows.indices(len(self)) == (0, len(self), 1):
            return self
        index = self.index[rows]
        if not len(index):
            return Functionals(self.points[:0], index, tuple(v[rows] for v in self.directions))
        first, last = index[0], index[-1]
        return Functionals(self.points[first : last + 1], index - first, tuple(v[rows] for v in self.directions))

    @cached_property
    def _one_each(self) -> bool:
        """Whether there is one functional for each point."""
        return len(self.index) == len(self.points) and bool(np.all(self.index == np.arange(len(self.index))))

    @cached_property
    def located(self) -> Array:
        """The points of all functionals, and a column of ones, of shape (m, d + 1)."""
        return np.column_stack([self.points[self.index], np.ones(len(self.index))])

    def repeated(self, at_points: Array, axis: int) -> Array:
        """Repeat the entries of an array for points along an axis, such that each functional has an entry."""
        return at_points if self._one_each else np.take(at_points, self.index, axis)

    def mapped(self, metric: Array) -> Functionals:
        """Return the functionals of functions of ``metric @ x``, with a matrix of shape (q, d)."""
        return Functionals(self.points @ metric.T, self.index, tuple(v @ metric.T for v in self.directions))

    def monomials(self, degree: int) -> Array:
        """Return the functionals of 1 and of the inputs, up to a degree of at most 1, of shape (m, t)."""
        m, d = len(self), self.points.shape[1]
        result = np.zeros((m, 1 + d))
        if self.order == 0:
            result[:, 0], result[:, 1:] = 1.0, self.points[self.index]
        elif self.order == 1:
            result[:, 1:] = self.directions[0]
        return result[:, : 1 + d * degree]


def covariance(kernel: RadialKernel, a: Functionals, b: Functionals) -> Array:
    """Return the covariances of the functionals of a process with the kernel, of shape (m_a, m_b)."""
    return Covariances(kernel, a, b).matrix()


def variances(kernel: RadialKernel, a: Functionals) -> Array:
    """Return the variances of functionals of order 0, 1 or 2, of shape (m,)."""
    at_zero = (-1) ** a.order * kernel.profile(np.zeros(()), a.order)
    squares = [np.sum(v**2, axis=1) for v in a.directions]
    lengths = np.prod(squares, axis=0) if a.order else 1.0
    if a.order == 2:
        lengths = lengths + 2 * np.sum(a.directions[0] * a.directions[1], axis=1) ** 2
    return np.full(len(a), at_zero * lengths)


@lru_cache
def _matchings(n: int) -> tuple[Matching, ...]:
    """Return all ways to choose pairs of ``n`` things.

    >>> _matchings(2)
    (((), (0, 1)), (((0, 1),), ()))
    """

    def choose(left: tuple[int, ...]) -> Iterator[Matching]:
        if not left:
            yield (), ()
            return
        first, *rest = left
        for pairs, single in choose(tuple(rest)):
            yield pairs, (first, *single)
        for partner in rest:
            for pairs, single in choose(tuple(i for i in rest if i != partner)):
                yield ((first, partner), *pairs), single

    return tuple(choose(tuple(range(n))))


class Covariances:
    """The covariances of functionals of a process with a kernel. Each matrix that they share is computed once.

    With ``z = x_a - x_b``, ``t = |z|^2 / 2`` and the directions ``v_1, ..., v_q`` of both functionals, they are::

        (-1)^(order of b) sum phi^(p + s)(t) prod <v_i, v_j> prod <z, v_l>

    over all ways to choose ``p`` pairs ``(i, j)`` of directions, which leave ``s`` single directions ``l``.

    Parameters
    ----------
    kernel : RadialKernel
    a, b : Functionals
    """

    def __init__(self, kernel: RadialKernel, a: Functionals, b: Functionals) -> None:
        self._a, self._b, self._directions = a, b, (*a.directions, *b.directions)
        self._kernel, self._t = kernel, cdist(a.points, b.points, "sqeuclidean") / 2
        self._profiles: dict[int, Array] = {}
        self._single = [self._along(i) for i in range(len(self._directions))]
        self._pairs: dict[tuple[int, int], Array] = {}

    def matrix(self) -> Array:
        """Return the covariances, of shape (m_a, m_b)."""
        total = sum(
            reduce(np.multiply, self._factors(pairs, single), self._profile(len(pairs) + len(single)))
            for pairs, single in _matchings(len(self._directions))
        )
        return np.asarray(-total if self._b.order % 2 else total)

    def slopes(self, weights: Array, a: Functionals, b: Functionals) -> Array:
        """Return the derivative of ``sum weights * matrix`` with respect to ``A^T A``, for a linear map ``A``: (d, d).

        ``a`` and ``b`` are the functionals before the map ``A``. All inner products have the form
        ``u.(A^T A) w``, with the derivative ``u w^T``, made symmetric. Nothing here is larger than the covariances.
        """
        weights = -weights if b.order % 2 else weights
        directions, distance = (*a.directions, *b.directions), np.zeros_like(weights)
        q = len(directions)
        weighted = {order: weights * self._profile(order) for order in range(max(1, (q + 1) // 2), q + 2)}
        total = np.zeros((a.points.shape[1],) * 2)
        for pairs, single in _matchings(q):
            order, factors = len(pairs) + len(single), self._factors(pairs, single)
            distance += reduce(np.multiply, factors, weighted[order + 1])
            for k in range(len(factors)):
                slope = reduce(np.multiply, factors[:k] + factors[k + 1 :], weighted[order])
                if k < len(pairs):
                    total += self._by_pair(slope, *pairs[k], directions)
                else:
                    total += self._by_single(slope, single[k - len(pairs)], directions, a, b)
        total += _by_distance(distance, a, b)
        return np.asarray((total + total.T) / 2)

    def _by_pair(self, slope: Array, i: int, j: int, directions: tuple[Array, ...]) -> Array:
        """Return the derivative of ``sum slope * <v_i, v_j>``."""
        if self._is_left(i) == self._is_left(j):
            sums = slope.sum(axis=1 if self._is_left(i) else 0)
            return np.asarray((sums[:, None] * directions[i]).T @ directions[j])
        return np.asarray(directions[i].T @ (slope @ directions[j]))

    def _by_single(self, slope: Array, i: int, directions: tuple[Array, ...], a: Functionals, b: Functionals) -> Array:
        """Return the derivative of ``sum slope * <x_a - x_b, v_i>``."""
        differences = _differences(slope, a, b) if self._is_left(i) else -_differences(slope.T, b, a)
        return np.asarray(differences.T @ directions[i])

    def _is_left(self, i: int) -> bool:
        """Return whether direction ``i`` belongs to ``a``."""
        return i < self._a.order

    def _profile(self, order: int) -> Array:
        """Return a derivative of ``phi`` for all functionals."""
        if order not in self._profiles:
            at_points = self._kernel.profile(self._t, order)
            self._profiles[order] = self._b.repeated(self._a.repeated(at_points, 0), 1)
        return self._profiles[order]

    def _pair(self, i: int, j: int) -> Array:
        """Return ``<v_i, v_j>``: of shape (m_a, m_b), (m_a, 1) or (1, m_b)."""
        if (i, j) not in self._pairs:
            v, w = self._directions[i], self._directions[j]
            if self._is_left(i) == self._is_left(j):
                products = np.sum(v * w, axis=1)
                self._pairs[i, j] = products[:, None] if self._is_left(i) else products[None]
            else:
                self._pairs[i, j] = v @ w.T
        return self._pairs[i, j]

    def _factors(self, pairs: tuple[tuple[int, int], ...], single: tuple[int, ...]) -> list[Array]:
        """Return the factors of a term, without the derivative of ``phi``: pairs first."""
        return [*(self._pair(*pair) for pair in pairs), *(self._single[i] for i in single)]

    def _along(self, i: int) -> Array:
        """Return ``<x_a - x_b, v_i>``."""
        v, (a, b) = self._directions[i], (self._a, self._b)
        if self._is_left(i):
            return b.repeated(np.sum(a.points[a.index] * v, axis=1)[:, None] - v @ b.points.T, 1)
        return a.repeated(a.points @ v.T - np.sum(b.points[b.index] * v, axis=1), 0)


def _by_distance(weights: Array, a: Functionals, b: Functionals) -> Array:
    """Return the derivative of ``sum weights * |x_a - x_b|^2 / 2``."""
    sums, x, y = weights @ b.located, a.located[:, :-1], b.located[:, :-1]
    return np.asarray(x.T @ (sums[:, -1:] / 2 * x - sums[:, :-1]) + y.T @ (weights.sum(axis=0)[:, None] / 2 * y))


def _differences(weights: Array, a: Functionals, b: Functionals) -> Array:
    """Return the sums over ``b`` of ``weights * (x_a - x_b)``, of shape (m_a, d)."""
    sums = weights @ b.located
    return np.asarray(sums[:, -1:] * a.located[:, :-1] - sums[:, :-1])
