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
from nurf.solvers.process import Process, ProcessPosterior, ProcessRows, row_total
from nurf.training._fit import Fit, Trial
from nurf.training._race import Rung, finite, race
from nurf.training._scales import (
    Criterion,
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
    prior: Prior = field(default_factory=Prior)


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
    diagonal : bool
        Whether a scale for each input may be learned.
    rank : int
        The number of directions of the linear map that may be learned; 0 for none.
    """

    name: str
    jet: Jet
    kernels: tuple[RadialKernel, ...]
    degree: int
    criterion: Criterion
    learning: Learning
    diagonal: bool = True
    rank: int = 0

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
        """Return evenly spaced samples, with values and without in the same proportion as in all data."""
        known = self.jet.has_value
        n_values = int(np.ceil(n_samples * np.mean(known)))  # at least one
        chosen = spaced(np.flatnonzero(known), n_values), spaced(np.flatnonzero(~known), n_samples - n_values)
        return self.jet[np.sort(np.concatenate(chosen))]

    @cached_property
    def sizes(self) -> list[int]:
        """The numbers of samples on which scales are learned."""
        n, per_sample = len(self.jet), row_total(self.jet) / len(self.jet)
        sizes = [max(self.learning.min_samples, int(rows / per_sample)) for rows in self.learning.rows]
        return [*(size for size in sizes if size < 0.7 * n), n]


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
    place : int
        The number of sizes that it was grown to.
    """

    contest: WideLane
    candidates: tuple[Candidate, ...] = ()
    place: int = 0
    output_errors: Array = field(default_factory=lambda: np.array([np.inf]))
    seconds: float = 0.0
    loss: Loss = VALUES_ONLY
    handicap: float = 1.0

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
        return finite(float(np.sqrt(np.sum(self.output_errors**2))))

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
        jet = contest.part(size)
        rows = ProcessRows.of(jet, contest.degree)
        n_steps = (*learning.steps, learning.last_steps)[min(self.place, len(learning.steps))]
        going = self.candidates or tuple(_first_candidates(contest, rows, jet))
        learned = [candidate.learned(rows, *contest.terms, n_steps) for candidate in going]
        if contest.rank and not self.candidates:
            mapped = _mapped(contest, jet, min(learned, key=_score).process(rows))
            learned = [*(learned if contest.diagonal else []), mapped.learned(rows, *contest.terms, n_steps)]
        learned.sort(key=_score)
        kept = tuple(candidate for candidate in learned if _score(candidate) <= _score(learned[0]) + learning.keep)
        errors = process_errors(learned[0].process(rows))
        seconds = time.perf_counter() - start
        return replace(self, candidates=kept, place=self.place + 1, output_errors=errors, seconds=seconds)

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


def _first_candidates(contest: WideLane, rows: ProcessRows, jet: Jet) -> Iterator[Candidate]:
    """Yield a candidate for each kernel, from the best of several starts."""
    learning, scales = contest.learning, InputScales(contest.units)
    for kernel in contest.kernels:
        started = [Candidate(kernel, scales, start) for start in starts(jet, contest.units, kernel)]
        for n_steps, n in ((0, learning.n_starts), (learning.trial_steps, 1)):
            started = [start.learned(rows, *contest.terms, n_steps) for start in started]
            started = sorted(started, key=_score)[:n]
        yield started[0]


def _mapped(contest: WideLane, jet: Jet, best: Process) -> Candidate:
    """Return a candidate with a linear map, to the leading directions of the gradients.

    Those that are not known are those of the best process with scales.
    """
    guess = best.network(jet.y.shape[1:]).jet(jet.X, ("gradients",))
    gradients = jet.fill_unknown(guess).derivative_rows(1)
    metric = gradient_map(gradients.reshape(-1, jet.n_features), contest.rank)
    return Candidate(best.kernel, LinearMap(contest.units, contest.rank), Hyperparameters(metric, best.noise))


def process_errors(process: Process) -> Array:
    """Return the root mean square errors of the values if their samples are left out, of shape (k,)."""
    values = process.rows.orders == 0
    weights, errors = process.rows.weights[values], process.left_out[0][values]
    return np.asarray(np.sqrt(weights @ errors**2 / weights.sum()))


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
    network, errors = process.network(jet.y.shape[1:]), arm.output_errors
    if held_out is not None:
        errors = _pooled(errors, process, network, held_out)
    optimism = np.ones_like(errors)
    found = best.found
    return WideFit(
        network=network,
        output_errors=errors,
        trials=outcome.trials,
        posterior=ProcessPosterior(network, jet, best.kernel, found.metric, found.noise, rows.degree, optimism),
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
