"""Uncertainty of a process, calibrated with samples that it did not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from nurf._types import Array
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.kernels import KernelNetwork, RadialKernel
from nurf.solvers._coverage import calibration, effective_number, require_errors, standard_error, upper_quantile
from nurf.solvers.process._process import TINY, Process
from nurf.solvers.process._rows import ProcessRows


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

    @classmethod
    def by_refits(cls, processes: Sequence[Process], held_out: Sequence[Jet]) -> HeldOutErrors:
        """Return the errors of processes at samples that were not used to fit them."""
        parts = [_errors(process, jet) for process, jet in zip(processes, held_out, strict=True)]
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

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


def _errors(process: Process, jet: Jet) -> tuple[Array, ...]:
    """Return the fields of ``HeldOutErrors`` for samples that the process did not see."""
    valued, network = jet.with_values(), process.network(jet.y.shape[1:])
    shape = (len(jet), jet.y[:1].size, jet.n_features)
    errors = (valued.y - network.value(valued.X)).reshape(len(valued), -1)
    deviations = process.measured_std(valued.X, 0, valued.weights(0))[:, 0]
    slopes, slope_deviations = np.full(shape, np.nan), np.full(shape, np.nan)
    if jet.gradients is not None and jet.frames is None:
        slopes = (jet.gradients - network.gradient(jet.X)).reshape(shape)
        with np.errstate(divide="ignore"):  # derivatives of weight zero have infinite noise
            slope_deviations = np.swapaxes(process.measured_std(jet.X, 1, jet.weights(1)), 1, 2)
    return errors, deviations, valued.weights(0), slopes, slope_deviations


@dataclass(frozen=True, eq=False)
class ProcessPosterior:
    """The distribution of a process given the data.

    The posterior knows the data and the scales, but not that the scales were learned from the same data. So its
    standard deviations are multiplied by the factors that make them hold the errors ``e_k`` at samples that were held
    out, in units of their own standard deviations ``s_k``. Intervals are ``f(x) +- q s(x)`` with a quantile ``q`` of
    the ``|e_k| / s_k``.

    It is stored as samples, and computed when it is first asked for.

    Parameters
    ----------
    network : KernelNetwork
        The mean of the process given the data.
    jet : Jet
    kernel : RadialKernel
    metric : array of shape (q, d)
    noise : array of shape (3,)
    degree : int
        Degree of the polynomial mean.
    held_out : HeldOutErrors
        Errors at samples that were held out.
    """

    network: KernelNetwork
    jet: Jet
    kernel: RadialKernel
    metric: Array
    noise: Array
    degree: int
    held_out: HeldOutErrors

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def process(self) -> Process:
        """The process given the data."""
        return Process(ProcessRows.of(self.jet, self.degree), self.kernel, self.metric, self.noise)

    @property
    def kinds(self) -> dict[int, str]:
        """The orders and kinds of derivatives that were used."""
        return {order: kind for order, kind in DERIVATIVE_KINDS.items() if order in self.process.rows.orders}

    @cached_property
    def gradient_factors(self) -> Array:
        """Factors of the standard deviations of partial derivatives, of shape (k, d); NaN if they are not known."""
        return calibration(self.held_out.gradient_ratios)

    @property
    def _factors(self) -> Array:
        """Factors of the standard deviations of values, of shape (k,)."""
        return calibration(self.held_out.ratios, self.held_out.effective)

    @property
    def knows_gradients(self) -> bool:
        """Whether standard deviations of gradients come from errors of gradients."""
        return not np.any(np.isnan(self.gradient_factors))

    def value_std(self, X: Array) -> Array:
        """Return the standard deviation of a value that is measured at the points, noise included, of shape (n, k)."""
        require_errors(len(self.held_out.errors))
        return self.process.measured_std(X, 0)[:, 0] * self._factors

    def gradient_std(self, X: Array) -> Array:
        """Return the standard deviation of a gradient that is measured at the points, of shape (n, k, d)."""
        require_errors(len(self.held_out.errors))
        known, factors = self.gradient_factors, self._factors[:, None]
        factors = np.where(np.isnan(known), factors, known)
        return np.swapaxes(self.process.measured_std(X, 1), 1, 2) * factors

    def interval(self, X: Array, coverage: float) -> Array:
        """Return intervals that contain a fresh value with probability ``coverage``, of shape (n, k, 2)."""
        require_errors(len(self.held_out.errors))
        half = self.process.measured_std(X, 0)[:, 0] * upper_quantile(
            self.held_out.ratios, coverage, self.held_out.effective
        )
        values = self.network.value(X).reshape(half.shape)
        return np.stack([values - half, values + half], axis=-1)
