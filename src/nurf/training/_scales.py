"""Scales and noise of a process, learned from data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from nurf._types import Array
from nurf.jets import Jet
from nurf.kernels import RadialKernel
from nurf.solvers.process import Criterion, Process, ProcessRows

LOWEST_NOISE, HIGHEST_NOISE = 1e-14, 1e2  # variances, in units of that of the process
LOWEST_SCALE, HIGHEST_SCALE = 1e-4, 1e2  # in units of the inverse standard deviation of an input
REFUSED = 1e100  # value of the criterion if a factorisation fails
TOLERANCE = 1e-5  # of learning, relative to the criterion, which is of the size of the number of rows
MORE_NOISE = 30.0  # factor of the variances of the noise then


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """What is learned: a linear map of the inputs (q, d), and the noise of values and derivatives (3,)."""

    metric: Array
    noise: Array


@dataclass(frozen=True)
class Prior:
    """Normal priors on the logarithms of scales and noise, in units of the data.

    Parameters
    ----------
    scale : float
        Median of the scale of an input, in units of its inverse standard deviation.
    scale_deviation : float
        Standard deviation of its logarithm.
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
        """Return the coordinates of a map, or of one of the family that is like it."""

    @abstractmethod
    def pullback(self, theta: Array, slopes: Array) -> Array:
        """Return derivatives by the coordinates from derivatives by the map."""

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
        """Return the derivatives by the logarithms."""
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
        """Return the derivatives by all entries."""
        return np.asarray((slopes * self.units).ravel())

    def penalty(self, theta: Array, prior: Prior) -> tuple[float, Array]:
        """Return the normal prior of the logarithm of the length of each row."""
        rows = theta.reshape(self.rank, -1)
        squares = np.maximum(np.sum(rows**2, axis=1), LOWEST_SCALE**2)
        distance = (np.log(squares) / 2 - np.log(prior.scale)) / prior.scale_deviation
        slopes = (distance / prior.scale_deviation / squares)[:, None] * rows
        return float(np.sum(distance**2) / 2), slopes.ravel()

    def bounds(self, theta: Array) -> list[tuple[float, float]]:
        """Return the largest scale, on both sides."""
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
    """Return the number of directions that hold the share ``energy`` of the mean square of gradients (n, d)."""
    energies = np.linalg.svd(gradients, compute_uv=False) ** 2
    return int(np.searchsorted(np.cumsum(energies), energy * energies.sum())) + 1 if energies.any() else 1


def learn(
    rows: ProcessRows,
    kernel: RadialKernel,
    scales: Scales,
    start: Hyperparameters,
    criterion: Criterion,
    prior: Prior,
    max_steps: int,
) -> tuple[Hyperparameters, float]:
    """Return hyperparameters of a smaller criterion, by at most ``max_steps`` steps of L-BFGS, and the criterion.

    If the kernel matrix of the start is not positive definite, the noise is increased until it is.
    """
    objective = _Objective(rows, kernel, scales, start, criterion, prior)
    theta = objective.start()
    if max_steps == 0:
        return objective.hyperparameters(theta), objective.value(theta)
    found = minimize(
        objective,
        theta,
        jac=True,
        method="L-BFGS-B",
        bounds=objective.bounds,
        options={"maxiter": max_steps, "maxfun": 2 * max_steps, "maxls": 10, "ftol": TOLERANCE, "gtol": TOLERANCE},
    )
    return objective.hyperparameters(found.x), float(found.fun)


class _Objective:
    """The criterion and the prior as a function of coordinates: of the map, and the logarithms of the noise."""

    def __init__(
        self,
        rows: ProcessRows,
        kernel: RadialKernel,
        scales: Scales,
        start: Hyperparameters,
        criterion: Criterion,
        prior: Prior,
    ) -> None:
        self._rows, self._kernel, self._scales, self._start = rows, kernel, scales, start
        self._criterion, self._prior = criterion, prior
        self._orders = np.unique(rows.orders)  # of whose noise the data know something
        self._q = len(scales.coordinates(start.metric))

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Lower and upper bounds of all coordinates."""
        noise = (float(np.log(LOWEST_NOISE)), float(np.log(HIGHEST_NOISE)))
        return self._scales.bounds(np.empty(self._q)) + [noise] * len(self._orders)

    def start(self) -> Array:
        """Return the coordinates of the start, with more noise if it is needed."""
        noise = np.log(self._start.noise[self._orders])
        theta = np.concatenate([self._scales.coordinates(self._start.metric), noise])
        low, high = np.array(self.bounds).T
        theta = np.clip(theta, low, high)
        noises = slice(self._q, None)
        while self.value(theta) == REFUSED and np.any(theta[noises] < high[noises]):
            theta[noises] = np.minimum(theta[noises] + np.log(MORE_NOISE), high[noises])
        return np.asarray(theta)

    def hyperparameters(self, theta: Array) -> Hyperparameters:
        """Return what the coordinates stand for."""
        noise = self._start.noise.copy()
        noise[self._orders] = np.exp(theta[self._q :])
        return Hyperparameters(self._scales.metric(theta[: self._q]), noise)

    def value(self, theta: Array) -> float:
        """Return the objective without its derivatives."""
        value, process = self._evaluated(theta)
        return REFUSED if process is None else value + self._penalty(theta)[0]

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the objective and its derivatives."""
        value, process = self._evaluated(theta)
        if process is None:
            return REFUSED, np.zeros_like(theta)
        by_metric, by_noise = process.pullback(self._criterion.slopes(process))
        penalty, slopes = self._penalty(theta)
        by_scales = self._scales.pullback(theta[: self._q], by_metric)
        return value + penalty, np.concatenate([by_scales, by_noise[self._orders]]) + slopes

    def _evaluated(self, theta: Array) -> tuple[float, Process | None]:
        """Return the criterion and the process; no process if its kernel matrix is not positive definite."""
        found = self.hyperparameters(theta)
        process = Process(self._rows, self._kernel, found.metric, found.noise)
        try:
            value = self._criterion.value(process)
        except np.linalg.LinAlgError:
            return REFUSED, None
        return (value, process) if np.isfinite(value) else (REFUSED, None)

    def _penalty(self, theta: Array) -> tuple[float, Array]:
        """Return the negative logarithm of the prior, and its derivatives."""
        penalty, slopes = self._scales.penalty(theta[: self._q], self._prior)
        distance = (theta[self._q :] - np.log(self._prior.noise)) / self._prior.noise_deviation
        by_noise = distance / self._prior.noise_deviation
        return penalty + float(np.sum(distance**2) / 2), np.concatenate([slopes, by_noise])


def starts(jet: Jet, units: Array, kernel: RadialKernel) -> Iterator[Hyperparameters]:
    """Yield hyperparameters from which learning may start, the most promising first.

    A process with unit variance has partial derivatives with the mean square ``-phi'(0) s^2`` for the scale ``s``, so
    that gradients show the scales.
    """
    noises = (np.full(3, 1e-6), np.full(3, 1e-2))
    curvature = float(np.sqrt(-kernel.profile(np.zeros(()), 1)))
    metrics = [np.diag(factor * units) for factor in (0.6, 0.2, 0.07)]
    if jet.gradients is not None:
        rows = jet.derivative_rows(1)
        known = np.isfinite(jet.gradients).reshape(rows.shape)
        sizes = np.sqrt(np.sum(rows**2, axis=(0, 1)) / np.maximum(known.sum(axis=(0, 1)), 1)) / curvature
        metrics = [np.diag(np.maximum(factor * sizes, LOWEST_SCALE * units)) for factor in (1.0, 0.4)] + metrics[:2]
    for metric in metrics:
        for noise in noises:
            yield Hyperparameters(metric, noise)
