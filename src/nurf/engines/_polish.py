"""Training that starts from sampled neurons."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nurf.engines._crossfit import CrossFit
from nurf.engines._fit import ShallowFit
from nurf.engines._outer import fit_outer
from nurf.engines._sparse import in_columns, in_shape_of, inner_bounds
from nurf.jets import Jet
from nurf.networks import ShallowNetwork
from nurf.solvers import MIN_ERRORS, Loss
from nurf.solvers.sparse import Misfit, Objective, SparseOptions, Squared, train


def polish(
    fit: ShallowFit, jet: Jet, n_steps: int = 10, *, loss: Loss | None = None, widths: bool = False, n_folds: int = 5
) -> ShallowFit:
    """Return the fit with its inner weights trained by a few Gauss-Newton steps, from the sampled weights on.

    The objective of ridge regression, ``L + alpha N / 2 |c|^2`` (paper, eq. 1.6), is minimised over all weights: the
    sampled hyperplanes initialise the training. The objective decreases in every step.

    Parameters
    ----------
    fit : ShallowFit
        The result of ``fit_random`` or ``fit_adaptive``.
    jet : Jet
        The data of the fit, in the same units.
    n_steps : int, default 10
    loss : Loss, optional
        Weights of the derivatives relative to the values; by default as in the fit.
    widths : bool, default False
        Whether widths are trained too.
    n_folds : int, default 5
        Number of folds. The outer weights are fitted and the network is trained again without each fold, from the
        neurons of ``fit``, because closed forms for left-out samples of ridge regression do not hold for trained
        weights. With 0 folds the error is unknown.

    Returns
    -------
    ShallowFit
        The trained fit with the same alpha. Its errors are the errors at the samples of the folds; NaN without folds or
        with fewer than three samples.
    """
    if fit.ridge_alpha <= 0:
        raise ValueError(
            "`polish` needs a fit by ridge regression, got one by sparse training, whose weights are already trained"
        )
    sampled, loss = fit.network, fit.loss if loss is None else loss
    trained = _trained(fit, sampled, jet, n_steps, loss, widths)
    fit = replace(fit, network=trained, loss=loss, crossfit=None, output_errors=np.full_like(fit.output_errors, np.nan))
    if n_folds == 0 or np.count_nonzero(jet.has_value) < MIN_ERRORS:
        return fit

    def refit(part: Jet) -> ShallowNetwork:
        start = fit_outer(sampled.features, part, alphas=np.array([fit.alpha]), loss=loss).network
        return _trained(fit, start, part, n_steps, loss, widths)

    crossfit = CrossFit.by_refits(trained, jet, refit, n_folds)
    return replace(fit, crossfit=crossfit, output_errors=crossfit.output_errors)


def _trained(
    fit: ShallowFit, network: ShallowNetwork, jet: Jet, n_steps: int, loss: Loss, widths: bool
) -> ShallowNetwork:
    """Return the network after some steps on the objective of the fit."""
    misfit, options = Misfit(jet, loss), SparseOptions(tolerance=0.0, max_steps=n_steps)
    misfit.require(network.activation)
    bounds = inner_bounds(jet, network.activation, options)
    max_offset = max(bounds.max_offset, float(np.abs(network.hyperplanes.offsets).max(initial=0.0)))
    alpha = fit.ridge_alpha * network.features.n_neurons
    objective = Objective(misfit, Squared(), alpha, replace(bounds, max_offset=max_offset), widths)
    return in_shape_of(network, train(objective.at(in_columns(network)), options).network)
