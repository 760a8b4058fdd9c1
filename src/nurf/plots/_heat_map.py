"""Heat maps of a fitted function over two of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from nurf.estimators import NetworkRegressor
from nurf.plots._axes import axes_or_current, input_names, literal, shortened
from nurf.plots._through import checked, fading, like, lines_through, most_varying, one_output, positions

PIXELS = 100  # along each input
COLORS = "viridis"


def heat_map(
    model: NetworkRegressor,
    X: Any,
    *,
    inputs: Sequence[int | str] | None = None,
    point: Any = None,
    output: int = 0,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot predictions over two inputs as colours, with the other inputs fixed at a point.

    Dots are the samples; the farther from the plane a sample is, the fainter its dot, as in ``slices``.

    Parameters
    ----------
    model : regressor of nurf
        A fitted regressor.
    X : array or frame of shape (n, d)
        Samples, which determine the range of the map.
    inputs : two int or str, optional
        The inputs, by their positions or names. Default is the two along which the prediction varies most.
    point : array of shape (d,), optional
        The values of the other inputs. Default is the mean of the samples.
    output : int, default=0
        The output to show, if there are several.
    names : sequence of str, optional
        Names of all inputs. Default is the columns of the fitted data frame, or ``x0, x1, ...``.
    ax : matplotlib Axes, optional
        Default is the current axes. A colour bar is drawn beside them.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from nurf import KernelFeatureRegressor, plots
    >>> X = np.random.default_rng(0).uniform(-1, 1, (30, 3))
    >>> model = KernelFeatureRegressor("gaussian").fit(X, np.sin(2 * X[:, 0]) + X[:, 2])
    >>> ax = plots.heat_map(model, X, ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x0', 'x2')
    """
    labels = input_names(model, names)
    samples, center = checked(X, point, len(labels))
    if len(labels) < 2:
        raise ValueError("a heat map needs a model with at least two inputs, got one")
    if inputs is None:
        along = [one_output(model.predict(like(X, line)), output) for line in lines_through(samples, center)]
        shown = sorted(most_varying(np.array(along))[:2])
    else:
        shown = positions(inputs, labels)
    if len(set(shown)) != 2 or len(shown) != 2:
        raise ValueError(f"`inputs` must be two different inputs, got {inputs!r}")
    ax = axes_or_current(ax)
    first, second = (np.linspace(samples[:, j].min(), samples[:, j].max(), PIXELS) for j in shown)
    plane = np.tile(center, (PIXELS**2, 1))
    plane[:, shown] = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    heights = one_output(model.predict(like(X, plane)), output).reshape(PIXELS, PIXELS)
    mesh = ax.pcolormesh(first, second, heights, cmap=COLORS, shading="gouraud", rasterized=True)
    ax.figure.colorbar(mesh, ax=ax, label="predicted value")
    x, y = samples[:, shown].T
    ax.scatter(x, y, c=fading(samples, center, shown), s=14, edgecolors="white", linewidths=0.3)
    across, up = (literal(shortened(labels[j], 36)) for j in shown)
    ax.set(xlabel=across, ylabel=up)
    return ax
