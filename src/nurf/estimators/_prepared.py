"""The engines of an estimator, with the data in their units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nurf._scaling import Scaling
from nurf._types import Array
from nurf.choosing import ALL_DATA, VALUES_ALONE, Choice, Clock, Engine
from nurf.data import DerivativeCheck
from nurf.engines import Origin
from nurf.estimators._translated import Translation
from nurf.estimators._views import AS_GIVEN, View
from nurf.jets import Jet
from nurf.solvers import MIN_ERRORS


@dataclass(frozen=True, eq=False)
class Request:
    """The data and the conditions for which an estimator prepares its engines.

    Parameters
    ----------
    given : Jet
        All data, whose gradients are checked.
    jet : Jet
        The data to fit.
    held_out : Jet or None
        Validation samples.
    rng : numpy.random.Generator
    clock : Clock
        The deadline of the engines.
    scaling : Scaling, optional
        The units, instead of the units from the parameters.
    start : Fit, optional
        An earlier fit, whose training continues.
    """

    given: Jet
    jet: Jet
    held_out: Jet | None
    rng: np.random.Generator
    clock: Clock
    scaling: Scaling | None = None
    start: Any = None

    def seen(self, view: View) -> Request:
        """Return the request with a view of the data."""
        held_out = None if self.held_out is None else view(self.held_out)
        return replace(self, given=view(self.given), jet=view(self.jet), held_out=held_out)


@dataclass(frozen=True, eq=False)
class Prepared:
    """The engines of an estimator, and the data in their units.

    Parameters
    ----------
    engines : tuple of Engine
        The engines, the simplest first.
    scaling : Scaling
    scaled : Jet
        The data, in the units of the engines.
    check : DerivativeCheck or None
        The comparison of the gradients with the values.
    warnings : tuple of Warning
    clock : Clock
        The deadline of the engines.
    validated : bool
        Whether there are validation samples.
    deviations : array of shape (d,), optional
        The standard deviations of the inputs, in units of their scales.
    view : View
        Base and transformations of inputs and outputs, before the scaling.
    """

    engines: tuple[Engine, ...]
    scaling: Scaling
    scaled: Jet
    check: DerivativeCheck | None
    warnings: tuple[Warning, ...]
    clock: Clock
    validated: bool
    deviations: Array | None = None
    view: View = AS_GIVEN

    def seen(self, view: View, held_out: Jet | None) -> Prepared:
        """Return the engines for a view of the data, with errors in units of the standard deviation of the values."""
        if view.is_trivial:
            return replace(self, view=view)
        held = None if held_out is None else self.scaling(held_out)
        parts, engines = {ALL_DATA: self.scaled, VALUES_ALONE: self.scaled.only(())}, list[Any](self.engines)
        for place, each in enumerate(engines):
            back = Translation(view, self.scaling, parts[each.data], held)
            engines[place] = replace(each, transform=str(view), back=back)
        return replace(self, view=view, engines=tuple(engines))

    def fit(self, choice: Choice) -> Any:
        """Return the fit of the chosen candidate, with its error corrected for the selection.

        Errors are NaN if there are too few samples to estimate them.
        """
        winner = choice.winner
        fit = winner.engine.fit(winner, self.scaled)
        if winner.engine.back is not None:
            fit = replace(fit, output_errors=winner.evidence.output_errors)
        growth = 1.0 if fit.shape is None else fit.shape.growth
        fit = replace(fit, output_errors=choice.optimism * growth * fit.output_errors)
        if np.count_nonzero(self.scaled.has_value) < MIN_ERRORS and not self.validated:
            fit = replace(fit, output_errors=np.full_like(fit.output_errors, np.nan))
        own = tuple(attempt for attempt in choice.attempts if attempt.engine == winner.engine.name)
        known, n_decisive = known_kinds(self.scaled), winner.evidence.n_decisive
        origin = Origin(winner.engine.data, known, choice.optimism, len(self.scaled), n_decisive)
        return replace(fit, attempts=own, origin=origin).with_unseen(self.scaling.unseen)


def known_kinds(jet: Jet) -> tuple[str, ...]:
    """Return the kinds of data beside values: derivatives that are known, and functionals."""
    return (*sorted(jet.known), *(() if jet.functionals is None else ("functionals",)))
