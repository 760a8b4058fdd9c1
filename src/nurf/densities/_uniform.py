"""The uniform density, which does not depend on data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nurf._types import Array
from nurf.densities._angular import log_sphere_area
from nurf.densities._base import Density, PreparedDensity
from nurf.jets import Jet
from nurf.networks import Box, Domain, Hyperplanes, normalised

DomainOf = str | Domain | None


@dataclass(frozen=True)
class Uniform(Density):
    """Uniform normals, and uniform offsets of the hyperplanes that intersect the domain (paper, eq. 2.6).

    ``dM(a, b) = da / |S^{d-1}| db / (b_max(a) - b_min(a))``, which on the ball of radius ``R`` is
    ``da db / (2 R |S^{d-1}|)``.

    Parameters
    ----------
    domain : {"box"}, Domain or None, default=None
        The set ``D`` that the hyperplanes intersect: ``b`` is uniform in ``-a.D`` (paper, section 4.3.1). "box" is the
        bounding box of the points. None is the domain passed to ``prepare``; estimators pass the unit ball, into which
        the inputs are scaled.
    """

    domain: DomainOf = None

    def __post_init__(self) -> None:
        check_domain(self.domain)

    def _prepare(self, jet: Jet, domain: Domain) -> PreparedDensity:
        return PreparedUniform(domain_of(self.domain, jet, domain), jet.n_features)


@dataclass(frozen=True)
class PreparedUniform(PreparedDensity):
    """The density of ``Uniform`` on a domain."""

    domain: Domain
    dimension: int

    def sample(self, n: int, rng: np.random.Generator) -> Hyperplanes:
        """Return ``n`` independent hyperplanes."""
        return with_uniform_offsets(rng.standard_normal((n, self.dimension)), self.domain, rng)

    def log_density(self, hyperplanes: Hyperplanes) -> Array:
        """Return ``-log |S^{d-1}| - log(b_max - b_min)``, or minus infinity if the hyperplane misses the domain."""
        return log_uniform_offsets(hyperplanes, self.domain) - log_sphere_area(self.dimension)


def check_domain(domain: DomainOf) -> None:
    """Raise a ``ValueError`` unless ``domain`` is "box", a domain or None."""
    if not (domain is None or domain == "box" or hasattr(domain, "offset_range")):
        raise ValueError(f"`domain` must be 'box', a Domain or None, got {domain!r}")


def domain_of(domain: DomainOf, jet: Jet, default: Domain) -> Domain:
    """Return the domain for the parameter ``domain`` of a density."""
    if isinstance(domain, str):
        return Box.around(jet.X)
    return default if domain is None else domain


def with_uniform_offsets(directions: Array, domain: Domain, rng: np.random.Generator) -> Hyperplanes:
    """Return hyperplanes with normals along ``directions`` and uniform offsets such that they intersect the domain."""
    normals = normalised(directions)
    low, high = domain.offset_range(normals)
    return Hyperplanes(normals, rng.uniform(low, high))


def log_uniform_offsets(hyperplanes: Hyperplanes, domain: Domain) -> Array:
    """Return the log-density of the offsets given the normals, as sampled by ``with_uniform_offsets``: (N,)."""
    low, high = domain.offset_range(hyperplanes.normals)
    inside = (hyperplanes.offsets >= low) & (hyperplanes.offsets <= high)
    return np.where(inside, -np.log(high - low), -np.inf)
