"""The linear half of every fit: outer weights of given features, with ``alpha`` chosen from a path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nurf.jets import Array, Jet
from nurf.network import Features, ShallowNetwork
from nurf.solvers import GeneralizedCrossValidation, Rule, factor, largest_near_best

ALPHAS = np.logspace(0, -14, 16)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted network and how its regularisation was chosen.

    Attributes
    ----------
    network : ShallowNetwork
    alpha : float
        The chosen regularisation, in units of the mean energy of a feature.
    alphas, errors : arrays of shape (A,)
        The path that was tried, and the estimated root mean square error for each of its members.
    """

    network: ShallowNetwork
    alpha: float
    alphas: Array
    errors: Array


def fit_outer(features: Features, jet: Jet, *, alphas: Array | None = None, rule: Rule | None = None) -> Fit:
    """Find the outer weights of given features by ridge regression, with alpha chosen from a path.

    Parameters
    ----------
    features : Features
    jet : Jet
    alphas : array of shape (A,), optional
        The path; by default 16 values from 1 down to 1e-14. The unit is the mean energy of a feature: the paper's
        penalty ``alpha N / 2 |c|^2`` (eq. 1.6) with ``alpha`` times ``ridge.feature_energy``.
    rule : Rule, default GeneralizedCrossValidation()
        The estimate of the error; the largest alpha within 5% of the best one is taken.
    """
    ridge = factor(features, jet)
    alphas = ALPHAS if alphas is None else np.asarray(alphas, float)
    penalties = alphas * (ridge.feature_energy or 1.0)
    weights = ridge.solve(penalties)
    rule = GeneralizedCrossValidation() if rule is None else rule
    errors = rule.errors(ridge, features, jet, penalties, weights)
    best = largest_near_best(alphas, errors)
    network = ShallowNetwork(features, weights[best].reshape(-1, *jet.y.shape[1:]))
    return Fit(network, float(alphas[best]), alphas, errors)
