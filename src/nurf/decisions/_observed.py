"""Measurements, and how likely they are if a model with its error is the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._types import Array, Index, Mask
from nurf._validation import as_finite, as_floats, is_whole

LEAST = 1e-12  # of the trace of a covariance, which is added to its diagonal: without it there is no factorisation


@dataclass(frozen=True, eq=False)
class Known:
    """Inputs that are known for each measurement.

    Parameters
    ----------
    names : list of str
        All inputs of the model.
    places : array of shape (c,)
        The places of those that are known.
    values : array of shape (m, c)
        One row if none is known.
    """

    names: list[str]
    places: Index
    values: Array

    @classmethod
    def of(cls, at: Any, names: list[str]) -> Known:
        """Return the known inputs from a data frame or a dict."""
        if at is None:
            return cls(names, np.zeros(0, int), np.zeros((1, 0)))
        if hasattr(at, "columns"):
            at = {name: at[name] for name in at.columns}
        if not isinstance(at, Mapping):
            raise ValueError(
                "`at` must be a data frame of known inputs, or a dict of their values by name or place, got "
                f"{type(at).__name__}"
            )
        keys = [names[key] if is_whole(key, 0) and key < len(names) else key for key in at]
        if not keys or len(set(keys)) < len(keys) or any(key not in names for key in keys):
            raise ValueError(f"`at` must have some of the inputs {names}, each once, got {list(at)}")
        if len(keys) == len(names):
            raise ValueError(f"`at` must leave at least one input unknown, got all of {names}")
        columns = [np.atleast_1d(as_finite("at", column)) for column in at.values()]
        if any(column.ndim != 1 or column.shape != columns[0].shape for column in columns):
            raise ValueError(f"`at` must have as many values of each input, got {[column.shape for column in columns]}")
        return cls(names, np.array([names.index(key) for key in keys]), np.column_stack(columns))

    @property
    def unknown(self) -> Index:
        """The places of the other inputs."""
        return np.setdiff1d(np.arange(len(self.names)), self.places)

    def inputs(self, X: Array) -> Array:
        """Return all inputs of all measurements (p, m, d) for unknown inputs (p, u)."""
        result = np.empty((len(X), len(self.values), len(self.names)))
        result[..., self.unknown] = X[:, None]
        result[..., self.places] = self.values
        return result


@dataclass(frozen=True, eq=False)
class Observed:
    """Measured outputs of a model: rows have known inputs of their own, and all unknown inputs in common.

    Parameters
    ----------
    known : Known
    values : array of shape (m, k)
        NaN where nothing was measured. Repeated measurements with the same inputs are averaged.
    deviations : array of shape (m, k)
        Of the noise.
    """

    known: Known
    values: Array
    deviations: Array

    @classmethod
    def of(cls, observations: Any, noise: Any, known: Known, k: int) -> Observed:
        """Return measurements of ``k`` outputs."""
        y, deviations = as_floats("observations", observations), as_finite("noise", noise)
        repeated = not len(known.places)
        m = y.size // k if repeated else len(known.values)
        if not (y.size and y.size == m * k and y.ndim <= 2 and (y.ndim < 2 or y.shape == (m, k))):
            wanted = f"({k},), or (r, {k}) if they are repeated" if repeated else f"({m},)" if k == 1 else f"({m}, {k})"
            raise ValueError(f"`observations` must have the shape {wanted}, got {y.shape}")
        try:
            sizes = np.broadcast_to(deviations, y.shape).reshape(m, k)
        except ValueError:
            raise ValueError(
                f"`noise` must be a standard deviation, one for each of {k} outputs, or one for each observation of "
                f"shape {y.shape}, got shape {deviations.shape}"
            ) from None
        if np.any(deviations <= 0):
            raise ValueError(f"`noise` must be standard deviations > 0, got {deviations.min()}")
        if np.any(np.isinf(y)) or np.all(np.isnan(y)):
            raise ValueError(
                "`observations` must be finite, or NaN for what is not measured, and at least one a number"
            )
        y = y.reshape(m, k)
        return cls(known, *(_averaged(y, sizes) if repeated else (y, sizes)))

    @property
    def measured(self) -> Mask:
        """Whether outputs are measured, of shape (m, k)."""
        return ~np.isnan(self.values)


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The density of measurements for given unknown inputs: normal, with the errors of the model and the noise.

    The errors of the model at all rows and outputs are dependent: their covariance is the mean product of the
    differences of draws from the fit.

    Parameters
    ----------
    observed : Observed
    draws : Draws
    units : array of shape (M,)
        The size of noise and errors of the model at each measurement, in units of which everything is computed:
        squares of small numbers, and of large ones, are no floats.
    noise : array of shape (M,)
        The standard deviations of the noise and of the rounding errors of values, in these units.
    """

    observed: Observed
    draws: Any
    units: Array
    noise: Array

    @classmethod
    def of(cls, observed: Observed, draws: Any, X: Array) -> Likelihood:
        """Return the density, with errors of the size that they have at some unknown inputs (p, u)."""
        noise = observed.deviations[observed.measured]
        plain = cls(observed, draws, np.ones_like(noise), noise)
        fit, drawn = plain._selected(draws.fit, X)[0], plain._selected(draws, X)
        errors = _root_mean_squares(drawn - fit)
        rounding = np.finfo(float).eps * np.abs(fit).max(axis=0)
        units = np.hypot(noise, errors)
        if np.any(units <= rounding):
            i = int(np.argmin(units - rounding))
            raise ValueError(
                "`noise`, or the errors of the model, must be larger than the rounding errors of its values, about "
                f"{rounding[i]:.2g}, got noise {noise[i]:.2g} and errors of the model of {errors[i]:.2g}"
            )
        return cls(observed, draws, units, np.hypot(noise, rounding) / units)

    def log(self, X: Array) -> Array:
        """Return the logarithms of the density for unknown inputs (p, u), of shape (p,), up to a constant."""
        errors, covariance, _ = self._parts(X)
        factor = np.linalg.cholesky(covariance)
        whitened = np.linalg.solve(factor, errors[..., None])[..., 0]
        logs = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        return np.asarray(-np.sum(whitened**2, axis=1) / 2 - logs)

    def misfit(self, X: Array) -> float:
        """Return the mean squared error for unknown inputs (1, u), in units of what errors and noise explain."""
        errors, covariance, _ = self._parts(X)
        return float(errors[0] @ np.linalg.solve(covariance[0], errors[0]) / len(errors[0]))

    def slopes(self, X: Array) -> Array:
        """Return the gradients of the logarithm of the density, of shape (p, u).

        With the errors ``r``, the covariance ``K``, ``a = K^-1 r``, and differences ``D`` of ``n`` draws from the fit::

            a.df + ((D a).(dD a) - tr(D K^-1 dD^T)) / n.
        """
        errors, covariance, differences = self._parts(X)
        inverse = np.linalg.inv(covariance)
        a = np.einsum("pij,pj->pi", inverse, errors)
        own, drawn = self.fit_gradients(X), self._gradients(X, self.draws)
        weights = np.einsum("npi,pi->np", differences, a)[..., None] * a
        weights = weights - np.einsum("npi,pij->npj", differences, inverse)
        changes = np.einsum("npi,npiu->pu", weights, drawn - own) / len(differences)
        return np.asarray(np.einsum("pi,piu->pu", a, own) + changes)

    def like(self, X: Array) -> Similar:
        """Return the density with the covariance for unknown inputs (1, u), whatever the inputs."""
        return Similar(self, np.linalg.inv(self._parts(X)[1][0]))

    def errors(self, X: Array) -> Array:
        """Return the measurements less the values of the fit, of shape (p, M)."""
        return np.asarray(self._targets - self._selected(self.draws.fit, X)[0])

    def fit_gradients(self, X: Array) -> Array:
        """Return the gradients of the values of the fit with respect to unknown inputs, of shape (p, M, u)."""
        return np.asarray(self._gradients(X, self.draws.fit)[0])

    @property
    def _targets(self) -> Array:
        return np.asarray(self.observed.values[self.observed.measured] / self.units)

    def _parts(self, X: Array) -> tuple[Array, Array, Array]:
        """Return errors (p, M), their covariances (p, M, M), and the differences of draws from the fit (n, p, M)."""
        fit, drawn = self._selected(self.draws.fit, X)[0], self._selected(self.draws, X)
        differences = drawn - fit
        covariance = np.einsum("npi,npj->pij", differences, differences, optimize=True) / len(differences)
        sizes = np.trace(covariance, axis1=1, axis2=2)[:, None, None]
        diagonal = self.noise**2 + LEAST * sizes
        return self._targets - fit, covariance + diagonal * np.eye(fit.shape[1]), differences

    def _selected(self, draws: Any, X: Array) -> Array:
        """Return the values of draws at the measurements, of shape (n, p, M)."""
        points = self.observed.known.inputs(X)
        found = draws.value(points.reshape(-1, points.shape[2]))
        found = found.reshape(-1, *points.shape[:2], self.observed.values.shape[1])
        return np.asarray(found[:, :, self.observed.measured] / self.units)

    def _gradients(self, X: Array, draws: Any) -> Array:
        """Return the gradients of the values with respect to unknown inputs, of shape (n, p, M, u)."""
        points = self.observed.known.inputs(X)
        d = points.shape[2]
        found = draws.gradient(points.reshape(-1, d))
        found = found.reshape(-1, *points.shape[:2], self.observed.values.shape[1], d)[:, :, self.observed.measured]
        return np.asarray(found[..., self.observed.known.unknown] / self.units[:, None])


@dataclass(frozen=True, eq=False)
class Similar:
    """A likelihood with the same covariance for all inputs: it takes the fit only.

    Parameters
    ----------
    likelihood : Likelihood
    precision : array of shape (M, M)
        The inverse of the covariance.
    """

    likelihood: Likelihood
    precision: Array

    def log(self, X: Array) -> Array:
        """Return the logarithms of the density for unknown inputs (p, u), of shape (p,), up to a constant."""
        errors = self.likelihood.errors(X)
        return np.asarray(-np.sum(errors * (errors @ self.precision), axis=1) / 2)

    def slopes(self, X: Array) -> Array:
        """Return their gradients, of shape (p, u)."""
        pulls = self.likelihood.errors(X) @ self.precision
        return np.asarray(np.einsum("pi,piu->pu", pulls, self.likelihood.fit_gradients(X)))


def _root_mean_squares(differences: Array) -> Array:
    """Return the root mean squares of differences (n, p, M) over draws and points, of shape (M,)."""
    sizes = np.abs(differences).max(axis=(0, 1))
    sizes = np.where(sizes > 0, sizes, 1.0)
    return np.asarray(sizes * np.sqrt(np.mean((differences / sizes) ** 2, axis=(0, 1))))


def _averaged(y: Array, deviations: Array) -> tuple[Array, Array]:
    """Return the weighted means of repeated measurements (r, k), and their standard deviations, of shape (1, k)."""
    known, least = ~np.isnan(y), deviations.min(axis=0)
    weights = np.where(known, (least / deviations) ** 2, 0.0)
    total = np.where(known.any(axis=0), weights.sum(axis=0), 1.0)
    means = np.sum(weights / total * np.where(known, y, 0.0), axis=0)
    return np.where(known.any(axis=0), means, np.nan)[None], (least / np.sqrt(total))[None]
