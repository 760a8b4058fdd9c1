"""Random inputs: their distributions, and points of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, qmc, uniform
from sklearn.utils.validation import check_is_fitted

from nurf._types import Array
from nurf._validation import as_finite, is_whole

REPLICATES = 8  # sets of points, whose answers differ by the error of one of them
OUTSIDE = (
    0.1  # share of points beyond the data from which on a warning is given: 100 samples of 4 inputs leave 8% outside
)

STEP = 1e-4  # of differences of densities, in standard deviations
ABRUPT = 1e-6  # a density at an end of a distribution that is larger does not vanish there


def input_names(model: Any) -> list[str]:
    """Return the names of a fitted model's inputs, or ``x0, x1, ...``."""
    if not hasattr(model, "draws"):
        raise TypeError(f"`model` must be a regressor of nurf, which has `draws`, got {type(model).__name__}")
    check_is_fitted(model)
    return [str(name) for name in getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])]


def data_box(model: Any) -> tuple[Array, Array]:
    """Return the ends of the box that holds the data of a fitted model, each of shape (d,)."""
    scaling, curves = model.scaling_, getattr(getattr(model, "warping_", None), "inputs", None)
    if getattr(getattr(model, "model_", model), "scaling", "box") == "box":
        half = scaling.x_scale / np.sqrt(len(scaling.x_scale))
        low, high = scaling.x_center - half, scaling.x_center + half
    else:
        points = scaling.inputs_back(model.uncertainty_.reach.points)
        low, high = points.min(axis=0), points.max(axis=0)
    return (low, high) if curves is None else (curves.back(low), curves.back(high))


def require_power(n_points: Any) -> int:
    """Return the number of points of each set; raise an error if it is no power of two, or too small."""
    if not (is_whole(n_points) and n_points >= 2 * REPLICATES and int(n_points) & (int(n_points) - 1) == 0):
        raise ValueError(f"`n_points` must be a power of two of at least {2 * REPLICATES}, got {n_points!r}")
    return int(n_points) // REPLICATES


@dataclass(frozen=True, eq=False)
class Inputs:
    """Random inputs with given marginal distributions and a Gaussian copula.

    Parameters
    ----------
    names : list of str
    marginals : list of frozen distributions of scipy.stats
    factor : array of shape (d, d)
        A lower triangular factor of the correlation matrix of the normal scores.
    """

    names: list[str]
    marginals: list[Any]
    factor: Array

    @classmethod
    def of(cls, model: Any, inputs: Any = None, correlation: Any = None) -> Inputs:
        """Return the inputs of a model: by name, in order, or uniform over the box of the data."""
        names = input_names(model)
        low, high = data_box(model)
        if inputs is None:
            inputs = [uniform(a, b - a) for a, b in zip(low, high, strict=True)]
        elif isinstance(inputs, Mapping):
            unknown, missing = [n for n in inputs if n not in names], [n for n in names if n not in inputs]
            if unknown or missing:
                raise ValueError(f"`inputs` must have the names {names}, got unknown {unknown} and missing {missing}")
            inputs = [inputs[name] for name in names]
        elif not (isinstance(inputs, Sequence) and len(inputs) == len(names)):
            raise ValueError(f"`inputs` must be {len(names)} distributions, one for each of {names}, got {inputs!r}")
        for name, marginal in zip(names, inputs, strict=True):
            if not all(hasattr(marginal, method) for method in ("ppf", "isf", "cdf", "pdf")):
                raise ValueError(
                    f"`inputs` must be continuous distributions of scipy.stats with their parameters, got {marginal!r} "
                    f"for {name}"
                )
            if not np.all(np.isfinite(marginal.ppf([0.01, 0.99]))):
                raise ValueError(f"`inputs` must have finite quantiles, got {marginal.args} {marginal.kwds} for {name}")
        return cls(names, list(inputs), _factor(correlation, len(names)))

    @property
    def dimension(self) -> int:
        """The number of inputs."""
        return len(self.names)

    def from_normal(self, Z: Array) -> Array:
        """Return the inputs for independent standard normal variables (..., d)."""
        return self.from_scores(Z @ self.factor.T)

    def from_scores(self, scores: Array) -> Array:
        """Return the inputs for normal scores (..., d), which are correlated as the inputs are."""
        columns = [_quantile(marginal, scores[..., j]) for j, marginal in enumerate(self.marginals)]
        return np.stack(columns, axis=-1)

    def kept(self, scores: Array, others: Array, chosen: Sequence[int]) -> Array:
        """Return scores (..., d) of which some are kept, and the others drawn given them.

        Parameters
        ----------
        scores : array of shape (..., d)
        others : array of shape (..., d)
            Independent standard normal variables, from which the others are drawn.
        chosen : sequence of int
            The inputs that are kept.
        """
        order = [*chosen, *(j for j in range(self.dimension) if j not in chosen)]
        factor, p = np.linalg.cholesky((self.factor @ self.factor.T)[np.ix_(order, order)]), len(chosen)
        own = np.linalg.solve(factor[:p, :p], scores[..., order[:p], None])[..., 0] if p else scores[..., :0]
        result = np.empty_like(scores)
        result[..., order] = np.concatenate([own, others[..., order[p:]]], axis=-1) @ factor.T
        return result

    def slopes(self, Z: Array, X: Array) -> Array:
        """Return the derivatives of the inputs by the normal variables, of shape (m, d, d): inputs, variables."""
        scores = Z @ self.factor.T
        densities = np.column_stack([marginal.pdf(X[:, j]) for j, marginal in enumerate(self.marginals)])
        rates = np.divide(norm.pdf(scores), densities, out=np.zeros_like(densities), where=densities > 0)
        return np.asarray(rates[:, :, None] * self.factor)

    def density_slopes(self, Z: Array, X: Array) -> tuple[Array, Array]:
        """Return derivatives of the log density by the means and by the standard deviations of all inputs, (m, d).

        A distribution is moved, or stretched around its mean, and the copula stays. They are NaN if its density does
        not vanish at an end: then what is beyond the end counts, too.
        """
        inverse = np.linalg.inv(self.factor @ self.factor.T) - np.eye(self.dimension)
        scores = Z @ self.factor.T
        pulls = scores @ inverse
        by_mean, by_std = np.empty_like(X), np.empty_like(X)
        for j, marginal in enumerate(self.marginals):
            x, mean, std = X[:, j], marginal.mean(), marginal.std()
            step = STEP * std
            slope = (marginal.logpdf(x + step) - marginal.logpdf(x - step)) / (2 * step)
            slope = slope - pulls[:, j] * marginal.pdf(x) / norm.pdf(scores[:, j])
            ends = [end for end in marginal.support() if np.isfinite(end)]
            abrupt = any(marginal.pdf(end) * std > ABRUPT for end in ends)
            by_mean[:, j] = np.nan if abrupt else -slope
            by_std[:, j] = np.nan if abrupt else -(1 + (x - mean) * slope) / std
        return by_mean, by_std


def warn_beyond(model: Any, X: Array, what: str = "of the points") -> None:
    """Warn if many points (m, d) are beyond the data of a model."""
    low, high = data_box(model)
    room = 1e-9 * (high - low)
    outside = (low - room > X) | (high + room < X)
    share = float(np.mean(outside.any(axis=1)))
    if share > OUTSIDE:
        worst = input_names(model)[int(np.argmax(outside.mean(axis=0)))]
        warnings.warn(
            f"{share:.0%} {what} are beyond the data, most of them in {worst}: the model knows little there, and "
            "intervals grow",
            stacklevel=3,
        )


def normal_points(n: int, d: int, rng: np.random.Generator) -> Array:
    """Return independent sets of standard normal points, of shape (R, n, d): scrambled Sobol points."""
    sets = [qmc.Sobol(d, seed=rng).random_base2(int(np.log2(n))) for _ in range(REPLICATES)]
    return np.asarray(norm.ppf(np.clip(sets, 2.0**-40, 1 - 2.0**-40)))  # points at the boundary have no score


def as_sample(inputs: Any, model: Any) -> Array | None:
    """Return the points if the inputs are a sample of one's own, of shape (m, d), and None otherwise."""
    if not (hasattr(inputs, "shape") and len(inputs.shape) == 2):
        return None
    names = input_names(model)
    if hasattr(inputs, "columns") and hasattr(model, "feature_names_in_"):
        missing = [name for name in names if name not in list(inputs.columns)]
        if missing:
            raise ValueError(f"`inputs` must have the columns {names}, got none for {missing}")
        inputs = inputs[names]
    points = as_finite("inputs", inputs)
    if points.shape[1] != len(names) or len(points) < 2:
        raise ValueError(f"`inputs` must be at least two points of {len(names)} inputs, got shape {points.shape}")
    return points


def _quantile(marginal: Any, scores: Array) -> Array:
    """Return the quantiles with given normal scores; those of large scores from the other end, where 1 - p is exact."""
    return np.asarray(np.where(scores > 0, marginal.isf(norm.sf(scores)), marginal.ppf(norm.cdf(scores))))


def _factor(correlation: Any, d: int) -> Array:
    if correlation is None:
        return np.eye(d)
    matrix = as_finite("correlation", correlation)
    if matrix.shape != (d, d) or not np.allclose(matrix, matrix.T) or not np.allclose(np.diag(matrix), 1.0):
        raise ValueError(f"`correlation` must be a symmetric matrix of shape {(d, d)} with ones on its diagonal")
    try:
        return np.asarray(np.linalg.cholesky(matrix), float)
    except np.linalg.LinAlgError as error:
        raise ValueError("`correlation` must be positive definite, and is not") from error
