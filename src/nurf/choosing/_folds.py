"""Folds: the only place that splits samples."""

from __future__ import annotations

import numpy as np

from nurf._types import Index
from nurf.jets import Jet

SEED = 5  # of the only random numbers that assign samples to folds


def assign_folds(jet: Jet, n_folds: int) -> Index:
    """Return the fold of each sample, shape (n,): random, of nearly equal sizes, and the same at every call.

    Samples at equal points are in one fold, so that no fit sees the point at which it is judged. Points with a value
    are spread over the folds first; if they are fewer than ``n_folds``, each of them has a fold of its own.
    """
    _, point_of = np.unique(jet.X, axis=0, return_inverse=True)
    point_of = point_of.ravel()
    valued = np.zeros(point_of.max(initial=-1) + 1, bool)
    valued[point_of[jet.has_value]] = True
    n_folds = min(int(np.count_nonzero(valued)), n_folds)
    rng, fold_of = np.random.default_rng(SEED), np.empty(len(valued), np.int64)
    for part in (valued, ~valued):
        fold_of[part] = rng.permutation(int(np.count_nonzero(part))) % n_folds
    return np.asarray(fold_of[point_of])
