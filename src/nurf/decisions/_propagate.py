"""The distribution of the outputs of a model with random inputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde

from nurf._types import Array
from nurf._validation import as_finite
from nurf.decisions._estimate import Estimate, deviation, table_of
from nurf.decisions._inputs import Inputs, as_sample, normal_points, require_power, warn_beyond, warn_moments
from nurf.decisions._models import of_any_model
from nurf.estimators import Report, as_generator

LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)  # quantiles in tables


@dataclass(frozen=True, eq=False)
class Propagation:
    """The distribution of the outputs of a model with random inputs. Every number is an ``Estimate``.

    Parameters
    ----------
    fit : array of shape (R, m) or (R, m, k)
        The values of the model at ``R`` independent sets of points.
    draws : array of shape (n, m) or (n, m, k)
        The values of draws of the model at the first set.
    """

    fit: Array
    draws: Array

    @property
    def mean(self) -> Estimate:
        """The mean, of shape () or (k,)."""
        return self._ask(_mean)

    @property
    def std(self) -> Estimate:
        """The standard deviation, of shape () or (k,)."""
        return self._ask(_std)

    @property
    def covariance(self) -> Estimate:
        """The covariance matrix of the outputs, of shape (k, k), or the variance of one output, of shape ()."""
        return self._ask(_covariance)

    def quantile(self, p: Any) -> Estimate:
        """Return the quantiles for the probabilities ``p``, of shape ``p.shape`` or (``p.shape``, k)."""
        levels = as_finite("p", p)
        if np.any((levels < 0) | (levels > 1)):
            raise ValueError(f"`p` must be between 0 and 1, got {p!r}")
        return self._ask(partial(_quantiles, levels=levels))

    def exceedance(self, y: Any) -> Estimate:
        """Return the probabilities of values above ``y``, of shape ``y.shape`` or (``y.shape``, k)."""
        return self._ask(partial(_exceedance, thresholds=as_finite("y", y)))

    def density(self, y: Any) -> Estimate:
        """Return the density of the values at ``y`` (m,) by a Gaussian kernel estimate, of shape (m,) or (m, k)."""
        if np.any(np.ptp(self.fit, axis=1) == 0) or np.any(np.ptp(self.draws, axis=1) == 0):
            raise ValueError("a density needs values that vary, got outputs that are constant")
        return self._ask(partial(_density, at=np.atleast_1d(as_finite("y", y))))

    def table(self) -> Any:
        """Return mean, standard deviation and some quantiles with their intervals: a data frame, or its columns."""
        names, parts = ["mean", "std", *(f"q{100 * p:g}" for p in LEVELS)], [self.mean, self.std, self.quantile(LEVELS)]
        k = self.fit[0, 0].size
        columns: dict[str, Any] = {"quantity": np.repeat(names, k)}
        if self.fit.ndim > 2:
            columns["output"] = np.tile(np.arange(k), len(names))
        each = [part.columns("value") for part in parts]
        return table_of(columns | {key: np.concatenate([part[key] for part in each]) for key in each[0]})

    def report(self) -> Report:
        """Return the mean, the standard deviation and quantiles: text in a terminal, a table in a notebook."""
        quantiles = self.quantile(LEVELS)
        lines = [("mean", str(self.mean)), ("standard deviation", str(self.std))]
        lines += [(f"{100 * p:g}% quantile", str(quantiles[i])) for i, p in enumerate(LEVELS)]
        points = f"{np.prod(self.fit.shape[:2])}, standard error of the mean {np.max(self.mean.error):.2g}"
        lines.append(("points", points))
        return Report(f"Distribution of the values, with 90% intervals from {len(self.draws)} draws", tuple(lines))

    def plot(self, ax: Any = None) -> Any:
        """Draw the probability of larger values of the first output, with its 90% interval, and return the axes."""
        from nurf.plots import axes_or_current

        ax = axes_or_current(ax)
        first = Propagation(*(part.reshape(*part.shape[:2], -1)[..., 0] for part in (self.fit, self.draws)))
        at = np.linspace(first.fit.min(), first.fit.max(), 100)
        curve = first.exceedance(at)
        ax.fill_between(at, *curve.interval.T, alpha=0.3, label="90% interval")
        ax.plot(at, curve.value, label="model")
        ax.set(xlabel="y", ylabel="probability of a larger value", ylim=(0, 1))
        ax.legend()
        return ax

    def _ask(self, function: Any) -> Estimate:
        return Estimate.of(function, self.fit, self.draws)


@of_any_model
def propagate(
    model: Any,
    inputs: Any = None,
    *,
    correlation: Any = None,
    n_points: int = 16384,
    n_draws: int = 100,
    random_state: Any = None,
) -> Propagation:
    """Return the distribution of the outputs of a model with random inputs.

    Parameters
    ----------
    model : fitted regressor, GradientPipeline, or Pipeline that ends in a regressor of nurf
    inputs : dict or sequence of distributions, or array of shape (m, d), optional
        Continuous distributions of ``scipy.stats``, by the names of the inputs or in their order, of which numbers fix
        an input; or a sample of the inputs, which counts as the distribution itself. By default inputs are uniform
        over the box of the data.
    correlation : array of shape (d, d), optional
        The correlations of the normal scores of the inputs (a Gaussian copula). By default they are independent.
    n_points : int, default 16384
        The number of scrambled Sobol points, a power of two. Draws are evaluated at an eighth of them.
    n_draws : int, default 100
        The number of draws of the model.
    random_state : int, RandomState, Generator or None, default None

    Returns
    -------
    Propagation

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from nurf import KernelFeatureRegressor
    >>> X = np.random.default_rng(0).uniform(-4, 4, (40, 2))
    >>> model = KernelFeatureRegressor().fit(X, X[:, 0] + 2 * X[:, 1])
    >>> result = propagate(model, [norm(), norm()], random_state=0)
    >>> round(float(result.std), 2), round(float(result.quantile(0.95)), 1)
    (2.24, 3.7)
    """
    rng = as_generator(random_state)
    sample = as_sample(inputs, model)
    if sample is None:
        distribution = Inputs.of(model, inputs, correlation)
        warn_moments(distribution, "the mean and the standard deviation")
        points = distribution.from_normal(normal_points(require_power(n_points), distribution.dimension, rng))
    else:
        points = sample[None]
    flat = points.reshape(-1, points.shape[2])
    warn_beyond(model, flat)
    draws = model.draws(n_draws, rng)
    fit = draws.fit.value(flat)
    return Propagation(fit.reshape(*points.shape[:2], *fit.shape[1:]), draws.value(points[0]))


def _mean(values: Array) -> Array:
    return np.asarray(values.mean(axis=1))


def _std(values: Array) -> Array:
    return deviation(values, 1)


def _covariance(values: Array) -> Array:
    if values.ndim == 2:
        return np.asarray(values.var(axis=1))
    centred = values - values.mean(axis=1, keepdims=True)
    return np.asarray(np.swapaxes(centred, 1, 2) @ centred / values.shape[1])


def _quantiles(values: Array, levels: Array) -> Array:
    return np.moveaxis(np.quantile(values, levels, axis=1), levels.ndim, 0)


def _exceedance(values: Array, thresholds: Array) -> Array:
    shares = [np.mean(values > y, axis=1) for y in thresholds.ravel()]
    return np.stack(shares, axis=1).reshape(len(values), *thresholds.shape, *values.shape[2:])


def _density(values: Array, at: Array) -> Array:
    flat = values.reshape(*values.shape[:2], -1)
    found = [[gaussian_kde(column)(at) for column in each.T] for each in flat]
    return np.moveaxis(np.array(found), 1, 2).reshape(len(values), len(at), *values.shape[2:])
