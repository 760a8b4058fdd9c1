"""Sampled networks: neurons that are sampled in stages, and outer weights by ridge regression."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nurf._types import Array
from nurf.choosing import NO_LIMIT, POLICY, Attempt, Clock, Effort, Engine, Evidence, Judged, Policy, decide, fold_masks
from nurf.engines._candidates import GROWTH, Moves, Stages
from nurf.engines._crossfit import CrossFit
from nurf.engines._elsewhere import error_elsewhere
from nurf.engines._fit import ShallowFit, Stage
from nurf.engines._memory import Memory
from nurf.engines._parts import ALL, FOLDS, Parts, Split
from nurf.engines._space import Space
from nurf.engines._stages import State, Task, require_derivatives, stage_counts
from nurf.jets import LEAST_VALUES, Jet
from nurf.solvers import LeaveOneOut, effective_number, standard_error
from nurf.solvers.ridge import TOLERANCE, LeftOut, largest_near_best

FIRST_SIZE = 100  # smallest number of neurons for the first comparison of candidates


@dataclass(frozen=True, eq=False)
class SampledEngine(Engine):
    """Sampled networks for given data.

    Parameters
    ----------
    task : Task
        The data and settings of the final fit.
    space : Space
        The settings to choose from.
    sizes : sequence of int
        Numbers of neurons, increasing.
    entropy : tuple of int
        Seed of the random numbers.
    data : str
        "all data" or "values alone".
    improvement : float
        Relative decrease of the error that each larger size requires.
    policy : Policy
    clock : Clock
    finish : callable, optional
        A function that is applied to the final fit.
    transform, back
        See ``Engine``.
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
    transform: str = ""
    back: Callable[[Evidence], Evidence] | None = None
    name = "sampled"
    first_step = 0

    def __post_init__(self) -> None:
        derived = any(source.derived for source in self.space.sources)
        if derived and len(self.sizes) > 1:
            needs = frozenset().union(*(density.needs for density in self.space.densities))
            require_derivatives(self.space.activations[0], needs)

    @cached_property
    def efforts(self) -> tuple[Effort, ...]:
        """Efforts: the first model, the first settings, two rounds of variants, then few with more neurons."""
        first, *more = self.sizes
        efforts = [Effort(first, keep=2)]
        if self.space.has_choice:
            efforts += [Effort(first, rounds=(1,), keep=2)] * 3
        efforts += [Effort(size, cheap=1, many=True, improvement=self.improvement) for size in more[:-1]]
        efforts += [Effort(size) for size in more[-1:]]
        return tuple(efforts)

    def candidates(self) -> Iterator[Stages]:
        """Return the first model, without and with derivatives in the loss."""
        return self._moves.first()

    def variants(self, judged: Judged) -> Iterator[Stages]:
        """Return candidates of the same size that differ from a good one in one setting."""
        return self._moves.variants(self._of(judged), self.memory.judged)

    def cheap(self, judged: Judged) -> Iterator[Stages]:
        """Return candidates with other losses, or with newly estimated derivatives."""
        return self._moves.cheap(self._of(judged))

    def onwards(self, judged: Judged, many: bool) -> Iterator[Stages]:
        """Return larger candidates that continue a good one."""
        return self._moves.onwards(self._of(judged), many)

    def informed(self, metric: Array, size: int) -> Iterator[Stages]:
        """Return uniform neurons in a metric learned by another engine."""
        fits = metric.shape[1] == self.task.jet.n_features
        return self._moves.informed(metric, size) if fits else iter(())

    def family(self, candidate: Any) -> Hashable:
        """Return the family of a candidate: its density, metric and source."""
        return candidate.setting.density, candidate.setting.metric, candidate.setting.source

    def kind(self, candidate: Any) -> str:
        """Return the class of functions of a candidate."""
        return str(candidate.kind)

    def judge(self, candidate: Any, size: int, before: Judged | None = None) -> Judged:
        """Return the evidence for a candidate: from fits without each fold, or from leave-one-out in closed form.

        If the error of a candidate at the samples of the first ``n`` folds is ``2^(1 / n^2)`` times the error of the
        best of its size, the other folds are skipped, and its errors there are set to this multiple of the best.
        """
        self.clock.check()
        start, where = time.perf_counter(), self._parts.where(size)
        self.memory.begin(where)
        stages, best, n_splits = candidate.at(size), self.memory.best(size), len(self.memory.splits(where))
        n, behind = 0, 0.0
        while n < n_splits and not (n and behind > self.policy.factor ** (1 / n**2)):
            n = n_splits if best is None else n + 1
            evidence, alpha = self._evidence(self.memory.splits(where)[:n], self.memory.states(stages, where, n))
            behind = 0.0 if best is None else times_behind(evidence, best.own)
        if best is not None and n < n_splits:
            unseen = ~evidence.judges[:, None]
            evidence = replace(evidence, errors=np.where(unseen, behind * best.own.errors, evidence.errors))
        judged = Judged(self, candidate, size, evidence, time.perf_counter() - start, alpha)
        self.memory.judged[stages] = judged
        return judged

    def confirmed(self, judged: Judged) -> Judged:
        """Return the candidate with errors at samples of some folds, from fits without these folds.

        Leave-one-out in closed form is too optimistic, because neurons are sampled with the left-out sample. At the
        other samples, its errors are multiplied by the ratio measured at the samples of these folds. If candidates are
        judged by fits without each fold, what these show where there are no samples is added to the evidence.
        """
        if self.uses_folds:
            self.clock.check()
            elsewhere = error_elsewhere([each.network for each in self._refitted(judged)], self.task.jet.X)
            return replace(judged, own=replace(judged.own, elsewhere=elsewhere))
        if not self._is_measured:
            return judged
        self.clock.check()
        return self._measured(judged, self.memory.states(self._of(judged), FOLDS))

    def _measured(self, judged: Judged, states: Sequence[State]) -> Judged:
        """Return the candidate with errors of fits without some of the folds, given their neurons."""
        jet, before = self.task.jet, judged.own
        errors = np.full((len(jet), jet.y[:1].size), np.nan)
        for split, state in zip(self.memory.splits(FOLDS), states, strict=True):
            assert split.held is not None
            held = split.held & jet.judges
            errors[held] = state.fit.network.errors(jet[held])
        found = Evidence.at(jet, errors)
        both = found.judges & before.judges
        if before.errors.shape != found.errors.shape or not both.any():  # combinations of outputs have other shapes
            return replace(judged, own=found)
        true, left = (np.sqrt(np.mean(each.errors[both] ** 2, axis=0)) for each in (found, before))
        factors = np.maximum(np.divide(true, left, out=np.ones_like(true), where=left > 0), 1.0)
        errors = np.where(found.judges[:, None], found.errors, factors * before.errors)
        return replace(judged, own=replace(before, errors=errors))

    def sized(self, judged: Judged, fit: ShallowFit, size: int) -> ShallowFit:
        """Return a candidate with more neurons than its fit, or with the first neurons of its fit.

        Neurons are drawn independently, so that the first of them are a sample as well. The caller finds the outer
        weights.
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
        """Return the stages of an earlier fit, with neurons sampled from the data of this engine."""
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

        ``given`` are the data with all known derivatives, to which gradients of fits without a fold are compared.
        """
        stages = self._of(judged)
        (state,) = self.memory.states(stages, ALL)
        stage = state.stage(judged.seconds)
        fit = replace(state.fit, stage=stage, history=(*self._earlier(stages), stage), left_out=None)
        few = np.count_nonzero(self.task.jet.has_value) < LEAST_VALUES
        if self.task.jet.functionals is not None and (few or not self.uses_folds):
            evidence = judged.own
            if self._is_measured and not self.uses_folds:
                evidence = self._measured(judged, self.memory.states(stages, FOLDS)).own
            own, true = state.fit.output_errors, evidence.output_errors
            optimism = np.maximum(np.divide(true, own, out=np.ones_like(true), where=own > 0), 1.0)
            return replace(fit, output_errors=evidence.of_values.output_errors, optimism=optimism)
        if self.uses_folds:
            held_out = [given[rows] for rows in fold_masks(given, self.policy.n_folds)]
            crossfit = CrossFit.of(fit.network, [each.network for each in self._refitted(judged)], held_out)
            # A left-out sample is predicted worse than a fitted one, unless few neurons happen to miss an input.
            fitted = Evidence.at(self.task.jet, fit.network.errors(self.task.jet))
            errors = [each.of_values.output_errors for each in (judged.own, fitted)]
            return replace(fit, output_errors=np.fmax(*errors), crossfit=crossfit)
        if not self._is_measured:
            return fit
        folds, states = self.memory.splits(FOLDS), self.memory.states(stages, FOLDS)
        refits = [each.fit for each in states]
        held_out = [self.task.jet[each.held].only(()) for each in folds]
        crossfit = CrossFit.of(fit.network, [each.network for each in refits], held_out)
        typical = crossfit.optimism([each.output_errors for each in refits])
        return replace(fit, output_errors=self._measured(judged, states).own.output_errors, optimism=typical)

    def _refitted(self, judged: Judged) -> list[ShallowFit]:
        """Return the fits without each fold, with the alpha of the candidate."""
        alphas, states = np.array([judged.found]), self.memory.states(self._of(judged), self._parts.where(judged.size))
        return [state.with_loss(state.setting.loss, alphas).outer.fit for state in states]

    @property
    def uses_folds(self) -> bool:
        """Whether candidates are judged by fits without each fold."""
        return self._parts.uses_folds

    @property
    def _is_measured(self) -> bool:
        """Whether fits without some of the folds measure the optimism of leave-one-out.

        Many samples or a single setting need no measurement: the leave-one-out errors of 240 fits with one setting to
        200 to 500 samples (local, nonlocal and uniform densities, 100 and 500 neurons, with and without
        gradients in the loss) were 0.59 to 2.1 times the true errors, 0.99 times in the geometric mean.
        """
        chosen = self.space.has_choice or len(self.sizes) > 1
        return chosen and self._parts.can_measure

    @property
    def tolerance(self) -> float:
        """The accepted relative increase of the error for a larger alpha: with few samples, one standard error."""
        weights = self.task.jet.weights(0)[self.task.jet.judges]
        return max(TOLERANCE, standard_error(effective_number(weights))) if self.uses_folds else TOLERANCE

    @cached_property
    def memory(self) -> Memory:
        """The candidates that were judged so far, and their neurons."""
        return Memory(self._parts, self.entropy)

    @cached_property
    def _parts(self) -> Parts:
        return Parts(self.task, tuple(self.sizes), self.policy, self.clock)

    @cached_property
    def _moves(self) -> Moves:
        return Moves(self.space, tuple(self.sizes), not self.uses_folds)

    def _of(self, judged: Judged) -> Stages:
        stages: Stages = judged.candidate  # type: ignore[assignment]
        return stages.at(judged.size)

    def _earlier(self, stages: Stages) -> tuple[Stage, ...]:
        """Return the stages before the last one, with their errors in the race if they took part."""
        before = stages.before
        if before is None:
            return ()
        (state,) = self.memory.states(before, ALL)
        judged = self.memory.judged.get(before)
        if judged is None:
            return (*self._earlier(before), state.stage(0.0))
        stage = Stage(before.size, judged.own.error, judged.found, judged.seconds, before.setting, state.fallback)
        return (*self._earlier(before), stage)

    def _evidence(self, splits: Sequence[Split], states: Sequence[State]) -> tuple[Evidence, float]:
        """Return the errors at the held-out samples of some splits, and the alpha of all fits.

        If the smallest alpha of the path is the best, all fits continue with smaller alphas, if they can.
        """
        fits = [state.outer.resolved for state in states]
        _, best = self._along(splits, fits, 0.0)
        if all(state.outer.refines(best) for state in states):
            fits = [state.outer.refined for state in states]
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
                valued = jet.judges[rest]
                errors[rest[valued]] = fit.network.errors(split.rest[valued])
        if n_others:  # the rows of the fit do not judge it
            errors[: len(jet)] = np.nan
        valued = np.concatenate([jet.judges, np.ones(n_others, bool)])
        is_value = None if jet.functionals is None or n_others else jet.has_value[jet.judges]
        return Evidence(errors[valued], weights[valued], is_value), alpha

    def _along(self, splits: Sequence[Split], fits: Sequence[ShallowFit], tolerance: float) -> tuple[LeftOut, float]:
        """Return the errors of all fits with one alpha: the largest near the best of the alphas that they share."""
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
    """Return the ratio of the error to the error of the best candidate, at the samples that judge both."""
    both = (evidence.judges & best.judges)[:, None]
    ours, others = (replace(each, errors=np.where(both, each.errors, np.nan)).error for each in (evidence, best))
    return ours / others if others > 0 else 0.0


def race_sizes(n_neurons: int, n_sizes: int = 3) -> list[int]:
    """Return the sizes of a race for a network of ``n_neurons``, each a third of the next.

    With fewer than 100 neurons, the best settings differ from the best settings of the full size.

    >>> race_sizes(2000), race_sizes(300), race_sizes(7)
    ([223, 669, 2000], [102, 300], [7])
    """
    sizes = stage_counts(n_neurons, GROWTH, int(np.ceil(n_neurons / GROWTH ** (n_sizes - 1))))
    return [size for size in sizes if size >= min(FIRST_SIZE, n_neurons)]


def fit_sampled(engines: Sequence[SampledEngine], watch: Callable[[Attempt], None] | None = None) -> ShallowFit:
    """Return the best sampled network of a race of the engines, which share their samples."""
    choice = decide(engines, engines[0].policy, watch)
    winner: SampledEngine = choice.winner.engine  # type: ignore[assignment]
    return replace(winner.fit(choice.winner, engines[0].task.jet), attempts=choice.attempts)


def fit_for_more_rows(
    engines: Sequence[SampledEngine], watch: Callable[[Attempt], None] | None = None
) -> tuple[ShallowFit, ...]:
    """Return the fit to a sample of many rows, and the fit of the last size if it may be better on all rows.

    A noisy sample may support fewer neurons than all rows do. If a smaller size has the smaller error, both fits are
    returned, the best on the sample first, unless its alpha is so small that there is no noise and more rows do not
    help.
    """
    choice = decide(engines, engines[0].policy, watch)
    judged = [choice.winner]
    if choice.winner.size < max(each.size for each in choice.last):
        judged.append(max(choice.last, key=lambda each: each.size))
    fits = [replace(each.engine.fit(each, engines[0].task.jet), attempts=choice.attempts) for each in judged]
    return tuple(fits[:1] if fits[0].precise else fits)
