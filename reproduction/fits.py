"""The experiments: configurations that determine their numbers, and how these are computed."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from nurf.densities import ActiveSubspace, Density, Local, Nonlocal, Representation, Uniform
from nurf.engines import fit_adaptive, fit_outer, fit_sparse
from nurf.jets import Jet
from nurf.networks import Ball, Features, Hyperplanes, ShallowNetwork
from nurf.solvers import L1, LogPenalty, Validation
from reproduction.arrays import Array
from reproduction.cases import Case
from reproduction.results import Neurons, Result, Row
from reproduction.seeds import digest, generator, seed
from reproduction.version import version

EDITION = 1  # another number gives all experiments other seeds

# The authors' 16 values from 10 to 1e-4. They are literals because they are hashed, and `np.logspace` rounds
# differently on different processors.
ALPHAS = (
    10.0, 4.641588833612779, 2.154434690031884,
    1.0, 0.464158883361278, 0.21544346900318845,
    0.1, 0.04641588833612782, 0.021544346900318846,
    0.01, 0.004641588833612782, 0.0021544346900318843,
    0.001, 0.0004641588833612782, 0.00021544346900318867,
    0.0001,
)  # fmt: skip

RESIDUAL = "_residual"  # ends the names of methods that sample later stages from the residual


def density_of(method: str, case: Case) -> Density:
    """Return the density of a sampling method, with the authors' parameters."""
    order, width = case.order, case.width
    densities: dict[str, Density] = {
        "uniform": Uniform(),
        "active_subspace": ActiveSubspace(order),
        "local": Local(order, jitter=2 * width),
        "nonlocal": Nonlocal(order, bandwidth=2 * width),
        "representation": Representation(order, width=width, mollifier="cauchy", data="gradients"),
    }
    return densities[method.removesuffix(RESIDUAL)]


@dataclass(frozen=True)
class Experiment(ABC):
    """A configuration: everything that determines its numbers, and nothing else.

    The names of the class and its fields and the values of the fields are hashed: they determine all seeds and,
    together with the version of the source, the keys of results. A value must be the same on every machine: literals,
    integers, or results of exact arithmetic.
    """

    case: Case

    @cached_property
    def digest(self) -> str:
        """The configuration in one number, from which the seeds are."""
        return digest(type(self).__name__, EDITION, asdict(self))

    @property
    def version(self) -> str:
        """The version of what computes its results."""
        return version(type(self), Case)

    def run(self, method: str, trial: int) -> Result:
        """Return the result of one method and one trial; it depends on these and on the configuration only.

        Seconds are those of the processor, so that other users of the machine do not count.
        """
        start, used = time.perf_counter(), time.process_time()
        case, own = self.case, seed(self.digest, method, trial)
        training, validation = case.trial_data(trial)
        outcomes = self._fits(method, training, validation, generator(own))
        used = time.process_time() - used
        share = used / (time.perf_counter() - start)
        rows, networks = [], []
        for neurons, error, alpha, seconds, network in outcomes:
            networks += [] if network is None else [network]
            if np.isfinite(error):  # mere samples have none
                relative = float(error / np.sqrt((np.mean(training.y**2) + np.mean(validation.y**2)) / 2))
                row = Row(case.name, case.order, method, trial, neurons, relative, alpha, share * seconds, own)
                rows.append(row)
        return Result(tuple(rows), tuple(networks), used)

    @abstractmethod
    def effort(self, method: str) -> float:
        """Return an estimate of the seconds of one trial; the longest are run first."""

    @abstractmethod
    def _fits(self, method: str, training: Jet, validation: Jet, rng: np.random.Generator) -> list[Outcome]:
        """Return the outcome of each stage."""


Outcome = tuple[int, float, float, float, Neurons | None]  # neurons, error, alpha, seconds, network


@dataclass(frozen=True)
class Sampling(Experiment):
    """Networks with sampled neurons that grow in stages, as in the authors' code.

    Each stage keeps the neurons of the previous one and adds new ones, sampled from the density of the data; residual
    methods sample them from the density of the previous stage's residual. All coefficients are refitted. Alpha is
    chosen from the authors' 16 values, each times ``d / N``, by their rule: the largest with an error on training and
    validation rows together within 5% of the best. Residual methods choose from the values of all their stages.

    Parameters
    ----------
    case : Case
    stages : tuple of int
        Numbers of neurons.
    alphas : tuple of float
        The authors' values.
    keep : bool
        Whether the networks are kept.
    """

    stages: tuple[int, ...]
    alphas: tuple[float, ...] = ALPHAS
    keep: bool = False

    def effort(self, method: str) -> float:
        """Return the cost of the normal equations, and of sampling from the exact representation."""
        products = 6e-11 * self.case.n_samples * sum(n**2 for n in self.stages)
        samples = 4e-5 * self.case.n_samples * self.stages[-1] / 250 if method == "representation" else 0.0
        return 0.05 + products + samples + 4e-10 * self.stages[-1] ** 3

    def _fits(self, method: str, training: Jet, validation: Jet, rng: np.random.Generator) -> list[Outcome]:
        density, rule = density_of(method, self.case), Validation(validation)
        if method.endswith(RESIDUAL):
            return self._residual_fits(density, training, rule, rng)
        start = time.perf_counter()
        planes = density.prepare(training, Ball(1.0)).sample(self.stages[-1], rng)
        outcomes = []
        for n in self.stages:
            features = self._features(planes[:n])
            alphas = self._scaled_alphas(n) / feature_energy(features, training)
            fit = fit_outer(features, training, alphas=alphas, rule=rule)
            network = neurons_of(fit.network) if self.keep else None
            seconds, start = time.perf_counter() - start, time.perf_counter()
            outcomes.append((n, fit.error, fit.alpha, seconds, network))
        return outcomes

    def _residual_fits(
        self, density: Density, training: Jet, rule: Validation, rng: np.random.Generator
    ) -> list[Outcome]:
        # All stages of a fit share one path, in units of the feature energy of the first stage's density.
        planes = density.prepare(training, Ball(1.0)).sample(self.stages[-1], generator(0))
        energy = feature_energy(self._features(planes), training)
        high, low = self._scaled_alphas(self.stages[0])[0], self._scaled_alphas(self.stages[-1])[-1]
        steps = 1 + round(np.log(high / low) / np.log(self.alphas[0] / self.alphas[1]))
        fit = fit_adaptive(
            training,
            density,
            self.case.activation,
            self.stages,
            rng,
            degree=self.case.order - 1,
            alphas=np.geomspace(high, low, steps) / energy,
            rule=rule,
            domain=Ball(1.0),
            patience=len(self.stages),
            improvement=0.01,
        )
        return [(stage.n_neurons, stage.error, stage.alpha, stage.seconds, None) for stage in fit.history]

    def _features(self, planes: Hyperplanes) -> Features:
        return Features(planes, self.case.activation, self.case.order - 1)

    def _scaled_alphas(self, n: int) -> Array:
        """Return our alphas for theirs: ``alpha_ours N = d alpha_theirs / N``, in units of the values squared."""
        return self.case.dimension * np.array(self.alphas) / n**2


@dataclass(frozen=True)
class Training(Experiment):
    """Sparse networks with all weights trained, along a path over alpha.

    Parameters
    ----------
    case : Case
    alphas : tuple of float
        The path: the authors' values times d, because their loss is divided by d K and ours by K.
    gamma, theta : float
        Parameters of the concave penalty; with ``gamma`` zero it is the convex one.
    max_neurons : int
        Largest size of a network.
    """

    alphas: tuple[float, ...]
    gamma: float
    theta: float
    max_neurons: int

    def effort(self, method: str) -> float:
        """Return a guess from measured paths, which in one and two dimensions end with fewer neurons than allowed."""
        size = min(self.max_neurons, 50 * self.case.dimension)
        return 1e-7 * self.case.n_samples * size**2 * self.case.dimension

    def _fits(self, method: str, training: Jet, validation: Jet, rng: np.random.Generator) -> list[Outcome]:
        fit = fit_sparse(
            training,
            self.case.activation,
            rng,
            alphas=self.alphas,
            penalty=LogPenalty(self.gamma, self.theta) if self.gamma else L1(),
            degree=self.case.order - 1,
            max_neurons=self.max_neurons,
            validation=validation,
        )
        drawn = self.case.dimension <= 2
        return [
            (step.n_neurons, step.error, step.alpha, step.seconds, neurons_of(step.network) if drawn else None)
            for step in fit.history
        ]


@dataclass(frozen=True)
class Draws(Experiment):
    """Many hyperplanes sampled from a density, to draw it; nothing is fitted."""

    n_draws: int

    def effort(self, method: str) -> float:
        """Return a guess from measured runs."""
        return 2e-4 * self.n_draws if method == "representation" else 0.05

    def _fits(self, method: str, training: Jet, validation: Jet, rng: np.random.Generator) -> list[Outcome]:
        planes = density_of(method, self.case).prepare(training, Ball(1.0)).sample(self.n_draws, rng)
        nothing = np.empty(0)
        return [(self.n_draws, np.nan, np.nan, np.nan, Neurons(planes.normals, planes.offsets, nothing))]


def feature_energy(features: Features, jet: Jet) -> float:
    """Return the mean square of a feature after projection on the complement of the tail: the unit of our alphas."""
    design = features.design(jet.X)
    neurons, tail = design[:, : features.n_neurons], np.linalg.qr(design[:, features.n_neurons :])[0]
    neurons -= tail @ (tail.T @ neurons)
    return float(np.mean(neurons**2)) or 1.0


def neurons_of(network: ShallowNetwork) -> Neurons:
    """Return the hyperplanes and coefficients of a network."""
    return Neurons(network.hyperplanes.normals, network.hyperplanes.offsets, network.coefficients)


def network_of(neurons: Neurons, case: Case) -> ShallowNetwork:
    """Return the network with these hyperplanes and coefficients."""
    return ShallowNetwork(Features(neurons.hyperplanes, case.activation, case.order - 1), neurons.coefficients)
