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
from matplotlib.colors import PowerNorm
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
COLORS = 128  # of PNG files; with 40, lines of similar colours became equal
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
ROWS = {  # of panels; local sampling is in both, to compare its residual version with
    "sampled from the data": ("uniform", "active_subspace", "local", "nonlocal", "representation"),
    "sampled from the residual, trained": ("local", "local_residual", "nonlocal_residual", "sparse"),
}
LIMITED: dict[str, Any] = {
    "marker": "*", "markersize": 11, "color": "black", "markerfacecolor": "white", "linestyle": "none",
}  # fmt: skip


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
    """Draw the errors of all methods against numbers of neurons; the authors' are thin lines without markers.

    Each case has a column with two panels of the same scale: methods that sample from the data, and below them those
    that sample from the residual or train. Bands are one standard deviation of log error over the trials. A trained
    network with as many neurons as it may have, given by ``caps`` for each case, has a hollow marker.
    """
    figure = Figure(figsize=(5.2 * len(caps), 7.6), layout="constrained")
    axes = figure.subplots(len(ROWS), len(caps), squeeze=False, sharex="col", sharey="col")
    for column, (key, cap) in zip(axes.T, caps.items(), strict=True):
        drawn: list[float] = []
        for ax, (name, methods) in zip(column, ROWS.items(), strict=True):
            drawn += _errors(ax, table, key, methods)
            ax.text(0.02, 0.03, name, transform=ax.transAxes, fontsize="small", color="0.3")
        column[0].set(title=TITLES[key], xlabel="", ylim=(min(drawn) / 1.2, max(drawn) * 1.2))
        _mark_limit(column[-1], table, key, cap)
    for ax in axes[:, 1:].flat:
        ax.set_ylabel("")
    shown = [method for method in plots.STYLES if any(table.trials(key, method) for key in caps)]
    _legend(figure, shown, any(_limited(table, key, cap) for key, cap in caps.items()))
    return figure


def _errors(ax: Axes, table: Table, key: str, methods: Sequence[str]) -> list[float]:
    """Draw some methods on a case, and return the errors on their lines."""
    theirs, drawn = reference(), []
    for method in methods:
        if theirs.trials(key, method):
            neurons, errors = largest_steps(*theirs.curve(key, method))
            drawn += geometric_mean(errors).tolist()
            ax.plot(neurons, geometric_mean(errors), color=plots.style_of(method).color, linewidth=0.8, zorder=1.5)
        if table.trials(key, method):
            neurons, errors = largest_steps(*table.curve(key, method))
            drawn += geometric_mean(errors).tolist()
            plots.convergence(neurons, errors, style=method, ax=ax)
    for band in ax.collections:
        band.set(alpha=0.12, linewidth=0.6)  # several of them overlap
    return drawn


def largest_steps(neurons: Array, errors: Array) -> tuple[Array, Array]:
    """Return numbers of neurons (m,) and errors (trials, m) without steps that the next one does not exceed in size."""
    last = np.append(np.diff(neurons.round()) > 0, True)
    return neurons[last], errors[:, last]


def _limited(table: Table, key: str, cap: int) -> bool:
    """Return whether all trained networks at the end of their paths have as many neurons as they may have."""
    paths = table.trials(key, "sparse")
    return bool(paths) and all(path[-1].neurons == cap for path in paths)


def _mark_limit(ax: Axes, table: Table, key: str, cap: int) -> None:
    if _limited(table, key, cap):
        neurons, errors = table.curve(key, "sparse")
        ax.plot(neurons[-1:], geometric_mean(errors)[-1:], zorder=3, **LIMITED)


def geometric_mean(errors: Array) -> Array:
    """Return ``exp(mean log error)`` over the trials (trials, m), of shape (m,)."""
    return np.asarray(np.exp(np.log(errors).mean(axis=0)))


def _legend(figure: Figure, methods: Sequence[str], limited: bool) -> None:
    """Put the legend below the panels."""
    handles = [
        Line2D([], [], label=plots.style_of(method).label, linewidth=1.6, **plots.style_of(method).line())
        for method in methods
    ]
    handles.append(Line2D([], [], color="0.3", linewidth=0.8, label="thin: the authors' code"))
    if limited:
        handles.append(Line2D([], [], label="largest allowed", **LIMITED))
    columns = (len(handles) + 1) // 2
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, handlelength=3.5, frameon=False)


def penalties(table: Table, keys: Sequence[str]) -> Figure:
    """Draw the errors of trained networks along the path over alpha, with the concave and the convex penalty."""
    figure = Figure(figsize=(10.4, 5.8), layout="constrained")
    axes = figure.subplots(2, 3)
    for ax, key in zip(axes.flat, keys, strict=True):
        for method, label, style in (("sparse", "concave penalty", "sparse"), ("convex", "convex penalty", None)):
            neurons, errors = largest_steps(*table.curve(key, method))
            plots.convergence(neurons, geometric_mean(errors), style=style, label=label, ax=ax)
        ax.set_title(TITLES[key], fontsize="medium")
        ax.set_xlabel(ax.get_xlabel() if ax in axes[-1] else "")
        ax.set_ylabel(ax.get_ylabel() if ax in axes[:, 0] else "")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, handlelength=3.5, frameon=False)
    return figure


def densities(panels: Mapping[str, Mapping[str, Neurons]]) -> Figure:
    """Draw densities of hyperplanes over angles and offsets: a row for each case, a column for each method.

    The hyperplanes of a trained network are weighted by ``|c_n|``. A neuron ``(a, b)`` and its mirror image
    ``(-a, -b)`` have the same hyperplane, and both are drawn. A row has one scale of colours, of the root of the
    density: peaks of different heights are compared, and low parts are seen.
    """
    figure = Figure(figsize=(11.5, 3.2 * len(panels)), layout="constrained")
    columns = len(next(iter(panels.values())))
    for axes, (key, methods) in zip(figure.subplots(len(panels), columns, squeeze=False), panels.items(), strict=True):
        for ax, (method, neurons) in zip(axes, methods.items(), strict=True):
            planes, weights = mirrored(neurons)
            plots.angle_offset_density(planes, weights=weights, bandwidth=0.1, ax=ax)
            ax.set_title(f"{TITLES[key]}: {plots.style_of(method).label}", fontsize="medium")
            ax.label_outer()
        images = [ax.images[-1] for ax in axes]
        scale = PowerNorm(0.5, vmin=0, vmax=max(image.get_clim()[1] for image in images))
        for image in images:
            image.set_norm(scale)
        figure.colorbar(images[-1], ax=list(axes), pad=0.01)
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
