"""Finite differences at many points, extrapolated to step size zero."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from nurf._types import Array

LEVELS = 5  # number of step sizes
RATIO = 4.0  # between two successive step sizes


def differences(
    values: Callable[[Array], Any], at: Any, X: Array, steps: Array, order: int
) -> tuple[Array, Array, Array | None]:
    """Return gradients, their estimated errors, both (n, k, d), and Hessians (n, k, d, d) if ``order`` is 2.

    Central differences with the steps ``h, h / 4, ..., h / 256`` are extrapolated in powers of ``h^2``. For each entry
    the extrapolated value with the smallest estimated error is used (C. J. F. Ridders, Accurate computation of F'(x)
    and F'(x)F''(x), Adv. Eng. Softw. 4, 1982). If it is NaN, one-sided differences are used instead, extrapolated in
    powers of ``h``.

    Parameters
    ----------
    values : callable
        A function from points (m, d) to values (m, k). Values that are not finite are ignored.
    at : array of shape (n, k)
        The values at ``X``. Their dtype must be the precision in which they were computed.
    X : array of shape (n, d)
        The points.
    steps : array of shape (d,)
        The largest step for each input.
    order : {1, 2}
        1 to compute gradients, 2 to compute Hessians as well.

    Examples
    --------
    >>> X = np.array([[1.0]])
    >>> gradients, errors, hessians = differences(np.exp, np.exp(X), X, np.array([0.01]), 2)
    >>> round(float(gradients[0, 0, 0] - np.e), 10), round(float(hessians[0, 0, 0, 0] - np.e), 7)
    (0.0, 0.0)
    """
    eps = np.finfo(at.dtype if np.issubdtype(at.dtype, np.floating) else np.float64).eps
    at = at.astype(np.float64)
    (n, d), k = X.shape, at.shape[1]
    sizes = RATIO ** -np.arange(LEVELS)[:, None]

    def shifted(axis: int, sign: float) -> Array:
        return np.asarray(X[:, axis] + sign * steps[axis] * sizes)

    def shifted_values(signs: dict[int, float]) -> Array:
        """Return the values at ``x + sum_axis sign h e_axis``, of shape (levels, n, k)."""
        points = np.repeat(X[None], LEVELS, axis=0)
        for axis, sign in signs.items():
            points[:, :, axis] = shifted(axis, sign)
        found = np.asarray(values(points.reshape(-1, d)), dtype=np.float64).reshape(LEVELS, n, k)
        return np.where(np.isfinite(found), found, np.nan)

    gradients, errors = np.empty((n, k, d)), np.empty((n, k, d))
    hessians = np.empty((n, k, d, d)) if order == 2 else None
    sides: dict[tuple[int, float], tuple[Array, Array]] = {}
    for j in range(d):
        # values and signed steps (after rounding) on both sides
        (up, u), (down, v) = (
            (shifted_values({j: sign}), (shifted(j, sign) - X[:, j])[:, :, None]) for sign in (1.0, -1.0)
        )
        slopes = [(up - at) / u, (down - at) / v]
        noise = eps * np.abs(at) / u
        gradients[:, :, j], errors[:, :, j] = _first_known(
            _extrapolated(estimate, noise, power)
            for estimate, power in (((up - down) / (u - v), 2), *((s, 1) for s in slopes))
        )
        if hessians is not None:
            sides[j, 1.0], sides[j, -1.0] = (up, u), (down, v)
            one_sided = [2 * (s[:-1] - s[1:]) / (h[:-1] - h[1:]) for s, h in zip(slopes, (u, v), strict=True)]
            central = 2 * (slopes[0] - slopes[1]) / (u - v)
            hessians[:, :, j, j] = _first_known(
                _extrapolated(estimate, 4 * (noise / u)[-len(estimate) :], power)
                for estimate, power in ((central, 2), *((second, 1) for second in one_sided))
            )[0]

    def quadrant(i: int, j: int, s: float, t: float) -> Array:
        (a, u), (b, v) = sides[i, s], sides[j, t]
        return np.asarray(((shifted_values({i: s, j: t}) - a) - (b - at)) / (u * v))

    def mixed(i: int, j: int) -> Iterator[tuple[Array, Array]]:
        noise = 4 * eps * np.abs(at) / (sides[i, 1.0][1] * sides[j, 1.0][1])
        both = [quadrant(i, j, s, s) for s in (1.0, -1.0)]
        yield _extrapolated((both[0] + both[1]) / 2, noise, 2)
        for estimate in both:
            yield _extrapolated(estimate, noise, 1)
        for s in (1.0, -1.0):
            yield _extrapolated(quadrant(i, j, s, -s), noise, 1)

    if hessians is not None:
        for i, j in itertools.combinations(range(d), 2):
            hessians[:, :, i, j] = hessians[:, :, j, i] = _first_known(mixed(i, j))[0]
    return gradients, errors, hessians


def _extrapolated(estimates: Array, noise: Array, power: int) -> tuple[Array, Array]:
    """Return the best extrapolation of ``estimates`` (levels, n, k) in powers of ``h^power``, and its estimated error.

    ``noise`` (levels, n, k) is the rounding error of the estimates, which is added to the estimated error.
    """
    best, error = np.full(estimates.shape[1:], np.nan), np.full(estimates.shape[1:], np.inf)
    coarser = [estimates[0]]
    for estimate, roundoff in zip(estimates[1:], noise[-len(estimates) + 1 :], strict=True):
        row = [estimate]
        for column, coarse in enumerate(coarser, 1):
            fine = row[-1] + (row[-1] - coarse) / (RATIO ** (power * column) - 1)
            estimated = np.maximum(np.abs(fine - row[-1]), np.abs(fine - coarse)) + roundoff
            better = estimated < error  # false for NaN
            best, error = np.where(better, fine, best), np.where(better, estimated, error)
            row.append(fine)
        coarser = row
    return best, error


def _first_known(options: Iterable[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return estimates and their errors, each from the first option in which it is not NaN."""
    options = iter(options)
    best, error = next(options)
    while (unknown := np.isnan(best)).any():
        other = next(options, None)
        if other is None:
            break
        best, error = np.where(unknown, other[0], best), np.where(unknown, other[1], error)
    return best, error
