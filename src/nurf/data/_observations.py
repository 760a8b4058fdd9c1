"""The data arguments of ``fit`` as one object."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from nurf._scaling import require_moderate
from nurf._validation import as_finite, as_floats, is_number
from nurf.data._arrays import ArrayStream, is_on_disk
from nurf.data._dask import DaskStream, is_dask
from nurf.data._frames import column_names, inputs_by_name, partials_by_name, rows_by_index
from nurf.data._reading import ARRAYS, in_memory
from nurf.data._rows import canonical, relative_weights
from nurf.data._streams import Block, Stream
from nurf.functionals import RowSet
from nurf.jets import Jet, projections

KINDS = ("gradients", "directions", "derivative_weight")  # arguments whose rows belong to `gradients_at`, if given


@dataclass(frozen=True, eq=False)
class Observations:
    """The data arguments of ``fit``, unchanged. See ``fit`` for their shapes."""

    X: Any
    y: Any = None
    gradients: Any = None
    gradients_at: Any = None
    directions: Any = None
    hessians: Any = None
    sample_weight: Any = None
    derivative_weight: Any = None
    functionals: Any = None
    validation: Any = None

    @property
    def arguments(self) -> dict[str, Any]:
        """All arguments by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def given(self) -> tuple[str, ...]:
        """The sorted names of the arguments that are given in addition to ``X`` and ``y``."""
        return tuple(sorted(set(self.block().data) - {"X", "y"}))

    @property
    def is_piecewise(self) -> bool:
        """Whether any of the arrays is not in memory."""
        return any(is_dask(array) or is_on_disk(array) for array in self.arguments.values())

    def in_memory(self) -> Observations:
        """Return the observations with all arrays read or computed."""
        return Observations(**{name: in_memory(value) for name, value in self.arguments.items()})

    def matched(self) -> Observations:
        """Return the observations with rows and columns of data frames in the order of ``X``; arrays are unchanged."""
        inputs = column_names(self.X)
        if inputs is not None and len(set(inputs)) < len(inputs):
            raise ValueError(f"`X` must have columns with different names, got {inputs}")
        points = self.X if self.gradients_at is None else self.gradients_at
        rows = dict.fromkeys(("y", "hessians", "sample_weight"), self.X) | dict.fromkeys(KINDS, points)
        found = {name: rows_by_index(name, getattr(self, name), owner) for name, owner in rows.items()}
        if self.directions is None:
            found["gradients"] = partials_by_name(found["gradients"], inputs)
        found["directions"] = inputs_by_name("directions", found["directions"], inputs)
        found["gradients_at"] = inputs_by_name("gradients_at", self.gradients_at, inputs)
        if self.functionals is not None:
            items = RowSet.of(self.functionals).items
            items = tuple(replace(item, at=inputs_by_name("at", item.at, inputs)) for item in items)
            found["functionals"] = RowSet(items, inputs)
        validation = self.validation
        if isinstance(validation, tuple) and len(validation) == 2:
            points, values = validation
            validation = inputs_by_name("validation", points, inputs), rows_by_index("validation", values, points)
        return replace(self, **found, validation=validation)

    def jet(self) -> Jet:
        """Return all data as one jet, with rows in an order that does not depend on their order in the data.

        ``X`` and ``y`` must be validated arrays. At points where only derivatives are known, the value is NaN.
        """
        jet = self._with_functionals(self._assembled())
        require_moderate(jet)
        return canonical(jet)

    def _with_functionals(self, jet: Jet) -> Jet:
        """Return a jet with the rows of functionals behind its own, without rows of which nothing is known."""
        if self.functionals is None:
            return jet
        known = jet.has_value | jet.has_derivative(1) | jet.has_derivative(2)
        rows = self.functionals.jet(jet.n_features, jet.y.shape[1:])
        return jet[known] if rows is None else jet[known] + rows

    def _assembled(self) -> Jet:
        X, gradients = self.X, self.gradients
        for name in ("gradients_at", "directions"):
            if getattr(self, name) is not None and gradients is None:
                raise ValueError(f"`{name}` needs `gradients`, got none")
        if self.derivative_weight is not None and gradients is None and self.hessians is None:
            raise ValueError("`derivative_weight` needs `gradients` or `hessians`, got none")
        points = X if self.gradients_at is None else as_finite("gradients_at", self.gradients_at)
        if points.ndim != 2 or points.shape[1] != X.shape[1]:
            raise ValueError(f"`gradients_at` must have shape (m, d) with d = {X.shape[1]}, got {points.shape}")
        weights, slope_weights = relative_weights(self.sample_weight, len(X), self.derivative_weight, len(points))
        unknown = np.full((len(points), *self.y.shape[1:]), np.nan)
        frames = None
        if self.directions is not None:
            frames, gradients = projections("gradients", gradients, self.directions, points, unknown)
        if self.gradients_at is None:
            return Jet(X, self.y, gradients, self.hessians, weights, slope_weights, frames)
        ones = np.ones(len(points))
        at_values = Jet(X, self.y, None, self.hessians, weights)
        return at_values + Jet(points, unknown, gradients, None, ones, slope_weights, frames)

    def block(self) -> Block:
        """Return all rows as one block, with the arguments that are given."""
        return Block(0, {name: value for name, value in self.arguments.items() if value is not None})

    def stream(self, block_rows: int | None) -> Stream:
        """Return the rows of arrays of any kind as a stream of blocks.

        If a weight is a number, it is the weight of all rows. ``gradients_at`` and ``validation`` need arrays in
        memory.
        """
        n, given = self.X.shape[0], {name: value for name, value in self.block().data.items() if name in ARRAYS}
        given = {name: np.broadcast_to(value, n) if is_number(value) else value for name, value in given.items()}
        for name, value in given.items():
            if hasattr(value, "iloc") or not hasattr(value, "shape"):
                given[name] = as_floats(name, value)
        if any(is_dask(array) for array in given.values()):
            return DaskStream(given)
        return ArrayStream(given, block_rows)
