"""Errors of processes at samples that they did not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nurf._types import Array, Index, Mask
from nurf.solvers._coverage import effective_number, standard_error
from nurf.solvers.process._process import TINY, Process


def mixture(means: Array, deviations: Array, weights: Array) -> tuple[Array, Array]:
    """Return the mean and the standard deviation of a mixture, of shape (...).

    The mean is ``m = sum_i w_i m_i``, and the standard deviation is the root of ``sum_i w_i (s_i^2 + (m_i - m)^2)``.

    Parameters
    ----------
    means, deviations : array of shape (m, ...)
    weights : array of shape (m,)
    """
    mean = np.tensordot(weights, means, 1)
    return mean, np.sqrt(np.tensordot(weights, deviations**2 + (means - mean) ** 2, 1))


@dataclass(frozen=True, eq=False)
class HeldOutErrors:
    """Errors at samples that a process did not see, and its standard deviations there.

    Parameters
    ----------
    errors, deviations : array of shape (m, k)
        Errors and standard deviations of the values, followed by sums.
    weights : array of shape (m,)
        The weights of these samples.
    gradient_errors, gradient_deviations : array of shape (g, k, d)
        Errors and standard deviations of the gradients; NaN if unknown.
    """

    errors: Array
    deviations: Array
    weights: Array
    gradient_errors: Array
    gradient_deviations: Array

    @classmethod
    def one_by_one(cls, process: Process, n_features: int) -> HeldOutErrors:
        """Return the leave-one-out errors of the samples in closed form, with fixed scales and noise."""
        rows, (errors, variances) = process.rows, process.left_out
        deviations = np.sqrt(np.maximum(variances[:, None] * process.variances, TINY))
        values, first = rows.judges, rows.orders == 1
        shape = (int(rows.samples.max()) + 1, errors.shape[1], n_features)
        slopes = np.full(shape, np.nan), np.full(shape, np.nan)
        if first.any():
            directions = rows.parts[1].directions[0]
            inputs = np.argmax(np.abs(directions), axis=1)
            along = np.abs(directions[np.arange(len(inputs)), inputs]) == 1  # not derivatives along other directions
            for slope, part in zip(slopes, (errors, deviations), strict=True):
                slope[rows.samples[first][along], :, inputs[along]] = part[first][along]
        return cls(errors[values], deviations[values], rows.weights[values], *slopes)

    def with_deviations(self, others: HeldOutErrors) -> HeldOutErrors:
        """Return the errors of this object with the standard deviations of ``others``."""
        return replace(self, deviations=others.deviations, gradient_deviations=others.gradient_deviations)

    def times(self, factors: Array) -> HeldOutErrors:
        """Return the errors multiplied by factors of shape (k,)."""
        return replace(self, errors=factors * self.errors, gradient_errors=factors[:, None] * self.gradient_errors)

    def size_over(self, others: HeldOutErrors) -> Array:
        """Return the ratios of the root mean square errors of this object and of ``others``, of shape (k,)."""
        own, other = (np.sqrt(np.mean(each.errors**2, axis=0)) for each in (self, others))
        return np.asarray(np.divide(own, other, out=np.ones_like(own), where=other > 0))

    @classmethod
    def of_folds(
        cls, parts: Sequence[HeldOutErrors], folds: Sequence[Mask], samples: Index, expected: HeldOutErrors
    ) -> HeldOutErrors:
        """Return the errors of one process for each fold at the samples of the fold.

        Parameters
        ----------
        parts : sequence of HeldOutErrors
            The errors of each process at all samples.
        folds : sequence of array of shape (n,)
            The mask of the samples in each fold.
        samples : array of shape (m,)
            The samples of the values and sums.
        expected : HeldOutErrors
            Errors with the standard deviations to use.
        """
        errors, slopes = expected.errors.copy(), expected.gradient_errors.copy()
        for part, fold in zip(parts, folds, strict=True):
            errors[fold[samples]] = part.errors[fold[samples]]
            slopes[fold[: len(slopes)]] = part.gradient_errors[fold[: len(slopes)]]
        return replace(expected, errors=errors, gradient_errors=slopes)

    def changed(self, before: HeldOutErrors, after: HeldOutErrors) -> HeldOutErrors:
        """Return errors that change as the errors ``before`` changed to ``after`` at the same samples."""
        errors = self.errors + (after.errors - before.errors)
        slopes = self.gradient_errors + (after.gradient_errors - before.gradient_errors)
        return replace(self, errors=errors, gradient_errors=slopes)

    def at_least(self, residuals: Array) -> HeldOutErrors:
        """Return the errors, or the residuals (m, k) of the fit to all samples where these are larger.

        A left-out sample is predicted worse than a fitted sample, except for rounding errors. Rounding errors of the
        coefficients of a smooth function can dominate its error, and differ between closed forms and refits.
        """
        errors = np.where(np.abs(self.errors) < np.abs(residuals), residuals, self.errors)
        return replace(self, errors=errors)

    @classmethod
    def mixed(cls, parts: Sequence[HeldOutErrors], weights: Array) -> HeldOutErrors:
        """Return the errors of the mixture of some processes, at the same samples."""
        fields = ("errors", "deviations", "gradient_errors", "gradient_deviations")
        errors, deviations, *slopes = (np.stack([getattr(part, name) for part in parts]) for name in fields)
        values = mixture(errors, deviations, weights)
        return cls(*values, parts[0].weights, *mixture(slopes[0], slopes[1], weights))

    @property
    def effective(self) -> float:
        """The effective number of samples."""
        return effective_number(self.weights)

    @property
    def output_errors(self) -> Array:
        """The root mean square error of each output, and one standard error, of shape (k,)."""
        luck = 1 + standard_error(self.effective)
        return np.asarray(luck * np.sqrt(self.weights @ self.errors**2 / self.weights.sum()))

    @property
    def ratios(self) -> Array:
        """The absolute errors of the values in units of the standard deviations, of shape (m, k)."""
        return np.asarray(np.abs(self.errors) / np.maximum(self.deviations, TINY))

    @property
    def gradient_ratios(self) -> Array:
        """The absolute errors of the gradients in units of the standard deviations, of shape (g, k, d)."""
        return np.asarray(np.abs(self.gradient_errors) / np.maximum(self.gradient_deviations, TINY))


def typical_error(process: Process) -> float:
    """Return the leave-one-out error of all rows, to compare processes that are given the same rows.

    This is the geometric mean over the orders of derivatives of the mean absolute errors, outputs added up. Partial
    derivatives count as much as values, in any units, and no single large error decides. With sums it is the root mean
    square error of values and sums.
    """
    rows, absolute = process.rows, np.abs(process.left_out[0])
    if rows.sums is not None:
        squares = rows.judging_weights @ absolute**2
        return float(np.sqrt(np.sum(squares) / np.count_nonzero(rows.judges)))
    weights = [np.where(rows.orders == order, rows.weights, 0.0) for order in np.unique(rows.orders)]
    means = [np.linalg.norm(each @ absolute) / each.sum() for each in weights]
    return float(np.prod(means) ** (1 / len(means)))
