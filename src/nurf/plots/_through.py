"""The common base of slices and heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nurf._types import Array
from nurf._validation import as_finite, is_whole
from nurf.plots._axes import deviations_of

POINTS = 201  # of each line
FAINTEST = 0.1  # opacity of a sample far away


def checked(X: Any, point: Any, d: int) -> tuple[Array, Array]:
    """Return the samples (n, d) and the point (d,), by default the mean of the samples."""
    samples = as_finite("X", X)
    if samples.ndim != 2 or samples.shape[1] != d or len(samples) == 0:
        raise ValueError(f"`X` must have shape (n, d) with d = {d}, as in the fit, got {samples.shape}")
    center = samples.mean(axis=0) if point is None else as_finite("point", point)
    if center.shape != (d,):
        raise ValueError(f"`point` must have shape (d,) = ({d},), got {center.shape}")
    return samples, center


def sample_values(y: Any, n: int) -> Array:
    """Return the values of ``n`` samples, of shape (n,) or (n, k)."""
    values = as_finite("y", y)
    if values.ndim not in (1, 2) or len(values) != n:
        raise ValueError(f"`y` must have as many rows as `X`, {n}, got shape {values.shape}")
    return values


def like(X: Any, points: Array) -> Any:
    """Return the points as a frame with the columns of ``X`` if ``X`` is a frame, else unchanged."""
    return type(X)(dict(zip(X.columns, points.T, strict=True))) if hasattr(X, "columns") else points


def one_output(values: Array, output: int) -> Array:
    """Return the values of one output, of shape (n,)."""
    columns = values.reshape(len(values), -1)
    if not (is_whole(output, 0) and output < columns.shape[1]):
        raise ValueError(f"`output` must be a whole number from 0 to {columns.shape[1] - 1}, got {output!r}")
    return np.asarray(columns[:, output])


def positions(inputs: Sequence[int | str], labels: list[str]) -> list[int]:
    """Return the positions of inputs, which are given by position or name."""
    known = {label: j for j, label in enumerate(labels)} | {j: j for j in range(len(labels))}
    for chosen in inputs:
        if chosen not in known:
            raise ValueError(
                f"`inputs` must be names of {labels} or positions from 0 to {len(labels) - 1}, got {chosen!r}"
            )
    if len(inputs) == 0:
        raise ValueError("`inputs` must name at least one input, got none")
    return [known[chosen] for chosen in inputs]


def fading(samples: Array, center: Array, shown: int | Sequence[int]) -> Array:
    """Return RGBA colours (n, 4) of samples that fade with the distance from the point in the other inputs."""
    deviations = deviations_of(samples)
    distances = (samples - center) / np.where(deviations > 0, deviations, 1.0)
    others = np.delete(distances, shown, axis=1)
    squares = (others**2).sum(axis=1) / max(others.shape[1], 1)
    colors = np.zeros((len(samples), 4))  # black
    colors[:, 3] = np.clip(np.exp(-squares / 2), FAINTEST, 1.0)
    return colors


def lines_through(samples: Array, center: Array) -> Array:
    """Return points on the lines along all inputs, over the range of the samples, of shape (d, POINTS, d)."""
    d = len(center)
    lines = np.tile(center, (d, POINTS, 1))
    lines[range(d), :, range(d)] = np.linspace(samples.min(axis=0), samples.max(axis=0), POINTS).T
    return lines


def most_varying(heights: Array) -> list[int]:
    """Return the positions of all inputs, sorted by the variation of the predictions (d, POINTS) along them."""
    return [int(j) for j in np.argsort(heights.min(axis=1) - heights.max(axis=1), kind="stable")]
