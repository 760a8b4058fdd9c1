"""Sampling from the exact integral representation of the function (paper, section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nurf._blocks import row_blocks
from nurf._types import Array
from nurf._validation import is_whole
from nurf.densities._angular import sample_around, sphere_quadrature
from nurf.densities._base import Density, PreparedDensity
from nurf.densities._point_density import PointDensity, check_rho, log_point_density
from nurf.densities._profiles import Mollifier, Profile, as_mollifier
from nurf.densities._rows import complete
from nurf.densities._samplers import SAMPLERS, Draw, Sampler
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.networks import Domain, Hyperplanes

DATA = ("values", *DERIVATIVE_KINDS.values())  # by the order of the derivative


@dataclass(frozen=True)
class Representation(Density):
    """The density ``|c_delta(a, b)|``, with the exact coefficients of the smoothed function (paper, eq. 3.5).

    If ``f`` vanishes outside the domain of the data, then
    ``eta_delta * f = int sigma_s(a.x + b) c_delta(a, b) da db + p`` with a polynomial ``p`` of degree s - 1 and

    - ``c_delta = int f(x) psi_{s,delta}(a.x + b) dx`` from values,
    - ``c_delta = int a.grad f(x) psi_{s-1,delta}(a.x + b) dx`` from gradients,
    - ``c_delta = int a^T hess f(x) a psi_{s-2,delta}(a.x + b) dx`` from Hessians,

    (sections 3.2, 4.1 and 4.4). The integral is estimated by the weighted mean over the data of the integrand divided
    by the density ``rho`` of the points; points at which the data are not fully known contribute zero. For several
    outputs, ``|c_delta|`` is the norm of the vector of their coefficients.

    Parameters
    ----------
    order : int, default=1
        The order ``s`` of the activation: 1 for steps, 2 for ramps, ``p + 1`` for powers ``p`` of ramps.
    width : float, optional
        The paper's ``delta``. Default is the width of the neurons.
    mollifier : {"logistic", "gaussian", "cauchy"} or Mollifier, default="logistic"
        The mollifier ``eta``: the derivative of the sigmoid, the normal density, or the Cauchy density of the authors'
        experiments.
    data : {"values", "gradients", "hessians"}, optional
        The data, which determine the formula. Default is gradients for order 1, Hessians for higher orders.
    rho : {"uniform", "knn"} or callable, default="uniform"
        The density of the points: "uniform" on their bounding box, "knn" for an estimate from the distances to their
        nearest neighbours, or a function that maps scaled points (n, d) to densities (n,).
    sampler : {"rejection", "metropolis"} or Sampler, default="rejection"
        The method to sample hyperplanes from the density.
    """

    order: int = 1
    width: float | None = None
    mollifier: str | Mollifier = "logistic"
    data: str | None = None
    rho: PointDensity = "uniform"
    sampler: str | Sampler = "rejection"

    def __post_init__(self) -> None:
        if not is_whole(self.order):
            raise ValueError(f"`order` must be a whole number >= 1, got {self.order!r}")
        if self.width is not None and not (np.isfinite(self.width) and self.width > 0):
            raise ValueError(f"`width` must be a number > 0, got {self.width!r}")
        as_mollifier(self.mollifier)
        if isinstance(self.sampler, str) and self.sampler not in SAMPLERS:
            raise ValueError(f"`sampler` must be one of {', '.join(SAMPLERS)}, or an object, got {self.sampler!r}")
        if self.data is not None and self.data not in DATA[: self.order + 1]:
            raise ValueError(
                f"`data` must be one of {', '.join(DATA[: self.order + 1])} for order {self.order}, got {self.data!r}"
            )
        check_rho(self.rho)

    @property
    def power(self) -> int:
        """The order of the derivative that is used as data: 0, 1 or 2."""
        return min(self.order, len(DATA) - 1) if self.data is None else DATA.index(self.data)

    @property
    def needs(self) -> frozenset[str]:
        """The kind of derivatives in the formula; empty if it uses values."""
        return frozenset(DATA[self.power : self.power + 1]) - {"values"}

    def missing(self, jet: Jet) -> list[str]:
        """Return the derivatives that the formula requires and the data lack; they must be known in all directions."""
        incomplete = [f"complete {DATA[self.power]}"] if self.power and not complete(jet, self.power).any() else []
        return super().missing(jet) or incomplete

    def at_width(self, width: float) -> Representation:
        """Return a copy with the width of the neurons if ``width`` is None."""
        return replace(self, width=width) if self.width is None else self

    def _prepare(self, jet: Jet, domain: Domain) -> PreparedDensity:
        if self.width is None:
            raise ValueError("`width` must be a number > 0, got None: the width of the neurons is unknown")
        mollifier = as_mollifier(self.mollifier)
        d = jet.n_features
        profile = Profile(mollifier, d, self.order - self.power, self.width * mollifier.stretch(d, self.order))
        data = _data(jet, self.power)
        scale = float(np.abs(data).max())
        if scale == 0:
            raise ValueError(f"all known {DATA[self.power]} are zero: the density is zero everywhere; use Uniform()")
        directions, strengths = _decomposition(data / scale, d)
        weights, rho = jet.weights(min(self.power, 1)), np.exp(log_point_density(self.rho, jet))
        strengths = strengths * (weights / weights.sum() / rho)[:, None, None]
        sampler = SAMPLERS[self.sampler] if isinstance(self.sampler, str) else self.sampler
        return PreparedRepresentation(jet.X, directions, strengths, scale, self.power, profile, domain, sampler)


@dataclass(frozen=True, eq=False)
class PreparedRepresentation(PreparedDensity):
    """The density of ``Representation``: ``c(a, b) = scale sum_k psi(a.x_k + b) sum_i w_ki (a.v_ki)^power``.

    Parameters
    ----------
    points : array of shape (K, d)
        The points ``x_k``.
    directions : array of shape (K, k m', d)
        The unit vectors ``v`` for all ``k`` outputs: gradients or eigenvectors of Hessians.
    strengths : array of shape (K, k, m')
        The factors ``w`` for each of ``k`` outputs.
    scale : float
        The largest absolute value of the data, which are divided by it to avoid overflow and underflow.
    power : int
        The order of the derivative that is used as data.
    profile : Profile
        The function ``psi``.
    domain : Domain
        The density is zero for hyperplanes that do not intersect it.
    sampler : Sampler
        The method to sample hyperplanes.
    """

    points: Array
    directions: Array
    strengths: Array
    scale: float
    power: int
    profile: Profile
    domain: Domain
    sampler: Sampler

    @property
    def width(self) -> float:
        """The length scale of the density."""
        return self.profile.width

    def coefficients(self, hyperplanes: Hyperplanes) -> Array:
        """Return ``c(a, b)`` for each output, of shape (N, k)."""
        return np.asarray(self._sums(hyperplanes)[0] * self.scale)

    def ratios(self, hyperplanes: Hyperplanes) -> tuple[Array, Array]:
        """Return ``|c|``, 0 outside the domain, and the bound ``scale sum_k |psi| sum_i |w_ki| |a.v_ki|^power``."""
        coefficients, bounds = self._sums(hyperplanes)
        low, high = self.domain.offset_range(hyperplanes.normals)
        inside = (hyperplanes.offsets >= low) & (hyperplanes.offsets <= high)
        sizes = np.linalg.norm(coefficients, axis=1) * self.scale
        return np.where(inside, sizes, 0.0), bounds * self.scale

    def log_density(self, hyperplanes: Hyperplanes) -> Array:
        """Return ``log |c(a, b)|``, the log-density plus ``log_constant()``; minus infinity outside the domain."""
        sizes, _ = self.ratios(hyperplanes)
        return np.log(sizes, where=sizes > 0, out=np.full(len(sizes), -np.inf))

    def log_constant(self, nodes: int = 200) -> float:
        """Return ``log int |c(a, b)| da db``, by quadrature with ``nodes`` offsets and ``nodes`` angles, for d <= 3."""
        normals, areas = sphere_quadrature(self.points.shape[1], nodes)
        low, high = self.domain.offset_range(normals)
        shares = (np.arange(nodes) + 0.5) / nodes
        offsets = low[:, None] + (high - low)[:, None] * shares
        planes = Hyperplanes(np.repeat(normals, nodes, axis=0), offsets.ravel())
        sizes, _ = self.ratios(planes)
        return float(np.log(np.sum(areas * (high - low) * sizes.reshape(-1, nodes).mean(axis=1))))

    def sample(self, n: int, rng: np.random.Generator) -> Hyperplanes:
        """Return ``n`` hyperplanes drawn from the density."""
        return self.draw(n, rng).hyperplanes

    def draw(self, n: int, rng: np.random.Generator) -> Draw:
        """Return ``n`` hyperplanes drawn from the density, with the acceptance rate and the number of candidates."""
        return self.sampler.draw(self, n, rng)

    def propose(self, n: int, rng: np.random.Generator) -> Hyperplanes:
        """Return ``n`` hyperplanes sampled from the bound of ``ratios``, which is a mixture over the data.

        Sample a pair ``(x_k, v)`` with probability proportional to ``|w|``, a normal with density proportional to
        ``|a.v|^power``, and ``a.x_k + b`` with density proportional to ``|psi|``.
        """
        cumulative, (nodes, integrals) = self._cumulative
        pair = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
        point, column = np.divmod(pair, self.directions.shape[1])
        normals = sample_around(self.directions[point, column], self.power, rng)
        shift = np.interp(rng.random(n) * integrals[-1], integrals, nodes)
        return Hyperplanes.through(self.points[point], normals, shift)

    @cached_property
    def _cumulative(self) -> tuple[Array, tuple[Array, Array]]:
        """The cumulative sums of ``|w|``, and the cumulative integrals of ``|psi|`` over all possible distances."""
        farthest = float(np.linalg.norm(self.points, axis=1).max())
        return np.cumsum(np.abs(self.strengths)), self.profile.cumulative(farthest + self.domain.max_norm)

    def _sums(self, hyperplanes: Hyperplanes) -> tuple[Array, Array]:
        """Return the coefficients (N, k) and their bounds (N,), both divided by ``scale``."""
        K, outputs, terms = self.strengths.shape
        flat = self.directions.reshape(-1, self.directions.shape[2])
        coefficients, bounds = np.empty((len(hyperplanes), outputs)), np.empty(len(hyperplanes))
        sizes = np.abs(self.strengths)
        for rows in row_blocks(len(hyperplanes), K * outputs * terms, elements=2**17):
            planes = hyperplanes[rows]
            weights = self.profile(planes.signed_distance(self.points).T)
            powers = ((planes.normals @ flat.T) ** self.power).reshape(-1, K, outputs, terms)
            coefficients[rows] = np.einsum("nk,nkoi,koi->no", weights, powers, self.strengths, optimize=True)
            bounds[rows] = np.einsum("nk,nkoi,koi->n", np.abs(weights), np.abs(powers), sizes, optimize=True)
        return coefficients, bounds


def _data(jet: Jet, power: int) -> Array:
    """Return values (K, k), gradients (K, k, d) or Hessians (K, k, d, d); zero if they are not fully known."""
    array = jet.derivatives(power) if power else jet.y
    assert array is not None
    array = array.reshape(len(jet), -1, *array.shape[array.ndim - power :])
    unknown = np.isnan(array).any(axis=tuple(range(2, 2 + power)), keepdims=True)
    if power == 1 and jet.frames is not None:
        unknown |= ~complete(jet, power)[:, None, None]
    return np.where(unknown, 0.0, array)


def _decomposition(data: Array, d: int) -> tuple[Array, Array]:
    """Return unit vectors ``v`` (K, k m', d) and factors ``w`` (K, k, m') that express the data along any normal ``a``.

    ``sum_i w_i (a.v_i)^power`` is ``f`` for values (with any ``v``), ``a.grad f`` for gradients (with their direction
    and length), and ``a^T hess f a`` for Hessians (with their eigenvectors and eigenvalues). The signs of
    eigenvectors do not depend on how they were computed: samples are drawn around them.
    """
    n = len(data)
    if data.ndim == 2:
        return np.broadcast_to(np.eye(d)[0], (n, data.shape[1], d)), data[..., None]
    if data.ndim == 3:
        lengths = np.linalg.norm(data, axis=2, keepdims=True)
        return np.where(lengths > 0, data / np.where(lengths > 0, lengths, 1.0), np.eye(d)[0]), lengths
    values, vectors = np.linalg.eigh((data + np.swapaxes(data, 2, 3)) / 2)
    side = np.cos(np.arange(1, d + 1))  # orthogonal to no integer vector, nor in practice to any eigenvector
    vectors = np.swapaxes(vectors, 2, 3)
    return np.where(vectors @ side < 0, -1.0, 1.0)[..., None].reshape(n, -1, 1) * vectors.reshape(n, -1, d), values
