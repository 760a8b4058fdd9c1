"""The figures of a report, as SVG with the colours of the page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from nurf import plots
from nurf._types import Array
from nurf.networks import Box, Hyperplanes
from nurf.plots import Sensitivity, literal, on_scale, section, set_scale, shortened
from nurf.report._evidence import Evidence

SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "nurf",
    "font.size": 9.0,
    "font.family": "sans-serif",
    "legend.frameon": False,  # a white frame would hide the text in dark colours
}
SMALL, SQUARE = (3.7, 2.7), (3.7, 3.5)  # inches: readable in a column of a phone
COLOR = plots.style_of("nonlocal").color
FEW = 500  # points that are drawn as shapes, which follow the colours of the page; more points are drawn as pixels
MOST_LINES = 400  # largest number of hyperplanes that are drawn


@dataclass(frozen=True)
class Picture:
    """A figure and its title."""

    svg: Markup
    title: str


def drawn(draw: Callable[..., Any], title: str, size: tuple[float, float] = SMALL) -> Picture:
    """Return the figure that ``draw(ax=...)`` draws."""
    with mpl.rc_context(SETTINGS):
        figure, ax = _panel(size)
        draw(ax=ax)
        for artist in (*ax.lines, *ax.collections):
            if artist.get_rasterized() and _n_points(artist) <= FEW:
                artist.set_rasterized(False)
        return Picture(_svg(figure), title)


def slices(model: Any, evidence: Evidence, output: int, names: Sequence[str]) -> list[Picture]:
    """Return slices of the function along each input, or along the nine inputs in which it varies most."""
    X = frame_of(model, evidence.X)
    order = np.argsort(-Sensitivity.of(model, X, output).relevance, kind="stable")
    chosen = sorted(order[: plots._slices.PANELS].tolist())
    with mpl.rc_context(SETTINGS):
        panels = [_panel(SMALL) for _ in chosen]
        axes = [ax for _, ax in panels]
        plots.slices(model, X, evidence.y, inputs=chosen, output=output, names=names, axes=axes)
        for ax in axes:
            ax.set_ylabel(literal(shortened(evidence.targets[output], 30)))
        titles = [f"along {names[j]}" for j in chosen]
        return [Picture(_svg(figure), title) for (figure, _), title in zip(panels, titles, strict=True)]


def predictions(evidence: Evidence, output: int) -> list[Picture]:
    """Return figures of predicted against true values and of residuals, on held-out rows."""
    y, f, ends = (part[:, output] for part in (evidence.true, evidence.predicted, evidence.intervals))
    bars = None if np.isnan(ends).any() else ends
    return [
        drawn(lambda ax: plots.predicted_against_true(y, f, intervals=bars, ax=ax), "predicted against true", SQUARE),
        drawn(lambda ax: plots.residuals(y, f, intervals=bars, ax=ax), "residuals", SQUARE),
    ]


def inputs(model: Any, evidence: Evidence, output: int, names: Sequence[str]) -> list[Picture]:
    """Return figures of the sensitivity to each input and of the active directions."""
    X = frame_of(model, evidence.X)
    keywords: dict[str, Any] = {"output": output, "names": names}
    height = 0.9 + 0.26 * min(len(names) + 1, 13)
    return [
        drawn(lambda ax: plots.sensitivity(model, X, ax=ax, **keywords), "sensitivity", (4.6, height)),
        drawn(
            lambda ax: plots.active_directions(model, X, ax=ax, **keywords),
            "active directions",
            (4.6, 0.9 + 0.42 * min(len(names), 6)),
        ),
    ]


def hyperplanes(model: Any, evidence: Evidence, output: int, names: Sequence[str]) -> Picture | None:
    """Return a figure of the hyperplanes of a shallow network, or None if the model has no hyperplanes of its inputs.

    The hyperplanes of a network with logarithms of inputs are not hyperplanes of the inputs. With more than two inputs,
    the figure shows the intersections of the hyperplanes with the plane through the mean of the samples along the two
    leading active directions.
    """
    chosen = getattr(model, "model_", model)
    if not hasattr(chosen, "hyperplanes_") or chosen.warping_.inputs is not None:
        return None
    network = chosen.fit_.network.in_units_of(chosen.scaling_)  # of transformed values, if they are
    planes = network.hyperplanes
    distances = planes.signed_distance(evidence.X)
    crossing = int(np.sum((distances.min(axis=0) < 0) & (distances.max(axis=0) > 0)))
    title = f"{evidence.targets[output]}: {len(planes)} hyperplanes, {crossing} of which pass between samples"
    weights = np.abs(network.coef.reshape(len(planes), -1)[:, output])
    largest = np.sort(np.argsort(-weights, kind="stable")[:MOST_LINES])
    planes, weights, X, seen = planes[largest], weights[largest], evidence.X, evidence.y[:, output]

    def value(points: Array) -> Array:
        return np.asarray(model.predict(frame_of(model, points)).reshape(len(points), -1)[:, output])

    def shade(points: Array) -> Array:
        return on_scale(value(points), seen)

    if len(names) <= 2:

        def draw(ax: Any) -> None:
            if len(names) == 1:
                set_scale(ax, seen)
            plots.hyperplanes(planes, X=X, function=value if len(names) == 1 else shade, weights=weights, ax=ax)
            ax.set_xlabel(literal(shortened(names[0], 36)))
            ax.set_ylabel(literal(shortened(names[1] if len(names) == 2 else evidence.targets[output], 30)))

        return drawn(draw, title, SQUARE)
    return drawn(_section(model, evidence, output, planes, weights, shade), title, SQUARE)


def _section(
    model: Any, evidence: Evidence, output: int, planes: Hyperplanes, weights: Array, shade: Callable[[Array], Array]
) -> Callable[..., None]:
    """Return a function that draws hyperplanes in the plane of the two leading active directions.

    The axes are in standard deviations.
    """
    X = evidence.X
    center, units = X.mean(axis=0), X.std(axis=0)
    active = Sensitivity.of(model, frame_of(model, X), output).directions[:2]
    lines, kept = section(planes, center, active * units)
    places = ((X - center) / np.where(units > 0, units, 1.0)) @ active.T
    domain = Box(places.min(axis=0), places.max(axis=0))

    def draw(ax: Any) -> None:
        plots.hyperplanes(
            lines,
            domain=domain,
            function=lambda s: shade(center + s @ (active * units)),
            weights=weights[kept],
            ax=ax,
        )
        ax.set(xlabel="along the first active direction", ylabel="along the second")

    return draw


def frame_of(model: Any, points: Array) -> Any:
    """Return points as a data frame if the model was fitted to a data frame, else unchanged."""
    if not hasattr(model, "feature_names_in_"):
        return points
    import pandas as pd

    return pd.DataFrame(points, columns=list(model.feature_names_in_))


def _n_points(artist: Any) -> int:
    return len(artist.get_xdata()) if hasattr(artist, "get_xdata") else len(artist.get_paths())


def _panel(size: tuple[float, float]) -> tuple[Figure, Any]:
    figure = Figure(figsize=size, layout="constrained")
    figure.patch.set_visible(False)
    ax = figure.subplots()
    ax.patch.set_visible(False)
    return figure, ax


def _svg(figure: Figure) -> Markup:
    """Return a figure as an ``svg`` element, with black replaced by the colour of the surrounding text."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")), dpi=150)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' id="[a-zA-Z]+\w*_\d+"', "", text)  # of groups: the same in all pictures
    text = text.replace("#000000", "currentColor").replace(COLOR, "var(--series)")
    text = re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', _opening, text, count=1)
    return Markup(text)  # matplotlib escapes the texts in it


def _opening(match: re.Match[str]) -> str:
    links = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'<svg class="plot" viewBox="{match[1]}" xmlns="http://www.w3.org/2000/svg" {links} aria-hidden="true">'
