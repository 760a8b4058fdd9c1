"""The numbers of a figure, in the forms that claims need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from reproduction.arrays import Array
from reproduction.results import Neurons, Table

ANGLE_BANDWIDTH = 0.1  # of the kernel density of angles, in radians


class MissingError(LookupError):
    """The run lacks numbers that a claim needs."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The errors and the networks of a figure.

    Parameters
    ----------
    table : Table
        Errors of cases and methods along the stages.
    networks : mapping from (case, method) to Neurons
        The networks and samples that are drawn.
    paired : bool
        Whether all methods have the same trials and share the data of each, so that differences have intervals.
    """

    table: Table
    networks: Mapping[tuple[str, str], Neurons] = field(default_factory=dict)
    paired: bool = True

    @property
    def trials(self) -> list[int]:
        """The trials that any method has."""
        return sorted({row.trial for row in self.table.rows})

    def of(self, *keys: str) -> Evidence:
        """Return the evidence with the errors of some cases only."""
        return replace(self, table=Table(tuple(row for row in self.table.rows if row.key in keys)))

    def without(self, trial: int) -> Evidence:
        """Return the evidence without the errors of a trial."""
        return replace(self, table=Table(tuple(row for row in self.table.rows if row.trial != trial)))

    def curve(self, key: str, method: str) -> tuple[Array, Array]:
        """Return numbers of neurons (m,) and ``exp(mean log error)`` (m,)."""
        try:
            neurons, errors = self.table.curve(key, method)
        except KeyError as error:
            raise MissingError(str(error.args[0])) from error
        if not len(neurons):
            raise MissingError(f"no network of {method!r} for {key!r} has a neuron")
        return neurons, np.exp(np.log(errors).mean(axis=0))

    def error(self, key: str, method: str, neurons: float) -> float:
        """Return the error for a number of neurons, interpolated linearly in logarithms between the stages.

        One neuron more than the largest network is allowed: the authors count the constant of some methods.
        """
        counts, errors = self.curve(key, method)
        if not counts[0] * 0.999 <= neurons <= counts[-1] + 1:
            raise MissingError(f"{method} on {key} has {counts[0]:.0f} to {counts[-1]:.0f} neurons, not {neurons:.0f}")
        return float(np.exp(np.interp(np.log(neurons), np.log(counts), np.log(errors))))

    def ratio(self, key: str, method: str, other: str, low: float = 0.0, high: float = np.inf) -> float:
        """Return the geometric mean of the ratio of two methods' errors, over stages of the first in [low, high]."""
        counts, errors = self.curve(key, method)
        others, _ = self.curve(key, other)
        used = (counts >= max(low, others[0]) * 0.999) & (counts <= min(high * 1.001, others[-1] + 1))
        if not used.any():
            raise MissingError(f"{method} and {other} on {key} share no stage between {low:g} and {high:g} neurons")
        logs = [np.log(e / self.error(key, other, n)) for n, e in zip(counts[used], errors[used], strict=True)]
        return float(np.exp(np.mean(logs)))

    def seconds(self, key: str, method: str, neurons: float = np.inf) -> float:
        """Return the time until a network has a number of neurons, the geometric mean over the trials."""
        trials = self.table.trials(key, method)
        if not trials:
            raise MissingError(f"no times of {method!r} for {key!r}")
        totals = [sum(row.seconds for row in rows[: 1 + sum(r.neurons < neurons for r in rows)]) for rows in trials]
        return float(np.exp(np.mean(np.log(totals))))

    def slope(self, key: str, method: str, low: float) -> float:
        """Return the least-squares slope of ``log error`` over ``log N`` for at least ``low`` neurons."""
        counts, errors = self.curve(key, method)
        used = counts >= low * 0.999
        if used.sum() < 2:
            raise MissingError(f"{method} on {key} has fewer than two stages from {low:g} neurons on")
        return float(np.polyfit(np.log(counts[used]), np.log(errors[used]), 1)[0])

    def reach(self, key: str, method: str, level: float) -> float:
        """Return the smallest number of neurons with an error of at most ``level``; infinity if there is none."""
        counts, errors = self.curve(key, method)
        below = np.flatnonzero(errors <= level)
        if not len(below):
            return np.inf
        i = int(below[0])
        if i == 0:
            return float(counts[0])
        share = np.log(errors[i - 1] / level) / np.log(errors[i - 1] / errors[i])
        return float(counts[i - 1] * (counts[i] / counts[i - 1]) ** share)

    def network(self, key: str, method: str) -> Neurons:
        """Return the network or the samples of a method."""
        if (key, method) not in self.networks:
            raise MissingError(f"no network of {method!r} for {key!r}")
        return self.networks[key, method]

    def share_along(self, key: str, method: str, directions: Array, degrees: float) -> float:
        """Return the share of the outer weights with a normal within some degrees of ``+-directions`` (m, d)."""
        network = self.network(key, method)
        units = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        near = np.abs(network.normals @ units.T).max(axis=1) >= np.cos(np.radians(degrees))
        weights = np.abs(network.coef)
        return float(weights[near].sum() / weights.sum())

    def dominant_angle(self, key: str, method: str) -> float:
        """Return the angle in [0, 180) at which normals in the plane, up to their sign, are densest."""
        network = self.network(key, method)
        angles = np.arctan2(network.normals[:, 1], network.normals[:, 0])
        grid = np.radians(np.arange(0.0, 180.0, 0.5))
        closeness = np.cos(2 * (grid[:, None] - angles)) - 1  # the period is half a turn: a and -a are one line
        density = np.exp(closeness / (2 * ANGLE_BANDWIDTH) ** 2) @ np.abs(network.coef)
        return float(np.degrees(grid[np.argmax(density)]))
