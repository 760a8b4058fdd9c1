"""The container: a preamble of 64 bytes, a JSON header, and arrays, written atomically and checked when read."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"\x89NURF\r\n\x1a"  # text-mode transfers change it, as with PNG
FORMAT = (1, 0)  # readers refuse a newer major version, and read the known parts of a newer minor version
PREAMBLE = struct.Struct("<8sHHIQQ32s")  # magic, major, minor, zero, bytes of header and arrays, checksum
SIGNED = PREAMBLE.size - 32  # bytes of the preamble that the checksum covers
ALIGNMENT = 64  # of the header's end and of each array
MAX_HEADER = 2**24  # bytes; the header of a model takes some ten thousand
MAX_DEPTH = 8  # of nested brackets in the header
MAX_DIGITS = 64  # of a number in the header
BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)


class FileFormatError(ValueError):
    """The error if a file contains no fitted model, is damaged, or was written by a newer version."""


def padding(n: int) -> int:
    """Return the number of bytes that pad ``n`` bytes to the alignment."""
    return -n % ALIGNMENT


def pack(header: dict[str, Any], arrays: Sequence[memoryview]) -> list[bytes | memoryview]:
    """Return the parts of a file: preamble, header and arrays, each padded to the alignment."""
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode("ascii")
    text += b" " * padding(len(text))
    if len(text) > MAX_HEADER:
        raise ValueError(f"the description of a model must take at most {MAX_HEADER} bytes, got {len(text)}")
    parts: list[bytes | memoryview] = [text]
    for array in arrays:
        parts += [array, bytes(padding(array.nbytes))]
    size = sum(array.nbytes + padding(array.nbytes) for array in arrays)
    start = PREAMBLE.pack(MAGIC, *FORMAT, 0, len(text), size, b"")[:SIGNED]
    return [start + _checksum([start, *parts]), *parts]


def unpack(path: str | os.PathLike[str]) -> tuple[dict[str, Any], memoryview]:
    """Return the header and the bytes of the arrays of a file; raise a ``FileFormatError`` if it is damaged."""
    with open(path, "rb") as file:
        start = file.read(PREAMBLE.size)
        n_header, n_arrays, checksum = _read_preamble(start, os.fstat(file.fileno()).st_size)
        text, arrays = _read(file, n_header), _read(file, n_arrays)
    if _checksum([start[:SIGNED], text, arrays]) != checksum:
        raise FileFormatError("the checksum of the file does not match its contents: it is damaged")
    return _parse(text), memoryview(arrays)


def _read_preamble(start: bytes, size: int) -> tuple[int, int, bytes]:
    """Return the lengths of header and arrays, and the checksum, in a file of ``size`` bytes."""
    if start[: len(MAGIC)] != MAGIC:
        raise FileFormatError(
            f"this is not a file of nurf, which must start with {MAGIC!r}, got {start[: len(MAGIC)]!r}"
        )
    if len(start) < PREAMBLE.size:
        raise FileFormatError(f"a file of nurf must have at least {PREAMBLE.size} bytes, got {len(start)}")
    _, major, minor, zero, n_header, n_arrays, checksum = PREAMBLE.unpack(start)
    if major != FORMAT[0]:
        raise FileFormatError(
            f"the version of the format must be {FORMAT[0]}.x, got {major}.{minor}"
            + (": update nurf to read the file" if major > FORMAT[0] else "")
        )
    if zero:
        raise FileFormatError(f"bytes 12 to 15 must be zero, got {zero:#x}")
    if n_header > MAX_HEADER:
        raise FileFormatError(f"the header must have at most {MAX_HEADER} bytes, got {n_header}")
    if PREAMBLE.size + n_header + n_arrays != size:
        raise FileFormatError(
            f"the file must have {PREAMBLE.size} + {n_header} + {n_arrays} bytes, as in its preamble, got {size}"
        )
    return n_header, n_arrays, checksum


def _read(file: BinaryIO, n: int) -> bytes:
    data = file.read(n)
    if len(data) != n:
        raise FileFormatError(f"the file must have {n} more bytes, got {len(data)}")
    return data


def _checksum(parts: Sequence[bytes | memoryview]) -> bytes:
    """Return the SHA-256 hash of the concatenated parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def _parse(text: bytes) -> dict[str, Any]:
    """Return the parsed header; its depth and the lengths of numbers are limited."""
    try:
        header = text.decode("ascii")
        depth = deepest = 0
        for match in BRACKETS.finditer(header):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
            deepest = max(deepest, depth)
        if deepest > MAX_DEPTH:
            raise ValueError(f"brackets must be nested at most {MAX_DEPTH} deep, got {deepest}")
        result = json.loads(
            header, parse_int=_whole, parse_float=_real, parse_constant=_constant, object_pairs_hook=_unique
        )
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"the header must be JSON: {error}") from error
    if type(result) is not dict:
        raise FileFormatError(f"the header must be a JSON object, got a {type(result).__name__}")
    return result


def _whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"numbers must have at most {MAX_DIGITS} digits, got {len(text)}")
    return int(text)


def _real(text: str) -> float:
    if len(text) > MAX_DIGITS or not abs(float(text)) < float("inf"):
        raise ValueError(f"numbers must be finite with at most {MAX_DIGITS} digits, got {text[:MAX_DIGITS]}")
    return float(text)


def _constant(text: str) -> Any:
    raise ValueError(f"numbers must be finite, got {text}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("the names in an object must differ, got one of them twice")
    return result


def write_atomically(path: str | os.PathLike[str], parts: Sequence[bytes | memoryview]) -> None:
    """Write a file atomically: readers see the old file or the new one, even after a power cut.

    The bytes are written to a temporary file in the same folder, which is synced and then renamed. Its name starts with
    the name of the file, so that it can be found if the process is killed. A link stays a link, and a replaced file
    keeps its permissions. Devices and pipes cannot be replaced, and are written to directly.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with open(target, "wb") as file:  # an error if it is a folder
            file.writelines(parts)
        return
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(temporary, target.stat().st_mode & 0o7777)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError), _opened(target.parent) as folder:  # some systems cannot sync folders
        os.fsync(folder)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
