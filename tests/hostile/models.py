"""Models: one that chooses nothing, so that only rounding can change it, and those that choose."""

import warnings

import numpy as np

from nurf import DeepFeatureRegressor, RandomFeatureMap, RandomFeatureRegressor, SparseFeatureRegressor
from nurf.networks import DeepNetwork


def fixed(data):
    """A small network that depends on the data by one well-conditioned linear solve only."""
    knows = "gradients" in data.arguments and not np.all(np.isnan(np.asarray(data.arguments["gradients"], float)))
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


def deep(data):
    return DeepFeatureRegressor((8, 8), steps=60, random_state=0)


def transformer(data):
    return RandomFeatureMap(20, random_state=0)


MODELS = {"fixed": fixed, "automatic": automatic, "sparse": sparse, "deep": deep}


def outer_weights(network):
    """The weights of the last layer: their sizes are those of the terms whose sum a prediction is."""
    return network.weights[-1] if isinstance(network, DeepNetwork) else network.coefficients


def fit(model, data):
    """Fit, with the warnings that the library gives on purpose ignored: others are errors in the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if isinstance(model, RandomFeatureMap):
            known = {name: data.arguments[name] for name in ("gradients", "hessians") if name in data.arguments}
            return model.fit(data.X, **known)
        return model.fit(**data.arguments)
