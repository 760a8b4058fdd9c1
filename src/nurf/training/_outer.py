"""The linear half of every fit: outer weights of given features, with ``alpha`` chosen from a path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nurf._types import Array
from nurf.jets import Jet
from nurf.networks import Features, ShallowNetwork
from nurf.solvers import VALUES_ONLY, LeaveOneOut, Loss, Rule
from nurf.solvers.ridge import Posterior, PreciseRidge, Ridge, factor, largest_near_best
from nurf.training._search import Setting, Trial

ALPHAS = np.logspace(0, -14, 16)
MOST_OPERATIONS = 1e11  # for a refinement
FINE_ALPHAS = np.logspace(-14, -24, 11)  # where rounding of the Gram matrix does not hide them


@dataclass(frozen=True)
class Stage:
    """One stage of an adaptive fit.

    Attributes
    ----------
    n_neurons : int
        Neurons after the stage.
    error : float
        The estimated root mean square error.
    alpha : float
        The chosen regularisation.
    seconds : float
        Time that the stage took.
    fallback : str or None
        Why the neurons of this stage were not sampled from the residual, where they were not.
    setting : Setting or None
        The law and the width of the neurons of this stage, and how much derivatives counted.
    trials : tuple of Trial
        All settings that were tried.
    """

    n_neurons: int
    error: float
    alpha: float
    seconds: float
    fallback: str | None = None
    setting: Setting | None = None
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted network and how its regularisation was chosen.

    Attributes
    ----------
    network : ShallowNetwork
    alpha : float
        The chosen regularisation, in units of the mean energy of a feature.
    error : float
        The estimated root mean square error.
    alphas, errors : arrays of shape (A,)
        The path that was tried, and the estimated error for each of its members.
    history : tuple of Stage
        The stages of an adaptive fit.
    loss : Loss
        How much derivatives counted.
    posterior : Posterior or None
        The law of the weights, where they are those of a ridge regression.
    """

    network: ShallowNetwork
    alpha: float
    error: float
    alphas: Array
    errors: Array
    history: tuple[Stage, ...] = ()
    loss: Loss = VALUES_ONLY
    posterior: Posterior | None = None


def fit_outer(
    features: Features,
    jet: Jet,
    *,
    alphas: Array | None = None,
    rule: Rule | None = None,
    loss: Loss = VALUES_ONLY,
) -> Fit:
    """Find the outer weights of given features by ridge regression, with alpha chosen from a path.

    Parameters
    ----------
    features : Features
    jet : Jet
    alphas : array of shape (A,), optional
        The path; by default 16 values from 1 down to 1e-14, and smaller ones where the last is the best (see
        ``refined``). The unit is the mean energy of a feature: the paper's
        penalty ``alpha N / 2 |c|^2`` (eq. 1.6) with ``alpha`` times ``ridge.feature_energy``.
    rule : Rule, default LeaveOneOut()
        The estimate of the error; the largest alpha within 5% of the best one is taken.
    loss : Loss
        How much derivatives count beside the values; by default not at all.
    """
    fit = fit_factored(factor(features, jet, loss), features, jet, alphas=alphas, rule=rule)
    return refined(fit, jet, rule=rule) if alphas is None else fit


def fit_factored(
    ridge: Ridge, features: Features, jet: Jet, *, alphas: Array | None = None, rule: Rule | None = None
) -> Fit:
    """Do the same with the ridge problem factored already."""
    alphas = ALPHAS if alphas is None else np.asarray(alphas, float)
    penalties = alphas * (ridge.feature_energy or 1.0)
    weights = ridge.solve(penalties)
    rule = LeaveOneOut() if rule is None else rule
    errors = rule.errors(ridge, features, jet, penalties, weights)
    best = largest_near_best(alphas, errors)
    network = ShallowNetwork(features, weights[best].reshape(-1, *jet.y.shape[1:]))
    posterior = Posterior.of(ridge, float(penalties[best]), network, jet)
    return Fit(network, float(alphas[best]), float(errors[best]), alphas, errors, (), ridge.loss, posterior)


def refined(fit: Fit, jet: Jet, *, rule: Rule | None = None) -> Fit:
    """Fit again with alphas from 1e-14 to 1e-24, where the smallest alpha of the path was the best.

    That takes ``PreciseRidge``, and is done where it costs some seconds at most.
    """
    features = fit.network.features
    if fit.alpha > ALPHAS[-1] or PreciseRidge.cost(features, jet, fit.loss) > MOST_OPERATIONS:
        return fit
    precise = fit_factored(PreciseRidge(features, jet, fit.loss), features, jet, alphas=FINE_ALPHAS, rule=rule)
    return precise if precise.error < fit.error else fit
