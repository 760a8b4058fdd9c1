"""Fits with trained inner weights, in which a penalty determines the number of neurons."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lstsq

from nurf._types import Array
from nurf.activations import Activation
from nurf.choosing import NO_LIMIT, POLICY, Attempt, Clock, Effort, Engine, Evidence, Judged, Policy, fold_masks
from nurf.engines._crossfit import CrossFit
from nurf.engines._fit import ShallowFit, Stage
from nurf.engines._outer import fit_outer
from nurf.jets import Jet
from nurf.networks import Features, Hyperplanes, ShallowNetwork
from nurf.solvers import MIN_ERRORS, VALUES_ONLY, Loss, row_count, sample_rows
from nurf.solvers.ridge import TOLERANCE, largest_near_best
from nurf.solvers.sparse import (
    Bounds,
    JointPoint,
    LogPenalty,
    Misfit,
    Objective,
    Penalty,
    SparseOptions,
    SparseSolution,
    search_peaks,
    solve_sparse,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class SparseStep(Stage):
    """One step of the path over alpha.

    Attributes
    ----------
    n_neurons, error, alpha, seconds
        See ``Stage``.
    network : ShallowNetwork
        The trained network, in scaled units.
    output_errors : array of shape (k,)
        The estimated root mean square error of each output.
    certificate : float
        ``max |<r, sigma(omega)>| / alpha`` over a fine search. If it is at most 1, no further neuron helps.
    violation : float
        The largest violation of the optimality conditions of the network's own weights, in units of ``alpha``.
    n_rounds : int
        Rounds of insertion, training and deletion.
    status : {"converged", "max_neurons", "max_rounds"}
        Whether the tolerance was met, or the limit that ended the step.
    """

    network: ShallowNetwork
    output_errors: Array
    certificate: float
    violation: float
    n_rounds: int
    status: str


@dataclass(frozen=True, eq=False)
class SparseFit(ShallowFit):
    """A trained network, with all steps of the path over alpha in its history.

    ``alpha`` is the factor of ``sum psi(|c_n|)``, without the number of neurons.
    """

    history: tuple[SparseStep, ...] = ()

    @property
    def step(self) -> SparseStep:
        """The chosen step."""
        return next(step for step in self.history if step.network is self.network)


def fit_sparse(
    jet: Jet,
    activation: Activation,
    rng: np.random.Generator,
    *,
    alphas: Sequence[float] | None = None,
    penalty: Penalty | None = None,
    degree: int | None = None,
    loss: Loss = VALUES_ONLY,
    widths: bool = False,
    max_neurons: int | None = None,
    validation: Jet | None = None,
    start: Hyperplanes | None = None,
    options: SparseOptions | None = None,
    watch: Callable[[SparseStep], None] | None = None,
    n_folds: int = 0,
) -> SparseFit:
    """Return the network that minimises ``L + alpha sum_n psi(|c_n|)``, with alpha chosen from a decreasing path.

    Each step of the path starts from the network of the previous step. The default path ends early if two steps in a
    row did not lower the estimated error by 1%, or if an error is 5% above the best. Once there are ``max_neurons``,
    their weights are trained with a decreasing penalty.

    Parameters
    ----------
    jet : Jet
        The data, scaled into the unit ball.
    activation : Activation
        An activation with one width, and with one derivative more than the rows of the loss have. Trained widths start
        between a tenth and ten times this width.
    rng : numpy.random.Generator
        Random numbers for the starting points of the searches for new neurons.
    alphas : sequence of float, optional
        The path; by default ``alpha_max 4^-n``, n = 1, 2, .., with the smallest ``alpha_max`` for which the network has
        no neuron.
    penalty : Penalty, default LogPenalty()
    degree : int, optional
        Degree of the polynomial tail; by default one less than the order of the activation. -1 for none.
    loss : Loss, optional
        Weights of the derivatives relative to the values; zero by default.
    widths : bool, default False
        Whether widths are trained, one for each neuron.
    max_neurons : int, optional
        The largest number of neurons. By default there is one weight for two rows (values and derivatives in the loss),
        and the path ends at this number.
    validation : Jet, optional
        Validation rows. Together with the training rows they determine alpha: the largest within 5% of the best (the
        paper's rule). By default alpha is chosen by generalised cross-validation.
    start : Hyperplanes, optional
        The first neurons; by default none.
    options : SparseOptions, optional
        The options of the algorithm.
    watch : callable, optional
        Called with each step of the path when it is finished.
    n_folds : int, default 0
        Number of folds. The trained network is trained further without each fold. The errors at the samples of the
        folds are the errors of the fit, unless there are validation rows, and its ``crossfit`` has the uncertainty.
        Generalised cross-validation is too optimistic, because it ignores that neurons were placed by the samples.
    """
    misfit = Misfit(jet, loss)
    misfit.require(activation)
    options = SparseOptions() if options is None else options
    degree = activation.order - 1 if degree is None else degree
    n_weights = misfit.n_outputs + jet.n_features + widths
    limit = max(1, int(_count(jet, loss) // (2 * n_weights))) if max_neurons is None else max_neurons
    bounds = inner_bounds(jet, activation, options)
    objective = Objective(misfit, LogPenalty() if penalty is None else penalty, 1.0, bounds, widths)
    network = _first_network(misfit, Features(_no_hyperplanes(jet) if start is None else start, activation, degree))
    clock = time.perf_counter()
    path = _path(objective, degree, activation, rng, options) if alphas is None else np.sort(alphas)[::-1]
    steps: list[SparseStep] = []
    for alpha in path:
        objective = replace(objective, alpha=float(alpha))
        exchanges = max_neurons is not None
        solution = solve_sparse(objective, network, activation, rng, options, max_neurons=limit, exchanges=exchanges)
        network = solution.network
        seconds, clock = time.perf_counter() - clock, time.perf_counter()
        steps.append(_step(solution, objective, seconds, validation))
        if watch is not None:
            watch(steps[-1])
        too_many = solution.status == "max_neurons" and max_neurons is None
        if too_many or (alphas is None and _no_better(steps, options)):
            break
    values = np.array([step.alpha for step in steps])
    mean_squares = np.array([step.output_errors**2 for step in steps])
    best = steps[largest_near_best(values, np.sqrt(mean_squares.sum(axis=1)))]
    fit = SparseFit(
        network=best.network,
        alpha=best.alpha,
        output_errors=best.output_errors,
        alphas=values,
        mean_squares=mean_squares,
        history=tuple(steps),
        loss=loss,
    )
    if n_folds == 0 or np.count_nonzero(jet.has_value) < MIN_ERRORS:
        return fit
    crossfit = _crossfit(fit, objective, activation, rng, options, n_folds)
    errors = crossfit.output_errors if validation is None else fit.output_errors
    return replace(fit, crossfit=crossfit, output_errors=errors)


def _crossfit(
    fit: SparseFit,
    objective: Objective,
    activation: Activation,
    rng: np.random.Generator,
    options: SparseOptions,
    n_folds: int,
) -> CrossFit:
    """Return the cross-fit of a network, which is trained further without each of the folds."""
    start, size = in_columns(fit.network), fit.network.features.n_neurons

    def refit(part: Jet) -> ShallowNetwork:
        without = replace(objective, misfit=replace(objective.misfit, jet=part), alpha=fit.alpha)
        solution = solve_sparse(without, start, activation, rng, options, max_neurons=size, exchanges=False)
        return in_shape_of(fit.network, solution.network)

    return CrossFit.by_refits(fit.network, objective.misfit.jet, refit, n_folds)


def in_columns(network: ShallowNetwork) -> ShallowNetwork:
    """Return the network with coefficients of shape (N + t, k)."""
    rows, *outputs = network.coefficients.shape
    return ShallowNetwork(network.features, network.coefficients.reshape(rows, math.prod(outputs)))


def in_shape_of(network: ShallowNetwork, trained: ShallowNetwork) -> ShallowNetwork:
    """Return the trained network with the output shape of ``network``: () or (k,)."""
    rows, (_, *outputs) = len(trained.coefficients), network.coefficients.shape
    return ShallowNetwork(trained.features, trained.coefficients.reshape(rows, *outputs))


def inner_bounds(jet: Jet, activation: Activation, options: SparseOptions) -> Bounds:
    """Return the bounds of the search for neurons, whose hyperplanes meet the ball of the data."""
    max_offset = float(np.sqrt((jet.X**2).sum(axis=1).max()))
    width = float(np.mean(activation.scale))
    return Bounds(max_offset or 1.0, width / options.width_range, width * options.width_range)


def _no_hyperplanes(jet: Jet) -> Hyperplanes:
    return Hyperplanes(np.empty((0, jet.n_features)), np.empty(0))


def _first_network(misfit: Misfit, features: Features) -> ShallowNetwork:
    """Return the network of the first features, with outer weights from ridge regression, or the tail alone."""
    if features.n_neurons:
        coefficients = fit_outer(features, misfit.jet, loss=misfit.loss).network.coefficients
    else:
        design, targets = sample_rows(features, misfit.jet, misfit.loss)
        coefficients = lstsq(np.concatenate(design), np.concatenate(targets))[0]
    return ShallowNetwork(features, coefficients.reshape(features.n_columns, misfit.n_outputs))


def _path(
    objective: Objective, degree: int, activation: Activation, rng: np.random.Generator, options: SparseOptions
) -> Array:
    """Return the default path of alphas, below the largest certificate of the tail (the smallest without neurons)."""
    misfit = objective.misfit
    tail = _first_network(misfit, Features(_no_hyperplanes(misfit.jet), activation, degree))
    peaks = search_peaks(objective.at(tail), activation, rng, options.search)
    largest = max(peaks.largest, np.sqrt(np.finfo(float).eps))
    return np.asarray(largest * options.path_ratio ** -np.arange(1.0, options.path_length + 1))


def _step(solution: SparseSolution, objective: Objective, seconds: float, validation: Jet | None) -> SparseStep:
    shape = (-1, *objective.misfit.jet.y.shape[1:])
    network = ShallowNetwork(solution.network.features, solution.network.coefficients.reshape(shape))
    output_errors = estimated_errors(objective.at(solution.network), validation)
    return SparseStep(
        n_neurons=network.features.n_neurons,
        error=float(np.sqrt(np.sum(output_errors**2))),
        alpha=objective.alpha,
        seconds=seconds,
        network=network,
        output_errors=output_errors,
        certificate=solution.certificate,
        violation=solution.violation,
        n_rounds=solution.n_rounds,
        status=solution.status,
    )


def estimated_errors(point: JointPoint, validation: Jet | None) -> Array:
    """Return the root mean square errors of the values of training and validation rows together, of shape (k,).

    Without validation rows the mean square is estimated by generalised cross-validation, ``RSS / n / (1 - m / (n
    k))^2``, where ``m`` is the number of weights that the values determine.
    """
    jet = point.objective.misfit.jet.with_values()
    total, weight = _squares(point.network, jet), float(jet.weights(0).sum())
    if validation is not None:
        total += _squares(point.network, validation)
        return np.asarray(np.sqrt(total / (weight + validation.weights(0).sum())))
    left = max(1 - point.degrees_of_freedom / _count(jet, VALUES_ONLY), np.finfo(float).eps)
    return np.asarray(np.sqrt(total / weight) / left)


def _count(jet: Jet, loss: Loss) -> float:
    """Return the number of values and derivatives in the loss, of all outputs."""
    return row_count(jet, loss) * jet.y.size / len(jet)


def _squares(network: ShallowNetwork, jet: Jet) -> Array:
    """Return the weighted sum of the squared errors of each output, of shape (k,)."""
    errors = network.value(jet.X).reshape(len(jet), -1) - jet.y.reshape(len(jet), -1)
    return np.asarray(jet.weights(0) @ errors**2)


def _no_better(steps: list[SparseStep], options: SparseOptions) -> bool:
    """Return whether the last error is clearly above the best error, or the last steps hardly lowered it."""
    errors, patience = [step.error for step in steps], options.path_patience
    stale = len(errors) > patience and min(errors[-patience:]) >= (1 - options.path_gain) * min(errors[:-patience])
    return stale or errors[-1] > (1 + TOLERANCE) * min(errors)


@dataclass(frozen=True, eq=False)
class SparseEngine(Engine):
    """Sparse networks for given data: one candidate, the network of the best alpha of a path.

    Parameters
    ----------
    jet : Jet
        The data, scaled.
    run : callable
        Returns the fit. Its arguments are a function to call after each step of the path, and an earlier fit whose
        neurons and alpha are used, or None.
    validation : Jet, optional
        Rows that judge instead of folds.
    policy : Policy
    clock : Clock
    transform, back
        See ``Engine``.
    """

    jet: Jet
    run: Callable[[Callable[[SparseStep], None], SparseFit | None], SparseFit]
    validation: Jet | None = None
    policy: Policy = POLICY
    clock: Clock = NO_LIMIT
    transform: str = ""
    back: Callable[[Evidence], Evidence] | None = None
    name = "sparse"
    data = "all data"
    first_step = 3
    efforts = (Effort(1),)

    def candidates(self) -> Iterator[str]:
        """Yield the only candidate."""
        yield "path"

    def judge(self, candidate: Hashable, size: int, before: Judged | None = None) -> Judged:
        """Return the network and its errors at the samples of the folds, after further training without each fold."""
        self.clock.check()
        return self._judged(candidate, size, None)

    def again(self, fit: SparseFit) -> Judged:
        """Return the neurons of an earlier fit, trained on the data of this engine with its alpha."""
        return self._judged("path", 1, fit)

    def _judged(self, candidate: Hashable, size: int, start: SparseFit | None) -> Judged:
        began = time.perf_counter()
        fit = self.run(lambda _: self.clock.check(), start)
        return Judged(self, candidate, size, self._evidence(fit), time.perf_counter() - began, fit)

    def record(self, judged: Judged) -> Attempt:
        """Return the record of the candidate."""
        fit: SparseFit = judged.found
        size = fit.network.features.n_neurons
        label = f"{size} neurons, alpha {fit.alpha:.2g}"
        return Attempt(self.name, self.data, label, size, judged.error, judged.seconds, fit.loss)

    def fit(self, judged: Judged, given: Jet) -> SparseFit:
        """Return the fit, with its errors at the samples of the folds, or at validation rows."""
        fit: SparseFit = judged.found
        return replace(fit, output_errors=judged.own.output_errors)

    def _evidence(self, fit: SparseFit) -> Evidence:
        """Return the errors at the samples of the folds, or at validation rows."""
        jet = self.jet
        errors = np.full((len(jet), jet.y[:1].size), np.nan)
        if fit.crossfit is not None:
            for fold, network in zip(fold_masks(jet, self.policy.n_folds), fit.crossfit.folds, strict=True):
                held = fold & jet.has_value
                errors[held] = network.errors(jet[held])
        others = None if self.validation is None else (self.validation, fit.network.errors(self.validation))
        return Evidence.at(jet, errors, others)
