"""Jets: the chain rule of every change of units against differences, extreme values, and errors that explain."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nurf._scaling import Scaling
from nurf.activations import Sigmoid
from nurf.engines._metrics import InputMap
from nurf.jets import Jet
from nurf.networks import Features, Hyperplanes, ShallowNetwork

N, D = 12, 3
KINDS = ["box", "ball", None]

outputs = pytest.mark.parametrize("outputs", [(), (1,), (2,)], ids=str)
kinds = pytest.mark.parametrize("kind", KINDS)


class Quadratic:
    """``f(x) = c + g.x + x.Hx / 2`` for each output, with inputs and values of very different units."""

    def __init__(self, outputs=()):
        rng = np.random.default_rng(0)
        self.c, self.g = rng.normal(size=outputs), rng.normal(size=(*outputs, D))
        self.H = rng.normal(size=(*outputs, D, D))
        self.H = self.H + np.swapaxes(self.H, -1, -2)
        self.X = rng.normal(size=(N, D)) * [1.0, 20.0, 0.05] + [3.0, -50.0, 0.0]

    def value(self, X):
        return self.c + np.einsum("...i,ni->n...", self.g, X) + np.einsum("...ij,ni,nj->n...", self.H, X, X) / 2

    def jet(self, **more):
        gradients = self.g + np.einsum("...ij,nj->n...i", self.H, self.X)
        hessians = np.broadcast_to(self.H, (N, *self.H.shape))
        return Jet(self.X, self.value(self.X), gradients, hessians, **more)


def differences(f, X, h=0.5):
    """Partial derivatives along a new last axis, exact for quadratics."""
    return np.stack([(f(X + e) - f(X - e)) / (2 * h) for e in h * np.eye(X.shape[1])], axis=-1)


@outputs
@kinds
def test_scaled_derivatives_are_those_of_the_scaled_function(kind, outputs):
    f = Quadratic(outputs)
    scaling = Scaling.fit(f.jet(), kind)
    scaled = scaling(f.jet())

    def scaled_function(Z):
        return (f.value(scaling.x_center + scaling.x_scale * Z) - scaling.y_center) / scaling.y_scale

    gradients = differences(scaled_function, scaled.X)
    hessians = differences(lambda Z: differences(scaled_function, Z), scaled.X)
    assert_allclose(scaled.y, scaled_function(scaled.X), atol=1e-11)
    assert_allclose(scaled.gradients, gradients, rtol=1e-9, atol=1e-9 * np.abs(gradients).max())
    assert_allclose(scaled.hessians, hessians, rtol=1e-9, atol=1e-9 * np.abs(gradients).max())


@outputs
@kinds
def test_round_trip(kind, outputs):
    jet = Quadratic(outputs).jet()
    scaling = Scaling.fit(jet, kind)
    scaled = scaling(jet)
    assert_allclose(scaled.X * scaling.x_scale + scaling.x_center, jet.X, rtol=1e-13, atol=1e-13)
    assert_array_equal(scaled.X, scaling.inputs(jet.X))
    assert_allclose(scaling.values_back(scaled.y), jet.y, rtol=1e-12, atol=1e-10)
    assert_allclose(scaling.gradients_back(scaled.gradients), jet.gradients, rtol=1e-13)
    assert_allclose(scaling.hessians_back(scaled.hessians), jet.hessians, rtol=1e-13)


@outputs
@kinds
def test_values_have_mean_zero_and_variance_one(kind, outputs):
    jet = Quadratic(outputs).jet()
    scaled = Scaling.fit(jet, kind)(jet)
    assert_allclose(scaled.y.mean(axis=0), np.zeros(outputs), atol=1e-12)
    assert_allclose(scaled.y.std(axis=0), np.ones(outputs), rtol=1e-12)


def test_where_the_points_go():
    jet = Quadratic().jet()
    box, ball, same = (Scaling.fit(jet, kind)(jet).X for kind in KINDS)
    assert_allclose([box.min(axis=0), box.max(axis=0)], np.array([-np.ones(D), np.ones(D)]) / np.sqrt(D), rtol=1e-12)
    assert_allclose(np.linalg.norm(ball, axis=1).max(), 1, rtol=1e-14)
    assert_allclose(ball.min(axis=0) + ball.max(axis=0), 0, atol=1e-14)
    moved = jet.X - jet.X[0]
    assert_allclose((ball - ball[0]) * Scaling.fit(jet, "ball").x_scale[0], moved, atol=1e-12)  # distances survive
    assert_array_equal(same, jet.X)


@kinds
@pytest.mark.parametrize("n_constant", [1, D])
def test_constant_columns(kind, n_constant):
    X = Quadratic().X.copy()
    X[:, :n_constant] = 1e6 / 3
    scaling = Scaling.fit(Jet(X, np.arange(N)), kind)
    scaled = scaling.inputs(X)
    assert np.all(scaling.x_scale > 0)
    if kind is not None:
        assert_array_equal(scaled[:, :n_constant], 0.0)
        assert np.linalg.norm(scaled, axis=1).max() <= 1 + 1e-14


@kinds
@pytest.mark.parametrize(("x_unit", "y_unit"), [(1, 1e150), (1, 1e-150), (1e150, 1), (1e-150, 1), (1e100, 1e200)])
def test_huge_and_tiny_units(kind, x_unit, y_unit):
    jet = Quadratic((2,)).jet()
    other = Jet(
        jet.X * x_unit,
        jet.y * y_unit,
        jet.gradients * (y_unit / x_unit),
        jet.hessians * (y_unit / x_unit / x_unit),
    )
    scaling = Scaling.fit(other, kind)
    scaled, expected = scaling(other), Scaling.fit(jet, kind)(jet)
    assert_allclose(scaled.y, expected.y, atol=1e-12)
    if kind is not None:
        assert_allclose(scaled.X, expected.X, atol=1e-13)
        assert_allclose(scaled.gradients, expected.gradients, rtol=1e-12)
        assert_allclose(scaled.hessians, expected.hessians, rtol=1e-12)
    assert_allclose(scaling.gradients_back(scaled.gradients), other.gradients, rtol=1e-12)
    assert_allclose(scaling.hessians_back(scaled.hessians), other.hessians, rtol=1e-12)


@kinds
def test_large_offsets(kind):
    jet = Quadratic().jet()
    moved = Jet(jet.X + 1e6, jet.y + 1e6, jet.gradients)
    scaled, expected = Scaling.fit(moved, kind)(moved), Scaling.fit(jet, kind)(jet)
    assert_allclose(scaled.y, expected.y, atol=1e-10)
    assert_allclose(scaled.gradients, expected.gradients, rtol=1e-7)
    assert_allclose(scaled.X, expected.X + (1e6 if kind is None else 0), atol=1e-8)


def test_values_that_vary_only_where_their_weight_is_negligible_are_constant():
    """Their standard deviation, 1e-150, is no unit."""
    jet = Jet(np.arange(3.0)[:, None], np.array([2.0, 1.0, 3.0]), sample_weight=np.array([1.0, 1e-300, 1e-300]))
    assert Scaling.fit(jet).y_scale == 3.0


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e6 / 3, 1e150, 1e-150])
@pytest.mark.parametrize("n", [1, 7, 100_000])
def test_constant_values(n, constant):
    jet = Jet(np.linspace(0, 1, n)[:, None], np.column_stack([np.full(n, constant), np.arange(n)]))
    scaling = Scaling.fit(jet)
    assert_allclose(scaling.y_scale[0], abs(constant) or 1.0)
    assert_allclose(scaling.y_center[0], constant, rtol=1e-12)
    assert_allclose(scaling(jet).y[:, 0], 0, atol=1e-12)


@kinds
def test_weights_count_rows(kind):
    times = np.arange(N) % 4 + 1
    jet = Quadratic((2,)).jet(sample_weight=2.5 * times)  # only ratios matter
    repeated = jet[np.repeat(np.arange(N), times)]
    expected = Scaling.fit(Jet(repeated.X, repeated.y), kind)
    scaling = Scaling.fit(jet, kind)
    for name in ("x_center", "x_scale", "y_center", "y_scale"):
        assert_allclose(getattr(scaling, name), getattr(expected, name), rtol=1e-12)
    assert_array_equal(scaling(jet).sample_weight, jet.sample_weight)
    assert_array_equal(jet.weights(0), jet.sample_weight)
    assert_array_equal(Quadratic().jet().weights(0), np.ones(N))


@pytest.mark.parametrize(
    ("kind", "x", "y"), [("box", 1e4, 0.0), ("ball", 1e4, 0.0), (None, 0.0, 1e6), (None, 0.0, 1e200)]
)
def test_rows_of_weight_zero_do_not_count(kind, x, y):
    jet = Quadratic().jet()
    longer = Jet([*jet.X, [x] * D], [*jet.y, y], sample_weight=[1.0] * N + [0.0])
    scaling, expected = Scaling.fit(longer, kind), Scaling.fit(jet, kind)
    for name in ("x_center", "x_scale", "y_center", "y_scale"):
        assert_allclose(getattr(scaling, name), getattr(expected, name), rtol=1e-12)


def test_weights_that_are_all_zero_are_refused():
    with pytest.raises(ValueError, match="sample_weight"):
        Scaling.fit(Quadratic().jet(sample_weight=np.zeros(N)))


def test_an_unknown_scaling_is_refused():
    with pytest.raises(ValueError, match="'box', 'ball' or None, got 'cube'"):
        Scaling.fit(Quadratic().jet(), "cube")


@outputs
def test_directions(outputs):
    jet = Quadratic(outputs).jet()
    k = outputs[0] if outputs else 1
    first, second = jet.derivative_rows(1), jet.derivative_rows(2)
    gradients, hessians = jet.gradients.reshape(N, k, D), jet.hessians.reshape(N, k, D, D)
    assert first.shape == (N, k, D)
    assert second.shape == (N, k * D, D)
    squares = np.einsum("nkij,nklj->nil", hessians, hessians)
    assert_allclose(np.einsum("nmi,nmj->nij", first, first), np.einsum("nki,nkj->nij", gradients, gradients))
    assert_allclose(np.einsum("nmi,nmj->nij", second, second), squares)


def test_entries_of_directions_that_are_not_known_are_zero():
    jet = Quadratic((2,)).jet()
    gradients, hessians = jet.gradients.copy(), jet.hessians.copy()
    gradients[3, 1, 0] = hessians[4, 0, 2, 1] = np.nan
    unknown = Jet(jet.X, jet.y, gradients, hessians)
    for order, entry in ((1, (3, 1, 0)), (2, (4, 2, 1))):
        expected = jet.derivative_rows(order).copy()
        expected[entry] = 0.0
        assert_array_equal(unknown.derivative_rows(order), expected)
    assert np.isnan(unknown.gradients[3, 1, 0])  # the jet itself still says what is not known


def test_what_is_known():
    X, y, nothing = np.ones((2, 1)), np.ones(2), np.full((2, 1), np.nan)
    assert Jet(X, y).known == set()
    assert Jet(X, y, gradients=nothing).known == set()
    assert Jet(X, y, gradients=[[np.nan], [1.0]]).known == {"gradients"}
    assert Jet(X, y, np.ones((2, 1)), np.ones((2, 1, 1))).known == {"gradients", "hessians"}


def test_lists_and_integers_become_doubles():
    jet = Jet([[1], [2]], [3, 4], gradients=[[5], [6]], hessians=[[[7]], [[8]]], sample_weight=[1, 2])
    for name in ("X", "y", "gradients", "hessians", "sample_weight"):
        assert getattr(jet, name).dtype == np.float64
    assert (len(jet), jet.n_samples, jet.n_features) == (2, 2, 1)


@pytest.mark.parametrize("rows", [slice(2, 5), [3, 3, 0], np.arange(N) % 2 == 0], ids=["slice", "list", "mask"])
def test_indexing(rows):
    jet = Quadratic((2,)).jet(sample_weight=np.arange(N))
    frames = np.broadcast_to(np.eye(D)[:2], (N, 2, D))
    jet = Jet(jet.X, jet.y, jet.gradients, jet.hessians, jet.sample_weight, 2.0 * np.arange(N), frames)
    for name in ("X", "y", "gradients", "hessians", "sample_weight", "derivative_weight", "frames"):
        assert_array_equal(getattr(jet[rows], name), getattr(jet, name)[rows])
    bare = Jet(jet.X, jet.y)[rows]
    assert (bare.gradients, bare.hessians, bare.sample_weight) == (None, None, None)


def test_subtraction():
    jet = Quadratic((2,)).jet(sample_weight=np.arange(N))
    third = Jet(jet.X, jet.y / 3, jet.gradients / 3)
    residual = jet - third
    assert_allclose(residual.y, jet.y * 2 / 3)
    assert_allclose(residual.gradients, jet.gradients * 2 / 3)
    assert residual.hessians is None
    assert_array_equal(residual.X, jet.X)
    assert_array_equal(residual.sample_weight, jet.sample_weight)
    unknown = Jet(jet.X, jet.y, jet.gradients * np.nan)
    assert (jet - unknown).known == set()


def test_subtraction_of_another_number_of_outputs_is_refused():
    X, y = np.ones((4, 2)), np.arange(4.0)
    with pytest.raises(ValueError, match=r"\(4, 1\)"):
        Jet(X, y) - Jet(X, y[:, None])


def onto(V):
    """The orthogonal projector onto the span of the rows, by the textbook."""
    return np.linalg.pinv(V) @ V


def directions(n_directions, seed=0):
    return 3.0 * np.random.default_rng(seed).normal(size=(N, n_directions, D))


class TestAlong:
    @outputs
    @pytest.mark.parametrize("m", [1, 2, 3, 5])
    def test_is_the_gradient_in_the_span(self, outputs, m):
        """Along more directions than dimensions too, where their slopes agree."""
        jet, V = Quadratic(outputs).jet(), directions(m)
        along = Jet.along(jet.X, jet.y, V, np.einsum("nmd,n...d->n...m", V, jet.gradients))
        for k in range(N):
            assert_allclose(along.gradients[k], jet.gradients[k] @ onto(V[k]), rtol=1e-8, atol=1e-8)
            assert_allclose(along.frames[k].T @ along.frames[k], onto(V[k]), atol=1e-9)
        assert along.frames.shape == (N, min(m, D), D)

    def test_one_direction_needs_no_axis(self):
        jet, V = Quadratic((2,)).jet(sample_weight=np.arange(N)), directions(1)
        slopes = np.einsum("nmd,nkd->nkm", V, jet.gradients)
        flat, full = (
            Jet.along(jet.X, jet.y, V[:, 0], slopes[..., 0], jet.sample_weight),
            Jet.along(jet.X, jet.y, V, slopes, jet.sample_weight),
        )
        assert_array_equal(flat.gradients, full.gradients)
        assert_array_equal(flat.sample_weight, jet.sample_weight)

    def test_directions_that_depend_on_each_other_or_vanish(self):
        jet, V = Quadratic().jet(), directions(3)
        V[:, 1] = -2 * V[:, 0]
        V[4] = 0.0
        V[5, 2] = 0.0
        along = Jet.along(jet.X, jet.y, V, np.einsum("nmd,nd->nm", V, jet.gradients))
        ranks = [{4: 0, 5: 1}.get(k, 2) for k in range(N)]
        assert_array_equal(along.frames.any(axis=2).sum(axis=1), ranks)
        for k in range(N):
            assert_allclose(along.gradients[k], jet.gradients[k] @ onto(V[k]), rtol=1e-8, atol=1e-8)

    def test_components_that_are_small_by_their_unit_are_kept(self):
        """The same direction in units of 1e-90 and 1e90 is the same after scaling."""
        rng, units = np.random.default_rng(0), np.array([1e-90, 1.0, 1e90])
        X, V, slopes = rng.normal(size=(N, D)), rng.normal(size=(N, D)), rng.normal(size=N)
        one, other = (Jet.along(u * X, np.zeros(N), u * V, slopes) for u in (1.0, units))
        one, other = (Scaling.fit(jet)(jet) for jet in (one, other))
        assert_allclose(other.frames, one.frames, atol=1e-12)
        assert_allclose(other.gradients, one.gradients, atol=1e-12)

    def test_slopes_that_contradict_each_other_are_averaged(self):
        along = Jet.along([[0.0, 0.0]], [0.0], [[[1.0, 0.0], [2.0, 0.0]]], [[1.0, 6.0]])
        assert_allclose(along.gradients, [[2.0, 0.0]])  # slopes 1 and 3 along one unit vector

    def test_slopes_that_are_not_known_for_all_outputs_say_nothing(self):
        jet, V = Quadratic((2,)).jet(), directions(2)
        slopes = np.einsum("nmd,nkd->nkm", V, jet.gradients)
        slopes[3, 0, 1] = slopes[6] = np.nan
        along = Jet.along(jet.X, jet.y, V, slopes)
        assert_allclose(along.gradients[3], jet.gradients[3] @ onto(V[3, :1]), rtol=1e-9)
        assert_array_equal(along.gradients[6], 0.0)
        assert_array_equal(along.frames[6], 0.0)
        assert along.known == {"gradients"}
        assert Jet.along(jet.X, jet.y, V, np.full_like(slopes, np.nan)).known == set()

    @pytest.mark.parametrize(
        ("V", "slopes", "words"),
        [
            (np.ones((6, 3)), np.ones(6), "`directions` must have shape .* = .6, 2., got .6, 3."),
            (np.ones((5, 2)), np.ones(6), "`directions` must have shape .* = .6, 2., got .5, 2."),
            (np.ones(2), np.ones(6), "`directions` must have shape .* got .2,."),
            (np.ones((6, 2)), np.ones(5), r"`slopes` must be .* .6,., got .5,."),
            (np.ones((6, 3, 2)), np.ones((6, 2)), "`slopes` must be .* .6, 3., got .6, 2."),
            (np.full((6, 2), np.nan), np.ones(6), "`directions` must be finite, got nan"),
            (np.ones((6, 2)), np.full(6, np.inf), "`slopes` must be finite or NaN .unknown., got inf"),
        ],
    )
    def test_errors(self, V, slopes, words):
        with pytest.raises(ValueError, match=words):
            Jet.along(GOOD["X"], GOOD["y"], V, slopes)

    @outputs
    @kinds
    def test_scaled_slopes_are_those_of_the_scaled_function(self, kind, outputs):
        f, V = Quadratic(outputs), directions(2)
        V[3], V[4, 1] = 0.0, 0.0
        jet = f.jet()
        along = Jet.along(jet.X, jet.y, V, np.einsum("nmd,n...d->n...m", V, jet.gradients))
        scaling = Scaling.fit(jet, kind)
        scaled, full = scaling(along), scaling(jet)
        W = V / scaling.x_scale  # the same directions in the new units
        for k in range(N):
            projector = onto(W[k] / np.maximum(np.linalg.norm(W[k], axis=1, keepdims=True), 1e-300))
            assert_allclose(scaled.frames[k].T @ scaled.frames[k], projector, atol=1e-6)
            assert_allclose(scaled.gradients[k], full.gradients[k] @ projector, rtol=1e-5, atol=1e-5)


class TestFilled:
    def test_only_what_is_not_known(self):
        jet, other = Quadratic((2,)).jet(sample_weight=np.arange(N)), Quadratic((2,)).jet()
        gradients = jet.gradients.copy()
        gradients[3, :, 1] = np.nan
        guess = Jet(other.X, 0 * other.y, other.gradients + 7, other.hessians + 7)
        filled = Jet(jet.X, jet.y, gradients, sample_weight=jet.sample_weight).fill_unknown(guess)
        expected = jet.gradients.copy()
        expected[3, :, 1] += 7
        assert_array_equal(filled.gradients, expected)
        assert_array_equal(filled.hessians, guess.hessians)
        assert_array_equal(filled.y, jet.y)
        assert_array_equal(filled.sample_weight, jet.sample_weight)
        assert_array_equal(jet.fill_unknown(Jet(jet.X, jet.y)).hessians, jet.hessians)

    @outputs
    def test_across_the_frames(self, outputs):
        jet, V = Quadratic(outputs).jet(), directions(2)
        along = Jet.along(jet.X, jet.y, V, np.einsum("nmd,n...d->n...m", V, jet.gradients))
        filled = along.fill_unknown(Jet(jet.X, jet.y, 2 * jet.gradients))
        assert filled.frames is None
        for k in range(N):
            P = onto(V[k])
            expected = jet.gradients[k] @ P + 2 * jet.gradients[k] @ (np.eye(D) - P)
            assert_allclose(filled.gradients[k], expected, rtol=1e-8, atol=1e-8)


class TestJoined:
    def test_what_one_of_two_knows(self):
        jet = Quadratic((2,)).jet()
        both = Jet(jet.X, jet.y) + jet
        assert len(both) == 2 * N
        assert_array_equal(both.X, np.concatenate([jet.X, jet.X]))
        assert_array_equal(both.y, np.concatenate([jet.y, jet.y]))
        for name in ("gradients", "hessians"):
            assert np.all(np.isnan(getattr(both, name)[:N]))
            assert_array_equal(getattr(both, name)[N:], getattr(jet, name))
        assert (both.sample_weight, both.derivative_weight, both.frames) == (None, None, None)

    def test_weights(self):
        X, y, w, v = np.ones((2, 1)), np.ones(2), np.array([2.0, 3.0]), np.array([5.0, 6.0])
        bare, heavy = Jet(X, y), Jet(X, y, sample_weight=w)
        both = Jet(X, y, sample_weight=w, derivative_weight=v)
        assert_array_equal((bare + heavy).sample_weight, [1, 1, 2, 3])
        assert (bare + heavy).derivative_weight is None
        assert_array_equal((heavy + both).derivative_weight, [2, 3, 5, 6])
        assert_array_equal((both + bare).derivative_weight, [5, 6, 1, 1])
        assert_array_equal((both + bare).sample_weight, [2, 3, 1, 1])

    @outputs
    @pytest.mark.parametrize("m", [1, 3])
    def test_frames_beside_gradients(self, outputs, m):
        jet, V = Quadratic(outputs).jet(), directions(m)
        partly = jet.gradients.copy()
        partly[2, ..., 1] = np.nan
        along = Jet.along(jet.X, jet.y, V, np.einsum("nmd,n...d->n...m", V, jet.gradients))
        full, none = Jet(jet.X, jet.y, partly), Jet(jet.X, jet.y)
        for parts in ([along, full, none], [none, full, along], [full, none, along]):
            joined = parts[0] + parts[1] + parts[2]
            for i, part in enumerate(parts):
                for k in range(N):
                    P = {id(along): onto(V[k]), id(full): np.diag([1, k != 2, 1]), id(none): np.zeros((D, D))}[id(part)]
                    frame = joined.frames[i * N + k]
                    assert_allclose(frame.T @ frame, P, atol=1e-9)
                    found = joined.derivative_rows(1)[i * N + k].reshape(jet.gradients[k].shape)
                    assert_allclose(found, jet.gradients[k] @ P, rtol=1e-8, atol=1e-8)

    def test_of_other_inputs_or_outputs_are_refused(self):
        X, y = np.ones((4, 2)), np.arange(4.0)
        for other in (Jet(X, y[:, None]), Jet(X[:, :1], y)):
            with pytest.raises(ValueError, match="concatenated jets must have the same inputs and outputs, got 2 and"):
                Jet(X, y) + other


class TestUnknownValues:
    def jet(self):
        y = np.arange(6.0)
        y[2:4] = np.nan
        return Jet(np.arange(12.0).reshape(6, 2), y, np.ones((6, 2)), sample_weight=np.arange(1.0, 7.0))

    def test_where(self):
        jet = self.jet()
        assert_array_equal(jet.has_value, [True, True, False, False, True, True])
        assert_array_equal(jet.with_values().y, [0, 1, 4, 5])
        assert_array_equal(jet.with_values().sample_weight, [1, 2, 5, 6])
        assert np.isnan((jet - Jet(jet.X, np.ones(6))).y[2])

    def test_scaling_ignores_them(self):
        jet = self.jet()
        scaling = Scaling.fit(jet, "box")
        expected = Scaling.fit(jet.with_values(), "box")
        assert_allclose([scaling.y_center, scaling.y_scale], [expected.y_center, expected.y_scale])
        assert_array_equal(scaling.x_center, [5, 6])  # points without values are points
        assert np.isnan(scaling(jet).y[2])

    def test_one_value_at_least(self):
        with pytest.raises(ValueError, match="`y` must be known in at least one row, got only NaN"):
            Scaling.fit(Jet(np.ones((2, 1)), [np.nan, np.nan], np.ones((2, 1))))


def test_subtraction_along_frames():
    jet, V = Quadratic().jet(), directions(1)
    along = Jet.along(jet.X, jet.y, V, np.einsum("nmd,nd->nm", V, jet.gradients))
    rest = along - Jet(jet.X, jet.y, 3 * jet.gradients)
    for k in range(N):
        assert_allclose(rest.gradients[k], -2 * jet.gradients[k] @ onto(V[k]), rtol=1e-8, atol=1e-8)


def with_entry(shape, entry):
    array = np.ones(shape)
    array.flat[-1] = entry
    return array


GOOD = {"X": np.ones((6, 2)), "y": np.ones(6)}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"X": np.ones(6)}, ["`X`", "(n, d)", "(6,)"]),
        ({"X": with_entry((6, 2), np.nan)}, ["`X`", "finite", "nan", "(5, 1)"]),
        ({"X": with_entry((6, 2), -np.inf)}, ["`X`", "finite", "-inf", "(5, 1)"]),
        ({"y": np.ones(5)}, ["`y`", "(n,) or (n, k)", "n = 6", "(5,)"]),
        ({"y": np.ones((6, 1, 1))}, ["`y`", "(n,) or (n, k)", "(6, 1, 1)"]),
        ({"y": 1.0}, ["`y`", "(n,) or (n, k)", "()"]),
        ({"y": with_entry(6, np.inf)}, ["`y`", "finite or NaN", "inf", "(5,)"]),
        ({"y": with_entry((6, 2), np.nan)}, ["`y`", "all outputs of a row or for none", "[ 1. nan]", "row 5"]),
        ({"derivative_weight": np.ones(5)}, ["`derivative_weight`", "6 numbers >= 0", "(5,)"]),
        ({"derivative_weight": with_entry(6, -1.0)}, ["`derivative_weight`", "6 numbers >= 0", "-1"]),
        ({"frames": np.ones((6, 2))}, ["`frames`", "(n, r, d) with n = 6, d = 2", "(6, 2)"]),
        ({"frames": np.ones((6, 1, 3))}, ["`frames`", "(n, r, d) with n = 6, d = 2", "(6, 1, 3)"]),
        ({"frames": np.ones((6, 1, 2))}, ["`frames`", "orthonormal directions and zeros", "row 0", "Jet.along"]),
        ({"frames": np.full((6, 1, 2), np.nan)}, ["`frames`", "finite", "nan"]),
        ({"gradients": np.ones((2, 6))}, ["`gradients`", "(n, d) = (6, 2)", "(2, 6): transpose it?"]),
        ({"gradients": np.ones((6, 3))}, ["`gradients`", "(n, d) = (6, 2)", "(6, 3)"]),
        ({"gradients": np.ones((12,))}, ["`gradients`", "(n, d) = (6, 2)", "(12,)"]),
        ({"gradients": np.ones((6, 2, 2))}, ["`gradients`", "(n, d) = (6, 2)", "(6, 2, 2)"]),
        ({"gradients": with_entry((6, 2), np.inf)}, ["`gradients`", "finite or NaN", "inf", "(5, 1)"]),
        ({"gradients": with_entry((6, 2), -np.inf)}, ["`gradients`", "finite or NaN", "-inf", "(5, 1)"]),
        ({"hessians": np.ones((2, 2, 6))}, ["`hessians`", "(n, d, d) = (6, 2, 2)", "(2, 2, 6): transpose it?"]),
        ({"hessians": np.ones((6, 2))}, ["`hessians`", "(n, d, d) = (6, 2, 2)", "(6, 2)"]),
        ({"hessians": with_entry((6, 2, 2), np.inf)}, ["`hessians`", "finite or NaN", "inf", "(5, 1, 1)"]),
        (
            {"y": np.ones((6, 3)), "gradients": np.ones((6, 2, 3))},
            ["`gradients`", "(n, k, d) = (6, 3, 2)", "(6, 2, 3): transpose it?"],
        ),
        ({"y": np.ones((6, 3)), "gradients": np.ones((6, 2))}, ["`gradients`", "(n, k, d) = (6, 3, 2)", "(6, 2)"]),
        (
            {"y": np.ones((6, 3)), "hessians": np.ones((6, 2, 2))},
            ["`hessians`", "(n, k, d, d) = (6, 3, 2, 2)", "(6, 2, 2)"],
        ),
        ({"sample_weight": np.ones(5)}, ["`sample_weight`", "6 numbers >= 0", "(5,)"]),
        ({"sample_weight": with_entry(6, -0.5)}, ["`sample_weight`", "6 numbers >= 0", "-0.5"]),
        ({"sample_weight": with_entry(6, np.nan)}, ["`sample_weight`", "finite", "nan", "(5,)"]),
    ],
    ids=lambda value: "" if isinstance(value, dict) else " ".join(value),
)
def test_errors_say_what_was_expected_and_what_came(wrong, words):
    with pytest.raises(ValueError, match="must") as error:
        Jet(**{**GOOD, **wrong})
    message = str(error.value)
    for word in words:
        assert word in message
    assert ("transpose" in message) == ("transpose" in words[-1])


@pytest.mark.parametrize("y", [np.ones(6), np.ones((6, 1))], ids=["(n,)", "(n, 1)"])
def test_one_output_needs_no_axis(y):
    gradients, hessians = np.arange(12.0).reshape(6, 2), np.arange(24.0).reshape(6, 2, 2)
    jets = [Jet(GOOD["X"], y, G, H) for G, H in ((gradients, hessians), (gradients[:, None], hessians[:, None]))]
    for jet in jets:
        assert jet.gradients.shape == (*y.shape, 2)
        assert_array_equal(jet.gradients.reshape(6, 2), gradients)
        assert_array_equal(jet.hessians.reshape(6, 2, 2), hessians)


def test_rows_with_derivatives():
    gradients, hessians = np.full((4, 2), np.nan), np.full((4, 2, 2), np.nan)
    gradients[1, 0], hessians[3, 1, 1] = 0.0, 1.0
    jet = Jet(np.zeros((4, 2)), np.zeros(4), gradients, hessians)
    assert_array_equal(jet.has_derivative(1), [False, True, False, False])
    assert_array_equal(jet.has_derivative(2), [False, False, False, True])
    along = Jet.along(np.zeros((2, 2)), np.zeros(2), np.eye(2), [1.0, np.nan])
    assert_array_equal(along.has_derivative(1), [True, False])
    assert_array_equal(along.has_derivative(2), [False, False])


COMPUTED = {
    "rows": lambda jet: jet[::2],
    "a kind of derivatives": lambda jet: jet.only(["hessians"]),
    "values alone": lambda jet: jet.only([]),
    "outputs combined": lambda jet: jet.combined(np.ones((2, 3))),
    "a difference": lambda jet: jet - jet[np.arange(N)[::-1]],
    "two joined": lambda jet: jet + jet.only([]),
    "two joined with frames": lambda jet: jet + Jet.along(jet.X, jet.y, directions(1), np.zeros((N, 2, 1))),
    "filled": lambda jet: jet.fill_unknown(Quadratic((2,)).jet()),
    "other inputs": InputMap(np.diag([2.0, 0.5, 1.0])),
    "of a network": lambda jet: network((2,)).jet(jet.X),
}


def network(outputs):
    planes = Hyperplanes(np.eye(D), np.zeros(D))
    features = Features(planes, Sigmoid(width=1.0), degree=0)
    return ShallowNetwork(features, np.ones((features.n_columns, *outputs)))


@pytest.mark.parametrize("compute", COMPUTED.values(), ids=list(COMPUTED))
def test_what_is_computed_from_valid_jets_is_valid(compute):
    jet = Quadratic((2,)).jet(sample_weight=np.arange(N), derivative_weight=np.ones(N))
    jet.gradients[3] = np.nan
    jet.y[4] = np.nan
    computed = compute(jet)
    validated = Jet(**vars(computed))
    for name, array in vars(computed).items():
        assert array is None or array.dtype == float
        assert_array_equal(array, getattr(validated, name), strict=True)
