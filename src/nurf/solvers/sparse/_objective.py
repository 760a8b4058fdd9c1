"""The objective of sparse training as a function of all weights, with the derivatives for descent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nurf._types import Array, Mask
from nurf.networks import ShallowNetwork
from nurf.solvers._rows import VALUES_ONLY
from nurf.solvers.ridge import NormalEquations
from nurf.solvers.sparse._charts import Bounds, Chart
from nurf.solvers.sparse._descent import OuterPoint, add_penalty, damping_scale, same_side
from nurf.solvers.sparse._gauss_newton import expand_gram, gauss_newton_gram
from nurf.solvers.sparse._misfit import Misfit, Residual
from nurf.solvers.sparse._moments import Moments
from nurf.solvers.sparse._penalties import Penalty, row_sizes

LONGEST_STEP = 3.0  # of an inner weight, in units of the chart: the linearisation does not hold beyond it


@dataclass(frozen=True, eq=False)
class Objective:
    """``L(f) + alpha sum_n psi(|c_n|)`` (paper, eq. 1.4), as a function of networks.

    Parameters
    ----------
    misfit : Misfit
        The loss ``L``.
    penalty : Penalty
    alpha : float
    bounds : Bounds
        The bounds of the inner weights.
    widths : bool
        Whether the widths are trained, one for each neuron.
    """

    misfit: Misfit
    penalty: Penalty
    alpha: float
    bounds: Bounds
    widths: bool = False

    def at(self, network: ShallowNetwork) -> JointPoint:
        """Return the point of descent at a network with coefficients of shape (N + t, k)."""
        return JointPoint(self, network)

    def outer(self, network: ShallowNetwork) -> OuterPoint:
        """Return the point of descent of the outer weights alone."""
        equations = NormalEquations.from_data(network.features, self.misfit.jet, self.misfit.loss)
        gram, moments = equations.gram / equations.total_weight, equations.moments / equations.total_weight
        energy = float(equations.energy.sum()) / (2 * equations.total_weight)
        kept = np.arange(equations.n_neurons, dtype=np.int64)
        return OuterPoint(gram, moments, energy, network.coefficients, kept, self.penalty, self.alpha)


@dataclass(frozen=True, eq=False)
class JointPoint:
    """A network as a point of descent in all weights: the coefficients of each output, then the coordinates."""

    objective: Objective
    network: ShallowNetwork

    @cached_property
    def residual(self) -> Residual:
        """The residual of the network."""
        return self.objective.misfit.residual(self.network)

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

        For outer weights it is ``|p - alpha psi' c / |c||``; for inner weights the derivatives of ``p.c / |c|`` in the
        units of the chart, except derivatives that point out of the bounds; for the tail its moments.
        """
        objective, coef = self.objective, self.network.coef
        outer = objective.penalty.distance(coef, self._moments.values, objective.alpha)
        ascent = self._ascent / np.maximum(row_sizes(coef), np.finfo(float).tiny)[:, None]
        inner = np.where(self.chart.blocked(ascent), 0.0, ascent * self.chart.units)
        others = [np.abs(part).max(initial=0.0) / objective.alpha for part in (inner, self._tail_moments)]
        return float(max(outer.max(initial=0.0), *others))

    @property
    def _moment_derivatives(self) -> int:
        return self.residual.moment_derivatives(self.network.activation)

    @cached_property
    def _moments(self) -> Moments:
        return self.residual.moments(self.network.features, self._moment_derivatives)

    @cached_property
    def _tail_moments(self) -> Array:
        return self.residual.tail_moments(self.network.features)

    @cached_property
    def _ambient(self) -> Array:
        return self._moments.gradients(self.network.coef, self.objective.widths)

    @cached_property
    def _ascent(self) -> Array:
        """The negative gradient of the loss with respect to the coordinates of the chart, of shape (N, q)."""
        return self.chart.gradients(self._ambient)

    @property
    def degrees_of_freedom(self) -> float:
        """The number of weights that the values determine: all of them if the loss has no derivatives.

        The trace of ``G^-1 G_0``, with the Gauss-Newton matrices ``G`` of all rows and ``G_0`` of the values.
        """
        misfit, coef, n_outer = self.objective.misfit, self.network.coef, len(self.network.coefficients)
        if misfit.loss == VALUES_ONLY:
            return self.network.coefficients.size + len(coef) * self.chart.n_coordinates
        losses = (misfit.loss, VALUES_ONLY)
        grams = (gauss_newton_gram(replace(misfit, loss=loss), self.chart) for loss in losses)
        total, values = (expand_gram(gram, coef, n_outer) for gram in grams)
        roots = np.sqrt(damping_scale(total, 1))
        total, values = (matrix / np.outer(roots, roots) for matrix in (total, values))
        total.flat[:: len(total) + 1] += 1e-10
        return float(np.trace(np.linalg.solve(total, values)))

    def derivatives(self) -> tuple[Array, Array, Array]:
        """Return the gradient, the model of the Hessian and the scale of damping.

        The model is the sum of the Gauss-Newton matrix, the Hessian of the penalty, and the positive part of the second
        derivatives of the residual, if the activation has them.
        """
        objective, network, chart = self.objective, self.network, self.chart
        coef, N, k = network.coef, network.features.n_neurons, network.coefficients.shape[1]
        n_outer = len(network.coefficients)
        gram = gauss_newton_gram(objective.misfit, chart)
        hessian = expand_gram(gram, coef, n_outer)
        scale = np.concatenate([damping_scale(gram[:n_outer, :n_outer], k), np.diag(hessian)[n_outer * k :]])
        add_penalty(hessian, coef, n_outer, objective.penalty, objective.alpha)
        inner = n_outer * k + np.arange(N)[:, None] + N * np.arange(chart.n_coordinates)
        floor = objective.alpha * row_sizes(coef)[:, None] / chart.units**2
        scale[inner] += floor
        hessian[inner, inner] += 1e-6 * floor
        if self._moment_derivatives == 2:
            bends = -chart.hessians(self._moments.hessians(coef, objective.widths), self._ambient)
            hessian[inner[:, :, None], inner[:, None, :]] += positive_part(bends)
        pull = np.concatenate([self._moments.values, self._tail_moments])
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
        coefficients = network.coefficients + step[: rows * k].reshape(k, rows).T
        stays = same_side(network.coef, coefficients, self.objective.penalty)
        inner = step[rows * k :].reshape(chart.n_coordinates, -1).T
        lengths = row_sizes(inner / chart.units)
        inner = inner * np.minimum(1.0, LONGEST_STEP / np.maximum(lengths, LONGEST_STEP))[:, None]
        return replace(self, network=keep(ShallowNetwork(chart.move(inner), coefficients), stays))


def keep(network: ShallowNetwork, stays: Mask) -> ShallowNetwork:
    """Return the network with some of its neurons, and its tail."""
    if stays.all():
        return network
    return ShallowNetwork(network.features[stays], np.concatenate([network.coef[stays], network.tail_coef]))


def positive_part(matrices: Array) -> Array:
    """Return symmetric matrices (N, q, q) with their negative eigenvalues set to zero."""
    eigenvalues, vectors = np.linalg.eigh(matrices)
    return np.asarray((vectors * np.maximum(eigenvalues, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1))
