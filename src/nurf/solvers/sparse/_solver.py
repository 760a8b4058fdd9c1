"""Sparse training: insert neurons where the certificate is violated, train all weights jointly, delete zeros, merge."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from nurf._types import Array
from nurf.activations import Activation
from nurf.jets import Jet
from nurf.networks import ShallowNetwork
from nurf.solvers.sparse._certificate import Peaks, Search, distances, find_peaks
from nurf.solvers.sparse._descent import add_penalty, descend
from nurf.solvers.sparse._gauss_newton import JointPoint, Objective, keep
from nurf.solvers.sparse._loss import Misfit
from nurf.solvers.sparse._penalties import row_sizes

MOST_WEIGHTS = 2000  # that one Gauss-Newton matrix is made for
LOOSENESS = 0.1  # of training between insertions, relative to the violation of the certificate
EXCHANGE_GAIN = 5e-3  # relative, below which neurons are not exchanged
BLOCK_STEPS = 2  # of each block of neurons where there are more


@dataclass(frozen=True)
class SparseOptions:
    """How the sparse problem is solved: numbers of rounds and steps, and when it is solved.

    Parameters
    ----------
    tolerance : float
        Violations of the optimality conditions and of the certificate that are accepted, in units of ``alpha``.
    max_rounds : int
        Rounds of insertion, training and deletion.
    max_steps : int
        Gauss-Newton steps of a round.
    search : Search
        How candidates are searched; the stop is certified by ``search.finer()``.
    max_neurons : int, optional
        No more neurons than that.
    exchange : bool
        Whether, with so many neurons, those that are missed least are exchanged for better ones.
    """

    tolerance: float = 1e-2
    max_rounds: int = 30
    max_steps: int = 30
    search: Search = field(default_factory=Search)
    max_neurons: int | None = None
    exchange: bool = True


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved sparse problem.

    Attributes
    ----------
    network : ShallowNetwork
    objective : float
    certificate : float
        ``max |p(omega)| / alpha`` over a fine search: at most 1 where no neuron anywhere could lower the objective.
    violation : float
        The largest violation of the optimality conditions of the network's own weights, in units of ``alpha``.
    status : {"converged", "max_neurons", "max_rounds"}
    n_rounds : int
    """

    network: ShallowNetwork
    objective: float
    certificate: float
    violation: float
    status: str
    n_rounds: int


def solve_sparse(
    objective: Objective,
    network: ShallowNetwork,
    activation: Activation,
    rng: np.random.Generator,
    options: SparseOptions,
) -> Solution:
    """Minimise ``L + alpha sum psi(|c_n|)`` over networks of any size, from ``network`` on."""
    tolerance, steps = options.tolerance, options.max_steps
    threshold = (1 + tolerance) * objective.alpha
    point = train(prune(objective.at(network)), steps, tolerance)
    status = "max_rounds"
    for n_rounds in range(1, options.max_rounds + 1):  # noqa: B007
        peaks = _search(point, activation, rng, options.search, own=False)
        size = point.network.features.n_neurons
        room = None if options.max_neurons is None else max(options.max_neurons - size, 0)
        solved = point.violation <= tolerance
        if solved and (peaks.largest <= threshold or room == 0):
            better = remove_redundant(merge(point), steps, tolerance)
            if better is point and options.exchange and peaks.largest > threshold:
                better = exchange(point, peaks, steps, tolerance)
            if better is not point:
                point = better
                continue
            peaks = _search(point, activation, rng, options.search.finer())
            if peaks.largest <= threshold or room == 0:
                status = "converged" if peaks.largest <= threshold else "max_neurons"
                break
        excess = peaks.largest / objective.alpha - 1
        larger = insert(point, peaks, room) if excess > point.violation else point
        if larger is point:
            point = train(point, steps, tolerance)
        else:
            point = train(merge(prune(larger)), steps, max(tolerance, LOOSENESS * excess))
    else:
        peaks = _search(point, activation, rng, options.search.finer())
        if peaks.largest <= threshold and point.violation <= tolerance:
            status = "converged"
    return Solution(point.network, point.value, peaks.largest / objective.alpha, point.violation, status, n_rounds)


def _search(
    point: JointPoint, activation: Activation, rng: np.random.Generator, search: Search, own: bool = True
) -> Peaks:
    objective, network = point.objective, point.network
    left = residual_jet(objective.loss.jet, network)
    return find_peaks(
        point.residual,
        left,
        activation,
        objective.bounds,
        rng,
        search,
        widths=objective.widths,
        also=network.features if own else None,
    )


def residual_jet(jet: Jet, network: ShallowNetwork) -> Jet:
    """Return what a network with weights of shape (N + t, k) leaves of values and gradients."""
    same = ShallowNetwork(network.features, network.coefficients.reshape(-1, *jet.y.shape[1:]))
    return replace(jet, hessians=None) - same.jet(jet.X, jet.known & {"gradients"})


def insert(point: JointPoint, peaks: Peaks, room: int | None) -> JointPoint:
    """Add the neurons where the certificate is violated, each with the weight that is best if it comes alone.

    At most as many as half the network has (at least 4), and ``room``; none within a width of a neuron.
    """
    objective, network = point.objective, point.network
    features = network.features
    count = max(2, features.n_neurons // 3)
    sizes = row_sizes(peaks.moments)
    free = distances(peaks.features, features).min(axis=1, initial=np.inf) > 0.3
    chosen = np.flatnonzero((sizes > objective.alpha) & free)[: count if room is None else min(count, room)]
    if not len(chosen):
        return point
    new, moments = peaks[chosen].features, peaks.moments[chosen]
    weights = moments * (1 - objective.alpha / row_sizes(moments))[:, None]
    joined = features + replace(new, degree=features.degree)
    return objective.at(ShallowNetwork(joined, np.concatenate([network.coef, weights, network.tail_coef])))


def prune(point: JointPoint, max_steps: int = 50) -> JointPoint:
    """Solve for the outer weights alone, and delete the neurons that become zero."""
    network = point.network
    solved = descend(point.objective.outer(network), max_steps=max_steps, tolerance=1e-3)
    stays = np.zeros(network.features.n_neurons, dtype=bool)
    stays[solved.kept] = True
    features = keep(network, stays).features
    return replace(point, network=ShallowNetwork(features, solved.weights))


def train(point: JointPoint, max_steps: int, tolerance: float) -> JointPoint:
    """Train all weights jointly, or where there are more than ``MOST_WEIGHTS`` block after block of neurons."""
    weights = point.chart.n_coordinates + point.network.coefficients.shape[1]
    size = max(1, MOST_WEIGHTS // weights)
    if point.network.features.n_neurons <= size:
        return descend(point, max_steps=max_steps, tolerance=tolerance / 2)
    for _ in range(-(-max_steps // BLOCK_STEPS)):
        for _ in range(-(-point.network.features.n_neurons // size)):
            point = _train_first(point, size)
        if point.violation <= tolerance / 2:
            break
    return point


def _train_first(point: JointPoint, size: int) -> JointPoint:
    """Train the first ``size`` neurons and the tail, the others as they are; return them behind the others."""
    network, loss = point.network, point.objective.loss
    first = np.arange(network.features.n_neurons) < size
    rest = keep(network, ~first)
    rest = ShallowNetwork(rest.features, np.concatenate([rest.coef, np.zeros_like(rest.tail_coef)]))
    objective = replace(point.objective, loss=Misfit(residual_jet(loss.jet, rest), loss.gradient_weight))
    trained = descend(objective.at(keep(network, first)), max_steps=BLOCK_STEPS, tolerance=0.0).network
    return replace(
        point,
        network=ShallowNetwork(rest.features + trained.features, np.concatenate([rest.coef, trained.coefficients])),
    )


def merge(point: JointPoint, apart: float = 1.0, n_steps: int = 5) -> JointPoint:
    """Merge pairs of neurons within ``apart`` widths of each other: delete the weaker one where that costs nothing."""
    features = point.network.features
    N = features.n_neurons
    near = distances(features, features) + np.where(np.tri(N, dtype=bool), np.inf, 0.0)
    pairs = np.argwhere(near < apart)
    pairs = pairs[np.argsort(near[tuple(pairs.T)], kind="stable")]
    names = np.arange(N)
    for pair in pairs:
        here = np.flatnonzero(np.isin(names, pair))
        if len(here) < 2:
            continue
        stays = np.ones(len(names), dtype=bool)
        stays[here[np.argmin(row_sizes(point.network.coef[here]))]] = False
        trial = train(prune(replace(point, network=keep(point.network, stays))), n_steps, 1e-4)
        if trial.value <= point.value * (1 + 1e-9):
            if trial.network.features.n_neurons < len(names) - 1:  # training deleted others too: look again
                return merge(trial, apart, n_steps)
            point, names = trial, names[stays]
    return point


def remove_redundant(point: JointPoint, max_steps: int, tolerance: float) -> JointPoint:
    """Delete neurons without which the objective, trained again, is lower; concave penalties leave such neurons.

    The candidates are those for which the quadratic model says so: with the Hessian ``H`` of the loss, setting ``c_n``
    to zero costs ``c_n^T [H^-1]_nn^-1 c_n / 2 + alpha (psi'(|c_n|) |c_n| - psi(|c_n|))``.
    """
    changes = removal_costs(point)
    order = np.argsort(changes)[: np.count_nonzero(changes < 0)]
    for count in dict.fromkeys([len(order), len(order) // 4, min(len(order), 1)]):
        if count:
            stays = np.ones(len(changes), dtype=bool)
            stays[order[:count]] = False
            trial = train(prune(replace(point, network=keep(point.network, stays))), max_steps, tolerance)
            if trial.value < point.value:
                return trial
    return point


def exchange(point: JointPoint, peaks: Peaks, max_steps: int, tolerance: float) -> JointPoint:
    """Replace the neurons that are missed least by those where the certificate is largest, if that pays."""
    costs = removal_costs(point)
    for count in dict.fromkeys([max(1, len(costs) // 8), 1]):
        stays = np.ones(len(costs), dtype=bool)
        stays[np.argsort(costs)[:count]] = False
        trial = insert(replace(point, network=keep(point.network, stays)), peaks, count)
        trial = train(prune(trial), max_steps, tolerance)
        if trial.value < point.value * (1 - EXCHANGE_GAIN):
            return trial
    return point


def removal_costs(point: JointPoint) -> Array:
    """Return by how much the objective would change without each of the neurons, by the quadratic model, (N,)."""
    objective, coef = point.objective, point.network.coef
    N, rows = len(coef), len(point.network.coefficients)
    _, hessian, scale = point.derivatives()
    sizes = row_sizes(coef)
    matrix = hessian + 1e-9 * np.diag(scale)
    add_penalty(matrix, coef, rows, objective.penalty, -objective.alpha)
    inverse = np.linalg.inv(matrix)
    own = np.arange(N)[:, None] + rows * np.arange(coef.shape[1])
    blocks = np.linalg.inv(inverse[own[:, :, None], own[:, None, :]])
    quadratic = np.einsum("ni,nij,nj->n", coef, blocks, coef) / 2
    return np.asarray(
        quadratic + objective.alpha * (objective.penalty.slope(sizes) * sizes - objective.penalty.value(sizes))
    )
