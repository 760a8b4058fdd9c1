"""The data that arms of a race are fitted to, and those that their errors are estimated on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from nurf._blocks import spaced
from nurf._reduction import output_directions
from nurf._types import Array, Mask
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.solvers import LeaveOneOut
from nurf.solvers._coverage import effective_number, standard_error
from nurf.solvers.ridge import HeldOut
from nurf.solvers.ridge._selection import TOLERANCE
from nurf.training._crossfit import assign_folds
from nurf.training._search import Search, Space
from nurf.training._stages import Task

MANY_OUTPUTS = 10  # above which a race combines them


@dataclass(frozen=True, eq=False)
class Split:
    """What is fitted, and the share of its squared error in the estimate."""

    task: Task
    share: float = 1.0


@dataclass(frozen=True, eq=False)
class Lane:
    """Arms on the same data: what they are fitted to at each size, what they may choose, and their random numbers.

    Parameters
    ----------
    name : str
    task : Task
        What is fitted in the end.
    space : Space
    search : Search
    sizes : sequence of int
        The sizes of the race.
    entropy : tuple of int
        Seed of the random numbers.
    handicap : float, default 1
        Factor of the errors in comparisons with other lanes.
    """

    name: str
    task: Task
    space: Space
    search: Search
    sizes: Sequence[int]
    entropy: tuple[int, ...]
    handicap: float = 1.0

    @cached_property
    def final(self) -> tuple[Split, ...]:
        """All the data, as the winner is fitted to them."""
        return (Split(self.task),)

    @property
    def refits(self) -> bool:
        """Whether errors are estimated by refits on folds."""
        return 2 <= self.n_values <= self.search.few_samples and not self.has_other_rows

    @cached_property
    def n_values(self) -> int:
        """The number of samples with a value."""
        return int(np.count_nonzero(self.task.jet.has_value))

    @cached_property
    def n_effective(self) -> float:
        """The effective number of these samples."""
        return effective_number(self.task.jet.weights(0)[self.task.jet.has_value])

    @property
    def tolerance(self) -> float:
        """By how much the error of an alpha may be larger than the smallest: one standard error, if samples are few."""
        return max(TOLERANCE, standard_error(self.n_effective)) if self.refits else TOLERANCE

    @property
    def has_other_rows(self) -> bool:
        """Whether errors are estimated on samples that are not fitted."""
        return self.task.rule is not None and self.task.rule.uses_other_rows

    @cached_property
    def outputs(self) -> Array | None:
        """The combinations of many outputs (k, q) that arms below the last size are fitted to, or None for all."""
        return output_directions(self.task.jet) if self.task.jet.y[:1].size > MANY_OUTPUTS else None

    @cached_property
    def _splits(self) -> dict[int, tuple[Split, ...]]:
        return {size: tuple(self._make(size)) for size in self.sizes}

    def splits(self, size: int) -> tuple[Split, ...]:
        """Return what arms of a size are fitted to."""
        return self.final if size == self.sizes[-1] and not self.refits else self._splits[size]

    def rng(self, depth: int, split: int) -> np.random.Generator:
        """Return the generator of a stage: the same for all arms, so that they differ in their settings only."""
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(depth, split)))

    def _make(self, size: int) -> Iterator[Split]:
        jet, search, rule = self.task.jet, self.search, self.task.rule
        first = size == self.sizes[0] < self.sizes[-1]
        task = replace(self.task, max_precise_operations=0.0 if first else search.max_precise_operations)
        if self.refits:
            probes = probes_around(jet.X[jet.has_value], self.rng(0, 10**6))
            for split, held_out in self._folds(task, search.n_folds):
                yield replace(split, task=replace(split.task, rule=HeldOut(held_out, probes)))
            return
        jet = jet if self.outputs is None or self.has_other_rows else jet.combined(self.outputs)
        limit = search.max_rows // 4 if len(jet) > search.max_rows else len(jet)
        n = min(limit, max(search.rows_per_neuron * size, search.few_samples)) if size < self.sizes[-1] else limit
        chosen = np.zeros(len(jet), bool)
        chosen[spaced(np.arange(len(jet)), n)] = True
        yield Split(replace(task, jet=_part(jet, chosen), rule=(rule or LeaveOneOut()).coarse()))

    @cached_property
    def final_folds(self) -> tuple[tuple[Split, ...], tuple[Jet, ...]]:
        """What the winner is fitted to in order to know its error, and the samples that are held out each time.

        Few samples are held out once each. Of more, some are; and none if there are so many that leave-one-out will do.
        """
        search, n = self.search, self.n_values
        if not self.refits and (self.has_other_rows or not 2 <= n <= search.max_refit_samples):
            return (), ()
        folds = list(self._folds(self.task, search.n_final_folds))
        if not self.refits:
            folds = folds[: int(np.ceil(search.min_held_out * len(folds) / n))]
        splits, held_out = zip(*folds, strict=True)
        return splits, held_out

    def _folds(self, task: Task, n_folds: int) -> Iterator[tuple[Split, Jet]]:
        """Yield the fits without each fold, and the fold. They are the same for all lanes, and all have values."""
        jet = task.jet
        weights = np.where(jet.has_value, jet.weights(0), 0.0)
        fold_of = assign_folds(jet, n_folds, self.rng(n_folds, 10**6 + 1))
        for fold in range(fold_of.max() + 1):
            held = fold_of == fold
            share = float(weights[held].sum() / weights.sum())
            if share > 0:
                yield Split(replace(task, jet=_part(jet, ~held)), share), jet[held]


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


def probes_around(X: Array, rng: np.random.Generator, reach: float = 1.0) -> Array:
    """Return places where a new sample may be: ``x_k + reach (x_k - x_l)`` for neighbours ``x_l`` of the samples.

    With a reach of 1 they are neighbours reflected through the samples, as far from these as they are from each other,
    and some are outside their convex hull; with -1/2 they are between two samples, and with 1/2 beside one. None is
    outside the bounding box.
    """
    n, d = X.shape
    neighbours = cKDTree(X).query(X, k=min(2 * d, n - 1) + 1)[1][:, 1:]
    points, picked = np.repeat(np.arange(n), 2), rng.integers(0, neighbours.shape[1], 2 * n)
    moved = X[points] + reach * (X[points] - X[neighbours[points, picked]])
    return np.asarray(np.clip(moved, X.min(axis=0), X.max(axis=0)))
