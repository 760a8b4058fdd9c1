"""The regressor: a shallow network whose neurons are sampled where the data vary."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np

from nurf.activations import Activation
from nurf.checks import check_derivatives
from nurf.densities import Density
from nurf.estimators.base import TAILS, NetworkRegressor, SamplesHyperplanes, choose, split
from nurf.jets import Array, Jet, Scaling
from nurf.solvers import GeneralizedCrossValidation, LeaveOneOut, Rule, Validation
from nurf.training import fit_adaptive, fit_random, stage_counts

SELECTION: dict[str, Rule] = {"loo": LeaveOneOut(), "gcv": GeneralizedCrossValidation()}


class RandomFeatureRegressor(NetworkRegressor, SamplesHyperplanes):
    """Regression by a shallow network with sampled inner weights.

    ``f(x) = sum_n c_n sigma(a_n.x + b_n) + p(x)``: the hyperplanes ``a_n.x + b_n = 0`` are drawn from a density built
    from derivative data, the outer weights ``c_n`` and the polynomial ``p`` found by ridge regression. Inputs and
    values are scaled inside; all derivatives, in and out, are in the units of the data.

    Parameters
    ----------
    n_neurons : int, default 1000
        Number of neurons.
    density : str or Density, default "auto"
        The law of the hyperplanes: "uniform", "active_subspace", "local", "nonlocal", "representation", or an object
        of ``nurf.densities``. "auto" is nonlocal where the derivatives for it are given (gradients for activations of
        order 1, Hessians for those of order 2 and more), uniform elsewhere.
    activation : str or Activation, default "sigmoid"
        "sigmoid", "erf", "heaviside" (order 1), "softplus", "relu" (order 2), or an object of ``nurf.activations``.
    width : float, optional
        Width of the transition of a smooth activation, in units of the ball into which the inputs are scaled; by
        default 0.1, or that of the activation object.
    alpha : float or "auto", default "auto"
        Ridge regularisation: the penalty ``alpha N / 2 |c|^2`` on half the mean squared error (paper, eq. 1.6), with
        ``alpha`` in units of the mean energy of a feature. "auto" takes the largest within 5% of the best of a path.
    selection : {"loo", "gcv"}, default "loo"
        How the error of each alpha is estimated where no validation rows are given: closed-form leave-one-out, or
        generalised cross-validation, which is faster and more often misled.
    growth : float, optional
        Sample in four stages, each with ``growth`` times as many neurons as the one before, from the density of what
        that one left over. By default all neurons are sampled at once.
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
    density_ : Density
        The density that was sampled.
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
        n_neurons: int = 1000,
        *,
        density: str | Density = "auto",
        activation: str | Activation = "sigmoid",
        width: float | None = None,
        alpha: float | str = "auto",
        selection: str = "loo",
        growth: float | None = None,
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
        self.growth = growth
        self.tail = tail
        self.scaling = scaling
        self.check_gradients = check_gradients
        self.random_state = random_state

    def _fit(self, jet: Jet, validation: Any) -> None:
        self._check_n_neurons()
        if self.check_gradients:
            self._check_gradients(jet)
        rng = self._generator()
        jet, held_out = split(jet, validation, rng)
        scaling = Scaling.fit(jet, self.scaling)  # type: ignore[arg-type]
        scaled = scaling(jet)
        activation = self._make_activation(self.width)
        density = self._make_density(scaled, activation)
        rule = choose("selection", self.selection, SELECTION)
        if held_out is not None:
            rule = Validation(scaling(held_out))
        options = {"degree": choose("tail", self.tail, TAILS), "alphas": self._alphas(), "rule": rule}
        if self.growth is None:
            fit = fit_random(scaled, density, activation, self.n_neurons, rng, **options)
        else:
            counts = stage_counts(self.n_neurons, self.growth)
            fit = fit_adaptive(scaled, density, activation, counts, rng, **options)
        self.fit_, self.scaling_, self.density_, self.alpha_ = fit, scaling, density, fit.alpha

    def _alphas(self) -> Array | None:
        if isinstance(self.alpha, str) and self.alpha == "auto":
            return None
        if isinstance(self.alpha, Real) and np.isfinite(self.alpha) and self.alpha > 0:
            return np.array([self.alpha], float)
        raise ValueError(f"`alpha` must be 'auto' or a number > 0, got {self.alpha!r}")

    def _check_gradients(self, jet: Jet) -> None:
        if jet.gradients is None:
            raise ValueError("`check_gradients=True` needs gradients, got none")
        finding = check_derivatives(jet.X, jet.y, jet.gradients)
        if finding.consistent is False:
            raise ValueError(f"`gradients` contradict the values: {finding.message}")
        if finding.consistent is None:
            warnings.warn(f"`gradients` could not be confirmed: {finding.message}", stacklevel=4)
