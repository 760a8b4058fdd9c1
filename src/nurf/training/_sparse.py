"""The fit of the paper's upper reference: all weights trained, and as many neurons as the penalty allows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lstsq

from nurf._types import Array
from nurf.activations import Activation
from nurf.jets import Jet
from nurf.networks import Features, Hyperplanes, ShallowNetwork
from nurf.solvers.ridge import largest_near_best
from nurf.solvers.ridge._selection import TOLERANCE
from nurf.solvers.sparse._certificate import find_peaks
from nurf.solvers.sparse._charts import Bounds
from nurf.solvers.sparse._gauss_newton import Objective
from nurf.solvers.sparse._loss import Misfit
from nurf.solvers.sparse._penalties import LogPenalty, Penalty, Squared
from nurf.solvers.sparse._solver import Solution, SparseOptions, residual_jet, solve_sparse, train
from nurf.training._fit import Fit, Stage
from nurf.training._outer import fit_outer

RATIO = 4.0  # from one alpha of a path to the next, as the authors have it
LONGEST_PATH = 10
PATIENCE, GAIN = 2, 0.01  # a path ends after so many steps that did not lower the error by that share
WIDTHS = 10.0  # trained widths are between the first one divided and multiplied by it


@dataclass(frozen=True, eq=False, kw_only=True)
class SparseStep(Stage):
    """One step of the path over alpha.

    Attributes
    ----------
    n_neurons, error, alpha, seconds
        See ``Stage``.
    network : ShallowNetwork
        The trained network, in scaled units.
    certificate : float
        ``max |<r, sigma(omega)>| / alpha`` over a fine search: at most 1 where no further neuron helps.
    violation : float
        The largest violation of the optimality conditions of the network's own weights, in units of ``alpha``.
    n_rounds : int
        Rounds of insertion, training and deletion.
    status : {"converged", "max_neurons", "max_rounds"}
        Whether the tolerance was met, and if not what ended the step.
    """

    network: ShallowNetwork
    certificate: float
    violation: float
    n_rounds: int
    status: str


@dataclass(frozen=True, eq=False)
class SparseFit(Fit):
    """A trained network, with all steps of the path over alpha in its history.

    Here ``alpha`` is the factor of ``sum psi(|c_n|)`` itself.
    """

    history: tuple[SparseStep, ...] = ()

    @property
    def step(self) -> SparseStep:
        """The step that was chosen."""
        return next(step for step in self.history if step.network is self.network)


def fit_sparse(
    jet: Jet,
    activation: Activation,
    rng: np.random.Generator,
    *,
    alphas: Sequence[float] | None = None,
    penalty: Penalty | None = None,
    degree: int | None = None,
    gradient_weight: float = 0.0,
    widths: bool = False,
    max_neurons: int | None = None,
    validation: Jet | None = None,
    start: Hyperplanes | None = None,
    options: SparseOptions | None = None,
) -> SparseFit:
    """Minimise ``L + alpha sum_n psi(|c_n|)`` over networks of any size, for a decreasing path of alphas.

    Each step starts from the network of the one before. A path that is not given ends early where two steps in a row
    did not lower the estimated error by 1%, or one is 5% above the best. Where ``max_neurons`` is reached, the weights
    of those neurons are trained with less and less penalty.

    Parameters
    ----------
    jet : Jet
        The data, scaled into the unit ball.
    activation : Activation
        With at least one derivative, and one width; where widths are trained, the one around which they are.
    rng : numpy.random.Generator
        Where the search for new neurons starts.
    alphas : sequence of float, optional
        The path; by default ``alpha_max 4^-n``, n = 1, 2, .., with the smallest ``alpha_max`` for which no neuron pays.
    penalty : Penalty, default LogPenalty()
    degree : int, optional
        Degree of the polynomial tail; by default one less than the order of the activation. -1 for none.
    gradient_weight : float, default 0
        How much the squared residual of a gradient counts beside that of a value.
    widths : bool, default False
        Whether widths are trained, one for each neuron.
    max_neurons : int, optional
        By default so many that there is one weight for two values; a path that comes so far ends.
    validation : Jet, optional
        Rows on which, together with the training rows, alpha is chosen: the largest within 5% of the best (the paper's
        rule). Without them the same with generalised cross-validation, every weight a degree of freedom.
    start : Hyperplanes, optional
        The first neurons; by default none.
    options : SparseOptions, optional
    """
    activation.require(1 if gradient_weight == 0 else 2)
    degree = activation.order - 1 if degree is None else degree
    loss = Misfit(jet, gradient_weight)
    bounds = _bounds(jet, activation)
    n_weights = loss.n_outputs + jet.n_features + widths
    limit = max(1, int(_count(jet) // (2 * n_weights))) if max_neurons is None else max_neurons
    options = replace(options or SparseOptions(), max_neurons=limit, exchange=max_neurons is not None)
    objective = Objective(loss, LogPenalty() if penalty is None else penalty, 1.0, bounds, widths)
    network = _first_network(jet, activation, degree, start)
    clock = time.perf_counter()
    path = _path(objective, network, activation, rng, options) if alphas is None else np.sort(alphas)[::-1]
    steps: list[SparseStep] = []
    for alpha in path:
        solution = solve_sparse(replace(objective, alpha=float(alpha)), network, activation, rng, options)
        network = solution.network
        seconds, clock = time.perf_counter() - clock, time.perf_counter()
        steps.append(_step(solution, float(alpha), seconds, jet, validation, n_weights))
        too_many = solution.status == "max_neurons" and max_neurons is None
        if too_many or (alphas is None and _no_better(steps)):
            break
    values = np.array([step.alpha for step in steps])
    errors = np.array([step.error for step in steps])
    best = steps[largest_near_best(values, errors)]
    return SparseFit(best.network, best.alpha, best.error, values, errors, tuple(steps))


def _bounds(jet: Jet, activation: Activation) -> Bounds:
    max_offset = float(np.sqrt((jet.X**2).sum(axis=1).max()))
    width = float(np.mean(activation.scale))
    return Bounds(max_offset or 1.0, width / WIDTHS, width * WIDTHS)


def _first_network(jet: Jet, activation: Activation, degree: int, start: Hyperplanes | None) -> ShallowNetwork:
    """Return the network of the first hyperplanes, its outer weights found by ridge regression; the tail of none."""
    planes = Hyperplanes(np.empty((0, jet.n_features)), np.empty(0)) if start is None else start
    features = Features(planes, activation, degree)
    if len(planes):
        weights = fit_outer(features, jet).network.coefficients
    else:
        jet = jet.with_values()
        roots = np.sqrt(jet.weights(0))[:, None]
        weights = lstsq(features.design(jet.X) * roots, jet.y.reshape(len(jet), -1) * roots)[0]
    return ShallowNetwork(features, weights.reshape(features.n_columns, jet.y.size // len(jet)))


def _path(
    objective: Objective,
    network: ShallowNetwork,
    activation: Activation,
    rng: np.random.Generator,
    options: SparseOptions,
) -> Array:
    """Return ``alpha_max 4^-n`` for n = 1, 2, .., with the largest certificate ``alpha_max`` of the tail alone."""
    jet = objective.loss.jet
    tail = _first_network(jet, activation, network.features.degree, None)
    residual = objective.loss.residual(tail)
    peaks = find_peaks(
        residual, residual_jet(jet, tail), activation, objective.bounds, rng, options.search, widths=objective.widths
    )
    largest = max(peaks.largest, np.sqrt(np.finfo(float).eps))
    return np.asarray(largest * RATIO ** -np.arange(1.0, LONGEST_PATH + 1))


def _step(
    solution: Solution, alpha: float, seconds: float, jet: Jet, validation: Jet | None, n_weights: int
) -> SparseStep:
    shape = (-1, *jet.y.shape[1:])
    network = ShallowNetwork(solution.network.features, solution.network.coefficients.reshape(shape))
    return SparseStep(
        n_neurons=network.features.n_neurons,
        error=estimated_error(network, jet, validation, n_weights),
        alpha=alpha,
        seconds=seconds,
        network=network,
        certificate=solution.certificate,
        violation=solution.violation,
        n_rounds=solution.n_rounds,
        status=solution.status,
    )


def estimated_error(network: ShallowNetwork, jet: Jet, validation: Jet | None, n_weights: int) -> float:
    """Return the root mean square error on training and validation rows together, outputs added up.

    Without validation rows, generalised cross-validation: ``RSS / n / (1 - m / (n k))^2``, where ``m`` counts the tail
    and ``n_weights`` weights of each neuron.
    """
    jet = jet.with_values()
    total, count = _squares(network, jet), float(jet.weights(0).sum())
    if validation is not None:
        return float(np.sqrt((total + _squares(network, validation)) / (count + validation.weights(0).sum())))
    used = n_weights * network.features.n_neurons + network.tail_coef.size
    left = max(1 - used / _count(jet), np.finfo(float).eps)
    return float(np.sqrt(total / count) / left)


def _count(jet: Jet) -> float:
    """Return the number of values: of rows (a row of weight two is two rows) times outputs."""
    jet = jet.with_values()
    rows = max(float(jet.weights(0).sum()), float(np.count_nonzero(jet.weights(0))))
    return rows * jet.y.size / len(jet)


def _squares(network: ShallowNetwork, jet: Jet) -> float:
    errors = (network.value(jet.X) - jet.y).reshape(len(jet), -1)
    return float(jet.weights(0) @ np.sum(errors**2, axis=1))


def _no_better(steps: list[SparseStep]) -> bool:
    """Return whether the last error is clearly above the best one, or two in a row hardly lowered it."""
    errors = [step.error for step in steps]
    stale = len(errors) > PATIENCE and min(errors[-PATIENCE:]) >= (1 - GAIN) * min(errors[:-PATIENCE])
    return stale or errors[-1] > (1 + TOLERANCE) * min(errors)


def polish(fit: Fit, jet: Jet, n_steps: int = 10, *, gradient_weight: float = 0.0, widths: bool = False) -> Fit:
    """Train the inner weights of a fitted network from where they are, by a few Gauss-Newton steps.

    The objective is that of ridge regression, ``L + alpha N / 2 |c|^2`` (paper, eq. 1.6), now as a function of all
    weights: the sampled hyperplanes are the initialisation of training. The objective falls with every step.

    Parameters
    ----------
    fit : Fit
        What ``fit_random`` or ``fit_adaptive`` returned.
    jet : Jet
        The data that it was fitted to, in the same units.
    n_steps : int, default 10
    gradient_weight : float, default 0
        How much the squared residual of a gradient counts beside that of a value.
    widths : bool, default False
        Whether widths are trained too.

    Returns
    -------
    Fit
        With the same alpha; its error is the root mean square over the rows of ``jet``.
    """
    network = fit.network
    network.activation.require(1 if gradient_weight == 0 else 2)
    N = network.features.n_neurons
    bounds = _bounds(jet, network.activation)
    bounds = replace(
        bounds, max_offset=max(bounds.max_offset, float(np.abs(network.hyperplanes.offsets).max(initial=0.0)))
    )
    objective = Objective(Misfit(jet, gradient_weight), Squared(), fit.ridge_alpha * N, bounds, widths)
    columns = ShallowNetwork(network.features, network.coefficients.reshape(len(network.coefficients), -1))
    trained = train(objective.at(columns), n_steps, 0.0).network
    trained = ShallowNetwork(trained.features, trained.coefficients.reshape(network.coefficients.shape))
    valued = jet.with_values()
    error = float(np.sqrt(_squares(trained, valued) / valued.weights(0).sum()))
    return replace(fit, network=trained, error=error)
