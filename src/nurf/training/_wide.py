"""Infinitely wide networks: processes with learned scales, as arms of a race."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from nurf._blocks import spaced
from nurf._types import Array, Index
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.kernels import KernelNetwork, RadialKernel
from nurf.solvers import VALUES_ONLY, Loss
from nurf.solvers._coverage import MIN_ERRORS
from nurf.solvers.process import Criterion, HeldOut, Process, ProcessPosterior, ProcessRows, row_total
from nurf.training._crossfit import assign_folds
from nurf.training._fit import Fit, Trial
from nurf.training._race import Rung, finite, race
from nurf.training._scales import (
    Hyperparameters,
    InputScales,
    LinearMap,
    Prior,
    Scales,
    gradient_map,
    learn,
    starts,
)


@dataclass(frozen=True)
class Learning:
    """The numbers of how scales and noise are learned.

    Parameters
    ----------
    rows : tuple of int
        Scales are learned on parts of the data with about so many rows first, from the smallest to all: a step costs
        the third power of the number of rows.
    min_samples : int
        The smallest part has at least so many samples.
    steps : tuple of int
        Steps of L-BFGS on each of these parts, ...
    last_steps : int
        ... and on all data, if they are more.
    trial_steps : int
        Steps after which the best of several starts is chosen.
    n_starts : int
        Number of starts that are tried, those of the smallest criterion.
    keep : float
        Kernels whose criterion is within this distance of the smallest go on to the next part.
    energy : float
        The share of the mean square of the gradients that the directions of a linear map hold.
    max_mapped : int
        Up to so many inputs a linear map is tried in any case; with more, if half as many directions suffice.
    max_refit_rows : int
        Up to so many rows, errors are those of refits whose scales are learned without the samples; above, scales
        depend little on single samples.
    n_folds : int
        Number of these refits, ...
    refit_steps : int
        ... and steps of L-BFGS of each.
    belief : float
        Over the number of samples: the share by which the values alone must be better to win.
    prior : Prior
    """

    rows: tuple[int, ...] = (300, 1000)
    min_samples: int = 20
    steps: tuple[int, ...] = (50, 15)
    last_steps: int = 5
    trial_steps: int = 8
    n_starts: int = 2
    keep: float = 10.0
    energy: float = 0.9999
    max_mapped: int = 3
    max_refit_rows: int = 250
    n_folds: int = 7
    refit_steps: int = 30
    belief: float = 40.0
    prior: Prior = field(default_factory=Prior)

    def sizes(self, jet: Jet) -> list[int]:
        """Return the numbers of samples on which scales are learned."""
        n, per_sample = len(jet), row_total(jet) / len(jet)
        sizes = [max(self.min_samples, int(rows / per_sample)) for rows in self.rows]
        return [*(size for size in sizes if size < 0.7 * n), n]

    def handicap(self, n_values: int) -> float:
        """Return by how much the values alone must be better to win, for errors at so many samples.

        Derivatives that come with the data are believed: noise of theirs is learned, and errors at few samples may be
        small by luck, where only the derivatives know that the function varies between the samples.
        """
        return 1 + self.belief / n_values


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
        """Return evenly spaced samples."""
        return self.jet[spaced(np.arange(len(self.jet)), n_samples)]

    @property
    def refits(self) -> bool:
        """Whether errors are those of refits on folds, or of samples that are left out in closed form."""
        few_rows = row_total(self.jet) <= self.learning.max_refit_rows
        return few_rows and int(np.count_nonzero(self.jet.has_value)) >= MIN_ERRORS

    def held_out(self, best: Candidate) -> HeldOut:
        """Return the errors of a candidate at samples that it does not see."""
        if not self.refits:
            return HeldOut.one_by_one(best.process(ProcessRows.of(self.jet, self.degree)), self.jet.n_features)
        fold_of = assign_folds(self.jet, self.learning.n_folds, np.random.default_rng(self.learning.n_folds))
        folds = [fold_of == fold for fold in range(fold_of.max() + 1)]
        processes = [self.refit(best, self.jet[~fold]) for fold in folds]
        return HeldOut.by_refits(processes, [self.jet[fold] for fold in folds])

    def refit(self, best: Candidate, jet: Jet) -> Process:
        """Return a process whose scales are learned on other data, from the best start there."""
        rows = ProcessRows.of(jet, self.degree)
        start = replace(_started(best.kernel, self, rows, jet), scales=best.scales)
        return start.learned(rows, *self.terms, self.learning.refit_steps).process(rows)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel and a family of linear maps, with what was learned for them."""

    kernel: RadialKernel
    scales: Scales
    found: Hyperparameters
    criterion: float = np.inf
    n_rows: int = 1

    def __str__(self) -> str:
        return f"{type(self.kernel).__name__} kernel, {self.scales}"

    def learned(self, rows: ProcessRows, criterion: Criterion, prior: Prior, n_steps: int) -> Candidate:
        """Return the candidate after some steps on the rows."""
        found, value = learn(rows, self.kernel, self.scales, self.found, criterion, prior, n_steps)
        return replace(self, found=found, criterion=value, n_rows=len(rows))

    @property
    def score(self) -> float:
        """The criterion, plus half the logarithm of the number of rows for each parameter (Schwarz 1978)."""
        return self.criterion + float(np.log(self.n_rows)) / 2 * len(self.scales.coordinates(self.found.metric))

    def process(self, rows: ProcessRows) -> Process:
        """Return the process given the rows."""
        return Process(rows, self.kernel, self.found.metric, self.found.noise)


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
    held_out: HeldOut | None = None
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
        """Return the arm with scales learned on ``size`` samples, and its leave-one-out error there."""
        start = time.perf_counter()
        contest, learning = self.contest, self.contest.learning
        jet, last = contest.part(size), size == contest.sizes[-1]
        rows = ProcessRows.of(jet, contest.degree)
        place = contest.sizes.index(size)
        n_steps = learning.last_steps if place >= len(learning.steps) else learning.steps[place]
        going = self.candidates or tuple(_started(kernel, contest, rows, jet) for kernel in contest.kernels)
        learned = [candidate.learned(rows, *contest.terms, n_steps) for candidate in going]
        if contest.rank and not self.candidates:
            mapped = _mapped(contest, jet, min(learned, key=_score).process(rows))
            learned = [*(learned if contest.diagonal else []), mapped.learned(rows, *contest.terms, n_steps)]
        learned.sort(key=_score)
        kept = tuple(candidate for candidate in learned if _score(candidate) <= _score(learned[0]) + learning.keep)
        process = kept[0].process(rows)
        held_out = contest.held_out(kept[0]) if last else HeldOut.one_by_one(process, jet.n_features)
        seconds = time.perf_counter() - start
        return replace(self, candidates=kept, held_out=held_out, seconds=seconds)

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

    The gradients are those of the best process with scales, if none are given.
    """
    scales = LinearMap(contest.units, contest.rank)
    if contest.rank == jet.n_features:
        return Candidate(best.kernel, scales, Hyperparameters(best.metric, best.noise))
    known = "gradients" in jet.known
    gradients = jet.derivative_rows(1) if known else best.network(jet.y.shape[1:]).gradient(jet.X)
    metric = gradient_map(gradients.reshape(-1, jet.n_features), contest.rank)
    return Candidate(best.kernel, scales, Hyperparameters(metric, best.noise))


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
    jet, best = arm.contest.jet, arm.best
    rows = ProcessRows.of(jet, arm.contest.degree)
    process = best.process(rows)
    assert arm.held_out is not None
    network, errors = process.network(jet.y.shape[1:]), arm.held_out.output_errors
    if held_out is not None:
        errors = _pooled(errors, process, network, held_out)
    found = best.found
    return WideFit(
        network=network,
        output_errors=errors,
        trials=outcome.trials,
        posterior=ProcessPosterior(network, jet, best.kernel, found.metric, found.noise, rows.degree, arm.held_out),
        label=str(best),
    )


def _pooled(errors: Array, process: Process, network: KernelNetwork, held_out: Jet) -> Array:
    """Return the errors over the samples of the fit and those that were held out."""
    weights, other = process.rows.weights[process.rows.orders == 0].sum(), held_out.weights(0)
    squares = other @ (network.value(held_out.X) - held_out.y).reshape(len(other), -1) ** 2
    return np.asarray(np.sqrt((weights * errors**2 + squares) / (weights + other.sum())))


def thinned(jet: Jet, max_rows: int) -> Jet:
    """Return a jet with at most ``max_rows`` rows: the derivatives of samples that are close to others are left out.

    Samples whose derivatives are kept are chosen one after the other, each as far as possible from those before.
    """
    total = row_total(jet)
    if total <= max_rows:
        return jet
    n_values, known = int(np.count_nonzero(jet.has_value)), np.zeros(len(jet), bool)
    for order in DERIVATIVE_KINDS:
        known |= jet.has_derivative(order)
    with_derivatives = np.flatnonzero(known)
    n = int((max_rows - n_values) * len(with_derivatives) / (total - n_values))
    kept = np.zeros(len(jet), bool)
    kept[with_derivatives[_spread(jet.X[with_derivatives], n)]] = True
    part = replace(jet, derivative_weight=np.where(kept, jet.weights(1), 0.0))
    return part[kept | jet.has_value]


def _spread(X: Array, n: int) -> Index:
    """Return the indices of ``n`` points, each as far as possible from those before, the first near the middle."""
    distances = np.full(len(X), np.inf)
    chosen = np.empty(n, np.int64)
    place = int(np.argmin(np.sum((X - X.mean(axis=0)) ** 2, axis=1)))
    for k in range(n):
        chosen[k] = place
        distances = np.minimum(distances, np.sum((X - X[place]) ** 2, axis=1))
        place = int(np.argmax(distances))
    return chosen
