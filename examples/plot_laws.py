"""Where each law puts its hyperplanes: the pictures and the table of "Which law when".

    python examples/plot_laws.py [--out docs/images]

For the four problems in the plane: 60 hyperplanes from every law over the function, the density of 4000 of them over
angle and offset, and the error of a fit with 250 neurons.
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from nurf import RandomFeatureRegressor, plots, problems
from nurf.densities import ActiveSubspace, Local, Nonlocal, Representation, Uniform

WIDTH = 1 / 40
LAWS = {
    "uniform": Uniform(),
    "active_subspace": ActiveSubspace(),
    "local": Local(jitter=2 * WIDTH),
    "nonlocal": Nonlocal(bandwidth=2 * WIDTH),
    "representation": Representation(width=WIDTH),
}
PROBLEMS = ["planar_wave", "checkmark", "corner", "separable"]
NOISE = 0.02


def draw(path, jets, show, title):
    """Draw one panel for each problem and law."""
    figure, axes = plt.subplots(
        len(PROBLEMS), len(LAWS), figsize=(2.6 * len(LAWS), 2.6 * len(PROBLEMS)), layout="constrained"
    )
    for row, name in zip(axes, PROBLEMS, strict=True):
        for ax, (law, density) in zip(row, LAWS.items(), strict=True):
            prepared = density.prepare(jets[name])
            show(ax, problems.get(name), prepared)
            ax.label_outer()
            if name == PROBLEMS[0]:
                ax.set_title(plots.style_of(law).label)
        row[0].set_ylabel(f"{name.replace('_', ' ')}\n\n{row[0].get_ylabel()}")
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def show_planes(ax, problem, law):
    """Draw 60 hyperplanes over the function."""
    planes = law.sample(60, np.random.default_rng(0))
    plots.hyperplanes(planes, domain=problem.domain, function=problem.value, ax=ax)


def show_density(ax, problem, law):
    """Draw the density of 4000 hyperplanes over angle and offset."""
    plots.angle_offset_density(law.sample(4000, np.random.default_rng(0)), ax=ax)


def print_errors(n_trials):
    """Print the median relative error on clean fresh points, with 250 neurons on the noisy grid."""
    residual = {"local_residual": LAWS["local"], "nonlocal_residual": LAWS["nonlocal"]}
    print("| problem | " + " | ".join(plots.style_of(law).label for law in [*LAWS, *residual]) + " |")
    print("|---" * (1 + len(LAWS) + len(residual)) + "|")
    for name in PROBLEMS:
        problem = problems.get(name)
        test = problem.sample(5000, np.random.default_rng(1))
        truth = problem.value(test)
        cells = []
        for law, density in (LAWS | residual).items():
            errors = []
            for trial in range(n_trials):
                data = problem.jet(problem.grid(31), noise=NOISE, rng=np.random.default_rng(trial))
                model = RandomFeatureRegressor(
                    250,
                    density=density,
                    width=WIDTH,
                    gradient_weight=0.0,
                    growth=2.0 if law in residual else None,
                    scaling=None,
                    random_state=trial,
                ).fit(data.X, data.y, gradients=data.gradients)
                errors.append(np.linalg.norm(model.predict(test) - truth) / np.linalg.norm(truth))
            cells.append(f"{np.median(errors):.1e}")
        print(f"| {name.replace('_', ' ')} | " + " | ".join(cells) + " |", flush=True)


def main(arguments=None):
    """Draw the pictures and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="directory for the pictures")
    parser.add_argument("--trials", type=int, default=5, help="fits for each entry of the table")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    jets = {name: problems.get(name).jet(problems.get(name).grid(31)) for name in PROBLEMS}
    draw(options.out / "laws_hyperplanes.png", jets, show_planes, "60 hyperplanes from each law")
    draw(options.out / "laws_densities.png", jets, show_density, "density over angle and offset")
    print_errors(options.trials)


if __name__ == "__main__":
    main()
