"""What fits without each fold say about their error where there are no samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import KDTree

from nurf._types import Array
from nurf.networks import Network

SEED = 7  # of the only random numbers that combine coordinates of samples
N_PLACES = 200  # five networks of 1000 neurons take 10 ms there; one place in 200 is rarer than one sample in 150


def error_elsewhere(folds: Sequence[Network], points: Array) -> float:
    """Return the mean square of the error that fits without each fold show where there are no samples.

    Left-out samples do not show every error. If networks vary along one direction only, few samples are at the ends of
    this direction, but new points with the same distribution go beyond them, where fits may grow like polynomials. With
    the fits ``f_{-j}`` without fold ``j`` of ``J`` and their mean ``f``, the jackknife's variance is
    ``v(x) = (J - 1) mean_j (f_{-j}(x) - f(x))^2``. Return the mean excess of ``v`` at ``places`` over the largest ``v``
    at a sample, summed over the outputs.

    Parameters
    ----------
    folds : sequence of Network
    points : array of shape (n, d)
        The samples.
    """
    at_samples, elsewhere = (_variances(folds, X) for X in (points, places(points)))
    return float(np.sum(np.maximum(elsewhere - at_samples.max(axis=0), 0.0)) / max(1, len(elsewhere)))


def places(points: Array) -> Array:
    """Return points where new points may be, if inputs are independent: at most 200, shape (m, d).

    Each coordinate is the coordinate of some sample. Points that are farther from all samples than any sample is from
    the other samples are left out, because inputs may depend on each other.
    """
    points = np.unique(points, axis=0)
    n, d = points.shape
    mixed = np.take_along_axis(points, np.random.default_rng(SEED).integers(n, size=(N_PLACES, d)), axis=0)
    deviations = points.std(axis=0)
    units = np.where(deviations > 0, deviations, 1.0)
    tree = KDTree(points / units)
    gaps, _ = tree.query(points / units, k=[2])  # the first is the sample itself
    return np.asarray(mixed[tree.query(mixed / units)[0] <= np.max(gaps)])


def _variances(folds: Sequence[Network], X: Array) -> Array:
    """Return the jackknife's variances of the values at the points, of shape (m, k)."""
    values = np.stack([fold.value(X).reshape(len(X), fold.n_outputs) for fold in folds])
    return np.asarray((len(folds) - 1) * values.var(axis=0))
