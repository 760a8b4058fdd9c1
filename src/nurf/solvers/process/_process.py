"""Gaussian processes given values and derivatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.sparse import csr_array

from nurf._blocks import row_blocks
from nurf._types import Array, Index
from nurf.kernels import Centers, Covariances, Functionals, KernelNetwork, RadialKernel, covariance, variances
from nurf.solvers.process._contrasts import Contrasts
from nurf.solvers.process._rows import MatrixBlock, ProcessRows

EPS = float(np.finfo(float).eps)
BLOCK = 2**17  # elements of a block of covariances: all its factors together stay in the cache
TINY = 1e-30  # variance of constant targets
MORE_NOISE = 5.0  # factor of the noise if rounding spoils a process; with 20, 5000 values had 1.8 times the error
LARGEST_ROUNDING = 3e-7  # of predictions, in units of the targets: largest differences are up to ten times as large
LARGEST_NOISE = 1e8  # variance of the noise of a row that says nothing; the rounding of more would hide other rows


def rounding_floor(n_rows: int) -> float:
    """Return the least variance of the noise of a row, in units of its prior variance.

    The result is about the rounding error of a Cholesky factorisation with ``n_rows`` rows.
    """
    return EPS * n_rows / 8


@dataclass(frozen=True, eq=False)
class Conditioning:
    """The coefficients of the variances of values given the data, in units of ``s^2``, for programs without the data.

    With the covariances ``c`` of a value with the rows, ``Q^T c = [c_1; c_2]``, and the monomials ``R^T u`` of its
    point, the variance is ``prior - 2 c_1.u + u.K_11 u - |L^-1 (c_2 - K_21 u)|^2``, at least ``least``, plus ``noise``.

    Parameters
    ----------
    parts : tuple of Functionals
        The functionals of the rows, as functionals of ``A x``.
    sums : sparse array or None
        The coefficients of the last functionals in rows that are sums of several.
    contrasts : Contrasts
        ``Q`` and ``R``.
    first : array of shape (t, N)
        The first rows ``[K_11, K_12]`` of ``Q^T K Q``.
    factor : array of shape (N - t, N - t)
        ``L``, in the lower triangle.
    prior, least, noise : float
    """

    parts: tuple[Functionals, ...]
    sums: csr_array | None
    contrasts: Contrasts
    first: Array
    factor: Array
    prior: float
    least: float
    noise: float


@dataclass(frozen=True, eq=False)
class Process:
    """A Gaussian process with the covariance ``s^2 k(A x, A x')`` and an unknown polynomial mean, given noisy rows.

    The variances ``s^2`` of all outputs maximise the restricted likelihood. The mean is integrated out
    (``Contrasts``): with the kernel matrix ``K`` of the rows, noise included, their coordinates without the mean have
    the covariance ``s^2 S``, ``S = Z^T K Z``, and all results are made of ``P = Z S^-1 Z^T``.

    Parameters
    ----------
    rows : ProcessRows
    kernel : RadialKernel
    metric : array of shape (q, d)
        The linear map ``A``.
    noise : array of shape (3,) or (d + 2,)
        The variances of the noise of values, of first derivatives (one for all, or one for each partial derivative) and
        of second derivatives, for weight one, in units of ``s^2``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If ``S`` is not positive definite in floating-point numbers.
    """

    rows: ProcessRows
    kernel: RadialKernel
    metric: Array
    noise: Array

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def sound(self) -> Process:
        """Return the process, or one with more noise if rounding errors spoil it.

        Only the smallest variances of the noise are increased, because only these are within rounding errors.
        """
        if self.is_sound or np.all(self.noise >= LARGEST_NOISE):
            return self
        least = MORE_NOISE * max(float(self.noise.min()), EPS)
        return replace(self, noise=np.maximum(self.noise, least)).sound()

    @property
    def is_sound(self) -> bool:
        """Whether ``S`` is positive definite, and predictions are not lost in rounding errors."""
        try:
            return bool(np.all(self.rounding <= LARGEST_ROUNDING))
        except np.linalg.LinAlgError:
            return False

    @property
    def rounding(self) -> Array:
        """The size of the rounding errors of predicted values, of shape (k,).

        Each term ``c_a L_a k(A x, A .)`` of a prediction is rounded. In 50 fits, the largest difference of values that
        were computed in two orders, of 200 points, was 0.01 to 9 times this, 1 in the median.
        """
        coefficients = self.rows.spread(self.coefficients)
        return np.asarray(EPS * np.linalg.norm(coefficients * self._deviations[:, None], axis=0))

    @cached_property
    def _deviations(self) -> Array:
        """The standard deviations of all functionals without data, in units of ``s``, of shape (F,)."""
        return np.asarray(np.sqrt(np.abs(np.concatenate([variances(self.kernel, part) for part in self._parts]))))

    @cached_property
    def _parts(self) -> tuple[Functionals, ...]:
        return tuple(part.mapped(self.metric) for part in self.rows.all_parts)

    @property
    def _contrasts(self) -> Contrasts:
        return self.rows.contrasts

    @cached_property
    def _solved(self) -> tuple[Array, Array]:
        """The first rows of ``Q^T K Q`` (t, N), and the Cholesky factor of ``S``."""
        t = len(self._contrasts)
        rotated = self._contrasts.matrix_into(self._covariances())
        if t == len(rotated):
            return rotated, np.empty((0, 0))
        factor, info = lapack.dpotrf(rotated[t:, t:], lower=True)
        if info:
            raise np.linalg.LinAlgError(f"the covariance matrix is not positive definite (pivot {info})")
        return rotated[:t].copy(), factor

    def _covariances(self) -> Array:
        """Return the kernel matrix of the rows with their noise, of shape (N, N)."""
        N, F = len(self.rows), self.rows.n_functionals
        result = np.empty((F, F))
        for block, covariances in self._blocks():
            matrix = covariances.matrix()
            result[block.rows, block.columns] = matrix
            result[block.columns, block.rows] = matrix.T
        if F > N:
            result = np.ascontiguousarray(self.rows.gathered(self.rows.gathered(result).T))
        result.ravel()[:: N + 1] += self.row_variances
        return result

    @property
    def row_variances(self) -> Array:
        """The variances of the noise of all rows, rounding errors included, in units of ``s^2``, of shape (N,)."""
        return np.asarray(np.minimum(self._noise_of_rows, LARGEST_NOISE) + self._least_of_rows)

    @property
    def _least_of_rows(self) -> Array:
        """The variances of the rounding errors of all rows, of shape (N,)."""
        return rounding_floor(len(self.rows)) * self.rows.sizes(self._deviations) ** 2

    @property
    def _noise_of_rows(self) -> Array:
        """The variances of the noise of all rows, divided by the weights of the rows, of shape (N,)."""
        return np.asarray(self.rows.noise_shares(len(self.noise)) @ self.noise / self.rows.weights)

    def _blocks(self) -> Iterable[tuple[MatrixBlock, Covariances]]:
        """Return the blocks of the lower triangle of the kernel matrix; small blocks are computed once."""
        return self._small_blocks if self.rows.n_functionals**2 <= BLOCK else self._made_blocks()

    @cached_property
    def _small_blocks(self) -> list[tuple[MatrixBlock, Covariances]]:
        return list(self._made_blocks())

    def _made_blocks(self) -> Iterator[tuple[MatrixBlock, Covariances]]:
        for block in self.rows.blocks(BLOCK):
            yield block, Covariances(self.kernel, *block.of(self._parts))

    @cached_property
    def _coordinates(self) -> Array:
        """``S^-1`` times the coordinates of the targets, of shape (N - t, k)."""
        return self._coordinates_of(self._contrasts.into(self.rows.targets))

    def _coordinates_of(self, rotated: Array) -> Array:
        """Return ``S^-1`` times the last coordinates of columns ``Q^T y`` (N, m), of shape (N - t, m)."""
        last = rotated[len(self._contrasts) :]
        return self._solve(last) if len(last) else last

    def _solve(self, columns: Array) -> Array:
        return np.asarray(lapack.dpotrs(self._solved[1], columns, lower=True)[0])

    @cached_property
    def coefficients(self) -> Array:
        """``P y``, of shape (N, k)."""
        zeros = np.zeros((len(self._contrasts), self.rows.targets.shape[1]))
        return self._contrasts.back(np.concatenate([zeros, self._coordinates]))

    @cached_property
    def tail_coef(self) -> Array:
        """The coefficients of the mean, of shape (t, k), from ``y - K P y``, which is a mean up to rounding errors.

        The coefficients of smooth functions are large and cancel each other, so that rounding errors matter. The
        network is evaluated in the same way, so that the mean corrects the rounding errors that all values share.
        """
        left = self.rows.targets - self._covariances() @ self.coefficients
        return self._contrasts.mean_coefficients(self._contrasts.into(left)[: len(self._contrasts)])

    @cached_property
    def variances(self) -> Array:
        """The variance ``s^2`` of each output, of shape (k,)."""
        t = len(self._contrasts)
        squares = np.sum(self._contrasts.into(self.rows.targets)[t:] * self._coordinates, axis=0)
        return np.asarray(np.maximum(squares / max(len(self._coordinates), 1), TINY))

    @cached_property
    def log_determinant(self) -> float:
        """The logarithm of the determinant of ``S``."""
        return float(2 * np.sum(np.log(np.diag(self._solved[1]))))

    @property
    def n_contrasts(self) -> int:
        """The number of rows minus the number of coefficients of the mean."""
        return len(self._coordinates)

    @cached_property
    def precision(self) -> Array:
        """``P``, of shape (N, N)."""
        t, N, factor = len(self._contrasts), len(self.rows), self._solved[1]
        result = np.zeros((N, N))
        if len(factor):
            lower = lapack.dpotri(factor, lower=True)[0]
            np.add(lower, lower.T, out=result[t:, t:])
            result.ravel()[t * (N + 1) :: N + 1] /= 2
        return self._contrasts.matrix_back(result)

    def pullback(self, weights: Array) -> tuple[Array, Array]:
        """Return the derivatives of ``sum weights * K`` with respect to ``metric`` and the logarithms of ``noise``.

        ``weights`` is a symmetric matrix of shape (N, N).
        """
        N, d = len(self.rows), self.metric.shape[1]
        gram, spread = np.zeros((d, d)), self.rows.spread(self.rows.spread(weights).T)
        for block, covariances in self._blocks():
            part = 2 * spread[block.rows, block.columns]
            if block.columns.stop == block.rows.stop:
                part[:, block.rows.start - block.columns.start :] /= 2
            gram += covariances.slopes(part, *block.of(self.rows.all_parts))
        by_row = np.where(self._noise_of_rows < LARGEST_NOISE, weights.ravel()[:: N + 1] / self.rows.weights, 0.0)
        return 2 * self.metric @ gram, by_row @ self.rows.noise_shares(len(self.noise)) * self.noise

    @cached_property
    def left_out(self) -> tuple[Array, Array]:
        """The leave-one-out errors of all rows (N, k), and their variances (N,).

        A sample is left out with all rows ``b`` at its point, for fixed scales and noise: the errors are
        ``(P_bb)^-1 (P y)_b``, with the covariance ``s^2 (P_bb)^-1``.
        """
        errors, spread = np.empty_like(self.rows.targets), np.empty(len(self.rows))
        for rows in sample_blocks(self.rows.places):
            inverse = inverse_blocks(self.precision, rows)
            errors[rows] = inverse @ self.coefficients[rows]
            spread[rows] = np.diagonal(inverse, axis1=1, axis2=2)
        return errors, np.maximum(spread, self._least_of_rows)

    def _least_variances(self, functionals: Functionals) -> Array:
        """Return the smallest variances of functionals that exceed rounding errors, of shape (m,)."""
        return rounding_floor(len(self.rows)) * np.abs(variances(self.kernel, functionals))

    def conditioned(self, targets: Array) -> tuple[Array, Array]:
        """Return the coefficients (F, m) of the network and of its mean (t, m) given other targets (N, m)."""
        t, rotated = len(self._contrasts), self._contrasts.into(targets)
        last = self._coordinates_of(rotated)
        first = rotated[:t] - self._solved[0][:, t:] @ last
        coefficients = self._contrasts.back(np.concatenate([np.zeros_like(first), last]))
        return self.rows.spread(coefficients), self._contrasts.mean_coefficients(first)

    @property
    def output_factor(self) -> Array:
        """A factor ``F`` of the covariance ``F^T F`` of the outputs, of shape (r, k), r = min(N - t, k).

        ``F^T F = y^T P y / (N - t)`` is the covariance that maximises the restricted likelihood. ``variances`` is its
        diagonal. All outputs have the same kernel, so that the mean given the rows does not depend on it.
        """
        t, (_, factor) = len(self._contrasts), self._solved
        last = self._contrasts.into(self.rows.targets)[t:]
        if not len(last):
            return last
        half = lapack.dtrtrs(factor, last, lower=True)[0]
        return np.asarray(np.linalg.qr(half, mode="r") / np.sqrt(len(last)))

    def network(self, output_shape: tuple[int, ...]) -> KernelNetwork:
        """Return the mean of the process given the rows."""
        parts, coefficients = self.rows.all_parts, self.rows.spread(self.coefficients)
        starts = np.cumsum([0, *(len(part) for part in parts)])
        centers = (
            Centers(part, coefficients[start : start + len(part)])
            for part, start in zip(parts, starts[:-1], strict=True)
            if len(part) or not start
        )
        merged = tuple(center.merged() for center in centers)
        return KernelNetwork(self.kernel, self.metric, merged, self.tail_coef, output_shape)

    def posterior_variances(self, X: Array, order: int) -> Array:
        """Return the variances of values or gradients at the points, without noise, in units of ``s^2``: (n, d^order).

        With the covariances ``c`` of a functional with the rows, ``Q^T c = [c_1; c_2]``, and ``R^T u`` its monomials::

            k - 2 c_1.u + u.K_11 u - |S^-1/2 (c_2 - K_21 u)|^2.
        """
        t, (first, factor), contrasts = len(self._contrasts), self._solved, self._contrasts
        result = np.empty((len(X), X.shape[1] ** order))
        for block in row_blocks(len(X), X.shape[1] ** order * len(self.rows)):
            at = Functionals.at(X[block], order)
            mapped = at.mapped(self.metric)
            covariances = np.concatenate([covariance(self.kernel, part, mapped) for part in self._parts])
            rotated = contrasts.into(self.rows.gathered(covariances))
            u = contrasts.first_coordinates(at.monomials(self.rows.degree))
            rest = rotated[t:] - first[:, t:].T @ u
            if len(factor):
                rest = lapack.dtrtrs(factor, rest, lower=True)[0]
            variance = variances(self.kernel, mapped) - 2 * np.sum(rotated[:t] * u, axis=0)
            variance += np.sum(u * (first[:, :t] @ u), axis=0) - np.sum(rest**2, axis=0)
            least = self._least_variances(mapped)  # differences of large numbers are not smaller
            result[block] = np.maximum(variance, least).reshape(-1, X.shape[1] ** order)
        return result

    @property
    def conditioning(self) -> Conditioning:
        """The coefficients of the variances of measured values of mean weight."""
        value = Functionals.at(np.zeros((1, self.metric.shape[1])), 0).mapped(self.metric)
        known = self.rows.weights[self.rows.orders == 0]
        return Conditioning(
            self._parts,
            None if self.rows.sums is None else self.rows.sums.matrix,
            self._contrasts,
            *self._solved,
            float(variances(self.kernel, value)[0]),
            float(self._least_variances(value)[0]),
            float(self.noise[0] / known.mean()) if len(known) else 0.0,
        )

    def measured_std(self, X: Array, order: int, weights: Array | None = None) -> Array:
        """Return the standard deviations of measured values or gradients, noise included, of shape (n, d^order, k).

        The measurements have the given weights (n,), or the mean weight of the rows.
        """
        known = self.rows.weights[self.rows.orders == order]
        if weights is None or not len(known):
            weights = np.full(len(X), known.mean() if len(known) else np.inf)
        noise = (self.noise[:1], self.noise[1:-1], self.noise[-1:])[order]
        variances = self.posterior_variances(X, order) + noise / weights[:, None]
        return np.asarray(np.sqrt(variances[..., None] * self.variances))


def sample_blocks(samples: Index) -> list[Index]:
    """Return the rows of all points, as one array of shape (m, c) for all ``m`` points with ``c`` rows."""
    order = np.argsort(samples, kind="stable")
    _, starts, counts = np.unique(samples[order], return_index=True, return_counts=True)
    return [order[starts[counts == c][:, None] + np.arange(c)] for c in np.unique(counts)]


def inverse_blocks(matrix: Array, rows: Index) -> Array:
    """Return the inverses of the blocks of a positive semidefinite matrix with given rows (m, c), of shape (m, c, c).

    Singular blocks have a pseudoinverse. Values and derivatives have different units, so that blocks are scaled to a
    diagonal of ones first: otherwise small units would look singular.
    """
    blocks = matrix[rows[:, :, None], rows[:, None, :]]
    diagonal = np.diagonal(blocks, axis1=1, axis2=2)
    scales = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scales = scales[:, :, None] * scales[:, None, :]
    return np.asarray(np.linalg.pinv(blocks * scales, hermitian=True) * scales)
