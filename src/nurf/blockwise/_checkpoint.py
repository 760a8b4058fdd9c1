"""The state of a pass over a stream, written down between blocks."""

from __future__ import annotations

import os
import pickle
import time
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

INTERVAL = 10.0  # seconds between two states that are written, at least


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A file with the state of a fit. It is replaced in one step, so that it is whole whenever the process is killed.

    The file is a pickle: read only files that you wrote.

    Parameters
    ----------
    path : str or path-like
    owner : str
        The fingerprint of the data and the parameters. The state of another fit is refused.
    """

    path: Path
    owner: str

    def read(self) -> tuple[Any, Any] | None:
        """Return the fit and the state that were written last, or None if there is no file."""
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file:
                owner, fit, state = pickle.load(file)
        except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, TypeError, ValueError) as error:
            raise ValueError(f"`checkpoint` must be a file that `fit` wrote, got {self.path}: {error}") from error
        if owner != self.owner:
            raise ValueError(
                f"`checkpoint` must belong to a fit with the same data, blocks, parameters and seed, got {self.path} "
                "of another one: delete it to start anew, or name another file"
            )
        return fit, state

    def write(self, fit: Any, state: Any) -> None:
        """Write a fit to a sample and the state of what follows, unless the file has been written a moment ago."""
        if self.path.exists() and time.time() - self.path.stat().st_mtime < INTERVAL:
            return
        part = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        with part.open("wb") as file:
            pickle.dump((self.owner, fit, state), file, protocol=pickle.HIGHEST_PROTOCOL)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path)

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
