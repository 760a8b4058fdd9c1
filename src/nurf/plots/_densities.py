"""The density of lines in the plane over angles and offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.special import ive
from scipy.stats import norm

from nurf._blocks import row_blocks
from nurf._types import Array
from nurf._validation import as_finite
from nurf.networks import Hyperplanes
from nurf.plots._axes import axes_or_current

CELLS = (240, 160)  # pixels of the image, along angles and offsets


def angle_offset_density(
    planes: Hyperplanes, *, weights: Any = None, bandwidth: float = 0.08, ax: Axes | None = None
) -> Axes:
    """Plot a kernel density estimate of hyperplanes in two dimensions (paper, figures 6 and 9).

    A hyperplane ``a.x + b = 0`` with ``a = (cos t, sin t)`` is a point ``(t, b)`` in [-pi, pi) x [-1, 1]. Only
    hyperplanes that intersect the unit ball are used; the integral of the density over the image is one.

    Parameters
    ----------
    planes : Hyperplanes
        Hyperplanes in two dimensions, for inputs scaled into the unit ball (``model.fit_.network.hyperplanes``).
    weights : array of shape (N,), optional
        Weights of the hyperplanes; their absolute values are used. The paper uses the outer weights ``c_n`` of a
        trained network.
    bandwidth : float, default=0.08
        Bandwidth of the kernel, in radians for the angle and in radii of the ball for the offset.
    ax : matplotlib Axes, optional
        Default is the current axes. For a colour bar, use the image ``ax.images[-1]``.

    Returns
    -------
    matplotlib Axes
    """
    angles, offsets = (_centres(high, cells) for high, cells in zip((np.pi, 1.0), CELLS, strict=True))
    density = kernel_density(planes, angles, offsets, weights=weights, bandwidth=bandwidth)
    ax = axes_or_current(ax)
    ax.imshow(
        density.T,
        extent=(-np.pi, np.pi, -1, 1),
        origin="lower",
        aspect="auto",
        interpolation="bilinear",
        cmap="Blues",
        vmin=0,
    )
    ax.set_xticks(np.pi * np.linspace(-1, 1, 5), ["$-\\pi$", "$-\\pi/2$", "$0$", "$\\pi/2$", "$\\pi$"])
    ax.set(xlabel="angle of the normal $a$", ylabel="offset $b$", yticks=[-1, -0.5, 0, 0.5, 1])
    return ax


def kernel_density(
    planes: Hyperplanes, angles: Array, offsets: Array, *, weights: Any = None, bandwidth: float = 0.08
) -> Array:
    """Return the density estimate at all pairs of angles (m,) and offsets (l,), of shape (m, l).

    The kernel is the product of the periodic von Mises density ``exp(cos(t) / h^2) / (2 pi I_0(1 / h^2))`` of the angle
    and a Gaussian density of the offset, reflected at -1 and 1.
    """
    if planes.dimension != 2:
        raise ValueError(f"angles and offsets can be plotted for d = 2, got d = {planes.dimension}")
    if not 0 < bandwidth <= 0.5:
        raise ValueError(f"`bandwidth` must be > 0 and <= 0.5, got {bandwidth!r}")
    a, b, masses = _within_unit_ball(planes, weights)
    kappa = bandwidth**-2
    density = np.zeros((len(angles), len(offsets)))
    for rows in row_blocks(len(b), len(angles) + len(offsets)):
        differences = angles[:, None] - np.arctan2(a[rows, 1], a[rows, 0])
        angular = np.exp(kappa * (np.cos(differences) - 1)) / (2 * np.pi * ive(0, kappa))
        reflected = np.stack([b[rows], 2 - b[rows], -2 - b[rows]])
        radial = norm.pdf(offsets, loc=reflected[:, :, None], scale=bandwidth).sum(axis=0)
        density += (angular * masses[rows]) @ radial
    return density


def _within_unit_ball(planes: Hyperplanes, weights: Any) -> tuple[Array, Array, Array]:
    """Return normals, offsets and normalised weights of the hyperplanes with ``|b| <= 1``."""
    masses = np.ones(len(planes)) if weights is None else np.abs(as_finite("weights", weights))
    if masses.shape != (len(planes),):
        raise ValueError(f"`weights` must have shape (N,) = ({len(planes)},), got {masses.shape}")
    inside = np.abs(planes.offsets) <= 1
    total = masses[inside].sum()
    if total == 0:
        raise ValueError("no hyperplane (of weight > 0) intersects the unit ball: are the inputs scaled?")
    return planes.normals[inside], planes.offsets[inside], masses[inside] / total


def _centres(high: float, cells: int) -> Array:
    """Return the centres of ``cells`` equal parts of [-high, high]."""
    return high * ((2 * np.arange(cells) + 1) / cells - 1)
