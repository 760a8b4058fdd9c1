"""The sensitivity of the outputs of a model to its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from nurf._types import Array
from nurf._validation import is_whole
from nurf.decisions._estimate import Estimate, sizes_of, table_of
from nurf.decisions._inputs import (
    Inputs,
    as_sample,
    distribution_name,
    normal_points,
    require_power,
    warn_beyond,
    warn_moments,
)
from nurf.decisions._models import of_any_model
from nurf.estimators import Report, as_generator

MAX_SHAPLEY = 8  # inputs: Shapley effects need all 2^d subsets
GRADIENT_POINTS = 256  # points of each set with gradients, which cost as much as d values
MAX_PAIRS = 10  # whose indices are reported
LEVELS = np.linspace(0, 1, 2001)[1:-1]  # levels at which a density is compared with its distribution

Subset = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Sensitivities of the outputs. Every number is an ``Estimate``, of shape (d,), or (d, k) for ``k`` outputs.

    Parameters
    ----------
    names : tuple of str
        The inputs.
    first : Estimate
        First-order Sobol indices: the share of the variance of the mean of the output given the input.
    total : Estimate
        Total indices: the share of the variance that involves the input, alone or with others.
    derivative_measure : Estimate
        The mean squares of the partial derivatives, ``E (df/dx_i)^2``.
    bound : Estimate
        Bounds of the total indices from these, for independent inputs; NaN for dependent ones.
    activity : Estimate
        Activity scores: ``sum_j l_j w_ij^2`` over the largest eigenvalues ``l_j`` and eigenvectors ``w_j`` of the mean
        of ``g g^T``, with gradients ``g`` with respect to the inputs in units of their standard deviations.
    second : Estimate or None
        Closed indices of pairs, of shape (p,) or (p, k), in the order of ``pairs``: the share of the variance that is
        left on average if all inputs but two are averaged.
    interaction : Estimate or None
        What closed indices of pairs are larger by than the first-order indices of both inputs (second-order indices).
    shapley : Estimate or None
        Shapley effects; their sum is one for dependent inputs as well.
    generalized_first, generalized_total : Estimate
        Indices of all outputs together, of shape (d,), from the sums of the variances of the outputs.
    """

    names: tuple[str, ...]
    first: Estimate
    total: Estimate
    derivative_measure: Estimate
    bound: Estimate
    activity: Estimate
    second: Estimate | None
    interaction: Estimate | None
    shapley: Estimate | None
    generalized_first: Estimate
    generalized_total: Estimate

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs of inputs."""
        return tuple(combinations(self.names, 2))

    def table(self) -> Any:
        """Return the indices of all inputs and outputs with their intervals: a data frame, or its columns."""
        k = self.first.value[0].size
        columns: dict[str, Any] = {"input": np.repeat(self.names, k)}
        if self.first.value.ndim > 1:
            columns["output"] = np.tile(np.arange(k), len(self.names))
        parts = {"first": self.first, "total": self.total, "bound": self.bound, "activity": self.activity}
        if self.shapley is not None:
            parts["shapley"] = self.shapley
        for name, part in parts.items():
            columns |= part.columns(name)
        return table_of(columns)

    def pair_table(self) -> Any:
        """Return closed indices and interactions of all pairs: a data frame, or its columns; needs ``second=True``."""
        if self.second is None or self.interaction is None:
            raise ValueError("indices of pairs were not asked for: `sensitivity(..., second=True)` returns them")
        k, (one, other) = self.second.value[0].size, np.array(self.pairs).T
        columns: dict[str, Any] = {"input": np.repeat(one, k), "other": np.repeat(other, k)}
        if self.second.value.ndim > 1:
            columns["output"] = np.tile(np.arange(k), len(one))
        return table_of(columns | self.second.columns("second") | self.interaction.columns("interaction"))

    def report(self) -> Report:
        """Return the indices, the largest first: text in a terminal, a table in a notebook."""
        first, total = self.generalized_first, self.generalized_total
        order = np.argsort(-total.value)
        lines = [(self.names[j], f"first {first[j]}, total {total[j]}") for j in order]
        if self.second is not None and self.interaction is not None:
            sizes = np.abs(self.interaction.value.reshape(len(self.pairs), -1)).max(axis=1)
            for i in np.argsort(-sizes)[:MAX_PAIRS]:
                words = f"second {self.second[i]}, interaction {self.interaction[i]}"
                lines.append((", ".join(self.pairs[i]), words))
        lines.append(("standard error", f"{max(first.error.max(), total.error.max()):.2g} from the points"))
        return Report(f"Sobol indices, with 90% intervals from {len(first.answers)} draws", tuple(lines))

    def plot(self, ax: Any = None) -> Any:
        """Draw first-order and total indices of all outputs together with their 90% intervals; return the axes."""
        from nurf.plots import axes_or_current, literal

        ax, places = axes_or_current(ax), np.arange(len(self.names))
        for shift, name, part in (-0.2, "first", self.generalized_first), (0.2, "total", self.generalized_total):
            sizes = np.abs(part.interval.T - part.value)
            ax.barh(places + shift, part.value, 0.4, xerr=sizes, label=name)
        ax.set_yticks(places, [literal(name) for name in self.names])
        ax.set(xlabel="share of the variance", ylim=(len(places) - 0.5, -0.5))
        ax.legend()
        return ax


@of_any_model
def sensitivity(
    model: Any,
    inputs: Any = None,
    *,
    correlation: Any = None,
    second: bool = False,
    shapley: bool = False,
    n_directions: int = 1,
    n_points: int = 8192,
    n_draws: int = 100,
    random_state: Any = None,
) -> Sensitivity:
    """Return the sensitivities of the outputs of a model to its inputs.

    Sobol indices by pick and freeze: with points ``x``, independent points ``x'``, and ``x^u``, which has the inputs
    ``u`` of ``x`` and other inputs drawn conditionally, the closed index of ``u`` is the mean of ``f(x) (f(x^u) -
    f(x'))`` over the variance (Saltelli and others 2010), and the total index of an input is half the mean of ``(f(x) -
    f(x^u))^2`` over it, with all other inputs in ``u`` (Jansen 1999).

    Parameters
    ----------
    model : fitted regressor, GradientPipeline, or Pipeline that ends in a regressor of nurf
    inputs : dict or sequence of distributions, optional
        Continuous distributions of ``scipy.stats``, by the names of the inputs or in their order. An input that is a
        number is fixed, and is no input of the answer. By default inputs are uniform over the box of the data.
    correlation : array of shape (d, d), optional
        The correlations of the normal scores of the inputs (a Gaussian copula). By default they are independent.
    second : bool, default False
        Whether to return closed indices of pairs.
    shapley : bool, default False
        Whether to return Shapley effects, for at most eight inputs.
    n_directions : int, default 1
        The number of eigenvectors for activity scores.
    n_points : int, default 8192
        The number of scrambled Sobol points, a power of two; the model is evaluated at ``2 d + 2`` times this number,
        and draws of it at an eighth of these.
    n_draws : int, default 100
        The number of draws of the model.
    random_state : int, RandomState, Generator or None, default None

    Returns
    -------
    Sensitivity

    Examples
    --------
    >>> from scipy.stats import uniform
    >>> from nurf import KernelFeatureRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    >>> model = KernelFeatureRegressor().fit(X, X[:, 0] + 2 * X[:, 1])
    >>> np.round(sensitivity(model, [uniform(-1, 2)] * 2, random_state=0).first, 2)
    array([0.2, 0.8])
    """
    if as_sample(inputs, model) is not None:
        raise ValueError("`inputs` must be distributions: a sample does not determine the effect of single inputs")
    distribution, rng, n = Inputs.of(model, inputs, correlation), as_generator(random_state), require_power(n_points)
    warn_moments(distribution, "the variance")
    d = distribution.dimension
    if shapley and d > MAX_SHAPLEY:
        raise ValueError(f"`shapley` needs at most {MAX_SHAPLEY} inputs, got {d}")
    if not (is_whole(n_directions) and n_directions <= d):
        raise ValueError(f"`n_directions` must be a whole number between 1 and {d}, got {n_directions!r}")
    if second and d < 2:
        raise ValueError("`second` needs at least two inputs, got 1")
    every = tuple(range(d))
    singles, pairs = list(combinations(every, 1)), list(combinations(every, 2))
    rests = [tuple(j for j in every if j != i) for i in every]
    wanted: list[Subset] = [(), every, *singles, *rests, *(pairs if second else [])]
    if shapley:
        wanted += [subset for size in range(d) for subset in combinations(every, size)]
    subsets = list(dict.fromkeys(wanted))
    normals = normal_points(n, 2 * d, rng)
    own, others = normals[..., :d] @ distribution.factor.T, normals[..., d:]
    mixed = distribution.mixed(own, others)
    base = mixed(every)
    warn_beyond(model, base.reshape(-1, d))
    draws = model.draws(n_draws, rng)
    each = [_values(draws, mixed(subset)) for subset in subsets]
    fit, drawn = (np.stack(parts, axis=2) for parts in zip(*each, strict=True))
    sizes = sizes_of(fit)  # squares of large or small values leave the range of floats
    fit, drawn = fit / sizes, drawn / sizes
    outputs, at = draws.fit.value(base[0, :1]).shape[1:], base[:, :GRADIENT_POINTS]
    slopes, slopes_drawn = draws.fit.gradient(at.reshape(-1, d)), draws.gradient(at[0])
    shape = (-1, at.shape[1], fit.shape[3], d)
    slopes, slopes_drawn = (part.reshape(shape) / sizes[:, None] for part in (slopes, slopes_drawn))
    variances = _Answers(fit, drawn).ask(_variances)
    place = {subset: i for i, subset in enumerate(subsets)}

    def ask(function: Any, chosen: Sequence[Subset], pooled: Array | None = None) -> Estimate:
        found = _Answers(fit, drawn).ask(partial(function, places=[place[u] for u in chosen], pooled=pooled))
        return _shaped(found, outputs) if pooled is None else found

    squares = _Answers(slopes, slopes_drawn).ask(lambda g: np.swapaxes(np.mean(g**2, axis=1), 1, 2))
    constants = np.array([_poincare(marginal) for marginal in distribution.marginals])[:, None]
    if correlation is not None:
        constants = np.full_like(constants, np.nan)
    deviations = np.array([marginal.std() for marginal in distribution.marginals])
    activity = _Answers(slopes, slopes_drawn).ask(partial(_activity, deviations=deviations, n=int(n_directions)))
    return Sensitivity(
        tuple(distribution.names),
        ask(_closed, singles),
        ask(_total, rests),
        _shaped(squares.times(sizes**2), outputs),
        _shaped(_bound(squares, variances, constants), outputs),
        _shaped(activity.times(sizes**2), outputs),
        ask(_closed, pairs) if second else None,
        ask(partial(_interaction, pairs=pairs), [*singles, *pairs]) if second else None,
        _shaped(_Answers(fit, drawn).ask(partial(_shapley, subsets=subsets, d=d)), outputs) if shapley else None,
        ask(_closed, singles, pooled=(sizes / sizes.max()) ** 2),
        ask(_total, rests, pooled=(sizes / sizes.max()) ** 2),
    )


def _values(draws: Any, points: Array) -> tuple[Array, Array]:
    """Return the values of the fit at points (R, n, d), and of all draws at the first set, each of shape (., n, k)."""
    fit = draws.fit.value(points.reshape(-1, points.shape[2])).reshape(*points.shape[:2], -1)
    return fit, draws.value(points[0]).reshape(len(draws), points.shape[1], -1)


@dataclass(frozen=True, eq=False)
class _Answers:
    """The values of the fit and of the draws, from which indices are computed."""

    fit: Array
    drawn: Array

    def ask(self, function: Any) -> Estimate:
        return Estimate.of(function, self.fit, self.drawn)


def _shaped(estimate: Estimate, outputs: tuple[int, ...]) -> Estimate:
    """Return numbers (p, k) in the shape of the outputs: (p,) or (p, k)."""
    p = len(estimate.value)
    parts = (estimate.value.reshape(p, *outputs), estimate.answers.reshape(-1, p, *outputs), estimate.error)
    return Estimate(parts[0], parts[1], parts[2].reshape(p, *outputs))


def _variances(values: Array) -> Array:
    """Return the variances of the values (n, m, S, k) at both independent sets of points, of shape (n, k)."""
    return np.asarray(values[:, :, :2].var(axis=1).mean(axis=1))


def _shares(parts: Array, values: Array, pooled: Array | None) -> Array:
    """Return parts of the variances (n, p, k) divided by these, or by weighted sums over the outputs: (n, p)."""
    variances = _variances(values)[:, None]
    if pooled is not None:
        parts, variances = parts @ pooled, variances @ pooled
    return np.divide(parts, variances, out=np.zeros_like(parts), where=variances > 0)


def _closed_parts(values: Array, places: Sequence[int]) -> Array:
    """Return the means of ``f(x) (f(x^u) - f(x'))``, of shape (n, p, k): ``x'`` and ``x`` come first."""
    base = values[:, :, 1] - values[:, :, 1].mean(axis=1, keepdims=True)
    found = [np.mean(base * (values[:, :, place] - values[:, :, 0]), axis=1) for place in places]
    return np.stack(found, axis=1)


def _closed(values: Array, places: Sequence[int], pooled: Array | None = None) -> Array:
    return _shares(_closed_parts(values, places), values, pooled)


def _interaction(values: Array, places: Sequence[int], pairs: Sequence[Subset], pooled: Array | None = None) -> Array:
    """Return closed indices of pairs without the first-order indices of both inputs, (n, p, k); singles come first."""
    indices, d = _closed(values, places, pooled), len(places) - len(pairs)
    own = np.array(pairs)
    return np.asarray(indices[:, d:] - indices[:, own[:, 0]] - indices[:, own[:, 1]])


def _total(values: Array, places: Sequence[int], pooled: Array | None = None) -> Array:
    """Return half the means of ``(f(x) - f(x^u))^2`` over the variances, for the rests ``u`` of single inputs."""
    halves = [np.mean((values[:, :, 1] - values[:, :, place]) ** 2, axis=1) / 2 for place in places]
    return _shares(np.stack(halves, axis=1), values, pooled)


def _shapley(values: Array, subsets: Sequence[Subset], d: int) -> Array:
    """Return Shapley effects (n, d, k): the increase of closed indices by an input, averaged over subsets of others."""
    closed = dict(zip(subsets, np.moveaxis(_closed(values, range(len(subsets))), 1, 0), strict=True))
    effects = np.zeros((len(values), d, values.shape[3]))
    for i in range(d):
        rest = [j for j in range(d) if j != i]
        for size in range(d):
            for subset in combinations(rest, size):
                added = closed[tuple(sorted((*subset, i)))] - closed[subset]
                effects[:, i] += added / (d * comb(d - 1, size))
    return effects


def _activity(gradients: Array, deviations: Array, n: int) -> Array:
    """Return activity scores from gradients (n, m, k, d), of shape (n, d, k)."""
    scaled = np.swapaxes(gradients * deviations, 1, 2)
    eigenvalues, vectors = np.linalg.eigh(np.swapaxes(scaled, 2, 3) @ scaled / scaled.shape[2])
    scores = np.sum(eigenvalues[..., None, -n:] * vectors[..., -n:] ** 2, axis=-1)
    return np.swapaxes(scores, 1, 2)


def _bound(squares: Estimate, variances: Estimate, constants: Array) -> Estimate:
    """Return bounds of total indices: mean squares of derivatives times Poincare constants over the variances."""
    value = constants * squares.value / np.where(variances.value > 0, variances.value, np.nan)
    answers = constants * squares.answers / np.where(variances.answers > 0, variances.answers, np.nan)[:, None]
    return Estimate(value, answers, np.abs(value) * squares.error / np.where(squares.value > 0, squares.value, 1.0))


def _poincare(marginal: Any) -> float:
    """Return a constant ``C`` with ``Var f(x) <= C E f'(x)^2``.

    The constant is optimal for uniform and normal distributions, and ``4 sup (min(F, 1 - F) / p)^2`` for others
    (Lamboni, Iooss, Popelin, Gamboa 2013).
    """
    name = distribution_name(marginal)
    if name == "uniform":
        return float(np.prod(np.subtract(*marginal.support()) ** 2) / np.pi**2)
    if name == "norm":
        return float(marginal.var())
    densities = marginal.pdf(marginal.ppf(LEVELS))
    return float(4 * np.max(np.minimum(LEVELS, 1 - LEVELS) / np.maximum(densities, 1e-300)) ** 2)
