"""Uncertainty of a process, calibrated with samples that are left out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from nurf._types import Array
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.kernels import KernelNetwork, RadialKernel
from nurf.solvers._coverage import calibration, require_errors, upper_quantile
from nurf.solvers.process._process import TINY, Process
from nurf.solvers.process._rows import ProcessRows


@dataclass(frozen=True, eq=False)
class ProcessPosterior:
    """The distribution of a process given the data.

    The posterior knows the data and the scales, but not that the scales were learned from the same data. So its
    standard deviations are multiplied by the factors that make them hold the errors ``e_k`` at samples that are left
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
    optimism : array of shape (k,)
        Factors of all errors: leaving samples out does not show that the scales were learned with them.
    """

    network: KernelNetwork
    jet: Jet
    kernel: RadialKernel
    metric: Array
    noise: Array
    degree: int
    optimism: Array

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def process(self) -> Process:
        """The process given the data."""
        return Process(ProcessRows.of(self.jet, self.degree), self.kernel, self.metric, self.noise)

    @cached_property
    def _ratios(self) -> Array:
        """Errors of all rows whose samples are left out, in units of their standard deviations, of shape (N, k)."""
        errors, variances = self.process.left_out
        deviations = np.sqrt(np.maximum(variances[:, None] * self.process.variances, TINY))
        return np.asarray(self.optimism * np.abs(errors) / deviations)

    @property
    def kinds(self) -> dict[int, str]:
        """The orders and kinds of derivatives that were used."""
        return {order: kind for order, kind in DERIVATIVE_KINDS.items() if order in self.process.rows.orders}

    @property
    def _value_ratios(self) -> Array:
        return np.asarray(self._ratios[self.process.rows.orders == 0])

    @cached_property
    def gradient_factors(self) -> Array:
        """Factors of the standard deviations of partial derivatives, of shape (k, d); NaN if they are not known."""
        rows, k, d = self.process.rows, self.jet.y[:1].size, self.jet.n_features
        ratios = np.full((len(self.jet), k, d), np.nan)
        if "gradients" in self.jet.known and self.jet.frames is None:
            first = rows.orders == 1
            inputs = np.argmax(rows.parts[1].directions[0], axis=1)
            ratios[rows.samples[first], :, inputs] = self._ratios[first]
        return calibration(ratios)

    @property
    def knows_gradients(self) -> bool:
        """Whether standard deviations of gradients come from errors of gradients."""
        return not np.any(np.isnan(self.gradient_factors))

    def value_std(self, X: Array) -> Array:
        """Return the standard deviation of a value that is measured at the points, noise included, of shape (n, k)."""
        require_errors(len(self._value_ratios))
        return self._deviations(X, 0)[:, 0] * calibration(self._value_ratios)

    def gradient_std(self, X: Array) -> Array:
        """Return the standard deviation of a gradient that is measured at the points, of shape (n, k, d)."""
        require_errors(len(self._value_ratios))
        known, factors = self.gradient_factors, calibration(self._value_ratios)[:, None]
        factors = np.where(np.isnan(known), factors, known)
        return np.swapaxes(self._deviations(X, 1), 1, 2) * factors

    def interval(self, X: Array, coverage: float) -> Array:
        """Return intervals that contain a fresh value with probability ``coverage``, of shape (n, k, 2)."""
        require_errors(len(self._value_ratios))
        half = self._deviations(X, 0)[:, 0] * upper_quantile(self._value_ratios, coverage)
        values = self.network.value(X).reshape(half.shape)
        return np.stack([values - half, values + half], axis=-1)

    def _deviations(self, X: Array, order: int) -> Array:
        """Return standard deviations of new measurements, not calibrated yet, of shape (n, d^order, k)."""
        rows = self.process.rows
        weights = rows.weights[rows.orders == order]
        noise = self.noise[order] / weights.mean() if len(weights) else 0.0
        variances = self.process.posterior_variances(X, order) + noise
        return np.asarray(np.sqrt(variances[..., None] * self.process.variances))
