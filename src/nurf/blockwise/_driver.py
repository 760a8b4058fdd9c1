"""The driver of fits to data in blocks, for all networks and sources of blocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import add
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from nurf._scaling import Kind, Scaling, is_ball
from nurf._threads import one_thread
from nurf.blockwise._checkpoint import Checkpoint
from nurf.data import Stream, Summary, Units, canonical, radius, relative, summarised, weighted
from nurf.engines import Fit
from nurf.jets import Jet

# The largest share of the remaining time for a pass over all blocks, by its predicted duration. Normal equations of
# 200,000 rows of the borehole function took 4.3 s; the prediction was 4.9 s.
PASS_SHARE = 0.7

FirstFit = TypeVar("FirstFit")
State = TypeVar("State")
Absorbed = TypeVar("Absorbed")
Result = TypeVar("Result", covariant=True)
AnyFit = TypeVar("AnyFit", bound=Fit)


@dataclass(frozen=True, eq=False)
class Survey:
    """The result of a first pass over all blocks.

    Parameters
    ----------
    stream : Stream
    summary : Summary
        The extent of the data, and two samples of rows.
    seed : int
        The seed of the samples.
    seconds : float
        Duration of the pass.
    """

    stream: Stream
    summary: Summary
    seed: int
    seconds: float

    @classmethod
    def of(cls, stream: Stream, seed: int, max_rows: int) -> Survey:
        """Return the survey of the blocks, with at most ``max_rows`` rows in the first sample."""
        start = time.perf_counter()
        summary = stream.map_reduce(partial(summarised, seed=seed, n_raced=max_rows), add)
        summary.require_weights()
        return cls(stream, summary, seed, time.perf_counter() - start)

    def all_rows(self) -> Jet | None:
        """Return all rows as arguments of ``fit``, or None if they do not fit into the samples."""
        summary = self.summary
        few = summary.is_complete and summary.n_rows <= summary.raced.size
        return canonical(relative(summary.all_rows())) if few else None

    def scaling(self, kind: Kind | None) -> Scaling:
        """Return the scaling of all rows. Scaling into a ball takes one more pass."""
        extent = self.summary.extent
        largest = self.stream.map_reduce(partial(radius, extent=extent), max) if is_ball(kind) else 0.0
        return Scaling.of(extent, kind, largest)

    def blocks(self, scaling: Scaling) -> Blocks:
        """Return the blocks and their samples in scaled units."""
        units = Units(scaling, self.summary.mean_weight)
        sample, held = (weighted(kept, units) for kept in (self.summary.raced, self.summary.held))
        return Blocks(self.stream, self.summary, self.seed, self.seconds, units, sample, held)


@dataclass(frozen=True, eq=False)
class Blocks(Survey):
    """Surveyed data in blocks, and the units of a fit.

    Parameters
    ----------
    units : Units
    sample, held : Jet
        Rows to fit first, and held-out rows for the error, in these units and with the weights of the rows that they
        represent.
    """

    units: Units
    sample: Jet
    held: Jet


class Way(Protocol[FirstFit, State, Absorbed, Result]):
    """A method to fit a kind of network to data in blocks."""

    parts: ClassVar[tuple[type, ...]]  # dataclasses of states, in addition to the dataclasses of fits

    def fit(self, blocks: Blocks, rng: np.random.Generator) -> FirstFit:
        """Return the fit to the sample."""

    def absorb(
        self, blocks: Blocks, fit: FirstFit, state: State | None, after: Callable[[State], None] | None
    ) -> Absorbed:
        """Return the state after all blocks were absorbed one by one, starting from ``state`` if there is one.

        ``after`` is called with the state after each block or a few blocks.
        """

    def finish(self, blocks: Blocks, fit: FirstFit, absorbed: Absorbed) -> Result:
        """Return the result, with its error at the held-out rows."""


def fit_in_blocks(
    blocks: Blocks,
    way: Way[FirstFit, State, Absorbed, Result],
    rng: np.random.Generator,
    file: Checkpoint | None = None,
) -> Result:
    """Return a fit to all blocks, which continues from the state in a file if there is one.

    The file is written after the fit to the sample and between blocks, and removed after the last block.
    """
    kept = None if file is None else file.read()
    if kept is None:
        with one_thread():
            fit, state = way.fit(blocks, rng), None
    else:
        fit, state = kept.fit, kept.state
    if file is None:
        return way.finish(blocks, fit, way.absorb(blocks, fit, state, None))
    if kept is None:
        file.write(fit, None)
    result = way.finish(blocks, fit, way.absorb(blocks, fit, state, lambda state: file.write(fit, state)))
    file.remove()
    return result


def with_errors_at(fit: AnyFit, held: Jet) -> AnyFit:
    """Return a fit with its errors at held-out rows, which have the weights of the rows that they represent."""
    weights = held.weights(0)
    return replace(fit, output_errors=np.sqrt(weights @ fit.network.errors(held) ** 2 / weights.sum()))
