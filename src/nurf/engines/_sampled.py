"""Sampled networks: neurons that are sampled in stages, and outer weights by ridge regression."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nurf._blocks import spaced
from nurf._reduction import output_directions
from nurf._types import Array, Index, Mask
from nurf.choosing import (
    NO_LIMIT,
    POLICY,
    Attempt,
    Clock,
    Effort,
    Engine,
    Evidence,
    Judged,
    Policy,
    assign_folds,
    decide,
)
from nurf.densities import Uniform
from nurf.engines._crossfit import CrossFit
from nurf.engines._fit import ShallowFit, Stage
from nurf.engines._metrics import Learned
from nurf.engines._outer import FEW_OPERATIONS
from nurf.engines._settings import FromData, Setting
from nurf.engines._space import Space
from nurf.engines._stages import State, Task, grow, require_derivatives, stage_counts
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.solvers import VALUES_ONLY, LeaveOneOut
from nurf.solvers._coverage import effective_number, standard_error
from nurf.solvers.process import row_total
from nurf.solvers.ridge import HeldOut, LeftOut, largest_near_best
from nurf.solvers.ridge._selection import TOLERANCE

MANY_OUTPUTS = 10  # above which candidates are judged by combinations of them
ADDITIVE = "additive"
ALL, FOLDS, WITHOUT = "all", "folds", "without each fold"
FIRST_SIZE = 100  # neurons with which candidates are first compared, at least
GROWTH = 3.0  # ratio of the sizes, so that all smaller ones together cost less than the last
ROWS_PER_NEURON = {True: 4, False: 8}  # below the last size, with derivatives and without, which say less
MAX_ROWS = 20_000  # from which hyperplanes are sampled; candidates are judged on a quarter of these
MAX_PRECISE_OPERATIONS = 4e10  # of fits with very small alphas, between the first size and the last
MAX_REFIT_SAMPLES = 1000  # up to which fits without folds measure the optimism of leave-one-out: with more it is near 1
MIN_HELD_OUT = 120  # samples that these fits do not see, a fold at a time


@dataclass(frozen=True)
class Stages:
    """The stages of a sampled network: how the neurons of each are sampled.

    Parameters
    ----------
    setting : Setting
        How the neurons of the last stage are sampled.
    before : Stages or None
        The stages before, with their sizes.
    size : int
        Number of neurons after the last stage; 0 if the effort decides.
    """

    setting: Setting
    before: Stages | None = None
    size: int = 0

    def at(self, size: int) -> Stages:
        """Return the stages with a size of the last one."""
        return replace(self, size=size)

    @property
    def kind(self) -> str:
        """Sums of functions of single inputs, if all neurons are axis-aligned, or networks of any kind."""
        kept = self.before is None or not self.setting.source.keeps_neurons or self.before.kind == ADDITIVE
        return ADDITIVE if self.setting.density.additive and kept else "general"

    @property
    def depth(self) -> int:
        """Number of stages before the last one."""
        return 0 if self.before is None else self.before.depth + 1

    def __str__(self) -> str:
        return str(self.setting)


@dataclass(frozen=True, eq=False)
class Split:
    """What is fitted.

    Parameters
    ----------
    task : Task
    samples : array of shape (m,)
        The numbers of its rows among all samples.
    held : array of shape (n,), optional
        The mask of the samples that are held out.
    rest : Jet, optional
        Further samples that are not fitted and judge.
    """

    task: Task
    samples: Index
    held: Mask | None = None
    rest: Jet | None = None

    def numbers(self, left_out: LeftOut, n: int) -> Index:
        """Return the numbers of samples that were left out among all ``n`` samples; validation rows come behind."""
        if self.held is not None:
            return left_out.samples
        index, m = left_out.samples, len(self.task.jet)
        place = np.minimum(index, len(self.samples) - 1)
        return np.where(index < m, self.samples[place], n + index - m)


@dataclass(frozen=True, eq=False)
class SampledEngine(Engine):
    """Sampled networks for given data.

    Parameters
    ----------
    task : Task
        What is fitted in the end.
    space : Space
        What may be chosen.
    sizes : sequence of int
        Numbers of neurons, increasing.
    entropy : tuple of int
        Seed of the random numbers.
    data : str
        "all data" or "values alone".
    improvement : float
        Share by which each further size must lower the error, or there is no larger one.
    policy : Policy
    clock : Clock
    finish : callable, optional
        What is done with the fit in the end.
    rival : float
        See ``Effort``.
    """

    task: Task
    space: Space
    sizes: Sequence[int]
    entropy: tuple[int, ...]
    data: str = "all data"
    improvement: float = -np.inf
    policy: Policy = POLICY
    clock: Clock = NO_LIMIT
    finish: Callable[[ShallowFit], ShallowFit] | None = None
    rival: float = np.inf
    name = "sampled"
    first_step = 0

    def __post_init__(self) -> None:
        derived = any(source.derived for source in self.space.sources)
        if derived and len(self.sizes) > 1:
            needs = frozenset().union(*(density.needs for density in self.space.densities))
            require_derivatives(self.space.activations[0], needs)

    @cached_property
    def efforts(self) -> tuple[Effort, ...]:
        """The first model, the first settings, twice the variants of the best, then few with more neurons."""
        first, *more = self.sizes
        efforts = [Effort(first, keep=2)]
        if self.space.has_choice:
            efforts += [Effort(first, rounds=(1,), keep=2)] * 3
        efforts += [Effort(size, cheap=1, many=True, improvement=self.improvement) for size in more[:-1]]
        efforts += [Effort(size) for size in more[-1:]]
        return tuple(replace(effort, rival=self.rival) for effort in efforts)

    def candidates(self) -> Iterator[Stages]:
        """Yield the first model, and the same with derivatives in the loss."""
        settings = self.space.first_setting, next(self.space.first_settings())
        yield from dict.fromkeys(map(self._estimated, settings))

    def variants(self, judged: Judged) -> Iterator[Stages]:
        """Yield candidates of the same size: the first settings, then those that differ from the best in one thing.

        That is the last setting, or a further stage.
        """
        stages, space = self._of(judged), self.space
        first = [*map(self._estimated, space.first_settings()), Stages(space.first_setting)]
        fresh = [each for each in first if each.at(stages.size) not in self._memory]
        if fresh:
            yield from fresh
            return
        for setting in space.variants(stages.setting):
            yield Stages(setting, self._start(stages, setting))
        if stages.setting.source.keeps_neurons:
            yield from (Stages(setting, stages) for setting in space.estimates(stages.setting))
        if stages.kind == ADDITIVE:
            start = stages.before
            if start is None or not stages.setting.source.keeps_neurons:
                start = Stages(stages.setting, stages.before, self._smaller(stages.size))
            yield from (Stages(setting, start) for setting in space.complements(stages.setting))

    def _estimated(self, setting: Setting) -> Stages:
        """Return the stages of a setting, with derivatives that are estimated by a network if they may be."""
        for estimate in self.space.estimates(setting):
            return Stages(estimate, Stages(setting, size=self.sizes[0]))
        return Stages(setting)

    def cheap(self, judged: Judged) -> Iterator[Stages]:
        """Yield candidates with other weights of derivatives in the loss, or with derivatives estimated once more."""
        stages = self._of(judged)
        for loss in self.space.losses_near(stages.setting.loss):
            yield Stages(replace(stages.setting, loss=loss), stages.before)
        if not stages.setting.source.keeps_neurons:
            yield Stages(stages.setting, stages)

    def onwards(self, judged: Judged, many: bool) -> Iterator[Stages]:
        """Yield candidates that go on: with the same setting, another source or tail, or narrower neurons.

        If narrower neurons helped at the last size, they may help again. Axis-aligned neurons may go on with others,
        which represent what is not a sum of functions of single inputs. Neurons that are sampled anew may go on with
        another tail: what helps a few of them may not help many. With few samples they do not, because the more
        candidates there are, the more often one wins by chance.
        """
        stages, space = self._of(judged), self.space
        setting = stages.setting
        yield Stages(setting, stages)
        if many and setting.source in space.sources:
            for source in space.sources:
                if source != setting.source:
                    yield Stages(replace(setting, source=source), stages)
        if many and not setting.source.keeps_neurons and not self.refits:
            for degree in space.degrees:
                if degree != setting.degree:
                    yield Stages(replace(setting, degree=degree), stages)
        if many or self._narrowed(stages):
            position = space.activations.index(setting.activation)
            for activation in space.activations[position + 1 : position + 2]:
                yield Stages(replace(setting, activation=activation), stages)
        if stages.kind == ADDITIVE:
            complements = space.complements(setting)
            yield from (Stages(complement, stages) for complement in complements[: 2 if many else 1])

    def informed(self, metric: Array, size: int) -> Iterator[Stages]:
        """Yield uniform neurons in a metric that another engine learned, at sizes before the last.

        With few samples there are none: the metric knows the samples of the folds.
        """
        fits = metric.shape[1] == self.task.jet.n_features and self.space.chooses_metric
        if fits and not self.refits and size < self.sizes[-1]:
            learned = Learned(tuple(map(tuple, metric.tolist())))
            for setting in self.space.first_settings():
                if not setting.density.additive:
                    yield Stages(replace(setting, density=Uniform(), metric=learned))

    def family(self, candidate: Any) -> Hashable:
        """Return the density, the metric and the source."""
        return candidate.setting.density, candidate.setting.metric, candidate.setting.source

    def kind(self, candidate: Any) -> str:
        """Return whether the network is a sum of functions of single inputs."""
        return str(candidate.kind)

    def judge(self, candidate: Any, size: int, before: Judged | None = None) -> Judged:
        """Return the evidence for a candidate: from fits without each fold, or from samples that leave a fit.

        A candidate that is behind the best of its size at the samples of the first ``n`` folds, by a factor of
        ``2^(1 / n^2)``, is not fitted without the others. At their samples it is taken to be as far behind.
        """
        self.clock.check()
        start, where = time.perf_counter(), self._where(size)
        if where not in self._cache:
            self._cache.clear()
        stages, best, n_splits = candidate.at(size), self._best(size), len(self._splits(where))
        n, behind = 0, 0.0
        while n < n_splits and not (n and behind > self.policy.factor ** (1 / n**2)):
            n = n_splits if best is None else n + 1
            evidence, alpha = self._evidence(stages, where, n)
            behind = 0.0 if best is None else times_behind(evidence, best.evidence)
        if best is not None and n < n_splits:
            unseen = ~evidence.judges[:, None]
            evidence = replace(evidence, errors=np.where(unseen, behind * best.evidence.errors, evidence.errors))
        judged = Judged(self, candidate, size, evidence, time.perf_counter() - start, alpha)
        self._memory[stages] = judged
        return judged

    def confirmed(self, judged: Judged) -> Judged:
        """Return the candidate with its errors at samples of some of the folds, without which it is fitted again.

        Leave-one-out errors at the other samples are multiplied by the factor by which they are too small at these.

        A sample that leaves a fit in closed form had a part in the placement of the neurons.
        """
        if self.refits or not self._is_measured:
            return judged
        self.clock.check()
        return self._measured(judged)

    def _measured(self, judged: Judged) -> Judged:
        """Return the candidate with errors of fits without some of the folds; it stays if it has these errors."""
        jet, stages, before = self.task.jet, self._of(judged), judged.evidence
        errors = np.full((len(jet), jet.y[:1].size), np.nan)
        for split, state in zip(self._splits(FOLDS), self._states(stages, FOLDS), strict=True):
            assert split.held is not None
            held = split.held & jet.has_value
            errors[held] = state.fit.network.errors(jet[held])
        found = Evidence.at(jet, errors)
        both = found.judges & before.judges
        if before.errors.shape != found.errors.shape or not both.any():  # combinations of many outputs have others
            return replace(judged, evidence=found)
        true, left = (np.sqrt(np.mean(each.errors[both] ** 2, axis=0)) for each in (found, before))
        factors = np.maximum(np.divide(true, left, out=np.ones_like(true), where=left > 0), 1.0)
        errors = np.where(found.judges[:, None], found.errors, factors * before.errors)
        return replace(judged, evidence=Evidence(errors, before.weights))

    def sized(self, judged: Judged, fit: ShallowFit, size: int) -> ShallowFit:
        """Return a candidate with more neurons, which go on from its fit, or the first neurons of its fit.

        Neurons are drawn independently of each other, so that the first of them are a sample, too. Their outer weights
        are left to the caller.
        """
        if size > judged.size:
            return self.fit(replace(judged, candidate=next(self.onwards(judged, False)), size=size), self.task.jet)
        if size == judged.size:
            return fit
        assert fit.stage is not None
        features, coefficients = fit.network.features, fit.network.coefficients
        kept = np.r_[:size, features.n_neurons : features.n_columns]
        network = replace(fit.network, features=features[:size], coefficients=coefficients[kept])
        return replace(fit, network=network, stage=replace(fit.stage, n_neurons=size), precise=False)

    def again(self, fit: ShallowFit) -> Judged:
        """Return the stages of an earlier fit, with neurons that are sampled from the data of this engine."""
        stages: Stages | None = None
        for stage in fit.history:
            assert stage.setting is not None
            stages = Stages(stage.setting, stages, stage.n_neurons)
        assert stages is not None
        engine = replace(self, sizes=(stages.size,))
        return engine.confirmed(engine.judge(stages.at(0), stages.size))

    def record(self, judged: Judged) -> Attempt:
        """Return the record of a candidate."""
        loss = self._of(judged).setting.loss
        return Attempt(self.name, self.data, str(judged.candidate), judged.size, judged.error, judged.seconds, loss)

    def fit(self, judged: Judged, given: Jet) -> ShallowFit:
        """Return the network of a candidate, fitted to all data, with its estimated error; see ``_fit``."""
        fit = self._fit(judged, given)
        return fit if self.finish is None else self.finish(fit)

    def _fit(self, judged: Judged, given: Jet) -> ShallowFit:
        """Return the network of a candidate, fitted to all data, with its estimated error.

        ``given`` are the data with all derivatives that are known, to which gradients without a fold are compared.
        """
        stages = self._of(judged)
        (state,) = self._states(stages, ALL)
        stage = state.stage(judged.seconds)
        fit = replace(state.fit, stage=stage, history=(*self._earlier(stages), stage), left_out=None)
        if self.refits:
            alphas = np.array([judged.found])
            refits = [each.with_loss(fit.loss, alphas).fit for each in self._states(stages, self._where(judged.size))]
            held_out = [given[rows] for rows in fold_masks(given, self.policy)]
            crossfit = CrossFit.of(fit.network, [each.network for each in refits], held_out)
            return replace(fit, output_errors=judged.evidence.output_errors, crossfit=crossfit)
        if not self._is_measured:
            return fit
        folds, refits = self._splits(FOLDS), [each.fit for each in self._states(stages, FOLDS)]
        held_out = [self.task.jet[each.held].only(()) for each in folds]
        crossfit = CrossFit.of(fit.network, [each.network for each in refits], held_out)
        typical = crossfit.optimism([each.output_errors for each in refits])
        return replace(fit, output_errors=self._measured(judged).evidence.output_errors, optimism=typical)

    @cached_property
    def refits(self) -> bool:
        """Whether candidates are judged by fits without each fold: if samples, or rows for each input, are few."""
        jet, policy = self.task.jet, self.policy
        few_rows = row_total(jet) < policy.rows_per_parameter * jet.n_features
        limit = MAX_REFIT_SAMPLES if few_rows and policy.few_samples else policy.few_samples
        return self.n_values <= limit and not self.has_other_rows and len(self.folds) > 1

    @property
    def _is_measured(self) -> bool:
        """Whether fits without some of the folds show how optimistic leave-one-out is.

        Not with many samples, and not if nothing is chosen: the leave-one-out errors of 240 fits with one setting to
        200 to 500 samples (local, nonlocal and uniform densities, 100 and 500 neurons, with gradients in the loss and
        without) were 0.59 to 2.1 of the true errors, 0.99 in the geometric mean.
        """
        chosen = self.space.has_choice or len(self.sizes) > 1
        return chosen and self.n_values <= MAX_REFIT_SAMPLES and not self.has_other_rows and len(self.folds) > 1

    @cached_property
    def n_values(self) -> int:
        """The number of samples with a value."""
        return int(np.count_nonzero(self.task.jet.has_value))

    @property
    def has_other_rows(self) -> bool:
        """Whether errors are estimated on samples that are not fitted."""
        return self.task.rule is not None and self.task.rule.n_other_rows > 0

    @property
    def tolerance(self) -> float:
        """By how much the error of an alpha may be larger than the smallest: one standard error, if samples are few."""
        weights = self.task.jet.weights(0)[self.task.jet.has_value]
        return max(TOLERANCE, standard_error(effective_number(weights))) if self.refits else TOLERANCE

    @cached_property
    def _memory(self) -> dict[Stages, Judged]:
        """What was judged so far."""
        return {}

    @cached_property
    def _cache(self) -> dict[str, dict[tuple[Stages, int], State]]:
        """The neurons on the data of a size, on all data, and on those without folds."""
        return {}

    def _of(self, judged: Judged) -> Stages:
        stages: Stages = judged.candidate  # type: ignore[assignment]
        return stages.at(judged.size)

    def _smaller(self, size: int) -> int:
        """Return the number of neurons of a stage before one with ``size`` neurons."""
        return int(np.ceil(size / GROWTH))

    def _narrowed(self, stages: Stages) -> bool:
        """Return whether the neurons are narrower than those of the size before."""
        smaller = stages.before
        while smaller is not None and smaller.size == stages.size:
            smaller = smaller.before
        place = self.space.activations.index
        return smaller is not None and place(stages.setting.activation) > place(smaller.setting.activation)

    def _start(self, stages: Stages, setting: Setting) -> Stages | None:
        """Return the stages from which a variant starts: for a residual there must be one."""
        if stages.before is not None or not setting.source.derived or FromData() not in self.space.sources:
            return stages.before
        return Stages(replace(setting, source=FromData()), size=self._smaller(stages.size))

    def _states(self, stages: Stages, where: str) -> tuple[State, ...]:
        """Return the neurons after all stages, on the data of a size, on all data or on those without folds."""
        return tuple(self._state(stages, where, number) for number in range(len(self._splits(where))))

    def _state(self, stages: Stages, where: str, number: int) -> State:
        """Return the neurons after all stages on one of the splits."""
        cache = self._cache.setdefault(where, {})
        if (stages, number) not in cache:
            neurons = self._neurons(replace(stages, setting=replace(stages.setting, loss=VALUES_ONLY)), where, number)
            cache[stages, number] = neurons.with_loss(stages.setting.loss, self._alphas(stages, where))
        return cache[stages, number]

    def _neurons(self, stages: Stages, where: str, number: int) -> State:
        """Return the neurons after all stages, whatever the loss after the last one."""
        cache = self._cache.setdefault(f"neurons, {where}", {})
        if (stages, number) not in cache:
            before = None if stages.before is None else self._state(stages.before, where, number)
            task, rng = self._splits(where)[number].task, self._rng(stages.depth, number)
            cache[stages, number] = grow(task, before, stages.setting, stages.size, rng)
        return cache[stages, number]

    def _alphas(self, stages: Stages, where: str) -> Array | None:
        """Return the alpha for fits that do not choose it: that of the race, or of the fit to all data."""
        if where == FOLDS:
            return np.array([self._states(stages, ALL)[0].fit.alpha])
        known = where == ALL and self.refits and stages in self._memory
        return np.array([self._memory[stages].found]) if known else None

    def _earlier(self, stages: Stages) -> tuple[Stage, ...]:
        """Return the stages before the last one, with the errors that they had in the race if they took part in it."""
        before = stages.before
        if before is None:
            return ()
        (state,) = self._states(before, ALL)
        judged = self._memory.get(before)
        if judged is None:
            return (*self._earlier(before), state.stage(0.0))
        stage = Stage(before.size, judged.error, judged.found, judged.seconds, before.setting, state.fallback)
        return (*self._earlier(before), stage)

    def _rng(self, depth: int, split: int) -> np.random.Generator:
        """Return the generator of a stage: the same for all candidates, so that they differ in their settings only."""
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(depth, split)))

    @cached_property
    def _made_splits(self) -> dict[str, tuple[Split, ...]]:
        return {}

    def _where(self, size: int) -> str:
        """Return the name of the data on which candidates of a size are judged: the last size takes all data."""
        if self.refits:
            return WITHOUT
        return ALL if size == self.sizes[-1] else str(size)

    def _splits(self, where: str) -> tuple[Split, ...]:
        """Return what is fitted: the data of a size, all data, or the data without some of the folds."""
        if where not in self._made_splits:
            self._made_splits[where] = tuple(self._make_splits(where))
        return self._made_splits[where]

    def _make_splits(self, where: str) -> Iterator[Split]:
        jet, everything = self.task.jet, np.arange(len(self.task.jet))
        if where == ALL:
            limit = 0.0 if self.clock.is_over else self.task.max_precise_operations
            yield Split(replace(self.task, max_precise_operations=limit), everything)
        elif where == FOLDS:
            n_folds = int(np.ceil(MIN_HELD_OUT * self.policy.n_folds / self.n_values))
            limit = self.task.max_precise_operations
            yield from (Split(self._on(~held, limit), everything[~held], held) for held in self.folds[:n_folds])
        elif where == WITHOUT:
            for held in self.folds:
                task = replace(self._on(~held, MAX_PRECISE_OPERATIONS), rule=HeldOut(jet[held], np.flatnonzero(held)))
                yield Split(task, everything[~held], held)
        else:
            combined = jet if self._outputs is None or self.has_other_rows else jet.combined(self._outputs)
            chosen = np.zeros(len(jet), bool)
            chosen[spaced(everything, self._n_rows(int(where)))] = True
            rule = (self.task.rule or LeaveOneOut()).coarse()
            limit = FEW_OPERATIONS if int(where) == self.sizes[0] else MAX_PRECISE_OPERATIONS
            task = replace(self._on(chosen, limit), rule=rule, jet=_part(combined, chosen))
            yield Split(task, everything[chosen], rest=None if self.has_other_rows else combined[~chosen])

    def _on(self, rows: Mask, limit: float) -> Task:
        """Return the task on some of the rows."""
        return replace(self.task, jet=_part(self.task.jet, rows), max_precise_operations=limit)

    def _n_rows(self, size: int) -> int:
        """Return the number of rows on which candidates of a size are judged."""
        n = len(self.task.jet)
        limit = MAX_ROWS // 4 if n > MAX_ROWS else n
        wanted = ROWS_PER_NEURON[bool(self.task.jet.known)] * size
        return min(limit, max(wanted, self.policy.few_samples)) if size < self.sizes[-1] else limit

    @cached_property
    def folds(self) -> list[Mask]:
        """The masks of the rows in each fold."""
        return fold_masks(self.task.jet, self.policy)

    @cached_property
    def _outputs(self) -> Array | None:
        """The combinations of many outputs (k, q) by which candidates below the last size are judged, None for all."""
        return output_directions(self.task.jet) if self.task.jet.y[:1].size > MANY_OUTPUTS else None

    def _best(self, size: int) -> Judged | None:
        """Return the best candidate of a size so far."""
        judged = [each for each in self._memory.values() if each.size == size]
        return min(judged, key=lambda each: each.error, default=None)

    def _evidence(self, stages: Stages, where: str, n: int) -> tuple[Evidence, float]:
        """Return the errors at samples that the fits of the first ``n`` splits did not see, and the alpha of all fits.

        If the smallest alpha of the path is the best, all fits go on to smaller ones, if they can.
        """
        splits, states = self._splits(where)[:n], [self._state(stages, where, number) for number in range(n)]
        fits = [state.resolved for state in states]
        _, best = self._along(splits, fits, 0.0)
        if all(state.refines(best) for state in states):
            fits = [state.refined for state in states]
        left_out, alpha = self._along(splits, fits, self.tolerance)
        jet, n_others = self.task.jet, 0 if self.task.rule is None else self.task.rule.n_other_rows
        total = len(jet) + n_others
        errors, weights = np.full((total, left_out.errors.shape[2]), np.nan), np.zeros(total)
        weights[: len(jet)] = jet.weights(0)
        errors[left_out.samples] = left_out.errors[:, 0]
        weights[left_out.samples] = left_out.weights
        for split, fit in zip(splits, fits, strict=True):
            if split.rest is not None:
                rest = np.setdiff1d(np.arange(len(jet)), split.samples)
                valued = split.rest.has_value
                errors[rest[valued]] = fit.network.errors(split.rest[valued])
        if n_others:  # the rows of the fit do not judge it
            errors[: len(jet)] = np.nan
        valued = np.concatenate([jet.has_value, np.ones(n_others, bool)])
        return Evidence(errors[valued], weights[valued]), alpha

    def _along(self, splits: Sequence[Split], fits: Sequence[ShallowFit], tolerance: float) -> tuple[LeftOut, float]:
        """Return the errors of all fits with one alpha, the largest near the best of those that all fits have."""
        first = fits[0].alphas
        alphas = first[np.all([np.isin(first, fit.alphas) for fit in fits], axis=0)]
        parts = [fit.left_out for fit in fits if fit.left_out is not None]
        joined = LeftOut(
            np.concatenate(
                [part.errors[:, np.isin(fit.alphas, alphas)] for fit, part in zip(fits, parts, strict=True)]
            ),
            np.concatenate([part.weights for part in parts]),
            np.concatenate(
                [split.numbers(part, len(self.task.jet)) for split, part in zip(splits, parts, strict=True)]
            ),
            sum(part.total for part in parts),
        )
        squares = (self.task.rule or LeaveOneOut()).squares(joined)
        best = largest_near_best(alphas, np.sqrt(squares.sum(axis=1)), tolerance)
        return replace(joined, errors=joined.errors[:, [best]]), float(alphas[best])


def times_behind(evidence: Evidence, best: Evidence) -> float:
    """Return the error over that of the best candidate at the samples that judge both."""
    both = (evidence.judges & best.judges)[:, None]
    ours, others = (replace(each, errors=np.where(both, each.errors, np.nan)).error for each in (evidence, best))
    return ours / others if others > 0 else 0.0


def fold_masks(jet: Jet, policy: Policy) -> list[Mask]:
    """Return the masks of the rows in each fold that has values of positive weight."""
    fold_of = assign_folds(jet, policy.n_folds)
    folds = [fold_of == fold for fold in range(fold_of.max() + 1)]
    return [held for held in folds if np.any(jet.weights(0)[held & jet.has_value] > 0)]


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


def race_sizes(n_neurons: int, n_sizes: int = 3) -> list[int]:
    """Return the sizes at which candidates for a network of ``n_neurons`` are compared: each a third of the next.

    With fewer than 100 neurons, the best settings are not those of the full size.

    >>> race_sizes(2000), race_sizes(300), race_sizes(7)
    ([223, 669, 2000], [102, 300], [7])
    """
    sizes = stage_counts(n_neurons, GROWTH, int(np.ceil(n_neurons / GROWTH ** (n_sizes - 1))))
    return [size for size in sizes if size >= min(FIRST_SIZE, n_neurons)]


def fit_sampled(engines: Sequence[SampledEngine], watch: Callable[[Attempt], None] | None = None) -> ShallowFit:
    """Return the best sampled network of a race over the candidates of all engines, on the same samples."""
    choice = decide(engines, engines[0].policy, watch)
    winner: SampledEngine = choice.winner.engine  # type: ignore[assignment]
    return replace(winner.fit(choice.winner, engines[0].task.jet), attempts=choice.attempts)


def fit_for_more_rows(
    engines: Sequence[SampledEngine], watch: Callable[[Attempt], None] | None = None
) -> tuple[ShallowFit, ...]:
    """Return the fit to a sample of many rows, and that of the last size if it may be the better one on all rows.

    A noisy sample may carry fewer neurons than all rows. If a smaller size has the smaller error, both fits are
    returned, the best on the sample first; unless its alpha is so small that there is no noise, and more rows do not
    help.
    """
    choice = decide(engines, engines[0].policy, watch)
    judged = [choice.winner]
    if choice.winner.size < max(each.size for each in choice.last):
        judged.append(max(choice.last, key=lambda each: each.size))
    fits = [replace(each.engine.fit(each, engines[0].task.jet), attempts=choice.attempts) for each in judged]
    return tuple(fits[:1] if fits[0].precise else fits)
