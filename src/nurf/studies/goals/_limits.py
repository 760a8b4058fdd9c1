"""The probability of the wrong side of a limit, and its reduction by a run."""

from __future__ import annotations

import numpy as np

from nurf._types import Array
from nurf.studies._ensemble import Ensemble

NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)


def sides(ensemble: Ensemble, output: int, margins: Array, weights: Array) -> Array:
    """Return the reductions of the misclassified share by a run at each candidate, of shape (m,).

    With a normal value ``f`` at a target, ``a`` its distance from the limit in standard deviations, and ``r`` the share
    of its variance that the run takes away, ``E p (1 - p)`` of the probability ``p`` to be beyond the limit shrinks by
    ``int_0^arcsin(r) exp(-a^2 / (1 + sin t)) dt / (2 pi)`` (Chevalier, Bect, Ginsbourger, Vazquez, Picheny, Richet,
    Technometrics 2014, with the derivative of a bivariate normal distribution with respect to its correlation).

    Parameters
    ----------
    ensemble : Ensemble
    output : int
    margins : array of shape (t,)
        The distances of the fit from the limit at the targets, in the units of the values.
    weights : array of shape (t,)
        How much each target counts.
    """
    variances = ensemble.target_variances[:, output]
    known = variances > np.finfo(float).tiny
    scales = np.where(known, variances, 1.0)
    shares = np.clip(ensemble.reductions(output) / scales, 0.0, 1.0) * known
    ends = np.arcsin(shares)
    squares = margins**2 / scales
    total = np.zeros_like(shares)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        angles = ends * ((1 + node) / 2)
        total += weight * np.exp(-squares / (1 + np.sin(angles)))
    return np.asarray((ends / 2 * total) @ weights / (2 * np.pi))
