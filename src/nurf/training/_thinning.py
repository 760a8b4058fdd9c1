"""Derivatives of some samples only, if there are too many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nurf._types import Array, Index
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.solvers.process import row_total


def thinned(jet: Jet, max_rows: int) -> Jet:
    """Return a jet with at most ``max_rows`` rows: the derivatives of samples that are close to others are left out.

    Samples whose derivatives are kept are chosen one after the other, each as far as possible from those before.
    """
    total = row_total(jet)
    if total <= max_rows:
        return jet
    n_values, known = int(np.count_nonzero(jet.has_value)), np.zeros(len(jet), bool)
    for order in DERIVATIVE_KINDS:
        known |= jet.has_derivative(order)
    with_derivatives = np.flatnonzero(known)
    n = int((max_rows - n_values) * len(with_derivatives) / (total - n_values))
    kept = np.zeros(len(jet), bool)
    kept[with_derivatives[_spread(jet.X[with_derivatives], n)]] = True
    part = replace(jet, derivative_weight=np.where(kept, jet.weights(1), 0.0))
    return part[kept | jet.has_value]


def _spread(X: Array, n: int) -> Index:
    """Return the indices of ``n`` points, each as far as possible from those before, the first near the middle."""
    distances = np.full(len(X), np.inf)
    chosen = np.empty(n, np.int64)
    place = int(np.argmin(np.sum((X - X.mean(axis=0)) ** 2, axis=1)))
    for k in range(n):
        chosen[k] = place
        distances = np.minimum(distances, np.sum((X - X[place]) ** 2, axis=1))
        place = int(np.argmax(distances))
    return chosen
