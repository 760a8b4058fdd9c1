"""The data of a report: some samples, and predictions on held-out rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from nurf._types import Array, Index
from nurf.choosing import POLICY
from nurf.estimators import Surrogate

MOST_ROWS = 2000  # largest number of stored samples, and of stored predictions
COVERAGE = 0.9
ATTRIBUTE = "evidence_"  # attribute of a model that is saved with the data of its report


@dataclass(frozen=True, eq=False)
class Evidence:
    """Samples of a fit, and predictions of the same method on held-out rows.

    Parameters
    ----------
    targets : tuple of str
        Names of the outputs.
    source : str
        The source of the samples, such as the name of a file.
    n_samples : int
        Number of samples of the fit.
    X : array of shape (m, d)
        Some of the samples.
    y : array of shape (m, k)
        The values of the samples in ``X``.
    rows : array of shape (t,)
        Positions of the held-out rows among all samples.
    true, predicted : array of shape (t, k)
        The values of the held-out rows, and the predictions of the refits without them.
    intervals : array of shape (t, k, 2)
        The prediction intervals of the refits; NaN if there are none.
    gradient_errors : array of shape (k,)
        Root mean square errors of the predicted gradients at the held-out rows, relative to the root mean square of the
        gradients; NaN if no gradients are known.
    n_refits : int
        Number of refits; 0 if the rows are not from the samples.
    coverage : float
        Coverage of the intervals.
    test_source : str
        The source of the rows, if they are not from the samples.
    command : str
        The command that fitted the model.
    date : str
        The day of the fit, such as "2026-01-31".
    """

    targets: tuple[str, ...]
    source: str
    n_samples: int
    X: Array
    y: Array
    rows: Index
    true: Array
    predicted: Array
    intervals: Array
    gradient_errors: Array
    n_refits: int
    coverage: float = COVERAGE
    test_source: str = ""
    command: str = ""
    date: str = ""

    def __post_init__(self) -> None:
        k, t = len(self.targets), len(self.rows)
        shapes = {"y": (len(self.X), k), "true": (t, k), "predicted": (t, k), "intervals": (t, k, 2)}
        for name, expected in (shapes | {"gradient_errors": (k,)}).items():
            if getattr(self, name).shape != expected:
                raise ValueError(f"`{name}` must have shape {expected}, got {getattr(self, name).shape}")

    @classmethod
    def of(cls, model: Any) -> Self | None:
        """Return the evidence that is stored with a model, or None if there is none."""
        stored = getattr(model, ATTRIBUTE, None)
        if stored is None:
            return None
        try:
            return cls(**stored)
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"the stored data for reports must be as `gather` returns them: {error}") from error

    def attach(self, model: Any) -> None:
        """Store the evidence in a model as plain arrays and texts, so that it is saved with the model."""
        setattr(model, ATTRIBUTE, {field.name: getattr(self, field.name) for field in fields(self)})


def gather(
    model: Surrogate,
    X: Any,
    y: Any,
    *,
    gradients: Any = None,
    targets: Sequence[str] | None = None,
    source: str = "",
    rng: np.random.Generator | None = None,
    seconds: float = np.inf,
    command: str = "",
) -> Evidence:
    """Return some samples of a fit, and predictions on held-out rows, for reports.

    The rows are split into five folds, with equal points in the same fold. The chosen estimator is refitted without a
    fold, and predicts it. With up to 150 samples, each fold is held out in turn, as long as there is time; with more
    samples, only one fold.

    Parameters
    ----------
    model : Surrogate
        A fitted surrogate.
    X, y, gradients
        The samples of the fit.
    targets : sequence of str, optional
        Names of the outputs. Default is ``y``, or ``y0, y1, ...``.
    source : str, optional
        The source of the samples.
    rng : Generator, optional
        Random generator for the folds.
    seconds : float, optional
        Time after which no further refit is started. With 0 there are no refits and no predictions.
    command : str, optional
        The command that fitted the model, for the foot of the report.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    values = np.asarray(y, float)
    n, columns = len(values), values.reshape(len(values), -1)
    k = columns.shape[1]
    parts = list(_refits(model, X, values, gradients, rng, seconds))
    empty = (np.empty(0, np.int64), np.empty((0, k)), np.empty((0, k, 2)), np.empty((0, 2, k)))
    rows, predicted, intervals, squares = (np.concatenate(arrays) for arrays in zip(empty, *parts, strict=True))
    some, kept = (np.sort(rng.permutation(size)[:MOST_ROWS]) for size in (n, len(rows)))
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.divide(*np.sum(squares, axis=0)))
    return Evidence(
        targets=_names(targets, values),
        source=source,
        n_samples=n,
        X=np.asarray(X, float)[some],
        y=columns[some],
        rows=rows[kept],
        true=columns[rows[kept]],
        predicted=predicted[kept],
        intervals=intervals[kept],
        gradient_errors=errors,
        n_refits=len(parts),
        command=command,
        date=datetime.now(UTC).date().isoformat(),
    )


def predicted_at(
    model: Any,
    X: Any,
    y: Any,
    *,
    gradients: Any = None,
    targets: Sequence[str] | None = None,
    source: str = "",
) -> Evidence:
    """Return predictions of a fitted model on new rows, together with the samples that are stored in the model.

    Parameters
    ----------
    model : regressor of nurf
    X, y, gradients
        New rows, which are also used as the samples if none are stored.
    targets : sequence of str, optional
        Names of the outputs, if none are stored.
    source : str, optional
        The source of the rows.
    """
    stored = Evidence.of(model)
    values = np.asarray(y, float)
    columns = values.reshape(len(values), -1)
    slopes = None if gradients is None else np.asarray(gradients, float)
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted, intervals, squares = tested(model, X, values, slopes)
        errors = np.sqrt(np.divide(*squares[0]))
    kept = np.unique(np.linspace(0, len(values) - 1, MOST_ROWS).astype(np.int64))
    found: dict[str, Any] = {
        "rows": kept,
        "true": columns[kept],
        "predicted": predicted[kept],
        "intervals": intervals[kept],
        "gradient_errors": errors,
        "n_refits": 0,
        "test_source": source,
    }
    if stored is not None:
        return replace(stored, **found)
    return Evidence(_names(targets, values), "", 0, np.asarray(X, float)[kept], columns[kept], **found)


def _names(targets: Sequence[str] | None, y: Array) -> tuple[str, ...]:
    """Return the names of the outputs: the given names, or ``y``, or ``y0, y1, ...``."""
    if targets is not None:
        return tuple(targets)
    return ("y",) if y.ndim == 1 else tuple(f"y{q}" for q in range(y.shape[1]))


def _refits(
    model: Surrogate, X: Any, y: Array, gradients: Any, rng: np.random.Generator, seconds: float
) -> Iterator[tuple[Index, Array, Array, Array]]:
    """Yield the rows (t,) of each held-out fold, predictions (t, k), intervals, and squared errors of gradients."""
    start = time.perf_counter()
    _, points = np.unique(np.asarray(X, float), axis=0, return_inverse=True)
    n_points, n_folds = int(points.max()) + 1, POLICY.n_folds
    if n_points < 2 * n_folds:
        return
    fold_of = (rng.permutation(n_points) % n_folds)[np.ravel(points)]
    slopes = None if gradients is None else np.asarray(gradients, float)
    for fold in range(n_folds if len(y) <= POLICY.few_samples else 1):
        if seconds <= 0 or (fold and time.perf_counter() - start > seconds):
            return
        test = np.flatnonzero(fold_of == fold)
        train = np.flatnonzero(fold_of != fold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all samples gave the same warnings
            refit = clone(model.model_)
            refit.fit(_rows(X, train), y[train], gradients=None if slopes is None else slopes[train])
            yield test, *tested(refit, _rows(X, test), y[test], None if slopes is None else slopes[test])


def tested(model: Any, X: Any, y: Array, slopes: Array | None) -> tuple[Array, Array, Array]:
    """Return predictions (t, k), intervals (t, k, 2), and sums of squared gradient errors and gradients (1, 2, k)."""
    k = y.reshape(len(y), -1).shape[1]
    predicted = model.predict(X).reshape(len(y), k)
    try:
        intervals = model.predict_interval(X, COVERAGE).reshape(len(y), k, 2)
    except ValueError:  # too few samples
        intervals = np.full((len(y), k, 2), np.nan)
    squares = np.zeros((1, 2, k))
    if slopes is not None:
        known = slopes.reshape(len(y), k, -1)
        errors = known - model.predict_gradient(X).reshape(known.shape)
        squares[0] = [np.nansum(errors**2, axis=(0, 2)), np.nansum(known**2, axis=(0, 2))]
    return predicted, intervals, squares


def _rows(X: Any, rows: Index) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]
