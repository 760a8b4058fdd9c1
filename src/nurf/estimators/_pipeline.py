"""Pipelines that transform gradients by the chain rule."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from nurf._types import Array
from nurf._validation import as_derivative, as_finite, as_finite_or_nan, in_shape
from nurf.data import Observations
from nurf.estimators._chain import Derivative, Slopes
from nurf.estimators._pipeline_draws import PipelineDraws, box_of
from nurf.estimators._report import Report
from nurf.estimators._saved import unchanged_on_error
from nurf.estimators._transformers import derivative_of, is_passthrough
from nurf.jets import Jet
from nurf.networks import PointFunction


class GradientPipeline(RegressorMixin, Pipeline):  # type: ignore[misc]
    """A pipeline of transformers and a regressor of this package, with derivatives by the chain rule.

    The transformers map inputs ``x`` to ``z = T(x)``, and the regressor is fitted to ``f`` as a function of ``z``,
    optionally after a transformation of the values. Gradients and Hessians are with respect to ``x``, in the units of
    the data, in ``fit`` as well as in ``predict_gradient`` and ``predict_hessian``. scikit-learn's ``Pipeline`` would
    pass ``gradients`` to the regressor unchanged, as derivatives with respect to ``z``, which is wrong.

    Derivatives of scalers, ``PCA``, ``TruncatedSVD``, functions of NumPy in a ``FunctionTransformer``, and of
    ``Pipeline``, ``ColumnTransformer`` and ``FeatureUnion`` of these are known. If a transformer has a method
    ``jacobian(X)``, which returns an array of shape (n, p, d), this method is used. Other transformers are
    differentiated by finite differences of ``transform``. A transformer that reduces the number of inputs, such as
    ``PCA``, keeps the derivatives along its directions. A transformer that increases the number of inputs gives
    directional derivatives (see ``fit`` of the regressors).

    Parameters
    ----------
    steps : list of (name, estimator)
        Transformers, and a regressor of this package at the end.
    target : transformer, "log" or None, default None
        Transformation of the values before the fit, which is inverted after predictions: a transformer with
        ``inverse_transform``, such as a ``PowerTransformer``, or "log" for the natural logarithm.
    memory, verbose
        See ``sklearn.pipeline.Pipeline``.

    Attributes
    ----------
    target_ : transformer or None
        The fitted transformer of the values.
    estimated_error_ : float or array of shape (k,)
        The estimated root mean square error at new points, in the units of the data. With a ``target``, it is the error
        of the regressor times the derivatives of the inverse transformation at the samples, to first order.
    data_box_ : array of shape (2, d)
        The smallest and the largest value of each input in the data.
    n_features_in_ : int
    feature_names_in_ : array of shape (d,)

    Notes
    -----
    The regressors scale inputs and values themselves, so that a scaler is not needed. ``pipeline[-1]`` is the fitted
    regressor, as a function of ``z``.

    Examples
    --------
    >>> from nurf import RandomFeatureRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1, 10, (200, 2))
    >>> y = X[:, 0] ** 2 / X[:, 1]
    >>> gradients = np.stack([2 * y / X[:, 0], -y / X[:, 1]], axis=1)
    >>> regressor = RandomFeatureRegressor(50, width=1, random_state=0)
    >>> steps = [("log", FunctionTransformer(np.log)), ("model", regressor)]
    >>> model = GradientPipeline(steps, target="log").fit(X, y, gradients=gradients)  # linear in logarithms
    >>> bool(np.allclose(model.predict_gradient(X), gradients, rtol=1e-3))
    True
    """

    steps: list[tuple[str, Any]]

    def __init__(self, steps: Any, *, target: Any = None, memory: Any = None, verbose: bool = False) -> None:
        super().__init__(steps, memory=memory, verbose=verbose)
        self.target = target

    # The pipeline uses the arguments of `fit` itself and does not pass them to its steps by name.
    get_metadata_routing = BaseEstimator.get_metadata_routing

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
        """Fit the transformers, and the regressor to transformed values and derivatives.

        The arguments are the arguments of the regressors, in the units of the data; ``sample_weight`` and
        ``derivative_weight`` are passed unchanged. ``gradients_at`` cannot be combined with a ``target`` that is not
        affine, because the values at these points are unknown. Transformers are copied before they are fitted, so that
        a failed fit does not change the pipeline.

        Returns
        -------
        self
        """
        if not hasattr(self.steps[-1][1], "predict_gradient"):
            raise TypeError(f"the last step must be a regressor of nurf, got {self.steps[-1][1]!r}")
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
        ).matched()
        first = [(name, step if is_passthrough(step) else clone(step)) for name, step in self.steps[:-1]]
        transformers = Pipeline(first or [("nothing", "passthrough")], memory=self.memory, verbose=self.verbose)
        with unchanged_on_error(self):  # transformers and regressor stay consistent
            Z = transformers.fit_transform(X, data.y)
            if first:
                self.steps = [*transformers.steps, self.steps[-1]]
            self.target_ = self._fitted_target(data.y)
            self.steps[-1][1].fit(**self._transformed(Z, data).arguments)
            self.estimated_error_ = self._error(self.steps[-1][1].estimated_error_, data.y)
            self.data_box_ = box_of(X)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the values at the points, of shape (n,) or (n, k), and optionally their standard deviations.

        With a ``target`` that is not affine, predictions ``u`` of the regressor are transformed back (the median rather
        than the mean), and standard deviations are multiplied by ``|dy / du|``, to first order.
        """
        Z = self._inputs(X)
        if not return_std:
            return self._values_back(self.steps[-1][1].predict(Z))
        values, deviations = self.steps[-1][1].predict(Z, return_std=True)
        values = self._values_back(values)
        if self.target_ is not None:
            slopes = np.einsum("nkk->nk", self._elementwise(values).jacobian)
            deviations = (np.abs(slopes) * _columns_of(deviations)).reshape(deviations.shape)
        return values, deviations

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Return intervals that contain new values with probability ``coverage``, of shape (n, 2) or (n, k, 2)."""
        intervals = self.steps[-1][1].predict_interval(self._inputs(X), coverage)
        ends = [self._values_back(intervals[..., side]) for side in (0, 1)]
        if self.target_ is not None:
            self._elementwise(ends[0])
        return np.sort(np.stack(ends, axis=-1), axis=-1)

    def predict_gradient(self, X: Any) -> Array:
        """Return the gradients with respect to the inputs of the pipeline, of shape (n, d) or (n, k, d)."""
        return self._derivatives(X, 1)[0]

    def predict_hessian(self, X: Any) -> Array:
        """Return the Hessians with respect to the inputs of the pipeline, of shape (n, d, d) or (n, k, d, d)."""
        hessians = self._derivatives(X, 2)[1]
        assert hessians is not None
        return hessians

    def draws(self, n: int, random_state: Any = None) -> PipelineDraws:
        """Return ``n`` plausible functions of the inputs of the pipeline, from draws of the regressor.

        Parameters
        ----------
        n : int
        random_state : int, RandomState, Generator or None, default None

        Returns
        -------
        PipelineDraws
            Draws with the methods of the ``Draws`` of a regressor.
        """
        check_is_fitted(self)
        return PipelineDraws(self.steps[-1][1].draws(n, random_state), self)

    def function(self) -> PointFunction:
        """Return the fitted function of the inputs of the pipeline, for one or many points.

        With ``f = model.function()``, ``f(x)`` is the value, ``f.gradient(x)`` the gradient, and
        ``f.value_and_gradient(x)`` both. The transformers check and copy points, so that calls are slower than calls of
        the function of a regressor.
        """
        check_is_fitted(self)
        return PipelineFunction(self, getattr(self, "feature_names_in_", None))

    def report(self) -> Report:
        """Return the report of the regressor, in units of the transformed inputs and values."""
        check_is_fitted(self)
        report: Report = self.steps[-1][1].report()
        return report

    def save(self, path: str | os.PathLike[str]) -> None:
        """Raise a ``TypeError``, because files cannot contain transformers of other packages."""
        raise TypeError(
            "pipelines cannot be saved: files contain no code, and hence no transformers of scikit-learn. Save "
            "`pipeline[-1]` and the parameters of the transformers, or pickle the pipeline"
        )

    def _error(self, error: Any, y: Any) -> Any:
        """Return an error of the transformed values in the units of the values."""
        if self.target_ is None:
            return error
        values = as_finite("y", y)
        slopes = derivative_of(self.target_, _columns_of(values)).inverted().jacobian
        errors = np.sqrt(np.mean(slopes**2 @ np.reshape(error, (-1, 1)) ** 2, axis=0)[:, 0])
        return errors if values.ndim > 1 else float(errors[0])

    def _derivatives(self, X: Any, order: int) -> tuple[Array, Array | None]:
        """Return gradients, and Hessians if ``order`` is 2."""
        Z, model = self._inputs(X), self.steps[-1][1]
        n, p, values = len(Z), np.shape(Z)[1], model.predict(Z)
        gradients = model.predict_gradient(Z).reshape(n, -1, p)
        hessians = model.predict_hessian(Z).reshape(n, -1, p, p) if order == 2 else None
        for _, step in reversed(self._trace(X, order)):
            gradients, hessians = step.after(gradients, hessians)
        if self.target_ is not None:
            at = _columns_of(self._values_back(values))
            gradients, hessians = derivative_of(self.target_, at, order).inverted().before(gradients, hessians)
        shape, d = values.shape, gradients.shape[-1]
        return gradients.reshape(*shape, d), None if hessians is None else hessians.reshape(*shape, d, d)

    def _inputs(self, X: Any) -> Any:
        """Return transformed points."""
        check_is_fitted(self)
        return self._mapped(X)

    def _mapped(self, X: Any) -> Any:
        for _, step in self.steps[:-1]:
            X = X if is_passthrough(step) else step.transform(X)
        return X

    def _trace(self, X: Any, order: int) -> list[tuple[str, Derivative]]:
        """Return the derivatives of all transformers, with their names."""
        found = []
        X = X if hasattr(X, "columns") else as_finite("X", X)
        for name, step in self.steps[:-1]:
            if not is_passthrough(step):
                found.append((name, derivative_of(step, X, order)))
                X = step.transform(X)
        return found

    def _transformed(self, Z: Any, data: Observations) -> Observations:
        """Return the data for the regressor, at transformed inputs ``Z``."""
        X, y, at, validation = data.X, data.y, data.gradients_at, data.validation
        if isinstance(validation, tuple) and len(validation) == 2:
            validation = self._mapped(validation[0]), self._values(validation[1])
        elif isinstance(validation, Jet):
            values = self._values(validation.y)
            validation = Jet(self._mapped(validation.X), values, sample_weight=validation.sample_weight)
        found = replace(data, X=Z, y=self._values(y), validation=validation)
        along = {"gradients": data.gradients, "directions": data.directions}
        if at is None:
            return replace(found, **self._pushed(X, y, **along, hessians=data.hessians))
        found = replace(found, **self._pushed(X, y, hessians=data.hessians))
        if self.target_ is not None and not derivative_of(self.target_, _columns_of(as_finite("y", y))).is_constant:
            raise ValueError("`gradients_at` needs a `target` that is affine: the values there are not known")
        outputs = np.shape(y)[1:]
        slopes = self._pushed(at, np.zeros((len(at), *outputs)), **along)
        return replace(found, **slopes, gradients_at=self._mapped(at))

    def _pushed(
        self, X: Any, y: Any, gradients: Any = None, directions: Any = None, hessians: Any = None
    ) -> dict[str, Any]:
        """Return derivatives of the transformed values with respect to the transformed inputs."""
        if gradients is None and hessians is None:
            return {}
        d, shape = np.shape(X)[1], np.shape(y)
        slopes = _slopes(gradients, directions, hessians, shape, d)
        order = 1 if hessians is None else 2
        if self.target_ is not None:
            slopes = slopes.of_values(derivative_of(self.target_, _columns_of(as_finite("y", y)), order))
        for name, step in self._trace(X, order):
            slopes = slopes.through(step, name)
        found: dict[str, Any] = {}
        if slopes.gradients is not None:
            found = {"gradients": slopes.gradients.reshape(*shape, -1), "directions": slopes.directions}
        if slopes.hessians is not None:
            found["hessians"] = slopes.hessians.reshape(*shape, *slopes.hessians.shape[2:])
        return found

    def _fitted_target(self, y: Any) -> Any:
        """Return the transformer of the values, fitted."""
        if self.target is None:
            return None
        target = (
            FunctionTransformer(np.log, np.exp, check_inverse=False)
            if isinstance(self.target, str)
            else clone(self.target)
        )
        if isinstance(self.target, str) and self.target != "log":
            raise ValueError(f"`target` must be a transformer, 'log' or None, got {self.target!r}")
        if not hasattr(target, "inverse_transform"):
            raise ValueError(f"`target` must have `inverse_transform`, which {self.target!r} does not have")
        values = _columns_of(as_finite("y", y))
        with np.errstate(invalid="ignore", divide="ignore"):
            shape = target.fit_transform(values).shape
        if shape != values.shape:
            raise ValueError(f"`target` must keep the shape of the values, {values.shape}, got {shape}")
        return target

    def _values(self, y: Any) -> Any:
        """Return transformed values."""
        if self.target_ is None:
            return y
        values = as_finite("y", y)
        with np.errstate(invalid="ignore", divide="ignore"):
            return as_finite("y` after `target", self.target_.transform(_columns_of(values))).reshape(values.shape)

    def _values_back(self, values: Array) -> Array:
        if self.target_ is None:
            return values
        return np.asarray(self.target_.inverse_transform(_columns_of(values)), float).reshape(values.shape)

    def _elementwise(self, values: Array) -> Derivative:
        """Return the derivatives of values with respect to transformed values; raise if outputs are mixed."""
        derivative = derivative_of(self.target_, _columns_of(values)).inverted()
        if not derivative.is_elementwise:
            raise ValueError(f"standard deviations and intervals do not go through {self.target!r}: it mixes outputs")
        return derivative


@dataclass(frozen=True, eq=False)
class PipelineFunction:
    """A fitted pipeline as a plain function of one point (d,) or many points (n, d).

    Parameters
    ----------
    pipeline : GradientPipeline
    names : array of shape (d,), optional
        The names of the inputs, if the transformers use names of columns.
    """

    pipeline: GradientPipeline
    names: Any = None

    def __call__(self, x: Any) -> Any:
        """Return the value at ``x``."""
        return self._at(x, self.pipeline.predict)

    def gradient(self, x: Any) -> Array:
        """Return the gradient at ``x``."""
        return np.asarray(self._at(x, self.pipeline.predict_gradient))

    def value_and_gradient(self, x: Any) -> tuple[Any, Array]:
        """Return the value and the gradient at ``x``."""
        return self(x), self.gradient(x)

    def _at(self, x: Any, predict: Callable[[Any], Any]) -> Any:
        points: Any = np.asarray(x, float)
        single, points = points.ndim == 1, np.atleast_2d(points)
        if self.names is not None:
            from pandas import DataFrame  # names come from data frames of pandas

            points = DataFrame(points, columns=self.names)
        found = predict(points)
        return found[0] if single else found


def _columns_of(values: Array) -> Array:
    return values.reshape(len(values), -1)


def _slopes(gradients: Any, directions: Any, hessians: Any, shape: tuple[int, ...], d: int) -> Slopes:
    """Return the checked derivatives of values of ``shape`` (n,) or (n, k) with respect to ``d`` inputs."""
    n, k = shape[0], int(np.prod(shape[1:]))
    hessians = as_derivative("hessians", hessians, (*shape, d, d), ("n", "k", "d", "d"))
    hessians = None if hessians is None else hessians.reshape(n, k, d, d)
    if directions is None:
        gradients = as_derivative("gradients", gradients, (*shape, d), ("n", "k", "d"))
        return Slopes(None if gradients is None else gradients.reshape(n, k, d), hessians)
    if hessians is not None:
        raise ValueError("pipelines support either `directions` or `hessians`, got both")
    V = as_finite("directions", directions)
    V = V.reshape(n, -1, d) if V.ndim == 2 and V.shape == (n, d) else V
    if V.ndim != 3 or (len(V), V.shape[2]) != (n, d):
        raise ValueError(f"`directions` must have shape (n, d) or (n, q, d) with (n, d) = {(n, d)}, got {V.shape}")
    expected = (*shape, V.shape[1])
    along = in_shape(as_finite_or_nan("gradients", gradients), expected)
    if along.shape != expected:
        raise ValueError(f"`gradients` must be a number for each value and direction, {expected}, got {along.shape}")
    return Slopes(along.reshape(n, k, -1), hessians, V)
