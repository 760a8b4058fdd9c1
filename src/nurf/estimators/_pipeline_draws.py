"""Draws of a regressor behind transformers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nurf._types import Array
from nurf._validation import as_finite, as_floats
from nurf.estimators._transformers import derivative_of
from nurf.solvers import Draws


@dataclass(frozen=True, eq=False)
class PipelineDraws:
    """Plausible functions of the inputs of a pipeline: draws of its regressor, by the chain rule.

    The methods are the methods of ``Draws``.

    Parameters
    ----------
    draws : Draws
        Functions of the transformed inputs, with transformed values.
    pipeline : GradientPipeline
    """

    draws: Draws
    pipeline: Any

    def __len__(self) -> int:
        """Return the number of draws."""
        return len(self.draws)

    def __iter__(self) -> Iterator[PipelineDraws]:
        """Iterate over single functions."""
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> PipelineDraws:
        """Return one function, or some of them."""
        return replace(self, draws=self.draws[index])

    @property
    def fit(self) -> PipelineDraws:
        """The fit itself, as a single function."""
        return replace(self, draws=self.draws.fit)

    @property
    def dimension(self) -> int:
        """The number of inputs."""
        return int(self.pipeline.n_features_in_)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """() for one output, (k,) for ``k`` outputs."""
        return self.draws.output_shape

    def value(self, X: Any) -> Array:
        """Return the values of all draws at the points, of shape (n, m) or (n, m, k) for ``m`` points (m, d).

        Points of shape (n, m, d) have separate points for each draw.
        """
        points = self._checked(X)
        return self._back(self.draws.value(self._mapped(points)))

    def gradient(self, X: Any) -> Array:
        """Return the gradients of all draws at the points, of shape (n, m, d) or (n, m, k, d).

        Points of shape (n, m, d) have separate points for each draw.
        """
        points = self._checked(X)
        Z = self._mapped(points)
        gradients = self.draws.gradient(Z)
        p, outputs, k = Z.shape[-1], self.output_shape, int(np.prod(self.output_shape, dtype=int))
        rows = gradients.reshape(*gradients.shape[: gradients.ndim - 1 - len(outputs)], k, p)
        for _, step in reversed(self.pipeline._trace(self._framed(points), 1)):
            J = step.jacobian
            rows = rows @ (J if len(J) == 1 else J.reshape(*points.shape[:-1], *J.shape[1:]))
        if self.pipeline.target_ is not None:
            at = self._back(self.draws.value(Z)).reshape(-1, k)
            slopes = derivative_of(self.pipeline.target_, at).inverted()
            rows = slopes.before(rows.reshape(len(at), k, -1), None)[0]
        return np.asarray(rows.reshape(*gradients.shape[:-1], self.dimension))

    def _checked(self, X: Any) -> Array:
        points = as_finite("X", X)
        if points.ndim not in (2, 3) or points.shape[-1] != self.dimension:
            raise ValueError(f"`X` must be points of shape (m, {self.dimension}), got {points.shape}")
        return points

    def _mapped(self, points: Array) -> Array:
        """Return transformed points, of shape (m, p) or (n, m, p)."""
        Z = np.asarray(self.pipeline._mapped(self._framed(points)), float)
        return Z.reshape(*points.shape[:-1], Z.shape[1])

    def _framed(self, points: Array) -> Any:
        """Return the points as rows, of a data frame if the transformers know columns by name."""
        rows, names = points.reshape(-1, self.dimension), getattr(self.pipeline, "feature_names_in_", None)
        if names is None:
            return rows
        from pandas import DataFrame  # which the names came with

        return DataFrame(rows, columns=names)

    def _back(self, values: Array) -> Array:
        """Return values in the units of the data."""
        columns = values.reshape(-1, *self.output_shape)
        return np.asarray(self.pipeline._values_back(columns)).reshape(values.shape)


def box_of(X: Any) -> Array:
    """Return the smallest and the largest values of the columns, of shape (2, d); NaN if there are other than numbers.

    A transformer may take texts, which have no smallest one.
    """
    try:
        points = as_floats("X", X)
    except ValueError:
        return np.full((2, np.shape(X)[1]), np.nan)
    return np.array([np.nanmin(points, axis=0), np.nanmax(points, axis=0)])
