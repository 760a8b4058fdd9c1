"""The axes to draw on, and the names on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from sklearn.utils.validation import check_is_fitted


def axes_or_current(ax: Axes | None) -> Axes:
    """Return ``ax``, or pyplot's current axes if it is None (new ones if there are none)."""
    if ax is None:
        import matplotlib.pyplot as plt  # imported only if needed: pyplot is not required if `ax` is given

        ax = plt.gca()
    return ax


def input_names(model: Any, names: Sequence[str] | None) -> list[str]:
    """Return the names of a fitted model's inputs: ``names``, or those of its data frame, or ``x0, x1, ...``."""
    check_is_fitted(model)
    if names is None:
        names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    if isinstance(names, str) or len(names) != model.n_features_in_:
        raise ValueError(f"`names` must be {model.n_features_in_} names, one for each input, got {names!r}")
    return [str(name) for name in names]


def literal(text: str) -> str:
    """Return a text that matplotlib shows as it is: a dollar sign starts no formula."""
    return text.replace("$", r"\$")
