"""Measure how good the choice of `Surrogate` is: beside each of its engines alone, and on data that mislead it.

    python benchmarks/choosing.py --out results.csv [--functions Ishigami] [--sizes "10 d"] [--data values] [--jobs 1]
    python benchmarks/choosing.py --part table --out results.csv [--cases "5 inputs"] [--engines all wide]
    python benchmarks/choosing.py --table results.csv [more.csv]

The first two forms fit and add a row of `results.csv` for each data set and choice of engines; rows that are there
already are kept, so that a run can be stopped and taken up again. The third prints one or more of these files as
Markdown.

Part "collection": the functions of `collection.py` with its samples, and with the first of them, 10 for each input and
100 at most; with and without gradients. `Surrogate` has no limit of time, so that other work on the machine does not
change its model, and seconds are those of one core. "all" is what it chooses by default, the others have one engine
each. The error of "all" over the least error of a single engine says what the choice costs.

Part "table": data of which one engine can make more than another, each with a budget of time. These fits run one after
another, each on one thread, and their seconds are those of a clock.

The error is the root mean squared error on 3000 fresh points, and "reported" what the model itself says of it, both in
units of the standard deviation of the values there.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np
from threadpoolctl import threadpool_limits

from collection import FRESH, FUNCTIONS, ROUNDING, Function, draw, number, usable
from collection import make_data as collection_data
from measuring import measure, print_table, read
from nurf import Surrogate, problems
from search import exact_gradients
from trust import kinetics, peak

SIZES = {"10 d": (10, 100), "50 d": (50, 500)}  # samples for each input, and the most
DATA = ("gradients", "values")
ENGINES = ("wide", "sampled", "trained")
CHOICES = ("all", *ENGINES)
KEY = ["part", "case", "size", "data", "engines"]
COLUMNS = [*KEY, "dimension", "samples", "error", "reported", "seconds", "chosen", "note"]
MUCH = 2  # times the least error of an engine is much more
FACTOR = 3  # a reported error that is off by less is right
FAILURES = (ValueError, RuntimeError, np.linalg.LinAlgError)


def directions(X):
    """Return a function of three directions."""
    bases, _ = np.linalg.qr(np.random.default_rng(X.shape[1]).standard_normal((X.shape[1], 3)))
    a, b, c = (X @ bases).T
    return np.sin(a) + b * c / 2 + np.exp(b / 2)


def smooth(X):
    """Return a smooth function of the first five inputs."""
    return np.exp(X[:, 0]) * np.sin(X[:, 1] + X[:, 2]) + X[:, 3] ** 2 + 0.5 * X[:, 4]


def in_box(function, dimension, n_samples, rng):
    """Return samples, values, exact gradients, fresh points and the values there, for inputs between -1 and 1."""
    X, fresh = rng.uniform(-1, 1, (n_samples, dimension)), rng.uniform(-1, 1, (FRESH, dimension))
    return X, function(X), exact_gradients(function, X), fresh, function(fresh)


def of_problem(name, n_samples, rng):
    """Return samples, values, gradients, fresh points and the values there, for a problem of nurf."""
    problem = problems.get(name)
    X, fresh = problem.sample(n_samples, rng), problem.sample(FRESH, rng)
    return X, problem.value(X), problem.gradient(X), fresh, problem.value(fresh)


def of_collection(name, n_samples, rng):
    """Return samples, values, gradients, fresh points and the values there, for a function of uqtestfuns."""
    return draw(Function(name), n_samples, rng)


@dataclass(frozen=True)
class Case:
    """Data, and the time that there is for a fit.

    Parameters
    ----------
    make : callable
        Returns samples, values, gradients, fresh points and the values there, of a number of samples and a generator of
        random numbers.
    samples : int
    seconds : float
        The budget.
    data : tuple of str
        What is fitted: "gradients", "values" or both in turn.
    """

    make: Callable
    samples: int
    seconds: float
    data: tuple[str, ...] = DATA


CASES = {
    "3 directions of 200": Case(partial(in_box, directions, 200), 200, 20, ("gradients",)),
    "3 directions of 30": Case(partial(in_box, directions, 30), 200, 20, ("gradients",)),
    "5 inputs": Case(partial(in_box, smooth, 5), 5000, 20, ("values",)),
    "Borehole of uqtestfuns": Case(partial(of_collection, "Borehole"), 400, 3),
    "5 of 20 inputs": Case(partial(in_box, smooth, 20), 500, 3, ("values",)),
    "borehole, 1 s": Case(partial(of_problem, "borehole"), 500, 1, ("gradients",)),
    "borehole, 0.3 s": Case(partial(of_problem, "borehole"), 30, 0.3, ("gradients",)),
    "borehole, 5 s": Case(partial(of_problem, "borehole"), 100, 5, ("gradients",)),
    "kinetics": Case(partial(in_box, kinetics, 6), 100, 5),
    "peak of 3 inputs": Case(partial(in_box, peak, 3), 1000, 20),
}


def part_of_collection(name, size):
    """Return the data of a function of the collection, with as many of its samples as belong to a size."""
    per_input, most = SIZES[size]
    X, y, gradients, fresh, truth = collection_data(name)
    n = min(per_input * X.shape[1], most)
    return X[:n], y[:n], gradients[:n], fresh, truth


def run(part, case, size, data, engines):
    """Return the row of one fit, with no number as the error where it failed."""
    if part == "table":
        spec, clock = CASES[case], time.perf_counter
        seconds, samples = spec.seconds, spec.make(spec.samples, np.random.default_rng(crc32(case.encode())))
    else:
        seconds, clock, samples = None, time.process_time, part_of_collection(case, size)
    X, y, gradients, fresh, truth = samples
    row = dict(zip(KEY, (part, case, size, data, engines), strict=True))
    row |= {"dimension": X.shape[1], "samples": len(X)}
    chosen = "auto" if engines == "all" else [engines]
    model, options = Surrogate(seconds, engines=chosen, random_state=0), {}
    if data == "gradients":
        options["gradients"] = gradients
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = clock()
        try:
            model.fit(X, y, **options)
        except FAILURES as failure:
            return row | {"error": "nan", "note": " ".join(f"failed: {failure}".split())[:100]}
        row["seconds"] = clock() - start
        unit = np.std(truth)
        row["error"] = np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)) / unit
    return row | {"reported": model.estimated_error_ / unit, "chosen": model.leaderboard_[0].engine}


class Results:
    """The rows of one part of a file, by data set and choice of engines.

    Parameters
    ----------
    path : str
        The file.
    part : str
    """

    def __init__(self, path, part):
        self.sets = {}
        for row in read(path):
            if row["part"] == part:
                self.sets.setdefault((row["case"], row["size"], row["data"]), {})[row["engines"]] = row

    def chosen(self, size, data):
        """Return the data sets of a size that were fitted with all engines and with each of them alone, by name."""
        return {
            name: rows
            for (name, *kind), rows in sorted(self.sets.items())
            if kind == [size, data] and all(engines in rows for engines in CHOICES)
        }


def error(row):
    """Return the error of a row: infinite where the fit failed, and not below rounding."""
    return max(number(row["error"]), ROUNDING)


def least(rows):
    """Return the least error of a single engine."""
    return min(error(rows[engine]) for engine in ENGINES if engine in rows)


def relative(rows):
    """Return the error of the choice over the least one of an engine; none where all failed."""
    return error(rows["all"]) / least(rows) if np.isfinite(least(rows)) else np.nan


def geometric_mean(ratios):
    return np.exp(np.mean(np.log(ratios))) if len(ratios) else np.nan


def print_collection(results):
    """Print what the choice costs, what the engines take and say of their errors, and the errors."""
    groups = {(size, data): results.chosen(size, data) for size in SIZES for data in DATA}
    groups = {group: sets for group, sets in groups.items() if sets}
    print(f"\nChosen / best: the error with all engines over the least one of an engine; below {ROUNDING:g} is equal\n")
    header = ["samples", "data", "functions", "geometric mean", "of the least reported error", f"above {MUCH}", "worst"]
    print_table([*header, "seconds, sum", "median"], [[*group, *_choice(sets)] for group, sets in groups.items()])
    print(f"\nEngines alone: first places, reported / true in 1/{FACTOR}..{FACTOR}, seconds\n")
    print_table(
        ["samples", "data", *CHOICES],
        [[*group, *(_engine(sets, engines) for engines in CHOICES)] for group, sets in groups.items()],
    )
    for (size, data), sets in groups.items():
        print(f"\nErrors, and the reported ones: {size} samples, {data}\n")
        print_table(
            ["function", "d", "samples", *CHOICES, "chosen", "chosen / best"],
            [
                [
                    name,
                    *(rows["all"][column] for column in ("dimension", "samples")),
                    *(_errors(rows[engines]) for engines in CHOICES),
                    rows["all"]["chosen"],
                    f"{relative(rows):.2f}",
                ]
                for name, rows in sets.items()
            ],
        )


def _choice(sets):
    """Return what the choice costs on some functions."""
    ratios = {name: relative(rows) for name, rows in sets.items() if not np.isnan(relative(rows))}
    worst = max(ratios, key=ratios.get, default=None)
    by_report = [error(_least_reported(rows)) / least(rows) for rows in sets.values() if np.isfinite(least(rows))]
    seconds = [float(rows["all"]["seconds"] or "nan") for rows in sets.values()]
    return [
        str(len(ratios)),
        f"{geometric_mean(list(ratios.values())):.2f}",
        f"{geometric_mean(by_report):.2f}",
        str(sum(ratio > MUCH for ratio in ratios.values())),
        f"{ratios[worst]:.2g} ({worst})" if ratios else "",
        f"{np.nansum(seconds):.3g}",
        f"{np.nanmedian(seconds):.2g}",
    ]


def _least_reported(rows):
    """Return the row of the engine that reports the least error."""
    return min((rows[engine] for engine in ENGINES if rows[engine]["reported"]), key=lambda row: float(row["reported"]))


def _engine(sets, engines):
    """Return how often one choice of engines is the best, how often its report is right, and its seconds."""
    rows = [found[engines] for found in sets.values()]
    places = sum(error(found[engines]) <= min(map(error, found.values())) for found in sets.values())
    ratios = np.array([max(float(row["reported"] or "nan"), ROUNDING) / error(row) for row in rows])
    right = np.mean(np.abs(np.log(ratios)) < np.log(FACTOR))
    return f"{places}, {right:.0%}, {sum(float(row['seconds'] or 0) for row in rows):.3g} s"


def _errors(row):
    """Return the error and the reported one."""
    return f"{float(row['error']):.1e} ({float(row['reported']):.1e})" if row["reported"] else "failed"


def print_budgeted(results):
    """Print what a user gets, and what each engine alone gets in the same time."""
    print("\nError (reported, seconds)\n")
    table = []
    for name, case in CASES.items():
        for data in case.data:
            rows = results.sets.get((name, "", data), {})
            if rows:
                some = next(iter(rows.values()))
                about = [name, some["dimension"], some["samples"], data, f"{case.seconds:g} s"]
                cells = [_budgeted(rows[engines]) if engines in rows else "" for engines in CHOICES]
                table.append([*about, *cells, rows["all"]["chosen"] if "all" in rows else ""])
    print_table(["case", "d", "samples", "data", "budget", *CHOICES, "chosen"], table)


def _budgeted(row):
    """Return the error, the reported one and the seconds."""
    if not row["reported"]:
        return "failed"
    return f"{float(row['error']):.1e} ({float(row['reported']):.1e}, {float(row['seconds']):.2g} s)"


PARTS = {"collection": print_collection, "table": print_budgeted}


def print_tables(paths):
    """Print all tables of all files as Markdown."""
    for path in paths:
        for part, show in PARTS.items():
            results = Results(path, part)
            if results.sets:
                print(f"\n**{Path(path).stem}, {part}**")
                show(results)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", default="collection", choices=PARTS)
    parser.add_argument("--functions", nargs="+", default=FUNCTIONS, choices=FUNCTIONS, metavar="NAME")
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES, metavar="NAME")
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--engines", nargs="+", default=CHOICES, choices=CHOICES)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "choosing.csv")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, each of one thread")
    parser.add_argument("--table", nargs="+", metavar="CSV", help="print these files, and fit nothing")
    options = parser.parse_args(arguments)
    if options.table:
        print_tables(options.table)
        return
    if options.part == "table":
        sets = [(name, "", data) for name in options.cases for data in CASES[name].data if data in options.data]
    else:
        names = usable(options.functions)
        sets = [(name, size, data) for size in options.sizes for data in options.data for name in names]
    tasks = [(options.part, *data_set, engines) for data_set in sets for engines in options.engines]
    measure(options.out, COLUMNS, KEY, tasks, run, 1 if options.part == "table" else options.jobs)


if __name__ == "__main__":
    main()
