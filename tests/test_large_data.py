"""Fits to rows that come in blocks: from arrays, from disk, from iterables and from Dask."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

from large_data_runs import take_blocks_beyond
from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
    load,
)
from nurf.blockwise import SampledBlocks, TrainedBlocks
from nurf.blockwise import _checkpoint as checkpoint_module
from nurf.blockwise._checkpoint import Checkpoint, Kept
from nurf.blockwise._trained import BlockTraining
from nurf.data import uniform_numbers
from nurf.data._summary import HELD_SHARE
from nurf.engines import fit_for_more_rows
from nurf.engines._progress import watch_blocks
from nurf.files import read
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers import Loss
from nurf.solvers.ridge import NormalEquations

try:
    import dask.array as da
except ImportError:  # it is an extra
    da = None
needs_dask = pytest.mark.skipif(da is None, reason="Dask is not installed")

# Of these settings nothing is chosen by a race, and alpha is far above rounding: fits that differ by the order of sums
# differ by 1e-16 / 1e-6 in units of the values.
PLAIN = {"density": "local", "width": 0.4, "gradient_weight": 0.01, "growth": None, "tail": "constant", "alpha": 1e-6}
SCRIPT = Path(__file__).with_name("large_data_runs.py")


@pytest.fixture
def few(monkeypatch):
    """Rows in blocks from 300 rows on."""
    take_blocks_beyond(300, monkeypatch.setattr)


def make(n=1000, outputs=(), seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    X = rng.uniform([-1, 0, 5], [2, 3, 5.1], (n, 3))
    slopes = np.array([1.0, 0.5, 8.0])
    phases = X @ slopes
    y = np.sin(phases) + noise * rng.normal(size=n)
    gradients = np.cos(phases)[:, None] * slopes
    if outputs:
        y, gradients = np.stack([y, 2 * y + 1], 1), np.stack([gradients, 2 * gradients], 1)
    return X, y, gradients


def model(n_neurons=30, **options):
    return RandomFeatureRegressor(n_neurons, **{**PLAIN, "random_state": 0, **options})


def blocks_of(*arrays, borders):
    return [
        tuple(array[a:b] for array in arrays) for a, b in zip([0, *borders], [*borders, len(arrays[0])], strict=True)
    ]


FRESH = make(200, seed=9)[0]


class TestKindsOfArrays:
    """All kinds of arrays give the fit to arrays in memory, to 1e-8 for the same seed and blocks."""

    def stored(self, kind, path, arrays):
        if kind == "memmap":
            maps = [np.memmap(path / f"{i}", float, "w+", shape=array.shape) for i, array in enumerate(arrays)]
            for stored, array in zip(maps, arrays, strict=True):
                stored[:] = array
            return maps
        if kind == "hdf5":
            h5py = pytest.importorskip("h5py")
            file = h5py.File(path / "data.h5", "w")
            return [file.create_dataset(f"{i}", data=array) for i, array in enumerate(arrays)]
        if kind == "zarr":
            zarr = pytest.importorskip("zarr")
            group = zarr.open_group(path / "data.zarr", mode="w")
            for i, array in enumerate(arrays):
                group[f"{i}"] = array
            return [group[f"{i}"] for i in range(len(arrays))]
        pytest.importorskip("dask.array")
        return [da.from_array(array, chunks=(170, *array.shape[1:])) for array in arrays]

    @pytest.mark.parametrize("outputs", [(), (2,)], ids=["one output", "two outputs"])
    @pytest.mark.parametrize("kind", ["memmap", "hdf5", "zarr", "dask"])
    def test_same_fit(self, few, kind, outputs, tmp_path):
        X, y, gradients = make(outputs=outputs)
        expected = model().fit(X, y, gradients=gradients, block_rows=170)
        stored = self.stored(kind, tmp_path, (X, y, gradients))
        options = {} if kind == "dask" else {"block_rows": 170}
        found = model().fit(stored[0], stored[1], gradients=stored[2], **options)
        assert_allclose(found.predict(FRESH), expected.predict(FRESH), rtol=1e-8, atol=1e-8)
        assert_allclose(found.estimated_error_, expected.estimated_error_, rtol=1e-8)
        assert found.n_samples_ == 1000

    @pytest.mark.parametrize("kind", ["memmap", "hdf5", "zarr", "dask"])
    def test_few_rows_are_read_at_once(self, kind, tmp_path):
        X, y, gradients = make(200)
        stored = self.stored(kind, tmp_path, (X, y, gradients))
        found = model().fit(stored[0], stored[1], gradients=stored[2])
        assert_array_equal(found.predict(FRESH), model().fit(X, y, gradients=gradients).predict(FRESH))

    @pytest.mark.parametrize("kind", ["memmap", "hdf5", "zarr", "dask"])
    @pytest.mark.parametrize("outputs", [(), (2,)], ids=["one output", "two outputs"])
    def test_predictions(self, kind, outputs, tmp_path):
        X, y, gradients = make(200, outputs=outputs)
        fitted = model().fit(X, y, gradients=gradients)
        (stored,) = self.stored(kind, tmp_path, (FRESH,))
        for name, options in [
            ("predict", {}),
            ("predict", {"return_std": True}),
            ("predict_gradient", {}),
            ("predict_hessian", {}),
            ("predict_interval", {"coverage": 0.8}),
        ]:
            expected, found = (getattr(fitted, name)(points, **options) for points in (FRESH, stored))
            for part, other in zip(
                *([expected], [found]) if not options.get("return_std") else (expected, found), strict=True
            ):
                assert part.shape == other.shape
                if kind == "dask":
                    assert isinstance(other, da.Array)
                assert_allclose(np.asarray(other), part, rtol=1e-10, atol=1e-12)

    @pytest.mark.parametrize("kind", ["memmap", "dask"])
    @pytest.mark.parametrize(
        "fitted",
        [
            DeepFeatureRegressor((8,), steps=20, random_state=0),
            KernelFeatureRegressor("gaussian"),
            SparseFeatureRegressor(0.1, random_state=0),
            Surrogate(engines=["wide"]),
        ],
        ids=lambda fitted: type(fitted).__name__,
    )
    def test_all_regressors_predict_in_pieces(self, kind, fitted, tmp_path):
        X, y, _ = make(40)
        fitted.fit(X, y)
        (stored,) = self.stored(kind, tmp_path, (FRESH,))
        for name in ("predict", "predict_gradient", "predict_hessian", "predict_interval"):
            expected, found = (getattr(fitted, name)(points) for points in (FRESH, stored))
            assert isinstance(found, np.ndarray if kind == "memmap" else da.Array)
            assert_allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-10)

    @needs_dask
    def test_lazy_predictions_compute_nothing(self):
        def refuse(block):
            raise AssertionError("computed")

        X, y, _ = make(200)
        points = da.from_array(FRESH, chunks=(50, 2)).map_blocks(refuse, dtype=float, meta=np.empty((0, 0)))
        lazy = model(density="uniform", gradient_weight=0.0).fit(X, y).predict(points)
        with pytest.raises(AssertionError, match="computed"):
            lazy.compute()

    @needs_dask
    def test_points_of_another_dimension(self):
        X, y, gradients = make(200)
        fitted = model().fit(X, y, gradients=gradients)
        with pytest.raises(ValueError, match=r"must have shape \(n, 3\), got \(200, 2\)"):
            fitted.predict(da.from_array(FRESH[:, :2]))


class TestBlocks:
    @pytest.mark.parametrize(
        "borders", [[1, 2, 3, 500, 999], [400], list(range(5, 1000, 5))], ids=["tiny", "two", "many"]
    )
    def test_any_blocks_give_the_same_fit(self, few, borders):
        data = make()
        expected = model().fit(data[0], data[1], gradients=data[2])
        found = model().fit_blocks(blocks_of(*data, borders=borders))
        assert_allclose(found.predict(FRESH), expected.predict(FRESH), rtol=1e-8, atol=1e-8)
        assert_array_equal(found.hyperplanes_.offsets.shape, expected.hyperplanes_.offsets.shape)

    def test_blocks_of_one_row(self, few):
        data = make(320)
        found = model().fit_blocks(blocks_of(*data, borders=range(1, 320)))
        expected = model().fit(data[0], data[1], gradients=data[2])
        assert_allclose(found.predict(FRESH), expected.predict(FRESH), rtol=1e-8, atol=1e-8)

    def test_functions_and_mappings(self, few):
        X, y, gradients = make()
        weights = np.random.default_rng(1).exponential(size=1000)
        calls = []

        def source():
            calls.append(1)
            for rows in (slice(0, 300), slice(300, 300), slice(300, 1000)):
                yield {"X": X[rows], "y": y[rows], "gradients": gradients[rows], "sample_weight": weights[rows]}

        found = model().fit_blocks(source)
        expected = model().fit(X, y, gradients=gradients, sample_weight=7 * weights, block_rows=123)
        assert_allclose(found.predict(FRESH), expected.predict(FRESH), rtol=1e-8, atol=1e-8)
        assert len(calls) == 2

    @pytest.mark.parametrize("scaling", ["box", "ball", None])
    def test_few_rows_in_blocks_are_fitted_as_those_in_memory(self, scaling):
        data = make(200)
        found = model(scaling=scaling).fit_blocks(blocks_of(*data, borders=[3, 150]))
        expected = model(scaling=scaling).fit(data[0], data[1], gradients=data[2])
        assert_array_equal(found.predict(FRESH), expected.predict(FRESH))

    def test_the_radius_of_a_ball(self, few):
        data = make()
        found = model(scaling="ball").fit_blocks(blocks_of(*data, borders=[3, 150]))
        assert_allclose(found.scaling_.x_scale, np.linalg.norm(data[0] - found.scaling_.x_center, axis=1).max())

    def test_directional_derivatives(self, few):
        X, y, gradients = make()
        directions = np.random.default_rng(2).normal(size=X.shape)
        slopes = np.sum(directions * gradients, axis=1)
        found = model().fit(X, y, gradients=slopes, directions=directions, block_rows=99)
        truth = np.sin(FRESH @ [1.0, 0.5, 8.0])
        assert np.sqrt(np.mean((found.predict(FRESH) - truth) ** 2)) < 0.2 * truth.std()

    def test_gradients_that_are_unknown_in_whole_blocks(self, few):
        X, y, gradients = make()
        gradients[:400] = np.nan
        gradients[500:520, 1] = np.nan
        found = model().fit(X, y, gradients=gradients, block_rows=100)
        expected = model().fit(X, y, gradients=gradients)
        assert_allclose(found.predict(FRESH), expected.predict(FRESH), rtol=1e-8, atol=1e-8)

    def test_frames(self, few):
        """Columns and rows are matched by name, as for few rows; names are kept."""
        pandas = pytest.importorskip("pandas")
        X, y, gradients = make()
        frame = pandas.DataFrame(X, columns=list("abc"))
        slopes = pandas.DataFrame(gradients, columns=["dy_a", "dy_b", "dy_c"])[["dy_c", "dy_a", "dy_b"]]
        found = model().fit(
            frame, pandas.Series(y), gradients=slopes.loc[::-1], sample_weight=[1.0] * 1000, block_rows=99
        )
        assert_array_equal(found.feature_names_in_, list("abc"))
        expected = model().fit(X, y, gradients=gradients, block_rows=99)
        assert_allclose(found.predict(frame[:50]), expected.predict(X[:50]), rtol=1e-8, atol=1e-8)
        found.fit_blocks([(X, y, gradients)])
        assert not hasattr(found, "feature_names_in_")

    def test_rows_of_weight_zero_do_not_count(self, few):
        X, y, gradients = make()
        weights = np.ones(1000)
        weights[:150] = 0
        y = np.where(weights > 0, y, 1e6)
        found = model().fit(X, y, gradients=gradients, sample_weight=weights, block_rows=100)
        assert found.n_samples_ == 850
        assert np.abs(found.predict(FRESH)).max() < 10


class TestWhatIsFitted:
    def test_outer_weights_are_those_of_ridge_regression(self, few):
        """Of scikit-learn, on all rows: it minimises the sum of squares plus ``alpha |c|^2``."""
        X, y, _ = make()
        fitted = model(density="uniform", gradient_weight=0.0, alpha=1e-3).fit(X, y, block_rows=77)
        network, scaled = fitted.fit_.network, fitted.scaling_.inputs(X)
        design = network.features.design(scaled)[:, :30]
        energy = design.var(axis=0).mean()
        ridge = Ridge(alpha=1e-3 * energy * 30 * len(X)).fit(
            design, (y - fitted.scaling_.y_center) / fitted.scaling_.y_scale
        )
        assert_allclose(network.coef, ridge.coef_, rtol=1e-7, atol=1e-9)
        assert_allclose(fitted.scaling_.y_center, y.mean())
        assert_allclose(fitted.scaling_.y_scale, y.std())

    def test_the_error_is_true(self, few):
        """Fresh values have the noise too. With 2000 of them both estimates are within 10%, with a margin of 4 sigma.

        The standard error of a root mean square of ``n`` normal errors is ``1 / sqrt(2 n)`` of it: 5% for the 200 rows
        that are held, and 1.6% for 2000.
        """
        X, y, gradients = make(1000, noise=0.3)
        fitted = model(alpha="auto").fit(X, y, gradients=gradients, block_rows=100)
        fresh, values, _ = make(2000, seed=5, noise=0.3)
        error = np.sqrt(np.mean((fitted.predict(fresh) - values) ** 2))
        assert abs(np.log(fitted.estimated_error_ / error)) < 4 * np.hypot(0.05, 0.016)
        assert "samples that left the fit" in str(fitted.report())

    def test_intervals_hold(self, few):
        X, y, gradients = make(1000, noise=0.3)
        fitted = model(alpha="auto").fit(X, y, gradients=gradients, block_rows=100)
        fresh, values, _ = make(1000, seed=5, noise=0.3)
        low, high = fitted.predict_interval(fresh, 0.9).T
        assert 0.8 < np.mean((low <= values) & (values <= high)) < 0.97

    def test_default_search(self, few):
        X, y, gradients = make(noise=0.0)
        fitted = RandomFeatureRegressor(40, random_state=0).fit(X, y, gradients=gradients, block_rows=100)
        truth = make(200, seed=9, noise=0.0)[1]
        assert np.sqrt(np.mean((fitted.predict(FRESH) - truth) ** 2)) < 0.05
        assert "race" in str(fitted.report())

    @pytest.mark.parametrize("sizes", [(4, 40), (40, 4)])
    def test_of_several_networks_all_rows_choose_the_best(self, few, sizes, monkeypatch):
        """The error of four neurons is many times that of 40, whichever won on the sample."""

        def raced(engines, progress):
            return tuple(
                fit for size in sizes for fit in plain([replace(each, sizes=[size]) for each in engines], None)
            )

        X, y, gradients = make(noise=0.01)
        plain = fit_for_more_rows
        monkeypatch.setattr("nurf.estimators._regressor.fit_for_more_rows", raced)
        fitted = model(40).fit(X, y, gradients=gradients, block_rows=100)
        assert len(fitted.hyperplanes_) == 40
        assert fitted.n_samples_ == len(X)

    def test_smooth_functions_keep_the_small_alphas_of_the_sample(self, few):
        """An analytic function of one variable without noise: alphas help that a Gram matrix cannot resolve."""
        X = np.random.default_rng(0).uniform(-1, 1, (1500, 1))
        options = {"density": "uniform", "gradient_weight": 0.0, "alpha": "auto", "width": 1.6}
        fitted = model(60, **options).fit(X, np.exp(X[:, 0]), block_rows=300)
        fresh = np.linspace(-0.99, 0.99, 500)[:, None]
        error = np.sqrt(np.mean((fitted.predict(fresh) - np.exp(fresh[:, 0])) ** 2))
        assert fitted.fit_.precise
        assert "the fit to" in str(fitted.report())
        assert error < 1e-5  # 8e-7 for several seeds, and 2e-4 with the smallest alpha of a Gram matrix
        assert 0.5 * error < fitted.estimated_error_ < 2 * error

    def test_values_and_gradients_in_one_pass(self):
        X, y, gradients = make(50, (2,))
        rng = np.random.default_rng(0)
        jet = Jet(X, y, gradients, sample_weight=rng.random(50), derivative_weight=rng.random(50))
        from nurf.activations import Sigmoid, Softplus
        from nurf.networks import Hyperplanes

        for activation in (Sigmoid(rng.uniform(0.2, 2, 7)), Softplus(0.5)):
            features = Features(Hyperplanes.through(X[:7], rng.normal(size=(7, 3))), activation, 1)
            found = NormalEquations.from_data(features, jet, Loss(0.3))
            expected = NormalEquations.from_rows(features, jet) + 0.3 * NormalEquations.from_rows(features, jet, 1)
            for name in ("gram", "moments", "energy", "total_weight"):
                assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-11, atol=1e-11)


def held_rows(n, seed=0):
    """The mask of the rows that are held back by a fit with a seed."""
    drawn = int(np.random.default_rng(seed).integers(2**62))
    return uniform_numbers(np.arange(n), drawn + 1) < HELD_SHARE


class TestHeldRows:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_dense_ridge_regression(self, few, weighted):
        """The error is that of a fit without the held rows, and the network is fitted to all of them.

        The oracle solves the same systems by LU instead of eigenvectors. Their condition is below 1 / alpha = 1e6, so
        that coefficients agree to 1e6 roundings, and the error to much less.
        """
        n, N = 1000, 30
        X, y, _ = make(n)
        weights = np.random.default_rng(3).uniform(0.5, 2.0, n) if weighted else None
        fitted = model(N, density="uniform", gradient_weight=0.0).fit(X, y, sample_weight=weights, block_rows=90)
        scaled, features = fitted.scaling_(Jet(X, y)), fitted.fit_.network.features
        Z = np.column_stack([features.neurons(scaled.X), np.ones(n)])
        w = np.ones(n) if weights is None else weights / weights.mean()

        def ridge(rows):
            total = w[rows].sum()
            gram, moments = (Z[rows].T @ (w[rows, None] * part[rows]) / total for part in (Z, scaled.y[:, None]))
            energy = np.trace(gram[:N, :N] - np.outer(gram[N, :N], gram[N, :N]) / gram[N, N]) / N
            return np.linalg.solve(gram + np.diag([1e-6 * energy * N] * N + [0.0]), moments)[:, 0]

        held = held_rows(n)
        errors = scaled.y - Z @ ridge(~held)
        expected = np.sqrt(np.average(errors[held] ** 2, weights=w[held]))
        assert_allclose(fitted.fit_.error, expected, rtol=1e-6)
        assert_allclose(Z @ fitted.fit_.network.coefficients, Z @ ridge(np.ones(n, bool)), rtol=1e-6, atol=1e-6)


class TestSurrogate:
    """All engines race on a sample; sampled and trained networks go on with all rows."""

    def surrogate(self, engine, **options):
        return Surrogate(options.pop("time_budget", None), engines=[engine], random_state=0, **options)

    @pytest.mark.parametrize("kind", ["memmap", "dask", "blocks"])
    def test_kinds_of_arrays(self, few, kind, tmp_path):
        data = make()
        surrogate = self.surrogate(model())
        expected = self.surrogate(model()).fit(data[0], data[1], gradients=data[2], block_rows=170)
        if kind == "blocks":
            found = surrogate.fit_blocks(blocks_of(*data, borders=range(170, 1000, 170)))
        else:
            X, y, gradients = TestKindsOfArrays().stored(kind, tmp_path, data)
            found = surrogate.fit(X, y, gradients=gradients, **({} if kind == "dask" else {"block_rows": 170}))
        assert_allclose(found.predict(FRESH), expected.predict(FRESH), rtol=1e-8, atol=1e-8)
        assert found.model_.n_samples_ == 1000
        assert found.leaderboard_[0].engine == found.engine_ == "RandomFeatureRegressor"

    @pytest.mark.parametrize("engine", ["sampled", "trained"])
    def test_more_rows_lower_the_error(self, few, engine):
        """Noise of half the deviation: 6000 rows know the function much better than the 300 on which engines race."""
        engines = {"sampled": RandomFeatureRegressor(60), "trained": DeepFeatureRegressor((16, 16), steps=400)}
        X, y, _ = make(6000, noise=0.35)
        truth = np.sin(FRESH @ [1.0, 0.5, 8.0])
        errors = []
        for n in (300, 6000):
            fitted = self.surrogate(engines[engine]).fit(X[:n], y[:n])
            errors.append(np.sqrt(np.mean((fitted.predict(FRESH) - truth) ** 2)))
        assert errors[1] < 0.6 * errors[0]
        assert 0.9 * 0.35 < fitted.estimated_error_ < 1.2 * 0.35

    def test_all_rows_have_the_largest_size(self, few):
        """The 300 rows of the race carry few neurons: noise is three times the function."""
        X, y, _ = make(6000, noise=2.0)
        fitted = self.surrogate(RandomFeatureRegressor(400)).fit(X, y)
        assert len(fitted.model_.hyperplanes_) == 400
        assert fitted.finished_

    def test_fewer_neurons_if_time_is_short(self, few, monkeypatch):
        """A tenth of the neurons take a hundredth of the time; then more time would give another model."""
        monkeypatch.setattr("nurf.blockwise._sampled.SampledBlocks.affordable", lambda *_: 40)
        X, y, _ = make(1000)
        fitted = self.surrogate(model(60, gradient_weight=0.0, density="uniform")).fit(X, y)
        whole = model(60, gradient_weight=0.0, density="uniform").fit(X, y)
        assert len(fitted.model_.hyperplanes_) == 40
        assert not fitted.finished_
        assert fitted.model_.n_samples_ == 1000
        assert np.sqrt(np.mean((fitted.predict(X) - whole.predict(X)) ** 2)) < 0.1

    def test_what_wins_on_the_sample_may_stay(self, few):
        """A smooth function without noise: a process with learned scales, which cannot go on, is far ahead."""
        X, y, _ = make(1500, noise=0.0)
        engines = ["wide", RandomFeatureRegressor(20)]
        fitted = Surrogate(None, engines=engines, random_state=0).fit(X, y)
        error = np.sqrt(np.mean((fitted.predict(FRESH) - np.sin(FRESH @ [1.0, 0.5, 8.0])) ** 2))
        assert fitted.engine_ == "wide"
        assert error / 3 < fitted.estimated_error_ < 3 * error

    def test_a_short_budget_leaves_a_model_of_the_sample(self, few):
        X, y, gradients = make()
        fitted = self.surrogate(RandomFeatureRegressor(100), time_budget=1e-9).fit(X, y, gradients=gradients)
        assert not fitted.finished_
        assert np.isfinite(fitted.predict(FRESH)).all()

    def test_no_checkpoints(self, few, tmp_path):
        X, y, gradients = make()
        with pytest.raises(ValueError, match="`checkpoint` must be None for `Surrogate`"):
            self.surrogate(model()).fit(X, y, gradients=gradients, checkpoint=tmp_path / "state")

    def test_files(self, few, tmp_path):
        X, y, gradients = make()
        fitted = self.surrogate(model()).fit(X, y, gradients=gradients)
        fitted.save(tmp_path / "model.nurf")
        assert_array_equal(load(tmp_path / "model.nurf").predict(FRESH), fitted.predict(FRESH))


class TestPartialFit:
    def test_the_first_call_is_fit(self):
        X, y, gradients = make(400)
        found = model().partial_fit(X, y, gradients=gradients)
        assert_array_equal(found.predict(FRESH), model().fit(X, y, gradients=gradients).predict(FRESH))

    def test_later_rows_are_added_to_the_normal_equations(self):
        data = make(900)
        calls = blocks_of(*data, borders=[400, 650])
        found = model()
        for X, y, gradients in calls:
            found.partial_fit(X, y, gradients=gradients)
        first = model().fit(*calls[0][:2], gradients=calls[0][2])
        assert_array_equal(found.hyperplanes_.normals, first.hyperplanes_.normals)
        jet = first.scaling_(Jet(*data))
        features, N = first.fit_.network.features, 30
        equations = NormalEquations.from_data(features, jet, Loss(0.01))
        gram, moments = equations.gram / 900, equations.moments[:, 0] / 900
        tail = gram[N:, :N]
        energy = np.trace(gram[:N, :N] - tail.T @ tail / gram[N, N]) / N
        penalty = np.diag([1e-6 * energy * N] * N + [0.0])
        assert_allclose(found.fit_.network.coefficients, np.linalg.solve(gram + penalty, moments), rtol=1e-6, atol=1e-8)
        assert found.n_samples_ == 900

    def test_the_order_of_later_rows_means_nothing(self):
        first, *later = blocks_of(*make(900), borders=[400, 500, 750])
        predictions = []
        for calls in (later, later[::-1]):
            found = model()
            for X, y, gradients in (first, *calls):
                found.partial_fit(X, y, gradients=gradients)
            predictions.append(found.predict(FRESH))
        assert_allclose(*predictions, rtol=1e-8, atol=1e-8)

    def test_more_rows_lower_the_error(self):
        """About 30 free numbers and noise of size one: the error is near sqrt(30 / 300) and then sqrt(30 / 4000)."""
        found = model(gradient_weight=0.0, density="uniform")
        errors = []
        for X, y, gradients in blocks_of(*make(4000, noise=1.0), borders=[300, 600]):
            found.partial_fit(X, y, gradients=gradients)
            errors.append(np.sqrt(np.mean((found.predict(FRESH) - np.sin(FRESH @ [1.0, 0.5, 8.0])) ** 2)))
        assert errors[2] < errors[0]

    def test_pickled_models_go_on(self):
        first, later = blocks_of(*make(900), borders=[400])
        found = model().partial_fit(first[0], first[1], gradients=first[2])
        copy = pickle.loads(pickle.dumps(found))
        for fitted in (found, copy):
            fitted.partial_fit(later[0], later[1], gradients=later[2])
        assert_array_equal(found.predict(FRESH), copy.predict(FRESH))

    def test_after_fit_it_starts_anew(self):
        X, y, gradients = make(400)
        found = model().fit(X[:200], y[:200], gradients=gradients[:200])
        with pytest.warns(UserWarning, match="starts anew"):
            found.partial_fit(X[200:], y[200:], gradients=gradients[200:])
        assert found.n_samples_ == 200

    def test_a_call_that_fails_changes_nothing(self):
        X, y, gradients = make(400)
        found = model().partial_fit(X, y, gradients=gradients)
        before = found.predict(FRESH)
        for bad in ({"y": np.full(400, np.nan)}, {"X": X[:, :2]}, {"gradients": gradients[:10]}):
            with pytest.raises(ValueError):  # noqa: PT011
                found.partial_fit(**{"X": X, "y": y, "gradients": gradients, **bad})
        with pytest.raises(ValueError, match="same kinds of data beside X and y, got gradients and then none"):
            found.partial_fit(X, y)
        assert_array_equal(found.predict(FRESH), before)
        found.partial_fit(X, y, gradients=gradients)
        assert found.n_samples_ == 800


class TestErrors:
    @needs_dask
    def test_rows_are_named(self, few):
        X, y, gradients = make()
        for name, column in (("X", (777, 1)), ("y", (777,))):
            arrays = {"X": X.copy(), "y": y.copy()}
            arrays[name][column] = np.nan
            stored = {key: da.from_array(array, chunks=100) for key, array in arrays.items()}
            with pytest.raises(ValueError, match=f"`{name}` must be finite, got nan in row 777"):
                model().fit(stored["X"], stored["y"], gradients=gradients)
        gradients[777] = np.inf
        with pytest.raises(ValueError, match=r"`gradients` must be finite or NaN.*block that starts with row 700"):
            model().fit(X, y, gradients=gradients, block_rows=100)

    def test_blocks_of_other_shapes(self, few):
        X, y, gradients = make(600)
        for second, got in [
            ((X[:, :2], y), "2 inputs"),
            ((X, np.stack([y, y], 1)), r"y of shape \('n', 2\)"),
            ((X, y, gradients), "and gradients"),
        ]:
            with pytest.raises(ValueError, match=f"same inputs, outputs and derivatives, got 3 inputs.* {got}"):
                model().fit_blocks([(X, y), second])
        with pytest.raises(
            ValueError, match=r"`y` must have shape.*n = 600.*\(in the block that starts with row 600\)"
        ):
            model().fit_blocks([(X, y), (X, y[:5])])

    @needs_dask
    def test_rows_that_do_not_match(self, few, tmp_path):
        X, y, gradients = make()
        for kind in (da.from_array, lambda array: array):
            with pytest.raises(ValueError, match="`gradients` must have 1000 rows"):
                model().fit(kind(X), kind(y), gradients=kind(gradients[:-1]))

    @needs_dask
    def test_no_rows(self, tmp_path):
        for X, y in ((da.zeros((0, 3)), da.zeros(0)), (np.zeros((0, 3)), np.zeros(0))):
            with pytest.raises(ValueError, match=r"0 sample"):
                model().fit(X, y)
        for blocks in ([], [(np.zeros((0, 3)), np.zeros(0))]):
            with pytest.raises(ValueError, match="at least one block"):
                model().fit_blocks(blocks)

    def test_iterators_that_end(self):
        with pytest.raises(ValueError, match="can be read only once"):
            model().fit_blocks(iter([make(500)]))

    def test_blocks_that_change(self, few):
        data, calls = make(600), []

        def source():
            calls.append(1)
            return [data] if len(calls) == 1 else [data, data]

        with pytest.raises(ValueError, match="same each time, got 600 rows and then 1200"):
            model().fit_blocks(source)

    @needs_dask
    def test_what_needs_memory(self, few):
        X, y, gradients = (da.from_array(array) for array in make())
        for options in ({"gradients_at": np.zeros((2, 3))}, {"validation": 0.2}):
            with pytest.raises(ValueError, match="need arrays in memory"):
                model().fit(X, y, **options)
        with pytest.raises(ValueError, match="need arrays in memory"):
            model(loss="huber").fit(X, y, gradients=gradients)
        with pytest.raises(ValueError, match="must be 'squared'"):
            model(loss="huber").fit_blocks([make()])

    @needs_dask
    def test_chunks_of_unknown_length(self, few):
        X, y, _ = make()
        points = da.from_array(X)
        with pytest.raises(ValueError, match="compute_chunk_sizes"):
            model().fit(points[points[:, 0] > 0], y)

    def test_parameters(self, few):
        X, y, gradients = make()
        with pytest.raises(ValueError, match="`block_rows` must be a whole number >= 1 or None, got 0"):
            model().fit(X, y, gradients=gradients, block_rows=0)
        with pytest.raises(ValueError, match="`checkpoint` needs a number as `random_state`, got None"):
            model(random_state=None).fit(X, y, gradients=gradients, checkpoint="state")
        with pytest.raises(ValueError, match="only zeros"):
            model().fit(X, y, gradients=gradients, sample_weight=np.zeros(1000))

    def test_long_passes_say_so(self, few, caplog, capsys, monkeypatch):
        data = make()
        monkeypatch.setattr("nurf.engines._progress._operations_per_second", lambda: 1.0)
        model(verbose=1).fit_blocks(blocks_of(*data, borders=[500]))
        assert "adding up 1000 samples for 30 neurons may take about 5e+02 h on one machine" in caplog.text  # 1.8e6 s
        said = capsys.readouterr().err
        assert "first pass: 1000 samples surveyed" in said
        assert "1000 of 1000 samples added up" in said

    def test_the_time_that_is_left(self, monkeypatch, capsys):
        now = [100.0]
        monkeypatch.setattr("nurf.engines._progress.time.perf_counter", lambda: now[0])
        progress = watch_blocks("samples added up", 1000, 200, 1)
        now[0] += 20
        progress(400)  # 200 in 20 seconds
        assert "400 of 1000 samples added up, 20 s, about 1 min left" in capsys.readouterr().err

    def test_a_fit_that_fails_leaves_the_model(self, few):
        X, y, gradients = make()
        fitted = model().fit(X, y, gradients=gradients)
        before = fitted.predict(FRESH)
        with pytest.raises(ValueError, match="row 999"):
            fitted.fit_blocks([(X, np.where(np.arange(1000) < 999, y, np.nan), gradients)])
        assert_array_equal(fitted.predict(FRESH), before)


def kept(path, way):
    """The state that a checkpoint holds."""
    return read(path, Checkpoint(path, "", way.parts).registry, Kept).state


class TestCheckpoints:
    @pytest.mark.parametrize("plain", [True, False], ids=["one setting", "default search"])
    def test_a_fit_goes_on_where_it_ended(self, few, plain, tmp_path, monkeypatch):
        def model():
            return RandomFeatureRegressor(30, random_state=0, **(PLAIN if plain else {}))

        monkeypatch.setattr(checkpoint_module, "INTERVAL", 0.0)
        blocks = blocks_of(*make(), borders=range(100, 1000, 100))
        expected = model().fit_blocks(blocks)
        passes = []

        def source():
            passes.append(0)
            for number, block in enumerate(blocks):
                if len(passes) == 2 and number == 7:
                    raise KeyboardInterrupt
                yield block

        path = tmp_path / "state"
        with pytest.raises(KeyboardInterrupt):
            model().fit_blocks(source, checkpoint=path)
        assert kept(path, SampledBlocks).n_blocks == 7
        found = model().fit_blocks(source, checkpoint=path)
        assert_array_equal(found.predict(FRESH), expected.predict(FRESH))
        assert not path.exists()

    @pytest.mark.parametrize("change", ["data", "blocks", "parameters", "seed"])
    def test_another_fit_does_not(self, few, tmp_path, change):
        X, y, gradients = make()
        path = tmp_path / "state"

        def fit(X, y, **options):
            rows = options.pop("block_rows", 100)
            return model(**options).fit(X, y, gradients=gradients, block_rows=rows, checkpoint=path)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("nurf.blockwise._sampled.fit_accumulated", None)
            with pytest.raises(TypeError):
                fit(X, y)
        assert path.exists()
        changes = {"blocks": {"block_rows": 50}, "parameters": {"width": 0.5}, "seed": {"random_state": 1}}
        with pytest.raises(ValueError, match="same data, blocks, parameters and seed"):
            fit(X, y + 1 if change == "data" else y, **changes.get(change, {}))
        fit(X, y)
        assert not path.exists()


class TestTrained:
    """Deep networks, trained on blocks in turn."""

    BORDERS = range(250, 2000, 250)

    def model(self, **options):
        options = {"steps": 300, "density": "uniform", "gradient_weight": 0.05, "random_state": 0, **options}
        return DeepFeatureRegressor((16, 16), **options)

    def test_arrays_on_disk_and_blocks_give_the_same(self, few, tmp_path):
        data = make(2000)
        expected = self.model().fit_blocks(blocks_of(*data, borders=self.BORDERS)).predict(FRESH)
        X, y, gradients = TestKindsOfArrays().stored("memmap", tmp_path, data)
        found = self.model().fit(X, y, gradients=gradients, block_rows=250)
        assert_array_equal(found.predict(FRESH), expected)
        points = np.memmap(tmp_path / "fresh", float, "w+", shape=FRESH.shape)
        points[:] = FRESH
        assert_array_equal(found.predict(points), expected)

    @needs_dask
    def test_chunks_of_dask_give_the_same(self, few):
        X, y, gradients = make(2000)
        expected = self.model().fit_blocks(blocks_of(X, y, gradients, borders=self.BORDERS)).predict(FRESH)
        arrays = [da.from_array(array, chunks=(250, *array.shape[1:])) for array in (X, y, gradients)]
        found = self.model().fit(arrays[0], arrays[1], gradients=arrays[2])
        assert_array_equal(found.predict(FRESH), expected)
        lazy = found.predict(da.from_array(FRESH))
        assert isinstance(lazy, da.Array)
        # Rows are predicted in one product or in several, which rounds differently.
        assert_allclose(lazy.compute(), expected, rtol=1e-10, atol=1e-12)

    def test_the_error_is_known(self, few):
        """The noise is 0.05, which the estimate includes; of 400 held rows it is uncertain by 1 / sqrt(800) = 0.035."""
        X, y, gradients = make(2000)
        fitted = self.model(steps=1000).fit_blocks(blocks_of(X, y, gradients, borders=self.BORDERS))
        fresh, measured, _ = make(2000, seed=3)
        error = np.sqrt(np.mean((fitted.predict(fresh) - measured) ** 2))
        assert error < 0.1
        assert 0.75 < fitted.estimated_error_ / error < 1.35
        assert fitted.n_samples_ == 2000
        low, high = fitted.predict_interval(fresh).T
        assert 0.8 < np.mean((low <= measured) & (measured <= high)) < 0.98

    def test_held_rows_do_not_train(self, few, monkeypatch):
        seen, advanced = [], BlockTraining.advanced

        def watched(training, state, jet):
            seen.append(jet.X)
            return advanced(training, state, jet)

        monkeypatch.setattr(BlockTraining, "advanced", watched)
        fitted = self.model().fit_blocks(blocks_of(*make(2000), borders=self.BORDERS))
        n_held = len(fitted.uncertainty_.errors)
        assert n_held > 200
        assert len(np.unique(np.concatenate(seen), axis=0)) == 2000 - n_held

    def test_a_fit_goes_on_where_it_ended(self, few, tmp_path, monkeypatch):
        monkeypatch.setattr(checkpoint_module, "INTERVAL", 0.0)
        blocks = blocks_of(*make(2000), borders=self.BORDERS)
        expected = self.model().fit_blocks(blocks).predict(FRESH)
        passes = []

        def source():
            passes.append(0)
            for number, block in enumerate(blocks):
                if len(passes) == 4 and number == 5:  # one pass finds the extent, the others train
                    raise KeyboardInterrupt
                yield block

        path = tmp_path / "state"
        with pytest.raises(KeyboardInterrupt):
            self.model().fit_blocks(source, checkpoint=path)
        assert kept(path, TrainedBlocks).number == 2 * len(blocks) + 5
        assert_array_equal(self.model().fit_blocks(source, checkpoint=path).predict(FRESH), expected)
        assert not path.exists()

    def test_blocks_that_change_are_refused(self, few):
        blocks, passes = blocks_of(*make(2000), borders=self.BORDERS), []

        def source():
            passes.append(0)
            return iter(blocks[: 8 if len(passes) < 2 else 3])

        with pytest.raises(ValueError, match="blocks must be the same each time, got 8"):
            self.model().fit_blocks(source)

    def test_what_cannot_be_done_is_said(self, few):
        blocks = blocks_of(*make(2000), borders=self.BORDERS)
        with pytest.raises(ValueError, match="`warm_start` must be False for data in blocks"):
            self.model(warm_start=True).fit_blocks(blocks)
        X, y, gradients = make(2000)
        whole = {"X": X, "y": y, "gradients": gradients, "hessians": np.zeros((2000, 3, 3))}
        with pytest.warns(UserWarning, match="`hessians` are not used in the training"):
            self.model(steps=20).fit_blocks([{name: part[:1000] for name, part in whole.items()}] * 2)

    def test_few_rows_are_fitted_in_memory(self):
        X, y, gradients = make(200)
        expected = self.model().fit(X, y, gradients=gradients).predict(FRESH)
        found = self.model().fit_blocks(blocks_of(X, y, gradients, borders=[100])).predict(FRESH)
        assert_allclose(found, expected, atol=1e-6)


def run(*arguments, **environment):
    """Run the script that starts, kills and measures processes; return its standard output."""
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=1500, check=False)


def checked(result):
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


class TestProcesses:
    def test_a_killed_process_goes_on(self, tmp_path):
        killed = run("interrupted", tmp_path, "kill")
        assert killed.returncode == -9, killed.stderr[-3000:]
        assert (tmp_path / "state").exists()
        assert "resumed after 6 blocks" in checked(run("interrupted", tmp_path, "resume"))
        assert_array_equal(np.load(tmp_path / "resumed.npy"), np.load(tmp_path / "whole.npy"))

    @pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
    def test_memory_is_that_of_a_block(self, tmp_path):
        """The data have 272 MB; 150 MB above the interpreter must do."""
        assert checked(run("capped", tmp_path, 2_000_000, 8, 10, 150)).startswith("2000000 rows")

    @needs_dask
    def test_a_cluster_whose_worker_dies(self, tmp_path):
        assert "killed once" in checked(run("cluster", tmp_path, 1000, 300))


@pytest.mark.scale
class TestScale:
    """Long ones, run by ``make test-scale``."""

    @pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
    def test_a_million_rows_within_a_gigabyte(self, tmp_path):
        assert checked(run("capped", tmp_path, 1_000_000, 8, 1000, 1000)).startswith("1000000 rows")

    @needs_dask
    def test_a_cluster_with_many_rows(self, tmp_path):
        assert "killed once" in checked(run("cluster", tmp_path, 200_000, 20_000))
