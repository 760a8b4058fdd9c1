"""Directions of inputs and outputs, and fits in them, against functions whose rank is known and dense algebra."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import nurf
from nurf import DeepFeatureRegressor, Jet, KernelFeatureRegressor, RandomFeatureRegressor
from nurf._reduction import InputDirections, output_directions
from nurf._scaling import Scaling
from nurf.activations import ReLUPower, Sigmoid
from nurf.estimators import _reduced
from nurf.files._registry import RESULTS
from nurf.kernels import RADIAL_KERNELS, KernelAverage, KernelNetwork
from nurf.kernels._functionals import Functionals
from nurf.kernels._network import Centers
from nurf.networks import DeepNetwork, Features, Hyperplanes, ShallowNetwork, Tanh


class Ridges:
    """``sum_m c_m sin(A_m.V^T x)`` with ``k`` outputs of rank ``q``, of ``r`` directions ``V`` of ``d`` inputs."""

    def __init__(self, d, r, k=1, q=None, seed=0):
        rng = np.random.default_rng(seed)
        self.V = np.linalg.qr(rng.standard_normal((d, r)))[0]
        terms = max(6, 2 * r)
        self.A = rng.standard_normal((r, terms)) * np.sqrt(3 / r)
        self.c = rng.standard_normal((terms, q or k)) @ (rng.standard_normal((q, k)) if q else np.eye(k))

    def sample(self, n, rng):
        return rng.uniform(-1, 1, (n, len(self.V)))

    def value(self, X):
        return np.squeeze(np.sin(X @ self.V @ self.A) @ self.c, axis=1 if self.c.shape[1] == 1 else ())

    def gradient(self, X):
        slopes = np.cos(X @ self.V @ self.A)[:, None, :] * self.c.T
        return np.reshape(slopes @ (self.V @ self.A).T, (*self.value(X).shape, -1))

    def jet(self, n, rng):
        X = self.sample(n, rng)
        return Jet(X, self.value(X), self.gradient(X))


def projector(basis):
    return basis @ basis.T


def lost_by_hand(jet, scaling, basis):
    """The variance that a projection loses to first order, over that of the values, sample by sample."""
    P = projector(basis)
    points = (jet.X - jet.X.mean(axis=0)) / scaling.x_scale
    rows = (jet.gradients * scaling.x_scale / scaling.y_scale[..., None]).reshape(-1, jet.n_features)

    def variance(Q):
        return np.sum((rows @ Q @ points.T) ** 2)

    return variance(np.eye(len(P)) - P) / variance(np.eye(len(P)))


@pytest.mark.parametrize(("n", "k"), [(60, 1), (12, 1), (20, 3)])  # more gradients than inputs, or fewer
def test_directions_of_a_function_of_known_rank(n, k):
    function = Ridges(30, 3, k)
    jet = function.jet(n, np.random.default_rng(1))
    scaling = Scaling.fit(jet, "ball")  # the same unit for all inputs keeps the directions
    found = InputDirections.of(jet, scaling)
    assert found.rank() == 3
    # the gap is the whole spectrum: the projector is right up to the rounding of the gradients
    assert_allclose(projector(found.directions[:, :3]), projector(function.V), atol=1e-7)
    assert found.lost[3] < 1e-12
    assert found.lost_elsewhere[3] < 1e-12
    assert found.lost[2] > 1e-4


@pytest.mark.parametrize("n", [50, 8])
def test_what_is_lost_is_what_the_dense_formula_says(n):
    jet = Ridges(10, 10, 2).jet(n, np.random.default_rng(2))
    scaling = Scaling.fit(jet)
    found = InputDirections.of(jet, scaling)
    m = found.directions.shape[1]
    assert_allclose(projector(found.directions.T), np.eye(m), atol=1e-12)
    for rank in (0, 2, 5, m - 1):
        assert_allclose(found.lost[rank], lost_by_hand(jet, scaling, found.directions[:, :rank]), atol=1e-12)
    assert found.lost[0] == pytest.approx(1.0)
    assert np.all(found.lost_elsewhere >= found.lost)
    assert found.rank() == 10


def test_halves_of_the_samples_judge_each_other():
    """With fewer gradients than inputs all of them are in the span, but those of other samples are not."""
    jet = Ridges(40, 40).jet(10, np.random.default_rng(3))
    found = InputDirections.of(jet, Scaling.fit(jet))
    assert found.lost[10] < 1e-12
    assert found.lost_elsewhere[10] > 0.2
    assert found.rank() == 40


def test_noise_of_the_gradients_does_not_count_as_directions():
    rng = np.random.default_rng(4)
    jet = Ridges(60, 3).jet(200, rng)
    noise = 0.02 * np.sqrt(np.mean(jet.gradients**2)) * rng.standard_normal(jet.gradients.shape)
    noisy = Jet(jet.X, jet.y, jet.gradients + noise)
    # 0.02^2 of the energy is noise, evenly along 60 directions: 57 / 60 of it is lost by three, half by half of them
    assert 3 <= InputDirections.of(noisy, Scaling.fit(noisy)).rank() <= 8


def shallow(rng):
    normals = rng.standard_normal((5, 3))
    planes = Hyperplanes(normals / np.linalg.norm(normals, axis=1)[:, None], rng.uniform(-1, 1, 5))
    return ShallowNetwork(Features(planes, Sigmoid(0.3), 1), rng.standard_normal((9, 2)))


def deep(rng):
    shapes = [(3, 6), (6, 5), (5, 2)]
    weights = [rng.standard_normal(shape) / np.sqrt(shape[0]) for shape in shapes]
    return DeepNetwork(weights, [0.3 * rng.standard_normal(b) for _, b in shapes], Tanh(), (2,))


def kernels(kernel, degree):
    """A mean of two networks with values, first and second derivatives at points, along any directions."""

    def network(rng):
        points = rng.uniform(-1, 1, (5, 3))
        centers = tuple(
            Centers(
                Functionals(points, np.array([0, 2, 4, 2]), tuple(rng.standard_normal((order, 4, 3)))),
                rng.standard_normal((4, 2)),
            )
            for order in range(3)
        )
        return KernelNetwork(
            kernel, rng.standard_normal((2, 3)), centers, rng.standard_normal((1 + 3 * degree, 2)), (2,)
        )

    return lambda rng: KernelAverage((network(rng), network(rng)), np.array([0.7, 0.3]))


NETWORKS = {"shallow": shallow, "deep": deep} | {
    f"{name} {degree}": kernels(kernel(), degree) for name, kernel in RADIAL_KERNELS.items() for degree in (0, 1)
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("kind", ["box", "ball"])
def test_a_scaling_onto_directions_obeys_the_chain_rule(kind, name):
    """A network of the projected inputs, and its gradients and Hessians in both units, against finite differences."""
    rng = np.random.default_rng(5)
    jet = Ridges(7, 4, 2).jet(40, rng)
    plain = Scaling.fit(jet, kind)
    scaling = InputDirections.of(jet, plain).scaling(plain, 3, jet.X)
    assert np.max(np.linalg.norm(scaling.inputs(jet.X), axis=1)) == pytest.approx(1.0)
    network = NETWORKS[name](rng)
    full, function = network.in_units_of(scaling), network.function(scaling)

    def value(X):
        return scaling.values_back(network.value(scaling.inputs(X)))

    X, step = jet.X[:6], 1e-4
    assert_allclose(full.value(X), value(X), rtol=1e-9, atol=1e-9)
    assert_allclose(np.array([function(x) for x in X]), value(X), rtol=1e-9, atol=1e-9)
    differences = [(value(X + step * e) - value(X - step * e)) / (2 * step) for e in np.eye(7)]
    gradients = scaling.gradients_back(network.gradient(scaling.inputs(X)))
    assert_allclose(gradients, np.moveaxis(differences, 0, 2), rtol=1e-4, atol=1e-5)
    assert_allclose(full.gradient(X), gradients, rtol=1e-9, atol=1e-9)
    assert_allclose(np.array([function.gradient(x) for x in X]), gradients, rtol=1e-9, atol=1e-9)
    hessians = scaling.hessians_back(network.hessian(scaling.inputs(X)))
    assert_allclose(full.hessian(X), hessians, rtol=1e-8, atol=1e-8)
    # and the same jet in projected units, from that in the units of the data
    projected = scaling(Jet(X, value(X), gradients, hessians))
    assert_allclose(projected.gradients, network.gradient(projected.X), rtol=1e-8, atol=1e-8)
    assert_allclose(projected.hessians, network.hessian(projected.X), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    "engine",
    [KernelFeatureRegressor(), DeepFeatureRegressor((24, 24), steps=400, random_state=0)],
    ids=["wide", "deep"],
)
def test_other_networks_are_fitted_in_few_directions(engine, tmp_path):
    """What is said of the inputs is said of all 20, and the fitted network is that of the predictions."""
    rng = np.random.default_rng(4)
    function = Ridges(20, 2)
    jet, X, step = function.jet(60, rng), function.sample(200, rng), 1e-4
    # Noise, along the two directions, makes the coefficients of kernels small, and their rounding errors.
    slopes = jet.gradients + 0.1 * rng.standard_normal((60, 2)) @ function.V.T
    jet = replace(jet, y=jet.y + 0.02 * rng.standard_normal(60), gradients=slopes)
    model = nurf.Surrogate(None, engines=[engine], random_state=0).fit(jet.X, jet.y, gradients=jet.gradients)
    assert model.scaling_.x_basis.shape == (20, 2)
    assert_allclose(model.network_.value(X), model.predict(X), rtol=1e-6, atol=1e-6)
    assert_allclose(model.function()(X), model.predict(X), rtol=1e-6, atol=1e-6)
    differences = [(model.predict(X[:5] + step * e) - model.predict(X[:5] - step * e)) / (2 * step) for e in np.eye(20)]
    assert_allclose(model.predict_gradient(X[:5]), np.transpose(differences), rtol=1e-4, atol=1e-5)
    assert_allclose(model.network_.gradient(X), model.predict_gradient(X), rtol=1e-6, atol=1e-6)
    gradients, deviations = model.predict_gradient(X, return_std=True)
    assert gradients.shape == deviations.shape == (200, 20)
    error = np.sqrt(np.mean((model.predict(X) - function.value(X)) ** 2))
    assert error < 0.2 * np.std(jet.y)
    model.save(tmp_path / "model.nurf")
    assert_allclose(nurf.load(tmp_path / "model.nurf").predict(X), model.predict(X), rtol=0, atol=0)
    if hasattr(model.model_, "relevance_"):
        sizes = np.sqrt(np.mean(model.predict_gradient(jet.X) ** 2, axis=0)) * jet.X.std(axis=0) / jet.y.std()
        assert_allclose(model.model_.relevance_, sizes, rtol=1e-6)


def test_derivatives_along_directions_are_projected_too():
    """Of a function of three directions, four random products ``J v`` at each sample are the whole gradient."""
    rng = np.random.default_rng(6)
    function = Ridges(20, 3, 2)
    jet = function.jet(30, rng)
    plain = Scaling.fit(jet)
    scaling = InputDirections.of(jet, plain).scaling(plain, 3, jet.X)
    V = rng.standard_normal((30, 4, 20))
    along = Jet.along(jet.X, jet.y, V, np.einsum("nkd,nmd->nkm", jet.gradients, V))
    projected = scaling(along)
    assert projected.frames is None
    assert_allclose(projected.gradients, scaling(jet).gradients, rtol=1e-6, atol=1e-6)
    one = scaling(Jet.along(jet.X, jet.y, V[:, 0], np.einsum("nkd,nd->nk", jet.gradients, V[:, 0])))
    assert one.frames is not None
    slopes = np.einsum("nkr,nr->nk", scaling(jet).gradients, one.frames[:, 0])
    assert_allclose(np.einsum("nkr,nr->nk", one.gradients, one.frames[:, 0]), slopes, rtol=1e-6, atol=1e-6)


def test_deviations_of_gradients_count_what_is_lost():
    jet = Ridges(6, 4).jet(50, np.random.default_rng(7))
    plain = Scaling.fit(jet)
    scaling = InputDirections.of(jet, plain).scaling(plain, 2, jet.X)
    lost = jet.gradients - scaling.gradients_back(scaling(jet).gradients)
    found = scaling.gradient_deviations_back(np.zeros((1, 2)))
    assert_allclose(found[0], np.sqrt(np.mean(lost**2, axis=0)), rtol=1e-8)
    assert np.all(scaling.gradient_deviations_back(np.ones((1, 2))) > found)


def fitted(jet, **options):
    model = RandomFeatureRegressor(options.pop("n_neurons", 60), random_state=0, **options)
    return model.fit(jet.X, jet.y, gradients=jet.gradients)


def test_many_inputs_are_reduced_to_the_directions_that_matter(tmp_path):
    rng = np.random.default_rng(8)
    function = Ridges(80, 2)
    jet, fresh = function.jet(200, rng), function.sample(500, rng)
    model = fitted(jet, n_neurons=100)
    assert model.scaling_.x_basis.shape == (80, 2)
    assert "2 directions of 80" in str(model.report())
    error = np.sqrt(np.mean((model.predict(fresh) - function.value(fresh)) ** 2))
    # a function of two inputs and 100 neurons: without the directions the error is that of the mean, one
    assert error < 0.02 * np.std(jet.y)
    low, high = model.predict_interval(fresh, 0.9).T
    assert np.mean((low <= function.value(fresh)) & (function.value(fresh) <= high)) > 0.8
    gradients, deviations = model.predict_gradient(fresh[:5], return_std=True)
    assert gradients.shape == deviations.shape == (5, 80)
    step = 1e-4 * function.V[:, 0]
    slopes = (model.predict(fresh[:5] + step) - model.predict(fresh[:5] - step)) / 2e-4
    assert_allclose(gradients @ function.V[:, 0], slopes, rtol=1e-3, atol=1e-3 * np.abs(gradients).max())
    assert_allclose(model.network_.value(fresh), model.predict(fresh), rtol=1e-6, atol=1e-6)
    model.save(tmp_path / "model.nurf")
    loaded = nurf.load(tmp_path / "model.nurf")
    assert np.array_equal(loaded.predict(fresh), model.predict(fresh))
    assert np.array_equal(loaded.predict_interval(fresh[:3]), model.predict_interval(fresh[:3]))


def test_reduced_models_are_exported_polished_and_fitted_further():
    rng = np.random.default_rng(19)
    function = Ridges(6, 2)
    jet, fresh = function.jet(200, rng), function.sample(20, rng)
    options = {"width": 0.8, "density": "local", "growth": None, "tail": "affine", "derivatives": "given"}
    model = fitted(jet, n_neurons=30, rank=2, **options)
    names = {}
    exec(nurf.export.to_python(model), names)
    assert_allclose([names["value"](x) for x in fresh.tolist()], model.predict(fresh), rtol=1e-6, atol=1e-6)
    gradients = [names["gradient"](x) for x in fresh.tolist()]
    assert_allclose(gradients, model.predict_gradient(fresh), rtol=1e-6, atol=1e-6)
    polished = nurf.polish(model, jet, 2)
    assert polished.network_.dimension == 6
    assert_allclose(polished.network_.value(fresh), polished.predict(fresh), rtol=1e-6, atol=1e-6)
    further = RandomFeatureRegressor(30, rank=2, random_state=0, **options)
    for part in (slice(0, 150), slice(150, 200)):
        further.partial_fit(jet.X[part], jet.y[part], gradients=jet.gradients[part])
    assert further.n_samples_ == 200
    assert further.score(fresh, function.value(fresh)) > 0.5


def test_as_many_directions_as_inputs_change_nothing():
    jet = Ridges(4, 4).jet(160, np.random.default_rng(9))
    fresh = Ridges(4, 4).sample(50, np.random.default_rng(10))
    models = [fitted(jet, rank=rank, width=0.8) for rank in (4, None, "auto")]
    assert all(np.array_equal(model.predict(fresh), models[0].predict(fresh)) for model in models)
    assert all(model.scaling_.x_basis is None for model in models)


def test_a_rotation_of_all_inputs_changes_no_fit():
    """All but one of the directions, if one input does nothing: the same features have the same outer weights."""
    rng = np.random.default_rng(11)
    function = Ridges(4, 3)
    jet = function.jet(80, rng)
    plain = Scaling.fit(jet, "ball")
    scaling = InputDirections.of(jet, plain).scaling(plain, 3, jet.X)
    normals = rng.standard_normal((12, 3))
    planes = Hyperplanes(normals / np.linalg.norm(normals, axis=1)[:, None], rng.uniform(-1, 1, 12))
    features = Features(planes, Sigmoid(0.5), 0)
    reduced = nurf.engines.fit_outer(features, scaling(jet), alphas=np.array([1e-3]))
    whole = reduced.network.in_units_of(scaling).features  # the same neurons as functions of all inputs
    unreduced = nurf.engines.fit_outer(whole, jet, alphas=np.array([1e-3]))
    fresh = function.sample(30, rng)
    expected = scaling.values_back(reduced.network.value(scaling.inputs(fresh)))
    assert_allclose(unreduced.network.value(fresh), expected, rtol=1e-6, atol=1e-6 * np.std(jet.y))


def test_energy_that_is_thrown_away_counts_in_the_error():
    """Too few directions: the estimated error is that at new points, within what 200 samples can tell."""
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        function = Ridges(6, 6, seed=seed)
        jet, fresh = function.jet(200, rng), function.sample(2000, rng)
        model = fitted(jet, rank=2, width=0.8, density="local", growth=None, tail="constant", derivatives="given")
        assert model.scaling_.lost > 0.01
        error = np.sqrt(np.mean((model.predict(fresh) - function.value(fresh)) ** 2))
        ratios.append(model.estimated_error_ / error)
        inside = model.predict_interval(fresh, 0.9)
        held = np.mean((inside[:, 0] <= function.value(fresh)) & (function.value(fresh) <= inside[:, 1]))
        assert held > 0.8
    # an estimate from 200 errors is uncertain by 1 / sqrt(400) = 5%; what is unseen is added, never taken away
    assert 0.8 < np.mean(ratios) < 1.6


def test_a_share_that_is_not_seen_is_added_to_errors():
    fit = fitted(Ridges(3, 3).jet(160, np.random.default_rng(12))).fit_
    more = fit.with_unseen(0.01)
    assert_allclose(more.output_errors**2, fit.output_errors**2 + 0.01)
    before = 1.0 if fit.optimism is None else fit.optimism
    assert_allclose(more.optimism, before * more.output_errors / fit.output_errors)
    assert fit.with_unseen(0.0) is fit


def test_gradients_that_contradict_the_values_choose_no_directions(monkeypatch):
    monkeypatch.setattr(_reduced, "FEW_INPUTS", 4)
    jet = Ridges(5, 2).jet(160, np.random.default_rng(13))
    with pytest.warns(UserWarning, match="the gradients have the wrong sign .along 2 directions of the inputs"):
        model = fitted(Jet(jet.X, jet.y, -jet.gradients), width=1.0)
    assert model.scaling_.x_basis is None
    assert fitted(jet, width=1.0).scaling_.x_basis is not None


def test_blocks_are_reduced_by_their_sample():
    """More than 20,000 rows are read in blocks, and directions come from the sample that the race sees."""
    function = Ridges(5, 2)
    jet = function.jet(20_100, np.random.default_rng(14))
    options = {"width": 0.8, "density": "local", "growth": None, "tail": "constant", "derivatives": "given"}
    model = fitted(jet, n_neurons=40, rank=2, gradient_weight=0.01, **options)
    assert model.scaling_.x_basis.shape == (5, 2)
    assert model.score(jet.X[:1000], jet.y[:1000]) > 0.9


@pytest.mark.parametrize(
    ("options", "data", "words"),
    [
        ({"rank": 0}, {}, "from 1 to 3, got 0"),
        ({"rank": 4}, {}, "from 1 to 3, got 4"),
        ({"rank": "two"}, {}, "got 'two'"),
        ({"rank": True}, {}, "got True"),
        ({"rank": 2}, {"gradients": None}, "needs gradients, got none"),
        ({"rank": 2}, {"gradients": "partly"}, "known wholly or not at all"),
        ({"rank": 2, "activation": ReLUPower(2)}, {}, "a tail of degree 0 or 1, got an activation of order 3"),
    ],
)
def test_ranks_that_cannot_be_used_are_refused(options, data, words):
    jet = Ridges(3, 3).jet(20, np.random.default_rng(15))
    gradients = data.get("gradients", jet.gradients)
    if isinstance(gradients, str):
        gradients = np.where(np.arange(60).reshape(20, 3) % 4 == 0, np.nan, jet.gradients)
    with pytest.raises(ValueError, match=words):
        RandomFeatureRegressor(10, **options).fit(jet.X, jet.y, gradients=gradients)


@pytest.mark.parametrize("fields", [{"x_basis": np.ones((2, 1))}, {"x_basis": np.ones(3)}, {"x_rest": np.ones(2)}])
def test_directions_of_files_belong_to_the_inputs(fields):
    scaling = {"x_center": np.zeros(3), "x_scale": np.ones(3), "y_center": np.zeros(()), "y_scale": np.ones(())}
    with pytest.raises(ValueError, match="the first of length"):
        RESULTS.check(Scaling, scaling | fields, set())
    RESULTS.check(Scaling, scaling | {"x_basis": np.ones((3, 1)), "x_rest": np.ones(3)}, set())


def test_combinations_of_outputs_hold_their_energy():
    jet = Ridges(4, 4, k=12, q=3).jet(40, np.random.default_rng(16))
    basis = output_directions(jet)
    assert basis.shape == (12, 3)
    assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
    small = jet.combined(basis)
    assert_allclose(small.y @ basis.T, jet.y, rtol=1e-6, atol=1e-6)
    assert_allclose(np.einsum("nqd,kq->nkd", small.gradients, basis), jet.gradients, rtol=1e-6, atol=1e-6)
    assert output_directions(jet.only(())).shape == (12, 3)
    assert output_directions(Ridges(4, 4, k=5).jet(40, np.random.default_rng(17))) is None
    assert output_directions(Jet(jet.X, np.zeros((40, 2)))) is None


def test_a_race_with_combined_outputs_fits_all_outputs():
    """The errors of all outputs are those at new points, and those of the race with all outputs are about the same."""
    rng = np.random.default_rng(18)
    function = Ridges(3, 3, k=12, q=2)
    jet, fresh = function.jet(200, rng), function.sample(1000, rng)
    model = RandomFeatureRegressor(150, random_state=0).fit(jet.X, jet.y, gradients=jet.gradients)
    assert model.estimated_error_.shape == (12,)
    errors = np.sqrt(np.mean((model.predict(fresh) - function.value(fresh)) ** 2, axis=0))
    assert np.all(errors < 0.1 * np.std(jet.y, axis=0))
    assert 0.3 < np.median(model.estimated_error_ / errors) < 4
    deviations = model.predict(fresh[:4], return_std=True)[1]
    assert deviations.shape == (4, 12)
