"""Sampling from a density that is known up to a constant factor: rejection sampling and Metropolis-Hastings."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Protocol

import numpy as np

from nurf._types import Array
from nurf.networks import Hyperplanes, normalised


class Bounded(Protocol):
    """A target density with an upper bound that can be sampled."""

    @property
    def width(self) -> float:
        """The length scale of the target density."""
        ...

    def ratios(self, hyperplanes: Hyperplanes) -> tuple[Array, Array]:
        """Return the target density and its bound, up to the same constant factor, each of shape (N,)."""
        ...

    def propose(self, n: int, rng: np.random.Generator) -> Hyperplanes:
        """Return ``n`` hyperplanes sampled from the bound, normalised to a density."""
        ...


@dataclass(frozen=True, eq=False)
class Draw:
    """Sampled hyperplanes and the cost of sampling them.

    Attributes
    ----------
    hyperplanes : Hyperplanes
    acceptance : float
        Fraction of the candidates that were accepted.
    candidates : int
        Number of evaluations of the density.
    """

    hyperplanes: Hyperplanes
    acceptance: float
    candidates: int


class Sampler(Protocol):
    """A method to sample from a target density."""

    def draw(self, target: Bounded, n: int, rng: np.random.Generator) -> Draw:
        """Return exactly ``n`` hyperplanes; raise a ``ValueError`` if too few candidates are accepted."""
        ...


@dataclass(frozen=True)
class Rejection:
    """Rejection sampling: candidates from the bound, accepted with probability target / bound.

    The samples are independent and have exactly the target density. No estimate of its maximum is needed, as the bound
    holds everywhere.

    Parameters
    ----------
    max_candidates : int, default=2000
        Maximum number of candidates for each requested hyperplane.
    """

    max_candidates: int = 2000

    def __post_init__(self) -> None:
        _at_least(self, max_candidates=1)

    def draw(self, target: Bounded, n: int, rng: np.random.Generator) -> Draw:
        """Return exactly ``n`` hyperplanes; raise a ``ValueError`` if too few candidates are accepted."""
        kept = target.propose(0, rng)
        tried, batch, limit = 0, 2 * n, self.max_candidates * n
        while len(kept) < n:
            if tried >= limit:
                raise ValueError(
                    f"rejection sampling accepted {len(kept)} of {tried} candidates, {n} hyperplanes were requested: "
                    "use a larger width, the metropolis sampler, or nonlocal sampling"
                )
            candidates = target.propose(min(batch, limit - tried), rng)
            sizes, bounds = target.ratios(candidates)
            accepted = rng.random(len(candidates)) * bounds < sizes
            tried += len(candidates)
            kept = kept + candidates[accepted]
            batch = int((n - len(kept)) * 1.2 * tried / max(len(kept), 1)) + 16
        return Draw(kept[np.arange(n)], len(kept) / max(tried, 1), tried)


@dataclass(frozen=True)
class Metropolis:
    """Metropolis-Hastings sampling with several chains in parallel.

    Every second step proposes an independent candidate, sampled from the bound. The other steps are random walks with
    the proposals ``a + width N(0, I)``, normalised, and ``b + width N(0, 1)``.

    Parameters
    ----------
    burn_in : int, default=100
        Number of steps of each chain before the first hyperplane is kept.
    thinning : int, default=10
        Number of steps between two kept hyperplanes.
    chains : int, default=200
        Number of chains.
    min_acceptance : float, default=0.001
        Acceptance rate below which sampling fails.
    """

    burn_in: int = 100
    thinning: int = 10
    chains: int = 200
    min_acceptance: float = 0.001

    def __post_init__(self) -> None:
        _at_least(self, burn_in=0, thinning=1, chains=1)

    def draw(self, target: Bounded, n: int, rng: np.random.Generator) -> Draw:
        """Return exactly ``n`` hyperplanes; raise a ``ValueError`` if too few candidates are accepted."""
        chains = min(self.chains, max(n, 1))
        state = target.propose(chains, rng)
        sizes, bounds = target.ratios(state)
        steps = self.burn_in + self.thinning * -(-n // chains)
        kept, accepted = target.propose(0, rng), 0
        for step in range(1, steps + 1):
            independent = step % 2 == 0
            moved = target.propose(chains, rng) if independent else self._random_walk(state, target.width, rng)
            new_sizes, new_bounds = target.ratios(moved)
            correction = bounds / new_bounds if independent else 1.0
            accept = rng.random(chains) * sizes < new_sizes * correction
            state = Hyperplanes(
                np.where(accept[:, None], moved.normals, state.normals), np.where(accept, moved.offsets, state.offsets)
            )
            sizes, bounds = np.where(accept, new_sizes, sizes), np.where(accept, new_bounds, bounds)
            accepted += int(accept.sum())
            if step > self.burn_in and (step - self.burn_in) % self.thinning == 0:
                lost = int(np.sum(sizes == 0))
                if lost or accepted < self.min_acceptance * step * chains:
                    raise ValueError(
                        f"{chains} chains accepted {accepted} of {step * chains} moves, and {lost} of them found no "
                        "hyperplane of positive density: use a longer burn-in, or nonlocal sampling"
                    )
                kept = kept + state
        return Draw(kept[np.arange(n)], accepted / max(steps * chains, 1), (steps + 1) * chains)

    @staticmethod
    def _random_walk(state: Hyperplanes, width: float, rng: np.random.Generator) -> Hyperplanes:
        normals = normalised(state.normals + width * rng.standard_normal(state.normals.shape))
        return Hyperplanes(normals, state.offsets + width * rng.standard_normal(len(state)))


def _at_least(spec: object, **lowest: int) -> None:
    """Raise a ``ValueError`` unless the parameters are integers and at least equal to their lower limits."""
    for name, low in lowest.items():
        value = getattr(spec, name)
        if not isinstance(value, Integral) or value < low:
            raise ValueError(f"`{name}` must be a whole number >= {low}, got {value!r}")


SAMPLERS: dict[str, Sampler] = {"rejection": Rejection(), "metropolis": Metropolis()}
