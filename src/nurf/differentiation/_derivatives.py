"""Derivatives of a Python function at many points."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from nurf._types import Array
from nurf.differentiation._backends import BACKENDS, LARGEST_STEP, Derivatives

Backend = Literal["auto", "jax", "torch", "finite_differences", "complex_step"]


def derivatives(
    f: Callable[[Any], Any],
    X: Any,
    *,
    order: int = 1,
    backend: Backend = "auto",
    vectorized: bool | None = None,
    step: Any = None,
) -> Derivatives:
    """Return values, gradients and Hessians of a function at the rows of ``X``, in double precision.

    Parameters
    ----------
    f : callable
        A function of one point (d,) that returns a number or ``k`` numbers, or a function of all points (n, d) that
        returns an array of shape (n,) or (n, k), each row of which depends only on the same row of its argument. It can
        be written in JAX, torch or NumPy.
    X : array of shape (n, d)
        The points.
    order : {1, 2}, default=1
        1 to compute gradients, 2 to compute Hessians as well.
    backend : {"auto", "jax", "torch", "finite_differences", "complex_step"}, default="auto"
        ``"auto"`` tries JAX and torch, if they are mentioned in the code of ``f`` or already imported, starting with
        the framework that the code mentions. A framework is used if it can trace ``f``, and if its gradients agree with
        differences of the values at three points (they do not if part of ``f`` is computed outside the framework).
        Otherwise ``f`` is differentiated by finite differences.

        ``"finite_differences"`` extrapolates central differences with five step sizes. It needs 10 d evaluations of
        ``f`` for each point, and 5 d (d - 1) more for Hessians. If ``f`` is not finite on one side of a point, it uses
        one-sided differences. The result is inaccurate within 1e-4 of the range from a kink.

        ``"complex_step"`` computes ``Im f(x + i h e_j) / h``, with d evaluations for each point and without
        cancellation errors. Hessians are central differences of these gradients. It requires an analytic function
        written in NumPy: ``abs``, ``maximum``, ``norm`` and comparisons give wrong results without an error, possibly
        at some points only. As a check at three points may not detect this, ``"auto"`` does not use it.
    vectorized : bool, optional
        Whether ``f`` accepts all points at once. By default this is determined by calling ``f`` with three points and
        with two of them in another order: ``f`` is vectorised if it returns one row for each point, and the rows of the
        same point agree.
    step : float or array of shape (d,), optional
        Largest step of finite differences, in the units of the inputs. Default is 1 % of the range of ``X`` in each
        input, or of ``|x|`` if the range is zero. The other steps are smaller by factors of 4.

    Returns
    -------
    values : array of shape (n,) or (n, k)
    gradients : array of shape (n, d) or (n, k, d)
        Partial derivatives that are not finite are set to NaN (unknown), with a warning.
    hessians : array of shape (n, d, d) or (n, k, d, d), or None if ``order`` is 1
        Entries that are not finite are set to NaN (unknown), with a warning.

    Examples
    --------
    >>> values, gradients, _ = derivatives(lambda x: np.sin(x[0]) * x[1], [[0.0, 1.0], [0.0, 2.0]])
    >>> gradients.round(6)
    array([[1., 0.],
           [2., 0.]])
    """
    X = _points(X)
    if order not in (1, 2):
        raise ValueError(f"`order` must be 1 or 2, got {order!r}")
    if backend not in get_args(Backend):
        raise ValueError(f"`backend` must be one of {', '.join(get_args(Backend))}, got {backend!r}")
    if step is not None and backend in ("jax", "torch"):
        raise ValueError(f"`step` is for finite differences, got step={step!r} with backend={backend!r}")
    steps = _steps(X, step)
    if backend != "auto":
        function = BACKENDS[backend](f, X, vectorized, steps)
        if contradiction := function.contradiction():
            warnings.warn(contradiction, stacklevel=2)
        return _finished(function.derivatives(order), backend)
    failures: dict[str, Exception] = {}
    for name in (*_candidates(f), "finite_differences"):
        try:
            function = BACKENDS[name](f, X, vectorized, steps)
            if contradiction := function.contradiction():
                raise ValueError(contradiction)
            found = function.derivatives(order)
        except Exception as error:
            failures[name] = error
        else:
            return _finished(found, name)
    *_, last = failures.values()
    if len(failures) == 1:
        raise last
    reasons = "; ".join(f"{name}: {error}" for name, error in failures.items())
    raise ValueError(f"`f` could not be differentiated by any of {', '.join(failures)}: {reasons}") from last


def _points(X: Any) -> Array:
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.size == 0:
        raise ValueError(f"`X` must have shape (n, d) with n, d >= 1, got {points.shape}")
    if not np.all(np.isfinite(points)):
        row = int(np.argwhere(~np.isfinite(points))[0, 0])
        raise ValueError(f"`X` must be finite, got {points[row]} at row {row}")
    return points


def _steps(X: Array, step: Any) -> Array:
    """Return the largest step of each input, (d,), rounded to a power of two to reduce rounding errors."""
    size, extent = np.abs(X).max(axis=0), np.ptp(X, axis=0)
    # a range that is due to rounding errors is not the scale of an input
    scale = np.where(extent > 1e-8 * size, extent, np.where(size > 0, size, 1.0))
    steps = LARGEST_STEP * scale if step is None else np.asarray(step, dtype=np.float64)
    if steps.shape not in ((), size.shape) or not np.all((steps > 0) & np.isfinite(steps)):
        raise ValueError(f"`step` must be a positive number or one for each of {len(size)} inputs, got {step!r}")
    return np.asarray(np.broadcast_to(np.exp2(np.round(np.log2(steps))), size.shape))


def _candidates(f: Any) -> list[str]:
    """Return the frameworks to try, starting with those that the code of ``f`` mentions."""
    names = _packages(f)
    frameworks = [name for name in ("jax", "torch") if name in names or name in sys.modules]
    return sorted(frameworks, key=lambda name: name not in names)


def _packages(f: Any) -> set[str]:
    """Return the names in the code of a callable, and the packages of its class and of the objects that it uses."""
    while isinstance(f, functools.partial):
        f = f.func
    f = inspect.unwrap(f)
    function = f if inspect.isroutine(f) else type(f).__call__
    owners = [base.__module__ for base in type(f).__mro__]
    names = set(getattr(getattr(function, "__code__", None), "co_names", ()))
    try:
        scope = inspect.getclosurevars(function)
    except (TypeError, ValueError):  # not a Python function, or a variable that is not bound yet
        used: list[Any] = []
    else:
        used = [*scope.globals.values(), *scope.nonlocals.values()]
    owners += [value.__name__ if inspect.ismodule(value) else type(value).__module__ for value in used]
    owners += [value.__module__ for value in used if inspect.isroutine(value) and value.__module__]
    return names | {owner.partition(".")[0] for owner in owners}


def _finished(found: Derivatives, name: str) -> Derivatives:
    """Return ``found`` with derivatives set to NaN if they are not finite; raise if a value is not finite."""
    values = found[0]
    if not np.all(np.isfinite(values)):
        row = int(np.argwhere(~np.isfinite(values))[0, 0])
        raise ValueError(f"`f` must be finite at all points, got {values[row]} at row {row} of `X`")
    for kind, array in zip(("gradients", "hessians"), found[1:], strict=True):
        if array is not None and not np.all(np.isfinite(array)):
            unknown = ~np.isfinite(array)
            rows = int(unknown.any(axis=tuple(range(1, array.ndim))).sum())
            message = f"{kind} by {name} are not finite at {rows} of {len(values)} points: set to NaN (unknown)"
            warnings.warn(message, stacklevel=3)
            array[unknown] = np.nan
    return found
