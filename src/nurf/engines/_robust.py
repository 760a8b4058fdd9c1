"""Fits that a few gross errors do not spoil: Huber's loss, for values and derivatives alike.

Huber's loss is quadratic up to a threshold and linear beyond. Its minimiser is also the least-squares fit to *cleaned*
data, in which what is beyond the threshold is moved towards the fit until it is at the threshold. So the data are
cleaned, and nothing else changes: the race, the sampling of the neurons, leave-one-out and fits without a fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nurf._blocks import spaced
from nurf._types import Array
from nurf.engines._crossfit import CrossFit
from nurf.engines._fit import ShallowFit
from nurf.engines._sampled import SampledEngine, fit_sampled
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.networks import ShallowNetwork
from nurf.solvers import LeaveOneOut, Validation
from nurf.solvers._coverage import calibration
from nurf.solvers._rows import rows_per_sample
from nurf.solvers.ridge import LeastSquares, LeftOut, Ridge

THRESHOLD = 1.345  # in standard deviations: 95% of the efficiency of least squares if errors are normal
GROSS = 10.0  # standard deviations beyond which an error may be a gross one
MAX_PILOTS = 4  # races at the first size ...
PROGRESS = 0.8  # ... as long as the standard deviation falls by this factor
MAX_STEPS = 5  # of the outer weights of the last network
TOLERANCE = 0.05  # of cleaned values, in standard deviations


@dataclass(frozen=True, eq=False)
class HuberFit:
    """A least-squares fit to cleaned data, and how it sees the data that were given.

    Attributes
    ----------
    network : ShallowNetwork
    jet : Jet
        The data that were given.
    cleaned : Jet
        The data that were fitted.
    errors : array of shape (n, k)
        Errors ``e_k`` of the given values at samples that are left out of the fit; NaN if there is no value.
    shares : array of shape (n, k)
        Share of such an error that is left if the sample stays: ``1 - h_k`` with the leverage ``h_k``.
    """

    network: ShallowNetwork
    jet: Jet
    cleaned: Jet
    errors: Array
    shares: Array

    @classmethod
    def of(cls, fit: ShallowFit, jet: Jet, cleaned: Jet) -> HuberFit:
        """Return the least-squares fit to ``cleaned``, with the features, the loss and the alpha of ``fit``."""
        features, alphas, valued = fit.network.features, np.array([fit.ridge_alpha]), np.flatnonzero(jet.has_value)
        ridge = LeastSquares(features, cleaned).ridge(fit.loss, precise=fit.precise)
        network = ShallowNetwork(features, ridge.solve(alphas)[0].reshape(fit.network.coefficients.shape))
        left = ridge.left_out(alphas, valued, np.ones(len(valued)))[:, 0, 0]
        without = np.full((len(jet), left.shape[1]), np.nan)
        without[valued] = left / np.sqrt(jet.weights(0)[valued, None])
        residuals = _columns(cleaned.y - network.value(jet.X))
        shares = np.divide(residuals, without, out=np.ones_like(without), where=np.abs(without) > 0)
        return cls(network, jet, cleaned, without + _columns(jet.y - cleaned.y), np.clip(shares, 0.0, 1.0))

    @property
    def units(self) -> Array:
        """Factors that turn errors into those of a sample of mean weight, of shape (n, 1)."""
        weights = self.jet.weights(0)
        return np.sqrt(weights / np.mean(weights, where=self.jet.has_value))[:, None]

    @property
    def deviations(self) -> Array:
        """The robust standard deviations of the errors, of shape (k,)."""
        return robust_deviations(self.errors * self.units)

    @property
    def output_errors(self) -> Array:
        """The root mean square errors of the outputs without gross errors, of shape (k,)."""
        return self.ordinary(self.errors * self.units)

    def ordinary(self, errors: Array) -> Array:
        """Return the root mean squares of errors (m, k) without the gross ones.

        An error is gross if it is larger than ten of their robust standard deviations, and larger than the standard
        deviation of the cleaned values: a fit that misses a peak has ordinary errors.
        """
        limits = np.maximum(GROSS * robust_deviations(errors), np.nanstd(_columns(self.cleaned.y), axis=0))
        return np.asarray(np.sqrt(np.nanmean(np.where(np.abs(errors) > limits, np.nan, errors) ** 2, axis=0)))

    @property
    def moves(self) -> Array:
        """By how much cleaned values must move to be at the threshold, or at their place within it, of shape (n, k)."""
        threshold = THRESHOLD * self.deviations / self.units
        return np.clip(self.errors, -threshold, threshold) - self.errors + _columns(self.jet.y - self.cleaned.y)

    @property
    def unrest(self) -> float:
        """The largest of the moves that a step takes, in standard deviations."""
        moves, deviations = np.abs(self.shares * self.moves) * self.units, self.deviations
        return float(np.nanmax(np.divide(moves, deviations, out=np.zeros_like(moves), where=deviations > 0)))

    def moved(self) -> Jet:
        """Return cleaned data, with the share ``1 - h_k`` of the moves: no value moves beyond the fit."""
        y = self.cleaned.y + (self.shares * self.moves).reshape(self.jet.y.shape)
        return replace(cleaned_derivatives(self.jet, self.network), y=y)

    def moved_validation(self, validation: Jet) -> Jet:
        """Return other samples, cleaned."""
        values = self.network.value(validation.X)
        threshold = (THRESHOLD * self.deviations).reshape(validation.y.shape[1:])
        return replace(validation, y=values + np.clip(validation.y - values, -threshold, threshold))


@dataclass(frozen=True)
class RobustLeaveOneOut(LeaveOneOut):
    """The squares of the robust standard deviations of the errors of samples that leave the fit.

    A mean square is that of the gross errors: it is about the same for all fits, and smallest if they are fitted.
    """

    def left_out(self, ridge: Ridge, alphas: Array, coefficients: Array) -> LeftOut:
        """Return the errors of all samples that leave, or of some of them, evenly spaced."""
        jet = ridge.jet
        valued = np.flatnonzero(jet.has_value)
        index = spaced(valued, max(1, self.max_rows // rows_per_sample(jet, ridge.loss)))
        left = ridge.left_out(alphas, index, np.ones(len(index)))[:, 0]
        weights = jet.weights(0)
        return LeftOut(left / np.sqrt(weights[index])[:, None, None], weights[index], index, weights[valued].mean())

    def squares(self, left_out: LeftOut) -> Array:
        """Return the squares of the robust standard deviations of the errors, shape (A, k)."""
        weighted = left_out.errors * np.sqrt(left_out.weights)[:, None, None]
        return np.asarray(robust_deviations(weighted) ** 2 / left_out.total)


def cleaned_engines(engines: Sequence[SampledEngine]) -> list[SampledEngine]:
    """Return the engines with data that are cleaned of gross errors.

    Races at the first size alternate with the cleaning of the data, as long as that makes the errors smaller. They
    choose by robust errors (``RobustLeaveOneOut``), and in the first one neurons are placed by what was given, not by
    residuals or estimated derivatives: these are largest at gross errors, and leave-one-out does not see that neurons
    were placed there to fit them.
    """
    jet = engines[0].task.jet
    deviation, cleaner = np.inf, None
    for _ in range(MAX_PILOTS):
        raced = [_pilot(engine, cleaner) for engine in engines]
        cleaner = fit_huber(fit_sampled(raced), jet, raced[0].task.jet)
        before, deviation = deviation, float(np.sqrt(np.sum(cleaner.deviations**2)))
        if deviation > PROGRESS * before:
            break
    cleaned = [_cleaned(engine, cleaner) for engine in engines]
    first = cleaned[0]
    held_out = [jet[rows] for rows in first.folds]
    finish = partial(with_huber_loss, jet=jet, cleaned=first.task.jet, held_out=held_out)
    return [replace(engine, finish=finish) for engine in cleaned]


def with_huber_loss(fit: ShallowFit, jet: Jet, cleaned: Jet, held_out: Sequence[Jet]) -> ShallowFit:
    """Return a fit to ``cleaned`` data with the outer weights of ``fit_huber`` and errors of the data as given.

    The errors are the root mean squares over all samples except gross errors (``HuberFit.ordinary``).

    Parameters
    ----------
    fit : ShallowFit
    jet, cleaned : Jet
        The data as they were given, and without gross errors.
    held_out : sequence of Jet
        The samples of each fold, as they were given.
    """
    huber = fit_huber(fit, jet, cleaned)
    fit = replace(fit, network=huber.network)
    if fit.crossfit is None:
        return replace(fit, output_errors=huber.output_errors)
    crossfit = CrossFit.of(huber.network, fit.crossfit.folds, held_out)
    output_errors = np.maximum(fit.output_errors, huber.ordinary(crossfit.errors))
    return replace(fit, output_errors=output_errors, crossfit=crossfit)


def fit_huber(
    fit: ShallowFit, jet: Jet, cleaned: Jet | None = None, *, max_steps: int = MAX_STEPS, tolerance: float = TOLERANCE
) -> HuberFit:
    """Return the outer weights with Huber's loss, by least-squares fits to data that are cleaned more and more.

    They minimise ``sum_k w_k rho_k(y_k - f(x_k)) + alpha N W / 2 |c|^2`` with Huber's function ``rho_k``, which is
    quadratic up to ``1.345 s (1 - h_k)``: an error of 1.345 standard deviations ``s`` at a sample that is left out. In
    least squares a sample of leverage ``h_k`` near one draws the fit to itself, whatever its value; here it does not.
    ``s`` is the 0.9 quantile of these errors over that of a normal distribution. So it holds up to about 5% of gross
    errors, and a function that is flat in most places is not mistaken for zero with errors.

    A step moves cleaned values by the share ``1 - h_k`` of what is missing, so that the objective falls (Huber,
    Robust Statistics, section 7.8).

    Parameters
    ----------
    fit : ShallowFit
        Its features, its loss and its alpha are kept.
    jet : Jet
        The data.
    cleaned : Jet, optional
        Data to start from, cleaned before; by default ``jet``.
    max_steps : int
    tolerance : float
        The steps end if no value moves by more than that, in standard deviations.
    """
    huber = HuberFit.of(fit, jet, jet if cleaned is None else cleaned)
    for _ in range(max_steps):
        if huber.unrest <= tolerance:
            break
        huber = HuberFit.of(fit, jet, huber.moved())
    return huber


def robust_deviations(errors: Array) -> Array:
    """Return the 0.9 quantiles of absolute errors (m, ...) over that of a normal distribution; infinite if unknown."""
    deviations = calibration(np.abs(errors))
    return np.where(np.isnan(deviations), np.inf, deviations)


def cleaned_derivatives(jet: Jet, network: ShallowNetwork) -> Jet:
    """Return the data with derivatives that are far from those of the network moved towards them.

    An error is the difference between two gradients or Hessians of one output. It is shortened to 1.345 standard
    deviations, in its direction.
    """
    orders = range(1, network.activation.n_derivatives + 1)
    kinds = {kind: order for order, kind in DERIVATIVE_KINDS.items() if order in orders and kind in jet.known}
    errors = jet - network.jet(jet.X, set(kinds))
    moved = {}
    for kind, order in kinds.items():
        given, rows = jet.derivatives(order), errors.derivatives(order)
        assert given is not None
        assert rows is not None
        rows = rows.reshape(len(jet), -1, jet.n_features**order)
        sizes = np.sqrt(np.nansum(rows**2, axis=2))
        sizes = np.where(sizes > 0, sizes * np.sqrt(jet.weights(order))[:, None], np.nan)  # zero if unknown
        threshold = THRESHOLD * robust_deviations(sizes)
        beyond = np.maximum(1 - threshold / np.where(sizes > 0, sizes, np.inf), 0.0)
        moved[kind] = given - (beyond[..., None] * rows).reshape(given.shape)
    return replace(jet, **moved)


def _pilot(engine: SampledEngine, cleaner: HuberFit | None) -> SampledEngine:
    """Return the engine for a race at the first size, by robust errors at samples that are left out, whatever the rule.

    As long as nothing is cleaned, neurons are not placed by residuals or estimated derivatives, if there is a choice.
    """
    engine, space = _cleaned(engine, cleaner), engine.space
    if cleaner is None:
        given = tuple(source for source in space.sources if not source.derived)
        space = replace(space, sources=given or space.sources, estimated=() if given else space.estimated)
    task = replace(engine.task, rule=RobustLeaveOneOut())
    return replace(engine, task=task, space=space, sizes=engine.sizes[:1], policy=replace(engine.policy, few_samples=0))


def _cleaned(engine: SampledEngine, cleaner: HuberFit | None) -> SampledEngine:
    """Return the engine with cleaned data, and cleaned validation samples if there are any."""
    if cleaner is None:
        return engine
    rule = engine.task.rule
    if isinstance(rule, Validation):
        rule = Validation(cleaner.moved_validation(rule.validation))
    same = engine.task.jet.known == cleaner.jet.known
    jet = cleaner.moved() if same else cleaner.moved().only(())
    return replace(engine, task=replace(engine.task, jet=jet, rule=rule))


def _columns(values: Array) -> Array:
    """Return values of one output or of several as a matrix (n, k)."""
    return values.reshape(len(values), -1)
