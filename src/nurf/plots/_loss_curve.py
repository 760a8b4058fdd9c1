"""The progress of training a deep network."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from sklearn.utils.validation import check_is_fitted

from nurf.engines import ALL_BLOCKS, ALL_ROWS
from nurf.estimators import DeepFeatureRegressor
from nurf.plots._axes import axes_or_current
from nurf.plots._relevance import OTHERS
from nurf.plots._style import style_of


def loss_curve(model: DeepFeatureRegressor, *, ax: Axes | None = None) -> Axes:
    """Plot the training loss and the error on held-out rows after each cycle against the number of steps.

    Both are in units of the standard deviation of the values; of the loss, the square root is shown. The last cycle
    uses all rows, and has no error on held-out rows: it begins with large steps, at the dotted line, where the line of
    the loss is interrupted.

    Parameters
    ----------
    model : DeepFeatureRegressor
        A fitted regressor, or ``model_`` of a ``Surrogate`` that chose a trained network.
    ax : matplotlib Axes, optional
        Default is the current axes.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from nurf import DeepFeatureRegressor, plots
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> model = DeepFeatureRegressor((8,), steps=60, random_state=0).fit(X, np.sin(2 * X[:, 0]) + X[:, 1])
    >>> ax = plots.loss_curve(model, ax=Figure().subplots())
    >>> ax.get_xlabel()
    'steps'
    """
    check_is_fitted(model)
    if not hasattr(model, "n_steps_"):
        raise TypeError(f"`model` must be a DeepFeatureRegressor, which is trained in steps, got {model!r}")
    ax = axes_or_current(ax)
    steps, losses, errors = np.array([(cycle.n_steps, cycle.loss, cycle.error) for cycle in model.fit_.history]).T
    last = model.fit_.history[-1]
    joined = len(steps) - (last.label in (ALL_ROWS, ALL_BLOCKS))
    ax.plot(steps[:joined], np.sqrt(losses[:joined]), "o-", color=OTHERS, label="square root of the loss")
    ax.plot(steps[joined:], np.sqrt(losses[joined:]), "o", color=OTHERS)
    if np.isfinite(errors).any():
        ax.plot(steps, errors, "o-", color=style_of("nonlocal").color, label="error on held-out rows")
    ax.set(xlabel="steps", ylabel="standard deviations of the values", yscale="log")
    if 0 < joined < len(steps):
        _mark(ax, steps[joined - 1], f"new cycle: {last.label}")
    ax.legend()
    return ax


def _mark(ax: Axes, step: float, text: str) -> None:
    """Draw a dotted line at a step, with a text on the side that has more room."""
    ax.axvline(step, color=OTHERS, linewidth=0.8, linestyle=":")
    left, right = ax.get_xlim()
    side, shift = ("right", -3) if step > (left + right) / 2 else ("left", 3)
    ax.annotate(
        text,
        (step, 0.02),
        xycoords=("data", "axes fraction"),
        xytext=(shift, 0),
        textcoords="offset points",
        ha=side,
        fontsize="small",
    )
