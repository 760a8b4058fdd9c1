"""Exported models compute what the models compute, in the libraries that they are exported to."""

import copy
import ctypes
import math
import re
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureMap,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
    export,
)
from nurf.activations import Erf, Heaviside, ReLU, ReLUPower, Sigmoid, Softplus
from nurf.export._forms import form_of
from nurf.kernels import KernelAverage

D = 3
# All ways to compute a network are backward stable: what they find is exact for parameters that differ by roundings,
# a few hundred of 1e-16 or, with --rounding, some of 1e-15. So they differ from each other by less than parameters
# change the result if they differ by this much.
CHANGE = 1e-12
TOLERANCE = 1e-6  # for single numbers that are compared on the way


def data(n, n_outputs=0, seed=0, center=0.0, scale=1.0):
    """Values, gradients and Hessians of ``sin(a.x)``, for one output or several, with inputs in any units."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, D))
    a = np.linspace(0.5, 2, D * max(n_outputs, 1)).reshape(-1, D)
    phase = X @ a.T
    gradients = np.cos(phase)[..., None] * a / scale
    hessians = -np.sin(phase)[..., None, None] * a[:, :, None] * a[:, None, :] / scale**2
    X = center + scale * X
    if not n_outputs:
        return X, np.sin(phase)[:, 0], gradients[:, 0], hessians[:, 0]
    return X, np.sin(phase), gradients, hessians


def sampled(activation, n_outputs=0, center=0.0, scale=1.0, **parameters):
    X, y, gradients, _ = data(100, n_outputs, center=center, scale=scale)
    fixed = {"density": "uniform", "alpha": 1e-6, "growth": None, "gradient_weight": 0.1, "random_state": 0}
    if activation.n_derivatives == 0:
        fixed["gradient_weight"] = 0.0
    model = RandomFeatureRegressor(25, activation=activation, **{"width": None, **fixed, **parameters})
    return model.fit(X, y, gradients=gradients)


def sparse(alpha):
    X, y, *_ = data(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SparseFeatureRegressor(alpha, max_neurons=3, max_iter=3, random_state=0).fit(X, y)


def wide(kernel, n_outputs=0, kinds=(), **parameters):
    X, y, gradients, hessians = data(5, n_outputs)
    known = {kind: part for kind, part in (("gradients", gradients), ("hessians", hessians)) if kind in kinds}
    return KernelFeatureRegressor(kernel, **parameters).fit(X, y, **known)


def noisy(model, n_outputs=0, kinds=()):
    """Fit what no kernel predicts: none is far better than the others, so that several are averaged.

    The learned noise keeps coefficients small, so that roundings matter little.
    """
    rng = np.random.default_rng(1)
    X, *parts = data(15, n_outputs)
    y, gradients, _ = (part + 0.3 * rng.normal(size=part.shape) for part in parts)
    return model.set_params(check_gradients=False).fit(X, y, **({"gradients": gradients} if kinds else {}))


def mixed():
    """An average of all kernels, orders of derivatives, numbers of directions and means, fitted to the same data."""
    names = ("wide, hessians", "wide", "wide, few directions")
    members = tuple(fitted(name).fit_.network.members[0] for name in names)
    model = copy.copy(fitted(names[0]))
    model.fit_ = replace(model.fit_, network=KernelAverage(members, np.array([0.5, 0.3, 0.2])))
    return model


def deep(n_outputs=0, **parameters):
    X, y, gradients, _ = data(60, n_outputs)
    parameters = {"hidden": (7, 6, 5), "steps": 50, "random_state": 0, **parameters}
    return DeepFeatureRegressor(**parameters).fit(X, y, gradients=gradients)


BOTH = ("gradients", "hessians")
MODELS = {
    "sigmoid": lambda: sampled(Sigmoid(0.5)),
    "softplus": lambda: sampled(Softplus(0.5)),
    "erf": lambda: sampled(Erf(0.5)),
    "relu": lambda: sampled(ReLU()),
    "squares": lambda: sampled(ReLUPower(2)),
    "cubes": lambda: sampled(ReLUPower(3), 2),
    "outputs": lambda: sampled(Sigmoid(0.5), 3, tail="affine"),
    "one output in a column": lambda: sampled(Sigmoid(0.5), 1),
    "many widths": lambda: sampled(Sigmoid(np.geomspace(0.3, 0.9, 25)), growth=None),
    "far from the origin": lambda: sampled(Sigmoid(0.5), center=1e6, scale=1e-2),
    "sparse": lambda: sparse(0.01),
    "no neurons": lambda: sparse(1e3),
    "wide": lambda: wide("gaussian"),
    "wide, gradients": lambda: wide("matern", kinds=("gradients",)),
    "wide, hessians": lambda: wide("matern", kinds=BOTH, mean="affine"),
    "wide, hessians, outputs": lambda: wide("matern", 2, kinds=BOTH),
    "wide, outputs": lambda: noisy(KernelFeatureRegressor("erf"), 2, kinds=("gradients",)),
    "wide, few directions": lambda: wide("erf", kinds=("gradients",), metric="map", rank=1),
    "wide, average": lambda: noisy(KernelFeatureRegressor()),
    "wide, average, outputs": lambda: noisy(KernelFeatureRegressor(), 2, kinds=("gradients",)),
    "wide, average of all kinds": mixed,
    "surrogate": lambda: noisy(Surrogate(engines=["wide"], random_state=0), kinds=("gradients",)),
    "deep": deep,
    "deep, outputs": lambda: deep(2, activation="silu"),
    "one layer": lambda: deep(hidden=8),
}


@cache
def fitted(name):
    return MODELS[name]()


def points(model):
    """Fresh points, those of the fit (at which kernels have their centres), and one that is far away."""
    center, scale = model.scaling_.x_center, model.scaling_.x_scale
    fresh = center + scale * np.random.default_rng(5).uniform(-0.7, 0.7, (12, D))
    trained = data(15, center=1e6, scale=1e-2)[0] if center[0] > 1e5 else data(15)[0]
    return np.concatenate([fresh, trained[:5], center + scale * [[30.0, -20.0, 10.0]]])


class Functions:
    """The functions of NumPy."""

    exp, sqrt, tanh, ndtr = np.exp, np.sqrt, np.tanh, staticmethod(ndtr)

    def sigmoid(self, u):
        return (1 + np.tanh(u / 2)) / 2

    def softplus(self, u):
        return np.logaddexp(0.0, u)

    def at_least(self, u, lowest):
        return np.maximum(u, lowest)

    def step(self, u):
        return (u > 0).astype(float)


def in_numpy(form, arrays, X):
    values, slopes = (part(arrays, X, Functions()) for part in (form.value, form.gradient))
    shape = (len(X), *form.output_shape)
    return values.reshape(shape), slopes.reshape(*shape, D)


@cache
def tolerances(name):
    """By how much values and gradients change with the parameters, at points that are near and at the one far away."""
    form, X, rng = form_of(fitted(name)), points(fitted(name)), np.random.default_rng(0)
    exact = in_numpy(form, form.arrays, X)
    found = []
    for _ in range(5):
        near = {key: array * (1 + CHANGE * rng.uniform(-1, 1, array.shape)) for key, array in form.arrays.items()}
        near["center"] = form.center
        found.append([np.abs(a - b) for a, b in zip(in_numpy(form, near, X), exact, strict=True)])
    return [(max(change[k][:-1].max() for change in found), max(change[k].max() for change in found)) for k in range(2)]


def assert_same(name, evaluate):
    """Compare ``evaluate(X) -> values, gradients`` with the model, at points of which the last one is far away."""
    model = fitted(name)
    X = points(model)
    expected = model.predict(X), model.predict_gradient(X)
    for found, wanted, limits in zip(evaluate(X), expected, tolerances(name), strict=True):
        found = np.asarray(found)
        assert found.shape == wanted.shape
        assert max(limits) <= TOLERANCE * np.abs(wanted).max()
        for rows, limit in zip((slice(-1), slice(None)), limits, strict=True):
            assert_allclose(found[rows], wanted[rows], rtol=0, atol=limit + CHANGE * np.abs(wanted[rows]).max())


@pytest.mark.parametrize("name", MODELS)
class TestEveryModel:
    def test_forms(self, name):
        """The programs themselves, in NumPy."""
        form = form_of(fitted(name))
        assert_same(name, lambda X: in_numpy(form, form.arrays, X))

    def test_python(self, name):
        names = {}
        exec(export.to_python(fitted(name)), names)

        def evaluate(X):
            return [names["value"](x) for x in X], [names["gradient"](x.tolist()) for x in X]

        assert_same(name, evaluate)

    def test_c(self, name, tmp_path):
        compiled = compile_c(export.to_c(fitted(name), "surrogate"), tmp_path).surrogate
        outputs = form_of(fitted(name)).output_shape

        def evaluate(X):
            values, slopes = np.empty((len(X), *outputs)), np.empty((len(X), *outputs, D))
            for x, y, g in zip(X, values.reshape(len(X), -1), slopes.reshape(len(X), -1), strict=True):
                compiled(*map(address, (x, y, g)))
                alone = np.full_like(y, np.nan)
                compiled(address(x), address(alone), None)
                assert np.array_equal(alone, y)
            return values, slopes

        assert_same(name, evaluate)

    def test_torch(self, name):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        module = export.to_torch(fitted(name))

        def evaluate(X):
            x = torch.tensor(X, requires_grad=True)
            values = module(x)
            assert values.dtype == torch.float64
            columns = values.reshape(len(X), -1).T
            slopes = [torch.autograd.grad(column.sum(), x, retain_graph=True)[0].numpy() for column in columns]
            one = module(x[0])
            assert_allclose(one.detach().numpy(), values[0].detach().numpy(), rtol=TOLERANCE, atol=TOLERANCE)
            return values.detach().numpy(), np.stack(slopes, axis=1).reshape(*values.shape, D)

        assert_same(name, evaluate)
        assert not list(module.parameters())

    def test_jax(self, name):
        jax = pytest.importorskip("jax", reason="jax is not installed")
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", True)
        try:
            function, parameters = export.to_jax(fitted(name))

            jacobian = jax.vmap(jax.jacrev(function, argnums=1), in_axes=(None, 0))
            compiled = jax.jit(lambda parameters, X: (function(parameters, X), jacobian(parameters, X)))

            def evaluate(X):
                values, slopes = compiled(parameters, X)
                if not form_of(fitted(name)).output_shape:
                    gradient = jax.grad(function, argnums=1)
                    one = (gradient if name == "sigmoid" else jax.jit(gradient))(parameters, X[0])  # as it is, compiled
                    assert_allclose(one, slopes[0], rtol=TOLERANCE, atol=TOLERANCE)
                return values, slopes

            assert_same(name, evaluate)
        finally:
            jax.config.update("jax_enable_x64", before)

    def test_onnx(self, name):
        pytest.importorskip("onnx", reason="onnx is not installed")
        onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
        session = onnxruntime.InferenceSession(export.to_onnx(fitted(name)).SerializeToString())
        assert [output.name for output in session.get_outputs()] == ["value", "gradient"]
        assert_same(name, lambda X: session.run(None, {"x": X}))
        X = points(fitted(name))
        options = onnxruntime.RunOptions()
        options.only_execute_path_to_fetches = True
        (alone,) = session.run(["value"], {"x": X[:1]}, options)
        assert_allclose(alone, fitted(name).predict(X[:1]), rtol=TOLERANCE, atol=TOLERANCE)


def address(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def compile_c(text, folder):
    """Return the library of a C file, compiled without a warning."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler `cc`")
    source, library = folder / "model.c", folder / "model.so"
    source.write_text(text)
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-O1", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", library, source, "-lm"], check=True)
    return ctypes.CDLL(str(library))


class TestFiles:
    def test_python_needs_nothing(self, tmp_path):
        """Without site-packages, only ``math`` is imported."""
        text = export.to_python(fitted("sigmoid"))
        (tmp_path / "surrogate.py").write_text(text)
        imports = [line for line in text.splitlines() if "import" in line.split()]
        assert imports == ["from math import erfc, exp, log1p, sqrt, tanh"]
        code = "import surrogate; print(surrogate.value([0.1, 0.2, 0.3]).hex())"
        command = [sys.executable, "-S", "-c", code]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        expected = fitted("sigmoid").predict([[0.1, 0.2, 0.3]])[0]
        assert math.isclose(float.fromhex(said.stdout.strip()), expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)

    def test_python_refuses_other_points(self):
        names = {}
        exec(export.to_python(fitted("sigmoid")), names)
        with pytest.raises(ValueError, match="x must be 3 numbers, got 2"):
            names["value"]([1.0, 2.0])

    def test_a_c_program(self, tmp_path):
        """A program of one's own, with the file included."""
        if shutil.which("cc") is None:
            pytest.skip("there is no C compiler `cc`")
        (tmp_path / "model.c").write_text(export.to_c(fitted("deep")))
        (tmp_path / "main.c").write_text(
            '#include <stdio.h>\n#include "model.c"\nint main(void) { double x[3] = {0.1, 0.2, 0.3}, y, g[3]; '
            'model(x, &y, g); printf("%a %a\\n", y, g[2]); return 0; }\n'
        )
        program = tmp_path / "main"
        subprocess.run(["cc", "-std=c99", "-o", program, tmp_path / "main.c", "-lm"], check=True)
        said = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
        x, model = [[0.1, 0.2, 0.3]], fitted("deep")
        expected = [model.predict(x)[0], model.predict_gradient(x)[0, 2]]
        assert_allclose([float.fromhex(text) for text in said], expected, rtol=TOLERANCE)

    @pytest.mark.parametrize("name", ["", "2", "a b", "f(", "é", "int", "goto", "_Bool", "main", "sqrtf", "size_t"])
    def test_names_in_c(self, name):
        with pytest.raises(ValueError, match="`name` must be a name that C accepts"):
            export.to_c(fitted("deep"), name)

    @pytest.mark.parametrize("model", ["deep", "wide, average", "cubes"])
    def test_names_in_the_c_file_are_refused_or_compile(self, model, tmp_path):
        """The compiler says which of the words in the file would be names of functions, too."""
        if shutil.which("cc") is None:
            pytest.skip("there is no C compiler `cc`")
        text = re.sub(r"/\*.*?\*/|0x[\w.+-]+", "", export.to_c(fitted(model)), flags=re.DOTALL)
        refused, source = [], tmp_path / "model.c"
        for name in sorted({*re.findall(r"[A-Za-z_]\w*", text), "TAIL", "NAME", "TAILOR"}):
            try:
                source.write_text(export.to_c(fitted(model), name))
            except ValueError:
                refused.append(name)
            else:
                flags = ["-std=c99", "-Werror", "-Wall", "-Wno-unused-function", "-fsyntax-only"]
                subprocess.run(["cc", *flags, source], check=True)
        assert {"core", "INPUTS", "CENTER", "sigmoid", "exp", "double"} <= set(refused)


EXPORTS = [export.to_c, export.to_jax, export.to_js, export.to_onnx, export.to_python, export.to_torch]


@pytest.fixture(params=EXPORTS, ids=lambda function: function.__name__)
def exported(request):
    package = request.param.__name__.removeprefix("to_")
    if package in ("jax", "onnx", "torch"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    return request.param


class TestErrors:
    def test_an_unfitted_model(self, exported):
        with pytest.raises(NotFittedError):
            exported(RandomFeatureRegressor())

    def test_a_transformer(self, exported):
        with pytest.raises(ValueError, match="a regressor of nurf can be exported, got RandomFeatureMap"):
            exported(RandomFeatureMap(5).fit(data(20)[0]))

    def test_an_activation_without_a_derivative(self, exported):
        with pytest.raises(ValueError, match=r"exported with its gradient, which Heaviside\(\) does not have"):
            exported(sampled(Heaviside()))

    def test_an_activation_of_ones_own(self, exported):
        class Steep(Sigmoid):
            pass

        with pytest.raises(ValueError, match=r"its activation is one of Sigmoid, .*, got .*Steep"):
            exported(sampled(Steep(0.5)))

    @pytest.mark.parametrize("package", ["torch", "jax", "onnx"])
    def test_a_missing_package_names_the_extra(self, package, monkeypatch):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=rf'to_{package} needs {package}: pip install "nurf\[{package}\]"'):
            getattr(export, f"to_{package}")(fitted("deep"))

    def test_extras_exist(self):
        project = (Path(__file__).parents[1] / "pyproject.toml").read_text()
        for package in ("torch", "jax", "onnx"):
            assert f'\n{package} = ["{package}>=' in project


class Choice(BaseEstimator):
    """What holds the model that it chose."""

    def fit(self):
        self.model_ = fitted("deep")
        return self


def test_a_model_that_chose_another_one():
    assert export.to_python(Choice().fit()) == export.to_python(fitted("deep"))


@pytest.mark.parametrize("name", ["wide, average", "wide, average, outputs", "wide, average of all kinds", "surrogate"])
def test_averages_have_several_members(name):
    members = fitted(name).fit_.network.members
    assert len(members) > 1
    for number in range(len(members)):
        assert f"\ndef core_{number}(z):" in export.to_python(fitted(name))
        assert f"\nstatic void core_{number}(const double *z" in export.to_c(fitted(name))
    assert {f"part_{number}_matrix" for number in range(len(members))} < set(form_of(fitted(name)).arrays)


def test_a_single_member_has_no_number():
    model = fitted("wide, few directions")
    assert len(model.fit_.network.members) == 1
    assert "core_0" not in export.to_python(model) + export.to_c(model)
    assert "matrix" in form_of(model).arrays


def test_a_surrogate_that_chose_an_infinitely_wide_network():
    model = fitted("surrogate")
    assert model.engine_ == "wide"
    assert export.to_c(model) == export.to_c(model.model_)


def test_few_directions_of_many_inputs():
    """A network of two directions of 30 inputs is exported as a function of all inputs."""
    rng = np.random.default_rng(0)
    V, X = np.linalg.qr(rng.standard_normal((30, 2)))[0], rng.uniform(-1, 1, (12, 30))
    slopes = np.cos(X @ V) * [1.0, 2.0] + 0.1 * rng.standard_normal((12, 2))
    model = Surrogate(engines=["wide"], check_gradients=False, random_state=0)
    model.fit(X, np.sin(X @ V) @ [1.0, 2.0] + 0.05 * rng.standard_normal(12), gradients=slopes @ V.T)
    assert model.scaling_.x_basis.shape == (30, 2)
    names, points = {}, rng.uniform(-1, 1, (20, 30))
    exec(export.to_python(model), names)
    assert_allclose([names["value"](x) for x in points], model.predict(points), rtol=1e-9)
    assert_allclose([names["gradient"](x) for x in points], model.predict_gradient(points), rtol=1e-7, atol=1e-9)


def test_torch_follows_the_precision_that_is_asked_for():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    module = export.to_torch(fitted("sigmoid")).float()
    x = np.array([0.1, 0.2, 0.3])
    assert module(x).dtype == torch.float32
    # 25 terms that are at most 1e4 times as large as the result, rounded to 6e-8
    assert_allclose(module(x).item(), fitted("sigmoid").predict([x])[0], atol=25 * 1e4 * 6e-8)
