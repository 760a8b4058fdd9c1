"""Fits in stages, in each of which neurons are sampled and all outer weights are found (paper, section 4.5)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count, takewhile

import numpy as np

from nurf._blocks import spaced
from nurf._types import Array, Index, Precision
from nurf.activations import Activation
from nurf.densities import Density, PreparedDensity, Uniform
from nurf.engines._fit import ShallowFit, Stage
from nurf.engines._metrics import InputMap, Metric
from nurf.engines._outer import ALPHAS, MAX_PRECISE_OPERATIONS, OuterWeights
from nurf.engines._settings import FromData, FromResidual, Setting, Source
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.networks import Domain, Features, ShallowNetwork
from nurf.solvers import VALUES_ONLY, Loss, Rule
from nurf.solvers.ridge import LeastSquares

Samplings = dict[tuple[Source, Density, Metric], "Sampling"]
SMALL = 100  # with fewer neurons, a stage without improvement is no reason to stop


@dataclass(frozen=True, eq=False)
class Task:
    """The data of a fit, and the settings that all stages share.

    Parameters
    ----------
    jet : Jet
        The data, scaled into the domain.
    alphas, rule
        See ``fit_outer``.
    domain : Domain or None
        The set that the hyperplanes of a uniform density must meet; by default the unit ball.
    max_rows : int or None
        The largest number of rows from which hyperplanes are sampled.
    max_precise_operations : float
        See ``OuterWeights``.
    dtype : numpy.float64 or numpy.float32
        See ``fit_outer``.
    """

    jet: Jet
    alphas: Array | None = None
    rule: Rule | None = None
    domain: Domain | None = None
    max_rows: int | None = None
    max_precise_operations: float = MAX_PRECISE_OPERATIONS
    dtype: Precision = np.float64
    sampled: Jet = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sampled", self.jet[_rows_to_sample(self.jet, self.max_rows)])

    @cached_property
    def samplings(self) -> Samplings:
        """Prepared densities for sampling from the data."""
        return {}


@dataclass(frozen=True, eq=False)
class State:
    """The neurons at the end of a stage, which are fitted only when needed: some sources do not use a network."""

    task: Task
    problem: LeastSquares
    setting: Setting
    fallback: str | None

    @cached_property
    def samplings(self) -> Samplings:
        """Prepared densities for sampling further neurons from the network."""
        return {}

    @cached_property
    def outer(self) -> OuterWeights:
        """The outer weights of all neurons."""
        task = self.task
        return OuterWeights(self.problem, self.setting.loss, task.alphas, task.rule, task.max_precise_operations)

    @property
    def fit(self) -> ShallowFit:
        """The fit of all outer weights."""
        return self.outer.fit

    def with_loss(self, loss: Loss, alphas: Array | None = None) -> State:
        """Return the neurons, to be fitted with another loss, or with other alphas."""
        task = self.task if alphas is None else replace(self.task, alphas=alphas)
        return replace(self, task=task, setting=replace(self.setting, loss=loss))

    def calmer(self) -> Iterator[ShallowNetwork]:
        """Yield networks with increasing alphas, above the alpha of the fit, which vary less."""
        alphas = np.sort(ALPHAS[self.fit.alpha < ALPHAS])
        if not len(alphas):
            return
        ridge = self.problem.ridge(self.setting.loss)
        for coefficients in ridge.solve(alphas * (ridge.feature_energy or 1.0)):
            yield replace(self.fit.network, coefficients=coefficients.reshape(self.fit.network.coefficients.shape))

    def stage(self, seconds: float) -> Stage:
        """Return the record of the stage."""
        fit = self.fit
        size = fit.network.features.n_neurons
        return Stage(size, fit.error, fit.alpha, seconds, self.setting, self.fallback, fit.convergence)


def grow(task: Task, state: State | None, setting: Setting, size: int, rng: np.random.Generator) -> State:
    """Return the neurons after one more stage: new neurons, and the neurons of ``state`` if the source keeps them."""
    kept = state.problem if state is not None and setting.source.keeps_neurons else None
    n_new = size - (0 if kept is None else kept.features.n_neurons)
    before = state if setting.source.derived else None
    known = task.samplings if before is None else before.samplings
    key = (setting.source, setting.density.at_width(setting.activation.typical_width), setting.metric)
    if key not in known:
        networks = () if before is None else chain([before.outer.fit.network], before.calmer())
        source, fallback = setting.source.jet(task.sampled, networks, setting.needs)
        known[key] = Sampling.of(source, setting, task.domain, fallback)
    fresh, fallback = known[key].features(setting, n_new, rng), known[key].fallback
    if kept is None:
        return State(task, LeastSquares(fresh, task.jet, dtype=task.dtype), setting, fallback)
    same = kept.features.degree == fresh.degree
    features = replace(kept.features, degree=fresh.degree) + fresh
    problem = LeastSquares(features, task.jet, kept if same else None, task.dtype)
    return State(task, problem, setting, fallback)


@dataclass(frozen=True, eq=False)
class Sampling:
    """A density of hyperplanes for given data, and the metric in which it samples.

    Parameters
    ----------
    density : PreparedDensity
    metric : InputMap or None
    fallback : str or None
        The reason, if neurons are not sampled by the setting.
    """

    density: PreparedDensity
    metric: InputMap | None
    fallback: str | None

    @classmethod
    def of(cls, jet: Jet, setting: Setting, domain: Domain | None = None, fallback: str | None = None) -> Sampling:
        """Return the sampling of neurons from a jet by a setting.

        If the derivatives of a residual or of a network are all zero, hyperplanes are sampled uniformly.
        """
        density = setting.density
        metric = setting.metric.prepare(jet) if setting.metric.needs <= jet.known else None
        for order, kind in DERIVATIVE_KINDS.items():
            if setting.source.derived and kind in density.needs and not np.any(jet.derivative_rows(order)):
                density, fallback = Uniform(), fallback or f"the {kind} of the {setting.source.name} are zero"
        source = jet if metric is None else metric(jet)
        prepared = density.at_width(setting.activation.typical_width).prepare(source, domain)
        return cls(prepared, metric, fallback)

    def features(self, setting: Setting, n: int, rng: np.random.Generator) -> Features:
        """Return ``n`` neurons. All sampled neurons come from here."""
        planes = self.density.sample(n, rng)
        activation = setting.activation.multiscale(n, setting.width_ratio, rng)
        if self.metric is not None:
            planes, factors = self.metric.back(planes)
            activation = activation.rescale(factors)
        return Features(planes, activation, setting.tail_degree)


def sample_features(
    jet: Jet,
    setting: Setting,
    n: int,
    rng: np.random.Generator,
    *,
    domain: Domain | None = None,
) -> tuple[Features, str | None]:
    """Return ``n`` neurons, sampled by the setting, and the reason if they were sampled uniformly instead."""
    sampling = Sampling.of(jet, setting, domain)
    return sampling.features(setting, n, rng), sampling.fallback


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
) -> ShallowFit:
    """Return a network with inner weights sampled from ``density`` and outer weights from ridge regression.

    Parameters
    ----------
    jet : Jet
        The data, scaled into the domain.
    density : Density
        The density of the hyperplanes.
    activation : Activation
    n_neurons : int
    rng : numpy.random.Generator
    degree : int, optional
        Degree of the polynomial tail; by default one less than the order of the activation. -1 for no tail.
    alphas, rule, loss
        See ``fit_outer``.
    domain : Domain, default Ball(1)
        The set that the hyperplanes of a uniform density must meet.
    """
    return fit_adaptive(
        jet, density, activation, [n_neurons], rng, degree=degree, alphas=alphas, rule=rule, loss=loss, domain=domain
    )


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
) -> ShallowFit:
    """Return a network whose neurons are sampled in stages, each from the density of the previous residual.

    The first stage samples from ``density`` of the data, later stages from ``density`` of the residual ``f - network``
    (``FromResidual``). Each stage finds all outer weights anew.

    Parameters
    ----------
    jet, density, activation, rng, degree, alphas, rule, loss, domain
        As for ``fit_random``.
    counts : increasing sequence of int
        The number of neurons after each stage; see ``stage_counts``.
    patience : int, default 2
        Stop after this number of stages in a row without improvement. Stages up to 100 neurons do not count.
    improvement : float, default 0.01
        Relative decrease of the error that counts as an improvement.

    Returns
    -------
    ShallowFit
        The stage with the smallest error, with the history of all stages.
    """
    counts = _checked(counts)
    source = FromResidual() if len(counts) > 1 else FromData()
    setting = Setting(density, activation, loss, source, degree=degree)
    if len(counts) > 1:
        require_derivatives(activation, density.needs)
    task = Task(jet, alphas, rule, domain)
    state: State | None = None
    best: ShallowFit | None = None
    history: list[Stage] = []
    idle = 0
    for size in counts:
        start = time.perf_counter()
        state = grow(task, state, setting, size, rng)
        history.append(state.stage(time.perf_counter() - start))
        fit = replace(state.fit, stage=history[-1])
        improved = best is None or fit.error < (1 - improvement) * best.error
        idle = 0 if improved or size <= SMALL else idle + 1
        best = fit if best is None or fit.error < best.error else best
        if idle == patience:
            break
    assert best is not None
    return replace(best, history=tuple(history))


def require_derivatives(activation: Activation, kinds: frozenset[str]) -> None:
    """Raise an error unless networks of the activation have derivatives of these kinds, which residuals need."""
    for order, kind in DERIVATIVE_KINDS.items():
        if kind in kinds:
            activation.require(order)


def stage_counts(n_neurons: int, growth: float, n_initial: int | None = None) -> list[int]:
    """Return ``ceil(growth^i n_initial)`` for i = 0, 1, ... below ``n_neurons``, and ``n_neurons`` at the end.

    By default there are four stages, the first with ``n_neurons / growth^3`` neurons.

    >>> stage_counts(1000, growth=2.0)
    [125, 250, 500, 1000]
    """
    if not (np.isfinite(growth) and growth > 1):
        raise ValueError(f"`growth` must be a number > 1, got {growth!r}")
    growth = min(growth, n_neurons + 1.0)  # larger factors make no difference
    first = _whole(n_neurons / growth**3) if n_initial is None else n_initial
    sizes = (_whole(first * growth**i) for i in count())
    return [*dict.fromkeys(takewhile(lambda size: size < n_neurons, sizes)), n_neurons]


def _whole(size: float) -> int:
    """Return the size rounded up, except for rounding errors above a whole number."""
    return int(np.ceil(round(size, 9)))


def _rows_to_sample(jet: Jet, n: int | None) -> Index:
    """Return at most ``n`` rows to sample from, with known derivatives if there are any."""
    if n is None or len(jet) <= n:
        return np.arange(len(jet))
    known = np.zeros(len(jet), bool)
    for order in DERIVATIVE_KINDS:
        if jet.derivatives(order) is not None:
            known |= jet.derivative_rows(order).any(axis=(1, 2))
    return spaced(np.flatnonzero(known if known.any() else np.ones(len(jet), bool)), n)


def _checked(counts: Sequence[int]) -> list[int]:
    counts = [int(size) for size in counts]
    if not counts or counts[0] < 1 or np.any(np.diff(counts) <= 0):
        raise ValueError(f"`counts` must be increasing whole numbers >= 1, got {counts}")
    return counts
