"""The axes of a plot, and the names of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from sklearn.utils.validation import check_is_fitted


def axes_or_current(ax: Axes | None) -> Axes:
    """Return ``ax``, or the current axes of pyplot if ``ax`` is None."""
    if ax is None:
        import matplotlib.pyplot as plt  # imported only if needed: pyplot is not required if `ax` is given

        ax = plt.gca()
    return ax


def input_names(model: Any, names: Sequence[str] | None) -> list[str]:
    """Return the names of a fitted model's inputs: ``names``, or the columns of its data frame, or ``x0, x1, ...``."""
    check_is_fitted(model)
    if names is None:
        names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    if isinstance(names, str) or len(names) != model.n_features_in_:
        raise ValueError(f"`names` must be {model.n_features_in_} names, one for each input, got {names!r}")
    return [str(name) for name in names]


def literal(text: str) -> str:
    """Return a text with escaped dollar signs, so that matplotlib shows no formula."""
    return text.replace("$", r"\$")
