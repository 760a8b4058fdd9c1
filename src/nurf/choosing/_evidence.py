"""Evidence: errors at samples that a fit did not see, and estimates from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nurf._types import Array, Mask
from nurf.jets import Jet

TINY = float(np.finfo(float).tiny)
MOST = 0.9  # share of the squared error that few samples may carry
SEED = 3  # of the samples that are drawn to estimate the bias of the selection


@dataclass(frozen=True, eq=False)
class Evidence:
    """Errors of predictions at samples that a fit did not see.

    Candidates of all engines are judged at the same samples, so that two of them can be compared in pairs.

    Parameters
    ----------
    errors : array of shape (n, k)
        Errors at all samples with a value, followed by validation samples; NaN at samples that do not judge.
    weights : array of shape (n,)
        The weights of these samples.
    is_value : array of shape (n,), optional
        The mask of the samples that are values; the others are functionals. By default all are values.
    elsewhere : float, optional
        The mean square of the error where there are no samples, as far as it is known, outputs added up.
    """

    errors: Array
    weights: Array
    is_value: Mask | None = None
    elsewhere: float | None = None

    @classmethod
    def at(cls, jet: Jet, errors: Array, others: tuple[Jet, Array] | None = None) -> Evidence:
        """Return the evidence of errors (n, k) at the samples of a jet.

        Validation samples and their errors (``others``) judge alone if they are given, because the samples of the jet
        may have been fitted.
        """
        judges = jet.judges
        is_value = None if jet.functionals is None else jet.has_value[judges]
        errors, weights = errors[judges], jet.weights(0)[judges]
        if others is None:
            return cls(errors, weights, is_value)
        validation, further = others
        valued = validation.has_value
        return cls(
            np.concatenate([np.full_like(errors, np.nan), further[valued]]),
            np.concatenate([weights, validation.weights(0)[valued]]),
        )

    @property
    def judges(self) -> Mask:
        """The mask of the samples that judge, shape (n,)."""
        return np.asarray(~np.isnan(self.errors[:, 0]))

    @property
    def output_errors(self) -> Array:
        """The root mean square error of each output, shape (k,); NaN if no sample judges."""
        judges = self.judges
        weights = self.weights[judges]
        if not weights.sum() > 0:
            return np.full(self.errors.shape[1], np.nan)
        return np.asarray(np.sqrt(weights @ self.errors[judges] ** 2 / weights.sum()))

    @property
    def of_values(self) -> Evidence:
        """The errors of values, without errors of functionals."""
        if self.is_value is None:
            return self
        return Evidence(self.errors[self.is_value], self.weights[self.is_value])

    @property
    def n_decisive(self) -> int:
        """The smallest number of samples that carry nine tenths of the squared error, outputs added up."""
        judges = self.judges
        squares = np.sort(self.weights[judges] * np.sum(self.errors[judges] ** 2, axis=1))[::-1]
        return int(np.searchsorted(np.cumsum(squares), MOST * squares.sum())) + 1 if squares.any() else 0

    @property
    def error(self) -> float:
        """The root mean square error, outputs added up; infinite if it is not a number, so that it loses."""
        error = float(np.sqrt(np.sum(self.output_errors**2)))
        return error if np.isfinite(error) else float("inf")


def advantage(challenger: Evidence, incumbent: Evidence, floor: float) -> tuple[float, float]:
    """Return the advantage of a challenger in logarithms of squared errors, and its standard error.

    The squared errors ``a_i`` and ``b_i`` of both at the same samples give the weighted mean of
    ``log((b_i + c) / (a_i + c))``, where ``c`` is ``floor`` times the smaller of both mean squares: errors far below
    the mean square do not decide, and single large errors count by their logarithm.
    """
    weights, a, b = _pairs(challenger, incumbent)
    if not weights.sum() > 0:
        return 0.0, np.inf
    c = floor * min(weights @ a, weights @ b) / weights.sum() + TINY
    return _mean_and_spread(np.log((b + c) / (a + c)), weights)


def excess(challenger: Evidence, incumbent: Evidence) -> tuple[float, float]:
    """Return the excess of the mean square error of a challenger over the incumbent, and its standard error.

    If both know the mean square of their error where there are no samples, its excess is added.
    """
    weights, a, b = _pairs(challenger, incumbent)
    if not weights.sum() > 0:
        return 0.0, np.inf
    mean, spread = _mean_and_spread(a - b, weights)
    if challenger.elsewhere is None or incumbent.elsewhere is None:
        return mean, spread
    return mean + challenger.elsewhere - incumbent.elsewhere, spread


def _pairs(challenger: Evidence, incumbent: Evidence) -> tuple[Array, Array, Array]:
    """Return the weights of the samples that judge both, and the squared errors of both there, each of shape (m,)."""
    both = challenger.judges & incumbent.judges
    a, b = (np.sum(each.errors[both] ** 2, axis=1) for each in (challenger, incumbent))
    return challenger.weights[both], a, b


def _mean_and_spread(numbers: Array, weights: Array) -> tuple[float, float]:
    """Return the weighted mean of numbers, and its standard error."""
    mean = float(weights @ numbers / weights.sum())
    return mean, float(np.sqrt(weights**2 @ (numbers - mean) ** 2)) / float(weights.sum())


def selection_optimism(winner: Evidence, candidates: Sequence[Evidence], factor: float, n_draws: int) -> float:
    """Return the factor by which the error of a winner is too small because it is the best of several candidates.

    Samples are drawn with replacement. The candidate with the smallest mean square error at the drawn samples is judged
    at the samples that were not drawn, and so is the winner (Tsamardinos, Greasidou and Borboudakis 2018,
    doi:10.1007/s10994-018-5714-4). With the means of both over all draws::

        factor^2 = mean square of the chosen / mean square of the winner, at least 1.

    Parameters
    ----------
    winner : Evidence
    candidates : sequence of Evidence
        All candidates among which the winner was chosen. Candidates with other samples are ignored.
    factor : float
        Candidates whose error is larger by this factor are also ignored: they could not have won, but draws without a
        single huge error might choose them.
    n_draws : int
    """
    judges = winner.judges
    n = int(np.count_nonzero(judges))
    near = [
        each
        for each in candidates
        if each is not winner and np.array_equal(each.judges, judges) and each.error <= factor * winner.error
    ]
    if not near or n < 2:
        return 1.0
    squares = np.stack([np.sum(each.errors[judges] ** 2, axis=1) for each in (winner, *near)], axis=1)
    weights = winner.weights[judges]
    counts = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), size=n_draws) * weights
    others = (counts == 0) * weights
    known = (counts.sum(axis=1) > 0) & (others.sum(axis=1) > 0)
    if not known.any():
        return 1.0
    inside, outside = (
        np.maximum(drawn @ squares / drawn.sum(axis=1)[:, None], TINY) for drawn in (counts[known], others[known])
    )
    chosen = outside[np.arange(len(outside)), np.argmin(inside, axis=1)]
    return float(np.sqrt(max(1.0, np.mean(chosen) / np.mean(outside[:, 0]))))
