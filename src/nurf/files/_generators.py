"""Random generators as numbers: the kind and the state of a generator."""

from __future__ import annotations

from typing import Any

import numpy as np

BIT_GENERATORS: dict[str, Any] = {"PCG64": np.random.PCG64, "MT19937": np.random.MT19937}
LAST = 624  # numbers in the state of MT19937; NumPy would read beyond them if the position were larger
KINDS: dict[str, Any] = {"Generator": np.random.Generator, "RandomState": np.random.RandomState}


def state_of(generator: Any) -> dict[str, Any]:
    """Return the kind and the state of a generator as a flat dict of numbers, and an array for MT19937."""
    legacy = type(generator) is np.random.RandomState
    state = generator.get_state(legacy=False) if legacy else generator.bit_generator.state
    if state["bit_generator"] not in BIT_GENERATORS or (legacy and state["bit_generator"] != "MT19937"):
        names = " or ".join(BIT_GENERATORS)
        raise TypeError(f"random generators must be {names}, got {state['bit_generator']}")
    flat = {name: value for name, value in state.items() if name != "state"} | state["state"]
    return {"kind": "RandomState" if legacy else "Generator", **flat}


def generator_of(flat: dict[str, Any]) -> Any:
    """Return the generator with the given kind and state."""
    kind, name = KINDS[flat.pop("kind")], flat.pop("bit_generator")
    bits = BIT_GENERATORS[name]()
    gauss = {key: flat.pop(key) for key in ("has_gauss", "gauss") if key in flat}
    inner = {key: flat.pop(key) for key in (("key", "pos") if name == "MT19937" else ("state", "inc"))}
    if name == "MT19937":
        key, place = inner["key"], inner["pos"]
        if not (type(place) is int and 0 <= place <= LAST) or np.shape(key) != (LAST,) or key.dtype != np.uint32:
            raise ValueError(f"the state of MT19937 must be {LAST} numbers and a place among them, got {place!r}")
    state: dict[str, Any] = {"bit_generator": name, "state": inner}
    bits.state = state | flat
    generator = kind(bits)
    if kind is np.random.RandomState:
        generator.set_state(state | gauss)
    return generator
