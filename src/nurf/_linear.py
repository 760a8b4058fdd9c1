"""Linear functionals as sums of derivatives at points, one for each row of a jet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nurf._blocks import row_blocks
from nurf._types import Array, Floats, Index, Mask

ORDERS = 3  # of derivatives: values, first and second ones
NONE = -1  # the item of a row without a functional


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms ``c_t D^q f(x_t)[v_t1, ..., v_tq]`` of one order ``q``, which are added up in rows.

    Parameters
    ----------
    rows : array of shape (T,), not decreasing
        The row of each term.
    points : array of shape (T, d)
    coef : array of shape (T,)
    directions : tuple of ``q`` arrays of shape (T, d)
    """

    rows: Index
    points: Array
    coef: Array
    directions: tuple[Array, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def order(self) -> int:
        """The order ``q`` of the derivatives."""
        return len(self.directions)

    def __getitem__(self, some: Any) -> Terms:
        """Return some terms of the same rows."""
        return Terms(self.rows[some], self.points[some], self.coef[some], tuple(v[some] for v in self.directions))

    def of_rows(self, index: Index, n_rows: int) -> Terms:
        """Return the terms of some of ``n_rows`` rows, in their order."""
        starts = np.searchsorted(self.rows, np.arange(n_rows + 1))
        counts = np.diff(starts)[index]
        first = np.cumsum(counts) - counts
        places = np.arange(int(counts.sum())) + np.repeat(starts[index] - first, counts)
        return replace(self[places], rows=np.repeat(np.arange(len(index)), counts))

    def added(self, values: Array, n_rows: int) -> Array:
        """Return the sums over the terms of each row of an array (T, ...), of shape (n_rows, ...)."""
        result = np.zeros((n_rows, *values.shape[1:]))
        if len(self):
            starts = changes(self.rows[:, None])
            result[self.rows[starts]] = values if len(starts) == len(self) else np.add.reduceat(values, starts)
        return result

    @property
    def sizes(self) -> Array:
        """The lengths of the coefficients of all terms as vectors or tensors, of shape (T,)."""
        lengths = np.ones(len(self))
        for v in self.directions:
            lengths = lengths * np.hypot.reduce(v, axis=1)
        return np.abs(self.coef) * lengths

    def with_unit_directions(self) -> Terms:
        """Return the terms with directions of length one, or zero, and the lengths as factors of the coefficients."""
        coef, directions = self.coef, []
        for v in self.directions:
            lengths = np.hypot.reduce(v, axis=1)  # squares may overflow
            coef = coef * lengths
            directions.append(v / np.where(lengths > 0, lengths, 1.0)[:, None])
        return replace(self, coef=coef, directions=tuple(directions))

    @property
    def starts(self) -> Index:
        """The first of the terms that follow each other with the same row and the same point, of shape (p,)."""
        return changes(np.column_stack([self.rows, self.points]))


@dataclass(frozen=True, eq=False)
class LinearRows:
    """Linear functionals of a function and their values, one for each row, or none.

    Parameters
    ----------
    terms : tuple of Terms
        Values, first and second derivatives.
    targets : array of shape (n,) or (n, k)
        The values of the functionals for all outputs; NaN in rows without one.
    items : array of shape (n,)
        Rows of one item are measured in the same unit; -1 in rows without a functional.
    """

    terms: tuple[Terms, ...]
    targets: Array
    items: Index

    @classmethod
    def none(cls, shape: tuple[int, ...], d: int) -> LinearRows:
        """Return rows without functionals, for values of a shape (n,) or (n, k) at points in ``d`` dimensions."""
        rows, empty = np.empty(0, np.int64), np.empty((0, d))
        terms = tuple(Terms(rows, empty, np.empty(0), (empty,) * order) for order in range(ORDERS))
        return cls(terms, np.full(shape, np.nan), np.full(shape[0], NONE))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, rows: Any) -> LinearRows:
        """Return some of the rows."""
        index = np.arange(len(self))[rows]
        terms = tuple(part.of_rows(index, len(self)) for part in self.terms)
        return LinearRows(terms, self.targets[index], self.items[index])

    def __add__(self, other: LinearRows) -> LinearRows:
        """Return all rows, followed by the rows of ``other``, whose items are others."""
        terms = tuple(
            Terms(
                np.concatenate([a.rows, b.rows + len(self)]),
                np.concatenate([a.points, b.points]),
                np.concatenate([a.coef, b.coef]),
                tuple(np.concatenate(pair) for pair in zip(a.directions, b.directions, strict=True)),
            )
            for a, b in zip(self.terms, other.terms, strict=True)
        )
        further = np.where(other.known, other.items + self.items.max(initial=NONE) + 1, NONE)
        return LinearRows(terms, np.concatenate([self.targets, other.targets]), np.concatenate([self.items, further]))

    @property
    def known(self) -> Mask:
        """The mask of the rows with a functional, of shape (n,)."""
        return np.asarray(self.items != NONE)

    @property
    def orders(self) -> Index:
        """The highest order of a derivative in each row, of shape (n,); 0 without terms."""
        result = np.zeros(len(self), np.int64)
        for part in self.terms:
            result[part.rows] = part.order
        return result

    @property
    def max_order(self) -> int:
        """The highest order of a derivative in all rows."""
        return int(self.orders.max(initial=0))

    @property
    def points(self) -> Array:
        """The points of all terms, of shape (m, d)."""
        return np.concatenate([part.points for part in self.terms])

    @property
    def of_one(self) -> Array:
        """The functionals of the constant function 1, of shape (n,)."""
        return self.terms[0].added(self.terms[0].coef, len(self))

    @property
    def sizes(self) -> Array:
        """The size of the functional in each row, of shape (n,).

        The size is ``(a_0^2 + a_1^2 + a_2^2)^(1/2)`` with the sum ``a_q`` of the lengths of all coefficients of order
        ``q``: one for a value, a mean of values, or a partial derivative.
        """
        return np.asarray(np.hypot.reduce([part.added(part.sizes, len(self)) for part in self.terms]))

    @property
    def keys(self) -> Array:
        """What tells rows apart, as numbers: item, targets, and sums over the terms, of shape (n, p)."""
        sums = [part.added(part.coef[:, None] * part.points, len(self)) for part in self.terms]
        return np.column_stack([self.items, self.targets.reshape(len(self), -1), self.of_one, self.sizes, *sums])

    def mapped(self, points: Callable[[Array], Array], directions: Callable[[Array], Array]) -> LinearRows:
        """Return the functionals of a function of other inputs, with the maps of points and of directions."""
        terms = (
            Terms(part.rows, points(part.points), part.coef, tuple(directions(v) for v in part.directions))
            for part in self.terms
        )
        return replace(self, terms=tuple(part.with_unit_directions() for part in terms))

    def of_residual(self, center: Array, scale: Array) -> LinearRows:
        """Return the functionals of ``(f - center) / scale``."""
        constants = self.of_one.reshape(-1, *[1] * (self.targets.ndim - 1))
        return replace(self, targets=(self.targets - constants * center) / scale)

    def units(self) -> Array:
        """Return the root mean square size of the functionals of the item of each row, of shape (n,); 1 if zero."""
        sizes, items = self.sizes, self.items
        groups, group = np.unique(items, return_inverse=True)
        largest = np.zeros(len(groups))
        np.maximum.at(largest, group, sizes)
        shares = np.divide(sizes, largest[group], out=np.zeros(len(self)), where=largest[group] > 0)
        means = np.bincount(group, shares**2, len(groups)) / np.bincount(group, minlength=len(groups))
        result = largest[group] * np.sqrt(means)[group]
        return np.asarray(np.where((items == NONE) | (result == 0), 1.0, result))

    def over(self, units: Array) -> LinearRows:
        """Return the functionals and their values divided by numbers of shape (n,)."""
        terms = tuple(replace(part, coef=part.coef / units[part.rows]) for part in self.terms)
        return replace(self, terms=terms, targets=self.targets / units.reshape(-1, *[1] * (self.targets.ndim - 1)))

    def applied(
        self, value: Callable[..., Array], gradient: Callable[..., Array], hessian: Callable[..., Array]
    ) -> Any:
        """Return the functionals of a function, given by its derivatives at points, of shape (n, k).

        The derivatives of ``m`` points have the shapes (m,) or (m, k), (m, d) or (m, k, d), and (m, d, d) or (m, k, d,
        d).
        """
        total = np.zeros((len(self), int(np.prod(self.targets.shape[1:], dtype=int))))
        for part, derivative in zip(self.terms, (value, gradient, hessian), strict=True):
            for block in row_blocks(len(part), part.points.shape[1] ** part.order):
                some, first = part[block], part[block].starts
                found = derivative(some.points[first])
                found = found.reshape(len(first), total.shape[1], *[part.points.shape[1]] * part.order)
                found = np.repeat(found, np.diff([*first, len(some)]), axis=0)
                for v in some.directions:
                    found = np.einsum("nkd...,nd->nk...", found, v)
                total += some.added(some.coef[:, None] * found, len(self))
        return total


def changes(rows: Floats | Index) -> Index:
    """Return a mask of the rows that differ from the previous row; the first row always does."""
    if not len(rows):
        return np.empty(0, np.int64)
    differs = np.any(rows[1:] != rows[:-1], axis=1)
    return np.concatenate([[0], np.flatnonzero(differs) + 1])
