"""What the estimators share: from parameters and raw data to a jet, a density and an activation."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from nurf.activations import ACTIVATIONS, Activation, SmoothActivation
from nurf.densities import DENSITIES, Density, Nonlocal, Uniform
from nurf.hyperplanes import Hyperplanes
from nurf.jets import Array, Jet, Scaling
from nurf.network import ShallowNetwork
from nurf.training import Fit


class SamplesHyperplanes(BaseEstimator):  # type: ignore[misc]
    """An estimator whose neurons are sampled: the parameters that say how, and what they mean."""

    n_neurons: int
    density: str | Density
    activation: str | Activation
    width: float | None
    scaling: str | None
    random_state: Any

    def _check_n_neurons(self) -> None:
        if not isinstance(self.n_neurons, Integral) or self.n_neurons < 1:
            raise ValueError(f"`n_neurons` must be a whole number >= 1, got {self.n_neurons!r}")

    def _make_activation(self) -> Activation:
        if isinstance(self.activation, Activation):
            if self.width is not None:
                raise ValueError(
                    f"`width` must be None where `activation` is an object with a width of its own, got {self.width!r} "
                    f"and {self.activation!r}"
                )
            return self.activation
        kind = ACTIVATIONS.get(self.activation) if isinstance(self.activation, str) else None
        if kind is None:
            raise ValueError(
                f"`activation` must be an Activation or one of {', '.join(ACTIVATIONS)}, got {self.activation!r}"
            )
        if self.width is None:
            return kind()
        if not issubclass(kind, SmoothActivation):
            raise ValueError(f"`width` must be None for the sharp activation {self.activation!r}, got {self.width!r}")
        return kind(self.width)

    def _make_density(self, jet: Jet, activation: Activation) -> Density:
        """Choose the density; by default nonlocal sampling where the derivatives for it came."""
        order = min(activation.order, 2)
        if isinstance(self.density, Density):
            return self.density
        if isinstance(self.density, str) and self.density in DENSITIES:
            return DENSITIES[self.density](order)
        if self.density != "auto":
            raise ValueError(
                f"`density` must be a Density, 'auto' or one of {', '.join(DENSITIES)}, got {self.density!r}"
            )
        density = Nonlocal(order)
        if not density.needs <= jet.known:
            return Uniform()
        if not np.any(jet.directions(order)):
            (kind,) = density.needs
            warnings.warn(f"all known {kind} are zero: hyperplanes are sampled uniformly", stacklevel=4)
            return Uniform()
        return density

    def _generator(self) -> np.random.Generator:
        if isinstance(self.random_state, np.random.Generator):
            return self.random_state
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        return np.random.default_rng(int(seed))


class NetworkRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that was fitted as a network in scaled units (``fit_``, ``scaling_``) and predicts in the user's."""

    fit_: Fit
    scaling_: Scaling

    def predict(self, X: Any) -> Array:
        """Return the values at the points, of shape (n,) or (n, k)."""
        points = self._inputs(X)
        return self.scaling_.values_back(self.fit_.network.value(points))

    def predict_gradient(self, X: Any) -> Array:
        """Return the gradients at the points, of shape (n, d) or (n, k, d)."""
        points = self._inputs(X)
        return self.scaling_.gradients_back(self.fit_.network.gradient(points))

    def predict_hessian(self, X: Any) -> Array:
        """Return the Hessians at the points, of shape (n, d, d) or (n, k, d, d)."""
        points = self._inputs(X)
        return self.scaling_.hessians_back(self.fit_.network.hessian(points))

    @property
    def network_(self) -> ShallowNetwork:
        """The fitted network, as a function of unscaled inputs."""
        check_is_fitted(self, "fit_")
        return self.fit_.network.in_units_of(self.scaling_)

    @property
    def hyperplanes_(self) -> Hyperplanes:
        """The hyperplanes of the fitted network, in unscaled inputs."""
        return self.network_.hyperplanes

    def _inputs(self, X: Any) -> Array:
        """Return points in scaled units."""
        check_is_fitted(self, "fit_")
        return self.scaling_.inputs(validate_data(self, X, reset=False, dtype=np.float64))


@contextmanager
def unchanged_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Give the estimator its old attributes back if the block fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
