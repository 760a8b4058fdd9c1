"""The fit of the paper: sampled inner weights, one linear solve."""

from __future__ import annotations

import numpy as np

from nurf._types import Array
from nurf.activations import Activation
from nurf.densities._base import Density
from nurf.jets import Jet
from nurf.networks import Domain, Features
from nurf.solvers import VALUES_ONLY, Loss, Rule
from nurf.training._outer import Fit, fit_outer


def fit_random(
    jet: Jet,
    density: Density,
    activation: Activation,
    n_neurons: int,
    rng: np.random.Generator,
    *,
    degree: int | None = None,
    alphas: Array | None = None,
    rule: Rule | None = None,
    loss: Loss = VALUES_ONLY,
    domain: Domain | None = None,
) -> Fit:
    """Sample the inner weights from ``density``, then solve for the outer ones.

    Parameters
    ----------
    jet : Jet
        The data, scaled into the domain.
    density : Density
        The law of the hyperplanes.
    activation : Activation
    n_neurons : int
    rng : numpy.random.Generator
    degree : int, optional
        Degree of the polynomial tail; by default one less than the order of the activation. -1 for none.
    alphas, rule, loss
        See ``fit_outer``.
    domain : Domain, default Ball(1)
        The set that the hyperplanes of a uniform law must meet.
    """
    planes = density.at_width(activation.typical_width).prepare(jet, domain).sample(n_neurons, rng)
    features = Features(planes, activation, activation.order - 1 if degree is None else degree)
    return fit_outer(features, jet, alphas=alphas, rule=rule, loss=loss)
