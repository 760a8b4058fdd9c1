"""Compare surrogate models on few samples, with and without gradients, on every second function of uqtestfuns.

    python benchmarks/few_samples.py [--methods "nurf kernel" GP] [--seeds 0 1 2] [--per-input 5 10 20] [--out FILE]
    peers/bin/python benchmarks/few_samples.py --methods RBFKernelGrad GEKPLS KRG
    python benchmarks/few_samples.py --summary [--seeds 0] [--picture docs/images/few_samples_errors.png]

The first two fit and add a row of `results/few_samples.csv` for each data set and method; rows that are there already
are kept, so that a run can be stopped and taken up again, and methods can be run in different environments: those that
are not installed are named and left out. The third prints the summary as Markdown and draws the picture. The peers have
an environment of their own:

    python -m venv peers
    peers/bin/python -m pip install torch==2.13.0 gpytorch==1.15.2 smt==2.15.0 uqtestfuns==0.7.0 --editable .

Functions, inputs and gradients are those of `collection.py`, with 5, 10 and 20 samples for each input, at most 300. The
error is the root mean squared error on 3000 fresh points, in units of the standard deviation of the values there; the
estimate is what the model itself reports, in the same unit. Coverage is the share of the fresh values, and of the fresh
partials, in `predict_interval` with 0.9 and in 1.645 standard deviations. Seconds are those of the fit, on one core.
Slow methods are not run above a number of rows, of values and partials together, and GEKPLS not with a single input.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from zlib import crc32

import numpy as np
from threadpoolctl import threadpool_limits

import nurf
from collection import FUNCTIONS, ROUNDING, Function, draw, make_peer, number, usable
from measuring import measure, print_table, read

PER_INPUT = (5, 10, 20)
MOST_SAMPLES = 300
NORMAL = 1.6449  # standard deviations that hold 0.9 of a normal distribution
TIE = 1.2  # errors within this factor of the least are as good
KEY = ["function", "per input", "seed", "method"]
RESULTS = ["error", "estimate", "interval", "std", "gradient std", "seconds"]
COLUMNS = ["function", "dimension", "samples", *KEY[1:], *RESULTS, "note"]
COLOURS = {
    "nurf.KernelFeatureRegressor": "tab:red",
    "nurf.Surrogate": "tab:purple",
    "nurf.RandomFeatureRegressor": "tab:orange",
    "gpytorch": "tab:blue",
    "smt": "tab:green",
}
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Method:
    """A way to fit a surrogate model.

    Parameters
    ----------
    needs : str
        The library, or the name in nurf.
    make : callable
        Returns the model for a number of inputs.
    gradients : bool
        Whether it is given the gradients.
    most_rows : float
        The largest number of values and partials that it is run on.
    least_inputs : int
        The least number of inputs that it is made for.
    """

    needs: str
    make: Callable
    gradients: bool = False
    most_rows: float = np.inf
    least_inputs: int = 1

    @property
    def is_ours(self):
        """Whether the model is one of nurf, with estimates of its error."""
        return self.needs.startswith("nurf.")

    @property
    def is_missing(self):
        """Whether it cannot be run in this environment."""
        return not hasattr(nurf, self.needs[5:]) if self.is_ours else find_spec(self.needs) is None


def ours(name, gradients):
    """Return the method of an estimator of nurf with its default settings, the same random numbers each time."""

    def make(d):
        model = getattr(nurf, name)()
        return model.set_params(**{key: 0 for key in ("random_state",) if key in model.get_params()})

    return Method(f"nurf.{name}", make, gradients)


def kriging(name, **options):
    """Return a model of smt."""
    return import_module("peer_smt").Kriging(name, **options)


# The step and the noise are the best of those that were tried on a few of the functions; the defaults, 1e-4 and no
# noise, are worse on smooth functions and on rough ones.
GEKPLS = {"n_comp": 2, "delta_x": 1e-3, "eval_noise": True}
METHODS = {
    "nurf kernel": ours("KernelFeatureRegressor", True),
    "nurf surrogate": ours("Surrogate", True),
    "nurf sampled": ours("RandomFeatureRegressor", True),
    "RBFKernelGrad": Method("gpytorch", lambda d: import_module("peer_gpytorch").GradientProcess(), True, 1200),
    "GEKPLS": Method("smt", lambda d: kriging("GEKPLS", **GEKPLS, extra_points=d), True, 1200, least_inputs=2),
    "nurf kernel values": ours("KernelFeatureRegressor", False),
    "nurf surrogate values": ours("Surrogate", False),
    "nurf sampled values": ours("RandomFeatureRegressor", False),
    "KRG": Method("smt", lambda d: kriging("KRG"), most_rows=160),
    "GP": Method("sklearn", lambda d: make_peer("GP", d)),
}


@cache
def dimension(name):
    """Return the number of inputs of a function."""
    return Function(name).dimension


@lru_cache(maxsize=1)  # the methods of a data set follow each other
def make_data(name, n_samples, seed):
    """Return samples, values, gradients, fresh points, and the values and gradients there."""
    function, rng = Function(name), np.random.default_rng([crc32(f"{name} {n_samples}".encode()), seed])
    data = draw(function, n_samples, rng)
    return *data, function.gradients(data[3])


def share_within(predictions, deviations, truth):
    """Return the share of true numbers within the deviations that should hold 0.9 of them."""
    return np.mean(np.abs(predictions - truth) <= NORMAL * deviations)


def run(name, per_input, seed, method):
    """Return the row of one fit, with no number as the error where it failed, and none where it was not run."""
    d = dimension(name)
    n_samples, spec = min(per_input * d, MOST_SAMPLES), METHODS[method]
    row = dict(zip(KEY, (name, per_input, seed, method), strict=True)) | {"dimension": d, "samples": n_samples}
    rows = n_samples * (1 + d * spec.gradients)
    if d < spec.least_inputs or rows > spec.most_rows:
        return row | {"note": f"not run: {rows} rows of {d} input{'s' * (d > 1)}"}
    data = make_data(name, n_samples, seed)
    with threadpool_limits(1), warnings.catch_warnings(), redirect_stdout(StringIO()):  # smt prints its failures
        warnings.simplefilter("ignore")
        try:
            results = fit_and_test(spec, *data)
        except (ValueError, RuntimeError, IndexError, np.linalg.LinAlgError) as failure:
            return row | {"error": "nan", "note": " ".join(f"failed: {failure}".split())[:100]}
    return row | {key: f"{result:.4g}" for key, result in results.items()}


def fit_and_test(spec, X, y, gradients, fresh, truth, slopes):
    """Return the results of one fit."""
    model, options = spec.make(X.shape[1]), {"gradients": gradients} if spec.gradients else {}
    start = time.process_time()
    model.fit(X, y, **options)
    results, unit = {"seconds": time.process_time() - start}, np.std(truth)
    predictions, deviations = model.predict(fresh, return_std=True)
    results["error"] = np.sqrt(np.mean((predictions - truth) ** 2)) / unit
    results["std"] = share_within(predictions, deviations, truth)
    if spec.is_ours:
        low, high = model.predict_interval(fresh, 0.9).T
        results["interval"] = np.mean((low <= truth) & (truth <= high))
        results["gradient std"] = share_within(*model.predict_gradient(fresh, return_std=True), slopes)
        results["estimate"] = model.estimated_error_ / unit
    return results


def installed(methods):
    """Return the methods that can be run here, and say which ones cannot."""
    missing = [f"{method} ({METHODS[method].needs})" for method in methods if METHODS[method].is_missing]
    if missing:
        print(f"not installed: {', '.join(missing)}", flush=True)
    return [method for method in methods if not METHODS[method].is_missing]


def distinct(sizes, d):
    """Return the samples for each of d inputs, without those that come to the same number as fewer ones."""
    return {min(size * d, MOST_SAMPLES): size for size in sorted(sizes, reverse=True)}.values()


def tasks(names, sizes, seeds, methods):
    """Return all fits, so that the first ones say most: all functions once, the smallest sizes first."""
    return [
        (name, per_input, seed, method)
        for seed in seeds
        for per_input in sorted(sizes)
        for name in names
        if per_input in distinct(sizes, dimension(name))
        for method in methods
    ]


class Results:
    """The rows of a file, by data set and method; failures have an infinite error, and what was not run is not there.

    Parameters
    ----------
    path : Path
        The file.
    seeds : collection of int
        The seeds of the data sets that are compared.
    """

    def __init__(self, path, seeds):
        self.sets = {}
        for row in (row for row in read(path) if int(row["seed"]) in seeds):
            self.sets.setdefault((row["function"], int(row["per input"]), int(row["seed"])), {})[row["method"]] = row
        self.methods = [method for method in METHODS if any(method in rows for rows in self.sets.values())]
        self.sizes = sorted({per_input for _, per_input, _ in self.sets})

    def rows(self, method, sizes):
        """Return the rows of a method, for these numbers of samples for each input."""
        return [rows[method] for key, rows in self.sets.items() if key[1] in sizes and method in rows]

    def column(self, method, name, sizes):
        """Return the known numbers of a column."""
        return np.array([float(row[name]) for row in self.rows(method, sizes) if row[name]])

    def relative(self, method, rivals, sizes):
        """Return the errors over the least error of rivals, where the method and a rival were run."""
        ratios = []
        for (_, per_input, _), rows in self.sets.items():
            errors = {key: max(number(row["error"]), ROUNDING) for key, row in rows.items() if row["error"]}
            least = min((errors[rival] for rival in rivals if rival in errors), default=np.inf)
            if per_input in sizes and method in errors and least < np.inf:
                ratios.append(errors[method] / least)
        return np.array(ratios)


def print_summary(results):
    """Print how errors compare, how good intervals, deviations and estimates are, and what it took."""
    sizes, methods = results.sizes, results.methods
    columns = [*([size] for size in sizes), sizes]
    labels = [*(f"K = {size} d" for size in sizes), "all"]
    plain = [method for method in methods if not METHODS[method].gradients]
    own = [method for method in methods if METHODS[method].is_ours]
    others = [method for method in methods if method not in own]
    informed = [method for method in others if METHODS[method].gradients]
    print(f"Median of error / error of the GP (data sets); errors below {ROUNDING:g} are set to {ROUNDING:g}\n")
    cells = [[_median(results.relative(method, ["GP"], chosen)) for chosen in columns] for method in methods]
    print_table(["", "gradients", *labels], _named(methods, cells))
    groups = {
        "all methods": (methods, methods),
        "those without gradients": (plain, plain),
        "other libraries and the one method of nurf": (own, others),
        "other libraries that see gradients and the one method of nurf": (own, informed),
    }
    for title, (shown, rivals) in groups.items():
        print(f"\nShare of data sets with the least error of {title} / with at most {TIE} times the least\n")
        cells = [
            [_places(results.relative(method, [method, *rivals], chosen)) for chosen in columns] for method in shown
        ]
        print_table(["", "gradients", *labels], _named(shown, cells))
    for name in ("interval", "std", "gradient std"):
        print(f"\nMean coverage of {name} for a nominal 0.9\n")
        shown = [method for method in methods if len(results.column(method, name, sizes))]
        cells = [[_mean(results.column(method, name, chosen)) for chosen in columns] for method in shown]
        print_table(["", "gradients", *labels], _named(shown, cells))
    print("\nEstimated over true errors, and what the fits took\n")
    header = ["", "gradients", "estimate / error, median", "in 1/3..3", "seconds, median", "most", "failed", "not run"]
    print_table(header, _named(methods, [_costs(results, method) for method in methods]))


def _named(methods, cells):
    """Return rows that begin with the method."""
    return [
        [method, "yes" if METHODS[method].gradients else "no", *row] for method, row in zip(methods, cells, strict=True)
    ]


def _median(ratios):
    return f"{np.median(ratios):.2f} ({len(ratios)})" if len(ratios) else ""


def _places(ratios):
    return f"{np.mean(ratios <= 1):.0%} / {np.mean(ratios <= TIE):.0%}" if len(ratios) else ""


def _mean(shares):
    return f"{np.mean(shares):.2f}" if len(shares) else ""


def _costs(results, method):
    """Return how good the estimates of a method are, its seconds, and how often it failed or was not run."""
    rows = results.rows(method, results.sizes)
    ratios = np.array(
        [max(float(row["estimate"]), ROUNDING) / max(float(row["error"]), ROUNDING) for row in rows if row["estimate"]]
    )
    known = (
        [f"{np.median(ratios):.2f}", f"{np.mean(np.abs(np.log(ratios)) < np.log(3)):.0%}"] if len(ratios) else ["", ""]
    )
    seconds = results.column(method, "seconds", results.sizes)
    times = [f"{np.median(seconds):.2g}", f"{np.max(seconds):.2g}"] if len(seconds) else ["", ""]
    return [*known, *times, *(str(sum(row["note"].startswith(word) for row in rows)) for word in ("failed", "not run"))]


def draw_errors(results, path):
    """Draw for each number of samples which share of data sets has at most a multiple of the error of the GP."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(results.sizes), figsize=(12, 4.4), layout="constrained", sharey=True, squeeze=False
    )
    for ax, size in zip(axes[0], results.sizes, strict=True):
        for method in results.methods:
            ratios = np.sort(results.relative(method, ["GP"], [size]))
            if method != "GP" and len(ratios):
                style = "-" if METHODS[method].gradients else "--"
                ax.ecdf(np.minimum(ratios, 1e9), ls=style, color=COLOURS[METHODS[method].needs], label=method)
        ax.axvline(1, color="black", lw=0.8)
        ax.set(xscale="log", xlim=(1e-3, 10), title=f"{size} samples for each input", xlabel="error / error of the GP")
    axes[0, 0].set_ylabel("share of data sets")
    axes[0, 0].legend(frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="NAME")
    parser.add_argument("--functions", nargs="+", default=FUNCTIONS, choices=FUNCTIONS, metavar="NAME")
    parser.add_argument("--per-input", nargs="+", type=int, default=PER_INPUT, help="samples for each input")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="seeds of the data sets")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "few_samples.csv")
    parser.add_argument("--summary", action="store_true", help="print and draw what is in the file, and fit nothing")
    parser.add_argument("--picture", type=Path, default=ROOT / "docs" / "images" / "few_samples_errors.png")
    options = parser.parse_args(arguments)
    if options.summary:
        results = Results(options.out, options.seeds)
        print_summary(results)
        draw_errors(results, options.picture)
    else:
        todo = tasks(usable(options.functions), options.per_input, options.seeds, installed(options.methods))
        measure(options.out, COLUMNS, KEY, todo, run)


if __name__ == "__main__":
    main()
