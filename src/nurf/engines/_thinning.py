"""A part of the samples and of their derivatives, if there are too many for one factorisation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nurf._blocks import spaced
from nurf._types import Array, Index
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.solvers.process import row_total

CROWD = 4  # the largest number of candidates for each chosen sample


def thinned(jet: Jet, max_rows: int) -> tuple[Jet, Index]:
    """Return a jet with at most ``max_rows`` values and derivatives, and the numbers of its samples in the whole jet.

    If the values fit, all are kept, and derivatives of samples that are close to others are left out. Otherwise half of
    the rows (all without derivatives) are values of spread-out samples: samples are chosen one after the other, each as
    far as possible from the chosen ones.
    """
    total, everything = row_total(jet), np.arange(len(jet))
    if total <= max_rows:
        return jet, everything
    if jet.functionals is not None:
        return _with_functionals(jet, max_rows)
    n_values = int(np.count_nonzero(jet.has_value))
    if n_values > max_rows:
        n = max(1, max_rows // 2) if jet.known else max_rows
        crowd = spaced(np.flatnonzero(jet.has_value), CROWD * n)
        chosen = np.sort(crowd[_spread(jet.X[crowd], n)])
        part, places = thinned(jet[chosen], max_rows)
        return part, chosen[places]
    known = np.zeros(len(jet), bool)
    for order in DERIVATIVE_KINDS:
        known |= jet.has_derivative(order)
    with_derivatives = np.flatnonzero(known)
    n = int((max_rows - n_values) * len(with_derivatives) / (total - n_values))
    kept = np.zeros(len(jet), bool)
    kept[with_derivatives[_spread(jet.X[with_derivatives], n)]] = True
    part = replace(jet, derivative_weight=np.where(kept, jet.weights(1), 0.0))
    used = kept | jet.has_value
    return part[used], everything[used]


def _with_functionals(jet: Jet, max_rows: int) -> tuple[Jet, Index]:
    """Return a jet with all its functionals, and the other rows thinned by ``thinned``."""
    own = jet.has_functional
    others, left = np.flatnonzero(~own), max_rows - row_total(jet[own])
    if left < 1:
        raise ValueError(
            f"`max_rows` must be more than the number of derivatives at points of which `functionals` consist, got "
            f"{max_rows} and {row_total(jet[own])}: use fewer points or nodes, or RandomFeatureRegressor"
        )
    plain = replace(jet[others], functionals=None)
    part, places = thinned(plain, left)
    kept = np.concatenate([others[places], np.flatnonzero(own)])
    order = np.argsort(kept)
    return (part + jet[own])[order], kept[order]


def _spread(X: Array, n: int) -> Index:
    """Return the indices of ``n`` points, each as far as possible from the earlier ones, the first near the middle."""
    distances = np.full(len(X), np.inf)
    chosen = np.empty(n, np.int64)
    place = int(np.argmin(np.sum((X - X.mean(axis=0)) ** 2, axis=1)))
    for k in range(n):
        chosen[k] = place
        distances = np.minimum(distances, np.sum((X - X[place]) ** 2, axis=1))
        place = int(np.argmax(distances))
    return chosen
