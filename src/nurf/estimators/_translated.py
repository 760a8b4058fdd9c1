"""Evidence of engines in the units of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nurf._reduction import output_directions
from nurf._scaling import Scaling
from nurf.choosing import Evidence
from nurf.estimators._views import View
from nurf.jets import Jet


@dataclass(frozen=True, eq=False)
class Translation:
    """The translation of evidence from the units of an engine to units of the standard deviation of the values.

    If ``e`` is the error of a value ``u`` that an engine sees, then ``u - e`` was predicted.

    Parameters
    ----------
    view : View
    scaling : Scaling
    jet : Jet
        The data of the engine, scaled.
    held_out : Jet or None
        Validation samples, scaled.
    """

    view: View
    scaling: Scaling
    jet: Jet
    held_out: Jet | None = None

    def __call__(self, evidence: Evidence) -> Evidence:
        """Return the evidence in the units of the data."""
        jets = [self.jet] if self.held_out is None else [self.jet, self.held_out]
        k, errors = self.jet.y[:1].size, evidence.errors
        if errors.shape[1] != k:  # combinations of many outputs, with nearly all of their energy
            combinations = output_directions(self.jet)
            assert combinations is not None
            errors = errors @ combinations.T
        u = np.concatenate([self.scaling.values_back(jet.with_values().y).reshape(-1, k) for jet in jets])
        return replace(evidence, errors=self.view.errors_back(u, errors, self.scaling))
