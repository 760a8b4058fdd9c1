"""The regressor with infinitely many neurons, for few samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nurf._scaling import Scaling
from nurf._types import Array
from nurf._validation import is_whole
from nurf.choosing import VALUES_ALONE, Clock
from nurf.data import checked_gradients
from nurf.engines import Conditions, Learning, WideEngine, WideFit, n_directions
from nurf.estimators._base import NetworkRegressor
from nurf.estimators._parameters import choose
from nurf.estimators._prepared import Prepared, Request
from nurf.estimators._report import Report, describe_derivatives, describe_process
from nurf.jets import Jet
from nurf.kernels import RADIAL_KERNELS, KernelAverage, RadialKernel
from nurf.solvers import Loss, row_count
from nurf.solvers.process import CRITERIA, row_total

MEANS = {"constant": 0, "affine": 1}
METRICS = ("auto", "scales", "map")


class KernelFeatureRegressor(NetworkRegressor):
    """Regression by an infinitely wide network: a Gaussian process with learned scales, for few samples.

    With infinitely many neurons, ridge regression becomes kernel regression (paper, sections 2 and 3). The prediction
    is the mean of a Gaussian process with the kernel ``s^2 k(A x, A x')`` and an unknown constant (or affine) mean,
    given all values and derivatives with their noise. The linear map ``A`` (a scale for each input, or a map to few
    directions), the noise of values, and the noise of derivatives (of all, or of each partial) are learned from the
    data, from parts of the samples first. Few samples do not distinguish kernels and maps, so that several are
    averaged. The values alone are also fitted, and derivatives count if they make the fit clearly better at left-out
    samples. Given and predicted derivatives are in the units of the data. The fit uses no random numbers.

    The time of a fit grows with the third power of the number of rows (values and partial derivatives). With more than
    some hundred samples, ``RandomFeatureRegressor`` is faster, and often better.

    Parameters
    ----------
    kernel : {"auto", "gaussian", "matern", "erf"} or RadialKernel, default "auto"
        "gaussian" for very smooth functions, "matern" (of smoothness 5/2) for functions with two derivatives, "erf" for
        the infinitely wide network of erf neurons, or an object of ``nurf.kernels``. "auto" averages all three, with
        the inverse leave-one-out errors to the fourth power as weights; above 1000 rows it uses the best only.
    metric : {"auto", "scales", "map"}, default "auto"
        The linear map ``A``: a scale for each input, or a map to few directions, which starts from the directions of
        the gradients. "auto" averages both like kernels. It tries a map with up to three inputs; with more inputs, if
        the gradients lie almost in few directions, at most half the number of inputs.
    rank : int, optional
        Number of directions of a map. By default the smallest number with 0.9999 of the mean square of the gradients.
    mean : {"constant", "affine"}, default "constant"
        The mean of the process, integrated out.
    selection : {"likelihood", "loo"}, default "likelihood"
        Criterion for scales and noise: the restricted marginal likelihood, or the leave-one-out error of the values in
        closed form. With ``functionals`` it is always "loo", of values and functionals.
    max_rows : int, default 5000
        The largest number of fitted values and derivatives. If there are more, all values are fitted, and the
        derivatives of evenly spread samples. If there are more values than this number, evenly spread samples are
        fitted, and the others also judge the fit.
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
    verbose : int, default 0
        1 to write the progress to the standard error.

    Attributes
    ----------
    network_ : KernelAverage
        The fitted function, of unscaled inputs: its ``members``, each with a kernel and a map, and their ``weights``.
    kernel_ : RadialKernel
        The kernel of the member of the largest weight.
    metric_ : array of shape (q, d)
        The linear map ``A`` of this member, for unscaled inputs.
    scales_ : array of shape (d,)
        The lengths of the columns of ``metric_``: the inverse of the distance over which the slope changes along each
        input, in inverse units of the input. Inputs without effect have scales near zero, and so have inputs with a
        linear effect.
    relevance_ : array of shape (d,)
        The importance of each input, without unit: the root mean square of the predicted partial derivatives at the
        samples, times the standard deviation of the input, divided by the standard deviation of the values.
    noise_ : dict
        The learned standard deviations of the noise of "values" (in the units of each output), and of "gradients" (the
        root mean square over the inputs) and "hessians" in scaled units, if there are any.
    n_samples_ : int
        Number of fitted samples.
    n_rows_ : int
        Number of fitted values and derivatives.
    fit_ : WideFit
        The fit in scaled units.
    scaling_ : Scaling
        The change of units.
    estimated_error_ : float or array of shape (k,)
        The estimated root mean square error at new points, in the units of each output, from leave-one-out in closed
        form. With fewer than 20 rows for each parameter of ``A``, scales are learned without the fold of the sample.
        NaN with fewer than three samples.
    gradient_check_ : DerivativeCheck or None
        The comparison of the gradients with the values; None if there was none.
    uncertainty_ : ProcessPosterior
        The uncertainty of the fit, in scaled units.
    n_features_in_ : int
    feature_names_in_ : array of shape (d,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (15, 2))
    >>> y, gradients = np.sin(2 * X[:, 0]), np.stack([2 * np.cos(2 * X[:, 0]), np.zeros(15)], axis=1)
    >>> model = KernelFeatureRegressor().fit(X, y, gradients=gradients)
    >>> fresh = rng.uniform(-1, 1, (1000, 2))
    >>> bool(model.score(fresh, np.sin(2 * fresh[:, 0])) > 0.9999)
    True
    >>> bool(model.relevance_[1] < 0.01 * model.relevance_[0])
    True
    """

    fit_: WideFit
    network_: KernelAverage
    _takes_functionals = True

    def __init__(
        self,
        kernel: str | RadialKernel = "auto",
        *,
        metric: str = "auto",
        rank: int | None = None,
        mean: str = "constant",
        selection: str = "likelihood",
        max_rows: int = 5000,
        target: Any = None,
        inputs: Any = None,
        monotone: Any = None,
        convex: Any = None,
        lower: Any = None,
        upper: Any = None,
        check_gradients: str | bool = "warn",
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.metric = metric
        self.rank = rank
        self.mean = mean
        self.selection = selection
        self.max_rows = max_rows
        self.target = target
        self.inputs = inputs
        self.monotone = monotone
        self.convex = convex
        self.lower = lower
        self.upper = upper
        self.check_gradients = check_gradients
        self.verbose = verbose

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(0)  # only to split off validation samples

    def _prepare(self, request: Request) -> Prepared:
        jet, held_out, clock = request.jet, request.held_out, request.clock
        check, found = checked_gradients(request.given, self.check_gradients)
        if not is_whole(self.max_rows):
            raise ValueError(f"`max_rows` must be a whole number >= 1, got {self.max_rows!r}")
        scaling = Scaling.fit(jet) if request.scaling is None else request.scaling
        scaled = scaling(jet)
        engines = self._engines(scaled, None if held_out is None else scaling(held_out), clock)
        return Prepared(
            engines, scaling, scaled, check, tuple(found), clock, held_out is not None, scaling.deviations(jet.X)
        )

    def _engines(self, jet: Jet, validation: Jet | None, clock: Clock) -> tuple[WideEngine, ...]:
        """Return engines for all data that ``max_rows`` allows and, if there are derivatives, for the values alone."""
        learning = Learning()
        engine = WideEngine(
            jet,
            self._kernels(),
            choose("mean", self.mean, MEANS),
            CRITERIA["loo"] if jet.functionals is not None else choose("selection", self.selection, CRITERIA),
            learning,
            int(self.max_rows),
            validation,
            *self._metrics(jet, learning),
            clock=clock,
        )
        if not jet.known:
            return (engine,)
        values = jet.only(())
        rank = self._metrics(values, learning)[1] if engine.diagonal else engine.rank
        return engine, replace(engine, data=VALUES_ALONE, jet=values, rank=rank)

    def _with_conditions(self, engine: Any, conditions: Conditions, scaled: Jet) -> Any:
        return replace(engine, finish=conditions.wide)

    def _finish(self, prepared: Prepared, fit: WideFit) -> list[Warning]:
        fit = self._with_equations(fit, fit.posterior, prepared.scaled)
        self._set_fit(fit, prepared.scaling, fit.posterior)
        jet = prepared.scaled
        self.kernel_, self._deviations = fit.network.members[0].kernel, prepared.deviations
        self.n_samples_, self.n_rows_ = len(fit.posterior.jet), len(fit.posterior.rows)
        known = Loss(**dict.fromkeys(jet.known, 1.0))
        self.gradient_check_, self._n_given = prepared.check, row_count(jet, known) if jet.known else 0
        return []

    @property
    def metric_(self) -> Array:
        """The linear map of unscaled inputs of the first member, of shape (q, d)."""
        check_is_fitted(self, "fit_")
        return self.fit_.network.in_units_of(self.scaling_).members[0].metric

    @property
    def scales_(self) -> Array:
        """The inverse distances over which slopes change along each input, of shape (d,)."""
        return np.asarray(np.hypot.reduce(self.metric_, axis=0))  # squares may underflow

    @property
    def relevance_(self) -> Array:
        """The importance of each input, of shape (d,)."""
        check_is_fitted(self, "fit_")
        gradients = self.fit_.network.gradient(self.fit_.posterior.jet.X)
        slopes = self.scaling_.slopes_of_inputs(gradients).reshape(-1, self.n_features_in_)
        return np.asarray(np.sqrt(np.mean(slopes**2, axis=0)) * self._deviations)

    @property
    def noise_(self) -> dict[str, Any]:
        """The learned standard deviations of the noise."""
        check_is_fitted(self, "fit_")
        posterior = self.fit_.posterior
        deviations = posterior.noise_deviations
        result: dict[str, Any] = {"values": deviations[0] * self.scaling_.y_scale}
        result |= {kind: deviations[order] for order, kind in posterior.kinds.items()}
        return {kind: noise if np.ndim(self.scaling_.y_scale) else float(noise[0]) for kind, noise in result.items()}

    @property
    def _chosen(self) -> str:
        return f"{self.fit_.label}, {self.n_rows_} rows"

    def report(self) -> Report:
        """Return the choice and its reasons: text in a terminal, a table in a notebook.

        Examples
        --------
        >>> X = np.linspace(-1, 1, 12)[:, None]
        >>> print(KernelFeatureRegressor().fit(X, np.sin(3 * X[:, 0]), gradients=3 * np.cos(3 * X)).report())
        An infinitely wide network for 12 samples in 1 dimension, ...
          kernel ...
        """
        check_is_fitted(self, "fit_")
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        relevance = list(zip(names, self.relevance_, strict=True))
        derivatives = describe_derivatives(self.fit_, self._n_given, self.n_rows_, self.gradient_check_)
        return self._with_units(
            describe_process(self.fit_, relevance, self.noise_, self.y_scale_, derivatives, self.n_samples_)
        )

    def _kernels(self) -> tuple[RadialKernel, ...]:
        if isinstance(self.kernel, RadialKernel):
            return (self.kernel,)
        if isinstance(self.kernel, str) and self.kernel == "auto":
            return tuple(kernel() for kernel in RADIAL_KERNELS.values())
        if not (isinstance(self.kernel, str) and self.kernel in RADIAL_KERNELS):
            names = ", ".join(RADIAL_KERNELS)
            raise ValueError(f"`kernel` must be a RadialKernel, 'auto' or one of {names}, got {self.kernel!r}")
        return (RADIAL_KERNELS[self.kernel](),)

    def _metrics(self, jet: Jet, learning: Learning) -> tuple[bool, int]:
        """Return whether a scale for each input is a candidate, and the rank of a map as a candidate, or 0."""
        d = jet.n_features
        if self.rank is not None and not (is_whole(self.rank) and self.rank <= d):
            raise ValueError(f"`rank` must be a whole number from 1 to {d}, the number of inputs, got {self.rank!r}")
        choose("metric", self.metric, dict.fromkeys(METRICS))
        if self.metric == "scales":
            if self.rank is not None:
                raise ValueError(f"`rank` needs a map: `metric` must be 'auto' or 'map', got {self.metric!r}")
            return True, 0
        rank = int(self.rank or (_n_directions(jet, learning.energy) if "gradients" in jet.known else d))
        wanted = self.metric == "map" or self.rank is not None
        tried = wanted or learning.tries_map(rank, d, min(row_total(jet), self.max_rows))
        return self.metric == "auto", rank if d > 1 and tried else 0


def _n_directions(jet: Jet, energy: float) -> int:
    """Return the number of directions with large gradients; unknown partial derivatives may be large."""
    gradients, d = jet.gradients, jet.n_features
    assert gradients is not None
    hidden = np.count_nonzero(np.isnan(gradients).reshape(-1, d).all(axis=0))
    return min(d, n_directions(jet.derivative_rows(1).reshape(-1, d), energy) + int(hidden))
