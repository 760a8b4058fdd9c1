"""Shallow networks: features, values and derivatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from nurf._blocks import BLOCK_ELEMENTS, row_blocks
from nurf._scaling import Scaling
from nurf._types import Array, Precision
from nurf.activations import Activation
from nurf.networks._base import Network
from nurf.networks._function import ShallowFunction
from nurf.networks._hyperplanes import Hyperplanes
from nurf.networks._tails import Tail

CACHED_ELEMENTS = 2**16  # of features that are computed at once: half a megabyte of doubles
LEAST_ROWS, MOST_ROWS = 1024, 4096  # of a block of features: with fewer, sums of products cost as much as the products
BLOCK_LIMIT = 2**22  # elements of a block with more than the least rows: 32 MB of doubles


def feature_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices of rows, in block sizes that suit products of features."""
    elements = max(BLOCK_ELEMENTS, LEAST_ROWS * n_columns, min(MOST_ROWS * n_columns, BLOCK_LIMIT))
    return row_blocks(n_rows, n_columns, elements)


@dataclass(frozen=True, eq=False)
class Features:
    """The features of a network: its neurons ``sigma(a_n.x + b_n)`` and the monomials of its polynomial tail.

    Parameters
    ----------
    hyperplanes : Hyperplanes
        The inner weights ``(a_n, b_n)``.
    activation : Activation
        The activation function ``sigma``, with one width or one for each neuron.
    degree : int, default=0
        Degree of the polynomial tail; -1 for no tail.
    """

    hyperplanes: Hyperplanes
    activation: Activation
    degree: int = 0

    def __post_init__(self) -> None:
        widths = np.shape(self.activation.width)
        if widths not in ((), (len(self.hyperplanes),)):
            raise ValueError(
                f"`width` must be one number or one for each of {len(self.hyperplanes)} neurons, got shape {widths}"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def tail(self) -> Tail:
        """The monomials of the polynomial tail."""
        return Tail(self.degree, self.hyperplanes.dimension)

    @cached_property
    def n_neurons(self) -> int:
        """Number of neurons."""
        return len(self.hyperplanes)

    @cached_property
    def n_columns(self) -> int:
        """Number of features: neurons and monomials."""
        return self.n_neurons + len(self.tail)

    @cached_property
    def _affine(self) -> tuple[Array, Array]:
        """The affine map ``x -> (a.x + b) / scale`` of all neurons, as a matrix (d, N) and a vector (N,)."""
        scale = np.broadcast_to(self.activation.scale, self.n_neurons)
        planes = self.hyperplanes
        return np.ascontiguousarray((planes.normals / scale[:, None]).T), planes.offsets / scale

    def __getitem__(self, index: Any) -> Features:
        """Return the features with the neurons ``index`` only, and the same tail."""
        return Features(self.hyperplanes[index], self.activation.select(index), self.degree)

    def __add__(self, other: Features) -> Features:
        """Return features with all neurons, followed by the neurons of ``other``."""
        if self.degree != other.degree:
            raise ValueError(
                f"concatenated features must have tails of the same degree, got {self.degree} and {other.degree}"
            )
        activation = self.activation.concatenate(self.n_neurons, other.activation, other.n_neurons)
        return Features(self.hyperplanes + other.hyperplanes, activation, self.degree)

    def neurons(self, X: Array, k: int = 0, out: Array | None = None) -> Array:
        """Return ``sigma^(k)(a_n.x + b_n)`` at the points, of shape (n, N), in ``out`` and its precision if given."""
        self.activation.require(k)
        out = np.empty((len(X), self.n_neurons)) if out is None else out
        amplitude = np.asarray(self.activation.amplitude(k), out.dtype)
        scaled = (amplitude != 1.0).any()
        for rows in row_blocks(len(X), self.n_neurons, CACHED_ELEMENTS):
            u = self._arguments(X[rows], out[rows])
            result = self.activation.unit(u, k)
            if scaled:
                np.multiply(result, amplitude, out=u)
            elif result is not u:
                u[...] = result
        return out

    def _arguments(self, X: Array, out: Array) -> Array:
        """Return the arguments ``(a_n.x + b_n) / scale`` of the activation in ``out``, which are rounded once."""
        matrix, vector = self._affine
        u = np.matmul(X, matrix, out=out if out.dtype == matrix.dtype else None)
        return np.add(u, vector, out=out)

    def design(self, X: Array, out: Array | None = None) -> Array:
        """Return the design matrix: all features at the points, neurons first, of shape (n, N + t)."""
        out = np.empty((len(X), self.n_columns)) if out is None else out
        self.neurons(X, out=out[:, : self.n_neurons])
        out[:, self.n_neurons :] = self.tail.values(X)
        return out

    def design_and_slope_blocks(self, X: Array, dtype: Precision = np.float64) -> Iterator[tuple[slice, Array, Array]]:
        """Yield slices of rows, their block of the design matrix, and ``sigma'(a_n.x + b_n)`` of shape (n, N).

        This is faster than computing both separately. The absolute error is the rounding error of 1, also for small
        numbers. Each block overwrites the previous one.
        """
        self.activation.require(1)
        N = self.n_neurons
        amplitudes = [np.asarray(self.activation.amplitude(k), dtype) for k in range(2)]
        buffer: tuple[Array, Array] | None = None
        for rows in feature_blocks(len(X), self.n_columns):
            n = rows.stop - rows.start
            buffer = (np.empty((n, self.n_columns), dtype), np.empty((n, N), dtype)) if buffer is None else buffer
            design, slopes = (part[:n] for part in buffer)
            for some in row_blocks(n, N, CACHED_ELEMENTS):
                value, slope = self.activation.unit_and_slope(self._arguments(X[rows][some], slopes[some]))
                np.multiply(value, amplitudes[0], out=design[some, :N])
                np.multiply(slope, amplitudes[1], out=slopes[some])
            design[:, N:] = self.tail.values(X[rows])
            yield rows, design, slopes

    def gradient_design(self, X: Array) -> Array:
        """Return the gradients of all features at the points, of shape (n, d, N + t)."""
        N, normals = self.n_neurons, self.hyperplanes.normals
        out = np.empty((len(X), normals.shape[1], self.n_columns))
        np.multiply(self.neurons(X, 1)[:, None, :], normals.T, out=out[..., :N])
        out[..., N:] = self.tail.components(X, 1)
        return out

    def design_blocks(
        self, X: Array, blocks: Iterable[slice] | None = None, dtype: Precision = np.float64
    ) -> Iterator[tuple[slice, Array]]:
        """Yield slices of rows and their block of the design matrix. Each block overwrites the previous one."""
        elements = max(BLOCK_ELEMENTS, LEAST_ROWS * self.n_columns)
        buffer = None
        for rows in row_blocks(len(X), self.n_columns, elements) if blocks is None else blocks:
            if buffer is None:
                buffer = np.empty((rows.stop - rows.start, self.n_columns), dtype)
            yield rows, self.design(X[rows], out=buffer[: rows.stop - rows.start])


@dataclass(frozen=True, eq=False)
class ShallowNetwork(Network):
    """The function ``x -> sum_n c_n sigma(a_n.x + b_n) + p(x)`` (paper, eq. 2.1).

    Parameters
    ----------
    features : Features
        The neurons, and the monomials of the polynomial tail ``p``.
    coefficients : array of shape (N + t,) or (N + t, k)
        The outer weights ``c_n``, followed by the coefficients of ``p``, for one output or ``k`` outputs.
    """

    features: Features
    coefficients: Array

    def __post_init__(self) -> None:
        coefficients = np.asarray(self.coefficients, float)
        if coefficients.ndim not in (1, 2) or len(coefficients) != self.features.n_columns:
            raise ValueError(
                f"`coefficients` must have {self.features.n_columns} rows, one for each neuron and monomial, "
                f"got shape {coefficients.shape}"
            )
        # a copy: a view of one column would keep the coefficients of all fits in memory
        object.__setattr__(self, "coefficients", np.ascontiguousarray(coefficients))

    @property
    def dimension(self) -> int:
        """The number of inputs."""
        return self.hyperplanes.dimension

    @property
    def output_shape(self) -> tuple[int, ...]:
        """() for one output, (k,) for ``k`` outputs."""
        return self.coefficients.shape[1:]

    @property
    def n_derivatives(self) -> int:
        """The highest order of derivatives that the activation has, at most 2."""
        return min(self.activation.n_derivatives, 2)

    @property
    def hyperplanes(self) -> Hyperplanes:
        """The inner weights ``(a_n, b_n)``."""
        return self.features.hyperplanes

    @property
    def activation(self) -> Activation:
        """The activation function."""
        return self.features.activation

    @property
    def coef(self) -> Array:
        """The outer weights ``c_n``, of shape (N,) or (N, k)."""
        return self.coefficients[: self.features.n_neurons]

    @property
    def tail_coef(self) -> Array:
        """The coefficients of ``p``, of shape (t,) or (t, k)."""
        return self.coefficients[self.features.n_neurons :]

    def value(self, X: Array) -> Array:
        """Return the values at the points, of shape (n,) or (n, k)."""
        X = np.ascontiguousarray(X)  # the same sums for every memory layout
        result = self.features.tail.values(X) @ self.tail_coef
        buffer: Array | None = None
        for rows in row_blocks(len(X), self.features.n_neurons):
            buffer = np.empty((rows.stop - rows.start, self.features.n_neurons)) if buffer is None else buffer
            result[rows] += self.features.neurons(X[rows], out=buffer[: rows.stop - rows.start]) @ self.coef
        return np.asarray(result)

    def gradient(self, X: Array) -> Array:
        """Return ``sum_n c_n sigma'(a_n.x + b_n) a_n + grad p(x)``, of shape (n, d) or (n, k, d)."""
        normals = self.hyperplanes.normals
        result = self._weighted_sums(X, 1, normals)
        result += self.features.tail.gradient(X, self._columns(self.tail_coef))
        return result.reshape(len(X), *self.coefficients.shape[1:], normals.shape[1])

    def hessian(self, X: Array) -> Array:
        """Return ``sum_n c_n sigma''(a_n.x + b_n) a_n a_n^T + hess p(x)``, of shape (n, d, d) or (n, k, d, d)."""
        normals = self.hyperplanes.normals
        d = normals.shape[1]
        upper, lower = np.triu_indices(d)
        sums = self._weighted_sums(X, 2, normals[:, upper] * normals[:, lower])
        result = np.empty((len(X), sums.shape[1], d, d))
        result[..., upper, lower] = result[..., lower, upper] = sums
        result += self.features.tail.hessian(X, self._columns(self.tail_coef))
        return result.reshape(len(X), *self.coefficients.shape[1:], d, d)

    def in_units_of(self, scaling: Scaling) -> ShallowNetwork:
        """Return the network as a function of the unscaled inputs, with unscaled values.

        A neuron ``sigma_{s,delta}(a.(x - m)/q + b)`` of scaled inputs equals a neuron of unscaled inputs with another
        hyperplane and another width, times a power of ``|a / q|``.
        """
        stretched = scaling.normals_back(self.hyperplanes.normals)
        lengths = np.linalg.norm(stretched, axis=1)
        planes = Hyperplanes(
            stretched / lengths[:, None], (self.hyperplanes.offsets - stretched @ scaling.x_center) / lengths
        )
        activation = self.activation.rescale(1 / lengths)
        coef = (self.coef.T * lengths ** (activation.order - 1)).T * scaling.y_scale
        tail, tail_coef = self._tail_in_units_of(scaling, scaling.x_center)
        features = Features(planes, activation, tail.degree)
        return ShallowNetwork(features, np.concatenate([coef, tail_coef]))

    def function(self, scaling: Scaling) -> ShallowFunction:
        """Return the network as a plain function of the unscaled inputs."""
        activation, planes = self.activation, self.hyperplanes
        width = np.broadcast_to(activation.scale, len(planes))
        normals = scaling.normals_back(planes.normals)
        tail, tail_coef = self._tail_in_units_of(scaling, np.zeros_like(scaling.x_center))

        def weighted(k: int) -> Array:
            if k > activation.n_derivatives:
                return np.zeros_like(self.coef)
            return np.asarray((self.coef.T * activation.amplitude(k)).T * scaling.y_scale)

        return ShallowFunction(
            activation,
            scaling.x_center,
            np.ascontiguousarray((normals / width[:, None]).T),
            planes.offsets / width,
            weighted(0),
            weighted(1),
            normals,
            tail,
            tail_coef,
        )

    def _tail_in_units_of(self, scaling: Scaling, center: Array) -> tuple[Tail, Array]:
        """Return the tail and its coefficients for unscaled values, as a function of ``x - x_center + center``."""
        tail = Tail(max(self.features.degree, 0), len(scaling.x_center))  # the mean of the values is a constant
        coef = np.zeros((len(tail), *self.output_shape))
        scaled = self.tail_coef * scaling.y_scale
        if scaling.x_basis is None or tail.degree < 1:
            coef[: len(scaled)] = scaled
        elif tail.degree == 1:
            coef[0], coef[1:] = scaled[0], scaling.x_basis @ scaled[1:]
        else:
            raise ValueError(f"the tail of a function of fewer inputs must be affine, got degree {tail.degree}")
        coef = tail.substitution(center, scaling.x_scale) @ coef
        coef[0] += scaling.y_center
        return tail, coef

    def _weighted_sums(self, X: Array, k: int, vectors: Array) -> Array:
        """Return ``sum_n c_n sigma^(k)(a_n.x + b_n) v_n``, ``v_n`` the rows of ``vectors`` (N, m): (n, outputs, m)."""
        coef = self._columns(self.coef)
        result = np.empty((len(X), coef.shape[1], vectors.shape[1]))
        self.activation.require(k)
        for rows in row_blocks(len(X), self.features.n_neurons):
            slopes = self.features.neurons(X[rows], k)
            for output in range(coef.shape[1]):
                result[rows, output] = slopes @ (coef[:, output, None] * vectors)
        return result

    @staticmethod
    def _columns(coefficients: Array) -> Array:
        """Return the coefficients as a matrix with one column for each output."""
        return coefficients if coefficients.ndim == 2 else coefficients[:, None]
