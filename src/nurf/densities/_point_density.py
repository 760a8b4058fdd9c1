"""The density of the data points, which turns sums over the data into integrals over the domain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import gammaln

from nurf._blocks import row_blocks
from nurf._types import Array
from nurf.jets import Jet

PointDensity = str | Callable[[Array], Array]


def check_rho(rho: PointDensity) -> None:
    """Raise a ``ValueError`` unless ``rho`` is a name or a function."""
    if not callable(rho) and rho not in ("uniform", "knn"):
        raise ValueError(f"`rho` must be 'uniform', 'knn' or a function, got {rho!r}")


def log_point_density(rho: PointDensity, jet: Jet) -> Array:
    """Return the logarithm of the density of the points at each point, of shape (n,)."""
    n = len(jet)
    if rho == "uniform":
        sides = np.ptp(jet.X, axis=0)
        return np.full(n, -np.log(sides[sides > 0]).sum())
    if rho == "knn":
        return _nearest_neighbours(jet.X, jet.weights(0))
    assert callable(rho)
    values = np.asarray(rho(jet.X), float)
    if values.shape != (n,):
        raise ValueError(f"`rho` must return {n} numbers > 0, got shape {values.shape}")
    if not np.all((values > 0) & np.isfinite(values)):
        raise ValueError(f"`rho` must return {n} numbers > 0, got the smallest {values.min()}")
    return np.asarray(np.log(values))


def relative_volumes(rho: PointDensity, jet: Jet) -> Array:
    """Return the volumes ``1 / rho(x_k)`` of the points, divided by the largest one, of shape (n,)."""
    logarithms = log_point_density(rho, jet)
    return np.asarray(np.exp(logarithms.min() - logarithms))


def _nearest_neighbours(X: Array, weights: Array) -> Array:
    """Return the logarithm of a nearest-neighbour estimate of the density of the points, of shape (n,).

    The estimate is the relative weight of the ``j`` nearest neighbours, divided by the volume of the ball that contains
    them; ``j`` is about the square root of the number of points.
    """
    n, d = X.shape
    if n < 2:
        return np.zeros(n)
    j = min(n - 1, max(1, round(np.sqrt(n))))
    tree, radii, shares = cKDTree(X), np.empty(n), np.empty(n)
    for rows in row_blocks(n, j):
        distances, neighbours = tree.query(X[rows], k=j + 1)
        radii[rows] = np.asarray(distances)[:, -1]
        shares[rows] = weights[np.asarray(neighbours)[:, 1:]].sum(axis=1) / weights.sum()
    radii = np.maximum(radii, radii[radii > 0].min() if np.any(radii > 0) else 1.0)
    log_volume = d / 2 * np.log(np.pi) - gammaln(d / 2 + 1) + d * np.log(radii)
    return np.asarray(np.log(shares) - log_volume)
