"""Goal: the probability that a limit is exceeded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nurf._types import Array
from nurf._validation import as_finite_or_nan
from nurf.decisions import REPLICATES, Estimate, Limits, Mixture, RareEvent, answer, normal_points
from nurf.studies._ensemble import Ensemble
from nurf.studies._space import Space
from nurf.studies.goals._base import CANDIDATES, TARGETS, Answer, Question, View, require_target
from nurf.studies.goals._limits import sides

POINTS = 4096  # of importance sampling
COUNTED = 16384  # points whose share is counted, with levels or constraints
WIDER = (1.0, 2.0, 3.0)  # standard deviations of candidates around the centre


@dataclass(frozen=True)
class Failure:
    """The probability that a limit is exceeded.

    The answer comes from ``nurf.decisions.failure``, and its loss is the relative error. A run is worth the probability
    of the points that it is expected to put on the right side of the limit. With levels or constraints, points are
    counted, and small probabilities are not resolved.

    Parameters
    ----------
    above, below : float, or sequence of ``k`` floats, optional
        The limits: values above ``above`` or below ``below`` exceed them. With several outputs there is one for each,
        None for none.
    target : float or None, default 0.1
        The largest relative error that is accepted.
    combine : {"any", "all"}, default "any"
        Whether any limit must be exceeded, or all of them at once.
    """

    above: Any = None
    below: Any = None
    target: float | None = 0.1
    combine: str = "any"

    wider: ClassVar[float] = 2.0  # failures are rare: runs that follow the inputs see none

    def __post_init__(self) -> None:
        require_target(self.target)
        for name in ("above", "below"):
            as_finite_or_nan(name, _floats(getattr(self, name)))
        if np.all(np.isnan(np.append(_floats(self.above), _floats(self.below)))):
            raise ValueError("`above` or `below` must be given, got no limit")
        if self.combine not in ("any", "all"):
            raise ValueError(f"`combine` must be 'any' or 'all', got {self.combine!r}")

    def check(self, space: Space) -> None:
        """Accept all inputs."""

    def answer(self, view: View) -> Answer:
        """Return the probability, and the relative differences of the draws from it."""
        result = self._asked(view)
        probability = self._counted(view) if result is None else result.probability
        value = float(probability)
        losses = np.abs(probability.answers / value - 1) if value > 0 else np.full(len(probability.answers), np.inf)
        return Answer(probability, losses, self.target, "relative error of the probability", result)

    def question(self, view: View) -> Question:
        """Return the criterion: the reduction of the misclassified probability by a run."""
        result, space, limits = view.answer.result, view.space, self._limits(view)
        d = space.dimension
        centres = np.zeros((1, d))
        if result is not None and len(result.design_points):
            centres = np.concatenate([centres, space.to_normal(result.design_points)])
        mixture = Mixture(centres)
        Z = mixture.points(normal_points(TARGETS // 8, d + 1, view.rng)).reshape(-1, d)
        wide = [scale * normal_points(CANDIDATES // 32, d, view.rng).reshape(-1, d) for scale in WIDER]
        near = mixture.points(normal_points(CANDIDATES // 16, d + 1, view.rng)).reshape(-1, d)
        targets = space.from_normal(Z)
        margins = limits.margins(view.draws.fit.value(targets))
        weights = mixture.weights(Z) * space.allowed(targets) / len(Z)

        def worth(ensemble: Ensemble) -> Array:
            parts = [sides(ensemble, int(o), margins[:, i], weights) for i, o in enumerate(limits.outputs)]
            return np.asarray(np.sum(parts, axis=0))

        candidates = view.usable(space.from_normal(np.concatenate([near, *wide])))
        return Question(candidates, targets, worth)

    def _limits(self, view: View) -> Limits:
        shape = () if view.data.y.shape[1] == 1 else view.data.y.shape[1:]
        above, below = (None if v is None else _floats(v) for v in (self.above, self.below))
        return Limits.of(shape, above, below, self.combine)

    def _asked(self, view: View) -> Any:
        """Return the answer of ``nurf.decisions.failure``, or None with levels or constraints."""
        space = view.space
        if space.discrete.any() or space.constraints.texts:
            return None
        limits = self._limits(view)
        sample = RareEvent(space.free, view.draws, limits).sample("auto", POINTS // REPLICATES, view.rng)
        return answer(space.free, view.draws, limits, sample)

    def _counted(self, view: View) -> Estimate:
        X, limits = view.typical(COUNTED), self._limits(view)
        fit = limits.exceeded(view.draws.fit.value(X)).mean()
        return Estimate(np.asarray(fit), limits.exceeded(view.draws.value(X)).mean(axis=1), np.zeros(()))


def _floats(limits: Any) -> Array:
    """Return limits as an array, NaN for None."""
    try:
        return np.array(np.nan if limits is None else limits, float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`above` and `below` must be numbers, or None for no limit, got {limits!r}") from error
