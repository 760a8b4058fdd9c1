"""The fit by stages: new neurons go where the residual varies (paper, section 4.5)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import count, takewhile

import numpy as np

from nurf._types import Array, Index
from nurf.activations import Activation
from nurf.densities import Uniform
from nurf.densities._base import Density
from nurf.jets import Jet
from nurf.networks import Domain, Features
from nurf.solvers import VALUES_ONLY, Loss, Rule
from nurf.solvers._rows import rows_per_sample
from nurf.solvers.ridge import DualRidge, NormalEquations, PrimalRidge, Ridge
from nurf.training._outer import Fit, Stage, fit_factored, refined
from nurf.training._search import MEDIUM, SMALL, Candidates, Setting, Trial

DERIVATIVES = {"gradients": 1, "hessians": 2}
MARGIN = 0.02  # errors that differ by a smaller share are equal
INFORMED = 0.7  # error, in standard deviations of the values, from which on a network shows how the function varies
CLOSE = 1.5  # the last stage asks again whether derivatives help where the errors with and without are so near


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
    loss: Loss = VALUES_ONLY,
    domain: Domain | None = None,
    patience: int = 2,
    improvement: float = 0.01,
) -> Fit:
    """Sample neurons in stages, each from the density of what the last one left over, and refit all outer weights.

    The first stage samples from ``density`` of the data, each later one from that of the residual ``f - network``,
    whose derivatives are known where those of ``f`` are. The normal equations grow by the new neurons only.

    A residual that varies more than ``f`` itself (its derivatives have the larger mean square) shows that the network's
    derivatives are not stable: ``alpha`` or the width is too small. Then the stage is fallback the residual, it samples
    from the data, and the history says so.

    Parameters
    ----------
    jet, density, activation, rng, degree, alphas, rule, loss, domain
        As for ``fit_random``.
    counts : increasing sequence of int
        The number of neurons after each stage; see ``stage_counts``.
    patience : int, default 2
        Stop after so many stages in a row that did not improve the error; those up to 100 neurons do not count.
    improvement : float, default 0.01
        By which share a stage must lower the error to count.

    Returns
    -------
    Fit
        The stage of the smallest error, with the history of all stages.
    """
    return fit_searched(
        jet,
        Candidates((density,), (activation,), (loss,)),
        counts,
        rng,
        degree=degree,
        alphas=alphas,
        rule=rule,
        domain=domain,
        patience=patience,
        improvement=improvement,
        max_rows=len(jet),
    )


def fit_searched(
    jet: Jet,
    candidates: Candidates,
    counts: Sequence[int],
    rng: np.random.Generator,
    *,
    degree: int | None = None,
    alphas: Array | None = None,
    rule: Rule | None = None,
    domain: Domain | None = None,
    patience: int = 2,
    improvement: float = 0.01,
    estimate: bool = False,
    guide: Jet | None = None,
    max_rows: int = 20_000,
) -> Fit:
    """Do the same where every stage chooses the law and the width of its neurons, and the weight of derivatives.

    The first stage, which is small, tries all laws and widths; later ones look around the last choice; and the last
    one, which costs more than all others, keeps it, and asks once more whether derivatives help where that was a close
    call. All that are tried draw the same random numbers. The smallest estimated error is taken, or one within 2% of it
    that is more regular: with a larger width, or less weight on derivatives.

    Parameters
    ----------
    candidates : Candidates
    jet, counts, rng, degree, alphas, rule, domain, patience, improvement
        As for ``fit_adaptive``.
    estimate : bool, default False
        Whether derivatives that are not known are estimated for the sampling: by those of the network of the stage
        before. The first stage, which has none, samples uniformly where nothing is known.
    guide : Jet, optional
        What the first stage samples from; by default the data.
    max_rows : int, default 20000
        Where there are more rows, hyperplanes are sampled from so many of them, and choices are made with a quarter of
        these; the fit then takes all.
    """
    counts = _checked(counts)
    searched: tuple[Stage, ...] = ()
    if len(jet) > max_rows and candidates.has_choice:
        some = _spaced(np.arange(len(jet)), max_rows // 4)
        searched = fit_searched(
            jet[some],
            candidates,
            counts[:-1] or counts,
            deepcopy(rng),
            degree=degree,
            alphas=alphas,
            rule=rule,
            domain=domain,
            patience=len(counts),
            estimate=estimate,
            guide=guide[some] if guide else None,
        ).history
    if len(counts) > 1:  # a residual has the derivatives that the network has
        for kind in {kind for density in candidates.densities for kind in density.needs}:
            candidates.activations[0].require(DERIVATIVES[kind])
    candidates.losses[-1].require(jet)
    degree = candidates.activations[0].order - 1 if degree is None else degree
    rows = _sampled_rows(guide or jet, max_rows)
    sampled, guide = jet[rows], (guide or jet)[rows]
    problem = _Problem(jet, degree, alphas, rule, domain, candidates.spread, estimate, sampled, guide)
    last: _Step | None = None
    best: Fit | None = None
    history: list[Stage] = []
    idle = 0
    for size, choices in zip(counts, _plan(candidates, searched, len(counts)), strict=True):
        start = time.perf_counter()
        last, trials = _next(problem, last, choices, size, rng, final=size == counts[-1])
        rng.bit_generator.state = last.rng.bit_generator.state
        if alphas is None:
            last = replace(last, fit=refined(last.fit, jet, rule=rule))
        fit = last.fit
        seconds = time.perf_counter() - start
        for before in searched[len(history) : len(history) + 1]:
            seconds, trials = seconds + before.seconds, before.trials
        history.append(Stage(size, fit.error, fit.alpha, seconds, last.fallback, last.setting, trials))
        improved = best is None or fit.error < (1 - improvement) * best.error
        idle = 0 if improved or size <= SMALL else idle + 1
        best = fit if best is None or fit.error < best.error else best
        if idle == patience:
            break
    assert best is not None
    return replace(best, history=tuple(history))


def _plan(candidates: Candidates, searched: tuple[Stage, ...], n_stages: int) -> list[Candidates]:
    """Return what each stage may choose: what was chosen on fewer rows, the last of it again; or everything."""
    chosen = [candidates.only(stage.setting) for stage in searched if stage.setting]
    return (chosen + chosen[-1:] * n_stages or [candidates] * n_stages)[:n_stages]


@dataclass(frozen=True, eq=False)
class _Problem:
    """What stays the same in all stages."""

    jet: Jet
    degree: int
    alphas: Array | None
    rule: Rule | None
    domain: Domain | None
    spread: float
    estimate: bool
    sampled: Jet
    guide: Jet


class _Equations:
    """The normal equations of features, for values and derivatives: each made when it is needed, grown if it can be."""

    def __init__(self, features: Features, jet: Jet, before: _Equations | None) -> None:
        self.features, self.jet, self.before = features, jet, before
        self._made: dict[int, NormalEquations] = {}

    def ridge(self, loss: Loss) -> Ridge:
        """Factor the ridge problem, in the smaller of its two forms."""
        if self.features.n_neurons > len(self.jet) * rows_per_sample(self.jet, loss):
            return DualRidge(self.features, self.jet, loss)
        total = self._of(0)
        for order, weight in loss.orders:
            total += weight * self._of(order)
        return PrimalRidge(total, loss)

    def _of(self, order: int) -> NormalEquations:
        if order not in self._made:
            old = self.before._made.get(order) if self.before else None
            new = old.grown(self.features, self.jet, order) if old else None
            self._made[order] = new or NormalEquations.from_rows(self.features, self.jet, order)
        return self._made[order]


@dataclass(frozen=True, eq=False)
class _Step:
    """A network that was grown and fitted, and what the next one needs of it."""

    setting: Setting
    features: Features
    equations: _Equations
    fit: Fit
    rng: np.random.Generator
    fallback: str | None
    without: float = np.inf  # the error of the same neurons with the least weight on derivatives, if that was tried

    def with_loss(self, problem: _Problem, loss: Loss) -> _Step:
        """Fit the same neurons with other weights of derivatives."""
        ridge = self.equations.ridge(loss)
        fit = fit_factored(ridge, self.features, problem.jet, alphas=problem.alphas, rule=problem.rule)
        return replace(self, setting=replace(self.setting, loss=loss), fit=fit)


def _next(
    problem: _Problem, last: _Step | None, candidates: Candidates, size: int, rng: np.random.Generator, final: bool
) -> tuple[_Step, tuple[Trial, ...]]:
    """Grow to ``size`` neurons, in the best of the ways that are tried; return also all of these."""
    setting = None if last is None else last.setting
    loss = candidates.losses[len(candidates.losses) // 2]
    loss = setting.loss if setting and setting.loss in candidates.losses else loss
    grown = [
        _grown(problem, last, Setting(density, activation, loss), size, deepcopy(rng))
        for density, activation in candidates.neurons(setting, size, final)
    ]
    step = _most_regular(grown)
    first = candidates.losses[0]
    weights = candidates.others(loss)
    if final and last is not None and size > MEDIUM:
        weights = (first,) if last.without <= CLOSE * last.fit.error else ()
    others = [step.with_loss(problem, other) for other in weights if other != loss]
    ladder = sorted([step, *others], key=lambda tried: candidates.losses.index(tried.setting.loss))
    without = ladder[0].fit.error if ladder[0].setting.loss == first else np.inf
    trials = tuple(Trial(tried.setting, tried.fit.error) for tried in [*grown, *others])
    return replace(_most_regular(ladder), without=without), trials


def _grown(problem: _Problem, last: _Step | None, setting: Setting, size: int, rng: np.random.Generator) -> _Step:
    """Sample new neurons, from the residual if there is one, and fit them together with the old ones."""
    density = setting.density.at_width(setting.activation.typical_width)
    fresh = size - (last.features.n_neurons if last else 0)
    source, fallback = (problem.guide, None) if last is None else _source(problem, last.fit, density)
    if problem.estimate and not density.needs <= source.known:
        density = Uniform()
    blind = fresh // 2 if problem.estimate and last is None and _blind(source, density) else 0
    planes = density.prepare(source, problem.domain).sample(fresh - blind, rng)
    if blind:
        planes += Uniform().prepare(source, problem.domain).sample(blind, rng)
    features = Features(planes, setting.activation.multiscale(fresh, problem.spread, rng), problem.degree)
    features = last.features + features if last else features
    equations = _Equations(features, problem.jet, last.equations if last else None)
    ridge = equations.ridge(setting.loss)
    fit = fit_factored(ridge, features, problem.jet, alphas=problem.alphas, rule=problem.rule)
    return _Step(setting, features, equations, fit, rng, fallback)


def _blind(jet: Jet, density: Density) -> bool:
    """Tell whether what is known of derivatives leaves out whole directions: no estimate would ever find these."""
    return any(
        np.linalg.matrix_rank(jet.derivative_rows(DERIVATIVES[kind]).reshape(-1, jet.n_features)) < jet.n_features
        for kind in density.needs
    )


def _sampled_rows(jet: Jet, n: int) -> Index:
    """Return at most ``n`` rows to sample from, of those whose derivatives are known if there are any."""
    if len(jet) <= n:
        return np.arange(len(jet))
    known = np.zeros(len(jet), bool)
    for order in DERIVATIVES.values():
        if jet.derivatives(order) is not None:
            known |= jet.derivative_rows(order).any(axis=(1, 2))
    return _spaced(np.flatnonzero(known if known.any() else np.ones(len(jet), bool)), n)


def _spaced(index: Index, n: int) -> Index:
    """Return ``n`` members of ``index`` at equal steps, or all."""
    return np.asarray(index[np.linspace(0, len(index) - 1, min(n, len(index))).round().astype(int)])


def _most_regular(steps: Sequence[_Step]) -> _Step:
    """Return the first of those whose error is within the margin of the smallest."""
    smallest = min(step.fit.error for step in steps)
    return next(step for step in steps if step.fit.error <= (1 + MARGIN) * smallest)


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


def _source(problem: _Problem, fit: Fit, density: Density) -> tuple[Jet, str | None]:
    """Return the jet from which the next stage samples, and why that is not the residual, where it is not.

    Derivatives that are to be estimated are those of the network, as much smaller as the known ones became.
    """
    if not problem.estimate or not density.needs:
        return _residual(problem.sampled, fit, density)
    if not density.needs <= problem.sampled.known:
        return with_estimates(problem.sampled, fit, density), None
    guess = fit.network.jet(problem.sampled.X, density.needs)
    residual, fallback = _residual(problem.sampled, fit, density)
    for kind in density.needs:
        before, after = (_energy(of, DERIVATIVES[kind]) for of in (problem.sampled, residual))
        guess = replace(guess, **{kind: np.sqrt(after / (before or 1.0)) * getattr(guess, kind)})
    return residual.filled(guess), fallback


def with_estimates(jet: Jet, fit: Fit, density: Density) -> Jet:
    """Fill in the derivatives that are not known by those of a network, if that explains enough of the values."""
    values = jet.with_values()
    mean = np.average(values.y, axis=0, weights=values.weights(0))
    spread = np.sqrt(np.sum(np.average((values.y - mean) ** 2, axis=0, weights=values.weights(0))))
    return jet.filled(fit.network.jet(jet.X, density.needs)) if fit.error < INFORMED * spread else jet


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
    return float(jet.weights(0) @ np.sum(jet.derivative_rows(order) ** 2, axis=(1, 2)))
