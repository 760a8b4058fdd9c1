"""Rows of data: an operator, points, and its values there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._linear import LinearRows
from nurf._types import Array
from nurf._validation import as_finite_or_nan, as_weights, in_shape, is_number
from nurf.functionals._operators import Operator, value
from nurf.jets import Jet


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of data for ``fit``: an operator has given values at points.

    Parameters
    ----------
    operator : Operator
    values : number, array of shape (n,) or (n, k), or callable
        The values for all outputs, or a function of the points. Rows with NaN are unknown and left out.
    at : array or frame of shape (n, d), or (d,), optional
        The points. Operators that are evaluated at points or boxes of their own need none.
    weight : float or array of shape (n,), default 1
        Weights of the rows, in units of the mean weight of the values. The rows are measured in units in which the
        operator has the size one: see the user guide.
    """

    operator: Operator
    values: Any
    at: Any = None
    weight: Any = 1.0

    def jet(self, d: int, outputs: tuple[int, ...], names: Sequence[Any] | None) -> Jet:
        """Return the rows that are known as a jet of ``d`` inputs with outputs of shape () or (k,)."""
        X = self.operator.points(self.at, d)
        n = len(X)
        targets, weights = self._targets(X, outputs), self._weights(n)
        known = ~np.isnan(targets.reshape(n, -1)).any(axis=1)
        if self.operator == value():
            return Jet(X, targets, sample_weight=weights)[known]
        functionals = self.operator.rows(X, names, targets)
        if self.at is None:
            X = _middles(functionals)
        jet = Jet(X, np.full(targets.shape, np.nan), sample_weight=weights, functionals=functionals)
        return jet[known]

    def _targets(self, X: Array, outputs: tuple[int, ...]) -> Array:
        n = len(X)
        values = as_finite_or_nan("values", self.values(X) if callable(self.values) else self.values)
        if values.ndim == 0 or (n == 1 and values.shape == outputs):
            return np.array(np.broadcast_to(values, (n, *outputs)))
        found = in_shape(values, (n, *outputs))
        if found.shape != (n, *outputs):
            raise ValueError(f"`values` must be a number or have shape {(n, *outputs)}, got {values.shape}")
        unknown = np.isnan(found.reshape(n, -1))
        partly = unknown.any(axis=1) & ~unknown.all(axis=1)
        if partly.any():
            row = int(np.argmax(partly))
            raise ValueError(f"`values` must be known for all outputs of a row or for none, got {found[row]}")
        return found

    def _weights(self, n: int) -> Array:
        weights = as_weights("weight", np.full(n, self.weight) if is_number(self.weight) else self.weight, n)
        if weights is None:
            raise ValueError("`weight` must be a number or one number >= 0 for each row, got None")
        return weights


def _middles(functionals: LinearRows) -> Array:
    """Return the mean of the points of each row, of shape (n, d)."""
    n, d = len(functionals), functionals.points.shape[1]
    sums, counts = np.zeros((n, d)), np.zeros(n)
    for part in functionals.terms:
        sums += part.added(part.points, n)
        counts += np.bincount(part.rows, minlength=n)
    return np.asarray(sums / np.maximum(counts, 1)[:, None])


@dataclass(frozen=True, eq=False)
class RowSet:
    """The argument ``functionals`` of ``fit``, with the names of the inputs.

    Parameters
    ----------
    items : tuple of Rows
    names : sequence or None
        The names of the inputs; None if they have none.
    """

    items: tuple[Rows, ...]
    names: Sequence[Any] | None = None

    @classmethod
    def of(cls, functionals: Any, names: Sequence[Any] | None = None) -> RowSet:
        """Return the rows in an argument; raise an error if it is not a list of rows."""
        items = (functionals,) if isinstance(functionals, Rows) else functionals
        listed = isinstance(items, Sequence) and not isinstance(items, str)
        if not listed or not all(isinstance(item, Rows) for item in items):
            got = type(functionals).__name__
            others = sorted({type(item).__name__ for item in items if not isinstance(item, Rows)}) if listed else []
            raise ValueError(
                "`functionals` must be a list of rows, such as `laplacian().equals(0, at=points)`, got "
                f"{got}{' with ' * bool(others)}{', '.join(others)}"
            )
        return cls(tuple(items), names)

    def jet(self, d: int, outputs: tuple[int, ...]) -> Jet | None:
        """Return all rows as one jet of ``d`` inputs with outputs of shape () or (k,); None if there are none."""
        total: Jet | None = None
        for item in self.items:
            jet = item.jet(d, outputs, self.names)
            total = jet if total is None else total + jet
        return total if total is not None and len(total) else None
