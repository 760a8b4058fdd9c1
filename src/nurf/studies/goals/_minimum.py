"""Goal: the smallest value of an output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import erfcx, log_ndtr

from nurf._types import Array
from nurf._validation import is_number
from nurf.decisions import Estimate
from nurf.studies._ensemble import Ensemble
from nurf.studies._space import Space
from nurf.studies.goals._base import CANDIDATES, Answer, Question, View, require_target

SIZES = np.power(0.3, np.arange(1.0, 8.0))  # of steps around the best runs, in the unit cube
EAGER = 0.3  # of the deviations of draws, which with few runs are so large that every run explores: with all of them
# Hartmann 6 and Levy 4 took more than 60 calls, with 0.3 of them 41 and 22 (chosen after these two, one seed each)
AROUND, STEPS = 4, 16  # the best runs, and steps of each size around each of them
BEST, FINER = 8, 16  # candidates around which further ones are tried, and how many of each size


@dataclass(frozen=True)
class Minimum:
    """The smallest or largest value of an output, optionally with other outputs in given ranges.

    The answer is the best value of a run. A run is worth the expected improvement of this value, times the probability
    that the constraints are met there.

    Parameters
    ----------
    target : float or None, default 0.01
        The largest part of the range of the values by which a smaller value may be missed.
    output : int or str, default 0
    constraints : dict, optional
        The range ``(low, high)`` of other outputs, by place or name; None for no end.
    maximize : bool, default False
    """

    target: float | None = 0.01
    output: Any = 0
    constraints: dict[Any, Any] = field(default_factory=dict)
    maximize: bool = False

    wider: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        require_target(self.target)
        if not isinstance(self.constraints, Mapping):
            raise ValueError(f"`constraints` must be a dict {{output: (low, high)}}, got {self.constraints!r}")
        for name, ends in self.constraints.items():
            if np.shape(ends) != (2,) or not all(end is None or is_number(end) for end in ends):
                raise ValueError(f"`constraints` must be {{output: (low, high)}}, got {ends!r} for {name!r}")
            if None not in ends and not ends[0] <= ends[1]:
                raise ValueError(f"`constraints` must have low <= high, got {ends!r} for {name!r}")

    def check(self, space: Space) -> None:
        """Accept all inputs."""

    def answer(self, view: View) -> Answer:
        """Return the best value of a run, and the possible improvements by draws, near the best runs or elsewhere."""
        sign, o = self._sign, view.output(self.output)
        runs, best = self._runs(view)
        X = np.concatenate([view.data.X, *self._candidates(view, runs)])
        draws = view.draws.value(X).reshape(len(view.draws), len(X), -1)
        values = np.where(self._met(view, draws), sign * draws[..., o], np.inf)
        place = int(np.argmin(runs))
        own = sign * draws[:, place, o] if np.isfinite(best) else np.full(len(draws), np.inf)
        smallest = np.minimum(values.min(axis=1), own)
        width = np.ptp(view.data.y[:, o]) or 1.0
        gaps = np.subtract(own, smallest, out=np.full(len(own), np.inf), where=np.isfinite(own))
        losses = gaps / width
        answers = sign * smallest[np.isfinite(smallest)]
        estimate = Estimate(np.asarray(sign * best), answers if len(answers) else np.full(1, np.nan), np.zeros(()))
        missing = "" if np.isfinite(best) else "not known: no run meets the constraints yet"
        return Answer(estimate, losses, self.target, "missed part of the range", missing=missing)

    def question(self, view: View) -> Question:
        """Return the criterion: the expected improvement."""
        sign, o = self._sign, view.output(self.output)
        runs, best = self._runs(view)

        def worth(ensemble: Ensemble) -> Array:
            deviations = EAGER * np.sqrt(ensemble.variances)
            scores = self._log_met(view, ensemble.mean, deviations)
            if np.isfinite(best):
                scores = scores + log_improvement(best - sign * ensemble.mean[:, o], deviations[:, o])
            return np.exp(scores - scores.max(initial=-np.inf)) if np.isfinite(scores.max(initial=-np.inf)) else scores

        def refined(X: Array) -> Array:
            return view.near(X[:BEST], FINER, SIZES[2:])

        return Question(np.concatenate(self._candidates(view, runs)), view.data.X[:1], worth, refined)

    @property
    def _sign(self) -> float:
        return -1.0 if self.maximize else 1.0

    def _runs(self, view: View) -> tuple[Array, float]:
        """Return the values at the runs, with the sign such that smaller is better, and the smallest value.

        Values are infinite where constraints are missed. With noise, the values of the model count.
        """
        y = view.data.y
        o = view.output(self.output)
        if np.any(view.noise > 1e-8 * y.var(axis=0)):
            y = view.draws.fit.value(view.data.X).reshape(y.shape)
        values = np.where(self._met(view, y), self._sign * y[:, o], np.inf)
        return values, float(values.min())

    def _candidates(self, view: View, runs: Array) -> list[Array]:
        """Return candidates everywhere, and around the best runs."""
        centres = view.data.X[np.argsort(runs)[:AROUND]]
        return [view.everywhere(CANDIDATES), view.near(centres, STEPS, SIZES)]

    def _ranges(self, view: View) -> list[tuple[int, float, float]]:
        ends = [(view.output(name), *given) for name, given in self.constraints.items()]
        return [(o, -np.inf if a is None else float(a), np.inf if b is None else float(b)) for o, a, b in ends]

    def _met(self, view: View, values: Array) -> Any:
        """Return whether values (..., k) meet the constraints, of shape (...)."""
        met = np.ones(values.shape[:-1], bool)
        for o, low, high in self._ranges(view):
            met &= (values[..., o] >= low) & (values[..., o] <= high)
        return met

    def _log_met(self, view: View, mean: Array, deviations: Array) -> Array:
        """Return the logarithms of the probabilities (m,) that the constraints are met."""
        total = np.zeros(len(mean))
        for o, low, high in self._ranges(view):
            scale = np.maximum(deviations[:, o], np.finfo(float).tiny)
            below, above = log_ndtr((high - mean[:, o]) / scale), log_ndtr((mean[:, o] - low) / scale)
            total += np.log(np.maximum(np.exp(below) + np.exp(above) - 1, np.finfo(float).tiny))
        return total


def log_improvement(gain: Array, deviation: Array) -> Array:
    """Return the logarithm of ``E max(0, gain + deviation z)`` for a standard normal ``z``.

    With ``u = gain / s``, the result is ``log s + log(phi(u) + u Phi(u))``, and far below ``-2 log|u| + log phi(u)``
    (Ament, Daulton, Eriksson, Balandat, Bakshy, NeurIPS 2023).
    """
    scale = np.maximum(deviation, np.finfo(float).tiny)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        u = np.clip(gain / scale, -1e100, 1e100)
        log_density = -(np.maximum(u, -1e100) ** 2) / 2 - np.log(2 * np.pi) / 2
        below = np.where(u < 0, u, -1.0)
        tail = np.where(
            below > -1e4,
            np.log(np.maximum(1 + below * np.sqrt(np.pi / 2) * erfcx(-below / np.sqrt(2)), 1e-300)),
            -2 * np.log(-below),
        )
        direct = np.log(np.exp(log_density) + np.maximum(u, 0) * np.exp(log_ndtr(u)))
        return np.asarray(np.log(scale) + np.where(u < 0, log_density + tail, direct))
