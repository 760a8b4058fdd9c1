"""Normal equations of the outer weights, accumulated in row blocks and mergeable with ``+``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nurf.jets import Array, Jet
from nurf.network import Features


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """All that least squares needs to know of the data: ``Z^T W Z``, ``Z^T W y`` and ``y^T W y``.

    ``Z`` (n, N + t) holds the features, neurons first, then the monomials of the tail; ``W`` the row weights. Those of
    two sets of rows add up to those of their union.

    Parameters
    ----------
    gram : array of shape (N + t, N + t)
    moments : array of shape (N + t, k)
    energy : array of shape (k,)
    total_weight : float
        Sum of the row weights.
    n_rows : int
        Number of rows of positive weight.
    n_neurons : int
        ``N``; the columns behind are the tail's.
    """

    gram: Array
    moments: Array
    energy: Array
    total_weight: float
    n_rows: int
    n_neurons: int

    @classmethod
    def from_data(cls, features: Features, jet: Jet) -> NormalEquations:
        """Accumulate over the rows of ``jet``, in blocks."""
        columns, y = features.n_columns, jet.y.reshape(len(jet), -1)
        gram, moments = np.zeros((columns, columns)), np.zeros((columns, y.shape[1]))
        for design, targets in _weighted_blocks(features, jet):
            gram += design.T @ design  # one symmetric product: NumPy sees that both are the same array
            moments += design.T @ targets
        weights = jet.row_weights
        return cls(
            gram=gram,
            moments=moments,
            energy=weights @ y**2,
            total_weight=float(weights.sum()),
            n_rows=int(np.count_nonzero(weights)),
            n_neurons=features.n_neurons,
        )

    def grown(self, features: Features, jet: Jet) -> NormalEquations:
        """Return the equations of more neurons on the same rows: ``features`` has the old neurons, then new ones.

        Only what involves a new neuron is computed.
        """
        old, total = self.n_neurons, features.n_neurons
        new = total - old
        square, moments = np.zeros((new, new)), np.zeros((new, self.moments.shape[1]))
        cross = np.zeros((self.gram.shape[0], new))
        for design, targets in _weighted_blocks(features, jet):
            fresh = np.ascontiguousarray(design[:, old:total])
            square += fresh.T @ fresh
            cross[:old] += design[:, :old].T @ fresh
            cross[old:] += design[:, total:].T @ fresh
            moments += fresh.T @ targets
        gram = np.empty((features.n_columns, features.n_columns))
        kept = np.r_[:old, total : features.n_columns]
        gram[np.ix_(kept, kept)] = self.gram
        gram[kept, old:total], gram[old:total, kept] = cross, cross.T
        gram[old:total, old:total] = square
        return replace(self, gram=gram, moments=np.insert(self.moments, old, moments, axis=0), n_neurons=total)

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
            self.n_rows + other.n_rows,
            self.n_neurons,
        )


def _weighted_blocks(features: Features, jet: Jet) -> Iterator[tuple[Array, Array]]:
    """Yield the features and the values of row blocks, both times the square roots of the row weights."""
    y = jet.y.reshape(len(jet), -1)
    for rows, design in features.design_blocks(jet.X):
        if jet.weights is None:
            yield design, y[rows]
        else:
            roots = np.sqrt(jet.weights[rows, None])
            design *= roots
            yield design, y[rows] * roots
