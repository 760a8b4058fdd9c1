"""Integrals over hyperplanes, frequencies of samples against them, and the paper's exact density written out."""

import numpy as np
from scipy import stats

from nurf.densities._profiles import MOLLIFIERS, psi
from nurf.jets import Jet
from nurf.networks import Hyperplanes

LEVEL = 1e-5  # a right density fails one statistical test in 100 000
rng_of = np.random.default_rng

TRANSFORMS = {  # of the mollifiers
    "logistic": lambda xi: np.pi * xi / np.sinh(np.pi * xi) if xi > 0 else 1.0,
    "gaussian": lambda xi: np.exp(-(xi**2) / 2),
    "cauchy": lambda xi: np.exp(-xi),
}


# --- Data, and what the paper makes of them
def scattered(d, outputs=(), K=9, seed=0):
    """Random points in the ball of radius 0.8, with unrelated random values, gradients and Hessians."""
    rng = rng_of(seed)
    X = rng.standard_normal((K, d))
    X *= 0.8 * rng.random((K, 1)) ** (1 / d) / np.linalg.norm(X, axis=1, keepdims=True)
    y, gradients = rng.standard_normal((K, *outputs)), rng.standard_normal((K, *outputs, d))
    hessians = rng.standard_normal((K, *outputs, d, d))
    return Jet(X, y, gradients, hessians + np.swapaxes(hessians, -1, -2), rng.uniform(0.5, 2, K))


def along(jet, normals, power, size=lambda x: x):
    """``f``, ``a.grad f`` or ``a^T hess f a`` at all points, of shape (n, N, k); with ``size=np.abs`` their bounds."""
    n, d = jet.X.shape
    if power == 0:
        return np.broadcast_to(size(jet.y.reshape(n, 1, -1)), (n, len(normals), jet.y.reshape(n, -1).shape[1]))
    if power == 1:
        return size(np.einsum("kod,Nd->kNo", jet.gradients.reshape(n, -1, d), normals))
    values, vectors = np.linalg.eigh(jet.hessians.reshape(n, -1, d, d))
    hessians = np.einsum("koij,koj,kolj->koil", vectors, size(values), vectors)
    return np.einsum("koij,Ni,Nj->kNo", hessians, normals, normals)


def exact_density(jet, planes, order, power, width, mollifier="logistic", rho=1.0, size=lambda x: x):
    """``c_delta`` of propositions 4.1 and 4.3, of shape (N, k): the mean over the data of the integrand over ``rho``.

    With ``size=np.abs``, the sum of absolute values that bounds it.
    """
    d, eta = jet.n_features, MOLLIFIERS[mollifier]
    width, k = width * eta.stretch(d, order), order - power
    profile = width ** -(d + k) * psi(eta, d, k, planes.signed_distance(jet.X) / width)
    weights = jet.weights(0) / jet.weights(0).sum() / rho
    return np.einsum("k,kN,kNo->No", weights, size(profile), along(jet, planes.normals, power, size))


# --- Integrals over hyperplanes
def sphere(d, angles, heights=None):
    """Nodes and weights on the unit sphere, d <= 3; an odd number of angles is as good as twice that many."""
    if d == 1:
        return np.array([[1.0], [-1.0]]), np.ones(2)
    angle = (np.arange(angles) + 0.5) * 2 * np.pi / angles
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    if d == 2:
        return circle, np.full(angles, 2 * np.pi / angles)
    z, w = np.polynomial.legendre.leggauss(heights or angles // 2)
    z = np.repeat(z, angles)[:, None]
    return np.hstack([np.tile(circle, (len(w), 1)) * np.sqrt(1 - z**2), z]), np.repeat(w, angles) * 2 * np.pi / angles


def product(normals, offsets):
    """All pairs of a normal and an offset, offsets running fastest."""
    return Hyperplanes(np.repeat(normals, len(offsets), axis=0), np.tile(offsets, len(normals)))


def grid(d, edges, angles=120, nodes=8):
    """Hyperplanes with offsets between the ``edges``, Gauss nodes in each range, and their volumes."""
    (a, area), (x, w) = sphere(d, angles), np.polynomial.legendre.leggauss(nodes)
    lengths = np.diff(edges)
    offsets = (edges[:-1, None] + lengths[:, None] * (1 + x) / 2).ravel()
    return product(a, offsets), np.outer(area, np.outer(lengths, w / 2)).ravel()


# --- Frequencies
def histogram(planes, edges, weights=None):
    """Sum over cells: the signs or twelfths of the circle (d <= 2), times the ranges of the offset."""
    if planes.dimension == 1:
        sector = (planes.normals[:, 0] > 0).astype(int)
    else:
        sector = np.floor(np.arctan2(planes.normals[:, 1], planes.normals[:, 0]) * 6 / np.pi).astype(int) + 6
    cells = np.clip(sector, 0, 11) * (len(edges) + 1) + np.digitize(planes.offsets, edges)
    return np.bincount(cells, weights, minlength=12 * (len(edges) + 1))


def p_value(counts, probabilities):
    """Return the level at which the counts contradict the probabilities; cells that are rare are taken together."""
    expected = counts.sum() * np.asarray(probabilities) / np.sum(probabilities)
    rare = expected < 8
    statistic = np.sum((counts - expected)[~rare] ** 2 / expected[~rare])
    common = stats.chi2.sf(statistic, max(1, np.sum(~rare) - 1))
    return min(common, stats.poisson.sf(counts[rare].sum() - 1, expected[rare].sum()))
