"""Studies: where to run a simulator next, and the answers from its runs."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any

import numpy as np

from nurf._types import Array
from nurf.estimators import Report, as_generator
from nurf.files import FileFormatError
from nurf.studies._choosing import Costs
from nurf.studies._failing import Failing
from nurf.studies._knowledge import Knowledge
from nurf.studies._learning import LEAST, Learner
from nurf.studies._planning import Plan, Planner, require_count
from nurf.studies._pool import Pool
from nurf.studies._results import matched, results
from nurf.studies._running import LEASE, Runner
from nurf.studies._space import Space
from nurf.studies._specs import model_of_spec, space_of_spec, spec_of_model, spec_of_space
from nurf.studies._stopping import Verdict, verdict
from nurf.studies._store import ASKED, DONE, FAILED, Run, Store, as_array, finish, insert, runs_in
from nurf.studies.goals import Answer, Error
from nurf.studies.goals._specs import goal_of_spec, spec_of_goal


class Study:
    """Runs of a simulator, a few at a time, until a question is answered.

    A study proposes points (``ask``), takes results in any order (``tell``), fits a model to values and gradients, and
    says when the goal is reached (``done``). With a path, the study is kept in a file, which is written at each step:
    several processes may use it at once, and no result is lost if a process is killed.

    Parameters
    ----------
    inputs : dict
        For each input a distribution of ``scipy.stats`` with its parameters, ``(low, high)`` for values in between, a
        list of levels, or a number if it does not vary.
    goal : goal of ``nurf.goals``, default ``Error(0.01)``
        The question to be answered by the runs.
    path : path, optional
        The file of the study, which must not exist. ``nurf.load`` opens it again.
    constraints : sequence of str, optional
        Linear inequalities between inputs, such as ``"r + 2 * L <= 5"``.
    correlation : array of shape (d, d), optional
        The correlations of the normal scores of the inputs that vary.
    n_initial : int, optional
        The number of runs of the initial design. By default two for each varying input plus two, between 5 and 60.
    design : {"sobol", "latin"}, default "sobol"
        See ``nurf.studies.design``.
    filling : float, default 0.1
        The share of space-filling points among later runs, so that a wrong model is detected.
    max_runs : int, optional
        The budget: the number of runs after which the study is done.
    model : estimator, optional
        The regressor to fit; by default ``KernelFeatureRegressor`` on logarithms of inputs over decades.
    random_state : int, RandomState, Generator or None, default None

    Examples
    --------
    >>> import numpy as np
    >>> import nurf
    >>> study = nurf.Study({"x": (0, 1), "y": (-1, 1)}, nurf.goals.Error(0.02), random_state=0)
    >>> while not study.done:
    ...     X = study.ask(4)
    ...     x, y = X.to_numpy().T
    ...     gradients = np.stack([3 * np.cos(3 * x), 2 * y], axis=1)
    ...     study.tell(X, np.sin(3 * x) + y**2, gradients=gradients)
    >>> study.verdict.reason
    'target'
    >>> study.answer.loss < 0.02
    True
    """

    def __init__(
        self,
        inputs: Any,
        goal: Any = None,
        *,
        path: str | os.PathLike[str] | None = None,
        constraints: Sequence[str] = (),
        correlation: Any = None,
        n_initial: int | None = None,
        design: str = "sobol",
        filling: float = 0.1,
        max_runs: int | None = None,
        model: Any = None,
        random_state: Any = None,
    ) -> None:
        space = Space.of(inputs, constraints, correlation)
        seed = int(as_generator(random_state).integers(2**31))
        plan = Plan.of(space.dimension, n_initial, design, filling, max_runs, seed)
        goal = Error() if goal is None else goal
        entries = {"space": spec_of_space(space), "goal": spec_of_goal(goal), "model": spec_of_model(model)}
        Planner(space, goal, plan).check()
        entries |= {**asdict(plan), "outputs": None}
        self._open(Store.create(path, entries))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Study:
        """Return the study in a file, which other processes may use at the same time."""
        study, store = cls.__new__(cls), Store.open(path)
        try:
            study._open(store)
            study._check_runs()
        except FileFormatError:
            raise
        except Exception as error:  # a damaged file can make constructors raise any error
            raise FileFormatError(f"{store.path} is damaged: {type(error).__name__}: {error}") from error
        return study

    def _open(self, store: Store) -> None:
        entries = store.entries()
        self._store, self._space = store, space_of_spec(entries["space"])
        self._goal, learner = goal_of_spec(entries["goal"]), Learner(self._space, model_of_spec(entries["model"]))
        self._plan = Plan.of(self._space.dimension, **{item.name: entries[item.name] for item in fields(Plan)})
        self._planner = Planner(self._space, self._goal, self._plan)
        self._knowledge = Knowledge(store, self._space, self._goal, self._plan, learner, entries["outputs"])

    def _check_runs(self) -> None:
        """Raise a ``ValueError`` if runs do not belong to the inputs."""
        d = self._space.dimension
        for run in self._store.runs():
            if len(run.x) != d or any(len(row) != d for row in run.gradients or ()):
                raise ValueError(f"run {run.run} must have {d} inputs and partial derivatives, got {run}")
        self._store.answers()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the study to a file, atomically; this study keeps its own file."""
        self._store.save(path)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of all inputs."""
        return self._space.names

    @property
    def varying(self) -> tuple[str, ...]:
        """The names of the varying inputs, which are the inputs of the model."""
        return tuple(self._space.free.names)

    @property
    def goal(self) -> Any:
        """The goal."""
        return self._goal

    @property
    def path(self) -> Any:
        """The file of the study, or None."""
        return self._store.path

    def ask(self, n: int = 1, *, costs: Any = None) -> Any:
        """Return at most ``n`` points to run next, in the units of the inputs, and record them.

        The first points are the initial design. Later points help most to reach the goal, given all runs, including
        points that were asked but not told; a share of the points fills the space. Fewer than ``n`` points are returned
        if all combinations of levels have been used.

        Parameters
        ----------
        n : int, default 1
        costs : dict, optional
            The costs of a run with a "value" and of a run with its "gradient" as well, in any unit, such as
            ``{"value": 1, "gradient": 2}``. A column "compute" then has the kind of each run: the one that reduces
            the variance more, relative to its cost.

        Returns
        -------
        DataFrame
            The inputs, indexed by the numbers of the runs; an array of shape (n, d) without pandas.
        """
        runs = self._ask(n, costs=costs)
        columns = {} if costs is None else {self._space.unused("compute"): [run.compute for run in runs]}
        return self._framed(runs, **columns)

    def _ask(self, n: int, owner: str | None = None, costs: Any = None, most: int | None = None) -> list[Run]:
        require_count("n", n)
        costs, (model, _) = Costs.of(costs), self._knowledge.learn()
        with self._store.transaction() as base:
            runs = runs_in(base)
            n = int(n) if most is None else min(int(n), most - len(runs))
            look = None if model is None else partial(self._knowledge.view, runs)
            alive = None if owner is None else time.time()
            chosen = self._planner.chosen(runs, max(n, 0), costs, look)
            new = [replace(run, owner=owner, alive=alive) for run in chosen]
            numbers = insert(base, new)
        return [replace(run, run=number) for run, number in zip(new, numbers, strict=True)]

    def tell(self, X: Any, y: Any, *, gradients: Any = None, cost: Any = None, message: Any = None) -> None:
        """Add results: of some or all runs that were asked, in any order, or of other runs.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            The inputs. Runs are recognised by the index of ``ask`` and their inputs, or by their inputs. Runs outside
            the ranges, between levels or beyond constraints are kept, but not fitted, and a warning names them.
        y : array of shape (n,) or (n, k)
            The values; NaN for runs that failed, which are kept and avoided.
        gradients : array of shape (n, d) or (n, k, d), optional
            The gradients with respect to the inputs that vary, or all inputs; NaN for unknown partial derivatives.
        cost : array of shape (n,), optional
            The cost of each run, in any unit.
        message : sequence of str, optional
            The reasons of failures.
        """
        found = results(self._space, X, y, gradients, cost, message)
        _warn_outside(self._space, as_array(found.runs, "x").reshape(-1, self._space.dimension))
        with self._store.transaction() as base:
            runs = runs_in(base)
            k = next((len(run.y) for run in runs if run.y is not None), None)
            for run in found.runs:
                if k is not None and run.y is not None and len(run.y) != k:
                    raise ValueError(f"`y` must have {k} outputs, as in the runs before, got {len(run.y)}")
            for run in matched(found, runs, self._space):
                if run.run:
                    finish(base, run)
                else:
                    insert(base, [run])
        if found.outputs is not None and self._knowledge.names is None:
            self._knowledge.names = list(found.outputs)
            self._store.set({"outputs": list(found.outputs)})

    def run(
        self,
        simulator: Any,
        *,
        max_runs: int | None = None,
        n_jobs: int = 1,
        executor: Any = None,
        timeout: float | None = None,
        costs: Any = None,
        lease: float = LEASE,
    ) -> Verdict:
        """Run a simulator until the study is done, and return the verdict.

        Several processes may call this method for one file. Results are used in the order in which they arrive. A run
        fails, with a message, if it raises an exception, returns a value that is not finite, takes too long, or if its
        worker dies. The unfinished runs of a killed process are repeated by the next process that calls this method.

        Parameters
        ----------
        simulator : callable or Command
            Takes a dict with all inputs, and returns values, ``(values, gradients)``, or a dict with "y", "gradients"
            and "cost". With ``costs`` it also takes a keyword ``compute``: see ``ask``.
        max_runs : int, optional
            The largest number of runs of the study.
        n_jobs : int, default 1
            The number of concurrent runs; more than one use processes of joblib's loky.
        executor : executor, optional
            An executor of ``concurrent.futures``, a client of Dask, or any object whose ``submit`` returns futures.
        timeout : float, optional
            Seconds for each run. Without ``n_jobs`` or ``executor``, only a ``Command`` can be interrupted.
        costs : dict, optional
            See ``ask``.
        lease : float, default 300
            Seconds without a sign of life after which runs of another process are taken over.

        Returns
        -------
        Verdict
        """
        if max_runs is not None:
            require_count("max_runs", max_runs)
        require = getattr(simulator, "require", None)  # of a command
        if require is not None:
            require(self._space.names)
        pool = Pool.of(simulator, n_jobs, executor, timeout)
        most = min((n for n in (max_runs, self._plan.max_runs) if n is not None), default=None)
        ask = partial(self._ask, costs=costs, most=most)
        Runner(self._store, self._space, pool, ask, lambda: self._verdict(most).done, costs is not None).run(lease)
        return self._verdict(most)

    @property
    def runs(self) -> Any:
        """All runs with their inputs, states and values: a data frame, or a list without pandas."""
        runs = self._store.runs()
        k = next((len(run.y) for run in runs if run.y is not None), 1)
        values = np.array([run.y if run.y is not None else (np.nan,) * k for run in runs]).reshape(-1, k)
        columns: dict[str, Any] = dict(zip(self._knowledge.outputs(k), values.T, strict=True))
        columns |= {name: [getattr(run, name) for run in runs] for name in ("origin", "state", "message", "cost")}
        return self._framed(runs, **{self._space.unused(name): column for name, column in columns.items()})

    @property
    def model(self) -> Any:
        """The fitted model of all runs with values, as a function of the varying inputs."""
        return self._knowledge.model()

    @property
    def answer(self) -> Answer:
        """The answer to the question of the goal, with its interval and its probability."""
        found = self._knowledge.answer()
        if found is None:
            raise ValueError(f"an answer needs at least {LEAST} runs with values")
        return found

    @property
    def verdict(self) -> Verdict:
        """Whether the study is done, with the reason and its probability."""
        return self._verdict(self._plan.max_runs)

    def _verdict(self, max_runs: int | None) -> Verdict:
        runs, n_initial = self._store.runs(), self._plan.n_initial
        judged = self._goal.target is not None and sum(run.state in (DONE, FAILED) for run in runs) >= n_initial
        answer = self._knowledge.answer() if judged else None
        return verdict(answer, self._store.answers(), runs, n_initial, max_runs, self._planner.exhausted(runs))

    @property
    def done(self) -> bool:
        """Whether no further run is needed: see the reasons of ``verdict``."""
        return self.verdict.done

    def report(self) -> Report:
        """Return the answer, the runs, and whether more are needed: text in a terminal, a table in a notebook."""
        runs = self._store.runs()
        counts = {state: sum(run.state == state for run in runs) for state in (DONE, FAILED, ASKED)}
        lines = [("runs", ", ".join(f"{count} {state}" for state, count in counts.items()))]
        costs = [run.cost for run in runs if run.cost is not None]
        if costs:
            lines.append(("cost", f"{sum(costs):.4g}"))
        if counts[FAILED]:
            lines.append(("failures", Failing.of(runs, self._space).describe()))
        answer = self._knowledge.answer()
        lines.append(("answer", "not known: there are too few runs with values" if answer is None else str(answer)))
        lines.append(("next", self.verdict.text))
        if answer is not None:
            lines.append(
                ("model", f"{type(self.model).__name__}, estimated error {_short(self.model.estimated_error_)}")
            )
            lines += [("warning", text) for text in self._knowledge.learner.notes]
        return Report(f"A study of {self._space.dimension} inputs for {self._goal}", tuple(lines))

    def plot(self, ax: Any = None) -> Any:
        """Draw the loss of the answer against the number of runs, with the target, and return the axes."""
        from nurf.plots import axes_or_current

        ax, history = axes_or_current(ax), self._knowledge.losses()
        runs = [n for n, loss in history.items() if np.isfinite(loss) and loss > 0]
        ax.plot(runs, [history[n] for n in runs], marker="o", label="loss, with probability 0.9")
        if self._goal.target is not None:
            ax.axhline(self._goal.target, linestyle="--", color="black", label="target")
        answer = self._knowledge.answer()
        ax.set(xlabel="runs", ylabel="loss" if answer is None else answer.what, yscale="log")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend()
        return ax

    def __repr__(self) -> str:
        return f"Study({list(self._space.names)}, {self._goal})"

    def _framed(self, runs: Sequence[Run], **columns: Any) -> Any:
        frame = self._space.frame(as_array(runs, "x").reshape(-1, self._space.dimension), **columns)
        if hasattr(frame, "index"):
            frame.index = [run.run for run in runs]
            frame.index.name = "run"
        return frame


def _warn_outside(space: Space, X: Array) -> None:
    """Warn if points (m, d) are no points of a space."""
    rows = np.flatnonzero(~space.contains(X)).tolist()
    if rows:
        warnings.warn(
            f"rows {rows} of `X` are outside the study, and are kept, but not fitted: {space.outside(X[rows[0]])}",
            stacklevel=3,  # the call of the user
        )


def _short(errors: Any) -> str:
    return ", ".join(f"{error:.3g}" for error in np.ravel(errors))
