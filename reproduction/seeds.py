"""Keys and seeds that depend on nothing but their content."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np


def digest(*parts: Any) -> str:
    """Return the SHA-256 of the parts as canonical JSON; floats are written with all their digits."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def seed(*parts: Any) -> int:
    """Return a seed that depends on ``parts`` only."""
    return int(digest(*parts)[:15], 16)


def generator(value: int) -> np.random.Generator:
    """Return the random number generator of a seed."""
    return np.random.default_rng(np.random.SeedSequence(value))
