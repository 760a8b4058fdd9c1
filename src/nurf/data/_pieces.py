"""Predictions for arrays in memory, on disk, or of Dask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._blocks import row_blocks
from nurf._types import Array
from nurf.data._arrays import is_on_disk
from nurf.data._dask import is_dask, lazily

PREDICTED_ROWS = 2**14  # at once, of arrays that are not in memory


def in_pieces(predict: Callable[[Any], Any], X: Any, d: int, shape: tuple[int, ...], pair: bool = False) -> Any:
    """Return what a function predicts for the rows of ``X``: at once, or in blocks from disk, or lazily for Dask.

    Parameters
    ----------
    predict : callable
        From an array of shape (n, d) to one of shape (n, ...), or to two of these.
    X : array of shape (n, d)
    d : int
        Number of inputs.
    shape : tuple of int
        That of a prediction for one row.
    pair : bool, default False
        Whether there are two arrays.
    """
    if not (is_dask(X) or is_on_disk(X)):
        return predict(X)
    if len(X.shape) != 2 or X.shape[1] != d:
        raise ValueError(f"`X` must have shape (n, {d}), got {X.shape}")
    if is_dask(X):
        return tuple(lazily(_Member(predict, i), X, shape) for i in range(2)) if pair else lazily(predict, X, shape)
    parts = [predict(np.asarray(X[rows])) for rows in row_blocks(X.shape[0], 1, PREDICTED_ROWS)]
    return tuple(map(np.concatenate, zip(*parts, strict=True))) if pair else np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _Member:
    """One member of the tuple that a function returns."""

    function: Callable[[Array], tuple[Array, ...]]
    number: int

    def __call__(self, X: Array) -> Array:
        return self.function(X)[self.number]
