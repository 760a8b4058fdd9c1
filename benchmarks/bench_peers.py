"""Errors against seconds of nurf and of other libraries, in one run: one picture a problem.

    make bench-peers [BENCH="--quick"]
    OMP_NUM_THREADS=1 .venv-peers/bin/python benchmarks/bench_peers.py [--quick] [--cases ...] [--methods ...]

Each method is fitted with more and more time: neurons, steps, epochs or samples, from left to right. All see the same
samples, and gradients if they can use them; inputs are scaled to [-1, 1] and values standardised for all but nurf,
which does that itself. Slow methods take a part of the samples. Seconds are those of one core, of the fit alone; the
error is the relative L2 error on 10,000 fresh points. Nothing is tuned beside what a method does itself. Methods that
are not installed are named and left out. Results are added to `bench_peers.csv`, and what is there is not fitted again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline

from measuring import machine, measure, read
from nurf import DeepFeatureRegressor, KernelFeatureRegressor, RandomFeatureRegressor, Surrogate
from trained import CASES, make_data

SHOWN = ("robot arm, 5000", "robot arm, 500", "checkmark, 2000", "borehole, 5000", "borehole, 500", "corner peak, 5000")
COLUMNS = ["case", "method", "place", "samples", "gradients", "error", "seconds", "note"]
BUDGETS = (0.1, 1.0, 10.0, 60.0)  # seconds of one core
FAILURES = (ValueError, RuntimeError, IndexError, TypeError, np.linalg.LinAlgError)


@dataclass(frozen=True)
class Method:
    """A way to fit a model, with more and more time.

    Attributes
    ----------
    needs : str
        The library.
    makers : tuple of callable
        Each returns a model, the fastest first.
    gradients : bool
        Whether it is given the gradients.
    most : tuple of int
        The largest number of samples of each; 0 for all.
    """

    needs: str
    makers: tuple[Callable[[], object], ...]
    gradients: bool = True
    most: tuple[int, ...] = ()


def series(make: Callable[..., object], values: tuple, **options: object) -> tuple[Callable[[], object], ...]:
    """Return calls with one value after the other."""
    return tuple(partial(make, value, **options) for value in values)


def peer(module: str, name: str) -> Callable[..., object]:
    """Return what makes a model of another library, which is imported when it is called."""
    return lambda *values, **options: getattr(import_module(module), name)(*values, **options)


def features_and_ridge(n: int) -> object:
    """Return random Fourier features whose width and regularisation are chosen on a grid."""
    model = Pipeline([("features", RBFSampler(n_components=n, random_state=0)), ("ridge", Ridge())])
    return GridSearchCV(model, {"features__gamma": [1e-3, 1e-2, 1e-1, 1], "ridge__alpha": [1e-8, 1e-5, 1e-2]}, cv=3)


def kernel_ridge() -> object:
    """Return kernel ridge regression whose width and regularisation are chosen on a grid."""
    return GridSearchCV(KernelRidge(kernel="rbf"), {"gamma": [1e-2, 1e-1, 1], "alpha": [1e-10, 1e-6, 1e-2]}, cv=3)


def gaussian_process() -> object:
    """Return a Gaussian process with one length scale."""
    kernel = ConstantKernel(1.0, (1e-3, 1e6)) * RBF(1.0, (1e-2, 1e3)) + WhiteKernel(1e-6, (1e-12, 1.0))
    return GaussianProcessRegressor(kernel, random_state=0)


def perceptron(iterations: int) -> object:
    """Return a network of two layers of 64 neurons, trained by L-BFGS."""
    sizes, limits = (64, 64), {"max_iter": iterations, "max_fun": 10**6}
    return MLPRegressor(hidden_layer_sizes=sizes, activation="tanh", solver="lbfgs", random_state=0, **limits)


GEKPLS = {"n_comp": 2, "delta_x": 1e-3, "eval_noise": True, "extra_points": 3}
METHODS = {
    "nurf sampled": Method("nurf", series(RandomFeatureRegressor, (125, 500, 1000, 2000), random_state=0)),
    "nurf trained": Method(
        "nurf", tuple(partial(DeepFeatureRegressor, steps=n, random_state=0) for n in (340, 1350, 2700, 5400))
    ),
    "nurf kernel": Method("nurf", (KernelFeatureRegressor,) * 3, True, (50, 100, 200)),
    "nurf surrogate": Method("nurf", series(Surrogate, (0.03, 0.1, 0.3, 1.0, 3.0, 20.0), random_state=0)),
    "torch, gradients": Method("torch", series(peer("peer_torch", "Network"), (2.5, 10.0, 40.0))),
    "jenn": Method("jenn", series(peer("peer_jenn", "Network"), (20, 100, 400))),
    "GPyTorch, gradients": Method("gpytorch", (peer("peer_gpytorch", "GradientProcess"),) * 3, True, (30, 60, 120)),
    "GPyTorch Matern, gradients": Method(
        "gpytorch",
        (partial(peer("peer_gpytorch", "GradientProcess"), kernel="Matern52KernelGrad"),) * 3,
        True,
        (30, 60, 120),
    ),
    "GPy, gradients": Method("GPy", (peer("peer_gpy", "GradientProcess"),) * 3, True, (15, 30, 60)),
    "GEMSEO, gradients": Method("gemseo", series(peer("peer_gemseo", "Polynomial"), (2, 3, 4))),
    "pyapprox, gradients": Method(
        "pyapprox", series(peer("peer_pyapprox", "Polynomial"), (3, 4, 5)), True, (100, 200, 0)
    ),
    "smt GEKPLS": Method("smt", (partial(peer("peer_smt", "Kriging"), "GEKPLS", **GEKPLS),) * 3, True, (30, 60, 120)),
    "smt KRG": Method("smt", (partial(peer("peer_smt", "Kriging"), "KRG"),) * 3, False, (60, 120, 240)),
    "xRFM": Method("xrfm", series(peer("peer_xrfm", "Machine"), (1, 3, 7)), False),
    "egobox": Method("egobox", (peer("peer_egobox", "Kriging"),) * 3, False, (60, 120, 240)),
    "OpenTURNS": Method("openturns", series(peer("peer_openturns", "Chaos"), (100, 400, 1600)), False),
    "RealMLP": Method("pytabkit", series(peer("peer_pytabkit", "Network"), (16, 64, 256)), False),
    "swimnetworks": Method("swimnetworks", series(peer("peer_swim", "Network"), (125, 500, 2000)), False),
    "RBFSampler + Ridge": Method("sklearn", series(features_and_ridge, (125, 500, 2000)), False),
    "KernelRidge": Method("sklearn", (kernel_ridge,) * 3, False, (300, 1000, 2500)),
    "GaussianProcessRegressor": Method("sklearn", (gaussian_process,) * 3, False, (100, 300, 1000)),
    "MLPRegressor": Method("sklearn", series(perceptron, (100, 400, 1600)), False),
}


def fit_peer(
    spec: Method, place: int, X: np.ndarray, y: np.ndarray, gradients: np.ndarray
) -> tuple[Callable[[np.ndarray], np.ndarray], float]:
    """Return the predictions of a fitted model as a function of points, and the seconds of the fit."""
    center, half, mean, unit = 0.0, 1.0, 0.0, 1.0
    if spec.needs != "nurf":
        low, high = X.min(axis=0), X.max(axis=0)
        cube = spec.needs == "smt"  # whose adaptor takes points of the unit cube
        center, half = (low, high - low) if cube else ((low + high) / 2, (high - low) / 2)
        mean, unit = y.mean(), y.std()
    options = {"gradients": gradients * half / unit} if spec.gradients else {}
    model = spec.makers[place]()
    start = time.process_time()
    model.fit((X - center) / half, (y - mean) / unit, **options)
    seconds = time.process_time() - start
    return lambda points: mean + unit * np.ravel(model.predict((points - center) / half)), seconds


def fitted(case: str, method: str, place: int) -> dict[str, object]:
    """Return the row of one fit, with no number as the error where it failed."""
    spec = METHODS[method]
    X, y, gradients, fresh, truth, _ = make_data(case, 0)
    n = min(len(X), (spec.most[place] if spec.most else 0) or len(X))
    row = {"case": case, "method": method, "place": place, "samples": n, "gradients": spec.gradients}
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        try:
            predict, seconds = fit_peer(spec, place, X[:n], y[:n], gradients[:n])
            values = predict(fresh)
        except FAILURES as failure:
            return row | {"error": "nan", "note": " ".join(f"failed: {failure}".split())[:100]}
    error = np.linalg.norm(values - truth) / np.linalg.norm(truth)
    return row | {"error": f"{error:.3e}", "seconds": f"{seconds:.3g}"}


def draw(rows: list[dict[str, str]], folder: Path) -> list[Path]:
    """Draw errors against seconds, and return the pictures, one for each case."""
    import matplotlib.pyplot as plt

    pictures = []
    for case in dict.fromkeys(row["case"] for row in rows):
        figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
        for number, method in enumerate(METHODS):
            some = [row for row in rows if (row["case"], row["method"]) == (case, method) and row["seconds"]]
            points = [(max(float(row["seconds"]), 1e-3), float(row["error"])) for row in some]
            if points:
                style = "o-" if METHODS[method].gradients else "s--"
                width = 2.5 if METHODS[method].needs == "nurf" else 1.0
                ax.loglog(*np.transpose(points), style, ms=4, lw=width, color=f"C{number % 10}", label=method)
        ax.set(
            title=f"{case} samples; dashed: without gradients", xlabel="seconds of one core", ylabel="relative error"
        )
        ax.grid(which="major", alpha=0.3)
        ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        pictures.append(folder / f"bench_peers_{case.replace(', ', '_').replace(' ', '_')}.png")
        figure.savefig(pictures[-1], dpi=110)
        plt.close(figure)
    return pictures


def table(rows: list[dict[str, str]]) -> str:
    """Return a table of the smallest errors within some seconds, of nurf and of the others, as Markdown."""
    lines = ["| case | within | nurf | others | who is ahead |", "|---|---|---|---|---|"]
    for case, seconds in product(dict.fromkeys(row["case"] for row in rows), BUDGETS):
        some = [row for row in rows if row["case"] == case and row["seconds"] and float(row["seconds"]) <= seconds]
        errors, cells = [np.inf, np.inf], ["none", "none"]
        for place, own in enumerate((True, False)):
            side = [row for row in some if (METHODS[row["method"]].needs == "nurf") == own]
            if side:
                best = min(side, key=lambda row: float(row["error"]))
                errors[place] = float(best["error"])
                cells[place] = f"{errors[place]:.1e} ({best['method']}, {float(best['seconds']):.2g} s)"
        ahead = "nurf" if errors[0] <= errors[1] else "others"
        factor = f", {max(errors) / min(errors):.1f} times" if np.isfinite(errors).all() else ""
        lines.append(f"| {case} | {seconds:g} s | {cells[0]} | {cells[1]} | {ahead}{factor} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Measure, draw and save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one problem, and the two fastest fits of each method")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), metavar="CASE")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="METHOD")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    missing = [method for method in options.methods if find_spec(METHODS[method].needs) is None]
    if missing:
        print(f"not installed: {', '.join(f'{method} ({METHODS[method].needs})' for method in missing)}", flush=True)
    methods = [method for method in options.methods if method not in missing]
    cases = options.cases or list(SHOWN[1:2] if options.quick else SHOWN)
    path = options.out / "bench_peers.csv"
    places = 2 if options.quick else None  # all of them
    tasks = [
        (case, method, place)
        for case, method in product(cases, methods)
        for place in range(len(METHODS[method].makers[:places]))
    ]
    measure(path, COLUMNS, ["case", "method", "place"], tasks, fitted)
    (options.out / "bench_peers.json").write_text(
        json.dumps({"machine": machine(), "rows": read(path)}, indent=1) + "\n"
    )
    (options.out / "bench_peers.md").write_text(table(read(path)))
    print(table(read(path)), *draw(read(path), options.out), sep="\n")


if __name__ == "__main__":
    main()
