"""A comparison of engines."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from nurf.estimators import Leaderboard
from nurf.plots._axes import axes_or_current
from nurf.plots._bars import draw_bars
from nurf.plots._relevance import OTHERS
from nurf.plots._style import style_of


def leaderboard(board: Leaderboard, *, ax: Axes | None = None) -> Axes:
    """Plot the estimated errors of all engines as bars, the chosen engine on top and in colour.

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
    ax.set_xlabel("estimated error (standard deviations)")
    return ax
