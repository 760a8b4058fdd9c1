"""Limits of outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._types import Array, Index, Mask
from nurf._validation import as_finite_or_nan


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of outputs, which values exceed if ``sign (f_o - threshold) > 0``.

    Parameters
    ----------
    shape : () or (k,)
        The shape of the outputs.
    outputs, signs, thresholds : array of shape (L,)
    every : bool
        Whether all limits must be exceeded.
    """

    shape: tuple[int, ...]
    outputs: Index
    signs: Array
    thresholds: Array
    every: bool

    @classmethod
    def of(cls, shape: tuple[int, ...], above: Any, below: Any, combine: str) -> Limits:
        """Return the limits of outputs of the given shape."""
        k, parts = int(np.prod(shape, dtype=int)), []
        for name, sign, given in ("above", 1.0, above), ("below", -1.0, below):
            if given is None:
                continue
            values = np.atleast_1d(as_finite_or_nan(name, given))
            if values.shape != (k,):
                raise ValueError(f"`{name}` must be a number for each of {k} outputs, got shape {np.shape(given)}")
            parts += [(o, sign, value) for o, value in enumerate(values) if not np.isnan(value)]
        if not parts:
            raise ValueError("`above` or `below` must be given, got no limit")
        outputs, signs, thresholds = zip(*parts, strict=True)
        _require_room(parts, combine)
        return cls(shape, np.array(outputs), np.array(signs), np.array(thresholds), combine == "all")

    @property
    def groups(self) -> list[Limits]:
        """The groups of limits that must be exceeded together."""
        if self.every:
            return [self]
        rows = [slice(i, i + 1) for i in range(len(self.outputs))]
        return [Limits(self.shape, self.outputs[r], self.signs[r], self.thresholds[r], True) for r in rows]

    def margins(self, values: Array) -> Array:
        """Return the distances of values (...) or (..., k) from the limits, negative if exceeded, of shape (..., L)."""
        columns = values if self.shape else values[..., None]
        return np.asarray(self.signs * (self.thresholds - columns[..., self.outputs]))

    def deviations(self, values: Array) -> Array:
        """Return the standard deviations of the outputs with limits, of shape (L,), from values (m,) or (m, k)."""
        scales = values.reshape(len(values), -1).std(axis=0)[self.outputs]
        return np.where(scales > 0, scales, 1.0)

    def margin(self, values: Array, scales: Array) -> Array:
        """Return one number for each value, (m,) or (m, k), which is negative if the limits are exceeded.

        The number is the smallest margin in units of the scales (L,), or the largest if all limits must be exceeded.
        """
        margins = self.margins(values) / scales
        return np.asarray(margins.max(axis=-1) if self.every else margins.min(axis=-1))

    def slopes(self, gradients: Array) -> Array:
        """Return the gradients of the margins, of shape (..., L, d), from gradients (..., d) or (..., k, d)."""
        rows = gradients if self.shape else gradients[..., None, :]
        return np.asarray(-self.signs[:, None] * rows[..., self.outputs, :])

    def __str__(self) -> str:
        """Return the limits in words."""
        sides = ["above" if sign > 0 else "below" for sign in self.signs]
        where = [f" of output {o}" if self.shape else "" for o in self.outputs]
        parts = [f"{side} {t:g}{o}" for side, t, o in zip(sides, self.thresholds, where, strict=True)]
        return (" and " if self.every else " or ").join(parts)

    def exceeded(self, values: Array) -> Mask:
        """Return whether values (...) or (..., k) exceed any limit, or all of them."""
        failed = self.margins(values) < 0
        return np.asarray(failed.all(axis=-1) if self.every else failed.any(axis=-1))


def _require_room(limits: list[tuple[int, float, float]], combine: str) -> None:
    """Raise a ``ValueError`` if any value of an output exceeds one of its limits."""
    lower = {o: value for o, sign, value in limits if sign < 0}
    for o, sign, value in limits:
        if sign > 0 and combine == "any" and value < lower.get(o, -np.inf):
            raise ValueError(
                f"`below` must not be larger than `above`, got above={value:g} and below={lower[o]:g} for output {o}: "
                "any value exceeds one of them"
            )
