"""The regressor for those who do not want to choose one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nurf._validation import is_number
from nurf.data import checked_gradients, split
from nurf.estimators._base import NetworkRegressor
from nurf.estimators._engines import ENGINES, FAILED, Contest, Effort, Engine, EngineArm, Given, default_engines
from nurf.estimators._parameters import as_generator, choose
from nurf.estimators._report import Report
from nurf.jets import Jet
from nurf.training._fit import Trial
from nurf.training._progress import watch_trials
from nurf.training._race import Rung, race

HEADER = ("engine", "estimated error", "seconds", "setting")


@dataclass(frozen=True)
class Standing:
    """How one engine did.

    Attributes
    ----------
    engine : str
        Its name.
    error : float
        The estimated root mean square error at new points, in units of the standard deviation of the values, outputs
        added up; infinite if there is no fit, or too few samples to know.
    seconds : float
        Time that the engine took.
    setting : str
        What it chose, or why there is no fit.
    """

    engine: str
    error: float
    seconds: float
    setting: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The entries of a table."""
        error = f"{self.error:.2g}" if np.isfinite(self.error) else "-"
        return self.engine, error, f"{self.seconds:.2g}", self.setting


@dataclass(frozen=True)
class Leaderboard(Sequence[Standing]):
    """What all engines did, the best first: a table in a terminal and in a notebook, and a sequence of its rows."""

    rows: tuple[Standing, ...]

    @overload
    def __getitem__(self, place: int) -> Standing: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Standing, ...]: ...
    def __getitem__(self, place: int | slice) -> Standing | tuple[Standing, ...]:
        """Return one row, or some."""
        return self.rows[place]

    def __len__(self) -> int:
        """Return the number of engines."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Standing]:
        """Iterate over the rows."""
        return iter(self.rows)

    def __str__(self) -> str:
        table = [HEADER, *(row.cells for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return "\n".join("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table)

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col" style="text-align:left">{title}</th>' for title in HEADER)
        body = "".join(
            "<tr>" + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row.cells) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Surrogate(NetworkRegressor):
    """Regression by the network that is expected to be the best, whichever way it is fitted.

    Three engines fit a network each: an infinitely wide one with learned scales (``KernelFeatureRegressor``), unless
    there are too many samples for that; a shallow one with sampled neurons (``RandomFeatureRegressor``); and a deep one
    with all weights trained (``DeepFeatureRegressor``). The one with the smallest estimated error is taken. Errors are
    estimated at samples that the fits did not see.

    Parameters
    ----------
    time_budget : float or None, default 20
        Seconds that a fit may take. Engines are larger for a larger budget, and smaller on a machine that is too slow
        for them. If the budget suffices, it alone decides how large they are, so that the same ``random_state`` gives
        the same model. None for no limit, with the sizes for 20 seconds.
    engines : "auto", or sequence of str and estimators, default "auto"
        The engines: "wide", "sampled", "trained", "sparse" (``SparseFeatureRegressor``, which takes no account of the
        budget), or regressors of this package, which are fitted as they are. "auto" is the first three, or "wide" alone
        with up to ten samples for each input, which do not tell the others apart. They are fitted in this order, as
        long as there is time. The first one wins in doubt.
    check_gradients : {"warn", "raise", False}, default "warn"
        What ``fit`` does if the gradients contradict the differences of the values (see ``check_derivatives``): it
        warns, raises an error, or does not compare them. It says nothing if the data do not suffice to decide.
    random_state : int, RandomState, Generator or None, default None
        Seed of the random numbers of all engines.
    verbose : int, default 0
        1 to write a line for each engine to the standard error, 2 for the progress of each of them.

    Attributes
    ----------
    model_ : estimator
        The fitted regressor that was chosen. Predictions are its predictions.
    engine_ : str
        The name of its engine.
    leaderboard_ : Leaderboard
        The engines, their estimated errors, what they chose and how long they took.
    network_ : Network
        The fitted network, as a function of unscaled inputs.
    fit_ : Fit
        The fit in scaled units.
    scaling_ : Scaling
        The change of units.
    estimated_error_ : float or array of shape (k,)
        The estimated root mean square error at new points, in the units of each output; NaN with fewer than three
        samples.
    uncertainty_ : Uncertainty or None
        The uncertainty of the fit, in scaled units.
    gradient_check_ : DerivativeCheck or None
        The comparison of the gradients with the values; None if there was none.
    n_features_in_ : int
    feature_names_in_ : array of shape (d,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (40, 2))
    >>> y, gradients = np.sin(2 * X[:, 0]), np.stack([2 * np.cos(2 * X[:, 0]), np.zeros(40)], axis=1)
    >>> model = Surrogate(random_state=0, engines=["wide", "sampled"]).fit(X, y, gradients=gradients)
    >>> fresh = rng.uniform(-1, 1, (1000, 2))
    >>> bool(model.score(fresh, np.sin(2 * fresh[:, 0])) > 0.9999)
    True
    >>> print(model.leaderboard_)
    engine   estimated error  seconds  setting
    ...
    """

    model_: NetworkRegressor
    leaderboard_: Leaderboard

    def __init__(
        self,
        time_budget: float | None = 20.0,
        *,
        engines: Any = "auto",
        check_gradients: str | bool = "warn",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.time_budget = time_budget
        self.engines = engines
        self.check_gradients = check_gradients
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, jet: Jet, validation: Any) -> list[Warning]:
        start, engines = time.perf_counter(), self._engines(jet)
        check, found = checked_gradients(jet, self.check_gradients)
        rng, verbosity = as_generator(self.random_state), self._verbosity()
        entropy = tuple(int(number) for number in rng.integers(2**32, size=4))
        jet, held_out = split(jet, validation, rng)
        budget = self._budget()
        contest = Contest(
            jet,
            held_out,
            Effort() if budget == np.inf else Effort().for_budget(budget),
            engines,
            start + budget,
            entropy,
            {"check_gradients": False, "verbose": max(0, verbosity - 1)},
            {key: value for key, value in vars(self).items() if key in ("n_features_in_", "feature_names_in_")},
        )
        arms = [EngineArm(contest, position) for position in range(len(engines))]
        watch = watch_trials(verbosity, "samples")
        outcome = race(
            arms, [len(jet)], [Rung(rival=np.inf)], improvement=0.0, margin=contest.effort.margin, watch=watch
        )
        best = outcome.best
        if best.model is None:
            reasons = "; ".join(f"{trial.lane} {trial.label}" for trial in outcome.trials)
            raise ValueError(f"no engine could be fitted to these data: {reasons}")
        self.model_, self.engine_ = best.model, best.lane
        chosen = outcome.trials[best.position]  # engines are fitted in order
        others = sorted((trial for trial in outcome.trials if trial is not chosen), key=lambda trial: trial.error)
        self.leaderboard_ = Leaderboard(tuple(_standing(trial) for trial in (chosen, *others)))
        self.gradient_check_ = self.model_.gradient_check_ = check
        self._set_fit(best.model.fit_, best.model.scaling_, best.model.uncertainty_)
        failed = [trial for trial in outcome.trials if trial.label.startswith(FAILED)]
        return [*found, *best.warnings, *(UserWarning(f"engine {trial.lane} {trial.label}") for trial in failed)]

    def report(self) -> Report:
        """Return what each engine did and what was chosen: text in a terminal, a table in a notebook."""
        check_is_fitted(self, "fit_")
        inner = self.model_.report()
        head, *rows = str(self.leaderboard_).splitlines()
        lines = [("engines", head), *(("", row) for row in rows), ("chosen", inner.title), *inner.lines]
        seconds = sum(row.seconds for row in self.leaderboard_)
        return Report(f"The best of {len(rows)} engine{'s' * (len(rows) > 1)}, {seconds:.2g} s", tuple(lines))

    @property
    def _chosen(self) -> str:
        return f"{self.engine_}, {self.model_._chosen}"

    def _budget(self) -> float:
        if self.time_budget is None:
            return np.inf
        if not (is_number(self.time_budget) and self.time_budget > 0):
            raise ValueError(f"`time_budget` must be None or a number > 0, got {self.time_budget!r}")
        return float(self.time_budget)

    def _engines(self, jet: Jet) -> tuple[Engine, ...]:
        chosen = default_engines(jet) if isinstance(self.engines, str) and self.engines == "auto" else self.engines
        if isinstance(chosen, str | NetworkRegressor):
            chosen = (chosen,)
        if not (isinstance(chosen, Sequence) and len(chosen)):
            raise ValueError(f"`engines` must be 'auto', or names or estimators, at least one, got {self.engines!r}")
        return tuple(
            Given(item) if isinstance(item, NetworkRegressor) else choose("engines", item, ENGINES)() for item in chosen
        )


def _standing(trial: Trial) -> Standing:
    return Standing(trial.lane, trial.error, trial.seconds, trial.label)
