"""Hyperplanes in one dimension (points) and two dimensions (lines)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba_array

from nurf._types import Array, Index
from nurf._validation import as_finite
from nurf.networks import Box, Hyperplanes
from nurf.plots._axes import axes_or_current

COLOR = "#d55e00"


def hyperplanes(
    planes: Any,
    *,
    X: Any = None,
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
    planes : Hyperplanes or regressor of nurf
        Hyperplanes in the units of ``domain``, or a fitted model with ``hyperplanes_``, such as a
        ``RandomFeatureRegressor`` or a ``Surrogate`` that chose one. Hyperplanes that do not intersect the domain are
        omitted.
    X : array of shape (n, d), optional
        Samples, whose bounding box is the region to plot.
    domain : Box, optional
        The region to plot, such as ``problem.domain``. Default is the bounding box of the samples, or without samples
        [-1, 1]^d, for inputs in scaled units.
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
    given, model = planes, getattr(planes, "model_", planes)
    planes = getattr(model, "hyperplanes_", model)
    if not isinstance(planes, Hyperplanes):
        raise TypeError(
            "`planes` must be Hyperplanes, or a model with `hyperplanes_`, as shallow networks have; plots.slices and "
            f"plots.heat_map work for all models, got {type(given).__name__}"
        )
    d = planes.dimension
    if d not in (1, 2):
        raise ValueError(f"hyperplanes can be plotted for d = 1 and d = 2, got d = {d}")
    domain = _region(X, d) if domain is None else domain
    if len(domain.lower) != d:
        raise ValueError(f"`domain` must have the dimension of the hyperplanes, {d}, got {len(domain.lower)}")
    colors = _colors(weights, len(planes))
    ax = axes_or_current(ax)
    (_draw_points if d == 1 else _draw_lines)(ax, planes, domain, function, colors)
    return ax


def _region(X: Any, d: int) -> Box:
    """Return the bounding box of the samples, or [-1, 1]^d if there are none."""
    if X is None:
        return Box(-np.ones(d), np.ones(d))
    samples = as_finite("X", X)
    if samples.ndim != 2 or samples.shape[1] != d or not len(samples):
        raise ValueError(f"`X` must have shape (n, d) with d = {d}, as the hyperplanes, got {samples.shape}")
    low, high = samples.min(axis=0), samples.max(axis=0)
    return Box(np.where(low < high, low, low - 0.5), np.where(low < high, high, high + 0.5))


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


def section(planes: Hyperplanes, origin: Array, directions: Array) -> tuple[Hyperplanes, Index]:
    """Return the lines in which hyperplanes intersect a plane, and the indices of these hyperplanes.

    The points of the plane are ``origin + s_1 u_1 + s_2 u_2``, so that a line is ``(a.u_1) s_1 + (a.u_2) s_2 +
    a.origin + b = 0``. Hyperplanes parallel to the plane are omitted.

    Parameters
    ----------
    planes : Hyperplanes
    origin : array of shape (d,)
    directions : array of shape (2, d)
    """
    slopes = planes.normals @ directions.T
    lengths = np.linalg.norm(slopes, axis=1)
    kept = np.flatnonzero(lengths > 1e-12 * np.linalg.norm(directions))
    offsets = (planes.normals[kept] @ origin + planes.offsets[kept]) / lengths[kept]
    return Hyperplanes(slopes[kept] / lengths[kept, None], offsets), kept
