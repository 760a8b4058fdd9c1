"""Laws on hyperplanes: where neurons sit, and which way they point."""

from collections.abc import Callable

from nurf.densities.active_subspace import ActiveSubspace
from nurf.densities.base import Density, Law
from nurf.densities.local import Local
from nurf.densities.nonlocal_ import Nonlocal
from nurf.densities.representation import Representation
from nurf.densities.uniform import Uniform

DENSITIES: dict[str, Callable[[int], Density]] = {
    "uniform": lambda order: Uniform(),
    "active_subspace": ActiveSubspace,
    "local": Local,
    "nonlocal": Nonlocal,
    "representation": Representation,
}

__all__ = ["DENSITIES", "ActiveSubspace", "Density", "Law", "Local", "Nonlocal", "Representation", "Uniform"]
