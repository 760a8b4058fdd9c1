"""Measure trained networks with default settings: error, seconds, and whether they know their error.

    OMP_NUM_THREADS=1 python benchmarks/trained.py --out results.csv [--seeds 5] [--cases "robot arm" ...]
    python benchmarks/trained.py --table results.csv

The first form adds a row of `results.csv` for each case, kind of data and seed; rows that are there already are kept,
so that a run can be stopped and taken up again. The second prints the file as Markdown: medians over the seeds.

The error is the relative L2 error on 10,000 fresh points. The estimate is `estimated_error_` over the true root mean
square error there, the coverage the share of fresh values in intervals that promise 0.9. With noise, it is 5% of the
standard deviation of the values and of the root mean square of the gradients, and the estimate and the coverage are
those of values with the same noise. Seconds are those of one core.
"""

import argparse
import csv
import time
from itertools import product
from pathlib import Path

import numpy as np

from nurf import DeepFeatureRegressor, problems

CASES = {
    "robot arm, 5000": ("robot_arm", {"dimension": 6}, 5000, 0.0),
    "robot arm, 500": ("robot_arm", {"dimension": 6}, 500, 0.0),
    "checkmark, 2000": ("checkmark", {"dimension": 3}, 2000, 0.0),
    "borehole, 5000": ("borehole", {}, 5000, 0.0),
    "borehole, 500": ("borehole", {}, 500, 0.0),
    "robot arm, 5000, noise": ("robot_arm", {"dimension": 6}, 5000, 0.05),
    "robot arm, 500, noise": ("robot_arm", {"dimension": 6}, 500, 0.05),
}
DATA = ("gradients", "values")
COLUMNS = ["case", "data", "seed", "error", "seconds", "estimate", "coverage", "chosen"]
FRESH = 10_000


def run(case, data, seed):
    """Return a row of the results."""
    name, parameters, n, noise = CASES[case]
    problem, rng = problems.get(name, **parameters), np.random.default_rng(seed)
    X, fresh = problem.sample(n, rng), problem.sample(FRESH, rng)
    y, truth, gradients = problem.value(X), problem.value(fresh), problem.gradient(X)
    unit = noise * np.std(y)
    y, measured = (values + unit * rng.standard_normal(len(values)) for values in (y, truth))
    gradients = gradients + noise * np.sqrt(np.mean(gradients**2)) * rng.standard_normal(gradients.shape)
    model = DeepFeatureRegressor(random_state=seed)
    start = time.process_time()
    model.fit(X, y, gradients=gradients if data == "gradients" else None)
    seconds = time.process_time() - start
    values, intervals = model.predict(fresh), model.predict_interval(fresh)
    return {
        "case": case,
        "data": data,
        "seed": seed,
        "error": f"{np.linalg.norm(values - truth) / np.linalg.norm(truth):.3e}",
        "seconds": f"{seconds:.1f}",
        "estimate": f"{model.estimated_error_ / np.sqrt(np.mean((values - measured) ** 2)):.2f}",
        "coverage": f"{np.mean((intervals[:, 0] <= measured) & (measured <= intervals[:, 1])):.3f}",
        "chosen": f"{model.fit_.setting}; {model.fit_.n_steps} steps",
    }


def read(path):
    """Return the rows that are there."""
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def table(path):
    """Print the medians over the seeds."""
    rows = read(path)
    print("| case | data | error (smallest, largest) | seconds | estimated / true error | coverage | fits |")
    print("|---|---|---|---|---|---|---|")
    for case, data in product(CASES, DATA):
        some = [row for row in rows if (row["case"], row["data"]) == (case, data)]
        if some:
            errors, seconds, estimates, coverages = (
                np.array([float(row[name]) for row in some]) for name in ("error", "seconds", "estimate", "coverage")
            )
            print(
                f"| {case} | {data} | {np.median(errors):.2e} ({errors.min():.1e}, {errors.max():.1e}) | "
                f"{np.median(seconds):.1f} | {np.median(estimates):.2f} | {np.mean(coverages):.2f} | {len(some)} |"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    arguments = parser.parse_args()
    if arguments.table is not None:
        table(arguments.table)
        return
    done = {(row["case"], row["data"], row["seed"]) for row in read(arguments.out)}
    for seed, case, data in product(range(arguments.seeds), arguments.cases, DATA):
        if (case, data, str(seed)) not in done:
            row, new = run(case, data, seed), not arguments.out.exists()
            with arguments.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS)
                if new:
                    writer.writeheader()
                writer.writerow(row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
