"""Densities from which hyperplanes are sampled: they determine the position and the direction of the neurons.

A ``Density`` holds parameters only. ``density.prepare(jet)`` returns a ``PreparedDensity``, which can be sampled.

>>> import numpy as np
>>> from nurf import densities, problems
>>> problem = problems.get("checkmark")
>>> jet = problem.jet(problem.sample(100, np.random.default_rng(0)))
>>> prepared = densities.Nonlocal(bandwidth=0.1).prepare(jet)
>>> prepared.sample(50, np.random.default_rng(1)).normals.shape
(50, 2)
"""

from collections.abc import Callable

from nurf.densities._active_subspace import ActiveSubspace
from nurf.densities._axis_aligned import AxisAligned
from nurf.densities._base import Density, PreparedDensity
from nurf.densities._local import Local
from nurf.densities._nonlocal import Nonlocal
from nurf.densities._profiles import Cauchy, Gaussian, Logistic, Mollifier
from nurf.densities._representation import Representation
from nurf.densities._rows import complete
from nurf.densities._samplers import Metropolis, Rejection, Sampler
from nurf.densities._uniform import Uniform
from nurf.jets import DERIVATIVE_KINDS


def _up_to_hessians(density: Callable[[int], Density]) -> Callable[[int], Density]:
    """Return a function that gives the density for Hessians if the order is higher."""
    return lambda order: density(min(order, max(DERIVATIVE_KINDS)))


# Densities by the names that estimators accept, each as a function of the order of the activation.
DENSITIES: dict[str, Callable[[int], Density]] = {
    "uniform": lambda order: Uniform(),
    "active_subspace": _up_to_hessians(ActiveSubspace),
    "local": _up_to_hessians(Local),
    "axis_aligned": _up_to_hessians(AxisAligned),
    "nonlocal": _up_to_hessians(Nonlocal),
    "representation": Representation,
}

__all__ = [
    "DENSITIES",
    "ActiveSubspace",
    "AxisAligned",
    "Cauchy",
    "Density",
    "Gaussian",
    "Local",
    "Logistic",
    "Metropolis",
    "Mollifier",
    "Nonlocal",
    "PreparedDensity",
    "Rejection",
    "Representation",
    "Sampler",
    "Uniform",
]
