"""Networks between logarithms of inputs and of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._scaling import Scaling
from nurf._types import Array
from nurf._warping import Warping
from nurf.networks._base import Network, PointFunction


@dataclass(frozen=True, eq=False)
class WarpedNetwork(Network):
    """The function ``T^-1(g(s(x)))`` of a network ``g`` and curves ``s`` of the inputs and ``T`` of the outputs.

    Parameters
    ----------
    network : Network
        ``g``.
    warping : Warping
        The curves.
    """

    network: Network
    warping: Warping

    @property
    def dimension(self) -> int:
        """The number of inputs."""
        return self.network.dimension

    @property
    def output_shape(self) -> tuple[int, ...]:
        """() for one output, (k,) for ``k`` outputs."""
        return self.network.output_shape

    @property
    def n_derivatives(self) -> int:
        """The highest order of derivatives that the network has, at most 2."""
        return self.network.n_derivatives

    def value(self, X: Array) -> Array:
        """Return the values at the points, of shape (n,) or (n, k)."""
        return self.warping.values_back(self.network.value(self.warping.points(X)))

    def gradient(self, X: Array) -> Array:
        """Return the gradients at the points, of shape (n, d) or (n, k, d)."""
        Z = self.warping.points(X)
        return self.warping.derivatives_back(X, self.network.value(Z), self.network.gradient(Z))[0]

    def hessian(self, X: Array) -> Array:
        """Return the Hessians at the points, of shape (n, d, d) or (n, k, d, d)."""
        Z, g = self.warping.points(X), self.network
        return np.asarray(self.warping.derivatives_back(X, g.value(Z), g.gradient(Z), g.hessian(Z))[1])

    def in_units_of(self, scaling: Scaling) -> WarpedNetwork:
        """Return the network ``g`` as a function of unscaled inputs, with unscaled values, between the same curves."""
        return WarpedNetwork(self.network.in_units_of(scaling), self.warping)


@dataclass(frozen=True, eq=False)
class WarpedFunction:
    """A plain function between curves of inputs and outputs: of one point (d,) or many points (n, d), not checked.

    Parameters
    ----------
    inner : PointFunction
    warping : Warping
    """

    inner: PointFunction
    warping: Warping

    def __call__(self, x: Any) -> Any:
        """Return the value at ``x``."""
        return self.warping.values_back(self.inner(self.warping.points(np.asarray(x, float))))[()]

    def gradient(self, x: Any) -> Array:
        """Return the gradient at ``x``."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: Any) -> tuple[Any, Array]:
        """Return both, which costs less than one after the other."""
        x = np.asarray(x, float)
        u, gradient = self.inner.value_and_gradient(self.warping.points(x))
        return self.warping.values_back(u)[()], self.warping.derivatives_back(x, u, gradient)[0]
