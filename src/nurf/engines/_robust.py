"""Huber's loss for values and derivatives, so that a few gross errors do not spoil a fit.

Huber's loss is quadratic up to a threshold and linear beyond. Its minimiser is also the least-squares fit to *cleaned*
data, in which residuals are clipped at the threshold. So only the data are cleaned; the race, the sampling of the
neurons, leave-one-out and fits without a fold are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nurf._blocks import spaced
from nurf._types import Array
from nurf.choosing import fold_masks
from nurf.engines._crossfit import CrossFit
from nurf.engines._fit import ShallowFit
from nurf.engines._sampled import SampledEngine, fit_sampled
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.networks import ShallowNetwork
from nurf.solvers import LeaveOneOut, calibration, rows_per_sample
from nurf.solvers.ridge import LeastSquares, LeftOut, Ridge

THRESHOLD = 1.345  # in standard deviations: 95% of the efficiency of least squares if errors are normal
GROSS = 10.0  # standard deviations beyond which an error may be a gross one
MAX_PILOTS = 4  # the largest number of races at the first size
PROGRESS = 0.8  # another race follows if the standard deviation falls by this factor
MAX_STEPS = 5  # of the outer weights of the last network
TOLERANCE = 0.05  # of cleaned values, in standard deviations


@dataclass(frozen=True, eq=False)
class HuberFit:
    """A least-squares fit to cleaned data, and its errors at the given data.

    Attributes
    ----------
    network : ShallowNetwork
    jet : Jet
        The given data.
    cleaned : Jet
        The cleaned data, which were fitted.
    errors : array of shape (n, k)
        Leave-one-out errors ``e_k`` of the given values; NaN if there is no value.
    shares : array of shape (n, k)
        The ratio ``1 - h_k`` of the residual to the leave-one-out error, with the leverage ``h_k``.
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
        """Factors that convert errors to errors of a sample of mean weight, of shape (n, 1)."""
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
        """Return the root mean squares of errors (m, k) without gross errors.

        An error is gross if it is larger than ten robust standard deviations of the errors, and larger than the
        standard deviation of the cleaned values: errors of a fit that misses a peak are not gross.
        """
        limits = np.maximum(GROSS * robust_deviations(errors), np.nanstd(_columns(self.cleaned.y), axis=0))
        return np.asarray(np.sqrt(np.nanmean(np.where(np.abs(errors) > limits, np.nan, errors) ** 2, axis=0)))

    @property
    def moves(self) -> Array:
        """The changes of cleaned values that put their residuals at the threshold or at the given value: (n, k)."""
        threshold = THRESHOLD * self.deviations / self.units
        return np.clip(self.errors, -threshold, threshold) - self.errors + _columns(self.jet.y - self.cleaned.y)

    @property
    def unrest(self) -> float:
        """The largest change in a step, in standard deviations."""
        moves, deviations = np.abs(self.shares * self.moves) * self.units, self.deviations
        return float(np.nanmax(np.divide(moves, deviations, out=np.zeros_like(moves), where=deviations > 0)))

    def moved(self) -> Jet:
        """Return cleaned data, with the share ``1 - h_k`` of ``moves``, so that no value moves beyond the fit."""
        y = self.cleaned.y + (self.shares * self.moves).reshape(self.jet.y.shape)
        return replace(cleaned_derivatives(self.jet, self.network), y=y)

    def moved_validation(self, validation: Jet) -> Jet:
        """Return cleaned validation samples."""
        values = self.network.value(validation.X)
        threshold = (THRESHOLD * self.deviations).reshape(validation.y.shape[1:])
        return replace(validation, y=values + np.clip(validation.y - values, -threshold, threshold))


@dataclass(frozen=True)
class RobustLeaveOneOut(LeaveOneOut):
    """A rule that chooses alpha by the robust standard deviation of leave-one-out errors.

    The mean square of the errors would be dominated by the gross errors, and be smallest for fits to these.
    """

    def left_out(self, ridge: Ridge, alphas: Array, coefficients: Array) -> LeftOut:
        """Return the leave-one-out errors of all samples, or of evenly spaced ones if there are many."""
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

    Races at the first size alternate with the cleaning of the data, as long as the errors decrease. The races choose by
    robust errors (``RobustLeaveOneOut``). In the first race, neurons are sampled from the given derivatives, not from
    residuals or estimated derivatives: these are largest at gross errors, and leave-one-out does not account for
    neurons that were placed there.
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
    held_out = [jet[rows] for rows in fold_masks(first.task.jet, first.policy.n_folds)]
    finish = partial(with_huber_loss, jet=jet, cleaned=first.task.jet, held_out=held_out)
    return [replace(engine, finish=finish) for engine in cleaned]


def with_huber_loss(fit: ShallowFit, jet: Jet, cleaned: Jet, held_out: Sequence[Jet]) -> ShallowFit:
    """Return a fit to ``cleaned`` data with the outer weights of ``fit_huber``, and its errors at the given data.

    The errors are the root mean squares over all samples except gross errors (``HuberFit.ordinary``).

    Parameters
    ----------
    fit : ShallowFit
    jet, cleaned : Jet
        The given data, and the data without gross errors.
    held_out : sequence of Jet
        The given samples of each fold.
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
    """Return the fit with the outer weights of Huber's loss, by least-squares fits to iteratively cleaned data.

    The outer weights minimise ``sum_k w_k rho_k(y_k - f(x_k)) + alpha N W / 2 |c|^2`` with Huber's function ``rho_k``,
    which is quadratic up to ``1.345 s (1 - h_k)``, which is a leave-one-out error of 1.345 standard deviations ``s``. A
    sample with leverage ``h_k`` near one therefore does not attract the fit, as it does in least squares. ``s`` is the
    0.9 quantile of the leave-one-out errors over the quantile of a normal distribution. It tolerates about 5% of gross
    errors, and a function that is flat in most places does not look like zero with errors.

    A step moves cleaned values by the share ``1 - h_k`` of the remaining change, so that the objective decreases
    (Huber, Robust Statistics, section 7.8).

    Parameters
    ----------
    fit : ShallowFit
        The fit whose features, loss and alpha are kept.
    jet : Jet
        The data.
    cleaned : Jet, optional
        Cleaned data to start from; by default ``jet``.
    max_steps : int
    tolerance : float
        Steps end if no value moves by more than this number, in standard deviations.
    """
    huber = HuberFit.of(fit, jet, jet if cleaned is None else cleaned)
    for _ in range(max_steps):
        if huber.unrest <= tolerance:
            break
        huber = HuberFit.of(fit, jet, huber.moved())
    return huber


def robust_deviations(errors: Array) -> Array:
    """Return the 0.9 quantiles of absolute errors (m, ...) over the normal quantile; infinite if unknown."""
    deviations = calibration(np.abs(errors))
    return np.where(np.isnan(deviations), np.inf, deviations)


def cleaned_derivatives(jet: Jet, network: ShallowNetwork) -> Jet:
    """Return the data with residuals of the derivatives clipped at 1.345 standard deviations.

    The residual of a gradient or Hessian of one output keeps its direction.
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
    changed: dict[str, Any] = dict(moved)
    return replace(jet, **changed)


def _pilot(engine: SampledEngine, cleaner: HuberFit | None) -> SampledEngine:
    """Return the engine for a race at the first size by robust leave-one-out errors.

    Before data are cleaned, neurons are not sampled from residuals or estimated derivatives, if there is a choice.
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
    rule = None if engine.task.rule is None else engine.task.rule.with_others(cleaner.moved_validation)
    same = engine.task.jet.known == cleaner.jet.known
    jet = cleaner.moved() if same else cleaner.moved().only(())
    return replace(engine, task=replace(engine.task, jet=jet, rule=rule))


def _columns(values: Array) -> Array:
    """Return values of one or several outputs as a matrix (n, k)."""
    return values.reshape(len(values), -1)
