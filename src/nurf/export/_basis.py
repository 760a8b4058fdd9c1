"""A fitted regressor as a mean and basis functions with normal weights, from its draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._types import Array
from nurf.export._points import as_fitted

STEP = 1e-4  # of differences of variances, in units of the range of an input
LEAST = 1e-8  # share of the variance of measurements that noise leaves to the function, at least


@dataclass(frozen=True, eq=False)
class DrawBasis:
    """The mean, the variances without noise, and differences of draws from their mean.

    Parameters
    ----------
    model : regressor
        A fitted regressor.
    draws : Draws
    """

    model: Any
    draws: Any

    @property
    def n_draws(self) -> int:
        """The number ``S`` of draws."""
        return len(self.draws)

    @property
    def n_outputs(self) -> int:
        """The number ``k`` of outputs."""
        return int(np.prod(self.draws.output_shape))

    @property
    def noise(self) -> Array:
        """The variances of the noise of values, of shape (k,); zero if the regressor does not estimate it.

        The noise of transformed values varies over the inputs: it stays a part of the variance of the function.
        """
        known = self.model.warping_.outputs is None
        found = getattr(getattr(self.model, "model_", self.model), "noise_", {}) if known else {}
        return np.broadcast_to(np.square(np.ravel(found.get("values", 0.0))), (self.n_outputs,)).astype(float)

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """Return the mean and the variance of values without noise at points (n, d), each of shape (n, k)."""
        values, deviations = self.model.predict(as_fitted(self.model, X), return_std=True)
        measured = deviations.reshape(len(X), -1) ** 2
        return values.reshape(len(X), -1), np.maximum(measured - self.noise, LEAST * measured)

    def slopes(self, X: Array) -> tuple[Array, Array]:
        """Return the gradients of the mean and, by differences, of the variance, both of shape (n, k, d)."""
        n, d = X.shape
        curves, steps = self.model.warping_.inputs, np.broadcast_to(STEP * self.model.scaling_.x_scale, (n, d))
        steps = steps if curves is None else steps / curves.slopes(X)
        moved = X + np.stack([np.eye(d), -np.eye(d)])[:, :, None] * steps
        variances = self.mean_and_variance(moved.reshape(-1, d))[1].reshape(2, d, n, -1)
        differences = (variances[0] - variances[1]) / (2 * steps.T[..., None])
        mean = self.model.predict_gradient(as_fitted(self.model, X)).reshape(n, -1, d)
        return mean, np.moveaxis(differences, 0, 2)

    def differences(self, X: Array) -> Array:
        """Return the differences of draws from their mean over ``sqrt(S - 1)``, of shape (n, k, S)."""
        return self._centred(self.draws.value(X).reshape(self.n_draws, len(X), -1))

    def difference_slopes(self, X: Array) -> Array:
        """Return the gradients of the differences, of shape (n, k, S, d)."""
        n, d = X.shape
        gradients = self._centred(self.draws.gradient(X).reshape(self.n_draws, n, -1))
        return np.moveaxis(gradients.reshape(n, -1, d, self.n_draws), 2, 3)

    def with_gradients(self, X: Array) -> tuple[Array, Array]:
        """Return the mean of values and gradients (n, k (1 + d)), and their basis functions (n, k (1 + d), S).

        Differences of values are scaled to the variance ``v``: ``phi = r psi`` with ``r^2 = v / |psi|^2``, and
        ``grad phi = r grad psi + psi grad r``.
        """
        n, S = len(X), self.n_draws
        (mean, v), (mean_slopes, v_slopes) = self.mean_and_variance(X), self.slopes(X)
        psi, slopes = self.differences(X), self.difference_slopes(X)
        squares = np.maximum(np.sum(psi**2, axis=2), np.finfo(float).tiny)
        r = np.sqrt(v / squares)
        by_squares = 2 * np.einsum("nks,nksd->nkd", psi, slopes, optimize=True) / squares[..., None]
        r_slopes = r[..., None] / 2 * (v_slopes / np.maximum(v, np.finfo(float).tiny)[..., None] - by_squares)
        along = r[..., None, None] * slopes + psi[..., None] * r_slopes[:, :, None, :]
        rows = np.moveaxis(along, 3, 2).reshape(n, -1, S)
        values = np.concatenate([mean, mean_slopes.reshape(n, -1)], axis=1)
        return values, np.concatenate([r[..., None] * psi, rows], axis=1)

    def _centred(self, of_draws: Array) -> Array:
        """Return differences from the mean of draws (S, n, m), of shape (n, m, S)."""
        differences = of_draws - of_draws.mean(axis=0)
        return np.ascontiguousarray(np.moveaxis(differences, 0, 2) / np.sqrt(self.n_draws - 1))
