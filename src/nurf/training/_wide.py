"""Infinitely wide networks: processes with learned scales, as arms of a race."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nurf._blocks import spaced
from nurf._types import Array
from nurf.jets import Jet
from nurf.kernels import KernelNetwork, RadialKernel
from nurf.solvers import VALUES_ONLY, Loss
from nurf.solvers._coverage import MIN_ERRORS
from nurf.solvers.process import Criterion, HeldOutErrors, Process, ProcessPosterior, ProcessRows, row_total
from nurf.training._crossfit import assign_folds
from nurf.training._fit import Fit, Trial
from nurf.training._learning import Candidate, Learning
from nurf.training._race import Rung, finite, race
from nurf.training._scales import (
    Hyperparameters,
    InputScales,
    LinearMap,
    Prior,
    gradient_map,
    starts,
)


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

    def held_out(self, best: Candidate) -> HeldOutErrors:
        """Return the errors of a candidate at samples that its refits do not see."""
        fold_of = assign_folds(self.jet, self.learning.n_folds, np.random.default_rng(self.learning.n_folds))
        folds = [fold_of == fold for fold in range(fold_of.max() + 1)]
        processes = [self.refit(best, self.jet[~fold]) for fold in folds]
        return HeldOutErrors.by_refits(processes, [self.jet[fold] for fold in folds])

    def refit(self, best: Candidate, jet: Jet) -> Process:
        """Return a process whose scales are learned on other data, from the best start there."""
        rows = ProcessRows.of(jet, self.degree)
        start = _started(best.kernel, self, rows, jet)
        if best.mapped:
            start = _mapped(self, jet, start.process(rows))
        return start.learned(rows, *self.terms, self.learning.refit_steps).process(rows)


@dataclass(frozen=True, eq=False)
class WideArm:
    """A process whose scales and noise are learned on more and more samples, as an arm of a race.

    Parameters
    ----------
    contest : WideLane
    candidates : tuple of Candidate
        Kernels and maps that are still in question, the best first.
    """

    contest: WideLane
    candidates: tuple[Candidate, ...] = ()
    process: Process | None = None
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
    def regularity(self) -> tuple[float, ...]:
        """More data first."""
        return (len(self.contest.jet.known),)

    @property
    def error(self) -> float:
        """The estimated error, outputs added up."""
        assert self.held_out is not None
        return finite(float(np.sqrt(np.sum(self.held_out.output_errors**2))))

    @property
    def handicap(self) -> float:
        """That of the lane."""
        return self.contest.handicap

    @property
    def best(self) -> Candidate:
        """The candidate of the smallest criterion."""
        return self.candidates[0]

    def __str__(self) -> str:
        return str(self.best)

    def grown(self, size: int) -> WideArm:
        """Return the arm with scales learned on ``size`` samples, and its errors at samples that are held out."""
        start = time.perf_counter()
        contest, learning = self.contest, self.contest.learning
        jet = contest.part(size)
        rows = ProcessRows.of(jet, contest.degree)
        n_steps = (*learning.steps, learning.last_steps)[min(contest.sizes.index(size), len(learning.steps))]
        going = self.candidates or [_started(kernel, contest, rows, jet) for kernel in contest.kernels]
        going = _near_best(going, learning.trial_keep)
        learned = [candidate.learned(rows, *contest.terms, n_steps) for candidate in going]
        if contest.rank and not self.candidates:
            mapped = _mapped(contest, jet, min(learned, key=_score).process(rows))
            learned = [*(learned if contest.diagonal else []), mapped.learned(rows, *contest.terms, n_steps)]
        kept = _near_best(learned, learning.keep)
        process = kept[0].process(rows)
        refitted = size == contest.sizes[-1] and contest.refits
        held_out = contest.held_out(kept[0]) if refitted else HeldOutErrors.one_by_one(process, jet.n_features)
        seconds = time.perf_counter() - start
        return replace(self, candidates=kept, process=process, held_out=held_out, seconds=seconds)

    def variants(self) -> Iterator[WideArm]:
        """Yield nothing: kernels are compared inside an arm, by their likelihood."""
        yield from ()

    def refits(self) -> Iterator[WideArm]:
        """Yield nothing."""
        yield from ()

    def branches(self, many: bool) -> Iterator[WideArm]:
        """Yield the arm, to be grown further."""
        yield self


def _score(candidate: Candidate) -> float:
    return candidate.score


def _near_best(candidates: Sequence[Candidate], distance: float) -> tuple[Candidate, ...]:
    """Return the candidates whose score is within a distance of the smallest, the best first."""
    ordered = sorted(candidates, key=_score)
    return tuple(candidate for candidate in ordered if candidate.score <= ordered[0].score + distance)


def _started(kernel: RadialKernel, contest: WideLane, rows: ProcessRows, jet: Jet) -> Candidate:
    """Return a candidate with a scale for each input, after a few steps from the best of several starts."""
    scales, learning = InputScales(contest.units), contest.learning
    candidates = [Candidate(kernel, scales, start) for start in starts(jet, contest.units, kernel)]
    for n_steps, n in ((0, learning.n_starts), (learning.trial_steps, 1)):
        candidates = [candidate.learned(rows, *contest.terms, n_steps) for candidate in candidates]
        candidates = sorted(candidates, key=_score)[:n]
    return candidates[0]


def _mapped(contest: WideLane, jet: Jet, best: Process) -> Candidate:
    """Return a candidate with a linear map: to the leading directions of the gradients, or any map if they are all.

    Gradients that are not known are those of the best process with scales.
    """
    scales = LinearMap(contest.units, contest.rank)
    if contest.rank == jet.n_features:
        return Candidate(best.kernel, scales, Hyperparameters(best.metric, best.noise), mapped=True)
    guess = best.network(jet.y.shape[1:]).jet(jet.X, ("gradients",))
    gradients = jet.fill_unknown(guess).derivative_rows(1)
    metric = gradient_map(gradients.reshape(-1, jet.n_features), contest.rank)
    return Candidate(best.kernel, scales, Hyperparameters(metric, best.noise), mapped=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class WideFit(Fit):
    """A process with learned scales, as a network with infinitely many neurons.

    Attributes
    ----------
    network : KernelNetwork
    posterior : ProcessPosterior
        The process given the data, with what was learned.
    label : str
        What was chosen.
    """

    network: KernelNetwork
    posterior: ProcessPosterior
    label: str


def fit_wide(
    lanes: Sequence[WideLane], held_out: Jet | None = None, watch: Callable[[Trial], None] | None = None
) -> WideFit:
    """Return the process of the smallest estimated error: with derivatives, or to the values alone.

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
    rungs = [Rung(rival=np.inf)] * len(sizes)
    outcome = race([WideArm(lane) for lane in lanes], sizes, rungs, improvement=-np.inf, margin=0.02, watch=watch)
    arm = outcome.winners[-1]
    jet, best, process = arm.contest.jet, arm.best, arm.process
    assert process is not None
    assert arm.held_out is not None
    network, errors = process.network(jet.y.shape[1:]), arm.held_out.output_errors
    if held_out is not None:
        errors = _pooled(errors, process, network, held_out)
    terms = (best.kernel, best.found.metric, best.found.noise, process.rows.degree, arm.held_out)
    return WideFit(
        network=network,
        output_errors=errors,
        trials=outcome.trials,
        posterior=ProcessPosterior(network, jet, *terms),
        label=str(best),
    )


def _pooled(errors: Array, process: Process, network: KernelNetwork, held_out: Jet) -> Array:
    """Return the errors over the samples of the fit and those that were held out."""
    weights, other = process.rows.weights[process.rows.orders == 0].sum(), held_out.weights(0)
    squares = other @ (network.value(held_out.X) - held_out.y).reshape(len(other), -1) ** 2
    return np.asarray(np.sqrt((weights * errors**2 + squares) / (weights + other.sum())))
