"""Initial weights of torch modules."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from nurf._validation import is_number
from nurf.densities import Density
from nurf.estimators import DeepFeatureRegressor, choose


def initialize_(
    module: Any,
    X: Any,
    y: Any,
    gradients: Any = None,
    *,
    layers: str = "first",
    density: str | Density = "auto",
    scale: float = 1.0,
    random_state: Any = None,
) -> Any:
    """Set initial weights of a torch module from data, in place, and return the module.

    The hyperplanes ``a.x + b = 0`` of the neurons of the first ``torch.nn.Linear`` are sampled from a density that is
    computed from the samples, as for a ``DeepFeatureRegressor``: they lie where the function varies, across the
    directions in which it varies. Inputs are scaled by their ranges for this, but the weights are for unscaled inputs.
    All other parameters are unchanged, unless ``layers="all"``.

    Parameters
    ----------
    module : torch.nn.Module
        A module whose first linear layer has a bias and is applied to inputs in the units of ``X``.
    X : array of shape (n, d)
        Inputs, in the units in which they will be passed to the module.
    y : array of shape (n,) or (n, k)
        Values.
    gradients : array of shape (n, d) or (n, k, d), optional
        Gradients of the values with respect to the inputs. Unknown partial derivatives are NaN.
    layers : {"first", "all"}, default "first"
        "all" also sets the other linear layers, which must form a chain: normal weights of variance 1 / fan-in and zero
        bias, the last layer in the units of ``y``, with the mean of ``y`` as its bias.
    density : str or Density, default "auto"
        See ``DeepFeatureRegressor``. "auto" is nonlocal if there are gradients, and uniform otherwise.
    scale : float, default 1
        The length of the normals, for inputs that are scaled to variance one. Shorter normals give smoother functions.
    random_state : int, RandomState, Generator or None, default None
        Seed for sampling. The generator of torch is not used.
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ImportError('initialize_ needs torch: pip install "nurf[torch]"') from error

    if not (is_number(scale) and scale > 0):
        raise ValueError(f"`scale` must be a number > 0, got {scale!r}")
    chain = [layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)]
    chain = chain[: choose("layers", layers, {"first": 1, "all": None})]
    _require_chain(chain, np.shape(X)[-1], int(np.prod(np.shape(y)[1:])), layers == "all")
    hidden = [layer.out_features for layer in (chain if len(chain) == 1 else chain[:-1])]
    start = DeepFeatureRegressor(hidden, density=density, random_state=random_state)
    network = start._first_network(X, y, gradients, float(scale))
    with torch.no_grad():
        for layer, matrix, vector in zip(chain, network.weights, network.biases, strict=False):
            layer.weight.copy_(torch.from_numpy(matrix.T.copy()))
            layer.bias.copy_(torch.from_numpy(vector))
    return module


def _require_chain(chain: list[Any], n_inputs: int, n_outputs: int, whole: bool) -> None:
    """Raise an error if the linear layers do not match each other, the inputs or the outputs."""
    sizes = [(layer.in_features, layer.out_features) for layer in chain]
    if not chain or sizes[0][0] != n_inputs:
        got = f"one of {sizes[0][0]}" if chain else "none"
        raise ValueError(f"`module` must have a first torch.nn.Linear of {n_inputs} inputs, as X has, got {got}")
    if any(layer.bias is None for layer in chain):
        raise ValueError("layers of `module` must have biases, the offsets of the hyperplanes, got one without")
    if not whole:
        return
    if len(sizes) < 2 or any(a[1] != b[0] for a, b in itertools.pairwise(sizes)) or sizes[-1][1] != n_outputs:
        raise ValueError(
            f"layers='all' needs two or more torch.nn.Linear with matching sizes, the last one with "
            f"{n_outputs} outputs, got {sizes}"
        )
