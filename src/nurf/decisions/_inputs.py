"""Random inputs: distributions, and points sampled from them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import norm, qmc, uniform

from nurf._types import Array
from nurf._validation import as_finite, is_whole

REPLICATES = 8  # independent sets of points, whose answers give the standard error
OUTSIDE = (
    0.1  # share of points beyond the data above which a warning is given: 100 samples of 4 inputs leave 8% outside
)
STEP = 1e-4  # step of finite differences of densities, in standard deviations
ABRUPT = 1e-6  # largest density at an end of a distribution that counts as zero


def input_names(model: Any) -> list[str]:
    """Return the names of a fitted model's inputs, or ``x0, x1, ...``."""
    return [str(name) for name in getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])]


def data_box(model: Any) -> tuple[Array, Array]:
    """Return the ends of the box of the data of a fitted model, each of shape (d,); NaN if unknown."""
    own = getattr(model, "data_box_", None)
    if own is not None:
        return own[0], own[1]
    scaling, curves = model.scaling_, getattr(getattr(model, "warping_", None), "inputs", None)
    if getattr(getattr(model, "model_", model), "scaling", "box") == "box":
        half = scaling.x_scale / np.sqrt(len(scaling.x_scale))
        low, high = scaling.x_center - half, scaling.x_center + half
    else:
        points = scaling.inputs_back(model.uncertainty_.reach.points)
        low, high = points.min(axis=0), points.max(axis=0)
    return (low, high) if curves is None else (curves.back(low), curves.back(high))


def require_power(n_points: Any) -> int:
    """Return the number of points of each set; raise an error unless it is a large enough power of two."""
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
    normal : array of shape (2, d)
        The means and the standard deviations of normal inputs, NaN for others: quantiles of SciPy take much longer.
    """

    names: list[str]
    marginals: list[Any]
    factor: Array
    normal: Array

    @classmethod
    def of(cls, model: Any, inputs: Any = None, correlation: Any = None) -> Inputs:
        """Return the inputs of a model: by name, in order, or uniform over the box of the data."""
        names = input_names(model)
        low, high = data_box(model)
        if inputs is None:
            if not np.all(np.isfinite([low, high])):
                raise ValueError("`inputs` must be given: the box of the data is not known behind these transformers")
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
                raise ValueError(
                    f"`inputs` must have finite quantiles, got {marginal.args} {marginal.kwds} for {name}: is there a "
                    "shape that is not allowed, or a scale that is not positive (a uniform distribution has `loc`, its "
                    "lower end, and `scale`, its width)?"
                )
        return cls.among(names, list(inputs), correlation)

    @classmethod
    def among(cls, names: list[str], marginals: list[Any], correlation: Any = None) -> Inputs:
        """Return inputs with given names and distributions, without a model."""
        normal = [(m.mean(), m.std()) if distribution_name(m) == "norm" else (np.nan, np.nan) for m in marginals]
        return cls(names, marginals, _factor(correlation, len(names)), np.array(normal).T)

    @property
    def dimension(self) -> int:
        """The number of inputs."""
        return len(self.names)

    @property
    def independent(self) -> bool:
        """Whether the inputs are independent."""
        return np.array_equal(self.factor, np.eye(self.dimension))

    def from_normal(self, Z: Array) -> Array:
        """Return the inputs for independent standard normal variables (..., d)."""
        return self.from_scores(Z @ self.factor.T)

    def from_scores(self, scores: Array) -> Array:
        """Return the inputs for normal scores (..., d), with the correlations of the inputs."""
        points = np.asarray(self.normal[0] + self.normal[1] * scores)
        for j in np.flatnonzero(np.isnan(self.normal[0])):
            points[..., j] = _quantile(self.marginals[j], scores[..., j])
        return points

    def mixed(self, scores: Array, others: Array) -> Callable[[Sequence[int]], Array]:
        """Return a function of some inputs: points whose other inputs are drawn anew, given these (see ``kept``).

        Quantiles of independent inputs are computed once.
        """
        if not self.independent:
            return lambda chosen: self.from_scores(self.kept(scores, others, chosen))
        own, new = self.from_scores(scores), self.from_scores(others)
        return lambda chosen: np.where(np.isin(np.arange(self.dimension), chosen), own, new)

    def kept(self, scores: Array, others: Array, chosen: Sequence[int]) -> Array:
        """Return scores (..., d), some of which are kept, and the others drawn conditionally.

        Parameters
        ----------
        scores : array of shape (..., d)
        others : array of shape (..., d)
            Independent standard normal variables for the other scores.
        chosen : sequence of int
            The inputs whose scores are kept.
        """
        order = [*chosen, *(j for j in range(self.dimension) if j not in chosen)]
        factor, p = np.linalg.cholesky((self.factor @ self.factor.T)[np.ix_(order, order)]), len(chosen)
        own = np.linalg.solve(factor[:p, :p], scores[..., order[:p], None])[..., 0] if p else scores[..., :0]
        result = np.empty_like(scores)
        result[..., order] = np.concatenate([own, others[..., order[p:]]], axis=-1) @ factor.T
        return result

    def slopes(self, Z: Array, X: Array) -> Array:
        """Return the derivatives of the inputs with respect to the normal variables, of shape (m, d, d)."""
        scores = Z @ self.factor.T
        densities = np.column_stack([marginal.pdf(X[:, j]) for j, marginal in enumerate(self.marginals)])
        rates = np.divide(norm.pdf(scores), densities, out=np.zeros_like(densities), where=densities > 0)
        return np.asarray(rates[:, :, None] * self.factor)

    def density_slopes(self, Z: Array, X: Array) -> tuple[Array, Array]:
        """Return derivatives of the log density with respect to means and standard deviations of the inputs, (m, d).

        A distribution is moved, or stretched around its mean, and the copula stays. Derivatives are NaN if the density
        does not vanish at an end, because points beyond the end would count as well.
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
            stacklevel=4,  # the call of the user
        )


def warn_moments(distribution: Inputs, what: str) -> None:
    """Warn if inputs have no finite variance, in which case answers may have no value."""
    without = [name for name, m in zip(distribution.names, distribution.marginals, strict=True) if not m.std() < np.inf]
    if without:
        warnings.warn(
            f"inputs without a finite variance ({', '.join(without)}): {what} of the output may not exist, and "
            "then the answer depends on the points",
            stacklevel=4,  # the call of the user
        )


def normal_points(n: int, d: int, rng: np.random.Generator) -> Array:
    """Return independent sets of standard normal points, of shape (R, n, d): scrambled Sobol points."""
    sets = [qmc.Sobol(d, seed=rng).random_base2(int(np.log2(n))) for _ in range(REPLICATES)]
    return np.asarray(norm.ppf(np.clip(sets, 2.0**-40, 1 - 2.0**-40)))  # points at the boundary have no score


def as_sample(inputs: Any, model: Any) -> Array | None:
    """Return the points (m, d) if the inputs are a sample, and None otherwise."""
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


def distribution_name(marginal: Any) -> str:
    """Return the name of a distribution of SciPy, or "" for others."""
    return str(getattr(getattr(marginal, "dist", None), "name", ""))


def _quantile(marginal: Any, scores: Array) -> Array:
    """Return the quantiles for normal scores; large scores use the other tail, where 1 - p is exact."""
    points, upper = np.empty_like(scores), scores > 0
    points[upper], points[~upper] = marginal.isf(ndtr(-scores[upper])), marginal.ppf(ndtr(scores[~upper]))
    return points


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
