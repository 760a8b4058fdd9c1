"""The uncertainty of a model, as differences of draws from the fit, and its reduction by further runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nurf._types import Array

ROUNDING = 1e-10  # of a variance: smaller ones say nothing


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Differences of ``n`` draws from their mean, at candidates and at targets.

    A run at a candidate takes away the part that is correlated with its value: all differences are replaced by
    differences given the value, whatever it will be (the square root filter of Whitaker and Hamill, 2002), and the mean
    stays.

    Parameters
    ----------
    mean : array of shape (m, k)
        The fit at the candidates.
    at : array of shape (n, m, k)
        The differences there.
    on : array of shape (n, t, k)
        The differences at the targets.
    noise : array of shape (k,)
        The variances of the noise of values.
    freedom : float
        The draws less the numbers that were taken away.
    """

    mean: Array
    at: Array
    on: Array
    noise: Array
    freedom: float

    @classmethod
    def of(cls, draws: Any, candidates: Array, targets: Array, noise: Array, factors: Any = None) -> Ensemble:
        """Return the differences of draws at candidates (m, d) and targets (t, d).

        ``factors(X)`` of shape (m,) are by how much they are larger.
        """
        n, m = len(draws), len(candidates)
        X = np.concatenate([candidates, targets])
        values = draws.value(X).reshape(n, len(X), -1)
        differences = values - values.mean(axis=0)
        if factors is not None:
            differences *= factors(X)[:, None]
        mean = draws.fit.value(candidates).reshape(m, -1)
        return cls(mean, differences[:, :m], differences[:, m:], noise, n - 1.0)

    @property
    def variances(self) -> Array:
        """The variances at the candidates, of shape (m, k)."""
        return np.asarray(np.einsum("nmk,nmk->mk", self.at, self.at) / self.freedom)

    @property
    def target_variances(self) -> Array:
        """The variances at the targets, of shape (t, k)."""
        return np.asarray(np.einsum("ntk,ntk->tk", self.on, self.on) / self.freedom)

    @property
    def unknown(self) -> float:
        """The sum of the variances at the targets, or at the candidates if there are none, outputs in equal units."""
        parts = self.target_variances if self.on.shape[1] > 1 else self.variances
        scales = self.mean.var(axis=0)
        return float(np.sum(parts / np.where(scales > 0, scales, 1.0)))

    @property
    def measured(self) -> Array:
        """The variances of measured values at the candidates, noise included, of shape (m, k)."""
        variances = self.variances
        least = ROUNDING * variances.max(initial=0.0) + np.finfo(float).tiny
        return np.asarray(np.maximum(variances + self.noise, least))

    def reductions(self, output: int) -> Array:
        """Return the reductions (m, t) of the variance of an output at each target by a value at each candidate.

        Chance correlations of independent draws are subtracted: they are ``var var / n`` in the mean.
        """
        covariances = self.at[:, :, output].T @ self.on[:, :, output] / self.freedom
        measured, own = self.measured[:, output, None], self.variances[:, output, None]
        chance = own * self.target_variances[:, output] / self.freedom
        return np.asarray((covariances**2 - chance) / measured)

    def given(self, rows: Array, noise: Array) -> Ensemble:
        """Return the differences given numbers whose differences are ``rows`` (n, p), with noise variances (p,)."""
        found, rows = self, rows.copy()
        least = ROUNDING * np.sum(rows**2, axis=0)
        for place, variance in enumerate(noise):
            own = rows[:, place].copy()
            square = float(own @ own)
            if square <= least[place] or found.freedom < 2:
                continue
            size = square / found.freedom
            total = size + variance
            factor = 1 / (1 + np.sqrt(variance / total))
            remove = [np.tensordot(own, part, (0, 0)) / found.freedom for part in (found.at, found.on, rows)]
            at, on, rows = (
                part - (factor / total) * np.multiply.outer(own, weight)
                for part, weight in zip((found.at, found.on, rows), remove, strict=True)
            )
            found = replace(found, at=at, on=on, freedom=found.freedom - factor)
        return found

    def asked(self, answers: Array) -> Ensemble:
        """Return the ensemble with answers (n, q) of the draws before the targets."""
        differences = np.repeat((answers - answers.mean(axis=0))[:, :, None], self.on.shape[2], axis=2)
        return replace(self, on=np.concatenate([differences, self.on], axis=1))

    def joined(self, further: Ensemble) -> Ensemble:
        """Return the ensemble with further candidates."""
        mean, at = np.concatenate([self.mean, further.mean]), np.concatenate([self.at, further.at], axis=1)
        return replace(self, mean=mean, at=at)
