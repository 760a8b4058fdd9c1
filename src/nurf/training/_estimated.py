"""The fit without derivatives: the network's own ones show where to look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nurf.densities import Uniform
from nurf.jets import Jet
from nurf.training._adaptive import fit_searched, with_estimates
from nurf.training._outer import Fit
from nurf.training._search import MEDIUM, Candidates, Setting

FIRST = 4  # neurons for each input of the first network: derivatives of a network lie in the span of its normals
ROUNDS, GAIN = 6, 0.05  # of new neurons, and by which share each must lower the error


def fit_estimated(
    jet: Jet, candidates: Candidates, counts: Sequence[int], rng: np.random.Generator, **options: Any
) -> Fit:
    """Fit in stages that sample from the derivatives of the network before, then sample all neurons anew.

    Derivatives that are not known are estimated by those of a network, and the neurons of the next one are sampled from
    the density of what is known and what was estimated. At first the network grows, to all but its last size; then, as
    long as the estimated error falls by 5%, all its neurons are replaced; then it gets its last size. Small networks
    compete with uniform sampling. Estimated derivatives guide the sampling; they are no data.

    Parameters
    ----------
    jet, candidates, counts, rng
        As for ``fit_searched``.
    **options
        ``degree, alphas, rule, domain, patience, improvement`` of ``fit_searched``.
    """

    def again(fit: Fit, choices: Candidates, size: int) -> Fit:
        guide = with_estimates(jet, fit, choices.densities[0])
        found = fit_searched(jet, choices, [size], rng, estimate=True, guide=guide, **options)
        return replace(found, history=fit.history + found.history)

    enough = [size for size in counts if size >= FIRST * jet.n_features] or [counts[-1]]
    fit = fit_searched(jet, candidates, enough[:-1] or enough, rng, estimate=True, **options)
    for _ in range(ROUNDS):
        renewed = again(fit, candidates.near(_setting(fit)), fit.network.features.n_neurons)
        if renewed.error > (1 - GAIN) * fit.error:
            break
        fit = renewed
    setting = _setting(fit)
    last = replace(candidates.only(setting), losses=candidates.others(setting.loss))
    rivals = [fit, again(fit, last, counts[-1])]
    if counts[-1] <= MEDIUM:  # small networks may have nothing to start from, and another fit costs little
        rivals.append(fit_searched(jet, replace(candidates, densities=(Uniform(),)), counts, rng, **options))
    return min(rivals, key=lambda rival: rival.error)


def _setting(fit: Fit) -> Setting:
    setting = fit.history[-1].setting
    assert setting is not None
    return setting
