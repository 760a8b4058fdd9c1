"""Hyperplanes in one dimension (points) and two dimensions (lines)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba_array

from nurf._types import Array
from nurf._validation import as_finite
from nurf.networks import Box, Hyperplanes
from nurf.plots._axes import axes_or_current

COLOR = "#d55e00"


def hyperplanes(
    planes: Hyperplanes,
    *,
    domain: Box | None = None,
    function: Callable[[Array], Any] | None = None,
    weights: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot hyperplanes in one or two dimensions, optionally over a function (paper, figures 1 to 3).

    For d = 1 the inflection points ``x = -b / a`` are shown as crosses, on the graph of ``function`` if it is given.
    For d = 2 the lines are clipped to the domain and drawn over a contour plot of ``function``.

    Parameters
    ----------
    planes : Hyperplanes
        Hyperplanes, in the units of ``domain``. Those that do not intersect it are omitted.
    domain : Box, optional
        The region to plot, such as ``problem.domain``. Default is [-1, 1]^d.
    function : callable, optional
        A function from points (n, d) to values (n,), such as ``problem.value`` or ``model.predict``.
    weights : array of shape (N,), optional
        Weights of the hyperplanes, such as ``network_.coef``. The opacity is the square root of
        ``|weight| / max |weight|``.
    ax : matplotlib Axes, optional
        Default is the current axes.

    Returns
    -------
    matplotlib Axes
    """
    d = planes.dimension
    if d not in (1, 2):
        raise ValueError(f"hyperplanes can be plotted for d = 1 and d = 2, got d = {d}")
    domain = Box(-np.ones(d), np.ones(d)) if domain is None else domain
    if len(domain.lower) != d:
        raise ValueError(f"`domain` must have the dimension of the hyperplanes, {d}, got {len(domain.lower)}")
    colors = _colors(weights, len(planes))
    ax = axes_or_current(ax)
    (_draw_points if d == 1 else _draw_lines)(ax, planes, domain, function, colors)
    return ax


def _draw_points(ax: Axes, planes: Hyperplanes, domain: Box, function: Any, colors: Array) -> None:
    low, high = domain.lower[0], domain.upper[0]
    points = -planes.offsets / planes.normals[:, 0]
    inside = (points >= low) & (points <= high)
    points = points[inside]
    heights = np.zeros_like(points)
    if function is None:
        ax.axhline(0.0, color="black", linewidth=0.8)
        ax.set_yticks([])
    else:
        heights = np.asarray(function(points[:, None]))
        x = np.linspace(low, high, 500)
        ax.plot(x, function(x[:, None]), color="black", linewidth=1.2)
        ax.set_ylabel("$f(x)$")
    ax.scatter(points, heights, marker="x", c=colors[inside], s=40, linewidths=1.4, zorder=3)
    ax.set(xlim=(low, high), xlabel="$x$")


def _draw_lines(ax: Axes, planes: Hyperplanes, domain: Box, function: Any, colors: Array) -> None:
    if function is not None:
        x, y = np.linspace(domain.lower, domain.upper, 121).T
        grid = np.stack(np.meshgrid(x, y), axis=-1)
        values = np.asarray(function(grid.reshape(-1, 2))).reshape(grid.shape[:2])
        low, high = values.min(), values.max()
        if low < high:
            levels = np.linspace(low, high, 17)
            ax.contourf(x, y, values, levels, cmap="Greys", vmin=low, vmax=1.6 * high - 0.6 * low)  # not too dark
    segments, hits = clip(planes, domain)
    ax.add_collection(LineCollection(list(segments), colors=colors[hits], linewidths=0.8), autolim=False)
    (left, bottom), (right, top) = domain.lower, domain.upper
    ax.set(xlim=(left, right), ylim=(bottom, top), xlabel="$x_1$", ylabel="$x_2$", box_aspect=1)
    ax.locator_params(nbins=5)


def clip(planes: Hyperplanes, domain: Box) -> tuple[Array, Array]:
    """Return the end points of the lines clipped to a box, of shape (m, 2, 2), and a mask of the lines in it, (N,).

    With ``p = -b a`` and ``t = (-a_2, a_1)``, a point ``p + r t`` is in the box if ``r`` lies between the intersections
    with the lower and upper sides, for both coordinates.
    """
    a, b = planes.normals, planes.offsets
    foot, along = -b[:, None] * a, np.column_stack([-a[:, 1], a[:, 0]])
    with np.errstate(divide="ignore", invalid="ignore"):  # parallel sides intersect at infinity
        crossings = np.sort([(domain.lower - foot) / along, (domain.upper - foot) / along], axis=0)
    enter, leave = crossings[0].max(axis=1), crossings[1].min(axis=1)
    hits = enter < leave
    ends = np.column_stack([enter, leave])[hits]
    return foot[hits, None] + ends[:, :, None] * along[hits, None], hits


def _colors(weights: Any, n: int) -> Array:
    """Return the RGBA colours of ``n`` hyperplanes, of shape (n, 4)."""
    colors = np.tile(to_rgba_array(COLOR), (n, 1))
    if weights is not None:
        sizes = np.abs(as_finite("weights", weights))
        if sizes.shape != (n,):
            raise ValueError(f"`weights` must have shape (N,) = ({n},), got {sizes.shape}")
        colors[:, 3] = np.sqrt(sizes / (sizes.max(initial=0.0) or 1.0))
    return colors
