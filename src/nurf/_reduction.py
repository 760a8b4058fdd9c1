"""Directions of the inputs and outputs in which a function varies, found from its derivatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nurf._blocks import row_blocks
from nurf._scaling import Scaling
from nurf._types import Array
from nurf.jets import Jet

LOST = 1e-6  # share of the variance that a chosen rank may lose
NOISY = 1e-2  # the same limit for noisy gradients
FLOOR = 2.5  # times the loss of half of the directions; noise that is equal along all directions has a factor of two
TELLING = 4  # directions between a half and three quarters of all, as needed to recognise noise
EVEN = 0.125  # noise: three quarters of the directions lose more than this share of the loss of half of them
LOST_OUTPUTS = 1e-8  # share of the energy of the outputs that a race may ignore
BLOCK_ELEMENTS = 2**22  # of gradients that are scaled at once: 32 MB of doubles


@dataclass(frozen=True, eq=False)
class InputDirections:
    """Directions along which a function varies, the most important first, and the variance lost without the last ones.

    With the covariance ``H = sum_k w_k J_k^T J_k`` of the gradients and the covariance ``S`` of the points, the values
    vary by ``tr(H S)`` to first order, and a projection ``P`` onto eigenvectors of ``H`` loses ``tr((1 - P) H (1 - P)
    S)``. The loss at other samples is estimated from two halves of the samples, each projected onto the eigenvectors of
    the other half.

    Attributes
    ----------
    directions : array of shape (d, m)
        Eigenvectors of ``H``, one for each gradient, at most ``d``.
    energies : array of shape (m,)
        The mean squares of the derivatives along the directions.
    lost, lost_elsewhere : array of shape (m + 1,)
        The share of the variance that the first 0, 1, ... directions lose, at all samples and at other samples. Half of
        the gradients determine at most half of the directions; the loss at other samples is constant for more.
    """

    directions: Array
    energies: Array
    lost: Array
    lost_elsewhere: Array

    @classmethod
    def of(cls, jet: Jet, scaling: Scaling) -> InputDirections:
        """Return the directions of a jet with gradients, in scaled units."""
        known = jet.has_derivative(1) & (jet.weights(1) > 0)
        jet = jet if known.all() else jet[known]
        weights, span = jet.weights(1), _span(jet, scaling)
        halves = [_covariance(jet[start::2], scaling, span) for start in range(2)]
        total = halves[0] + halves[1]
        points = scaling.inputs(jet.X)
        points = points - np.average(points, axis=0, weights=weights)
        points = points if span is None else points @ span
        spread = points.T @ (weights[:, None] * points)
        energies, directions, lost = _ordered(total, spread, total)
        elsewhere = lost.copy()
        if len(jet) > 1:
            elsewhere = sum((_ordered(mine, spread, other)[2] for mine, other in (halves, halves[::-1])), 0.0 * lost)
        half, unit = len(energies) // 2, lost[0] if lost[0] > 0 else 1.0
        elsewhere[half:] = elsewhere[half]
        return cls(
            directions if span is None else span @ directions,
            energies / (weights.sum() * jet.y[:1].size),
            lost / unit,
            np.clip(np.maximum(lost, elsewhere) / unit, 0.0, 1.0),
        )

    def rank(self) -> int:
        """Return the smallest number of directions that lose at most ``LOST`` of the variance at other samples.

        With noisy gradients they may lose ``FLOOR`` times the loss of half of the directions, up to ``NOISY``.
        Gradients count as noisy if three quarters of the directions lose more than ``EVEN`` of what half of them lose,
        because noise is about equal along all directions. If more than half of the directions are needed, all are kept.
        """
        m = len(self.energies)
        half, told = m // 2, m // 4 >= TELLING
        noisy = told and self.lost[3 * m // 4] > EVEN * self.lost[half]
        allowed = max(LOST, min(NOISY, FLOOR * float(self.lost_elsewhere[half]))) if noisy else LOST
        enough = np.flatnonzero(self.lost_elsewhere[: half + 1] <= allowed)
        return max(1, int(enough[0])) if len(enough) else len(self.directions)

    def scaling(self, scaling: Scaling, rank: int, X: Array) -> Scaling:
        """Return the scaling followed by the projection onto ``rank`` directions, scaled to the unit ball.

        For all inputs, the scaling is returned unchanged.
        """
        if rank >= len(self.directions):
            return scaling
        basis, rest = self.directions[:, :rank], self.directions[:, rank:]
        rank = basis.shape[1]
        radius = np.sqrt(((scaling.inputs(X) @ basis) ** 2).sum(axis=1).max(initial=0.0)) or 1.0
        lost = float(self.lost_elsewhere[rank])
        return Scaling(
            scaling.x_center,
            scaling.x_scale * radius,
            scaling.y_center,
            scaling.y_scale,
            x_basis=np.ascontiguousarray(basis),
            x_rest=np.sqrt(rest**2 @ self.energies[rank:]) * radius,
            lost=lost,
            unseen=lost - float(self.lost[rank]),
        )


def few_directions(jet: Jet, scaling: Scaling) -> Scaling | None:
    """Return the scaling followed by a projection onto few directions, at most half the number of inputs.

    The result is None if gradients are unknown or incomplete, or if more directions are needed.
    """
    if "gradients" not in jet.known or obstacle(jet):
        return None
    found = InputDirections.of(jet, scaling)
    reduced = found.scaling(scaling, found.rank(), jet.X) if found.lost[0] > 0 else scaling
    return None if reduced.x_basis is None else reduced


def obstacle(jet: Jet) -> str:
    """Return the reason why gradients cannot give directions, or an empty text."""
    if "gradients" not in jet.known:
        return "gradients, got none"
    unknown = jet.gradients is not None and jet.frames is None and np.isnan(jet.gradients)
    if np.any(unknown) and np.any(np.any(unknown, axis=-1) != np.all(unknown, axis=-1)):
        return "gradients that are known wholly or not at all, got some unknown partial derivatives"
    return ""


def _gradients(jet: Jet, scaling: Scaling) -> Array:
    """Return the gradients of all outputs in scaled units, with the square roots of their weights: (n k, d)."""
    scaled = scaling(jet.only(("gradients",)))
    rows = scaled.derivative_rows(1) * np.sqrt(scaled.weights(1))[:, None, None]
    return np.asarray(rows.reshape(-1, scaled.n_features))


def _span(jet: Jet, scaling: Scaling) -> Array | None:
    """Return an orthonormal basis of the span of all gradients (d, m), or None if they are not fewer than inputs."""
    if len(jet) * jet.y[:1].size >= jet.n_features:
        return None
    return np.asarray(np.linalg.qr(_gradients(jet, scaling).T)[0])


def _covariance(jet: Jet, scaling: Scaling, span: Array | None) -> Array:
    """Return ``sum_k w_k J_k^T J_k`` in scaled units, along the ``span``; unknown partial derivatives are zero."""
    m = jet.n_features if span is None else span.shape[1]
    total = np.zeros((m, m))
    for rows in row_blocks(len(jet), jet.n_features * jet.y[:1].size, BLOCK_ELEMENTS):
        gradients = _gradients(jet[rows], scaling)
        gradients = gradients if span is None else gradients @ span
        total += gradients.T @ gradients
    return total


def _ordered(covariance: Array, spread: Array, judge: Array) -> tuple[Array, Array, Array]:
    """Return eigenvalues and eigenvectors sorted by the variance that they cause, and the losses of ``judge``."""
    eigenvalues, vectors = np.linalg.eigh(covariance)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    order = np.argsort(-eigenvalues * np.sum(vectors * (spread @ vectors), axis=0), kind="stable")
    eigenvalues, vectors = eigenvalues[order], vectors[:, order]
    products = (vectors.T @ judge @ vectors) * (vectors.T @ spread @ vectors)
    sums = np.cumsum(np.cumsum(products[::-1, ::-1], axis=0), axis=1).diagonal()[::-1]  # over the squares [r:, r:]
    return eigenvalues, vectors, np.maximum(np.append(sums, 0.0), 0.0)


def output_directions(jet: Jet) -> Array | None:
    """Return orthonormal combinations of the outputs (k, q) with nearly all of their energy, or None.

    The combinations are the leading eigenvectors of the sum of ``sum_k w_k y_k y_k^T`` and ``sum_k w_k J_k J_k^T``,
    each divided by its trace. The result is None if more combinations than half the number of outputs are needed.
    """
    k = jet.y[:1].size
    values = np.nan_to_num(jet.y.reshape(len(jet), k)) * np.sqrt(jet.weights(0))[:, None]
    parts = [values.T @ values]
    if "gradients" in jet.known:
        slopes = np.moveaxis(jet.derivative_rows(1) * np.sqrt(jet.weights(1))[:, None, None], 1, 0).reshape(k, -1)
        parts.append(slopes @ slopes.T)
    energy = sum((part / np.trace(part) for part in parts if np.trace(part) > 0), np.zeros((k, k)))
    eigenvalues, vectors = np.linalg.eigh(energy)
    lost = np.cumsum(np.maximum(eigenvalues, 0.0))  # losses without the smallest eigenvalues, in increasing order
    dropped = int(np.count_nonzero(lost <= LOST_OUTPUTS * lost[-1]))
    return np.ascontiguousarray(vectors[:, dropped:]) if k > dropped >= k / 2 else None
