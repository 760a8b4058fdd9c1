"""Sparse training: the dual certificate, the path over alpha, the trained hyperplanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from nurf._types import Array
from nurf.activations import Activation
from nurf.jets import Jet
from nurf.networks import Box, Features, Hyperplanes, ShallowNetwork
from nurf.plots._axes import axes_or_current
from nurf.plots._hyperplanes import COLOR, hyperplanes
from nurf.plots._style import style_of
from nurf.solvers import VALUES_ONLY, Loss
from nurf.solvers.sparse import Misfit

CELLS = (240, 160)  # of the image, along angles and offsets
POINTS = 801  # of the line


def certificate(
    network: ShallowNetwork, jet: Jet, alpha: float, *, loss: Loss = VALUES_ONLY, ax: Axes | None = None
) -> Axes:
    """Plot the dual certificate ``|<r, sigma(omega)>| / alpha`` of a trained network's residual ``r``.

    A neuron where the certificate is at most 1 cannot lower the objective. For d = 1 the certificate is a line over the
    places ``x = -b / a`` of neurons; for d = 2 it is an image over angles of the normal and offsets, with a contour at
    1. Dots are the neurons of the network, where the certificate is ``psi'(|c_n|)``, which is 1 for the convex penalty.
    If each neuron has its own width, the plot uses the geometric mean of the widths.

    Parameters
    ----------
    network : ShallowNetwork
        The network in scaled units: ``model.fit_.network``.
    jet : Jet
        The data in scaled units: ``model.scaling_(Jet(X, y))``, with the derivatives in the loss.
    alpha : float
        The regularisation, ``model.alpha_``.
    loss : Loss, optional
        The weights of derivatives in the fit, ``model.fit_.loss``. Default is values only.
    ax : matplotlib Axes, optional
        Default is the current axes. For a colour bar, use the image ``ax.images[-1]``.

    Returns
    -------
    matplotlib Axes
    """
    d = network.hyperplanes.dimension
    if d not in (1, 2):
        raise ValueError(f"the certificate can be drawn for d = 1 and d = 2, got d = {d}")
    residual = Misfit(jet, loss).residual(
        ShallowNetwork(network.features, network.coefficients.reshape(len(network.coefficients), -1))
    )

    def height(planes: Hyperplanes, activation: Activation) -> Array:
        moments = residual.moments(Features(planes, activation, -1)).values
        return np.asarray(np.linalg.norm(moments, axis=1) / alpha)

    ax = axes_or_current(ax)
    draw = _draw_line if d == 1 else _draw_image
    draw(
        ax,
        network,
        lambda planes: height(planes, _one_width(network.activation)),
        height(network.hyperplanes, network.activation),
    )
    return ax


def _one_width(activation: Activation) -> Activation:
    """Return the activation with a single width, the geometric mean if each neuron has its own width."""
    width = np.asarray(activation.width)
    return type(activation)(float(np.exp(np.log(width).mean()))) if width.ndim else activation  # type: ignore[call-arg]


def _draw_line(ax: Axes, network: ShallowNetwork, height: Callable[[Hyperplanes], Array], own: Array) -> None:
    x = np.linspace(-1, 1, POINTS)
    ax.plot(x, height(Hyperplanes(np.ones((POINTS, 1)), -x)), color=style_of("nonlocal").color, linewidth=1.4)
    ax.axhline(1.0, color="black", linewidth=0.8, linestyle="--")
    planes = network.hyperplanes
    ax.plot(-planes.offsets / planes.normals[:, 0], own, "o", color=COLOR, markersize=5)
    ax.set(xlim=(-1, 1), ylim=(0, None), xlabel="place $-b/a$ of a neuron", ylabel=r"certificate $|p| / \alpha$")


def _draw_image(ax: Axes, network: ShallowNetwork, height: Callable[[Hyperplanes], Array], own: Array) -> None:
    angles, offsets = (high * ((2 * np.arange(n) + 1) / n - 1) for high, n in zip((np.pi, 1.0), CELLS, strict=True))
    t, b = (grid.ravel() for grid in np.meshgrid(angles, offsets))
    values = height(Hyperplanes(np.column_stack([np.cos(t), np.sin(t)]), b)).reshape(len(offsets), len(angles))
    ax.imshow(values, extent=(-np.pi, np.pi, -1, 1), origin="lower", aspect="auto", cmap="Blues", vmin=0)
    if values.min() < 1 < values.max():
        ax.contour(angles, offsets, values, levels=[1.0], colors="black", linewidths=0.8)
    planes = network.hyperplanes
    ax.plot(np.arctan2(planes.normals[:, 1], planes.normals[:, 0]), planes.offsets, "o", color=COLOR, markersize=4)
    ax.set_xticks(np.pi * np.linspace(-1, 1, 5), ["$-\\pi$", "$-\\pi/2$", "$0$", "$\\pi/2$", "$\\pi$"])
    ax.set(xlim=(-np.pi, np.pi), ylim=(-1, 1), xlabel="angle of the normal $a$", ylabel="offset $b$")


def sparse_path(path: Mapping[str, Any], *, alpha: float | None = None, ax: Axes | None = None) -> Axes:
    """Plot the estimated error against alpha, largest alpha first, with the number of neurons beside each step.

    Parameters
    ----------
    path : mapping with arrays "alpha", "neurons" and "error"
        The path of the fit, ``model.path_``.
    alpha : float, optional
        The chosen alpha, ``model.alpha_``, which is marked by a ring.
    ax : matplotlib Axes, optional
        Default is the current axes.

    Returns
    -------
    matplotlib Axes
    """
    alphas, neurons, errors = (np.asarray(path[name]) for name in ("alpha", "neurons", "error"))
    ax = axes_or_current(ax)
    ax.plot(alphas, errors, linewidth=1.6, markersize=7, **style_of("sparse").line())
    for x, y, n in zip(alphas, errors, neurons, strict=True):
        ax.annotate(str(n), (x, y), xytext=(8, 12), textcoords="offset points", fontsize="small")
    if alpha is not None:
        chosen = alphas == alpha
        ax.plot(alphas[chosen], errors[chosen], "o", markersize=13, markerfacecolor="none", markeredgecolor=COLOR)
    ax.set(xscale="log", yscale="log", xlabel=r"$\alpha$", ylabel="estimated error")
    ax.margins(x=0.18, y=0.1)  # for the numbers
    if not ax.xaxis_inverted():
        ax.invert_xaxis()
    return ax


def trained_hyperplanes(
    network: ShallowNetwork,
    *,
    X: Any = None,
    domain: Box | None = None,
    function: Callable[[Array], Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the hyperplanes of a trained network, with opacity that grows with their outer weights ``|c_n|``.

    Parameters
    ----------
    network : ShallowNetwork
        The network in the units of the data: ``model.network_``, or ``model.step_network(i)`` for a step of the path.
    X, domain, function, ax
        As for ``hyperplanes``.

    Returns
    -------
    matplotlib Axes
    """
    sizes = np.linalg.norm(network.coef.reshape(len(network.coef), -1), axis=1)
    return hyperplanes(network.hyperplanes, X=X, domain=domain, function=function, weights=sizes, ax=ax)
