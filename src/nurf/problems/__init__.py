"""The test functions of the paper (section 5), with exact gradients and Hessians.

>>> import numpy as np
>>> from nurf import problems
>>> problem = problems.get("checkmark", dimension=4)
>>> problem
Checkmark(dimension=4, native=False)
>>> problem.jet(problem.sample(100, np.random.default_rng(0))).hessians.shape
(100, 4, 4)
"""

from __future__ import annotations

from typing import Any

from nurf.problems._base import Problem
from nurf.problems._borehole import Borehole
from nurf.problems._checkmark import Checkmark
from nurf.problems._corner import Corner
from nurf.problems._corner_peak import CornerPeak
from nurf.problems._gaussian_bump import GaussianBump
from nurf.problems._planar_wave import PlanarWave
from nurf.problems._robot_arm import RobotArm
from nurf.problems._separable import Separable

__all__ = [
    "Borehole",
    "Checkmark",
    "Corner",
    "CornerPeak",
    "GaussianBump",
    "PlanarWave",
    "Problem",
    "RobotArm",
    "Separable",
    "get",
    "names",
]

_PROBLEMS: dict[str, type[Problem]] = {
    problem.name: problem
    for problem in (
        GaussianBump,
        PlanarWave,
        Checkmark,
        Corner,
        Separable,
        CornerPeak,
        RobotArm,
        Borehole,
    )
}


def names() -> list[str]:
    """Return the names of all problems, in the order in which they appear in the paper."""
    return list(_PROBLEMS)


def get(name: str, **parameters: Any) -> Problem:
    """Return a problem by its name.

    Parameters
    ----------
    name : str
        One of ``names()``.
    **parameters
        Parameters of the problem: ``dimension`` and ``native``, and ``a`` for the corner peak.

    Examples
    --------
    >>> get("corner_peak", dimension=4, a=3.0)
    CornerPeak(dimension=4, native=False, a=3.0)
    """
    if name not in _PROBLEMS:
        raise ValueError(f"unknown problem {name!r}: expected one of {', '.join(_PROBLEMS)}")
    return _PROBLEMS[name](**parameters)
