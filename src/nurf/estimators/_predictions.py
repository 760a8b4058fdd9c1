"""Predictions of a fitted network in the units of the data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from nurf._scaling import Scaling
from nurf._types import Array
from nurf.estimators._corrected import CorrectedDraws
from nurf.estimators._views import View, ViewedFunction, ViewedNetwork
from nurf.networks import Network, PointFunction
from nurf.solvers import MIN_ERRORS, Draws, Uncertainty


@dataclass(frozen=True, eq=False)
class Predictions:
    """A fitted network between its changes of units.

    Points are in the units of the data, of shape (n, d), for ``k`` outputs or one output without an axis.

    Parameters
    ----------
    network : Network
        The fit, in scaled units.
    scaling : Scaling
    view : View
        Base and transformations of inputs and outputs, before the scaling.
    bounds : tuple of two arrays, or None
        The bounds of values.
    uncertainty : Uncertainty or None
    """

    network: Network
    scaling: Scaling
    view: View
    bounds: tuple[Array, Array] | None
    uncertainty: Uncertainty | None

    def values(self, X: Array) -> Array:
        """Return the values, of shape (n,) or (n, k)."""
        return self.view.values_back(X, self._warped(self._scaled(X)))

    def values_and_std(self, X: Array) -> tuple[Array, Array]:
        """Return the values and the standard deviations of new measurements, each of shape (n,) or (n, k)."""
        points = self._scaled(X)
        warped = self._warped(points)
        deviations = self.view.warping.deviations_back(warped, self._warped_deviations(points))
        return self.view.values_back(X, warped), self.view.base.std(X, deviations)

    def gradients(self, X: Array) -> Array:
        """Return the gradients, of shape (n, d) or (n, k, d)."""
        points = self._scaled(X)
        gradients = self.scaling.gradients_back(self.network.gradient(points))
        if self.view.is_trivial:
            return gradients
        return self.view.derivatives_back(X, self._warped(points), gradients)[0]

    def gradients_and_std(self, X: Array) -> tuple[Array, Array]:
        """Return the gradients and their standard deviations, each of shape (n, d) or (n, k, d)."""
        points, uncertainty = self._scaled(X), self.known_uncertainty
        gradients, slopes = self.gradients(X), self.network.gradient(points)  # slopes of fewer inputs if projected
        deviations = self.scaling.gradient_deviations_back(uncertainty.gradient_std(points).reshape(slopes.shape))
        if not uncertainty.knows_gradients:
            warnings.warn(
                "standard deviations of gradients could not be compared with gradients that were given: they may be "
                "several times too small or too large",
                stacklevel=6,  # the call of `predict_gradient`
            )
        warping = self.view.warping
        if not warping.is_trivial:
            slopes = self.scaling.gradients_back(slopes)
            of_values = self._warped_deviations(points)
            deviations = warping.gradient_deviations_back(X, self._warped(points), of_values, slopes, deviations)
        return gradients, self.view.base.gradient_std(X, deviations)

    def hessians(self, X: Array) -> Array:
        """Return the Hessians, of shape (n, d, d) or (n, k, d, d)."""
        points = self._scaled(X)
        hessians = self.scaling.hessians_back(self.network.hessian(points))
        if self.view.is_trivial:
            return hessians
        slopes = self.scaling.gradients_back(self.network.gradient(points))
        return np.asarray(self.view.derivatives_back(X, self._warped(points), slopes, hessians)[1])

    def intervals(self, X: Array, coverage: float) -> Array:
        """Return intervals of new values, of shape (n, 2) or (n, k, 2)."""
        points = self._scaled(X)
        intervals = self.known_uncertainty.interval(points, coverage)
        ends = np.moveaxis(intervals.reshape(len(points), *self.network.output_shape, 2), -1, 0)
        warping = self.view.warping
        intervals = np.moveaxis(warping.values_back(self.scaling.values_back(ends)), 0, -1)
        intervals = self.view.base.interval(X, warping.values_back(self._warped(points)), intervals, coverage)
        if self.bounds is None:
            return intervals
        return np.asarray(np.clip(intervals, *(np.expand_dims(end, -1) for end in self.bounds)))

    def function(self) -> PointFunction:
        """Return the fitted function for one or many points, without checks."""
        function = self.network.function(self.scaling)
        return function if self.view.is_trivial else ViewedFunction(function, self.view)

    def draws(self, n: int, rng: np.random.Generator) -> Draws | CorrectedDraws:
        """Return ``n`` plausible functions."""
        parts = self.known_uncertainty.draws(n, rng)
        draws = Draws(self.network, parts, self.scaling, n, warping=self.view.warping, bounds=self.bounds)
        base = self.view.base
        return draws if base.model is None else CorrectedDraws(draws, base, base.draws(n, rng))

    def in_units(self, network: Network) -> Network:
        """Return a network of scaled units as a function in the units of the data."""
        network = network.in_units_of(self.scaling)
        return network if self.view.is_trivial else ViewedNetwork(network, self.view)

    @property
    def known_uncertainty(self) -> Uncertainty:
        """The uncertainty of the fit; raises a ``ValueError`` if it is unknown."""
        if self.uncertainty is None:
            raise ValueError(
                f"standard deviations and intervals of trained networks need at least {MIN_ERRORS} samples with a "
                "value, got fewer"
            )
        return self.uncertainty

    def _scaled(self, X: Array) -> Array:
        return self.scaling.inputs(self.view.points(X))

    def _warped(self, points: Array) -> Array:
        """Return the transformed values at scaled points, of shape (n,) or (n, k)."""
        return self.scaling.values_back(self.network.value(points))

    def _warped_deviations(self, points: Array) -> Array:
        """Return the standard deviations of transformed values at scaled points, of shape (n,) or (n, k)."""
        deviations = self.known_uncertainty.value_std(points)
        return np.asarray(deviations.reshape(len(points), *self.network.output_shape) * self.scaling.y_scale)
