"""The paper's figures: the experiments that each needs, and how it is drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

from reproduction import drawing, plan
from reproduction.cases import CASES
from reproduction.evidence import Evidence
from reproduction.plan import Part, Scope
from reproduction.results import Neurons, Result, Table
from reproduction.store import Unit

Results = Mapping[Unit, Result]


@dataclass(frozen=True)
class PaperFigure(ABC):
    """A figure of the paper.

    Parameters
    ----------
    name, title, caption : str
    says : str
        What the paper says about it.
    """

    name: str
    title: str
    caption: str
    says: str

    @abstractmethod
    def parts(self, scope: Scope) -> tuple[Part, ...]:
        """Return the experiments."""

    @abstractmethod
    def draw(self, evidence: Evidence) -> Figure:
        """Return the picture."""

    @abstractmethod
    def note(self, scope: Scope) -> str:
        """Return what differs from the paper's setting."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The cases whose errors are compared with those of the authors; none by default."""
        return ()

    def units(self, scope: Scope) -> tuple[Unit, ...]:
        """Return the units of work."""
        return tuple(unit for part in self.parts(scope) for unit in part.units)

    def evidence(self, results: Results, scope: Scope) -> Evidence:
        """Return all errors, and for each case and method the last network of the first trial that kept any."""
        units = self.units(scope)
        networks: dict[tuple[str, str], Neurons] = {}
        for unit in units:
            if results[unit].networks:
                networks.setdefault((unit.experiment.case.key, unit.method), results[unit].networks[-1])
        return Evidence(Table.of(results[unit] for unit in units), networks)


@dataclass(frozen=True)
class Portraits(PaperFigure):
    """Fits of three kinds side by side: uniform, nonuniform (local) and trained.

    Parameters
    ----------
    key : str
        The case.
    n_sampled, n_trained : int
        Numbers of neurons.
    also : tuple of str
        Further cases of which a claim about this figure needs the sampled networks.
    """

    key: str
    n_sampled: int
    n_trained: int
    also: tuple[str, ...] = ()

    def parts(self, scope: Scope) -> tuple[Part, ...]:
        """Return one network per density, and the path up to the trained network."""
        sampled = (plan.portrayed(key, self.n_sampled) for key in (self.key, *self.also))
        return *sampled, plan.portrayed_training(self.key, self.n_trained)

    def draw(self, evidence: Evidence) -> Figure:
        """Draw the networks over the data of the first trial."""
        methods = (*plan.PORTRAYED, *plan.SPARSE)
        networks = {method: evidence.network(self.key, method) for method in methods}
        errors = {method: float(evidence.curve(self.key, method)[1][-1]) for method in methods}
        return drawing.portraits(CASES[self.key], CASES[self.key].trial_data(0)[0], networks, errors)

    def note(self, scope: Scope) -> str:
        """Return how the networks were chosen."""
        return (
            "One realisation, the first trial; nonuniform is the local density with the authors' jitter. The trained "
            f"network is the last of the path with at most {self.n_trained} neurons."
        )


@dataclass(frozen=True)
class Convergence(PaperFigure):
    """Errors against numbers of neurons, a panel for each case."""

    cases: tuple[str, ...]
    remark: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """All cases."""
        return self.cases

    def parts(self, scope: Scope) -> tuple[Part, ...]:
        """Return sampled and trained networks of all cases."""
        makers = (plan.sampled, plan.trained)
        return tuple(make(key, scope) for key in self.cases for make in makers)

    def draw(self, evidence: Evidence) -> Figure:
        """Draw all methods, and below them their spread over trials."""
        return drawing.convergence(evidence.table, {key: plan.PATHS[key][2] for key in self.cases})

    def note(self, scope: Scope) -> str:
        """Return how the curves are computed."""
        case = CASES[self.cases[0]]
        n, m = scope.n_trials(case), scope.n_trials(case, trained=True)
        high = case.dimension > 2
        shorter = ", without the last step of the full run" if scope.quick and high else ""
        limit = f", of at most {plan.PATHS[self.cases[0]][2]} neurons{shorter}" if high else ""
        trials = f"{n} trial{'s' * (n > 1)}" + (f" ({m} of trained networks{limit})" if high or m != n else "")
        return (
            f"{trials}, each with new data, which all methods share; networks grow from stage to stage. Lines are "
            f"exp(mean log error), the spread is one standard deviation of log error. {self.remark}"
        ).strip()


@dataclass(frozen=True)
class Densities(PaperFigure):
    """Densities of hyperplanes over angles and offsets: a row for each case."""

    cases: tuple[str, ...]

    def parts(self, scope: Scope) -> tuple[Part, ...]:
        """Return trained networks and samples of all cases."""
        return tuple(part for key in self.cases for part in (plan.trained(key, scope), plan.pictured(key)))

    def draw(self, evidence: Evidence) -> Figure:
        """Draw trained weights, the exact representation and local sampling."""
        methods = (*plan.SPARSE, *plan.PICTURED)
        return drawing.densities(
            {key: {method: evidence.network(key, method) for method in methods} for key in self.cases}
        )

    def note(self, scope: Scope) -> str:
        """Return what is drawn."""
        return (
            f"{plan.N_DRAWS} samples of each density (the authors have 30000), the last trained network of the first "
            "trial; a hyperplane and its mirror image both count. The kernel has bandwidth 0.1 in radians and in radii."
        )


@dataclass(frozen=True)
class Statements(PaperFigure):
    """Statements about all convergence plots, and experiments of their own that decide them."""

    def parts(self, scope: Scope) -> tuple[Part, ...]:
        """Return the experiments of all convergence plots, and the additional ones in one and two dimensions."""
        shown = [part for figure in FIGURES.values() if figure.keys for part in figure.parts(scope)]
        small = [key for key, case in CASES.items() if case.dimension <= 2]
        sigmoid = [key for key in small if CASES[key].order == 1]
        harmed = [make(key, scope) for make in (plan.narrow, plan.unpenalised) for key in sigmoid]
        return *shown, *(plan.convex(key, scope) for key in small), *harmed

    def draw(self, evidence: Evidence) -> Figure:
        """Draw the paths of the concave and the convex penalty."""
        return drawing.penalties(evidence.table, [key for key, case in CASES.items() if case.dimension <= 2])

    def note(self, scope: Scope) -> str:
        """Return what was computed in addition."""
        return (
            "The convex penalty, small widths and small alphas are tried in one and two dimensions only. A width that "
            f"is too small is {plan.TOO_NARROW} times smaller than usual; an alpha that is too small is 10,000 times "
            "smaller than the smallest of the authors'."
        )


FIGURES: dict[str, PaperFigure] = {
    figure.name: figure
    for figure in (
        Portraits(
            "fig1",
            "A Gaussian bump in one dimension",
            "Uniform, nonuniform and trained networks: noisy data, the network, and its inflection points.",
            "The nonuniform and the trained network allocate more inflection points to regions with high variability.",
            "gaussian_bump",
            30,
            11,
        ),
        Portraits(
            "fig2",
            "A planar wave",
            "Uniform, nonuniform and trained networks: hyperplanes over the function (top), network and data (bottom).",
            "The nonuniform and the trained network orient their hyperplanes along the directions of variability.",
            "planar_wave",
            30,
            11,
            also=("gaussian_bump",),
        ),
        Portraits(
            "fig3",
            "The checkmark in two dimensions",
            "Uniform, nonuniform and trained networks: hyperplanes over the function (top), network and data (bottom).",
            "Hyperplanes align with the level sets, although there is no globally dominant direction.",
            "checkmark_2d",
            75,
            31,
        ),
        Convergence(
            "fig4",
            "Convergence for the Gaussian bump",
            "Relative errors against numbers of neurons; left: sigmoid (s = 1), right: softplus (s = 2).",
            "Uniform sampling, nonuniform sampling and training differ significantly; the nonuniform densities do not.",
            ("gaussian_bump", "gaussian_bump_s2"),
            "The noise bounds the errors from below. There are no results of the authors' code for training at s = 2.",
        ),
        Convergence(
            "fig5",
            "Convergence for anisotropic functions",
            "Relative errors against numbers of neurons; left: planar wave, right: checkmark.",
            "Active subspaces do as well as gradients on the wave, no better than uniform sampling on the checkmark.",
            ("planar_wave", "checkmark_2d"),
            "The noise bounds the errors from below.",
        ),
        Densities(
            "fig6",
            "Densities for anisotropic functions",
            "Kernel density estimates over the angle of the normal and the offset; top: wave, bottom: checkmark.",
            "Local samples and trained weights lie along the wave's direction; the exact representation is smeared.",
            ("planar_wave", "checkmark_2d"),
        ),
        Convergence(
            "fig7",
            "The checkmark in three and four dimensions",
            "Relative errors against numbers of neurons; left: d = 3, right: d = 4.",
            "Active subspaces perform like uniform sampling; nonlocal and residual sampling are significantly better.",
            ("checkmark_3d", "checkmark_4d"),
        ),
        Convergence(
            "fig8",
            "Convergence for a corner and a separable function",
            "Relative errors against numbers of neurons; left: nonsmooth corner, right: sum of two planar functions.",
            "Local sampling stagnates on the corner; only training exploits that the separable function is one.",
            ("corner", "separable"),
            "The noise bounds the errors from below.",
        ),
        Densities(
            "fig9",
            "Densities for a corner and a separable function",
            "Kernel density estimates over the angle of the normal and the offset; top: corner, bottom: separable.",
            "Only training finds the two axes of the separable function.",
            ("corner", "separable"),
        ),
        Convergence(
            "fig10",
            "The corner peak",
            "Relative errors against numbers of neurons; left: d = 3, right: d = 4.",
            "Finding the active subspace makes a big difference; placing hyperplanes near the peak adds to it.",
            ("corner_peak_3d", "corner_peak_4d"),
        ),
        Convergence(
            "fig11",
            "Robot arm and borehole",
            "Relative errors against numbers of neurons; left: robot arm (d = 6), right: borehole (d = 8).",
            "Directions help, locations help further; localised sampling is consistently better on the borehole.",
            ("robot_arm_6d", "borehole_8d"),
            "The path of the robot arm is one step shorter than the authors'. The borehole function is the true one, "
            "also in the thin curves; the paper's own figure shows another.",
        ),
        Statements(
            "sec5",
            "Statements about all cases",
            "Trained networks along the path over alpha, with the concave and with the convex penalty.",
            "Adaptive methods are consistently better; trained networks are smaller and far more expensive; residual "
            "sampling needs a good alpha and delta.",
        ),
    )
}
