"""The nearest fit that meets inequalities, imposed at virtual points where the fit violates them.

With a fit ``f`` of which plausible changes are ``sum_a x_a g_a`` with the cost ``|x|^2 / 2`` (coefficients in units of
their posterior deviations, or a process given its rows), the conditions ``s L_i (f + sum_a x_a g_a) >= b_i`` at virtual
points are a least-distance problem. Its dual has one multiplier for each condition, and is solved by nonnegative least
squares (Lawson and Hanson, Solving Least Squares Problems, chapter 23). Only conditions that fail somewhere get virtual
points: a fit that meets all of them stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import nnls

from nurf._blocks import spaced
from nurf._types import Array, Index
from nurf.kernels import Functionals
from nurf.networks import Network

# Margin of conditions at virtual points, in units of the size of the functional, so that they also hold in the
# neighbourhood. With 1e-6, fits took ten times the virtual points and rounds.
MARGIN = 1e-4
ADDED = 30  # virtual points of a condition in one round, a third of them where it fails most
ROUNDS = 60
SLACK = 1e-9  # of conditions, after they are made equations
LARGEST_VIOLATION = 1e-7  # of violations, in units of the size of the functional
FLOOR = 1e-12  # of violations that are rounding errors, in standard deviations of the values
LEAST_SIZE = 1e-3  # of derivatives, in standard deviations of the values over half the box
SHORT, EMPTY = (
    0.1,
    1e-12,
)  # of the dual's residual: above, x is about as long as its unit; below, it is lost in rounding
RESCALED = 6  # times that the unit of length is made larger until no change is found


class ContradictionError(ValueError):
    """No function meets all conditions, or none that is near enough to the data in floating-point numbers."""


@dataclass(frozen=True, eq=False)
class Condition:
    """An inequality ``s L f >= b`` at all points, where ``L f`` is the value or a derivative along one direction.

    Parameters
    ----------
    order : int
        0 for values, 1 for slopes, 2 for curvatures.
    direction : array of shape (q,)
        The direction of derivatives, in the inputs of the network.
    signs : array of shape (k,)
        ``s`` for each output: 1, -1, or 0 for an output without the condition.
    bounds : array of shape (k,)
        ``b``, in the values of the network.
    """

    order: int
    direction: Array
    signs: Array
    bounds: Array

    def at(self, X: Array) -> Functionals:
        """Return the functionals ``L`` at the points."""
        return Functionals(X, np.arange(len(X)), (np.tile(self.direction, (len(X), 1)),) * self.order)


@dataclass(frozen=True, eq=False)
class Shaped:
    """A network that meets conditions.

    Parameters
    ----------
    network : Network
    active : tuple of arrays of int
        The places of the virtual points of each condition that it needs.
    violation : float
        By how much conditions fail at most at all points that were checked, in units of the size of the functional.
    """

    network: Network
    active: tuple[Index, ...]
    violation: float

    @property
    def n_points(self) -> int:
        """The number of virtual points."""
        return sum(map(len, self.active))


class Changeable(Protocol):
    """A fit with a cost of changes."""

    @property
    def network(self) -> Network:
        """The fit without conditions."""
        ...

    def root(self, parts: Sequence[Functionals], output: int) -> Array:
        """Return ``F`` for which ``F F^T`` are the posterior covariances of functionals of an output, (p, r)."""
        ...

    def moved(self, parts: Sequence[Functionals], multipliers: Array) -> Network:
        """Return the fit plus the posterior covariances of functionals times multipliers (p, k)."""
        ...


def shaped(
    problem: Changeable,
    conditions: Sequence[Condition],
    points: Array,
    start: Sequence[Index] | None = None,
    *,
    margin: float = MARGIN,
) -> Shaped:
    """Return the most plausible change of a fit that meets conditions at virtual points.

    Virtual points are taken from ``points`` (n, d), where a condition fails, until none fails at any of them. A virtual
    point at which a condition does not press is dropped.

    Parameters
    ----------
    problem : Changeable
    conditions : sequence of Condition
    points : array of shape (n, q)
    start : sequence of arrays of int, optional
        The places of the first virtual points of each condition.
    margin : float
        By how much conditions are over-fulfilled at virtual points, in units of the size of the functional.
    """
    k = problem.network.n_outputs
    before = functional_values(conditions, problem.network, points)
    sizes = _sizes(conditions, before)
    signs, bounds = (np.stack([getattr(each, name) for each in conditions]) for name in ("signs", "bounds"))
    chosen = [np.empty(0, np.int64) for _ in conditions]
    network, values = problem.network, before
    for number in range(ROUNDS):
        excess = _excess(values, signs, bounds) / sizes[:, None]
        fresh = [_worst(each.min(axis=1), old) for each, old in zip(excess, chosen, strict=True)]
        if not any(len(each) for each in fresh):
            break
        if number == 0 and start is not None:
            chosen = list(start)
        chosen = [np.union1d(*pair) for pair in zip(chosen, fresh, strict=True)]
        parts = [each.at(points[index]) for each, index in zip(conditions, chosen, strict=True)]
        multipliers = np.zeros((sum(map(len, chosen)), k))
        for output in range(k):
            root = problem.root(parts, output)
            sign, bound, size = (np.repeat(each[:, output], list(map(len, chosen))) for each in (signs, bounds, sizes))
            now = np.concatenate([each[index, output] for each, index in zip(before, chosen, strict=True)])
            held = (sign != 0) & np.isfinite(bound)
            spreads = np.linalg.norm(root, axis=1)  # what cannot change must not be asked for more
            typical = np.sqrt(np.mean(spreads[held] ** 2)) if held.any() else 0.0
            share = np.minimum(spreads / typical, 1.0) if typical > 0 else np.ones_like(spreads)
            missing = (bound + margin * share * size - sign * now)[held]
            multipliers[held, output] = sign[held] * least_change(sign[held, None] * root[held], missing)
        ends = np.cumsum([len(index) for index in chosen])[:-1]
        presses = np.split(multipliers.any(axis=1), ends)
        parts = [each.at(points[index[own]]) for each, index, own in zip(conditions, chosen, presses, strict=True)]
        network = problem.moved(parts, multipliers[np.concatenate(presses)])
        chosen = [index[own] for index, own in zip(chosen, presses, strict=True)]
        values = functional_values(conditions, network, points)
    left = _excess(values, signs, bounds) / sizes[:, None]
    return Shaped(network, tuple(chosen), float(abs(left.min(initial=0.0))))


def violation(conditions: Sequence[Condition], network: Network, points: Array) -> float:
    """Return by how much conditions fail at points at most, in units of the sizes of the functionals."""
    values = functional_values(conditions, network, points)
    sizes = _sizes(conditions, values)
    signs, bounds = (np.stack([getattr(each, name) for each in conditions]) for name in ("signs", "bounds"))
    left = _excess(values, signs, bounds) / sizes[:, None]
    return float(abs(left.min(initial=0.0)))


def functional_values(conditions: Sequence[Condition], network: Network, X: Array) -> Array:
    """Return ``L f`` of all conditions at the points, of shape (C, n, k)."""
    n, k, q = len(X), network.n_outputs, X.shape[1]
    orders = {each.order for each in conditions}
    values = network.value(X).reshape(n, k) if 0 in orders else None
    gradients = network.gradient(X).reshape(n, k, q) if 1 in orders else None
    hessians = network.hessian(X).reshape(n, k, q, q) if 2 in orders else None
    found = []
    for each in conditions:
        v = each.direction
        if each.order == 0:
            found.append(values)
        elif each.order == 1:
            assert gradients is not None
            found.append(gradients @ v)
        else:
            assert hessians is not None
            found.append(hessians @ v @ v)
    return np.stack([np.asarray(each) for each in found])


def least_change(root: Array, missing: Array) -> Array:
    """Return the ``l >= 0`` with ``F F^T l >= m`` for which ``x = F^T l`` is the shortest with ``F x >= m``.

    Parameters
    ----------
    root : array of shape (p, r)
        ``F``.
    missing : array of shape (p,)
        ``m``.

    Raises
    ------
    ContradictionError
        If no ``x`` has ``F x >= m``.
    """
    lengths = np.linalg.norm(root, axis=1)
    lengths = np.where(lengths > 0, lengths, 1.0)
    rows, wanted = root / lengths[:, None], missing / lengths
    unit = float(np.max(wanted, initial=0.0))  # no x is shorter
    if not unit > 0:
        return np.zeros(len(missing))
    last = np.zeros(root.shape[1] + 1)
    last[-1] = 1.0
    for _ in range(RESCALED):
        found, _ = nnls(np.vstack([rows.T, wanted / unit]), last, maxiter=30 * max(root.shape))
        left = float(1 - wanted @ found / unit)  # 1 / (1 + |x|^2 / unit^2)
        if left > SHORT:
            multipliers = _polished(rows, wanted / unit, found / left)
            if np.max(wanted / unit - rows @ (rows.T @ multipliers)) > SHORT * np.max(wanted / unit):
                break  # all is lost in rounding
            return np.asarray(unit * multipliers / lengths)
        unit /= np.sqrt(max(left, EMPTY))
    raise ContradictionError("conditions on the shape contradict each other or the data: no fit meets them")


def _polished(rows: Array, wanted: Array, multipliers: Array) -> Array:
    """Return multipliers of the same conditions for which these hold as equations up to rounding."""
    active = np.flatnonzero(multipliers > 0)
    exact = np.zeros_like(multipliers)
    exact[active] = np.linalg.lstsq(rows[active] @ rows[active].T, wanted[active], rcond=1e-14)[0]
    better = np.all(exact >= 0) and np.all(rows @ (rows.T @ exact) >= wanted - SLACK)
    return exact if better else multipliers


def _sizes(conditions: Sequence[Condition], values: Array) -> Array:
    """Return units of functionals (C, k) with given values (C, n, k): root mean squares of derivatives."""
    orders = np.array([each.order for each in conditions])[:, None]
    return np.where(orders == 0, 1.0, np.maximum(np.sqrt(np.mean(values**2, axis=1)), LEAST_SIZE))


def _excess(values: Array, signs: Array, bounds: Array) -> Array:
    """Return ``s L f - b`` of functionals (C, n, k), rounded up, infinite for outputs without the condition."""
    return np.where((signs != 0)[:, None], signs[:, None] * values - bounds[:, None] + FLOOR, np.inf)


def _worst(excess: Array, chosen: Index) -> Index:
    """Return places of a condition (n,) where it fails, and that are not chosen: the worst, and some of the others."""
    order = np.argsort(excess, kind="stable")
    failing = order[excess[order] < -LARGEST_VIOLATION]
    failing = failing[~np.isin(failing, chosen)]
    worst, others = failing[: ADDED // 3], failing[ADDED // 3 :]
    return np.concatenate([worst, spaced(others, ADDED - ADDED // 3)]) if len(others) else worst
