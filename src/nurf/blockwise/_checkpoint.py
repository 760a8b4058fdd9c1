"""Checkpoints of fits to blocks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from nurf.files import RESULTS, FileFormatError, Registry, read, write

INTERVAL = 10.0  # smallest number of seconds between two checkpoints


@dataclass(frozen=True, eq=False)
class Kept:
    """The content of a checkpoint.

    Parameters
    ----------
    owner : str
        The fingerprint of the data and the parameters.
    fit : object
        The fit to a sample of the rows.
    state : object
        The state after the blocks so far.
    """

    owner: str
    fit: Any
    state: Any


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A file with the state of a fit, which is replaced atomically, and so complete if the process is killed.

    Like the files of models, a checkpoint contains numbers and names, and no code.

    Parameters
    ----------
    path : path-like
    owner : str
        The fingerprint of the data and the parameters. States with another fingerprint are refused.
    parts : tuple of type
        The dataclasses of states, in addition to the dataclasses of fits.
    """

    path: Path
    owner: str
    parts: tuple[type, ...] = ()

    @property
    def registry(self) -> Registry:
        """The classes that the file may contain."""
        return RESULTS.extended(dataclasses=(Kept, *self.parts))

    def read(self) -> Kept | None:
        """Return the last fit and state, or None if there is no file."""
        if not self.path.exists():
            return None
        try:
            kept: Kept = read(self.path, self.registry, Kept)
        except FileFormatError as error:
            raise ValueError(f"`checkpoint` must be a file that `fit` wrote, got {self.path}: {error}") from error
        if kept.owner != self.owner:
            raise ValueError(
                f"`checkpoint` must belong to a fit with the same data, blocks, parameters and seed, got {self.path} "
                "of another one: delete it to start anew, or name another file"
            )
        return kept

    def write(self, fit: Any, state: Any) -> None:
        """Write a fit to a sample and the state after some blocks, unless the file was written a moment ago."""
        if not self.path.exists() or time.time() - self.path.stat().st_mtime >= INTERVAL:
            write(self.path, Kept(self.owner, fit, state), self.registry)

    def remove(self) -> None:
        """Remove the file after the fit."""
        self.path.unlink(missing_ok=True)


def fingerprint(*parts: Any) -> str:
    """Return a hash of arrays, numbers and strings, the same in every process."""
    hasher = blake2b(digest_size=16)
    for part in parts:
        array = np.ascontiguousarray(part) if isinstance(part, np.ndarray) else None
        hasher.update(repr(part).encode() if array is None else array.tobytes() + repr(array.shape).encode())
    return hasher.hexdigest()
