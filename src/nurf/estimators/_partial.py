"""Fits that go on with further rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from nurf._types import Precision
from nurf.data import HELD_ROWS, Block, Observations, Reservoir, Units, read_block, uniform_numbers
from nurf.estimators._base import unchanged_on_error
from nurf.estimators._streamed import FitsStreams
from nurf.jets import Jet
from nurf.solvers import LeaveOneOut
from nurf.training import ShallowFit
from nurf.training._streamed import Accumulate, Accumulation, fit_accumulated


@dataclass(frozen=True, eq=False)
class Running:
    """What ``partial_fit`` knows of the rows so far: their normal equations, and a sample of them."""

    units: Units
    given: tuple[str, ...]
    seed: int
    n_seen: int
    total: Accumulation
    sample: Reservoir

    def plus(self, jet: Jet, fit: ShallowFit, dtype: Precision) -> Running:
        """Return the same with further rows."""
        rows = self.n_seen + np.arange(len(jet))
        sample = self.sample + Reservoir.of(jet, rows, uniform_numbers(rows, self.seed), HELD_ROWS)
        total = self.total + _accumulated(self.units, fit, jet, dtype)
        return replace(self, n_seen=self.n_seen + len(jet), total=total, sample=sample)


def _accumulated(units: Units, fit: ShallowFit, jet: Jet, dtype: Precision) -> Accumulation:
    return Accumulate(lambda _: jet, units, ((fit.network.features, fit.loss),), dtype)(Block(0, {}))


class FitsFurtherRows(FitsStreams):
    """A regressor to whose normal equations rows can be added."""

    _running: Running | None

    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        gradients: Any = None,
        directions: Any = None,
        hessians: Any = None,
        sample_weight: Any = None,
        derivative_weight: Any = None,
    ) -> Self:
        """Fit the network to further rows.

        The first call is ``fit``: scaling, hyperplanes, width and the weight of derivatives are chosen from its rows
        and stay. Each later call adds its rows to the normal equations, and finds alpha and the outer weights anew from
        all rows so far, so that the order of the later calls does not matter. So the first rows should be like the
        others, and some thousands. The error is estimated by leave-one-out at up to 5000 of all rows. The model keeps
        its normal equations, N x N numbers; ``fit`` and ``fit_blocks`` do not, so that ``partial_fit`` after these
        starts anew, with a warning.

        Parameters
        ----------
        X, y, gradients, directions, hessians, sample_weight, derivative_weight
            See ``fit``. All calls must have the same kinds of data. Weights are in the same unit in all calls.

        Returns
        -------
        self
        """
        data = Observations(
            X,
            y,
            gradients=gradients,
            directions=directions,
            hessians=hessians,
            sample_weight=sample_weight,
            derivative_weight=derivative_weight,
        )
        running: Running | None = getattr(self, "_running", None)
        if running is None and hasattr(self, "fit_"):
            warnings.warn(
                "`partial_fit` starts anew: it needs normal equations, which `fit` and `fit_blocks` do not keep",
                stacklevel=2,
            )
        if self.loss == "huber":
            raise ValueError("`loss` must be 'squared' for `partial_fit`, got 'huber': it needs all rows at once")
        with unchanged_on_error(self):
            if running is None:
                self.fit(**data.arguments)
            found = self._continue(running, self._checked(data, reset=False))
        return self._warned(found)

    def _continue(self, running: Running | None, data: Observations) -> list[Warning]:
        """Add rows to the normal equations; with the first rows, start them."""
        if running is not None and running.given != data.given:
            before, now = (", ".join(names) or "none" for names in (running.given, data.given))
            raise ValueError(f"all calls must have the same kinds of data beside X and y, got {before} and then {now}")
        jet = read_block(data.block())
        fit, dtype = self.fit_, self._precision()
        if running is None:
            seed, weights = int(self._generator().integers(2**62)), jet.weights(0)
            units = Units(self.scaling_, float(weights[weights > 0].mean()))
            rows = np.arange(len(jet))
            sample = Reservoir.of(jet, rows, uniform_numbers(rows, seed), HELD_ROWS)
            total = _accumulated(units, fit, jet, dtype)
            self._running = Running(units, data.given, seed, len(jet), total, sample)
            return []
        running = running.plus(jet, fit, dtype)
        rule = LeaveOneOut(multiples=running.sample.multiples)
        (equations,), held = running.total.equations, running.units(running.sample.jet)
        fit = fit_accumulated(fit, equations, held, rule, self._alphas())
        found = self._set_streamed(fit, running.units, running.sample, running.total.n_rows, self.gradient_check_)
        self._running = running
        return found
