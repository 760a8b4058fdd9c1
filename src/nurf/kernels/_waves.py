"""Waves: the neurons of which processes with a radial kernel are infinite sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nurf._types import Array
from nurf.kernels._functionals import Functionals
from nurf.kernels._radial import RadialKernel

LENGTHS, N_LENGTHS = (
    (1e-4, 1e4),
    2000,
)  # of frequencies, in units of the kernel, and the nodes at which they are tabulated
SHARE = 1e-14  # of the variance: waves that carry less are within rounding errors


@dataclass(frozen=True, eq=False)
class Waves:
    """The functions ``a (cos(w.x) - 1)`` and ``a sin(w.x)``, or ``a cos(w.x)`` and ``a sin(w.x)``.

    Sums with independent normal coefficients of variance one are processes, by whose kernel the waves were sampled
    (Rahimi, Recht 2007). Cosines and sines in pairs have the variance of the kernel at all points, and cosines that
    vanish at the origin change the process by a constant: that is for processes with an unknown mean.

    Parameters
    ----------
    frequencies : array of shape (M, d)
    amplitudes : array of shape (M,)
    origin : bool
        Whether all waves vanish at the origin.
    """

    frequencies: Array
    amplitudes: Array
    origin: bool = False

    @classmethod
    def of(
        cls, kernel: RadialKernel, metric: Array, n: int, rng: np.random.Generator, *, origin: bool = False
    ) -> Waves:
        """Return ``n`` waves for the process with the covariance ``k(A x, A x')``, for a linear map ``A`` (q, d)."""
        directions = rng.standard_normal((n, len(metric)))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lengths, weights = _lengths(kernel, len(metric), n, rng)
        return cls((lengths[:, None] * directions) @ metric, np.sqrt(weights), origin)

    def __len__(self) -> int:
        """Return the number of functions, ``2 M``."""
        return 2 * len(self.frequencies)

    def design(self, X: Array) -> Array:
        """Return all functions at the points, cosines first, of shape (n, 2 M)."""
        phases = X @ self.frequencies.T
        sines = np.sin(phases)
        if self.origin:
            np.multiply(phases, 0.5, out=phases)
            cosines = -2 * np.sin(phases, out=phases) ** 2  # exact for long waves, whose amplitudes are large
        else:
            cosines = np.cos(phases, out=phases)
        return np.concatenate([self.amplitudes * cosines, self.amplitudes * sines], axis=1)

    def gradient_design(self, X: Array) -> Array:
        """Return the gradients of all functions at the points, of shape (n, d, 2 M)."""
        phases = X @ self.frequencies.T
        slopes = [-self.amplitudes * np.sin(phases), self.amplitudes * np.cos(phases)]
        return np.concatenate([slope[:, None, :] * self.frequencies.T for slope in slopes], axis=2)

    def rows(self, functionals: Functionals) -> Array:
        """Return functionals of order 0, 1 or 2 of all functions, of shape (m, 2 M)."""
        points = functionals.points[functionals.index]
        if functionals.order == 0:
            return self.design(points)
        factors = self.amplitudes * np.prod([v @ self.frequencies.T for v in functionals.directions], axis=0)
        phases = points @ self.frequencies.T
        turns = (-np.sin(phases), np.cos(phases)) if functionals.order == 1 else (-np.cos(phases), -np.sin(phases))
        return np.concatenate([factors * turn for turn in turns], axis=1)


def _lengths(kernel: RadialKernel, d: int, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return lengths of the frequencies of ``n`` waves and the weights of these, of shape (n,).

    Half of them are as frequent as their density, less long waves, which few samples determine. The logarithms of the
    others are uniform: what a process does between samples that are close to each other are short waves, however rare.
    """
    nodes = np.linspace(np.log(LENGTHS[0]), np.log(LENGTHS[1]), N_LENGTHS)
    lengths = np.exp(nodes)
    density = kernel.spectral_density(lengths, d) * lengths  # of the logarithms
    common = density * np.minimum(lengths**2, 1.0)
    common /= common.sum()
    rest = np.cumsum(common[::-1])[::-1]
    kept = (np.cumsum(common) > SHARE) & (rest > SHARE)
    proposal = (common + kept / np.count_nonzero(kept)) / 2
    ends = np.concatenate([[0.0], np.cumsum(proposal)])
    places = np.interp((np.arange(n) + rng.random(n)) / n * ends[-1], ends, np.arange(N_LENGTHS + 1) - 0.5)
    nearest = np.clip(np.round(places).astype(int), 0, N_LENGTHS - 1)
    step = nodes[1] - nodes[0]
    return np.exp(nodes[0] + step * places), density[nearest] * step / (n * proposal[nearest])
