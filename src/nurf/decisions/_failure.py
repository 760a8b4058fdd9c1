"""How often limits are exceeded if the inputs of a model are random."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from nurf._types import Array, Index, Mask
from nurf._validation import as_floats
from nurf.decisions._estimate import Estimate, table_of
from nurf.decisions._inputs import REPLICATES, Inputs, as_sample, data_box, normal_points, require_power
from nurf.estimators._parameters import as_generator
from nurf.estimators._report import Report

STARTS = 64  # from which design points are searched: 16 find all four of the four-branch function
STEPS = 40  # of a search
STILL = 1e-6  # a search that moves by less has ended
FEW_DRAWS, FEW_STEPS = 20, 10  # that are searched from the design points of the model: they are near these
SHORTER = 0.5 ** np.arange(5)  # steps that are tried
REACHED = 0.01  # standard deviations from a limit at which it counts as reached
APART = 0.5  # distance of different design points
FARTHER = 3.0  # design points that are so much farther away than the nearest carry less than 1% of the probability
MAX_POINTS = 10  # design points of the model, and as many of its draws
FARTHEST = 12.0  # distance from the centre beyond which nothing is searched: 1e-33 of the probability
SWEEPS = 50  # of Hildreth's algorithm over several limits
LEAST = 1e-300  # probability, for reliability indices that are finite


@dataclass(frozen=True, eq=False)
class Failure:
    """How often limits are exceeded.

    Parameters
    ----------
    names : tuple of str
        The inputs.
    probability : Estimate
        The probability. Its ``error`` is the standard error of the points.
    reliability : Estimate
        The reliability index ``-Phi^-1(probability)``.
    design_points : array of shape (p, d)
        The most probable inputs at which the limits are exceeded, the most probable first; empty if none was found.
    distances : array of shape (p,)
        Their distances from the centre in standard normal space.
    by_mean, by_std : Estimate
        Derivatives of the probability by the mean and the standard deviation of each input, of shape (d,): the
        distribution is moved, or stretched around its mean. NaN for distributions that end abruptly.
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
        """The coefficient of variation of the probability that comes from the points; infinite if it is zero."""
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
            lines.append((f"design point at {distance:.2f}", where))
        if not len(self.distances):
            lines.append(("design points", "none: the model does not reach the limits"))
        title = f"Probability that limits are exceeded, with 90% intervals from {len(self.probability.answers)} draws"
        return Report(title, tuple(lines))

    def plot(self, ax: Any = None) -> Any:
        """Draw the reliability indices of the draws and of the model, and return the axes."""
        from nurf.plots._axes import axes_or_current

        ax = axes_or_current(ax)
        ax.hist(self.reliability.answers[np.isfinite(self.reliability.answers)], bins=20, alpha=0.5, label="draws")
        if np.isfinite(self.reliability.value):
            ax.axvline(float(self.reliability), label="model")
        ax.set(xlabel="reliability index", ylabel="draws")
        ax.legend()
        return ax


def failure(
    model: Any,
    inputs: Any = None,
    *,
    above: Any = None,
    below: Any = None,
    combine: str = "any",
    correlation: Any = None,
    n_points: int = 16384,
    n_draws: int = 100,
    random_state: Any = None,
) -> Failure:
    """Return the probability that limits are exceeded.

    Inputs are mapped to independent standard normal variables. The design points, at which a limit is exceeded next to
    the centre, are found by exact gradients from many starts, for the model and its draws: each step goes to the
    nearest point at which linearised limits are exceeded (Hasofer, Lind 1974; Rackwitz, Fiessler 1978), and is
    shortened if it overshoots. The probability is the mean over points of normal distributions around the design
    points, with the ratio of the densities as weights (importance sampling), for the model and for each draw.

    Parameters
    ----------
    model : fitted estimator
    inputs : dict or sequence of distributions, optional
        Continuous distributions of ``scipy.stats``, by the names of the inputs or in their order. By default they are
        uniform over the box of the data.
    above, below : float, or sequence of ``k`` floats, optional
        The limits: values above ``above`` or below ``below`` exceed them. With several outputs there is one for each,
        NaN for none.
    combine : {"any", "all"}, default "any"
        Whether any limit must be exceeded, or all of them at once.
    correlation : array of shape (d, d), optional
        The correlations of the normal scores of the inputs (a Gaussian copula). By default they are independent.
    n_points : int, default 16384
        The number of scrambled Sobol points, a power of two. Draws are evaluated at an eighth of them.
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
        raise ValueError("`inputs` must be distributions: few points of a sample exceed limits")
    if combine not in ("any", "all"):
        raise ValueError(f"`combine` must be 'any' or 'all', got {combine!r}")
    rng, n = as_generator(random_state), require_power(n_points)
    distribution, draws = Inputs.of(model, inputs, correlation), model.draws(n_draws, rng)
    d = distribution.dimension
    limits = Limits.of(draws.fit.value(distribution.from_normal(np.zeros((1, d)))).shape[1:], above, below, combine)
    starts = np.concatenate([np.zeros((1, d)), normal_points(STARTS // REPLICATES, d, rng).reshape(-1, d)])
    found = _design_points(Functions(distribution, draws.fit[[0]]), limits, starts[None], STEPS)
    some = draws[: min(FEW_DRAWS, n_draws)]
    turns = found[np.arange(len(some)) % len(found)] if len(found) else np.zeros((len(some), d))
    moved = _design_points(Functions(distribution, some), limits, turns[:, None], FEW_STEPS)
    mixture = Mixture(np.concatenate([found, moved]) if len(found) + len(moved) else np.zeros((1, d)))
    points = mixture.points(normal_points(n, d + 1, rng))
    X, weights = distribution.from_normal(points), mixture.weights(points)
    at_design = distribution.from_normal(found)
    _warn_outside(model, distribution, at_design)
    fails = limits.exceeded(draws.fit.value(X.reshape(-1, d))).reshape(weights.shape)
    drawn = limits.exceeded(draws.value(X[0]))
    probability = _probability(weights, fails, drawn)
    rates = distribution.density_slopes(points.reshape(-1, d), X.reshape(-1, d))
    changes = [_change(weights, fails, drawn, rate.reshape(points.shape)) for rate in rates]
    distances = np.linalg.norm(found, axis=1)
    return Failure(tuple(distribution.names), probability, _reliability(probability), at_design, distances, *changes)


def _design_points(functions: Functions, limits: Limits, starts: Array, n_steps: int) -> Array:
    """Return different design points of all limits, of shape (p, d)."""
    parts = [search(functions, group, starts, n_steps) for group in limits.groups]
    return _different(np.concatenate([points[reached] for points, reached in parts]))


def _probability(weights: Array, fails: Mask, drawn: Mask) -> Estimate:
    """Return the mean of the weights (R, m) of points that fail; those of draws are in proportion at the first set."""
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
    return Estimate(value, answers, probability.error / norm.pdf(value))


def _warn_outside(model: Any, distribution: Inputs, points: Array) -> None:
    """Warn if the most probable design point (p, d) is beyond the data."""
    low, high = data_box(model)
    outside = ((points < low) | (points > high))[:1]
    if outside.any():
        name = distribution.names[int(np.argmax(outside[0]))]
        warnings.warn(
            f"the most probable design point is beyond the data in {name}: the model knows little there, and intervals "
            "grow",
            stacklevel=3,
        )


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of outputs, which values exceed if ``sign (f_o - threshold) > 0``.

    Parameters
    ----------
    shape : () or (k,)
        The shape of the outputs.
    outputs, signs, thresholds : array of shape (L,)
    every : bool
        Whether all limits must be exceeded.
    """

    shape: tuple[int, ...]
    outputs: Index
    signs: Array
    thresholds: Array
    every: bool

    @classmethod
    def of(cls, shape: tuple[int, ...], above: Any, below: Any, combine: str) -> Limits:
        """Return the limits of outputs of the given shape."""
        k, parts = int(np.prod(shape, dtype=int)), []
        for name, sign, given in ("above", 1.0, above), ("below", -1.0, below):
            if given is None:
                continue
            values = np.atleast_1d(as_floats(name, given))
            if values.shape != (k,):
                raise ValueError(f"`{name}` must be a number for each of {k} outputs, got shape {np.shape(given)}")
            parts += [(o, sign, value) for o, value in enumerate(values) if not np.isnan(value)]
        if not parts:
            raise ValueError("`above` or `below` must be given, got no limit")
        outputs, signs, thresholds = zip(*parts, strict=True)
        return cls(shape, np.array(outputs), np.array(signs), np.array(thresholds), combine == "all")

    @property
    def groups(self) -> list[Limits]:
        """The limits that must be exceeded at once."""
        if self.every:
            return [self]
        rows = [slice(i, i + 1) for i in range(len(self.outputs))]
        return [Limits(self.shape, self.outputs[r], self.signs[r], self.thresholds[r], True) for r in rows]

    def margins(self, values: Array) -> Array:
        """Return by how much limits are not exceeded, of shape (..., L), from values (...) or (..., k)."""
        columns = values if self.shape else values[..., None]
        return np.asarray(self.signs * (self.thresholds - columns[..., self.outputs]))

    def slopes(self, gradients: Array) -> Array:
        """Return the gradients of the margins, of shape (..., L, d), from gradients (..., d) or (..., k, d)."""
        rows = gradients if self.shape else gradients[..., None, :]
        return np.asarray(-self.signs[:, None] * rows[..., self.outputs, :])

    def exceeded(self, values: Array) -> Mask:
        """Return whether values (...) or (..., k) exceed any limit, or all of them."""
        failed = self.margins(values) < 0
        return np.asarray(failed.all(axis=-1) if self.every else failed.any(axis=-1))


@dataclass(frozen=True, eq=False)
class Functions:
    """Draws as functions of standard normal variables, each with points of its own.

    Parameters
    ----------
    distribution : Inputs
    draws : Draws
    """

    distribution: Inputs
    draws: Any

    def values(self, Z: Array) -> Array:
        """Return the values of all draws at their points (n, m, d), of shape (n, m[, k])."""
        return np.asarray(self.draws.value(self.distribution.from_normal(Z)))

    def gradients(self, Z: Array) -> Array:
        """Return the gradients by the normal variables at the points (n, m, d), of shape (n, m[, k], d)."""
        X = self.distribution.from_normal(Z)
        slopes = self.distribution.slopes(Z.reshape(-1, Z.shape[2]), X.reshape(-1, Z.shape[2]))
        found = self.draws.gradient(X)
        return np.asarray(np.einsum("nm...i,nmij->nm...j", found, slopes.reshape(*Z.shape, -1)))


def search(functions: Functions, limits: Limits, Z: Array, n_steps: int) -> tuple[Array, Mask]:
    """Return points near the centre at which all limits are exceeded, from starts (n, m, d), and which are found.

    Each step goes towards the nearest point at which the linearised limits are exceeded; of some shorter steps the one
    with the smallest ``|z|^2 / 2`` and margins, times a factor that is large enough to count, is taken.
    """
    for _ in range(n_steps):
        margins, slopes = limits.margins(functions.values(Z)), limits.slopes(functions.gradients(Z))
        target = _nearest(margins, slopes, Z)
        target *= FARTHEST / np.maximum(np.linalg.norm(target, axis=-1, keepdims=True), FARTHEST)
        sizes = np.linalg.norm(Z, axis=-1) + np.linalg.norm(target, axis=-1) + 1
        lengths = np.linalg.norm(slopes, axis=-1)
        factors = np.divide(2 * sizes[..., None], lengths, out=np.zeros_like(lengths), where=lengths > 0)
        merits, tried = [], [Z + share * (target - Z) for share in SHORTER]
        for each in tried:
            excess = factors * np.maximum(limits.margins(functions.values(each)), 0.0)
            merits.append(np.sum(each**2, axis=-1) / 2 + np.sum(excess, axis=-1))
        best = np.argmin(merits, axis=0)[None, ..., None]
        before, Z = Z, np.take_along_axis(np.array(tried), best, axis=0)[0]
        if np.abs(Z - before).max() < STILL:
            break
    margins, slopes = limits.margins(functions.values(Z)), limits.slopes(functions.gradients(Z))
    return Z, np.all(margins <= REACHED * np.linalg.norm(slopes, axis=-1), axis=-1)


def _nearest(margins: Array, slopes: Array, Z: Array) -> Array:
    """Return the nearest points to the centre with ``margins + slopes.(z - Z) <= 0``, of shape (n, m, d).

    Hildreth's algorithm: the multiplier of each limit in turn.
    """
    squares = np.sum(slopes**2, axis=-1)
    bounds = np.einsum("nmld,nmd->nml", slopes, Z) - margins
    multipliers, z = np.zeros_like(margins), np.zeros_like(Z)
    for _ in range(SWEEPS if margins.shape[-1] > 1 else 1):
        for i in range(margins.shape[-1]):
            beyond = np.sum(slopes[..., i, :] * z, axis=-1) - bounds[..., i]
            change = np.divide(beyond, squares[..., i], out=np.zeros_like(beyond), where=squares[..., i] > 0)
            change = np.maximum(change, -multipliers[..., i])
            multipliers[..., i] += change
            z -= change[..., None] * slopes[..., i, :]
    return z


def _different(points: Array) -> Array:
    """Return points (p, d) that are apart from each other, the nearest to the centre first, and none far behind it."""
    kept: list[Array] = []
    for point in points[np.argsort(np.linalg.norm(points, axis=1))]:
        near = not kept or np.linalg.norm(point) <= np.linalg.norm(kept[0]) + FARTHER
        if near and all(np.linalg.norm(point - other) > APART for other in kept):
            kept.append(point)
    return np.array(kept[:MAX_POINTS]).reshape(-1, points.shape[1])


@dataclass(frozen=True, eq=False)
class Mixture:
    """Standard normal distributions around some centres (c, d), all with the same weight."""

    centres: Array

    def points(self, normals: Array) -> Array:
        """Return points (..., d) from independent standard normal variables (..., d + 1)."""
        own = np.minimum((len(self.centres) * norm.cdf(normals[..., 0])).astype(int), len(self.centres) - 1)
        return np.asarray(self.centres[own] + normals[..., 1:])

    def weights(self, points: Array) -> Array:
        """Return the density of a standard normal distribution over that of the mixture at the points, (...)."""
        squares = -np.sum(self.centres**2, axis=1) / 2 + points @ self.centres.T
        return np.asarray(len(self.centres) * np.exp(-logsumexp(squares, axis=-1)))
