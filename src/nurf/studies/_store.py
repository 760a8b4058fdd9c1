"""The file of a study: an SQLite database, in which each change is one transaction."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nurf._types import Array
from nurf.files import FileFormatError

APPLICATION = int.from_bytes(b"NURF", "big")  # the `application_id` of the database
VERSION = 1  # its `user_version`
WAITING = 300.0  # seconds for a file that another process is writing
MAGIC = b"SQLite format 3\0"
TABLES = """
CREATE TABLE study (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE runs (
    run INTEGER PRIMARY KEY AUTOINCREMENT, state TEXT NOT NULL, origin TEXT NOT NULL, x TEXT NOT NULL,
    compute TEXT NOT NULL, direction TEXT, y TEXT, gradients TEXT, message TEXT, cost REAL, owner TEXT,
    asked REAL, alive REAL, told REAL
);
CREATE TABLE answers (runs INTEGER PRIMARY KEY, value TEXT NOT NULL);
"""
ASKED, DONE, FAILED = "asked", "done", "failed"  # states of runs


@dataclass(frozen=True)
class Run:
    """A run of the simulator.

    Parameters
    ----------
    run : int
        Its number; 0 before it has one.
    x : tuple of float
        The inputs that vary.
    origin : str
        Why it was asked: "design", "filling" or "goal"; "told" if it was not.
    state : str
        "asked", "done" or "failed".
    compute : str
        What was asked for: "value", "gradient" or "direction".
    direction : tuple of float, optional
        The direction of the derivative that was asked for.
    y : tuple of float, optional
        The values of all outputs.
    gradients : tuple of tuples of float, optional
        The partial derivatives of all outputs, NaN if unknown.
    message : str, optional
        Why it failed.
    cost : float, optional
    owner : str, optional
        The process that makes the run.
    alive : float, optional
        When the process last said that it is alive.
    """

    run: int
    x: tuple[float, ...]
    origin: str = "told"
    state: str = ASKED
    compute: str = "value"
    direction: tuple[float, ...] | None = None
    y: tuple[float, ...] | None = None
    gradients: tuple[tuple[float, ...], ...] | None = None
    message: str | None = None
    cost: float | None = None
    owner: str | None = None
    alive: float | None = None


COLUMNS = ("run", "x", "origin", "state", "compute", "direction", "y", "gradients", "message", "cost", "owner", "alive")
TUPLES = ("x", "direction", "y", "gradients")


@dataclass(eq=False)
class Store:
    """The database of a study: in a file, or in memory.

    A file is opened for each transaction, so that processes and threads share it, and a fork harms nothing.
    """

    path: Path | None
    _memory: sqlite3.Connection | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @classmethod
    def create(cls, path: str | os.PathLike[str] | None, entries: dict[str, Any]) -> Store:
        """Return a new database with some entries; raise a ``FileExistsError`` if there is a file."""
        if path is None:
            store = cls(None, sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False))
            store._fill(entries)
            return store
        target = Path(os.path.abspath(path))
        if target.exists():
            raise FileExistsError(f"{target} exists: `nurf.load` opens it, or choose another name")
        temporary = target.with_name(f"{target.name}.{secrets.token_hex(8)}.tmp")
        try:
            cls(temporary)._fill(entries)
            _moved(temporary, target)
        except FileExistsError:
            raise FileExistsError(f"{target} exists: `nurf.load` opens it, or choose another name") from None
        finally:
            temporary.unlink(missing_ok=True)
        return cls(target)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Store:
        """Return the database in a file; raise a ``FileFormatError`` if it is not one of a study."""
        store = cls(Path(os.path.abspath(path)))
        os.stat(path)  # SQLite would make a new file
        try:
            with store.transaction() as base:
                application, version = (base.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS)
                base.execute("SELECT value FROM study").fetchall()
        except sqlite3.DatabaseError as error:
            raise FileFormatError(
                f"the file must be a study of nurf, got one that SQLite cannot read: {error}"
            ) from error
        if application != APPLICATION:
            raise FileFormatError(f"the file must be a study of nurf, got a database of application {application}")
        if version != VERSION:
            raise FileFormatError(f"the version of the study must be {VERSION}, got {version}: update nurf to read it")
        return store

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy to another file, in one step."""
        target = Path(os.path.abspath(path))
        if target == self.path:
            return
        temporary = target.with_name(f"{target.name}.{secrets.token_hex(8)}.tmp")
        try:
            with contextlib.closing(sqlite3.connect(temporary)) as copy, self._lock, self._connected() as base:
                base.backup(copy)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Enter an exclusive transaction: all of its changes are written at the end, or none."""
        with self._lock, self._connected() as base:
            base.execute("BEGIN IMMEDIATE")
            try:
                yield base
            except BaseException:
                base.execute("ROLLBACK")
                raise
            base.execute("COMMIT")

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if self._memory is not None:
            yield self._memory
            return
        base = sqlite3.connect(self.path or "", timeout=WAITING, isolation_level=None)
        with contextlib.closing(base):
            base.execute("PRAGMA synchronous = FULL")
            yield base

    def _fill(self, entries: dict[str, Any]) -> None:
        with self._connected() as base:
            base.executescript(TABLES)
            for name, value in zip(PRAGMAS, (APPLICATION, VERSION), strict=True):
                base.execute(f"PRAGMA {name} = {value}")
        self.set(entries)

    def set(self, entries: dict[str, Any]) -> None:
        """Write entries of the study."""
        with self.transaction() as base:
            rows = [(name, json.dumps(value)) for name, value in entries.items()]
            base.executemany("INSERT OR REPLACE INTO study VALUES (?, ?)", rows)

    def entries(self) -> dict[str, Any]:
        """Return the entries of the study."""
        with self.transaction() as base:
            return {name: json.loads(value) for name, value in base.execute("SELECT name, value FROM study")}

    def runs(self) -> list[Run]:
        """Return all runs, in the order in which they were asked or told."""
        with self.transaction() as base:
            return runs_in(base)

    def keep_answer(self, n_runs: int, value: dict[str, Any]) -> None:
        """Write the answer from a number of runs."""
        with self.transaction() as base:
            base.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (n_runs, json.dumps(value)))

    def answers(self) -> dict[int, dict[str, Any]]:
        """Return a dict from numbers of runs to answers."""
        with self.transaction() as base:
            found = base.execute("SELECT runs, value FROM answers ORDER BY runs")
            return {n_runs: json.loads(value) for n_runs, value in found}

    def beat(self, owner: str) -> None:
        """Write that a process is alive."""
        with self.transaction() as base:
            base.execute("UPDATE runs SET alive = ? WHERE owner = ? AND state = ?", (time.time(), owner, ASKED))

    def release(self, owner: str, name: str) -> None:
        """Give the unfinished runs of a process to a new owner, by name."""
        with self.transaction() as base:
            base.execute("UPDATE runs SET owner = ? WHERE owner = ? AND state = ?", (name, owner, ASKED))

    def adopt(self, owner: str, abandoned: Any) -> list[Run]:
        """Return runs that other processes abandoned, which now belong to ``owner``."""
        with self.transaction() as base:
            found = [run for run in runs_in(base) if run.state == ASKED and run.owner and abandoned(run)]
            rows = [(owner, time.time(), run.run) for run in found]
            base.executemany("UPDATE runs SET owner = ?, alive = ? WHERE run = ?", rows)
        return found


PRAGMAS = ("application_id", "user_version")


def _moved(temporary: Path, target: Path) -> None:
    """Rename a new file; raise a ``FileExistsError`` if another process was faster."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except (OSError, AttributeError):  # no hard links
        os.rename(temporary, target)


def runs_in(base: sqlite3.Connection) -> list[Run]:
    """Return all runs of a database."""
    found = base.execute(f"SELECT {', '.join(COLUMNS)} FROM runs ORDER BY run")
    return [Run(**{name: _read(name, value) for name, value in zip(COLUMNS, row, strict=True)}) for row in found]


def insert(base: sqlite3.Connection, runs: Iterable[Run]) -> list[int]:
    """Add runs, and return their numbers."""
    now, numbers = time.time(), []
    names = [name for name in COLUMNS if name != "run"]
    for run in runs:
        values = [_written(name, getattr(run, name)) for name in names]
        columns = f"{', '.join(names)}, asked, told"
        marks = ", ".join("?" * (len(names) + 2))
        told = None if run.state == ASKED else now
        cursor = base.execute(f"INSERT INTO runs ({columns}) VALUES ({marks})", [*values, now, told])
        numbers.append(int(cursor.lastrowid or 0))
    return numbers


def finish(base: sqlite3.Connection, run: Run) -> None:
    """Write the result of a run that was asked."""
    names = ("state", "y", "gradients", "message", "cost")
    values = [_written(name, getattr(run, name)) for name in names]
    changes = ", ".join(f"{name} = ?" for name in names)
    base.execute(f"UPDATE runs SET {changes}, told = ? WHERE run = ?", [*values, time.time(), run.run])


def _written(name: str, value: Any) -> Any:
    if name not in TUPLES or value is None:
        return value
    return json.dumps(_with_null(value))


def _with_null(value: Any) -> Any:
    """Return nested lists of numbers with None instead of NaN, which JSON lacks."""
    if isinstance(value, Sequence):
        return [_with_null(each) for each in value]
    return None if np.isnan(value) else float(value)


def _read(name: str, value: Any) -> Any:
    if name not in TUPLES or value is None:
        return value
    return _with_nan(json.loads(value))


def _with_nan(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_with_nan(each) for each in value)
    return np.nan if value is None else float(value)


def as_array(runs: Sequence[Run], name: str) -> Array:
    """Return a field of runs as an array."""
    return np.array([getattr(run, name) for run in runs], float)
