"""The meaning of parameters that several estimators share. Invalid values raise a ``ValueError``."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from nurf._validation import is_number, is_whole
from nurf.activations import ACTIVATIONS, Activation, SmoothActivation
from nurf.densities import DENSITIES, Density, Nonlocal, Uniform
from nurf.jets import DERIVATIVE_KINDS, Jet

MAX_WEIGHTS = 10**8  # largest number of inner weights: a fit needs several arrays of this size
MAX_WEIGHT = 1e9  # largest weight of derivatives: with larger ones, training does not resolve the values
MAX_WIDTH = 1e9  # largest width; its inverse is the smallest: derivatives have powers of widths as factors
TAILS = {"auto": None, "none": -1, "constant": 0, "affine": 1}


def choose(name: str, key: str, table: dict[str, Any]) -> Any:
    """Return the entry of a table for the value of the parameter ``name``."""
    if not (isinstance(key, str) and key in table):
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, table))}, got {key!r}")
    return table[key]


def check_neurons(name: str, value: Any, n_inputs: int, lowest: int = 1) -> None:
    """Raise an error if a number of neurons is invalid, or needs more memory than any fit could use."""
    if not is_whole(value, lowest):
        raise ValueError(f"`{name}` must be a whole number >= {lowest}, got {value!r}")
    largest = MAX_WEIGHTS // (n_inputs + 1)
    if value > largest:
        raise ValueError(f"`{name}` must be at most {largest} for {n_inputs} inputs, got {value}")


def make_activation(activation: Any, width: Any) -> Activation:
    """Return the activation with a name and a width, or the given object."""
    if isinstance(activation, Activation):
        if width is not None:
            raise ValueError(
                f"`width` must be None if `activation` is an object with a width of its own, got {width!r} "
                f"and {activation!r}"
            )
        return activation
    kind = ACTIVATIONS.get(activation) if isinstance(activation, str) else None
    if kind is None:
        raise ValueError(f"`activation` must be an Activation or one of {', '.join(ACTIVATIONS)}, got {activation!r}")
    if width is None:
        return kind()
    if not issubclass(kind, SmoothActivation):
        raise ValueError(f"`width` must be None for the sharp activation {activation!r}, got {width!r}")
    if not (is_number(width) and width > 0):
        raise ValueError(f"`width` must be a number > 0, got {width!r}")
    if not 1 / MAX_WIDTH <= width <= MAX_WIDTH:
        raise ValueError(f"`width` must be between {1 / MAX_WIDTH:g} and {MAX_WIDTH:g}, got {width!r}")
    return kind(width)


def named_density(density: Any, activation: Activation) -> Density | None:
    """Return the density for the parameter, or None for "auto"."""
    if isinstance(density, Density):
        return density
    if isinstance(density, str) and density in DENSITIES:
        return DENSITIES[density](activation.order)
    if not (isinstance(density, str) and density == "auto"):
        raise ValueError(f"`density` must be a Density, 'auto' or one of {', '.join(DENSITIES)}, got {density!r}")
    return None


def default_density(density: Any, jet: Jet, activation: Activation) -> tuple[Density, list[Warning]]:
    """Return the density and warnings.

    For "auto" this is nonlocal sampling if the derivatives that it needs are known and not all zero, else uniform
    sampling.
    """
    named = named_density(density, activation)
    if named is not None:
        return named, []
    order = sampling_order(jet, activation)
    warnings = zero_derivatives(jet, order)
    nonlocal_ = Nonlocal(order)
    return (nonlocal_, []) if nonlocal_.needs <= jet.known and not warnings else (Uniform(), warnings)


def as_generator(random_state: Any) -> np.random.Generator:
    """Return the random generator for the parameter ``random_state``."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    seed = random_state
    if not isinstance(seed, Integral):
        seed = check_random_state(seed).randint(2**31 - 1)
    if seed < 0:
        raise ValueError(f"`random_state` must be a whole number >= 0, a generator or None, got {seed}")
    return np.random.default_rng(int(seed))


def sampling_order(jet: Jet, activation: Activation) -> int:
    """Return the order of the derivatives to sample from: the order of the activation, or 1 without Hessians."""
    return 1 if activation.order == 1 or ("hessians" not in jet.known and "gradients" in jet.known) else 2


def zero_derivatives(jet: Jet, order: int) -> list[Warning]:
    """Return a warning if derivatives are known but all zero."""
    kind = DERIVATIVE_KINDS[order]
    if kind not in jet.known or np.any(jet.derivative_rows(order)):
        return []
    return [UserWarning(f"all known {kind} are zero: hyperplanes cannot be sampled from them")]
