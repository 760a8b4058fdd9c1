"""Predicted against true values, and residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from nurf._types import Array
from nurf._validation import as_finite
from nurf.plots._axes import axes_or_current
from nurf.plots._style import style_of

MANY = 3000  # number of points above which they overlap, so their density is plotted instead


def predicted_against_true(y_true: Any, y_predicted: Any, *, intervals: Any = None, ax: Axes | None = None) -> Axes:
    """Plot predicted against true values, with the diagonal and the relative error ``|f - y| / |y|``.

    Up to 3000 points are plotted individually; more points are counted in hexagonal bins.

    Parameters
    ----------
    y_true, y_predicted : arrays of shape (n,)
    intervals : array of shape (n, 2), optional
        Intervals around the predictions (``predict_interval``), which are shown as thin lines if there are at most 3000
        points.
    ax : matplotlib Axes, optional
        Default is the current axes.

    Returns
    -------
    matplotlib Axes
    """
    y, f, ends = _checked(y_true, y_predicted, intervals)
    ax = axes_or_current(ax)
    low, high = min(y.min(), f.min()), max(y.max(), f.max())
    margin = 0.04 * (high - low) or 1.0
    window = (low - margin, high + margin)
    _draw_points(ax, y, f, ends, (*window, *window))
    ax.axline((low, low), slope=1, color="black", linewidth=0.8, zorder=3)
    ax.text(0.05, 0.95, f"relative error {_relative(y, f)}", transform=ax.transAxes, va="top")
    ax.set(xlim=window, ylim=window, xlabel="true value", ylabel="predicted value", box_aspect=1)
    return ax


def residuals(y_true: Any, y_predicted: Any, *, intervals: Any = None, ax: Axes | None = None) -> Axes:
    """Plot residuals ``y - f`` against predictions ``f``, with a line at zero.

    Dotted lines are at plus and minus the root mean square. A trend shows structure that the model misses; a funnel
    shows that its error varies.

    Parameters
    ----------
    y_true, y_predicted : arrays of shape (n,)
    intervals : array of shape (n, 2), optional
        Intervals around the predictions, shown as lines around zero: a dot on its line is a value inside its interval.
    ax : matplotlib Axes, optional
        Default is the current axes.

    Returns
    -------
    matplotlib Axes
    """
    y, f, ends = _checked(y_true, y_predicted, intervals)
    ax = axes_or_current(ax)
    rest = y - f
    size = float(np.abs(rest).max()) or 1.0
    across = (f.min(), f.max()) if f.min() < f.max() else (f[0] - 0.5, f[0] + 0.5)
    margin = 0.04 * (across[1] - across[0])
    window = (across[0] - margin, across[1] + margin)
    _draw_points(ax, f, rest, None if ends is None else ends - f[:, None], (*window, -1.1 * size, 1.1 * size))
    ax.axhline(0.0, color="black", linewidth=0.8, zorder=3)
    for sign in (-1, 1):
        ax.axhline(sign * np.sqrt(np.mean(rest**2)), color="0.5", linewidth=0.8, linestyle=":", zorder=3)
    ax.set(xlim=window, ylim=(-1.1 * size, 1.1 * size), xlabel="predicted value", ylabel="true minus predicted value")
    return ax


def _checked(y_true: Any, y_predicted: Any, intervals: Any) -> tuple[Array, Array, Array | None]:
    """Return values, predictions (n,) and intervals (n, 2)."""
    y, f = as_finite("y_true", y_true), as_finite("y_predicted", y_predicted)
    if y.ndim != 1 or y.shape != f.shape or len(y) == 0:
        raise ValueError(f"`y_true` and `y_predicted` must have the same shape (n,), got {y.shape} and {f.shape}")
    ends = None if intervals is None else as_finite("intervals", intervals)
    if ends is not None and ends.shape != (len(y), 2):
        raise ValueError(f"`intervals` must have shape (n, 2) = ({len(y)}, 2), got {ends.shape}")
    return y, f, ends


def _draw_points(ax: Axes, x: Array, y: Array, ends: Array | None, window: tuple[float, float, float, float]) -> None:
    """Draw points with their intervals, or the density of many points."""
    if len(x) > MANY:
        ax.hexbin(x, y, gridsize=90, extent=window, bins="log", mincnt=1, cmap="Blues", vmin=0.3, linewidths=0.2)
        return
    color = style_of("nonlocal").color
    if ends is not None:
        segments = [[(place, low), (place, high)] for place, (low, high) in zip(x, ends, strict=True)]
        lines = LineCollection(segments, colors=color, linewidths=0.8, alpha=0.35, rasterized=True)
        ax.add_collection(lines, autolim=False)
    ax.plot(x, y, ".", color=color, markersize=4, alpha=0.5, rasterized=True)


def _relative(y: Array, f: Array) -> str:
    """Return ``|f - y| / |y|`` as text."""
    size = np.linalg.norm(y)
    if size == 0:
        return "undefined: all true values are zero"
    mantissa, exponent = f"{np.linalg.norm(f - y) / size:.1e}".split("e")
    return rf"${mantissa}\times10^{{{int(exponent)}}}$"
