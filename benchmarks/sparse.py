"""Compare sparse training with the paper's authors' code: neurons, error and seconds along the path over alpha.

    OMP_NUM_THREADS=1 python benchmarks/sparse.py [--cases checkmark_2d ...] [--trials 3] [--derivatives]

The data, the widths, the penalty and the path are theirs, as in the reproduction of the paper. Their loss is divided by
d K, ours by K, so that their alpha is d times as large in our convention. What differs: our constant is not penalised
and no neuron; their weights are normalised by sqrt(|a|^2 + kappa b^2). The last columns are the best error of a path of
ours (two more factors of 4, in steps of 2) with at most as many neurons as theirs has at the step, and the seconds of
all of that path. Of checkmark_3d there are no figures of theirs. Seconds are of one core, cumulated over the path;
theirs were measured on a shared machine (+-30%).

With --derivatives: what gradients and Hessians in the loss change, on few samples without noise.
"""

import argparse
import time

import numpy as np

from nurf import problems
from nurf.activations import Sigmoid
from nurf.engines import fit_sparse
from nurf.solvers import LogPenalty, Loss
from reproduction.authors import reference as authors_errors
from reproduction.cases import CASES
from reproduction.plan import Scope, trained

NAMES = ("gaussian_bump", "planar_wave", "checkmark_2d", "corner", "separable", "checkmark_3d")


def theirs(case):
    """Return their neurons, errors and cumulated seconds, step by step; six unknown steps if none were run."""
    rows = [row for rows in authors_errors().trials(case, "sparse") for row in rows]
    seconds = np.cumsum([row.seconds for row in rows])
    return [(row.neurons, row.error, s) for row, s in zip(rows, seconds, strict=True)] or [(0, np.nan, np.nan)] * 6


def relative_error(network, jets):
    """Return the error on training and validation rows together, as their code defines it."""
    residuals = sum(np.sum((network.value(jet.X) - jet.y) ** 2) for jet in jets)
    return np.sqrt(residuals / sum(np.sum(jet.y**2) for jet in jets))


def run(case, seed, reference):
    """Return our neurons, errors and seconds along their path, and our errors with their numbers of neurons."""
    width, path = CASES[case].width, trained(case, Scope()).experiment
    jets = CASES[case].data(np.random.default_rng(seed))
    options = {"penalty": LogPenalty(path.gamma, path.theta)}
    start = time.process_time()
    fit = fit_sparse(jets[0], Sigmoid(width), np.random.default_rng(seed), alphas=path.alphas, **options)
    total = time.process_time() - start
    steps = [(step.n_neurons, relative_error(step.network, jets), step.seconds) for step in fit.history]
    statuses = {step.status for step in fit.history}
    finer = path.alphas[0] * 2.0 ** -np.arange(2 * len(reference) + 3)
    budgets = []
    for neurons, _, _ in reference:
        if neurons == 0:
            budgets.append((np.nan, np.nan))
            continue
        start = time.process_time()
        fit = fit_sparse(
            jets[0], Sigmoid(width), np.random.default_rng(seed), alphas=finer, max_neurons=neurons, **options
        )
        seconds = time.process_time() - start
        budgets.append((min(relative_error(step.network, jets) for step in fit.history), seconds))
    shares = np.cumsum([seconds for _, _, seconds in steps])
    return [(n, e, s) for (n, e, _), s in zip(steps, total * shares / shares[-1], strict=True)], budgets, statuses


LOSSES = {"values": Loss(), "gradients": Loss(0.05), "Hessians": Loss(0.0, 3e-4), "both": Loss(0.05, 3e-4)}


def derivatives(trials=8):
    """Print errors and neurons with more and more derivatives in the loss."""
    wave = problems.get("planar_wave")
    print("| samples | " + " | ".join(f"{name}: error | neurons | seconds" for name in LOSSES) + " |")
    print("|" + "---|" * (1 + 3 * len(LOSSES)))
    for n in (30, 60, 120):
        runs = np.array([[measured(wave, n, seed, loss) for loss in LOSSES.values()] for seed in range(trials)])
        means = np.exp(np.log(runs).mean(axis=0))
        print(f"| {n} | " + " | ".join(f"{e:.3f} | {size:.0f} | {s:.1f}" for e, size, s in means) + " |", flush=True)


def measured(problem, n, seed, loss):
    """Return the relative error on fresh points, the neurons and the seconds of a fit to ``n`` samples."""
    rng = np.random.default_rng(seed)
    jet, fresh = problem.jet(problem.sample(n, rng)), problem.sample(2000, rng)
    start = time.process_time()
    fit = fit_sparse(jet, Sigmoid(0.1), rng, alphas=[1e-2, 2.5e-3, 6e-4], loss=loss)
    seconds = time.process_time() - start
    truth, step = problem.value(fresh), fit.history[-1]
    return np.linalg.norm(step.network.value(fresh) - truth) / np.linalg.norm(truth), step.n_neurons, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--derivatives", action="store_true", help="derivatives in the loss instead")
    arguments = parser.parse_args()
    if arguments.derivatives:
        derivatives()
        return
    print("errors: exp(mean log error) over the trials; neurons and seconds: means")
    print(
        f"{'case':14s} step {'theirs: N':>10s} {'error':>8s} {'s':>7s} {'ours: N':>10s} {'error':>8s} {'s':>7s}", end=""
    )
    print(f" {'times faster':>13s} {'ours, N <= theirs':>18s} {'s':>7s}")
    for case in arguments.cases:
        reference = theirs(case)
        runs = [run(case, seed, reference) for seed in range(arguments.trials)]
        ours = np.array([steps for steps, _, _ in runs], float)
        budgets = np.exp(np.log([errors for _, errors, _ in runs]).mean(axis=0))  # errors and seconds
        for i, (neurons, error, seconds) in enumerate(reference):
            count, _, time_ = ours[:, i].mean(axis=0)
            mean = np.exp(np.log(ours[:, i, 1]).mean())
            print(
                f"{case:14s} {i:4d} {neurons:10d} {error:8.4f} {seconds:7.2f} {count:10.1f} {mean:8.4f} {time_:7.2f}"
                f" {seconds / time_:13.1f} {budgets[i, 0]:18.4f} {budgets[i, 1]:7.2f}",
                flush=True,
            )
        print(f"{'':14s} {' '.join(sorted(set().union(*(s for _, _, s in runs))))}", flush=True)


if __name__ == "__main__":
    main()
