"""The regressor with a deep network, whose training starts from a sampled first layer."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nurf._scaling import Scaling
from nurf._validation import is_number, is_whole
from nurf._warping import Warping
from nurf.activations import Sigmoid
from nurf.blockwise import Blocks, TrainedBlocks
from nurf.choosing import POLICY, Clock, Judged, decide
from nurf.data import DerivativeCheck, Observations, checked_gradients, split
from nurf.densities import Density, Nonlocal, Uniform
from nurf.engines import (
    DeepFit,
    DeepOptions,
    DeepSetting,
    DeepSpec,
    TrainedEngine,
    balanced_weight,
    first_network,
    watch_attempts,
)
from nurf.estimators._blockwise import BlockwiseRegressor, Checked
from nurf.estimators._parameters import MAX_WEIGHT, MAX_WEIGHTS, as_generator, choose, named_density, zero_derivatives
from nurf.estimators._prepared import Prepared, Request
from nurf.estimators._report import Report, describe_deep
from nurf.jets import Jet
from nurf.networks import NONLINEARITIES, DeepNetwork, Nonlinearity
from nurf.solvers import Loss


class DeepFeatureRegressor(BlockwiseRegressor):
    """Regression by a deep network with all weights trained on values and gradients.

    The hyperplanes of the first layer are sampled from a density built from derivative data. Then all weights are
    trained by SOAP (Adam in the eigenbases of Shampoo's factors) to minimise the mean squared error of the values plus
    ``gradient_weight`` times the mean squared error of the gradients. Inputs and values are scaled internally; given
    and predicted derivatives are in the units of the data.

    Some rows are held out to estimate errors. All settings that the parameters leave open are trained for a short cycle
    of steps, and the best setting for a long cycle. The network after the long cycle is kept, unless the network after
    the short cycle is clearly better. Finally a short cycle uses all rows. ``report()`` shows the candidates and the
    course of the training.

    Parameters
    ----------
    hidden : sequence of int, default (64, 64, 64, 64, 64)
        Numbers of neurons of the hidden layers.
    steps : int or "auto", default "auto"
        Steps of the long cycle, without the held-out rows. "auto" is 2700, or 700 with up to 150 samples, for which
        there are five runs, each without a fold.
    time_budget : float, optional
        Seconds after which the training ends. With a budget, each cycle has twice the steps of the previous cycle,
        until the time is over; an unfinished cycle does not count. The first cycle of the first setting is always
        finished. ``n_iter_`` is the number of steps taken. For data in blocks it is no deadline.
    gradient_weight : float or "auto", default "auto"
        Weight of the squared residual of a gradient in the loss, relative to a value, both in scaled units. "auto"
        tries the weight for which both count equally, and 0, and continues with the smaller error at the held-out rows.
    activation : {"tanh", "silu"} or Nonlinearity, default "tanh"
        The activation of all layers.
    density : str or Density, default "auto"
        The density of the hyperplanes of the first layer: "uniform", "active_subspace", "local",
        "axis_aligned", "nonlocal", "representation", or an object of ``nurf.densities``. "auto" chooses between
        nonlocal and uniform.
    scaling : {"box", "ball", None}, default "box"
        Scaling of the inputs into the unit ball: each by its own range, all by one factor, or none.
    target : {"auto", "log", "asinh", None} or sequence of these, default None
        Transformation of the values before the fit, for all outputs or one for each. Predictions, derivatives and
        errors are in the units of the data. See ``Surrogate``.
    inputs : {"auto", "log", None}, sequence or dict of these, default None
        Inputs that are replaced by their logarithms: all, one entry for each input, or by name. See ``Surrogate``.
    check_gradients : {"warn", "raise", False}, default "warn"
        Whether ``fit`` warns or raises an error if the gradients contradict the values (see ``check_derivatives``), or
        does not compare them. If the data are not sufficient to decide, there is no warning and no error.
    warm_start : bool, default False
        Whether a second ``fit`` continues the training of the first, with its units and setting, like ``partial_fit``.
    random_state : int, RandomState, Generator or None, default None
        Seed for the first weights, the batches, and the held-out rows.
    verbose : int, default 0
        1 to write a line for each candidate that is the best so far to the standard error.

    Attributes
    ----------
    network_ : DeepNetwork
        The fitted network, as a function of unscaled inputs.
    gradient_weight_ : float
        The weight of gradients in the loss.
    density_ : Density
        The density of the first layer.
    n_steps_ : int
        Steps of the long cycle: the parameter ``steps``, or the number for "auto".
    n_iter_ : int
        Number of steps of the training of the network, earlier fits included.
    n_samples_ : int
        Number of fitted samples.
    fit_ : DeepFit
        The fit in scaled units, with the tried settings and the cycles of the training.
    scaling_ : Scaling
        The change of units.
    estimated_error_ : float or array of shape (k,)
        The estimated root mean square error at new points, in the units of each output, from the held-out rows; NaN
        with fewer than three of them. The last cycle, which uses all rows, lowers the actual error slightly.
    uncertainty_ : CrossFit
        The uncertainty of the fit, in scaled units, from the held-out rows.
    gradient_check_ : DerivativeCheck or None
        The comparison of the gradients with the values; None if there was none.
    n_features_in_ : int
    feature_names_in_ : array of shape (d,)

    Notes
    -----
    Hessians are not in the loss, and a warning says so, because they need third derivatives of the network, at many
    times the cost. With several outputs, each step fits the gradients of random combinations of the outputs, whose
    expectation is the loss of all gradients, so that many outputs take little longer than one.

    Examples
    --------
    >>> from nurf import problems
    >>> rng = np.random.default_rng(0)
    >>> arm = problems.get("robot_arm", dimension=4)
    >>> data = arm.jet(arm.sample(300, rng))
    >>> model = DeepFeatureRegressor((32, 32, 32), steps=500, random_state=0)
    >>> model = model.fit(data.X, data.y, gradients=data.gradients)
    >>> fresh = arm.sample(1000, rng)
    >>> bool(model.score(fresh, arm.value(fresh)) > 0.99)
    True
    """

    fit_: DeepFit
    network_: DeepNetwork
    n_iter_: int
    activation: Any
    _trains_at_once = True

    def __init__(
        self,
        hidden: Any = (64, 64, 64, 64, 64),
        *,
        steps: int | str = "auto",
        time_budget: float | None = None,
        gradient_weight: float | str = "auto",
        activation: str | Nonlinearity = "tanh",
        density: str | Density = "auto",
        scaling: str | None = "box",
        target: Any = None,
        inputs: Any = None,
        check_gradients: str | bool = "warn",
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.steps = steps
        self.time_budget = time_budget
        self.gradient_weight = gradient_weight
        self.activation = activation
        self.density = density
        self.scaling = scaling
        self.target = target
        self.inputs = inputs
        self.check_gradients = check_gradients
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def partial_fit(self, X: Any, y: Any, **data: Any) -> Self:
        """Continue the training on the given rows, with the arguments of ``fit``.

        Units and setting of the first fit are kept. Rows that were held out before are held out again, and others at
        random, so that the estimated error is always an error at rows that were never trained. If only new rows are
        given, the network may forget the old ones: pass both.
        """
        if not hasattr(self, "fit_"):
            return self.fit(X, y, **data)
        return self._fit_data(Observations(X, y, **data), partial(self._fit_on, self.fit_), reset=False)

    def _warpings(self, jet: Jet, held_out: Jet | None) -> list[Warping]:
        goes_on = self.warm_start and hasattr(self, "fit_")
        return [self.warping_] if goes_on else super()._warpings(jet, held_out)

    def _prepare(self, request: Request) -> Prepared:
        start, jet, scaling, held_out = request.start, request.jet, request.scaling, request.held_out
        clock = request.clock
        if start is None and self.warm_start:
            start = getattr(self, "fit_", None)
        if start is not None:
            require_shape(jet, start.network)
        if scaling is None:
            scaling = self.scaling_ if start is not None else Scaling.fit(jet, self.scaling)
        scaling, check, found = self._checked_units(scaling, jet, request.given)
        scaled = scaling(jet)
        spec = self._spec(scaled, found)
        if start is not None:
            spec = replace(spec, hidden=start.network.hidden, activation=start.network.activation)
        spec = self._with_steps(spec, scaled)
        entropy = tuple(int(number) for number in request.rng.integers(2**32, size=4))
        validation = None if held_out is None else scaling(held_out)
        engine = TrainedEngine(
            scaled, spec, entropy, validation, start, self.time_budget is not None, clock=request.clock
        )
        return Prepared((engine,), scaling, scaled, check, tuple(found), clock, held_out is not None)

    def _finish(self, prepared: Prepared, fit: DeepFit) -> list[Warning]:
        engine: TrainedEngine = prepared.engines[0]  # type: ignore[assignment]
        before, scaled = 0 if engine.start is None else self.n_iter_, prepared.scaled
        self._set_trained(
            fit, prepared.scaling, engine.spec, before + fit.n_steps, len(scaled), prepared.check, bool(scaled.known)
        )
        return []

    def _fit_on(self, start: DeepFit, jet: Jet, validation: Any, _: Any) -> list[Warning]:
        """Continue the training of a fit."""
        rng, progress = self._generator(), watch_attempts(self._verbosity())
        given, (jet, held_out) = jet, split(jet, validation, rng)
        request = Request(given, jet, held_out, rng, self._clock(Clock()), start=start)
        prepared = self._prepared(self._view, request)
        choice = decide(prepared.engines, POLICY, progress, prepared.clock)
        return [*prepared.warnings, *self._finished(prepared, prepared.fit(choice))]

    def _require_blocks(self) -> None:
        if self.warm_start:
            raise ValueError(
                "`warm_start` must be False for data in blocks, got True: `partial_fit` continues with some rows"
            )

    def _checked_units(self, scaling: Scaling, jet: Jet, given: Jet) -> Checked:
        check, found = checked_gradients(given, self.check_gradients)
        if "hessians" in given.known:
            found += [UserWarning("`hessians` are not used in the training: `RandomFeatureRegressor` fits them")]
        return scaling, check, found

    def _way(self, blocks: Blocks, found: list[Warning]) -> TrainedBlocks:
        spec = self._with_steps(self._spec(blocks.sample, found), blocks.sample)
        return TrainedBlocks(spec, self.steps == "auto" and self.time_budget is None, self._verbosity())

    def _in_time(
        self, judged: Judged, fit: DeepFit, blocks: Blocks, clock: Clock
    ) -> tuple[TrainedBlocks, DeepFit, bool]:
        way, is_whole = self._way(blocks, []).in_time(fit, blocks, clock)
        return way, fit, is_whole

    def _set_blockwise(
        self, result: tuple[DeepFit, DeepSpec], blocks: Blocks, check: DerivativeCheck | None
    ) -> list[Warning]:
        (fit, spec), scaling, n_rows = result, blocks.units.scaling, blocks.summary.n_rows
        self._set_trained(fit, scaling, spec, fit.n_steps, n_rows, check, bool(blocks.sample.known))
        return []

    def _set_trained(
        self,
        fit: DeepFit,
        scaling: Scaling,
        spec: DeepSpec,
        n_iter: int,
        n_samples: int,
        check: DerivativeCheck | None,
        has_derivatives: bool,
    ) -> None:
        """Set the attributes of a fit."""
        self._set_fit(fit, scaling, fit.crossfit)
        self.density_, self.gradient_weight_ = fit.setting.density, fit.loss.gradients
        self.n_steps_, self.n_iter_, self.n_samples_ = spec.n_steps, n_iter, n_samples
        self.gradient_check_, self._has_derivatives = check, has_derivatives

    def _first_network(self, X: Any, y: Any, gradients: Any, scale: float) -> DeepNetwork:
        """Return the network from which training starts, with first normals of the length ``scale``.

        The network has the first of the settings that the parameters leave open, in the units of the data.
        """
        made: list[DeepNetwork] = []

        def make(jet: Jet, *rest: Any) -> list[Warning]:
            _, found = checked_gradients(jet, self.check_gradients)
            scaling = Scaling.fit(jet, self.scaling)
            scaled = scaling(jet)
            spec = self._spec(scaled, found)
            setting = replace(spec.settings[0], scale=scale)
            made.append(first_network(scaled, spec, setting, as_generator(self.random_state)).in_units_of(scaling))
            return found

        self._fit_data(Observations(X, y, gradients), make)
        return made[0]

    @property
    def _chosen(self) -> str:
        layers = " x ".join(map(str, self.fit_.network.hidden))
        return f"{layers}, {self.fit_.setting}, {self.fit_.n_steps} steps"

    def report(self) -> Report:
        """Return the choice and the course of the training: text in a terminal, a table in a notebook."""
        check_is_fitted(self, "fit_")
        found = describe_deep(self.fit_, self.n_samples_, self.y_scale_, self._has_derivatives, self.gradient_check_)
        return self._with_units(found)

    def _spec(self, jet: Jet, found: list[Warning]) -> DeepSpec:
        """Return the spec of the network and its training from the parameters, and add warnings to ``found``."""
        if not isinstance(self.warm_start, bool | np.bool_):
            raise ValueError(f"`warm_start` must be True or False, got {self.warm_start!r}")
        activation = self.activation
        if not isinstance(activation, Nonlinearity):
            activation = choose("activation", activation, NONLINEARITIES)()
        zero = zero_derivatives(jet, 1)
        if self.density == "auto":
            found += zero
        return DeepSpec(self._hidden(jet), activation, self._settings(jet, "gradients" in jet.known and not zero))

    def _settings(self, jet: Jet, informative: bool) -> tuple[DeepSetting, ...]:
        """Return the settings to try; ``informative`` if some known gradients are not zero."""
        named = named_density(self.density, Sigmoid())
        if named is not None and (missing := named.missing(jet)):
            got = " and ".join(sorted(jet.known)) or "no derivatives"
            raise ValueError(f"{named!r} needs {' and '.join(missing)}, got {got}: pass them, or use density='auto'")
        densities: list[Density] = [Nonlocal(1), Uniform()] if informative else [Uniform()]
        if named is not None:
            densities = [named]
        weights = self._gradient_weights(jet, informative)
        pairs = [(density, scale) for scale in DeepOptions().scales for density in densities]
        used = [DeepSetting(*pair, Loss(weight)) for weight in weights if weight > 0 for pair in pairs]
        if weights[-1] > 0:
            return tuple(used)
        if used:  # also densities that do not depend on the derivatives
            pairs = [(density, scale) for density, scale in pairs if not (named is None and density.needs)]
        return (*used, *(DeepSetting(*pair) for pair in pairs))

    def _gradient_weights(self, jet: Jet, informative: bool) -> list[float]:
        """Return the weights of gradients to try."""
        weight = self.gradient_weight
        if isinstance(weight, str) and weight == "auto":
            return [min(balanced_weight(jet), MAX_WEIGHT), 0.0] if informative else [0.0]
        if not (is_number(weight) and 0 <= weight <= MAX_WEIGHT):  # type: ignore[operator]
            raise ValueError(f"`gradient_weight` must be 'auto' or a number from 0 to {MAX_WEIGHT:g}, got {weight!r}")
        Loss(gradients=float(weight)).require(jet)
        return [float(weight)]

    def _hidden(self, jet: Jet) -> tuple[int, ...]:
        """Return the sizes of the hidden layers; raise if there are none, or too many weights for any fit."""
        sizes = tuple(np.ravel(np.asarray(self.hidden, object)))
        if not sizes or not all(is_whole(size) for size in sizes):
            raise ValueError(f"`hidden` must be one or more whole numbers >= 1, got {self.hidden!r}")
        layers = (jet.n_features, *(int(size) for size in sizes), jet.y[:1].size)
        n_weights = sum((a + 1) * b for a, b in itertools.pairwise(layers))
        if n_weights > MAX_WEIGHTS:
            raise ValueError(f"`hidden` must be at most {MAX_WEIGHTS} weights in all, got {self.hidden!r}: {n_weights}")
        return tuple(int(size) for size in sizes)

    def _with_steps(self, spec: DeepSpec, jet: Jet) -> DeepSpec:
        """Return the spec with the number of steps, from the parameters."""
        auto = isinstance(self.steps, str) and self.steps == "auto"
        if not auto and not is_whole(self.steps):
            raise ValueError(f"`steps` must be 'auto' or a whole number >= 1, got {self.steps!r}")
        n_valued = int(np.count_nonzero(jet.has_value))
        return replace(spec, n_steps=spec.options.steps_for(n_valued, POLICY) if auto else int(self.steps))

    def _clock(self, clock: Clock) -> Clock:
        if self.time_budget is None:
            return clock
        if not (is_number(self.time_budget) and self.time_budget > 0):
            raise ValueError(f"`time_budget` must be None or a number > 0, got {self.time_budget!r}")
        return clock.within(float(self.time_budget))


def require_shape(jet: Jet, network: DeepNetwork) -> None:
    """Raise an error if the data have other inputs or outputs than the network of the earlier training."""
    expected, got = (network.dimension, network.output_shape), (jet.n_features, jet.y.shape[1:])
    if got != expected:
        raise ValueError(
            f"training continues with {expected[0]} inputs and outputs of shape {expected[1]}, as in the first fit, "
            f"got {got[0]} and {got[1]}"
        )
