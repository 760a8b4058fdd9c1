"""What the pictures show: the data of lines, bands, segments and images, not only that something is drawn."""

import subprocess
import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
    plots,
)
from nurf._scaling import Scaling
from nurf.densities import Uniform
from nurf.estimators import Leaderboard, Standing
from nurf.jets import Jet
from nurf.networks import Box, Hyperplanes
from nurf.plots._densities import kernel_density
from nurf.plots._hyperplanes import clip, section
from nurf.plots._sensitivity import Sensitivity

METHODS = (
    "uniform",
    "active_subspace",
    "local",
    "nonlocal",
    "representation",
    "local_residual",
    "nonlocal_residual",
    "sparse",
)
NEURONS = [10, 30, 100]
BOX = Box([-1.0, 2.0], [0.5, 4.0])
CORNERS = np.array([[-1.0, -2.0], [3.0, 4.0]])
BOARD = Leaderboard(
    (Standing("wide", 0.01, 1.0, "chosen"), Standing("sampled", 0.02, 2.0, ""), Standing("trained", np.inf, 0.0, ""))
)


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    figure.canvas.draw()  # ticks and texts are made here: they must not fail either
    plt.close(figure)


def planes_of(angles, offsets):
    return Hyperplanes(np.column_stack([np.cos(angles), np.sin(angles)]), np.asarray(offsets, float))


def planes_across(box, n=200, seed=0):
    rng = np.random.default_rng(seed)
    return Hyperplanes.through(rng.uniform(box.lower, box.upper, (n, 2)), rng.standard_normal((n, 2)))


class Known(BaseEstimator):
    """A fitted model with given relevances, the function ``sum_j r_j x_j^2`` and intervals of half width ``coverage``.

    The second output is the first, negated.
    """

    def __init__(self, relevance, n_outputs=1):
        self.relevance, self.n_outputs = relevance, n_outputs
        self.relevance_, self.n_features_in_ = np.asarray(relevance), len(relevance)
        units = np.ones(n_outputs) if n_outputs > 1 else np.ones(())
        self.scaling_ = Scaling(np.zeros(len(relevance)), np.ones(len(relevance)), 0 * units, 2 * units)
        self.y_scale_ = 2 * units

    def fit(self):
        raise AssertionError("a plot must not fit")

    def predict(self, X):
        values = X**2 @ self.relevance_
        return values if self.n_outputs == 1 else np.stack([values, -values], axis=1)

    def predict_gradient(self, X):
        gradients = 2 * X * self.relevance_
        return gradients if self.n_outputs == 1 else np.stack([gradients, -gradients], axis=1)

    def predict_interval(self, X, coverage):
        values = self.predict(X)
        return np.stack([values - coverage, values + coverage], axis=-1)


def collection(ax, kind):
    (found,) = (c for c in ax.collections if type(c) is kind)
    return found


# the package


def test_matplotlib_is_optional():
    code = """
import sys
import nurf
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None  # from here on, importing it fails
try:
    from nurf import plots
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "nurf[plot]"' in run.stdout


@pytest.mark.parametrize(
    "draw",
    [
        lambda **kw: plots.convergence(NEURONS, [1.0, 0.5, 0.1], **kw),
        lambda **kw: plots.predicted_against_true([1.0, 2.0], [1.0, 2.1], **kw),
        lambda **kw: plots.hyperplanes(planes_of([0.1], [0.2]), **kw),
        lambda **kw: plots.angle_offset_density(planes_of([0.1], [0.2]), **kw),
        lambda **kw: plots.relevance(Known([2.0, 1.0]), **kw),
        lambda **kw: plots.residuals([1.0, 2.0], [1.0, 2.1], **kw),
        lambda **kw: plots.leaderboard(BOARD, **kw),
        lambda **kw: plots.sensitivity(Known([2.0, 1.0]), CORNERS, **kw),
        lambda **kw: plots.active_directions(Known([2.0, 1.0]), CORNERS, **kw),
    ],
    ids=[
        "convergence",
        "predictions",
        "hyperplanes",
        "densities",
        "relevance",
        "residuals",
        "leaderboard",
        "sensitivity",
        "active directions",
    ],
)
def test_all_functions_draw_on_the_given_axes_or_the_current_ones(draw):
    settings = dict(mpl.rcParams)
    figure, (left, right) = plt.subplots(1, 2)  # the right one is current
    assert draw(ax=left) is left
    assert left.has_data()
    assert not right.has_data()
    assert draw() is right
    assert right.has_data()
    assert left.get_xlabel()
    assert dict(mpl.rcParams) == settings
    plt.close(figure)


# styles


def test_styles_differ_in_everything_and_stay_visible_on_white():
    assert tuple(plots.STYLES) == METHODS
    for field in ("label", "color", "marker"):
        assert len({getattr(style, field) for style in plots.STYLES.values()}) == len(METHODS)
    for style in plots.STYLES.values():
        assert np.dot(to_rgb(style.color), [0.2126, 0.7152, 0.0722]) < 0.75


def test_an_unknown_method_is_named():
    with pytest.raises(ValueError, match=r"'uniform', .*, got 'gaussian'"):
        plots.style_of("gaussian")


# error against neurons


def test_convergence_draws_the_geometric_mean_and_the_spread_of_the_logarithms(ax):
    errors = np.exp(np.random.default_rng(0).normal(-3, 1, (5, 3)))
    plots.convergence(NEURONS, errors, style="nonlocal", ax=ax)
    (line,) = ax.lines
    mean, spread = np.log(errors).mean(axis=0), np.log(errors).std(axis=0, ddof=1)
    np.testing.assert_allclose(line.get_xydata(), np.column_stack([NEURONS, np.exp(mean)]))
    corners = {tuple(p) for p in np.round(ax.collections[0].get_paths()[0].vertices, 10)}
    for side in (-1, 1):
        assert corners >= {tuple(p) for p in np.round(np.column_stack([NEURONS, np.exp(mean + side * spread)]), 10)}
    assert ax.get_xscale() == ax.get_yscale() == "log"


@pytest.mark.parametrize("errors", [[0.3, 0.2, 0.1], [[0.3, 0.2, 0.1]]])
def test_a_single_trial_has_no_band(ax, errors):
    plots.convergence(NEURONS, errors, style="local", ax=ax)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.3, 0.2, 0.1])
    assert len(ax.collections) == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_method_looks_the_same_everywhere(ax, method):
    style = plots.style_of(method)
    for _ in range(2):
        plots.convergence(NEURONS, np.full((2, 3), 0.1), style=method, ax=ax)
    for line, band in zip(ax.lines, ax.collections, strict=True):
        assert (line.get_color(), line.get_marker()) == (style.color, style.marker)
        np.testing.assert_allclose(band.get_facecolor()[0, :3], to_rgb(style.color))
    assert ax.get_legend_handles_labels()[1] == [style.label] * 2


def test_a_label_of_ones_own(ax):
    plots.convergence(NEURONS, [0.3, 0.2, 0.1], style="local", label="mine", ax=ax)
    plots.convergence(NEURONS, [0.3, 0.2, 0.1], label="theirs", ax=ax)
    assert [line.get_label() for line in ax.lines] == ["mine", "theirs"]
    assert ax.lines[0].get_color() == plots.style_of("local").color


@pytest.mark.parametrize(
    ("neurons", "errors", "message"),
    [
        (NEURONS, np.ones((3, 2)), r"\(trials, m\) or \(m,\), got \(3,\) and \(3, 2\)"),
        (NEURONS, np.empty((0, 3)), r"got \(3,\) and \(0, 3\)"),
        ([NEURONS], np.ones(3), r"got \(1, 3\) and \(3,\)"),
        (NEURONS, [0.1, 0.0, 0.1], r"`errors` must be > 0 on a logarithmic axis, got 0.0"),
        (NEURONS, [0.1, np.nan, 0.1], r"`errors` must be finite, got nan at index \(1,\)"),
        ([0, 1, 2], [0.1, 0.1, 0.1], r"`neurons` must be > 0"),
    ],
)
def test_convergence_says_what_is_wrong(neurons, errors, message):
    with pytest.raises(ValueError, match=message):
        plots.convergence(neurons, errors)


# predicted against true


def test_few_predictions_are_points_and_the_diagonal_is_drawn(ax):
    y = np.array([3.0, -4.0, 0.0])
    f = np.array([3.3, -4.0, 0.4])
    plots.predicted_against_true(y, f, ax=ax)
    points, diagonal = ax.lines
    np.testing.assert_array_equal(points.get_xydata(), np.column_stack([y, f]))
    assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    assert_array_equal(diagonal.get_xdata(), ax.get_xlim())
    assert ax.texts[0].get_text() == r"relative error $1.0\times10^{-1}$"
    assert ax.get_xlim() == ax.get_ylim()
    assert ax.get_xlim()[0] < -4 < 3.3 < ax.get_xlim()[1]


def test_many_predictions_are_counted(ax):
    y = np.random.default_rng(0).standard_normal(5000)
    plots.predicted_against_true(y, y, ax=ax)
    (bins,) = ax.collections
    assert bins.get_array().sum() == 5000
    assert "0.0" in ax.texts[0].get_text()


@pytest.mark.parametrize(("sign", "scale"), [(1, "log"), (-1, "asinh")])
@pytest.mark.parametrize("n", [40, 5000])
def test_predictions_over_decades_have_the_scale_of_slices(ax, sign, scale, n):
    y = np.exp(2 * np.random.default_rng(0).standard_normal(n))
    y[::2] *= sign
    f = 1.1 * y
    f[1] = -1e-9  # cannot be shown on a logarithmic axis
    plots.predicted_against_true(y, f, ax=ax)
    assert (ax.get_xscale(), ax.get_yscale()) == (scale, scale)
    assert ax.get_xlim()[0] < np.sort(y)[0] < np.sort(f)[-1] < ax.get_xlim()[1]
    ends = ax.transAxes.inverted().transform(ax.transData.transform(ax.lines[-1].get_xydata()))
    assert_allclose(ends, [[0, 0], [1, 1]], atol=1e-9)  # the diagonal of the picture
    figure, other = plt.subplots()
    plots.residuals(y, f, ax=other)
    assert (other.get_xscale(), other.get_yscale()) == (scale, "linear")
    plt.close(figure)


def test_predictions_without_scale(ax):
    plots.predicted_against_true(np.zeros(3), np.zeros(3), ax=ax)
    assert "undefined" in ax.texts[0].get_text()


@pytest.mark.parametrize(
    ("y", "f", "message"),
    [
        (np.ones(3), np.ones(4), r"same shape \(n,\), got \(3,\) and \(4,\)"),
        (np.ones((3, 2)), np.ones((3, 2)), r"got \(3, 2\)"),
        (np.empty(0), np.empty(0), r"got \(0,\)"),
        ([1.0], [np.inf], r"`y_predicted` must be finite"),
    ],
)
@pytest.mark.parametrize("draw", [plots.predicted_against_true, plots.residuals])
def test_predictions_say_what_is_wrong(draw, y, f, message):
    with pytest.raises(ValueError, match=message):
        draw(y, f)
    with pytest.raises(ValueError, match=r"`intervals` must have shape \(n, 2\) = \(2, 2\), got \(2,\)"):
        draw([1.0, 2.0], [1.0, 2.0], intervals=[1.0, 2.0])


def test_intervals_are_vertical_lines(ax):
    y, f, ends = np.array([1.0, 2.0]), np.array([1.5, 2.25]), np.array([[1.0, 3.0], [2.0, 2.5]])
    plots.predicted_against_true(y, f, intervals=ends, ax=ax)
    segments = np.array(collection(ax, LineCollection).get_segments())
    np.testing.assert_array_equal(segments[:, :, 0], [[1, 1], [2, 2]])
    np.testing.assert_array_equal(segments[:, :, 1], ends)


def test_residuals_are_true_minus_predicted_and_intervals_surround_zero(ax):
    y, f, ends = np.array([1.0, 2.0]), np.array([1.5, 2.25]), np.array([[1.0, 3.0], [2.0, 2.5]])
    plots.residuals(y, f, intervals=ends, ax=ax)
    points, zero, *spread = ax.lines
    np.testing.assert_array_equal(points.get_xydata(), [[1.5, -0.5], [2.25, -0.25]])
    assert set(zero.get_ydata()) == {0}
    size = np.sqrt((0.25 + 0.0625) / 2)
    np.testing.assert_allclose([line.get_ydata()[0] for line in spread], [-size, size])
    segments = np.array(collection(ax, LineCollection).get_segments())
    np.testing.assert_array_equal(segments[:, :, 1], [[-0.5, 1.5], [-0.25, 0.25]])
    assert ax.get_ylim()[0] < -0.5


def test_residuals_of_equal_predictions_and_of_many(ax):
    plots.residuals(np.ones(3), np.ones(3), ax=ax)
    assert ax.get_xlim()[0] < 1 < ax.get_xlim()[1]
    y = np.random.default_rng(0).standard_normal(5000)
    plots.residuals(y, 0.5 * y, ax=ax)
    assert ax.collections[0].get_array().sum() == 5000


# hyperplanes


def test_lines_lie_on_their_hyperplanes_and_end_on_the_box(ax):
    planes = planes_across(BOX)
    plots.hyperplanes(planes, domain=BOX, ax=ax)
    segments = np.array(collection(ax, LineCollection).get_segments())
    assert segments.shape == (200, 2, 2)
    for end in segments.swapaxes(0, 1):
        np.testing.assert_allclose(np.diag(planes.signed_distance(end)), 0, atol=1e-12)
        to_side = np.minimum(np.abs(end - BOX.lower), np.abs(end - BOX.upper)).min(axis=1)
        np.testing.assert_allclose(to_side, 0, atol=1e-12)
    assert np.all((segments > BOX.lower - 1e-12) & (segments < BOX.upper + 1e-12))
    assert np.all(np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1) > 0)
    np.testing.assert_allclose([ax.get_xlim(), ax.get_ylim()], np.column_stack([BOX.lower, BOX.upper]))


def test_lines_parallel_to_the_sides_are_cut_exactly():
    axes = Hyperplanes([[1.0, 0.0], [0.0, -1.0]], [0.25, 3.0])
    segments, hits = clip(axes, BOX)
    assert hits.all()
    np.testing.assert_array_equal(np.sort(segments, axis=1), [[[-0.25, 2], [-0.25, 4]], [[-1, 3], [0.5, 3]]])


def test_lines_that_miss_the_box_are_left_out():
    planes = Hyperplanes([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], [-1.0, 0.0, 5.0, 5.0])
    segments, hits = clip(planes, BOX)
    np.testing.assert_array_equal(hits, [False, True, False, False])
    assert segments.shape == (1, 2, 2)


def test_contours_show_the_function(ax):
    plots.hyperplanes(planes_across(BOX), domain=BOX, function=lambda X: X[:, 0] * X[:, 1], ax=ax)
    contours = ax.collections[0]
    np.testing.assert_allclose([contours.levels[0], contours.levels[-1]], [-4, 2])
    assert len(ax.collections) == 2
    plots.hyperplanes(planes_across(BOX), domain=BOX, function=lambda X: np.zeros(len(X)), ax=ax)  # nothing to show
    assert len(ax.collections) == 3


def test_opacity_follows_the_weights(ax):
    plots.hyperplanes(planes_of([0, 1, 2], [0, 0, 0]), weights=[-4.0, 1.0, 0.0], ax=ax)
    np.testing.assert_allclose(collection(ax, LineCollection).get_colors()[:, 3], [1, 0.5, 0])
    with pytest.raises(ValueError, match=r"`weights` must have shape \(N,\) = \(3,\), got \(2,\)"):
        plots.hyperplanes(planes_of([0, 1, 2], [0, 0, 0]), weights=[1.0, 2.0], ax=ax)


def test_inflection_points_sit_on_the_graph(ax):
    planes = Hyperplanes([[1.0], [-1.0], [1.0]], [0.5, 0.25, 3.0])
    plots.hyperplanes(planes, function=lambda X: X[:, 0] ** 2, ax=ax)
    np.testing.assert_allclose(collection(ax, PathCollection).get_offsets(), [[-0.5, 0.25], [0.25, 0.0625]])
    x, y = ax.lines[0].get_data()
    np.testing.assert_allclose(y, x**2)
    assert ax.get_xlim() == (-1, 1)


def test_inflection_points_without_a_function_sit_on_a_line(ax):
    plots.hyperplanes(Hyperplanes([[1.0]], [-3.0]), domain=Box(2, 4), ax=ax)
    np.testing.assert_allclose(collection(ax, PathCollection).get_offsets(), [[3, 0]])


def test_hyperplanes_of_space_cannot_be_drawn():
    with pytest.raises(ValueError, match="d = 1 and d = 2, got d = 3"):
        plots.hyperplanes(Hyperplanes(np.eye(3), np.zeros(3)))
    with pytest.raises(ValueError, match="dimension of the hyperplanes, 1, got 2"):
        plots.hyperplanes(Hyperplanes([[1.0]], [0.0]), domain=BOX)


def test_samples_say_where_to_draw(ax):
    X = np.array([[3.0, -7.0], [5.0, -6.0]])
    plots.hyperplanes(Hyperplanes([[1.0, 0.0]], [-4.0]), X=X, ax=ax)
    np.testing.assert_allclose([ax.get_xlim(), ax.get_ylim()], X.T)
    np.testing.assert_allclose(np.sort(collection(ax, LineCollection).get_segments()[0], axis=0), [[4, -7], [4, -6]])
    plots.hyperplanes(Hyperplanes([[1.0, 0.0]], [-4.0]), X=X[:1], ax=ax)  # a single one
    np.testing.assert_allclose([ax.get_xlim(), ax.get_ylim()], [[2.5, 3.5], [-7.5, -6.5]])
    with pytest.raises(ValueError, match=r"`X` must have shape \(n, d\) with d = 2, as the hyperplanes, got \(2, 3\)"):
        plots.hyperplanes(Hyperplanes([[1.0, 0.0]], [-4.0]), X=np.ones((2, 3)))


def test_a_section_has_the_points_of_the_plane_that_lie_on_the_hyperplanes():
    rng = np.random.default_rng(0)
    planes = Hyperplanes.through(rng.normal(size=(20, 4)), rng.normal(size=(20, 4)))
    planes = planes + Hyperplanes([[0.0, 0.0, 0.0, 1.0]], [0.5])  # parallel to the plane
    origin, directions = rng.normal(size=4), np.array([[1.0, 2.0, 0.5, 0.0], [0.0, 1.0, 3.0, 0.0]])
    lines, kept = section(planes, origin, directions)
    np.testing.assert_array_equal(kept, range(20))
    feet = -lines.offsets[:, None] * lines.normals  # a point of each line
    points = origin + feet @ directions
    np.testing.assert_allclose(np.diag(planes.signed_distance(points)[:, :20]), 0, atol=1e-9)


# angles and offsets


def cells(m=300, n=200):
    """Return the centres of a grid on [-pi, pi) x [-1, 1], and the area of a cell."""
    angles, offsets = np.pi * ((2 * np.arange(m) + 1) / m - 1), (2 * np.arange(n) + 1) / n - 1
    return angles, offsets, 2 * np.pi / m * 2 / n


@pytest.mark.parametrize("bandwidth", [0.05, 0.2, 0.5])
def test_the_estimate_integrates_to_one(bandwidth):
    rng = np.random.default_rng(0)
    planes = planes_of(rng.uniform(-np.pi, np.pi, 50), rng.uniform(-1, 1, 50))
    angles, offsets, area = cells()
    for weights in (None, rng.standard_normal(50)):
        density = kernel_density(planes, angles, offsets, weights=weights, bandwidth=bandwidth)
        assert density.sum() * area == pytest.approx(1, abs=1e-3)
        assert density.min() >= 0


def test_the_estimate_is_periodic_in_the_angle():
    rng = np.random.default_rng(1)
    turns, b = rng.uniform(-np.pi, np.pi, 30), rng.uniform(-1, 1, 30)
    angles, offsets, _ = cells()
    here = kernel_density(planes_of(turns, b), angles, offsets)
    np.testing.assert_allclose(kernel_density(planes_of(turns, b), angles + 2 * np.pi, offsets), here, atol=1e-10)
    shifted = kernel_density(planes_of(turns + angles[70] - angles[0], b), angles, offsets)
    np.testing.assert_allclose(shifted, np.roll(here, 70, axis=0), atol=1e-10)


def test_a_hyperplane_at_the_seam_shows_on_both_sides():
    angles, offsets, _ = cells()
    density = kernel_density(planes_of([np.pi], [0.0]), angles, offsets)
    np.testing.assert_allclose(density, density[::-1], atol=1e-10)
    assert density[0].max() > 0.9 * density.max()


def test_the_uniform_density_is_flat_up_to_the_edges():
    prepared = Uniform().prepare(Jet(np.zeros((1, 2)), np.zeros(1)))
    angles, offsets, _ = cells(24, 20)
    density = kernel_density(prepared.sample(50_000, np.random.default_rng(0)), angles, offsets, bandwidth=0.3)
    np.testing.assert_allclose(density, 1 / (4 * np.pi), rtol=0.1)


def test_the_image_has_its_peak_at_the_hyperplane(ax):
    planes = planes_of([-2.0, 1.0], [0.5, -0.3])
    plots.angle_offset_density(planes, weights=[1.0, 3.0], ax=ax)
    (image,) = ax.images
    values = image.get_array()
    row, column = np.unravel_index(values.argmax(), values.shape)
    left, right, bottom, top = image.get_extent()
    assert (left, right, bottom, top) == pytest.approx((-np.pi, np.pi, -1, 1))
    assert left + (column + 0.5) * (right - left) / values.shape[1] == pytest.approx(1.0, abs=0.03)
    assert bottom + (row + 0.5) * (top - bottom) / values.shape[0] == pytest.approx(-0.3, abs=0.02)
    assert values.mean() * 4 * np.pi == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("planes", "keywords", "message"),
    [
        (Hyperplanes(np.eye(3), np.zeros(3)), {}, "d = 2, got d = 3"),
        (Hyperplanes([[1.0]], [0.0]), {}, "d = 2, got d = 1"),
        (planes_of([0.0], [0.0]), {"bandwidth": 0.0}, "`bandwidth` must be > 0 and <= 0.5, got 0.0"),
        (planes_of([0.0], [0.0]), {"weights": [1.0, 2.0]}, r"`weights` must have shape \(N,\) = \(1,\), got \(2,\)"),
        (planes_of([0.0], [2.0]), {}, "no hyperplane .* intersects the unit ball"),
        (planes_of([0.0], [0.0]), {"weights": [0.0]}, "no hyperplane .* intersects the unit ball"),
    ],
)
def test_densities_say_what_is_wrong(planes, keywords, message):
    with pytest.raises(ValueError, match=message):
        plots.angle_offset_density(planes, **keywords)


# relevance


def bars(ax):
    """Return the labels and lengths of horizontal bars, from top to bottom."""
    order = np.argsort([-ax.transData.transform((0, bar.get_y()))[1] for bar in ax.patches])
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    return [labels[i] for i in order], [ax.patches[i].get_width() for i in order]


def test_relevances_are_sorted_and_named(ax):
    plots.relevance(Known([0.25, 2.0, 0.0]), ax=ax)
    assert bars(ax) == (["x1", "x0", "x2"], [2.0, 0.25, 0.0])
    assert [text.get_text() for text in ax.texts] == ["2", "0.25", "0"]
    assert ax.get_xlim()[1] > 2


def test_the_largest_of_many_relevances_are_shown_and_the_others_counted(ax):
    sizes = np.random.default_rng(0).permutation(np.arange(1.0, 51.0))
    plots.relevance(Known(sizes), n_inputs=5, names=[f"input {size:g}" for size in sizes], ax=ax)
    labels, lengths = bars(ax)
    assert labels == [f"input {size}" for size in range(50, 45, -1)] + ["largest of 45 others"]
    assert lengths == list(range(50, 44, -1))
    assert len({bar.get_facecolor() for bar in ax.patches}) == 2


def test_relevances_of_a_fit_to_a_data_frame(ax):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.random.default_rng(0).uniform(-1, 1, (12, 2)), columns=["inert", "active"])
    model = KernelFeatureRegressor("gaussian").fit(X, np.sin(2 * X["active"]))
    plots.relevance(model, ax=ax)
    assert bars(ax) == (["active", "inert"], sorted(model.relevance_, reverse=True))


def test_relevances_that_are_all_zero(ax):
    plots.relevance(Known([0.0, 0.0]), ax=ax)
    assert bars(ax) == (["x0", "x1"], [0, 0])


@pytest.mark.parametrize(
    ("model", "keywords", "message"),
    [
        (Known([1.0, 2.0]), {"n_inputs": 0}, "`n_inputs` must be a whole number >= 1, got 0"),
        (Known([1.0, 2.0]), {"names": ["a"]}, r"`names` must be 2 names, one for each input, got \['a'\]"),
        (Known([1.0, 2.0]), {"names": "ab"}, "`names` must be 2 names, one for each input, got 'ab'"),
        (KernelFeatureRegressor(), {}, "not fitted yet"),
    ],
)
def test_relevance_says_what_is_wrong(model, keywords, message):
    with pytest.raises((ValueError, NotFittedError), match=message):
        plots.relevance(model, **keywords)


def test_sampled_networks_have_no_relevance():
    X = np.linspace(-1, 1, 10)[:, None]
    with pytest.raises(
        ValueError,
        match=r"plots.sensitivity\(model, X\) works for all models, got RandomFeatureRegressor$",
    ):
        plots.relevance(RandomFeatureRegressor(5, random_state=0).fit(X, X[:, 0]))


# slices


def band(ax):
    """Return the lower and upper ends of the band, as functions of the place."""
    vertices = next(c for c in ax.collections if isinstance(c, PolyCollection)).get_paths()[0].vertices
    ends = {x: vertices[vertices[:, 0] == x, 1] for x in ax.lines[0].get_xdata()}
    return np.array([[y.min(), y.max()] for y in ends.values()]).T


def test_a_surrogate_has_the_relevance_of_its_network(ax):
    X = np.random.default_rng(0).uniform(-1, 1, (12, 2))
    model = Surrogate(engines=["wide"], random_state=0).fit(X, X[:, 0] ** 2 + 0.1 * X[:, 1])
    plots.relevance(model, ax=ax)
    labels, sizes = bars(ax)
    assert labels == ["x0", "x1"]
    assert_allclose(sizes, model.model_.relevance_)


def test_hyperplanes_of_a_model(ax):
    X = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    engine = RandomFeatureRegressor(5, growth=None, density="uniform", width=0.5, random_state=0)
    model = Surrogate(engines=[engine], random_state=0).fit(X, X[:, 0])
    for each in (model, model.model_, model.model_.hyperplanes_):
        plots.hyperplanes(each, X=X, ax=ax)
    first, *others = [np.array(lines.get_segments()) for lines in ax.collections]
    assert len(first)
    for segments in others:
        assert_array_equal(segments, first)


def test_models_without_hyperplanes_are_named():
    X = np.linspace(-1, 1, 10)[:, None]
    model = Surrogate(engines=["wide"], random_state=0).fit(X, X[:, 0])
    with pytest.raises(TypeError, match=r"a model with `hyperplanes_`, .* for all models, got Surrogate$"):
        plots.hyperplanes(model)


def test_slices_go_through_the_point_along_each_input(ax):
    axes = [ax, ax.figure.add_subplot()]
    drawn = plots.slices(Known([1.0, 10.0]), CORNERS, point=[0.5, 1.0], coverage=0.8, axes=axes)
    assert list(drawn) == axes
    for panel, j, height in zip(drawn, range(2), ([1.0, 10.0]), strict=True):
        x, f = panel.lines[0].get_data()
        assert (x[0], x[-1]) == (CORNERS[0, j], CORNERS[1, j])
        np.testing.assert_allclose(f, height * x**2 + (10 if j == 0 else 0.25))
        np.testing.assert_allclose(band(panel), [f - 0.8, f + 0.8])
        assert panel.lines[1].get_xdata()[0] == [0.5, 1.0][j]
        assert panel.get_xlabel() == f"x{j}"
    assert drawn[0].get_ylim() == drawn[1].get_ylim()
    low, high = drawn[0].get_ylim()
    assert low < 0.25 - 0.8 < 160.25 + 0.8 < high


def test_slices_go_through_the_mean_by_default(ax):
    plots.slices(Known([1.0, 10.0]), CORNERS, inputs=[0], axes=ax)
    x, f = ax.lines[0].get_data()
    np.testing.assert_allclose(f, x**2 + 10)  # the mean of the second input is 1


def test_a_slice_of_one_of_several_outputs(ax):
    y = np.array([[1.0, -1.0], [2.0, -2.0]])
    plots.slices(Known([1.0, 10.0], n_outputs=2), CORNERS, y, inputs=[1], output=1, axes=ax)
    x, f = ax.lines[0].get_data()
    np.testing.assert_allclose(f, -1 - 10 * x**2)
    np.testing.assert_allclose(band(ax), [f - 0.9, f + 0.9])
    np.testing.assert_allclose(collection(ax, PathCollection).get_offsets(), [[-2, -1], [4, -2]])


def test_samples_far_from_the_slice_are_faint(ax):
    X = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, -2.0], [3.0, 100.0], [4.0, -100.0]])
    plots.slices(Known([1.0, 10.0]), X, np.arange(5), inputs=[0], axes=ax)
    dots = collection(ax, PathCollection)
    np.testing.assert_allclose(dots.get_offsets(), np.column_stack([X[:, 0], np.arange(5)]))
    squares = X[:, 1] ** 2 / X[:, 1].var()  # the mean is zero
    np.testing.assert_allclose(dots.get_facecolors()[:, 3], np.exp(-squares / 2))
    plots.slices(Known([1.0]), X[:, :1], np.arange(5), axes=ax)
    np.testing.assert_allclose(ax.collections[-1].get_facecolors()[:, 3], 1)  # there are no other inputs


def test_the_inputs_along_which_a_function_of_many_varies_most_are_drawn_in_a_new_figure():
    sizes = np.arange(12.0)[::-1]
    drawn = plots.slices(Known(sizes), np.random.default_rng(0).uniform(-1, 1, (200, 12)), point=np.zeros(12))
    assert [ax.get_xlabel() for ax in drawn] == [f"x{j}" for j in range(9)]
    assert [ax.get_ylabel() for ax in drawn] == ["predicted value", "", ""] * 3
    plt.close(drawn[0].figure)
    drawn = plots.slices(Known(sizes), np.zeros((2, 12)), inputs=["last", 3], names=[*"abcdefghijk", "last"])
    assert [ax.get_xlabel() for ax in drawn] == ["last", "d"]
    assert len(drawn[0].figure.axes) == 2
    drawn[0].figure.canvas.draw()  # although the samples do not vary
    plt.close(drawn[0].figure)


@pytest.mark.parametrize(
    "model",
    [
        KernelFeatureRegressor("gaussian"),
        RandomFeatureRegressor(20, random_state=0),
        SparseFeatureRegressor(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_slices_of_all_estimators_fitted_to_data_frames(ax, model):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.random.default_rng(0).uniform(-1, 1, (15, 2)), columns=["a", "b"])
    y = np.sin(X["a"]) + X["b"]
    model.fit(X, y)
    plots.slices(model, X, y, inputs=["b"], axes=ax)
    x, f = ax.lines[0].get_data()
    line = pandas.DataFrame({"a": np.full(len(x), X["a"].mean()), "b": x})
    np.testing.assert_allclose(f, model.predict(line))
    np.testing.assert_allclose(band(ax), model.predict_interval(line).T)


@pytest.mark.parametrize(
    ("X", "keywords", "message"),
    [
        (np.ones(2), {}, r"d = 2, as in the fit, got \(2,\)"),
        (np.ones((0, 2)), {}, r"d = 2, as in the fit, got \(0, 2\)"),
        (np.ones((3, 4)), {}, r"`X` must have shape \(n, d\) with d = 2, as in the fit, got \(3, 4\)"),
        (CORNERS, {"point": [1.0]}, r"`point` must have shape \(d,\) = \(2,\), got \(1,\)"),
        (CORNERS, {"inputs": [2]}, r"names of \['x0', 'x1'\] or positions from 0 to 1, got 2"),
        (CORNERS, {"inputs": ["z"]}, "positions from 0 to 1, got 'z'"),
        (CORNERS, {"inputs": []}, "`inputs` must name at least one input, got none"),
        (CORNERS, {"output": 1}, "`output` must be a whole number from 0 to 0, got 1"),
        (CORNERS, {"y": np.ones(3)}, r"`y` must have as many rows as `X`, 2, got shape \(3,\)"),
        (CORNERS, {"axes": [None]}, "`axes` must have one for each of 2 inputs, got 1"),
    ],
)
def test_slices_say_what_is_wrong(X, keywords, message):
    with pytest.raises(ValueError, match=message):
        plots.slices(Known([1.0, 10.0]), X, **keywords)


# sensitivities and active directions


def test_sensitivities_are_derivatives_in_standard_deviations(ax):
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1, 5, 1]
    model = Known([1.0, 0.1, 0.0])
    expected = np.sqrt(np.mean((2 * X * model.relevance_) ** 2, axis=0)) * X.std(axis=0) / 2  # the unit of y is 2
    plots.sensitivity(model, X, ax=ax)
    labels, lengths = bars(ax)
    np.testing.assert_allclose(lengths, np.sort(expected)[::-1])
    assert labels[2] == "x2"


def test_sensitivities_agree_with_the_relevance_of_wide_networks():
    X = np.random.default_rng(0).uniform(-1, 1, (25, 2)) * [1, 10]
    model = KernelFeatureRegressor("gaussian").fit(X, 100 * np.sin(2 * X[:, 0]) + X[:, 1])
    np.testing.assert_allclose(Sensitivity.of(model, X).relevance, model.relevance_, rtol=1e-6)


class Ridge(Known):
    """The function ``(r.x)^2 / 2``, whose gradients are all along ``r``."""

    def predict_gradient(self, X):
        return (X @ self.relevance_)[:, None] * self.relevance_


def test_the_active_direction_of_a_ridge_function_is_its_own(ax):
    X = np.random.default_rng(0).normal(size=(400, 3))
    X /= X.std(axis=0)  # so that standard deviations change nothing
    found = Sensitivity.of(Ridge([0.6, -0.8, 0.0]), X)
    np.testing.assert_allclose(found.shares, [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(found.directions[0], [-0.6, 0.8, 0], atol=1e-9)  # the largest component is positive
    np.testing.assert_allclose(found.directions @ found.directions.T, np.eye(3), atol=1e-12)
    plots.active_directions(Ridge([0.6, -0.8, 0.0]), X, names=["a", "b", "c"], n_directions=1, ax=ax)
    assert [text.get_text() for text in ax.texts] == ["100.0%: 0.80 b - 0.60 a"]
    assert ax.patches[0].get_width() == 1.0


def test_a_constant_function_has_no_active_direction(ax):
    plots.active_directions(Ridge([0.0, 0.0]), CORNERS, ax=ax)
    assert [text.get_text() for text in ax.texts] == [f"0.0%: 1.00 {name}" for name in ("x1", "x0")]


@pytest.mark.parametrize("draw", [plots.sensitivity, plots.active_directions])
def test_sensitivities_of_one_of_several_outputs(draw, ax):
    draw(Known([1.0, 2.0], n_outputs=2), CORNERS, output=1, ax=ax)
    with pytest.raises(ValueError, match="`output` must be a whole number from 0 to 1, got 2"):
        draw(Known([1.0, 2.0], n_outputs=2), CORNERS, output=2)
    with pytest.raises(ValueError, match=r"`n_(inputs|directions)` must be a whole number >= 1, got 0"):
        draw(Known([1.0, 2.0]), CORNERS, **{"n_inputs" if draw is plots.sensitivity else "n_directions": 0})


@pytest.mark.parametrize("draw", [plots.sensitivity, plots.active_directions])
def test_long_names_leave_room_for_the_bars(draw, ax):
    names = [f"log10_of_the_rate_of_the_reaction_number_{j}_in_mol_per_second" for j in range(3)]
    draw(Ridge([0.6, -0.7, 0.4]), np.random.default_rng(0).normal(size=(50, 3)), names=names, ax=ax)
    ax.figure.set_layout_engine("constrained")
    ax.figure.set_size_inches(4.6, 3)
    ax.figure.canvas.draw()
    box = ax.get_window_extent()
    assert box.width > 0.5 * ax.figure.bbox.width
    for text in (*ax.texts, *ax.get_yticklabels()):
        assert text.get_window_extent().x1 <= ax.figure.bbox.x1
        assert text.get_window_extent().x0 >= 0


def test_heavy_tailed_values_have_a_logarithmic_axis():
    X = np.linspace(0, 1, 30)[:, None]
    model = KernelFeatureRegressor("gaussian", target="log").fit(X, np.exp(9 * X[:, 0]))
    for y, scale in ((np.exp(9 * X[:, 0]), "log"), (np.sinh(9 * X[:, 0] - 4), "asinh"), (X[:, 0], "linear")):
        (axes,) = plots.slices(model, X, y, axes=mpl.figure.Figure().subplots())
        assert axes.get_yscale() == scale


def test_dollar_signs_in_names_are_no_formulas(ax):
    plots.sensitivity(Known([1.0, 2.0]), CORNERS, names=["$price$ $\\bad{", "b"], ax=ax)
    ax.figure.canvas.draw()
    assert bars(ax)[0] == ["b", "\\$price\\$ \\$\\bad{"]


# engines


def test_the_chosen_engine_stands_out_and_one_without_an_estimate_is_named(ax):
    plots.leaderboard(BOARD, ax=ax)
    assert bars(ax) == (["wide", "sampled", "trained"], [0.01, 0.02, 0.0])
    assert [text.get_text() for text in ax.texts] == ["0.01", "0.02", "no estimate"]
    chosen, *others = (bar.get_facecolor() for bar in ax.patches)
    assert chosen not in others
    assert len(set(others)) == 1


def test_errors_over_decades_have_a_logarithmic_axis(ax):
    board = Leaderboard((Standing("wide", 1e-9, 1.0, "chosen"), Standing("sampled", 1e-3, 2.0, "")))
    plots.leaderboard(board, ax=ax)
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.texts] == ["1e-09", "0.001"]


# heat maps and loss curves


def test_a_heat_map_is_a_plane_through_the_point(ax):
    X = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    point = np.array([0.1, 0.2, 0.3])
    assert plots.heat_map(Known([1.0, 10.0, 5.0]), X, inputs=[2, 0], point=point, ax=ax) is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x2", "x0")
    (mesh,) = (found for found in ax.collections if hasattr(found, "_coordinates"))
    corners = mesh._coordinates[[0, -1]][:, [0, -1]].reshape(-1, 2)
    expected = Known([1.0, 10.0, 5.0]).predict(np.column_stack([corners[:, 1], np.full(4, 0.2), corners[:, 0]]))
    assert_allclose(np.asarray(mesh.get_array()).reshape(100, 100)[[0, -1]][:, [0, -1]].ravel(), expected)
    assert_allclose(corners.min(axis=0), X[:, [2, 0]].min(axis=0))


def test_a_heat_map_shows_what_varies_most(ax):
    X = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    plots.heat_map(Known([1.0, 10.0, 5.0]), X, names=["a", "b", "$c"], ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("b", r"\$c")


@pytest.mark.parametrize(
    ("sizes", "keywords", "message"),
    [
        ([1.0], {}, "at least two inputs, got one"),
        ([1.0, 2.0], {"inputs": [0, 0]}, "two different inputs"),
        ([1.0, 2.0], {"inputs": [0]}, "two different inputs"),
        ([1.0, 2.0], {"inputs": [0, "z"]}, "names of"),
    ],
)
def test_heat_maps_say_what_is_wrong(ax, sizes, keywords, message):
    with pytest.raises(ValueError, match=message):
        plots.heat_map(Known(sizes), np.zeros((3, len(sizes))), ax=ax, **keywords)


def test_a_loss_curve_has_the_course_of_the_training(ax):
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    model = DeepFeatureRegressor((8,), steps=100, random_state=0).fit(X, np.sin(2 * X[:, 0]) + X[:, 1])
    assert plots.loss_curve(model, ax=ax) is ax
    before, after, error, jump = (line.get_xydata() for line in ax.lines)
    assert jump[0, 0] == before[-1, 0]
    loss = np.concatenate([before, after])
    (text,) = ax.texts
    assert text.get_text() == "new cycle: all rows"
    ax.figure.canvas.draw()
    box, inside = text.get_window_extent(), ax.get_window_extent()
    assert inside.x0 < box.x0 < box.x1 < inside.x1
    assert_array_equal(loss[:, 0], [cycle.n_steps for cycle in model.fit_.history])
    assert_allclose(loss[:, 1] ** 2, [cycle.loss for cycle in model.fit_.history])
    assert_allclose(error[:, 1], [cycle.error for cycle in model.fit_.history])
    with pytest.raises(TypeError, match="must be a DeepFeatureRegressor"):
        plots.loss_curve(KernelFeatureRegressor("gaussian").fit(X[:20], X[:20, 0]))
