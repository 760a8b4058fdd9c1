"""The relevance of each input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from nurf._types import Array
from nurf._validation import is_whole
from nurf.estimators import KernelFeatureRegressor, Surrogate
from nurf.plots._axes import axes_or_current, input_names
from nurf.plots._bars import draw_bars
from nurf.plots._style import style_of

OTHERS = "0.7"  # colour of the bar for all other inputs


def relevance(
    model: KernelFeatureRegressor | Surrogate,
    *,
    names: Sequence[str] | None = None,
    n_inputs: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Plot the relevance of each input to an infinitely wide network as a bar, the largest on top.

    A bar is ``model.relevance_``: the root mean square of the predicted partial derivatives, in standard deviations of
    the input and of the values. If there are more inputs than ``n_inputs``, the last bar is the largest of the others.

    Parameters
    ----------
    model : KernelFeatureRegressor or Surrogate
        A fitted regressor, which is or has chosen an infinitely wide network.
    names : sequence of str, optional
        Names of all inputs. Default is the columns of the fitted data frame, or ``x0, x1, ...``.
    n_inputs : int, default=12
        The largest number of inputs with their own bars.
    ax : matplotlib Axes, optional
        Default is the current axes.

    Returns
    -------
    matplotlib Axes
    """
    names = input_names(model, names)
    chosen = getattr(model, "model_", model)
    if not hasattr(chosen, "relevance_"):
        raise ValueError(
            "`model` must have `relevance_`, as infinitely wide networks have; plots.sensitivity(model, X) works for "
            f"all models, got {type(model).__name__}"
        )
    return draw_relevance(chosen.relevance_, names, n_inputs, ax)


def draw_relevance(sizes: Array, names: Sequence[str], n_inputs: int, ax: Axes | None) -> Axes:
    """Draw the largest of ``sizes`` (d,) as bars, and the largest of the others as one more bar."""
    if not is_whole(n_inputs):
        raise ValueError(f"`n_inputs` must be a whole number >= 1, got {n_inputs!r}")
    largest_first = np.argsort(-sizes, kind="stable")
    labels = [names[j] for j in largest_first[:n_inputs]]
    colors = [style_of("nonlocal").color] * len(labels)
    if n_inputs < len(sizes):
        labels.append(f"largest of {len(sizes) - n_inputs} others")
        colors.append(OTHERS)
    ax = axes_or_current(ax)
    draw_bars(ax, labels, sizes[largest_first[: len(labels)]], colors)
    ax.set_xlabel("relevance: size of the partial derivatives")
    return ax
