"""Linear operators: sums of derivatives with coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nurf._linear import ORDERS, LinearRows, Terms
from nurf._types import Array, Index
from nurf._validation import as_finite, is_number
from nurf.functionals._derivatives import Along, Derivative, Laplacian, Partial, Value, checked_names
from nurf.functionals._numbers import Function, Numbers, at_points, numbers_or_function, row_count
from nurf.functionals._places import At, Box, Here, Place

HERE = Here()


@dataclass(frozen=True)
class Term:
    """A derivative with coefficients, at a place.

    Parameters
    ----------
    derivative : Derivative
    factors : tuple
        Coefficients that are evaluated where the derivative is: numbers for each row, or functions of points.
    place : Place
    outer : tuple
        Coefficients that are evaluated at the points of the rows.
    scale : float
    """

    derivative: Derivative
    factors: tuple[Numbers | Function, ...] = ()
    place: Place = HERE
    outer: tuple[Numbers | Function, ...] = ()
    scale: float = 1.0

    def times(self, factor: Any) -> Term:
        """Return the term times a number, numbers for each row, or a function of the points."""
        if is_number(factor):
            return replace(self, scale=self.scale * float(factor))
        kept = numbers_or_function("coefficient", factor)
        if self.place == HERE:
            return replace(self, factors=(*self.factors, kept))
        return replace(self, outer=(*self.outer, kept))

    def placed(self, place: Place) -> Term:
        """Return the term at another place."""
        if self.place != HERE:
            raise ValueError(f"an operator can be moved to other points or boxes once, got one at {self.place}")
        return replace(self, place=place)

    @property
    def row_counts(self) -> set[int]:
        """The numbers of rows of its coefficients, directions, points and boxes."""
        counts = [row_count(factor, 1) for factor in (*self.factors, *self.outer)]
        return {count for count in (*counts, self.derivative.n_rows, self.place.n_rows) if count is not None}

    def terms(self, X: Array, names: Sequence[Any] | None) -> Terms:
        """Return the term at the points (n, d) of rows."""
        points, coef = self.place.nodes(X)
        n, q, d = points.shape
        flat = points.reshape(-1, d)
        for factor in self.factors:
            if row_count(factor, 1) is not None:
                coef = coef * at_points("coefficient", factor, X, (n,))[:, None]
            else:
                coef = coef * np.reshape(at_points("coefficient", factor, flat, (n * q,)), (n, q))
        for factor in self.outer:
            coef = coef * at_points("coefficient", factor, X, (n,))[:, None]
        directions = self.derivative.directions(flat, q, names)
        m, order = len(directions), len(directions[0])
        stacked = tuple(np.stack([each[i] for each in directions], axis=1).reshape(-1, d) for i in range(order))
        rows = np.repeat(np.arange(n), q * m)
        return Terms(rows, np.repeat(flat, m, axis=0), self.scale * np.repeat(coef.ravel(), m), stacked)


@dataclass(frozen=True)
class Operator:
    """A linear operator: a sum of values and derivatives with coefficients.

    Operators are made by ``value``, ``partial``, ``laplacian`` and ``along``. They can be added and subtracted, and
    multiplied by numbers, by arrays with one number for each row, and by functions of the points. Equal operators
    compare equal.

    Examples
    --------
    >>> 2 * partial("x1") + laplacian() == laplacian() * 1.0 + partial(1)
    False
    >>> operator = laplacian() + 0.5 * partial("x1")
    >>> operator == laplacian() + partial("x1") / 2
    True
    """

    terms: tuple[Term, ...]

    __array_ufunc__ = None  # arrays leave products to ``__rmul__``

    def __add__(self, other: Any) -> Operator:
        """Return the sum of two operators."""
        return Operator(self.terms + other.terms) if isinstance(other, Operator) else NotImplemented

    def __sub__(self, other: Any) -> Operator:
        """Return the difference of two operators."""
        return self + -other if isinstance(other, Operator) else NotImplemented

    def __neg__(self) -> Operator:
        """Return the operator times -1."""
        return self * -1.0

    def __mul__(self, factor: Any) -> Operator:
        """Return the operator times a number, an array (n,) with one number for each row, or a function of points."""
        if isinstance(factor, Operator):
            return NotImplemented
        return Operator(tuple(term.times(factor) for term in self.terms))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Operator:
        """Return the operator divided by a number or an array (n,)."""
        if isinstance(divisor, Operator) or callable(divisor):
            return NotImplemented
        numbers = as_finite("divisor", divisor)
        if np.any(numbers == 0):
            raise ValueError("an operator cannot be divided by 0")
        return self * (1 / float(numbers) if numbers.ndim == 0 else 1 / numbers)

    def at(self, points: Any) -> Operator:
        """Return the operator at given points instead of the points of the rows.

        Parameters
        ----------
        points : array of shape (d,) or (n, d), or callable
            One point for all rows, one for each row, or a function of the points (n, d) of the rows.

        Examples
        --------
        A function with period 1 along ``x0``, and the difference of its values at pairs of points:

        >>> periodic = value() - value().at(lambda X: X + [1.0, 0.0])
        >>> difference = value().at([[0.0, 0.0], [0.5, 0.5]]) - value().at([[1.0, 0.0], [0.5, 1.0]])
        """
        return self._placed(At(numbers_or_function("points", points)))

    def mean(self, lower: Any, upper: Any, n_nodes: int | None = None) -> Operator:
        """Return the mean over a box, or over one box for each row.

        Parameters
        ----------
        lower, upper : array of shape (d,) or (n, d)
            The corners. Sides of length zero stay fixed: the mean is taken over the other sides.
        n_nodes : int, optional
            Up to three sides, nodes of the Gauss-Legendre rule on each side: 24, 12 or 7 by default. With more sides,
            points of a Sobol sequence: 512 by default.
        """
        return self._box(lower, upper, True, n_nodes)

    def integral(self, lower: Any, upper: Any, n_nodes: int | None = None) -> Operator:
        """Return the integral over a box, or over one box for each row.

        Parameters
        ----------
        lower, upper, n_nodes
            As for ``mean``. The integral is the one over all sides of positive length.

        Examples
        --------
        The flux through the right side of the unit square:

        >>> flux = partial("x0").integral([1.0, 0.0], [1.0, 1.0])
        """
        return self._box(lower, upper, False, n_nodes)

    def equals(self, values: Any, at: Any = None, weight: Any = 1.0) -> Any:
        """Return rows of data for ``fit``: the operator has the given values at the points.

        Parameters
        ----------
        values : number, array of shape (n,) or (n, k), or callable
            The values, or a function of the points. Rows with NaN are unknown and left out.
        at : array or frame of shape (n, d), or (d,), optional
            The points. Operators that are evaluated at points or boxes of their own need none.
        weight : float or array of shape (n,), default 1
            Weights of the rows, in units of the mean weight of the values.

        Returns
        -------
        Rows
        """
        from nurf.functionals._rows import Rows  # which is made of operators

        return Rows(self, values, at, weight)

    def of(self, model: Any, at: Any = None) -> Array:
        """Return the values of the operator for a fitted model or network, of shape (n,) or (n, k).

        Parameters
        ----------
        model : regressor or network
        at : array of shape (n, d) or (d,), optional
            The points, as in ``equals``.
        """
        network = getattr(model, "network_", model)
        names = getattr(model, "feature_names_in_", None)
        X = self.points(at, network.dimension)
        rows = self.rows(X, names, np.zeros((len(X), *network.output_shape)))
        found = rows.applied(network.value, network.gradient, network.hessian)
        return np.asarray(found.reshape(len(X), *network.output_shape))

    def points(self, at: Any, d: int) -> Array:
        """Return the points of the rows, of shape (n, d); one point for each row if the operator needs none."""
        counts = set().union(*(term.row_counts for term in self.terms))
        if at is not None:
            X = np.atleast_2d(as_finite("at", at))
            if X.ndim != 2 or X.shape[1] != d:
                raise ValueError(f"`at` must have shape (n, d) with d = {d}, got {np.shape(at)}")
            counts.add(len(X))
        elif any(term.place.needs_points for term in self.terms):
            raise ValueError("`at` must be the points at which the operator is evaluated, got none")
        if len(counts) > 1:
            raise ValueError(
                "the points, coefficients, directions and boxes of an operator must have the same number of rows, got "
                f"{' and '.join(map(str, sorted(counts)))}"
            )
        return X if at is not None else np.zeros((counts.pop() if counts else 1, d))

    def rows(self, X: Array, names: Sequence[Any] | None, targets: Array) -> LinearRows:
        """Return the operator at the points (n, d) as functionals with the values ``targets``, as one item."""
        none = LinearRows.none(targets.shape, X.shape[1])
        parts = [[part] for part in none.terms]
        for term in self.terms:
            found = term.terms(X, names)
            parts[found.order].append(found)
        joined = tuple(_joined(parts[order]) for order in range(ORDERS))
        return LinearRows(joined, targets, np.zeros(len(X), np.int64))

    def _placed(self, place: Place) -> Operator:
        return Operator(tuple(term.placed(place) for term in self.terms))

    def _box(self, lower: Any, upper: Any, is_mean: bool, n_nodes: int | None) -> Operator:
        if any(row_count(factor, 1) is not None for term in self.terms for factor in term.factors):
            raise ValueError("coefficients inside a box must be numbers or functions of the points, got an array")
        return self._placed(Box(Numbers.of("lower", lower), Numbers.of("upper", upper), is_mean, n_nodes))


def _joined(parts: Sequence[Terms]) -> Terms:
    """Return terms of one order with rows that do not decrease."""
    rows: Index = np.concatenate([part.rows for part in parts])
    directions = tuple(np.concatenate(each) for each in zip(*(part.directions for part in parts), strict=True))
    together = Terms(
        rows, np.concatenate([part.points for part in parts]), np.concatenate([part.coef for part in parts]), directions
    )
    return together[np.argsort(rows, kind="stable")]


def value() -> Operator:
    """Return the operator of the value of the function."""
    return Operator((Term(Value()),))


def partial(*inputs: int | str) -> Operator:
    """Return the derivative with respect to one input, or to two one after the other.

    Parameters
    ----------
    *inputs : int or str
        Numbers of inputs from 0, or their names: columns of ``X`` if it is a frame, else "x0", "x1" and so on.

    Examples
    --------
    >>> partial("x1") == partial("x1"), partial(0, 1) == partial(0, 0)
    (True, False)
    """
    if not 1 <= len(inputs) < ORDERS:
        raise ValueError(f"`inputs` must be one or two inputs, got {len(inputs)}")
    return Operator((Term(Partial(checked_names(inputs))),))


def laplacian(inputs: Sequence[int | str] | None = None) -> Operator:
    """Return the sum of the second derivatives with respect to each input, or to each of some ``inputs``."""
    if inputs is None:
        return Operator((Term(Laplacian()),))
    if isinstance(inputs, str) or len(inputs) == 0 or len(set(inputs)) < len(inputs):
        raise ValueError(f"`inputs` must be different inputs, or None for all, got {inputs!r}")
    return Operator((Term(Laplacian(checked_names(inputs))),))


def along(*directions: Any) -> Operator:
    """Return the derivative along a direction ``v``, ``v.grad f``, or along two one after the other, ``v.hess f.w``.

    Parameters
    ----------
    *directions : array of shape (d,) or (n, d), or callable
        The same direction in all rows, one for each row, or a function of the points. Their lengths count.
    """
    if not 1 <= len(directions) < ORDERS:
        raise ValueError(f"`directions` must be one or two directions, got {len(directions)}")
    vectors = tuple(numbers_or_function("direction", direction) for direction in directions)
    for vector in vectors:
        if isinstance(vector, Numbers) and len(vector.shape) not in (1, 2):
            raise ValueError(f"a direction must have shape (d,) or (n, d), got {vector.shape}")
    return Operator((Term(Along(vectors)),))
