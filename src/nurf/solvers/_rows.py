"""The rows of the least-squares problem: one for the value at a point, one for each known derivative.

Each row is a linear functional of the network: its value ``f(x_k)``, or the component of a derivative
``<B, D^q f(x_k)>``. For a single neuron the row is ``sigma^(q)(a.x_k + b) <B, a^q>``. Unknown rows are set to zero, so
that they have no weight and no residual. A sample with its own functional has the value of the functional,
a sum of such rows (``functional_design``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nurf._blocks import row_blocks
from nurf._linear import LinearRows, Terms
from nurf._tensors import components, powers
from nurf._types import Array, Index
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.networks import Features, Tail


@dataclass(frozen=True)
class Loss:
    """Weights of the derivatives in the loss ``|f - y|^2 + gradients |grad f - g|^2 + hessians |hess f - H|_F^2``.

    Parameters
    ----------
    gradients : float, default 0
        Weight of the squared residual of a gradient, relative to a value.
    hessians : float, default 0
        Weight of the squared residual of a Hessian in the Frobenius norm, relative to a value.
    """

    gradients: float = 0.0
    hessians: float = 0.0

    def __post_init__(self) -> None:
        for name, weight in vars(self).items():
            if not (np.isfinite(weight) and weight >= 0):
                raise ValueError(f"the weight of {name} must be a number >= 0, got {weight!r}")

    @property
    def orders(self) -> list[tuple[int, float]]:
        """The orders of the derivatives in the loss, with their weights."""
        return [(order, getattr(self, kind)) for order, kind in DERIVATIVE_KINDS.items() if getattr(self, kind) > 0]

    @property
    def all_orders(self) -> list[int]:
        """The orders of all terms of the loss: 0 for the values, 1 for gradients, 2 for Hessians."""
        return [0, *(order for order, _ in self.orders)]

    @property
    def kinds(self) -> list[str]:
        """The kinds of derivatives in the loss: "gradients", "hessians"."""
        return [DERIVATIVE_KINDS[order] for order, _ in self.orders]

    def require(self, jet: Jet) -> None:
        """Raise an error if the loss has derivatives of a kind that is unknown at all points."""
        for kind in self.kinds:
            if kind not in jet.known:
                raise ValueError(f"`{kind[:-1]}_weight` = {getattr(self, kind)!r} needs known {kind}, got none")


VALUES_ONLY = Loss()


@dataclass(frozen=True, eq=False)
class SlopeRows:
    """Rows for derivatives of one order at some points, with the same components at each point.

    Attributes
    ----------
    index : array of shape (m,)
        The indices of the points.
    columns : array of shape (c,)
        The components of the derivatives that are known at all of these points.
    frames : array of shape (m, d), or None
        The directions of directional derivatives, which have no ``columns``.
    targets : array of shape (m, k, c)
        The known components of all outputs.
    """

    index: Index
    columns: Index
    frames: Array | None
    targets: Array


def slope_rows(jet: Jet, order: int) -> Iterator[SlopeRows]:
    """Yield the known derivatives of one order in a few groups of rows, each without unknown components.

    Points are grouped by the components that are known there. If there are more such patterns than components, each
    component is a group.
    """
    none = np.empty(0, np.int64)
    if order == 1 and jet.frames is not None:
        assert jet.gradients is not None
        slopes = np.einsum("nkd,nrd->nkr", jet.derivative_rows(1), jet.frames)
        for r in range(jet.frames.shape[1]):
            index = np.flatnonzero(jet.frames[:, r].any(axis=1))
            if len(index):
                yield SlopeRows(index, none, jet.frames[index, r], slopes[index, :, r, None])
        return
    known, targets = known_components(jet, order)
    if known.all():
        yield SlopeRows(np.arange(len(jet)), np.arange(known.shape[1]), None, targets)
        return
    patterns, group = np.unique(known, axis=0, return_inverse=True)
    if len(patterns) <= known.shape[1]:
        for number, pattern in enumerate(patterns):
            if pattern.any():
                index, columns = np.flatnonzero(group == number), np.flatnonzero(pattern)
                yield SlopeRows(index, columns, None, targets[index][..., columns])
    else:
        for column in range(known.shape[1]):
            index = np.flatnonzero(known[:, column])
            if len(index):
                yield SlopeRows(index, np.array([column]), None, targets[index][..., column, None])


def known_components(jet: Jet, order: int) -> tuple[npt.NDArray[np.bool_], Array]:
    """Return which components are known for all outputs (n, C), and the components (n, k, C), zero if unknown."""
    derivatives = jet.derivatives(order)
    assert derivatives is not None
    targets = components(derivatives.reshape(len(jet), -1, *[jet.n_features] * order), order)
    known = np.asarray(~np.isnan(targets).any(axis=1))
    return known, np.where(known[:, None, :], targets, 0.0)


def sample_rows(features: Features, jet: Jet, loss: Loss) -> tuple[Array, Array]:
    """Return all rows of each sample, multiplied by the square roots of their weights.

    Returns
    -------
    design : array of shape (n, R, N + t)
        First the value or the functional, then the components of the gradient, then the components of the Hessian.
    targets : array of shape (n, R, k)
    """
    n, N, valued = len(jet), features.n_neurons, jet.has_target[:, None]
    y, roots = jet.targets, np.where(valued, np.sqrt(jet.weights(0))[:, None], 0.0)
    R = rows_per_sample(jet, loss)
    design, targets = np.empty((n, R, features.n_columns)), np.empty((n, R, y.shape[1]))
    value_design(features, jet, out=design[:, 0])
    design[:, 0] *= roots
    targets[:, 0] = np.where(valued, y, 0.0) * roots
    first = 1
    for order, weight in loss.orders:
        normals, tail = powers(features.hyperplanes.normals, order).T, features.tail.components(jet.X, order)
        if order == 1 and jet.frames is not None:
            known = np.asarray(jet.frames.any(axis=2))
            values = np.einsum("nkd,nrd->nkr", jet.derivative_rows(1), jet.frames)
            normals, tail = jet.frames @ normals, jet.frames @ tail
        else:
            known, values = known_components(jet, order)
        roots = np.sqrt(weight * jet.weights(1))[:, None, None] * known[:, :, None]
        rows = slice(first, first + known.shape[1])
        np.multiply(features.neurons(jet.X, order)[:, None, :], normals, out=design[:, rows, :N])
        design[:, rows, N:] = tail
        design[:, rows] *= roots
        targets[:, rows] = np.swapaxes(values, 1, 2) * roots
        first = rows.stop
    return design, targets


def value_design(features: Features, jet: Jet, out: Array) -> Array:
    """Return the features of all samples, or the functionals of these, in ``out`` of shape (n, N + t)."""
    features.design(jet.X, out=out)
    if jet.functionals is not None:
        index = np.flatnonzero(jet.has_functional)
        out[index] = functional_design(features, jet.functionals[index])
    return out


def functional_design(features: Features, functionals: LinearRows) -> Array:
    """Return functionals of all features, of shape (n, N + t).

    Derivatives of a neuron at one point have one factor ``sigma^(q)(a.x + b)`` in common.
    """
    N, normals = features.n_neurons, features.hyperplanes.normals
    result = np.zeros((len(functionals), features.n_columns))
    for terms in functionals.terms:
        for block in row_blocks(len(terms), features.n_columns):
            some = terms[block]
            first = some.starts
            columns = np.repeat(some.coef[:, None], N, axis=1)
            for v in some.directions:
                columns *= v @ normals.T
            if len(first) < len(some):
                columns = np.add.reduceat(columns, first)
            points = some[first]
            columns *= features.neurons(points.points, terms.order)
            result[:, :N] += points.added(columns, len(result))
            result[:, N:] += some.added(_tail_terms(features.tail, some), len(result))
    return result


def _tail_terms(tail: Tail, terms: Terms) -> Array:
    """Return the terms of the monomials, of shape (T, t)."""
    if terms.order > tail.degree:
        return np.zeros((len(terms), len(tail)))
    if terms.order == 0:
        return np.asarray(terms.coef[:, None] * tail.values(terms.points))
    outer = terms.directions[0]
    if terms.order == 2:
        outer = outer[:, :, None] * terms.directions[1][:, None, :]
        outer = (outer + np.swapaxes(outer, 1, 2)) / 2
    along = terms.coef[:, None] * components(outer, terms.order)
    return np.asarray(np.einsum("mc,mct->mt", along, tail.components(terms.points, terms.order)))


def rows_per_sample(jet: Jet, loss: Loss) -> int:
    """Return the number ``R`` of rows of each sample in ``sample_rows``."""
    d = jet.n_features
    framed = d if jet.frames is None else jet.frames.shape[1]
    return 1 + sum({1: framed, 2: d * (d + 1) // 2}[order] for order, _ in loss.orders)


def row_count(jet: Jet, loss: Loss) -> int:
    """Return the number of known values and derivatives in the loss, each counted once whatever its weight."""
    known = jet.has_target.astype(int)
    for order, _ in loss.orders:
        framed = order == 1 and jet.frames is not None
        rows = jet.frames.any(axis=2) if framed and jet.frames is not None else known_components(jet, order)[0]
        known += np.where(jet.weights(1) > 0, rows.sum(axis=1), 0)
    return int(np.sum(known, where=jet.weights(0) > 0))
