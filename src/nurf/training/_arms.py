"""Sampled networks as arms of a race, and the data that they are raced on."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from nurf._blocks import spaced
from nurf._types import Array, Mask
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.solvers import LeaveOneOut, Loss
from nurf.solvers._coverage import standard_error
from nurf.solvers.ridge import HeldOut, largest_near_best
from nurf.solvers.ridge._selection import TOLERANCE
from nurf.training._crossfit import CrossFit, assign_folds
from nurf.training._fit import Fit, Stage, Trial
from nurf.training._race import finite, race, score
from nurf.training._search import Search, Space
from nurf.training._settings import FromData, Setting
from nurf.training._stages import State, Task, grow, require_derivatives


@dataclass(frozen=True, eq=False)
class Split:
    """What is fitted, and the share of its squared error in the estimate."""

    task: Task
    share: float = 1.0


@dataclass(frozen=True, eq=False)
class Lane:
    """Arms on the same data: what they are fitted to at each size, what they may choose, and their random numbers.

    Parameters
    ----------
    name : str
    task : Task
        What is fitted in the end.
    space : Space
    search : Search
    sizes : sequence of int
        The sizes of the race.
    entropy : tuple of int
        Seed of the random numbers.
    handicap : float, default 1
        Factor of the errors in comparisons with other lanes.
    """

    name: str
    task: Task
    space: Space
    search: Search
    sizes: Sequence[int]
    entropy: tuple[int, ...]
    handicap: float = 1.0

    @cached_property
    def final(self) -> tuple[Split, ...]:
        """All the data, as the winner is fitted to them."""
        return (Split(self.task),)

    @property
    def refits(self) -> bool:
        """Whether errors are estimated by refits on folds."""
        n = int(np.count_nonzero(self.task.jet.has_value))
        return 2 <= n <= self.search.few_samples and not self.has_other_rows

    @property
    def tolerance(self) -> float:
        """By how much the error of an alpha may be larger than the smallest: one standard error, if samples are few."""
        n = int(np.count_nonzero(self.task.jet.has_value))
        return max(TOLERANCE, standard_error(n)) if self.refits else TOLERANCE

    @property
    def has_other_rows(self) -> bool:
        """Whether errors are estimated on samples that are not fitted."""
        return self.task.rule is not None and self.task.rule.uses_other_rows

    @cached_property
    def _splits(self) -> dict[int, tuple[Split, ...]]:
        return {size: tuple(self._make(size)) for size in self.sizes}

    def splits(self, size: int) -> tuple[Split, ...]:
        """Return what arms of a size are fitted to."""
        return self.final if size == self.sizes[-1] and not self.refits else self._splits[size]

    def rng(self, depth: int, split: int) -> np.random.Generator:
        """Return the generator of a stage: the same for all arms, so that they differ in their settings only."""
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(depth, split)))

    def _make(self, size: int) -> Iterator[Split]:
        jet, search, rule = self.task.jet, self.search, self.task.rule
        first = size == self.sizes[0] < self.sizes[-1]
        task = replace(self.task, max_precise_operations=0.0 if first else search.max_precise_operations)
        if self.refits:
            probes = probes_around(jet.X[jet.has_value], self.rng(0, 10**6))
            for split, held_out in self._folds(task, search.n_folds):
                yield replace(split, task=replace(split.task, rule=HeldOut(held_out, probes)))
            return
        limit = search.max_rows // 4 if len(jet) > search.max_rows else len(jet)
        n = min(limit, max(search.rows_per_neuron * size, search.few_samples)) if size < self.sizes[-1] else limit
        chosen = np.zeros(len(jet), bool)
        chosen[spaced(np.arange(len(jet)), n)] = True
        yield Split(replace(task, jet=_part(jet, chosen), rule=(rule or LeaveOneOut()).coarse()))

    @cached_property
    def final_folds(self) -> tuple[tuple[Split, ...], tuple[Jet, ...]]:
        """What the winner is fitted to in order to know its error, and the samples that are held out each time.

        Few samples are held out once each. Of more, some are; and none if there are so many that leave-one-out will do.
        """
        search, n = self.search, int(np.count_nonzero(self.task.jet.has_value))
        if not self.refits and (self.has_other_rows or not 2 <= n <= search.max_refit_samples):
            return (), ()
        folds = list(self._folds(self.task, search.n_final_folds))
        if not self.refits:
            folds = folds[: int(np.ceil(search.min_held_out * len(folds) / n))]
        splits, held_out = zip(*folds, strict=True)
        return splits, held_out

    def _folds(self, task: Task, n_folds: int) -> Iterator[tuple[Split, Jet]]:
        """Yield the fits without each fold, and the fold. They are the same for all lanes, and all have values."""
        jet = task.jet
        weights = np.where(jet.has_value, jet.weights(0), 0.0)
        fold_of = assign_folds(jet, n_folds, self.rng(n_folds, 10**6 + 1))
        for fold in range(fold_of.max() + 1):
            held = fold_of == fold
            share = float(weights[held].sum() / weights.sum())
            if share > 0:
                yield Split(replace(task, jet=_part(jet, ~held)), share), jet[held]


def _part(jet: Jet, rows: Mask) -> Jet:
    """Return the jet at some rows. If none of these has derivatives to sample from, those of other rows stay."""
    part, lost = jet[rows], np.zeros(len(jet), bool)
    for order in DERIVATIVE_KINDS:
        known = _telling(jet, order)
        if not np.any(known & rows):
            lost |= known
    return part + replace(jet[lost], y=np.full_like(jet.y[lost], np.nan)) if lost.any() else part


def _telling(jet: Jet, order: int) -> Mask:
    """Return the mask of the rows whose derivatives are known and not zero, or known if all are zero."""
    known = jet.has_derivative(order)
    if not known.any():
        return known
    varying = known & jet.derivative_rows(order).any(axis=(1, 2)) & (jet.weights(1) > 0)
    return varying if varying.any() else known


@dataclass(frozen=True, eq=False)
class SampledArm:
    """A network that is sampled in stages, as an arm of a race.

    Parameters
    ----------
    contest : Lane
    setting : Setting
        How the neurons of the last stage are sampled.
    before : SampledArm or None
        The arm of the stage before.
    sibling : SampledArm or None
        An arm with the same neurons that differs in the loss.
    """

    contest: Lane
    setting: Setting
    before: SampledArm | None = None
    sibling: SampledArm | None = None
    size: int = 0
    alpha: float | None = None
    output_errors: Array = field(default_factory=lambda: np.array([np.inf]))
    seconds: float = 0.0
    _states: dict[tuple[Split, ...], tuple[State, ...]] = field(default_factory=dict)

    @property
    def key(self) -> Hashable:
        """The lane and the settings of all stages."""
        return (self.contest.name, self.setting, None if self.before is None else (self.before.key, self.before.size))

    @property
    def lane(self) -> str:
        """The name of the lane."""
        return self.contest.name

    @property
    def handicap(self) -> float:
        """That of the lane."""
        return self.contest.handicap

    @property
    def loss(self) -> Loss:
        """How much derivatives count."""
        return self.setting.loss

    @property
    def error(self) -> float:
        """The estimated error, outputs added up."""
        return finite(float(np.sqrt(np.sum(self.output_errors**2))))

    @property
    def regularity(self) -> tuple[float, ...]:
        """Larger widths first, then less weight on derivatives."""
        loss = self.setting.loss
        return (self.setting.activation.typical_width, -loss.gradients, -loss.hessians)

    @property
    def depth(self) -> int:
        """Number of stages before this one."""
        return 0 if self.before is None else self.before.depth + 1

    def __str__(self) -> str:
        return str(self.setting)

    def grown(self, size: int) -> SampledArm:
        """Return the arm at a size, with its error."""
        start = time.perf_counter()
        arm = replace(self, size=size)
        splits = self.contest.splits(size)
        search, tolerance = self.contest.search, self.contest.tolerance
        alpha, output_errors = _pooled(splits, arm.states(splits), search.instability, tolerance)
        return replace(arm, alpha=alpha, output_errors=output_errors, seconds=time.perf_counter() - start)

    def variants(self) -> Iterator[SampledArm]:
        """Yield arms of the same size that differ in one thing: the last setting, or a further stage."""
        space = self.contest.space
        for setting in space.variants(self.setting):
            same_neurons = replace(setting, loss=self.setting.loss) == self.setting
            yield SampledArm(self.contest, setting, self._start(setting), self if same_neurons else None)
        for setting in space.estimates(self.setting):
            yield SampledArm(self.contest, setting, before=self)

    def refits(self) -> Iterator[SampledArm]:
        """Yield arms with other weights of derivatives in the loss, or with derivatives estimated once more."""
        for loss in self.contest.space.losses_near(self.setting.loss):
            yield SampledArm(self.contest, replace(self.setting, loss=loss), self.before, self)
        if not self.setting.source.keeps_neurons:
            yield SampledArm(self.contest, self.setting, before=self)

    def branches(self, many: bool) -> Iterator[SampledArm]:
        """Yield the arms that go on from this one: with the same setting, another source, or narrower neurons.

        If narrower neurons helped at the last size, they may help again.
        """
        space = self.contest.space
        yield SampledArm(self.contest, self.setting, before=self)
        if many and self.setting.source in space.sources:
            for source in space.sources:
                if source != self.setting.source:
                    yield SampledArm(self.contest, replace(self.setting, source=source), before=self)
        if many or self._narrowed:
            position = space.activations.index(self.setting.activation)
            for activation in space.activations[position + 1 : position + 2]:
                yield SampledArm(self.contest, replace(self.setting, activation=activation), before=self)

    @property
    def _narrowed(self) -> bool:
        """Whether the neurons are narrower than those of the size before."""
        smaller = self.before
        while smaller is not None and smaller.size == self.size:
            smaller = smaller.before
        widths = self.contest.space.activations
        return smaller is not None and widths.index(self.setting.activation) > widths.index(smaller.setting.activation)

    def _start(self, setting: Setting) -> SampledArm | None:
        """Return the arm from which a variant starts: for a residual there must be one."""
        if self.before is not None or not setting.source.derived or FromData() not in self.contest.space.sources:
            return self.before
        size = int(np.ceil(self.size / self.contest.search.growth))
        return SampledArm(self.contest, replace(setting, source=FromData()), size=size)

    def states(self, splits: tuple[Split, ...]) -> tuple[State, ...]:
        """Return the neurons on given data, from which the next stage can go on."""
        if splits not in self._states:
            if self.sibling is not None and splits in self.sibling._states:
                states = self.sibling._states[splits]
            else:
                before = [None] * len(splits) if self.before is None else self.before.states(splits)
                states = tuple(
                    grow(split.task, state, self.setting, self.size, self.contest.rng(self.depth, number))
                    for number, (split, state) in enumerate(zip(splits, before, strict=True))
                )
            alphas = self._alphas(splits)
            self._states[splits] = tuple(state.with_loss(self.setting.loss, alphas) for state in states)
        return self._states[splits]

    def _alphas(self, splits: tuple[Split, ...]) -> Array | None:
        """Return the one alpha for fits to given data, or None if it is chosen by them."""
        if splits is self.contest.final_folds[0]:
            return np.array([self.states(self.contest.final)[0].fit.alpha])
        raced = not self.contest.refits or self.alpha is None or splits is self.contest.splits(self.size)
        return None if raced else np.array([self.alpha])

    def on_all_data(self) -> SampledArm:
        """Return the arm with the errors of its fit to all data, unless errors are those of refits."""
        if self.contest.refits:
            return self
        return replace(self, output_errors=self.states(self.contest.final)[0].fit.output_errors)

    def history(self, splits: tuple[Split, ...]) -> tuple[Stage, ...]:
        """Return all stages, as they are on the first of the splits."""
        earlier = () if self.before is None else self.before.history(splits)
        return (*earlier, self.states(splits)[0].stage(self.seconds))


def _pooled(
    splits: Sequence[Split], states: Sequence[State], instability: float, tolerance: float
) -> tuple[float, Array]:
    """Return the best alpha for all fits together, and the root mean square errors of the outputs with it.

    An error is that on the samples that were held out, or ``instability`` times the standard deviation of the fits at
    the probes, if that is larger. The largest alpha whose error is within ``tolerance`` of the smallest is the best.
    """
    fits = [state.fit for state in states]
    alphas = np.unique(np.concatenate([fit.alphas for fit in fits]))[::-1]  # some went on to larger or smaller ones
    fits = [
        fit if len(fit.alphas) == len(alphas) else state.with_loss(state.setting.loss, alphas).fit
        for fit, state in zip(fits, states, strict=True)
    ]
    shares = np.array([split.share for split in splits])
    mean_squares = np.tensordot(shares / shares.sum(), [fit.mean_squares for fit in fits], axes=1)
    probed = [fit.probed for fit in fits if fit.probed is not None]
    if len(probed) > 1:
        variances = np.var(probed, axis=0, ddof=1).mean(axis=1)
        mean_squares = np.maximum(mean_squares, instability**2 * variances)
    best = largest_near_best(alphas, np.sqrt(mean_squares.sum(axis=1)), tolerance)
    return float(alphas[best]), np.sqrt(mean_squares[best])


def probes_around(X: Array, rng: np.random.Generator, reach: float = 1.0) -> Array:
    """Return places where a new sample may be: ``x_k + reach (x_k - x_l)`` for neighbours ``x_l`` of the samples.

    With a reach of 1 they are neighbours reflected through the samples, as far from these as they are from each other,
    and some are outside their convex hull; with -1/2 they are between two samples. None is outside the bounding box.
    """
    n, d = X.shape
    neighbours = cKDTree(X).query(X, k=min(2 * d, n - 1) + 1)[1][:, 1:]
    points, picked = np.repeat(np.arange(n), 2), rng.integers(0, neighbours.shape[1], 2 * n)
    moved = X[points] + reach * (X[points] - X[neighbours[points, picked]])
    return np.asarray(np.clip(moved, X.min(axis=0), X.max(axis=0)))


def fit_searched(lanes: Sequence[Lane], watch: Callable[[Trial], None] | None = None) -> Fit:
    """Return the best sampled network of a race over the settings of all lanes, which share search and sizes.

    ``watch`` is called with each trial of the race.
    """
    search, sizes = lanes[0].search, lanes[0].sizes
    arms = [SampledArm(lane, setting) for lane in lanes for setting in lane.space.first_settings()]
    for lane in lanes:
        for source in lane.space.sources:
            if source.derived and len(sizes) > 1:
                require_derivatives(
                    lane.space.activations[0], frozenset().union(*(d.needs for d in lane.space.densities))
                )
    n_samples = len(lanes[0].task.jet)
    rungs = search.rungs(len(sizes), n_samples)
    outcome = race(arms, sizes, rungs, improvement=search.improvement, margin=search.margin, watch=watch)
    *smaller, last = outcome.winners
    doubt = search.uncertainty(n_samples)
    ahead = [arm.on_all_data() for arm in (*(arm for arm in smaller if doubt * score(arm) <= score(last)), last)]
    best = min(ahead, key=score)
    history = best.history(best.contest.final)
    (state,) = best.states(best.contest.final)
    fit = replace(state.fit, output_errors=best.output_errors, stage=history[-1], history=history)
    fit = replace(fit, trials=outcome.trials)
    splits, held_out = best.contest.final_folds[0], lanes[0].final_folds[1]  # the first lane has all the data
    if not splits:
        return fit
    refits = [state.fit for state in best.states(splits)]
    crossfit = CrossFit.of(fit.network, [refit.network for refit in refits], held_out)
    if best.contest.refits:
        return replace(fit, output_errors=np.maximum(fit.output_errors, crossfit.output_errors), crossfit=crossfit)
    pooled, typical = crossfit.optimism([refit.output_errors for refit in refits])
    jet = best.contest.task.jet
    probes = probes_around(jet.X[jet.has_value], best.contest.rng(0, 10**6), reach=-0.5)
    astray = search.instability * crossfit.deviations(probes)
    return replace(fit, output_errors=np.maximum(pooled * fit.output_errors, astray), optimism=typical)
