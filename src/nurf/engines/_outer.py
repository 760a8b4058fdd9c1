"""The linear half of every fit: the outer weights of given features, with ``alpha`` chosen from a path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nurf._types import Array, Precision
from nurf.engines._fit import ShallowFit
from nurf.jets import Jet
from nurf.networks import Features, ShallowNetwork
from nurf.solvers import VALUES_ONLY, LeaveOneOut, Loss, Rule
from nurf.solvers.ridge import LeastSquares, Ridge, largest_near_best
from nurf.solvers.ridge._selection import TOLERANCE

# Rounded, so that every machine has the same numbers. The smallest are lost in the rounding of a Gram matrix.
ALPHAS = np.array([float(f"{10 ** (-14 * i / 15):.6g}") for i in range(16)])
PRECISE_ALPHAS = np.array([float(f"1e-{i}") for i in range(15, 25)])
LARGE_ALPHAS = np.array([1e6, 1e3, 30.0])  # for which the tail is all that is left
MAX_PRECISE_OPERATIONS = 2e11  # a few seconds


def fit_outer(
    features: Features,
    jet: Jet,
    *,
    alphas: Array | None = None,
    rule: Rule | None = None,
    loss: Loss = VALUES_ONLY,
    dtype: Precision = np.float64,
) -> ShallowFit:
    """Return the network of given features whose outer weights are found by ridge regression.

    Parameters
    ----------
    features : Features
    jet : Jet
    alphas : array of shape (A,), optional
        Candidates for the regularisation. Default is 16 values from 1 down to 1e-14, and, if the first or the last is
        the best, values up to 1e6 or down to 1e-24. The unit is the mean energy of a feature: the penalty is the
        paper's ``alpha N / 2 |c|^2`` (eq. 1.6) with ``alpha`` times ``Ridge.feature_energy``.
    rule : Rule, default LeaveOneOut()
        How the error is estimated. The largest alpha within 5% of the best one is chosen.
    loss : Loss
        How much derivatives count beside the values. By default they do not.
    dtype : numpy.float64 or numpy.float32
        Precision of the features in normal equations. In single precision these take about 60% of the time, and
        the default path of alphas ends at about 3e-7.
    """
    return fit_least_squares(LeastSquares(features, jet, dtype=dtype), loss, alphas=alphas, rule=rule)


def fit_least_squares(
    problem: LeastSquares,
    loss: Loss = VALUES_ONLY,
    *,
    alphas: Array | None = None,
    rule: Rule | None = None,
    max_precise_operations: float = MAX_PRECISE_OPERATIONS,
) -> ShallowFit:
    """Return the fit of a least-squares problem, with alpha chosen from a path.

    If the largest alpha of the default path is the best, larger ones are tried too. If the smallest is, smaller ones
    are tried in the precise form, unless that takes more than ``max_precise_operations``.
    """
    rule = LeaveOneOut() if rule is None else rule
    if alphas is not None:
        return _fit_path(problem, loss, np.asarray(alphas, float), rule)
    fit = fit_ridge(problem.ridge(loss), None, rule)
    if fit.alpha > ALPHAS[-1] or problem.precise_cost(loss) > max_precise_operations:
        return fit
    return _better(fit, _fit_path(problem, loss, PRECISE_ALPHAS, rule))


def fit_ridge(ridge: Ridge, alphas: Array | None, rule: Rule, tolerance: float = TOLERANCE) -> ShallowFit:
    """Return the best fit along a path of alphas that a Gram matrix can resolve.

    The largest alpha is taken whose error is within ``tolerance`` of the smallest. If that is the largest of the
    default path, larger ones are tried too.
    """
    path = ALPHAS[ridge.smallest_alpha <= ALPHAS] if alphas is None else np.asarray(alphas, float)
    fit = _fit_ridge(ridge, path, rule, precise=False, tolerance=tolerance)
    if alphas is None and fit.alpha == ALPHAS[0]:
        return _better(_fit_ridge(ridge, LARGE_ALPHAS, rule, precise=False, tolerance=tolerance), fit, tolerance)
    return fit


def _fit_path(problem: LeastSquares, loss: Loss, alphas: Array, rule: Rule) -> ShallowFit:
    """Return the best fit along a path; alphas that a Gram matrix cannot resolve take the precise form."""
    precise = alphas < ALPHAS[-1] * (1 - 1e-6)
    parts = {fine: alphas[precise == fine] for fine in (False, True) if np.any(precise == fine)}
    fits = [
        _fit_ridge(problem.ridge(loss, precise=fine, alphas=part), part, rule, fine) for fine, part in parts.items()
    ]
    return fits[0] if len(fits) == 1 else _better(fits[0], fits[1])


def _better(first: ShallowFit, second: ShallowFit, tolerance: float = TOLERANCE) -> ShallowFit:
    """Return the fit with the largest alpha whose error is near the best of both paths, with both paths."""
    alphas = np.concatenate([first.alphas, second.alphas])
    mean_squares = np.concatenate([first.mean_squares, second.mean_squares])
    best = alphas[largest_near_best(alphas, np.sqrt(mean_squares.sum(axis=1)), tolerance)]
    assert first.left_out is not None
    assert second.left_out is not None
    errors = np.concatenate([first.left_out.errors, second.left_out.errors], axis=1)
    left_out = replace(first.left_out, errors=errors)
    chosen = first if best in first.alphas else second
    return replace(chosen, alphas=alphas, mean_squares=mean_squares, left_out=left_out)


def _fit_ridge(ridge: Ridge, alphas: Array, rule: Rule, precise: bool, tolerance: float = TOLERANCE) -> ShallowFit:
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
        precise=precise,
        left_out=left_out,
        convergence=convergence[best] if convergence else None,
    )
