"""What a search over sampled networks may choose, and its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from nurf.activations import Activation
from nurf.densities import Density
from nurf.solvers import VALUES_ONLY, Loss
from nurf.training._metrics import Isotropic, Metric
from nurf.training._race import Rung
from nurf.training._settings import FromData, FromNetwork, Setting, Source
from nurf.training._stages import stage_counts

Item = TypeVar("Item")

FIRST = Rung(breadths=(2, 1), keep=2, factor=2.0, rival=3.0)
MIDDLE = Rung(branch=True, refits=1)
LAST = Rung()


@dataclass(frozen=True)
class Search:
    """The numbers of the search.

    Parameters
    ----------
    growth : float, default 3
        Ratio of the sizes of the race. Each is then a third of the next, so that all smaller ones together cost less
        than the last.
    first_size : int, default 100
        The race starts with at least so many neurons. With fewer, the best settings are not those of the full size.
    n_sizes : int, default 3
        Number of sizes.
    first, middle, last : Rung
        How many arms are raced at the first size, at those between, and at the last.
    margin : float, default 0.02
        Errors that differ by a smaller share are equal.
    improvement : float, default -inf
        A size must lower the error by this share, or the race ends. By default it goes on to the last size.
    exact : float, default 1e-11
        The race ends, too, if an error is not larger than this, in units of the standard deviation of the values. Few
        simulators have more digits, and with more neurons the rounding of their sum grows.
    doubt : float, default 4
        Derivatives must lower the error of ``n`` samples by a factor ``1 + doubt / sqrt(n)`` to be believed. An
        estimate from ``n`` errors is uncertain by at least ``1 / sqrt(2 n)``, more if a few errors are large, and the
        smallest of many estimates is too small; a fit to the values alone is the safe choice. So must a smaller size,
        to be taken instead of the last, and in `Surrogate` any engine, to be taken instead of the first.
    few_samples : int, default 150
        Up to so many samples, errors are estimated by refits on folds. Leave-one-out is blind to the choice of the
        neurons, which is made with the sample that is left out; the fewer samples, the more that matters.
    n_folds : int, default 5
        Number of folds.
    n_final_folds : int, default 7
        Number of other folds on which the winner is fitted again. They say how large its error is: that of the race is
        the smallest of many, and too small. The fits are kept with the model, which is why there are not more.
    max_refit_samples : int, default 1000
        Up to so many samples, the winner is fitted again without some of them. With more, leave-one-out is near the
        truth.
    min_held_out : int, default 120
        If errors are not those of folds, so many samples are held out in the end, a fold at a time.
    instability : float, default 0.5
        An error is at least so much of the standard deviation between the fits on the folds at places without samples:
        around them in the race, and in the end half of the way to their neighbours and as far in the other direction.
        Samples that are held out are mostly among others, or all on a grid; they do not show fits that go astray
        elsewhere.
    rows_per_neuron : int, default 4
        Below the last size, arms are raced on so many samples for each neuron, if there are more, evenly spaced.
    value_rows_per_neuron : int, default 8
        The same for data without derivatives, which say less.
    max_rows : int, default 20000
        Hyperplanes are sampled from at most so many rows, and arms are raced on a quarter of these.
    max_precise_operations : float, default 4e10
        Arms beyond the first size may have very small alphas if that takes no more operations. The winner may have them
        within ``Task.max_precise_operations``.
    """

    growth: float = 3.0
    first_size: int = 100
    n_sizes: int = 3
    first: Rung = FIRST
    middle: Rung = MIDDLE
    last: Rung = LAST
    margin: float = 0.02
    improvement: float = -np.inf
    exact: float = 1e-11
    doubt: float = 4.0
    few_samples: int = 150
    n_folds: int = 5
    n_final_folds: int = 7
    max_refit_samples: int = 1000
    min_held_out: int = 120
    instability: float = 0.5
    rows_per_neuron: int = 4
    value_rows_per_neuron: int = 8
    max_rows: int = 20_000
    max_precise_operations: float = 4e10

    def uncertainty(self, n_samples: float) -> float:
        """Return the factor by which an estimate from so many samples must be smaller than another to be believed.

        If weights are uneven, the number is the effective one.
        """
        return float(1 + self.doubt / np.sqrt(n_samples))

    def sizes(self, n_neurons: int) -> list[int]:
        """Return the sizes of the race for a network of ``n_neurons``.

        >>> Search().sizes(2000)
        [223, 669, 2000]
        """
        sizes = stage_counts(n_neurons, self.growth, int(np.ceil(n_neurons / self.growth ** (self.n_sizes - 1))))
        return [size for size in sizes if size >= min(self.first_size, n_neurons)]

    def rungs(self, n_sizes: int, n_samples: int) -> list[Rung]:
        """Return the rungs for a number of sizes.

        Up to ``max_refit_samples`` samples, all lanes go on to the last size: values alone cost little then, and may be
        far behind with few neurons and far ahead with many, if derivatives are noisy.
        """
        rungs = [self.first, *[self.middle] * (n_sizes - 2), self.last][:n_sizes] if n_sizes > 1 else [self.first]
        few = n_samples <= self.max_refit_samples
        return [replace(rung, rival=np.inf) for rung in rungs] if few else rungs


@dataclass(frozen=True)
class Space:
    """What may be chosen.

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
        What may be built from derivatives that are estimated by a network.
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

    def first_settings(self) -> Iterator[Setting]:
        """Yield the settings that a race starts with.

        All densities with every second width, from the second on, and all degrees of the tail with the largest of them.
        """
        loss, activations = self.losses[len(self.losses) // 2], self.activations[1::2] or self.activations
        rest = (loss, self.sources[0], self.metrics[0], self.width_ratios[0])
        for density in self.densities:
            for activation in activations:
                yield Setting(density, activation, *rest, self.degrees[0])
        for degree in self.degrees[1:]:
            yield Setting(self.densities[0], activations[0], *rest, degree)

    def variants(self, setting: Setting) -> Iterator[Setting]:
        """Yield the settings that differ from ``setting`` in one thing."""
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
        """Return settings of a stage after axis-aligned neurons, for what these cannot represent."""
        start = replace(setting, source=self.sources[-1], metric=self.metrics[0])
        return tuple(replace(start, density=density) for density in self.densities if not density.additive)

    def losses_near(self, loss: Loss) -> tuple[Loss, ...]:
        """Return the losses with less and more weight on derivatives, and the one with the least."""
        return tuple(dict.fromkeys((*_next_to(self.losses, loss), self.losses[0])))

    def estimates(self, setting: Setting) -> Iterator[Setting]:
        """Yield settings that sample all neurons anew, from derivatives that a network estimates."""
        for density, metric in self.estimated:
            yield replace(setting, density=density, metric=metric, source=FromNetwork())


def _next_to(ladder: tuple[Item, ...], item: Item) -> tuple[Item, ...]:
    """Return the neighbours of an item on a ladder."""
    position = ladder.index(item)
    return ladder[max(0, position - 1) : position] + ladder[position + 1 : position + 2]
