"""Draws of processes given the data, by pathwise conditioning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nurf._types import Array
from nurf.kernels import Functionals, RadialKernel, Waves, covariance
from nurf.solvers._draws import Part
from nurf.solvers.process._growth import Growth
from nurf.solvers.process._process import TINY, Process

# Pairs of waves for each process. The ratio of the spread of 100 draws to the spread of the process, in 12 fits of 30
# and 100 samples, is the same with 256 to 4096 pairs; between seeds it differs by 0.03 with 256 and 0.02 with 1024.
WAVES = 1024
REFERENCES, REFERENCE_WAVES = 64, 128  # draws whose root mean square is a standard deviation, within about 10%


@dataclass(frozen=True, eq=False)
class KernelBasis:
    """The functions ``L_a k(A x, A .)`` with values and derivatives at points as ``L_a``, and monomials.

    Parameters
    ----------
    kernel : RadialKernel
    metric : array of shape (q, d)
        The linear map ``A``.
    parts : tuple of Functionals
        The ``L_a``.
    degree : int
        Degree of the monomials: 0 or 1.
    """

    kernel: RadialKernel
    metric: Array
    parts: tuple[Functionals, ...]
    degree: int

    def design(self, X: Array) -> Array:
        """Return all functions at the points, of shape (n, B)."""
        return self._rows(X, 0)

    def gradient_design(self, X: Array) -> Array:
        """Return the gradients of all functions at the points, of shape (n, d, B)."""
        return self._rows(X, 1).reshape(*X.shape, -1)

    def _rows(self, X: Array, order: int) -> Array:
        at = Functionals.at(X, order)
        mapped = at.mapped(self.metric)
        columns = [covariance(self.kernel, mapped, part.mapped(self.metric)) for part in self.parts]
        return np.concatenate([*columns, at.monomials(self.degree)], axis=1)


def process_draws(
    process: Process, n: int, rng: np.random.Generator, n_waves: int = WAVES
) -> tuple[Waves, Array, KernelBasis, Array]:
    """Return ``n`` draws of a process given its rows: waves, their coefficients, kernels and their coefficients.

    Matheron's rule (Wilson, Borovitskiy, Terenin, Mostowsky, Deisenroth, ICML 2020): with a draw ``f`` of the process
    and ``e`` of the noise, ``f + E(. | y - f - e)`` is a draw given the rows ``y``, and the same factorisation gives
    all of them. The draws ``f`` are sums of waves. Coefficients have the shapes (2 M, n, k) and (F + t, n, k).
    """
    rows, factor = process.rows, process.output_factor
    waves = Waves.of(process.kernel, process.metric, n_waves, rng, origin=True)
    coef = rng.standard_normal((len(waves), n, len(factor))) @ factor
    noise = rng.standard_normal((len(rows), n, len(factor))) @ factor * np.sqrt(process.row_variances)[:, None, None]
    prior = rows.gathered(np.concatenate([waves.rows(part) for part in rows.all_parts]) @ coef.reshape(len(coef), -1))
    targets = rows.targets[:, None, :] - prior.reshape(noise.shape) - noise
    given = np.concatenate(process.conditioned(targets.reshape(len(rows), -1)))
    basis = KernelBasis(process.kernel, process.metric, rows.all_parts, rows.degree)
    return waves, coef, basis, given.reshape(len(given), *noise.shape[1:])


def mixture_draws(
    processes: tuple[Process, ...], weights: Array, n: int, rng: np.random.Generator, n_waves: int = WAVES
) -> tuple[Part, ...]:
    """Return the differences of ``n`` draws from a mixture of processes to its mean.

    Each process has its share of the draws, rounded at random.
    """
    own = np.searchsorted(np.cumsum(weights) / weights.sum(), (rng.random() + np.arange(n)) / n)
    own = rng.permutation(np.minimum(own, len(weights) - 1))
    parts = []
    for place, (process, weight) in enumerate(zip(processes, weights, strict=True)):
        draws = np.flatnonzero(own == place)
        waves, coef, basis, given = process_draws(process, len(draws), rng, n_waves)
        mean = np.concatenate(process.conditioned(process.rows.targets))
        coefs = np.repeat(-weight * mean[:, None, :], n, axis=1)
        coefs[:, draws] += given
        parts += [Part(waves, coef, draws=draws), Part(basis, coefs)]
    return tuple(parts)


@dataclass(frozen=True, eq=False)
class Spread:
    """Factors of the differences between draws of processes and the fit: the amplitude that calibrates draws.

    Parameters
    ----------
    parts : tuple of Part
        The differences of ``size`` further draws of the processes from the fit, whose root mean square at a point is
        the standard deviation there.
    size : int
    noise : array of shape (k,)
        The standard deviations of the noise, which count as parts of these.
    growth : Growth
    factors : array of shape (k,)
    """

    parts: tuple[Part, ...]
    size: int
    noise: Array
    growth: Growth
    factors: Array

    def deviations(self, X: Array) -> Array:
        """Return the factors at the points, of shape (n, k)."""
        return np.asarray(self.factors * self.growth.amplitudes(self._sizes(self._values(X))))

    def deviation_gradients(self, X: Array) -> Array:
        """Return their gradients, of shape (n, k, d)."""
        values, gradients = self._values(X), np.zeros((*X.shape, self.size, len(self.noise)))
        for part in self.parts:
            part.add_gradients(X, gradients)
        sizes = self._sizes(values)
        slopes = np.mean(values[:, None] * gradients, axis=2) / sizes[:, None]
        rates = self.factors * self.growth.amplitude_slopes(sizes)
        return np.asarray(np.swapaxes(slopes * rates[:, None], 1, 2))

    def _values(self, X: Array) -> Array:
        total = np.zeros((len(X), self.size, len(self.noise)))
        for part in self.parts:
            part.add_values(X, total)
        return total

    def _sizes(self, values: Array) -> Array:
        """Return the standard deviations at points, from values (n, size, k), of shape (n, k)."""
        return np.asarray(np.sqrt(np.mean(values**2, axis=1) + self.noise**2 + TINY))
