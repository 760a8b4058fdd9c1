"""The regressor that chooses between all engines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from nurf._reduction import few_directions
from nurf._scaling import Scaling
from nurf._validation import is_number
from nurf.blockwise import Blocks
from nurf.choosing import POLICY, Clock, NothingFittedError, decide
from nurf.data import DerivativeCheck, Stream, checked_gradients, split
from nurf.engines import watch_attempts
from nurf.estimators._base import NetworkRegressor
from nurf.estimators._blockwise import BlockwiseRegressor, Checked
from nurf.estimators._deep import DeepFeatureRegressor
from nurf.estimators._fidelities import Base
from nurf.estimators._kernel import KernelFeatureRegressor
from nurf.estimators._leaderboard import Leaderboard, leaderboard_of
from nurf.estimators._parameters import choose
from nurf.estimators._prepared import Request
from nurf.estimators._raced import Contender, Raced, RacedBlocks, RacedOnBlocks
from nurf.estimators._regressor import RandomFeatureRegressor
from nurf.estimators._report import Report
from nurf.estimators._shape import CONDITIONS, ShapeParameters
from nurf.estimators._sparse import SparseFeatureRegressor
from nurf.estimators._views import AS_GIVEN, View
from nurf.estimators._warped import tail_warnings
from nurf.jets import Jet

DEFAULT_ENGINES = ("wide", "sampled", "trained")
SHAPED_ENGINES = ("wide", "sampled")  # linear in the weights that conditions on the shape determine
FAILURES = (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError)  # after these the other engines continue
ROWS = 1500  # rows of an infinitely wide network; the time grows with their third power
NEURONS, MANY_NEURONS, MANY = 1000, 2400, 1000  # sampled neurons with at most, and with more than, MANY samples


class Surrogate(BlockwiseRegressor):
    """Regression by the network with the lowest estimated error, from several kinds of networks.

    Three engines take part in one race: infinitely wide networks with learned scales (``KernelFeatureRegressor``),
    shallow networks with sampled neurons (``RandomFeatureRegressor``), and deep networks with all weights trained
    (``DeepFeatureRegressor``). Candidates of all engines are judged by their errors at the same left-out samples, all
    with a small effort and only a few with more. Candidates are compared in pairs, sample by sample: a later engine
    wins if it is clearly better. If the evidence is weak, the earlier engine is kept.

    If the gradients lie in few directions of the inputs (at most half the number of inputs), all engines fit functions
    of these directions. Sampled networks are also fitted to all inputs, and win if the directions are not sufficient.
    With many samples, neurons are also sampled in the linear map of the inputs that infinitely wide networks learn.

    With more than 20,000 rows, engines race on a sample of the rows for half of the time. Sampled and trained networks
    that are not far behind continue with all rows, and held-out rows choose between these networks and the winner of
    the race.

    Parameters
    ----------
    time_budget : float or None, default 20
        Seconds after which a fit ends with the best candidate so far. The first candidate is always fitted. The order
        of candidates and efforts depends on the data and ``random_state`` only, and time decides where it is cut: two
        finished fits (``finished_``) are equal. None for no deadline.
    engines : "auto", or sequence of str and estimators, default "auto"
        The engines: "wide", "sampled", "trained", "sparse" (``SparseFeatureRegressor``, which checks the deadline
        between the steps of its path only), or regressors of this package, with their own parameters. "auto" is wide,
        sampled and trained networks for any number of samples. If the evidence is weak, the earlier engine is kept.
    target : {"auto", "log", "asinh", None} or sequence of these, default "auto"
        Transformation of the values before the fit; a sequence has an entry for each output. "log" is for positive
        values over decades, "asinh" for heavy tails of both signs: ``asinh(y / s)`` with the median ``s`` of ``|y|``.
        Given derivatives are transformed by the chain rule. Results are in the units of the data: predictions are
        transformed back (a median rather than a mean), and so are the ends of intervals; a standard deviation is half
        the distance between the values one standard deviation below and above the transformed value. Fits are judged by
        errors of the values, not of transformed values. "auto" also tries logarithms of values that are positive, span
        more than a decade and are more central as logarithms, and asinh if some values are not positive and the largest
        ``|y|`` is more than ten times the median. The transformation with the smaller estimated error is kept.
    inputs : {"auto", "log", None}, sequence or dict of these, default "auto"
        Inputs that are replaced by their logarithms: all, an entry for each input, or a dict from names (or numbers) of
        inputs. Inputs with logarithms must be positive, also in predictions. "auto" also tries logarithms of inputs
        that span more than a decade, as for ``target``.
    monotone, convex : dict or array of shape (d,) or (k, d), optional
        Inputs along which the function rises (1) or falls (-1), and along which it is convex (1) or concave (-1): by
        name, as in ``{"x1": 1}``, or a number for each input, 0 for no condition. See ``docs/shapes.md``.
    lower, upper : float or array of shape (k,), optional
        Bounds of the values, for each output.
    check_gradients : {"warn", "raise", False}, default "warn"
        Whether ``fit`` warns or raises an error if the gradients contradict the values (see ``check_derivatives``), or
        does not compare them. If the data are not sufficient to decide, there is no warning and no error.
    random_state : int, RandomState, Generator or None, default None
        Seed of the random numbers of all engines.
    verbose : int, default 0
        1 to write a line for each candidate that is the best so far to the standard error, with the remaining time; in
        a terminal the others are counted. 2 to write the steps of sparse training as well.

    Attributes
    ----------
    model_ : estimator
        The chosen and fitted regressor, which makes the predictions.
    engine_ : str
        The name of the engine of ``model_``.
    leaderboard_ : Leaderboard
        The engines with their best candidates, errors and times.
    finished_ : bool
        Whether the race finished before the deadline. If not, more time may give a better model.
    network_ : Network
        The fitted network, as a function of unscaled inputs.
    fit_ : Fit
        The fit in scaled units.
    scaling_ : Scaling
        The change of units.
    warping_ : Warping
        The transformations of inputs and values before the scaling; ``print(model.warping_)`` shows them.
    estimated_error_ : float or array of shape (k,)
        The estimated root mean square error at new points, in the units of each output, corrected for the selection of
        the best candidate; NaN with fewer than three samples.
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
    _takes_functionals = True
    scaling = None  # blocks stay in the units of the data: each engine has its own

    def __init__(
        self,
        time_budget: float | None = 20.0,
        *,
        engines: Any = "auto",
        target: Any = "auto",
        inputs: Any = "auto",
        monotone: Any = None,
        convex: Any = None,
        lower: Any = None,
        upper: Any = None,
        check_gradients: str | bool = "warn",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.time_budget = time_budget
        self.engines = engines
        self.target = target
        self.inputs = inputs
        self.monotone = monotone
        self.convex = convex
        self.lower = lower
        self.upper = upper
        self.check_gradients = check_gradients
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, jet: Jet, validation: Any, base: Base) -> list[Warning]:
        start = time.perf_counter()
        views = partial(self._views, base=base)
        raced = self._raced(jet, validation, self._generator(), start + self._budget(), views)
        found = self._set_raced(raced, raced.winner, raced.fit)
        return found + tail_warnings(raced.choice.winner.evidence, jet.with_values().y, self.target)

    def _raced(
        self,
        jet: Jet,
        validation: Any,
        rng: np.random.Generator,
        deadline: float,
        views: Callable[[Jet, Jet | None], list[View]],
    ) -> Raced:
        """Return the race between all engines, in all views of the training and validation samples."""
        models, clock = self._models(jet), Clock(deadline)
        progress = watch_attempts(self._verbosity(), clock.left)
        check, found = checked_gradients(jet, self.check_gradients)
        entropy = [int(number) for number in rng.integers(2**32, size=4)]
        given, (jet, held_out) = jet, split(jet, validation, rng)
        contenders, failures = list[Contender](), dict[tuple[int, str], Exception]()
        for view in views(jet, held_out):
            for place, (name, model) in enumerate(models):
                seed = np.random.SeedSequence(entropy, spawn_key=(place,)).generate_state(1)[0]
                try:
                    for scaling in self._scalings(view(jet), check, model):
                        rng = np.random.default_rng(seed) if model.random_state is None else model._generator()
                        own = model._clock(clock)
                        prepared = model._prepared(view, Request(given, jet, held_out, rng, own, scaling))
                        contenders += [Contender(name, model, prepared, engine) for engine in prepared.engines]
                except FAILURES as failure:
                    failures[place, str(view)] = failure
        try:
            choice = decide([each.engine for each in contenders], POLICY, progress, clock, FAILURES)
        except NothingFittedError as nothing:
            failures |= _failures(nothing.args[0], contenders, models)
            reasons = "; ".join(f"{models[place][0]} failed: {failure}" for (place, _), failure in failures.items())
            raise ValueError(f"no engine could be fitted to these data: {reasons}") from None
        failures |= _failures(choice.failures, contenders, models)
        chosen = choice.winner.engine.transform
        failed = {place: failure for (place, transform), failure in failures.items() if transform == chosen}
        raced = Raced(models, contenders, choice, failed, check, tuple(found))
        raced.winner.model._keep_errors(choice)
        return raced

    def _set_raced(self, raced: Raced, winner: Contender, fit: Any) -> list[Warning]:
        """Set the attributes of the winner of a race, and return warnings for the user."""
        warping = winner.prepared.view.warping
        warned = winner.model._finished(winner.prepared, fit)
        winner.model.set_params(target=warping.output_kinds, inputs=warping.input_kinds)  # for its clones
        return warned + self._set_model(raced, winner, winner.model)

    def _set_model(self, raced: Raced, chosen: Contender, model: NetworkRegressor) -> list[Warning]:
        """Set the attributes that come from the fitted regressor of a contender, and return warnings for the user."""
        self.model_, self._view = model, model._view
        self.engine_, self.finished_ = chosen.name, raced.choice.finished
        self.leaderboard_ = leaderboard_of(raced.models, raced.contenders, raced.choice, chosen, raced.failures)
        self.gradient_check_ = model.gradient_check_ = raced.check
        self._set_fit(model.fit_, model.scaling_, model.uncertainty_)
        failed = [
            UserWarning(f"engine {raced.models[place][0]} failed: {error}") for place, error in raced.failures.items()
        ]
        return [*raced.warnings, *chosen.prepared.warnings, *failed]

    def _fit_stream(self, stream: Stream, path: Any) -> list[Warning]:
        if path is not None:
            raise ValueError(
                "`checkpoint` must be None for `Surrogate`, whose fits end with `time_budget`, got a file: "
                "`RandomFeatureRegressor` and `DeepFeatureRegressor` keep one"
            )
        return super()._fit_stream(stream, None)

    def _require_blocks(self) -> None:
        self._budget()

    def _checked_units(self, scaling: Scaling, jet: Jet, given: Jet) -> Checked:
        """Return the identity as scaling, because each engine has its own, and no check, which is part of the race."""
        center, level = np.zeros_like(scaling.x_center), np.zeros_like(scaling.y_center)
        return Scaling(center, center + 1.0, level, level + 1.0), None, []

    def _way(self, blocks: Blocks, found: list[Warning]) -> RacedBlocks:
        def race(sample: Jet, rng: np.random.Generator, deadline: float) -> Raced:
            return self._raced(sample, None, rng, deadline, lambda *_: [AS_GIVEN])

        return RacedBlocks(race, self._budget(), self._verbosity())

    def _set_blockwise(self, result: RacedOnBlocks, blocks: Blocks, check: DerivativeCheck | None) -> list[Warning]:
        raced, better = result.raced, result.better
        if better is None:
            return self._set_raced(raced, raced.winner, result.fit)
        choice, chosen = replace(raced.choice, winner=better.judged), raced.contender(better.judged)
        found = self._set_model(replace(raced, choice=choice), chosen, better.model)
        return [*better.warnings, *found]

    def _updated(self, jet: Jet, *_: Any) -> list[Warning]:
        check, found = checked_gradients(jet, self.check_gradients)
        model = copy(self.model_)
        found += model._updated(jet)
        self.model_, self.gradient_check_ = model, check
        model.gradient_check_ = check
        self._set_fit(model.fit_, model.scaling_, model.uncertainty_)
        return found

    def _scalings(self, jet: Jet, check: DerivativeCheck | None, model: NetworkRegressor) -> list[Scaling | None]:
        """Return the scalings of a model, which project onto few directions of many inputs if possible.

        Sampled networks are also fitted to all inputs, in case the directions are not sufficient.
        """
        whole = Scaling.fit(jet)
        reduced = few_directions(jet, whole)
        if reduced is None or (check is not None and check.consistent is False):
            return [None]
        return [reduced, whole] if model._takes_all_inputs else [reduced]

    def _models(self, jet: Jet) -> list[tuple[str, NetworkRegressor]]:
        """Return the names of the engines, and the estimators with their parameters."""
        chosen, free = self.engines, ShapeParameters.of(self, jet.n_features, jet.y.shape[1:]).is_free
        if isinstance(chosen, str) and chosen == "auto":
            chosen = DEFAULT_ENGINES if free else SHAPED_ENGINES
        if isinstance(chosen, str | NetworkRegressor):
            chosen = (chosen,)
        if not (isinstance(chosen, Sequence) and len(chosen)):
            raise ValueError(f"`engines` must be 'auto', or names or estimators, at least one, got {self.engines!r}")
        n = np.count_nonzero(jet.has_value)
        table = {
            "wide": lambda: KernelFeatureRegressor(max_rows=ROWS),
            "sampled": lambda: RandomFeatureRegressor(MANY_NEURONS if n > MANY else NEURONS),
            "trained": DeepFeatureRegressor,
            "sparse": SparseFeatureRegressor,
        }
        models = []
        for item in chosen:
            given = isinstance(item, NetworkRegressor)
            model = clone(item) if given else choose("engines", item, table)()
            known = model.get_params(deep=False)
            if model.target is not None or model.inputs is not None:
                raise ValueError(
                    "`target` and `inputs` of an engine must be None: all engines have those of `Surrogate`, got "
                    f"{model!r}"
                )
            if not free and not set(CONDITIONS) <= set(known):
                raise ValueError(
                    f"conditions on the shape need 'wide' or 'sampled' engines, got {item!r}: trained networks are "
                    "not linear in their weights"
                )
            if any(known.get(name) is not None for name in CONDITIONS):
                raise ValueError(
                    f"conditions on the shape are parameters of `Surrogate`, which all engines have, got {model!r}"
                )
            model.set_params(**{name: getattr(self, name) for name in CONDITIONS if name in known})
            options = {"check_gradients": False, "verbose": max(0, self._verbosity() - 1)}
            model.set_params(**{key: value for key, value in options.items() if key in known})
            for key, value in vars(self).items():
                if key in ("n_features_in_", "feature_names_in_"):
                    setattr(model, key, value)
            models.append((type(item).__name__ if given else item, model))
        if isinstance(self.engines, str) and jet.functionals is not None:  # engines that support functionals
            models = [(name, model) for name, model in models if model._takes_functionals] or models
        return models

    def report(self) -> Report:
        """Return the results of all engines and the choice: text in a terminal, a table in a notebook."""
        check_is_fitted(self, "fit_")
        inner = self.model_.report()
        lines = [("chosen", inner.title), *inner.lines]
        if not self.finished_:
            lines.append(("schedule", "cut off by the time budget: with more time, more would be tried"))
        board = self.leaderboard_
        title = f"The best of {len(board)} engine{'s' * (len(board) > 1)}, {sum(row.seconds for row in board):.2g} s"
        return Report(title, tuple(lines), board)

    @property
    def _chosen(self) -> str:
        return f"{self.engine_}, {self.model_._chosen}"

    def _budget(self) -> float:
        if self.time_budget is None:
            return np.inf
        if not (is_number(self.time_budget) and self.time_budget > 0):
            raise ValueError(f"`time_budget` must be None or a number > 0, got {self.time_budget!r}")
        return float(self.time_budget)


def _failures(
    failed: dict[int, Exception], contenders: Sequence[Contender], models: Sequence[tuple[str, NetworkRegressor]]
) -> dict[tuple[int, str], Exception]:
    """Return the errors of contenders by the places of their models and their transformations."""
    places, found = {id(model): place for place, (_, model) in enumerate(models)}, dict[tuple[int, str], Exception]()
    for number, failure in failed.items():
        found[places[id(contenders[number].model)], contenders[number].engine.transform] = failure
    return found
