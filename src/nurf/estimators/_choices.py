"""The candidates of a race for the parameters of a regressor with sampled neurons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nurf._types import Array, Precision
from nurf._validation import is_number
from nurf.activations import ACTIVATIONS, Activation, SmoothActivation
from nurf.choosing import VALUES_ALONE
from nurf.densities import AxisAligned, Density, Local, Nonlocal, Uniform, complete
from nurf.engines import (
    GROWTH,
    MAX_ROWS,
    Diagonal,
    FromData,
    FromResidual,
    Full,
    Isotropic,
    Metric,
    SampledEngine,
    Source,
    Space,
    Task,
    race_sizes,
    stage_counts,
)
from nurf.estimators._parameters import (
    TAILS,
    check_neurons,
    choose,
    make_activation,
    named_density,
    sampling_order,
    zero_derivatives,
)
from nurf.jets import Jet
from nurf.solvers import Loss, Rule
from nurf.solvers.ridge import ROUNDING

WIDTHS = (3.2, 1.6, 0.8, 0.4, 0.2, 0.1, 0.05, 0.025, 0.0125)  # in units of the ball into which the inputs are scaled
WIDTH_RATIO = 4.0  # ratio of single widths to the typical width, for "multiscale"
GRADIENT_WEIGHTS = (0.0, 1e-3, 1e-2, 1e-1)
ENOUGH = 0.5  # share of known derivatives above which none are estimated
AUTO_NEURONS = (150, 4050)  # smallest and largest size for n_neurons="auto"
AUTO_IMPROVEMENT = 0.05  # relative decrease of the error that each larger size requires with n_neurons="auto"


@dataclass(frozen=True)
class Choices:
    """The parameters of ``RandomFeatureRegressor`` that determine the candidates of a race.

    Parameters
    ----------
    n_inputs : int
        Number of inputs, before any projection.
    n_neurons, density, activation, width, alpha, gradient_weight, hessian_weight, derivatives, growth, tail, dtype
        See ``RandomFeatureRegressor``.
    """

    n_inputs: int
    n_neurons: Any
    density: Any = "auto"
    activation: Any = "sigmoid"
    width: Any = "auto"
    alpha: Any = "auto"
    gradient_weight: Any = "auto"
    hessian_weight: Any = 0.0
    derivatives: Any = "auto"
    growth: Any = "auto"
    tail: Any = "auto"
    dtype: Any = "float64"

    def engines(self, jet: Jet, rule: Rule, rng: np.random.Generator) -> list[SampledEngine]:
        """Return the engines of a race: for all data and, if the parameters allow it, for the values alone."""
        activations = self.activations()
        if jet.functionals is not None:
            activations[0].require(jet.functionals.max_order)
            if self.precision() != np.float64:
                raise ValueError(f"`dtype` must be 'float64' with `functionals`, got {self.dtype!r}")
        space = self._space(jet, activations)
        sizes = self._sizes(activations[0], space)
        task = Task(jet, self.alphas(), rule, max_rows=MAX_ROWS, dtype=self.precision())
        entropy = tuple(int(number) for number in rng.integers(2**32, size=4))
        improvement = AUTO_IMPROVEMENT if isinstance(self.n_neurons, str) else -np.inf
        engine = SampledEngine(task, space, sizes, entropy, improvement=improvement)
        if not self._may_ignore_derivatives(jet, activations[0]):
            return [engine]
        values = jet.only(())
        space = self._space(values, activations)
        return [engine, replace(engine, task=replace(task, jet=values), space=space, data=VALUES_ALONE)]

    def _space(self, jet: Jet, activations: tuple[Activation, ...]) -> Space:
        """Return the settings to choose from, for the data and the parameters."""
        activation = activations[0]
        named, order = named_density(self.density, activation), sampling_order(jet, activation)
        density = Nonlocal(order) if named is None else named
        missing = density.missing(jet)
        informative = not missing and not (named is None and zero_derivatives(jet, order))
        estimate = self._estimates(jet, activation, unusable=named is not None and bool(missing))
        densities: tuple[Density, ...] = (density,)
        if named is None:
            densities = self._densities(jet, order) if informative else (Uniform(),)
        elif estimate and not informative:
            densities = (Uniform(),)
        elif missing:
            got = " and ".join(sorted(jet.known)) or "no derivatives"
            raise ValueError(
                f"{density!r} needs {' and '.join(missing)}, got {got}: pass them to `fit`, or use "
                "derivatives='estimate' or density='auto'"
            )
        return Space(
            densities,
            activations,
            self._losses(jet, activation),
            self._sources(activation, densities),
            self._width_ratios(activation),
            self._metrics(jet, activation) if informative else (Isotropic(),),
            self._estimated(density, jet, activation) if estimate else (),
            self._degrees(jet, activation),
        )

    def _densities(self, jet: Jet, order: int) -> tuple[Density, ...]:
        """Return the densities to choose from, for data with derivatives."""
        general = (Nonlocal(order), Local(order, None), Uniform())
        return (*general, AxisAligned(order, None)) if jet.n_features > 1 else general

    def _sources(self, activation: Activation, densities: tuple[Density, ...]) -> tuple[Source, ...]:
        """Return the sources from which stages may sample."""
        growth = self._growth(activation)
        if growth is None or not any(density.needs for density in densities):
            return (FromData(),)
        return (FromData(), FromResidual()) if self.growth == "auto" else (FromResidual(),)

    def _metrics(self, jet: Jet, activation: Activation) -> tuple[Metric, ...]:
        """Return the metrics to choose from."""
        free = self.density == "auto" and self._chooses_width(activation) and jet.n_features > 1
        return (Diagonal(), Isotropic(), Full()) if free else (Isotropic(),)

    def _estimated(self, density: Density, jet: Jet, activation: Activation) -> tuple[tuple[Density, Metric], ...]:
        """Return the densities and metrics that may use derivatives estimated by a network."""
        metrics = self._metrics(jet, activation)
        pairs: list[tuple[Density, Metric]] = [(density, metric) for metric in metrics]
        if len(metrics) > 1:
            pairs += [(Uniform(), Diagonal()), (AxisAligned(sampling_order(jet, activation), None), Isotropic())]
        return tuple(pairs)

    def _width_ratios(self, activation: Activation) -> tuple[float, ...]:
        """Return the factors by which widths of single neurons may vary."""
        if not self._chooses_width(activation):
            return (1.0,)
        return (WIDTH_RATIO,) if self.width == "multiscale" else (1.0, WIDTH_RATIO)

    def _degrees(self, jet: Jet, activation: Activation) -> tuple[int | None, ...]:
        """Return the degrees of the tail to choose from. The affine tail comes first, if there are enough data."""
        degree = choose("tail", self.tail, TAILS)
        rows = len(jet) * (1 + jet.n_features * ("gradients" in jet.known))
        if self.tail != "auto" or not self._chooses_width(activation) or rows < 2 * (jet.n_features + 1):
            return (degree,)
        return (None, 0) if activation.order == 2 else (1, None)

    def _chooses_width(self, activation: Activation) -> bool:
        """Return whether widths are chosen. A given number or the width of an activation object is kept."""
        named = isinstance(self.width, str) and isinstance(self.activation, str)
        return named and isinstance(activation, SmoothActivation)

    def _may_ignore_derivatives(self, jet: Jet, activation: Activation) -> bool:
        """Return whether a fit to the values alone may win."""
        free = self.derivatives == self.density == self.gradient_weight == "auto" and not self.hessian_weight
        return free and bool(jet.known) and isinstance(activation, SmoothActivation)

    def activations(self) -> tuple[Activation, ...]:
        """Return the activation with all widths to choose from, the largest first."""
        chosen = isinstance(self.width, str)
        if chosen and self.width not in ("auto", "multiscale"):
            raise ValueError(f"`width` must be 'auto', 'multiscale' or a number > 0, got {self.width!r}")
        kind = ACTIVATIONS.get(self.activation) if isinstance(self.activation, str) else None
        if not chosen or kind is None or not issubclass(kind, SmoothActivation):
            return (make_activation(self.activation, None if chosen else self.width),)
        return tuple(kind(width) for width in WIDTHS)

    def _estimates(self, jet: Jet, activation: Activation, unusable: bool) -> bool:
        """Return whether unknown derivatives may be estimated for the sampling.

        An incomplete gradient does not determine the direction in which the function varies. If the named density is
        ``unusable``, estimates are required for sampling.
        """
        chosen = choose("derivatives", self.derivatives, {"given": False, "estimate": True, "auto": None})
        order = sampling_order(jet, activation)
        if chosen is None:
            smooth = isinstance(activation, SmoothActivation) and not np.ndim(activation.width)
            too_few = self.density == "auto" and np.mean(complete(jet, order)) < ENOUGH
            chosen = smooth and (too_few or unusable)
        if chosen:
            activation.require(order)
        return bool(chosen)

    def _losses(self, jet: Jet, activation: Activation) -> tuple[Loss, ...]:
        """Return the weights of derivatives to choose from, the smallest first."""
        hessians: Any = self.hessian_weight
        if not (is_number(hessians) and hessians >= 0):
            raise ValueError(f"`hessian_weight` must be a number >= 0, got {hessians!r}")
        gradients: Any = self.gradient_weight
        if isinstance(gradients, str) and gradients == "auto":
            known = "gradients" in jet.known and activation.n_derivatives >= 1
            losses = tuple(Loss(weight, float(hessians)) for weight in GRADIENT_WEIGHTS[: None if known else 1])
        elif is_number(gradients) and gradients >= 0:
            losses = (Loss(float(gradients), float(hessians)),)
        else:
            raise ValueError(f"`gradient_weight` must be 'auto' or a number >= 0, got {gradients!r}")
        losses[-1].require(jet)
        for order, _ in losses[-1].orders:
            activation.require(order)
        return losses

    def _growth(self, activation: Activation) -> float | None:
        """Return the factor by which stages grow, or None if all neurons are sampled at once."""
        growth: Any = self.growth
        if isinstance(growth, str) and growth == "auto":
            growable = activation.n_derivatives >= min(activation.order, 2) and not np.ndim(activation.width)
            return GROWTH if growable else None
        if not (growth is None or (is_number(growth) and growth > 1)):
            raise ValueError(f"`growth` must be 'auto', None or a number > 1, got {growth!r}")
        return None if growth is None else float(growth)

    def _sizes(self, activation: Activation, space: Space) -> list[int]:
        """Return the numbers of neurons of a race."""
        growth = self._growth(activation)
        if isinstance(self.n_neurons, str) and self.n_neurons == "auto":
            if self.growth is None:
                raise ValueError(
                    "`n_neurons='auto'` grows networks in stages: `growth` must be 'auto' or a number > 1, got None"
                )
            smallest, largest = AUTO_NEURONS
            return stage_counts(largest, growth or GROWTH, smallest)
        check_neurons("n_neurons", self.n_neurons, self.n_inputs)
        if growth is not None and self.growth != "auto":
            return stage_counts(self.n_neurons, growth)
        return race_sizes(self.n_neurons) if space.has_choice else [self.n_neurons]

    def precision(self) -> Precision:
        """Return the precision of the features in the normal equations."""
        precision: Precision = choose("dtype", self.dtype, {"float64": np.float64, "float32": np.float32})
        return precision

    def alphas(self) -> Array | None:
        """Return the given alpha, or None if it is chosen from a path."""
        smallest = ROUNDING[self.precision()]
        if isinstance(self.alpha, str) and self.alpha == "auto":
            return None
        if is_number(self.alpha) and self.alpha > 0:
            if float(self.alpha) < smallest:
                raise ValueError(
                    f"`alpha` must be 'auto' or a number >= {smallest:.1e} with dtype={self.dtype!r}, got "
                    f"{self.alpha!r}: smaller ones are lost in the rounding, and need dtype='float64'"
                )
            return np.array([self.alpha], float)
        raise ValueError(f"`alpha` must be 'auto' or a number > 0, got {self.alpha!r}")
