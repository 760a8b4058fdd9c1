"""Modules of JavaScript compute the values, gradients and standard deviations of models, in Node and Chromium."""

import json
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nurf import DeepFeatureRegressor, KernelFeatureRegressor, RandomFeatureRegressor, Surrogate, export
from nurf.activations import Erf, Sigmoid
from nurf.export import _spread
from nurf.functionals import laplacian, partial
from test_export import MODELS, assert_same, data, fitted, points, sampled
from test_export import wide as few
from test_reduction import Ridges

NODE = shutil.which("node")
in_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
RUN = """
import * as model from "./model.mjs";
import { readFileSync } from "node:fs";
const X = JSON.parse(readFileSync(new URL("./points.json", import.meta.url), "utf8"));
const row = (x) => {
  const [value, gradient] = model.valueAndGradient(x);
  const same = [model.value(x), model.gradient(x)];
  const [std, interval] = model.hasStd ? [model.std(x), model.interval(x, 2)] : [null, null];
  return { value, gradient, same, std, interval };
};
console.log(JSON.stringify({ inputs: model.inputs, outputs: model.outputs, hasStd: model.hasStd, rows: X.map(row) }));
"""


def in_a_process(text, X, folder):
    """Return the results of a module at points, in Node."""
    (folder / "model.mjs").write_text(text)
    (folder / "points.json").write_text(json.dumps(np.asarray(X).tolist()))
    (folder / "run.mjs").write_text(RUN)
    said = subprocess.run([NODE, folder / "run.mjs"], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    for row in found["rows"]:
        assert row["same"] == [row["value"], row["gradient"]]
    return found


def column(found, name):
    return np.array([row[name] for row in found["rows"]], float)


def assert_same_deviations(model, X, found):
    """Compare standard deviations with the model.

    Squares are compared, because a variance is a prior variance minus a square of coordinates.
    """
    values, expected = model.predict(X, return_std=True)
    s = column(found, "std")
    assert s.shape == expected.shape
    span = np.ptp(values[:-1]) or 1.0
    # Rounding errors of the coordinates grow with the condition of a factorisation: 1e-15 (with coarser rounding) times
    # 1e6, of a prior variance of about span^2.
    assert_allclose((s / span) ** 2, (expected / span) ** 2, rtol=1e-7, atol=1e-9)
    return s


@in_node
@pytest.mark.parametrize("name", MODELS)
class TestEveryModel:
    def test_values_and_gradients(self, name, tmp_path):
        found = in_a_process(export.to_js(fitted(name)), points(fitted(name)), tmp_path)
        assert_same(name, lambda X: (column(found, "value"), column(found, "gradient")))

    def test_standard_deviations(self, name, tmp_path):
        model = fitted(name)
        if name == "wide, average of all kinds":
            pytest.skip("made of parts of several models: it has no uncertainty of its own")
        X = points(model)
        found = in_a_process(export.to_js(model), X, tmp_path)
        assert found["hasStd"]
        s = assert_same_deviations(model, X, found)
        ends = column(found, "interval")
        assert_allclose(ends, np.stack([model.predict(X) - 2 * s, model.predict(X) + 2 * s], axis=-1), rtol=1e-9)


def ridge(n_outputs=0):
    """A sampled network of more samples than are left out in folds, and neurons."""
    X, y, gradients, _ = data(200, n_outputs)
    parameters = {"density": "uniform", "width": 0.5, "growth": None, "random_state": 0, "alpha": 1e-6}
    return RandomFeatureRegressor(30, activation=Erf(0.5), **{**parameters, "width": None}).fit(
        X, y, gradients=gradients
    )


def positive(model, k=0, n=40):
    """A model of numbers over decades, with logarithms of inputs and of the first output, and asinh of the second."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.uniform(-3, 3, (n, 3)))
    X[:, 2] = rng.uniform(-1, 1, n)
    y = X[:, 0] ** 1.5 / X[:, 1] * np.exp(np.sin(3 * X[:, 2]) + 0.2 * rng.normal(size=n))
    if k:
        y = np.column_stack([y, np.sinh(np.log(X[:, 0]) + X[:, 2] + 0.2 * rng.normal(size=n))])
    target = ["log", "asinh"] if k else "log"
    return model.set_params(inputs={0: "log", 1: "log"}, target=target).fit(X, y), X


def reduced():
    """A network of few directions of many inputs."""
    function, rng = Ridges(30, 2), np.random.default_rng(0)
    jet = function.jet(12, rng)
    slopes = jet.gradients + 0.1 * rng.standard_normal((12, 2)) @ function.V.T
    model = Surrogate(engines=["wide"], check_gradients=False, random_state=0)
    model.fit(jet.X, jet.y + 0.02 * rng.standard_normal(12), gradients=slopes)
    assert model.scaling_.x_basis.shape[1] < 30
    return model, function.sample(20, rng)


@in_node
@pytest.mark.filterwarnings("ignore:.*carr(y|ies) 90%")
class TestOtherModels:
    @pytest.mark.parametrize("k", [0, 2])
    def test_ridge_regression_in_the_bayesian_view(self, k, tmp_path):
        model = ridge(k)
        assert type(model.uncertainty_).__name__ == "Posterior"
        X = points(model)
        found = in_a_process(export.to_js(model), X, tmp_path)
        span = np.ptp(model.predict(X[:-1]))
        assert_allclose(column(found, "value")[:-1], model.predict(X)[:-1], rtol=0, atol=1e-12 * span)
        assert_same_deviations(model, X, found)

    @pytest.mark.parametrize("k", [0, 2])
    @pytest.mark.parametrize("engine", ["wide", "sampled", "trained"])
    def test_curves(self, engine, k, tmp_path):
        models = {
            "wide": lambda: KernelFeatureRegressor("matern"),
            "sampled": lambda: RandomFeatureRegressor(20, width=0.5, random_state=0),
            "trained": lambda: DeepFeatureRegressor((6, 6), steps=50, random_state=0),
        }
        model, X = positive(models[engine](), k)
        found = in_a_process(export.to_js(model), X, tmp_path)
        # terms of infinitely wide networks are larger than their sums: `Process.rounding` may be 3e-6
        limit = 1e-6 if engine == "wide" else 1e-12
        span = np.ptp(model.predict(X), axis=0)
        assert_allclose(column(found, "value") / span, model.predict(X) / span, rtol=limit, atol=limit)
        slopes = model.predict_gradient(X)
        sizes = np.abs(slopes).max(axis=0)
        assert_allclose(column(found, "gradient") / sizes, slopes / sizes, rtol=10 * limit, atol=10 * limit)
        s = model.predict(X, return_std=True)[1]
        assert_allclose(column(found, "std"), s, rtol=1e-6)

    def test_few_directions_of_many_inputs(self, tmp_path):
        model, X = reduced()
        found = in_a_process(export.to_js(model), X, tmp_path)
        assert_allclose(column(found, "value"), model.predict(X), rtol=1e-9, atol=1e-9)
        assert_same_deviations(model, X, found)

    def test_equations_as_data(self, tmp_path):
        """Rows that are sums of derivatives, beside values."""
        X, y, *_ = data(20)
        inside = np.random.default_rng(1).uniform(-1, 1, (8, 3))
        rows = [(laplacian() + 0.5 * partial("x1")).equals(np.sin(inside[:, 0]), at=inside)]
        noise = 0.02 * np.random.default_rng(2).standard_normal(20)
        model = KernelFeatureRegressor("gaussian").fit(X, y + noise, functionals=rows)
        found = in_a_process(export.to_js(model), X, tmp_path)
        assert_allclose(column(found, "value"), model.predict(X), rtol=1e-6, atol=1e-7)
        assert_same_deviations(model, X, found)

    @pytest.mark.parametrize("scale", [1e-200, 1e200])
    def test_huge_units(self, scale, tmp_path):
        X, y, gradients, _ = data(12)
        model = KernelFeatureRegressor("matern").fit(X, y * scale, gradients=gradients * scale)
        found = in_a_process(export.to_js(model), X, tmp_path)
        expected = model.predict(X, return_std=True)
        assert_allclose(column(found, "value") / scale, expected[0] / scale, atol=1e-12)
        assert_allclose(column(found, "std") / scale, expected[1] / scale, rtol=1e-6, atol=1e-9)


class TestSizes:
    def test_large_deviations_are_written_if_asked_for(self, monkeypatch):
        model = few("gaussian", kinds=("gradients",))
        monkeypatch.setattr(_spread, "MOST_NUMBERS", 100)
        text = export.to_js(model)
        assert "hasStd = false" in text
        assert "std and interval are not here, and throw an error: the standard deviation takes" in text
        assert "hasStd = true" in export.to_js(model, std=True)
        assert "hasStd = false" in export.to_js(model, std=False)

    @in_node
    def test_what_is_left_out_says_so(self, tmp_path):
        model = few("gaussian")
        (tmp_path / "model.mjs").write_text(export.to_js(model, std=False))
        (tmp_path / "run.mjs").write_text('import { std } from "./model.mjs"; std([0, 0, 0]);')
        said = subprocess.run([NODE, tmp_path / "run.mjs"], capture_output=True, text=True, check=False)
        assert "the standard deviation is not in this module: it was not asked for" in said.stderr

    def test_a_model_without_deviations(self):
        X, y, gradients, _ = data(2)
        model = KernelFeatureRegressor("gaussian").fit(X, y, gradients=gradients)
        assert "hasStd = false" in export.to_js(model)
        with pytest.raises(ValueError, match="`std` must be False for this model: standard deviations need at least 3"):
            export.to_js(model, std=True)


@in_node
class TestBadPoints:
    @pytest.mark.parametrize(
        ("point", "words"),
        [
            ("[1, 2]", "expected 3 numbers, got 2"),
            ("[1, NaN, 2]", "expected finite numbers, got NaN as input 1"),
            ("[-1, 1, 2]", "input 0 has a logarithm and must be positive, got -1"),
        ],
    )
    def test_points_that_are_refused(self, point, words, tmp_path):
        model, _ = positive(KernelFeatureRegressor("gaussian"), n=12)
        (tmp_path / "model.mjs").write_text(export.to_js(model))
        (tmp_path / "run.mjs").write_text(f'import {{ value }} from "./model.mjs"; value({point});')
        said = subprocess.run([NODE, tmp_path / "run.mjs"], capture_output=True, text=True, check=False)
        assert said.returncode
        assert words in said.stderr


@cache
def normal_distribution():
    return export.to_js(sampled(Erf(0.5)))


@in_node
def test_the_normal_distribution_function(tmp_path):
    """Against SciPy, also in the tails."""
    from scipy.special import ndtr

    u = np.concatenate([np.linspace(-37, 9, 2000), [0.0, -0.0, 1e-300, 1e300, -1e300]])
    (tmp_path / "run.mjs").write_text(
        f"{normal_distribution()}\nconsole.log(JSON.stringify({json.dumps(u.tolist())}.map(ndtr)));"
    )
    said = subprocess.run([NODE, tmp_path / "run.mjs"], capture_output=True, text=True, check=True)
    # the argument of exp(-z^2) is rounded: relative errors of z^2 times 1e-16
    assert_allclose(json.loads(said.stdout), ndtr(u), rtol=3e-13, atol=1e-320)
    inner = np.abs(u) < 2
    assert_allclose(np.array(json.loads(said.stdout))[inner], ndtr(u)[inner], rtol=1e-14)  # sums of 33 terms


def test_in_a_browser(tmp_path):
    if CHROMIUM is None:
        pytest.skip("no Chromium on the path")
    api = pytest.importorskip("playwright.sync_api")
    names = ["sigmoid", "erf", "wide, hessians, outputs", "deep, outputs"]
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for name in names:
            model, X = fitted(name), points(fitted(name))
            tab = browser.new_page()
            tab.goto("about:blank")
            show = "window.found = (X) => X.map((x) => ({ ...valueAndGradient(x), std: std(x) }));"
            tab.add_script_tag(content=f"{export.to_js(model)}\n{show}", type="module")
            tab.wait_for_function("!!window.found")
            rows = tab.evaluate("X => found(X)", X.tolist())
            values, slopes = (np.array([row[part] for row in rows]) for part in ("0", "1"))
            assert_same(name, lambda X, both=(values, slopes): both)
            assert_same_deviations(model, X, {"rows": rows})
            tab.close()
        browser.close()


def test_large_networks_have_few_digits_to_read():
    """Base64 takes 10.7 characters for a number, and none is rounded."""
    model = sampled(Sigmoid(0.5))
    n_numbers = 25 * 6 * 6  # of six networks, with 3 directions, an offset, a coefficient and a part of the tail each
    assert len(export.to_js(model)) < 30_000 + 11 * n_numbers
