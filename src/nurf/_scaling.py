"""Changes of units of inputs and values, with the chain rule for derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from nurf._types import Array
from nurf.jets import Jet, spans

Kind = Literal["box", "ball"]


@dataclass(frozen=True, eq=False)
class Scaling:
    """An affine change of units ``x -> (x - x_center) / x_scale``, ``y -> (y - y_center) / y_scale``.

    Applied to a jet it carries the derivatives along by the chain rule.
    """

    x_center: Array
    x_scale: Array
    y_center: Array
    y_scale: Array

    @classmethod
    def fit(cls, jet: Jet, kind: Kind | None = "box") -> Scaling:
        """Find the change of units that puts the points into the unit ball and the values at unit variance.

        ``"box"`` maps the smallest box around the points onto the cube of side ``2 / sqrt(d)`` (each input
        has units of its own); ``"ball"`` moves its centre to the origin and divides all inputs by one
        number (they share their units, and distances keep their meaning); ``None`` leaves the inputs alone.
        """
        jet = jet.with_positive_weight()
        low, high = jet.X.min(axis=0), jet.X.max(axis=0)
        center, half = low / 2 + high / 2, high / 2 - low / 2
        if kind is None:
            center, scale = np.zeros_like(center), np.ones_like(half)
        elif kind == "box":
            scale = np.where(half > 0, half, 1.0) * np.sqrt(jet.n_features)
        elif kind == "ball":
            size = half.max()
            relative = (jet.X - center) / (size if size > 0 else 1.0)
            radius = size * np.sqrt((relative**2).sum(axis=1).max())
            scale = np.full_like(half, radius if radius > 0 else 1.0)
        else:
            raise ValueError(f"`scaling` must be 'box', 'ball' or None, got {kind!r}")
        jet = jet.with_values()
        if not len(jet):
            raise ValueError("`y` must be known for one row at least, got NaN only")
        w = jet.weights(0) / jet.weights(0).sum()
        top = np.abs(jet.y).max(axis=0)
        unit = np.where(top > 0, top, 1.0)  # keeps squares of 1e+200 and 1e-200 finite and nonzero
        first = jet.y[0] / unit  # the mean of a constant is then that constant, however many rows there are
        mean = first + np.tensordot(w, jet.y / unit - first, axes=1)
        deviation = np.sqrt(np.tensordot(w, (jet.y / unit - mean) ** 2, axes=1))
        return cls(center, scale, mean * unit, np.where(deviation > 0, deviation, 1.0) * unit)

    def inputs(self, X: Array) -> Array:
        """Scale points."""
        return (X - self.x_center) / self.x_scale

    def __call__(self, jet: Jet) -> Jet:
        """Scale a jet."""
        gradients, hessians, frames = jet.gradients, jet.hessians, jet.frames
        if frames is not None and gradients is not None:
            slopes = np.einsum("n...d,nrd->n...r", gradients, frames) / self.y_scale[..., None]
            frames, gradients = spans(frames / self.x_scale, slopes)
        elif gradients is not None:
            gradients = gradients * self.x_scale / self.y_scale[..., None]
        if hessians is not None:
            hessians = hessians * self.x_scale[:, None] * self.x_scale / self.y_scale[..., None, None]
        return Jet(
            self.inputs(jet.X),
            (jet.y - self.y_center) / self.y_scale,
            gradients,
            hessians,
            jet.sample_weight,
            jet.derivative_weight,
            frames,
        )

    def values_back(self, y: Array) -> Array:
        """Return values to the user's units."""
        return y * self.y_scale + self.y_center

    def gradients_back(self, gradients: Array) -> Array:
        """Return gradients to the user's units."""
        return gradients * self.y_scale[..., None] / self.x_scale

    def hessians_back(self, hessians: Array) -> Array:
        """Return Hessians to the user's units."""
        return hessians * self.y_scale[..., None, None] / self.x_scale[:, None] / self.x_scale
