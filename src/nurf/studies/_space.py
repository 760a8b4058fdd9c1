"""The inputs of a study: varying ones with their values, and fixed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import norm, rv_continuous, rv_discrete, uniform

from nurf._types import Array, Mask
from nurf._validation import as_finite, is_number
from nurf.decisions import Inputs
from nurf.studies._constraints import Constraints

FAR = 1e-3  # probability beyond which an input without an end is not searched
INNER = 2.0**-40  # distance from the ends of the unit interval, which have no normal score
DECADES = 10.0  # quantiles of positive inputs with a larger ratio are modelled by their logarithms
LOGARITHMIC = ("loguniform", "reciprocal", "lognorm")
SAME = 1e-9  # of the spread of an input: runs that are closer than that are the same


@dataclass(frozen=True, eq=False)
class Space:
    """The inputs of a study.

    Parameters
    ----------
    names : tuple of str
        All inputs, in the order of the user.
    free : Inputs
        The distributions of the inputs that vary.
    fixed : dict of str to float
        The values of the others.
    constraints : Constraints
        Linear inequalities between the inputs.
    """

    names: tuple[str, ...]
    free: Inputs
    fixed: dict[str, float]
    constraints: Constraints

    @classmethod
    def of(cls, inputs: Any, constraints: Any = (), correlation: Any = None) -> Space:
        """Return the space of inputs by name.

        Parameters
        ----------
        inputs : dict
            For each input a distribution of scipy.stats with its parameters, ``(low, high)`` for values in between, a
            list of levels, or a number if it does not vary.
        constraints : sequence of str
            Such as ``"r + 2 * L <= 5"``.
        correlation : array, optional
            Correlations of the normal scores of the inputs that vary.
        """
        if not (isinstance(inputs, Mapping) and inputs and all(isinstance(name, str) and name for name in inputs)):
            raise ValueError(f"`inputs` must be a dict of names and distributions, got {inputs!r}")
        fixed = {name: float(given) for name, given in inputs.items() if is_number(given)}
        marginals = {name: _marginal(name, given) for name, given in inputs.items() if name not in fixed}
        if not marginals:
            raise ValueError("`inputs` must have at least one input that varies, got numbers only")
        limits = Constraints.of(constraints, list(marginals), fixed)
        free = Inputs.among(list(marginals), list(marginals.values()), correlation)
        return cls(tuple(inputs), free, fixed, limits)

    @property
    def dimension(self) -> int:
        """The number of inputs that vary."""
        return self.free.dimension

    @cached_property
    def discrete(self) -> Mask:
        """Whether inputs that vary have levels, of shape (d,)."""
        return np.array([not hasattr(each, "pdf") for each in self.free.marginals])

    @cached_property
    def logarithmic(self) -> tuple[str | None, ...]:
        """The transformations of the inputs in the model: "log" or None for each input."""
        return tuple("log" if _over_decades(each) else None for each in self.free.marginals)

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """The ends of the searched part of the unit cube, each of shape (d,): 0 and 1 where the inputs have ends."""
        low, high = np.array([each.support() for each in self.free.marginals], float).T
        return np.where(np.isfinite(low), 0.0, FAR), np.where(np.isfinite(high), 1.0, 1 - FAR)

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """The ends of the searched ranges of the inputs, each of shape (d,)."""
        low, high = self.ends
        columns = [(each.ppf(a), each.ppf(b)) for each, a, b in zip(self.free.marginals, low, high, strict=True)]
        found = np.array(columns, float).T
        found[0] = np.where(self.discrete & (low == 0), [each.support()[0] for each in self.free.marginals], found[0])
        return found[0], found[1]

    @cached_property
    def spread(self) -> Array:
        """The standard deviations of the inputs, of shape (d,); if infinite, estimated from the central 80%."""
        found = np.array([each.std() for each in self.free.marginals], float)
        width = np.array([float(each.ppf(0.9) - each.ppf(0.1)) for each in self.free.marginals]) / 2.56
        return np.where(np.isfinite(found) & (found > 0), found, np.where(width > 0, width, 1.0))

    def from_unit(self, U: Array) -> Array:
        """Return the inputs (..., d) of independent uniform variables (..., d)."""
        if self.is_correlated:
            return self.from_normal(norm.ppf(np.clip(U, INNER, 1 - INNER)))
        columns = [self._quantile(j, U[..., j]) for j in range(self.dimension)]
        return np.stack(columns, axis=-1)

    def from_normal(self, Z: Array) -> Array:
        """Return the inputs (..., d) of independent standard normal variables (..., d)."""
        return self.free.from_normal(Z)

    def to_unit(self, X: Array) -> Array:
        """Return independent uniform variables (..., d) that give the inputs (..., d), or the middle of a level.

        Values beyond the ends become the ends.
        """
        columns = []
        for j, marginal in enumerate(self.free.marginals):
            u = marginal.cdf(X[..., j])
            columns.append(u - marginal.pmf(X[..., j]) / 2 if self.discrete[j] else u)
        U: Array = np.clip(np.stack(columns, axis=-1), 0.0, 1.0)
        if not self.is_correlated:
            return U
        scores = norm.ppf(np.clip(U, INNER, 1 - INNER))
        return np.asarray(norm.cdf(np.linalg.solve(self.free.factor, scores[..., None])[..., 0]))

    def to_normal(self, X: Array) -> Array:
        """Return independent standard normal variables (..., d) that give continuous inputs (..., d)."""
        columns = []
        for j, marginal in enumerate(self.free.marginals):
            x = X[..., j]
            columns.append(np.where(x > marginal.median(), norm.isf(marginal.sf(x)), norm.ppf(marginal.cdf(x))))
        scores = np.stack(columns, axis=-1)
        return np.asarray(np.linalg.solve(self.free.factor, scores[..., None])[..., 0])

    @cached_property
    def is_correlated(self) -> bool:
        """Whether the inputs depend on each other."""
        return not np.array_equal(self.free.factor, np.eye(self.dimension))

    def allowed(self, X: Array) -> Mask:
        """Return a mask (m,) of the inputs (m, d) that meet the constraints."""
        return self.constraints.met(X)

    def contains(self, X: Array) -> Mask:
        """Return a mask (m,) of the inputs (m, d) between the ends, at levels, and within the constraints."""
        return self.allowed(X) & self._in_range(X).all(axis=1)

    def outside(self, x: Array) -> str:
        """Return a text that says why a point (d,) is no point of the space."""
        for j in np.flatnonzero(~self._in_range(x[None])[0]):
            low, high = self.free.marginals[j].support()
            kind = "a level" if self.discrete[j] and low <= x[j] <= high else f"from {low:g} to {high:g}"
            return f"{self.free.names[j]} must be {kind}, got {x[j]:g}"
        return f"the constraints {list(self.constraints.texts)} must be met"

    def _in_range(self, X: Array) -> Mask:
        """Return a mask (m, d) of the inputs that are between their ends, or at a level."""
        found = np.empty(X.shape, bool)
        for j, (marginal, x, room) in enumerate(zip(self.free.marginals, X.T, self._room(X).T, strict=True)):
            if self.discrete[j]:
                nearest = marginal.ppf(np.clip(marginal.cdf(x + room), 0.0, 1.0))
                found[:, j] = np.abs(nearest - x) <= room
            else:
                low, high = marginal.support()
                found[:, j] = (low - room <= x) & (x <= high + room)
        return found

    def _room(self, X: Array) -> Array:
        """Return the differences of inputs (m, d) that do not matter, of the same shape."""
        return np.asarray(SAME * (self.spread + np.abs(X)))

    def frame(self, X: Array, **columns: Any) -> Any:
        """Return inputs (m, d) with the fixed ones and further columns: a data frame, or an array without pandas."""
        every = [self.fixed.get(name) for name in self.names]
        places = iter(range(self.dimension))
        full = np.column_stack([X[:, next(places)] if v is None else np.full(len(X), v) for v in every])
        try:
            from pandas import DataFrame
        except ModuleNotFoundError:
            return full
        return DataFrame(full, columns=list(self.names)).assign(**columns)

    def point(self, x: Sequence[float]) -> dict[str, float]:
        """Return all inputs of one point by name."""
        free = dict(zip(self.free.names, map(float, x), strict=True))
        return {name: free.get(name, self.fixed.get(name, np.nan)) for name in self.names}

    def named(self, X: Array) -> Any:
        """Return varying inputs (m, d) with their names: a data frame, or an array without pandas."""
        try:
            from pandas import DataFrame
        except ModuleNotFoundError:
            return X
        return DataFrame(X, columns=list(self.free.names))

    def unused(self, name: str) -> str:
        """Return a name for a column beside the inputs, with underscores added if an input has the name."""
        while name in self.names:
            name += "_"
        return name

    def points(self, X: Any) -> Array:
        """Return the varying inputs (m, d) of a frame with their names, or of an array of all or of varying inputs."""
        if isinstance(X, Mapping):
            X = {name: np.atleast_1d(np.asarray(column)) for name, column in X.items()}
            columns = X
        elif hasattr(X, "columns"):
            columns = {name: X[name] for name in X.columns}
        else:
            return self._from_array(as_finite("X", X))
        missing = [name for name in self.free.names if name not in columns]
        if missing:
            raise ValueError(f"`X` must have the columns {self.free.names}, got none for {missing}")
        for name in self.fixed:
            if name in columns and not np.allclose(np.asarray(columns[name], float), self.fixed[name]):
                raise ValueError(f"`X` must have {name} = {self.fixed[name]}, which is fixed in this study")
        return as_finite("X", np.column_stack([columns[name] for name in self.free.names]))

    def _from_array(self, array: Array) -> Array:
        array = np.atleast_2d(array)
        if array.ndim == 2 and array.shape[1] == self.dimension:
            return array
        if array.ndim != 2 or array.shape[1] != len(self.names):
            raise ValueError(f"`X` must be points of the {len(self.names)} inputs {self.names}, got {array.shape}")
        return array[:, [name not in self.fixed for name in self.names]]

    def same(self, X: Array, others: Array) -> Mask:
        """Return a mask (m, p) of the pairs of equal inputs, the rows of (m, d) and of (p, d)."""
        return np.asarray(np.all(np.abs(X[:, None] - others) <= self._room(others), axis=-1))

    def _quantile(self, j: int, u: Array) -> Array:
        low, _ = self.free.marginals[j].support()
        found = np.asarray(self.free.marginals[j].ppf(u), float)
        return np.where((u <= 0) & np.isfinite(low), low, found)


def _over_decades(marginal: Any) -> bool:
    """Return whether an input is positive and spread over its logarithm."""
    if getattr(getattr(marginal, "dist", None), "name", "") not in LOGARITHMIC:
        return False
    low, high = marginal.ppf([FAR, 1 - FAR])
    return bool(marginal.support()[0] >= 0 and low > 0 and high > DECADES * low)


def _marginal(name: str, given: Any) -> Any:
    """Return the distribution of an input, from an argument of a user."""
    if isinstance(given, rv_continuous | rv_discrete):
        if getattr(given, "numargs", 0):
            raise ValueError(
                f"`inputs` must have distributions with their parameters, got none of {given.name} for {name}"
            )
        given = given()
    if all(hasattr(given, method) for method in ("ppf", "cdf", "support", "std")) and not isinstance(given, type):
        if not np.all(np.isfinite(given.ppf([0.01, 0.99]))):
            raise ValueError(f"`inputs` must have distributions with valid parameters, got NaN quantiles for {name}")
        return given
    if isinstance(given, tuple) and len(given) == 2 and all(map(is_number, given)):
        low, high = map(float, given)
        if not low < high:
            raise ValueError(f"`inputs` must have low < high, got {given} for {name}")
        return uniform(low, high - low)
    if isinstance(given, Sequence | np.ndarray | set | range) and not isinstance(given, str | tuple):
        return levels(name, sorted(given) if isinstance(given, set) else list(given))
    raise ValueError(
        f"`inputs` must be distributions of scipy.stats with their parameters, (low, high), lists of levels or "
        f"numbers, got {given!r} for {name}"
    )


def levels(name: str, values: Sequence[Any]) -> Any:
    """Return the distribution of equally probable levels."""
    found = np.unique(as_finite(f"levels of {name}", list(values)).ravel())
    if len(found) < 2:
        raise ValueError(
            f"`inputs` must have at least two levels, got {list(values)} for {name}: give a number instead"
        )
    frozen = rv_discrete(name="levels", values=(found, np.full(len(found), 1 / len(found))))()
    return frozen
