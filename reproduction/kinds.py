"""The kinds of figures: the experiments that each needs, and how it is drawn."""

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
        """The cases whose errors are compared with the errors of the authors; none by default."""
        return ()

    def own_rows(self, table: Table) -> Table:
        """Return the rows that are written to the table of this figure."""
        return table

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
        """Return networks of each density, and the paths up to the trained networks."""
        sampled = (plan.portrayed(key, self.n_sampled, scope) for key in (self.key, *self.also))
        return *sampled, plan.portrayed_training(self.key, self.n_trained, scope)

    def draw(self, evidence: Evidence) -> Figure:
        """Draw the networks of the first trial over its data."""
        methods = (*plan.PORTRAYED, *plan.SPARSE)
        networks = {method: evidence.network(self.key, method) for method in methods}
        errors = {method: evidence.table.trials(self.key, method)[0][-1].error for method in methods}
        return drawing.portraits(CASES[self.key], CASES[self.key].trial_data(0)[0], networks, errors)

    def note(self, scope: Scope) -> str:
        """Return how the networks were chosen."""
        n = scope.n_trials(CASES[self.key])
        return (
            f"The picture and the places of neurons show the first trial; ratios of errors are means over {n}. "
            "Nonuniform is the local density with the authors' jitter. The trained network is the last of the path "
            f"with at most {self.n_trained} neurons."
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
        """Draw all methods."""
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
            f"exp(mean log error), bands one standard deviation of log error, cut at the edges. {self.remark}"
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
        """Return a description of the points, the kernel and the colours."""
        return (
            f"{plan.N_DRAWS} samples of each density (the authors have 30000), the last trained network of the first "
            "trial; a hyperplane and its mirror image both count. The kernel has bandwidth 0.1 in radians and in radii."
            " A row has one scale of colours, of the root of the density."
        )


@dataclass(frozen=True)
class Statements(PaperFigure):
    """Statements about several figures, and experiments of their own that decide them.

    Parameters
    ----------
    about : tuple of PaperFigure
        The figures.
    """

    about: tuple[PaperFigure, ...]

    def parts(self, scope: Scope) -> tuple[Part, ...]:
        """Return the experiments of these figures, and additional ones in one and two dimensions."""
        shown = [part for figure in self.about for part in figure.parts(scope)]
        small = [key for key, case in CASES.items() if case.dimension <= 2]
        sigmoid = [key for key in small if CASES[key].order == 1]
        harmed = [make(key, scope) for make in (plan.narrow, plan.unpenalised) for key in sigmoid]
        return *shown, *(plan.convex(key, scope) for key in small), *harmed

    def own_rows(self, table: Table) -> Table:
        """Return the rows that no other figure has."""
        shown = {key for figure in self.about for key in figure.keys}
        return Table(tuple(row for row in table.rows if row.key not in shown or row.method in plan.CONVEX))

    def draw(self, evidence: Evidence) -> Figure:
        """Draw the paths of the concave and the convex penalty."""
        return drawing.penalties(evidence.table, [key for key, case in CASES.items() if case.dimension <= 2])

    def note(self, scope: Scope) -> str:
        """Return a description of the additional experiments."""
        return (
            "The convex penalty, small widths and small alphas are tried in one and two dimensions only. A width that "
            f"is too small is {plan.TOO_NARROW} times smaller than usual; an alpha that is too small is 10,000 times "
            "smaller than the smallest of the authors'."
        )
