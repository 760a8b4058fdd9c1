"""Deep networks that are trained on blocks of rows in turn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from nurf._scaling import Scaling, is_ball
from nurf.data import (
    DerivativeCheck,
    Radius,
    Stream,
    Units,
    canonical,
    checked_gradients,
    read_block,
    relative,
    weighted,
)
from nurf.estimators._base import SamplesHyperplanes
from nurf.estimators._in_blocks import FitsInBlocks
from nurf.jets import Jet
from nurf.training import DeepFit, DeepSpec, Search, fit_trained
from nurf.training._progress import watch_cycles
from nurf.training._trained_blocks import BlockRun, BlockTraining, train_on_blocks

SAMPLE_SHARE = 0.25  # of the steps, on a sample of the rows, before all blocks are read


class TrainsOnBlocks(FitsInBlocks, SamplesHyperplanes):
    """A regressor that is trained on a sample of the rows, and then on with all blocks, which are read in turn.

    One pass over the blocks finds the extent of the data and draws two samples of rows. The setting is chosen and the
    training begins on the first of them. Rows of the second never train: they show the error.
    """

    steps: int | str
    time_budget: float | None
    scaling: Any
    check_gradients: Any
    warm_start: bool

    @abstractmethod
    def _spec(self, jet: Jet, found: list[Warning]) -> DeepSpec:
        """Return what is trained, as the parameters say, and note warnings in ``found``."""

    @abstractmethod
    def _with_steps(self, spec: DeepSpec, jet: Jet) -> DeepSpec:
        """Return the spec with the number of steps, from the parameters."""

    def _set_trained(
        self,
        fit: DeepFit,
        scaling: Scaling,
        spec: DeepSpec,
        n_iter: int,
        n_samples: int,
        check: DerivativeCheck | None,
        has_derivatives: bool,
    ) -> None:
        """Set the attributes of a fit."""
        self._set_fit(fit, scaling, fit.crossfit)
        self.density_, self.gradient_weight_ = fit.setting.density, fit.loss.gradients
        self.n_steps_, self.n_iter_, self.n_samples_ = spec.n_steps, n_iter, n_samples
        self.gradient_check_, self._has_derivatives = check, has_derivatives

    def _at_once(self, n_rows: int, piecewise: bool) -> bool:
        return not piecewise or n_rows <= Search.max_rows

    def _fit_stream(self, stream: Stream, checkpoint: Any) -> list[Warning]:
        """Fit to a sample of the rows, and train on with all blocks in turn. Held rows show the error of both."""
        if self.warm_start:
            raise ValueError(
                "`warm_start` must be False for data in blocks, got True: `partial_fit` goes on with some rows"
            )
        rng = self._generator()
        summary, seed = self._summary(stream, checkpoint, rng)
        if summary.is_complete and summary.n_rows <= Search.max_rows:
            return self._fit(canonical(relative(summary.all_rows())), None)
        check, found = checked_gradients(summary.raced.jet, self.check_gradients)
        found += unused_hessians(summary.raced.jet)
        radius = stream.map_reduce(Radius(summary.extent), max) if is_ball(self.scaling) else 0.0
        scaling = Scaling.of(summary.extent, self.scaling, radius)
        units = Units(scaling, summary.mean_weight)
        sample, held = weighted(summary.raced, units), weighted(summary.held, units)
        file, watch = self._checkpoint(checkpoint, summary, seed), watch_cycles(self._verbosity())
        state = (None if file is None else file.read()) or {}
        spec = self._with_steps(self._spec(sample, found), sample)
        first = replace(spec, n_steps=spec.options.cycle(SAMPLE_SHARE, spec.n_steps))
        fit = state.get("fit") or fit_trained(sample, first, rng, validation=held, watch=watch)
        longer, n_rows = self.steps == "auto" and self.time_budget is None, summary.n_rows - len(held)
        training = BlockTraining.of(fit, spec, n_rows, len(summary.starts), seed, longer)

        def jets(done: int) -> Iterator[Jet]:
            for block in stream.blocks(done):
                jet = read_block(block)
                trains = ~np.isin(block.first + np.arange(len(jet)), summary.held.rows) & (jet.weights(0) > 0)
                yield units(jet[trains])

        def after(run: BlockRun) -> None:
            if file is not None:
                file.write({"fit": fit, "run": run})

        fit = train_on_blocks(training, jets, held, start=state.get("run"), after=after, watch=watch)
        self._set_trained(fit, scaling, spec, fit.n_steps, summary.n_rows, check, bool(sample.known))
        if file is not None:
            file.remove()
        return found


def unused_hessians(jet: Jet) -> list[Warning]:
    """Return a warning if Hessians are known, which training does not use."""
    if "hessians" not in jet.known:
        return []
    return [UserWarning("`hessians` are not used in the training: `RandomFeatureRegressor` fits them")]
