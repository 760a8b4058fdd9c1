"""The numbers of a figure, asked in the way that claims need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nurf._types import Array
from reproduction.results import Neurons, Table


class MissingError(LookupError):
    """The run lacks the numbers that would decide."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The errors and the networks that belong to a figure.

    Parameters
    ----------
    table : Table
        Errors of cases and laws along the stages.
    networks : mapping from (case, law) to Neurons
        What the pictures of fits and of densities show.
    """

    table: Table
    networks: Mapping[tuple[str, str], Neurons] = field(default_factory=dict)

    def curve(self, key: str, law: str) -> tuple[Array, Array]:
        """Return numbers of neurons (m,) and ``exp(mean log error)`` (m,)."""
        try:
            neurons, errors = self.table.curve(key, law)
        except KeyError as error:
            raise MissingError(str(error.args[0])) from error
        if not len(neurons):
            raise MissingError(f"no network of {law!r} for {key!r} has a neuron")
        return neurons, np.exp(np.log(errors).mean(axis=0))

    def error(self, key: str, law: str, neurons: float) -> float:
        """Return the error with so many neurons, on straight lines between the stages in logarithms."""
        counts, errors = self.curve(key, law)
        if not counts[0] * 0.999 <= neurons <= counts[-1] * 1.001:
            raise MissingError(f"{law} on {key} has {counts[0]:.0f} to {counts[-1]:.0f} neurons, not {neurons:.0f}")
        return float(np.exp(np.interp(np.log(neurons), np.log(counts), np.log(errors))))

    def ratio(self, key: str, law: str, other: str, low: float = 0.0, high: float = np.inf) -> float:
        """Return the geometric mean of ``error of law / error of other`` over the stages of ``law`` in [low, high]."""
        counts, errors = self.curve(key, law)
        others, _ = self.curve(key, other)
        used = (counts >= max(low, others[0]) * 0.999) & (counts <= min(high, others[-1]) * 1.001)
        if not used.any():
            raise MissingError(f"{law} and {other} on {key} share no stage between {low:g} and {high:g} neurons")
        logs = [np.log(e / self.error(key, other, n)) for n, e in zip(counts[used], errors[used], strict=True)]
        return float(np.exp(np.mean(logs)))

    def slope(self, key: str, law: str, low: float) -> float:
        """Return the slope of ``log error`` over ``log N`` from ``low`` neurons on, by least squares."""
        counts, errors = self.curve(key, law)
        used = counts >= low * 0.999
        if used.sum() < 2:
            raise MissingError(f"{law} on {key} has fewer than two stages from {low:g} neurons on")
        return float(np.polyfit(np.log(counts[used]), np.log(errors[used]), 1)[0])

    def reach(self, key: str, law: str, level: float) -> float:
        """Return the smallest number of neurons whose error is at most ``level``; infinity where none is."""
        counts, errors = self.curve(key, law)
        below = np.flatnonzero(errors <= level)
        if not len(below):
            return np.inf
        i = int(below[0])
        if i == 0:
            return float(counts[0])
        share = np.log(errors[i - 1] / level) / np.log(errors[i - 1] / errors[i])
        return float(counts[i - 1] * (counts[i] / counts[i - 1]) ** share)

    def seconds(self, key: str, law: str) -> float:
        """Return the mean seconds of a trial, all stages together."""
        trials = self.table.trials(key, law)
        if not trials:
            raise MissingError(f"no errors of {law!r} for {key!r}")
        return float(np.mean([sum(row.seconds for row in rows) for rows in trials]))

    def network(self, key: str, law: str) -> Neurons:
        """Return a network or the draws of a law."""
        if (key, law) not in self.networks:
            raise MissingError(f"no network of {law!r} for {key!r}")
        return self.networks[key, law]

    def share_along(self, key: str, law: str, directions: Array, degrees: float) -> float:
        """Return the share of the weight with a normal within some degrees of ``+-`` one of ``directions`` (m, d)."""
        network = self.network(key, law)
        units = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        near = np.abs(network.normals @ units.T).max(axis=1) >= np.cos(np.radians(degrees))
        weights = np.abs(network.coef)
        return float(weights[near].sum() / weights.sum())

    def dominant_angle(self, key: str, law: str, bandwidth: float = 0.1) -> float:
        """Return the angle in [0, 180) of the direction where normals in the plane are densest, up to their sign."""
        network = self.network(key, law)
        angles = np.arctan2(network.normals[:, 1], network.normals[:, 0])
        grid = np.radians(np.arange(0.0, 180.0, 0.5))
        closeness = np.cos(2 * (grid[:, None] - angles)) - 1  # the period is half a turn: a and -a are one line
        density = np.exp(closeness / (2 * bandwidth) ** 2) @ np.abs(network.coef)
        return float(np.degrees(grid[np.argmax(density)]))
