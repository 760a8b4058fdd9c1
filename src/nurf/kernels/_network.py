"""Infinitely wide networks: combinations of a kernel and its derivatives at points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nurf._blocks import row_blocks
from nurf._scaling import Scaling
from nurf._types import Array
from nurf.kernels._functionals import Functionals, covariance
from nurf.kernels._radial import RadialKernel
from nurf.networks import Network, PointFunction, Tail


@dataclass(frozen=True, eq=False)
class Centers:
    """Functionals of one order, and their coefficients of shape (m, k)."""

    functionals: Functionals
    coef: Array

    def merged(self) -> Centers:
        """Return first derivatives of one output with their directions added up, so that each point has one functional.

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

    Such a function is a network with infinitely many neurons.

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
        """The order of derivatives, which is 2 for all kernels of this package."""
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
        """Return the network as a function of the unscaled inputs, with unscaled values."""

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
        Networks of the same inputs and outputs, the largest weight first.
    weights : array of shape (m,)
        Weights, which add up to one.
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
        """Return the network as a function of the unscaled inputs, with unscaled values."""
        return replace(self, members=tuple(member.in_units_of(scaling) for member in self.members))

    def function(self, scaling: Scaling) -> PointFunction:
        """Return the network as a plain function of the unscaled inputs."""
        network = self.in_units_of(scaling)
        if not all(KernelSums.holds(member) for member in network.members):
            return super().function(scaling)
        return KernelFunction(network, tuple(KernelSums.of(member) for member in network.members))

    def _mean(self, results: list[Array]) -> Array:
        return np.asarray(sum(weight * result for weight, result in zip(self.weights, results, strict=True)))


@dataclass(frozen=True, eq=False)
class KernelSums:
    """A kernel network of values and first derivatives, with one value and one slope at each point.

    ``f(x) = sum_b (c_b k(A x, A x_b) + D_b.grad k(A x, A x_b))`` up to the polynomial, where the gradient is with
    respect to the second argument.

    Parameters
    ----------
    kernel : RadialKernel
    metric : array of shape (q, d)
        The linear map ``A``.
    points : array of shape (n, q)
        ``A x_b``.
    coef : array of shape (n, k)
        ``c_b``.
    slopes : array of shape (n, q, k)
        ``D_b``.
    """

    kernel: RadialKernel
    metric: Array
    points: Array
    coef: Array
    slopes: Array

    @staticmethod
    def holds(network: KernelNetwork) -> bool:
        """Return whether a network has values and first derivatives at the same points only."""
        points = network.centers[0].functionals.points
        parts = [part.functionals for part in network.centers]
        return all(part.order < 2 and np.array_equal(part.points, points) for part in parts)

    @classmethod
    def of(cls, network: KernelNetwork) -> KernelSums:
        """Return the sums of a network that they hold."""
        n, (q, k) = len(network.centers[0].functionals.points), (len(network.metric), network.n_outputs)
        coef, slopes, points = np.zeros((n, k)), np.zeros((n, q, k)), network.centers[0].functionals.points
        for part in network.centers:
            mapped = part.functionals.mapped(network.metric)
            if mapped.order:
                np.add.at(slopes, mapped.index, mapped.directions[0][:, :, None] * part.coef[:, None])
            else:
                np.add.at(coef, mapped.index, part.coef)
        return cls(network.kernel, network.metric, points @ network.metric.T, coef, slopes)

    def value(self, x: Array) -> Array:
        """Return the value at a point (d,), of shape (k,)."""
        _, t, along = self._at(x)
        return np.asarray(self.kernel.profile(t) @ self.coef - self.kernel.profile(t, 1) @ along)

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """Return the value at a point (d,), of shape (k,), and the gradient (k, d)."""
        z, t, along = self._at(x)
        phi, first, second = (self.kernel.profile(t, order) for order in range(3))
        slope = (first[:, None] * self.coef - second[:, None] * along).T @ z - np.tensordot(first, self.slopes, 1).T
        return phi @ self.coef - first @ along, slope @ self.metric

    def _at(self, x: Array) -> tuple[Array, Array, Array]:
        """Return ``z_b = A x - A x_b``, ``|z_b|^2 / 2`` and ``z_b.D_b``."""
        z = self.metric @ x - self.points
        return z, np.einsum("nq,nq->n", z, z) / 2, np.einsum("nq,nqk->nk", z, self.slopes)


@dataclass(frozen=True, eq=False)
class KernelFunction:
    """An average of kernel networks of values and first derivatives, as a function that does not check points.

    Parameters
    ----------
    network : KernelAverage
        The function of many points.
    sums : tuple of KernelSums
        Its members as functions of one point.
    """

    network: KernelAverage
    sums: tuple[KernelSums, ...]

    def __call__(self, x: Any) -> Any:
        """Return the value at ``x``."""
        x = np.asarray(x, float)
        if x.ndim == 2:
            return self.network.value(x)
        total = sum(weight * each.value(x) for weight, each in zip(self.network.weights, self.sums, strict=True))
        return (total + self._tail[0] + x @ self._tail[1:]).reshape(self.network.output_shape)[()]

    def gradient(self, x: Any) -> Array:
        """Return the gradient at ``x``."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: Any) -> tuple[Any, Array]:
        """Return the value and the gradient at ``x``, which costs less than two calls."""
        x = np.asarray(x, float)
        if x.ndim == 2:
            return self.network.value(x), self.network.gradient(x)
        shape, tail = self.network.output_shape, self._tail
        value, gradient = tail[0] + x @ tail[1:], tail[1:].T
        for weight, each in zip(self.network.weights, self.sums, strict=True):
            of_member = each.value_and_gradient(x)
            value, gradient = value + weight * of_member[0], gradient + weight * of_member[1]
        return value.reshape(shape)[()], gradient.reshape(*shape, len(x))

    @cached_property
    def _tail(self) -> Array:
        """The constant and the slopes of the polynomial, of shape (1 + d, k)."""
        result = np.zeros((1 + self.network.dimension, self.network.n_outputs))
        for weight, member in zip(self.network.weights, self.network.members, strict=True):
            result[: len(member.tail_coef)] += weight * member.tail_coef
        return result
