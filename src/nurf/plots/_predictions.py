"""Predicted against true values, and residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm

from nurf._types import Array
from nurf._validation import as_finite
from nurf.plots._axes import axes_or_current, floor_of, set_scale
from nurf.plots._style import style_of

MANY = 3000  # number of points above which they overlap, so their density is plotted instead
BINS = 90  # bins along each axis


def predicted_against_true(y_true: Any, y_predicted: Any, *, intervals: Any = None, ax: Axes | None = None) -> Axes:
    """Plot predicted against true values, with the diagonal and the relative error ``|f - y| / |y|``.

    Up to 3000 points are plotted individually; more points are counted in bins. If the largest size of the true values
    is more than ten times the median size, both axes are logarithmic, or asinh for values of both signs.

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
    set_scale(ax, y, "xy")
    window = _window(ax, max(min(y.min(), f.min()), floor_of(y)), max(y.max(), f.max()))
    ax.set(xlim=window, ylim=window, xlabel="true value", ylabel="predicted value", box_aspect=1)
    _draw_points(ax, y, f, ends)
    ax.plot(window, window, color="black", linewidth=0.8, zorder=3)
    ax.text(0.05, 0.95, f"relative error {_relative(y, f)}", transform=ax.transAxes, va="top")
    return ax


def residuals(y_true: Any, y_predicted: Any, *, intervals: Any = None, ax: Axes | None = None) -> Axes:
    """Plot residuals ``y - f`` against predictions ``f``, with a line at zero.

    Dotted lines are at plus and minus the root mean square. A trend shows structure that the model misses; a funnel
    shows that its error varies. The scale of the predictions is as in ``predicted_against_true``.

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
    set_scale(ax, y, "x")
    window = _window(ax, max(f.min(), floor_of(y)), f.max())
    ax.set(xlim=window, ylim=(-1.1 * size, 1.1 * size), xlabel="predicted value", ylabel="true minus predicted value")
    _draw_points(ax, f, rest, None if ends is None else ends - f[:, None])
    ax.axhline(0.0, color="black", linewidth=0.8, zorder=3)
    for sign in (-1, 1):
        ax.axhline(sign * np.sqrt(np.mean(rest**2)), color="0.5", linewidth=0.8, linestyle=":", zorder=3)
    return ax


def _window(ax: Axes, low: float, high: float) -> tuple[float, float]:
    """Return the limits of the horizontal axis for values from ``low`` to ``high``, with a margin on its scale."""
    scale = ax.xaxis.get_transform()
    start, end = scale.transform(np.array([low, high]))
    margin = 0.04 * (end - start) or 0.5
    left, right = scale.inverted().transform(np.array([start - margin, end + margin]))
    return float(left), float(right)


def _checked(y_true: Any, y_predicted: Any, intervals: Any) -> tuple[Array, Array, Array | None]:
    """Return values, predictions (n,) and intervals (n, 2)."""
    y, f = as_finite("y_true", y_true), as_finite("y_predicted", y_predicted)
    if y.ndim != 1 or y.shape != f.shape or len(y) == 0:
        raise ValueError(f"`y_true` and `y_predicted` must have the same shape (n,), got {y.shape} and {f.shape}")
    ends = None if intervals is None else as_finite("intervals", intervals)
    if ends is not None and ends.shape != (len(y), 2):
        raise ValueError(f"`intervals` must have shape (n, 2) = ({len(y)}, 2), got {ends.shape}")
    return y, f, ends


def _draw_points(ax: Axes, x: Array, y: Array, ends: Array | None) -> None:
    """Draw points with their intervals, or the numbers of points in bins of equal size on the axes."""
    if len(x) > MANY:
        edges = [_edges(axis) for axis in (ax.xaxis, ax.yaxis)]
        counts, *_ = np.histogram2d(x, y, bins=edges)
        shown = np.ma.masked_equal(counts.T, 0)
        ax.pcolormesh(*edges, shown, norm=LogNorm(vmin=0.3), cmap="Blues", rasterized=True)
        return
    color = style_of("nonlocal").color
    if ends is not None:
        segments = [[(place, low), (place, high)] for place, (low, high) in zip(x, ends, strict=True)]
        lines = LineCollection(segments, colors=color, linewidths=0.8, alpha=0.35, rasterized=True)
        ax.add_collection(lines, autolim=False)
    ax.plot(x, y, ".", color=color, markersize=4, alpha=0.5, rasterized=True)


def _edges(axis: Any) -> Array:
    """Return the edges of bins of equal size on an axis, of shape (BINS + 1,)."""
    scale = axis.get_transform()
    start, end = scale.transform(np.array(axis.get_view_interval()))
    return np.asarray(scale.inverted().transform(np.linspace(start, end, BINS + 1)))


def _relative(y: Array, f: Array) -> str:
    """Return ``|f - y| / |y|`` as text."""
    size = np.linalg.norm(y)
    if size == 0:
        return "undefined: all true values are zero"
    mantissa, exponent = f"{np.linalg.norm(f - y) / size:.1e}".split("e")
    return rf"${mantissa}\times10^{{{int(exponent)}}}$"
