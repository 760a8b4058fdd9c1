"""Rules that choose ``alpha``: each estimates the errors on new data for every alpha of a path."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from nurf._types import Array, Index
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers._rows import row_count, rows_per_sample, value_design
from nurf.solvers.ridge._base import EPS, Ridge, stacked

TOLERANCE = 0.05
TINY = float(np.finfo(float).tiny)
MANY_NEURONS = 1000  # with more neurons, fewer samples are left out, so that this costs no more than the fit


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Errors at samples that are left out of the fit, along a path of alphas.

    Parameters
    ----------
    errors : array of shape (m, A, k)
        Errors of the values.
    weights : array of shape (m,)
        The weights of the samples.
    samples : array of shape (m,)
        The indices of the samples.
    total : float
        The sum of the weights of all samples that the given ones represent.
    """

    errors: Array
    weights: Array
    samples: Index
    total: float

    @property
    def mean_squares(self) -> Array:
        """The mean squared errors, shape (A, k)."""
        return np.asarray(np.tensordot(self.weights, self.errors**2, axes=1) / self.total)


class Rule(ABC):
    """A way to estimate the errors on new data for every alpha."""

    n_other_rows: int = 0  # further rows, after the rows of the fit

    def coarse(self) -> Rule:
        """Return a cheaper rule, for comparisons between networks."""
        return self

    def with_others(self, change: Callable[[Jet], Jet]) -> Rule:
        """Return the rule with its further rows changed by a function, if it has some."""
        return self

    @abstractmethod
    def left_out(self, ridge: Ridge, alphas: Array, coefficients: Array) -> LeftOut:
        """Return the left-out errors for every alpha; ``coefficients`` (A, N + t, k) are ``ridge.solve(alphas)``."""

    def squares(self, left_out: LeftOut) -> Array:
        """Return the squared error that decides between alphas, by default the mean square, shape (A, k)."""
        return left_out.mean_squares

    def mean_squares(self, ridge: Ridge, alphas: Array, coefficients: Array) -> Array:
        """Return the estimated mean squared errors, shape (A, k)."""
        return self.squares(self.left_out(ridge, alphas, coefficients))


@dataclass(frozen=True, eq=False)
class Validation(Rule):
    """The paper's rule: the error on the training rows and the ``validation`` rows together (section 5)."""

    validation: Jet

    @property
    def n_other_rows(self) -> int:  # type: ignore[override]
        """The number of validation rows."""
        return len(self.validation)

    def with_others(self, change: Callable[[Jet], Jet]) -> Validation:
        """Return the rule with validation rows changed by a function."""
        return Validation(change(self.validation))

    def left_out(self, ridge: Ridge, alphas: Array, coefficients: Array) -> LeftOut:
        """Return the errors at the values of both sets, training rows first."""
        rows = ridge.jet.only(()) + self.validation.only(())
        return _errors(ridge.features, rows, coefficients)


def _errors(features: Features, jet: Jet, coefficients: Array, samples: Index | None = None) -> LeftOut:
    """Return the errors at the values of a jet, whose rows have the indices ``samples``, for all ``coefficients``."""
    index = np.flatnonzero(jet.has_target)
    known = jet if len(index) == len(jet) else jet[index]
    y, weights = known.targets[:, None], known.weights(0)
    errors = np.empty((len(known), len(coefficients), y.shape[2]))
    for rows, design in features.design_blocks(known.X):
        if known.functionals is not None:
            value_design(features, known[rows], out=design)
        errors[rows] = y[rows] - _predictions(design, coefficients)
    return LeftOut(errors, weights, index if samples is None else samples[index], float(weights.sum()))


def _predictions(design: Array, coefficients: Array) -> Array:
    """Return the predictions (m, A, k) for rows of features (m, N + t) and coefficients (A, N + t, k)."""
    return (design @ stacked(coefficients)).reshape(len(design), len(coefficients), -1)


@dataclass(frozen=True, eq=False)
class HeldOut(Rule):
    """The error on held-out rows.

    Parameters
    ----------
    held_out : Jet
    samples : array of shape (m,)
        The indices of the held-out rows among all samples.
    """

    held_out: Jet
    samples: Index

    def left_out(self, ridge: Ridge, alphas: Array, coefficients: Array) -> LeftOut:
        """Return the errors at the values of the held-out rows."""
        return _errors(ridge.features, self.held_out, coefficients, self.samples)


@dataclass(frozen=True)
class GeneralizedCrossValidation(Rule):
    """``RSS / n / (1 - df / n)^2``, with ``df`` the trace of the hat matrix.

    ``n`` is the number of rows, including derivatives if they are in the loss of the fit.
    """

    def left_out(self, ridge: Ridge, alphas: Array, coefficients: Array) -> LeftOut:
        """Return the residuals of the values, scaled so that their mean square is the criterion."""
        found = _errors(ridge.features, ridge.jet, coefficients)
        n = row_count(ridge.jet, ridge.loss)
        left = np.maximum(1 - ridge.degrees_of_freedom(alphas) / n, EPS)
        criterion = ridge.mean_square_residual(alphas) / left[:, None] ** 2
        return replace(found, errors=found.errors * np.sqrt(criterion / np.maximum(found.mean_squares, TINY)))


@dataclass(frozen=True)
class LeaveOneOut(Rule):
    """The mean squared leave-one-out error of the values; a sample is left out with its value and all derivatives.

    A functional with a known value is also a sample, in units of its size.

    The errors are exact and need one factorisation (``Ridge.left_out``).

    Parameters
    ----------
    max_rows : int, default 4096
        If the samples have more rows (with more than 1000 neurons, proportionally fewer), only the samples chosen by
        ``representative_samples`` are left out in turn, which include the few samples where the function varies most.
    multiples : array of shape (n,), optional
        The number of fitted samples that each sample of ``Ridge.jet`` represents, if it contains only some of them.
    """

    max_rows: int = 4096
    multiples: Array | None = field(default=None, compare=False)

    def coarse(self) -> LeaveOneOut:
        """Return the rule with half the rows."""
        return replace(self, max_rows=self.max_rows // 2)

    def left_out(self, ridge: Ridge, alphas: Array, coefficients: Array) -> LeftOut:
        """Return the leave-one-out errors of the chosen samples."""
        jet = ridge.jet
        stand_for = np.ones(len(jet)) if self.multiples is None else self.multiples
        weights = np.where(jet.judges, jet.weights(0) * stand_for, 0.0)
        rows = self.max_rows * MANY_NEURONS // max(ridge.n_neurons, MANY_NEURONS)
        index, multiples = representative_samples(jet, weights, max(1, rows // rows_per_sample(jet, ridge.loss)))
        left = ridge.left_out(alphas, index, np.ones(len(index)))[:, 0]
        errors = left / np.sqrt(jet.weights(0)[index])[:, None, None]
        return LeftOut(errors, multiples * weights[index], index, float(weights.sum()))


def representative_samples(jet: Jet, weights: Array, n: int) -> tuple[Index, Array]:
    """Return at most ``n`` representative samples, more densely where values and gradients are large.

    Half of the samples are drawn in proportion to their ``weights`` and half in proportion to ``weights (|y|^2 +
    |g|^2)``, by equal steps along the cumulative sum. Each is weighted by the inverse of its probability, so that sums
    over the samples are unbiased.

    Returns
    -------
    index : array of shape (m,)
    multiples : array of shape (m,)
        The number of samples that each chosen sample represents.
    """
    known = np.flatnonzero(weights)
    if len(known) <= n:
        return known, np.ones(len(known))
    energies = np.nansum(jet.targets[known] ** 2, axis=1)
    if "gradients" in jet.known:
        energies += np.sum(jet.derivative_rows(1)[known] ** 2, axis=(1, 2))
    chances = weights[known] / weights.sum()
    uneven = chances * energies
    chances = (chances + uneven / uneven.sum()) / 2 if uneven.sum() > 0 else chances
    steps = (np.arange(n) + 0.5) / n
    picked, times = np.unique(np.searchsorted(np.cumsum(chances), steps * chances.sum()), return_counts=True)
    return known[picked], times / (n * chances[picked])


def largest_near_best(alphas: Array, errors: Array, tolerance: float = TOLERANCE) -> int:
    """Return the index of the largest alpha whose error is within ``tolerance`` of the lowest error (paper, section 5).

    >>> largest_near_best(np.array([1.0, 0.1, 0.01]), np.array([2.0, 1.04, 1.0]))
    1
    """
    (near,) = (errors <= (1 + tolerance) * errors.min()).nonzero()
    return int(near[alphas[near].argmax()])
