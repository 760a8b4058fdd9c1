"""Horizontal bars with names and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from nurf._types import Array
from nurf.plots._axes import literal, shortened, without_units

LONGEST = 24  # letters of a label


def draw_bars(ax: Axes, labels: Sequence[str], sizes: Array, colors: Sequence[str], words: Any = None) -> None:
    """Draw a bar for each label, the first on top, annotated with its size or with the given words."""
    bars = ax.barh(range(len(labels)), sizes, color=colors)
    if words is None:
        ax.bar_label(bars, fmt="%.2g", padding=3)
    else:
        ax.bar_label(bars, labels=[literal(word) for word in words], padding=3)
    shown = labels if max(map(len, labels), default=0) <= LONGEST else without_units(labels)
    ax.set_yticks(range(len(labels)), [literal(shortened(label, LONGEST)) for label in shown])
    room = (1.15 if words is None else 1.25) * float(max(sizes, default=0.0)) or 1.0  # for the numbers
    ax.set(xlim=(0, room), ylim=(len(labels) - 0.5, -0.5))
    ax.locator_params(axis="x", nbins=5)
