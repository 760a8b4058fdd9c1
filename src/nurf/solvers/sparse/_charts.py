"""Coordinates for the inner weights: tangents of the sphere, the offset, and optionally the logarithm of the width."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nurf._types import Array, Mask
from nurf.networks import Features, Hyperplanes, normalised


@dataclass(frozen=True)
class Bounds:
    """Bounds of the inner weights: ``|b| <= max_offset``, and widths between ``narrowest`` and ``widest``."""

    max_offset: float
    narrowest: float = 0.0
    widest: float = np.inf


@dataclass(frozen=True, eq=False)
class Chart:
    """Coordinates ``(t, b)`` or ``(t, b, log delta)`` around the neurons of ``features``, ``q`` for each neuron.

    ``t`` (d - 1) are coordinates in the tangent space of the sphere at ``a``, along the columns of an orthonormal
    ``Q``: ``a -> (a + Q t) / |a + Q t|``.
    """

    features: Features
    bounds: Bounds
    widths: bool = False

    @cached_property
    def tangents(self) -> Array:
        """The matrices ``Q``, Householder reflections without their first column, of shape (N, d, d - 1)."""
        a = self.features.hyperplanes.normals
        v = a.copy()
        v[:, 0] += np.where(a[:, 0] >= 0, 1.0, -1.0)
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        return np.asarray(np.eye(a.shape[1])[:, 1:] - 2 * v[:, :, None] * v[:, None, 1:])

    @property
    def n_coordinates(self) -> int:
        """The number ``q`` of coordinates of a neuron."""
        return self.features.hyperplanes.dimension + self.widths

    @cached_property
    def units(self) -> Array:
        """Units of the coordinates: the width for ``t`` and ``b``, 1 for ``log delta``; of shape (N, q)."""
        width = np.broadcast_to(np.asarray(self.features.activation.scale, float), self.features.n_neurons)
        result = np.repeat(width[:, None], self.n_coordinates, axis=1)
        if self.widths:
            result[:, -1] = 1.0
        return result

    def gradients(self, ambient: Array) -> Array:
        """Return derivatives with respect to the coordinates (N, q), given derivatives by ``(a, b, ...)``."""
        d = self.features.hyperplanes.dimension
        along = np.einsum("ndt,nd->nt", self.tangents, ambient[:, :d])
        return np.concatenate([along, ambient[:, d:]], axis=1)

    def hessians(self, ambient: Array, gradients: Array) -> Array:
        """Return second derivatives with respect to the coordinates (N, q, q).

        The curvature of the sphere adds ``-(a.grad)`` to the diagonal.
        """
        planes = self.features.hyperplanes
        d, Q = planes.dimension, self.tangents
        result = np.empty((len(planes), self.n_coordinates, self.n_coordinates))
        result[:, : d - 1, : d - 1] = Q.transpose(0, 2, 1) @ ambient[:, :d, :d] @ Q
        radial = np.einsum("nd,nd->n", planes.normals, gradients[:, :d])
        result[:, : d - 1, : d - 1] -= radial[:, None, None] * np.eye(d - 1)
        result[:, : d - 1, d - 1 :] = Q.transpose(0, 2, 1) @ ambient[:, :d, d:]
        result[:, d - 1 :, : d - 1] = result[:, : d - 1, d - 1 :].transpose(0, 2, 1)
        result[:, d - 1 :, d - 1 :] = ambient[:, d:, d:]
        return result

    def blocked(self, ascent: Array) -> Mask:
        """Return which coordinates (N, q) are at a bound that the direction ``ascent`` (N, q) would violate."""
        result = np.zeros(ascent.shape, dtype=bool)
        offset = self.features.hyperplanes.dimension - 1
        offsets = self.features.hyperplanes.offsets
        result[:, offset] = (np.abs(offsets) >= self.bounds.max_offset * (1 - 1e-12)) & (
            ascent[:, offset] * offsets > 0
        )
        if self.widths:
            width = np.asarray(self.features.activation.width)
            narrow, wide = width <= self.bounds.narrowest * (1 + 1e-12), width >= self.bounds.widest * (1 - 1e-12)
            result[:, -1] = (narrow & (ascent[:, -1] < 0)) | (wide & (ascent[:, -1] > 0))
        return result

    def move(self, step: Array) -> Features:
        """Return the features after a step (N, q), within the bounds."""
        planes, activation = self.features.hyperplanes, self.features.activation
        d = planes.dimension
        normals = normalised(planes.normals + np.einsum("ndt,nt->nd", self.tangents, step[:, : d - 1]))
        offsets = np.clip(planes.offsets + step[:, d - 1], -self.bounds.max_offset, self.bounds.max_offset)
        if self.widths:
            width = np.broadcast_to(activation.width, len(planes))
            target = np.clip(width * np.exp(step[:, -1]), self.bounds.narrowest, self.bounds.widest)
            activation = activation.rescale(target / np.asarray(activation.width))
        return Features(Hyperplanes(normals, offsets), activation, self.features.degree)
