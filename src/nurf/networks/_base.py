"""The interface of all fitted functions, for all engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from nurf._scaling import Scaling
from nurf._types import Array
from nurf.jets import DERIVATIVE_KINDS, Jet, unchecked


class PointFunction(Protocol):
    """A function of one point (d,) or many points (n, d), without checks of the points, and its gradient."""

    def __call__(self, x: Any) -> Any:
        """Return the value at ``x``."""
        ...

    def gradient(self, x: Any) -> Array:
        """Return the gradient at ``x``."""
        ...

    def value_and_gradient(self, x: Any) -> tuple[Any, Array]:
        """Return the value and the gradient at ``x``, which costs less than two calls."""
        ...


@dataclass(frozen=True, eq=False)
class NetworkFunction:
    """A network as a plain function."""

    network: Network

    def __call__(self, x: Any) -> Any:
        """Return the value at ``x``."""
        return self._at(x, self.network.value)

    def gradient(self, x: Any) -> Array:
        """Return the gradient at ``x``."""
        return np.asarray(self._at(x, self.network.gradient))

    def value_and_gradient(self, x: Any) -> tuple[Any, Array]:
        """Return the value and the gradient at ``x``."""
        return self(x), self.gradient(x)

    def _at(self, x: Any, evaluate: Callable[[Array], Array]) -> Any:
        points = np.asarray(x, float)
        return evaluate(points) if points.ndim == 2 else evaluate(points[None])[0]


class Network(ABC):
    """A function of ``d`` inputs with derivatives, for one output or ``k`` outputs.

    Predictions, reports and plots use only this interface of a fit.
    """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The number ``d`` of inputs."""

    @property
    @abstractmethod
    def output_shape(self) -> tuple[int, ...]:
        """() for one output, (k,) for ``k`` outputs."""

    @property
    @abstractmethod
    def n_derivatives(self) -> int:
        """The highest order of derivatives that exist, at most 2."""

    @abstractmethod
    def value(self, X: Array) -> Array:
        """Return the values at the points, of shape (n,) or (n, k)."""

    @abstractmethod
    def gradient(self, X: Array) -> Array:
        """Return the gradients at the points, of shape (n, d) or (n, k, d)."""

    @abstractmethod
    def hessian(self, X: Array) -> Array:
        """Return the Hessians at the points, of shape (n, d, d) or (n, k, d, d)."""

    @abstractmethod
    def in_units_of(self, scaling: Scaling) -> Self:
        """Return the network as a function of the unscaled inputs, with unscaled values."""

    def function(self, scaling: Scaling) -> PointFunction:
        """Return the network as a plain function of the unscaled inputs."""
        return NetworkFunction(self.in_units_of(scaling))

    @property
    def n_outputs(self) -> int:
        """The number of outputs."""
        return int(np.prod(self.output_shape, dtype=int))

    def errors(self, jet: Jet) -> Array:
        """Return the errors ``y - f(x)`` at the values of a jet and of its functionals, of shape (n, k)."""
        errors = np.asarray(jet.y - self.value(jet.X)).reshape(len(jet), self.n_outputs)
        if jet.functionals is None:
            return errors
        found = jet.functionals.applied(self.value, self.gradient, self.hessian)
        return np.where(jet.has_functional[:, None], jet.targets - found, errors)

    def jet(self, X: Array, kinds: Collection[str] = tuple(DERIVATIVE_KINDS.values())) -> Jet:
        """Return the jet of the network at the points, with the given kinds of derivatives."""
        gradients = self.gradient(X) if "gradients" in kinds else None
        hessians = self.hessian(X) if "hessians" in kinds else None
        return unchecked(X, self.value(X), gradients, hessians)
