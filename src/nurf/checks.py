"""Do the gradients belong to the values? Finite differences along the data tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from nurf.jets import Array, Index, Jet, Scaling

MAX_PAIRS = 4000
FEWEST_PAIRS = 4
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
    slopes, values = jet.gradients.reshape(n, -1, d), jet.y.reshape(n, -1)
    usable = ~np.isnan(slopes).any(axis=(1, 2))
    pairs = _neighbours(jet[usable])
    if len(pairs) < FEWEST_PAIRS:
        return DerivativeCheck(None, float("nan"), f"{len(pairs)} pairs of neighbours are too few to tell")
    findings = [
        _compare(jet.X[usable], values[usable, output], slopes[usable, output], pairs)
        for output in range(values.shape[1])
    ]
    severity = {True: 0, None: 1, False: 2}
    return max(findings, key=lambda finding: (severity[finding.consistent], finding.misfit))


def _neighbours(jet: Jet) -> Index:
    """Return pairs of rows that are nearest neighbours, each once, of shape (p, 2); at most ``MAX_PAIRS`` of them."""
    none = np.empty((0, 2), dtype=np.int64)
    if len(jet) < 2:
        return none
    points, rows = np.unique(Scaling.fit(jet, "box").inputs(jet.X), axis=0, return_index=True)
    if len(points) < 2:
        return none
    queries = np.unique(np.linspace(0, len(points) - 1, MAX_PAIRS).astype(int))
    _, nearest = cKDTree(points).query(points[queries], k=2)
    pairs = np.sort(rows[np.column_stack([queries, nearest[:, 1]])], axis=1)
    return np.unique(pairs, axis=0).astype(np.int64)


def _compare(X: Array, y: Array, slopes: Array, pairs: Index) -> DerivativeCheck:
    """Compare the gradients ``slopes`` (n, d) of one output with the differences of its values ``y`` (n,)."""
    i, j = pairs.T
    scale = np.abs(y[j] - y[i]).max()
    if scale == 0:
        flat = bool(np.all(slopes == 0))
        return DerivativeCheck(flat or None, 0.0, "the values are constant along the data")
    rise = (y[j] - y[i]) / scale

    def terms(g: Array) -> Array:
        return np.asarray((g[i] + g[j]) / 2 * (X[j] - X[i]) / scale)

    given = terms(slopes)
    misfit = _misfit(rise, given.sum(axis=1))
    if misfit <= EXPLAINED:
        return DerivativeCheck(True, misfit, f"the gradients explain the values: relative misfit {misfit:.2g}")
    # from here on no single pair may decide
    sizes = 1 / np.maximum(np.abs(rise), np.median(np.abs(rise)) + np.finfo(float).tiny)
    rise, given = rise * sizes, given * sizes[:, None]
    transposed = sizes * terms(slopes.T).sum(axis=1) if slopes.shape[0] == slopes.shape[1] else np.zeros_like(rise)
    if _mends(rise, given, transposed, 0):
        return DerivativeCheck(False, misfit, "the gradients are transposed")
    line = given.sum(axis=1)
    factor = float(line @ rise / max(float(line @ line), np.finfo(float).tiny))
    if _mends(rise, given, factor * line, 1):
        found = f"the gradients must be multiplied by {factor:.3g}"
        return DerivativeCheck(False, misfit, "the gradients have the wrong sign" if abs(factor + 1) < 0.5 else found)
    units = np.abs(given).max(axis=0)
    units[units == 0] = 1.0
    factors = np.linalg.lstsq(given / units, rise, rcond=None)[0] / units
    if _mends(rise, given, given @ factors, len(factors)):
        wrong = ", ".join(f"{k} by {f:.3g}" for k, f in enumerate(factors) if abs(f - 1) > 0.5)
        found = f"partial derivatives must be multiplied, that of input {wrong}: other units, or signs?"
        return DerivativeCheck(False, misfit, found)
    found = f"the gradients do not explain the values: relative misfit {misfit:.2g}, and no factor mends it"
    return DerivativeCheck(None, misfit, f"{found} (noise, too few points for a rough function, or wrong columns)")


def _misfit(rise: Array, prediction: Array) -> float:
    return float(np.linalg.norm(rise - prediction) / np.linalg.norm(rise))


def _mends(rise: Array, given: Array, prediction: Array, n_factors: int) -> bool:
    """Tell whether a prediction with ``n_factors`` fitted numbers explains what the gradients as given do not.

    It must do so by far, and with many more pairs than numbers; ``n`` counts them by their share in the sum of squares.
    """
    n = float(np.sum(rise**2) ** 2 / np.sum(rise**4))
    if n <= 3 * (n_factors + 1):
        return False
    left = _misfit(rise, prediction) * np.sqrt(n / (n - n_factors))
    return bool(left <= EXPLAINED and left <= _misfit(rise, given.sum(axis=1)) / 3)
