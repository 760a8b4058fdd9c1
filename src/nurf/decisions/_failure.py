"""The probability that limits are exceeded if the inputs of a model are random."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from nurf._types import Array, Mask
from nurf.decisions._design_points import Functions, design_points
from nurf.decisions._estimate import Estimate, table_of
from nurf.decisions._inputs import REPLICATES, Inputs, as_sample, data_box, normal_points, require_power
from nurf.decisions._limits import Limits
from nurf.decisions._models import of_any_model
from nurf.decisions._rare_points import Mixture, subset_points
from nurf.estimators import Report, as_generator

STARTS = 64  # starts of the search for design points; 16 find all four of the four-branch function
STEPS = 40  # steps of a search
FEW_DRAWS, FEW_STEPS = 20, 10  # draws, and steps of their searches, which start at the design points of the model
LEAST = 1e-300  # smallest probability, so that reliability indices are finite
METHODS = ("importance", "subset")


@dataclass(frozen=True, eq=False)
class Failure:
    """The probability that limits are exceeded.

    Parameters
    ----------
    names : tuple of str
        The inputs.
    probability : Estimate
        The probability. Its ``error`` is the standard error due to the points.
    reliability : Estimate
        The reliability index ``-Phi^-1(probability)``.
    design_points : array of shape (p, d)
        The most probable inputs at which the limits are exceeded, the most probable first; empty if none was found.
    distances : array of shape (p,)
        The distances of the design points from the centre in standard normal space.
    by_mean, by_std : Estimate
        Derivatives of the probability with respect to the mean and the standard deviation of each input, of shape (d,):
        the distribution is moved, or stretched around its mean. NaN for distributions that end abruptly.
    """

    names: tuple[str, ...]
    probability: Estimate
    reliability: Estimate
    design_points: Array
    distances: Array
    by_mean: Estimate
    by_std: Estimate

    @property
    def variation(self) -> float:
        """The coefficient of variation of the probability due to the points; infinite if the probability is zero."""
        value = float(self.probability)
        return float(self.probability.error / value) if value > 0 else np.inf

    def table(self) -> Any:
        """Return the most probable design point and the derivatives for all inputs: a data frame, or its columns."""
        first = self.design_points[0] if len(self.design_points) else np.full(len(self.names), np.nan)
        columns: dict[str, Any] = {"input": np.array(self.names), "design_point": first}
        return table_of(columns | self.by_mean.columns("by_mean") | self.by_std.columns("by_std"))

    def report(self) -> Report:
        """Return the probability and the design points: text in a terminal, a table in a notebook."""
        lines = [
            ("probability", f"{self.probability}, coefficient of variation {self.variation:.2g} from the points"),
            ("reliability index", str(self.reliability)),
        ]
        for point, distance in zip(self.design_points, self.distances, strict=True):
            where = ", ".join(f"{name} = {x:.4g}" for name, x in zip(self.names, point, strict=True))
            lines.append(("design point", f"{where}; {distance:.2f} from the centre in standard normal space"))
        if not len(self.distances):
            lines.append(("design points", "none: the model does not reach the limits"))
        title = f"Probability that limits are exceeded, with 90% intervals from {len(self.probability.answers)} draws"
        return Report(title, tuple(lines))

    def plot(self, ax: Any = None) -> Any:
        """Draw the reliability indices of the draws and of the model, and return the axes."""
        from nurf.plots import axes_or_current

        ax = axes_or_current(ax)
        ax.hist(self.reliability.answers[np.isfinite(self.reliability.answers)], bins=20, alpha=0.5, label="draws")
        if np.isfinite(self.reliability.value):
            ax.axvline(float(self.reliability), label="model")
        ax.set(xlabel="reliability index", ylabel="draws")
        ax.legend()
        return ax


@of_any_model
def failure(
    model: Any,
    inputs: Any = None,
    *,
    above: Any = None,
    below: Any = None,
    combine: str = "any",
    method: str = "importance",
    correlation: Any = None,
    n_points: int = 16384,
    n_draws: int = 100,
    random_state: Any = None,
) -> Failure:
    """Return the probability that limits are exceeded.

    Inputs are mapped to independent standard normal variables. The design points are the points nearest to the centre
    at which a limit is exceeded. The search uses exact gradients from many starts, for the model and its draws:
    each step goes to the nearest point at which linearised limits are exceeded (Hasofer, Lind 1974; Rackwitz, Fiessler
    1978), and is shortened if it overshoots. The probability is the mean over points of normal distributions around the
    design points, with the ratio of the densities as weights (importance sampling), for the model and for each draw.

    With ``method="subset"``, points come from subset simulation of the model, with levels that an eighth of the points
    reaches, down to the limits. Draws are evaluated at the points of all levels. The coefficient of variation is
    larger.

    Parameters
    ----------
    model : fitted regressor, GradientPipeline, or Pipeline that ends in a regressor of nurf
    inputs : dict or sequence of distributions, optional
        Continuous distributions of ``scipy.stats``, by the names of the inputs or in their order. A number
        fixes an input, which is then no input of the answer. By default inputs are uniform over the box of the data.
    above, below : float, or sequence of ``k`` floats, optional
        The limits: values above ``above`` or below ``below`` exceed them. With several outputs, one limit for each, or
        NaN for no limit.
    combine : {"any", "all"}, default "any"
        Whether any limit must be exceeded (a union), or all of them at once (an intersection).
    method : {"importance", "subset"}, default "importance"
        Importance sampling around design points, or subset simulation, which uses values only and suits limits with
        many design points or rough limits, for which searches miss the most probable points.
    correlation : array of shape (d, d), optional
        The correlations of the normal scores of the inputs (a Gaussian copula). By default they are independent.
    n_points : int, default 16384
        The number of scrambled Sobol points, a power of two; with "subset" the number of points of each level. Draws
        are evaluated at an eighth of them.
    n_draws : int, default 100
        The number of draws of the model.
    random_state : int, RandomState, Generator or None, default None

    Returns
    -------
    Failure

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from nurf import KernelFeatureRegressor
    >>> X = np.random.default_rng(0).uniform(-5, 5, (40, 2))
    >>> model = KernelFeatureRegressor().fit(X, X[:, 0] + X[:, 1])
    >>> result = failure(model, [norm(), norm()], above=4 * 2**0.5, random_state=0)
    >>> round(float(result.reliability), 1), result.design_points.round(2)
    (4.0, array([[2.83, 2.83]]))
    """
    if as_sample(inputs, model) is not None:
        raise ValueError(
            "`inputs` must be distributions: few points of a sample exceed limits. The share of them that does is "
            "`propagate(model, inputs).exceedance(y)`"
        )
    if combine not in ("any", "all"):
        raise ValueError(f"`combine` must be 'any' or 'all', got {combine!r}")
    if method not in METHODS:
        raise ValueError(f"`method` must be 'importance' or 'subset', got {method!r}")
    rng, n = as_generator(random_state), require_power(n_points)
    distribution, draws = Inputs.of(model, inputs, correlation), model.draws(n_draws, rng)
    d = distribution.dimension
    limits = Limits.of(draws.fit.value(distribution.from_normal(np.zeros((1, d)))).shape[1:], above, below, combine)
    points_of = _subset if method == "subset" else _importance
    points, weights, found = points_of(distribution, draws, limits, n, rng)
    X, at_design = distribution.from_normal(points), distribution.from_normal(found)
    _warn_outside(model, distribution, at_design)
    values = draws.fit.value(X.reshape(-1, d))
    fails, drawn = limits.exceeded(values).reshape(weights.shape), limits.exceeded(draws.value(X[0]))
    _warn_unreached(limits, values, fails)
    probability = _probability(weights, fails, drawn)
    rates = distribution.density_slopes(points.reshape(-1, d), X.reshape(-1, d))
    changes = [_change(weights, fails, drawn, rate.reshape(points.shape)) for rate in rates]
    distances = np.linalg.norm(found, axis=1)
    return Failure(tuple(distribution.names), probability, _reliability(probability), at_design, distances, *changes)


def _importance(
    distribution: Inputs, draws: Any, limits: Limits, n: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return points (R, n, d) around design points of model and draws, their weights, and the model's design points."""
    d = distribution.dimension
    starts = np.concatenate([np.zeros((1, d)), normal_points(STARTS // REPLICATES, d, rng).reshape(-1, d)])
    found = design_points(Functions(distribution, draws.fit[[0]]), limits, starts[None], STEPS)
    some = draws[: min(FEW_DRAWS, len(draws))]
    turns = found[np.arange(len(some)) % len(found)] if len(found) else np.zeros((len(some), d))
    moved = design_points(Functions(distribution, some), limits, turns[:, None], FEW_STEPS)
    mixture = Mixture(np.concatenate([found, moved]) if len(found) + len(moved) else np.zeros((1, d)))
    points = mixture.points(normal_points(n, d + 1, rng))
    return points, mixture.weights(points), found


def _subset(
    distribution: Inputs, draws: Any, limits: Limits, n: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return points (R, m, d) of subset simulation for the model, their weights, and design points next to these."""
    normals = normal_points(n, distribution.dimension, rng)
    scales = limits.deviations(draws.fit.value(distribution.from_normal(normals[0])))

    def margin(Z: Array) -> Array:
        return limits.margin(draws.fit.value(distribution.from_normal(Z)), scales)

    points, weights = subset_points(margin, normals, rng)
    flat = points[weights > 0]
    failed = flat[margin(flat) < 0]
    nearest = failed[np.argsort(np.linalg.norm(failed, axis=1))[:STARTS]]
    if not len(nearest):
        return points, weights, nearest
    return points, weights, design_points(Functions(distribution, draws.fit[[0]]), limits, nearest[None], STEPS)


def _probability(weights: Array, fails: Mask, drawn: Mask) -> Estimate:
    """Return the mean of the weights (R, m) of points that fail; draws use the first set."""
    sets = np.mean(weights * fails, axis=1)
    value, answers = sets.mean(), np.mean(weights[0] * drawn, axis=1)
    if sets[0] > 0:
        answers = answers * (value / sets[0])
    return Estimate(value, answers, sets.std(ddof=1) / np.sqrt(len(sets)))


def _change(weights: Array, fails: Mask, drawn: Mask, rates: Array) -> Estimate:
    """Return the means of rates (R, m, d) at points that fail, of shape (d,)."""
    fit, draws = (weights * fails)[..., None] * rates, (weights[0] * drawn)[..., None] * rates[0]
    return Estimate.of(lambda values: np.asarray(values.mean(axis=1)), fit, draws)


def _reliability(probability: Estimate) -> Estimate:
    value, answers = (norm.isf(np.clip(part, LEAST, 1.0)) for part in (probability.value, probability.answers))
    return Estimate(value, answers, probability.error / np.maximum(norm.pdf(value), LEAST))


def _warn_outside(model: Any, distribution: Inputs, points: Array) -> None:
    """Warn if the most probable design point, the first of (p, d), is beyond the data."""
    low, high = data_box(model)
    outside = ((points < low) | (points > high))[:1]
    if outside.any():
        name = distribution.names[int(np.argmax(outside[0]))]
        warnings.warn(
            f"the most probable design point is beyond the data in {name}: the model knows little there, and intervals "
            "grow",
            stacklevel=4,  # the call of the user
        )


def _warn_unreached(limits: Limits, values: Array, fails: Mask) -> None:
    """Warn if no point exceeds the limits, with the range of the values (m,) or (m, k)."""
    if fails.any():
        return
    columns = values.reshape(len(values), -1)
    ranges = [
        f"{columns[:, o].min():.4g} to {columns[:, o].max():.4g}" + (f" (output {o})" if limits.shape else "")
        for o in dict.fromkeys(limits.outputs.tolist())
    ]
    warnings.warn(
        f"the model does not reach the limits: its values at {len(values)} points are {', '.join(ranges)}. As far as "
        "the model knows, the probability is zero",
        stacklevel=4,  # the call of the user
    )
