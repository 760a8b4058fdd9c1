"""The axes of a plot, and the names of inputs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sklearn.utils.validation import check_is_fitted

from nurf._types import Array
from nurf._warping import has_heavy_tails


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


def shortened(name: str, most: int = 24) -> str:
    """Return a name, or the beginning and the end of a longer one.

    >>> shortened("log10_of_the_rate_of_reaction_seven", 16)
    'log10_of_t…seven'
    """
    end = most // 3
    return name if len(name) <= most else f"{name[: most - 1 - end]}…{name[-end:]}"


def without_units(names: Sequence[str]) -> list[str]:
    """Return names without units in parentheses at their ends, or unchanged if they would no longer differ.

    >>> without_units(["upper head (m)", "flow [m³/s]"]), without_units(["f (re)", "f (im)"])
    (['upper head', 'flow'], ['f (re)', 'f (im)'])
    """
    plain = [re.sub(r"(?<=\S)\s*[(\[][^()\[\]]*[)\]]$", "", name) for name in names]
    return plain if len(set(plain)) == len(set(names)) else list(names)


def scale_of(values: Array) -> tuple[str, float]:
    """Return the scale of an axis for values (n,): "linear", "log" or "asinh", and the unit of asinh.

    Values whose largest size is more than ten times the median size are flat lines on a linear axis.
    """
    known = values[np.isfinite(values)]
    if not has_heavy_tails(known):
        return "linear", 1.0
    return ("log", 1.0) if known.min() > 0 else ("asinh", float(np.median(np.abs(known))))


def set_scale(ax: Axes, values: Array, axes: str = "y") -> None:
    """Set the scale that suits values (n,) on one or both axes ("x", "y" or "xy"); linear axes stay as they are."""
    kind, unit = scale_of(values)
    options: dict[str, Any] = {"nonpositive": "clip"} if kind == "log" else {"linear_width": unit}
    for name in axes if kind != "linear" else "":
        getattr(ax, f"set_{name}scale")(kind, **options)


def on_scale(numbers: Array, values: Array) -> Array:
    """Return numbers as coordinates on the axis that suits values (n,)."""
    kind, unit = scale_of(values)
    if kind == "log":
        return np.log(np.maximum(numbers, floor_of(values)))
    return np.arcsinh(numbers / unit) if kind == "asinh" else numbers


def floor_of(values: Array) -> float:
    """Return the lowest number that the axis for values (n,) shows: on a logarithmic axis, a third of the smallest."""
    return float(np.nanmin(values) / 3) if scale_of(values)[0] == "log" else -np.inf


def deviations_of(X: Array) -> Array:
    """Return the standard deviations of columns (n, d), whose squares may overflow, of shape (d,)."""
    largest = np.abs(X).max(axis=0)
    units = np.where(largest > 0, largest, 1.0)
    return np.asarray((X / units).std(axis=0) * units)


def literal(text: str) -> str:
    """Return a text with escaped dollar signs, so that matplotlib shows no formula."""
    return text.replace("$", r"\$")
