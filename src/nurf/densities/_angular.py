"""Distributions on the unit sphere, such as the angular central Gaussian (paper, section 4.3.1)."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from nurf._types import Array
from nurf.networks import normalised


def log_sphere_area(dimension: int) -> float:
    """Return ``log |S^{d-1}| = log(2 pi^(d/2) / Gamma(d/2))``.

    >>> round(float(np.exp(log_sphere_area(3)) / np.pi), 12)
    4.0
    """
    return float(np.log(2) + dimension / 2 * np.log(np.pi) - gammaln(dimension / 2))


def principal_axes(rows: Array) -> tuple[Array, Array]:
    """Return the nonzero singular values (r,) of ``rows`` (n, d) and the right singular vectors (r, d).

    The vectors span the range of ``C = rows^T rows``.
    """
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    kept = values > values[0] * max(rows.shape) * np.finfo(float).eps
    return values[kept], vectors[kept]


def log_angular_density(covariances: Array, normals: Array) -> Array:
    """Return the log-density of ``xi / |xi|``, ``xi ~ N(0, C)``, on the sphere (paper, eq. 4.4).

    ``m_C(a) = |S^{d-1}|^{-1} det(C)^{-1/2} (a^T C^{-1} a)^{-d/2}`` for positive definite ``C``.

    Parameters
    ----------
    covariances : array of shape (m, d, d)
    normals : array of shape (N, d)

    Returns
    -------
    array of shape (m, N)
    """
    d = normals.shape[1]
    eigenvalues, vectors = np.linalg.eigh(covariances)
    floor = np.finfo(float).eps * eigenvalues[:, -1:]  # rounding errors can make an eigenvalue negative
    eigenvalues = np.maximum(eigenvalues, np.maximum(floor, np.finfo(float).tiny))
    quadratic = np.einsum("mdN,md->mN", (np.swapaxes(vectors, 1, 2) @ normals.T) ** 2, 1 / eigenvalues)
    half_log_det = 0.5 * np.log(eigenvalues).sum(axis=1)
    return np.asarray(-log_sphere_area(d) - half_log_det[:, None] - d / 2 * np.log(quadratic))


def in_range(normals: Array, axes: Array) -> tuple[Array, Array]:
    """Return the coordinates of ``normals`` along orthonormal ``axes`` (r, d), and which normals are in the span."""
    coordinates = normals @ axes.T
    inside = np.sum(coordinates**2, axis=1) > 1 - 1e-8
    return coordinates, inside


def sample_around(axes: Array, power: int, rng: np.random.Generator) -> Array:
    """Return a random unit vector ``a`` with density proportional to ``|a.v|^power`` for each row ``v`` of ``axes``.

    The rows are unit vectors. ``1 - (a.v)^2`` has the distribution ``Beta((d - 1) / 2, (power + 1) / 2)``.
    """
    n, d = axes.shape
    signs = rng.choice([-1.0, 1.0], size=(n, 1))
    if d == 1:
        return signs * axes
    squares = rng.beta((d - 1) / 2, (power + 1) / 2, size=(n, 1))
    across = rng.standard_normal((n, d))
    across -= np.sum(across * axes, axis=1, keepdims=True) * axes
    return np.asarray(signs * np.sqrt(1 - squares) * axes + np.sqrt(squares) * normalised(across))


def sphere_quadrature(dimension: int, nodes: int) -> tuple[Array, Array]:
    """Return the nodes (n, d) and weights (n,) of a quadrature rule on the unit sphere, for d <= 3.

    The rule uses both points for d = 1, ``nodes`` equispaced angles for d = 2, and for d = 3 the product of these with
    a Gauss-Legendre rule of ``nodes / 2`` points in the height.
    """
    if dimension == 1:
        return np.array([[1.0], [-1.0]]), np.ones(2)
    angles = 2 * np.pi * (np.arange(nodes) + 0.5) / nodes
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    if dimension == 2:
        return circle, np.full(nodes, 2 * np.pi / nodes)
    if dimension == 3:
        heights, weights = np.polynomial.legendre.leggauss(max(1, nodes // 2))
        radii = np.sqrt(1 - heights**2)
        points = np.concatenate(
            [np.column_stack([r * circle, np.full(nodes, z)]) for r, z in zip(radii, heights, strict=True)]
        )
        return points, np.repeat(weights, nodes) * 2 * np.pi / nodes
    raise ValueError(f"quadrature over the sphere is implemented for d <= 3, got d = {dimension}")
