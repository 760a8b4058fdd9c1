"""What a law on hyperplanes is, and what it asks of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from nurf._types import Array
from nurf.jets import Jet
from nurf.networks import Ball, Domain, Hyperplanes


class PreparedDensity(ABC):
    """A probability law on hyperplanes, ready to be sampled."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Hyperplanes:
        """Draw ``n`` independent hyperplanes."""

    @abstractmethod
    def log_density(self, hyperplanes: Hyperplanes) -> Array:
        """Return the logarithm of the density with respect to ``da db``, of shape (N,).

        ``da`` is the surface measure of the unit sphere; where all normals lie in a subspace, that of the subspace's
        own unit sphere, and the density is zero off it. A law that is known only up to a constant factor says so.
        """


class Density(ABC):
    """The recipe of a law: parameters only. ``prepare`` makes the law from data."""

    @property
    def needs(self) -> frozenset[str]:
        """The kinds of derivatives without which the law cannot be made."""
        return frozenset()

    def at_width(self, width: float) -> Density:
        """Fill in the parameters whose default follows the width of the neurons."""
        return self

    def prepare(self, jet: Jet, domain: Domain | None = None) -> PreparedDensity:
        """Make the law from the data.

        Parameters
        ----------
        jet : Jet
            Points in the domain, and what is known of the function there. Rows of weight zero do not count.
        domain : Domain, default Ball(1)
            The set that the hyperplanes of a law without data of their own must meet.
        """
        jet = jet.with_positive_weight()
        missing = sorted(self.needs - jet.known)
        if missing:
            given = ", ".join(sorted(jet.known)) or "no derivatives"
            raise ValueError(f"{self!r} needs {' and '.join(missing)}, got {given}")
        return self._prepare(jet, Ball() if domain is None else domain)

    @abstractmethod
    def _prepare(self, jet: Jet, domain: Domain) -> PreparedDensity: ...


@dataclass(frozen=True)
class DerivativeDensity(Density):
    """A recipe that uses derivatives: gradients for ``order=1``, Hessians for ``order=2`` (paper, 4.3 and 4.4)."""

    order: int = 1

    def __post_init__(self) -> None:
        if self.order not in (1, 2):
            raise ValueError(f"`order` must be 1 (gradients) or 2 (Hessians), got {self.order!r}")

    @property
    def needs(self) -> frozenset[str]:
        """Gradients or Hessians."""
        return frozenset({"gradients" if self.order == 1 else "hessians"})

    def _directions(self, jet: Jet) -> Array:
        """Return ``jet.directions`` divided by its largest entry; laws do not depend on the scale of ``f``."""
        directions = jet.derivative_rows(self.order)
        if jet.derivative_weight is not None:
            directions = np.where(jet.derivative_weight[:, None, None] > 0, directions, 0.0)
        largest = np.abs(directions).max()
        if largest == 0:
            (kind,) = self.needs
            raise ValueError(
                f"all known {kind} are zero: they show no direction in which the function varies; use Uniform()"
            )
        return np.asarray(directions / largest)
