"""The demo: surrogates of the borehole function
=============================================

A surrogate by one call, and the benefit of sampling neurons from gradients. ::

    python examples/demo.py [--out demo] [--quick]

The borehole function is the flow of water through a borehole as a function of eight physical inputs. First we have 50
samples. ``Surrogate`` compares three kinds of networks and keeps the best one, with gradients and without; we compare
its estimated error with the true error on new points, and plot slices of the model.

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
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

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


def fit_surrogates(data, test, time_budget):
    """Print the leaderboard and the errors, with gradients and without; return the model with gradients."""
    models = {}
    for title, gradients in {"with gradients": data.gradients, "values only": None}.items():
        progress(f"fitting {title}, at most {time_budget:g} s")
        model = models[title] = Surrogate(time_budget, random_state=0).fit(data.X, data.y, gradients=gradients)
        progress("")
        true = np.sqrt(np.mean((model.predict(test.X) - test.y) ** 2))
        low, high = model.predict_interval(test.X, coverage=0.9).T
        print(f"{title}:\n{model.leaderboard_}")
        print(f"estimated error {model.estimated_error_:.2g}, true error {true:.2g} m³/year;", end=" ")
        print(
            f"90% intervals contain {np.mean((low <= test.y) & (test.y <= high)):.0%} of the new values\n", flush=True
        )
    return models["with gradients"]


def plot_slices(path, model, data):
    """Plot the model along each input, with its intervals."""
    axes = plots.slices(model, data.X, names=INPUTS)
    figure = axes[0].figure
    figure.suptitle(f"Borehole function from {len(data)} samples with gradients: flow (m³/year) and 90% intervals")
    save(figure, path)


def compare(data, test, n_neurons):
    """Print the errors on the test points for each density and for the default parameters."""
    # Partial derivatives are multiplied by the range of the input: otherwise they differ by factors of 10^7.
    ranges = BOREHOLE.domain.upper - BOREHOLE.domain.lower
    print(f"{'density':16s} {'error of values':>16s} {'of gradients':>13s} {'seconds':>8s}")
    for name in (*DENSITIES, DEFAULT):
        start = time.perf_counter()
        model = fit(name, data, n_neurons)
        seconds = time.perf_counter() - start
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
    few, budget = (20, 2.0) if options.quick else (50, 20.0)
    data, test = (BOREHOLE.jet(BOREHOLE.sample(n, rng)) for n in (few, n_test))
    print(f"borehole function, 8 inputs: {few} samples, errors on {n_test} new points\n")
    options.out.mkdir(parents=True, exist_ok=True)
    files = [options.out / name for name in ("slices.png", "convergence.png", "predictions.png")]
    plot_slices(files[0], fit_surrogates(data, test, budget), data)

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
