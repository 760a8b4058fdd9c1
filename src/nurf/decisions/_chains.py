"""Samples of a density by Hamiltonian Monte Carlo with several chains, and convergence diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nurf._types import Array

ACCEPTED = 0.8  # share of steps that are accepted: near the best for this method (Betancourt, Byrne, Girolami 2014)
FIRST_STEP = 0.5  # in units of the standard deviations of the density
GAIN = 0.3  # of the step's adaptation
LEAPS = 8  # the most of a step; their number is drawn, so that no orbit returns to its start
SPLIT = 2  # parts of a chain, which are compared with each other


@dataclass(frozen=True, eq=False)
class Chains:
    """Points of several chains.

    Parameters
    ----------
    points : array of shape (s, c, d)
        ``s`` points of each of ``c`` chains.
    accepted : float
        The share of steps that were accepted.
    """

    points: Array
    accepted: float

    def all(self) -> Array:
        """Return the points of all chains, of shape (s c, d)."""
        return self.points.reshape(-1, self.points.shape[2])

    @property
    def r_hat(self) -> Array:
        """The potential scale reduction of each input, of shape (d,): 1 if all chains and their halves agree.

        With the variances within parts of chains and between their means (Gelman and others 2013, section 11.4).
        """
        half = len(self.points) // SPLIT
        parts = np.concatenate([self.points[:half], self.points[-half:]], axis=1)
        within, means = parts.var(axis=0, ddof=1).mean(axis=0), parts.mean(axis=0)
        total = (half - 1) / half * within + means.var(axis=0, ddof=1)
        return np.asarray(np.sqrt(np.divide(total, within, out=np.ones_like(total), where=within > 0)))

    @property
    def effective(self) -> Array:
        """The number of independent points with the same information, of shape (d,).

        The number of points over the sum of their autocorrelations, which ends with the first pair of neighbouring ones
        whose sum is not positive (Geyer 1992), from all chains together (Gelman and others 2013, section 11.5).
        """
        s, c, d = self.points.shape
        centred = self.points - self.points.mean(axis=0)
        spectrum = np.fft.rfft(centred, 2 * s, axis=0)
        covariances = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[:s].mean(axis=1) / s
        within = covariances[0] * s / (s - 1)
        total = covariances[0] + self.points.mean(axis=0).var(axis=0, ddof=1)
        found = np.full(d, float(s * c))
        for j in np.flatnonzero(total > 0):
            correlations = 1 - (within[j] - covariances[:, j]) / total[j]
            pairs = correlations[: s // 2 * 2].reshape(-1, 2).sum(axis=1)
            ends = np.flatnonzero(pairs <= 0)
            found[j] = s * c / max(2 * pairs[: ends[0] if len(ends) else None].sum() - 1, 1 / np.log10(s * c))
        return found


def hamiltonian(
    density: Callable[[Array], Array],
    slope: Callable[[Array], Array],
    starts: Array,
    factor: Array,
    n_warm: int,
    n_steps: int,
    rng: np.random.Generator,
) -> Chains:
    """Return ``n_steps`` points of chains from all starts, after ``n_warm`` steps in which the size of steps is chosen.

    Each step draws a momentum, follows the leapfrog method, and is accepted by the density at its end (Neal 2011). The
    leapfrog method keeps volumes and can be reversed with any field in place of the slope of the logarithm of the
    density, so that the result is right with the slope of a similar density, which costs less.

    Parameters
    ----------
    density : callable
        Maps points (c, d) to logarithms of the density (c,).
    slope : callable
        Maps points (c, d) to gradients of the logarithm of this density, or of a similar one, (c, d).
    starts : array of shape (c, d)
    factor : array of shape (d, d)
        ``L``: the density of ``u`` at ``L u`` has about the same width in all directions.
    n_warm, n_steps : int
    rng : numpy.random.Generator
    """
    z, logs, step = starts.copy(), density(starts), FIRST_STEP
    kept, accepted = [], 0.0
    for i in range(n_warm + n_steps):
        momentum = rng.standard_normal(z.shape)
        moved, after = _leaps(slope, z, momentum, factor, step * rng.uniform(0.8, 1.2), int(rng.integers(1, LEAPS + 1)))
        there = density(moved)
        ratio = there - logs + np.sum(momentum**2 - after**2, axis=1) / 2
        shares = np.exp(np.minimum(np.where(np.isnan(ratio), -np.inf, ratio), 0.0))
        taken = rng.random(len(z)) < shares
        z, logs = np.where(taken[:, None], moved, z), np.where(taken, there, logs)
        z, logs = _jumped(density, z, logs, rng)
        if i < n_warm:
            step *= np.exp(GAIN * (np.mean(shares) - ACCEPTED))
        else:
            kept.append(z)
            accepted += float(np.mean(taken)) / n_steps
    return Chains(np.array(kept), accepted)


def _jumped(density: Callable[[Array], Array], z: Array, logs: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return chains of which each half moves by differences of points of the other, and the logarithms of the density.

    A difference of two modes moves a chain from one to the other (ter Braak 2006). Halves are drawn anew each time: if
    each mode had a half of its own, there would be no such difference.
    """
    z, logs = z.copy(), logs.copy()
    halves = np.array_split(rng.permutation(len(z)), 2)
    for rows, others in (halves, halves[::-1]):
        a, b = np.array([rng.choice(others, 2, replace=False) for _ in rows]).T
        moved = z[rows] + z[a] - z[b]
        there = density(moved)
        taken = np.log(rng.random(len(rows))) < there - logs[rows]
        z[rows[taken]], logs[rows[taken]] = moved[taken], there[taken]
    return z, logs


def _leaps(
    slope: Callable[[Array], Array], z: Array, momentum: Array, factor: Array, step: float, n: int
) -> tuple[Array, Array]:
    """Return points ``z = L u`` and the momenta of ``u`` after ``n`` leaps."""
    momentum = momentum + step / 2 * slope(z) @ factor
    for i in range(n):
        z = z + step * momentum @ factor.T
        momentum = momentum + (step / 2 if i == n - 1 else step) * slope(z) @ factor
    return z, momentum
