"""Compare estimators of nurf with other regressors on every second function of uqtestfuns.

    python benchmarks/collection.py --out results.csv [--methods nurf "nurf values"] [--functions Ishigami] [--jobs 1]
    python benchmarks/collection.py --table before.csv after.csv

The first form fits and adds a row of `results.csv` for each function and method; rows that are there already are kept,
so that a run can be stopped and taken up again. The second prints one or more of these files as Markdown.

Functions: the first, third, fifth, ... of the alphabetical list of uqtestfuns 0.7, in their own dimension, and in two
dimensions where it is free. Inputs are in the unit cube, mapped to the domain linearly where they are uniform, else by
the quantiles of their distribution between 1% and 99%. There are 50 samples for each dimension, at most 500, uniform in
the cube; gradients are central differences. "nurf" is `RandomFeatureRegressor`, "surrogate" is `Surrogate` with
the sizes for 20 seconds and no limit, so that other work on the machine does not change its model. The error is the
root mean squared error on 3000 fresh points, in units of the standard deviation of the values there. Seconds are those
of one core.
"""

import argparse
import time
import warnings
from functools import cache, partial
from pathlib import Path
from zlib import crc32

import numpy as np
import uqtestfuns
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from measuring import measure, read
from nurf import RandomFeatureRegressor, Surrogate

FUNCTIONS = sorted(uqtestfuns.list_functions(tabulate=False))[::2]
NURF = {
    "nurf": RandomFeatureRegressor,
    "nurf values": RandomFeatureRegressor,
    "nurf noisy gradients": RandomFeatureRegressor,
    "surrogate": partial(Surrogate, None),
    "surrogate values": partial(Surrogate, None),
}
PEERS = ["GP", "kernel ridge", "MLP", "gradient boosting"]
METHODS = [*NURF, *PEERS]
COLUMNS = ["function", "dimension", "samples", "method", "error", "estimate", "seconds"]
FREE_DIMENSION = 2
TAIL = 0.01  # probability that is cut off at either end of an input that is not uniform
STEP = 1e-5  # of the differences, in the unit cube
NOISE = 0.5  # of noisy gradients, in units of the root mean square of each partial derivative
FRESH = 3000
ROUNDING = 1e-8  # smaller errors are not told apart
TIE = 1.2  # errors within this factor of the smallest are as good


class Function:
    """One function of the collection on the unit cube.

    Parameters
    ----------
    name : str
        Its name in uqtestfuns.
    """

    def __init__(self, name):
        try:
            self.function = getattr(uqtestfuns, name)()
        except ValueError:
            self.function = getattr(uqtestfuns, name)(input_dimension=FREE_DIMENSION)
        self.marginals = self.function.prob_input.marginals
        self.dimension = self.function.input_dimension
        self.output = 0

    def native(self, X):
        """Return the inputs in their own units."""
        columns = []
        for column, marginal in zip(X.T, self.marginals, strict=True):
            if marginal.distribution == "uniform":
                columns.append(marginal.lower + (marginal.upper - marginal.lower) * column)
            else:
                columns.append(marginal.icdf(TAIL + (1 - 2 * TAIL) * column))
        return np.column_stack(columns)

    def outputs(self, X):
        """Return all outputs, one in each column."""
        return np.asarray(self.function(self.native(X)), float).reshape(len(X), -1)

    def __call__(self, X):
        """Return the output that is fitted."""
        return self.outputs(X)[:, self.output]

    def gradients(self, X):
        """Return the gradients by central differences."""
        shifts = STEP * np.eye(self.dimension)
        return np.column_stack([(self(X + shift) - self(X - shift)) / (2 * STEP) for shift in shifts])


def sample(n_samples, dimension, rng):
    """Return points of the unit cube, a step of the differences away from its boundary."""
    return STEP + (1 - 2 * STEP) * rng.random((n_samples, dimension))


def draw(function, n_samples, rng):
    """Return samples, values, gradients, fresh points and the values there; raise ValueError without a problem."""
    X = sample(n_samples, function.dimension, rng)
    fresh = sample(FRESH, function.dimension, rng)
    varies = np.flatnonzero(np.ptp(function.outputs(fresh), axis=0) > 0)  # the first of a series may be its start
    if not len(varies):
        raise ValueError("it is constant")
    function.output = varies[0]
    data = X, function(X), function.gradients(X), fresh, function(fresh)
    if not all(np.isfinite(part).all() for part in data):
        raise ValueError("it is not finite everywhere")
    return data


@cache
def make_data(name):
    """Return the samples of a function, fresh points and the values there; raise ValueError without a problem."""
    function = Function(name)
    return draw(function, min(50 * function.dimension, 500), np.random.default_rng(crc32(name.encode())))


def add_noise(gradients, name):
    """Return the gradients with Gaussian noise."""
    rng = np.random.default_rng([crc32(name.encode()), 1])
    return gradients + NOISE * np.sqrt(np.mean(gradients**2, axis=0)) * rng.standard_normal(gradients.shape)


def estimated_error(model):
    """Return what nurf itself reports as its error, in units of the standard deviation of the values."""
    return model.fit_.error


def make_peer(method, dimension):
    """Return a regressor other than nurf, with the choices that a user would leave to it."""
    if method == "GP":
        kernel = ConstantKernel(1.0, (1e-3, 1e5)) * RBF(np.ones(dimension), (1e-2, 1e3)) + WhiteKernel(1e-6, (1e-12, 1))
        return GaussianProcessRegressor(kernel, alpha=1e-12, normalize_y=True, n_restarts_optimizer=3, random_state=0)
    if method == "gradient boosting":
        return HistGradientBoostingRegressor(max_iter=1000, early_stopping=True, random_state=0)
    if method == "kernel ridge":
        grid = {"gamma": np.logspace(-2, 2, 13), "alpha": np.logspace(-10, 0, 11)}
        folds = KFold(5, shuffle=True, random_state=0)
        search = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=folds, scoring="neg_mean_squared_error")
        return TransformedTargetRegressor(search, transformer=StandardScaler())
    network = MLPRegressor(
        hidden_layer_sizes=(64, 64), activation="tanh", solver="lbfgs", max_iter=5000, max_fun=10_000, random_state=0
    )
    return TransformedTargetRegressor(make_pipeline(StandardScaler(), network), transformer=StandardScaler())


def run(name, method):
    """Return the row of one fit, with no number as the error where it failed."""
    X, y, gradients, fresh, truth = make_data(name)
    if method == "nurf noisy gradients":
        gradients = add_noise(gradients, name)
    options = {} if method in PEERS or "values" in method else {"gradients": gradients}
    row = {"function": name, "dimension": X.shape[1], "samples": len(X), "method": method, "estimate": ""}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NURF[method](random_state=0) if method in NURF else make_peer(method, X.shape[1])
        start = time.process_time()
        try:
            model.fit(X, y, **options)
            error = np.sqrt(np.mean((model.predict(fresh) - truth) ** 2)) / np.std(truth)
        except (ValueError, RuntimeError, np.linalg.LinAlgError) as failure:
            return row | {"error": "nan", "seconds": f"{time.process_time() - start:.4g}", "failure": failure}
        row["seconds"] = f"{time.process_time() - start:.4g}"
    if method in NURF:
        row["estimate"] = f"{estimated_error(model):.4g}"
    return row | {"error": f"{error:.4g}"}


def usable(names):
    """Return the functions that can be fitted, and say which ones cannot."""
    kept = []
    for name in names:
        try:
            make_data(name)
            kept.append(name)
        except ValueError as reason:
            print(f"skipped {name}: {reason}", flush=True)
    return kept


def number(text):
    """Return an error as a number, infinite where the fit failed."""
    return float(np.nan_to_num(float(text), nan=np.inf))


class Results:
    """The rows of one file, with the other regressors of another file where it has none.

    Parameters
    ----------
    path : str
        The file.
    others : list of str
        Files to take regressors other than nurf from.
    """

    def __init__(self, path, others):
        self.label = Path(path).stem
        self.rows = {}
        for source in [*reversed(others), path]:
            for row in read(source):
                if source == path or row["method"] not in NURF:
                    self.rows[row["function"], row["method"]] = row

    def error(self, name, method):
        """Return the error, or None where it was not measured."""
        row = self.rows.get((name, method))
        return None if row is None else number(row["error"])

    def column(self, method, key="error"):
        """Return one column of a method, by function, where it was measured."""
        return {name: number(row[key]) for (name, other), row in self.rows.items() if other == method and row[key]}

    def first_places(self, methods):
        """Return how often each method has the smallest error, of the functions that all have measured."""
        counts = dict.fromkeys(methods, 0)
        for name in sorted({name for name, _ in self.rows}):
            errors = [self.error(name, method) for method in methods]
            if None not in errors:
                errors = np.maximum(errors, ROUNDING)
                for method, error in zip(methods, errors, strict=True):
                    counts[method] += int(error == min(errors))
        return counts

    def near_best(self, method, others):
        """Return the share of functions where the error is at most 1.2 times the smallest of others; NaN if unknown."""
        ratios = []
        for name, error in self.column(method).items():
            errors = [self.error(name, other) for other in others]
            if None not in errors:
                ratios.append(max(error, ROUNDING) / max(min(errors), ROUNDING))
        return np.mean(np.array(ratios) <= TIE) if ratios else np.nan

    def worse(self, method, factor, other):
        """Return where a method is worse than another one by more than a factor, and by how much."""
        ratios, others = {}, self.column(other)
        for name, error in self.column(method).items():
            if name in others and max(error, others[name]) >= ROUNDING and error > factor * others[name]:
                ratios[name] = error / others[name]
        return ratios

    def reported(self, method):
        """Return reported over true errors, of the functions where the true one is above rounding."""
        errors, estimates = self.column(method), self.column(method, "estimate")
        return np.array([estimates[name] / errors[name] for name in estimates if errors[name] >= ROUNDING])


def print_table(paths):
    """Print the errors and a summary of all files as Markdown."""
    files = [Results(path, [other for other in paths if other != path]) for path in paths]
    shapes = {name: (row["dimension"], row["samples"]) for file in files for (name, _), row in file.rows.items()}
    if len(files) > 1:
        print(f"Errors of nurf: {' → '.join(file.label for file in files)}.\n")
    print(f"| function | d | samples | {' | '.join(METHODS)} |\n|{'---|' * (3 + len(METHODS))}")
    for name, shape in sorted(shapes.items()):
        cells = []
        for method in METHODS:
            errors = [file.error(name, method) for file in (files if method in NURF else files[-1:])]
            cells.append(" → ".join(f"{error:.1e}" for error in errors if error is not None))
        print(f"| {name} | {' | '.join(shape)} | {' | '.join(cells)} |")
    for file in files:
        print(f"\n**{file.label}**, errors below {ROUNDING:g} are set to {ROUNDING:g}\n")
        print_summary(file)


def print_summary(file):
    """Print what the errors of one file come to."""
    print(f"| | {' | '.join(METHODS)} |\n|{'---|' * (1 + len(METHODS))}")
    plain = [method for method in METHODS if method in PEERS or "values" in method]
    for title, methods in (("of all", METHODS), ("without gradients", plain)):
        counts = file.first_places(methods)
        print(f"| first places {title} | {' | '.join(str(counts.get(method, '')) for method in METHODS)} |")
    rows = {
        f"within {TIE} of the best other regressor": lambda method: f"{file.near_best(method, PEERS):.0%}",
        "functions": lambda method: f"{len(file.column(method))}",
        "geometric mean of errors": lambda method: f"{geometric_mean(file.column(method)):.2e}",
        "seconds, sum": lambda method: f"{sum(file.column(method, 'seconds').values()):.0f}",
        "seconds, median": lambda method: f"{np.median(list(file.column(method, 'seconds').values())):.2g}",
        "reported / true, median": lambda method: f"{np.median(file.reported(method)):.2f}",
        "reported / true in 1/3..3": lambda method: f"{np.mean(np.abs(np.log(file.reported(method))) < np.log(3)):.0%}",
    }
    for title, entry in rows.items():
        shown = [
            entry(method)
            if file.column(method) and (method in NURF or not title.startswith(("reported", "within")))
            else ""
            for method in METHODS
        ]
        print(f"| {title} | {' | '.join(shown)} |")
    print(f"\nBoth errors below {ROUNDING:g} are rounding and left out here:")
    pairs = [("nurf", 1.1, "nurf values"), ("nurf noisy gradients", 1.2, "nurf values")]
    pairs += [("surrogate", 1.1, "surrogate values"), ("surrogate", TIE, "nurf"), ("surrogate values", 2, "GP")]
    for method, factor, other in [*pairs, ("nurf values", 2, "GP"), ("nurf", 2, "GP")]:
        ratios = sorted(file.worse(method, factor, other).items(), key=lambda item: -item[1])
        listed = ", ".join(f"{name} {ratio:.2g}" for name, ratio in ratios)
        print(
            f"- {method} worse than {other} by more than {factor}: {len(ratios)}" + (f" ({listed})" if ratios else "")
        )


def geometric_mean(errors):
    """Return the geometric mean of the errors of some functions."""
    return np.exp(np.mean(np.log(np.maximum(list(errors.values()), ROUNDING))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--functions", nargs="+", default=FUNCTIONS, choices=FUNCTIONS, metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "collection.csv")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, each of one thread")
    parser.add_argument("--table", nargs="+", metavar="CSV", help="print these files, and fit nothing")
    arguments = parser.parse_args()
    if arguments.table:
        print_table(arguments.table)
    else:
        names = usable(arguments.functions)
        tasks = [(name, method) for method in arguments.methods for name in names]
        measure(arguments.out, COLUMNS, ["function", "method"], tasks, run, arguments.jobs)


if __name__ == "__main__":
    main()
