"""Deep networks with all weights trained: cycles of training without a fold, and a last cycle with all rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nurf._scaling import Scaling
from nurf.choosing import (
    NO_LIMIT,
    POLICY,
    Attempt,
    Clock,
    Effort,
    Engine,
    Evidence,
    Judged,
    Policy,
    TimeUpError,
    assign_folds,
    decide,
    fold_masks,
)
from nurf.engines._crossfit import CrossFit
from nurf.engines._deep import (
    DeepSetting,
    DeepSpec,
    as_network,
    as_parameters,
    first_parameters,
    in_training_units,
    training_units,
)
from nurf.engines._deep_fit import ALL_ROWS, NO_FOLDS, DeepCycle, DeepFit
from nurf.jets import Jet
from nurf.networks import DeepNetwork
from nurf.solvers import MIN_ERRORS, VALUES_ONLY
from nurf.solvers.trained import Run, Trainer, TrainingRows

NO_FOLD = -1
MORE_CYCLES = 20  # each twice as long as the previous one
LOSS_SHARE = 0.1  # the mean loss of this share of the last steps is the loss of a cycle


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of a setting, one for each held-out fold, and the cycles so far."""

    runs: tuple[Run, ...]
    history: tuple[DeepCycle, ...]

    @property
    def n_steps(self) -> int:
        """The number of steps so far."""
        return self.history[-1].n_steps if self.history else 0


@dataclass(frozen=True, eq=False)
class RunData:
    """The training data of the runs, and the rows that judge them.

    Parameters
    ----------
    rows : tuple of Jet
        The data of each run, in training units.
    held_out : tuple of array of shape (n,)
        The masks of the samples that each run holds out.
    numbers : tuple of int
        The folds that the runs hold out.
    fold_of : array of shape (n,)
        The fold of each sample; -1 if no run holds it out.
    n_folds : int
    """

    rows: tuple[Jet, ...]
    held_out: tuple[Any, ...]
    numbers: tuple[int, ...]
    fold_of: Any
    n_folds: int


@dataclass(frozen=True, eq=False)
class TrainedEngine(Engine):
    """Deep networks for given data.

    A network is trained without each of the folds if samples are few, and without one of them otherwise. Every setting
    is trained for a short cycle, the best one for a long one, and at the end a short cycle takes all rows.

    Parameters
    ----------
    jet : Jet
        The data, scaled. Hessians are not used.
    spec : DeepSpec
        The settings, and the number of steps of a run.
    entropy : tuple of int
        Seed of the random numbers.
    validation : Jet, optional
        Rows that judge instead of folds. All rows of ``jet`` are then trained from the beginning.
    start : DeepFit, optional
        A fit to continue, with its setting. Its held-out rows are held out again, and new rows are assigned to folds.
    longer : bool
        Whether cycles of increasing length follow, until the deadline.
    policy : Policy
    clock : Clock
    transform, back
        See ``Engine``.
    """

    jet: Jet
    spec: DeepSpec
    entropy: tuple[int, ...]
    validation: Jet | None = None
    start: DeepFit | None = None
    longer: bool = False
    policy: Policy = POLICY
    clock: Clock = NO_LIMIT
    transform: str = ""
    back: Callable[[Evidence], Evidence] | None = None
    name = "trained"
    first_step = 2
    data = "all data"

    @cached_property
    def units(self) -> Scaling:
        """The scaling from the units of the data to the units of the training."""
        return training_units(self.jet) if self.start is None else self.start.units

    @cached_property
    def efforts(self) -> tuple[Effort, ...]:
        """Efforts: a short and a long cycle, or cycles of increasing length, or one cycle if no rows judge."""
        n_steps, options = self.spec.n_steps, self.spec.options
        short = options.cycle(options.race_share, n_steps)
        if not self._judges:
            return (Effort(n_steps, within=options.within),)
        if not self.longer:
            return Effort(short, within=options.within), Effort(n_steps, within=options.within)
        return tuple(Effort(options.min_cycle * 2**i, within=options.within) for i in range(MORE_CYCLES))

    @property
    def _judges(self) -> bool:
        return self.validation is not None or bool(self.parts.held_out)

    @cached_property
    def parts(self) -> RunData:
        """The training data of the runs: all rows, or the rows without a fold."""
        jet, data = self.jet, self.units(self.jet)
        everything = RunData((data,), (), (0,), np.full(len(jet), NO_FOLD), 1)
        if self.validation is not None or np.count_nonzero(jet.has_value) < MIN_ERRORS:
            return everything
        n_folds, n_runs = self.spec.options.folds_of(int(np.count_nonzero(jet.has_value)), self.policy)
        fold_of = assign_folds(jet, n_folds)
        if self.start is not None:
            n_runs = min(n_runs, len(self.start.folds.networks))
            fold_of = self.start.folds.assigned(jet.X, fold_of)
        masks = fold_masks(jet, np.where(fold_of < n_runs, fold_of, NO_FOLD))
        held = tuple(rows for rows in masks if jet.has_value[~rows].any())
        if not held:
            return everything
        numbers = tuple(int(fold_of[rows][0]) for rows in held)
        return RunData(tuple(data[~rows] for rows in held), held, numbers, fold_of, max(n_folds, 2))

    def candidates(self) -> Iterator[DeepSetting]:
        """Yield the settings; only the first one if no rows judge."""
        settings = self.spec.settings if self.start is None else (self.start.setting,)
        yield from settings if self._judges else settings[:1]

    def family(self, candidate: Hashable) -> Hashable:
        """Return the family of a candidate, which is its setting."""
        return candidate

    def judge(self, candidate: Any, size: int, before: Judged | None = None) -> Judged:
        """Return a setting after a cycle of ``size`` steps, and its errors at held-out rows."""
        began = time.perf_counter()
        runs = self._first(candidate) if before is None else before.found
        trainer = self._trainer(candidate)
        advanced = tuple(
            self._cycle(trainer, candidate, run, part, size, (2, fold, len(runs.history)))
            for fold, (run, part) in enumerate(zip(runs.runs, self.parts.rows, strict=True))
        )
        evidence, seconds = self._evidence(advanced), time.perf_counter() - began
        error = evidence.error if np.isfinite(evidence.error) else np.nan
        done = DeepCycle(runs.n_steps + size, last_loss(advanced), error, seconds, str(candidate))
        return Judged(self, candidate, size, evidence, seconds, Runs(advanced, (*runs.history, done)))

    def again(self, fit: DeepFit) -> Judged:
        """Return the network of an earlier fit after a short cycle on the data of this engine."""
        engine, options = replace(self, start=fit), self.spec.options
        return engine.judge(fit.setting, options.cycle(options.race_share, self.spec.n_steps))

    def record(self, judged: Judged) -> Attempt:
        """Return the record of a setting."""
        setting: DeepSetting = judged.candidate  # type: ignore[assignment]
        data = "values alone" if setting.loss == VALUES_ONLY else "all data"
        label = f"{setting}, {judged.found.n_steps} steps"
        return Attempt(self.name, data, label, judged.size, judged.error, judged.seconds, setting.loss)

    def fit(self, judged: Judged, given: Jet) -> DeepFit:
        """Return the network after a last cycle with all rows, with its errors at rows held out before."""
        setting: DeepSetting = judged.candidate  # type: ignore[assignment]
        runs: Runs = judged.found
        run, history = runs.runs[0], runs.history
        if self.parts.held_out:
            run, history = self._on_all_rows(setting, runs)
        network, without = self._network(run), [self._network(part) for part in runs.runs]
        folds = NO_FOLDS if self.start is None else self.start.folds
        fit = DeepFit(
            network=network,
            output_errors=judged.own.output_errors,
            loss=setting.loss,
            setting=setting,
            history=history,
            units=self.units,
            folds=folds.updated(self.jet.X, self.parts.fold_of, dict(zip(self.parts.numbers, without, strict=True))),
        )
        if not self._judges:
            return fit
        held_out = [self.jet[rows] for rows in self.parts.held_out]
        if self.validation is not None:
            held_out = [self.validation]
        crossfit = CrossFit.of(network, without, held_out, self.parts.n_folds)
        return replace(fit, crossfit=crossfit)

    def _stream(self, *key: int) -> np.random.Generator:
        return np.random.default_rng([*self.entropy, *key])

    def _first(self, setting: DeepSetting) -> Runs:
        """Return the runs of a setting before the first step; all settings use the same random numbers."""
        trainer = self.spec.trainer
        if self.start is not None:
            networks = self.start.folds.networks if self.parts.held_out else (self.start.network,)
            starts = [
                as_parameters(network_in_training_units(networks[fold], self.units)) for fold in self.parts.numbers
            ]
        else:
            starts = [
                first_parameters(part, self.spec, setting, self._stream(1, fold))
                for fold, part in enumerate(self.parts.rows)
            ]
        return Runs(tuple(trainer.start(parameters) for parameters in starts), ())

    def _trainer(self, setting: DeepSetting) -> Trainer:
        trainer = self.spec.trainer
        return trainer.slower(self.spec.options.value_rate) if setting.loss == VALUES_ONLY else trainer

    def _cycle(
        self, trainer: Trainer, setting: DeepSetting, run: Run, part: Jet, n_steps: int, key: tuple[int, ...]
    ) -> Run:
        """Return a run after a cycle on some rows, with random numbers that depend on ``key``."""
        rows = TrainingRows.of(part, in_training_units(setting.loss, self.units), np.float32)
        start = trainer.start(run.parameters)
        return trainer.advance(start, rows, n_steps, n_steps, self._stream(*key), self.clock.check)

    def _evidence(self, runs: tuple[Run, ...]) -> Evidence:
        """Return the errors at held-out rows, or at validation rows, which come last."""
        jet, networks = self.jet, [self._network(run) for run in runs]
        errors = np.full((len(jet), jet.y[:1].size), np.nan)
        for network, rows in zip(networks, self.parts.held_out, strict=False):
            judges = rows & jet.has_value
            errors[judges] = network.errors(jet[judges])
        others = None if self.validation is None else (self.validation, networks[0].errors(self.validation))
        return Evidence.at(jet, errors, others)

    def _on_all_rows(self, setting: DeepSetting, runs: Runs) -> tuple[Run, tuple[DeepCycle, ...]]:
        """Return the run after the last cycle, which continues the run without the first fold, if there is time."""
        options, began = self.spec.options, time.perf_counter()
        n_steps = options.cycle(options.last_share, runs.n_steps)
        trainer = self._trainer(setting).slower(options.last_rate)
        try:
            engine = replace(self, clock=NO_LIMIT) if self.longer else self  # longer cycles end at the deadline
            run = engine._cycle(trainer, setting, runs.runs[0], self.units(self.jet), n_steps, (3,))
        except TimeUpError:
            return runs.runs[0], runs.history
        seconds = time.perf_counter() - began
        done = DeepCycle(runs.n_steps + n_steps, last_loss((run,)), np.nan, seconds, ALL_ROWS)
        return run, (*runs.history, done)

    def _network(self, run: Run) -> DeepNetwork:
        """Return the network of a run, in the units of the data."""
        return as_network(run.parameters, self.spec.activation, self.jet.y.shape[1:]).in_units_of(self.units)


def fit_trained(
    jet: Jet,
    spec: DeepSpec,
    rng: np.random.Generator,
    *,
    validation: Jet | None = None,
    watch: Callable[[Attempt], None] | None = None,
) -> DeepFit:
    """Return a deep network that is trained on values and gradients.

    Parameters
    ----------
    jet : Jet
        The data, scaled.
    spec : DeepSpec
    rng : numpy.random.Generator
    validation : Jet, optional
        Rows that judge instead of folds. All rows of ``jet`` are then trained from the beginning.
    watch : callable, optional
        Called with each attempt.
    """
    engine = TrainedEngine(jet, spec, tuple(int(number) for number in rng.integers(2**32, size=4)), validation)
    choice = decide([engine], engine.policy, watch)
    return replace(engine.fit(choice.winner, jet), attempts=choice.attempts)


def last_loss(runs: tuple[Run, ...]) -> float:
    """Return the mean loss of the last batches of some runs."""
    return float(np.mean([np.mean(run.losses[-max(1, round(LOSS_SHARE * len(run.losses))) :]) for run in runs]))


def network_in_training_units(network: DeepNetwork, units: Scaling) -> DeepNetwork:
    """Return a network with inputs in training units, from a network in the units of the data."""
    scale = 1 / units.x_scale
    return network.in_units_of(replace(units, x_center=-units.x_center * scale, x_scale=scale))
