"""The summary of one pass over the data, and the units for the fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nurf._scaling import Extent, Scaling
from nurf._types import Array
from nurf.data._reading import read_block
from nurf.data._reservoir import Reservoir, uniform_numbers
from nurf.data._rows import LARGEST_WEIGHT, canonical
from nurf.data._streams import Block
from nurf.jets import Jet

HELD_ROWS = 5000  # largest number of held-out rows, on which the error is estimated
HELD_SHARE = 0.2  # share of the rows that may be held out; the other rows are for the race


@dataclass(frozen=True, eq=False)
class Summary:
    """The extent of the data and two samples, from one pass. Summaries of two sets of rows can be added.

    Attributes
    ----------
    n_rows : int
        Number of rows of positive weight.
    extent : Extent
    raced, held : Reservoir
        Rows for the race, and held-out rows, which are used only to choose alpha and to estimate the error.
    slope_weights : (float, float)
        The smallest and the largest positive weight of derivatives.
    starts : tuple of int
        The row numbers of the first rows of all blocks.
    """

    n_rows: int
    extent: Extent
    raced: Reservoir
    held: Reservoir
    slope_weights: tuple[float, float]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, jet: Jet, first: int, seed: int, n_raced: int, n_held: int = HELD_ROWS) -> Summary:
        """Return the summary of consecutive rows, which start with row number ``first``."""
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
        """Return the summary of the union of the rows."""
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

    def require_weights(self) -> None:
        """Raise an error if no weight is positive, or if weights of derivatives are too far from weights of values."""
        if not self.n_rows:
            raise ValueError("`sample_weight` must be positive in at least one row, got only zeros")
        low, high = (weight / self.mean_weight for weight in self.slope_weights)
        if high and (low < 1 / LARGEST_WEIGHT or high > LARGEST_WEIGHT):
            raise ValueError(
                f"`derivative_weight` must be 0 or from {1 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}, in units of the "
                f"mean weight of the values, got {low:g} to {high:g}"
            )

    def all_rows(self) -> Jet:
        """Return all rows in the order of the data, if the samples are complete."""
        order = np.argsort(np.concatenate([self.raced.rows, self.held.rows]))
        return (self.raced.jet + self.held.jet)[order]


def _described(layout: tuple[int, tuple[int, ...], frozenset[str]]) -> str:
    n_features, outputs, given = layout
    return f"{n_features} inputs, y of shape {('n', *outputs)} and {', '.join(sorted(given - {'X', 'y'})) or 'no more'}"


@dataclass(frozen=True, eq=False)
class Units:
    """The change of units before a fit: data are scaled, and weights have mean one.

    Parameters
    ----------
    scaling : Scaling
    mean_weight : float
    """

    scaling: Scaling
    mean_weight: float = 1.0

    def __call__(self, jet: Jet, multiples: Array | None = None) -> Jet:
        """Return the data in the units of the fit, with weights multiplied by ``multiples``."""
        scaled = self.scaling(jet)
        if jet.sample_weight is None and jet.derivative_weight is None and multiples is None:
            return scaled
        factors = np.full(len(jet), 1 / self.mean_weight) * (1.0 if multiples is None else multiples)
        slopes = None if jet.derivative_weight is None else jet.derivative_weight * factors * (jet.weights(0) > 0)
        return replace(scaled, sample_weight=jet.weights(0) * factors, derivative_weight=slopes)


def weighted(kept: Reservoir, units: Units) -> Jet:
    """Return the rows of a reservoir in scaled units, each with the total weight of the rows that it represents."""
    given = kept.jet.sample_weight is not None
    multiples = kept.multiples / np.average(kept.multiples, weights=kept.jet.weights(0))
    return canonical(units(kept.jet, multiples if given else None))


def summarised(block: Block, seed: int, n_raced: int) -> Summary:
    """Return the summary of a block, with at most ``n_raced`` rows for the race."""
    return Summary.of(read_block(block), block.first, seed, n_raced)


def radius(block: Block, extent: Extent) -> float:
    """Return the largest distance between the points of a block and the centre of the data."""
    jet = read_block(block)
    return extent.radius(jet.X[jet.weights(0) > 0])
