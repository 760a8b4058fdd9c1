"""The base of all regressors: from the data of a user to a jet, and from a fitted network to predictions."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nurf._scaling import Scaling
from nurf._threads import one_thread
from nurf._types import Array
from nurf._validation import as_floats, is_number, is_whole
from nurf._warping import UNWARPED, Warping, require_positive
from nurf.choosing import NO_LIMIT, POLICY, Choice, Clock, decide
from nurf.data import DerivativeCheck, Observations, in_pieces, require_numbers, split
from nurf.engines import MAX_ROWS, Conditions, Fit, ShallowFit, watch_attempts
from nurf.estimators._corrected import CorrectedDraws
from nurf.estimators._fidelities import NO_BASE, Base
from nurf.estimators._parameters import as_generator
from nurf.estimators._predictions import Predictions
from nurf.estimators._prepared import Prepared, Request, known_kinds
from nurf.estimators._report import Report, with_error
from nurf.estimators._saved import SavedEstimator, unchanged_on_error
from nurf.estimators._shape import CONDITIONS, ShapeParameters
from nurf.estimators._views import AS_GIVEN, View
from nurf.estimators._warped import tail_warnings, warpings_of
from nurf.jets import Jet
from nurf.networks import Hyperplanes, Network, PointFunction, ShallowNetwork
from nurf.solvers import MIN_ERRORS, Draws, Uncertainty


class NetworkRegressor(MultiOutputMixin, RegressorMixin, SavedEstimator):  # type: ignore[misc]
    """A regressor that fits a network in scaled units (``fit_``, ``scaling_``) and predicts in units of the data."""

    fit_: Fit
    scaling_: Scaling
    _view: View
    estimated_error_: float | Array
    uncertainty_: Uncertainty | None
    gradient_check_: DerivativeCheck | None
    target: Any = None
    inputs: Any = None
    verbose: int
    random_state: Any = None
    _goes_on: bool = False  # whether a fit to a sample can be continued with all blocks
    _takes_functionals: ClassVar[bool] = False
    _takes_all_inputs: ClassVar[bool] = False  # also where few directions of many inputs seem sufficient

    def __new__(cls, *_: Any, **parameters: Any) -> Self:
        """Return a new regressor; raise a ``TypeError`` for conditions on the shape if it takes none."""
        for name in CONDITIONS:
            if name in parameters and name not in cls._get_param_names():
                raise TypeError(
                    f"`{name}` is no parameter of {cls.__name__}: conditions on the shape are parameters of "
                    "KernelFeatureRegressor, RandomFeatureRegressor and Surrogate"
                )
        found: Self = super().__new__(cls)
        return found

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
        functionals: Any = None,
        validation: Any = None,
        base: Any = None,
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
            are matched by index; rows of arrays are matched by position.
        gradients_at : array of shape (m, d), optional
            Points of the gradients, if these differ from ``X``. ``gradients`` then has ``m`` rows.
        directions : array of shape (n, d) or (n, q, d), optional
            Directions of directional derivatives (Jacobian-vector products). ``gradients`` then has these derivatives,
            of shape (n,) or (n, q), or with several outputs (n, k) or (n, k, q).
        hessians : array of shape (n, d, d) or (n, k, d, d), optional
            Hessians of the targets. Set unknown entries to NaN.
        sample_weight : array of shape (n,), optional
            Sample weights, for instance inverse variances of the noise. Only their ratios matter.
        derivative_weight : array of shape (n,) or (m,), optional
            Weights of the derivatives of each sample, for instance if their noise varies. Default is ``sample_weight``.
            Weights are in the unit of ``sample_weight``, and factors of ``gradient_weight`` and ``hessian_weight``.
        functionals : sequence of Rows, optional
            Linear functionals of the targets with known values, such as equations that they solve, fluxes and means:
            ``[(laplacian() + 0.5 * partial("x1")).equals(f, at=points)]``. See ``nurf.functionals``. Then ``y`` may be
            NaN where values are unknown. Sampled and infinitely wide networks take them.
        validation : (X, y), Jet or float, optional
            Samples that are not fitted, and at which the error is estimated. A number between 0 and 1 splits off this
            share of the samples. By default the error is estimated by leaving out samples in turn.
        base : fitted model or callables (value, gradient, hessian), optional
            A cheaper model of the same function, such as one that was fitted to many runs of a coarse simulation. Then
            the network is fitted to the difference ``f - rho b``, with a factor ``rho`` for each output, if that has
            a smaller estimated error than a fit without the base. See ``docs/fidelities.md``.

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
            functionals=functionals,
            validation=validation,
        )
        return self._fit_data(data, self._fit, base)

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
        functionals: Any = None,
    ) -> Self:
        """Fit the chosen network to more samples, in a small part of the time of ``fit``.

        The units and the settings of the last ``fit`` are kept. The scales and the noise of kernels change little, and
        not at all for many samples. Neurons of sampled networks are sampled anew, and trained networks are trained
        further. The estimated error and the uncertainty are computed for the new fit. If the number of samples has more
        than doubled since the last ``fit``, there is a warning, because another choice may give a better model.

        Parameters
        ----------
        X, y, gradients, gradients_at, directions, hessians, sample_weight, derivative_weight, functionals
            All samples, old and new, as for ``fit``, with the same kinds of derivatives.

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
            functionals=functionals,
        )
        return self._fit_data(data, self._updated, reset=False)

    def _updated(self, jet: Jet, *_: Any) -> list[Warning]:
        """Fit the earlier choice to checked data, and return warnings for the user."""
        before = self.fit_.origin
        if before is None:
            raise ValueError(
                f"`update` needs a model of `fit` with at most {MAX_ROWS:,} rows: continue with `partial_fit`"
            )
        if jet.y.shape[1:] != self.fit_.network.output_shape:
            expected, got = self.fit_.network.output_shape, jet.y.shape[1:]
            raise ValueError(f"`y` must have outputs of shape {expected}, as in the last fit, got {got}")
        if known_kinds(jet) != before.known:
            had, has = (" and ".join(kinds) or "no derivatives" for kinds in (before.known, known_kinds(jet)))
            raise ValueError(f"`update` needs the derivatives that the last fit had, {had}, got {has}")
        request = Request(jet, jet, None, self._generator(), NO_LIMIT, self.scaling_)
        prepared = self._prepared(self._view, request)
        engine = next(engine for engine in prepared.engines if engine.data == before.data)
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

    def _fit_data(
        self, data: Observations, fit: Callable[[Jet, Any, Base], list[Warning]], base: Any = None, reset: bool = True
    ) -> Self:
        """Check the data and call ``fit`` with a jet. Without ``reset``, the inputs must agree with the last fit."""
        with unchanged_on_error(self), one_thread():
            data = self._checked(data, reset)
            jet = data.jet()
            if base is None:
                checked = NO_BASE
            else:
                self._require_plain(jet)
                names = getattr(self, "feature_names_in_", None)
                checked = Base.of(base, names, jet.n_features, jet.y.shape[1:])
            found = fit(jet, data.validation, checked)
        for warning in found:
            warnings.warn(warning, stacklevel=3)
        return self

    def _require_plain(self, jet: Jet) -> None:
        """Raise an error if the parameters or the data do not permit a difference to a base."""
        if not ShapeParameters.of(self, jet.n_features, jet.y.shape[1:]).is_free:
            raise ValueError("conditions on the shape and a `base` do not go together, got both")
        if not (self.target is None or (isinstance(self.target, str) and self.target == "auto")):
            raise ValueError(f"`target` must be None or 'auto' with a `base`, got {self.target!r}")
        if jet.functionals is not None:
            raise ValueError("`base` must be None with `functionals`: subtract the base from all values yourself")

    def _checked(self, data: Observations, reset: bool = True) -> Observations:
        """Return the data with rows and columns that match, and with arrays of numbers as ``X`` and ``y``."""
        require_numbers(X=data.X, y=data.y)
        data, unknown = data.matched(), None
        if (
            data.functionals is not None and data.y is not None
        ):  # values may be known at few points, or at none of the samples
            y = as_floats("y", data.y)
            unknown = np.isnan(y)
            data = replace(data, y=np.where(unknown, 0.0, y))
        X, y = validate_data(self, data.X, data.y, reset=reset, multi_output=True, y_numeric=True, dtype=np.float64)
        return replace(data, X=X, y=y if unknown is None else np.where(unknown, np.nan, y))

    def _fit(self, jet: Jet, validation: Any, base: Base) -> list[Warning]:
        """Fit to checked data, set the attributes at the very end, and return warnings for the user."""
        rng, progress = self._generator(), watch_attempts(self._verbosity())
        given, (jet, held_out) = jet, split(jet, validation, rng)
        views, clock = self._views(jet, held_out, base), self._clock(Clock())
        request = Request(given, jet, held_out, rng, clock)
        each_view = [self._prepared(view, request) for view in views]
        choice = decide([engine for each in each_view for engine in each.engines], POLICY, progress, clock)
        prepared = next(each for each in each_view if choice.winner.engine in each.engines)
        found = self._finished(prepared, prepared.fit(choice))
        if getattr(self, "loss", "squared") == "squared":  # with Huber's loss, gross errors are expected
            found += tail_warnings(choice.winner.evidence, jet.with_values().y, self.target)
        self._keep_errors(choice)
        if progress is not None:
            progress.done(self.fit_)
        return [*prepared.warnings, *found]

    def _generator(self) -> np.random.Generator:
        """Return the random generator of a fit."""
        return as_generator(self.random_state)

    def _views(self, jet: Jet, held_out: Jet | None, base: Base) -> list[View]:
        """Return the views that take part in the race: with and without a base, with and without transformations."""
        bases = [NO_BASE] if base.model is None else [base.fitted(jet), NO_BASE]
        y_scale, found = Scaling.fit(jet).y_scale, list[View]()
        for each in bases:
            rest, held_back = each.residual(jet), None if held_out is None else each.residual(held_out)
            views = [View(each, warping, y_scale) for warping in self._warpings(rest, held_back)]
            found += [AS_GIVEN if view.is_trivial else view for view in views]
        return found

    def _warpings(self, jet: Jet, held_out: Jet | None) -> list[Warping]:
        """Return the transformations for ``target`` and ``inputs``; "auto" may give several."""
        if jet.functionals is not None:
            self._require_unwarped("`functionals`, which would not be linear", "auto")
            return [UNWARPED]
        names = getattr(self, "feature_names_in_", None)
        found = warpings_of(self.target, self.inputs, jet, held_out, names)
        shape = ShapeParameters.of(self, jet.n_features, jet.y.shape[1:])
        return [warping for warping in found if shape.allows(warping)] or found

    def _require_unwarped(self, purpose: str, *harmless: str, otherwise: str = "") -> None:
        """Raise an error for transformations, which may be None or ``harmless``, and for conditions on the shape."""
        if any(getattr(self, name, None) is not None for name in CONDITIONS):
            raise ValueError(f"conditions on the shape must be None for {purpose}{otherwise}")
        if not all(
            given is None or (isinstance(given, str) and given in harmless) for given in (self.target, self.inputs)
        ):
            raise ValueError(
                f"`target` and `inputs` must be None for {purpose}, got {self.target!r} and {self.inputs!r}: "
                f"transform the rows yourself{otherwise}"
            )

    def _prepared(self, view: View, request: Request) -> Prepared:
        """Return the engines for a view of the data."""
        jet = request.jet
        if jet.functionals is not None and not self._takes_functionals:
            raise ValueError(
                f"`functionals` need RandomFeatureRegressor, KernelFeatureRegressor or Surrogate, got them for "
                f"{type(self).__name__}, whose weights are trained"
            )
        if view.warping.outputs is not None and getattr(self, "loss", "squared") == "huber":
            raise ValueError(
                f"`loss` must be 'squared' with a `target`, got 'huber' and the {view.warping}: values without "
                "gross errors are not known in the units of the data"
            )
        request = request.seen(view)
        prepared = self._prepare(request)
        shape = ShapeParameters.of(self, jet.n_features, jet.y.shape[1:])
        if not shape.is_free:
            prepared = self._shaped(prepared, shape, view.warping)
        return prepared.seen(view, request.held_out)

    def _shaped(self, prepared: Prepared, shape: ShapeParameters, warping: Warping) -> Prepared:
        """Return engines whose fits meet conditions on the shape."""
        if not shape.allows(warping):
            raise ValueError(
                f"`convex` needs values and inputs without a transformation, got the {warping}: set `target` and "
                "`inputs` to None there"
            )
        loss = getattr(self, "loss", "squared")
        if loss != "squared":
            raise ValueError(f"`loss` must be 'squared' with conditions on the shape, got {loss!r}")
        conditions = shape.conditions(warping, prepared.scaling, prepared.scaled)
        engines = tuple(self._with_conditions(each, conditions, prepared.scaled) for each in prepared.engines)
        return replace(prepared, engines=engines)

    def _with_conditions(self, engine: Any, conditions: Conditions, scaled: Jet) -> Any:
        """Return an engine whose fit meets conditions; only regressors with parameters for them have such."""
        raise NotImplementedError

    def _clock(self, clock: Clock) -> Clock:
        """Return the clock of a fit: the given clock, or an earlier deadline if the estimator has a budget."""
        return clock

    def _keep_errors(self, choice: Choice) -> None:
        """Store the errors in all views of the data, in units of the standard deviation of the values."""
        self._view_errors = tuple((transform, choice.optimism * error) for transform, error in choice.errors.items())

    def _finished(self, prepared: Prepared, fit: Any) -> list[Warning]:
        """Set the attributes of a fit with its view of the data, and return warnings for the user."""
        self._view = prepared.view
        found = self._finish(prepared, fit)
        if self._shape.is_free:
            return found
        n = int(np.count_nonzero(prepared.scaled.has_value))
        return found + self._shape.warnings(self._names, fit, n)

    @abstractmethod
    def _prepare(self, request: Request) -> Prepared:
        """Return the engines for the data and the parameters, until the deadline."""

    @abstractmethod
    def _finish(self, prepared: Prepared, fit: Any) -> list[Warning]:
        """Set the attributes of a fit, and return warnings for the user."""

    @property
    @abstractmethod
    def _chosen(self) -> str:
        """The fitted network in a few words."""

    def _with_units(self, report: Report) -> Report:
        """Return a report that starts with what was fitted, if there was a choice."""
        chosen, errors = str(self._view), dict(vars(self).get("_view_errors", ()))
        others = [f"{errors[label]:.2g} with {label or 'the data as they are'}" for label in errors if label != chosen]
        text = (chosen or "the data as they are") + (f"; estimated error {' and '.join(others)}" if others else "")
        report = replace(report, lines=(("fitted to", text), *report.lines)) if chosen or others else report
        if self._shape.is_free:
            return report
        return replace(report, lines=(self._shape.described(self._names, self.fit_.shape), *report.lines))

    @property
    def _names(self) -> Sequence[str]:
        """The names of the inputs."""
        return getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])

    @abstractmethod
    def report(self) -> Report:
        """Return the choice and its reasons: text in a terminal, a table in a notebook."""

    def _repr_html_inner(self) -> str:
        return self._with_error(super()._repr_html_inner())

    def _repr_mimebundle_(self, **parameters: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**parameters)
        return {kind: self._with_error(text) if kind == "text/html" else text for kind, text in bundle.items()}

    def _with_error(self, html: str) -> str:
        """Return the HTML of a notebook with the estimated error of a fit below."""
        return with_error(html, self.estimated_error_, self.y_scale_) if hasattr(self, "fit_") else html

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

    def _with_equations(self, fit: Any, uncertainty: Uncertainty, scaled: Jet) -> Any:
        """Return a fit whose estimated error counts the standard deviations of values at the points of functionals.

        Errors at left-out values alone would tell nothing of the inside of a region with values at its boundary.
        """
        if scaled.functionals is None or np.count_nonzero(scaled.judges) < MIN_ERRORS:
            return fit
        n, points = int(np.count_nonzero(scaled.has_value)), scaled.X[scaled.has_functional]
        squares = uncertainty.value_std(points) ** 2
        total = n * np.nan_to_num(fit.output_errors) ** 2 if n >= MIN_ERRORS else 0.0
        counted = len(points) + (n if n >= MIN_ERRORS else 0)
        return replace(fit, output_errors=np.sqrt((total + squares.sum(axis=0)) / counted))

    @property
    def warping_(self) -> Warping:
        """The transformations of inputs and outputs, before ``scaling_``."""
        return self._view.warping

    @property
    def _shape(self) -> ShapeParameters:
        """The conditions on the shape of a fitted model."""
        return ShapeParameters.of(self, self.n_features_in_, self.fit_.network.output_shape)

    @property
    def base_(self) -> Any:
        """The base of the fit as it was given, or None: there was none, or a fit without it was better."""
        check_is_fitted(self, "fit_")
        return self._view.base.given

    @property
    def base_factor_(self) -> Any:
        """The factor ``rho`` of the base, a number or an array of shape (k,); zero without a base."""
        check_is_fitted(self, "fit_")
        factor = self._view.base.factor
        return factor if np.ndim(factor) else float(factor)

    @property
    def y_scale_(self) -> Array:
        """The standard deviation of the values, in the units of the data, of shape () or (k,)."""
        return self.scaling_.y_scale if self._view.y_scale is None else self._view.y_scale

    @cached_property
    def network_(self) -> Network:
        """The fitted network, as a function of unscaled inputs, computed from ``fit_`` when it is first used."""
        check_is_fitted(self, "fit_")
        return self._in_units(self.fit_.network)

    def _in_units(self, network: Network) -> Network:
        """Return a network of scaled units as a function in the units of the data."""
        return self._predictions.in_units(network)

    @property
    def _predictions(self) -> Predictions:
        """The fitted network in the units of the data."""
        check_is_fitted(self, "fit_")
        bounds = self._shape.ends(self.fit_.network.output_shape)
        return Predictions(self.fit_.network, self.scaling_, self._view, bounds, self.uncertainty_)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the values at the points, of shape (n,) or (n, k).

        With ``return_std``, the standard deviations of new measurements are returned as well, of the same shape, noise
        included. For sampled networks with more than 150 samples they follow from ridge regression in the Bayesian
        view; with fewer samples, and for trained networks, from fits without each fold. For infinitely wide networks
        they follow from the process, calibrated with left-out samples.

        Arrays on disk are read in blocks. Dask arrays give Dask arrays, which are computed on demand.
        """
        return self._in_pieces("values_and_std" if return_std else "values", X, ())

    def predict_gradient(self, X: Any, return_std: bool = False) -> Any:
        """Return the gradients at the points, of shape (n, d) or (n, k, d), and optionally their standard deviations.

        Standard deviations are calibrated with the gradients of left-out samples. Without given gradients they are a
        guess, and a warning says so. Arrays on disk and Dask arrays are treated as by ``predict``.
        """
        return self._in_pieces("gradients_and_std" if return_std else "gradients", X, ("d",))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Any:
        """Return intervals that contain new values with probability ``coverage``, of shape (n, 2) or (n, k, 2).

        Quantiles over samples ``k`` of ``f_{-k}(x) +- |y_k - f_{-k}(x_k)|``, with fits ``f_{-k}`` without the sample.
        For samples that are exchangeable with the new points, the coverage is at least ``2 coverage - 1`` for any
        distribution, and about ``coverage`` in practice (Barber, Candes, Ramdas, Tibshirani 2021).

        The fits ``f_{-k}`` depend on the network. Sampled networks: up to 150 samples, fits without each of five folds,
        neurons included (CV+); with more samples, leave-one-out in closed form with fixed neurons (the jackknife+). The
        width and alpha are always chosen with all samples. Sparse networks: training without each of five folds (CV+).
        Deep networks: training without each of five folds up to 150 samples (CV+); with more samples without one fold,
        whose errors surround the fit without it (split conformal). The setting and the length of the training were
        chosen by the same errors, among few.

        Intervals of infinitely wide networks are ``f(x) +- q s(x)``, with the standard deviation ``s`` of the process
        and a quantile ``q`` of left-out errors in units of their standard deviations. Arrays on disk and Dask arrays
        are treated as by ``predict``.
        """
        if not (is_number(coverage) and 0 < coverage < 1):
            raise ValueError(f"`coverage` must be a number between 0 and 1, got {coverage!r}")
        return self._in_pieces("intervals", X, (2,), coverage=float(coverage))

    def predict_hessian(self, X: Any) -> Any:
        """Return the Hessians at the points, of shape (n, d, d) or (n, k, d, d).

        Arrays on disk and Dask arrays are treated as by ``predict``.
        """
        return self._in_pieces("hessians", X, ("d", "d"))

    def function(self) -> PointFunction:
        """Return the fitted function for one or many points, without checks, for optimisers and samplers.

        With ``f = model.function()``, ``f(x)`` is the value, ``f.gradient(x)`` the gradient, and
        ``f.value_and_gradient(x)`` both, in the units of the data.
        """
        return self._predictions.function()

    def draws(self, n: int, random_state: Any = None) -> Draws | CorrectedDraws:
        """Return ``n`` plausible functions given the data, with values and gradients at any points.

        Any question about the model can be asked of each draw; the answers differ as much as the model is uncertain. At
        each point, draws have the mean and the standard deviation of ``predict(return_std=True)``. Infinitely wide
        networks exclude the noise: their draws are draws of the process given the data, times the factors that
        calibrate standard deviations. Draws of other networks are the network plus errors that vary from sample to
        sample; with more than 150 samples, coefficients are drawn by ridge regression in the Bayesian view, and noise
        counts as an error of the function. The spread of all draws grows far from the samples.

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
        return self._predictions.draws(int(n), as_generator(random_state))

    def _in_pieces(self, what: str, X: Any, axes: tuple[Any, ...], **options: Any) -> Any:
        """Return predictions (``Predictions``) for any kind of array; ``axes`` follow rows and outputs."""
        predictions = self._predictions
        lengths = (self.n_features_in_ if axis == "d" else axis for axis in axes)
        shape = (*self.fit_.network.output_shape, *lengths)
        method = partial(self._predicted, partial(getattr(predictions, what), **options))
        return in_pieces(method, X, self.n_features_in_, shape, what.endswith("_and_std"))

    def _predicted(self, method: Callable[[Array], Any], X: Any) -> Any:
        """Return the predictions of a method for checked points."""
        require_numbers(X=X)
        points = validate_data(self, X, reset=False, dtype=np.float64)
        if self.warping_.inputs is not None:
            require_positive("X", self.warping_.inputs.kinds, points, getattr(self, "feature_names_in_", None))
        return method(points)


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
        """The hyperplanes of the fitted network, in unscaled inputs (logarithms, if ``inputs`` has some)."""
        check_is_fitted(self, "fit_")
        return self.fit_.network.in_units_of(self.scaling_).hyperplanes
