"""The regressor with few trained neurons, and training that starts from sampled neurons."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from nurf._scaling import Scaling
from nurf._types import Array
from nurf._validation import is_number, is_whole
from nurf.activations import Activation
from nurf.choosing import POLICY
from nurf.data import checked_gradients
from nurf.densities import Density
from nurf.engines import Setting, SparseEngine, SparseFit, SparseStep, fit_sparse, sample_features, watch_path
from nurf.engines import polish as polish_fit
from nurf.estimators._base import ShallowRegressor
from nurf.estimators._parameters import MAX_WEIGHT, TAILS, check_neurons, choose, default_density, make_activation
from nurf.estimators._prepared import Prepared, Request
from nurf.estimators._report import Report, describe_sparse
from nurf.jets import Jet
from nurf.networks import Hyperplanes, Network
from nurf.solvers import Loss, SparseOptions
from nurf.solvers.sparse import PENALTIES, LogPenalty, Penalty

Model = TypeVar("Model", bound=ShallowRegressor)


class SparseFeatureRegressor(ShallowRegressor):
    """Regression by a shallow network with trained inner weights and few neurons.

    ``f(x) = sum_n c_n sigma(a_n.x + b_n) + p(x)`` minimises half the mean squared error plus ``alpha sum_n psi(|c_n|)``
    over the number of neurons, their hyperplanes and their outer weights (paper, eq. 1.4). Neurons are inserted where
    the dual certificate ``|<r, sigma(omega)>|`` of the residual exceeds ``alpha``, trained jointly by damped
    Gauss-Newton steps, and deleted if their outer weights become zero. With several outputs ``|c_n|`` is the length of
    the outer weights of a neuron. Inputs and values are scaled internally; given and predicted derivatives are in the
    units of the data.

    Parameters
    ----------
    alpha : float or "path", default "path"
        Factor of the penalty, for values scaled to unit variance. "path" decreases it by factors of 4, starting
        each step with the previous network, and chooses the largest alpha with an error within 5% of the best.
    max_neurons : int, optional
        The largest number of neurons. By default one weight for two rows (values, and derivatives in the loss).
    penalty : {"log", "l1"} or Penalty, default "log"
        The concave ``LogPenalty(gamma)``, which needs fewer neurons, the convex ``L1()``, or a ``Penalty`` of
        ``nurf.solvers``.
    gamma : float, default 5
        Concavity of the logarithmic penalty; the authors take 10 for one input.
    activation : str or Activation, default "sigmoid"
        "sigmoid", "erf" (order 1), "softplus", "relu" (order 2), or an object of ``nurf.activations``.
    width : float or "learned", optional
        Width of the transition of a smooth activation, in units of the ball into which the inputs are scaled; by
        default 0.1, or the width of the activation object. "learned" trains a width for each neuron, between a tenth
        and ten times this width.
    gradient_weight : float, default 0
        Weight of the squared error of a gradient, relative to a value, both in scaled units. Partial derivatives that
        are unknown for some output are left out. Gradients guide the search for neurons with any weight.
    hessian_weight : float, default 0
        Weight of the sum of the squared errors of all entries of a Hessian, relative to a value. The activation must
        have three derivatives.
    n_initial : int, default 0
        Number of neurons to start from, sampled from ``density``.
    density : str or Density, default "auto"
        The density of the neurons to start from, as for ``RandomFeatureRegressor``.
    tail : {"auto", "none", "constant", "affine"}, default "auto"
        The polynomial ``p``, without penalty; by default of degree one less than the activation's order.
    scaling : {"box", "ball", None}, default "box"
        Scaling of the inputs into the unit ball: each by its own range, all by one factor, or none.
    tol : float, default 0.01
        Accepted violation of the optimality conditions and of the certificate, in units of ``alpha``.
    max_iter : int, default 30
        Rounds of insertion, training and deletion for each alpha.
    target : {"auto", "log", "asinh", None} or sequence of these, default None
        Transformation of the values before the fit, for all outputs or one for each. Predictions, derivatives and
        errors are in the units of the data. See ``Surrogate``.
    inputs : {"auto", "log", None}, sequence or dict of these, default None
        Inputs that are replaced by their logarithms: all, one entry for each input, or by name. See ``Surrogate``.
    check_gradients : {"warn", "raise", False}, default "warn"
        Whether ``fit`` warns or raises an error if the gradients contradict the values (see ``check_derivatives``), or
        does not compare them. If the data are not sufficient to decide, there is no warning and no error.
    random_state : int, RandomState, Generator or None
        Seed for the starting points of the searches for new neurons.
    verbose : int, default 0
        1 to write a line for each step of the path to the standard error.

    Attributes
    ----------
    network_ : ShallowNetwork
        The fitted network, as a function of unscaled inputs.
    hyperplanes_ : Hyperplanes
        The hyperplanes of the network.
    alpha_ : float
        The chosen regularisation.
    n_neurons_ : int
        The number of neurons.
    certificate_ : float
        ``max |<r, sigma(omega)>| / alpha`` over a fine search: at most ``1 + tol`` if the fit converged.
    path_ : dict of arrays
        "alpha", "neurons", "error", "certificate", "seconds" and "status" of every step. The error, by
        which alpha is chosen, is from generalised cross-validation or from the validation samples.
        ``step_network(i)`` returns the network of a step.
    estimated_error_ : float or array of shape (k,)
        The estimated root mean square error at new points, in the units of each output: the error at the samples of
        five folds, after further training without each fold; with validation samples, the error at the validation and
        training samples. NaN with fewer than three samples.
    uncertainty_ : CrossFit
        The uncertainty of the fit, in scaled units, from the fits without each fold.
    fit_ : SparseFit
        The fit in scaled units, with all steps in its history.
    scaling_ : Scaling
        The change of units.
    gradient_check_ : DerivativeCheck or None
        The comparison of the gradients with the values; None if there was none.
    n_samples_ : int
        Number of fitted samples.
    n_iter_ : int
        Rounds of insertion, training and deletion, for all alphas together.
    n_features_in_ : int
    feature_names_in_ : array of shape (d,)

    Examples
    --------
    >>> from nurf import problems
    >>> rng = np.random.default_rng(0)
    >>> bump = problems.get("gaussian_bump")
    >>> data = bump.jet(bump.grid(300), noise=0.02, rng=rng)
    >>> model = SparseFeatureRegressor(width=1 / 20, gamma=10, random_state=0).fit(data.X, data.y)
    >>> fresh = bump.sample(1000, rng)
    >>> bool(model.n_neurons_ < 12 and model.score(fresh, bump.value(fresh)) > 0.99)
    True
    """

    fit_: SparseFit

    def __init__(
        self,
        alpha: float | str = "path",
        *,
        max_neurons: int | None = None,
        penalty: str | Penalty = "log",
        gamma: float = 5.0,
        activation: str | Activation = "sigmoid",
        width: float | str | None = None,
        gradient_weight: float = 0.0,
        hessian_weight: float = 0.0,
        n_initial: int = 0,
        density: str | Density = "auto",
        tail: str = "auto",
        scaling: str | None = "box",
        tol: float = 0.01,
        max_iter: int = 30,
        target: Any = None,
        inputs: Any = None,
        check_gradients: str | bool = "warn",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.max_neurons = max_neurons
        self.penalty = penalty
        self.gamma = gamma
        self.activation = activation
        self.width = width
        self.gradient_weight = gradient_weight
        self.hessian_weight = hessian_weight
        self.n_initial = n_initial
        self.density = density
        self.tail = tail
        self.scaling = scaling
        self.tol = tol
        self.max_iter = max_iter
        self.target = target
        self.inputs = inputs
        self.check_gradients = check_gradients
        self.random_state = random_state
        self.verbose = verbose

    def _prepare(self, request: Request) -> Prepared:
        jet, held_out, scaling, rng = request.jet, request.held_out, request.scaling, request.rng
        self._check_numbers()
        check, found = checked_gradients(request.given, self.check_gradients)
        scaling = Scaling.fit(jet, self.scaling) if scaling is None else scaling  # type: ignore[arg-type]
        scaled, activation = scaling(jet), self._first_activation()
        validation = None if held_out is None else scaling(held_out)
        options: dict[str, Any] = {
            "alphas": self._alphas(),
            "penalty": self._make_penalty(),
            "degree": choose("tail", self.tail, TAILS),
            "loss": self._loss(scaled),
            "widths": self._learns_width,
            "max_neurons": self.max_neurons,
            "validation": validation,
            "start": self._first_hyperplanes(scaled, activation, rng),
            "options": SparseOptions(tolerance=self.tol, max_rounds=self.max_iter),
            "n_folds": POLICY.n_folds,
        }
        progress = watch_path(self._verbosity())

        def run(after: Callable[[SparseStep], None], start: SparseFit | None) -> SparseFit:
            given = {} if start is None else {"alphas": [start.alpha], "start": start.network.hyperplanes}

            def watch(step: SparseStep) -> None:
                after(step)
                if progress is not None:
                    progress(step)

            return fit_sparse(scaled, activation, rng, watch=watch, **(options | given))

        engine = SparseEngine(scaled, run, validation, clock=request.clock)
        return Prepared((engine,), scaling, scaled, check, tuple(found), request.clock, held_out is not None)

    def _finish(self, prepared: Prepared, fit: SparseFit) -> list[Warning]:
        self._set_fit(fit, prepared.scaling, fit.crossfit)
        scaled = prepared.scaled
        self.gradient_check_, self._has_derivatives = prepared.check, bool(scaled.known)
        self.n_samples_ = len(scaled)
        self.n_neurons_, self.certificate_ = fit.step.n_neurons, fit.step.certificate
        self.n_iter_ = sum(step.n_rounds for step in fit.history)
        if fit.step.status == "max_rounds":
            unmet = (
                f"the tolerance {self.tol} was not met in {self.max_iter} rounds at alpha = {fit.alpha:.3g}: the "
                f"certificate is {fit.step.certificate:.4g}, the violation of the optimality conditions "
                f"{fit.step.violation:.2g}. Increase `max_iter` or `tol`."
            )
            return [ConvergenceWarning(unmet)]
        return []

    @property
    def _chosen(self) -> str:
        return f"{self.n_neurons_} neurons, alpha {self.fit_.alpha:.2g}"

    def report(self) -> Report:
        """Return the choice and its reasons: text in a terminal, a table in a notebook."""
        check_is_fitted(self, "fit_")
        found = describe_sparse(self.fit_, self.n_samples_, self.y_scale_, self._has_derivatives, self.gradient_check_)
        return self._with_units(found)

    @property
    def path_(self) -> dict[str, Array]:
        """Alpha, neurons, error, certificate, seconds and status of every step, largest alpha first."""
        steps = self._steps()
        names = {"neurons": "n_neurons"}
        columns = ("alpha", "neurons", "error", "certificate", "seconds", "status")
        return {name: np.array([getattr(step, names.get(name, name)) for step in steps]) for name in columns}

    def step_network(self, index: int) -> Network:
        """Return the network of a step of the path, as a function of unscaled inputs."""
        return self._in_units(self._steps()[index].network)

    def _steps(self) -> tuple[SparseStep, ...]:
        check_is_fitted(self, "fit_")
        return self.fit_.history

    @property
    def _learns_width(self) -> bool:
        return isinstance(self.width, str) and self.width == "learned"

    def _first_activation(self) -> Activation:
        """Return the activation for the search of neurons; trained widths start from its width."""
        if not self._learns_width:
            if isinstance(self.width, str):
                raise ValueError(f"`width` must be a number > 0, None or 'learned', got {self.width!r}")
            return make_activation(self.activation, self.width)
        activation = make_activation(self.activation, None)
        if not np.all(np.asarray(activation.width) > 0):
            raise ValueError(f"`width` = 'learned' needs a smooth activation, got {activation!r}")
        return activation

    def _make_penalty(self) -> Penalty:
        if isinstance(self.penalty, Penalty):
            return self.penalty
        kind = choose("penalty", self.penalty, PENALTIES)
        return LogPenalty(self.gamma) if kind is LogPenalty else kind()

    def _alphas(self) -> list[float] | None:
        if isinstance(self.alpha, str) and self.alpha == "path":
            return None
        if is_number(self.alpha) and self.alpha > 0:  # type: ignore[operator]
            return [float(self.alpha)]
        raise ValueError(f"`alpha` must be 'path' or a number > 0, got {self.alpha!r}")

    def _first_hyperplanes(self, jet: Jet, activation: Activation, rng: np.random.Generator) -> Hyperplanes | None:
        density, _ = default_density(self.density, jet, activation)
        if self.n_initial == 0:
            return None
        features, _ = sample_features(jet, Setting(density, activation), self.n_initial, rng)
        return features.hyperplanes

    def _loss(self, jet: Jet) -> Loss:
        """Return the loss; raise if derivatives in the loss are unknown."""
        weights = {"gradients": self.gradient_weight, "hessians": self.hessian_weight}
        for kind, weight in weights.items():
            name = f"`{kind[:-1]}_weight`"
            if not (is_number(weight) and weight >= 0):
                raise ValueError(f"{name} must be a number >= 0, got {weight!r}")
            if weight > MAX_WEIGHT:
                raise ValueError(f"{name} must be at most {MAX_WEIGHT:g}, got {weight!r}: the values would not count")
        loss = Loss(**{kind: float(weight) for kind, weight in weights.items()})
        loss.require(jet)
        return loss

    def _check_numbers(self) -> None:
        if self.max_neurons is not None and not is_whole(self.max_neurons):
            raise ValueError(f"`max_neurons` must be a whole number >= 1, got {self.max_neurons!r}")
        if not is_whole(self.max_iter):
            raise ValueError(f"`max_iter` must be a whole number >= 1, got {self.max_iter!r}")
        check_neurons("n_initial", self.n_initial, self.n_features_in_, lowest=0)
        if not (is_number(self.tol) and 0 < self.tol < 1):
            raise ValueError(f"`tol` must be a number between 0 and 1, got {self.tol!r}")


def polish(
    model: Model,
    jet: Jet,
    n_steps: int = 10,
    *,
    gradient_weight: float | None = None,
    hessian_weight: float | None = None,
    widths: bool = False,
) -> Model:
    """Return a copy of a fitted regressor with further trained inner weights.

    Sampling then initialises the training: a few Gauss-Newton steps decrease the objective of the ridge regression as a
    function of all weights. The network is also trained without each of five folds, which gives the estimated error,
    standard deviations and intervals of the copy.

    Parameters
    ----------
    model : RandomFeatureRegressor
        The fitted regressor, which is not changed.
    jet : Jet
        The data of the fit, in the units of the data.
    n_steps : int, default 10
    gradient_weight, hessian_weight : float, optional
        Weights of the derivatives relative to the values, in scaled units; by default as in the fit.
    widths : bool, default False
        Whether to train a width for each neuron as well.

    Examples
    --------
    >>> from nurf import RandomFeatureRegressor, problems
    >>> wave = problems.get("planar_wave")
    >>> data = wave.jet(wave.sample(300, np.random.default_rng(0)))
    >>> model = RandomFeatureRegressor(10, density="uniform", width=0.2, random_state=0).fit(data.X, data.y)
    >>> polish(model, data, 5).score(data.X, data.y) > model.score(data.X, data.y)
    True
    """
    check_is_fitted(model, "fit_")
    if not isinstance(model, ShallowRegressor):
        raise ValueError(f"`polish` trains shallow networks and needs a RandomFeatureRegressor, got {model!r}")
    if getattr(model, "loss", "squared") != "squared":
        raise ValueError(f"`polish` minimises squared errors and needs a fit with loss='squared', got {model.loss!r}")
    if model.warping_.outputs is not None:
        raise ValueError(f"`polish` needs a fit with target=None, got the {model.warping_}")
    outputs = np.shape(model.scaling_.y_scale)
    if not isinstance(jet, Jet) or (jet.n_features, jet.y.shape[1:]) != (model.n_features_in_, outputs):
        got = f"{jet.n_features} and {jet.y.shape[1:]}" if isinstance(jet, Jet) else f"a {type(jet).__name__}"
        raise ValueError(
            f"`jet` must be a Jet with {model.n_features_in_} inputs and outputs of shape {outputs}, got {got}"
        )
    if not is_whole(n_steps, lowest=0):
        raise ValueError(f"`n_steps` must be a whole number >= 0, got {n_steps!r}")
    weights = {"gradients": gradient_weight, "hessians": hessian_weight}
    loss = replace(model.fit_.loss, **{kind: weight for kind, weight in weights.items() if weight is not None})
    trained = copy.copy(model)
    fit = polish_fit(model.fit_, model.scaling_(model.warping_(jet)), n_steps, loss=loss, widths=widths)
    trained._set_fit(fit, model.scaling_, fit.crossfit)
    return trained
