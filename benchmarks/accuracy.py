"""Measure the default estimator on the paper's problems: only the number of neurons is given.

    OMP_NUM_THREADS=1 python benchmarks/accuracy.py [--seeds 5] [--derivatives given estimate] [--cases 0 3]

Relative L2 error on 10,000 fresh points, median over the seeds, with what the fits chose and the seconds that they took
(of one core, where the variable is set), beside the best of the other tools on the same problem and number of samples
(`reference/peers.csv`: their mean error over seeds, seconds without the search for their parameters). "given" has the
gradients, "estimate" the values only; then the peers that use gradients are left out.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from nurf import RandomFeatureRegressor, problems

PEERS = Path(__file__).parent / "reference" / "peers.csv"
FRESH = 10_000

# problem, its parameters, samples, neurons, its name among the peers
CASES = [
    ("borehole", {}, 5000, 2000, "borehole8d"),
    ("robot_arm", {"dimension": 6}, 5000, 2000, "robot6d"),
    ("corner_peak", {"dimension": 4}, 5000, 1000, "cornerpeak4d"),
    ("checkmark", {"dimension": 3}, 2000, 2000, "checkmark3d"),
    ("borehole", {}, 500, 1000, "borehole8d"),
    ("robot_arm", {"dimension": 6}, 500, 1000, "robot6d"),
]


def run(name, parameters, n_samples, n_neurons, derivatives, seed):
    """Return the error, the seconds and the model of one fit."""
    problem, rng = problems.get(name, **parameters), np.random.default_rng(seed)
    data = problem.jet(problem.sample(n_samples, rng))
    model = RandomFeatureRegressor(n_neurons, random_state=seed)
    start = time.process_time()
    model.fit(data.X, data.y, gradients=data.gradients if derivatives == "given" else None)
    seconds = time.process_time() - start
    fresh = problem.sample(FRESH, rng)
    truth = problem.value(fresh)
    return np.linalg.norm(model.predict(fresh) - truth) / np.linalg.norm(truth), seconds, model


def peers(dataset, n_samples, with_gradients):
    """Return the three best of the other tools, as text."""
    with PEERS.open() as file:
        rows = [row for row in csv.DictReader(file) if (row["dataset"], row["K"]) == (dataset, str(n_samples))]
    rows = [row for row in rows if with_gradients or row["uses_grad"] == "0"]
    best = sorted(rows, key=lambda row: float(row["relerr_mean"]))[:3]
    return ", ".join(f"{row['peer']} {float(row['relerr_mean']):.1e} ({float(row['fit_s']):.0f} s)" for row in best)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--derivatives", nargs="+", default=["given", "estimate"], choices=["given", "estimate"])
    parser.add_argument("--cases", nargs="+", type=int, default=range(len(CASES)), help="numbers from 0")
    arguments = parser.parse_args()
    for derivatives in arguments.derivatives:
        print(f"\nderivatives: {derivatives}")
        print("| problem | samples | neurons | error (smallest, largest) | seconds | chosen | best peers |")
        print("|---|---|---|---|---|---|---|")
        for number in arguments.cases:
            name, parameters, n_samples, n_neurons, dataset = CASES[number]
            runs = [run(name, parameters, n_samples, n_neurons, derivatives, seed) for seed in range(arguments.seeds)]
            errors = [error for error, _, _ in runs]
            model = runs[int(np.argsort(errors)[len(errors) // 2])][2]
            chosen = (
                f"{type(model.density_).__name__}, width {model.width_:g}, gradient weight {model.gradient_weight_:g}, "
                f"alpha {model.alpha_:.0e}, {model.fit_.network.features.n_neurons} neurons"
            )
            print(
                f"| {name.replace('_', ' ')} | {n_samples} | {n_neurons} | {np.median(errors):.2e} ({min(errors):.1e}, "
                f"{max(errors):.1e}) | {np.median([seconds for _, seconds, _ in runs]):.1f} | {chosen} | "
                f"{peers(dataset, n_samples, derivatives == 'given')} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
