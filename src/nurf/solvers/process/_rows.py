"""The rows of the row model as functionals of a process, with their targets and weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from nurf._blocks import numbered, row_blocks
from nurf._linear import LinearRows
from nurf._tensors import factors, variables
from nurf._types import Array, Index, Mask
from nurf.jets import DERIVATIVE_KINDS, LEAST_VALUES, Jet
from nurf.kernels import Functionals
from nurf.solvers._rows import SlopeRows, slope_rows
from nurf.solvers.process._contrasts import Contrasts

SUM = 3  # the order of rows that are sums of functionals of several orders


@dataclass(frozen=True)
class MatrixBlock:
    """A block of the lower triangle of the kernel matrix: rows of one part, and columns of the same or another part.

    Parameters
    ----------
    rows, columns : slice
        The place of the block in the matrix.
    parts : tuple of two int
        The part of the rows, and the part of the columns.
    members : tuple of two slice
        The functionals of each part that belong to the block.
    """

    rows: slice
    columns: slice
    parts: tuple[int, int]
    members: tuple[slice, slice]

    def of(self, parts: tuple[Functionals, ...]) -> tuple[Functionals, Functionals]:
        """Return the functionals of the rows and of the columns."""
        (i, j), (rows, columns) = self.parts, self.members
        return parts[i][rows], parts[j][columns]


@dataclass(frozen=True, eq=False)
class Sums:
    """Rows that are sums of functionals with coefficients.

    Parameters
    ----------
    parts : tuple of Functionals
        Those of order 0, 1 and 2.
    matrix : sparse array of shape (m, F)
        The coefficients of all functionals in each row.
    """

    parts: tuple[Functionals, ...]
    matrix: csr_array

    @classmethod
    def of(cls, rows: LinearRows) -> Sums:
        """Return linear functionals as sums."""
        parts = []
        for terms in rows.terms:
            starts = terms.starts
            index = np.searchsorted(starts, np.arange(len(terms)), side="right") - 1
            parts.append(Functionals(terms.points[starts], index, terms.directions))
        places = np.concatenate([terms.rows for terms in rows.terms])
        coef = np.concatenate([terms.coef for terms in rows.terms])
        matrix = csr_array((coef, (places, np.arange(len(coef)))), shape=(len(rows), len(coef)))
        return cls(tuple(parts), matrix)


@dataclass(frozen=True, eq=False)
class ProcessRows:
    """All known values and derivatives, as functionals.

    Parameters
    ----------
    parts : tuple of Functionals
        Functionals of order 0, 1 and 2.
    targets : array of shape (N, k)
    weights : array of shape (N,)
        The noise of a row has a variance that is inversely proportional to its weight.
    samples : array of shape (N,)
        The sample that each row belongs to.
    degree : int
        Degree of the polynomial mean: 0 or 1.
    sums : Sums, optional
        Further rows, behind the others.
    """

    parts: tuple[Functionals, ...]
    targets: Array
    weights: Array
    samples: Index
    degree: int = 0
    sums: Sums | None = None

    @classmethod
    def of(cls, jet: Jet, degree: int = 0) -> ProcessRows:
        """Return the rows of a jet. If they do not determine an affine mean, the mean is constant."""
        groups = [_sorted(*_values(jet))]
        groups += [_sorted(*_derivatives(jet, order)) for order in DERIVATIVE_KINDS if jet.has_derivative(order).any()]
        weights = [jet.weights(part.order)[part.index] for part, _ in groups]
        targets, samples, sums = [each for _, each in groups], [part.index for part, _ in groups], None
        if jet.functionals is not None:
            index = np.flatnonzero(jet.has_functional)
            sums = Sums.of(jet.functionals[index])
            weights, samples = [*weights, jet.weights(0)[index]], [*samples, index]
            targets.append(jet.targets[index])
        rows = cls(
            tuple(part for part, _ in groups),
            np.concatenate(targets),
            np.concatenate(weights),
            np.concatenate(samples),
            degree,
            sums,
        )
        if degree and np.linalg.matrix_rank(rows.basis) < rows.basis.shape[1]:
            return replace(rows, degree=0)
        return rows

    def __len__(self) -> int:
        return len(self.targets)

    @cached_property
    def places(self) -> Index:
        """The point of each row, shape (N,): equal points have one number, and each sum of functionals its own."""
        points = np.concatenate([part.points[part.index] for part in self.parts])
        return np.append(numbered(points), len(points) + np.arange(len(self) - len(points)))

    @property
    def all_parts(self) -> tuple[Functionals, ...]:
        """All functionals of which the rows consist: one for each row, then those that are summed."""
        return self.parts if self.sums is None else self.parts + self.sums.parts

    @property
    def n_functionals(self) -> int:
        """The number ``F`` of all functionals."""
        return sum(len(part) for part in self.all_parts)

    def gathered(self, columns: Array) -> Array:
        """Return the entries for the rows of an array with entries for all functionals (F, ...), of shape (N, ...)."""
        if self.sums is None:
            return columns
        single = len(columns) - self.sums.matrix.shape[1]
        return np.concatenate([columns[:single], self.sums.matrix @ columns[single:]])

    def spread(self, columns: Array) -> Array:
        """Return the coefficients of all functionals (F, ...) in combinations of the rows (N, ...)."""
        if self.sums is None:
            return columns
        single = len(columns) - self.sums.matrix.shape[0]
        return np.concatenate([columns[:single], self.sums.matrix.T @ columns[single:]])

    def sizes(self, of_functionals: Array) -> Array:
        """Return sums of the sizes (F,) of functionals times the sizes of their coefficients, of shape (N,)."""
        if self.sums is None:
            return of_functionals
        single = len(of_functionals) - self.sums.matrix.shape[1]
        return np.concatenate([of_functionals[:single], abs(self.sums.matrix) @ of_functionals[single:]])

    def blocks(self, elements: int) -> Iterator[MatrixBlock]:
        """Yield blocks of about ``elements`` elements. Blocks with rows and columns of one part end at the diagonal."""
        starts = np.cumsum([0, *(len(part) for part in self.all_parts)]).tolist()
        for i, part in enumerate(self.all_parts):
            for rows in row_blocks(len(part), starts[i + 1], elements):
                place = slice(starts[i] + rows.start, starts[i] + rows.stop)
                for j in range(i):
                    yield MatrixBlock(place, slice(starts[j], starts[j + 1]), (i, j), (rows, slice(None)))
                yield MatrixBlock(place, slice(starts[i], place.stop), (i, i), (rows, slice(rows.stop)))

    @cached_property
    def orders(self) -> Index:
        """The order of the derivative in each row, of shape (N,); ``SUM`` in rows that are sums."""
        orders = [*(part.order for part in self.parts), SUM]
        return np.repeat(orders, [*map(len, self.parts), len(self) - sum(map(len, self.parts))])

    @cached_property
    def judges(self) -> Mask:
        """The mask of the rows at which predictions are judged, of shape (N,): values and sums, as ``Jet.judges``."""
        values = self.orders == 0
        alone = self.sums is not None and np.count_nonzero(values) < LEAST_VALUES
        return np.asarray(self.is_sum if alone else values | self.is_sum)

    @property
    def judging_weights(self) -> Array:
        """How much each row counts in a mean over the rows that judge, of shape (N,), with mean one over these.

        Values without sums count the same.
        """
        weights = np.where(self.judges, 1.0 if self.sums is None else self.weights, 0.0)
        return np.asarray(weights / weights[self.judges].mean()) if self.judges.any() else weights

    @property
    def judging(self) -> Index:
        """The samples of the rows that judge: values, followed by sums."""
        return self.samples[self.judges]

    @property
    def is_sum(self) -> Mask:
        """The mask of the rows that are sums, of shape (N,)."""
        return np.asarray(self.orders == SUM)

    def noise_shares(self, n_noises: int) -> Array:
        """Return the share of each noise variance in the noise of each row, of shape (N, n_noises).

        The ``d + 2`` variances belong to values, to each partial derivative and to second derivatives; with three
        variances, all partial derivatives share one. The noise of a derivative along ``v`` is ``sum_j v_j^2 s_j^2 /
        |v|^2``. Sums have the noise of values: with a noise of their own, a constant would explain zeros at the
        boundary of a region, or zeros of an equation, and all other rows would be noise.
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
        result[self.is_sum, 0] = 1.0
        return result

    @cached_property
    def basis(self) -> Array:
        """The functionals of the monomials of the mean, of shape (N, t)."""
        return self.gathered(np.concatenate([part.monomials(self.degree) for part in self.all_parts]))

    @cached_property
    def contrasts(self) -> Contrasts:
        """The change of coordinates that separates the mean."""
        return Contrasts.of(self.basis)


def row_total(jet: Jet) -> int:
    """Return the largest possible number of functionals in the rows of ``ProcessRows.of``."""
    framed = jet.n_features if jet.frames is None else jet.frames.shape[1]
    sizes = {1: framed, 2: jet.n_features * (jet.n_features + 1) // 2}
    n_values = int(np.count_nonzero(jet.has_value))
    if jet.functionals is not None:
        n_values += len(jet.functionals.points)
    return n_values + sum(int(np.count_nonzero(jet.has_derivative(order))) * size for order, size in sizes.items())


def _values(jet: Jet) -> tuple[Functionals, Array]:
    index = np.flatnonzero(jet.has_value)
    return Functionals(jet.X, index), jet.y.reshape(len(jet), -1)[index]


def _derivatives(jet: Jet, order: int) -> tuple[Functionals, Array]:
    """Return all known components of the derivatives, and their targets (m, k)."""
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
