"""Models: one that chooses nothing, so that only rounding can change it, and those that choose."""

import warnings

import numpy as np

from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureMap,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
)
from nurf.kernels import RADIAL_KERNELS


def fixed(data):
    """A small network that depends on the data by one well-conditioned linear solve only."""
    slopes = np.asarray(data.arguments.get("gradients", np.nan), float)
    knows = not np.all(np.isnan(slopes)) and np.any(np.asarray(data.arguments.get("directions", 1)))
    return RandomFeatureRegressor(
        20,
        density="uniform",
        width=0.5,
        alpha=1e-3,
        growth=None,
        tail="constant",
        gradient_weight=0.1 if knows else 0.0,
        random_state=0,
    )


def automatic(data):
    return RandomFeatureRegressor(20, random_state=0)


def sparse(data):
    return SparseFeatureRegressor(0.01, max_neurons=6, max_iter=5, random_state=0)


def wide(kernel):
    """One kernel, or the average of all of them, and few rows, so that a case takes seconds."""
    return lambda data: KernelFeatureRegressor(kernel, max_rows=300)


def deep(data):
    return DeepFeatureRegressor((8, 8), steps=60, random_state=0)


def transformer(data):
    return RandomFeatureMap(20, random_state=0)


def all_engines(data):
    """With trained networks, in a few steps."""
    return Surrogate(None, engines=["wide", "sampled", deep(data)], random_state=0)


def surrogate(data):
    """Without a deadline, so that the clock changes nothing, and without the engine that takes minutes then."""
    return Surrogate(None, engines=["wide", "sampled"], random_state=0)


KERNELS = {kernel: wide(kernel) for kernel in RADIAL_KERNELS}
MODELS = {
    "fixed": fixed,
    "automatic": automatic,
    "sparse": sparse,
    **KERNELS,
    "wide": wide("auto"),
    "deep": deep,
    "surrogate": surrogate,
    "all engines": all_engines,
}


def fit(model, data):
    """Fit, with the warnings that the library gives on purpose ignored: others are errors in the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if isinstance(model, RandomFeatureMap):
            known = {name: data.arguments[name] for name in ("gradients", "hessians") if name in data.arguments}
            return model.fit(data.X, **known)
        return model.fit(**data.arguments)
