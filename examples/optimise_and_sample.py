"""A surrogate inside an optimiser and a Markov chain
==================================================

Thousands of calls, each at one point. ::

    python examples/optimise_and_sample.py [--out docs/images] [--quick]

The energy ``U(x) = -log p(x)``, up to a constant, belongs to a banana-shaped density ``p`` in two dimensions. Suppose
that the energy is expensive: we evaluate it and its gradient at 300 points, and fit a network. ``model.function()`` is
then minimised by BFGS, and sampled by the Metropolis-adjusted Langevin algorithm. Mean and standard deviation of the
chain are compared with the exact ones, computed on a fine grid.

.. image:: /images/optimise_and_sample.png
   :alt: Points at which the energy was evaluated, and points of the chain
"""
# sphinx_gallery_thumbnail_path = "images/optimise_and_sample.png"

import argparse
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

from nurf import RandomFeatureRegressor

LOWER, UPPER = np.array([-3.5, -3.0]), np.array([3.5, 7.0])


def energy(X):
    """Return the energy at points of shape (n, 2)."""
    return X[:, 0] ** 2 / 2 + 2 * (X[:, 1] - X[:, 0] ** 2 / 2) ** 2


def energy_gradient(X):
    """Return the gradient of the energy, of shape (n, 2)."""
    residual = X[:, 1] - X[:, 0] ** 2 / 2
    return np.column_stack([X[:, 0] - 4 * residual * X[:, 0], 4 * residual])


def langevin_chain(value_and_gradient, start, n_steps, step, rng):
    """Return the points of a Metropolis-adjusted Langevin chain, and the share of accepted proposals."""
    x, (value, gradient) = start, value_and_gradient(start)
    points, accepted = np.empty((n_steps, len(start))), 0
    for k in range(n_steps):
        proposal = x - step * gradient + np.sqrt(2 * step) * rng.standard_normal(len(x))
        new_value, new_gradient = value_and_gradient(proposal)
        there, back = proposal - x + step * gradient, x - proposal + step * new_gradient
        log_ratio = value - new_value + (there @ there - back @ back) / (4 * step)
        inside = np.all((proposal > LOWER) & (proposal < UPPER))  # the surrogate has no data outside
        if inside and np.log(rng.random()) < log_ratio:
            x, value, gradient, accepted = proposal, new_value, new_gradient, accepted + 1
        points[k] = x
    return points, accepted / n_steps


def grid_moments(n=400):
    """Return the exact mean and standard deviation of the density, by a sum over a grid."""
    axes = [np.linspace(low, high, n) for low, high in zip(LOWER, UPPER, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    weights = np.exp(-energy(points))
    weights /= weights.sum()
    mean = weights @ points
    return mean, np.sqrt(weights @ (points - mean) ** 2)


def draw(path, data, chain):
    """Draw the energy, the points at which it was evaluated, and the chain."""
    axes = [np.linspace(low, high, 200) for low, high in zip(LOWER, UPPER, strict=True)]
    grid = np.stack(np.meshgrid(*axes), axis=-1)
    values = energy(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharey=True)
    for ax, points, title in (
        (panels[0], data, f"{len(data)} evaluations of the energy"),
        (panels[1], chain[:: max(1, len(chain) // 2000)], "points of the chain on the surrogate"),
    ):
        ax.contour(*axes, values, levels=[0.5, 2, 4.5, 8, 16, 32], colors="0.6", linewidths=0.8)
        ax.plot(*points.T, ".", markersize=3, alpha=0.6)
        ax.set(title=title, xlabel="$x_1$", xlim=(LOWER[0], UPPER[0]), ylim=(LOWER[1], UPPER[1]))
    panels[0].set_ylabel("$x_2$")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments=None):
    """Fit the surrogate, minimise it, sample it, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="directory for the picture")
    parser.add_argument("--quick", action="store_true", help="a shorter chain, for a quick test")
    options = parser.parse_args(arguments)
    n_steps = 20_000 if options.quick else 50_000

    rng = np.random.default_rng(0)
    X = rng.uniform(LOWER, UPPER, (300, 2))
    model = RandomFeatureRegressor(300, random_state=0).fit(X, energy(X), gradients=energy_gradient(X))
    f = model.function()

    found = minimize(f.value_and_gradient, [2.0, 3.0], jac=True, method="BFGS", options={"gtol": 1e-4})
    distance = np.linalg.norm(found.x)
    print(f"minimum after {found.nfev} calls, at a distance of {distance:.1e} from the true one")

    start = time.perf_counter()
    chain, accepted = langevin_chain(f.value_and_gradient, found.x, n_steps, 0.2, rng)
    microseconds = 1e6 * (time.perf_counter() - start) / n_steps
    print(f"chain of {n_steps} steps, {100 * accepted:.0f}% accepted, {microseconds:.0f} microseconds for a step")
    print(f"{'':10s} {'mean':>16s} {'deviation':>16s}")
    moments = {"chain": (chain.mean(axis=0), chain.std(axis=0)), "exact": grid_moments()}
    for name, (mean, deviation) in moments.items():
        print(f"{name:10s} {mean[0]:8.2f}{mean[1]:8.2f} {deviation[0]:8.2f}{deviation[1]:8.2f}")

    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "optimise_and_sample.png"
    draw(path, X, chain)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
