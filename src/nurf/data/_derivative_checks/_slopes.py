"""Gradients predicted from values: a Gaussian process in coordinates in which the samples are spread evenly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri
from scipy.optimize import minimize

from nurf._types import Array, Index

# Start of the search: the logarithm of the scales, without log(d) / 2, and of the noise relative to the process. Of
# five starts on 216 sets this one ended 3 or more above the best likelihood in 1.4% of them, the others in 4.6 to 7.4%.
START = (0.5, float(np.log(1e-2)))
STEPS = 25  # of L-BFGS, with which most searches have ended: 24 evaluations on average
LEARNED = 150  # samples that determine the scales: 0.7 ms for each evaluation, and 4 ms with 300
MIN_NOISE = 1e-4  # relative to the process: its square is above the rounding errors of 300 samples
SCALES = (-4.0, 5.0)  # bounds of log scales: from the distance of 300 samples on a line to a straight line
PRIOR = (float(np.sqrt(2)), float(np.sqrt(3)))  # of Hvarfner et al.: mean, without log(d) / 2, and standard deviation


@dataclass(frozen=True, eq=False)
class Coordinate:
    """A transformed column with range [0, 1], and its derivatives with respect to the column, each of shape (n,)."""

    numbers: Array
    slopes: Array


def spread_evenly(column: Array) -> Coordinate:
    """Return the column, its logarithms or its inverse hyperbolic sines, whichever is closest to a normal distribution.

    The choice has the largest likelihood of Box and Cox (1964), which includes the derivative. The column is not
    transformed unless another choice is better by the penalty of one parameter (Schwarz, 1978).
    """
    unit = float(np.abs(column).max()) or 1.0
    x, one = column / unit, np.full(len(column), 1 / unit)
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
    found = [(x, one)]
    if x.min() > 0:
        found.append((np.log(x), one / x))
    if high > low:
        t = (x - middle) / (high - low)
        found.append((np.arcsinh(t), one / np.sqrt(1 + t**2) / (high - low)))
    likelihoods = [float(np.mean(np.log(slopes)) - np.log(np.std(numbers))) for numbers, slopes in found]
    likelihoods[0] += float(np.log(len(x))) / (2 * len(x))
    numbers, slopes = found[int(np.argmax(likelihoods))]
    extent = float(np.ptp(numbers)) or 1.0
    return Coordinate((numbers - numbers.min()) / extent, slopes / extent)


class SlopeProcess:
    """A Gaussian process with a constant mean and a Matern 5/2 kernel with a scale for each input.

    The scales and the noise maximise the likelihood, with the prior of Hvarfner, Hellsten and Nardi (2024), "Vanilla
    Bayesian optimization performs great in high dimensions": scales that few samples do not determine are long.

    Parameters
    ----------
    points : array of shape (n, d)
        Points in the unit cube.
    values : array of shape (n,)
        Values that are not all equal.

    Attributes
    ----------
    scales : array of shape (d,)
        The length scale of each input.
    noise : float
        The standard deviation of the noise.
    freedom : float
        Degrees of freedom of the fit: the trace of the matrix that smooths the values.
    """

    def __init__(self, points: Array, values: Array) -> None:
        n, d = points.shape
        centred, every = values - values.mean(), -(-n // LEARNED)
        found = minimize(
            _loss,
            np.append(np.full(d, START[0] + np.log(d) / 2), START[1]),
            (points[::every], centred[::every]),
            jac=True,
            method="L-BFGS-B",
            bounds=[SCALES] * d + [(np.log(MIN_NOISE), 0.0)],
            options={"maxiter": STEPS},
        )
        self._points, self.scales, share = points, np.exp(found.x[:-1]), float(np.exp(found.x[-1]))
        correlations, self._factors, self._decay = _matern(points / self.scales)
        self._root, _ = dtrtri(dpotrf(correlations + share**2 * np.eye(n), lower=1, clean=1)[0], lower=1)
        self._weights = self._root.T @ (self._root @ centred)
        diagonal = np.sum(self._root**2, axis=0)
        variance = float(centred @ self._weights) / n
        self.noise = share * float(np.sqrt(variance))
        self.freedom = n - share**2 * float(diagonal.sum())
        # leave-one-out errors must not be larger than the process predicts
        self._variance = max(variance, float(np.mean(self._weights**2 / diagonal)))

    def slopes(self, rows: Index) -> tuple[Array, Array, Array]:
        """Return gradients (m, d) at some samples, their standard deviations, and effective numbers (d,) of errors.

        Errors of a partial derivative that are equal at all samples count as one: the variance of the sum is compared
        with the variance of a sum of independent errors.
        """
        means, variances = np.empty((2, len(rows), len(self.scales)))
        counts = np.empty(len(self.scales))
        factors, scaled = self._factors[rows], self._points / self.scales
        near, decay = scaled[rows], self._decay[np.ix_(rows, rows)]
        squares = 2 * (decay.sum(axis=1) @ near**2 - np.sum(near * (decay @ near), axis=0))  # of all steps, by decay
        priors = (factors[:, rows].sum() - 25 / 3 * squares) / self.scales**2
        for k, scale in enumerate(self.scales):
            covariances = np.subtract.outer(scaled[:, k], near[:, k])
            covariances *= factors.T / scale
            means[:, k] = self._weights @ covariances
            whitened = dtrmm(1.0, self._root, covariances.T, side=1, lower=1, trans_a=1)
            variances[:, k] = (5 / 3 / scale**2 - np.einsum("ij,ij->i", whitened, whitened)).clip(MIN_NOISE**2)
            total = whitened.sum(axis=0)
            of_sum = max(float(priors[k] - total @ total), float(variances[:, k].sum()))
            counts[k] = float(np.sqrt(variances[:, k]).sum()) ** 2 / of_sum
        return means, np.sqrt(self._variance * variances), counts


def _loss(parameters: Array, points: Array, values: Array) -> tuple[float, Array]:
    """Return the negative log-likelihood, with the best variance and the prior, and its gradient."""
    n, noise = len(points), np.exp(2 * parameters[-1])
    scaled = points / np.exp(parameters[:-1])
    correlations, factors, _ = _matern(scaled)
    precision, log_root = _inverse(correlations + noise * np.eye(n))
    weights = precision @ values
    squares = float(values @ weights)
    by_matrix = precision - np.outer(weights, weights) * (n / squares)
    products = by_matrix * factors
    by_scales = products.sum(axis=1) @ scaled**2 - np.sum(scaled * (products @ scaled), axis=0)
    distances = (parameters[:-1] - PRIOR[0] - np.log(points.shape[1]) / 2) / PRIOR[1]
    loss = n / 2 * np.log(squares / n) + log_root + np.sum(distances**2) / 2
    return loss, np.append(by_scales + distances / PRIOR[1], noise * np.trace(by_matrix))


def _matern(points: Array) -> tuple[Array, Array, Array]:
    """Return the correlations of scaled points (n, d), and factors of first and second derivatives, each (n, n)."""
    squares = np.sum(points**2, axis=1)
    r = np.sqrt(5 * (squares[:, None] + squares - 2 * points @ points.T).clip(0))
    decay = np.exp(-r)
    return (1 + r + r**2 / 3) * decay, 5 / 3 * (1 + r) * decay, decay


def _inverse(matrix: Array) -> tuple[Array, float]:
    """Return the inverse of a positive definite matrix, and half the logarithm of its determinant."""
    factor, _ = dpotrf(matrix, lower=1)
    half = np.tril(dpotri(factor, lower=1)[0])
    return half + np.tril(half, -1).T, float(np.sum(np.log(np.diag(factor))))
