"""The parts of the data for fits of sampled networks: for candidates of a size, for folds, and for the final fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nurf._blocks import spaced
from nurf._reduction import output_directions
from nurf._types import Array, Index, Mask
from nurf.choosing import Clock, Policy, fold_masks
from nurf.engines._outer import FEW_OPERATIONS
from nurf.engines._stages import Task
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.solvers import LeaveOneOut
from nurf.solvers.process import row_total
from nurf.solvers.ridge import HeldOut, LeftOut

MANY_OUTPUTS = 10  # with more outputs, candidates are judged by combinations of them
ALL, FOLDS, WITHOUT = "all", "folds", "without each fold"
ROWS_PER_NEURON = {True: 4, False: 8}  # below the last size, with and without derivatives
MAX_ROWS = 20_000  # hyperplanes are sampled from at most these; candidates are judged on a quarter of them
MAX_RACED_OPERATIONS = 4e10  # limit for fits with very small alphas, between the first size and the last
MAX_REFIT_SAMPLES = 1000  # fits without folds measure the optimism of leave-one-out; with more samples it is near 1
MIN_HELD_OUT = 120  # samples that these fits hold out, a fold at a time


@dataclass(frozen=True, eq=False)
class Split:
    """The data of one fit, and the samples that judge it.

    Parameters
    ----------
    task : Task
    samples : array of shape (m,)
        The indices of the rows of ``task`` among all samples.
    held : array of shape (n,), optional
        The mask of the held-out samples.
    rest : Jet, optional
        Further samples, which are not fitted and judge.
    """

    task: Task
    samples: Index
    held: Mask | None = None
    rest: Jet | None = None

    def numbers(self, left_out: LeftOut, n: int) -> Index:
        """Return the indices of left-out samples among all ``n`` samples; validation rows have larger indices."""
        if self.held is not None:
            return left_out.samples
        index, m = left_out.samples, len(self.task.jet)
        place = np.minimum(index, len(self.samples) - 1)
        return np.where(index < m, self.samples[place], n + index - m)


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of the data on which candidates are judged and fitted.

    Parameters
    ----------
    task : Task
        The fit to all data.
    sizes : tuple of int
        The numbers of neurons at which candidates are compared.
    policy : Policy
    clock : Clock
    """

    task: Task
    sizes: tuple[int, ...]
    policy: Policy
    clock: Clock

    @cached_property
    def n_values(self) -> int:
        """The number of samples that judge: with a value, at their point or of a functional."""
        return int(np.count_nonzero(self.task.jet.judges))

    @property
    def has_other_rows(self) -> bool:
        """Whether errors are estimated at samples that are not fitted."""
        return self.task.rule is not None and self.task.rule.n_other_rows > 0

    @cached_property
    def folds(self) -> list[Mask]:
        """The masks of the rows in each fold."""
        return fold_masks(self.task.jet, self.policy.n_folds)

    @cached_property
    def uses_folds(self) -> bool:
        """Whether candidates are judged by fits without each fold, as for few samples or few rows for each input."""
        jet, policy = self.task.jet, self.policy
        few_rows = row_total(jet) < policy.rows_per_parameter * jet.n_features
        limit = MAX_REFIT_SAMPLES if few_rows and policy.few_samples else policy.few_samples
        return self.n_values <= limit and not self.has_other_rows and len(self.folds) > 1

    @property
    def can_measure(self) -> bool:
        """Whether fits without some of the folds measure the optimism of leave-one-out; not with many samples."""
        return self.n_values <= MAX_REFIT_SAMPLES and not self.has_other_rows and len(self.folds) > 1

    def where(self, size: int) -> str:
        """Return the name of the data for candidates of a size; the last size uses all data."""
        if self.uses_folds:
            return WITHOUT
        return ALL if size == self.sizes[-1] else str(size)

    def splits(self, where: str) -> Iterator[Split]:
        """Yield the fits to the data of a size, to all data, or to the data without some of the folds."""
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
                judging = np.flatnonzero(held & jet.judges)
                task = replace(self._on(~held, MAX_RACED_OPERATIONS), rule=HeldOut(jet[judging], judging))
                yield Split(task, everything[~held], held)
        else:
            combined = jet if self._outputs is None or self.has_other_rows else jet.combined(self._outputs)
            chosen = np.zeros(len(jet), bool)
            chosen[spaced(everything, self._n_rows(int(where)))] = True
            rule = (self.task.rule or LeaveOneOut()).coarse()
            limit = FEW_OPERATIONS if int(where) == self.sizes[0] else MAX_RACED_OPERATIONS
            task = replace(self._on(chosen, limit), rule=rule, jet=_part(combined, chosen))
            yield Split(task, everything[chosen], rest=None if self.has_other_rows else combined[~chosen])

    def _on(self, rows: Mask, limit: float) -> Task:
        """Return the task for some of the rows."""
        return replace(self.task, jet=_part(self.task.jet, rows), max_precise_operations=limit)

    def _n_rows(self, size: int) -> int:
        """Return the number of rows for candidates of a size."""
        n = len(self.task.jet)
        limit = MAX_ROWS // 4 if n > MAX_ROWS else n
        wanted = ROWS_PER_NEURON[bool(self.task.jet.known)] * size
        return min(limit, max(wanted, self.policy.few_samples)) if size < self.sizes[-1] else limit

    @cached_property
    def _outputs(self) -> Array | None:
        """The combinations of many outputs (k, q) that judge candidates below the last size; None for all outputs."""
        return output_directions(self.task.jet) if self.task.jet.y[:1].size > MANY_OUTPUTS else None


def _part(jet: Jet, rows: Mask) -> Jet:
    """Return the jet at some rows. If none has derivatives to sample from, derivatives of other rows are kept."""
    part, lost = jet[rows], np.zeros(len(jet), bool)
    for order in DERIVATIVE_KINDS:
        known = _telling(jet, order)
        if not np.any(known & rows):
            lost |= known
    return part + replace(jet[lost], y=np.full_like(jet.y[lost], np.nan)) if lost.any() else part


def _telling(jet: Jet, order: int) -> Mask:
    """Return the mask of the rows with known nonzero derivatives, or with known derivatives if all are zero."""
    known = jet.has_derivative(order)
    if not known.any():
        return known
    varying = known & jet.derivative_rows(order).any(axis=(1, 2)) & (jet.weights(1) > 0)
    return varying if varying.any() else known
