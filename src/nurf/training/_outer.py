"""The linear half of every fit: the outer weights of given features, with ``alpha`` chosen from a path."""

from __future__ import annotations

import numpy as np

from nurf._types import Array
from nurf.jets import Jet
from nurf.networks import Features, ShallowNetwork
from nurf.solvers import VALUES_ONLY, LeaveOneOut, Loss, Rule
from nurf.solvers.ridge import LeastSquares, Ridge, largest_near_best
from nurf.training._fit import Fit

# 16 values from 1 to 1e-14, rounded so that every machine has the same
ALPHAS = np.array([float(f"{10 ** (-14 * i / 15):.6g}") for i in range(16)])
PRECISE_ALPHAS = np.array([float(f"1e-{i}") for i in range(14, 25)])  # too small for the rounding of a Gram matrix
MAX_PRECISE_OPERATIONS = 1e11  # a few seconds


def fit_outer(
    features: Features,
    jet: Jet,
    *,
    alphas: Array | None = None,
    rule: Rule | None = None,
    loss: Loss = VALUES_ONLY,
) -> Fit:
    """Return the network of given features whose outer weights are found by ridge regression.

    Parameters
    ----------
    features : Features
    jet : Jet
    alphas : array of shape (A,), optional
        Candidates for the regularisation. Default is 16 values from 1 down to 1e-14, and, if the last is the best,
        values down to 1e-24. The unit is the mean energy of a feature: the penalty is the paper's
        ``alpha N / 2 |c|^2`` (eq. 1.6) with ``alpha`` times ``Ridge.feature_energy``.
    rule : Rule, default LeaveOneOut()
        How the error is estimated. The largest alpha within 5% of the best one is chosen.
    loss : Loss
        How much derivatives count beside the values. By default they do not.
    """
    return fit_least_squares(LeastSquares(features, jet), loss, alphas=alphas, rule=rule)


def fit_least_squares(
    problem: LeastSquares,
    loss: Loss = VALUES_ONLY,
    *,
    alphas: Array | None = None,
    rule: Rule | None = None,
    max_precise_operations: float = MAX_PRECISE_OPERATIONS,
) -> Fit:
    """Return the same for a least-squares problem.

    If the smallest alpha of the default path is the best, the fit is repeated in the precise form with smaller alphas,
    unless that takes more than ``max_precise_operations``.
    """
    rule = LeaveOneOut() if rule is None else rule
    if alphas is not None:
        return _fit_ridge(problem.ridge(loss), np.asarray(alphas, float), rule)
    fit = _fit_ridge(problem.ridge(loss), ALPHAS, rule)
    if fit.alpha > ALPHAS[-1] or problem.precise_cost(loss) > max_precise_operations:
        return fit
    precise = _fit_ridge(problem.ridge(loss, precise=True), PRECISE_ALPHAS, rule, precise=True)
    return precise if precise.error < fit.error else fit


def _fit_ridge(ridge: Ridge, alphas: Array, rule: Rule, precise: bool = False) -> Fit:
    ridge_alphas = alphas * (ridge.feature_energy or 1.0)
    path = ridge.solve(ridge_alphas)
    errors = rule.errors(ridge, ridge_alphas, path)
    best = largest_near_best(alphas, errors)
    network = ShallowNetwork(ridge.features, path[best].reshape(-1, *ridge.jet.y.shape[1:]))
    return Fit(
        network,
        float(alphas[best]),
        float(errors[best]),
        alphas,
        errors,
        loss=ridge.loss,
        ridge_alpha=float(ridge_alphas[best]),
        precise=precise,
    )
