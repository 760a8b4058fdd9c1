"""Metrics: linear maps of the inputs, learned from gradients, in which hyperplanes are sampled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nurf._types import Array
from nurf.jets import Jet, unchecked
from nurf.networks import Hyperplanes

LEARNED_FLOOR = 1e-8  # smallest relative eigenvalue of a learned map, which may ignore inputs
FLOOR = 1e-4  # of the eigenvalues of the gradients' covariance, relative to the largest


@dataclass(frozen=True, eq=False)
class InputMap:
    """The change of inputs ``x -> M x``.

    Parameters
    ----------
    matrix : array of shape (d, d)
        ``M``, invertible.
    """

    matrix: Array

    def __call__(self, jet: Jet) -> Jet:
        """Return the jet as a function of ``M x``; unknown derivatives are zero."""
        inverse = np.linalg.inv(self.matrix)
        gradients = hessians = None
        if jet.gradients is not None:
            gradients = (jet.derivative_rows(1) @ inverse).reshape(jet.gradients.shape)
        if jet.hessians is not None:
            hessians = inverse.T @ np.nan_to_num(jet.hessians) @ inverse
        return unchecked(jet.X @ self.matrix.T, jet.y, gradients, hessians, jet.sample_weight, jet.derivative_weight)

    def back(self, hyperplanes: Hyperplanes) -> tuple[Hyperplanes, Array]:
        """Return the hyperplanes in ``x``, and the factors by which distances to them shrink there, of shape (N,).

        ``a.(M x) + b = |M^T a| (a'.x + b')``: a neuron of width ``w`` becomes one of width ``w / |M^T a|``.
        """
        normals = hyperplanes.normals @ self.matrix
        lengths = np.linalg.norm(normals, axis=1)
        return Hyperplanes(normals / lengths[:, None], hyperplanes.offsets / lengths), 1 / lengths


class Metric(ABC):
    """The recipe of a linear map: ``prepare`` makes it from data."""

    name: ClassVar[str]

    @property
    def needs(self) -> frozenset[str]:
        """The kinds of derivatives that the metric needs."""
        return frozenset({"gradients"})

    @abstractmethod
    def prepare(self, jet: Jet) -> InputMap | None:
        """Return the map, or None for the identity."""


@dataclass(frozen=True)
class Isotropic(Metric):
    """The inputs as they are."""

    name = "isotropic"

    @property
    def needs(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def prepare(self, jet: Jet) -> None:
        """Return None."""
        return


@dataclass(frozen=True)
class Diagonal(Metric):
    """A scale for each input: the root mean square of its partial derivative (automatic relevance determination)."""

    name = "diagonal"

    def prepare(self, jet: Jet) -> InputMap | None:
        """Return the map ``diag(C)^(1/2)`` with ``C = sum_k w_k g_k g_k^T``."""
        return _map(jet, np.diag(_covariance(jet)), np.eye(jet.n_features))


@dataclass(frozen=True)
class Full(Metric):
    """All directions scaled by the root mean square of the derivative along them."""

    name = "full"

    def prepare(self, jet: Jet) -> InputMap | None:
        """Return the map ``C^(1/2)`` with ``C = sum_k w_k g_k g_k^T``."""
        return _map(jet, *np.linalg.eigh(_covariance(jet)))


@dataclass(frozen=True)
class Learned(Metric):
    """A linear map that another engine learned from the samples.

    Parameters
    ----------
    matrix : tuple of tuple of float
        The rows of a map to ``q`` directions.
    """

    matrix: tuple[tuple[float, ...], ...]
    name = "learned"

    @property
    def needs(self) -> frozenset[str]:
        """No derivatives: the map is given."""
        return frozenset()

    def prepare(self, jet: Jet) -> InputMap | None:
        """Return the map ``(A^T A)^(1/2)``, so that it is invertible."""
        A = np.array(self.matrix)
        return _map(jet, *np.linalg.eigh(A.T @ A), LEARNED_FLOOR)


def _covariance(jet: Jet) -> Array:
    rows = jet.derivative_rows(1) * np.sqrt(jet.weights(1))[:, None, None]
    rows = rows.reshape(-1, jet.n_features)
    largest = np.abs(rows).max(initial=0.0)
    rows = rows / (largest or 1.0)
    return np.asarray(rows.T @ rows)


def _map(jet: Jet, eigenvalues: Array, vectors: Array, floor: float = FLOOR) -> InputMap | None:
    """Return the square root of the covariance, scaled so that the points fill the unit ball as before."""
    largest = eigenvalues.max()
    if largest <= 0:
        return None
    matrix = (vectors * np.sqrt(np.maximum(eigenvalues / largest, 0.0) + floor)) @ vectors.T
    before, after = (np.sqrt((X**2).sum(axis=1).max()) for X in (jet.X, jet.X @ matrix.T))
    return InputMap(matrix * (before / after)) if before > 0 and after > 0 else None
