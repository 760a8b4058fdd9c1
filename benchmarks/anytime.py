"""Measure what `Surrogate` makes of little time: errors against seconds, on every second function of uqtestfuns.

    make bench-anytime
    python benchmarks/anytime.py --out results.csv [--budgets 0.1 1] [--functions Ishigami] [--data values]
    python benchmarks/anytime.py --table results.csv

The first form fits and adds a row of `results.csv` for each function, data and budget; rows that are there already are
kept, so that a run can be stopped and taken up again. The second prints the summary as Markdown and draws it beside
the file. Functions and samples are those of `collection.py`.

Each error is divided by the error of scikit-learn's Gaussian process with a length for each input, which sees the
values only and takes the time that it takes. Fits run one after another, on one thread, after a small one that loads
what is loaded when it is needed. Seconds are those of a clock: nothing else should run meanwhile.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from collection import FUNCTIONS, ROUNDING, geometric_mean, make_data, make_peer, number, usable
from measuring import measure, print_table, read
from nurf import Surrogate

BUDGETS = (0.03, 0.1, 0.3, 1.0, 3.0, 20.0)
DATA = ("gradients", "values")
LABELS = {"gradients": "values and gradients", "values": "values only"}
PROCESS = 0.0  # the budget that stands for the Gaussian process
SHARE, SECONDS = 0.1, 0.05  # what a fit may take beyond its budget: a share of it, and seconds
KEY = ["function", "data", "budget"]
COLUMNS = [*KEY, "dimension", "samples", "error", "reported", "seconds", "engine"]


def run(name, data, budget):
    """Return the row of one fit."""
    X, y, gradients, fresh, truth = make_data(name)
    options = {"gradients": gradients} if data == "gradients" else {}
    row = dict(zip(KEY, (name, data, budget), strict=True)) | {"dimension": X.shape[1], "samples": len(X)}
    unit = np.std(truth)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Surrogate(0.01, random_state=0).fit(X[:20], y[:20])
        process = budget == PROCESS
        model = make_peer("GP", X.shape[1]) if process else Surrogate(budget, random_state=0)
        start = time.perf_counter()
        model.fit(X, y, **({} if process else options))
        row["seconds"] = time.perf_counter() - start
        error = float(np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)) / unit)
    if process:
        return row | {"error": error, "reported": "", "engine": "process"}
    return row | {"error": error, "reported": model.estimated_error_ / unit, "engine": model.engine_}


def summaries(rows):
    """Yield for each kind of data and budget: the ratios of errors by function, and the seconds by function."""
    table = {(row["function"], row["data"], float(row["budget"])): row for row in rows}
    for data in DATA:
        for budget in sorted({float(row["budget"]) for row in rows}):
            some = {name: row for (name, kind, given), row in table.items() if (kind, given) == (data, budget)}
            ratios = {
                name: max(number(row["error"]), ROUNDING) / max(number(table[name, data, PROCESS]["error"]), ROUNDING)
                for name, row in some.items()
                if (name, data, PROCESS) in table
            }
            if ratios:
                yield data, budget, ratios, {name: float(some[name]["seconds"]) for name in ratios}


def print_summary(rows):
    """Print the geometric mean of the ratios, on how many functions they are below 1, and the seconds."""
    cells = []
    for data, budget, ratios, seconds in summaries(rows):
        if budget == PROCESS:
            kept = ""
        else:
            kept = f"{sum(each <= (1 + SHARE) * budget + SECONDS for each in seconds.values())} of {len(seconds)}"
        taken = list(seconds.values())
        cells.append(
            [
                data,
                f"{budget:g}" if budget != PROCESS else "the process",
                f"{geometric_mean(ratios):.2f}",
                f"{sum(ratio < 1 for ratio in ratios.values())} of {len(ratios)}",
                f"{np.median(taken):.2g}",
                f"{max(taken):.2g}",
                kept,
            ]
        )
    header = ["data", "seconds given", "error / error of the process", "better on", "taken, median", "largest", "kept"]
    print_table(header, cells)


def draw(rows, path):
    """Draw the geometric mean of the ratios against the median of the seconds."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    for data, style in zip(DATA, ("o-", "s--"), strict=True):
        points = [
            (np.median(list(seconds.values())), geometric_mean(ratios))
            for kind, budget, ratios, seconds in summaries(rows)
            if kind == data and budget != PROCESS
        ]
        if points:
            ax.loglog(*np.transpose(points), style, color="C0", label=f"Surrogate, {LABELS[data]}")
    process = next(seconds for _, budget, _, seconds in summaries(rows) if budget == PROCESS)
    ax.plot(
        np.median(list(process.values())), 1.0, "D", color="C1", label="Gaussian process (scikit-learn), values only"
    )
    ax.set(xlabel="median seconds of a fit on one core", ylabel="error / error of a Gaussian process (scikit-learn)")
    ax.set_title(f"{len(process)} test functions (UQTestFuns)")
    ax.grid(which="major", alpha=0.3)
    ax.legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--budgets", nargs="+", type=float, default=BUDGETS, metavar="SECONDS")
    parser.add_argument("--functions", nargs="+", default=FUNCTIONS, choices=FUNCTIONS, metavar="NAME")
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "anytime.csv")
    parser.add_argument("--table", type=Path, metavar="CSV", help="print this file, and fit nothing")
    arguments = parser.parse_args(arguments)
    path = arguments.table or arguments.out
    if not arguments.table:
        names = usable(arguments.functions)
        budgets = (PROCESS, *arguments.budgets)
        tasks = [(name, data, budget) for budget in budgets for data in arguments.data for name in names]
        measure(path, COLUMNS, KEY, tasks, run)
    print_summary(read(path))
    draw(read(path), path.with_suffix(".png"))


if __name__ == "__main__":
    main()
