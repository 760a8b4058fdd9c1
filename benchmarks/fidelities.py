"""Measure what many cheap runs and few dear ones give, beside the dear ones alone.

    python benchmarks/fidelities.py [--model wide] [--seeds 5] [--pairs Forrester]

Pairs of functions from the literature: Forrester, Sobester and Keane (2007), Currin's, the borehole and Park's pairs of
Xiong, Qian and Wu (2013), and one pair whose cheap function says nothing of the dear one. A base is fitted to 30 cheap
runs for each input, and a model to few dear ones, with the base and without it, without and with gradients of both.
Samples are Latin hypercubes. Errors are root mean squares at 2000 fresh points, in units of the standard deviation of
the values there: medians over the seeds. "ratio" is the error with the base over that without it, in the geometric
mean and at most; "reported" the estimated error over the true one, in the geometric mean; "used" the share of fits that
took the base; "inside" the share of true values within the 90% intervals.
"""

import argparse
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import qmc

from nurf import KernelFeatureRegressor, RandomFeatureRegressor, Surrogate
from nurf.problems import Borehole
from search import exact_gradients

MODELS = {
    "wide": lambda seed: KernelFeatureRegressor(),
    "sampled": lambda seed: RandomFeatureRegressor(random_state=seed),
    "surrogate": lambda seed: Surrogate(10, random_state=seed),
}
CHEAP, FRESH = 30, 2000  # cheap runs for each input, and fresh points


def forrester(X):
    """Return the values of Forrester's function."""
    return (6 * X[:, 0] - 2) ** 2 * np.sin(12 * X[:, 0] - 4)


def cheap_forrester(X):
    """Return the values of its cheap version."""
    return 0.5 * forrester(X) + 10 * (X[:, 0] - 0.5) - 5


def currin(X):
    """Return the values of Currin's exponential function."""
    a, b = X.T
    floor = np.where(b.real > 1e-9, b, 1e-9)
    rational = (2300 * a**3 + 1900 * a**2 + 2092 * a + 60) / (100 * a**3 + 500 * a**2 + 4 * a + 20)
    return (1 - np.exp(-1 / (2 * floor))) * rational


def cheap_currin(X):
    """Return the mean of its values at four points around each point, none of them below the box."""
    moves = np.array([(i, j) for i in (0.05, -0.05) for j in (0.05, -0.05)])
    points = [X + move for move in moves]
    return sum(currin(np.where(np.array([False, True]) & (p.real < 0), 0, p)) for p in points) / 4


def park(X):
    """Return the values of Park's first function."""
    a, b, c, d = X.T
    a = np.where(a.real > 1e-3, a, 1e-3)
    return a / 2 * (np.sqrt(1 + (b + c**2) * d / a**2) - 1) + (a + 3 * d) * np.exp(1 + np.sin(c))


def cheap_park(X):
    """Return the values of its cheap version."""
    a, b, c, _ = X.T
    return (1 + np.sin(a) / 10) * park(X) - 2 * a + b**2 + c**2 + 0.5


def park_b(X):
    """Return the values of Park's second function."""
    a, b, c, d = X.T
    return 2 / 3 * np.exp(a + b) - d * np.sin(c) + c


def cheap_park_b(X):
    """Return the values of its cheap version."""
    return 1.2 * park_b(X) - 1


def borehole(X, factor=2 * np.pi, one=1.0):
    """Return the flow through a borehole."""
    box = Borehole().native_domain
    low, high = box.lower, box.upper
    rw, r, Tu, Hu, Tl, Hl, L, Kw = (low + (high - low) * X).T
    ratio = np.log(r / rw)
    return factor * Tu * (Hu - Hl) / (ratio * (one + 2 * L * Tu / (ratio * rw**2 * Kw) + Tu / Tl))


def cheap_borehole(X):
    """Return the values of its cheap version."""
    return borehole(X, 5.0, 1.5)


def unrelated(X):
    """Return values that say nothing of the borehole."""
    return np.sin(X @ np.arange(1, 9)) + X[:, 6] ** 2


@dataclass(frozen=True)
class Pair:
    """Two functions of the unit cube, and numbers of dear samples."""

    dear: Any
    cheap: Any
    dimension: int
    sizes: tuple[int, ...]


PAIRS = {
    "Forrester": Pair(forrester, cheap_forrester, 1, (4, 6, 10)),
    "Currin": Pair(currin, cheap_currin, 2, (8, 15, 30)),
    "Park 1": Pair(park, cheap_park, 4, (10, 20, 40)),
    "Park 2": Pair(park_b, cheap_park_b, 4, (10, 20, 40)),
    "borehole": Pair(borehole, cheap_borehole, 8, (10, 20, 40)),
    "unrelated": Pair(borehole, unrelated, 8, (10, 20, 40)),
}


def data(function, points, with_gradients):
    """Return the arguments of a fit."""
    found = {"X": points, "y": function(points)}
    return found | ({"gradients": exact_gradients(function, points)} if with_gradients else {})


def measured(pair, n, with_gradients, make, seed):
    """Return errors without and with the base, the reported over the true error, use, and coverage."""
    sampler = qmc.LatinHypercube(pair.dimension, seed=np.random.default_rng([seed, n]))
    X, cheap, fresh = (sampler.random(m) for m in (n, CHEAP * pair.dimension, FRESH))
    truth = pair.dear(fresh)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base = make(seed).fit(**data(pair.cheap, cheap, with_gradients))
        dear = data(pair.dear, X, with_gradients)
        models = [make(seed).fit(**dear), make(seed).fit(**dear, base=base)]
        low, high = models[1].predict_interval(fresh).T
    errors = [np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)) for model in models]
    inside = np.mean((low <= truth) & (truth <= high))
    used = models[1].base_ is not None
    return *(error / truth.std() for error in errors), models[1].estimated_error_ / errors[1], used, inside


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="wide")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pairs", nargs="+", choices=PAIRS, default=list(PAIRS))
    options = parser.parse_args()
    print("| pair | dear samples | data | alone | with the base | ratio | at most | reported | used | inside |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in options.pairs:
        pair = PAIRS[name]
        for n in pair.sizes:
            for with_gradients in (False, True):
                rows = [measured(pair, n, with_gradients, MODELS[options.model], seed) for seed in range(options.seeds)]
                alone, base, reported, used, inside = np.array(rows, float).T
                ratios = base / alone
                print(
                    f"| {name} | {n} | {'gradients' if with_gradients else 'values'} | {np.median(alone):.2g} "
                    f"| {np.median(base):.2g} | {np.exp(np.mean(np.log(ratios))):.2g} | {ratios.max():.2g} "
                    f"| {np.exp(np.mean(np.log(reported))):.2g} | {used.mean():.0%} | {inside.mean():.0%} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
