"""The uncertainty of a fit to few samples, from fits without each of several folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from nurf._blocks import row_blocks
from nurf._types import Array, Index
from nurf.choosing import fold_masks
from nurf.jets import Jet
from nurf.networks import Network
from nurf.solvers import (
    MIN_ERRORS,
    Difference,
    Reach,
    between_samples,
    beyond_reach,
    calibration,
    effective_number,
    normal_interval,
    plus_interval,
    require_errors,
    standard_error,
    standing_for,
)


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Fits without each (or some) of several folds, and their errors at the samples of these folds.

    Neurons are sampled or trained without the fold, so that the errors are errors of the whole method. With the fits
    ``f_{-j}`` without fold ``j`` of ``J``, and the errors ``e_k`` at the samples, intervals follow CV+
    (``plus_interval``). With the jackknife's variance of the fit, ``v(x) = (J - 1) mean_j (f_{-j}(x) - f(x))^2``, the
    standard deviation of a measurement is::

        (c^2 + max(0, v(x) - max_k v(x_k)) + a(x))^(1/2),

    with ``c`` such that 1.645 standard deviations contain nine of ten ``e_k``, and with the variance ``a`` that is
    added far from the samples. The standard deviation is larger than at the samples where the fits differ more than at
    any sample, and far from all samples.

    Parameters
    ----------
    network : Network
        The fit to all samples.
    folds : tuple of Network
        The fits without each fold.
    fold_of : array of shape (m,)
        The fold of each sample with a value.
    errors : array of shape (m, k)
        Errors of the values, for samples of mean weight.
    weights : array of shape (m,)
        Weights of these samples.
    variances : array of shape (m, k)
        ``v`` at these samples.
    gradient_errors : array of shape (g, k, d)
        Errors of the gradients; NaN if unknown.
    gradient_variances : array of shape (g, k, d)
        The jackknife's variances of the gradients at the samples.
    n_folds : int
        ``J``.
    points : array of shape (p, d)
        Samples, or some of them, from which distances are measured.
    between : bool
        Whether functionals determine the function where no values are: then intervals come from standard deviations.
    """

    network: Network
    folds: tuple[Network, ...]
    fold_of: Index
    errors: Array
    weights: Array
    variances: Array
    gradient_errors: Array
    gradient_variances: Array
    n_folds: int
    points: Array
    between: bool = False

    @classmethod
    def of(
        cls, network: Network, folds: Sequence[Network], held_out: Sequence[Jet], n_folds: int | None = None
    ) -> CrossFit:
        """Return the cross-fit of ``network``, with the held-out samples of each of the ``folds``.

        ``n_folds`` is the number of folds into which the samples were split, if there are fits without some of the
        folds only.
        """
        n_folds = len(folds) if n_folds is None else n_folds
        valued = [jet.with_values() for jet in held_out]
        fold_of = np.repeat(np.arange(len(folds)), [len(jet) for jet in valued])
        weights = np.concatenate([jet.weights(0) for jet in valued])
        errors = [fold.errors(jet) for fold, jet in zip(folds, valued, strict=True)]
        slopes = [_gradient_errors(fold, jet) for fold, jet in zip(folds, held_out, strict=True)]
        points = np.concatenate([jet.X for jet in valued])
        return cls(
            network,
            tuple(folds),
            fold_of,
            np.concatenate(errors) * np.sqrt(weights / np.mean(weights))[:, None],
            weights,
            (n_folds - 1) * _mean_squares(network, folds, points, _value),
            np.concatenate(slopes),
            (n_folds - 1) * _gradient_squares(network, folds, held_out),
            n_folds,
            standing_for(np.concatenate([jet.X for jet in held_out])),
            any(jet.functionals is not None for jet in held_out),
        )

    @classmethod
    def by_refits(
        cls,
        network: Network,
        jet: Jet,
        refit: Callable[[Jet], Network],
        n_folds: int,
    ) -> CrossFit:
        """Return the cross-fit of ``network``, which was fitted to ``jet``, with refits without each fold."""
        folds = fold_masks(jet, n_folds)
        return cls.of(network, [refit(jet[~fold]) for fold in folds], [jet[fold] for fold in folds])

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def reach(self) -> Reach:
        """The additional variances far from the samples."""
        return Reach.of(self.network, self.points)

    @property
    def knows_gradients(self) -> bool:
        """Whether standard deviations of gradients come from errors of gradients."""
        return bool(np.all(self._known_gradients >= MIN_ERRORS))

    @property
    def effective(self) -> float:
        """The effective number of samples."""
        return effective_number(self.weights)

    @property
    def output_errors(self) -> Array:
        """The root mean square error of each output, and one standard error, of shape (k,).

        The standard error is added because the fit was chosen by errors at the same samples.
        """
        luck = 1 + standard_error(self.effective)
        return np.asarray(luck * np.sqrt(np.mean(self.errors**2, axis=0)))

    def optimism(self, estimates: Sequence[Array]) -> Array:
        """Return the median factor by which estimated errors of the fits are too small, at least 1: (k,).

        ``estimates`` are the errors that the fits without a fold estimate for themselves.
        """
        true = np.array([np.mean(self.errors[self.fold_of == j] ** 2, axis=0) for j in range(len(self.folds))])
        ratios = np.ones_like(true)  # an estimate of zero gives no ratio
        np.divide(true, np.square(estimates), out=ratios, where=np.square(estimates) > 0)
        return np.asarray(np.sqrt(np.maximum(np.median(ratios, axis=0), 1.0)))

    @property
    def _known_gradients(self) -> Index:
        """The number of errors of each partial derivative, of shape (k, d)."""
        return np.asarray(np.count_nonzero(~np.isnan(self.gradient_errors), axis=0))

    def value_std(self, X: Array) -> Array:
        """Return the standard deviation of a new measurement at the points, noise included, of shape (n, k)."""
        require_errors(len(self.errors))
        return np.asarray(np.sqrt(self.deviations(X) ** 2 + self.reach.variances(X)))

    def gradient_std(self, X: Array) -> Array:
        """Return the standard deviation of a new measurement of the gradient at the points, of shape (n, k, d).

        If a partial derivative is unknown at all samples, its error is estimated by the difference between the fits,
        times the ratio of the errors of the values to the differences of the values. The result is NaN if the fits do
        not differ, but have errors.
        """
        require_errors(len(self.errors))
        variances = self._variances(X, _gradient)
        size, errors = np.sqrt(np.mean(self.variances, axis=0)), self.output_errors
        factor = np.divide(errors, size, out=np.where(errors > 0, np.nan, 1.0), where=size > 0)
        known = self._known_gradients >= MIN_ERRORS
        calibrated = _calibrated(variances, self.gradient_errors, self.gradient_variances)
        deviations = np.where(known, calibrated, np.sqrt(variances) * factor[:, None])
        return np.asarray(np.sqrt(deviations**2 + self.reach.gradient_variances(X)))

    def _variances(self, X: Array, evaluate: Callable[[Network, Array], Array]) -> Array:
        """Return the jackknife's variances of the values (n, k), or of the gradients (n, k, d), at the points."""
        return (self.n_folds - 1) * _mean_squares(self.network, self.folds, X, evaluate)

    def draws(self, n: int, rng: np.random.Generator) -> tuple[Difference, ...]:
        """Return the differences of ``n`` draws of the function from the fit; noise counts as an error."""
        require_errors(len(self.errors))
        errors = between_samples(self.reach, self.errors, n, rng, amplitude=self)
        return errors, beyond_reach(self.reach, n, rng)

    def deviations(self, X: Array) -> Array:
        """Return the standard deviations of values at the points, without those far from the samples: (n, k)."""
        return _calibrated(self._variances(X, _value), self.errors, self.variances, self.effective)

    def deviation_gradients(self, X: Array) -> Array:
        """Return the gradients of ``deviations`` at the points, of shape (n, k, d)."""
        n, k = len(X), self.network.n_outputs
        center, slope = self.network.value(X), self.network.gradient(X)
        slopes = np.zeros((n, k, X.shape[1]))
        for fold in self.folds:
            moved = (fold.value(X) - center).reshape(n, k, 1)
            slopes += moved * (fold.gradient(X) - slope).reshape(slopes.shape)
        grows = self._variances(X, _value) > self.variances.max(axis=0)
        factors = np.divide(
            grows * (self.n_folds - 1) / len(self.folds), self.deviations(X), where=grows, out=np.zeros((n, k))
        )
        return np.asarray(factors[..., None] * slopes)

    def interval(self, X: Array, coverage: float) -> Array:
        """Return intervals that contain a new measurement with probability ``coverage``, of shape (n, k, 2)."""
        if self.between:
            return normal_interval(self.network.value(X), self.value_std(X), coverage)
        sizes = np.abs(self.errors)
        result = np.empty((len(X), sizes.shape[1], 2))
        for rows in row_blocks(len(X), sizes.size):
            without = np.stack([fold.value(X[rows]).reshape(-1, sizes.shape[1]) for fold in self.folds], axis=1)
            added = self.reach.variances(X[rows])
            result[rows] = plus_interval(without[:, self.fold_of], sizes, coverage, self.effective, added)
        return result


def _value(network: Network, X: Array) -> Array:
    return network.value(X)


def _gradient(network: Network, X: Array) -> Array:
    return network.gradient(X)


def _gradient_errors(fold: Network, jet: Jet) -> Array:
    """Return the errors of the gradients of a fit, of shape (n, k, d), NaN if a gradient is unknown."""
    shape = (len(jet), jet.y[:1].size, jet.n_features)
    if jet.gradients is None or jet.frames is not None or not fold.n_derivatives:
        return np.full(shape, np.nan)
    return np.asarray((jet.gradients - fold.gradient(jet.X)).reshape(shape))


def _gradient_squares(network: Network, folds: Sequence[Network], held_out: Sequence[Jet]) -> Array:
    """Return the mean squares of the gradients of ``f_{-j} - f`` at the samples, (n, k, d), NaN without gradients."""
    X = np.concatenate([jet.X for jet in held_out])
    if held_out[0].gradients is None or not network.n_derivatives:
        return np.full((len(X), network.n_outputs, X.shape[1]), np.nan)
    return _mean_squares(network, folds, X, _gradient)


def _mean_squares(
    network: Network,
    folds: Sequence[Network],
    X: Array,
    evaluate: Callable[[Network, Array], Array],
) -> Array:
    """Return ``mean_j (f_{-j}(x) - f(x))^2`` at the points, for values (n, k) or gradients (n, k, d)."""
    center = evaluate(network, X)
    total = sum((evaluate(fold, X) - center) ** 2 for fold in folds) / len(folds)
    return np.asarray(total).reshape(len(X), network.n_outputs, *center.shape[1 + len(network.output_shape) :])


def _calibrated(variances: Array, errors: Array, at_samples: Array, effective: float = np.inf) -> Array:
    """Return standard deviations from variances of the fit, the errors at the samples, and the variances there."""
    factors = calibration(np.abs(errors), effective)
    return np.asarray(np.sqrt(factors**2 + np.maximum(variances - at_samples.max(axis=0), 0.0)))
