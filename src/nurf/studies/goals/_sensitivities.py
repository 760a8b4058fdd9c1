"""Goal: total Sobol indices."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nurf._types import Array
from nurf.decisions import Sensitivity, sensitivity
from nurf.studies._ensemble import Ensemble
from nurf.studies._space import Space
from nurf.studies.goals._base import CANDIDATES, TARGETS, Answer, Question, View, pooled, require_target

POINTS = 2048


@dataclass(frozen=True)
class Sensitivities:
    """Total Sobol indices of all inputs, for all outputs together.

    The answer comes from ``nurf.decisions.sensitivity``, and its loss is the largest error of an index. A run is worth
    the variance that it takes away from the indices of draws, times the variance of the values that it takes away: few
    draws tell only roughly which values an index depends on.

    Parameters
    ----------
    target : float or None, default 0.05
        The largest error of an index that is accepted.
    """

    target: float | None = 0.05

    wider: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        require_target(self.target)

    def check(self, space: Space) -> None:
        """Raise an error if there are levels or constraints, for which indices are not defined."""
        if space.discrete.any() or space.constraints.texts:
            raise ValueError("the goal Sensitivities needs continuous inputs without constraints")

    def answer(self, view: View) -> Answer:
        """Return the indices, and for each draw the largest difference of an index."""
        result = self._asked(view)
        total = result.generalized_total
        losses = np.abs(total.answers - total.value).max(axis=1)
        return Answer(total, losses, self.target, "error of an index", result)

    def question(self, view: View) -> Question:
        """Return the criterion: the reduction of the variance of indices and values by a run."""
        answers = view.answer.estimate.answers
        targets, scales = view.typical(TARGETS), pooled(view.data.y.var(axis=0))
        d = answers.shape[1]

        def worth(ensemble: Ensemble) -> Array:
            indices = np.zeros(ensemble.mean.shape[0])
            values = np.zeros_like(indices)
            for o, scale in enumerate(scales):
                found = np.maximum(ensemble.reductions(o), 0.0)
                indices += found[:, :d].sum(axis=1)
                values += found[:, d:].sum(axis=1) / scale
            return np.sqrt(indices * values)

        return Question(view.typical(CANDIDATES), targets, worth, answers=answers)

    def _asked(self, view: View) -> Sensitivity:
        space = view.space
        correlation = space.free.factor @ space.free.factor.T if space.is_correlated else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that points are beyond the data, where the next runs are
            return sensitivity(
                _WithDraws(view),
                list(space.free.marginals),
                correlation=correlation,
                n_points=POINTS,
                n_draws=len(view.draws),
                random_state=view.rng,
            )


class _WithDraws:
    """A model with the draws of a view, so that answers belong to values of the same draws."""

    def __init__(self, view: View) -> None:
        self._view = view

    def draws(self, n: int, random_state: Any = None) -> Any:
        """Return the draws of the view."""
        return self._view.draws[:n]

    def fit(self, *_: Any) -> None:
        """Do nothing: the model is fitted."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view.model, name)
