"""Measure whether `Surrogate` keeps its budget of time, and what it makes of it.

    python benchmarks/budgets.py --out results.csv [--budgets 0.3 1] [--samples 30 300] [--dimensions 2] [--data values]
    python benchmarks/budgets.py --table results.csv [more.csv]

The first form fits and adds a row of `results.csv` for each budget, number of samples and of inputs, with and without
gradients; rows that are there already are kept, so that a run can be stopped and taken up again. The second prints one
or more of these files as Markdown.

The function is smooth, and its inputs matter less and less. Fits run one after another, on one thread, after a small
one that loads what is loaded when it is needed. Seconds are those of a clock: nothing else should run meanwhile, and
those of a core, which are written beside them, tell if something did. A budget is kept if a fit takes at most a tenth
of it and a tenth of a second longer. The error is the root mean squared error on 3000 fresh points, in units of the
standard deviation of the values there.
"""

import argparse
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from measuring import measure, print_table, read
from nurf import Surrogate
from search import exact_gradients

BUDGETS = (0.05, 0.3, 1.0, 5.0, 20.0)
SAMPLES = (30, 300, 3000)
DIMENSIONS = (2, 8, 20)
DATA = ("gradients", "values")
SHARE, SECONDS = 0.1, 0.1  # what a fit may take beyond its budget: a share of it, and seconds
FRESH = 3000
KEY = ["budget", "samples", "dimension", "data"]
COLUMNS = [*KEY, "seconds", "seconds of a core", "error", "reported", "engine"]


def fading(X):
    """Return a smooth function of any number of inputs, each of which matters less than the one before."""
    weights = 1 / np.arange(1, 1 + X.shape[1]) ** 2
    return np.sin(2 * X @ weights) + np.exp(-(X**2) @ weights)


def fit(budget, samples, dimension, data):
    """Return a fitted model, and what the fit took: seconds of a clock and of a core."""
    X = np.random.default_rng([samples, dimension]).uniform(-1, 1, (samples, dimension))
    y, options = fading(X), {"gradients": exact_gradients(fading, X)} if data == "gradients" else {}
    model = Surrogate(budget, random_state=0)
    start, start_of_core = time.perf_counter(), time.process_time()
    model.fit(X, y, **options)
    return model, time.perf_counter() - start, time.process_time() - start_of_core


def run(budget, samples, dimension, data):
    """Return the row of one fit."""
    fresh = np.random.default_rng(dimension).uniform(-1, 1, (FRESH, dimension))
    truth = fading(fresh)
    unit = np.std(truth)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, seconds, of_core = fit(budget, samples, dimension, data)
        error = np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)) / unit
    row = dict(zip(KEY, (budget, samples, dimension, data), strict=True))
    row |= {"seconds": seconds, "seconds of a core": of_core, "error": error}
    return row | {"reported": model.estimated_error_ / unit, "engine": model.leaderboard_[0].engine}


def is_kept(row):
    """Return whether a fit took no longer than it may."""
    return float(row["seconds"]) <= (1 + SHARE) * float(row["budget"]) + SECONDS


def print_budgets(path):
    """Print the seconds that fits took, in bold what exceeds a budget, and their errors and engines."""
    rows = read(path)
    budgets = sorted({row["budget"] for row in rows}, key=float)
    cases = {}
    for row in rows:
        cases.setdefault((int(row["samples"]), int(row["dimension"]), row["data"]), {})[row["budget"]] = row
    print(
        f"\n**{Path(path).stem}**: seconds of a clock, in bold where they exceed {1 + SHARE:g} x budget + {SECONDS:g} s"
    )
    print("(error in standard deviations, engine)\n")
    header = [f"{budget} s" for budget in budgets]
    print_table(
        ["samples", "inputs", "data", *header],
        [
            [*map(str, case), *(_entry(found[budget]) if budget in found else "" for budget in budgets)]
            for case, found in sorted(cases.items())
        ],
    )
    print("\nOver all fits; seconds of a core are fewer than those of the clock if something else ran\n")
    print_table(["", *header], _summary([[row for row in rows if row["budget"] == budget] for budget in budgets]))


def _entry(row):
    """Return what a fit took and gave."""
    seconds = f"{float(row['seconds']):.2g}"
    return f"{seconds if is_kept(row) else f'**{seconds}**'} ({float(row['error']):.1e}, {row['engine']})"


def _summary(groups):
    """Return the rows of the summary, for the fits of each budget."""
    longest = [max(float(row["seconds"]) / float(row["budget"]) for row in rows) for rows in groups]
    totals = [[sum(float(row[name]) for row in rows) for name in ("seconds of a core", "seconds")] for rows in groups]
    errors = [np.exp(np.mean([np.log(float(row["error"])) for row in rows])) for rows in groups]
    return [
        ["budget exceeded", *(f"{sum(not is_kept(row) for row in rows)} of {len(rows)}" for rows in groups)],
        ["longest / budget", *(f"{ratio:.2f}" for ratio in longest)],
        ["seconds of a core / of the clock", *(f"{of_core / of_clock:.2f}" for of_core, of_clock in totals)],
        ["geometric mean of errors", *(f"{error:.1e}" for error in errors)],
    ]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--budgets", nargs="+", type=float, default=BUDGETS, help="seconds")
    parser.add_argument("--samples", nargs="+", type=int, default=SAMPLES)
    parser.add_argument("--dimensions", nargs="+", type=int, default=DIMENSIONS)
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "budgets.csv")
    parser.add_argument("--table", nargs="+", metavar="CSV", help="print these files, and fit nothing")
    options = parser.parse_args(arguments)
    if not options.table:
        run(0.3, 12, 2, "gradients")  # what is loaded when it is needed is loaded now
        measure(
            options.out, COLUMNS, KEY, product(options.budgets, options.samples, options.dimensions, options.data), run
        )
    for path in options.table or [options.out]:
        print_budgets(path)


if __name__ == "__main__":
    main()
