"""Dense textbook algebra: every row of a least-squares problem written out, and ridge regression by ``lstsq``."""

from itertools import combinations_with_replacement

import numpy as np
from scipy.special import expit

from nurf.activations import Sigmoid
from nurf.networks import Features, Hyperplanes
from nurf.solvers import VALUES_ONLY
from nurf.solvers.ridge import LeastSquares

WIDTH = 0.4


def make_features(n_neurons, d, degree=0, seed=1):
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(n_neurons, d))
    planes = Hyperplanes(normals / np.linalg.norm(normals, axis=1, keepdims=True), rng.uniform(-1, 1, n_neurons))
    return Features(planes, Sigmoid(WIDTH), degree)


def functionals(features, x):
    """Value (N + t,), gradient (d, N + t) and Hessian (d, d, N + t) of each feature at one point, by closed forms."""
    A, d = features.hyperplanes.normals, len(x)
    s = expit((A @ x + features.hyperplanes.offsets) / WIDTH)
    slope, bend = s * (1 - s) / WIDTH, s * (1 - s) * (1 - 2 * s) / WIDTH**2
    value, gradient = list(s), list(slope[:, None] * A)
    hessian = list(bend[:, None, None] * A[:, :, None] * A[:, None, :])
    axes = np.eye(d)
    for total in range(features.degree + 1):
        for by in combinations_with_replacement(range(d), total):
            factors = [x[i] for i in by]
            value.append(np.prod(factors))
            terms = [np.prod(factors[:p] + factors[p + 1 :]) * axes[by[p]] for p in range(total)]
            gradient.append(sum(terms, np.zeros(d)))
            square = np.zeros((d, d))
            if total == 2:
                square = np.outer(axes[by[0]], axes[by[1]]) + np.outer(axes[by[1]], axes[by[0]])
            hessian.append(square)
    return np.array(value), np.array(gradient).T, np.moveaxis(np.array(hessian), 0, -1)


def sample(features, jet, k, loss):
    """All rows of one sample, with the roots of their weights: design (r, N + t), targets (r, outputs).

    A partial derivative counts where it is known for all outputs, an entry of a Hessian where it or its mirror is. The
    gradient along frames is the projection of the gradient onto their span.
    """
    d, y = jet.n_features, jet.y.reshape(len(jet), -1)
    w = 1.0 if jet.sample_weight is None else jet.sample_weight[k]
    v = w if jet.derivative_weight is None else jet.derivative_weight[k]
    value, gradient, hessian = functionals(features, jet.X[k])
    rows, targets = [], []
    if not np.isnan(y[k]).any():
        rows.append(np.sqrt(w) * value)
        targets.append(np.sqrt(w) * y[k])
    if loss.gradients:
        root, g = np.sqrt(v * loss.gradients), jet.gradients.reshape(len(jet), -1, d)[k]
        if jet.frames is not None:
            onto = sum((np.outer(f, f) for f in jet.frames[k]), np.zeros((d, d)))
            rows.extend(root * onto @ gradient)
            targets.extend(root * onto @ np.nan_to_num(g).T)
        else:
            for i in range(d):
                if not np.isnan(g[:, i]).any():
                    rows.append(root * gradient[i])
                    targets.append(root * g[:, i])
    if loss.hessians:
        root, h = np.sqrt(v * loss.hessians), jet.hessians.reshape(len(jet), -1, d, d)[k]
        h = np.where(np.isnan(h), np.swapaxes(h, 1, 2), h)
        for i in range(d):
            for j in range(d):
                if not np.isnan(h[:, i, j]).any():
                    rows.append(root * hessian[i, j])
                    targets.append(root * h[:, i, j])
    return np.reshape(rows, (-1, features.n_columns)), np.reshape(targets, (-1, y.shape[1]))


def stacked(samples):
    return np.concatenate([rows for rows, _ in samples]), np.concatenate([targets for _, targets in samples])


def total_weight(jet):
    weights = np.ones(len(jet)) if jet.sample_weight is None else jet.sample_weight
    return weights[~np.isnan(jet.y.reshape(len(jet), -1)[:, 0])].sum()


def ridge(samples, n_neurons, penalty, total):
    """Minimise ``|targets - rows c|^2 / total + penalty N |c_neurons|^2``."""
    Z, y = stacked(samples)
    rows = np.concatenate([Z / np.sqrt(total), np.sqrt(penalty * n_neurons) * np.eye(n_neurons, Z.shape[1])])
    targets = np.concatenate([y / np.sqrt(total), np.zeros((n_neurons, y.shape[1]))])
    return np.linalg.lstsq(rows, targets, rcond=1e-14)[0]


def normal_matrix(samples, n_neurons, penalty, total):
    """``Z^T W Z`` and the penalty, in the units of the sum of squares."""
    Z, _ = stacked(samples)
    return Z.T @ Z + penalty * n_neurons * total * np.diag(np.arange(Z.shape[1]) < n_neurons)


def factor(features, jet, loss=VALUES_ONLY):
    """Return the factorised ridge problem, in the form that the library selects."""
    return LeastSquares(features, jet).ridge(loss)
