"""Uncertainty of a fit: the Bayesian view of ridge regression, and intervals from samples left out of it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from nurf._blocks import row_blocks
from nurf._types import Array
from nurf.jets import Jet
from nurf.networks import ShallowNetwork
from nurf.solvers._rows import Loss, rows_per_sample, sample_rows
from nurf.solvers.ridge._base import residuals_without
from nurf.solvers.ridge._least_squares import LeastSquares

MAX_LEFT_OUT = 500  # samples that are left out in turn
MIN_SAMPLES = 100  # that are stored, if there are so many
SIZE_RATIO = 6.0  # of the samples that are stored to the network, in numbers


@dataclass(frozen=True, eq=False)
class Posterior:
    """The distribution of a network's coefficients given the data.

    With Gaussian noise of variance ``s^2 / w_k`` on the rows and the prior that belongs to ridge regression, the
    coefficients are Gaussian around those of the fit, with covariance ``s^2 (Z^T W Z + alpha N W)^-1``.

    The posterior is stored as samples and computed from them when it is first asked for. If all samples would take more
    than a few times the memory of the network, evenly spaced ones are stored, with larger weights, and at least about
    four for each neuron.

    Parameters
    ----------
    network : ShallowNetwork
        The fit.
    samples : Jet
        Samples that were fitted, with their weights times ``multiple``.
    multiple : float
        Number of samples that each of them stands for.
    alpha : float
        Regularisation of the fit, in the units of ``Ridge``.
    loss : Loss
        How much derivatives counted.
    unit : float
        Mean weight of the samples that were fitted: that of a new measurement.
    precise : bool
        Whether alpha is so small that it takes ``PreciseRidge``.
    """

    network: ShallowNetwork
    samples: Jet
    multiple: float
    alpha: float
    loss: Loss
    unit: float
    precise: bool

    @classmethod
    def of(cls, network: ShallowNetwork, jet: Jet, alpha: float, loss: Loss, *, precise: bool = False) -> Posterior:
        """Return the posterior of a network that was fitted to ``jet``."""
        jet = jet.only(loss.kinds)
        weights = np.where(jet.has_value, jet.weights(0), 0.0)
        unit = float(np.mean(weights[weights > 0]))
        size = network.coefficients.size + network.hyperplanes.normals.size + 2 * len(network.hyperplanes)
        sample_size = jet.n_features + rows_per_sample(jet, loss) * (jet.y.size // len(jet)) + 2
        n = min(len(jet), max(MIN_SAMPLES, int(SIZE_RATIO * size / sample_size)))
        samples, multiple = jet[np.linspace(0, len(jet) - 1, n).round().astype(int)], len(jet) / n
        samples = replace(
            samples, sample_weight=multiple * samples.weights(0), derivative_weight=multiple * samples.weights(1)
        )
        return cls(network, samples, multiple, alpha, loss, unit, precise)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def factor(self) -> Array:
        """A factor of the covariance for unit noise, of shape (N + t, m)."""
        problem = LeastSquares(self.network.features, self.samples)
        return problem.ridge(self.loss, precise=self.precise).covariance_factor(self.alpha)

    @cached_property
    def _left_out(self) -> tuple[Array, Array, Array, Array]:
        """What happens if samples are left out.

        Weights of the samples (m,), residuals of their values (m, k), the same after each was left out, and by how much
        the coefficients change then, ``M^-1 Z_k^T (1 - H_k)^-1 r_k`` of shape (N + t, m, k).
        """
        features, coefficients = self.network.features, self.network.coefficients
        coefficients = coefficients.reshape(len(coefficients), -1)
        known = np.flatnonzero(np.where(self.samples.has_value, self.samples.weights(0), 0.0))
        picked = np.linspace(0, len(known) - 1, min(len(known), MAX_LEFT_OUT)).round().astype(int)
        samples, m, k = self.samples[known[picked]], len(picked), coefficients.shape[1]
        before, after = np.empty((m, k)), np.empty((m, k))
        changes = np.empty((len(coefficients), m, k))
        for rows in row_blocks(m, 8 * features.n_columns):
            jet = samples[rows]
            design, targets = sample_rows(features, jet, self.loss)
            rotated = design @ self.factor
            hats = rotated @ np.swapaxes(rotated, 1, 2)
            residuals = targets - design @ coefficients
            shares = np.full(len(jet), 1 / self.multiple)
            out = residuals_without(hats[:, None], residuals[:, :, None], shares)[:, :, 0]
            roots = np.sqrt(jet.weights(0))[:, None]
            before[rows], after[rows] = residuals[:, 0] / roots, out[:, 0] / roots
            sums = np.einsum("krm,kro->kmo", rotated, out) / self.multiple
            changes[:, rows] = np.tensordot(self.factor, sums, axes=(1, 1))
        return samples.weights(0), before, after, changes

    @cached_property
    def noise(self) -> Array:
        """The standard deviation ``s`` of the noise, of shape (k,).

        The error at a sample that is left out has variance ``s^2 / (1 - h_k)`` with the leverage ``h_k``, so that
        ``s^2`` is the mean product of the residuals before and after.
        """
        weights, before, after, _ = self._left_out
        return np.asarray(np.sqrt(weights @ np.maximum(before * after, 0.0) / weights.sum()))

    def value_std(self, X: Array) -> Array:
        """Return the standard deviation of a value that is measured at the points, noise included, of shape (n, k)."""
        variances = np.empty(len(X))
        for rows, design in self.network.features.design_blocks(X):
            variances[rows] = np.sum((design @ self.factor) ** 2, axis=1)
        return np.asarray(np.sqrt(1 + self.unit * variances)[:, None] * self.noise)

    def gradient_std(self, X: Array) -> Array:
        """Return the standard deviation of the gradient, of shape (n, k, d)."""
        features, d = self.network.features, X.shape[1]
        N, normals = features.n_neurons, features.hyperplanes.normals
        variances = np.empty((len(X), d))
        for rows in row_blocks(len(X), features.n_columns):
            slopes = features.neurons(X[rows], 1)
            for i in range(d):
                columns = slopes * normals[:, i] @ self.factor[:N]
                columns += features.tail.partials(X[rows], (i,)) @ self.factor[N:]
                variances[rows, i] = np.sum(columns**2, axis=1)
        return np.asarray(np.sqrt(self.unit * variances)[:, None, :] * self.noise[:, None])

    def interval(self, X: Array, coverage: float) -> Array:
        """Return intervals that contain a fresh value with probability ``coverage``, of shape (n, k, 2).

        The jackknife+ (Barber, Candes, Ramdas, Tibshirani, Annals of Statistics 49, 2021): quantiles of
        ``f_{-k}(x) +- |y_k - f_{-k}(x_k)|`` over samples ``k``, with the fits ``f_{-k}`` without them.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"`coverage` must be a number between 0 and 1, got {coverage!r}")
        _, _, errors, changes = self._left_out
        m, k = errors.shape
        below = int(np.floor((1 - coverage) * (m + 1) + 1e-9))  # 1 - 0.9 is a little less than 0.1
        if below < 1:
            raise ValueError(
                f"`coverage` must be at most {m / (m + 1):.4g} with {m} samples that can be left out, got {coverage!r}"
            )
        result = np.empty((len(X), k, 2))
        values = self.network.value(X).reshape(len(X), k)
        for rows in row_blocks(len(X), m * k + self.network.features.n_columns):
            design = self.network.features.design(X[rows])
            for output in range(k):
                without = values[rows, output, None] - design @ changes[..., output]
                sizes = np.abs(errors[:, output])
                result[rows, output, 0] = np.partition(without - sizes, below - 1, axis=1)[:, below - 1]
                result[rows, output, 1] = np.partition(without + sizes, m - below, axis=1)[:, m - below]
        return result
