"""Rules that choose ``alpha``: each estimates, for every alpha of a path, the error on fresh data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from nurf.jets import Array, Jet
from nurf.network import Features
from nurf.solvers.ridge import EPS, Ridge

TOLERANCE = 0.05


class Rule(ABC):
    """A way to estimate the root mean square error on fresh data for every alpha."""

    @abstractmethod
    def errors(self, ridge: Ridge, features: Features, jet: Jet, alphas: Array, weights: Array) -> Array:
        """Return the estimates, of shape (A,); ``weights`` (A, N + t, k) is ``ridge.solve(alphas)``."""


@dataclass(frozen=True, eq=False)
class Validation(Rule):
    """The paper's rule: the error on the training rows and the ``validation`` rows together (section 5)."""

    validation: Jet

    def errors(self, ridge: Ridge, features: Features, jet: Jet, alphas: Array, weights: Array) -> Array:
        """Return the root mean square over all rows of both sets, outputs added up."""
        held = self.validation
        y, w = held.y.reshape(len(held), 1, -1), held.row_weights
        total = ridge.total_weight * ridge.mean_square_residual(alphas).sum(axis=1)
        path = np.moveaxis(weights, 0, 1).reshape(features.n_columns, -1)
        for rows, design in features.design_blocks(held.X):
            predictions = (design @ path).reshape(len(design), len(alphas), -1)
            total += w[rows] @ np.sum((predictions - y[rows]) ** 2, axis=2)
        return np.asarray(np.sqrt(total / (ridge.total_weight + w.sum())))


@dataclass(frozen=True)
class GeneralizedCrossValidation(Rule):
    """``RSS / n / (1 - df / n)^2``, with ``df`` the trace of the map from data to predictions.

    ``n`` is the sum of the weights (a row of weight two counts as two rows), or the number of rows where that is
    larger (weights that add up to one are no row counts).
    """

    def errors(self, ridge: Ridge, features: Features, jet: Jet, alphas: Array, weights: Array) -> Array:
        """Return the square root of the criterion, outputs added up."""
        n = max(ridge.total_weight, float(ridge.n_rows))
        left = np.maximum(1 - ridge.degrees_of_freedom(alphas) / n, EPS)
        return np.asarray(np.sqrt(ridge.mean_square_residual(alphas).sum(axis=1)) / left)


@dataclass(frozen=True)
class LeaveOneOut(Rule):
    """The mean of ``(r_k / (1 - h_k))^2``: the exact residuals with one row left out, from the leverages ``h_k``.

    A row of weight two counts as two rows, of which one is left out. Where the weights add up to less than the number
    of rows, they are no row counts, and at most the mean weight is left out of a row.
    """

    def errors(self, ridge: Ridge, features: Features, jet: Jet, alphas: Array, weights: Array) -> Array:
        """Return the root mean square, outputs added up."""
        rows = jet.row_weights
        unit = ridge.total_weight / max(ridge.total_weight, float(ridge.n_rows))
        residuals, leverages = ridge.residuals(features, jet, alphas)
        left = 1 - leverages * (np.minimum(rows, unit) / rows)[:, None]
        squares = np.sum(residuals**2, axis=2) / np.maximum(left, EPS) ** 2
        return np.asarray(np.sqrt(rows @ squares / ridge.total_weight))


def largest_near_best(alphas: Array, errors: Array, tolerance: float = TOLERANCE) -> int:
    """Return the index of the largest alpha whose error is within ``tolerance`` of the best one (paper, section 5).

    >>> largest_near_best(np.array([1.0, 0.1, 0.01]), np.array([2.0, 1.04, 1.0]))
    1
    """
    near = np.flatnonzero(errors <= (1 + tolerance) * errors.min())
    return int(near[np.argmax(np.asarray(alphas)[near])])
