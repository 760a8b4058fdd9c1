"""The state of a fit to blocks, written down between them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from nurf.files import RESULTS, FileFormatError, Registry, read, write

INTERVAL = 10.0  # seconds between two states that are written, at least


@dataclass(frozen=True, eq=False)
class Kept:
    """What a checkpoint holds.

    Parameters
    ----------
    owner : str
        The fingerprint of the data and the parameters.
    fit : object
        The fit to a sample of the rows.
    state : object
        What was made of the blocks so far.
    """

    owner: str
    fit: Any
    state: Any


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A file with the state of a fit. It is replaced in one step, so that it is whole whenever the process is killed.

    It holds numbers and names, and no code, as the files of models do.

    Parameters
    ----------
    path : path-like
    owner : str
        The fingerprint of the data and the parameters. The state of another fit is refused.
    parts : tuple of type
        Dataclasses that states are made of, beside those of fits.
    """

    path: Path
    owner: str
    parts: tuple[type, ...] = ()

    @property
    def registry(self) -> Registry:
        """The classes that the file may hold."""
        return RESULTS.extended(dataclasses=(Kept, *self.parts))

    def read(self) -> Kept | None:
        """Return what was written last, or None if there is no file."""
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
        """Write a fit to a sample and the state of what follows, unless the file has been written a moment ago."""
        if not self.path.exists() or time.time() - self.path.stat().st_mtime >= INTERVAL:
            write(self.path, Kept(self.owner, fit, state), self.registry)

    def remove(self) -> None:
        """Remove the file: the fit is done."""
        self.path.unlink(missing_ok=True)


def fingerprint(*parts: Any) -> str:
    """Return a hash of arrays, numbers and strings, the same in every process."""
    hasher = blake2b(digest_size=16)
    for part in parts:
        array = np.ascontiguousarray(part) if isinstance(part, np.ndarray) else None
        hasher.update(repr(part).encode() if array is None else array.tobytes() + repr(array.shape).encode())
    return hasher.hexdigest()
