"""Damped Newton descent for objectives with sparse outer weights, and the objective in outer weights alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self, TypeVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from nurf._types import Array, Index, Mask
from nurf.solvers.sparse._penalties import Penalty, row_sizes

FIRST_DAMPING, LEAST_DAMPING, LARGEST_DAMPING = 1e-4, 1e-9, 1e12


class Point(Protocol):
    """A point of descent: the objective there, its derivatives, and the points that steps lead to."""

    @property
    def value(self) -> float:
        """The objective."""
        ...

    @property
    def violation(self) -> float:
        """The largest violation of the optimality conditions, in units of ``alpha``."""
        ...

    def derivatives(self) -> tuple[Array, Array, Array]:
        """Return the gradient (m,), a model of the Hessian (m, m) and the scale ``D`` of damping (m,)."""
        ...

    def moved(self, step: Array) -> Self:
        """Return the point after a step (m,), without the neurons whose outer weights cross zero."""
        ...


P = TypeVar("P", bound=Point)


def descend(point: P, *, max_steps: int, tolerance: float, stall: float = 1e-12) -> P:
    """Return the point after steps ``-(H + lambda D)^-1 g``, with ``lambda`` increased until the objective decreases.

    Steps end if the optimality conditions hold up to ``tolerance``, after ``max_steps`` steps, or if a step gains less
    than ``stall`` relative to the objective.
    """
    damping = FIRST_DAMPING
    for _ in range(max_steps):
        if point.violation <= tolerance:
            break
        gradient, hessian, scale = point.derivatives()
        before = point.value
        while damping <= LARGEST_DAMPING:
            step = damped_step(gradient, hessian, damping * scale)
            trial = None if step is None else point.moved(step)
            if trial is not None and trial.value < before:
                break
            damping *= 8
        else:
            break
        point, damping = trial, max(damping / 5, LEAST_DAMPING)
        if before - point.value <= stall * abs(before):
            break
    return point


def damped_step(gradient: Array, hessian: Array, damping: Array) -> Array | None:
    """Return ``-(H + diag(damping))^-1 g``, or None if that matrix is not, or barely, positive definite."""
    if not len(gradient):
        return gradient
    matrix = hessian.copy()
    matrix.flat[:: len(matrix) + 1] += damping
    try:
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    step = np.asarray(-cho_solve(factor, gradient, check_finite=False))
    return step if np.isfinite(step).all() else None


@dataclass(frozen=True, eq=False)
class OuterPoint:
    """The objective in the coefficients alone: ``tr(w^T G w) / 2 - tr(w^T m) + energy + alpha sum_n psi(|c_n|)``.

    Attributes
    ----------
    gram : array of shape (N + t, N + t)
    moments : array of shape (N + t, k)
    energy : float
        Half the mean square of the data.
    coefficients : array of shape (N + t, k)
        The outer weights, none of them zero, then the coefficients of the tail.
    kept : array of shape (N,)
        The indices of the remaining neurons among the neurons at the start.
    penalty : Penalty
    alpha : float
    """

    gram: Array
    moments: Array
    energy: float
    coefficients: Array
    kept: Index
    penalty: Penalty
    alpha: float

    @cached_property
    def value(self) -> float:
        """The objective."""
        loss = np.vdot(self.coefficients, self.gram @ self.coefficients / 2 - self.moments) + self.energy
        return float(loss + self.alpha * self.penalty.value(row_sizes(self._coef)).sum())

    @cached_property
    def violation(self) -> float:
        """The largest violation of the optimality conditions, in units of ``alpha``."""
        distances = self.penalty.distance(self._coef, self._pull[: len(self.kept)], self.alpha)
        return float(
            max(distances.max(initial=0.0), np.abs(self._pull[len(self.kept) :]).max(initial=0.0) / self.alpha)
        )

    def derivatives(self) -> tuple[Array, Array, Array]:
        """Return the gradient, the Hessian and the scale of damping, with the coefficients of each output together."""
        gradient = -self._pull
        gradient[: len(self.kept)] += self.alpha * self.penalty.gradient(self._coef)
        rows, k = self.coefficients.shape
        hessian: Array = np.kron(np.eye(k), self.gram).astype(float, copy=False)
        add_penalty(hessian, self._coef, rows, self.penalty, self.alpha)
        return gradient.T.ravel(), hessian, damping_scale(self.gram, k)

    def moved(self, step: Array) -> OuterPoint:
        """Return the point after a step."""
        coefficients = self.coefficients + step.reshape(self.coefficients.shape[1], -1).T
        stays = same_side(self._coef, coefficients, self.penalty)
        if stays.all():
            return replace(self, coefficients=coefficients)
        rows = np.flatnonzero(np.concatenate([stays, np.ones(len(coefficients) - len(stays), dtype=bool)]))
        return replace(
            self,
            gram=self.gram[np.ix_(rows, rows)],
            moments=self.moments[rows],
            coefficients=coefficients[rows],
            kept=self.kept[stays],
        )

    @property
    def _coef(self) -> Array:
        return self.coefficients[: len(self.kept)]

    @cached_property
    def _pull(self) -> Array:
        """The negative gradient of the loss, of shape (N + t, k)."""
        return np.asarray(self.moments - self.gram @ self.coefficients)


def add_penalty(hessian: Array, coef: Array, stride: int, penalty: Penalty, alpha: float) -> None:
    """Add ``alpha`` times the second derivatives of ``psi(|c_n|)`` to a Hessian whose outputs are ``stride`` apart.

    The second derivatives are ``psi' (I - v v^T) / |c| + psi'' v v^T`` with ``v = c / |c|``.
    """
    sizes = np.maximum(row_sizes(coef), np.finfo(float).tiny)
    units = coef / sizes[:, None]
    across = penalty.slope(sizes) / sizes
    along = penalty.curvature(sizes) - across
    neurons = np.arange(len(coef))
    for i in range(coef.shape[1]):
        for j in range(coef.shape[1]):
            block = alpha * (along * units[:, i] * units[:, j] + (across if i == j else 0.0))
            hessian[neurons + i * stride, neurons + j * stride] += block


def damping_scale(gram: Array, n_outputs: int) -> Array:
    """Return the diagonal of the Gram matrix with a positive floor, repeated for each output."""
    diagonal = np.diag(gram)
    floor = 1e-8 * diagonal.max(initial=0.0) + np.finfo(float).tiny
    return np.tile(np.maximum(diagonal, floor), n_outputs)


def same_side(before: Array, after: Array, penalty: Penalty) -> Mask:
    """Return which neurons (N,) did not cross zero from ``before`` (N, k) to the first rows of ``after``.

    If the penalty is not sparse, the result is true for all neurons.
    """
    if not penalty.sparse:
        return np.ones(len(before), dtype=bool)
    return np.asarray(np.einsum("nk,nk->n", before, after[: len(before)]) > 0)
