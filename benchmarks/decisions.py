"""Measure whether the intervals of answers hold the truth.

    python benchmarks/decisions.py [--models wide sampled] [--samples 20 50 100] [--seeds 1] [--functions Ishigami]
    python benchmarks/decisions.py --published

The first form fits models to functions of uqtestfuns (every second one of those in `collection.py`, at most ten
inputs), without and with gradients, asks for the mean, the standard deviation, quantiles, Sobol indices, the
probability of values above the 0.95 quantile and the smallest value, with uniform inputs, and prints the share of
answers whose 90% interval holds the truth, which is asked of the function itself. The error of the points is added to
the intervals.

The second form asks for published probabilities of failure, of the functions themselves and of models of them.
"""

import argparse
import time
import warnings
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import uqtestfuns
from scipy.stats import gumbel_r, lognorm, norm, qmc, uniform
from sklearn.base import BaseEstimator

from collection import FUNCTIONS, STEP, Function, sample
from nurf import KernelFeatureRegressor, RandomFeatureRegressor, Surrogate
from nurf.decisions import failure, minimize, propagate, sensitivity

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
Z = norm.ppf(0.95)
ROUNDING = 1e-6  # of the standard deviation of the values: answers that are closer than that are not told apart


class Inside:
    """A function of the unit cube, for points on its boundary, too, where differences would leave it."""

    def __init__(self, function):
        self.function = function

    def __call__(self, X):
        """Return the values."""
        return self.function(np.clip(X, STEP, 1 - STEP))

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


def asked(model, threshold, n_draws, seed):
    """Return all answers, and the errors of the points, as a dict of estimates of shape (p,)."""
    inputs = [uniform()] * model.n_features_in_
    options = {"n_draws": n_draws, "random_state": seed}
    distribution, indices = propagate(model, inputs, **options), sensitivity(model, inputs, **options)
    found = {
        "mean": distribution.mean,
        "std": distribution.std,
        "quantiles": distribution.quantile([0.05, 0.5, 0.95]),
        "first": indices.first,
        "total": indices.total,
        "exceedance": distribution.exceedance(threshold),
        "minimum": minimize(model, [(0, 1)] * model.n_features_in_, **options).value,
    }
    return found


def measure(names, models, sizes, seeds):
    """Yield function, model, number of samples, gradients, answer, share of true answers in the interval."""
    for name in names:
        function, d = Inside(Function(name)), Function(name).dimension
        values = function(qmc.Sobol(d, seed=0).random_base2(12))
        if d > 10 or not np.isfinite(values).all() or np.ptp(values) == 0:
            continue
        threshold, unit = np.quantile(values, 0.95), ROUNDING * values.std()
        truth = asked(Truth(function, np.zeros(d), np.ones(d)), threshold, 1, 0)
        for n in sizes:
            for seed in range(seeds):
                rng = np.random.default_rng([crc32(name.encode()), n, seed])
                X = sample(n, d, rng)
                y, gradients = function(X), function.gradients(X)
                for model, given in ((model, given) for model in models for given in (None, gradients)):
                    fitted = MODELS[model](seed).fit(X, y, gradients=given)
                    for answer, found in asked(fitted, threshold, 100, seed).items():
                        room = unit + Z * (found.error + truth[answer].error)
                        low, high = np.moveaxis(found.interval, -1, 0)
                        wanted = truth[answer].value
                        inside = (low - room <= wanted) & (wanted <= high + room)
                        yield name, model, n, given is not None, answer, float(np.mean(inside))


def table(rows):
    """Print the shares of answers whose interval holds the truth."""
    answers = list(dict.fromkeys(row[4] for row in rows))
    print("| model | samples | gradients | " + " | ".join(answers) + " | all |")
    print("|---" * (len(answers) + 4) + "|")
    for key in dict.fromkeys(row[1:4] for row in rows):
        own = [row for row in rows if row[1:4] == key]
        shares = [np.mean([row[5] for row in own if row[4] == answer]) for answer in answers]
        cells = [*map(str, key), *(f"{share:.2f}" for share in [*shares, np.mean(shares)])]
        print("| " + " | ".join(cells) + " |")


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
    parser.add_argument("--models", nargs="+", default=["wide", "sampled"], choices=MODELS)
    parser.add_argument("--samples", nargs="+", type=int, default=[20, 50, 100])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--functions", nargs="+", default=FUNCTIONS[::2])
    parser.add_argument("--published", action="store_true")
    arguments = parser.parse_args(given)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if arguments.published:
            published(PUBLISHED)
        else:
            table(list(measure(arguments.functions, arguments.models, arguments.samples, arguments.seeds)))
    print(f"\n{time.process_time() - start:.0f} s of one core")


if __name__ == "__main__":
    main()
