"""Fits to arrays in memory and on disk, to Dask arrays, and to blocks."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

from nurf._scaling import Scaling
from nurf._validation import is_whole
from nurf.blockwise import Blocks, Checkpoint, Survey, Way, fingerprint, fit_in_blocks
from nurf.choosing import Clock, Judged
from nurf.data import DerivativeCheck, IterableStream, Observations, Stream
from nurf.engines import MAX_ROWS, say_surveyed
from nurf.estimators._base import NetworkRegressor
from nurf.estimators._fidelities import NO_BASE
from nurf.estimators._parameters import as_generator
from nurf.estimators._saved import unchanged_on_error
from nurf.estimators._views import AS_GIVEN
from nurf.jets import Jet

OR_AT_ONCE = f", or fit at most {MAX_ROWS:,} of them at once"
Checked = tuple[Scaling, DerivativeCheck | None, list[Warning]]


class BlockwiseRegressor(NetworkRegressor):
    """A regressor that can be fitted to blocks of rows, for more rows than fit into memory."""

    scaling: Any
    random_state: Any
    _trains_at_once: ClassVar[bool] = False  # on arrays in memory with any number of rows

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
        functionals: Any = None,
        validation: Any = None,
        base: Any = None,
        block_rows: int | None = None,
        checkpoint: Any = None,
    ) -> Self:
        """Fit the network to values and derivatives, in memory, on disk or on a cluster.

        Up to 20,000 rows are read at once. More are read in blocks (``numpy.memmap``, HDF5, zarr, Dask arrays, and for
        ``RandomFeatureRegressor`` and ``Surrogate`` arrays in memory): see ``docs/large_data.md``.

        Parameters
        ----------
        X, y, gradients, gradients_at, directions, hessians, sample_weight, derivative_weight
            See ``RandomFeatureRegressor``. ``gradients_at`` and Huber's loss need arrays in memory.
        functionals, validation, base
            See ``RandomFeatureRegressor``. ``functionals``, ``validation`` and ``base`` need arrays in memory.
        block_rows : int, optional
            Number of rows of a block, for more than 20,000 rows. By default 65,536, or fewer if they take more than
            64 MB. The blocks of Dask arrays are their chunks.
        checkpoint : str or path-like, optional
            A file for the state of a fit to more than 20,000 rows while it runs. If the process is killed, the same
            call continues from this state. ``random_state`` must be a number. The file is removed after the fit.
            ``Surrogate`` does not support it, because its fits end with ``time_budget``.

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
            functionals=functionals,
            validation=validation,
        )
        n, piecewise = getattr(X, "shape", (0,))[:1], data.is_piecewise
        at_once = not n or n[0] <= MAX_ROWS or (self._trains_at_once and not piecewise)
        further = any(given is not None for given in (gradients_at, functionals, validation, base))
        whole = further or self._needs_memory()
        if at_once or (whole and not piecewise):
            return self._fit_data(data.in_memory(), self._fit, base)
        if whole:
            raise ValueError(
                "`gradients_at`, `functionals`, `validation`, `base` and loss='huber' need arrays in memory if there "
                f"are more than {MAX_ROWS} rows, got arrays that are read in blocks"
            )
        with unchanged_on_error(self):
            if piecewise:
                self.__dict__.pop("feature_names_in_", None)
            else:
                data = self._checked(data)
            found = self._fit_stream(data.stream(block_rows), checkpoint)
        return self._warned(found)

    def fit_blocks(self, blocks: Iterable[Any] | Callable[[], Iterable[Any]], *, checkpoint: Any = None) -> Self:
        """Fit the network to blocks of rows, with one block in memory at a time.

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

    def _fit_stream(self, stream: Stream, path: Any) -> list[Warning]:
        """Fit to a stream, set the attributes at the very end, and return warnings for the user."""
        self._require_blocks()
        self._require_unwarped("data in blocks", "auto", otherwise=OR_AT_ONCE)
        rng = as_generator(self.random_state)
        if path is not None and not isinstance(self.random_state, Integral):
            raise ValueError(f"`checkpoint` needs a number as `random_state`, got {self.random_state!r}")
        survey = Survey.of(stream, int(rng.integers(2**62)), MAX_ROWS)
        say_surveyed(survey.summary.n_rows, survey.seconds, self._verbosity())
        self.n_features_in_ = survey.summary.layout[0]
        few = survey.all_rows()
        if few is not None:
            return self._fit(few, None, NO_BASE)
        sample = survey.summary.raced.jet
        scaling, check, found = self._checked_units(survey.scaling(self.scaling), sample, sample)
        blocks = survey.blocks(scaling)
        way = self._way(blocks, found)
        file = None if path is None else Checkpoint(Path(path), self._fingerprint(blocks), way.parts)
        result = fit_in_blocks(blocks, way, rng, file)
        return found + self._set_as_given(result, blocks, check)

    def _fingerprint(self, blocks: Blocks) -> str:
        """Return a hash of the data and the parameters of a fit to blocks."""
        parameters = sorted(
            (name, repr(value)) for name, value in self.get_params(deep=False).items() if name != "verbose"
        )
        summary, extent = blocks.summary, blocks.summary.extent
        samples = [part for kept in (summary.raced, summary.held) for part in (kept.rows, kept.jet.X, kept.jet.y)]
        return fingerprint(parameters, blocks.seed, summary.n_rows, summary.starts, extent.low, extent.high, *samples)

    def _warned(self, found: list[Warning]) -> Self:
        for warning in found:
            warnings.warn(warning, stacklevel=3)
        return self

    def _needs_memory(self) -> bool:
        """Return whether the parameters require all rows in memory."""
        return False

    @abstractmethod
    def _require_blocks(self) -> None:
        """Raise an error if the parameters are not supported for blocks."""

    @abstractmethod
    def _checked_units(self, scaling: Scaling, jet: Jet, given: Jet) -> Checked:
        """Return the scaling of a fit, the check of gradients, and warnings for the user.

        ``scaling`` is the scaling of all data, ``jet`` the fitted data, and ``given`` the data to check.
        """

    @abstractmethod
    def _way(self, blocks: Blocks, found: list[Warning]) -> Way[Any, Any, Any, Any]:
        """Return the method to fit blocks for the parameters, and add warnings to ``found``."""

    @property
    def _goes_on(self) -> bool:  # type: ignore[override]
        return not self._needs_memory()

    def _go_on(
        self, judged: Judged, fit: Any, blocks: Blocks, clock: Clock, verbose: int
    ) -> tuple[list[Warning], bool]:
        """Fit a candidate of a race to all blocks in the remaining time, and set the attributes.

        Parameters
        ----------
        judged : Judged
            The candidate.
        fit : Fit
            The fit of the candidate to the sample.
        blocks : Blocks
            The data, in the units of the fit.
        clock : Clock
        verbose : int

        Returns
        -------
        warnings : list of Warning
        is_whole : bool
            Whether there was time for all neurons or steps.

        Raises
        ------
        TimeUpError
            If there is not enough time.
        """
        way, first, is_whole = self._in_time(judged, fit, blocks, clock)
        way = replace(way, verbose=verbose)
        absorbed = way.absorb(blocks, first, None, lambda _: clock.check())
        return self._set_as_given(way.finish(blocks, first, absorbed), blocks, None), is_whole

    def _set_as_given(self, result: Any, blocks: Blocks, check: DerivativeCheck | None) -> list[Warning]:
        """Set the attributes of a fit to blocks, which are fitted as they are given."""
        self._view = AS_GIVEN
        return self._set_blockwise(result, blocks, check)

    @abstractmethod
    def _in_time(self, judged: Judged, fit: Any, blocks: Blocks, clock: Clock) -> tuple[Any, Any, bool]:
        """Return the method to continue a candidate in the remaining time, and its fit to the sample.

        The last result is whether the time suffices for all neurons or steps.
        """

    @abstractmethod
    def _set_blockwise(self, result: Any, blocks: Blocks, check: DerivativeCheck | None) -> list[Warning]:
        """Set the attributes of a fit to blocks, and return warnings for the user."""
