"""What is minimised, and the ranges in which outputs of the same model and of others must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nurf._types import Array, Index, Mask
from nurf._validation import as_floats, is_whole
from nurf.decisions._inputs import input_names
from nurf.decisions._models import whole_inputs, with_draws

STIFF = 10.0  # first factor of squared constraints, in units of the outputs' deviations; it grows tenfold each round
REACHED = 1e-3  # of an output's deviation by which a constraint may be missed


class Range(NamedTuple):
    """The range of an output, by its place among the outputs of all models."""

    place: int
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is minimised, and the ranges of outputs.

    Parameters
    ----------
    output : int
    scale : float
        The standard deviation of the output.
    outputs : array of shape (L,)
        The outputs with a range.
    signs, ends : array of shape (L,)
        The value of such an output times the sign must not be larger than the end.
    scales : array of shape (L,)
        The standard deviations of these outputs.
    """

    output: int
    scale: float
    outputs: Index
    signs: Array
    ends: Array
    scales: Array

    @classmethod
    def of(cls, output: Any, k: int, ranges: Sequence[Range], deviations: Array) -> Wanted:
        """Return the conditions on outputs with standard deviations (K,), of which the first ``k`` are the model's."""
        if not (is_whole(output, 0) and output < k):
            raise ValueError(f"`output` must be a whole number between 0 and {k - 1}, got {output!r}")
        scales = np.where(deviations > 0, deviations, 1.0)
        parts = [(r.place, sign, sign * end) for r in ranges for sign, end in ((-1.0, r.low), (1.0, r.high))]
        parts = [part for part in parts if np.isfinite(part[2])]
        outputs, signs, ends = (np.array([part[i] for part in parts]) for i in range(3))
        outputs = outputs.astype(int)
        return cls(int(output), float(scales[output]), outputs, signs, ends, scales[outputs])

    def excess(self, values: Array) -> Array:
        """Return by how much values (..., k) are out of range, of shape (..., L), in units of the deviations."""
        return np.asarray((self.signs * values[..., self.outputs] - self.ends) / self.scales)

    def penalised(self, values: Array) -> Array:
        """Return the output and squared excesses of values (..., k), of shape (...)."""
        return np.asarray(
            values[..., self.output] / self.scale + STIFF * np.sum(np.maximum(self.excess(values), 0) ** 2, axis=-1)
        )

    def met(self, values: Array) -> Mask:
        """Return whether values (..., k) are in range, of shape (...)."""
        return np.asarray(self.excess(values).max(axis=-1, initial=0.0) <= REACHED)

    def lagrangian(self, values: Array, gradients: Array, multipliers: Array, stiff: float) -> tuple[Array, Array]:
        """Return the augmented Lagrangian (...) and its gradients (..., d), from values (..., k) and gradients."""
        pressed = np.maximum(multipliers + stiff * self.excess(values), 0.0)
        total = values[..., self.output] / self.scale + np.sum(pressed**2, axis=-1) / (2 * stiff)
        slopes = gradients[..., self.output, :] / self.scale
        factors = pressed * self.signs / self.scales
        return total, slopes + np.einsum("...l,...ld->...d", factors, gradients[..., self.outputs, :])


@dataclass(frozen=True, eq=False)
class Joined:
    """Draws of several models as one function of the inputs of the first, with the outputs of all.

    Parameters
    ----------
    draws : tuple of Draws
    places : tuple of array of shape (d_i,)
        The place of each input of a model among the inputs of the first, or -1 if it is fixed.
    values : tuple of array of shape (d_i,)
        The values of fixed inputs.
    """

    draws: tuple[Any, ...]
    places: tuple[Index, ...]
    values: tuple[Array, ...]

    @property
    def fit(self) -> Joined:
        """The fits as one draw."""
        return Joined(tuple(each.fit[[0]] for each in self.draws), self.places, self.values)

    def numbers(self, X: Array) -> list[int]:
        """Return the number of outputs of each model, from its values at points (m, d)."""
        return [each.fit.value(self._inputs(i, X))[0].size for i, each in enumerate(self.draws)]

    def value(self, X: Array) -> Array:
        """Return the values of all draws at points (m, d) or (n, m, d), of shape (n, m, K)."""
        parts = [each.value(self._inputs(i, X)) for i, each in enumerate(self.draws)]
        return np.concatenate([part if part.ndim == 3 else part[..., None] for part in parts], axis=2)

    def gradient(self, X: Array) -> Array:
        """Return the gradients of all draws at the points, of shape (n, m, K, d)."""
        parts = []
        for i, each in enumerate(self.draws):
            slopes = each.gradient(self._inputs(i, X))
            slopes = slopes if slopes.ndim == 4 else slopes[:, :, None]
            free = self.places[i] >= 0
            parts.append(np.zeros((*slopes.shape[:3], X.shape[-1])))
            parts[-1][..., self.places[i][free]] = slopes[..., free]
        return np.concatenate(parts, axis=2)

    def _inputs(self, i: int, X: Array) -> Array:
        """Return the inputs of one of the models at points of the inputs of the first."""
        places = self.places[i]
        return np.where(places >= 0, X[..., places], self.values[i])


def joined(
    model: Any, constraints: Any, at: Array, n_draws: int, rng: np.random.Generator
) -> tuple[Joined, int, list[Range]]:
    """Return draws of a model and of those in its constraints, its number of outputs, and the ranges of outputs.

    The draws are evaluated at points ``at`` (1, d) to count outputs.
    """
    models, given = [model], []
    for key, ends in _pairs(constraints):
        if not is_whole(key, 0):
            models.append(with_draws(key))
        given.append((0 if is_whole(key, 0) else len(models) - 1, key, ends))
    places, values = zip(*(_among(model, other) for other in models), strict=True)
    draws = Joined(tuple(each.draws(n_draws, rng) for each in models), places, values)
    numbers = draws.numbers(at)
    starts, ranges = np.cumsum([0, *numbers]), []
    for which, key, ends in given:
        low, high = _low_and_high(ends, numbers[which] if which else 1)
        if which == 0 and not key < numbers[0]:
            raise ValueError(f"`constraints` must be ranges of outputs 0 to {numbers[0] - 1}, got output {key}")
        first = starts[which] + (0 if which else key)
        ranges += [Range(int(first + i), a, b) for i, (a, b) in enumerate(zip(low, high, strict=True))]
    return draws, numbers[0], ranges


def _pairs(constraints: Any) -> list[tuple[Any, Any]]:
    """Return outputs or models with their ranges."""
    pairs = list(constraints.items()) if isinstance(constraints, Mapping) else list(constraints or ())
    for pair in pairs:
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise ValueError(
                "`constraints` must be pairs of an output, or a fitted model, and its range (low, high), "
                f"or a dict of these, got {pair!r}"
            )
    return [(key, ends) for key, ends in pairs]


def _low_and_high(ends: Any, k: int) -> tuple[Array, Array]:
    """Return both ends of the ranges of ``k`` outputs, infinite for none."""
    if not (isinstance(ends, tuple | list) and len(ends) == 2):
        raise ValueError(f"`constraints` must have ranges (low, high), got {ends!r}")
    found = []
    for end, none in zip(ends, (-np.inf, np.inf), strict=True):
        each = as_floats("constraints", none if end is None else end)
        if each.shape not in ((), (k,)):
            raise ValueError(f"`constraints` must have ends for each of {k} outputs, got {end!r}")
        found.append(np.where(np.isnan(each), none, np.broadcast_to(each, (k,))))
    low, high = found
    if np.any(low > high):
        raise ValueError(f"`constraints` must have low <= high, got {ends!r}")
    return low, high


def _among(model: Any, other: Any) -> tuple[Index, Array]:
    """Return the places of another model's inputs among the inputs of a model, -1 if fixed, and the fixed values."""
    names, own = input_names(model), input_names(other)
    if other is model:
        return np.arange(len(names)), np.full(len(names), np.nan)
    whole, values = whole_inputs(model)
    if not (hasattr(other, "feature_names_in_") and list(own) != list(whole)):
        if len(own) != len(whole):
            raise ValueError(f"`constraints` must have models of the inputs {whole}, got one of {len(own)} inputs")
        own = whole
    unknown = [name for name in own if name not in whole]
    if unknown:
        raise ValueError(f"`constraints` must have models of the inputs {whole}, got one of {unknown}")
    places = np.array([names.index(name) if name in names else -1 for name in own])
    return places, np.array([values[whole.index(name)] for name in own])
