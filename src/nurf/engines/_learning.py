"""Kernels with learned scales and noise, as candidates of infinitely wide networks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from nurf._types import Array, Index
from nurf.choosing import NO_LIMIT, Clock
from nurf.engines._likelihood import LearningProblem, coordinate_units, learn
from nurf.engines._scales import Hyperparameters, Prior, Scales
from nurf.jets import Jet
from nurf.kernels import RadialKernel
from nurf.solvers.process import Criterion, Process, ProcessRows, row_total, typical_error

N_ORDERS = 3  # orders of derivatives: values, first and second derivatives


@dataclass(frozen=True)
class Learning:
    """The numbers that determine how scales and noise are learned.

    Parameters
    ----------
    rows : tuple of int
        Numbers of rows of the parts of the data from which scales are learned before all data, because a step costs the
        third power of the number of rows. If all data have many more rows than the last part, scales and noise stay:
        5000 values of a smooth function of 5 inputs have an error of 1.1e-5 after 11 s of one core. With steps on all
        rows the fit had not ended after two minutes.
    few_rows : int
        The largest number of rows on which ``steps`` are taken.
    min_samples : int
        The least number of samples of a part.
    part : float
        The largest share of all samples that a part has.
    first_steps, least_steps : int
        Steps of L-BFGS on the first part. If the part has more rows than wanted there are fewer steps, but at least
        ``least_steps``.
    between_steps, steps : int
        Steps on more rows, up to ``few_rows``: first on some of the samples, with the geometric mean of the numbers of
        rows before and after, then on all samples. With 30 and 20 steps errors were the same in the geometric mean.
        With 15 and 10 steps, and starts compared on 100 rows, the error on OTLCircuit (1500 rows) was 4 times as
        large.
    many_steps : int
        Steps on more than ``few_rows``, up to about the size of the last part.
    trial_steps : int
        Steps after which the best of several starts is chosen.
    n_starts : int
        Number of starts, with the smallest criteria, from which steps are taken on the first part, unless it has more
        rows than wanted. With two instead of four, 4 of 114 errors were 1.8 to 3.3 times as large.
    evidence : float
        The decrease of the criterion that a start with short scales requires: odds of 20 to 1. Without such starts, 7
        of 10 fits to ten values of ``exp(-x) sin(14 x)`` explained all of them as noise; the median error is 0.1
        standard deviations with them. Without the condition, short scales interpolate noise.
    power : float
        Candidates are averaged with their inverse leave-one-out errors to this power as weights.
    least_weight : float
        Members of an average whose weight is less than this share of the largest are left out.
    most : int
        The largest number of members.
    most_rows : int
        The largest product of the number of members and the number of rows; one member always stays.
    energy : float
        The share of the mean square of the gradients along the directions of a linear map.
    max_mapped : int
        The largest number of inputs for which full linear maps are tried. With more inputs, the number of directions of
        a map is at most half the number of inputs.
    map_rows : int
        The least number of rows for each entry of a map: with fewer rows, some map makes any values look smooth.
    refit_steps : int
        Steps of L-BFGS from the best start if scales are learned without a fold. With twice the steps and two starts,
        reported errors were not closer to the true errors.
    update_steps : int
        Steps of L-BFGS for an update with more samples. From 60 to 70 samples, errors of six functions (three seeds,
        with and without gradients) were up to 1.18 times the errors of a new fit, and 1.33 times without steps. From 60
        to 90 and 120 samples without gradients they were up to 1.27 and 2.3 times as large, and 1.45 and 3.6 times
        without steps. A step took 2% of the time of a new fit; with twice the steps, errors were nearly the same.
    threaded_rows : int
        The number of rows from which linear algebra takes more than one thread.
    prior : Prior
    """

    rows: tuple[int, ...] = (200, 800, 2000)
    few_rows: int = 1100
    min_samples: int = 20
    part: float = 0.7
    first_steps: int = 40
    least_steps: int = 20
    between_steps: int = 20
    steps: int = 12
    many_steps: int = 6
    trial_steps: int = 6
    n_starts: int = 4
    evidence: float = 3.0
    power: float = 4.0
    least_weight: float = 0.02
    most: int = 3
    most_rows: int = 2000
    energy: float = 0.9999
    max_mapped: int = 3
    map_rows: int = 5
    refit_steps: int = 15
    update_steps: int = 2
    threaded_rows: int = 2500
    prior: Prior = field(default_factory=Prior)

    def sizes(self, jet: Jet) -> list[int]:
        """Return the numbers of samples on which scales are learned."""
        n, per_sample = len(jet), row_total(jet) / len(jet)
        sizes = {max(self.min_samples, int(rows / per_sample)) for rows in self.rows}
        return [*(size for size in sorted(sizes) if size < self.part * n), n]

    def tries_map(self, rank: int, d: int, n_rows: int) -> bool:
        """Return whether a linear map of ``d`` inputs to ``rank`` directions is tried."""
        return (d <= self.max_mapped or rank <= d / 2) and n_rows >= self.map_rows * rank * d

    def first(self, n_rows: int) -> tuple[int, int]:
        """Return the numbers of starts and of steps on a first part of ``n_rows`` rows."""
        share = min(1.0, self.rows[0] / self.part / n_rows)
        return int(np.ceil(share * self.n_starts)), max(self.least_steps, int(share * self.first_steps))

    def averaged(self, errors: Array, n_rows: int) -> tuple[Index, Array]:
        """Return the candidates to average for ``n_rows`` rows, by their errors (m,), and their decreasing weights."""
        least = float(np.min(errors))
        ratios = np.ones(len(errors))
        np.divide(least, errors, out=ratios, where=errors > least)
        order = np.argsort(-ratios, kind="stable")[: int(np.clip(self.most_rows // n_rows, 1, self.most))]
        weights = ratios[order] ** self.power
        kept = weights >= self.least_weight
        return order[kept], np.asarray(weights[kept] / weights[kept].sum())


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel and a family of linear maps, with the learned scales and noise.

    Parameters
    ----------
    kernel : RadialKernel
    scales : Scales
    found : Hyperparameters
    criterion : float
        The smallest value of the criterion that was found.
    n_rows : int
        Number of rows from which it was computed.
    n_steps : int
        Number of steps so far. Coordinates learned from ``n`` rows have an error of about ``1 / sqrt(n)``, which is the
        length of the next step.
    mapped : bool
        Whether the map is a linear map rather than a scale for each input.
    spread : array of shape (p, p), optional
        The inverse second derivatives of the criterion with respect to the coordinates, estimated from the last steps.
    """

    kernel: RadialKernel
    scales: Scales
    found: Hyperparameters
    criterion: float = np.inf
    n_rows: int = 1
    n_steps: int = 0
    mapped: bool = False
    spread: Array | None = None

    def __str__(self) -> str:
        return f"{type(self.kernel).__name__}, {self.scales}" + ", a noise for each partial" * self.separate

    def learned(
        self, rows: ProcessRows, criterion: Criterion, prior: Prior, n_steps: int, clock: Clock = NO_LIMIT
    ) -> Candidate:
        """Return the candidate after some steps on the rows."""
        problem = LearningProblem(rows, self.kernel, self.scales, criterion, prior, clock)
        first_step, units = float(1 / np.sqrt(self.n_rows)) if self.n_steps else 1.0, None
        if self.spread is not None and len(rows) > self.n_rows:  # the estimate from few rows, for more rows
            units = coordinate_units(self.spread * self.n_rows / len(rows))
        found, value, spread = learn(problem, self.found, n_steps, first_step, units)
        n_steps += self.n_steps
        return replace(self, found=found, criterion=value, n_rows=len(rows), n_steps=n_steps, spread=spread)

    def of(self, kernel: RadialKernel | None = None, separate: bool = False) -> Candidate:
        """Return a candidate with a scale for each input as a start for another kernel, or for ``separate`` noise.

        Scales are converted such that partial derivatives of the process keep their mean squares.
        """
        kernel = self.kernel if kernel is None else kernel
        found = self.found.separate if separate else self.found.common
        metric = found.metric * (self.kernel.curvature / kernel.curvature)
        return replace(self, kernel=kernel, found=Hyperparameters(metric, found.noise))

    @property
    def separate(self) -> bool:
        """Whether each partial derivative has a noise of its own."""
        return len(self.found.noise) > N_ORDERS

    @property
    def n_coordinates(self) -> int:
        """The number of coordinates of the map."""
        return len(self.scales.coordinates(self.found.metric))

    @property
    def n_parameters(self) -> int:
        """The number of coordinates of the map, and of additional variances of noise of partial derivatives."""
        return self.n_coordinates + len(self.found.noise) - N_ORDERS

    @property
    def score(self) -> float:
        """The criterion, plus half the logarithm of the number of rows for each parameter (Schwarz 1978)."""
        return self.criterion + float(np.log(self.n_rows)) / 2 * self.n_parameters

    @property
    def optimism(self) -> float:
        """The factor by which errors are larger for a map learned from other rows, ``exp(p / n)`` for ``n`` rows.

        Comparing errors with this factor is the same as comparing ``n log(error^2) + 2 p`` for the numbers ``p`` of
        parameters (Akaike 1974).
        """
        return float(np.exp(self.n_parameters / self.n_rows))

    def process(self, rows: ProcessRows) -> Process:
        """Return the process given the rows."""
        return Process(rows, self.kernel, self.found.metric, self.found.noise).sound()

    def error(self, process: Process) -> float:
        """Return the error of the process given the rows, to compare candidates for the same rows."""
        error = typical_error(process)
        return (error if np.isfinite(error) else np.inf) * self.optimism
