"""Where a model is smallest, and how sure it is of that."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize as descend
from scipy.stats import qmc

from nurf._types import Array, Mask
from nurf._validation import is_whole
from nurf.decisions._estimate import Estimate, table_of
from nurf.decisions._inputs import input_names, warn_beyond
from nurf.decisions._space import Space, different
from nurf.decisions._wanted import STIFF, Joined, Wanted, joined
from nurf.estimators import Report, as_generator

SCREENED = 1024  # points, of which the smallest are starts
STEPS = 200  # of L-BFGS for all starts at once
FEW_STEPS = 30  # of it for draws, whose smallest values are one part in a thousand of their spread away then
N_STARTS = 1  # of each draw, besides the best of the optima
ROUNDS = 8  # of multipliers, if there are constraints
STIFFER = 1e3  # first factor for starts that meet the ranges
STIFFEST = 1e6  # largest factor of squared constraints: with more, steps are lost in rounding
EXCHANGES = 5  # rounds in which levels are changed
APART = 0.01  # of the box: optima that are nearer are the same
MAX_OPTIMA = 10  # that are returned


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a model is smallest.

    Parameters
    ----------
    names : tuple of str
        The inputs.
    x : array of shape (d,)
        The inputs of the smallest optimum.
    value : Estimate
        The value there. The answers are the smallest values of all draws, and their bounds from above the values of all
        draws at ``x``: the smallest value of the function is at most what it has there, whatever it has elsewhere.
    optima : array of shape (p, d)
        All local optima that were found, the smallest first.
    values : Estimate
        The values there, of shape (p,); answers of draws are those at the same points.
    probabilities : array of shape (p,)
        The share of draws whose smallest value is nearest to that optimum; less than one in total if some draws meet
        the constraints nowhere.
    x_interval : array of shape (d, 2)
        The 0.05 and 0.95 quantiles of the minimisers of the draws, and the optimum.
    hessians : array of shape (p, d, d)
        The exact second derivatives of the model at the optima: how sharp these are. NaN if it has none.
    """

    names: tuple[str, ...]
    x: Array
    value: Estimate
    optima: Array
    values: Estimate
    probabilities: Array
    x_interval: Array
    hessians: Array

    def table(self) -> Any:
        """Return all optima with their values, intervals and probabilities: a data frame, or its columns."""
        inputs = {name: self.optima[:, j] for j, name in enumerate(self.names)}
        return table_of({**inputs, **self.values.columns("value"), "probability": self.probabilities})

    def report(self) -> Report:
        """Return the optima, the smallest first: text in a terminal, a table in a notebook."""
        lines = [("smallest value", str(self.value))]
        for name, x, (low, high) in zip(self.names, self.x, self.x_interval, strict=True):
            lines.append((name, f"{x:.4g} ({low:.4g} to {high:.4g})"))
        for i, (point, share) in enumerate(zip(self.optima, self.probabilities, strict=True)):
            where = ", ".join(f"{x:.4g}" for x in point)
            lines.append((f"optimum {i + 1}", f"{self.values[i]} at {where}; the best of {share:.0%} of the draws"))
        title = f"The best of {len(self.optima)} optima, with 90% intervals from {len(self.values.answers)} draws"
        return Report(title, tuple(lines))

    def plot(self, ax: Any = None) -> Any:
        """Draw the values of all optima with their 90% intervals, and return the axes."""
        from nurf.plots import axes_or_current

        ax, places = axes_or_current(ax), np.arange(len(self.optima))
        ax.errorbar(places + 1, self.values.value, np.abs(self.values.interval.T - self.values.value), fmt="o")
        ax.set(xlabel="optimum", ylabel="value")
        ax.set_xticks(places + 1)
        return ax


def minimize(
    model: Any,
    bounds: Any = None,
    *,
    output: int = 0,
    constraints: Any = None,
    levels: Mapping[Any, Any] | None = None,
    n_starts: int = 32,
    n_draws: int = 100,
    random_state: Any = None,
) -> Minimum:
    """Return the minimum of a model within bounds: all local optima, with intervals from draws of the model.

    L-BFGS with exact gradients starts from the best of 1024 points. The minima of draws, which are searched from the
    best optimum of the model and from the smallest points of the draw, give the intervals of the smallest value and its
    inputs. The method of multipliers meets ranges of other outputs (Hestenes 1969; Powell 1969). Inputs with levels
    keep theirs during a descent, and are then exchanged one at a time as long as that helps.

    Parameters
    ----------
    model : fitted estimator
    bounds : dict or sequence of (low, high), optional
        The smallest and the largest value of each input, by name or in their order, or a number to fix it. By default
        the box of the data. Inputs with levels need none.
    output : int, default 0
        The output to minimise, if there are several.
    constraints : dict, or sequence of pairs, optional
        Outputs and the range ``(low, high)`` in which they must be, None for no end. An output is the number of one of
        the model, or another fitted model, whose inputs are found by their names, or in their order if it has none. The
        ends for a model of several outputs are sequences.
    levels : dict of sequences, optional
        The only values that some inputs can take, by their name or place.
    n_starts : int, default 32
    n_draws : int, default 100
    random_state : int, RandomState, Generator or None, default None

    Returns
    -------
    Minimum

    Examples
    --------
    >>> from nurf import KernelFeatureRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    >>> model = KernelFeatureRegressor().fit(X, (X[:, 0] - 0.3) ** 2 + X[:, 1] ** 2)
    >>> minimize(model, [(-1, 1), (-1, 1)], random_state=0).x.round(2) + 0.0
    array([0.3, 0. ])
    """
    names, rng = tuple(input_names(model)), as_generator(random_state)
    space = Space.of(model, names, bounds, levels)
    if not is_whole(n_starts):
        raise ValueError(f"`n_starts` must be a whole number >= 1, got {n_starts!r}")
    U = space.spread(qmc.Sobol(len(names), seed=rng).random_base2(int(np.log2(SCREENED))))
    X = space.points(U)
    draws, k, ranges = joined(model, constraints, X[:1], n_draws, rng)
    wanted = Wanted.of(output, k, ranges, draws.fit.value(X)[0].std(axis=0))
    warn_beyond(model, X, "of the points within the bounds")
    search = Search(draws, wanted, space)
    found = search.of_fit.optima(search.of_fit.best(U, n_starts)[0], search.of_fit.best_inside(U, n_starts)[0])
    if not len(found):
        raise ValueError("`constraints` must be met somewhere within the bounds: the model meets them nowhere")
    starts = np.concatenate([search.best(found, 1), search.best_inside(U, N_STARTS)], axis=1)
    sizes, places = search.smallest(starts)
    optima, met = space.points(found), np.isfinite(sizes)
    at_optima = draws.value(optima)[..., wanted.output]
    nearest = np.argmin(np.abs((places[:, None] - optima) / space.widths).max(axis=2), axis=1)
    answers, above = (sizes[met], at_optima[met, 0]) if met.any() else (np.full(1, np.nan),) * 2
    values = search.of_fit.sizes(found)
    places = places[met] if met.any() else np.full((1, len(names)), np.nan)
    return Minimum(
        names,
        optima[0],
        Estimate(values[0], answers, np.zeros(()), above),
        optima,
        Estimate(values, at_optima, np.zeros(len(values))),
        np.bincount(nearest[met], minlength=len(optima)) / n_draws,
        Estimate(optima[0], places, np.zeros(len(names))).interval,
        _hessians(model, optima, k, wanted.output),
    )


def _hessians(model: Any, X: Array, k: int, output: int) -> Array:
    """Return the Hessians of an output at points (p, d), of shape (p, d, d)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of models of frames, which get an array
            found = np.asarray(model.predict_hessian(X), float)
    except (AttributeError, NotImplementedError, ValueError):  # not differentiable, or no such method
        return np.full((*X.shape, X.shape[1]), np.nan)
    return found.reshape(len(X), k, X.shape[1], X.shape[1])[:, output]


@dataclass(frozen=True, eq=False)
class Search:
    """Where functions are smallest: each draw starts, and is evaluated, at its own points.

    Parameters
    ----------
    draws : Joined
    wanted : Wanted
    space : Space
    """

    draws: Joined
    wanted: Wanted
    space: Space

    @property
    def of_fit(self) -> Search:
        """The search for optima of the fit."""
        return Search(self.draws.fit, self.wanted, self.space)

    def values(self, U: Array) -> Array:
        """Return the values of all draws at points (m, d) or (n, m, d) of the unit cube, of shape (n, m, K)."""
        return np.asarray(self.draws.value(self.space.points(U)))

    def best(self, U: Array, n: int) -> Array:
        """Return for all draws the ``n`` of points (m, d) at which they are smallest, of shape (n_draws, n, d)."""
        return U[np.argsort(self.wanted.penalised(self.values(U)), axis=1)[:, :n]]

    def best_inside(self, U: Array, n: int) -> Array:
        """Return for all draws ``n`` points that meet the ranges, the best ones, and others if there are too few."""
        values = self.values(U)
        sizes = np.where(self.wanted.met(values), values[..., self.wanted.output], np.inf)
        beyond = np.where(np.isinf(sizes), self.wanted.excess(values).max(axis=-1, initial=0.0), 0.0)
        return U[np.lexsort([sizes, beyond])[:, :n]]

    def descended(self, U: Array, n_steps: int, stiff: float = STIFF) -> Array:
        """Return local optima from starts (n, m, d), all in one problem; levels stay. Ranges are met by multipliers."""
        shape, widths = U.shape, self.space.widths
        multipliers = np.zeros((*shape[:2], len(self.wanted.outputs)))
        bounds = self.space.ends(U).reshape(-1, 2)

        def total(flat: Array) -> tuple[float, Array]:
            X = self.space.points(flat.reshape(shape))
            gradients = self.draws.gradient(X) * widths
            sizes, slopes = self.wanted.lagrangian(self.draws.value(X), gradients, multipliers, stiff)
            return float(sizes.sum()), slopes.ravel()

        for _ in range(ROUNDS if len(self.wanted.outputs) else 1):
            options = {"maxiter": n_steps, "ftol": 1e-14, "gtol": 1e-7}
            U = descend(total, U.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options=options).x.reshape(shape)  # type: ignore[call-overload]
            multipliers = np.maximum(multipliers + stiff * self.wanted.excess(self.values(U)), 0.0)
            stiff = min(10 * stiff, STIFFEST)
        return U

    def optima(self, U: Array, inside: Array) -> Array:
        """Return points (p, d) at which the fit is smallest nearby and at which no other level is better, from starts.

        With ranges, descents also start inside them, and do not leave them by much, because a descent from outside may
        end where all directions lead farther away. The first point is the smallest; the result is empty if no point
        meets the ranges.
        """
        ends = self.descended(U[None], STEPS)[0]
        if len(self.wanted.outputs):
            ends = np.concatenate([ends, self.descended(inside[None], STEPS, STIFFER)[0]])
        found = self._kept(ends)
        for _ in range(EXCHANGES if self.space.n_exchanges and len(found) else 0):
            others = self.space.exchanged(found).reshape(-1, U.shape[1])
            others = self.best(others, len(U))[0]
            more = self._kept(np.concatenate([found, self.descended(others[None], STEPS)[0]]))
            settled = np.array_equal(more[0], found[0])
            found = more
            if settled:
                break
        return found[self._unbeaten(found)][:MAX_OPTIMA]

    def _kept(self, U: Array) -> Array:
        """Return the points (p, d) that meet the ranges and are apart from each other, the smallest first."""
        values = self.values(U)[0]
        U = U[self.wanted.met(values)]
        return U[different(U, self.sizes(U), APART, len(U))]

    def _unbeaten(self, U: Array) -> Mask:
        """Return whether no change of one level makes points (p, d) better."""
        if not (self.space.n_exchanges and len(U)):
            return np.ones(len(U), bool)
        others = self.space.exchanged(U)
        values = self.values(others.reshape(-1, U.shape[1]))[0].reshape(*others.shape[:2], -1)
        sizes = np.where(self.wanted.met(values), values[..., self.wanted.output], np.inf)
        return np.asarray(sizes.min(axis=1, initial=np.inf) >= self.sizes(U))

    def sizes(self, U: Array) -> Array:
        """Return the values of the fit at points (p, d) of the unit cube, of shape (p,)."""
        return np.asarray(self.values(U)[0][:, self.wanted.output])

    def smallest(self, U: Array) -> tuple[Array, Array]:
        """Return the smallest values (n,) of draws from starts (n, m, d), infinite for none, and where they are."""
        found = self.descended(U, FEW_STEPS, STIFFER)
        values = self.values(found)
        sizes = np.where(self.wanted.met(values), values[..., self.wanted.output], np.inf)
        best, rows = np.argmin(sizes, axis=1), np.arange(len(sizes))
        return np.asarray(sizes[rows, best]), self.space.points(found[rows, best])
