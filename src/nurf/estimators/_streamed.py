"""Fits to data that are larger than memory, or on many machines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from operator import add
from typing import Any

import numpy as np

from nurf._scaling import Scaling, is_ball
from nurf.data import (
    DerivativeCheck,
    Radius,
    Reservoir,
    Stream,
    Summary,
    Tree,
    Units,
    canonical,
    read_block,
    relative,
    weighted,
)
from nurf.data._checkpoint import Checkpoint
from nurf.estimators._base import ShallowRegressor
from nurf.estimators._in_blocks import FitsInBlocks
from nurf.estimators._reduced import ReducesInputs
from nurf.jets import Jet
from nurf.solvers import LeaveOneOut
from nurf.solvers.ridge import Posterior
from nurf.training import Search, ShallowFit
from nurf.training._progress import watch_blocks
from nurf.training._streamed import (
    Accumulate,
    Accumulation,
    fit_accumulated,
    fit_of_sample,
)


class FitsStreams(FitsInBlocks, ShallowRegressor, ReducesInputs):
    """A regressor whose outer weights can be found from blocks of rows, which are read one after the other.

    One pass over the blocks finds the extent of the data and draws two samples of rows; the race over settings is run
    on the first of them; a second pass adds up the normal equations of the network that won, and those of the best of
    the last size if it is another one; alpha and the error come from rows of the second sample, which leave the fit in
    turn.
    """

    scaling: Any
    loss: str
    check_gradients: Any

    @abstractmethod
    def _raced_on_sample(self, scaled: Jet, rng: np.random.Generator) -> tuple[ShallowFit, ...]:
        """Return the winner of the race on a sample, and others that may be better on all rows."""

    @abstractmethod
    def _set_result(
        self,
        fit: ShallowFit,
        scaling: Scaling,
        uncertainty: Posterior,
        scaled: Jet,
        n_samples: int,
        check: DerivativeCheck | None,
        rule: str,
    ) -> list[Warning]:
        """Set the attributes of a fit, and return warnings for the user. ``scaled`` are some or all of the rows."""

    def _at_once(self, n_rows: int, piecewise: bool) -> bool:
        return n_rows <= Search.max_rows

    def _needs_memory(self) -> bool:
        return self.loss == "huber"

    def _fit_stream(self, stream: Stream, checkpoint: Any) -> list[Warning]:
        """Fit to a stream, set the attributes at the very end, and return warnings for the user."""
        if self.loss == "huber":
            raise ValueError("`loss` must be 'squared' for data in blocks, got 'huber': it needs all rows in memory")
        rng = self._generator()
        summary, seed = self._summary(stream, checkpoint, rng)
        if summary.is_complete and summary.n_rows <= Search.max_rows:
            return self._fit(canonical(relative(summary.all_rows())), None)
        radius = stream.map_reduce(Radius(summary.extent), max) if is_ball(self.scaling) else 0.0
        raced = summary.raced.jet
        scaling, check, found = self._reduced(Scaling.of(summary.extent, self.scaling, radius), raced, raced)
        units = Units(scaling, summary.mean_weight)
        file = self._checkpoint(checkpoint, summary, seed)
        state = (None if file is None else file.read()) or {}
        fits: tuple[ShallowFit, ...] = state.get("fits") or stream.call(
            partial(self._raced_on_sample, weighted(summary.raced, units), rng)
        )
        problems = tuple((fit.network.features, fit.loss) for fit in fits)
        progress = watch_blocks(summary.n_rows, problems, self._verbosity())
        task = Accumulate(read_block, units, problems, self._precision())
        total = _accumulate(stream, task, fits, file, state.get("tree"), progress)
        if total.n_rows != summary.n_rows:
            raise ValueError(f"blocks must be the same each time, got {summary.n_rows} rows and then {total.n_rows}")
        held, multiples = units(summary.held.jet), summary.held.multiples
        rule, pairs = LeaveOneOut(multiples=multiples), zip(fits, total.equations, strict=True)
        to_all = [fit_accumulated(fit, equations, held, rule, self._alphas()) for fit, equations in pairs]
        found_all = min(to_all, key=lambda fit: fit.error)
        of_sample = fit_of_sample(fits[0], found_all, held, multiples)
        if of_sample is None:
            found += self._set_streamed(found_all, units, summary.held, summary.n_rows, check)
        else:
            found += self._set_sampled(of_sample, units, summary, check)
        if file is not None:
            file.remove()
        return found

    def _set_streamed(
        self, fit: ShallowFit, units: Units, held: Reservoir, n_rows: int, check: DerivativeCheck | None
    ) -> list[Warning]:
        """Set the attributes of a fit to ``n_rows`` rows, of which ``held`` is a sample."""
        sample, fit = weighted(held, units), fit.with_unseen(units.scaling.unseen)
        options: dict[str, Any] = {"optimism": fit.optimism, "n_rows": n_rows}
        uncertainty = Posterior.of(fit.network, sample, fit.ridge_alpha, fit.loss, **options)
        rule = f"leave-one-out at {len(sample)} samples"
        return self._set_result(fit, units.scaling, uncertainty, sample, n_rows, check, rule)

    def _set_sampled(
        self, fit: ShallowFit, units: Units, summary: Summary, check: DerivativeCheck | None
    ) -> list[Warning]:
        """Set the attributes of a fit to the rows that were raced on, which was better than that to all rows."""
        sample, fit = weighted(summary.raced, units), fit.with_unseen(units.scaling.unseen)
        options: dict[str, Any] = {"optimism": fit.optimism, "precise": fit.precise}
        uncertainty = Posterior.of(fit.network, sample, fit.ridge_alpha, fit.loss, **options)
        rule = f"leave-one-out; the fit to {len(sample)} samples has a smaller error than that to all at others"
        return self._set_result(fit, units.scaling, uncertainty, sample, summary.n_rows, check, rule)


def _accumulate(
    stream: Stream,
    task: Accumulate,
    fits: tuple[ShallowFit, ...],
    file: Checkpoint | None,
    tree: Tree[Accumulation] | None,
    progress: Callable[[int], None] | None,
) -> Accumulation:
    """Return the normal equations of all blocks; between blocks, write the state down and say how far they are."""
    merge: Callable[[Accumulation, Accumulation], Accumulation] = add

    def after(tree: Tree[Accumulation]) -> None:
        if file is not None:
            file.write({"fits": fits, "tree": tree})
        if progress is not None:
            progress(sum(total.n_rows for _, total in tree.runs))

    if file is None and progress is None:
        return stream.map_reduce(task, merge)
    after(Tree() if tree is None else tree)
    return stream.map_reduce(task, merge, tree, after)
