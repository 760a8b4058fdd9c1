"""Goal: an accurate model over all inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nurf._types import Array
from nurf.decisions import Estimate
from nurf.studies._ensemble import Ensemble
from nurf.studies._space import Space
from nurf.studies.goals._base import CANDIDATES, TARGETS, Answer, Question, View, pooled, require_target


@dataclass(frozen=True)
class Error:
    """A model whose error is small over the distribution of the inputs.

    The answer is the root mean square error in units of the standard deviation of the values (of each output, and the
    root mean square of these). A run is worth the variance that it takes away, integrated over the inputs.

    Parameters
    ----------
    target : float, default 0.01
        The largest error that is accepted.
    """

    target: float | None = 0.01

    wider: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        require_target(self.target)

    def check(self, space: Space) -> None:
        """Accept all inputs."""

    def answer(self, view: View) -> Answer:
        """Return the error of the fit if a draw is the true function."""
        X = view.typical(CANDIDATES)
        fit, drawn = view.draws.fit.value(X), view.draws.value(X)
        fit, drawn = fit.reshape(len(X), -1), drawn.reshape(len(drawn), len(X), -1)
        squares = np.mean((drawn - fit) ** 2, axis=1) / pooled(fit.var(axis=0))
        errors = np.sqrt(squares.mean(axis=1))
        estimate = Estimate(np.sqrt(np.mean(errors**2)), errors, np.zeros(()))
        return Answer(estimate, errors, self.target, "relative error")

    def question(self, view: View) -> Question:
        """Return the criterion: the reduction of the variance by a run."""
        targets = view.typical(TARGETS)
        scales = pooled(view.data.y.var(axis=0))

        def worth(ensemble: Ensemble) -> Array:
            parts = [ensemble.reductions(o).sum(axis=1) / scale for o, scale in enumerate(scales)]
            return np.asarray(np.maximum(np.sum(parts, axis=0), 0.0))

        return Question(view.typical(CANDIDATES), targets, worth)
