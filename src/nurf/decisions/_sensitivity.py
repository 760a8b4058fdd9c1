"""Which inputs make the outputs of a model vary."""

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
from nurf.decisions._estimate import Estimate, table_of
from nurf.decisions._inputs import Inputs, as_sample, normal_points, require_power, warn_beyond
from nurf.estimators._parameters import as_generator
from nurf.estimators._report import Report

MAX_SHAPLEY = 8  # inputs: Shapley effects take the values of all subsets, 2^d times as many points
GRADIENT_POINTS = 256  # of each set at which gradients are asked for, which cost as much as d values
LEVELS = np.linspace(0, 1, 2001)[1:-1]  # at which a density is compared with its distribution

Subset = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Which inputs make the outputs vary. Every number is an ``Estimate``, of shape (d,), or (d, k) for ``k`` outputs.

    Parameters
    ----------
    names : tuple of str
        The inputs.
    first : Estimate
        First-order Sobol indices: the share of the variance that is left on average if all other inputs are averaged.
    total : Estimate
        Total indices: the share of the variance that is lost if an input were known, in the end.
    derivative_measure : Estimate
        The mean squares of the partial derivatives, ``E (df/dx_i)^2``.
    bound : Estimate
        Bounds of the total indices from these, for independent inputs; NaN for dependent ones.
    activity : Estimate
        Activity scores: ``sum_j l_j w_ij^2`` over the largest eigenvalues ``l_j`` and eigenvectors ``w_j`` of the mean
        of ``g g^T``, with gradients ``g`` by the inputs in units of their standard deviations.
    second : Estimate or None
        Closed indices of pairs, of shape (p,) or (p, k), in the order of ``pairs``.
    shapley : Estimate or None
        Shapley effects, which add up to one for dependent inputs, too.
    generalized_first, generalized_total : Estimate
        Indices of all outputs together, of shape (d,): variances of the outputs are added up.
    """

    names: tuple[str, ...]
    first: Estimate
    total: Estimate
    derivative_measure: Estimate
    bound: Estimate
    activity: Estimate
    second: Estimate | None
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

    def report(self) -> Report:
        """Return the indices, the largest first: text in a terminal, a table in a notebook."""
        first, total = self.generalized_first, self.generalized_total
        order = np.argsort(-total.value)
        lines = [(self.names[j], f"first {first[j]}, total {total[j]}") for j in order]
        lines.append(("standard error", f"{max(first.error.max(), total.error.max()):.2g} from the points"))
        return Report(f"Sobol indices, with 90% intervals from {len(first.answers)} draws", tuple(lines))

    def plot(self, ax: Any = None) -> Any:
        """Draw first-order and total indices of all outputs together with their 90% intervals; return the axes."""
        from nurf.plots._axes import axes_or_current, literal

        ax, places = axes_or_current(ax), np.arange(len(self.names))
        for shift, name, part in (-0.2, "first", self.generalized_first), (0.2, "total", self.generalized_total):
            sizes = np.abs(part.interval.T - part.value)
            ax.barh(places + shift, part.value, 0.4, xerr=sizes, label=name)
        ax.set_yticks(places, [literal(name) for name in self.names])
        ax.set(xlabel="share of the variance", ylim=(len(places) - 0.5, -0.5))
        ax.legend()
        return ax


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
    """Return which inputs make the outputs of a model vary.

    Sobol indices by pick and freeze: with points ``x``, independent points ``x'``, and ``x^u``, which has the inputs
    ``u`` of ``x`` and the others drawn given them, the closed index of ``u`` is the mean of ``f(x) (f(x^u) - f(x'))``
    over the variance (Saltelli and others 2010), and the total index of an input is half the mean of
    ``(f(x) - f(x^u))^2`` over it, with all other inputs in ``u`` (Jansen 1999).

    Parameters
    ----------
    model : fitted estimator
    inputs : dict or sequence of distributions, optional
        Continuous distributions of ``scipy.stats``, by the names of the inputs or in their order. By default they are
        uniform over the box of the data.
    correlation : array of shape (d, d), optional
        The correlations of the normal scores of the inputs (a Gaussian copula). By default they are independent.
    second : bool, default False
        Whether to return closed indices of pairs.
    shapley : bool, default False
        Whether to return Shapley effects, for at most eight inputs.
    n_directions : int, default 1
        The number of eigenvectors of which activity scores are made.
    n_points : int, default 8192
        The number of scrambled Sobol points, a power of two; the model is evaluated at ``2 d + 2`` times as many, and
        draws of it at an eighth of these.
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
        raise ValueError("`inputs` must be distributions: a sample does not tell which inputs vary alone")
    distribution, rng, n = Inputs.of(model, inputs, correlation), as_generator(random_state), require_power(n_points)
    d = distribution.dimension
    if shapley and d > MAX_SHAPLEY:
        raise ValueError(f"`shapley` needs at most {MAX_SHAPLEY} inputs, got {d}")
    if not (is_whole(n_directions) and n_directions <= d):
        raise ValueError(f"`n_directions` must be a whole number between 1 and {d}, got {n_directions!r}")
    every = tuple(range(d))
    singles, pairs = list(combinations(every, 1)), list(combinations(every, 2))
    rests = [tuple(j for j in every if j != i) for i in every]
    wanted: list[Subset] = [(), every, *singles, *rests, *(pairs if second else [])]
    if shapley:
        wanted += [subset for size in range(d) for subset in combinations(every, size)]
    subsets = list(dict.fromkeys(wanted))
    normals = normal_points(n, 2 * d, rng)
    own, others = normals[..., :d] @ distribution.factor.T, normals[..., d:]
    scores = np.stack([distribution.kept(own, others, subset) for subset in subsets], axis=2)  # (R, n, S, d)
    points = distribution.from_scores(scores)
    warn_beyond(model, points[:, :, 1].reshape(-1, d))
    draws = model.draws(n_draws, rng)
    fit, drawn = draws.fit.value(points.reshape(-1, d)), draws.value(points[0].reshape(-1, d))
    outputs = fit.shape[1:]
    fit, drawn = (part.reshape(-1, n, len(subsets), fit[0].size) for part in (fit, drawn))
    at = points[:, :GRADIENT_POINTS, 1]
    slopes, slopes_drawn = draws.fit.gradient(at.reshape(-1, d)), draws.gradient(at[0])
    slopes, slopes_drawn = (part.reshape(-1, at.shape[1], fit.shape[3], d) for part in (slopes, slopes_drawn))
    variances = _Answers(fit, drawn).ask(_variances)
    place = {subset: i for i, subset in enumerate(subsets)}

    def ask(function: Any, chosen: Sequence[Subset], pooled: bool = False) -> Estimate:
        found = _Answers(fit, drawn).ask(partial(function, places=[place[u] for u in chosen], pooled=pooled))
        return found if pooled else _shaped(found, outputs)

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
        _shaped(squares, outputs),
        _shaped(_bound(squares, variances, constants), outputs),
        _shaped(activity, outputs),
        ask(_closed, pairs) if second else None,
        _shaped(_Answers(fit, drawn).ask(partial(_shapley, subsets=subsets, d=d)), outputs) if shapley else None,
        ask(_closed, singles, pooled=True),
        ask(_total, rests, pooled=True),
    )


@dataclass(frozen=True, eq=False)
class _Answers:
    """The values of the fit and of draws, of which questions are asked."""

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


def _shares(parts: Array, values: Array, pooled: bool) -> Array:
    """Return parts of the variances (n, p, k) over these, or over the sum of all outputs: (n, p)."""
    variances = _variances(values)[:, None]
    if pooled:
        parts, variances = parts.sum(axis=2), variances.sum(axis=2)
    return np.divide(parts, variances, out=np.zeros_like(parts), where=variances > 0)


def _closed_parts(values: Array, places: Sequence[int]) -> Array:
    """Return the means of ``f(x) (f(x^u) - f(x'))``, of shape (n, p, k): ``x'`` and ``x`` come first."""
    base = values[:, :, 1] - values[:, :, 1].mean(axis=1, keepdims=True)
    found = [np.mean(base * (values[:, :, place] - values[:, :, 0]), axis=1) for place in places]
    return np.stack(found, axis=1)


def _closed(values: Array, places: Sequence[int], pooled: bool = False) -> Array:
    return _shares(_closed_parts(values, places), values, pooled)


def _total(values: Array, places: Sequence[int], pooled: bool = False) -> Array:
    """Return half the means of ``(f(x) - f(x^u))^2`` over the variances, for the rests ``u`` of single inputs."""
    halves = [np.mean((values[:, :, 1] - values[:, :, place]) ** 2, axis=1) / 2 for place in places]
    return _shares(np.stack(halves, axis=1), values, pooled)


def _shapley(values: Array, subsets: Sequence[Subset], d: int) -> Array:
    """Return Shapley effects: what an input adds to closed indices, averaged over subsets of the others: (n, d, k)."""
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

    It is the smallest one for uniform and normal distributions, and ``4 sup (min(F, 1 - F) / p)^2`` for others
    (Lamboni, Iooss, Popelin, Gamboa 2013).
    """
    name = getattr(getattr(marginal, "dist", None), "name", "")
    if name == "uniform":
        return float(np.prod(np.subtract(*marginal.support()) ** 2) / np.pi**2)
    if name == "norm":
        return float(marginal.var())
    densities = marginal.pdf(marginal.ppf(LEVELS))
    return float(4 * np.max(np.minimum(LEVELS, 1 - LEVELS) / np.maximum(densities, 1e-300)) ** 2)
