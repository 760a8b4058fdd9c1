"""Random combinations of parameters, each of which is valid by itself."""

import re

import numpy as np

from hostile import claims
from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
    activations,
    densities,
)
from nurf.kernels import MaternKernel
from nurf.networks import SiLU
from nurf.solvers import L1, LogPenalty

SHARED = {
    "activation": ["sigmoid", "erf", "softplus", "relu", activations.Sigmoid(0.2), activations.Softplus(0.3)],
    "hessian_weight": [0, 0.0, 1e-3, 1.0],
    "density": ["auto", "uniform", "local", "nonlocal", "axis_aligned", "active_subspace", densities.Local(jitter=0.1)],
    "tail": ["auto", "none", "constant", "affine"],
    "scaling": ["box", "ball", None],
    "random_state": [0, None, np.int64(3), 2**40, np.random.RandomState(0)],
}
RANDOM = SHARED | {
    "dtype": ["float64", "float32"],
    "n_neurons": [1, 2, 7, np.int32(20), 40],
    "activation": [*SHARED["activation"], "heaviside", activations.ReLUPower(2)],
    "width": ["auto", "multiscale", 0.01, 0.3, np.float32(0.5), 3],
    "alpha": ["auto", 1e-12, 1e-3, np.float32(1.0), 100],
    "selection": ["loo", "gcv"],
    "gradient_weight": ["auto", 0, 0.1, 1, 1e6],
    "derivatives": ["auto", "given", "estimate"],
    "growth": ["auto", None, 1.5, 2, 1e200],
    "check_gradients": [False, True, np.bool_(False)],
}
SPARSE = SHARED | {
    "alpha": [1e-3, 0.1, np.float32(0.01)],
    "max_neurons": [None, 1, np.int64(5)],
    "penalty": ["log", "l1", L1(), LogPenalty(10.0)],
    "gamma": [0.1, 5, 100.0],
    "width": [None, "learned", 0.05, np.float32(0.5)],
    "gradient_weight": [0, 0.1, 1],
    "n_initial": [0, 3],
    "tol": [0.01, 0.5],
    "max_iter": [1, 3],
}

WIDE = {
    "kernel": ["auto", "gaussian", "matern", "erf", MaternKernel()],
    "metric": ["auto", "scales", "map"],
    "rank": [None, 1, np.int64(2)],
    "mean": ["constant", "affine"],
    "selection": ["likelihood", "loo"],
    "max_rows": [160, np.int32(170), 200],
    "check_gradients": ["warn", "raise", False],
    "verbose": [0, np.int64(1)],
}
DEEP = {
    "hidden": [(8,), [5, 6], np.array([4, 4, 4]), 7],
    "steps": [1, 20, np.int64(50)],
    "gradient_weight": ["auto", 0, 0.1, 1, 1e6],
    "activation": ["tanh", "silu", SiLU()],
    "density": SHARED["density"],
    "scaling": SHARED["scaling"],
    "check_gradients": [False, "warn"],
    "warm_start": [False, True],
    "random_state": SHARED["random_state"],
}
SURROGATE = {
    "engines": [["wide"], ("sampled",), ["sparse"], ["wide", "sampled"]],
    "check_gradients": ["warn", "raise", False],
    "random_state": SHARED["random_state"],
    "verbose": [0, np.int64(0)],
}
TABLES = {
    RandomFeatureRegressor: (RANDOM, {"n_neurons": 20}),
    SparseFeatureRegressor: (SPARSE, {"max_iter": 3}),
    KernelFeatureRegressor: (WIDE, {"max_rows": 200}),
    DeepFeatureRegressor: (DEEP, {"hidden": (8, 8), "steps": 30}),
    Surrogate: (SURROGATE, {"time_budget": None, "engines": ["wide"]}),
}


def random_parameters(data, make, rng):
    """A fit is sound, or an error says which parameters do not go together, or what they need."""
    kind = type(make(data))
    table, few = TABLES[kind]
    names = rng.choice(list(table), len(table) // 2, replace=False).tolist()  # the others have their defaults
    chosen = few | {name: table[name][rng.integers(len(table[name]))] for name in names}
    try:
        claims.is_sound(data, lambda data: kind(**chosen), rng)
    except Exception as error:
        if not (isinstance(error, ValueError) and re.search(r"`|\bneeds\b|use a smoother activation", str(error))):
            raise AssertionError(f"{chosen}: {type(error).__name__}: {error}") from error
