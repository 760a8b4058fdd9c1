"""Moments ``p(omega) = <r, sigma(omega)>`` of a residual against neurons, and their derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nurf._tensors import power_bends, power_slopes, powers
from nurf._types import Array, Mask
from nurf.networks import Features


@dataclass(frozen=True, eq=False)
class Moments:
    """``p(omega)`` at ``N`` neurons, and its derivatives with respect to ``omega = (a, b)`` and ``log delta``.

    With the tensors ``T_k`` of the residual of order q, ``p`` is a sum of ``sigma^(q)(omega.z_k) <T_k, a^q>`` over rows
    and orders. Each derivative of ``sigma^(q)`` gives a factor ``z_k = (x_k, 1)``, ``a^q`` is a polynomial in ``a``,
    and ``d/d log delta sigma^(j) = (s - 1 - j) sigma^(j) - (omega.z) sigma^(j+1)`` for the width ``delta``.

    Attributes
    ----------
    features : Features
        The neurons.
    sums : dict of lists of arrays of shapes (N, k, C), (N, k, C, D), (N, k, C, D, D) with D = d + 1
        ``sum_k sigma^(q+j)(omega.z_k) T_k z_k^j`` for each order q and j = 0, 1, 2, up to the needed derivative.
    """

    features: Features
    sums: dict[int, list[Array]]

    @cached_property
    def values(self) -> Array:
        """The moments ``p``, of shape (N, k)."""
        a = self.features.hyperplanes.normals
        return np.asarray(sum(np.einsum("nkc,nc->nk", m[0], powers(a, q)) for q, m in self.sums.items()))

    def gradients(self, directions: Array, widths: bool = False) -> Array:
        """Return the derivatives of ``v.p`` for ``v = directions`` (N, k), of shape (N, D), or (N, D + 1) with widths.

        The last column is the derivative with respect to ``log delta``.
        """
        a, omega, s = self._neurons
        N, d = a.shape
        result = np.zeros((N, d + 2))
        for q, (m0, m1, *_) in self._along(directions):
            power = powers(a, q)
            result[:, :-1] += np.einsum("ncj,nc->nj", m1, power)
            if q:
                result[:, :d] += np.einsum("nc,nci->ni", m0, power_slopes(a, q))
            if widths:
                result[:, -1] += np.einsum("nc,nc->n", (s - 1 - q) * m0 - _dot(m1, omega), power)
        return result if widths else result[:, :-1]

    def hessians(self, directions: Array, widths: bool = False) -> Array:
        """Return the second derivatives of ``v.p``, of shape (N, D, D), or (N, D + 1, D + 1) with widths."""
        a, omega, s = self._neurons
        N, d = a.shape
        result = np.zeros((N, d + 2, d + 2))
        for q, (m0, m1, m2) in self._along(directions):
            power, slopes = powers(a, q), power_slopes(a, q)
            result[:, :-1, :-1] += np.einsum("ncij,nc->nij", m2, power)
            if q:
                crossed = np.einsum("ncj,nci->nij", m1, slopes)
                result[:, :d, :-1] += crossed
                result[:, :-1, :d] += crossed.transpose(0, 2, 1)
                result[:, :d, :d] += np.einsum("nc,cij->nij", m0, power_bends(d, q))
            if widths:
                stretched = (s - 1 - q) * m0 - _dot(m1, omega)
                stretched_slopes = (s - 2 - q) * m1 - _dot(m2, omega)
                mixed = np.einsum("ncj,nc->nj", stretched_slopes, power)
                mixed[:, :d] += np.einsum("nc,nci->ni", stretched, slopes)
                result[:, :-1, -1] += mixed
                result[:, -1, :-1] += mixed
                twice = (s - 1 - q) * stretched - _dot(stretched_slopes, omega)
                result[:, -1, -1] += np.einsum("nc,nc->n", twice, power)
        return result if widths else result[:, :-1, :-1]

    def where(self, mask: Mask, other: Moments) -> Moments:
        """Return moments with the neurons of ``self`` where ``mask`` is true, and of ``other`` elsewhere."""
        count = len(mask)
        features = (self.features + other.features)[np.arange(count) + np.where(mask, 0, count)]
        sums = {
            q: [
                np.where(mask.reshape(-1, *[1] * (mine.ndim - 1)), mine, others)
                for mine, others in zip(self.sums[q], other.sums[q], strict=True)
            ]
            for q in self.sums
        }
        return Moments(features, sums)

    def _along(self, directions: Array) -> Iterator[tuple[int, list[Array]]]:
        """Yield each order, and its sums contracted with ``directions`` over outputs, of shapes (N, C, ...)."""
        for q, sums in self.sums.items():
            yield q, [np.einsum("nk...,nk->n...", m, directions) for m in sums]

    @property
    def _neurons(self) -> tuple[Array, Array, int]:
        """``a`` (N, d), ``omega`` (N, D) and the order of the activation."""
        planes = self.features.hyperplanes
        return planes.normals, np.column_stack([planes.normals, planes.offsets]), self.features.activation.order


def _dot(tensors: Array, omega: Array) -> Array:
    """Return the products of the last axis of ``tensors`` (N, ..., D) with ``omega`` (N, D)."""
    return np.asarray(np.einsum("n...j,nj->n...", tensors, omega))
