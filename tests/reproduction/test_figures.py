"""Figures from computation to report, with small cases."""

import dataclasses

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from tiny import read, rows, silent

from nurf import plots
from reproduction import drawing, plan
from reproduction.cases import CASES
from reproduction.figures import FIGURES
from reproduction.plan import Scope
from reproduction.reproduce import reproduce
from reproduction.results import Neurons, Table
from reproduction.runner import run_units
from reproduction.store import Store


@pytest.fixture
def small(monkeypatch):
    """The paper's cases, made small."""
    for key, case in CASES.items():
        samples = {1: 80, 2: 7**2}.get(case.dimension, 60)
        monkeypatch.setitem(CASES, key, dataclasses.replace(case, n_samples=samples, n_neurons=14, width=0.1))
        monkeypatch.setitem(plan.PATHS, key, (plan.PATHS[key][0], 3, 5))
    monkeypatch.setattr(plan, "N_DRAWS", 50)


@pytest.fixture
def not_written(monkeypatch):
    """Figures that are drawn, but not rendered: other tests do that."""

    def write(figure, stem):
        stem.parent.mkdir(exist_ok=True)
        stem.with_suffix(".svg").write_text(f"<svg>{len(figure.axes)} panels</svg>")
        return stem.with_suffix(".svg")

    monkeypatch.setattr(drawing, "write", write)


def test_figures_are_computed_drawn_compared_and_reported(small, not_written, tmp_path):
    messages, out = [], tmp_path / "new" / "folder"
    sections = reproduce(["fig11", "fig1"], out=out, trials=2, say=messages.append)
    assert [section.name for section in sections] == ["fig1", "fig11"]  # the paper's order
    assert [section.picture.read_text() for section in sections] == ["<svg>3 panels</svg>", "<svg>4 panels</svg>"]
    assert plt.get_fignums() == []
    for section in sections:
        assert section.seconds > 0
        assert section.findings
        assert section.note
    assert sections[0].comparisons == ()
    assert {c.case for c in sections[1].comparisons} == {"robot_arm_6d", "borehole_8d"}
    assert {c.method for c in sections[1].comparisons} >= {"uniform", "local", "local_residual"}
    table = Table(tuple(read((out / "tables" / "fig11.csv").read_text())))
    assert {row.trial for row in table.rows} == {0, 1}
    assert set(table.methods("borehole_8d")) == {*plan.METHODS_ND, "sparse"}
    assert "Figure 11" in (out / "report.html").read_text()
    reproduce(["fig1"], out=out, trials=2, say=messages.append)
    assert "6 of 6 results are stored already" in messages


@pytest.mark.parametrize(("name", "titled", "panels"), [("fig1", 3, 3), ("fig2", 3, 6), ("fig4", 2, 4), ("fig6", 6, 8)])
def test_figures_of_each_kind_are_rendered(small, tmp_path, name, titled, panels):
    scope = Scope(trials=1)
    results = run_units(FIGURES[name].units(scope), Store(tmp_path), say=silent)
    figure = FIGURES[name].draw(FIGURES[name].evidence(results, scope))
    figure.set_dpi(40)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    assert len(figure.axes) == panels
    assert len([ax for ax in figure.axes if ax.get_title()]) == titled
    pixels = np.asarray(canvas.buffer_rgba())[::-1, :, :3]
    for ax in figure.axes:
        left, bottom, right, top = ax.get_window_extent().extents.astype(int)
        assert 0.01 < np.mean(pixels[bottom:top, left:right] < 230) < 0.99  # neither empty nor full


def test_bands_are_a_standard_deviation_and_the_limit_of_training_is_marked():
    key = "checkmark_3d"
    found = [row for t in (0, 1) for row in rows(key, "local", [0.5 - 0.1 * t, 0.3], [10, 400], trial=t)]
    path = [9, 200, 200]  # only the last of equal size is drawn
    found += [row for t in (0, 1) for row in rows(key, "sparse", [0.4, 0.3, 0.1 + 0.1 * t], path, trial=t)]
    above, below = drawing.convergence(Table(tuple(found)), {key: 200}).axes
    (band,) = above.collections
    spread, mean = np.exp(np.log(1.25) / np.sqrt(2)), np.sqrt(0.5 * 0.4)
    heights = [y for x, y in band.get_paths()[0].vertices if x < 11]
    np.testing.assert_allclose([min(heights), max(heights)], [mean / spread, mean * spread])
    trained = [line.get_xydata() for line in below.lines if line.get_color() == plots.style_of("sparse").color]
    np.testing.assert_allclose(trained[0], [[9, 0.4], [200, np.sqrt(0.02)]])
    marked = [line for line in below.lines if line.get_markerfacecolor() == "white"]
    np.testing.assert_allclose([line.get_xydata() for line in marked], [[[200, np.sqrt(0.02)]]])
    free = drawing.convergence(Table(tuple(found)), {key: 300}).axes[1]
    assert not [line for line in free.lines if line.get_markerfacecolor() == "white"]


def test_densities_in_a_row_have_one_scale_of_colours():
    normals, offsets = np.tile([1.0, 0.0], (9, 1)), np.linspace(-1, 1, 9)
    narrow, wide = (Neurons(normals, width * offsets, np.ones(9)) for width in (0.1, 0.9))
    axes = drawing.densities({"corner": {"local": narrow, "sparse": wide}}).axes[:2]
    low, high = ({ax.images[0].get_clim()[i] for ax in axes} for i in (0, 1))
    assert low == {0.0}
    assert high == {max(ax.images[0].get_array().max() for ax in axes)}


def test_both_penalties_are_drawn():
    keys = [key for key, case in CASES.items() if case.dimension <= 2]
    found = [
        row
        for key in keys
        for method, counts in (("sparse", [0, 2, 4]), ("convex", [1, 3, 8]))
        for row in rows(key, method, [0.9, 0.3, 0.1], counts)
    ]
    for ax in drawing.penalties(Table(tuple(found)), keys).axes:
        concave, convex = (line.get_xdata() for line in ax.lines)
        np.testing.assert_allclose(concave, [2, 4])
        np.testing.assert_allclose(convex, [1, 3, 8])


def test_a_picture_is_written_in_three_formats_without_dates(tmp_path):
    files = []
    for folder in ("a", "b"):
        figure = Figure(layout="constrained")
        figure.subplots().plot([0, 1], [0, 1], color="#d55e00")
        assert drawing.write(figure, tmp_path / folder / "fig") == tmp_path / folder / "fig.svg"
        files.append({path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()})
    assert set(files[0]) == {"fig.svg", "fig.pdf", "fig.png"}
    assert files[0] == files[1]
    with Image.open(tmp_path / "a" / "fig.png") as image:
        assert image.mode == "P"
        assert (0xD5, 0x5E, 0x00) in {color for _, color in image.convert("RGB").getcolors()}


def test_the_quick_setting_runs_less():
    quick, full, own = Scope(quick=True), Scope(), Scope(trials=3)
    for key, case in CASES.items():
        high = case.dimension > 2
        assert [s.n_trials(case) for s in (quick, full, own)] == [2, 4 if high else 10, 3]
        assert [plan.trained(key, s).n_trials for s in (quick, full, own)] == [1 if high else 2, 4 if high else 10, 3]
        steps = [len(plan.trained(key, s).experiment.alphas) for s in (quick, full)]
        assert steps[0] == steps[1] - high
