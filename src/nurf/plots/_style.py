"""Colours, markers and line styles of the sampling methods, the same in all plots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Style:
    """The label, colour, marker and line style of a method."""

    label: str
    color: str
    marker: str
    linestyle: str | tuple[int, tuple[float, ...]]

    def line(self) -> dict[str, Any]:
        """Return the colour, marker and dashes of a style, as keyword arguments of ``Axes.plot``."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.linestyle}


# The colour-blind safe palette of Okabe and Ito, with grey instead of yellow. Markers and line styles distinguish the
# methods in black and white.
STYLES: dict[str, Style] = {
    "uniform": Style("uniform", "#7f7f7f", "o", "-"),
    "active_subspace": Style("active subspace", "#e69f00", "s", "--"),
    "local": Style("local", "#56b4e9", "^", "-."),
    "nonlocal": Style("nonlocal", "#0072b2", "D", "-"),
    "representation": Style("exact representation", "#009e73", "v", (0, (5, 1))),
    "local_residual": Style("local residual", "#cc79a7", "P", (0, (3, 1, 1, 1, 1, 1))),
    "nonlocal_residual": Style("nonlocal residual", "#d55e00", "X", ":"),
    "sparse": Style("sparse (trained)", "#000000", "*", (0, (1, 1))),
}


def style_of(name: str) -> Style:
    """Return the style of a method, by its name in ``STYLES``.

    >>> style_of("nonlocal").color
    '#0072b2'
    """
    if name not in STYLES:
        raise ValueError(f"style must be one of {', '.join(map(repr, STYLES))}, got {name!r}")
    return STYLES[name]
