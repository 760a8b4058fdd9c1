"""What takes part in a race: engines, their efforts, and candidates with the evidence for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nurf._types import Array
from nurf.choosing._evidence import Evidence
from nurf.jets import Jet
from nurf.solvers import VALUES_ONLY, Loss

ALL_DATA, VALUES_ALONE = "all data", "values alone"  # the names of what engines are fitted to


@dataclass(frozen=True)
class Effort:
    """The effort of an engine for its candidates at one step of the schedule.

    Parameters
    ----------
    size : int
        The measure of the effort: neurons, samples or steps.
    rounds : tuple of int
        For each round, the number of best candidates whose variants are judged.
    cheap : int
        The number of best candidates whose cheap variants are judged after the last round.
    many : bool
        Whether candidates of a smaller size continue in several ways, or only in the most promising way.
    keep : int
        The largest number of candidates, of different families, that advance to the next size.
    within : float
        Candidates are judged while the smallest error of the engine is within this factor of the smallest of all
        engines.
    improvement : float
        The relative decrease of the smallest error of the engine that is required for a larger effort.
    """

    size: int
    rounds: tuple[int, ...] = ()
    cheap: int = 0
    many: bool = False
    keep: int = 1
    within: float = np.inf
    improvement: float = -np.inf


@dataclass(frozen=True, eq=False)
class Judged:
    """A candidate after some effort, and the evidence for it.

    Parameters
    ----------
    engine : Engine
    candidate : hashable
    size : int
        The effort, in the unit of the engine.
    own : Evidence
        The evidence, in the units of the engine.
    seconds : float
        Time that it took.
    found : object
        What the engine needs for a larger effort.
    metric : array of shape (q, d), optional
        A learned linear map of the inputs, after which the function varies about equally along all directions.
    """

    engine: Engine
    candidate: Hashable
    size: int
    own: Evidence
    seconds: float = 0.0
    found: Any = None
    metric: Array | None = None

    @cached_property
    def evidence(self) -> Evidence:
        """The evidence, in units of the standard deviation of the values."""
        return self.own if self.engine.back is None else self.engine.back(self.own)

    @property
    def error(self) -> float:
        """The root mean square error at samples that the fit did not see."""
        return self.evidence.error


@dataclass(frozen=True)
class Attempt:
    """The record of a candidate that was judged.

    Attributes
    ----------
    engine : str
        The name of the engine.
    data : str
        "all data" or "values alone".
    label : str
        What the candidate is.
    size : int
        The effort: neurons, samples or steps.
    error : float
        The estimated root mean square error.
    seconds : float
        Time that it took.
    loss : Loss
        The weights of the derivatives.
    """

    engine: str
    data: str
    label: str
    size: int
    error: float
    seconds: float
    loss: Loss = VALUES_ONLY


class Engine(ABC):
    """A way to fit networks to given data: its candidates, and how to judge them.

    Attributes
    ----------
    name : str
        The kind of network.
    data : str
        What the engine is fitted to: "all data" or "values alone".
    first_step : int
        The step of the schedule at which the engine begins: cheap engines begin early.
    transform : str
        The transformation of inputs and values that the engine is fitted in; empty if there is none.
    back : callable, optional
        The map from evidence in the units of the engine to units of the standard deviation of the values.
    """

    name: str
    data: str
    first_step: int
    transform: str = ""
    back: Callable[[Evidence], Evidence] | None = None

    @property
    def ignores_derivatives(self) -> bool:
        """Whether the engine leaves out derivatives that are known."""
        return self.data == VALUES_ALONE

    @property
    @abstractmethod
    def efforts(self) -> Sequence[Effort]:
        """The efforts of the engine, one for each step of the schedule from the first on."""

    @abstractmethod
    def candidates(self) -> Iterable[Hashable]:
        """Return the first candidates, the most promising first."""

    @abstractmethod
    def judge(self, candidate: Any, size: int, before: Judged | None = None) -> Judged:
        """Return the evidence for a candidate with an effort; ``before`` is its result with a smaller effort."""

    @abstractmethod
    def record(self, judged: Judged) -> Attempt:
        """Return the record of a candidate."""

    @abstractmethod
    def fit(self, judged: Judged, given: Jet) -> Any:
        """Return the fit of a candidate to all data; ``given`` are the data with all known derivatives."""

    @abstractmethod
    def again(self, fit: Any) -> Judged:
        """Return the candidate of an earlier fit with its learned settings, judged on the data of this engine."""

    def variants(self, judged: Judged) -> Iterable[Hashable]:
        """Return candidates that differ from a good candidate in one setting; by default none."""
        return ()

    def cheap(self, judged: Judged) -> Iterable[Hashable]:
        """Return variants that are cheap to judge; by default none."""
        return ()

    def onwards(self, judged: Judged, many: bool) -> Iterable[Hashable]:
        """Return candidates for the next size that continue a good candidate; by default the candidate itself."""
        return (judged.candidate,)

    def informed(self, metric: Array, size: int) -> Iterable[Hashable]:
        """Return candidates that use a linear map of the inputs learned by another engine; by default none."""
        return ()

    def family(self, candidate: Any) -> Hashable:
        """Return the family of a candidate: candidates that advance together are of different families."""
        return self.name

    def kind(self, candidate: Any) -> Hashable:
        """Return the class of functions that a candidate can represent."""
        return self.name

    def confirmed(self, judged: Judged) -> Judged:
        """Return a candidate with honest evidence, if the evidence of the race is only approximate."""
        return judged
