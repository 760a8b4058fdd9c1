"""The regressor with sampled neurons."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from nurf._scaling import Scaling
from nurf.activations import Activation
from nurf.blockwise import Absorb, Blocks, Running, SampledBlocks, Solution
from nurf.choosing import Clock, Judged
from nurf.data import DerivativeCheck, Observations, Units, read_block
from nurf.densities import Density
from nurf.engines import (
    Conditions,
    CrossFit,
    SampledEngine,
    ShallowFit,
    cleaned_engines,
    fit_for_more_rows,
    watch_attempts,
)
from nurf.estimators._base import ShallowRegressor
from nurf.estimators._blockwise import OR_AT_ONCE, BlockwiseRegressor, Checked
from nurf.estimators._choices import Choices
from nurf.estimators._parameters import as_generator, choose, sampling_order, zero_derivatives
from nurf.estimators._prepared import Prepared, Request
from nurf.estimators._reduced import Reduction
from nurf.estimators._report import Report, describe, describe_loss, describe_reduction, describe_sampling
from nurf.estimators._saved import unchanged_on_error
from nurf.jets import Jet
from nurf.solvers import GeneralizedCrossValidation, LeaveOneOut, Rule, Validation
from nurf.solvers.ridge import Posterior

SELECTION: dict[str, Rule] = {"loo": LeaveOneOut(), "gcv": GeneralizedCrossValidation()}
NAMES = {"loo": "leave-one-out", "gcv": "generalised cross-validation"}


class RandomFeatureRegressor(BlockwiseRegressor, ShallowRegressor):
    """Regression by a shallow network with sampled inner weights.

    The network is ``f(x) = sum_n c_n sigma(a_n.x + b_n) + p(x)``. Its hyperplanes ``a_n.x + b_n = 0`` are sampled from
    a density built from derivative data; the outer weights ``c_n`` and the polynomial ``p`` are found by ridge
    regression. Inputs and values are scaled internally; given and predicted derivatives are in the units of the data.

    A race chooses the parameters that are left open: many candidates are compared with few neurons, fewer candidates
    with more neurons, and one or two with all neurons, by their errors at left-out samples. ``report()`` shows the best
    candidates of each size. Some candidates are fitted to the values alone, and lose only if others are clearly better.

    Parameters
    ----------
    n_neurons : int or "auto", default 1000
        Number of neurons. Fewer are used if a smaller network of the race is clearly better. "auto" increases the
        number from 150 up to 4050 as long as each step lowers the estimated error by 5%.
    density : str or Density, default "auto"
        The density of the hyperplanes: "uniform", "active_subspace", "local", "axis_aligned", "nonlocal",
        "representation", or an object of ``nurf.densities``. "auto" chooses from local, axis-aligned, nonlocal and
        uniform sampling, with or without a metric learned from the gradients.
    activation : str or Activation, default "sigmoid"
        "sigmoid", "erf", "heaviside" (order 1), "softplus", "relu" (order 2), or an object of ``nurf.activations``.
    width : float, "auto" or "multiscale", default "auto"
        Width of the transition of a smooth activation, in units of the ball into which the inputs are scaled. "auto"
        chooses between 0.0125 and 3.2, with the same width for all neurons of a stage or with widths that differ by
        factors up to 4; with "multiscale" widths always differ. An activation object keeps its own width.
    alpha : float or "auto", default "auto"
        Ridge regularisation: the penalty ``alpha N / 2 |c|^2`` on half the mean squared error (paper, eq. 1.6), with
        ``alpha`` in units of the mean energy of a feature. "auto" chooses the largest alpha of a path whose error is
        within 5% of the best.
    selection : {"loo", "gcv"}, default "loo"
        Estimate of errors with more than 150 samples and without validation samples: closed-form leave-one-out, or
        generalised cross-validation, which is faster and less reliable. With up to 150 samples (1000
        with fewer than 20 values and derivatives for each input) each candidate is fitted without each of five folds.
    gradient_weight : float or "auto", default "auto"
        Weight of the squared residual of a gradient in the loss, relative to a value, both in scaled units. "auto"
        chooses from 0, 0.001, 0.01 and 0.1.
    hessian_weight : float, default 0
        Weight of the squared residual of a Hessian (in the Frobenius norm), relative to a value.
    loss : {"squared", "huber"}, default "squared"
        "huber" if a few values or derivatives, up to about 5%, may be grossly wrong. Residuals are clipped at 1.345
        robust standard deviations, and the cleaned data are fitted by least squares, until they no longer change. This
        minimises Huber's loss (``nurf.engines.fit_huber`` has the formulas). The race compares settings on the cleaned
        data. A fit takes about three to five times as long. ``selection`` must be "loo".
    derivatives : {"auto", "given", "estimate"}, default "auto"
        Derivatives from which hyperplanes are sampled. "given": the given derivatives only. "estimate": unknown
        derivatives are estimated by a smaller network. "auto" estimates them if the activation is smooth, and gradients
        are complete at less than half of the points or the density needs more derivatives. With ``density="auto"`` it
        may also ignore derivatives.
    growth : float, None or "auto", default "auto"
        Ratio of the numbers of neurons of consecutive stages. Each stage samples from the density of the residual of
        the previous stage. None samples all neurons from the density of the data; ``n_neurons`` must then be a number.
        "auto" chooses.
    tail : {"auto", "none", "constant", "affine"}, default "auto"
        The polynomial ``p``. "auto" chooses it if the width is "auto"; otherwise its degree is one less than the order
        of the activation.
    scaling : {"box", "ball", None}, default "box"
        Scaling of the inputs into the unit ball: each by its own range, all by one factor, or none.
    rank : int, "auto" or None, default "auto"
        Number of directions of the inputs on which the network depends, found from the gradients: eigenvectors of the
        mean of ``J^T J``, sorted by the variance of the values that they cause. With more than 50 inputs, "auto" keeps
        the smallest number of directions that loses at most a millionth of the variance (a hundredth with noisy
        gradients) at other samples. None keeps all inputs.
    target : {"auto", "log", "asinh", None} or sequence of these, default None
        Transformation of the values before the fit, for all outputs or one for each. Predictions, derivatives and
        errors are in the units of the data. See ``Surrogate``.
    inputs : {"auto", "log", None}, sequence or dict of these, default None
        Inputs that are replaced by their logarithms: all, one entry for each input, or by name. See ``Surrogate``.
    monotone, convex : dict or array of shape (d,) or (k, d), optional
        Inputs along which the function rises (1) or falls (-1), and along which it is convex (1) or concave (-1): by
        name, as in ``{"x1": 1}``, or a number for each input, 0 for no condition. See ``docs/shapes.md``.
    lower, upper : float or array of shape (k,), optional
        Bounds of the values, for each output.
    check_gradients : {"warn", "raise", False}, default "warn"
        Whether ``fit`` warns or raises an error if the gradients contradict the values (see ``check_derivatives``), or
        does not compare them. If the data are not sufficient to decide, there is no warning and no error.
    dtype : {"float64", "float32"}, default "float64"
        Precision of the features in the normal equations. "float32" is for noisy data with many rows, and takes about
        60% of the time. The smallest alpha is then about 3e-7, so that errors of smooth functions without noise may be
        many times larger (see "Large data" in the documentation). Sums over blocks of rows, factorisations, errors,
        predictions and fits to fewer rows than neurons use double precision.
    random_state : int, RandomState, Generator or None, default None
        Seed for sampling the hyperplanes.
    verbose : int, default 0
        1 to write the progress of the race to the standard error. If adding up more than 20,000 rows may take more than
        a minute, the logger "nurf" always writes a warning before.

    Attributes
    ----------
    network_ : ShallowNetwork
        The fitted network, as a function of unscaled inputs.
    hyperplanes_ : Hyperplanes
        The hyperplanes of the network.
    alpha_ : float
        The chosen regularisation.
    width_ : float
        The width of the neurons of the last stage, in scaled units.
    gradient_weight_ : float
        The weight of gradients in the loss.
    density_ : Density
        The density of the last stage.
    estimated_ : bool
        Whether derivatives were estimated for the sampling.
    n_samples_ : int
        Number of fitted samples.
    fit_ : ShallowFit
        The fit in scaled units, with the path over alpha, the stages, and the candidates of the race.
    scaling_ : Scaling
        The change of units.
    estimated_error_ : float or array of shape (k,)
        The estimated root mean square error at new points, in the units of each output; NaN with fewer than three
        samples. With Huber's loss, errors and standard deviations are for values without gross errors, and intervals
        for all values.
    gradient_check_ : DerivativeCheck or None
        The comparison of the gradients with the values; None if there was none.
    uncertainty_ : CrossFit or Posterior
        The uncertainty of the fit, in scaled units: from fits without each fold with up to 150 samples (or 1000, as for
        ``selection``), and the posterior of the outer weights with more.
    n_features_in_ : int
    feature_names_in_ : array of shape (d,)

    Examples
    --------
    >>> from nurf import RandomFeatureRegressor, problems
    >>> rng = np.random.default_rng(0)
    >>> wave = problems.get("planar_wave")
    >>> data = wave.jet(wave.sample(500, rng))
    >>> model = RandomFeatureRegressor(200, random_state=0).fit(data.X, data.y, gradients=data.gradients)
    >>> fresh = wave.sample(1000, rng)
    >>> bool(model.score(fresh, wave.value(fresh)) > 0.9999)
    True
    """

    _running: Running | None
    _takes_functionals = True
    _takes_all_inputs = True

    def __init__(
        self,
        n_neurons: int | str = 1000,
        *,
        density: str | Density = "auto",
        activation: str | Activation = "sigmoid",
        width: float | str = "auto",
        alpha: float | str = "auto",
        selection: str = "loo",
        gradient_weight: float | str = "auto",
        hessian_weight: float = 0.0,
        loss: str = "squared",
        derivatives: str = "auto",
        growth: float | str | None = "auto",
        tail: str = "auto",
        scaling: str | None = "box",
        rank: int | str | None = "auto",
        target: Any = None,
        inputs: Any = None,
        monotone: Any = None,
        convex: Any = None,
        lower: Any = None,
        upper: Any = None,
        check_gradients: str | bool = "warn",
        dtype: str = "float64",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neurons = n_neurons
        self.density = density
        self.activation = activation
        self.width = width
        self.alpha = alpha
        self.selection = selection
        self.gradient_weight = gradient_weight
        self.hessian_weight = hessian_weight
        self.loss = loss
        self.derivatives = derivatives
        self.growth = growth
        self.tail = tail
        self.scaling = scaling
        self.rank = rank
        self.target = target
        self.inputs = inputs
        self.monotone = monotone
        self.convex = convex
        self.lower = lower
        self.upper = upper
        self.check_gradients = check_gradients
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose

    def _prepare(self, request: Request) -> Prepared:
        jet, held_out, scaling = request.jet, request.held_out, request.scaling
        check, found = None, list[Warning]()
        if scaling is None:
            scaling, check, found = self._checked_units(Scaling.fit(jet, self.scaling), jet, request.given)
        if self.loss == "huber" and jet.functionals is not None:
            raise ValueError("`loss` must be 'squared' with `functionals`, got 'huber'")
        if self.loss == "huber" and self.selection == "gcv":
            raise ValueError("`selection` must be 'loo' with loss='huber', which needs left-out errors, got 'gcv'")
        scaled, selected = scaling(jet), choose("selection", self.selection, SELECTION)
        rule = selected if held_out is None else Validation(scaling(held_out))
        engines = self._choices().engines(scaled, rule, request.rng)
        engines = choose("loss", self.loss, {"squared": list, "huber": cleaned_engines})(engines)
        timed = tuple(replace(engine, clock=request.clock) for engine in engines)
        return Prepared(timed, scaling, scaled, check, tuple(found), request.clock, held_out is not None)

    def _with_conditions(self, engine: Any, conditions: Conditions, scaled: Jet) -> Any:
        return replace(engine, finish=partial(conditions.sampled, jet=engine.task.jet, given=scaled))

    def _finish(self, prepared: Prepared, fit: ShallowFit) -> list[Warning]:
        engine: SampledEngine = prepared.engines[0]  # type: ignore[assignment]
        scaled = prepared.scaled
        uncertainty: CrossFit | Posterior | None = fit.crossfit
        if uncertainty is None:
            options: dict[str, Any] = {"precise": fit.precise, "optimism": fit.optimism, "robust": self.loss == "huber"}
            uncertainty = Posterior.of(fit.network, scaled, fit.ridge_alpha, fit.loss, **options)
        fit = self._with_equations(fit, uncertainty, scaled)
        rule = "refits on folds" if engine.uses_folds else NAMES[self.selection]
        rule = "validation samples" if prepared.validated else rule
        return self._set_result(Solution(fit, prepared.scaling, uncertainty, scaled, len(scaled), rule), prepared.check)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        gradients: Any = None,
        directions: Any = None,
        hessians: Any = None,
        sample_weight: Any = None,
        derivative_weight: Any = None,
    ) -> Self:
        """Fit the network to further rows.

        The first call is ``fit``: it fixes scaling, hyperplanes, width and the weight of derivatives, so that its rows
        should be some thousand typical ones. Each later call adds its rows to the normal equations, and finds alpha and
        the outer weights from all rows so far; the order of the later calls does not matter. The error is estimated by
        leave-one-out at up to 5000 of all rows. The model keeps its normal equations, N x N numbers. ``fit`` and
        ``fit_blocks`` do not keep them: ``partial_fit`` after these calls starts anew, with a warning.

        Parameters
        ----------
        X, y, gradients, directions, hessians, sample_weight, derivative_weight
            See ``fit``. All calls must have the same kinds of data. Weights are in the same unit in all calls.

        Returns
        -------
        self
        """
        data = Observations(
            X,
            y,
            gradients=gradients,
            directions=directions,
            hessians=hessians,
            sample_weight=sample_weight,
            derivative_weight=derivative_weight,
        )
        running: Running | None = getattr(self, "_running", None)
        if running is None and hasattr(self, "fit_"):
            warnings.warn(
                "`partial_fit` starts anew: it needs normal equations, which `fit` and `fit_blocks` do not keep",
                stacklevel=2,
            )
        if self.loss == "huber":
            raise ValueError("`loss` must be 'squared' for `partial_fit`, got 'huber': it needs all rows at once")
        self._require_unwarped("`partial_fit`", otherwise=OR_AT_ONCE)
        found: list[Warning] = []
        with unchanged_on_error(self):
            if running is None:
                self.fit(**data.arguments)
            data = self._checked(data, reset=False)
            jet, choices = read_block(data.block()), self._choices()
            dtype = choices.precision()
            if running is None:
                seed, weights = int(as_generator(self.random_state).integers(2**62)), jet.weights(0)
                units = Units(self.scaling_, float(weights[weights > 0].mean()))
                running = Running.of(jet, data.given, Absorb.by((self.fit_,), units, dtype), seed)
            else:
                running = running.absorb(jet, data.given, self.fit_, dtype)
                found = self._set_result(running.solution(self.fit_, choices.alphas()), self.gradient_check_)
            self._running = running
        return self._warned(found)

    def _needs_memory(self) -> bool:
        return self.loss == "huber"

    def _require_blocks(self) -> None:
        if self.loss == "huber":
            raise ValueError("`loss` must be 'squared' for data in blocks, got 'huber': it needs all rows in memory")

    def _checked_units(self, scaling: Scaling, jet: Jet, given: Jet) -> Checked:
        return Reduction(self.rank, self.check_gradients, self._choices()).units(scaling, jet, given)

    def _way(self, blocks: Blocks, found: list[Warning]) -> SampledBlocks:
        choices, verbose = self._choices(), self._verbosity()
        rule = choose("selection", self.selection, SELECTION)
        race = partial(raced_on_sample, choices, rule, verbose)
        return SampledBlocks(race, choices.alphas(), choices.precision(), verbose)

    def _in_time(
        self, judged: Judged, fit: ShallowFit, blocks: Blocks, clock: Clock
    ) -> tuple[SampledBlocks, tuple[ShallowFit, ...], bool]:
        engine: SampledEngine = judged.engine  # type: ignore[assignment]
        way = self._way(blocks, [])
        size = way.affordable(fit, blocks, engine.sizes[-1], clock)
        return way, (replace(engine.sized(judged, fit, size), attempts=fit.attempts),), size == engine.sizes[-1]

    def _set_blockwise(self, result: Solution, blocks: Blocks, check: DerivativeCheck | None) -> list[Warning]:
        return self._set_result(result, check)

    def _choices(self) -> Choices:
        return Choices(
            self.n_features_in_,
            self.n_neurons,
            self.density,
            self.activation,
            self.width,
            self.alpha,
            self.gradient_weight,
            self.hessian_weight,
            self.derivatives,
            self.growth,
            self.tail,
            self.dtype,
        )

    def _set_result(self, solution: Solution, check: DerivativeCheck | None) -> list[Warning]:
        """Set the attributes of a fit, and return warnings for the user."""
        fit, scaled = solution.fit, solution.sample
        assert fit.stage is not None
        assert fit.stage.setting is not None
        setting = fit.stage.setting
        self._set_fit(fit, solution.scaling, solution.uncertainty)
        self.density_, self.width_ = setting.density, float(np.mean(setting.activation.width))
        self.gradient_weight_, self.n_samples_ = fit.loss.gradients, solution.n_rows
        self.gradient_check_, self._has_derivatives = check, bool(scaled.known)
        self.estimated_ = not setting.source.keeps_neurons and bool(setting.needs)
        self._rule_name, self._running = solution.rule, None
        found: list[Warning] = []
        if fit.convergence is not None and fit.convergence.is_far:
            found.append(ConvergenceWarning(f"the outer weights are not exact: {fit.convergence}"))
        if self.density == "auto":
            found += zero_derivatives(scaled, sampling_order(scaled, setting.activation))
        return found

    @property
    def _chosen(self) -> str:
        assert self.fit_.stage is not None
        return f"{self.fit_.network.features.n_neurons} neurons, {self.fit_.stage.setting}"

    def report(self) -> Report:
        """Return the choice and its reasons: text in a terminal, a table in a notebook.

        Examples
        --------
        >>> from nurf import problems
        >>> wave = problems.get("planar_wave")
        >>> data = wave.jet(wave.sample(200, np.random.default_rng(0)))
        >>> model = RandomFeatureRegressor(50, random_state=0).fit(data.X, data.y, gradients=data.gradients)
        >>> print(model.report())
        50 neurons for 200 samples in 2 dimensions, ...
          neurons                  50...
          density                  ...
          width                    ... of the radius of the data...
          derivatives in the loss  ...
          alpha                    ..., by leave-one-out
          estimated error          ... of the standard deviation of the values, ... in their units
                                   90% of the squared error from ... samples
          race, 50 neurons         ... tried in ... s, the best of them:
                                   ...
        """
        check_is_fitted(self, "fit_")
        unused = describe_sampling(None if self.fit_.stage is None else self.fit_.stage.setting)
        derivatives = describe_loss(self.fit_, self._has_derivatives, self.gradient_check_, unused)
        scale, rule = self.y_scale_, self._rule_name
        lines = describe_reduction(self.scaling_)
        found = describe(self.fit_, self.n_samples_, self.n_features_in_, scale, rule, derivatives, lines)
        return self._with_units(found)


def raced_on_sample(
    choices: Choices, rule: Rule, verbose: int, scaled: Jet, rng: np.random.Generator
) -> tuple[ShallowFit, ...]:
    """Return the winner of a race on a sample of the rows, and other fits that may be better on all rows."""
    engines = choices.engines(scaled, rule, rng)
    progress = watch_attempts(verbose)
    fits = fit_for_more_rows(engines, progress)
    if progress is not None:
        progress.done(fits[0])
    return fits
