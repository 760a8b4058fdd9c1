"""Errors of processes at samples that they did not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nurf._types import Array, Mask
from nurf.solvers._coverage import effective_number, standard_error
from nurf.solvers.process._process import TINY, Process


def mixture(means: Array, deviations: Array, weights: Array) -> tuple[Array, Array]:
    """Return the mean and the standard deviation of a mixture, of shape (...).

    They are ``m = sum_i w_i m_i`` and the root of ``sum_i w_i (s_i^2 + (m_i - m)^2)``.

    Parameters
    ----------
    means, deviations : array of shape (m, ...)
    weights : array of shape (m,)
    """
    mean = np.tensordot(weights, means, 1)
    return mean, np.sqrt(np.tensordot(weights, deviations**2 + (means - mean) ** 2, 1))


@dataclass(frozen=True, eq=False)
class HeldOutErrors:
    """Errors at samples that a process did not see, and the standard deviations that it expected there.

    Parameters
    ----------
    errors, deviations : array of shape (m, k)
        Those of the values.
    weights : array of shape (m,)
        The weights of these samples.
    gradient_errors, gradient_deviations : array of shape (g, k, d)
        Those of the gradients; NaN if unknown.
    """

    errors: Array
    deviations: Array
    weights: Array
    gradient_errors: Array
    gradient_deviations: Array

    @classmethod
    def one_by_one(cls, process: Process, n_features: int) -> HeldOutErrors:
        """Return the errors at each sample if it is left out, with scales and noise as they are, in closed form."""
        rows, (errors, variances) = process.rows, process.left_out
        deviations = np.sqrt(np.maximum(variances[:, None] * process.variances, TINY))
        values, first = rows.orders == 0, rows.orders == 1
        shape = (int(rows.samples.max()) + 1, errors.shape[1], n_features)
        slopes = np.full(shape, np.nan), np.full(shape, np.nan)
        if first.any():
            directions = rows.parts[1].directions[0]
            inputs = np.argmax(np.abs(directions), axis=1)
            along = np.abs(directions[np.arange(len(inputs)), inputs]) == 1  # not those along other directions
            for slope, part in zip(slopes, (errors, deviations), strict=True):
                slope[rows.samples[first][along], :, inputs[along]] = part[first][along]
        return cls(errors[values], deviations[values], rows.weights[values], *slopes)

    def with_deviations(self, others: HeldOutErrors) -> HeldOutErrors:
        """Return these errors with the standard deviations of others."""
        return replace(self, deviations=others.deviations, gradient_deviations=others.gradient_deviations)

    def times(self, factors: Array) -> HeldOutErrors:
        """Return errors that are larger by factors of shape (k,)."""
        return replace(self, errors=factors * self.errors, gradient_errors=factors[:, None] * self.gradient_errors)

    def size_over(self, others: HeldOutErrors) -> Array:
        """Return the factors by which the root mean square errors are larger than others, of shape (k,)."""
        own, other = (np.sqrt(np.mean(each.errors**2, axis=0)) for each in (self, others))
        return np.asarray(np.divide(own, other, out=np.ones_like(own), where=other > 0))

    @classmethod
    def of_folds(
        cls, parts: Sequence[HeldOutErrors], folds: Sequence[Mask], has_value: Mask, expected: HeldOutErrors
    ) -> HeldOutErrors:
        """Return the errors of one process for each fold at the samples of the fold.

        Parameters
        ----------
        parts : sequence of HeldOutErrors
            The errors of each process at all samples.
        folds : sequence of array of shape (n,)
            The mask of the samples in each fold.
        has_value : array of shape (n,)
        expected : HeldOutErrors
            The standard deviations are taken from it.
        """
        errors, slopes = expected.errors.copy(), expected.gradient_errors.copy()
        for part, fold in zip(parts, folds, strict=True):
            errors[fold[has_value]] = part.errors[fold[has_value]]
            slopes[fold[: len(slopes)]] = part.gradient_errors[fold[: len(slopes)]]
        return replace(expected, errors=errors, gradient_errors=slopes)

    def changed(self, before: HeldOutErrors, after: HeldOutErrors) -> HeldOutErrors:
        """Return errors that change by as much as others at the same samples did."""
        errors = self.errors + (after.errors - before.errors)
        slopes = self.gradient_errors + (after.gradient_errors - before.gradient_errors)
        return replace(self, errors=errors, gradient_errors=slopes)

    def at_least(self, residuals: Array) -> HeldOutErrors:
        """Return these errors, or the residuals (m, k) of the fit to all samples if they are larger.

        A sample that is left out is predicted worse than one that is not, except for rounding errors: those of the
        coefficients of a smooth function can be the larger part of its error, and closed forms and refits have others.
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
        """The same of the gradients, of shape (g, k, d)."""
        return np.asarray(np.abs(self.gradient_errors) / np.maximum(self.gradient_deviations, TINY))


def typical_error(process: Process) -> float:
    """Return an error of all rows whose samples are left out, by which processes given the same rows are compared.

    It is the geometric mean over the orders of derivatives of the mean absolute errors, outputs added up: partial
    derivatives count as much as values, in any units, and few samples are not judged by their largest error.
    """
    rows, absolute = process.rows, np.abs(process.left_out[0])
    weights = [np.where(rows.orders == order, rows.weights, 0.0) for order in np.unique(rows.orders)]
    means = [np.linalg.norm(each @ absolute) / each.sum() for each in weights]
    return float(np.prod(means) ** (1 / len(means)))
