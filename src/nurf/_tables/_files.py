"""Tables from and to files: CSV, Parquet and NPZ."""

from __future__ import annotations

import io
import os
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

try:
    import pandas as pd
except ModuleNotFoundError as error:
    raise ImportError('tables need pandas: pip install "nurf[cli]"') from error

from nurf.files import write_atomically

STANDARD = Path("-")  # the standard input or output
SEPARATORS = ",;\t"
PRECISION = "float_precision"  # pandas deprecates the option, whose value is now the default
EXACT: Any = {PRECISION: "round_trip"} if PRECISION in signature(pd.read_csv).parameters else {}


@dataclass(frozen=True, eq=False)
class Table:
    """The table in a file.

    Parameters
    ----------
    frame : DataFrame
        The columns. The index is the line numbers of the file, or the row numbers, from 1 on.
    name : str
        The name of the file.
    row : str
        The word for a row in messages: "line" or "row".
    """

    frame: Any
    name: str
    row: str


def read_table(path: Path) -> Table:
    """Return the table in a file, whose suffix determines its format. ``-`` is the standard input, as CSV.

    Raises
    ------
    OSError
        If the file does not exist.
    ValueError
        If the file is not a table; the message names the file.
    """
    reader = _read_csv if path == STANDARD else _kind_of(path).read
    name = "standard input" if path == STANDARD else path.name
    try:
        table = reader(path)
    except ImportError:
        raise
    except Exception as error:  # a damaged file can make readers raise any error
        if getattr(error, "filename", None) is not None:  # the file cannot be opened
            raise
        raise ValueError(f"{name}: {error}") from error
    repeated = [column for column, count in Counter(table.frame.columns).items() if count > 1]
    if repeated:
        raise ValueError(f"{name}: columns must have different names, got {repeated[0]!r} more than once")
    if not len(table.frame):
        raise ValueError(f"{name}: there must be at least one row below the names of the columns, got none")
    return table


def write_table(frame: Any, path: Path) -> None:
    """Write a frame to a file atomically; the suffix determines the format. ``-`` is the standard output, as CSV."""
    if path != STANDARD:
        write_bytes(_kind_of(path).write(frame), path)
        return
    try:
        frame.to_csv(sys.stdout, index=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python reports an error at exit


def write_text(text: str, path: Path) -> None:
    """Write a text to a file atomically, in UTF-8."""
    write_bytes(text.encode(), path)


def write_bytes(data: bytes, path: Path) -> None:
    """Write bytes to a file atomically."""
    require_target(path)
    write_atomically(path, [data])


def require_target(path: Path, table: bool = False) -> None:
    """Raise an error if a file cannot be written, or is no known kind of table; called before any work."""
    if table and path == STANDARD:
        return
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: expected the name of a file")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder} for {path.name}")
    if not os.access(path if path.exists() and not path.is_file() else folder, os.W_OK):
        raise PermissionError(f"{path} cannot be written: there is no permission for it")
    if table:
        _kind_of(path)


def _read_csv(path: Path) -> Table:
    """Return the table in a CSV file, indexed by lines; the column names are in line 1."""
    if path == STANDARD:
        text = sys.stdin.read().removeprefix("\ufeff")
        return Table(_parsed(lambda: io.StringIO(text)), "standard input", "line")
    return Table(_parsed(lambda: path), path.name, "line")


def _parsed(source: Callable[[], Any]) -> Any:
    """Return the frame of a text; each call of ``source`` returns the text from its start."""
    options: dict[str, Any] = {"skip_blank_lines": False, "skipinitialspace": True, "encoding": "utf-8-sig"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f".*{PRECISION}")
        warnings.simplefilter("error", pd.errors.ParserWarning)
        found = {separator: _names(source(), separator, options) for separator in SEPARATORS}
        separator = max(found, key=lambda separator: len(found[separator]))
        names = found[separator]
        if not any(name.strip() for name in names):
            raise ValueError("the first line must hold the names of the columns, got an empty line")
        numbers = [name for name in names if _is_number(name)]
        if numbers:
            raise ValueError(f"the first line must hold the names of the columns, got the number {numbers[0].strip()}")
        try:
            frame = pd.read_csv(source(), sep=separator, index_col=False, low_memory=False, **options, **EXACT)
        except pd.errors.ParserWarning as error:
            raise ValueError(f"all lines must have as many entries as the first, {len(names)}, got more") from error
    frame.columns = [name.strip() for name in names]
    frame.index = frame.index + 2 + sum(name.count("\n") for name in names)  # rows are counted in lines
    return frame.dropna(how="all")


def _names(source: Any, separator: str, options: dict[str, Any]) -> list[str]:
    """Return the entries of the first row; quoted entries may contain separators and line breaks."""
    try:
        row = pd.read_csv(source, sep=separator, header=None, nrows=1, dtype=str, keep_default_na=False, **options)
    except pd.errors.EmptyDataError:
        return []
    return [str(name) for name in row.iloc[0]]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip().lower() not in ("nan", "inf", "infinity")  # these may be names


def _read_parquet(path: Path) -> Table:
    with path.open("rb"):  # so that a missing file is an OSError for every Parquet engine
        pass
    frame = _with_arrow(lambda: pd.read_parquet(path))
    frame.columns = [str(name) for name in frame.columns]
    return Table(frame.set_axis(range(1, len(frame) + 1)), path.name, "row")


def _read_npz(path: Path) -> Table:
    """Return the arrays of an NPZ file as columns.

    ``X`` of shape (n, d) is ``x0, x1, ...``; ``y`` (n, k) is ``y0, y1, ...``; ``gradients`` (n, d) or (n, k, d) is
    ``dy_x0, ...`` or ``dy0_x0, ...``. Other arrays must have shape (n,).
    """
    columns: dict[str, Any] = {}
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("expected arrays with names in an NPZ file, got a file of another kind, or a part of one")
        with np.load(file, allow_pickle=False) as arrays:
            for name in arrays.files:
                columns |= _npz_columns(name, arrays[name])
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"all arrays must have the same number of rows, got {lengths}")
    frame = pd.DataFrame(columns)
    return Table(frame.set_axis(range(1, len(frame) + 1)), path.name, "row")


def _npz_columns(name: str, array: Any) -> dict[str, Any]:
    n_axes = array.ndim
    if n_axes == 1:
        return {name: array}
    if n_axes == 2 and name in ("X", "y", "gradients"):
        stem = {"X": "x", "y": "y", "gradients": "dy_x"}[name]
        return {f"{stem}{j}": column for j, column in enumerate(array.T)}
    if n_axes == 3 and name == "gradients":
        return {f"dy{q}_x{j}": array[:, q, j] for q in range(array.shape[1]) for j in range(array.shape[2])}
    raise ValueError(
        f"array {name!r} must have shape (n,), unless it is `X` or `y` with two axes or `gradients` with two or "
        f"three, got {array.shape}"
    )


def _csv(frame: Any, separator: str = ",") -> bytes:
    text: str = frame.to_csv(index=False, sep=separator, lineterminator="\n")
    return text.encode()


def _parquet(frame: Any) -> bytes:
    buffer = io.BytesIO()
    _with_arrow(lambda: frame.to_parquet(buffer, index=False))
    return buffer.getvalue()


def _npz(frame: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name: frame[name].to_numpy() for name in frame.columns})
    return buffer.getvalue()


def _with_arrow(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install pyarrow") from error


@dataclass(frozen=True)
class Kind:
    """The functions that read and write files of one format."""

    read: Callable[[Path], Table]
    write: Callable[[Any], bytes]


KINDS = {
    ".csv": Kind(_read_csv, _csv),
    ".tsv": Kind(_read_csv, lambda frame: _csv(frame, "\t")),
    ".txt": Kind(_read_csv, _csv),
    ".parquet": Kind(_read_parquet, _parquet),
    ".npz": Kind(_read_npz, _npz),
}


def _kind_of(path: Path) -> Kind:
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"{path.name}: the name of a table must end with {', '.join(KINDS)}, got {path.suffix!r}")
    return KINDS[path.suffix.lower()]
