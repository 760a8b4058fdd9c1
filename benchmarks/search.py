"""Measure how far the default is from the best single setting of the same size.

    python benchmarks/search.py --out results.csv [--functions ridges] [--settings default "growth=None"]
    python benchmarks/search.py --table before.csv after.csv

The first form adds a row of `results.csv` for each function and setting that is not there yet, the second prints one or
more of these files as Markdown. The functions are none of those of `nurf.problems`: 5000 samples with exact gradients,
2000 neurons. The error is the relative L2 error on 10,000 fresh points, and what the estimator itself reports is put
into the same unit; seconds are those of one core. `n_neurons="auto"` may take twice as many neurons: it is shown, and
does not count as the best.
"""

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from measuring import measure, read
from nurf import RandomFeatureRegressor

SAMPLES, NEURONS, FRESH = 5000, 2000, 10_000
COLUMNS = ["function", "dimension", "setting", "error", "estimate", "seconds", "neurons"]
AUTO = 'n_neurons="auto"'
SETTINGS = {
    "default": {},
    "growth=None": {"growth": None},
    'growth=None, width="multiscale"': {"growth": None, "width": "multiscale"},
    "growth=9": {"growth": 9},
    'growth=None, density="nonlocal"': {"growth": None, "density": "nonlocal"},
    AUTO: {"n_neurons": "auto"},
    "gradient_weight=0": {"gradient_weight": 0},
    "growth=None, width=0.1": {"growth": None, "width": 0.1},
    "growth=None, width=0.2": {"growth": None, "width": 0.2},
    "growth=None, width=0.4": {"growth": None, "width": 0.4},
}

_rng = np.random.default_rng(20)
DIRECTIONS = _rng.standard_normal((8, 4))
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1, keepdims=True)
OFFSETS = np.sum(DIRECTIONS * _rng.uniform(0.25, 0.75, (8, 4)), axis=1)
CENTRES = _rng.random((10, 3))
PEAK_WIDTHS = _rng.uniform(0.08, 0.25, 10)
HEIGHTS = _rng.uniform(-1, 1, 10)
PISTON = np.array([[30, 60], [0.005, 0.020], [0.002, 0.010], [1000, 5000], [9e4, 1.1e5], [290, 296], [340, 360]])


def ridges(X):
    """Return a sum of eight sharp steps, each along one direction."""
    return np.sum(np.tanh((X @ DIRECTIONS.T - OFFSETS) / 0.03), axis=1)


def piston(X):
    """Return the cycle time of a piston."""
    lower, upper = PISTON.T
    mass, surface, volume, spring, pressure, ambient, filling = (lower + (upper - lower) * X).T
    force = pressure * surface + 19.62 * mass - spring * volume / surface
    gas = pressure * volume / filling * ambient
    position = surface / (2 * spring) * (np.sqrt(force**2 + 4 * spring * gas) - force)
    return 2 * np.pi * np.sqrt(mass / (spring + surface**2 * gas / position**2))


def radial(X):
    """Return an oscillation that depends on the distance from a corner."""
    return np.sin(12 * np.sum(X**2, axis=1))


def peaks(X):
    """Return a sum of ten Gaussian peaks."""
    squares = np.sum((X[:, None] - CENTRES) ** 2, axis=2)
    return np.exp(-squares / (2 * PEAK_WIDTHS**2)) @ HEIGHTS


def additive(X):
    """Return a sum of functions of single inputs, the last of which does not matter."""
    parts = np.sin(2 * np.pi * X[:, 0]), np.exp(2 * X[:, 1]) / 4, X[:, 2] ** 3, np.tanh(10 * X[:, 3] - 4)
    return sum(parts) + np.cos(5 * X[:, 4]) ** 2


FUNCTIONS = {"ridges": (ridges, 4), "piston": (piston, 7), "radial": (radial, 3), "peaks": (peaks, 3)}
FUNCTIONS["additive"] = (additive, 6)


def exact_gradients(function, X):
    """Return the gradients by complex steps, exact up to rounding."""
    return np.column_stack([function(X + 1e-30j * unit).imag / 1e-30 for unit in np.eye(X.shape[1])])


def estimated_error(model):
    """Return what nurf itself reports as its error, in units of the standard deviation of the values."""
    return model.fit_.error


def run(name, setting):
    """Return the row of one fit."""
    (function, dimension), rng = FUNCTIONS[name], np.random.default_rng(0)
    X, fresh = rng.random((SAMPLES, dimension)), rng.random((FRESH, dimension))
    y, gradients, truth = function(X), exact_gradients(function, X), function(fresh)
    model = RandomFeatureRegressor(**{"n_neurons": NEURONS, "random_state": 0} | SETTINGS[setting])
    with threadpool_limits(1):
        start = time.process_time()
        model.fit(X, y, gradients=gradients)
        seconds = time.process_time() - start
        error = np.linalg.norm(model.predict(fresh) - truth) / np.linalg.norm(truth)
    estimate = estimated_error(model) * np.std(y) / np.sqrt(np.mean(y**2))
    numbers = {"error": f"{error:.4g}", "estimate": f"{estimate:.4g}", "seconds": f"{seconds:.4g}"}
    return {"function": name, "dimension": dimension, "setting": setting, **numbers, "neurons": len(model.hyperplanes_)}


def print_table(path):
    """Print errors, own estimates, seconds, and how far the default is from the best."""
    rows = {(row["function"], row["setting"]): row for row in read(path)}
    names = [name for name in FUNCTIONS if any(name == other for other, _ in rows)]
    print(f"\n**{Path(path).stem}**: error (own estimate, seconds)\n")
    print(f"| setting | {' | '.join(names)} |\n|{'---|' * (1 + len(names))}")
    for setting in SETTINGS:
        cells = [""] * len(names)
        for number, name in enumerate(names):
            if row := rows.get((name, setting)):
                error, estimate, seconds = (float(row[key]) for key in ("error", "estimate", "seconds"))
                cells[number] = f"{error:.1e} ({estimate:.1e}, {seconds:.0f})"
        print(f"| {setting} | {' | '.join(cells)} |")
    cells = [""] * len(names)
    for number, name in enumerate(names):
        errors = {setting: float(rows[name, setting]["error"]) for setting in SETTINGS if (name, setting) in rows}
        errors.pop(AUTO, None)
        best = min(errors, key=errors.get)
        if "default" in errors:
            cells[number] = f"{errors['default'] / errors[best]:.2f} ({best})"
    print(f"| **default / best** | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS), choices=FUNCTIONS)
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=SETTINGS, metavar="SETTING")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "search.csv")
    parser.add_argument("--table", nargs="+", metavar="CSV", help="print these files, and fit nothing")
    arguments = parser.parse_args()
    if not arguments.table:
        tasks = product(arguments.functions, arguments.settings)
        measure(arguments.out, COLUMNS, ["function", "setting"], tasks, run)
    for path in arguments.table or [arguments.out]:
        print_table(path)


if __name__ == "__main__":
    main()
