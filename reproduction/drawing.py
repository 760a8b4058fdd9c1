"""The pictures: panels of figures, and how figures are written."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from nurf import plots
from nurf.jets import Jet
from nurf.networks import Hyperplanes
from reproduction.arrays import Array
from reproduction.authors import reference
from reproduction.cases import Case
from reproduction.files import write_with
from reproduction.fits import network_of
from reproduction.results import Neurons, Table

METADATA = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}  # no dates: equal numbers give equal files
DPI = 100
COLORS = 40  # of PNG files: enough for lines and shades, at a quarter of the size
TITLES = {
    "gaussian_bump": "Gaussian bump, $s = 1$",
    "gaussian_bump_s2": "Gaussian bump, $s = 2$",
    "planar_wave": "planar wave",
    "checkmark_2d": "checkmark, $d = 2$",
    "checkmark_3d": "checkmark, $d = 3$",
    "checkmark_4d": "checkmark, $d = 4$",
    "corner": "corner",
    "separable": "separable",
    "corner_peak_3d": "corner peak, $d = 3$",
    "corner_peak_4d": "corner peak, $d = 4$",
    "robot_arm_6d": "robot arm, $d = 6$",
    "borehole_8d": "borehole (the true function), $d = 8$",
}
CAP: dict[str, Any] = {"color": "0.3", "linewidth": 0.8, "linestyle": (0, (6, 3))}


def write(figure: Figure, stem: Path) -> Path:
    """Write a figure as SVG, PDF and PNG, and return the path of the SVG file."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the layout is found once, not for every format
    with mpl.rc_context({"svg.hashsalt": "nurf"}):
        for suffix, metadata in METADATA.items():
            write_with(stem.with_suffix(suffix), partial(figure.savefig, dpi=DPI, metadata=metadata))
    write_with(stem.with_suffix(".png"), partial(_write_png, figure))
    return stem.with_suffix(".svg")


def _write_png(figure: Figure, path: Path) -> None:
    pixels = io.BytesIO()
    figure.savefig(pixels, dpi=DPI)
    Image.open(pixels).convert("RGB").quantize(COLORS, kmeans=2).save(path, optimize=True)


def convergence(table: Table, caps: Mapping[str, int]) -> Figure:
    """Draw the errors of all methods against numbers of neurons, a panel for each case; the authors' are thin lines.

    The spread over the trials, the standard deviation of log error, has a panel of its own below. A vertical line is at
    the largest number of neurons that a trained network may have, given by ``caps`` for each case, if one has so many.
    """
    figure = Figure(figsize=(5.2 * len(caps), 5.2), layout="constrained")
    repeated = any(len(table.trials(key, method)) > 1 for key in caps for method in table.methods(key))
    axes = figure.subplots(1 + repeated, len(caps), squeeze=False, sharex="col", height_ratios=(4, 1)[: 1 + repeated])
    capped = False
    for column, (key, cap) in zip(axes.T, caps.items(), strict=True):
        _errors(column[0], table, key)
        column[0].set_title(TITLES[key])
        if repeated:
            _spreads(column[1], table, key)
            column[0].set_xlabel("")
        if any(row.neurons == cap for rows in table.trials(key, "sparse") for row in rows):
            column[0].axvline(cap, zorder=1, **CAP)
            capped = True
    _legend(figure, [method for method in plots.STYLES if any(table.trials(key, method) for key in caps)], capped)
    return figure


def _errors(ax: Axes, table: Table, key: str) -> None:
    theirs = reference()
    for method in plots.STYLES:
        if theirs.trials(key, method):
            neurons, errors = theirs.curve(key, method)
            ax.plot(neurons, geometric_mean(errors), color=plots.style_of(method).color, linewidth=0.8, zorder=1.5)
        if table.trials(key, method):
            neurons, errors = table.curve(key, method)
            plots.convergence(neurons, geometric_mean(errors), style=method, ax=ax)


def _spreads(ax: Axes, table: Table, key: str) -> None:
    for method in plots.STYLES:
        if len(table.trials(key, method)) > 1:
            neurons, errors = table.curve(key, method)
            spread = np.log(errors).std(axis=0, ddof=1)
            ax.plot(neurons, spread, linewidth=1.0, markersize=3, **plots.style_of(method).line())
    ax.set(xlabel="number of neurons $N$", ylabel="spread", ylim=(0, None))
    ax.grid(True, color="0.9", linewidth=0.8)


def geometric_mean(errors: Array) -> Array:
    """Return ``exp(mean log error)`` over the trials (trials, m), of shape (m,)."""
    return np.asarray(np.exp(np.log(errors).mean(axis=0)))


def _legend(figure: Figure, methods: Sequence[str], capped: bool) -> None:
    """Put the legend below the panels."""
    handles = [
        Line2D([], [], label=plots.style_of(method).label, linewidth=1.6, **plots.style_of(method).line())
        for method in methods
    ]
    handles.append(Line2D([], [], color="0.3", linewidth=0.8, label="thin: the authors' code"))
    if capped:
        handles.append(Line2D([], [], label="limit of training", **CAP))
    columns = (len(handles) + 1) // 2
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, handlelength=3.5, frameon=False)


def penalties(table: Table, keys: Sequence[str]) -> Figure:
    """Draw the errors of trained networks along the path over alpha, with the concave and the convex penalty."""
    figure = Figure(figsize=(10.4, 5.8), layout="constrained")
    axes = figure.subplots(2, 3)
    for ax, key in zip(axes.flat, keys, strict=True):
        for method, label, style in (("sparse", "concave penalty", "sparse"), ("convex", "convex penalty", None)):
            neurons, errors = table.curve(key, method)
            plots.convergence(neurons, geometric_mean(errors), style=style, label=label, ax=ax)
        ax.set_title(TITLES[key], fontsize="medium")
        ax.set_xlabel(ax.get_xlabel() if ax in axes[-1] else "")
        ax.set_ylabel(ax.get_ylabel() if ax in axes[:, 0] else "")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, handlelength=3.5, frameon=False)
    return figure


def densities(panels: Mapping[str, Mapping[str, Neurons]]) -> Figure:
    """Draw densities of hyperplanes over angles and offsets: a row for each case, a column for each method.

    The hyperplanes of a trained network are weighted by ``|c_n|``. A neuron ``(a, b)`` and its mirror image
    ``(-a, -b)`` have the same hyperplane, and both are drawn. Each panel has a scale of its own: the peaks differ.
    """
    figure = Figure(figsize=(11.5, 3.2 * len(panels)), layout="constrained")
    columns = len(next(iter(panels.values())))
    for axes, (key, methods) in zip(figure.subplots(len(panels), columns, squeeze=False), panels.items(), strict=True):
        for ax, (method, neurons) in zip(axes, methods.items(), strict=True):
            planes, weights = mirrored(neurons)
            plots.angle_offset_density(planes, weights=weights, bandwidth=0.1, ax=ax)
            ax.set_title(f"{TITLES[key]}: {plots.style_of(method).label}", fontsize="medium")
            figure.colorbar(ax.images[-1], ax=ax, pad=0.02).ax.locator_params(nbins=5)
            ax.label_outer()
    return figure


def mirrored(neurons: Neurons) -> tuple[Hyperplanes, Array]:
    """Return the hyperplanes with their mirror images, and the weight of each."""
    planes = neurons.hyperplanes
    images = Hyperplanes(-planes.normals, -planes.offsets)
    return planes + images, np.tile(np.abs(neurons.coef), 2)


def portraits(case: Case, data: Jet, networks: Mapping[str, Neurons], errors: Mapping[str, float]) -> Figure:
    """Draw fits side by side: curves with inflection points in one dimension, lines above surfaces in two."""
    draw: Callable[..., Figure] = _curves if case.dimension == 1 else _surfaces
    titles = {
        method: f"{plots.style_of(method).label}, $N = {len(neurons)}$, error {errors[method]:.3f}"
        for method, neurons in networks.items()
    }
    return draw(case, data, networks, titles)


def _curves(case: Case, data: Jet, networks: Mapping[str, Neurons], titles: Mapping[str, str]) -> Figure:
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for ax, (method, neurons) in zip(figure.subplots(1, len(networks), sharey=True), networks.items(), strict=True):
        ax.plot(data.X[:, 0], data.y, ".", color="0.75", markersize=2, rasterized=True, label="data")
        plots.hyperplanes(
            neurons.hyperplanes, domain=case.function.domain, function=network_of(neurons, case).value, ax=ax
        )
        ax.set_title(titles[method], fontsize="medium")
        ax.locator_params(axis="x", nbins=5)
        ax.label_outer()
    crosses = ax.collections[-1]
    crosses.set_label("inflection points")
    handles = [
        Line2D([], [], color="0.75", marker=".", linestyle="none", label="data"),
        Line2D([], [], color="black", label="network"),
        crosses,
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _surfaces(case: Case, data: Jet, networks: Mapping[str, Neurons], titles: Mapping[str, str]) -> Figure:
    figure = Figure(figsize=(12, 8), layout="constrained")
    box = case.function.domain
    x, y = np.linspace(box.lower, box.upper, 51).T
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    for column, (method, neurons) in enumerate(networks.items(), 1):
        network = network_of(neurons, case)
        top: Axes = figure.add_subplot(2, 3, column)
        plots.hyperplanes(
            neurons.hyperplanes, domain=box, function=case.function.value, weights=np.sqrt(np.abs(neurons.coef)), ax=top
        )
        top.collections[0].set_rasterized(True)  # contours of a wave are long paths
        top.set_title(titles[method], fontsize="medium")
        bottom: Any = figure.add_subplot(2, 3, 3 + column, projection="3d", computed_zorder=False)
        values = network.value(grid.reshape(-1, 2)).reshape(grid.shape[:2])
        bottom.plot_surface(
            grid[..., 0], grid[..., 1], values, cmap="Blues", rstride=1, cstride=1, linewidth=0.2, edgecolor="0.4",
            alpha=0.8, rasterized=True,
        )  # fmt: skip
        bottom.scatter(
            data.X[:, 0],
            data.X[:, 1],
            data.y,
            s=1.5,
            color="black",
            alpha=0.4,
            linewidths=0,
            rasterized=True,
            depthshade=False,
            zorder=2,
        )
        bottom.set(xlabel="$x_1$", ylabel="$x_2$")
        bottom.locator_params(nbins=4)
    return figure
