"""The loss of a trained network, its residual, and the moments of the residual against neurons anywhere.

With ``W = sum_k w_k`` the loss is (paper, eq. 1.1)

    L(f) = 1 / (2 W) sum_k w_k (|f(x_k) - y_k|^2 + gradient_weight |grad f(x_k) - g_k|^2),

outputs added up. ``W`` is the weight of the values; gradients have weights of their own where the jet says so, and are
left out where they are not fully known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nurf._blocks import row_blocks
from nurf._types import Array
from nurf.jets import Jet
from nurf.networks import Features, ShallowNetwork


@dataclass(frozen=True, eq=False)
class Misfit:
    """Half the weighted mean of the squared residuals, of values and by choice of gradients.

    Parameters
    ----------
    jet : Jet
        The data, in the units in which the network is trained.
    gradient_weight : float, default 0
        How much the squared residual of a gradient counts beside that of a value.
    """

    jet: Jet
    gradient_weight: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.gradient_weight) and self.gradient_weight >= 0):
            raise ValueError(f"`gradient_weight` must be a number >= 0, got {self.gradient_weight!r}")
        if self.gradient_weight > 0 and "gradients" not in self.jet.known:
            raise ValueError(f"`gradient_weight` = {self.gradient_weight} needs gradients, got none")

    @cached_property
    def row_weights(self) -> Array:
        """``w_k / W``, of shape (n,); zero where the value is not known."""
        weights = np.where(self.jet.has_value, self.jet.weights(0), 0.0)
        return np.asarray(weights / weights.sum())

    @cached_property
    def targets(self) -> Array:
        """The values, of shape (n, k); zero where they are not known."""
        return np.nan_to_num(self.jet.y.reshape(len(self.jet), -1), nan=0.0)

    @cached_property
    def slopes(self) -> tuple[Array, Array] | None:
        """The gradients (n, k, d), zero where they are not used, and their weights (n,); None where none count."""
        if self.gradient_weight == 0 or self.jet.gradients is None:
            return None
        gradients = self.jet.gradients.reshape(len(self.jet), -1, self.jet.n_features)
        known = np.asarray(~np.isnan(gradients).any(axis=(1, 2)))
        if self.jet.frames is not None:
            known &= np.count_nonzero(self.jet.frames.any(axis=2), axis=1) == self.jet.n_features
        total = np.sum(self.jet.weights(0), where=self.jet.has_value)
        weights = self.gradient_weight * self.jet.weights(1) / total * known
        return np.where(known[:, None, None], gradients, 0.0), weights

    @property
    def n_outputs(self) -> int:
        """Number of outputs ``k``."""
        return int(self.targets.shape[1])

    def residual(self, network: ShallowNetwork) -> Residual:
        """Return ``y - f`` at the rows, and its mean square."""
        values = self.targets - network.value(self.jet.X).reshape(self.targets.shape)
        weighted = values * self.row_weights[:, None]
        loss = float(np.vdot(values, weighted)) / 2
        if self.slopes is None:
            return Residual(self.jet.X, weighted, None, loss)
        gradients, weights = self.slopes
        errors = gradients - network.gradient(self.jet.X).reshape(gradients.shape)
        gradient_sums = errors * weights[:, None, None]
        return Residual(self.jet.X, weighted, gradient_sums, loss + float(np.vdot(errors, gradient_sums)) / 2)


@dataclass(frozen=True, eq=False)
class Residual:
    """What a network leaves of the data, each row times its weight.

    Attributes
    ----------
    X : array of shape (n, d)
    values : array of shape (n, k)
        ``w_k (y_k - f(x_k)) / W``.
    gradients : array of shape (n, k, d), or None
        ``gradient_weight w_k (g_k - grad f(x_k)) / W``.
    loss : float
    """

    X: Array
    values: Array
    gradients: Array | None
    loss: float

    def moments(self, features: Features, order: int = 0) -> Moments:
        """Return ``p(omega) = <r, sigma(omega)>`` and its derivatives up to ``order`` at the neurons of ``features``.

        With ``z = (x, 1)`` and ``omega = (a, b)``, ``p = sum_k r_k sigma(omega.z_k)``, so that the derivatives are
        products of ``sigma^(j)`` (n, N) with ``r z^j`` (n, ...), the same for all neurons. Gradient rows add
        ``sum_k (r'_k.a) sigma'(omega.z_k)``.
        """
        n, d = self.X.shape
        N, k = features.n_neurons, self.values.shape[1]
        sums = [np.zeros((N, k, *[d + 1] * j)) for j in range(order + 1)]
        gradient_sums = (
            [np.zeros((N, k, d, *[d + 1] * j)) for j in range(order + 1)] if self.gradients is not None else None
        )
        for rows in row_blocks(n, max(N, k * (d + 1) ** order)):
            X = self.X[rows]
            z = np.concatenate([X, np.ones((len(X), 1))], axis=1)
            factors: Array = self.values[rows]
            slopes = None if self.gradients is None else self.gradients[rows]
            for j in range(order + 1):
                sums[j] += _against(features.neurons(X, j), factors)
                if gradient_sums is not None and slopes is not None:
                    gradient_sums[j] += _against(features.neurons(X, j + 1), slopes)
                if j < order:
                    factors = _times(factors, z)
                    slopes = None if slopes is None else _times(slopes, z)
        return Moments(features, sums, gradient_sums)


@dataclass(frozen=True, eq=False)
class Moments:
    """``p(omega)`` and its derivatives at ``N`` neurons, by the ambient coordinates ``omega = (a, b)``.

    Attributes
    ----------
    features : Features
        The neurons.
    sums : list of arrays of shapes (N, k), (N, k, D), (N, k, D, D) with D = d + 1
        ``sum_k r_k sigma^(j) z^j``.
    gradient_sums : list of arrays of shapes (N, k, d), (N, k, d, D), (N, k, d, D, D), or None
        ``sum_k r'_k sigma^(j+1) z^j``.
    """

    features: Features
    sums: list[Array]
    gradient_sums: list[Array] | None

    @cached_property
    def values(self) -> Array:
        """``p``, of shape (N, k)."""
        if self.gradient_sums is None:
            return self.sums[0]
        return np.asarray(
            self.sums[0] + np.einsum("nki,ni->nk", self.gradient_sums[0], self.features.hyperplanes.normals)
        )

    def gradients(self, directions: Array, widths: bool = False) -> Array:
        """Return the derivatives of ``v.p`` for ``v = directions`` (N, k), of shape (N, D), or (N, D + 1) with widths.

        The last is by ``log delta``: ``delta d/d delta sigma^(j) = (s - 1 - j) sigma^(j) - u sigma^(j+1)``.
        """
        s, omega, a = self._constants
        d = a.shape[1]
        m0, m1 = (np.einsum("nk...,nk->n...", m, directions) for m in self.sums[:2])
        result = np.concatenate([m1, ((s - 1) * m0 - _dot(m1, omega))[:, None]], axis=1)
        if self.gradient_sums is not None:
            n0, n1 = (np.einsum("nk...,nk->n...", m, directions) for m in self.gradient_sums[:2])
            result[:, :-1] += np.einsum("nij,ni->nj", n1, a)
            result[:, :d] += n0
            result[:, -1] += _dot((s - 2) * n0 - np.einsum("nij,nj->ni", n1, omega), a)
        return result if widths else result[:, :-1]

    def hessians(self, directions: Array, widths: bool = False) -> Array:
        """Return the second derivatives of ``v.p``, of shape (N, D, D), or (N, D + 1, D + 1) with widths."""
        s, omega, a = self._constants
        d = a.shape[1]
        m0, m1, m2 = (np.einsum("nk...,nk->n...", m, directions) for m in self.sums)
        result = np.empty((len(a), d + 2, d + 2))
        result[:, :-1, :-1] = m2
        mixed = (s - 2) * m1 - np.einsum("nij,nj->ni", m2, omega)
        last = (s - 1) * ((s - 1) * m0 - _dot(m1, omega)) - _dot(mixed, omega)
        if self.gradient_sums is not None:
            n0, n1, n2 = (np.einsum("nk...,nk->n...", m, directions) for m in self.gradient_sums)
            result[:, :-1, :-1] += np.einsum("nijl,ni->njl", n2, a)
            result[:, :d, :-1] += n1
            result[:, :-1, :d] += n1.transpose(0, 2, 1)
            stretched = (s - 2) * n0 - np.einsum("nij,nj->ni", n1, omega)
            crossed = (s - 3) * n1 - np.einsum("nijl,nl->nij", n2, omega)
            mixed = mixed + np.einsum("nij,ni->nj", crossed, a)
            mixed[:, :d] += stretched
            last = last + _dot((s - 2) * stretched - np.einsum("nij,nj->ni", crossed, omega), a)
        result[:, :-1, -1] = result[:, -1, :-1] = mixed
        result[:, -1, -1] = last
        return result if widths else result[:, :-1, :-1]

    @property
    def _constants(self) -> tuple[int, Array, Array]:
        planes = self.features.hyperplanes
        return (
            self.features.activation.order,
            np.column_stack([planes.normals, planes.offsets]),
            planes.normals,
        )


def _against(neurons: Array, factors: Array) -> Array:
    """Return ``sum_k neurons_kn factors_k...``, of shape (N, ...)."""
    flat = factors.reshape(len(factors), -1)
    return np.asarray((neurons.T @ flat).reshape(neurons.shape[1], *factors.shape[1:]))


def _times(factors: Array, z: Array) -> Array:
    """Return the products ``factors_k... z_kj``, with a new last axis."""
    return np.asarray(factors[..., None] * z.reshape(len(z), *[1] * (factors.ndim - 1), -1))


def _dot(x: Array, y: Array) -> Array:
    return np.asarray(np.einsum("ni,ni->n", x, y))
