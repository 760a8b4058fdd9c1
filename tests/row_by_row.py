"""Networks, data of which more or less is known, and the residuals of a loss written out row by row."""

from dataclasses import replace

import numpy as np
from scipy.special import expit

from nurf.activations import Sigmoid, Softplus
from nurf.jets import Jet
from nurf.networks import Features, Hyperplanes, ShallowNetwork
from nurf.networks._hyperplanes import normalised

D, N_SAMPLES = 3, 12


def random_network(d=D, outputs=2, N=4, activation=None, degree=None, widths=False, seed=0):
    rng = np.random.default_rng(seed)
    activation = Sigmoid(0.4) if activation is None else activation
    if widths:
        activation = activation.rescale(np.exp(rng.uniform(-0.5, 0.5, N)))
    planes = Hyperplanes(normalised(rng.standard_normal((N, d))), rng.uniform(-0.5, 0.5, N))
    features = Features(planes, activation, activation.order - 1 if degree is None else degree)
    return ShallowNetwork(features, rng.standard_normal((features.n_columns, outputs)))


def plain(outputs=2, n=N_SAMPLES, d=D, seed=1):
    """Values and derivatives that no network meets."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) / np.sqrt(d)
    H = rng.standard_normal((n, outputs, d, d))
    y, gradients = rng.standard_normal((n, outputs)), rng.standard_normal((n, outputs, d))
    return Jet(X, y, gradients, H + np.swapaxes(H, -1, -2))


def weighted():
    rng = np.random.default_rng(2)
    weights = rng.uniform(0.5, 2, (2, N_SAMPLES))
    return replace(plain(), sample_weight=weights[0], derivative_weight=weights[1])


def many_patterns():
    """Unknown partial derivatives and entries of Hessians, some for one output only, some on one side only."""
    jet, rng = weighted(), np.random.default_rng(3)
    gradients = np.where(rng.random(jet.gradients.shape) < 0.2, np.nan, jet.gradients)
    hessians = np.where(rng.random(jet.hessians.shape) < 0.2, np.nan, jet.hessians)
    gradients[2], hessians[4] = np.nan, np.nan
    return replace(jet, gradients=gradients, hessians=hessians)


def few_patterns():
    jet = plain()
    gradients, hessians = jet.gradients.copy(), jet.hessians.copy()
    gradients[::2, :, 1] = np.nan
    hessians[1::2, 0, 0, 2] = hessians[1::2, 0, 2, 0] = np.nan
    return replace(jet, gradients=gradients, hessians=hessians)


def unknown_values():
    jet = weighted()
    y = jet.y.copy()
    y[:4] = np.nan
    return replace(jet, y=y)


def directional():
    """Two, one or no directions at a point."""
    jet, rng = weighted(), np.random.default_rng(4)
    directions = rng.standard_normal((N_SAMPLES, 2, D))
    slopes = rng.standard_normal((N_SAMPLES, 2, 2))
    slopes[:2], slopes[2:5, 0, 1] = np.nan, np.nan
    along = Jet.along(jet.X, jet.y, directions, slopes)
    return replace(jet, gradients=along.gradients, frames=along.frames)


def sigma(activation, u, width, k):
    """The derivatives of the sigmoid and the softplus up to the second."""
    s = expit(u / width)
    sigmoid = [s, s * (1 - s) / width, s * (1 - s) * (1 - 2 * s) / width**2]
    return [width * np.logaddexp(0, u / width), *sigmoid][k] if isinstance(activation, Softplus) else sigmoid[k]


def derivatives(network, x):
    """Value (k,), gradient (d, k) and Hessian (d, d, k) of a network at one point, neuron by neuron."""
    d, k = len(x), network.coefficients.shape[1]
    value, gradient, hessian = np.zeros(k), np.zeros((d, k)), np.zeros((d, d, k))
    widths = np.broadcast_to(network.activation.width, len(network.coef))
    planes = network.hyperplanes
    for a, b, width, c in zip(planes.normals, planes.offsets, widths, network.coef, strict=True):
        s0, s1, s2 = (sigma(network.activation, a @ x + b, width, j) for j in range(3))
        value += s0 * c
        gradient += s1 * np.multiply.outer(a, c)
        hessian += s2 * np.multiply.outer(np.outer(a, a), c)
    if network.features.degree >= 0:
        value += network.tail_coef[0]
    if network.features.degree == 1:
        value += x @ network.tail_coef[1:]
        gradient += network.tail_coef[1:]
    return value, gradient, hessian


def residuals(network, jet, loss, derivatives=derivatives):
    """All residuals, row by row, each times the root of its weight."""
    total, result = 0.0, []
    for i, x in enumerate(jet.X):
        w = 1.0 if jet.sample_weight is None else jet.sample_weight[i]
        v = w if jet.derivative_weight is None else jet.derivative_weight[i]
        value, gradient, hessian = derivatives(network, x)
        if not np.isnan(jet.y[i]).any():
            total += w
            result.append(np.sqrt(w) * (jet.y[i] - value))
        if loss.gradients and jet.frames is not None:
            for direction in jet.frames[i]:
                known = np.nan_to_num(jet.gradients[i]) @ direction
                result.append(np.sqrt(v * loss.gradients) * (known - direction @ gradient) * direction.any())
        elif loss.gradients:
            errors = jet.gradients[i].T - gradient
            result += [np.sqrt(v * loss.gradients) * error for error in errors if not np.isnan(error).any()]
        if loss.hessians:
            mirrored = np.swapaxes(jet.hessians[i], 1, 2)
            H = np.where(np.isnan(jet.hessians[i]), mirrored, jet.hessians[i])
            errors = (np.moveaxis(H, 0, -1) - hessian).reshape(-1, len(value))
            result += [np.sqrt(v * loss.hessians) * error for error in errors if not np.isnan(error).any()]
    return np.concatenate(result) / np.sqrt(total)
