"""Goal: the inputs that explain measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from nurf._types import Array, Mask
from nurf._validation import as_finite, as_floats
from nurf.decisions import Estimate, Inputs, Known, Observed, normal_points
from nurf.studies._ensemble import Ensemble
from nurf.studies._space import Space
from nurf.studies.goals._base import CANDIDATES, TARGETS, Answer, Question, View, require_target

POINTS = 512  # of the posterior
LEAST = 0.25  # share of the points that the weights of a power of the likelihood must be worth
POWERS = 0.7 ** np.arange(60)  # of the likelihood that are tried
ROUNDS = 30


@dataclass(frozen=True)
class Calibration:
    """The unknown inputs, given measurements of the outputs with normal noise.

    The distributions of the inputs in the study are their prior. The answer is the posterior mean of each unknown
    input, with an interval that contains the input with probability 0.9. The loss is the change of a mean if a draw of
    the model is the true function, in standard deviations of the input: if it is small, the answer is limited by the
    measurements rather than by the model. The value of a run is the expected reduction of the variance of the outputs
    at the measurements, averaged over the posterior, in units of the variance of the noise.

    Parameters
    ----------
    observations : float, or array of shape (k,), (r,), (r, k), (m,) or (m, k)
        See ``nurf.decisions.calibrate``.
    noise : float or array
        The standard deviations of the noise.
    target : float or None, default 0.2
        The largest change of a mean, in standard deviations of the input, that is accepted.
    at : dict of sequences of length m, optional
        Known inputs of each measurement, by name.
    """

    observations: Any
    noise: Any
    target: float | None = 0.2
    at: dict[str, Any] = field(default_factory=dict)

    wider: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        require_target(self.target)
        if not (hasattr(self.at, "columns") or isinstance(self.at, Mapping)):
            raise ValueError(f"`at` must be a dict of known inputs, got {self.at!r}")
        known = {str(name): as_finite("at", self.at[name]).tolist() for name in self.at}
        if np.any(as_finite("noise", self.noise) <= 0):
            raise ValueError(f"`noise` must be standard deviations > 0, got {self.noise!r}")
        if not np.any(np.isfinite(as_floats("observations", self.observations))):
            raise ValueError(f"`observations` must be numbers, NaN where not measured, got {self.observations!r}")
        for name, value in ("observations", self.observations), ("noise", self.noise):
            object.__setattr__(self, name, np.asarray(value, float).tolist())  # as numbers, for files
        object.__setattr__(self, "at", known)

    def check(self, space: Space) -> None:
        """Raise an error for known inputs that the study does not have, or that depend on unknown ones."""
        for name, column in zip(self.at, self._known(space).values.T, strict=True):
            low, high = space.free.marginals[space.free.names.index(name)].support()
            if column.min() < low or column.max() > high:
                raise ValueError(
                    f"`at` must have {name} from {low:g} to {high:g}, as in the study, got {column.tolist()}"
                )
        if self.at and space.is_correlated:
            raise ValueError("the goal Calibration needs inputs without correlations if some are known")

    def answer(self, view: View) -> Answer:
        """Return the means of the unknown inputs, and for each draw the largest difference of a mean."""
        X, weights = self._posteriors(view)
        total = weights.mean(axis=0)
        mean = total @ X
        std = np.sqrt(total @ (X - mean) ** 2)
        losses = np.max(np.abs(weights @ X - mean) / np.where(std > 0, std, 1.0), axis=1)
        sample = X[view.rng.choice(len(X), 4 * len(X), p=total)]
        what = "change of a mean by the model, in standard deviations,"
        return Answer(Estimate(mean, sample, np.zeros(len(mean))), losses, self.target, what)

    def question(self, view: View) -> Question:
        """Return the criterion: the reduction of the variance at the measurements by a run."""
        observed = self._observed(view)
        unknown = view.answer.estimate.answers
        inputs = observed.known.inputs(unknown).reshape(-1, view.space.dimension)
        some = view.rng.permutation(len(inputs))
        targets, near = inputs[some[:TARGETS]], inputs[some[TARGETS : TARGETS + CANDIDATES // 2]]
        near = view.near(near, 1, np.array([0.02])) if len(near) else near
        variances = np.nanmin(np.where(observed.measured, observed.deviations, np.nan) ** 2, axis=0, initial=np.inf)

        def worth(ensemble: Ensemble) -> Array:
            measured = np.flatnonzero(np.isfinite(variances))
            parts = [ensemble.reductions(int(o)).sum(axis=1) / variances[o] for o in measured]
            return np.asarray(np.maximum(np.sum(parts, axis=0), 0.0))

        return Question(np.concatenate([near, view.typical(CANDIDATES // 2)]), targets, worth)

    def _known(self, space: Space) -> Known:
        return Known.of(self.at or None, list(space.free.names))

    def _observed(self, view: View) -> Observed:
        return Observed.of(self.observations, self.noise, self._known(view.space), view.data.y.shape[1])

    def _posteriors(self, view: View) -> tuple[Array, Array]:
        """Return unknown inputs (n, u), and their weights (draws, n) if a draw is the true function."""
        observed, space = self._observed(view), view.space
        free = space.free
        places = observed.known.unknown
        names, marginals = [free.names[j] for j in places], [free.marginals[j] for j in places]
        prior = Inputs.among(names, marginals) if self.at else free
        values, deviations = (part[observed.measured] for part in (observed.values, observed.deviations))

        def allowed(X: Array) -> Mask:
            points = observed.known.inputs(X)
            each = space.allowed(points.reshape(-1, points.shape[2])).reshape(points.shape[:2])
            return np.asarray(each.all(axis=1))

        def at(draws: Any, X: Array) -> Array:
            """Return the errors of measurements (n, p, M) of all draws."""
            points = observed.known.inputs(X)
            found = draws.value(points.reshape(-1, points.shape[2])).reshape(-1, *points.shape[:2], len(view.outputs))
            return np.asarray(values - found[:, :, observed.measured])

        def log(Z: Array) -> Array:
            """Return logarithms of the likelihood of the model, with its errors as further noise."""
            X = prior.from_normal(Z)
            some = at(view.draws, X[view.rng.choice(len(X), 16)])
            variances = deviations**2 + np.mean(some.var(axis=0), axis=0)
            logs = -np.sum(at(view.draws.fit[[0]], X)[0] ** 2 / variances, axis=1) / 2
            return np.asarray(np.where(allowed(X), logs, -np.inf))

        Z, base = population(log, prior.dimension, view.rng)
        X = prior.from_normal(Z)
        logs = np.where(allowed(X), base - np.sum((at(view.draws, X) / deviations) ** 2, axis=2) / 2, -np.inf)
        return X, np.exp(logs - logsumexp(logs, axis=1, keepdims=True))


def population(log: Callable[[Array], Array], d: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return points (n, d) near which a standard normal density times a likelihood is large, and log weights (n,).

    The weights are ratios of the normal density to the density of the points. Points of normal kernels around the
    previous points follow rising powers of the likelihood (population Monte Carlo; Cappe, Guillin, Marin, Robert 2004).

    Parameters
    ----------
    log : callable
        Maps points (n, d) to logarithms of the likelihood (n,).
    d : int
    rng : numpy.random.Generator
    """
    Z = normal_points(POINTS // 2, d, rng).reshape(-1, d)
    base = np.zeros(len(Z))
    for _ in range(ROUNDS):
        logs = log(Z)
        for power in POWERS:
            weights = np.exp(power * (logs - logs.max()) + base - base.max())
            if weights.sum() ** 2 >= LEAST * len(Z) * np.sum(weights**2):
                break
        if power == 1:
            break
        weights = weights / weights.sum()
        centres = Z[rng.choice(len(Z), POINTS, p=weights)]
        covariance = np.atleast_2d(np.cov(Z.T, aweights=weights)) + 1e-12 * np.eye(d)
        factor = (4 / ((d + 2) * POINTS)) ** (1 / (d + 4)) * np.linalg.cholesky(covariance)
        Z = centres + rng.standard_normal(centres.shape) @ factor.T
        white, others = (solve_triangular(factor, points.T, lower=True).T for points in (Z, centres))
        base = -np.sum(Z**2, axis=1) / 2 - logsumexp(-cdist(white, others, "sqeuclidean") / 2, axis=1)
    return Z, base
