"""Weighted points of standard normal variables, with many points at which limits are exceeded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from nurf._types import Array

KEPT = 8  # an eighth of the points of a level is kept; each starts a chain of eight points
MOST_LEVELS = 20  # 8^-20 is 1e-18
FIRST_STEP = 0.6  # first step of chains, in standard deviations; later steps adapt
ACCEPTED = 0.44  # share of accepted steps: with 0.3 the coefficient of variation is 1.2 times as large (5 sigma, d = 2)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Standard normal distributions around some centres (c, d), all with the same weight."""

    centres: Array

    def points(self, normals: Array) -> Array:
        """Return points (..., d) from independent standard normal variables (..., d + 1)."""
        own = np.minimum((len(self.centres) * norm.cdf(normals[..., 0])).astype(int), len(self.centres) - 1)
        return np.asarray(self.centres[own] + normals[..., 1:])

    def weights(self, points: Array) -> Array:
        """Return the ratios of the standard normal density to the density of the mixture at the points, (...)."""
        squares = -np.sum(self.centres**2, axis=1) / 2 + points @ self.centres.T
        return np.asarray(len(self.centres) * np.exp(-logsumexp(squares, axis=-1)))


def subset_points(
    margin: Callable[[Array], Array], normals: Array, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return points (R, m, d) of subset simulation, their weights (R, m), whose mean is one, and margins (R, m).

    The eighth of the points with the smallest margin is kept and continued by Markov chains, whose points are standard
    normal under the condition that the margin is no larger (Au, Beck 2001; steps of Papaioannou, Betz, Zwirglmaier,
    Straub 2015), until an eighth of them exceeds the limits. Points of a level that were not kept have the
    weight of the probability between two levels.

    Parameters
    ----------
    margin : callable
        Maps points (m, d) to numbers (m,), which are negative if the limits are exceeded.
    normals : array of shape (R, n, d)
        Independent sets of standard normal points, the first level of each.
    rng : numpy.random.Generator
    """
    found = [_levels(margin, points, rng) for points in normals]
    longest = max(len(weights) for _, weights, _ in found)
    points = np.zeros((len(found), longest, normals.shape[2]))
    weights, margins = np.zeros((len(found), longest)), np.full((len(found), longest), np.inf)
    for i, (own, shares, sizes) in enumerate(found):
        points[i, : len(own)], weights[i, : len(own)], margins[i, : len(own)] = own, longest * shares, sizes
    return points, weights, margins


def _levels(margin: Callable[[Array], Array], Z: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return the points (m, d) of all levels of one set, their shares (m,) of the probability, and margins (m,)."""
    n, step, left = len(Z), FIRST_STEP, 1.0
    sizes, points, shares, margins = margin(Z), [], [], []
    for _ in range(MOST_LEVELS):
        threshold = np.partition(sizes, n // KEPT - 1)[n // KEPT - 1]
        inside = sizes <= threshold
        last = threshold <= 0 or inside.all()
        points.append(Z)
        margins.append(sizes)
        shares.append(np.where(inside & ~last, 0.0, left / n))
        if last:
            break
        left *= float(inside.mean())
        starts = rng.permutation(np.flatnonzero(inside))[: n // KEPT]
        Z, sizes, step = _chains(margin, Z[starts], sizes[starts], threshold, step, rng)
    return np.concatenate(points), np.concatenate(shares), np.concatenate(margins)


def _chains(
    margin: Callable[[Array], Array], Z: Array, sizes: Array, threshold: float, step: float, rng: np.random.Generator
) -> tuple[Array, Array, float]:
    """Return points of chains below the threshold, starts included, their margins, and the length of the last step."""
    points, margins = [Z], [sizes]
    for i in range(1, KEPT):
        moved = np.sqrt(1 - step**2) * Z + step * rng.standard_normal(Z.shape)
        tried = margin(moved)
        inside = tried <= threshold
        Z, sizes = np.where(inside[:, None], moved, Z), np.where(inside, tried, sizes)
        points.append(Z)
        margins.append(sizes)
        step = float(min(1.0, step * np.exp((inside.mean() - ACCEPTED) / np.sqrt(i))))
    return np.concatenate(points), np.concatenate(margins), step
