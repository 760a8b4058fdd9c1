"""What a fit sees of the data: the difference to a base, with transformed inputs and values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nurf._scaling import LARGEST, Scaling
from nurf._types import Array
from nurf._warping import UNWARPED, Warping
from nurf.estimators._fidelities import NO_BASE, Base
from nurf.jets import Jet
from nurf.networks import Network, PointFunction


@dataclass(frozen=True, eq=False)
class View:
    """The function ``f(x) = rho b(x) + T^-1(g(s(x)))`` for a function ``g`` that is fitted.

    Parameters
    ----------
    base : Base
        ``rho b``.
    warping : Warping
        The curves ``s`` of the inputs and ``T`` of the outputs.
    y_scale : array of shape () or (k,), optional
        The standard deviation of the values of ``f``; None if there is neither a base nor a curve.
    """

    base: Base = NO_BASE
    warping: Warping = UNWARPED
    y_scale: Array | None = None

    @property
    def is_trivial(self) -> bool:
        """Whether the data are fitted as they are."""
        return self.base.model is None and self.warping.is_trivial

    def __call__(self, jet: Jet) -> Jet:
        """Return the jet of ``g`` for a jet of ``f``."""
        return self.warping(self.base.residual(jet))

    def points(self, X: Array) -> Array:
        """Return ``s(x)``."""
        return self.warping.points(X)

    def values_back(self, X: Array, u: Array) -> Array:
        """Return the values of ``f`` at points (..., d) from the values ``u`` of ``g``."""
        return np.asarray(self.warping.values_back(u) + self.base.value(X))

    def derivatives_back(
        self, X: Array, u: Array, gradients: Array, hessians: Array | None = None
    ) -> tuple[Array, Array | None]:
        """Return gradients and Hessians of ``f`` at points (n, d), from values ``u`` and derivatives of ``g``."""
        slopes, bends = self.warping.derivatives_back(X, u, gradients, hessians)
        return slopes + self.base.gradient(X), None if bends is None else bends + self.base.hessian(X)

    def errors_back(self, u: Array, errors: Array, scaling: Scaling) -> Array:
        """Return errors of values of ``f`` in units of ``y_scale``, from scaled errors of the values ``u`` (n, k)."""
        assert self.y_scale is not None
        found = self.warping.errors_back(u, errors * scaling.y_scale)
        with np.errstate(over="ignore"):
            return np.clip(np.ravel(self.base.optimism) * found / np.ravel(self.y_scale), -LARGEST, LARGEST)

    def __str__(self) -> str:
        """Return the base and the curves in words; empty if the data are fitted as they are."""
        return ", ".join(filter(None, (str(self.base), str(self.warping))))


AS_GIVEN = View()


@dataclass(frozen=True, eq=False)
class ViewedNetwork(Network):
    """The function ``f`` of a view, for a network ``g``.

    Parameters
    ----------
    network : Network
        ``g``.
    view : View
    """

    network: Network
    view: View

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
        return self.view.values_back(X, self.network.value(self.view.points(X)))

    def gradient(self, X: Array) -> Array:
        """Return the gradients at the points, of shape (n, d) or (n, k, d)."""
        Z = self.view.points(X)
        return self.view.derivatives_back(X, self.network.value(Z), self.network.gradient(Z))[0]

    def hessian(self, X: Array) -> Array:
        """Return the Hessians at the points, of shape (n, d, d) or (n, k, d, d)."""
        Z, g = self.view.points(X), self.network
        return np.asarray(self.view.derivatives_back(X, g.value(Z), g.gradient(Z), g.hessian(Z))[1])

    def in_units_of(self, scaling: Scaling) -> ViewedNetwork:
        """Return the network ``g`` as a function of unscaled inputs, with unscaled values, in the same view."""
        return ViewedNetwork(self.network.in_units_of(scaling), self.view)


@dataclass(frozen=True, eq=False)
class ViewedFunction:
    """The function ``f`` of a view for a plain function ``g``: of one point (d,) or many points (n, d), not checked.

    Parameters
    ----------
    inner : PointFunction
        ``g``.
    view : View
    """

    inner: PointFunction
    view: View

    def __call__(self, x: Any) -> Any:
        """Return the value at ``x``."""
        x = np.asarray(x, float)
        return (self.view.warping.values_back(self.inner(self.view.points(x))) + self._base(x))[()]

    def gradient(self, x: Any) -> Array:
        """Return the gradient at ``x``."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: Any) -> tuple[Any, Array]:
        """Return both, which costs less than one after the other."""
        x = np.asarray(x, float)
        u, slopes = self.inner.value_and_gradient(self.view.points(x))
        gradient = self.view.warping.derivatives_back(x, u, slopes)[0] + self._base.gradient(x)
        return (self.view.warping.values_back(u) + self._base(x))[()], gradient

    @cached_property
    def _base(self) -> Any:
        return self.view.base.function()
