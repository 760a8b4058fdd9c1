"""The space in which an optimum is searched: a box, and levels of discrete inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._types import Array, Index, Mask
from nurf._validation import as_finite, as_floats, is_whole
from nurf.decisions._inputs import data_box
from nurf.decisions._models import whole_inputs


@dataclass(frozen=True, eq=False)
class Space:
    """A box, mapped to the unit cube, with levels for discrete inputs.

    Parameters
    ----------
    low, high : array of shape (d,)
    levels : dict of array
        The values of inputs that take only some, rising, by their place.
    """

    low: Array
    high: Array
    levels: dict[int, Array]

    @classmethod
    def of(cls, model: Any, names: tuple[str, ...], bounds: Any, levels: Any) -> Space:
        """Return the space within bounds, with the levels of some inputs."""
        own = _levels(model, names, levels)
        ends = _ends(model, names, bounds, own)
        for j, values in own.items():
            if values[0] < ends[j, 0] or values[-1] > ends[j, 1]:
                raise ValueError(
                    f"`levels` must be within the bounds, got {values.tolist()} for {names[j]} with {ends[j].tolist()}"
                )
            ends[j] = values[0], values[-1]
        return cls(ends[:, 0], ends[:, 1], own)

    @property
    def widths(self) -> Array:
        """The widths of the box, of shape (d,); one for an input with a single level."""
        return np.where(self.high > self.low, self.high - self.low, 1.0)

    @property
    def moves(self) -> Mask:
        """A mask of the continuous inputs, of shape (d,)."""
        return ~np.isin(np.arange(len(self.low)), list(self.levels))

    @property
    def n_exchanges(self) -> int:
        """The number of points that differ from a point by the level of one input."""
        return sum(len(values) - 1 for values in self.levels.values())

    def points(self, U: Array) -> Array:
        """Return the points (..., d) for points of the unit cube; levels are exact."""
        X = self.low + (self.high - self.low) * U
        for j, values in self.levels.items():
            X[..., j] = values[np.abs(X[..., j, None] - values).argmin(axis=-1)]
        return X

    def spread(self, U: Array) -> Array:
        """Return points of the unit cube at levels, from points that are uniform in it: all levels are as frequent."""
        U = U.copy()
        for j, values in self.levels.items():
            U[..., j] = self._scaled(j)[np.minimum((U[..., j] * len(values)).astype(int), len(values) - 1)]
        return U

    def exchanged(self, U: Array) -> Array:
        """Return points (p, a, d) that differ from points (p, d) of the unit cube by the level of one input."""
        parts = [U[:, None][:, :0]]
        for j, values in self.levels.items():
            places = np.abs(U[:, j, None] - self._scaled(j)).argmin(axis=1)
            other = np.arange(len(values) - 1) + (np.arange(len(values) - 1) >= places[:, None])
            moved = np.repeat(U[:, None], len(values) - 1, axis=1)
            moved[..., j] = self._scaled(j)[other]
            parts.append(moved)
        return np.concatenate(parts, axis=1)

    def ends(self, U: Array) -> Array:
        """Return the ends between which points (..., d) of the unit cube move, of shape (..., d, 2)."""
        fixed = np.stack([U, U], axis=-1)
        return np.where(self.moves[:, None], np.array([0.0, 1.0]), fixed)

    def _scaled(self, j: int) -> Array:
        """Return the levels of an input in the unit cube."""
        return np.asarray((self.levels[j] - self.low[j]) / self.widths[j])


def different(points: Array, values: Array, apart: float, most: int) -> Index:
    """Return the places of points (p, d) that are apart from each other, the smallest value first."""
    kept: list[int] = []
    for i in np.argsort(values, kind="stable"):
        if all(np.abs(points[i] - points[j]).max() > apart for j in kept):
            kept.append(int(i))
    return np.array(kept[:most], int)


def _levels(model: Any, names: tuple[str, ...], levels: Any) -> dict[int, Array]:
    """Return the levels by the places of their inputs."""
    if levels is None:
        return {}
    if not isinstance(levels, Mapping):
        raise ValueError(f"`levels` must be a dict of values by the name or place of an input, got {levels!r}")
    whole = whole_inputs(model)[0]
    found: dict[int, Array] = {}
    for key, given in levels.items():
        name = whole[key] if is_whole(key, 0) and key < len(whole) else key
        if name not in names:
            reason = "which is fixed" if name in whole else "which is none of them"
            raise ValueError(f"`levels` must be of the inputs {list(names)}, or of their places, got {key!r}, {reason}")
        values = np.unique(as_finite("levels", given))
        if np.ndim(given) != 1 or not len(values):
            raise ValueError(f"`levels` must be a list of numbers for each input, got {given!r} for {name}")
        found[names.index(name)] = values
    return found


def _ends(model: Any, names: tuple[str, ...], bounds: Any, levels: dict[int, Array]) -> Array:
    """Return the ends of the bounds, of shape (d, 2)."""
    if bounds is None:
        bounds = [None if j in levels else end for j, end in enumerate(np.transpose(data_box(model)))]
        if not np.all(np.isfinite([end for end in bounds if end is not None])):
            raise ValueError("`bounds` must be given: the box of the data is not known behind these transformers")
    elif isinstance(bounds, Mapping):
        unknown = [n for n in bounds if n not in names]
        missing = [n for j, n in enumerate(names) if n not in bounds and j not in levels]
        if unknown or missing:
            raise ValueError(f"`bounds` must have the names {list(names)}, got unknown {unknown} and missing {missing}")
        bounds = [bounds.get(name) for name in names]
    if len(bounds) != len(names):
        raise ValueError(f"`bounds` must be (low, high) for each of {len(names)} inputs, got {len(bounds)}")
    given = [(-np.inf, np.inf) if end is None and j in levels else end for j, end in enumerate(bounds)]
    try:
        ends = as_floats("bounds", given)
    except ValueError as error:
        raise ValueError(f"`bounds` must be (low, high) for each of {list(names)}, got {bounds!r}") from error
    if ends.shape != (len(names), 2):
        raise ValueError(f"`bounds` must be (low, high) for each of {len(names)} inputs, got shape {ends.shape}")
    for j, (low, high) in enumerate(ends):
        sound = low <= high if j in levels else np.isfinite([low, high]).all() and low < high
        if not sound:
            raise ValueError(f"`bounds` must be finite with low < high, got {(low, high)} for {names[j]}")
    return ends
