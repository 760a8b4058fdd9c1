"""The base class of the test problems: scaling into the unit ball, validation, sampling, jets."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from nurf._types import Array
from nurf._validation import as_finite
from nurf.jets import Jet
from nurf.networks import Box

PAPER = "K. Pieper, Z. Zhang, G. Zhang, Nonuniform random feature models using derivative information"
LIBRARY = "S. Surjanovic, D. Bingham, Virtual Library of Simulation Experiments: Test Functions and Datasets"


@dataclass(frozen=True)
class Problem(ABC):
    """A function with exact gradients and Hessians on a box, which is scaled into the unit ball.

    The scaled domain is the cube ``[-1/sqrt(d), 1/sqrt(d)]^d`` (paper, section 5). If the domain in native units is the
    box with centre ``m`` and half side lengths ``h``, then ``x_native = m + sqrt(d) h * x``, and derivatives follow by
    the chain rule. If ``native`` is True, then ``domain``, all points and all derivatives are in native units. Points
    outside the domain are allowed if the function is defined there.

    A subclass implements ``_value``, ``_gradient`` and ``_hessian`` in native units, for rows ``x`` of shape (n, d). It
    defines its ``name``, its ``source``, the smallest and largest of its ``dimensions`` (None: no limit), and its
    ``native_domain`` if this is not the scaled cube.

    Parameters
    ----------
    dimension : int
        The number of inputs ``d``.
    native : bool, default=False
        Whether points and derivatives are in native units.

    Examples
    --------
    >>> from nurf import problems
    >>> problem = problems.get("corner_peak", dimension=3)
    >>> problem.value(problem.from_native([[0.0, 0.0, 0.0]]))
    array([10.])
    >>> problems.get("corner_peak", dimension=3, native=True).gradient([[0.0, 0.0, 0.0]])
    array([[-80., -80., -80.]])
    """

    name: ClassVar[str]
    source: ClassVar[str]
    dimensions: ClassVar[tuple[int, int | None]]

    dimension: int
    native: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        lowest, highest = self.dimensions
        wanted = f"{lowest}" if lowest == highest else f"an integer >= {lowest}"
        try:
            dimension = operator.index(self.dimension)
        except TypeError:
            dimension = lowest - 1
        if dimension < lowest or (highest is not None and dimension > highest):
            raise ValueError(f"`dimension` of {self.name!r} must be {wanted}, got {self.dimension!r}")
        object.__setattr__(self, "dimension", dimension)

    @abstractmethod
    def _value(self, x: Array) -> Array:
        """Return ``f`` at the rows of ``x``, of shape (n,)."""

    @abstractmethod
    def _gradient(self, x: Array) -> Array:
        """Return the gradients at the rows of ``x``, of shape (n, d)."""

    @abstractmethod
    def _hessian(self, x: Array) -> Array:
        """Return the Hessians at the rows of ``x``, of shape (n, d, d)."""

    @property
    def native_domain(self) -> Box:
        """The domain in native units. Default is the scaled cube."""
        return _cube(self.dimension)

    @property
    def domain(self) -> Box:
        """The domain, in the units of this problem."""
        return self.native_domain if self.native else _cube(self.dimension)

    def to_native(self, X: Any) -> Array:
        """Return points (n, d) in native units, given in the units of this problem."""
        center, scale = self._units()
        return np.asarray(center + scale * self._points(X))

    def from_native(self, X: Any) -> Array:
        """Return points (n, d) in the units of this problem, given in native units."""
        center, scale = self._units()
        return np.asarray((self._points(X) - center) / scale)

    def value(self, X: Any) -> Array:
        """Return ``f`` at the rows of ``X``, of shape (n,)."""
        return self._value(self.to_native(X))

    def gradient(self, X: Any) -> Array:
        """Return the gradients at the rows of ``X``, of shape (n, d)."""
        _, scale = self._units()
        return np.asarray(self._gradient(self.to_native(X)) * scale)

    def hessian(self, X: Any) -> Array:
        """Return the Hessians at the rows of ``X``, of shape (n, d, d)."""
        _, scale = self._units()
        return np.asarray(self._hessian(self.to_native(X)) * np.outer(scale, scale))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return ``n`` i.i.d. uniform points in the domain, of shape (n, d)."""
        box = self.domain
        return _generator(rng).uniform(box.lower, box.upper, size=(n, self.dimension))

    def grid(self, n_per_axis: int) -> Array:
        """Return an equispaced grid that includes the boundary of the domain, of shape (n_per_axis^d, d).

        The last coordinate varies fastest. The paper uses ``grid(1000)`` for d = 1 and ``grid(31)`` for d = 2.
        """
        if n_per_axis < 2:
            raise ValueError(f"`n_per_axis` must be at least 2, to include both end points, got {n_per_axis}")
        box = self.domain
        axes = np.linspace(box.lower, box.upper, n_per_axis).T
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.dimension)

    def jet(self, X: Any, noise: float = 0.0, rng: np.random.Generator | None = None) -> Jet:
        """Return values, gradients and Hessians at the rows of ``X``.

        Parameters
        ----------
        X : array of shape (n, d)
            The points, in the units of this problem.
        noise : float, default=0
            Standard deviation of Gaussian noise that is added to the values. The derivatives are exact.
        rng : numpy.random.Generator, optional
            Random generator for the noise; required if ``noise > 0``.
        """
        if not (np.isfinite(noise) and noise >= 0):
            raise ValueError(f"`noise` must be a standard deviation >= 0, got {noise}")
        X = self._points(X)
        y = self.value(X)
        if noise > 0:
            if rng is None:
                raise ValueError(f"`noise` = {noise} needs an `rng`: pass np.random.default_rng(seed)")
            y = y + noise * _generator(rng).standard_normal(len(y))
        return Jet(X, y, self.gradient(X), self.hessian(X))

    def _units(self) -> tuple[Array, Array]:
        """Return ``m`` and ``s`` with ``x_native = m + s x``."""
        if self.native:
            return np.zeros(self.dimension), np.ones(self.dimension)
        box = self.native_domain
        return (box.lower + box.upper) / 2, (box.upper - box.lower) / 2 / _cube(self.dimension).upper

    def _points(self, X: Any) -> Array:
        """Return points as a float array; raise a ``ValueError`` if they have the wrong shape or are not finite."""
        points = as_finite("X", X)
        if points.ndim != 2 or points.shape[1] != self.dimension:
            transposed = points.ndim == 2 and len(points) == self.dimension
            hint = ": transpose it?" if transposed else ""
            raise ValueError(f"`X` must have shape (n, d): expected (n, {self.dimension}), got {points.shape}{hint}")
        return points


def _cube(dimension: int) -> Box:
    """Return the cube around the origin with its corners on the unit sphere."""
    half_side = np.full(dimension, 1 / np.sqrt(dimension))
    return Box(-half_side, half_side)


def _generator(rng: Any) -> np.random.Generator:
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"`rng` must be a numpy.random.Generator, got {rng!r}: use np.random.default_rng(seed)")
    return rng
