"""The tables that the generic tests run over: a new class is one row here."""

from dataclasses import dataclass

import numpy as np

from nurf.activations import Erf, Heaviside, ReLU, ReLUPower, Sigmoid, Softplus
from nurf.densities import ActiveSubspace, Local, Nonlocal, Uniform
from nurf.kernels import ErfKernel, GaussianKernel, MaternKernel

ACTIVATIONS = [
    Heaviside(),
    ReLU(),
    ReLUPower(2),
    ReLUPower(3),
    Sigmoid(0.3),
    Softplus(0.3),
    Erf(0.3),
]
SMOOTH_ACTIVATIONS = [a for a in ACTIVATIONS if np.all(np.asarray(a.width) > 0)]

RADIAL_KERNELS = [GaussianKernel(), MaternKernel(), ErfKernel()]


@dataclass(frozen=True)
class Rising:
    """A density of points, up to a constant, that rises along the first axis."""

    def __call__(self, X):
        return np.exp(X[:, 0] / 0.3)


DENSITIES = [Uniform()] + [
    density
    for order in (1, 2)
    for density in (
        ActiveSubspace(order),
        ActiveSubspace(order, rho=Rising()),
        Local(order),
        Local(order, jitter=0.2),
        Local(order, jitter=0.2, rho=Rising()),
        Nonlocal(order, bandwidth=0.3),
        Nonlocal(order, bandwidth=0.3, kernel="gaussian", rho=Rising()),
        Nonlocal(order, bandwidth=0.2, kernel="cauchy", mollifier="logistic"),
    )
]
