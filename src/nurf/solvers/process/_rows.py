"""The rows of the row model as functionals of a process, with their targets and weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nurf._blocks import row_blocks
from nurf._tensors import factors, variables
from nurf._types import Array, Index
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.kernels._functionals import Functionals
from nurf.solvers._rows import SlopeRows, slope_rows
from nurf.solvers.process._contrasts import Contrasts


@dataclass(frozen=True)
class Block:
    """A block of the lower triangle of the kernel matrix: some rows of one part, and columns of that part or another.

    Parameters
    ----------
    rows, columns : slice
        Where it is in the matrix.
    parts : tuple of two int
        The parts of its rows and columns, ...
    members : tuple of two slice
        ... and which of their functionals.
    """

    rows: slice
    columns: slice
    parts: tuple[int, int]
    members: tuple[slice, slice]

    def of(self, parts: tuple[Functionals, ...]) -> tuple[Functionals, Functionals]:
        """Return the functionals of its rows and columns."""
        (i, j), (rows, columns) = self.parts, self.members
        return parts[i][rows], parts[j][columns]


@dataclass(frozen=True, eq=False)
class ProcessRows:
    """All values and derivatives that are known, as functionals.

    Parameters
    ----------
    parts : tuple of Functionals
        Those of order 0, 1 and 2.
    targets : array of shape (N, k)
    weights : array of shape (N,)
        The noise of a row has a variance that is inversely proportional to its weight.
    samples : array of shape (N,)
        The sample that each row belongs to.
    degree : int
        Degree of the polynomial mean: 0 or 1.
    """

    parts: tuple[Functionals, ...]
    targets: Array
    weights: Array
    samples: Index
    degree: int = 0

    @classmethod
    def of(cls, jet: Jet, degree: int = 0) -> ProcessRows:
        """Return the rows of a jet. An affine mean must be determined by them, or it is a constant one."""
        groups = [_sorted(*_values(jet))]
        groups += [_sorted(*_derivatives(jet, order)) for order in DERIVATIVE_KINDS if jet.has_derivative(order).any()]
        weights = [jet.weights(part.order)[part.index] for part, _ in groups]
        rows = cls(
            tuple(part for part, _ in groups),
            np.concatenate([targets for _, targets in groups]),
            np.concatenate(weights),
            np.concatenate([part.index for part, _ in groups]),
            degree,
        )
        if degree and np.linalg.matrix_rank(rows.basis) < rows.basis.shape[1]:
            return cls(rows.parts, rows.targets, rows.weights, rows.samples)
        return rows

    def __len__(self) -> int:
        return len(self.targets)

    def blocks(self, elements: int) -> Iterator[Block]:
        """Yield blocks of about so many elements. Those with rows and columns of one part end at the diagonal."""
        starts = np.cumsum([0, *(len(part) for part in self.parts)]).tolist()
        for i, part in enumerate(self.parts):
            for rows in row_blocks(len(part), starts[i + 1], elements):
                place = slice(starts[i] + rows.start, starts[i] + rows.stop)
                for j in range(i):
                    yield Block(place, slice(starts[j], starts[j + 1]), (i, j), (rows, slice(None)))
                yield Block(place, slice(starts[i], place.stop), (i, i), (rows, slice(rows.stop)))

    @cached_property
    def orders(self) -> Index:
        """The order of the derivative in each row, of shape (N,)."""
        return np.repeat([part.order for part in self.parts], [len(part) for part in self.parts])

    def noise_shares(self, n_noises: int) -> Array:
        """Return how much of each variance of noise is in each row, of shape (N, n_noises).

        There are ``d + 2`` of them, those of values, of each partial derivative and of second derivatives, or three if
        partial derivatives have the same. The noise of a derivative along ``v`` is ``sum_j v_j^2 s_j^2 / |v|^2``.
        """
        each = self._noise_shares
        if n_noises == each.shape[1]:
            return each
        return np.column_stack([each[:, 0], each[:, 1:-1].sum(axis=1), each[:, -1]])

    @cached_property
    def _noise_shares(self) -> Array:
        d = self.parts[0].points.shape[1]
        result = np.zeros((len(self), d + 2))
        result[self.orders == 0, 0] = result[self.orders == 2, -1] = 1.0
        for part in (part for part in self.parts if part.order == 1):
            squares = part.directions[0] ** 2
            totals = squares.sum(axis=1, keepdims=True)
            result[self.orders == 1, 1:-1] = np.where(totals > 0, squares / np.where(totals > 0, totals, 1.0), 1 / d)
        return result

    @cached_property
    def basis(self) -> Array:
        """The functionals of the monomials of the mean, of shape (N, t)."""
        return np.concatenate([part.monomials(self.degree) for part in self.parts])

    @cached_property
    def contrasts(self) -> Contrasts:
        """The change of coordinates that separates the mean."""
        return Contrasts.of(self.basis)


def row_total(jet: Jet) -> int:
    """Return the number of rows that ``ProcessRows.of`` makes, at the most."""
    framed = jet.n_features if jet.frames is None else jet.frames.shape[1]
    sizes = {1: framed, 2: jet.n_features * (jet.n_features + 1) // 2}
    n_values = int(np.count_nonzero(jet.has_value))
    return n_values + sum(int(np.count_nonzero(jet.has_derivative(order))) * size for order, size in sizes.items())


def _values(jet: Jet) -> tuple[Functionals, Array]:
    index = np.flatnonzero(jet.has_value)
    return Functionals(jet.X, index), jet.y.reshape(len(jet), -1)[index]


def _derivatives(jet: Jet, order: int) -> tuple[Functionals, Array]:
    """Return all components of the derivatives that are known, and their targets (m, k)."""
    groups = list(_expanded(jet, order))
    index = np.concatenate([index for index, *_ in groups])
    directions = tuple(np.concatenate([part[1][i] for part in groups]) for i in range(order))
    targets = np.concatenate([targets for *_, targets in groups])
    counts = jet.weights(1)[index] > 0
    return Functionals(jet.X, index[counts], tuple(v[counts] for v in directions)), targets[counts]


def _expanded(jet: Jet, order: int) -> Iterator[tuple[Index, tuple[Array, ...], Array]]:
    """Yield points, directions and targets (m, k) of groups of rows."""
    d, k = jet.n_features, jet.y[:1].size
    axes = np.eye(d)[np.array(variables(d, order)).T]
    scaled = (axes[0] * factors(d, order)[:, None], *axes[1:])
    empty = np.empty((0, d))
    yield np.empty(0, np.int64), (empty,) * order, np.empty((0, k))
    for group in slope_rows(jet, order):
        m, c = len(group.index), group.targets.shape[2]
        targets = np.moveaxis(group.targets, 1, 2).reshape(-1, k)
        yield np.repeat(group.index, c), _directions(group, scaled, m), targets


def _directions(group: SlopeRows, axes: tuple[Array, ...], m: int) -> tuple[Array, ...]:
    if group.frames is not None:
        return (group.frames,)
    return tuple(np.tile(axis[group.columns], (m, 1)) for axis in axes)


def _sorted(part: Functionals, targets: Array) -> tuple[Functionals, Array]:
    """Return functionals in the order of their points."""
    order = np.argsort(part.index, kind="stable")
    return Functionals(part.points, part.index[order], tuple(v[order] for v in part.directions)), targets[order]
