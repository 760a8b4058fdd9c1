"""The transformer: sampled features for scikit-learn's pipelines."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nurf._scaling import Scaling
from nurf._types import Array
from nurf._validation import as_finite_or_nan
from nurf.activations import Activation
from nurf.data import Observations, require_numbers
from nurf.densities import Density
from nurf.engines import Setting, sample_features
from nurf.estimators._parameters import as_generator, check_neurons, default_density, make_activation
from nurf.estimators._saved import SavedEstimator, unchanged_on_error
from nurf.jets import Jet
from nurf.networks import Features


class RandomFeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavedEstimator):  # type: ignore[misc]
    """Map inputs to the features ``sigma(a_n.x + b_n)`` of sampled hyperplanes.

    Parameters
    ----------
    n_neurons : int, default 100
        Number of features.
    density, activation, width, scaling, random_state
        As for ``RandomFeatureRegressor``.

    Attributes
    ----------
    features_ : Features
        The features, as functions of scaled inputs.
    scaling_ : Scaling
        The change of units.
    density_ : Density
        The sampled density.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeCV
    >>> from sklearn.pipeline import make_pipeline
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> y = np.sin(5 * X[:, 0])
    >>> model = make_pipeline(RandomFeatureMap(100, random_state=0), RidgeCV(np.logspace(-8, 0, 9)))
    >>> bool(model.fit(X, y).score(X, y) > 0.999)
    True
    """

    features_: Features
    scaling_: Scaling
    density_: Density

    def __init__(
        self,
        n_neurons: int = 100,
        *,
        density: str | Density = "auto",
        activation: str | Activation = "sigmoid",
        width: float | None = None,
        scaling: str | None = "box",
        random_state: Any = None,
    ) -> None:
        self.n_neurons = n_neurons
        self.density = density
        self.activation = activation
        self.width = width
        self.scaling = scaling
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, gradients: Any = None, hessians: Any = None) -> RandomFeatureMap:
        """Sample the hyperplanes.

        Parameters
        ----------
        X : array or frame of shape (n, d)
        y : ignored
        gradients : array of shape (n, d) or (n, k, d), optional
        hessians : array of shape (n, d, d) or (n, k, d, d), optional
        """
        with unchanged_on_error(self):
            require_numbers(X=X)
            data = Observations(X, gradients=gradients, hessians=hessians).matched().arguments
            X = validate_data(self, X, dtype=np.float64)
            ranks = {"gradients": 2, "hessians": 3}  # of the derivatives of one output
            given = [kind for kind in ranks if data[kind] is not None]
            arrays: dict[str, Any] = {kind: as_finite_or_nan(kind, data[kind]) for kind in given}
            outputs = [array.shape[1:2] for kind, array in arrays.items() if array.ndim > ranks[kind]]
            found = self._fit(Jet(X, np.zeros((len(X), *(outputs[0] if outputs else ()))), **arrays))
        for warning in found:
            warnings.warn(warning, stacklevel=2)
        return self

    def _fit(self, jet: Jet) -> list[Warning]:
        check_neurons("n_neurons", self.n_neurons, self.n_features_in_)
        scaling = Scaling.fit(jet, self.scaling)  # type: ignore[arg-type]
        scaled = scaling(jet)
        activation = make_activation(self.activation, self.width)
        density, found = default_density(self.density, scaled, activation)
        features, _ = sample_features(
            scaled, Setting(density, activation, degree=-1), self.n_neurons, as_generator(self.random_state)
        )
        self.features_, self.scaling_, self.density_ = features, scaling, density
        return found

    def transform(self, X: Any) -> Array:
        """Return the features at the points, of shape (n, n_neurons)."""
        check_is_fitted(self, "features_")
        require_numbers(X=X)
        points = self.scaling_.inputs(validate_data(self, X, reset=False, dtype=np.float64))
        return self.features_.neurons(points)

    @property
    def _n_features_out(self) -> int:
        return self.features_.n_neurons
