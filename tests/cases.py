"""The tables that the generic tests run over: a new class is one row here."""

import numpy as np

from nurf.activations import Erf, Heaviside, ReLU, ReLUPower, Sigmoid, Softplus
from nurf.densities import ActiveSubspace, Local, Nonlocal, Uniform

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

DENSITIES = [Uniform()] + [
    density
    for order in (1, 2)
    for density in (
        ActiveSubspace(order),
        Local(order),
        Local(order, jitter=0.2),
        Nonlocal(order, bandwidth=0.3),
    )
]
