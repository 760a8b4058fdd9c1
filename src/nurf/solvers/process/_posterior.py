"""Uncertainty of processes, calibrated with samples that they did not see."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import norm

from nurf._types import Array
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.kernels import KernelAverage
from nurf.solvers._coverage import calibration, require_errors
from nurf.solvers._draws import Difference, Scaled, beyond_reach
from nurf.solvers._reach import Reach
from nurf.solvers.process._draws import REFERENCE_WAVES, REFERENCES, Spread, mixture_draws
from nurf.solvers.process._growth import Growth
from nurf.solvers.process._held_out import HeldOutErrors, mixture
from nurf.solvers.process._process import TINY, Process
from nurf.solvers.process._rows import ProcessRows


@dataclass(frozen=True, eq=False)
class ProcessPosterior:
    """The mixture of some processes given the data, as the distribution of the function.

    The standard deviations ``s(x)`` of processes ignore that the scales were learned from the same data. So they are
    replaced by ``c s(x) (s(x) / u)^p``, such that they contain the errors at held-out samples (``Growth``). Intervals
    are ``f(x) +- q s(x) (s(x) / u)^p`` with a quantile ``q`` of these errors. Standard deviations and intervals grow
    beyond the reach of the samples (``Reach``).

    Only the samples are stored; the processes are computed when they are first used.

    Parameters
    ----------
    network : KernelAverage
        The mean of the processes given the data, with their kernels, maps and weights.
    jet : Jet
    noise : array of shape (m, 3) or (m, d + 2)
        The noise of each process.
    variances : array of shape (m, k)
        The variances of each process.
    degree : int
        Degree of the polynomial mean.
    held_out : HeldOutErrors
        Errors at held-out samples.
    """

    network: KernelAverage
    jet: Jet
    noise: Array
    variances: Array
    degree: int
    held_out: HeldOutErrors

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def rows(self) -> ProcessRows:
        """The known values and derivatives."""
        return ProcessRows.of(self.jet, self.degree)

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        """The processes given the data."""
        return tuple(
            Process(self.rows, member.kernel, member.metric, noise).sound()
            for member, noise in zip(self.network.members, self.noise, strict=True)
        )

    @property
    def noise_deviations(self) -> Array:
        """The standard deviations of the noise of values, first and second derivatives of weight one, (3, k).

        For first derivatives it is the root mean square over the inputs.
        """
        noise = np.column_stack([self.noise[:, 0], self.noise[:, 1:-1].mean(axis=1), self.noise[:, -1]])
        return np.asarray(np.sqrt(np.einsum("m,mo,mk->ok", self.network.weights, noise, self.variances)))

    @property
    def kinds(self) -> dict[int, str]:
        """The orders and kinds of derivatives that were used."""
        return {order: kind for order, kind in DERIVATIVE_KINDS.items() if order in self.rows.orders}

    @cached_property
    def gradient_factors(self) -> Array:
        """Factors of the standard deviations of partial derivatives, of shape (k, d); NaN if they are not known."""
        return calibration(self.held_out.gradient_ratios)

    @cached_property
    def growth(self) -> Growth:
        """How errors of values grow with their standard deviations."""
        return Growth.of(self.held_out.errors, np.maximum(self.held_out.deviations, TINY))

    @property
    def _factors(self) -> Array:
        """Factors of the standard deviations of values, of shape (k,)."""
        return self.growth.factors(self.held_out.effective)

    @property
    def knows_gradients(self) -> bool:
        """Whether standard deviations of gradients come from errors of gradients."""
        return not np.any(np.isnan(self.gradient_factors))

    @cached_property
    def reach(self) -> Reach:
        """The additional variances far from the samples."""
        return Reach.of(self.network, self.jet.X)

    def value_std(self, X: Array) -> Array:
        """Return the standard deviation of a new measurement at the points, noise included, of shape (n, k)."""
        require_errors(len(self.held_out.errors))
        deviations = self._values(X)[1]
        calibrated = self._factors * deviations * self.growth.amplitudes(deviations)
        return np.asarray(np.hypot(calibrated, np.sqrt(self.reach.variances(X))))

    def gradient_std(self, X: Array) -> Array:
        """Return the standard deviation of a new measurement of the gradient at the points, of shape (n, k, d)."""
        require_errors(len(self.held_out.errors))
        known, factors = self.gradient_factors, self._factors * self.growth.amplitudes(self._values(X)[1])
        factors = np.where(np.isnan(known), factors[..., None], known)
        deviations = np.stack([np.swapaxes(process.measured_std(X, 1), 1, 2) for process in self.processes])
        means = np.stack([member.gradient(X).reshape(deviations.shape[1:]) for member in self.network.members])
        calibrated = mixture(means, deviations, self.network.weights)[1] * factors
        return np.asarray(np.hypot(calibrated, np.sqrt(self.reach.gradient_variances(X))))

    def interval(self, X: Array, coverage: float) -> Array:
        """Return intervals that contain a new measurement with probability ``coverage``, of shape (n, k, 2)."""
        require_errors(len(self.held_out.errors))
        values, deviations = self._values(X)
        half = deviations * self.growth.amplitudes(deviations)
        half = half * self.growth.bounds(coverage, self.held_out.effective)
        half = half + norm.ppf((1 + coverage) / 2) * np.sqrt(self.reach.variances(X))
        return np.stack([values - half, values + half], axis=-1)

    def draws(self, n: int, rng: np.random.Generator) -> tuple[Difference, ...]:
        """Return the differences of ``n`` draws of the function from the fit, noise excluded."""
        require_errors(len(self.held_out.errors))
        mixed = mixture_draws(self.processes, self.network.weights, n, rng)
        beyond = beyond_reach(self.reach, n, rng)
        if self.growth.power == 0:
            return *(replace(part, coef=part.coef * self._factors) for part in mixed), beyond
        others = mixture_draws(self.processes, self.network.weights, REFERENCES, rng, REFERENCE_WAVES)
        spread = Spread(others, REFERENCES, self.noise_deviations[0], self.growth, self._factors)
        return Scaled(mixed, spread), beyond

    def _values(self, X: Array) -> tuple[Array, Array]:
        """Return the values at the points and their standard deviations, noise included, of shape (n, k)."""
        deviations = np.stack([process.measured_std(X, 0)[:, 0] for process in self.processes])
        means = np.stack([member.value(X).reshape(deviations.shape[1:]) for member in self.network.members])
        return mixture(means, deviations, self.network.weights)
