"""What the regressors share: from the data of a user to a jet, and from a fitted network to predictions."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nurf._scaling import Scaling
from nurf._types import Array
from nurf._validation import is_number, is_whole
from nurf._warping import UNWARPED, Warping, require_positive
from nurf.choosing import NO_LIMIT, POLICY, Choice, Clock, Engine, decide
from nurf.data import DerivativeCheck, Observations, in_pieces, require_numbers, split
from nurf.engines import Fit, Origin, ShallowFit
from nurf.engines._progress import watch_attempts
from nurf.estimators._parameters import as_generator
from nurf.estimators._report import Report
from nurf.estimators._warped import Translation, WarpedEngine, least, promising, tail_warnings, warpings_of
from nurf.files import write
from nurf.jets import Jet
from nurf.networks import Hyperplanes, Network, PointFunction, ShallowNetwork, WarpedFunction, WarpedNetwork
from nurf.solvers._coverage import MIN_ERRORS, Uncertainty
from nurf.solvers._draws import Draws

ALL_DATA, VALUES_ALONE = "all data", "values alone"  # the names of what engines are fitted to


class SavedEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that is saved to a file without code."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, from which ``nurf.load`` returns it with the same predictions, bit by bit.

        The file holds numbers and names, and no code, and is written in one step: whoever reads it meanwhile sees the
        file that was there before, or the new one.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        TypeError
            If a parameter is an object or a function of one's own. The message names it, and nothing is written.
        """
        from nurf.estimators._files import SAVED  # which knows all estimators

        check_is_fitted(self)
        write(path, self, SAVED)


@dataclass(frozen=True, eq=False)
class Prepared:
    """What an estimator fits to given data.

    Parameters
    ----------
    engines : tuple of Engine
        The simplest first.
    scaling : Scaling
    scaled : Jet
        The data, in the units of the engines.
    check : DerivativeCheck or None
        The comparison of the gradients with the values.
    warnings : tuple of Warning
    clock : Clock
        The end of the time budget of the engines.
    validated : bool
        Whether there are validation samples.
    deviations : array of shape (d,), optional
        The standard deviations of the inputs, in units of their scales.
    warping : Warping
        Curves of inputs and outputs, in front of the scaling.
    held_out : Jet or None
        Validation samples, in the units of the engines.
    """

    engines: tuple[Engine, ...]
    scaling: Scaling
    scaled: Jet
    check: DerivativeCheck | None
    warnings: tuple[Warning, ...]
    clock: Clock
    validated: bool
    deviations: Array | None = None
    warping: Warping = UNWARPED
    held_out: Jet | None = None

    @cached_property
    def raced(self) -> tuple[Engine, ...]:
        """The engines, with errors in units of the standard deviation of the values."""
        if self.warping.is_trivial:
            return self.engines
        parts = {ALL_DATA: self.scaled, VALUES_ALONE: self.scaled.only(())}
        translate = partial(Translation, self.warping, self.scaling, held_out=self.held_out)
        label = str(self.warping)
        return tuple(WarpedEngine.of(each, translate(parts[each.data]), label) for each in self.engines)

    def fit(self, choice: Choice) -> Any:
        """Return the fit of the candidate that was chosen, with what choosing adds to its error.

        Errors are NaN if there are too few samples to know them.
        """
        winner = choice.winner
        fit = winner.engine.fit(winner, self.scaled)
        fit = replace(fit, output_errors=choice.optimism * fit.output_errors)
        if np.count_nonzero(self.scaled.has_value) < MIN_ERRORS and not self.validated:
            fit = replace(fit, output_errors=np.full_like(fit.output_errors, np.nan))
        own = tuple(attempt for attempt in choice.attempts if attempt.engine == winner.engine.name)
        known, n_decisive = tuple(sorted(self.scaled.known)), winner.evidence.n_decisive
        origin = Origin(winner.engine.data, known, choice.optimism, len(self.scaled), n_decisive)
        return replace(fit, attempts=own, origin=origin).with_unseen(self.scaling.unseen)


class NetworkRegressor(MultiOutputMixin, RegressorMixin, SavedEstimator):  # type: ignore[misc]
    """A regressor that is fitted as a network in scaled units (``fit_``, ``scaling_``) and predicts in the user's."""

    fit_: Fit
    scaling_: Scaling
    _warping: Warping
    estimated_error_: float | Array
    uncertainty_: Uncertainty | None
    gradient_check_: DerivativeCheck | None
    target: Any = None
    inputs: Any = None
    verbose: int
    random_state: Any = None
    _goes_on: bool = False  # from a race on a sample to all blocks

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        gradients: Any = None,
        gradients_at: Any = None,
        directions: Any = None,
        hessians: Any = None,
        sample_weight: Any = None,
        derivative_weight: Any = None,
        validation: Any = None,
    ) -> Self:
        """Fit the network to values and derivatives.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Training inputs.
        y : array of shape (n,) or (n, k)
            Target values.
        gradients : array of shape (n, d) or (n, k, d), optional
            Gradients of the targets. Set unknown partial derivatives to NaN. Columns of data frames are matched by name
            (``x1``, ``d_x1``, ``dy_x1``, ``dy/dx1``). If ``X`` is a data frame, the rows of all data frames and series
            are matched by index, and those of arrays by position.
        gradients_at : array of shape (m, d), optional
            Points at which the gradients are known, if these are not ``X``. Then ``gradients`` has ``m`` rows.
        directions : array of shape (n, d) or (n, q, d), optional
            Directions of directional derivatives (Jacobian-vector products). Then ``gradients`` holds these
            derivatives, of shape (n,) or (n, q), or with several outputs (n, k) or (n, k, q).
        hessians : array of shape (n, d, d) or (n, k, d, d), optional
            Hessians of the targets. Set unknown entries to NaN.
        sample_weight : array of shape (n,), optional
            Sample weights, for instance inverse variances of the noise. Their unit means nothing.
        derivative_weight : array of shape (n,) or (m,), optional
            Weights of the derivatives of each sample, for instance if their noise varies. Default is ``sample_weight``.
            Weights are in the unit of ``sample_weight``, and factors of ``gradient_weight`` and ``hessian_weight``.
        validation : (X, y), Jet or float, optional
            Samples that are not fitted, and on which the error is estimated. A number between 0 and 1 splits off this
            share of the samples. By default the error is estimated on samples that are left out of fits in turn.

        Returns
        -------
        self
        """
        data = Observations(
            X,
            y,
            gradients=gradients,
            gradients_at=gradients_at,
            directions=directions,
            hessians=hessians,
            sample_weight=sample_weight,
            derivative_weight=derivative_weight,
            validation=validation,
        )
        return self._fit_data(data, self._fit)

    def update(
        self,
        X: Any,
        y: Any,
        *,
        gradients: Any = None,
        gradients_at: Any = None,
        directions: Any = None,
        hessians: Any = None,
        sample_weight: Any = None,
        derivative_weight: Any = None,
    ) -> Self:
        """Fit the network that was chosen to more samples, in a small part of the time of ``fit``.

        The units, the settings and the kernels of the last ``fit`` stay, with the scales and noise of kernels;
        neurons of sampled networks are sampled anew, and weights of trained networks are trained on. The estimated
        error and the uncertainty are those of the new fit. A warning says if there are more than twice as many samples
        as in the last ``fit``: then choosing again may give a better model.

        Parameters
        ----------
        X, y, gradients, gradients_at, directions, hessians, sample_weight, derivative_weight
            All samples, old and new, as for ``fit``. There must be the same kinds of derivatives.

        Returns
        -------
        self

        Examples
        --------
        >>> from nurf import KernelFeatureRegressor
        >>> X = np.random.default_rng(0).uniform(-1, 1, (30, 2))
        >>> y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
        >>> model = KernelFeatureRegressor().fit(X[:20], y[:20])
        >>> before = model.estimated_error_
        >>> bool(model.update(X, y).estimated_error_ < before)
        True
        """
        check_is_fitted(self, "fit_")
        data = Observations(
            X,
            y,
            gradients=gradients,
            gradients_at=gradients_at,
            directions=directions,
            hessians=hessians,
            sample_weight=sample_weight,
            derivative_weight=derivative_weight,
        )
        return self._fit_data(data, self._updated, reset=False)

    def _updated(self, jet: Jet, _: Any) -> list[Warning]:
        """Fit what was chosen before to checked data, and return warnings for the user."""
        before = self.fit_.origin
        if before is None:
            raise ValueError("`update` needs a model of `fit` with at most 20,000 rows: go on with `partial_fit`")
        if jet.y.shape[1:] != self.fit_.network.output_shape:
            expected, got = self.fit_.network.output_shape, jet.y.shape[1:]
            raise ValueError(f"`y` must have outputs of shape {expected}, as in the last fit, got {got}")
        if tuple(sorted(jet.known)) != before.known:
            had, has = (" and ".join(kinds) or "no derivatives" for kinds in (before.known, sorted(jet.known)))
            raise ValueError(f"`update` needs the derivatives that the last fit had, {had}, got {has}")
        prepared = self._prepared(self.warping_, jet, jet, None, self._generator(), NO_LIMIT, self.scaling_)
        engine = next(engine for engine in prepared.raced if engine.data == before.data)
        fit = prepared.fit(Choice(engine.again(self.fit_), before.optimism))
        origin = replace(fit.origin, optimism=before.optimism, n_samples=before.n_samples)
        found = self._finished(prepared, replace(fit, origin=origin, attempts=self.fit_.attempts))
        if len(jet) > 2 * before.n_samples:
            found.append(
                UserWarning(
                    f"there are {len(jet)} samples, and settings were chosen with {before.n_samples}: `fit` may find "
                    "better ones"
                )
            )
        return [*prepared.warnings, *found]

    def _fit_data(self, data: Observations, fit: Callable[[Jet, Any], list[Warning]], reset: bool = True) -> Self:
        """Check the data and call ``fit`` with a jet. Without ``reset``, inputs must be those of the fit before."""
        with unchanged_on_error(self):
            data = self._checked(data, reset)
            found = fit(data.jet(), data.validation)
        for warning in found:
            warnings.warn(warning, stacklevel=3)
        return self

    def _checked(self, data: Observations, reset: bool = True) -> Observations:
        """Return the data with rows and columns that match, and with arrays of numbers as ``X`` and ``y``."""
        require_numbers(X=data.X, y=data.y)
        data = data.matched()
        X, y = validate_data(self, data.X, data.y, reset=reset, multi_output=True, y_numeric=True, dtype=np.float64)
        return replace(data, X=X, y=y)

    def _fit(self, jet: Jet, validation: Any) -> list[Warning]:
        """Fit to checked data, set the attributes at the very end, and return warnings for the user."""
        rng, progress = self._generator(), watch_attempts(self._verbosity())
        given, (jet, held_out) = jet, split(jet, validation, rng)
        warpings = self._warpings(jet, held_out)
        rivals = [self._prepared(warping, given, jet, held_out, rng, NO_LIMIT) for warping in warpings]
        choices = [decide(each.raced, POLICY, progress, each.clock) for each in rivals]
        prepared, choice = rivals[least(choices)], choices[least(choices)]
        found = self._finished(prepared, prepared.fit(choice))
        if getattr(self, "loss", "squared") == "squared":  # with Huber's loss, gross errors are expected
            found += tail_warnings(choice.winner.evidence, jet.with_values().y, self.target)
        self._set_rivals(warpings, choices)
        if progress is not None:
            progress.done(self.fit_)
        return [*prepared.warnings, *found]

    def _generator(self) -> np.random.Generator:
        """Return the generator of all random numbers of a fit."""
        return as_generator(self.random_state)

    def _warpings(self, jet: Jet, held_out: Jet | None) -> list[Warping]:
        """Return the curves of inputs and outputs that ``target`` and ``inputs`` ask for; "auto" may give several."""
        names = getattr(self, "feature_names_in_", None)
        return promising(warpings_of(self.target, self.inputs, jet, held_out, names), jet)

    def _prepared(
        self,
        warping: Warping,
        given: Jet,
        jet: Jet,
        held_out: Jet | None,
        rng: np.random.Generator,
        clock: Clock,
        scaling: Scaling | None = None,
        prepare: Callable[..., Prepared] | None = None,
    ) -> Prepared:
        """Return what ``prepare``, by default ``_prepare``, returns for data between curves of inputs and outputs."""
        if warping.outputs is not None and getattr(self, "loss", "squared") == "huber":
            raise ValueError(
                f"`loss` must be 'squared' with a `target`, got 'huber' and the {warping}: values without gross errors "
                "are not known in the units of the data"
            )
        prepare = self._prepare if prepare is None else prepare
        jet, held_out = warping(jet), None if held_out is None else warping(held_out)
        prepared = prepare(warping(given), jet, held_out, rng, clock, scaling)
        return replace(prepared, warping=warping, held_out=None if held_out is None else prepared.scaling(held_out))

    def _set_rivals(self, warpings: Sequence[Warping], choices: Sequence[Choice]) -> None:
        """Note the errors between all curves that were tried, in units of the standard deviation of the values."""
        pairs = zip(warpings, choices, strict=True)
        self._rivals = tuple((str(warping), float(choice.optimism * choice.winner.error)) for warping, choice in pairs)

    def _finished(self, prepared: Prepared, fit: Any) -> list[Warning]:
        """Set the attributes of a fit with its curves, and return warnings for the user."""
        self._warping = prepared.warping
        return self._finish(prepared, fit)

    @abstractmethod
    def _prepare(
        self,
        given: Jet,
        jet: Jet,
        held_out: Jet | None,
        rng: np.random.Generator,
        clock: Clock,
        scaling: Scaling | None = None,
    ) -> Prepared:
        """Return the engines that fit the data as the parameters say, until the clock ends.

        Parameters
        ----------
        given : Jet
            All data, whose gradients are checked.
        jet : Jet
            The data to fit.
        held_out : Jet or None
            Validation samples.
        rng : numpy.random.Generator
        clock : Clock
        scaling : Scaling, optional
            The units, in place of those that the parameters ask for.
        """

    @abstractmethod
    def _finish(self, prepared: Prepared, fit: Any) -> list[Warning]:
        """Set the attributes of a fit, and return warnings for the user."""

    @property
    @abstractmethod
    def _chosen(self) -> str:
        """What was fitted, in a few words."""

    def _with_units(self, report: Report) -> Report:
        """Return a report that says first what the network sees, if that is not inputs and values as they are."""
        chosen, rivals = str(self.warping_), dict(vars(self).get("_rivals", ()))
        others = [f"{rivals[label]:.2g} with {label or 'nothing'}" for label in rivals if label != chosen]
        text = (chosen or "nothing") + (f"; estimated error {' and '.join(others)} transformed" if others else "")
        return replace(report, lines=(("transformed", text), *report.lines)) if chosen or others else report

    @abstractmethod
    def report(self) -> Report:
        """Return what was chosen and why: text in a terminal, a table in a notebook."""

    def _verbosity(self) -> int:
        if not (isinstance(self.verbose, Integral) and self.verbose >= 0):
            raise ValueError(f"`verbose` must be a whole number >= 0, got {self.verbose!r}")
        return int(self.verbose)

    def _set_fit(self, fit: Fit, scaling: Scaling, uncertainty: Uncertainty | None = None) -> None:
        """Set the attributes that predictions need."""
        self.fit_, self.scaling_, self.uncertainty_ = fit, scaling, uncertainty
        self.__dict__.pop("network_", None)
        errors = fit.output_errors * self.y_scale_
        self.estimated_error_ = errors if np.ndim(scaling.y_scale) else float(errors[0])

    @property
    def warping_(self) -> Warping:
        """The curves of inputs and outputs, in front of ``scaling_``."""
        found: Warping = vars(self).get("_warping", UNWARPED)  # files of versions without curves have none
        return found

    @property
    def y_scale_(self) -> Array:
        """The standard deviation of the values, in the units of the data, of shape () or (k,)."""
        check_is_fitted(self, "fit_")
        return self.scaling_.y_scale if self.warping_.y_scale is None else self.warping_.y_scale

    @cached_property
    def network_(self) -> Network:
        """The fitted network, as a function of unscaled inputs: computed from ``fit_`` when it is first asked for."""
        check_is_fitted(self, "fit_")
        return self._in_units(self.fit_.network)

    def _in_units(self, network: Network) -> Network:
        """Return a network of scaled units as a function in the units of the data."""
        network = network.in_units_of(self.scaling_)
        return network if self.warping_.is_trivial else WarpedNetwork(network, self.warping_)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the values at the points, of shape (n,) or (n, k).

        With ``return_std`` also the standard deviations of new measurements, of the same shape, noise included. For
        sampled networks they come from ridge regression in the Bayesian view with more than 150 samples; with fewer,
        and for trained networks, from samples that are left out in folds. For infinitely wide networks they come from
        the process, calibrated with samples that are left out.

        Arrays on disk are read in blocks. Dask arrays give Dask arrays, which compute nothing until they are asked.
        """
        return self._in_pieces(self._predict, X, (), return_std)

    def _predict(self, X: Any, return_std: bool = False) -> Any:
        points = self._inputs(X)[1]
        warped = self._warped_values(points)
        values = self.warping_.values_back(warped)
        if not return_std:
            return values
        return values, self.warping_.deviations_back(warped, self._warped_deviations(points))

    def _warped_values(self, points: Array) -> Array:
        """Return the values after their curves, at scaled points, of shape (n,) or (n, k)."""
        return self.scaling_.values_back(self.fit_.network.value(points))

    def _warped_deviations(self, points: Array) -> Array:
        """Return the standard deviations of values after their curves, at scaled points, of shape (n,) or (n, k)."""
        deviations = self._checked_uncertainty().value_std(points)
        return np.asarray(deviations.reshape(len(points), *self.fit_.network.output_shape) * self.scaling_.y_scale)

    def predict_gradient(self, X: Any, return_std: bool = False) -> Any:
        """Return the gradients at the points, of shape (n, d) or (n, k, d), and by choice their standard deviations.

        Deviations are calibrated with the gradients of samples that are left out. If none were given, they are a guess,
        and a warning says so. Arrays on disk and of Dask are treated as by ``predict``.
        """
        return self._in_pieces(self._predict_gradient, X, ("d",), return_std)

    def _predict_gradient(self, X: Any, return_std: bool = False) -> Any:
        given, points = self._inputs(X)
        scaled, warping = self.fit_.network.gradient(points), self.warping_
        gradients = slopes = self.scaling_.gradients_back(scaled)
        if not warping.is_trivial:
            warped = self._warped_values(points)
            gradients = warping.derivatives_back(given, warped, slopes)[0]
        if not return_std:
            return gradients
        uncertainty = self._checked_uncertainty()
        deviations = uncertainty.gradient_std(points).reshape(scaled.shape)
        if not uncertainty.knows_gradients:
            warnings.warn(
                "standard deviations of gradients could not be compared with gradients that were given: they may be "
                "several times too small or too large",
                stacklevel=5,  # where the gradients were asked for
            )
        deviations = self.scaling_.gradient_deviations_back(deviations)
        if not warping.is_trivial:
            of_values = self._warped_deviations(points)
            deviations = warping.gradient_deviations_back(given, warped, of_values, slopes, deviations)
        return gradients, deviations

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Any:
        """Return intervals that contain new values with probability ``coverage``, of shape (n, 2) or (n, k, 2).

        Quantiles over samples ``k`` of ``f_{-k}(x) +- |y_k - f_{-k}(x_k)|``, with fits ``f_{-k}`` without the sample.
        For samples that are exchangeable with the new ones, the coverage is at least ``2 coverage - 1``, whatever their
        distribution, and in practice about ``coverage`` (Barber, Candes, Ramdas, Tibshirani 2021). Up to 150 samples
        leave in five folds, and neurons are sampled without them (CV+). More samples leave one by one, in closed form,
        and the neurons stay (the jackknife+). The width and alpha are always chosen with all samples. Shallow networks
        with trained neurons are trained again without each of five folds (CV+). Deep ones are trained without each of
        five folds up to 150 samples, and with more without one fold, whose errors are put around the fit without it
        (split conformal). Their setting and the end of their training were chosen by the same errors, among few.
        Intervals of infinitely wide networks are ``f(x) +- q s(x)`` with the standard deviation ``s`` of the process
        and a quantile ``q`` of the errors at samples that are left out, in units of their standard deviations. Arrays
        on disk and of Dask are treated as by ``predict``.
        """
        if not (is_number(coverage) and 0 < coverage < 1):
            raise ValueError(f"`coverage` must be a number between 0 and 1, got {coverage!r}")
        return self._in_pieces(partial(self._predict_interval, coverage=float(coverage)), X, (2,))

    def _predict_interval(self, X: Any, coverage: float) -> Array:
        points = self._inputs(X)[1]
        intervals = self._checked_uncertainty().interval(points, coverage)
        ends = np.moveaxis(intervals.reshape(len(points), *self.fit_.network.output_shape, 2), -1, 0)
        return np.moveaxis(self.warping_.values_back(self.scaling_.values_back(ends)), 0, -1)

    def _checked_uncertainty(self) -> Uncertainty:
        if self.uncertainty_ is None:
            raise ValueError(
                f"standard deviations and intervals of trained networks need at least {MIN_ERRORS} samples with a "
                "value, got fewer"
            )
        return self.uncertainty_

    def predict_hessian(self, X: Any) -> Any:
        """Return the Hessians at the points, of shape (n, d, d) or (n, k, d, d).

        Arrays on disk and of Dask are treated as by ``predict``.
        """
        return self._in_pieces(self._predict_hessian, X, ("d", "d"))

    def _predict_hessian(self, X: Any) -> Array:
        given, points = self._inputs(X)
        hessians = self.scaling_.hessians_back(self.fit_.network.hessian(points))
        if self.warping_.is_trivial:
            return hessians
        warped, slopes = self._warped_values(points), self.scaling_.gradients_back(self.fit_.network.gradient(points))
        return np.asarray(self.warping_.derivatives_back(given, warped, slopes, hessians)[1])

    def function(self) -> PointFunction:
        """Return the fitted function for calls at one point or many, without checks: for optimisers and samplers.

        With ``f = model.function()``, ``f(x)`` is the value, ``f.gradient(x)`` the gradient, and
        ``f.value_and_gradient(x)`` both, in the units of the data.
        """
        check_is_fitted(self, "fit_")
        function = self.fit_.network.function(self.scaling_)
        return function if self.warping_.is_trivial else WarpedFunction(function, self.warping_)

    def draws(self, n: int, random_state: Any = None) -> Draws:
        """Return ``n`` plausible functions given the data: values and gradients of all of them at any points.

        Whatever is asked of the model can be asked of each draw: how much the answers differ is how sure the model is
        of the answer. At each point, draws have the mean and the standard deviation of ``predict(return_std=True)``,
        without noise if the model knows it. Infinitely wide networks know it, and their draws are those of the process
        given the data, times the factors by which standard deviations are calibrated. Draws of other networks are the
        network plus errors that vary from sample to sample, and with more than 150 samples coefficients of ridge
        regression in the Bayesian view: noise counts as an error of the function. All draws differ more and more beyond
        the reach of the samples.

        Parameters
        ----------
        n : int
        random_state : int, RandomState, Generator or None, default None

        Returns
        -------
        Draws
            ``value(X)`` has the shape (n, m) or (n, m, k) for ``m`` points and ``k`` outputs, ``gradient(X)`` the shape
            (n, m, d) or (n, m, k, d). ``draws[i]`` is one function.

        Examples
        --------
        >>> from nurf import KernelFeatureRegressor
        >>> X = np.linspace(0, 1, 6)[:, None]
        >>> model = KernelFeatureRegressor().fit(X, np.sin(5 * X[:, 0]))
        >>> draws = model.draws(100, random_state=0)
        >>> draws.value(X).shape, draws.gradient(X).shape, draws[3].value(X).shape
        ((100, 6), (100, 6, 1), (6,))
        """
        check_is_fitted(self, "fit_")
        if not is_whole(n):
            raise ValueError(f"`n` must be a whole number >= 1, got {n!r}")
        parts = self._checked_uncertainty().draws(int(n), as_generator(random_state))
        return Draws(self.fit_.network, parts, self.scaling_, int(n), warping=self.warping_)

    def _in_pieces(self, method: Callable[..., Any], X: Any, axes: tuple[Any, ...], return_std: bool = False) -> Any:
        """Return what a method predicts, of arrays of any kind; ``axes`` are those behind rows and outputs."""
        check_is_fitted(self, "fit_")
        lengths = (self.n_features_in_ if axis == "d" else axis for axis in axes)
        shape = (*self.fit_.network.output_shape, *lengths)
        method = partial(method, return_std=True) if return_std else method
        return in_pieces(method, X, self.n_features_in_, shape, return_std)

    def _inputs(self, X: Any) -> tuple[Array, Array]:
        """Return points in the units of the data, and in scaled units."""
        require_numbers(X=X)
        points = validate_data(self, X, reset=False, dtype=np.float64)
        if self.warping_.inputs is not None:
            require_positive("X", self.warping_.inputs.kinds, points, getattr(self, "feature_names_in_", None))
        return points, self.scaling_.inputs(self.warping_.points(points))


class ShallowRegressor(NetworkRegressor):
    """A regressor that is fitted as a shallow network."""

    fit_: ShallowFit
    network_: ShallowNetwork

    @property
    def alpha_(self) -> float:
        """The chosen regularisation."""
        check_is_fitted(self, "fit_")
        return self.fit_.alpha

    @property
    def hyperplanes_(self) -> Hyperplanes:
        """The hyperplanes of the fitted network, in unscaled inputs after their logarithms, if ``inputs`` has some."""
        check_is_fitted(self, "fit_")
        return self.fit_.network.in_units_of(self.scaling_).hyperplanes


@contextmanager
def unchanged_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Give the estimator its old attributes back if the block fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
