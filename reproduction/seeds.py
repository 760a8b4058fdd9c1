"""Names and seeds that are functions of their content, in every process and every order."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np


def digest(*parts: Any) -> str:
    """Return the SHA-256 of canonical JSON: the same in every process, and another for any other content."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def seed(*parts: Any) -> int:
    """Return a seed that depends on ``parts`` and nothing else."""
    return int(digest(*parts)[:15], 16)


def generator(value: int) -> np.random.Generator:
    """Return the random numbers of a seed."""
    return np.random.default_rng(np.random.SeedSequence(value))
