"""How errors grow with the standard deviations that a process expects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nurf._types import Array
from nurf.solvers._coverage import calibration, upper_quantile

TAILS = 4.0  # degrees of freedom of the errors: one gross error does not decide
POWERS = np.linspace(0, 1, 21)  # that are compared
EXPECTED = 0.5  # standard deviation of the power before the errors are seen
SWEEPS = 40  # of the fixed point for the scale of the errors: far more than it needs
LEAST = 1e-300  # squared scale of errors that are all zero


@dataclass(frozen=True, eq=False)
class Growth:
    """Errors ``e`` in proportion to ``s (s / u)^p``, with the standard deviations ``s`` that a process expects.

    A process knows the scales that fit all samples, most of which are surrounded by others, and it is there that
    constant factors of its standard deviations are decided. At the faces of the domain, where it extrapolates, its
    standard deviations are larger, but not by as much as its errors are. The power ``p`` with the largest likelihood
    of errors at samples that were held out corrects that, between the smallest and the largest ``s`` there. ``u`` is
    the geometric mean of the ``s`` there.

    Share of new values within 1.645 standard deviations, over 38 functions of the collection with 20, 50 and 100
    samples, with and without gradients: 0.92 inside, 0.83 at points of which half the inputs are at an end, and 0.74
    at corners with ``p = 0``; 0.92, 0.86 and 0.82 with the power. Interval scores are the same within 3%.

    Parameters
    ----------
    power : float
        ``p``, between 0 and 1.
    unit : array of shape (k,)
        ``u``.
    smallest, largest : array of shape (k,)
        The smallest and the largest ``s`` at samples that were held out, beyond which ``s / u`` does not change.
    ratios : array of shape (m, k)
        The absolute errors there in units of ``s (s / u)^p``.
    """

    power: float
    unit: Array
    smallest: Array
    largest: Array
    ratios: Array

    @classmethod
    def of(cls, errors: Array, deviations: Array) -> Growth:
        """Return the growth of errors (m, k), with the standard deviations (m, k) that were expected."""
        logarithms = np.log(deviations)
        unit = np.exp(logarithms.mean(axis=0))
        excess, ratios = logarithms - np.log(unit), np.abs(errors) / deviations
        tried = ratios * np.exp(-np.multiply.outer(POWERS, excess))  # (p, m, k)
        squares = np.maximum(tried / np.maximum(np.median(ratios, axis=0), LEAST**0.5), LEAST**0.5) ** 2
        scales = np.ones_like(squares[:, :1])
        for _ in range(SWEEPS):
            weights = (TAILS + 1) / (TAILS + squares / scales)
            scales = np.maximum(np.mean(weights * squares, axis=1, keepdims=True), LEAST)
        densities = -(TAILS + 1) / 2 * np.log1p(squares / (TAILS * scales)) - np.log(scales) / 2
        densities -= np.multiply.outer(POWERS, excess)
        best = np.argmax(densities.sum(axis=(1, 2)) - (POWERS / EXPECTED) ** 2 / 2)
        return cls(float(POWERS[best]), unit, deviations.min(axis=0), deviations.max(axis=0), tried[best])

    def amplitudes(self, deviations: Array) -> Array:
        """Return ``(s / u)^p`` for standard deviations ``s`` of shape (..., k)."""
        return np.asarray((np.clip(deviations, self.smallest, self.largest) / self.unit) ** self.power)

    def amplitude_slopes(self, deviations: Array) -> Array:
        """Return the derivatives of ``(s / u)^p`` by ``s``, of shape (..., k)."""
        grows = (self.smallest < deviations) & (deviations < self.largest)
        return np.where(grows, self.power * self.amplitudes(deviations) / deviations, 0.0)

    def factors(self, effective: float) -> Array:
        """Return the factors that calibrate ``s (s / u)^p``, of shape (k,)."""
        return calibration(self.ratios, effective)

    def bounds(self, coverage: float, effective: float) -> Array:
        """Return the number of ``s (s / u)^p`` that hold an error with probability ``coverage``, of shape (k,)."""
        return upper_quantile(self.ratios, coverage, effective)
