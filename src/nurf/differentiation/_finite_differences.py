"""Finite differences of a function at many points, extrapolated to step zero."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LEVELS = 5  # step sizes of each difference
RATIO = 4.0  # of one step size to the next


def differences(
    values: Callable[[Array], Any], at: Any, X: Array, steps: Array, order: int
) -> tuple[Array, Array, Array | None]:
    """Return gradients, their estimated errors, both (n, k, d), and Hessians (n, k, d, d) if ``order`` is 2.

    Central differences with the steps ``h, h / 4, ..., h / 256`` are extrapolated in ``h^2``; each entry takes the
    extrapolation that its neighbours in the table confirm best (C. J. F. Ridders, Accurate computation of F'(x) and
    F'(x)F''(x), Adv. Eng. Softw. 4, 1982). Entries that stay NaN are taken from one-sided differences, in powers of h.

    Parameters
    ----------
    values : callable
        Takes points (m, d) and gives (m, k); what is not finite is not used.
    at : array of shape (n, k)
        The values at ``X``, in the precision in which they were computed.
    X : array of shape (n, d)
        The points.
    steps : array of shape (d,)
        The largest steps.
    order : {1, 2}
        Whether Hessians are wanted too.

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

    def moved(x: Array, axis: int, sign: float) -> Array:
        return np.asarray(x[..., axis] + sign * steps[axis] * sizes)

    def beside(signs: dict[int, float]) -> Array:
        """Return values at ``x + sign h e_axis``, for all axes at once, of shape (levels, n, k)."""
        points = np.repeat(X[None], LEVELS, axis=0)
        for axis, sign in signs.items():
            points[:, :, axis] = moved(X, axis, sign)
        found = np.asarray(values(points.reshape(-1, d)), dtype=np.float64).reshape(LEVELS, n, k)
        return np.where(np.isfinite(found), found, np.nan)

    gradients, errors = np.empty((n, k, d)), np.empty((n, k, d))
    hessians = np.empty((n, k, d, d)) if order == 2 else None
    sides: dict[tuple[int, float], tuple[Array, Array]] = {}
    for j in range(d):
        # steps as rounding made them, with their sign
        (up, u), (down, v) = ((beside({j: sign}), (moved(X, j, sign) - X[:, j])[:, :, None]) for sign in (1.0, -1.0))
        slopes = [(up - at) / u, (down - at) / v]
        noise = eps * np.abs(at) / u
        gradients[:, :, j], errors[:, :, j] = _first_known(
            _extrapolated(estimate, noise, power)
            for estimate, power in (((up - down) / (u - v), 2), *((s, 1) for s in slopes))
        )
        if hessians is not None:
            sides[j, 1.0], sides[j, -1.0] = (up, u), (down, v)
            bends = [2 * (s[:-1] - s[1:]) / (g[:-1] - g[1:]) for s, g in zip(slopes, (u, v), strict=True)]
            central = 2 * (slopes[0] - slopes[1]) / (u - v)
            hessians[:, :, j, j] = _first_known(
                _extrapolated(estimate, 4 * (noise / u)[-len(estimate) :], power)
                for estimate, power in ((central, 2), *((b, 1) for b in bends))
            )[0]

    def quadrant(i: int, j: int, s: float, t: float) -> Array:
        (a, u), (b, v) = sides[i, s], sides[j, t]
        return np.asarray(((beside({i: s, j: t}) - a) - (b - at)) / (u * v))

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
    """Extrapolate estimates (levels, n, k) with errors in powers of ``h^power``; return the best one and its error.

    ``noise`` (levels, n, k) is the roundoff, below which agreement in the table is chance.
    """
    best, error = np.full(estimates.shape[1:], np.nan), np.full(estimates.shape[1:], np.inf)
    coarser = [estimates[0]]
    for estimate, roundoff in zip(estimates[1:], noise[-len(estimates) + 1 :], strict=True):
        row = [estimate]
        for column, coarse in enumerate(coarser, 1):
            fine = row[-1] + (row[-1] - coarse) / (RATIO ** (power * column) - 1)
            doubt = np.maximum(np.abs(fine - row[-1]), np.abs(fine - coarse)) + roundoff
            better = doubt < error  # never where it is NaN
            best, error = np.where(better, fine, best), np.where(better, doubt, error)
            row.append(fine)
        coarser = row
    return best, error


def _first_known(options: Iterable[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return estimates and errors, each from the first option in which it is known."""
    options = iter(options)
    best, error = next(options)
    while (unknown := np.isnan(best)).any():
        other = next(options, None)
        if other is None:
            break
        best, error = np.where(unknown, other[0], best), np.where(unknown, other[1], error)
    return best, error
