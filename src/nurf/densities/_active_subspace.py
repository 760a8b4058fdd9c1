"""The active-subspace density: one covariance matrix of derivatives for the whole domain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nurf._types import Array
from nurf.densities._angular import in_range, log_sphere_area, principal_axes
from nurf.densities._base import DerivativeDensity, PreparedDensity
from nurf.densities._point_density import PointDensity, check_rho, relative_volumes
from nurf.densities._rows import scaled_rows
from nurf.densities._uniform import DomainOf, check_domain, domain_of, log_uniform_offsets, with_uniform_offsets
from nurf.jets import Jet
from nurf.networks import Domain, Hyperplanes


@dataclass(frozen=True)
class ActiveSubspace(DerivativeDensity):
    """Angular central Gaussian normals with ``C = sum_k g_k g_k^T``, and uniform offsets (paper, section 4.3.1).

    ``a = g / |g|`` with ``g ~ N(0, C)``; for ``order=2``, ``C = sum_k H_k H_k^T``. The sums are weighted by the sample
    weights. All normals lie in the range of ``C``: if the function is constant along a direction, no neuron varies
    along it. An unknown partial derivative is replaced by a random number of typical size.

    Parameters
    ----------
    order : {1, 2}, default=1
        1 to use gradients, 2 to use Hessians.
    domain : {"box"}, Domain or None, default=None
        The set that the hyperplanes intersect; see ``Uniform``.
    rho : {"uniform", "knn"} or callable, default="uniform"
        The density of the points, by which the terms of ``C`` are divided; see ``Representation``.
    """

    domain: DomainOf = None
    rho: PointDensity = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_domain(self.domain)
        check_rho(self.rho)

    def _prepare(self, jet: Jet, domain: Domain) -> PreparedDensity:
        masses = jet.weights(1) * relative_volumes(self.rho, jet)
        rows = scaled_rows(jet, self.order) * np.sqrt(masses)[:, None, None]
        scales, axes = principal_axes(rows.reshape(-1, jet.n_features))
        return PreparedActiveSubspace(domain_of(self.domain, jet, domain), scales, axes)


@dataclass(frozen=True, eq=False)
class PreparedActiveSubspace(PreparedDensity):
    """The density of ``ActiveSubspace`` with ``C = axes^T diag(scales)^2 axes``, ``axes`` of shape (r, d)."""

    domain: Domain
    scales: Array
    axes: Array

    def sample(self, n: int, rng: np.random.Generator) -> Hyperplanes:
        """Return ``n`` independent hyperplanes."""
        # noise in the original coordinates: the result does not depend on the signs of the axes
        directions = (rng.standard_normal((n, self.axes.shape[1])) @ self.axes.T * self.scales) @ self.axes
        return with_uniform_offsets(directions, self.domain, rng)

    def log_density(self, hyperplanes: Hyperplanes) -> Array:
        """Return the log of eq. 4.4 times the density of the offset; minus infinity outside the range of ``C``."""
        coordinates, inside = in_range(hyperplanes.normals, self.axes)
        lengths = np.linalg.norm(coordinates / self.scales, axis=1)  # sqrt(a^T C^+ a)
        lengths = np.maximum(lengths, np.finfo(float).tiny)
        r = len(self.scales)
        angular = -log_sphere_area(r) - np.log(self.scales).sum() - r * np.log(lengths)
        return np.where(inside, angular + log_uniform_offsets(hyperplanes, self.domain), -np.inf)
