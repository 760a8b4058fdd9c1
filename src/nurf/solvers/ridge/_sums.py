"""Sums over rows of features, for normal equations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nurf._blocks import row_blocks
from nurf._tensors import powers
from nurf._types import Array, Precision
from nurf.jets import Jet
from nurf.networks import CACHED_ELEMENTS, Features
from nurf.solvers._rows import SlopeRows

PANEL, PANELS = 512, 8  # a Gram matrix of more than PANELS * PANEL columns is updated PANEL columns at a time
# Rounding error relative to the energy: the error of a Gram matrix in single precision is between 5e-9 and 1.1e-7 of
# its trace, in the spectral norm (measured for widths from 0.0125 to 3.2; it is larger for smaller widths).
ROUNDING: dict[Precision, float] = {np.float64: 0.0, np.float32: float(np.finfo(np.float32).eps)}
Parts = tuple[Array, Array, Array, float, float]  # Gram matrix, moments, energy, total weight, noise


def add_square(gram: Array, rows: Array) -> None:
    """Add ``rows^T rows`` to a matrix (N, N), in place.

    If the matrix is large, only its lower half is updated, some columns at a time, so that no second matrix of its size
    is needed. ``complete_square`` fills the upper half.
    """
    if len(gram) <= PANELS * PANEL:
        gram += rows.T @ rows  # NumPy computes a symmetric product if both arrays are the same
        return
    for first in range(0, len(gram), PANEL):
        some = np.ascontiguousarray(rows[:, first : first + PANEL])
        gram[first:, first : first + PANEL] += rows[:, first:].T @ some


def complete_square(gram: Array) -> None:
    """Fill the upper half of a matrix after the last ``add_square``, in place."""
    if len(gram) > PANELS * PANEL:
        for first in range(0, len(gram), PANEL):
            stop = first + PANEL
            gram[first:stop, stop:] = gram[stop:, first:stop].T
            block = gram[first:stop, first:stop]
            gram[first:stop, first:stop] = (block + block.T) / 2


class ValueSums:
    """Sums over values, for the neurons from ``first`` on."""

    def __init__(self, features: Features, jet: Jet, first: int) -> None:
        self.features, self.jet, self.first = features, jet, first
        self.y = jet.targets
        self.gram, self.moments = _empty(features, first, self.y.shape[1])

    def add(self, rows: slice, design: Array) -> None:
        """Add rows. Their features may be overwritten."""
        targets, first = self.y[rows], self.first
        if self.jet.sample_weight is not None:
            roots = np.sqrt(self.jet.sample_weight[rows, None])
            design *= roots.astype(design.dtype)
            targets = targets * roots
        if first:
            fresh = np.ascontiguousarray(design[:, first : self.features.n_neurons])
            self.gram += design.T @ fresh
            self.moments += fresh.T @ targets
        else:
            add_square(self.gram, design)
            self.moments += design.T @ targets

    def parts(self) -> Parts:
        """Return the sums over all rows that were added."""
        if not self.first:
            complete_square(self.gram)
        weights = self.jet.weights(0)
        return self.gram, self.moments, weights @ self.y**2, float(weights.sum()), 0.0


class RoundedValueSums:
    """Sums over values, for features in single precision.

    Only the products of neurons with each other are in single precision. The value ``s_n`` of a neuron at the center of
    the data is subtracted first: rounding errors are relative to the terms of a sum, and would hide small variations of
    a feature around its mean. With ``u_n = phi_n - s_n``, ``<phi_n, phi_m> = <u_n, u_m> + s_n <1, u_m> + s_m <1, u_n> +
    s_n s_m <1, 1>``.
    """

    def __init__(self, features: Features, jet: Jet, first: int) -> None:
        self.features, self.jet, self.first = features, jet, first
        self.y = jet.targets
        self.gram, _ = _empty(features, first, 0)
        center = jet.X.mean(axis=0, keepdims=True) if len(jet) else np.zeros((1, jet.n_features))
        self.shift = features.neurons(center)[0].astype(np.float32)
        columns = 1 + len(features.tail) + self.y.shape[1]
        self.sides, self.totals = np.zeros((features.n_columns, columns)), np.zeros(columns)

    def add(self, rows: slice, design: Array) -> None:
        """Add rows. Their features may be overwritten."""
        N, roots = self.features.n_neurons, np.sqrt(self.jet.weights(0)[rows])
        neurons = design[:, :N]
        neurons -= self.shift
        if self.jet.sample_weight is not None:
            neurons *= roots[:, None].astype(neurons.dtype)
        if self.first:
            self.gram[:N] += neurons.T @ np.ascontiguousarray(neurons[:, self.first :])
        else:
            add_square(self.gram[:N, :N], neurons)
        tail = self.features.tail.values(self.jet.X[rows])
        sides = np.column_stack([np.ones(len(design)), tail, self.y[rows]]) * roots[:, None]
        for some in row_blocks(len(design), N, CACHED_ELEMENTS):
            self.sides[:N] += neurons[some].astype(float).T @ sides[some]
        self.sides[N:] += (tail * roots[:, None]).T @ sides
        self.totals += roots @ sides

    def parts(self) -> Parts:
        """Return the sums over all rows that were added, for the features without subtraction."""
        N, t, first = self.features.n_neurons, len(self.features.tail), self.first
        shift, (weight, *_), gram = self.shift.astype(float), self.totals, self.gram
        ones, noise = self.sides[:N, 0], _mean_rounding(gram[first:N, : N - first], np.float32)
        if not first:
            complete_square(gram[:N, :N])
        for rows in row_blocks(N, N):
            gram[rows, : N - first] += shift[rows, None] * (ones + weight * shift)[first:]
            gram[rows, : N - first] += ones[rows, None] * shift[first:]
        self.sides[:N] += shift[:, None] * self.totals
        moments = self.sides[:, 1 + t :]
        gram[N:, : N - first] = self.sides[first:N, 1 : 1 + t].T
        if first:
            moments = moments[first:N]
        else:
            gram[:, N:] = self.sides[:, 1 : 1 + t]
        return gram, np.ascontiguousarray(moments), self.jet.weights(0) @ self.y**2, float(weight), noise


class SlopeSums:
    """Sums over derivatives of one order, for the neurons from ``first`` on."""

    def __init__(self, features: Features, jet: Jet, order: int, first: int, dtype: Precision = np.float64) -> None:
        self.features, self.jet, self.order, self.first = features, jet, order, first
        self.dtype, self.noise = dtype, 0.0
        k = int(np.prod(jet.y.shape[1:], dtype=int))
        self.gram, self.moments = _empty(features, first, k)
        self.energy = np.zeros(k)
        self.group: SlopeRows | None = None
        self.normals = powers(features.hyperplanes.normals, order)

    def start(self, group: SlopeRows) -> None:
        """Start with the next group of rows."""
        self._end()
        N = self.features.n_neurons
        self.group, self.square = group, np.zeros((N, N - self.first))

    def add(self, rows: slice, slopes: Array) -> None:
        """Add rows of the group. Their slopes may be overwritten."""
        assert self.group is not None
        first, N = self.first, self.features.n_neurons
        block = _slope_block(self.features, self.jet, self.order, self.group, rows, slopes)
        fresh, columns = block.slopes[:, first:], block.columns[first:]
        self.square += block.slopes.T @ (np.ascontiguousarray(fresh) if first else fresh)
        self.moments[: N - first] += _against(fresh, block.targets, columns)
        self.energy += np.einsum("nkc,nkc->k", block.targets, block.targets)
        if self.order <= self.features.degree:
            self.gram[N:, : N - first] += _tail_against(block.tail, block.tail_slopes[:, first:], columns)
            if not first:
                self.gram[N:, N:] += np.tensordot(block.tail, block.tail, axes=([0, 1], [0, 1]))
                self.moments[N:] += np.tensordot(block.tail, block.tail_targets, axes=([0, 1], [0, 2]))

    def _end(self) -> None:
        if self.group is not None:
            N, first = self.features.n_neurons, self.first
            columns = np.ones((N, 1)) if self.group.frames is not None else self.normals[:, self.group.columns]
            self.gram[:N, : N - first] += self.square * (columns @ columns[first:].T)
            self.noise += _mean_rounding(self.square[first:], self.dtype)
            self.group = None

    def parts(self) -> Parts:
        """Return the sums over all rows that were added."""
        self._end()
        N = self.features.n_neurons
        if not self.first:
            self.gram[:N, N:] = self.gram[N:, :N].T
        return self.gram, self.moments, self.energy, 0.0, self.noise


def _mean_rounding(square: Array, dtype: Precision) -> float:
    """Return the rounding error of a Gram matrix, divided by the number of neurons."""
    return ROUNDING[dtype] * float(np.trace(square)) / max(1, len(square))


def _empty(features: Features, first: int, k: int) -> tuple[Array, Array]:
    """Return zeros for the Gram matrix and the moments: for all columns, or for the neurons from ``first`` > 0 on."""
    width = features.n_neurons - first if first else features.n_columns
    return np.zeros((features.n_columns, width)), np.zeros((width, k))


@dataclass(frozen=True, eq=False)
class SlopeBlock:
    """A block of ``SlopeRows`` times the square roots of their weights: neuron ``n`` has ``slopes_kn columns_nc``.

    If the derivatives of the monomials are the same at all points, only one combination of the rows contributes to
    products with the tail, with the square roots of the weights as coefficients. Then ``tail``, ``tail_slopes`` and
    ``tail_targets`` have one row.

    Attributes
    ----------
    slopes : array of shape (n, N)
    columns : array of shape (N, c)
    targets : array of shape (n, k, c)
    tail : array of shape (n, c, t) or (1, c, t)
        The components of the derivatives of the monomials.
    tail_slopes : array of shape (n, N) or (1, N)
    tail_targets : array of shape (n, k, c) or (1, k, c)
    """

    slopes: Array
    columns: Array
    targets: Array
    tail: Array
    tail_slopes: Array
    tail_targets: Array


def _slope_block(features: Features, jet: Jet, order: int, group: SlopeRows, block: slice, slopes: Array) -> SlopeBlock:
    """Return a block of rows, given the derivatives ``slopes`` of the neurons, which may be overwritten."""
    N, rows = features.n_neurons, group.index[block]
    normals = powers(features.hyperplanes.normals, order)
    roots = np.sqrt(jet.weights(1)[rows])
    targets = group.targets[block] * roots[:, None, None]
    if jet.sample_weight is not None or jet.derivative_weight is not None:
        slopes *= roots[:, None].astype(slopes.dtype)
    tail = features.tail.components(jet.X[rows], order)
    if group.frames is not None:
        slopes *= (group.frames[block] @ normals.T).astype(slopes.dtype)
        tail = np.einsum("nc,nct->nt", group.frames[block], tail)[:, None] * roots[:, None, None]
        return SlopeBlock(slopes, np.ones((N, 1)), targets, tail, slopes, targets)
    if order < features.degree:
        tail = tail[:, group.columns] * roots[:, None, None]
        return SlopeBlock(slopes, normals[:, group.columns], targets, tail, slopes, targets)
    length = float(np.linalg.norm(roots))
    unit = roots / (length or 1.0)
    tail_targets = np.tensordot(unit, targets, axes=1)[None]
    tail = length * tail[:1, group.columns]
    return SlopeBlock(slopes, normals[:, group.columns], targets, tail, (unit @ slopes)[None], tail_targets)


def _tail_against(tail: Array, slopes: Array, columns: Array) -> Array:
    """Return ``sum_k slopes_kn (tail_k^T columns_n)``, of shape (t, N)."""
    if len(tail) == 1:
        return np.asarray((tail[0].T @ columns.T) * slopes[0])
    return np.asarray(np.einsum("cnt,nc->tn", slopes.T @ np.moveaxis(tail, 1, 0), columns))


def _against(slopes: Array, targets: Array, columns: Array) -> Array:
    """Return ``sum_k slopes_kn (targets_k . columns_n)``, of shape (N, k)."""
    outputs, slopes = range(targets.shape[1]), slopes.astype(float, copy=False)
    return np.stack([np.einsum("mc,mc->m", slopes.T @ targets[:, j], columns) for j in outputs], axis=1)
