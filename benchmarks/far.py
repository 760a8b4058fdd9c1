"""Measure what standard deviations and intervals hold far from the samples.

    python benchmarks/far.py [--models sampled wide trained sparse] [--inputs 2 4 8] [--samples 30 100 300]

Samples are uniform in a box, or in two clusters in opposite corners of it. The shares are those of errors within 1.645
standard deviations, and within intervals that promise 0.9: where the samples are, in a box of twice the size, and in
the whole box around the two clusters; means over four functions, numbers of inputs and numbers of samples. Growth is
the median standard deviation there over that where the samples are.
"""

import argparse
import warnings
from collections import defaultdict
from itertools import product

import numpy as np
from threadpoolctl import threadpool_limits

from nurf import DeepFeatureRegressor, KernelFeatureRegressor, RandomFeatureRegressor, SparseFeatureRegressor

MODELS = {
    "sampled": lambda: RandomFeatureRegressor(random_state=0),
    "wide": KernelFeatureRegressor,
    "trained": lambda: DeepFeatureRegressor((24, 24), steps=1500, random_state=0),
    "sparse": lambda: SparseFeatureRegressor(max_neurons=30, max_iter=15, random_state=0),
}
FRESH = 400
NORMAL = 1.645  # standard deviations that hold 0.9 of a normal distribution


def smooth(X):
    """Waves along all inputs and a product of two."""
    return np.sin(1.5 * X) @ np.linspace(1, 0.3, X.shape[1]) + X[:, 0] * X[:, 1]


def ridge(X):
    """An exponential function of one direction."""
    return np.exp(0.9 * X @ (np.linspace(1, -0.5, X.shape[1]) / np.sqrt(X.shape[1] / 2)))


def peak(X):
    """A peak in three inputs, or two, and a slope."""
    return 1 / (1 + 2 * np.sum((X[:, :3] - 0.3) ** 2, axis=1)) + 0.3 * X[:, 0]


def kink(X):
    """The largest of three linear functions."""
    return np.max([X[:, 0] - 0.5 * X[:, 1], 0.4 * X[:, 1] + X[:, -1], -0.6 * X[:, 0]], axis=0)


FUNCTIONS = (smooth, ridge, peak, kink)


def box(n, d, rng):
    """Return points in the box."""
    return rng.uniform(-1, 1, (n, d))


def clusters(n, d, rng):
    """Return points in two opposite corners of it."""
    return 0.7 * rng.choice([-1, 1], n)[:, None] + rng.uniform(-0.3, 0.3, (n, d))


DESIGNS = {"twice the box": (box, 2.0), "around clusters": (clusters, 1.0)}


def measure(model, function, X, near, far):
    """Return the shares near and far from the samples, and the growth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, function(X))
    shares, sizes = [], []
    for points in (near, far):
        truth, (values, deviations) = function(points), model.predict(points, return_std=True)
        low, high = model.predict_interval(points).T
        shares += [np.mean(np.abs(values - truth) <= NORMAL * deviations), np.mean((low <= truth) & (truth <= high))]
        sizes.append(np.median(deviations))
    return [*shares, sizes[1] / sizes[0]]


def main():
    """Fit all cases, and print a table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--inputs", nargs="+", type=int, default=[2, 4, 8])
    parser.add_argument("--samples", nargs="+", type=int, default=[30, 100, 300])
    arguments = parser.parse_args()
    found = defaultdict(list)
    for name, (place, (design, size)), d, n, function in product(
        arguments.models, DESIGNS.items(), arguments.inputs, arguments.samples, FUNCTIONS
    ):
        rng = np.random.default_rng([d, n, FUNCTIONS.index(function)])
        X, near = design(n, d, rng), design(FRESH, d, rng)
        found[name, place].append(measure(MODELS[name](), function, X, near, size * box(FRESH, d, rng)))
    print("| engine | place | inside: deviations | intervals | outside: deviations | intervals | growth |")
    print("|---|---|---|---|---|---|---|")
    for (name, place), rows in found.items():
        shares, growth = np.mean(rows, axis=0)[:4], np.median(rows, axis=0)[4]
        print(f"| {name} | {place} | " + " | ".join(f"{share:.2f}" for share in shares) + f" | {growth:.2g} |")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
