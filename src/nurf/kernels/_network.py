"""Infinitely wide networks: combinations of a kernel and its derivatives at points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nurf._blocks import row_blocks
from nurf._scaling import Scaling
from nurf._types import Array
from nurf.kernels._functionals import Functionals, covariance
from nurf.kernels._radial import RadialKernel
from nurf.networks import Network, Tail


@dataclass(frozen=True, eq=False)
class Centers:
    """Functionals of one order, and their coefficients of shape (m, k)."""

    functionals: Functionals
    coef: Array

    def merged(self) -> Centers:
        """Return the same with one functional for each point, if they are first derivatives and there is one output.

        ``sum_j c_j d/dv_j`` is the derivative along ``sum_j c_j v_j``.
        """
        functionals = self.functionals
        if functionals.order != 1 or self.coef.shape[1] != 1 or not len(functionals):
            return self
        points = np.unique(functionals.index)
        sums = np.zeros_like(functionals.points)
        np.add.at(sums, functionals.index, self.coef * functionals.directions[0])
        return Centers(Functionals(functionals.points, points, (sums[points],)), np.ones((len(points), 1)))


@dataclass(frozen=True, eq=False)
class KernelNetwork(Network):
    """The function ``x -> sum_a c_a L_a k(A x, A .) + p(x)``, with values and derivatives at points as ``L_a``.

    It is a network with infinitely many neurons.

    Parameters
    ----------
    kernel : RadialKernel
    metric : array of shape (q, d)
        The linear map ``A``.
    centers : tuple of Centers
        The functionals of each order, and their coefficients.
    tail_coef : array of shape (t, k)
        The coefficients of ``p``: a constant, and slopes if there are any.
    output_shape : () or (k,)
    """

    kernel: RadialKernel
    metric: Array
    centers: tuple[Centers, ...]
    tail_coef: Array
    output_shape: tuple[int, ...] = ()

    @property
    def dimension(self) -> int:
        """The number of inputs."""
        return int(self.metric.shape[1])

    @property
    def n_derivatives(self) -> int:
        """The order of derivatives: that of the kernel suffices for two."""
        return 2

    def value(self, X: Array) -> Array:
        """Return the values at the points, of shape (n,) or (n, k)."""
        return self._derivative(X, 0)

    def gradient(self, X: Array) -> Array:
        """Return the gradients at the points, of shape (n, d) or (n, k, d)."""
        return self._derivative(X, 1)

    def hessian(self, X: Array) -> Array:
        """Return the Hessians at the points, of shape (n, d, d) or (n, k, d, d)."""
        return self._derivative(X, 2)

    def in_units_of(self, scaling: Scaling) -> KernelNetwork:
        """Return the same network as a function of the unscaled inputs, with unscaled values."""

        def unscaled(part: Centers) -> Centers:
            functionals = part.functionals
            points = scaling.inputs_back(functionals.points)
            directions = tuple(scaling.directions_back(v) for v in functionals.directions)
            return Centers(Functionals(points, functionals.index, directions), part.coef * scaling.y_scale)

        tail = Tail(int(len(self.tail_coef) > 1), len(scaling.x_scale))
        slopes = self.tail_coef[1:]
        if tail.degree and scaling.x_basis is not None:
            slopes = scaling.x_basis @ slopes
        scaled = np.concatenate([self.tail_coef[:1], slopes])
        tail_coef = tail.substitution(scaling.x_center, scaling.x_scale) @ (scaled * scaling.y_scale)
        tail_coef[0] += scaling.y_center
        centers = tuple(unscaled(part) for part in self.centers)
        return replace(self, metric=scaling.normals_back(self.metric), centers=centers, tail_coef=tail_coef)

    def _derivative(self, X: Array, order: int) -> Array:
        d, k = self.dimension, self.n_outputs
        centers = [(part.functionals.mapped(self.metric), part.coef) for part in self.centers]
        sums = np.empty((len(X), d**order, k))
        for rows in row_blocks(len(X), d**order * max((len(part) for part, _ in centers), default=1)):
            at = Functionals.at(X[rows], order)
            total = at.monomials(int(len(self.tail_coef) > 1)) @ self.tail_coef
            at = at.mapped(self.metric)
            total += sum(covariance(self.kernel, at, part) @ coef for part, coef in centers)
            sums[rows] = total.reshape(-1, d**order, k)
        return np.moveaxis(sums, 1, 2).reshape(len(X), *self.output_shape, *[d] * order)


@dataclass(frozen=True, eq=False)
class KernelAverage(Network):
    """The weighted mean of kernel networks, which is a network with infinitely many neurons of several kinds.

    Parameters
    ----------
    members : tuple of KernelNetwork
        Networks of the same inputs and outputs, that of the largest weight first.
    weights : array of shape (m,)
        They add up to one.
    """

    members: tuple[KernelNetwork, ...]
    weights: Array

    @property
    def dimension(self) -> int:
        """The number of inputs."""
        return self.members[0].dimension

    @property
    def output_shape(self) -> tuple[int, ...]:
        """() for one output, (k,) for ``k`` outputs."""
        return self.members[0].output_shape

    @property
    def n_derivatives(self) -> int:
        """The order of derivatives."""
        return min(member.n_derivatives for member in self.members)

    def value(self, X: Array) -> Array:
        """Return the values at the points, of shape (n,) or (n, k)."""
        return self._mean([member.value(X) for member in self.members])

    def gradient(self, X: Array) -> Array:
        """Return the gradients at the points, of shape (n, d) or (n, k, d)."""
        return self._mean([member.gradient(X) for member in self.members])

    def hessian(self, X: Array) -> Array:
        """Return the Hessians at the points, of shape (n, d, d) or (n, k, d, d)."""
        return self._mean([member.hessian(X) for member in self.members])

    def in_units_of(self, scaling: Scaling) -> KernelAverage:
        """Return the same network as a function of the unscaled inputs, with unscaled values."""
        return replace(self, members=tuple(member.in_units_of(scaling) for member in self.members))

    def _mean(self, results: list[Array]) -> Array:
        return np.asarray(sum(weight * result for weight, result in zip(self.weights, results, strict=True)))
