"""Scaling of inputs and values; derivatives follow by the chain rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from nurf._linear import LinearRows
from nurf._types import Array
from nurf.jets import DERIVATIVE_KINDS, Jet, spans

Kind = Literal["box", "ball"]
LEAST_VARIATION = 1e-3  # of values relative to functionals, both in scaled units, or they do not show their size
LARGEST = 1e70  # of scaled derivatives, whose fourth powers are below the largest number of 1.8e308


@dataclass(frozen=True, eq=False)
class Extent:
    """The bounding box of points, and the mean and standard deviation of the values. Extents of two sets can be added.

    Attributes
    ----------
    low, high : array of shape (d,)
    weight : float
        Total weight of the values.
    mean, deviation, unit : array of shape () or (k,)
        ``unit`` is the largest absolute value, or one if all are zero.
    """

    low: Array
    high: Array
    weight: float
    mean: Array
    deviation: Array
    unit: Array

    @classmethod
    def of(cls, jet: Jet) -> Extent:
        """Return the extent of a jet whose weights are positive."""
        low, high = jet.places.min(axis=0, initial=np.inf), jet.places.max(axis=0, initial=-np.inf)
        jet = jet.with_values()
        if not len(jet):
            zero = np.zeros(jet.y.shape[1:])
            return cls(low, high, 0.0, zero, zero, zero + 1.0)
        weight = jet.weights(0).sum()
        w = jet.weights(0) / weight
        top = np.abs(jet.y).max(axis=0)
        unit = np.where(top > 0, top, 1.0)  # squares of 1e+200 would overflow, squares of 1e-200 underflow
        first = jet.y[0] / unit  # makes the mean of constant values exact
        mean = first + np.tensordot(w, jet.y / unit - first, axes=1)
        deviation = np.sqrt(np.tensordot(w, (jet.y / unit - mean) ** 2, axes=1))
        return cls(low, high, float(weight), mean * unit, deviation * unit, unit)

    def __add__(self, other: Extent) -> Extent:
        """Return the extent of both sets."""
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        weight = self.weight + other.weight
        if not (self.weight and other.weight):
            known = self if self.weight else other
            return Extent(low, high, weight, known.mean, known.deviation, known.unit)
        mine, others = self.weight / weight, other.weight / weight
        between = np.sqrt(mine * others) * np.abs(other.mean - self.mean)
        within = np.hypot(np.sqrt(mine) * self.deviation, np.sqrt(others) * other.deviation)
        mean = self.mean + others * (other.mean - self.mean)
        return Extent(low, high, weight, mean, np.hypot(within, between), np.maximum(self.unit, other.unit))

    @property
    def center(self) -> Array:
        """The centre of the bounding box."""
        return np.asarray(self.low / 2 + self.high / 2)

    @property
    def half(self) -> Array:
        """Half the sides of the bounding box."""
        return np.asarray(self.high / 2 - self.low / 2)

    def radius(self, X: Array) -> float:
        """Return the largest distance of points from the centre of the bounding box."""
        size = self.half.max()
        relative = (X - self.center) / (size if size > 0 else 1.0)
        return float(size * np.sqrt((relative**2).sum(axis=1).max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class Scaling:
    """An affine scaling ``x -> (x - x_center) / x_scale``, ``y -> (y - y_center) / y_scale``.

    Applied to a jet, it also scales the derivatives, by the chain rule. With ``x_basis`` the scaled inputs are
    projected onto its ``r`` columns: a function ``g(V^T x)`` of the projections has the gradient ``V grad g``.

    Parameters
    ----------
    x_center, x_scale : array of shape (d,)
    y_center, y_scale : array of shape () or (k,)
    x_basis : array of shape (d, r), optional
        ``V``, with orthonormal columns.
    x_rest : array of shape (d,), optional
        The root mean square of the partial derivatives that the projection loses, in scaled units.
    lost : float
        The share of the variance of the values that the projection loses, to first order, at new samples.
    unseen : float
        The part of ``lost`` that errors at the samples cannot detect, because the samples determined ``V``.
    """

    x_center: Array
    x_scale: Array
    y_center: Array
    y_scale: Array
    x_basis: Array | None = None
    x_rest: Array | None = None
    lost: float = 0.0
    unseen: float = 0.0

    @classmethod
    def fit(cls, jet: Jet, kind: Kind | None = "box") -> Scaling:
        """Return the scaling that maps the points into the unit ball and gives the values mean zero and variance one.

        ``"box"`` maps the bounding box of the points onto the cube of side ``2 / sqrt(d)``, for inputs in different
        units. ``"ball"`` moves the centre of the bounding box to the origin and divides all inputs by the same number,
        for inputs in the same units. ``None`` does not scale the inputs. Rows of weight zero are ignored.
        """
        jet = jet.with_positive_weight()
        extent = Extent.of(jet)
        scaling = cls.of(extent, kind, extent.radius(jet.places) if is_ball(kind) else 0.0)
        return scaling if jet.functionals is None else scaling._with_values_of(jet.functionals, extent.deviation)

    def _with_values_of(self, functionals: LinearRows, deviation: Array) -> Scaling:
        """Return the scaling with the size of the functionals as the unit of values that hardly vary themselves.

        Values at the boundary of a region may all be zero, up to rounding errors.
        """
        scaled = self._functionals(functionals).targets[functionals.known] * self.y_scale
        largest = np.abs(scaled).max(axis=0, initial=0.0)
        varied = deviation > LEAST_VARIATION * largest
        return replace(self, y_scale=np.where(varied | (largest == 0), self.y_scale, largest))

    @classmethod
    def of(cls, extent: Extent, kind: Kind | None, radius: float) -> Scaling:
        """Return the scaling for the extent of the data and, for ``"ball"``, the radius of the points."""
        if not (kind is None or (isinstance(kind, str) and kind in ("box", "ball"))):
            raise ValueError(f"`scaling` must be 'box', 'ball' or None, got {kind!r}")
        if not extent.weight > 0:
            raise ValueError("`y` must be known in at least one row, got only NaN")
        center, half = extent.center, extent.half
        if kind is None:
            center, scale = np.zeros_like(center), np.ones_like(half)
        elif kind == "box":
            scale = np.where(half > 0, half, 1.0) * np.sqrt(len(half))
        else:
            scale = np.full_like(half, radius if radius > 0 else 1.0)
        varies = extent.deviation > np.finfo(float).eps * extent.unit  # not by rounding or negligible weights only
        return cls(center, scale, extent.mean, np.where(varies, extent.deviation, extent.unit))

    @property
    def n_inputs(self) -> int:
        """The number of scaled inputs."""
        return int(len(self.x_scale) if self.x_basis is None else self.x_basis.shape[1])

    def inputs(self, X: Array) -> Array:
        """Return scaled points."""
        scaled = (X - self.x_center) / self.x_scale
        return scaled if self.x_basis is None else scaled @ self.x_basis

    def __call__(self, jet: Jet) -> Jet:
        """Return a scaled jet."""
        gradients, hessians, frames = jet.gradients, jet.hessians, jet.frames
        if frames is not None and gradients is not None:
            slopes = np.einsum("n...d,nrd->n...r", gradients, frames, optimize=True) / self.y_scale[..., None]
            frames, gradients = spans(self._along(frames / self.x_scale), slopes)
            if self.x_basis is not None and np.all(frames.any(axis=2).sum(axis=1) == frames.shape[2]):
                frames = None  # the directions span all projected inputs
        elif gradients is not None:
            gradients = self._slopes(gradients) / self.y_scale[..., None]
        if hessians is not None:
            hessians = self._slopes(_turned(self._slopes(_turned(hessians)))) / self.y_scale[..., None, None]
        return Jet(  # validated: derivatives that are finite in the units of the data may overflow in these
            self.inputs(jet.X),
            (jet.y - self.y_center) / self.y_scale,
            gradients,
            hessians,
            jet.sample_weight,
            jet.derivative_weight,
            frames,
            None if jet.functionals is None else self._functionals(jet.functionals),
        )

    def _functionals(self, functionals: LinearRows) -> LinearRows:
        """Return functionals of scaled functions of scaled inputs, in units of the size of each item."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = functionals.mapped(self.inputs, lambda v: self._along(v / self.x_scale))
            scaled = scaled.of_residual(self.y_center, self.y_scale)
            scaled = scaled.over(scaled.units())
            finite = np.all(np.isfinite(scaled.sizes)) and not np.any(np.isinf(scaled.targets))
        if not finite:
            raise ValueError(
                "`functionals` must have finite coefficients and values in units of the ranges of the inputs and of "
                "the standard deviation of the values, got numbers that overflow"
            )
        return scaled

    def values_back(self, y: Array) -> Array:
        """Return scaled values in the original units."""
        return y * self.y_scale + self.y_center

    def gradients_back(self, gradients: Array) -> Array:
        """Return scaled gradients in the original units."""
        return self._slopes_back(gradients * self.y_scale[..., None])

    def gradient_deviations_back(self, deviations: Array) -> Array:
        """Return standard deviations of scaled gradients in the original units.

        Deviations along the basis count as independent. The derivatives that the projection loses are added as errors.
        """
        if self.x_basis is not None:
            variances = deviations**2 @ (self.x_basis**2).T
            deviations = np.sqrt(variances + (0.0 if self.x_rest is None else self.x_rest**2))
        return deviations * self.y_scale[..., None] / self.x_scale

    def slopes_of_inputs(self, gradients: Array) -> Array:
        """Return scaled gradients with respect to all inputs in units of their scales: a projection is undone."""
        return self._along(gradients, back=True)

    def hessians_back(self, hessians: Array) -> Array:
        """Return scaled Hessians in the original units."""
        return self._slopes_back(_turned(self._slopes_back(_turned(hessians * self.y_scale[..., None, None]))))

    def deviations(self, X: Array) -> Array:
        """Return the standard deviations of the inputs in units of their scales, of shape (d,)."""
        return np.asarray(((X - self.x_center) / self.x_scale).std(axis=0))

    def inputs_back(self, X: Array) -> Array:
        """Return points with given scaled inputs, in the span of the basis if there is one."""
        return self.directions_back(X) + self.x_center

    def directions_back(self, directions: Array) -> Array:
        """Return differences of points with given differences of scaled inputs."""
        return np.asarray(self._along(directions, back=True) * self.x_scale)

    def normals_back(self, normals: Array) -> Array:
        """Return linear functions of scaled inputs, the rows of (N, r), as functions of ``x - x_center``, (N, d)."""
        return self._slopes_back(normals)

    def _slopes(self, slopes: Array) -> Array:
        """Convert derivatives with respect to inputs to derivatives with respect to scaled inputs, last axis."""
        if self.x_basis is None:
            return slopes * self.x_scale
        return np.asarray(slopes @ (self.x_scale[:, None] * self.x_basis))

    def _slopes_back(self, slopes: Array) -> Array:
        """Convert derivatives with respect to scaled inputs to derivatives with respect to inputs, last axis."""
        return np.asarray(self._along(slopes, back=True) / self.x_scale)

    def _along(self, vectors: Array, back: bool = False) -> Array:
        """Return the coefficients of vectors along the basis, or vectors in its span from their coefficients."""
        if self.x_basis is None:
            return vectors
        return np.asarray(vectors @ (self.x_basis.T if back else self.x_basis))


def _turned(matrices: Array) -> Array:
    """Return transposed matrices (..., d, d)."""
    return np.swapaxes(matrices, -1, -2)


def is_ball(kind: Kind | None) -> bool:
    """Return whether a scaling needs the radius of the points."""
    return isinstance(kind, str) and kind == "ball"


def require_moderate(jet: Jet) -> None:
    """Raise a ``ValueError`` if derivatives are so large that their fourth powers overflow in scaled units.

    Scaled values vary by about one, and could have such slopes over less than 1e-70 of the data only.
    """
    if not np.any(jet.has_value & (jet.weights(0) > 0)):
        return
    scaling = Scaling.fit(jet)
    for order, kind in DERIVATIVE_KINDS.items():
        array = jet.derivatives(order)
        if array is None:
            continue
        sizes = np.fmax(np.fmax.reduce(array, axis=0), -np.fmin.reduce(array, axis=0))  # NaN if all are unknown
        with np.errstate(over="ignore"):
            scaled = sizes / scaling.y_scale.reshape(*scaling.y_scale.shape, *[1] * order)
            for axis in range(order):
                scaled = scaled * scaling.x_scale.reshape(-1, *[1] * axis)
        if np.any(scaled > LARGEST):
            raise ValueError(
                f"`{kind}` must be at most {LARGEST:g} times the standard deviation of the values over the ranges of "
                f"the inputs, got {np.nanmax(sizes):g}"
            )
