"""Compare our errors with those of the paper's authors' code, law by law, in the paper's setting.

    python benchmarks/authors.py [--trials 10] [--cases borehole_8d checkmark_2d ...] [--laws uniform local ...]

Everything is as in their experiments: sigmoid (softplus for order 2) of width 1/40 (1/80 in 1d), the same numbers of
samples, validation points and noise, their 16 values of alpha and their rule, their error (training and validation rows
together), their eight stages for the residual laws, their Cauchy-type mollifier for the representation. What differs:
our tail is not penalised, theirs is a penalised constant neuron (for order 2, linear neurons too) for some laws; the
residual laws choose from all values of alpha that occur in their stages.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from nurf import problems
from nurf.activations import Sigmoid, Softplus
from nurf.densities import ActiveSubspace, Local, Nonlocal, Representation, Uniform
from nurf.solvers import Validation
from nurf.training import fit_adaptive

REFERENCE = Path(__file__).parent / "reference" / "authors_code.csv"
NOISE = 0.02
ENERGY = 0.15  # about the mean energy of a feature, which is the unit of our alphas

# case: problem, order, samples (None: the grid), neurons, width
CASES = {
    "gaussian_bump": (problems.get("gaussian_bump"), 1, None, 50, 1 / 80),
    "gaussian_bump_s2": (problems.get("gaussian_bump"), 2, None, 50, 1 / 80),
    "planar_wave": (problems.get("planar_wave"), 1, None, 250, 1 / 40),
    "checkmark_2d": (problems.get("checkmark", dimension=2), 1, None, 250, 1 / 40),
    "corner": (problems.get("corner"), 1, None, 250, 1 / 40),
    "separable": (problems.get("separable"), 1, None, 250, 1 / 40),
    "checkmark_3d": (problems.get("checkmark", dimension=3), 1, 2000, 1000, 1 / 40),
    "checkmark_4d": (problems.get("checkmark", dimension=4), 1, 2000, 1000, 1 / 40),
    "corner_peak_3d": (problems.get("corner_peak", dimension=3), 1, 5000, 1000, 1 / 40),
    "corner_peak_4d": (problems.get("corner_peak", dimension=4), 1, 5000, 1000, 1 / 40),
    "robot_arm_6d": (problems.get("robot_arm", dimension=6), 1, 5000, 1000, 1 / 40),
    "borehole_8d": (problems.get("borehole"), 1, 5000, 1000, 1 / 40),
}


def laws(order, width):
    local, nonlocal_ = Local(order, jitter=2 * width), Nonlocal(order, bandwidth=2 * width)
    return {
        "uniform": Uniform(),
        "active_subspace": ActiveSubspace(order),
        "local": local,
        "nonlocal": nonlocal_,
        "representation": Representation(order, width=width, mollifier="cauchy", data="gradients"),
        "local_residual": local,
        "nonlocal_residual": nonlocal_,
    }


def data(problem, n_samples, rng):
    """Return training and validation jets; the 1d and 2d cases are noisy grids with clean validation points."""
    if n_samples is None:
        X, noise = problem.grid(1000 if problem.dimension == 1 else 31), NOISE
    else:
        X, noise = problem.sample(n_samples, rng), 0.0
    return problem.jet(X, noise=noise, rng=rng), problem.jet(problem.sample(len(X), rng))


def error(law, case, rng):
    """Return the relative error of one trial."""
    problem, order, n_samples, n_neurons, width = CASES[case]
    train, validation = data(problem, n_samples, rng)
    counts = np.unique(np.geomspace(4, n_neurons, 8).round().astype(int)) if law.endswith("residual") else [n_neurons]
    theirs = problem.dimension * np.logspace(1, -4, 16) / np.square(counts, dtype=float)[:, None]
    fit = fit_adaptive(
        train,
        laws(order, width)[law],
        {1: Sigmoid, 2: Softplus}[order](width),
        counts,
        rng,
        alphas=np.geomspace(theirs.max(), theirs.min(), 16 + 2 * (len(counts) - 1)) / ENERGY,
        rule=Validation(validation),
        patience=len(counts),
    )
    return fit.error / np.sqrt((np.mean(train.y**2) + np.mean(validation.y**2)) / 2)


def reference():
    """Return the authors' errors with the largest number of neurons, by case and law."""
    errors = {}
    with REFERENCE.open() as file:
        for row in csv.DictReader(file):
            case = row["case"] + ("_s2" if row["order"] == "2" else "")
            if case in CASES and int(row["neurons"]) == CASES[case][3]:
                errors.setdefault((case, row["law"]), []).append(float(row["relative_error"]))
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--laws", nargs="+", default=list(laws(1, 1.0)), choices=list(laws(1, 1.0)))
    arguments = parser.parse_args()
    print(
        "errors: exp(mean log error) over trials, with the standard deviation of log error; z in units of both spreads"
    )
    print(f"{'case':16s} {'law':17s} {'neurons':>7s} {'ours':>16s} {'theirs (trials)':>22s} {'ratio':>6s} {'z':>5s}")
    for (case, law), known in reference().items():
        if case not in arguments.cases or law not in arguments.laws:
            continue
        rng = np.random.default_rng(0)
        ours = np.log([error(law, case, rng) for _ in range(arguments.trials)])
        known = np.log(known)
        own = ours.std(ddof=1)
        spread = np.hypot(own, known.std(ddof=1) if len(known) > 1 else own)
        gap = ours.mean() - known.mean()
        print(
            f"{case:16s} {law:17s} {CASES[case][3]:7d} {np.exp(ours.mean()):9.3e} ±{own:5.2f}"
            f" {np.exp(known.mean()):11.3e} ±{known.std(ddof=min(1, len(known) - 1)):5.2f} ({len(known):2d})"
            f" {np.exp(gap):6.2f} {gap / spread:5.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
