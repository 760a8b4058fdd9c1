"""Normal equations of the outer weights, accumulated in row blocks and mergeable with ``+``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from nurf._types import Array, Precision
from nurf.jets import Jet
from nurf.networks import Features, feature_blocks
from nurf.solvers._rows import VALUES_ONLY, Loss, slope_rows, value_design
from nurf.solvers.ridge._sums import Parts, RoundedValueSums, SlopeSums, ValueSums


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """The sums over the data that least squares needs: ``Z^T W Z``, ``Z^T W y`` and ``y^T W y``.

    ``Z`` (rows, N + t) contains the features in rows of values, and their derivatives in rows of derivatives; neurons
    first, then the monomials of the tail. ``W`` contains the weights of the rows. The sum of the normal equations of
    two sets of rows belongs to their union, and a multiple of them to multiplied weights.

    Parameters
    ----------
    gram : array of shape (N + t, N + t)
    moments : array of shape (N + t, k)
    energy : array of shape (k,)
    total_weight : float
        Sum of the weights of the values.
    n_neurons : int
        ``N``; the remaining columns belong to the tail.
    noise : float, default 0
        Rounding error of single precision: the error of the neurons' part of ``gram`` is less than ``N`` times this
        number, in the spectral norm, with the constant of the tail eliminated.
    """

    gram: Array
    moments: Array
    energy: Array
    total_weight: float
    n_neurons: int
    noise: float = 0.0

    @classmethod
    def from_data(cls, features: Features, jet: Jet, loss: Loss = VALUES_ONLY) -> NormalEquations:
        """Return the normal equations of the values of ``jet`` and of the derivatives in ``loss``."""
        loss.require(jet)
        return cls.from_some(features, jet, loss)

    @classmethod
    def from_some(cls, features: Features, jet: Jet, loss: Loss, dtype: Precision = np.float64) -> NormalEquations:
        """Return the normal equations of some of the rows, whose derivatives may all be unknown."""
        made = cls.from_orders(features, jet, [0, *(order for order, _ in loss.orders)], dtype)
        equations = made[0]
        for order, weight in loss.orders:
            equations += weight * made[order]
        return equations

    @classmethod
    def from_orders(
        cls, features: Features, jet: Jet, orders: Iterable[int], dtype: Precision = np.float64
    ) -> dict[int, NormalEquations]:
        """Return the normal equations of each order of derivatives, as in ``from_rows``.

        If all values and gradients are known, activations are computed once for both.
        """
        orders = list(orders)
        made = dict(enumerate(_from_both(features, jet, dtype))) if {0, 1} <= {*orders} and _is_complete(jet) else {}
        return {n: made[n] if n in made else cls.from_rows(features, jet, n, dtype) for n in orders}

    @classmethod
    def from_rows(cls, features: Features, jet: Jet, order: int = 0, dtype: Precision = np.float64) -> NormalEquations:
        """Return the normal equations of the values (``order=0``), gradients (1) or Hessians (2) alone.

        If ``dtype`` is single precision, it is used for the features and for the products of each block. Sums over
        blocks, and the moments, are computed in double precision.

        All components of a derivative of order q cost one symmetric product, whatever the dimension: with
        ``Phi_kn = sigma^(q)(a_n.x_k + b_n)``, their Gram matrix is ``(A A^T)^q o (Phi^T Phi)``, element by element.
        """
        return _from_derivatives(features, jet, order, 0, dtype) if order else _from_values(features, jet, 0, dtype)

    def grown(self, features: Features, jet: Jet, order: int = 0, dtype: Precision = np.float64) -> NormalEquations:
        """Return the normal equations for more neurons: ``features`` starts with the neurons of these equations.

        Only products with new neurons are computed.
        """
        old, total = self.n_neurons, features.n_neurons
        new = _from_derivatives(features, jet, order, old, dtype) if order else _from_values(features, jet, old, dtype)
        gram = np.empty((features.n_columns, features.n_columns))
        kept = np.r_[:old, total : features.n_columns]
        gram[np.ix_(kept, kept)] = self.gram
        gram[:, old:total], gram[old:total, :] = new.gram, new.gram.T
        moments = np.insert(self.moments, old, new.moments, axis=0)
        noise = (old * self.noise + (total - old) * new.noise) / total
        return replace(self, gram=gram, moments=moments, n_neurons=total, noise=noise)

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
            self.noise + other.noise,
        )

    def __rmul__(self, factor: float) -> NormalEquations:
        """Multiply the weights of all rows by ``factor``."""
        return replace(
            self,
            gram=factor * self.gram,
            moments=factor * self.moments,
            energy=factor * self.energy,
            total_weight=factor * self.total_weight,
            noise=factor * self.noise,
        )


_VALUE_SUMS: dict[Precision, type[ValueSums] | type[RoundedValueSums]] = {
    np.float64: ValueSums,
    np.float32: RoundedValueSums,
}


def _equations(features: Features, parts: Parts) -> NormalEquations:
    gram, moments, energy, total_weight, noise = parts
    return NormalEquations(gram, moments, energy, total_weight, features.n_neurons, noise)


def _from_values(features: Features, jet: Jet, first: int, dtype: Precision) -> NormalEquations:
    """Return the equations of the values. If ``first`` > 0, only columns and moments of later neurons are computed."""
    jet = jet.only(())
    sums = _VALUE_SUMS[dtype](features, jet, first)
    for rows, design in features.design_blocks(jet.X, feature_blocks(len(jet), features.n_columns), dtype):
        if jet.functionals is not None:
            design[...] = value_design(features, jet[rows], np.empty(design.shape))
        sums.add(rows, design)
    return _equations(features, sums.parts())


def _from_derivatives(features: Features, jet: Jet, order: int, first: int, dtype: Precision) -> NormalEquations:
    """Return the equations of derivatives of one order, from neuron ``first`` on as in ``_from_values``."""
    sums = SlopeSums(features, jet, order, first, dtype)
    for group in slope_rows(jet, order):
        sums.start(group)
        buffer = None
        for block in feature_blocks(len(group.index), features.n_neurons):
            n = block.stop - block.start
            buffer = np.empty((n, features.n_neurons), dtype) if buffer is None else buffer
            sums.add(block, features.neurons(jet.X[group.index[block]], order, out=buffer[:n]))
    return _equations(features, sums.parts())


def _from_both(features: Features, jet: Jet, dtype: Precision) -> tuple[NormalEquations, NormalEquations]:
    """Return the equations of the values and of the gradients, which are all known: activations are computed once."""
    values, slopes = _VALUE_SUMS[dtype](features, jet, 0), SlopeSums(features, jet, 1, 0, dtype)
    (group,) = slope_rows(jet, 1)
    slopes.start(group)
    for rows, design, slope in features.design_and_slope_blocks(jet.X, dtype):
        values.add(rows, design)
        slopes.add(rows, slope)
    return _equations(features, values.parts()), _equations(features, slopes.parts())


def _is_complete(jet: Jet) -> bool:
    """Return whether all values and all gradients are known."""
    known = jet.gradients is not None and jet.frames is None and not np.isnan(jet.gradients).any()
    return len(jet) > 0 and bool(known) and bool(jet.has_value.all())
