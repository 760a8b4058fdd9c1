"""The criteria of claims about hyperplanes: where the neurons of one network are."""

from __future__ import annotations

import numpy as np

from reproduction import thresholds
from reproduction.arrays import Array
from reproduction.cases import CASES
from reproduction.checks import Limits, Measurement, Test, check
from reproduction.evidence import Evidence


def along(key: str, method: str, directions: Array, *, least: float = 0.0, most: float = 1.0) -> Test:
    """Test the share of the weight whose normals are along some directions."""

    def measure(e: Evidence) -> Measurement:
        share = e.share_along(key, method, directions, thresholds.DEGREES)
        return f"share of the weight of {method} within {thresholds.DEGREES:g} degrees", share

    return check((key,), measure, Limits(least, most), trials=False)


def inflection_points(key: str, method: str, *, many: bool) -> Test:
    """Test the share of inflection points where the bump varies."""

    def measure(e: Evidence) -> Measurement:
        network = e.network(key, method)
        share = float(np.mean(np.abs(network.offsets / network.normals[:, 0]) < thresholds.STEEP))
        return f"share of the points of {method} in |x| < {thresholds.STEEP:g}", share

    limits = Limits(low=thresholds.CONCENTRATED) if many else Limits(high=thresholds.CONCENTRATED)
    return check((key,), measure, limits, trials=False)


def aligned(key: str, method: str) -> Test:
    """Test the mean of ``|a.g| / |g|`` over neurons and, weighted by ``|g|``, over points within two widths of them."""

    def mean_of(e: Evidence, name: str) -> float:
        case, network = CASES[key], e.network(key, name)
        X = case.function.grid(101)
        g = case.function.gradient(X)
        near = np.exp(-0.5 * (network.hyperplanes.signed_distance(X) / (2 * case.width)) ** 2)
        steepness = near * np.linalg.norm(g, axis=1)[:, None]
        cosines = (near * np.abs(g @ network.normals.T)).sum(axis=0) / steepness.sum(axis=0)
        return float(np.average(cosines, weights=np.abs(network.coef) if name == "sparse" else None))

    def measure(e: Evidence) -> Measurement:
        name = f"mean |cos| between normals of {method} and gradients, above that of uniform"
        return name, mean_of(e, method) - mean_of(e, "uniform")

    return check((key,), measure, Limits(low=thresholds.ALIGNED), trials=False)


def dominant(key: str, method: str, wanted: float) -> Test:
    """Test that the densest direction is at ``wanted`` degrees, up to reflections at the axes."""

    def measure(e: Evidence) -> Measurement:
        angle = e.dominant_angle(key, method)
        off = min(abs(angle - w) for w in (wanted, 180 - wanted, 180 + wanted, -wanted))
        return f"degrees between that direction and the densest of {method}, {angle:.1f}", off

    return check((key,), measure, Limits(high=thresholds.DEGREES), trials=False)


def densest_at_an_axis(key: str, method: str) -> Test:
    """Test that the densest direction is one of the axes."""

    def measure(e: Evidence) -> Measurement:
        angle = e.dominant_angle(key, method)
        return f"degrees between an axis and the densest of {method}, {angle:.1f}", min(angle % 90, 90 - angle % 90)

    return check((key,), measure, Limits(high=thresholds.DEGREES), trials=False)
