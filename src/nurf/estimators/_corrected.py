"""Draws of a base and its correction together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nurf._types import Array
from nurf._validation import as_finite
from nurf.estimators._fidelities import Base
from nurf.solvers import Draws

STEP = 1e-4  # of differences of standard deviations, in units of half the ranges of the inputs


@dataclass(frozen=True, eq=False)
class CorrectedDraws:
    """Plausible functions ``rho b(x) + g_i(x)``: the draws of a correction, and of the base where it is less certain.

    Draws of the correction differ from it by the factor by which its errors are larger because ``rho`` was estimated.
    With draws ``b_i`` of the base and the share ``a^2`` of its variance that the errors of the correction do not show,
    ``rho a(x) (b_i(x) - b(x))`` is added. The object is used like ``Draws``.

    Parameters
    ----------
    inner : Draws
        ``g_i``.
    base : Base
    others : Draws or CorrectedDraws, optional
        ``b_i``, as many as there are ``g_i``; None if the base has no draws.
    """

    inner: Draws
    base: Base
    others: Any = None

    def __len__(self) -> int:
        """Return the number of draws."""
        return len(self.inner)

    def __iter__(self) -> Iterator[CorrectedDraws]:
        """Iterate over single functions."""
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> CorrectedDraws:
        """Return one function, or some of them."""
        others = None if self.others is None else self.others[index]
        return replace(self, inner=self.inner[index], others=others)

    @property
    def fit(self) -> CorrectedDraws:
        """The fit itself, as a single function."""
        return replace(self, inner=self.inner.fit, others=None)

    @property
    def dimension(self) -> int:
        """The number of inputs."""
        return self.inner.dimension

    @property
    def output_shape(self) -> tuple[int, ...]:
        """() for one output, (k,) for ``k`` outputs."""
        return self.inner.output_shape

    def value(self, X: Any) -> Array:
        """Return the values of all draws at the points, of shape (n, m) or (n, m, k) for ``m`` points (m, d).

        Points of shape (n, m, d) have separate points for each draw.
        """
        result, X = self.inner.value(X), as_finite("X", X)
        center = self._each(self.inner.fit.value, X)
        result = center + self._each(self.base.value, X) + self.base.optimism * (result - center)
        share = self._share(X)
        if self.others is None or not np.any(share):
            return np.asarray(result)
        moved = self.others.value(self.base.in_order(X)) - self._each(self._alone.value, X)
        return np.asarray(result + self.base.factor * share * moved)

    def gradient(self, X: Any) -> Array:
        """Return the gradients of all draws at the points, of shape (n, m, d) or (n, m, k, d)."""
        result, X = self.inner.gradient(X), as_finite("X", X)
        center, optimism = self._each(self.inner.fit.gradient, X), np.expand_dims(self.base.optimism, -1)
        result = center + self._each(self.base.gradient, X) + optimism * (result - center)
        share = self._share(X)
        if self.others is None or not np.any(share):
            return np.asarray(result)
        factor, points = np.expand_dims(self.base.factor, -1), self.base.in_order(X)
        moved = self.others.value(points) - self._each(self._alone.value, X)
        turned = self.base.slopes_of(self.others.gradient(points)) - self._each(self._alone.gradient, X)
        return np.asarray(result + factor * (self._share_slopes(X) * moved[..., None] + share[..., None] * turned))

    @property
    def _alone(self) -> Base:
        """The base with the factor one."""
        return replace(self.base, factor=np.ones(self.output_shape))

    def _each(self, evaluate: Callable[[Array], Any], X: Array) -> Array:
        """Return a function of points (p, d) at points of all draws (m, d), or of each (n, m, d)."""
        found = np.asarray(evaluate(X.reshape(-1, X.shape[-1])))
        return found.reshape(*X.shape[:-1], *found.shape[1:])

    def _share(self, X: Array) -> Array:
        return np.zeros(1) if self.others is None else self._each(self.base.share, X)

    def _share_slopes(self, X: Array) -> Array:
        """Return the gradients of the share by differences, of shape (..., d)."""
        assert self.base.half is not None
        steps = np.diag(STEP * self.base.half)
        ends = [self._share(X[..., None, :] + sign * steps) for sign in (1, -1)]
        slopes = (ends[0] - ends[1]) / (2 * STEP)  # (..., d) or (..., d, k)
        slopes = np.moveaxis(slopes, -2, -1) if self.output_shape else slopes
        return np.asarray(slopes / np.where(self.base.half > 0, self.base.half, 1.0))
