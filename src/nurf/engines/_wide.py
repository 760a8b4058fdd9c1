"""Infinitely wide networks: averages of processes with learned scales."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nurf._blocks import spaced
from nurf._memory import keep_freed_memory
from nurf._threads import all_threads
from nurf._types import Array, Index
from nurf.choosing import NO_LIMIT, POLICY, Attempt, Clock, Effort, Engine, Evidence, Judged, Policy, fold_masks
from nurf.engines._fit import Fit
from nurf.engines._learning import Candidate, Learning
from nurf.engines._scales import (
    LOWEST_SCALE,
    Hyperparameters,
    InputScales,
    LinearMap,
    gradient_map,
    short_starts,
    starts,
)
from nurf.engines._thinning import thinned
from nurf.jets import Jet
from nurf.kernels import KernelAverage, KernelNetwork, RadialKernel
from nurf.solvers import MIN_ERRORS
from nurf.solvers.process import (
    Criterion,
    HeldOutErrors,
    Process,
    ProcessPosterior,
    ProcessRows,
    row_total,
)

START_NOISE = 1e-6  # variance of the noise of a start, for data with little noise


@dataclass(frozen=True, eq=False)
class Average:
    """Processes with learned scales and noise, and their weights in an average.

    Parameters
    ----------
    members : tuple of Candidate
        The averaged kernels and maps, the largest weight first.
    weights : array of shape (m,)
    processes : tuple of Process
        The processes of the members, given the samples.
    held_out : HeldOutErrors
        Errors of the average at left-out samples.
    jet : Jet
        The samples.
    optimism : array of shape (k,)
        The factor by which leave-one-out errors in closed form are too small.
    """

    members: tuple[Candidate, ...]
    weights: Array
    processes: tuple[Process, ...]
    held_out: HeldOutErrors
    jet: Jet
    optimism: Array

    def __str__(self) -> str:
        more = len(self.members) - 1
        return f"{self.members[0]}" + (f", and {more} more" if more else "")

    @property
    def label(self) -> str:
        """The members in words, with their weights if there are several."""
        if len(self.members) == 1:
            return str(self.members[0])
        return "; ".join(f"{weight:.0%} {each}" for weight, each in zip(self.weights, self.members, strict=True))

    @cached_property
    def network(self) -> KernelAverage:
        """The mean of the processes given the samples."""
        shape = self.jet.y.shape[1:]
        return KernelAverage(tuple(process.network(shape) for process in self.processes), self.weights)


@dataclass(frozen=True, eq=False)
class WideEngine(Engine):
    """Infinitely wide networks for given data: one candidate, the average of kernels and maps.

    Parameters
    ----------
    jet : Jet
        The data, in scaled units.
    kernels : tuple of RadialKernel
        Kernels to choose from.
    degree : int
        Degree of the mean.
    criterion : Criterion
        The criterion that scales and noise minimise.
    learning : Learning
    max_rows : int
        The largest number of fitted values and derivatives (``thinned``); other samples judge.
    validation : Jet, optional
        Samples that judge instead of the fitted ones.
    diagonal : bool
        Whether maps with a scale for each input are candidates.
    rank : int
        The number of directions of a linear map as a candidate; 0 for none.
    data : str
        "all data" or "values alone".
    policy : Policy
    clock : Clock
    finish : callable, optional
        What is done with the fit in the end.
    transform, back
        See ``Engine``.
    """

    jet: Jet
    kernels: tuple[RadialKernel, ...]
    degree: int
    criterion: Criterion
    learning: Learning
    max_rows: int
    validation: Jet | None = None
    diagonal: bool = True
    rank: int = 0
    data: str = "all data"
    policy: Policy = POLICY
    clock: Clock = NO_LIMIT
    finish: Callable[[WideFit], WideFit] | None = None
    transform: str = ""
    back: Callable[[Evidence], Evidence] | None = None
    name = "wide"

    @property
    def first_step(self) -> int:  # type: ignore[override]
        """The first step of the schedule: after sampled networks, and one later with derivatives, which add rows."""
        return 2 if self.jet.known else 1

    @cached_property
    def _thinned(self) -> tuple[Jet, Index]:
        return thinned(self.jet, self.max_rows)

    @property
    def fitted(self) -> Jet:
        """The fitted samples."""
        return self._thinned[0]

    @cached_property
    def efforts(self) -> tuple[Effort, ...]:
        """Efforts: scales are learned from increasing numbers of samples."""
        return tuple(Effort(size) for size in self.learning.sizes(self.fitted))

    def candidates(self) -> Iterator[str]:
        """Yield the only candidate."""
        yield "average"

    def record(self, judged: Judged) -> Attempt:
        """Return the record of the candidate."""
        return Attempt(self.name, self.data, str(judged.found), judged.size, judged.error, judged.seconds)

    def judge(self, candidate: Hashable, size: int, before: Judged | None = None) -> Judged:
        """Return the candidate with scales learned from ``size`` samples, and its errors at left-out samples.

        If a part of the samples is fitted, the others judge. If all are fitted, each is left out in turn in closed
        form; with few rows for each scale, with scales that were learned without the fold of the sample.
        """
        self.clock.check()
        start, last = time.perf_counter(), self.efforts[-1]
        with self._threads():
            index = self._part(size)
            average = self._average(index, () if before is None else before.found.members, size == last.size)
        evidence = self._evidence(average, index)
        member, rows = average.members[0], average.processes[0].rows
        metric = None if self._knows_samples(member, rows) else member.found.metric
        return Judged(self, candidate, size, evidence, time.perf_counter() - start, average, metric)

    def again(self, fit: WideFit) -> Judged:
        """Return the kernels of an earlier fit given all samples, after further steps from its scales and noise.

        With more than ``learning.few_rows`` rows, scales and noise are kept. Errors are leave-one-out errors in closed
        form, times the factor of the earlier fit by which these are too small.
        """
        start, size = time.perf_counter(), len(self.fitted)
        members = [
            _as_candidate(network, noise, self.units, len(fit.posterior.rows))
            for network, noise in zip(fit.network.members, fit.posterior.noise, strict=True)
        ]
        with self._threads():
            index = self._part(size)
            jet = self.fitted[index]
            rows = ProcessRows.of(jet, self.degree)
            if len(rows) <= self.learning.few_rows:
                members = [self._learned(member, rows, self.learning.update_steps) for member in members]
            average = self._averaged(members, jet, rows, False)
        average = replace(average, held_out=average.held_out.times(fit.optimism), optimism=fit.optimism)
        evidence = self._evidence(average, index)
        return Judged(self, "average", size, evidence, time.perf_counter() - start, average)

    def fit(self, judged: Judged, given: Jet) -> WideFit:
        """Return the average as a fit, with its uncertainty."""
        average: Average = judged.found
        noise = np.stack([Hyperparameters(each.metric, each.noise).separate.noise for each in average.processes])
        variances = np.stack([process.variances for process in average.processes])
        degree = average.processes[0].rows.degree
        fit = WideFit(
            network=average.network,
            output_errors=judged.own.of_values.output_errors,
            posterior=ProcessPosterior(average.network, average.jet, noise, variances, degree, average.held_out),
            label=average.label,
            optimism=average.optimism,
        )
        return fit if self.finish is None else self.finish(fit)

    def _threads(self) -> AbstractContextManager[None]:
        """Return a context in which BLAS uses all threads if there are many rows, else one."""
        return all_threads() if row_total(self.fitted) >= self.learning.threaded_rows else nullcontext()

    @cached_property
    def units(self) -> Array:
        """The inverse standard deviations of the inputs, or 1 if they are constant."""
        deviations = self.jet.X.std(axis=0)
        return np.asarray(1 / np.where(deviations > 0, deviations, 1.0))

    def _part(self, n_samples: int) -> Index:
        """Return the indices of evenly spaced samples among the fitted samples, with and without values."""
        share = min(1.0, n_samples / len(self.fitted))
        valued = self.fitted.has_value
        chosen = [spaced(np.flatnonzero(kind), int(np.ceil(share * kind.sum()))) for kind in (valued, ~valued)]
        return np.sort(np.concatenate(chosen))

    def _learned(self, candidate: Candidate, rows: ProcessRows, n_steps: int) -> Candidate:
        return candidate.learned(rows, self.criterion, self.learning.prior, n_steps, self.clock)

    def _average(self, index: Index, members: Sequence[Candidate], final: bool) -> Average:
        """Return the average learned from some samples, from given members, or from all candidates without members."""
        keep_freed_memory()
        jet = self.fitted[index]
        rows = ProcessRows.of(jet, self.degree)
        learned = self._further(members, jet, rows) if members else self._first(jet, rows)
        return self._averaged(learned, jet, rows, final)

    def _averaged(self, learned: Sequence[Candidate], jet: Jet, rows: ProcessRows, final: bool) -> Average:
        """Return the average of the best candidates, with its errors at left-out samples."""
        learning = self.learning
        processes = [candidate.process(rows) for candidate in learned]
        errors = [each.error(process) for process, each in zip(processes, learned, strict=True)]
        sizes = learning.sizes(self.fitted)
        following = min((size for size in sizes if size > len(jet)), default=len(jet))
        order, weights = learning.averaged(np.array(errors), following * len(rows) // len(jet))
        kept = tuple(learned[i] for i in order)
        parts = closed = [HeldOutErrors.one_by_one(processes[i], jet.n_features) for i in order]
        if final and self._knows_samples(kept[0], rows):
            parts = self._crossed(kept, parts, jet, rows)
        if len(parts[0].errors) >= MIN_ERRORS:  # fewer errors are no evidence
            parts = [part.at_least(_residuals(processes[i], jet)) for i, part in zip(order, parts, strict=True)]
        held_out, expected = (HeldOutErrors.mixed(each, weights) for each in (parts, closed))
        held_out = held_out.with_deviations(expected)  # members differ more without a fold than in the final fit
        processes = [processes[i] for i in order]
        return Average(kept, weights, tuple(processes), held_out, jet, held_out.size_over(expected))

    def _further(self, members: Sequence[Candidate], jet: Jet, rows: ProcessRows) -> list[Candidate]:
        """Return members learned from few samples after further steps on more samples.

        Up to about ``learning.few_rows``, most steps are taken on some of the samples, with the geometric mean of both
        numbers of rows. With more rows than any part has, scales and noise are kept.
        """
        learning = self.learning
        if len(rows) > learning.rows[-1] / learning.part:
            return list(members)
        if len(rows) > learning.few_rows:
            return [self._learned(member, rows, learning.many_steps) for member in members]
        share = float(np.sqrt(members[0].n_rows / len(rows)))
        between = ProcessRows.of(jet[spaced(np.arange(len(jet)), int(np.ceil(share * len(jet))))], self.degree)
        for part, n_steps in (between, learning.between_steps), (rows, learning.steps):
            members = [self._learned(member, part, n_steps) for member in members]
        return list(members)

    def _first(self, jet: Jet, rows: ProcessRows) -> list[Candidate]:
        """Return all kernels and maps, learned from some samples.

        The first kernel is learned from the best start, with a common noise of all partial derivatives and with a noise
        for each of them. The better of both is the start for the other kernels.
        """
        learning, (n_starts, n_steps) = self.learning, self.learning.first(len(rows))
        first = self._learned(_started(self.kernels[0], self, rows, jet, n_starts), rows, n_steps)
        if jet.n_features > 1 and np.any(rows.orders == 1):
            first = _best((first, self._learned(first.of(separate=True), rows, n_steps)), rows)
        others = (first.of(kernel, first.separate) for kernel in self.kernels[1:])
        learned = [first, *(self._learned(candidate, rows, n_steps) for candidate in others)]
        if not self.rank:
            return learned
        errors = np.array([candidate.error(candidate.process(rows)) for candidate in learned])
        promising = [learned[i] for i in learning.averaged(errors, len(rows))[0]]
        mapped = [self._learned(_mapped(candidate, self, rows, jet), rows, n_steps) for candidate in promising]
        return [*learned, *mapped] if self.diagonal else mapped

    def _knows_samples(self, candidate: Candidate, rows: ProcessRows) -> bool:
        """Return whether scales were learned from so few values that they depend on single samples.

        Derivatives do not count, so that fits with and without derivatives are judged in the same way.
        """
        n_values = int(np.count_nonzero(rows.orders == 0))
        few = n_values < self.policy.rows_per_parameter * candidate.n_coordinates
        return few and n_values >= MIN_ERRORS and len(np.unique(rows.parts[0].points, axis=0)) > 1

    def _crossed(
        self, members: Sequence[Candidate], expected: Sequence[HeldOutErrors], jet: Jet, rows: ProcessRows
    ) -> list[HeldOutErrors]:
        """Return the leave-one-out errors of members, with scales learned without the fold of the sample.

        ``expected`` are the errors in closed form, with the scales of all samples. Scales are learned for the first
        member, and the errors of the other members are changed by the same factors. Reported errors were within 1/3..3
        of the true errors in 57% and 68% of the fits (with 10 samples for each input), as with scales learned for each
        member, but only in 49% if other kernels used converted scales.
        """
        folds = fold_masks(jet, self.policy.n_folds)
        if len(folds) == 1:  # all values are at one point
            return list(expected)
        processes = [self._relearned(members[0], jet[~fold]).process(rows) for fold in folds]
        parts = [HeldOutErrors.one_by_one(process, jet.n_features) for process in processes]
        crossed = HeldOutErrors.of_folds(parts, folds, rows.judging, expected[0])
        return [own.changed(expected[0], crossed) for own in expected]

    def _relearned(self, member: Candidate, jet: Jet) -> Candidate:
        """Return a candidate whose scales are learned from other data, from the best start.

        Scales learned from all data must not be a start, because they depend on the left-out samples. They are learned
        from as many rows as the first part has: they need not be the best scales.
        """
        share = self.learning.rows[0] / row_total(jet)
        jet = jet if share >= 1 else jet[spaced(np.arange(len(jet)), max(1, int(share * len(jet))))]
        rows, n_steps = ProcessRows.of(jet, self.degree), self.learning.refit_steps
        found = self._learned(_started(member.kernel, self, rows, jet, 1, member.separate), rows, n_steps)
        return self._learned(_mapped(found, self, rows, jet), rows, n_steps) if member.mapped else found

    def _evidence(self, average: Average, index: Index) -> Evidence:
        """Return the errors of an average at left-out samples.

        If all samples are fitted, each is left out in turn. If a part is fitted, the others judge, because the fitted
        samples are as far apart as possible, so that their leave-one-out errors are larger than typical errors.
        """
        jet, fitted = self.jet, self._thinned[1][index]
        errors, outside = np.full((len(jet), jet.y[:1].size), np.nan), jet.has_target.copy()
        outside[fitted] = False
        if outside.any():
            errors[outside] = average.network.errors(jet[outside])
        elif len(average.held_out.errors) >= MIN_ERRORS:
            errors[fitted[average.processes[0].rows.judging]] = average.held_out.errors
        others = None if self.validation is None else (self.validation, average.network.errors(self.validation))
        return Evidence.at(jet, errors, others)


def _residuals(process: Process, jet: Jet) -> Array:
    """Return the residuals of the process at the fitted values and sums, of shape (m, k)."""
    return process.network(jet.y.shape[1:]).errors(jet[process.rows.judging])


def _best(candidates: Iterable[Candidate], rows: ProcessRows) -> Candidate:
    """Return the candidate with the smallest error."""
    return min(candidates, key=lambda each: each.error(each.process(rows)))


def _as_candidate(network: KernelNetwork, noise: Array, units: Array, n_rows: int) -> Candidate:
    """Return a member of an earlier fit as a candidate."""
    metric, partials = network.metric, noise[1:-1]
    diagonal = np.array_equal(metric, np.diag(np.diag(metric)))
    if np.all(partials == partials[0]):
        noise = noise[[0, 1, -1]]
    scales = InputScales(units) if diagonal else LinearMap(units, len(metric))
    return Candidate(network.kernel, scales, Hyperparameters(metric, noise), np.inf, n_rows, 1, not diagonal)


def _score(candidate: Candidate) -> float:
    return candidate.score


def _started(
    kernel: RadialKernel, engine: WideEngine, rows: ProcessRows, jet: Jet, n_starts: int, separate: bool = False
) -> Candidate:
    """Return a candidate with a scale for each input, after a few steps from the best of several starts.

    Partial derivatives share one noise, or have ``separate`` ones. Short scales are kept only if the criterion is
    smaller by ``learning.evidence``: they explain noise as well as noise does.
    """

    def best(found: Iterable[Hyperparameters]) -> Candidate | None:
        scales = InputScales(engine.units)
        candidates = [Candidate(kernel, scales, start.separate if separate else start) for start in found]
        for n_steps, n in ((0, n_starts), (engine.learning.trial_steps * (n_starts > 1), 1)):
            candidates = [engine._learned(candidate, rows, n_steps) for candidate in candidates]
            candidates = sorted(candidates, key=_score)[:n]
        return candidates[0] if candidates else None

    long, short = best(starts(jet, engine.units, kernel)), best(short_starts(jet, engine.units))
    assert long is not None
    clear = short is not None and _score(short) < _score(long) - engine.learning.evidence
    return short if short is not None and clear else long


def _mapped(scaled: Candidate, engine: WideEngine, rows: ProcessRows, jet: Jet) -> Candidate:
    """Return a candidate with a linear map to the leading directions of the gradients, or with a full linear map.

    Unknown gradients are replaced by gradients of the process with scales. Starts are the map with the sizes of the
    gradients, and the same map with the norm of the scales, with the noise of the scales or more noise.
    """
    scales = LinearMap(engine.units, engine.rank)
    if engine.rank == jet.n_features:
        return replace(scaled, scales=scales, mapped=True, spread=None)
    guess = scaled.process(rows).network(jet.y.shape[1:]).jet(jet.X, ("gradients",))
    gradients = jet.fill_unknown(guess).derivative_rows(1)
    metric = gradient_map(gradients.reshape(-1, jet.n_features), engine.rank)
    matched = metric * np.linalg.norm(scaled.found.metric) / max(float(np.linalg.norm(metric)), LOWEST_SCALE)
    noises = (scaled.found.noise, np.maximum(scaled.found.noise, START_NOISE))
    found = [Hyperparameters(start, noise) for start in (matched, metric) for noise in noises]
    candidates = [replace(scaled, scales=scales, found=start, mapped=True, spread=None) for start in found]
    return min((engine._learned(candidate, rows, 0) for candidate in candidates), key=_score)


@dataclass(frozen=True, eq=False, kw_only=True)
class WideFit(Fit):
    """The average of processes with learned scales, as a network with infinitely many neurons.

    Attributes
    ----------
    network : KernelAverage
    posterior : ProcessPosterior
        The processes given the data, with the learned scales and noise.
    label : str
        The averaged kernels and maps.
    optimism : array of shape (k,)
        The factor by which leave-one-out errors in closed form are too small, because scales depend on the samples.
    """

    network: KernelAverage
    posterior: ProcessPosterior
    label: str
    optimism: Array
