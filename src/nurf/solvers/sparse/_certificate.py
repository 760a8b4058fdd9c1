"""The dual certificate ``|<r, sigma(omega)>|``, and the search for its maxima over all neurons at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nurf._types import Array, Index
from nurf.activations import Activation
from nurf.densities import Density, Local, Uniform
from nurf.jets import Jet
from nurf.networks import Ball, Features, Hyperplanes
from nurf.solvers.sparse._charts import Bounds, Chart
from nurf.solvers.sparse._misfit import Residual
from nurf.solvers.sparse._options import PeakSearch
from nurf.solvers.sparse._penalties import row_sizes


@dataclass(frozen=True, eq=False)
class Peaks:
    """Local maxima of the certificate, largest first.

    Attributes
    ----------
    features : Features
        The neurons.
    moments : array of shape (N, k)
        ``p(omega) = <r, sigma(omega)>`` at the maxima.
    """

    features: Features
    moments: Array

    @property
    def largest(self) -> float:
        """The largest ``|p|``."""
        return float(row_sizes(self.moments).max(initial=0.0))

    def __getitem__(self, index: Index) -> Peaks:
        """Return some of the peaks."""
        return Peaks(self.features[index], self.moments[index])


def find_peaks(
    residual: Residual,
    residual_jet: Jet,
    activation: Activation,
    bounds: Bounds,
    rng: np.random.Generator,
    search: PeakSearch,
    *,
    widths: bool = False,
    also: Features | None = None,
) -> Peaks:
    """Return local maxima of ``|p(omega)|``, by ascent from many starts at once.

    Parameters
    ----------
    residual : Residual
    residual_jet : Jet
        The residual at the points, with gradients if they are known. Seeds are sampled with these gradients.
    activation : Activation
        An activation with one width. If widths are searched, seeds have random widths within the bounds.
    bounds : Bounds
    rng : numpy.random.Generator
    search : PeakSearch
    widths : bool
        Whether widths are also searched.
    also : Features, optional
        Further starts, such as the neurons of the network.
    """
    planes = seeds(residual_jet, search.n_seeds, bounds, rng, jitter=2 * float(np.mean(activation.scale)))
    if widths:
        low, high = np.log(bounds.narrowest), np.log(bounds.widest)
        activation = activation.rescale(np.exp(rng.uniform(low, high, len(planes))) / float(np.mean(activation.width)))
    features = Features(planes, activation, -1)
    moments = residual.moments(features).values
    sizes = row_sizes(moments)
    best = np.argsort(-sizes, kind="stable")[: 6 * search.n_starts]
    best = best[_leaders(features[best], sizes[best], apart=2.0)[: search.n_starts]]
    starts = features[best]
    if also is not None and also.n_neurons:
        starts = starts + replace(also, degree=-1)
    peaks = ascend(residual, starts, bounds, search.n_steps, widths=widths)
    return peaks[_leaders(peaks.features, row_sizes(peaks.moments), apart=1.0)]


def seeds(jet: Jet, n: int, bounds: Bounds, rng: np.random.Generator, jitter: float) -> Hyperplanes:
    """Return ``n`` hyperplanes, half of them from ``Local`` if gradients of the residual are known, others uniform."""
    domain = Ball(bounds.max_offset)
    local: Density = Local(jitter=jitter)
    if not (local.needs <= jet.known and np.any(jet.derivative_rows(1))):
        return Uniform().prepare(jet, domain).sample(n, rng)
    planes = local.prepare(jet).sample(n // 2, rng)
    planes = Hyperplanes(planes.normals, np.clip(planes.offsets, -bounds.max_offset, bounds.max_offset))
    return planes + Uniform().prepare(jet, domain).sample(n - n // 2, rng)


def ascend(residual: Residual, features: Features, bounds: Bounds, n_steps: int, *, widths: bool = False) -> Peaks:
    """Return the neurons after ``n_steps`` steps that increase ``|p(omega)|`` for all neurons of ``features`` at once.

    Each step increases ``v.p`` with ``v = p / |p|`` fixed, a lower bound that is exact at the start, within a trust
    region: by ``|H|^-1 g`` in the units of the chart, or along ``g`` if the activation lacks the derivatives for ``H``.
    A step without gain is rejected and its radius divided by four.
    """
    n_derivatives = residual.moment_derivatives(features.activation)
    radius = np.ones(features.n_neurons)
    moments = residual.moments(features, n_derivatives)
    for _ in range(n_steps):
        chart = Chart(moments.features, bounds, widths)
        sizes = row_sizes(moments.values)
        directions = moments.values / np.maximum(sizes, np.finfo(float).tiny)[:, None]
        ambient = moments.gradients(directions, widths)
        gradients = chart.gradients(ambient) * chart.units
        gradients[chart.blocked(gradients)] = 0.0
        if n_derivatives == 2:
            hessians = chart.hessians(moments.hessians(directions, widths), ambient)
            step = _newton(gradients, hessians * chart.units[:, :, None] * chart.units[:, None, :])
        else:
            step = gradients / np.maximum(row_sizes(gradients), np.finfo(float).tiny)[:, None]
        step *= (radius / np.maximum(row_sizes(step), radius))[:, None]
        trial = residual.moments(chart.move(step * chart.units), n_derivatives)
        gained = row_sizes(trial.values) > sizes
        radius = np.where(gained, 2 * radius, radius / 4)
        moments = trial.where(gained, moments)
    return Peaks(moments.features, moments.values)


def _newton(gradients: Array, hessians: Array) -> Array:
    """Return ``|H|^-1 g``, where ``|H|`` has the absolute values of the eigenvalues, bounded away from zero."""
    eigenvalues, vectors = np.linalg.eigh(hessians)
    sizes = np.abs(eigenvalues)
    floor = np.maximum(1e-3 * sizes.max(axis=1, keepdims=True), 1e-3 * row_sizes(gradients)[:, None])
    sizes = np.maximum(sizes, np.maximum(floor, np.finfo(float).tiny))
    turned = np.einsum("nij,ni->nj", vectors, gradients) / sizes
    return np.asarray(np.einsum("nij,nj->ni", vectors, turned))


def _leaders(features: Features, sizes: Array, apart: float) -> Index:
    """Return the neurons without a larger one closer than ``apart`` widths, largest first."""
    order = np.argsort(-sizes, kind="stable")
    near = distances(features, features)[np.ix_(order, order)] < apart
    return np.asarray(order[~np.any(np.tril(near, -1), axis=1)])


def distances(first: Features, second: Features) -> Array:
    """Return the distances between neurons in units of widths, of shape (N, M); ``(-a, -b)`` is the same as ``(a, b)``.

    ``sqrt(|a - a'|^2 + |b - b'|^2) / delta``, with the larger of the two widths as ``delta``, plus the absolute
    difference of the logarithms of the widths.
    """
    p, r = (np.column_stack([f.hyperplanes.normals, f.hyperplanes.offsets]) for f in (first, second))
    squares = np.sum(p**2, axis=1)[:, None] + np.sum(r**2, axis=1) - 2 * np.abs(p @ r.T)
    near = np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares)
    wide, other = (np.asarray(f.activation.scale, float).reshape(-1, 1) for f in (first, second))
    near /= np.maximum(wide, other.T)
    return np.asarray(near + np.abs(np.log(wide) - np.log(other.T)))
