"""Where a model is smallest, and how sure it is of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize as descend
from scipy.stats import qmc

from nurf._types import Array, Index
from nurf._validation import as_floats, is_whole
from nurf.decisions._estimate import Estimate, table_of
from nurf.decisions._inputs import data_box, input_names, warn_beyond
from nurf.estimators._parameters import as_generator
from nurf.estimators._report import Report

SCREENED = 1024  # points, of which the smallest are starts
STEPS = 200  # of L-BFGS for all starts at once
ROUNDS = 8  # of multipliers, if there are constraints
STIFF = 10.0  # first factor of squared constraints, in units of the outputs' deviations; it grows tenfold each round
STIFFEST = 1e6  # largest factor: with more, steps are lost in rounding
REACHED = 1e-3  # of an output's deviation by which a constraint may be missed
APART = 0.01  # of the box: optima that are nearer are the same
MAX_OPTIMA = 10  # that are returned
FEW = 5  # of them from which draws start


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a model is smallest.

    Parameters
    ----------
    names : tuple of str
        The inputs.
    x : array of shape (d,)
        The smallest of the optima.
    value : Estimate
        The value there; the answers of draws are the smallest values that they have near any of the optima.
    optima : array of shape (p, d)
        All local optima that were found, the smallest first.
    values : Estimate
        The values there, of shape (p,); answers of draws are those at the same points.
    probabilities : array of shape (p,)
        The share of draws whose smallest value is found from that optimum; less than one in total if some draws meet
        the constraints nowhere near the optima.
    x_interval : array of shape (d, 2)
        The 0.05 and 0.95 quantiles of the inputs at which draws are smallest.
    """

    names: tuple[str, ...]
    x: Array
    value: Estimate
    optima: Array
    values: Estimate
    probabilities: Array
    x_interval: Array

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
        title = f"The best of {len(self.optima)} optima, with 90% intervals from {len(self.value.answers)} draws"
        return Report(title, tuple(lines))

    def plot(self, ax: Any = None) -> Any:
        """Draw the values of all optima with their 90% intervals, and return the axes."""
        from nurf.plots._axes import axes_or_current

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
    constraints: Mapping[int, tuple[float | None, float | None]] | None = None,
    n_starts: int = 32,
    n_draws: int = 100,
    random_state: Any = None,
) -> Minimum:
    """Return where a model is smallest within bounds: all local optima, and how sure the model is of them.

    The best of 1024 points are starts of L-BFGS with exact gradients, all at once. Draws of the model start from the
    optima: where they are smallest, and how small they are, is how sure the model is.

    Parameters
    ----------
    model : fitted estimator
    bounds : dict or sequence of (low, high), optional
        The smallest and the largest value of each input, by name or in their order. By default the box of the data.
    output : int, default 0
        The output to minimise, if there are several.
    constraints : dict of (low, high), optional
        The range in which other outputs must be, by their number; None for no end.
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
    low, high = _box(bounds, model, names)
    if not is_whole(n_starts):
        raise ValueError(f"`n_starts` must be a whole number >= 1, got {n_starts!r}")
    draws, d = model.draws(n_draws, rng), len(names)
    U = qmc.Sobol(d, seed=rng).random_base2(int(np.log2(SCREENED)))
    screened = draws.fit.value(low + (high - low) * U)
    columns = screened.reshape(len(U), -1)
    wanted = Wanted.of(output, constraints, columns.std(axis=0))
    warn_beyond(model, low + (high - low) * U, "of the points within the bounds")
    starts = U[np.argsort(wanted.penalised(columns))[:n_starts]]
    found = _descended(Boxed(draws.fit[[0]], low, high), wanted, starts[None])[0]
    values = draws.fit.value(low + (high - low) * found).reshape(len(found), -1)
    feasible = wanted.excess(values).max(axis=-1, initial=0.0) <= REACHED
    if not feasible.any():
        raise ValueError("`constraints` must be met somewhere within the bounds: the model meets them nowhere")
    found, values = found[feasible], values[feasible, wanted.output]
    kept = _different(found, values)
    optima, values = low + (high - low) * found[kept], values[kept]
    near = np.tile(found[kept][:FEW], (n_draws, 1, 1))
    moved = _descended(Boxed(draws, low, high), wanted, near)
    points = low + (high - low) * moved
    drawn = draws.value(points).reshape(*moved.shape[:2], -1)
    sizes = np.where(wanted.excess(drawn).max(axis=-1, initial=0.0) <= REACHED, drawn[..., wanted.output], np.inf)
    best, met = np.argmin(sizes, axis=1), np.flatnonzero(np.isfinite(sizes.min(axis=1)))
    answers, places = sizes[met, best[met]], points[met, best[met]]
    at_optima = draws.value(optima).reshape(n_draws, len(optima), -1)[..., wanted.output]
    return Minimum(
        names,
        optima[0],
        Estimate(values[0], answers if len(met) else np.full(1, np.nan), np.zeros(())),
        optima,
        Estimate(values, at_optima, np.zeros(len(values))),
        np.bincount(best[met], minlength=len(optima)) / n_draws,
        Estimate(optima[0], places if len(met) else np.full((1, d), np.nan), np.zeros(d)).interval,
    )


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is minimised, and the ranges of other outputs.

    Parameters
    ----------
    output : int
    scale : float
        The standard deviation of the output.
    outputs : array of shape (L,)
        The outputs with a range, ...
    signs, ends : array of shape (L,)
        ... whose values times the sign must not be larger than the end, ...
    scales : array of shape (L,)
        ... in units of their standard deviations.
    """

    output: int
    scale: float
    outputs: Index
    signs: Array
    ends: Array
    scales: Array

    @classmethod
    def of(cls, output: Any, constraints: Any, deviations: Array) -> Wanted:
        """Return what is wanted of outputs with given standard deviations (k,)."""
        k, parts = len(deviations), []
        if not (is_whole(output, 0) and output < k):
            raise ValueError(f"`output` must be a whole number between 0 and {k - 1}, got {output!r}")
        scales = np.where(deviations > 0, deviations, 1.0)
        for number, ends in (constraints or {}).items():
            if not (is_whole(number, 0) and number < k and np.ndim(ends) <= 1 and len(ends) == 2):
                raise ValueError(f"`constraints` must be {{output: (low, high)}} of {k} outputs, got {constraints!r}")
            low, high = (np.inf * sign if end is None else float(end) for sign, end in zip((-1, 1), ends, strict=True))
            if low > high:
                raise ValueError(f"`constraints` must have low <= high, got {ends} for output {number}")
            parts += [(number, sign, sign * end) for sign, end in ((-1.0, low), (1.0, high)) if np.isfinite(end)]
        outputs, signs, ends = (np.array([part[i] for part in parts]) for i in range(3))
        outputs = outputs.astype(int)
        return cls(int(output), float(scales[output]), outputs, signs, ends, scales[outputs])

    def excess(self, values: Array) -> Array:
        """Return by how much values (..., k) are out of range, of shape (..., L), in units of the deviations."""
        return np.asarray((self.signs * values[..., self.outputs] - self.ends) / self.scales)

    def penalised(self, values: Array) -> Array:
        """Return the output and squared excesses of values (..., k), of shape (...)."""
        return np.asarray(
            values[..., self.output] / self.scale + STIFF * np.sum(np.maximum(self.excess(values), 0) ** 2, axis=-1)
        )

    def lagrangian(self, values: Array, gradients: Array, multipliers: Array, stiff: float) -> tuple[Array, Array]:
        """Return the augmented Lagrangian (...) and its gradients (..., d), from values (..., k) and gradients."""
        pressed = np.maximum(multipliers + stiff * self.excess(values), 0.0)
        total = values[..., self.output] / self.scale + np.sum(pressed**2, axis=-1) / (2 * stiff)
        slopes = gradients[..., self.output, :] / self.scale
        factors = pressed * self.signs / self.scales
        return total, slopes + np.einsum("...l,...ld->...d", factors, gradients[..., self.outputs, :])


@dataclass(frozen=True, eq=False)
class Boxed:
    """Draws as functions on the unit cube, each with points of its own."""

    draws: Any
    low: Array
    high: Array

    def evaluate(self, U: Array) -> tuple[Array, Array]:
        """Return values (n, m, k) and gradients (n, m, k, d) at the points (n, m, d)."""
        X = self.low + (self.high - self.low) * U
        values, gradients = self.draws.value(X), self.draws.gradient(X)
        shape = (*U.shape[:2], -1)
        return values.reshape(shape), gradients.reshape(*shape, U.shape[2]) * (self.high - self.low)


def _descended(functions: Boxed, wanted: Wanted, U: Array) -> Array:
    """Return local optima in the unit cube from starts (n, m, d), all of them in one problem.

    With constraints, by the method of multipliers.
    """
    multipliers, stiff, shape = np.zeros((*U.shape[:2], len(wanted.outputs))), STIFF, U.shape

    def total(flat: Array) -> tuple[float, Array]:
        sizes, slopes = wanted.lagrangian(*functions.evaluate(flat.reshape(shape)), multipliers, stiff)
        return float(sizes.sum()), slopes.ravel()

    for _ in range(ROUNDS if len(wanted.outputs) else 1):
        options = {"maxiter": STEPS, "ftol": 1e-14, "gtol": 1e-7}
        result = descend(total, U.ravel(), jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * U.size, options=options)
        U = result.x.reshape(shape)
        multipliers = np.maximum(multipliers + stiff * wanted.excess(functions.evaluate(U)[0]), 0.0)
        stiff = min(10 * stiff, STIFFEST)
    return U


def _different(points: Array, values: Array) -> Index:
    """Return the places of points (p, d) that are apart from each other, the smallest value first."""
    kept: list[int] = []
    for i in np.argsort(values):
        if all(np.abs(points[i] - points[j]).max() > APART for j in kept):
            kept.append(int(i))
    return np.array(kept[:MAX_OPTIMA])


def _box(bounds: Any, model: Any, names: tuple[str, ...]) -> tuple[Array, Array]:
    """Return the ends of the bounds, each of shape (d,)."""
    if bounds is None:
        return data_box(model)
    if isinstance(bounds, Mapping):
        unknown, missing = [n for n in bounds if n not in names], [n for n in names if n not in bounds]
        if unknown or missing:
            raise ValueError(f"`bounds` must have the names {list(names)}, got unknown {unknown} and missing {missing}")
        bounds = [bounds[name] for name in names]
    ends = as_floats("bounds", bounds)
    if ends.shape != (len(names), 2):
        raise ValueError(f"`bounds` must be (low, high) for each of {len(names)} inputs, got shape {ends.shape}")
    low, high = ends.T
    if not (np.all(np.isfinite(ends)) and np.all(low < high)):
        raise ValueError(f"`bounds` must be finite with low < high, got {ends.tolist()}")
    return low, high
