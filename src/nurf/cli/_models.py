"""Models from files, and their predictions as tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nurf.estimators import load

BLOCK = 10_000  # rows that are predicted at a time


def loaded(path: Path) -> Any:
    """Return the regressor in a file."""
    try:
        fitted = load(path)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error
    if not hasattr(fitted, "predict_interval"):
        raise ValueError(f"{path.name}: expected a regressor, got a {type(fitted).__name__}")
    return fitted


def input_names(model: Any) -> list[str]:
    """Return the names of the inputs in the table, or ``x0, x1, ...`` without names."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def target_names(model: Any) -> tuple[str, ...]:
    """Return the names of the targets in the table, or without names ``y``, or ``y0, y1, ...``."""
    stored = getattr(model, "evidence_", None)
    k = int(np.size(model.y_scale_))
    names = stored.get("targets") if isinstance(stored, dict) else None
    if isinstance(names, tuple) and len(names) == k:
        return tuple(map(str, names))
    return ("y",) if k == 1 else tuple(f"y{q}" for q in range(k))


def predictions(model: Any, X: Any, *, gradient: bool, std: bool, interval: float | None) -> Any:
    """Return predictions as a frame: values, and optionally deviations, intervals and derivatives, target by target."""
    blocks = [X.iloc[start : start + BLOCK] for start in range(0, len(X), BLOCK)]
    frames = [pd.DataFrame(dict(_columns(model, block, gradient, std, interval))) for block in blocks]
    return pd.concat(frames)


def _columns(model: Any, X: Any, gradient: bool, std: bool, interval: float | None) -> Iterator[tuple[str, Any]]:
    n, targets = len(X), target_names(model)
    points = X if hasattr(model, "feature_names_in_") else X.to_numpy()
    values = [part.reshape(n, -1) for part in _both(model.predict, points, std)]
    ends = None if interval is None else model.predict_interval(points, interval).reshape(n, -1, 2)
    derivatives = _both(model.predict_gradient, points, std) if gradient else ()
    slopes = [part.reshape(n, len(targets), -1) for part in derivatives]
    for q, target in enumerate(targets):
        for suffix, part in zip(("", "_std"), values, strict=False):
            yield f"{target}{suffix}", part[:, q]
        if ends is not None:
            yield f"{target}_low", ends[:, q, 0]
            yield f"{target}_high", ends[:, q, 1]
        for suffix, part in zip(("", "_std"), slopes, strict=False):
            for j, name in enumerate(input_names(model)):
                yield f"d{target}_{name}{suffix}", part[:, q, j]


def _both(predict: Any, points: Any, std: bool) -> tuple[Any, ...]:
    """Return predictions, and optionally their standard deviations."""
    return tuple(predict(points, return_std=True)) if std else (predict(points),)
