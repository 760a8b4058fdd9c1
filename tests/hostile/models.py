"""Models: one that chooses nothing, so that only rounding can change it, and those that choose."""

import warnings

import numpy as np

from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureMap,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
)
from nurf.kernels import KernelAverage, KernelNetwork
from nurf.networks import DeepNetwork


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


def wide(data):
    """One kernel and few rows, so that a case takes seconds."""
    return KernelFeatureRegressor("gaussian", max_rows=300)


def deep(data):
    return DeepFeatureRegressor((8, 8), steps=60, random_state=0)


def transformer(data):
    return RandomFeatureMap(20, random_state=0)


MODELS = {"fixed": fixed, "automatic": automatic, "sparse": sparse, "wide": wide, "deep": deep}


def sizes(network):
    """The absolute values of the outer weights, or of the coefficients of a kernel and its derivatives.

    They are the sizes of the terms whose sum a prediction is.
    """
    if isinstance(network, DeepNetwork):
        return np.abs(network.weights[-1]).ravel()
    if isinstance(network, KernelAverage):
        return np.concatenate(
            [weight * sizes(member) for weight, member in zip(network.weights, network.members, strict=True)]
        )
    if not isinstance(network, KernelNetwork):
        return np.abs(network.coefficients).ravel()
    parts = [network.tail_coef]
    for center in network.centers:
        lengths = [np.linalg.norm(v @ network.metric.T, axis=1) for v in center.functionals.directions]
        parts.append(center.coef * np.prod(lengths, axis=0)[..., None] if lengths else center.coef)
    return np.abs(np.concatenate(parts)).ravel()


def fit(model, data):
    """Fit, with the warnings that the library gives on purpose ignored: others are errors in the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if isinstance(model, RandomFeatureMap):
            known = {name: data.arguments[name] for name in ("gradients", "hessians") if name in data.arguments}
            return model.fit(data.X, **known)
        return model.fit(**data.arguments)
