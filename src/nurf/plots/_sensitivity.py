"""The sensitivity of a fitted function to each input, and the directions along which it varies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from nurf._types import Array
from nurf._validation import is_whole
from nurf.estimators import NetworkRegressor
from nurf.plots._axes import axes_or_current, deviations_of, input_names, literal, shortened, without_units
from nurf.plots._relevance import draw_relevance
from nurf.plots._style import style_of

SHOWN = 3  # inputs in the name of a direction
SMALLEST = 0.1  # smallest component in the name of a direction
LONGEST = 70  # letters of a line on axes of 4 inches
LEAST = 5e-4  # smallest share that is shown: smaller ones are 0.0%


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """The sensitivity of a fitted function to its inputs.

    With the gradients ``g_k`` at samples, in standard deviations of the inputs and of the values, the relevance of
    input ``j`` is ``(mean_k g_kj^2)^(1/2)``. The active directions are the eigenvectors of ``mean_k g_k g_k^T``
    (Constantine, Active Subspaces, 2015).

    Parameters
    ----------
    relevance : array of shape (d,)
    shares : array of shape (d,)
        The eigenvalues divided by their sum, the largest first; zero for a constant function.
    directions : array of shape (d, d)
        The eigenvectors as rows, in standard deviations of the inputs. The largest component is positive.
    """

    relevance: Array
    shares: Array
    directions: Array

    @classmethod
    def of(cls, model: NetworkRegressor, X: Any, output: int = 0) -> Sensitivity:
        """Return the sensitivity of one output of a fitted model, averaged over samples (n, d)."""
        predicted = model.predict_gradient(X)
        d = predicted.shape[-1]
        gradients = predicted.reshape(len(predicted), -1, d)
        if not (is_whole(output, 0) and output < gradients.shape[1]):
            raise ValueError(f"`output` must be a whole number from 0 to {gradients.shape[1] - 1}, got {output!r}")
        units = deviations_of(np.asarray(X, float)) / np.ravel(model.y_scale_)[output]
        scaled = gradients[:, output] * units
        values, vectors = np.linalg.eigh(scaled.T @ scaled / len(scaled))
        values, rows = np.maximum(values[::-1], 0.0), vectors.T[::-1]
        signs = np.sign(rows[np.arange(d), np.argmax(np.abs(rows), axis=1)])
        return cls(
            np.sqrt(np.mean(scaled**2, axis=0)),
            values / (values.sum() or 1.0),
            rows * signs[:, None],
        )


def sensitivity(
    model: NetworkRegressor,
    X: Any,
    *,
    output: int = 0,
    names: Sequence[str] | None = None,
    n_inputs: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Plot the sensitivity of a fitted function to each input as a bar, the largest on top.

    A bar is the root mean square of the predicted partial derivatives at the samples, in standard deviations: the
    change of the output, in standard deviations of the values, if the input changes by its standard deviation.

    Parameters
    ----------
    model : regressor of nurf
        Any fitted regressor.
    X : array or frame of shape (n, d)
        Samples over which to average.
    output : int, default=0
        The output to show, if there are several.
    names, n_inputs, ax
        As for ``relevance``.

    Returns
    -------
    matplotlib Axes
    """
    names = input_names(model, names)
    return draw_relevance(Sensitivity.of(model, X, output).relevance, names, n_inputs, ax)


def active_directions(
    model: NetworkRegressor,
    X: Any,
    *,
    output: int = 0,
    names: Sequence[str] | None = None,
    n_directions: int = 6,
    ax: Axes | None = None,
) -> Axes:
    """Plot the directions along which a fitted function varies, with their shares of the mean squared gradient.

    The directions are the eigenvectors of ``mean_k g_k g_k^T`` with the predicted gradients ``g_k`` at the samples, in
    standard deviations of the inputs and of the values. A direction is named by its three largest components, if they
    are at least 0.1. Directions with shares that round to 0.0% are not shown. If the first shares add up to nearly one,
    the function depends on few combinations of the inputs.

    Parameters
    ----------
    model : regressor of nurf
        Any fitted regressor.
    X : array or frame of shape (n, d)
        Samples over which to average.
    output : int, default=0
        The output to show, if there are several.
    names : sequence of str, optional
        Names of all inputs. Default is the columns of the fitted data frame, or ``x0, x1, ...``.
    n_directions : int, default=6
        The largest number of directions.
    ax : matplotlib Axes, optional
        Default is the current axes.

    Returns
    -------
    matplotlib Axes
    """
    names = input_names(model, names)
    if not is_whole(n_directions):
        raise ValueError(f"`n_directions` must be a whole number >= 1, got {n_directions!r}")
    found = Sensitivity.of(model, X, output)
    shares = found.shares[: min(n_directions, int(np.sum(found.shares >= LEAST)) or n_directions)]
    names = without_units(names)
    for most in (30, 20, 14, 10):
        texts = [_combination(each, names, most) for each in found.directions[: len(shares)]]
        labels = [f"{share:.1%}: {text}" for share, text in zip(shares, texts, strict=True)]
        if max(map(len, labels)) <= LONGEST:
            break
    ax = axes_or_current(ax)
    ax.barh(range(len(shares)), shares, height=0.42, color=style_of("nonlocal").color)
    for row, label in enumerate(labels):  # above the bars: beside them, labels would leave no room
        ax.text(0.01, row - 0.28, literal(label), va="bottom", fontsize="small", clip_on=True).set_in_layout(False)
    ax.set(xlim=(0, 1), ylim=(len(shares) - 0.6, -0.8), yticks=[], xlabel="share of the mean squared gradient")
    return ax


def _combination(direction: Array, names: Sequence[str], most: int) -> str:
    """Return a direction as text, with its largest components and with names of at most ``most`` letters.

    >>> _combination(np.array([0.6, -0.8, 0.01]), ["a", "b", "c"], 20)
    '-0.80 b + 0.60 a'
    """
    largest = [j for j in np.argsort(-np.abs(direction), kind="stable")[:SHOWN] if abs(direction[j]) >= SMALLEST]
    terms = [f"{'-' if direction[j] < 0 else '+'} {abs(direction[j]):.2f} {shortened(names[j], most)}" for j in largest]
    first, *rest = terms or ["many inputs"]
    rest += ["+ ..."] if np.sum(direction[largest] ** 2) < 1 - SMALLEST**2 * SHOWN else []
    return " ".join([first.removeprefix("+ ").replace("- ", "-", 1), *rest])
