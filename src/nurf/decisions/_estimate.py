"""A number computed from a model, with its errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._types import Array

COVERAGE = 0.9


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number, or an array of numbers, computed from a model. ``np.asarray`` and ``float`` return its value.

    An estimate has two separate errors: the error of the model (``interval``), which more samples of the function
    reduce, and the error of integrals as sums over points (``error``), which more points reduce.

    Parameters
    ----------
    value : array
        The answer of the fitted model.
    answers : array of shape (n, ...)
        The answers of ``n`` draws of the model, at the same points.
    error : array
        The standard error of the value due to the points.
    above : array of shape (n, ...), optional
        Bounds of the answers of the draws from above, if a draw leaves a range of answers.
    """

    value: Array
    answers: Array
    error: Array
    above: Array | None = None

    @classmethod
    def of(cls, function: Callable[[Array], Array], fit: Array, draws: Array) -> Estimate:
        """Return the answer to a question about values at points.

        Parameters
        ----------
        function : callable
            Maps values of shape (n, m, ...), of ``n`` functions at ``m`` points, to answers of shape (n, ...).
        fit : array of shape (R, m, ...)
            The values of the fit at ``R`` independent sets of points. One set counts as exact.
        draws : array of shape (n, m, ...)
            The values of all draws at the first set. The differences between the answers of draws and fit there are
            added to the value, so that few points suffice.
        """
        value, sets = function(fit.reshape(1, -1, *fit.shape[2:]))[0], function(fit)
        error = deviation(sets, 0, 1) / np.sqrt(len(fit)) if len(fit) > 1 else np.zeros_like(value)
        return cls(value, value + function(draws) - sets[0], error)

    @property
    def interval(self) -> Array:
        """The interval that contains the answer for the true function with probability 0.9, of shape (..., 2).

        Its ends are the 0.05 quantile of the answers of the draws and the 0.95 quantile of their upper bounds, which
        are the answers themselves if there are no others; it also contains the answer of the fit. The ``j``-th smallest
        of ``n`` draws is the ``j / (n + 1)`` quantile, which a further draw is below with this probability.
        """
        return self.interval_of(COVERAGE)

    def interval_of(self, coverage: float) -> Array:
        """Return the interval for another probability, of shape (..., 2)."""
        if not 0 < coverage < 1:
            raise ValueError(f"`coverage` must be a number between 0 and 1, got {coverage!r}")
        above = self.answers if self.above is None else self.above
        low = np.quantile(self.answers, (1 - coverage) / 2, axis=0, method="weibull")
        high = np.quantile(above, (1 + coverage) / 2, axis=0, method="weibull")
        return np.stack([np.minimum(low, self.value), np.maximum(high, self.value)], axis=-1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.value, dtype=dtype)

    def __float__(self) -> float:
        return float(self.value)

    def __getitem__(self, index: Any) -> Estimate:
        """Return some of the numbers."""
        chosen = (slice(None), *np.index_exp[index])
        above = None if self.above is None else self.above[chosen]
        return Estimate(self.value[index], self.answers[chosen], self.error[index], above)

    def __str__(self) -> str:
        if np.ndim(self.value):
            return "[" + ", ".join(str(self[i]) for i in range(len(self.value))) + "]"
        low, high = self.interval
        return f"{self.value:.4g} ({low:.4g} to {high:.4g})"

    def times(self, factor: Array) -> Estimate:
        """Return the numbers times positive factors."""
        above = None if self.above is None else self.above * factor
        return Estimate(self.value * factor, self.answers * factor, self.error * factor, above)

    def columns(self, name: str) -> dict[str, Array]:
        """Return columns of a table: the value, both ends of the interval, and the standard error of the points."""
        low, high = np.moveaxis(self.interval, -1, 0)
        ends = {"": self.value, "_low": low, "_high": high, "_error": self.error}
        return {name + end: np.ravel(part) for end, part in ends.items()}


def deviation(values: Array, axis: int, ddof: int = 0) -> Array:
    """Return standard deviations along an axis, without overflow of squares."""
    size = np.abs(values).max(initial=0.0) or 1.0
    return np.asarray((values / size).std(axis=axis, ddof=ddof) * size)


def sizes_of(values: Array) -> Array:
    """Return the largest absolute values of the outputs (..., k), of shape (k,), and 1 for outputs that are zero."""
    sizes = np.abs(values).reshape(-1, values.shape[-1]).max(axis=0)
    return np.where(sizes > 0, sizes, 1.0)


def table_of(columns: dict[str, Any]) -> Any:
    """Return columns as a data frame, or unchanged without pandas."""
    try:
        from pandas import DataFrame
    except ModuleNotFoundError:
        return columns
    return DataFrame(columns)
