"""Components of OpenMDAO: its own check of partial derivatives, and an optimisation."""

import itertools
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import FunctionTransformer

from nurf import GradientPipeline, KernelFeatureRegressor, RandomFeatureRegressor, export

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    om = pytest.importorskip("openmdao.api")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # OpenMDAO writes files
    monkeypatch.setenv("OPENMDAO_REPORTS", "0")


def data(n=40, outputs=False):
    X = np.random.default_rng(0).uniform(0.5, 2, (n, 3))
    y = np.sum((X - [1.0, 1.2, 0.8]) ** 2, axis=1)
    G = 2 * (X - [1.0, 1.2, 0.8])
    if outputs:
        return X, np.stack([y, X[:, 0] * X[:, 1]], axis=1)
    return X, y, G


def problem_of(component, **values):
    problem = om.Problem(reports=False)
    problem.model.add_subsystem("surrogate", component, promotes=["*"])
    problem.setup()
    for name, value in values.items():
        problem.set_val(name, value)
    problem.run_model()
    return problem


def wrong_partials(problem):
    """Return the largest error that OpenMDAO finds, relative to the size of the derivatives."""
    checked = problem.check_partials(out_stream=None, method="fd", form="central", step=1e-3)
    pairs = [(part["J_fwd"], part["J_fd"]) for part in checked["surrogate"].values()]
    size = max(np.abs(fd).max() for _, fd in pairs)
    return max(np.abs(exact - fd).max() for exact, fd in pairs) / size


MODELS = {
    "sampled": lambda X, y: RandomFeatureRegressor(20, width=0.5, random_state=0).fit(X, y),
    "wide": lambda X, y: KernelFeatureRegressor("matern", metric="scales").fit(X, y),
    "pipeline": lambda X, y: GradientPipeline(
        [("log", FunctionTransformer(np.log)), ("model", RandomFeatureRegressor(20, width=0.5, random_state=0))],
    ).fit(X, y),
}


NAMES = ["length", "width", "height"]


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "n_points"),
    [
        *itertools.product(["sampled"], [None, NAMES], ["y", ["first", "second"]], [1, 4]),
        ("wide", None, "y", 1),
        ("pipeline", NAMES, "y", 4),
    ],
)
def test_partial_derivatives(name, inputs, outputs, n_points):
    X, y = data(15, outputs=True)
    model = MODELS[name](X, y)
    at = X[:n_points] if n_points > 1 else X[0]
    values = {"x": at} if inputs is None else {each: at[..., place] for place, each in enumerate(inputs)}
    problem = problem_of(export.to_openmdao(model, inputs, outputs, n_points), **values)
    expected = model.predict(X[:n_points])
    found = [problem.get_val(each) for each in ([outputs] if isinstance(outputs, str) else outputs)]
    found = np.stack(found, axis=-1) if len(found) > 1 else found[0]
    assert_allclose(found.reshape(n_points, 2), expected, rtol=1e-12)
    # Values of wide networks without noise are differences of large numbers, with rounding errors of 1e-8: differences
    # over steps of 1e-3 have those of 1e-5, and truncation errors of 1e-6 times third derivatives (of size 100).
    assert wrong_partials(problem) < 1e-3


def test_an_optimum_is_found():
    X, y, G = data()
    model = RandomFeatureRegressor(60, width=1.0, random_state=0).fit(X, y, gradients=G)
    problem = om.Problem(reports=False)
    problem.model.add_subsystem("surrogate", export.to_openmdao(model), promotes=["*"])
    problem.driver = om.ScipyOptimizeDriver(optimizer="SLSQP", disp=False)
    problem.model.add_design_var("x", lower=0.5, upper=2.0)
    problem.model.add_objective("y")
    problem.setup()
    problem.set_val("x", [1.9, 0.6, 1.9])
    problem.run_driver()
    assert_allclose(problem.get_val("x"), [1.0, 1.2, 0.8], atol=0.02)


def test_names_of_columns():
    X, y, _ = data(15)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = RandomFeatureRegressor(10, width=0.5, random_state=0).fit(frame, y)
    problem = problem_of(export.to_openmdao(model), a=X[0, 0], b=X[0, 1], c=X[0, 2])
    assert_allclose(problem.get_val("y"), model.predict(frame[:1]), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": ["a", "b"]}, r"`inputs` must be one name, or 3 different names, got \['a', 'b'\]"),
        ({"inputs": ["a", "b", "b"]}, "`inputs` must be one name, or 3 different names"),
        ({"outputs": ["a", "b"]}, "`outputs` must be one name, or 1 different names"),
        ({"n_points": 0}, "`n_points` must be a whole number >= 1, got 0"),
    ],
)
def test_wrong_names(options, message):
    X, y, _ = data(15)
    model = RandomFeatureRegressor(5, width=0.5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=message):
        export.to_openmdao(model, **options)


def test_the_extra_is_named_if_openmdao_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "openmdao.api", None)
    with pytest.raises(ImportError, match=r'pip install "nurf\[openmdao\]"'):
        export.to_openmdao(None)
