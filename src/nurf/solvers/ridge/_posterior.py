"""How sure a fit is: the Bayesian reading of ridge regression, and intervals from samples left out of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nurf._blocks import row_blocks
from nurf._types import Array
from nurf.jets import Jet
from nurf.networks import ShallowNetwork
from nurf.solvers._rows import sample_rows, weight_of_a_row
from nurf.solvers.ridge._ridge import Ridge, residuals_without

MOST_SAMPLES = 500  # that are left out in turn


@dataclass(frozen=True, eq=False)
class Posterior:
    """The law of a network's weights given the data.

    With Gaussian noise of variance ``s^2 / w_k`` on the rows and the prior that belongs to the penalty, the weights are
    Gaussian around those of the fit, with covariance ``s^2 (Z^T W Z + penalty)^-1``.

    Parameters
    ----------
    ridge : Ridge
        The factorised problem.
    penalty : float
        Its ``alpha``.
    network : ShallowNetwork
        The solution.
    samples : Jet
        Some of the samples that were fitted, at most ``MOST_SAMPLES``.
    unit : float, default 1
        The weight of one row; see ``weight_of_a_row``.
    """

    ridge: Ridge
    penalty: float
    network: ShallowNetwork
    samples: Jet
    unit: float = 1.0

    @classmethod
    def of(cls, ridge: Ridge, penalty: float, network: ShallowNetwork, jet: Jet) -> Posterior:
        """Take evenly spread samples of those that were fitted, whose values are known."""
        counts = np.where(jet.has_value, jet.weights(0), 0.0)
        known = np.flatnonzero(counts)
        picked = np.linspace(0, len(known) - 1, min(len(known), MOST_SAMPLES)).round().astype(int)
        return cls(ridge, penalty, network, jet[known[picked]], weight_of_a_row(counts))

    @cached_property
    def root(self) -> Array:
        """A root of the covariance for noise of variance one, of shape (N + t, m)."""
        return self.ridge.root(self.penalty)

    @cached_property
    def _left_out(self) -> tuple[Array, Array, Array]:
        """Residuals of the values (m, k), the same with the sample left out, and by how much the weights change then.

        The last has shape (N + t, m, k): ``M^-1 Z_k^T (1 - H_k)^-1 r_k``.
        """
        features, weights = self.network.features, self.network.coefficients.reshape(len(self.network.coefficients), -1)
        m, k = len(self.samples), weights.shape[1]
        before, after = np.empty((m, k)), np.empty((m, k))
        changes = np.empty((len(weights), m, k))
        for rows in row_blocks(m, 8 * features.n_columns):
            jet = self.samples[rows]
            design, targets = sample_rows(features, jet, self.ridge.loss)
            rotated = design @ self.root
            hats = rotated @ np.swapaxes(rotated, 1, 2)
            residuals = targets - design @ weights
            out = residuals_without(hats[:, None], residuals[:, :, None], np.ones(len(jet)))[:, :, 0]
            roots = np.sqrt(jet.weights(0))[:, None]
            before[rows], after[rows] = residuals[:, 0] / roots, out[:, 0] / roots
            changes[:, rows] = np.tensordot(self.root, np.einsum("krm,kro->kmo", rotated, out), axes=(1, 1))
        return before, after, changes

    @cached_property
    def noise(self) -> Array:
        """The standard deviation ``s`` of the noise, of shape (k,).

        The error at a sample that was left out has variance ``s^2 / (1 - h_k)`` for leverages ``h_k``; that makes
        ``s^2`` the mean of the products of the residuals before and after.
        """
        before, after, _ = self._left_out
        products = self.samples.weights(0) @ np.maximum(before * after, 0.0)
        return np.asarray(np.sqrt(products / self.samples.weights(0).sum()))

    def value_std(self, X: Array) -> Array:
        """Return the standard deviation of a value that is measured at the points, noise included, of shape (n, k)."""
        spread = np.empty(len(X))
        for rows, design in self.network.features.design_blocks(X):
            spread[rows] = np.sum((design @ self.root) ** 2, axis=1)
        return np.asarray(np.sqrt(1 + self.unit * spread)[:, None] * self.noise)

    def gradient_std(self, X: Array) -> Array:
        """Return the standard deviation of the gradient, of shape (n, k, d)."""
        features, d = self.network.features, X.shape[1]
        N, normals = features.n_neurons, features.hyperplanes.normals
        spread = np.empty((len(X), d))
        for rows in row_blocks(len(X), features.n_columns):
            slopes = features.neurons(X[rows], 1)
            for i in range(d):
                columns = slopes * normals[:, i] @ self.root[:N]
                columns += features.tail.partials(X[rows], (i,)) @ self.root[N:]
                spread[rows, i] = np.sum(columns**2, axis=1)
        return np.asarray(np.sqrt(self.unit * spread)[:, None, :] * self.noise[:, None])

    def interval(self, X: Array, coverage: float) -> Array:
        """Return intervals that hold a fresh value with probability ``coverage``, of shape (n, k, 2).

        The jackknife+ (Barber, Candes, Ramdas, Tibshirani, Annals of Statistics 49, 2021): quantiles of
        ``f_{-k}(x) +- |y_k - f_{-k}(x_k)|`` over samples ``k``, with the fits ``f_{-k}`` without them.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"`coverage` must be a number between 0 and 1, got {coverage!r}")
        _, errors, changes = self._left_out
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
