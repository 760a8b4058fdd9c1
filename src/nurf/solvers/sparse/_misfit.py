"""The loss of a network with trained neurons, and its residual.

The loss is the same as in ridge regression, as a function of all weights. With the rows ``B`` of the row model, each a
linear functional ``<B, D^q f(x_k)>`` of the network (a value, a partial derivative, a directional derivative, an entry
of a Hessian), and the weight ``W`` of all values, it is (paper, eq. 1.1)::

    L(f) = 1 / (2 W) sum_rows w_k (<B, D^q f(x_k)> - y_B)^2,

where ``w_k`` is the weight of the sample, times the weight of derivatives of order q in ``Loss``; outputs are added up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nurf._blocks import row_blocks
from nurf._tensors import components
from nurf._types import Array, Index
from nurf.activations import Activation
from nurf.jets import Jet
from nurf.networks import Features, ShallowNetwork
from nurf.solvers._rows import VALUES_ONLY, Loss, slope_rows
from nurf.solvers.sparse._moments import Moments

DERIVATIVES = (ShallowNetwork.value, ShallowNetwork.gradient, ShallowNetwork.hessian)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one order at ``m`` points, with the same components at each point.

    Attributes
    ----------
    order : int
        0 for values, 1 for gradients, 2 for Hessians.
    X : array of shape (m, d)
    weights : array of shape (m,)
        ``w_k / W``.
    targets : array of shape (m, k, c)
    columns : array of shape (c,)
        The components of the derivatives.
    frames : array of shape (m, d), or None
        The directions of directional derivatives, which have no ``columns``.
    """

    order: int
    X: Array
    weights: Array
    targets: Array
    columns: Index
    frames: Array | None = None

    @property
    def n_components(self) -> int:
        """The number ``C`` of components of a derivative."""
        return math.comb(self.X.shape[1] + self.order - 1, self.order)

    def of(self, network: ShallowNetwork) -> Array:
        """Return the rows (m, k, c) of a network with coefficients of shape (N + t, k)."""
        m, d = self.X.shape
        derivatives = DERIVATIVES[self.order](network, self.X).reshape(m, -1, *[d] * self.order)
        tensors = components(derivatives, self.order)
        if self.frames is not None:
            return np.asarray(np.einsum("mkd,md->mk", tensors, self.frames)[..., None])
        return tensors if len(self.columns) == self.n_components else tensors[..., self.columns]

    def tensors(self, factors: Array) -> Array:
        """Return ``sum_c factors_c B_c`` for ``factors`` (m, k, c), the adjoint of ``of``: (m, k, C)."""
        if self.frames is not None:
            return factors * self.frames[:, None, :]
        if len(self.columns) == self.n_components:
            return factors
        result = np.zeros((*factors.shape[:2], self.n_components))
        result[..., self.columns] = factors
        return result


@dataclass(frozen=True, eq=False)
class Misfit:
    """Half the weighted mean of the squared residuals of values and derivatives.

    Parameters
    ----------
    jet : Jet
        The data, in the units in which the network is trained.
    loss : Loss
        The weights of the derivatives, by default zero.
    """

    jet: Jet
    loss: Loss = VALUES_ONLY

    def __post_init__(self) -> None:
        self.loss.require(self.jet)

    @cached_property
    def rows(self) -> tuple[Rows, ...]:
        """The known rows, values first."""
        return tuple(self._rows())

    def _rows(self) -> Iterator[Rows]:
        jet = self.jet.with_values()
        total = jet.weights(0).sum()
        yield Rows(0, jet.X, jet.weights(0) / total, jet.y.reshape(len(jet), -1, 1), np.zeros(1, np.int64))
        for order, weight in self.loss.orders:
            weights = self.jet.weights(order) * (weight / total)
            for group in slope_rows(self.jet, order):
                X = self.jet.X[group.index]
                yield Rows(order, X, weights[group.index], group.targets, group.columns, group.frames)

    @property
    def n_outputs(self) -> int:
        """The number of outputs ``k``."""
        return int(self.rows[0].targets.shape[1])

    @property
    def order(self) -> int:
        """The highest order of derivatives in the loss."""
        return max(rows.order for rows in self.rows)

    def require(self, activation: Activation) -> None:
        """Raise an error if the activation lacks the derivatives that training inner weights needs."""
        activation.require(self.order + 1)

    def residual(self, network: ShallowNetwork) -> Residual:
        """Return the residual of a network with coefficients of shape (N + t, k)."""
        tensors, loss = [], 0.0
        for rows in self.rows:
            errors = rows.targets - rows.of(network)
            weighted = errors * rows.weights[:, None, None]
            tensors.append(rows.tensors(weighted))
            loss += float(np.vdot(errors, weighted)) / 2
        return Residual(self.rows, tuple(tensors), loss)

    def minus(self, network: ShallowNetwork) -> Misfit:
        """Return the misfit to the residual of a network."""
        return replace(self, jet=residual_jet(self.jet, network, set(self.loss.kinds)))


def residual_jet(jet: Jet, network: ShallowNetwork, kinds: set[str]) -> Jet:
    """Return the residual of values and some derivatives, for a network with coefficients of shape (N + t, k)."""
    same = ShallowNetwork(network.features, network.coefficients.reshape(-1, *jet.y.shape[1:]))
    return jet - same.jet(jet.X, kinds)


@dataclass(frozen=True, eq=False)
class Residual:
    """The residual of a network, each row times its weight.

    Attributes
    ----------
    rows : tuple of Rows
    tensors : tuple of arrays of shapes (m, k, C)
        ``T_k = sum_B w_k (y_B - <B, D^q f(x_k)>) B / W`` at the points of each element of ``rows``.
    loss : float
    """

    rows: tuple[Rows, ...]
    tensors: tuple[Array, ...]
    loss: float

    def moments(self, features: Features, n_derivatives: int = 0) -> Moments:
        """Return ``p(omega) = <r, sigma(omega)>`` at the neurons of ``features``, with the sums for its derivatives.

        With ``z = (x, 1)`` and ``omega = (a, b)``, rows of order q contribute ``sum_k sigma^(q)(omega.z_k) <T_k, a^q>``
        to ``p``. The derivatives follow from the sums of ``sigma^(q+j)(omega.z_k) T_k z_k^j``, which are products of
        matrices (N, m) and (m, ...).
        """
        N, D = features.n_neurons, features.hyperplanes.dimension + 1
        sums: dict[int, list[Array]] = {}
        for rows, tensors in zip(self.rows, self.tensors, strict=True):
            _, k, C = tensors.shape
            own = sums.setdefault(rows.order, [np.zeros((N, k, C, *[D] * j)) for j in range(n_derivatives + 1)])
            for block in row_blocks(len(rows.X), max(N, k * C * D**n_derivatives)):
                X, factors = rows.X[block], tensors[block]
                z = np.concatenate([X, np.ones((len(X), 1))], axis=1)
                for j, total in enumerate(own):
                    if j:
                        factors = factors[..., None] * z.reshape(len(z), *[1] * (factors.ndim - 1), D)
                    neurons = features.neurons(X, rows.order + j)
                    total += (neurons.T @ factors.reshape(len(factors), -1)).reshape(total.shape)
        return Moments(features, sums)

    def moment_derivatives(self, activation: Activation) -> int:
        """Return the number of derivatives of the moments that an activation allows, at most two."""
        return min(2, activation.n_derivatives - max(rows.order for rows in self.rows))

    def tail_moments(self, features: Features) -> Array:
        """Return the moments against the monomials of the tail, of shape (t, k)."""
        result = np.zeros((len(features.tail), self.tensors[0].shape[1]))
        for rows, tensors in zip(self.rows, self.tensors, strict=True):
            if rows.order <= features.degree:
                monomials = features.tail.components(rows.X, rows.order)
                result += np.tensordot(monomials, tensors, axes=([0, 1], [0, 2]))
        return result
