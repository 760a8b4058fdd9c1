"""Do the gradients belong to the values? Finite differences along the data tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from nurf.jets import Array, Jet, Scaling

MAX_PAIRS = 4000
EXPLAINED = 0.5  # relative misfit below which gradients are taken to explain the differences of the values


@dataclass(frozen=True)
class DerivativeCheck:
    """What ``check_derivatives`` found.

    Attributes
    ----------
    consistent : bool or None
        Whether the gradients explain the differences of the values; None where the data cannot tell.
    misfit : float
        Root mean square of ``f(x_j) - f(x_i) - (g_i + g_j).(x_j - x_i) / 2`` over that of ``f(x_j) - f(x_i)``, for
        neighbours ``x_i, x_j``; the worst output.
    message : str
        The finding in words.
    """

    consistent: bool | None
    misfit: float
    message: str


def check_derivatives(X: Any, y: Any, gradients: Any) -> DerivativeCheck:
    """Compare gradients with differences of the values between neighbouring points.

    By the trapezoidal rule ``f(x_j) - f(x_i) = (g_i + g_j).(x_j - x_i) / 2`` up to third order in the distance. Where
    that fails, the same comparison with a factor, a factor for each input, or the transposed gradients shows which
    mistake was made: sign, scale, units of an input, transposition.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    >>> gradients = np.column_stack([3 * np.cos(3 * X[:, 0]), 2 * X[:, 1]])
    >>> check_derivatives(X, y, gradients).consistent
    True
    >>> check_derivatives(X, y, -gradients).message
    'the gradients have the wrong sign'
    """
    jet = Jet(X, y, gradients)
    assert jet.gradients is not None
    n, d = jet.X.shape
    slopes = jet.gradients.reshape(n, -1, d)
    values = jet.y.reshape(n, -1)
    usable = ~np.isnan(slopes).any(axis=(1, 2))
    pairs = _neighbours(jet[usable])
    if len(pairs) < 2 * (d + 1):
        return DerivativeCheck(None, float("nan"), f"{len(pairs)} pairs of neighbours are too few to tell")
    findings = [
        _compare(jet.X[usable], values[usable, output], slopes[usable, output], pairs)
        for output in range(values.shape[1])
    ]
    return max(findings, key=lambda finding: (finding.consistent is not True, finding.misfit))


def _neighbours(jet: Jet) -> Array:
    """Return pairs of rows that are nearest neighbours, each once, of shape (p, 2); at most ``MAX_PAIRS`` of them."""
    if len(jet) < 2:
        return np.empty((0, 2), dtype=int)
    points = Scaling.fit(jet, "box").inputs(jet.X)
    queries = np.unique(np.linspace(0, len(jet) - 1, MAX_PAIRS).astype(int))
    distances, nearest = cKDTree(points).query(points[queries], k=2)
    pairs = np.column_stack([queries, np.where(nearest[:, 1] == queries, nearest[:, 0], nearest[:, 1])])
    return np.unique(np.sort(pairs[distances[:, 1] > 0], axis=1), axis=0)


def _compare(X: Array, y: Array, slopes: Array, pairs: Array) -> DerivativeCheck:
    """Compare the gradients ``slopes`` (n, d) of one output with the differences of its values ``y`` (n,)."""
    i, j = pairs.T
    scale = np.abs(y[j] - y[i]).max()
    if scale == 0:
        flat = bool(np.all(slopes == 0))
        return DerivativeCheck(flat or None, 0.0, "the values are constant along the data")
    rise = (y[j] - y[i]) / scale
    total = float(np.linalg.norm(rise))

    def terms(g: Array) -> Array:
        return np.asarray((g[i] + g[j]) / 2 * (X[j] - X[i]) / scale)

    def misfit(prediction: Array) -> float:
        return float(np.linalg.norm(rise - prediction)) / total

    given = terms(slopes)
    as_given = misfit(given.sum(axis=1))
    if as_given <= EXPLAINED:
        return DerivativeCheck(True, as_given, f"the gradients explain the values: relative misfit {as_given:.2g}")
    if slopes.shape[0] == slopes.shape[1] and misfit(terms(slopes.T).sum(axis=1)) <= EXPLAINED:
        return DerivativeCheck(False, as_given, "the gradients are transposed")
    line = given.sum(axis=1)
    factor = float(line @ rise / max(float(line @ line), np.finfo(float).tiny))
    if misfit(factor * line) <= EXPLAINED:
        wrong_sign = abs(factor + 1) < EXPLAINED
        found = (
            "the gradients have the wrong sign" if wrong_sign else f"the gradients must be multiplied by {factor:.3g}"
        )
        return DerivativeCheck(False, as_given, found)
    units = np.abs(given).max(axis=0)
    units[units == 0] = 1.0
    factors = np.linalg.lstsq(given / units, rise, rcond=None)[0] / units
    if misfit(given @ factors) <= EXPLAINED:
        wrong = ", ".join(f"{k} by {f:.3g}" for k, f in enumerate(factors) if abs(f - 1) > EXPLAINED)
        return DerivativeCheck(
            False, as_given, f"partial derivatives must be multiplied, that of input {wrong}: other units, or signs?"
        )
    found = f"the gradients do not explain the values: relative misfit {as_given:.2g}, and no factor mends it"
    return DerivativeCheck(None, as_given, f"{found} (noise, too few points for a rough function, or wrong columns)")
