"""The estimators that files can contain, and how they are loaded."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from nurf.blockwise import Accumulation, Running
from nurf.data import Reservoir, Units
from nurf.estimators._deep import DeepFeatureRegressor
from nurf.estimators._feature_map import RandomFeatureMap
from nurf.estimators._fidelities import Base
from nurf.estimators._kernel import KernelFeatureRegressor
from nurf.estimators._leaderboard import Leaderboard, Standing
from nurf.estimators._regressor import RandomFeatureRegressor
from nurf.estimators._sparse import SparseFeatureRegressor
from nurf.estimators._surrogate import Surrogate
from nurf.estimators._views import AS_GIVEN, View
from nurf.files import RESULTS, read
from nurf.solvers.ridge import NormalEquations


def _consistent(attributes: dict[str, Any]) -> None:
    """Raise a ``ValueError`` if the shapes of the network of a fit, its units and the inputs are inconsistent.

    Estimators that consist of other estimators have none of these.
    """
    if "scaling_" not in attributes:
        return
    d, scaling = attributes.get("n_features_in_"), attributes["scaling_"]
    inputs = d if scaling.x_basis is None else scaling.n_inputs
    found: list[Any] = [scaling.x_scale.shape]
    expected: list[Any] = [(d,)]
    view = attributes.get("_view", AS_GIVEN)
    for warp, n in ((view.warping.inputs, d), (view.warping.outputs, scaling.y_scale.size)):
        if warp is not None:
            found, expected = [*found, len(warp.kinds)], [*expected, n]
    if not view.is_trivial:
        found += [np.shape(view.y_scale)]
        expected += [scaling.y_scale.shape]
    if "fit_" in attributes:
        network = attributes["fit_"].network
        found += [network.dimension, scaling.y_scale.shape]
        expected += [inputs, network.output_shape]
    else:
        found += [attributes["features_"].hyperplanes.dimension]
        expected += [inputs]
    if found != expected:
        raise ValueError(f"the network and its units must have the shapes {expected}, got {found}")


_ESTIMATORS = (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureMap,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
)
_PARTS = (Accumulation, Base, Leaderboard, NormalEquations, Reservoir, Running, Standing, Units, View)
SAVED = RESULTS.extended(dataclasses=_PARTS, estimators=_ESTIMATORS, limits=dict.fromkeys(_ESTIMATORS, _consistent))


def load(path: str | os.PathLike[str]) -> Any:
    """Return the fitted model of a file that ``model.save(path)`` wrote.

    Loading runs no code: a file contains numbers, and names of classes from a fixed list.

    Raises
    ------
    FileFormatError
        If the file contains no model, is damaged, or was written in the format of a newer version.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import nurf
    >>> X = np.random.default_rng(0).uniform(size=(100, 2))
    >>> model = nurf.RandomFeatureRegressor(20, width=0.3, random_state=0).fit(X, X[:, 0] * X[:, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.nurf")
    ...     loaded = nurf.load(f"{folder}/model.nurf")
    >>> bool(np.all(loaded.predict(X) == model.predict(X)))
    True
    """
    return read(path, SAVED)
