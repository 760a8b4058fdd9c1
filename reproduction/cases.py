"""The paper's cases: a function, its data, and the neurons."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np

from nurf import problems
from nurf.activations import Activation, Sigmoid, Softplus
from nurf.jets import Jet
from nurf.problems import Problem
from reproduction.seeds import generator, seed

ACTIVATIONS: dict[int, type[Sigmoid] | type[Softplus]] = {1: Sigmoid, 2: Softplus}


@dataclass(frozen=True)
class Case:
    """A problem with the data and the neurons of the paper's section 5.

    The names and values of the fields are hashed: they determine the keys of results and all seeds.

    Parameters
    ----------
    name : str
        As in the authors' figures, such as ``"checkmark_3d"``.
    problem : str
        One of ``problems.names()``.
    dimension : int
    n_samples : int
        Number of training points, and of validation points.
    n_neurons : int
        Largest number of neurons in the convergence plots.
    width : float
        Width of the neurons.
    order : {1, 2}
        Order s of the activation: 1 for sigmoid, 2 for softplus.
    grid : bool
        Whether the training points are an equispaced grid instead of i.i.d. uniform points. Validation points are
        always i.i.d.
    noise : float
        Standard deviation of the noise in the training values. Validation values have none.
    unit : float
        All values are divided by it. Only the penalty of sparse training depends on it.
    """

    name: str
    problem: str
    dimension: int
    n_samples: int
    n_neurons: int
    width: float = 1 / 40
    order: int = 1
    grid: bool = False
    noise: float = 0.0
    unit: float = 1.0

    @property
    def key(self) -> str:
        """The name, followed by the order if that is not one."""
        return self.name if self.order == 1 else f"{self.name}_s{self.order}"

    @property
    def function(self) -> Problem:
        """The function with its derivatives, in scaled units."""
        return problems.get(self.problem, dimension=self.dimension)

    @property
    def activation(self) -> Activation:
        """The activation of the neurons."""
        return ACTIVATIONS[self.order](self.width)

    @property
    def stages(self) -> tuple[int, ...]:
        """The authors' eight numbers of neurons, geometrically spaced from 4 to ``n_neurons``.

        >>> CASES["gaussian_bump"].stages
        (4, 6, 8, 12, 17, 24, 35, 50)
        """
        return tuple(int(n) for n in np.geomspace(4, self.n_neurons, 8).round())

    def data(self, rng: np.random.Generator) -> tuple[Jet, Jet]:
        """Return the training and the validation jet."""
        problem = self.function
        per_axis = round(self.n_samples ** (1 / self.dimension))
        X = problem.grid(per_axis) if self.grid else problem.sample(self.n_samples, rng)
        training = problem.jet(X, noise=self.noise, rng=rng)
        validation = problem.jet(problem.sample(len(X), rng))
        return self._in_units(training), self._in_units(validation)

    def trial_data(self, trial: int) -> tuple[Jet, Jet]:
        """Return the data of a trial, which all methods share."""
        return self.data(generator(seed("data", asdict(self), trial)))

    def _in_units(self, jet: Jet) -> Jet:
        gradients, hessians = jet.gradients, jet.hessians
        assert gradients is not None
        assert hessians is not None
        return replace(jet, y=jet.y / self.unit, gradients=gradients / self.unit, hessians=hessians / self.unit)


def _bump(order: int) -> Case:
    return Case("gaussian_bump", "gaussian_bump", 1, 1000, 50, 1 / 80, order, grid=True, noise=0.02)


def _planar(name: str, problem: str) -> Case:
    return Case(name, problem, 2, 31**2, 250, grid=True, noise=0.02)


CASES: dict[str, Case] = {
    case.key: case
    for case in (
        _bump(1),
        _bump(2),
        _planar("planar_wave", "planar_wave"),
        _planar("checkmark_2d", "checkmark"),
        _planar("corner", "corner"),
        _planar("separable", "separable"),
        Case("checkmark_3d", "checkmark", 3, 2000, 1000),
        Case("checkmark_4d", "checkmark", 4, 2000, 1000),
        Case("corner_peak_3d", "corner_peak", 3, 5000, 1000),
        Case("corner_peak_4d", "corner_peak", 4, 5000, 1000),
        Case("robot_arm_6d", "robot_arm", 6, 5000, 1000),
        Case("borehole_8d", "borehole", 8, 5000, 1000, unit=100.0),
    )
}
