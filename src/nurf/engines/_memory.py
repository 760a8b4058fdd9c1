"""The memory of a race between sampled networks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nurf._types import Array
from nurf.choosing import Judged
from nurf.engines._candidates import Stages
from nurf.engines._parts import ALL, FOLDS, Parts, Split
from nurf.engines._stages import State, grow
from nurf.solvers import VALUES_ONLY


class Memory:
    """The candidates that were judged, and their neurons, which are sampled once on each part of the data.

    Parameters
    ----------
    parts : Parts
    entropy : tuple of int
        Seed of the random numbers.

    Attributes
    ----------
    judged : dict
        The judged candidates, with their sizes.
    """

    def __init__(self, parts: Parts, entropy: tuple[int, ...]) -> None:
        self.parts = parts
        self.judged: dict[Stages, Judged] = {}
        self._entropy = entropy
        self._splits: dict[str, tuple[Split, ...]] = {}
        self._states: dict[str, dict[tuple[Stages, int], State]] = {}

    def begin(self, where: str) -> None:
        """Forget the neurons on other parts of the data if there are none on this one."""
        if where not in self._states:
            self._states.clear()

    def best(self, size: int) -> Judged | None:
        """Return the best candidate of a size so far."""
        judged = [each for each in self.judged.values() if each.size == size]
        return min(judged, key=lambda each: each.own.error, default=None)

    def splits(self, where: str) -> tuple[Split, ...]:
        """Return the fits to a part of the data; see ``Parts.splits``."""
        if where not in self._splits:
            self._splits[where] = tuple(self.parts.splits(where))
        return self._splits[where]

    def states(self, stages: Stages, where: str, n: int | None = None) -> list[State]:
        """Return the neurons after all stages, in each fit to a part of the data or in the first ``n`` of them.

        Neurons do not depend on the loss of the last stage: candidates with different losses share them.
        """
        known, states = self._states.setdefault(where, {}), list[State]()
        shared = self._states.setdefault(f"{where}, any loss", {})
        for number, split in enumerate(self.splits(where)[:n]):
            state = None
            for each in stages.chain:
                if (each, number) not in known:
                    plain = replace(each, setting=replace(each.setting, loss=VALUES_ONLY))
                    if (plain, number) not in shared:
                        rng = self.rng(plain.depth, number)
                        shared[plain, number] = grow(split.task, state, plain.setting, plain.size, rng)
                    alphas = self._alphas(each, where)
                    known[each, number] = shared[plain, number].with_loss(each.setting.loss, alphas)
                state = known[each, number]
            assert state is not None
            states.append(state)
        return states

    def rng(self, depth: int, split: int) -> np.random.Generator:
        """Return the generator of a stage, which is the same for all candidates, so that only their settings differ."""
        return np.random.default_rng(np.random.SeedSequence(self._entropy, spawn_key=(depth, split)))

    def _alphas(self, stages: Stages, where: str) -> Array | None:
        """Return the alpha for fits that do not choose it, from the race or from the fit to all data."""
        if where == FOLDS:
            return np.array([self.states(stages, ALL)[0].outer.fit.alpha])
        known = where == ALL and self.parts.uses_folds and stages in self.judged
        return np.array([self.judged[stages].found]) if known else None
