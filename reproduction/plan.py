"""Which experiments a figure needs, in the full and in the quick setting."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reproduction.cases import CASES, Case
from reproduction.fits import Draws, Experiment, Sampling, Training
from reproduction.store import Unit

METHODS_1D = ("uniform", "local", "nonlocal", "representation", "local_residual", "nonlocal_residual")
METHODS_2D = ("uniform", "active_subspace", "local", "nonlocal", "representation", "local_residual")
METHODS_ND = ("uniform", "active_subspace", "local", "nonlocal", "local_residual", "nonlocal_residual")
SPARSE = ("sparse",)
CONVEX = ("convex",)
RESIDUAL = ("local", "local_residual")  # residual sampling, and what it is compared with
PORTRAYED = ("uniform", "local")
PICTURED = ("representation", "local")
N_DRAWS = 10_000
TOO_NARROW = 10  # the width is divided by it
TOO_SMALL = (1e-8, 1e-9)  # alphas; the first is a ten-thousandth of the authors' smallest

# The path of sparse training: the first alpha and the number of steps, each of which divides alpha by 4, are the
# authors', except that the robot arm has one step fewer: its networks have as many neurons as they may by then. The
# largest network is ours: in one and two dimensions none comes near it, and above larger ones take too long.
PATHS: dict[str, tuple[float, int, int]] = {
    "gaussian_bump": (0.1, 5, 300),
    "gaussian_bump_s2": (0.01, 5, 300),
    "planar_wave": (0.04, 6, 300),
    "checkmark_2d": (0.04, 6, 300),
    "corner": (0.04, 6, 300),
    "separable": (0.04, 6, 300),
    "checkmark_3d": (0.01, 6, 200),
    "checkmark_4d": (0.01, 6, 200),
    "corner_peak_3d": (0.01, 6, 200),
    "corner_peak_4d": (0.01, 6, 200),
    "robot_arm_6d": (0.01, 5, 200),
    "borehole_8d": (0.01, 6, 200),
}


@dataclass(frozen=True)
class Scope:
    """How much is run.

    Parameters
    ----------
    quick : bool
        Two trials; from three dimensions on, one trained path without its last and longest step.
    trials : int, optional
        Trials of every method; by default 10 in one and two dimensions and 4 above, as in the paper.
    """

    quick: bool = False
    trials: int | None = None

    def n_trials(self, case: Case, *, trained: bool = False) -> int:
        """Return the number of trials."""
        high = case.dimension > 2
        usual = (1 if trained and high else 2) if self.quick else (4 if high else 10)
        return usual if self.trials is None else self.trials


@dataclass(frozen=True)
class Part:
    """An experiment with the methods and the number of trials that a figure needs."""

    experiment: Experiment
    methods: tuple[str, ...]
    n_trials: int = 1

    @property
    def units(self) -> tuple[Unit, ...]:
        """All methods and trials."""
        return tuple(Unit(self.experiment, method, trial) for method in self.methods for trial in range(self.n_trials))


def sampled(key: str, scope: Scope) -> Part:
    """Return the sampling methods of a case, with growing numbers of neurons."""
    case = CASES[key]
    methods = {1: METHODS_1D, 2: METHODS_2D}.get(case.dimension, METHODS_ND)
    return Part(Sampling(case, case.stages), methods, scope.n_trials(case))


def trained(key: str, scope: Scope) -> Part:
    """Return the trained networks of a case, along its path."""
    case = CASES[key]
    _, steps, limit = PATHS[key]
    shorter = scope.quick and case.dimension > 2
    return Part(_training(key, steps - shorter, limit), SPARSE, scope.n_trials(case, trained=True))


def portrayed(key: str, n_neurons: int, scope: Scope) -> Part:
    """Return networks of a given size for each of two densities."""
    case = CASES[key]
    return Part(Sampling(case, (n_neurons,), keep=True), PORTRAYED, scope.n_trials(case))


def portrayed_training(key: str, n_neurons: int, scope: Scope) -> Part:
    """Return the path of trained networks up to a given size, with two more steps to reach it."""
    return Part(_training(key, PATHS[key][1] + 2, n_neurons), SPARSE, scope.n_trials(CASES[key], trained=True))


def pictured(key: str) -> Part:
    """Return many samples of two densities."""
    return Part(Draws(CASES[key], N_DRAWS), PICTURED)


def convex(key: str, scope: Scope) -> Part:
    """Return the networks that are trained with the convex penalty, along the same path."""
    case = CASES[key]
    _, steps, limit = PATHS[key]
    return Part(Training(case, _alphas(key, steps), 0.0, 1.0, limit), CONVEX, scope.n_trials(case, trained=True))


def narrow(key: str, scope: Scope) -> Part:
    """Return local sampling and its residual version with neurons that are too narrow."""
    case = replace(CASES[key], name=narrow_name(key), width=CASES[key].width / TOO_NARROW)
    return Part(Sampling(case, case.stages), RESIDUAL, scope.n_trials(case))


def unpenalised(key: str, scope: Scope) -> Part:
    """Return local sampling and its residual version with too small a penalty."""
    case = replace(CASES[key], name=unpenalised_name(key))
    return Part(Sampling(case, case.stages, TOO_SMALL), RESIDUAL, scope.n_trials(case))


def narrow_name(key: str) -> str:
    """Return the name of a case with neurons that are too narrow."""
    return f"{CASES[key].name}_narrow"


def unpenalised_name(key: str) -> str:
    """Return the name of a case with too small a penalty."""
    return f"{CASES[key].name}_unpenalised"


def _training(key: str, steps: int, max_neurons: int) -> Training:
    case = CASES[key]
    gamma = 10.0 if case.dimension == 1 else 5.0
    theta = 0.5 if case.dimension <= 2 else 0.25  # as in the authors' programs
    return Training(case, _alphas(key, steps), gamma, theta, max_neurons)


def _alphas(key: str, steps: int) -> tuple[float, ...]:
    return tuple(CASES[key].dimension * PATHS[key][0] / 4**n for n in range(steps))  # hashed: division by 4 is exact
