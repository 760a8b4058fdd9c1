"""Derivatives of callables: against closed forms, in NumPy, JAX and torch, for every shape of function."""

import functools
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

from nurf import problems
from nurf.differentiation import derivatives
from pairwise import pairwise

SMOOTH = [
    problems.get("gaussian_bump"),
    problems.get("planar_wave"),
    problems.get("checkmark", dimension=3),
    problems.get("separable"),
    problems.get("corner_peak", dimension=4),
    problems.get("robot_arm"),
    problems.get("borehole"),
    problems.get("borehole", native=True),
]


def points(n=7, d=3, seed=0):
    return np.random.default_rng(seed).uniform(0.2, 1.0, size=(n, d))


def wave(xp, x):
    """A function in any array module, at points on the last axis."""
    return xp.sin(2 * x[..., 0]) * xp.exp(x[..., 1]) + x[..., 2] ** 3


def wave_gradient(X):
    a, b, c = X.T
    return np.column_stack([2 * np.cos(2 * a) * np.exp(b), np.sin(2 * a) * np.exp(b), 3 * c**2])


def wave_hessian(X):
    a, b, c = X.T
    H = np.zeros((len(X), 3, 3))
    H[:, 0, 0], H[:, 1, 1], H[:, 2, 2] = -4 * np.sin(2 * a) * np.exp(b), np.sin(2 * a) * np.exp(b), 6 * c
    H[:, 0, 1] = H[:, 1, 0] = 2 * np.cos(2 * a) * np.exp(b)
    return H


def module(name):
    if name == "numpy":
        return np
    xp = pytest.importorskip("jax.numpy" if name == "jax" else name, reason=f"{name} is not installed: nurf[{name}]")
    return xp


def stack(name, xp, arrays):
    return xp.stack(arrays, axis=-1) if name != "torch" else xp.stack(arrays, dim=-1)


CASES = [
    ("numpy", "finite_differences", 1e-9, 1e-6),
    ("numpy", "complex_step", 1e-14, 1e-9),
    ("jax", "jax", 1e-14, 1e-13),
    ("torch", "torch", 1e-14, 1e-13),
]
backends = pytest.mark.parametrize(("name", "backend", "tol", "tol2"), CASES, ids=[case[1] for case in CASES])
each_framework = pytest.mark.parametrize("name", ["numpy", "jax", "torch"])


def far_from_kinks(problem, X):
    """Return the points from which no difference reaches a jump of the second derivative, or a pole of it.

    The largest step is at most 0.015 times the range of an input, which is below 2. The Huber function bends where
    ``7 |x_2|`` or ``3 |z|`` is 1/2, and the arm's length has a kink at zero: a step moves an end of length 4 by 0.4.
    """
    if problem.name == "separable":
        return X[np.abs(np.abs(X[:, 1]) - 1 / 14) > 0.05]
    if problem.name == "checkmark":
        return X[np.abs(np.linalg.norm(X[:, 1:], axis=1) - 1 / 6) > 0.05]
    return X[problem.value(X) > 1.0] if problem.name == "robot_arm" else X


@pytest.mark.parametrize("problem", SMOOTH, ids=lambda problem: f"{problem.name}-{problem.dimension}-{problem.native}")
def test_differences_meet_all_closed_forms(problem):
    X = far_from_kinks(problem, problem.sample(200, np.random.default_rng(0)))
    values, gradients, hessians = derivatives(problem.value, X, order=2, backend="finite_differences")
    exact, curved = problem.gradient(X), problem.hessian(X)
    np.testing.assert_array_equal(values, problem.value(X))
    np.testing.assert_allclose(gradients, exact, rtol=0, atol=1e-7 * np.abs(exact).max())
    np.testing.assert_allclose(hessians, curved, rtol=0, atol=1e-4 * np.abs(curved).max())


@pairwise(backends, n=[1, 3], one_point=[False, True])
def test_every_backend_in_every_shape(name, backend, tol, tol2, one_point, n):
    """n = d and n = 1 included: the layout is found without being told."""
    xp = module(name)

    def f(x):
        if one_point:
            assert x.ndim == 1
        else:
            assert x.ndim == 2
        return wave(xp, x)

    X = points(n)
    values, gradients, hessians = derivatives(f, X, order=2, backend=backend)
    assert values.dtype == gradients.dtype == hessians.dtype == np.float64
    assert (values.shape, gradients.shape, hessians.shape) == ((n,), (n, 3), (n, 3, 3))
    np.testing.assert_allclose(values, wave(np, X), rtol=1e-14)
    np.testing.assert_allclose(gradients, wave_gradient(X), rtol=0, atol=10 * tol)
    np.testing.assert_allclose(hessians, wave_hessian(X), rtol=0, atol=20 * tol2)


@pairwise(backends, one_point=[False, True], k=[1, 5])
def test_several_outputs(name, backend, tol, tol2, k, one_point):
    xp = module(name)

    def f(x):
        assert x.ndim == (1 if one_point else 2)
        return stack(name, xp, [(i + 1) * wave(xp, x) for i in range(k)])

    X, factors = points(4), np.arange(1.0, k + 1)
    values, gradients, hessians = derivatives(f, X, order=2, backend=backend)
    np.testing.assert_allclose(values, wave(np, X)[:, None] * factors, rtol=1e-14)
    np.testing.assert_allclose(gradients, wave_gradient(X)[:, None] * factors[:, None], rtol=0, atol=50 * tol)
    np.testing.assert_allclose(hessians, wave_hessian(X)[:, None] * factors[:, None, None], rtol=0, atol=100 * tol2)


class TestAuto:
    @each_framework
    def test_the_framework_of_the_function_is_found(self, name):
        xp = module(name)
        X, kinds = points(), set()

        def f(x):
            kinds.add(type(x).__module__.partition(".")[0])
            return wave(xp, x)

        values, gradients, _ = derivatives(f, X)
        precise = 1e-14 if name != "numpy" else 1e-9
        np.testing.assert_allclose(values, wave(np, X), rtol=1e-14)
        np.testing.assert_allclose(gradients, wave_gradient(X), rtol=0, atol=10 * precise)
        assert name == "numpy" or kinds <= {name, "jaxlib"}

    @pytest.mark.parametrize("wrap", [functools.partial, lambda f: functools.wraps(f)(lambda x: f(x))])
    def test_wrapped_functions(self, wrap):
        xp = module("torch")
        X = points()
        np.testing.assert_allclose(derivatives(wrap(lambda x: wave(xp, x)), X)[1], wave_gradient(X), rtol=1e-13)

    def test_a_module_of_torch(self):
        torch = module("torch")
        network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
        W, b, V, c = (p.detach().numpy() for p in network.parameters())
        X = points()
        t = np.tanh(X @ W.T + b)
        values, gradients, _ = derivatives(network, X)
        np.testing.assert_allclose(values, t @ V.T + c, rtol=1e-12)
        np.testing.assert_allclose(gradients, np.einsum("ok,nk,kd->nod", V, 1 - t**2, W), rtol=1e-11, atol=1e-14)

    def test_a_module_in_single_precision_says_so(self):
        torch = module("torch")
        with pytest.raises(ValueError, match=r"torch: .*dtype"):
            derivatives(torch.nn.Linear(3, 1), points())

    def test_the_global_precision_of_jax_is_left_alone(self):
        jax = pytest.importorskip("jax", reason="jax is not installed: nurf[jax]")
        before = jax.config.jax_enable_x64  # OpenMDAO sets it
        jax.config.update("jax_enable_x64", False)
        try:
            derivatives(lambda x: wave(jax.numpy, x), points())
            assert jax.numpy.ones(1).dtype == np.float32
        finally:
            jax.config.update("jax_enable_x64", before)

    def test_a_function_compiled_by_jax(self):
        jax = pytest.importorskip("jax", reason="jax is not installed: nurf[jax]")
        X = points()
        f = jax.jit(lambda x: wave(jax.numpy, x))
        np.testing.assert_allclose(derivatives(f, X)[1], wave_gradient(X), rtol=1e-13)

    def test_a_part_that_jax_does_not_see_falls_through(self):
        jax = pytest.importorskip("jax", reason="jax is not installed: nurf[jax]")

        def f(x):
            return jax.numpy.sin(x[..., 0]) + jax.lax.stop_gradient(x[..., 1]) ** 2

        X = points()
        exact = np.column_stack([np.cos(X[:, 0]), 2 * X[:, 1], 0 * X[:, 0]])
        with pytest.warns(UserWarning, match="gradients by jax contradict differences"):
            derivatives(f, X, backend="jax")
        # differences of a JAX function in single precision, which JAX computes in for NumPy arrays
        np.testing.assert_allclose(derivatives(f, X)[1], exact, atol=1e-2)

    def test_a_part_that_torch_does_not_see_is_an_error(self):
        """It does not take NumPy arrays: no way is left, and each is named."""
        torch = module("torch")

        def partly(x):
            return torch.sin(x[..., 0]) + x[..., 1].detach() ** 2

        def wholly(x):
            return torch.tensor(np.sin(x.detach().numpy()).sum(axis=-1))

        with pytest.raises(ValueError, match=r"torch: gradients by torch contradict.*finite_differences: "):
            derivatives(partly, points())
        with pytest.raises(ValueError, match=r"torch: .*depends on its argument"):
            derivatives(wholly, points())
        with pytest.raises(ValueError, match="depends on its argument"):
            derivatives(wholly, points(), backend="torch")

    @pytest.mark.parametrize("framework", ["jax", "torch"])
    def test_branches_on_values(self, framework):
        xp = module(framework)

        def f(x):
            return xp.sin(x[0]) if x[0] > x[1] else x[2] ** 2

        X = points()
        first = X[:, 0] > X[:, 1]
        exact = np.zeros_like(X)
        exact[first, 0], exact[~first, 2] = np.cos(X[first, 0]), 2 * X[~first, 2]
        np.testing.assert_allclose(derivatives(f, X)[1], exact, rtol=1e-14)

    def test_frameworks_are_not_imported_for_numpy(self):
        code = (
            "import sys, numpy as np\nfrom nurf.differentiation import derivatives\n"
            "print(derivatives(lambda x: np.sin(x[0]), [[0.0]])[1], sorted({'jax', 'torch'} & set(sys.modules)))"
        )
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert run.stdout == "[[1.]] []\n"


class TestLayout:
    @pytest.mark.parametrize(
        ("f", "jacobian"),
        [
            (lambda x: x / x.sum(), lambda x: np.eye(3) / x.sum() - x[:, None] / x.sum() ** 2),
            (lambda x: np.cumsum(x, axis=0), lambda x: np.tri(3)),
            (lambda x: np.array([x[0], x[1]]), lambda x: np.eye(3)[:2]),
            (lambda x: 2 * x, lambda x: 2 * np.eye(3)),
            (lambda x: np.arange(9.0).reshape(3, 3) @ x, lambda x: np.arange(9.0).reshape(3, 3)),
        ],
    )
    @pytest.mark.parametrize("n", [1, 3, 6])
    def test_functions_of_one_point_that_take_several_by_accident(self, f, jacobian, n):
        X = points(n)
        values, gradients, _ = derivatives(f, X)
        np.testing.assert_allclose(values, [f(x) for x in X], rtol=1e-12)
        np.testing.assert_allclose(gradients, [jacobian(x) for x in X], atol=1e-9)

    def test_the_layout_can_be_told(self):
        calls = []

        def f(x):
            calls.append(x.shape)
            return np.sin(x).sum(axis=-1)

        X = points(5)
        for vectorized, shape in ((True, (5, 3)), (False, (3,))):
            calls.clear()
            gradients = derivatives(f, X, vectorized=vectorized, backend="finite_differences")[1]
            np.testing.assert_allclose(gradients, np.cos(X), rtol=1e-9)
            assert shape in calls
            assert {len(call) for call in calls} == {len(shape)}

    def test_one_input(self):
        x = np.linspace(1, 2, 5)[:, None]
        for f in (lambda t: np.log(t[..., 0]), lambda t: math.log(t[0]), np.log):
            values, gradients, _ = derivatives(f, x)
            np.testing.assert_allclose(values.ravel(), np.log(x[:, 0]))
            np.testing.assert_allclose(gradients.ravel(), 1 / x[:, 0], rtol=1e-9)


class TestDifferences:
    @pytest.mark.parametrize("units", [1e-9, 1.0, 1e9])
    def test_inputs_may_have_units_of_their_own(self, units):
        X = points(20)
        scales = np.array([1.0, units, 1.0])
        gradients = derivatives(lambda x: wave(np, x / scales), X * scales, backend="finite_differences")[1]
        np.testing.assert_allclose(gradients * scales, wave_gradient(X), rtol=0, atol=1e-8)

    def test_points_far_from_the_origin(self):
        X = points(20)
        far = 1e6 + X
        gradients = derivatives(lambda x: wave(np, x - 1e6), far, backend="finite_differences")[1]
        np.testing.assert_allclose(gradients, wave_gradient(far - 1e6), rtol=0, atol=1e-7)

    def test_a_steep_function(self):
        """A feature of a thousandth of the range."""
        X = np.linspace(-1, 1, 201)[:, None]
        gradients = derivatives(lambda x: np.tanh(500 * x[..., 0]), X, backend="finite_differences")[1]
        np.testing.assert_allclose(gradients, 500 * (1 - np.tanh(500 * X) ** 2), rtol=0, atol=500 * 1e-7)

    @pytest.mark.parametrize("f", [lambda x: np.sqrt(x[..., 0]) * x[..., 1], lambda x: math.sqrt(x[0]) * x[1]])
    def test_one_sided_at_the_edge_of_the_domain(self, f):
        """Smooth up to an edge on which points lie; and an edge that only the larger steps cross."""

        def g(x):
            inside = x[..., 0] >= 0
            return np.where(inside, np.exp(x[..., 0]) * np.sin(x[..., 1]), np.nan)

        X = np.array([[0.0, 0.3], [0.0, 0.9], [0.5, 0.7]])
        _, gradients, hessians = derivatives(g, X, order=2)
        e, s, c = np.exp(X[:, 0]), np.sin(X[:, 1]), np.cos(X[:, 1])
        np.testing.assert_allclose(gradients, np.column_stack([e * s, e * c]), rtol=1e-7)
        exact = np.moveaxis(np.array([[e * s, e * c], [e * c, -e * s]]), 2, 0)
        np.testing.assert_allclose(hessians, exact, rtol=1e-4)
        inner = np.array([[5e-3, 1.0], [1.0, 2.0]])
        exact = np.column_stack([inner[:, 1] / 2 / np.sqrt(inner[:, 0]), np.sqrt(inner[:, 0])])
        np.testing.assert_allclose(derivatives(f, inner, backend="finite_differences")[1], exact, rtol=1e-6)

    def test_the_corner_of_a_domain(self):
        def f(x):
            return np.where((x[..., 0] >= 0) & (x[..., 1] <= 0), np.exp(x[..., 0] - x[..., 1]), np.nan)

        _, gradients, hessians = derivatives(f, np.array([[0.0, 0.0], [1.0, -1.0]]), order=2)
        np.testing.assert_allclose(gradients[0], [1, -1], rtol=1e-7)
        np.testing.assert_allclose(hessians[0], [[1, -1], [-1, 1]], rtol=1e-4)

    def test_what_is_defined_on_neither_side_is_not_known(self):
        def f(x):
            return np.where(x[..., 0] == 0, x[..., 1] ** 2, np.nan)

        with pytest.warns(UserWarning, match="gradients by finite_differences are not finite at 3 of 3 points"):
            _, gradients, _ = derivatives(f, np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]]))
        assert np.isnan(gradients[:, 0]).all()
        np.testing.assert_allclose(gradients[:, 1], [2, 4, 6], rtol=1e-9)

    def test_the_step_can_be_told(self):
        seen = []

        def f(x):
            seen.append(x)
            return x[..., 0] ** 2 + x[..., 1]

        X = np.array([[1.0, 2.0]])
        for step, reach in ((0.5, [0.5, 0.5]), ([0.25, 4.0], [0.25, 4.0])):
            seen.clear()
            gradients = derivatives(f, X, step=step, backend="finite_differences", vectorized=True)[1]
            np.testing.assert_allclose(gradients, [[2, 1]], rtol=1e-10)
            np.testing.assert_allclose(np.abs(np.concatenate(seen) - X).max(axis=0), reach)

    def test_single_precision(self):
        X = points(10)
        gradients = derivatives(lambda x: wave(np, x.astype(np.float32)), X)[1]
        np.testing.assert_allclose(gradients, wave_gradient(X), atol=2e-3)


def test_the_complex_step_warns_of_functions_that_are_not_analytic():
    X = -points(6)
    with pytest.warns(UserWarning, match="gradients by complex_step contradict"):
        derivatives(lambda x: np.sqrt(x[..., 0] ** 2) + abs(x[..., 1]) + 0j, X, backend="complex_step")
    with pytest.raises(TypeError, match="complex numbers for complex points"):
        derivatives(lambda x: np.abs(x).sum(axis=-1), X, backend="complex_step")


def test_derivatives_that_are_not_finite_are_not_known():
    torch = module("torch")
    X = np.array([[0.0], [1.0], [4.0]])
    with pytest.warns(UserWarning, match="gradients by torch are not finite at 1 of 3 points"):
        _, gradients, _ = derivatives(lambda x: torch.sqrt(x[..., 0]), X)
    np.testing.assert_allclose(gradients[:, 0], [np.nan, 0.5, 0.25])


@each_framework
def test_linear_and_constant_functions(name):
    xp = module(name)
    X = points()
    _, gradients, hessians = derivatives(
        lambda x: 3 * x[..., 1] + xp.ones(()) if name == "numpy" else 3 * x[..., 1], X, order=2
    )
    np.testing.assert_allclose(gradients, np.tile([0, 3, 0], (7, 1)), atol=1e-9)
    np.testing.assert_allclose(hessians, 0, atol=1e-6)
    _, gradients, _ = derivatives(lambda x: np.full(len(x), 2.0) if np.ndim(x) == 2 else 2.0, X)
    np.testing.assert_array_equal(gradients, 0)


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"order": 3}, "`order` must be 1 or 2, got 3"),
            ({"backend": "sympy"}, "`backend` must be one of auto, jax, .*, got 'sympy'"),
            ({"step": -1.0}, "`step` must be a positive number or one for each of 3 inputs, got -1.0"),
            ({"step": [1.0, 2.0]}, "`step` must be a positive number or one for each of 3 inputs"),
            ({"step": 0.1, "backend": "torch"}, "`step` is for finite differences"),
        ],
    )
    def test_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            derivatives(lambda x: x.sum(axis=-1), points(), **options)

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            ([1.0, 2.0], r"`X` must have shape \(n, d\) .*, got \(2,\)"),
            (np.empty((0, 3)), r"`X` must have shape \(n, d\) .*, got \(0, 3\)"),
            ([[1.0], [np.nan]], r"`X` must be finite, got .*nan.* at row 1"),
        ],
    )
    def test_points(self, X, message):
        with pytest.raises(ValueError, match=message):
            derivatives(lambda x: x.sum(axis=-1), X)

    def test_values_that_are_not_finite(self):
        X = np.array([[1.0], [-1.0], [2.0]])
        with pytest.raises(ValueError, match="`f` must be finite at all points, got nan at row 1"):
            derivatives(lambda x: np.log(x[..., 0]), X)

    @pytest.mark.parametrize("vectorized", [None, True, False])
    def test_results_of_a_wrong_shape(self, vectorized):
        with pytest.raises(ValueError, match=r"`f` must return shape"):
            derivatives(lambda x: np.ones((2, 4, 5)), points(), vectorized=vectorized, backend="finite_differences")

    def test_a_function_that_fails(self):
        def f(x):
            raise RuntimeError("no licence")

        with pytest.raises(ValueError, match="no licence"):
            derivatives(f, points())

    @pytest.mark.parametrize("name", ["jax", "torch"])
    def test_a_framework_that_is_missing(self, name, monkeypatch):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=rf"needs {name}, .* pip install 'nurf\[{name}\]'"):
            derivatives(lambda x: x.sum(axis=-1), points(), backend=name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gradients = derivatives(lambda x: np.sin(x).sum(axis=-1), points())[1]
        np.testing.assert_allclose(gradients, np.cos(points()), rtol=1e-9)
