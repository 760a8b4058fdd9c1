"""The start and the objective of training a deep network: first weights, units, and the numbers of training."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from nurf._blocks import spaced
from nurf._scaling import Scaling
from nurf._types import Array, Floats
from nurf.choosing import Policy
from nurf.densities import Density, Uniform
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.networks import Ball, DeepNetwork, Nonlinearity, Tanh
from nurf.solvers import VALUES_ONLY, Loss
from nurf.solvers.trained import Parameters, Schedule, Soap, Trainer


@dataclass(frozen=True)
class DeepSetting:
    """A setting of a run: the density of the first layer, its scale, and the loss.

    Parameters
    ----------
    density : Density
        The density of the hyperplanes of the first layer.
    scale : float, default 1
        The length of the normals of the first layer, for inputs with mean zero and variance one.
    loss : Loss
        The weights of the derivatives, in the units of the data of the fit.
    """

    density: Density = field(default_factory=Uniform)
    scale: float = 1.0
    loss: Loss = VALUES_ONLY

    def __str__(self) -> str:
        parts = [type(self.density).__name__.lower()]
        parts += [f"scale {self.scale:g}"] if self.scale != 1 else []
        parts += [f"{kind} {getattr(self.loss, kind):.2g}" for kind in self.loss.kinds]
        return ", ".join(parts)


@dataclass(frozen=True)
class DeepOptions:
    """The numbers that determine how deep networks are trained.

    Parameters
    ----------
    n_steps, few_steps : int
        Default number of steps of a run, and the number with few samples, where there are ``n_folds`` runs.
    schedule : Schedule
        Step sizes of a cycle.
    value_rate : float, default 0.5
        The largest step size without derivatives in the loss, relative to the step size with derivatives: larger steps
        overfit the values.
    last_rate : float, default 0.1
        The largest step size of the last cycle, on all rows, relative to the other cycles.
    soap : Soap
        The optimiser.
    batch : int, default 250
        Points of a step.
    scales : tuple of float, default (1, 0.3)
        The lengths of the first normals to try. Smooth functions are fitted better from short normals.
    race_share : float, default 0.08
        Steps of the first cycle of each setting, relative to a run. At the end of the cycle, where the step size is
        zero, the network is judged at the held-out rows.
    min_cycle : int, default 100
        The fewest steps of a cycle, or a quarter of the steps of a run if that is less.
    last_share : float, default 0.2
        Steps of the last cycle, on all rows, relative to the steps before.
    within : float, default 10
        Training ends if its error is larger than the error of another engine by this factor. On the functions on which
        deep networks were the best in the end, the error of the first cycle was larger by a factor of at most 4.
    held_out : int, default 500
        Number of samples of a fold, if there are many samples.
    max_sampled : int, default 5000
        The largest number of rows from which hyperplanes are sampled.
    bandwidth : float, default 0.5
        Bandwidth of the densities that need one, for inputs with mean zero and variance one.
    reach : float, default 1.5
        Hyperplanes of the uniform density have at most this distance from the mean of the inputs.
    """

    n_steps: int = 2700
    few_steps: int = 700
    schedule: Schedule = field(default_factory=Schedule)
    value_rate: float = 0.5
    last_rate: float = 0.1
    soap: Soap = field(default_factory=Soap)
    batch: int = 250
    scales: tuple[float, ...] = (1.0, 0.3)
    race_share: float = 0.08
    min_cycle: int = 100
    last_share: float = 0.2
    within: float = 10.0
    held_out: int = 500
    max_sampled: int = 5000
    bandwidth: float = 0.5
    reach: float = 1.5

    def steps_for(self, n_samples: int, policy: Policy) -> int:
        """Return the default number of steps of a run for ``n_samples`` samples."""
        return self.few_steps if n_samples <= policy.few_samples else self.n_steps

    def cycle(self, share: float, n_steps: int) -> int:
        """Return the number of steps of a cycle with a share of ``n_steps``.

        >>> DeepOptions().cycle(0.1, 3000), DeepOptions().cycle(0.1, 500), DeepOptions().cycle(0.1, 50)
        (300, 100, 13)
        """
        return max(round(share * n_steps), min(self.min_cycle, -(-n_steps // 4)))

    def folds_of(self, n_samples: int, policy: Policy) -> tuple[int, int]:
        """Return the number of folds of ``n_samples`` samples, and the number of folds that are left out in turn.

        >>> [DeepOptions().folds_of(n, Policy()) for n in (3, 100, 1000, 10_000)]
        [(3, 3), (5, 5), (5, 1), (20, 1)]
        """
        if n_samples <= policy.few_samples:
            return min(policy.n_folds, n_samples), min(policy.n_folds, n_samples)
        return max(policy.n_folds, n_samples // self.held_out), 1


@dataclass(frozen=True)
class DeepSpec:
    """A deep network and the settings of its training.

    Parameters
    ----------
    hidden : tuple of int
        Numbers of neurons of the hidden layers.
    activation : Nonlinearity
    settings : tuple of DeepSetting
        The settings to choose from, the most plausible first.
    n_steps : int
        Steps of a run. A fit has one run without each of some folds, first cycles of the other settings, and a last
        cycle with all rows.
    options : DeepOptions
    """

    hidden: tuple[int, ...] = (64, 64, 64, 64, 64)
    activation: Nonlinearity = field(default_factory=Tanh)
    settings: tuple[DeepSetting, ...] = (DeepSetting(),)
    n_steps: int = 2700
    options: DeepOptions = field(default_factory=DeepOptions)

    @property
    def trainer(self) -> Trainer:
        """The trainer of a run."""
        return Trainer(self.activation, self.options.schedule, self.options.soap, self.options.batch)


def training_units(jet: Jet) -> Scaling:
    """Return the scaling to mean zero and variance one, with the same factor for all inputs."""
    center = jet.X.mean(axis=0)
    squares = np.mean((jet.X - center) ** 2, axis=0)
    varying = np.count_nonzero(squares)
    size = np.sqrt(squares.sum() / varying) if varying else 1.0
    outputs = jet.y.shape[1:]
    return Scaling(center, np.full_like(center, size), np.zeros(outputs), np.ones(outputs))


def in_training_units(loss: Loss, units: Scaling) -> Loss:
    """Return the loss for data in training units, with the weight of gradients in these units."""
    return Loss(loss.gradients / float(units.x_scale[0]) ** 2)


def balanced_weight(jet: Jet) -> float:
    """Return the weight for which gradients count as much as values: one over their mean square, 0 if all are zero."""
    weights = jet.weights(1) * jet.has_derivative(1)
    with np.errstate(over="ignore"):
        squares = np.sum(jet.derivative_rows(1) ** 2, axis=(1, 2)) / jet.y[:1].size
    mean = float(weights @ squares / weights.sum()) if weights.any() else 0.0
    return 1 / mean if mean > 0 else 0.0


def first_parameters(jet: Jet, spec: DeepSpec, setting: DeepSetting, rng: np.random.Generator) -> list[Floats]:
    """Return the weights before training, in single precision; the last row of each layer is the bias.

    Hyperplanes of the first layer are sampled from the density. Weights of further layers are normal with variance 1 /
    fan-in. In the last layer, weights of outputs that do not vary are zero: these need no training.

    Parameters
    ----------
    jet : Jet
        The data, in training units.
    """
    sizes = (jet.n_features, *spec.hidden, jet.y[:1].size)
    layers = [
        np.vstack([rng.standard_normal((fan_in, size)) / np.sqrt(fan_in), np.zeros(size)])
        for fan_in, size in itertools.pairwise(sizes)
    ]
    options = spec.options
    density = setting.density.at_width(options.bandwidth / 2)
    known = [jet.has_derivative(order) for order, kind in DERIVATIVE_KINDS.items() if kind in density.needs]
    part = jet[spaced(np.flatnonzero(np.all([np.ones(len(jet), bool), *known], axis=0)), options.max_sampled)]
    if not _can_sample(density, part):  # all rows with nonzero derivatives may be held out
        density, part = Uniform(), jet
    planes = density.prepare(part, Ball(options.reach)).sample(spec.hidden[0], rng)
    layers[-1] *= np.any(jet.with_values().y.reshape(-1, sizes[-1]) != 0, axis=0)
    layers[0] = setting.scale * np.vstack([planes.normals.T, planes.offsets])
    return [layer.astype(np.float32) for layer in layers]


def first_network(jet: Jet, spec: DeepSpec, setting: DeepSetting, rng: np.random.Generator) -> DeepNetwork:
    """Return the network before training, in the units of the data."""
    units = training_units(jet)
    parameters = first_parameters(units(jet), spec, setting, rng)
    return as_network(parameters, spec.activation, jet.y.shape[1:]).in_units_of(units)


def _can_sample(density: Density, jet: Jet) -> bool:
    """Return whether the derivatives that a density needs are known and not zero."""
    orders = [order for order, kind in DERIVATIVE_KINDS.items() if kind in density.needs]
    return len(jet) > 0 and not density.missing(jet) and all(np.any(jet.derivative_rows(order)) for order in orders)


def as_network(parameters: Parameters, activation: Nonlinearity, output_shape: tuple[int, ...]) -> DeepNetwork:
    """Return the network with the given weights, in double precision."""
    layers = [np.asarray(layer, float) for layer in parameters]
    return DeepNetwork([layer[:-1] for layer in layers], [layer[-1] for layer in layers], activation, output_shape)


def as_parameters(network: DeepNetwork) -> list[Floats]:
    """Return the weights of a network in the form for training."""
    layers = zip(network.weights, network.biases, strict=True)
    return [np.vstack([matrix, vector]).astype(np.float32) for matrix, vector in layers]


def squared_errors(network: DeepNetwork, jet: Jet) -> Array:
    """Return the squared errors of the values, outputs added up, of shape (n,)."""
    errors = (network.value(jet.X) - jet.y).reshape(len(jet), -1)
    return np.asarray(np.sum(errors**2, axis=1))
