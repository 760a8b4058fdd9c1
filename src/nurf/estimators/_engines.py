"""The engines behind ``Surrogate``: how much each of them may do within a time budget, and how it is raced."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from nurf._scaling import Scaling
from nurf.estimators._base import NetworkRegressor
from nurf.estimators._deep import DeepFeatureRegressor
from nurf.estimators._kernel import KernelFeatureRegressor
from nurf.estimators._regressor import RandomFeatureRegressor
from nurf.estimators._sparse import SparseFeatureRegressor
from nurf.jets import Jet
from nurf.solvers import VALUES_ONLY, LeaveOneOut, Loss
from nurf.solvers.process import row_total
from nurf.training import DeepOptions, Search
from nurf.training._progress import process_seconds, race_seconds
from nurf.training._race import finite

NOT_RUN, FAILED = "not run", "failed"
FAILURES = (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError)  # of one engine; the others go on


class OutOfBudgetError(Exception):
    """An engine cannot do anything useful in the time that is left."""


@dataclass(frozen=True)
class Effort:
    """The numbers of how much engines do.

    They are those of a budget of 20 seconds, and grow with the budget, so that the same budget gives the same models
    wherever it suffices. On a slow machine engines do less.

    Parameters
    ----------
    budget : float
        The budget in seconds that the other numbers are meant for.
    rows : int
        Rows of an infinitely wide network; the time grows with their third power.
    least_rows : int
        So many rows are fitted however short the time is: that takes about a second.
    neurons : int
        Sampled neurons with up to ``many_samples`` samples. The time grows with their square.
    many_samples : int
        More samples than this have ``many_neurons``.
    many_neurons : int
        Sampled neurons with many samples.
    few : int
        With up to so many samples for each input, "auto" is an infinitely wide network alone: so few samples do not
        tell which engine is the best, and it mostly is.
    least : float
        An engine that can only do less than this share of all that is not run.
    margin : float
        Errors that differ by a smaller share are equal; then the first engine wins.
    """

    budget: float = 20.0
    rows: int = 1500
    least_rows: int = 200
    neurons: int = 1000
    many_samples: int = 1000
    many_neurons: int = 2400
    few: int = 10
    least: float = 0.1
    margin: float = 0.02

    def for_budget(self, seconds: float) -> Effort:
        """Return the numbers for another budget.

        >>> Effort().for_budget(160.0)
        Effort(budget=160.0, rows=3000, least_rows=200, neurons=2828, many_samples=1000, many_neurons=6788, few=10,
               least=0.1, margin=0.02)
        """
        growth = seconds / self.budget
        neurons, many_neurons = (round(number * growth**0.5) for number in (self.neurons, self.many_neurons))
        rows = round(self.rows * growth ** (1 / 3))
        return replace(self, budget=seconds, rows=rows, neurons=neurons, many_neurons=many_neurons)


class Engine(ABC):
    """A way to fit a network, with a size that fits a time budget."""

    name: ClassVar[str]
    share: ClassVar[float] = 1.0  # of the time that is left, beside the engines that come after it
    always: ClassVar[bool] = False  # whether it is fitted even if no time is left, so that there is a model

    @abstractmethod
    def model(self, jet: Jet, effort: Effort, seconds: float) -> NetworkRegressor:
        """Return the estimator to be fitted to the data in about so many seconds; raise an error if there is none."""


class Wide(Engine):
    """Infinitely wide networks, if there are not too many values."""

    name = "wide"
    share = 0.75

    def model(self, jet: Jet, effort: Effort, seconds: float) -> NetworkRegressor:
        """Return an estimator with as many rows as there is time for."""
        n_values, wanted = _n_values(jet), min(effort.rows, row_total(jet))
        n_rows = max(_largest(wanted, seconds, process_seconds), min(effort.least_rows, wanted))
        if n_values > n_rows:
            raise OutOfBudgetError(f"{n_values} values are more than the {n_rows} rows that there is time for")
        return KernelFeatureRegressor(max_rows=n_rows)


class Sampled(Engine):
    """Sampled networks, if need be with few neurons."""

    name = "sampled"
    always = True

    def model(self, jet: Jet, effort: Effort, seconds: float) -> NetworkRegressor:
        """Return an estimator with as many neurons as there is time for, or the fewest."""
        wanted = effort.neurons if _n_values(jet) <= effort.many_samples else effort.many_neurons
        scaled = Scaling.fit(jet)(jet)

        def expected(n_neurons: int) -> float:
            model = RandomFeatureRegressor(n_neurons)
            model.n_features_in_ = jet.n_features
            return race_seconds(model._lanes(scaled, LeaveOneOut(), np.random.default_rng(0)))

        least = max(1, int(effort.least * wanted))
        return RandomFeatureRegressor(max(_largest(wanted, seconds, expected), least))


class Trained(Engine):
    """Deep networks with all weights trained."""

    name = "trained"

    def model(self, jet: Jet, effort: Effort, seconds: float) -> NetworkRegressor:
        """Return an estimator with as many steps as there is time for."""
        wanted = max(1, round(DeepOptions().steps_for(_n_values(jet)) * effort.budget / Effort.budget))
        limit = seconds if np.isfinite(seconds) else None
        n_steps = DeepFeatureRegressor(steps=wanted, time_budget=limit)._n_steps(Scaling.fit(jet)(jet))
        if n_steps < effort.least * wanted:
            raise OutOfBudgetError(f"there is time for {n_steps} of {wanted} steps")
        return DeepFeatureRegressor(steps=n_steps)


class Sparse(Engine):
    """Small networks with all weights trained, however long that takes."""

    name = "sparse"

    def model(self, jet: Jet, effort: Effort, seconds: float) -> NetworkRegressor:
        """Return an estimator with its default parameters."""
        return SparseFeatureRegressor()


@dataclass(frozen=True, eq=False)
class Given(Engine):
    """An estimator that is fitted as it is."""

    estimator: NetworkRegressor

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of its class."""
        return type(self.estimator).__name__

    def model(self, jet: Jet, effort: Effort, seconds: float) -> NetworkRegressor:
        """Return a copy that is not fitted."""
        model: NetworkRegressor = clone(self.estimator)
        return model


ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (Wide, Sampled, Trained, Sparse)}


def default_engines(jet: Jet) -> tuple[str, ...]:
    """Return the names of the engines that "auto" stands for."""
    return ("wide",) if _n_values(jet) <= Effort.few * jet.n_features else ("wide", "sampled", "trained")


@dataclass(frozen=True, eq=False)
class Contest:
    """What all engines are fitted to, and until when.

    Parameters
    ----------
    jet : Jet
        The data.
    validation : Jet or None
        Samples on which, together with the others, errors are estimated.
    effort : Effort
    engines : tuple of Engine
        All of them, in the order in which they are fitted.
    deadline : float
        The end of the budget, by ``time.perf_counter``.
    entropy : tuple of int
        Seed of the random numbers.
    options : dict
        Parameters of all estimators, if they have them.
    attributes : dict
        What estimators have to know of the data in the user's form.
    """

    jet: Jet
    validation: Jet | None
    effort: Effort
    engines: tuple[Engine, ...]
    deadline: float
    entropy: tuple[int, ...]
    options: dict[str, Any]
    attributes: dict[str, Any]

    def seconds(self, position: int) -> float:
        """Return the time that an engine may take: its share of what is left."""
        shares = [engine.share for engine in self.engines[position:]]
        return (self.deadline - time.perf_counter()) * shares[0] / sum(shares)

    def fitted(self, position: int) -> tuple[NetworkRegressor, list[Warning]]:
        """Return the fitted estimator of an engine, and its warnings."""
        engine, seconds = self.engines[position], self.seconds(position)
        if position and seconds <= 0 and not engine.always:
            raise OutOfBudgetError("there is no time left")
        model = engine.model(self.jet, self.effort, seconds)
        seed = np.random.SeedSequence(self.entropy, spawn_key=(position,)).generate_state(1)[0]
        known = model.get_params(deep=False)
        seeded = {"random_state": int(seed)} if known.get("random_state", 0) is None else {}
        model.set_params(**{key: value for key, value in self.options.items() if key in known}, **seeded)
        for name, value in self.attributes.items():
            setattr(model, name, value)
        return model, model._fit(self.jet, self.validation)


@dataclass(frozen=True, eq=False)
class EngineArm:
    """An engine as an arm of a race of a single size.

    Parameters
    ----------
    contest : Contest
    position : int
        Which of the engines it is.
    model : NetworkRegressor or None
        The fitted estimator.
    warnings : tuple of Warning
        Those of its fit.
    note : str
        Why there is none.
    seconds : float
        The time that it took.
    """

    contest: Contest
    position: int
    model: NetworkRegressor | None = None
    warnings: tuple[Warning, ...] = ()
    note: str = ""
    seconds: float = 0.0

    @property
    def key(self) -> Hashable:
        """The position."""
        return self.position

    @property
    def lane(self) -> str:
        """The name of the engine."""
        return self.contest.engines[self.position].name

    @property
    def family(self) -> Hashable:
        """The position."""
        return self.position

    @property
    def kind(self) -> str:
        """The name of the engine."""
        return self.lane

    @property
    def loss(self) -> Loss:
        """How much derivatives count."""
        return VALUES_ONLY if self.model is None else self.model.fit_.loss

    @property
    def regularity(self) -> tuple[float, ...]:
        """What could be fitted first, then the first engine."""
        return self.model is not None, -self.position

    @property
    def error(self) -> float:
        """The estimated error, in units of the standard deviation of the values; infinite if it is not known."""
        return np.inf if self.model is None else finite(self.model.fit_.error)

    @property
    def handicap(self) -> float:
        """That of engines after the first, which is the safe choice with few samples."""
        return Search().uncertainty(max(_n_values(self.contest.jet), 1)) if self.position else 1.0

    def __str__(self) -> str:
        return self.note if self.model is None else self.model._chosen

    def grown(self, size: int) -> EngineArm:
        """Return the arm, fitted, or with a note if it cannot be."""
        start = time.perf_counter()
        try:
            model, warnings = self.contest.fitted(self.position)
        except OutOfBudgetError as reason:
            return replace(self, note=f"{NOT_RUN}: {reason}")
        except FAILURES as failure:
            return replace(self, note=f"{FAILED}: {failure}", seconds=time.perf_counter() - start)
        return replace(self, model=model, warnings=tuple(warnings), seconds=time.perf_counter() - start)

    def variants(self) -> Iterator[EngineArm]:
        """Yield nothing: an engine races its settings itself."""
        yield from ()

    def refits(self) -> Iterator[EngineArm]:
        """Yield nothing."""
        yield from ()

    def branches(self, many: bool) -> Iterator[EngineArm]:
        """Yield nothing: there is no larger size."""
        yield from ()


def _n_values(jet: Jet) -> int:
    return int(np.count_nonzero(jet.has_value))


def _largest(wanted: int, seconds: float, expected: Callable[[int], float]) -> int:
    """Return the size that is wanted, or the first of smaller and smaller ones that is expected to be fast enough."""
    size = wanted
    while size > 1 and expected(size) > seconds:
        size = int(0.8 * size)
    return size
