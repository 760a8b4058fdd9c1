"""Changes of the values between neighbours, compared with what gradients make of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from nurf._types import Array, Index

NEIGHBOURS = 10  # of each sample
RESOLVED = 0.05  # share of the median change below which changes are not compared: the trapezoidal rule is no better
CLEARLY = 1.0  # least mean log ratio of squares; if gradients are right, only staircases exceed it, with up to 1.8
LEAST = 1e-100  # probability


@dataclass(frozen=True, eq=False)
class NeighbourChanges:
    """Changes of the values from each sample to its neighbours, in coordinates in which the samples are spread evenly.

    A change of the values is nearly the step times the mean of both gradients (the trapezoidal rule), also where the
    function has kinks and many inputs, and the values alone do not determine its gradients.

    Parameters
    ----------
    neighbours : array of shape (m, c)
        The nearest samples of each sample.
    changes : array of shape (m, c)
        The differences of the values.
    steps : array of shape (m, c, d)
        The differences of the points.
    least : float
        The square of a change that is not resolved.
    """

    neighbours: Index
    changes: Array
    steps: Array
    least: float

    @classmethod
    def of(cls, points: Array, values: Array, scales: Array, noise: float) -> NeighbourChanges:
        """Return the changes between points (m, d), which are near each other relative to the scales (d,)."""
        m = len(points)
        scaled = points / scales
        squares = np.sum(scaled**2, axis=1)
        distances = squares[:, None] + squares - 2 * scaled @ scaled.T
        np.fill_diagonal(distances, np.inf)
        count = min(NEIGHBOURS, m - 1)
        near = np.argpartition(distances, count - 1, axis=1)[:, :count] if count > 0 else np.empty((m, 0), np.int64)
        changes = values[:, None] - values[near]
        unresolved = RESOLVED * float(np.median(np.abs(changes))) if changes.size else 0.0
        return cls(near, changes, points[:, None] - points[near], 2 * noise**2 + unresolved**2)

    def scores(self, slopes: Array) -> Array:
        """Return the scores of the agreement of gradients (m, d) with the changes at each sample, of shape (2, m).

        Logarithms of the squared changes, and of the squares of what gradients make of them, over the squared
        differences: noise of the gradients lowers the first, and a factor that is too small the second. Where
        derivatives are unknown the score is zero.
        """
        guesses = np.einsum("mcd,mcd->mc", (slopes[:, None] + slopes[self.neighbours]) / 2, self.steps)
        gaps = (self.changes - guesses) ** 2
        squares = np.stack([self.changes**2, guesses**2])
        ratios = np.nan_to_num(np.log((squares + self.least) / (gaps + self.least)))
        return np.asarray(ratios.sum(axis=2) / max(self.changes.shape[1], 1))

    def odds(self, gains: Array) -> float:
        """Return the log-odds that gains of scores (2, m) are not due to chance, by Student's test.

        Neighbours share their changes, so that half of the samples count. Gains must be large as well as certain: a
        wrong factor may explain the trend along a staircase a little at all samples.
        """
        means, freedom = gains.mean(axis=1), gains.shape[1] / 2
        if freedom <= 1 or not means.min() > CLEARLY:
            return 0.0
        spread = np.sqrt(gains.var(axis=1) / freedom)
        t = float(np.min(means / np.maximum(spread, LEAST)))
        return float(-np.log(max(stdtr(freedom - 1, -t), LEAST)))
