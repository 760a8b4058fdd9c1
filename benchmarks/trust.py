"""Measure whether models know how wrong they are, and whether bad gradients hurt them.

    python benchmarks/trust.py --out results.csv [--models sampled wide] [--parts few wrong hard] [--functions ridge]
                               [--samples 30 60] [--seeds 5] [--jobs 1]
    python benchmarks/trust.py --table results.csv

The first form fits and adds a row of `results.csv` for each fit; rows that are there already are kept, so that a run
can be stopped and taken up again. The second prints the tables as Markdown. Models are the estimators of nurf with
default settings; `Surrogate` has no limit of time, so that other work on the machine does not change its model.

Part "few": eight functions of different kinds, 8 to 300 samples, noise of 0, 1% and 20%, with and without gradients.
Noise is Gaussian, in units of the standard deviation of the values and of the root mean square of each partial
derivative. Errors, intervals and standard deviations are those of 2000 fresh measurements, noise included.

Part "wrong": six of the functions, 60 to 500 samples without noise, gradients that are noisy or wrong. Errors are
compared with those of the same fit without gradients.

Part "hard": cases that tell honest estimates from others. Sums of functions of 50 and 200 single inputs, with about as
few samples; numbers that have nothing to do with the inputs; the deflection of a beam, whose error is that of few
points near the edges, from gradients.
"""

import argparse
import time
import warnings
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np
from threadpoolctl import threadpool_limits

from measuring import measure, print_table
from measuring import read as read_rows
from nurf import (
    DeepFeatureRegressor,
    KernelFeatureRegressor,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
    Surrogate,
)

MODELS = {
    "sampled": RandomFeatureRegressor,
    "wide": KernelFeatureRegressor,
    "trained": DeepFeatureRegressor,
    "sparse": SparseFeatureRegressor,
    "surrogate": partial(Surrogate, None),
}
SEEDS = {"few": 5, "wrong": 5, "hard": 4}
SAMPLES = (8, 15, 30, 60, 120, 300)
NOISES = (0, 0.01, 0.2)
WRONG_SAMPLES = (60, 150, 500)
FRESH = 2000
STEP = 1e-6  # of central differences
SMALLEST = 1e-8  # smaller errors are rounding, and are set to it
NORMAL = 1.6449  # standard deviations that hold 0.9 of a normal distribution
FACTOR = 3  # a reported error that is off by less is right
FEW = 30  # fewer samples are few
RIGHT = (0.8, 0.9)  # the share of fits that should be right: with few samples, and with more
COVERAGE = (0.85, 0.95)  # what intervals that promise 0.9 should hold on the mean
KEY = ["model", "part", "function", "samples", "noise", "gradients", "seed"]
COLUMNS = [
    *KEY,
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


def weighted(X):
    """A sum of functions of any number of inputs, each with a weight."""
    return np.sin(2 * X) @ np.random.default_rng(X.shape[1]).standard_normal(X.shape[1])


def nothing(X):
    """Numbers that have nothing to do with the inputs."""
    return np.random.default_rng(crc32(X.tobytes())).standard_normal(len(X))


def beam(X):
    """The deflection of a beam: load, length, modulus, height."""
    load, length, modulus, height = 5.5 + 4.5 * X[:, 0], 2 + X[:, 1], 2 + X[:, 2], 1 + 0.5 * X[:, 3]
    return 4 * load * length**3 / (modulus * height**4)


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
HARD_FUNCTIONS = {
    "sum of 200": (weighted, 200),
    "sum of 50": (weighted, 50),
    "noise": (nothing, 200),
    "beam": (beam, 4),
}
HARD = {  # samples and gradients of each
    "sum of 200": [(100, "none"), (161, "none")],
    "sum of 50": [(161, "none")],
    "noise": [(200, "none")],
    "beam": [(300, "exact")],
}
WRONG = {
    "none": None,
    "exact": lambda g, y, rng: g,
    "10% noise": lambda g, y, rng: noisy(g, 0.1, rng),
    "50% noise": lambda g, y, rng: noisy(g, 0.5, rng),
    "200% noise": lambda g, y, rng: noisy(g, 2.0, rng),
    "shuffled": lambda g, y, rng: rng.permutation(g),
    "negated": lambda g, y, rng: -g,
    "columns reversed": lambda g, y, rng: g[:, ::-1],
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
    function, d = (FUNCTIONS | HARD_FUNCTIONS)[name]
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


def make_model(name, seed):
    """Return a model with default settings, and with these random numbers if it has any."""
    model = MODELS[name]()
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model


def run(model, part, *case):
    """Return the row of one fit, with no number as the error where it failed."""
    data = make(part, *case)
    row = dict(zip(KEY, (model, part, *case), strict=True))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return row | fit_and_test(make_model(model, case[-1]), part, *data)
        except (ValueError, RuntimeError, np.linalg.LinAlgError) as failure:
            return row | {"error": "nan", "failure": failure}


def fit_and_test(model, part, X, y, gradients, fresh, truth, slopes):
    """Return the results of one fit."""
    options, unit = {} if gradients is None else {"gradients": gradients}, np.std(truth)
    start = time.process_time()
    model.fit(X, y, **options)
    results = {"seconds": time.process_time() - start}
    predictions, deviations = model.predict(fresh, return_std=True)
    results["error"] = root_mean_square(predictions - truth) / unit
    results["reported"] = model.estimated_error_ / unit
    if part != "wrong":
        low, high = model.predict_interval(fresh, 0.9).T
        results["interval"] = np.mean((low <= truth) & (truth <= high))
        results["std"] = np.mean(np.abs(predictions - truth) <= NORMAL * deviations)
    if part == "few":
        results["baseline"] = baseline(X, y, gradients, fresh, truth) / unit
        predictions, deviations = model.predict_gradient(fresh, return_std=True)
        results["gradient std"] = np.mean(np.abs(predictions - slopes) <= NORMAL * deviations)
    return results


def cases(part, names, samples, seeds):
    """Return the fits of one part, without the model."""
    seeds = range(seeds or SEEDS[part])
    if part == "few":
        return [
            (name, n, noise, kind, seed)
            for seed in seeds
            for n in samples or SAMPLES
            for noise in NOISES
            for kind in ("none", "exact")
            for name in FUNCTIONS
            if name in names
        ]
    if part == "wrong":
        return [
            (name, n, 0, kind, seed)
            for seed in seeds
            for n in samples or WRONG_SAMPLES
            for kind in WRONG
            for name in SMOOTH
            if name in names
        ]
    return [
        (name, n, 0, kind, seed)
        for seed in seeds
        for name, sizes in HARD.items()
        for n, kind in sizes
        if name in names and (not samples or n in samples)
    ]


def read(path):
    """Return the rows of a file; those of a file that does not name models are of sampled networks."""
    return [{"model": "sampled"} | row for row in read_rows(path)]


def column(rows, name):
    """Return a column as numbers, none where the fit failed."""
    return np.array([float(row[name] or "nan") for row in rows])


def reported_over_true(rows):
    """Return the reported over the true errors, none where the fit failed."""
    return np.maximum(column(rows, "reported"), SMALLEST) / np.maximum(column(rows, "error"), SMALLEST)


def share_right(rows):
    """Return the share of fits whose reported error is right; failures are wrong."""
    ratios = reported_over_true(rows)
    return np.mean((ratios > 1 / FACTOR) & (ratios < FACTOR))


def mean_of(rows, name):
    """Return the mean of a column over the fits that did not fail."""
    numbers = column(rows, name)
    return np.mean(numbers[~np.isnan(numbers)]) if not np.isnan(numbers).all() else np.nan


def number_of_samples(row):
    return int(row["samples"])


def print_honesty(rows):
    """Print for each model and number of samples how often reported errors are right, and what intervals hold."""
    sizes = sorted(set(map(number_of_samples, rows)))
    table = []
    for model in MODELS:
        parts = [[row for row in rows if row["model"] == model and number_of_samples(row) == n] for n in sizes]
        if any(parts):
            table.append([model, *(_honesty(part, n) if part else "" for part, n in zip(parts, sizes, strict=True))])
    print(
        f"Share of fits with reported / true in 1/{FACTOR}..{FACTOR}, and mean coverage of intervals for a nominal "
        f"0.9; in bold a share below {RIGHT[0]:.0%} ({RIGHT[1]:.0%} from {FEW} samples on), and a mean outside of "
        f"{COVERAGE[0]}..{COVERAGE[1]}.\n"
    )
    print_table(["model", *map(str, sizes)], table)


def _honesty(rows, samples):
    """Return the share of reported errors that are right and the mean coverage, in bold where they miss their aim."""
    aim = RIGHT[samples >= FEW]
    right, coverage = share_right(rows), mean_of(rows, "interval")
    cells = (f"{right:.0%}", right >= aim), (f"{coverage:.2f}", COVERAGE[0] <= coverage <= COVERAGE[1])
    return ", ".join(text if good else f"**{text}**" for text, good in cells)


def print_few(rows):
    """Print what few samples give, and how much of it the estimates, intervals and deviations know."""
    header = ["samples", "gradients", "error", "reported", f"in 1/{FACTOR}..{FACTOR}", "least", "most"]
    groups = sorted({(number_of_samples(row), row["gradients"] == "exact") for row in rows})
    table = []
    for samples, informed in groups:
        part = [row for row in rows if (number_of_samples(row), row["gradients"] == "exact") == (samples, informed)]
        errors, ratios = np.nan_to_num(column(part, "error"), nan=np.inf), reported_over_true(part)
        relative = errors / np.nan_to_num(column(part, "baseline"), nan=1.0)
        table.append(
            [
                str(samples),
                "yes" if informed else "no",
                f"{np.median(errors):.2g}",
                f"{np.median(np.nan_to_num(column(part, 'reported'), nan=np.inf)):.2g}",
                f"{share_right(part):.0%}",
                f"{np.fmin.reduce(ratios):.2g}",
                f"{np.fmax.reduce(ratios):.2g}",
                f"{np.mean(relative > 1.2):.0%}, worst {np.max(relative):.2g}",
                f"{mean_of(part, 'seconds'):.2g}",
            ]
        )
    print_table([*header, "worse than mean or affine by 1.2", "s"], table)
    for name in ("interval", "std", "gradient std"):
        print(f"\nCoverage of {name} for a nominal 0.9: mean over all fits (least mean of a function)\n")
        print_coverage(rows, name)


def print_coverage(rows, name):
    """Print the mean coverage over all fits, and the least mean of a function."""
    sizes, fitted = sorted(set(map(number_of_samples, rows))), {row["function"] for row in rows}
    table = []
    for kind, answer in (("none", "no"), ("exact", "yes")):
        cells = []
        for samples in sizes:
            part = [row for row in rows if (number_of_samples(row), row["gradients"]) == (samples, kind)]
            means = {f: mean_of([row for row in part if row["function"] == f], name) for f in FUNCTIONS if f in fitted}
            least = min(means, key=lambda function: np.nan_to_num(means[function], nan=np.inf))
            cells.append(f"{mean_of(part, name):.2f} ({means[least]:.2f} {least})")
        table.append([answer, *cells])
    print_table(["gradients", *map(str, sizes)], table)


def print_wrong(rows):
    """Print errors over those without gradients."""
    sizes = sorted(set(map(number_of_samples, rows)))
    errors = {(row["gradients"], *_data_set(row)): np.nan_to_num(float(row["error"]), nan=np.inf) for row in rows}
    table = []
    for kind in [kind for kind in WRONG if kind != "none" and any(row["gradients"] == kind for row in rows)]:
        cells = []
        for n in sizes:
            pairs = [
                (errors[kind, *data], errors["none", *data])
                for data in dict.fromkeys(_data_set(row) for row in rows if number_of_samples(row) == n)
                if (kind, *data) in errors and ("none", *data) in errors
            ]
            ratios = np.divide(*np.transpose(pairs)) if pairs else np.array([np.nan])
            cells.append(f"{np.median(ratios):.2f}, worst {ratios.max():.2f}, {np.mean(ratios > 1.1):.0%} above 1.1")
        table.append([kind, *cells])
    print_table(["gradients", *(f"{n} samples" for n in sizes)], table)


def _data_set(row):
    """Return what names the samples and values of a row."""
    return row["function"], row["samples"], row["seed"]


def print_hard(rows):
    """Print reported and true errors and the coverage of intervals, for each case."""
    header = ["function", "samples", "true", "reported", "reported / true of each seed", "coverage of intervals", "s"]
    table = []
    for name, samples in dict.fromkeys((row["function"], row["samples"]) for row in sorted(rows, key=_place)):
        part = [row for row in rows if (row["function"], row["samples"]) == (name, samples)]
        ratios = reported_over_true(part)
        table.append(
            [
                name,
                samples,
                f"{np.median(column(part, 'error')):.2g}",
                f"{np.median(column(part, 'reported')):.2g}",
                ", ".join(f"{ratio:.2g}" if 1 / FACTOR < ratio < FACTOR else f"**{ratio:.2g}**" for ratio in ratios),
                f"{mean_of(part, 'interval'):.2f}",
                f"{mean_of(part, 'seconds'):.2g}",
            ]
        )
    print_table(header, table)


def _place(row):
    """Return what the rows of hard cases are sorted by."""
    return list(HARD).index(row["function"]), number_of_samples(row), int(row["seed"])


PARTS = {"few": print_few, "wrong": print_wrong, "hard": print_hard}


def print_tables(path):
    """Print all tables as Markdown."""
    rows = read(path)
    few = [row for row in rows if row["part"] == "few"]
    if few:
        print_honesty(few)
    for model in MODELS:
        for part, show in PARTS.items():
            chosen = [row for row in rows if (row["model"], row["part"]) == (model, part)]
            if chosen:
                print(f"\n**{model}, {part}**: {len(chosen)} fits\n")
                show(chosen)


def main(arguments=None):
    names = list(FUNCTIONS | HARD_FUNCTIONS)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", default=["sampled"], choices=MODELS)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--functions", nargs="+", default=names, choices=names, metavar="NAME")
    parser.add_argument("--samples", nargs="+", type=int, help="numbers of samples")
    parser.add_argument("--seeds", type=int, help=f"number of data sets for each case, by default {SEEDS}")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "trust.csv")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, each of one thread")
    parser.add_argument("--table", metavar="CSV", help="print this file, and fit nothing")
    options = parser.parse_args(arguments)
    if options.table:
        print_tables(options.table)
        return
    tasks = [
        (model, part, *case)
        for model in options.models
        for part in options.parts
        for case in cases(part, options.functions, options.samples, options.seeds)
    ]
    measure(options.out, COLUMNS, KEY, tasks, run, options.jobs)


if __name__ == "__main__":
    main()
