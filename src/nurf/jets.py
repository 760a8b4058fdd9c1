"""Values and derivatives of a function at points, and the chain rule for every change of units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

Kind = Literal["box", "ball"]


@dataclass(frozen=True, eq=False)
class Jet:
    """What is known of a function ``f`` at ``n`` points: values, gradients, Hessians.

    Parameters
    ----------
    X : array of shape (n, d)
        The points.
    y : array of shape (n,) or (n, k)
        The values, of one output or of ``k``.
    gradients : array of shape (n, d) or (n, k, d), optional
        The gradients; NaN where a partial derivative is not known.
    hessians : array of shape (n, d, d) or (n, k, d, d), optional
        The Hessians; NaN where an entry is not known.
    weights : array of shape (n,), optional
        How often each row counts; once by default.

    Examples
    --------
    >>> jet = Jet([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0], gradients=[[0.0], [2.0], [4.0]])
    >>> jet.n_samples, jet.n_features, jet.known
    (3, 1, frozenset({'gradients'}))
    """

    X: Array
    y: Array
    gradients: Array | None = None
    hessians: Array | None = None
    weights: Array | None = None

    def __post_init__(self) -> None:
        X = as_finite("X", self.X)
        if X.ndim != 2:
            raise ValueError(f"`X` must have shape (n, d), got {X.shape}")
        n, d = X.shape
        y = as_finite("y", self.y)
        if y.ndim not in (1, 2) or len(y) != n:
            raise ValueError(f"`y` must have shape (n,) or (n, k) with n = {n}, got {y.shape}")
        outputs = y.shape[1:]
        fields: dict[str, Array | None] = {"X": X, "y": y}
        fields["gradients"] = _derivative("gradients", self.gradients, (n, *outputs, d), ("n", "k", "d"))
        fields["hessians"] = _derivative("hessians", self.hessians, (n, *outputs, d, d), ("n", "k", "d", "d"))
        if self.weights is not None:
            weights = as_finite("weights", self.weights)
            if weights.shape != (n,):
                raise ValueError(f"`weights` must be {n} numbers >= 0, got shape {weights.shape}")
            if np.any(weights < 0):
                raise ValueError(f"`weights` must be {n} numbers >= 0, got {weights.min()}")
            fields["weights"] = weights
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def n_samples(self) -> int:
        """Number of points."""
        return len(self.X)

    @property
    def n_features(self) -> int:
        """Dimension of the points."""
        return int(self.X.shape[1])

    @property
    def known(self) -> frozenset[str]:
        """Which kinds of derivatives are known at one point at least."""
        kinds = {"gradients": self.gradients, "hessians": self.hessians}
        return frozenset(k for k, v in kinds.items() if v is not None and not np.all(np.isnan(v)))

    @property
    def row_weights(self) -> Array:
        """The weights, ones where none were given."""
        return np.ones(self.n_samples) if self.weights is None else self.weights

    def directions(self, order: int) -> Array:
        """Directions in which ``f`` varies at each point, as rows: ``F_k`` of shape (m, d), so (n, m, d) in all.

        The gradients of all outputs for ``order=1``, the rows of all Hessians for ``order=2``, so that
        ``F_k^T F_k`` is the paper's ``g_k g_k^T`` or ``H_k H_k^T`` (sections 4.3 and 4.4). A row that is not
        fully known is zero: it says nothing about where ``f`` varies.
        """
        derivatives = {1: self.gradients, 2: self.hessians}[order]
        assert derivatives is not None
        rows = derivatives.reshape(self.n_samples, -1, self.n_features)
        unknown = np.isnan(rows).any(axis=2, keepdims=True)
        return np.where(unknown, 0.0, rows) if unknown.any() else rows

    def counted(self) -> Jet:
        """Leave out the rows of weight zero."""
        if self.weights is None or np.all(self.weights > 0):
            return self
        if not np.any(self.weights > 0):
            raise ValueError("weights must be positive for one row at least, got zeros only")
        return self[self.weights > 0]

    def __len__(self) -> int:
        return self.n_samples

    def __getitem__(self, rows: Any) -> Jet:
        """Keep the jet at some of the points."""

        def take(array: Array | None) -> Array | None:
            return None if array is None else array[rows]

        return Jet(self.X[rows], self.y[rows], take(self.gradients), take(self.hessians), take(self.weights))

    def __sub__(self, other: Jet) -> Jet:
        """Return the jet of ``f - g`` at the same points, with the derivatives that both have."""
        if self.y.shape != other.y.shape:
            raise ValueError(
                f"jets that are subtracted must have the same shape, got {self.y.shape} and {other.y.shape}"
            )

        def minus(a: Array | None, b: Array | None) -> Array | None:
            return None if a is None or b is None else a - b

        return replace(
            self,
            y=self.y - other.y,
            gradients=minus(self.gradients, other.gradients),
            hessians=minus(self.hessians, other.hessians),
        )


@dataclass(frozen=True, eq=False)
class Scaling:
    """An affine change of units ``x -> (x - x_center) / x_scale``, ``y -> (y - y_center) / y_scale``.

    Applied to a jet it carries the derivatives along by the chain rule.
    """

    x_center: Array
    x_scale: Array
    y_center: Array
    y_scale: Array

    @classmethod
    def fit(cls, jet: Jet, kind: Kind | None = "box") -> Scaling:
        """Find the change of units that puts the points into the unit ball and the values at unit variance.

        ``"box"`` maps the smallest box around the points onto the cube of side ``2 / sqrt(d)`` (each input
        has units of its own); ``"ball"`` moves its centre to the origin and divides all inputs by one
        number (they share their units, and distances keep their meaning); ``None`` leaves the inputs alone.
        """
        jet = jet.counted()
        low, high = jet.X.min(axis=0), jet.X.max(axis=0)
        center, half = low / 2 + high / 2, high / 2 - low / 2
        if kind is None:
            center, scale = np.zeros_like(center), np.ones_like(half)
        elif kind == "box":
            scale = np.where(half > 0, half, 1.0) * np.sqrt(jet.n_features)
        elif kind == "ball":
            size = half.max()
            relative = (jet.X - center) / (size if size > 0 else 1.0)
            radius = size * np.sqrt((relative**2).sum(axis=1).max())
            scale = np.full_like(half, radius if radius > 0 else 1.0)
        else:
            raise ValueError(f"`scaling` must be 'box', 'ball' or None, got {kind!r}")
        w = jet.row_weights / jet.row_weights.sum()
        top = np.abs(jet.y).max(axis=0)
        unit = np.where(top > 0, top, 1.0)  # keeps squares of 1e+200 and 1e-200 finite and nonzero
        first = jet.y[0] / unit  # the mean of a constant is then that constant, however many rows there are
        mean = first + np.tensordot(w, jet.y / unit - first, axes=1)
        deviation = np.sqrt(np.tensordot(w, (jet.y / unit - mean) ** 2, axes=1))
        return cls(center, scale, mean * unit, np.where(deviation > 0, deviation, 1.0) * unit)

    def inputs(self, X: Array) -> Array:
        """Scale points."""
        return (X - self.x_center) / self.x_scale

    def __call__(self, jet: Jet) -> Jet:
        """Scale a jet."""
        gradients, hessians = jet.gradients, jet.hessians
        if gradients is not None:
            gradients = gradients * self.x_scale / self.y_scale[..., None]
        if hessians is not None:
            hessians = hessians * self.x_scale[:, None] * self.x_scale / self.y_scale[..., None, None]
        return Jet(self.inputs(jet.X), (jet.y - self.y_center) / self.y_scale, gradients, hessians, jet.weights)

    def values_back(self, y: Array) -> Array:
        """Return values to the user's units."""
        return y * self.y_scale + self.y_center

    def gradients_back(self, gradients: Array) -> Array:
        """Return gradients to the user's units."""
        return gradients * self.y_scale[..., None] / self.x_scale

    def hessians_back(self, hessians: Array) -> Array:
        """Return Hessians to the user's units."""
        return hessians * self.y_scale[..., None, None] / self.x_scale[:, None] / self.x_scale


def as_finite(name: str, value: Any) -> Array:
    """Return ``value`` as an array of finite numbers, or say which entry of ``name`` is not one."""
    array = np.asarray(value, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        bad = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
        raise ValueError(f"`{name}` must be finite, got {array[bad]} at index {bad}")
    return array


def _derivative(name: str, value: Any, shape: tuple[int, ...], letters: tuple[str, ...]) -> Array | None:
    """Check an array of derivatives against the shape that the points and values ask for."""
    if value is None:
        return None
    array = np.asarray(value, dtype=np.float64)
    if array.shape != shape:
        names = letters if len(shape) == len(letters) else tuple(c for c in letters if c != "k")
        hint = ": transpose it?" if array.ndim == len(shape) and sorted(array.shape) == sorted(shape) else ""
        raise ValueError(f"`{name}` must have shape ({', '.join(names)}) = {shape}, got {array.shape}{hint}")
    if np.any(np.isinf(array)):
        bad = tuple(map(int, np.argwhere(np.isinf(array))[0]))
        raise ValueError(f"`{name}` must be finite, or NaN where not known, got {array[bad]} at index {bad}")
    return array
