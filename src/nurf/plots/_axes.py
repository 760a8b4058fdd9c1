"""The axes to draw on."""

from __future__ import annotations

from matplotlib.axes import Axes


def axes_or_current(ax: Axes | None) -> Axes:
    """Return ``ax``, or pyplot's current axes if it is None (new ones if there are none)."""
    if ax is None:
        import matplotlib.pyplot as plt  # imported only if needed: pyplot is not required if `ax` is given

        ax = plt.gca()
    return ax
