"""Uncertainty of a fit: the Bayesian view of ridge regression, and intervals from leave-one-out errors."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from nurf._blocks import row_blocks, spaced
from nurf._types import Array
from nurf.jets import Jet
from nurf.networks import ShallowNetwork
from nurf.solvers._coverage import calibration, normal_interval, plus_interval, require_errors
from nurf.solvers._draws import Difference, Part, between_samples, beyond_reach
from nurf.solvers._reach import Reach
from nurf.solvers._rows import Loss, rows_per_sample, sample_rows
from nurf.solvers.ridge._base import EPS
from nurf.solvers.ridge._hat import residuals_without
from nurf.solvers.ridge._least_squares import LeastSquares

MAX_LEFT_OUT = 500  # samples that are left out in turn
MAX_PARTIALS = 2000  # partial derivatives that are predicted without their sample
MIN_GRADIENTS = 20  # gradients that are predicted without their sample, even if they have more partial derivatives
MIN_SAMPLES = 100  # smallest number of stored samples
SIZE_RATIO = 6.0  # memory of the stored samples relative to the network


@dataclass(frozen=True, eq=False)
class Posterior:
    """The distribution of a network's coefficients given the data.

    With Gaussian noise of variance ``s^2 / w_k`` on the rows and the prior that corresponds to ridge regression, the
    coefficients are Gaussian, with the fitted coefficients as mean and ``s^2 (Z^T W Z + alpha N W)^-1`` as covariance.

    If gradients are known, standard deviations of gradients are calibrated: they are multiplied by factors that adjust
    them to the leave-one-out errors of the gradients. All variances grow beyond the reach of the samples (``Reach``).

    Only samples are stored, and the posterior is computed from them when it is first used. If all samples would take
    more than a few times the memory of the network, evenly spaced ones are stored, with larger weights, and at least
    about four for each neuron.

    Parameters
    ----------
    network : ShallowNetwork
        The fit.
    samples : Jet
        The stored samples, with weights multiplied by ``multiple``.
    multiple : float
        Number of fitted samples over the number of stored samples.
    alpha : float
        Regularisation of the fit, in the units of ``Ridge``.
    loss : Loss
        The weights of the derivatives in the fit.
    unit : float
        Mean weight of the fitted samples, which is taken as the weight of a new measurement.
    precise : bool
        Whether alpha is so small that ``PreciseRidge`` is needed.
    optimism : array of shape (k,)
        Factors of all errors, because the neurons were chosen with the samples that are left out.
    robust : bool
        Whether the noise is estimated from a quantile, which is insensitive to a few gross errors.
    """

    network: ShallowNetwork
    samples: Jet
    multiple: float
    alpha: float
    loss: Loss
    unit: float
    precise: bool
    optimism: Array
    robust: bool = False

    @classmethod
    def of(
        cls,
        network: ShallowNetwork,
        jet: Jet,
        alpha: float,
        loss: Loss,
        *,
        precise: bool = False,
        optimism: Array | None = None,
        robust: bool = False,
        n_rows: int | None = None,
    ) -> Posterior:
        """Return the posterior of a network that was fitted to ``jet``, or to ``n_rows`` rows with sample ``jet``."""
        optimism = np.ones(jet.y[:1].size) if optimism is None else optimism
        jet = jet.only((*loss.kinds, "gradients"))
        weights = np.where(jet.has_value, jet.weights(0), 0.0)
        unit = float(np.mean(weights[weights > 0]))
        size = network.coefficients.size + network.hyperplanes.normals.size + 2 * len(network.hyperplanes)
        stored = sum(part.size for part in (jet.places, jet.y, jet.gradients, jet.hessians) if part is not None)
        sample_size = stored / len(jet) + 2
        n = min(len(jet), max(MIN_SAMPLES, int(SIZE_RATIO * size / sample_size)))
        samples, multiple = jet[spaced(np.arange(len(jet)), n)], (n_rows or len(jet)) / n
        samples = replace(
            samples, sample_weight=multiple * samples.weights(0), derivative_weight=multiple * samples.weights(1)
        )
        return cls(network, samples, multiple, alpha, loss, unit, precise, optimism, robust)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def factor(self) -> Array:
        """A factor of the covariance for unit noise, of shape (N + t, m)."""
        problem = LeastSquares(self.network.features, self.samples)
        return problem.ridge(self.loss, precise=self.precise).covariance_factor(self.alpha)

    @cached_property
    def reach(self) -> Reach:
        """The additional variances far from the samples."""
        return Reach.of(self.network, self.samples.X)

    @cached_property
    def _left_out(self) -> tuple[Array, Array, Array, Array, Array | None]:
        """The effect of leaving out each of ``m`` samples on its residual and on the coefficients.

        Weights of the samples (m,), residuals of their values (m, k), leave-one-out residuals of their values (m, k),
        and changes of the coefficients: ``M^-1 Z_k^T (1 - H_k)^-1 r_k`` of shape (N + t, m, k), or, if there are more
        outputs than rows of a sample, its factors ``M^-1 Z_k^T`` (N + t, m, R) and ``(1 - H_k)^-1 r_k`` (m, R, k).
        """
        features, N = self.network.features, self.network.features.n_columns
        known = np.flatnonzero(np.where(self.samples.judges, self.samples.weights(0), 0.0))
        samples = self.samples[spaced(known, MAX_LEFT_OUT)]
        m, k, R = len(samples), self.network.coefficients[:1].size, rows_per_sample(samples, self.loss)
        before, after = np.empty((m, k)), np.empty((m, k))
        changes, outs = np.empty((N, m, min(k, R))), np.empty((m, R, k)) if k > R else None
        for rows in row_blocks(m, max(8, R) * features.n_columns):
            jet = samples[rows]
            rotated, hats, residuals = self._rows(jet)
            out = self._without(hats, residuals)
            roots = np.sqrt(jet.weights(0))[:, None]
            before[rows], after[rows] = residuals[:, 0] / roots, out[:, 0] / roots
            turned = np.swapaxes(rotated, 1, 2) / self.multiple
            if outs is not None:
                outs[rows] = out
            changes[:, rows] = np.tensordot(self.factor, turned @ out if outs is None else turned, axes=(1, 1))
        return samples.weights(0), before, after, changes, outs

    def _rows(self, jet: Jet) -> tuple[Array, Array, Array]:
        """Return the rows of samples times ``factor`` (n, R, m), their hat matrices (n, R, R), residuals (n, R, k)."""
        coefficients = self.network.coefficients
        design, targets = sample_rows(self.network.features, jet, self.loss)
        rotated = design @ self.factor
        residuals = targets - design @ coefficients.reshape(len(coefficients), -1)
        return rotated, rotated @ np.swapaxes(rotated, 1, 2), residuals

    def _without(self, hats: Array, residuals: Array) -> Array:
        """Return ``(1 - H_k)^-1 r_k`` for each sample, of shape (n, R, k)."""
        return residuals_without(hats, residuals, np.full(len(hats), 1 / self.multiple))

    @cached_property
    def gradient_factors(self) -> Array:
        """Factors that calibrate standard deviations of gradients, of shape (k, d); NaN if fewer than three are known.

        Leave-one-out errors ``e_k`` of the gradients are compared with their standard deviations, both without sample
        ``k``: with the rows ``G_k`` of the gradient, ``e_k = g_k - G_k c + G_k M^-1 Z_k^T (1 - H_k)^-1 r_k`` has the
        covariance ``G_k M^-1 G_k^T + G_k M^-1 Z_k^T (1 - H_k)^-1 Z_k M^-1 G_k^T``.
        """
        features, jet = self.network.features, self.samples
        d, k = jet.n_features, jet.y[:1].size
        if jet.gradients is None or jet.frames is not None:
            return np.full((k, d), np.nan)
        known = np.flatnonzero(np.any(~np.isnan(jet.gradients.reshape(len(jet), -1)), axis=1))
        samples = jet[spaced(known, max(MIN_GRADIENTS, MAX_PARTIALS // d))]
        ratios = np.empty((len(samples), k, d))
        for rows in row_blocks(len(samples), (8 + d + rows_per_sample(samples, self.loss)) * features.n_columns):
            part = samples[rows]
            assert part.gradients is not None
            rotated, hats, residuals = self._rows(part)
            sums = np.swapaxes(rotated, 1, 2) @ self._without(hats, residuals) / self.multiple
            slopes = features.gradient_design(part.X) @ self.factor
            errors = part.gradients.reshape(-1, k, d) - self.network.gradient(part.X).reshape(-1, k, d)
            errors += np.swapaxes(slopes @ sums, 1, 2)
            crossed = rotated @ np.swapaxes(slopes, 1, 2)
            removed = np.sum(crossed * self._without(hats, crossed), axis=1) / self.multiple
            variances = self.unit * (np.sum(slopes**2, axis=2) + np.maximum(removed, 0.0))
            ratios[rows] = np.abs(errors) / np.sqrt(np.maximum(variances[:, None], EPS**2))
        return calibration(ratios / np.where(self.noise > 0, self.noise / self.optimism, 1.0)[:, None])

    @cached_property
    def noise(self) -> Array:
        """The standard deviation ``s`` of the noise, of shape (k,).

        The leave-one-out error of a sample with leverage ``h_k`` has variance ``s^2 / (1 - h_k)``, so that ``s^2`` is
        the mean product of residuals and leave-one-out residuals. If gross errors are expected, ``s`` is the 0.9
        quantile of the roots of these products, divided by the quantile of a normal distribution. ``optimism`` is a
        factor of ``s``.
        """
        weights, before, after, *_ = self._left_out
        products = np.maximum(before * after, 0.0)
        if self.robust:
            return self.optimism * calibration(np.sqrt(products * (weights / weights.mean())[:, None]))
        return np.asarray(self.optimism * np.sqrt(weights @ products / weights.sum()))

    def value_std(self, X: Array) -> Array:
        """Return the standard deviation of a new measurement at the points, noise included, of shape (n, k)."""
        require_errors(len(self._left_out[0]))
        variances = np.empty(len(X))
        for rows, design in self.network.features.design_blocks(X):
            variances[rows] = np.sum((design @ self.factor) ** 2, axis=1)
        return np.asarray(np.sqrt((1 + self.unit * variances)[:, None] * self.noise**2 + self.reach.variances(X)))

    @property
    def knows_gradients(self) -> bool:
        """Whether standard deviations of gradients are calibrated with errors of gradients."""
        return not np.any(np.isnan(self.gradient_factors))

    def gradient_std(self, X: Array) -> Array:
        """Return the standard deviation of a new measurement of the gradient at the points, of shape (n, k, d)."""
        require_errors(len(self._left_out[0]))
        features = self.network.features
        variances = np.empty(X.shape)
        for rows in row_blocks(len(X), X.shape[1] * features.n_columns):
            variances[rows] = np.sum((features.gradient_design(X[rows]) @ self.factor) ** 2, axis=2)
        factors = np.where(np.isnan(self.gradient_factors), 1.0, self.gradient_factors)
        deviations = np.sqrt(self.unit * variances)[:, None, :] * self.noise[:, None] * factors
        return np.asarray(np.sqrt(deviations**2 + self.reach.gradient_variances(X)))

    def draws(self, n: int, rng: np.random.Generator) -> tuple[Difference, ...]:
        """Return the differences of ``n`` draws of the function from the fit, in coefficients and beyond them.

        Without repeated measurements at the same points, noise cannot be distinguished from errors that the neurons
        cannot represent: all of it counts as an error of the function.
        """
        errors = self._left_out[2]
        require_errors(len(errors))
        rest = between_samples(self.reach, errors, n, rng, sizes=self.noise)
        drawn = rng.standard_normal((self.factor.shape[1], n, self.network.n_outputs)) * self.noise
        coef = np.sqrt(self.unit) * np.tensordot(self.factor, drawn, 1)
        return Part(self.network.features, coef), rest, beyond_reach(self.reach, n, rng)

    def interval(self, X: Array, coverage: float) -> Array:
        """Return intervals that contain a new measurement with probability ``coverage``, of shape (n, k, 2).

        The jackknife+ (Barber, Candes, Ramdas, Tibshirani, Annals of Statistics 49, 2021): quantiles of
        ``f_{-k}(x) +- |y_k - f_{-k}(x_k)|`` over samples ``k``, with the fits ``f_{-k}`` without sample ``k``. Beside
        functionals, quantiles of a normal distribution with the standard deviations.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"`coverage` must be a number between 0 and 1, got {coverage!r}")
        if self.samples.functionals is not None:  # their errors are not errors of values
            return normal_interval(self.network.value(X), self.value_std(X), coverage)
        _, _, errors, changes, outs = self._left_out
        m, k = errors.shape
        result = np.empty((len(X), k, 2))
        values = self.network.value(X).reshape(len(X), k, 1)
        turned = np.ascontiguousarray(np.swapaxes(changes, 1, 2)).reshape(len(changes), -1)  # samples last
        for rows in row_blocks(len(X), m * k + self.network.features.n_columns):
            moved = (self.network.features.design(X[rows]) @ turned).reshape(-1, changes.shape[2], m)
            if outs is not None:
                moved = np.einsum("nrm,mrk->nkm", moved, outs, order="C")
            sizes = np.abs(errors) * self.optimism
            added = self.reach.variances(X[rows])
            result[rows] = plus_interval(np.swapaxes(values[rows] - moved, 1, 2), sizes, coverage, added=added)
        return result
