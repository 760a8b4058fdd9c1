"""Measure whether the intervals of answers contain the truth.

    python benchmarks/decisions.py --out results.csv [--models wide sampled] [--samples 20 50 100 200] [--seeds 1]
                                   [--functions Ishigami] [--inputs 10] [--jobs 1]
    python benchmarks/decisions.py --table results.csv
    python benchmarks/decisions.py --published

The first form fits models to functions of uqtestfuns (every second one of those in `collection.py`, with at most
`--inputs` inputs), without and with gradients, asks for the mean, the standard deviation, quantiles, Sobol indices, the
probability of values above the 0.95 quantile, the probabilities that `failure` finds for the limits that a share of
0.05, 0.01 and 0.001 of the values exceeds, and the smallest value, with uniform inputs, and adds a row for each fit:
the share of the numbers of each answer whose 90% interval contains the truth, which is asked of the function itself,
and their median errors. Errors of probabilities are relative, those of indices absolute, and all others in standard
deviations of the values. The error of the points is added to the intervals. Rows that are there already are kept, so
that a run can be stopped and taken up again. The second form prints as Markdown the mean shares, and the median errors
from values alone and with gradients.

The third form asks for published probabilities of failure, of the functions themselves and of models of them.
"""

import argparse
import time
import warnings
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import uqtestfuns
from scipy.stats import gumbel_r, lognorm, norm, qmc, uniform
from sklearn.base import BaseEstimator

from collection import FUNCTIONS, STEP, Function, sample
from measuring import measure, print_table, read
from nurf import KernelFeatureRegressor, RandomFeatureRegressor, Surrogate
from nurf.decisions import Estimate, failure, minimize, propagate, sensitivity

MODELS = {
    "wide": lambda seed: KernelFeatureRegressor(),
    "sampled": lambda seed: RandomFeatureRegressor(random_state=seed),
    "surrogate": lambda seed: Surrogate(5, random_state=seed),
}
PUBLISHED = {  # function: value below which it fails, and published probabilities
    "FourBranch": (0.0, "4.460e-3"),
    "GaytonHat": (0.0, "2.85e-5"),
    "CantileverBeam2D": (0.0, "9.594e-3"),
    "RSDampedOscillator": (0.0, "4.63e-3 to 4.83e-3"),
    "RSSpeedReducerShaft": (0.0, "7.85e-4"),
}
KEY = ["function", "model", "samples", "gradients", "seed"]
ANSWERS = ["mean", "std", "quantiles", "first", "total", "exceedance", "failure", "minimum"]
COLUMNS = [*KEY, *ANSWERS, *(f"{answer} error" for answer in ANSWERS), "seconds"]
RARE = (0.05, 0.01, 0.001)  # shares of the values that exceed the limits of `failure`
Z = norm.ppf(0.95)
ROUNDING = 1e-6  # of the standard deviation of the values: answers that are closer than that are not told apart


class Inside:
    """A function of the unit cube, whose gradients at the boundary are taken a step inside, where differences fit."""

    def __init__(self, function):
        self.function = function

    def __call__(self, X):
        """Return the values."""
        return self.function(np.clip(X, 0, 1))

    def gradients(self, X):
        """Return the gradients by differences."""
        return self.function.gradients(np.clip(X, STEP, 1 - STEP))


class Same:
    """A function in place of draws of a model: all of them are the same."""

    def __init__(self, function, n, single=False):
        self.function, self.n, self.single = function, n, single

    @property
    def fit(self):
        """The function itself."""
        return Same(self.function, 1, single=True)

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        chosen = np.arange(self.n)[index]
        return Same(self.function, np.size(chosen), np.ndim(chosen) == 0)

    def value(self, X):
        """Return the values of all draws."""
        return self._each(self.function, X)

    def gradient(self, X):
        """Return the gradients of all draws."""
        return self._each(self.function.gradients, X)

    def _each(self, function, X):
        found = function(X.reshape(-1, X.shape[-1]))
        if X.ndim == 3:
            return found.reshape(*X.shape[:2], *found.shape[1:])
        return found if self.single else np.repeat(found[None], self.n, axis=0)


class Truth(BaseEstimator):
    """A function in place of a model."""

    def __init__(self, function, low, high):
        low, high = np.asarray(low, float), np.asarray(high, float)
        self.function, self.n_features_in_ = function, len(low)
        scale = (high - low) / 2 * np.sqrt(len(low))
        self.scaling_ = SimpleNamespace(x_center=(low + high) / 2, x_scale=scale)

    def fit(self, X, y):
        """Do nothing: the function is known."""

    def draws(self, n, random_state=None):
        """Return the function ``n`` times."""
        return Same(self.function, n)


def asked(model, limits, n_draws, seed):
    """Return all answers, and the errors of the points, as a dict of lists of estimates."""
    inputs = [uniform()] * model.n_features_in_
    options = {"n_draws": n_draws, "random_state": seed}
    distribution, indices = propagate(model, inputs, **options), sensitivity(model, inputs, **options)
    return {
        "mean": [distribution.mean],
        "std": [distribution.std],
        "quantiles": [distribution.quantile(p) for p in (0.05, 0.5, 0.95)],
        "first": [indices.first[j] for j in range(len(inputs))],
        "total": [indices.total[j] for j in range(len(inputs))],
        "exceedance": [distribution.exceedance(limits[0])],
        "failure": [probability(model, inputs, limit, options) for limit in limits],
        "minimum": [minimize(model, [(0, 1)] * len(inputs), **options).value],
    }


def probability(model, inputs, limit, options):
    """Return the probability of larger values, zero without an interval if no draw reaches the limit."""
    try:
        return failure(model, inputs, above=limit, **options).probability
    except ValueError:
        return Estimate(np.zeros(()), np.zeros(1), np.zeros(()))


@cache
def known(name):
    """Return a function, its number of inputs, limits, the deviation of its values, and its answers."""
    function, d = Inside(Function(name)), Function(name).dimension
    values = function(qmc.Sobol(d, seed=0).random_base2(16))
    if not np.isfinite(values).all() or np.ptp(values) == 0:
        return None
    limits = np.quantile(values, 1 - np.array(RARE))
    truth = asked(Truth(function, np.zeros(d), np.ones(d)), limits, 1, 0)
    return function, d, limits, values.std(), truth


def run(name, model, n, gradients, seed):
    """Return the row of one fit."""
    function, d, limits, deviation, truth = known(name)
    start = time.process_time()
    X = sample(n, d, np.random.default_rng([crc32(name.encode()), n, seed]))
    given = function.gradients(X) if gradients == "yes" else None
    row = dict(zip(KEY, (name, model, n, gradients, seed), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MODELS[model](seed).fit(X, function(X), gradients=given)
        found = asked(fitted, limits, 100, seed)
    for answer, estimates in found.items():
        pairs = list(zip(estimates, truth[answer], strict=True))
        unit = 1.0 if answer in ("first", "total", "exceedance", "failure") else deviation
        row[answer] = float(np.mean([is_inside(each, wanted, ROUNDING * unit) for each, wanted in pairs]))
        relative = answer in ("exceedance", "failure")
        errors = [abs(float(each) - float(wanted)) / (float(wanted) if relative else unit) for each, wanted in pairs]
        row[f"{answer} error"] = float(np.median(errors))
    return row | {"seconds": time.process_time() - start}


def is_inside(estimate, wanted, rounding):
    """Return whether an interval, with the errors of the points, contains the truth."""
    room = rounding + Z * (estimate.error + wanted.error)
    low, high = estimate.interval
    return bool(low - room <= wanted.value <= high + room)


def table(path):
    """Print the shares of answers whose interval contains the truth, and the median errors."""
    rows = read(path)
    _print_shares(rows)
    print()
    _print_errors(rows)


def _print_errors(rows):
    cells = []
    for model, n in dict.fromkeys((row["model"], row["samples"]) for row in rows):
        own = [r for r in rows if (r["model"], r["samples"]) == (model, n)]
        kinds = [[r for r in own if r["gradients"] == kind] for kind in ("no", "yes")]
        errors = [" / ".join(_median(kind, f"{answer} error", ".2g") for kind in kinds) for answer in ANSWERS]
        seconds = " / ".join(_median(kind, "seconds", ".1f") for kind in kinds)
        cells.append([model, n, "{} / {}".format(*map(len, kinds)), *errors, seconds])
    print_table(["model", "samples", "fits, values / gradients", *ANSWERS, "seconds"], cells)


def _median(rows, column, form):
    known = _known(rows, column)
    return format(float(np.median(known)), form) if known else "-"


def _known(rows, column):
    """Return the numbers of a column; rows may lack answers that were measured later."""
    return [float(row[column]) for row in rows if row[column]]


def _print_shares(rows):
    groups = dict.fromkeys((row["model"], row["samples"], row["gradients"]) for row in rows)
    groups |= dict.fromkeys((model, "all", "both") for model, _, _ in groups)
    cells = []
    for model, n, gradients in groups:
        own = [r for r in rows if r["model"] == model and n in (r["samples"], "all")]
        own = [r for r in own if gradients in (r["gradients"], "both")]
        known = [_known(own, answer) for answer in ANSWERS]
        shares = [_share(each, len(own)) for each in known]
        cells.append([model, n, gradients, str(len(own)), *shares])
    print_table(["model", "samples", "gradients", "fits", *ANSWERS], cells)


def _share(found, n):
    """Return the mean, with the number of fits if it is not all ``n``."""
    number = f" ({len(found)})" if len(found) < n else ""
    return f"{np.mean(found):.2f}{number}" if found else "-"


class Native:
    """A function of uqtestfuns in its own units, with differences as gradients."""

    def __init__(self, name):
        self.function = getattr(uqtestfuns, name)()
        self.marginals = [_marginal(each) for each in self.function.prob_input.marginals]
        self.steps = 1e-5 * np.array([each.std() for each in self.marginals])
        self.ends = [[getattr(each, end) for each in self.function.prob_input.marginals] for end in ("lower", "upper")]

    def __call__(self, X):
        """Return the values."""
        return np.asarray(self.function(np.clip(X, *self.ends)), float).reshape(len(X))

    def gradients(self, X):
        """Return the gradients by central differences."""
        moved = [(self(X + step) - self(X - step)) / (2 * step.sum()) for step in np.diag(self.steps)]
        return np.stack(moved, axis=-1)


def _marginal(marginal):
    a, b = marginal.parameters
    kinds = {
        "normal": lambda: norm(a, b),
        "lognormal": lambda: lognorm(b, scale=np.exp(a)),
        "gumbel": lambda: gumbel_r(a, b),
        "uniform": lambda: uniform(a, b - a),
    }
    return kinds[marginal.distribution]()


def published(known):
    """Print published probabilities beside those of the functions and of models."""
    print("| function | published | function itself | variation | samples | model | interval |")
    print("|---|---|---|---|---|---|---|")
    for name, (limit, value) in known.items():
        function = Native(name)
        low, high = (np.array([each.ppf(p) for each in function.marginals]) for p in (1e-5, 1 - 1e-5))
        exact = failure(Truth(function, low, high), function.marginals, below=limit, n_draws=1, random_state=0)
        for n in (64, 128):
            X = low + (high - low) * qmc.Sobol(len(low), seed=1).random_base2(int(np.log2(n)))
            model = KernelFeatureRegressor().fit(X, function(X), gradients=function.gradients(X))
            found = failure(model, function.marginals, below=limit, random_state=0).probability
            cells = name, value, f"{exact.probability.value:.3e}", f"{exact.variation:.2g}", n, f"{found.value:.3e}"
            print("|", *(f"{cell} |" for cell in cells), "{:.3g} to {:.3g} |".format(*found.interval))


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--models", nargs="+", default=["wide", "sampled"], choices=MODELS)
    parser.add_argument("--samples", nargs="+", type=int, default=[20, 50, 100, 200])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--functions", nargs="+", default=FUNCTIONS[::2])
    parser.add_argument("--inputs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args(given)
    if arguments.out:
        names = [name for name in arguments.functions if Function(name).dimension <= arguments.inputs]
        fits = product(range(arguments.seeds), filter(known, names), arguments.models, arguments.samples, ("no", "yes"))
        tasks = [(name, model, n, gradients, seed) for seed, name, model, n, gradients in fits]
        order = np.random.default_rng(0).permutation(len(tasks))  # a run that was stopped has a fair share of them
        measure(arguments.out, COLUMNS, KEY, [tasks[i] for i in order], run, arguments.jobs)
    if arguments.table:
        table(arguments.table)
    if arguments.published:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            published(PUBLISHED)


if __name__ == "__main__":
    main()
