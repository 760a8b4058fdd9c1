"""Settings of a stage: density, width, metric and source of its neurons, and the loss of the fit after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from nurf.activations import Activation
from nurf.densities import Density
from nurf.engines._metrics import Isotropic, Metric
from nurf.jets import DERIVATIVE_KINDS, Jet
from nurf.networks import ShallowNetwork
from nurf.solvers import VALUES_ONLY, Loss


class Source(ABC):
    """The function from whose derivatives a stage samples its neurons."""

    name: ClassVar[str]
    keeps_neurons: ClassVar[bool] = True  # whether the neurons of the earlier stages are kept
    derived: ClassVar[bool] = True  # whether derivatives come from a network

    @abstractmethod
    def jet(self, data: Jet, networks: Iterable[ShallowNetwork], needs: frozenset[str]) -> tuple[Jet, str | None]:
        """Return the jet to sample from, and the reason if it is a substitute.

        Parameters
        ----------
        data : Jet
        networks : iterable of ShallowNetwork
            The network of the previous stage, if there is one, followed by networks with increasing regularisation.
        needs : frozenset of str
            The required kinds of derivatives.
        """


@dataclass(frozen=True)
class FromData(Source):
    """Sample from the derivatives of the data."""

    name = "data"
    derived = False

    def jet(self, data: Jet, networks: Iterable[ShallowNetwork], needs: frozenset[str]) -> tuple[Jet, str | None]:
        """Return the data."""
        return data, None


@dataclass(frozen=True)
class FromResidual(Source):
    """Sample from the derivatives of ``f - network``, with the network of the previous stage (paper, section 4.5).

    If a residual varies more than ``f`` itself (its derivatives have a larger mean square), the derivatives of the
    network are unstable, because ``alpha`` or the width is too small. Then ``alpha`` is increased for the residual
    until they are stable. If they never are, the stage samples from the data.
    """

    name = "residual"

    def jet(self, data: Jet, networks: Iterable[ShallowNetwork], needs: frozenset[str]) -> tuple[Jet, str | None]:
        """Return the first residual that varies less than the data, or the data if one is zero or all vary more."""
        reason = None
        for network in networks:
            residual = data - network.jet(data.X, needs)
            ratios = {kind: _ratio(residual, data, order) for order, kind in DERIVATIVE_KINDS.items() if kind in needs}
            for kind, ratio in ratios.items():
                if ratio == 0:
                    return data, f"the {kind} of the residual are zero"
            unstable = [kind for kind, ratio in ratios.items() if ratio > 1]
            if not unstable:
                return residual, None
            reason = reason or (
                f"the {unstable[0]} of the residual are {ratios[unstable[0]]:.3g} times those of the data"
            )
        return data, reason


@dataclass(frozen=True)
class FromNetwork(Source):
    """Sample all neurons anew, with unknown derivatives estimated by the network of the previous stage."""

    name = "network"
    keeps_neurons = False

    def jet(self, data: Jet, networks: Iterable[ShallowNetwork], needs: frozenset[str]) -> tuple[Jet, str | None]:
        """Return the data, with unknown derivatives replaced by derivatives of the network."""
        for network in networks:
            return data.fill_unknown(network.jet(data.X, needs)), None
        return data, None


@dataclass(frozen=True)
class Setting:
    """Settings of a stage: how its neurons are sampled, and the loss of the fit after it.

    Parameters
    ----------
    density : Density
        The density of the hyperplanes.
    activation : Activation
        The activation, with its width.
    loss : Loss
    source : Source
        The function from whose derivatives the density is built.
    metric : Metric
        The inner product in which normals and widths are measured.
    width_ratio : float, default 1
        Widths of single neurons vary by this factor around the width of the activation.
    degree : int or None
        Degree of the polynomial tail; None for one less than the order of the activation, -1 for no tail.
    """

    density: Density
    activation: Activation
    loss: Loss = VALUES_ONLY
    source: Source = field(default_factory=FromData)
    metric: Metric = field(default_factory=Isotropic)
    width_ratio: float = 1.0
    degree: int | None = None

    @property
    def tail_degree(self) -> int:
        """The degree of the polynomial tail."""
        return self.activation.order - 1 if self.degree is None else self.degree

    @property
    def needs(self) -> frozenset[str]:
        """The kinds of derivatives that the density, the metric and the source require."""
        return self.density.needs | self.metric.needs

    def __str__(self) -> str:
        parts = [self.density.label, f"width {self.activation.typical_width:.3g}"]
        parts += [f"times 1/{self.width_ratio:g} to {self.width_ratio:g}"] if self.width_ratio > 1 else []
        parts += [f"{self.metric.name} metric"] if self.metric != Isotropic() else []
        parts += [f"from the {self.source.name}"]
        parts += [f"tail of degree {self.degree}"] if self.degree is not None else []
        parts += [f"{kind} {getattr(self.loss, kind):g}" for kind in self.loss.kinds]
        return ", ".join(parts)


def _ratio(residual: Jet, data: Jet, order: int) -> float:
    """Return the root mean square of the derivatives of a residual relative to the derivatives of the data."""
    after, before = (
        float(jet.weights(0) @ np.sum(jet.derivative_rows(order) ** 2, axis=(1, 2))) for jet in (residual, data)
    )
    return float(np.sqrt(after / before)) if before > 0 else float("inf" if after > 0 else 0.0)
