"""The demo: surrogates of the borehole function
=============================================

A surrogate of ten samples, and the benefit of sampling neurons from gradients. ::

    python examples/demo.py [--out demo] [--quick]  # needs nurf[cli]

The borehole function is the flow of water through a borehole as a function of eight physical inputs. First we have ten
samples. ``Surrogate`` learns from their values, and from values and gradients; a table and a figure compare the errors
on new points with a Gaussian process of scikit-learn and with radial basis functions of SciPy, which see the values.
The model with gradients becomes a report: a page with sliders, in which the model runs.

Then we have 5000 samples, and fit shallow networks with neurons sampled from four densities: the uniform density, and
three densities based on gradients. The last model uses the default parameters, which compare densities and widths in a
race. A table compares the errors on new points. Two plots show the error against the number of neurons, and predicted
against true values.

.. image:: /images/demo_convergence.png
   :alt: Relative error against the number of neurons for four densities
"""
# sphinx_gallery_thumbnail_path = "images/demo_convergence.png"

import argparse
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.interpolate import RBFInterpolator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nurf import RandomFeatureRegressor, Surrogate, plots, problems
from nurf.densities import ActiveSubspace, Local, Nonlocal, Uniform

WIDTH = 0.1  # width of the activation, for inputs scaled into the unit ball
DENSITIES = {
    "uniform": Uniform(),
    "active_subspace": ActiveSubspace(),
    "local": Local(jitter=2 * WIDTH),
    "nonlocal": Nonlocal(bandwidth=2 * WIDTH),
}
DEFAULT = "default"
GRADIENTS, VALUES = "nurf, values and gradients", "nurf, values"
GP, RBFS = "Gaussian process (scikit-learn), values", "radial basis functions (SciPy), values"
COLORS = {GRADIENTS: "#0072b2", VALUES: "#e69f00", GP: "#009e73", RBFS: "0.5"}
INPUTS = (
    "radius of the borehole (m)",
    "radius of influence (m)",
    "upper transmissivity (m²/year)",
    "upper head (m)",
    "lower transmissivity (m²/year)",
    "lower head (m)",
    "length (m)",
    "conductivity (m/year)",
)
BOREHOLE = problems.get("borehole", native=True)  # in metres, years, ...: the model scales all data


def fit(name, data, n_neurons, seed=0):
    """Return a model with all neurons sampled from one of the densities, or with the default parameters."""
    parameters = {}
    if name in DENSITIES:
        parameters = {"density": DENSITIES[name], "width": WIDTH, "gradient_weight": 0.0, "growth": None}
    model = RandomFeatureRegressor(n_neurons, **parameters, random_state=seed)
    return model.fit(data.X, data.y, gradients=data.gradients)


def relative(predicted, true):
    """Return the relative error in the L2 norm."""
    return np.linalg.norm(predicted - true) / np.linalg.norm(true)


def fit_gp(X, y):
    """Return the predictions of a Gaussian process of scikit-learn, with a scale for each input."""
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(np.ones(X.shape[1]), (1e-2, 1e3))
    process = GaussianProcessRegressor(kernel, alpha=1e-10, normalize_y=True, n_restarts_optimizer=5, random_state=0)
    return make_pipeline(StandardScaler(), process).fit(X, y).predict


def fit_rbf(X, y):
    """Return the predictions of radial basis functions of SciPy, for inputs of the same range."""
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    interpolator = RBFInterpolator((X - low) / span, y)
    return lambda points: interpolator((points - low) / span)


def frame(X):
    """Return points as a frame, whose columns the report shows."""
    return pd.DataFrame(X, columns=INPUTS)


def fit_surrogate(model, data, gradients):
    """Return the predictions of a surrogate."""
    model.fit(frame(data.X), data.y, gradients=gradients)
    return lambda points: model.predict(frame(points))


def ten_samples(data, test, budgets):
    """Print a table of errors and seconds; return the last surrogates, and the errors and seconds by method.

    Seconds are of processor time, which other programs on the machine do not change.
    """
    results, models = {}, {}
    for gradients, name in ((data.gradients, GRADIENTS), (None, VALUES)):
        for budget in budgets:
            progress(f"fitting {name}, at most {budget:g} s")
            model = Surrogate(budget, random_state=0)
            fit = partial(fit_surrogate, model, data, gradients)
            results.setdefault(name, []).append(timed(fit, test))
            models[name] = model
    for name, fit in ((GP, fit_gp), (RBFS, fit_rbf)):
        results[name] = [timed(partial(fit, data.X, data.y), test)]
    progress("")
    print(f"{'':46s} {'relative error':>14s} {'seconds':>8s}")
    for name, found in results.items():
        labels = [f"{name}, time_budget={budget:g}" for budget in budgets] if name in models else [name]
        for label, (seconds, error) in zip(labels, found, strict=True):
            print(f"{label:46s} {error:14.1e} {seconds:8.2f}")
    for name, model in models.items():
        low, high = model.predict_interval(frame(test.X), coverage=0.9).T
        true = np.sqrt(np.mean((model.predict(frame(test.X)) - test.y) ** 2))
        inside = np.mean((low <= test.y) & (test.y <= high))
        print(f"\n{name}: estimated error {model.estimated_error_:.2g}, true error {true:.2g} m³/year;", end=" ")
        print(f"90% intervals contain {inside:.0%} of the new values", end="")
    print(f"\n\nWhat was chosen with gradients:\n{models[GRADIENTS].leaderboard_}\n", flush=True)
    return models, results


def timed(fit, test):
    """Return the processor seconds of a fit, which returns a function for predictions, and the relative error."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten values say little, and scikit-learn warns about it
        predict = fit()
    return time.process_time() - start, relative(predict(test.X), test.y)


def plot_ten_samples(path, models, results, data, test):
    """Plot a slice of both models with their intervals, their predictions, and the errors against seconds."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 4.1), layout="constrained")
    line = np.tile(data.X.mean(axis=0), (201, 1))
    line[:, 0] = np.linspace(data.X[:, 0].min(), data.X[:, 0].max(), 201)
    for name, model in reversed(models.items()):
        style = {"color": COLORS[name]}
        left.fill_between(line[:, 0], *model.predict_interval(frame(line)).T, alpha=0.2, linewidth=0, **style)
        left.plot(line[:, 0], model.predict(frame(line)), label=name.removeprefix("nurf, "), **style)
        middle.plot(test.y[:500], model.predict(frame(test.X[:500])), ".", markersize=3, alpha=0.6, **style)
    left.plot(line[:, 0], BOREHOLE.value(line), "--", color="black", linewidth=1, label="function")
    left.set(title="a slice, with 90% intervals", xlabel=INPUTS[0], ylabel="flow (m³/year)")
    left.legend(fontsize="small")
    middle.axline((0, 0), slope=1, color="black", linewidth=0.8)
    middle.set(title="500 new points", xlabel="true flow (m³/year)", ylabel="predicted flow (m³/year)")
    for name, found in results.items():
        right.plot(*np.transpose(found), "o-", color=COLORS[name], label=name)
    right.set(title="errors on new points", xlabel="seconds of the processor", ylabel="relative error")
    right.set(xscale="log", yscale="log")
    figure.legend(
        *right.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize="small", frameon=False
    )
    figure.suptitle(f"Borehole function, eight inputs, {len(data)} samples")
    save(figure, path)


def write_report(path, model, data):
    """Write the page of a model, in which the model runs."""
    from nurf.report import gather, render

    progress("writing the report")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evidence = gather(
            model,
            frame(data.X),
            data.y,
            gradients=data.gradients,
            targets=["flow (m³/year)"],
            source="the borehole function",
        )
        path.write_text(render(model, title="Borehole", evidence=evidence), encoding="utf-8")
    progress("")
    print(f"a page with sliders, in which the model runs: {path.resolve().as_uri()}\n", flush=True)


def compare(data, test, n_neurons):
    """Print the errors on the test points for each density and for the default parameters."""
    # Partial derivatives are multiplied by the range of the input: otherwise they differ by factors of 10^7.
    ranges = BOREHOLE.domain.upper - BOREHOLE.domain.lower
    print(f"{'density':16s} {'error of values':>16s} {'of gradients':>13s} {'seconds':>8s}")
    for name in (*DENSITIES, DEFAULT):
        start = time.process_time()
        model = fit(name, data, n_neurons)
        seconds = time.process_time() - start
        values = relative(model.predict(test.X), test.y)
        gradients = relative(model.predict_gradient(test.X) * ranges, test.gradients * ranges)
        print(f"{name:16s} {values:16.1e} {gradients:13.1e} {seconds:8.2f}", flush=True)
    print(f"\n{model.report()}")


def plot_convergence(path, n_samples, test, counts, n_trials):
    """Plot the error for each density against the number of neurons, with new data in each trial."""
    errors = {name: np.empty((n_trials, len(counts))) for name in DENSITIES}
    for trial in range(n_trials):
        data = BOREHOLE.jet(BOREHOLE.sample(n_samples, np.random.default_rng(100 + trial)))
        for name in DENSITIES:
            for column, n_neurons in enumerate(counts):
                progress(f"trial {trial + 1} of {n_trials}: {name}, {n_neurons} neurons")
                model = fit(name, data, n_neurons, seed=trial)
                errors[name][trial, column] = relative(model.predict(test.X), test.y)
    progress("")
    figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
    for name in DENSITIES:
        plots.convergence(counts, errors[name], style=name, ax=ax)
    ax.set_title(f"Borehole function, {n_samples} samples, {n_trials} trials")
    ax.legend(handlelength=3.5)
    save(figure, path)


def plot_predictions(path, data, test, n_neurons):
    """Plot predicted against true values, for neurons sampled without and with gradients."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
    for ax, name in zip(axes, ("uniform", "nonlocal"), strict=True):
        plots.predicted_against_true(test.y, fit(name, data, n_neurons).predict(test.X), ax=ax)
        ax.set(title=f"{plots.style_of(name).label}, {n_neurons} neurons", xlabel="true flow (m³/year)", ylabel="")
    axes[0].set_ylabel("predicted flow (m³/year)")
    axes[1].set(xlim=axes[0].get_xlim(), ylim=axes[0].get_ylim())
    save(figure, path)


def save(figure, path):
    """Save a figure and close it."""
    figure.savefig(path, dpi=200)
    plt.close(figure)


def progress(text):
    """Show progress on one line, if the output is a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main(arguments=None):
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="directory for the plots")
    parser.add_argument("--quick", action="store_true", help="small sizes, for a quick test")
    options = parser.parse_args(arguments)
    n_samples, n_test, n_trials = (300, 500, 2) if options.quick else (5000, 10_000, 3)
    counts = [10, 30, 60] if options.quick else [30, 55, 100, 180, 320, 560, 1000]

    rng = np.random.default_rng(0)
    budgets = [0.1, 1.0] if options.quick else [0.1, 0.3, 1.0, 3.0, 10.0]
    data, test = (BOREHOLE.jet(BOREHOLE.sample(n, rng)) for n in (10, n_test))
    print(f"borehole function, 8 inputs: {len(data)} samples, errors on {n_test} new points\n")
    options.out.mkdir(parents=True, exist_ok=True)
    files = [options.out / name for name in ("ten_samples.png", "convergence.png", "predictions.png")]
    models, results = ten_samples(data, test, budgets)
    plot_ten_samples(files[0], models, results, data, test)
    write_report(options.out / "report.html", models[GRADIENTS], data)

    rng = np.random.default_rng(0)
    data = BOREHOLE.jet(BOREHOLE.sample(n_samples, rng))  # values and exact derivatives at random points
    test = BOREHOLE.jet(BOREHOLE.sample(n_test, rng))
    print(f"{n_samples} samples with gradients, {counts[-1]} sampled neurons")
    print(f"relative errors on {n_test} new points:\n")
    compare(data, test, n_neurons=counts[-1])

    plot_convergence(files[1], n_samples, test, counts, n_trials)
    plot_predictions(files[2], data, test, n_neurons=100)
    print("\nwrote " + ", ".join(map(str, files)))


if __name__ == "__main__":
    main()
