"""The experiments: configurations that say all about their numbers, and how to compute them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from nurf._types import Array
from nurf.densities import ActiveSubspace, Local, Nonlocal, Representation, Uniform
from nurf.densities._base import Density
from nurf.jets import Jet
from nurf.networks import Ball, Features, Hyperplanes, ShallowNetwork
from nurf.solvers import Validation
from nurf.solvers.sparse._penalties import LogPenalty
from nurf.training import fit_adaptive, fit_outer, fit_sparse
from reproduction.cases import Case
from reproduction.results import Neurons, Result, Row
from reproduction.seeds import digest, generator, seed

PROCEDURE = 1  # count up where the numbers change though no configuration does: results of before are not used again
ALPHAS = tuple(float(alpha) for alpha in np.logspace(1, -4, 16))  # the authors'
RESIDUAL = "_residual"


def density_of(law: str, case: Case) -> Density:
    """Return a law of the paper by its name, with the authors' parameters; a residual law is that of its stages."""
    order, width = case.order, case.width
    laws: dict[str, Density] = {
        "uniform": Uniform(),
        "active_subspace": ActiveSubspace(order),
        "local": Local(order, jitter=2 * width),
        "nonlocal": Nonlocal(order, bandwidth=2 * width),
        "representation": Representation(order, width=width, mollifier="cauchy", data="gradients"),
    }
    return laws[law.removesuffix(RESIDUAL)]


@dataclass(frozen=True)
class Experiment(ABC):
    """A configuration: everything that determines its numbers, and nothing else."""

    case: Case

    @cached_property
    def digest(self) -> str:
        """The name under which results are kept."""
        return digest(type(self).__name__, PROCEDURE, asdict(self))

    def run(self, law: str, trial: int) -> Result:
        """Compute one law and one trial; the result depends on the configuration, the law and the trial alone."""
        start = time.perf_counter()
        own = seed(self.digest, law, trial)
        training, validation = self.case.trial_data(trial)
        rows, networks = [], []
        for neurons, error, alpha, seconds, network in self._fits(law, training, validation, generator(own)):
            networks += [] if network is None else [network]
            if np.isfinite(error):  # bare draws have none
                relative = float(error / np.sqrt((np.mean(training.y**2) + np.mean(validation.y**2)) / 2))
                rows.append(Row(self.case.name, self.case.order, law, trial, neurons, relative, alpha, seconds, own))
        return Result(tuple(rows), tuple(networks), time.perf_counter() - start)

    @abstractmethod
    def effort(self, law: str) -> float:
        """Return about how many seconds one trial takes: the longest go first."""

    @abstractmethod
    def _fits(self, law: str, training: Jet, validation: Jet, rng: np.random.Generator) -> list[Outcome]:
        """Return what each stage gave."""


Outcome = tuple[int, float, float, float, Neurons | None]  # neurons, error, alpha, seconds, network


@dataclass(frozen=True)
class Sampling(Experiment):
    """Networks with sampled neurons that grow in stages, as in the authors' code.

    Each stage keeps the neurons of the one before and adds new ones: from the law of the data, or for the residual laws
    from that of what the last stage left over. All outer weights are found anew, with the authors' 16 penalties
    ``d alpha / N`` and their rule: the largest whose error on training and validation rows together is within 5% of the
    best. Residual laws choose from all penalties that occur in their stages.

    Parameters
    ----------
    case : Case
    stages : tuple of int
        Numbers of neurons.
    alphas : tuple of float
        The authors' penalties.
    keep : bool
        Whether the networks are kept.
    """

    stages: tuple[int, ...]
    alphas: tuple[float, ...] = ALPHAS
    keep: bool = False

    def effort(self, law: str) -> float:
        """Return the cost of the normal equations, and of drawing from the exact representation."""
        products = 6e-11 * self.case.n_samples * sum(n**2 for n in self.stages)
        draws = 4e-5 * self.case.n_samples * self.stages[-1] / 250 if law == "representation" else 0.0
        return 0.05 + products + draws + 4e-10 * self.stages[-1] ** 3

    def _fits(self, law: str, training: Jet, validation: Jet, rng: np.random.Generator) -> list[Outcome]:
        density, rule = density_of(law, self.case), Validation(validation)
        if law.endswith(RESIDUAL):
            return self._residual_fits(density, training, rule, rng)
        start = time.perf_counter()
        planes = density.prepare(training, Ball(1.0)).sample(self.stages[-1], rng)
        outcomes = []
        for n in self.stages:
            features = self._features(planes[:n])
            alphas = self._penalties(n) / feature_energy(features, training)
            fit = fit_outer(features, training, alphas=alphas, rule=rule)
            network = kept(fit.network) if self.keep else None
            seconds, start = time.perf_counter() - start, time.perf_counter()
            outcomes.append((n, fit.error, fit.alpha, seconds, network))
        return outcomes

    def _residual_fits(
        self, density: Density, training: Jet, rule: Validation, rng: np.random.Generator
    ) -> list[Outcome]:
        # The stages of one fit share their path, in units of the energy of a feature: that of the first law's neurons.
        planes = density.prepare(training, Ball(1.0)).sample(self.stages[-1], np.random.default_rng(0))
        energy = feature_energy(self._features(planes), training)
        high, low = self._penalties(self.stages[0])[0], self._penalties(self.stages[-1])[-1]
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

    def _penalties(self, n: int) -> Array:
        """Return our alphas for theirs: ``alpha_ours N = d alpha_theirs / N``, in units of the values squared."""
        return self.case.dimension * np.array(self.alphas) / n**2


@dataclass(frozen=True)
class Training(Experiment):
    """Sparse networks with all weights trained, along a path over alpha.

    Parameters
    ----------
    case : Case
    alphas : tuple of float
        The path; the authors' values times d, since their loss is divided by d K where ours is by K.
    gamma, theta : float
        Of the penalty.
    max_neurons : int
        What ends the growth.
    """

    alphas: tuple[float, ...]
    gamma: float
    theta: float
    max_neurons: int

    def effort(self, law: str) -> float:
        """Return a guess from measured paths, which in one and two dimensions end with fewer neurons than allowed."""
        size = min(self.max_neurons, 50 * self.case.dimension)
        return 1e-7 * self.case.n_samples * size**2 * self.case.dimension

    def _fits(self, law: str, training: Jet, validation: Jet, rng: np.random.Generator) -> list[Outcome]:
        fit = fit_sparse(
            training,
            self.case.activation,
            rng,
            alphas=self.alphas,
            penalty=LogPenalty(self.gamma, self.theta),
            degree=self.case.order - 1,
            max_neurons=self.max_neurons,
            validation=validation,
        )
        drawn = self.case.dimension <= 2
        return [
            (step.n_neurons, step.error, step.alpha, step.seconds, kept(step.network) if drawn else None)
            for step in fit.history
        ]


@dataclass(frozen=True)
class Draws(Experiment):
    """Many hyperplanes of a law, for a picture of it; nothing is fitted."""

    n_draws: int

    def effort(self, law: str) -> float:
        """Return a guess from measured draws."""
        return 2e-4 * self.n_draws if law == "representation" else 0.05

    def _fits(self, law: str, training: Jet, validation: Jet, rng: np.random.Generator) -> list[Outcome]:
        planes = density_of(law, self.case).prepare(training, Ball(1.0)).sample(self.n_draws, rng)
        nothing = np.empty(0)
        return [(self.n_draws, np.nan, np.nan, np.nan, Neurons(planes.normals, planes.offsets, nothing))]


def feature_energy(features: Features, jet: Jet) -> float:
    """Return the mean square of a feature, tail eliminated: the unit in which fits take their alphas."""
    design = features.design(jet.X)
    neurons, tail = design[:, : features.n_neurons], np.linalg.qr(design[:, features.n_neurons :])[0]
    neurons -= tail @ (tail.T @ neurons)
    return float(np.mean(neurons**2)) or 1.0


def kept(network: ShallowNetwork) -> Neurons:
    """Return the weights of a network."""
    return Neurons(network.hyperplanes.normals, network.hyperplanes.offsets, network.coefficients)


def network_of(neurons: Neurons, case: Case) -> ShallowNetwork:
    """Return the network with these weights."""
    return ShallowNetwork(Features(neurons.hyperplanes, case.activation, case.order - 1), neurons.weights)
