"""The training of a deep network on blocks of rows, which are read in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from nurf.engines._crossfit import CrossFit
from nurf.engines._deep import DeepSpec, as_network, as_parameters, in_training_units, squared_errors
from nurf.engines._deep_fit import ALL_BLOCKS, DeepCycle, DeepFit
from nurf.engines._trained import last_loss, network_in_training_units
from nurf.jets import Jet
from nurf.solvers import VALUES_ONLY
from nurf.solvers.trained import Run, Trainer, TrainingRows

MAX_PASSES = 10  # over all blocks


@dataclass(frozen=True, eq=False)
class BlockTraining:
    """A cycle of training in which each block has its share of the steps, from a fit to a sample on.

    The blocks are read one after the other, several times if they are few. The step size falls from the first block of
    the first pass to the last one of the last pass.

    Parameters
    ----------
    fit : DeepFit
        The fit to a sample: its network is the first, and its setting and units are kept.
    spec : DeepSpec
        With the number of steps.
    total_weight : float
        The sum of the weights of all rows that train.
    n_blocks, n_passes : int
        Number of blocks, and how often all of them are read.
    seed : int
        Of the order of the rows in each block.
    """

    fit: DeepFit
    spec: DeepSpec
    total_weight: float
    n_blocks: int
    n_passes: int
    seed: int

    @classmethod
    def of(cls, fit: DeepFit, spec: DeepSpec, n_rows: int, n_blocks: int, seed: int, longer: bool) -> BlockTraining:
        """Return the training on ``n_rows`` rows of mean weight one; if ``longer``, each of them is seen once at least.

        There are as many passes as the steps take, at most ``MAX_PASSES``.
        """
        batch = spec.options.batch
        n_steps = max(spec.n_steps, -(-n_rows // batch)) if longer else spec.n_steps
        n_passes = min(MAX_PASSES, max(1, round(n_steps * batch / n_rows)))
        return cls(fit, replace(spec, n_steps=n_steps), float(n_rows), n_blocks, n_passes, seed)

    @property
    def trainer(self) -> Trainer:
        """How the network is trained."""
        trainer = self.spec.trainer
        return trainer.slower(self.spec.options.value_rate) if self.fit.setting.loss == VALUES_ONLY else trainer

    def start(self) -> BlockRun:
        """Return the state before the first block."""
        return BlockRun(self.trainer.start(as_parameters(network_in_training_units(self.fit.network, self.fit.units))))

    def advanced(self, state: BlockRun, jet: Jet) -> BlockRun:
        """Return the state after a further block, scaled and with weights whose mean over all rows is one."""
        weight, number = state.weight + float(jet.weights(0).sum()), state.number + 1
        n_steps = self.spec.n_steps
        until = min(n_steps, round(n_steps * weight / (self.n_passes * self.total_weight)))
        run, n = state.run, until - state.run.step
        if n > 0 and len(jet):
            units, rng = self.fit.units, np.random.default_rng([self.seed, number])
            rows = TrainingRows.of(units(jet), in_training_units(self.fit.setting.loss, units), np.float32)
            run = self.trainer.advance(run, rows, n, n_steps, rng)
        return BlockRun(run, number, weight)

    def result(self, state: BlockRun, held: Jet, began: float) -> tuple[DeepFit, DeepCycle]:
        """Return the fit with its errors at held rows, or that to the sample if it is better there, and the cycle."""
        before = self.fit
        network = as_network(state.run.parameters, self.spec.activation, before.network.output_shape)
        network = network.in_units_of(before.units)
        crossfit = CrossFit.of(network, [network], [held])
        so_far, seconds = before.history[-1].n_steps, time.perf_counter() - began
        fit = replace(
            before,
            network=network,
            output_errors=crossfit.output_errors,
            crossfit=crossfit,
            folds=replace(before.folds, networks=(network,)),
        )
        valued = held.with_values()
        error = float(np.sqrt(np.average(squared_errors(network, valued), weights=valued.weights(0))))
        done = DeepCycle(so_far + state.run.step, last_loss((state.run,)), error, seconds, ALL_BLOCKS)
        return (replace(fit, history=(*before.history, done)) if fit.error < before.error else before), done


@dataclass(frozen=True, eq=False)
class BlockRun:
    """A run after some blocks.

    Attributes
    ----------
    run : Run
    number : int
        Blocks so far, of all passes.
    weight : float
        The sum of the weights of their rows.
    """

    run: Run
    number: int = 0
    weight: float = 0.0


def train_on_blocks(
    training: BlockTraining,
    jets: Callable[[int], Iterator[Jet]],
    held: Jet,
    *,
    start: BlockRun | None = None,
    after: Callable[[BlockRun], None] | None = None,
    watch: Callable[[DeepCycle], None] | None = None,
) -> DeepFit:
    """Return the fit after a cycle of training on all blocks, or as it was if its error at held rows is not smaller.

    Parameters
    ----------
    training : BlockTraining
    jets : callable
        From a number of blocks that are left out to an iterator over the others of a pass, without the held rows.
    held : Jet
        Rows that do not train.
    start : BlockRun, optional
        The state to go on from.
    after : callable, optional
        Called with the state after each block.
    watch : callable, optional
        Called with the cycle at the end.
    """
    state, began = training.start() if start is None else start, time.perf_counter()
    while state.number < training.n_passes * training.n_blocks:
        for jet in jets(state.number % training.n_blocks):
            state = training.advanced(state, jet)
            if after is not None:
                after(state)
        if not state.number or state.number % training.n_blocks:
            raise ValueError(f"blocks must be the same each time, got {training.n_blocks} and then another number")
    fit, cycle = training.result(state, held, began)
    if watch is not None:
        watch(cycle)
    return fit
