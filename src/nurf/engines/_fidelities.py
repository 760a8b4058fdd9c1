"""How much of a cheaper function is in a function: the factor of ``f = rho b + residual``."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nurf._blocks import spaced
from nurf._scaling import Scaling
from nurf._types import Array
from nurf.choosing import POLICY
from nurf.engines._learning import Learning
from nurf.engines._wide import WideEngine
from nurf.jets import Jet
from nurf.kernels import GaussianKernel
from nurf.solvers import MIN_ERRORS
from nurf.solvers.process import Process, ProcessRows, RestrictedLikelihood, inverse_blocks, row_total, sample_blocks

ROWS = 300  # of the samples from which factors are estimated: one number for each output takes no more
STEPS = 3  # a kernel for the residual, and factors given the kernel, in turn
LEAST_LEFT = 1e-3  # share of ``b^T P b`` that is left without a sample, at least
FOUND = 1e-12  # share of the base that a constant does not explain, below which there is no factor to find


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors of a base, and by how much errors are larger because they were estimated.

    Parameters
    ----------
    factors : array of shape (k,)
        ``rho`` of each output.
    optimism : array of shape (k,)
        The ratio of errors with a factor that does not know the sample to errors with the factor of all samples.
    """

    factors: Array
    optimism: Array


def factors_of(jet: Jet, base: Jet) -> Factors:
    """Return the factors ``rho`` for which ``f - rho b`` is the most likely to be a process, output by output.

    With the kernel of a process for the residual, noise included, and the projection ``P`` that its unknown mean
    leaves, generalised least squares give ``rho = b^T P y / b^T P b``, where ``y`` and ``b`` are all known values and
    derivatives of both (Kennedy and O'Hagan, Biometrika 87, 2000; Forrester, Sobester and Keane, Proc. R. Soc. A 463,
    2007). The kernel is learned for the residual of the last factors, and at first for least squares.

    Fewer than three values say nothing of a factor, and a base that is constant at the samples has none: it is one.

    Parameters
    ----------
    jet : Jet
        Values and derivatives of ``f``.
    base : Jet
        The same values and derivatives of ``b``, at the same points.
    """
    jet, base = (each.with_positive_weight() for each in (jet, base))
    k, valued = jet.y[:1].size, np.flatnonzero(jet.has_value)
    if len(valued) < MIN_ERRORS:
        return Factors(np.ones(k), np.ones(k))
    index = spaced(valued, max(MIN_ERRORS, ROWS * len(jet) // max(row_total(jet), 1)))
    units, base_units = Scaling.fit(jet[index]), Scaling.fit(base[index])
    y, b = units(jet[index]), base_units(base[index])
    targets, others = ProcessRows.of(y).targets, ProcessRows.of(b).targets
    factors = _ratio(np.sum(others * targets, axis=0), np.sum(others**2, axis=0))
    for _ in range(STEPS):
        process = _learned(y - b.times(factors))
        projected = process.conditioned(others)[0]
        factors = _ratio(np.sum(projected * targets, axis=0), np.sum(projected * others, axis=0))
    errors, without = _left_out(process, targets - others * factors, others)
    corrected, first = map(_size, (without, errors))
    scales = np.ravel(units.y_scale / base_units.y_scale)
    known = np.ptp(base.y[valued].reshape(len(valued), k), axis=0) > FOUND * np.abs(base.y[valued]).max()
    optimism = np.where(known & (first > 0), np.maximum(_ratio(corrected, first), 1.0), 1.0)
    return Factors(np.where(known, factors * scales, 1.0), optimism)


def _left_out(process: Process, residual: Array, others: Array) -> tuple[Array, Array]:
    """Return the errors of values whose samples are left out: with the factor, and with one without the sample, (m, k).

    With ``r = P (y - rho b)``, ``g = P b`` and the rows of a sample, the errors are ``e = P_ss^-1 r_s``. A factor that
    is also estimated replaces ``P`` by ``P - g g^T / b^T g``, which does not change ``r``: then the errors are
    ``e + P_ss^-1 g_s (g_s . e) / (b^T g - g_s . P_ss^-1 g_s)``.
    """
    r, g = (process.conditioned(targets)[0] for targets in (residual, others))
    size = np.sum(others * g, axis=0)
    errors, without = np.empty_like(r), np.empty_like(r)
    for rows in sample_blocks(process.rows.samples):
        inverse = inverse_blocks(process.precision, rows)
        errors[rows], moved = inverse @ r[rows], inverse @ g[rows]
        left = np.maximum(size - np.sum(g[rows] * moved, axis=1), LEAST_LEFT * size)
        shift = _ratio(np.sum(g[rows] * errors[rows], axis=1), left)
        without[rows] = errors[rows] + moved * shift[:, None]
    values = process.rows.orders == 0
    return errors[values], without[values]


def _learned(jet: Jet) -> Process:
    """Return a process with learned scales and noise, given the jet."""
    policy = replace(POLICY, rows_per_parameter=0)  # its errors are compared, and not reported
    engine = WideEngine(jet, (GaussianKernel(),), 0, RestrictedLikelihood(), Learning(), 2 * ROWS, policy=policy)
    process: Process = engine.judge("average", len(engine.fitted)).found.processes[0]
    return process


def _size(errors: Array) -> Array:
    """Return the root mean squares of errors (m, k), of shape (k,)."""
    return np.asarray(np.sqrt(np.mean(errors**2, axis=0)))


def _ratio(numerators: Array, denominators: Array) -> Array:
    """Return ratios of numbers (k,), zero where the denominators are."""
    return np.divide(numerators, denominators, out=np.zeros_like(numerators), where=denominators > 0)
