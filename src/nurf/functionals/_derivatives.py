"""Derivatives in operators, as products of directions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from nurf._types import Array
from nurf.functionals._numbers import Function, Numbers, at_points, row_count

Name = int | str
Directions = tuple[Array, ...]  # one array (m, d) for each order


class Derivative(ABC):
    """A derivative of order 0, 1 or 2."""

    @property
    def n_rows(self) -> int | None:
        """The number of rows, if the derivative differs between rows."""
        return None

    @abstractmethod
    def directions(self, X: Array, repeats: int, names: Sequence[Any] | None) -> list[Directions]:
        """Return the directions of the derivatives that are added up.

        Parameters
        ----------
        X : array of shape (m, d)
            The points.
        repeats : int
            The number of points that belong to one row.
        names : sequence or None
            The names of the inputs.
        """


@dataclass(frozen=True)
class Value(Derivative):
    """The function itself."""

    def directions(self, X: Array, repeats: int, names: Sequence[Any] | None) -> list[Directions]:
        """Return no directions."""
        return [()]


@dataclass(frozen=True)
class Partial(Derivative):
    """The derivative with respect to one input, or two one after the other."""

    inputs: tuple[Name, ...]

    def directions(self, X: Array, repeats: int, names: Sequence[Any] | None) -> list[Directions]:
        """Return the axes."""
        return [tuple(_axis(name, X, names) for name in self.inputs)]


@dataclass(frozen=True)
class Laplacian(Derivative):
    """The sum of the second derivatives with respect to some inputs; None for all."""

    inputs: tuple[Name, ...] | None = None

    def directions(self, X: Array, repeats: int, names: Sequence[Any] | None) -> list[Directions]:
        """Return each axis twice."""
        inputs = range(X.shape[1]) if self.inputs is None else self.inputs
        return [(_axis(name, X, names),) * 2 for name in inputs]


@dataclass(frozen=True)
class Along(Derivative):
    """The derivative along one direction, or along two one after the other."""

    vectors: tuple[Numbers | Function, ...]

    @property
    def n_rows(self) -> int | None:
        """The number of rows of the directions."""
        counts = [row_count(vector, 2) for vector in self.vectors]
        return next((count for count in counts if count is not None), None)

    def directions(self, X: Array, repeats: int, names: Sequence[Any] | None) -> list[Directions]:
        """Return the directions."""
        return [tuple(self._vectors(vector, X, repeats) for vector in self.vectors)]

    def _vectors(self, vector: Numbers | Function, X: Array, repeats: int) -> Array:
        if row_count(vector, 2) is None:
            return np.array(at_points("direction", vector, X, X.shape))
        rows = at_points("direction", vector, X, (len(X) // repeats, X.shape[1]))
        return np.repeat(rows, repeats, axis=0)


def _axis(name: Name, X: Array, names: Sequence[Any] | None) -> Array:
    """Return the axis of an input at all points, of shape (m, d)."""
    result = np.zeros(X.shape)
    result[:, place_of(name, X.shape[1], names)] = 1.0
    return result


def place_of(name: Name, d: int, names: Sequence[Any] | None) -> int:
    """Return the column of an input, given by its name or number. Inputs without names are called x0, x1 and so on."""
    known = [f"x{i}" for i in range(d)] if names is None else list(names)
    if name in known:
        return known.index(name)
    if isinstance(name, Integral) and 0 <= int(name) < d:
        return int(name)
    raise ValueError(f"an input must be one of {known} or a number from 0 to {d - 1}, got {name!r}")


def checked_names(inputs: Sequence[Any]) -> tuple[Name, ...]:
    """Return names or numbers of inputs unchanged; raise an error for other types."""
    for name in inputs:
        whole = isinstance(name, Integral) and not isinstance(name, bool) and int(name) >= 0
        if not (whole or isinstance(name, str)):
            raise ValueError(f"an input must be a name or a whole number >= 0, got {name!r}")
    return tuple(name if isinstance(name, str) else int(name) for name in inputs)
