"""One colour, marker and line for each law, the same in every picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LawStyle:
    """How a law looks, and what it is called in a legend."""

    label: str
    color: str
    marker: str
    linestyle: str | tuple[int, tuple[float, ...]]

    def line(self) -> dict[str, Any]:
        """Return the keywords of a matplotlib line."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.linestyle}


# The colours of Okabe and Ito, which colour-blind people tell apart, with a grey in place of their yellow; markers and
# dashes keep the laws apart in print without colours.
STYLES: dict[str, LawStyle] = {
    "uniform": LawStyle("uniform", "#7f7f7f", "o", "-"),
    "active_subspace": LawStyle("active subspace", "#e69f00", "s", "--"),
    "local": LawStyle("local", "#56b4e9", "^", "-."),
    "nonlocal": LawStyle("nonlocal", "#0072b2", "D", "-"),
    "representation": LawStyle("exact representation", "#009e73", "v", (0, (5, 1))),
    "local_residual": LawStyle("local residual", "#cc79a7", "P", (0, (3, 1, 1, 1, 1, 1))),
    "nonlocal_residual": LawStyle("nonlocal residual", "#d55e00", "X", ":"),
    "sparse": LawStyle("sparse (trained)", "#000000", "*", (0, (1, 1))),
}


def style_of(law: str) -> LawStyle:
    """Return the style of a law by its name.

    >>> style_of("nonlocal").color
    '#0072b2'
    """
    if law not in STYLES:
        raise ValueError(f"`law` must be one of {', '.join(map(repr, STYLES))}, got {law!r}")
    return STYLES[law]
