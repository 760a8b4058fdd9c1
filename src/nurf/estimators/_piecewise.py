"""Predictions for arrays in memory, on disk, or of Dask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nurf._blocks import row_blocks
from nurf._types import Array
from nurf.data import is_dask, is_on_disk, lazily
from nurf.estimators._base import NetworkRegressor

PREDICTED_ROWS = 2**14  # at once, of arrays that are not in memory


class PredictsPiecewise(NetworkRegressor):
    """A regressor that predicts for arrays on disk block by block, and lazily for those of Dask."""

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the values at the points, of shape (n,) or (n, k), and by choice their standard deviations.

        Arrays on disk are read in blocks. Dask arrays give Dask arrays, which compute nothing until they are asked.
        """
        return self._piecewise(super().predict, X, (), return_std)

    def predict_gradient(self, X: Any, return_std: bool = False) -> Any:
        """Return the gradients at the points, of shape (n, d) or (n, k, d), and by choice their standard deviations.

        As for ``predict``, of arrays in memory, on disk, or of Dask.
        """
        return self._piecewise(super().predict_gradient, X, ("d",), return_std)

    def predict_hessian(self, X: Any) -> Any:
        """Return the Hessians at the points, of shape (n, d, d) or (n, k, d, d), as ``predict`` does."""
        return self._piecewise(super().predict_hessian, X, ("d", "d"))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Any:
        """Return intervals that contain new values with probability ``coverage``, of shape (n, 2) or (n, k, 2).

        See ``NetworkRegressor.predict_interval``; arrays on disk and those of Dask are treated as by ``predict``.
        """
        return self._piecewise(partial(super().predict_interval, coverage=coverage), X, (2,))

    def _piecewise(self, method: Callable[..., Any], X: Any, axes: tuple[Any, ...], return_std: bool = False) -> Any:
        """Return what a method predicts: at once, in blocks, or lazily. ``axes`` are those behind rows and outputs."""
        method = partial(method, return_std=True) if return_std else method
        if not (is_dask(X) or is_on_disk(X)):
            return method(X)
        check_is_fitted(self, "fit_")
        if len(X.shape) != 2 or X.shape[1] != self.n_features_in_:
            raise ValueError(f"`X` must have shape (n, {self.n_features_in_}), got {X.shape}")
        if is_dask(X):
            lengths = tuple(self.n_features_in_ if axis == "d" else axis for axis in axes)
            shape = (*self.fit_.network.output_shape, *lengths)
            if not return_std:
                return lazily(method, X, shape)
            return tuple(lazily(_Member(method, number), X, shape) for number in range(2))
        parts = [method(np.asarray(X[rows])) for rows in row_blocks(X.shape[0], 1, PREDICTED_ROWS)]
        return tuple(map(np.concatenate, zip(*parts, strict=True))) if return_std else np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _Member:
    """One member of the tuple that a function returns."""

    function: Callable[[Array], tuple[Array, ...]]
    number: int

    def __call__(self, X: Array) -> Array:
        return self.function(X)[self.number]
