"""Predictions for arrays in memory, on disk, or of Dask."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
        parts = [partial(_member, predict=predict, number=number) for number in range(2)] if pair else [predict]
        lazy = tuple(lazily(part, X, shape) for part in parts)
        return lazy if pair else lazy[0]
    pieces = [predict(np.asarray(X[rows])) for rows in row_blocks(X.shape[0], 1, PREDICTED_ROWS)]
    return tuple(map(np.concatenate, zip(*pieces, strict=True))) if pair else np.concatenate(pieces)


def _member(X: Array, predict: Callable[[Array], tuple[Array, ...]], number: int) -> Array:
    """Return one of the arrays that are predicted."""
    return predict(X)[number]
