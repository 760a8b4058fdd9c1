"""Predicted against true values."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from nurf._types import Array
from nurf._validation import as_finite
from nurf.plots._axes import axes_or_current
from nurf.plots._style import style_of

MANY = 3000  # number of points above which they overlap, so their density is plotted instead


def predicted_against_true(y_true: Any, y_predicted: Any, *, ax: Axes | None = None) -> Axes:
    """Plot predicted against true values, with the diagonal and the relative error ``|f - y| / |y|``.

    Up to 3000 points are plotted individually; more points are counted in hexagonal bins.

    Parameters
    ----------
    y_true, y_predicted : arrays of shape (n,)
    ax : matplotlib Axes, optional
        Default is the current axes.

    Returns
    -------
    matplotlib Axes
    """
    y, f = as_finite("y_true", y_true), as_finite("y_predicted", y_predicted)
    if y.ndim != 1 or y.shape != f.shape or len(y) == 0:
        raise ValueError(f"`y_true` and `y_predicted` must have the same shape (n,), got {y.shape} and {f.shape}")
    ax = axes_or_current(ax)
    low, high = min(y.min(), f.min()), max(y.max(), f.max())
    margin = 0.04 * (high - low) or 1.0
    window = (low - margin, high + margin)
    if len(y) > MANY:
        ax.hexbin(y, f, gridsize=90, extent=window * 2, bins="log", mincnt=1, cmap="Blues", vmin=0.3, linewidths=0.2)
    else:
        ax.plot(y, f, ".", color=style_of("nonlocal").color, markersize=4, alpha=0.5, rasterized=True)
    ax.axline((low, low), slope=1, color="black", linewidth=0.8, zorder=3)
    ax.text(0.05, 0.95, f"relative error {_relative(y, f)}", transform=ax.transAxes, va="top")
    ax.set(xlim=window, ylim=window, xlabel="true value", ylabel="predicted value", box_aspect=1)
    return ax


def _relative(y: Array, f: Array) -> str:
    """Return ``|f - y| / |y|`` as text."""
    size = np.linalg.norm(y)
    if size == 0:
        return "undefined: all true values are zero"
    mantissa, exponent = f"{np.linalg.norm(f - y) / size:.1e}".split("e")
    return rf"${mantissa}\times10^{{{int(exponent)}}}$"
