"""Fits of transformed inputs and values: the transformations to try, and a warning if some are worth a try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from nurf._scaling import Scaling
from nurf._types import Array
from nurf._warping import CURVES, UNWARPED, Warp, Warping, offered, require_positive
from nurf.choosing import Evidence
from nurf.jets import Jet

# Samples carry an error if at most this share and this number of them have nine tenths of the squared error,
# the error is more than this share of the standard deviation, and a transformation suits the values. The root mean
# square of more samples is known within a quarter. With the shares alone, 2 of 152 fits of sampled networks to the
# collection warned (10 and 50 samples for each input, with and without gradients); with 0.1 instead of 0.05 there
# were 8. Without the last condition there are warnings for functions that are difficult at a few places, for which no
# transformation of the values helps.
FEW, MOST_DECISIVE, RELEVANT = 0.05, 10, 1e-3
Kinds = tuple[str | None, ...]


def warpings_of(target: Any, inputs: Any, jet: Jet, held_out: Jet | None, names: Any = None) -> list[Warping]:
    """Return the transformations for the parameters, the simplest first.

    For suitable data, "auto" gives two candidates: no transformation, and logarithms or asinh. Transformations that
    some of the data do not support are left out. Values and inputs of samples and validation samples must be positive
    for a logarithm.

    Parameters
    ----------
    target, inputs
        See ``Surrogate``.
    jet : Jet
        The samples, in the units of the data.
    held_out : Jet or None
        Validation samples.
    names : sequence of str, optional
        The names of the inputs.
    """
    jets = [jet] if held_out is None else [jet, held_out]
    X = np.concatenate([each.X for each in jets])
    y = np.concatenate([each.with_values().y.reshape(-1, jet.y[:1].size) for each in jets])
    of_outputs = _kinds("target", target, y, tuple(CURVES))
    of_inputs = _kinds("inputs", _by_place(inputs, X.shape[1], names), X, ("log",), names)
    valued = jet.with_positive_weight().with_values()
    if len(of_outputs) > 1 and np.any((jet.has_derivative(1) | jet.has_derivative(2)) & ~jet.has_value):
        of_outputs = of_outputs[:1]  # these do not support derivatives without a value
    found = []
    for own, others in product(of_outputs, of_inputs):
        warps = Warp.of(others, X), Warp.of(own, valued.y.reshape(len(valued), -1))
        found.append(Warping(*warps, Scaling.fit(jet).y_scale) if any(warps) else UNWARPED)
    return [warping for warping in found if all(_passes(warping, jet) for jet in jets)] or found


def _passes(warping: Warping, jet: Jet) -> bool:
    """Return whether all data can be transformed."""
    try:
        warping(jet)
    except ValueError:
        return False
    return True


def tail_warnings(evidence: Evidence, y: Array, target: Any) -> list[Warning]:
    """Return a warning if few samples carry the error of values over decades, with advice.

    Parameters
    ----------
    evidence : Evidence
        The evidence for the fit.
    y : array of shape (n,) or (n, k)
        The values, in the units of the data.
    target
        See ``Surrogate``.
    """
    kinds = [kind for kind in dict.fromkeys(offered(y.reshape(len(y), -1), asinh=True)) if kind is not None]
    few, n = evidence.n_decisive, int(np.count_nonzero(evidence.judges))
    if not (kinds and evidence.error > RELEVANT and 0 < few <= min(FEW * n, MOST_DECISIVE)):
        return []
    advice = f": try {' or '.join(f'target={kind!r}' for kind in kinds)}" if target is None else ""
    message = f"{few} of {n} samples carry 90% of the squared error, so that the estimated error may be far too small"
    return [UserWarning(message + advice)]


def _kinds(name: str, given: Any, columns: Array, allowed: tuple[str, ...], names: Any = None) -> list[Kinds]:
    """Return the transformations of columns (n, m) for a parameter: one tuple, or two for "auto"."""
    m = columns.shape[1]
    none = (None,) * m
    if isinstance(given, str) and given == "auto":
        found = offered(columns, asinh="asinh" in allowed)
        return [none, found] if any(found) else [none]
    single = given is None or isinstance(given, str)
    kinds: Kinds = (given,) * m if single else tuple(given) if isinstance(given, Sequence | np.ndarray) else ()
    if len(kinds) != m or not all(kind is None or kind in allowed for kind in kinds):
        values = ", ".join(map(repr, ("auto", None, *allowed)))
        raise ValueError(f"`{name}` must be one of {values}, or one of the last for each of {m}, got {given!r}")
    require_positive("y" if name == "target" else "X", kinds, columns, names)
    return [kinds]


def _by_place(inputs: Any, d: int, names: Any) -> Any:
    """Return the parameter ``inputs``, given by names or places, as one entry for each input."""
    if not isinstance(inputs, Mapping):
        return inputs
    labels = list(range(d)) if names is None else list(names)
    if unknown := [key for key in inputs if key not in labels]:
        raise ValueError(f"`inputs` must have names of inputs as keys, got {unknown[0]!r}, which is not one of them")
    return [inputs.get(label) for label in labels]
