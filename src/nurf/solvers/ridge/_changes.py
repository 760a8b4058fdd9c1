"""Changes of a network's coefficients, and what they cost in ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nurf._types import Array
from nurf.jets import Jet
from nurf.kernels import Functionals
from nurf.networks import Features, ShallowNetwork
from nurf.solvers._rows import Loss
from nurf.solvers.ridge._least_squares import LeastSquares


@dataclass(frozen=True, eq=False)
class RidgeChanges:
    """A network of ridge regression, whose coefficients may change by ``B x`` with the cost ``|x|^2 / 2``.

    With ``B B^T = (Z^T W Z + alpha N W)^-1`` this is by how much the objective of ridge regression grows.

    Parameters
    ----------
    network : ShallowNetwork
    jet : Jet
        The data to which it was fitted.
    alpha : float
        In the units of ``Ridge``.
    loss : Loss
    precise : bool
        Whether alpha is so small that ``PreciseRidge`` is needed.
    """

    network: ShallowNetwork
    jet: Jet
    alpha: float
    loss: Loss
    precise: bool = False

    @cached_property
    def factor(self) -> Array:
        """``B``, of shape (N + t, m)."""
        problem = LeastSquares(self.network.features, self.jet)
        return problem.ridge(self.loss, precise=self.precise).covariance_factor(self.alpha)

    def root(self, parts: Sequence[Functionals], output: int) -> Array:
        """Return the functionals of all features times ``B``, of shape (p, m), the same for all outputs."""
        return np.concatenate([functional_design(self.network.features, part) for part in parts]) @ self.factor

    def moved(self, parts: Sequence[Functionals], multipliers: Array) -> ShallowNetwork:
        """Return the network with the coefficients that multipliers (p, k) of functionals give."""
        change = self.factor @ (self.root(parts, 0).T @ multipliers)
        coefficients = self.network.coefficients
        return replace(self.network, coefficients=coefficients + change.reshape(coefficients.shape))


def functional_design(features: Features, at: Functionals) -> Array:
    """Return functionals of all features, of shape (m, N + t)."""
    X, N = at.points[at.index], features.n_neurons
    result = np.empty((len(at), features.n_columns))
    features.neurons(X, at.order, out=result[:, :N])
    for v in at.directions:
        result[:, :N] *= v @ features.hyperplanes.normals.T
    if at.order == 0:
        result[:, N:] = features.tail.values(X)
    elif at.order == 1:
        result[:, N:] = np.einsum("mdt,md->mt", features.tail.components(X, 1), at.directions[0])
    else:
        hessians = features.tail.hessian(X, np.eye(len(features.tail)))
        result[:, N:] = np.einsum("mtij,mi,mj->mt", hessians, *at.directions)
    return result
