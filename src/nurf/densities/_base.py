"""Base classes of the densities."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from nurf._types import Array
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.networks import Ball, Domain, Hyperplanes


class PreparedDensity(ABC):
    """A probability density on hyperplanes that can be sampled."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Hyperplanes:
        """Return ``n`` hyperplanes drawn from the density."""

    @abstractmethod
    def log_density(self, hyperplanes: Hyperplanes) -> Array:
        """Return the logarithm of the density with respect to ``da db``, of shape (N,).

        ``da`` is the surface measure of the unit sphere. If all normals lie in a subspace, it is the surface measure of
        the unit sphere in that subspace, and the density is zero elsewhere. If there are finitely many normals, it is
        the counting measure. Some densities are known only up to a constant factor; their docstrings say so.
        """


class Density(ABC):
    """The parameters of a density on hyperplanes. ``prepare`` computes the density from data."""

    @property
    def label(self) -> str:
        """The name in words: "active subspace"."""
        return re.sub("(?<!^)([A-Z])", r" \1", type(self).__name__).lower()

    @property
    def additive(self) -> bool:
        """Whether networks of these neurons are sums of functions of single inputs."""
        return False

    @property
    def needs(self) -> frozenset[str]:
        """The kinds of derivatives that the density requires."""
        return frozenset()

    def missing(self, jet: Jet) -> list[str]:
        """Return the kinds of derivatives that the density requires and the data lack; empty if it can be prepared."""
        return sorted(self.needs - jet.known)

    def at_width(self, width: float) -> Density:
        """Return a copy in which parameters that are None are set from the width of the neurons."""
        return self

    def prepare(self, jet: Jet, domain: Domain | None = None) -> PreparedDensity:
        """Return the density for the given data.

        Parameters
        ----------
        jet : Jet
            Points in the domain, with values and derivatives of the function. Rows of weight zero are ignored.
        domain : Domain, default=Ball(1)
            The domain of the function. Uniform offsets, and the offsets of ``Representation``, are restricted to
            hyperplanes that intersect it.
        """
        jet = jet.with_positive_weight()
        if missing := self.missing(jet):
            given = ", ".join(sorted(jet.known)) or "no derivatives"
            raise ValueError(f"{self!r} needs {' and '.join(missing)}, got {given}")
        return self._prepare(jet, Ball() if domain is None else domain)

    @abstractmethod
    def _prepare(self, jet: Jet, domain: Domain) -> PreparedDensity: ...


@dataclass(frozen=True)
class DerivativeDensity(Density):
    """A density based on gradients (``order=1``) or Hessians (``order=2``); see the paper, sections 4.3 and 4.4."""

    order: int = 1

    def __post_init__(self) -> None:
        if self.order not in tuple(DERIVATIVE_KINDS):
            raise ValueError(f"`order` must be 1 (gradients) or 2 (Hessians), got {self.order!r}")

    @property
    def needs(self) -> frozenset[str]:
        """Gradients for order 1, Hessians for order 2."""
        return frozenset({DERIVATIVE_KINDS[self.order]})
