"""Initial designs: space-filling points, whose first points remain if more are added."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from nurf._types import Array
from nurf._validation import is_whole
from nurf.estimators import as_generator, choose
from nurf.studies._space import INNER, Space

MOST = 2**18  # points of a sequence that are tried if constraints exclude many, or levels repeat


def design(
    inputs: Any,
    n: int,
    *,
    kind: str = "sobol",
    constraints: Any = (),
    correlation: Any = None,
    random_state: Any = None,
) -> Any:
    """Return ``n`` points that fill the inputs evenly: a data frame in the units of the inputs.

    Points follow the distributions of the inputs. With the same seed, more points begin with the same ones, so that
    runs are kept if their number is doubled.

    Parameters
    ----------
    inputs : dict
        For each input a distribution of ``scipy.stats`` with its parameters, ``(low, high)`` for values in between, a
        list of levels, or a number if it does not vary.
    n : int
        The number of points. Combinations of levels are not repeated: there may be fewer.
    kind : {"sobol", "latin"}, default "sobol"
        A scrambled Sobol sequence, or Latin hypercubes: each input has one point in each of ``m`` equally probable
        parts, for the first ``m`` points if ``m`` is a power of two.
    constraints : sequence of str, optional
        Linear inequalities such as ``"r + 2 * L <= 5"``. Points of the sequence that do not meet them are left out.
    correlation : array of shape (d, d), optional
        The correlations of the normal scores of the inputs that vary.
    random_state : int, RandomState, Generator or None, default None

    Returns
    -------
    DataFrame, or array of shape (n, d) without pandas

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> points = design({"r": (0.05, 0.1), "L": loguniform(1, 100), "layers": [1, 2, 4]}, 8, random_state=0)
    >>> list(points.columns), len(points)
    (['r', 'L', 'layers'], 8)
    """
    if not is_whole(n):
        raise ValueError(f"`n` must be a whole number >= 1, got {n!r}")
    space = Space.of(inputs, constraints, correlation)
    seed = int(as_generator(random_state).integers(2**31))
    return space.frame(sequence(space, int(n), choose("kind", kind, KINDS), seed))


def sequence(space: Space, n: int, kind: Any, seed: int, wider: float = 1.0) -> Array:
    """Return the first ``n`` different points of a sequence that meet the constraints, of shape (n, d), or fewer.

    Their normal scores are ``wider`` by a factor.
    """
    size = 2 ** int(np.ceil(np.log2(max(n, 2))))
    while True:
        X = space.from_unit(widened(kind(space.dimension, size, seed), wider))
        X = X[space.allowed(X)]
        if space.discrete.any():
            X = X[np.sort(np.unique(X, axis=0, return_index=True)[1])]
        if len(X) >= n or size >= MOST:
            break
        size *= 4
    if not len(X):
        raise ValueError(f"`constraints` must be met somewhere: none of {size} points meets {space.constraints.texts}")
    return X[:n]


def widened(U: Array, factor: float) -> Array:
    """Return uniform variables whose normal scores are multiplied by a factor."""
    return U if factor == 1 else np.asarray(ndtr(factor * ndtri(np.clip(U, INNER, 1 - INNER))))


def sobol(d: int, size: int, seed: int) -> Array:
    """Return scrambled Sobol points of the unit cube, of shape (size, d); ``size`` is a power of two."""
    return np.asarray(qmc.Sobol(d, seed=np.random.default_rng(seed)).random_base2(int(np.log2(size))))


def latin(d: int, size: int, seed: int) -> Array:
    """Return points of the unit cube (size, d) whose first ``2^k`` are a Latin hypercube for each ``k``.

    Each doubling puts one point into each half part that has none, in random order.
    """
    rng = np.random.default_rng(seed)
    U = rng.random((1, d))
    while len(U) < size:
        m = 2 * len(U)
        empty = np.argsort(_taken(U, m), axis=0, kind="stable")[: len(U)]
        U = np.concatenate([U, (rng.permuted(empty, axis=0) + rng.random((len(U), d))) / m])
    return U


def _taken(U: Array, m: int) -> Array:
    """Return the numbers of points in each of ``m`` parts of each input, of shape (m, d)."""
    counts = np.zeros((m, U.shape[1]), int)
    np.add.at(counts, (np.minimum((m * U).astype(int), m - 1), np.arange(U.shape[1])), 1)
    return counts


KINDS: dict[str, Any] = {"sobol": sobol, "latin": latin}
