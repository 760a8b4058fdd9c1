"""Joint training of inner and outer weights: one Gauss-Newton matrix for all of them, from sums over samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from nurf._blocks import row_blocks
from nurf._types import Array, Index, Mask
from nurf.networks import Features, ShallowNetwork
from nurf.solvers.sparse._charts import Bounds, Chart
from nurf.solvers.sparse._descent import OuterPoint, add_penalty, damping_scale, same_side
from nurf.solvers.sparse._loss import Misfit, Moments, Residual
from nurf.solvers.sparse._penalties import Penalty, row_sizes

LONGEST_STEP = 3.0  # of an inner weight, in units of the chart: beyond it the linearisation says nothing


@dataclass(frozen=True, eq=False)
class Objective:
    """``L(f) + alpha sum_n psi(|c_n|)`` (paper, eq. 1.4), as a function of networks.

    Parameters
    ----------
    loss : Misfit
    penalty : Penalty
    alpha : float
    bounds : Bounds
        The inner weights among which neurons are looked for.
    widths : bool
        Whether the widths are trained, one for each neuron.
    """

    loss: Misfit
    penalty: Penalty
    alpha: float
    bounds: Bounds
    widths: bool = False

    def at(self, network: ShallowNetwork) -> JointPoint:
        """Return the point of descent at a network with weights of shape (N + t, k)."""
        return JointPoint(self, network)

    def outer(self, network: ShallowNetwork) -> OuterPoint:
        """Return the point of descent of the outer weights alone."""
        features = network.features
        gram = gauss_newton_gram(self.loss, Chart(features, self.bounds), inner=False)
        zero = self.loss.residual(ShallowNetwork(features, np.zeros_like(network.coefficients)))
        moments = np.concatenate([zero.moments(features).values, tail_moments(features, zero)])
        kept = np.arange(features.n_neurons, dtype=np.int64)
        return OuterPoint(gram, moments, zero.loss, network.coefficients, kept, self.penalty, self.alpha)


@dataclass(frozen=True, eq=False)
class JointPoint:
    """A network as a point of descent, in all its weights: outer ones and tail of each output, then the chart's."""

    objective: Objective
    network: ShallowNetwork

    @cached_property
    def residual(self) -> Residual:
        """What the network leaves of the data."""
        return self.objective.loss.residual(self.network)

    @cached_property
    def value(self) -> float:
        """The objective."""
        objective = self.objective
        return float(self.residual.loss + objective.alpha * objective.penalty.value(row_sizes(self.network.coef)).sum())

    @cached_property
    def chart(self) -> Chart:
        """Coordinates around the inner weights."""
        return Chart(self.network.features, self.objective.bounds, self.objective.widths)

    @cached_property
    def violation(self) -> float:
        """The largest violation of the optimality conditions, in units of ``alpha``.

        By the outer weights ``|p - alpha psi' c / |c||``; by the inner ones the derivatives of ``p.c / |c|`` in the
        units of the chart, where they do not point out of the bounds; by the tail its moments.
        """
        objective, coef = self.objective, self.network.coef
        outer = objective.penalty.distance(coef, self._moments.values, objective.alpha)
        ascent = self._ascent / np.maximum(row_sizes(coef), np.finfo(float).tiny)[:, None]
        inner = np.where(self.chart.blocked(ascent), 0.0, ascent * self.chart.units)
        tail = tail_moments(self.network.features, self.residual)
        parts = [outer.max(initial=0.0)] + [np.abs(p).max(initial=0.0) / objective.alpha for p in (inner, tail)]
        return float(max(parts))

    @cached_property
    def _moments(self) -> Moments:
        order = 2 if self._bends else 1
        return self.residual.moments(self.network.features, order)

    @property
    def _bends(self) -> bool:
        """Whether the activation has the derivatives that second derivatives of the residual need."""
        needed = 3 if self.objective.loss.slopes is not None else 2
        return self.network.activation.n_derivatives >= needed

    @cached_property
    def _ambient(self) -> Array:
        return self._moments.gradients(self.network.coef, self.objective.widths)

    @cached_property
    def _ascent(self) -> Array:
        """Minus the derivative of the loss by the coordinates of the chart, of shape (N, q)."""
        return self.chart.gradients(self._ambient)

    def derivatives(self) -> tuple[Array, Array, Array]:
        """Return the gradient, the model of the Hessian and the scale of damping."""
        objective, network, chart = self.objective, self.network, self.chart
        coef, N, k = network.coef, network.features.n_neurons, network.coefficients.shape[1]
        n_outer = len(network.coefficients)
        gram = gauss_newton_gram(objective.loss, chart)
        hessian = expand_gram(gram, coef, n_outer)
        scale = np.concatenate([damping_scale(gram[:n_outer, :n_outer], k), np.diag(hessian)[n_outer * k :]])
        add_penalty(hessian, coef, n_outer, objective.penalty, objective.alpha)
        inner = n_outer * k + np.arange(N)[:, None] + N * np.arange(chart.n_coordinates)
        floor = objective.alpha * row_sizes(coef)[:, None] / chart.units**2
        scale[inner] += floor
        hessian[inner, inner] += 1e-6 * floor
        if self._bends:
            bends = -chart.hessians(self._moments.hessians(coef, objective.widths), self._ambient)
            hessian[inner[:, :, None], inner[:, None, :]] += positive_part(bends)
        pull = np.concatenate([self._moments.values, tail_moments(network.features, self.residual)])
        pull[:N] -= objective.alpha * objective.penalty.gradient(coef)
        gradient = -np.concatenate([pull.T.ravel(), self._ascent.T.ravel()])
        stuck = inner[chart.blocked(self._ascent)]
        hessian[stuck], hessian[:, stuck], gradient[stuck] = 0.0, 0.0, 0.0
        hessian[stuck, stuck] = 1.0
        return gradient, hessian, scale

    def moved(self, step: Array) -> JointPoint:
        """Return the point after a step, with every neuron's inner step at most ``LONGEST_STEP`` units long."""
        network, chart = self.network, self.chart
        rows, k = network.coefficients.shape
        weights = network.coefficients + step[: rows * k].reshape(k, rows).T
        stays = same_side(network.coef, weights, self.objective.penalty)
        inner = step[rows * k :].reshape(chart.n_coordinates, -1).T
        lengths = row_sizes(inner / chart.units)
        inner = inner * np.minimum(1.0, LONGEST_STEP / np.maximum(lengths, LONGEST_STEP))[:, None]
        return replace(self, network=keep(ShallowNetwork(chart.move(inner), weights), stays))


def keep(network: ShallowNetwork, stays: Mask) -> ShallowNetwork:
    """Keep some of the neurons of a network, and its tail."""
    if stays.all():
        return network
    return ShallowNetwork(network.features[stays], np.concatenate([network.coef[stays], network.tail_coef]))


def gauss_newton_gram(loss: Misfit, chart: Chart, inner: bool = True) -> Array:
    """Return ``J^T W J`` for unit outer weights, columns: neurons, tail, then each coordinate of all neurons.

    The columns are ``sigma``, the monomials, and ``sigma' (x.Q_i)``, ``sigma'``, ``(s - 1) sigma - u sigma'``; outer
    weights multiply the sums afterwards (``expand_gram``), whatever the number of outputs.
    """
    features = chart.features
    size = features.n_columns + inner * features.n_neurons * chart.n_coordinates
    gram = np.zeros((size, size))
    roots = np.sqrt(loss.row_weights)
    for rows in row_blocks(len(loss.jet) if size else 0, size):
        block = value_columns(chart, loss.jet.X[rows], inner) * roots[rows, None]
        gram += block.T @ block
    return gram if loss.slopes is None else gram + _gradient_gram(loss, chart, inner)


def value_columns(chart: Chart, X: Array, inner: bool = True) -> Array:
    """Return the columns of the Jacobian of the values, for unit outer weights."""
    features = chart.features
    N, d = features.n_neurons, features.hyperplanes.dimension
    n = len(X)
    if not inner:
        return features.design(X)
    columns = np.empty((n, features.n_columns + N * chart.n_coordinates))
    features.design(X, out=columns[:, : features.n_columns])
    parts = columns[:, features.n_columns :].reshape(n, chart.n_coordinates, N)
    slopes = features.neurons(X, 1)
    np.multiply(_along(chart, X), slopes[:, None, :], out=parts[:, : d - 1])
    parts[:, d - 1] = slopes
    if chart.widths:
        parts[:, d] = _stretched(features, X, columns[:, :N], slopes, 0)
    return columns


def _gradient_gram(loss: Misfit, chart: Chart, inner: bool) -> Array:
    """Return the same for the gradient rows, all partials added up.

    A column of the Jacobian is a sum of functions times directions, ``F_k v``, so that with all of them the sum over
    partials is ``(V V^T) o (F^T W F)``: the number of products does not grow with d. Functions of one parameter are
    added up at the end.
    """
    assert loss.slopes is not None
    features = chart.features
    directions, owners = _gradient_directions(chart, inner)
    gram = np.zeros((len(owners), len(owners)))
    roots = np.sqrt(loss.slopes[1])
    for rows in row_blocks(len(loss.jet), len(owners)):
        block = _gradient_columns(chart, loss.jet.X[rows], inner) * roots[rows, None]
        gram += block.T @ block
    gram *= directions @ directions.T
    size = features.n_columns + inner * features.n_neurons * chart.n_coordinates
    fold = csr_array((np.ones(len(owners)), (owners, np.arange(len(owners)))), shape=(size, len(owners)))
    return np.asarray(fold @ (fold @ gram).T)


def _gradient_directions(chart: Chart, inner: bool) -> tuple[Array, Index]:
    """Return the directions (Q, d) of the functions of ``_gradient_columns``, and which column each belongs to (Q,)."""
    features, normals = chart.features, chart.features.hyperplanes.normals
    N, d = normals.shape
    t, q = len(features.tail), chart.n_coordinates
    directions, owners = [normals, np.repeat(np.eye(d), t, axis=0)], [np.arange(N), N + np.tile(np.arange(t), d)]
    if inner:
        directions += [np.tile(normals, (q, 1)), chart.tangents.transpose(2, 0, 1).reshape(-1, d)]
        owners += [N + t + np.arange(N * q), N + t + np.arange(N * (d - 1))]
    return np.concatenate(directions), np.concatenate(owners)


def _gradient_columns(chart: Chart, X: Array, inner: bool) -> Array:
    """Return the functions ``F`` at the points: ``sigma'``, tail, ``sigma'' (x.Q_i)``, ``sigma''``, and ``sigma'``."""
    features = chart.features
    d = features.hyperplanes.dimension
    slopes = features.neurons(X, 1)
    parts = [slopes] + [features.tail.partials(X, (i,)) for i in range(d)]
    if inner:
        bends = features.neurons(X, 2)
        parts += [(_along(chart, X) * bends[:, None, :]).reshape(len(X), -1), bends]
        parts += [_stretched(features, X, slopes, bends, 1)] if chart.widths else []
        parts += [slopes] * (d - 1)
    return np.concatenate(parts, axis=1)


def _along(chart: Chart, X: Array) -> Array:
    """Return ``x.Q_i``, of shape (n, d - 1, N)."""
    N, d = chart.features.hyperplanes.normals.shape
    return (X @ chart.tangents.transpose(1, 2, 0).reshape(d, -1)).reshape(len(X), d - 1, N)


def _stretched(features: Features, X: Array, function: Array, slope: Array, k: int) -> Array:
    """Return the derivative of ``sigma^(k)`` by ``log delta``: ``(s - 1 - k) sigma^(k) - u sigma^(k+1)``."""
    u = features.hyperplanes.signed_distance(X)
    return np.asarray((features.activation.order - 1 - k) * function - u * slope)


def expand_gram(gram: Array, coef: Array, n_outer: int) -> Array:
    """Return the Gauss-Newton matrix of all weights from the Gram matrix for unit outer weights.

    Outer weights of one output have the block ``G_oo``, outer and inner ones ``G_oi c``, inner ones ``G_ii o (c.c')``.
    """
    k, q = coef.shape[1], (len(gram) - n_outer) // max(len(coef), 1)
    size = n_outer * k
    result = np.zeros((size + q * len(coef),) * 2)
    for output in range(k):
        here = slice(output * n_outer, (output + 1) * n_outer)
        result[here, here] = gram[:n_outer, :n_outer]
        result[here, size:] = gram[:n_outer, n_outer:] * np.tile(coef[:, output], q)
        result[size:, here] = result[here, size:].T
    result[size:, size:] = gram[n_outer:, n_outer:] * np.tile(coef @ coef.T, (q, q))
    return result


def positive_part(matrices: Array) -> Array:
    """Return symmetric matrices (N, q, q) with their negative eigenvalues set to zero."""
    eigenvalues, vectors = np.linalg.eigh(matrices)
    return np.asarray((vectors * np.maximum(eigenvalues, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1))


def tail_moments(features: Features, residual: Residual) -> Array:
    """Return the moments of the residual against the monomials of the tail, of shape (t, k)."""
    result = features.tail.values(residual.X).T @ residual.values
    if residual.gradients is not None:
        for i in range(residual.X.shape[1]):
            result += features.tail.partials(residual.X, (i,)).T @ residual.gradients[:, :, i]
    return np.asarray(result)
