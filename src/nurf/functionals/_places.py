"""Where an operator is evaluated: at the points of the rows, at other points, or averaged over boxes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import qmc

from nurf._types import Array
from nurf._validation import is_whole
from nurf.functionals._numbers import Function, Numbers, at_points, row_count

# Nodes of the Gauss-Legendre rule on each side of a box, by the number of its sides: 24 to 343 points.
GAUSS = {1: 24, 2: 12, 3: 7}
SOBOL = 512  # points of boxes with more sides


class Place(ABC):
    """Where an operator is evaluated, as points with weights."""

    needs_points: bool = True  # of the rows
    n_nodes: int = 1  # for each row

    @property
    def n_rows(self) -> int | None:
        """The number of rows, if the place differs between rows."""
        return None

    @abstractmethod
    def nodes(self, X: Array) -> tuple[Array, Array]:
        """Return points (n, q, d) and weights (n, q) for the points (n, d) of the rows."""


@dataclass(frozen=True)
class Here(Place):
    """The points of the rows."""

    def nodes(self, X: Array) -> tuple[Array, Array]:
        """Return the points with weight one."""
        return X[:, None], np.ones((len(X), 1))


@dataclass(frozen=True)
class At(Place):
    """Other points: one for all rows, one for each row, or a function of the points of the rows."""

    points: Numbers | Function

    @property
    def needs_points(self) -> bool:  # type: ignore[override]
        """Whether the points are a function of the points of the rows."""
        return not isinstance(self.points, Numbers)

    @property
    def n_rows(self) -> int | None:
        """The number of points."""
        return row_count(self.points, 2)

    def nodes(self, X: Array) -> tuple[Array, Array]:
        """Return the points with weight one."""
        return np.array(at_points("points", self.points, X, X.shape))[:, None], np.ones((len(X), 1))


@dataclass(frozen=True)
class Box(Place):
    """The mean or the integral over a box, or over a box for each row.

    Sides of length zero are points: the integral is the one over the other sides.

    Parameters
    ----------
    lower, upper : Numbers
        Of shape (d,) or (n, d).
    is_mean : bool
    nodes_wanted : int or None
        Number of nodes for each side of length > 0, or of all nodes if there are more than three such sides.
    """

    lower: Numbers
    upper: Numbers
    is_mean: bool
    nodes_wanted: int | None = None
    needs_points = False

    def __post_init__(self) -> None:
        if len(self.lower.shape) not in (1, 2) or self.lower.shape[-1:] != self.upper.shape[-1:]:
            raise ValueError(
                f"`lower` and `upper` must have shape (d,) or (n, d), got {self.lower.shape} and {self.upper.shape}"
            )
        if self.nodes_wanted is not None and not is_whole(self.nodes_wanted):
            raise ValueError(f"`n_nodes` must be a whole number >= 1 or None, got {self.nodes_wanted!r}")
        try:
            sides = self._sides
        except ValueError:
            raise ValueError(
                f"`lower` and `upper` must have the same number of boxes, got {self.lower.shape} and {self.upper.shape}"
            ) from None
        if np.any(sides < 0):
            raise ValueError(
                f"`lower` must not be above `upper`, got {self.lower.array.tolist()} and {self.upper.array.tolist()}"
            )
        if len(np.unique(sides > 0, axis=0)) > 1:
            raise ValueError("the same sides of all boxes must have length zero, got boxes that differ")

    @property
    def dimension(self) -> int:
        """The number of inputs."""
        return self.lower.shape[-1]

    @property
    def n_rows(self) -> int | None:
        """The number of boxes."""
        count = row_count(self.lower, 2)
        return row_count(self.upper, 2) if count is None else count

    @property
    def n_nodes(self) -> int:  # type: ignore[override]
        """The number of nodes of a box."""
        return len(self._rule[1])

    @property
    def _sides(self) -> Array:
        return np.atleast_2d(self.upper.array - self.lower.array)

    @property
    def _rule(self) -> tuple[Array, Array]:
        return unit_rule(int(np.count_nonzero(self._sides[0])), self.nodes_wanted)

    def nodes(self, X: Array) -> tuple[Array, Array]:
        """Return the nodes of all boxes and their weights."""
        if self.dimension != X.shape[1]:
            raise ValueError(
                f"`lower` and `upper` must have {X.shape[1]} numbers, one for each input, got {self.lower.shape}"
            )
        lower, upper = (np.broadcast_to(part.array, X.shape) for part in (self.lower, self.upper))
        unit, weights = self._rule
        sides, wide = upper - lower, self._sides[0] > 0
        points = np.repeat(lower[:, None], len(weights), axis=1)
        points[..., wide] += unit * sides[:, None, wide]
        volumes = np.ones(len(X)) if self.is_mean else np.prod(sides[:, wide], axis=1)
        return points, volumes[:, None] * weights


@lru_cache
def unit_rule(r: int, n_nodes: int | None) -> tuple[Array, Array]:
    """Return nodes in the unit cube of ``r`` dimensions and weights that add up to one.

    Gauss-Legendre on each side up to three dimensions, a scrambled Sobol sequence with a fixed seed in more.

    >>> unit_rule(2, 3)[0].shape, float(unit_rule(2, 3)[1].sum().round(12))
    ((9, 2), 1.0)
    """
    if r in GAUSS or r == 0:
        x, w = np.polynomial.legendre.leggauss(GAUSS.get(r, 1) if n_nodes is None else n_nodes)
        grids = np.meshgrid(*[(x + 1) / 2] * r, indexing="ij")
        weights = np.ones(1)
        for _ in range(r):
            weights = np.multiply.outer(weights, w / 2).ravel()
        nodes = np.stack([grid.ravel() for grid in grids], axis=1) if r else np.zeros((1, 0))
        return nodes, weights
    n = SOBOL if n_nodes is None else n_nodes
    nodes = qmc.Sobol(r, seed=np.random.default_rng(0)).random_base2(int(np.ceil(np.log2(n))))[:n]
    return np.asarray(nodes), np.full(n, 1 / n)
