"""A comparison of engines."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from nurf.estimators import Leaderboard
from nurf.plots._axes import axes_or_current
from nurf.plots._bars import draw_bars
from nurf.plots._relevance import OTHERS
from nurf.plots._style import style_of

FAR = 20.0  # ratio of errors from which the scale is logarithmic


def leaderboard(board: Leaderboard, *, ax: Axes | None = None) -> Axes:
    """Plot the estimated errors of all engines as bars, the chosen engine on top and in colour.

    The scale is logarithmic if the errors differ by more than a factor of twenty.

    Parameters
    ----------
    board : Leaderboard
        ``model.leaderboard_`` of a ``Surrogate``.
    ax : matplotlib Axes, optional
        Default is the current axes.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_current(ax)
    errors = np.array([row.error for row in board])
    known = np.isfinite(errors)
    colors = [style_of("nonlocal").color] + [OTHERS] * (len(board) - 1)
    words = [f"{error:.2g}" if finite else "no estimate" for error, finite in zip(errors, known, strict=True)]
    draw_bars(ax, [row.engine for row in board], np.where(known, errors, 0.0), colors, words)
    low, high = errors.min(), errors.max()
    if known.all() and low > 0 and high > FAR * low:  # on a linear axis, the bar of the chosen engine has no length
        ax.set(xscale="log", xlim=(low / 3, high * (high / low) ** 0.4))
        ax.locator_params(axis="x", numticks=5)
    ax.set_xlabel("error (standard deviations)")
    return ax
