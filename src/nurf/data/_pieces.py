"""Predictions for arrays in memory, arrays on disk and Dask arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nurf._blocks import row_blocks
from nurf._types import Array
from nurf.data._arrays import is_on_disk
from nurf.data._dask import is_dask, lazily

PREDICTED_ROWS = 2**14  # rows that are predicted at once if the array is on disk


def in_pieces(predict: Callable[[Any], Any], X: Any, d: int, shape: tuple[int, ...], pair: bool = False) -> Any:
    """Return the predictions for the rows of ``X``: at once, or in blocks from disk, or lazily for Dask.

    Parameters
    ----------
    predict : callable
        A function from an array of shape (n, d) to an array of shape (n, ...), or to two such arrays.
    X : array of shape (n, d)
    d : int
        Number of inputs.
    shape : tuple of int
        Shape of a prediction for one row.
    pair : bool, default False
        Whether ``predict`` returns two arrays.
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
    """Return the predicted array with the given number."""
    return predict(X)[number]
