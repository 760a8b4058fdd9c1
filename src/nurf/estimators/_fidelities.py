"""Two fidelities: fits that correct a cheaper model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from nurf._scaling import Scaling
from nurf._types import Array, Index
from nurf._validation import in_shape
from nurf.engines import factors_of
from nurf.estimators._report import SHOWN
from nurf.jets import Jet, unchecked
from nurf.networks import PointFunction


@dataclass(frozen=True, eq=False)
class Callables:
    """Functions of points (m, d) as a model: values, gradients and Hessians."""

    functions: tuple[Callable[[Array], Any], ...]

    def predict(self, X: Array) -> Any:
        """Return the values."""
        return self.functions[0](X)

    def predict_gradient(self, X: Array) -> Any:
        """Return the gradients."""
        return self._function(1, "gradients")(X)

    def predict_hessian(self, X: Array) -> Any:
        """Return the Hessians."""
        return self._function(2, "Hessians")(X)

    def _function(self, order: int, kind: str) -> Callable[[Array], Any]:
        if len(self.functions) <= order:
            raise ValueError(
                f"`base` must be (value, gradient, hessian) up to the {kind} that are asked for, got "
                f"{len(self.functions)} function{'s' * (len(self.functions) > 1)}"
            )
        return self.functions[order]


@dataclass(frozen=True, eq=False)
class Base:
    """A cheaper model ``b`` and its factor: a fit is one of ``f - rho b``.

    Errors of the fit at its samples hold the errors of the base there. Where the base is less certain than at any of
    these, with standard deviations ``s(x) > max_k s(x_k)``, the variance ``rho^2 (s(x)^2 - max_k s(x_k)^2)`` is added.

    Parameters
    ----------
    model : object
        Has ``predict`` and ``predict_gradient``; None for no base, whose factor is zero.
    output_shape : () or (k,)
    order : array of shape (d,), optional
        The places of the inputs of the base among the inputs of the fit, if they have names.
    factor : array of shape () or (k,)
        ``rho``.
    known_std : array of shape () or (k,)
        ``max_k s(x_k)``.
    optimism : array of shape () or (k,)
        The factor by which errors are larger because ``rho`` was estimated from the same samples.
    half : array of shape (d,), optional
        Half the ranges of the inputs.
    """

    model: Any
    output_shape: tuple[int, ...] = ()
    order: Index | None = None
    factor: Array | float = 0.0
    known_std: Array | float = 0.0
    optimism: Array | float = 1.0
    half: Array | None = None

    @classmethod
    def of(cls, given: Any, names: Any, d: int, output_shape: tuple[int, ...]) -> Base:
        """Return the base for an argument of ``fit``, with the factor one."""
        if callable(given):
            given = (given,)
        if isinstance(given, Sequence) and not hasattr(given, "predict"):
            if not (0 < len(given) <= 3 and all(map(callable, given))):
                raise ValueError(
                    f"`base` must be a fitted model or functions (value, gradient, hessian), got {given!r}"
                )
            return cls(Callables(tuple(given)), output_shape, factor=np.ones(output_shape))
        if not (hasattr(given, "predict") and hasattr(given, "predict_gradient")):
            raise TypeError(
                "`base` must be a fitted model with `predict` and `predict_gradient`, or functions (value, gradient), "
                f"got {type(given).__name__}"
            )
        check_is_fitted(given)
        if getattr(given, "n_features_in_", d) != d:
            raise ValueError(f"`base` must have {d} inputs, as `X` has, got one of {given.n_features_in_}")
        own = getattr(given, "feature_names_in_", None)
        order = None
        if own is not None and names is not None:
            if sorted(map(str, own)) != sorted(map(str, names)):
                raise ValueError(f"`base` must have the inputs {list(names)}, as `X` has, got {list(own)}")
            order = np.array([list(names).index(name) for name in own])
        return cls(given, output_shape, order, np.ones(output_shape))

    def value(self, X: Array) -> Any:
        """Return ``rho b`` at the points, of shape (n,) or (n, k); zero without a base."""
        return 0.0 if self.model is None else self.factor * self._values(X)

    def gradient(self, X: Array) -> Any:
        """Return the gradients of ``rho b`` at the points, of shape (n, d) or (n, k, d)."""
        return 0.0 if self.model is None else np.expand_dims(self.factor, -1) * self._gradients(X)

    def hessian(self, X: Array) -> Any:
        """Return the Hessians of ``rho b`` at the points, of shape (n, d, d) or (n, k, d, d)."""
        return 0.0 if self.model is None else np.expand_dims(self.factor, (-2, -1)) * self._hessians(X)

    def std(self, X: Array, deviations: Array) -> Array:
        """Return standard deviations of values, (n,) or (n, k), from deviations of the correction."""
        return np.asarray(np.hypot(self.optimism * deviations, self.further_std(X)))

    def gradient_std(self, X: Array, deviations: Array) -> Array:
        """Return standard deviations of gradients, (n, d) or (n, k, d), from deviations of the correction."""
        scaled = np.expand_dims(self.optimism, -1) * deviations
        return np.asarray(np.hypot(scaled, self.further_gradient_std(X)))

    def interval(self, X: Array, values: Array, intervals: Array, coverage: float) -> Array:
        """Return intervals (..., 2) around values of the fit, from intervals of the correction around its values."""
        if self.model is None:
            return intervals
        further = norm.ppf((1 + coverage) / 2) * self.further_std(X)
        low, high = self.optimism * (values - intervals[..., 0]), self.optimism * (intervals[..., 1] - values)
        center = values + self.value(X)
        return np.stack([center - np.hypot(low, further), center + np.hypot(high, further)], axis=-1)

    def further_std(self, X: Array) -> Any:
        """Return standard deviations at the points that the base adds to values, of shape (n,) or (n, k)."""
        if not self._knows_std:
            return 0.0
        return np.abs(self.factor) * np.sqrt(np.maximum(self._std(X) ** 2 - np.square(self.known_std), 0.0))

    def further_gradient_std(self, X: Array) -> Any:
        """Return standard deviations at the points that the base adds to gradients, of shape (n, d) or (n, k, d)."""
        if not self._knows_std:
            return 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of guessed deviations: the fit warns of its own
            deviations = self._asked("predict_gradient", X, return_std=True)[1]
        deviations = self.slopes_of(in_shape(np.asarray(deviations, float), (len(X), *self.output_shape, X.shape[1])))
        return np.expand_dims(np.abs(self.factor), -1) * self.share(X)[..., None] * deviations

    def share(self, X: Array) -> Array:
        """Return the root of the share of the base's variance that is added, of shape (n,) or (n, k)."""
        deviations = self._std(X)
        ratios = np.divide(self.known_std, deviations, out=np.ones_like(deviations), where=deviations > 0)
        return np.asarray(np.sqrt(np.maximum(1 - ratios**2, 0.0)))

    def jet(self, jet: Jet) -> Jet:
        """Return the values and derivatives of ``rho b`` that are known in a jet, at its points."""
        gradients = self.gradient(jet.X) if "gradients" in jet.known else None
        hessians = self.hessian(jet.X) if "hessians" in jet.known else None
        found, zeros = unchecked(jet.X, self.value(jet.X), gradients, hessians), np.zeros(jet.y[:1].size)
        return jet.times(zeros) - found.times(zeros - 1)

    def residual(self, jet: Jet) -> Jet:
        """Return the jet of ``f - rho b`` for a jet of ``f``."""
        return jet if self.model is None else jet - self.jet(jet)

    def fitted(self, jet: Jet) -> Base:
        """Return the base with the factor that the data of ``f`` give."""
        found = factors_of(jet, self.jet(jet))
        valued = jet.with_positive_weight().with_values()
        half = Scaling.fit(jet).x_scale / np.sqrt(jet.n_features)
        known = np.max(self._std(valued.X), axis=0) if self._knows_std else 0.0
        factor, optimism = (each.reshape(self.output_shape) for each in (found.factors, found.optimism))
        return replace(self, factor=factor, known_std=known, optimism=optimism, half=half)

    def function(self) -> BaseFunction:
        """Return ``rho b`` as a plain function."""
        return BaseFunction(self, self.model.function() if hasattr(self.model, "function") else None)

    def draws(self, n: int, rng: np.random.Generator) -> Any:
        """Return draws of ``b``, or None if it does not say how sure it is."""
        return self.model.draws(n, rng) if self._knows_std and hasattr(self.model, "draws") else None

    def __str__(self) -> str:
        """Return the base in words; empty if there is none."""
        if self.model is None:
            return ""
        factors = ", ".join(f"{factor:.3g}" for factor in np.ravel(self.factor)[:SHOWN])
        return f"values minus {factors} times the base"

    @property
    def given(self) -> Any:
        """The base as it was given to ``fit``, or None."""
        return self.model.functions if type(self.model) is Callables else self.model

    def in_order(self, X: Array) -> Array:
        """Return points with the inputs in the order of the base."""
        return X if self.order is None else X[..., self.order]

    def slopes_of(self, gradients: Array) -> Array:
        """Return derivatives in the order of the inputs of the fit, on the last axis, for the order of the base."""
        return gradients if self.order is None else gradients[..., np.argsort(self.order)]

    @property
    def _knows_std(self) -> bool:
        """Whether the base says how sure it is."""
        known = hasattr(self.model, "predict_interval")
        return known and bool(np.all(np.isfinite(np.ravel(self.model.estimated_error_))))

    def _values(self, X: Array) -> Array:
        return self._shaped("values", self._asked("predict", X), (len(X), *self.output_shape))

    def _gradients(self, X: Array) -> Array:
        found = self._asked("predict_gradient", X)
        return self.slopes_of(self._shaped("gradients", found, (len(X), *self.output_shape, X.shape[1])))

    def _hessians(self, X: Array) -> Array:
        found = self._asked("predict_hessian", X)
        found = self._shaped("Hessians", found, (len(X), *self.output_shape, X.shape[1], X.shape[1]))
        return np.swapaxes(self.slopes_of(np.swapaxes(self.slopes_of(found), -1, -2)), -1, -2)

    def _std(self, X: Array) -> Array:
        return np.asarray(self._asked("predict", X, return_std=True)[1], float).reshape(len(X), *self.output_shape)

    def _asked(self, method: str, X: Array, **options: Any) -> Any:
        """Return predictions of the model by one of its methods, at points with the names of its inputs."""
        points: Any = self.in_order(X)
        names = getattr(self.model, "feature_names_in_", None)
        with warnings.catch_warnings():
            if names is not None:
                try:
                    from pandas import DataFrame

                    points = DataFrame(points, columns=names)
                except ImportError:
                    warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return getattr(self.model, method)(points, **options)

    def _shaped(self, what: str, found: Any, shape: tuple[int, ...]) -> Array:
        array = in_shape(np.asarray(found, float), shape)
        if array.shape != shape:
            raise ValueError(f"{what} of `base` must have shape {shape}, as those of the data have, got {array.shape}")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{what} of `base` must be finite at all points, got NaN or infinity")
        return array


@dataclass(frozen=True, eq=False)
class BaseFunction:
    """``rho b`` as a plain function of one point (d,) or many points (n, d), not checked.

    Parameters
    ----------
    base : Base
    inner : PointFunction or None
        ``b``, with the inputs in its own order; None if the model has no plain function.
    """

    base: Base
    inner: PointFunction | None

    def __call__(self, x: Any) -> Any:
        """Return the value at ``x``."""
        if self.inner is None:
            return self._at(self.base.value, x)
        return self.base.factor * self.inner(self.base.in_order(np.asarray(x, float)))

    def gradient(self, x: Any) -> Array:
        """Return the gradient at ``x``."""
        if self.inner is None:
            return np.asarray(self._at(self.base.gradient, x))
        slopes = self.inner.gradient(self.base.in_order(np.asarray(x, float)))
        return np.asarray(np.expand_dims(self.base.factor, -1) * self.base.slopes_of(slopes))

    def _at(self, evaluate: Callable[[Array], Any], x: Any) -> Any:
        points = np.asarray(x, float)
        found = evaluate(np.atleast_2d(points))
        return found if points.ndim == 2 or not np.ndim(found) else found[0]  # a number without a base


NO_BASE = Base(None)
