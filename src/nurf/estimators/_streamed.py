"""Fits to data that are larger than memory, or on many machines."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from numbers import Integral
from operator import add
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import validate_data

from nurf._derivative_checks import DerivativeCheck
from nurf._scaling import Scaling, is_ball
from nurf._streams import (
    Checkpoint,
    IterableStream,
    Reservoir,
    Stream,
    Tree,
    fingerprint,
)
from nurf._validation import is_whole
from nurf.estimators._base import unchanged_on_error
from nurf.estimators._blocks import Radius, Summarise, in_memory, is_piecewise, make_stream, read_block
from nurf.estimators._data import LARGEST_WEIGHT, canonical, relative
from nurf.estimators._frames import matched, require_numbers
from nurf.estimators._piecewise import PredictsPiecewise
from nurf.estimators._reduced import ReducesInputs
from nurf.jets import Jet
from nurf.solvers import LeaveOneOut
from nurf.solvers.ridge import Posterior
from nurf.training import Search, ShallowFit
from nurf.training._progress import watch_blocks
from nurf.training._streamed import (
    Accumulate,
    Accumulation,
    Summary,
    Units,
    fit_accumulated,
    fit_of_sample,
)


class FitsStreams(PredictsPiecewise, ReducesInputs):
    """A regressor whose outer weights can be found from blocks of rows, which are read one after the other.

    One pass over the blocks finds the extent of the data and draws two samples of rows; the race over settings is run
    on the first of them; a second pass adds up the normal equations of the network that won; alpha and the error come
    from rows of the second sample, which leave the fit in turn.
    """

    scaling: Any
    loss: str
    check_gradients: Any
    random_state: Any

    @abstractmethod
    def _raced(self, scaled: Jet, rng: np.random.Generator) -> tuple[ShallowFit, str]:
        """Return the winner of the race on a sample, and how errors were estimated."""

    @abstractmethod
    def _set_result(
        self,
        fit: ShallowFit,
        scaling: Scaling,
        uncertainty: Posterior,
        scaled: Jet,
        n_samples: int,
        check: DerivativeCheck | None,
        rule: str,
    ) -> list[Warning]:
        """Set the attributes of a fit, and return warnings for the user. ``scaled`` are some or all of the rows."""

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

        Up to 20,000 rows are read at once. More are read in blocks (``numpy.memmap``, HDF5, zarr, arrays in memory) or
        stay where they are (Dask arrays): see ``docs/large_data.md``.

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
        data = {
            "gradients": gradients,
            "gradients_at": gradients_at,
            "directions": directions,
            "hessians": hessians,
            "sample_weight": sample_weight,
            "derivative_weight": derivative_weight,
            "validation": validation,
        }
        n = getattr(X, "shape", (0,))[:1]
        piecewise = is_piecewise({"X": X, "y": y, **data})
        whole = gradients_at is not None or validation is not None or self.loss == "huber"
        if not n or n[0] <= Search.max_rows or (whole and not piecewise):
            data = {name: in_memory(value) for name, value in data.items()}
            return self._fit_arrays(in_memory(X), in_memory(y), data, self._fit)
        if whole:
            raise ValueError(
                "`gradients_at`, `validation` and loss='huber' need arrays in memory if there are more than "
                f"{Search.max_rows} rows, got arrays that are read in blocks"
            )
        with unchanged_on_error(self):
            if piecewise:
                self.__dict__.pop("feature_names_in_", None)
            else:
                require_numbers(X=X, y=y)
                data = matched(X, y=y, **data)
                y = data.pop("y")
                X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
            found = self._fit_stream(make_stream({"X": X, "y": y, **data}, block_rows), checkpoint)
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

    def _fit_stream(self, stream: Stream, checkpoint: Any) -> list[Warning]:
        """Fit to a stream, set the attributes at the very end, and return warnings for the user."""
        if self.loss == "huber":
            raise ValueError("`loss` must be 'squared' for data in blocks, got 'huber': it needs all rows in memory")
        if checkpoint is not None and not isinstance(self.random_state, Integral):
            raise ValueError(f"`checkpoint` needs a number as `random_state`, got {self.random_state!r}")
        rng = self._generator()
        seed = int(rng.integers(2**62))
        summary = stream.map_reduce(Summarise(seed, Search.max_rows), add)
        _check_weights(summary)
        self.n_features_in_ = summary.layout[0]
        if summary.is_complete and summary.n_rows <= Search.max_rows:
            return self._fit(canonical(relative(summary.all_rows())), None)
        radius = stream.map_reduce(Radius(summary.extent), max) if is_ball(self.scaling) else 0.0
        raced = summary.raced.jet
        scaling, check, found = self._reduced(Scaling.of(summary.extent, self.scaling, radius), raced, raced)
        units = Units(scaling, summary.mean_weight)
        file = None if checkpoint is None else Checkpoint(Path(checkpoint), self._owner(summary, seed))
        state = (None if file is None else file.read()) or {}
        fit = state.get("fit") or stream.call(partial(self._raced, _weighted(summary.raced, units), rng))[0]
        neurons = fit.network.features.n_neurons
        progress = watch_blocks(summary.n_rows, neurons, fit.loss, self._verbosity())
        task = Accumulate(read_block, units, fit.network.features, fit.loss, self._precision())
        total = _accumulate(stream, task, fit, file, state.get("tree"), progress)
        if total.n_rows != summary.n_rows:
            raise ValueError(f"blocks must be the same each time, got {summary.n_rows} rows and then {total.n_rows}")
        held, multiples = units(summary.held.jet), summary.held.multiples
        found_all = fit_accumulated(fit, total.equations, held, LeaveOneOut(multiples=multiples), self._alphas())
        of_sample = fit_of_sample(fit, found_all, held, multiples)
        if of_sample is None:
            found += self._set_streamed(found_all, units, summary.held, summary.n_rows, check)
        else:
            found += self._set_sampled(of_sample, units, summary, check)
        if file is not None:
            file.remove()
        return found

    def _set_streamed(
        self, fit: ShallowFit, units: Units, held: Reservoir, n_rows: int, check: DerivativeCheck | None
    ) -> list[Warning]:
        """Set the attributes of a fit to ``n_rows`` rows, of which ``held`` is a sample."""
        sample, fit = _weighted(held, units), fit.with_unseen(units.scaling.unseen)
        options: dict[str, Any] = {"optimism": fit.optimism, "n_rows": n_rows}
        uncertainty = Posterior.of(fit.network, sample, fit.ridge_alpha, fit.loss, **options)
        rule = f"leave-one-out at {len(sample)} samples"
        return self._set_result(fit, units.scaling, uncertainty, sample, n_rows, check, rule)

    def _set_sampled(
        self, fit: ShallowFit, units: Units, summary: Summary, check: DerivativeCheck | None
    ) -> list[Warning]:
        """Set the attributes of a fit to the rows that were raced on, which was better than that to all rows."""
        sample, fit = _weighted(summary.raced, units), fit.with_unseen(units.scaling.unseen)
        options: dict[str, Any] = {"optimism": fit.optimism, "precise": fit.precise}
        uncertainty = Posterior.of(fit.network, sample, fit.ridge_alpha, fit.loss, **options)
        rule = f"leave-one-out; the fit to {len(sample)} samples has a smaller error than that to all at others"
        return self._set_result(fit, units.scaling, uncertainty, sample, summary.n_rows, check, rule)

    def _owner(self, summary: Summary, seed: int) -> str:
        parameters = sorted(
            (name, repr(value)) for name, value in self.get_params(deep=False).items() if name != "verbose"
        )
        samples = [part for kept in (summary.raced, summary.held) for part in (kept.rows, kept.jet.X, kept.jet.y)]
        extent = summary.extent
        return fingerprint(parameters, seed, summary.n_rows, summary.starts, extent.low, extent.high, *samples)


def _accumulate(
    stream: Stream,
    task: Accumulate,
    fit: ShallowFit,
    file: Checkpoint | None,
    tree: Tree[Accumulation] | None,
    progress: Callable[[int], None] | None,
) -> Accumulation:
    """Return the normal equations of all blocks; between blocks, write the state down and say how far they are."""
    merge: Callable[[Accumulation, Accumulation], Accumulation] = add

    def after(tree: Tree[Accumulation]) -> None:
        if file is not None:
            file.write({"fit": fit, "tree": tree})
        if progress is not None:
            progress(sum(total.n_rows for _, total in tree.runs))

    if file is None and progress is None:
        return stream.map_reduce(task, merge)
    after(Tree() if tree is None else tree)
    return stream.map_reduce(task, merge, tree, after)


def _weighted(kept: Reservoir, units: Units) -> Jet:
    """Return the rows of a reservoir in scaled units, each with the weight of the rows for which it stands."""
    weighted = kept.jet.sample_weight is not None
    multiples = kept.multiples / np.average(kept.multiples, weights=kept.jet.weights(0))
    return canonical(units(kept.jet, multiples if weighted else None))


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
