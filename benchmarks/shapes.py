"""Measure what conditions on the shape give: fits with them beside fits without them.

    python benchmarks/shapes.py [--models wide sampled] [--seeds 20] [--cases "tanh, 1d"]

Samples are Latin hypercubes of the unit cube, with normal noise of 10% of the standard deviation of the values, or
none. Errors are root mean squares of the noiseless values at 2000 fresh points, in units of this standard deviation:
medians over the seeds. "ratio" is the error with the conditions over the error without them, in the
geometric mean and at most.
"reported" is the estimated error over the error at fresh measurements, noise included, without and with the conditions,
in the geometric mean. "as before" is the estimate without the conditions over the error with them: what an estimate
that knows nothing of the conditions would say. "inside" is the share of fresh measurements, moved within the bounds,
in the 90% intervals.
"between" is the largest violation at points that were not checked, in units of the root mean square of the derivative
or value.
"""

import argparse
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import qmc

from nurf import KernelFeatureRegressor, RandomFeatureRegressor

MODELS = {
    "wide": lambda **options: KernelFeatureRegressor(**options),
    "sampled": lambda **options: RandomFeatureRegressor(300, random_state=0, **options),
}
FRESH = 2000


@dataclass(frozen=True)
class Case:
    """A function of the unit cube, what is known of its shape, and the data."""

    function: Any
    dimension: int
    shape: dict
    sizes: tuple[int, ...] = (10, 20, 30)
    noise: float = 0.1
    options: dict = field(default_factory=dict)


CASES = {
    "tanh, 1d": Case(lambda x: np.tanh(8 * (x[0] - 0.5)), 1, {"monotone": [1]}),
    "step, 1d": Case(lambda x: 1 / (1 + np.exp(-40 * (x[0] - 0.4))), 1, {"monotone": [1], "lower": 0, "upper": 1}),
    "exp, 1d": Case(lambda x: np.exp(3 * x[0]), 1, {"monotone": [1], "convex": [1]}),
    "bowl, 2d": Case(lambda x: (x[0] - 0.3) ** 2 + np.exp(2 * x[1]) / 5, 2, {"convex": [1, 1], "monotone": [0, 1]}),
    "bump, 2d": Case(lambda x: np.exp(-30 * ((x[0] - 0.5) ** 2 + (x[1] - 0.4) ** 2)), 2, {"lower": 0.0}),
    "logistic, 3d": Case(lambda x: 1 / (1 + np.exp(5 * (x[1] - x[0]))) + x[2] ** 2, 3, {"monotone": [1, -1, 1]}),
    "saturation, 5d": Case(
        lambda x: x[0] * x[1] / (0.3 + x[2]) + np.sqrt(x[3] + 0.01) + x[4], 5, {"monotone": [1, 1, -1, 1, 1]}
    ),
    "exp, 1d, exact": Case(lambda x: np.exp(3 * x[0]), 1, {"monotone": [1], "convex": [1]}, noise=0),
    "logistic, 3d, exact": Case(
        lambda x: 1 / (1 + np.exp(5 * (x[1] - x[0]))) + x[2] ** 2, 3, {"monotone": [1, -1, 1]}, noise=0
    ),
    "saturation, 5d, exact": Case(
        lambda x: x[0] * x[1] / (0.3 + x[2]) + np.sqrt(x[3] + 0.01) + x[4], 5, {"monotone": [1, 1, -1, 1, 1]}, noise=0
    ),
    "falling, contradicted": Case(lambda x: -x[0], 1, {"monotone": [1]}),
}


def measured(case, n, make, seed):
    """Return the numbers of one seed."""
    rng = np.random.default_rng([seed, n])
    sampler = qmc.LatinHypercube(case.dimension, seed=rng)
    X, fresh = sampler.random(n), sampler.random(FRESH)
    truth = case.function(fresh.T)
    scale = truth.std()
    y, new = (values + case.noise * scale * rng.standard_normal(len(values)) for values in (case.function(X.T), truth))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [make().fit(X, y), make(**case.shape).fit(X, y)]
        inside = []
        ends = case.shape.get("lower", -np.inf), case.shape.get("upper", np.inf)
        for model in models:
            low, high = np.clip(model.predict_interval(fresh).T, *ends)
            inside.append(np.mean((low <= np.clip(new, *ends)) & (np.clip(new, *ends) <= high)))
    predicted = [model.predict(fresh) for model in models]
    errors = [np.sqrt(np.mean((each - truth) ** 2)) / scale for each in predicted]
    true = [np.sqrt(np.mean((each - new) ** 2)) for each in predicted]
    reported = [model.estimated_error_ / error for model, error in zip(models, true, strict=True)]
    return *errors, *reported, models[0].estimated_error_ / true[1], *inside, models[1].fit_.shape.violation_between


def mean(numbers):
    """Return the geometric mean."""
    return np.exp(np.mean(np.log(numbers)))


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    options = parser.parse_args()
    print("| case | model | samples | without | with | ratio | at most | reported | as before | inside | between |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in options.cases:
        for model in options.models:
            for n in CASES[name].sizes:
                rows = [measured(CASES[name], n, MODELS[model], seed) for seed in range(options.seeds)]
                one, other, *reported, before, inside, shaped, between = np.array(rows).T
                ratios = other / one
                print(
                    f"| {name} | {model} | {n} | {np.median(one):.2g} | {np.median(other):.2g} | {mean(ratios):.2f} "
                    f"| {ratios.max():.2f} | {mean(reported[0]):.2f}, {mean(reported[1]):.2f} | {mean(before):.2f} "
                    f"| {inside.mean():.0%}, {shaped.mean():.0%} | {between.max():.1g} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
