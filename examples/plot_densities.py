"""Hyperplanes sampled from each density
=====================================

The figures and tables of the page on densities. ::

    python examples/plot_densities.py [--out docs/images]

For each of the four problems in two dimensions and each density: 60 hyperplanes over the function, the density of 4000
hyperplanes over angle and offset, and the error of a fit with 250 neurons. Two more tables compare the parameters of
nonlocal sampling, and densities for points that are dense in one corner.

.. image:: /images/densities_hyperplanes.png
   :alt: Hyperplanes from five densities over four functions
"""
# sphinx_gallery_thumbnail_path = "images/densities_hyperplanes.png"

import argparse
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from nurf import RandomFeatureRegressor, plots, problems
from nurf.densities import ActiveSubspace, Local, Nonlocal, Representation, Uniform

WIDTH = 1 / 40
DENSITIES = {
    "uniform": Uniform(),
    "active_subspace": ActiveSubspace(),
    "local": Local(jitter=2 * WIDTH),
    "nonlocal": Nonlocal(bandwidth=2 * WIDTH),
    "representation": Representation(width=WIDTH),
}
NONLOCAL = {
    "the paper's": (DENSITIES["nonlocal"], None),
    'kernel="gaussian"': (Nonlocal(bandwidth=2 * WIDTH, kernel="gaussian"), None),
    'kernel="cauchy"': (Nonlocal(bandwidth=2 * WIDTH, kernel="cauchy"), None),
    'mollifier="logistic"': (Nonlocal(bandwidth=2 * WIDTH, mollifier="logistic"), None),
    'mollifier="cauchy"': (Nonlocal(bandwidth=2 * WIDTH, mollifier="cauchy"), None),
}
CROWDED = {
    f"{name.replace('_', ' ')}{', knn' if rho == 'knn' else ''}": (replace(DENSITIES[name], rho=rho), None)
    for name in ("active_subspace", "local", "nonlocal", "representation")
    for rho in ("uniform", "knn")
}
PROBLEMS = ["planar_wave", "checkmark", "corner", "separable"]
NOISE = 0.02


def draw(path, jets, show, title):
    """Save a figure with one panel for each problem and density."""
    figure, axes = plt.subplots(
        len(PROBLEMS), len(DENSITIES), figsize=(2.6 * len(DENSITIES), 2.6 * len(PROBLEMS)), layout="constrained"
    )
    for row, problem in zip(axes, PROBLEMS, strict=True):
        for ax, (name, density) in zip(row, DENSITIES.items(), strict=True):
            show(ax, problems.get(problem), density.prepare(jets[problem]))
            ax.label_outer()
            if problem == PROBLEMS[0]:
                ax.set_title(plots.style_of(name).label)
        row[0].set_ylabel(f"{problem.replace('_', ' ')}\n\n{row[0].get_ylabel()}")
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def show_planes(ax, problem, prepared):
    """Plot 60 hyperplanes over the function."""
    planes = prepared.sample(60, np.random.default_rng(0))
    plots.hyperplanes(planes, domain=problem.domain, function=problem.value, ax=ax)


def show_density(ax, problem, prepared):
    """Plot the density of 4000 hyperplanes over angle and offset."""
    plots.angle_offset_density(prepared.sample(4000, np.random.default_rng(0)), ax=ax)


def print_errors(methods, points, n_trials):
    """Print the median relative error on new points without noise, for 250 neurons fitted to noisy values.

    ``methods`` maps a label to a density and the growth of residual stages, ``points`` a problem and a trial to inputs.
    """
    print("| problem | " + " | ".join(methods) + " |")
    print("|---" * (1 + len(methods)) + "|")
    for name in PROBLEMS:
        problem = problems.get(name)
        test = problem.sample(5000, np.random.default_rng(1))
        truth = problem.value(test)
        cells = []
        for density, growth in methods.values():
            errors = []
            for trial in range(n_trials):
                data = problem.jet(points(problem, trial), noise=NOISE, rng=np.random.default_rng(trial))
                model = RandomFeatureRegressor(
                    250,
                    density=density,
                    width=WIDTH,
                    gradient_weight=0.0,
                    growth=growth,
                    scaling=None,
                    random_state=trial,
                ).fit(data.X, data.y, gradients=data.gradients)
                errors.append(np.linalg.norm(model.predict(test) - truth) / np.linalg.norm(truth))
            cells.append(f"{np.median(errors):.1e}")
        print(f"| {name.replace('_', ' ')} | " + " | ".join(cells) + " |", flush=True)
    print()


def grid(problem, trial):
    """Return a grid of 31 x 31 points, the same in all trials."""
    return problem.grid(31)


def crowded(problem, trial):
    """Return 300 random points in the domain, and 700 in its lower left corner, of 35% of its width and height."""
    X = problem.sample(1000, np.random.default_rng(trial))
    corner = X.min(axis=0)
    return np.concatenate([X[:300], corner + 0.35 * (X[300:] - corner)])


def main(arguments=None):
    """Save the figures and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="directory for the figures")
    parser.add_argument("--trials", type=int, default=5, help="number of fits for each entry of the tables")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    jets = {name: problems.get(name).jet(problems.get(name).grid(31)) for name in PROBLEMS}
    draw(options.out / "densities_hyperplanes.png", jets, show_planes, "60 hyperplanes from each density")
    draw(options.out / "densities_angle_offset.png", jets, show_density, "density over angle and offset")
    all_densities = {plots.style_of(name).label: (density, None) for name, density in DENSITIES.items()}
    for name in ("local", "nonlocal"):
        all_densities[plots.style_of(f"{name}_residual").label] = (DENSITIES[name], 2.0)
    print_errors(all_densities, grid, options.trials)
    print_errors(NONLOCAL, grid, options.trials)
    print_errors(CROWDED, crowded, options.trials)


if __name__ == "__main__":
    main()
