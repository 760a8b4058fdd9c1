"""Sampled networks: the sum of the normal equations of all blocks, and errors at a sample of the rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from operator import add
from typing import Any, ClassVar

import numpy as np

from nurf._scaling import Scaling
from nurf._types import Array, Index, Precision
from nurf.blockwise._driver import PASS_SHARE, Blocks, with_errors_at
from nurf.choosing import Clock, TimeUpError
from nurf.data import HELD_ROWS, Block, Reservoir, Tree, Units, read_block, uniform_numbers, weighted
from nurf.engines import FIRST_SIZE, CrossFit, ShallowFit, fit_ridge, warn_if_long, watch_blocks
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers import LeaveOneOut, Loss, Rule
from nurf.solvers.ridge import TOLERANCE, HeldOut, NormalEquations, Posterior, PrimalRidge

SOLVING = 12  # rows for each neuron that take as long as the solution: 3.7 s for 2400 neurons; 200,000 rows take 26 s
MANY_ROWS = 20  # rows for each neuron from which a smaller alpha has no disadvantage
ALPHA_TOLERANCE = 0.005  # with many rows, the largest alpha whose error is within this share of the smallest is chosen


@dataclass(frozen=True, eq=False)
class Accumulation:
    """Normal equations, and their number of rows.

    Parameters
    ----------
    n_rows : int
        Number of rows of positive weight.
    equations : tuple of NormalEquations
        One for each network.
    """

    n_rows: int
    equations: tuple[NormalEquations, ...]

    def __add__(self, other: Accumulation) -> Accumulation:
        """Return the normal equations of all rows of both."""
        pairs = zip(self.equations, other.equations, strict=True)
        return Accumulation(self.n_rows + other.n_rows, tuple(mine + more for mine, more in pairs))


@dataclass(frozen=True, eq=False)
class Absorb:
    """The map from rows to the normal equations of one or more networks.

    Parameters
    ----------
    units : Units
    problems : tuple of (Features, Loss)
        The features and the loss of each network.
    dtype : numpy.float64 or numpy.float32
        See ``fit_outer``.
    held : array of int
        The indices of held-out rows, which get weight zero.
    """

    units: Units
    problems: tuple[tuple[Features, Loss], ...]
    dtype: Precision = np.float64
    held: Index = field(default_factory=lambda: np.empty(0, int))

    @classmethod
    def by(cls, fits: tuple[ShallowFit, ...], units: Units, dtype: Precision) -> Absorb:
        """Return the map to the normal equations of fits in given units."""
        return cls(units, tuple((fit.network.features, fit.loss) for fit in fits), dtype)

    def __call__(self, block: Block) -> Accumulation:
        """Return the normal equations of a block, without its held rows."""
        jet = read_block(block)
        held = np.isin(block.first + np.arange(len(jet)), self.held)
        return self.rows(replace(jet, sample_weight=np.where(held, 0.0, jet.weights(0))) if held.any() else jet)

    def rows(self, jet: Jet) -> Accumulation:
        """Return the normal equations of rows with their given weights."""
        scaled = self.units(jet)
        equations = tuple(
            NormalEquations.from_some(features, scaled, loss, self.dtype) for features, loss in self.problems
        )
        return Accumulation(int(np.count_nonzero(scaled.weights(0))), equations)


def fit_accumulated(
    fit: ShallowFit, equations: NormalEquations, sample: Jet, rule: Rule, alphas: Array | None
) -> ShallowFit:
    """Return the fit with outer weights from normal equations, with a new choice of alpha and new errors.

    Parameters
    ----------
    fit : ShallowFit
        The fit whose features and loss are kept.
    equations : NormalEquations
        The normal equations of many rows with the loss of the fit.
    sample : Jet
        Rows at which the rule estimates the error, with their weights in the equations.
    rule : Rule
        How the error is estimated.
    alphas : array of shape (A,) or None
        See ``fit_outer``.
    """
    ridge = PrimalRidge(fit.network.features, sample, fit.loss, equations)
    many = equations.total_weight > MANY_ROWS * ridge.n_neurons  # weights have the mean one
    found = fit_ridge(ridge, alphas, rule, ALPHA_TOLERANCE if many else TOLERANCE)
    return replace(found, left_out=None, stage=fit.stage, history=fit.history, attempts=fit.attempts)


def with_held_rows(fit: ShallowFit, equations: NormalEquations, held: Jet) -> ShallowFit:
    """Return the fit to all rows with the alpha and the errors of a fit without the held-out rows.

    Parameters
    ----------
    fit : ShallowFit
        The fit without the held-out rows.
    equations : NormalEquations
        The normal equations of all rows.
    held : Jet
        The held-out rows, with their weights in the equations.
    """
    ridge = PrimalRidge(fit.network.features, held, fit.loss, equations)
    (coefficients,) = ridge.solve(np.array([fit.alpha * (ridge.feature_energy or 1.0)]))
    network = replace(fit.network, coefficients=coefficients.reshape(fit.network.coefficients.shape))
    return replace(fit, network=network, ridge_alpha=fit.alpha * (ridge.feature_energy or 1.0))


@dataclass(frozen=True, eq=False)
class Solution:
    """A fitted sampled network, and its uncertainty.

    Attributes
    ----------
    fit : ShallowFit
    scaling : Scaling
    uncertainty : CrossFit or Posterior
    sample : Jet
        Some or all rows, in scaled units.
    n_rows : int
        Number of all rows.
    rule : str
        How the error was estimated.
    """

    fit: ShallowFit
    scaling: Scaling
    uncertainty: CrossFit | Posterior
    sample: Jet
    n_rows: int
    rule: str

    @classmethod
    def of_all_rows(cls, fit: ShallowFit, scaling: Scaling, held: Jet, n_rows: int) -> Solution:
        """Return the solution for a fit to ``n_rows`` rows, of which ``held`` is a sample."""
        fit, rule = fit.with_unseen(scaling.unseen), f"errors at {len(held)} samples that left the fit"
        return cls(fit, scaling, _posterior(fit, held, n_rows=n_rows), held, n_rows, rule)

    @classmethod
    def of_sample(cls, fit: ShallowFit, scaling: Scaling, sample: Jet, n_rows: int) -> Solution:
        """Return the solution for a fit to a sample of ``n_rows`` rows, which was better than the fit to all rows."""
        fit = fit.with_unseen(scaling.unseen)
        rule = f"leave-one-out; the fit to {len(sample)} samples has a smaller error than that to all at others"
        return cls(fit, scaling, _posterior(fit, sample, precise=fit.precise), sample, n_rows, rule)


def _posterior(fit: ShallowFit, sample: Jet, **options: Any) -> Posterior:
    return Posterior.of(fit.network, sample, fit.ridge_alpha, fit.loss, optimism=fit.optimism, **options)


@dataclass(frozen=True, eq=False)
class SampledBlocks:
    """The method to fit sampled networks to data in blocks.

    A race on the sample chooses settings. A pass over the blocks adds up the normal equations of the winner, and of
    other networks that may be better on all rows, without the held-out rows. Alpha, the network and the error are
    chosen at the held-out rows, which are then added to the equations of the best network.

    Parameters
    ----------
    race : callable
        Maps the sample and a generator to the winner and the other networks. The call runs where the blocks are.
    alphas : array of shape (A,) or None
        See ``fit_outer``.
    dtype : numpy.float64 or numpy.float32
    verbose : int
    """

    parts: ClassVar[tuple[type, ...]] = (Accumulation, NormalEquations, Tree)

    race: Callable[[Jet, np.random.Generator], tuple[ShallowFit, ...]]
    alphas: Array | None
    dtype: Precision
    verbose: int

    def affordable(self, fit: ShallowFit, blocks: Blocks, largest: int, clock: Clock) -> int:
        """Return the number of neurons, at most ``largest``, for which a fit to all rows ends before the deadline.

        The normal equations of the held-out rows are timed. The time for all rows grows with the square of the number
        of neurons, and the time of the solution with its third power. Raises ``TimeUpError`` if there is no time for
        ``FIRST_SIZE`` neurons.
        """
        held, n_neurons = blocks.summary.held.jet, fit.network.features.n_neurons
        start = time.perf_counter()
        Absorb.by((fit,), blocks.units, self.dtype).rows(held)
        of_row = (time.perf_counter() - start) / (len(held) * n_neurons**2)
        n_rows, of_neuron = blocks.summary.n_rows + len(blocks.sample), SOLVING / (1 + len(fit.loss.orders))
        left, size = PASS_SHARE * clock.left - blocks.seconds, largest
        while of_row * size**2 * (n_rows + of_neuron * size) > left:
            size = int(0.95 * size)
            if size < min(FIRST_SIZE, n_neurons):
                raise TimeUpError
        return size

    def fit(self, blocks: Blocks, rng: np.random.Generator) -> tuple[ShallowFit, ...]:
        """Return the winner of the race on the sample, and other fits that may be better on all rows."""
        return blocks.stream.call(partial(self.race, blocks.sample, rng))

    def absorb(
        self,
        blocks: Blocks,
        fit: tuple[ShallowFit, ...],
        state: Tree[Accumulation] | None,
        after: Callable[[Tree[Accumulation]], None] | None,
    ) -> Accumulation:
        """Return the normal equations of all blocks without the held-out rows."""
        task = replace(Absorb.by(fit, blocks.units, self.dtype), held=blocks.summary.held.rows)
        n_rows, n_held = blocks.summary.n_rows, len(task.held)
        warn_if_long(n_rows, task.problems)
        watchers = [] if after is None else [after]

        def done(tree: Tree[Accumulation]) -> int:
            return n_held + sum(total.n_rows for _, total in tree.runs)

        before = done(Tree() if state is None else state)
        progress = watch_blocks("samples added up", n_rows, before, self.verbose)
        if progress is not None:
            watchers.append(lambda tree: progress(done(tree)))

        def watch(tree: Tree[Accumulation]) -> None:
            for watcher in watchers:
                watcher(tree)

        total = blocks.stream.map_reduce(task, add, state, watch if watchers else None)
        if total.n_rows + n_held != n_rows:
            got = f"{n_rows} rows and then {total.n_rows + n_held}"
            raise ValueError(f"blocks must be the same each time, got {got}")
        return total

    def finish(self, blocks: Blocks, fit: tuple[ShallowFit, ...], absorbed: Accumulation) -> Solution:
        """Return the fit with the smallest error at the held-out rows, among the fits to all rows and to the sample.

        A Gram matrix of all rows cannot resolve the small alphas of a fit to the sample. Small alphas help for smooth
        functions without noise, for which more rows do not help.
        """
        units, summary, held = blocks.units, blocks.summary, blocks.held
        rule, pairs = HeldOut(held, np.arange(len(held))), zip(fit, absorbed.equations, strict=True)
        to_others = [fit_accumulated(first, equations, held, rule, self.alphas) for first, equations in pairs]
        place = min(range(len(fit)), key=lambda place: to_others[place].error)
        of_sample = with_errors_at(fit[0], held)
        if of_sample.precise and of_sample.error < to_others[place].error:
            return Solution.of_sample(of_sample, units.scaling, blocks.sample, summary.n_rows)
        (more,) = Absorb.by((fit[place],), units, self.dtype).rows(summary.held.jet).equations
        best = with_held_rows(to_others[place], absorbed.equations[place] + more, held)
        return Solution.of_all_rows(best, units.scaling, held, summary.n_rows)


@dataclass(frozen=True, eq=False)
class Running:
    """The state of ``partial_fit``: the normal equations of the rows so far, and a sample of these rows."""

    units: Units
    given: tuple[str, ...]
    seed: int
    n_seen: int
    total: Accumulation
    sample: Reservoir

    @classmethod
    def of(cls, jet: Jet, given: tuple[str, ...], absorb: Absorb, seed: int, first: int = 0) -> Running:
        """Return the state after some rows, the first of which has the index ``first``."""
        rows = first + np.arange(len(jet))
        sample = Reservoir.of(jet, rows, uniform_numbers(rows, seed), HELD_ROWS)
        return cls(absorb.units, given, seed, first + len(jet), absorb.rows(jet), sample)

    def absorb(self, jet: Jet, given: tuple[str, ...], fit: ShallowFit, dtype: Precision) -> Running:
        """Return the state after further rows, with the same kinds of data."""
        if self.given != given:
            before, now = (", ".join(names) or "none" for names in (self.given, given))
            raise ValueError(f"all calls must have the same kinds of data beside X and y, got {before} and then {now}")
        more = Running.of(jet, given, Absorb.by((fit,), self.units, dtype), self.seed, self.n_seen)
        return replace(more, total=self.total + more.total, sample=self.sample + more.sample)

    def solution(self, fit: ShallowFit, alphas: Array | None) -> Solution:
        """Return the fit with outer weights, alpha and errors from all rows so far."""
        rule, (equations,) = LeaveOneOut(multiples=self.sample.multiples), self.total.equations
        fit = fit_accumulated(fit, equations, self.units(self.sample.jet), rule, alphas)
        held = weighted(self.sample, self.units)
        return Solution.of_all_rows(fit, self.units.scaling, held, self.total.n_rows)
