"""The linear half of every fit: the outer weights of given features, with ``alpha`` chosen from a path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nurf._types import Array, Precision
from nurf.engines._fit import ShallowFit
from nurf.jets import Jet
from nurf.networks import Features, ShallowNetwork
from nurf.solvers import VALUES_ONLY, LeaveOneOut, Loss, Rule
from nurf.solvers.ridge import TOLERANCE, LeastSquares, Ridge, largest_near_best

# Rounded, so that every machine has the same numbers. The smallest are lost in the rounding of a Gram matrix.
ALPHAS = np.array([float(f"{10 ** (-14 * i / 15):.6g}") for i in range(16)])
PRECISE_ALPHAS = np.array([float(f"1e-{i}") for i in range(15, 25)])
PATH = np.concatenate([[1e6, 1e3, 30.0], ALPHAS])  # with the first alpha, only the tail remains
SMALLEST = ALPHAS[-1] * (1 - 1e-6)  # the smallest alpha that a Gram matrix can resolve
REFINED = 1e-12  # smaller alphas may be better below this one
WHOLE_PATH = np.concatenate([PATH, PRECISE_ALPHAS])
MAX_PRECISE_OPERATIONS = 2e11  # a few seconds
FEW_OPERATIONS = 1e8  # the precise form takes up to 3 ms, twice the time of a Gram matrix, which is not needed then


def fit_outer(
    features: Features,
    jet: Jet,
    *,
    alphas: Array | None = None,
    rule: Rule | None = None,
    loss: Loss = VALUES_ONLY,
    dtype: Precision = np.float64,
) -> ShallowFit:
    """Return the network of given features with outer weights from ridge regression.

    Parameters
    ----------
    features : Features
    jet : Jet
    alphas : array of shape (A,), optional
        Candidates for the regularisation. Default is 1e6, 1e3, 30 and 16 values from 1 down to 1e-14, and, if one of
        the last values is the best, values down to 1e-24. The unit is the mean energy of a feature: the penalty is the
        paper's ``alpha N / 2 |c|^2`` (eq. 1.6) with ``alpha`` times ``Ridge.feature_energy``.
    rule : Rule, default LeaveOneOut()
        How the error is estimated. The largest alpha within 5% of the best one is chosen.
    loss : Loss
        Weights of the derivatives relative to the values; zero by default.
    dtype : numpy.float64 or numpy.float32
        Precision of the features in normal equations. In single precision these take about 60% of the time, and
        the default path of alphas ends at about 3e-7.
    """
    return OuterWeights(LeastSquares(features, jet, dtype=dtype), loss, alphas, rule).fit


@dataclass(frozen=True, eq=False)
class OuterWeights:
    """The outer weights of given features, with ``alpha`` chosen from a path; computed when they are needed.

    Parameters
    ----------
    problem : LeastSquares
        The features and the data.
    loss, alphas, rule
        See ``fit_outer``.
    max_precise_operations : float
        If one of the smallest alphas of the default path is the best, smaller ones are tried in the precise form,
        unless that takes more than this number of operations.
    """

    problem: LeastSquares
    loss: Loss = VALUES_ONLY
    alphas: Array | None = None
    rule: Rule | None = None
    max_precise_operations: float = MAX_PRECISE_OPERATIONS

    @property
    def fit(self) -> ShallowFit:
        """The best fit."""
        return self.refined if self.refines(self.resolved.alpha) else self.resolved

    @cached_property
    def resolved(self) -> ShallowFit:
        """The best fit along the given path, or along the default path that a Gram matrix can resolve.

        Small problems use the precise form for all alphas.
        """
        problem, loss, rule = self.problem, self.loss, self.rule or LeaveOneOut()
        if self.alphas is None:
            few = min(FEW_OPERATIONS, self.max_precise_operations)
            if problem.dtype == np.float64 and problem.precise_cost(loss) <= few:
                return _fit_ridge(problem.ridge(loss, precise=True), WHOLE_PATH, rule)
            return fit_ridge(problem.ridge(loss), None, rule)
        alphas, fits = np.asarray(self.alphas, float), list[ShallowFit]()
        precise = alphas < SMALLEST
        for fine in np.unique(precise).tolist():
            part = alphas[precise == fine]
            fits.append(_fit_ridge(problem.ridge(loss, precise=fine, alphas=part), part, rule))
        return fits[0] if len(fits) == 1 else _better(*fits)

    @cached_property
    def refined(self) -> ShallowFit:
        """The best fit along the path of ``resolved`` and the smaller alphas of the precise form."""
        ridge = self.problem.ridge(self.loss, precise=True)
        return _better(self.resolved, _fit_ridge(ridge, PRECISE_ALPHAS, self.rule or LeaveOneOut()))

    def refines(self, alpha: float) -> bool:
        """Return whether smaller alphas may be better than ``alpha``, the best of the default path, and are affordable.

        The rounding of a Gram matrix can hide the benefit of small alphas: on LinkletterSine, nonlocal neurons with an
        affine tail have an error of 3.5e-5 at 7e-13, the best alpha with a Gram matrix, and 1e-10 at 1e-24.
        """
        smaller = self.alphas is None and alpha <= REFINED and bool(self.resolved.alphas.min() > SMALLEST)
        return smaller and self.problem.precise_cost(self.loss) <= self.max_precise_operations


def fit_ridge(ridge: Ridge, alphas: Array | None, rule: Rule, tolerance: float = TOLERANCE) -> ShallowFit:
    """Return the best fit along a path of alphas that a Gram matrix can resolve.

    The result has the largest alpha whose error is within ``tolerance`` of the smallest error.
    """
    path = PATH[ridge.smallest_alpha <= PATH] if alphas is None else np.asarray(alphas, float)
    return _fit_ridge(ridge, path, rule, tolerance)


def _better(first: ShallowFit, second: ShallowFit) -> ShallowFit:
    """Return the fit with the largest alpha whose error is near the best of both paths, and the joined path."""
    alphas = np.concatenate([first.alphas, second.alphas])
    mean_squares = np.concatenate([first.mean_squares, second.mean_squares])
    best = alphas[largest_near_best(alphas, np.sqrt(mean_squares.sum(axis=1)))]
    assert first.left_out is not None
    assert second.left_out is not None
    errors = np.concatenate([first.left_out.errors, second.left_out.errors], axis=1)
    left_out = replace(first.left_out, errors=errors)
    chosen = first if best in first.alphas else second
    return replace(chosen, alphas=alphas, mean_squares=mean_squares, left_out=left_out)


def _fit_ridge(ridge: Ridge, alphas: Array, rule: Rule, tolerance: float = TOLERANCE) -> ShallowFit:
    ridge_alphas = alphas * (ridge.feature_energy or 1.0)
    path = ridge.solve(ridge_alphas)
    convergence = ridge.convergence
    left_out = rule.left_out(ridge, ridge_alphas, path)
    mean_squares = rule.squares(left_out)
    best = largest_near_best(alphas, np.sqrt(mean_squares.sum(axis=1)), tolerance)
    network = ShallowNetwork(ridge.features, path[best].reshape(-1, *ridge.jet.y.shape[1:]))
    return ShallowFit(
        network=network,
        alpha=float(alphas[best]),
        output_errors=np.sqrt(mean_squares[best]),
        alphas=alphas,
        mean_squares=mean_squares,
        loss=ridge.loss,
        ridge_alpha=float(ridge_alphas[best]),
        precise=bool(alphas[best] < SMALLEST),
        left_out=left_out,
        convergence=convergence[best] if convergence else None,
    )
