"""Sparse training: insert neurons where the certificate is violated, train all weights, delete and merge neurons."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nurf.activations import Activation
from nurf.networks import ShallowNetwork
from nurf.solvers.sparse._certificate import Peaks, find_peaks
from nurf.solvers.sparse._misfit import residual_jet
from nurf.solvers.sparse._moves import exchange, insert, merge, prune, remove_redundant, train
from nurf.solvers.sparse._objective import JointPoint, Objective
from nurf.solvers.sparse._options import PeakSearch, SparseOptions


@dataclass(frozen=True, eq=False)
class SparseSolution:
    """A solved sparse problem.

    Attributes
    ----------
    network : ShallowNetwork
    objective : float
    certificate : float
        ``max |p(omega)| / alpha`` over a fine search. If it is at most 1, no new neuron lowers the objective.
    violation : float
        The largest violation of the optimality conditions for the weights of the network, in units of ``alpha``.
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
    *,
    max_neurons: int | None = None,
    exchanges: bool = True,
) -> SparseSolution:
    """Return a minimiser of ``L + alpha sum psi(|c_n|)`` over networks of any size, starting from ``network``.

    Parameters
    ----------
    objective : Objective
    network : ShallowNetwork
        The first network, with coefficients of shape (N + t, k).
    activation : Activation
        The activation of new neurons, with one width.
    rng : numpy.random.Generator
    options : SparseOptions
    max_neurons : int, optional
        The largest number of neurons.
    exchanges : bool, default True
        Whether the least important neurons are exchanged for better ones once there are ``max_neurons``.
    """
    tolerance = options.tolerance
    threshold = (1 + tolerance) * objective.alpha
    point = train(prune(objective.at(network)), options)
    status = "max_rounds"
    for n_rounds in range(1, options.max_rounds + 1):  # noqa: B007
        peaks = search_peaks(point, activation, rng, options.search)
        room = None if max_neurons is None else max(max_neurons - point.network.features.n_neurons, 0)
        solved = point.violation <= tolerance
        if solved and (peaks.largest <= threshold or room == 0):
            better = remove_redundant(merge(point, options), options)
            if better is point and exchanges and peaks.largest > threshold:
                better = exchange(point, peaks, options)
            if better is not point:
                point = better
                continue
            peaks = search_peaks(point, activation, rng, options.search.finer(), own=True)
            if peaks.largest <= threshold or room == 0:
                status = "converged" if peaks.largest <= threshold else "max_neurons"
                break
        excess = peaks.largest / objective.alpha - 1
        larger = insert(point, peaks, options, room) if excess > point.violation else point
        if larger is point:
            point = train(point, options)
        else:
            loose = replace(options, tolerance=max(tolerance, options.looseness * excess))
            point = train(merge(prune(larger), options), loose)
    else:
        peaks = search_peaks(point, activation, rng, options.search.finer(), own=True)
        if peaks.largest <= threshold and point.violation <= tolerance:
            status = "converged"
    return SparseSolution(
        point.network, point.value, peaks.largest / objective.alpha, point.violation, status, n_rounds
    )


def search_peaks(
    point: JointPoint, activation: Activation, rng: np.random.Generator, search: PeakSearch, own: bool = False
) -> Peaks:
    """Return the peaks of the certificate; if ``own`` is true, the neurons of the network are further starts."""
    objective, network = point.objective, point.network
    jet = objective.misfit.jet
    return find_peaks(
        point.residual,
        residual_jet(jet, network, {"gradients"} & jet.known),
        activation,
        objective.bounds,
        rng,
        search,
        widths=objective.widths,
        also=network.features if own else None,
    )
