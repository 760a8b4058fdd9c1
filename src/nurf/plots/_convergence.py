"""The error as a function of the number of neurons."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from nurf._types import Array
from nurf._validation import as_finite
from nurf.plots._axes import axes_or_current
from nurf.plots._style import style_of


def convergence(
    neurons: Any, errors: Any, *, style: str | None = None, label: str | None = None, ax: Axes | None = None
) -> Axes:
    """Plot errors against the number of neurons on logarithmic axes, as in section 5 of the paper.

    The line is ``exp(mean log error)`` over the trials. The band around it is one sample standard deviation of
    ``log error`` to either side.

    Parameters
    ----------
    neurons : array of shape (m,)
        Numbers of neurons.
    errors : array of shape (trials, m) or (m,)
        Errors > 0. A single trial has no band.
    style : str, optional
        A name in ``STYLES``, which determines the colour, marker, line style and label.
    label : str, optional
        Label in the legend. Default is the label of ``style``.
    ax : matplotlib Axes, optional
        Default is the current axes. To compare methods, call the function for each method with the same axes, then
        call ``ax.legend()``.

    Returns
    -------
    matplotlib Axes
    """
    counts, trials = _check(neurons, errors)
    chosen = None if style is None else style_of(style)
    keywords = {"marker": "o"} if chosen is None else chosen.line()
    ax = axes_or_current(ax)
    logs = np.log(trials)
    mean = logs.mean(axis=0)
    text = label if label is not None else (chosen.label if chosen is not None else None)
    (line,) = ax.plot(counts, np.exp(mean), label=text, linewidth=1.6, markersize=5, **keywords)
    if len(trials) > 1:
        std = logs.std(axis=0, ddof=1)
        ax.fill_between(counts, np.exp(mean - std), np.exp(mean + std), color=line.get_color(), alpha=0.2, linewidth=0)
    _format_axes(ax)
    return ax


def _check(neurons: Any, errors: Any) -> tuple[Array, Array]:
    """Return the numbers of neurons (m,) and the errors (trials, m)."""
    counts, trials = as_finite("neurons", neurons), as_finite("errors", errors)
    m = len(np.atleast_1d(counts))
    if counts.ndim != 1 or trials.ndim not in (1, 2) or trials.shape[-1] != m or trials.size == 0:
        raise ValueError(
            f"`neurons` must have shape (m,) and `errors` (trials, m) or (m,), got {counts.shape} and {trials.shape}"
        )
    for name, values in {"neurons": counts, "errors": trials}.items():
        if values.min() <= 0:
            raise ValueError(f"`{name}` must be > 0 on a logarithmic axis, got {values.min()}")
    return counts, np.atleast_2d(trials)


def _format_axes(ax: Axes) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))  # 10, 20, 50, 100
    ax.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("number of neurons $N$")
    ax.set_ylabel("relative $L^2$ error")
    ax.grid(True, which="major", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
