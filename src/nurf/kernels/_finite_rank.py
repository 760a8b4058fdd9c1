"""The kernel of given neurons, and the norm that belongs to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nurf._types import Array
from nurf.kernels._base import Kernel
from nurf.networks import Features, ShallowNetwork


@dataclass(frozen=True, eq=False)
class FiniteRankKernel(Kernel):
    """The kernel of given neurons, ``k_{M,N}(x, x') = 1/N sum_n phi_n(x) phi_n(x')`` (paper, eq. 1.7).

    Ridge regression on ``K`` samples with the penalty ``alpha N / 2 |c|^2`` (eq. 1.6) and no tail is kernel ridge
    regression with this kernel and the penalty ``alpha K``. A tail of ``features`` is ignored.
    """

    features: Features

    def __post_init__(self) -> None:
        if not isinstance(self.features, Features):
            raise ValueError(f"`features` must be Features of nurf.networks, got {self.features!r}")

    def _check(self, name: str, X: Array) -> None:
        d = self.features.hyperplanes.dimension
        if X.shape[1] != d:
            raise ValueError(f"`{name}` must have d = {d} columns like the hyperplanes, got {X.shape[1]}")

    def _matrix(self, X: Array, Y: Array) -> Array:
        left = self.features.neurons(X)
        right = left if Y is X else self.features.neurons(Y)
        return np.asarray(left @ right.T / self.features.n_neurons)


class Fitted(Protocol):
    """A result of a fit, with an attribute ``network``."""

    @property
    def network(self) -> ShallowNetwork:
        """The fitted network."""
        ...


def rkhs_norm(fitted: ShallowNetwork | Fitted) -> Array:
    """Return the norm of a network in the Hilbert space of its density: a number, or one for each output (k,).

    ``|f|^2 = int c(omega)^2 dM(omega)``, which is ``N sum_n c_n^2`` for sampled neurons, as ``c_n = c(omega_n) / N``
    (paper, eqs. 2.9 and 2.10; the text between them has this substitution inverted). Ridge regression penalises its
    square; for the solution of ridge regression it is the norm in the reproducing kernel Hilbert space of
    ``FiniteRankKernel``. The tail is ignored.

    The norm depends on the density from which the neurons were sampled. If neurons are placed where the function
    varies, many of them contribute, with small outer weights. If most of them contribute nothing, the others need large
    weights. So if two networks represent a function equally well, the one with the better density has the smaller norm.

    Parameters
    ----------
    fitted : ShallowNetwork or object with an attribute ``network``
    """
    network = getattr(fitted, "network", fitted)
    if not isinstance(network, ShallowNetwork):
        raise ValueError(f"`fitted` must be a ShallowNetwork or have one as `network`, got {fitted!r}")
    norm: Array = math.sqrt(network.features.n_neurons) * np.linalg.norm(network.coef, axis=0)
    return norm
