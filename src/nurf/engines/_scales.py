"""Families of linear maps of the inputs, and starting points for learning them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nurf._types import Array
from nurf.jets import Jet
from nurf.kernels import RadialKernel

LOWEST_NOISE, HIGHEST_NOISE = 1e-17, 1e2  # variances, in units of the variance of the process
GUESSES = (0.6, 0.2, 0.07)  # scales to start from, in units of the inverse standard deviations
NOISES = np.full(3, 1e-6), np.full(3, 1e-2)
SHORT = 2.0  # a scale for functions that oscillate, to start from with values alone
LOWEST_SCALE, HIGHEST_SCALE = 1e-8, 1e2  # in units of the inverse standard deviation of an input


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """The learned quantities: a linear map of the inputs (q, d), and the noise of values and derivatives.

    The noise has three variances, or ``d + 2`` if each partial derivative has its own.
    """

    metric: Array
    noise: Array

    @property
    def separate(self) -> Hyperparameters:
        """The hyperparameters with a separate noise of each partial derivative."""
        first = np.broadcast_to(self.noise[1:-1], self.metric.shape[1])
        return Hyperparameters(self.metric, np.concatenate([self.noise[:1], first, self.noise[-1:]]))

    @property
    def common(self) -> Hyperparameters:
        """The hyperparameters with the mean noise of all partial derivatives for each of them."""
        return Hyperparameters(self.metric, np.array([self.noise[0], self.noise[1:-1].mean(), self.noise[-1]]))


@dataclass(frozen=True)
class Prior:
    """Normal priors on the logarithms of scales and noise, in units of the data.

    Parameters
    ----------
    scale : float
        Median of the scale of an input, in units of its inverse standard deviation.
    scale_deviation : float
        Standard deviation of the logarithm of the scale.
    """

    scale: float = 0.3
    scale_deviation: float = 10.0
    noise: float = 1e-8
    noise_deviation: float = 10.0


class Scales(ABC):
    """A family of linear maps of the inputs, and its coordinates.

    Parameters
    ----------
    units : array of shape (d,)
        The inverse standard deviations of the inputs.
    """

    units: Array

    @abstractmethod
    def __str__(self) -> str: ...

    @abstractmethod
    def metric(self, theta: Array) -> Array:
        """Return the map (q, d) with given coordinates."""

    @abstractmethod
    def coordinates(self, metric: Array) -> Array:
        """Return the coordinates of a map, or of a similar map of the family."""

    @abstractmethod
    def pullback(self, theta: Array, slopes: Array) -> Array:
        """Return derivatives with respect to the coordinates from derivatives with respect to the map."""

    @abstractmethod
    def penalty(self, theta: Array, prior: Prior) -> tuple[float, Array]:
        """Return the negative logarithm of the prior, and its derivatives."""

    @abstractmethod
    def bounds(self, theta: Array) -> list[tuple[float, float]]:
        """Return lower and upper bounds of the coordinates."""


@dataclass(frozen=True, eq=False)
class InputScales(Scales):
    """A scale for each input: ``A = diag(exp(theta) units)`` (automatic relevance determination)."""

    units: Array

    def __str__(self) -> str:
        return "a scale for each input"

    def metric(self, theta: Array) -> Array:
        """Return the diagonal matrix."""
        return np.asarray(np.diag(np.exp(theta) * self.units))

    def coordinates(self, metric: Array) -> Array:
        """Return the logarithms of the lengths of the columns."""
        lengths = np.linalg.norm(metric, axis=0) / self.units
        return np.asarray(np.log(np.clip(lengths, LOWEST_SCALE, HIGHEST_SCALE)))

    def pullback(self, theta: Array, slopes: Array) -> Array:
        """Return the derivatives with respect to the logarithms."""
        return np.asarray(np.diag(slopes) * np.exp(theta) * self.units)

    def penalty(self, theta: Array, prior: Prior) -> tuple[float, Array]:
        """Return the normal prior of each logarithm."""
        distance = (theta - np.log(prior.scale)) / prior.scale_deviation
        return float(np.sum(distance**2) / 2), distance / prior.scale_deviation

    def bounds(self, theta: Array) -> list[tuple[float, float]]:
        """Return the smallest and largest scale."""
        return [(float(np.log(LOWEST_SCALE)), float(np.log(HIGHEST_SCALE)))] * len(theta)


@dataclass(frozen=True, eq=False)
class LinearMap(Scales):
    """Any linear map to ``q`` directions, ``A = theta diag(units)``.

    Parameters
    ----------
    units : array of shape (d,)
    rank : int
        The number ``q`` of directions.
    """

    units: Array
    rank: int

    def __str__(self) -> str:
        return f"a linear map to {self.rank} direction{'s' * (self.rank > 1)}"

    def metric(self, theta: Array) -> Array:
        """Return the matrix."""
        return np.asarray(theta.reshape(self.rank, -1) * self.units)

    def coordinates(self, metric: Array) -> Array:
        """Return all entries of the map to the leading directions."""
        _, sizes, directions = np.linalg.svd(metric, full_matrices=False)
        rows = np.zeros((self.rank, len(self.units)))
        leading = (sizes[:, None] * directions)[: self.rank]
        rows[: len(leading)] = leading
        return np.asarray((rows / self.units).ravel())

    def pullback(self, theta: Array, slopes: Array) -> Array:
        """Return the derivatives with respect to all entries."""
        return np.asarray((slopes * self.units).ravel())

    def penalty(self, theta: Array, prior: Prior) -> tuple[float, Array]:
        """Return the normal prior of the logarithm of the length of each row."""
        rows = theta.reshape(self.rank, -1)
        squares = np.maximum(np.sum(rows**2, axis=1), LOWEST_SCALE**2)
        distance = (np.log(squares) / 2 - np.log(prior.scale)) / prior.scale_deviation
        slopes = (distance / prior.scale_deviation / squares)[:, None] * rows
        return float(np.sum(distance**2) / 2), slopes.ravel()

    def bounds(self, theta: Array) -> list[tuple[float, float]]:
        """Return the largest scale with both signs."""
        return [(-HIGHEST_SCALE, HIGHEST_SCALE)] * len(theta)


def gradient_map(gradients: Array, rank: int) -> Array:
    """Return the map to the leading directions of gradients (n, d), with their root mean squares as scales: (q, d).

    The directions are eigenvectors of the mean of ``g g^T``.
    """
    _, sizes, directions = np.linalg.svd(gradients / np.sqrt(len(gradients)), full_matrices=False)
    result = np.zeros((rank, gradients.shape[1]))
    result[: len(sizes)] = (sizes[:, None] * directions)[:rank]
    return result


def n_directions(gradients: Array, energy: float) -> int:
    """Return the number of directions with the share ``energy`` of the mean square of gradients (n, d)."""
    energies = np.linalg.svd(gradients, compute_uv=False) ** 2
    return int(np.searchsorted(np.cumsum(energies), energy * energies.sum())) + 1 if energies.any() else 1


def starts(jet: Jet, units: Array, kernel: RadialKernel) -> Iterator[Hyperparameters]:
    """Yield hyperparameters to start from, the most promising first.

    If gradients are known, scales follow from their sizes (``RadialKernel.curvature``).
    """
    metrics = [np.diag(factor * units) for factor in GUESSES]
    if jet.gradients is not None:
        rows = jet.derivative_rows(1)
        known = np.isfinite(jet.gradients).reshape(rows.shape)
        sizes = np.sqrt(np.sum(rows**2, axis=(0, 1)) / np.maximum(known.sum(axis=(0, 1)), 1)) / kernel.curvature
        metrics = [np.diag(np.maximum(factor * sizes, LOWEST_SCALE * units)) for factor in (1.0, 0.4)] + metrics[:2]
    for metric in metrics:
        for noise in NOISES:
            yield Hyperparameters(metric, noise)


def short_starts(jet: Jet, units: Array) -> Iterator[Hyperparameters]:
    """Yield hyperparameters with short scales to start from, if no gradients tell the scales."""
    if jet.gradients is None:
        for noise in NOISES:
            yield Hyperparameters(np.diag(SHORT * units), noise)
