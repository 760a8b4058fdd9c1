"""The base of goals: their view of a study, and their answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from nurf._types import Array
from nurf._validation import is_number
from nurf.decisions import Estimate
from nurf.studies._design import sobol
from nurf.studies._ensemble import Ensemble
from nurf.studies._learning import Data
from nurf.studies._space import Space

SURE = 0.9  # probability with which a target must be met
CANDIDATES = 1024
TARGETS = 512
WORKING = 0.5  # probability of a value: where there is none, nothing can be asked of a model


@dataclass(frozen=True, eq=False)
class View:
    """The view that a goal has of a study.

    Parameters
    ----------
    space : Space
    data : Data
        The runs with values.
    model : fitted estimator
    draws : Draws
        Plausible functions given the runs.
    noise : array of shape (k,)
        The variances of the noise of values.
    outputs : tuple of str
        The names of the outputs.
    works : callable
        Maps inputs (m, d) to the probabilities that a run ends with a value.
    rng : numpy.random.Generator
    answered : callable
        Maps a view to the answer, which is kept for the same runs.
    """

    space: Space
    data: Data
    model: Any
    draws: Any
    noise: Array
    outputs: tuple[str, ...]
    works: Callable[[Array], Array]
    rng: np.random.Generator
    answered: Callable[[View], Answer]

    @property
    def answer(self) -> Answer:
        """The answer of the goal to the same runs."""
        return self.answered(self)

    def typical(self, n: int) -> Array:
        """Return points (n, d) that follow the distributions of the inputs, where runs are allowed and work."""
        return self._filled(n, self.space.from_unit)

    def everywhere(self, n: int) -> Array:
        """Return points (n, d) spread between the ends of the inputs, where runs are allowed and work."""
        low, high = self.space.ends
        return self._filled(n, lambda U: self.space.from_unit(low + (high - low) * U))

    def _filled(self, n: int, map_: Callable[[Array], Array]) -> Array:
        size = 2 ** int(np.ceil(np.log2(n)))
        found = np.empty((0, self.space.dimension))
        for _ in range(10):
            X = map_(sobol(self.space.dimension, size, int(self.rng.integers(2**31))))
            found = np.concatenate([found, self.usable(X)])
            if len(found) >= n:
                return found[:n]
            size *= 2
        return found if len(found) else self.data.X

    def near(self, centres: Array, n: int, sizes: Array) -> Array:
        """Return points around centres (c, d): for each of the sizes ``n`` steps in some of the inputs.

        Steps are normal in the unit cube, with the sizes as standard deviations, and end at its ends.
        """
        U, (low, high) = self.space.to_unit(centres), self.space.ends
        d = self.space.dimension
        base = np.repeat(U, n * len(sizes), axis=0)
        steps = self.rng.normal(size=base.shape) * np.tile(np.repeat(sizes, n), len(U))[:, None]
        moved = self.rng.random(base.shape) < max(1 / d, self.rng.choice([0.2, 0.5, 1.0]))
        moved[np.arange(len(base)), self.rng.integers(d, size=len(base))] = True
        return self.usable(self.space.from_unit(np.clip(base + steps * moved, low, high)))

    def usable(self, X: Array) -> Array:
        """Return the points among some (m, d) that meet the constraints and where a run probably ends with a value."""
        X = X[self.space.allowed(X)]
        return X[self.works(X) >= WORKING] if len(X) else X

    def output(self, name: Any) -> int:
        """Return the position of an output, given by its position or its name."""
        if isinstance(name, str) and name in self.outputs:
            return self.outputs.index(name)
        if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < len(self.outputs):
            return int(name)
        raise ValueError(f"outputs must be one of {list(self.outputs)} or its place, got {name!r}")


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of a study to its question, and its uncertainty.

    Parameters
    ----------
    estimate : Estimate
        The answer with its interval.
    losses : array of shape (n,)
        By how much the answer is wrong if a draw of the model is the true function.
    target : float or None
        The largest loss that is accepted.
    what : str
        What the loss is, in a few words.
    result : object, optional
        The result of ``nurf.decisions`` that the answer comes from.
    missing : str, optional
        Why there is no answer yet.
    """

    estimate: Estimate
    losses: Array
    target: float | None
    what: str
    result: Any = None
    missing: str = ""

    @property
    def loss(self) -> float:
        """The bound that the loss does not exceed with probability 0.9."""
        return float(np.quantile(self.losses, SURE, method="higher")) if len(self.losses) else np.inf

    @property
    def sure(self) -> float:
        """The probability that the target is met; NaN without a target."""
        return float(np.mean(self.losses <= self.target)) if self.target is not None else np.nan

    @property
    def reached(self) -> bool:
        """Whether the target is met with probability 0.9."""
        return self.target is not None and self.sure >= SURE

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the answer, for the file of the study."""
        low, high = np.moveaxis(self.estimate.interval, -1, 0)
        value = {"value": self.estimate.value, "low": low, "high": high}
        found = {name: np.ravel(part).tolist() for name, part in value.items()}
        return {**found, "loss": self.loss, "sure": None if np.isnan(self.sure) else self.sure}

    def __str__(self) -> str:
        if self.missing:
            return self.missing
        target = "" if self.target is None else f", target {self.target:.3g} met with probability {self.sure:.2f}"
        return f"{self.estimate}; {self.what} at most {self.loss:.3g} with probability {SURE:g}{target}"


@dataclass(frozen=True, eq=False)
class Question:
    """The criterion for the next runs of a goal.

    Parameters
    ----------
    candidates : array of shape (m, d)
    targets : array of shape (t, d)
        Points at which more must be known.
    worth : callable
        Maps an ``Ensemble`` of both to numbers (m,) >= 0.
    refined : callable, optional
        Maps the best candidates (c, d) to further ones around them.
    answers : array of shape (n, q), optional
        Answers of the draws, which come before the targets in the ensemble.
    """

    candidates: Array
    targets: Array
    worth: Callable[[Ensemble], Array]
    refined: Callable[[Array], Array] | None = None
    answers: Array | None = None


class Goal(Protocol):
    """The question that a study answers."""

    target: float | None
    wider: ClassVar[float]  # factor of the normal scores of runs that fill the space

    def check(self, space: Space) -> None:
        """Raise an error if the question cannot be asked of the inputs."""
        ...

    def answer(self, view: View) -> Answer:
        """Return the answer of the model and its draws."""
        ...

    def question(self, view: View) -> Question:
        """Return the criterion for the next runs."""
        ...


def require_target(target: Any) -> None:
    """Raise an error if a target is neither None nor a positive number."""
    if target is not None and not (is_number(target) and target > 0):
        raise ValueError(f"`target` must be a number > 0 or None, got {target!r}")


def pooled(variances: Array) -> Array:
    """Return variances (..., k) of outputs as divisors: zeros are replaced by one."""
    return np.where(variances > 0, variances, 1.0)
