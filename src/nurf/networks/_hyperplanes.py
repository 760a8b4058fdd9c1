"""Hyperplanes ``{x : a.x + b = 0}`` with unit normals ``a``, and domains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nurf._types import Array
from nurf._validation import is_number


@dataclass(frozen=True, eq=False)
class Hyperplanes:
    """``N`` hyperplanes ``a_n.x + b_n = 0`` with ``|a_n| = 1``.

    Parameters
    ----------
    normals : array of shape (N, d)
        The unit normals ``a_n``.
    offsets : array of shape (N,)
        The offsets ``b_n``.

    Examples
    --------
    >>> planes = Hyperplanes.through([[1.0, 2.0]], [[0.0, 3.0]])
    >>> planes.normals, planes.offsets
    (array([[0., 1.]]), array([-2.]))
    """

    normals: Array
    offsets: Array

    def __post_init__(self) -> None:
        normals, offsets = np.asarray(self.normals, float), np.asarray(self.offsets, float)
        if normals.ndim != 2 or offsets.shape != normals.shape[:1]:
            raise ValueError(
                f"`normals` must have shape (N, d) and `offsets` (N,), got {normals.shape} and {offsets.shape}"
            )
        lengths = np.linalg.norm(normals, axis=1)
        if not np.all(np.isfinite(offsets)):
            raise ValueError(f"`offsets` must be finite, got {offsets[~np.isfinite(offsets)][0]}")
        if not np.all(np.abs(lengths - 1) < 1e-6):
            worst = lengths[np.argmax(~(np.abs(lengths - 1) < 1e-6))]
            raise ValueError(f"`normals` must have length 1, got one of length {worst:.6g}")
        object.__setattr__(self, "normals", normals)
        object.__setattr__(self, "offsets", offsets)

    @classmethod
    def through(cls, points: Any, directions: Any, shift: Any = 0.0) -> Hyperplanes:
        """Return hyperplanes with normals along ``directions`` (of any length) and ``a.x + b = shift`` at ``points``.

        With the default ``shift=0``, the hyperplanes pass through the points.
        """
        normals = normalised(np.asarray(directions, float))
        return cls(normals, shift - np.einsum("nd,nd->n", normals, np.asarray(points, float)))

    @property
    def dimension(self) -> int:
        """Dimension ``d`` of the space."""
        return int(self.normals.shape[1])

    def signed_distance(self, X: Array) -> Array:
        """Return ``a_n.x_k + b_n`` for all points and hyperplanes, of shape (n, N)."""
        return np.asarray(X @ self.normals.T + self.offsets)

    def __len__(self) -> int:
        return len(self.offsets)

    def __getitem__(self, index: Any) -> Hyperplanes:
        """Return the hyperplanes ``index``."""
        return Hyperplanes(self.normals[index], self.offsets[index])

    def __add__(self, other: Hyperplanes) -> Hyperplanes:
        """Return all hyperplanes, followed by the hyperplanes of ``other``."""
        return Hyperplanes(np.concatenate([self.normals, other.normals]), np.concatenate([self.offsets, other.offsets]))


def normalised(directions: Array) -> Array:
    """Return the rows of ``directions`` divided by their lengths, without overflow or underflow."""
    largest = np.abs(directions).max(axis=1, keepdims=True, initial=0.0)
    if not np.all(largest > 0):
        raise ValueError(f"directions must have nonzero length, got {directions[np.argmin(largest)]}")
    directions = directions / largest
    return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))


class Domain(Protocol):
    """A bounded convex set."""

    @property
    def max_norm(self) -> float:
        """The maximum of ``|x|`` over the domain."""
        ...

    def offset_range(self, normals: Array) -> tuple[Array, Array]:
        """Return the smallest and largest ``b`` such that ``a.x + b = 0`` intersects the domain, for each normal."""
        ...


@dataclass(frozen=True)
class Ball:
    """The ball of the given ``radius`` around the origin."""

    radius: float = 1.0

    def __post_init__(self) -> None:
        if not (is_number(self.radius) and self.radius > 0):
            raise ValueError(f"`radius` must be a number > 0, got {self.radius!r}")

    @property
    def max_norm(self) -> float:
        """The maximum of ``|x|`` over the ball: its radius."""
        return float(self.radius)

    def offset_range(self, normals: Array) -> tuple[Array, Array]:
        """Return ``-R`` and ``R`` for each normal."""
        radii = np.full(len(normals), float(self.radius))
        return -radii, radii


@dataclass(frozen=True, eq=False)
class Box:
    """The box ``lower <= x <= upper``."""

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        lower, upper = (
            np.atleast_1d(np.asarray(self.lower, float)),
            np.atleast_1d(np.asarray(self.upper, float)),
        )
        if lower.ndim != 1 or lower.shape != upper.shape or not np.all((lower < upper) & np.isfinite(upper - lower)):
            raise ValueError(f"a box needs finite lower < upper, both of shape (d,), got {lower} and {upper}")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @classmethod
    def around(cls, X: Any) -> Box:
        """Return the bounding box of points (n, d); a side of length zero becomes as long as the longest one.

        >>> Box.around([[0.0, 1.0], [4.0, 1.0]])
        Box(lower=array([ 0., -1.]), upper=array([4., 3.]))
        """
        X = np.asarray(X, float)
        lower, upper = X.min(axis=0), X.max(axis=0)
        longest = np.max(upper - lower) or 1.0
        margin = np.where(upper > lower, 0.0, longest / 2)
        return cls(lower - margin, upper + margin)

    @property
    def max_norm(self) -> float:
        """The maximum of ``|x|`` over the box: the distance of the farthest corner from the origin."""
        return float(np.linalg.norm(np.maximum(np.abs(self.lower), np.abs(self.upper))))

    def offset_range(self, normals: Array) -> tuple[Array, Array]:
        """Return ``-max a.x`` and ``-min a.x`` over the corners, for each normal ``a``."""
        center = normals @ (self.lower + self.upper) / 2
        half_width = np.abs(normals) @ (self.upper - self.lower) / 2
        return -center - half_width, -center + half_width
