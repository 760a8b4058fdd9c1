"""Folds: the only place that splits samples."""

from __future__ import annotations

import numpy as np

from nurf._blocks import numbered
from nurf._types import Index, Mask
from nurf.jets import Jet

SEED = 5  # of the only random numbers that assign samples to folds


def assign_folds(jet: Jet, n_folds: int) -> Index:
    """Return the fold of each sample, shape (n,): random, of nearly equal sizes, and the same at every call.

    Samples at equal points are in one fold, so that no fit sees the point at which it is judged. Points with a value
    are spread over the folds first, then points with a functional; if both are fewer than ``n_folds``, each of them has
    a fold of its own. Values that do not judge are in no fold: -1.
    """
    point_of = numbered(jet.X)
    masks = np.zeros((3, point_of.max(initial=-1) + 1), bool)  # of points: with a value, with a functional, that judge
    for mask, rows in zip(masks, (jet.has_value, jet.has_functional, jet.judges), strict=True):
        mask[point_of[rows]] = True
    valued, further, judging = masks
    n_folds = min(int(np.count_nonzero(judging)), n_folds)
    rng, fold_of = np.random.default_rng(SEED), np.empty(len(valued), np.int64)
    for part in (valued, further & ~valued, ~further & ~valued):
        fold_of[part] = rng.permutation(int(np.count_nonzero(part))) % n_folds
    fold_of[valued & ~judging] = -1
    return np.asarray(np.where(jet.has_value & ~jet.judges, -1, fold_of[point_of]))


def fold_masks(jet: Jet, folds: int | Index) -> list[Mask]:
    """Return the masks (n,) of the samples in each fold in which a sample of positive weight judges.

    Parameters
    ----------
    jet : Jet
    folds : int or array of shape (n,)
        The number of folds (``assign_folds``), or the fold of each sample; -1 for none.
    """
    fold_of = assign_folds(jet, folds) if isinstance(folds, int) else folds
    judging = jet.judges & (jet.weights(0) > 0)
    return [fold_of == fold for fold in np.unique(fold_of[judging]) if fold >= 0]
