"""Derivatives of scikit-learn's transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from nurf._types import Array
from nurf._validation import as_finite
from nurf._warping import CURVES
from nurf.differentiation import derivatives
from nurf.estimators._chain import Derivative

# First and second derivatives of functions of one number.
FUNCTIONS: dict[Any, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    np.log: (CURVES["log"].slope, CURVES["log"].curvature),
    np.log2: (lambda x: 1 / (x * np.log(2)), lambda x: -1 / (x**2 * np.log(2))),
    np.log10: (lambda x: 1 / (x * np.log(10)), lambda x: -1 / (x**2 * np.log(10))),
    np.log1p: (lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2),
    np.exp: (np.exp, np.exp),
    np.expm1: (np.exp, np.exp),
    np.sqrt: (lambda x: 0.5 / np.sqrt(x), lambda x: -0.25 * x**-1.5),
    np.square: (lambda x: 2 * x, lambda x: np.full_like(x, 2.0)),
    np.arcsinh: (CURVES["asinh"].slope, CURVES["asinh"].curvature),
}


def derivative_of(transformer: Any, X: Any, order: int = 1) -> Derivative:
    """Return the derivatives of a fitted transformer at the points, with second derivatives if ``order`` is 2.

    A method ``jacobian(X)`` of the transformer, which returns an array of shape (n, p, d), has priority. Scalers,
    ``PCA``, ``TruncatedSVD``, functions of NumPy, and compositions of these are differentiated by formulas, all other
    transformers by finite differences.
    """
    own = getattr(transformer, "jacobian", None)
    if own is not None:
        return _own(own, transformer, X, order)
    formula = _FORMULAS.get(type(transformer), _numeric)
    return formula(transformer, X, order)


def _own(jacobian: Callable[[Any], Any], transformer: Any, X: Any, order: int) -> Derivative:
    """Return the derivatives from the Jacobian of the transformer."""
    J = as_finite(f"jacobian(X)` of `{type(transformer).__name__}", jacobian(X))
    shape = (len(X), transformer.transform(X).shape[1], np.shape(X)[1])
    if J.shape != shape:
        raise ValueError(
            f"`jacobian(X)` of {type(transformer).__name__} must have shape (n, p, d) = {shape}, got {J.shape}"
        )
    if order == 1:
        return Derivative(J)
    return Derivative(J, _differences(lambda points: jacobian(points).reshape(len(points), -1), X).reshape(*shape, -1))


def _numeric(transformer: Any, X: Any, order: int) -> Derivative:
    """Return the derivatives by extrapolated finite differences."""
    J = _differences(transformer.transform, X)
    return Derivative(J, None if order == 1 else _differences(transformer.transform, X, order=2))


def _differences(function: Callable[[Any], Any], X: Any, order: int = 1) -> Array:
    """Return derivatives of ``function`` at the points, of shape (n, p, d) or (n, p, d, d)."""
    points = as_finite("X", X)

    def values(moved: Array) -> Array:
        frame = type(X)(moved, columns=X.columns) if hasattr(X, "columns") else moved
        return np.asarray(function(frame), float).reshape(len(moved), -1)

    found = derivatives(values, points, order=order, backend="finite_differences", vectorized=True)[order]
    assert found is not None
    return found


def _identity(_: Any, X: Any, order: int) -> Derivative:
    return Derivative(np.eye(np.shape(X)[1])[None])


def _divided(transformer: Any, X: Any, order: int) -> Derivative:
    scale = transformer.scale_
    return Derivative(np.diag(np.ones(np.shape(X)[1]) if scale is None else 1 / scale)[None])


def _min_max(transformer: MinMaxScaler, X: Any, order: int) -> Derivative:
    return _numeric(transformer, X, order) if transformer.clip else Derivative(np.diag(transformer.scale_)[None])


def _projection(transformer: Any, X: Any, order: int) -> Derivative:
    matrix = transformer.components_
    if getattr(transformer, "whiten", False):
        matrix = matrix / np.sqrt(transformer.explained_variance_)[:, None]
    return Derivative(matrix[None])


def _function(transformer: FunctionTransformer, X: Any, order: int) -> Derivative:
    if transformer.func is None:
        return _identity(transformer, X, order)
    if transformer.func not in FUNCTIONS or transformer.kw_args:
        return _numeric(transformer, X, order)
    points = as_finite("X", X)
    n, d = points.shape
    slopes, curvatures = np.zeros((n, d, d)), np.zeros((n, d, d, d))
    each = np.arange(d)
    first, second = FUNCTIONS[transformer.func]
    slopes[:, each, each] = first(points)
    if order == 1:
        return Derivative(slopes)
    curvatures[:, each, each, each] = second(points)
    return Derivative(slopes, curvatures)


def _pipeline(transformer: Pipeline, X: Any, order: int) -> Derivative:
    total = _identity(transformer, X, order)
    for _, step in transformer.steps:
        if not is_passthrough(step):
            total = total.then(derivative_of(step, X, order))
            X = step.transform(X)
    return total


def _columns(transformer: ColumnTransformer, X: Any, order: int) -> Derivative:
    """Return the derivatives of a transformer whose parts each use some columns."""
    inputs: dict[str, Any] | None = getattr(transformer, "_transformer_to_input_indices", None)
    if inputs is None or transformer.sparse_output_:
        return _numeric(transformer, X, order)
    blocks = []
    for name, part, _ in transformer.transformers_:
        columns = np.asarray(inputs[name], int)
        if (isinstance(part, str) and part == "drop") or not len(columns):
            continue
        some = X.iloc[:, columns] if hasattr(X, "iloc") else X[:, columns]
        block = _identity(part, some, order) if is_passthrough(part) else derivative_of(part, some, order)
        blocks.append(block.of_columns(columns, np.shape(X)[1]))
    return _stacked(blocks)


def _union(transformer: FeatureUnion, X: Any, order: int) -> Derivative:
    parts = [part for _, part in transformer.transformer_list if not (isinstance(part, str) and part == "drop")]
    weights = transformer.transformer_weights
    if weights:
        return _numeric(transformer, X, order)
    identity = _identity(transformer, X, order)
    return _stacked([identity if is_passthrough(part) else derivative_of(part, X, order) for part in parts])


def _stacked(blocks: list[Derivative]) -> Derivative:
    """Return the derivatives of several maps of the same inputs, concatenated."""
    n = max(len(block.jacobian) for block in blocks)
    jacobian = np.concatenate([np.broadcast_to(J, (n, *J.shape[1:])) for J in (b.jacobian for b in blocks)], axis=1)
    if all(block.curvature is None for block in blocks):
        return Derivative(jacobian)
    d = jacobian.shape[2]
    zeros = (np.zeros((n, b.jacobian.shape[1], d, d)) if b.curvature is None else b.curvature for b in blocks)
    return Derivative(jacobian, np.concatenate(list(zeros), axis=1))


def is_passthrough(step: Any) -> bool:
    """Return whether a step of a pipeline does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


_FORMULAS: dict[type, Callable[[Any, Any, int], Derivative]] = {
    StandardScaler: _divided,
    MaxAbsScaler: _divided,
    RobustScaler: _divided,
    MinMaxScaler: _min_max,
    PCA: _projection,
    IncrementalPCA: _projection,
    TruncatedSVD: _projection,
    FunctionTransformer: _function,
    Pipeline: _pipeline,
    ColumnTransformer: _columns,
    FeatureUnion: _union,
}
