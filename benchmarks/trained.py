"""Measure sampled and trained networks, and the choice between them, beside a network that is trained by torch.

    OMP_NUM_THREADS=1 python benchmarks/trained.py --out results.csv [--methods trained] [--cases "robot arm, 500"]
    python benchmarks/trained.py --table results.csv
    OMP_NUM_THREADS=1 python benchmarks/trained.py --course course.csv [--picture docs/images/trained_seconds.png]

The first form adds a row of `results.csv` for each case, kind of data, method and seed; rows that are there already are
kept, so that a run can be stopped and taken up again. Methods are the estimators of nurf with default settings, and
torch (`peer_torch.py`) with 10 and 60 seconds. `Surrogate` has the sizes for 20 seconds and no limit, so that other
work on the machine does not change its model. The second form prints the file as Markdown: medians over the seeds. The
third measures what more time is worth to each method, with one seed and gradients, and draws it.

The error is the relative L2 error on 10,000 fresh points. The estimate is `estimated_error_` over the true root mean
square error there, the coverage the share of fresh values in intervals that promise 0.9. With noise, it is 5% of the
standard deviation of the values and of the root mean square of the gradients, and the estimate and the coverage are
those of values with the same noise. Seconds are those of one core.
"""

import argparse
import time
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np

from measuring import measure, read
from nurf import DeepFeatureRegressor, RandomFeatureRegressor, Surrogate, problems

CASES = {
    "robot arm, 5000": ("robot_arm", {"dimension": 6}, 5000, 0.0),
    "robot arm, 500": ("robot_arm", {"dimension": 6}, 500, 0.0),
    "checkmark, 2000": ("checkmark", {"dimension": 3}, 2000, 0.0),
    "borehole, 5000": ("borehole", {}, 5000, 0.0),
    "borehole, 500": ("borehole", {}, 500, 0.0),
    "corner peak, 5000": ("corner_peak", {"dimension": 4}, 5000, 0.0),
    "robot arm, 5000, noise": ("robot_arm", {"dimension": 6}, 5000, 0.05),
    "robot arm, 500, noise": ("robot_arm", {"dimension": 6}, 500, 0.05),
}
DATA = ("gradients", "values")
COLUMNS = ["case", "data", "method", "seed", "error", "seconds", "estimate", "coverage", "chosen"]
FRESH = 10_000


def torch_network(seconds, seed):
    """Return a network that is trained by torch for some seconds."""
    return import_module("peer_torch").Network(seconds, seed)


METHODS = {
    "trained": lambda seed: DeepFeatureRegressor(random_state=seed),
    "surrogate": lambda seed: Surrogate(None, random_state=seed),
    "sampled": lambda seed: RandomFeatureRegressor(random_state=seed),
    "torch, 10 s": partial(torch_network, 10.0),
    "torch, 60 s": partial(torch_network, 60.0),
}
COURSE = {
    "sampled": [partial(RandomFeatureRegressor, n) for n in (125, 250, 500, 1000, 2000)],
    "trained": [partial(DeepFeatureRegressor, steps=n) for n in (340, 680, 1350, 2700, 5400)],
    "torch": [partial(torch_network, seconds) for seconds in (2.5, 5.0, 10.0, 20.0, 40.0)],
}
SHOWN = ("robot arm, 5000", "robot arm, 500", "checkmark, 2000", "borehole, 5000")
SECONDS = (2, 5, 10, 20, 50)  # at the axis
COLOURS = {"sampled": "tab:orange", "trained": "tab:blue", "torch": "grey"}


def make_data(case, seed):
    """Return samples, values, gradients, fresh points, the values there, and the same as measured."""
    name, parameters, n, noise = CASES[case]
    problem, rng = problems.get(name, **parameters), np.random.default_rng(seed)
    X, fresh = problem.sample(n, rng), problem.sample(FRESH, rng)
    y, truth, gradients = problem.value(X), problem.value(fresh), problem.gradient(X)
    unit = noise * np.std(y)
    y, measured = (values + unit * rng.standard_normal(len(values)) for values in (y, truth))
    gradients = gradients + noise * np.sqrt(np.mean(gradients**2)) * rng.standard_normal(gradients.shape)
    return X, y, gradients, fresh, truth, measured


def run(model, case, data, seed):
    """Return the results of one fit."""
    X, y, gradients, fresh, truth, measured = make_data(case, seed)
    start = time.process_time()
    model.fit(X, y, gradients=gradients if data == "gradients" else None)
    seconds = time.process_time() - start
    values = model.predict(fresh)
    row = {"case": case, "data": data, "seed": seed, "seconds": f"{seconds:.2f}"}
    row["error"] = f"{np.linalg.norm(values - truth) / np.linalg.norm(truth):.3e}"
    if hasattr(model, "estimated_error_"):
        intervals = model.predict_interval(fresh)
        row["estimate"] = f"{model.estimated_error_ / np.sqrt(np.mean((values - measured) ** 2)):.2f}"
        row["coverage"] = f"{np.mean((intervals[:, 0] <= measured) & (measured <= intervals[:, 1])):.3f}"
        row["chosen"] = model.leaderboard_[0].engine if hasattr(model, "leaderboard_") else ""
    return row


def measured(seed, case, data, method):
    """Return the row of a method."""
    return run(METHODS[method](seed), case, data, seed) | {"method": method}


def measured_course(case, method):
    """Return the row of a method with one of its sizes."""
    name, place = method.rsplit(" ", 1)
    make = COURSE[name][int(place)]
    model = make(seed=0) if name == "torch" else make(random_state=0)
    return run(model, case, "gradients", 0) | {"method": method}


def table(path):
    """Print the medians over the seeds."""
    rows = read(path)
    print("| case | data | method | error (smallest, largest) | seconds | estimated / true error | coverage | fits |")
    print("|---|---|---|---|---|---|---|---|")
    for case, data, method in product(CASES, DATA, METHODS):
        some = [row for row in rows if (row["case"], row["data"], row["method"]) == (case, data, method)]
        if some:
            errors, seconds = (np.array([float(row[name]) for row in some]) for name in ("error", "seconds"))
            known = [[float(row[name]) for row in some if row[name]] for name in ("estimate", "coverage")]
            estimate, coverage = (f"{np.median(part):.2f}" if part else "" for part in known)
            print(
                f"| {case} | {data} | {method} | {np.median(errors):.2e} ({errors.min():.1e}, {errors.max():.1e}) | "
                f"{np.median(seconds):.1f} | {estimate} | {coverage} | {len(some)} |"
            )


def draw_course(path, picture):
    """Draw the errors against the seconds, for each case."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SHOWN), figsize=(13, 4.0), layout="constrained")
    for ax, case in zip(axes, SHOWN, strict=True):
        for name, colour in COLOURS.items():
            rows = [row for row in read(path) if row["case"] == case and row["method"].rsplit(" ", 1)[0] == name]
            points = [(float(row["seconds"]), float(row["error"])) for row in rows]  # from the smallest size on
            ax.loglog(*np.transpose(points), "o-", color=colour, label=name, ms=4)
        ax.set(title=f"{case} samples", xlabel="seconds of one core")
        ax.set_xticks(SECONDS, map(str, SECONDS))
        ax.tick_params(axis="x", which="minor", labelbottom=False)
        ax.grid(which="major", alpha=0.3)
    axes[0].set_ylabel("relative error")
    figure.legend(*axes[0].get_legend_handles_labels(), frameon=False, loc="outside upper center", ncols=len(COLOURS))
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--course", type=Path)
    parser.add_argument("--picture", type=Path, default=Path("docs/images/trained_seconds.png"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES), metavar="CASE")
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--methods", nargs="+", default=["trained"], choices=list(METHODS), metavar="METHOD")
    arguments = parser.parse_args()
    if arguments.table is not None:
        table(arguments.table)
    if arguments.course is not None:
        methods = [f"{name} {place}" for name, makers in COURSE.items() for place in range(len(makers))]
        measure(arguments.course, COLUMNS, ["case", "method"], product(SHOWN, methods), measured_course)
        draw_course(arguments.course, arguments.picture)
    if arguments.out is not None:
        tasks = product(range(arguments.seeds), arguments.cases, arguments.data, arguments.methods)
        measure(arguments.out, COLUMNS, ["seed", "case", "data", "method"], tasks, measured)


if __name__ == "__main__":
    main()
