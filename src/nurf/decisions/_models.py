"""Models with draws: regressors, pipelines, and both as functions of some of their inputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from nurf._types import Array, Index
from nurf._validation import is_number
from nurf.decisions._inputs import data_box, input_names
from nurf.estimators import GradientPipeline

Question = TypeVar("Question", bound=Callable[..., Any])
ROOM = 0.1  # share of the width of the data by which fixed values may exceed the data, as with ten samples
SAME = 1e-6  # largest relative difference of points after transformers and their inverses


def of_any_model(question: Question) -> Question:
    """Extend a function of a model and its inputs to pipelines, and to inputs that are fixed by numbers.

    The function itself gets a model with draws, which depends on the other inputs only.
    """
    form = signature(question)
    _, inputs = list(form.parameters)[:2]

    @wraps(question)
    def asked(*arguments: Any, **options: Any) -> Any:
        call = form.bind(*arguments, **options)
        model = with_draws(call.arguments["model"])
        call.arguments["model"], call.arguments[inputs] = without_numbers(model, call.arguments.get(inputs), inputs)
        return question(*call.args, **call.kwargs)

    return asked  # type: ignore[return-value]


def with_draws(model: Any) -> Any:
    """Return a fitted model with draws: the given model, the best model of a search, or a pipeline with gradients."""
    model = getattr(model, "best_estimator_", model)
    if hasattr(model, "draws"):
        check_is_fitted(model)
        return model
    if isinstance(model, Pipeline) and hasattr(model.steps[-1][1], "draws"):
        check_is_fitted(model)
        return _with_gradients(model)
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    only = ", which has `predict` only: fit a nurf.Surrogate to its samples" if hasattr(last, "predict") else ""
    raise TypeError(
        "`model` must be a regressor of nurf, a GradientPipeline, or a Pipeline of scikit-learn that ends in one: "
        f"answers come from `draws`, plausible functions given the data. Got {type(last).__name__}{only}"
    )


def without_numbers(model: Any, given: Any, what: str) -> tuple[Any, Any]:
    """Return the model as a function of its free inputs, and their distributions; other inputs are fixed numbers."""
    names = input_names(model)
    values = [given.get(name) for name in names] if isinstance(given, Mapping) else given
    if not (isinstance(values, list | tuple) and len(values) == len(names)):
        return model, given
    fixed = np.array([is_number(value) for value in values])
    if not fixed.any():
        return model, given
    if fixed.all():
        raise ValueError(f"`{what}` must leave at least one input free, got numbers for all of {names}")
    own = FixedInputs(model, np.flatnonzero(~fixed), np.array([v if is_number(v) else np.nan for v in values], float))
    own.warn_beyond()
    if isinstance(given, Mapping):
        kept = [name for name, number in zip(names, fixed, strict=True) if not number]
        return own, {name: value for name, value in given.items() if name in kept or name not in names}
    return own, [value for value, number in zip(values, fixed, strict=True) if not number]


@dataclass(frozen=True, eq=False)
class FixedInputs:
    """A fitted model as a function of some of its inputs, with fixed values of the others.

    Parameters
    ----------
    model : fitted model with draws
    free : array of shape (r,)
        The positions of the free inputs.
    values : array of shape (d,)
        The values of fixed inputs, and NaN for the others.
    """

    model: Any
    free: Index
    values: Array

    @property
    def n_features_in_(self) -> int:
        """The number of free inputs."""
        return len(self.free)

    @property
    def feature_names_in_(self) -> list[str]:
        """The names of the free inputs."""
        names = input_names(self.model)
        return [names[j] for j in self.free]

    @property
    def whole_(self) -> tuple[list[str], Array]:
        """The names of all inputs, and the values of those that are fixed, NaN for the others."""
        return input_names(self.model), self.values

    @property
    def data_box_(self) -> Array:
        """The ends of the box of the data, of shape (2, r)."""
        return np.array(data_box(self.model))[:, self.free]

    def draws(self, n: int, random_state: Any = None) -> FixedInputDraws:
        """Return ``n`` plausible functions of the free inputs."""
        return FixedInputDraws(self.model.draws(n, random_state), self)

    def predict_hessian(self, X: Array) -> Array:
        """Return the Hessians with respect to the inputs that are not fixed, of shape (m, r, r) or (m, k, r, r)."""
        return np.asarray(self.model.predict_hessian(self.all_inputs(X))[..., self.free[:, None], self.free])

    def all_inputs(self, X: Array) -> Array:
        """Return points of all inputs (..., d), from points of the free inputs (..., r)."""
        points = np.empty((*X.shape[:-1], len(self.values)))
        points[...] = self.values
        points[..., self.free] = X
        return points

    def warn_beyond(self) -> None:
        """Warn if a fixed value is beyond the data."""
        low, high = data_box(self.model)
        room = ROOM * (high - low)
        for j in np.flatnonzero((self.values < low - room) | (self.values > high + room))[:1]:
            warnings.warn(
                f"{input_names(self.model)[j]} = {self.values[j]:.4g} is beyond the data, {low[j]:.4g} to "
                f"{high[j]:.4g}: the model knows little there, and intervals grow",
                stacklevel=4,  # the call of the user
            )


@dataclass(frozen=True, eq=False)
class FixedInputDraws:
    """Draws as functions of some of their inputs."""

    draws: Any
    inputs: FixedInputs

    def __len__(self) -> int:
        """Return the number of draws."""
        return len(self.draws)

    def __getitem__(self, index: Any) -> FixedInputDraws:
        """Return one draw, or some draws."""
        return FixedInputDraws(self.draws[index], self.inputs)

    @property
    def fit(self) -> FixedInputDraws:
        """The fit itself, as a single function."""
        return FixedInputDraws(self.draws.fit, self.inputs)

    def value(self, X: Array) -> Array:
        """Return the values of all draws at the points (m, r) or (n, m, r)."""
        return np.asarray(self.draws.value(self.inputs.all_inputs(X)))

    def gradient(self, X: Array) -> Array:
        """Return the gradients of all draws at the points, of shape (n, m, r) or (n, m, k, r)."""
        return np.asarray(self.draws.gradient(self.inputs.all_inputs(X))[..., self.inputs.free])


def whole_inputs(model: Any) -> tuple[list[str], Array]:
    """Return the names of all inputs of a model, fixed ones too, and the values of fixed ones, NaN for the others."""
    names = input_names(model)
    return getattr(model, "whole_", (names, np.full(len(names), np.nan)))


def _with_gradients(pipeline: Pipeline) -> GradientPipeline:
    """Return a fitted pipeline of scikit-learn as a pipeline with draws."""
    found = GradientPipeline(pipeline.steps)
    found.target_, found.data_box_ = None, _box_before(pipeline)
    return found


def _box_before(pipeline: Pipeline) -> Array:
    """Return the box of the data of a pipeline, of shape (2, d), from the samples of its regressor; NaN if unknown.

    The samples are transformed back, if the transformers have inverses.
    """
    model, unknown = pipeline.steps[-1][1], np.full((2, pipeline.n_features_in_), np.nan)
    uncertainty, curves = model.uncertainty_, getattr(model.warping_, "inputs", None)
    if uncertainty is None:
        return unknown
    Z = model.scaling_.inputs_back(uncertainty.reach.points)
    Z = Z if curves is None else curves.back(Z)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # transformers may warn of missing names of columns
            X = pipeline[:-1].inverse_transform(Z)
            again = np.asarray(pipeline[:-1].transform(X), float)
    except (AttributeError, TypeError, ValueError):
        return unknown
    if again.shape != Z.shape or np.abs(again - Z).max() > SAME * np.abs(Z).max():
        return unknown  # a function without inverse returns its arguments
    X = np.asarray(X, float)
    return np.array([X.min(axis=0), X.max(axis=0)])
