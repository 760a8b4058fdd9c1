"""Conjugate gradients against dense ridge regression, and what they say of themselves."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import dense
from nurf import Jet, RandomFeatureRegressor, load
from nurf.engines import _outer, fit_outer
from nurf.solvers import GeneralizedCrossValidation, LeaveOneOut, Loss
from nurf.solvers.ridge import Convergence, IterativeRidge, LeastSquares, NormalEquations, PrimalRidge, _least_squares
from nurf.solvers.ridge import _sums as sums
from nurf.solvers.ridge._iterative import Iterations, conjugate_gradients
from pairwise import pairwise

ALPHAS = np.array([1e-2, 1e-4, 1e-6])
EXACT = Iterations(tolerance=1e-12)


def make_jet(n, d=3, k=1, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    X, a = rng.uniform(-1, 1, (n, d)), rng.standard_normal((d, k))
    y, gradients = np.sin(2 * X @ a) + 1, 2 * np.cos(2 * X @ a)[..., None] * a.T
    weights = (rng.uniform(0.5, 2, n), rng.uniform(0.5, 2, n)) if weighted else (None, None)
    return Jet(X, y if k > 1 else y[:, 0], gradients if k > 1 else gradients[:, 0], None, *weights)


@pytest.fixture
def forced(monkeypatch):
    """Conjugate gradients for all sizes above ten."""
    monkeypatch.setattr(_least_squares, "MANY", 10)
    monkeypatch.setattr(_outer, "FEW_OPERATIONS", 0)


def test_conjugate_gradients_solve_shifted_systems():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((40, 40)) * 10.0 ** -np.arange(0, 4, 0.1)
    A, right, shifts = root @ root.T, rng.standard_normal((40, 3)), np.array([1.0, 1e-2, 1e-3])
    values, vectors = np.linalg.eigh(A)
    leading = vectors[:, :-9:-1], values[:-9:-1]
    found, counts, left = conjugate_gradients(lambda V: A @ V, right, shifts, *leading, EXACT)
    for j, shift in enumerate(shifts):
        # a residual of 1e-12, times the condition number 1e+3 / 1e-3
        assert_allclose(found[:, j], np.linalg.solve(A + shift * np.eye(40), right[:, j]), rtol=1e-5, atol=1e-6)
    assert np.all(left <= 1e-12)
    # without the eight largest eigenvalues of a spectrum that falls by a factor 1.6 each, fewer iterations suffice
    nothing = conjugate_gradients(lambda V: A @ V, right, shifts, vectors[:, :1], values[:1] * 0, EXACT)[1]
    assert np.all(counts < nothing)


def test_conjugate_gradients_say_that_they_did_not_arrive():
    A, right = np.diag(10.0 ** -np.arange(20)), np.ones((20, 1))
    few = Iterations(limit=2)
    found = conjugate_gradients(lambda V: A @ V, right, np.array([1e-12]), np.eye(20, 1), np.zeros(1), few)
    assert found[1] == 2
    assert found[2] > 1e-8
    zero, counts, left = conjugate_gradients(lambda V: A @ V, 0 * right, np.ones(1), np.eye(20, 1), np.zeros(1), few)
    assert not zero.any()
    assert not counts.any()
    assert not left.any()
    words = str(Convergence(2, 1e-3, 1e-8, 5))
    assert (
        words == "conjugate gradients, preconditioner of rank 5: 2 iterations to a residual of 1.0e-03, 1e-08 asked for"
    )


@pairwise(
    pytest.mark.parametrize(("degree", "k"), [(-1, 1), (0, 2), (1, 1)]),
    loss=[Loss(), Loss(gradients=0.1)],
    gram=[True, False],
    weighted=[False, True],
)
def test_solutions_are_those_of_the_dense_form(degree, k, loss, weighted, gram):
    jet, features = make_jet(120, k=k, weighted=weighted), dense.make_features(40, 3, degree)
    equations = NormalEquations.from_data(features, jet, loss) if gram else None
    ridge, expected = IterativeRidge(features, jet, loss, equations, EXACT), PrimalRidge(features, jet, loss)
    assert_allclose(ridge.feature_energy, expected.feature_energy, rtol=1e-9)
    assert ridge.tail_rank == expected.tail_rank
    design = features.design(jet.X)
    # the condition number is at most 1 / alpha in these units, and the residual 1e-12
    assert_allclose(design @ ridge.solve(ALPHAS), design @ expected.solve(ALPHAS), rtol=1e-5, atol=1e-6)
    assert [one.reached for one in ridge.convergence] == [True] * 3
    squares = ridge.mean_square_residual(ALPHAS)
    assert_allclose(squares, expected.mean_square_residual(ALPHAS), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("loss", [Loss(), Loss(gradients=0.1)], ids=["values", "gradients"])
@pytest.mark.parametrize("degree", [-1, 0, 1])
def test_samples_leave_together_as_in_a_refit(degree, loss):
    jet, features = make_jet(80, weighted=True), dense.make_features(30, 3, degree)
    index, shares = np.array([3, 17, 40, 41]), np.array([1.0, 1.0, 0.25, 1.0])
    left = IterativeRidge(features, jet, loss, numbers=EXACT).left_out(ALPHAS, index, shares)
    kept = np.ones(len(jet))
    kept[index] -= shares
    samples = [dense.sample(features, jet, j, loss) for j in range(len(jet))]
    rest = [(np.sqrt(w) * rows, np.sqrt(w) * targets) for w, (rows, targets) in zip(kept, samples, strict=True)]
    for number, alpha in enumerate(ALPHAS):
        coefficients = dense.ridge(rest, 30, alpha, dense.total_weight(jet))
        for position, j in enumerate(index):
            rows, targets = samples[j]
            assert_allclose(left[position, :, number], targets - rows @ coefficients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [1, 7, 30])
def test_a_large_gram_matrix_is_added_up_in_panels(n, monkeypatch):
    monkeypatch.setattr(sums, "PANEL", n)
    monkeypatch.setattr(sums, "PANELS", 0)
    jet, features = make_jet(50, weighted=True), dense.make_features(20, 3, 1)
    design = features.design(jet.X) * np.sqrt(jet.sample_weight)[:, None]
    assert_allclose(NormalEquations.from_data(features, jet).gram, design.T @ design, rtol=1e-12, atol=1e-12)


def test_a_full_approximation_has_the_covariance_of_the_dense_form():
    jet, features = make_jet(90), dense.make_features(20, 3, 0)
    ridge = IterativeRidge(features, jet, numbers=Iterations(rank=1.0))
    expected = PrimalRidge(features, jet)
    for alpha in (1e-2, 1e-4):
        factors = [form.covariance_factor(alpha) for form in (ridge, expected)]
        found, exact = (factor @ factor.T for factor in factors)
        assert_allclose(found, exact, rtol=1e-6, atol=1e-8 * np.abs(exact).max())
    assert_allclose(ridge.degrees_of_freedom(ALPHAS), expected.degrees_of_freedom(ALPHAS), rtol=1e-6)


def test_the_choice_is_made_by_size(forced):
    jet = make_jet(30)
    chosen = [type(LeastSquares(dense.make_features(N, 3, 0), jet).ridge()).__name__ for N in (10, 11, 40)]
    assert chosen == ["PrimalRidge", "IterativeRidge", "IterativeRidge"]
    few = LeastSquares(dense.make_features(40, 3, 0), jet[:10]).ridge()
    assert type(few).__name__ == "DualRidge"


@pytest.mark.parametrize(("very_many", "smallest"), [(50, 1e-9), (70, 8e-14)])
@pytest.mark.parametrize("rule", [LeaveOneOut(), GeneralizedCrossValidation()])
def test_fits_choose_alpha_and_say_how_they_came_there(forced, rule, very_many, smallest, monkeypatch):
    monkeypatch.setattr(_least_squares, "VERY_MANY", very_many)
    jet, features = make_jet(200), dense.make_features(60, 3, 0)
    fit = fit_outer(features, jet, rule=rule)
    assert fit.convergence.iterations > 0
    assert fit.alphas.min() >= smallest
    monkeypatch.setattr(_least_squares, "MANY", 1000)
    exact = fit_outer(features, jet, rule=rule, alphas=fit.alphas)
    assert exact.convergence is None
    assert 0.2 < fit.error / exact.error < 5


def test_reports_and_files_have_the_iterations(forced, tmp_path):
    jet = make_jet(200)
    model = RandomFeatureRegressor(60, width=1.0, density="uniform", tail="constant", alpha=1e-9, random_state=0)
    model.fit(jet.X, jet.y)
    assert model.fit_.stage.convergence is not None
    assert "conjugate gradients" in str(model.report())
    model.save(tmp_path / "model.nurf")
    loaded = load(tmp_path / "model.nurf")
    assert loaded.fit_.convergence == model.fit_.convergence
    low, high = model.predict_interval(jet.X, 0.9).T
    assert np.mean((low <= jet.y) & (jet.y <= high)) > 0.8


def test_iterations_that_did_not_arrive_are_a_warning(forced, monkeypatch):
    monkeypatch.setattr(Iterations, "__init__", lambda self: self.__dict__.update(vars(FEW)))
    jet = make_jet(160)
    with pytest.warns(ConvergenceWarning, match="the outer weights are not exact: conjugate gradients"):
        RandomFeatureRegressor(40, width=0.5, density="uniform", alpha=1e-9, random_state=0).fit(jet.X, jet.y)


FEW = Iterations(limit=1, rank=0.01)

MEMORY = """
import resource
import numpy as np
import dense
from nurf import Jet
from nurf.solvers.ridge import LeastSquares, _least_squares
_least_squares.MANY = 1000
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (2500, 3))
jet, features = Jet(X, np.sin(X.sum(axis=1))), dense.make_features(2400, 3, 0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ridge = LeastSquares(features, jet).ridge()
ridge.solve(np.array([1e-3]))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units elsewhere")
def test_memory_is_that_of_a_gram_matrix_and_a_block(own_memory):
    """Of 2400 neurons: a Gram matrix of 46 MB, blocks of 32 MB, and five times 2400 x 600 numbers in between."""
    code = f"import sys; sys.path[:0] = {[path for path in sys.path if path]!r}\n{MEMORY}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    gram, block, sketch = 8 * 2400**2, 8 * 8 * 2**19, 8 * 2400 * 600
    assert int(run.stdout) < gram + 2 * block + 5 * sketch  # and less than three Gram matrices
