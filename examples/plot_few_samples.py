"""The value of gradients if there are few samples
===============================================

The figures and tables of the page on few samples. ::

    python examples/plot_few_samples.py [--out docs/images] [--seed 0] [--quick]

First, a function of one input from ten samples, with and without slopes: predictions with intervals, and a table of the
errors for several random choices of the samples. Then the borehole function of eight inputs from 40 samples with
gradients: the relevance of each input, slices along three of them, and a table that compares relevances with scales and
with shares of the variance.

.. image:: /images/few_samples.png
   :alt: Predictions and intervals from ten samples, without and with slopes
"""
# sphinx_gallery_thumbnail_path = "images/few_samples.png"

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from nurf import KernelFeatureRegressor, plots, problems

TRUTH = {"color": "black", "linewidth": 1.2, "linestyle": "--"}
SLOPE = plots.style_of("nonlocal_residual").color
BOREHOLE = problems.get("borehole", native=True)
INPUTS = ["rw", "r", "Tu", "Hu", "Tl", "Hl", "L", "Kw"]


def wave(x):
    """Return ``exp(-x) sin(14 x)``."""
    return np.exp(-x) * np.sin(14 * x)


def slope(x):
    """Return the derivative of the wave."""
    return np.exp(-x) * (14 * np.cos(14 * x) - np.sin(14 * x))


def spread(n, rng):
    """Return ``n`` points of [0, 1], one at random in each of ``n`` equal parts, of shape (n, 1)."""
    return ((np.arange(n) + rng.random(n)) / n)[:, None]


def fit(X, with_slopes):
    """Return a model of the wave."""
    return KernelFeatureRegressor().fit(X, wave(X[:, 0]), gradients=slope(X) if with_slopes else None)


def print_errors(n_seeds):
    """Print root mean square errors relative to the standard deviation of the function."""
    grid = np.linspace(0, 1, 1001)
    print("| seed | 10 values | 20 values | 10 values and slopes |\n|---|---|---|---|")
    for seed in range(n_seeds):
        errors = []
        for n, with_slopes in ((10, False), (20, False), (10, True)):
            model = fit(spread(n, np.random.default_rng(seed)), with_slopes)
            difference = model.predict(grid[:, None]) - wave(grid)
            errors.append(np.sqrt(np.mean(difference**2)) / wave(grid).std())
        print(f"| {seed} | " + " | ".join(f"{error:.1e}" for error in errors) + " |", flush=True)


def draw_wave(path, seed):
    """Draw the predictions from ten samples, without and with slopes."""
    X = spread(10, np.random.default_rng(seed))
    grid = np.linspace(X.min(), X.max(), 401)
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    for ax, with_slopes in zip(panels, (False, True), strict=True):
        plots.slices(fit(X, with_slopes), X, wave(X[:, 0]), axes=ax)
        line, band, dots = ax.lines[0], *ax.collections
        (truth,) = ax.plot(grid, wave(grid), **TRUTH)
        ax.set(title=f"from 10 values{' and slopes' * with_slopes}", xlabel="$x$", xlim=(-0.03, 1.03))
    panels[0].set_ylabel("$f(x)$")
    ends = 0.03 / np.hypot(1, slope(X) / 4) * [-1, 1]  # tangents of about the same length on the page
    tangents = panels[1].plot((X + ends).T, (wave(X) + slope(X) * ends).T, color=SLOPE, linewidth=3, zorder=2.5)
    handles = {"function": truth, "prediction": line, "90% interval": band, "sample": dots, "slope": tangents[0]}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False)
    save(figure, path)


def fit_borehole(n_samples, seed):
    """Return samples of the borehole function, and a model of them."""
    data = BOREHOLE.jet(BOREHOLE.sample(n_samples, np.random.default_rng(seed)))
    return data, KernelFeatureRegressor().fit(data.X, data.y, gradients=data.gradients)


def print_accuracy(model):
    """Print the error and the coverage of the intervals at new points."""
    X = BOREHOLE.sample(5000, np.random.default_rng(1000))
    y = BOREHOLE.value(X)
    low, high = model.predict_interval(X, coverage=0.9).T
    error = np.sqrt(np.mean((model.predict(X) - y) ** 2)) / y.std()
    inside = np.mean((low <= y) & (y <= high))
    print(f"\nat 5000 new points: error {error:.1e} standard deviations, {100 * inside:.0f}% in 90% intervals")


def print_inputs(data, model):
    """Print the relevance of each input to the model, and its share of the variance of the function."""
    scales = model.scales_ * data.X.std(axis=0)
    print("\n| input | relevance | scale times standard deviation | share of the variance |\n|---|---|---|---|")
    for j in np.argsort(-model.relevance_):
        print(f"| {INPUTS[j]} | {model.relevance_[j]:.2g} | {scales[j]:.2g} | {total_share(j):.1e} |")


def total_share(j, n=20_000):
    """Return the share of the true variance that involves input ``j``: its total Sobol index, by Jansen's formula."""
    X, other = (BOREHOLE.sample(n, np.random.default_rng(seed)) for seed in (1001, 1002))
    changed = X.copy()
    changed[:, j] = other[:, j]
    y = BOREHOLE.value(X)
    return np.mean((y - BOREHOLE.value(changed)) ** 2) / (2 * y.var())


def draw_borehole(path, data, model):
    """Draw the relevance of all inputs, and slices along three of them."""
    figure, (left, *panels) = plt.subplots(
        1, 4, figsize=(11, 3.2), layout="constrained", gridspec_kw={"width_ratios": [1.7, 1, 1, 1]}
    )
    plots.relevance(model, names=INPUTS, ax=left)
    plots.slices(model, data.X, data.y, inputs=["rw", "L", "r"], names=INPUTS, axes=panels)
    panels[0].set_ylabel("flow (m³/year)")
    for ax in panels[1:]:
        ax.tick_params(labelleft=False)
    save(figure, path)


def save(figure, path):
    """Save a figure and close it."""
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"wrote {path}")


def main(arguments=None):
    """Print the tables and draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="directory for the pictures")
    parser.add_argument("--seed", type=int, default=0, help="of the samples in the pictures")
    parser.add_argument("--quick", action="store_true", help="fewer samples and seeds, for a quick test")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    print_errors(2 if options.quick else 10)
    draw_wave(options.out / "few_samples.png", options.seed)
    data, model = fit_borehole(12 if options.quick else 40, options.seed)
    print(f"\n{model.report()}")
    print_accuracy(model)
    print_inputs(data, model)
    draw_borehole(options.out / "few_samples_inputs.png", data, model)


if __name__ == "__main__":
    main()
