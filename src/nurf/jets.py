"""Values and derivatives of a function at points."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nurf._linear import LinearRows
from nurf._types import Array, Mask
from nurf._validation import as_derivative, as_finite, as_finite_or_nan, as_weights, in_shape
from nurf.differentiation import Backend, derivatives

__all__ = ["Jet", "from_callable"]

LEAST_VALUES = 3  # that judge predictions beside functionals: fewer errors tell nothing of their size
DERIVATIVE_KINDS = {1: "gradients", 2: "hessians"}  # order -> name of the derivatives, as in the fields of a jet


@dataclass(frozen=True, eq=False)
class Jet:
    """Values, gradients and Hessians of a function ``f`` at ``n`` points.

    Parameters
    ----------
    X : array of shape (n, d)
        The points.
    y : array of shape (n,) or (n, k)
        The values of one output or of ``k`` outputs. NaN in all outputs of a row if only derivatives are known there.
    gradients : array of shape (n, d) or (n, k, d), optional
        The gradients. Unknown partial derivatives are NaN. If there are ``frames``, the projections of the gradients
        onto their span. Axes of length one may be omitted or added, as for Hessians: the axis of a single output is
        optional.
    hessians : array of shape (n, d, d) or (n, k, d, d), optional
        The Hessians. Unknown entries are NaN.
    sample_weight : array of shape (n,), optional
        Sample weights. Default is one for each row.
    derivative_weight : array of shape (n,), optional
        Weights of the derivatives of each row. Default is ``sample_weight``.
    frames : array of shape (n, r, d), optional
        Orthonormal directions along which the gradients are known, if they are known along some directions only. Rows
        with fewer than ``r`` directions are padded with zeros. See ``Jet.along``.
    functionals : LinearRows, optional
        Linear functionals of which the values are known, one for each row or none. Their rows have no other data. See
        ``nurf.functionals``.

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
    functionals: LinearRows | None = None

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
        if self.functionals is not None and self.functionals.targets.shape != y.shape:
            raise ValueError(
                f"`functionals` must have values of the shape of `y`, {y.shape}, got {self.functionals.targets.shape}"
            )
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def along(cls, X: Any, y: Any, directions: Any, slopes: Any, sample_weight: Any = None) -> Jet:
        """Return a jet from directional derivatives, such as Jacobian-vector products.

        Parameters
        ----------
        X, y, sample_weight
            See ``Jet``.
        directions : array of shape (n, d) or (n, m, d)
            One direction ``v`` at each point, or ``m`` of them.
        slopes : array of shape (n,) or (n, m), with outputs (n, k) or (n, k, m)
            The directional derivatives ``v . grad f``; NaN if unknown.

        Examples
        --------
        >>> jet = Jet.along([[0.0, 0.0]], [1.0], directions=[[3.0, 4.0]], slopes=[10.0])
        >>> jet.gradients
        array([[1.2, 1.6]])
        """
        X, y = as_finite("X", X), as_finite_or_nan("y", y)
        frames, gradients = projections("slopes", slopes, directions, X, y)
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
        """The kinds of derivatives that are known at one or more points: "gradients", "hessians"."""
        return frozenset(kind for order, kind in DERIVATIVE_KINDS.items() if self.has_derivative(order).any())

    @property
    def has_value(self) -> Mask:
        """Mask of the rows whose values are known, of shape (n,)."""
        return np.asarray(~np.isnan(self.y if self.y.ndim == 1 else self.y[:, 0]))

    @property
    def has_functional(self) -> Mask:
        """Mask of the rows with a functional of which the value is known, of shape (n,)."""
        return np.zeros(len(self), bool) if self.functionals is None else self.functionals.known

    @property
    def has_target(self) -> Mask:
        """Mask of the rows of which a value is known, at the point or of a functional, of shape (n,)."""
        return self.has_value if self.functionals is None else self.has_value | self.has_functional

    @property
    def judges(self) -> Mask:
        """Mask of the rows at which predictions are judged, of shape (n,): values, and functionals if there are some.

        Beside functionals, very few values do not judge: often nothing else determines them.
        """
        if self.functionals is None or np.count_nonzero(self.has_value) >= LEAST_VALUES:
            return self.has_target
        return self.has_functional

    @property
    def targets(self) -> Array:
        """The values of all rows, at the points or of their functionals, of shape (n, k); NaN if unknown."""
        y = self.y.reshape(len(self), int(np.prod(self.y.shape[1:], dtype=int)))
        if self.functionals is None:
            return y
        return np.where(self.has_functional[:, None], self.functionals.targets.reshape(y.shape), y)

    @property
    def places(self) -> Array:
        """The points of all rows and of all terms of functionals, of shape (m, d)."""
        return self.X if self.functionals is None else np.concatenate([self.X, self.functionals.points])

    def has_derivative(self, order: int) -> Mask:
        """Return the mask of the rows where derivatives of the ``order`` are at least partly known, of shape (n,)."""
        derivatives = self.derivatives(order)
        if derivatives is None:
            return np.zeros(len(self), bool)
        known = ~np.isnan(derivatives) if order == 2 or self.frames is None else self.frames != 0
        return np.asarray(known.any(axis=tuple(range(1, known.ndim))))

    def weights(self, order: int) -> Array:
        """Return the weights of the values (``order=0``) or of the derivatives (``order=1`` or 2), of shape (n,)."""
        if order and self.derivative_weight is not None:
            return self.derivative_weight
        return np.ones(self.n_samples) if self.sample_weight is None else self.sample_weight

    def derivatives(self, order: int) -> Array | None:
        """Return the gradients for ``order=1`` or the Hessians for ``order=2``; None if there are none."""
        array: Array | None = getattr(self, DERIVATIVE_KINDS[order])
        return array

    def derivative_rows(self, order: int) -> Array:
        """Return the gradients or Hessians of all outputs as rows, one matrix ``F_k`` for each point: (n, m, d).

        The rows of ``F_k`` are the gradients of all outputs for ``order=1``, the rows of all Hessians for ``order=2``:
        ``F_k^T F_k`` is the paper's ``g_k g_k^T`` or ``H_k H_k^T`` (sections 4.3 and 4.4), summed over the outputs.
        Unknown entries are set to zero.
        """
        derivatives = self.derivatives(order)
        assert derivatives is not None
        rows = derivatives.reshape(self.n_samples, -1, self.n_features)
        unknown = np.isnan(rows)
        return np.where(unknown, 0.0, rows) if unknown.any() else rows

    def with_positive_weight(self) -> Jet:
        """Return a copy without the rows of weight zero."""
        if self.sample_weight is None or np.all(self.sample_weight > 0):
            return self
        if not np.any(self.sample_weight > 0):
            raise ValueError("`sample_weight` must be positive in at least one row, got only zeros")
        return self[self.sample_weight > 0]

    def only(self, kinds: Collection[str]) -> Jet:
        """Return a copy with values and the given ``kinds`` of derivatives only.

        If ``kinds`` is empty, rows with neither a value nor a functional are omitted.
        """
        dropped = set(DERIVATIVE_KINDS.values()) - set(kinds)
        fields: dict[str, Any] = dict.fromkeys(dropped) | ({"frames": None} if "gradients" in dropped else {})
        jet = self._with(**fields, derivative_weight=self.derivative_weight if kinds else None)
        return jet if kinds or jet.has_target.all() else jet[jet.has_target]

    def _with(self, **fields: Any) -> Jet:
        """Return a copy with some fields replaced by fields of valid jets, which are not validated again."""
        return unchecked(**(vars(self) | fields))

    def with_values(self) -> Jet:
        """Return a copy without the rows whose values are unknown."""
        return self if self.has_value.all() else self[self.has_value]

    def combined(self, combinations: Array) -> Jet:
        """Return the jet of combinations of the outputs, the columns of an array (k, q)."""
        y = self.y.reshape(len(self), -1) @ combinations

        def combine(derivatives: Array | None) -> Array | None:
            if derivatives is None:
                return None
            rows = derivatives.reshape(len(self), len(combinations), -1)
            axes = derivatives.shape[self.y.ndim :]
            return np.reshape(combinations.T @ rows, (len(self), y.shape[1], *axes))

        functionals = self.functionals
        if functionals is not None:
            targets = functionals.targets.reshape(len(self), -1) @ combinations
            functionals = replace(functionals, targets=targets)
        found = {"gradients": combine(self.gradients), "hessians": combine(self.hessians)}
        return self._with(y=y, functionals=functionals, **found)

    def times(self, factors: Array) -> Jet:
        """Return the jet of the outputs multiplied by factors (k,)."""
        each = np.reshape(factors, self.y.shape[1:])
        gradients = None if self.gradients is None else each[..., None] * self.gradients
        hessians = None if self.hessians is None else each[..., None, None] * self.hessians
        return self._with(y=each * self.y, gradients=gradients, hessians=hessians)

    def fill_unknown(self, other: Jet) -> Jet:
        """Return a copy with unknown derivatives taken from ``other``, a jet at the same points."""

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
        return len(self.X)

    def __getitem__(self, rows: Any) -> Jet:
        """Return the jet at the points ``rows``."""
        return self._with(**{name: None if array is None else array[rows] for name, array in vars(self).items()})

    def __add__(self, other: Jet) -> Jet:
        """Return the jet at all points, followed by the points of ``other``.

        Derivatives that only one of the jets has are unknown at the points of the other.
        """
        if self.y.shape[1:] != other.y.shape[1:] or self.n_features != other.n_features:
            raise ValueError(
                f"concatenated jets must have the same inputs and outputs, got {self.n_features} and "
                f"{self.y.shape[1:]}, and {other.n_features} and {other.y.shape[1:]}"
            )

        def concatenated(a: Array | None, b: Array | None, fill_a: Any, fill_b: Any) -> Array | None:
            if a is None and b is None:
                return None
            return np.concatenate([fill_a() if a is None else a, fill_b() if b is None else b])

        def unknown(jet: Jet, axes: int) -> Any:
            return lambda: np.full((*jet.y.shape, *[jet.n_features] * axes), np.nan)

        a, b = self._framed(other), other._framed(self)
        functionals = None
        if a.functionals is not None or b.functionals is not None:
            functionals = a._functionals_or_none() + b._functionals_or_none()
        return unchecked(
            np.concatenate([a.X, b.X]),
            np.concatenate([a.y, b.y]),
            concatenated(a.gradients, b.gradients, unknown(a, 1), unknown(b, 1)),
            concatenated(a.hessians, b.hessians, unknown(a, 2), unknown(b, 2)),
            concatenated(a.sample_weight, b.sample_weight, lambda: a.weights(0), lambda: b.weights(0)),
            concatenated(a.derivative_weight, b.derivative_weight, lambda: a.weights(1), lambda: b.weights(1)),
            concatenated(a.frames, b.frames, None, None),
            functionals,
        )

    def _functionals_or_none(self) -> LinearRows:
        return LinearRows.none(self.y.shape, self.n_features) if self.functionals is None else self.functionals

    def _framed(self, other: Jet) -> Jet:
        """Return a copy with frames of the same size as the frames of ``other``; the jet itself if neither has any."""
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
        """Return the number ``r`` of directions in a frame: d for gradients without frames, 0 without gradients."""
        if self.frames is not None:
            return int(self.frames.shape[1])
        return 0 if self.gradients is None else self.n_features

    def __sub__(self, other: Jet) -> Jet:
        """Return the jet of ``f - g`` at the same points, with the derivatives that both jets have.

        The result has no functionals.
        """
        if self.y.shape != other.y.shape:
            raise ValueError(
                f"values of subtracted jets must have the same shape, got {self.y.shape} and {other.y.shape}"
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
            functionals=None,
        )


def unchecked(
    X: Array,
    y: Array,
    gradients: Array | None = None,
    hessians: Array | None = None,
    sample_weight: Array | None = None,
    derivative_weight: Array | None = None,
    frames: Array | None = None,
    functionals: LinearRows | None = None,
) -> Jet:
    """Return a jet of arrays that were computed from valid arrays, without validation."""
    jet = object.__new__(Jet)
    vars(jet).update(
        X=X,
        y=y,
        gradients=gradients,
        hessians=hessians,
        sample_weight=sample_weight,
        derivative_weight=derivative_weight,
        frames=frames,
        functionals=functionals,
    )
    return jet


def from_callable(f: Callable[[Any], Any], X: Any, *, order: int = 1, backend: Backend = "auto") -> Jet:
    """Return the jet of a Python function, differentiated by JAX, torch or finite differences.

    Parameters
    ----------
    f : callable
        A function of one point (d,) that returns a number or ``k`` numbers, or a function of all points (n, d) that
        returns an array of shape (n,) or (n, k).
    X : array of shape (n, d)
        The points.
    order : {1, 2}, default=1
        1 to compute gradients, 2 to compute Hessians as well.
    backend : {"auto", "jax", "torch", "finite_differences", "complex_step"}, default="auto"
        See ``nurf.differentiation.derivatives``. "auto" uses the framework in which ``f`` is written.

    Examples
    --------
    >>> jet = from_callable(lambda x: x[0] ** 2 * x[1], [[1.0, 3.0], [2.0, 1.0]])
    >>> jet.gradients.round(6)
    array([[6., 1.],
           [4., 4.]])
    """
    return Jet(np.asarray(X, float), *derivatives(f, X, order=order, backend=backend))


def projections(name: str, slopes: Any, directions: Any, X: Array, y: Array) -> tuple[Array, Array]:
    """Return the frames (n, r, d) and projected gradients of directional derivatives, as for ``Jet.along``.

    ``name`` is the name of the slopes in error messages.
    """
    V, slopes = as_finite("directions", directions), as_finite_or_nan(name, slopes)
    if V.ndim not in (2, 3) or (*V.shape[:1], *V.shape[-1:]) != X.shape:
        raise ValueError(f"`directions` must have shape (n, d) or (n, m, d) with (n, d) = {X.shape}, got {V.shape}")
    expected = (*y.shape, *V.shape[1:-1])
    V = V.reshape(len(V), -1, V.shape[-1])
    along = in_shape(slopes, (*y.shape, V.shape[1]))
    if along.shape != (*y.shape, V.shape[1]):
        raise ValueError(
            f"`{name}` must be a number for each value and direction, of shape {expected}, got {slopes.shape}"
        )
    known = np.all(~np.isnan(along.reshape(len(X), -1, V.shape[1])), axis=1)
    return spans(np.where(known[..., None], V, 0.0), np.where(np.isnan(along), 0.0, along))


def spans(directions: Array, slopes: Array) -> tuple[Array, Array]:
    """Return orthonormal frames (n, r, d) that span the ``directions`` (n, m, d), and the projected gradients.

    ``slopes`` (n, [k,] m) are the derivatives along the directions. The projected gradient is the minimum-norm
    least-squares solution ``V^+ slopes``, where the rows of ``V`` are the directions.
    """
    largest = np.abs(directions).max(axis=2, keepdims=True, initial=0.0)
    units = np.divide(directions, largest, where=largest > 0, out=np.zeros_like(directions))
    sizes = np.linalg.norm(units, axis=2, keepdims=True)
    units = np.divide(units, sizes, where=sizes > 0, out=units)
    lengths = (largest * sizes)[..., 0].reshape(len(slopes), *[1] * (slopes.ndim - 2), -1)
    scaled = slopes / np.where(lengths > 0, lengths, 1.0)
    if directions.shape[1] == 1:  # a rotation would lose components that are small because of their units
        return units, scaled * np.reshape(units, (len(units), *[1] * (slopes.ndim - 2), -1))
    left, values, frames = np.linalg.svd(units, full_matrices=False)
    kept = values > 1e-8 * np.maximum(values[:, :1], np.finfo(float).tiny)
    frames = np.where(kept[..., None], frames, 0.0)
    inverse = np.divide(1.0, values, where=kept, out=np.zeros_like(values))
    along = np.einsum("n...m,nmr,nr->n...r", scaled, left, inverse)
    return frames, np.einsum("n...r,nrd->n...d", along, frames)
