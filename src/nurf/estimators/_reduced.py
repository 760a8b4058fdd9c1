"""Fits in few directions of many inputs, found from the gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nurf._reduction import InputDirections, obstacle
from nurf._scaling import Scaling
from nurf._validation import is_whole
from nurf.data import checked_gradients
from nurf.estimators._blockwise import Checked
from nurf.estimators._choices import Choices
from nurf.jets import Jet

FEW_INPUTS = 50  # rank="auto" keeps all inputs up to this number


@dataclass(frozen=True)
class Reduction:
    """The parameters that determine the directions onto which inputs are projected.

    Parameters
    ----------
    rank, check_gradients
        See ``RandomFeatureRegressor``.
    choices : Choices
        The candidates of the race on the projected data.
    """

    rank: Any
    check_gradients: Any
    choices: Choices

    def units(self, scaling: Scaling, jet: Jet, given: Jet) -> Checked:
        """Return the scaling with its projection (if any), the check of gradients, and warnings for the user.

        ``given`` are the data to check, after the projection, where neighbours are closer. Directions from gradients
        that contradict the values are not used.
        """
        reduced = self._projected(scaling, jet)
        if reduced.x_basis is None:
            return scaling, *checked_gradients(given, self.check_gradients)
        remark = f" (along {reduced.x_basis.shape[1]} directions of the inputs)"
        check, found = checked_gradients(reduced(given), self.check_gradients, remark)
        distrusted = self.rank == "auto" and check is not None and check.consistent is False
        return scaling if distrusted else reduced, check, found

    def _projected(self, scaling: Scaling, jet: Jet) -> Scaling:
        """Return the scaling with its projection (if any)."""
        auto = isinstance(self.rank, str) and self.rank == "auto"
        d = jet.n_features
        if self.rank is None or (auto and d <= FEW_INPUTS):
            return scaling
        if not (auto or (is_whole(self.rank) and self.rank <= d)):
            raise ValueError(f"`rank` must be 'auto', None or a whole number from 1 to {d}, got {self.rank!r}")
        if not auto and self.rank == d:
            return scaling
        problem = self._obstacle(jet)
        if problem and not auto:
            raise ValueError(f"`rank={self.rank!r}` needs {problem}")
        if problem:
            return scaling
        found = InputDirections.of(jet, scaling)
        if not found.lost[0] > 0:
            return scaling  # all gradients are zero
        return found.scaling(scaling, found.rank() if auto else int(self.rank), jet.X)

    def _obstacle(self, jet: Jet) -> str:
        """Return the reason against a projection, or an empty text."""
        if problem := obstacle(jet):
            return problem
        if self.choices.activations()[0].order > 2 and self.choices.tail == "auto":
            return f"a tail of degree 0 or 1, got an activation of order {self.choices.activations()[0].order}"
        return ""
