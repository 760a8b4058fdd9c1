"""Sampled networks: normal equations of all blocks, which add up, and errors at a sample of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import add
from typing import Any, ClassVar

import numpy as np

from nurf._scaling import Scaling
from nurf._types import Array, Precision
from nurf.blockwise._driver import Blocks
from nurf.data import HELD_ROWS, Block, Reservoir, Tree, Units, read_block, uniform_numbers, weighted
from nurf.engines._crossfit import CrossFit
from nurf.engines._fit import ShallowFit
from nurf.engines._outer import fit_ridge
from nurf.engines._progress import watch_blocks
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers import LeaveOneOut, Loss, Rule
from nurf.solvers.ridge import NormalEquations, Posterior, PrimalRidge
from nurf.solvers.ridge._selection import TOLERANCE

MANY_ROWS = 20  # for each neuron, with which a smaller alpha costs nothing: ...
ALPHA_TOLERANCE = 0.005  # ... then the largest alpha within so much of the smallest error is taken, noise included


@dataclass(frozen=True, eq=False)
class Accumulation:
    """Normal equations of a number of rows.

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
        """Return the normal equations of the rows of both."""
        pairs = zip(self.equations, other.equations, strict=True)
        return Accumulation(self.n_rows + other.n_rows, tuple(mine + more for mine, more in pairs))


@dataclass(frozen=True, eq=False)
class Absorb:
    """The map from rows to the normal equations of one or more networks.

    Parameters
    ----------
    units : Units
    problems : tuple of (Features, Loss)
        What is fitted.
    dtype : numpy.float64 or numpy.float32
        See ``fit_outer``.
    """

    units: Units
    problems: tuple[tuple[Features, Loss], ...]
    dtype: Precision = np.float64

    @classmethod
    def by(cls, fits: tuple[ShallowFit, ...], units: Units, dtype: Precision) -> Absorb:
        """Return the map to the normal equations of fits that were made in some units."""
        return cls(units, tuple((fit.network.features, fit.loss) for fit in fits), dtype)

    def __call__(self, block: Block) -> Accumulation:
        """Return the normal equations of a block."""
        return self.rows(read_block(block))

    def rows(self, jet: Jet) -> Accumulation:
        """Return the normal equations of rows as they are given."""
        scaled = self.units(jet)
        equations = tuple(
            NormalEquations.from_some(features, scaled, loss, self.dtype) for features, loss in self.problems
        )
        return Accumulation(int(np.count_nonzero(scaled.weights(0))), equations)


def fit_accumulated(
    fit: ShallowFit, equations: NormalEquations, sample: Jet, rule: Rule, alphas: Array | None
) -> ShallowFit:
    """Return the fit with the outer weights of the normal equations, and alpha and the errors chosen anew.

    Parameters
    ----------
    fit : ShallowFit
        Its features and its loss are kept.
    equations : NormalEquations
        Those of all rows, with this loss.
    sample : Jet
        Some of these rows, with the weights that they have there.
    rule : Rule
        How the error is estimated at the sample.
    alphas : array of shape (A,) or None
        See ``fit_outer``.
    """
    ridge = PrimalRidge(fit.network.features, sample, fit.loss, equations)
    many = equations.total_weight > MANY_ROWS * ridge.n_neurons  # weights have the mean one
    found = fit_ridge(ridge, alphas, rule, ALPHA_TOLERANCE if many else TOLERANCE)
    return replace(found, left_out=None, stage=fit.stage, history=fit.history, attempts=fit.attempts)


def fit_of_sample(fit: ShallowFit, accumulated: ShallowFit, held: Jet, multiples: Array) -> ShallowFit | None:
    """Return the fit to the sample with its errors at held rows, or None if that to all rows is as good.

    A Gram matrix of all rows cannot resolve the small alphas that a fit to a sample can have. They help if a smooth
    function is known without noise, and then more rows do not.

    Parameters
    ----------
    fit, accumulated : ShallowFit
        Fits to the sample and to all rows.
    held : Jet
        Rows that are not in the sample, with their weights.
    multiples : array of shape (n,)
        The number of rows for which each of them stands.
    """
    if not fit.precise:
        return None
    weights = held.weights(0) * multiples
    squares = (held.y - fit.network.value(held.X)).reshape(len(held), -1) ** 2
    errors = replace(fit, output_errors=np.sqrt(weights @ squares / weights.sum()))
    return errors if errors.error < accumulated.error else None


@dataclass(frozen=True, eq=False)
class Solution:
    """A fitted sampled network, and how far it can be trusted.

    Attributes
    ----------
    fit : ShallowFit
    scaling : Scaling
    uncertainty : CrossFit or Posterior
    sample : Jet
        The rows, or some of them, in scaled units.
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
        fit, rule = fit.with_unseen(scaling.unseen), f"leave-one-out at {len(held)} samples"
        return cls(fit, scaling, _posterior(fit, held, n_rows=n_rows), held, n_rows, rule)

    @classmethod
    def of_sample(cls, fit: ShallowFit, scaling: Scaling, sample: Jet, n_rows: int) -> Solution:
        """Return the solution for a fit to a sample of ``n_rows`` rows, which was better than that to all rows."""
        fit = fit.with_unseen(scaling.unseen)
        rule = f"leave-one-out; the fit to {len(sample)} samples has a smaller error than that to all at others"
        return cls(fit, scaling, _posterior(fit, sample, precise=fit.precise), sample, n_rows, rule)


def _posterior(fit: ShallowFit, sample: Jet, **options: Any) -> Posterior:
    return Posterior.of(fit.network, sample, fit.ridge_alpha, fit.loss, optimism=fit.optimism, **options)


@dataclass(frozen=True, eq=False)
class SampledBlocks:
    """How sampled networks are fitted to data in blocks.

    Settings are raced on the sample. A pass over the blocks adds up the normal equations of the network that won, and
    of others that may be better on all rows. Alpha and the error come from held rows, which leave the fit in turn.

    Parameters
    ----------
    race : callable
        From the sample and a generator to the winner and the others. It is called where the blocks are.
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

    def fit(self, blocks: Blocks, rng: np.random.Generator) -> tuple[ShallowFit, ...]:
        """Return the winner of the race on the sample, and others that may be better on all rows."""
        return blocks.stream.call(partial(self.race, blocks.sample, rng))

    def absorb(
        self,
        blocks: Blocks,
        fit: tuple[ShallowFit, ...],
        state: Tree[Accumulation] | None,
        after: Callable[[Tree[Accumulation]], None] | None,
    ) -> Accumulation:
        """Return the normal equations of all blocks."""
        task, n_rows = Absorb.by(fit, blocks.units, self.dtype), blocks.summary.n_rows
        progress = watch_blocks(n_rows, task.problems, self.verbose)
        watchers = [] if after is None else [after]
        if progress is not None:
            watchers.append(lambda tree: progress(sum(total.n_rows for _, total in tree.runs)))

        def watch(tree: Tree[Accumulation]) -> None:
            for watcher in watchers:
                watcher(tree)

        total = blocks.stream.map_reduce(task, add, state, watch if watchers else None)
        if total.n_rows != n_rows:
            raise ValueError(f"blocks must be the same each time, got {n_rows} rows and then {total.n_rows}")
        return total

    def finish(self, blocks: Blocks, fit: tuple[ShallowFit, ...], absorbed: Accumulation) -> Solution:
        """Return the fit with the smallest error at the held rows: of the fits to all rows, and that to the sample."""
        units, summary = blocks.units, blocks.summary
        held, multiples = units(summary.held.jet), summary.held.multiples
        rule, pairs = LeaveOneOut(multiples=multiples), zip(fit, absorbed.equations, strict=True)
        to_all = [fit_accumulated(first, equations, held, rule, self.alphas) for first, equations in pairs]
        best = min(to_all, key=lambda found: found.error)
        of_sample = fit_of_sample(fit[0], best, held, multiples)
        if of_sample is None:
            return Solution.of_all_rows(best, units.scaling, blocks.held, summary.n_rows)
        return Solution.of_sample(of_sample, units.scaling, blocks.sample, summary.n_rows)


@dataclass(frozen=True, eq=False)
class Running:
    """What ``partial_fit`` knows of the rows so far: their normal equations, and a sample of them."""

    units: Units
    given: tuple[str, ...]
    seed: int
    n_seen: int
    total: Accumulation
    sample: Reservoir

    @classmethod
    def of(cls, jet: Jet, given: tuple[str, ...], absorb: Absorb, seed: int, first: int = 0) -> Running:
        """Return what is known of rows, the first of which has the number ``first``."""
        rows = first + np.arange(len(jet))
        sample = Reservoir.of(jet, rows, uniform_numbers(rows, seed), HELD_ROWS)
        return cls(absorb.units, given, seed, first + len(jet), absorb.rows(jet), sample)

    def absorb(self, jet: Jet, given: tuple[str, ...], fit: ShallowFit, dtype: Precision) -> Running:
        """Return what is known with further rows, of the same kinds of data."""
        if self.given != given:
            before, now = (", ".join(names) or "none" for names in (self.given, given))
            raise ValueError(f"all calls must have the same kinds of data beside X and y, got {before} and then {now}")
        more = Running.of(jet, given, Absorb.by((fit,), self.units, dtype), self.seed, self.n_seen)
        return replace(more, total=self.total + more.total, sample=self.sample + more.sample)

    def solution(self, fit: ShallowFit, alphas: Array | None) -> Solution:
        """Return the fit with the outer weights, alpha and the errors of all rows so far."""
        rule, (equations,) = LeaveOneOut(multiples=self.sample.multiples), self.total.equations
        fit = fit_accumulated(fit, equations, self.units(self.sample.jet), rule, alphas)
        held = weighted(self.sample, self.units)
        return Solution.of_all_rows(fit, self.units.scaling, held, self.total.n_rows)
