"""Evidence of engines in the units of the data."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nurf._reduction import output_directions
from nurf._scaling import Scaling
from nurf._types import Array
from nurf.choosing import Attempt, Effort, Engine, Evidence, Judged
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
        if self.view.is_trivial:
            return evidence
        jets = [self.jet] if self.held_out is None else [self.jet, self.held_out]
        k, errors = self.jet.y[:1].size, evidence.errors
        if errors.shape[1] != k:  # combinations of many outputs, with nearly all of their energy
            combinations = output_directions(self.jet)
            assert combinations is not None
            errors = errors @ combinations.T
        u = np.concatenate([self.scaling.values_back(jet.with_values().y).reshape(-1, k) for jet in jets])
        return replace(evidence, errors=self.view.errors_back(u, errors, self.scaling))


@dataclass(frozen=True, eq=False)
class TranslatedEngine(Engine):
    """An engine whose errors are translated to the units of the data, sample by sample.

    Parameters
    ----------
    inner : Engine
        The engine, in its own units.
    back : Translation
    name, data, first_step, transform
        See ``Engine``.
    """

    inner: Engine
    back: Translation
    name: str
    data: str
    first_step: int
    transform: str

    @classmethod
    def of(cls, inner: Engine, back: Translation) -> TranslatedEngine:
        """Return an engine with errors in the units of the data."""
        return cls(inner, back, inner.name, inner.data, inner.first_step, str(back.view))

    @property
    def efforts(self) -> Sequence[Effort]:
        """The efforts of the engine."""
        return self.inner.efforts

    def candidates(self) -> Iterable[Hashable]:
        """Return the first candidates."""
        return self.inner.candidates()

    def judge(self, candidate: Any, size: int, before: Judged | None = None) -> Judged:
        """Return the evidence for a candidate, translated."""
        return self._translated(self.inner.judge(candidate, size, None if before is None else before.found))

    def record(self, judged: Judged) -> Attempt:
        """Return the record of a candidate."""
        record = self.inner.record(judged.found)
        return replace(record, error=judged.error, data=f"{record.data}, {self.transform}")

    def fit(self, judged: Judged, given: Jet) -> Any:
        """Return the fit of a candidate, with errors in the units of the data."""
        inner: Judged = judged.found  # an engine that fits again has its own settings
        return replace(inner.engine.fit(inner, given), output_errors=judged.evidence.output_errors)

    def again(self, fit: Any) -> Judged:
        """Return the candidate of an earlier fit."""
        return self._translated(self.inner.again(fit))

    def variants(self, judged: Judged) -> Iterable[Hashable]:
        """Return candidates that differ from a good candidate in one setting."""
        return self.inner.variants(judged.found)

    def cheap(self, judged: Judged) -> Iterable[Hashable]:
        """Return variants that are cheap to judge."""
        return self.inner.cheap(judged.found)

    def onwards(self, judged: Judged, many: bool) -> Iterable[Hashable]:
        """Return candidates for the next size."""
        return self.inner.onwards(judged.found, many)

    def informed(self, metric: Array, size: int) -> Iterable[Hashable]:
        """Return candidates that use a map learned by another engine, with the same transformations."""
        return self.inner.informed(metric, size)

    def family(self, candidate: Any) -> Hashable:
        """Return the family of a candidate: candidates that advance together are of different families."""
        return self.inner.family(candidate)

    def kind(self, candidate: Any) -> Hashable:
        """Return the class of functions that a candidate can represent."""
        return self.inner.kind(candidate)

    def confirmed(self, judged: Judged) -> Judged:
        """Return a candidate with honest evidence, translated."""
        return self._translated(self.inner.confirmed(judged.found))

    def _translated(self, judged: Judged) -> Judged:
        return replace(judged, engine=self, evidence=self.back(judged.evidence), found=judged)
