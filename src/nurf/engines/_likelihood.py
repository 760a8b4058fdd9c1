"""Scales and noise of a process, learned from data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from nurf._types import Array
from nurf.choosing import NO_LIMIT, Clock
from nurf.engines._scales import HIGHEST_NOISE, LOWEST_NOISE, Hyperparameters, Prior, Scales
from nurf.kernels import RadialKernel
from nurf.solvers.process import Criterion, Process, ProcessRows

REFUSED = 1e100  # value of the criterion if a factorisation fails
TOLERANCE = 1e-4  # of learning, relative to the criterion: less than 0.1 in a logarithm of likelihood with 1000 rows
STARTING_NOISE = 30.0  # factor of the noise of a start that cannot be factored
WALL = 100.0  # height of the parabola that replaces the criterion where it cannot be computed
MAX_RUNS = 3  # of L-BFGS, if a line search fails: rounding errors spoil differences of the criterion
FAILED = 2  # status of a line search that found no smaller value
PATIENCE = 4  # points as good as the best one, after which a line search only sees rounding errors
MEMORY = 20  # steps from which second derivatives are estimated
LEAST_SPREAD, LARGEST_SPREAD = 1e-6, 4.0  # variances of coordinates; others come from rounding errors or walls


@dataclass(frozen=True, eq=False)
class LearningProblem:
    """A problem of learning scales and noise: the data, the family of maps, and the criterion.

    Parameters
    ----------
    rows : ProcessRows
    kernel : RadialKernel
    scales : Scales
        The family of maps.
    criterion : Criterion
        The function to minimise.
    prior : Prior
        The prior, whose negative logarithm is added to the criterion.
    clock : Clock
        The deadline.
    """

    rows: ProcessRows
    kernel: RadialKernel
    scales: Scales
    criterion: Criterion
    prior: Prior
    clock: Clock = NO_LIMIT


def learn(
    problem: LearningProblem,
    start: Hyperparameters,
    max_steps: int,
    first_step: float = 1.0,
    units: Array | None = None,
) -> tuple[Hyperparameters, float, Array | None]:
    """Return hyperparameters with a smaller criterion, after at most ``max_steps`` steps of L-BFGS, and the criterion.

    The third result is the matrix (p, p) of inverse second derivatives, estimated from the steps. The first step has
    about the length ``first_step``, or one in the ``units`` (p, p) of the coordinates. If the kernel matrix of the
    start is not positive definite, the noise is increased until it is. If rounding errors spoil the result, the steps
    are repeated from the best point that they do not spoil, and confined to such points. Confining all steps would
    prevent the smallest errors of smooth functions.
    """
    objective = _Objective(problem, start)
    found = _minimized(objective, max_steps, first_step, units)
    if max_steps and not _process(problem, found[0]).is_sound:
        return _minimized(_Objective(problem, objective.soundest(found[0]), sound=True), max_steps, first_step, units)
    return found


def _process(problem: LearningProblem, found: Hyperparameters) -> Process:
    return Process(problem.rows, problem.kernel, found.metric, found.noise)


def _minimized(
    objective: _Objective, max_steps: int, first_step: float, units: Array | None
) -> tuple[Hyperparameters, float, Array | None]:
    theta = objective.start()
    if max_steps == 0:
        return objective.hyperparameters(theta), objective.value(theta), None
    p, bounds = len(theta), None
    if units is None or len(units) != p:  # the noise of some derivatives may be unknown in the part
        units, bounds = np.asarray(first_step), np.array(objective.bounds) / first_step
    matrix = units if units.ndim else first_step * np.eye(p)
    spread = matrix @ matrix.T
    for _ in range(MAX_RUNS):
        try:
            found = minimize(  # type: ignore[call-overload] # the first step of L-BFGS has the length 1
                lambda u: objective.in_units(u, units),
                np.linalg.solve(units, theta) if units.ndim else theta / units,
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={
                    "maxiter": max_steps,
                    "maxfun": 2 * max_steps,
                    "maxls": 10,
                    "maxcor": MEMORY,
                    "ftol": TOLERANCE,
                    "gtol": TOLERANCE * first_step,
                },
            )
        except _FlatError:
            break
        theta, spread = objective.best(theta)[0], matrix @ found.hess_inv.todense() @ matrix.T
        max_steps -= found.nit
        if found.status != FAILED or max_steps <= 0 or not found.nit:
            break
    theta, value = objective.best(theta)
    return objective.hyperparameters(theta), value, spread


def coordinate_units(spread: Array) -> Array:
    """Return a matrix ``B`` for which ``B B^T`` is the inverse matrix of second derivatives, of shape (p, p)."""
    sizes, directions = np.linalg.eigh((spread + spread.T) / 2)
    return np.asarray(directions * np.sqrt(np.clip(sizes, LEAST_SPREAD, LARGEST_SPREAD)))


def _times(units: Array, u: Array) -> Array:
    """Return a number or a matrix times a vector."""
    return np.asarray(units @ u if units.ndim else units * u)


class _FlatError(Exception):
    """The criterion no longer differs by more than its rounding errors."""


class _Objective:
    """The criterion plus the prior, as a function of the coordinates of the map and the logarithms of the noise.

    The objective is undefined where the kernel matrix is not positive definite or, if ``sound``, where rounding errors
    spoil predictions.
    """

    def __init__(self, problem: LearningProblem, start: Hyperparameters, sound: bool = False) -> None:
        self._problem, self._scales, self._start, self._sound = problem, problem.scales, start, sound
        shares = problem.rows.noise_shares(len(start.noise))
        self._known = np.flatnonzero(shares.any(axis=0))  # the kinds of noise that the data determine
        self._q = len(self._scales.coordinates(start.metric))
        self._best: tuple[float, Array] | None = None  # the best point so far
        self._n_flat = 0  # points in a row that are as good as the best
        self._best_sound: tuple[float, Array] | None = None  # the best point without spoiled predictions
        self._last: tuple[Array, tuple[float, Process | None]] | None = None  # so that a point is factored once

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Lower and upper bounds of all coordinates."""
        noise = (float(np.log(LOWEST_NOISE)), float(np.log(HIGHEST_NOISE)))
        return self._scales.bounds(np.empty(self._q)) + [noise] * len(self._known)

    def start(self) -> Array:
        """Return the coordinates of the start, with more noise if it is needed."""
        noise = np.log(self._start.noise[self._known])
        theta = np.concatenate([self._scales.coordinates(self._start.metric), noise])
        low, high = np.array(self.bounds).T
        theta = np.clip(theta, low, high)
        noises = slice(self._q, None)
        while self.value(theta) == REFUSED and np.any(theta[noises] < high[noises]):
            theta[noises] = np.minimum(theta[noises] + np.log(STARTING_NOISE), high[noises])
        return np.asarray(theta)

    def hyperparameters(self, theta: Array) -> Hyperparameters:
        """Return the linear map and the noise with given coordinates."""
        noise = self._start.noise.copy()
        noise[self._known] = np.exp(theta[self._q :])
        return Hyperparameters(self._scales.metric(theta[: self._q]), noise)

    def value(self, theta: Array) -> float:
        """Return the objective without its derivatives."""
        value, process = self._evaluated(theta)
        return REFUSED if process is None else value + self._penalty(theta)[0]

    def best(self, otherwise: Array) -> tuple[Array, float]:
        """Return the best point so far and the objective there, or ``otherwise`` if there is none."""
        if self._best is None:
            return otherwise, REFUSED
        value, theta = self._best
        return theta, value

    def soundest(self, otherwise: Hyperparameters) -> Hyperparameters:
        """Return the best point so far without spoiled predictions, or ``otherwise`` if there is none."""
        return otherwise if self._best_sound is None else self.hyperparameters(self._best_sound[1])

    def in_units(self, u: Array, units: Array) -> tuple[float, Array]:
        """Return the objective at ``units u`` and its gradient in ``u``; beyond bounds, a parabola is added.

        ``units`` is a number or a matrix (p, p).
        """
        theta = _times(units, u)
        inside = np.clip(theta, *np.array(self.bounds).T)
        value, slopes = self(inside)
        beyond = theta - inside
        return value + float(beyond @ beyond), _times(units.T, np.where(beyond == 0, slopes, 2 * beyond))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the objective and its derivatives."""
        value, process = self._evaluated(theta)
        if process is None:
            return self._wall(theta)
        by_metric, by_noise = process.pullback(self._problem.criterion.slopes(process))
        penalty, slopes = self._penalty(theta)
        value += penalty
        if self._best is not None:
            gain, tolerance = self._best[0] - value, TOLERANCE * abs(value)
            self._n_flat = 0 if gain > tolerance else self._n_flat + (gain > -tolerance)
            if self._n_flat >= PATIENCE:
                raise _FlatError
        if self._best is None or value < self._best[0]:
            self._best = value, theta.copy()
        if (self._best_sound is None or value < self._best_sound[0]) and process.is_sound:
            self._best_sound = value, theta.copy()
        by_scales = self._scales.pullback(theta[: self._q], by_metric)
        return value, np.concatenate([by_scales, by_noise[self._known]]) + slopes

    def _wall(self, theta: Array) -> tuple[float, Array]:
        """Return a parabola above the best point so far, which makes a line search that went too far return."""
        if self._best is None:
            return REFUSED, np.zeros_like(theta)
        value, best = self._best
        return value + WALL * (1 + float(np.sum((theta - best) ** 2))), 2 * WALL * (theta - best)

    def _evaluated(self, theta: Array) -> tuple[float, Process | None]:
        """Return the criterion and the process; no process if its kernel matrix is not positive definite."""
        if self._last is None or not np.array_equal(self._last[0], theta):
            self._problem.clock.check()
            found = self.hyperparameters(theta)
            process = _process(self._problem, found)
            try:
                value = self._problem.criterion.value(process)
                value = value if not self._sound or process.is_sound else np.nan
            except np.linalg.LinAlgError:
                value = np.nan
            self._last = theta.copy(), ((value, process) if np.isfinite(value) else (REFUSED, None))
        return self._last[1]

    def _penalty(self, theta: Array) -> tuple[float, Array]:
        """Return the negative logarithm of the prior, and its derivatives."""
        prior = self._problem.prior
        penalty, slopes = self._scales.penalty(theta[: self._q], prior)
        distance = (theta[self._q :] - np.log(prior.noise)) / prior.noise_deviation
        by_noise = distance / prior.noise_deviation
        return penalty + float(np.sum(distance**2) / 2), np.concatenate([slopes, by_noise])
