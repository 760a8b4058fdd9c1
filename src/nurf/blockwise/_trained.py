"""Deep networks: steps of training on blocks of rows, one block after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from nurf.blockwise._driver import PASS_SHARE, Blocks, with_errors_at
from nurf.choosing import Clock, TimeUpError
from nurf.data import Block, read_block
from nurf.engines import (
    ALL_BLOCKS,
    CrossFit,
    DeepCycle,
    DeepFit,
    DeepSpec,
    as_network,
    as_parameters,
    fit_trained,
    in_training_units,
    last_loss,
    network_in_training_units,
    squared_errors,
    watch_attempts,
    watch_blocks,
    watch_cycles,
)
from nurf.jets import Jet
from nurf.solvers import VALUES_ONLY
from nurf.solvers.trained import MatrixState, Run, SoapState, Trainer, TrainingRows

MAX_PASSES = 10  # largest number of passes over all blocks
SAMPLE_SHARE = 0.25  # share of the steps on a sample of the rows, before all blocks are read


@dataclass(frozen=True, eq=False)
class BlockTraining:
    """A cycle of training that continues a fit to a sample, with a share of the steps for each block.

    The blocks are read one after the other, several times if they are few. The step size decreases from the first block
    of the first pass to the last block of the last pass.

    Parameters
    ----------
    fit : DeepFit
        The fit to a sample: training starts with its network, and keeps its setting and units.
    spec : DeepSpec
        The settings of the training, with the number of steps.
    total_weight : float
        The sum of the weights of all rows that train.
    n_blocks, n_passes : int
        Number of blocks, and number of passes over all of them.
    seed : int
        The seed for the order of the rows in each block.
    """

    fit: DeepFit
    spec: DeepSpec
    total_weight: float
    n_blocks: int
    n_passes: int
    seed: int

    @classmethod
    def of(cls, fit: DeepFit, spec: DeepSpec, n_rows: int, n_blocks: int, seed: int, longer: bool) -> BlockTraining:
        """Return the training on ``n_rows`` rows of mean weight one; if ``longer``, on each of them at least once.

        The number of passes follows from the number of steps, and is at most ``MAX_PASSES``.
        """
        batch = spec.options.batch
        n_steps = max(spec.n_steps, -(-n_rows // batch)) if longer else spec.n_steps
        n_passes = min(MAX_PASSES, max(1, round(n_steps * batch / n_rows)))
        return cls(fit, replace(spec, n_steps=n_steps), float(n_rows), n_blocks, n_passes, seed)

    @property
    def trainer(self) -> Trainer:
        """The trainer of the network."""
        trainer = self.spec.trainer
        return trainer.slower(self.spec.options.value_rate) if self.fit.setting.loss == VALUES_ONLY else trainer

    def start(self) -> BlockRun:
        """Return the state before the first block."""
        return BlockRun(self.trainer.start(as_parameters(network_in_training_units(self.fit.network, self.fit.units))))

    def advanced(self, state: BlockRun, jet: Jet) -> BlockRun:
        """Return the state after a further block, which is scaled and has weights whose mean over all rows is one."""
        weight, number = state.weight + float(jet.weights(0).sum()), state.number + 1
        n_steps = self.spec.n_steps
        until = min(n_steps, round(n_steps * weight / (self.n_passes * self.total_weight)))
        run, n = state.run, until - state.run.step
        if n > 0 and len(jet):
            units, rng = self.fit.units, np.random.default_rng([self.seed, number])
            rows = TrainingRows.of(units(jet), in_training_units(self.fit.setting.loss, units), np.float32)
            run = self.trainer.advance(run, rows, n, n_steps, rng)
        return BlockRun(run, number, weight)

    def result(self, state: BlockRun, held: Jet) -> tuple[DeepFit, DeepCycle]:
        """Return the fit with its errors at held-out rows, or the fit to the sample if it is better, and the cycle."""
        before = self.fit
        network = as_network(state.run.parameters, self.spec.activation, before.network.output_shape)
        network = network.in_units_of(before.units)
        crossfit = CrossFit.of(network, [network], [held])
        so_far = before.history[-1].n_steps
        fit = replace(
            before,
            network=network,
            crossfit=crossfit,
            folds=replace(before.folds, networks=(network,)),
        )
        valued = held.with_values()
        error = float(np.sqrt(np.average(squared_errors(network, valued), weights=valued.weights(0))))
        done = DeepCycle(so_far + state.run.step, last_loss((state.run,)), error, state.seconds, ALL_BLOCKS)
        fit, before = with_errors_at(replace(fit, history=(*before.history, done)), held), with_errors_at(before, held)
        return (fit if fit.error < before.error else before), done


@dataclass(frozen=True, eq=False)
class BlockRun:
    """A run after some blocks.

    Attributes
    ----------
    run : Run
    number : int
        Number of blocks so far, in all passes.
    weight : float
        The sum of the weights of the rows so far.
    seconds : float
        Time of the blocks so far, in this process.
    """

    run: Run
    number: int = 0
    weight: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class TrainedBlocks:
    """The method to fit deep networks to data in blocks.

    The setting is chosen and the training begins on the sample, and continues with all blocks in turn. Held-out rows
    are never trained; they estimate the error.

    Parameters
    ----------
    spec : DeepSpec
        The settings of the training, with the number of steps.
    longer : bool
        Whether to take more steps, if some rows would be unused otherwise.
    verbose : int
    """

    parts: ClassVar[tuple[type, ...]] = (BlockRun, MatrixState, Run, SoapState)

    spec: DeepSpec
    longer: bool
    verbose: int

    def in_time(self, fit: DeepFit, blocks: Blocks, clock: Clock) -> tuple[TrainedBlocks, bool]:
        """Return the method with the steps that fit into the remaining time, and whether these are all steps.

        Steps are assumed to take as long as on the sample. Raises ``TimeUpError`` if there is time for less than a
        small share.
        """
        wanted, seconds = self._training(blocks, fit).spec.n_steps, sum(cycle.seconds for cycle in fit.history)
        left = PASS_SHARE * clock.left - blocks.seconds
        n_steps = int(min(wanted, max(left, 0.0) * fit.n_steps / seconds))
        if n_steps < self.spec.options.cycle(SAMPLE_SHARE, self.spec.n_steps):
            raise TimeUpError
        return replace(self, spec=replace(self.spec, n_steps=n_steps), longer=False), n_steps == wanted

    def fit(self, blocks: Blocks, rng: np.random.Generator) -> DeepFit:
        """Return the fit to the sample, after a share of the steps."""
        first = replace(self.spec, n_steps=self.spec.options.cycle(SAMPLE_SHARE, self.spec.n_steps))
        return fit_trained(blocks.sample, first, rng, validation=blocks.held, watch=watch_attempts(self.verbose))

    def absorb(
        self, blocks: Blocks, fit: DeepFit, state: BlockRun | None, after: Callable[[BlockRun], None] | None
    ) -> BlockRun:
        """Return the state after a cycle of training on all blocks."""
        training, began, held = self._training(blocks, fit), time.perf_counter(), blocks.summary.held.rows

        def advanced(state: BlockRun, block: Block) -> BlockRun:
            jet = read_block(block)
            trains = ~np.isin(block.first + np.arange(len(jet)), held) & (jet.weights(0) > 0)
            return training.advanced(state, blocks.units(jet[trains]))

        state = training.start() if state is None else state
        total = training.n_passes * training.n_blocks
        progress = watch_blocks(f"blocks in {training.n_passes} passes trained on", total, state.number, self.verbose)
        watchers = [] if after is None else [after]
        if progress is not None:
            watchers.append(lambda state: progress(state.number))

        def watch(state: BlockRun) -> None:
            for watcher in watchers:
                watcher(state)

        while state.number < total:
            state = blocks.stream.fold(advanced, state, state.number % training.n_blocks, watch)
            if not state.number or state.number % training.n_blocks:
                raise ValueError(f"blocks must be the same each time, got {training.n_blocks} and then another number")
        return replace(state, seconds=time.perf_counter() - began)

    def finish(self, blocks: Blocks, fit: DeepFit, absorbed: BlockRun) -> tuple[DeepFit, DeepSpec]:
        """Return the fit after the cycle, or the fit to the sample if its error at the held-out rows is not larger.

        The second result is the specification of the training.
        """
        fit, cycle = self._training(blocks, fit).result(absorbed, blocks.held)
        watch = watch_cycles(self.verbose)
        if watch is not None:
            watch(cycle)
        return fit, self.spec

    def _training(self, blocks: Blocks, fit: DeepFit) -> BlockTraining:
        n_rows, n_blocks = blocks.summary.n_rows - len(blocks.held), len(blocks.summary.starts)
        return BlockTraining.of(fit, self.spec, n_rows, n_blocks, blocks.seed, self.longer)
