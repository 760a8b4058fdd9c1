"""Rows of jets: their order, equal rows, weights, and rows for validation."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from nurf._types import Array, Index
from nurf._validation import as_finite, as_finite_or_nan, as_weights, in_shape, is_number
from nurf.jets import Jet

LEAST_WEIGHT = 1e-12  # of a row, relative to the largest weight; lighter rows are lost in rounding errors
LARGEST_WEIGHT = 1e100  # of derivatives relative to values; densities square it


def canonical(jet: Jet) -> Jet:
    """Return the data in an order that does not depend on the given order, with equal rows merged.

    Rows of weight zero are removed.
    """
    jet = jet.with_positive_weight()
    return _merged(jet[_canonical_order(jet)])


def relative(jet: Jet) -> Jet:
    """Return the jet with weights in units of the mean weight of the values, as in ``Observations.jet``."""
    weights, slope_weights = relative_weights(jet.sample_weight, len(jet), jet.derivative_weight, len(jet))
    return replace(jet, sample_weight=weights, derivative_weight=slope_weights)


def relative_weights(values: Any, n: int, slopes: Any, m: int) -> tuple[Array | None, Array | None]:
    """Return the weights of ``n`` values and ``m`` derivatives, in units of the mean weight of the values."""
    weights = _row_weights("sample_weight", values, n)
    slope_weights = _row_weights("derivative_weight", slopes, m)
    largest = mean = 1.0
    if weights is not None:
        largest = weights.max()
        mean = np.sort(weights[weights > 0] / largest).mean()  # sorted: the same sum for every order of the rows
        weights = weights / largest / mean
    if slope_weights is not None:
        with np.errstate(over="ignore"):
            slope_weights = slope_weights / largest / mean
        positive = slope_weights[slope_weights > 0]
        if np.any((positive < 1 / LARGEST_WEIGHT) | (positive > LARGEST_WEIGHT)):
            raise ValueError(
                f"`derivative_weight` must be 0 or from {1 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}, in units of the "
                f"mean weight of the values, got {positive.min():g} to {positive.max():g}"
            )
    return weights, slope_weights


def _row_weights(name: str, value: Any, n: int) -> Array | None:
    """Return the weights of ``n`` rows, or None if no weights are given; a number is the weight of all rows.

    Negligible weights are zero.
    """
    weights = as_weights(name, np.full(n, value) if is_number(value) else value, n)
    if weights is not None and n and not np.any(weights > 0):
        raise ValueError(f"`{name}` must be positive in at least one row, got only zeros")
    return None if weights is None else np.where(weights < LEAST_WEIGHT * weights.max(initial=0.0), 0.0, weights)


def _canonical_order(jet: Jet) -> Index:
    """Return the rows sorted by all their data, an order that does not depend on the given order."""
    known = (jet.X, jet.y, jet.gradients, jet.frames, jet.hessians, jet.sample_weight, jet.derivative_weight)
    columns = [part.reshape(len(jet), -1) for part in known if part is not None]
    columns += [] if jet.functionals is None else [jet.functionals.keys]
    for keys in (np.hstack(columns[:2]), np.hstack(columns)):  # the rest matters only for equal points and values
        order = np.lexsort(keys.T[::-1])
        before, after = keys[order[:-1]], keys[order[1:]]
        if not np.any(np.all((before == after) | (np.isnan(before) & np.isnan(after)), axis=1)):
            break
    return order.astype(np.int64)


def _merged(jet: Jet) -> Jet:
    """Return the jet with equal neighbouring rows merged into one row with the sum of their weights.

    Functionals stay as they are. The weights of the values are normalised to mean one again.
    """
    equal = np.flatnonzero(~jet.has_functional[1:]) + 1
    for part in (jet.X, jet.y, jet.gradients, jet.frames, jet.hessians):
        if part is not None and len(equal):
            after, before = (part[index].reshape(len(equal), -1) for index in (equal, equal - 1))
            equal = equal[np.all((after == before) | (np.isnan(after) & np.isnan(before)), axis=1)]
    first = np.delete(np.arange(len(jet)), equal)
    if len(first) == len(jet):
        return jet
    weights = [np.add.reduceat(jet.weights(order), first) for order in (0, 1)]
    unit = weights[0][jet.has_value[first]].mean()
    weights = [weight / unit for weight in weights]
    derivative_weight = None if jet.derivative_weight is None else weights[1]
    return replace(jet[first], sample_weight=weights[0], derivative_weight=derivative_weight)


def split(jet: Jet, validation: Any, rng: np.random.Generator) -> tuple[Jet, Jet | None]:
    """Return the training rows and the validation rows."""
    if validation is None:
        return jet, None
    if isinstance(validation, Real) and not isinstance(validation, Integral):
        valued = np.flatnonzero(jet.has_value)
        n = round(float(validation) * len(valued)) if 0 < float(validation) < 1 else 0
        if not 0 < n < len(valued):
            raise ValueError(
                f"`validation` must leave rows on both sides, got a share of {validation} of {len(valued)} rows"
            )
        held_out = np.zeros(len(jet), bool)
        held_out[valued[rng.permutation(len(valued))[:n]]] = True
        return jet[~held_out], jet[held_out]
    if not isinstance(validation, Jet):
        if not (isinstance(validation, tuple) and len(validation) == 2):
            got = repr(validation) if isinstance(validation, str | Real) else f"a {type(validation).__name__}"
            raise ValueError(f"`validation` must be (X, y), a Jet or a share between 0 and 1, got {got}")
        X, y = as_finite("X` of `validation", validation[0]), as_finite_or_nan("y` of `validation", validation[1])
        validation = Jet(X, in_shape(y, (*y.shape[:1], *jet.y.shape[1:])))
    if not np.any(validation.has_value):
        raise ValueError(f"`validation` must have values that are known, got none in {len(validation)} rows")
    if validation.n_features != jet.n_features or validation.y.shape[1:] != jet.y.shape[1:]:
        raise ValueError(
            f"`validation` must have {jet.n_features} inputs and outputs of shape {jet.y.shape[1:]}, as the "
            f"training rows have, got {validation.n_features} and {validation.y.shape[1:]}"
        )
    return jet, validation.with_values()
