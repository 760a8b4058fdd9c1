"""The regressor: a shallow network whose neurons are sampled where the data vary."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nurf._derivative_checks import check_derivatives
from nurf._scaling import Scaling
from nurf._types import Array
from nurf.activations import ACTIVATIONS, Activation, SmoothActivation
from nurf.densities import Density, Local, Nonlocal, Uniform
from nurf.estimators._base import TAILS, NetworkRegressor, SamplesHyperplanes, choose, split
from nurf.estimators._report import Report, describe, last_stage
from nurf.jets import Jet
from nurf.solvers import GeneralizedCrossValidation, LeaveOneOut, Loss, Rule, Validation
from nurf.training import Candidates, Fit, fit_estimated, fit_searched, stage_counts

SELECTION: dict[str, Rule] = {"loo": LeaveOneOut(), "gcv": GeneralizedCrossValidation()}
NAMES = {"loo": "leave-one-out", "gcv": "generalised cross-validation"}
WIDTHS = (1.6, 0.8, 0.4, 0.2, 0.1, 0.05, 0.025)  # in units of the ball into which the inputs are scaled
SPREAD = 4.0  # of the widths of one network around the typical one, for "multiscale"
GRADIENT_WEIGHTS = (0.0, 1e-3, 1e-2, 1e-1)
GROWTH = 3.0
EXPLAINS = 0.7  # relative misfit of gradients up to which they are believed without further trial
ENOUGH = 0.5  # share of known derivatives from which on none are estimated
LEAST_NEURONS, MOST_NEURONS = 50, 4050  # of a network that grows as long as that helps


class RandomFeatureRegressor(NetworkRegressor, SamplesHyperplanes):
    """Regression by a shallow network with sampled inner weights.

    ``f(x) = sum_n c_n sigma(a_n.x + b_n) + p(x)``: the hyperplanes ``a_n.x + b_n = 0`` are drawn from a density built
    from derivative data, the outer weights ``c_n`` and the polynomial ``p`` found by ridge regression. Inputs and
    values are scaled inside; all derivatives, in and out, are in the units of the data.

    Parameters
    ----------
    n_neurons : int or "auto", default 1000
        Number of neurons; a fit in stages ends earlier where a stage does not help. "auto" goes on growing, up to 4050,
        as long as each stage lowers the estimated error by 5%.
    density : str or Density, default "auto"
        The law of the hyperplanes: "uniform", "active_subspace", "local", "nonlocal", "representation", or an object
        of ``nurf.densities``. "auto" takes the best of local, nonlocal and uniform where derivatives are given,
        uniform elsewhere.
    activation : str or Activation, default "sigmoid"
        "sigmoid", "erf", "heaviside" (order 1), "softplus", "relu" (order 2), or an object of ``nurf.activations``.
    width : float, "auto" or "multiscale", default "auto"
        Width of the transition of a smooth activation, in units of the ball into which the inputs are scaled. "auto"
        lets every stage choose the width of its neurons from 0.025 to 1.6; "multiscale" does the same and spreads the
        widths of single neurons by factors up to 4 around it. An activation object keeps its own.
    alpha : float or "auto", default "auto"
        Ridge regularisation: the penalty ``alpha N / 2 |c|^2`` on half the mean squared error (paper, eq. 1.6), with
        ``alpha`` in units of the mean energy of a feature. "auto" takes the largest within 5% of the best of a path.
    selection : {"loo", "gcv"}, default "loo"
        How the error of each alpha is estimated where no validation rows are given: closed-form leave-one-out, or
        generalised cross-validation, which is faster and more often misled.
    gradient_weight : float or "auto", default "auto"
        How much the squared residual of a gradient counts in the loss beside that of a value, both in scaled units.
        "auto" takes the best of 0, 0.001, 0.01 and 0.1 by the estimated error of the values.
    hessian_weight : float, default 0
        The same for Hessians (Frobenius).
    derivatives : {"auto", "given", "estimate"}, default "auto"
        What the sampling takes from: the derivatives that are given, or also estimates of those that are not known,
        which are the derivatives of the network of the stage before. "auto" estimates where they are fully
        known at less than half of the points, the activation is smooth and the density is "auto"; and where those that
        are given hardly help in the loss, it also fits the values alone, and takes the smaller estimated error.
    growth : float, None or "auto", default "auto"
        Sample in four stages, each with ``growth`` times as many neurons as the one before, from the density of what
        that one left over; "auto" is 3 for smooth activations. With None all neurons are sampled at once.
    tail : {"auto", "none", "constant", "affine"}, default "auto"
        The polynomial ``p``; by default of degree one less than the activation's order.
    scaling : {"box", "ball", None}, default "box"
        How inputs are put into the unit ball: each by its own range, all by one number, or not at all.
    check_gradients : bool, default False
        Whether ``fit`` first compares the gradients with differences of the values, and raises where they contradict.
    random_state : int, RandomState, Generator or None
        Where the hyperplanes come from.

    Attributes
    ----------
    network_ : ShallowNetwork
        The fitted network, as a function of unscaled inputs.
    hyperplanes_ : Hyperplanes
        Its hyperplanes.
    alpha_ : float
        The regularisation that was used.
    width_ : float
        The width of the neurons of the last stage, in scaled units.
    gradient_weight_ : float
        How much gradients counted in the loss.
    density_ : Density
        The density that was sampled.
    estimated_ : bool
        Whether derivatives were estimated for the sampling.
    n_samples_ : int
        Number of rows that were fitted.
    fit_ : Fit
        The fit in scaled units, with the path over alpha, and the history of the stages.
    scaling_ : Scaling
        The change of units.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)

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
        derivatives: str = "auto",
        growth: float | str | None = "auto",
        tail: str = "auto",
        scaling: str | None = "box",
        check_gradients: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_neurons = n_neurons
        self.density = density
        self.activation = activation
        self.width = width
        self.alpha = alpha
        self.selection = selection
        self.gradient_weight = gradient_weight
        self.hessian_weight = hessian_weight
        self.derivatives = derivatives
        self.growth = growth
        self.tail = tail
        self.scaling = scaling
        self.check_gradients = check_gradients
        self.random_state = random_state

    def _fit(self, jet: Jet, validation: Any) -> None:
        if self.check_gradients:
            self._check_gradients(jet)
        rng = self._generator()
        jet, held_out = split(jet, validation, rng)
        scaling = Scaling.fit(jet, self.scaling)  # type: ignore[arg-type]
        scaled = scaling(jet)
        rule = choose("selection", self.selection, SELECTION)
        if held_out is not None:
            rule = Validation(scaling(held_out))
        options = {"degree": choose("tail", self.tail, TAILS), "alphas": self._alphas(), "rule": rule}
        estimated = self._estimates(scaled, self._activations()[0])
        again = deepcopy(rng)
        fit = self._search(scaled, estimated, rng, options)
        if not estimated and self._doubtful(scaled, fit):
            values = replace(scaled, gradients=None, hessians=None, frames=None)
            alone = self._search(values.with_values(), True, again, options)
            fit, estimated = (alone, True) if alone.error < fit.error else (fit, False)
        setting = last_stage(fit).setting
        assert setting is not None
        self.fit_, self.scaling_, self.alpha_ = fit, scaling, fit.alpha
        self.density_, self.width_ = setting.density, float(np.mean(setting.activation.width))
        self.gradient_weight_, self.n_samples_ = fit.loss.gradients, len(jet)
        self.estimated_ = estimated and bool(setting.density.needs)
        self._rule_name = "validation rows" if held_out is not None else NAMES[self.selection]

    def _search(self, jet: Jet, estimate: bool, rng: np.random.Generator, options: dict[str, Any]) -> Fit:
        """Fit in stages or at once, with what was left open chosen on the way."""
        activations = self._activations()
        spread = SPREAD if self.width == "multiscale" else 1.0
        densities = self._densities(jet, activations[0], estimate)
        candidates = Candidates(densities, activations, self._losses(jet, activations[0]), spread)
        counts, growing = self._counts(activations[0])
        options |= {"patience": 1, "improvement": 0.05 if self.n_neurons == "auto" else 0.01}
        if estimate:
            return fit_estimated(jet, candidates, counts, rng, **options)
        if not growing and candidates.has_choice and not np.ndim(activations[0].width):
            sizes = _pilot_counts(counts[-1], activations[0])
            pilot = fit_searched(jet, candidates, sizes, rng, **options)
            setting = pilot.history[-1].setting
            assert setting is not None
            candidates = candidates.only(setting)
        return fit_searched(jet, candidates, counts, rng, **options)

    def _doubtful(self, jet: Jet, fit: Fit) -> bool:
        """Tell whether the derivatives that were given help so little that the values alone may do better."""
        free = self.derivatives == self.density == self.gradient_weight == "auto" and not self.hessian_weight
        smooth = isinstance(fit.network.activation, SmoothActivation)
        shows = any(np.any(jet.derivative_rows(order)) for order in (1, 2) if jet.derivatives(order) is not None)
        if not (free and smooth and shows):
            return False
        return (fit.loss.gradients == 0 and not _derivatives_guide(fit)) or _contradicted(jet)

    def _activations(self) -> tuple[Activation, ...]:
        """Return the activation with all widths that may be chosen, the largest first."""
        chosen = isinstance(self.width, str)
        if chosen and self.width not in ("auto", "multiscale"):
            raise ValueError(f"`width` must be 'auto', 'multiscale' or a number > 0, got {self.width!r}")
        kind = ACTIVATIONS.get(self.activation) if isinstance(self.activation, str) else None
        if not chosen or kind is None or not issubclass(kind, SmoothActivation):
            return (self._make_activation(None if chosen else self.width),)
        return tuple(kind(width) for width in WIDTHS)

    def _densities(self, jet: Jet, activation: Activation, estimate: bool) -> tuple[Density, ...]:
        """Return the densities that may be chosen."""
        order = self._order(jet, activation)
        if self.density != "auto":
            return (self._make_density(jet, activation),)
        if estimate:
            return (Nonlocal(order),)
        single = self._make_density(jet, activation, depth=6)
        return (Local(order, None), Nonlocal(order), Uniform()) if single.needs else (single,)

    def _estimates(self, jet: Jet, activation: Activation) -> bool:
        """Tell whether derivatives that are not known are estimated."""
        chosen = choose("derivatives", self.derivatives, {"given": False, "estimate": True, "auto": None})
        order = self._order(jet, activation)
        if chosen is None:
            smooth = isinstance(activation, SmoothActivation)
            shows = not Nonlocal(order).needs <= jet.known or bool(np.any(jet.derivative_rows(order)))
            chosen = smooth and self.density == "auto" and _known_share(jet, order) < ENOUGH and shows
        if chosen:
            activation.require(order)
        return bool(chosen)

    def _losses(self, jet: Jet, activation: Activation) -> tuple[Loss, ...]:
        """Return the weights of derivatives that may be chosen, the smallest first."""
        hessians = self.hessian_weight
        if isinstance(hessians, str) or not isinstance(hessians, Real):
            raise ValueError(f"`hessian_weight` must be a number >= 0, got {hessians!r}")
        if self.gradient_weight == "auto":
            known = "gradients" in jet.known and activation.n_derivatives >= 1
            losses = tuple(Loss(weight, float(hessians)) for weight in GRADIENT_WEIGHTS[: 4 if known else 1])
        elif isinstance(self.gradient_weight, Real):
            losses = (Loss(float(self.gradient_weight), float(hessians)),)
        else:
            raise ValueError(f"`gradient_weight` must be 'auto' or a number >= 0, got {self.gradient_weight!r}")
        losses[-1].require(jet)
        for order, _ in losses[-1].orders:
            activation.require(order)
        return losses

    def _counts(self, activation: Activation) -> tuple[list[int], bool]:
        """Return the number of neurons after each stage, and whether a stage adds to the one before."""
        growth: Any = self.growth
        if isinstance(growth, str):
            if growth != "auto":
                raise ValueError(f"`growth` must be 'auto', None or a number > 1, got {growth!r}")
            growable = activation.n_derivatives >= min(activation.order, 2) and not np.ndim(activation.width)
            growth = GROWTH if growable else None
        if isinstance(self.n_neurons, str) and self.n_neurons == "auto":
            return stage_counts(MOST_NEURONS, growth or GROWTH, LEAST_NEURONS), True
        self._check_n_neurons()
        return ([self.n_neurons], False) if growth is None else (stage_counts(self.n_neurons, growth), True)

    def report(self) -> Report:
        """Return what was chosen and why: text in a terminal, a table in a notebook.

        Examples
        --------
        >>> from nurf import problems
        >>> wave = problems.get("planar_wave")
        >>> data = wave.jet(wave.sample(200, np.random.default_rng(0)))
        >>> model = RandomFeatureRegressor(50, random_state=0).fit(data.X, data.y, gradients=data.gradients)
        >>> print(model.report())
        50 neurons for 200 samples in 2 dimensions, ...
          neurons                  50 (stages of 2 -> 6 -> 18 -> 50)
          law                      ...: error ... with 50 neurons, against ...
          width                    ... of the radius of the data...
          derivatives in the loss  ...
          alpha                    ..., by leave-one-out
          estimated error          ... of the standard deviation of the values, ... in their units
        """
        check_is_fitted(self, "fit_")
        scale = np.atleast_1d(self.scaling_.y_scale)
        units = f", {self.fit_.error * scale[0]:.2g} in their units" if len(scale) == 1 else ", outputs added up"
        return describe(self.fit_, self.n_samples_, self.n_features_in_, units, self.estimated_, self._rule_name)

    def _alphas(self) -> Array | None:
        if isinstance(self.alpha, str) and self.alpha == "auto":
            return None
        if isinstance(self.alpha, Real) and np.isfinite(self.alpha) and self.alpha > 0:
            return np.array([self.alpha], float)
        raise ValueError(f"`alpha` must be 'auto' or a number > 0, got {self.alpha!r}")

    def _check_gradients(self, jet: Jet) -> None:
        if jet.gradients is None:
            raise ValueError("`check_gradients=True` needs gradients, got none")
        gradients = jet.gradients
        if jet.frames is not None:  # the part of a gradient along some directions explains no differences
            spanned = np.sum(jet.frames**2, axis=(1, 2)) > jet.n_features - 0.5
            gradients = np.where(spanned.reshape(-1, *[1] * (gradients.ndim - 1)), gradients, np.nan)
        finding = check_derivatives(jet.X, jet.y, gradients)
        if finding.consistent is False:
            raise ValueError(f"`gradients` contradict the values: {finding.message}")
        if finding.consistent is None:
            warnings.warn(f"`gradients` could not be confirmed: {finding.message}", stacklevel=4)


def _derivatives_guide(fit: Fit) -> bool:
    """Tell whether sampling by derivatives was better than uniform sampling, by the last stage that compared them."""
    for stage in reversed(fit.history):
        errors: dict[bool, list[float]] = {bool(trial.setting.density.needs): [] for trial in stage.trials}
        for trial in stage.trials:
            errors[bool(trial.setting.density.needs)].append(trial.error)
        if len(errors) == 2:
            return min(errors[True]) < 0.9 * min(errors[False])
    return True


def _contradicted(jet: Jet) -> bool:
    """Tell whether gradients do not explain the differences of the values between neighbours."""
    jet = jet.with_values()
    if jet.gradients is None or jet.frames is not None:
        return False
    misfit = check_derivatives(jet.X, jet.y, jet.gradients).misfit
    return bool(np.isfinite(misfit) and misfit > EXPLAINS)


def _known_share(jet: Jet, order: int) -> float:
    """Return at which share of the points the derivatives of the given order are fully known.

    Those known in part show a direction in which the function varies that is not the true one.
    """
    derivatives = jet.derivatives(order)
    if derivatives is None:
        return 0.0
    if order == 1 and jet.frames is not None:
        return float(np.mean(np.sum(jet.frames**2, axis=(1, 2)) > jet.n_features - 0.5))
    return float(np.mean(~np.isnan(derivatives.reshape(len(jet), -1)).any(axis=1)))


def _pilot_counts(n_neurons: int, activation: Activation) -> list[int]:
    """Return the sizes of small networks on which choices are made for a large one: one size where none can grow."""
    grows = activation.n_derivatives >= min(activation.order, 2)
    return sorted({max(1, n_neurons // 9), max(1, n_neurons // 3)})[0 if grows else -1 :]
