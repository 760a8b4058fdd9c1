"""Measure whether the default estimator knows how wrong it is, and whether bad gradients hurt it.

    python benchmarks/trust.py --out results.csv [--samples 30 60] [--seeds 5] [--parts few wrong] [--jobs 1]
    python benchmarks/trust.py --table results.csv

The first form fits and adds a row of `results.csv` for each fit; rows that are there already are kept, so that a run
can be stopped and taken up again. The second prints the tables as Markdown.

Part "few": eight functions of different kinds, 8 to 300 samples, noise of 0, 1% and 20%, with and without gradients.
Noise is Gaussian, in units of the standard deviation of the values and of the root mean square of each partial
derivative. Errors, intervals and standard deviations are those of 2000 fresh measurements, noise included.

Part "wrong": six of the functions, 60 to 500 samples without noise, gradients that are noisy or wrong. Errors are
compared with those of the same fit without gradients.
"""

import argparse
import csv
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from zlib import crc32

import numpy as np
from threadpoolctl import threadpool_limits

from nurf import RandomFeatureRegressor

SAMPLES = (8, 15, 30, 60, 120, 300)
NOISES = (0.0, 0.01, 0.2)
WRONG_SAMPLES = (60, 150, 500)
FRESH = 2000
STEP = 1e-6  # of central differences
SMALLEST = 1e-8  # errors below that are rounding, and count as that
NORMAL = 1.6449  # standard deviations that hold 0.9 of a normal distribution
COLUMNS = [
    "part",
    "function",
    "samples",
    "noise",
    "gradients",
    "seed",
    "error",
    "reported",
    "baseline",
    "interval",
    "std",
    "gradient std",
    "seconds",
]


def product(X):
    """A smooth function of six inputs with interactions."""
    return (1 + X[:, 0]) ** 1.5 * np.exp(-X[:, 1]) / (1.2 + X[:, 2]) + X[:, 3] * X[:, 4] + 0.1 * X[:, 5]


def additive(X):
    """A sum of functions of five inputs."""
    return np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + np.exp(X[:, 2]) + np.abs(X[:, 3]) ** 1.5 + 0.5 * X[:, 4]


def ridge(X):
    """A function of one direction in four dimensions."""
    return np.tanh(3 * (X @ [0.5, -0.7, 0.4, 0.2]))


def oscillating(X):
    """A wave around a point of the plane."""
    return np.cos(6 * np.hypot(X[:, 0] - 0.2, X[:, 1] + 0.4))


def kinked(X):
    """The largest of three affine functions in three dimensions."""
    return np.max(X @ np.array([[1.0, -0.5, 0.2], [0.4, 1.0, -0.8], [-0.6, 0.3, 1.0]]), axis=1)


def step(X):
    """A step across a curve in the plane."""
    return np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.1, 1.0, 0.0) + 0.2 * X[:, 1]


def kinetics(X):
    """The concentration in a one-compartment model with absorption: dose, rates, volume, bioavailability, time."""
    dose, volume, share = 5 + X[:, 0], 2 + X[:, 3], 0.7 + 0.2 * X[:, 4]
    absorption, elimination, t = 2 + 0.8 * X[:, 1], 0.4 + 0.2 * X[:, 2], 2.2 + 1.8 * X[:, 5]
    decay = np.exp(-elimination * t) - np.exp(-absorption * t)
    return share * dose * absorption / (volume * (absorption - elimination)) * decay


def peak(X):
    """A narrow peak and a slope in three dimensions."""
    return 1 / (1 + 8 * np.sum((X - 0.3) ** 2, axis=1)) + 0.3 * X[:, 0]


FUNCTIONS = {
    "product": (product, 6),
    "additive": (additive, 5),
    "ridge": (ridge, 4),
    "oscillating": (oscillating, 2),
    "kinked": (kinked, 3),
    "step": (step, 2),
    "kinetics": (kinetics, 6),
    "peak": (peak, 3),
}
SMOOTH = [name for name in FUNCTIONS if name not in ("kinked", "step")]  # where gradients say what values do
WRONG = {
    "none": None,
    "exact": lambda g, y, rng: g,
    "10% noise": lambda g, y, rng: noisy(g, 0.1, rng),
    "50% noise": lambda g, y, rng: noisy(g, 0.5, rng),
    "200% noise": lambda g, y, rng: noisy(g, 2.0, rng),
    "shuffled": lambda g, y, rng: rng.permutation(g),
    "negated": lambda g, y, rng: -g,
    "one row x 1e6": lambda g, y, rng: np.where(np.arange(len(g))[:, None] == len(g) // 2, 1e6 * g, g),
}


def noisy(gradients, level, rng):
    """Return the gradients with Gaussian noise."""
    return gradients + level * np.sqrt(np.mean(gradients**2, axis=0)) * rng.standard_normal(gradients.shape)


def gradients_of(function, X):
    """Return the gradients by central differences."""
    shifts = STEP * np.eye(X.shape[1])
    return np.stack([(function(X + shift) - function(X - shift)) / (2 * STEP) for shift in shifts], axis=1)


def make(part, name, samples, noise, kind, seed):
    """Return samples, values, gradients or None, and fresh measurements of both."""
    function, d = FUNCTIONS[name]
    rng = np.random.default_rng([crc32(f"{name} {samples}".encode()), seed])
    X, fresh = rng.uniform(-1, 1, (samples, d)), rng.uniform(-1, 1, (FRESH, d))
    sets = []
    for points in (X, fresh):
        y, g = function(points), gradients_of(function, points)
        sets.append((y + noise * np.std(function(fresh)) * rng.standard_normal(len(y)), noisy(g, noise, rng)))
    (y, g), (truth, slopes) = sets
    change = WRONG[kind]
    return X, y, None if change is None else change(g, y, rng), fresh, truth, slopes


def baseline(X, y, gradients, fresh, truth):
    """Return the error of the better of the mean and an affine fit, to the gradients too if there are any."""
    center, size = np.mean(y), np.std(y)
    design, targets = np.column_stack([np.ones(len(X)), X]), (y - center)[:, None]
    if gradients is not None:
        slopes = np.column_stack([np.zeros(X.shape[1]), np.eye(X.shape[1])])
        design = np.vstack([design, np.tile(slopes, (len(X), 1))])
        targets = np.vstack([targets, gradients.reshape(-1, 1)])
    coefficients = np.linalg.lstsq(design, targets, rcond=None)[0][:, 0]
    affine = center + coefficients[0] + fresh @ coefficients[1:]
    errors = [root_mean_square(guess - truth) for guess in (center, affine)]
    return min(errors) if size > 0 else errors[0]


def root_mean_square(errors):
    return float(np.sqrt(np.mean(errors**2)))


def run(*task):
    """Return the row of one fit."""
    part, seed = task[0], task[-1]
    X, y, gradients, fresh, truth, slopes = make(*task)
    options = {} if gradients is None else {"gradients": gradients}
    row = dict(zip(COLUMNS, task, strict=False))
    unit = np.std(truth)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model = RandomFeatureRegressor(random_state=seed).fit(X, y, **options)
        row["seconds"] = time.process_time() - start
        predictions, deviations = model.predict(fresh, return_std=True)
        row["error"] = root_mean_square(predictions - truth) / unit
        row["reported"] = model.estimated_error_ / unit
        if part == "few":
            row["baseline"] = baseline(X, y, gradients, fresh, truth) / unit
            low, high = model.predict_interval(fresh, 0.9).T
            row["interval"] = np.mean((low <= truth) & (truth <= high))
            row["std"] = np.mean(np.abs(predictions - truth) <= NORMAL * deviations)
            predictions, deviations = model.predict_gradient(fresh, return_std=True)
            row["gradient std"] = np.mean(np.abs(predictions - slopes) <= NORMAL * deviations)
    return {key: _cell(value) for key, value in row.items()}


def _cell(value):
    """Return a value as it is written to the file."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def tasks(parts, samples, seeds):
    """Return all fits."""
    found = []
    if "few" in parts:
        kinds = ("none", "exact")
        found += [
            ("few", name, n, noise, kind, seed)
            for seed in range(seeds)
            for n in samples or SAMPLES
            for noise in NOISES
            for kind in kinds
            for name in FUNCTIONS
        ]
    if "wrong" in parts:
        found += [
            ("wrong", name, n, 0.0, kind, seed)
            for seed in range(seeds)
            for n in samples or WRONG_SAMPLES
            for kind in WRONG
            for name in SMOOTH
        ]
    return found


def measure(todo, out, n_jobs):
    """Fit what is not yet in the file, and add it there."""
    done = {tuple(row[column] for column in COLUMNS[:6]) for row in read(out)} if out.exists() else set()
    todo = [task for task in todo if tuple(map(_cell, task)) not in done]
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a", newline="") as file, ProcessPoolExecutor(n_jobs) as pool:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for future in as_completed([pool.submit(run, *task) for task in todo]):
            writer.writerow(future.result())
            file.flush()


def read(path):
    """Return the rows of a file."""
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def column(rows, name):
    """Return a column as numbers."""
    return np.array([float(row[name]) for row in rows])


def print_few(rows):
    """Print what few samples give, and how much of it the estimates, intervals and deviations know."""
    print(
        "| samples | gradients | error | reported | in 1/3..3 | least | most | worse than mean or affine by 1.2 | s |"
    )
    print(f"|{'---|' * 9}")
    groups = sorted(
        {(int(row["samples"]), row["gradients"]) for row in rows}, key=lambda key: (key[0], key[1] == "exact")
    )
    for samples, kind in groups:
        part = [row for row in rows if (int(row["samples"]), row["gradients"]) == (samples, kind)]
        errors, reported, simple = (column(part, name) for name in ("error", "reported", "baseline"))
        ratios = np.maximum(reported, SMALLEST) / np.maximum(errors, SMALLEST)
        cells = [
            f"{np.median(errors):.2g}",
            f"{np.median(reported):.2g}",
            f"{np.mean((ratios > 1 / 3) & (ratios < 3)):.0%}",
            f"{ratios.min():.2g}",
            f"{ratios.max():.2g}",
            f"{np.mean(errors > 1.2 * simple):.0%}, worst {np.max(errors / simple):.2g}",
            f"{np.mean(column(part, 'seconds')):.2g}",
        ]
        print(f"| {samples} | {'yes' if kind == 'exact' else 'no'} | {' | '.join(cells)} |")
    for name in ("interval", "std", "gradient std"):
        print(f"\nCoverage of {name} for a nominal 0.9: mean over all fits (least mean of a function)\n")
        sizes = sorted({samples for samples, _ in groups})
        print(f"| gradients | {' | '.join(map(str, sizes))} |\n|{'---|' * (1 + len(sizes))}")
        for kind in ("none", "exact"):
            cells = []
            for samples in sizes:
                part = [row for row in rows if (int(row["samples"]), row["gradients"]) == (samples, kind)]
                means = {f: column([row for row in part if row["function"] == f], name).mean() for f in FUNCTIONS}
                cells.append(
                    f"{np.mean(list(means.values())):.2f} ({min(means.values()):.2f} {min(means, key=means.get)})"
                )
            print(f"| {'yes' if kind == 'exact' else 'no'} | {' | '.join(cells)} |")


def print_wrong(rows):
    """Print errors over those without gradients."""
    sizes = sorted({int(row["samples"]) for row in rows})
    print(f"| gradients | {' | '.join(f'{n} samples' for n in sizes)} |\n|{'---|' * (1 + len(sizes))}")
    plain = {
        (row["function"], row["samples"], row["seed"]): float(row["error"])
        for row in rows
        if row["gradients"] == "none"
    }
    for kind in list(WRONG)[1:]:
        cells = []
        for n in sizes:
            part = [row for row in rows if row["gradients"] == kind and int(row["samples"]) == n]
            ratios = np.array(
                [float(row["error"]) / plain[row["function"], row["samples"], row["seed"]] for row in part]
            )
            cells.append(f"{np.median(ratios):.2f}, worst {ratios.max():.2f}, {np.mean(ratios > 1.1):.0%} above 1.1")
        print(f"| {kind} | {' | '.join(cells)} |")


def print_tables(path):
    """Print all tables as Markdown."""
    rows = read(path)
    for part, show in {"few": print_few, "wrong": print_wrong}.items():
        chosen = [row for row in rows if row["part"] == part]
        if chosen:
            print(f"\n**{part}**: {len(chosen)} fits\n")
            show(chosen)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", nargs="+", type=int, help="numbers of samples")
    parser.add_argument("--seeds", type=int, default=5, help="number of data sets for each case")
    parser.add_argument("--parts", nargs="+", default=["few", "wrong"], choices=["few", "wrong"])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "trust.csv")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, each of one thread")
    parser.add_argument("--table", metavar="CSV", help="print this file, and fit nothing")
    arguments = parser.parse_args()
    if arguments.table:
        print_tables(arguments.table)
    else:
        measure(tasks(arguments.parts, arguments.samples, arguments.seeds), arguments.out, arguments.jobs)


if __name__ == "__main__":
    main()
