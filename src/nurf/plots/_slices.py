"""Slices of a fitted function, each along one input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nurf._types import Array
from nurf.estimators import NetworkRegressor
from nurf.plots._axes import floor_of, input_names, literal, set_scale, shortened
from nurf.plots._style import style_of
from nurf.plots._through import (
    checked,
    fading,
    like,
    lines_through,
    most_varying,
    one_output,
    positions,
    sample_values,
)

COLOR = style_of("nonlocal").color
PANELS = 9  # default number of slices
COLUMNS = 3  # columns of panels in a new figure


def slices(
    model: NetworkRegressor,
    X: Any,
    y: Any = None,
    *,
    inputs: Sequence[int | str] | None = None,
    point: Any = None,
    output: int = 0,
    coverage: float = 0.9,
    names: Sequence[str] | None = None,
    axes: Any = None,
) -> Any:
    """Plot predictions with their intervals along each input, with the other inputs fixed at a point.

    The line is ``f(p + (t - p_j) e_j)`` for ``t`` from the smallest to the largest ``x_j`` of the samples; the band is
    ``predict_interval``. All panels have the same vertical axis, so that inputs can be compared. If the largest size of
    the values ``y`` is more than ten times the median size, the axis is logarithmic, or asinh for values of both signs.

    Parameters
    ----------
    model : regressor of nurf
        A fitted regressor.
    X : array or frame of shape (n, d)
        Samples, which determine the range of the slices.
    y : array of shape (n,) or (n, k), optional
        The values of the samples, which are shown as dots. The farther from the slice a sample is, the fainter its dot:
        the opacity is ``exp(-r^2 / 2)``, but at least 0.1, with the root mean square ``r`` of the distances in the
        other inputs, in standard deviations.
    inputs : sequence of int or str, optional
        The inputs to show, by their positions or names. Default is all, or the nine along which the prediction varies
        most.
    point : array of shape (d,), optional
        The point ``p``. Default is the mean of the samples.
    output : int, default=0
        The output to show, if there are several.
    coverage : float, default=0.9
        Probability that the intervals contain new values.
    names : sequence of str, optional
        Names of all inputs. Default is the columns of the fitted data frame, or ``x0, x1, ...``.
    axes : matplotlib Axes or array of them, optional
        One axes object for each input. Default is a new figure of pyplot.

    Returns
    -------
    array of matplotlib Axes, of shape (number of inputs,)

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from nurf import KernelFeatureRegressor, plots
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1]
    >>> left, right = plots.slices(KernelFeatureRegressor().fit(X, y), X, y, axes=Figure().subplots(1, 2))
    >>> right.get_xlabel()
    'x1'
    """
    labels = input_names(model, names)
    samples, center = checked(X, point, len(labels))
    values = None if y is None else one_output(sample_values(y, len(samples)), output)
    lines = lines_through(samples, center)
    heights = np.array([one_output(model.predict(like(X, line)), output) for line in lines])
    chosen = sorted(most_varying(heights)[:PANELS]) if inputs is None else positions(inputs, labels)
    panels = _panels(axes, len(chosen))
    for ax, j in zip(panels, chosen, strict=True):
        intervals = model.predict_interval(like(X, lines[j]), coverage=coverage)
        band = [one_output(side, output) for side in np.moveaxis(intervals, -1, 0)]
        ax.fill_between(lines[j, :, j], *band, color=COLOR, alpha=0.25, linewidth=0)
        ax.plot(lines[j, :, j], heights[j], color=COLOR, linewidth=1.6)
        if values is not None:
            ax.scatter(samples[:, j], values, c=fading(samples, center, j), s=18, linewidths=0, zorder=3)
        if len(center) > 1:
            ax.axvline(center[j], color="0.6", linewidth=0.8, linestyle=":", zorder=0)
        ax.set_xlabel(literal(shortened(labels[j], 36)))
        if values is not None:
            set_scale(ax, values)
    _format_axes(panels, values)
    return panels


def _format_axes(panels: Any, values: Array | None) -> None:
    """Give all panels the same vertical axis, and ticks that do not overlap.

    On a logarithmic axis, bands that reach zero end a little below the values.
    """
    limits = np.array([ax.get_ylim() for ax in panels])
    if values is not None:
        limits = np.maximum(limits, floor_of(values))
    for ax in panels:
        ax.set_ylim(limits.min(), limits.max())
        ax.margins(x=0.03)
        ax.locator_params(axis="x", nbins=4)
        ax.ticklabel_format(axis="x", scilimits=(-3, 6), useOffset=False)


def _panels(axes: Any, n: int) -> Any:
    """Return axes for ``n`` slices, of shape (n,): the given axes, or the axes of a new figure."""
    if axes is None:
        import matplotlib.pyplot as plt  # imported only if needed: pyplot is not required if `axes` are given

        columns = min(n, COLUMNS)
        rows = -(-n // columns)
        size = (max(4.8, 3.2 * columns), max(3.6, 2.6 * rows))
        _, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", sharey=True, squeeze=False)
        for ax in grid[:, 0]:
            ax.set_ylabel("predicted value")
        for ax in grid.ravel()[n:]:
            ax.remove()
        return grid.ravel()[:n]
    panels = np.ravel(axes)
    if len(panels) != n:
        raise ValueError(f"`axes` must have one for each of {n} inputs, got {len(panels)}")
    return panels
