"""Deep networks: values, gradients and Hessians."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nurf._blocks import row_blocks
from nurf._scaling import Scaling
from nurf._types import Array
from nurf.networks._base import Network
from nurf.networks._nonlinearities import Nonlinearity, Tanh


@dataclass(frozen=True, eq=False)
class DeepNetwork(Network):
    """The function ``x -> h_L W_{L+1} + b_{L+1}`` with the layers ``h_0 = x``, ``h_l = sigma(h_{l-1} W_l + b_l)``.

    Parameters
    ----------
    weights : sequence of arrays of shape (n_{l-1}, n_l)
        ``W_1, ..., W_{L+1}``, where ``n_0`` is the number of inputs and ``n_{L+1}`` the number of outputs.
    biases : sequence of arrays of shape (n_l,)
        ``b_1, ..., b_{L+1}``.
    activation : Nonlinearity, default Tanh()
        ``sigma``, the same in all layers.
    output_shape : tuple of int, default ()
        () for one output, (k,) for ``k`` outputs.

    Examples
    --------
    >>> network = DeepNetwork([np.ones((2, 3)), np.ones((3, 1))], [np.zeros(3), np.zeros(1)])
    >>> network.value(np.array([[0.5, 0.5]])).round(4)
    array([2.2848])
    """

    weights: Sequence[Array]
    biases: Sequence[Array]
    activation: Nonlinearity = field(default_factory=Tanh)
    output_shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        weights = tuple(np.asarray(matrix, float) for matrix in self.weights)
        biases = tuple(np.asarray(vector, float) for vector in self.biases)
        shapes = [matrix.shape for matrix in weights]
        if len(weights) < 2 or len(biases) != len(weights) or any(len(shape) != 2 for shape in shapes):
            raise ValueError(
                f"a network needs two or more matrices, each with a bias, got shapes {shapes} and {len(biases)} biases"
            )
        sizes = [shapes[0][0], *(shape[1] for shape in shapes)]
        widths = [(size,) for size in sizes[1:]]
        if shapes != list(itertools.pairwise(sizes)) or [vector.shape for vector in biases] != widths:
            raise ValueError(
                f"the shapes of the layers must match, got matrices of shapes {shapes} and biases of shapes "
                f"{[vector.shape for vector in biases]}"
            )
        if math.prod(self.output_shape) != sizes[-1]:
            raise ValueError(f"`output_shape` must have {sizes[-1]} outputs, got {self.output_shape}")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "biases", biases)

    @property
    def dimension(self) -> int:
        """The number of inputs."""
        return int(self.weights[0].shape[0])

    @property
    def hidden(self) -> tuple[int, ...]:
        """The numbers of neurons of the hidden layers."""
        return tuple(int(matrix.shape[1]) for matrix in self.weights[:-1])

    @property
    def n_derivatives(self) -> int:
        """The highest order of derivatives that exist: 2, because the activation is smooth."""
        return 2

    def value(self, X: Array) -> Array:
        """Return the values at the points, of shape (n,) or (n, k)."""
        result = np.empty((len(X), self.n_outputs))
        for rows in self._blocks(len(X)):
            state = X[rows]
            for matrix, vector in zip(self.weights[:-1], self.biases[:-1], strict=True):
                (state,) = self.activation(state @ matrix + vector, 0)
            result[rows] = state @ self.weights[-1] + self.biases[-1]
        return result.reshape(len(X), *self.output_shape)

    def gradient(self, X: Array) -> Array:
        """Return the gradients at the points, of shape (n, d) or (n, k, d), by one reverse pass.

        ``dv/dh_{l-1} = (sigma'(z_l) dv/dh_l) W_l^T``, from the last layer to the first.
        """
        result = np.empty((len(X), self.n_outputs, self.dimension))
        for rows in self._blocks(len(X), self.n_outputs):
            _, slopes = self._states(X[rows], 1)
            result[rows] = self._reverse([slope[0] for slope in slopes])[0]
        return result.reshape(len(X), *self.output_shape, self.dimension)

    def hessian(self, X: Array) -> Array:
        """Return the Hessians at the points, of shape (n, d, d) or (n, k, d, d).

        Each layer adds ``J_l^T diag(dv/dh_l sigma''(z_l)) J_l`` with ``J_l = dz_l/dx``: the ``J_l`` come from one
        forward pass for all inputs, and ``dv/dh_l`` from the reverse pass for the gradient.
        """
        d, k = self.dimension, self.n_outputs
        result = np.zeros((len(X), k, d, d))
        for rows in self._blocks(len(X), max(d, k)):
            _, slopes = self._states(X[rows], 2)
            sensitivities = self._reverse([slope[0] for slope in slopes])
            jacobian = np.broadcast_to(self.weights[0], (len(X[rows]), d, self.hidden[0]))
            for layer, (slope, bend) in enumerate(slopes):
                factors = sensitivities[layer + 1] * bend[:, None, :]
                for output in range(k):
                    result[rows, output] += (jacobian * factors[:, None, output]) @ np.swapaxes(jacobian, 1, 2)
                if layer + 1 < len(slopes):
                    jacobian = (jacobian * slope[:, None, :]) @ self.weights[layer + 1]
        return result.reshape(len(X), *self.output_shape, d, d)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the values (n, [k]) and the gradients (n, [k,] d) at the points, from one pass."""
        state, slopes = self._states(X, 1)
        values = state @ self.weights[-1] + self.biases[-1]
        gradients = self._reverse([slope[0] for slope in slopes])[0]
        shape = (len(X), *self.output_shape)
        return values.reshape(shape), gradients.reshape(*shape, self.dimension)

    def in_units_of(self, scaling: Scaling) -> DeepNetwork:
        """Return the network as a function of the unscaled inputs, with unscaled values.

        The scaling of the inputs is multiplied into the first layer, the scaling of the values into the last layer.
        """
        network = self._stretched(scaling)
        shift = -(scaling.x_center @ network.weights[0])
        return replace(network, biases=(network.biases[0] + shift, *network.biases[1:]))

    def function(self, scaling: Scaling) -> DeepFunction:
        """Return the network as a plain function of the unscaled inputs."""
        return DeepFunction(scaling.x_center, self._stretched(scaling))

    def _stretched(self, scaling: Scaling) -> DeepNetwork:
        """Return the network as a function of ``x - x_center``, with unscaled values."""
        first, *rest = self.weights
        *inner, last = (scaling.normals_back(first.T).T, *rest)
        biases = (*self.biases[:-1], self.biases[-1] * scaling.y_scale + scaling.y_center)
        return replace(self, weights=(*inner, last * scaling.y_scale), biases=biases)

    def _blocks(self, n_points: int, n_states: int = 1) -> Any:
        """Return slices of the points such that ``n_states`` states of the widest layer fit into the cache."""
        return row_blocks(n_points, n_states * max(self.dimension, *self.hidden))

    def _states(self, X: Array, order: int) -> tuple[Array, list[list[Array]]]:
        """Return the last hidden state, and the derivatives 1 to ``order`` of the activation in each layer."""
        state, slopes = X, []
        for matrix, vector in zip(self.weights[:-1], self.biases[:-1], strict=True):
            state, *derivatives = self.activation(state @ matrix + vector, order)
            slopes.append(derivatives)
        return state, slopes

    def _reverse(self, slopes: list[Array]) -> list[Array]:
        """Return ``dv/dh_l`` for ``l = 0, ..., L``, each of shape (n, k, n_l)."""
        last = np.broadcast_to(self.weights[-1].T, (len(slopes[0]), *self.weights[-1].T.shape))
        sensitivities = [last]
        for matrix, slope in zip(reversed(self.weights[:-1]), reversed(slopes), strict=True):
            sensitivities.append((sensitivities[-1] * slope[:, None, :]) @ matrix.T)
        return sensitivities[::-1]


@dataclass(frozen=True, eq=False)
class DeepFunction:
    """A deep network as a function of ``x - center``, without checks of the points.

    A call takes one point of shape (d,) and returns a number, or (k,) for ``k`` outputs; or many points of shape
    (n, d), and returns (n,) or (n, k). Gradients have one more axis, of length d.

    Parameters
    ----------
    center : array of shape (d,)
        Center that is subtracted from the points first, so that inputs with a large mean lose no digits.
    network : DeepNetwork
    """

    center: Array
    network: DeepNetwork

    def __call__(self, x: Any) -> Any:
        """Return the value at ``x``."""
        points = np.asarray(x, float) - self.center
        values = self.network.value(np.atleast_2d(points))
        return values if points.ndim == 2 else values[0]

    def gradient(self, x: Any) -> Array:
        """Return the gradient at ``x``."""
        points = np.asarray(x, float) - self.center
        gradients = self.network.gradient(np.atleast_2d(points))
        return gradients if points.ndim == 2 else np.asarray(gradients[0])

    def value_and_gradient(self, x: Any) -> tuple[Any, Array]:
        """Return the value and the gradient at ``x``, which costs less than two calls."""
        points = np.asarray(x, float) - self.center
        values, gradients = self.network.value_and_gradient(np.atleast_2d(points))
        return (values, gradients) if points.ndim == 2 else (values[0], gradients[0])
