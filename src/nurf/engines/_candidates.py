"""Candidates of sampled networks: stages of neurons, and rules for the next candidates."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

import numpy as np

from nurf._types import Array
from nurf.densities import Uniform
from nurf.engines._metrics import Learned
from nurf.engines._settings import FromData, Setting
from nurf.engines._space import Space

ADDITIVE = "additive"
GROWTH = 3.0  # ratio of the sizes; all smaller sizes together cost less than the last


@dataclass(frozen=True)
class Stages:
    """The stages of a sampled network: how the neurons of each are sampled.

    Parameters
    ----------
    setting : Setting
        The setting of the last stage.
    before : Stages or None
        The earlier stages, with their sizes.
    size : int
        Number of neurons after the last stage; 0 if the effort decides.
    """

    setting: Setting
    before: Stages | None = None
    size: int = 0

    def at(self, size: int) -> Stages:
        """Return the stages with the given size of the last stage."""
        return replace(self, size=size)

    @property
    def chain(self) -> tuple[Stages, ...]:
        """The stages after the first one, after the second one, and so on up to all stages."""
        return (*(() if self.before is None else self.before.chain), self)

    @property
    def kind(self) -> str:
        """The class of functions: sums of functions of single inputs (axis-aligned neurons only), or any functions."""
        kept = self.before is None or not self.setting.source.keeps_neurons or self.before.kind == ADDITIVE
        return ADDITIVE if self.setting.density.additive and kept else "general"

    @property
    def depth(self) -> int:
        """Number of stages before the last stage."""
        return len(self.chain) - 1

    def __str__(self) -> str:
        return str(self.setting)


@dataclass(frozen=True)
class Moves:
    """The candidates that a race tries first, and those that follow from good ones.

    Parameters
    ----------
    space : Space
        The settings to choose from.
    sizes : tuple of int
        The numbers of neurons at which candidates are compared.
    has_many_samples : bool
        Whether leave-one-out in closed form is honest. With few samples there are fewer candidates, because with
        more of them one wins more often by chance.
    """

    space: Space
    sizes: tuple[int, ...]
    has_many_samples: bool

    def first(self) -> Iterator[Stages]:
        """Yield the first model, without and with derivatives in the loss."""
        settings = self.space.first_setting, next(self.space.first_settings())
        yield from dict.fromkeys(map(self._estimated, settings))

    def variants(self, stages: Stages, judged: Container[Stages]) -> Iterator[Stages]:
        """Yield candidates of the same size: the first settings, then changes of one setting of the best candidate.

        The difference is in the last setting, or there is a further stage.
        """
        space = self.space
        first = [*map(self._estimated, space.first_settings()), Stages(space.first_setting)]
        if fresh := [each for each in first if each.at(stages.size) not in judged]:
            yield from fresh
            return
        for setting in space.variants(stages.setting):
            yield Stages(setting, self._start(stages, setting))
        if stages.setting.source.keeps_neurons:
            yield from (Stages(setting, stages) for setting in space.estimates(stages.setting))
        if stages.kind == ADDITIVE:
            start = stages.before
            if start is None or not stages.setting.source.keeps_neurons:
                start = Stages(stages.setting, stages.before, _smaller(stages.size))
            yield from (Stages(setting, start) for setting in space.complements(stages.setting))

    def cheap(self, stages: Stages) -> Iterator[Stages]:
        """Yield candidates with other weights of derivatives in the loss, or with newly estimated derivatives."""
        for loss in self.space.losses_near(stages.setting.loss):
            yield Stages(replace(stages.setting, loss=loss), stages.before)
        if not stages.setting.source.keeps_neurons:
            yield Stages(stages.setting, stages)

    def onwards(self, stages: Stages, many: bool) -> Iterator[Stages]:
        """Yield larger candidates: with the same setting, another source or tail, or narrower neurons.

        If narrower neurons helped at the last size, they may help again. Axis-aligned neurons may be followed by
        others, which represent interactions of inputs. Neurons that are sampled anew may have another tail: a tail that
        helps few neurons may not help many.
        """
        space, setting = self.space, stages.setting
        yield Stages(setting, stages)
        if many and setting.source in space.sources:
            for source in space.sources:
                if source != setting.source:
                    yield Stages(replace(setting, source=source), stages)
        if many and not setting.source.keeps_neurons and self.has_many_samples:
            for degree in space.degrees:
                if degree != setting.degree:
                    yield Stages(replace(setting, degree=degree), stages)
        if many or self._narrowed(stages):
            position = space.activations.index(setting.activation)
            for activation in space.activations[position + 1 : position + 2]:
                yield Stages(replace(setting, activation=activation), stages)
        if stages.kind == ADDITIVE:
            complements = space.complements(setting)
            yield from (Stages(complement, stages) for complement in complements[: 2 if many else 1])

    def informed(self, metric: Array, size: int) -> Iterator[Stages]:
        """Yield uniform neurons in a metric learned by another engine, at sizes before the last.

        With few samples there are none: the metric was learned with the samples of the folds.
        """
        if self.space.chooses_metric and self.has_many_samples and size < self.sizes[-1]:
            learned = Learned(tuple(map(tuple, metric.tolist())))
            for setting in self.space.first_settings():
                if not setting.density.additive:
                    yield Stages(replace(setting, density=Uniform(), metric=learned))

    def _estimated(self, setting: Setting) -> Stages:
        """Return the stages of a setting, with derivatives estimated by a network where that is allowed."""
        for estimate in self.space.estimates(setting):
            return Stages(estimate, Stages(setting, size=self.sizes[0]))
        return Stages(setting)

    def _narrowed(self, stages: Stages) -> bool:
        """Return whether the neurons are narrower than the neurons of the size before."""
        smaller = stages.before
        while smaller is not None and smaller.size == stages.size:
            smaller = smaller.before
        place = self.space.activations.index
        return smaller is not None and place(stages.setting.activation) > place(smaller.setting.activation)

    def _start(self, stages: Stages, setting: Setting) -> Stages | None:
        """Return the stages from which a variant starts: a residual needs a stage before it."""
        if stages.before is not None or not setting.source.derived or FromData() not in self.space.sources:
            return stages.before
        return Stages(replace(setting, source=FromData()), size=_smaller(stages.size))


def _smaller(size: int) -> int:
    """Return the number of neurons of the stage before a stage with ``size`` neurons."""
    return int(np.ceil(size / GROWTH))
