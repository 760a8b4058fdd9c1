"""The fit by stages: new neurons go where the residual varies (paper, section 4.5)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import count, takewhile

import numpy as np

from nurf.activations import Activation
from nurf.densities.base import Density
from nurf.hyperplanes import Domain
from nurf.jets import Array, Jet
from nurf.network import Features
from nurf.solvers import DualRidge, NormalEquations, PrimalRidge, Rule
from nurf.training.outer import Fit, Stage, fit_factored

DERIVATIVES = {"gradients": 1, "hessians": 2}


def fit_adaptive(
    jet: Jet,
    density: Density,
    activation: Activation,
    counts: Sequence[int],
    rng: np.random.Generator,
    *,
    degree: int | None = None,
    alphas: Array | None = None,
    rule: Rule | None = None,
    domain: Domain | None = None,
    patience: int = 2,
    improvement: float = 0.01,
) -> Fit:
    """Sample neurons in stages, each from the density of what the last one left over, and refit all outer weights.

    The first stage samples from ``density`` of the data, each later one from that of the residual ``f - network``,
    whose derivatives are known where those of ``f`` are. The normal equations grow by the new neurons only.

    A residual that varies more than ``f`` itself (its derivatives have the larger mean square) shows that the network's
    derivatives are not stable: ``alpha`` or the width is too small. Then the stage is refused the residual, it samples
    from the data, and the history says so.

    Parameters
    ----------
    jet, density, activation, rng, degree, alphas, rule, domain
        As for ``fit_random``.
    counts : increasing sequence of int
        The number of neurons after each stage; see ``stage_counts``.
    patience : int, default 2
        Stop after so many stages in a row that did not improve the error.
    improvement : float, default 0.01
        By which share a stage must lower the error to count.

    Returns
    -------
    Fit
        The stage of the smallest error, with the history of all stages.
    """
    counts = _checked(counts)
    for kind in density.needs:
        activation.require(DERIVATIVES[kind])
    density = density.at_width(activation.typical_width)
    degree = activation.order - 1 if degree is None else degree
    features: Features | None = None
    equations: NormalEquations | None = None
    fit: Fit | None = None
    best: Fit | None = None
    refused: str | None
    history: list[Stage] = []
    idle = 0
    for size in counts:
        start = time.perf_counter()
        source, refused = (jet, None) if fit is None else _residual(jet, fit, density)
        fresh = size - (features.n_neurons if features else 0)
        neurons = Features(density.prepare(source, domain).sample(fresh, rng), activation, degree)
        features = features + neurons if features else neurons
        if size <= len(jet):
            equations = equations.grown(features, jet) if equations else NormalEquations.from_data(features, jet)
        ridge = PrimalRidge(equations) if equations and size <= len(jet) else DualRidge(features, jet)
        fit = fit_factored(ridge, features, jet, alphas=alphas, rule=rule)
        history.append(Stage(size, fit.error, fit.alpha, time.perf_counter() - start, refused))
        idle = 0 if best is None or fit.error < (1 - improvement) * best.error else idle + 1
        best = fit if best is None or fit.error < best.error else best
        if idle == patience:
            break
    assert best is not None
    return replace(best, history=tuple(history))


def stage_counts(n_neurons: int, growth: float, n_initial: int | None = None) -> list[int]:
    """Return ``ceil(growth^i n_initial)`` for i = 0, 1, ... below ``n_neurons``, and ``n_neurons`` at last.

    By default there are four stages, the first with ``n_neurons / growth^3``.

    >>> stage_counts(1000, growth=2.0)
    [125, 250, 500, 1000]
    """
    if not (np.isfinite(growth) and growth > 1):
        raise ValueError(f"`growth` must be a number > 1, got {growth!r}")
    first = int(np.ceil(n_neurons / growth**3)) if n_initial is None else n_initial
    sizes = (int(np.ceil(first * growth**i)) for i in count())
    return [*dict.fromkeys(takewhile(lambda size: size < n_neurons, sizes)), n_neurons]


def _checked(counts: Sequence[int]) -> list[int]:
    counts = [int(size) for size in counts]
    if not counts or counts[0] < 1 or np.any(np.diff(counts) <= 0):
        raise ValueError(f"`counts` must be whole numbers >= 1 that increase, got {counts}")
    return counts


def _residual(jet: Jet, fit: Fit, density: Density) -> tuple[Jet, str | None]:
    """Return the jet from which the next stage samples, and why that is not the residual, where it is not."""
    residual = jet - fit.network.jet(jet.X, density.needs)
    for kind in density.needs:
        before, after = (_energy(of, DERIVATIVES[kind]) for of in (jet, residual))
        if after == 0:
            return jet, f"the {kind} of the residual are zero"
        if after > before:
            ratio = np.sqrt(after / before) if before > 0 else np.inf
            return jet, f"the {kind} of the residual are {ratio:.3g} times those of the data"
    return residual, None


def _energy(jet: Jet, order: int) -> float:
    """Return the weighted sum of the squared derivatives."""
    return float(jet.row_weights @ np.sum(jet.directions(order) ** 2, axis=(1, 2)))
