"""Where to draw if the caller does not say."""

from __future__ import annotations

from matplotlib.axes import Axes


def axes_or_current(ax: Axes | None) -> Axes:
    """Return ``ax``, or pyplot's current axes (new ones if there are none)."""
    if ax is None:
        import matplotlib.pyplot as plt  # only here: who brings an ax may do without pyplot

        ax = plt.gca()
    return ax
