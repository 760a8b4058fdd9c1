"""Laws on hyperplanes: where neurons sit, and which way they point."""

from collections.abc import Callable

from nurf.densities._active_subspace import ActiveSubspace
from nurf.densities._base import Density, PreparedDensity
from nurf.densities._local import Local
from nurf.densities._nonlocal import Nonlocal
from nurf.densities._representation import Representation
from nurf.densities._uniform import Uniform

DENSITIES: dict[str, Callable[[int], Density]] = {
    "uniform": lambda order: Uniform(),
    "active_subspace": ActiveSubspace,
    "local": Local,
    "nonlocal": Nonlocal,
    "representation": Representation,
}

__all__ = [
    "DENSITIES",
    "ActiveSubspace",
    "Density",
    "Local",
    "Nonlocal",
    "PreparedDensity",
    "Representation",
    "Uniform",
]
