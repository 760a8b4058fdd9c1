"""Infinitely wide networks: averages of processes with learned scales, as arms of a race."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from nurf._blocks import spaced
from nurf._threads import threads_for
from nurf._types import Array
from nurf.jets import Jet
from nurf.kernels import KernelAverage, RadialKernel
from nurf.solvers import VALUES_ONLY, Loss
from nurf.solvers._coverage import MIN_ERRORS
from nurf.solvers.process import (
    Criterion,
    HeldOutErrors,
    Process,
    ProcessPosterior,
    ProcessRows,
    row_total,
)
from nurf.training._crossfit import assign_folds
from nurf.training._fit import Fit, Trial
from nurf.training._learning import Candidate, Learning
from nurf.training._race import Rung, finite, race
from nurf.training._scales import (
    LOWEST_SCALE,
    Hyperparameters,
    InputScales,
    LinearMap,
    Prior,
    gradient_map,
    starts,
)

START_NOISE = 1e-6  # variance of a start for data whose noise is small


@dataclass(frozen=True, eq=False)
class WideLane:
    """What a process may be fitted to and how.

    Parameters
    ----------
    name : str
    jet : Jet
        The data, in scaled units.
    kernels : tuple of RadialKernel
        Kernels to choose from.
    degree : int
        Degree of the mean.
    criterion : callable
        What is minimised.
    learning : Learning
    sizes : sequence of int
        The numbers of samples on which scales are learned.
    diagonal : bool
        Whether a scale for each input may be learned.
    rank : int
        The number of directions of the linear map that may be learned; 0 for none.
    handicap : float
        Factor of the errors in comparisons with other lanes.
    """

    name: str
    jet: Jet
    kernels: tuple[RadialKernel, ...]
    degree: int
    criterion: Criterion
    learning: Learning
    sizes: Sequence[int]
    diagonal: bool = True
    rank: int = 0
    handicap: float = 1.0

    @cached_property
    def units(self) -> Array:
        """The inverse standard deviations of the inputs, or 1 if they are constant."""
        deviations = self.jet.X.std(axis=0)
        return np.asarray(1 / np.where(deviations > 0, deviations, 1.0))

    @property
    def terms(self) -> tuple[Criterion, Prior]:
        """What is minimised."""
        return self.criterion, self.learning.prior

    def part(self, n_samples: int) -> Jet:
        """Return evenly spaced samples, with and without values."""
        share = min(1.0, n_samples / len(self.jet))
        valued = self.jet.has_value
        chosen = [spaced(np.flatnonzero(kind), int(np.ceil(share * kind.sum()))) for kind in (valued, ~valued)]
        return self.jet[np.sort(np.concatenate(chosen))]

    @property
    def refits(self) -> bool:
        """Whether errors are those of refits on folds, or of samples that are left out in closed form."""
        few_rows = row_total(self.jet) <= self.learning.max_refit_rows
        return few_rows and int(np.count_nonzero(self.jet.has_value)) >= MIN_ERRORS

    def held_out(self, candidate: Candidate, expected: HeldOutErrors) -> HeldOutErrors:
        """Return the errors of a candidate at samples that its refits do not see.

        Their standard deviations are those that are ``expected`` by the process of all samples, one by one: these are
        to be calibrated, and a refit may be less certain.
        """
        fold_of = assign_folds(self.jet, self.learning.n_folds, np.random.default_rng(self.learning.n_folds))
        folds = [np.flatnonzero(fold_of == fold) for fold in range(fold_of.max() + 1)]
        processes = [self._refit(candidate, self.jet[fold_of != fold]) for fold in range(len(folds))]
        found = HeldOutErrors.by_refits(processes, [self.jet[fold] for fold in folds])
        return found.expected(np.concatenate(folds), self.jet.has_value, expected)

    def _refit(self, candidate: Candidate, jet: Jet) -> Process:
        """Return a process whose scales are learned on other data, from the best start there.

        What was learned on all data must not be a start: it knows the samples that are left out.
        """
        rows = ProcessRows.of(jet, self.degree)
        start = _started(candidate.kernel, self, rows, jet, self.learning.refit_starts, candidate.separate)
        found = start.learned(rows, *self.terms, self.learning.refit_steps)
        if candidate.mapped:
            found = _mapped(found, self, rows, jet).learned(rows, *self.terms, self.learning.refit_steps)
        return found.process(rows)


@dataclass(frozen=True, eq=False)
class WideArm:
    """Processes whose scales and noise are learned on more and more samples, and averaged: an arm of a race.

    Parameters
    ----------
    contest : WideLane
    members : tuple of Candidate
        Kernels and maps that are averaged, that of the largest weight first.
    weights : array of shape (m,)
    processes : tuple of Process
        The same, given the samples.
    held_out : HeldOutErrors
        The errors of the average.
    """

    contest: WideLane
    members: tuple[Candidate, ...] = ()
    weights: Array = field(default_factory=lambda: np.empty(0))
    processes: tuple[Process, ...] = ()
    held_out: HeldOutErrors | None = None
    seconds: float = 0.0
    loss: Loss = VALUES_ONLY

    @property
    def key(self) -> Hashable:
        """The lane."""
        return self.contest.name

    @property
    def lane(self) -> str:
        """The name of the lane."""
        return self.contest.name

    @property
    def family(self) -> Hashable:
        """The lane."""
        return self.contest.name

    @property
    def kind(self) -> str:
        """The same for all."""
        return "process"

    @property
    def regularity(self) -> tuple[float, ...]:
        """More data first."""
        return (len(self.contest.jet.known),)

    @property
    def error(self) -> float:
        """The estimated error, outputs added up."""
        assert self.held_out is not None
        return _total(self.held_out)

    @property
    def handicap(self) -> float:
        """That of the lane."""
        return self.contest.handicap

    def __str__(self) -> str:
        more = len(self.members) - 1
        return f"{self.members[0]}" + (f", and {more} more" if more else "")

    @property
    def label(self) -> str:
        """All members, with their weights if there are several."""
        if len(self.members) == 1:
            return str(self.members[0])
        return "; ".join(f"{weight:.0%} {each}" for weight, each in zip(self.weights, self.members, strict=True))

    def grown(self, size: int) -> WideArm:
        """Return the arm with scales learned on ``size`` samples, and its errors at samples that are held out."""
        start = time.perf_counter()
        contest, following = self.contest, [*self.contest.sizes, size][self.contest.sizes.index(size) + 1]
        jet = contest.part(size)
        rows = ProcessRows.of(jet, contest.degree)
        n_steps = contest.learning.part_steps
        if size == following:
            n_steps = contest.learning.steps[contest.learning.stage(len(rows))]
        learned = self._learned(jet, rows, n_steps)
        processes = [candidate.process(rows) for candidate in learned]
        held_out = [HeldOutErrors.one_by_one(process, jet.n_features) for process in processes]
        errors = [each.error(process) for process, each in zip(processes, learned, strict=True)]
        order, weights = contest.learning.averaged(np.array(errors), following * len(rows) // size)
        members = tuple(learned[i] for i in order)
        refitted = size == following and contest.refits
        parts = [held_out[i] for i in order]
        if refitted:
            parts = [contest.held_out(*pair) for pair in zip(members, parts, strict=True)]
        if len(parts[0].errors) >= MIN_ERRORS:  # fewer errors tell nothing
            parts = [part.at_least(_residuals(processes[i], jet)) for i, part in zip(order, parts, strict=True)]
        return replace(
            self,
            members=members,
            weights=weights,
            processes=tuple(processes[i] for i in order),
            held_out=HeldOutErrors.mixed(parts, weights),
            seconds=time.perf_counter() - start,
        )

    def _learned(self, jet: Jet, rows: ProcessRows, n_steps: int) -> list[Candidate]:
        """Return what is learned on some samples: by the members, or by all candidates at first."""
        contest = self.contest
        n_starts = contest.learning.n_starts[contest.learning.stage(len(rows))]
        going = self.members or [_started(kernel, contest, rows, jet, n_starts) for kernel in contest.kernels]
        learned = [candidate.learned(rows, *contest.terms, n_steps) for candidate in going]
        if self.members:
            return learned
        mapped = [_mapped(candidate, contest, rows, jet) for candidate in learned] if contest.rank else []
        mapped = [candidate.learned(rows, *contest.terms, n_steps) for candidate in mapped]
        if mapped and not contest.diagonal:
            return mapped
        if jet.n_features > 1 and np.any(rows.orders == 1):
            started = [_started(kernel, contest, rows, jet, n_starts, separate=True) for kernel in contest.kernels]
            separate = [candidate.learned(rows, *contest.terms, n_steps) for candidate in started]
            learned = [_with_noise(*pair, rows) for pair in zip(learned, separate, strict=True)]
        return [*learned, *mapped]

    def variants(self) -> Iterator[WideArm]:
        """Yield nothing: kernels are compared inside an arm."""
        yield from ()

    def refits(self) -> Iterator[WideArm]:
        """Yield nothing."""
        yield from ()

    def branches(self, many: bool) -> Iterator[WideArm]:
        """Yield the arm, to be grown further."""
        yield self


def _total(held_out: HeldOutErrors) -> float:
    """Return the error of all outputs together."""
    return finite(float(np.sqrt(np.sum(held_out.output_errors**2))))


def _residuals(process: Process, jet: Jet) -> Array:
    """Return the errors of the process at the values that it was fitted to, of shape (m, k)."""
    valued = jet.with_values()
    return np.asarray(valued.y - process.network(jet.y.shape[1:]).value(valued.X)).reshape(len(valued), -1)


def _with_noise(common: Candidate, separate: Candidate, rows: ProcessRows) -> Candidate:
    """Return the candidate of the smaller error, with one noise of all partial derivatives or with one for each.

    The first is a special case of the second. If the criterion of the second is larger, learning did not come so far,
    and its noise may be far from that of the data whatever its error.
    """
    if separate.criterion > common.criterion:
        return common
    return min((common, separate), key=lambda each: each.error(each.process(rows)))


def _score(candidate: Candidate) -> float:
    return candidate.score


def _started(
    kernel: RadialKernel, contest: WideLane, rows: ProcessRows, jet: Jet, n_starts: int, separate: bool = False
) -> Candidate:
    """Return a candidate with a scale for each input, after a few steps from the best of several starts.

    Partial derivatives have the same noise, or ``separate`` ones.
    """
    scales = InputScales(contest.units)
    found = [start.separate if separate else start for start in starts(jet, contest.units, kernel)]
    candidates = [Candidate(kernel, scales, start) for start in found]
    for n_steps, n in ((0, n_starts), (contest.learning.trial_steps * (n_starts > 1), 1)):
        candidates = [candidate.learned(rows, *contest.terms, n_steps) for candidate in candidates]
        candidates = sorted(candidates, key=_score)[:n]
    return candidates[0]


def _mapped(scaled: Candidate, contest: WideLane, rows: ProcessRows, jet: Jet) -> Candidate:
    """Return a candidate with a linear map: to the leading directions of the gradients, or any map if they are all.

    Gradients that are not known are those of the process with scales. It starts with the lengths of the gradients, or
    with these times the factor for which the map is as large as the scales; with the noise of the scales, or more.
    """
    scales = LinearMap(contest.units, contest.rank)
    if contest.rank == jet.n_features:
        return replace(scaled, scales=scales, mapped=True)
    guess = scaled.process(rows).network(jet.y.shape[1:]).jet(jet.X, ("gradients",))
    gradients = jet.fill_unknown(guess).derivative_rows(1)
    metric = gradient_map(gradients.reshape(-1, jet.n_features), contest.rank)
    matched = metric * np.linalg.norm(scaled.found.metric) / max(float(np.linalg.norm(metric)), LOWEST_SCALE)
    noises = (scaled.found.noise, np.maximum(scaled.found.noise, START_NOISE))
    found = [Hyperparameters(start, noise) for start in (matched, metric) for noise in noises]
    candidates = [replace(scaled, scales=scales, found=start, mapped=True) for start in found]
    return min((candidate.learned(rows, *contest.terms, 0) for candidate in candidates), key=_score)


@dataclass(frozen=True, eq=False, kw_only=True)
class WideFit(Fit):
    """The average of processes with learned scales, as a network with infinitely many neurons.

    Attributes
    ----------
    network : KernelAverage
    posterior : ProcessPosterior
        The processes given the data, with what was learned.
    label : str
        What was averaged.
    """

    network: KernelAverage
    posterior: ProcessPosterior
    label: str


def fit_wide(
    lanes: Sequence[WideLane], held_out: Jet | None = None, watch: Callable[[Trial], None] | None = None
) -> WideFit:
    """Return the average of processes of the smallest estimated error: with derivatives, or to the values alone.

    Parameters
    ----------
    lanes : sequence of WideLane
        What to choose from, with the same samples.
    held_out : Jet, optional
        Samples on which, together with the others, the error is estimated in the end.
    watch : callable, optional
        Called with each trial.
    """
    sizes = lanes[0].sizes
    rungs = [Rung(rival=lanes[0].learning.rival)] * len(sizes)
    with threads_for(max(row_total(lane.jet) for lane in lanes), lanes[0].learning.threaded_rows):
        outcome = race([WideArm(lane) for lane in lanes], sizes, rungs, improvement=-np.inf, margin=0.02, watch=watch)
    arm = outcome.winners[-1]
    jet, rows = arm.contest.jet, arm.processes[0].rows
    assert arm.held_out is not None
    network = KernelAverage(tuple(process.network(jet.y.shape[1:]) for process in arm.processes), arm.weights)
    errors = arm.held_out.output_errors
    if held_out is not None:
        errors = _pooled(errors, rows, network, held_out)
    noise = np.stack([Hyperparameters(each.metric, each.noise).separate.noise for each in arm.processes])
    variances = np.stack([process.variances for process in arm.processes])
    return WideFit(
        network=network,
        output_errors=errors,
        trials=outcome.trials,
        posterior=ProcessPosterior(network, jet, noise, variances, rows.degree, arm.held_out),
        label=arm.label,
    )


def _pooled(errors: Array, rows: ProcessRows, network: KernelAverage, held_out: Jet) -> Array:
    """Return the errors over the samples of the fit and those that were held out."""
    weights, other = rows.weights[rows.orders == 0].sum(), held_out.weights(0)
    squares = other @ (network.value(held_out.X) - held_out.y).reshape(len(other), -1) ** 2
    return np.asarray(np.sqrt((weights * errors**2 + squares) / (weights + other.sum())))
