"""Fits to arrays that are in memory, on disk or of Dask, and to blocks."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable
from numbers import Integral
from operator import add
from pathlib import Path
from typing import Any, Self

import numpy as np

from nurf._validation import is_whole
from nurf.data import IterableStream, Observations, Stream, Summarise, Summary
from nurf.data._checkpoint import Checkpoint, fingerprint
from nurf.data._rows import LARGEST_WEIGHT
from nurf.estimators._base import unchanged_on_error
from nurf.estimators._piecewise import PredictsPiecewise
from nurf.training import Search


class FitsInBlocks(PredictsPiecewise):
    """A regressor that is fitted to blocks of rows, if all of them together are too many for the memory."""

    random_state: Any

    @abstractmethod
    def _fit_stream(self, stream: Stream, checkpoint: Any) -> list[Warning]:
        """Fit to a stream, set the attributes at the very end, and return warnings for the user."""

    @abstractmethod
    def _at_once(self, n_rows: int, piecewise: bool) -> bool:
        """Return whether so many rows are read at once; ``piecewise`` if they are on disk or of Dask."""

    def _needs_memory(self) -> bool:
        """Return whether the parameters ask for a fit that needs all rows in memory."""
        return False

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        gradients: Any = None,
        gradients_at: Any = None,
        directions: Any = None,
        hessians: Any = None,
        sample_weight: Any = None,
        derivative_weight: Any = None,
        validation: Any = None,
        block_rows: int | None = None,
        checkpoint: Any = None,
    ) -> Self:
        """Fit the network to values and derivatives, in memory, on disk or on a cluster.

        Up to 20,000 rows are read at once. More are read in blocks (``numpy.memmap``, HDF5, zarr, Dask arrays, and for
        ``RandomFeatureRegressor`` arrays in memory): see ``docs/large_data.md``.

        Parameters
        ----------
        X, y, gradients, gradients_at, directions, hessians, sample_weight, derivative_weight, validation
            As for the other regressors. ``gradients_at``, ``validation`` and Huber's loss need arrays in memory.
        block_rows : int, optional
            Number of rows that are read at once, of more than 20,000 rows. By default 65,536, or fewer if they take
            more than 64 MB. The blocks of Dask arrays are their chunks.
        checkpoint : str or path-like, optional
            A file in which the state of a fit to more than 20,000 rows is kept while it runs. If the process is killed,
            the same call goes on from there. ``random_state`` must be a number. The file is removed in the end.

        Returns
        -------
        self
        """
        if not (block_rows is None or is_whole(block_rows)):
            raise ValueError(f"`block_rows` must be a whole number >= 1 or None, got {block_rows!r}")
        data = Observations(
            X,
            y,
            gradients=gradients,
            gradients_at=gradients_at,
            directions=directions,
            hessians=hessians,
            sample_weight=sample_weight,
            derivative_weight=derivative_weight,
            validation=validation,
        )
        n, piecewise = getattr(X, "shape", (0,))[:1], data.is_piecewise
        whole = gradients_at is not None or validation is not None or self._needs_memory()
        if not n or self._at_once(n[0], piecewise) or (whole and not piecewise):
            return self._fit_data(data.in_memory(), self._fit)
        if whole:
            raise ValueError(
                "`gradients_at`, `validation` and loss='huber' need arrays in memory if there are more than "
                f"{Search.max_rows} rows, got arrays that are read in blocks"
            )
        with unchanged_on_error(self):
            if piecewise:
                self.__dict__.pop("feature_names_in_", None)
            else:
                data = self._checked(data)
            found = self._fit_stream(data.stream(block_rows), checkpoint)
        return self._warned(found)

    def fit_blocks(self, blocks: Iterable[Any] | Callable[[], Iterable[Any]], *, checkpoint: Any = None) -> Self:
        """Fit the network to blocks of rows, one of which is in memory at a time.

        Parameters
        ----------
        blocks : iterable or callable
            A list, another object whose ``__iter__`` starts from the beginning, or a function that returns a new
            iterator: the blocks are read two or three times. A block is ``(X, y)``, ``(X, y, gradients)`` or a mapping
            with names of the arguments of ``fit``. All must have the same kinds of data.
        checkpoint : str or path-like, optional
            See ``fit``.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            self.__dict__.pop("feature_names_in_", None)
            found = self._fit_stream(IterableStream(blocks), checkpoint)
        return self._warned(found)

    def _warned(self, found: list[Warning]) -> Self:
        for warning in found:
            warnings.warn(warning, stacklevel=3)
        return self

    def _summary(self, stream: Stream, checkpoint: Any, rng: np.random.Generator) -> tuple[Summary, int]:
        """Return what a first pass over the blocks finds out, and the seed of its samples."""
        if checkpoint is not None and not isinstance(self.random_state, Integral):
            raise ValueError(f"`checkpoint` needs a number as `random_state`, got {self.random_state!r}")
        seed = int(rng.integers(2**62))
        summary = stream.map_reduce(Summarise(seed, Search.max_rows), add)
        _check_weights(summary)
        self.n_features_in_ = summary.layout[0]
        return summary, seed

    def _checkpoint(self, path: Any, summary: Summary, seed: int) -> Checkpoint | None:
        """Return the file in which the state is kept, if there is one."""
        if path is None:
            return None
        parameters = sorted(
            (name, repr(value)) for name, value in self.get_params(deep=False).items() if name != "verbose"
        )
        samples = [part for kept in (summary.raced, summary.held) for part in (kept.rows, kept.jet.X, kept.jet.y)]
        extent = summary.extent
        owner = fingerprint(parameters, seed, summary.n_rows, summary.starts, extent.low, extent.high, *samples)
        return Checkpoint(Path(path), owner)


def _check_weights(summary: Summary) -> None:
    """Raise an error if no weight is positive, or if those of derivatives are too far from those of values."""
    if not summary.n_rows:
        raise ValueError("`sample_weight` must be positive in at least one row, got only zeros")
    low, high = (weight / summary.mean_weight for weight in summary.slope_weights)
    if high and (low < 1 / LARGEST_WEIGHT or high > LARGEST_WEIGHT):
        raise ValueError(
            f"`derivative_weight` must be 0 or from {1 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}, in units of the mean "
            f"weight of the values, got {low:g} to {high:g}"
        )
