"""Normal equations of the outer weights, accumulated in row blocks and mergeable with ``+``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsyrk

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
        y = jet.y.reshape(len(jet), -1)
        columns = features.n_columns
        gram = np.zeros((columns, columns), order="F")
        moments = np.zeros((columns, y.shape[1]))
        for rows, design in features.design_blocks(jet.X):
            targets = y[rows]
            if jet.weights is not None:
                roots = np.sqrt(jet.weights[rows, None])
                design *= roots
                targets = targets * roots
            gram = dsyrk(1.0, design.T, beta=1.0, c=gram, overwrite_c=True)
            moments += design.T @ targets
        weights = jet.row_weights
        return cls(
            gram=np.triu(gram) + np.triu(gram, 1).T,
            moments=moments,
            energy=weights @ y**2,
            total_weight=float(weights.sum()),
            n_rows=int(np.count_nonzero(weights)),
            n_neurons=features.n_neurons,
        )

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
