"""Laws of directions: the uniform one, and the angular central Gaussian (paper, section 4.3.1)."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from nurf.jets import Array


def log_sphere_area(dimension: int) -> float:
    """Return ``log |S^{d-1}| = log(2 pi^(d/2) / Gamma(d/2))``.

    >>> round(float(np.exp(log_sphere_area(3)) / np.pi), 12)
    4.0
    """
    return float(np.log(2) + dimension / 2 * np.log(np.pi) - gammaln(dimension / 2))


def principal_axes(rows: Array) -> tuple[Array, Array]:
    """Return the nonzero singular values (r,) of ``rows`` (n, d) and the right singular vectors (r, d).

    The vectors span the range of ``C = rows^T rows``: directions that no row has are left out exactly.
    """
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    kept = values > values[0] * max(rows.shape) * np.finfo(float).eps
    return values[kept], vectors[kept]


def log_angular_density(covariances: Array, normals: Array) -> Array:
    """Return the log-density of ``xi / |xi|``, ``xi ~ N(0, C)``, on the sphere (paper, eq. 4.7).

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
    floor = np.finfo(float).eps * eigenvalues[:, -1:]  # rounding may leave an eigenvalue below zero
    eigenvalues = np.maximum(eigenvalues, np.maximum(floor, np.finfo(float).tiny))
    quadratic = np.einsum("mdN,md->mN", (np.swapaxes(vectors, 1, 2) @ normals.T) ** 2, 1 / eigenvalues)
    half_log_det = 0.5 * np.log(eigenvalues).sum(axis=1)
    return np.asarray(-log_sphere_area(d) - half_log_det[:, None] - d / 2 * np.log(quadratic))


def in_range(normals: Array, axes: Array) -> tuple[Array, Array]:
    """Return the coordinates of ``normals`` along orthonormal ``axes`` (r, d), and which of them lie in their span."""
    coordinates = normals @ axes.T
    inside = np.sum(coordinates**2, axis=1) > 1 - 1e-8
    return coordinates, inside
