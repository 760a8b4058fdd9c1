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
SHOWN = 60  # characters of a damaged entry, in messages
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
        with store.transaction() as base:
            application, version = (base.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS)
            if application != APPLICATION:
                raise FileFormatError(f"a study of nurf was expected, got a database of application {application}")
            if version != VERSION:
                raise FileFormatError(f"the version must be {VERSION}, got {version}: update nurf to read it")
            tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if missing := {"study", "runs", "answers"} - tables:
                raise FileFormatError(f"a study has the tables study, runs and answers, got none for {sorted(missing)}")
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
        """Enter an exclusive transaction: all of its changes are written at the end, or none.

        Raise a ``FileFormatError`` with the name of the file if it is damaged.
        """
        try:
            with self._lock, self._connected() as base:
                base.execute("BEGIN IMMEDIATE")
                try:
                    yield base
                except BaseException:
                    if base.in_transaction:  # SQLite may have ended it
                        base.execute("ROLLBACK")
                    raise
                base.execute("COMMIT")
        except FileFormatError as error:
            raise FileFormatError(f"{self.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:  # locked, full and others, which are no damage
                raise
            raise FileFormatError(f"{self.path}: SQLite cannot read the file: {error}") from error

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
            found = base.execute("SELECT name, value FROM study")
            return {name: _parsed(f"the entry {name}", value) for name, value in found}

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
            answers = {n_runs: _parsed(f"the answer of {n_runs} runs", value) for n_runs, value in found}
        if wrong := [n for n, answer in answers.items() if not (isinstance(answer, dict) and "loss" in answer)]:
            raise FileFormatError(f"{self.path}: the answer of {wrong[0]} runs must have a loss")
        return answers

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
    runs = [
        Run(**{name: _read(f"{name} of run {row[0]}", name, value) for name, value in zip(COLUMNS, row, strict=True)})
        for row in found
    ]
    k = next((len(run.y) for run in runs if isinstance(run.y, tuple)), 0)
    for run in runs:
        if not _is_sound(run, k):
            raise FileFormatError(f"run {run.run} must have a state, inputs and {k} values with gradients, got {run}")
    return runs


def _is_sound(run: Run, k: int) -> bool:
    """Return whether a run has a known state and inputs, and if it is done, ``k`` values, maybe with gradients."""
    numbers = [run.x] if run.y is None else [run.x, run.y]
    numbers += [] if run.gradients is None else [*run.gradients]
    if not all(isinstance(row, tuple) and all(isinstance(each, float) for each in row) for row in numbers):
        return False
    sizes = (len(run.y), k if run.gradients is None else len(run.gradients)) if run.y is not None else (k, k)
    return run.state in (ASKED, DONE, FAILED) and (run.y is not None) == (run.state == DONE) and sizes == (k, k)


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


def _read(what: str, name: str, value: Any) -> Any:
    if name not in TUPLES or value is None:
        return value
    return _with_nan(_parsed(what, value))


def _parsed(what: str, text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{what} must be JSON, got {str(text)[:SHOWN]!r}: {error}") from error


def _with_nan(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_with_nan(each) for each in value)
    return np.nan if value is None else float(value) if isinstance(value, int | float) else value


def as_array(runs: Sequence[Run], name: str) -> Array:
    """Return a field of runs as an array."""
    return np.array([getattr(run, name) for run in runs], float)
