"""Values and derivatives of a function at points."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from nurf._types import Array, Mask
from nurf._validation import as_derivative, as_finite, as_finite_or_nan, as_weights
from nurf.differentiation import Backend, derivatives

DERIVATIVE_KINDS = {1: "gradients", 2: "hessians"}  # order of the derivatives -> field of a jet


@dataclass(frozen=True, eq=False)
class Jet:
    """What is known of a function ``f`` at ``n`` points: values, gradients, Hessians.

    Parameters
    ----------
    X : array of shape (n, d)
        The points.
    y : array of shape (n,) or (n, k)
        The values of one output or of ``k`` outputs. NaN in all outputs of a row if only derivatives are known there.
    gradients : array of shape (n, d) or (n, k, d), optional
        The gradients. Unknown partial derivatives are NaN. If there are ``frames``, the projections of the gradients
        onto their span.
    hessians : array of shape (n, d, d) or (n, k, d, d), optional
        The Hessians. Unknown entries are NaN.
    sample_weight : array of shape (n,), optional
        Sample weights. Default is one for each row.
    derivative_weight : array of shape (n,), optional
        Weights of the derivatives of each row. Default is ``sample_weight``.
    frames : array of shape (n, r, d), optional
        Orthonormal directions along which the gradients are known, if they are known along some directions only. Rows
        with fewer than ``r`` directions are padded with zeros. See ``Jet.along``.

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
    sample_weight: Array | None = None
    derivative_weight: Array | None = None
    frames: Array | None = None

    def __post_init__(self) -> None:
        X = as_finite("X", self.X)
        if X.ndim != 2:
            raise ValueError(f"`X` must have shape (n, d), got {X.shape}")
        n, d = X.shape
        y = as_finite_or_nan("y", self.y)
        if y.ndim not in (1, 2) or len(y) != n:
            raise ValueError(f"`y` must have shape (n,) or (n, k) with n = {n}, got {y.shape}")
        unknown = np.isnan(y if y.ndim == 2 else y[:, None])
        if np.any(unknown.any(axis=1) != unknown.all(axis=1)):
            row = int(np.argmax(unknown.any(axis=1) != unknown.all(axis=1)))
            raise ValueError(f"`y` must be known for all outputs of a row or for none, got {y[row]} in row {row}")
        outputs = y.shape[1:]
        fields: dict[str, Array | None] = {"X": X, "y": y}
        fields["gradients"] = as_derivative("gradients", self.gradients, (n, *outputs, d), ("n", "k", "d"))
        fields["hessians"] = as_derivative("hessians", self.hessians, (n, *outputs, d, d), ("n", "k", "d", "d"))
        fields["sample_weight"] = as_weights("sample_weight", self.sample_weight, n)
        fields["derivative_weight"] = as_weights("derivative_weight", self.derivative_weight, n)
        if self.frames is not None:
            frames = as_finite("frames", self.frames)
            if frames.ndim != 3 or (len(frames), frames.shape[2]) != (n, d):
                raise ValueError(f"`frames` must have shape (n, r, d) with n = {n}, d = {d}, got {frames.shape}")
            units = np.eye(frames.shape[1]) * np.asarray(frames.any(axis=2))[:, :, None]
            wrong = np.abs(frames @ np.swapaxes(frames, 1, 2) - units).max(axis=(1, 2), initial=0.0) > 1e-6
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(
                    f"`frames` must be orthonormal directions and zeros, got {frames[row].tolist()} in row {row}: "
                    "use `Jet.along`"
                )
            fields["frames"] = frames
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def along(cls, X: Any, y: Any, directions: Any, slopes: Any, sample_weight: Any = None) -> Jet:
        """Make a jet from derivatives along given directions, as Jacobian-vector products give them.

        Parameters
        ----------
        X, y, sample_weight
            See ``Jet``.
        directions : array of shape (n, d) or (n, m, d)
            One direction ``v`` at each point, or ``m``.
        slopes : array of shape (n,) or (n, m), with outputs (n, k) or (n, k, m)
            The derivatives ``v . grad f``; NaN where not known.

        Examples
        --------
        >>> jet = Jet.along([[0.0, 0.0]], [1.0], directions=[[3.0, 4.0]], slopes=[10.0])
        >>> jet.gradients
        array([[1.2, 1.6]])
        """
        X, y, V = as_finite("X", X), np.asarray(y, float), as_finite("directions", directions)
        slopes = as_finite_or_nan("slopes", slopes)
        if V.ndim == 2:
            V, slopes = V[:, None, :], slopes[..., None]
        if V.ndim != 3 or V.shape[::2] != X.shape:
            raise ValueError(
                f"`directions` must have shape (n, d) or (n, m, d) with (n, d) = {X.shape}, got {np.shape(directions)}"
            )
        expected = (*y.shape, V.shape[1])
        if slopes.shape != expected:
            raise ValueError(f"`slopes` must be a number for each value and direction, {expected}, got {slopes.shape}")
        known = ~np.isnan(slopes).reshape(len(X), -1, V.shape[1]).any(axis=1)
        frames, gradients = spans(np.where(known[..., None], V, 0.0), np.where(np.isnan(slopes), 0.0, slopes))
        return cls(X, y, gradients, sample_weight=sample_weight, frames=frames)

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
        if self.frames is not None and not self.frames.any():
            del kinds["gradients"]
        return frozenset(k for k, v in kinds.items() if v is not None and not np.all(np.isnan(v)))

    @property
    def has_value(self) -> Mask:
        """Which rows have values, of shape (n,)."""
        return np.asarray(~np.isnan(self.y if self.y.ndim == 1 else self.y[:, 0]))

    def weights(self, order: int) -> Array:
        """Return the weights of the values (``order=0``) or of the derivatives (1, 2), of shape (n,)."""
        if order and self.derivative_weight is not None:
            return self.derivative_weight
        return np.ones(self.n_samples) if self.sample_weight is None else self.sample_weight

    def derivatives(self, order: int) -> Array | None:
        """Return the gradients for ``order=1``, the Hessians for ``order=2``."""
        derivatives: Array | None = getattr(self, DERIVATIVE_KINDS[order])
        return derivatives

    def derivative_rows(self, order: int) -> Array:
        """Directions in which ``f`` varies at each point, as rows: ``F_k`` of shape (m, d), so (n, m, d) in all.

        The gradients of all outputs for ``order=1``, the rows of all Hessians for ``order=2``, so that
        ``F_k^T F_k`` is the paper's ``g_k g_k^T`` or ``H_k H_k^T`` (sections 4.3 and 4.4). An entry that is not known
        is zero: of a gradient that is known in part, its projection onto what is known is left.
        """
        derivatives = self.derivatives(order)
        assert derivatives is not None
        rows = derivatives.reshape(self.n_samples, -1, self.n_features)
        unknown = np.isnan(rows)
        return np.where(unknown, 0.0, rows) if unknown.any() else rows

    def with_positive_weight(self) -> Jet:
        """Return the jet without the rows of weight zero."""
        if self.sample_weight is None or np.all(self.sample_weight > 0):
            return self
        if not np.any(self.sample_weight > 0):
            raise ValueError("`sample_weight` must be positive for at least one row, got zeros only")
        return self[self.sample_weight > 0]

    def only(self, kinds: Collection[str]) -> Jet:
        """Return the values with the named kinds of derivatives, without the rows of which nothing is left."""
        dropped = set(DERIVATIVE_KINDS.values()) - set(kinds)
        fields: dict[str, Any] = dict.fromkeys(dropped) | ({"frames": None} if "gradients" in dropped else {})
        jet = self._with(**fields, derivative_weight=self.derivative_weight if kinds else None)
        return jet if kinds else jet.with_values()

    def _with(self, **fields: Any) -> Jet:
        """Return a copy with other fields. They come from checked jets, so they are not checked again."""
        jet = object.__new__(Jet)
        jet.__dict__.update(vars(self) | fields)
        return jet

    def with_values(self) -> Jet:
        """Return the jet without the rows whose values are not known."""
        return self if self.has_value.all() else self[self.has_value]

    def filled(self, other: Jet) -> Jet:
        """Take the derivatives that are not known from ``other``, a jet at the same points."""

        def fill(mine: Array | None, others: Array | None) -> Array | None:
            return others if mine is None else mine if others is None else np.where(np.isnan(mine), others, mine)

        guess = other.gradients
        if self.gradients is not None and self.frames is not None and guess is not None:
            rows = guess.reshape(len(self), -1, self.n_features)
            across = rows - rows @ np.swapaxes(self.frames, 1, 2) @ self.frames
            guess = self.gradients + across.reshape(guess.shape)
            return self._with(gradients=guess, hessians=fill(self.hessians, other.hessians), frames=None)
        gradients, hessians = fill(self.gradients, guess), fill(self.hessians, other.hessians)
        return self._with(gradients=gradients, hessians=hessians)

    def __len__(self) -> int:
        return self.n_samples

    def __getitem__(self, rows: Any) -> Jet:
        """Keep the jet at some of the points."""

        def take(array: Array | None) -> Array | None:
            return None if array is None else array[rows]

        return self._with(**{name: take(array) for name, array in vars(self).items()})

    def __add__(self, other: Jet) -> Jet:
        """Put the points of ``other`` behind these; what only one of the two knows is unknown for the other."""
        if self.y.shape[1:] != other.y.shape[1:] or self.n_features != other.n_features:
            raise ValueError(
                f"joined jets must have the same inputs and outputs, got {self.n_features} and {self.y.shape[1:]}, "
                f"and {other.n_features} and {other.y.shape[1:]}"
            )

        def joined(a: Array | None, b: Array | None, fill_a: Any, fill_b: Any) -> Array | None:
            if a is None and b is None:
                return None
            return np.concatenate([fill_a() if a is None else a, fill_b() if b is None else b])

        def unknown(jet: Jet, axes: int) -> Any:
            return lambda: np.full((*jet.y.shape, *[jet.n_features] * axes), np.nan)

        a, b = self._framed(other), other._framed(self)
        return Jet(
            np.concatenate([a.X, b.X]),
            np.concatenate([a.y, b.y]),
            joined(a.gradients, b.gradients, unknown(a, 1), unknown(b, 1)),
            joined(a.hessians, b.hessians, unknown(a, 2), unknown(b, 2)),
            joined(a.sample_weight, b.sample_weight, lambda: a.weights(0), lambda: b.weights(0)),
            joined(a.derivative_weight, b.derivative_weight, lambda: a.weights(1), lambda: b.weights(1)),
            joined(a.frames, b.frames, None, None),
        )

    def _framed(self, other: Jet) -> Jet:
        """Give the jet frames as wide as those of ``other``, if that has some."""
        if self.frames is None and other.frames is None:
            return self
        n, d = self.X.shape
        width = max(jet._frame_width() for jet in (self, other))
        if self.frames is not None:
            padding = np.zeros((n, width - self.frames.shape[1], d))
            return self._with(frames=np.concatenate([self.frames, padding], axis=1))
        if self.gradients is None:
            return self._with(frames=np.zeros((n, width, d)))
        known = ~np.isnan(self.gradients.reshape(n, -1, d)).any(axis=1)
        frames = np.zeros((n, width, d))
        frames[:, range(d), range(d)] = known
        unknown = ~np.broadcast_to(known.reshape(n, *[1] * (self.y.ndim - 1), d), self.gradients.shape)
        return self._with(gradients=np.where(unknown, 0.0, self.gradients), frames=frames)

    def _frame_width(self) -> int:
        """Return how many directions it takes to hold the gradients at one point."""
        if self.frames is not None:
            return int(self.frames.shape[1])
        return 0 if self.gradients is None else self.n_features

    def __sub__(self, other: Jet) -> Jet:
        """Return the jet of ``f - g`` at the same points, with the derivatives that both have."""
        if self.y.shape != other.y.shape:
            raise ValueError(
                f"jets that are subtracted must have the same shape, got {self.y.shape} and {other.y.shape}"
            )

        def minus(a: Array | None, b: Array | None) -> Array | None:
            return None if a is None or b is None else a - b

        gradients = minus(self.gradients, other.gradients)
        if gradients is not None and self.frames is not None:
            rows = gradients.reshape(len(self), -1, self.n_features)
            gradients = np.reshape(rows @ np.swapaxes(self.frames, 1, 2) @ self.frames, gradients.shape)
        return self._with(
            y=self.y - other.y,
            gradients=gradients,
            hessians=minus(self.hessians, other.hessians),
        )


def from_callable(f: Callable[[Any], Any], X: Any, *, order: int = 1, backend: Backend = "auto") -> Jet:
    """Return the jet of a Python function, with derivatives by JAX, torch or finite differences.

    Parameters
    ----------
    f : callable
        From one point (d,) to a number or ``k`` of them, or from all points (n, d) to (n,) or (n, k).
    X : array of shape (n, d)
    order : {1, 2}, default 1
        Whether Hessians are wanted too.
    backend : {"auto", "jax", "torch", "finite_differences", "complex_step"}, default "auto"
        See ``nurf.differentiation.derivatives``; "auto" takes what ``f`` is written in.

    Examples
    --------
    >>> jet = from_callable(lambda x: x[0] ** 2 * x[1], [[1.0, 3.0], [2.0, 1.0]])
    >>> jet.gradients.round(6)
    array([[6., 1.],
           [4., 4.]])
    """
    return Jet(np.asarray(X, float), *derivatives(f, X, order=order, backend=backend))


def spans(directions: Array, slopes: Array) -> tuple[Array, Array]:
    """Return orthonormal frames (n, r, d) of the ``directions`` (n, m, d), and the part of the gradients in them.

    ``slopes`` (n, [k,] m) are the derivatives along the directions. The gradient of least length that has them (in the
    sense of least squares where directions depend on each other) is ``V^+ slopes``, by the singular values of ``V``.
    """
    sizes = np.linalg.norm(directions, axis=2, keepdims=True)
    units = np.divide(directions, sizes, where=sizes > 0, out=np.zeros_like(directions))
    lengths = sizes[..., 0].reshape(len(slopes), *[1] * (slopes.ndim - 2), -1)
    scaled = slopes / np.where(lengths > 0, lengths, 1.0)
    left, values, frames = np.linalg.svd(units, full_matrices=False)
    kept = values > 1e-8 * np.maximum(values[:, :1], np.finfo(float).tiny)
    frames = np.where(kept[..., None], frames, 0.0)
    inverse = np.divide(1.0, values, where=kept, out=np.zeros_like(values))
    along = np.einsum("n...m,nmr,nr->n...r", scaled, left, inverse)
    return frames, np.einsum("n...r,nrd->n...d", along, frames)
