"""Measure what `Surrogate` makes of little time, beside other libraries: every second function of uqtestfuns.

    make bench-anytime
    python benchmarks/anytime.py --out results.csv [--budgets 0.1 1] [--functions Ishigami] [--data values] [--peers GP]
    python benchmarks/anytime.py --table results.csv

The first form fits and adds a row of `results.csv` for each function, data, method and budget; rows that are there
already are kept, so that a run can be stopped and taken up again. The second prints the summary as Markdown and draws
it beside the file. Functions and samples are those of `collection.py`.

Each error is divided by the error of scikit-learn's Gaussian process with a length for each input, which sees the
values only and takes the time that it takes. So do the other peers: those of `collection.py`, and those of
`bench_peers.py` that are installed, with the second of their settings and at most the samples there. Fits run one after
another, on one thread, after a small one that loads what is loaded when it is needed. Seconds of `Surrogate` are those
of a clock: nothing else should run meanwhile. Seconds of peers are those of one core.
"""

import argparse
import time
import warnings
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import bench_peers
from collection import FUNCTIONS, PEERS, ROUNDING, geometric_mean, make_data, make_peer, number, usable
from measuring import measure, print_table, read
from nurf import Surrogate

BUDGETS = (0.03, 0.1, 0.3, 1.0, 3.0, 20.0)
DATA = ("gradients", "values")
LABELS = {"gradients": "values and gradients", "values": "values only"}
OURS, PROCESS = "Surrogate", "GP"
OTHERS = ("egobox", "smt KRG", "smt GEKPLS", "jenn", "GPyTorch, gradients", "pyapprox, gradients", "xRFM")
PLACE = 1  # of the settings in `bench_peers.py`
NAMES = {PROCESS: "Gaussian process", "MLP": "perceptron"}  # in the picture
SHARE, SECONDS = 0.1, 0.05  # what a fit may take beyond its budget: a share of it, and seconds
KEY = ["function", "data", "method", "budget"]
COLUMNS = [*KEY, "dimension", "samples", "error", "reported", "seconds", "engine"]


def run(name, data, method, budget):
    """Return the row of one fit, with no number as the error where it failed."""
    X, y, gradients, fresh, truth = make_data(name)
    row = dict(zip(KEY, (name, data, method, budget), strict=True)) | {"dimension": X.shape[1], "samples": len(X)}
    unit = np.std(truth)
    with threadpool_limits(1), warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        try:
            predict, row["seconds"], found = _fitted(X, y, gradients, data, method, budget)
            row["error"] = float(np.sqrt(np.mean((predict(fresh) - truth) ** 2)) / unit)
        except Exception:  # smt raises this class itself
            if method == OURS:
                raise
            return row | {"error": "nan"}
    return row if found is None else row | {"reported": found.estimated_error_ / unit, "engine": found.engine_}


def _fitted(X, y, gradients, data, method, budget):
    """Return predictions as a function of points, the seconds of the fit, and the model if it is ours."""
    if method == OURS:
        Surrogate(0.01, random_state=0).fit(X[:20], y[:20])
        options = {"gradients": gradients} if data == "gradients" else {}
        start = time.perf_counter()
        model = Surrogate(budget, random_state=0).fit(X, y, **options)
        return model.predict, time.perf_counter() - start, model
    if method in PEERS:
        start = time.process_time()
        model = make_peer(method, X.shape[1]).fit(X, y)
        return model.predict, time.process_time() - start, None
    spec = bench_peers.METHODS[method]
    most = (spec.most[PLACE] if spec.most else 0) or len(X)
    return *bench_peers.fit_peer(spec, PLACE, X[:most], y[:most], gradients[:most]), None


def tasks(names, data, budgets, peers):
    """Yield the fits: of peers, each with the data that it can use, and of `Surrogate` with each budget."""
    for method in peers:
        uses = "gradients" if method in bench_peers.METHODS and bench_peers.METHODS[method].gradients else "values"
        yield from ((name, uses, method, "") for name in names)
    for budget in budgets:
        yield from ((name, kind, OURS, budget) for kind in data for name in names)


def summaries(rows):
    """Yield for each kind of data, method and budget: the ratios of errors by function, and the seconds by function."""
    process = {row["function"]: number(row["error"]) for row in rows if row["method"] == PROCESS}
    keys = dict.fromkeys(tuple(row[key] for key in KEY[1:]) for row in rows)
    for key in sorted(keys, key=lambda key: (key[1] == OURS, DATA.index(key[0]), float(key[2] or 0))):
        some = {row["function"]: row for row in rows if tuple(row[name] for name in KEY[1:]) == key}
        ratios = {
            name: max(number(row["error"]), ROUNDING) / max(process[name], ROUNDING)
            for name, row in some.items()
            if name in process
        }
        if ratios:
            yield *key, ratios, {name: float(some[name]["seconds"] or "nan") for name in ratios}


def print_summary(rows):
    """Print the geometric mean of the ratios, on how many functions they are below 1, and the seconds."""
    cells = []
    for data, method, budget, ratios, seconds in summaries(rows):
        taken = np.array(list(seconds.values()))
        kept = f"{np.sum(taken <= (1 + SHARE) * float(budget) + SECONDS)} of {len(taken)}" if budget else ""
        known = {name: ratio for name, ratio in ratios.items() if np.isfinite(ratio)}
        cells.append(
            [
                data,
                method,
                budget,
                f"{geometric_mean(known):.2f}" if known else "",
                f"{sum(ratio < 1 for ratio in known.values())} of {len(ratios)}",
                f"{np.nanmedian(taken):.2g}",
                f"{np.nanmax(taken):.2g}",
                kept,
            ]
        )
    header = ["data", "method", "seconds given", "error / error of GP", "better on", "taken, median", "largest", "kept"]
    print_table(header, cells)


def draw(rows, path):
    """Draw the geometric mean of the ratios against the median of the seconds."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
    found = list(summaries(rows))
    for data, style in zip(DATA, ("o-", "s--"), strict=True):
        points = [
            (np.median(list(seconds.values())), geometric_mean(ratios))
            for kind, method, _, ratios, seconds in found
            if (kind, method) == (data, OURS)
        ]
        if points:
            ax.loglog(*np.transpose(points), style, color="C0", label=f"{OURS}, {LABELS[data]}")
    for data, style in zip(DATA, ("o", "s"), strict=True):
        for kind, method, _, ratios, seconds in found:
            known = {name: ratio for name, ratio in ratios.items() if np.isfinite(ratio)}
            if kind != data or method == OURS or len(known) < len(ratios) / 2:
                continue
            x, y = np.nanmedian(list(seconds.values())), geometric_mean(known)
            ax.loglog(x, y, style, color="C1", markerfacecolor="C1" if data == "gradients" else "none")
            ax.annotate(
                NAMES.get(method, method).removesuffix(", gradients"),
                (x, y),
                xytext=(6, 3) if data == "gradients" else (-6, -10),
                ha="left" if data == "gradients" else "right",
                textcoords="offset points",
                fontsize="small",
            )
    n = len({row["function"] for row in rows})
    ax.set(xlabel="median seconds of a fit on one core", ylabel="error / error of a Gaussian process (scikit-learn)")
    ax.set_title(f"{n} test functions (UQTestFuns); other libraries: filled with gradients, open with values only")
    ax.title.set_fontsize("medium")
    ax.margins(x=0.12)
    ax.grid(which="major", alpha=0.3)
    ax.legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--budgets", nargs="*", type=float, default=BUDGETS, metavar="SECONDS")
    parser.add_argument("--functions", nargs="+", default=FUNCTIONS, choices=FUNCTIONS, metavar="NAME")
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--peers", nargs="+", default=(*PEERS, *OTHERS), choices=(*PEERS, *OTHERS), metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "anytime.csv")
    parser.add_argument("--table", type=Path, metavar="CSV", help="print this file, and fit nothing")
    arguments = parser.parse_args(arguments)
    path = arguments.table or arguments.out
    if not arguments.table:
        missing = [each for each in arguments.peers if each in OTHERS and not _is_installed(each)]
        if missing:
            print(f"not installed: {', '.join(missing)}", flush=True)
        peers = [each for each in arguments.peers if each not in missing]
        fits = tasks(usable(arguments.functions), arguments.data, arguments.budgets, peers)
        measure(path, COLUMNS, KEY, list(fits), run)
    print_summary(read(path))
    draw(read(path), path.with_suffix(".png"))


def _is_installed(method):
    return find_spec(bench_peers.METHODS[method].needs) is not None


if __name__ == "__main__":
    main()
