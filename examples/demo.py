"""Surrogates of the borehole function: what sampling neurons by gradients is worth.

    python examples/demo.py [--out demo] [--quick]

The borehole function gives the flow of water through a borehole from eight physical inputs. We fit shallow networks
to 5000 of its values, with neurons sampled by four laws: one that knows nothing and three that use gradients; and once
with the defaults, which choose laws and widths stage by stage. A table compares their errors on fresh points; two
pictures show how the error falls with the number of neurons, and predicted against true values.
"""

import argparse
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from nurf import RandomFeatureRegressor, plots, problems
from nurf.densities import ActiveSubspace, Local, Nonlocal, Uniform

WIDTH = 0.1  # of a neuron's transition, where the inputs fill the unit ball
LAWS = {
    "uniform": Uniform(),
    "active_subspace": ActiveSubspace(),
    "local": Local(jitter=2 * WIDTH),
    "nonlocal": Nonlocal(bandwidth=2 * WIDTH),
}
DEFAULT = "default"
BOREHOLE = problems.get("borehole", native=True)  # in metres, years, ...: the model does all scaling itself


def fit(law, data, n_neurons, seed=0):
    """Fit a network with neurons sampled by one of the laws at once, or with all defaults."""
    chosen = {"density": LAWS[law], "width": WIDTH, "gradient_weight": 0.0, "growth": None} if law in LAWS else {}
    return RandomFeatureRegressor(n_neurons, **chosen, random_state=seed).fit(data.X, data.y, gradients=data.gradients)


def relative(predicted, true):
    """Return the relative error in the L2 norm."""
    return np.linalg.norm(predicted - true) / np.linalg.norm(true)


def compare(data, test, n_neurons):
    """Print the errors of each law on the test points."""
    box = BOREHOLE.domain
    ranges = box.upper - box.lower  # slopes per range of each input: in their own units they differ by factors of 10^7
    print(f"{'law':16s} {'error of values':>16s} {'of gradients':>13s} {'seconds':>8s}")
    for law in (*LAWS, DEFAULT):
        start = time.perf_counter()
        model = fit(law, data, n_neurons)
        seconds = time.perf_counter() - start
        values = relative(model.predict(test.X), test.y)
        gradients = relative(model.predict_gradient(test.X) * ranges, test.gradients * ranges)
        print(f"{law:16s} {values:16.1e} {gradients:13.1e} {seconds:8.2f}", flush=True)
    print(f"\n{model.report()}")


def draw_convergence(path, n_samples, test, counts, n_trials):
    """Draw the error of each law against the number of neurons; every trial has data of its own."""
    errors = {law: np.empty((n_trials, len(counts))) for law in LAWS}
    for trial in range(n_trials):
        data = BOREHOLE.jet(BOREHOLE.sample(n_samples, np.random.default_rng(100 + trial)))
        for law in LAWS:
            for column, n_neurons in enumerate(counts):
                progress(f"trial {trial + 1} of {n_trials}: {law}, {n_neurons} neurons")
                model = fit(law, data, n_neurons, seed=trial)
                errors[law][trial, column] = relative(model.predict(test.X), test.y)
    progress("")
    figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
    for law in LAWS:
        plots.convergence(counts, errors[law], style=law, ax=ax)
    ax.set_title(f"Borehole function, {n_samples} samples, {n_trials} trials")
    ax.legend(handlelength=3.5)
    save(figure, path)


def draw_predictions(path, data, test, n_neurons):
    """Draw predicted against true values for the laws without and with gradients."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
    for ax, law in zip(axes, ("uniform", "nonlocal"), strict=True):
        plots.predicted_against_true(test.y, fit(law, data, n_neurons).predict(test.X), ax=ax)
        ax.set(title=f"{plots.style_of(law).label}, {n_neurons} neurons", xlabel="true flow (m³/year)", ylabel="")
    axes[0].set_ylabel("predicted flow (m³/year)")
    axes[1].set(xlim=axes[0].get_xlim(), ylim=axes[0].get_ylim())
    save(figure, path)


def save(figure, path):
    """Write a picture."""
    figure.savefig(path, dpi=200)
    plt.close(figure)


def progress(text):
    """Say on a terminal what is being done, on one line that is overwritten."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main(arguments=None):
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="directory for the pictures")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    options = parser.parse_args(arguments)
    n_samples, n_test, n_trials = (300, 500, 2) if options.quick else (5000, 10_000, 3)
    counts = [10, 30, 60] if options.quick else [30, 55, 100, 180, 320, 560, 1000]

    rng = np.random.default_rng(0)
    data = BOREHOLE.jet(BOREHOLE.sample(n_samples, rng))  # values and exact derivatives at random points
    test = BOREHOLE.jet(BOREHOLE.sample(n_test, rng))
    print(f"borehole function: {n_samples} samples with gradients, {counts[-1]} neurons")
    print(f"relative errors on {n_test} fresh points:\n")
    compare(data, test, n_neurons=counts[-1])

    options.out.mkdir(parents=True, exist_ok=True)
    pictures = [options.out / "convergence.png", options.out / "predictions.png"]
    draw_convergence(pictures[0], n_samples, test, counts, n_trials)
    draw_predictions(pictures[1], data, test, n_neurons=100)
    print("\nwrote " + " and ".join(map(str, pictures)))


if __name__ == "__main__":
    main()
