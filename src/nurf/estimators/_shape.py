"""The parameters that say which shape a function has: signs of slopes and curvatures, and bounds of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import qmc

from nurf._blocks import spaced
from nurf._scaling import Scaling
from nurf._types import Array
from nurf._warping import Warp, Warping
from nurf.engines import Conditions, Fit
from nurf.engines import Shape as Record
from nurf.jets import Jet
from nurf.solvers._conditions import Condition

CONDITIONS = ("monotone", "convex", "lower", "upper")  # the parameters
FEWEST, MOST = 7, 10  # logarithms to base 2 of numbers of points that fill the box of the data: one more for each input
SAMPLES = 1000  # that are checked, at most
CONTRADICTED = 2.0  # times the errors without conditions are those with them, if data contradict them
RELEVANT = 0.01  # standard deviations of the values: the least error that counts as a contradiction
SEEDS = (0, 1)  # of the points from which virtual ones are taken, and of further ones


@dataclass(frozen=True, eq=False)
class Shape:
    """Signs of slopes and curvatures along each input, and bounds of values, for each output.

    Parameters
    ----------
    monotone, convex : array of shape (k, d)
        1, -1, or 0 for no condition.
    lower, upper : array of shape (k,)
        Infinite for no bound.
    """

    monotone: Array
    convex: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, model: Any, d: int, output_shape: tuple[int, ...]) -> Shape:
        """Return the shape that the parameters of a regressor ask for, without conditions if it has none of them."""
        names, k = getattr(model, "feature_names_in_", None), int(np.prod(output_shape, dtype=int))
        signs = [_signs(name, getattr(model, name, None), names, k, d) for name in ("monotone", "convex")]
        ends = [_ends(name, getattr(model, name, None), sign, k) for name, sign in (("lower", -1), ("upper", 1))]
        if not np.all(ends[0] < ends[1]):
            raise ValueError(f"`lower` must be less than `upper`, got {model.lower!r} and {model.upper!r}")
        return cls(*signs, *ends)

    @property
    def is_free(self) -> bool:
        """Whether there are no conditions."""
        return not (self.monotone.any() or self.convex.any() or np.isfinite([self.lower, self.upper]).any())

    def allows(self, warping: Warping) -> bool:
        """Return whether the conditions are linear between curves: curvatures of curved values are not.

        Slopes keep their signs, and bounds are transformed.
        """

        def crossed(warp: Warp | None, axis: int) -> bool:
            kinds = () if warp is None else warp.kinds
            return any(
                kind is not None and signs.any()
                for kind, signs in zip(kinds, np.moveaxis(self.convex, axis, 0), strict=False)
            )

        return not (crossed(warping.outputs, 0) or crossed(warping.inputs, 1))

    def ends(self, output_shape: tuple[int, ...]) -> tuple[Array, Array] | None:
        """Return the bounds of values of a shape () or (k,); None if there are none."""
        if not np.isfinite([self.lower, self.upper]).any():
            return None
        return self.lower.reshape(output_shape), self.upper.reshape(output_shape)

    def conditions(self, warping: Warping, scaling: Scaling, jet: Jet) -> Conditions:
        """Return the conditions on a network of scaled inputs and values.

        Parameters
        ----------
        warping : Warping
            Curves in front of the scaling.
        scaling : Scaling
        jet : Jet
            The data, in scaled units.
        """
        k, scale = len(self.lower), np.ravel(scaling.y_scale)
        slopes = np.eye(len(scaling.x_scale)) / scaling.x_scale
        directions = slopes if scaling.x_basis is None else slopes @ scaling.x_basis
        found, zeros = list[Condition](), np.zeros(k)
        for order, signs in ((1, self.monotone), (2, self.convex)):
            for j in np.flatnonzero(signs.any(axis=0)):
                length = np.linalg.norm(directions[j])
                if length > 0:  # the network is constant along other inputs
                    found.append(Condition(order, directions[j] / length, signs[:, j], zeros))
        for sign, ends in ((1.0, self.lower), (-1.0, self.upper)):
            warped = _warped(ends, warping)
            if sign < 0 and np.any(warped == -np.inf):
                raise ValueError(f"`upper` must be positive where logarithms are taken, got {ends.tolist()}")
            bounds = (warped - np.ravel(scaling.y_center)) / scale
            if np.isfinite(bounds).any():
                found.append(Condition(0, directions[0], sign * np.isfinite(bounds), sign * np.nan_to_num(bounds)))
        low, high = jet.X.min(axis=0), jet.X.max(axis=0)
        spread = [low + (high - low) * _filling(len(low), seed) for seed in SEEDS]
        points = np.concatenate([jet.X[spaced(np.arange(len(jet)), SAMPLES)], spread[0]])
        return Conditions(tuple(found), points, spread[1])

    def warnings(self, names: Sequence[str], fit: Fit) -> list[Warning]:
        """Return a warning if a fit with its conditions is clearly worse at left-out samples than without them."""
        if fit.shape is None:
            return []
        growth, errors = fit.shape.growth, fit.output_errors
        worse = (growth > CONTRADICTED) & (growth * errors > RELEVANT)
        if not worse.any():
            return []
        worst = float(growth[worse].max())
        text = f"the data contradict the conditions on the shape ({self._text(names)})"
        return [UserWarning(f"{text}: with them, errors at left-out samples are {worst:.2g} times as large")]

    def described(self, names: Sequence[str], record: Record | None) -> tuple[str, str]:
        """Return a line of a report."""
        text = self._text(names)
        if record is not None:
            met = "the fit meets that as it is" if record.n_points == 0 else f"met at {record.n_points} virtual points"
            text += f": {met}, largest violation between them {record.violation_between:.1g}"
        return "shape", text

    def _text(self, names: Sequence[str]) -> str:
        parts = []
        for words, signs in ((("increasing", "decreasing"), self.monotone), (("convex", "concave"), self.convex)):
            for word, sign in zip(words, (1, -1), strict=True):
                chosen = [str(name) for name, column in zip(names, signs.T, strict=True) if np.any(column == sign)]
                parts += [f"{word} in {', '.join(chosen)}"] if chosen else []
        for word, ends in ((">=", self.lower), ("<=", self.upper)):
            finite = ends[np.isfinite(ends)]
            parts += [f"values {word} {', '.join(f'{end:g}' for end in finite)}"] if len(finite) else []
        return "; ".join(parts)


def _filling(q: int, seed: int) -> Array:
    """Return points that fill the unit cube, its corners included in few dimensions, of shape (n, q)."""
    points = qmc.Sobol(q, seed=np.random.default_rng(seed)).random_base2(min(MOST, FEWEST + q))
    return np.asarray(np.clip((points - 0.5) * 1.02 + 0.5, 0.0, 1.0))


def _warped(ends: Array, warping: Warping) -> Array:
    """Return bounds of values after their curves, -inf for numbers that have no logarithm."""
    if warping.outputs is None:
        return ends
    logged = np.array([kind == "log" for kind in warping.outputs.kinds])
    safe = np.where(logged & (ends <= 0), 1.0, np.where(np.isfinite(ends), ends, 1.0))
    found = np.where(np.isfinite(ends), warping.outputs(safe), ends)
    return np.where(logged & (ends <= 0), -np.inf, found)


def _signs(name: str, given: Any, names: Any, k: int, d: int) -> Array:
    """Return the signs of a parameter for each output and input, of shape (k, d)."""
    if given is None:
        return np.zeros((k, d))
    labels = [f"x{j}" for j in range(d)] if names is None else list(names)
    if isinstance(given, Mapping):
        places = dict(enumerate(labels)) if names is None else {}
        given = {places.get(key, key): sign for key, sign in given.items()}
        if unknown := [key for key in given if key not in labels]:
            raise ValueError(f"`{name}` must have names of inputs out of {labels}, got {unknown[0]!r}")
        given = [given.get(label, 0) for label in labels]
    elif isinstance(given, list | tuple) and given and all(isinstance(label, str) for label in given):
        return _signs(name, dict.fromkeys(given, 1), names, k, d)
    try:
        signs = np.asarray(given, float)
    except (TypeError, ValueError):
        signs = np.full(0, np.nan)
    if signs.shape not in ((d,), (k, d)) or not np.all(np.isin(signs, (-1, 0, 1))):
        raise ValueError(
            f"`{name}` must be 1, -1 or 0 for each of {d} inputs (and of {k} outputs), or a dict of these by name, got "
            f"{given!r}"
        )
    return np.broadcast_to(signs, (k, d)).copy()


def _ends(name: str, given: Any, sign: int, k: int) -> Array:
    """Return the bounds of a parameter for each output, infinite if there is none, of shape (k,)."""
    if given is None:
        return np.full(k, sign * np.inf)
    try:
        ends = np.asarray([sign * np.inf if end is None else end for end in np.ravel(given)], float)
    except (TypeError, ValueError):
        ends = np.full(1, np.nan)
    if ends.shape not in ((1,), (k,)) or np.any(np.isnan(ends)) or np.any(ends == -sign * np.inf):
        raise ValueError(f"`{name}` must be a number, or one for each of {k} outputs, got {given!r}")
    return np.broadcast_to(ends, k).copy()
