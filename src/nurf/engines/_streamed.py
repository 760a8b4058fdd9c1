"""The outer weights from a stream: normal equations of all blocks, and errors at a sample of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nurf._scaling import Extent, Scaling
from nurf._streams import Block, Reservoir, uniform_numbers
from nurf._types import Array, Precision
from nurf.engines._fit import ShallowFit
from nurf.engines._outer import fit_ridge
from nurf.jets import Jet
from nurf.networks import Features
from nurf.solvers import Loss, Rule
from nurf.solvers.ridge import NormalEquations, PrimalRidge
from nurf.solvers.ridge._selection import TOLERANCE

HELD_ROWS = 5000  # at which the error is estimated
MANY_ROWS = 20  # for each neuron, with which a smaller alpha costs nothing: ...
ALPHA_TOLERANCE = 0.005  # ... then the largest alpha within so much of the smallest error is taken, noise included
HELD_SHARE = 0.2  # of the rows may be among them; all others may be raced on


@dataclass(frozen=True, eq=False)
class Summary:
    """What one pass over the data finds out: their extent, and two samples. Those of two sets of rows can be added.

    Attributes
    ----------
    n_rows : int
        Number of rows of positive weight.
    extent : Extent
    raced, held : Reservoir
        Rows for the race, and others, which choose nothing but alpha and show the error.
    slope_weights : (float, float)
        The smallest and the largest positive weight of derivatives.
    starts : tuple of int
        The numbers of the first rows of all blocks.
    """

    n_rows: int
    extent: Extent
    raced: Reservoir
    held: Reservoir
    slope_weights: tuple[float, float]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, jet: Jet, first: int, seed: int, n_raced: int, n_held: int = HELD_ROWS) -> Summary:
        """Return the summary of consecutive rows, the first of which has the number ``first``."""
        rows = first + np.arange(len(jet))
        numbers, used = uniform_numbers(rows, seed), jet.weights(0) > 0
        held = uniform_numbers(rows, seed + 1) < HELD_SHARE
        weighted = jet.weights(1)[used & (jet.weights(1) > 0)]
        return cls(
            int(used.sum()),
            Extent.of(jet[used]),
            Reservoir.of(jet[~held], rows[~held], numbers[~held], n_raced),
            Reservoir.of(jet[held], rows[held], numbers[held], n_held),
            (float(weighted.min(initial=np.inf)), float(weighted.max(initial=0.0))),
            (first,),
        )

    def __add__(self, other: Summary) -> Summary:
        """Return the summary of the rows of both."""
        if self.layout != other.layout:
            raise ValueError(
                f"all blocks must have the same inputs, outputs and derivatives, got {_described(self.layout)} and "
                f"{_described(other.layout)}"
            )
        (low, high), (lower, higher) = self.slope_weights, other.slope_weights
        return Summary(
            self.n_rows + other.n_rows,
            self.extent + other.extent,
            self.raced + other.raced,
            self.held + other.held,
            (min(low, lower), max(high, higher)),
            self.starts + other.starts,
        )

    @property
    def layout(self) -> tuple[int, tuple[int, ...], frozenset[str]]:
        """The number of inputs, the shape of the outputs, and the arrays that are given."""
        jet = self.raced.jet
        given = frozenset(name for name, array in vars(jet).items() if array is not None)
        return jet.n_features, jet.y.shape[1:], given

    @property
    def mean_weight(self) -> float:
        """The mean of the positive weights."""
        return self.extent.weight / self.n_rows

    @property
    def is_complete(self) -> bool:
        """Whether all rows are in the samples."""
        return bool(np.isinf([self.raced.threshold, self.held.threshold]).all())

    def all_rows(self) -> Jet:
        """Return all rows in their order, if the samples are complete."""
        order = np.argsort(np.concatenate([self.raced.rows, self.held.rows]))
        return (self.raced.jet + self.held.jet)[order]


def _described(layout: tuple[int, tuple[int, ...], frozenset[str]]) -> str:
    n_features, outputs, given = layout
    return f"{n_features} inputs, y of shape {('n', *outputs)} and {', '.join(sorted(given - {'X', 'y'})) or 'no more'}"


@dataclass(frozen=True, eq=False)
class Units:
    """The change from data as they are given to those that are fitted: scaled, and with weights of mean one.

    Parameters
    ----------
    scaling : Scaling
    mean_weight : float
    """

    scaling: Scaling
    mean_weight: float = 1.0

    def __call__(self, jet: Jet, multiples: Array | None = None) -> Jet:
        """Return the data in these units, their weights times ``multiples``. Rows of weight zero weigh nothing."""
        scaled = self.scaling(jet)
        if jet.sample_weight is None and jet.derivative_weight is None and multiples is None:
            return scaled
        factors = np.full(len(jet), 1 / self.mean_weight) * (1.0 if multiples is None else multiples)
        slopes = None if jet.derivative_weight is None else jet.derivative_weight * factors * (jet.weights(0) > 0)
        return replace(scaled, sample_weight=jet.weights(0) * factors, derivative_weight=slopes)


@dataclass(frozen=True, eq=False)
class Accumulation:
    """Normal equations of a number of rows.

    Parameters
    ----------
    n_rows : int
        Number of rows of positive weight.
    equations : tuple of NormalEquations
        Those of each network.
    """

    n_rows: int
    equations: tuple[NormalEquations, ...]

    def __add__(self, other: Accumulation) -> Accumulation:
        """Return those of the rows of both."""
        pairs = zip(self.equations, other.equations, strict=True)
        return Accumulation(self.n_rows + other.n_rows, tuple(mine + more for mine, more in pairs))


@dataclass(frozen=True, eq=False)
class Accumulate:
    """The map from a block to the normal equations of one or more networks.

    Parameters
    ----------
    read : callable
        From a block to a jet.
    units : Units
    problems : tuple of (Features, Loss)
        What is fitted.
    dtype : numpy.float64 or numpy.float32
        See ``fit_outer``.
    """

    read: Callable[[Block], Jet]
    units: Units
    problems: tuple[tuple[Features, Loss], ...]
    dtype: Precision = np.float64

    def __call__(self, block: Block) -> Accumulation:
        """Return the normal equations of a block."""
        jet = self.units(self.read(block))
        equations = tuple(
            NormalEquations.from_some(features, jet, loss, self.dtype) for features, loss in self.problems
        )
        return Accumulation(int(np.count_nonzero(jet.weights(0))), equations)


def fit_accumulated(
    fit: ShallowFit, equations: NormalEquations, sample: Jet, rule: Rule, alphas: Array | None
) -> ShallowFit:
    """Return the fit with the outer weights of the normal equations, and alpha and the errors chosen anew.

    Parameters
    ----------
    fit : ShallowFit
        Its features and its loss are kept.
    equations : NormalEquations
        Those of all rows, with this loss.
    sample : Jet
        Some of these rows, with the weights that they have there.
    rule : Rule
        How the error is estimated at the sample.
    alphas : array of shape (A,) or None
        See ``fit_outer``.
    """
    ridge = PrimalRidge(fit.network.features, sample, fit.loss, equations)
    many = equations.total_weight > MANY_ROWS * ridge.n_neurons  # weights have the mean one
    found = fit_ridge(ridge, alphas, rule, ALPHA_TOLERANCE if many else TOLERANCE)
    return replace(found, left_out=None, stage=fit.stage, history=fit.history, attempts=fit.attempts)


def fit_of_sample(fit: ShallowFit, accumulated: ShallowFit, held: Jet, multiples: Array) -> ShallowFit | None:
    """Return the fit to the sample with its errors at held rows, or None if that to all rows is as good.

    A Gram matrix of all rows cannot resolve the small alphas that a fit to a sample can have. They help if a smooth
    function is known without noise, and then more rows do not.

    Parameters
    ----------
    fit, accumulated : ShallowFit
        Fits to the sample and to all rows.
    held : Jet
        Rows that are not in the sample, with their weights.
    multiples : array of shape (n,)
        The number of rows for which each of them stands.
    """
    if not fit.precise:
        return None
    weights = held.weights(0) * multiples
    squares = (held.y - fit.network.value(held.X)).reshape(len(held), -1) ** 2
    errors = replace(fit, output_errors=np.sqrt(weights @ squares / weights.sum()))
    return errors if errors.error < accumulated.error else None
