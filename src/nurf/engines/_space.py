"""The settings to choose from for sampled networks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from nurf.activations import Activation
from nurf.densities import Density
from nurf.engines._metrics import Isotropic, Metric
from nurf.engines._settings import FromData, FromNetwork, Setting, Source
from nurf.solvers import VALUES_ONLY, Loss

Item = TypeVar("Item")
FIRST_WIDTH = 2  # index of the width of the first model: see "The first model" in docs/decisions/choosing.md


@dataclass(frozen=True)
class Space:
    """The settings to choose from.

    Parameters
    ----------
    densities : tuple of Density
    activations : tuple of Activation
        One activation with several widths, from the largest to the smallest.
    losses : tuple of Loss
        From the smallest weights of derivatives to the largest.
    sources : tuple of Source
    width_ratios : tuple of float
    metrics : tuple of Metric
    estimated : tuple of (Density, Metric)
        Densities and metrics that may be built from derivatives estimated by a network.
    degrees : tuple of (int or None)
        Degrees of the polynomial tail.
    """

    densities: tuple[Density, ...]
    activations: tuple[Activation, ...]
    losses: tuple[Loss, ...] = (VALUES_ONLY,)
    sources: tuple[Source, ...] = (FromData(),)
    width_ratios: tuple[float, ...] = (1.0,)
    metrics: tuple[Metric, ...] = (Isotropic(),)
    estimated: tuple[tuple[Density, Metric], ...] = ()
    degrees: tuple[int | None, ...] = (None,)

    def __post_init__(self) -> None:
        for name in ("densities", "activations", "losses", "sources", "width_ratios", "metrics", "degrees"):
            if not getattr(self, name):
                raise ValueError(f"`{name}` must have at least one member, got none")

    @property
    def has_choice(self) -> bool:
        """Whether there is more than one setting."""
        options = (self.densities, self.activations, self.losses, self.sources, self.width_ratios, self.metrics)
        return bool(self.estimated) or any(len(members) > 1 for members in (*options, self.degrees))

    @property
    def chooses_metric(self) -> bool:
        """Whether densities and metrics of all kinds may be chosen."""
        return len(self.metrics) > 1 or any(metric.needs for _, metric in self.estimated)

    @property
    def first_setting(self) -> Setting:
        """The setting of the first model: wide neurons, fitted to the values in a few milliseconds."""
        width = self.activations[min(FIRST_WIDTH, len(self.activations) - 1)]
        choice = (self.losses[0], self.sources[0], self.metrics[0], self.width_ratios[0], self.degrees[0])
        return Setting(self.densities[0], width, *choice)

    def first_settings(self) -> Iterator[Setting]:
        """Yield the settings that follow: a middle weight of derivatives, narrower neurons, and axis-aligned ones."""
        first, widths = self.first_setting, self.activations[FIRST_WIDTH : FIRST_WIDTH + 5 : 2]
        first = replace(first, loss=self.losses[len(self.losses) // 2])
        widths = widths or (first.activation,)
        yield from (replace(first, activation=width) for width in widths)
        narrow = replace(first, activation=widths[:2][-1])  # functions of single inputs need narrower neurons
        yield from (replace(narrow, density=density) for density in self.densities if density.additive)

    def variants(self, setting: Setting) -> Iterator[Setting]:
        """Yield the settings that differ from ``setting`` in one entry."""
        for activation in _next_to(self.activations, setting.activation):
            yield replace(setting, activation=activation)
        for loss in self.losses_near(setting.loss):
            yield replace(setting, loss=loss)
        for ratio in self.width_ratios:
            yield replace(setting, width_ratio=ratio)
        for degree in self.degrees:
            yield replace(setting, degree=degree)
        if setting.source not in self.sources:
            yield from self.estimates(setting)
            return
        for density in self.densities:
            yield replace(setting, density=density)
        for metric in self.metrics:
            yield replace(setting, metric=metric)
        for source in self.sources:
            yield replace(setting, source=source)

    def complements(self, setting: Setting) -> tuple[Setting, ...]:
        """Return settings of a stage after axis-aligned neurons, for functions that these cannot represent."""
        start = replace(setting, source=self.sources[-1], metric=self.metrics[0])
        return tuple(replace(start, density=density) for density in self.densities if not density.additive)

    def losses_near(self, loss: Loss) -> tuple[Loss, ...]:
        """Return the losses with less and more weight on derivatives, and the one with the least."""
        return tuple(dict.fromkeys((*_next_to(self.losses, loss), self.losses[0])))

    def estimates(self, setting: Setting) -> Iterator[Setting]:
        """Yield settings that sample all neurons anew, from derivatives estimated by a network."""
        for density, metric in self.estimated:
            yield replace(setting, density=density, metric=metric, source=FromNetwork())


def _next_to(ladder: tuple[Item, ...], item: Item) -> tuple[Item, ...]:
    """Return the neighbours of an item on a ladder."""
    position = ladder.index(item)
    return ladder[max(0, position - 1) : position] + ladder[position + 1 : position + 2]
