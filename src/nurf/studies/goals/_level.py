"""Goal: the contour of a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nurf._types import Array
from nurf._validation import is_number
from nurf.decisions import Estimate
from nurf.studies._ensemble import Ensemble
from nurf.studies._space import Space
from nurf.studies.goals._base import CANDIDATES, TARGETS, Answer, Question, View, require_target
from nurf.studies.goals._limits import sides

POINTS = 2048  # of which the share above the level is the answer


@dataclass(frozen=True)
class Level:
    """The contour at which an output has a given value.

    The answer is the share of the inputs with larger values. The loss is the share on the wrong side. A run is worth
    the points that it is expected to put on the right side.

    Parameters
    ----------
    level : float
    target : float or None, default 0.01
        The largest share of the inputs that may be on the wrong side.
    output : int or str, default 0
    """

    level: float
    target: float | None = 0.01
    output: Any = 0

    wider: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        require_target(self.target)
        if not is_number(self.level):
            raise ValueError(f"`level` must be a number, got {self.level!r}")

    def check(self, space: Space) -> None:
        """Accept all inputs."""

    def answer(self, view: View) -> Answer:
        """Return the share of the inputs above the level, and the share on the wrong side."""
        X, o = view.typical(POINTS), view.output(self.output)
        fit = view.draws.fit.value(X).reshape(len(X), -1)[:, o] > self.level
        drawn = view.draws.value(X).reshape(len(view.draws), len(X), -1)[..., o] > self.level
        estimate = Estimate(np.asarray(fit.mean()), drawn.mean(axis=1), np.zeros(()))
        return Answer(estimate, np.mean(drawn != fit, axis=1), self.target, "share on the wrong side")

    def question(self, view: View) -> Question:
        """Return the criterion: the reduction of the misclassified share by a run."""
        targets, o = view.typical(TARGETS), view.output(self.output)
        margins = view.draws.fit.value(targets).reshape(len(targets), -1)[:, o] - self.level
        weights = np.full(len(targets), 1 / max(len(targets), 1))

        def worth(ensemble: Ensemble) -> Array:
            return sides(ensemble, o, margins, weights)

        return Question(view.typical(CANDIDATES), targets, worth)
