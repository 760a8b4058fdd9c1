"""Training: batches, the schedule of the step size, and runs that can be continued."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nurf._types import Array, Floats, Index
from nurf.networks import Nonlinearity
from nurf.solvers.trained._loss import TrainingRows, loss_and_gradient, random_signs
from nurf.solvers.trained._soap import Soap, SoapState


@dataclass(frozen=True)
class Schedule:
    """Step sizes with a short linear warm-up and cosine decay to zero.

    Parameters
    ----------
    rate : float, default 2e-2
        The largest step size.
    warmup : int, default 100
        Steps of the warm-up, in which the moving means of the optimiser fill.
    """

    rate: float = 2e-2
    warmup: int = 100

    def __call__(self, step: int, n_steps: int) -> float:
        """Return the size of a step, counted from 1, of ``n_steps``."""
        rise = min(1.0, step / min(self.warmup, max(1, n_steps // 4)))
        return float(self.rate * rise * 0.5 * (1 + np.cos(np.pi * (step - 1) / n_steps)))


@dataclass(frozen=True, eq=False)
class Run:
    """A network in training.

    Attributes
    ----------
    parameters : tuple of arrays of shape (n_{l-1} + 1, n_l)
        The weights of each layer, with the bias as the last row.
    optimiser : SoapState
    step : int
        Steps of the schedule so far.
    losses : array of shape (step,)
        The losses of the batches.
    """

    parameters: Sequence[Floats]
    optimiser: SoapState
    step: int = 0
    losses: Array = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class Trainer:
    """The settings of training, which do not change during a run.

    Parameters
    ----------
    activation : Nonlinearity
    schedule : Schedule
    soap : Soap
    batch : int, default 250
        Number of points in each step. If there are fewer points, each step uses all of them.
    """

    activation: Nonlinearity
    schedule: Schedule = field(default_factory=Schedule)
    soap: Soap = field(default_factory=Soap)
    batch: int = 250

    def slower(self, factor: float) -> Trainer:
        """Return a trainer with step sizes multiplied by a factor."""
        return replace(self, schedule=replace(self.schedule, rate=factor * self.schedule.rate))

    def start(self, parameters: Sequence[Floats]) -> Run:
        """Return a run before its first step."""
        return Run(tuple(parameters), self.soap.init(parameters))

    def advance(
        self,
        run: Run,
        rows: TrainingRows,
        n: int,
        n_steps: int,
        rng: np.random.Generator,
        check: Callable[[], None] | None = None,
    ) -> Run:
        """Return the run after ``n`` more steps of a schedule of ``n_steps``.

        If the loss overflows, parameters and optimiser are returned unchanged. ``check`` is called before each step,
        and may raise an error to end the run.
        """
        parameters, optimiser = run.parameters, run.optimiser
        losses = np.empty(n)
        batches = _batches(len(rows), self.batch, rng)
        with np.errstate(over="ignore", invalid="ignore"):
            for i in range(n):
                if check is not None:
                    check()
                index = next(batches)
                part = rows if index is None else rows[index]
                signs = random_signs(len(part), part.values.shape[1], rng) if part.slopes is not None else None
                losses[i], gradients = loss_and_gradient(parameters, self.activation, part, signs)
                rate = self.schedule(run.step + i + 1, n_steps)
                parameters, optimiser = self.soap.step(parameters, gradients, optimiser, rate)
        if not np.isfinite(losses[-1]):
            parameters, optimiser = run.parameters, run.optimiser
        return replace(
            run,
            parameters=tuple(parameters),
            optimiser=optimiser,
            step=run.step + n,
            losses=np.concatenate([run.losses, losses]),
        )


def _batches(n: int, size: int, rng: np.random.Generator) -> Iterator[Index | None]:
    """Yield the indices of the points of each batch, without repetition within an epoch, or None for all points."""
    while True:
        if n <= size:
            yield None
            continue
        order = rng.permutation(n)
        for start in range(0, n - size + 1, size):
            yield order[start : start + size]
