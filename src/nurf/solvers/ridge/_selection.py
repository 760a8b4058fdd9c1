"""Rules that choose ``alpha``: each estimates, for every alpha of a path, the errors on fresh data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from nurf._types import Array, Index
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers._rows import row_count, rows_per_sample
from nurf.solvers.ridge._base import EPS, Ridge, stacked

TOLERANCE = 0.05
MANY_NEURONS = 1000  # from which on fewer samples leave, so that leaving them costs no more than the fit


class Rule(ABC):
    """A way to estimate the mean squared errors on fresh data for every alpha."""

    uses_other_rows: ClassVar[bool] = False  # than those of the fit
    probes: Array | None = None  # points at which fits are compared with each other

    def coarse(self) -> Rule:
        """Return a rule that costs less, for comparisons."""
        return self

    @abstractmethod
    def mean_squares(self, ridge: Ridge, alphas: Array, coefficients: Array) -> Array:
        """Return the estimates, of shape (A, k); ``coefficients`` (A, N + t, k) are ``ridge.solve(alphas)``."""

    def probed(self, ridge: Ridge, coefficients: Array) -> Array | None:
        """Return the predictions of all networks ``coefficients`` at the probes (A, m, k), if there are any."""
        if self.probes is None:
            return None
        blocks = [_predictions(design, coefficients) for _, design in ridge.features.design_blocks(self.probes)]
        return np.concatenate(blocks).swapaxes(0, 1)


@dataclass(frozen=True, eq=False)
class Validation(Rule):
    """The paper's rule: the error on the training rows and the ``validation`` rows together (section 5)."""

    validation: Jet
    uses_other_rows = True

    def mean_squares(self, ridge: Ridge, alphas: Array, coefficients: Array) -> Array:
        """Return those over the values of both sets."""
        sets = [rows.with_values() for rows in (ridge.jet, self.validation)]
        total = sum(_squares(ridge.features, rows, coefficients) for rows in sets)
        return np.asarray(total / sum(rows.weights(0).sum() for rows in sets))


def _squares(features: Features, jet: Jet, coefficients: Array) -> Array:
    """Return the weighted sums of the squared residuals of the values, (A, k) for networks ``coefficients``."""
    y, w = jet.y.reshape(len(jet), 1, -1), jet.weights(0)
    total = np.zeros((len(coefficients), y.shape[2]))
    for rows, design in features.design_blocks(jet.X):
        total += np.tensordot(w[rows], (_predictions(design, coefficients) - y[rows]) ** 2, axes=1)
    return total


def _predictions(design: Array, coefficients: Array) -> Array:
    """Return the values of networks ``coefficients`` (A, N + t, k) for rows of features (m, N + t): (m, A, k)."""
    return (design @ stacked(coefficients)).reshape(len(design), len(coefficients), -1)


@dataclass(frozen=True, eq=False)
class HeldOut(Rule):
    """The error on rows that were held out of the fit."""

    held_out: Jet
    probes: Array | None = None
    uses_other_rows = True

    def mean_squares(self, ridge: Ridge, alphas: Array, coefficients: Array) -> Array:
        """Return those over the values of these rows."""
        rows = self.held_out.with_values()
        return np.asarray(_squares(ridge.features, rows, coefficients) / rows.weights(0).sum())


@dataclass(frozen=True)
class GeneralizedCrossValidation(Rule):
    """``RSS / n / (1 - df / n)^2``, with ``df`` the trace of the map from data to predictions.

    ``n`` is the number of rows. Derivatives that count in the fit count here too.
    """

    def mean_squares(self, ridge: Ridge, alphas: Array, coefficients: Array) -> Array:
        """Return the criterion."""
        n = row_count(ridge.jet, ridge.loss)
        left = np.maximum(1 - ridge.degrees_of_freedom(alphas) / n, EPS)
        return np.asarray(ridge.mean_square_residual(alphas) / left[:, None] ** 2)


@dataclass(frozen=True)
class LeaveOneOut(Rule):
    """The mean square of the values' residuals when a sample leaves the fit, with its value and all its derivatives.

    They are exact, from one factorisation (``Ridge.left_out``).

    Parameters
    ----------
    max_rows : int, default 4096
        Where the samples have more rows in all (with more than 1000 neurons, in proportion fewer), a part of them
        leaves in turn: those that ``representative_samples`` picks, which do not miss the few samples where the
        function varies most.
    multiples : array of shape (n,), optional
        For how many samples of the fit each sample of ``Ridge.jet`` stands, if these are some of them.
    """

    max_rows: int = 4096
    multiples: Array | None = field(default=None, compare=False)

    def coarse(self) -> LeaveOneOut:
        """Return the rule with half the rows."""
        return replace(self, max_rows=self.max_rows // 2)

    def mean_squares(self, ridge: Ridge, alphas: Array, coefficients: Array) -> Array:
        """Return those over the samples."""
        jet = ridge.jet
        stand_for = np.ones(len(jet)) if self.multiples is None else self.multiples
        weights = np.where(jet.has_value, jet.weights(0) * stand_for, 0.0)
        rows = self.max_rows * MANY_NEURONS // max(ridge.n_neurons, MANY_NEURONS)
        index, multiples = representative_samples(jet, weights, max(1, rows // rows_per_sample(jet, ridge.loss)))
        left = ridge.left_out(alphas, index, np.ones(len(index)))[:, 0]
        return np.asarray(np.tensordot(multiples * stand_for[index], left**2, axes=1) / weights.sum())


def representative_samples(jet: Jet, weights: Array, n: int) -> tuple[Index, Array]:
    """Pick ``n`` samples that stand for all, more densely where values and gradients are large.

    Half of the samples are picked in proportion to their ``weights`` and half in proportion to ``weights (|y|^2 +
    |g|^2)``, by equal steps along the cumulated sum, and each stands for the inverse of how likely it was picked, so
    that sums over the samples stay right.

    Returns
    -------
    index : array of shape (m,)
    multiples : array of shape (m,)
        For how many samples each of them stands.
    """
    known = np.flatnonzero(weights)
    if len(known) <= n:
        return known, np.ones(len(known))
    energies = np.nansum(jet.y.reshape(len(jet), -1)[known] ** 2, axis=1)
    if "gradients" in jet.known:
        energies += np.sum(jet.derivative_rows(1)[known] ** 2, axis=(1, 2))
    chances = weights[known] / weights.sum()
    uneven = chances * energies
    chances = (chances + uneven / uneven.sum()) / 2 if uneven.sum() > 0 else chances
    steps = (np.arange(n) + 0.5) / n
    picked, times = np.unique(np.searchsorted(np.cumsum(chances), steps * chances.sum()), return_counts=True)
    return known[picked], times / (n * chances[picked])


def largest_near_best(alphas: Array, errors: Array, tolerance: float = TOLERANCE) -> int:
    """Return the index of the largest alpha whose error is within ``tolerance`` of the best one (paper, section 5).

    >>> largest_near_best(np.array([1.0, 0.1, 0.01]), np.array([2.0, 1.04, 1.0]))
    1
    """
    (near,) = (errors <= (1 + tolerance) * errors.min()).nonzero()
    return int(near[alphas[near].argmax()])
