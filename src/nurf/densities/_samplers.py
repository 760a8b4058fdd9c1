"""Drawing from a density that is known up to a constant: by rejection, or by a Markov chain."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Protocol

import numpy as np

from nurf._types import Array
from nurf.networks import Hyperplanes
from nurf.networks._hyperplanes import normalised


class Bounded(Protocol):
    """A target density with a bound that can itself be sampled."""

    @property
    def width(self) -> float:
        """The length over which the target varies."""
        ...

    def ratios(self, hyperplanes: Hyperplanes) -> tuple[Array, Array]:
        """Return the target and its bound, both up to the same constant."""
        ...

    def propose(self, n: int, rng: np.random.Generator) -> Hyperplanes:
        """Draw from the law whose density is the bound."""
        ...


@dataclass(frozen=True, eq=False)
class Draw:
    """Hyperplanes, and what it took to draw them.

    Attributes
    ----------
    hyperplanes : Hyperplanes
    acceptance : float
        Share of the candidates that were accepted.
    candidates : int
        Number of candidates at which the density was evaluated.
    """

    hyperplanes: Hyperplanes
    acceptance: float
    candidates: int


class Sampler(Protocol):
    """A way to draw from a target."""

    def draw(self, target: Bounded, n: int, rng: np.random.Generator) -> Draw:
        """Draw exactly ``n`` hyperplanes, or raise with the acceptance that was seen."""
        ...


@dataclass(frozen=True)
class Rejection:
    """Candidates from the bound, accepted with probability target / bound: independent draws from exactly the target.

    The bound holds everywhere by the triangle inequality, so no draw has to guess the target's maximum.

    Parameters
    ----------
    max_candidates : int
        For each hyperplane that is asked for, the number of candidates after which the sampler gives up.
    """

    max_candidates: int = 2000

    def __post_init__(self) -> None:
        _at_least(self, max_candidates=1)

    def draw(self, target: Bounded, n: int, rng: np.random.Generator) -> Draw:
        """Draw exactly ``n`` hyperplanes, or raise with the acceptance that was seen."""
        kept = target.propose(0, rng)
        tried, batch, limit = 0, 2 * n, self.max_candidates * n
        while len(kept) < n:
            if tried >= limit:
                raise ValueError(
                    f"rejection sampling accepted {len(kept)} of {tried} candidates, {n} hyperplanes were asked for: "
                    "take a larger width, the metropolis sampler, or nonlocal sampling"
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
    """Metropolis-Hastings chains that need no bound, run side by side.

    Every second step proposes a candidate from anywhere (by the bound's law, corrected for it), the others a small
    move of the hyperplane: ``a + width N(0, I)`` normalised, ``b + width N(0, 1)``.

    Parameters
    ----------
    burn_in : int
        Steps of each chain before the first hyperplane is kept.
    thinning : int
        Steps between two hyperplanes that are kept.
    chains : int
        Number of chains.
    min_acceptance : float
        Share of accepted moves below which the chains are not trusted.
    """

    burn_in: int = 100
    thinning: int = 10
    chains: int = 200
    min_acceptance: float = 0.001

    def __post_init__(self) -> None:
        _at_least(self, burn_in=0, thinning=1, chains=1)

    def draw(self, target: Bounded, n: int, rng: np.random.Generator) -> Draw:
        """Draw exactly ``n`` hyperplanes, or raise with the acceptance that was seen."""
        chains = min(self.chains, max(n, 1))
        state = target.propose(chains, rng)
        sizes, bounds = target.ratios(state)
        steps = self.burn_in + self.thinning * -(-n // chains)
        kept, accepted = target.propose(0, rng), 0
        for step in range(1, steps + 1):
            anywhere = step % 2 == 0
            moved = target.propose(chains, rng) if anywhere else self._nearby(state, target.width, rng)
            new_sizes, new_bounds = target.ratios(moved)
            correction = bounds / new_bounds if anywhere else 1.0
            taken = rng.random(chains) * sizes < new_sizes * correction
            state = Hyperplanes(
                np.where(taken[:, None], moved.normals, state.normals), np.where(taken, moved.offsets, state.offsets)
            )
            sizes, bounds = np.where(taken, new_sizes, sizes), np.where(taken, new_bounds, bounds)
            accepted += int(taken.sum())
            if step > self.burn_in and (step - self.burn_in) % self.thinning == 0:
                lost = int(np.sum(sizes == 0))
                if lost or accepted < self.min_acceptance * step * chains:
                    raise ValueError(
                        f"{chains} chains accepted {accepted} of {step * chains} moves, and {lost} of them found no "
                        "place of positive density: take a longer burn-in, or nonlocal sampling"
                    )
                kept = kept + state
        return Draw(kept[np.arange(n)], accepted / max(steps * chains, 1), (steps + 1) * chains)

    @staticmethod
    def _nearby(state: Hyperplanes, width: float, rng: np.random.Generator) -> Hyperplanes:
        normals = normalised(state.normals + width * rng.standard_normal(state.normals.shape))
        return Hyperplanes(normals, state.offsets + width * rng.standard_normal(len(state)))


def _at_least(spec: object, **lowest: int) -> None:
    """Raise unless the parameters are whole numbers, not below the lowest."""
    for name, low in lowest.items():
        value = getattr(spec, name)
        if not isinstance(value, Integral) or value < low:
            raise ValueError(f"`{name}` must be a whole number >= {low}, got {value!r}")


SAMPLERS: dict[str, Sampler] = {"rejection": Rejection(), "metropolis": Metropolis()}
