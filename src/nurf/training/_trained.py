"""Fits of deep networks, all weights trained: the choice of a setting, runs without folds, a last cycle."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nurf._scaling import Scaling
from nurf._types import Array
from nurf.jets import Jet
from nurf.networks import DeepNetwork
from nurf.solvers import VALUES_ONLY
from nurf.solvers._coverage import MIN_ERRORS
from nurf.solvers.trained import Run, Trainer, TrainingRows
from nurf.training._crossfit import CrossFit, assign_folds
from nurf.training._deep import (
    DeepSetting,
    DeepSpec,
    as_network,
    as_parameters,
    first_parameters,
    in_training_units,
    squared_errors,
    training_units,
)
from nurf.training._deep_fit import ALL_ROWS, NO_FOLDS, DeepCycle, DeepFit
from nurf.training._fit import Trial
from nurf.training._lanes import probes_around
from nurf.training._search import Search

TRIAL_STEPS = 40  # that say how long a step takes
MAX_STEPS = 10**7  # that a time budget is turned into
NO_FOLD = -1
LOSS_SHARE = 0.1  # of the steps of a cycle, the last ones, whose mean loss is that of the cycle


def fit_trained(
    jet: Jet,
    spec: DeepSpec,
    rng: np.random.Generator,
    *,
    validation: Jet | None = None,
    start: DeepFit | None = None,
    watch: Callable[[DeepCycle], None] | None = None,
) -> DeepFit:
    """Return a deep network that is trained on values and gradients.

    Some rows are held out. On the others every setting is trained for a short cycle, and the best of them for a long
    one, unless that makes the errors of the held-out rows larger, their mean square and their median. At the end a
    short cycle takes all rows. The errors are those of the runs without the held-out rows: of one run, or with few
    samples of one for each fold.

    Parameters
    ----------
    jet : Jet
        The data, scaled. Hessians are not used.
    spec : DeepSpec
    rng : numpy.random.Generator
    validation : Jet, optional
        Rows that take the place of those that are held out. Then all rows of ``jet`` are trained from the beginning.
    start : DeepFit, optional
        A fit to go on from, with its setting. Rows that it held out are held out again, and new ones are assigned.
    watch : callable, optional
        Called with each cycle, as soon as it is there.
    """
    return _Training(jet, spec, rng, validation, start, watch).fit()


def steps_within(seconds: float, jet: Jet, spec: DeepSpec, rng: np.random.Generator) -> int:
    """Return the number of steps of a run with which a fit takes about so many seconds, measured by some steps.

    Parameters
    ----------
    seconds : float
    jet : Jet
        The data, scaled.
    spec : DeepSpec
        ``n_steps`` is ignored.
    rng : numpy.random.Generator
    """
    units = training_units(jet)
    setting, data, trainer = spec.settings[0], units(jet), spec.trainer
    rows = TrainingRows.of(data, in_training_units(setting.loss, units), np.float32)
    began = time.perf_counter()
    run = trainer.start(first_parameters(data, spec, setting, rng))
    sampling = time.perf_counter() - began
    run = trainer.advance(run, rows, TRIAL_STEPS // 4, TRIAL_STEPS, rng)  # the first steps take longer
    began = time.perf_counter()
    trainer.advance(run, rows, TRIAL_STEPS, 2 * TRIAL_STEPS, rng)
    step = (time.perf_counter() - began) / TRIAL_STEPS
    n_samples, n_arms = int(np.count_nonzero(jet.has_value)), len(spec.settings)
    left = seconds - spec.options.folds_of(n_samples)[1] * n_arms * sampling
    return max(
        1, bisect_right(range(MAX_STEPS), left / step, key=lambda n: spec.options.total(n, n_samples, n_arms)) - 1
    )


@dataclass(frozen=True, eq=False)
class _Arm:
    """A setting and its runs, one without each fold."""

    setting: DeepSetting
    runs: tuple[Run, ...]
    error: float = np.inf
    typical: float = np.inf  # the median of the absolute errors, which one row far from the others does not decide
    history: tuple[DeepCycle, ...] = ()


class _Training:
    """One fit in the making: the data in training units, what is held out, and the arms."""

    def __init__(
        self,
        jet: Jet,
        spec: DeepSpec,
        rng: np.random.Generator,
        validation: Jet | None,
        start: DeepFit | None,
        watch: Callable[[DeepCycle], None] | None,
    ) -> None:
        self.spec, self.start = spec, start
        self.watch = (lambda cycle: None) if watch is None else watch
        self.units = training_units(jet) if start is None else start.units
        self.X, self.data, self.shape = jet.X, self.units(jet), jet.y.shape[1:]
        self.entropy = [int(number) for number in rng.integers(2**32, size=4)]
        self.n_folds, self.fold_of, self.numbers = 1, np.full(len(jet), NO_FOLD), [0]
        self.parts, self.held_out = [self.data], [] if validation is None else [validation]
        if validation is None and np.count_nonzero(jet.has_value) >= MIN_ERRORS:
            self._split(jet)
        self.all_rows = len(self.parts[0]) == len(jet)
        self.n_errors = sum(int(np.count_nonzero(part.has_value)) for part in self.held_out)
        self.trials: list[Trial] = []

    def _split(self, jet: Jet) -> None:
        """Hold out each of some folds: rows of a fit that goes on as before, others at random."""
        n_folds, n_runs = self.spec.options.folds_of(int(np.count_nonzero(jet.has_value)))
        fold_of = assign_folds(jet, n_folds, self._stream(0))
        if self.start is not None:
            n_runs = min(n_runs, len(self.start.folds.networks))
            fold_of = self.start.folds.assigned(jet.X, fold_of)
        outside = {fold: fold_of == fold for fold in range(n_runs)}
        outside = {k: rows for k, rows in outside.items() if jet.has_value[rows].any() and jet.has_value[~rows].any()}
        if outside:
            self.fold_of, self.numbers, self.n_folds = fold_of, list(outside), max(n_folds, 2)
            self.parts = [self.data[~rows] for rows in outside.values()]
            self.held_out = [jet[rows] for rows in outside.values()]

    def _stream(self, *key: int) -> np.random.Generator:
        return np.random.default_rng([*self.entropy, *key])

    def fit(self) -> DeepFit:
        """Return the fit."""
        arms, n_steps, options = self._first_arms(), self.spec.n_steps, self.spec.options
        short = options.cycle(options.race_share, n_steps)
        while self.held_out and (len(arms) > 1 or not arms[0].history):
            arms = self._chosen([self._advanced(arm, short) for arm in arms])
        before, best = arms[0], self._advanced(arms[0], n_steps)
        if before.error < best.error and before.typical < best.typical:  # more steps only fitted noise
            best = before
        run, history = best.runs[0], best.history
        if not self.all_rows:
            run, history = self._on_all_rows(best)
        return self._result(best, run, history)

    def _first_arms(self) -> list[_Arm]:
        trainer = self.spec.trainer
        if self.start is not None:
            networks = (self.start.network,) if self.all_rows else self.start.folds.networks
            starts = [as_parameters(network_in_training_units(networks[fold], self.units)) for fold in self.numbers]
            return [_Arm(self.start.setting, tuple(trainer.start(parameters) for parameters in starts))]
        arms = []
        for setting in self.spec.settings[: None if self.held_out else 1]:  # all with the same random numbers
            starts = [
                first_parameters(part, self.spec, setting, self._stream(1, fold))
                for fold, part in enumerate(self.parts)
            ]
            arms.append(_Arm(setting, tuple(trainer.start(parameters) for parameters in starts)))
        return arms

    def _advanced(self, arm: _Arm, n_steps: int) -> _Arm:
        """Return the arm after a cycle."""
        began, trainer = time.perf_counter(), self._trainer(arm)
        runs = tuple(
            self._cycle(trainer, arm, run, part, n_steps, (2, fold, len(arm.history)))
            for fold, (run, part) in enumerate(zip(arm.runs, self.parts, strict=True))
        )
        error, typical = self._errors(runs)
        seconds, so_far = time.perf_counter() - began, arm.history[-1].n_steps if arm.history else 0
        done = DeepCycle(so_far + n_steps, last_loss(runs), error, seconds, str(arm.setting))
        self.watch(done)
        if n_steps < self.spec.n_steps:
            lane = "values alone" if arm.setting.loss == VALUES_ONLY else "all data"
            label = f"{arm.setting}, {done.n_steps} steps"
            self.trials.append(Trial(label, sum(self.spec.hidden), error, seconds, lane, arm.setting.loss))
        return replace(arm, runs=runs, error=error, typical=typical, history=(*arm.history, done))

    def _trainer(self, arm: _Arm) -> Trainer:
        trainer = self.spec.trainer
        return trainer.slower(self.spec.options.value_rate) if arm.setting.loss == VALUES_ONLY else trainer

    def _cycle(self, trainer: Trainer, arm: _Arm, run: Run, part: Jet, n_steps: int, key: tuple[int, ...]) -> Run:
        """Return a run of the arm after a cycle on some rows, with random numbers that depend on ``key``."""
        rows = TrainingRows.of(part, in_training_units(arm.setting.loss, self.units), np.float32)
        return trainer.advance(trainer.start(run.parameters), rows, n_steps, n_steps, self._stream(*key))

    def _errors(self, runs: tuple[Run, ...]) -> tuple[float, float]:
        """Return the root mean square error of the held-out rows, outputs added up, and the median of their errors."""
        if not self.held_out:
            return np.nan, np.nan
        jets = [jet.with_values() for jet in self.held_out]
        squares = np.concatenate([squared_errors(self._network(run), jet) for run, jet in zip(runs, jets, strict=True)])
        weights = np.concatenate([jet.weights(0) for jet in jets])
        return float(np.sqrt(weights @ squares / weights.sum())), float(np.sqrt(np.median(squares)))

    def _chosen(self, arms: list[_Arm]) -> list[_Arm]:
        """Return the arms that go on, the best first: one, or in the beginning one with derivatives and one without."""
        if len(arms) == 1:
            return arms
        options = self.spec.options
        doubt = Search().uncertainty(self.n_errors)
        lanes = [[arm for arm in arms if (arm.setting.loss == VALUES_ONLY) == alone] for alone in (False, True)]
        best = [min(lane, key=lambda arm: arm.error) for lane in lanes if lane]
        best.sort(key=lambda arm: arm.error * (1.0 if arm.setting.loss == VALUES_ONLY else doubt))
        near = len(best) > 1 and best[1].error <= options.rival * best[0].error
        return best if len(arms[0].history) == 1 and near else best[:1]

    def _on_all_rows(self, arm: _Arm) -> tuple[Run, tuple[DeepCycle, ...]]:
        """Return the run after the last cycle, from the run without the first fold on."""
        options, began = self.spec.options, time.perf_counter()
        so_far = arm.history[-1].n_steps
        n_steps = options.cycle(options.last_share, so_far)
        trainer = self._trainer(arm).slower(options.last_rate)
        run = self._cycle(trainer, arm, arm.runs[0], self.data, n_steps, (3,))
        seconds = time.perf_counter() - began
        done = DeepCycle(so_far + n_steps, last_loss((run,)), np.nan, seconds, ALL_ROWS)
        self.watch(done)
        return run, (*arm.history, done)

    def _network(self, run: Run) -> DeepNetwork:
        """Return the network of a run, in the units of the data."""
        return as_network(run.parameters, self.spec.activation, self.shape).in_units_of(self.units)

    def _result(self, arm: _Arm, run: Run, history: tuple[DeepCycle, ...]) -> DeepFit:
        network, without = self._network(run), [self._network(part) for part in arm.runs]
        folds = NO_FOLDS if self.start is None else self.start.folds
        fit = DeepFit(
            network=network,
            output_errors=np.full(network.n_outputs, np.nan),
            loss=arm.setting.loss,
            trials=tuple(self.trials) if len(self.spec.settings) > 1 else (),
            setting=arm.setting,
            history=history,
            units=self.units,
            folds=folds.updated(self.X, self.fold_of, dict(zip(self.numbers, without, strict=True))),
        )
        if self.n_errors < MIN_ERRORS:
            return fit
        crossfit = CrossFit.of(network, without, self.held_out, self.n_folds)
        return replace(fit, crossfit=crossfit, output_errors=self._output_errors(crossfit))

    def _output_errors(self, crossfit: CrossFit) -> Array:
        """Return the errors at the held-out rows, or what fits differ by around the samples if that is more."""
        if len(crossfit.folds) == 1:
            return crossfit.output_errors
        probes = probes_around(self.X[self.data.has_value], self._stream(4))
        return np.maximum(crossfit.output_errors, self.spec.options.instability * crossfit.deviations(probes))


def last_loss(runs: tuple[Run, ...]) -> float:
    """Return the mean loss of the last batches of some runs."""
    return float(np.mean([np.mean(run.losses[-max(1, round(LOSS_SHARE * len(run.losses))) :]) for run in runs]))


def network_in_training_units(network: DeepNetwork, units: Scaling) -> DeepNetwork:
    """Return a network of the units of the data as one in training units, which only scale the inputs."""
    scale = 1 / units.x_scale
    return network.in_units_of(replace(units, x_center=-units.x_center * scale, x_scale=scale))
