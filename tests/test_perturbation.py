"""The perturbations of the tests: that they change what differs between machines, and that alone."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import nurf.activations
import perturbation
from perturbation import ROUNDING, Rewriting, Rounding, shifted

HERE = Path(__file__).parent
IMPORTS = """
import math
import numpy as np
from scipy.special import expit, comb
from scipy.spatial import cKDTree
"""
EPS = np.finfo(float).eps
T = np.linspace(-1, 1, 12).reshape(4, 3)


def run(expression, seed=1, **names):
    """Evaluate ``expression`` as the perturbed library would."""
    tree = Rewriting().visit(ast.parse(f"{IMPORTS}result = {expression}"))
    space = {"__rounding__": Rounding(seed), **names}
    exec(compile(tree, "<test>", "exec"), space)
    return space["result"]


@pytest.mark.parametrize(
    "expression",
    [
        "np.exp(t)",
        "np.exp(t[0, 0])",
        "math.exp(0.3)",
        "expit(t)",
        "t @ t.T",
        "np.matmul(t, t.T)",
        "np.einsum('ij,kj->ik', t, t)",
        "(t + 2) ** 3",
        "np.linalg.norm(t, axis=1)",
        "np.linalg.inv(t.T @ t + np.eye(3))",
        "np.linalg.svd(t)[1]",
        "np.logspace(0, 3, 5)",
    ],
)
def test_results_differ_by_rounding_and_repeat(expression):
    exact = eval(expression, {"np": np, "t": T, "math": __import__("math"), "expit": lambda x: 1 / (1 + np.exp(-x))})
    first, again, other = (np.asarray(run(expression, seed, t=T.copy())) for seed in (1, 1, 2))
    assert_array_equal(first, again)
    assert np.any(first != other)
    for result in (first, other):
        assert np.any(result != exact)
        # Entries of products are sums of three terms of size below 1, and the inverted matrix has the condition 5.
        assert_allclose(result, exact, rtol=20 * ROUNDING, atol=20 * ROUNDING)


@pytest.mark.parametrize(
    "expression",
    ["t + t", "t**2", "np.sqrt(t + 2)", "np.sum(t)", "t[:, :1] @ t[:1]", "np.exp2(t)", "comb(5, 2, exact=True)"],
)
def test_what_is_rounded_alike_everywhere_stays(expression):
    exact = eval(expression, {"np": np, "t": T, "comb": lambda *_, exact: 10})
    assert_array_equal(run(expression, t=T.copy()), exact)


def test_a_part_is_rounded_otherwise_than_the_whole():
    whole = run("np.exp(t)", t=T.copy())
    parts = [run("np.exp(t)", t=T[i : i + 1].copy()) for i in range(len(T))]
    assert np.any(np.concatenate(parts) != whole)
    assert_allclose(np.concatenate(parts), whole, rtol=2 * ROUNDING + 2 * EPS)


def test_structure_survives():
    gram = run("t.T @ t", t=T)
    assert_array_equal(gram, gram.T)
    padded = np.pad(T, ((0, 0), (0, 1)))
    product = run("t.T @ t", t=padded)
    assert_array_equal(product[3], 0)
    assert_array_equal(np.isnan(run("np.log(t)", t=np.array([np.nan, 1.0]))), [True, False])
    assert run("np.exp(t)", t=np.array([np.inf, -np.inf])).tolist() == [np.inf, 0]
    huge = np.array([[1e200, 1e200], [1.0, 1.0]])
    with np.errstate(over="ignore"):
        assert_array_equal(np.isinf(run("t @ t.T", t=huge)), [[True, False], [False, False]])


def test_outputs_are_written_where_they_were_asked_for():
    out = np.empty((4, 3))
    assert run("np.exp(t, out=out)", t=T, out=out) is out
    assert np.any(out != np.exp(T))


def test_eigenvectors_keep_their_meaning_but_not_their_signs():
    matrix = np.diag(np.arange(1.0, 9.0))
    values, vectors = run("np.linalg.eigh(m)", m=matrix)
    assert_allclose(vectors * values @ vectors.T, matrix, atol=1e-12)
    assert {-1.0, 1.0} == set(np.sign(np.diag(vectors)))
    left, sizes, right = run("np.linalg.svd(m, full_matrices=False)", m=matrix)
    assert_allclose(left * sizes @ right, matrix, atol=1e-12)


def test_each_matrix_of_a_stack_is_decomposed_alone():
    matrices = np.random.default_rng(0).normal(size=(5, 3, 3))
    values, vectors = run("np.linalg.eigh(m)", m=matrices)
    for i, matrix in enumerate(matrices):
        alone = run("np.linalg.eigh(m)", m=matrix)
        assert_array_equal(values[i], alone[0])
        assert_array_equal(vectors[i], alone[1])


def test_classes_of_scipy_are_not_rounded():
    assert run("cKDTree(t).n", t=T) == 4


def test_the_options_reach_the_library(request):
    """In this run, and so in every run: the library is rewritten if and only if it was asked for."""
    rewritten = any(isinstance(finder, perturbation.Finder) for finder in sys.meta_path)
    assert rewritten == bool(request.config.getoption("rounding"))
    assert hasattr(nurf.activations, "__rounding__") == rewritten
    shift = request.config.getoption("shift_seeds")
    bare = np.random.Generator(np.random.PCG64(shifted(5, shift))).normal()
    assert np.random.default_rng(5).normal() == bare
    state = np.random.RandomState(5)
    assert isinstance(state, np.random.RandomState)
    assert isinstance(np.random.mtrand._rand, np.random.RandomState)
    assert (type(state).__name__ == "ShiftedState") == bool(shift)


def test_each_option_changes_its_own():
    code = """if True:
        import sys, numpy as np, perturbation
        if sys.argv[1] == "rounding": perturbation.perturb_rounding(1)
        from nurf.activations import Erf
        def say():
            print(Erf(0.3)(np.linspace(-1, 1, 50)).tobytes().hex())
            kinds = np.random.default_rng(3), np.random.RandomState(3), np.random.default_rng([3])
            print(*(rng.normal() for rng in kinds))
        say()
        perturbation.shift_seeds(1)
        say()
    """
    plain, rounded = (
        subprocess.run([sys.executable, "-c", code, how], capture_output=True, text=True, check=True, cwd=HERE)
        for how in ("plain", "rounding")
    )
    values, numbers, same_values, moved = plain.stdout.splitlines()
    assert rounded.stdout.splitlines()[0] != values
    assert rounded.stdout.splitlines()[1] == numbers
    assert same_values == values
    assert not set(moved.split()) & set(numbers.split())


def test_seeds():
    assert shifted(3, 2) == 3 + 2 * perturbation.STRIDE
    assert shifted(np.int64(3), 0) == 3
    assert shifted([1, 2], 5) == [1, 2, 5]
    assert shifted(None, 5) is None


def test_the_library_must_not_be_imported_yet():
    with pytest.raises(RuntimeError, match=r"before nurf"):
        perturbation.perturb_rounding(1)
