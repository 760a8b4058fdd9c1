"""Features in single precision: their normal equations, what can be fitted with them, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import dense
import nurf
from large_data_runs import take_blocks_beyond
from nurf import RandomFeatureRegressor
from nurf.activations import Erf, ReLUPower, Sigmoid, Softplus
from nurf.engines import ALPHAS, fit_outer
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers import Loss
from nurf.solvers.ridge import CholeskyRidge, LeastSquares, NormalEquations, PrimalRidge
from pairwise import pairwise

SINGLE = np.finfo(np.float32).eps
FIXED = {"density": "uniform", "width": 0.4, "gradient_weight": 0.01, "growth": None, "tail": "constant"}


def make_jet(n, d=3, outputs=(), weighted=False, seed=0):
    """Waves with exact gradients and Hessians."""
    rng = np.random.default_rng(seed)
    X, a = rng.uniform(-1, 1, (n, d)) / np.sqrt(d), rng.uniform(1, 2, (*outputs, d))
    phase = X @ a.T
    hessians = -np.sin(phase)[..., None, None] * a[..., :, None] * a[..., None, :]
    weights = rng.uniform(0.5, 2, (2, n)) if weighted else (None, None)
    return Jet(X, np.sin(phase), np.cos(phase)[..., None] * a, hessians, *weights)


def assert_near(actual, expected, n_rows):
    """Single precision rounds features a few times, relative to one, and sums of a block of rows.

    An error of 8 roundings in each of two factors, and one of the square root of the rows in their sum, is more than
    what these can do together, in units of the largest entry.
    """
    limit = (16 + np.sqrt(n_rows)) * SINGLE
    for name in ("gram", "moments", "energy", "total_weight"):
        wanted = np.asarray(getattr(expected, name))
        assert_allclose(getattr(actual, name), wanted, rtol=0, atol=limit * max(np.abs(wanted).max(), 1e-300))


@pairwise(weighted=[False, True], outputs=[(), (2,)], degree=[-1, 0, 1], order=[0, 1, 2])
def test_equations_are_those_of_double_precision(order, degree, outputs, weighted):
    features, jet = dense.make_features(30, 3, degree), make_jet(500, 3, outputs, weighted)
    loss = [Loss(), Loss(gradients=0.5), Loss(hessians=0.5)][order]
    Z, y = dense.stacked([dense.sample(features, jet, k, loss) for k in range(len(jet))])
    found = NormalEquations.from_some(features, jet, loss, np.float32)
    expected = NormalEquations(Z.T @ Z, Z.T @ y, np.sum(y**2, axis=0), found.total_weight, 30)
    assert_near(found, expected, len(jet))
    assert not np.array_equal(found.gram, NormalEquations.from_some(features, jet, loss).gram)
    smaller = LeastSquares(features[:11], jet, dtype=np.float32)
    smaller.equations(loss)
    grown = LeastSquares(features, jet, smaller, np.float32).equations(loss)
    assert_near(grown, expected, len(jet))
    assert_allclose([grown.noise], [found.noise], rtol=1e-4)


@pytest.mark.parametrize(
    "activation", [Sigmoid(0.05), Erf(0.4), Softplus(0.4), ReLUPower(2), Sigmoid(np.full(30, 0.3))]
)
@pytest.mark.parametrize("k", [0, 1])
def test_features_are_rounded_a_few_times(activation, k):
    """Arguments are rounded once: ``|t| |sigma'(t)|`` is below the largest value of a feature."""
    features, X = Features(dense.make_features(30, 3).hyperplanes, activation), make_jet(200).X
    exact = features.neurons(X, k)
    found = features.neurons(X, k, out=np.empty(exact.shape, np.float32))
    assert_allclose(found, exact, rtol=0, atol=8 * SINGLE * np.abs(exact).max())


@pairwise(width=[0.0125, 0.05, 0.4, 3.2], degree=[0, 1], gradients=[0.0, 0.01])
def test_the_smallest_alpha_is_above_the_rounding(gradients, degree, width):
    """What the equations without the tail are off by, in the spectral norm, is below ``alpha N``."""
    planes, jet = dense.make_features(200, 3, seed=3).hyperplanes, make_jet(2000)
    features, loss = Features(planes, Sigmoid(width), degree), Loss(gradients=gradients)
    exact, found = (LeastSquares(features, jet, dtype=dtype).ridge(loss) for dtype in (np.float64, np.float32))
    assert exact.smallest_alpha == 0
    matrices = [(ridge.vectors * ridge.eigenvalues) @ ridge.vectors.T for ridge in (exact, found)]
    off = np.linalg.norm(matrices[1] - matrices[0], ord=2)
    assert off < found.smallest_alpha * found.feature_energy * 200


def test_features_that_the_tail_explains_are_nothing_but_rounding():
    planes, jet = dense.make_features(50, 3).hyperplanes, make_jet(500)
    exact, found = (
        LeastSquares(Features(planes, Sigmoid(20.0), 1), jet, dtype=dtype).ridge() for dtype in (np.float64, np.float32)
    )
    assert exact.feature_energy > 0
    assert found.feature_energy == 0


def test_a_single_alpha_that_is_lost_in_rounding_takes_eigenvectors():
    planes, jet = dense.make_features(310, 3).hyperplanes, make_jet(1000)
    problem = LeastSquares(Features(planes, Sigmoid(3.2), 1), jet, dtype=np.float32)
    limit = problem.ridge().smallest_alpha
    forms = [type(problem.ridge(alphas=np.array([factor * limit]))) for factor in (2.0, 0.5)]
    assert forms == [CholeskyRidge, PrimalRidge]


def test_the_path_of_alphas_ends_above_the_rounding():
    features, jet = dense.make_features(60, 3), make_jet(400)
    exact, found = (fit_outer(features, jet, dtype=dtype) for dtype in (np.float64, np.float32))
    assert exact.alphas.min() <= ALPHAS[-1] < 1e-9 < found.alphas.min()
    assert not found.precise
    assert exact.error < found.error < 0.05


def test_the_estimated_error_is_that_of_fresh_samples():
    """Without noise, so that nothing but the fit makes errors; two root mean squares over thousands of samples."""
    jet = make_jet(5500)
    jet, fresh = jet[:1500], jet[1500:]
    fit = fit_outer(dense.make_features(200, 3), jet, dtype=np.float32)
    error = np.sqrt(np.mean((fit.network.value(fresh.X) - fresh.y) ** 2))
    assert error / 2 < fit.error < 2 * error


def model(dtype="float32", **options):
    return RandomFeatureRegressor(60, **{**FIXED, "alpha": 1e-3, "random_state": 0, "dtype": dtype, **options})


def data_of(jet):
    return {"X": jet.X, "y": jet.y, "gradients": jet.gradients}


# The Gram matrix is off by 1e-7 of its trace at most, alpha is 1e-3 of it: coefficients are off by a share 1e-4 of
# theirs where the penalty decides, and predictions by less.
NEAR = {"rtol": 0, "atol": 1e-4}


def test_fits_of_both_precisions_are_near_each_other():
    jet, X = make_jet(600), make_jet(100, seed=1).X
    found, exact = (model(dtype).fit(**data_of(jet)) for dtype in ("float32", "float64"))
    assert found.predict(X).dtype == found.network_.coefficients.dtype == np.float64
    assert_allclose(found.predict(X), exact.predict(X), **NEAR)
    assert not np.array_equal(found.predict(X), exact.predict(X))
    assert_allclose(found.estimated_error_, exact.estimated_error_, rtol=0.05)
    assert_allclose(found.predict_gradient(X), exact.predict_gradient(X), rtol=0, atol=1e-3)


@pytest.mark.parametrize("options", [{"loss": "huber"}, {"selection": "gcv"}, {"alpha": "auto"}], ids=repr)
def test_it_goes_with_other_options(options):
    jet = make_jet(400)
    found, exact = (model(dtype, **options).fit(**data_of(jet)).score(jet.X, jet.y) for dtype in ("float32", "float64"))
    assert abs(found - exact) < 0.02  # what a smaller alpha explains, in single precision nothing else is lost


def test_rows_in_blocks_are_fitted_in_the_same_precision(monkeypatch):
    jet, X = make_jet(900), make_jet(100, seed=1).X
    parts = [data_of(jet[rows]) for rows in (slice(0, 500), slice(500, 600), slice(600, 900))]
    later = model()
    for part in parts:
        later.partial_fit(**part)
    exact = model("float64")
    for part in parts:
        exact.partial_fit(**part)
    assert later._running.total.equations[0].noise > 0 == exact._running.total.equations[0].noise
    assert_allclose(later.predict(X), exact.predict(X), **NEAR)
    take_blocks_beyond(300, monkeypatch.setattr)
    whole, blocks, double = model().fit(**data_of(jet)), model().fit_blocks(parts), model("float64").fit_blocks(parts)
    assert_allclose(blocks.predict(X), double.predict(X), **NEAR)
    assert_allclose(blocks.predict(X), whole.predict(X), **NEAR)
    assert not np.array_equal(blocks.predict(X), double.predict(X))


def test_chunks_of_dask_arrays_are_fitted_in_the_same_precision(monkeypatch):
    da = pytest.importorskip("dask.array")
    take_blocks_beyond(300, monkeypatch.setattr)
    jet = make_jet(900)
    data = data_of(jet)
    lazy = {name: da.from_array(part, chunks=(450, *part.shape[1:])) for name, part in data.items()}
    found, exact = (model(dtype).fit(**lazy) for dtype in ("float32", "float64"))
    blocks = model().fit_blocks([data_of(jet[:450]), data_of(jet[450:])])
    assert_allclose(found.predict(jet.X), exact.predict(jet.X), **NEAR)
    # the same sums of the same blocks, up to the threads of linear algebra
    assert_allclose(found.predict(jet.X), blocks.predict(jet.X), rtol=0, atol=1e-5)
    assert not np.array_equal(found.predict(jet.X), exact.predict(jet.X))


def test_it_is_a_parameter_like_others(tmp_path):
    jet = make_jet(200)
    fitted = model().fit(**data_of(jet))
    assert clone(fitted).dtype == fitted.get_params()["dtype"] == "float32"
    fitted.save(tmp_path / "model.nurf")
    loaded = nurf.load(tmp_path / "model.nurf")
    assert loaded.dtype == "float32"
    assert_array_equal(loaded.predict(jet.X), fitted.predict(jet.X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float16"}, "`dtype` must be one of 'float64', 'float32', got 'float16'"),
        ({"dtype": np.float32}, "`dtype` must be one of 'float64', 'float32', got <class"),
        ({"alpha": 1e-12}, r"`alpha` must be 'auto' or a number >= 1.2e-07 with dtype='float32', got 1e-12: smaller"),
    ],
)
def test_what_is_refused(options, message):
    jet = make_jet(50)
    with pytest.raises(ValueError, match=message):
        model(**options).fit(**data_of(jet))
