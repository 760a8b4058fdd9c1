"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step: an interrupted run leaves the old file or the new one, never a part of it."""
    write_with(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_with(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary file in the same folder and with the same suffix, then rename it to ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.chmod(0o644)  # mkstemp creates files that only their owner can read
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
