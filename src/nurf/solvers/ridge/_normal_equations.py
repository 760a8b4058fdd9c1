"""Normal equations of the outer weights, accumulated in row blocks and mergeable with ``+``."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nurf._tensors import powers
from nurf._types import Array
from nurf.jets import Jet
from nurf.networks import Features
from nurf.networks._network import feature_blocks
from nurf.solvers._rows import VALUES_ONLY, Loss, SlopeRows, slope_rows

PANEL, PANELS = 512, 8  # columns of a large Gram matrix that are added to at once; from so many such panels on


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """All that least squares needs to know of the data: ``Z^T W Z``, ``Z^T W y`` and ``y^T W y``.

    ``Z`` (rows, N + t) holds the features at the values, and the derivatives of the features at the derivatives that
    count; neurons first, then the monomials of the tail. ``W`` holds the weights of the rows. Those of two sets of rows
    add up to those of their union, and times a number they are those of other weights.

    Parameters
    ----------
    gram : array of shape (N + t, N + t)
    moments : array of shape (N + t, k)
    energy : array of shape (k,)
    total_weight : float
        Sum of the weights of the values.
    n_neurons : int
        ``N``; the columns behind are the tail's.
    """

    gram: Array
    moments: Array
    energy: Array
    total_weight: float
    n_neurons: int

    @classmethod
    def from_data(cls, features: Features, jet: Jet, loss: Loss = VALUES_ONLY) -> NormalEquations:
        """Accumulate over the values of ``jet``, and over the derivatives that ``loss`` counts, in blocks."""
        loss.require(jet)
        return cls.from_some(features, jet, loss)

    @classmethod
    def from_some(cls, features: Features, jet: Jet, loss: Loss) -> NormalEquations:
        """Return the same for some of the rows, whose derivatives may all be unknown."""
        made = dict(enumerate(_from_both(features, jet))) if loss.gradients and _is_complete(jet) else {}
        equations = made[0] if made else cls.from_rows(features, jet)
        for order, weight in loss.orders:
            equations += weight * (made[order] if order in made else cls.from_rows(features, jet, order))
        return equations

    @classmethod
    def from_rows(cls, features: Features, jet: Jet, order: int = 0) -> NormalEquations:
        """Accumulate over the values (``order=0``), the gradients (1) or the Hessians (2) alone, with weight one.

        All components of a derivative of order q cost one symmetric product, whatever the dimension: with
        ``Phi_kn = sigma^(q)(a_n.x_k + b_n)``, their Gram matrix is ``(A A^T)^q o (Phi^T Phi)``, element by element.
        """
        return _from_derivatives(features, jet, order, 0) if order else _from_values(features, jet, 0)

    def grown(self, features: Features, jet: Jet, order: int = 0) -> NormalEquations:
        """Return what ``from_rows`` makes of more neurons: ``features`` has those of these equations, then new ones.

        Only what involves a new neuron is computed.
        """
        old, total = self.n_neurons, features.n_neurons
        new = _from_derivatives(features, jet, order, old) if order else _from_values(features, jet, old)
        gram = np.empty((features.n_columns, features.n_columns))
        kept = np.r_[:old, total : features.n_columns]
        gram[np.ix_(kept, kept)] = self.gram
        gram[:, old:total], gram[old:total, :] = new.gram, new.gram.T
        return replace(self, gram=gram, moments=np.insert(self.moments, old, new.moments, axis=0), n_neurons=total)

    def __add__(self, other: NormalEquations) -> NormalEquations:
        """Merge with the normal equations of further rows."""
        if self.moments.shape != other.moments.shape or self.n_neurons != other.n_neurons:
            raise ValueError(
                f"normal equations of the same features and outputs were expected, got {self.moments.shape} with "
                f"{self.n_neurons} neurons and {other.moments.shape} with {other.n_neurons}"
            )
        return NormalEquations(
            self.gram + other.gram,
            self.moments + other.moments,
            self.energy + other.energy,
            self.total_weight + other.total_weight,
            self.n_neurons,
        )

    def __rmul__(self, factor: float) -> NormalEquations:
        """Multiply the weights of all rows by ``factor``."""
        return replace(
            self,
            gram=factor * self.gram,
            moments=factor * self.moments,
            energy=factor * self.energy,
            total_weight=factor * self.total_weight,
        )


def _from_values(features: Features, jet: Jet, first: int) -> NormalEquations:
    """Return the equations of the values; from neuron ``first`` > 0 on, the columns and moments of neurons only."""
    jet = jet.with_values()
    sums = _ValueSums(features, jet, first)
    for rows, design in features.design_blocks(jet.X, feature_blocks(len(jet), features.n_columns)):
        sums.add(rows, design)
    return sums.equations()


def _from_derivatives(features: Features, jet: Jet, order: int, first: int) -> NormalEquations:
    """Return the equations of derivatives of one order; from neuron ``first`` > 0 on, as for the values."""
    sums = _SlopeSums(features, jet, order, first)
    for group in slope_rows(jet, order):
        sums.start(group)
        buffer = None
        for block in feature_blocks(len(group.index), features.n_neurons):
            n = block.stop - block.start
            buffer = np.empty((n, features.n_neurons)) if buffer is None else buffer
            sums.add(block, features.neurons(jet.X[group.index[block]], order, out=buffer[:n]))
    return sums.equations()


def _from_both(features: Features, jet: Jet) -> tuple[NormalEquations, NormalEquations]:
    """Return the equations of the values and of the gradients, all of them known: activations are computed once."""
    values, slopes = _ValueSums(features, jet, 0), _SlopeSums(features, jet, 1, 0)
    (group,) = slope_rows(jet, 1)
    slopes.start(group)
    for rows, design, slope in features.design_and_slope_blocks(jet.X):
        values.add(rows, design)
        slopes.add(rows, slope)
    return values.equations(), slopes.equations()


def _is_complete(jet: Jet) -> bool:
    """Return whether all values and all gradients are known."""
    known = jet.gradients is not None and jet.frames is None and not np.isnan(jet.gradients).any()
    return len(jet) > 0 and bool(known) and bool(jet.has_value.all())


def add_square(gram: Array, rows: Array) -> None:
    """Add ``rows^T rows`` to a matrix (N, N); if it is large, to the columns of its lower half, some at a time.

    So there is never a second matrix of that size. ``complete_square`` fills the upper half.
    """
    if len(gram) <= PANELS * PANEL:
        gram += rows.T @ rows  # one symmetric product: NumPy sees that both are the same array
        return
    for first in range(0, len(gram), PANEL):
        some = np.ascontiguousarray(rows[:, first : first + PANEL])
        gram[first:, first : first + PANEL] += rows[:, first:].T @ some


def complete_square(gram: Array) -> None:
    """Make a matrix that ``add_square`` has added to symmetric."""
    if len(gram) > PANELS * PANEL:
        for first in range(0, len(gram), PANEL):
            stop = first + PANEL
            gram[first:stop, stop:] = gram[stop:, first:stop].T
            block = gram[first:stop, first:stop]
            gram[first:stop, first:stop] = (block + block.T) / 2


class _ValueSums:
    """The sums over values, from neuron ``first`` on."""

    def __init__(self, features: Features, jet: Jet, first: int) -> None:
        self.features, self.jet, self.first = features, jet, first
        self.y = jet.y.reshape(len(jet), -1)
        self.gram, self.moments = _empty(features, first, self.y.shape[1])

    def add(self, rows: slice, design: Array) -> None:
        """Add rows. Their features may be overwritten."""
        targets, first = self.y[rows], self.first
        if self.jet.sample_weight is not None:
            roots = np.sqrt(self.jet.sample_weight[rows, None])
            design *= roots
            targets = targets * roots
        if first:
            fresh = np.ascontiguousarray(design[:, first : self.features.n_neurons])
            self.gram += design.T @ fresh
            self.moments += fresh.T @ targets
        else:
            add_square(self.gram, design)
            self.moments += design.T @ targets

    def equations(self) -> NormalEquations:
        """Return the equations of all rows that were added."""
        if not self.first:
            complete_square(self.gram)
        weights = self.jet.weights(0)
        energy, total = weights @ self.y**2, float(weights.sum())
        return NormalEquations(self.gram, self.moments, energy, total, self.features.n_neurons)


class _SlopeSums:
    """The sums over derivatives of one order, from neuron ``first`` on."""

    def __init__(self, features: Features, jet: Jet, order: int, first: int) -> None:
        self.features, self.jet, self.order, self.first = features, jet, order, first
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
            self.group = None

    def equations(self) -> NormalEquations:
        """Return the equations of all rows that were added."""
        self._end()
        N = self.features.n_neurons
        if not self.first:
            self.gram[:N, N:] = self.gram[N:, :N].T
        return NormalEquations(self.gram, self.moments, self.energy, 0.0, N)


def _empty(features: Features, first: int, k: int) -> tuple[Array, Array]:
    """Return zeros for the Gram matrix and the moments: of all columns, or of the neurons from ``first`` > 0 on."""
    width = features.n_neurons - first if first else features.n_columns
    return np.zeros((features.n_columns, width)), np.zeros((width, k))


@dataclass(frozen=True, eq=False)
class SlopeBlock:
    """A block of ``SlopeRows`` with the square roots of their weights: neuron ``n`` has ``slopes_kn columns_nc``.

    Where the derivatives of the monomials are the same at all points, only one combination of the points sees them:
    that with the square roots of the weights. Then ``tail`` has one row, and so have slopes and targets beside it.

    Attributes
    ----------
    slopes : array of shape (n, N)
    columns : array of shape (N, c)
    targets : array of shape (n, k, c)
    tail : array of shape (n, c, t) or (1, c, t)
        The same components of the derivatives of the monomials.
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
    """Return a block of rows from the derivatives of the neurons there, which may be overwritten."""
    N, rows = features.n_neurons, group.index[block]
    normals = powers(features.hyperplanes.normals, order)
    roots = np.sqrt(jet.weights(1)[rows])
    targets = group.targets[block] * roots[:, None, None]
    if jet.sample_weight is not None or jet.derivative_weight is not None:
        slopes *= roots[:, None]
    tail = features.tail.components(jet.X[rows], order)
    if group.frames is not None:
        slopes *= group.frames[block] @ normals.T
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
    outputs = range(targets.shape[1])
    return np.stack([np.einsum("mc,mc->m", slopes.T @ targets[:, j], columns) for j in outputs], axis=1)
