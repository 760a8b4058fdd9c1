"""What a fit by stages may choose: laws, widths, weights of derivatives. Each stage looks around the last choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from nurf.activations import Activation
from nurf.densities._base import Density
from nurf.solvers import VALUES_ONLY, Loss

SMALL, MEDIUM = 100, 500  # neurons up to which everything is tried, and up to which a last stage may still move

Item = TypeVar("Item")


@dataclass(frozen=True)
class Setting:
    """A choice: the law and the activation of new neurons, and how much derivatives count in the loss."""

    density: Density
    activation: Activation
    loss: Loss = VALUES_ONLY


@dataclass(frozen=True)
class Trial:
    """A setting that was tried.

    Attributes
    ----------
    setting : Setting
    error : float
        The estimated root mean square error with the best of the alphas.
    """

    setting: Setting
    error: float


@dataclass(frozen=True)
class Candidates:
    """The settings among which a fit may choose; of near-equals the first is taken.

    Parameters
    ----------
    densities : tuple of Density
    activations : tuple of Activation
        One activation with several widths, from the largest to the smallest.
    losses : tuple of Loss
        From the smallest weights to the largest.
    spread : float, default 1
        Each neuron has a width of its own, between that of the activation divided and multiplied by so much.
    """

    densities: tuple[Density, ...]
    activations: tuple[Activation, ...]
    losses: tuple[Loss, ...] = (VALUES_ONLY,)
    spread: float = 1.0

    def __post_init__(self) -> None:
        for name in ("densities", "activations", "losses"):
            if not getattr(self, name):
                raise ValueError(f"`{name}` must have one member at least, got none")
        if not (np.isfinite(self.spread) and self.spread >= 1):
            raise ValueError(f"`spread` must be a number >= 1, got {self.spread!r}")

    def neurons(self, last: Setting | None, size: int, final: bool) -> Iterator[tuple[Density, Activation]]:
        """Yield laws and activations to try for a network of ``size`` neurons: all, or widths next to the last one."""
        if last is None or size <= SMALL or last.density not in self.densities:
            yield from ((density, activation) for density in self.densities for activation in self.activations)
        else:
            for activation in _around(self.activations, last.activation, 0 if final and size > MEDIUM else 1):
                yield last.density, activation

    @property
    def has_choice(self) -> bool:
        """Whether there is more than one setting."""
        return len(self.densities) * len(self.activations) * len(self.losses) > 1

    def only(self, setting: Setting) -> Candidates:
        """Return a single setting as candidates."""
        return replace(self, densities=(setting.density,), activations=(setting.activation,), losses=(setting.loss,))

    def near(self, setting: Setting) -> Candidates:
        """Return the candidates next to a setting: its law and weights, and widths around its own."""
        return replace(self.only(setting), activations=_around(self.activations, setting.activation, 1))

    def others(self, loss: Loss) -> tuple[Loss, ...]:
        """Return the weights next to ``loss``, and the first."""
        return tuple(dict.fromkeys((self.losses[0], *_around(self.losses, loss, 1))))


def _around(ladder: tuple[Item, ...], item: Item, reach: int) -> tuple[Item, ...]:
    """Return the part of a ladder that is at most ``reach`` steps away from one of its items; all for any other."""
    if item not in ladder:
        return ladder
    position = ladder.index(item)
    return ladder[max(0, position - reach) : position + reach + 1]
