"""What benchmarks share: rows of a table, calls that are timed in turn, files of results, and the machine."""

from __future__ import annotations

import csv
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

PACKAGES = ("numpy", "scipy", "scikit-learn", "nurf", "torch", "gpytorch", "smt", "jenn", "xrfm", "swimnetworks")


@dataclass(frozen=True)
class Row:
    """A row of the table: what ours takes, and what the bare calls take that it cannot avoid.

    Attributes
    ----------
    name : str
    ours, bare : float
        Seconds, or other numbers in ``unit``.
    ratio : float
        The median over the repetitions of ours over bare, which both saw the same load.
    aim : float or None
        What the ratio should not exceed.
    unit : str
    """

    name: str
    ours: float
    bare: float
    ratio: float
    aim: float | None = None
    unit: str = "s"

    @property
    def cells(self) -> list[str]:
        """The row as text."""
        verdict = "" if self.aim is None else f"{self.aim:g}" + ("" if self.ratio <= self.aim else ", missed")
        return [self.name, f"{self.ours:.3g} {self.unit}", f"{self.bare:.3g} {self.unit}", f"{self.ratio:.2f}", verdict]


def seconds(function: Callable[[], object], at_least: float = 2e-3) -> float:
    """Return the seconds of a call, of several if one takes less than ``at_least``."""
    start, number = time.perf_counter(), 0
    while True:
        function()
        number += 1
        passed = time.perf_counter() - start
        if passed >= at_least:
            return passed / number


def compare(
    name: str, ours: Callable[[], object], bare: Callable[[], object], repeats: int, aim: float | None = None
) -> Row:
    """Return the row of two functions that are called in turn; the least seconds of each, and the median ratio."""
    times = np.array([(seconds(ours), seconds(bare)) for _ in range(repeats)])
    mine, other = times.min(axis=0)
    return Row(name, float(mine), float(other), float(np.median(times[:, 0] / times[:, 1])), aim)


def slope(sizes: Iterable[float], values: Iterable[float]) -> float:
    """Return the power of the size by which values grow, from the two largest sizes."""
    (a, b), (y, z) = list(sizes)[-2:], list(values)[-2:]
    return float(np.log(z / y) / np.log(b / a))


def read(path: Path | str) -> list[dict[str, str]]:
    """Return the rows of a file of results."""
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def cell(value: object) -> str:
    """Return a value as it is written to a file of results."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def measure(
    path: Path,
    columns: Sequence[str],
    key: Sequence[str],
    tasks: Iterable[tuple[object, ...]],
    run: Callable[..., dict[str, object]],
    n_jobs: int = 1,
) -> None:
    """Run the tasks that are not yet in a file of results, and add a row for each as soon as it is ready.

    Parameters
    ----------
    path : Path
        The file; it is made if it is not there.
    columns : sequence of str
        Its columns. What else a row has is printed, and not written.
    key : sequence of str
        The columns that name a task, in the order of its entries.
    tasks : iterable of tuple
        The arguments of ``run``.
    run : callable
        Returns the row of a task.
    n_jobs : int
        The number of processes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", newline="") as file:
        file.seek(0)
        there = csv.DictReader(file)
        if there.fieldnames not in (None, list(columns)):
            raise ValueError(f"{path} must have the columns {list(columns)}, got {there.fieldnames}")
        done = {tuple(row[column] for column in key) for row in there}
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        if there.fieldnames is None:
            writer.writeheader()
        for row in _finished(run, [task for task in tasks if tuple(map(cell, task)) not in done], n_jobs):
            writer.writerow({name: cell(value) for name, value in row.items()})
            file.flush()
            others = [value for name, value in row.items() if name not in columns]
            print(*(cell(row.get(name, "-")) for name in columns), *others, flush=True)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table as Markdown."""
    print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for cells in rows:
        print(f"| {' | '.join(cells)} |")


def _finished(
    run: Callable[..., dict[str, object]], tasks: Sequence[tuple[object, ...]], n_jobs: int
) -> Iterator[dict[str, object]]:
    """Yield the rows of tasks as they are ready."""
    if n_jobs == 1:
        yield from (run(*task) for task in tasks)
        return
    with ProcessPoolExecutor(n_jobs) as pool:
        for future in as_completed([pool.submit(run, *task) for task in tasks]):
            yield future.result()


MEMORY = """
import sys
sys.path.insert(0, {folder!r})
def kilobytes(key):
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith(key)).split()[1])
def before():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # forgets the peak so far
    start.append(kilobytes("VmRSS"))
start = []
{code}
print(kilobytes("VmHWM") - start[0])
"""


def peak_above(code: str) -> float:
    """Return the megabytes that a Python program takes above what it had when it called ``before()``; Linux only.

    The program runs in a process of its own, with the folder of the benchmarks on its path.
    """
    if sys.platform != "linux":
        return float("nan")
    program = MEMORY.format(folder=str(Path(__file__).parent), code=code)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(run.stdout.split()[-1]) / 2**10


def machine() -> dict[str, object]:
    """Return the machine, the versions of what is installed, and the threads of linear algebra."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else [],
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
        "blas": sorted(
            {f"{one['internal_api']} {one.get('version')}, {one['num_threads']} threads" for one in _blas()}
        ),
        "date": time.strftime("%Y-%m-%d"),
    }


def _blas() -> list[dict[str, object]]:
    return [one for one in threadpool_info() if one["user_api"] == "blas"]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        if info.exists()
        else []
    )
    return names[0] if names else platform.processor()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def markdown(sections: dict[str, list[Row]], about: dict[str, object]) -> str:
    """Return all tables as Markdown."""
    lines = ["# Speed against bare calls", "", *(f"- {key}: {value}" for key, value in about.items())]
    for title, rows in sections.items():
        lines += ["", f"## {title}", "", "| what | ours | bare | ratio | aim |", "|---|---|---|---|---|"]
        lines += [f"| {' | '.join(row.cells)} |" for row in rows]
    return "\n".join(lines) + "\n"


def save(folder: Path, name: str, sections: dict[str, list[Row]], about: dict[str, object]) -> None:
    """Write all tables as Markdown and JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(markdown(sections, about))
    tables = {title: [asdict(row) for row in rows] for title, rows in sections.items()}
    (folder / f"{name}.json").write_text(json.dumps({"machine": about, "tables": tables}, indent=1) + "\n")
