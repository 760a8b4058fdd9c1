"""Derivatives along directions as linear functionals, and their covariances for a radial kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

import numpy as np
from scipy.spatial.distance import cdist

from nurf._types import Array, Index
from nurf.kernels._radial import RadialKernel

Matching = tuple[tuple[tuple[int, int], ...], tuple[int, ...]]  # pairs, and what is single


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
        """Return some consecutive functionals, and no points but theirs."""
        index = self.index[rows]
        if not len(index):
            return Functionals(self.points[:0], index, tuple(v[rows] for v in self.directions))
        first, last = index[0], index[-1]
        return Functionals(self.points[first : last + 1], index - first, tuple(v[rows] for v in self.directions))

    @cached_property
    def _one_each(self) -> bool:
        """Whether there is one functional for each point."""
        return len(self.index) == len(self.points) and bool(np.all(self.index == np.arange(len(self.index))))

    def repeated(self, at_points: Array, axis: int) -> Array:
        """Return an array for points as one for functionals, along an axis."""
        return at_points if self._one_each else np.take(at_points, self.index, axis)

    def mapped(self, metric: Array) -> Functionals:
        """Return the same for functions of ``metric @ x``, with a matrix of shape (q, d)."""
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
    """Return the covariances of the functionals of a process with the kernel, of shape (m_a, m_b).

    With ``z = x_a - x_b``, ``t = |z|^2 / 2`` and the directions ``v_1, ..., v_q`` of both functionals, this is::

        (-1)^(order of b) sum phi^(p + s)(t) prod <v_i, v_j> prod <z, v_l>

    over all ways to choose ``p`` pairs ``(i, j)`` of directions, with ``s`` single ones ``l`` left.
    """
    terms = _Terms(kernel, a, b)
    total = sum(terms.product(matching) for matching in _matchings(a.order + b.order))
    return np.asarray(total * (-1) ** b.order)


def variances(kernel: RadialKernel, a: Functionals) -> Array:
    """Return the variances of functionals of order 0, 1 or 2, of shape (m,)."""
    at_zero = (-1) ** a.order * kernel.profile(np.zeros(()), a.order)
    squares = [np.sum(v**2, axis=1) for v in a.directions]
    lengths = np.prod(squares, axis=0) if a.order else 1.0
    if a.order == 2:
        lengths = lengths + 2 * np.sum(a.directions[0] * a.directions[1], axis=1) ** 2
    return np.full(len(a), at_zero * lengths)


def pullback(kernel: RadialKernel, a: Functionals, b: Functionals, weights: Array) -> tuple[Functionals, Functionals]:
    """Return the derivatives of ``sum weights * covariance(kernel, a, b)`` by the points and directions of ``a, b``.

    They have the shape of what they are derivatives by. Nothing here is larger than the covariances.
    """
    terms, weights = _Terms(kernel, a, b), weights * (-1) ** b.order
    slopes = _Slopes(terms)
    for matching in _matchings(a.order + b.order):
        slopes.add(matching, weights)
    return slopes.result()


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


class _Terms:
    """The matrices from which covariances are multiplied together, each computed once."""

    def __init__(self, kernel: RadialKernel, a: Functionals, b: Functionals) -> None:
        self.a, self.b, self.directions = a, b, (*a.directions, *b.directions)
        self._kernel, self._t = kernel, cdist(a.points, b.points, "sqeuclidean") / 2
        self._profiles: dict[int, Array] = {}
        self._single = [self._along(i) for i in range(len(self.directions))]
        self._pairs: dict[tuple[int, int], Array] = {}

    def profile(self, order: int) -> Array:
        """Return a derivative of ``phi`` for all functionals."""
        if order not in self._profiles:
            self._profiles[order] = self.spread(self._kernel.profile(self._t, order))
        return self._profiles[order]

    def spread(self, at_points: Array) -> Array:
        """Return a matrix for pairs of points as one for pairs of functionals."""
        return self.b.repeated(self.a.repeated(at_points, 0), 1)

    def is_left(self, i: int) -> bool:
        """Return whether direction ``i`` belongs to ``a``."""
        return i < self.a.order

    def single(self, i: int) -> Array:
        """Return ``<x_a - x_b, v_i>``."""
        return self._single[i]

    def pair(self, i: int, j: int) -> Array:
        """Return ``<v_i, v_j>``: of shape (m_a, m_b), (m_a, 1) or (1, m_b)."""
        if (i, j) not in self._pairs:
            v, w = self.directions[i], self.directions[j]
            if self.is_left(i) == self.is_left(j):
                products = np.sum(v * w, axis=1)
                self._pairs[i, j] = products[:, None] if self.is_left(i) else products[None]
            else:
                self._pairs[i, j] = v @ w.T
        return self._pairs[i, j]

    def factors(self, matching: Matching) -> list[Array]:
        """Return the factors of a term, without the derivative of ``phi``: pairs first."""
        pairs, single = matching
        return [*(self.pair(*pair) for pair in pairs), *map(self.single, single)]

    def product(self, matching: Matching) -> Array:
        """Return a term."""
        pairs, single = matching
        return reduce(np.multiply, self.factors(matching), self.profile(len(pairs) + len(single)))

    def _along(self, i: int) -> Array:
        v, (a, b) = self.directions[i], (self.a, self.b)
        if self.is_left(i):
            return b.repeated(np.sum(a.points[a.index] * v, axis=1)[:, None] - v @ b.points.T, 1)
        return a.repeated(a.points @ v.T - np.sum(b.points[b.index] * v, axis=1), 0)


class _Slopes:
    """Derivatives of a weighted sum of covariances by points and directions, added up term by term."""

    def __init__(self, terms: _Terms) -> None:
        self._terms = terms
        a, b = terms.a, terms.b
        self._distance = np.zeros((len(a), len(b)))
        self._points = [np.zeros((len(f), f.points.shape[1])) for f in (a, b)]  # of each functional, not yet of points
        self._directions = [np.zeros_like(v) for v in terms.directions]

    def add(self, matching: Matching, weights: Array) -> None:
        """Add the derivatives of one term."""
        terms, (pairs, single) = self._terms, matching
        order, factors = len(pairs) + len(single), terms.factors(matching)
        self._distance += reduce(np.multiply, factors, weights * terms.profile(order + 1))
        if not factors:
            return
        weighted = weights * terms.profile(order)
        for k in range(len(factors)):
            slope = reduce(np.multiply, factors[:k] + factors[k + 1 :], weighted)
            if k < len(pairs):
                self._add_pair(*pairs[k], slope)
            else:
                self._add_single(single[k - len(pairs)], slope)

    def _add_pair(self, i: int, j: int, slope: Array) -> None:
        v, w = self._terms.directions[i], self._terms.directions[j]
        if self._terms.is_left(i) == self._terms.is_left(j):
            sums = slope.sum(axis=1 if self._terms.is_left(i) else 0)[:, None]
            self._directions[i] += sums * w
            self._directions[j] += sums * v
        else:
            self._directions[i] += slope @ w
            self._directions[j] += slope.T @ v

    def _add_single(self, i: int, slope: Array) -> None:
        a, b, v = self._terms.a, self._terms.b, self._terms.directions[i]
        if self._terms.is_left(i):
            sums = slope.sum(axis=1)[:, None]
            self._points[0] += sums * v
            self._points[1] -= slope.T @ v
            self._directions[i] += sums * a.points[a.index] - slope @ b.points[b.index]
        else:
            sums = slope.sum(axis=0)[:, None]
            self._points[0] += slope @ v
            self._points[1] -= sums * v
            self._directions[i] += slope.T @ a.points[a.index] - sums * b.points[b.index]

    def result(self) -> tuple[Functionals, Functionals]:
        """Return the derivatives, in the shape of the functionals."""
        a, b, distance = self._terms.a, self._terms.b, self._distance
        x, y = a.points[a.index], b.points[b.index]
        left = self._points[0] + distance.sum(axis=1)[:, None] * x - distance @ y
        right = self._points[1] + distance.sum(axis=0)[:, None] * y - distance.T @ x
        return (
            Functionals(_summed(left, a), a.index, tuple(self._directions[: a.order])),
            Functionals(_summed(right, b), b.index, tuple(self._directions[a.order :])),
        )


def _summed(slopes: Array, functionals: Functionals) -> Array:
    """Return the sums over the functionals of each point."""
    result = np.zeros_like(functionals.points)
    np.add.at(result, functionals.index, slopes)
    return result
