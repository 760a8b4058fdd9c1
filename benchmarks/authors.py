"""Compare our errors with those of the paper's authors' code, law by law, in the paper's setting.

    python benchmarks/authors.py [--trials 10] [--cases borehole_8d checkmark_2d ...]

Everything is as in their experiments: sigmoid of width 1/40 (1/80 in 1d), the same numbers of samples, validation
points and noise, their 16 values of alpha and their rule, their error (training and validation rows together). What
differs: our tail holds an unpenalised constant, theirs a penalised constant neuron for some laws.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from nurf import problems
from nurf.activations import Sigmoid
from nurf.densities import ActiveSubspace, Local, Nonlocal, Uniform
from nurf.network import Features
from nurf.solvers import Validation, factor, largest_near_best

REFERENCE = Path(__file__).parent / "reference" / "authors_code.csv"
NOISE = 0.02

# case: problem, samples (None: the grid), neurons, width
CASES = {
    "gaussian_bump": (problems.get("gaussian_bump"), None, 50, 1 / 80),
    "planar_wave": (problems.get("planar_wave"), None, 250, 1 / 40),
    "checkmark_2d": (problems.get("checkmark", dimension=2), None, 250, 1 / 40),
    "corner": (problems.get("corner"), None, 250, 1 / 40),
    "separable": (problems.get("separable"), None, 250, 1 / 40),
    "checkmark_3d": (problems.get("checkmark", dimension=3), 2000, 1000, 1 / 40),
    "checkmark_4d": (problems.get("checkmark", dimension=4), 2000, 1000, 1 / 40),
    "corner_peak_3d": (problems.get("corner_peak", dimension=3), 5000, 1000, 1 / 40),
    "corner_peak_4d": (problems.get("corner_peak", dimension=4), 5000, 1000, 1 / 40),
    "robot_arm_6d": (problems.get("robot_arm", dimension=6), 5000, 1000, 1 / 40),
    "borehole_8d": (problems.get("borehole"), 5000, 1000, 1 / 40),
}


def laws(width):
    return {
        "uniform": Uniform(),
        "active_subspace": ActiveSubspace(),
        "local": Local(jitter=2 * width),
        "nonlocal": Nonlocal(bandwidth=2 * width),
    }


def data(problem, n_samples, rng):
    """Return training and validation jets; the 1d and 2d cases are noisy grids with clean validation points."""
    if n_samples is None:
        X, noise = problem.grid(1000 if problem.dimension == 1 else 31), NOISE
    else:
        X, noise = problem.sample(n_samples, rng), 0.0
    return problem.jet(X, noise=noise, rng=rng), problem.jet(problem.sample(len(X), rng))


def error(density, problem, n_samples, n_neurons, width, rng):
    train, validation = data(problem, n_samples, rng)
    features = Features(density.prepare(train).sample(n_neurons, rng), Sigmoid(width))
    ridge = factor(features, train)
    alphas = problem.dimension * np.logspace(1, -4, 16) / n_neurons**2  # theirs, in our convention
    rms = Validation(validation).errors(ridge, features, train, alphas, ridge.solve(alphas))
    size = np.sqrt((np.mean(train.y**2) + np.mean(validation.y**2)) / 2)
    return (rms / size)[largest_near_best(alphas, rms)]


def theirs():
    """Return the authors' errors with the largest number of neurons, by case and law."""
    errors = {}
    with REFERENCE.open() as file:
        for row in csv.DictReader(file):
            if row["order"] == "1" and row["case"] in CASES and int(row["neurons"]) == CASES[row["case"]][2]:
                errors.setdefault((row["case"], row["law"]), []).append(float(row["relative_error"]))
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    arguments = parser.parse_args()
    reference = theirs()
    print(
        "errors: exp(mean log error) over trials, with the standard deviation of log error; z in units of both spreads"
    )
    print(f"{'case':15s} {'law':16s} {'neurons':>7s} {'ours':>16s} {'theirs (trials)':>22s} {'ratio':>6s} {'z':>5s}")
    for case in arguments.cases:
        problem, n_samples, n_neurons, width = CASES[case]
        for law, density in laws(width).items():
            rng = np.random.default_rng(0)
            runs = range(arguments.trials)
            ours = np.log([error(density, problem, n_samples, n_neurons, width, rng) for _ in runs])
            known = np.log(reference.get((case, law), [np.nan]))
            spread = np.hypot(ours.std(ddof=1), known.std(ddof=1) if len(known) > 1 else ours.std(ddof=1))
            gap = ours.mean() - known.mean()
            print(
                f"{case:15s} {law:16s} {n_neurons:7d} {np.exp(ours.mean()):9.3e} ±{ours.std(ddof=1):5.2f}"
                f" {np.exp(known.mean()):11.3e} ±{known.std(ddof=min(1, len(known) - 1)):5.2f} ({len(known):d})"
                f" {np.exp(gap):6.2f} {gap / spread:5.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
