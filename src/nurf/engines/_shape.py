"""Fits that meet conditions on the shape, with errors that tell what this costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nurf._types import Array, Index, Mask
from nurf.choosing import POLICY, fold_masks
from nurf.engines._crossfit import CrossFit
from nurf.engines._fit import Fit, ShallowFit, Shape
from nurf.engines._wide import WideFit
from nurf.jets import Jet
from nurf.kernels import KernelAverage
from nurf.networks import Network, ShallowNetwork
from nurf.solvers import LARGEST_VIOLATION, MIN_ERRORS, Condition, ContradictionError, Shaped, shaped, violation
from nurf.solvers.process import HeldOutErrors, Process, ProcessChanges, ProcessRows, rounding_floor
from nurf.solvers.ridge import LeastSquares, RidgeChanges

ALPHAS = (1.0, 1e-1, 1e-2, 1e-4, 1e2)  # that are tried, in units of the best one without conditions
GAIN = 0.05  # of the mean square error, for which another alpha is taken
MOST_NOISE = 1e4  # of values, in units of the variance of the process: they say nothing then
CONTRADICTED = 9.0  # times its variance is the square of an error that noise does not explain
LEAST_NOISES = (1e-4, 1e-2, 1.0, MOST_NOISE)  # if nothing near the data meets the conditions


@dataclass(frozen=True, eq=False)
class Tried:
    """Sampled networks that meet conditions, with one alpha.

    Parameters
    ----------
    found : Shaped
        Of all data.
    parts : list of ShallowNetwork
        Without each fold.
    alpha, ridge_alpha : float
        In units of the mean energy of a feature, and in the units of ``Ridge``.
    after : array of shape (k,)
        The root mean square errors at the samples of the folds.
    """

    found: Shaped
    parts: list[ShallowNetwork]
    alpha: float
    ridge_alpha: float
    after: Array

    @property
    def network(self) -> ShallowNetwork:
        """The network of all data."""
        return self.found.network  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Conditions:
    """Conditions on the shape of a network, and where they are checked.

    Parameters
    ----------
    each : tuple of Condition
    points : array of shape (n, q)
        Points in scaled inputs from which virtual points are taken.
    others : array of shape (m, q)
        Further points, at which the largest violation is reported.
    """

    each: tuple[Condition, ...]
    points: Array
    others: Array

    def record(self, found: Shaped, growth: Array) -> Shape:
        """Return how a network meets the conditions."""
        return Shape(found.n_points, found.violation, violation(self.each, found.network, self.others), growth)

    def _unchanged(self, fit: Fit) -> Shape:
        """Return how a fit meets conditions that hold at all points without a change."""
        return Shape(0, 0.0, violation(self.each, fit.network, self.others), np.ones_like(fit.output_errors))

    def sampled(self, fit: ShallowFit, jet: Jet, given: Jet) -> ShallowFit:
        """Return a sampled network whose outer weights meet the conditions.

        Neurons and the loss are kept. Conditions also regularise: another alpha is chosen if it decreases the errors of
        fits without each fold, which meet the conditions as well, by more than a few percent.

        Parameters
        ----------
        fit : ShallowFit
        jet : Jet
            The data that were fitted.
        given : Jet
            The same with all derivatives that are known.
        """
        if violation(self.each, fit.network, self.points) <= LARGEST_VIOLATION:
            return replace(fit, shape=self._unchanged(fit))
        folds = _folds(jet)
        crossfit = fit.crossfit if fit.crossfit is not None and len(fit.crossfit.folds) == len(folds) else None
        parts: Any = [fit.network] * len(folds) if crossfit is None else crossfit.folds
        best = self._best(fit, parts, jet, folds)
        growth = np.ones_like(fit.output_errors)
        if folds:
            without = [_refit(each, jet[~held], fit, fit.alpha) for each, held in zip(parts, folds, strict=True)]
            growth = _growth(fit.output_errors, _left_out(without, jet, folds), best.after)
        if crossfit is not None:
            given = given if len(given) == len(jet) else jet
            crossfit = CrossFit.of(best.network, best.parts, [given[held] for held in folds])
        return replace(
            fit,
            network=best.network,
            crossfit=fit.crossfit if crossfit is None else crossfit,
            shape=self.record(best.found, growth),
            alpha=best.alpha,
            ridge_alpha=best.ridge_alpha,
        )

    def _best(self, fit: ShallowFit, parts: Sequence[ShallowNetwork], jet: Jet, folds: Sequence[Mask]) -> Tried:
        """Return the networks with the alpha of the smallest errors, or of the fit if no other is clearly better."""
        best, failure = None, None
        for factor in ALPHAS if folds else ALPHAS[:1]:
            try:
                tried = self._at(fit, fit.alpha * factor, parts, jet, folds)
            except ContradictionError as error:
                failure = error
                continue
            if best is None or np.sum(tried.after**2) < (1 - GAIN) * np.sum(best.after**2):
                best = tried
        if best is None:
            assert failure is not None
            raise failure
        return best

    def _at(
        self, fit: ShallowFit, alpha: float, parts: Sequence[ShallowNetwork], jet: Jet, folds: Sequence[Mask]
    ) -> Tried:
        """Return networks of ridge regression with an alpha that meet the conditions: of all data and without folds."""
        found, ridge_alpha = self._ridge(fit.network, jet, fit, alpha)
        kept: Any = [
            self._ridge(each, jet[~held], fit, alpha, found.active)[0].network
            for each, held in zip(parts, folds, strict=True)
        ]
        after = _left_out(kept, jet, folds) if folds else np.zeros(1)
        return Tried(found, kept, alpha, ridge_alpha, after)

    def wide(self, fit: WideFit) -> WideFit:
        """Return an average of processes that meets the conditions, with the same scales."""
        posterior, shape = fit.posterior, fit.posterior.jet.y.shape[1:]
        found, processes = self._average(posterior.processes, posterior.jet, posterior.network.weights)
        if found.n_points == 0:
            return replace(fit, shape=self._unchanged(fit))
        network: KernelAverage = found.network  # type: ignore[assignment]
        held_out, folds = posterior.held_out, _folds(posterior.jet)
        if processes is not posterior.processes:
            parts = [HeldOutErrors.one_by_one(process, posterior.jet.n_features) for process in processes]
            held_out = held_out.with_deviations(HeldOutErrors.mixed(parts, posterior.network.weights))
        growth = np.ones(len(fit.output_errors))
        if folds:
            before, after = list[Network](), list[Network]()
            for held in folds:
                jet = posterior.jet[~held]
                rows = ProcessRows.of(jet, posterior.degree)
                without = tuple(replace(process, rows=rows).sound() for process in posterior.processes)
                before.append(_mean(without, posterior.network.weights, shape))
                after.append(self._average(without, jet, posterior.network.weights, found.active)[0].network)
            left_out = [_left_out(each, posterior.jet, folds) for each in (before, after)]
            growth = _growth(fit.output_errors, *left_out)
        posterior = replace(
            posterior,
            network=network,
            noise=np.stack([process.noise for process in processes]),
            variances=np.stack([process.variances for process in processes]),
            held_out=held_out.times(growth),
        )
        return replace(fit, network=network, posterior=posterior, shape=self.record(found, growth))

    def _ridge(
        self,
        network: ShallowNetwork,
        jet: Jet,
        fit: ShallowFit,
        alpha: float,
        start: Sequence[Index] | None = None,
    ) -> tuple[Shaped, float]:
        """Return the network that meets the conditions, and its alpha in the units of ``Ridge``."""
        ridge = LeastSquares(network.features, jet).ridge(fit.loss, precise=fit.precise)
        ridge_alpha = alpha * (ridge.feature_energy or 1.0)
        changes = RidgeChanges(_refit(network, jet, fit, alpha), jet, ridge_alpha, fit.loss, fit.precise)
        return shaped(changes, self.each, self.points, start), ridge_alpha

    def _average(
        self, processes: tuple[Process, ...], jet: Jet, weights: Array, start: Sequence[Index] | None = None
    ) -> tuple[Shaped, tuple[Process, ...]]:
        """Return the average that meets the conditions, and its processes: with more noise if data contradict them."""
        for noise in LEAST_NOISES:
            network = _mean(processes, weights, jet.y.shape[1:])
            try:
                found = shaped(ProcessChanges(network, processes), self.each, self.points, start)
                raised = tuple(_with_noise_of(each, found.network, jet) for each in processes) if found.n_points else ()
            except ContradictionError:
                raised = tuple(replace(each, noise=np.maximum(each.noise, noise)) for each in processes)
            if all(new is old for new, old in zip(raised, processes, strict=False)):
                return found, processes
            processes = raised
        network = _mean(processes, weights, jet.y.shape[1:])
        return shaped(ProcessChanges(network, processes), self.each, self.points, start), processes


def _mean(processes: Sequence[Process], weights: Array, output_shape: tuple[int, ...]) -> KernelAverage:
    """Return the average of the means of processes given their rows."""
    return KernelAverage(tuple(process.network(output_shape) for process in processes), weights)


def _with_noise_of(process: Process, network: Network, jet: Jet) -> Process:
    """Return the process with the noise of its errors at the data, if these are far larger than its noise."""
    errors = jet - network.jet(jet.X, jet.known)
    k, d = network.n_outputs, jet.n_features
    scales = process.variances
    noise = process.noise.copy()

    def raised(old: Array, squares: Array) -> Array:
        found = np.nanmean(squares, axis=0) if squares.size and not np.all(np.isnan(squares)) else old
        found = np.minimum(found, MOST_NOISE)
        return np.where(found > CONTRADICTED * old + rounding_floor(len(process.rows)), found, old)

    noise[:1] = raised(noise[:1], np.mean(errors.y.reshape(len(jet), k) ** 2 / scales, axis=1)[:, None])
    if errors.gradients is not None:
        squares = np.mean(errors.gradients.reshape(len(jet), k, d) ** 2 / scales[:, None], axis=1)
        squares = squares if len(noise) == d + 2 else np.mean(squares, axis=1, keepdims=True)
        noise[1:-1] = raised(noise[1:-1], squares)
    if errors.hessians is not None:
        squares = np.mean(errors.hessians.reshape(len(jet), k, -1) ** 2 / scales[:, None], axis=(1, 2))[:, None]
        noise[-1:] = raised(noise[-1:], squares)
    return process if np.array_equal(noise, process.noise) else replace(process, noise=noise)


def _folds(jet: Jet) -> list[Mask]:
    """Return the masks of the samples of each fold; none if there are too few samples."""
    if np.count_nonzero(jet.has_value) < MIN_ERRORS:
        return []
    folds = [held for held in fold_masks(jet, POLICY.n_folds) if jet.has_value[held].any()]  # not only functionals
    return folds if len(folds) > 1 else []


def _refit(network: ShallowNetwork, jet: Jet, fit: ShallowFit, alpha: float) -> ShallowNetwork:
    """Return a network with outer weights for some data and an alpha."""
    ridge = LeastSquares(network.features, jet).ridge(fit.loss, precise=fit.precise)
    (path,) = ridge.solve(np.array([alpha * (ridge.feature_energy or 1.0)]))
    return replace(network, coefficients=path.reshape(network.coefficients.shape))


def _left_out(networks: Sequence[Network], jet: Jet, folds: Sequence[Mask]) -> Array:
    """Return the root mean square errors of networks at the samples of their folds, of shape (k,)."""
    errors = [network.errors(jet[held & jet.has_value]) for network, held in zip(networks, folds, strict=True)]
    return np.asarray(np.sqrt(np.mean(np.concatenate(errors) ** 2, axis=0)))


def _growth(estimated: Array, before: Array, after: Array) -> Array:
    """Return the factors of estimated errors (k,) that conditions ask for.

    If errors of fits without each fold fall from ``before`` to ``after``, this is their ratio. If they rise, the mean
    square grows by as much as theirs: data may contradict the conditions.
    """
    better = np.divide(after, before, out=np.ones_like(after), where=before > 0)
    worse = np.divide(after**2 - before**2, estimated**2, out=np.zeros_like(after), where=estimated > 0)
    return np.where(after <= before, better, np.sqrt(1 + np.maximum(worse, 0.0)))
