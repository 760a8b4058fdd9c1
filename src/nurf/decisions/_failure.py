"""The probability that limits are exceeded if the inputs of a model are random."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from nurf._types import Array, Mask
from nurf.decisions._estimate import Estimate, table_of
from nurf.decisions._inputs import Inputs, as_sample, data_box, require_power
from nurf.decisions._limits import Limits
from nurf.decisions._models import of_any_model
from nurf.decisions._rare_events import METHODS, RareEvent, RareSample
from nurf.estimators import Report, as_generator

LEAST, MOST = 1e-300, 1 - 2.0**-53  # probabilities between which reliability indices are finite


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
    method : {"importance", "subset"}
        How the points were drawn.
    """

    names: tuple[str, ...]
    probability: Estimate
    reliability: Estimate
    design_points: Array
    distances: Array
    by_mean: Estimate
    by_std: Estimate
    method: str

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
            ("probability", f"{self.probability}, {self._words()}"),
            ("reliability index", str(self.reliability) if float(self.probability) > 0 else self._least()),
        ]
        for point, distance in zip(self.design_points, self.distances, strict=True):
            where = ", ".join(f"{name} = {x:.4g}" for name, x in zip(self.names, point, strict=True))
            lines.append(("design point", f"{where}; {distance:.2f} from the centre in standard normal space"))
        if not len(self.distances):
            lines.append(("design points", "none was found"))
        title = f"Probability that limits are exceeded, with 90% intervals from {len(self.probability.answers)} draws"
        return Report(title, tuple(lines))

    def _words(self) -> str:
        kinds = {"importance": "importance sampling", "subset": "subset simulation"}
        if float(self.probability) == 0:
            return "only draws of the model reach the limits"
        return f"coefficient of variation {self.variation:.2g} from the points of {kinds[self.method]}"

    def _least(self) -> str:
        return f"at least {self.reliability.interval[0]:.4g}"

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
    method: str = "auto",
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

    Design points may be too many to find, as on a sphere, or miss the most probable failures. Therefore a short subset
    simulation of the model finds points at which limits are exceeded in another way. Their weights determine the
    coefficient of variation of importance sampling, even if it has no points near them. If this coefficient is larger
    than the coefficient of the short simulation, the answer comes from subset simulation: points with levels that an
    eighth of the points reaches, down to the limits. Draws are evaluated at the points of all levels.

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
    method : {"auto", "importance", "subset"}, default "auto"
        Importance sampling around design points; subset simulation, which uses values only; or importance sampling
        unless a short subset simulation has a smaller coefficient of variation.
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

    Raises
    ------
    ValueError
        If neither the model nor one of its draws reaches the limits.

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
        raise ValueError(f"`method` must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    rng, n = as_generator(random_state), require_power(n_points)
    distribution, draws = Inputs.of(model, inputs, correlation), model.draws(n_draws, rng)
    center = distribution.from_normal(np.zeros((1, distribution.dimension)))
    limits = Limits.of(draws.fit.value(center).shape[1:], above, below, combine)
    sample = RareEvent(distribution, draws, limits).sample(method, n, rng)
    found = answer(distribution, draws, limits, sample)
    if not float(found.probability) > 0 or sample.fails.all():
        values = draws.fit.value(distribution.from_normal(sample.points.reshape(-1, distribution.dimension)))
        _tell_unreached(limits, values, found.probability)
    _warn_outside(model, distribution, found.design_points)
    return found


def answer(distribution: Inputs, draws: Any, limits: Limits, sample: RareSample) -> Failure:
    """Return the probability and its derivatives from a sample, for a model and its draws."""
    points, weights = sample.points, sample.weights
    X, at_design = distribution.from_normal(points), distribution.from_normal(sample.design_points)
    fails, drawn = sample.fails, limits.exceeded(draws.value(X[0]))
    probability = _probability(weights, fails, drawn)
    rates = distribution.density_slopes(points.reshape(-1, points.shape[2]), X.reshape(-1, points.shape[2]))
    by_mean, by_std = (_change(weights, fails, drawn, rate.reshape(points.shape)) for rate in rates)
    names, index = tuple(distribution.names), _reliability(probability)
    distances = np.linalg.norm(sample.design_points, axis=1)
    return Failure(names, probability, index, at_design, distances, by_mean, by_std, sample.method)


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
    value, answers = (norm.isf(np.clip(part, LEAST, MOST)) for part in (probability.value, probability.answers))
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


def _tell_unreached(limits: Limits, values: Array, probability: Estimate) -> None:
    """Raise an error if neither model nor draws reach the limits; warn if only draws do, or if all values (m,) do."""
    columns = values.reshape(len(values), -1)
    ranges = ", ".join(
        f"{columns[:, o].min():.4g} to {columns[:, o].max():.4g}" + (f" (output {o})" if limits.shape else "")
        for o in dict.fromkeys(limits.outputs.tolist())
    )
    found = f"its values at {len(columns)} points are {ranges}"
    if probability.value > 0:
        warnings.warn(f"the model is {limits} everywhere: {found}", stacklevel=4)  # the call of the user
    elif probability.answers.any():
        share = f"{np.mean(probability.answers > 0):.0%} of its draws reach them"
        warnings.warn(f"the model does not reach the limits: {found}. But {share}", stacklevel=4)
    else:
        raise ValueError(f"the model must reach a limit, and is nowhere {limits}: {found}")
