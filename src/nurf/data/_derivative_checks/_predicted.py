"""The agreement of gradients with a prediction from the values, and comparisons between corrections."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from nurf._types import Array, Index, Mask
from nurf.data._derivative_checks._neighbours import NeighbourChanges
from nurf.data._derivative_checks._slopes import SlopeProcess, spread_evenly

MAX_ROWS = 300  # samples of the process: 40 ms in 8 dimensions, of which the factorisation takes 4
MAX_ENTRIES = 2400  # partial derivatives that are compared: all of 300 samples in 8 dimensions, 15 ms
EVIDENCE = 10.0  # log-odds from which gradients are wrong; right gradients had at most 8.8 in 14000 sets, for jumps
CLEAR = 3.0  # log-odds (20 to 1) from which one correction is better than another
EXPLAINED = 0.55  # share of the possible score: most shuffled rows exceed it in order, noise of 50% reaches 0.52
HUGE = 1e100  # a number whose square is finite


@dataclass(frozen=True, eq=False)
class Agreement:
    """How well gradients agree with the values: a score for each derivative, and one for each sample.

    Parameters
    ----------
    slopes : array of shape (2, m, d)
        The agreement with the gradients that the values predict.
    changes : array of shape (2, m)
        The agreement with the changes of the values between neighbours.
    """

    slopes: Array
    changes: Array

    def __sub__(self, other: Agreement) -> Agreement:
        return Agreement(self.slopes - other.slopes, self.changes - other.changes)


@dataclass(frozen=True, eq=False)
class PredictedSlopes:
    """The gradients of one output at some samples, as predicted from its values.

    Parameters
    ----------
    rows : array of shape (m,)
        The indices of the samples.
    chain : array of shape (n, d)
        Factors of the gradients at all samples, for coordinates in which the samples are spread evenly.
    means, deviations : array of shape (m, d)
        The predicted gradients and their standard deviations, in coordinates in which the samples are spread evenly.
    counts : array of shape (d,)
        Effective number of independent errors of each partial derivative.
    freedom : float
        Degrees of freedom of the prediction.
    noise : float
        The standard deviation of the noise in the values.
    neighbours : NeighbourChanges
        The changes of the values between the samples.
    """

    rows: Index
    chain: Array
    means: Array
    deviations: Array
    counts: Array
    freedom: float
    noise: float
    neighbours: NeighbourChanges

    @classmethod
    def of(cls, X: Array, y: Array, compared: Index) -> PredictedSlopes:
        """Return the gradients that values (n,) at points (n, d) predict at some of the rows ``compared``."""
        inputs, values = [spread_evenly(column) for column in X.T], spread_evenly(y)
        used = evenly(compared, MAX_ROWS)
        used = np.append(used, evenly(np.setdiff1d(np.arange(len(X)), compared), MAX_ROWS - len(used)))
        points, numbers = np.column_stack([column.numbers[used] for column in inputs]), values.numbers[used]
        process = SlopeProcess(points, numbers)
        some = evenly(np.arange(min(len(compared), MAX_ROWS)), max(MAX_ENTRIES // X.shape[1], 1))
        chain = values.slopes[:, None] / np.column_stack([column.slopes for column in inputs])
        noise = process.noise / float(np.median(values.slopes))
        neighbours = NeighbourChanges.of(points[some], numbers[some], process.scales, process.noise)
        return cls(used[some], chain, *process.slopes(some), min(process.freedom, len(some)), noise, neighbours)

    def scaled(self, gradients: Array) -> Array:
        """Return gradients (m, d) in coordinates in which the samples are spread evenly."""
        return np.clip(gradients * self.chain[self.rows], -HUGE, HUGE)

    def scores(self, gradients: Array) -> Array:
        """Return the scores of the agreement between gradients (m, d) and the prediction, of shape (2, m, d).

        The scores are logarithms of likelihood ratios of Cauchy distributions: of the prediction with the gradients and
        without them, and of the gradients with the prediction and without it. Details between the samples and noise of
        the gradients lower the first, errors of the prediction lower the second. Unknown derivatives have a score of
        zero.
        """
        found, spread = self.scaled(gradients), self.deviations**2
        gap = (found - self.means) ** 2 + spread
        return np.nan_to_num(np.log(np.stack([self.means**2 + spread, found**2 + spread]) / gap))

    def agreement(self, gradients: Array) -> Agreement:
        """Return the agreement of gradients (m, d) with the prediction and with the changes of the values."""
        return Agreement(self.scores(gradients), self.neighbours.scores(self.scaled(gradients)))

    def evidence(self, given: Agreement, corrected: Agreement, both: Mask) -> float:
        """Return the log-odds of a correction: that it explains the values, and better than the given gradients do.

        The larger one of two: by the predicted gradients at ``both`` derivatives (m, d) that are known before and after
        the correction, and by the changes between neighbours.
        """
        gains = np.where(both, corrected.slopes - given.slopes, 0.0)
        by_slopes = min(self.odds(gains), self.odds(corrected.slopes))
        near = self.neighbours
        return max(by_slopes, min(near.odds(corrected.changes - given.changes), near.odds(corrected.changes)))

    def clarity(self, gains: Agreement) -> float:
        """Return the log-odds that one correction is better than another, by the prediction or by the changes."""
        return max(self.odds(gains.slopes), self.neighbours.odds(gains.changes))

    def odds(self, gains: Array) -> float:
        """Return the log-odds that ``gains`` of scores (2, m, d) are not due to chance.

        The smaller of two numbers: the likelihood ratio for the effective number of independent errors, and Student's
        test of the mean over the samples (a likelihood ratio has a variance of at least 1).
        """
        ratio, rows = np.min(gains.mean(axis=1) @ self.counts), gains.sum(axis=2)
        t = np.min(rows.mean(axis=1) / np.sqrt((rows.var(axis=1) + 1) / self.freedom))
        return float(min(ratio, -np.log(max(stdtr(max(self.freedom - 1, 0.5), -t), 1 / HUGE))))

    def column_odds(self, gains: Array) -> Array:
        """Return the log-odds for the gains of each column alone, of shape (d,)."""
        return np.array([self.odds(gains * column) for column in np.eye(gains.shape[2])])

    def is_explained(self, scores: Array) -> bool:
        """Return whether scores (2, m, d) reach most of the maximum that the uncertainty of the prediction allows."""
        return bool(scores.sum(axis=(1, 2)).min() > EXPLAINED * np.log1p((self.means / self.deviations) ** 2).sum())

    def misfit(self, gradients: Array) -> float:
        """Return the median relative distance of gradients (m, d) from the prediction."""
        return _distance(self.scaled(gradients), self.means)

    def distance(self, gradients: Array, others: Array) -> float:
        """Return the median distance of gradients (m, d) from ``others``, relative to ``others``."""
        return _distance(self.scaled(gradients), self.scaled(others))


def evenly(rows: Index, count: int) -> Index:
    """Return at most ``count`` evenly spaced rows."""
    return rows if len(rows) <= count else rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]


def _distance(slopes: Array, others: Array) -> float:
    known = np.isfinite(slopes) & np.isfinite(others)
    gaps, sizes = np.where(known, slopes - others, 0.0), np.where(known, others, 0.0)
    ratios = np.linalg.norm(gaps, axis=1) / np.maximum(np.linalg.norm(sizes, axis=1), 1 / HUGE)
    return float(np.median(ratios[known.any(axis=1)])) if known.any() else np.nan
