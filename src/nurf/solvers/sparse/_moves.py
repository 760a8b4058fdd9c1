"""The moves of sparse training: insert neurons, train all weights, and delete, merge or exchange neurons."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nurf._types import Array
from nurf.networks import ShallowNetwork
from nurf.solvers.sparse._certificate import Peaks, distances
from nurf.solvers.sparse._descent import add_penalty, descend
from nurf.solvers.sparse._objective import JointPoint, keep
from nurf.solvers.sparse._options import SparseOptions
from nurf.solvers.sparse._penalties import row_sizes


def insert(point: JointPoint, peaks: Peaks, options: SparseOptions, room: int | None = None) -> JointPoint:
    """Return the point with new neurons where the certificate is violated.

    Each gets the outer weight that is optimal if it is the only new neuron. The largest peaks are inserted, up to the
    number that ``options`` and ``room`` allow, except peaks too close to a neuron.
    """
    objective, network = point.objective, point.network
    features = network.features
    count = max(options.min_insertions, features.n_neurons // options.neurons_per_insertion)
    apart = distances(peaks.features, features).min(axis=1, initial=np.inf) > options.insertion_distance
    violated = row_sizes(peaks.moments) > objective.alpha
    chosen = np.flatnonzero(violated & apart)[: count if room is None else min(count, room)]
    if not len(chosen):
        return point
    new, moments = peaks[chosen].features, peaks.moments[chosen]
    coef = moments * (1 - objective.alpha / row_sizes(moments))[:, None]
    joined = features + replace(new, degree=features.degree)
    return objective.at(ShallowNetwork(joined, np.concatenate([network.coef, coef, network.tail_coef])))


def prune(point: JointPoint, max_steps: int = 50) -> JointPoint:
    """Return the point with optimal outer weights for its hyperplanes, without neurons whose weights become zero."""
    network = keep(point.network, row_sizes(point.network.coef) > 0)  # descent does not move weights away from zero
    solved = descend(point.objective.outer(network), max_steps=max_steps, tolerance=1e-3)
    stays = np.zeros(network.features.n_neurons, dtype=bool)
    stays[solved.kept] = True
    features = keep(network, stays).features
    return replace(point, network=ShallowNetwork(features, solved.coefficients))


def train(point: JointPoint, options: SparseOptions) -> JointPoint:
    """Return the point after training of all weights, jointly or, if there are too many, in blocks of neurons."""
    weights = point.chart.n_coordinates + point.network.coefficients.shape[1]
    size = max(1, options.max_joint_weights // weights)
    tolerance = options.tolerance / 2
    if point.network.features.n_neurons <= size:
        return descend(point, max_steps=options.max_steps, tolerance=tolerance)
    for _ in range(-(-options.max_steps // options.block_steps)):
        for _ in range(-(-point.network.features.n_neurons // size)):
            point = _train_first(point, size, options.block_steps)
        if point.violation <= tolerance:
            break
    return point


def _train_first(point: JointPoint, size: int, n_steps: int) -> JointPoint:
    """Return the point after training the first ``size`` neurons and the tail, with these neurons moved to the end."""
    network = point.network
    first = np.arange(network.features.n_neurons) < size
    rest = keep(network, ~first)
    rest = ShallowNetwork(rest.features, np.concatenate([rest.coef, np.zeros_like(rest.tail_coef)]))
    objective = replace(point.objective, misfit=point.objective.misfit.minus(rest))
    trained = descend(objective.at(keep(network, first)), max_steps=n_steps, tolerance=0.0).network
    coefficients = np.concatenate([rest.coef, trained.coefficients])
    return replace(point, network=ShallowNetwork(rest.features + trained.features, coefficients))


def merge(point: JointPoint, options: SparseOptions) -> JointPoint:
    """Return the point with close neurons merged: the weaker one is removed if the objective does not grow.

    The closest pairs are tried first.
    """
    features = point.network.features
    N = features.n_neurons
    near = distances(features, features) + np.where(np.tri(N, dtype=bool), np.inf, 0.0)
    pairs = np.argwhere(near < options.merge_distance)
    pairs = pairs[np.argsort(near[tuple(pairs.T)], kind="stable")]
    trial_options = replace(options, max_steps=options.merge_steps, tolerance=1e-4)
    names = np.arange(N)
    for pair in pairs:
        here = np.flatnonzero(np.isin(names, pair))
        if len(here) < 2:
            continue
        stays = np.ones(len(names), dtype=bool)
        stays[here[np.argmin(row_sizes(point.network.coef[here]))]] = False
        trial = train(prune(replace(point, network=keep(point.network, stays))), trial_options)
        if trial.value <= point.value * (1 + 1e-9):
            if trial.network.features.n_neurons < len(names) - 1:  # training also deleted others: find pairs again
                return merge(trial, options)
            point, names = trial, names[stays]
    return point


def remove_redundant(point: JointPoint, options: SparseOptions) -> JointPoint:
    """Return the point without neurons whose removal, after training, lowers the objective; itself if there are none.

    Concave penalties can leave such neurons. Removed are all neurons with negative ``removal_costs``, a quarter of
    them, or the first one, whichever lowers the objective first.
    """
    costs = removal_costs(point)
    order = np.argsort(costs)[: np.count_nonzero(costs < 0)]
    for count in dict.fromkeys([len(order), len(order) // 4, min(len(order), 1)]):
        if count:
            stays = np.ones(len(costs), dtype=bool)
            stays[order[:count]] = False
            trial = train(prune(replace(point, network=keep(point.network, stays))), options)
            if trial.value < point.value:
                return trial
    return point


def exchange(point: JointPoint, peaks: Peaks, options: SparseOptions) -> JointPoint:
    """Return the point with the least important neurons replaced by peaks, or itself if that is no better.

    An eighth of the neurons is tried first, then one.
    """
    costs = removal_costs(point)
    for count in dict.fromkeys([max(1, len(costs) // 8), 1]):
        stays = np.ones(len(costs), dtype=bool)
        stays[np.argsort(costs)[:count]] = False
        trial = insert(replace(point, network=keep(point.network, stays)), peaks, options, count)
        trial = train(prune(trial), options)
        if trial.value < point.value * (1 - options.exchange_gain):
            return trial
    return point


def removal_costs(point: JointPoint) -> Array:
    """Return the increase of the objective if each neuron is removed, by its quadratic model, of shape (N,).

    With the Hessian ``H`` of the loss, setting ``c_n`` to zero costs
    ``c_n^T [H^-1]_nn^-1 c_n / 2 + alpha (psi'(|c_n|) |c_n| - psi(|c_n|))``.
    """
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
